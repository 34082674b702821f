package sim

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

func mustNew(t *testing.T, n int, c Config) *Job {
	t.Helper()
	j, err := New(n, c)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// sink is a Receiver that counts.
type sink struct {
	messages, completions int
	events                conduits.Event
}

func (s *sink) Receive(*conduits.Message) { s.messages++ }
func (s *sink) Complete(_ uint64, ev conduits.Event, _ uint64, _ error) {
	s.completions++
	s.events |= ev
}

func never() bool { return false }

// goroutines waits until no more goroutines are left than there were before.
func goroutines(t *testing.T, base int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > base; runtime.Gosched() {
		if time.Now().After(end) {
			t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), base)
			return
		}
	}
}

// TestPanicEndsJob sees that a rank's panic comes out of Run with its stack, that
// the others run what they have deferred and do not go on, and that no goroutine
// is left.
func TestPanicEndsJob(t *testing.T) {
	cause := errors.New("the cause")
	base := runtime.NumGoroutine()
	j := mustNew(t, 8, Config{})
	began, deferred, wentOn := 0, 0, 0
	func() {
		defer func() {
			p, ok := recover().(*PanicError)
			if !ok || p.Rank != 5 || p.Value != cause || !errors.Is(p, cause) || !strings.Contains(p.Error(), "rank 5: panic: the cause") || !strings.Contains(string(p.Stack), "thrower") {
				t.Errorf("recovered %v", p)
			}
		}()
		conduits.Run(j.Endpoints(), func(i int) {
			e := j.Endpoint(i)
			began++
			defer func() {
				deferred++
				// Bad manners must not hang it.
				switch i {
				case 1:
					panic("another")
				case 2:
					_ = conduits.Wait(e, nil, never)
				case 3:
					for {
						e.Poll()
					}
				}
			}()
			if err := e.Attach(conduits.AttachConfig{Receiver: &sink{}}); err != nil {
				t.Error(err)
			}
			if i == 4 {
				e.GoRank(func() {
					defer func() { deferred++ }()
					began++
					_ = conduits.Wait(e, nil, never)
					wentOn++
				})
			}
			if i == 5 {
				for e.Now() < 100*time.Microsecond {
					e.Poll()
				}
				e.GoRank(func() { wentOn++ })
				thrower(cause)
			}
			_ = conduits.Wait(e, nil, never)
			wentOn++
		})
		t.Error("Run returned")
	}()
	if began != 9 || deferred != 9 || wentOn != 0 {
		t.Errorf("%d threads began, %d ran what they deferred, %d went on", began, deferred, wentOn)
	}
	goroutines(t, base)
	defer func() {
		if p := recover(); !strings.Contains(fmt.Sprint(p), "a panic has ended") {
			t.Errorf("recovered %v", p)
		}
	}()
	conduits.Run(j.Endpoints(), func(int) {})
}

//go:noinline
func thrower(err error) { panic(err) }

// TestPanicBeforeStart panics when other ranks have not begun.
func TestPanicBeforeStart(t *testing.T) {
	base := runtime.NumGoroutine()
	j := mustNew(t, 100, Config{})
	func() {
		defer func() { _ = recover() }()
		conduits.Run(j.Endpoints(), func(int) { panic(1) })
	}()
	goroutines(t, base)
}

