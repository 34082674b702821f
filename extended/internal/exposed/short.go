// The short way of an access. First, if its bucket's firehose is attached and the conduit makes
// accesses at once (conduits.AtOnce), it is made between Enter and Exit of the cache, which
// take no lock, and that is all. Else, or after one miss that its goroutine waits for, the
// conduit's operation is begun while the cache is locked, and nothing is noted if it is
// complete at once. It is the way of short accesses
// to memory in reach of load and store, where the operation is no more than a copy. What
// is not complete at once is a moving access of the state machine from then on; what
// finds no firehose, and what faults, begins there by start.

package exposed

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// short is an access that is made the short way. It stays on the stack.
type short struct {
	s    *accesses
	rank int
	at   segment.NLA
	b    []byte  // source or destination, of a put or get
	done bool    // complete
	p    *Access // what it has become, to be attached; nil if it is to start, or done
}

// next is the access that a short one becomes if the conduit does not complete it at
// once. The cache is locked.
func (s *accesses) next(rank int, a segment.NLA) *Access {
	if s.spare == nil {
		s.spare = s.claim(kindPut, rank, a, 0, 0)
		s.spare.left.Store(2) // the conduit's operation, and the goroutine that begins it
	}
	return s.spare
}

// begun takes the conduit's answer and reports whether that is all. A fault is: the access
// starts anew, which finds out more. The cache is locked.
func (q *short) begun(ev conduits.Event, err error) bool {
	if q.done = ev&conduits.RemoteDone != 0 && err == nil; q.done {
		return true
	}
	return q.notDone(err)
}

func (q *short) notDone(err error) bool {
	if err != nil {
		return true
	}
	q.p, q.s.spare = q.s.spare, nil
	return false
}

// fetch makes the access of n bytes to what no firehose is attached to, by one miss that
// it waits for, if the policy has one attached. No other access needs to know of such a miss.
func (q *short) fetch(k kind, n int, access func(firehose.Grant) bool) (r firehose.Pinned, err error) {
	s, a := q.s, addrOf(q.at)
	if !s.policy.fetches(q.rank, a, n) {
		return r, nil
	}
	r, ok, err := s.cache.Fetch(q.rank, a, uint64(n), access)
	if ok || err != nil {
		s.policy.fetched(q.rank, a, n)
	}
	if err != nil {
		err = failure(k, n, a, q.rank, err)
	}
	return r, err
}

// kept makes an access of what is not complete at once: r is what keeps its bucket in
// use.
func (q *short) kept(k kind, n int, r firehose.Pinned) *Access {
	p := q.p
	if p == nil {
		return nil
	}
	p.kind, p.rank, p.addr, p.b = k, q.rank, addrOf(q.at), q.b
	p.state, p.way, p.chunk, p.region = moving, wayMiss, n, r
	return p
}

// enter begins an access of n bytes that a firehose reaches, for a conduit that makes it at
// once: Exit of the cache ends it.
func (s *accesses) enter(rank int, at segment.NLA, n int) (g firehose.Grant, v firehose.Visit, hit bool) {
	if s.atOnce == nil {
		return g, v, false
	}
	return s.cache.Enter(rank, addrOf(at), uint64(n))
}

// TryPut puts src if its target is in reach at once, or, if wait, after one miss. done
// says that it is complete. Otherwise p is what the access has become, to be given to
// Attach, or nil if it is to be made by Put. Without wait there is no error. Nothing
// needs to have been checked before, but that to is an exposed address.
func (x *Endpoint) TryPut(dst int, to segment.NLA, src []byte, wait bool) (done bool, p *Access, err error) {
	if !x.short(dst, len(src)) {
		return false, nil, nil
	}
	s := &x.accesses
	if g, v, hit := s.enter(dst, to, len(src)); hit {
		done = s.atOnce.PutAtOnce(dst, g.NLA, src)
		if s.cache.Exit(v, done); done {
			return true, nil, nil
		}
	}
	return x.reachPut(dst, to, src, wait)
}

func (x *Endpoint) reachPut(dst int, to segment.NLA, src []byte, wait bool) (done bool, p *Access, err error) {
	q := short{s: &x.accesses, rank: dst, at: to, b: src}
	access := func(g firehose.Grant) bool {
		p := q.s.spare
		if p == nil {
			p = q.s.next(q.rank, q.at)
		}
		return q.begun(q.s.ep.Put(q.rank, g.NLA, q.b, conduits.RemoteDone, p.name()))
	}
	r, ok := x.accesses.cache.Reach(dst, addrOf(to), uint64(len(src)), access)
	if q.done {
		return true, nil, nil
	}
	if !ok && wait {
		r, err = q.fetch(kindPut, len(src), access)
	}
	return q.done, q.kept(kindPut, len(src), r), err
}

// TryGet is TryPut for a get.
func (x *Endpoint) TryGet(src int, from segment.NLA, dst []byte, wait bool) (done bool, p *Access, err error) {
	if !x.short(src, len(dst)) {
		return false, nil, nil
	}
	s := &x.accesses
	if g, v, hit := s.enter(src, from, len(dst)); hit {
		done = s.atOnce.GetAtOnce(dst, src, g.NLA)
		if s.cache.Exit(v, done); done {
			return true, nil, nil
		}
	}
	return x.reachGet(src, from, dst, wait)
}

