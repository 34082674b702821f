package aggregate

import (
	"fmt"
	"math/bits"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/internal/errs"
)

// Party is work whose end Sync waits for.
type Party interface {
	// Flush sends what is kept back, without waiting, and reports whether nothing is left to do
	// on this rank: what it does next, something from another rank makes it do.
	Flush() (idle bool, err error)
	// Counts returns how many messages this rank has sent so far, and how many it has handled.
	// Messages that a handler caused are counted before its own counts as handled.
	Counts() (sent, handled uint64)
}

// waves find out when nothing is under way any more. In each, every rank tells its parent in
// a binomial tree, once it is idle, how much it and those below have sent and handled; rank 0
// concludes that all is over when the sum that was handled in one wave is the sum that was
// sent in the next (the four counters of Mattern 1987): nothing was under way between them.
// That takes no order of messages.
type waves struct {
	wave   uint32 // under way; counts all of a job
	told   bool   // this rank has told its parent, or as rank 0 concluded
	second bool   // there was a wave before in this Sync
	before uint64 // handled, in that

	// By handlers, with the endpoint's lock held.
	ups      []counts // of children, by the logarithm of their distance
	verdict  uint32   // of which wave something is concluded
	finished bool     // that all is over
}

// counts are those of the ranks of a subtree.
type counts struct {
	wave          uint32
	sent, handled uint64
}

// children is how many a rank has: rank + 2^i for all i below that.
func (c *Aggregator) children() int {
	n := bits.Len(uint(c.size - 1))
	if c.rank != 0 {
		n = bits.TrailingZeros(uint(c.rank))
	}
	for n > 0 && c.rank+1<<(n-1) >= c.size {
		n--
	}
	return n
}

// onUp notes the counts of a child.
func (c *Aggregator) onUp(t *am.Token, args []uint32, _ []byte) {
	i := bits.TrailingZeros(uint(t.Src()))
	c.mu.Lock()
	for len(c.waves.ups) <= i {
		c.waves.ups = append(c.waves.ups, counts{})
	}
	c.waves.ups[i] = counts{args[0], am.Uint64(args, 1), am.Uint64(args, 3)}
	c.mu.Unlock()
	c.came()
}

// onDown notes what rank 0 has concluded.
func (c *Aggregator) onDown(_ *am.Token, args []uint32, _ []byte) {
	c.mu.Lock()
	c.waves.verdict, c.waves.finished = args[0], args[1] != 0
	c.mu.Unlock()
	c.came()
}

// missing is a child whose counts of this wave have not come, or -1. sum is that of the
// others.
func (c *Aggregator) missing() (rank int, sum counts) {
	w := &c.waves
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.children() {
		if i >= len(w.ups) || w.ups[i].wave != w.wave {
			return c.rank + 1<<i, sum
		}
		sum.sent += w.ups[i].sent
		sum.handled += w.ups[i].handled
	}
	return -1, sum
}

// advance does what can be done of a wave, by a rank that is idle as often as idle says so
// and has counts of its own, which it had after what is known of the wave before. over says
// that all is over, next that another wave is under way.
func (c *Aggregator) advance(idle bool, own counts) (over, next bool, err error) {
	w := &c.waves
	if !w.told {
		missing, sum := c.missing()
		if missing >= 0 || !idle {
			return false, false, nil
		}
		sum.sent += own.sent
		sum.handled += own.handled
		if c.rank == 0 {
			c.mu.Lock()
			w.verdict, w.finished = w.wave, w.second && w.before == sum.sent
			c.mu.Unlock()
			w.before, w.second = sum.handled, true
		} else {
			lo, hi := am.Pack64(sum.sent)
			low, high := am.Pack64(sum.handled)
			if err := c.e.RequestShort(c.rank&(c.rank-1), handlerUp, w.wave, lo, hi, low, high); err != nil {
				return false, false, err
			}
		}
		w.told = true
	}
	c.mu.Lock()
	known, finished := w.verdict == w.wave, w.finished
	c.mu.Unlock()
	if !known {
		return false, false, nil
	}
	word := uint32(0)
	if finished {
		word = 1
	}
	for i := range c.children() {
		if err := c.e.RequestShort(c.rank+1<<i, handlerDown, w.wave, word); err != nil {
			return false, false, err
		}
	}
	w.wave++
	w.told = false
	if finished {
		w.second = false
	}
	return finished, !finished, nil
}

