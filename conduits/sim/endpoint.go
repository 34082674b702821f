package sim

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Endpoint is one rank's card, and the clock of its processor, which runs ahead
// of the job's while the rank computes. It implements conduits.Endpoint and
// conduits.Runner. All of it is used by the goroutine that the job runs at the
// time.
type Endpoint struct {
	conduits.OwnMemory
	j        *Job
	rank     int
	clock    Time
	cardFree Time // when the card takes the next message
	rmaFree  Time // when it takes the next RMA operation
	getFree  Time // when it answers the next get
	tlb      *tlb
	stalled  Time // the processor stands still until then
	slow     int32
	threads  *thread // list of those that have not ended

	receiver conduits.Receiver
	view     [1]segment.View
	system   []byte
	socket   *Socket
	pairs    pairs
	in       [conduits.NumClasses]list
	done     list // completions

	poller   *thread // the thread inside Poll
	parked   uint32  // list of threads, by number+1
	sleepers int32
	seq      uint32

	attached, closed, crashed bool

	tally        tally
	parks, wakes uint64
	faults       uint64 // refused, of which no completion tells
}

var (
	_ conduits.Endpoint = (*Endpoint)(nil)
	_ conduits.Runner   = (*Endpoint)(nil)
)

var (
	errClosed  = errs.Closed("sim: the endpoint is closed")
	errCrashed = errors.New("sim: the rank has crashed, as the fault plan says")
)

// duration is t as far as nanoseconds.
func duration(t Time) time.Duration { return time.Duration(t / Nanosecond) }

// far is beyond any limit, and far from where times overflow.
const far = Time(1) << 62

// work returns the time of this rank's processor for work that takes others t.
func (e *Endpoint) work(t Time) Time {
	if e.slow > 1 {
		t = min(t, maxTime/Time(e.slow)) * Time(e.slow)
	}
	return t
}

// spend lets the processor work for t.
func (e *Endpoint) spend(t Time) { e.clock = min(e.clock+e.work(t), far) }

// Rank is this rank.
func (e *Endpoint) Rank() int { return e.rank }

// Size is the number of ranks.
func (e *Endpoint) Size() int { return e.j.n }

// Conduit is "sim".
func (e *Endpoint) Conduit() string { return Name }

// Limits are those of the job.
func (e *Endpoint) Limits() conduits.Limits {
	c := &e.j.c
	return conduits.Limits{MaxMedium: c.MaxMedium, MaxLong: c.MaxSegment, MaxSegment: c.MaxSegment, Credits: c.Credits}
}

// Stats fills in s. It may be called from anywhere, also while the job runs.
func (e *Endpoint) Stats(s *conduits.Stats) {
	*s = conduits.Stats{
		Parks: atomic.LoadUint64(&e.parks), Wakes: atomic.LoadUint64(&e.wakes), PeersUsed: int(atomic.LoadUint64(&e.pairs.n)), Faults: atomic.LoadUint64(&e.faults),
		Peers: s.Peers[:0],
	}
	e.tally.Lock()
	e.tally.Fill(s)
	e.tally.Unlock()
}

// tally counts by peer. Ranks write it one at a time, and others read.
type tally struct {
	sync.Mutex
	conduits.Tally
}

func (t *tally) sent(m *message) {
	t.Lock()
	t.Sent(int(m.dst), m.class, len(m.data))
	t.Unlock()
}

func (t *tally) refused(rank int) {
	t.Lock()
	t.Refused(rank)
	t.Unlock()
}

// bump adds one to a number of Stats, of which ranks write one at a time while others read.
func bump(n *uint64) { conc.Release64(n, *n+1) }

// Attach waits in virtual time until all ranks have attached.
func (e *Endpoint) Attach(c conduits.AttachConfig) error {
	j := e.j
	if e.closed {
		return errClosed
	}
	if err := conduits.CheckAttach("sim", &c, j.c.MaxSegment); err != nil {
		return err
	}
	switch {
	case e.Err() != nil:
		return e.Err()
	case e.attached:
		return errs.NotReady("sim: rank %d is attached already", e.rank)
	}
	th := e.thread("attach")
	if err := j.mem.attach(e, c.Size); err != nil {
		return err
	}
	e.Ready(func() segment.ATUConfig {
		v := &e.view[0]
		own, _ := v.Bytes(segment.AttachBase, v.Size(), v.Size())
		return segment.ATUConfig{Attach: own, Rights: c.Rights, Lock: c.Lock}
	})
	e.receiver = c.Receiver
	j.askedMu.Lock() // a question that gets no answer looks at all ranks, see attaching
	e.attached = true
	j.askedMu.Unlock()
	j.sizes[e.rank], j.rights[e.rank] = c.Size, c.Rights
	if j.attached++; j.attached == j.n {
		// As long as a tree of network trips takes.
		levels := Time(1)
		for 1<<levels < j.n {
			levels++
		}
		j.schedule(max(j.now, e.clock)+levels*j.p.Net.Latency, evAttach, 0)
	}
	for !j.open {
		if err := e.Err(); err != nil {
			return err
		}
		e.sleep(th, attaching{j})
	}
	return nil
}

