package extended

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/argon-go/argon/segment"
	"pgregory.net/rapid"
)

// TestLocksModel: two ranks try, take and give back more locks than a rank can note
// without its mutex, by load and store and through a conduit. What is taken, what is
// refused, and which locks a rank says that it holds are as in a plain model.
func TestLocksModel(t *testing.T) {
	const locks = nearLocks + 8
	rapid.Check(t, func(t *rapid.T) {
		j := newFake(2, fakeOptions{direct: rapid.Bool().Draw(t, "direct"), bare: true, config: Config{Origins: rapid.Bool().Draw(t, "origins")}})
		type hold struct{ exclusive, shared int }
		var held [2][locks]hold // by rank
		place := func(k int) (rank int, a segment.NLA) { return k % 2, at(LockSize * k) }
		free := func(k int, shared bool) bool {
			a, b := held[0][k], held[1][k]
			return a.exclusive+b.exclusive == 0 && (shared || a.shared+b.shared == 0)
		}
		of := rapid.IntRange(0, 1)
		which := rapid.OneOf(rapid.IntRange(0, 2), rapid.IntRange(0, locks-1))
		check := func(t *rapid.T, k int, ok, want bool, err error) {
			if err != nil || ok != want {
				t.Fatalf("lock %d: %v, %v, want %v; held %v, %v", k, ok, err, want, held[0][k], held[1][k])
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"lock": func(t *rapid.T) {
				r, k := of.Draw(t, "rank"), which.Draw(t, "lock")
				if !free(k, false) {
					t.Skip("it would wait")
				}
				to, a := place(k)
				check(t, k, true, true, j.eps[r].x.LockAt(to, a).Lock())
				held[r][k].exclusive++
			},
			"tryLock": func(t *rapid.T) {
				r, k := of.Draw(t, "rank"), which.Draw(t, "lock")
				to, a := place(k)
				ok, err := j.eps[r].x.LockAt(to, a).TryLock()
				check(t, k, ok, free(k, false), err)
				if ok {
					held[r][k].exclusive++
				}
			},
			"tryRLock": func(t *rapid.T) {
				r, k := of.Draw(t, "rank"), which.Draw(t, "lock")
				to, a := place(k)
				ok, err := j.eps[r].x.LockAt(to, a).TryRLock()
				check(t, k, ok, free(k, true), err)
				if ok {
					held[r][k].shared++
				}
			},
			"tryAll": func(t *rapid.T) {
				r := of.Draw(t, "rank")
				for k := range locks {
					to, a := place(k)
					ok, err := j.eps[r].x.LockAt(to, a).TryLock()
					check(t, k, ok, free(k, false), err)
					if ok {
						held[r][k].exclusive++
					}
				}
			},
			"unlock": func(t *rapid.T) {
				r, k := of.Draw(t, "rank"), which.Draw(t, "lock")
				to, a := place(k)
				err := j.eps[r].x.LockAt(to, a).Unlock()
				if h := &held[r][k]; h.exclusive == 0 {
					check(t, k, errors.Is(err, ErrBadArg), true, nil)
				} else {
					check(t, k, true, true, err)
					h.exclusive = 0
				}
			},
			"runlock": func(t *rapid.T) {
				r, k := of.Draw(t, "rank"), which.Draw(t, "lock")
				to, a := place(k)
				err := j.eps[r].x.LockAt(to, a).RUnlock()
				if h := &held[r][k]; h.shared == 0 {
					check(t, k, errors.Is(err, ErrBadArg) && strings.Contains(err.Error(), "exclusively") == (h.exclusive > 0), true, nil)
				} else {
					check(t, k, true, true, err)
					h.shared--
				}
			},
			"": func(t *rapid.T) {
				for r := range held {
					said := j.eps[r].x.HeldLocks()
					want := 0
					for k, h := range held[r] {
						if h == (hold{}) {
							continue
						}
						want++
						to, a := place(k)
						if !slices.ContainsFunc(said, func(l HeldLock) bool { return l.Rank == to && l.At == a && l.Shared == h.shared }) {
							t.Fatalf("rank %d holds lock %d as %+v and says %v", r, k, h, said)
						}
					}
					if len(said) != want {
						t.Fatalf("rank %d holds %d locks and says %v", r, want, said)
					}
				}
			},
		})
	})
}
