package barrier

import (
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
)

// MismatchError is the error of a phase in which the ranks do not match, on all of
// them. It matches ErrBarrierMismatch.
type MismatchError struct {
	Phase  uint32    // of this rank's barriers, the first is 1
	IDs    [2]uint32 // two that were notified, if Differ
	Differ bool      // ids differ; else a rank signalled a mismatch
	why    string
}

// Error names the ids that differ, and their ranks if those are known here.
func (e *MismatchError) Error() string {
	return "barrier: phase " + utoa(e.Phase) + " does not match: " + e.why
}

// Unwrap is the kind of error.
func (e *MismatchError) Unwrap() error { return errs.ErrBarrierMismatch }

// Flags modify Notify, Wait and Try (GASNet-1 specification, "Barriers").
type Flags uint32

const (
	// Anonymous says that the id given is meaningless and matches any.
	Anonymous Flags = 1 << iota
	// Mismatch makes every rank's barrier report a mismatch. It outweighs
	// Anonymous. Given to Wait or Try it concerns the calling rank alone, for
	// the others may have finished.
	Mismatch
	// Whole says, of Notify, that Wait follows at once: then a profile tells which rank came last.
	Whole

	allFlags = Anonymous | Mismatch | Whole
)

// Algorithm is how arrivals and the verdict travel.
type Algorithm uint8

// The algorithms.
const (
	// Auto takes Flat up to 16 ranks and Tree beyond if all ranks have direct
	// access to each other; else Card if the conduit's cards have a barrier; else Levels
	// if the conduit says which ranks have direct access, and any have; else Dissemination.
	Auto Algorithm = iota
	// Flat: every rank reads every other's arrival line.
	Flat
	// Tree: shared counters in groups of 8, one release line.
	Tree
	// Dissemination: ceil(log2 N) rounds of one short message per rank.
	Dissemination
	// Levels: counters as in Tree in each neighbourhood, whose first ranks exchange
	// ceil(log2 H) rounds of messages if there are H, and release the others.
	Levels
	// Card: the conduit's cards and switches do it (conduits.Card).
	Card
	numAlgorithms
)

// String names the algorithm.
func (a Algorithm) String() string {
	switch a {
	case Auto:
		return "auto"
	case Flat:
		return "flat"
	case Tree:
		return "tree"
	case Dissemination:
		return "dissemination"
	case Levels:
		return "levels"
	case Card:
		return "card"
	}
	return "algorithm " + strconv.Itoa(int(a))
}

// maxFlat is the largest job for which Auto takes Flat: of 15 ranks with a processor each it takes 0.9 to 1.2 us, and Tree 1.5 to 2.0.
const maxFlat = 16

// Config has the options of a barrier, equal on all ranks.
type Config struct {
	// Force takes one algorithm whatever the job looks like; Auto, the zero
	// value, chooses. Flat and Tree need direct access between all ranks.
	Force Algorithm
	// Waits, if not nil, is called by Wait and Sleeps before they sleep until other ranks
	// have come to phase, of which Waiting tells then. It may send and must not wait. Its error,
	// a failure of the job, ends Wait with the phase open.
	Waits func(phase uint32) error
}

// Barrier is one rank's end of the job's barrier. Make it with New, hand
// Handlers to am.Attach (Config.Runtime), then call Bind. Its methods may be called from any
// goroutine, though one barrier is at one phase at a time: see Notify. They are
// illegal in handlers.
type Barrier struct {
	// state is the word {phase, notified, named, id}: which phase was notified
	// last, whether it still has to be waited for, and the verdict of the phase
	// waited for last. Notify changes it from idle to notified, the goroutine that
	// completes the phase back.
	state atomic.Uint64

	t   transport
	two *pair // t, where it is one: called directly, for speed
	ep  conduits.Endpoint
	e   *am.Messenger
	// Config.Waits and Force, and after Bind the algorithm that was chosen.
	sleeping func(phase uint32) error
	how      Algorithm
	watched  bool        // ep is a conduits.Watcher
	split    atomic.Bool // the phase was notified without Whole; if watched

	waits atomic.Uint32 // the phase that a goroutine sleeps for, see Waiting
	spins atomic.Int32  // see maxSpins
	tries atomic.Int32  // unsuccessful Tries since the last call of lacking, see maxTries

	// d gets messages from the moment that handlers run, which is before Bind.
	d dissem
}

// stateNotified is the bit of Barrier.state that words use for a mismatch,
// which is never kept there.
const stateNotified = uint64(wordMismatch)

