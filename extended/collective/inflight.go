package collective

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
)

// Calls that were begun without waiting are operations, by number of the call. An
// operation has links of its own, so that several do not disturb each other, and a list of
// stages. A handler that brings something for one has it queued, for handlers must not send;
// whatever goroutine of the rank polls or waits next takes its stages (am.Messenger.Advance).

// kindNB is the bit of a kind of calls that do not wait.
const kindNB kind = 1 << 7

// dirNB is the bit of a direction in messages with data of such calls.
const dirNB = 1 << 7

// flight is the operations of an endpoint. The endpoint's lock guards it.
type flight struct {
	ops   []*op // by number, those that other ranks have begun alone included
	going int   // how many this rank has begun

	barrier Handle // that BarrierNotify has begun
}

// op is an operation.
type op struct {
	work
	state uint8 // opEarly and so on; this and what follows, up to err, under c.mu
	links links
	then  func(error)
	err   error

	over    atomic.Bool   // it has ended, with err
	use     atomic.Uint32 // tells apart the operations that used this memory
	queued  bool          // under engine.mu, like running
	running bool          // its stages are being taken

	// The fields below belong to the goroutine that takes stages, and before state is opGoing
	// to that which begins the call.
	next    int   // of stages
	failed  error // what has ended the stages, of a call whose puts are to be over first
	more    bool  // there is another list of them
	combine Combine
	lacks   func() int // lacking, for those that wait
}

// The states of an operation.
const (
	opEarly   = iota // other ranks have begun the call
	opEntered        // this one has, and makes the list of stages
	opGoing
	opOver
)

// engine takes the stages of the operations of a rank.
type engine struct {
	e    *am.Messenger
	todo atomic.Int32 // in queue, stalled and reports
	took sync.Mutex   // held by the goroutine that takes stages, which waits for nothing
	late atomic.Bool  // another one has found it held

	mu      sync.Mutex // the last of all locks
	queue   []*op
	stalled []*op // without credit
	reports []report
	spare   []*op
}

// report is a mismatch that the other ranks have to be told of.
type report struct {
	c    *Member
	next int // this rank and so many more is the next to be told
}

// mostSpare is how many operations are kept to be used again.
const mostSpare = 16

// engineOf is the engine of c's rank, which there is when the first operation is begun.
func (c *Member) engineOf() *engine {
	w := c.world()
	if g := w.engine.Load(); g != nil {
		return g
	}
	g := &engine{e: w.e}
	if !w.engine.CompareAndSwap(nil, g) {
		return w.engine.Load()
	}
	w.e.Advance(g.advance)
	return g
}

// inFlight is the operation of number seq, if there is one. Called with mu held.
func (c *Member) inFlight(seq uint32) *op {
	if c.flight == nil {
		return nil
	}
	if k, ok := c.flight.find(seq); ok {
		return c.flight.ops[k]
	}
	return nil
}

func (f *flight) find(seq uint32) (int, bool) {
	return slices.BinarySearchFunc(f.ops, seq, func(o *op, seq uint32) int { return int(int32(o.seq - seq)) })
}

// operation is the operation of number seq, made if there is none. Called with mu held.
func (c *Member) operation(seq uint32) *op {
	if c.flight == nil {
		c.flight = new(flight)
	}
	f := c.flight
	k, ok := f.find(seq)
	if ok {
		return f.ops[k]
	}
	o := c.world().engine.Load().recycled()
	o.seq = seq
	f.ops = slices.Insert(f.ops, k, o)
	return o
}

// recycled is an operation that is not used. There may be no engine yet.
func (g *engine) recycled() *op {
	if g == nil {
		return new(op)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if k := len(g.spare); k > 0 {
		o := g.spare[k-1]
		g.spare = g.spare[:k-1]
		return o
	}
	return new(op)
}

// recycle keeps o, which is over, to be used again, unless the engine has it, and returns its result.
func (o *op) recycle() (blocks [][]byte) {
	if o.lists != nil {
		blocks = o.blocks
	}
	g := o.c.engineOf()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.spare) == mostSpare || o.queued || o.running {
		return blocks
	}
	err := o.err
	o.clear()
	o.err, o.failed, o.combine, o.state, o.next = nil, nil, nil, opEarly, 0
	o.over.Store(false)
	o.release(err)
	g.spare = append(g.spare, o)
	return blocks
}

