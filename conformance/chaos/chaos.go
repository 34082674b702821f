package chaos

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Local makes the Local of a conduit that is inner with chaos on top.
func Local(inner func(n int, c conduits.Config) ([]conduits.Endpoint, error), cfg Config) func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
	return func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		own := cfg
		eps, err := opened(inner, n, c, cfg.Validate(n), &own.Seed)
		if err != nil {
			return nil, err
		}
		for _, ep := range eps {
			if err := fit(ep); err != nil {
				for _, ep := range eps {
					_ = ep.Close()
				}
				return nil, err
			}
		}
		return Wrap(eps, own), nil
	}
}

// opened opens the ranks of a job, unless invalid says why chaos cannot be on top of them,
// and makes the job's seed of one that is 0.
func opened[T any](inner func(int, conduits.Config) ([]T, error), n int, c conduits.Config, invalid error, seed *uint64) ([]T, error) {
	if invalid != nil {
		return nil, invalid
	}
	if *seed == 0 {
		*seed = c.Seed
	}
	return inner(n, c)
}

// fit says why chaos cannot be on top of ep.
func fit(ep conduits.Endpoint) error {
	if _, ok := conduits.As[conduits.Deliverer](ep); !ok {
		return errs.NotSupported("chaos: endpoints of conduit %s are no conduits.Deliverer", ep.Conduit())
	}
	return nil
}

// Wrap puts chaos on top of eps, which no other code may use any more, before they are
// attached. It panics if cfg is not valid or eps are no [conduits.Deliverer].
func Wrap(eps []conduits.Endpoint, cfg Config) []conduits.Endpoint {
	l := make([]conduits.Endpoint, len(eps))
	for i, ep := range eps {
		l[i] = WrapOne(ep, cfg)
	}
	return l
}

// WrapOne is Wrap for one endpoint, such as this process's of a launched job.
// The other ranks may be wrapped or not.
func WrapOne(ep conduits.Endpoint, cfg Config) conduits.Endpoint {
	if err := cfg.Validate(ep.Size()); err != nil {
		panic(err)
	}
	if err := fit(ep); err != nil {
		panic(err)
	}
	cfg.EnsureDefaults()
	lend, _ := conduits.As[conduits.Deliverer](ep)
	e := &endpoint{
		inner: ep,
		lend:  lend,
		cfg:   cfg,
		rank:  ep.Rank(),
		rng:   rand.New(rand.NewPCG(cfg.Seed, uint64(ep.Rank()))),
		armed: map[int32]announcement{},
	}
	e.handing = e.hand
	for _, k := range cfg.Kill {
		if k.Rank == e.rank && (e.killAt == 0 || k.After < e.killAt) {
			e.killAt = k.After
		}
	}
	e.offer()
	return e
}

// endpoint is one rank. What it keeps is guarded by mu, which is never held
// while the conduit below polls or parks or the Receiver runs.
type endpoint struct {
	inner    conduits.Endpoint
	lend     conduits.Deliverer
	cfg      Config
	rank     int
	receiver conduits.Receiver
	handing  func() // hand, made a value once
	first    int    // Views, once attached
	views    []segment.View
	turns    bool // ranks, and their goroutines, take turns

	// What the conduit below can do besides, nil if it cannot.
	abilities conduits.Abilities
	diagnoser conduits.Diagnoser
	runner    conduits.Runner

	did      counters
	killAt   uint64 // operation, 0 for none
	dead     atomic.Bool
	received [conduits.NumClasses]atomic.Uint64

	// busy is set while a goroutine is in Poll or Spin; it owns ran and keepAll.
	// missed says that another one was turned away meanwhile: it may be about to
	// park, believing that it has looked.
	busy    atomic.Bool
	missed  atomic.Bool
	ran     int  // messages and completions given to the receiver
	keepAll bool // this poll runs nothing

	mu        sync.Mutex
	rng       *rand.Rand
	messages  [conduits.NumClasses][]*kept // in order of arrival
	done      []completion
	deferred  []operation
	long      uint64 // deferred ones that are long requests
	lost      uint64 // such that were never sent, because the peer died
	spare     []*kept
	slots     []slot
	freeSlots []int
	armed     map[int32]announcement
	lies      uint64 // sends that were told a false NoCredit
	lied      int    // in a row
	empties   int    // in a row
	idles     int    // in a row
	startles  int    // in a row
}

