package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/argon-go/argon/conduits"
)

// A peer is dead if it is silent for Config.DeadTime while something is awaited
// from it. Silence counts only while this rank itself has run: whatever stops a
// rank (SIGSTOP, a suspended virtual machine, a host without a free processor)
// usually stops its peers too, and keeps it from reading what they have sent.
//
// The engine therefore keeps a clock of its own, which runs with the caller's, but
// by no more than DeadTime/lookParts from one look at it to the next. While a peer
// is watched there is a look at least twice as often ([Engine.Deadline]), so the
// clock of a rank that runs loses nothing. A look is a call of Advance by which
// everything that had come has been given to Receive; a rank that cannot keep up
// with what comes judges no peer.
//
// The verdict takes deathProbes probes (empty datagrams that ask for an answer)
// that have not been answered. Each has DeadTime/probeParts for its answer, or a probe
// time-out of the path (RFC 9002, section 6.2.1) if that is longer, but at most
// probeTrips of the shortest round trip and DeadTime/longestParts. They begin when half
// of the dead time is over. After a pause of this rank the peer is probed at once and
// has the time of one more probe. So a peer that is gone is dead when this rank has run
// for the dead time, or for half of it and the time of deathProbes probes if that is
// longer, as it is where a round trip takes more than a twenty-fourth of the dead time.
// A rank whose process is known to run (Vouch) has that time again, from then on.
// If this rank was stopped meanwhile, the verdict comes at most one more probe's time
// and a look for each probe later, which is three eighths of the dead time where round
// trips are short.
//
// The rest of the engine calls heard for each valid datagram, watch when something
// has been sent, silenceAt for the next look, look for the time and silent for the
// verdict.
const (
	lookParts   = 20
	probeParts  = 8
	deathProbes = 4
	probeTrips  = 3
	// longestParts bounds the effect of a first round trip, which may have taken
	// minutes because one of both sides stood still. An answer that comes later than
	// that still ends the silence, if a round trip is shorter than the dead time.
	longestParts = 4
)

// watcher is the engine's clock of silence.
type watcher struct {
	peers  int           // watched
	looked time.Duration // the caller's time at the last look
	ran    time.Duration // of the clock
	missed time.Duration // what the clock has left out, in all
	pauses uint64        // looks that left out something
}

// silence is a peer's state of silence: when it was heard, and how often it was probed since.
type silence struct {
	on    bool          // something is awaited from the peer
	ever  bool          // a datagram of it has come
	what  byte          // flags of the last one
	heard time.Duration // when that was, by the caller's clock

	mute   time.Duration // when the silence began, by the engine's clock
	from   time.Duration // the same, or when the owner last vouched for the peer
	missed time.Duration // watcher.missed then
	pauses uint64        // those of watcher that the peer has been probed after
	grace  time.Duration // there is no verdict before, by the engine's clock; 0: none is due
	asks   int           // probes that were given time for an answer, the last one's time may not be over
	asked  time.Duration // when the last of them was sent, by the engine's clock
	lookAt time.Duration // the next look, by the caller's clock

	// Probes while something is awaited that no datagram under way would bring a
	// sign of life for, by the caller's clock.
	probeAt time.Duration
	probes  uint

	sent int // probes of either kind
}

// lookMost is the most that one look adds to the engine's clock.
func (e *Engine) lookMost() time.Duration { return e.c.DeadTime / lookParts }

// answerTime is how long to wait for the answer of a probe.
func (e *Engine) answerTime(p *peer) time.Duration { return e.pto(p) }

// probeTime is answerTime for probes that a verdict takes. Round trips in which
// either side stood still, for minutes perhaps, are long; the shortest one is not.
func (e *Engine) probeTime(p *peer) time.Duration {
	d := e.answerTime(p)
	if p.least > 0 {
		d = min(d, probeTrips*p.least)
	}
	return max(e.c.DeadTime/probeParts, min(d, e.c.DeadTime/longestParts))
}

// heard notes that a valid datagram has come from p.
func (e *Engine) heard(p *peer, flags byte) {
	s := &p.silence
	s.ever, s.what, s.heard = true, flags, e.now
	if s.on {
		e.restart(p)
	}
}

// restart begins p's silence now.
func (e *Engine) restart(p *peer) {
	s, w := &p.silence, &e.watcher
	// The next look adds the time since the last one, which has passed already.
	s.from = w.ran + min(max(e.now-w.looked, 0), e.lookMost())
	s.mute = s.from
	s.missed, s.pauses, s.grace = w.missed, w.pauses, 0
	s.asks, s.probes, s.sent = 0, 0, 0
	s.lookAt = e.now + e.lookMost()/2
	s.probeAt = e.now + 2*e.answerTime(p)
}

