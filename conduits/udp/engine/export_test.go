package engine

import (
	"fmt"
	"time"
)

// Running reports whether the last datagram is taken for the beginning of a run.
func (e *Engine) Running() bool { return e.run.p != nil }

// StartAt has all numbers begin with n, on all ranks, before there is contact.
func (e *Engine) StartAt(n uint64) { e.first = n }

// Forget has the next datagram taken for one that follows nothing.
func (e *Engine) Forget() { e.run = run{} }

// State has the fields that datagrams of rank change.
func (e *Engine) State(rank int) string {
	p := e.peers[rank]
	if p == nil {
		return "none"
	}
	s := fmt.Sprint(p.epoch, p.dead, p.queued, p.silence, p.asking, p.ackNow, p.ackOwed, p.ackAt, p.unsaid, p.top, p.topAt, p.told, p.whole, p.veiled, p.had)
	for c := range p.flows {
		f := &p.flows[c]
		s += fmt.Sprint("; ", f.una, f.next, f.consumed, f.arrived, f.taken, f.cum, f.top, f.bits, f.hidden, f.shown, f.waiting, len(f.parts))
	}
	return s
}

// PathState has the figures of an engine for the way to a peer.
type PathState struct {
	SRTT, RTTVar, Latest, Least, PTO time.Duration
	Cwnd, Slow                       float64
	InFlight, Overtake               int
	Number                           uint64 // the next packet number
	Expired                          uint
}

// Path is that for rank.
func (e *Engine) Path(rank int) PathState {
	p := e.peer(rank)
	return PathState{p.srtt, p.rttvar, p.latest, p.least, e.pto(p), p.cwnd, p.slow, p.inFlight, p.overtake, p.pn, p.expired}
}

// ProbeTime is how long a probe of rank waits for its answer.
func (e *Engine) ProbeTime(rank int) time.Duration { return e.probeTime(e.peer(rank)) }

// Told is the delay that an acknowledgement which waited for d carries.
func Told(d time.Duration) time.Duration { return delayOf(delayCode(d)) }