// transport is an algorithm. One call of arrive per phase; verdict by any
// goroutine at any time.
type transport interface {
	// arrive tells the others this rank's word. It may poll.
	arrive(w word) error
	// verdict gives the combined state of all ranks, if it is known yet.
	verdict(phase uint32) (word, bool)
	// spin watches for what phase waits for, a fraction of a microsecond.
	spin(phase uint32)
	// appendBlocked appends the ranks that are still missing in phase.
	appendBlocked(b []byte, phase uint32) []byte
	// lacking is a rank that has left the job and without which phase cannot
	// complete, or -1; see conduits.WaitFor.
	lacking(phase uint32) int
	// explain says why phase, which has completed here, is a mismatch: in words, and
	// two ids that differ, if that is why.
	explain(phase uint32) (why string, ids [2]uint32, differ bool)
}

// New makes a barrier that chooses its algorithm by itself.
func New() *Barrier { return NewWith(Config{}) }

// NewWith makes a barrier as c says.
func NewWith(c Config) *Barrier { return &Barrier{how: c.Force, sleeping: c.Waits} }

// Bind joins b to an attached endpoint whose handler table contains b's
// Handlers. Every rank of the job does it once, before anything else is done
// with b; other ranks may be using the barrier already.
func (b *Barrier) Bind(e *am.Messenger) error {
	if b.t != nil {
		return errs.BadArg("barrier: bound twice")
	}
	ep := e.Conduit()
	direct := true
	for r := 0; r < ep.Size() && direct; r++ {
		direct = ep.System(r, conduits.SystemWords) != nil
	}
	how, hoods := b.how, conduits.NeighbourhoodsOf(ep)
	if direct {
		hoods = conduits.NewNeighbourhoods(ep.Size(), func(int) int { return 0 })
	}
	unit, offered := conduits.BarriersOf(ep, conduits.BarrierOfJob+1)
	switch {
	case how >= numAlgorithms:
		return errs.BadArg("barrier: no algorithm %d; the last is %d (Config.Force)", how, numAlgorithms-1)
	case how == Card && !offered:
		return errs.NotSupported("barrier: card: the cards of conduit %s have no barrier (Config.Force)", ep.Conduit())
	case how == Auto && !direct && offered:
		how = Card
	case how == Auto && !direct && hoods != nil && hoods.Len() < ep.Size():
		how = Levels
	case how == Auto && !direct:
		how = Dissemination
	case how == Auto && ep.Size() <= maxFlat:
		how = Flat
	case how == Auto:
		how = Tree
	case how == Levels && hoods == nil:
		return errs.NotSupported("barrier: levels need a conduit that knows its neighbourhoods, which %s does not (Config.Force)", ep.Conduit())
	case how != Dissemination && how != Levels && how != Card && !direct:
		return errs.NotSupported("barrier: %v needs direct access between all %d ranks, which conduit %s does not offer (Config.Force)", how, ep.Size(), ep.Conduit())
	}
	b.e, b.ep = e, ep
	_, b.watched = ep.(conduits.Watcher)
	if _, virtual := conduits.As[conduits.Runner](ep); !virtual {
		// Where the conduit runs the ranks, no other runs while this one watches.
		b.spins.Store(maxSpins)
	}
	switch how {
	case Flat:
		b.t = newFlat(ep)
		if ep.Size() == 2 {
			b.two = newPair(ep)
			b.t = b.two
		}
	case Tree:
		b.t = newTree(ep, members{n: ep.Size()}, ep.Rank())
	case Levels:
		b.t = newLevels(e, hoods, &b.d)
	case Card:
		b.t = &card{unit: unit}
	default:
		b.d.bind(e, nil, 0)
		b.t = &b.d
	}
	b.how = how
	return nil
}

// Algorithm returns the algorithm in use; Auto before Bind.
func (b *Barrier) Algorithm() Algorithm { return b.how }

