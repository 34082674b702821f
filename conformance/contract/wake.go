package contract

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/segment"
)

// A wake-up that is missed is a hang, which ctx.watch reports.
var wakeChecks = []Check{
	{Name: "wake by message", Seeded: true, Run: checkWakeByMessage},
	{Name: "wake by reply", Seeded: true, Run: checkWakeByReply},
	{Name: "wake by many", Seeded: true, Run: checkWakeByMany},
	{Name: "wake by credit", Seeded: true, Run: checkWakeByCredit},
	{Name: "wake by credit for replies", Seeded: true, Run: checkWakeByReplyCredit},
	{Name: "wake by completion", Seeded: true, Run: checkWakeByCompletion},
	{Name: "wake by memory", Seeded: true, Run: checkWakeByMemory, skip: func(*Offer) string {
		if conc.Race {
			return "a word is read while it is put"
		}
		return ""
	}},
	{Name: "wake by a peer", Seeded: true, Run: checkWakeByPeer},
	{Name: "wake by a sibling", Seeded: true, Run: checkWakeBySibling},
	{Name: "wake of siblings", Seeded: true, Run: checkWakeOfSiblings},
	{Name: "waiting", Run: checkWaiting},
	{Name: "disarm", Run: checkDisarm},
}

// nap is conduits.Wait without its spinning: it parks at once, with pauses
// between all its steps.
func (p *Peer) nap(what string, cond func() bool) error {
	defer p.step()
	for !cond() {
		p.pause(true)
		t := p.EP.Arm(Waiting(what))
		p.pause(true)
		if cond() {
			p.EP.Disarm(t)
			return nil
		}
		p.pause(false)
		if p.EP.Poll() > 0 {
			p.EP.Disarm(t)
			continue
		}
		if err := p.EP.Err(); err != nil {
			p.EP.Disarm(t)
			return err
		}
		p.pause(false)
		p.EP.Park(t)
	}
	return nil
}

// sleep is nap that must not fail.
func (p *Peer) sleep(what string, cond func() bool) {
	p.C.Helper()
	p.Must(p.nap(what, cond))
}

// deliver sends a short message, parking for credit.
func (p *Peer) deliver(dst int, words ...uint32) {
	p.C.Helper()
	st := conduits.NoCredit
	p.sleep("credit", func() bool {
		st = p.EP.Send(dst, conduits.Request, 1, words)
		return st != conduits.NoCredit
	})
	if st != conduits.Ready {
		p.Must(p.EP.Err())
		p.Fatalf("status %d", st)
	}
}

// slept checks that a goroutine did: else a wake check checks nothing.
func (p *Peer) slept() {
	p.C.Helper()
	var s conduits.Stats
	p.EP.Stats(&s)
	if s.Parks == 0 {
		p.C.Logf("rank %d has never slept", p.Rank)
	}
}

// checkWakeByMessage bounces a message between two ranks, by each way to send.
func checkWakeByMessage(c *Case) {
	rounds := *flagRound
	c.Job(2, Small, func(p *Peer) {
		got := 0
		p.attach(segment.PageSize, &sink{
			receive:  func(*conduits.Message) { got++ },
			complete: func(uint64, conduits.Event, uint64, error) {}, // sources of no bytes
		})
		payload := make([]byte, 400)
		for i := range rounds {
			if i%2 == p.Rank {
				p.pause(true)
				st := conduits.NoCredit
				p.sleep("credit", func() bool {
					var slot conduits.Slot
					switch i / 2 % 4 {
					case 0:
						st = p.EP.Send(1-p.Rank, conduits.Request, 1, []uint32{1})
					case 1:
						st = p.EP.SendPayload(1-p.Rank, conduits.Request, 1, nil, payload, 0)
					case 2:
						if slot, st = p.EP.Reserve(1-p.Rank, conduits.Request, 1, i%400); st == conduits.Ready {
							p.pause(false)
							p.EP.Commit(1-p.Rank, conduits.Request, slot, 1, 0)
						}
					case 3:
						if slot, _, st = p.EP.ReservePut(1-p.Rank, conduits.Request, 1, At(0), nil, 0); st == conduits.Ready {
							p.pause(false)
							p.EP.Commit(1-p.Rank, conduits.Request, slot, 1, 0)
						}
					}
					return st != conduits.NoCredit
				})
				if st != conduits.Ready {
					p.Fatalf("round %d: status %d", i, st)
				}
			} else {
				p.sleep(fmt.Sprintf("the message of round %d", i), func() bool { return got == (i+1+p.Rank)/2 })
			}
		}
		p.slept()
		p.Meet()
	})
}

