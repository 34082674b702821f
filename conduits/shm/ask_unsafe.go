package shm

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// The owner does on request the accesses that a process cannot make to its memory. A
// rank has a desk in the job's memory, with places for questions, each with a state:
//
//	free -> posted    by the asker, which then tells the owner by a bit in the owner's
//	                  registry, by its ctlOpenSeq, and by waking it
//	posted -> busy    by the owner, when it polls
//	busy -> done      by the owner, which then tells the asker by its ctlOpenSeq
//	done -> free      by the asker, when it polls
//	posted -> free    by the asker, if the owner has left the job
//
// An access larger than a place's room takes several. Neither side waits for the
// other; a question that finds no place waits in the asker's memory, in a line for each owner,
// and the last deskKept places are for owners that have none: one that does not poll
// holds up no other, nor do up to deskKept-1 of them. A question runs no handler
// and needs no credit, so owners answer whenever they poll, in handlers, too, which
// keeps the argument that nothing deadlocks.
const (
	askFree = iota
	askPosted
	askBusy
	askDone
)

// deskKept is how many places are not for owners that have one already.
const deskKept = 8

// Kinds of question, by Verb.
var askKinds = [...]uint32{conduits.Put: askPut, conduits.Get: askGet, conduits.PutWord: askWord, conduits.Atomic: askAtomic}

const (
	askPut = iota
	askGet
	askWord
	askAtomic
)

// question is an access that another rank is asked for. Want holds the events that have not been
// reported yet.
type question struct {
	conduits.Access
	of   *Endpoint // the lane that asks
	long bool      // a long message's data

	posted int // bytes that have been given a place; words count as one piece
	size   int // bytes to be given one
	flying int // places
	err    error
	next   *question // in its line

	// Of a long message: it is published when both have happened, its data has been
	// put and it has been committed.
	class     conduits.Class
	slot      conduits.Slot
	index     int // in desk.long
	tag       conduits.Tag
	committed bool
	finished  bool
}

// desk is a rank's side of its questions. mu guards what follows it, but for open. ask posts;
// the poller takes the answers (Endpoint.advance).
type desk struct {
	seat
	life *lifecycle
	bell *bell
	vpid uint16 // for errors

	mu    sync.Mutex
	base  unsafe.Pointer // nil before the first question
	off   uint64         // in the file
	free  uint32         // places, by bit
	used  uint32
	place [deskPlaces]struct {
		q       *question
		from, n int // of q.Mem

		// Results of the last audits: the state, how often, and the owner's
		// audits when it was found first.
		state uint32
		times int
		peer  uint32
	}
	auditDue atomic.Bool
	lines    []line      // by place
	last     *line       // of a ring of those that wait; nil if none does
	waiting  int         // how many they are
	done     []*question // to be reported
	spare    []*question
	long     []*question // by question.index
	open     atomic.Int32
	asked    atomic.Uint64 // conduits.Stats.Asked
}

// line is those of a rank's questions to one owner that have bytes without a place.
// Only its first may have places for others of its bytes.
type line struct {
	first, last *question // last is good if first is not nil
	flying      int       // places that the owner has, by other questions, too
	waits       bool      // it is in the ring, in which failures leave it empty
	next        *line
}

// ask begins a question and returns what has been completed of it, which is that
// the source may be reused, at most.
func (d *desk) ask(q question) (conduits.Event, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x, err := d.askLocked(q)
	if err != nil {
		return 0, err
	}
	return x.source(), nil
}

// askLocked is ask with d.mu held. The question is good until that is released.
func (d *desk) askLocked(q question) (*question, error) {
	if d.j.hasFailed() {
		return nil, d.life.Err()
	}
	if d.base == nil {
		p, r, err := d.j.mapNew(deskBytes)
		if err != nil {
			return nil, err
		}
		d.off = r.off
		d.base, d.free, d.lines = p, 1<<deskPlaces-1, make([]line, d.j.n)
		atomic.StoreUint64((*uint64)(unsafe.Add(d.j.registry(d.rank), regDesk)), r.off)
	}
	var x *question
	if n := len(d.spare); n > 0 {
		x, d.spare = d.spare[n-1], d.spare[:n-1]
	} else {
		x = new(question)
	}
	*x = q
	d.asked.Add(1)
	if x.size = len(x.Mem); x.Mem == nil {
		x.size = 1
	}
	d.open.Add(1)
	l := &d.lines[d.j.place(x.Rank)]
	if l.first == nil {
		l.first = x
	} else {
		l.last.next = x
	}
	if l.last = x; !l.waits {
		l.waits = true
		d.push(l)
	}
	d.post()
	return x, nil
}

// source says that the source may be reused if it may, and remembers it.
func (x *question) source() conduits.Event {
	if x.Verb == conduits.Get || x.Verb == conduits.Atomic || x.posted < x.size {
		return 0
	}
	ev := x.Want & conduits.SourceDone
	x.Want &^= ev
	return ev
}

// push makes l the last line of the ring.
func (d *desk) push(l *line) {
	if d.waiting++; d.last == nil {
		l.next = l
	} else {
		l.next, d.last.next = d.last.next, l
	}
	d.last = l
}

// pop takes the first line from the ring.
func (d *desk) pop() *line {
	l := d.last.next
	if d.waiting--; d.waiting == 0 {
		d.last = nil
	} else {
		d.last.next = l.next
	}
	return l
}

