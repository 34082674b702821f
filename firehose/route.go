package firehose

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Route takes a rank's accesses to memory that ranks have exposed, its own included: to
// its caller it looks like a conduit. All methods but SetStrategy may be called by many
// goroutines at once. A nil Route is that of a rank without firehoses; of its methods only
// Check may be called.
type Route struct {
	cache   *Cache
	space   *Space
	policy  policy
	bounces bounces
	user    am.Completer

	e       *am.Messenger
	ep      conduits.Endpoint
	views   []segment.View // of the neighbourhood, from rank first on
	first   int
	maxLong uint64 // conduits.Limits has it

	todo  atomic.Int32 // in ready
	mu    conc.Lock
	all   []*access // by index
	free  *access
	ready conc.Queue[*access] // given, denied, partly
	once  sync.Once           // advances
	held  map[int]int         // buckets that are held, by rank
	pins  []*pin              // of what was held
}

// NewRoute makes a Route that waits for Bind. Accesses that are not complete at once are
// completed by user. bounceMax and onceMin, bytes, are DefaultBounceMax and DefaultOnceMin
// if they are 0.
func NewRoute(c *Cache, s *Space, y Strategy, bounceMax int, onceMin uint64, user am.Completer) *Route {
	x := &Route{cache: c, space: s, user: user}
	x.policy.init(c.Limits(), y, bounceMax, onceMin)
	x.bounces.route = x
	return x
}

// Handlers are for am.Config.Runtime: the Cache's and those of bounces.
func (x *Route) Handlers() []am.Entry { return append(x.cache.Handlers(), x.bounces.handlers()...) }

// Bind connects x with the rank's endpoint, before any access.
func (x *Route) Bind(e *am.Messenger) {
	x.e, x.ep, x.bounces.e = e, e.Conduit(), e
	x.maxLong = x.ep.Limits().MaxLong
	x.first, x.views = x.ep.Views()
}

// SetStrategy changes the strategy. It is for measurements that compare them: no access is
// under way.
func (x *Route) SetStrategy(s Strategy) error {
	if s >= numStrategies {
		return errs.BadArg("firehose: strategy %v: there are %v to %v", s, Adaptive, numStrategies-1)
	}
	x.policy.set(s)
	return nil
}

// Cache is the Cache that NewRoute was given.
func (x *Route) Cache() *Cache { return x.cache }

// Most is how much of an access of n bytes may be one access.
func (x *Route) Most(rank int, a segment.NLA, n uint64) uint64 {
	if rank == x.ep.Rank() {
		return n
	}
	return x.policy.most(addrOf(a), n)
}

// Check returns the error of an access to exposed memory, as far as ranks other than
// its owner can know.
func (x *Route) Check(op string, a segment.NLA, n uint64) error {
	if x == nil {
		return errs.NotSupported("%s: %v is an exposed address: the endpoint was made without Config.Firehose and Config.Space", op, a)
	}
	if n > uint64(segment.ExposedLimit-a) {
		return errs.BadArg("%s: %d bytes at %v: exposed addresses end at %#x", op, n, a, uint64(segment.ExposedLimit-segment.ExposedBase))
	}
	return nil
}

func addrOf(a segment.NLA) Addr { return Addr(a - segment.ExposedBase) }
func nlaOf(a Addr) segment.NLA  { return segment.ExposedBase + segment.NLA(a) }

// Events of an access that is complete.
const complete = conduits.SourceDone | conduits.RemoteDone

// Hit puts or gets mem if it is short, a firehose reaches the memory at at of rank, and the
// conduit copies at once; else nothing has happened. Nothing needs to have been checked before,
// but that at is an exposed address.
func (x *Route) Hit(verb conduits.Verb, rank int, at segment.NLA, mem []byte) bool {
	n := uint64(len(mem))
	return n != 0 && x.short(rank, n) && x.cache.now(verb, rank, addrOf(at), n, mem, nil)
}