// TestRunAgain runs ranks of a job three times, once only some of them, and
// refuses those of another job.
func TestRunAgain(t *testing.T) {
	j := mustNew(t, 4, Config{})
	var last [4]time.Duration
	for k := range 3 {
		runs := 0
		eps := j.Endpoints()
		if k == 1 {
			eps = eps[1:3]
		}
		conduits.Run(eps, func(i int) {
			e := eps[i].(*Endpoint)
			if e.Now() < last[e.rank] {
				t.Errorf("the clock is at %v after %v", e.Now(), last[e.rank])
			}
			for range 10 {
				e.Poll()
			}
			runs++
		})
		for r := range j.n {
			last[r] = j.Endpoint(r).Now()
		}
		if runs != len(eps) {
			t.Errorf("%d ranks ran, not %d", runs, len(eps))
		}
	}
	other := mustNew(t, 1, Config{})
	ran := false
	func() {
		defer func() {
			if p := recover(); !strings.Contains(fmt.Sprint(p), "another job") {
				t.Errorf("recovered %v", p)
			}
		}()
		conduits.Run([]conduits.Endpoint{j.Endpoint(0), other.Endpoint(0)}, func(int) { ran = true })
	}()
	conduits.Run(j.Endpoints()[:1], func(int) {})
	if ran {
		t.Error("a rank ran although another was refused")
	}
}

// TestJobsAtOnce runs jobs in several goroutines: they have nothing in common.
func TestJobsAtOnce(t *testing.T) {
	digests := make([]uint64, 4)
	var wg sync.WaitGroup
	for k := range digests {
		wg.Go(func() { digests[k] = runLoad(t, 3) })
	}
	wg.Wait()
	for _, d := range digests {
		if d != digests[0] || d == 0 {
			t.Fatalf("digests %x", digests)
		}
	}
}

// TestLimitAlone ends a rank that polls when nothing else happens, and with it
// the time.
func TestLimitAlone(t *testing.T) {
	j := mustNew(t, 1, Config{Limit: 100 * Microsecond})
	conduits.Run(j.Endpoints(), func(i int) {
		e := j.Endpoint(i)
		for e.Err() == nil {
			e.Poll()
		}
		if now := e.Now(); now < 100*time.Microsecond || now > 101*time.Microsecond || !errors.Is(e.Err(), errs.ErrResource) {
			t.Errorf("at %v: %v", now, e.Err())
		}
	})
}

// TestEndOfTime lets a rank sleep beyond any limit.
func TestEndOfTime(t *testing.T) {
	j := mustNew(t, 1, Config{Faults: Faults{Slow: []Slow{{0, 1 << 20}}}})
	conduits.Run(j.Endpoints(), func(i int) {
		e := j.Endpoint(i)
		s := e.Socket()
		s.Wait(math.MaxInt64)
		if now := e.Now(); now < duration(far) {
			t.Errorf("woke at %v", now)
		}
		for range 100 {
			before := e.Now()
			s.Wait(e.Now() + 10)
			_ = s.Send(0, []byte("x"))
			if now := e.Now(); now < before {
				t.Errorf("from %v to %v", before, now)
			}
		}
		if e.Err() == nil {
			t.Error("no failure")
		}
	})
}

// TestHopeless sees that a rank which heeds no failure cannot hang the simulator.
func TestHopeless(t *testing.T) {
	j := mustNew(t, 2, Config{})
	defer func() {
		if p := fmt.Sprint(recover()); !strings.Contains(p, "goes on waiting (waiting for a datagram)") || !strings.Contains(p, "deadlock") {
			t.Errorf("recovered %v", p)
		}
	}()
	conduits.Run(j.Endpoints(), func(i int) {
		for {
			j.Endpoint(i).Socket().Wait(0)
		}
	})
}

// TestTimers ends a thread whose timer is still to come: the next one, which gets
// its number, is not woken by it.
func TestTimers(t *testing.T) {
	j := mustNew(t, 1, Config{})
	conduits.Run(j.Endpoints(), func(int) {
		e := j.Endpoint(0)
		s := e.Socket()
		var ids []uint32
		wait := func(until, wake time.Duration) {
			over := false
			e.GoRank(func() {
				ids = append(ids, j.current.id)
				for e.Now() < until && wake == 0 || !over && wake != 0 {
					before := e.Now()
					s.Wait(until)
					if now := e.Now(); wake == 0 && now < until && now > before {
						t.Errorf("woken at %v, not %v", now, until)
					}
					over = true
				}
				over = true
			})
			if wake != 0 {
				for e.Now() < wake {
					e.Poll()
				}
				s.Wake()
			}
			for !over {
				e.Poll()
			}
			for range 5 {
				e.Poll()
			}
		}
		wait(50*time.Microsecond, 10*time.Microsecond)
		wait(90*time.Microsecond, 0)
		if len(ids) != 2 || ids[0] != ids[1] {
			t.Errorf("threads %v", ids)
		}
	})
}

