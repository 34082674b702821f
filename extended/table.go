package extended

import (
	"math/bits"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
)

// Handle names one outstanding non-blocking operation, or all that were begun
// in one access region. The zero Handle means "already complete" and may be
// synchronized any number of times; every other one exactly once, by any
// goroutine of the rank that got it. A Handle is a plain number: copying it
// copies the name, not the operation.
//
//	63   62 61     56 55            17 16       0
//	+-------+---------+---------------+---------+
//	|   0   | lane (6)| generation(39)| slot(17)|
//	+-------+---------+---------------+---------+
//
// A slot gets a new generation each time it is used and is retired when the
// generations are used up, so a Handle is never issued twice. Generations of
// different ranks start apart: a handle of another rank is refused too, until
// one slot has been used 2^31 times, if the ranks differ by less than 256.
type Handle uint64

// MaxHandles is how many handles one endpoint may have outstanding: operations
// begun with NB forms, and ended access regions, that are neither complete at
// once nor synchronized yet. The specification asks for 2^16-1 (GASNet-1
// specification, section "Extended API").
const MaxHandles = 1 << 16

const (
	slotBits  = 17
	numSlots  = 1 << slotBits // handles, and as many operations without one; spreadSlots says what Regions take
	firstBits = 2             // the first chunk has 1<<firstBits slots
	numChunks = slotBits - firstBits + 1
	genBits   = 39
	maxGen    = 1<<genBits - 1
	rankShift = 31       // where a rank's share of the first generation starts
	rankMask  = 1<<8 - 1 // of ranks that are equal in these bits they are the same
	laneShift = genBits  // of the lane, above the generation
)

// The flags below the generation in op.state.
const (
	live     = 1 << iota // in use
	explicit             // has a Handle that the user knows
	orphan               // without a waiter: free it once everything has completed
	watched              // Notify has what is to be called once everything has completed
)

const stateShift = 4

// resultKind is how a completion stores an atomic's or a get's result.
type resultKind uint8

const (
	resultNone  resultKind = iota
	resultWord             // what the conduit gives
	resultValue            // from buf, where a get put it
)

// op is a slot: one operation under way, with the pieces it was cut into
// counted. The holder of the slot owns the fields that are not atomic, until
// pieces are handed to the conduit; then Complete reads them.
type op struct {
	state atomic.Uint64 // generation<<stateShift | flags
	// left counts what has not happened: completions of pieces and one unit for
	// the caller that still begins pieces in the low half, sources that may not
	// be reused yet in the high half, and starting.
	left atomic.Int64
	val  uint64 // what an atomic found
	err  error  // first failure; written under table.mu, read by release
	next *op    // free list; under the lock of the part that it is in
	// parent counts this operation as one of its pieces until it is released.
	parent *op

	access conduits.Access // the piece that is begun; of the goroutine that begins it
	kind   resultKind
	n      uint8 // bytes of buf that resultValue means; else of result
	slot   uint32
	result target // nil: the result goes nowhere but to val
	buf    [8]byte
	_      [8]byte // two goroutines' slots lie in lines of their own
}

const (
	oneRemote  = int64(1)
	oneSource  = int64(1) << 32
	sourceMask = starting - oneSource
	starting   = int64(1) << 62 // a goroutine begins an operation of a Region by the slot's record
)

// units is how ev counts in op.left.
func units(ev conduits.Event) int64 {
	var n int64
	if ev&conduits.RemoteDone != 0 {
		n += oneRemote
	}
	if ev&conduits.SourceDone != 0 {
		n += oneSource
	}
	return n
}

// table holds the slots, in chunks that are made when they are first needed, and
// stay: each as large as all before it, so that a rank with little under way
// costs little, and one that has much does not pay for a long list of chunks.
type table struct {
	part                                     // all there is, or the reserve
	parts    atomic.Pointer[parts]           // nil until two goroutines have met at mu
	chunks   [numChunks]atomic.Pointer[[]op] // place says which slot is where
	firstGen uint64                          // of a slot that was never used, and the lane
	origins  *origins                        // nil without Config.Origins
	watchers map[uint64]func()               // by Notify; under mu
}

// place is where slot i is: in which chunk and at which index there.
func place(i uint64) (chunk int, index uint64) {
	chunk = bits.Len64(i >> firstBits)
	return chunk, i - before(chunk)
}

// before is how many slots there are in the chunks before one.
func before(chunk int) uint64 { return 1 << firstBits << chunk >> 1 &^ (1<<firstBits - 1) }

