package contract

import (
	"encoding/binary"
	"errors"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/segment"
)

// moreChecks close holes that deliberate defects have shown, see
// internal/tools/mutants.
var moreChecks = []Check{
	{Name: "wait looks again", Run: checkWaitLooksAgain},
	{Name: "failure alone wakes", Seeded: true, Run: checkFailureAloneWakes},
	{Name: "credits under way", Run: checkCreditsUnderWay},
	{Name: "words whole", Run: checkWordsWhole},
	{Name: "words put whole", Run: checkWordsPutWhole, skip: func(o *Offer) string {
		switch {
		case conc.Race:
			return "a word is read while it is put"
		case o.Runner:
			return "ranks run one at a time"
		case (o.put&o.get)&conduits.RemoteDone == 0:
			return "nothing completes at once"
		}
		return ""
	}},
}

// failing is an endpoint of a job that has failed.
type failing struct{ conduits.Endpoint }

func (f failing) Abilities() conduits.Abilities { return conduits.Abilities{} }
func (f failing) Err() error                    { return &conduits.PeerError{Rank: 0, Err: conduits.ErrClosed} }

// checkWaitLooksAgain: Wait sleeps through nothing that happens in the last
// moment before it announces itself: neither a condition that comes true, nor an
// arrival, nor a failure of the job.
func checkWaitLooksAgain(c *Case) {
	c.Job(1, conduits.Config{}, func(p *Peer) {
		p.attach(0, &sink{})
		held := false
		e := &Tardy{Endpoint: p.EP, Change: func() { held = true }}
		p.Must(conduits.Wait(e, nil, func() bool { return held }))
		if e.Armed != 1 || e.Parked != 0 {
			p.Fatalf("Wait armed %d times and parked %d times for a condition that came true before it armed", e.Armed, e.Parked)
		}
		e = &Tardy{Endpoint: p.EP, Change: func() {}}
		p.Must(conduits.Wait(e, nil, func() bool { return e.Parked > 0 }))
		if !e.polled {
			p.Fatalf("Wait parked without having polled since it armed")
		}
		e = &Tardy{Endpoint: failing{p.EP}, Change: func() {}}
		e.Change = func() {
			if e.Armed > 3 {
				p.Fatalf("Wait goes on in a job that has failed")
			}
		}
		if err := conduits.Wait(e, nil, func() bool { return false }); err == nil || e.Parked != 0 {
			p.Fatalf("Wait parked %d times and returned %v in a job that has failed", e.Parked, err)
		}
	})
}

// Idle polls, and lets others run, until cond holds; false means that it never
// will: the watch has ended the job, or, where the conduit runs the ranks, nothing
// happens any more. It is for a rank that must not sleep, since it has failed, and
// whose leaving would wake the others.
func (p *Peer) Idle(cond func() bool) bool {
	for polls := 0; !cond(); polls++ {
		p.EP.Poll()
		p.yieldOnce()
		if p.C.Failed() || p.C.Offer.Runner && polls > 1e6 {
			return false
		}
	}
	return true
}