func (x *Endpoint) reachGet(src int, from segment.NLA, dst []byte, wait bool) (done bool, p *Access, err error) {
	q := short{s: &x.accesses, rank: src, at: from, b: dst}
	access := func(g firehose.Grant) bool {
		p := q.s.spare
		if p == nil {
			p = q.s.next(q.rank, q.at)
		}
		return q.begun(q.s.ep.Get(q.b, q.rank, g.NLA, conduits.RemoteDone, p.name()))
	}
	r, ok := x.accesses.cache.Reach(src, addrOf(from), uint64(len(dst)), access)
	if q.done {
		return true, nil, nil
	}
	if !ok && wait {
		r, err = q.fetch(kindGet, len(dst), access)
	}
	return q.done, q.kept(kindGet, len(dst), r), err
}

// PutWordAtOnce puts a word of n bytes, 1 to 8, if its target is in reach at once and that is
// all there is to do: for callers that begin nothing before. Nothing needs to have been
// checked before, but that to is an exposed address.
func (x *Endpoint) PutWordAtOnce(dst int, to segment.NLA, v uint64, n int) (done bool) {
	s := &x.accesses
	if !x.short(dst, n) {
		return false
	}
	if g, u, hit := s.enter(dst, to, n); hit {
		done = s.atOnce.PutWordAtOnce(dst, g.NLA, v, n)
		s.cache.Exit(u, done)
	}
	return done
}

// GetWordAtOnce is PutWordAtOnce for a get.
func (x *Endpoint) GetWordAtOnce(src int, from segment.NLA, n int) (v uint64, done bool) {
	s := &x.accesses
	if !x.short(src, n) {
		return 0, false
	}
	if g, u, hit := s.enter(src, from, n); hit {
		v, done = s.atOnce.GetWordAtOnce(src, g.NLA, n)
		s.cache.Exit(u, done)
	}
	return v, done
}

// tryWord is TryPut for a word, for which, if wait, PutWordAtOnce has been tried.
func (x *Endpoint) tryWord(dst int, to segment.NLA, v uint64, n int, wait bool) (done bool, p *Access, err error) {
	if !x.short(dst, n) {
		return false, nil, nil
	}
	if !wait && x.PutWordAtOnce(dst, to, v, n) {
		return true, nil, nil
	}
	return x.reachWord(dst, to, v, n, wait)
}

func (x *Endpoint) reachWord(dst int, to segment.NLA, v uint64, n int, wait bool) (done bool, p *Access, err error) {
	q := short{s: &x.accesses, rank: dst, at: to}
	access := func(g firehose.Grant) bool {
		if uint64(g.NLA)%uint64(n) != 0 {
			return q.begun(0, errs.ErrBadArg) // a word is not put to an unaligned address
		}
		p := q.s.next(q.rank, q.at)
		return q.begun(q.s.ep.PutWord(q.rank, g.NLA, v, n, conduits.RemoteDone, p.name()))
	}
	r, ok := x.accesses.cache.Reach(dst, addrOf(to), uint64(n), access)
	if !ok && wait {
		r, err = q.fetch(kindWord, n, access)
	}
	if p = q.kept(kindWord, n, r); p != nil {
		p.setWord(v, n)
	}
	return q.done, p, err
}

// TryAtomic is TryPut for an atomic; value is what was there, if done.
func (x *Endpoint) TryAtomic(dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64, wait bool) (value uint64, done bool, p *Access, err error) {
	n := t.Size()
	if !x.short(dst, n) {
		return 0, false, nil, nil
	}
	s := &x.accesses
	if g, v, hit := s.enter(dst, to, n); hit {
		value, done = s.atOnce.AtomicAtOnce(dst, g.NLA, op, t, a, b)
		if s.cache.Exit(v, done); done {
			return value, true, nil, nil
		}
	}
	return x.reachAtomic(dst, to, op, t, a, b, wait)
}

func (x *Endpoint) reachAtomic(dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64, wait bool) (value uint64, done bool, p *Access, err error) {
	n := t.Size()
	q := short{s: &x.accesses, rank: dst, at: to}
	access := func(g firehose.Grant) bool {
		if uint64(g.NLA)%uint64(n) != 0 {
			return q.begun(0, errs.ErrBadArg) // found again, and said better
		}
		p := q.s.next(q.rank, q.at)
		v, ev, err := q.s.ep.Atomic(q.rank, g.NLA, op, t, a, b, p.name())
		value = v
		return q.begun(ev, err)
	}
	r, ok := x.accesses.cache.Reach(dst, addrOf(to), uint64(n), access)
	if !ok && wait {
		r, err = q.fetch(kindAtomic, n, access)
	}
	if p = q.kept(kindAtomic, n, r); p != nil {
		p.op, p.typ, p.v, p.w = op, t, a, b
	}
	return value, q.done, p, err
}

// Attach says whose p is: the completer is told of its end with want and cookie, maybe
// before Attach returns.
func (x *Endpoint) Attach(p *Access, want conduits.Event, cookie uint64) {
	p.want, p.cookie = want, cookie
	x.accesses.drop(p)
}
