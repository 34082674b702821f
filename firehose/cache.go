package firehose

import (
	"fmt"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/internal/bias"
	"github.com/argon-go/argon/internal/errs"
)

// Handler indices of this package, of the range 112..127 that it owns.
const (
	handlerMove  am.HandlerID = 112 + iota // medium request: a Machine's message
	handlerMoved                           // its reply
)

// Cache is a Machine at work: over active messages, and for many goroutines. It
// is made before am.Attach, which gets its Handlers, and bound afterwards.
type Cache struct {
	e *am.Endpoint

	mu      bias.Lock
	m       *Machine
	waiters map[uint64]*waiter
	cookie  uint64
	unsent  Message // for want of credit

	reply []byte // of the request handler, of which one runs at a time
}

// waiter is a goroutine that waits for a pin.
type waiter struct {
	done bool
	r    Region
	err  error

	rank int // -1 if it waits for the configurations to be compared
	a    Addr
	n    uint64
}

// Blocked says what it waits for, for whoever asks why a job hangs.
func (w *waiter) Blocked() string {
	if w.rank < 0 {
		return "firehose: rank 0 compares the configurations"
	}
	return fmt.Sprintf("firehose: pin of %d bytes at %#x of rank %d", w.n, uint64(w.a), w.rank)
}

// NewCache makes a Cache. c as for New.
func NewCache(c Config) (*Cache, error) {
	m, err := New(c)
	if err != nil {
		return nil, err
	}
	return &Cache{m: m, waiters: map[uint64]*waiter{}}, nil
}

// Handlers are for am.Config.Runtime.
func (c *Cache) Handlers() []am.Entry {
	return []am.Entry{
		{Index: handlerMove, Name: "firehose.move", Fn: c.onMove, Args: 0, Kinds: am.Medium | am.Request},
		{Index: handlerMoved, Name: "firehose.moved", Fn: c.onMoved, Args: 0, Kinds: am.Medium | am.Reply},
	}
}

// Bind connects the cache to its rank's endpoint and checks with rank 0 that the
// configurations agree. Every rank calls it, after am.Attach and a barrier, or
// anything else that says that all ranks have attached.
func (c *Cache) Bind(e *am.Endpoint) error {
	if k := &c.m.c; k.Rank != e.Rank() || k.Size != e.Size() || k.Payload > e.MaxMedium() {
		return errs.BadArg("firehose: made for rank %d of %d and messages of %d bytes, bound to rank %d of %d with %d",
			k.Rank, k.Size, k.Payload, e.Rank(), e.Size(), e.MaxMedium())
	}
	c.e = e
	c.mu.Lock()
	w := c.waiter(-1, 0, 0)
	c.m.Agree(c.cookie)
	c.mu.Unlock()
	_, err := c.wait(w)
	return err
}

// Limits are what fits; see Limits.
func (c *Cache) Limits() Limits { return c.m.Limits() }

// Stats fills in s.
func (c *Cache) Stats(s *Stats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.m.Stats(s)
}

// RemotePin pins the buckets of rank's memory that [a, a+n) touches, and waits
// if it must. Not in a handler. See the package comment on what may be pinned
// at once.
func (c *Cache) RemotePin(rank int, a Addr, n uint64) (Region, error) {
	c.mu.Lock()
	r, ok, err := c.m.RemotePin(rank, a, n, c.cookie+1)
	if ok || err != nil {
		c.mu.Unlock()
		return r, err
	}
	w := c.waiter(rank, a, n)
	c.mu.Unlock()
	return c.wait(w)
}

// Borrow is the shortest way to memory that a firehose reaches already, for an
// access that is made at once: where to reach [a, a+n), which lies in one bucket.
// If ok, nothing moves before Return, which the same goroutine calls soon; it
// neither polls nor calls the Cache in between.
func (c *Cache) Borrow(rank int, a Addr, n uint64) (g Grant, ok bool) {
	c.mu.Lock()
	if g, ok = c.m.Look(rank, a, n); !ok {
		c.mu.Unlock()
	}
	return g, ok
}

// Return ends what Borrow has begun.
func (c *Cache) Return() { c.mu.Unlock() }

// TryRemotePin is RemotePin that neither communicates nor waits. It may be called
// in a handler.
func (c *Cache) TryRemotePin(rank int, a Addr, n uint64) (Region, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.m.TryRemotePin(rank, a, n)
}

// LocalPin pins own memory, and waits if other local pins use up the budget for
// them.
func (c *Cache) LocalPin(a Addr, n uint64) (Region, error) {
	c.mu.Lock()
	r, ok, err := c.m.LocalPin(a, n, c.cookie+1)
	if ok || err != nil {
		c.mu.Unlock()
		return r, err
	}
	w := c.waiter(c.m.c.Rank, a, n)
	c.mu.Unlock()
	return c.wait(w)
}

