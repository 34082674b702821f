package shm

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// What a process cannot do to another's memory, the owner does when it is asked. A
// rank has a desk in the job's memory, with places for questions; a place's state
// says whose turn it is:
//
//	free -> posted    by the asker, which then tells the owner by a bit in the owner's
//	                  registry, by its ctlOpenSeq, and by waking it
//	posted -> busy    by the owner, when it polls
//	busy -> done      by the owner, which then tells the asker by its ctlOpenSeq
//	done -> free      by the asker, when it polls
//	posted -> free    by the asker, if the owner has left the job
//
// What is larger than a place's room takes several. Neither side waits for the
// other; what finds no place waits in the asker's memory, in a line for each owner,
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

// Kinds of question.
const (
	askPut = iota
	askGet
	askWord
	askAtomic
	askLong // to the owner it is askPut
)

// question is an operation that another rank is asked for.
type question struct {
	kind   uint32
	rank   int
	at     segment.NLA
	buf    []byte // of askPut, askGet and askLong
	n      int    // bytes of a word
	op     conduits.AtomicOp
	typ    conduits.AtomicType
	a, b   uint64
	want   conduits.Event // not reported yet
	cookie uint64

	posted int // bytes that have been given a place; words count as one piece
	size   int // bytes to be given one
	flying int // places
	value  uint64
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

// desk is a rank's side of its questions.
type desk struct {
	mu    sync.Mutex
	base  unsafe.Pointer // nil before the first question
	free  uint32         // places, by bit
	used  uint32
	place [deskPlaces]struct {
		q       *question
		from, n int // of q.buf
	}
	lines   []line      // by place
	last    *line       // of a ring of those that wait; nil if none does
	waiting int         // how many they are
	done    []*question // to be reported
	spare   []*question
	long    []*question // by question.index
	open    atomic.Int32
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
func (e *Endpoint) ask(q question) (conduits.Event, error) {
	d := &e.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	x, err := e.askLocked(q)
	if err != nil {
		return 0, err
	}
	return x.source(), nil
}

// askLocked is ask with d.mu held. The question is good until that is released.
func (e *Endpoint) askLocked(q question) (*question, error) {
	d := &e.desk
	if e.j.hasFailed() {
		return nil, e.Err()
	}
	if d.base == nil {
		p, r, err := e.j.mapNew(deskBytes)
		if err != nil {
			return nil, err
		}
		d.base, d.free, d.lines = p, 1<<deskPlaces-1, make([]line, e.j.n)
		atomic.StoreUint64((*uint64)(unsafe.Add(e.j.registry(e.rank), regDesk)), r.off)
	}
	var x *question
	if n := len(d.spare); n > 0 {
		x, d.spare = d.spare[n-1], d.spare[:n-1]
	} else {
		x = new(question)
	}
	*x = q
	if x.size = len(x.buf); x.buf == nil {
		x.size = 1
	}
	d.open.Add(1)
	l := &d.lines[e.j.place(x.rank)]
	if l.first == nil {
		l.first = x
	} else {
		l.last.next = x
	}
	if l.last = x; !l.waits {
		l.waits = true
		d.push(l)
	}
	e.post()
	return x, nil
}

// source says that the source may be reused if it may, and remembers it.
func (x *question) source() conduits.Event {
	if x.kind == askGet || x.kind == askAtomic || x.posted < x.size {
		return 0
	}
	ev := x.want & conduits.SourceDone
	x.want &^= ev
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
func (e *Endpoint) post() {
	d := &e.desk
	for passed := 0; passed < d.waiting && d.free != 0; {
		l := d.pop()
		switch {
		case l.first == nil:
		case l.flying > 0 && bits.OnesCount32(d.free) <= deskKept:
			passed++
		default:
			passed = 0
			e.place(l)
		}
		if l.waits = l.first != nil; l.waits {
			d.push(l)
		}
	}
}

// place gives a place to the first of l.
func (e *Endpoint) place(l *line) {
	d := &e.desk
	x := l.first
	i := bits.TrailingZeros32(d.free)
	d.free &^= 1 << i
	d.used |= 1 << i
	p := unsafe.Add(d.base, i*deskLine)
	kind, from, n := x.kind, x.posted, x.n
	if x.buf != nil {
		n = min(x.size-from, deskRoom)
		if kind != askGet {
			kind = askPut
			copy(unsafe.Slice((*byte)(unsafe.Add(d.base, deskRooms+i*deskRoom)), deskRoom), x.buf[from:from+n])
		}
		x.posted += n
	} else {
		x.posted = x.size
	}
	d.place[i].q, d.place[i].from, d.place[i].n = x, from, n
	if x.flying++; x.posted >= x.size {
		l.first, x.next = x.next, nil
	}
	l.flying++
	*(*uint32)(unsafe.Add(p, askDst)) = uint32(e.j.place(x.rank))
	*(*uint32)(unsafe.Add(p, askKind)) = kind
	*(*uint32)(unsafe.Add(p, askOp)) = uint32(x.op) | uint32(x.typ)<<8
	*(*uint64)(unsafe.Add(p, askTo)) = uint64(x.at) + uint64(from)
	*(*uint64)(unsafe.Add(p, askLen)) = uint64(n)
	*(*uint64)(unsafe.Add(p, askA)) = x.a
	*(*uint64)(unsafe.Add(p, askB)) = x.b
	atomic.StoreUint32((*uint32)(unsafe.Add(p, askState)), askPosted)
	e.tell(x.rank)
}

// tell has rank look at this rank's desk.
func (e *Endpoint) tell(rank int) {
	me := e.here
	word := (*uint32)(unsafe.Add(e.j.registry(rank), regAsked+me/32*4))
	// If the bit is set the owner has been told of an earlier question and has not
	// looked yet: it clears the bit before it looks.
	if bit := uint32(1) << (me % 32); atomic.OrUint32(word, bit)&bit == 0 {
		atomic.AddUint32(e.j.c32(rank, ctlOpenSeq), 1)
	}
	e.Wake(rank)
	// A rank that leaves says so first and then has all others look; if that was before this
	// question, look again.
	if e.j.hasFailed() || e.gone(rank) {
		atomic.AddUint32(e.openSeq, 1)
	}
}

// gone says whether rank has left the job.
func (e *Endpoint) gone(rank int) bool {
	return RankState(atomic.LoadUint32(e.j.c32(rank, ctlState))) >= Finished
}

// collect takes the answers that are there.
func (e *Endpoint) collect() {
	d := &e.desk
	var failure error
	if e.j.hasFailed() {
		failure = e.Err()
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
				e.fail(x, e.fault(x, segment.NLA(page&^(segment.PageSize-1)), have))
			} else if x.kind == askGet && x.err == nil {
				carry(unsafe.Slice((*byte)(unsafe.Add(d.base, deskRooms+i*deskRoom)), at.n), x.buf[at.from:at.from+at.n], x.at, segment.RightRead)
			}
			x.value = *(*uint64)(unsafe.Add(p, askValue))
		case failure != nil:
			e.fail(x, failure)
			again = false // the owner may still use it
		case e.gone(x.rank) && atomic.CompareAndSwapUint32(state, askPosted, askFree):
			e.fail(x, e.fault(x, x.at&^(segment.PageSize-1), 0))
		default:
			continue
		}
		d.used &^= 1 << i
		if again {
			atomic.StoreUint32(state, askFree)
			d.free |= 1 << i
		}
		at.q = nil
		d.lines[e.j.place(x.rank)].flying--
		if x.flying--; x.flying == 0 && x.posted >= x.size {
			d.done = append(d.done, x)
		}
	}
	for failure != nil && d.waiting > 0 {
		l := d.pop()
		for l.waits = false; l.first != nil; {
			x := l.first // without a place: those have been taken back
			e.fail(x, failure)
			d.done = append(d.done, x)
		}
	}
}

// fail ends x, which has places or is the first of its line, with err when its
// places are free again. It leaves the line now: it may be used again before post
// comes to that.
func (e *Endpoint) fail(x *question, err error) {
	if x.err == nil {
		x.err = err
	}
	if x.posted < x.size {
		x.posted = x.size
		e.desk.lines[e.j.place(x.rank)].first, x.next = x.next, nil
	}
}

// fault is x's error if the owner has refused it.
func (e *Endpoint) fault(x *question, page segment.NLA, have segment.Entry) error {
	f := &segment.FaultError{Addr: x.at, Len: uint64(len(x.buf)), VPID: e.vpid, Page: page, Have: have, Need: segment.RightWrite}
	op := "put"
	switch x.kind {
	case askGet:
		op, f.Need = "get", segment.RightRead
	case askWord:
		op, f.Len = "put of a word", uint64(x.n)
	case askAtomic:
		op, f.Need, f.Len = "atomic", segment.RightAtomic, uint64(x.n)
	}
	return conduits.Fault("shm: "+op, x.rank, f)
}

// advance takes answers, posts what has waited, and reports what has ended. The
// caller polls.
func (e *Endpoint) advance() int {
	d := &e.desk
	if d.open.Load() == 0 {
		return 0
	}
	n := 0
	d.mu.Lock()
	e.collect()
	e.post()
	for len(d.done) > 0 {
		x := d.done[len(d.done)-1]
		d.done = d.done[:len(d.done)-1]
		d.open.Add(-1)
		q := *x
		if x.finished = true; x.kind != askLong || x.committed {
			e.recycle(x)
		}
		d.mu.Unlock()
		e.report(&q)
		n++
		d.mu.Lock()
	}
	d.mu.Unlock()
	return n
}

// recycle takes a question back that nobody needs any more.
func (e *Endpoint) recycle(x *question) {
	d := &e.desk
	if x.kind == askLong {
		d.long[x.index] = nil
	}
	*x = question{}
	d.spare = append(d.spare, x)
}

// report tells what has become of q.
func (e *Endpoint) report(q *question) {
	if q.err != nil && (q.kind == askLong || q.want&conduits.RemoteDone == 0) {
		e.faults.Add(1) // nobody else hears of it
	}
	if q.kind == askLong {
		if q.committed {
			e.publishLong(q)
		}
		q.err = nil
	}
	if q.want != 0 {
		err := q.err
		if q.want&conduits.RemoteDone == 0 {
			err = nil
		}
		e.receiver.Complete(q.cookie, q.want, q.value, err)
	}
}

// askLong has dst put a long message's data, for which s has been claimed. It says no
// if there are as many of them under way already as a slot can name.
func (e *Endpoint) askLong(dst int, c conduits.Class, s *conduits.Slot, to segment.NLA, data []byte, cookie uint64) (conduits.Event, bool) {
	d := &e.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	i := 0
	for i < len(d.long) && d.long[i] != nil {
		i++
	}
	if i > refLineMask {
		return 0, false
	}
	if i == len(d.long) {
		d.long = append(d.long, nil)
	}
	x, err := e.askLocked(question{kind: askLong, rank: dst, at: to, buf: data, want: conduits.SourceDone, cookie: cookie, class: c, index: i})
	if err != nil {
		e.faults.Add(1)
		s.Ref |= refRefused
		return done, true
	}
	d.long[i] = x
	s.Ref |= refAsked | uint64(i)<<refLineShift
	x.slot = *s
	return x.source(), true
}

// commitLong remembers that a long message has been committed, whose data is
// perhaps being put still. It says whether that is all.
func (e *Endpoint) commitLong(s conduits.Slot, tag conduits.Tag) {
	d := &e.desk
	d.mu.Lock()
	x := d.long[s.Ref>>refLineShift&refLineMask]
	x.committed, x.tag, x.slot = true, tag, s
	q := *x
	if x.finished {
		e.recycle(x)
	}
	d.mu.Unlock()
	if q.finished {
		e.publishLong(&q)
	}
}

// cancelLong remembers that nobody will commit a long message.
func (e *Endpoint) cancelLong(s conduits.Slot) {
	d := &e.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.long[s.Ref>>refLineShift&refLineMask]
	if x.finished {
		e.recycle(x)
		return
	}
	d.long[x.index] = nil
	x.kind = askPut
}

// publishLong sends a long message whose data has been put, or nothing, if it has
// been refused.
func (e *Endpoint) publishLong(q *question) {
	s := q.slot
	s.Ref = s.Ref&refIndex | kindLong<<refKindShift
	if q.err != nil {
		e.Cancel(q.rank, q.class, s)
		return
	}
	e.Commit(q.rank, q.class, s, q.tag, 0)
}

// serve answers the ranks that have asked this one. The caller polls.
func (e *Endpoint) serve() int {
	n := 0
	reg := e.j.registry(e.rank)
	for i := range (e.j.n + 31) / 32 {
		word := (*uint32)(unsafe.Add(reg, regAsked+i*4))
		if atomic.LoadUint32(word) == 0 {
			continue
		}
		for b := atomic.SwapUint32(word, 0); b != 0; b &= b - 1 {
			if k := i*32 + bits.TrailingZeros32(b); k < e.j.n && k != e.here {
				n += e.answerAll(e.j.rank(k))
			}
		}
	}
	if n > 0 {
		e.ran()
	}
	return n
}

// stopServing waits until no answer is under way. The endpoint is closed: there will
// be none any more.
func (e *Endpoint) stopServing() {
	e.serving.Lock()
	defer e.serving.Unlock()
	clear(e.desks)
}

// answerAll answers what src has asked this rank.
func (e *Endpoint) answerAll(src int) int {
	// A question that is open when this rank leaves the job gets no answer, or all of it.
	e.serving.Lock()
	defer e.serving.Unlock()
	if e.closed.Load() {
		return 0
	}
	d := e.desks[e.j.place(src)]
	if d == nil {
		off := atomic.LoadUint64((*uint64)(unsafe.Add(e.j.registry(src), regDesk)))
		if d = e.j.mapOld(off, deskBytes, true); d == nil {
			e.Fail(fmt.Errorf("rank %d asks rank %d for memory by a desk at %#x, which cannot be mapped", src, e.rank, off))
			return 0
		}
		e.desks[e.j.place(src)] = d
	}
	n := 0
	for i := range deskPlaces {
		p := unsafe.Add(d, i*deskLine)
		state := (*uint32)(unsafe.Add(p, askState))
		if atomic.LoadUint32(state) != askPosted || atomic.LoadUint32((*uint32)(unsafe.Add(p, askDst))) != uint32(e.here) ||
			!atomic.CompareAndSwapUint32(state, askPosted, askBusy) {
			continue
		}
		page, have := e.answer(src, p, unsafe.Slice((*byte)(unsafe.Add(d, deskRooms+i*deskRoom)), deskRoom))
		*(*uint64)(unsafe.Add(p, askPage)) = page
		*(*uint64)(unsafe.Add(p, askHave)) = uint64(have)
		atomic.StoreUint32(state, askDone)
		n++
	}
	if n > 0 {
		atomic.AddUint32(e.j.c32(src, ctlOpenSeq), 1)
		e.Wake(src)
	}
	return n
}

// answer does what src asks for at p, with room for data. It reads everything once
// and believes nothing. If it refuses it returns 1 and a page, as one number, and
// the page's entry.
func (e *Endpoint) answer(src int, p unsafe.Pointer, room []byte) (page uint64, have segment.Entry) {
	kind := atomic.LoadUint32((*uint32)(unsafe.Add(p, askKind)))
	opType := atomic.LoadUint32((*uint32)(unsafe.Add(p, askOp)))
	at := segment.NLA(atomic.LoadUint64((*uint64)(unsafe.Add(p, askTo))))
	n := atomic.LoadUint64((*uint64)(unsafe.Add(p, askLen)))
	a := atomic.LoadUint64((*uint64)(unsafe.Add(p, askA)))
	b := atomic.LoadUint64((*uint64)(unsafe.Add(p, askB)))
	op, typ := conduits.AtomicOp(opType), conduits.AtomicType(opType>>8)

	need, sound := segment.RightWrite, n >= 1 && n <= uint64(len(room))
	switch kind {
	case askPut:
	case askGet:
		need = segment.RightRead
	case askWord:
		sound = (n == 1 || n == 2 || n == 4 || n == 8) && uint64(at)%n == 0
	case askAtomic:
		need = segment.RightAtomic
		sound = conduits.CheckAtomic("", op, typ, at) == nil && n == uint64(typ.Size())
	default:
		sound = false
	}
	if !sound {
		return uint64(at)&^(segment.PageSize-1) | 1, 0
	}
	m, u, err := conduits.Access(e.MadeATU(), src, at, n, need)
	if err != nil {
		if f, ok := err.(*segment.FaultError); ok {
			return uint64(f.Page)&^(segment.PageSize-1) | 1, f.Have
		}
		return uint64(at)&^(segment.PageSize-1) | 1, 0
	}
	q := unsafe.Pointer(unsafe.SliceData(m))
	there := segment.Touch(m, func() {
		switch kind {
		case askWord:
			storeWord(q, a, int(n))
		case askAtomic:
			*(*uint64)(unsafe.Add(p, askValue)) = conduits.ApplyAtomic(q, op, typ, a, b)
		default:
			carry(m, room[:n], at, need)
		}
	})
	u.Exit()
	if !there {
		return uint64(at)&^(segment.PageSize-1) | 1, 0
	}
	return 0, 0
}
