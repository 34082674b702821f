package engine

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/argon-go/argon/conduits"
)

// Next writes the next datagram to be sent now into b, which has room for
// Config.Datagram bytes, and returns its target and its length; ok is false
// if there is none. Peers take turns; each may have several in a row, so that
// they can be sent together.
func (e *Engine) Next(now time.Duration, b []byte) (dst, n int, ok bool) {
	dst, n, _, ok = e.next(now, b, false)
	return dst, n, ok
}

// NextParts is Next, but leaves out the datagram's end where it can be sent from
// where it lies: the datagram is the first n bytes of b and after them data. The bytes of
// data may change as soon as another method of the engine is called: the peer then takes the
// datagram for a repetition, or is known to be dead.
func (e *Engine) NextParts(now time.Duration, b []byte) (dst, n int, data []byte, ok bool) {
	return e.next(now, b, e.c.Sealer == nil || e.plain)
}

func (e *Engine) next(now time.Duration, b []byte, parts bool) (dst, n int, data []byte, ok bool) {
	e.now = max(e.now, now)
	for p := e.ready; p != nil; p = e.ready {
		if p.row == 0 {
			p.row = e.row
		}
		ok := e.canSend(p)
		if ok {
			n, data = e.emit(p, b, parts)
			p.row--
		}
		if !ok || p.row == 0 {
			e.ready = p.next
			p.queued, p.next, p.row = false, nil, 0
			if ok {
				e.enlist(p)
			}
		}
		e.later(p)
		if ok && n > 0 { // else it is lost at once
			e.stats.Sent++
			return p.number, n, data, true
		}
	}
	return 0, 0, nil, false
}

// updateTimers brings the timers up to date of the peer that later was called for.
func (e *Engine) updateTimers() {
	if p := e.stale; p != nil {
		e.stale = nil
		e.retime(p)
	}
}

// Ready reports whether Next may find something.
func (e *Engine) Ready() bool { return e.ready != nil }

// Time tells the engine the time: operations that follow take place then.
func (e *Engine) Time(now time.Duration) { e.now = max(e.now, now) }

// Held reports whether there are small messages that wait for company. They are sent
// at their Deadline at the latest, by Advance and Next.
func (e *Engine) Held() bool {
	for n := len(e.waits); n > 0; n-- {
		p := e.waits[n-1]
		if !p.dead && !(p.flows[0].small.empty() && p.flows[1].small.empty()) {
			return true
		}
		e.waits[n-1], e.waits = nil, e.waits[:n-1]
		p.waits = false
	}
	return false
}

// Push lets small messages wait no longer: the caller waits for what they bring
// about.
func (e *Engine) Push() {
	for i, p := range e.waits {
		e.waits[i] = nil
		p.waits = false
		if !p.dead && !(p.flows[0].small.empty() && p.flows[1].small.empty()) {
			p.push = true
			e.touch(p)
		}
	}
	e.waits = e.waits[:0]
}

// leastPart is the least that is worth to be left out of a datagram.
const leastPart = 4096