// watch measures p's silence from now on if something is awaited and it is not
// measured yet.
func (e *Engine) watch(p *peer) {
	if p.silence.on || !p.awaiting() {
		return
	}
	p.silence.on = true
	w := &e.watcher
	if w.peers++; w.peers == 1 {
		w.looked = max(w.looked, e.now) // there was no look while no peer was watched
	}
	e.restart(p)
}

// unwatch ends that.
func (e *Engine) unwatch(p *peer) {
	if p.silence.on {
		p.silence.on = false
		e.watcher.peers--
	}
}

// awaiting reports whether p owes an answer of any kind.
func (p *peer) awaiting() bool {
	if p.ops > 0 {
		return true
	}
	for c := range p.flows {
		f := &p.flows[c]
		if f.refused || f.una != f.next || !f.small.empty() || !f.bulk.empty() {
			return true
		}
	}
	return false
}

// probing reports whether something is awaited that no datagram under way would
// bring a sign of life for.
func (p *peer) probing() bool {
	if p.flows[0].una != p.flows[0].next || p.flows[1].una != p.flows[1].next {
		return false
	}
	return p.ops > 0 || p.flows[0].refused || p.flows[1].refused
}

// silenceAt is when silent has something to do for p; ok is false if that is never.
// p is watched no longer if nothing is awaited from it.
func (e *Engine) silenceAt(p *peer) (at time.Duration, ok bool) {
	s := &p.silence
	if !s.on {
		return 0, false
	}
	if !p.awaiting() {
		e.unwatch(p)
		return 0, false
	}
	if p.probing() {
		return min(s.lookAt, s.probeAt), true
	}
	return s.lookAt, true
}

// look sets the engine's clock; everything that had come by now, of the caller's
// clock, has been given to Receive.
func (e *Engine) look(now time.Duration) {
	w := &e.watcher
	passed := now - w.looked
	if passed <= 0 {
		return
	}
	w.looked = now
	if w.peers == 0 {
		return
	}
	if most := e.lookMost(); passed > most {
		w.missed += passed - most
		w.pauses++
		passed = most
	}
	w.ran += passed
}

// silent probes p if that is due, and reports whether p is dead.
func (e *Engine) silent(p *peer) bool {
	s, w := &p.silence, &e.watcher
	if !s.on || s.lookAt > e.now && (s.probeAt > e.now || !p.probing()) || !p.awaiting() {
		return false
	}
	if p.probing() && s.probeAt <= e.now {
		s.probes++
		s.probeAt = e.now + e.backoff(p, s.probes)
		e.probe(p)
	}
	each := e.probeTime(p)
	paused := s.pauses != w.pauses
	s.pauses = w.pauses
	if s.grace <= w.ran && !(paused && s.grace == 0) &&
		w.ran-s.from >= e.c.DeadTime && s.asks >= deathProbes && w.ran-s.asked >= each {
		return true
	}
	switch {
	case s.grace > w.ran:
	case paused:
		s.grace = w.ran + each
		e.probe(p)
	default:
		s.grace = 0
	}
	next := s.from + e.c.DeadTime/2
	if s.asks > 0 {
		next = s.asked + each
	}
	if next <= w.ran {
		if s.asks == 0 && e.c.Doubt != nil {
			e.c.Doubt(p.number)
		}
		if s.asks < deathProbes {
			s.asks++
		}
		s.asked = w.ran
		next = w.ran + each
		e.probe(p)
	}
	// The verdict needs no look of its own: it is due when a probe's time or the
	// grace is over, or half a look later.
	most := e.lookMost()
	next -= w.ran
	if w.looked < e.now {
		next = max(next, most/32) // its clock stands still until all has been received
	}
	s.lookAt = e.now + min(next, most/2)
	return false
}

// probe has the next datagram to p, which is due, ask for an answer.
func (e *Engine) probe(p *peer) {
	p.silence.sent++
	p.asking, p.ackNow = true, true
}

// Doubted reports whether rank has been silent for half of the dead time, is probed for
// that, and is not dead yet; silent is for how long it has.
func (e *Engine) Doubted(rank int) (silent time.Duration, doubted bool) {
	p := e.peers[rank]
	if p == nil || p.dead || !p.silence.on || p.silence.asks == 0 {
		return 0, false
	}
	return e.watcher.ran - p.silence.mute, true
}

// Vouch extends the time of rank, which is in doubt but is known by other means to run
// although it does not answer: it is dead no sooner than if it had been heard now, and Config.Doubt is called
// again when half of that time is over.
func (e *Engine) Vouch(rank int) {
	if _, doubted := e.Doubted(rank); doubted {
		s := &e.peers[rank].silence
		s.from, s.asks, s.grace = e.watcher.ran, 0, 0
	}
}