// Now is Hit of any access, which may lie on the caller's stack.
func (x *Route) Now(a *conduits.Access) bool {
	n := a.Len()
	return x.short(a.Rank, n) && x.cache.now(a.Verb, a.Rank, addrOf(a.At), n, a.Mem, a)
}

// short reports whether an access of n bytes may be made while the Cache is locked: to memory
// in reach of load and store, where it is no more than a copy.
func (x *Route) short(rank int, n uint64) bool {
	return n <= uint64(x.policy.short) && x.near(rank)
}

func (x *Route) near(rank int) bool {
	i := uint(rank - x.first)
	return i < uint(len(x.views)) && x.views[i].Base != nil
}

// Post is conduits.Endpoint.Post for an exposed address.
func (x *Route) Post(a *conduits.Access) (conduits.Event, error) {
	switch {
	case a.Rank == x.ep.Rank():
		return x.serveSelf(a)
	case x.Now(a):
		return complete, nil
	case a.Verb == conduits.GetWord:
		return 0, errs.BadArg("firehose: %v: only with Now", a.Verb)
	}
	p := x.claim(a)
	have := a.Want &^ p.a.Want & conduits.SourceDone
	x.start(p)
	if !p.last() {
		return have, nil
	}
	if err := x.result(p, a); err != nil {
		return 0, err
	}
	return complete, nil
}

// Do makes a, which may be a GetWord, and waits for it; its caller has tried Now. An error of
// Wait means that the job has failed: what the access has is not given back any more.
func (x *Route) Do(a *conduits.Access) error {
	if a.Rank == x.ep.Rank() {
		_, err := x.serveSelf(a)
		return err
	}
	p := x.claim(a)
	p.waits = true
	p.came.Store(false)
	for x.start(p); ; x.step(p) {
		if !p.came.Load() {
			if err := x.e.Wait(p, p.cond); err != nil && !p.came.Load() {
				return failure(p, err)
			}
		}
		if p.stage == over {
			break
		}
		p.came.Store(false)
	}
	return x.result(p, a)
}

// result hands the value and the error of p, which is over, to a.
func (x *Route) result(p *access, a *conduits.Access) error {
	a.Value = p.value
	if a.Verb == conduits.GetWord {
		a.Value = loadWord(p.a.Mem)
	}
	err := p.err
	x.recycle(p)
	return err
}

// access is an access that is under way, or free. It goes its way without a goroutine that
// waits for it:
//
//	stage     what is under way              ends in    and is then
//	bouncing  the owner makes it             bounced    over
//	asking    a pin is asked for             then       given, or denied
//	given     -                              step       moving
//	denied    -                              step       asking for less, or over
//	moving    the conduit's operations       moved      partly, or over
//	partly    -                              step       asking: there is more of it, or
//	                                                    the owner is asked anew
//
// start chooses the first stage; over is finish. What ends a stage may be a handler, where
// nothing can be sent: so given, denied and partly wait in a queue for advance, which
// package am calls for every waiter, or for Do, which makes the next step itself.
type access struct {
	index uint32
	gen   uint32  // a new one with each use; under Route.mu
	next  *access // in Route.free

	a     conduits.Access // what is to be done; a word that is put lies in Mem, too
	at    Addr
	op    conduits.Access // what the conduit is given of it
	stage stage
	way   way
	again bool   // it has faulted before
	own   []byte // a buffer of its own, for a.Mem

	bounce bounce
	pin    pin
	done   int // bytes that have been moved
	chunk  int // bytes behind them that pin is for

	// left counts the conduit's operations, and held for the goroutine that begins them; it
	// is held if there are none.
	left  atomic.Int32
	value uint64 // what an atomic found
	err   error  // the first; while moving under Route.mu

	met   atomic.Int32 // 1 if Post is about to return, or the access has ended: see last
	waits bool         // Do waits for it
	came  atomic.Bool  // a stage has ended
	cond  func() bool  // came
	x     *Route
}

type stage uint8

