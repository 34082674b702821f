package hybrid

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conduits/udp"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// told is a conduit between hosts that tells which goroutines park in it.
type told struct {
	*udp.Endpoint
	parks chan conduits.Ticket
}

func (f *told) Park(t conduits.Ticket) {
	f.parks <- t
	f.Endpoint.Park(t)
}

// tickets is one that knows which tickets are out.
type tickets struct {
	*udp.Endpoint
	mu  sync.Mutex
	out map[conduits.Ticket]bool
}

func (f *tickets) Arm(b conduits.Blocked) conduits.Ticket {
	t := f.Endpoint.Arm(b)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.out[t] = true
	return t
}

func (f *tickets) Disarm(t conduits.Ticket) {
	f.mu.Lock()
	delete(f.out, t)
	f.mu.Unlock()
	f.Endpoint.Disarm(t)
}

func (f *tickets) has(t conduits.Ticket) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.out[t]
}

// counted is one that counts polls.
type counted struct {
	*udp.Endpoint
	polls int
}

func (f *counted) Poll() int {
	f.polls++
	return f.Endpoint.Poll()
}

// plain is one as it is.
func plain(e *udp.Endpoint) conduits.FarEndpoint { return e }

// blamedFar and blamedNear call before when they are told of a failure.
type blamedFar struct {
	*udp.Endpoint
	before func()
}

func (f blamedFar) Blame(rank int, err error) {
	f.before()
	f.Endpoint.Blame(rank, err)
}

type blamedNear struct {
	conduits.NearEndpoint
	before func()
}

func (n blamedNear) Blame(rank int, err error) {
	n.before()
	n.NearEndpoint.Blame(rank, err)
}

// receiver calls a function, if any, for each message.
type receiver func(m *conduits.Message)

func (f receiver) Receive(m *conduits.Message) {
	if f != nil {
		f(m)
	}
}

func (receiver) Complete(uint64, conduits.Event, uint64, error) {}

