package firehose

import (
	"fmt"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Handler indices of this package.
const (
	handlerMove     = am.FirstFirehose + iota // medium request: a Machine's message
	handlerMoved                              // its reply
	handlerMoveOne                            // short request: a Move
	handlerMovedOne                           // its reply
	handlerMovedFar                           // the same as a medium reply
)

// Cache is a Machine at work: over active messages, and for many goroutines. It
// is made before am.Attach, which gets its Handlers, and bound afterwards.
type Cache struct {
	e *am.Endpoint

	mu     conc.Lock
	m      *Machine    // nil as long as nothing has to do with memory of others
	c      Config      // of m
	closed bool        // m is to be closed
	busy   atomic.Bool // there is something to be sent
	*work              // comes and stays with m

	shared atomic.Pointer[shared] // nil before the second goroutine that looks for a hit
}

// work is what a Cache has to do besides m.
type work struct {
	waiters []*waiter           // all there are
	idle    []*waiter           // those of them that are not in use
	next    *waiter             // the next to be used, which is none of these
	cookie  uint64              // next's
	unsent  *Message            // for want of credit; nil if there is none
	ended   conc.Queue[*waiter] // whose functions are to be called
	calling bool                // a goroutine calls them

	reply []byte // of the request handler, of which one runs at a time
}

// waiter is a goroutine that waits for a pin, or a function.
type waiter struct {
	c      *Cache
	cookie uint64 // its place in waiters, and 1<<32 for each use
	used   bool
	cond   func() bool // ended

	then func(Pinned, error)
	r    Pinned
	err  error
	done atomic.Bool // r and err are there

	rank int
	a    Addr
	n    uint64
}

// Blocked says what it waits for, for reports of jobs that hang.
func (w *waiter) Blocked() string {
	w.c.mu.Lock() // it may serve another pin by now
	defer w.c.mu.Unlock()
	return fmt.Sprintf("firehose: pin of %d bytes at %#x of rank %d", w.n, uint64(w.a), w.rank)
}

// NewCache makes a Cache. c as for New.
func NewCache(c Config) (*Cache, error) {
	_, err := c.ensure()
	if err != nil {
		return nil, err
	}
	return &Cache{c: c}, nil
}

// need makes the Machine unless it is there: most ranks of a large job never need
// it, and then it would be most of what they take. c.mu is held.
func (c *Cache) need() {
	if c.m == nil {
		c.newMachine()
	}
}

func (c *Cache) newMachine() {
	k := c.c
	k.Leave = c.leave
	m, err := New(k)
	if err != nil {
		panic("firehose: " + err.Error()) // NewCache has found it to be good
	}
	if c.closed {
		m.Close()
	}
	c.m, c.work = m, new(work)
	c.prepare()
}

// Handlers are for am.Config.Runtime.
func (c *Cache) Handlers() []am.Entry {
	return []am.Entry{
		{Index: handlerMove, Name: "firehose.move", Fn: c.onMove, Args: 0, Kinds: am.Medium | am.Request},
		{Index: handlerMoved, Name: "firehose.moved", Fn: c.onMoved, Args: 0, Kinds: am.Medium | am.Reply},
		{Index: handlerMoveOne, Name: "firehose.move-one", Fn: c.onMoveOne, Args: len(Move{}), Kinds: am.Short | am.Request},
		{Index: handlerMovedOne, Name: "firehose.moved-one", Fn: c.onMovedOne, Args: len(Moved{}), Kinds: am.Short | am.Reply},
		{Index: handlerMovedFar, Name: "firehose.moved-far", Fn: c.onMovedFar, Args: 0, Kinds: am.Medium | am.Reply},
	}
}

// Bind connects the cache to its rank's endpoint. Nothing is pinned remotely before
// all ranks have attached. Ranks whose Config.Digest differ refuse each other's
// requests with ErrBadArg.
func (c *Cache) Bind(e *am.Endpoint) error {
	if k := &c.c; k.Rank != e.Rank() || k.Size != e.Size() || k.Payload > e.MaxMedium() {
		return errs.BadArg("firehose: made for rank %d of %d and messages of %d bytes, bound to rank %d of %d with %d",
			k.Rank, k.Size, k.Payload, e.Rank(), e.Size(), e.MaxMedium())
	}
	c.mu.Lock()
	c.e = e
	c.mu.Unlock()
	return nil
}

// Limits are what fits; see Limits.
func (c *Cache) Limits() Limits {
	k := c.c
	l, _ := k.ensure() // NewCache has found it to be good
	return l
}

// leave is Config.Leave of m.
func (c *Cache) leave(rank int, a Addr, n uint64) {
	c.hide(rank, a)
	if c.c.Leave != nil {
		c.c.Leave(rank, a, n)
	}
}

// hide has readers find the bucket at a no more. c.mu is held.
func (c *Cache) hide(rank int, a Addr) {
	if s := c.shared.Load(); s != nil {
		s.remove(sharedKey(rank, uint64(a)>>s.bits))
	}
}

// Stats fills in s.
func (c *Cache) Stats(s *Stats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		*s = Stats{}
		return
	}
	c.m.Stats(s)
	if r := c.shared.Load(); r != nil {
		s.RemoteHits += r.hits()
	}
}

