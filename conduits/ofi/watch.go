//go:build ofi && cgo

package ofi

import (
	"fmt"
	"time"

	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/sys/awake"
)

const (
	// defaultDeadTime is how long a peer may be silent that something is awaited from,
	// unless ARGON_DEADTIME says more or less.
	defaultDeadTime = 10 * time.Second
	leastDeadTime   = 500 * time.Millisecond
	// lossTime is how long a frame may be on its way to a peer, or behind one that was
	// sent after it, while the peer answers. A provider may have a long frame overtaken by
	// short ones; a connection that breaks and is made again loses frames that were
	// injected, without a word.
	lossTime = 10 * time.Second
	// lossAnswers is from how many frames of the peer in that time this is known.
	lossAnswers = 3
	// looks is how many looks the watch takes in the shorter of the two times, and
	// probeLooks after how many without a frame of a peer it is asked for one.
	looks      = 40
	probeLooks = 3
	// connecting is how much longer than the dead time a peer may be silent that has not
	// been heard from yet. TCP sends the first packet of a connection again after 1 s and
	// 3 s (RFC 6298), where later ones take 0.2 s: two that are lost must not look like a
	// peer that is dead.
	connecting = 3 * time.Second
	// keeping is how many loss times a provider may have accesses to a peer that answers without
	// ending one.
	keeping = 3
	// slowest is the rate of remote accesses, bytes a second, behind which frames may have
	// to wait: that long a peer may be silent beside the dead time, and
	// an access take beside keeping.
	slowest = 8 << 20
)

// unheardOf is the dead time of jobs whose ranks share a process.
const unheardOf = 24 * time.Hour

// inbox is which frames of a class a peer's have arrived.
type inbox struct {
	next    uint32   // number of the first that has not, if none is missing
	missing []uint32 // numbers below next, ascending; at most window
}

// note takes in that a frame has arrived; false if it cannot have been sent.
func (i *inbox) note(seq uint32) bool {
	ahead := seq - i.next
	switch {
	case int32(ahead) < 0:
		for k, m := range i.missing {
			if m == seq {
				i.missing = append(i.missing[:k], i.missing[k+1:]...)
				return true
			}
		}
		return false
	case int(ahead)+len(i.missing) >= window:
		return false
	}
	for ; i.next != seq; i.next++ {
		i.missing = append(i.missing, i.next)
	}
	i.next++
	return true
}

// watch is the state of the looks at a peer, while something is awaited from it.
type watch struct {
	heard  uint32 // peer.heard, when silent began
	quiet  int    // looks since
	silent excused

	left *awake.Count // since the peer has left; else nil

	posted uint32 // peer.posted, when full began
	full   *awake.Count

	over uint32 // peer.over, when kept began
	kept excused

	transit  [numClasses]transit // when loss began
	answered [numClasses]uint32  // peer.heard then
	loss     [numClasses]*awake.Count
}

// excused is a count that accesses under way put off by whole limits.
type excused struct {
	*awake.Count
	laps int // limits that have passed
}

// restart begins it anew.
func (e *excused) restart(now time.Duration) {
	e.laps = 0
	e.Restart(now)
}

// look reports whether the limit and excuse have passed, and what has.
func (e *excused) look(now, excuse time.Duration) (passed time.Duration, over bool) {
	if !e.Look(now) {
		return 0, false
	}
	e.laps++
	if passed = time.Duration(e.laps) * e.Limit(); passed >= e.Limit()+excuse {
		return passed, true
	}
	e.Restart(now)
	return passed, false
}

// transit is how far frames of a class between a rank and a peer have got.
type transit struct {
	sent, there uint32
	missing     bool
	first       uint32 // that is missing here
}

// setDeadTime has peers be lost that are silent for so long.
func (t *transport) setDeadTime(dead time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dead = max(dead, leastDeadTime)
	t.tick = min(t.dead, t.lossTime) / looks
}

// attend has the watch look at peers from now on until nothing is awaited from them, with
// mu held.
func (t *transport) attend() {
	if !t.watching && !t.over {
		t.watching = true
		t.watcher.Reset(t.tick)
	}
}

// lookAround is called by the watch's timer.
func (t *transport) lookAround() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watching = false
	if t.over || t.Err() != nil {
		return
	}
	t.hideSome()
	// Time in which this rank did not look at what has arrived is not a peer's silence.
	looked := t.looked != t.polled
	t.looked = t.polled
	now, again := awake.Now(), false
	for _, p := range t.peers {
		switch {
		case p == nil:
		case p.left && p.flying > 0:
			again = t.watchLeft(p, now) || again
		case p.lost == nil && !p.left:
			again = t.watchPeer(p, now, looked) || again
		}
	}
	if again {
		t.attend()
		// One that sleeps until something arrives does not look while nothing does.
		t.standby.poke()
	}
}

// there is how many of the frames of a class p is known to have, with mu held.
func (p *peer) there(c class) uint32 {
	if c == messages {
		return p.here
	}
	return p.out[c].acked
}

// awaited reports whether something is awaited from p, with mu held.
func (t *transport) awaited(p *peer) bool {
	for c := range p.out {
		if len(p.in[c].missing) > 0 {
			return true
		}
	}
	for _, k := range t.own.going {
		if _, ok := k.holders[p]; ok {
			return true
		}
	}
	return t.owes(p) || p.writes.any() || p.asked > 0 || p.flying > 0 || !p.remote.Empty()
}

