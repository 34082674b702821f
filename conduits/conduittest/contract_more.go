package conduittest

import (
	"encoding/binary"
	"errors"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// moreChecks close holes that deliberate defects have shown, see the folder
// mutants.
var moreChecks = []check{
	{name: "wait looks again", run: checkWaitLooksAgain},
	{name: "failure alone wakes", seeded: true, run: checkFailureAloneWakes},
	{name: "credits under way", run: checkCreditsUnderWay},
	{name: "words whole", run: checkWordsWhole},
	{name: "words put whole", run: checkWordsPutWhole, skip: func(o *offer) string {
		switch {
		case raceEnabled:
			return "a word is read while it is put"
		case o.runner:
			return "ranks run one at a time"
		case (o.put&o.get)&conduits.RemoteDone == 0:
			return "nothing completes at once"
		}
		return ""
	}},
}

// tardy is an endpoint with a change between the last look of who waits and its
// announcement, too early for the wake-up that follows the change to find it.
// It must be found by looking once more. It does not sleep.
type tardy struct {
	conduits.Endpoint
	change        func() // just before the announcement
	polled        bool   // since then
	armed, parked int
}

func (e *tardy) Idle(int) bool { return false }

func (e *tardy) Arm(b conduits.Blocked) conduits.Ticket {
	e.change()
	e.armed++
	e.polled = false
	return e.Endpoint.Arm(b)
}

func (e *tardy) Poll() int {
	e.polled = true
	return e.Endpoint.Poll()
}

func (e *tardy) Park(t conduits.Ticket) {
	e.parked++
	e.Disarm(t)
}

// failing is an endpoint of a job that has failed.
type failing struct{ conduits.Endpoint }

func (f failing) Err() error { return &conduits.PeerError{Rank: 0, Err: conduits.ErrClosed} }

// checkWaitLooksAgain: Wait sleeps through nothing that happens in the last
// moment before it announces itself: neither a condition that comes true, nor an
// arrival, nor a failure of the job.
func checkWaitLooksAgain(c *ctx) {
	c.run(1, conduits.Config{}, func(p *peer) {
		p.attach(0, &sink{})
		held := false
		e := &tardy{Endpoint: p.ep, change: func() { held = true }}
		p.must(conduits.Wait(e, nil, func() bool { return held }))
		if e.armed != 1 || e.parked != 0 {
			p.Fatalf("Wait armed %d times and parked %d times for a condition that came true before it armed", e.armed, e.parked)
		}
		e = &tardy{Endpoint: p.ep, change: func() {}}
		p.must(conduits.Wait(e, nil, func() bool { return e.parked > 0 }))
		if !e.polled {
			p.Fatalf("Wait parked without having polled since it armed")
		}
		e = &tardy{Endpoint: failing{p.ep}, change: func() {}}
		e.change = func() {
			if e.armed > 3 {
				p.Fatalf("Wait goes on in a job that has failed")
			}
		}
		if err := conduits.Wait(e, nil, func() bool { return false }); err == nil || e.parked != 0 {
			p.Fatalf("Wait parked %d times and returned %v in a job that has failed", e.parked, err)
		}
	})
}

// idle polls, and lets others run, until cond holds; false means that it never
// will: the watch has ended the job, or, where the conduit runs the ranks, nothing
// happens any more. It is for a rank that must not sleep, since it has failed, and
// whose leaving would wake the others.
func (p *peer) idle(cond func() bool) bool {
	for polls := 0; !cond(); polls++ {
		p.ep.Poll()
		p.yieldOnce()
		if p.c.Failed() || p.c.offer.runner && polls > 1e6 {
			return false
		}
	}
	return true
}

// checkFailureAloneWakes: a failure ends waits although the rank that failed has
// not left.
func checkFailureAloneWakes(c *ctx) {
	const n = 3
	for round := range 20 {
		var ended atomic.Int32
		var beds [n - 1]bed
		c.run(n, small, func(p *peer) {
			p.attach(0, &sink{})
			if p.rank == n-1 {
				for i := range beds {
					if round%2 == 0 { // else they may not sleep yet
						beds[i].watch(func() {
							p.ep.Poll()
							p.yieldOnce()
						}, func() bool { return p.ep.Err() != nil })
					}
				}
				p.ep.Fail(errors.New("the disk is full"))
				if !p.idle(func() bool { return ended.Load() == n-1 }) {
					p.c.Errorf("%d of %d ranks sleep on in a job that has failed", n-1-ended.Load(), n-1)
				}
				return
			}
			beds[p.rank].lie(p.ep)
			var err error
			if p.rank == 0 {
				err = p.nap("nothing", func() bool { return false })
			} else {
				err = conduits.Wait(p.ep, nil, func() bool { return false })
			}
			ended.Add(1)
			p.blames(err, n-1, "the disk is full")
		})
		if c.Failed() {
			return
		}
	}
}

// checkCreditsUnderWay: however many messages have been consumed, no more are
// under way than Limits say. A receiver consumes one message at a time, each
// when the sender has found no credit again.
func checkCreditsUnderWay(c *ctx) {
	// A conduit may have taken messages in that the Receiver has not seen, such as
	// those that it keeps on purpose.
	const rounds, slack = 500, 200
	var sent, handled, allowed atomic.Int64
	c.run(2, small, func(p *peer) {
		s := &sink{}
		s.receive = func(*conduits.Message) {
			s.await("leave to go on", func() bool { return allowed.Load() > handled.Load() })
			handled.Add(1)
			p.nudge(0)
		}
		p.attach(0, s)
		if p.rank == 1 {
			p.wait("all messages", func() bool { return allowed.Load() > rounds && handled.Load() == sent.Load() })
			p.meet()
			return
		}
		most := int64(2*p.ep.Limits().Credits + slack)
		for r := range int64(rounds) {
			for tries := 0; tries < 10; tries++ {
				switch p.ep.Send(1, conduits.Request, 1, nil) {
				case conduits.Ready:
					sent.Add(1)
					tries = 0
				case conduits.Dead:
					p.must(p.ep.Err())
					p.Fatalf("the receiver is dead")
				}
				if under := sent.Load() - r; under > most {
					p.Fatalf("%d messages are under way when %d have been consumed; limits %+v", under, r, p.ep.Limits())
				}
				p.ep.Poll()
			}
			if sent.Load() == r { // nothing is under way, so there must be credit
				p.reserve(func() conduits.Status { return p.ep.Send(1, conduits.Request, 1, nil) })
				sent.Add(1)
			}
			allowed.Store(r + 1)
			p.nudge(1)
			p.wait("a message to be consumed", func() bool { return handled.Load() == r+1 })
		}
		allowed.Store(1 << 40)
		p.nudge(1)
		p.meet()
	})
}

// checkWordsWhole: a message that is seen is there as a whole: words and payload
// come before what tells of them. Two ranks that watch for each other's next
// message look at it as early as can be.
func checkWordsWhole(c *ctx) {
	rounds := uint32(*flagRound)
	c.run(2, small, func(p *peer) {
		got := uint32(0)
		b := make([]byte, 512)
		p.attach(0, &sink{receive: func(m *conduits.Message) {
			got++
			i := got*2 - uint32(p.rank) // its round
			if len(m.Words) != wholeWords(i) || len(m.Payload) != wholeBytes(i) {
				p.Errorf("round %d: %d words and %d bytes", i, len(m.Words), len(m.Payload))
				return
			}
			for k, w := range m.Words {
				if w != i+uint32(k) {
					p.Errorf("round %d: word %d of %d is %#x, want %#x", i, k, len(m.Words), w, i+uint32(k))
					return
				}
			}
			if k := wrong(m.Payload, uint64(i), 0); k >= 0 {
				p.Errorf("round %d: byte %d of %d is wrong", i, k, len(m.Payload))
			}
		}})
		var words [conduits.MaxWords]uint32
		for i := uint32(1); i <= rounds; i++ {
			if i%2 == uint32(p.rank) {
				p.wait("a message", func() bool { return got == (i+uint32(p.rank))/2 })
				continue
			}
			for k := range words {
				words[k] = i + uint32(k)
			}
			w, n := words[:wholeWords(i)], fill(b[:wholeBytes(i)], uint64(i), 0)
			p.reserve(func() conduits.Status {
				if len(n) > 0 {
					return p.ep.SendPayload(1-p.rank, conduits.Request, 1, w, n)
				}
				return p.ep.Send(1-p.rank, conduits.Request, 1, w)
			})
		}
		p.meet()
	})
}

// wholeWords and wholeBytes are the lengths of the message of a round of checkWordsWhole.
func wholeWords(i uint32) int { return int(i/2) % (conduits.MaxWords + 1) }

func wholeBytes(i uint32) int {
	if i/64%2 == 0 {
		return 0
	}
	return int(i*7) % 512
}

// checkWordsPutWhole is the check of whole words with as little as can be around
// its operations, for conduits whose puts and gets take not much longer than the
// processor's stores and loads. It goes on until the reader has seen so many
// changes that reader and writer must have run at the same time, or gives up.
func checkWordsPutWhole(c *ctx) {
	const most, enough = 3_000_000, 20_000
	var over atomic.Bool
	var changes atomic.Int64
	c.run(2, conduits.Config{}, func(p *peer) {
		p.attach(segment.PageSize, &sink{})
		var b [8]byte
		switch p.rank {
		case 0:
			for i := range most {
				if i%256 == 0 && (changes.Load() >= enough || p.ep.Err() != nil) {
					break
				}
				for k := range b {
					b[k] = byte(i)
				}
				if _, err := p.ep.Put(1, at(8), b[:], 0, 0); err != nil {
					p.Errorf("put: %v", err)
					break
				}
			}
			over.Store(true)
		case 1:
			for last := uint64(0); !over.Load() && p.ep.Err() == nil; {
				_, err := p.ep.Get(b[:], 1, at(8), conduits.RemoteDone, 0)
				if err != nil {
					p.Fatalf("get: %v", err)
				}
				v := binary.NativeEndian.Uint64(b[:])
				if v != v&0xff*0x0101010101010101 {
					p.Fatalf("a word that nobody put: %#x", v)
				}
				if v != last {
					last = v
					changes.Add(1)
				}
			}
		}
		p.meet()
	})
}