// RemotePin pins the buckets of rank's memory that [a, a+n) touches, and waits
// if it must. Not in a handler. See the package comment on what may be pinned
// at once.
func (c *Cache) RemotePin(rank int, a Addr, n uint64) (Pinned, error) {
	if !conc.Enter(&c.mu) {
		c.mu.Lock()
	}
	c.need()
	r, ok, err := c.m.RemotePin(rank, a, n, c.cookie)
	if ok || err != nil {
		c.mu.Unlock()
		return r, err
	}
	w := c.waiter(rank, a, n)
	left := c.progress()
	c.mu.Unlock()
	return c.wait(w, left)
}

// RemotePinThen is RemotePin that does not wait. If all is at hand the region is
// returned, and ok is true. Otherwise, unless there is an error, then is called
// with what RemotePin would have returned: once, by a goroutine that polls or
// that is in Advance, Release, Conceal or Unmap, with no lock held, and not while
// another such function of this Cache runs. It may call what handlers may call.
func (c *Cache) RemotePinThen(rank int, a Addr, n uint64, then func(Pinned, error)) (r Pinned, ok bool, err error) {
	if !conc.Enter(&c.mu) {
		c.mu.Lock()
	}
	c.need()
	r, ok, err = c.m.RemotePin(rank, a, n, c.cookie)
	var left after
	if !ok && err == nil {
		c.waiter(rank, a, n).then = then
		left = c.progress()
	}
	c.mu.Unlock()
	c.finish(left)
	return r, ok, err
}

// PinOnce pins exactly [a, a+n) of rank's memory, for one transfer that is too
// large for firehoses: one round trip and one registration, and another message
// when it is released. It is pinned in place of what rank may pin locally, so that
// the budget holds; without room there it is an error that matches ErrResource,
// and the caller goes bucket by bucket. The caller releases such a region
// without waiting for any pin before.
func (c *Cache) PinOnce(rank int, a Addr, n uint64) (Pinned, error) {
	c.mu.Lock()
	c.need()
	if err := c.m.PinOnce(rank, a, n, c.cookie); err != nil {
		c.mu.Unlock()
		return Pinned{}, err
	}
	w := c.waiter(rank, a, n)
	left := c.progress()
	c.mu.Unlock()
	return c.wait(w, left)
}

// PinOnceThen is PinOnce that does not wait; then as for RemotePinThen. It is not
// called if an error is returned.
func (c *Cache) PinOnceThen(rank int, a Addr, n uint64, then func(Pinned, error)) error {
	c.mu.Lock()
	c.need()
	if err := c.m.PinOnce(rank, a, n, c.cookie); err != nil {
		c.mu.Unlock()
		return err
	}
	c.waiter(rank, a, n).then = then
	left := c.progress()
	c.mu.Unlock()
	c.finish(left)
	return nil
}

// Busy says that Advance has something to do. It is a load.
func (c *Cache) Busy() bool { return c.busy.Load() }

// Advance sends what could not be sent when it came up, for want of credit or in
// a handler, and calls the functions of pins that have ended. A caller that waits by
// polling calls it when Busy says so, outside handlers: the methods of a Cache
// that wait do.
//
// When the job has failed Advance, and Close, call the functions of all pins that
// have not ended with the error that says why.
func (c *Cache) Advance() {
	c.mu.Lock()
	c.need()
	if err := c.e.Conduit().Err(); err != nil {
		for _, w := range c.waiters {
			if w.used && w.then != nil {
				w.used, w.err = false, err
				c.ended.Add(w)
			}
		}
	}
	left := c.progress()
	c.mu.Unlock()
	c.finish(left)
}