// SilentError is why a peer has been declared dead.
type SilentError struct {
	Own, Peer string        // name both ends; see Config.Name
	Dead      time.Duration // Config.DeadTime
	Silent    time.Duration // how long nothing came, as far as this rank ran
	Paused    time.Duration // how long it did not run meanwhile, at least
	Heard     time.Duration // how long ago the last datagram came; negative: none ever did
	Data      bool          // that one had contents; else it was an acknowledgement
	Probes    int           // asked for an answer since, and had none
	Narrow    int           // datagrams of so many bytes do not arrive, while shorter ones do; 0: they may
	Local     string        // then the MTU of the own interface, see Config.Local
	Seen      string        // what is known of the peer by other means; see Config.Seen
}

// Error names both ranks, the last datagram heard and when, and the number of probes.
func (s *SilentError) Error() string {
	if s.Narrow > 0 {
		return fmt.Sprintf("datagrams of %d bytes from %s to %s have not arrived for %v (ARGON_DEADTIME), while shorter ones have: the MTU of an interface or tunnel between them is less%s; raise it, or choose shorter datagrams (ARGON_DATAGRAM)",
			s.Narrow, s.Own, s.Peer, s.Dead, s.Local)
	}
	b := fmt.Sprintf("%s has not heard from %s for %v: ", s.Own, s.Peer, round(s.Silent))
	switch {
	case s.Heard < 0:
		b += "no datagram of it has ever come"
	case s.Data:
		b += fmt.Sprintf("the last datagram, with contents, came %v ago", round(s.Heard))
	default:
		b += fmt.Sprintf("the last datagram, an acknowledgement, came %v ago", round(s.Heard))
	}
	b += fmt.Sprintf("; %d probes have not been answered", s.Probes)
	if s.Paused > 0 {
		b += fmt.Sprintf("; this host did not run for %v meanwhile", round(s.Paused))
	}
	// ARGON_DEADTIME is the endpoint's knob for Config.DeadTime.
	if s.Seen != "" {
		return b + fmt.Sprintf("; %s (ARGON_DEADTIME is %v)", s.Seen, s.Dead)
	}
	return b + fmt.Sprintf("; usual reasons: a firewall drops UDP between them, the host is down or cut off, the process is stopped for longer than ARGON_DEADTIME (%v)", s.Dead)
}

// round leaves three digits or so.
func round(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond)
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}

// silenceOf describes p's silence as an error.
func (e *Engine) silenceOf(p *peer) *SilentError {
	s, w := &p.silence, &e.watcher
	r := &SilentError{
		Own: e.name(e.c.Rank), Peer: e.name(p.number), Dead: e.c.DeadTime,
		Silent: w.ran - s.mute, Heard: -1, Data: s.what&flagData != 0, Probes: s.sent,
	}
	if s.ever {
		r.Heard = e.now - s.heard
	}
	if p.mtu.stuck > 0 {
		r.Narrow = p.datagram
		if e.c.Local != nil {
			r.Local = e.c.Local()
		}
	}
	if e.c.Seen != nil {
		r.Seen = e.c.Seen(p.number)
	}
	if m := w.missed - s.missed; m > e.lookMost() { // less is delay
		r.Paused = m
	}
	return r
}

func (e *Engine) name(rank int) string {
	if e.c.Name != nil {
		return e.c.Name(rank)
	}
	return fmt.Sprintf("rank %d", rank)
}

// Silence is why rank has been declared dead, or nil if it has not, or not for its
// silence.
func (e *Engine) Silence(rank int) error {
	if p := e.peers[rank]; p != nil && p.death != nil {
		return p.death
	}
	return nil
}

// Awaited is a peer that something is awaited from.
type Awaited struct {
	Rank  int
	Heard time.Duration // how long ago the last datagram came; negative: none ever did
}

// Awaited lists the peers that something is awaited from, the one that was heard the
// longest ago first.
func (e *Engine) Awaited(now time.Duration) []Awaited {
	var l []Awaited
	for _, p := range e.peers {
		if p.dead || !p.awaiting() {
			continue
		}
		a := Awaited{p.number, -1}
		if p.silence.ever {
			a.Heard = max(now-p.silence.heard, 0)
		}
		l = append(l, a)
	}
	slices.SortFunc(l, func(a, b Awaited) int {
		if (a.Heard < 0) != (b.Heard < 0) {
			return cmp.Compare(a.Heard, b.Heard)
		}
		return cmp.Or(cmp.Compare(b.Heard, a.Heard), cmp.Compare(a.Rank, b.Rank))
	})
	return l
}

// silenced declares p dead.
func (e *Engine) silenced(p *peer) {
	p.death = e.silenceOf(p)
	e.kill(p)
}

// silentError is the error of operations on p, which is dead.
func silentError(p *peer, op string) error {
	r := &conduits.PeerError{Rank: p.rank, Op: op}
	if p.death != nil {
		r.Err = p.death
	}
	return r
}
