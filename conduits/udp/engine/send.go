package engine

import (
	"encoding/binary"
	"time"

	"github.com/argon-go/argon/conduits"
)

// Next writes the next datagram to be sent now into b, which has room for
// Config.Datagram bytes, and returns for whom it is and its length; ok is false
// if there is none. Peers take turns.
func (e *Engine) Next(now time.Duration, b []byte) (dst, n int, ok bool) {
	e.now = max(e.now, now)
	for p := e.ready; p != nil; p = e.ready {
		e.ready = p.next
		p.queued, p.next = false, nil
		if !p.canSend() {
			continue
		}
		n := e.emit(p, b)
		e.touch(p)
		if n == 0 {
			continue // lost at once
		}
		e.stats.Sent++
		return p.rank, n, true
	}
	return 0, 0, false
}

// emit writes a datagram for p.
func (e *Engine) emit(p *peer, b []byte) int {
	var k *pkt
	class := 0
	for range conduits.NumClasses {
		f := &p.flows[p.turn]
		class = p.turn
		p.turn = 1 - p.turn
		if f.sendable() {
			k = e.pick(f)
			break
		}
	}
	flags := byte(0)
	words := len(p.flows[0].bits)
	if k != nil {
		words = sackWords
		flags = flagData | byte(class)
		if k.now {
			flags |= flagNow
		}
	} else {
		e.stats.Acks++
		words = min(words, (e.room+8*2*sackWords)/16)
	}
	if p.ask {
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
		le.PutUint32(b[20:], uint32(k.seq))
	}
	for c := range p.flows {
		f := &p.flows[c]
		if f.refused {
			flags |= flagWant << c
		}
		le.PutUint32(b[24+4*c:], uint32(f.cum))
		le.PutUint32(b[32+4*c:], f.taken)
		f.told, f.unsaid = f.taken, 0
		var n int
		b, n = f.appendSacks(b, words)
		b[2+c] = byte(n)
	}
	b[1] = flags
	p.ackNow, p.ackOwed, p.ask = false, false, false
	if k != nil {
		b = append(b, k.frames...)
		b = append(b, k.data...)
		e.transmitted(p, &p.flows[class], k)
	}
	if p.since < 0 && p.awaiting() {
		p.since = e.now
		p.probes = 0
		p.probeAt = e.now + 2*p.rto(&e.c, 0)
	}
	if e.c.Sealer != nil {
		n := e.head + len(b) + e.c.Sealer.Trailer()
		if !e.c.Sealer.Seal(p.rank, whole[:n]) {
			return 0
		}
		return n
	}
	le.PutUint32(b[4:], checksum(b))
	return len(b)
}

// touch brings p's place in the ready list and among the timers up to date.
func (e *Engine) touch(p *peer) {
	if !p.queued && p.canSend() {
		p.queued = true
		if e.ready == nil {
			e.ready = p
		} else {
			e.last.next = p
		}
		e.last = p
	}
	at, ok := time.Duration(0), false
	sooner := func(t time.Duration) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	if !p.dead {
		for c := range p.flows {
			if f := &p.flows[c]; f.air.first != nil {
				sooner(f.rtoAt)
			}
		}
		if p.ackOwed && !p.ackNow {
			sooner(p.ackAt)
		}
		if p.since >= 0 {
			if p.awaiting() {
				sooner(p.since + e.c.DeadTime)
				if p.probing() {
					sooner(p.probeAt)
				}
			} else {
				p.since = -1
			}
		}
	}
	e.schedule(p, at, ok)
}

// probing says whether something is awaited that no datagram under way would
// bring a sign of life for.
func (p *peer) probing() bool {
	if p.flows[0].una != p.flows[0].next || p.flows[1].una != p.flows[1].next {
		return false
	}
	return p.ops > 0 || p.flows[0].refused || p.flows[1].refused
}

// Deadline is when Advance has something to do even if nothing arrives; ok is
// false if that is never.
func (e *Engine) Deadline() (t time.Duration, ok bool) {
	if len(e.timers) == 0 {
		return 0, false
	}
	return e.timers[0].deadline, true
}

// Advance does what is due: it may bring completions and deaths, and make Next
// send. What has arrived is given to Receive before, or peers would be declared
// dead that have answered.
func (e *Engine) Advance(now time.Duration) {
	e.now = max(e.now, now)
	for len(e.timers) > 0 && e.timers[0].deadline <= e.now {
		p := e.timers[0]
		if p.since >= 0 && p.since+e.c.DeadTime <= e.now && p.awaiting() {
			e.kill(p)
			continue
		}
		for c := range p.flows {
			if f := &p.flows[c]; f.air.first != nil && f.rtoAt <= e.now {
				e.timeout(f)
			}
		}
		if p.ackOwed && p.ackAt <= e.now {
			p.ackNow = true
		}
		if p.since >= 0 && p.probing() && p.probeAt <= e.now {
			p.probes++
			p.probeAt = e.now + p.rto(&e.c, p.probes)
			p.ask, p.ackNow = true, true
		}
		e.touch(p)
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