// Visit is an access that Enter has begun.
type Visit struct{ u *unit } // nil: under c.mu

// Enter begins an access to [a, a+n) of rank's memory, which lies in one bucket that a
// firehose reaches, by g, and which Exit ends: until then nothing moves. It takes no lock
// that another goroutine takes for a hit. Otherwise ok is false, and nothing has begun.
// The access neither polls nor waits, nor calls the Cache, and its goroutine soon calls
// Exit: others may wait for it.
func (c *Cache) Enter(rank int, a Addr, n uint64) (g Grant, v Visit, ok bool) {
	if !conc.Enter(&c.mu) {
		return c.enterShared(rank, a, n)
	}
	if c.m != nil {
		if g, ok = c.m.Look(rank, a, n); ok {
			return g, v, true
		}
	}
	c.mu.Unlock()
	return g, v, false
}

// enterShared is Enter of a goroutine that c.mu is not biased to.
func (c *Cache) enterShared(rank int, a Addr, n uint64) (g Grant, v Visit, ok bool) {
	s := c.shared.Load()
	if s == nil {
		c.shared.CompareAndSwap(nil, newShared(c.c.Bucket))
		s = c.shared.Load()
	}
	if u := s.enter(); u != nil {
		if g, ok = s.look(rank, a, n); ok {
			return g, Visit{u}, true
		}
		u.exit(false)
	}
	c.mu.Lock()
	if c.m != nil {
		if g, ok = c.m.Look(rank, a, n); ok {
			s.add(c.m.share(rank, a, s), Grant{g.NLA - segment.NLA(uint64(a)&s.mask), g.Key})
			return g, v, true
		}
	}
	c.mu.Unlock()
	return g, v, false
}

// Exit ends an access. hit reports whether it was made; if not, it does not count as a hit.
func (c *Cache) Exit(v Visit, hit bool) {
	if v.u != nil {
		v.u.exit(hit)
		return
	}
	if !hit {
		c.m.stats.RemoteHits--
	}
	c.mu.Unlock()
}

// Also finds, inside a visit, where another access to [a, a+n) of rank's memory, which lies
// in one bucket, goes: then ExitMany ends the visit.
func (c *Cache) Also(v Visit, rank int, a Addr, n uint64) (g Grant, ok bool) {
	if v.u != nil {
		return c.shared.Load().look(rank, a, n)
	}
	return c.m.Look(rank, a, n)
}

// ExitMany is Exit of a visit in which Enter and Also have found so many accesses, of which
// hits were made.
func (c *Cache) ExitMany(v Visit, found, hits int) {
	if v.u != nil {
		v.u.other.Add(uint64(1 - hits)) // the visit counts as one
		v.u.exit(true)
		return
	}
	c.m.stats.RemoteHits -= uint64(found - hits)
	c.mu.Unlock()
}

// Reach is the shortest way to memory that a firehose reaches already: access is
// called with where to reach [a, a+n), which lies in one bucket, and nothing moves
// until it returns. If no firehose reaches it, ok is false, and access is not called.
//
// access begins the transfer, and reports whether that is all: whether the address is
// not used any more when access returns. If it says no, r is the bucket, pinned until
// Release. The Cache is locked meanwhile: access neither polls nor calls the Cache.
func (c *Cache) Reach(rank int, a Addr, n uint64, access func(Grant) bool) (r Pinned, ok bool) {
	if !conc.Enter(&c.mu) {
		c.mu.Lock()
	}
	if c.m != nil {
		var g Grant
		if g, ok = c.m.Look(rank, a, n); ok && !access(g) {
			r = c.m.Keep(rank, a)
		}
	}
	c.mu.Unlock()
	return r, ok
}

