package dist

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/gastest"
)

// everywhere are the conduits of tests that need few jobs.
var everywhere = []string{"shm", "gastest", "udp"}

// job is an item that pushes others: left levels of them, of as many as its number says.
type job struct {
	id   uint64
	left uint32
	pad  [3]uint32
}

// pushes are the items that j pushes.
func (j job) pushes() (next []job) {
	if j.left == 0 {
		return nil
	}
	for k := range j.id * 0x9e3779b97f4a7c15 >> 40 % 4 {
		next = append(next, job{id: j.id*5 + k + 1, left: j.left - 1, pad: [3]uint32{uint32(j.id), 1, 2}})
	}
	return next
}

// sequential are the numbers of all items that come of these.
func sequential(jobs []job) (ids []uint64) {
	for len(jobs) > 0 {
		j := jobs[len(jobs)-1]
		ids = append(ids, j.id)
		jobs = append(jobs[:len(jobs)-1], j.pushes()...)
	}
	slices.Sort(ids)
	return ids
}

// TestQueueModel has every item come once, and no rank end before all are done, in several
// phases, with rings that are always full, and ranks that are slow.
func TestQueueModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Jobs on udp take longest.
		conduit := rapid.SampledFrom([]string{"shm", "gastest", "shm", "gastest", "shm", "gastest", "udp"}).Draw(t, "conduit")
		groups := rapid.SampledFrom(Groupings).Draw(t, "groups")
		ranks := rapid.IntRange(1, 6).Draw(t, "ranks")
		capacity := rapid.SampledFrom([]int{0, 1, 3, 64}).Draw(t, "capacity")
		phases := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]int{0, 0, 1, 5, 40}), ranks, ranks), 1, 3).Draw(t, "items")
		left := rapid.Uint32Range(0, 7).Draw(t, "left")
		slow := rapid.SliceOfN(rapid.IntRange(0, 50), ranks, ranks).Draw(t, "slow")
		start := rapid.SampledFrom([]uint32{0, math.MaxUint32, math.MaxUint32 - 5}).Draw(t, "start")
		run := func(g gas.Group) error {
			n := g.Node()
			q := gas.Must(NewQueue[job](g, "jobs", capacity))
			// Positions in rings are modulo 2^32.
			q.safe = start
			g.Must(gas.Store(n, q.ctl.Add(ringWord), uint64(start)<<32|uint64(start)))
			g.Must(gas.Store(n, q.ctl.Add(copiedWord), uint64(start)))
			g.Must(g.Barrier())
			for phase, items := range phases {
				if err := onePhase(g, q, phase, items, left, slow[n.Rank()]); err != nil {
					return fmt.Errorf("phase %d: %w", phase, err)
				}
			}
			return q.Delete()
		}
		seed := rapid.Uint64().Draw(t, "seed") // of conduit gastest
		err := gas.Run(gas.Config{Ranks: ranks, Conduit: conduit, Seed: seed, SegmentSize: 1 << 20}, func(n *gas.Node) error { return InGroups(n, groups, run) })
		if err != nil {
			t.Fatal(err)
		}
	})
}

