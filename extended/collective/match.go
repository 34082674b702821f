package collective

import (
	"errors"
	"strconv"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/internal/errs"
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

func (c *Member) onReady(t *am.Token, args []uint32, _ []byte) {
	if c.note(t, args, true) {
		wake(t)
	}
}

func (c *Member) onOffer(t *am.Token, args []uint32, _ []byte) {
	if c.note(t, args, false) {
		wake(t)
	}
}

// note keeps what a waiting rank has said, and answers if their calls do not match. It reports
// whether the goroutines of this rank have to look. It is where a waiting rank's stack is deepest.
func (c *Member) note(t *am.Token, args []uint32, ready bool) (kept bool) {
	w := note{
		set: true, seq: args[0], src: uint32(t.Src()),
		kind: kindOf(args[2]), root: args[3], size: am.Unpack64(args[4], args[5]),
	}
	key, ok := keyOf(args[1], t.Src())
	if !ok {
		return false
	}
	c = c.at(args[1] >> 16)
	if w.kind&kindNB != 0 {
		c.noteNB(t, &w, key, ready)
		return true
	}
	c.mu.Lock()
	l := c.link(key)
	in := &l.offered
	if ready {
		in = &l.wanted
	}
	asked := -1 // phase
	mine, good := c.call, c.broken == nil
	switch ahead := int32(w.seq - c.seq); {
	case !good:
	case ahead > 0 && c.left:
		mine, good = call{kind: kindLeave}, false
	case !ready && in.later(w.seq): // messages may overtake each other
	case ahead > 0:
		*in = w
		if c.phases != nil {
			if int32(w.seq-c.ahead) > 0 {
				c.ahead = w.seq
			}
			// While mu is held this rank cannot make the call.
			if phase, ok := c.phases.Waiting(); ok {
				asked = int(phase)
			}
		}
	case ahead == 0 && c.active:
		*in = w
		good = w.call().matches(mine)
	default:
		// A call ends when all ranks that were to get something have it, so a
		// receiver that waits is in another call than this rank was. A sender's
		// offer may have been on its way since before the end.
		if mine = (call{kind: kindPast}); ahead > -historyLen || c.inFlight(w.seq) != nil {
			mine = c.history(w.seq)
		}
		good = !ready && (w.call().matches(mine) || mine.kind == kindPast) || gaveUp(t, &w, mine)
		if good && mine.kind == kindPast && c.shared != nil && int(args[1]>>8&0xff) == slots {
			good = !c.shared.stuck(t.Src(), wordOf(w.seq, w.call()))
		}
	}
	if !good {
		c.differ(t, &w, mine)
		return true
	}
	c.mu.Unlock()
	if asked >= 0 {
		c.ask(t, &w, uint32(asked))
	}
	return true
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
	if !c.busy.CompareAndSwap(false, true) {
		return c.errBusy(d)
	}
	c.mu.Lock()
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
	return nil
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
	c.active = false
	c.unlink()
	d, seq, report := c.call, c.seq, c.report
	c.mu.Unlock()
	if report {
		c.announce()
	}
	c.busy.Store(false)
	if err != nil {
		err = c.failed(d, seq, err)
	}
	return err
}

// failed adds to a failure of the job what this rank was doing. A rank that has left the
// job fails it, so that ranks which wait for it by way of others hear of it, too.
func (c *Member) failed(d call, seq uint32, err error) error {
	var p *PeerError
	if !errors.As(err, &p) {
		return err
	}
	if ep := c.e.Conduit(); ep.Err() == nil && uint(p.Rank) < uint(c.e.Size()) {
		ep.Blame(p.Rank, errs.Reason(c.e.Rank(), p))
	}
	return &PeerError{Rank: p.Rank, Op: c.callNumber(seq) + ", " + c.text(d), Err: p.Err}
}

// callNumber says which call is number seq.
func (c *Member) callNumber(seq uint32) string {
	s := "collective call " + strconv.FormatUint(uint64(seq-c.first()), 10)
	if c.team != nil {
		s += " of team " + strconv.Itoa(int(c.team.number))
	}
	return s
}

// tellFirst is how many ranks are told of a mismatch before looking whether
// another rank does so.
const tellFirst = 32

// announce tells the other ranks of a mismatch that this rank has found. Very many
// may find it at once: the lowest of those tells all others, and the others stop
// when they hear of it.
func (c *Member) announce() {
	c.mu.Lock()
	report := c.report
	c.report = false
	c.mu.Unlock()
	if !report {
		return
	}
	c.mu.Lock()
	w := c.faultWords() // which stays
	c.mu.Unlock()
	for k := 1; k < c.size; k++ {
		// A rank that cannot be told has failed, which all learn.
		_ = c.e.RequestShort(c.job((c.rank+k)%c.size), handlerAbort, w[:]...)
		if k%tellFirst == 0 {
			c.e.Poll()
			c.mu.Lock()
			spared := c.spared
			c.mu.Unlock()
			if spared {
				return
			}
		}
	}
}

// Refuse takes part in a call that the caller has found to have wrong arguments, and
// returns err, which says so: for layers above that check more than this package does.
// The call counts, so that ranks whose arguments were right get an error instead of
// waiting, and ranks that all made the same mistake stay in step.
func (c *Member) Refuse(err error) error {
	if c.begin(call{kind: kindBad}) == nil {
		var failed error
		if c.card != nil {
			failed = c.card.enter() // others may wait there, for this rank
		}
		_ = c.finish(failed)
	}
	return err
}
