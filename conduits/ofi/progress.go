//go:build ofi && cgo

package ofi

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/ofi/internal/fabric"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// Poll hands over what has arrived, and sends what may leave.
func (t *transport) Poll() int {
	t.polls.Add(1)
	if t.closed.Load() || !t.attached.Load() {
		return 0
	}
	t.rx.Lock()
	defer t.rx.Unlock()
	n := t.unhold() + t.progress(true)
	for _, r := range t.leaving {
		// Its frames had all arrived before it left.
		t.owner.Left(r)
		n++
	}
	t.leaving = t.leaving[:0]
	if t.ending { // what ends later, as peers leave, ends with an event
		n += t.report()
	}
	return n
}

// unhold hands over the frames that were held, with rx held.
func (t *transport) unhold() (n int) {
	for !t.held.Empty() {
		h, _ := t.held.Take()
		n += t.deliver(h.src, h.frame)
		t.took(h.src)
	}
	return n
}

// report completes puts and gets that are over.
func (t *transport) report() (n int) {
	for {
		t.mu.Lock()
		c, ok := t.finished.Take()
		t.mu.Unlock()
		if !ok {
			return n
		}
		t.owner.Complete(c.cookie, c.err)
		n++
	}
}

// progress takes what has arrived, serves accesses, and posts what may be posted, with rx
// held. Messages are delivered if this is part of a Poll, and held otherwise. It returns
// how many calls of the owner that were.
//
// What may wait does until answers have left, those of the rank's handlers, too, which run when
// Poll has returned: frames are given back to the provider by the next look, unless many are
// here or the standby poller, which may sleep then, has taken them.
func (t *transport) progress(polled bool) (n int) {
	if t.closed.Load() {
		t.unhold() // no Poll does, and the peers' windows would stay shut
	}
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return 0
	}
	for polled && !t.lefts.Empty() {
		r, _ := t.lefts.Take()
		t.leaving = append(t.leaving, r)
	}
	t.flush()
	t.post()
	t.collect()
	if err := t.Err(); err != nil {
		t.abandon(nil, err)
	}
	if len(t.arrived) > 0 || len(t.replies) > 0 {
		t.mu.Unlock()
		for _, a := range t.arrived {
			n += t.take(a.frame, polled)
		}
		t.answer()
		t.mu.Lock()
	}
	for i, a := range t.arrived {
		t.unposted = append(t.unposted, a.context)
		t.arrived[i].frame = nil
	}
	t.arrived = t.arrived[:0]
	if !polled || len(t.unposted) >= mostUnposted {
		t.post()
	}
	t.tell(!polled)
	t.drain()
	if t.hidden.fresh {
		t.hidden.fresh = false
		t.hide()
	}
	t.ending = !t.finished.Empty()
	wake := !polled && (t.ending || !t.lefts.Empty())
	t.mu.Unlock()
	if wake || !polled && !t.held.Empty() {
		t.Kick()
	}
	return n
}

// collect looks at the completion queue, with rx and mu held.
func (t *transport) collect() {
	t.polled++
	n, err := t.ep.Poll(t.done[:])
	if err != nil {
		t.failSoon(t.rank, err)
	}
	t.events += uint64(n)
	for _, d := range t.done[:n] {
		if d.Context == fabric.NoContext {
			t.stray = t.ep.Explain("fi_inject", d)
			continue
		}
		s := t.slots[d.Context]
		switch {
		case s.rma:
			t.ended(d)
		case s.peer == nil && d.Err == 0:
			t.arrived = append(t.arrived, arrival{d.Context, t.ep.Buffer(d.Context)[:d.Len]})
		case s.peer == nil: // of a connection that has ended, whose frame is free again
			t.unposted = append(t.unposted, d.Context)
		default:
			t.free(d.Context)
			if d.Err != 0 {
				t.lose(s.peer, t.ep.Explain("fi_send", d))
			}
		}
	}
}

// failSoon is Fail for a caller that holds locks.
func (t *transport) failSoon(rank int, err error) {
	if t.Err() == nil {
		go t.Fail(rank, err)
	}
}

// mostUnposted is how many frames to receive into a poll leaves for the next one to post.
const mostUnposted = receives / 4

