package chaos

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

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
	n := 1
	if l, ok := conduits.As[conduits.Laned](ep); ok {
		n = l.Lanes()
	}
	s := &shared{cfg: cfg, rank: ep.Rank(), lanes: make([]atomic.Pointer[endpoint], n)}
	for _, k := range cfg.Kill {
		if k.Rank == s.rank && (s.killAt == 0 || k.After < s.killAt) {
			s.killAt = k.After
		}
	}
	e := s.lane(0, ep)
	s.lanes[0].Store(e)
	return e
}

// lane makes lane i, on top of that of the conduit below.
func (s *shared) lane(i int, ep conduits.Endpoint) *endpoint {
	lend, _ := conduits.As[conduits.Deliverer](ep)
	e := &endpoint{
		shared:   s,
		Endpoint: ep,
		lend:     lend,
		rng:      rand.New(rand.NewPCG(s.cfg.Seed, uint64(i)<<32+uint64(s.rank))),
		armed:    map[int32]announcement{},
	}
	e.handing = e.hand
	e.offer()
	return e
}

// shared is the state that the lanes of a rank have together.
type shared struct {
	cfg      Config
	rank     int
	did      counters
	killAt   uint64 // operation, 0 for none
	dead     atomic.Bool
	received [conduits.NumClasses]atomic.Uint64
	lanes    []atomic.Pointer[endpoint] // nil as long as one has not been used
}

// each is the lanes that have been used.
func (s *shared) each() iter.Seq[*endpoint] {
	return func(yield func(*endpoint) bool) {
		for i := range s.lanes {
			if e := s.lanes[i].Load(); e != nil && !yield(e) {
				return
			}
		}
	}
}

// endpoint is one lane of a rank, the only one of most conduits. What it keeps is guarded by
// mu, which is never held while the conduit below polls or parks or the Receiver runs.
type endpoint struct {
	*shared
	conduits.Endpoint // of the conduit below; messages that wait here have given their credit back there
	lend              conduits.Deliverer
	receiver          conduits.Receiver
	handing           func() // hand, made a value once
	first             int    // Views, once attached
	views             []segment.View
	turns             bool // ranks, and their goroutines, take turns

	// What the conduit below can do besides, nil if it cannot.
	abilities conduits.Abilities
	conduits.Laned
	conduits.Diagnoser
	conduits.Runner

	// busy is set while a goroutine is in Poll or Spin, or tends this lane.
	// missed says that another one was turned away meanwhile: it may be about to
	// park, believing that it has looked.
	busy   atomic.Bool
	missed atomic.Bool
	ran    atomic.Int64 // messages and completions given to the receiver

	mu        sync.Mutex
	keepAll   bool // this poll runs nothing
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

// announcement is the state of an endpoint when a goroutine armed.
type announcement struct {
	lies uint64
	n    int // goroutines of this ticket slot
}

// offer finds out what the conduit below can do besides, which this one can then, too.
func (e *endpoint) offer() {
	var l conduits.Laned
	var g conduits.Diagnoser
	var n conduits.Neighbourly
	var r conduits.Runner
	var c conduits.Card
	if e.Laned, _ = conduits.As[conduits.Laned](e.Endpoint); e.Laned != nil {
		l = e
	}
	if e.Diagnoser, _ = conduits.As[conduits.Diagnoser](e.Endpoint); e.Diagnoser != nil {
		g = e
	}
	if _, ok := conduits.As[conduits.Neighbourly](e.Endpoint); ok {
		n = e
	}
	if e.Runner, e.turns = conduits.As[conduits.Runner](e.Endpoint); e.turns {
		r = e
	}
	if k, ok := conduits.As[conduits.Card](e.Endpoint); ok {
		c = card{k, e}
	}
	e.abilities = conduits.Offer(l, e, g, n, r, c)
}

// Abilities are those of the conduit below, through this one.
func (e *endpoint) Abilities() conduits.Abilities { return e.abilities }

// Lane is chaos on top of lane i below, which Attach made when that was made.
func (e *endpoint) Lane(i int) (conduits.Endpoint, error) {
	if _, err := e.Laned.Lane(i); err != nil {
		return nil, err
	}
	return e.lanes[i].Load(), nil
}

// RunRanks hands the endpoints below to the conduit below.
func (e *endpoint) RunRanks(eps []conduits.Endpoint, rank func(i int)) {
	below := make([]conduits.Endpoint, len(eps))
	for i, ep := range eps {
		below[i] = ep
		if e, ok := ep.(*endpoint); ok {
			below[i] = e.Endpoint
		}
	}
	e.Runner.RunRanks(below, rank)
}

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
		e.Fail(fmt.Errorf("chaos: killed at operation %d", e.killAt))
	}
	return false
}

