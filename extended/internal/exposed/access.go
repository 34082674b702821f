// The state machine of one access to exposed memory of another rank. An access goes its
// way without a goroutine that waits for it:
//
//	state     what is under way              ends in    and is then
//	bouncing  the owner makes it             bounced    over
//	asking    a pin is asked for             granted    pinned, or refused
//	pinned    -                              advance    moving
//	refused   -                              advance    asking for less, or over
//	moving    the conduit's operations       drop       partly, or over
//	partly    -                              advance    asking: there is more of it, or
//	                                                    the owner is asked anew
//
// start chooses the first state; over is end, which tells the completer. What ends a
// state may be a handler, where nothing can be sent: so pinned, refused and partly wait
// in a queue for advance, which package am calls for every waiter. An access that
// has waited in none of these states is in short.go.

package exposed

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

type state uint8

const (
	bouncing state = iota
	asking
	pinned
	refused
	moving
	partly
)

// keepMax is the longest buffer, bytes, that an Access keeps for its next use.
const keepMax = 4096

// Cookie marks the cookies of accesses, for the conduit; those of other operations are
// less.
const Cookie = 1 << 62

// Access is an access that is under way.
type Access struct {
	of    *accesses
	index uint32
	gen   uint32  // a new one with each use; under accesses.mu
	next  *Access // in accesses.free

	request
	state  state
	way    way
	again  bool   // it has faulted before
	own    []byte // a buffer of its own, for b
	cookie uint64 // the completer gets it
	want   conduits.Event

	bounce bounce
	region firehose.Pinned // if pinned or moving
	done   int             // bytes that have been moved
	chunk  int             // bytes behind them that region is, or is asked, for

	// left counts the conduit's operations, and the goroutine that begins them.
	left  atomic.Int32
	value uint64 // what an atomic found
	err   error  // the first; while moving under accesses.mu

	then func(firehose.Pinned, error) // granted
}

// accesses are those of one rank. They are safe for concurrent use.
type accesses struct {
	cache   *firehose.Cache
	policy  *policy
	bounces *bounces
	user    am.Completer

	e  *am.Endpoint
	ep conduits.Endpoint

	atOnce conduits.AtOnce     // ep, or nil
	many   conduits.ManyAtOnce // likewise

	maxLong uint64 // conduits.Limits has it

	spare *Access // see next; the cache's lock guards it

	todo  atomic.Int32 // in ready
	mu    sync.Mutex
	all   []*Access // by index
	free  *Access
	ready conc.Queue[*Access] // pinned, refused, partly
}

func (p *Access) name() uint64 { return Cookie | uint64(p.index) }

// Rank is whose memory is accessed.
func (p *Access) Rank() int { return p.rank }

// claim makes an access of a free record or a new one.
func (s *accesses) claim(k kind, rank int, at segment.NLA, want conduits.Event, cookie uint64) *Access {
	s.mu.Lock()
	p := s.free
	if p != nil {
		s.free = p.next
	} else {
		if s.all == nil { // a rank that has none is not to be slowed down
			s.e.Advance(s.advance)
		}
		p = &Access{of: s, index: uint32(len(s.all))}
		p.then = p.granted
		s.all = append(s.all, p)
	}
	p.gen++
	s.mu.Unlock()
	p.next = nil
	p.kind, p.rank, p.addr, p.want, p.cookie = k, rank, addrOf(at), want, cookie
	p.again, p.done, p.chunk, p.value = false, 0, 0, 0
	return p
}

// start begins p. Not in a handler.
func (s *accesses) start(p *Access) {
	n := uint64(p.size())
	if s.policy.looks(p.addr, n) {
		if r, ok := s.cache.TryRemotePin(p.rank, p.addr, n); ok {
			p.region, p.way, p.chunk = r, wayMiss, int(n)
			s.issue(p)
			return
		}
	}
	p.way = s.policy.choose(p.rank, p.addr, n)
	if p.way == wayBounce {
		p.state = bouncing
		s.bounces.start(&p.bounce, &p.request, p.index, p.gen)
		return
	}
	s.ask(p)
}

// bounceAt is the bounce of the access with that index, or nil.
func (s *accesses) bounceAt(index uint32) *bounce {
	s.mu.Lock()
	defer s.mu.Unlock()
	if uint64(index) >= uint64(len(s.all)) {
		return nil
	}
	return &s.all[index].bounce
}

// bounced ends the access whose bounce is over. In handlers, too.
func (s *accesses) bounced(b *bounce) {
	s.mu.Lock()
	p := s.all[b.index]
	s.mu.Unlock()
	p.value = b.value
	s.finish(p, b.err)
}

// ask asks for what p needs: firehoses to as much of the rest as one pin covers, or the
// registration of all of it.
func (s *accesses) ask(p *Access) {
	p.state = asking
	if p.way == wayOnce {
		p.chunk = p.size()
		if err := s.cache.PinOnceThen(p.rank, p.addr, uint64(p.chunk), p.then); err != nil {
			s.refuse(p, err)
		}
		return
	}
	a := p.addr + firehose.Addr(p.done)
	p.chunk = int(min(uint64(p.size()-p.done), s.policy.reach(a)))
	r, ok, err := s.cache.RemotePinThen(p.rank, a, uint64(p.chunk), p.then)
	switch {
	case err != nil:
		s.finish(p, err)
	case ok:
		p.region = r
		s.issue(p)
	}
}