const (
	bouncing stage = iota
	asking
	given
	denied
	moving
	partly
	over
)

const held = 1 << 30

// last reports whether its caller, the end of p or Post that is about to return, is the last
// of the two.
func (p *access) last() bool {
	if p.met.Load() == 0 && p.met.Add(1) == 1 {
		return false
	}
	p.met.Store(0)
	return true
}

// Sizes, bytes: the longest source that is copied so that its owner may go on while the
// memory that it goes to is being pinned, the same where the access itself is no more than a
// copy, and the longest buffer that an access keeps for its next use.
const (
	copyMax  = 64 << 10
	copyNear = 4096
	keepMax  = 4096
)

// Cookie marks the cookies of accesses, for the conduit; those of other operations are
// less.
const Cookie = 1 << 62

// advances has the rank's waits call advance. A rank that has no access is not to be slowed down.
func (x *Route) advances() { x.once.Do(func() { x.e.Advance(x.advance) }) }

// claim makes an access of a free record or a new one.
func (x *Route) claim(a *conduits.Access) *access {
	x.mu.Lock()
	p := x.free
	if p != nil {
		x.free = p.next
	} else {
		if x.all == nil {
			x.advances()
		}
		p = &access{x: x, index: uint32(len(x.all))}
		p.pin.then, p.cond = p.then, p.came.Load
		p.left.Store(held)
		x.all = append(x.all, p)
	}
	p.gen++
	x.mu.Unlock()
	p.next = nil
	// Field by field: a has just been written so, and is not there yet as a whole.
	k := &p.a
	k.Verb, k.Op, k.Type, k.Size, k.Want = a.Verb, a.Op, a.Type, a.Size, a.Want|conduits.RemoteDone
	k.Rank, k.At, k.Mem, k.A, k.B, k.Cookie = a.Rank, a.At, a.Mem, a.A, a.B, a.Cookie
	p.at = addrOf(a.At)
	p.again, p.done, p.chunk, p.value, p.waits = false, 0, 0, 0, false
	switch a.Verb {
	case conduits.Put:
		limit := copyMax
		if x.near(a.Rank) {
			limit = copyNear
		}
		if a.Want&conduits.SourceDone != 0 && len(a.Mem) <= limit {
			p.own = append(p.own[:0], a.Mem...)
			p.a.Mem = p.own
			p.a.Want = conduits.RemoteDone
		}
	case conduits.PutWord, conduits.GetWord:
		if cap(p.own) < 8 {
			p.own = make([]byte, 8)
		}
		p.a.Mem, p.a.Want = p.own[:a.Size], conduits.RemoteDone
		if storeWord(p.a.Mem, a.A); a.Verb == conduits.GetWord {
			p.a.Verb = conduits.Get
		}
	}
	return p
}

// size is how many bytes are accessed.
func (p *access) size() int { return int(p.a.Len()) }

// start begins p. Not in a handler.
func (x *Route) start(p *access) {
	rank, at, n := p.a.Rank, p.at, p.a.Len()
	w := x.policy.choose(rank, at, n)
	if w != wayMiss && x.policy.looks(at, n) {
		if got, _ := x.cache.ask(&p.pin, rank, at, n, notAtAll); got == there {
			p.way, p.chunk = wayMiss, int(n)
			x.issue(p)
			return
		}
	}
	p.way = w
	if w == wayBounce {
		x.policy.touch(rank, at, n, w)
		p.stage = bouncing
		x.bounces.start(&p.bounce, &p.a, p.index, p.gen)
		return
	}
	if x.ask(p) == asked {
		x.policy.touch(rank, at, n, w) // p may be over by now
	}
}

// Blocked describes the access that Do waits for, for reports of jobs that hang.
func (p *access) Blocked() string { return "firehose: " + p.what() }

// bounceAt is the bounce of the access with that index, or nil. The access may not be under
// way.
func (x *Route) bounceAt(index uint32) *bounce {
	x.mu.Lock()
	defer x.mu.Unlock()
	if uint64(index) >= uint64(len(x.all)) {
		return nil
	}
	return &x.all[index].bounce
}