// Sync is collective: it ends, on all ranks, when nothing is left to do for parties, which
// are the same on all ranks: all that was sent before Sync on any rank, and all that its
// handling caused to be sent, has been handled. It delivers what comes to boxes
// meanwhile. id tells collective calls apart, as the barrier's, which Sync enters: if ranks
// are in different ones, the error matches ErrBarrierMismatch. what names the call for
// people.
//
// Where little is under way it takes a barrier and two waves, of 2 ceil(log2 Size)
// messages one after the other each.
func (c *Aggregator) Sync(id uint32, what string, parties ...Party) error {
	if c.inside {
		return errs.BadArg("%s: %s in the function of a mailbox", c.pkg, what)
	}
	if err := c.enter(what); err != nil {
		return err
	}
	defer c.leave()
	if err := c.b.Notify(id); err != nil {
		return err
	}
	if err := c.sync(id, what, parties); err != nil {
		return err
	}
	for _, p := range parties {
		if b, ok := p.(*Box); ok {
			b.epoch++
		}
	}
	return nil
}

func (c *Aggregator) sync(id uint32, what string, parties []Party) error {
	entered := false
	if c.waves.wave == 0 {
		c.waves.wave = 1
	}
	for {
		c.e.Poll()
		did, err := c.step()
		if err != nil {
			return err
		}
		idle, err := flush(parties)
		if err != nil {
			return err
		}
		idle = idle && !did
		if !entered && c.b.Ready() {
			if err := c.b.Wait(id); err != nil {
				return err
			}
			entered = true
		}
		if entered {
			var own counts
			for _, p := range parties {
				s, h := p.Counts()
				own.sent += s
				own.handled += h
			}
			// A message that came after step had looked is not handled, and this rank not idle.
			over, next, err := c.advance(idle && c.news.Load() == c.seen, own)
			if over || err != nil {
				return err
			}
			did = did || next
		}
		if did {
			continue
		}
		known := entered
		w := c.awaited(what, entered)
		if !entered {
			if err := c.b.Sleeps(); err != nil {
				c.b.Woken()
				return err
			}
		}
		err = c.await(w, func() int {
			if !entered {
				return c.b.Lacking()
			}
			return c.left(w.rank)
		}, func() bool {
			if !known && c.b.Ready() {
				return true
			}
			if idle || c.waves.told {
				return false
			}
			now, err := flush(parties) // what a party has put off may run in this wait
			return now || err != nil
		})
		if !entered {
			c.b.Woken()
		}
		if err != nil {
			return err
		}
	}
}

// flush is Party.Flush of all of parties.
func flush(parties []Party) (idle bool, err error) {
	idle = true
	for _, p := range parties {
		ok, err := p.Flush()
		if err != nil {
			return false, err
		}
		idle = idle && ok
	}
	return idle, nil
}

// awaited describes the ranks and the event that a Sync waits for.
func (c *Aggregator) awaited(what string, entered bool) awaited {
	w := awaited{c: c, what: what, rank: -1, wave: c.waves.wave}
	switch {
	case !entered:
		w.c = nil
		w.rest = c.b.Blocked()
	case c.waves.told:
		w.rank, w.rest = c.rank&(c.rank-1), "to conclude whether all is handled"
	default:
		w.rank, _ = c.missing()
		w.rest = "to have handled everything"
	}
	return w
}

type awaited struct {
	c    *Aggregator
	what string
	rank int
	wave uint32
	rest string
}

// Blocked makes awaited a conduits.Blocked.
func (w awaited) Blocked() string {
	switch {
	case w.c == nil:
		return w.what + ": " + w.rest
	case w.rank < 0:
		return fmt.Sprintf("%s: what this rank has sent or received to be handled (wave %d)", w.what, w.wave)
	}
	return fmt.Sprintf("%s: waiting for rank %d %s (wave %d)", w.what, w.rank, w.rest, w.wave)
}

// Flush makes a Box a Party of Sync: it sends what was collected.
func (b *Box) Flush() (idle bool, err error) {
	if b.spec.Flush != nil {
		if err := b.spec.Flush(); err != nil {
			return false, err
		}
	}
	if err := b.sealAll(); err != nil {
		return false, err
	}
	for i := range b.held {
		if b.held[i].epoch == b.epoch {
			return false, nil
		}
	}
	return b.queued == 0, nil
}

// Counts makes a Box a Party of Sync: it counts batches.
func (b *Box) Counts() (sent, handled uint64) { return b.sent, b.handled }
