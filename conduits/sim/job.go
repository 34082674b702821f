package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim/fabric"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/simrecord"
	"github.com/argon-go/argon/segment"
)

// Job is a simulated job: its ranks, their cards, the network and the clock.
// Everything in it happens on one goroutine at a time.
type Job struct {
	n int
	c Config
	p Profile

	now  Time
	made uint64 // events
	q    queue
	m    arena
	net  *fabric.Fabric
	rnd  *rand.Rand

	eps     []Endpoint
	threads []*thread
	idle    []uint32 // numbers of threads that have ended
	live    int      // threads that have not
	current *thread
	upNext  *thread // to be resumed right after the event that is being handled
	driven  atomic.Bool
	running atomic.Pointer[thread] // current, for other goroutines; the last one between two

	overseen  atomic.Bool // the overseer asks
	last      *thread     // the last that ran
	turns     uint64      // times that another one ran than before
	turnsSeen uint64      // by alone
	alike     int         // looks since
	reported  bool        // that only one runs
	idleFrom  Time        // since when a rank polls although nothing is under way
	idleAt    uint64      // Events then

	limit     Time   // of virtual time
	timers    uint64 // set so far
	abandoned bool   // a thread has panicked, and no other goes on

	attached int
	left     int      // ranks that are closed or have crashed
	released bool     // the job's memory is unmapped
	open     bool     // all ranks are attached
	sizes    []uint64 // of segments
	rights   []segment.Rights
	mem      memory

	asked      atomic.Bool // a report of what ranks wait for is due
	deaf       atomic.Bool // and the last one got no answer
	askedMu    sync.Mutex
	queries    []*query
	interrupts []interrupt

	err      error // the job's first failure
	failer   int   // the rank that declared it; -1: the job did
	failedAt Time
	seen     bool // by all ranks

	pool []*conduits.Message // not in use

	off    *offload // nil: the cards do nothing for all ranks
	lost   list     // operations whose target has crashed
	faults faults
	trace  trace
	watch  *watch // writes the record; nil: none
	Events uint64 // handled so far

	// Ranks that have closed, and how many had when all last looked because of it.
	departures, mourned int
}

// New makes a job of n ranks.
func New(n int, c Config) (*Job, error) {
	if n < 1 || n > MaxRanks {
		return nil, errs.BadArg("sim: %d ranks; a simulated job has 1 to %d (-n)", n, MaxRanks)
	}
	if err := c.ensure(n); err != nil {
		return nil, err
	}
	j := &Job{n: n, c: c, p: *c.Profile, failer: -1, limit: c.Limit}
	if j.limit == 0 {
		j.limit = maxTime
	}
	j.rnd = rand.New(rand.NewPCG(c.Seed, 0x5eed))
	var err error
	if j.net, err = fabric.New(j.p.Net, n, wires{j}, j.deliver); err != nil {
		return nil, err
	}
	if err := j.faults.bind(j); err != nil {
		return nil, err
	}
	if c.Offload {
		j.equip()
	}
	j.trace.open(c.Trace)
	j.trace.every, j.trace.mask = c.Checkpoint, checkpointMask
	j.eps = make([]Endpoint, n)
	j.sizes = make([]uint64, n)
	j.trace.sizes = j.sizes
	j.rights = make([]segment.Rights, n)
	for r := range j.eps {
		j.eps[r].j, j.eps[r].rank = j, r
	}
	for _, x := range c.Faults.Slow {
		j.eps[x.Rank].slow = int32(x.Factor)
	}
	return j, nil
}

// MaxRanks is the most ranks of a job: what a pointer of package gas can name.
const MaxRanks = simrecord.MaxRanks

// Endpoints returns the ranks' endpoints.
func (j *Job) Endpoints() []conduits.Endpoint {
	l := make([]conduits.Endpoint, j.n)
	for r := range l {
		l[r] = &j.eps[r]
	}
	return l
}

// Endpoint returns one rank's endpoint.
func (j *Job) Endpoint(rank int) *Endpoint { return &j.eps[rank] }

// Digest is a hash of everything that has happened, in order, with its times:
// equal for equal runs.
func (j *Job) Digest() uint64 { return j.trace.digest }

// Kinds of events: the low bits of the key.
const (
	evRun     = iota // thread b goes on
	evWire           // the network's own
	evInject         // message b enters the network
	evRead           // the card reads the source of message b
	evMailbox        // message b is in its mailbox
	evWrite          // message b is performed on the memory of its target
	evDone           // message b's completion can be noticed
	evCredit         // rank b, refused before, can send again
	evFail           // the job's failure is known to all
	evFault          // fault b of the plan
	evAttach         // all ranks are attached
	evTimer          // timer a of thread b

	kindBits = 4
	kindMask = 1<<kindBits - 1
)

