package firehose_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// until waits as a layer above does: the poller advances the cache.
func (r *rank) until(cond func() bool) error {
	return r.e.Wait(nil, func() bool {
		if r.c.Busy() {
			r.c.Advance()
		}
		r.c.Call()
		return cond()
	})
}

// reach runs f on n bytes at a of region reg.
func (r *rank) reach(reg firehose.Pinned, a firehose.Addr, n uint64, need segment.Rights, f func(off uint64, b []byte)) error {
	for off := uint64(0); off < n; {
		g, k := r.c.At(reg, a+firehose.Addr(off))
		if k == 0 {
			return fmt.Errorf("nothing at %#x", a)
		}
		k = min(k, n-off)
		u := r.all[reg.Rank()].atu.Enter()
		b, err := u.Translate(r.e.Rank(), g.NLA, k, need)
		if err == nil {
			f(off, b)
		}
		u.Exit()
		if err != nil {
			return err
		}
		off += k
	}
	return nil
}

// metered is a Space that checks the budget at every moment.
type metered struct {
	*firehose.Space
	budget, now, most uint64 // all calls are under the Cache's lock
	over              bool
}

func whole(n uint64) uint64 { return (n + bucket - 1) &^ (bucket - 1) }

func (m *metered) take(n uint64, g firehose.Grant, err error) (firehose.Grant, error) {
	if err == nil {
		m.now += whole(n)
		m.most = max(m.most, m.now)
		m.over = m.over || m.now > m.budget
	}
	return g, err
}

func (m *metered) Pin(a firehose.Addr, n uint64) (firehose.Grant, error) {
	g, err := m.Space.Pin(a, n)
	return m.take(n, g, err)
}

func (m *metered) PinOnce(a firehose.Addr, n uint64) (firehose.Grant, error) {
	g, err := m.Space.PinOnce(a, n)
	return m.take(n, g, err)
}

func (m *metered) Unpin(a firehose.Addr, n uint64, g firehose.Grant) {
	m.Space.Unpin(a, n, g)
	m.now -= whole(n)
}

func (m *metered) Revoke(a firehose.Addr, n uint64, g firehose.Grant) {
	m.Space.Revoke(a, n, g)
	m.now -= whole(n)
}

