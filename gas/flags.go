package gas

import (
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/internal/errs"
)

// Cmp compares a flag with a value, both unsigned.
type Cmp = extended.Cmp

// The comparisons.
const (
	Eq = extended.Eq // flag == value
	Ne = extended.Ne // flag != value
	Gt = extended.Gt // flag > value
	Ge = extended.Ge // flag >= value
	Lt = extended.Lt // flag < value
	Le = extended.Le // flag <= value
)

// SignalOp is the operation of a signal on its flag.
type SignalOp = extended.SignalOp

// The operations of signals.
const (
	SignalSet = extended.SignalSet // the flag becomes the value
	SignalAdd = extended.SignalAdd // the value is added to the flag
)

// PutSignal stores the elements of src at p and after it, then has op change flag, a word on
// the same rank, by v, and wakes its waiters there: a rank that sees the flag changed sees the
// elements. It returns when src may be reused.
func (p Ptr[T]) PutSignal(n *Node, src []T, flag Ptr[uint64], op SignalOp, v uint64) error {
	if err := p.checkSignal(n, "gas: PutSignal", src, flag); err != nil {
		return err
	}
	return n.x.PutSignal(p.Rank(), p.NLA(), bytesOf(src), flag.NLA(), op, v)
}

// PutSignalNB begins a PutSignal. It returns when src may be reused; the Handle is complete
// when the flag has changed.
func (p Ptr[T]) PutSignalNB(n *Node, src []T, flag Ptr[uint64], op SignalOp, v uint64) (Handle, error) {
	if err := p.checkSignal(n, "gas: PutSignalNB", src, flag); err != nil {
		return 0, err
	}
	return n.x.PutSignalNB(p.Rank(), p.NLA(), bytesOf(src), flag.NLA(), op, v)
}

// GetSignal loads the elements of dst from p on and then has op change flag, a word on the same rank, by v, and wakes
// its waiters there: a rank that sees the flag changed may store to the elements, which have been read.
func (p Ptr[T]) GetSignal(n *Node, dst []T, flag Ptr[uint64], op SignalOp, v uint64) error {
	if err := p.checkSignal(n, "gas: GetSignal", dst, flag); err != nil {
		return err
	}
	return n.x.GetSignal(p.Rank(), p.NLA(), bytesOf(dst), flag.NLA(), op, v)
}

// checkSignal returns the error of a put or a get of s at p that signals flag.
func (p Ptr[T]) checkSignal(n *Node, op string, s []T, flag Ptr[uint64]) error {
	if err := n.check(op, p.w, uint64(len(bytesOf(s)))); err != nil {
		return err
	}
	if p.Rank() != flag.Rank() {
		return errs.BadArg("%s: data %v and flag %v are on different ranks", op, p, flag)
	}
	return nil
}

// WaitUntil waits until flag, a word of this rank's own, compares with v as c says, and
// returns what it found, which may have changed again. It answers peers meanwhile.
// PutSignal, [Store], [FetchAdd] and the other atomics wake it, a Put does not. A rank that
// sees a flag changed sees what was put before. If the job fails first, or the context of
// [RunContext] ends, the error says how.
func WaitUntil(n *Node, flag Ptr[uint64], c Cmp, v uint64) (uint64, error) {
	if err := n.ownFlag("gas: WaitUntil", flag); err != nil {
		return 0, err
	}
	return n.x.WaitUntil(flag.NLA(), c, v)
}

// WaitUntilAll is WaitUntil for all of flags: it returns when, looking at one after the
// other, it has found each to compare. Without flags it returns at once.
func WaitUntilAll(n *Node, flags []Ptr[uint64], c Cmp, v uint64) error {
	l, err := n.ownFlags("gas: WaitUntilAll", flags)
	if err != nil {
		return err
	}
	err = n.x.WaitUntilAll(l.addrs, c, v)
	lists.Put(l)
	return err
}

// WaitUntilAny is WaitUntil for any of flags and returns the index of one that compares.
// It begins to look behind index after, so that no flag is starved: pass the last result,
// or -1. Without flags it is an error.
func WaitUntilAny(n *Node, flags []Ptr[uint64], after int, c Cmp, v uint64) (int, error) {
	l, err := n.ownFlags("gas: WaitUntilAny", flags)
	if err != nil {
		return -1, err
	}
	i, err := n.x.WaitUntilAny(l.addrs, after, c, v)
	lists.Put(l)
	return i, err
}

// WaitUntilSome is WaitUntil for at least one of flags. It appends the indices of all that
// compare to found and returns that. Without flags it is an error.
func WaitUntilSome(n *Node, found []int, flags []Ptr[uint64], c Cmp, v uint64) ([]int, error) {
	l, err := n.ownFlags("gas: WaitUntilSome", flags)
	if err != nil {
		return found, err
	}
	found, err = n.x.WaitUntilSome(found, l.addrs, c, v)
	lists.Put(l)
	return found, err
}

// TestUntilSome is WaitUntilSome that does not wait, and does not poll: found is returned as
// it is if no flag compares.
func TestUntilSome(n *Node, found []int, flags []Ptr[uint64], c Cmp, v uint64) ([]int, error) {
	l, err := n.ownFlags("gas: TestUntilSome", flags)
	if err != nil {
		return found, err
	}
	found, err = n.x.TestUntilSome(found, l.addrs, c, v)
	lists.Put(l)
	return found, err
}

// ownFlag returns the error of a wait for flag if that is nil or another rank's.
func (n *Node) ownFlag(op string, flag Ptr[uint64]) error {
	if flag.IsNil() {
		return errNil(op)
	}
	if flag.Rank() != n.rank {
		return errs.BadArg("%s: %v is not in the memory of rank %d, which waits", op, flag, n.rank)
	}
	return nil
}

// ownFlags is the addresses of flags, in lists to be given back.
func (n *Node) ownFlags(op string, flags []Ptr[uint64]) (*shapeLists, error) {
	for i, f := range flags {
		if f.IsNil() || f.Rank() != n.rank {
			return nil, errs.BadArg("%s: flag %d of %d, %v, is not in the memory of rank %d, which waits", op, i, len(flags), f, n.rank)
		}
	}
	l := lists.Get().(*shapeLists)
	l.addrs = l.addrs[:0]
	for _, f := range flags {
		l.addrs = append(l.addrs, f.NLA())
	}
	return l, nil
}
