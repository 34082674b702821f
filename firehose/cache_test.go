package firehose_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	_ "github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

const bucket = segment.PageSize

// rank is one rank with memory that it exposes. Its peers reach its ATU, as the
// conduit does.
type rank struct {
	e     *am.Messenger
	came  *atomic.Int64 // ranks at their next meeting, in all
	round int64
	c     *firehose.Asker
	x     *firehose.Route
	ends  ends // of x
	s     *firehose.Space
	atu   *segment.ATU
	all   []*rank
	mem   [][]byte
	addrs []firehose.Addr

	shifting *atomic.Uint64 // address of memory that comes and goes
	called   func()         // what a message to hCall runs
}

const hCall = am.FirstClient

// job runs f on ranks of this process. change may change a rank's Config.
func job(t testing.TB, size int, config firehose.Config, change func(rank int, c *firehose.Config), f func(r *rank) error) []error {
	shm, err := conduits.Lookup("shm")
	if err != nil {
		t.Fatal(err)
	}
	ends, err := shm.Local(size, conduits.Config{MaxSegment: segment.PageSize})
	if err != nil {
		t.Fatal(err)
	}
	all := make([]*rank, size)
	failures := make([]error, size)
	var wg sync.WaitGroup
	came := new(atomic.Int64)
	for i := range size {
		all[i] = &rank{all: all, came: came}
	}
	for i, end := range ends {
		wg.Go(func() {
			r := all[i]
			failures[i] = func() error {
				var err error
				c := config
				c.Rank, c.Size, c.Bucket = i, size, bucket
				if r.s, err = firehose.NewSpace(end.ATU, c.Bucket); err != nil {
					return err
				}
				c.Memory = r.s
				if change != nil {
					change(i, &c)
				}
				cache, err := firehose.NewCache(c)
				if err != nil {
					return err
				}
				r.c = &firehose.Asker{Cache: cache}
				r.x = firehose.NewRoute(cache, r.s, firehose.AlwaysPin, 0, 0, &r.ends)
				r.e, err = am.Attach(end, am.Config{
					Runtime: r.x.Handlers(), Completer: r, SegmentSize: segment.PageSize,
					Handlers: []am.Entry{{Index: hCall, Name: "call", Fn: func(*am.Token, []uint32, []byte) { r.called() }}},
				})
				if err != nil {
					return err
				}
				r.x.Bind(r.e)
				if r.atu, err = end.ATU(); err != nil {
					return err
				}
				if err := r.sync(); err != nil {
					return err
				}
				err = r.c.Bind(r.e)
				if err == nil {
					err = f(r)
				}
				if err != nil {
					end.Fail(err)
					return err
				}
				if err := r.sync(); err != nil {
					return err
				}
				r.c.Close()
				return errors.Join(r.s.Err(), end.Close())
			}()
		})
	}
	wg.Wait()
	return failures
}

// sync is a barrier within the process.
func (r *rank) sync() error {
	r.round++
	r.came.Add(1)
	for i := range r.all {
		r.e.Conduit().Wake(i)
	}
	return r.e.Wait(nil, func() bool { return r.came.Load() >= r.round*int64(len(r.all)) })
}

func (r *rank) expose(n int, rights segment.Rights) error {
	mem := make([]byte, n)
	a, err := r.s.Expose(mem, rights, segment.AnyPeer)
	r.mem, r.addrs = append(r.mem, mem), append(r.addrs, a)
	return err
}

// access runs f on the bytes at a of rank dst, piece by piece.
func (r *rank) access(dst int, a firehose.Addr, n uint64, need segment.Rights, f func(off uint64, b []byte)) error {
	reg, err := r.c.RemotePin(dst, a, n)
	if err != nil {
		return err
	}
	for off := uint64(0); off < n; {
		g, k := r.c.At(reg, a+firehose.Addr(off))
		k = min(k, n-off)
		u := r.all[dst].atu.Enter()
		b, err := u.Translate(r.e.Rank(), g.NLA, k, need)
		if err == nil {
			f(off, b)
		}
		u.Exit()
		if err != nil {
			return errors.Join(err, r.c.Stale(reg))
		}
		off += k
	}
	return r.c.Release(reg)
}