// emit writes a datagram for p; n is 0 if it is lost already.
func (e *Engine) emit(p *peer, b []byte, parts bool) (n int, data []byte) {
	var k *pkt
	class := 0
	sound, short := e.sounding(p), false
	for range conduits.NumClasses {
		f := &p.flows[p.turn]
		class = p.turn
		if !sound && e.sendable(p, f) {
			k = e.pick(p, f)
			if p.run++; p.run%8 == 0 {
				p.turn = 1 - p.turn
			}
			break
		}
		p.turn = 1 - p.turn
	}
	if k == nil && !sound && p.mtu.ask {
		sound, short = true, true
	}
	flags := byte(0)
	words := min(ackWords, p.room/8)
	if k != nil {
		p.ask(k)
		words = min(dataWords, (p.room-len(k.frames)-len(k.data))/8)
		flags = flagData | byte(class)
		if k.now || k.tries > 0 {
			flags |= flagNow
		}
		if k.whole != nil {
			flags |= flagPiece
		}
	} else if sound {
		flags, words = flagSound, min(words, dataWords)
	} else {
		e.stats.Acks++
	}
	if p.asking {
		flags |= flagAsk
	}
	le := binary.LittleEndian
	whole := b
	b = b[e.head:][:headerBytes]
	clear(b[:headerBytes])
	b[0] = magic
	le.PutUint32(b[8:], uint32(e.c.Rank))
	le.PutUint32(b[12:], e.c.Epoch)
	le.PutUint32(b[16:], p.epoch)
	if k != nil {
		le.PutUint32(b[24:], uint32(k.seq))
	}
	if k != nil || sound {
		le.PutUint32(b[20:], uint32(p.pn))
	}
	for c := range p.flows {
		f := &p.flows[c]
		cum := f.cum
		if f.hidden > 0 {
			cum = f.shown
		}
		le.PutUint32(b[32+4*c:], uint32(cum))
		le.PutUint32(b[40+4*c:], f.taken)
		f.told = f.taken
	}
	told := true
	b[3] = tooLate
	if p.flows[conduits.Request].hidden > 0 {
		le.PutUint32(b[28:], uint32(p.veiled))
	} else {
		le.PutUint32(b[28:], uint32(p.top))
		if p.told != p.top {
			p.told = p.top
			b[3] = delayCode(e.now - p.topAt)
		}
		n := 0
		b, n, told = p.appendWords(b, words, p.unsaid)
		b[2] = byte(n)
	}
	b[1] = flags
	p.unsaid = 0
	p.asking = false
	if told {
		p.mtu.told = false
	}
	if told || k == nil {
		p.ackNow, p.ackOwed = p.mtu.ask && k != nil, false
	}
	if sound {
		b = e.sound(p, b, short)
	}
	if k != nil {
		if data = k.data; len(data) == 0 {
			data = k.frames
		} else {
			b = append(b, k.frames...)
		}
		// A retransmission goes by a copy, so that its checksum is right even if the
		// program never stops writing there; frames always do, since their memory is
		// used again as soon as an earlier transmission is acknowledged.
		if !parts || len(data) < leastPart || k.tries > 0 && (e.c.Sealer == nil || len(k.data) == 0) {
			b = append(b, data...)
			data = nil
		}
		e.transmitted(p, &p.flows[class], k, len(b)+len(data)+e.head+e.trail)
	}
	e.watch(p)
	if e.c.Sealer != nil {
		n := e.head + len(b) + e.trail
		if !e.c.Sealer.Seal(p.number, whole[:n]) {
			return 0, nil
		}
		return n, data
	}
	le.PutUint32(b[4:], checksum(b, data))
	return len(b), data
}

// touch brings p's place in the ready list and among the timers up to date.
func (e *Engine) touch(p *peer) {
	e.enlist(p)
	e.later(p)
}

// later has p's place among the timers brought up to date before they are looked at: an
// answer need not wait for it. If messages wait for company it is done now, since Held goes
// by it.
func (e *Engine) later(p *peer) {
	if !p.queued && !(p.flows[0].small.empty() && p.flows[1].small.empty()) {
		e.retime(p)
	} else if e.stale != p {
		e.updateTimers()
		e.stale = p
	}
}

// enlist puts p into the ready list if there is a reason to send it something.
func (e *Engine) enlist(p *peer) {
	if p.queued || !e.canSend(p) {
		return
	}
	p.queued = true
	if e.ready == nil {
		e.ready = p
	} else {
		e.last.next = p
	}
	e.last = p
}

// more is called after an operation has added contents to f of p. The timers of a
// peer in the ready list are looked at when it leaves it, and not here as well: the engines
// of both ranks take 1.3 us for a short round trip, and took 1.5.
func (e *Engine) more(p *peer, f *flow) {
	e.enlist(p)
	if !p.queued || !p.waits && !f.small.empty() && e.held(p, f) {
		e.retime(p)
	}
}