// Notify begins a phase: it tells the other ranks that this one has arrived,
// with an id or, with flag Anonymous, without, and does not wait for them. All
// that this rank wrote before (direct accesses, and puts and atomics that are
// complete) is seen by every rank that has waited for the phase.
//
// A phase must be finished by Wait, or by a Try that says so, before the next
// Notify: else Notify fails with ErrNotReady and changes nothing. Wait may be
// called by another goroutine than Notify.
func (b *Barrier) Notify(id uint32, flags Flags) error {
	if b.t == nil {
		return errs.NotInit("barrier: notify before Bind")
	}
	if flags&^allFlags != 0 {
		return badFlags("notify", flags)
	}
	if err := b.e.Blocking("barrier notify"); err != nil {
		return err
	}
	s := b.state.Load()
	if b.watched && s&stateNotified == 0 {
		b.split.Store(flags&Whole == 0)
	}
	phase := uint32(s>>wordPhase+1) & phaseMask
	w := word(phase)<<wordPhase | offer(id, flags)
	n := uint64(phase)<<wordPhase | stateNotified | s&uint64(wordNamed|wordID)
	switch {
	case s&stateNotified != 0:
	case b.two != nil:
		conc.Release64(plain(&b.state), n)
		return b.two.arrive(w)
	case b.state.CompareAndSwap(s, n):
		if err := b.t.arrive(w); err != nil {
			return b.failed(phase, err)
		}
		return nil
	}
	// A failure of the job leaves the phase open for ever: then that is the cause,
	// which the program may not have looked at.
	if err := b.ep.Err(); err != nil {
		return b.failed(uint32(s>>wordPhase), err)
	}
	return errs.NotReady("barrier: notify(id %d): the phase notified before, %d, has not been waited for", id, b.state.Load()>>wordPhase)
}

// Close says that this rank notifies no phase any more: Notify is an error from now on, though others may still
// be reached.
func (b *Barrier) Close() { b.state.Or(stateNotified) }

// Wait finishes the phase that Notify began: it returns when all ranks have
// notified it, and runs handlers meanwhile. The error wraps ErrBarrierMismatch
// if, and then on every rank, two ranks notified different ids or a rank gave
// Mismatch; and on this rank only, if neither it nor all ranks were anonymous
// and id is not the one notified. The phase is over nevertheless.
//
// Without a phase to wait for Wait fails with ErrNotReady, and if a rank fails, or
// has left the job without having arrived, with a *PeerError that names it; the
// phase then stays open. Only one goroutine may wait for a
// phase: another that does gets ErrNotReady when the first has finished it.
func (b *Barrier) Wait(id uint32, flags Flags) error { return b.WaitUnless(id, flags, nil) }

// WaitUnless is Wait that stops to wait when stop, unless it is nil, reports true. The error is conduits.ErrGivenUp then, and
// the phase stays open: for another Wait or Try. stop is called as conduits.Cond.Ready is.
func (b *Barrier) WaitUnless(id uint32, flags Flags, stop func() bool) error {
	s := b.state.Load()
	if s&stateNotified == 0 || flags&^allFlags != 0 {
		return b.misuse("wait", id, flags)
	}
	if err := b.e.Blocking("barrier wait"); err != nil {
		return err
	}
	phase := uint32(s >> wordPhase)
	var began time.Duration
	if b.watched {
		began = b.ep.Now()
	}
	if b.two != nil {
		if v, ok := b.two.watch(phase, int(b.spins.Load())); ok {
			return b.finish("wait", s, v, id, flags, began)
		}
	}
	v, err := b.wait(s, phase, stop)
	if err != nil {
		return err
	}
	return b.finish("wait", s, v, id, flags, began)
}

// wait gets the verdict of phase, of which state s is.
func (b *Barrier) wait(s uint64, phase uint32, stop func() bool) (v word, err error) {
	v, ok := b.t.verdict(phase)
	if !ok {
		v, ok = b.spin(phase)
	}
	if !ok {
		if err = b.Sleeps(); err == nil {
			err = b.e.WaitFor(b, conduits.Cond{Work: true, Lacking: func() int { return b.t.lacking(phase) }, Ready: func() bool {
				v, ok = b.t.verdict(phase)
				return ok || b.state.Load() != s || stop != nil && stop()
			}})
		}
		b.Woken()
		if err != nil {
			return 0, b.failed(phase, err)
		}
		if !ok {
			if b.state.Load() == s {
				return 0, conduits.ErrGivenUp
			}
			return 0, stolen("wait", phase)
		}
	}
	return v, nil
}

// sleeps is the bit of Barrier.waits beside a phase.
const sleeps = 1 << 31

// Sleeps announces that the calling goroutine waits by its own means, until Woken, for the
// phase that was notified. Wait does so itself. The error is that of Config.Waits.
func (b *Barrier) Sleeps() error {
	phase := uint32(b.state.Load() >> wordPhase)
	b.waits.Store(phase | sleeps)
	if b.sleeping == nil {
		return nil
	}
	return b.sleeping(phase)
}

// Woken ends what Sleeps began.
func (b *Barrier) Woken() { b.waits.Store(0) }

