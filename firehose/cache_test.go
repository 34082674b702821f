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
	"github.com/argon-go/argon/segment"
)

const bucket = segment.PageSize

// rank is one rank with memory that it exposes. Its peers reach its ATU, as the
// conduit does.
type rank struct {
	e     *am.Endpoint
	came  *atomic.Int64 // ranks at their next meeting, in all
	round int64
	c     *firehose.Cache
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
	errs := make([]error, size)
	var wg sync.WaitGroup
	came := new(atomic.Int64)
	for i := range size {
		all[i] = &rank{all: all, came: came}
	}
	for i, end := range ends {
		wg.Go(func() {
			r := all[i]
			errs[i] = func() error {
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
				if r.c, err = firehose.NewCache(c); err != nil {
					return err
				}
				r.e, err = am.Attach(end, am.Config{
					Runtime: r.c.Handlers(), SegmentSize: segment.PageSize,
					Handlers: []am.Entry{{Index: hCall, Name: "call", Fn: func(*am.Token, []uint32, []byte) { r.called() }}},
				})
				if err != nil {
					return err
				}
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
	return errs
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
			r.c.Stale(reg)
			return errors.Join(err, r.c.Release(reg))
		}
		off += k
	}
	return r.c.Release(reg)
}

func check(t *testing.T, errs []error) {
	t.Helper()
	for i, err := range errs {
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
		errs := make(chan error, threads)
		for th := range threads {
			go func() {
				errs <- func() error {
					rng := rand.New(rand.NewPCG(uint64(r.e.Rank()), uint64(th)))
					wrote := map[uint64]uint64{} // rank << 32 | offset
					var b [8]byte
					for i := range words {
						dst := (r.e.Rank() + 1 + rng.IntN(ranks-1)) % ranks
						off := uint64((r.e.Rank()*threads+th)*each + rng.IntN(each/8)*8)
						// A local pin at the same time, in the right order.
						var local firehose.Pinned
						v := rng.Uint64()
						binary.LittleEndian.PutUint64(b[:], v)
						err := r.access(dst, r.all[dst].addrs[0]+firehose.Addr(off), 8, segment.RightWrite, func(o uint64, p []byte) {
							copy(p, b[o:])
						})
						if err == nil && i%3 == 0 {
							if local, err = r.c.LocalPin(r.addrs[0]+firehose.Addr(off), 8); err == nil {
								err = r.c.Release(local)
							}
						}
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
			err = errors.Join(err, <-errs)
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

// TestReach: only what is there is reached, and nothing moves meanwhile.
func TestReach(t *testing.T) {
	check(t, job(t, 2, firehose.Config{Budget: 4 * bucket, Local: 3 * bucket}, nil, func(r *rank) error {
		if err := r.expose(4*bucket, segment.RightsAll); err != nil {
			return err
		}
		if err := r.sync(); err != nil {
			return err
		}
		dst := 1 - r.e.Rank()
		a := r.all[dst].addrs[0]
		never := func(g firehose.Grant) bool {
			t.Errorf("access by %+v, which is not to be reached", g)
			return true
		}
		if _, ok := r.c.Reach(dst, a, 8, never); ok {
			return errors.New("what is not pinned was reached")
		}
		if err := r.access(dst, a+8, 8, segment.RightWrite, func(_ uint64, b []byte) { copy(b, "attached") }); err != nil {
			return err
		}
		for _, bad := range []struct {
			rank int
			a    firehose.Addr
			n    uint64
		}{{dst, a + bucket - 4, 8}, {dst, a, bucket + 1}, {dst, a + bucket, 1}, {-1, a, 1}, {2, a, 1}, {r.e.Rank(), a, 1}} {
			if _, ok := r.c.Reach(bad.rank, bad.a, bad.n, never); ok {
				return fmt.Errorf("%+v was reached", bad)
			}
		}
		moved := make(chan error, 1)
		for _, done := range []bool{false, true} {
			var err error
			reg, ok := r.c.Reach(dst, a+8, 8, func(g firehose.Grant) bool {
				if done {
					go func() { // this rank's only firehose moves
						moved <- r.access(dst, a+bucket, 8, segment.RightRead, func(uint64, []byte) {})
					}()
				}
				u := r.all[dst].atu.Enter()
				defer u.Exit()
				var b []byte
				if b, err = u.Translate(r.e.Rank(), g.NLA, 8, segment.RightRead); err == nil && string(b) != "attached" {
					err = fmt.Errorf("%q", b)
				}
				return done
			})
			if !ok || reg.Valid() == done {
				return fmt.Errorf("what is pinned is not reached: %v, pinned %v, %w", ok, reg.Valid(), err)
			}
			if err != nil {
				return err
			}
			if !done {
				if err := errors.Join(r.reach(reg, a+8, 8, segment.RightRead, func(uint64, []byte) {}), r.c.Release(reg)); err != nil {
					return err
				}
			}
		}
		return errors.Join(<-moved, r.sync())
	}))
}

// TestEnter: hits of a goroutine are found by Enter, and those of a second one without the
// lock, once it has found them with it; each counts once, if it was made.
func TestEnter(t *testing.T) {
	check(t, job(t, 2, firehose.Config{Budget: 4 * bucket, Local: 3 * bucket}, nil, func(r *rank) error {
		if err := r.expose(4*bucket, segment.RightsAll); err != nil {
			return err
		}
		if err := r.sync(); err != nil {
			return err
		}
		dst := 1 - r.e.Rank()
		a := r.all[dst].addrs[0]
		if _, _, ok := r.c.Enter(dst, a, 8); ok {
			return errors.New("what is not pinned was entered")
		}
		if err := r.access(dst, a+8, 8, segment.RightWrite, func(_ uint64, b []byte) { copy(b, "attached") }); err != nil {
			return err
		}
		hits := func() uint64 {
			var s firehose.Stats
			r.c.Stats(&s)
			return s.RemoteHits
		}
		enter := func() error {
			g, v, ok := r.c.Enter(dst, a+8, 8)
			if !ok {
				return errors.New("what is pinned was not entered")
			}
			u := r.all[dst].atu.Enter()
			b, err := u.Translate(r.e.Rank(), g.NLA, 8, segment.RightRead)
			if err == nil && string(b) != "attached" {
				err = fmt.Errorf("%q", b)
			}
			u.Exit()
			r.c.Exit(v, true)
			return err
		}
		refused := func() error {
			for _, bad := range []struct {
				rank int
				a    firehose.Addr
				n    uint64
			}{{dst, a + bucket - 4, 8}, {dst, a, bucket + 1}, {dst, a + bucket, 1}, {-1, a, 1}, {1 << 24, a, 1}, {1<<24 + dst, a, 1}, {2, a, 1}, {r.e.Rank(), a, 1}, {dst, a + 1<<52, 1}} {
				if _, _, ok := r.c.Enter(bad.rank, bad.a, bad.n); ok {
					return fmt.Errorf("%+v was entered", bad)
				}
			}
			return nil
		}
		// Of two accesses of one visit none, one and both are made.
		many := func() (err error) {
			for made := range 3 {
				g, v, ok := r.c.Enter(dst, a, 8)
				if !ok {
					return errors.New("what is pinned was not entered")
				}
				also, ok := r.c.Also(v, dst, a+100, 8)
				if _, bad := r.c.Also(v, dst, a+bucket, 8); !ok || bad || also.NLA != g.NLA+100 {
					err = fmt.Errorf("beside %v: %v, %v; what is not pinned: %v", g, also, ok, bad)
				}
				r.c.ExitMany(v, 2, made)
			}
			return err
		}
		before := hits()
		err := many()
		for range 10 {
			err = errors.Join(err, enter(), refused())
		}
		other := func(f func() error) error {
			result := make(chan error)
			go func() { result <- f() }()
			return <-result
		}
		err = errors.Join(err, other(func() error { return errors.Join(enter(), refused()) }))
		r.c.Locked(func() { // hangs if it takes the lock
			err = errors.Join(err, other(func() error {
				err := errors.Join(enter(), many())
				if n := testing.AllocsPerRun(100, func() { err = errors.Join(err, enter()) }); n != 0 {
					err = errors.Join(err, fmt.Errorf("%v allocations", n))
				}
				return err
			}))
		})
		err = errors.Join(err, other(refused))
		_, v, ok := r.c.Enter(dst, a, 8)
		if ok {
			r.c.Exit(v, false)
		}
		if got := hits() - before; !ok || got != 10+1+1+101+2*(1+2) {
			err = errors.Join(err, fmt.Errorf("%d hits, want 119; entered %v", got, ok))
		}
		// The only firehose moves: no goroutine finds the old bucket.
		err = errors.Join(err, r.access(dst, a+bucket, 8, segment.RightRead, func(uint64, []byte) {}), other(func() error {
			if _, _, ok := r.c.Enter(dst, a, 8); ok {
				return errors.New("what was given up was entered")
			}
			return nil
		}))
		err = errors.Join(err, r.sync())
		r.c.Close()
		return errors.Join(err, other(func() error {
			if _, _, ok := r.c.Enter(dst, a+bucket, 8); ok {
				return errors.New("entered after Close")
			}
			return nil
		}))
	}))
}

// TestReleaseWakes: a goroutine that is parked until another one of its rank
// releases is woken by that.
func TestReleaseWakes(t *testing.T) {
	check(t, job(t, 1, firehose.Config{Budget: 2 * bucket}, nil, func(r *rank) error {
		if err := r.expose(4*bucket, segment.RightsAll); err != nil {
			return err
		}
		for range 3 {
			both, err := r.c.LocalPin(r.addrs[0], 2*bucket)
			if err != nil {
				return err
			}
			if _, err := r.c.LocalPin(r.addrs[0], 3*bucket); !errors.Is(err, firehose.ErrResource) {
				return fmt.Errorf("more than the budget: %v", err)
			}
			pinned := make(chan error)
			go func() {
				p, err := r.c.LocalPin(r.addrs[0]+2*bucket, 1)
				if err == nil {
					err = r.c.Release(p)
				}
				pinned <- err
			}()
			for len(r.e.Conduit().Waiting()) == 0 {
				runtime.Gosched()
			}
			if s := r.e.Conduit().Waiting()[0].Blocked(); s != "firehose: pin of 1 bytes at 0x3000 of rank 0" {
				return errors.New(s)
			}
			if err := errors.Join(r.c.Release(both), <-pinned); err != nil {
				return err
			}
		}
		return nil
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
				var s firehose.Stats
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
				if r.c.Stats(&s); after.Sent != before.Sent || s.RemoteTries == 0 {
					in = errors.Join(in, fmt.Errorf("sent %v, %v before, %d tries", after.Sent, before.Sent, s.RemoteTries))
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
			if n := r.c.Waiters(); n > 2 {
				return fmt.Errorf("%d waiters for one pin after the other", n)
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
				if err := r.c.Conceal(r.s, a); !errors.Is(err, firehose.ErrBadArg) {
					return fmt.Errorf("concealed twice: %v", err)
				}
				// Would take the same NLAs if they were free.
				if err := r.expose(3*bucket, segment.RightsAll); err != nil {
					return err
				}
				p, err := r.c.LocalPin(r.addrs[len(r.addrs)-1], 2*bucket)
				if err != nil {
					return err
				}
				defer r.c.Release(p)
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
				r.c.Stale(reg)
				if err := r.c.Release(reg); err != nil {
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
		if !errors.Is(err, firehose.ErrBadArg) || !strings.Contains(err.Error(), "its configuration is not the same") {
			return fmt.Errorf("a pin at a rank with another budget: %v", err)
		}
		return nil
	}))
}

// TestPayloadTooLarge: a cache is not bound to an endpoint that cannot carry its
// messages.
func TestPayloadTooLarge(t *testing.T) {
	for i, err := range job(t, 2, firehose.Config{Budget: 8 * bucket, Payload: 1 << 30}, nil, func(r *rank) error { return nil }) {
		if !errors.Is(err, firehose.ErrBadArg) && !errors.Is(err, conduits.ErrPeer) {
			t.Errorf("rank %d: %v", i, err)
		}
	}
}
