package contract

import (
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/conduits"
)

var creditChecks = []Check{
	{Name: "credits", Run: checkCredits},
	{Name: "flood", Seeded: true, Run: checkFlood},
	{Name: "flood of many ranks", Run: checkFloodOfMany},
	{Name: "flood of threads", Run: checkFloodOfThreads},
}

// stubborn is how often "no credit" must be the answer, one time after another,
// before it is believed: a conduit may withhold credit for a moment.
const stubborn = 200

// checkCredits: a rank that consumes no requests is sent as many as Limits say,
// and then none; each arrives once; afterwards the credits are there again, for
// any number of times.
func checkCredits(c *Case) {
	for _, cfg := range []conduits.Config{Small, {}} {
		for _, how := range []shape{
			{how: bySend, words: 3},
			{how: bySend, words: conduits.MaxWords},
			{how: byReserve, words: 1, payload: 512, reserve: 512},
			{how: bySendPayload, payload: -1},
			{how: byPut, words: 2, payload: 100},
		} {
			const rounds = 3
			var held, full atomic.Int32 // rounds for which the receiver holds; the sender is done
			x := &exchange{most: rounds * (4*c.Offer.Limits.Credits + 1000), shape: func(x *exchange, _ parcel) shape {
				s := how
				if s.payload < 0 {
					s.payload = x.maxMedium
				}
				return s
			}}
			if how.how != byPut {
				x.noPuts = true
			} else {
				x.most = rounds * (c.Offer.Limits.Credits + 200)
			}
			c.exchange(2, cfg, x, func(m *mail) {
				// The handler of the first message of a round stays until the sender
				// has found no credit.
				hold, round := m.Rank == 1, int32(0)
				m.before = func(*conduits.Message) bool {
					if hold {
						hold = false
						round++
						held.Store(round)
						m.nudge(0)
						m.sink.await("a full mailbox", func() bool { return full.Load() == round })
					}
					return true
				}
				m.Meet() // messages may come as soon as another rank is attached
				for r := range int32(rounds) {
					if m.Rank == 0 {
						m.post(1)
						m.Wait("a handler that holds", func() bool { return held.Load() > r })
						n := m.pour(1, x.most/rounds-1)
						if n < 0 {
							m.Fatalf("%d messages are under way to a rank that consumes none", x.most/rounds)
						}
						// Payloads may find less room; and what a layer of the conduit cancelled
						// may take room until the receiver comes to it. That what was sent before
						// is consumed may be heard late, or be lost at first.
						l := m.EP.Limits()
						few := func() bool { return how.payload == 0 && n+1 < (l.Credits+1)/2 }
						for until := m.EP.Now() + 30*time.Second; few() && m.EP.Now() < until; {
							m.EP.Poll()
							more := m.pour(1, x.most/rounds-1-n)
							if more < 0 {
								m.Fatalf("%d messages are under way to a rank that consumes none", x.most/rounds)
							}
							n += more
						}
						if few() {
							m.Fatalf("%d messages fit where none is consumed; limits %+v", n+1, l)
						}
						full.Store(r + 1)
						m.nudge(1)
					}
					m.Meet()
					want := m.x.requests[m.Rank].Load()
					m.Wait("what was sent", func() bool { return m.sink.got[conduits.Request].Load() == want })
					hold = m.Rank == 1 && r+1 < rounds
					m.Meet()
				}
			})
		}
	}
}

// pour sends requests to dst until there is no credit, and returns how many; -1
// if there is credit for more than most. It polls only once in a while.
func (m *mail) pour(dst, most int) int {
	for n := range most {
		l := m.address(dst)
		st := conduits.NoCredit
		for i := 0; i < stubborn && st == conduits.NoCredit; i++ {
			st = m.try(l)
		}
		if st == conduits.NoCredit {
			m.next[dst].Add(-1)
			return n
		}
		if st != conduits.Ready {
			m.Must(m.EP.Err())
			m.Fatalf("status %d", st)
		}
	}
	return -1
}

// checkFlood is the deadlock argument: all ranks send requests to all, until no
// queue has room on any of them at once; then each is replied to. No rank may
// wait for ever, and nothing may be lost.
func checkFlood(c *Case) {
	for _, n := range sizesOfJobs {
		for _, s := range []shape{
			{how: bySend, words: 4, reply: true},
			{how: bySendPayload, words: conduits.MaxWords, payload: 512, reply: true},
			{how: byPut, words: 1, payload: 40, reply: true},
		} {
			c.flood(n, Small, s)
		}
		if n > 3 {
			continue // large payloads take their time
		}
		c.flood(n, conduits.Config{}, shape{how: bySendPayload, words: 1, payload: -1, reply: true})
	}
}

func checkFloodOfMany(c *Case) {
	c.flood(17, Small, shape{how: bySendPayload, words: 1, payload: 500, reply: true})
}

// flood sends three times what fits at once, and at least 20 requests, from each
// rank to each.
func (c *Case) flood(n int, cfg conduits.Config, s shape) {
	c.Helper()
	var full atomic.Int32 // ranks whose queues are all full
	x := &exchange{most: 1 << 20, shape: func(x *exchange, l parcel) shape {
		s := s
		if s.payload < 0 {
			s.payload = x.maxMedium
		}
		return s
	}}
	if s.how == byPut {
		x.most = 4*c.Offer.Limits.Credits + 100
	} else {
		x.noPuts = true
	}
	c.exchange(n, cfg, x, func(m *mail) {
		// What was handled first goes on when all ranks are full: but not what comes
		// from a faster rank while this one is still in meet, or it would never pour.
		first, met := true, false
		m.before = func(g *conduits.Message) bool {
			if first && met && g.Class == conduits.Request {
				first = false
				m.sink.await("all queues to be full", func() bool { return full.Load() == int32(n) })
			}
			return true
		}
		m.Meet() // before the first message
		met = true
		fit := make([]int, n)
		for dst := range n {
			if fit[dst] = m.pour(dst, min(1<<16, x.most/2)); fit[dst] < 0 {
				m.Fatalf("no end of credit to rank %d", dst)
			}
		}
		if full.Add(1) == int32(n) {
			for r := range n {
				m.nudge(r)
			}
		}
		for dst := range n {
			for range min(max(2*fit[dst], 20-fit[dst]), x.most-fit[dst]) {
				m.post(dst)
			}
		}
	})
}

// checkFloodOfThreads has several goroutines of each rank wait for credit at
// once.
func checkFloodOfThreads(c *Case) {
	const threads, each = 4, 60
	x := &exchange{most: threads * each, noPuts: true, shape: func(*exchange, parcel) shape {
		return shape{how: bySendPayload, words: 1, payload: 500, reply: true}
	}}
	c.exchange(2, Small, x, func(m *mail) {
		m.Threads(threads, func(int) {
			for range each {
				m.post(1 - m.Rank)
			}
		})
	})
}