// TestTimersDoNotPile waits again and again with a deadline far away.
func TestTimersDoNotPile(t *testing.T) {
	j := mustNew(t, 2, Config{})
	conduits.Run(j.Endpoints(), func(i int) {
		s := j.Endpoint(i).Socket()
		buf := make([]byte, 8)
		for k := 0; k < 500; {
			if i == 0 {
				if err := s.Send(1, buf); err != nil {
					t.Error(err)
				}
			}
			s.Wait(s.Now() + time.Second)
			for {
				if _, _, ok := s.Recv(buf); !ok {
					break
				}
				k++
				if i == 1 {
					_ = s.Send(0, buf)
				}
			}
		}
	})
	if n := len(j.q.h); n > 10 {
		t.Errorf("%d events are left", n)
	}
}

// TestSocketDeadline wakes at the deadline, not before and not much later, or
// with a datagram.
func TestSocketDeadline(t *testing.T) {
	j := mustNew(t, 2, Config{})
	conduits.Run(j.Endpoints(), func(i int) {
		s := j.Endpoint(i).Socket()
		if i == 1 {
			s.Wait(30 * time.Microsecond)
			_ = s.Send(0, []byte("now"))
			return
		}
		s.Wait(10 * time.Microsecond)
		if now := s.Now(); now != 10*time.Microsecond {
			t.Errorf("woke at %v", now)
		}
		s.Wait(5 * time.Microsecond) // long ago
		if now := s.Now(); now != 10*time.Microsecond {
			t.Errorf("woke at %v", now)
		}
		s.Wait(time.Millisecond)
		buf := []byte("....")
		n, src, ok := s.Recv(buf[:2]) // cut
		if now := s.Now(); n != 2 || src != 1 || !ok || string(buf) != "no.." || now < 30*time.Microsecond || now > 33*time.Microsecond {
			t.Errorf("at %v: %d bytes from %d, %q", now, n, src, buf)
		}
		if _, _, ok := s.Recv(buf); ok {
			t.Error("received twice")
		}
		s.Wake()
		s.Wait(time.Second)
		if now := s.Now(); now > 40*time.Microsecond {
			t.Errorf("Wake did not last: %v", now)
		}
		// The timer of the millisecond above is still to come: it serves neither
		// shorter waits nor longer ones.
		s.Wait(50 * time.Microsecond)
		if now := s.Now(); now != 50*time.Microsecond {
			t.Errorf("woke at %v", now)
		}
		s.e.GoRank(func() {
			for s.Now() < 60*time.Microsecond {
				s.e.Poll()
			}
			s.Wake()
		})
		s.Wait(3 * time.Millisecond)
		if now := s.Now(); now > 70*time.Microsecond {
			t.Errorf("woke at %v", now)
		}
		s.Wait(4 * time.Millisecond)
		if now := s.Now(); now != 4*time.Millisecond {
			t.Errorf("woke at %v", now)
		}
		if err := s.Send(2, nil); !errors.Is(err, errs.ErrBadArg) {
			t.Errorf("to rank 2: %v", err)
		}
		if err := s.Send(0, make([]byte, MaxDatagram+1)); !errors.Is(err, errs.ErrBadArg) {
			t.Errorf("too large: %v", err)
		}
	})
}