// attaching describes Attach's wait by the ranks that are missing.
type attaching struct{ j *Job }

// Blocked lists the first ranks that have not attached.
func (a attaching) Blocked() string {
	var late []int
	n := 0
	for r := range a.j.eps {
		if !a.j.eps[r].attached {
			if n++; len(late) < 8 {
				late = append(late, r)
			}
		}
	}
	if n > len(late) {
		return fmt.Sprintf("attach: waiting for ranks %v and %d more", late, n-len(late))
	}
	return fmt.Sprintf("attach: waiting for ranks %v", late)
}

// Views is the rank's own segment: a simulated rank reaches no other by load
// and store.
func (e *Endpoint) Views() (first int, views []segment.View) { return e.rank, e.view[:] }

// SegmentSize is the size that rank attached.
func (e *Endpoint) SegmentSize(rank int) uint64 {
	if uint(rank) >= uint(e.j.n) {
		return 0
	}
	return e.j.sizes[rank]
}

// SegmentRights returns this rank's rights to rank's segment.
func (e *Endpoint) SegmentRights(rank int) segment.Rights {
	switch {
	case uint(rank) >= uint(e.j.n):
		return 0
	case rank == e.rank:
		return segment.RightsAll
	}
	return e.j.rights[rank]
}

// System is there for the own rank only.
func (e *Endpoint) System(rank int, area conduits.SystemArea) []byte {
	if rank != e.rank || area != conduits.SystemWords {
		return nil
	}
	if e.system == nil {
		e.system = conduits.NewSystem()
	}
	return e.system
}

// room takes a credit for a message to dst.
func (e *Endpoint) room(dst int, c conduits.Class) conduits.Status {
	j := e.j
	if e.closed || e.crashed || j.err != nil && e.Err() != nil {
		return conduits.Dead
	}
	e.thread("send")
	// One that has crashed seems to be there until that is detected.
	left := j.eps[dst].closed && !j.eps[dst].crashed
	if left && j.err == nil {
		return conduits.Dead
	}
	p := e.pairs.of(dst)
	// Of a rank that has failed, and left, its peers hear first that it failed.
	if int(p.out[c]) >= j.c.Credits || left {
		p.refuse(c)
		e.tally.refused(dst)
		return conduits.NoCredit
	}
	p.out[c]++
	return conduits.Ready
}

func (e *Endpoint) checkLengths(words, payload int) {
	if uint(words) > conduits.MaxWords || uint(payload) > uint(e.j.c.MaxMedium) {
		panic(fmt.Sprintf("sim: message of %d words and %d bytes; limits %d and %d", words, payload, conduits.MaxWords, e.j.c.MaxMedium))
	}
}

// Send sends a short message.
func (e *Endpoint) Send(dst int, c conduits.Class, tag conduits.Tag, words []uint32) conduits.Status {
	e.checkLengths(len(words), 0)
	if st := e.room(dst, c); st != conduits.Ready {
		return st
	}
	id, m := e.message(dst, c, len(words))
	copy(m.words[:], words)
	e.launch(id, m, kindShort, tag)
	return conduits.Ready
}

// SendPayload sends a medium message.
func (e *Endpoint) SendPayload(dst int, c conduits.Class, tag conduits.Tag, words []uint32, payload []byte, to segment.NLA) conduits.Status {
	if to != 0 {
		return conduits.Apart
	}
	e.checkLengths(len(words), len(payload))
	if st := e.room(dst, c); st != conduits.Ready {
		return st
	}
	id, m := e.message(dst, c, len(words))
	copy(m.words[:], words)
	m.data, m.own = e.j.m.buffer(len(payload)), true
	copy(m.data, payload)
	e.launch(id, m, kindMedium, tag)
	return conduits.Ready
}