// Waiting is the phase that a goroutine of this rank sleeps for; ok is false if there is none.
// The phase may be over, which the goroutine has not seen yet: then no rank is Behind it. Any
// goroutine may call it, in a handler too, so it does not ask for the verdict, which sends
// what a round of messages has led to.
func (b *Barrier) Waiting() (phase uint32, ok bool) {
	w := b.waits.Load()
	return w &^ sleeps, w != 0
}

// Behind reports whether this rank has not notified phase yet. Any goroutine may call it, in a
// handler too.
func (b *Barrier) Behind(phase uint32) bool {
	last := uint32(b.state.Load()>>wordPhase) & phaseMask
	return (phase-last)&phaseMask-1 < phaseMask/2
}

// Before a rank waits as all layers do, at the endpoint's pace, it watches the
// words that it waits for: up to maxSpins times looks looks (of some 10 ns), with
// a poll after every looks of them. It watches half as long each time that this
// found nothing, as it does where ranks share processors, and twice as long each time
// that it was not.
const (
	maxSpins = 8
	looks    = 16
)

// spin watches for the verdict of phase.
func (b *Barrier) spin(phase uint32) (v word, ok bool) {
	budget := b.spins.Load()
	for i := int32(0); !ok && i < budget; i++ {
		b.t.spin(phase)
		if v, ok = b.t.verdict(phase); !ok {
			b.e.Poll()
		}
	}
	switch {
	case !ok:
		b.spins.Store(max(min(1, budget), budget/2))
	case budget < maxSpins:
		b.spins.Store(2 * budget)
	}
	return v, ok
}

// maxTries is the number of unsuccessful Tries from one call of lacking to the next, in
// jobs of at least as many ranks. In smaller ones it is the number of ranks, since
// lacking reads a word or two of each rank.
const maxTries = 64

// Try is Wait that does not wait: done reports whether the phase is over. If it
// is, err is what Wait would have returned; if not, err is nil unless there is
// nothing to wait for or the job has failed. A Try that finds the phase not
// over polls once.
func (b *Barrier) Try(id uint32, flags Flags) (done bool, err error) {
	s := b.state.Load()
	if s&stateNotified == 0 || flags&^allFlags != 0 {
		return false, b.misuse("try", id, flags)
	}
	if err := b.e.Blocking("barrier try"); err != nil {
		return false, err
	}
	phase := uint32(s >> wordPhase)
	var began time.Duration
	if b.watched {
		began = b.ep.Now()
	}
	v, ok := b.t.verdict(phase)
	if !ok {
		b.e.Poll()
		if v, ok = b.t.verdict(phase); !ok {
			if b.state.Load() != s {
				return false, stolen("try", phase)
			}
			err := b.ep.Err()
			if err == nil && int(b.tries.Add(1)) >= min(b.ep.Size(), maxTries) {
				b.tries.Store(0)
				if r := b.t.lacking(phase); r >= 0 {
					if err = b.ep.Err(); err == nil { // else that may be why it left
						err = conduits.HasLeft(b.ep, r, b)
					}
				}
			}
			if err != nil {
				return false, b.failed(phase, err)
			}
			return false, nil
		}
	}
	err = b.finish("try", s, v, id, flags, began)
	return !errors.Is(err, errs.ErrNotReady), err
}

// Mismatched reports whether it is known already that the phase notified last, which
// has not been waited for, is a mismatch: then Wait would return at once. It does
// not poll.
func (b *Barrier) Mismatched() bool {
	s := b.state.Load()
	if b.t == nil || s&stateNotified == 0 {
		return false
	}
	v, ok := b.t.verdict(uint32(s >> wordPhase))
	return ok && v&wordMismatch != 0
}

// Ready reports whether the phase notified last, which has not been waited for, is over: then
// Wait returns at once. It neither polls nor waits, so that it may be a condition of
// am.Messenger.Wait.
func (b *Barrier) Ready() bool {
	s := b.state.Load()
	if b.t == nil || s&stateNotified == 0 {
		return false
	}
	_, ok := b.t.verdict(uint32(s >> wordPhase))
	return ok
}

// Lacking is a rank that has left the job and without which the phase notified last cannot
// end, or -1: for a caller that waits for Ready as conduits.WaitFor does.
func (b *Barrier) Lacking() int {
	s := b.state.Load()
	if b.t == nil || s&stateNotified == 0 {
		return -1
	}
	return b.t.lacking(uint32(s >> wordPhase))
}

