package segment

import (
	"math"
	"slices"

	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/sys/lent"
)

// Locks says how much registered memory is locked. The zero value: all of it, or registration fails.
type Locks struct {
	// Host, if not 0, is how many bytes all ranks of this host's jobs that have the same Table lock together at most. A rank has
	// Least of them for itself and is lent more by need (package lent). What is registered beyond that is not locked, or
	// not any more once it has been called back: it is accessed as other memory is.
	Host, Least uint64
	Table       string // a file's name, see lent.Join
}

// loans are the pages that an ATU has registered, and those of them that are locked within what it is lent.
type loans struct {
	m      *lent.Member
	pages  map[uint64]bool // by address: locked
	failed bool            // mlock failed; not tried again before more is registered
}

// borrow makes t's locks those of a host.
func (t *ATU) borrow(c *Locks) error {
	l := &loans{pages: map[uint64]bool{}}
	t.loans = l
	t.mu.Lock()
	defer t.mu.Unlock()
	var err error
	l.m, err = lent.Join(c.Table, c.Host, c.Least, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if len(l.pages) > 0 {
			t.balance()
		}
	})
	return err
}

// addLoans counts spans as registered, and locks of them what may be. t.mu is held, as for what follows.
func (t *ATU) addLoans(spans []span) {
	for _, s := range spans {
		for a := s.start; a < s.end; a += PageSize {
			t.loans.pages[a] = false
		}
	}
	t.loans.failed = false
	t.balance()
}

// dropLoans unlocks spans that are registered no more.
func (t *ATU) dropLoans(spans []span) {
	for _, s := range spans {
		_ = sys.Munlock(uintptr(s.start), uintptr(s.end-s.start))
		for a := s.start; a < s.end; a += PageSize {
			if t.loans.pages[a] {
				t.stats.Locked -= PageSize
			}
			delete(t.loans.pages, a)
		}
	}
	t.balance()
}

// balance has as many pages locked as there may be. Without an answer none more is.
func (t *ATU) balance() {
	l := t.loans
	for {
		wants := uint64(len(l.pages)) * PageSize
		if l.failed {
			wants = t.stats.Locked
		}
		may, err := l.m.Balance(t.stats.Locked, wants)
		switch k := may / PageSize; {
		case err != nil:
			return
		case k > t.stats.Locked/PageSize:
			l.failed = !t.flip(k-t.stats.Locked/PageSize, false)
			if !l.failed {
				return // what is left of a page is given back by the next call
			}
		case may < t.stats.Locked:
			t.flip((t.stats.Locked-may+PageSize-1)/PageSize, true)
		default:
			return
		}
	}
}

// flip changes up to n pages that are locked, or are not, in runs. It reports whether the system has allowed it.
func (t *ATU) flip(n uint64, locked bool) bool {
	all := make([]uint64, 0, n)
	for a, is := range t.loans.pages {
		if is == locked && uint64(len(all)) < n {
			all = append(all, a)
		}
	}
	slices.Sort(all)
	all = append(all, math.MaxUint64)
	for from, i := 0, 1; i < len(all); i++ {
		if all[i] == all[i-1]+PageSize {
			continue
		}
		size := uintptr(i-from) * PageSize
		if locked {
			_ = sys.Munlock(uintptr(all[from]), size)
			t.stats.Locked -= uint64(size)
		} else if sys.Mlock(uintptr(all[from]), size) == nil {
			t.stats.Locked += uint64(size)
		} else {
			_ = sys.Munlock(uintptr(all[from]), size) // a range with a hole is locked up to there
			return false
		}
		for ; from < i; from++ {
			t.loans.pages[all[from]] = !locked
		}
	}
	return true
}
