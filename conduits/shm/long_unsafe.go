package shm

import (
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/segment"
)

// longCopy is from how many bytes on a copy may take as long as an audit, in bad times.
const longCopy = 1 << 20

// sendLong copies data straight into dst's segment, if it is to go there.
//
// Data of up to 16 bytes that travel beside the status, for the receiver to put, were
// not faster: two ranks of a process that take turns with 8 bytes and read them need 494
// to 516 ns in place of 466 to 467, medians of nine, far.
func (e *Endpoint) sendLong(dst int, c conduits.Class, tag conduits.Tag, words []uint32, to segment.NLA, data []byte) conduits.Status {
	if e.closed.Load() {
		return conduits.Dead // the memory may be gone, see Release
	}
	n := uint64(len(data))
	v := &e.views[dst-e.mailbox.first]
	b, ok := v.Bytes(to, n, v.Write)
	if !ok && n > 0 || n > mostDirect || to >= 1<<directShift {
		return conduits.Apart
	}
	r := e.ring(dst, c)
	if len(words) > conduits.MaxWords {
		e.payloadKind(len(words), 0) // panics
	}
	if c == conduits.Reply {
		if r.requests != nil {
			r.align()
		}
	} else if r.strands.Load() != nil || !conc.Enter(&r.lock) {
		r = e.lockRing(r)
	}
	t := r.tail
	if t >= r.limit && !r.room() {
		return e.fullFor(r, c)
	}
	r.tail = t + 1
	r.payload += n
	if c == conduits.Request {
		r.lock.Unlock()
	}
	p := r.cell(t)
	bits := uint64(tag)&stTagMask | uint64(len(words))<<stWordsShift | kindLong<<stKindShift | stDirect
	if n > 0 && unsafe.SliceData(b) != unsafe.SliceData(data) { // else filled in place
		if n > longCopy {
			r.open.Add(1)
			bulk.Copy(b, data)
			r.open.Add(-1)
		} else {
			bulk.Copy(b, data)
		}
	}
	body, far := r.body(p, headBytes, 4*len(words))
	if len(words) > 0 {
		copy(unsafe.Slice((*uint32)(body), len(words)), words)
	}
	*head(p) = directly(to, n)
	conc.Release64((*uint64)(p), status(t, bits|far))
	if e.fence {
		e.spare.Add(1)
	}
	if atomic.LoadUint32(r.parked) != 0 {
		e.wake(dst)
	}
	return conduits.Ready
}

// ReservePut claims the cell and copies data straight into dst's segment.
func (e *Endpoint) ReservePut(dst int, c conduits.Class, words int, to segment.NLA, data []byte, cookie uint64) (conduits.Slot, conduits.Event, conduits.Status) {
	e.payloadKind(words, 0) // checks words
	if e.closed.Load() {
		return conduits.Slot{}, 0, conduits.Dead // the memory may be gone, see Release
	}
	v := &e.views[dst-e.first]
	b, ok := v.Bytes(to, uint64(len(data)), v.Write)
	far := !ok && len(data) > 0
	if far && !conduits.Registered(e.SegmentSize(dst), to, uint64(len(data))) {
		panic("shm: put to an address that was not checked")
	}
	r := e.lockFor(e.ring(dst, c), c)
	t, _, ok := r.claim(kindLong, uint64(len(data)))
	if !ok {
		return conduits.Slot{}, 0, e.full(r)
	}
	r.open.Add(1)
	r.lock.Unlock()
	if len(data) > 0 && !far && unsafe.SliceData(b) != unsafe.SliceData(data) { // else filled in place
		bulk.Copy(b, data)
	}
	body := unsafe.Add(r.cell(t), r.far)
	*(*uint64)(body) = uint64(to)
	*(*uint64)(unsafe.Add(body, 8)) = uint64(len(data))
	if far {
		*(*uint64)(unsafe.Add(body, 16)) = e.registrations(dst) // before the data is put: see longAt
	}
	s := conduits.Slot{
		Words: unsafe.Slice((*uint32)(unsafe.Add(body, wordsAt[kindLong])), words),
		Ref:   t&refIndex | uint64(r.strand)<<refStrandShift | kindLong<<refKindShift,
	}
	if !far {
		return s, done, conduits.Ready
	}
	ask, err := e.transfer(dst, to, data, segment.RightWrite, false)
	if ask {
		ev, ok := e.askLong(dst, c, &s, to, data, cookie)
		if !ok {
			e.Cancel(dst, c, s)
			return conduits.Slot{}, 0, conduits.NoCredit
		}
		return s, ev, conduits.Ready
	}
	if err != nil {
		e.faults.Add(1)
		s.Ref |= refRefused
	}
	return s, done, conduits.Ready
}