// TestAsynchronousPins begins far more pins than there are firehoses, on several
// goroutines at once and beside pins that wait, pins at once, and memory that is
// taken back and exposed again; each ends once, and reaches what it asked for.
func TestAsynchronousPins(t *testing.T) {
	const ranks, threads, buckets, each = 3, 2, 24, 150
	config := firehose.Config{Budget: 12 * bucket, Local: 6 * bucket}
	meters := make([]*metered, ranks)
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
		r.mem, r.addrs = [][]byte{mem}, []firehose.Addr{a}
		if err := r.expose(bucket, segment.RightsAll); err != nil { // comes and goes
			return err
		}
		var shifting atomic.Uint64 // where it is now
		shifting.Store(uint64(r.addrs[1]))
		r.shifting = &shifting
		if err := r.sync(); err != nil {
			return err
		}
		var calling, done, refused atomic.Int64
		failures := make(chan error, threads)
		for th := range threads {
			go func() {
				failures <- func() error {
					rng := rand.New(rand.NewPCG(uint64(r.e.Rank()), uint64(th)))
					began := int64(0)
					var ended atomic.Int64
					var failed atomic.Pointer[error]
					fail := func(err error) { failed.CompareAndSwap(nil, &err) }
					for i := range each {
						dst := (r.e.Rank() + 1 + rng.IntN(ranks-1)) % ranks
						off := uint64(rng.IntN(buckets*bucket/8-1024) * 8)
						n := uint64(8 + rng.IntN(2)*bucket)
						at := r.all[dst].addrs[0] + firehose.Addr(off)
						look := func(reg firehose.Pinned) {
							if err := r.reach(reg, at, n, segment.RightRead, func(o uint64, b []byte) {
								if w := binary.LittleEndian.Uint64(b); w != uint64(dst)<<32|(off+o) {
									fail(fmt.Errorf("rank %d, %#x: %#x", dst, off+o, w))
								}
							}); err != nil {
								fail(err)
							}
							if err := r.c.Release(reg); err != nil {
								fail(err)
							}
						}
						then := func(reg firehose.Pinned, err error) {
							if calling.Add(1) > 1 {
								fail(errors.New("two functions at once"))
							}
							if err == nil {
								look(reg)
							} else if errors.Is(err, errs.ErrResource) {
								refused.Add(1)
							} else {
								fail(err)
							}
							calling.Add(-1)
							ended.Add(1)
							done.Add(1)
						}
						switch kind := rng.IntN(10); {
						case kind < 5:
							n = min(n, r.c.Limits().MaxRemote)
							reg, ok, err := r.c.RemotePinThen(dst, at, n, then)
							if err != nil {
								return err
							}
							if ok {
								look(reg)
							} else {
								began++
							}
						case kind < 7:
							if err := r.c.PinOnceThen(dst, at, n, then); err != nil {
								return err
							}
							began++
						case kind == 7:
							if reg, err := r.c.PinOnce(dst, at, n); err == nil {
								look(reg)
							} else if !errors.Is(err, errs.ErrResource) {
								return err
							}
						case kind == 8 && th == 0:
							// Take memory back under the others' firehoses.
							if err := r.c.Conceal(r.s, firehose.Addr(shifting.Load())); err != nil {
								return err
							}
							a, err := r.s.Expose(make([]byte, bucket), segment.RightsAll, segment.AnyPeer)
							if err != nil {
								return err
							}
							shifting.Store(uint64(a))
						default:
							at := firehose.Addr(r.all[dst].shifting.Load())
							if err := r.access(dst, at, 8, segment.RightWrite, func(_ uint64, b []byte) { b[r.e.Rank()*threads+th] = 1 }); err != nil &&
								!errors.Is(err, firehose.ErrNotExposed) && !errors.Is(err, segment.ErrFault) {
								return err
							}
						}
						if i%40 == 39 {
							if err := r.until(func() bool { return ended.Load() == began }); err != nil {
								return err
							}
						}
					}
					if err := r.until(func() bool { return ended.Load() == began }); err != nil {
						return err
					}
					if p := failed.Load(); p != nil {
						return *p
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
		r.c.Stats(&s)
		if s.Violations > 0 || s.Once == 0 || done.Load() == 0 || s.PeakPinned > 12*bucket {
			return fmt.Errorf("%d pins ended, %d were refused: %+v", done.Load(), refused.Load(), s)
		}
		return r.sync()
	}))
	for i, m := range meters {
		if m.over || m.now != 0 {
			t.Errorf("rank %d: at most %d bytes were pinned of %d, %d still are", i, m.most, m.budget, m.now)
		}
	}
}

// TestFailureEndsPins: when the job fails, or the cache is closed, waiters are
// told.
func TestFailureEndsPins(t *testing.T) {
	caught := errors.New("struck by lightning")
	for _, closed := range []bool{false, true} {
		var ended [2]atomic.Int64
		failures := job(t, 2, firehose.Config{Budget: 4 * bucket, Local: bucket}, nil, func(r *rank) error {
			if err := r.expose(64*bucket, segment.RightsAll); err != nil {
				return err
			}
			if err := r.sync(); err != nil {
				return err
			}
			if r.e.Rank() == 1 { // never polls again
				for ended[0].Load() == 0 {
					runtime.Gosched()
				}
				return caught
			}
			defer ended[0].Add(1)
			var got []error
			then := func(_ firehose.Pinned, err error) { got = append(got, err) }
			for i := range 5 {
				if _, ok, err := r.c.RemotePinThen(1, r.all[1].addrs[0]+firehose.Addr(i*bucket), 1, then); ok || err != nil {
					return fmt.Errorf("pinned without the owner: %v, %v", ok, err)
				}
			}
			if err := r.c.PinOnceThen(1, r.all[1].addrs[0], 1, then); err != nil {
				return err
			}
			want := errs.ErrClosed
			if closed {
				r.c.Close()
			} else {
				want = am.ErrPeer
				r.e.Conduit().Fail(caught)
				r.c.Advance()
			}
			r.c.Call()
			if len(got) != 6 {
				return fmt.Errorf("%d of 6 ended", len(got))
			}
			for _, err := range got {
				if !errors.Is(err, want) {
					return fmt.Errorf("ended with %v", err)
				}
			}
			if !closed { // later calls are told, too, and none twice
				for i := range 3 {
					if _, ok, err := r.c.RemotePinThen(1, r.all[1].addrs[0]+firehose.Addr((9+i)*bucket), 1, func(_ firehose.Pinned, err error) {
						got = append(got, fmt.Errorf("%d: %w", i, err))
					}); ok || err != nil {
						return fmt.Errorf("pinned though the job has failed: %v, %v", ok, err)
					}
				}
				r.c.Close()
				r.c.Close()
				r.c.Call()
				if len(got) != 9 {
					return fmt.Errorf("%d of 9 ended", len(got))
				}
				for i, err := range got[6:] {
					if !errors.Is(err, errs.ErrClosed) || err.Error()[:1] != fmt.Sprint(i) {
						return fmt.Errorf("ended with %v", err)
					}
				}
			}
			ended[1].Add(1)
			return nil
		})
		if ended[1].Load() != 1 {
			t.Errorf("closed %v: %v", closed, failures[0])
		}
	}
}

// TestPinOnce: exactly what was asked for, by one registration and one round trip;
// without room it is refused at once, and the local pins' room comes back.
func TestPinOnce(t *testing.T) {
	check(t, job(t, 2, firehose.Config{Budget: 16 * bucket, Local: 12 * bucket}, nil, func(r *rank) error {
		if err := r.expose(20*bucket+100, segment.RightsAll); err != nil {
			return err
		}
		if err := r.sync(); err != nil {
			return err
		}
		if r.e.Rank() == 0 {
			a := r.all[1].addrs[0] + 100
			if n := r.c.Limits().MaxOnce; n != 12*bucket {
				return fmt.Errorf("at most %d", n)
			}
			var before, after conduits.Stats
			r.e.Conduit().Stats(&before)
			reg, err := r.c.PinOnce(1, a, 10*bucket+7)
			if err != nil {
				return err
			}
			r.e.Conduit().Stats(&after)
			if q, p := after.Sent[conduits.Request]-before.Sent[conduits.Request], after.Received[conduits.Reply]-before.Received[conduits.Reply]; q != 1 || p != 1 {
				return fmt.Errorf("%d requests, %d replies", q, p)
			}
			if reg.Addr() != a || reg.Len() != 10*bucket+7 || reg.Rank() != 1 || !reg.Valid() {
				return fmt.Errorf("%#x, %d", reg.Addr(), reg.Len())
			}
			pieces := 0
			if err := r.reach(reg, a, reg.Len(), segment.RightWrite, func(_ uint64, b []byte) { pieces++; b[0], b[len(b)-1] = 3, 4 }); err != nil || pieces != 1 {
				return fmt.Errorf("%d pieces: %w", pieces, err)
			}
			mem := r.all[1].mem[0][100:]
			if mem[0] != 3 || mem[10*bucket+6] != 4 {
				return errors.New("not written")
			}
			if g, n := r.c.At(reg, a-1); g.NLA != 0 || n != 0 {
				return fmt.Errorf("before the region: %v, %d", g, n)
			}
			if g, n := r.c.At(reg, a+10*bucket+7); g.NLA != 0 || n != 0 {
				return fmt.Errorf("behind the region: %v, %d", g, n)
			}
			// 11 of 12 buckets are taken.
			if _, err := r.c.PinOnce(1, a, 2*bucket); !errors.Is(err, errs.ErrResource) {
				return fmt.Errorf("more than there is room for: %v", err)
			}
			one, err := r.c.PinOnce(1, a+5, bucket)
			if err != nil {
				return err
			}
			if err := r.access(1, a, 2*bucket, segment.RightRead, func(uint64, []byte) {}); err != nil {
				return fmt.Errorf("firehoses have room of their own: %w", err)
			}
			for _, k := range []struct {
				rank int
				a    firehose.Addr
				n    uint64
				want error
			}{
				{1, a, 12*bucket + 1, errs.ErrResource},
				{1, a, 0, errs.ErrBadArg},
				{1, ^firehose.Addr(0), 2, errs.ErrBadArg},
				{0, a, 1, errs.ErrBadArg},
				{2, a, 1, errs.ErrBadArg},
				{-1, a, 1, errs.ErrBadArg},
			} {
				if _, err := r.c.PinOnce(k.rank, k.a, k.n); !errors.Is(err, k.want) {
					return fmt.Errorf("%+v: %v", k, err)
				}
			}
			for _, reg := range []firehose.Pinned{one, reg} {
				if err := r.c.Release(reg); err != nil {
					return err
				}
				if err := r.c.Release(reg); !errors.Is(err, errs.ErrBadArg) {
					return fmt.Errorf("released twice: %v", err)
				}
			}
			// What was released has been told: messages between two ranks of a
			// process stay in order.
			reg, err = r.c.PinOnce(1, a, 12*bucket)
			if err != nil {
				return err
			}
			if err := r.c.Release(reg); err != nil {
				return err
			}
			// Released twice, while another has taken its place.
			var xyz [3]firehose.Pinned
			for i, n := range []uint64{2 * bucket, 2 * bucket, 3 * bucket} {
				if xyz[i], err = r.c.PinOnce(1, a, n); err != nil {
					return err
				}
				if i == 1 {
					if err := r.c.Release(xyz[0]); err != nil {
						return err
					}
				}
			}
			if err := r.c.Release(xyz[0]); !errors.Is(err, errs.ErrBadArg) {
				return fmt.Errorf("released twice: %v", err)
			}
			if err := errors.Join(r.c.Release(xyz[1]), r.c.Release(xyz[2])); err != nil {
				return err
			}
			// Beyond what is exposed.
			if _, err := r.c.PinOnce(1, a+20*bucket-1, 2); !errors.Is(err, firehose.ErrNotExposed) {
				return fmt.Errorf("pin of what is not exposed: %v", err)
			}
			var s firehose.Stats
			if r.c.Stats(&s); s.Once != 6 || s.OnceRefused != 3 {
				return fmt.Errorf("%+v", s)
			}
		}
		return r.sync()
	}))
}

// TestAlone: a pin that does not wait needs no other one to be sent and to end.
func TestAlone(t *testing.T) {
	check(t, job(t, 2, firehose.Config{Budget: 16 * bucket, Local: 8 * bucket}, nil, func(r *rank) error {
		if err := r.expose(20*bucket, segment.RightsAll); err != nil {
			return err
		}
		if err := r.sync(); err != nil {
			return err
		}
		if r.e.Rank() == 0 {
			a := r.all[1].addrs[0]
			ended := 0
			then := func(reg firehose.Pinned, err error) {
				if err != nil || r.c.Release(reg) != nil {
					t.Error(err)
				}
				ended++
			}
			for i := range 4 {
				if err := r.c.PinOnceThen(1, a, 3*bucket, then); err != nil {
					return err
				}
				if err := r.until(func() bool { return ended == 2*i+1 }); err != nil {
					return err
				}
				if _, ok, err := r.c.RemotePinThen(1, a+firehose.Addr(i*bucket), 1, then); ok || err != nil {
					return fmt.Errorf("%v: %w", ok, err)
				}
				if err := r.until(func() bool { return ended == 2*i+2 }); err != nil {
					return err
				}
			}
		}
		return r.sync()
	}))
}
