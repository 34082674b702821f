package conduittest

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// A wake-up that is missed is a hang, which ctx.watch reports.
var wakeChecks = []check{
	{name: "wake by message", seeded: true, run: checkWakeByMessage},
	{name: "wake by reply", seeded: true, run: checkWakeByReply},
	{name: "wake by many", seeded: true, run: checkWakeByMany},
	{name: "wake by credit", seeded: true, run: checkWakeByCredit},
	{name: "wake by credit for replies", seeded: true, run: checkWakeByReplyCredit},
	{name: "wake by completion", seeded: true, run: checkWakeByCompletion},
	{name: "wake by memory", seeded: true, run: checkWakeByMemory, skip: func(*offer) string {
		if raceEnabled {
			return "a word is read while it is put"
		}
		return ""
	}},
	{name: "wake by a peer", seeded: true, run: checkWakeByPeer},
	{name: "wake by a sibling", seeded: true, run: checkWakeBySibling},
	{name: "wake of siblings", seeded: true, run: checkWakeOfSiblings},
	{name: "waiting", run: checkWaiting},
	{name: "disarm", run: checkDisarm},
}

// nap is conduits.Wait without its spinning: it parks at once, with pauses
// between all its steps.
func (p *peer) nap(what string, cond func() bool) error {
	defer p.step()
	for !cond() {
		p.pause(true)
		t := p.ep.Arm(waiting(what))
		p.pause(true)
		if cond() {
			p.ep.Disarm(t)
			return nil
		}
		p.pause(false)
		if p.ep.Poll() > 0 {
			p.ep.Disarm(t)
			continue
		}
		if err := p.ep.Err(); err != nil {
			p.ep.Disarm(t)
			return err
		}
		p.pause(false)
		p.ep.Park(t)
	}
	return nil
}

// sleep is nap that must not fail.
func (p *peer) sleep(what string, cond func() bool) {
	p.c.Helper()
	p.must(p.nap(what, cond))
}

// deliver sends a short message, parking for credit.
func (p *peer) deliver(dst int, words ...uint32) {
	p.c.Helper()
	st := conduits.NoCredit
	p.sleep("credit", func() bool {
		st = p.ep.Send(dst, conduits.Request, 1, words)
		return st != conduits.NoCredit
	})
	if st != conduits.Ready {
		p.must(p.ep.Err())
		p.Fatalf("status %d", st)
	}
}

// slept checks that somebody did: else a wake check checks nothing.
func (p *peer) slept() {
	p.c.Helper()
	var s conduits.Stats
	p.ep.Stats(&s)
	if s.Parks == 0 {
		p.c.Logf("rank %d has never slept", p.rank)
	}
}

// checkWakeByMessage bounces a message between two ranks, by each way to send.
func checkWakeByMessage(c *ctx) {
	rounds := *flagRound
	c.run(2, small, func(p *peer) {
		got := 0
		p.attach(segment.PageSize, &sink{
			receive:  func(*conduits.Message) { got++ },
			complete: func(uint64, conduits.Event, uint64, error) {}, // sources of no bytes
		})
		payload := make([]byte, 400)
		for i := range rounds {
			if i%2 == p.rank {
				p.pause(true)
				st := conduits.NoCredit
				p.sleep("credit", func() bool {
					var slot conduits.Slot
					switch i / 2 % 4 {
					case 0:
						st = p.ep.Send(1-p.rank, conduits.Request, 1, []uint32{1})
					case 1:
						st = p.ep.SendPayload(1-p.rank, conduits.Request, 1, nil, payload)
					case 2:
						if slot, st = p.ep.Reserve(1-p.rank, conduits.Request, 1, i%400); st == conduits.Ready {
							p.pause(false)
							p.ep.Commit(1-p.rank, conduits.Request, slot, 1, 0)
						}
					case 3:
						if slot, _, st = p.ep.ReservePut(1-p.rank, conduits.Request, 1, at(0), nil, 0); st == conduits.Ready {
							p.pause(false)
							p.ep.Commit(1-p.rank, conduits.Request, slot, 1, 0)
						}
					}
					return st != conduits.NoCredit
				})
				if st != conduits.Ready {
					p.Fatalf("round %d: status %d", i, st)
				}
			} else {
				p.sleep(fmt.Sprintf("the message of round %d", i), func() bool { return got == (i+1+p.rank)/2 })
			}
		}
		p.slept()
		p.meet()
	})
}

