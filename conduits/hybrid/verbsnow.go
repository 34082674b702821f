package hybrid

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// PutAtOnce is Post.
func (e *Endpoint) PutAtOnce(dst int, to segment.NLA, src []byte) bool {
	ev, _ := e.Post(&conduits.Access{Now: true, Verb: conduits.Put, Rank: dst, At: to, Mem: src})
	return ev != 0
}

// GetAtOnce is Post.
func (e *Endpoint) GetAtOnce(dst []byte, src int, from segment.NLA) bool {
	ev, _ := e.Post(&conduits.Access{Now: true, Verb: conduits.Get, Rank: src, At: from, Mem: dst})
	return ev != 0
}

// PutWordAtOnce is Post.
func (e *Endpoint) PutWordAtOnce(dst int, to segment.NLA, v uint64, n int) bool {
	ev, _ := e.Post(&conduits.Access{Now: true, Verb: conduits.PutWord, Rank: dst, At: to, A: v, Size: uint8(min(n, 255))})
	return ev != 0
}

// GetWordAtOnce is Post.
func (e *Endpoint) GetWordAtOnce(src int, from segment.NLA, n int) (v uint64, done bool) {
	a := conduits.Access{Now: true, Verb: conduits.GetWord, Rank: src, At: from, Size: uint8(min(n, 255))}
	ev, _ := e.Post(&a)
	return a.Value, ev != 0
}

// AtomicAtOnce is Post.
func (e *Endpoint) AtomicAtOnce(dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, x, y uint64) (old uint64, done bool) {
	a := conduits.Access{Now: true, Verb: conduits.Atomic, Rank: dst, At: to, Op: op, Type: t, A: x, B: y}
	ev, _ := e.Post(&a)
	return a.Value, ev != 0
}

// PutManyAtOnce is Post.
func (e *Endpoint) PutManyAtOnce(dst int, pieces []conduits.Piece) int {
	a := conduits.Access{Now: true, Verb: conduits.Put, Rank: dst, Pieces: pieces}
	_, _ = e.Post(&a)
	return int(a.Value)
}

// GetManyAtOnce is Post.
func (e *Endpoint) GetManyAtOnce(src int, pieces []conduits.Piece) int {
	a := conduits.Access{Now: true, Verb: conduits.Get, Rank: src, Pieces: pieces}
	_, _ = e.Post(&a)
	return int(a.Value)
}
