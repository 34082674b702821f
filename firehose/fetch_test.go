package firehose_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/segment"
)

// TestFetch has several goroutines of several ranks miss the same few buckets the
// short way, beside pins that keep some of them, while their owners take memory back.
// What is lent reaches what it should, nothing is pinned beyond the budget, and
// an access whose fetch gave nothing gets there by a pin.
func TestFetch(t *testing.T) {
	const ranks, threads, buckets, each = 3, 3, 12, 300
	config := firehose.Config{Budget: 10 * bucket, Local: 4 * bucket} // 3 firehoses to each peer
	meters := make([]*metered, ranks)
	var fetched, lent, vain, entered atomic.Int64
	check(t, job(t, ranks, config, func(i int, c *firehose.Config) {
		meters[i] = &metered{Space: c.Memory.(*firehose.Space), budget: c.Budget}
		c.Memory = meters[i]
	}, func(r *rank) error {
		// Memory whose bytes say where they are.
		mem := make([]byte, buckets*bucket)
		for i := 0; i < len(mem); i += 8 {
			binary.LittleEndian.PutUint64(mem[i:], uint64(r.e.Rank())<<32|uint64(i))
		}
		a, err := r.s.Expose(mem, segment.RightRead, segment.AnyPeer)
		if err != nil {
			return err
		}
		r.addrs = []firehose.Addr{a}
		comes, err := r.s.Expose(make([]byte, bucket), segment.RightsAll, segment.AnyPeer)
		if err != nil {
			return err
		}
		var shifting atomic.Uint64 // where memory is that comes and goes
		shifting.Store(uint64(comes))
		r.shifting = &shifting
		if err := r.sync(); err != nil {
			return err
		}
		errs := make(chan error, threads)
		for th := range threads {
			go func() {
				errs <- func() error {
					rng := rand.New(rand.NewPCG(uint64(r.e.Rank()), uint64(th)))
					for range each {
						dst := (r.e.Rank() + 1 + rng.IntN(ranks-1)) % ranks
						off := uint64(rng.IntN(buckets*bucket/8) * 8)
						at := r.all[dst].addrs[0] + firehose.Addr(off)
						switch kind := rng.IntN(20); {
						case kind == 0 && th == 0:
							if err := r.c.Conceal(r.s, firehose.Addr(shifting.Load())); err != nil {
								return err
							}
							a, err := r.s.Expose(make([]byte, bucket), segment.RightsAll, segment.AnyPeer)
							if err != nil {
								return err
							}
							shifting.Store(uint64(a))
						case kind < 3:
							at := firehose.Addr(r.all[dst].shifting.Load())
							_, _, err := r.c.Fetch(dst, at, 8, func(firehose.Grant) bool { return true })
							if err != nil && !errors.Is(err, firehose.ErrNotExposed) {
								return err
							}
						case kind < 6: // keeps one for a while
							if err := r.access(dst, at, 8, segment.RightRead, func(uint64, []byte) {}); err != nil {
								return err
							}
						default:
							var got uint64
							var err error
							read := func(_ uint64, b []byte) { got = binary.LittleEndian.Uint64(b) }
							later := rng.IntN(3) == 0
							access := func(g firehose.Grant) bool {
								if later {
									return false
								}
								lent.Add(1)
								u := r.all[dst].atu.Enter()
								var b []byte
								if b, err = u.Translate(r.e.Rank(), g.NLA, 8, segment.RightRead); err == nil {
									read(0, b)
								}
								u.Exit()
								return true
							}
							var reg firehose.Pinned
							var ok bool
							if rng.IntN(2) == 0 {
								var g firehose.Grant
								var v firehose.Visit
								if g, v, ok = r.c.Enter(dst, at, 8); ok {
									if later = false; rng.IntN(2) == 0 {
										runtime.Gosched() // others are to give the firehose up
									}
									access(g)
									r.c.Exit(v, true)
									entered.Add(1)
								}
							} else {
								reg, ok = r.c.Reach(dst, at, 8, access)
							}
							if !ok {
								var ferr error
								if reg, ok, ferr = r.c.Fetch(dst, at, 8, access); ferr != nil {
									return ferr
								}
								if ok {
									fetched.Add(1)
								} else {
									vain.Add(1)
								}
							}
							switch {
							case !ok:
								err = r.access(dst, at, 8, segment.RightRead, read)
							case later:
								err = errors.Join(r.reach(reg, at, 8, segment.RightRead, read), r.c.Release(reg))
							}
							if want := uint64(dst)<<32 | off; err != nil || got != want {
								return fmt.Errorf("rank %d, %#x: %#x, want %#x: %w", dst, off, got, want, err)
							}
						}
					}
					return nil
				}()
			}()
		}
		for range threads {
			err = errors.Join(err, <-errs)
		}
		if err != nil {
			return err
		}
		if err := r.sync(); err != nil {
			return err
		}
		var s firehose.Stats
		if r.c.Stats(&s); s.Violations > 0 || s.PeakPinned > config.Budget {
			return fmt.Errorf("%+v", s)
		}
		return r.sync()
	}))
	for i, m := range meters {
		if m.over || m.now != 0 {
			t.Errorf("rank %d: at most %d bytes were pinned of %d, %d still are", i, m.most, m.budget, m.now)
		}
	}
	if fetched.Load() == 0 || lent.Load() == 0 || vain.Load() == 0 || entered.Load() == 0 {
		t.Errorf("%d fetched, %d lent, %d without a grant, %d entered", fetched.Load(), lent.Load(), vain.Load(), entered.Load())
	}
}