// Reserve makes a message that is not sent yet.
func (e *Endpoint) Reserve(dst int, c conduits.Class, words, payload int) (conduits.Slot, conduits.Status) {
	e.checkLengths(words, payload)
	if st := e.room(dst, c); st != conduits.Ready {
		return conduits.Slot{}, st
	}
	id, m := e.message(dst, c, words)
	s := conduits.Slot{Words: m.words[:words:words], Ref: uint64(id)}
	if payload > 0 {
		m.data, m.own = e.j.m.buffer(payload), true
		s.Payload = m.data
	}
	return s, conduits.Ready
}

// ReservePut makes a message that data goes ahead of. The card reads data when
// the message has been committed.
func (e *Endpoint) ReservePut(dst int, c conduits.Class, words int, to segment.NLA, data []byte, cookie uint64) (conduits.Slot, conduits.Event, conduits.Status) {
	e.checkLengths(words, 0)
	if _, ok := e.j.target(dst, e.rank, to, uint64(len(data)), segment.RightWrite); !ok && len(data) > 0 &&
		!conduits.Registered(e.SegmentSize(dst), to, uint64(len(data))) {
		panic("sim: put to an address that was not checked")
	}
	if st := e.room(dst, c); st != conduits.Ready {
		return conduits.Slot{}, 0, st
	}
	id, m := e.message(dst, c, words)
	e.j.m.access(m)
	m.kind, m.to, m.cookie, m.data = kindLong, to, cookie, data
	ev := conduits.Event(0)
	if len(data) <= e.j.p.Immediate {
		m.data, m.own = e.j.m.buffer(len(data)), true
		bulk.Copy(m.data, data)
		ev = conduits.SourceDone
	} else {
		m.want = conduits.SourceDone
	}
	return conduits.Slot{Words: m.words[:words:words], Ref: uint64(id)}, ev, conduits.Ready
}

// Commit sends a reserved message.
func (e *Endpoint) Commit(_ int, _ conduits.Class, s conduits.Slot, tag conduits.Tag, payload int) {
	id := uint32(s.Ref)
	m := e.j.m.at(id)
	if m.kind == kindLong {
		e.launchLong(id, m, tag)
		return
	}
	k := kindShort
	if payload > 0 {
		k = kindMedium
		m.data = m.data[:payload]
	} else {
		e.j.m.release(m)
	}
	e.launch(id, m, k, tag)
}

// Cancel forgets a reserved message.
func (e *Endpoint) Cancel(_ int, _ conduits.Class, s conduits.Slot) {
	j := e.j
	id := uint32(s.Ref)
	m := j.m.at(id)
	if m.want != 0 { // of a put: its source is free at once
		j.complete(e.rank, m.cookie, m.want, 0, nil, max(0, e.clock-j.now))
	}
	j.credit(m)
	j.m.put(id)
}

func (e *Endpoint) message(dst int, c conduits.Class, words int) (uint32, *message) {
	id, m := e.j.m.get()
	m.kind, m.class, m.nwords, m.src, m.dst = kindReserved, c, uint8(words), int32(e.rank), int32(dst)
	return id, m
}

// issue spends what handing something to the card takes, in parts of that many bytes, and
// returns when the card has it.
func (e *Endpoint) issue(parts, bytes int, gap Time, free *Time) Time {
	p := &e.j.p
	at := max(e.clock+e.work(p.Software/2)+p.PIO, *free)
	e.spend(Time(parts) * p.SendBusy)
	*free = at + gap
	if further := Time(parts - 1); further > 0 {
		// All parts are one message to the network. Where the card or the processor
		// is slower than the link, it enters so much later that its end is right.
		pace := max(gap, p.SendBusy)
		*free += further * pace
		at += further * max(0, pace-Time(p.Header+bytes)*p.Net.Byte)
	}
	return at
}

// launch gives a short or medium message to the card.
func (e *Endpoint) launch(id uint32, m *message, k kind, tag conduits.Tag) {
	j := e.j
	p := &j.p
	m.kind, m.tag = k, tag
	e.tally.sent(m)
	var at Time
	switch {
	case k == kindShort, len(m.data) <= p.Eager:
		at = e.issue(j.packets(m), p.Slot, p.MessageGap, &e.cardFree)
	default:
		// Copied into registered memory, put into the landing buffer, and told.
		e.spend(Time(len(m.data)) * p.MemoryByte)
		at = e.issue(1, 0, p.PutGap, &e.rmaFree) + p.Unit + p.ATU + p.DMARead
	}
	j.trace.message(e.clock, 's', m)
	j.schedule(at+j.faults.jitter(j), evInject, uint64(id))
}

