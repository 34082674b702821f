package collective

import (
	"errors"
	"strconv"
	"time"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Mismatch is the error of calls that did not match, with which all later ones end;
// nil if there were none.
func (c *Member) Mismatch() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

// wake makes the goroutine that is in the call look again, for a handler may run
// on another one.
func wake(t *am.Token) {
	ep := t.Messenger().Conduit()
	ep.Wake(ep.Rank())
}

// note keeps what a waiting rank has said, and answers if their calls do not match. A waiting rank's
// stack is deepest here.
func (c *Member) note(t *am.Token, args []uint32, ready bool) {
	d, at := parseCall(args[2:]), segment.NLA(0)
	if len(args) == 4+callWords {
		at = segment.NLA(am.Unpack64(args[2+callWords], args[3+callWords]))
	}
	w := note{set: true, seq: args[0], src: uint32(t.Src()), kind: d.kind, typ: d.typ, root: d.root, elem: d.elem, size: d.size}
	key, ok := keyOf(args[1], t.Src())
	if !ok {
		return
	}
	c = c.at(args[1] >> 16)
	c.mu.Lock()
	asked := -1 // phase
	mine, good := c.call, c.broken == nil
	o := c.inFlight(w.seq)
	var ls *links
	switch ahead := int32(w.seq - c.seq); {
	case !good:
	case o != nil && o.state != opEarly:
		mine, ls = o.call, &o.links
		good = w.call().matches(mine)
	case ahead > 0 && c.left:
		mine, good = call{form: form{kind: kindLeave}}, false
	case ahead > 0 && w.kind&kindNB != 0:
		o = c.operation(w.seq)
		ls = &o.links
	case ahead > 0:
		ls = &c.links
	case ahead == 0 && c.active:
		ls = &c.links
		good = w.call().matches(mine)
	default:
		// A call ends when all ranks that were to get something have it, so a
		// receiver that waits is in another call than this rank was. A sender's
		// offer may have been on its way since before the end.
		if mine = (call{form: form{kind: kindPast}}); ahead > -historyLen {
			mine = c.history(w.seq)
		}
		good = !ready && (w.call().matches(mine) || mine.kind == kindPast) || gaveUp(t, &w, mine)
		if good && mine.kind == kindPast && c.shared != nil && int(args[1]>>8&0xff) == slots {
			if r, ok := c.Of(t.Src()); ok {
				good = !c.shared.stuck(r, w.seq, w.call())
			}
		}
	}
	if good && ls != nil {
		asked = c.keep(&w, at, ls.at(key), ready)
		if w.kind&kindNB != 0 {
			if g := c.world().engine.Load(); g != nil {
				g.kick(o)
			}
		}
	}
	if !good {
		c.differ(t, &w, mine)
	} else if c.mu.Unlock(); asked >= 0 {
		c.ask(t, &w, uint32(asked))
	}
	wake(t)
}

// keep keeps w, of this call or a later one, in its link. It returns the phase of the barrier that this
// rank waits for, if the rank of w waits for it in a later call, or -1. Called with mu held.
func (c *Member) keep(w *note, at segment.NLA, l *link, ready bool) (asked int) {
	in := &l.wanted
	if ready {
		l.at = at
	} else {
		if in = &l.offered; in.later(w.seq) {
			return -1 // messages may overtake each other
		}
	}
	*in = *w
	if c.phases == nil || w.kind&kindNB != 0 || int32(w.seq-c.seq) <= 0 {
		return -1
	}
	if int32(w.seq-c.ahead) > 0 {
		c.ahead = w.seq
	}
	// While mu is held this rank cannot make the call.
	if phase, ok := c.phases.Waiting(); ok {
		return int(phase)
	}
	return -1
}

// differ notes that a rank which waits in w is in another call than mine, and answers it.
// Called with mu held, which it gives up.
func (c *Member) differ(t *am.Token, w *note, mine call) {
	// The rank that is in a call will tell all others when it ends: this rank if it is
	// in one, and else the one that waits.
	c.broke(fault{seq: w.seq, a: uint32(c.e.Rank()), callA: mine, b: w.src, callB: w.call()}, c.reports())
	f := c.faultWords()
	c.mu.Unlock()
	// If the reply fails, so has the job, and the other rank learns of that.
	_ = t.ReplyShort(handlerWrong, f[:]...)
}

func (c *Member) onWrong(t *am.Token, args []uint32, _ []byte) { c.told(t, args, true) }
func (c *Member) onAbort(t *am.Token, args []uint32, _ []byte) {
	if args[faultTell]>>16 != 0 {
		c.told(t, args, true)
		return
	}
	at := c.at(args[faultTeam] >> 16)
	at.mu.Lock()
	// The sender tells all others, or is spared by a rank below it.
	at.report = false
	at.spared = at.spared || t.Src() < t.Messenger().Rank()
	at.mu.Unlock()
	c.told(t, args, false)
}

// told notes a mismatch that another rank has found; report says that the others
// do not know it from there.
func (c *Member) told(t *am.Token, args []uint32, report bool) {
	c = c.at(args[faultTeam] >> 16)
	f := parseFault(args)
	c.mu.Lock()
	if c.stands(&f) {
		c.broke(f, report)
	}
	c.mu.Unlock()
	wake(t)
}

// broke notes the first mismatch. report says that the others have to be told.
// Called with mu held.
func (c *Member) broke(f fault, report bool) {
	if c.broken == nil {
		c.broken, c.fault, c.report = c.err(&f), &f, report
		c.kickAll()
	}
}

// begin enters call d, which finish leaves. If it returns an error, the call is over
// already.
func (c *Member) begin(d call) error {
	if err := c.usable(d); err != nil {
		return err
	}
	c.mu.Lock()
	if c.busy {
		c.mu.Unlock()
		return c.errBusy(d)
	}
	if (c.left || c.ended) && d.kind != kindLeave {
		c.mu.Unlock()
		return errs.Closed("%s: %s: rank %d has left the job", c.names.Package, c.text(d), c.e.Rank())
	}
	c.busy = true
	if c.broken == nil {
		c.seq++
		c.call, c.active = d, true
		c.remember(c.seq, d)
		c.compare()
	}
	err := c.broken
	c.mu.Unlock()
	if err != nil {
		return c.finish(err)
	}
	if c.watched {
		c.began = c.e.Conduit().Now()
	}
	return nil
}

// met tells c's endpoint that call d, which began then, is over, or has begun if it does not wait.
//
//go:noinline
func met(c *Member, d call, began time.Duration) {
	c.e.Conduit().(conduits.Watcher).Met(began, d.size, c.team == nil && d.kind.waitsForAll(), false)
}

// usable is the error of call d if there cannot be any.
func (c *Member) usable(d call) error {
	if c.e == nil {
		return c.errUnbound(d.kind)
	}
	if err := c.e.Blocking(c.name(d.kind &^ kindNB)); err != nil {
		return err
	}
	if c.team != nil {
		c.mu.Lock()
		closed := c.team.closed
		c.mu.Unlock()
		if closed {
			return errs.NotReady("%s: %s: team %d is closed", c.names.Package, c.text(d), c.team.number)
		}
	}
	return nil
}

func (c *Member) errBusy(d call) error {
	return errs.NotReady("%s: %s: another goroutine of rank %d is in a collective", c.names.Package, c.text(d), c.e.Rank())
}

func (c *Member) errUnbound(k kind) error {
	return errs.NotInit("%s: %s: the endpoint is not bound; call Bind after am.Attach", c.names.Package, c.name(k))
}

// compare looks for ranks that wait for this one in the call it is in now, but
// think that it is another one. Called with mu held.
func (c *Member) compare() {
	c.links.compare(c)
	if o := c.inFlight(c.seq); o != nil {
		o.links.compare(c)
	}
}

func (ls links) compare(c *Member) {
	for _, l := range ls {
		for _, w := range [...]*note{&l.wanted, &l.offered} {
			if w.set && w.seq == c.seq && !w.call().matches(c.call) {
				c.broke(fault{seq: c.seq, a: uint32(c.e.Rank()), callA: c.call, b: w.src, callB: w.call()}, true)
			}
		}
	}
}

// finish leaves the call with err, which it returns.
func (c *Member) finish(err error) error {
	c.mu.Lock()
	c.active, c.waiting = false, false
	c.unlink()
	d, seq, found, began := c.call, c.seq, c.report, c.began
	c.report, c.busy = false, found
	c.mu.Unlock()
	if found {
		(&report{c, 1}).tell(true)
		c.mu.Lock()
		c.busy = false
		c.mu.Unlock()
	}
	if err != nil {
		err = c.failed(d, seq, err)
	} else if c.watched {
		met(c, d, began)
	}
	return err
}

// failed adds to a failure of the job what this rank was doing. A rank that has left the
// job fails it, so that ranks which wait for it by way of others hear of it, too.
func (c *Member) failed(d call, seq uint32, err error) error {
	var p *errs.PeerError
	if !errors.As(err, &p) {
		return err
	}
	if ep := c.e.Conduit(); ep.Err() == nil && uint(p.Rank) < uint(c.e.Size()) {
		ep.Blame(p.Rank, errs.Reason(c.e.Rank(), p))
	}
	return &errs.PeerError{Rank: p.Rank, Op: c.callNumber(seq) + ", " + c.text(d), Err: p.Err}
}

// callNumber names call seq in messages: by its number on this member, and the team's.
func (c *Member) callNumber(seq uint32) string {
	s := "collective call " + strconv.FormatUint(uint64(seq-c.first()), 10)
	if c.team != nil {
		s += " of team " + strconv.Itoa(int(c.team.number))
	}
	return s
}

// Refuse takes part in a call that the caller has found to have wrong arguments, and
// returns err, which says so: for layers above that check more than this package does.
// The call counts, so that ranks whose arguments were right get an error instead of
// waiting, and ranks that all made the same mistake stay in step.
func (c *Member) Refuse(err error) error {
	if c.begin(call{form: form{kind: kindBad}}) == nil {
		var failed error
		if c.card != nil {
			failed = c.card.enter() // others may wait there, for this rank
		}
		_ = c.finish(failed)
	}
	return err
}