// nla is a as an address of the conduit's.
func nla(a firehose.Addr) segment.NLA { return segment.ExposedBase + segment.NLA(a) }

// ends takes the ends of a rank's accesses that were not complete at once.
type ends struct {
	mu   sync.Mutex
	come map[uint64]end // by cookie
}

type end struct {
	value uint64
	err   error
}

func (e *ends) Complete(cookie uint64, _ conduits.Event, value uint64, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.come == nil {
		e.come = map[uint64]end{}
	}
	e.come[cookie] = end{value, err}
}

// take takes an end that has come.
func (e *ends) take(cookie uint64) (end, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	v, ok := e.come[cookie]
	delete(e.come, cookie)
	return v, ok
}

// Complete gets the conduit's completions from am.
func (r *rank) Complete(cookie uint64, _ conduits.Event, value uint64, err error) {
	r.x.Complete(cookie, value, err)
}

// do makes an access as the layer above does: at once, or by Post, and waits for it.
func (r *rank) do(a *conduits.Access) error {
	if r.x.Now(a) {
		return nil
	}
	return r.x.Do(a)
}

func check(t *testing.T, failures []error) {
	t.Helper()
	for i, err := range failures {
		if err != nil {
			t.Errorf("rank %d: %v", i, err)
		}
	}
}

// TestOutOfBudget writes and reads memory far beyond the budgets, from several
// ranks and several goroutines of each, with the content checked at the end.
func TestOutOfBudget(t *testing.T) {
	const ranks, threads, buckets, words = 3, 3, 64, 40
	const each = buckets * bucket / ranks / threads &^ 7 // bytes that a goroutine owns of each rank's memory
	config := firehose.Config{Budget: 12 * bucket, Local: 4 * bucket}
	check(t, job(t, ranks, config, nil, func(r *rank) error {
		if err := r.expose(buckets*bucket, segment.RightsAll); err != nil {
			return err
		}
		if err := r.sync(); err != nil {
			return err
		}
		failures := make(chan error, threads)
		for th := range threads {
			go func() {
				failures <- func() error {
					rng := rand.New(rand.NewPCG(uint64(r.e.Rank()), uint64(th)))
					wrote := map[uint64]uint64{} // rank << 32 | offset
					var b [8]byte
					for range words {
						dst := (r.e.Rank() + 1 + rng.IntN(ranks-1)) % ranks
						off := uint64((r.e.Rank()*threads+th)*each + rng.IntN(each/8)*8)
						v := rng.Uint64()
						binary.LittleEndian.PutUint64(b[:], v)
						err := r.access(dst, r.all[dst].addrs[0]+firehose.Addr(off), 8, segment.RightWrite, func(o uint64, p []byte) {
							copy(p, b[o:])
						})
						if err != nil {
							return err
						}
						wrote[uint64(dst)<<32|off] = v
					}
					for k, v := range wrote {
						dst, off := int(k>>32), k&(1<<32-1)
						if err := r.access(dst, r.all[dst].addrs[0]+firehose.Addr(off), 8, segment.RightRead, func(o uint64, p []byte) {
							copy(b[o:], p)
						}); err != nil {
							return err
						}
						if got := binary.LittleEndian.Uint64(b[:]); got != v {
							return fmt.Errorf("rank %d, offset %#x: %#x, want %#x", dst, off, got, v)
						}
					}
					return nil
				}()
			}()
		}
		var err error
		for range threads {
			err = errors.Join(err, <-failures)
		}
		if err != nil {
			return err
		}
		var s firehose.Stats
		r.c.Stats(&s)
		var a segment.ATUStats
		r.atu.Stats(&a)
		if s.PeakPinned > 12*bucket || s.RemoteMisses == 0 || s.Victims == 0 || s.Moves > s.RemoteMisses || s.Violations > 0 || a.Faults > 0 {
			return fmt.Errorf("%+v %+v", s, a)
		}
		return r.sync()
	}))
}