// post gives the provider frames to receive into, with mu held.
func (t *transport) post() {
	if len(t.unposted) == 0 {
		return
	}
	var ops [receives]fabric.Op
	n := 0
	for _, c := range t.unposted {
		ops[n] = fabric.Op{Kind: fabric.Recv, Context: c, Len: uint64(t.frame)}
		n++
	}
	done, _, err := t.ep.Post(ops[:n])
	if err != nil {
		t.failSoon(t.rank, err)
	}
	t.unposted = append(t.unposted[:0], t.unposted[done:]...)
}

// take does what a frame asks for, with rx held.
func (t *transport) take(b []byte, polled bool) int {
	h, ok := decodeHeader(b)
	if !ok || h.job != t.id || uint(h.src) >= uint(t.size) || int(h.src) == t.rank {
		return 0 // of another job, which had this address before
	}
	t.mu.Lock()
	p := t.peer(int(h.src))
	left := p.left
	hold := h.class == messages && !polled && !t.closed.Load()
	if !left {
		if p.heard == 0 {
			t.hidden.fresh, p.nextCall = true, 0
		}
		p.heard++
		if p.theirs = int64(h.busy) << 20; t.manual && h.busy > 0 {
			t.wary.Store(int64(t.Now() + attentive))
		}
		if h.class != acks {
			ok = p.in[h.class].note(h.seq)
			if len(p.in[h.class].missing) > 0 {
				t.attend()
			}
		}
		ok = ok && t.credit(p, &h)
		if ok && h.class == messages {
			p.arrived++
		}
		if ok && h.class != acks && !hold {
			p.taken[h.class]++ // early by what it takes to deal with it, which is one frame more than the window
		}
	}
	t.mu.Unlock()
	switch {
	case left:
		return 0
	case !ok:
		t.bad(p, b)
		return 0
	}
	rest := b[headerBytes:]
	switch h.class {
	case messages:
		if hold {
			t.held.Add(heldFrame{p, append([]byte(nil), b...)})
			return 0
		}
		return t.deliver(p, b)
	case accesses:
		for len(rest) > 0 && ok {
			rest, ok = t.serve(p, rest)
		}
	case answers:
		for len(rest) > 0 && ok {
			rest, ok = t.answered(p, rest)
		}
	}
	if !ok {
		t.bad(p, b)
	}
	return 0
}

// bad ends the job because of a frame that p should not have sent. The caller holds rx.
func (t *transport) bad(p *peer, b []byte) {
	t.failSoon(p.rank, errs.BadArg("ofi: rank %d has sent rank %d a frame of %d bytes that is wrong: % x", p.rank, t.rank, len(b), b[:min(len(b), headerBytes+recordBytes)]))
}

// credit takes in what p says has been taken there, with mu held; false if that is more
// than was sent.
func (t *transport) credit(p *peer, h *header) bool {
	for c := range p.out {
		o := &p.out[c]
		if n := h.taken[c] - o.acked; n != 0 && n <= o.sent-o.acked {
			o.acked = h.taken[c]
			p.askAt, p.askGap = 0, 0
			if !o.ready.Empty() || p.refused { // else nothing has waited for it
				p.credited = true
				t.makeDue(p)
			}
		} else if n != 0 && int32(n) > 0 {
			return false
		}
	}
	if n := h.here - p.here; n <= p.out[messages].sent-p.here {
		if n > 0 {
			p.askAt, p.askGap = 0, 0
		}
		p.here = h.here
	} else if int32(n) > 0 {
		return false
	}
	p.wantsAck = p.wantsAck || h.flags&wantAck != 0
	t.owe(p)
	return true
}

// owe has tell look at p, with mu held.
func (t *transport) owe(p *peer) {
	if !p.inOwed {
		p.inOwed = true
		t.owed = append(t.owed, p)
	}
}

// took counts a frame of p that was held and is dealt with.
func (t *transport) took(p *peer) {
	t.mu.Lock()
	p.taken[messages]++
	t.owe(p)
	t.mu.Unlock()
}