// beginNB begins call d, whose list of stages the caller makes. Then it calls start.
func (c *Member) beginNB(d call, combine Combine) (*op, error) {
	if err := c.usable(d); err != nil {
		return nil, err
	}
	g := c.engineOf()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy {
		return nil, c.errBusy(d)
	}
	if c.broken != nil {
		g.reportOf(c)
		return nil, c.broken
	}
	c.seq++
	c.call = d
	c.remember(c.seq, d)
	o := c.operation(c.seq)
	o.c, o.ls, o.call, o.state, o.combine = c, &o.links, d, opEntered, combine
	c.flight.going++
	c.compare()
	if err := c.broken; err != nil {
		o.over.Store(true) // no Handle of it is given out
		o.remove()
		g.reportOf(c)
		return nil, err
	}
	return o, nil
}

// start takes the first stages of o, whose list is made.
func (o *op) start() Handle {
	h := Handle{o, o.use.Load()}
	o.c.mu.Lock()
	o.state = opGoing
	g := o.c.world().engine.Load()
	g.kick(o)
	o.c.mu.Unlock()
	g.advance()
	return h
}

// remove takes o out of its endpoint, with its links. Called with mu held.
func (o *op) remove() {
	f := o.c.flight
	if k, ok := f.find(o.seq); ok && f.ops[k] == o {
		f.ops = slices.Delete(f.ops, k, k+1)
		f.going--
	}
	o.links.drop()
	o.state = opOver
}

// kick has the stages of o taken, if there are any. Called with o's endpoint's mu held.
func (g *engine) kick(o *op) {
	if o.state != opGoing {
		return
	}
	g.mu.Lock()
	if !o.queued {
		o.queued = true
		g.queue = append(g.queue, o)
		g.todo.Add(1)
	}
	g.mu.Unlock()
}

// kickAll is kick for all operations of c. Called with mu held.
func (c *Member) kickAll() {
	if c.flight == nil {
		return
	}
	for _, o := range c.flight.ops {
		if o.state == opGoing {
			c.world().engine.Load().kick(o)
		}
	}
}

// advance takes the stages that can be taken. It neither waits nor polls. Not in a handler.
func (g *engine) advance() {
	for again := false; g.todo.Load() > 0 && (!again || g.some()); again = true {
		if !g.took.TryLock() {
			g.late.Store(true)
			return
		}
		g.pass()
		g.took.Unlock()
		if g.late.Swap(false) {
			// Another goroutine may wait for what was found here, such as that a rank has left.
			g.wake()
		}
	}
}

// some reports whether an operation is queued that is not known to lack credit.
func (g *engine) some() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.queue) > 0
}

func (g *engine) wake() {
	ep := g.e.Conduit()
	ep.Wake(ep.Rank())
}

// pass looks at all that there is to do.
func (g *engine) pass() {
	g.mu.Lock()
	g.queue = append(g.queue, g.stalled...)
	clear(g.stalled)
	g.stalled = g.stalled[:0]
	g.mu.Unlock()
	for o, stalled := (*op)(nil), false; ; {
		if o = g.take(o, stalled); o == nil {
			break
		}
		stalled = o.run()
	}
	g.announce()
}

// take is the operation whose stages are to be taken next, if there is one; before is that
// of which they were, and stalled what run said of it.
func (g *engine) take(before *op, stalled bool) *op {
	g.mu.Lock()
	defer g.mu.Unlock()
	if before != nil {
		before.running = false
		if stalled && !before.queued {
			before.queued = true
			g.stalled = append(g.stalled, before)
			g.todo.Add(1)
		}
	}
	if len(g.queue) == 0 {
		return nil
	}
	o := g.queue[0]
	g.queue = slices.Delete(g.queue, 0, 1)
	o.queued, o.running = false, true
	g.todo.Add(-1)
	return o
}

