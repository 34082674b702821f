package conduittest

import (
	"runtime"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

var messageChecks = []check{
	{name: "shapes", run: checkShapes},
	{name: "messages", seeded: true, run: checkMessages},
	{name: "messages of many ranks", seeded: true, run: checkMessagesOfMany},
	{name: "messages of threads", seeded: true, run: checkMessagesOfThreads},
	{name: "slots", run: checkSlots},
	{name: "cancel", run: checkCancel},
	{name: "polling", run: checkPolling},
	{name: "what polls return", run: checkPollCounts},
	{name: "one receiver at a time", run: checkOneReceiver},
}

// small is the least that jobs can ask for, so that everything runs out.
var small = conduits.Config{Credits: 4, MaxMedium: 512}

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
func checkShapes(c *ctx) {
	for _, cfg := range []conduits.Config{{}, small} {
		c.exchange(2, cfg, &exchange{table: allShapes}, func(m *mail) {
			for range m.x.most {
				m.post(0)
				m.post(1)
			}
		})
	}
}

// checkMessages has all ranks send parcels of all kinds to all.
func checkMessages(c *ctx) {
	const most = 60
	for _, n := range sizesOfJobs {
		for _, cfg := range []conduits.Config{{}, small} {
			c.exchange(n, cfg, &exchange{most: most, shape: randomShape}, func(m *mail) { m.scatter(most) })
		}
	}
}

// scatter sends each rank up to n requests, polling now and then.
func (m *mail) scatter(n int) {
	for range n * m.size / 2 {
		if dst := m.rng.IntN(m.size); m.next[dst].Load() < int64(n) {
			m.post(dst)
		}
		if m.rng.IntN(4) == 0 {
			m.ep.Poll()
		}
	}
}

// checkMessagesOfMany has more ranks than a conduit may look at in one poll.
func checkMessagesOfMany(c *ctx) {
	const most = 12
	c.exchange(17, small, &exchange{most: most, shape: randomShape}, func(m *mail) { m.scatter(most) })
}

// checkMessagesOfThreads has several goroutines of each rank send and poll at
// once.
func checkMessagesOfThreads(c *ctx) {
	const threads, each = 3, 60
	for _, n := range []int{1, 2, 3} {
		for _, cfg := range []conduits.Config{{}, small} {
			c.exchange(n, cfg, &exchange{most: threads * each, shape: randomShape}, func(m *mail) {
				m.threads(threads, func(i int) {
					rng := c.random(uint64(m.rank), uint64(i))
					for range each {
						m.post(rng.IntN(n))
						if rng.IntN(4) == 0 {
							m.ep.Poll()
						}
					}
				})
			})
		}
	}
}

// checkSlots: a slot is what was asked for, and what it holds is not sent until
// Commit.
func checkSlots(c *ctx) {
	c.run(2, small, func(p *peer) {
		m := newMail(p, &exchange{})
		n := 0
		m.sink.receive = func(g *conduits.Message) {
			n++
			if len(g.Words) != 3 || g.Words[0] != 7 || g.Words[2] != 9 || len(g.Payload) != 100 || wrong(g.Payload, 5, 0) >= 0 {
				p.Errorf("message %d arrived as %+v", n, g)
			}
		}
		m.peer.attach(0, &m.sink)
		dst := 1 - p.rank
		for i := range 20 {
			var s conduits.Slot
			m.reserve(func() (st conduits.Status) {
				s, st = p.ep.Reserve(dst, conduits.Request, 3, 100)
				return st
			})
			m.checkSlot(s, 3, 100)
			// Garbage first, the truth at last.
			fill(s.Payload, uint64(i), 0)
			s.Words[0], s.Words[1], s.Words[2] = 1, 2, 3
			p.pause(false)
			fill(s.Payload, 5, 0)
			s.Words[0], s.Words[2] = 7, 9
			p.ep.Commit(dst, conduits.Request, s, 1, 100)
		}
		p.wait("messages", func() bool { return n == 20 })
		p.meet()
	})
}

// reserve repeats f, polling, until it is Ready.
func (p *peer) reserve(f func() conduits.Status) {
	p.c.Helper()
	st := conduits.NoCredit
	p.wait("credit", func() bool {
		st = f()
		return st != conduits.NoCredit
	})
	if st != conduits.Ready {
		p.must(p.ep.Err())
		p.Fatalf("status %d", st)
	}
}

// checkCancel: what is cancelled is not sent, and its room comes back, however
// often.
func checkCancel(c *ctx) {
	for _, n := range []int{1, 2} {
		c.exchange(n, small, &exchange{most: 30, shape: randomShape}, func(m *mail) {
			l := m.ep.Limits()
			dst := (m.rank + 1) % n
			for i := range 4*l.Credits + 20 {
				size := []int{0, 1, 400, l.MaxMedium}[i%4]
				m.reserve(func() conduits.Status {
					if i%5 == 4 {
						l := parcel{src: m.rank, dst: dst, seq: m.x.most - 1} // whose place nobody else uses
						return m.tryPut(l, shape{words: i % conduits.MaxWords, payload: 64}, m.x.contents(l), nil, true)
					}
					s, st := m.ep.Reserve(dst, conduits.Request, i%conduits.MaxWords, size)
					if st == conduits.Ready {
						for w := range s.Words {
							s.Words[w] = tagOfNobody
						}
						m.ep.Cancel(dst, conduits.Request, s)
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
func checkPolling(c *ctx) {
	const n, each = 3, 8
	const requests = n * each
	c.run(n, conduits.Config{}, func(p *peer) {
		var handled, replied int
		s := &sink{}
		s.receive = func(m *conduits.Message) {
			if m.Class == conduits.Reply {
				replied++
				return
			}
			handled++
			before := handled
			if n := p.ep.Poll(); n != 0 {
				p.Errorf("Poll in a handler ran %d", n)
			}
			if n := p.ep.Spin(); n != 0 {
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
				return p.ep.Send(m.Src, conduits.Reply, 1, nil) != conduits.NoCredit
			})
		}
		p.attach(0, s)
		if p.ep.Polling() {
			p.Errorf("polling outside of handlers")
		}
		for i := range requests {
			p.reserve(func() conduits.Status { return p.ep.Send(i%n, conduits.Request, 1, nil) })
		}
		p.wait("requests and replies", func() bool { return handled == requests && replied == requests })
		if p.ep.Polling() {
			p.Errorf("polling after it")
		}
		p.meet()
	})
}

// checkPollCounts: Poll, Spin and PollReplies return how many messages and
// completions they ran, those of a nested PollReplies not included.
func checkPollCounts(c *ctx) {
	const n, requests = 2, 40
	c.run(n, conduits.Config{}, func(p *peer) {
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
				return p.ep.Send(m.Src, conduits.Reply, 1, nil) != conduits.NoCredit
			})
		}
		p.attach(segment.PageSize, s)
		sent, counted := 0, 0
		want := 0 // completions
		b := make([]byte, 8)
		for i := 0; replies < requests || remote < want || s.got[conduits.Request].Load() < requests; i++ {
			if sent < requests && p.ep.Send(1-p.rank, conduits.Request, 1, nil) == conduits.Ready {
				sent++
				ev, err := p.ep.Get(b, 1-p.rank, at(0), conduits.RemoteDone, uint64(i))
				p.must(err)
				if ev&conduits.RemoteDone == 0 {
					want++
				}
			}
			ran = 0
			if i%2 == 0 {
				counted = p.ep.Poll()
			} else {
				counted = p.ep.Spin()
			}
			if counted != ran {
				p.Fatalf("poll %d ran %d messages and completions and returned %d", i, ran, counted)
			}
			p.must(p.ep.Err())
			p.yieldOnce()
		}
		p.meet()
	})
}

// checkOneReceiver: however many goroutines poll, one runs handlers, and the
// others' polls return at once.
func checkOneReceiver(c *ctx) {
	const n, pollers = 3, 3
	const messages = 20 * n
	c.run(n, conduits.Config{}, func(p *peer) {
		var handled, over atomic.Int32
		s := &sink{}
		s.receive = func(*conduits.Message) {
			for range 3 {
				runtime.Gosched() // long enough for others to come
			}
			handled.Add(1)
		}
		p.attach(0, s)
		p.threads(pollers+1, func(i int) {
			if i == pollers {
				for i := range messages { // from several at once
					p.reserve(func() conduits.Status { return p.ep.Send(i%n, conduits.Request, 1, nil) })
				}
				p.wait("messages", func() bool { return handled.Load() == messages })
				over.Store(1)
				p.ep.Wake(p.rank)
				return
			}
			for over.Load() == 0 && p.ep.Err() == nil {
				p.ep.Poll()
				if sys.HasGoroutine && p.ep.Polling() {
					p.Errorf("Polling says yes outside of handlers")
				}
				runtime.Gosched()
			}
		})
		p.meet()
	})
}
