package shm

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/internal/conc"
)

// Stray writes over a message in flight, or over the words by which two ranks
// tell each other how far they are, would have both wait for ever: a cell that was wiped
// looks like one that is still to come, and only the sender knows better. So the watcher has
// each rank audit its rings now and then, in a poll, where it holds them: the sender tells how
// much it has sent, and the receiver compares that with what has come; and each compares the
// words that it alone writes with what it wrote. A rank that sleeps is woken for it, once in
// auditEvery looks. Sends and other polls do nothing more for it.
const (
	auditEvery = 10 // looks of the watcher
	// lostAudits is in how many audits in a row, of either side, a message is missing
	// before it is lost: more than one whose sender is just publishing it can be.
	lostAudits = 4
)

// audit has the sums of a ring that a receiver keeps from one audit to the next.
type audit struct {
	came, told sum    // which differed
	times      int    // how often that has been found
	peer       uint32 // the sender's audits when it was found first
}

// askAudit has this lane's next poll audit its rings, and makes a sleeper poll.
func (e *Endpoint) askAudit() {
	if e.untilAudit--; e.untilAudit > 0 {
		return
	}
	e.untilAudit = auditEvery
	e.mailbox.auditDue.Store(true)
	if e.lane == 0 {
		e.desk.auditDue.Store(true)
	}
	atomic.AddUint32(e.openSeq, 1)
	if atomic.LoadUint32(e.mailbox.parked) != 0 {
		e.wake(e.rank)
	}
}

// audit is one. The caller polls.
func (box *mailbox) audit() {
	if !box.auditDue.Load() || !box.auditDue.Swap(false) || box.life.closed.Load() || box.j.hasFailed() {
		return
	}
	what := ""
	for i := range box.out {
		if r := box.out[i].Load(); r != nil {
			r.each(func(r *outRing) {
				if what == "" {
					what = r.auditSent()
				}
			})
			if s := r.strands.Load(); s != nil && what == "" {
				what = s.audit(r)
			}
		}
	}
	for _, r := range box.in {
		if what == "" {
			what = r.auditCame(atomic.LoadUint32(box.j.p32(r.src, box.lane, ctlAudits)))
		}
	}
	if what != "" {
		box.damaged(what)
	}
	atomic.AddUint32(box.word(box.rank, ctlAudits), 1)
}

// damaged ends the job.
func (box *mailbox) damaged(what string) {
	box.life.Fail(fmt.Errorf("the job's shared memory is damaged: %s", what))
}

// sum is what a sender tells of a ring: how many cells it has filled, twice, and 1 more if
// some are not published yet; how many of these are messages; and bytes of payload.
type sum struct{ sent, messages, landed uint64 }

// sumAt is the sum at the three words from p on.
func sumAt(p *uint64) (s sum) {
	for i, v := range []*uint64{&s.sent, &s.messages, &s.landed} {
		*v = atomic.LoadUint64((*uint64)(unsafe.Add(unsafe.Pointer(p), 8*i)))
	}
	return s
}

// auditSent tells the receiver how much r has carried, if that has not changed since the last
// audit.
func (r *outRing) auditSent() string {
	// A tail that is about to change is another one in the next audit, so that the lock,
	// which would cost the goroutine that sends its bias, need not be taken.
	if conc.Race {
		r.lock.Lock()
		defer r.lock.Unlock()
	}
	if r.limit == 0 {
		return "" // shut
	}
	if got := sumAt(r.sumWords); got != r.told {
		return fmt.Sprintf("the ring of %vs to rank %d says that %d messages were sent, and it said %d", r.class, r.dst, got, r.told)
	}
	now := sum{r.tail << 1, r.tail - r.cancelled, r.written}
	if r.open.Load() != 0 {
		now.sent |= 1
	}
	if now == r.last && now != r.told {
		r.told = now
		for i, v := range []uint64{now.sent, now.messages, now.landed} {
			atomic.StoreUint64((*uint64)(unsafe.Add(unsafe.Pointer(r.sumWords), 8*i)), v)
		}
	}
	r.last = now
	return ""
}