func (e *Endpoint) launchLong(id uint32, m *message, tag conduits.Tag) {
	j := e.j
	p := &j.p
	m.tag = tag
	e.tally.sent(m)
	gap := p.RMAGap
	if m.want != 0 {
		gap = p.PutGap // the card reads the data
	}
	parts := j.commands(int(m.dst), m.to, len(m.data))
	at := e.issue(parts, len(m.data)/parts, gap, &e.rmaFree) + p.Unit
	j.trace.message(e.clock, 's', m)
	if m.want == 0 {
		j.schedule(at+j.faults.jitter(j), evInject, uint64(id))
		return
	}
	j.schedule(at+translateOwn(e, at, m.data)+p.DMARead+j.faults.jitter(j), evRead, uint64(id))
}

// Poll runs what has arrived by the rank's clock.
func (e *Endpoint) Poll() int {
	th := e.thread("poll")
	// A caller that has announced that it parks gets what comes until then by
	// parking.
	return e.poll(th, false, th.blocked != nil)
}

// Spin runs what has arrived by the job's clock: a rank that spins parks soon.
func (e *Endpoint) Spin() int { return e.poll(e.thread("spin"), false, true) }

// PollReplies runs replies and completions.
func (e *Endpoint) PollReplies() int { return e.poll(e.thread("poll"), true, false) }

// unsynced is how many polls of a thread in turn may look without letting the
// rest of the job come up with the rank's clock. The usual way to wait (see
// conduits.Wait) then takes one switch between coroutines, not three, and a
// caller that waits in another way still lets time pass.
const unsynced = 2

// batch is the most that one poll runs.
const batch = 64

func (e *Endpoint) poll(th *thread, nested, lazy bool) int {
	j := e.j
	if e.closed || !nested && e.poller != nil {
		// Time passes all the same, so that the poller goes on.
		e.spend(j.p.Poll)
		e.sync(th)
		return 0
	}
	if !nested {
		e.poller = th
	}
	if lazy && th.unsynced < unsynced {
		th.unsynced++
	} else {
		e.sync(th)
	}
	n := 0
	for n < batch {
		if id := e.done.take(&j.m); id != 0 {
			m := j.m.at(id)
			cookie, want, value, err := m.cookie, m.want, m.a, m.err
			j.m.put(id)
			e.spend(j.p.Software / 2)
			e.receiver.Complete(cookie, want, value, err)
			n++
			continue
		}
		id := e.in[conduits.Reply].take(&j.m)
		if id == 0 && !nested {
			id = e.in[conduits.Request].take(&j.m)
		}
		if id == 0 {
			break
		}
		e.receive(id)
		n++
	}
	if !nested {
		e.poller = nil
	}
	if n == 0 {
		e.spend(j.p.Poll)
	} else if e.sleepers > 0 {
		// Other threads of this rank may wait for the message that ran.
		e.notify(false)
	}
	return n
}

func (e *Endpoint) receive(id uint32) {
	j := e.j
	m := j.m.at(id)
	if m.kind == kindCopy && m.data != nil {
		// Its receiver may write to it, and others are to read the same.
		b := j.m.buffer(len(m.data))
		bulk.Copy(b, m.data)
		m.data, m.own = b, true
	}
	payload := m.data
	if m.kind == kindLong {
		var ok bool
		if payload, ok = landed(e, id, m); !ok {
			return
		}
	}
	e.tally.Lock()
	e.tally.Received(int(m.src), m.class, len(payload))
	e.tally.Unlock()
	e.spend(j.p.Software / 2)
	var cm *conduits.Message
	if n := len(j.pool); n > 0 {
		cm = j.pool[n-1]
		j.pool = j.pool[:n-1]
	} else {
		cm = new(conduits.Message) // one more than Job.run has made: replies nest
	}
	cm.Src, cm.Class, cm.Tag, cm.To = int(m.src), m.class, m.tag, m.to
	cm.Words, cm.Payload = m.words[:m.nwords:m.nwords], payload
	j.trace.message(e.clock, 'h', m)
	e.receiver.Receive(cm)
	j.pool = append(j.pool, cm)
	j.credit(m)
	j.m.put(id)
}