// Fetch is Reach of what no firehose reaches yet, for a caller that may wait for one:
// one that is free, or moves, by one request. ok is false if that request cannot be
// made now (the firehoses that could move are in use or in transit, there is no credit,
// or the caller is a handler), or if it was made and others wait for the bucket that
// came; access has not been called then, and the caller pins instead. An error is
// RemotePin's.
func (c *Cache) Fetch(rank int, a Addr, n uint64, access func(Grant) bool) (r Pinned, ok bool, err error) {
	if !conc.Enter(&c.mu) {
		c.mu.Lock()
	}
	if c.m == nil || c.unsent != nil || !c.m.out.Empty() || c.e.Conduit().Polling() {
		c.mu.Unlock()
		return r, false, nil
	}
	move, ok := c.m.Miss(rank, a, n)
	if !ok {
		c.mu.Unlock()
		return r, false, nil
	}
	// The request first: the tables can be brought up to date while it travels. An
	// error means that the job has failed, which Wait reports.
	sent, _ := c.e.TryRequestShort(rank, handlerMoveOne, move[:]...)
	c.m.Missed(c.cookie, sent)
	w := c.waiter(rank, a, n)
	var left after
	if !sent {
		left = c.progress()
	}
	c.mu.Unlock()
	c.finish(left)
	if err := c.e.Wait(w, w.cond); err != nil && !w.done.Load() {
		return r, false, err // the job has failed: nothing is given back any more
	}
	if !conc.Enter(&c.mu) {
		c.mu.Lock()
	}
	got, err := w.r, w.err
	c.recycle(w)
	if err == nil {
		var g Grant
		if g, ok = c.m.Lend(got, a); ok {
			if !access(g) {
				r = c.m.Keep(rank, a)
			}
			c.mu.Unlock()
			return r, true, nil
		}
		err = c.m.Release(got)
	}
	left = c.progressIfAny()
	c.mu.Unlock()
	c.finish(left)
	return r, false, err
}

// TryRemotePin is RemotePin that neither communicates nor waits. It may be called
// in a handler.
func (c *Cache) TryRemotePin(rank int, a Addr, n uint64) (Pinned, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.need()
	return c.m.TryRemotePin(rank, a, n)
}

// LocalPin pins own memory, and waits if other local pins use up the budget for
// them.
func (c *Cache) LocalPin(a Addr, n uint64) (Pinned, error) {
	c.mu.Lock()
	c.need()
	r, ok, err := c.m.LocalPin(a, n, c.cookie)
	if ok || err != nil {
		c.mu.Unlock()
		return r, err
	}
	w := c.waiter(c.c.Rank, a, n)
	left := c.progress()
	c.mu.Unlock()
	return c.wait(w, left)
}

// TryLocalPin is LocalPin that neither registers nor waits.
func (c *Cache) TryLocalPin(a Addr, n uint64) (Pinned, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.need()
	return c.m.TryLocalPin(a, n)
}

// Release ends the use of a region. It may be called in a handler.
func (c *Cache) Release(r Pinned) error {
	if !conc.Enter(&c.mu) {
		c.mu.Lock()
	}
	c.need()
	err := c.m.Release(r)
	left := c.progressIfAny()
	c.mu.Unlock()
	c.finish(left)
	return err
}

// At gives where to reach address a of the region, and how many bytes from there
// on it is good for.
func (c *Cache) At(r Pinned, a Addr) (Grant, uint64) {
	if g, n, ok := r.reach(a); ok {
		return g, n // as long as r is in use its grant does not change
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.need()
	return c.m.At(r, a)
}

// Stale says that an access by way of r faulted; see Machine.Stale.
func (c *Cache) Stale(r Pinned) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.need()
	c.m.Stale(r)
	for a := r.Addr(); a < r.Addr()+Addr(r.Len()); a += Addr(c.c.Bucket) {
		c.hide(r.Rank(), a)
	}
}

// Conceal takes own memory back that s has exposed; see Space.Conceal.
func (c *Cache) Conceal(s *Space, a Addr) error { return c.revoke(a, s.Conceal) }

// Unmap takes own mapped memory back and unmaps it; see Space.Unmap.
func (c *Cache) Unmap(s *Space, a Addr, unmap func(mem []byte) error) error {
	return c.revoke(a, func(m *Machine, a Addr) error { return s.Unmap(m, a, unmap) })
}

func (c *Cache) revoke(a Addr, f func(*Machine, Addr) error) error {
	c.mu.Lock()
	c.need()
	err := f(c.m, a)
	left := c.progressIfAny()
	c.mu.Unlock()
	c.finish(left)
	return err
}