// TestFetchInVain: what the short way is not for leaves everything as it was.
func TestFetchInVain(t *testing.T) {
	check(t, job(t, 2, firehose.Config{Budget: 3 * bucket, Local: bucket}, nil, func(r *rank) error {
		if err := r.expose(8*bucket, segment.RightsAll); err != nil {
			return err
		}
		if err := r.sync(); err != nil {
			return err
		}
		if r.e.Rank() == 0 {
			a := r.all[1].addrs[0]
			never := func(g firehose.Grant) bool {
				t.Errorf("access by %+v, which is not to be fetched", g)
				return true
			}
			vain := func(what string, dst int, a firehose.Addr, n uint64) error {
				var before, after firehose.Stats
				r.c.Stats(&before)
				_, ok, err := r.c.Fetch(dst, a, n, never)
				r.c.Stats(&after)
				if ok || err != nil || before != after {
					return fmt.Errorf("%s: %v, %v, %+v, before %+v", what, ok, err, after, before)
				}
				return nil
			}
			one, err := r.c.RemotePin(1, a, 8)
			if err != nil {
				return err
			}
			two, err := r.c.RemotePin(1, a+bucket, 8)
			if err != nil {
				return err
			}
			if err := errors.Join(
				vain("a hit", 1, a, 8), vain("its own memory", 0, a, 8), vain("no rank", 2, a, 8), vain("no rank", -1, a, 8),
				vain("two buckets", 1, a+3*bucket-4, 8), vain("no bytes", 1, a+3*bucket, 0), vain("beyond all addresses", 1, ^firehose.Addr(0), 8),
				vain("no victim", 1, a+2*bucket, 8), r.c.Release(one),
			); err != nil {
				return err
			}
			// The owner's refusal, and a fetch that gets a grant.
			if _, ok, err := r.c.Fetch(1, a+1<<30, 8, never); ok || !errors.Is(err, firehose.ErrNotExposed) {
				return fmt.Errorf("nothing is exposed there: %v, %v", ok, err)
			}
			var before, after firehose.Stats
			r.c.Stats(&before)
			reached := 0
			_, ok, err := r.c.Fetch(1, a+2*bucket+5, 8, func(firehose.Grant) bool { reached++; return true })
			if !ok || err != nil || reached != 1 {
				return fmt.Errorf("a miss: %v, %v, %d accesses", ok, err, reached)
			}
			if r.c.Stats(&after); after.RemoteMisses != before.RemoteMisses+1 || after.RemoteHits != before.RemoteHits || after.Moves != before.Moves+1 {
				return fmt.Errorf("a miss: %+v, before %+v", after, before)
			}
			if err := r.c.Release(two); err != nil {
				return err
			}
		}
		return r.sync()
	}))
}

// TestFetchFails: a caller that waits for a rank that fails is told.
func TestFetchFails(t *testing.T) {
	caught := errors.New("struck by lightning")
	var deaf, fetching atomic.Bool
	errs := job(t, 2, firehose.Config{Budget: 4 * bucket, Local: bucket}, nil, func(r *rank) error {
		if err := r.expose(8*bucket, segment.RightsAll); err != nil {
			return err
		}
		if err := r.sync(); err != nil {
			return err
		}
		if r.e.Rank() == 0 {
			reg, err := r.c.RemotePin(1, r.all[1].addrs[0], 8)
			if err != nil {
				return err
			}
			if err := errors.Join(r.c.Release(reg), r.sync()); err != nil {
				return err
			}
			for !deaf.Load() {
				runtime.Gosched()
			}
			fetching.Store(true)
			_, ok, err := r.c.Fetch(1, r.all[1].addrs[0]+bucket, 8, func(firehose.Grant) bool { return true })
			if ok || err == nil {
				return fmt.Errorf("fetched from a rank that has failed: %v", ok)
			}
			return err
		}
		if err := r.sync(); err != nil {
			return err
		}
		deaf.Store(true) // it does not poll any more
		for !fetching.Load() {
			runtime.Gosched()
		}
		return caught
	})
	var peer *firehose.PeerError
	if !errors.As(errs[0], &peer) || peer.Rank != 1 || !errors.Is(errs[1], caught) {
		t.Errorf("%v, %v", errs[0], errs[1])
	}
}