// Barrier is Notify and Wait with the same arguments.
func (b *Barrier) Barrier(id uint32, flags Flags) error {
	if err := b.Notify(id, flags|Whole); err != nil {
		return err
	}
	return b.Wait(id, flags)
}

// Result tells the verdict of the phase finished last: the id that its named
// ranks agreed on, or false if all were anonymous, if it was a mismatch on all
// ranks, or if no phase has been finished.
func (b *Barrier) Result() (id uint32, named bool) {
	w := word(b.state.Load())
	return w.id(), w&wordNamed != 0
}

// finish turns a verdict into Wait's result and makes the barrier idle. What
// has to be read for the error is read while the phase is still open.
func (b *Barrier) finish(op string, s uint64, v word, id uint32, flags Flags, began time.Duration) error {
	if b.watched && b.state.Load() == s {
		b.ep.(conduits.Watcher).Met(began, 0, true, b.split.Load())
	}
	n := s>>wordPhase<<wordPhase | uint64(v&wordState)
	var err error
	if v&wordMismatch|word(flags&Mismatch) != 0 || v&wordNamed != 0 && v.id() != id && flags&Anonymous == 0 {
		n &^= stateNotified
		err = b.mismatch(op, uint32(s>>wordPhase), v, id, flags)
	}
	// A locked instruction more or less decides whether two ranks pass their line
	// once a barrier or twice, which is 0.8 or 1.2 times the bare flag.
	if b.two != nil && b.state.Load() == s {
		conc.Release64(plain(&b.state), n)
		return err
	}
	if !b.state.CompareAndSwap(s, n) {
		return stolen(op, uint32(s>>wordPhase))
	}
	return err
}

// mismatch describes a verdict v that is one, or does not suit the rank's wait.
func (b *Barrier) mismatch(op string, phase uint32, v word, id uint32, flags Flags) error {
	switch {
	case v&wordMismatch != 0:
		why, ids, differ := b.t.explain(phase)
		return &MismatchError{Phase: phase, IDs: ids, Differ: differ, why: why}
	case flags&Mismatch == 0:
		return errs.Mismatch("barrier: phase %d does not match: this rank's %s named id %d, the ranks notified %d", phase, op, id, v.id())
	}
	return errs.Mismatch("barrier: phase %d does not match: this rank's %s signalled a mismatch", phase, op)
}

// Blocked names the ranks that a waiting rank waits for; it makes a Barrier a
// conduits.Blocked.
func (b *Barrier) Blocked() string {
	s := b.state.Load()
	phase := uint32(s >> wordPhase)
	t := append(make([]byte, 0, 96), "barrier phase "...)
	t = strconv.AppendUint(t, uint64(phase), 10)
	t = append(t, ": "...)
	if s&stateNotified == 0 || b.t == nil {
		return string(append(t, "not waiting"...))
	}
	return string(b.t.appendBlocked(t, phase))
}

func (b *Barrier) misuse(op string, id uint32, flags Flags) error {
	if b.t == nil {
		return errs.NotInit("barrier: %s before Bind", op)
	}
	if flags&^allFlags != 0 {
		return badFlags(op, flags)
	}
	if err := b.e.Blocking("barrier " + op); err != nil {
		return err
	}
	return errs.NotReady("barrier: %s(id %d): no phase has been notified since phase %d was finished", op, id, b.state.Load()>>wordPhase)
}

func badFlags(op string, flags Flags) error {
	return errs.BadArg("barrier: %s: unknown flags %#x; known are Anonymous (%#x), Mismatch (%#x) and Whole (%#x)", op, uint32(flags&^allFlags), uint32(Anonymous), uint32(Mismatch), uint32(Whole))
}

func stolen(op string, phase uint32) error {
	return errs.NotReady("barrier: %s: phase %d was finished by another goroutine meanwhile", op, phase)
}

// failed adds to the failure that ends phase what this rank was doing. If that is
// a rank that has left, all ranks need it and those that wait for it by way of
// others would not notice: so it is blamed.
func (b *Barrier) failed(phase uint32, err error) error {
	var p *errs.PeerError
	if !errors.As(err, &p) {
		return err
	}
	if f := b.ep.Err(); f != nil {
		errors.As(f, &p) // what the job has failed of by now, which says more than err
	} else if p.Rank != b.ep.Rank() {
		errors.As(conduits.HasLeft(b.ep, p.Rank, b), &p) // says more than an answer of a send
		b.ep.Blame(p.Rank, p.Err)
	}
	return &errs.PeerError{Rank: p.Rank, Op: "barrier phase " + utoa(phase), Err: p.Err}
}
