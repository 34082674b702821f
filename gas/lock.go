package gas

import (
	"fmt"
	"strings"

	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// LockWord is a lock as it lies in shared memory, 24 bytes; its zero value is an
// unlocked one. It may be part of a program's own type: LockAt(Field(...)).
type LockWord struct {
	//lint:ignore U1000 only package extended changes it; the three are as extended.LockSize says
	state, tail, head uint64
}

// Lock excludes ranks and goroutines from each other: one exclusive holder or
// many shared ones. A Lock may be copied and sent as its word's Ptr. Those that wait get it
// in the order in which they came; it is not reentrant. A shared hold and an exclusive one are given back on
// the rank that took them, by any of its goroutines. A rank whose function returns
// while it has one fails, and the job with it: others would wait for ever.
//
// It is the lock of package extended, which names it by rank and address.
type Lock struct {
	word Ptr[LockWord]
}

// NewLock is collective: it makes a lock whose word lies on rank 0; every rank gets
// the same lock. [Delete] of its Word takes it back.
func NewLock(n *Node) (Lock, error) {
	p, err := New[LockWord](n)
	if err != nil {
		return Lock{}, err
	}
	return Lock{p.On(0)}, nil
}

// LockAt is the lock whose word is at p.
func LockAt(p Ptr[LockWord]) Lock { return Lock{p} }

// Word is where the lock's word is.
func (l Lock) Word() Ptr[LockWord] { return l.word }

// TryLock takes the lock exclusively if it is free, and reports whether it
// did.
func (l Lock) TryLock(n *Node) (bool, error) {
	ok, err := n.x.LockAt(l.word.Rank(), l.word.NLA()).TryLock()
	return ok, l.failed(err)
}

// TryRLock takes the lock shared if it is not held exclusively, and says
// whether it did.
func (l Lock) TryRLock(n *Node) (bool, error) {
	ok, err := n.x.LockAt(l.word.Rank(), l.word.NLA()).TryRLock()
	return ok, l.failed(err)
}

// Lock takes the lock exclusively. It waits, answering peers meanwhile.
func (l Lock) Lock(n *Node) error {
	if n.ctx != nil {
		return l.take(n, extended.Lock.Lock)
	}
	return l.failed(n.x.LockAt(l.word.Rank(), l.word.NLA()).Lock())
}

// RLock takes the lock shared. It waits, answering peers meanwhile, for those that hold it exclusively
// or came for that before, never for those alone that hold it shared.
func (l Lock) RLock(n *Node) error {
	if n.ctx != nil {
		return l.take(n, extended.Lock.RLock)
	}
	return l.failed(n.x.LockAt(l.word.Rank(), l.word.NLA()).RLock())
}

// Unlock gives back an exclusive hold. It is an error, and changes nothing, if
// this rank does not have one.
func (l Lock) Unlock(n *Node) error {
	return l.failed(n.x.LockAt(l.word.Rank(), l.word.NLA()).Unlock())
}

// RUnlock gives back a shared hold. It is an error, and changes nothing, if this
// rank does not have one.
func (l Lock) RUnlock(n *Node) error {
	return l.failed(n.x.LockAt(l.word.Rank(), l.word.NLA()).RUnlock())
}

// failed is err, which for a nil lock names the likely cause of that.
func (l Lock) failed(err error) error {
	if err != nil && l.word.IsNil() {
		return fmt.Errorf("%w (%w)", err, errNil("gas: lock"))
	}
	return err
}

// lockMemory gives the locks of package extended memory to wait with.
func (n *Node) lockMemory() (segment.NLA, error) {
	p, err := Alloc[[extended.LockSize / 8]uint64](n, 1)
	return p.NLA(), err
}

// unreleased is the error of a rank that leaves while it holds locks: its memory
// answers until all leave, so that a wait for one would have no end.
//
//go:noinline
func (n *Node) unreleased() error {
	held := n.x.HeldLocks()
	if len(held) == 0 {
		return nil
	}
	more := ""
	if k := len(held) - mostLocksNamed; k > 0 {
		held, more = held[:mostLocksNamed], fmt.Sprintf(" and %d more", k)
	}
	var l []string
	for _, h := range held {
		how := "exclusively"
		if h.Shared > 0 {
			how = fmt.Sprintf("shared, %d times", h.Shared)
		}
		at := "Config.Debug, ARGON_DEBUG says where it took them"
		if h.Origin != "" {
			at = "taken at " + h.Origin
		}
		l = append(l, fmt.Sprintf("%v %s (%s)", Ptr[LockWord]{w: makeWord(h.Rank, h.At)}, how, at))
	}
	return errs.NotReady("gas: rank %d returned from its function while it holds lock %s%s: it would stay locked; Unlock comes first",
		n.rank, strings.Join(l, ", "), more)
}

// mostLocksNamed is how many locks the error of unreleased names.
const mostLocksNamed = 4