// deliver hands over the messages of a frame, with rx held.
func (t *transport) deliver(p *peer, b []byte) (n int) {
	rest, closed := b[headerBytes:], t.closed.Load()
	for len(rest) > 0 {
		words, payload, more, ok := message(rest, &t.words, t.medium)
		if !ok {
			t.bad(p, b)
			break
		}
		if !closed {
			t.owner.Deliver(p.rank, words, payload)
			n++
		}
		rest = more
	}
	return n
}

// serve does the access that rest begins with, with rx held.
func (t *transport) serve(p *peer, rest []byte) (more []byte, ok bool) {
	r, data, more, ok := decodeRecord(rest, accesses)
	if !ok {
		return nil, false
	}
	switch r.kind {
	case kindPut:
		err := t.owner.Access(p.rank, segment.NLA(r.addr), uint64(len(data)), segment.RightWrite, func(mem []byte) { bulk.Copy(mem, data) })
		t.reply(p, outcome(r.op, err))
		t.Kick() // the rank may wait for what has been written
	case kindGet, kindCheck:
		n, need := uint64(r.high)<<32|uint64(r.length), segment.RightRead
		if r.kind == kindCheck && r.code != codeGet {
			need = segment.RightWrite
		}
		err := t.owner.Access(p.rank, segment.NLA(r.addr), n, need, func([]byte) {})
		if err != nil || r.kind == kindCheck {
			o := outcome(r.op, err)
			if err == nil {
				t.grant(p, &o, segment.NLA(r.addr), n, need)
			}
			o.high = r.length // unless it is a check
			t.reply(p, o)
			break
		}
		t.reply(p, reply{record: record{kind: kindGot, op: r.op}, at: segment.NLA(r.addr), remain: uint64(r.length)})
	case kindFlush:
		t.Kick() // as of kindTouched
		t.reply(p, reply{record: record{kind: kindFlushed, op: r.op}})
	case kindRecall:
		t.yieldKey(p, r.addr, r.op)
	default:
		t.Kick()
	}
	return more, true
}

// outcome is the answer to an access that has ended with err.
func outcome(op uint32, err error) reply {
	r := reply{record: record{kind: kindDone, op: op}}
	var fault *segment.FaultError
	switch {
	case err == nil:
	case errors.As(err, &fault):
		r.code, r.length, r.addr, r.entry = codeFault, 8, uint64(fault.Page), uint64(fault.Have.Disclosed())
	default:
		r.code = codeClosed
	}
	return r
}

// reply has p be answered, with rx held.
func (t *transport) reply(p *peer, r reply) {
	p.replies.Add(r)
	if !p.inReplies {
		p.inReplies = true
		t.replies = append(t.replies, p)
	}
}

// answer sends answers as far as there is room, with rx held. When the job has failed there are none: an
// access to a rank that has closed because of that would tell its initiator, before the failure does, that
// this rank has left.
func (t *transport) answer() {
	if t.Err() != nil {
		for _, p := range t.replies {
			p.replies, p.inReplies = conc.Queue[reply]{}, false
		}
		t.replies = t.replies[:0]
		return
	}
	kept := t.replies[:0]
	for _, p := range t.replies {
		if t.answerPeer(p) {
			p.inReplies = false
		} else {
			kept = append(kept, p)
		}
	}
	t.replies = kept
}