// TestSocketBuffer overflows a socket: what does not fit is lost and counted, and
// room comes back.
func TestSocketBuffer(t *testing.T) {
	j := mustNew(t, 2, Config{Faults: Faults{Buffer: 1000}})
	conduits.Run(j.Endpoints(), func(i int) {
		s := j.Endpoint(i).Socket()
		if i == 0 {
			for k := range 30 {
				_ = s.Send(1, make([]byte, 100+k%2))
			}
			s.Wait(100 * time.Microsecond)
			_ = s.Send(1, make([]byte, 1000))
			return
		}
		// Longer than all of them need, without looking.
		for s.Now() < 50*time.Microsecond {
			s.Wait(0)
			s.e.spend(10 * Microsecond)
			s.e.sync(j.current)
		}
		got, bytes := 0, 0
		buf := make([]byte, 60) // what is cut off leaves the buffer too
		for s.Now() < 200*time.Microsecond {
			n, _, ok := s.Recv(buf)
			if ok {
				got++
				bytes += n
			}
		}
		// 9 of the 30, then the last.
		if got != 10 || s.Lost() != 21 || bytes != 10*len(buf) {
			t.Errorf("%d datagrams with %d bytes, %d lost", got, bytes, s.Lost())
		}
	})
}

// TestGetWithoutCompletion fetches data and does not want to know when.
func TestGetWithoutCompletion(t *testing.T) {
	j := mustNew(t, 2, Config{})
	conduits.Run(j.Endpoints(), func(i int) {
		e := j.Endpoint(i)
		var s sink
		if err := e.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: &s}); err != nil {
			t.Error(err)
			return
		}
		if i == 1 {
			return
		}
		if _, err := post.Put(e, 1, segment.AttachBase, []byte("there"), 0, 1); err != nil {
			t.Error(err)
		}
		buf := make([]byte, 5)
		for string(buf) != "there" && e.Now() < time.Millisecond {
			if _, err := post.Get(e, buf, 1, segment.AttachBase, 0, 2); err != nil {
				t.Error(err)
			}
			for until := e.Now() + 20*time.Microsecond; e.Now() < until; {
				e.Poll()
			}
		}
		if string(buf) != "there" || s.completions != 0 {
			t.Errorf("got %q, %d completions of %b", buf, s.completions, s.events)
		}
		var st conduits.Stats
		_, err := post.Get(e, buf, 1, segment.AttachBase+segment.PageSize, 0, 0)
		if e.Stats(&st); err == nil || st.Puts != 1 || st.Gets == 0 || st.Atomics != 0 {
			t.Errorf("%v; %+v", err, st)
		}
	})
}

// TestCrashedRankTakesNothing sees that a rank which crashes keeps the credits,
// so that a sender that goes on runs out of them, and hears of the crash.
func TestCrashedRankTakesNothing(t *testing.T) {
	j := mustNew(t, 2, Config{Credits: 5, Faults: Faults{Crashes: []Crash{{Rank: 1, At: 50 * Microsecond}}, Detect: Millisecond}})
	conduits.Run(j.Endpoints(), func(i int) {
		e := j.Endpoint(i)
		if err := e.Attach(conduits.AttachConfig{Receiver: &sink{}}); err != nil {
			t.Error(err)
			return
		}
		if i == 1 {
			_ = conduits.Wait(e, nil, never)
			return
		}
		for e.Now() < 60*time.Microsecond {
			e.Poll()
		}
		sent := 0
		st := conduits.NoCredit
		err := conduits.Wait(e, nil, func() bool {
			for {
				if st = e.Send(1, conduits.Request, 0, nil); st != conduits.Ready {
					return st == conduits.Dead
				}
				sent++
			}
		})
		if sent != 5 || st != conduits.Dead || err != nil || e.Now() < time.Millisecond {
			t.Errorf("sent %d, then %v, %v at %v", sent, st, err, e.Now())
		}
	})
}