// bounced ends the access whose bounce is over. In handlers, too.
func (x *Route) bounced(b *bounce) {
	x.mu.Lock()
	p := x.all[b.index]
	x.mu.Unlock()
	p.value = b.value
	x.finish(p, b.err)
}

// ask asks for what p needs: firehoses to as much of the rest as one pin covers, or the
// registration of all of it.
func (x *Route) ask(p *access) answer {
	p.stage = asking
	a, by := p.at+Addr(p.done), byFirehose
	p.chunk = p.size() - p.done
	if p.way == wayOnce {
		by = byTransfer
	} else {
		p.chunk = int(min(uint64(p.chunk), x.policy.reach(a)))
	}
	got, err := x.cache.ask(&p.pin, p.a.Rank, a, uint64(p.chunk), by)
	switch {
	case err != nil:
		x.refuse(p, err)
	case got == there:
		x.issue(p)
	}
	return got
}

// then is told that what p has asked for is pinned, or why not. The Cache is locked.
func (p *access) then() {
	p.stage, p.err = given, p.pin.err
	if p.err != nil {
		p.stage = denied
	}
	p.x.later(p)
}

// refuse goes on bucket by bucket if memory could not be registered for want of room,
// and ends p otherwise.
func (x *Route) refuse(p *access, err error) {
	if p.way == wayOnce && errors.Is(err, errs.ErrResource) {
		p.way = wayMiss
		x.ask(p)
		return
	}
	x.finish(p, err)
}

// issue begins the conduit's operations on what is pinned.
func (x *Route) issue(p *access) {
	p.stage = moving
	pending := int32(0)
	for at, end := p.done, p.done+p.chunk; at < end; {
		g, k := x.cache.at(&p.pin, p.at+Addr(at))
		n := int(min(k, uint64(end-at), x.maxLong))
		if k == 0 {
			x.note(p, &conduits.PeerError{Rank: p.a.Rank, Op: verb(p), Err: errGone})
			break
		}
		ev, err := x.post(p, g.NLA, at, n)
		if err != nil {
			x.note(p, err)
			break
		}
		if ev&conduits.RemoteDone == 0 {
			pending++
		}
		at += n
	}
	if pending == 0 || p.left.Add(pending-held) == 0 {
		x.moved(p)
	}
}

// errGone: the firehoses to a rank are gone because it has failed.
var errGone = errs.Closed("the firehoses to it are closed")

// post posts n bytes of p, from byte at on, which are reached at a.
func (x *Route) post(p *access, a segment.NLA, at, n int) (conduits.Event, error) {
	k := &p.op
	k.Verb, k.Op, k.Type, k.Want = p.a.Verb, p.a.Op, p.a.Type, conduits.RemoteDone
	k.Rank, k.At, k.Mem, k.A, k.B, k.Cookie = p.a.Rank, a, nil, p.a.A, p.a.B, Cookie|uint64(p.index)
	aligned := uint64(a)%uint64(n) == 0
	switch {
	case k.Verb == conduits.PutWord && aligned:
		k.Size = uint8(n)
	case k.Verb == conduits.Atomic && !aligned:
		return 0, errUnaligned(&p.a)
	case k.Verb != conduits.Atomic:
		if k.Size = 0; aligned && k.Verb == conduits.Get && n == int(p.a.Size) {
			k.Size = p.a.Size
		}
		k.Mem = p.a.Mem[at : at+n : at+n]
		if k.Verb == conduits.PutWord {
			k.Verb = conduits.Put
		}
	}
	ev, err := x.ep.Post(k)
	if k.Verb == conduits.Atomic && ev != 0 {
		p.value = k.Value
	}
	return ev, err
}

// note remembers the first failure.
func (x *Route) note(p *access, err error) {
	x.mu.Lock()
	if p.err == nil {
		p.err = err
	}
	x.mu.Unlock()
}

