package gas

import (
	"fmt"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
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
	if err := ownFlag(n, "gas: WaitUntil", flag); err != nil {
		return 0, err
	}
	if n.ctx == nil {
		return n.x.WaitUntil(flag.NLA(), c, v)
	}
	var word uint64
	err := awaitFlags(n, []segment.NLA{flag.NLA()}, c, v, func() (ok bool, err error) {
		word, ok, err = n.x.TestUntil(flag.NLA(), c, v)
		return ok, err
	})
	return word, err
}

// WaitUntilAll is WaitUntil for all of flags: it returns when, looking at one after the
// other, it has found each to compare. Without flags it returns at once.
func WaitUntilAll(n *Node, flags []Ptr[uint64], c Cmp, v uint64) error {
	l, err := ownFlags(n, "gas: WaitUntilAll", flags)
	if err != nil {
		return err
	}
	if n.ctx == nil {
		err = n.x.WaitUntilAll(l.addrs, c, v)
	} else {
		k := 0 // those before have been found to compare
		err = awaitFlags(n, l.addrs, c, v, func() (bool, error) {
			for ; k < len(l.addrs); k++ {
				if _, ok, err := n.x.TestUntil(l.addrs[k], c, v); !ok || err != nil {
					return false, err
				}
			}
			return true, nil
		})
	}
	lists.Put(l)
	return err
}

// WaitUntilAny is WaitUntil for any of flags and returns the index of one that compares.
// It begins to look behind index after, so that no flag is starved: pass the last result,
// or -1. Without flags it is an error.
func WaitUntilAny(n *Node, flags []Ptr[uint64], after int, c Cmp, v uint64) (int, error) {
	l, err := ownFlags(n, "gas: WaitUntilAny", flags)
	if err != nil {
		return -1, err
	}
	var i int
	if n.ctx == nil || len(flags) == 0 || after < -1 || after >= len(flags) {
		i, err = n.x.WaitUntilAny(l.addrs, after, c, v)
	} else {
		err = awaitFlags(n, l.addrs, c, v, func() (bool, error) {
			for k := range l.addrs {
				i = (after + 1 + k) % len(l.addrs)
				if _, ok, err := n.x.TestUntil(l.addrs[i], c, v); ok || err != nil {
					return ok, err
				}
			}
			return false, nil
		})
		if err != nil {
			i = -1
		}
	}
	lists.Put(l)
	return i, err
}

// WaitUntilSome is WaitUntil for at least one of flags. It appends the indices of all that
// compare to found and returns that. Without flags it is an error.
func WaitUntilSome(n *Node, found []int, flags []Ptr[uint64], c Cmp, v uint64) ([]int, error) {
	l, err := ownFlags(n, "gas: WaitUntilSome", flags)
	if err != nil {
		return found, err
	}
	if n.ctx == nil || len(flags) == 0 {
		found, err = n.x.WaitUntilSome(found, l.addrs, c, v)
	} else {
		before := len(found)
		err = awaitFlags(n, l.addrs, c, v, func() (_ bool, err error) {
			found, err = n.x.TestUntilSome(found, l.addrs, c, v)
			return len(found) > before, err
		})
	}
	lists.Put(l)
	return found, err
}

// awaitFlags waits by a view until ready, which tests words of this rank, says that they compare, or fails.
func awaitFlags(n *Node, words []segment.NLA, c Cmp, v uint64, ready func() (bool, error)) error {
	var failed error
	err := waitFor(n, flagWait{words, n.rank, c, v}, conduits.Cond{Work: true, Ready: func() bool {
		ok, err := ready()
		failed = err
		return ok || err != nil
	}})
	if err == nil {
		err = failed
	}
	return err
}

// flagWait describes a wait for words of a rank.
type flagWait struct {
	words []segment.NLA
	rank  int
	cmp   Cmp
	value uint64
}

func (w flagWait) Blocked() string {
	if len(w.words) == 1 {
		return fmt.Sprintf("until the word at %v is %v %d", Ptr[uint64]{w: makeWord(w.rank, w.words[0])}, w.cmp, w.value)
	}
	return fmt.Sprintf("until words are %v %d, of which there are %d", w.cmp, w.value, len(w.words))
}

// TestUntilSome is WaitUntilSome that does not wait, and does not poll: found is returned as
// it is if no flag compares.
func TestUntilSome(n *Node, found []int, flags []Ptr[uint64], c Cmp, v uint64) ([]int, error) {
	l, err := ownFlags(n, "gas: TestUntilSome", flags)
	if err != nil {
		return found, err
	}
	found, err = n.x.TestUntilSome(found, l.addrs, c, v)
	lists.Put(l)
	return found, err
}

// ownFlag returns the error of a wait for flag if that is nil or another rank's.
func ownFlag(n *Node, op string, flag Ptr[uint64]) error {
	if flag.IsNil() {
		return errNil(op)
	}
	if flag.Rank() != n.rank {
		return errs.BadArg("%s: %v is not in the memory of rank %d, which waits", op, flag, n.rank)
	}
	return nil
}

// ownFlags is the addresses of flags, in lists to be given back.
func ownFlags(n *Node, op string, flags []Ptr[uint64]) (*shapeLists, error) {
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
