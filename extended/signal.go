package extended

import (
	"fmt"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// SignalOp says how a signal changes its word.
type SignalOp uint8

// The ways to signal.
const (
	SignalSet SignalOp = iota // the word becomes the value
	SignalAdd                 // the value is added to the word
)

// Cmp compares a word with a value, both unsigned.
type Cmp uint8

// The comparisons.
const (
	Eq Cmp = iota // word == value
	Ne            // word != value
	Gt            // word > value
	Ge            // word >= value
	Lt            // word < value
	Le            // word <= value
	numCmps
)

var cmpNames = [numCmps]string{"==", "!=", ">", ">=", "<", "<="}

// String is the comparison as Go writes it.
func (c Cmp) String() string {
	if c < numCmps {
		return cmpNames[c]
	}
	return fmt.Sprintf("Cmp(%d)", uint8(c))
}

func (c Cmp) holds(word, value uint64) bool {
	switch c {
	case Eq:
		return word == value
	case Ne:
		return word != value
	case Gt:
		return word > value
	case Ge:
		return word >= value
	case Lt:
		return word < value
	}
	return word <= value
}

// Signal changes the aligned 8-byte word at sig in rank's segment and wakes
// goroutines that wait for it there. A goroutine that sees the change, with WaitUntil, TestUntil or an
// atomic load, also sees everything that the caller put to that rank before,
// and what non-blocking operations put that the caller has synchronized.
func (x *Initiator) Signal(rank int, sig segment.NLA, op SignalOp, value uint64) error {
	const what = "extended: signal"
	if op > SignalAdd {
		return errBadSignal(what, op)
	}
	return x.signal(what, rank, sig, op, value)
}

func (x *Initiator) signal(what string, rank int, sig segment.NLA, op SignalOp, value uint64) error {
	if p := x.views.word64(rank, sig); p != nil {
		if op == SignalSet {
			atomic.StoreUint64(p, value)
		} else {
			atomic.AddUint64(p, value)
		}
		x.ep.Wake(rank)
		return nil
	}
	q := signalOf(what, rank, sig, op, value)
	_, err := q.now(x)
	return err
}

// PutSignal puts src to address to of rank, and then does Signal: a goroutine that
// sees the signal sees the data. Both addresses are checked before anything is moved, if
// they are in the segment; see the package comment. src may be reused when PutSignal returns.
func (x *Initiator) PutSignal(rank int, to segment.NLA, src []byte, sig segment.NLA, op SignalOp, value uint64) error {
	_, err := moveSignal(x, "extended: put with signal", conduits.Put, rank, to, src, sig, op, value, false)
	return err
}

// PutSignalNB is PutSignal with a handle for the signal. Where the data has to
// go through a conduit that does not order it before the signal, PutSignalNB
// waits until the data has arrived; the signal's completion is what the handle
// names. src may be reused when PutSignalNB returns.
func (x *Initiator) PutSignalNB(rank int, to segment.NLA, src []byte, sig segment.NLA, op SignalOp, value uint64) (Handle, error) {
	return moveSignal(x, "extended: non-blocking put with signal", conduits.Put, rank, to, src, sig, op, value, true)
}

// GetSignal gets dst from address from of rank, and then does Signal: a goroutine of that rank that sees the signal
// may write to what was got (Nüssle 2008, table 7-2: a get that notifies its responder). Checked as PutSignal is.
func (x *Initiator) GetSignal(rank int, from segment.NLA, dst []byte, sig segment.NLA, op SignalOp, value uint64) error {
	_, err := moveSignal(x, "extended: get with signal", conduits.Get, rank, from, dst, sig, op, value, false)
	return err
}

// GetSignalNB is GetSignal with a handle for the signal: it returns when dst has the data.
func (x *Initiator) GetSignalNB(rank int, from segment.NLA, dst []byte, sig segment.NLA, op SignalOp, value uint64) (Handle, error) {
	return moveSignal(x, "extended: non-blocking get with signal", conduits.Get, rank, from, dst, sig, op, value, true)
}

// moveSignal puts or gets mem, and signals; nb begins the signal alone.
func moveSignal(x *Initiator, what string, verb conduits.Verb, rank int, a segment.NLA, mem []byte, sig segment.NLA, op SignalOp, value uint64, nb bool) (Handle, error) {
	err := checkSignal(x, what, rank, sig, op)
	if err == nil && nb {
		err = x.admit()
	}
	switch {
	case err != nil:
	case verb == conduits.Get:
		err = x.Get(rank, a, mem)
	default:
		err = x.Put(rank, a, mem)
	}
	if err != nil {
		return 0, err
	}
	if nb && x.views.word64(rank, sig) == nil {
		q := signalOf(what, rank, sig, op, value)
		return q.begun(x)
	}
	if err := x.signal(what, rank, sig, op, value); err != nil || !nb {
		return 0, err
	}
	return x.complete(what, rank)
}

// signalOf is a signal that load and store do not reach.
func signalOf(what string, rank int, sig segment.NLA, op SignalOp, value uint64) operation {
	var q operation
	q.atomic(rank, sig, AtomicStore, conduits.Uint64, value, 0)
	if op == SignalAdd {
		q.atomic(rank, sig, AtomicAdd, conduits.Uint64, value, 0)
	}
	q.as = what
	return q
}

func checkSignal(x *Initiator, what string, rank int, sig segment.NLA, op SignalOp) error {
	if op > SignalAdd {
		return errBadSignal(what, op)
	}
	if x.views.word64(rank, sig) != nil {
		return nil
	}
	var q operation
	q.atomic(rank, sig, AtomicAdd, conduits.Uint64, 0, 0)
	_, err := q.check(x, what)
	return err
}

func errBadSignal(what string, op SignalOp) error {
	return errs.BadArg("%s: no way %d to signal; there are SignalSet (%d) and SignalAdd (%d)", what, op, SignalSet, SignalAdd)
}

// checkOwn checks that a is an aligned word of the own segment. The owner needs
// no rights.
func (x *Initiator) checkOwn(what string, a segment.NLA, c Cmp) error {
	if x.ep == nil {
		return errNotBound(what)
	}
	if c >= numCmps {
		return errs.BadArg("%s: no comparison %d; there are Eq (0) to Le (%d)", what, c, Le)
	}
	if err := conduits.CheckAtomic(what, conduits.AtomicLoad, conduits.Uint64, a); err != nil {
		return err
	}
	if uint64(a-segment.AttachBase) < x.mine.Size() {
		return nil
	}
	if err := x.check(what, x.ep.Rank(), a, 8, 0); err != nil {
		return err
	}
	if _, ok := x.ownBeyond(a); !ok {
		return errNoWord(what, a)
	}
	return nil
}

func errNoWord(what string, a segment.NLA) error {
	return fmt.Errorf("%s: there is no aligned word of this rank at %v that it may read: %w", what, a, segment.ErrFault)
}

// own reads a word of this rank that was checked before; false if it has been
// concealed, or is not registered any more.
func (x *Initiator) own(a segment.NLA) (uint64, bool) {
	if uint64(a-segment.AttachBase) < x.mine.Size() {
		return atomic.LoadUint64(x.ownWord(a)), true
	}
	return x.ownBeyond(a)
}

// ownBeyond is own for a word that does not lie in the segment.
func (x *Initiator) ownBeyond(a segment.NLA) (v uint64, ok bool) {
	if a.Exposed() {
		mem, ok := x.exposed.Local(a, 8)
		if !ok {
			return 0, false
		}
		there := segment.Touch(mem, func() { v, ok = loadWord(mem) })
		return v, ok && there
	}
	atu, err := x.ep.ATU()
	if err != nil {
		return 0, false
	}
	u := atu.Enter()
	mem, err := u.Translate(x.ep.Rank(), a, 8, segment.RightRead)
	if err == nil {
		there := segment.Touch(mem, func() { v, ok = loadWord(mem) })
		ok = ok && there
	}
	u.Exit()
	return v, ok
}

func checkOwnAll(x *Initiator, what string, sigs []segment.NLA, c Cmp) error {
	for i, a := range sigs {
		if x.checkOwn(what, a, c) != nil {
			return x.checkOwn(fmt.Sprintf("%s: word %d of %d", what, i, len(sigs)), a, c)
		}
	}
	return nil
}

// holds reports whether a word of this rank compares; one that is gone does not.
func (x *Initiator) holds(a segment.NLA, c Cmp, value uint64) bool {
	v, ok := x.own(a)
	return ok && c.holds(v, value)
}

// TestUntil reads the aligned 8-byte word at sig of this rank, in its segment or
// where it has registered (with the right to read) or exposed memory, and says
// whether it compares with value as asked. If it does, what was put before the
// word was changed is visible (see Signal). It does not poll.
func (x *Initiator) TestUntil(sig segment.NLA, c Cmp, value uint64) (word uint64, ok bool, err error) {
	if err := x.checkOwn("extended: test until", sig, c); err != nil {
		return 0, false, err
	}
	word, ok = x.own(sig)
	if !ok {
		return 0, false, errNoWord("extended: test until", sig)
	}
	return word, c.holds(word, value), nil
}

// WaitUntil waits, polling and then parked, until the aligned 8-byte word at
// sig of the own segment compares with value as asked, and returns it. Signal
// and PutSignal wake it; a caller that changes the word in another way calls Wake. The
// value may have changed again when WaitUntil returns, but what it returns did
// compare.
func (x *Initiator) WaitUntil(sig segment.NLA, c Cmp, value uint64) (word uint64, err error) {
	if err := x.checkOwn("extended: wait until", sig, c); err != nil {
		return 0, err
	}
	if err := x.poll.Blocking("wait until"); err != nil {
		return 0, err
	}
	if word, ok := x.own(sig); ok && c.holds(word, value) {
		return word, nil
	}
	w := x.table.getWaiter()
	w.one[0] = sig
	_, word, err = x.waitWords(w, waitWordsAny, w.one[:], 0, c, value)
	return word, err
}

// waitWords parks until words compare; it gives the waiter back.
func (x *Initiator) waitWords(w *waiter, what waitKind, sigs []segment.NLA, index int, c Cmp, value uint64) (int, uint64, error) {
	w.x, w.what, w.words, w.index, w.cmp, w.value = x, what, sigs, index, c, value
	wait := conduits.Cond{Work: true, Ready: w.cond}
	if what == waitLock {
		wait.Away = w.away
	}
	err := x.poll.WaitFor(w, wait)
	index, word := w.index, w.seen
	if err == nil && w.lost {
		err = errNoWord("extended: wait until", w.words[w.index])
	}
	x.table.putWaiter(w)
	return index, word, err
}

// WaitUntilAll is WaitUntil for all of sigs: it returns when, looking at one
// after the other, it has found each to compare. An empty list succeeds.
func (x *Initiator) WaitUntilAll(sigs []segment.NLA, c Cmp, value uint64) error {
	if err := checkOwnAll(x, "extended: wait until all", sigs, c); err != nil {
		return err
	}
	if len(sigs) == 0 {
		return nil
	}
	_, _, err := x.waitWords(x.table.getWaiter(), waitWordsAll, sigs, 0, c, value)
	return err
}

// WaitUntilAny is WaitUntil for any of sigs and returns the index of one that
// compares. It begins to look after the index that after gives, so that no word
// is starved: pass the last result, or -1. An empty list is an error.
func (x *Initiator) WaitUntilAny(sigs []segment.NLA, after int, c Cmp, value uint64) (int, error) {
	const what = "extended: wait until any"
	if len(sigs) == 0 {
		return -1, errs.BadArg("%s: there are no words to wait for", what)
	}
	if after < -1 || after >= len(sigs) {
		return -1, errs.BadArg("%s: begin after index %d of %d words", what, after, len(sigs))
	}
	if err := checkOwnAll(x, what, sigs, c); err != nil {
		return -1, err
	}
	i, _, err := x.waitWords(x.table.getWaiter(), waitWordsAny, sigs, after+1, c, value)
	if err != nil {
		return -1, err
	}
	return i, nil
}

// WaitUntilSome is WaitUntil for at least one of sigs. It appends the indices
// of all that compare to found and returns that. An empty list is an error.
func (x *Initiator) WaitUntilSome(found []int, sigs []segment.NLA, c Cmp, value uint64) ([]int, error) {
	const what = "extended: wait until some"
	if len(sigs) == 0 {
		return found, errs.BadArg("%s: there are no words to wait for", what)
	}
	if err := checkOwnAll(x, what, sigs, c); err != nil {
		return found, err
	}
	hit, _, err := x.waitWords(x.table.getWaiter(), waitWordsAny, sigs, 0, c, value)
	if err != nil {
		return found, err
	}
	for i, a := range sigs {
		if i == hit || x.holds(a, c, value) {
			found = append(found, i)
		}
	}
	return found, nil
}

// TestUntilSome is WaitUntilSome without waiting, and without polling.
func (x *Initiator) TestUntilSome(found []int, sigs []segment.NLA, c Cmp, value uint64) ([]int, error) {
	if err := checkOwnAll(x, "extended: test until some", sigs, c); err != nil {
		return found, err
	}
	for i, a := range sigs {
		if x.holds(a, c, value) {
			found = append(found, i)
		}
	}
	return found, nil
}