func (j *Job) schedule(at Time, what, b uint64) { j.event(at, what, 0, b) }

func (j *Job) event(at Time, what, a, b uint64) {
	j.made++
	order := j.made
	if j.c.Seed != 0 {
		order = mix(order ^ j.c.Seed)
	}
	j.q.push(event{at: max(at, j.now), key: order<<kindBits | what, a: a, b: b})
}

// mix spreads bits (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// wires is the network's view of the job.
type wires struct{ j *Job }

// Schedule keeps an event of the network.
func (w wires) Schedule(t Time, a, b uint64) { w.j.event(t, evWire, a, b) }

// loop lets everything happen until no thread is left.
func (j *Job) loop() {
	for j.live > 0 {
		if len(j.q.h) == 0 {
			if j.asked.Load() { // perhaps to fail a rank
				j.look()
			}
			if len(j.q.h) == 0 && j.upNext == nil {
				j.deadlock()
			}
			if th := j.upNext; th != nil {
				j.upNext = nil
				j.run(th)
			}
			continue
		}
		if j.asked.Load() {
			j.look()
		}
		e := j.q.pop()
		j.now = e.at
		j.Events++
		for len(j.faults.events) > 0 && j.Events >= j.faults.events[0].Event {
			rank := j.faults.events[0].Rank
			j.faults.events = j.faults.events[1:]
			j.crash(rank)
		}
		switch e.key & kindMask {
		case evRun:
			th := j.threads[e.b]
			if until := th.e.stalled; until > j.now {
				j.schedule(until, evRun, e.b)
				continue
			}
			j.run(th)
		case evWire:
			j.net.Handle(e.at, e.a, e.b)
			if d := j.net.Deadlock(); d != nil && j.err == nil {
				j.fail(-1, d)
			}
		case evInject:
			j.inject(uint32(e.b))
		case evRead:
			j.read(uint32(e.b))
		case evMailbox:
			j.arrive(uint32(e.b))
		case evWrite:
			j.perform(uint32(e.b))
		case evDone:
			j.done(uint32(e.b))
		case evCredit:
			j.eps[e.b].notify(false)
		case evFail:
			j.seen = true
			j.mourn()
			for r := range j.eps {
				j.eps[r].notify(false)
			}
		case evAttach:
			j.open = true
			for r := range j.eps {
				j.eps[r].notify(false)
			}
		case evTimer:
			j.expire(uint32(e.b), e.a)
		case evFault:
			j.faults.happen(j, int(e.b))
		}
		if th := j.upNext; th != nil {
			j.upNext = nil
			j.run(th)
		}
		if j.now > j.limit && j.err == nil {
			j.fail(-1, errs.Resource("sim: the job has not ended after %v of virtual time (-limit, ARGON_SIM limit)", duration(j.limit)))
		}
	}
}

// inject hands message id to the network, unless a partition holds it.
func (j *Job) inject(id uint32) {
	m := j.m.at(id)
	if m.kind >= kindPart {
		j.toAll(id, m)
		return
	}
	if j.eps[m.src].crashed || j.faults.active && j.faults.hold(j, id, m) {
		if j.eps[m.src].crashed {
			j.lose(id)
		}
		return
	}
	if m.kind == kindDatagram && !j.faults.mistreat(j, id, m) {
		return
	}
	j.trace.message(j.now, 'i', m)
	j.net.Inject(j.now, int(m.src), int(m.dst), j.bytes(m), uint64(id))
}

// bytes returns the length of m on a link.
func (j *Job) bytes(m *message) int {
	p := &j.p
	n := p.Header + 4*int(m.nwords)
	switch m.kind {
	case kindShort:
		n += p.Tag + (j.packets(m)-1)*p.Header
	case kindMedium, kindCast:
		n += p.Tag + len(m.data)
		if len(m.data) <= p.Eager {
			n += (j.packets(m) - 1) * p.Header
		}
	case kindLong, kindPut, kindGetReply:
		n += len(m.data) + (j.commands(int(m.owner()), m.to, len(m.data))-1)*p.Header
	case kindDatagram:
		n += len(m.data)
	}
	return n
}