// checkWakeByReply has both of two ranks ask and park for the answer.
func checkWakeByReply(c *Case) {
	rounds := *flagRound / 2
	c.Job(2, Small, func(p *Peer) {
		replies := 0
		s := &sink{}
		s.receive = func(m *conduits.Message) {
			if m.Class == conduits.Reply {
				replies++
				return
			}
			p.pause(false)
			s.await("credit for a reply", func() bool { return p.EP.Send(m.Src, conduits.Reply, 1, m.Words) != conduits.NoCredit })
		}
		p.attach(0, s)
		for i := range rounds {
			p.deliver(1-p.Rank, uint32(i))
			p.sleep(fmt.Sprintf("reply %d", i), func() bool { return replies == i+1 })
			p.pause(true)
		}
		p.Meet()
	})
}

// checkWakeByMany has more senders than a poll may look at, each of which sends
// one message a round.
func checkWakeByMany(c *Case) {
	const n = 17
	rounds := *flagRound / 50
	c.Job(n, Small, func(p *Peer) {
		got := 0
		p.attach(0, &sink{receive: func(*conduits.Message) { got++ }})
		for i := range rounds {
			if p.Rank != 0 {
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
		p.Meet()
	})
}

// checkWakeByCredit has two senders park for credit of a receiver that parks for
// messages, of all sizes.
func checkWakeByCredit(c *Case) {
	rounds := *flagRound
	for _, payload := range []int{0, 30, 512} {
		c.Job(3, Small, func(p *Peer) {
			got := 0
			p.attach(0, &sink{receive: func(*conduits.Message) { got++ }})
			if p.Rank == 0 {
				p.sleep("messages", func() bool { return got == 2*rounds })
			} else {
				b := make([]byte, payload)
				for i := range rounds {
					p.sleep(fmt.Sprintf("credit for message %d", i), func() bool {
						if payload == 0 {
							return p.EP.Send(0, conduits.Request, 1, nil) != conduits.NoCredit
						}
						return p.EP.SendPayload(0, conduits.Request, 1, nil, b, 0) != conduits.NoCredit
					})
				}
			}
			p.Meet()
		})
	}
}

// checkWakeByReplyCredit has a handler park for credit of a requester that is
// asleep, or busy, while its replies arrive.
func checkWakeByReplyCredit(c *Case) {
	rounds := *flagRound
	c.Job(2, Small, func(p *Peer) {
		replies := 0
		s := &sink{}
		b := make([]byte, 500)
		s.receive = func(m *conduits.Message) {
			if m.Class == conduits.Reply {
				replies++
				return
			}
			for {
				send := func() bool { return p.EP.SendPayload(m.Src, conduits.Reply, 1, nil, b, 0) != conduits.NoCredit }
				if send() {
					return
				}
				p.pause(false)
				t := p.EP.Arm(Waiting("credit for a reply"))
				p.pause(false)
				if send() {
					p.EP.Disarm(t)
					return
				}
				if s.pollReplies() > 0 {
					p.EP.Disarm(t)
					continue
				}
				if p.EP.Err() != nil {
					p.EP.Disarm(t)
					return
				}
				p.pause(false)
				p.EP.Park(t)
			}
		}
		p.attach(0, s)
		for i := 0; i < rounds; {
			for range min(1+p.RNG.IntN(6), rounds-i) {
				p.deliver(1 - p.Rank)
				i++
			}
			p.pause(true)
			p.sleep("replies", func() bool { return replies >= i-p.RNG.IntN(4) })
		}
		p.sleep("all replies", func() bool { return replies == rounds })
		p.Meet()
	})
}

// checkWakeByCompletion parks for the completion of each operation.
func checkWakeByCompletion(c *Case) {
	rounds := *flagRound / 2
	c.Job(2, conduits.Config{}, func(p *Peer) {
		r := newRMA(p)
		p.attach(2*segment.PageSize, &r.sink)
		b := make([]byte, 8)
		for i := range rounds {
			to := At(p.Rank*segment.PageSize + i%512*8)
			var o *op
			switch i % 4 {
			case 0:
				o = r.put(1-p.Rank, to, uint64(i), 8, []conduits.Event{bothDone, conduits.SourceDone, conduits.RemoteDone}[i/4%3])
			case 1:
				o = r.get(b, 1-p.Rank, to, conduits.RemoteDone)
			case 2:
				o = r.putWord(1-p.Rank, to, uint64(i), 8, conduits.RemoteDone)
			case 3:
				o = r.beginAtomic(1-p.Rank, to, conduits.AtomicAdd, conduits.Uint64, 1, 0)
			}
			p.sleep("a completion", func() bool { return !r.pending(o, bothDone) })
		}
		p.Meet()
	})
}

// checkWakeByMemory has two ranks park for a word of their own segments that the
// other one puts, by each operation that changes memory.
func checkWakeByMemory(c *Case) {
	rounds := uint64(*flagRound / 2)
	c.Job(2, conduits.Config{}, func(p *Peer) {
		r := newRMA(p)
		p.attach(segment.PageSize, &r.sink)
		clear(memory(p.EP, p.Rank, At(0), 64))
		p.Meet()
		for i := range rounds {
			if i%2 != uint64(p.Rank) {
				p.sleep(fmt.Sprintf("word %d", i+1), func() bool { return atomic.LoadUint64(word(p.EP, p.Rank, At(8))) == i+1 })
				continue
			}
			p.pause(true)
			switch i / 2 % 3 {
			case 0:
				r.await(r.putBytes(1-p.Rank, At(8), nativeWord(i+1, 8)))
			case 1:
				r.await(r.putWord(1-p.Rank, At(8), i+1, 8, bothDone))
			case 2:
				r.atomic(1-p.Rank, At(8), conduits.AtomicStore, conduits.Uint64, i+1, 0)
			}
		}
		p.Meet()
	})
}

// checkWakeByPeer has ranks take turns by a word in memory and Wake.
func checkWakeByPeer(c *Case) {
	rounds := int64(*flagRound)
	for _, n := range []int{2, 3} {
		var turn atomic.Int64
		c.Job(n, conduits.Config{}, func(p *Peer) {
			p.attach(0, &sink{})
			for {
				p.sleep("its turn", func() bool { t := turn.Load(); return t >= rounds || t%int64(n) == int64(p.Rank) })
				if turn.Load() >= rounds {
					break
				}
				p.pause(true)
				t := turn.Add(1)
				p.pause(false)
				if t < rounds {
					p.nudge((p.Rank + 1) % n)
					continue
				}
				for r := range n {
					p.nudge(r)
				}
			}
			p.slept()
			p.Meet()
		})
	}
}

// checkWakeBySibling has goroutines of one rank take turns.
func checkWakeBySibling(c *Case) {
	const threads = 3
	rounds := int64(*flagRound)
	for _, n := range []int{1, 2} {
		c.Job(n, conduits.Config{}, func(p *Peer) {
			p.attach(0, &sink{})
			var turn atomic.Int64
			p.Threads(threads, func(i int) {
				q := p.thread(i)
				for {
					q.sleep("its turn", func() bool { t := turn.Load(); return t >= rounds || t%threads == int64(i) })
					if turn.Load() >= rounds {
						return
					}
					q.pause(true)
					turn.Add(1)
					q.pause(false)
					q.EP.Wake(q.Rank)
				}
			})
			p.Meet()
		})
	}
}

// thread is p for goroutine i of its rank.
func (p *Peer) thread(i int) *Peer {
	q := *p
	q.RNG = p.C.Random(uint64(p.Rank), uint64(i))
	return &q
}

// checkWakeOfSiblings has several goroutines of one rank sleep for messages that
// any of them may be the one to run.
func checkWakeOfSiblings(c *Case) {
	const threads = 3
	rounds := *flagRound / threads
	c.Job(2, conduits.Config{}, func(p *Peer) {
		var got [threads]atomic.Int64
		p.attach(0, &sink{receive: func(m *conduits.Message) {
			if len(m.Words) != 1 || m.Words[0] >= threads {
				p.Errorf("a message that was not sent: words %v", m.Words)
				return
			}
			got[m.Words[0]].Add(1)
		}})
		p.Threads(threads, func(k int) {
			q := p.thread(k)
			for i := range rounds {
				if i%2 == q.Rank {
					q.pause(true)
					q.deliver(1-q.Rank, uint32(k))
				} else {
					q.sleep(fmt.Sprintf("message %d of thread %d", i, k), func() bool { return got[k].Load() == int64((i+1+q.Rank)/2) })
				}
			}
		})
		p.Meet()
	})
}

// checkWaiting: parked goroutines are listed with their reasons, and are not
// afterwards; all of them wake.
func checkWaiting(c *Case) {
	const threads = 4
	c.Job(2, conduits.Config{}, func(p *Peer) {
		p.attach(0, &sink{})
		for range 5 {
			var over atomic.Bool
			listed := func() int {
				n := 0
				for i := range threads {
					for _, b := range p.EP.Waiting() {
						if b != nil && strings.HasSuffix(b.Blocked(), fmt.Sprintf("thread %d", i)) {
							n++
							break
						}
					}
				}
				return n
			}
			p.Threads(threads+1, func(i int) {
				q := p.thread(i)
				if i < threads {
					q.sleep(fmt.Sprintf("thread %d", i), over.Load)
					return
				}
				for listed() < threads && p.EP.Err() == nil {
					p.EP.Poll()
					p.yieldOnce()
				}
				over.Store(true)
				p.EP.Wake(p.Rank)
			})
			if n := listed(); n != 0 {
				p.Fatalf("%d goroutines that wait no more are listed", n)
			}
			p.Meet()
		}
	})
}

// checkDisarm: announcements can be taken back, in any order, and do no harm to
// those that stay.
func checkDisarm(c *Case) {
	c.Job(2, conduits.Config{}, func(p *Peer) {
		got := 0
		p.attach(0, &sink{receive: func(*conduits.Message) { got++ }})
		for i := range 50 {
			var tickets [6]conduits.Ticket
			for j := range tickets {
				tickets[j] = p.EP.Arm(Waiting(fmt.Sprint("ticket ", j)))
			}
			order := p.RNG.Perm(len(tickets))
			for _, j := range order[1:] {
				p.EP.Disarm(tickets[j])
			}
			left := order[0]
			// A goroutine that has announced itself need not be listed before it parks.
			if w := p.EP.Waiting(); len(w) > 1 || len(w) == 1 && w[0].Blocked() != Waiting(fmt.Sprint("ticket ", left)).Blocked() {
				p.Fatalf("%d announcements, want 1", len(w))
			}
			want := (i + 1 + p.Rank) / 2
			switch {
			case i%2 == p.Rank:
				p.EP.Disarm(tickets[left])
				p.reserve(func() conduits.Status { return p.EP.Send(1-p.Rank, conduits.Request, 1, nil) })
			case got == want || p.EP.Poll() > 0:
				p.EP.Disarm(tickets[left])
			default:
				p.EP.Park(tickets[left]) // must wake although the others are disarmed
			}
			if i%2 != p.Rank {
				p.Wait("a message", func() bool { return got == want })
			}
			if w := p.EP.Waiting(); len(w) != 0 {
				p.Fatalf("%d announcements are left", len(w))
			}
		}
		p.Meet()
	})
}
