package firehose

import (
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Handler indices of this package.
const (
	handlerMove     = am.FirstFirehose + iota // medium request: a machine's message
	handlerMoved                              // its reply
	handlerMoveOne                            // short request: a move
	handlerMovedOne                           // its reply
	handlerMovedFar                           // the same as a medium reply
)

// Cache is a machine at work: over active messages, and for many goroutines. It
// is made before am.Attach, which gets its Handlers, and bound afterwards. A Route asks it
// for what accesses need, by four calls: now makes an access that a firehose reaches, ask
// pins memory for one, done and giveUp end that.
type Cache struct {
	e  *am.Messenger
	ep conduits.Endpoint // e's

	mu     conc.Lock
	m      *machine    // nil as long as nothing has to do with memory of others
	c      Config      // of m
	closed bool        // m is to be closed
	busy   atomic.Bool // there is something to be sent
	pins   []*pin      // by the low half of their cookies, less 1
	unsent *message    // for want of credit; nil if there is none
	kept   kept        // for accesses under mu
	reply  []byte      // of the request handler, of which one runs at a time

	shared atomic.Pointer[shared] // nil before the second goroutine that looks for a hit
}

// pin is a region that an access asks a Cache for, and holds when it has been granted.
type pin struct {
	// then is told that region, or err, is there. It is called once for each ask that
	// answers asked, with the lock held: it calls no method of the Cache, and does not wait.
	then func()

	region region
	err    error

	// Under the Cache's lock:
	cookie uint64 // its place in pins, and 1<<32 for each ask
	asked  bool   // then is to be called
	rank   int
	a      Addr
	n      uint64
}

// kept is the record of accesses that are made at once: one on the caller's stack would
// have to be allocated, since the conduit gets it by an interface.
type kept struct{ conduits.Access }

// make has ep make an access at once, at the registered address at, and reports whether it did:
// it puts or gets mem, or is that of the word of a.
func (k *kept) make(ep conduits.Endpoint, verb conduits.Verb, rank int, at segment.NLA, mem []byte, a *conduits.Access) bool {
	k.Verb, k.Now, k.Rank, k.At = verb, true, rank, at
	if verb <= conduits.Get {
		k.Mem = mem
		ev, _ := ep.Post(&k.Access)
		k.Mem = nil
		return ev != 0
	}
	k.Op, k.Type, k.Size, k.A, k.B = a.Op, a.Type, a.Size, a.A, a.B
	ev, _ := ep.Post(&k.Access)
	a.Value = k.Value
	return ev != 0
}

// NewCache makes a Cache. c as for New.
func NewCache(c Config) (*Cache, error) {
	_, err := c.ensure()
	if err != nil {
		return nil, err
	}
	return &Cache{c: c}, nil
}

// need makes the machine unless it is there: most ranks of a large job never need
// it, and then it would be most of what they take. c.mu is held.
func (c *Cache) need() {
	if c.m == nil {
		c.newMachine()
	}
}

func (c *Cache) newMachine() {
	k := c.c
	k.leave = c.hide
	m, err := newMachine(k)
	if err != nil {
		panic("firehose: " + err.Error()) // NewCache has found it to be good
	}
	if c.closed {
		m.Close()
	}
	m.first = c.first
	c.m = m
}

// Handlers are for am.Config.Runtime.
func (c *Cache) Handlers() []am.Entry {
	return []am.Entry{
		{Index: handlerMove, Name: "firehose.move", Fn: c.onMove, Args: 0, Kinds: am.Medium | am.Request},
		{Index: handlerMoved, Name: "firehose.moved", Fn: c.onMoved, Args: 0, Kinds: am.Medium | am.Reply},
		{Index: handlerMoveOne, Name: "firehose.move-one", Fn: c.onMoveOne, Args: len(move{}), Kinds: am.Short | am.Request},
		{Index: handlerMovedOne, Name: "firehose.moved-one", Fn: c.onMovedOne, Args: len(moved{}), Kinds: am.Short | am.Reply},
		{Index: handlerMovedFar, Name: "firehose.moved-far", Fn: c.onMovedFar, Args: 0, Kinds: am.Medium | am.Reply},
	}
}

// Bind connects the cache to its rank's endpoint. Nothing is pinned remotely before
// all ranks have attached. Ranks whose Config.Digest differ refuse each other's
// requests with ErrBadArg.
func (c *Cache) Bind(e *am.Messenger) error {
	if k := &c.c; k.Rank != e.Rank() || k.Size != e.Size() || k.Payload > e.MaxMedium() {
		return errs.BadArg("firehose: made for rank %d of %d and messages of %d bytes, bound to rank %d of %d with %d",
			k.Rank, k.Size, k.Payload, e.Rank(), e.Size(), e.MaxMedium())
	}
	c.mu.Lock()
	c.e, c.ep = e, e.Conduit()
	c.mu.Unlock()
	return nil
}

// Limits are those of the machine; see Limits.
func (c *Cache) Limits() Limits {
	k := c.c
	l, _ := k.ensure() // NewCache has found it to be good
	return l
}

// hide, Config.leave of m, has readers find the bucket at a no more. c.mu is held.
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

// now puts or gets mem, or makes the access of the word of a, n bytes at at of rank, if they lie
// in one bucket that a firehose reaches, and the conduit makes the access at once; else nothing
// has happened. It takes no lock that another goroutine takes for such an access, and waits for
// nothing. The arguments are those of kept.make, for which no record is written here.
func (c *Cache) now(verb conduits.Verb, rank int, at Addr, n uint64, mem []byte, a *conduits.Access) (done bool) {
	if !conc.Enter(&c.mu) {
		return c.nowShared(verb, rank, at, n, mem, a)
	}
	if c.m != nil {
		if g, ok := c.m.Look(rank, at, n); ok {
			if done = c.kept.make(c.ep, verb, rank, g.NLA, mem, a); !done {
				c.m.stats.RemoteHits--
			}
		}
	}
	c.mu.Unlock()
	return done
}

// nowShared is now of a goroutine that c.mu is not biased to.
func (c *Cache) nowShared(verb conduits.Verb, rank int, at Addr, n uint64, mem []byte, a *conduits.Access) (done bool) {
	s := c.readers()
	if u := s.enter(); u != nil {
		g, ok := s.Look(rank, at, n)
		if ok {
			done = u.kept.make(c.ep, verb, rank, g.NLA, mem, a)
		}
		u.exit(done)
		if ok {
			return done
		}
	}
	c.mu.Lock()
	if c.m != nil {
		if g, ok := c.m.Look(rank, at, n); ok {
			s.add(c.m.share(rank, at, s), Grant{g.NLA - segment.NLA(uint64(at)&s.mask), g.Key})
			if done = c.kept.make(c.ep, verb, rank, g.NLA, mem, a); !done {
				c.m.stats.RemoteHits--
			}
		}
	}
	c.mu.Unlock()
	return done
}

// readers is c.shared, made if need be.
func (c *Cache) readers() *shared {
	s := c.shared.Load()
	if s == nil {
		c.shared.CompareAndSwap(nil, newShared(c.c.Bucket))
		s = c.shared.Load()
	}
	return s
}

// many is now for several accesses of one rank's memory, of which k says all but the
// pieces: as many of these, from the first on, as firehoses reach. It returns how many have
// been made. reached has room for as many.
func (c *Cache) many(k *conduits.Access, pieces, reached []conduits.Piece) (made int) {
	if conc.Enter(&c.mu) {
		if c.m != nil {
			found := 0
			found, made = c.all(c.m, k, pieces, reached)
			c.m.stats.RemoteHits -= uint64(found - made)
		}
		c.mu.Unlock()
		return made
	}
	s := c.readers()
	u := s.enter()
	if u == nil {
		return 0
	}
	if _, made = c.all(s, k, pieces, reached); made > 1 {
		u.other.Add(uint64(1 - made)) // the visit counts as one
	}
	u.exit(made > 0)
	return made
}

// finder is where grants are found: a machine, or shared.
type finder interface {
	Look(rank int, a Addr, n uint64) (Grant, bool)
}

func (c *Cache) all(f finder, k *conduits.Access, pieces, reached []conduits.Piece) (found, made int) {
	for _, p := range pieces {
		g, ok := f.Look(k.Rank, addrOf(p.At), uint64(len(p.Mem)))
		if !ok {
			break
		}
		reached[found] = conduits.Piece{At: g.NLA, Mem: p.Mem}
		found++
	}
	if found == 0 {
		return 0, 0
	}
	k.Pieces, k.Now = reached[:found], true
	if ev, _ := c.ep.Post(k); ev != 0 {
		made = int(k.Value)
	}
	return found, made
}

// answer is the result of ask.
type answer uint8

const (
	absent answer = iota // it is not all there, and has not been asked for
	asked                // p.then is told
	there                // p.region is
)

// How ask may get what is not there.
type how uint8

const (
	notAtAll   how = iota // neither messages nor queues; in handlers, too
	byFirehose            // the buckets of the range
	byTransfer            // exactly the range, for this one access: an error that matches errs.ErrResource says that there is no room
)

// ask pins [a, a+n) of rank's memory for p. It does not wait. On pins that wait see the package
// comment.
func (c *Cache) ask(p *pin, rank int, a Addr, n uint64, by how) (answer, error) {
	c.lock()
	if p.cookie == 0 {
		c.pins = append(c.pins, p)
		p.cookie = uint64(len(c.pins))
	}
	p.cookie += 1 << 32
	p.rank, p.a, p.n = rank, a, n
	var ok bool
	var err error
	switch by {
	case notAtAll:
		p.region, ok = c.m.TryRemotePin(rank, a, n)
	case byFirehose:
		p.region, ok, err = c.m.RemotePin(rank, a, n, p.cookie)
	case byTransfer:
		err = c.m.PinOnce(rank, a, n, p.cookie)
	}
	got, wake := absent, false
	switch {
	case ok:
		got = there
	case by != notAtAll && err == nil:
		got, p.asked = asked, true
		wake = c.progress()
	}
	c.unlock(wake)
	return got, err
}

// done ends the use of what p has. In handlers, too.
func (c *Cache) done(p *pin) error { return c.release(p, false) }

// giveUp is done after an access by way of p has faulted: the owner has taken the memory back,
// and is asked anew before it is granted again.
func (c *Cache) giveUp(p *pin) error { return c.release(p, true) }

func (c *Cache) release(p *pin, stale bool) error {
	c.lock()
	r := p.region
	p.region = region{}
	if stale {
		c.m.Stale(r)
		for a := r.Addr(); a < r.Addr()+Addr(r.Len()); a += Addr(c.c.Bucket) {
			c.hide(r.Rank(), a)
		}
	}
	err := c.m.Release(r)
	c.unlock(c.progressIfAny())
	return err
}

// at is where to reach address a of what p has, and how many bytes from there on that is
// good for.
func (c *Cache) at(p *pin, a Addr) (Grant, uint64) {
	if g, n, ok := p.region.reach(a); ok {
		return g, n // as long as it is in use its grant does not change
	}
	c.lock()
	defer c.mu.Unlock()
	return c.m.At(p.region, a)
}

// Busy reports whether Advance has something to do. It is a load.
func (c *Cache) Busy() bool { return c.busy.Load() }

// Advance sends what could not be sent when it came up, for want of credit or in
// a handler. A caller that waits by polling calls it when Busy says so, outside handlers.
//
// When the job has failed, Advance and Close end all pins that have not ended with the error
// that says why.
func (c *Cache) Advance() {
	c.lock()
	wake := false
	if err := c.ep.Err(); err != nil {
		for _, p := range c.pins {
			if p.asked {
				p.tell(region{}, err)
				wake = true
			}
		}
	}
	c.unlock(c.progress() || wake)
}

// Conceal takes own memory back that s has exposed at a: when it returns no rank reaches it.
func (c *Cache) Conceal(s *Space, a Addr) error { return c.Unmap(s, a, nil) }

// Unmap is Conceal of mapped memory, which unmap unmaps: a conduit's Endpoint.UnmapMemory, which
// takes back whatever else has been registered of it.
func (c *Cache) Unmap(s *Space, a Addr, unmap func(mem []byte) error) error {
	c.lock()
	err := s.conceal(c.m, a, unmap)
	c.unlock(c.progressIfAny())
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
	wake := false
	if c.e != nil { // else it was not even bound
		wake = c.progress()
	}
	c.unlock(wake)
}

// lock takes c.mu, for what has to do with memory of others.
func (c *Cache) lock() {
	if !conc.Enter(&c.mu) {
		c.mu.Lock()
	}
	c.need()
}

// unlock gives c.mu back, and has goroutines of this rank look again if wake.
func (c *Cache) unlock(wake bool) {
	c.mu.Unlock()
	if wake {
		c.ep.Wake(c.ep.Rank())
	}
}

// tell tells p's access what has become of it.
func (p *pin) tell(r region, err error) {
	p.asked, p.region, p.err = false, r, err
	p.then()
}

// complete ends the pin that d is of, and reports whether there is one. c.mu is held.
func (c *Cache) complete(d *ended) bool {
	p := c.pins[uint32(d.Cookie)-1]
	if !p.asked || p.cookie != d.Cookie {
		return false // ended already, since the job has failed
	}
	p.tell(d.Pinned, d.Err)
	return true
}

// progressIfAny is progress if the machine has results or messages. c.mu is held.
func (c *Cache) progressIfAny() (wake bool) {
	return !(c.m.done.Empty() && c.m.out.Empty()) && c.progress()
}

// progress ends the pins that the machine has ended, and sends what is to be sent, unless it
// is in a handler. It reports whether goroutines of this rank are to look again. c.mu is held.
func (c *Cache) progress() (wake bool) {
	for {
		d, ok := c.m.NextDone()
		if !ok {
			break
		}
		wake = c.complete(&d) || wake
	}
	if c.unsent != nil || !c.m.out.Empty() {
		if !c.ep.Polling() {
			c.send()
		}
		// Once: without credit a waiter would go on looking instead of sleeping
		// until some comes, which wakes it.
		unsent := c.unsent != nil || !c.m.out.Empty()
		wake = !c.busy.Swap(unsent) && unsent || wake
	}
	return wake
}

// first is machine.first.
func (c *Cache) first(dst int, w move) bool {
	if c.unsent != nil || c.ep.Polling() {
		return false
	}
	sent, _ := c.e.TryRequestShort(dst, handlerMoveOne, w[:]...) // an error means that the job has failed, which Wait reports
	return sent
}

// send sends as long as there is credit. c.mu is held; nothing here polls.
func (c *Cache) send() {
	for {
		var m message
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
				c.unsent = new(message)
				*c.unsent = m
			}
			return
		}
		c.m.Recycle(m.Payload)
		c.unsent = nil
	}
}