// TestReleaseWakes: a goroutine that is parked until another one of its rank
// releases is woken by that.
func TestReleaseWakes(t *testing.T) {
	check(t, job(t, 2, firehose.Config{Budget: 3 * bucket, Local: bucket}, nil, func(r *rank) error {
		if err := r.expose(4*bucket, segment.RightsAll); err != nil {
			return err
		}
		if err := r.sync(); err != nil {
			return err
		}
		for range 3 * (1 - r.e.Rank()) {
			a := r.all[1].addrs[0]
			both, err := r.c.RemotePin(1, a, 2*bucket)
			if err != nil {
				return err
			}
			if _, err := r.c.RemotePin(1, a, 3*bucket); !errors.Is(err, errs.ErrResource) {
				return fmt.Errorf("more than the share: %v", err)
			}
			pinned := make(chan error)
			third := &conduits.Access{Verb: conduits.Get, Rank: 1, At: nla(a + 2*bucket), Mem: make([]byte, 1)}
			go func() { pinned <- r.x.Do(third) }()
			for s := ""; s == ""; runtime.Gosched() {
				for _, b := range r.e.Conduit().Waiting() {
					s = b.Blocked()
				}
				if s != "" && s != fmt.Sprintf("firehose: get of 1 bytes at %v of rank 1", third.At) {
					return errors.New(s)
				}
			}
			if err := errors.Join(r.c.Release(both), <-pinned); err != nil {
				return err
			}
		}
		return r.sync()
	}))
}

// TestInHandlers releases in the handler of a message what another pin waits for,
// and tries there what is at hand and what is not, for which nothing is sent.
func TestInHandlers(t *testing.T) {
	check(t, job(t, 2, firehose.Config{Budget: 3 * bucket, Local: 2 * bucket}, nil, func(r *rank) error {
		if err := r.expose(4*bucket, segment.RightsAll); err != nil {
			return err
		}
		if err := r.sync(); err != nil {
			return err
		}
		if r.e.Rank() == 1 {
			return r.sync()
		}
		a := r.all[1].addrs[0]
		for i := range firehose.Addr(20) {
			held, err := r.c.RemotePin(1, a+i%2*bucket, 1) // all that there may be
			if err != nil {
				return err
			}
			var waiting, ended atomic.Bool
			var in error
			r.called = func() {
				var before, after conduits.Stats
				r.e.Conduit().Stats(&before)
				reg, ok := r.c.TryRemotePin(1, a+i%2*bucket, 8)
				if ok == waiting.Load() { // a waiting pin comes first
					in = fmt.Errorf("what is pinned, while another waits (%v): %v", waiting.Load(), ok)
				}
				if ok {
					in = errors.Join(in, r.c.Release(reg))
				}
				if _, ok := r.c.TryRemotePin(1, a+3*bucket, 8); ok {
					in = errors.Join(in, errors.New("what is not pinned"))
				}
				r.e.Conduit().Stats(&after)
				if after.Sent != before.Sent {
					in = errors.Join(in, fmt.Errorf("sent %v, %v before", after.Sent, before.Sent))
				}
				if waiting.Load() {
					in = errors.Join(in, r.c.Release(held))
				}
			}
			if err := r.e.RequestShort(0, hCall); err != nil {
				return err
			}
			r.e.Poll()
			pinned := make(chan error, 1)
			waiting.Store(true)
			_, ok, err := r.c.RemotePinThen(1, a+(i+1)%2*bucket, 1, func(reg firehose.Pinned, err error) {
				if err == nil {
					err = r.c.Release(reg)
				}
				pinned <- err
				ended.Store(true)
			})
			if ok || err != nil {
				return fmt.Errorf("a pin beyond what there is: %v, %v", ok, err)
			}
			if err := r.e.RequestShort(0, hCall); err != nil {
				return err
			}
			if err := r.until(ended.Load); err != nil {
				return err
			}
			if err := errors.Join(in, <-pinned); err != nil {
				return err
			}
		}
		return r.sync()
	}))
}