// watchPeer looks at p, and reports whether it has to be looked at again, with mu held.
func (t *transport) watchPeer(p *peer, now time.Duration, looked bool) bool {
	if !t.awaited(p) {
		p.watch = nil
		return false
	}
	w := p.watch
	if w == nil {
		patience := t.patience(p)
		w = &watch{
			silent: excused{Count: awake.NewCount(patience, 0, now)}, heard: p.heard,
			full: awake.NewCount(patience, 0, now), posted: p.posted,
			kept: excused{Count: awake.NewCount(keeping*t.lossTime, 0, now)},
		}
		for c := range w.loss {
			w.loss[c] = awake.NewCount(t.lossTime, 0, now)
		}
		p.watch = w
	}
	w.quiet++
	excuse := time.Duration((t.flying+p.theirs)/slowest) * time.Second
	if p.heard != w.heard {
		if w.heard == 0 {
			w.silent.Count, w.full = awake.NewCount(t.dead, 0, now), awake.NewCount(t.dead, 0, now)
		}
		w.heard, w.quiet = p.heard, 0
		w.silent.restart(now)
	} else if looked {
		if passed, over := w.silent.look(now, excuse); over {
			t.giveUp(p, fmt.Errorf("ofi: %s: rank %d has %s%s", t.ep.Provider, p.rank, p.silence(passed), w.silent.Paused()))
			return false
		}
	}
	if !p.full || p.posted != w.posted || t.flying > 0 {
		w.posted = p.posted
		w.full.Restart(now)
	} else if looked && w.full.Look(now) {
		t.giveUp(p, fmt.Errorf("ofi: %s: the provider has had no room for a frame to rank %d for %v (%s)", t.ep.Provider, p.rank, w.full.Limit(), jobenv.DeadTime))
		return false
	}
	if p.flying == 0 || p.over != w.over {
		w.over = p.over
		w.kept.restart(now)
	} else if looked {
		if passed, over := w.kept.look(now, excuse); over {
			t.giveUp(p, fmt.Errorf("ofi: %s: the provider has had accesses of %d bytes to rank %d for %v without ending one, and the rank answers",
				t.ep.Provider, p.flying, p.rank, passed))
			return false
		}
	}
	for c := range numClasses {
		if t.strayed(p, c, now, looked) {
			return false
		}
	}
	if w.quiet%probeLooks == probeLooks-1 {
		t.ack(p, wantAck)
	}
	if p.flying > 0 {
		t.announce(p)
	}
	return p.lost == nil
}

// patience is how long p may be silent, with mu held.
func (t *transport) patience(p *peer) time.Duration {
	if p.heard == 0 {
		return t.dead + connecting
	}
	return t.dead
}

// silence describes what p has left undone for d, with mu held.
func (p *peer) silence(d time.Duration) string {
	switch {
	case p.heard > 0:
		return fmt.Sprintf("not been heard from for %v, and has not answered when it was asked (%s)", d, jobenv.DeadTime)
	case p.posted > 0:
		return fmt.Sprintf("never been heard from, for %v, and has not answered when it was asked (%s and %v more)", d, jobenv.DeadTime, connecting)
	}
	why := ""
	if p.refusal != nil {
		why = ": " + p.refusal.Error()
	}
	return fmt.Sprintf("never been heard from, and for %v the provider has made no connection to it that takes anything (%s and %v more)%s",
		d, jobenv.DeadTime, connecting, why)
}

// watchLeft fails this rank if the provider keeps accesses to p for long, which has left,
// and reports whether p has to be looked at again, with mu held.
func (t *transport) watchLeft(p *peer, now time.Duration) bool {
	w := p.watch
	if w == nil || w.left == nil {
		p.watch = &watch{left: awake.NewCount(t.lossTime, 0, now)}
		return true
	}
	if !w.left.Look(now) {
		return true
	}
	t.failSoon(t.rank, fmt.Errorf("ofi: %s: the provider has had accesses to rank %d under way for %v since that has left", t.ep.Provider, p.rank, t.lossTime))
	return false
}

// strayed gives p up if frames of class c to or from it are lost, with mu held.
func (t *transport) strayed(p *peer, c class, now time.Duration, looked bool) bool {
	w := p.watch
	s := transit{sent: p.out[c].sent, there: p.there(c)}
	if m := p.in[c].missing; len(m) > 0 {
		s.missing, s.first = true, m[0]
	}
	switch {
	case s.sent == s.there && !s.missing || s != w.transit[c]:
		w.transit[c], w.answered[c] = s, p.heard
		w.loss[c].Restart(now)
		return false
	case t.flying+p.theirs > 0 || !looked: // they may be behind accesses
		return false
	case w.quiet > 2*probeLooks: // it does not run, and has to answer anew when it does
		w.answered[c] = p.heard
		return false
	}
	if !w.loss[c].Look(now) || p.heard-w.answered[c] < lossAnswers {
		return false
	}
	text := fmt.Sprintf("%d frames of %v to rank %d", s.sent-s.there, c, p.rank)
	if s.missing {
		text = fmt.Sprintf("frame %d of %v from rank %d", s.first, c, p.rank)
	}
	err := fmt.Errorf("ofi: %s: a connection has lost %s: it has answered for %v since, without", t.ep.Provider, text, t.lossTime)
	if t.stray != nil {
		err = fmt.Errorf("%w: %w", err, t.stray)
	}
	t.giveUp(p, err)
	return true
}

// giveUp fails p, with mu held.
func (t *transport) giveUp(p *peer, err error) {
	p.lost = err
	t.drop(p)
	t.failSoon(p.rank, err)
}
