package contract

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/segment"
)

var endChecks = []Check{
	{Name: "failure", Run: checkFailure},
	{Name: "failure wakes", Seeded: true, Run: checkFailureWakes},
	{Name: "failure amid traffic", Seeded: true, Run: checkFailureAmidTraffic},
	{Name: "failure amid rma", Seeded: true, Run: checkFailureAmidRMA},
	{Name: "close", Run: checkClose},
	{Name: "close wakes", Seeded: true, Run: checkCloseWakes},
	{Name: "closed peer", Run: checkClosedPeer},
}

// failed waits until the job has failed and checks which rank is blamed.
func (p *Peer) failed(rank int, why string) {
	p.C.Helper()
	err := conduits.Wait(p.EP, Waiting("a failure"), func() bool { return false })
	p.blames(err, rank, why)
	p.blames(p.EP.Err(), rank, why)
}

// blames checks that err is a *PeerError that names rank and says why.
func (p *Peer) blames(err error, rank int, why string) {
	p.C.Helper()
	p.Names(err, rank, "failure of rank %d", rank)
	if !errors.Is(err, conduits.ErrPeer) || !strings.Contains(err.Error(), why) {
		p.Fatalf("failure of rank %d: error %q does not say %q", rank, err, why)
	}
}

// checkFailure: all ranks hear which rank failed and why. The first failure
// counts, for good; then nothing waits, and nothing is sent for ever.
func checkFailure(c *Case) {
	for _, n := range []int{1, 2, 3, 5} {
		var told atomic.Int32
		c.Job(n, Small, func(p *Peer) {
			s := &sink{receive: func(*conduits.Message) {}}
			p.attach(segment.PageSize, s)
			bad := n - 1
			if p.Rank == bad {
				p.EP.Fail(errors.New("the disk is full"))
			}
			p.failed(bad, "the disk is full")
			first := p.EP.Err()
			p.blames(first, bad, "the disk is full")
			told.Add(1)
			// All know of it before another one fails.
			for told.Load() < int32(n) && !c.Failed() {
				p.EP.Poll()
				p.yieldOnce()
			}
			p.EP.Fail(fmt.Errorf("rank %d has another reason", p.Rank))
			p.EP.Poll()
			p.EP.Spin()
			p.failed(bad, "the disk is full")
			for range 10 {
				if again := p.EP.Err(); again == nil || again.Error() != first.Error() {
					p.Fatalf("error %v was %v before", again, first)
				}
			}
			p.becomesDead(bad) // which polls no more
		})
	}
}

// becomesDead sends to dst, which consumes nothing, until it hears that there is no
// sense in it. Few messages fit in, so "ready" and "no credit" have an end.
func (p *Peer) becomesDead(dst int) {
	p.C.Helper()
	payload := make([]byte, 512)
	for i := range 1 << 16 {
		var st conduits.Status
		switch i % 3 {
		case 0:
			st = p.EP.Send(dst, conduits.Request, 1, nil)
		case 1:
			st = p.EP.SendPayload(dst, conduits.Request, 1, nil, payload, 0)
		case 2:
			var s conduits.Slot
			if s, st = p.EP.Reserve(dst, conduits.Request, 1, 100); st == conduits.Ready {
				p.EP.Cancel(dst, conduits.Request, s)
			}
		}
		if st == conduits.Dead {
			return
		}
		if dst != p.Rank { // what one sends oneself has room again when one polls
			p.EP.Poll()
		}
		p.yieldOnce()
	}
	p.Fatalf("rank %d has failed or left, but sends to it go on and on", dst)
}

// checkFailureWakes: whatever ranks are parked for, a failure ends it, however it
// meets their going to sleep.
func checkFailureWakes(c *Case) {
	const n = 3
	for range max(*flagRound/25, 1) {
		c.Job(n, Small, func(p *Peer) {
			p.attach(0, &sink{receive: func(*conduits.Message) {}})
			p.pause(true)
			var err error
			switch p.Rank {
			case 0: // a message
				err = p.nap("nothing", func() bool { return false })
			case 1: // credit, of a rank that consumes nothing
				err = p.nap("credit", func() bool { return p.EP.Send(2, conduits.Request, 1, nil) == conduits.Dead })
				if err == nil { // rank 2 is heard to have left before it is heard to have failed
					err = conduits.Wait(p.EP, Waiting("a failure"), func() bool { return false })
				}
			case 2:
				p.pause(true)
				p.pause(true)
				p.EP.Fail(errors.New("the disk is full"))
				err = p.EP.Err()
			}
			p.blames(err, 2, "the disk is full")
		})
		if c.Failed() {
			return
		}
	}
}