// kept is a message that waits.
type kept struct {
	m     conduits.Message
	words [conduits.MaxWords]uint32
	bytes []byte // of a medium payload; its capacity is a multiple of 8, for alignment
	left  int    // polls
	count uint64 // of a long message: registrations when the conduit below delivered it
}

// completion waits to be told.
type completion struct {
	cookie uint64
	ev     conduits.Event
	value  uint64
	err    error
	left   int
}

// announcement is what was known when a goroutine armed.
type announcement struct {
	lies uint64
	n    int // goroutines of this ticket slot
}

// offer finds out what the conduit below can do besides, which this one can then, too, but
// for lanes: each would need messages that wait of its own.
func (e *endpoint) offer() {
	var g conduits.Diagnoser
	var n conduits.Neighbourly
	var r conduits.Runner
	var c conduits.Card
	if e.diagnoser, _ = conduits.As[conduits.Diagnoser](e.inner); e.diagnoser != nil {
		g = e
	}
	if _, ok := conduits.As[conduits.Neighbourly](e.inner); ok {
		n = e
	}
	if e.runner, e.turns = conduits.As[conduits.Runner](e.inner); e.turns {
		r = e
	}
	if k, ok := conduits.As[conduits.Card](e.inner); ok {
		c = card{k, e}
	}
	e.abilities = conduits.Offer(nil, e, g, n, r, c)
}

// Abilities are those of the conduit below, through this one.
func (e *endpoint) Abilities() conduits.Abilities { return e.abilities }

// Diagnosis is that of the conduit below.
func (e *endpoint) Diagnosis() string { return e.diagnoser.Diagnosis() }

// RunRanks hands the endpoints below to the conduit below.
func (e *endpoint) RunRanks(eps []conduits.Endpoint, rank func(i int)) {
	below := make([]conduits.Endpoint, len(eps))
	for i, ep := range eps {
		below[i] = ep
		if e, ok := ep.(*endpoint); ok {
			below[i] = e.inner
		}
	}
	e.runner.RunRanks(below, rank)
}

// GoRank is the conduit's below.
func (e *endpoint) GoRank(f func()) { e.runner.GoRank(f) }

// Interrupt is the conduit's below.
func (e *endpoint) Interrupt(err error) { e.runner.Interrupt(err) }

// chance decides with probability p. mu is held.
func (e *endpoint) chance(p float64) bool { return p > 0 && e.rng.Float64() < p }

// roll is chance without the lock.
func (e *endpoint) roll(p float64, count *atomic.Uint64) bool {
	if p <= 0 {
		return false
	}
	e.mu.Lock()
	yes := e.chance(p)
	e.mu.Unlock()
	if yes {
		count.Add(1)
	}
	return yes
}

// late decides whether a completion is told later than it happens. No more than
// Kept wait, so that a poll has an end.
func (e *endpoint) late() bool {
	e.mu.Lock()
	yes := len(e.done) < e.cfg.Kept && e.chance(e.cfg.Late)
	e.mu.Unlock()
	if yes {
		e.did.late.Add(1)
	}
	return yes
}

// while is for how many polls something waits. mu is held.
func (e *endpoint) while() int { return e.rng.IntN(e.cfg.Patience + 1) }

// op counts an operation and reports whether the rank is alive.
func (e *endpoint) op() bool {
	if e.dead.Load() {
		return false
	}
	n := e.did.ops.Add(1)
	if e.killAt == 0 || n < e.killAt {
		return true
	}
	if e.dead.CompareAndSwap(false, true) {
		e.did.killed.Store(1)
		e.inner.Fail(fmt.Errorf("chaos: killed at operation %d", e.killAt))
	}
	return false
}

// gone is the error of operations of a killed rank.
func (e *endpoint) gone() error {
	if err := e.inner.Err(); err != nil {
		return err
	}
	return errs.Closed("chaos: rank %d was killed", e.rank)
}

