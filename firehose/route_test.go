package firehose_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

func word(verb conduits.Verb, rank int, a firehose.Addr, n int) *conduits.Access {
	return &conduits.Access{Verb: verb, Size: uint8(n), Want: conduits.RemoteDone, Rank: rank, At: nla(a)}
}

// TestNow: a goroutine's hits are made at once, and those of a second one without the lock,
// once it has made one with it; each counts once; what is not pinned is not reached.
func TestNow(t *testing.T) {
	check(t, job(t, 2, firehose.Config{Budget: 4 * bucket, Local: 3 * bucket}, nil, func(r *rank) error {
		if err := r.expose(4*bucket, segment.RightsAll); err != nil {
			return err
		}
		if err := r.sync(); err != nil {
			return err
		}
		dst := 1 - r.e.Rank()
		a := r.all[dst].addrs[0]
		if r.x.Now(word(conduits.GetWord, dst, a, 8)) {
			return errors.New("what is not pinned was reached")
		}
		if err := r.access(dst, a+8, 8, segment.RightWrite, func(_ uint64, b []byte) { copy(b, "attached") }); err != nil {
			return err
		}
		hits := func() uint64 {
			var s firehose.Stats
			r.c.Stats(&s)
			return s.RemoteHits
		}
		hit := func() error {
			w := conduits.Access{Verb: conduits.GetWord, Size: 8, Rank: dst, At: nla(a + 8)}
			if !r.x.Now(&w) {
				return errors.New("what is pinned was not reached")
			}
			if w.Value != binary.LittleEndian.Uint64([]byte("attached")) {
				return fmt.Errorf("%#x", w.Value)
			}
			return nil
		}
		refused := func() error {
			for _, bad := range []struct {
				rank int
				a    firehose.Addr
				n    int
			}{{dst, a + bucket - 4, 8}, {dst, a, bucket + 1}, {dst, a + bucket, 1}, {-1, a, 1}, {1 << 24, a, 1}, {1<<24 + dst, a, 1}, {2, a, 1}, {r.e.Rank(), a, 1}, {dst, a + 1<<52, 1}} {
				if r.x.Now(&conduits.Access{Verb: conduits.Get, Rank: bad.rank, At: nla(bad.a), Mem: make([]byte, bad.n)}) {
					return fmt.Errorf("%+v was reached", bad)
				}
			}
			return nil
		}
		mem := make([]byte, 16)
		// Of three accesses made together those are made that are pinned, from the first on, if
		// the goroutine finds them: a second one has made another before.
		together := uint64(0)
		many := func() error {
			b := firehose.NewBatch()
			defer b.Free()
			for i, at := range []firehose.Addr{a + 8, a + 12, a + bucket} {
				b.Add(nla(at), mem[4*i:4*i+4])
			}
			if ok := r.x.Many(dst, conduits.Get, b); ok && (b.Len() != 1 || string(mem[:8]) != "attached") || !ok && b.Len() != 3 {
				return fmt.Errorf("made %v, %d are left: %q", ok, b.Len(), mem)
			}
			together += uint64(3 - b.Len())
			return nil
		}
		before := hits()
		err := many()
		for range 10 {
			err = errors.Join(err, hit(), refused())
		}
		other := func(f func() error) error {
			result := make(chan error)
			go func() { result <- f() }()
			return <-result
		}
		err = errors.Join(err, other(func() error { return errors.Join(hit(), refused()) }))
		r.c.Locked(func() { // hangs if it takes the lock
			err = errors.Join(err, other(func() error {
				err := errors.Join(hit(), many())
				if n := testing.AllocsPerRun(100, func() { err = errors.Join(err, hit()) }); n != 0 {
					err = errors.Join(err, fmt.Errorf("%v allocations", n))
				}
				return err
			}))
		})
		err = errors.Join(err, other(refused))
		if got := hits() - before; got != 10+1+1+101+together || together == 0 {
			err = errors.Join(err, fmt.Errorf("%d hits, %d of them together", got, together))
		}
		// The only firehose moves: no goroutine finds the old bucket.
		err = errors.Join(err, r.access(dst, a+bucket, 8, segment.RightRead, func(uint64, []byte) {}), other(func() error {
			if r.x.Now(word(conduits.GetWord, dst, a, 8)) {
				return errors.New("what was given up was reached")
			}
			return nil
		}))
		err = errors.Join(err, r.sync())
		r.c.Close()
		return errors.Join(err, other(func() error {
			if r.x.Now(word(conduits.GetWord, dst, a+bucket, 8)) {
				return errors.New("reached after Close")
			}
			return nil
		}))
	}))
}

