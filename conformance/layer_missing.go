package conformance

import (
	"errors"
	"reflect"
	"runtime"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/segment"
)

// missingChecks are of promises that were kept by luck: a defect in each of them
// was planted, and nothing else failed.
var missingChecks = []check{
	{name: "atomics/refused", run: atomicsRefused},
	{name: "extended/regions shared", seeded: true, run: regionsShared},
	{name: "gas/lock released once", run: gasLockReleasedOnce},
}

// atomicsRefused: an implicit operation whose target refuses it fails the region
// that counts it, whether it has a result of its own to bring or not, and once.
func atomicsRefused(c *ctx) {
	var gone segment.NLA
	c.stack(2, conduits.Config{}, layers{segment: segment.PageSize}, func(s *stack) {
		x := s.ext
		if s.Rank == 1 {
			atu, err := s.EP.ATU()
			s.Must(err)
			r, err := atu.Register(make([]byte, segment.PageSize), segment.RightsAll, segment.AnyPeer)
			s.Must(err)
			gone, _ = r.At(64)
			s.Must(atu.Deregister(r))
		}
		s.barrier()
		if s.Rank == 0 {
			old := make([]byte, 8)
			ops := []struct {
				name  string
				begin func(r *extended.Region) error
				c     extended.Category
			}{
				{"atomic with a result", func(r *extended.Region) error {
					var v uint64
					return extended.AtomicNBI[uint64](r, 1, gone, &v, extended.AtomicAdd, 1, 0)
				}, extended.Gets},
				{"atomic of 4 bytes with a result", func(r *extended.Region) error {
					var v uint32
					return extended.AtomicNBI[uint32](r, 1, gone, &v, extended.AtomicSwap, 1, 0)
				}, extended.Gets},
				{"atomic without a result", func(r *extended.Region) error {
					return extended.AtomicNBI[uint64](r, 1, gone, nil, extended.AtomicAdd, 1, 0)
				}, extended.Puts},
				{"get", func(r *extended.Region) error { return r.GetNBI(1, gone, old) }, extended.Gets},
				{"put", func(r *extended.Region) error { return r.PutBulkNBI(1, gone, old) }, extended.Puts},
				{"put value", func(r *extended.Region) error { return r.PutValueNBI(1, gone, 1, 8) }, extended.Puts},
			}
			refused := func(what string, errs ...error) {
				err := errors.Join(errs...)
				if !errors.Is(err, segment.ErrFault) {
					s.Fatalf("%s to memory that is deregistered: error %v, want segment.ErrFault", what, err)
				}
			}
			for _, o := range ops {
				r := x.NewRegion()
				refused(o.name, o.begin(r), r.Sync(o.c))
				s.Must(r.Sync(extended.All)) // told once
				// Beside operations that succeed, on either side of it.
				var v uint64
				s.Must(extended.AtomicNBI[uint64](r, 1, contract.At(0), &v, extended.AtomicAdd, 1, 0))
				err := o.begin(r)
				s.Must(extended.AtomicNBI[uint64](r, 1, contract.At(0), &v, extended.AtomicAdd, 1, 0))
				refused(o.name+" among others", err, r.Sync(extended.All))
				// An access region.
				s.Must(x.BeginRegion(r))
				err = o.begin(r)
				h, end := r.End()
				refused(o.name+" in an access region", err, end, x.Wait(h))
			}
		}
		s.barrier()
	})
}

// regionsShared: goroutines that synchronize one region at once, and begin more in
// it, all return when what they saw is complete, and nothing of it is lost.
func regionsShared(c *ctx) {
	const threads, rounds = 4, 150
	c.stack(2, conduits.Config{}, layers{segment: contract.Pages(64 + 24*threads)}, func(s *stack) {
		x, r := s.ext, s.ext.NewRegion()
		s.Threads(threads, func(i int) {
			var old [3]uint64
			for k := range rounds {
				// An atomic may be under way until the next round, and a put, too: they have
				// memory of their own.
				to, at := 1-s.Rank, contract.At(64+8*(3*i+k%3))
				s.Must(extended.AtomicNBI[uint64](r, to, contract.At(0), &old[k%3], extended.AtomicAdd, 1, 0))
				s.Must(r.PutValueNBI(to, at, uint64(k+1), 8))
				s.Must(r.Sync([]extended.Category{extended.All, extended.Gets, extended.Puts}[k%3]))
				if k%3 == 0 {
					if v, err := x.GetValue(to, at, 8); err != nil || v != uint64(k+1) {
						s.Fatalf("goroutine %d, round %d: the put that was synchronized has left %d, %v", i, k, v, err)
					}
				}
			}
			s.Must(r.Sync(extended.All))
		})
		s.barrier()
		if v, err := x.GetValue(s.Rank, contract.At(0), 8); err != nil || v != threads*rounds {
			s.Fatalf("%d of %d additions were done, %v", v, threads*rounds, err)
		}
	})
}

// gasLockReleasedOnce: a lock that is given back once, at any moment of another's
// attempts to get it, is got: no later release wakes a waiter that missed it.
func gasLockReleasedOnce(c *ctx) {
	const (
		first = 4   // locks that tell how long it takes until the waiter is in the list
		locks = 300 // then, released from half that time to one and a half of it
	)
	var begun atomic.Int64 // locks whose waiter has begun
	// Looks at a lock that is out of reach of loads take a round trip each, and a
	// waiter enters its list within a few.
	farthest := 1 << 12
	if !c.Offer.Direct {
		farthest = 1 << 5
	}
	c.job(2, func(n *gas.Node) error {
		words, err := gas.NewSlice[gas.LockWord](n, locks)
		if err != nil {
			return err
		}
		reach := farthest
		for i := range locks {
			l := gas.LockAt(words.On(0).Add(i))
			if n.Rank() == 0 {
				if err := l.Lock(n); err != nil {
					return err
				}
			}
			if err := n.Barrier(); err != nil {
				return err
			}
			if n.Rank() == 1 {
				begun.Store(int64(i) + 1)
				if err := errors.Join(l.Lock(n), l.Unlock(n)); err != nil {
					return err
				}
				continue
			}
			for begun.Load() <= int64(i) && !c.Offer.Runner && n.Layers().Conduit.Err() == nil {
				n.Poll()
				runtime.Gosched()
			}
			most := farthest
			if i >= first {
				most = reach/2 + i*reach/locks
			} else if conc.Race { // to look is a race
				most, reach = 100, 100
			}
			for k := range most {
				n.Poll()
				if conc.Race {
					continue
				}
				w, err := l.Word().Get(n)
				if err != nil {
					return err
				}
				if i < first && !reflect.ValueOf(w).FieldByName("waiters").IsZero() {
					reach = min(reach, k+1)
					break
				}
			}
			if err := l.Unlock(n); err != nil {
				return err
			}
		}
		return n.Barrier()
	})
}
