package contract

import (
	"runtime"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

var messageChecks = []Check{
	{Name: "shapes", Run: checkShapes},
	{Name: "messages", Seeded: true, Run: checkMessages},
	{Name: "messages of many ranks", Seeded: true, Run: checkMessagesOfMany},
	{Name: "messages of threads", Seeded: true, Run: checkMessagesOfThreads},
	{Name: "slots", Run: checkSlots},
	{Name: "cancel", Run: checkCancel},
	{Name: "polling", Run: checkPolling},
	{Name: "what polls return", Run: checkPollCounts},
	{Name: "one receiver at a time", Run: checkOneReceiver},
}

// Small is the least that jobs can ask for, so that everything runs out.
var Small = conduits.Config{Credits: 4, MaxMedium: 512}

// allShapes is every number of words with every size of payload that is special,
// in every way.
func allShapes(x *exchange) []shape {
	var l []shape
	add := func(s shape) {
		s.reply = true
		l = append(l, s)
	}
	for words := range conduits.MaxWords + 1 {
		add(shape{how: bySend, words: words})
		for _, n := range []int{0, 1, 7, 8, 9, 63, 64, 65, 511, 512, x.maxMedium - 1, x.maxMedium} {
			if n > 0 {
				add(shape{how: bySendPayload, words: words, payload: n})
			}
			add(shape{how: byReserve, words: words, payload: n, reserve: n})
			add(shape{how: byReserve, words: words, payload: n / 2, reserve: n})
			if n <= putStride-16 {
				add(shape{how: byPut, words: words, payload: n})
			}
		}
	}
	return l
}

// checkShapes sends all of them to oneself and to another, as request and as
// reply.
func checkShapes(c *Case) {
	for _, cfg := range []conduits.Config{{}, Small} {
		c.exchange(2, cfg, &exchange{table: allShapes}, func(m *mail) {
			for range m.x.most {
				m.post(0)
				m.post(1)
			}
		})
	}
}

// checkMessages has all ranks send parcels of all kinds to all.
func checkMessages(c *Case) {
	const most = 60
	for _, n := range sizesOfJobs {
		for _, cfg := range []conduits.Config{{}, Small} {
			c.exchange(n, cfg, &exchange{most: most, shape: randomShape}, func(m *mail) { m.scatter(most) })
		}
	}
}

// scatter sends each rank up to n requests, polling now and then.
func (m *mail) scatter(n int) {
	for range n * m.Size / 2 {
		if dst := m.RNG.IntN(m.Size); m.next[dst].Load() < int64(n) {
			m.post(dst)
		}
		if m.RNG.IntN(4) == 0 {
			m.EP.Poll()
		}
	}
}

// checkMessagesOfMany has more ranks than a conduit may look at in one poll.
func checkMessagesOfMany(c *Case) {
	const most = 12
	c.exchange(17, Small, &exchange{most: most, shape: randomShape}, func(m *mail) { m.scatter(most) })
}

// checkMessagesOfThreads has several goroutines of each rank send and poll at
// once.
func checkMessagesOfThreads(c *Case) {
	const threads, each = 3, 60
	for _, n := range []int{1, 2, 3} {
		for _, cfg := range []conduits.Config{{}, Small} {
			c.exchange(n, cfg, &exchange{most: threads * each, shape: randomShape}, func(m *mail) {
				m.Threads(threads, func(i int) {
					rng := c.Random(uint64(m.Rank), uint64(i))
					for range each {
						m.post(rng.IntN(n))
						if rng.IntN(4) == 0 {
							m.EP.Poll()
						}
					}
				})
			})
		}
	}
}

// checkSlots: a slot has the size that was asked for, and what it holds is not sent until
// Commit.
func checkSlots(c *Case) {
	c.Job(2, Small, func(p *Peer) {
		m := newMail(p, &exchange{})
		n := 0
		m.sink.receive = func(g *conduits.Message) {
			n++
			if len(g.Words) != 3 || g.Words[0] != 7 || g.Words[2] != 9 || len(g.Payload) != 100 || Wrong(g.Payload, 5, 0) >= 0 {
				p.Errorf("message %d arrived as %+v", n, g)
			}
		}
		m.Peer.attach(0, &m.sink)
		dst := 1 - p.Rank
		for i := range 20 {
			var s conduits.Slot
			m.reserve(func() (st conduits.Status) {
				s, st = p.EP.Reserve(dst, conduits.Request, 3, 100)
				return st
			})
			m.checkSlot(s, 3, 100)
			// Garbage first, the truth at last.
			Fill(s.Payload, uint64(i), 0)
			s.Words[0], s.Words[1], s.Words[2] = 1, 2, 3
			p.pause(false)
			Fill(s.Payload, 5, 0)
			s.Words[0], s.Words[2] = 7, 9
			p.EP.Commit(dst, conduits.Request, s, 1, 100)
		}
		p.Wait("messages", func() bool { return n == 20 })
		p.Meet()
	})
}

// reserve repeats f, polling, until it is Ready.
func (p *Peer) reserve(f func() conduits.Status) {
	p.C.Helper()
	st := conduits.NoCredit
	p.Wait("credit", func() bool {
		st = f()
		return st != conduits.NoCredit
	})
	if st != conduits.Ready {
		p.Must(p.EP.Err())
		p.Fatalf("status %d", st)
	}
}

// checkCancel: what is cancelled is not sent, and its room comes back, however
// often.
func checkCancel(c *Case) {
	for _, n := range []int{1, 2} {
		c.exchange(n, Small, &exchange{most: 30, shape: randomShape}, func(m *mail) {
			l := m.EP.Limits()
			dst := (m.Rank + 1) % n
			for i := range 4*l.Credits + 20 {
				size := []int{0, 1, 400, l.MaxMedium}[i%4]
				m.reserve(func() conduits.Status {
					if i%5 == 4 {
						l := parcel{src: m.Rank, dst: dst, seq: m.x.most - 1} // whose place no other uses
						return m.tryPut(l, shape{words: i % conduits.MaxWords, payload: 64}, m.x.contents(l), nil, true)
					}
					s, st := m.EP.Reserve(dst, conduits.Request, i%conduits.MaxWords, size)
					if st == conduits.Ready {
						for w := range s.Words {
							s.Words[w] = tagOfNobody
						}
						m.EP.Cancel(dst, conduits.Request, s)
					}
					return st
				})
				if i%16 == 0 && m.next[dst].Load() < int64(m.x.most)-2 {
					m.post(dst)
				}
			}
			m.post(dst)
		})
	}
}

// checkPolling: Poll and Spin inside a handler run nothing, PollReplies runs no
// requests, and Polling tells the goroutine in a handler from others.
func checkPolling(c *Case) {
	const n, each = 3, 8
	const requests = n * each
	c.Job(n, conduits.Config{}, func(p *Peer) {
		var handled, replied int
		s := &sink{}
		s.receive = func(m *conduits.Message) {
			if m.Class == conduits.Reply {
				replied++
				return
			}
			handled++
			before := handled
			if n := p.EP.Poll(); n != 0 {
				p.Errorf("Poll in a handler ran %d", n)
			}
			if n := p.EP.Spin(); n != 0 {
				p.Errorf("Spin in a handler ran %d", n)
			}
			for range 5 {
				s.pollReplies() // more requests are there, of others too, and must stay there
				p.yieldOnce()
			}
			if handled != before {
				p.Errorf("%d requests ran in a handler", handled-before)
			}
			s.await("credit for a reply", func() bool {
				return p.EP.Send(m.Src, conduits.Reply, 1, nil) != conduits.NoCredit
			})
		}
		p.attach(0, s)
		if p.EP.Polling() {
			p.Errorf("polling outside of handlers")
		}
		for i := range requests {
			p.reserve(func() conduits.Status { return p.EP.Send(i%n, conduits.Request, 1, nil) })
		}
		p.Wait("requests and replies", func() bool { return handled == requests && replied == requests })
		if p.EP.Polling() {
			p.Errorf("polling after it")
		}
		p.Meet()
	})
}

// checkPollCounts: Poll, Spin and PollReplies return how many messages and
// completions they ran, those of a nested PollReplies not included.
func checkPollCounts(c *Case) {
	const n, requests = 2, 40
	c.Job(n, conduits.Config{}, func(p *Peer) {
		ran, replies, remote := 0, 0, 0 // ran: by the poll that runs now
		s := &sink{complete: func(uint64, conduits.Event, uint64, error) {
			ran++
			remote++
		}}
		s.receive = func(m *conduits.Message) {
			ran++
			if m.Class == conduits.Reply {
				replies++
				return
			}
			outer := ran
			defer func() { ran = outer }()
			s.await("credit for a reply", func() bool {
				ran = 0
				if got := s.pollReplies(); got != ran {
					p.Errorf("PollReplies ran %d messages and completions and returned %d", ran, got)
				}
				return p.EP.Send(m.Src, conduits.Reply, 1, nil) != conduits.NoCredit
			})
		}
		p.attach(segment.PageSize, s)
		sent, counted := 0, 0
		want := 0                     // completions
		b := make([]byte, 8*requests) // 8 bytes for each get: a conduit may do several at once
		for i := 0; replies < requests || remote < want || s.got[conduits.Request].Load() < requests; i++ {
			if sent < requests && p.EP.Send(1-p.Rank, conduits.Request, 1, nil) == conduits.Ready {
				sent++
				ev, err := post.Get(p.EP, b[8*(sent-1):8*sent], 1-p.Rank, At(0), conduits.RemoteDone, uint64(i))
				p.Must(err)
				if ev&conduits.RemoteDone == 0 {
					want++
				}
			}
			ran = 0
			if i%2 == 0 {
				counted = p.EP.Poll()
			} else {
				counted = p.EP.Spin()
			}
			if counted != ran {
				p.Fatalf("poll %d ran %d messages and completions and returned %d", i, ran, counted)
			}
			p.Must(p.EP.Err())
			p.yieldOnce()
		}
		p.Meet()
	})
}

// checkOneReceiver: however many goroutines poll, one runs handlers, and the
// others' polls return at once.
func checkOneReceiver(c *Case) {
	const n, pollers = 3, 3
	const messages = 20 * n
	c.Job(n, conduits.Config{}, func(p *Peer) {
		var handled, over atomic.Int32
		s := &sink{}
		s.receive = func(*conduits.Message) {
			for range 3 {
				runtime.Gosched() // long enough for others to come
			}
			handled.Add(1)
		}
		p.attach(0, s)
		p.Threads(pollers+1, func(i int) {
			if i == pollers {
				for i := range messages { // from several at once
					p.reserve(func() conduits.Status { return p.EP.Send(i%n, conduits.Request, 1, nil) })
				}
				p.Wait("messages", func() bool { return handled.Load() == messages })
				over.Store(1)
				p.EP.Wake(p.Rank)
				return
			}
			for over.Load() == 0 && p.EP.Err() == nil {
				p.EP.Poll()
				if sys.HasGoroutine && p.EP.Polling() {
					p.Errorf("Polling says yes outside of handlers")
				}
				runtime.Gosched()
			}
		})
		p.Meet()
	})
}