// auditCame compares what has come by r with what was sent. peer counts the sender's audits.
func (r *inRing) auditCame(peer uint32) string {
	ring := func() string { return fmt.Sprintf("the ring of %vs from rank %d", r.class, r.src) }
	if got := atomic.LoadUint64(r.headWord); got != r.published {
		return fmt.Sprintf("%s says that %d were taken, and it said %d", ring(), got, r.published)
	}
	if got := atomic.LoadUint64(r.landWord); got != r.landPublished {
		return fmt.Sprintf("%s says that %d bytes of payload were taken, and it said %d", ring(), got, r.landPublished)
	}
	told, came := sumAt(r.sumWords), sum{r.head << 1, r.delivered + r.withdrawn, r.landRead}
	if told == came || told.sent&1 != 0 || atomic.LoadUint64(r.next()) != 0 {
		r.times = 0
		return ""
	}
	// Either more has come since the sender has told, or a message is under way, or it never comes.
	if r.times == 0 || r.came != came || r.told != told {
		r.audit = audit{came: came, told: told, peer: peer}
	}
	if r.times++; r.times <= lostAudits || peer-r.peer <= lostAudits {
		return ""
	}
	if came.sent < told.sent {
		return fmt.Sprintf("%s: message %d, of %d that were sent, has been wiped out of cell %d", ring(), r.head, told.sent>>1, r.head&r.mask)
	}
	return fmt.Sprintf("%s: %d cells, %d messages and %d bytes of payload have come, of %d, %d and %d that were sent",
		ring(), r.head, came.messages, came.landed, told.sent>>1, told.messages, told.landed)
}

// nonsense describes a count of taken messages, or of bytes, that no receiver can have written
// for r; "" if there is none.
func (r *outRing) nonsense() string {
	if h, seen := atomic.LoadUint64(r.head), r.limit-r.mask-1; h-seen > r.tail-seen {
		return fmt.Sprintf("the ring of %vs to rank %d says that %d were taken, of %d that were sent, and it said %d", r.class, r.dst, h, r.tail, seen)
	}
	if l := atomic.LoadUint64(r.landHead); l-r.landRead > r.written-r.landRead {
		return fmt.Sprintf("the ring of %vs to rank %d says that %d bytes of payload were taken, of %d that were sent, and it said %d", r.class, r.dst, l, r.written, r.landRead)
	}
	return ""
}

// audit looks after this rank's questions: those that their owners have not taken up are
// told of once more, and what no rank of ours writes ends the job. The caller polls.
func (d *desk) audit() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.base == nil || d.j.hasFailed() {
		return
	}
	bad := func(format string, args ...any) {
		d.life.Fail(fmt.Errorf("the job's shared memory is damaged: the desk of rank %d %s", d.rank, fmt.Sprintf(format, args...)))
	}
	if off := atomic.LoadUint64((*uint64)(unsafe.Add(d.j.registry(d.rank), regDesk))); off != d.off {
		bad("is said to be at %#x, and is at %#x", off, d.off)
		return
	}
	for used := d.used; used != 0; used &= used - 1 {
		i := bits.TrailingZeros32(used)
		p, at := unsafe.Add(d.base, i*deskLine), &d.place[i]
		rank := at.q.Rank
		peer := atomic.LoadUint32(d.j.c32(rank, ctlAudits))
		state := atomic.LoadUint32((*uint32)(unsafe.Add(p, askState)))
		if state != at.state {
			at.state, at.times, at.peer = state, 0, peer
		}
		at.times++
		switch {
		case state == askPosted && atomic.LoadUint32((*uint32)(unsafe.Add(p, askDst))) != uint32(d.j.place(rank)):
			bad("has a question to rank %d in place %d, which names another one", rank, i)
		case state == askPosted:
			d.tell(rank)
		case state == askBusy && at.times > lostAudits && peer-at.peer > lostAudits:
			bad("has a question in place %d that rank %d is said to be answering, and is not", i, rank)
		case state == askFree || state > askDone:
			bad("has a question to rank %d in place %d, whose state is %d", rank, i, state)
		default:
			continue
		}
		if d.j.hasFailed() {
			return
		}
	}
}