// onePhase has each rank of g, or one for several if they are fewer, push as many items as items says, and does them.
func onePhase(g gas.Group, q *Queue[job], phase int, items []int, left uint32, slow int) error {
	var all, own []job
	for r, count := range items {
		for i := range count {
			j := job{id: uint64(phase)<<50 | uint64(i*len(items)+r+1), left: left}
			all = append(all, j)
			if r%g.Size() == g.Rank() {
				own = append(own, j)
			}
		}
	}
	if err := q.PushAll(own); err != nil {
		return err
	}
	var got []uint64
	err := q.Run(func(n *gas.Node, j job) error {
		got = append(got, j.id)
		for range slow {
			n.Poll()
		}
		for _, next := range j.pushes() {
			if next.pad != [3]uint32{uint32(j.id), 1, 2} {
				return fmt.Errorf("item %+v is not what was pushed", next)
			}
			if err := q.Push(next); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	byRank, err := gas.AllGatherV(g, got)
	if err != nil {
		return err
	}
	found := slices.Concat(byRank...)
	slices.Sort(found)
	if want := sequential(all); !slices.Equal(found, want) {
		return fmt.Errorf("%d items were done, want %d", len(found), len(want))
	}
	return nil
}

// TestQueueSpreads has ranks that begin with nothing get items, on each conduit: no item
// ends before all have had one.
func TestQueueSpreads(t *testing.T) {
	for _, conduit := range everywhere {
		for _, ranks := range []int{2, 5, 12} {
			t.Run(fmt.Sprint(conduit, ranks), func(t *testing.T) {
				var mostSteals uint64
				gastest.RunConfig(t, gas.Config{Ranks: ranks, Conduit: conduit, SegmentSize: 1 << 20}, func(n *gas.Node) error {
					q := gas.Must(NewQueue[int64](n, "numbers", 0))
					// Ranks that have had an item, counted on rank 0.
					had := gas.Must(gas.New[int64](n))
					if n.Rank() == 0 {
						n.Must(q.PushAll(make([]int64, 4*n.Size())))
					}
					first := true
					n.Must(q.Run(func(n *gas.Node, x int64) error {
						if first {
							first = false
							if err := gas.Add(n, had.On(0), 1); err != nil {
								return err
							}
						}
						seen, err := gas.Load(n, had.On(0))
						if err != nil || seen == int64(n.Size()) {
							return err
						}
						n.Poll()
						return q.Push(x)
					}))
					if first {
						return errors.New("this rank has had no item")
					}
					s := q.Stats()
					if n.Rank() > 0 && (s.Steals == 0 || s.Stolen < s.Steals || s.Tries < s.Steals || s.Sleeps == 0) {
						return fmt.Errorf("counted %+v", s)
					}
					all, err := gas.AllReduce(n, s.Steals, gas.Sum)
					if n.Rank() == 0 {
						mostSteals = max(mostSteals, all)
					}
					return errors.Join(err, q.Delete())
				})
				if mostSteals < uint64(ranks-1) {
					t.Errorf("%d steals", mostSteals)
				}
			})
		}
	}
}

// TestQueueMany is one tree of items on many simulated ranks.
func TestQueueMany(t *testing.T) {
	gastest.RunConfig(t, gas.Config{Ranks: 70, Conduit: "gastest", SegmentSize: 1 << 18}, func(n *gas.Node) error {
		q := gas.Must(NewQueue[job](n, "jobs", 8))
		items := make([]int, n.Size())
		items[69] = 100
		return errors.Join(onePhase(n, q, 0, items, 6, 5), onePhase(n, q, 1, items, 0, 0), q.Delete())
	})
}

// TestQueueMisuse has each mistake, and each failure, end with an error that names it.
func TestQueueMisuse(t *testing.T) {
	none := func(*gas.Node, int) error { return nil }
	for name, c := range map[string]struct {
		want string
		is   error
		fn   func(n *gas.Node) error
	}{
		"negative": {`NewQueue "jobs" that offers -1 items: capacity must be 0 to 1073741824`, gas.ErrBadArg, func(n *gas.Node) error {
			_, err := NewQueue[int](n, "jobs", -1)
			return err
		}},
		"too large": {`NewQueue "jobs" that offers 1048576 items: `, gas.ErrResource, func(n *gas.Node) error {
			_, err := NewQueue[int](n, "jobs", 1<<20)
			return err
		}},
		"pointers": {"holds Go pointers", gas.ErrBadArg, func(n *gas.Node) error {
			_, err := NewQueue[*int](n, "jobs", 0)
			return err
		}},
		"different": {`NewQueue "jobs" that offers `, gas.ErrBadArg, func(n *gas.Node) error {
			_, err := NewQueue[int](n, "jobs", 1<<n.Rank())
			return err
		}},
		"push after done": {`queue "jobs" on rank `, gas.ErrNotReady, func(n *gas.Node) error {
			return afterDelete(n, func(q *Queue[int]) error { return q.Push(1) })
		}},
		"pop after done": {`is deleted (Queue.Delete)`, gas.ErrNotReady, func(n *gas.Node) error {
			return afterDelete(n, func(q *Queue[int]) error { return q.Run(none) })
		}},
		"done after done": {`is deleted (Queue.Delete)`, gas.ErrNotReady, func(n *gas.Node) error {
			return afterDelete(n, (*Queue[int]).Delete)
		}},
		"work fails": {"rank 1: enough", errEnough, func(n *gas.Node) error {
			q := gas.Must(NewQueue[int](n, "jobs", 0))
			n.Must(q.PushAll(make([]int, 100*(n.Rank()%2))))
			return q.Run(func(n *gas.Node, _ int) error {
				if n.Rank() == 1 {
					return errEnough
				}
				return nil
			})
		}},
		"returns": {"has returned from the program's function while", nil, func(n *gas.Node) error {
			q, err := NewQueue[int](n, "jobs", 0)
			if err != nil || n.Rank() == 1 {
				return err
			}
			return q.Run(none)
		}},
		"returns in the middle": {"the rank's function returned during a barrier", nil, func(n *gas.Node) error {
			q := gas.Must(NewQueue[int](n, "jobs", 0))
			// Rank 0 leaves with the item that it pushes when all ranks have come to the
			// phase's first barrier, and it has passed.
			if n.Rank() > 0 {
				return q.Run(none)
			}
			n.Must(q.Push(1))
			if _, _, err := q.Pop(); err != nil {
				return err
			}
			n.Must(n.BarrierNotify())
			q.gated = gateEntered
			return q.pass(true)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			err := gas.Run(gas.Config{Ranks: 3, Conduit: "shm", SegmentSize: 1 << 20}, c.fn)
			if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

var errEnough = errors.New("enough")

// afterDelete is the error of fn with a queue that is deleted.
func afterDelete(n *gas.Node, fn func(q *Queue[int]) error) error {
	q, err := NewQueue[int](n, "jobs", 0)
	if err != nil {
		return err
	}
	if err := q.Delete(); err != nil {
		return err
	}
	return fn(q)
}

// TestQueueRankDies: a rank dies while others steal from each other and wait for it.
func TestQueueRankDies(t *testing.T) {
	err := gas.Run(gas.Config{Ranks: 3, Conduit: "dist-killed", SegmentSize: 1 << 20}, func(n *gas.Node) error {
		q, err := NewQueue[int](n, "jobs", 4)
		if err != nil {
			return err
		}
		n.Must(q.PushAll(make([]int, 100)))
		err = q.Run(func(_ *gas.Node, i int) error { return q.Push(i) }) // without end
		if !errors.Is(err, gas.ErrPeer) {
			t.Errorf("rank %d ended with %v", n.Rank(), err)
		}
		return err
	})
	if !errors.Is(err, gas.ErrPeer) {
		t.Errorf("got %v", err)
	}
}

// TestQueueAllocates: items that stay on their rank cost no allocation.
func TestQueueAllocates(t *testing.T) {
	gastest.RunConfig(t, gas.Config{Ranks: 1, SegmentSize: 1 << 20}, func(n *gas.Node) error {
		q := gas.Must(NewQueue[job](n, "jobs", 0))
		var failed error
		if a := testing.AllocsPerRun(1000, func() {
			if err := errors.Join(q.Push(job{}), q.Push(job{})); err != nil {
				failed = err
			}
			for range 2 {
				if _, _, err := q.Pop(); err != nil {
					failed = err
				}
			}
		}); a != 0 {
			t.Errorf("%v allocations", a)
		}
		return errors.Join(failed, q.Delete())
	})
}

// TestQueueWaves has rank 3 say in a wave that it has nothing to do, steal an item from rank 2 then, and
// have rank 2 finish what that item pushes before rank 2 has its part in the wave: so in
// this wave as many items are finished as pushed, though the stolen one is under way. It
// pushes more then, of which another rank has to get some.
func TestQueueWaves(t *testing.T) {
	const hold, first, then, last = 1, 2, 3, 4
	gastest.RunConfig(t, gas.Config{Ranks: 4, Conduit: "shm", SegmentSize: 1 << 20}, func(n *gas.Node) error {
		q := gas.Must(NewQueue[int](n, "steps", 0))
		started := gas.Must(gas.New[int64](n)) // by 1 << kind, on rank 0
		// waitFor waits until cond of a word holds; no items are offered meanwhile.
		waitFor := func(p gas.Ptr[uint64], cond func(v uint64) bool) error {
			for {
				if v, err := gas.Load(n, p); err != nil || cond(v) {
					return err
				}
				n.Poll()
			}
		}
		up := func(r int) gas.Ptr[uint64] { return q.ctl.On(0).Add(upWord + 3*(r-1) + 2) }
		inFirstWave := func(v uint64) bool { return v >= 1 }
		if n.Rank() == 2 {
			n.Must(q.Push(hold))
		}
		flags := gas.Must(gas.Cast[uint64](started.On(0)))
		err := q.Run(func(n *gas.Node, kind int) error {
			if _, err := gas.FetchOr(n, flags, 1<<kind); err != nil {
				return err
			}
			has := func(kind int) func(uint64) bool { return func(v uint64) bool { return v>>kind&1 != 0 } }
			switch {
			case kind == hold:
				// Of two one is offered.
				if err := errors.Join(waitFor(up(1), inFirstWave), waitFor(up(3), inFirstWave), q.PushAll([]int{first, 0}), q.look()); err != nil {
					return err
				}
				return waitFor(flags, has(first))
			case kind == first && n.Rank() == 3:
				if err := errors.Join(q.PushAll([]int{then, 0}), q.look(), waitFor(flags, has(then)), waitFor(up(2), inFirstWave)); err != nil {
					return err
				}
				// Rank 0 looks at what it has been told now.
				for range 1000 {
					n.Poll()
				}
			case kind == first: // other ranks may be quicker, if seldom
				return nil
			default:
				return nil
			}
			if err := q.PushAll([]int{last, last}); err != nil {
				return err
			}
			return waitFor(flags, func(v uint64) bool { return q.look() != nil || has(last)(v) })
		})
		return errors.Join(err, q.Delete())
	})
}

// TestQueuePhases has phases follow each other with nothing between them: none gets an item of
// another one.
func TestQueuePhases(t *testing.T) {
	for _, conduit := range everywhere {
		gastest.RunConfig(t, gas.Config{Ranks: 6, Conduit: conduit, SegmentSize: 1 << 20}, func(n *gas.Node) error {
			q := gas.Must(NewQueue[int](n, "phases", 0))
			for phase := range 30 {
				if phase%n.Size() == n.Rank() {
					n.Must(q.PushAll(slices.Repeat([]int{phase}, 20)))
				}
				n.Must(q.Run(func(n *gas.Node, of int) error {
					if of != phase {
						return fmt.Errorf("rank %d got an item of phase %d in phase %d", n.Rank(), of, phase)
					}
					n.Poll()
					return nil
				}))
			}
			return q.Delete()
		})
	}
}

// TestReleaseBetweenThieves: a thief that takes and copies an item between two looks of its owner does not stand
// for an earlier one, which copies still: the item that this one copies is not written over.
func TestReleaseBetweenThieves(t *testing.T) {
	err := gas.Run(gas.Config{Ranks: 1}, func(n *gas.Node) error {
		q := gas.Must(NewQueue[uint64](n, "items", 4))
		for i := range uint64(20) { // of one rank alone nothing is offered
			n.Must(q.Push(100 + i))
		}
		if moved, err := q.release(); moved != 4 || err != nil {
			return fmt.Errorf("%d items are offered in a ring of 4 (%w)", moved, err)
		}
		ring, copied := q.ctl.Add(ringWord), q.ctl.Add(copiedWord)
		// The first thief has claimed item 100 and copies it all the time.
		gas.Must(gas.FetchAdd(n, ring, 1))
		var failed error
		q.between = func() { // the second one claims item 101 and has copied it
			_, e := gas.FetchAdd(n, ring, 1)
			_, f := gas.FetchAdd(n, copied, 1)
			failed = errors.Join(e, f)
		}
		if moved, err := q.release(); moved != 0 || err != nil || failed != nil {
			return fmt.Errorf("%d items are offered in the places of what a thief copies: %v (%w, %w)", moved, q.items, err, failed)
		}
		if q.items[0] != 100 {
			return fmt.Errorf("item 100, which a thief copies, is written over with %d", q.items[0])
		}
		// When it has copied it there is room for two.
		q.between = nil
		gas.Must(gas.FetchAdd(n, copied, 1))
		if moved, err := q.release(); moved != 2 || err != nil {
			return fmt.Errorf("%d items are offered in two places (%w)", moved, err)
		}
		return q.Delete()
	})
	if err != nil {
		t.Error(err)
	}
}