// three opens ranks 0 and 1 of one host and rank 2 of another. wrap makes rank 0's
// conduit between hosts.
func three(t *testing.T, wrap func(*udp.Endpoint) conduits.FarEndpoint) []conduits.Endpoint {
	t.Helper()
	const n = 3
	near, err := shm.LocalPart(2, conduits.Part{Size: n, Conduit: "hybrid", Outside: true}, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := shm.LocalPart(1, conduits.Part{First: 2, Size: n, Conduit: "hybrid", Outside: true}, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	far, err := udp.Local(n, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	eps := make([]conduits.Endpoint, n)
	for r, e := range append(near, other...) {
		f := plain(far[r].(*udp.Endpoint))
		if r == 0 {
			f = wrap(far[r].(*udp.Endpoint))
		}
		if eps[r], err = New(Config{Near: e, Far: f, Neighbourhoods: conduits.NewNeighbourhoods(n, func(rank int) int { return rank / 2 }), Limits: least(e.Limits(), f.Limits())}); err != nil {
			t.Fatal(err)
		}
	}
	return eps
}

// attach attaches all; receive gets the rank and the message.
func attach(t *testing.T, eps []conduits.Endpoint, receive func(rank int, m *conduits.Message)) {
	t.Helper()
	conduits.Run(eps, func(i int) {
		f := receiver(func(m *conduits.Message) { receive(i, m) })
		if err := eps[i].Attach(conduits.AttachConfig{Receiver: f}); err != nil {
			t.Error(err)
		}
	})
}

// leave closes all.
func leave(t *testing.T, eps []conduits.Endpoint) {
	t.Helper()
	for _, e := range eps {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestWatcherIsRenewed has a rank park, be woken by a neighbour, and park again,
// over and over: the watcher must park anew each time, for only then does it know
// when what this rank has sent meanwhile is to be sent again.
func TestWatcherIsRenewed(t *testing.T) {
	parks := make(chan conduits.Ticket)
	eps := three(t, func(e *udp.Endpoint) conduits.FarEndpoint { return &told{e, parks} })
	attached := make(chan struct{})
	go func() { // ranks that attach park, too
		for {
			select {
			case <-parks:
			case <-attached:
				return
			}
		}
	}()
	attach(t, eps, nil)
	attached <- struct{}{}
	for range 50 {
		parked := make(chan struct{})
		go func() {
			defer close(parked)
			tk := eps[0].Arm(nil)
			eps[0].Poll()
			eps[0].Park(tk)
		}()
		<-parks // or the test hangs
		eps[1].Wake(0)
		for done := false; !done; {
			select {
			case <-parks: // the watcher was told to go before it had begun
			case <-parked:
				done = true
			}
		}
	}
	go func() {
		for range parks {
		}
	}()
	leave(t, eps)
}

// TestLooksBeforeParking: between Arm and Park the network is looked at, however
// short ago that was done, and whether or not the caller polls. A look that finds nothing
// does not wake the goroutine that looks, or no rank would ever sleep.
func TestLooksBeforeParking(t *testing.T) {
	var far *counted
	eps := three(t, func(e *udp.Endpoint) conduits.FarEndpoint { far = &counted{Endpoint: e}; return far })
	attach(t, eps, nil)
	const rounds = 1000
	woken := 0
	for range rounds {
		n := far.polls
		var before, after conduits.Stats
		eps[0].Stats(&before)
		tk := eps[0].Arm(nil)
		found := eps[0].Poll()
		eps[0].Disarm(tk)
		if eps[0].Stats(&after); found == 0 && after.Wakes != before.Wakes {
			woken++
		}
		if far.polls == n {
			t.Fatal("a poll after Arm does not look at the network")
		}
		n = far.polls
		tk = eps[0].Arm(nil)
		eps[0].Wake(0) // so that Park returns
		eps[0].Park(tk)
		if far.polls == n {
			t.Fatal("Park does not look at the network")
		}
	}
	if woken > rounds/2 { // the watcher wakes it, too, now and then
		t.Errorf("of %d looks that find nothing %d wake the rank", rounds, woken)
	}
	leave(t, eps)
}

// idles is shared memory that tells what Idle is called with.
type idles struct {
	conduits.NearEndpoint
	calls []int
}

func (n *idles) Idle(idle int) bool {
	n.calls = append(n.calls, idle)
	return idle < 3
}

// TestIdleCountsLooks: where the network brought the last message a wait is as long as so many looks at it, and
// as so many polls elsewhere.
func TestIdleCountsLooks(t *testing.T) {
	eps := three(t, plain)
	attach(t, eps, nil)
	e := eps[0].(*Endpoint)
	near := &idles{NearEndpoint: e.near}
	e.near = near
	for _, c := range []struct {
		afar uint64
		want []int
	}{
		{0, []int{-1, 0, 1, 2, 3}},
		{1, []int{-1, 0, 1, 1, 1, 2, 2, 3}},
	} {
		atomic.StoreUint64(&e.afar, c.afar)
		near.calls = nil
		for idle := -1; e.Idle(idle); idle++ {
			if idle%2 == 1 {
				e.look()
			}
		}
		if !slices.Equal(near.calls, c.want) {
			t.Errorf("afar %d: shared memory is told of %d empty polls, want %d", c.afar, near.calls, c.want)
		}
	}
	e.near = near.NearEndpoint
	leave(t, eps)
}

// TestRepliesFromBoth has a handler of shared memory wait for a reply that comes by
// the network, and one of the network for one that comes by shared memory: in a
// cycle of ranks that wait for each other's credit there may be any of them.
func TestRepliesFromBoth(t *testing.T) {
	const ask, hold, done = 1, 2, 3
	for _, asked := range []int{1, 2} {
		holder := 3 - asked
		var held, over atomic.Bool
		replied := false
		eps := three(t, plain)
		attach(t, eps, func(rank int, m *conduits.Message) {
			switch {
			case m.Class == conduits.Reply:
				replied = true
			case m.Tag == ask:
				for !held.Load() {
					runtime.Gosched()
				}
				if st := eps[rank].Send(m.Src, conduits.Reply, ask, nil); st != conduits.Ready {
					t.Errorf("status %d of a reply", st)
				}
			case m.Tag == hold:
				held.Store(true)
				for !replied { // or the test hangs
					eps[rank].PollReplies()
				}
			case m.Tag == done:
				over.Store(true)
			}
		})
		conduits.Run(eps, func(i int) {
			ep := eps[i]
			send := func(dst int, tag conduits.Tag) {
				if st := ep.Send(dst, conduits.Request, tag, nil); st != conduits.Ready {
					t.Errorf("status %d of a request", st)
				}
			}
			wait := func(cond func() bool) {
				if err := conduits.Wait(ep, nil, cond); err != nil {
					t.Error(err)
				}
			}
			switch i {
			case 0:
				send(asked, ask)
				wait(func() bool { return replied })
				send(asked, done)
			case asked:
				wait(over.Load)
			case holder:
				send(0, hold)
			}
		})
		leave(t, eps)
	}
}

// strange is one that has refused datagrams.
type strange struct{ *udp.Endpoint }

func (f strange) Stats(s *conduits.Stats) {
	f.Endpoint.Stats(s)
	s.Refused += 7
}

// TestRefusedIsCounted: what strangers send is told of.
func TestRefusedIsCounted(t *testing.T) {
	eps := three(t, func(e *udp.Endpoint) conduits.FarEndpoint { return strange{e} })
	attach(t, eps, nil)
	var s conduits.Stats
	eps[0].Stats(&s)
	if s.Refused != 7 {
		t.Errorf("%d datagrams refused, of 7", s.Refused)
	}
	leave(t, eps)
}

// TestHandlerSleeps has a handler of shared memory wait for a reply that does not
// come: it sleeps, instead of being woken over and over by its own looks at the
// network.
func TestHandlerSleeps(t *testing.T) {
	eps := three(t, plain)
	var parks atomic.Int32
	var released, ran atomic.Bool
	attach(t, eps, func(rank int, m *conduits.Message) {
		for !released.Load() {
			tk := eps[rank].Arm(nil)
			eps[rank].PollReplies()
			parks.Add(1)
			eps[rank].Park(tk)
		}
		ran.Store(true)
	})
	over := make(chan struct{})
	go func() {
		defer close(over)
		if err := conduits.Wait(eps[0], nil, ran.Load); err != nil {
			t.Error(err)
		}
	}()
	if st := eps[1].Send(0, conduits.Request, 1, nil); st != conduits.Ready {
		t.Fatal(st)
	}
	for parks.Load() == 0 {
		runtime.Gosched()
	}
	testmain.Spend(50 * time.Millisecond)
	if n := parks.Load(); n > 20 {
		t.Errorf("a handler that waits has parked %d times", n)
	}
	released.Store(true)
	eps[1].Wake(0)
	<-over
	leave(t, eps)
}

// TestReason: a rank that cannot join because others have left says why they have.
func TestReason(t *testing.T) {
	far, err := udp.Local(2, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer far[0].Close()
	defer far[1].Close()
	e := far[0].(*udp.Endpoint)
	go func() {
		for len(e.Waiting()) == 0 {
			runtime.Gosched()
		}
		far[1].Fail(errors.New("gone"))
	}()
	var p *conduits.PeerError
	if err := reason(e, errors.New("the memory is not there")); !errors.As(err, &p) || p.Rank != 1 {
		t.Errorf("%v", err)
	}
}

// TestReplacedTicket has a goroutine park, something happen between hosts, and another
// one park before the watcher has begun: it must not begin with what happened since
// the second alone, for the first may be a handler, during which no poll looks.
func TestReplacedTicket(t *testing.T) {
	var far *tickets
	eps := three(t, func(e *udp.Endpoint) conduits.FarEndpoint {
		far = &tickets{Endpoint: e, out: map[conduits.Ticket]bool{}}
		return far
	})
	attach(t, eps, nil)
	e := eps[0].(*Endpoint)
	e.handed = make(chan struct{}, 1) // a watcher that has not begun
	first := e.near.Arm(nil)
	old := e.far.Arm(watching{})
	e.hand(old)
	e.far.Wake(0)
	ours := e.far.Arm(watching{})
	e.hand(ours)
	if far.has(old) || !far.has(ours) {
		t.Errorf("the ticket that was replaced is out: %v, which makes events between hosts wake for ever; the new one: %v", far.has(old), far.has(ours))
	}
	go e.watch()
	woken := make(chan struct{})
	go func() {
		e.near.Park(first)
		close(woken)
	}()
	select {
	case <-woken:
	case <-time.After(5 * time.Minute):
		t.Error("who parked first sleeps on")
		e.near.Wake(0)
		<-woken
	}
	leave(t, eps)
}

// TestDiagnosis: what the conduit between hosts has to say is said.
func TestDiagnosis(t *testing.T) {
	eps := three(t, plain)
	d, ok := conduits.As[conduits.Diagnoser](eps[0])
	if !ok {
		t.Fatal("no diagnosis")
	}
	if s := d.Diagnosis(); !strings.HasPrefix(s, "udp: ") {
		t.Errorf("%q", s)
	}
	attach(t, eps, nil)
	leave(t, eps)
}

// TestHearOnce: no goroutine of a rank hears of a failure before both conduits know. It would leave, and its neighbours,
// which have not heard, name it.
func TestHearOnce(t *testing.T) {
	var rank0 *Endpoint
	told, early := 0, 0
	before := func() {
		told++
		if rank0.failed.Load() != nil {
			early++
		}
	}
	eps := three(t, func(e *udp.Endpoint) conduits.FarEndpoint { return blamedFar{e, before} })
	rank0 = eps[0].(*Endpoint)
	rank0.near = blamedNear{rank0.near, before}
	attach(t, eps, nil)
	eps[2].Fail(errors.New("broken"))
	var p *conduits.PeerError
	if err := rank0.Err(); !errors.As(err, &p) || p.Rank != 2 {
		t.Errorf("rank 0 hears of %v, not of rank 2", err)
	}
	if told != 2 || early > 0 {
		t.Errorf("%d conduits are told, %d of them when the rank has said that the job has failed; want 2 and 0", told, early)
	}
	leave(t, eps)
}
