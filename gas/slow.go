package gas

import (
	"github.com/argon-go/argon/conduits"
)

// Accesses that direct access refuses: those outside the neighbourhood, which the
// conduit carries, and those that are wrong.

func (n *Node) putBytesSlow(w uint64, src []byte) error {
	if err := n.check("gas: Put", w, uint64(len(src))); err != nil {
		return err
	}
	return n.x.Put(wordRank(w), wordNLA(w), src)
}

func (n *Node) getBytesSlow(w uint64, dst []byte) error {
	if err := n.check("gas: Get", w, uint64(len(dst))); err != nil {
		return err
	}
	return n.x.Get(wordRank(w), wordNLA(w), dst)
}

// putSlow and getSlow are out of line, so that Put and Get stay small and v does
// not escape there.
//
//go:noinline
func putSlow[T any](n *Node, w uint64, v T) error {
	if size, ok := wordSize[T](w); ok {
		if err := n.check("gas: Put", w, size); err != nil {
			return err
		}
		return n.x.PutValue(wordRank(w), wordNLA(w), wordOf(v), int(size))
	}
	b, spare := scratch[T]()
	b[0] = v
	err := n.putBytesSlow(w, bytesOf(b))
	if err == nil { // else the conduit may still have it
		spare.put()
	}
	return err
}

//go:noinline
func getSlow[T any](n *Node, w uint64) (T, error) {
	if size, ok := wordSize[T](w); ok {
		var v T
		err := n.check("gas: Get", w, size)
		if err != nil {
			return v, err
		}
		word, err := n.x.GetValue(wordRank(w), wordNLA(w), int(size))
		return ofWord[T](word), err
	}
	b, spare := scratch[T]()
	err := n.getBytesSlow(w, bytesOf(b))
	v := b[0]
	if err == nil {
		spare.put()
	}
	return v, err
}

//go:noinline
func putNBSlow[T any](n *Node, w uint64, v T) (Handle, error) {
	b, spare := scratch[T]()
	b[0] = v
	src := bytesOf(b)
	if err := n.check("gas: PutNB", w, uint64(len(src))); err != nil {
		return 0, err
	}
	h, err := n.x.PutNB(wordRank(w), wordNLA(w), src)
	if err == nil { // PutNB has copied it
		spare.put()
	}
	return h, err
}

func (n *Node) putBytesNB(w uint64, src []byte) (Handle, error) {
	if !n.debug && n.putDirect(w, src) {
		return 0, nil
	}
	if err := n.check("gas: PutNB", w, uint64(len(src))); err != nil {
		return 0, err
	}
	return n.x.PutBulkNB(wordRank(w), wordNLA(w), src)
}

func (n *Node) getBytesNB(w uint64, dst []byte) (Handle, error) {
	if !n.debug && n.getDirect(w, dst) {
		return 0, nil
	}
	if err := n.check("gas: GetNB", w, uint64(len(dst))); err != nil {
		return 0, err
	}
	return n.x.GetNB(wordRank(w), wordNLA(w), dst)
}

// atomicSlow lets the conduit perform an atomic.
func (n *Node) atomicSlow(w uint64, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64) (uint64, error) {
	name := opNames[op]
	if err := n.check(name, w, uint64(t.Size())); err != nil {
		return 0, err
	}
	if err := conduits.CheckAtomic(name, op, t, wordNLA(w)); err != nil {
		return 0, err
	}
	return n.x.AtomicBits(wordRank(w), wordNLA(w), op, t, a, b)
}
