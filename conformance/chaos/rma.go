package chaos

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// operation is one that a later poll performs: an access, or a long request, whose data is
// the access'.
type operation struct {
	conduits.Access
	left int // polls

	long    bool
	words   []uint32
	tag     conduits.Tag
	payload int
}

// allowed reports whether an access cannot fail when it is begun, so that it may be begun
// later. Where the conduit below has no direct access the rights to the segment are not
// known, and nothing is deferred. Of registered memory nothing is known in any case, and a
// caller hears of a refusal, if at all, with RemoteDone.
func (e *endpoint) allowed(a *conduits.Access) bool {
	n := a.Len()
	if n == 0 || !a.Sound() || conduits.CheckRank(e.Endpoint, "", a.Rank) != nil {
		return false
	}
	if !conduits.InSegment(e.Endpoint, a.Rank, a.At, n) {
		return a.Wanted()&conduits.RemoteDone != 0 && conduits.Registered(e.SegmentSize(a.Rank), a.At, n)
	}
	first, views := e.Endpoint.Views()
	i := uint(a.Rank - first)
	if i >= uint(len(views)) {
		return false
	}
	v := &views[i]
	limit := v.Atomic
	switch a.Need() {
	case segment.RightRead:
		limit = v.Read
	case segment.RightWrite:
		limit = v.Write
	}
	_, ok := v.At(a.At, n, limit)
	return ok
}

// mayDefer decides. A job that has failed is left alone.
func (e *endpoint) mayDefer() bool {
	if e.cfg.Defer <= 0 || e.Err() != nil {
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
	e.Wake(e.rank) // siblings may be asleep that would perform it
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
	e.Wake(e.rank)
	return ev &^ keep
}

// Post makes an access, now or later.
func (e *endpoint) Post(a *conduits.Access) (conduits.Event, error) {
	if a.Now {
		return e.now(a)
	}
	if !e.op() {
		return 0, e.gone()
	}
	// Without any completion the caller could not learn when its memory may be used again.
	needed := a.Wanted()
	if a.Verb == conduits.Get {
		needed &= conduits.RemoteDone
	}
	if needed != 0 && e.allowed(a) && e.mayDefer() {
		e.deferOp(operation{Access: *a})
		return 0, nil
	}
	ev, err := e.Endpoint.Post(a)
	if err != nil {
		return ev, err
	}
	if ev = e.tell(ev&a.Wanted(), a.Value, a.Cookie); a.Verb == conduits.Atomic && ev == 0 {
		a.Value = 0
	}
	return ev, nil
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
	ev, err := e.Endpoint.Post(a)
	a.Pieces = all
	return ev, err
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
			return o.left <= 0 && (!o.long || requests)
		})
		if i < 0 {
			e.mu.Unlock()
			return
		}
		o := e.deferred[i]
		e.deferred = append(e.deferred[:i], e.deferred[i+1:]...)
		e.mu.Unlock()
		if !o.long {
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
	ev, err := e.Endpoint.Post(&o.Access)
	if err != nil {
		ev = o.Wanted()
	}
	if ev &= o.Wanted(); ev == 0 {
		return
	}
	e.mu.Lock()
	if err != nil {
		e.done = append(e.done, completion{cookie: o.Cookie, ev: ev, err: err})
	} else {
		e.later(completion{cookie: o.Cookie, ev: ev, value: o.Value})
	}
	e.mu.Unlock()
}
