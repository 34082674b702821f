package am

import (
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
)

// passing is an endpoint whose peers do what they have to and leave when they are looked at.
type passing struct {
	conduits.Endpoint
	last func() // what rank 1 does before it leaves
}

// Left reports whether rank 1 has left, which it does now.
func (p *passing) Left(rank int) bool {
	if rank == 1 && p.last != nil {
		p.last()
		p.Endpoint.Wake(p.Endpoint.Rank())
		return true
	}
	return p.Endpoint.Left(rank)
}

// TestLeavesBetweenLooks: a rank that does what is waited for between the look at that and the look
// whether it has left is not missed.
func TestLeavesBetweenLooks(t *testing.T) {
	waits := map[string]func(e *Messenger, cond func() bool) error{
		"WaitFor": func(e *Messenger, ready func() bool) error {
			return e.WaitFor(nil, conduits.Cond{Ready: ready, Lacking: conduits.LackingRank(e.ep, 1)})
		},
		"WaitFor with work": func(e *Messenger, ready func() bool) error {
			return e.WaitFor(nil, conduits.Cond{Ready: ready, Lacking: conduits.LackingRank(e.ep, 1), Work: true})
		},
		"conduits.WaitFor": func(e *Messenger, ready func() bool) error {
			return conduits.WaitFor(e.ep, nil, conduits.Cond{Ready: ready, Lacking: conduits.LackingRank(e.ep, 1)})
		},
	}
	eps, err := shm.Local(2, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	p := &passing{Endpoint: eps[0]}
	ends := make([]*Messenger, 2)
	errs := make(chan error)
	for r, ep := range []conduits.Endpoint{p, eps[1]} {
		go func() {
			var err error
			ends[r], err = Attach(ep, Config{})
			errs <- err
		}()
	}
	for range ends {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	for name, wait := range waits {
		done, looks := false, 0
		p.last = func() { done = true }
		err := wait(ends[0], func() bool {
			if done {
				looks++
			}
			return done
		})
		if err != nil || looks != 1 {
			t.Errorf("%s for what rank 1 did before it left: %v; the condition held %d times, which is to be looked at once", name, err, looks)
		}
		p.last = func() {}
		if err := wait(ends[0], func() bool { return false }); err == nil {
			t.Errorf("%s for what rank 1 has not done: no error", name)
		}
	}
	for _, ep := range eps {
		if err := ep.Close(); err != nil {
			t.Error(err)
		}
	}
}

// stingy is an endpoint without credit for replies until a goroutine has announced that it
// sleeps for some: the credit comes too early to wake any. It does not sleep.
type stingy struct {
	conduits.Endpoint
	rich          bool
	armed, parked int
}

func (*stingy) Abilities() conduits.Abilities { return conduits.Abilities{} }
func (*stingy) Idle(int) bool                 { return false }

func (e *stingy) Arm(b conduits.Blocked) conduits.Ticket {
	e.rich = true
	e.armed++
	return e.Endpoint.Arm(b)
}

func (e *stingy) Park(t conduits.Ticket) {
	e.parked++
	e.Disarm(t)
}

func (e *stingy) Send(dst int, c conduits.Class, tag conduits.Tag, words []uint32) conduits.Status {
	if c == conduits.Reply && !e.rich {
		return conduits.NoCredit
	}
	return e.Endpoint.Send(dst, c, tag, words)
}

// TestReplyLooksAgain: a handler that waits for credit for its reply tries once more when it
// has announced itself.
func TestReplyLooksAgain(t *testing.T) {
	const ask, answer = 200, 201
	eps, err := shm.Local(1, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	answered := false
	e := &stingy{Endpoint: eps[0]}
	a, err := Attach(e, Config{Handlers: []Entry{
		{Index: ask, Name: "ask", Fn: func(k *Token, _ []uint32, _ []byte) {
			if err := k.ReplyShort(answer); err != nil {
				t.Error(err)
			}
		}},
		{Index: answer, Name: "answer", Fn: func(*Token, []uint32, []byte) { answered = true }},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.RequestShort(0, ask); err != nil {
		t.Fatal(err)
	}
	for !answered && e.Err() == nil && !t.Failed() {
		a.Poll()
	}
	if e.armed != 1 || e.parked != 0 {
		t.Errorf("the handler armed %d times and parked %d times for credit that came before it armed", e.armed, e.parked)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