// landed is the memory that the data of long message id is in. ok is false if the
// message has been refused. Apart from receive, whose frame is on the stacks of
// ranks that wait.
//
//go:noinline
func landed(e *Endpoint, id uint32, m *message) (payload []byte, ok bool) {
	payload, err := e.reach(int(m.src), m.to, uint64(len(m.data)), segment.RightWrite)
	if err != nil {
		e.j.refuse(id, err) // withdrawn since the data was put
		return nil, false
	}
	if n := uint64(len(payload)); n > 0 && !conduits.InSegment(e, e.rank, m.to, n) && e.MadeATU().Since(m.to, n, m.regs) {
		e.j.refuse(id, segment.ErrFault) // the addresses are other memory's since
		return nil, false
	}
	return payload, true
}

// Polling reports whether the caller is in a handler.
func (e *Endpoint) Polling() bool { return e.poller != nil && e.poller == e.j.current }

// Compute has the calling thread of e's rank compute for d of virtual time: it answers no peer meanwhile. Other
// threads of the rank, such as those of gas.Config.Progress, go on beside it, as on a processor of their own.
func Compute(e *Endpoint, d time.Duration) {
	th := e.thread("compute")
	at := min(max(e.clock, e.j.now)+e.work(min(Time(d), maxTime/Nanosecond)*Nanosecond), far)
	th.state = ready
	e.j.schedule(at, evRun, uint64(th.id))
	th.stop()
	e.clock = max(e.clock, at)
}

// Sleep is Compute.
func (e *Endpoint) Sleep(d time.Duration) { Compute(e, d) }

// Idle returns false, for park: waiting costs nothing here.
func (e *Endpoint) Idle(int) bool { return false }

// Arm remembers what the caller has seen.
func (e *Endpoint) Arm(b conduits.Blocked) conduits.Ticket {
	th := e.thread("arm")
	if b == nil {
		b = conduits.Idling{}
	}
	th.blocked = b
	th.waits++
	return conduits.Ticket{Seq: e.seq, Slot: int32(th.id)}
}

// Park hands the processor to others until something has arrived since Arm.
func (e *Endpoint) Park(t conduits.Ticket) {
	th := e.thread("park")
	if e.seq == t.Seq && !e.closed {
		bump(&e.parks)
		b := th.blocked
		e.sleep(th, b)
	} else {
		th.blocked = nil
	}
}

// hopeless is how often a thread may go to sleep after it could have known that
// the job has failed.
const hopeless = 1 << 16

// sleep parks th.
func (e *Endpoint) sleep(th *thread, b conduits.Blocked) {
	if e.dead() {
		runtime.Goexit()
	}
	if e.j.err != nil && e.Err() != nil {
		// Nothing may ever come. A rank that waits nevertheless must not stop the
		// rest, nor go on so for ever.
		if th.hopeless++; th.hopeless > hopeless {
			panic(fmt.Sprintf("sim: rank %d goes on waiting (%s) although the job has failed: %v", e.rank, reason(b), e.j.err))
		}
		e.spend(e.j.p.Poll)
		th.state = ready
		e.j.schedule(e.clock, evRun, uint64(th.id))
		th.stop()
		th.blocked = nil
		return
	}
	if th.blocked == nil { // else it is the wait of Arm
		th.waits++
	}
	th.blocked = b
	th.state = parked
	th.put = false
	th.next = e.parked
	e.parked = th.id + 1
	e.sleepers++
	th.stop()
	th.blocked = nil
	if th.put {
		// It polls memory, and has noticed what the card wrote there.
		e.spend(e.j.p.Software / 2)
	}
}

// Disarm takes the announcement back.
func (e *Endpoint) Disarm(conduits.Ticket) { e.thread("disarm").blocked = nil }

// Wake makes rank's parked threads look again, as a message without contents
// would.
func (e *Endpoint) Wake(rank int) {
	j := e.j
	if rank == e.rank {
		e.notify(false)
		return
	}
	bump(&e.wakes)
	at := max(j.now, e.clock)
	if !e.closed {
		at += j.p.Net.Latency
	}
	j.schedule(at, evCredit, uint64(rank))
}

// Now is the rank's clock.
func (e *Endpoint) Now() time.Duration { return duration(max(e.clock, e.j.now)) }

// Err is the job's failure as far as this rank has heard of it.
func (e *Endpoint) Err() error {
	j := e.j
	switch {
	case e.crashed:
		return &conduits.PeerError{Rank: e.rank, Err: errCrashed}
	case j.err != nil && (j.seen || j.failer == e.rank):
		return j.err
	case e.closed:
		return errClosed
	}
	return nil
}

// Fail declares this rank failed.
func (e *Endpoint) Fail(err error) {
	if e.crashed {
		return
	}
	e.j.fail(e.rank, &conduits.PeerError{Rank: e.rank, Err: err})
	e.notify(false)
}