// try sends a message if there is credit.
func (c *Cache) try(m *message) (bool, error) {
	if m.Payload == nil {
		return c.e.TryRequestShort(m.Dst, handlerMoveOne, m.Move[:]...)
	}
	return c.e.TryRequestMedium(m.Dst, handlerMove, m.Payload)
}

func (c *Cache) onMove(t *am.Token, _ []uint32, payload []byte) {
	c.lock()
	b, ok := c.m.Receive(t.Src(), payload, c.reply[:0])
	c.reply = b
	c.unlock(c.progressIfAny())
	if ok {
		// Without c.mu: it may have to take other replies first. An error means
		// that the job has failed.
		_ = t.ReplyMedium(handlerMoved, b)
	}
	c.mu.Lock()
	c.m.Vacate()
	c.unlock(c.progressIfAny())
}

func (c *Cache) onMoveOne(t *am.Token, args []uint32, _ []byte) {
	c.lock()
	w, ok := c.m.ReceiveMove(t.Src(), move(args))
	// Only there a short message takes less. Simulated runs are compared by the words of
	// messages, and an address would put into them the place of Go memory in its page,
	// which is not the same in all of them.
	first, views := t.Messenger().Conduit().Views() // c.e may not be there yet
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
	c.unlock(c.progressIfAny())
	switch {
	case !ok || sent:
	case near:
		_ = t.ReplyShort(handlerMovedOne, w[:]...) // as above
	default:
		_ = t.ReplyMedium(handlerMovedFar, b)
	}
}

func (c *Cache) onMovedOne(t *am.Token, args []uint32, _ []byte) {
	c.movedOne(t.Src(), moved(args))
}

func (c *Cache) onMovedFar(t *am.Token, _ []uint32, payload []byte) {
	c.movedOne(t.Src(), movedIn(payload))
}

// movedOne takes the answer to a move.
func (c *Cache) movedOne(src int, w moved) {
	c.lock()
	d, ok := c.m.ReceiveMoved(src, w)
	wake := ok && c.complete(&d)
	c.unlock(c.progressIfAny() || wake)
}

func (c *Cache) onMoved(t *am.Token, _ []uint32, payload []byte) {
	c.lock()
	c.m.ReceiveReply(t.Src(), payload)
	c.unlock(c.progressIfAny())
}
