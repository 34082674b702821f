package extended_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/segment"
)

// everyWay runs a program on every conduit by every strategy.
func everyWay(t *testing.T, size int, c setup, rank func(n *node) error) {
	for _, w := range worlds {
		for s := firehose.Adaptive; s <= firehose.AlwaysRegister; s++ {
			t.Run(fmt.Sprintf("%s/%v", w.name, s), func(t *testing.T) {
				c.config.Strategy = s
				job(t, w.open(t, size, 3), c, rank)
			})
		}
	}
}

// TestExposedRights: what the owner has not granted to a rank is refused to that rank, by every operation; the owner may do everything.
func TestExposedRights(t *testing.T) {
	var at [3]segment.NLA // read only; for rank 1 only; written by longs
	c := tiny(3)
	var delivered atomic.Int32
	c.handlers = func(*node) []am.Entry {
		return []am.Entry{{Index: am.FirstClient, Name: "long", Args: 0, Kinds: am.Long, Fn: func(*am.Token, []uint32, []byte) { delivered.Add(1) }}}
	}
	everyWay(t, 3, c, func(n *node) error {
		x, me := n.x, n.x.Rank()
		mem := make([]byte, 100_000)
		delivered.Store(0)
		if me == 0 {
			var err error
			for i, r := range []struct {
				rights segment.Rights
				peer   int
			}{{segment.RightRead, segment.AnyPeer}, {segment.RightsAll, 1}} {
				if at[i], err = x.Expose(mem, r.rights, r.peer); err != nil {
					return err
				}
			}
			if err := x.PutValue(0, at[0], 1, 8); err != nil {
				return err
			}
		}
		if err := n.meet(); err != nil {
			return err
		}
		refused := func(what string, err error) error {
			if !errors.Is(err, segment.ErrFault) || !errors.Is(err, extended.ErrBadArg) || !strings.Contains(err.Error(), "rank 0") {
				return fmt.Errorf("rank %d, %s: %v", me, what, err)
			}
			return nil
		}
		b := make([]byte, 100)
		var errs []error
		check := func(what string, err error) { errs = append(errs, refused(what, err)) }
		if me != 0 {
			check("put", x.Put(0, at[0]+8, b))
			check("long put", x.Put(0, at[0]+8, make([]byte, 8900)))
			check("put value", x.PutValue(0, at[0]+8, 1, 8))
			_, err := extended.FetchAdd[uint64](x, 0, at[0]+8, 1)
			check("atomic", err)
			h, err := x.PutBulkNB(0, at[0]+8, b)
			if err == nil {
				err = x.Wait(h)
			}
			check("non-blocking put", err)
			r := x.NewRegion()
			err = r.PutBulkNBI(0, at[0]+8, b)
			check("implicit put", errors.Join(err, r.Sync(extended.All)))
			check("signal", x.Signal(0, at[0]+8, extended.SignalSet, 1))
			check("put with signal", x.PutSignal(0, at[0]+8, b, at[0], extended.SignalAdd, 1))
			vector, err := extended.Vector([]extended.Extent{{Addr: at[0] + 8, Len: 100}}, [][]byte{b})
			if err != nil {
				return err
			}
			check("vector", x.PutShape(0, vector))
			if err := x.Get(0, at[0], b); err != nil || b[0] != 1 {
				return fmt.Errorf("get of what may be read: %d, %w", b[0], err)
			}
			// A short one travels with its message, which is not delivered; a
			// long one is put first.
			if err := n.e.RequestLong(0, am.FirstClient, at[0]+8, b); err != nil {
				return err
			}
			check("long message", n.e.RequestLong(0, am.FirstClient, at[0]+8, make([]byte, n.e.MaxMedium()+1)))
		}
		if me == 2 {
			check("put to rank 1's", x.Put(0, at[1]+16, b))
			check("get of rank 1's", x.Get(0, at[1]+16, b))
		}
		if me == 1 {
			if err := x.Put(0, at[1]+200, []byte{7}); err != nil { // beyond what rank 2 may be reading
				return err
			}
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
		if err := n.meet(); err != nil {
			return err
		}
		if me == 0 {
			if err := n.e.Wait(nil, func() bool { return n.e.Faults()+uint64(delivered.Load()) >= 2 }); err != nil {
				return err
			}
			want := make([]byte, len(mem))
			want[0], want[200] = 1, 7
			if !bytes.Equal(mem, want) {
				return errors.New("memory was written that must not be")
			}
			if delivered.Load() != 0 || n.e.Faults() != 2 {
				return fmt.Errorf("%d messages were delivered, %d refused", delivered.Load(), n.e.Faults())
			}
		}
		return nil
	})
}

// TestNobody: addresses that no rank has exposed, or that are none at all.
func TestNobody(t *testing.T) {
	everyWay(t, 2, tiny(2), func(n *node) error {
		x := n.x
		for rank := range 2 {
			for _, a := range []segment.NLA{segment.ExposedBase, segment.ExposedBase + 1<<20, segment.ExposedLimit - 8} {
				_, err := x.GetValue(rank, a, 8)
				if !errors.Is(err, firehose.ErrNotExposed) || !errors.Is(err, extended.ErrBadArg) {
					return fmt.Errorf("get value at %v of rank %d: %v", a, rank, err)
				}
			}
			if err := x.Put(rank, segment.ExposedLimit-4, make([]byte, 8)); !errors.Is(err, extended.ErrBadArg) {
				return fmt.Errorf("across the end of addresses: %v", err)
			}
		}
		if err := x.Conceal(segment.ExposedBase + 4096); !errors.Is(err, extended.ErrBadArg) {
			return fmt.Errorf("conceal of what is not exposed: %v", err)
		}
		if err := x.Conceal(segment.AttachBase); !errors.Is(err, extended.ErrBadArg) {
			return fmt.Errorf("conceal of the segment: %v", err)
		}
		if _, err := x.Expose(nil, segment.RightsAll, segment.AnyPeer); !errors.Is(err, extended.ErrBadArg) {
			return fmt.Errorf("exposed nothing: %v", err)
		}
		if _, err := x.Expose(make([]byte, 1), segment.RightsAll, 2); !errors.Is(err, extended.ErrBadArg) {
			return fmt.Errorf("exposed to nobody: %v", err)
		}
		mem := make([]byte, 16)
		a, err := x.Expose(mem, segment.RightsAll, segment.AnyPeer)
		if err != nil {
			return err
		}
		if b := x.Direct(x.Rank(), a+8, 8); len(b) != 8 || &b[0] != &mem[8] {
			return errors.New("own exposed memory is not direct")
		}
		if x.Direct(x.Rank(), a+8, 9) != nil || x.Direct(1-x.Rank(), a, 8) != nil {
			return errors.New("memory is direct that must not be")
		}
		// A goroutine that waits for a word that is concealed is told.
		var waited error
		var done atomic.Bool
		conduits.Go(n.end, func() {
			_, waited = x.WaitUntil(a, extended.Eq, 1)
			done.Store(true)
			n.end.Wake(x.Rank())
		})
		if err := x.Conceal(a); err != nil {
			return err
		}
		n.end.Wake(x.Rank())
		if err := n.e.Wait(nil, done.Load); err != nil {
			return err
		}
		if !errors.Is(waited, segment.ErrFault) {
			return fmt.Errorf("waited for a word that is gone: %v", waited)
		}
		return nil
	})
}

// TestOverlap: as many operations as there are handles are under way at once to
// memory that no firehose is attached to, and in the simulator's time they take
// what their messages take, not a round trip each.
func TestOverlap(t *testing.T) {
	for _, s := range []firehose.Strategy{firehose.AlwaysPin, firehose.AlwaysBounce, firehose.AlwaysRegister} {
		t.Run(s.String(), func(t *testing.T) {
			ops := extended.MaxHandles - 1
			if testing.Short() || conc.Race || s == firehose.AlwaysRegister {
				ops = 4096
			}
			const buckets = 1 << 10
			j, err := sim.New(2, sim.Config{})
			if err != nil {
				t.Fatal(err)
			}
			c := setup{bucket: segment.PageSize, budget: buckets + 256, local: 256, segment: segment.PageSize}
			c.config.Strategy = s
			var at segment.NLA
			mem := make([]byte, buckets*segment.PageSize)
			job(t, j.Endpoints(), c, func(n *node) error {
				x := n.x
				if x.Rank() == 1 {
					var err error
					if at, err = x.Expose(mem, segment.RightsAll, segment.AnyPeer); err != nil {
						return err
					}
				}
				if err := n.meet(); err != nil {
					return err
				}
				if x.Rank() == 1 {
					return n.meet()
				}
				// One by one first: each is a miss, or a round trip.
				const some = 64
				src := make([]byte, 8*ops)
				start := n.end.Now()
				for i := range some {
					if err := x.Put(1, at+segment.NLA(i*segment.PageSize+4000), src[:8]); err != nil {
						return err
					}
				}
				single := (n.end.Now() - start) / some
				hs := make([]extended.Handle, ops)
				for i := range src {
					src[i] = byte(i/8 + 1)
				}
				where := func(i int) int { return (i+some)%buckets*segment.PageSize + i/buckets*8 }
				start = n.end.Now()
				for i := range hs {
					var err error
					if hs[i], err = x.PutBulkNB(1, at+segment.NLA(where(i)), src[8*i:8*i+8]); err != nil {
						return err
					}
				}
				if x.Outstanding() < ops/2 {
					return fmt.Errorf("only %d of %d operations are under way", x.Outstanding(), ops)
				}
				if err := x.WaitAll(hs); err != nil {
					return err
				}
				each := (n.end.Now() - start) / time.Duration(ops)
				if each > single/3 {
					return fmt.Errorf("%v for each of many operations at once, %v for one alone", each, single)
				}
				for i := range hs {
					if !bytes.Equal(mem[where(i):][:8], src[8*i:8*i+8]) {
						return fmt.Errorf("operation %d has not put what it should", i)
					}
				}
				return n.meet()
			})
		})
	}
}

// TestExposedPeerDies: operations under way towards a rank that dies end with an error
// that names it, whichever way they are on.
func TestExposedPeerDies(t *testing.T) {
	for s := firehose.Adaptive; s <= firehose.AlwaysRegister; s++ {
		t.Run(s.String(), func(t *testing.T) {
			ends, err := shm.Local(2, conduits.Config{})
			if err != nil {
				t.Fatal(err)
			}
			died := errors.New("died on purpose")
			c := tiny(2)
			c.config.Strategy = s
			var at segment.NLA
			var got error
			conduits.Run(ends, func(i int) {
				n, err := open(ends[i], c)
				if err != nil {
					t.Error(err)
					return
				}
				if i == 1 {
					if at, err = n.x.Expose(make([]byte, 1<<20), segment.RightsAll, segment.AnyPeer); err != nil {
						t.Error(err)
					}
					_ = n.meet()
					ends[1].Fail(died) // without a poll: nothing is answered
					return
				}
				if err := n.meet(); err != nil {
					t.Error(err)
					return
				}
				var hs []extended.Handle
				for k := range 100 {
					h, err := n.x.PutBulkNB(1, at+segment.NLA(k*8192), make([]byte, 5000))
					if err != nil {
						got = err
						return
					}
					hs = append(hs, h)
				}
				got = n.x.WaitAll(hs)
			})
			var pe *conduits.PeerError
			if !errors.As(got, &pe) || pe.Rank != 1 {
				t.Errorf("%v", got)
			}
			for _, end := range ends {
				_ = end.Close()
			}
		})
	}
}

// TestConcealed: a rank whose firehose reaches memory that has been taken back
// asks the owner anew, which says that it is gone, and that other memory is there.
func TestConcealed(t *testing.T) {
	var at segment.NLA
	everyWay(t, 2, tiny(2), func(n *node) error {
		x := n.x
		expose := func() (err error) {
			at, err = x.Expose(make([]byte, 4096), segment.RightsAll, segment.AnyPeer)
			return err
		}
		if x.Rank() == 1 {
			if err := expose(); err != nil {
				return err
			}
		}
		for round := range 4 {
			if err := n.meet(); err != nil {
				return err
			}
			if x.Rank() == 0 {
				for range 3 {
					if err := x.Put(1, at+8, make([]byte, 100)); err != nil {
						return err
					}
				}
			}
			old := at
			if err := n.meet(); err != nil {
				return err
			}
			if x.Rank() == 1 {
				if err := x.Conceal(at); err != nil {
					return err
				}
				if err := expose(); err != nil {
					return err
				}
			}
			if err := n.meet(); err != nil {
				return err
			}
			if x.Rank() == 0 {
				if err := x.Put(1, old+8, make([]byte, 100)); !errors.Is(err, firehose.ErrNotExposed) {
					return fmt.Errorf("round %d: put to what was concealed: %v", round, err)
				}
			}
		}
		return n.meet()
	})
}

// TestAdmission: what is touched once is bounced, what is touched again is pinned
// and then at hand; what is large is registered.
func TestAdmission(t *testing.T) {
	c := setup{bucket: 64 << 10, budget: 64, local: 32, segment: segment.PageSize}
	ends, err := shm.Local(2, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var at segment.NLA
	job(t, ends, c, func(n *node) error {
		x := n.x
		if x.Rank() == 1 {
			var err error
			if at, err = x.Expose(make([]byte, 8<<20), segment.RightsAll, segment.AnyPeer); err != nil {
				return err
			}
			return errors.Join(n.meet(), n.meet())
		}
		if err := n.meet(); err != nil {
			return err
		}
		var before, after firehose.Stats
		for i, step := range []struct {
			off   segment.NLA
			n     int
			moves uint64 // round trips for pins
			held  int    // firehoses afterwards
		}{
			{0, 8, 0, 0},
			{8, 8, 1, 1},
			{16, 8, 0, 1},
			{100, 60_000, 0, 1},
			{64 << 10, firehose.DefaultBounceMax, 0, 1},
			{64 << 10, firehose.DefaultBounceMax, 1, 2},
			{128 << 10, firehose.DefaultBounceMax + 1, 1, 3}, // neither small nor large
			{256 << 10, 64 << 10, 1, 3},                      // registered
			{256 << 10, 64 << 10, 1, 4},
			{512 << 10, firehose.DefaultOnceMin, 1, 4},
			{512 << 10, firehose.DefaultOnceMin, 1, 4},
			{4 << 20, 2 << 20, 1, 4}, // all that may be registered so at once
		} {
			n.cache.Stats(&before)
			if err := x.Put(1, at+step.off, make([]byte, step.n)); err != nil {
				return err
			}
			n.cache.Stats(&after)
			if moves := after.Moves - before.Moves + after.Once - before.Once; moves != step.moves || after.Held != step.held {
				return fmt.Errorf("step %d: %d round trips for pins and %d firehoses, not %d and %d", i, moves, after.Held, step.moves, step.held)
			}
		}
		// A working set of what firehoses reach, after its second touch.
		for range 3 {
			for k := range 30 {
				if _, err := x.GetValue(1, at+segment.NLA(k*64<<10), 8); err != nil {
					return err
				}
			}
		}
		n.cache.Stats(&before)
		for i := range 10_000 {
			if err := x.PutValue(1, at+segment.NLA(i*7919%(30*64<<10)&^7), 1, 8); err != nil {
				return err
			}
		}
		n.cache.Stats(&after)
		if after.Moves != before.Moves || after.RemoteHits-before.RemoteHits != 10_000 {
			return fmt.Errorf("of 10000 accesses to what is at hand %d were hits, and there were %d moves", after.RemoteHits-before.RemoteHits, after.Moves-before.Moves)
		}
		b, failed := make([]byte, 8), error(nil)
		allocs := testing.AllocsPerRun(100, func() {
			_, err := extended.FetchAdd[uint64](x, 1, at, 1)
			h, err2 := x.PutNB(1, at+8, b)
			failed = errors.Join(failed, x.Put(1, at, b), x.Get(1, at, b), x.PutValue(1, at, 1, 8), err, err2, x.Wait(h))
		})
		if allocs != 0 || failed != nil {
			return fmt.Errorf("accesses to what is at hand: %v allocations, %w", allocs, failed)
		}
		return n.meet()
	})
}

// TestWithout: an endpoint without firehoses refuses exposed addresses.
func TestWithout(t *testing.T) {
	ends, err := shm.Local(1, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	x := extended.New(extended.Config{})
	e, err := am.Attach(ends[0], am.Config{Runtime: x.Handlers(), Completer: x, Exposer: x, Handlers: []am.Entry{
		{Index: am.FirstClient, Name: "long", Fn: func(*am.Token, []uint32, []byte) {}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	x.Bind(e)
	_, exposing := x.Expose(make([]byte, 8), segment.RightsAll, segment.AnyPeer)
	_, waiting := x.WaitUntil(segment.ExposedBase, extended.Eq, 0)
	for i, err := range []error{
		x.Put(0, segment.ExposedBase, make([]byte, 8)),
		x.Get(0, segment.ExposedBase, make([]byte, 8)),
		extended.Add[uint64](x, 0, segment.ExposedBase, 1),
		x.Conceal(segment.ExposedBase),
		e.RequestLong(0, am.FirstClient, segment.ExposedBase, make([]byte, 8)),
		exposing,
		waiting,
	} {
		if !errors.Is(err, extended.ErrNotSupported) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if e.Faults() != 0 {
		t.Error("faults of messages that are not there")
	}
	if err := ends[0].Close(); err != nil {
		t.Error(err)
	}
}