// post gives places to what waits for them, one to each line in turn. What it passes
// over has places, so there is not more of that than there are places.
func (d *desk) post() {
	for passed := 0; passed < d.waiting && d.free != 0; {
		l := d.pop()
		switch {
		case l.first == nil:
		case l.flying > 0 && bits.OnesCount32(d.free) <= deskKept:
			passed++
		default:
			passed = 0
			d.placeFirst(l)
		}
		if l.waits = l.first != nil; l.waits {
			d.push(l)
		}
	}
}

// placeFirst gives a place to the first of l.
func (d *desk) placeFirst(l *line) {
	x := l.first
	i := bits.TrailingZeros32(d.free)
	d.free &^= 1 << i
	d.used |= 1 << i
	p := unsafe.Add(d.base, i*deskLine)
	from, n := x.posted, int(x.Len())
	if x.Mem != nil {
		n = min(x.size-from, deskRoom)
		if x.Verb != conduits.Get {
			copy(unsafe.Slice((*byte)(unsafe.Add(d.base, deskRooms+i*deskRoom)), deskRoom), x.Mem[from:from+n])
		}
		x.posted += n
	} else {
		x.posted = x.size
	}
	at := &d.place[i]
	at.q, at.from, at.n, at.state = x, from, n, askFree
	if x.flying++; x.posted >= x.size {
		l.first, x.next = x.next, nil
	}
	l.flying++
	*(*uint32)(unsafe.Add(p, askDst)) = uint32(d.j.place(x.Rank))
	*(*uint32)(unsafe.Add(p, askKind)) = askKinds[x.Verb]
	*(*uint32)(unsafe.Add(p, askOp)) = uint32(x.Op) | uint32(x.Type)<<8
	*(*uint64)(unsafe.Add(p, askTo)) = uint64(x.At) + uint64(from)
	*(*uint64)(unsafe.Add(p, askLen)) = uint64(n)
	*(*uint64)(unsafe.Add(p, askA)) = x.A
	*(*uint64)(unsafe.Add(p, askB)) = x.B
	atomic.StoreUint32((*uint32)(unsafe.Add(p, askState)), askPosted)
	d.tell(x.Rank)
}

// tell has rank look at this rank's desk.
func (d *desk) tell(rank int) {
	me := d.here
	word := (*uint32)(unsafe.Add(d.j.registry(rank), regAsked+me/32*4))
	// If the bit is set the owner has been told of an earlier question and has not
	// looked yet: it clears the bit before it looks.
	if bit := uint32(1) << (me % 32); atomic.OrUint32(word, bit)&bit == 0 {
		atomic.AddUint32(d.j.c32(rank, ctlOpenSeq), 1)
	}
	d.bell.Wake(rank)
	// A rank that leaves says so first and then has all others look; if that was before this
	// question, look again.
	if d.j.hasFailed() || d.life.gone(rank) {
		atomic.AddUint32(d.j.c32(d.rank, ctlOpenSeq), 1)
	}
}

// collect takes the answers that are there.
func (d *desk) collect() {
	var failure error
	if d.j.hasFailed() {
		failure = d.life.Err()
	}
	for used := d.used; used != 0; used &= used - 1 {
		i := bits.TrailingZeros32(used)
		p := unsafe.Add(d.base, i*deskLine)
		state := (*uint32)(unsafe.Add(p, askState))
		at := &d.place[i]
		x := at.q
		again := true // the place can be used
		switch {
		case atomic.LoadUint32(state) == askDone:
			if page := *(*uint64)(unsafe.Add(p, askPage)); page != 0 {
				have := segment.Entry(*(*uint64)(unsafe.Add(p, askHave)))
				d.fail(x, d.fault(x, segment.NLA(page&^(segment.PageSize-1)), have))
			} else if x.Verb == conduits.Get && x.err == nil {
				carry(unsafe.Add(d.base, deskRooms+i*deskRoom), x.Mem[at.from:at.from+at.n], x.At, segment.RightRead)
			}
			x.Value = *(*uint64)(unsafe.Add(p, askValue))
		case failure != nil:
			d.fail(x, failure)
			again = false // the owner may still use it
		case d.life.gone(x.Rank) && atomic.CompareAndSwapUint32(state, askPosted, askFree):
			d.fail(x, d.fault(x, x.At&^(segment.PageSize-1), 0))
		default:
			continue
		}
		d.used &^= 1 << i
		if again {
			atomic.StoreUint32(state, askFree)
			d.free |= 1 << i
		}
		at.q = nil
		d.lines[d.j.place(x.Rank)].flying--
		if x.flying--; x.flying == 0 && x.posted >= x.size {
			d.done = append(d.done, x)
		}
	}
	for failure != nil && d.waiting > 0 {
		l := d.pop()
		for l.waits = false; l.first != nil; {
			x := l.first // without a place: those have been taken back
			d.fail(x, failure)
			d.done = append(d.done, x)
		}
	}
}

// fail ends x, which has places or is the first of its line, with err when its
// places are free again. It leaves the line now: it may be used again before post
// comes to that.
func (d *desk) fail(x *question, err error) {
	if x.err == nil {
		x.err = err
	}
	if x.posted < x.size {
		x.posted = x.size
		d.lines[d.j.place(x.Rank)].first, x.next = x.next, nil
	}
}

// fault is x's error if the owner has refused it.
func (d *desk) fault(x *question, page segment.NLA, have segment.Entry) error {
	f := &segment.FaultError{Addr: x.At, Len: x.Len(), Need: x.Need(), VPID: d.vpid, Page: page, Have: have}
	return conduits.Fault("shm: "+x.Verb.String(), x.Rank, f)
}

// recycle takes a question back that no caller needs any more.
func (d *desk) recycle(x *question) {
	if x.long {
		d.long[x.index] = nil
	}
	*x = question{}
	d.spare = append(d.spare, x)
}