// deliver takes message id from the network: the target's card has it.
func (j *Job) deliver(now Time, id uint64) {
	m := j.m.at(uint32(id))
	if j.eps[m.dst].crashed {
		j.lose(uint32(id))
		return
	}
	p := &j.p
	var t Time
	next := uint64(evMailbox)
	switch m.kind {
	case kindShort, kindDatagram:
		t = p.DMAWrite + p.SlotWrite*Time(j.slots(m)-1)
	case kindMedium:
		t = j.landing(m)
	case kindLong:
		// Performed first, told afterwards.
		next, t = evWrite, p.Unit+p.DMAWrite
		if len(m.data) > 0 {
			t += translate(&j.eps[m.dst], now, uint64(m.to), len(m.data))
		} else {
			next = evMailbox
		}
	case kindPut:
		next, t = evWrite, p.Unit+translate(&j.eps[m.dst], now, uint64(m.to), len(m.data))+p.DMAWrite
	case kindGet:
		next, t = evWrite, p.Unit+translate(&j.eps[m.dst], now, uint64(m.to), len(m.dest))+p.DMARead
	case kindAtomic:
		next, t = evWrite, p.Unit+p.DMARead+p.DMAWrite
	case kindGetReply:
		next, t = evDone, p.Unit+translateOwn(&j.eps[m.dst], now, m.dest)+2*p.DMAWrite
	case kindAtomicReply:
		next, t = evDone, p.Unit+p.DMAWrite
	case kindAck:
		next, t = evDone, p.DMAWrite
	}
	j.schedule(now+t, next, id)
}

// landing returns the time of the target's card for medium message m.
func (j *Job) landing(m *message) Time {
	p := &j.p
	if len(m.data) > p.Eager {
		return p.DMAWrite + p.Unit + p.ATU + p.DMAWrite
	}
	return p.DMAWrite + p.SlotWrite*Time(j.slots(m)-1)
}

// content is the length of m, tag included.
func (j *Job) content(m *message) int {
	n := j.p.Tag + 4*int(m.nwords)
	if m.kind == kindMedium || m.kind >= kindCast {
		n += len(m.data)
	}
	return n
}

// slots is how many slots of a mailbox m takes.
func (j *Job) slots(m *message) int {
	return max(1, (j.content(m)+j.p.Slot-1)/j.p.Slot)
}

// packets is in how many packets m travels: one a slot, but for the message that is a little
// longer than a slot.
func (j *Job) packets(m *message) int {
	if j.content(m) <= j.p.Message {
		return 1
	}
	return j.slots(m)
}

// line is the unit of RMA operations of more than one line, bytes.
const line = 64

// commands is how many operations of the card a transfer of n bytes to or from address to of
// rank is: each is of up to a line, or of whole lines, within a page (Nüssle 2008, section 7.5.1).
// Memory that a rank has registered is taken to begin with a page, for where the Go heap has it
// differs from run to run.
func (j *Job) commands(rank int, to segment.NLA, n int) int {
	page := j.p.Page
	if page == 0 || n == 0 {
		return 1
	}
	if !conduits.InSegment(&j.eps[rank], rank, to, uint64(n)) {
		to = 0
	}
	of := func(n int) int {
		return min(n/line, 1) + min(n%line, 1)
	}
	head := min(n, page-int(uint64(to)&uint64(page-1)))
	n -= head
	return of(head) + n/page + of(n%page)
}

// arrive puts message id where its target finds it.
func (j *Job) arrive(id uint32) {
	m := j.m.at(id)
	e := &j.eps[m.dst]
	if e.crashed || e.closed {
		j.lose(id)
		return
	}
	if m.kind == kindResult {
		j.conclude(id, e)
		return
	}
	if m.kind == kindDatagram && (e.socket == nil || !e.socket.accept(j, m)) {
		j.lose(id)
		return
	}
	j.trace.message(j.now, 'a', m)
	e.in[m.class].add(&j.m, id)
	e.notify(false)
}

// lose forgets a message that no rank will get.
func (j *Job) lose(id uint32) {
	m := j.m.at(id)
	j.trace.message(j.now, 'x', m)
	switch m.kind {
	case kindShort, kindMedium, kindLong, kindCopy:
		if !j.eps[m.dst].crashed { // that gives nothing back
			j.credit(m)
		}
		j.m.put(id)
	case kindPut, kindGet, kindAtomic, kindAck, kindGetReply, kindAtomicReply:
		// Its initiator hears of it when the failure is known.
		if m.want == 0 {
			j.m.put(id)
			return
		}
		j.lost.add(&j.m, id)
		if j.seen {
			j.mourn()
		}
	default:
		j.m.put(id)
	}
}

// mourn ends the operations towards ranks that have crashed.
func (j *Job) mourn() {
	for id := j.lost.take(&j.m); id != 0; id = j.lost.take(&j.m) {
		m := j.m.at(id)
		initiator, peer := int(m.src), int(m.dst)
		if m.kind.answer() {
			initiator, peer = peer, initiator
		}
		j.complete(initiator, m.cookie, m.want, 0, &conduits.PeerError{Rank: peer, Op: "sim: " + m.kind.String(), Err: errCrashed}, 0)
		j.m.put(id)
	}
}