// Commit publishes a reserved message by its status word.
func (e *Endpoint) Commit(dst int, c conduits.Class, s conduits.Slot, tag conduits.Tag, payload int) {
	if s.Ref&(refRefused|refAsked) != 0 {
		if s.Ref&refAsked != 0 {
			e.commitLong(s, tag)
		} else {
			e.Cancel(dst, c, s)
		}
		return
	}
	e.publish(dst, c, s, payload, uint64(tag)&stTagMask|uint64(len(s.Words))<<stWordsShift)
}

// Cancel publishes a message that delivers nothing.
func (e *Endpoint) Cancel(dst int, c conduits.Class, s conduits.Slot) {
	if s.Ref&refAsked != 0 {
		e.cancelLong(s)
	}
	r := e.ring(dst, c).of(s)
	r.lock.Lock()
	r.cancelled++
	r.lock.Unlock()
	if s.Ref>>refKindShift&stKindMask == kindLong {
		// As ReservePut wrote it; but others may write there, too.
		r.back.Add(min(*(*uint64)(unsafe.Add(r.cell(s.Ref&refIndex), r.far+8)), uint64(segment.NLALimit)))
	}
	e.publish(dst, c, s, 0, stSkip)
}

// advance takes answers, posts what has waited, and reports what has ended, of all lanes.
// The caller polls.
func (e *Endpoint) advance() int {
	d := &e.desk
	if d.open.Load() == 0 {
		return 0
	}
	n := 0
	d.mu.Lock()
	d.collect()
	d.post()
	for len(d.done) > 0 {
		x := d.done[len(d.done)-1]
		d.done = d.done[:len(d.done)-1]
		d.open.Add(-1)
		q := *x
		if x.finished = true; !x.long || x.committed {
			d.recycle(x)
		}
		d.mu.Unlock()
		q.of.report(&q)
		n++
		d.mu.Lock()
	}
	d.mu.Unlock()
	return n
}

// report tells what has become of q.
func (e *Endpoint) report(q *question) {
	if q.err != nil && (q.long || q.Want&conduits.RemoteDone == 0) {
		e.faults.Add(1) // no completion tells of it
	}
	if q.long {
		if q.committed {
			e.publishLong(q)
		}
		q.err = nil
	}
	if q.Want != 0 {
		err := q.err
		if q.Want&conduits.RemoteDone == 0 {
			err = nil
		}
		e.receiver.Complete(q.Cookie, q.Want, q.Value, err)
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
	put := conduits.Access{Verb: conduits.Put, Rank: dst, At: to, Mem: data, Want: conduits.SourceDone, Cookie: cookie}
	x, err := d.askLocked(question{Access: put, of: e, long: true, class: c, index: i})
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
// perhaps being put still. It reports whether that is all.
func (e *Endpoint) commitLong(s conduits.Slot, tag conduits.Tag) {
	d := &e.desk
	d.mu.Lock()
	x := d.long[s.Ref>>refLineShift&refLineMask]
	x.committed, x.tag, x.slot = true, tag, s
	q := *x
	if x.finished {
		d.recycle(x)
	}
	d.mu.Unlock()
	if q.finished {
		e.publishLong(&q)
	}
}

// cancelLong remembers that no sender will commit a long message.
func (e *Endpoint) cancelLong(s conduits.Slot) {
	d := &e.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.long[s.Ref>>refLineShift&refLineMask]
	if x.finished {
		d.recycle(x)
		return
	}
	d.long[x.index] = nil
	x.long = false
}

// publishLong sends a long message whose data has been put, or nothing, if it has
// been refused.
func (e *Endpoint) publishLong(q *question) {
	s := q.slot
	s.Ref = s.Ref&refPlace | kindLong<<refKindShift
	if q.err != nil {
		e.Cancel(q.Rank, q.class, s)
		return
	}
	e.Commit(q.Rank, q.class, s, q.tag, 0)
}