// Complete takes the conduit's completions whose cookies have Cookie.
func (x *Route) Complete(cookie, value uint64, err error) {
	x.mu.Lock()
	p := x.all[cookie&^Cookie]
	x.mu.Unlock()
	if err != nil {
		x.note(p, err)
	} else {
		p.value = value
	}
	if p.left.Add(-1) == 0 {
		x.moved(p)
	}
}

// moved is told that the conduit's operations have ended: p's pin is released, and p goes on
// or ends. In handlers, too.
func (x *Route) moved(p *access) {
	if p.left.Load() == 0 {
		p.left.Store(held)
	}
	err := p.err // every piece that could have set it has been dropped
	release := x.cache.done
	if !p.again && errors.Is(err, segment.ErrFault) {
		// The owner is asked anew: it knows whether the memory is there.
		p.again, p.err, p.chunk, err = true, nil, 0, nil
		release = x.cache.giveUp
	}
	if e := release(&p.pin); err == nil {
		err = e
	}
	if err == nil {
		p.done += p.chunk
	}
	if err != nil || p.done == p.size() {
		x.finish(p, err)
		return
	}
	p.stage = partly
	x.later(p)
	x.ep.Wake(x.ep.Rank())
}

// later leaves p to Do or advance.
func (x *Route) later(p *access) {
	if p.waits {
		p.came.Store(true)
		return
	}
	x.mu.Lock()
	x.ready.Add(p)
	x.todo.Add(1)
	x.mu.Unlock()
}

// advance goes on with what could not go on where it came to light: in handlers,
// or without credit. It neither waits nor polls. Not in a handler. Every wait of the
// rank calls it: a peer may depend on an operation whose initiator is in a barrier
// meanwhile.
func (x *Route) advance() {
	if x.cache.Busy() {
		x.cache.Advance()
	}
	for x.todo.Load() > 0 {
		x.mu.Lock()
		p, ok := x.ready.Take()
		if ok {
			x.todo.Add(-1)
		}
		x.mu.Unlock()
		if !ok {
			break
		}
		x.step(p)
	}
	x.bounces.sendAll()
}

// step goes on with p.
func (x *Route) step(p *access) {
	err := p.err
	p.err = nil
	switch p.stage {
	case given:
		x.issue(p)
	case partly:
		x.ask(p)
	case denied:
		x.refuse(p, err)
	}
}

// finish ends p, and tells the completer unless Post does. In handlers, too.
func (x *Route) finish(p *access, err error) {
	if p.err = nil; err != nil {
		p.err = failure(p, err)
	}
	if p.waits {
		p.stage = over
		p.came.Store(true)
		x.ep.Wake(x.ep.Rank())
		return
	}
	if !p.last() {
		return
	}
	cookie, want, value, err := p.a.Cookie, p.a.Want, p.value, p.err
	x.recycle(p)
	x.user.Complete(cookie, want, value, err)
}

// recycle makes p free.
func (x *Route) recycle(p *access) {
	p.a.Mem, p.op.Mem, p.err = nil, nil, nil
	if cap(p.own) > keepMax {
		p.own = nil
	}
	x.mu.Lock()
	p.next, x.free = x.free, p
	x.mu.Unlock()
}

// verb is the name of p's verb in errors: the put of a word is a put.
func verb(p *access) string {
	if p.a.Verb == conduits.PutWord {
		return conduits.Put.String()
	}
	return p.a.Verb.String()
}

func (p *access) what() string {
	return fmt.Sprintf("%s of %d bytes at %v of rank %d", verb(p), p.size(), p.a.At, p.a.Rank)
}

// failure is the error of p if err ended it.
func failure(p *access, err error) error { return fmt.Errorf("firehose: %s: %w", p.what(), err) }

func errUnaligned(a *conduits.Access) error {
	return errs.BadArg("firehose: atomic at %v of rank %d: the memory that is exposed there is not aligned to the %d bytes of the type", a.At, a.Rank, a.Type.Size())
}
