package gas

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
)

func (n *Node) putBytesSlow(w uint64, src []byte) error {
	if err := n.check("Put", w, uint64(len(src))); err != nil {
		return err
	}
	return n.unreachable("Put", w)
}

func (n *Node) getBytesSlow(dst []byte, w uint64) error {
	if err := n.check("Get", w, uint64(len(dst))); err != nil {
		return err
	}
	return n.unreachable("Get", w)
}

func (n *Node) atomicSlow(w uint64, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64) (uint64, error) {
	if err := n.check(opNames[op], w, uint64(t.Size())); err != nil {
		return 0, err
	}
	if err := conduits.CheckAtomic("gas: "+opNames[op], op, t, wordNLA(w)); err != nil {
		return 0, err
	}
	return 0, n.unreachable(opNames[op], w)
}

// unreachable is the error of an access that direct access refuses although the
// address is right.
func (n *Node) unreachable(op string, w uint64) error {
	return errs.NotSupported("gas: %s: rank %d does not grant it, or is outside the neighbourhood", op, wordRank(w))
}

// putSlow and getSlow are out of line, so that Put and Get stay small and v does
// not escape.
//
//go:noinline
func putSlow[T any](n *Node, w uint64, v T) error {
	return n.putBytesSlow(w, bytesOf([]T{v}))
}

//go:noinline
func getSlow[T any](n *Node, w uint64) (T, error) {
	buf := make([]T, 1)
	err := n.getBytesSlow(bytesOf(buf), w)
	return buf[0], err
}
