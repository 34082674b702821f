package chaos

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// opKind says what a deferred operation is.
type opKind uint8

const (
	opPut opKind = iota
	opGet
	opWord
	opAtomic
	opLong
)

// operation is one that a later poll performs.
type operation struct {
	kind   opKind
	dst    int
	to     segment.NLA
	buf    []byte // source or destination; the caller's
	want   conduits.Event
	cookie uint64
	v      uint64 // PutWord
	n      int    // its bytes; the payload's length of a long request
	op     conduits.AtomicOp
	typ    conduits.AtomicType
	a, b   uint64
	words  []uint32 // long
	tag    conduits.Tag
	left   int // polls
}

// allowed says that an operation on n > 0 bytes of rank cannot fail when it is
// begun, so that it may be begun later. Where the conduit below has no direct
// access the rights to the segment are not known, and nothing is deferred. Of
// registered memory nothing is known in any case, and a caller that asks for want hears
// of a refusal, if at all, with RemoteDone.
func (e *endpoint) allowed(rank int, a segment.NLA, n uint64, need segment.Rights, want conduits.Event) bool {
	if n == 0 || conduits.CheckRank(e.inner, "", rank) != nil {
		return false
	}
	if !conduits.InSegment(e.inner, rank, a, n) {
		return want&conduits.RemoteDone != 0 && conduits.Registered(e.inner.SegmentSize(rank), a, n)
	}
	first, views := e.inner.Views()
	i := uint(rank - first)
	if i >= uint(len(views)) {
		return false
	}
	v := &views[i]
	limit := v.Atomic
	switch need {
	case segment.RightRead:
		limit = v.Read
	case segment.RightWrite:
		limit = v.Write
	}
	_, ok := v.At(a, n, limit)
	return ok
}

// mayDefer decides. A job that has failed is left alone.
func (e *endpoint) mayDefer() bool {
	if e.cfg.Defer <= 0 || e.inner.Err() != nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.deferred) < e.cfg.Kept && e.chance(e.cfg.Defer)
}

// deferOp keeps an operation for a later poll.
func (e *endpoint) deferOp(o operation) {
	e.mu.Lock()
	o.left = e.while()
	e.deferred = append(e.deferred, o)
	e.mu.Unlock()
	e.did.deferred.Add(1)
	e.inner.Wake(e.rank) // siblings may be asleep that would perform it
}

// tell keeps the completions ev of an operation that has returned, and says
// which its caller may hear of now.
func (e *endpoint) tell(ev conduits.Event, value, cookie uint64) conduits.Event {
	if ev == 0 || !e.late() {
		return ev
	}
	e.mu.Lock()
	keep := ev
	if both := conduits.SourceDone | conduits.RemoteDone; ev == both && e.rng.IntN(2) == 0 {
		keep = conduits.RemoteDone
	}
	e.later(completion{cookie: cookie, ev: keep, value: value})
	e.mu.Unlock()
	e.inner.Wake(e.rank)
	return ev &^ keep
}

// Put copies now or later.
func (e *endpoint) Put(dst int, to segment.NLA, src []byte, want conduits.Event, cookie uint64) (conduits.Event, error) {
	if !e.op() {
		return 0, e.gone()
	}
	// Without any completion the caller could not learn when src may be reused.
	if want != 0 && e.allowed(dst, to, uint64(len(src)), segment.RightWrite, want) && e.mayDefer() {
		e.deferOp(operation{kind: opPut, dst: dst, to: to, buf: src, want: want, cookie: cookie})
		return 0, nil
	}
	ev, err := e.inner.Put(dst, to, src, want, cookie)
	if err != nil {
		return ev, err
	}
	return e.tell(ev&want, 0, cookie), nil
}

// Get copies now or later.
func (e *endpoint) Get(dst []byte, src int, from segment.NLA, want conduits.Event, cookie uint64) (conduits.Event, error) {
	if !e.op() {
		return 0, e.gone()
	}
	if want&conduits.RemoteDone != 0 && e.allowed(src, from, uint64(len(dst)), segment.RightRead, want) && e.mayDefer() {
		e.deferOp(operation{kind: opGet, dst: src, to: from, buf: dst, want: want, cookie: cookie})
		return 0, nil
	}
	ev, err := e.inner.Get(dst, src, from, want, cookie)
	if err != nil {
		return ev, err
	}
	return e.tell(ev&want, 0, cookie), nil
}