// claim gives out a slot that counts one unit for the caller; name is its cookie
// and, if withHandle, the Handle.
func (t *table) claim(withHandle bool) (o *op, name uint64, err error) {
	p := t.own()
	p.mu.Lock()
	if o = p.free; o == nil || withHandle && p.left == 0 {
		p.mu.Unlock()
		if o, err = t.lack(p, withHandle); err != nil {
			return nil, 0, err
		}
	} else {
		p.free = o.next
		if withHandle {
			p.left--
		}
		p.mu.Unlock()
	}
	gen := o.state.Load()>>stateShift + 1
	flags := uint64(live)
	if withHandle {
		flags |= explicit
	}
	o.left.Store(oneRemote)
	o.state.Store(gen<<stateShift | flags)
	return o, gen<<slotBits | uint64(o.slot), nil
}

// fresh is a slot that was never used; nil if there is none left. The caller holds mu.
func (t *table) fresh() *op {
	if t.used == numSlots {
		return nil
	}
	c, i := place(uint64(t.used))
	if i == 0 {
		ops := make([]op, before(c+1)-before(c))
		t.chunks[c].Store(&ops)
	}
	o := &(*t.chunks[c].Load())[i]
	o.slot = t.used
	o.state.Store(t.firstGen << stateShift)
	t.used++
	return o
}

// find returns the slot that name names if it is in use under that name.
func (t *table) find(name uint64) (o *op, state uint64) {
	c, i := place(name % numSlots)
	ops := t.chunks[c].Load()
	if ops == nil {
		return nil, 0
	}
	o = &(*ops)[i]
	s := o.state.Load()
	if s>>stateShift != name>>slotBits || s&live == 0 {
		return nil, 0
	}
	return o, s
}

// handle is find for what the user calls a Handle.
func (t *table) handle(h Handle) *op {
	o, s := t.find(uint64(h))
	if o == nil || s&explicit == 0 {
		return nil
	}
	return o
}

// release frees the slot that name names and returns the operation's failure;
// false if it was freed before.
func (t *table) release(o *op, name uint64) (failure error, ok bool) {
	s := o.state.Load()
	gen := s >> stateShift
	for { // of several callers the one that takes the flags away frees the slot
		if gen != name>>slotBits || s&live == 0 {
			return nil, false
		}
		if o.state.CompareAndSwap(s, gen<<stateShift) {
			break
		}
		s = o.state.Load()
		gen = s >> stateShift
	}
	if s&watched != 0 {
		t.tell(name)
	}
	failure = o.err
	if p := o.parent; p != nil {
		if failure != nil {
			t.fail(p, failure)
		}
		if left := p.left.Add(-oneRemote); left == 0 {
			if s := p.state.Load(); s&watched != 0 {
				t.tell(s>>stateShift<<slotBits | uint64(p.slot))
			}
		}
	}
	o.err, o.parent, o.result, o.kind, o.val = nil, nil, nil, resultNone, 0
	if o.access.Mem != nil {
		o.access.Mem = nil
	}
	if gen%meetEach == 0 {
		t.meet()
	}
	p := t.own()
	p.mu.Lock()
	if s&explicit != 0 {
		p.left++
	}
	if gen&maxGen < maxGen {
		o.next = p.free
		p.free = o
	}
	p.mu.Unlock()
	if t.origins != nil {
		t.origins.forget(name)
	}
	return failure, true
}

// expose makes a slot without a handle one with a handle.
func (t *table) expose(o *op) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.recall() {
		return errTooManyHandles()
	}
	t.left--
	o.state.Or(explicit)
	return nil
}

// abandon gives up a slot whose pieces may still be under way, together with
// the unit that the caller holds if held is 1.
func (t *table) abandon(o *op, name uint64, held int64) {
	o.state.Or(orphan)
	if o.left.Add(-held) == 0 {
		t.release(o, name)
	}
}

// tell calls what Notify was given for name, all of which has completed, unless it has.
func (t *table) tell(name uint64) {
	t.mu.Lock()
	done := t.watchers[name]
	delete(t.watchers, name)
	t.mu.Unlock()
	if done != nil {
		done()
	}
}

// fail remembers the first failure of an operation.
func (t *table) fail(o *op, err error) {
	t.mu.Lock()
	if o.err == nil {
		o.err = err
	}
	t.mu.Unlock()
}

func errTooManyHandles() error {
	return errs.Resource("extended: %d handles are outstanding on this rank, which is the limit; synchronize some, or use an access region", MaxHandles)
}

func errTooManyOperations() error {
	return errs.Resource("extended: %d operations are under way on this rank, which is the limit", numSlots)
}

func errBadHandle(op string, h Handle) error {
	return errs.BadArg("%s: handle %#x (slot %d, generation %d) is not outstanding: synchronized already, or never issued by this rank",
		op, uint64(h), uint64(h)%numSlots, uint64(h)>>slotBits)
}

func littleEndian(b []byte) uint64 {
	var v uint64
	for i, c := range b {
		v |= uint64(c) << (8 * i)
	}
	return v
}