// TestMissIsOneRoundTrip counts messages.
func TestMissIsOneRoundTrip(t *testing.T) {
	check(t, job(t, 2, firehose.Config{Budget: 8 * bucket, Local: 4 * bucket}, nil, func(r *rank) error {
		if err := r.expose(64*bucket, segment.RightsAll); err != nil {
			return err
		}
		if err := r.sync(); err != nil {
			return err
		}
		if r.e.Rank() == 0 {
			var before, after conduits.Stats
			r.e.Conduit().Stats(&before)
			for i := range 50 {
				for range 2 { // a miss and a hit
					if err := r.access(1, r.all[1].addrs[0]+firehose.Addr(i*bucket), 8, segment.RightRead, func(uint64, []byte) {}); err != nil {
						return err
					}
				}
			}
			r.e.Conduit().Stats(&after)
			q, p := after.Sent[conduits.Request]-before.Sent[conduits.Request], after.Received[conduits.Reply]-before.Received[conduits.Reply]
			var s firehose.Stats
			r.c.Stats(&s)
			if q != 50 || p != 50 || s.RemoteHits != 50 || s.RemoteMisses != 50 || s.Victims != 46 {
				return fmt.Errorf("%d requests, %d replies, %+v", q, p, s)
			}
			if n := r.c.Pins(); n > 2 {
				return fmt.Errorf("%d askers for one pin after the other", n)
			}
		}
		return r.sync()
	}))
}

// TestStale: memory that is concealed is not reached by a firehose that is still
// attached to it; a new pin says why; and what is exposed later is reached.
func TestStale(t *testing.T) {
	for _, mapped := range []bool{false, true} {
		check(t, job(t, 2, firehose.Config{Budget: 8 * bucket, Local: 2 * bucket}, nil, func(r *rank) error {
			if mapped && r.e.Rank() == 1 {
				mem := reserve(t, 3*bucket)
				a, err := r.s.Expose(mem, segment.RightsAll, segment.AnyPeer)
				if err != nil {
					return err
				}
				r.mem, r.addrs = [][]byte{mem}, []firehose.Addr{a}
			} else if err := r.expose(3*bucket, segment.RightsAll); err != nil {
				return err
			}
			if err := r.sync(); err != nil {
				return err
			}
			a := r.all[1].addrs[0]
			var reg firehose.Pinned
			var err error
			if r.e.Rank() == 0 {
				if reg, err = r.c.RemotePin(1, a+5, 2*bucket); err != nil {
					return err
				}
			}
			if err := r.sync(); err != nil {
				return err
			}
			if r.e.Rank() == 1 {
				if mapped {
					err = r.c.Unmap(r.s, a, r.atu.Unmap)
				} else {
					err = r.c.Conceal(r.s, a)
				}
				if err != nil {
					return err
				}
				var s segment.ATUStats
				if r.atu.Stats(&s); s.Regions != 0 {
					return fmt.Errorf("%d regions are registered", s.Regions)
				}
				if err := r.c.Conceal(r.s, a); !errors.Is(err, errs.ErrBadArg) {
					return fmt.Errorf("concealed twice: %v", err)
				}
				// Would take the same NLAs if they were free.
				if err := r.expose(3*bucket, segment.RightsAll); err != nil {
					return err
				}
				for i := range firehose.Addr(2) {
					at := r.addrs[len(r.addrs)-1] + i*bucket
					g, err := r.s.Pin(at, bucket)
					if err != nil {
						return err
					}
					defer r.s.Unpin(at, bucket, g)
				}
			}
			if err := r.sync(); err != nil {
				return err
			}
			if r.e.Rank() == 0 {
				g, _ := r.c.At(reg, a+5)
				u := r.all[1].atu.Enter()
				_, err := u.Translate(0, g.NLA, 1, segment.RightRead)
				u.Exit()
				if !errors.Is(err, segment.ErrFault) {
					return fmt.Errorf("memory that was taken back: %v", err)
				}
				if err := r.c.Stale(reg); err != nil {
					return err
				}
				if _, ok := r.c.TryRemotePin(1, a, 1); ok {
					return errors.New("a stale firehose is granted")
				}
				if _, err := r.c.RemotePin(1, a, 1); !errors.Is(err, firehose.ErrNotExposed) {
					return fmt.Errorf("pin of what is gone: %v", err)
				}
				addrs := r.all[1].addrs
				if err := r.access(1, addrs[len(addrs)-1], 3*bucket, segment.RightRead, func(uint64, []byte) {}); err != nil {
					return err
				}
			}
			return r.sync()
		}))
	}
}

