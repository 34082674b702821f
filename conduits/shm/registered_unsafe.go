package shm

import (
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Memory that ranks have registered beside their segments is reached in one of
// these ways:
//
//   - by every caller of the owner's address translation unit: every rank
//     of a job in one process, and the owner itself: between its Enter and Exit.
//   - by other processes, which read the owner's tables; see foreign_unsafe.go: by
//     load and store, if the owner has the memory from MapMemory; by the system
//     calls process_vm_readv and process_vm_writev, if it is private to the owner;
//   - and else by asking the owner; see ask_unsafe.go.

// owner is the memory of rank if it lives in this process, as far as is known.
func (mem *memory) owner(rank int) *memory {
	if l := mem.j.local; l != nil {
		return &l.eps[mem.j.place(rank)].memory
	}
	if rank == mem.rank {
		return mem
	}
	return nil
}

// putFar is Put to what View does not give.
func (e *Endpoint) putFar(dst int, to segment.NLA, src []byte, want conduits.Event, cookie uint64) (conduits.Event, error) {
	if len(src) == 0 || !e.reaches(dst) {
		return done & want, e.unreached("put", dst, to, 0)
	}
	if m, w := e.direct(dst, to, uint64(len(src)), segment.RightWrite); m != nil {
		carry(m, src, to, segment.RightWrite)
		exit(w)
		e.Wake(dst)
		return done & want, nil
	}
	ask, err := e.transfer(dst, to, src, segment.RightWrite, to%8 == 0 && len(src) == 8)
	switch {
	case err != nil:
		return 0, e.refused("put", dst, to, uint64(len(src)), "write", err)
	case ask:
		return e.desk.ask(question{of: e, kind: askPut, rank: dst, at: to, buf: src, want: want, cookie: cookie})
	}
	e.Wake(dst)
	return done & want, nil
}

// getFar is Get of what View does not give.
func (e *Endpoint) getFar(dst []byte, src int, from segment.NLA, want conduits.Event, cookie uint64) (conduits.Event, error) {
	if len(dst) == 0 || !e.reaches(src) {
		return done & want, e.unreached("get", src, from, 0)
	}
	if m, w := e.direct(src, from, uint64(len(dst)), segment.RightRead); m != nil {
		carry(m, dst, from, segment.RightRead)
		exit(w)
		return done & want, nil
	}
	ask, err := e.transfer(src, from, dst, segment.RightRead, from%8 == 0 && len(dst) == 8)
	switch {
	case err != nil:
		return 0, e.refused("get", src, from, uint64(len(dst)), "read", err)
	case ask:
		return e.desk.ask(question{of: e, kind: askGet, rank: src, at: from, buf: dst, want: want, cookie: cookie})
	}
	return done & want, nil
}

// putWordFar is PutWord to what View does not give.
func (e *Endpoint) putWordFar(dst int, to segment.NLA, w uint64, n int, want conduits.Event, cookie uint64) (conduits.Event, error) {
	if !e.reaches(dst) {
		return 0, e.unreached("put of a word", dst, to, uint64(n))
	}
	x, err := e.begin(dst, to, uint64(n), segment.RightWrite)
	switch {
	case err != nil:
		return 0, e.refused("put of a word", dst, to, uint64(n), "write", err)
	case x.mem == nil:
		return e.desk.ask(question{of: e, kind: askWord, rank: dst, at: to, n: n, a: w, want: want, cookie: cookie})
	}
	there := x.touch(uint64(n), func() { storeWord(x.mem, w, n) })
	x.finish()
	if !there {
		return 0, e.refused("put of a word", dst, to, uint64(n), "write", segment.Gone(e.rank, to, uint64(n), segment.RightWrite))
	}
	e.Wake(dst)
	return done & want, nil
}

// atomicFar is Atomic on what View does not give.
func (e *Endpoint) atomicFar(dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b, cookie uint64) (uint64, conduits.Event, error) {
	if !e.reaches(dst) {
		return 0, 0, e.unreached("atomic", dst, to, uint64(t.Size()))
	}
	x, err := e.begin(dst, to, uint64(t.Size()), segment.RightAtomic)
	switch {
	case err != nil:
		return 0, 0, e.refused("atomic", dst, to, uint64(t.Size()), "atomic", err)
	case x.mem == nil:
		ev, err := e.desk.ask(question{of: e, kind: askAtomic, rank: dst, at: to, n: t.Size(), op: op, typ: t, a: a, b: b, want: conduits.RemoteDone, cookie: cookie})
		return 0, ev, err
	}
	var old uint64
	there := x.touch(uint64(t.Size()), func() { old = conduits.ApplyAtomic(x.mem, op, t, a, b) })
	x.finish()
	if !there {
		return 0, 0, e.refused("atomic", dst, to, uint64(t.Size()), "atomic", segment.Gone(e.rank, to, uint64(t.Size()), segment.RightAtomic))
	}
	if op != conduits.AtomicLoad {
		e.Wake(dst)
	}
	return old, done, nil
}

// unreached is the error of an access of n bytes that there is no way to, or of 0
// bytes, which there need be none to.
func (e *Endpoint) unreached(op string, rank int, a segment.NLA, n uint64) error {
	if err := conduits.CheckRemote(e, op, rank, a, n); err != nil || e.reaches(rank) {
		return err
	}
	if e.views == nil {
		return errs.NotReady("shm: %s: no registered memory before Attach", op)
	}
	return errs.BadArg("shm: %s: rank %d does not share this memory", op, rank)
}

// refused is what an access that err refused ends with: for addresses of the
// segment, which its View has refused, too, that is why.
func (e *Endpoint) refused(op string, rank int, a segment.NLA, n uint64, right string, err error) error {
	if err == errClosed {
		return err
	}
	if err := conduits.CheckRemote(e, op, rank, a, n); err != nil {
		return err
	}
	if conduits.InSegment(e, rank, a, n) {
		return denied(op, rank, right)
	}
	return conduits.Fault("shm: "+op, rank, err)
}

// registrations is how many there have been at rank, at least those whose addresses
// this rank knows.
func (mem *memory) registrations(rank int) uint64 {
	if o := mem.owner(rank); o == nil {
		return atomic.LoadUint64((*uint64)(unsafe.Add(mem.j.registry(rank), regCount)))
	} else if t := o.MadeATU(); t != nil {
		return t.Registrations()
	}
	return 0
}

// longAt is the memory of a long message of n bytes from src, to an address
// outside the segment, sent when there had been count registrations. It is
// nil, which is counted, if the memory has been withdrawn.
func (mem *memory) longAt(src int, to segment.NLA, n, count uint64) []byte {
	t := mem.MadeATU()
	b, u, err := conduits.Admit(t, src, to, n, segment.RightWrite)
	if err == nil {
		u.Exit()
		if !t.Since(to, n, count) {
			return b
		}
	}
	mem.faults.Add(1)
	return nil
}

// carry copies between buf and equally many bytes of remote memory, which m points to, at
// address a: to there if need is the right to write. 8 aligned ones by one load and one store.
func carry(m unsafe.Pointer, buf []byte, a segment.NLA, need segment.Rights) {
	p := unsafe.Pointer(unsafe.SliceData(buf))
	if need == segment.RightWrite {
		m, p = p, m
	}
	if len(buf) == 8 && a%8 == 0 {
		*(*uint64)(p) = *(*uint64)(m)
	} else {
		move(p, m, len(buf))
	}
}

// move is carry of what is no aligned word. It is not a part of that so that the compiler
// inlines it.
func move(to, from unsafe.Pointer, n int) {
	if from != to { // else a long message's data, which has been filled in in place
		bulk.Copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n))
	}
}

// storeWord stores the low n bytes of w at p, which is aligned to n.
func storeWord(p unsafe.Pointer, w uint64, n int) {
	switch n {
	case 1:
		*(*uint8)(p) = uint8(w)
	case 2:
		*(*uint16)(p) = uint16(w)
	case 4:
		*(*uint32)(p) = uint32(w)
	case 8:
		*(*uint64)(p) = w
	}
}