// credit gives the sender of m its room back.
func (j *Job) credit(m *message) {
	if m.kind == kindCopy {
		j.castTaken(m.cast)
		return
	}
	e := &j.eps[m.src]
	p := e.pairs.of(int(m.dst))
	p.out[m.class]--
	if p.refused(m.class) {
		p.admit(m.class)
		j.schedule(j.now+j.p.Net.Latency, evCredit, uint64(m.src))
	}
}

// read takes the source of a put at the time that the card does.
func (j *Job) read(id uint32) {
	m := j.m.at(id)
	b := j.m.buffer(len(m.data))
	bulk.Copy(b, m.data)
	m.data, m.own = b, true
	if m.want&conduits.SourceDone != 0 {
		m.want &^= conduits.SourceDone
		j.complete(int(m.src), m.cookie, conduits.SourceDone, 0, nil, 0)
	}
	j.inject(id)
}

// complete makes a completion that rank's next poll after t reports.
func (j *Job) complete(rank int, cookie uint64, ev conduits.Event, value uint64, err error, t Time) {
	id, d := j.m.get()
	j.m.access(d)
	d.kind, d.src, d.dst, d.cookie, d.want, d.a, d.err = kindDone, int32(rank), int32(rank), cookie, ev, value, err
	j.schedule(j.now+t, evDone, uint64(id))
}

// done gives a finished operation to its initiator.
func (j *Job) done(id uint32) {
	m := j.m.at(id)
	e := &j.eps[m.dst]
	if e.crashed || e.closed {
		j.m.put(id)
		return
	}
	if m.kind == kindGetReply && m.err == nil {
		bulk.Copy(m.dest, m.data)
	}
	j.trace.message(j.now, 'd', m)
	if m.want == 0 { // of a get whose end no caller wants
		e.notify(false)
		j.m.put(id)
		return
	}
	e.done.add(&j.m, id)
	e.notify(false)
}

// fail makes err the job's failure. rank declares it, or -1 if the job does.
func (j *Job) fail(rank int, err error) {
	if j.err != nil {
		return
	}
	j.err, j.failer, j.failedAt = err, rank, j.now
	at := j.now
	if rank >= 0 {
		j.failedAt = max(at, j.eps[rank].clock)
		at = j.failedAt + j.p.Net.Latency
	}
	j.trace.note(j.now, 'f', uint64(rank), 0)
	j.schedule(at, evFail, 0)
}

// DeadlockError is the failure of a job in which no rank could go on.
type DeadlockError struct {
	At      string   // virtual time
	Waiting []string // some of what was waited for, as "rank 3: ..."
	More    int      // how many more waited
}

// Error lists the ranks and what each waits for.
func (d *DeadlockError) Error() string {
	s := "sim: deadlock at " + d.At + ": nothing is under way and every rank waits"
	for _, w := range d.lines() {
		s += "\n\t" + w
	}
	return s
}

func (d *DeadlockError) lines() []string {
	if d.More == 0 {
		return d.Waiting
	}
	return append(slices.Clone(d.Waiting), fmt.Sprintf("and %d more", d.More))
}

// deadlock ends a job in which nothing can happen any more. If a rank has left
// since that was so before, all look first whether they wait for it: waking them
// whenever one leaves would take N wake-ups of each of N ranks at every job's end.
func (j *Job) deadlock() {
	if j.mourned != j.departures {
		j.mourned = j.departures
		for r := range j.eps {
			j.eps[r].notify(false)
		}
		return
	}
	d := j.waiting()
	if j.err != nil {
		// They have been told and wait nevertheless.
		panic("sim: ranks wait on although the job has failed (" + j.err.Error() + "): " + d.Error())
	}
	j.fail(-1, d)
}

// waiting lists the threads that are parked.
func (j *Job) waiting() *DeadlockError {
	d := &DeadlockError{At: duration(j.now).String()}
	for _, th := range j.threads {
		if th != nil && th.state == parked {
			d.add(th.e.rank, th.blocked)
		}
	}
	return d
}

// add lists that rank waits for b, if there is room. Only then it asks for the text, which may be
// made of all ranks.
func (d *DeadlockError) add(rank int, b conduits.Blocked) {
	if len(d.Waiting) == 8 {
		d.More++
		return
	}
	d.Waiting = append(d.Waiting, "rank "+strconv.Itoa(rank)+": "+reason(b))
}

func reason(b conduits.Blocked) string {
	if b == nil {
		return "(unknown)"
	}
	return b.Blocked()
}

func itoa(n int) string { return strconv.Itoa(n) }