// Rank, Size, Conduit and Limits are those of the conduit below.
func (e *endpoint) Rank() int { return e.rank }

// Size is that of the conduit below.
func (e *endpoint) Size() int { return e.inner.Size() }

// Conduit is that of the conduit below.
func (e *endpoint) Conduit() string { return e.inner.Conduit() }

// Limits are those of the conduit below. What waits at its receiver has given
// its credit back.
func (e *endpoint) Limits() conduits.Limits { return e.inner.Limits() }

// Stats counts what the caller has seen: a kept message is not received, a
// deferred operation is under way.
func (e *endpoint) Stats(s *conduits.Stats) {
	e.inner.Stats(s)
	for c := range s.Received {
		s.Received[c] = e.received[c].Load()
	}
	s.Faults += e.did.faults.Load()
	s.NoCredit += e.did.noCredit.Load() + e.did.cancelled.Load()
	e.mu.Lock()
	defer e.mu.Unlock()
	s.Sent[conduits.Request] += e.long + e.lost
	for i := range e.deferred {
		switch o := &e.deferred[i]; {
		case o.long:
		case o.Verb == conduits.Get:
			s.Gets++
		case o.Verb == conduits.Atomic:
			s.Atomics++
		default:
			s.Puts++
		}
	}
}

// Attach puts this endpoint between the conduit below and the Receiver.
func (e *endpoint) Attach(c conduits.AttachConfig) error {
	if !e.op() {
		return e.gone()
	}
	if c.Receiver != nil {
		e.receiver = c.Receiver
		c.Receiver = below{e}
	}
	if err := e.inner.Attach(c); err != nil {
		return err
	}
	e.first, e.views = e.inner.Views()
	if e.cfg.HideNeighbours {
		i := e.rank - e.first
		e.first, e.views = e.rank, e.views[i:i+1:i+1]
	}
	return nil
}

// Views is the table of the conduit below, or its own entry alone.
func (e *endpoint) Views() (first int, views []segment.View) { return e.first, e.views }

// SegmentSize is that of the conduit below.
func (e *endpoint) SegmentSize(rank int) uint64 { return e.inner.SegmentSize(rank) }

// SegmentRights is that of the conduit below.
func (e *endpoint) SegmentRights(rank int) segment.Rights { return e.inner.SegmentRights(rank) }

// System is that of the conduit below, hidden as the segment is.
func (e *endpoint) System(rank int) []byte {
	if e.cfg.HideNeighbours && rank != e.rank {
		return nil
	}
	return e.inner.System(rank)
}

// Neighbourhoods is that of the conduit below, or unknown where they are hidden.
func (e *endpoint) Neighbourhoods() *conduits.Neighbourhoods {
	if e.cfg.HideNeighbours {
		return nil
	}
	return conduits.NeighbourhoodsOf(e.inner)
}

// ATU is that of the conduit below.
func (e *endpoint) ATU() (*segment.ATU, error) { return e.inner.ATU() }

// MapMemory is that of the conduit below.
func (e *endpoint) MapMemory(n uint64) ([]byte, error) { return e.inner.MapMemory(n) }

// UnmapMemory is that of the conduit below.
func (e *endpoint) UnmapMemory(mem []byte) error { return e.inner.UnmapMemory(mem) }

// enter makes the caller the poller. One that is turned away is sure that
// the poller sees missed when it ends.
func (e *endpoint) enter() bool {
	if e.busy.CompareAndSwap(false, true) {
		return true
	}
	e.missed.Store(true)
	return e.busy.CompareAndSwap(false, true)
}

// exit ends the poll and rouses goroutines that may sleep although there is something to do.
func (e *endpoint) exit() {
	more := e.waits(true)
	e.busy.Store(false)
	if e.missed.Swap(false) || more {
		e.inner.Wake(e.rank)
	}
}

// waits reports whether anything is kept that a poll would run; requests says
// whether that includes requests.
func (e *endpoint) waits(requests bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.messages[conduits.Reply]) > 0 || len(e.done) > 0 || len(e.deferred) > int(e.long) ||
		requests && (len(e.messages[conduits.Request]) > 0 || e.long > 0)
}

