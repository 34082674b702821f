package engine

import "fmt"

// Running says whether the last datagram is taken for the beginning of a run.
func (e *Engine) Running() bool { return e.run.p != nil }

// Forget has the next datagram taken for one that follows nothing.
func (e *Engine) Forget() { e.run = run{} }

// State is what datagrams of rank change.
func (e *Engine) State(rank int) string {
	p := e.peers[rank]
	if p == nil {
		return "none"
	}
	s := fmt.Sprint(p.epoch, p.dead, p.queued, p.since, p.probeAt, p.probes, p.ask, p.ackNow, p.ackOwed, p.ackAt)
	for c := range p.flows {
		f := &p.flows[c]
		s += fmt.Sprint("; ", f.una, f.next, f.consumed, f.arrived, f.taken, f.cum, f.top, f.bits, f.unsaid, f.hidden, f.shown, f.waiting, len(f.parts))
	}
	return s
}