// TestPost has several goroutines of several ranks access the same few buckets, beside pins
// that keep some of them, while their owners take memory back. Each access ends once, and
// reaches what it should, nothing is pinned beyond the budget, and what is taken back is told.
func TestPost(t *testing.T) {
	const ranks, threads, buckets, each = 3, 3, 12, 300
	config := firehose.Config{Budget: 10 * bucket, Local: 4 * bucket} // 3 firehoses to each peer
	meters := make([]*metered, ranks)
	var waited, pending atomic.Int64
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
		failures := make(chan error, threads)
		for th := range threads {
			go func() {
				failures <- func() error {
					rng := rand.New(rand.NewPCG(uint64(r.e.Rank()), uint64(th)))
					buf := make([]byte, 8)
					for i := range each {
						dst := (r.e.Rank() + 1 + rng.IntN(ranks-1)) % ranks
						off := uint64(rng.IntN(buckets*bucket/8) * 8)
						at := r.all[dst].addrs[0] + firehose.Addr(off)
						k := conduits.Access{Verb: conduits.Get, Mem: buf, Want: conduits.RemoteDone, Rank: dst, At: nla(at), Cookie: uint64(th*each + i)}
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
							k.Verb, k.Size, k.At = conduits.PutWord, 8, nla(firehose.Addr(r.all[dst].shifting.Load())+firehose.Addr(r.e.Rank()*threads+th)*8)
							if err := r.do(&k); err != nil && !errors.Is(err, segment.ErrFault) {
								return err
							}
						case kind < 6: // keeps one for a while
							if err := r.access(dst, at, 8, segment.RightRead, func(uint64, []byte) { runtime.Gosched() }); err != nil {
								return err
							}
						default:
							var err error
							if kind%2 == 0 {
								waited.Add(1)
								err = r.do(&k)
							} else {
								var ev conduits.Event
								if ev, err = r.x.Post(&k); err == nil && ev&conduits.RemoteDone == 0 {
									pending.Add(1)
									var e end
									err = r.e.Wait(nil, func() (ok bool) { e, ok = r.ends.take(k.Cookie); return ok })
									err = errors.Join(err, e.err)
								}
							}
							if got, want := binary.LittleEndian.Uint64(buf), uint64(dst)<<32|off; err != nil || got != want {
								return fmt.Errorf("rank %d, %#x: %#x, want %#x: %w", dst, off, got, want, err)
							}
						}
					}
					return nil
				}()
			}()
		}
		for range threads {
			err = errors.Join(err, <-failures)
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
		r.ends.mu.Lock()
		defer r.ends.mu.Unlock()
		if len(r.ends.come) > 0 {
			return fmt.Errorf("accesses that ended twice, or at once and later: %v", r.ends.come)
		}
		return nil
	}))
	for i, m := range meters {
		if m.over || m.now != 0 {
			t.Errorf("rank %d: at most %d bytes were pinned of %d, %d still are", i, m.most, m.budget, m.now)
		}
	}
	if waited.Load() == 0 || pending.Load() == 0 {
		t.Errorf("%d accesses were waited for, %d ended later", waited.Load(), pending.Load())
	}
}

// TestOneMiss: a miss that is waited for is one message, looks its bucket up twice, and is complete
// when Do returns.
func TestOneMiss(t *testing.T) {
	check(t, job(t, 2, firehose.Config{Budget: 4 * bucket, Local: bucket}, nil, func(r *rank) error {
		if err := r.expose(8*bucket, segment.RightsAll); err != nil {
			return err
		}
		if err := r.sync(); err != nil {
			return err
		}
		if r.e.Rank() == 0 {
			for i := range firehose.Addr(6) { // the last three move a firehose
				var before, after firehose.Stats
				r.c.Stats(&before)
				k := word(conduits.PutWord, 1, r.all[1].addrs[0]+i*bucket, 8)
				k.A = uint64(i) + 1
				if r.x.Now(k) {
					return errors.New("a hit")
				}
				if err := r.x.Do(k); err != nil {
					return fmt.Errorf("a miss: %v", err)
				}
				if got := binary.LittleEndian.Uint64(r.all[1].mem[0][i*bucket:]); got != k.A {
					return fmt.Errorf("put %d, there is %d", k.A, got)
				}
				if r.c.Stats(&after); after.RemoteMisses != before.RemoteMisses+1 || after.RemoteHits != before.RemoteHits || after.Moves != before.Moves+1 {
					return fmt.Errorf("a miss: %+v, before %+v", after, before)
				}
			}
			// The owner's refusal.
			if err := r.x.Do(word(conduits.PutWord, 1, r.all[1].addrs[0]+1<<30, 8)); !errors.Is(err, firehose.ErrNotExposed) {
				return fmt.Errorf("nothing is exposed there: %v", err)
			}
		}
		return r.sync()
	}))
}

// TestPostFails: a caller that waits for a rank that fails is told.
func TestPostFails(t *testing.T) {
	caught := errors.New("struck by lightning")
	var deaf, posting atomic.Bool
	failures := job(t, 2, firehose.Config{Budget: 4 * bucket, Local: bucket}, nil, func(r *rank) error {
		if err := r.expose(8*bucket, segment.RightsAll); err != nil {
			return err
		}
		if err := r.sync(); err != nil {
			return err
		}
		if r.e.Rank() == 0 {
			for !deaf.Load() {
				runtime.Gosched()
			}
			posting.Store(true)
			err := r.x.Do(word(conduits.PutWord, 1, r.all[1].addrs[0], 8))
			if err == nil {
				return errors.New("put to a rank that has failed")
			}
			return err
		}
		deaf.Store(true) // it does not poll any more
		for !posting.Load() {
			runtime.Gosched()
		}
		return caught
	})
	var peer *errs.PeerError
	if !errors.As(failures[0], &peer) || peer.Rank != 1 || !errors.Is(failures[1], caught) {
		t.Errorf("%v, %v", failures[0], failures[1])
	}
}