// PutWord stores now or later.
func (e *endpoint) PutWord(dst int, to segment.NLA, v uint64, n int, want conduits.Event, cookie uint64) (conduits.Event, error) {
	if !e.op() {
		return 0, e.gone()
	}
	sound := n == 1 || n == 2 || n == 4 || n == 8
	if sound && want != 0 && uint64(to)%uint64(n) == 0 && e.allowed(dst, to, uint64(n), segment.RightWrite, want) && e.mayDefer() {
		e.deferOp(operation{kind: opWord, dst: dst, to: to, v: v, n: n, want: want, cookie: cookie})
		return 0, nil
	}
	ev, err := e.inner.PutWord(dst, to, v, n, want, cookie)
	if err != nil {
		return ev, err
	}
	return e.tell(ev&want, 0, cookie), nil
}

// Atomic performs op now or later.
func (e *endpoint) Atomic(dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64, cookie uint64) (uint64, conduits.Event, error) {
	if !e.op() {
		return 0, 0, e.gone()
	}
	if conduits.CheckAtomic("", op, t, to) == nil && e.allowed(dst, to, uint64(t.Size()), segment.RightAtomic, conduits.RemoteDone) && e.mayDefer() {
		e.deferOp(operation{kind: opAtomic, dst: dst, to: to, op: op, typ: t, a: a, b: b, want: conduits.RemoteDone, cookie: cookie})
		return 0, 0, nil
	}
	v, ev, err := e.inner.Atomic(dst, to, op, t, a, b, cookie)
	if err != nil {
		return v, ev, err
	}
	if ev = e.tell(ev&conduits.RemoteDone, v, cookie); ev == 0 {
		v = 0
	}
	return v, ev, nil
}

// perform does the operations whose time has come. requests reports whether
// requests may be sent here. The caller is the poller.
func (e *endpoint) perform(requests bool) {
	if e.dead.Load() {
		return
	}
	e.mu.Lock()
	for i := range e.deferred {
		e.deferred[i].left--
	}
	e.mu.Unlock()
	for {
		e.mu.Lock()
		i := pick(e.rng, len(e.deferred), func(i int) bool {
			o := &e.deferred[i]
			return o.left <= 0 && (o.kind != opLong || requests)
		})
		if i < 0 {
			e.mu.Unlock()
			return
		}
		o := e.deferred[i]
		e.deferred = append(e.deferred[:i], e.deferred[i+1:]...)
		e.mu.Unlock()
		if o.kind != opLong {
			e.move(&o)
			continue
		}
		if !e.sendLong(&o) {
			e.mu.Lock()
			e.deferred = append(e.deferred, o)
			e.mu.Unlock()
			requests = false // no credit: the next poll tries again
		}
	}
}

// move performs a deferred operation and keeps its completions.
func (e *endpoint) move(o *operation) {
	var ev conduits.Event
	var value uint64
	var err error
	switch o.kind {
	case opPut:
		ev, err = e.inner.Put(o.dst, o.to, o.buf, o.want, o.cookie)
	case opGet:
		ev, err = e.inner.Get(o.buf, o.dst, o.to, o.want, o.cookie)
	case opWord:
		ev, err = e.inner.PutWord(o.dst, o.to, o.v, o.n, o.want, o.cookie)
	case opAtomic:
		value, ev, err = e.inner.Atomic(o.dst, o.to, o.op, o.typ, o.a, o.b, o.cookie)
	}
	if err != nil {
		ev = o.want
	}
	if ev &= o.want; ev == 0 {
		return
	}
	e.mu.Lock()
	if err != nil {
		e.done = append(e.done, completion{cookie: o.cookie, ev: ev, err: err})
	} else {
		e.later(completion{cookie: o.cookie, ev: ev, value: value})
	}
	e.mu.Unlock()
}

// Post begins an access, now or later.
func (e *endpoint) Post(a *conduits.Access) (conduits.Event, error) {
	if a.Now {
		return e.now(a)
	}
	return conduits.PostBy(e, a)
}

// now makes an access at once, of its pieces some, or says that it cannot be.
func (e *endpoint) now(a *conduits.Access) (conduits.Event, error) {
	a.Value = 0
	if !e.op() || e.roll(e.cfg.Defer, &e.did.refused) {
		return 0, nil
	}
	all := a.Pieces
	if len(all) > 1 {
		e.mu.Lock()
		if e.chance(e.cfg.Defer) {
			a.Pieces = all[:1+e.rng.IntN(len(all)-1)]
		}
		e.mu.Unlock()
	}
	ev, err := e.inner.Post(a)
	a.Pieces = all
	return ev, err
}