// Close unpins everything. No peer may need it any more: a barrier comes before.
func (c *Cache) Close() {
	c.mu.Lock()
	c.closed = true
	if c.m == nil {
		c.mu.Unlock()
		return
	}
	c.m.Close()
	c.unsent = nil
	var left after
	if c.e != nil { // else it was not even bound
		left = c.progress()
	}
	c.mu.Unlock()
	c.finish(left)
}

// waiter takes the one whose cookie is c.next's. c.mu is held.
func (c *Cache) waiter(rank int, a Addr, n uint64) *waiter {
	w := c.next
	w.rank, w.a, w.n, w.used = rank, a, n, true
	c.prepare()
	return w
}

// prepare finds a waiter that is not in use, or makes one.
func (c *Cache) prepare() {
	if k := len(c.idle) - 1; k >= 0 {
		c.next, c.idle = c.idle[k], c.idle[:k]
	} else {
		c.next = &waiter{c: c, cookie: uint64(len(c.waiters))}
		c.next.cond = c.next.ended
		c.waiters = append(c.waiters, c.next)
	}
	c.cookie = c.next.cookie
}

// recycle gives a waiter back that has ended. c.mu is held.
func (c *Cache) recycle(w *waiter) {
	w.cookie += 1 << 32
	w.then, w.r, w.err = nil, Pinned{}, nil
	w.done.Store(false)
	c.idle = append(c.idle, w)
}

// ended reports whether w is done, having sent what is to be sent.
func (w *waiter) ended() bool {
	if !w.done.Load() && w.c.busy.Load() {
		w.c.mu.Lock()
		left := w.c.progress()
		w.c.mu.Unlock()
		w.c.finish(left)
	}
	return w.done.Load()
}

// wait does what is left, polls, and waits until w is done.
func (c *Cache) wait(w *waiter, left after) (Pinned, error) {
	c.finish(left)
	if err := c.e.Wait(w, w.cond); err != nil && !w.done.Load() {
		return Pinned{}, err // the job has failed: nothing is given back any more
	}
	r, err := w.r, w.err
	c.mu.Lock()
	c.recycle(w)
	c.mu.Unlock()
	return r, err
}

// after is what progress leaves for when c.mu has been given back: finish does it.
type after struct {
	call bool // functions of pins that have ended
	wake bool // goroutines of this rank
}

// progressIfAny is progress if the Machine has results or messages. c.mu is held.
func (c *Cache) progressIfAny() after {
	if c.m.done.Empty() && c.m.out.Empty() {
		return after{}
	}
	return c.progress()
}

// progress sends what is to be sent, unless it is in a handler, and hands
// completions to their waiters. c.mu is held.
func (c *Cache) progress() after {
	wake := c.collect()
	if c.unsent != nil || !c.m.out.Empty() {
		if !c.e.Conduit().Polling() {
			c.send()
		}
		// Once: without credit a waiter would go on looking instead of sleeping
		// until some comes, which wakes it.
		unsent := c.unsent != nil || !c.m.out.Empty()
		wake = !c.busy.Swap(unsent) && unsent || wake
	}
	return after{call: !c.calling && !c.ended.Empty(), wake: wake}
}

// finish does what progress has left. c.mu is not held.
func (c *Cache) finish(left after) {
	if left.call || left.wake {
		c.finishSlow(left)
	}
}

func (c *Cache) finishSlow(left after) {
	if left.call && c.callEnded() || left.wake {
		c.e.Conduit().Wake(c.e.Rank())
	}
}

// callEnded calls the functions of pins that have ended, one at a time, and says
// whether there were any.
func (c *Cache) callEnded() (some bool) {
	c.mu.Lock()
	for !c.calling {
		w, ok := c.ended.Take()
		if !ok {
			break
		}
		then, r, err := w.then, w.r, w.err
		c.recycle(w)
		c.calling = true
		c.mu.Unlock()
		then(r, err)
		c.mu.Lock()
		c.calling = false
		some = true
	}
	c.mu.Unlock()
	return some
}

// collect hands completions to their waiters, and reports whether there were any
// goroutines among them. c.mu is held.
func (c *Cache) collect() (some bool) {
	for {
		d, ok := c.m.NextDone()
		if !ok {
			return some
		}
		some = c.completeWaiter(&d) || some
	}
}

