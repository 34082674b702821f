package extended

import (
	"fmt"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// The errors of this package; see package gas for their meaning to users.
var (
	ErrNotInit      = errs.ErrNotInit
	ErrResource     = errs.ErrResource
	ErrBadArg       = errs.ErrBadArg
	ErrNotSupported = errs.ErrNotSupported
	ErrClosed       = errs.ErrClosed
	ErrPeer         = errs.ErrPeer
)

// Config has the options of an Initiator. The zero value is good.
type Config struct {
	// AlwaysHandle makes every non-blocking operation that moves something
	// return a handle that must be synchronized, even if it is complete at
	// once. Without it such an operation returns the zero Handle and costs
	// nothing. For programs that want to find missing or double
	// synchronization on conduits that complete everything at once.
	AlwaysHandle bool
	// Origins has Initiator.Forgotten say where each handle comes from, which costs
	// each operation that has one a microsecond.
	Origins bool

	// Firehose and Space, of the same rank, give access to exposed memory: that
	// of other ranks by Firehose, this rank's by Space, with which Expose gives
	// it addresses. Both or neither; nil means that exposed addresses are
	// refused. All ranks of a job have them or none does. Firehose must have
	// been bound before the first operation that names an exposed address of
	// another rank; Initiator.Bind does not do it, because it waits for rank 0.
	Firehose *firehose.Cache
	Space    *firehose.Space

	// Strategy is how exposed memory is reached that no firehose is attached to.
	Strategy firehose.Strategy
	// BounceMax, bytes: what is longer is never bounced by strategy Adaptive. 0
	// for firehose.DefaultBounceMax.
	BounceMax int
	// OnceMin, bytes: transfers from this length on have their memory registered
	// once, by strategy Adaptive, and so have those for which one pin is not enough. 0
	// for firehose.DefaultOnceMin.
	OnceMin uint64

	// LockMemory returns LockSize bytes of this rank's memory, at a multiple of 8, in
	// its segment or exposed, that all ranks may access with atomics: a goroutine that
	// waits for a lock is in a list by them. They are kept for others that wait later,
	// so that it is called as often as goroutines have waited at once. It may be called
	// by many goroutines at once. nil: memory of the Go heap is registered, which peers
	// reach more slowly.
	LockMemory func() (segment.NLA, error)
}

// Initiator is one rank's one-sided interface. Make it with New, give its
// Handlers and itself (as the Completer) to am.Attach, then call Bind. After
// that all methods may be called by many goroutines at once; none of them may
// be called by a handler of an active message, except those that the package
// comment lists.
type Initiator struct {
	views    reach // none before Bind
	always   bool
	ep       conduits.Endpoint
	poll     progress
	mine     segment.View // of the own rank
	maxLong  uint64
	exposed  *firehose.Route // nil: no exposed memory
	table    table
	implicit Region
	notes    atomic.Pointer[nearHolds] // locks.near, or nil if this lane has had no hold
	locks    atomic.Pointer[locks]     // nil before the first
	lanes    atomic.Pointer[laneTable] // nil of a rank that has not used another lane
	// Config has it.
	lockMemory func() (segment.NLA, error)
}

// progress is the part of am.Messenger that waiting needs.
type progress interface {
	Wait(b conduits.Blocked, cond func() bool) error
	WaitFor(b conduits.Blocked, c conduits.Cond) error
	Poll() int
	Blocking(op string) error
}

// New makes an endpoint that waits for Bind.
func New(c Config) *Initiator {
	x := &Initiator{always: c.AlwaysHandle}
	x.implicit.x = x
	x.table.left = MaxHandles
	x.lockMemory = c.LockMemory
	if c.Origins {
		x.table.origins = &origins{handles: map[uint64]begun{}, regions: map[*Region]begun{}}
	}
	if c.Firehose != nil && c.Space != nil {
		x.exposed = firehose.NewRoute(c.Firehose, c.Space, c.Strategy, c.BounceMax, c.OnceMin, x)
	}
	return x
}

var (
	_ am.Completer = (*Initiator)(nil)
	_ am.Exposer   = (*Initiator)(nil)
)

// Handlers are the entries for am.Attach: none, as all that this package does
// goes through the conduit's RMA unit; with Config.Firehose, its handlers and
// those that move data between ranks without it. Indices 32 to 63 are kept for
// this package.
func (x *Initiator) Handlers() []am.Entry {
	if x.exposed == nil {
		return nil
	}
	return x.exposed.Handlers()
}

// Bind connects x with the attached endpoint whose am.Config named x as its
// Completer. Once, before any other method.
func (x *Initiator) Bind(e *am.Messenger) {
	if x.exposed != nil {
		x.exposed.Bind(e)
	}
	x.bind(e.Conduit(), e)
}

func (x *Initiator) bind(ep conduits.Endpoint, p progress) {
	x.ep, x.poll = ep, p
	x.maxLong = ep.Limits().MaxLong
	x.table.firstGen |= uint64(ep.Rank()&rankMask) << rankShift
	x.views.Views = segment.NewViews(ep.Views())
	x.mine = segment.NewView(x.views.Of(uint64(ep.Rank())).Base, ep.SegmentSize(ep.Rank()), segment.RightsAll)
}

// Rank is the number of this rank in its job. Only after Bind.
func (x *Initiator) Rank() int { return x.ep.Rank() }

// Size is the number of ranks in the job. Only after Bind.
func (x *Initiator) Size() int { return x.ep.Size() }

// Outstanding is how many handles were issued and not synchronized yet, of all lanes; at
// most MaxHandles of each.
func (x *Initiator) Outstanding() int {
	n := 0
	for l := range x.each() {
		n += l.table.outstanding()
	}
	return n
}

// Fence is a full barrier: every direct access that the calling goroutine made
// before it comes before every one that it makes after it, as seen by every rank. See
// the package comment for when it is needed, which is seldom. It takes some 5 ns on
// shared memory.
func (x *Initiator) Fence() {
	if x.ep != nil {
		conduits.Fence()
	}
}

// Wake makes rank's goroutines that are parked in WaitUntil look again. To be
// called after the word that they wait for was changed by anything but Signal
// or PutSignal, which do it themselves. Cheap if no goroutine is parked. An
// out-of-range rank is ignored.
func (x *Initiator) Wake(rank int) {
	if x.ep != nil && uint(rank) < uint(x.ep.Size()) {
		x.ep.Wake(rank)
	}
}

// Complete takes the completions of the operations that went through the
// conduit. For package am, as am.Completer; not for users.
func (x *Initiator) Complete(cookie uint64, ev conduits.Event, value uint64, err error) {
	if cookie&firehose.Cookie != 0 {
		x.exposed.Complete(cookie, value, err)
		return
	}
	if y := x.sibling(laneOf(cookie)); y != x { // of memory that is reached through lane 0
		y.Complete(cookie, ev, value, err)
		return
	}
	o, _ := x.table.find(cookie)
	if o == nil {
		panic(fmt.Sprintf("extended: the conduit completed %#x, which is not under way", cookie))
	}
	if err != nil {
		x.table.fail(o, err)
	} else if ev&conduits.RemoteDone != 0 {
		if o.kind != resultNone {
			o.deliver(value)
		}
	}
	left := o.left.Add(-units(ev))
	if left&sourceMask != 0 {
		return
	}
	// From here on o may name another operation.
	if left == 0 {
		switch p, s := x.table.find(cookie); {
		case p == nil:
		case s&orphan != 0:
			x.table.release(o, cookie)
		case s&watched != 0:
			x.table.tell(cookie)
		}
	}
	x.ep.Wake(x.ep.Rank())
}

// check returns the error of an access of n > 0 bytes that could not be made
// directly; nil if the conduit has to carry it. What is registered or exposed at
// other addresses than the segment's, the target knows.
func (x *Initiator) check(op string, rank int, a segment.NLA, n uint64, need segment.Rights) error {
	if x.ep == nil {
		return errNotBound(op)
	}
	if a.Exposed() {
		if err := conduits.CheckRank(x.ep, op, rank); err != nil {
			return err
		}
		return x.exposed.Check(op, a, n)
	}
	if err := conduits.CheckRemote(x.ep, op, rank, a, n); err != nil {
		return err
	}
	if r := x.ep.SegmentRights(rank); need&^r != 0 && x.views.near(rank) && conduits.InSegment(x.ep, rank, a, n) {
		return errs.BadArg("%s: address %v: rank %d attached its segment with rights %v, and this needs %v", op, a, rank, r, need)
	}
	return nil
}

// checkRank is check for an access of no bytes, which has no address.
func (x *Initiator) checkRank(op string, rank int) error {
	if x.ep == nil {
		return errNotBound(op)
	}
	return conduits.CheckRank(x.ep, op, rank)
}

func errNotBound(op string) error {
	return errs.NotInit("%s: the endpoint is not bound; call Bind after am.Attach", op)
}

// near reports whether rank's memory can be reached directly, if it has any.
func (v *reach) near(rank int) bool {
	w := v.Of(uint64(rank))
	return w != nil && w.Base != nil
}

// Expose gives mem exposed addresses, consecutive from the one returned on, by
// which rank peer, or every rank if that is segment.AnyPeer, may use it with
// rights in all operations of this package and long active messages; this rank
// may use it with all rights. It is registered only while others use it, so that
// there may be more of it than can be registered at once. mem is kept from the
// garbage collector until Conceal; mapped memory must not be unmapped before. It
// holds pointer-free values only. Atomics need it to be aligned to their size.
// Not before Bind.
func (x *Initiator) Expose(mem []byte, rights segment.Rights, peer int) (segment.NLA, error) {
	const what = "extended: expose"
	if x.exposed == nil {
		return 0, errs.NotSupported("%s: the endpoint was made without Config.Firehose and Config.Space", what)
	}
	if peer != segment.AnyPeer {
		if err := x.checkRank(what, peer); err != nil {
			return 0, err
		}
	}
	a, err := x.exposed.Expose(mem, rights, peer)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	return a, nil
}

// Conceal takes memory back that Expose has given addresses from a on. When it
// returns no rank reaches it by them. What is under way meanwhile is done, or
// fails with an error that matches segment.ErrFault or firehose.ErrNotExposed,
// both of which match ErrBadArg; a large access may have been done in part.
func (x *Initiator) Conceal(a segment.NLA) error {
	const what = "extended: conceal"
	if !a.Exposed() {
		return errs.BadArg("%s: %v is no exposed address", what, a)
	}
	if err := x.exposed.Check(what, a, 0); err != nil {
		return err
	}
	if err := x.exposed.Conceal(a); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Exposed is the way to exposed memory, for its limits, counters and strategy; nil without
// Config.Firehose and Config.Space.
func (x *Initiator) Exposed() *firehose.Route { return x.exposed }

// Exposes reports whether there are exposed addresses; part of am.Exposer.
func (x *Initiator) Exposes() bool { return x.exposed != nil }

// PutExposed is Put; part of am.Exposer.
func (x *Initiator) PutExposed(dst int, to segment.NLA, src []byte) error { return x.Put(dst, to, src) }

// Deposit puts what rank src has sent to an exposed address of this rank; part of
// am.Exposer, not for users.
func (x *Initiator) Deposit(src int, to segment.NLA, n uint64, data []byte) ([]byte, error) {
	return x.exposed.Deposit(src, to, n, data)
}