// granted is told that what p has asked for is pinned, or why not. In handlers, too.
func (p *Access) granted(r firehose.Pinned, err error) {
	p.state, p.region, p.err = pinned, r, err
	if err != nil {
		p.state = refused
	}
	p.of.later(p)
}

// refuse goes on bucket by bucket if memory could not be registered for want of room,
// and ends p otherwise.
func (s *accesses) refuse(p *Access, err error) {
	if p.way == wayOnce && errors.Is(err, errs.ErrResource) {
		p.way = wayMiss
		s.ask(p)
		return
	}
	s.finish(p, err)
}

// issue begins the conduit's operations on what is pinned.
func (s *accesses) issue(p *Access) {
	p.state = moving
	p.left.Store(1)
	end := p.done + p.chunk
	for at := p.done; at < end; {
		g, k := s.cache.At(p.region, p.addr+firehose.Addr(at))
		n := int(min(k, uint64(end-at), s.maxLong))
		p.left.Add(1)
		var value uint64
		var ev conduits.Event
		var err error
		switch {
		case k == 0:
			err = &conduits.PeerError{Rank: p.rank, Op: kindNames[p.kind], Err: errGone}
		case p.kind == kindAtomic && uint64(g.NLA)%uint64(n) != 0:
			err = errUnaligned(nlaOf(p.addr), p.rank, p.typ)
		case p.kind == kindAtomic:
			if value, ev, err = s.ep.Atomic(p.rank, g.NLA, p.op, p.typ, p.v, p.w, p.name()); ev != 0 {
				p.value = value
			}
		case p.kind == kindWord && uint64(g.NLA)%uint64(n) == 0:
			ev, err = s.ep.PutWord(p.rank, g.NLA, p.v, n, conduits.RemoteDone, p.name())
		case p.kind == kindGet:
			ev, err = s.ep.Get(p.b[at:at+n:at+n], p.rank, g.NLA, conduits.RemoteDone, p.name())
		default:
			ev, err = s.ep.Put(p.rank, g.NLA, p.b[at:at+n:at+n], conduits.RemoteDone, p.name())
		}
		if err != nil || ev&conduits.RemoteDone != 0 {
			p.left.Add(-1)
		}
		if err != nil {
			s.note(p, err)
			break
		}
		at += n
	}
	s.drop(p)
}

// errGone: the firehoses to a rank are gone because it has failed.
var errGone = errs.Closed("the firehoses to it are closed")

// note remembers the first failure.
func (s *accesses) note(p *Access, err error) {
	s.mu.Lock()
	if p.err == nil {
		p.err = err
	}
	s.mu.Unlock()
}

// complete is told by the conduit that one of an access' operations has ended.
func (s *accesses) complete(index, value uint64, err error) {
	s.mu.Lock()
	p := s.all[index]
	s.mu.Unlock()
	if err != nil {
		s.note(p, err)
	} else {
		p.value = value
	}
	s.drop(p)
}

// drop takes one off what p waits for while it is moving. When it was the last, p's pin
// is released, and p goes on or ends. In handlers, too.
func (s *accesses) drop(p *Access) {
	if p.left.Add(-1) != 0 {
		return
	}
	err := p.err // every piece that could have set it has been dropped
	retry := !p.again && errors.Is(err, segment.ErrFault)
	if retry {
		// The owner is asked anew: it knows whether the memory is there.
		p.again, p.err, err = true, nil, nil
		s.cache.Stale(p.region)
	}
	r := p.region
	p.region = firehose.Pinned{}
	if e := s.cache.Release(r); err == nil {
		err = e
	}
	if err == nil && !retry {
		p.done += p.chunk
	}
	if err != nil || p.done == p.size() {
		s.finish(p, err)
		return
	}
	p.state = partly
	s.later(p)
}

// later leaves p to advance.
func (s *accesses) later(p *Access) {
	s.mu.Lock()
	s.ready.Add(p)
	s.todo.Add(1)
	s.mu.Unlock()
	s.ep.Wake(s.ep.Rank())
}

// advance goes on with what could not go on where it came to light: in handlers,
// or without credit. It neither waits nor polls. Not in a handler. Every wait of the
// rank calls it: a peer may depend on an operation whose initiator is in a barrier
// meanwhile.
func (s *accesses) advance() {
	if s.cache.Busy() {
		s.cache.Advance()
	}
	for s.todo.Load() > 0 {
		s.mu.Lock()
		p, ok := s.ready.Take()
		if ok {
			s.todo.Add(-1)
		}
		s.mu.Unlock()
		if !ok {
			break
		}
		err := p.err
		p.err = nil
		switch p.state {
		case pinned:
			s.issue(p)
		case partly:
			s.ask(p)
		case refused:
			s.refuse(p, err)
		}
	}
	s.bounces.sendAll()
}

// finish ends p and tells the completer.
func (s *accesses) finish(p *Access, err error) {
	if err != nil {
		err = failure(p.kind, p.size(), p.addr, p.rank, err)
	}
	cookie, want, value := p.cookie, p.want, p.value
	s.mu.Lock()
	p.b, p.err = nil, nil
	if cap(p.own) > keepMax {
		p.own = nil
	}
	p.next, s.free = s.free, p
	s.mu.Unlock()
	s.user.Complete(cookie, want, value, err)
}

// setWord says what the put of a word puts.
func (p *Access) setWord(v uint64, n int) {
	if cap(p.own) < 8 {
		p.own = make([]byte, 8)
	}
	p.v, p.b = v, p.own[:n]
	storeWord(p.b, v)
}