// checkFailureAmidTraffic: with every queue full and handlers waiting to reply,
// a failure ends all ranks.
func checkFailureAmidTraffic(c *Case) {
	for _, n := range []int{2, 3, 5, 17} {
		bad := c.RNG.IntN(n)
		c.Job(n, Small, func(p *Peer) {
			after := p.RNG.IntN(300)
			s := &sink{}
			b := make([]byte, 300)
			s.receive = func(m *conduits.Message) {
				if m.Class == conduits.Reply {
					return
				}
				for p.EP.SendPayload(m.Src, conduits.Reply, 1, nil, b, 0) == conduits.NoCredit {
					if s.pollReplies() > 0 {
						continue
					}
					t := p.EP.Arm(Waiting("credit for a reply"))
					if p.EP.SendPayload(m.Src, conduits.Reply, 1, nil, b, 0) != conduits.NoCredit || s.pollReplies() > 0 || p.EP.Err() != nil {
						p.EP.Disarm(t)
						return // that a request has two replies does not matter here
					}
					p.EP.Park(t)
				}
			}
			p.attach(0, s)
			for i := 0; ; i++ {
				if p.Rank == bad && i == after {
					p.EP.Fail(errors.New("the disk is full"))
				}
				dst, st := p.RNG.IntN(n), conduits.NoCredit
				err := conduits.Wait(p.EP, Waiting("credit"), func() bool {
					st = p.EP.SendPayload(dst, conduits.Request, 1, nil, b, 0)
					return st != conduits.NoCredit
				})
				if err == nil {
					err = p.EP.Err() // it may be long until one has to wait
				}
				if err != nil {
					p.blames(err, bad, "the disk is full")
					return
				}
			}
		})
	}
}

// checkFailureAmidRMA: operations towards a rank that fails complete or end with
// an error that names it; none stays.
func checkFailureAmidRMA(c *Case) {
	const n = 3
	for range 5 {
		bad := c.RNG.IntN(n)
		c.Job(n, conduits.Config{}, func(p *Peer) {
			pending := map[uint64]conduits.Event{}
			s := &sink{complete: func(cookie uint64, ev conduits.Event, _ uint64, err error) {
				if pending[cookie]&ev != ev {
					p.Errorf("completion %#x of cookie %d, which lacks %#x", ev, cookie, pending[cookie])
				}
				if err != nil {
					p.blamesIn(err, bad)
				}
				if pending[cookie] &^= ev; pending[cookie] == 0 {
					delete(pending, cookie)
				}
			}}
			p.attach(segment.PageSize, s)
			cookie := uint64(0)
			b := make([]byte, 64)
			after := p.RNG.IntN(200)
			for i := 0; p.EP.Err() == nil; i++ {
				if p.Rank == bad && i == after {
					p.EP.Fail(errors.New("the disk is full"))
				}
				cookie++
				dst := p.RNG.IntN(n)
				pending[cookie] = bothDone
				var ev conduits.Event
				var err error
				switch i % 3 {
				case 0:
					ev, err = post.Put(p.EP, dst, At(p.Rank*64), b, bothDone, cookie)
				case 1:
					// Memory of its own: it may be written until the completion.
					ev, err = post.Get(p.EP, make([]byte, 64), dst, At(1024), bothDone, cookie)
				case 2:
					pending[cookie] = conduits.RemoteDone
					_, ev, err = post.Atomic(p.EP, dst, At(2048), conduits.AtomicAdd, conduits.Uint64, 1, 0, cookie)
				}
				if err != nil {
					p.blames(err, bad, "the disk is full")
					ev = bothDone
				}
				if pending[cookie] &^= ev; pending[cookie] == 0 {
					delete(pending, cookie)
				}
				if len(pending) > 10 || i%8 == 0 {
					p.EP.Poll()
					p.yieldOnce()
				}
			}
			for i := 0; len(pending) > 0; i++ {
				p.EP.Poll()
				p.yieldOnce()
				if i == 1<<20 {
					p.Fatalf("%d operations neither completed nor failed", len(pending))
				}
			}
			p.blames(p.EP.Err(), bad, "the disk is full")
		})
	}
}

// blamesIn is names for handlers, which must not end their goroutine.
func (p *Peer) blamesIn(err error, rank int) {
	var pe *conduits.PeerError
	if !errors.As(err, &pe) || pe.Rank != rank {
		p.Errorf("completion with error %v, want a PeerError of rank %d", err, rank)
	}
}