// checkWakeByReply has both of two ranks ask and park for the answer.
func checkWakeByReply(c *ctx) {
	rounds := *flagRound / 2
	c.run(2, small, func(p *peer) {
		replies := 0
		s := &sink{}
		s.receive = func(m *conduits.Message) {
			if m.Class == conduits.Reply {
				replies++
				return
			}
			p.pause(false)
			s.await("credit for a reply", func() bool { return p.ep.Send(m.Src, conduits.Reply, 1, m.Words) != conduits.NoCredit })
		}
		p.attach(0, s)
		for i := range rounds {
			p.deliver(1-p.rank, uint32(i))
			p.sleep(fmt.Sprintf("reply %d", i), func() bool { return replies == i+1 })
			p.pause(true)
		}
		p.meet()
	})
}

// checkWakeByMany has more senders than a poll may look at, each of which sends
// one message a round.
func checkWakeByMany(c *ctx) {
	const n = 17
	rounds := *flagRound / 50
	c.run(n, small, func(p *peer) {
		got := 0
		p.attach(0, &sink{receive: func(*conduits.Message) { got++ }})
		for i := range rounds {
			if p.rank != 0 {
				p.pause(true)
				p.deliver(0, uint32(i))
				p.sleep("rank 0", func() bool { return got == i+1 })
				continue
			}
			p.sleep(fmt.Sprintf("%d messages of round %d", n-1, i), func() bool { return got == (i+1)*(n-1) })
			for dst := 1; dst < n; dst++ {
				p.deliver(dst)
			}
		}
		p.meet()
	})
}

// checkWakeByCredit has two senders park for credit of a receiver that parks for
// messages, of all sizes.
func checkWakeByCredit(c *ctx) {
	rounds := *flagRound
	for _, payload := range []int{0, 30, 512} {
		c.run(3, small, func(p *peer) {
			got := 0
			p.attach(0, &sink{receive: func(*conduits.Message) { got++ }})
			if p.rank == 0 {
				p.sleep("messages", func() bool { return got == 2*rounds })
			} else {
				b := make([]byte, payload)
				for i := range rounds {
					p.sleep(fmt.Sprintf("credit for message %d", i), func() bool {
						if payload == 0 {
							return p.ep.Send(0, conduits.Request, 1, nil) != conduits.NoCredit
						}
						return p.ep.SendPayload(0, conduits.Request, 1, nil, b) != conduits.NoCredit
					})
				}
			}
			p.meet()
		})
	}
}

// checkWakeByReplyCredit has a handler park for credit of a requester that is
// asleep, or busy, while its replies arrive.
func checkWakeByReplyCredit(c *ctx) {
	rounds := *flagRound
	c.run(2, small, func(p *peer) {
		replies := 0
		s := &sink{}
		b := make([]byte, 500)
		s.receive = func(m *conduits.Message) {
			if m.Class == conduits.Reply {
				replies++
				return
			}
			for {
				send := func() bool { return p.ep.SendPayload(m.Src, conduits.Reply, 1, nil, b) != conduits.NoCredit }
				if send() {
					return
				}
				p.pause(false)
				t := p.ep.Arm(waiting("credit for a reply"))
				p.pause(false)
				if send() {
					p.ep.Disarm(t)
					return
				}
				if s.pollReplies() > 0 {
					p.ep.Disarm(t)
					continue
				}
				if p.ep.Err() != nil {
					p.ep.Disarm(t)
					return
				}
				p.pause(false)
				p.ep.Park(t)
			}
		}
		p.attach(0, s)
		for i := 0; i < rounds; {
			for range min(1+p.rng.IntN(6), rounds-i) {
				p.deliver(1 - p.rank)
				i++
			}
			p.pause(true)
			p.sleep("replies", func() bool { return replies >= i-p.rng.IntN(4) })
		}
		p.sleep("all replies", func() bool { return replies == rounds })
		p.meet()
	})
}