// Poll runs some of what has arrived.
func (e *endpoint) Poll() int { return e.poll(false) }

// Spin is Poll that watches for an arrival if nothing waits.
func (e *endpoint) Spin() int { return e.poll(true) }

func (e *endpoint) poll(spin bool) int {
	if !e.op() {
		return 0
	}
	if !e.enter() {
		if e.turns {
			// Another goroutine polls below, so this runs nothing; but where ranks take
			// turns it is what lets them.
			e.inner.Poll()
		}
		return 0
	}
	e.mu.Lock()
	e.keepAll = e.empties < e.cfg.Streak && e.chance(e.cfg.Empty)
	if e.keepAll {
		e.empties++
		e.did.empty.Add(1)
	} else {
		e.empties = 0
	}
	e.mu.Unlock()
	before := e.ran
	if spin && !e.waits(true) {
		e.inner.Spin()
	} else {
		e.inner.Poll()
	}
	e.perform(true)
	e.tick(true)
	if !e.keepAll && e.waits(true) {
		e.lend.Deliver(e.handing)
	}
	e.keepAll = false
	n := e.ran - before
	e.exit()
	return n
}

// PollReplies runs some of the replies and completions. The caller is in a
// handler that a poll runs, and thus the poller.
func (e *endpoint) PollReplies() int {
	if !e.op() {
		return 0
	}
	before := e.ran
	e.inner.PollReplies()
	e.perform(false)
	e.tick(false)
	e.handReplies()
	n := e.ran - before
	e.ran = before // these are not the outer poll's
	return n
}

// tick lets a poll's time pass for what waits.
func (e *endpoint) tick(requests bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for c, l := range e.messages {
		if conduits.Class(c) == conduits.Request && !requests {
			continue
		}
		for _, k := range l {
			k.left--
		}
	}
	for i := range e.done {
		e.done[i].left--
	}
}

// hand gives the Receiver what has waited long enough.
func (e *endpoint) hand() {
	e.handReplies()
	for k := e.due(conduits.Request); k != nil; k = e.due(conduits.Request) {
		e.give(k)
		e.handReplies()
	}
}

func (e *endpoint) handReplies() {
	for c, ok := e.dueCompletion(); ok; c, ok = e.dueCompletion() {
		e.ran++
		e.receiver.Complete(c.cookie, c.ev, c.value, c.err)
	}
	for k := e.due(conduits.Reply); k != nil; k = e.due(conduits.Reply) {
		e.give(k)
	}
}

// due takes one of the messages that have waited long enough.
func (e *endpoint) due(c conduits.Class) *kept {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.messages[c]
	i := pick(e.rng, len(l), func(i int) bool { return l[i].left <= 0 })
	if i < 0 || e.dead.Load() {
		return nil
	}
	k := l[i]
	e.overtakes(l[:i], k.m.Src)
	copy(l[i:], l[i+1:])
	l[len(l)-1] = nil
	e.messages[c] = l[:len(l)-1]
	return k
}

// overtakes counts a message from src that runs before one of earlier. mu is
// held.
func (e *endpoint) overtakes(earlier []*kept, src int) {
	for _, k := range earlier {
		if k.m.Src == src {
			e.did.reordered.Add(1)
			return
		}
	}
}

// pick chooses one of the numbers below n for which ok holds, or -1.
func pick(rng *rand.Rand, n int, ok func(i int) bool) int {
	found, seen := -1, 0
	for i := range n {
		if ok(i) {
			if seen++; rng.IntN(seen) == 0 {
				found = i
			}
		}
	}
	return found
}

func (e *endpoint) dueCompletion() (c completion, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := pick(e.rng, len(e.done), func(i int) bool { return e.done[i].left <= 0 })
	if i < 0 || e.dead.Load() {
		return c, false
	}
	c = e.done[i]
	e.done = append(e.done[:i], e.done[i+1:]...)
	return c, true
}

// Poison is what memory holds that its user must not look at any more.
const (
	poison     = 0xdb
	poisonWord = 0xdbdbdbdb
)