// checkFailureAloneWakes: a failure ends waits although the rank that failed has
// not left.
func checkFailureAloneWakes(c *Case) {
	const n = 3
	for round := range 20 {
		var ended atomic.Int32
		var beds [n - 1]Bed
		c.Job(n, Small, func(p *Peer) {
			p.attach(0, &sink{})
			if p.Rank == n-1 {
				for i := range beds {
					if round%2 == 0 { // else they may not sleep yet
						beds[i].Watch(func() {
							p.EP.Poll()
							p.yieldOnce()
						}, func() bool { return p.EP.Err() != nil })
					}
				}
				p.EP.Fail(errors.New("the disk is full"))
				if !p.Idle(func() bool { return ended.Load() == n-1 }) {
					p.C.Errorf("%d of %d ranks sleep on in a job that has failed", n-1-ended.Load(), n-1)
				}
				return
			}
			beds[p.Rank].Lie(p.EP)
			var err error
			if p.Rank == 0 {
				err = p.nap("nothing", func() bool { return false })
			} else {
				err = conduits.Wait(p.EP, nil, func() bool { return false })
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
func checkCreditsUnderWay(c *Case) {
	// A conduit may have taken messages in that the Receiver has not seen, such as
	// those that it keeps on purpose.
	const rounds, slack = 500, 200
	var sent, handled, allowed atomic.Int64
	c.Job(2, Small, func(p *Peer) {
		s := &sink{}
		s.receive = func(*conduits.Message) {
			s.await("leave to go on", func() bool { return allowed.Load() > handled.Load() })
			handled.Add(1)
			p.nudge(0)
		}
		p.attach(0, s)
		if p.Rank == 1 {
			p.Wait("all messages", func() bool { return allowed.Load() > rounds && handled.Load() == sent.Load() })
			p.Meet()
			return
		}
		most := int64(2*p.EP.Limits().Credits + slack)
		for r := range int64(rounds) {
			for tries := 0; tries < 10; tries++ {
				switch p.EP.Send(1, conduits.Request, 1, nil) {
				case conduits.Ready:
					sent.Add(1)
					tries = 0
				case conduits.Dead:
					p.Must(p.EP.Err())
					p.Fatalf("the receiver is dead")
				}
				if under := sent.Load() - r; under > most {
					p.Fatalf("%d messages are under way when %d have been consumed; limits %+v", under, r, p.EP.Limits())
				}
				p.EP.Poll()
			}
			if sent.Load() == r { // nothing is under way, so there must be credit
				p.reserve(func() conduits.Status { return p.EP.Send(1, conduits.Request, 1, nil) })
				sent.Add(1)
			}
			allowed.Store(r + 1)
			p.nudge(1)
			p.Wait("a message to be consumed", func() bool { return handled.Load() == r+1 })
		}
		allowed.Store(1 << 40)
		p.nudge(1)
		p.Meet()
	})
}

// checkWordsWhole: a message that is seen is there as a whole: words and payload
// come before what tells of them. Two ranks that watch for each other's next
// message look at it as early as can be.
func checkWordsWhole(c *Case) {
	rounds := uint32(*flagRound)
	c.Job(2, Small, func(p *Peer) {
		got := uint32(0)
		b := make([]byte, 512)
		p.attach(0, &sink{receive: func(m *conduits.Message) {
			got++
			i := got*2 - uint32(p.Rank) // its round
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
			if k := Wrong(m.Payload, uint64(i), 0); k >= 0 {
				p.Errorf("round %d: byte %d of %d is wrong", i, k, len(m.Payload))
			}
		}})
		var words [conduits.MaxWords]uint32
		for i := uint32(1); i <= rounds; i++ {
			if i%2 == uint32(p.Rank) {
				p.Wait("a message", func() bool { return got == (i+uint32(p.Rank))/2 })
				continue
			}
			for k := range words {
				words[k] = i + uint32(k)
			}
			w, n := words[:wholeWords(i)], Fill(b[:wholeBytes(i)], uint64(i), 0)
			p.reserve(func() conduits.Status {
				if len(n) > 0 {
					return p.EP.SendPayload(1-p.Rank, conduits.Request, 1, w, n, 0)
				}
				return p.EP.Send(1-p.Rank, conduits.Request, 1, w)
			})
		}
		p.Meet()
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
func checkWordsPutWhole(c *Case) {
	const most, enough = 3_000_000, 20_000
	var over atomic.Bool
	var changes atomic.Int64
	c.Job(2, conduits.Config{}, func(p *Peer) {
		p.attach(segment.PageSize, &sink{})
		var b [8]byte
		switch p.Rank {
		case 0:
			for i := range most {
				if i%256 == 0 && (changes.Load() >= enough || p.EP.Err() != nil) {
					break
				}
				for k := range b {
					b[k] = byte(i)
				}
				if _, err := post.Put(p.EP, 1, At(8), b[:], 0, 0); err != nil {
					p.Errorf("put: %v", err)
					break
				}
			}
			over.Store(true)
		case 1:
			for last := uint64(0); !over.Load() && p.EP.Err() == nil; {
				_, err := post.Get(p.EP, b[:], 1, At(8), conduits.RemoteDone, 0)
				if err != nil {
					p.Fatalf("get: %v", err)
				}
				v := binary.NativeEndian.Uint64(b[:])
				if v != v&0xff*0x0101010101010101 {
					p.Fatalf("a word that was not put: %#x", v)
				}
				if v != last {
					last = v
					changes.Add(1)
				}
			}
		}
		p.Meet()
	})
}