// checkWakeByCompletion parks for the completion of each operation.
func checkWakeByCompletion(c *ctx) {
	rounds := *flagRound / 2
	c.run(2, conduits.Config{}, func(p *peer) {
		r := newRMA(p)
		p.attach(2*segment.PageSize, &r.sink)
		b := make([]byte, 8)
		for i := range rounds {
			to := at(p.rank*segment.PageSize + i%512*8)
			var o *op
			switch i % 4 {
			case 0:
				o = r.put(1-p.rank, to, uint64(i), 8, []conduits.Event{bothDone, conduits.SourceDone, conduits.RemoteDone}[i/4%3])
			case 1:
				o = r.get(b, 1-p.rank, to, conduits.RemoteDone)
			case 2:
				o = r.putWord(1-p.rank, to, uint64(i), 8, conduits.RemoteDone)
			case 3:
				o = r.beginAtomic(1-p.rank, to, conduits.AtomicAdd, conduits.Uint64, 1, 0)
			}
			p.sleep("a completion", func() bool { return !r.pending(o, bothDone) })
		}
		p.meet()
	})
}

// checkWakeByMemory has two ranks park for a word of their own segments that the
// other one puts, by each operation that changes memory.
func checkWakeByMemory(c *ctx) {
	rounds := uint64(*flagRound / 2)
	c.run(2, conduits.Config{}, func(p *peer) {
		r := newRMA(p)
		p.attach(segment.PageSize, &r.sink)
		clear(memory(p.ep, p.rank, at(0), 64))
		p.meet()
		for i := range rounds {
			if i%2 != uint64(p.rank) {
				p.sleep(fmt.Sprintf("word %d", i+1), func() bool { return atomic.LoadUint64(word(p.ep, p.rank, at(8))) == i+1 })
				continue
			}
			p.pause(true)
			switch i / 2 % 3 {
			case 0:
				r.await(r.putBytes(1-p.rank, at(8), nativeWord(i+1, 8)))
			case 1:
				r.await(r.putWord(1-p.rank, at(8), i+1, 8, bothDone))
			case 2:
				r.atomic(1-p.rank, at(8), conduits.AtomicStore, conduits.Uint64, i+1, 0)
			}
		}
		p.meet()
	})
}

// checkWakeByPeer has ranks take turns by a word in memory and Wake.
func checkWakeByPeer(c *ctx) {
	rounds := int64(*flagRound)
	for _, n := range []int{2, 3} {
		var turn atomic.Int64
		c.run(n, conduits.Config{}, func(p *peer) {
			p.attach(0, &sink{})
			for {
				p.sleep("its turn", func() bool { t := turn.Load(); return t >= rounds || t%int64(n) == int64(p.rank) })
				if turn.Load() >= rounds {
					break
				}
				p.pause(true)
				t := turn.Add(1)
				p.pause(false)
				if t < rounds {
					p.nudge((p.rank + 1) % n)
					continue
				}
				for r := range n {
					p.nudge(r)
				}
			}
			p.slept()
			p.meet()
		})
	}
}

// checkWakeBySibling has goroutines of one rank take turns.
func checkWakeBySibling(c *ctx) {
	const threads = 3
	rounds := int64(*flagRound)
	for _, n := range []int{1, 2} {
		c.run(n, conduits.Config{}, func(p *peer) {
			p.attach(0, &sink{})
			var turn atomic.Int64
			p.threads(threads, func(i int) {
				q := p.thread(i)
				for {
					q.sleep("its turn", func() bool { t := turn.Load(); return t >= rounds || t%threads == int64(i) })
					if turn.Load() >= rounds {
						return
					}
					q.pause(true)
					turn.Add(1)
					q.pause(false)
					q.ep.Wake(q.rank)
				}
			})
			p.meet()
		})
	}
}