// Blame declares rank failed.
func (e *Endpoint) Blame(rank int, err error) {
	if e.crashed {
		return
	}
	e.j.fail(rank, &conduits.PeerError{Rank: rank, Err: err})
	e.notify(false)
}

// Left reports whether rank has left, and nothing of it is on the way to this rank.
// One that has crashed has not left. Nor has one that closes because the job has
// failed: this rank hears of the failure next.
func (e *Endpoint) Left(rank int) bool {
	if uint(rank) >= uint(e.j.n) || rank == e.rank || e.j.err != nil {
		return false
	}
	from := &e.j.eps[rank]
	return from.closed && !from.crashed && from.pairs.idle(e.rank) && e.j.castsIdle(rank)
}

// Close leaves the job.
func (e *Endpoint) Close() error {
	if e.closed {
		return errClosed
	}
	if !e.attached && !e.crashed {
		e.Fail(errors.New("it left the job before it attached"))
	}
	e.closed = true
	e.j.departures++
	if !e.crashed {
		e.j.left++
		if o := e.j.off; o != nil {
			o.gone = append(o.gone, e.rank)
		}
	}
	e.notify(false)
	// No poll will take what is left, and its senders get their room back.
	for c := range e.in {
		for id := e.in[c].take(&e.j.m); id != 0; id = e.in[c].take(&e.j.m) {
			e.j.lose(id)
		}
	}
	for id := e.done.take(&e.j.m); id != 0; id = e.done.take(&e.j.m) {
		e.j.m.put(id)
	}
	err := e.CloseATU()
	if !e.j.driven.Load() {
		e.j.release()
	}
	return err
}

// release unmaps the memory of a job whose ranks are all closed or have crashed, and
// of which no thread is left. What was under way is forgotten: it may have been
// between pieces of that memory.
func (j *Job) release() {
	if j.left < j.n || j.released {
		return
	}
	j.released = true
	j.q.h = nil
	for r := range j.eps {
		e := &j.eps[r]
		e.view[0] = segment.View{}
		_ = e.CloseATU() // of one that has crashed
	}
	j.mem.unmap()
}

// RunRanks runs rank(i) for each of eps in virtual time. It may be called again
// when it has returned. A panic of one of them ends the job: RunRanks panics with
// a *PanicError when the others have ended, which do so where they wait as by
// runtime.Goexit.
func (e *Endpoint) RunRanks(eps []conduits.Endpoint, rank func(i int)) {
	j := e.j
	for _, ep := range eps {
		if s, ok := ep.(*Endpoint); !ok || s.j != j {
			panic("sim: RunRanks with an endpoint of another job")
		}
	}
	if !j.driven.CompareAndSwap(false, true) {
		panic("sim: RunRanks inside RunRanks")
	}
	if j.abandoned {
		j.driven.Store(false)
		panic("sim: RunRanks of a job that a panic has ended")
	}
	over, seen := make(chan struct{}), make(chan struct{})
	go func() {
		j.oversee(overseen, over)
		close(seen)
	}()
	defer func() {
		close(over)
		<-seen
		j.driven.Store(false)
		j.answerAll()
		if j.watch != nil {
			j.watch.finish(nil)
		}
		j.release()
	}()
	j.askedMu.Lock() // questions wait until all are there
	for i, ep := range eps {
		s := ep.(*Endpoint)
		j.start(s, max(j.now, s.clock), func() { rank(i) })
	}
	j.askedMu.Unlock()
	j.drive()
}

// drive runs the loop to its end, on a goroutine of its own: runtime.Goexit in a
// coroutine also ends the goroutine that resumed it.
func (j *Job) drive() {
	type end struct {
		panicked any
		over     bool
	}
	for {
		ended := make(chan end)
		go func() {
			var r end
			defer func() {
				if !r.over {
					r.panicked = recover()
				}
				ended <- r
			}()
			j.loop()
			r.over = true
		}()
		r := <-ended
		if r.panicked != nil {
			if j.watch != nil {
				if p, ok := r.panicked.(*PanicError); ok {
					j.watch.finish(p.Value)
				} else {
					j.watch.finish(r.panicked)
				}
			}
			j.abandon()
			panic(r.panicked)
		}
		if r.over {
			return
		}
		j.current = nil
	}
}

// GoRank starts a further thread of this rank.
func (e *Endpoint) GoRank(f func()) { e.j.start(e, max(e.j.now, e.clock), f) }