// reportOf has the other ranks told of the mismatch of c, if this rank is to do it.
// Called with c.mu held.
func (g *engine) reportOf(c *Member) {
	if !c.report {
		return
	}
	c.report = false
	g.mu.Lock()
	g.reports = append(g.reports, report{c, 1})
	g.todo.Add(1)
	g.mu.Unlock()
}

// announce tells the other ranks of all mismatches that are to be reported, as far as there is credit.
func (g *engine) announce() {
	g.mu.Lock()
	todo := g.reports
	g.reports = nil
	g.mu.Unlock()
	for _, r := range todo {
		if r.tell(false) {
			g.todo.Add(-1)
			continue
		}
		g.mu.Lock()
		g.reports = append(g.reports, r)
		g.mu.Unlock()
	}
}

// tellFirst is how many ranks are told of a mismatch before looking whether another rank does so.
const tellFirst = 32

// tell tells the other ranks of a mismatch that this rank has found, and reports whether it is done: without
// waits it stops where there is no credit. Very many ranks may find it at once: the lowest of those
// tells all others, and the others stop when they hear of it.
func (r *report) tell(waits bool) bool {
	c := r.c
	c.mu.Lock()
	w := c.faultWords() // which stays
	c.mu.Unlock()
	for ; r.next < c.size; r.next++ {
		c.mu.Lock()
		spared := c.spared
		c.mu.Unlock()
		if spared && r.next > tellFirst {
			return true
		}
		// A rank that cannot be told has failed, which all learn.
		to := c.job((c.rank + r.next) % c.size)
		if waits {
			_ = c.e.RequestShort(to, handlerAbort, w[:]...)
			if r.next%tellFirst == 0 {
				c.e.Poll()
			}
		} else if ok, err := c.e.TryRequestShort(to, handlerAbort, w[:]...); !ok && err == nil {
			return false
		}
	}
	return true
}

// run takes the stages of o that can be taken; stalled says that there was no credit for one.
func (o *op) run() (stalled bool) {
	c := o.c
	c.mu.Lock()
	going, err := o.state == opGoing, c.broken
	c.mu.Unlock()
	if !going {
		return false
	}
	if err == nil {
		err = o.failed
	}
	for err == nil {
		if o.next == len(o.stages) {
			if !o.more {
				break
			}
			o.stages, o.next = o.stages[:0], 0
			o.more = o.step()
			continue
		}
		var came int
		came, err = o.attempt(o.next, o.combine)
		if came != stageDone && err == nil {
			return came == stageStalls
		}
		o.next++
	}
	if o.puts != nil {
		came, failed := o.drain()
		if came == stageStalls {
			o.failed = err
			return true
		}
		if err == nil {
			err = failed
		}
	}
	o.retire(err)
	return false
}

// retire ends o with err, by the goroutine that takes stages.
func (o *op) retire(err error) {
	c, g := o.c, o.c.engineOf()
	if err != nil {
		err = c.failed(o.call, o.seq, err)
	}
	o.closeAll()
	c.mu.Lock()
	if c.broken != nil {
		g.reportOf(c)
	}
	o.remove()
	then := o.then
	o.then, o.err, o.waiting = nil, err, false
	o.over.Store(true)
	c.mu.Unlock()
	if then != nil {
		then(err)
	}
	g.wake()
}

// gaveUp reports whether this rank may have ended mine, which matches what the sender of w waits in,
// because the job has failed: not a mismatch, and the sender hears of the failure, too.
func gaveUp(t *am.Token, w *note, mine call) bool {
	return w.call().matches(mine) && t.Messenger().Conduit().Err() != nil
}

// reports reports whether this rank is in a call, and so will tell others of a mismatch.
// Called with mu held.
func (c *Member) reports() bool { return c.active || c.flight != nil && c.flight.going > 0 }

// Handle names a call that was begun without waiting. It may be copied; of all copies one
// takes the call's result, once.
type Handle struct {
	o   *op
	use uint32
}

// taken is the error of a Handle whose result was taken.
func (h Handle) taken() error {
	if h.o == nil || h.o.use.Load() != h.use {
		return errs.BadArg("collective: the result of a call was taken before: each Handle is waited for once (Wait, or Try until that says true)")
	}
	return nil
}

