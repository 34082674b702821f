package gas

import (
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/internal/errs"
)

// PutSignal stores the elements of src at p and after it and then adds d to
// flag, a word on the same rank, and wakes its waiters there: a rank that sees
// the flag changed sees the elements. It returns when src may be reused.
func (p Ptr[T]) PutSignal(n *Node, src []T, flag Ptr[uint64], d uint64) error {
	if err := p.checkSignal(n, "gas: PutSignal", src, flag); err != nil {
		return err
	}
	return n.x.PutSignal(p.Rank(), p.NLA(), bytesOf(src), flag.NLA(), extended.SignalAdd, d)
}

// WaitAtLeast waits until flag, a word of this rank's own, is at least v, and
// returns what it found. It answers peers meanwhile. PutSignal, FetchAdd and the
// other atomics wake it.
func WaitAtLeast(n *Node, flag Ptr[uint64], v uint64) (uint64, error) {
	if flag.IsNil() || flag.Rank() != n.rank {
		return 0, errs.BadArg("gas: WaitAtLeast: %v is not in the memory of rank %d, which waits", flag, n.rank)
	}
	return n.x.WaitUntil(flag.NLA(), extended.Ge, v)
}