// TestExposedMemoryLives: nothing but the Space holds on to it, pinned or not.
func TestExposedMemoryLives(t *testing.T) {
	check(t, job(t, 2, firehose.Config{Budget: 4 * bucket, Local: 2 * bucket}, nil, func(r *rank) error {
		func() {
			mem := make([]byte, 8*bucket)
			for i := range mem {
				mem[i] = byte(i / bucket)
			}
			a, err := r.s.Expose(mem, segment.RightRead, segment.AnyPeer)
			if err != nil {
				panic(err)
			}
			r.addrs = append(r.addrs, a)
		}()
		if err := r.sync(); err != nil {
			return err
		}
		runtime.GC()
		for i := range 16 {
			i %= 8
			var got byte
			if err := r.access(1-r.e.Rank(), r.all[1-r.e.Rank()].addrs[0]+firehose.Addr(i*bucket+9), 1, segment.RightRead, func(_ uint64, b []byte) {
				got = b[0]
			}); err != nil {
				return err
			}
			if got != byte(i) {
				return fmt.Errorf("bucket %d has %d", i, got)
			}
		}
		err := r.access(1-r.e.Rank(), r.all[1-r.e.Rank()].addrs[0], 1, segment.RightWrite, func(uint64, []byte) {})
		if !errors.Is(err, segment.ErrFault) {
			return fmt.Errorf("write to what may be read: %v", err)
		}
		return r.sync()
	}))
}

// TestBudgetsDiffer: each rank's pin at the other is refused.
func TestBudgetsDiffer(t *testing.T) {
	check(t, job(t, 2, firehose.Config{Budget: 8 * bucket, Local: 2 * bucket}, func(rank int, c *firehose.Config) {
		c.Budget += uint64(rank) * bucket
	}, func(r *rank) error {
		if err := r.expose(bucket, segment.RightsAll); err != nil {
			return err
		}
		if err := r.sync(); err != nil {
			return err
		}
		_, err := r.c.RemotePin(1-r.e.Rank(), r.all[1-r.e.Rank()].addrs[0], 1)
		if !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), "its configuration is not the same") {
			return fmt.Errorf("a pin at a rank with another budget: %v", err)
		}
		return nil
	}))
}

// TestPayloadTooLarge: a cache is not bound to an endpoint that cannot carry its
// messages.
func TestPayloadTooLarge(t *testing.T) {
	for i, err := range job(t, 2, firehose.Config{Budget: 8 * bucket, Payload: 1 << 30}, nil, func(r *rank) error { return nil }) {
		if !errors.Is(err, errs.ErrBadArg) && !errors.Is(err, conduits.ErrPeer) {
			t.Errorf("rank %d: %v", i, err)
		}
	}
}