// Ready reports whether Wait would return at once. It does not poll.
func (h Handle) Ready() bool { return h.taken() != nil || h.o.over.Load() }

// Wait waits until this rank's part in the call is done, answering peers and advancing the
// rank's other calls meanwhile; the buffers are the caller's again. A second Wait is an error.
func (h Handle) Wait() error {
	_, err := h.WaitBlocks()
	return err
}

// WaitBlocks is Wait for GatherVNB, AllGatherVNB and ExchangeVNB, whose result it returns.
func (h Handle) WaitBlocks() ([][]byte, error) {
	blocks, _, err := h.WaitUntil(nil)
	return blocks, err
}

// WaitUntil is WaitBlocks that gives up when stop, which is asked whenever something has
// come, says so: done is false then, and the call goes on. stop may be nil.
func (h Handle) WaitUntil(stop func() bool) (blocks [][]byte, done bool, err error) {
	if err := h.taken(); err != nil {
		return nil, true, err
	}
	o := h.o
	if !o.over.Load() {
		if o.lacks == nil {
			o.lacks = o.lacking
		}
		err := o.c.e.WaitFor(o, conduits.Cond{Work: true, Lacking: o.lacks, Ready: func() bool { return o.over.Load() || stop != nil && stop() }})
		switch {
		case err != nil && !o.over.Load():
			return nil, true, h.abandon(err)
		case !o.over.Load():
			return nil, false, nil
		}
	}
	if !o.use.CompareAndSwap(h.use, h.use+1) {
		return nil, true, h.taken()
	}
	err = o.err
	return o.recycle(), true, err
}

// Try is Wait that returns false in place of waiting, after one poll.
func (h Handle) Try() (done bool, err error) {
	if err := h.taken(); err != nil {
		return true, err
	}
	if !h.o.over.Load() {
		h.o.c.e.Poll()
	}
	if !h.o.over.Load() && h.o.c.e.Conduit().Err() == nil {
		return false, nil
	}
	return true, h.Wait()
}

// Notify has f called when the call is done, by a goroutine that polls or waits and runs no
// handler; f neither waits nor polls. It is called here if the call is done already, and
// not at all if the job fails before. The result is still to be taken. Once for a Handle.
func (h Handle) Notify(f func(err error)) {
	if h.taken() != nil {
		return
	}
	o := h.o
	o.c.mu.Lock()
	if !o.over.Load() {
		o.then = f
		o.c.mu.Unlock()
		return
	}
	err := o.err
	o.c.mu.Unlock()
	f(err)
}

// Lacking is a rank that has left the job without which the call cannot end, or -1: what
// am.Messenger.WaitFor wants to know.
func (h Handle) Lacking() int {
	if h.Ready() {
		return -1
	}
	return h.o.lacking()
}

func (o *op) lacking() int {
	c := o.c
	c.mu.Lock()
	waiting, peer := o.waiting, int(o.peer)
	c.mu.Unlock()
	if !waiting || !c.e.Conduit().Left(c.job(peer)) {
		return -1
	}
	g := c.engineOf()
	g.advance() // with what has come before it left
	g.mu.Lock()
	queued := o.queued
	g.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if queued || o.state != opGoing || !o.waiting || int(o.peer) != peer {
		return -1
	}
	return c.job(peer)
}

// Blocked names the ranks that the call waits for; it makes a Handle a conduits.Blocked.
func (h Handle) Blocked() string {
	if h.taken() != nil {
		return "a call that is over"
	}
	return h.o.Blocked()
}

// Blocked is Handle.Blocked.
func (o *op) Blocked() string {
	c := o.c
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blocked(o.seq, o.call, o.waiting, o.ready, int(o.peer))
}

// abandon ends the wait for a call that err, a failure of the job, has ended.
func (h Handle) abandon(err error) error {
	o := h.o
	c, g := o.c, o.c.engineOf()
	err = c.failed(o.call, o.seq, err)
	g.took.Lock() // no stage uses the buffers from now on
	o.closeAll()
	c.mu.Lock()
	if o.state != opOver {
		o.remove()
	}
	o.then = nil
	c.mu.Unlock()
	g.took.Unlock()
	o.use.CompareAndSwap(h.use, h.use+1)
	return err
}