// TryLocalPin is LocalPin that neither registers nor waits.
func (c *Cache) TryLocalPin(a Addr, n uint64) (Region, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.m.TryLocalPin(a, n)
}

// Release ends the use of a region. It may be called in a handler.
func (c *Cache) Release(r Region) error {
	c.mu.Lock()
	err := c.m.Release(r)
	wake := c.settle()
	c.mu.Unlock()
	if wake {
		c.e.Conduit().Wake(c.e.Rank())
	}
	return err
}

// At gives where to reach address a of the region, and how many bytes from there
// on it is good for.
func (c *Cache) At(r Region, a Addr) (Grant, uint64) {
	if g, n, ok := r.at(a); ok {
		return g, n // as long as r is in use its grant does not change
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.m.At(r, a)
}

// Stale says that an access by way of r faulted; see Machine.Stale.
func (c *Cache) Stale(r Region) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.m.Stale(r)
}

// Conceal takes own memory back that s has exposed; see Space.Conceal.
func (c *Cache) Conceal(s *Space, a Addr) error { return c.take(a, s.Conceal) }

// Unmap takes own mapped memory back and unmaps it; see Space.Unmap.
func (c *Cache) Unmap(s *Space, a Addr) error { return c.take(a, s.Unmap) }

func (c *Cache) take(a Addr, f func(*Machine, Addr) error) error {
	c.mu.Lock()
	err := f(c.m, a)
	wake := c.settle()
	c.mu.Unlock()
	if wake {
		c.e.Conduit().Wake(c.e.Rank())
	}
	return err
}

// Close unpins everything. No peer may need it any more: a barrier comes before.
func (c *Cache) Close() {
	c.mu.Lock()
	c.m.Close()
	c.collect()
	c.mu.Unlock()
}

// waiter makes the one for the next cookie. c.mu is held.
func (c *Cache) waiter(rank int, a Addr, n uint64) *waiter {
	c.cookie++
	w := &waiter{rank: rank, a: a, n: n}
	c.waiters[c.cookie] = w
	return w
}

// wait sends what is to be sent, polls, and waits until w is done.
func (c *Cache) wait(w *waiter) (Region, error) {
	err := c.e.Wait(w, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.collect() && len(c.waiters) > 0 {
			c.e.Conduit().Wake(c.e.Rank()) // some of it is others'
		}
		c.send()
		return w.done
	})
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if w.done {
			return w.r, w.err
		}
		for k, v := range c.waiters { // what comes for it later is released
			if v == w {
				delete(c.waiters, k)
			}
		}
		return Region{}, err
	}
	return w.r, w.err
}

// settle hands completions to those who wait, and says whether anybody has to be
// woken: for that, or to send what has come to be sent. c.mu is held.
func (c *Cache) settle() bool {
	return !c.m.done.empty() && c.collect() || !c.m.out.empty()
}

// collect hands completions to those who wait, and says whether there were any.
// c.mu is held.
func (c *Cache) collect() (some bool) {
	for {
		d, ok := c.m.NextDone()
		if !ok {
			return some
		}
		if w := c.waiters[d.Cookie]; w != nil {
			w.done, w.r, w.err = true, d.Region, d.Err
			delete(c.waiters, d.Cookie)
			some = true
		} else if d.Err == nil && d.Region.Valid() {
			_ = c.m.Release(d.Region) // nobody wants it any more
		}
	}
}

// send sends as long as there is credit. c.mu is held; nothing here polls.
func (c *Cache) send() {
	for {
		if c.unsent.Payload == nil {
			var ok bool
			if c.unsent, ok = c.m.NextMessage(); !ok {
				return
			}
		}
		// An error means that the job has failed, which Wait reports.
		if sent, err := c.e.TryRequestMedium(c.unsent.Dst, handlerMove, c.unsent.Payload); !sent || err != nil {
			return
		}
		c.m.Recycle(c.unsent.Payload)
		c.unsent = Message{}
	}
}

func (c *Cache) onMove(t *am.Token, _ []uint32, payload []byte) {
	c.mu.Lock()
	b, ok := c.m.Receive(t.Src(), payload, c.reply[:0])
	wake := c.settle()
	c.mu.Unlock()
	c.reply = b
	if wake {
		t.Endpoint().Conduit().Wake(t.Endpoint().Rank())
	}
	if ok {
		// Without c.mu: it may have to take other replies first. An error means
		// that the job has failed.
		_ = t.ReplyMedium(handlerMoved, b)
	}
}

func (c *Cache) onMoved(t *am.Token, _ []uint32, payload []byte) {
	c.mu.Lock()
	c.m.ReceiveReply(t.Src(), payload)
	wake := c.settle()
	c.mu.Unlock()
	if wake {
		t.Endpoint().Conduit().Wake(t.Endpoint().Rank())
	}
}