// checkClose: after it everything fails with ErrClosed, whether it was used before
// or not; a rank that leaves in good order is no failure to the others.
func checkClose(c *Case) {
	c.Job(3, Small, func(p *Peer) {
		s := &sink{receive: func(*conduits.Message) {}}
		p.attach(segment.PageSize, s)
		p.reserve(func() conduits.Status { return p.EP.Send((p.Rank+1)%3, conduits.Request, 1, nil) })
		p.Wait("a message", func() bool { return s.got[conduits.Request].Load() == 1 })
		p.Meet()
		if p.Rank != 1 {
			return
		}
		p.Must(p.EP.Close())
		closed := func(what string, err error) {
			p.C.Helper()
			if !errors.Is(err, conduits.ErrClosed) {
				p.Fatalf("%s after Close: error %v, want one that wraps %q", what, err, conduits.ErrClosed)
			}
		}
		closed("Err", p.EP.Err())
		b := make([]byte, 8)
		for dst := range 3 {
			_, err := post.Put(p.EP, dst, At(0), b, bothDone, 1)
			closed("Put", err)
			_, err = post.Get(p.EP, b, dst, At(0), bothDone, 1)
			closed("Get", err)
			_, err = post.PutWord(p.EP, dst, At(0), 1, 8, bothDone, 1)
			closed("PutWord", err)
			_, _, err = post.Atomic(p.EP, dst, At(0), conduits.AtomicAdd, conduits.Uint64, 1, 0, 1)
			closed("Atomic", err)
			for what, send := range map[string]func() conduits.Status{
				"Send":        func() conduits.Status { return p.EP.Send(dst, conduits.Request, 1, nil) },
				"SendPayload": func() conduits.Status { return p.EP.SendPayload(dst, conduits.Request, 1, nil, b, 0) },
				"Reserve": func() conduits.Status {
					_, st := p.EP.Reserve(dst, conduits.Request, 1, 1)
					return st
				},
				"ReservePut": func() conduits.Status {
					_, _, st := p.EP.ReservePut(dst, conduits.Request, 1, At(0), b, 1)
					return st
				},
			} {
				st := conduits.NoCredit
				for i := 0; i < stubborn && st == conduits.NoCredit; i++ {
					st = send()
				}
				if st != conduits.Dead {
					p.Fatalf("%s to rank %d after Close: status %d", what, dst, st)
				}
			}
		}
		closed("Wait", conduits.Wait(p.EP, nil, func() bool { return false }))
		closed("Attach", p.EP.Attach(conduits.AttachConfig{Receiver: s}))
		if err := p.EP.Close(); err != nil {
			closed("Close", err)
		}
		p.EP.Wake(0) // no more than nothing
		var st conduits.Stats
		p.EP.Stats(&st)
		p.EP.Waiting()
	})
}

// checkCloseWakes: a goroutine that waits while another one closes the endpoint
// is told.
func checkCloseWakes(c *Case) {
	const threads = 3
	for range max(*flagRound/25, 1) {
		c.Job(1, conduits.Config{}, func(p *Peer) {
			p.attach(0, &sink{})
			var ended atomic.Int32
			for i := range threads {
				q := p.thread(i)
				conduits.Go(p.EP, func() {
					defer ended.Add(1)
					for range 4 {
						q.pause(true)
					}
					if i == 0 {
						if err := q.EP.Close(); err != nil {
							q.C.Errorf("close: %v", err)
						}
						return
					}
					q.ends()
				})
			}
			p.pause(true)
			p.ends()
			// Nothing can be waited for any more, in the manner of the endpoint.
			p.yield(func() bool { return ended.Load() == threads })
		})
		if c.Failed() {
			return
		}
	}
}

// ends sleeps until Close ends that.
func (p *Peer) ends() {
	if err := p.nap("nothing", func() bool { return false }); !errors.Is(err, conduits.ErrClosed) {
		p.C.Errorf("a wait that Close ended: error %v, want one that wraps %q", err, conduits.ErrClosed)
	}
}

// checkClosedPeer: a sender to a rank that has left is told, also one that sleeps
// for its credit when it leaves; no rank has failed.
func checkClosedPeer(c *Case) {
	for range max(*flagRound/50, 1) {
		c.Job(3, Small, func(p *Peer) {
			p.attach(0, &sink{receive: func(*conduits.Message) {}})
			if p.Rank == 1 {
				p.pause(true)
				p.Must(p.EP.Close())
				return
			}
			// Rank 1 may still poll a little, hence more than once.
			st := conduits.NoCredit
			for st != conduits.Dead {
				if err := p.nap("credit of a rank that leaves", func() bool {
					st = p.EP.Send(1, conduits.Request, 1, nil)
					return st != conduits.NoCredit
				}); err != nil {
					p.Fatalf("a rank that leaves is no failure: %v", err)
				}
			}
			if err := p.EP.Err(); err != nil {
				p.Fatalf("a rank that leaves is no failure: %v", err)
			}
			// The others are still there for each other.
			p.becomesDead(1)
		})
		if c.Failed() {
			return
		}
	}
}
