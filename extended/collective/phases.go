package collective

import "github.com/argon-go/argon/am"

// Phases is the barrier of a job whose ranks make collective calls and pass barriers in
// one order, by one goroutine of each rank at a time, as package gas asks of programs;
// *barrier.Barrier is one.
type Phases interface {
	// Waiting is the phase that this rank waits for; ok is false if it waits for none.
	Waiting() (phase uint32, ok bool)
	// Behind reports whether this rank has not come to phase yet.
	Behind(phase uint32) bool
}

// Two ranks wait for each other for ever if one is in a barrier that the other has not come
// to, and that one in a call which the first has not made. The rank in the barrier sees that
// the other waits for it in a later call, and asks whether it is behind in barriers: it alone
// knows. If it is, the calls do not match.

// AtBarrier is called by the goroutine that is about to wait for a barrier's phase, when
// Config.Phases says that it is: it asks the ranks that wait for this one in a later call. The error is
// that of the job's failure.
func (c *Member) AtBarrier(phase uint32) error {
	c.mu.Lock()
	var asked []note
	if c.broken == nil && int32(c.ahead-c.seq) > 0 {
		for _, l := range c.links {
			for _, w := range [...]*note{&l.wanted, &l.offered} {
				if w.set && int32(w.seq-c.seq) > 0 && w.kind&kindNB == 0 {
					asked = append(asked, *w)
				}
			}
		}
	}
	c.mu.Unlock()
	for i := range asked {
		f := c.atPhase(&asked[i], phase)
		if err := c.e.RequestShort(int(asked[i].src), handlerAbort, f[:]...); err != nil {
			return err
		}
	}
	return nil
}

// ask asks the rank of w, of which this one waits in a barrier's phase.
func (c *Member) ask(t *am.Token, w *note, phase uint32) {
	f := c.atPhase(w, phase)
	// If the reply fails, so has the job, and the other rank learns of that.
	_ = t.ReplyShort(handlerWrong, f[:]...)
}

// atPhase asks the rank of w, which is not in flight, in words that travel.
func (c *Member) atPhase(w *note, phase uint32) [faultWords]uint32 {
	f := fault{
		seq: w.seq, a: uint32(c.rank), callA: call{form: form{kind: kindPhase}, size: uint64(phase)},
		b: w.src, callB: w.call(),
	}.words()
	f[faultTell] |= 1 << 16
	return f
}

// stands reports whether f, which this rank is told, is a mismatch: if it asks this
// rank, then only this one knows. Called with mu held.
func (c *Member) stands(f *fault) bool {
	if f.callA.kind != kindPhase || f.b != uint32(c.rank) || c.team != nil {
		return true
	}
	if c.phases == nil || !c.active || !c.phases.Behind(uint32(f.callA.size)) {
		return false
	}
	if c.shared != nil && c.shared.now.g != nil {
		// It may wait at the slots for all to come to the call before.
		if seq, d := c.shared.now.called(); seq == f.seq && d == f.callB {
			return true
		}
	}
	return c.seq == f.seq && c.call == f.callB
}