// gone is the error of operations of a killed rank.
func (e *endpoint) gone() error {
	if err := e.Err(); err != nil {
		return err
	}
	return errs.Closed("chaos: rank %d was killed", e.rank)
}

// Stats counts what the caller has seen: a kept message is not received, a
// deferred operation is under way. Peers are those of the conduit below.
func (e *endpoint) Stats(s *conduits.Stats) {
	e.Endpoint.Stats(s)
	for c := range s.Received {
		s.Received[c] = e.received[c].Load()
	}
	s.Faults += e.did.faults.Load()
	refused := e.did.noCredit.Load() + e.did.cancelled.Load()
	s.NoCredit += refused
	if s.Peers != nil && refused > 0 { // by chance, whichever the peer
		s.Peers = conduits.MergePeers(append(s.Peers, conduits.PeerStats{Rank: e.rank, NoCredit: refused}))
	}
	for e := range e.each() {
		e.mu.Lock()
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
		e.mu.Unlock()
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
	if open := c.Lane; open != nil {
		c.Lane = func(i int, ep conduits.Endpoint) conduits.Receiver {
			s := e.lane(i, ep)
			s.see()
			s.receiver = open(i, s)
			e.lanes[i].Store(s)
			return below{s}
		}
	}
	if err := e.Endpoint.Attach(c); err != nil {
		return err
	}
	e.see()
	return nil
}

// see finds out which memory is seen.
func (e *endpoint) see() {
	e.first, e.views = e.Endpoint.Views()
	if e.cfg.HideNeighbours {
		i := e.rank - e.first
		e.first, e.views = e.rank, e.views[i:i+1:i+1]
	}
}

// Views is the table of the conduit below, or its own entry alone.
func (e *endpoint) Views() (first int, views []segment.View) { return e.first, e.views }

// System is that of the conduit below, hidden as the segment is.
func (e *endpoint) System(rank int, area conduits.SystemArea) []byte {
	if e.cfg.HideNeighbours && rank != e.rank {
		return nil
	}
	return e.Endpoint.System(rank, area)
}

// Neighbourhoods is that of the conduit below, or unknown where they are hidden.
func (e *endpoint) Neighbourhoods() *conduits.Neighbourhoods {
	if e.cfg.HideNeighbours {
		return nil
	}
	return conduits.NeighbourhoodsOf(e.Endpoint)
}

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
	e.busy.Store(false)
	if e.missed.Swap(false) || e.overdue() {
		e.Wake(e.rank)
	}
}

// overdue reports whether something is kept in a lane that no goroutine polls: nothing would
// wake one for it.
func (e *endpoint) overdue() bool {
	for s := range e.each() {
		if !s.busy.Load() && s.waits(true) {
			return true
		}
	}
	return false
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
			// turns it lets the next one run.
			e.Endpoint.Poll()
		}
		return e.tend()
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
	before := e.ran.Load()
	if spin && !e.waits(true) {
		e.Endpoint.Spin()
	} else {
		e.Endpoint.Poll()
	}
	e.serve()
	n := int(e.ran.Load() - before)
	e.exit()
	if n == 0 {
		n = e.tend()
	}
	return n
}

