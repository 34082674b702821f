package shm

import (
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

const done = conduits.SourceDone | conduits.RemoteDone

// Put copies; the layers above do so themselves where they can. What an
// endpoint puts counts as an arrival: dst may be parked for it.
func (e *Endpoint) Put(dst int, to segment.NLA, src []byte, want conduits.Event, cookie uint64) (conduits.Event, error) {
	e.puts.Add(1)
	if err := e.over(); err != nil {
		return 0, err
	}
	if !e.near(dst) {
		return e.putFar(dst, to, src, want, cookie)
	}
	v := &e.views[dst-e.memory.first] // by memory's own first the compiler sees that near has checked
	b, ok := v.Bytes(to, uint64(len(src)), v.Write)
	if !ok {
		return e.putFar(dst, to, src, want, cookie)
	}
	if len(src) == 8 && uint64(to)%8 == 0 {
		*(*uint64)(unsafe.Pointer(&b[0])) = *(*uint64)(unsafe.Pointer(&src[0]))
	} else {
		bulk.Copy(b, src)
	}
	e.Wake(dst)
	return done & want, nil
}

// Get copies.
func (e *Endpoint) Get(dst []byte, src int, from segment.NLA, want conduits.Event, cookie uint64) (conduits.Event, error) {
	e.gets.Add(1)
	if err := e.over(); err != nil {
		return 0, err
	}
	if !e.near(src) {
		return e.getFar(dst, src, from, want, cookie)
	}
	v := &e.views[src-e.memory.first]
	b, ok := v.Bytes(from, uint64(len(dst)), v.Read)
	if !ok {
		return e.getFar(dst, src, from, want, cookie)
	}
	if len(dst) == 8 && uint64(from)%8 == 0 {
		*(*uint64)(unsafe.Pointer(&dst[0])) = *(*uint64)(unsafe.Pointer(&b[0]))
	} else {
		bulk.Copy(dst, b)
	}
	return done & want, nil
}

// PutWord stores.
func (e *Endpoint) PutWord(dst int, to segment.NLA, w uint64, n int, want conduits.Event, cookie uint64) (conduits.Event, error) {
	e.puts.Add(1)
	if err := e.over(); err != nil {
		return 0, err
	}
	if n < 1 || n > 8 || n&(n-1) != 0 || uint64(to)%uint64(n) != 0 {
		if err := conduits.CheckRemote(e, "put of a word", dst, to, uint64(n)); err != nil {
			return 0, err
		}
		return 0, errs.BadArg("shm: put of a word: %d bytes at %v: 1, 2, 4 or 8, aligned", n, to)
	}
	if !e.near(dst) {
		return e.putWordFar(dst, to, w, n, want, cookie)
	}
	v := &e.views[dst-e.memory.first]
	p, ok := v.At(to, uint64(n), v.Write)
	if !ok {
		return e.putWordFar(dst, to, w, n, want, cookie)
	}
	storeWord(p, w, n)
	e.Wake(dst)
	return done & want, nil
}

// Atomic performs the operation by the processor.
func (e *Endpoint) Atomic(dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64, cookie uint64) (uint64, conduits.Event, error) {
	e.atomics.Add(1)
	if err := e.over(); err != nil {
		return 0, 0, err
	}
	if err := conduits.CheckAtomic("atomic", op, t, to); err != nil {
		return 0, 0, err
	}
	if !e.near(dst) {
		return e.atomicFar(dst, to, op, t, a, b, cookie)
	}
	v := &e.views[dst-e.memory.first]
	p, ok := v.At(to, uint64(t.Size()), v.Atomic)
	if !ok {
		return e.atomicFar(dst, to, op, t, a, b, cookie)
	}
	old := conduits.ApplyAtomic(p, op, t, a, b)
	if op != conduits.AtomicLoad {
		e.Wake(dst)
	}
	return old, done, nil
}

func denied(op string, rank int, right string) error {
	return errs.BadArg("shm: %s: rank %d attached its segment without the %s right", op, rank, right)
}

// Fence is a full fence of this processor.
func (mem *memory) Fence() {
	// A store-release before a load-acquire, which stay in order: on amd64 the store is
	// an exchange. An addition would not do on arm64 without LSE, where a later load may
	// come before its store.
	var x atomic.Uint32
	x.Store(1)
	x.Load()
}

// Post begins an access.
func (e *Endpoint) Post(a *conduits.Access) (conduits.Event, error) { return conduits.PostBy(e, a) }