// give runs a kept message, unless it came with registered memory that has been
// withdrawn since, and takes its memory back.
func (e *endpoint) give(k *kept) {
	if e.there(&k.m, k.count) {
		e.run(&k.m)
	} else {
		e.did.faults.Add(1)
	}
	for i := range k.words {
		k.words[i] = poisonWord
	}
	for i := range k.bytes {
		k.bytes[i] = poison
	}
	k.m = conduits.Message{Words: k.words[:0]}
	e.mu.Lock()
	e.spare = append(e.spare, k)
	e.mu.Unlock()
}

// there reports whether a message's payload is still where it was put, when there had
// been count registrations.
func (e *endpoint) there(m *conduits.Message, count uint64) bool {
	if !e.registered(m) {
		return true
	}
	t, err := e.inner.ATU()
	if err != nil {
		return false
	}
	n := uint64(len(m.Payload))
	_, u, err := conduits.Admit(t, m.Src, m.To, n, segment.RightWrite)
	if err != nil {
		return false
	}
	u.Exit()
	return !t.Since(m.To, n, count) // else the addresses have been given out again
}

// registered reports whether m's payload lies in registered memory.
func (e *endpoint) registered(m *conduits.Message) bool {
	n := uint64(len(m.Payload))
	return m.To != 0 && n > 0 && !conduits.InSegment(e.inner, e.rank, m.To, n)
}

func (e *endpoint) run(m *conduits.Message) {
	e.ran++
	e.received[m.Class].Add(1)
	e.receiver.Receive(m)
}

// below is the Receiver that the conduit below has.
type below struct{ e *endpoint }

// Receive runs a message or keeps it.
func (b below) Receive(m *conduits.Message) {
	e := b.e
	e.mu.Lock()
	l := e.messages[m.Class]
	if len(l) >= e.cfg.Kept || !e.keepAll && !e.chance(e.cfg.Delay) {
		e.overtakes(l, m.Src)
		e.mu.Unlock()
		if !e.dead.Load() {
			e.run(m)
		}
		return
	}
	var k *kept
	if n := len(e.spare); n > 0 {
		k, e.spare = e.spare[n-1], e.spare[:n-1]
	} else {
		k = new(kept)
	}
	k.m = *m
	k.m.Words = k.words[:copy(k.words[:], m.Words)]
	// A long payload lies in the segment and stays there, or in registered memory:
	// see give.
	if m.To == 0 && m.Payload != nil {
		n := len(m.Payload)
		if cap(k.bytes) < n {
			k.bytes = make([]byte, (n+7)&^7)
		}
		k.bytes = k.bytes[:n]
		bulk.Copy(k.bytes, m.Payload)
		k.m.Payload = k.bytes
	}
	if e.registered(m) {
		if t, err := e.inner.ATU(); err == nil {
			k.count = t.Registrations()
		}
	}
	k.left = e.while()
	e.messages[m.Class] = append(l, k)
	e.mu.Unlock()
	e.did.delayed.Add(1)
}

// Complete tells a completion or keeps it.
func (b below) Complete(cookie uint64, ev conduits.Event, value uint64, err error) {
	e := b.e
	e.mu.Lock()
	if len(e.done) < e.cfg.Kept && (e.keepAll || e.chance(e.cfg.Late)) {
		e.did.late.Add(1)
		e.later(completion{cookie: cookie, ev: ev, value: value, err: err})
		e.mu.Unlock()
		return
	}
	e.mu.Unlock()
	if !e.dead.Load() {
		e.ran++
		e.receiver.Complete(cookie, ev, value, err)
	}
}

// later keeps a completion, one of two events perhaps as two. mu is held.
func (e *endpoint) later(c completion) {
	const both = conduits.SourceDone | conduits.RemoteDone
	if c.ev == both && c.err == nil && e.rng.IntN(2) == 0 {
		c.ev, c.left = conduits.SourceDone, e.while()
		e.done = append(e.done, c)
		c.ev = conduits.RemoteDone
	}
	c.left = e.while()
	e.done = append(e.done, c)
}