// serve does what is due of what is kept. The caller has set busy.
func (e *endpoint) serve() {
	e.perform(true)
	e.tick(true)
	if !e.keepAll && e.waits(true) {
		e.lend.Deliver(e.handing)
	}
	e.mu.Lock()
	e.keepAll = false
	e.mu.Unlock()
}

// tend serves the lanes that no goroutine polls, as the conduit below does with those that
// are not polled for a while, and returns how many messages and completions it ran.
func (e *endpoint) tend() (n int) {
	for s := range e.each() {
		if s == e || !s.waits(true) || !s.busy.CompareAndSwap(false, true) {
			continue
		}
		before := s.ran.Load()
		s.serve()
		n += int(s.ran.Load() - before)
		s.exit()
	}
	return n
}

// PollReplies runs some of the replies and completions. The caller is in a
// handler that a poll runs, and thus the poller.
func (e *endpoint) PollReplies() int {
	if !e.op() {
		return 0
	}
	before := e.ran.Load()
	e.Endpoint.PollReplies()
	e.perform(false)
	e.tick(false)
	e.handReplies()
	n := e.ran.Load() - before
	e.ran.Add(-n) // these are not the outer poll's
	return int(n)
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
		e.ran.Add(1)
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

// Poison fills memory that its user must not look at any more.
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
	t, err := e.ATU()
	return err == nil && conduits.Landed(t, m.Src, m.To, uint64(len(m.Payload)), count) != nil
}

// registered reports whether m's payload lies in registered memory.
func (e *endpoint) registered(m *conduits.Message) bool {
	n := uint64(len(m.Payload))
	return m.To != 0 && n > 0 && !conduits.InSegment(e.Endpoint, e.rank, m.To, n)
}

func (e *endpoint) run(m *conduits.Message) {
	e.ran.Add(1)
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
		if t, err := e.ATU(); err == nil {
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
		e.ran.Add(1)
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
	yes := e.Endpoint.Idle(idle)
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
	t := e.Endpoint.Arm(b)
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
	e.Endpoint.Disarm(t)
}

// Park sleeps, unless there is something to do that no wake would come for.
// While another goroutine polls, its exit does; returning at once then would
// only burn time, of which a simulation has none to burn: it would stand still.
func (e *endpoint) Park(t conduits.Ticket) {
	handler := e.Polling() // waits for replies, and no other goroutine runs them
	if e.disarmed(t) || e.dead.Load() || handler && e.waits(false) || !handler && e.overdue() || e.startle() {
		e.Endpoint.Disarm(t)
		return
	}
	e.Endpoint.Park(t)
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

// Left is that of the conduit below, unless there is something of rank here that
// has not been handed on.
func (e *endpoint) Left(rank int) bool {
	if !e.Endpoint.Left(rank) {
		return false
	}
	for s := range e.each() {
		if s.keeps(rank) {
			return false
		}
	}
	return true
}

// keeps reports whether this lane has a message of rank yet.
func (e *endpoint) keeps(rank int) bool {
	if e.busy.Load() { // with a message of it, perhaps; exit wakes us
		e.missed.Store(true)
		if e.busy.Load() {
			return true
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.messages {
		if slices.ContainsFunc(l, func(k *kept) bool { return k.m.Src == rank }) {
			return true
		}
	}
	return false
}

// Close performs what was deferred, as far as it can be at once, and leaves.
func (e *endpoint) Close() error {
	for s := range e.each() {
		if e.dead.Load() || !s.enter() {
			continue
		}
		s.mu.Lock()
		for i := range s.deferred {
			s.deferred[i].left = 0
		}
		s.mu.Unlock()
		s.perform(true)
		s.exit()
	}
	return e.Endpoint.Close()
}