// retime brings p's place among the timers up to date.
func (e *Engine) retime(p *peer) {
	const never = math.MaxInt64
	at := time.Duration(never)
	if !p.dead {
		if t, ok := e.alarm(p); ok {
			at = e.judged(t)
		}
		if t, ok := e.soundAlarm(p); ok {
			at = min(at, e.judged(t))
		}
		if e.now < p.openAt && !p.queued && (e.wants(p, &p.flows[0]) || e.wants(p, &p.flows[1])) {
			at = min(at, p.openAt)
		}
		for c := range p.flows {
			f := &p.flows[c]
			if !f.small.empty() && e.held(p, f) {
				at = min(at, f.smallAt+e.c.Hold)
				if !p.waits {
					p.waits = true
					e.waits = append(e.waits, p)
				}
			}
		}
		if p.ackOwed && !p.ackNow {
			at = min(at, p.ackAt)
		}
		if t, ok := e.silenceAt(p); ok {
			at = min(at, t)
		}
	}
	e.schedule(p, at, at != never)
}

// judged returns when an event due at t can be decided: a little later than t if not all
// datagrams that had come by then have been received.
func (e *Engine) judged(t time.Duration) time.Duration {
	if t <= e.now && t > e.drained {
		return e.now + e.c.Granularity
	}
	return t
}

// Deadline is when Advance has something to do even if nothing arrives; ok is
// false if that is never.
func (e *Engine) Deadline() (t time.Duration, ok bool) {
	e.updateTimers()
	if len(e.timers) == 0 {
		return 0, false
	}
	return e.timers[0].deadline, true
}

// Advance does what is due: it may bring completions and deaths, and make Next
// send. What has arrived by now has been given to Receive before, or peers would be
// declared dead that have answered.
func (e *Engine) Advance(now time.Duration) { e.AdvanceTo(now, now) }

// AdvanceTo is Advance for a caller that knows only of an earlier time, drained,
// that all that had arrived by then has been given to Receive: a peer's silence
// after it does not count, and what is under way is neither lost by time nor probed
// for, since the acknowledgement may have come.
func (e *Engine) AdvanceTo(now, drained time.Duration) {
	e.updateTimers() // before what is due now can seem to have been overlooked; see judged
	e.now = max(e.now, now)
	e.drained = max(e.drained, drained)
	e.look(drained)
	for len(e.timers) > 0 && e.timers[0].deadline <= e.now {
		p := e.timers[0]
		if e.silent(p) || e.tooNarrow(p) {
			e.silenced(p)
			continue
		}
		if t, ok := e.alarm(p); ok && t <= min(e.now, e.drained) {
			e.timeout(p)
		}
		e.unheard(p)
		if p.ackOwed && p.ackAt <= e.now {
			p.ackNow = true
		}
		e.enlist(p)
		e.retime(p)
	}
}

// schedule gives p its place in the heap of timers.
func (e *Engine) schedule(p *peer, at time.Duration, ok bool) {
	switch {
	case !ok && p.timer < 0, ok && p.timer >= 0 && p.deadline == at:
		return
	case !ok:
		i := p.timer
		p.timer = -1
		n := len(e.timers) - 1
		moved := e.timers[n]
		e.timers[n] = nil
		e.timers = e.timers[:n]
		if i < n {
			e.timers[i], moved.timer = moved, i
			e.sift(i)
		}
		return
	case p.timer < 0:
		p.timer = len(e.timers)
		e.timers = append(e.timers, p)
	}
	p.deadline = at
	e.sift(p.timer)
}

// sift moves the timer at i up or down to its place.
func (e *Engine) sift(i int) {
	h := e.timers
	swap := func(j int) {
		h[i], h[j] = h[j], h[i]
		h[i].timer, h[j].timer = i, j
		i = j
	}
	for i > 0 && h[i].deadline < h[(i-1)/2].deadline {
		swap((i - 1) / 2)
	}
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h[c+1].deadline < h[c].deadline {
			c++
		}
		if h[i].deadline <= h[c].deadline {
			return
		}
		swap(c)
	}
}
