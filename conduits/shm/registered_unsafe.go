package shm

import (
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// Memory that ranks have registered beside their segments. Whoever can call the
// owner's address translation unit, which is every rank of a job in one process
// and otherwise the owner itself, accesses the memory between its Enter and Exit.

// owner is the endpoint of rank if it lives in this process, as far as is known.
func (e *Endpoint) owner(rank int) *Endpoint {
	if l := e.j.local; l != nil {
		return l.eps[rank-e.first]
	}
	if rank == e.rank {
		return e
	}
	return nil
}

// outside says why an access of n bytes that View refused is none to registered
// memory: the segment has them, without the right. op begins with "shm: ".
func (e *Endpoint) outside(op string, rank int, a segment.NLA, n uint64, right string) error {
	if conduits.InSegment(e, rank, a, n) {
		return denied(op, rank, right)
	}
	return nil
}

// putFar is Put to what is not in the segment. The range has been checked.
func (e *Endpoint) putFar(dst int, to segment.NLA, src []byte, want conduits.Event) (conduits.Event, error) {
	n := uint64(len(src))
	if err := e.outside("shm: put", dst, to, n, "write"); err != nil {
		return 0, err
	}
	if n == 0 {
		return done & want, nil
	}
	b, u, err := conduits.Access(e.owner(dst).MadeATU(), e.rank, to, n, segment.RightWrite)
	if err != nil {
		return 0, conduits.Fault("shm: put", dst, err)
	}
	move(b, src, to)
	u.Exit()
	e.Wake(dst)
	return done & want, nil
}

// getFar is Get of what is not in the segment.
func (e *Endpoint) getFar(dst []byte, src int, from segment.NLA, want conduits.Event) (conduits.Event, error) {
	n := uint64(len(dst))
	if err := e.outside("shm: get", src, from, n, "read"); err != nil {
		return 0, err
	}
	if n == 0 {
		return done & want, nil
	}
	b, u, err := conduits.Access(e.owner(src).MadeATU(), e.rank, from, n, segment.RightRead)
	if err != nil {
		return 0, conduits.Fault("shm: get", src, err)
	}
	move(dst, b, from)
	u.Exit()
	return done & want, nil
}

// putWordFar is PutWord to what is not in the segment.
func (e *Endpoint) putWordFar(dst int, to segment.NLA, w uint64, n int, want conduits.Event) (conduits.Event, error) {
	if err := e.outside("shm: put of a word", dst, to, uint64(n), "write"); err != nil {
		return 0, err
	}
	b, u, err := conduits.Access(e.owner(dst).MadeATU(), e.rank, to, uint64(n), segment.RightWrite)
	if err != nil {
		return 0, conduits.Fault("shm: put of a word", dst, err)
	}
	storeWord(unsafe.Pointer(unsafe.SliceData(b)), w, n)
	u.Exit()
	e.Wake(dst)
	return done & want, nil
}

// atomicFar is Atomic on what is not in the segment.
func (e *Endpoint) atomicFar(dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64) (uint64, conduits.Event, error) {
	n := uint64(t.Size())
	if err := e.outside("shm: atomic", dst, to, n, "atomic"); err != nil {
		return 0, 0, err
	}
	m, u, err := conduits.Access(e.owner(dst).MadeATU(), e.rank, to, n, segment.RightAtomic)
	if err != nil {
		return 0, 0, conduits.Fault("shm: atomic", dst, err)
	}
	old := conduits.ApplyAtomic(unsafe.Pointer(unsafe.SliceData(m)), op, t, a, b)
	u.Exit()
	if op != conduits.AtomicLoad {
		e.Wake(dst)
	}
	return old, done, nil
}

// longFar is what ReservePut does to what is not in the segment, and says whether
// it could.
func (e *Endpoint) longFar(dst int, to segment.NLA, data []byte) bool {
	b, u, err := conduits.Access(e.owner(dst).MadeATU(), e.rank, to, uint64(len(data)), segment.RightWrite)
	if err != nil {
		e.faults.Add(1)
		return false
	}
	if unsafe.SliceData(b) != unsafe.SliceData(data) { // else filled in place
		copy(b, data)
	}
	u.Exit()
	return true
}

// longAt is the memory of a long message of n bytes from src, to an address
// outside the segment. It is nil, which is counted, if the memory has been
// withdrawn.
func (e *Endpoint) longAt(src int, to segment.NLA, n uint64) []byte {
	b, u, err := conduits.Access(e.MadeATU(), src, to, n, segment.RightWrite)
	if err != nil {
		e.faults.Add(1)
		return nil
	}
	u.Exit()
	return b
}

// move copies as many bytes as both have; 8 aligned ones of remote memory, at
// address a, by one load and one store.
func move(dst, src []byte, a segment.NLA) {
	if len(src) == 8 && a%8 == 0 {
		*(*uint64)(unsafe.Pointer(unsafe.SliceData(dst))) = *(*uint64)(unsafe.Pointer(unsafe.SliceData(src)))
		return
	}
	copy(dst, src)
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