// answerPeer is answer for p, and reports whether all has been sent.
func (t *transport) answerPeer(p *peer) bool {
	for !p.replies.Empty() {
		r := &p.replies.All()[0]
		n := int(r.length)
		if r.kind == kindGot {
			n = int(min(r.remain, uint64(t.most-recordBytes)&^7))
		}
		t.mu.Lock()
		if p.left || p.lost != nil {
			t.mu.Unlock()
			for !p.replies.Empty() {
				p.replies.Take()
			}
			return true
		}
		b := t.room(p, answers, recordBytes+round(n))
		if b != nil && r.kind != kindGot {
			r.encode(b)
			if r.data != nil {
				copy(b[recordBytes:], r.data)
			} else if n > 0 {
				binary.LittleEndian.PutUint64(b[recordBytes:], r.entry)
			}
		}
		p.out[answers].writing = b != nil && r.kind == kindGot
		t.mu.Unlock()
		if b == nil {
			return false
		}
		if r.kind != kindGot || t.answerGet(p, r, b, n) {
			p.replies.Take()
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.left || p.lost != nil {
		return true
	}
	return p.out[answers].used == 0 || t.shut(p, answers)
}

// answerGet writes the next n bytes of a get to b, and reports whether it is answered.
func (t *transport) answerGet(p *peer, r *reply, b []byte, n int) bool {
	unused := 0
	defer func() { t.written(p, unused) }()
	err := t.owner.Access(p.rank, r.at, uint64(n), segment.RightRead, func(mem []byte) { bulk.Copy(b[recordBytes:], mem) })
	if err != nil {
		o := outcome(r.op, err)
		o.high = uint32(r.remain)
		o.encode(b)
		used := recordBytes
		if o.length > 0 {
			binary.LittleEndian.PutUint64(b[recordBytes:], o.entry)
			used += 8
		}
		unused = len(b) - used
		return true
	}
	r.length, r.addr = uint32(n), uint64(r.at)
	r.at += segment.NLA(n)
	r.remain -= uint64(n)
	r.encode(b)
	return r.remain == 0
}

// written ends the writing of answers to p without mu; so many bytes at the end of the
// frame are not used. A frame that drop has left is freed.
func (t *transport) written(p *peer, unused int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := &p.out[answers]
	o.writing = false
	o.used -= unused
	if p.left || p.lost != nil {
		t.free(o.open)
		o.used = 0
	}
}

// answered takes in the answer that rest begins with, with rx held. Answers come in any
// order: a provider reports a short frame before a long one that was sent before it.
func (t *transport) answered(p *peer, rest []byte) (more []byte, ok bool) {
	r, data, more, ok := decodeRecord(rest, answers)
	if !ok {
		return nil, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Err() != nil || p.lost != nil {
		return more, true // the operation is over, or will be
	}
	if r.kind == kindRecalled {
		t.givenUp(p, r.addr)
		return more, true
	}
	if r.kind == kindFlushed {
		return more, t.proven(p, r.op)
	}
	if uint64(r.op) >= uint64(len(t.ops)) || t.ops[r.op].peer != p {
		return nil, false
	}
	op := &t.ops[r.op]
	n := uint64(len(op.mem))
	if r.kind == kindGot {
		off := r.addr - uint64(op.addr)
		if !op.get || off >= n || uint64(len(data)) > n-off {
			return nil, false
		}
		bulk.Copy(op.mem[off:], data)
	} else if op.err == nil {
		op.err = op.refusal(t.rank, &r, data)
	}
	if op.check {
		p.asked--
		if op.check = false; op.err == nil {
			if r.code == codeKey && t.granted(p, data) && t.remote(op, p.rank) {
				t.startRemote(p, r.op)
				return more, true
			}
			p.pending.Add(r.op)
			t.makeDue(p)
			return more, true
		}
		t.finish(r.op, op.err)
		return more, true
	}
	over := false
	if op.get {
		op.got += uint64(r.high)
		if r.kind == kindGot {
			op.got += uint64(len(data))
		}
		if op.got > op.sent {
			return nil, false
		}
		// Requests are answered in turn, so that these have been.
		over = op.got == n
		done := int(op.got / mostGet)
		if over {
			done = op.parts
		}
		p.asked -= done - op.released
		op.released = done
	} else {
		if op.parts--; op.parts < 0 {
			return nil, false
		}
		p.asked--
		over = op.parts == 0 && op.sent == n
	}
	if over {
		t.finish(r.op, op.err)
	}
	if !p.pending.Empty() {
		t.makeDue(p)
	}
	return more, true
}

// refusal is the error that an answer to rank says, or nil.
func (op *operation) refusal(rank int, r *record, data []byte) error {
	switch r.code {
	case codeFault:
		need := segment.RightWrite
		if op.get {
			need = segment.RightRead
		}
		return &segment.FaultError{
			Addr: op.addr, Len: uint64(len(op.mem)), Need: need, VPID: uint16(min(rank, segment.AnyVPID)),
			Page: segment.NLA(r.addr), Have: segment.Entry(binary.LittleEndian.Uint64(data)),
		}
	case codeClosed:
		return conduits.ErrClosed
	}
	return nil
}

// tell sends explicit acknowledgements that no outgoing frame has carried, to peers that may
// need them, with mu held. standing: the rank does not poll.
func (t *transport) tell(standing bool) {
	owed := t.owed
	t.owed = t.owed[:0]
	for _, p := range owed {
		p.inOwed = false
		if p.left || p.lost != nil {
			continue
		}
		due := p.wantsAck || standing && p.arrived != p.toldHere
		for c := range p.taken {
			due = due || p.taken[c]-p.told[c] >= window/2
		}
		if due && !t.ack(p, 0) {
			p.inOwed = true
			t.owed = append(t.owed, p)
		}
	}
	for _, p := range t.due {
		if p.credited {
			p.credited = false
			t.flushCredit(p)
		}
	}
}

// ack sends a frame that is a header alone, with mu held; false if the provider has no
// room now.
func (t *transport) ack(p *peer, flags uint8) bool {
	c, err := t.context()
	if err != nil {
		t.lose(p, err)
		return true
	}
	posted, ok := t.send(p, acks, flags, c, headerBytes)
	if !posted {
		t.free(c)
	}
	return ok
}

// Wait lets the standby poller look after the endpoint until there is an event.
func (t *transport) Wait(until time.Duration) {
	t.mu.Lock()
	if !t.over {
		t.flush()
	}
	t.mu.Unlock()
	t.parked.Add(1)
	defer t.parked.Add(-1)
	t.standby.poke()
	t.Seat.Wait(until)
}

// absence is how long a rank has not polled when the standby poller takes its place.
const absence = time.Millisecond

// The pauses of a standby poller whose provider has no descriptor, one that tells too
// little, or no room now.
const (
	leastPause = 50 * time.Microsecond
	mostPause  = time.Millisecond
	// longest is after which pause a descriptor is taken to tell what comes next.
	longest = 100 * time.Millisecond
	// doubtful is after which pause the poller looks whether its provider has left something
	// in connections: of a peer's puts and gets a rank hears nothing, however many bytes move.
	doubtful = 8 * leastPause
)

// prepare opens what the standby poller sleeps on, with mu held.
func (t *transport) prepare() error {
	s := &t.standby
	if fd := t.ep.FD(); fd >= 0 {
		file, err := sys.Watchable(fd)
		if err != nil {
			return errs.Resource("ofi: the descriptor of the completion queue: %v", err)
		}
		s.file, s.fd = file, fd
		if s.conn, err = file.SyscallConn(); err != nil {
			return err
		}
	}
	t.manual = t.ep.Manual && !(onTCP(t.ep.Provider) && t.hidden.port != 0)
	return nil
}

// stand starts the standby poller.
func (t *transport) stand() {
	t.standby.began.Store(true)
	go t.standBy()
}

// standBy looks after the endpoint while the rank waits, or does not poll.
func (t *transport) standBy() {
	s := &t.standby
	defer close(s.done)
	timer := time.NewTimer(absence)
	for {
		polls := t.polls.Load()
		if t.parked.Load() == 0 && !t.closed.Load() {
			timer.Reset(absence)
			select {
			case <-s.asked:
			case <-s.stop:
			case <-timer.C:
			}
		}
		pause, some := leastPause, false
		for t.polls.Load() == polls || t.parked.Load() > 0 || t.closed.Load() {
			select {
			case <-s.stop:
				return
			default:
			}
			if some = some && t.stay() || t.look(pause); some {
				pause, s.left = leastPause, 0
			} else {
				pause = t.next(pause)
			}
		}
	}
}

// attentive is for how long the standby poller sleeps lightly when a peer has told of accesses to
// this rank, where the provider has to be called for data to move and has no connections that
// can be looked into. It does not always: at a look each millisecond two ranks with nothing to do
// took 0.05 s of a processor a second. So peers tell when they post the first access, and again.
const attentive = 2 * time.Second

// announce tells p of accesses to it, if it may have to call its provider for them, as this rank
// has to, with mu held.
func (t *transport) announce(p *peer) {
	if !t.manual || p.lost != nil {
		return
	}
	lightly, now := t.lightly(), t.Now()
	t.wary.Store(int64(now + attentive))
	if !lightly {
		t.standby.poke()
	}
	if p.announced == 0 || now-p.announced > attentive/2 {
		t.ack(p, 0)
	}
}

// lightly reports whether the standby poller is to sleep lightly.
func (t *transport) lightly() bool { return t.manual && t.Now() < time.Duration(t.wary.Load()) }

// next is the pause after one behind which a look has found nothing. While the provider leaves
// bytes in connections it stays short, until they are fewer.
func (t *transport) next(pause time.Duration) time.Duration {
	s := &t.standby
	if pause >= doubtful && s.file != nil && !s.blind {
		before := s.left
		if s.left = t.unread(); s.left != 0 && s.left != before {
			return leastPause
		}
	}
	if s.left != 0 || t.lightly() {
		return min(2*pause, mostPause)
	}
	return min(2*pause, 2*longest)
}

// staying is how long the standby poller looks again before it sleeps when it has found
// something, or its descriptor has woken it: pieces of a long transfer are tens of microseconds
// apart, and a sleep between them takes as long again. Those that a peer writes and reads are nothing
// that a look finds: sleeping after each made 1 MiB take 290 us in place of 140 on two
// processors.
const staying = 50 * time.Microsecond

// stay looks until there is progress, or for as long as staying, unless ranks of this host
// share processors, and reports whether there was any.
func (t *transport) stay() bool {
	for end := time.Now().Add(staying); t.apart && time.Now().Before(end); runtime.Gosched() {
		if some, _ := t.step(); some {
			return true
		}
	}
	return false
}

// look makes progress, sleeps if there is none, and reports whether there was any, or the descriptor
// has told of some. pause is how long to sleep where the descriptor does not tell all.
//
// The runtime's poller tells of a descriptor when something new has happened to it, and
// never that something is left. The provider net leaves data in its sockets, and a
// descriptor that is readable for ever. So one that is readable is looked at again after
// growing pauses, until there was nothing for so long that nothing can be left. Of a peer's
// remote accesses there is never something: next looks whether bytes are left in connections.
func (t *transport) look(pause time.Duration) (some bool) {
	s := &t.standby
	select {
	case <-s.asked:
	default:
	}
	select {
	case <-s.stop: // it may have been quit that asked, and the deadline that it sets is undone below
		return false
	default:
	}
	if s.file == nil || s.blind {
		if some, _ = t.step(); some {
			return true
		}
		timer := time.NewTimer(min(pause, mostPause))
		defer timer.Stop()
		select {
		case <-s.asked:
		case <-s.stop:
		case <-timer.C:
		}
		return false
	}
	var limit time.Time
	switch {
	case t.stalled():
		limit = time.Now().Add(min(pause, mostPause))
	case s.left != 0 || t.lightly() || pause <= longest && sys.Signalled(s.fd):
		limit = time.Now().Add(pause)
	}
	_ = s.file.SetReadDeadline(limit)
	if len(s.asked) > 0 { // the deadline that poke has set may be undone
		some, _ = t.step()
		return some
	}
	looked, woken := false, false
	err := s.conn.Read(func(uintptr) bool {
		if looked {
			woken = true
			return true
		}
		looked = true
		var sleep bool
		some, sleep = t.step()
		return some || !sleep
	})
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		// Close still waits for what this poller does.
		s.blind = true
		t.failSoon(t.rank, errs.Resource("ofi: waiting for the completion queue: %v", err))
	}
	return some || woken
}

// stalled reports whether there is something to be posted that the provider had no room for.
func (t *transport) stalled() bool {
	t.rx.Lock()
	defer t.rx.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.over && (len(t.due) > 0 || len(t.unposted) > 0 || len(t.owed) > 0 || len(t.replies) > 0)
}

// step makes progress, and reports whether there was some, and whether the descriptor will
// tell of what comes next.
func (t *transport) step() (some, sleep bool) {
	t.rx.Lock()
	defer t.rx.Unlock()
	before := t.events
	t.progress(false)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.events != before, t.over || t.ep.FD() < 0 || t.ep.TryWait()
}
