package hybrid

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// Put is Post.
func (e *Endpoint) Put(dst int, to segment.NLA, src []byte, want conduits.Event, cookie uint64) (conduits.Event, error) {
	return e.Post(&conduits.Access{Verb: conduits.Put, Rank: dst, At: to, Mem: src, Want: want, Cookie: cookie})
}

// Get is Post.
func (e *Endpoint) Get(dst []byte, src int, from segment.NLA, want conduits.Event, cookie uint64) (conduits.Event, error) {
	return e.Post(&conduits.Access{Verb: conduits.Get, Rank: src, At: from, Mem: dst, Want: want, Cookie: cookie})
}

// PutWord is Post.
func (e *Endpoint) PutWord(dst int, to segment.NLA, v uint64, n int, want conduits.Event, cookie uint64) (conduits.Event, error) {
	return e.Post(&conduits.Access{Verb: conduits.PutWord, Rank: dst, At: to, A: v, Size: uint8(min(n, 255)), Want: want, Cookie: cookie})
}

// Atomic is Post.
func (e *Endpoint) Atomic(dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, x, y uint64, cookie uint64) (uint64, conduits.Event, error) {
	a := conduits.Access{Verb: conduits.Atomic, Rank: dst, At: to, Op: op, Type: t, A: x, B: y, Cookie: cookie}
	ev, err := e.Post(&a)
	return a.Value, ev, err
}