// TestCrashedRankWritesNothing: the answer to a get of a rank that has crashed,
// or left, stays out of its memory.
func TestCrashedRankWritesNothing(t *testing.T) {
	for _, crash := range []bool{true, false} {
		var c Config
		if crash {
			c.Faults.Crashes = []Crash{{Rank: 0, At: 51 * Microsecond}}
		}
		j := mustNew(t, 2, c)
		buf := make([]byte, 64)
		conduits.Run(j.Endpoints(), func(i int) {
			e := j.Endpoint(i)
			if err := e.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: &sink{}}); err != nil {
				t.Error(err)
				return
			}
			_, views := e.Views()
			b, _ := views[0].Bytes(segment.AttachBase, 64, views[0].Size())
			for k := range b {
				b[k] = 9
			}
			for e.Now() < 50*time.Microsecond {
				e.Poll()
			}
			if i == 0 {
				if _, err := post.Get(e, buf, 1, segment.AttachBase, conduits.RemoteDone, 1); err != nil {
					t.Error(err)
				}
				if !crash {
					_ = e.Close()
				}
			}
			for e.Now() < 100*time.Microsecond {
				e.Poll()
			}
		})
		for _, x := range buf {
			if x != 0 {
				t.Fatalf("crash %v: %v", crash, buf)
			}
		}
	}
}

// TestStallsAddUp: a short stall within a long one does not end it.
func TestStallsAddUp(t *testing.T) {
	j := mustNew(t, 1, Config{Faults: Faults{Stalls: []Stall{{0, Microsecond, Millisecond}, {0, 10 * Microsecond, Microsecond}}}})
	conduits.Run(j.Endpoints(), func(int) {
		e := j.Endpoint(0)
		e.Socket().Wait(15 * time.Microsecond)
		if now := e.Now(); now < time.Millisecond {
			t.Errorf("it went on at %v", now)
		}
	})
}

