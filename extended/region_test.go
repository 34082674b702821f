package extended

import (
	"errors"
	"math/bits"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/conduits"
)

// TestRegionModel: a region is synchronized exactly when the conduit has none of its
// operations of that category any more, or none towards the rank that is named, whatever was begun, completed and
// synchronized before, and it refuses while it is an access region.
func TestRegionModel(t *testing.T) {
	const plain, inside = 0, 512 // where operations outside and inside of access regions go
	rapid.Check(t, func(t *rapid.T) {
		const ranks = 2 + 2*ways // pairs of others share a way
		j := newFake(ranks, fakeOptions{hold: true, eager: rapid.Bool().Draw(t, "eager"), seed: rapid.Uint64().Draw(t, "seed")})
		e, x := j.eps[0], j.eps[0].x
		r := x.NewRegion()
		shared := rapid.Bool().Draw(t, "shared")
		if shared { // as if so many slots had been in use
			x.table.used = spreadSlots
		}
		open := false
		var buf [8]byte
		var hs []Handle
		// underWay reports whether something is, towards rank, or any if that is -1.
		underWay := func(c Category, rank int) bool {
			e.mu.Lock()
			defer e.mu.Unlock()
			for _, p := range e.queue {
				if p.a == at(plain) && (rank < 0 || p.dst == rank) && (p.verb == conduits.Put && c&Puts != 0 || p.verb == conduits.Get && c&Gets != 0) {
					return true
				}
			}
			return false
		}
		rank := rapid.IntRange(1, ranks-1)
		category := rapid.SampledFrom([]Category{Puts, Gets, All})
		must := func(t *rapid.T, err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		released := func(f func() error) error {
			e.release()
			err := f()
			e.mu.Lock()
			e.hold = true
			e.mu.Unlock()
			return err
		}
		to := func() int {
			if open {
				return inside
			}
			return plain
		}
		t.Repeat(map[string]func(*rapid.T){
			"put":     func(t *rapid.T) { must(t, r.PutBulkNBI(rank.Draw(t, "rank"), at(to()), buf[:])) },
			"get":     func(t *rapid.T) { must(t, r.GetNBI(rank.Draw(t, "rank"), at(to()), make([]byte, 8))) },
			"deliver": func(*rapid.T) { e.deliver() },
			"begin": func(t *rapid.T) {
				if err := x.BeginRegion(r); (err != nil) != open {
					t.Fatal(open, err)
				}
				open = true
			},
			"end": func(t *rapid.T) {
				h, err := r.End()
				if (err == nil) != open {
					t.Fatal(open, err)
				}
				if open = false; err == nil {
					hs = append(hs, h)
				}
			},
			"try": func(t *rapid.T) {
				c := category.Draw(t, "category")
				done, err := r.Try(c)
				if open && !errors.Is(err, ErrBadArg) || !open && (err != nil || done == underWay(c, -1)) {
					t.Fatal(c, open, done, err)
				}
			},
			"sync": func(t *rapid.T) {
				c := category.Draw(t, "category")
				err := released(func() error { return r.Sync(c) })
				if open && !errors.Is(err, ErrBadArg) || !open && (err != nil || underWay(c, -1)) {
					t.Fatal(c, open, err)
				}
			},
			"sync with a rank": func(t *rapid.T) {
				c, dst := category.Draw(t, "category"), rank.Draw(t, "rank")
				err := released(func() error { return r.SyncRank(dst, c) })
				if open && !errors.Is(err, ErrBadArg) || !open && (err != nil || underWay(c, dst)) {
					t.Fatal(c, dst, open, err)
				}
			},
			"sync with a rank that nothing is under way to": func(t *rapid.T) {
				c, dst := category.Draw(t, "category"), rank.Draw(t, "rank")
				for other := 1; other < ranks; other++ {
					if open || (shared || other%ways == dst%ways) && underWay(c, other) {
						return
					}
				}
				must(t, r.SyncRank(dst, c)) // which would wait for ever
			},
			"wrong": func(t *rapid.T) {
				for _, c := range []Category{0, All + 1, Puts | 32, 255} {
					if err := r.Sync(c); !errors.Is(err, ErrBadArg) {
						t.Fatal(c, err)
					}
					if err := r.SyncRank(1, c); !errors.Is(err, ErrBadArg) {
						t.Fatal(c, err)
					}
					if done, err := r.Try(c); done || !errors.Is(err, ErrBadArg) {
						t.Fatal(c, done, err)
					}
				}
			},
		})
		e.release()
		must(t, x.WaitAll(hs))
	})
}

// TestSyncReportsFailure: an operation that has failed is told by the next Sync of its
// category, once, though nothing is under way any more.
func TestSyncReportsFailure(t *testing.T) {
	j := newFake(2, fakeOptions{hold: true})
	e, x := j.eps[0], j.eps[0].x
	for range 2 { // the second time with a region that was idle
		if err := x.Implicit().Sync(All); err != nil {
			t.Fatal(err)
		}
		if err := x.Implicit().PutBulkNBI(1, at(0), make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
		e.die(errDied, false)
		for e.deliver() != 0 {
		}
		if err := x.Implicit().Sync(Gets); err != nil {
			t.Errorf("gets: %v", err)
		}
		if err := x.Implicit().Sync(Puts); !errors.Is(err, errDied) {
			t.Errorf("puts: %v", err)
		}
		if err := x.Implicit().Sync(All); err != nil {
			t.Errorf("told twice: %v", err)
		}
		e.die(nil, false)
	}
}

// TestResultsFailure: an atomic with a result that has failed is told once, by the next Sync of
// gets and by none of puts, or by the handle of the access region that it was begun in.
func TestResultsFailure(t *testing.T) {
	j := newFake(2, fakeOptions{hold: true})
	e, x := j.eps[0], j.eps[0].x
	r := x.NewRegion()
	fail := func() {
		e.die(errDied, false)
		for e.deliver() != 0 {
		}
		e.die(nil, false)
	}
	for range 2 { // the second time with slots that were used
		var v uint64
		if err := AtomicNBI[uint64](r, 1, at(0), &v, AtomicAdd, 1, 0); err != nil {
			t.Fatal(err)
		}
		fail()
		if err := r.Sync(Puts); err != nil {
			t.Errorf("puts: %v", err)
		}
		if err := r.Sync(Gets); !errors.Is(err, errDied) {
			t.Errorf("gets: %v", err)
		}
		if err := r.Sync(All); err != nil {
			t.Errorf("told twice: %v", err)
		}
		if err := x.BeginRegion(r); err != nil {
			t.Fatal(err)
		}
		if err := AtomicNBI[uint64](r, 1, at(0), &v, AtomicAdd, 1, 0); err != nil {
			t.Fatal(err)
		}
		h, err := r.End()
		if err != nil {
			t.Fatal(err)
		}
		fail()
		if err := x.Wait(h); !errors.Is(err, errDied) {
			t.Errorf("access region: %v", err)
		}
	}
}

// TestRegionShares: without a slot that is free, or one that a region may have beside its
// first, it counts all of a category in one, and a sync with a rank waits for that.
func TestRegionShares(t *testing.T) {
	for _, inUse := range []int{spreadSlots - 2, spreadSlots, numSlots - 2} {
		j := newFake(ways, fakeOptions{hold: true})
		e, x := j.eps[0], j.eps[0].x
		for range inUse {
			if _, _, err := x.table.claim(false); err != nil {
				t.Fatal(err)
			}
		}
		r := x.NewRegion()
		for range 2 {
			for rank := 1; rank < ways; rank++ {
				if err := r.PutBulkNBI(rank, at(0), make([]byte, 8)); err != nil {
					t.Fatalf("put to rank %d with %d slots in use: %v", rank, inUse, err)
				}
				if err := r.GetNBI(rank, at(0), make([]byte, 8)); err != nil {
					t.Fatalf("get from rank %d with %d slots in use: %v", rank, inUse, err)
				}
			}
			e.mu.Lock()
			e.hold = false
			e.mu.Unlock()
			if err := r.SyncRank(ways-1, Puts); err != nil {
				t.Fatal(err)
			}
			e.mu.Lock()
			for _, p := range e.queue {
				if p.verb == conduits.Put && p.dst == ways-1 {
					t.Errorf("a put to rank %d is under way after the sync with it, with %d slots in use", p.dst, inUse)
				}
			}
			e.hold = true
			e.mu.Unlock()
			if r.shared&Gets == 0 {
				t.Errorf("the gets share no slot, with %d slots in use", inUse)
			}
			if n := bits.OnesCount32(r.used & slotsOf(All)); n > 2 {
				t.Errorf("%d slots for puts and gets, with %d in use before", n, inUse)
			}
			e.release()
			if err := r.Sync(All); err != nil || r.used != 0 || r.shared != 0 {
				t.Fatalf("slots %b used, %v shared: %v", r.used, r.shared, err)
			}
			e.mu.Lock()
			e.hold = true
			e.mu.Unlock()
		}
	}
}
