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

// copyFar puts and gets what View does not give.
func (e *Endpoint) copyFar(a *conduits.Access) (conduits.Event, error) {
	n, need := uint64(len(a.Mem)), a.Need()
	if n == 0 || !e.reaches(a.Rank) {
		if err := e.unreached(a); err != nil {
			return 0, err
		}
		return done & a.Want, nil
	}
	if m, w := e.direct(a.Rank, a.At, n, need); m != nil {
		carry(m, a.Mem, a.At, need)
		exit(w)
	} else {
		ask, err := e.transfer(a.Rank, a.At, a.Mem, need, a.Verb == conduits.Get && a.Size != 0)
		switch {
		case err != nil:
			return 0, e.refused(a, err)
		case ask:
			return e.desk.ask(question{of: e, Access: *a})
		}
	}
	if a.Verb == conduits.Put {
		e.Wake(a.Rank)
	}
	return done & a.Want, nil
}

// wordFar accesses words that View does not give.
func (e *Endpoint) wordFar(a *conduits.Access) (conduits.Event, error) {
	if !e.reaches(a.Rank) {
		return 0, e.unreached(a)
	}
	n, need := a.Len(), a.Need()
	x, err := e.begin(a.Rank, a.At, n, need)
	switch {
	case err != nil:
		return 0, e.refused(a, err)
	case x.mem == nil:
		if e.wordBySystem(a) {
			e.Wake(a.Rank)
			return done & a.Want, nil
		}
		q := question{of: e, Access: *a}
		q.Mem, q.Want = nil, a.Wanted()
		return e.desk.ask(q)
	}
	there := x.touch(n, func() { a.Perform(x.mem) })
	x.finish()
	if !there {
		return 0, e.refused(a, segment.Gone(e.rank, a.At, n, need))
	}
	if a.Writes() {
		e.Wake(a.Rank)
	}
	return done & a.Wanted(), nil
}

// wordBySystem puts or gets a word that is private to another process, if the system copies words as such.
func (e *Endpoint) wordBySystem(a *conduits.Access) bool {
	word, need := &a.A, a.Need()
	switch a.Verb {
	case conduits.Atomic:
		return false
	case conduits.GetWord:
		word, a.Value = &a.Value, 0
	}
	ask, err := e.transfer(a.Rank, a.At, unsafe.Slice((*byte)(unsafe.Pointer(word)), a.Size), need, true)
	return !ask && err == nil
}

// unreached is the error of an access that there is no way to, or of 0 bytes, which there need
// be none to.
func (e *Endpoint) unreached(a *conduits.Access) error {
	n := a.Len()
	if a.Verb == conduits.Put || a.Verb == conduits.Get {
		n = 0
	}
	if err := conduits.CheckRemote(e, "shm: "+a.Verb.String(), a.Rank, a.At, n); err != nil || e.reaches(a.Rank) {
		return err
	}
	if e.views == nil {
		return errs.NotReady("shm: %v: no registered memory before Attach", a.Verb)
	}
	return errs.BadArg("shm: %v: rank %d does not share this memory", a.Verb, a.Rank)
}

// refused is the error of an access that err refused: for addresses of the
// segment, which its View has refused, too, the reason of View.
func (e *Endpoint) refused(a *conduits.Access, err error) error {
	if err == errClosed {
		return err
	}
	if err := conduits.CheckAccess(e, "shm", a); err != nil {
		return err
	}
	return conduits.Fault("shm: "+a.Verb.String(), a.Rank, err)
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
	b := conduits.Landed(mem.MadeATU(), src, to, n, count)
	if b == nil {
		mem.faults.Add(1)
	}
	return b
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