// completeWaiter hands a completion to its waiter and reports whether that is a goroutine.
// c.mu is held.
func (c *Cache) completeWaiter(d *Done) bool {
	w := c.waiters[uint32(d.Cookie)]
	if !w.used || w.cookie != d.Cookie {
		return false // ended already, since the job has failed
	}
	w.used, w.r, w.err = false, d.Pinned, d.Err
	if w.then != nil {
		c.ended.Add(w)
		return false
	}
	w.done.Store(true)
	return true
}

// send sends as long as there is credit. c.mu is held; nothing here polls.
func (c *Cache) send() {
	for {
		var m Message
		if k := c.unsent; k != nil {
			m = *k
		} else if n, ok := c.m.NextMessage(); ok {
			m = n
		} else {
			return
		}
		// An error means that the job has failed, which Wait reports.
		if sent, err := c.try(&m); !sent || err != nil {
			if c.unsent == nil {
				c.unsent = new(Message)
				*c.unsent = m
			}
			return
		}
		c.m.Recycle(m.Payload)
		c.unsent = nil
	}
}

// try sends a message if there is credit.
func (c *Cache) try(m *Message) (bool, error) {
	if m.Payload == nil {
		return c.e.TryRequestShort(m.Dst, handlerMoveOne, m.Move[:]...)
	}
	return c.e.TryRequestMedium(m.Dst, handlerMove, m.Payload)
}

func (c *Cache) onMove(t *am.Token, _ []uint32, payload []byte) {
	c.mu.Lock()
	c.need()
	b, ok := c.m.Receive(t.Src(), payload, c.reply[:0])
	c.reply = b
	left := c.progressIfAny()
	c.mu.Unlock()
	c.finish(left)
	if ok {
		// Without c.mu: it may have to take other replies first. An error means
		// that the job has failed.
		_ = t.ReplyMedium(handlerMoved, b)
	}
	c.mu.Lock()
	c.m.Vacate()
	left = c.progressIfAny()
	c.mu.Unlock()
	c.finish(left)
}

func (c *Cache) onMoveOne(t *am.Token, args []uint32, _ []byte) {
	if !conc.Enter(&c.mu) {
		c.mu.Lock()
	}
	c.need()
	w, ok := c.m.ReceiveMove(t.Src(), Move(args))
	// Only there a short message takes less. The words of messages are what simulated
	// runs are compared by, and in which place of its page Go memory lies, which the
	// address says, is not the same in all of them.
	first, views := t.Endpoint().Conduit().Views() // c.e may not be there yet
	i := uint(t.Src() - first)
	near, sent := i < uint(len(views)) && views[i].Base != nil, false
	if ok && near {
		sent, _ = t.TryReplyShort(handlerMovedOne, w[:]...)
	}
	c.m.Vacate() // no pin waits for this
	if !near {
		c.reply = w.append(c.reply[:0])
	}
	b := c.reply
	left := c.progressIfAny()
	c.mu.Unlock()
	c.finish(left)
	switch {
	case !ok || sent:
	case near:
		_ = t.ReplyShort(handlerMovedOne, w[:]...) // as above
	default:
		_ = t.ReplyMedium(handlerMovedFar, b)
	}
}

func (c *Cache) onMovedOne(t *am.Token, args []uint32, _ []byte) {
	c.movedOne(t.Src(), Moved(args))
}

func (c *Cache) onMovedFar(t *am.Token, _ []uint32, payload []byte) {
	c.movedOne(t.Src(), movedIn(payload))
}

// movedOne takes the answer to a Move.
func (c *Cache) movedOne(src int, w Moved) {
	if !conc.Enter(&c.mu) {
		c.mu.Lock()
	}
	c.need()
	d, ok := c.m.ReceiveMoved(src, w)
	wake := ok && c.completeWaiter(&d)
	var left after
	if c.ended.Empty() {
		left = c.progressIfAny()
	} else {
		left = c.progress()
	}
	c.mu.Unlock()
	left.wake = left.wake || wake
	c.finish(left)
}

func (c *Cache) onMoved(t *am.Token, _ []uint32, payload []byte) {
	c.mu.Lock()
	c.need()
	c.m.ReceiveReply(t.Src(), payload)
	left := c.progressIfAny()
	c.mu.Unlock()
	c.finish(left)
}