// Polling is that of the conduit below: handlers run inside its Receive or
// Deliver.
func (e *endpoint) Polling() bool { return e.inner.Polling() }

// Deliver lets another conduit be built on this one.
func (e *endpoint) Deliver(f func()) bool {
	if !e.op() || !e.enter() {
		return false
	}
	ok := e.lend.Deliver(f)
	e.exit()
	return ok
}

// Idle is that of the conduit below, or the contrary.
func (e *endpoint) Idle(idle int) bool {
	yes := e.inner.Idle(idle)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.idles < e.cfg.Streak && e.chance(e.cfg.Idle) {
		e.idles++
		e.did.idle.Add(1)
		return !yes
	}
	e.idles = 0
	return yes
}

// Arm remembers how many sends had been told a false NoCredit. One that is told
// so later must not sleep: no credit will come that wakes it.
func (e *endpoint) Arm(b conduits.Blocked) conduits.Ticket {
	e.mu.Lock()
	lies := e.lies
	e.mu.Unlock()
	t := e.inner.Arm(b)
	e.mu.Lock()
	a := e.armed[t.Slot]
	if a.n++; a.n == 1 {
		a.lies = lies
	}
	e.armed[t.Slot] = a
	e.mu.Unlock()
	return t
}

// disarmed forgets and reports whether a send was told a false NoCredit meanwhile.
func (e *endpoint) disarmed(t conduits.Ticket) (lied bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.armed[t.Slot]
	lied = a.lies != e.lies
	if a.n--; a.n <= 0 {
		delete(e.armed, t.Slot)
	} else {
		e.armed[t.Slot] = a
	}
	return lied
}

// Disarm takes an announcement back.
func (e *endpoint) Disarm(t conduits.Ticket) {
	e.disarmed(t)
	e.inner.Disarm(t)
}

// Park sleeps, unless there is something to do that no wake would come for.
// While another goroutine polls, its exit does; returning at once then would
// only burn time, of which a simulation has none to burn: it would stand still.
func (e *endpoint) Park(t conduits.Ticket) {
	handler := e.inner.Polling() // waits for replies, and no other goroutine runs them
	if e.disarmed(t) || e.dead.Load() || (handler || !e.busy.Load()) && e.waits(!handler) || e.startle() {
		e.inner.Disarm(t)
		return
	}
	e.inner.Park(t)
}

// startle reports whether to wake for nothing.
func (e *endpoint) startle() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.startles < e.cfg.Streak && e.chance(e.cfg.Wake) {
		e.startles++
		e.did.woken.Add(1)
		return true
	}
	e.startles = 0
	return false
}

// Wake is that of the conduit below.
func (e *endpoint) Wake(rank int) { e.inner.Wake(rank) }

// Waiting is that of the conduit below.
func (e *endpoint) Waiting() []conduits.Blocked { return e.inner.Waiting() }

// Now is that of the conduit below.
func (e *endpoint) Now() time.Duration { return e.inner.Now() }

// Err is that of the conduit below.
func (e *endpoint) Err() error { return e.inner.Err() }

// Fail is that of the conduit below.
func (e *endpoint) Fail(err error) { e.inner.Fail(err) }

// Blame is that of the conduit below.
func (e *endpoint) Blame(rank int, err error) { e.inner.Blame(rank, err) }

// Left is that of the conduit below, unless there is something of rank here that
// has not been handed on.
func (e *endpoint) Left(rank int) bool {
	if !e.inner.Left(rank) {
		return false
	}
	if e.busy.Load() { // with a message of it, perhaps; exit wakes us
		e.missed.Store(true)
		if e.busy.Load() {
			return false
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.messages {
		for _, k := range l {
			if k.m.Src == rank {
				return false
			}
		}
	}
	return true
}

// Close performs what was deferred, as far as it can be at once, and leaves.
func (e *endpoint) Close() error {
	if !e.dead.Load() && e.enter() {
		e.mu.Lock()
		for i := range e.deferred {
			e.deferred[i].left = 0
		}
		e.mu.Unlock()
		e.perform(true)
		e.exit()
	}
	return e.inner.Close()
}