// TestBadTimes are refused, since sums of them would overflow.
func TestBadTimes(t *testing.T) {
	slow := Extoll()
	slow.PIO = 2 * Second
	far := Extoll()
	far.Net.Latency = math.MaxInt64
	for want, c := range map[string]Config{
		"Limit":       {Limit: -1},
		"stall":       {Faults: Faults{Stalls: []Stall{{At: -1}}}},
		"stall of":    {Faults: Faults{Stalls: []Stall{{For: math.MaxInt64}}}},
		"crash":       {Faults: Faults{Crashes: []Crash{{At: -1}}}},
		"partition":   {Faults: Faults{Partitions: []Partition{{At: math.MaxInt64, For: math.MaxInt64}}}},
		"jitter":      {Faults: Faults{Jitter: math.MaxInt64}},
		"PIO":         {Profile: &slow},
		"Net.Latency": {Profile: &far},
		"Buffer":      {Faults: Faults{Buffer: -1}},
	} {
		if _, err := New(1, c); !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestCloseFreesSenders: a sender that waits for credit to a rank that leaves hears of it,
// wherever its messages are then.
func TestCloseFreesSenders(t *testing.T) {
	for _, at := range []time.Duration{7 * time.Microsecond, 50 * time.Microsecond} {
		j := mustNew(t, 2, Config{Credits: 3})
		conduits.Run(j.Endpoints(), func(i int) {
			e := j.Endpoint(i)
			if err := e.Attach(conduits.AttachConfig{Receiver: &sink{}}); err != nil {
				t.Error(err)
				return
			}
			if i == 1 {
				for e.Now() < at { // without a poll
					e.spend(100 * Nanosecond)
				}
				e.sync(j.current)
				_ = e.Close()
				return
			}
			for e.Now() < 6*time.Microsecond {
				e.Poll()
			}
			st := conduits.Ready
			if err := conduits.Wait(e, nil, func() bool {
				for {
					if st = e.Send(1, conduits.Request, 0, nil); st != conduits.Ready {
						return st == conduits.Dead
					}
				}
			}); err != nil || st != conduits.Dead || e.Err() != nil {
				t.Errorf("closed at %v: %v, %v, %v", at, st, err, e.Err())
			}
		})
	}
}

// dawdler is a Receiver that takes until a time.
type dawdler struct {
	sink
	e     *Endpoint
	until time.Duration
}

func (d *dawdler) Receive(*conduits.Message) {
	for d.e.Now() < d.until {
		d.e.PollReplies()
	}
	d.messages++
}

// TestPolledByAnother: a thread that waits sees what another thread of its rank
// has received, also if it has slept while that was going on.
func TestPolledByAnother(t *testing.T) {
	j := mustNew(t, 2, Config{})
	conduits.Run(j.Endpoints(), func(i int) {
		e := j.Endpoint(i)
		s := dawdler{e: e, until: 40 * time.Microsecond}
		if err := e.Attach(conduits.AttachConfig{Receiver: &s}); err != nil {
			t.Error(err)
			return
		}
		if i == 1 {
			for e.Now() < 20*time.Microsecond {
				e.Poll()
			}
			e.Send(0, conduits.Request, 0, nil)
			return
		}
		over := false
		e.GoRank(func() {
			if err := conduits.Wait(e, nil, func() bool { return s.messages > 0 }); err != nil {
				t.Error(err)
			}
			over = true
			if now := e.Now(); now < 40*time.Microsecond || now > 51*time.Microsecond || e.Err() != nil {
				t.Errorf("woken at %v", now)
			}
		})
		for s.messages == 0 {
			e.Poll()
		}
		e.spend(10 * Microsecond)
		if err := conduits.Wait(e, nil, func() bool { return over }); err != nil {
			t.Error(err)
		}
	})
}

// TestSevered is a partition's border.
func TestSevered(t *testing.T) {
	s := faults{f: Faults{Partitions: []Partition{{First: 1, Last: 2}, {First: 4, Last: 4}}}, split: []bool{true, false}}
	for a := range 5 {
		for b := range 5 {
			inside := func(r int) bool { return r == 1 || r == 2 }
			if got := s.severed(a, b); got != (inside(a) != inside(b)) {
				t.Errorf("between %d and %d: %v", a, b, got)
			}
		}
	}
}

// TestSlowSender: what a slow processor sends does not leave before it is done.
func TestSlowSender(t *testing.T) {
	j := mustNew(t, 2, Config{Faults: Faults{Slow: []Slow{{0, 20}}}})
	var sent time.Duration
	conduits.Run(j.Endpoints(), func(i int) {
		e := j.Endpoint(i)
		var s sink
		if err := e.Attach(conduits.AttachConfig{Receiver: &s}); err != nil {
			t.Error(err)
			return
		}
		if i == 0 {
			e.Send(1, conduits.Request, 0, nil)
			sent = e.Now()
			return
		}
		if err := conduits.Wait(e, nil, func() bool { return s.messages > 0 }); err != nil || e.Now() < sent+duration(j.p.Net.Latency) {
			t.Errorf("sent until %v, there at %v; %v", sent, e.Now(), err)
		}
	})
}

// TestInterruptBeforeDeadlock: a rank that is interrupted and then waits has failed,
// and is not in a deadlock; what comes too late changes no verdict.
func TestInterruptBeforeDeadlock(t *testing.T) {
	cause := errors.New("the cause")
	for _, late := range []bool{false, true} {
		j := mustNew(t, 1, Config{})
		var found error
		conduits.Run(j.Endpoints(), func(i int) {
			e := j.Endpoint(i)
			if err := e.Attach(conduits.AttachConfig{Receiver: &sink{}}); err != nil {
				t.Error(err)
			}
			if !late {
				e.Interrupt(cause)
			}
			found = conduits.Wait(e, nil, never)
			if late {
				e.Interrupt(cause)
				found = conduits.Wait(e, nil, never)
			}
			e.Close()
		})
		var d *DeadlockError
		if errors.Is(found, cause) == late || errors.As(found, &d) != late {
			t.Errorf("interrupted late: %v: %v", late, found)
		}
	}
}