// thread is p for goroutine i of its rank.
func (p *peer) thread(i int) *peer {
	q := *p
	q.rng = p.c.random(uint64(p.rank), uint64(i))
	return &q
}

// checkWakeOfSiblings has several goroutines of one rank sleep for messages that
// any of them may be the one to run.
func checkWakeOfSiblings(c *ctx) {
	const threads = 3
	rounds := *flagRound / threads
	c.run(2, conduits.Config{}, func(p *peer) {
		var got [threads]atomic.Int64
		p.attach(0, &sink{receive: func(m *conduits.Message) {
			if len(m.Words) != 1 || m.Words[0] >= threads {
				p.Errorf("a message that nobody sent: words %v", m.Words)
				return
			}
			got[m.Words[0]].Add(1)
		}})
		p.threads(threads, func(k int) {
			q := p.thread(k)
			for i := range rounds {
				if i%2 == q.rank {
					q.pause(true)
					q.deliver(1-q.rank, uint32(k))
				} else {
					q.sleep(fmt.Sprintf("message %d of thread %d", i, k), func() bool { return got[k].Load() == int64((i+1+q.rank)/2) })
				}
			}
		})
		p.meet()
	})
}

// checkWaiting: who is parked is listed with what for, and is not afterwards; all
// of them wake.
func checkWaiting(c *ctx) {
	const threads = 4
	c.run(2, conduits.Config{}, func(p *peer) {
		p.attach(0, &sink{})
		for range 5 {
			var over atomic.Bool
			listed := func() int {
				n := 0
				for i := range threads {
					for _, b := range p.ep.Waiting() {
						if b != nil && strings.HasSuffix(b.Blocked(), fmt.Sprintf("thread %d", i)) {
							n++
							break
						}
					}
				}
				return n
			}
			p.threads(threads+1, func(i int) {
				q := p.thread(i)
				if i < threads {
					q.sleep(fmt.Sprintf("thread %d", i), over.Load)
					return
				}
				for listed() < threads && p.ep.Err() == nil {
					p.ep.Poll()
					p.yieldOnce()
				}
				over.Store(true)
				p.ep.Wake(p.rank)
			})
			if n := listed(); n != 0 {
				p.Fatalf("%d goroutines that wait no more are listed", n)
			}
			p.meet()
		}
	})
}

// checkDisarm: announcements can be taken back, in any order, and do no harm to
// those that stay.
func checkDisarm(c *ctx) {
	c.run(2, conduits.Config{}, func(p *peer) {
		got := 0
		p.attach(0, &sink{receive: func(*conduits.Message) { got++ }})
		for i := range 50 {
			var tickets [6]conduits.Ticket
			for j := range tickets {
				tickets[j] = p.ep.Arm(waiting(fmt.Sprint("ticket ", j)))
			}
			order := p.rng.Perm(len(tickets))
			for _, j := range order[1:] {
				p.ep.Disarm(tickets[j])
			}
			left := order[0]
			// Who has announced itself need not be listed before it parks.
			if w := p.ep.Waiting(); len(w) > 1 || len(w) == 1 && w[0].Blocked() != waiting(fmt.Sprint("ticket ", left)).Blocked() {
				p.Fatalf("%d announcements, want 1", len(w))
			}
			want := (i + 1 + p.rank) / 2
			switch {
			case i%2 == p.rank:
				p.ep.Disarm(tickets[left])
				p.reserve(func() conduits.Status { return p.ep.Send(1-p.rank, conduits.Request, 1, nil) })
			case got == want || p.ep.Poll() > 0:
				p.ep.Disarm(tickets[left])
			default:
				p.ep.Park(tickets[left]) // must wake although the others are disarmed
			}
			if i%2 != p.rank {
				p.wait("a message", func() bool { return got == want })
			}
			if w := p.ep.Waiting(); len(w) != 0 {
				p.Fatalf("%d announcements are left", len(w))
			}
		}
		p.meet()
	})
}
