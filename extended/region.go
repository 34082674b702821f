package extended

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Category is the set of implicit operations that a synchronization is about. Atomics
// that return something count as gets, all others as puts.
type Category uint8

// The categories.
const (
	Puts Category = 1 << iota
	Gets
	All = Puts | Gets
)

// String names the category.
func (c Category) String() string {
	switch c {
	case Puts:
		return "puts"
	case Gets:
		return "gets"
	case All:
		return "all"
	}
	return "no category"
}

// Region counts implicit non-blocking (nbi) operations, any number of them, so
// that they are synchronized together. GASNet keeps one such set per thread;
// goroutines have no identity, so a set is an object here. Initiator.Implicit is
// the set that all goroutines share.
//
// A Region is used in one of two ways, one after the other as often as one
// likes:
//
//   - As it comes from NewRegion: operations are begun with its NBI methods and
//     synchronized with its Sync or Try.
//   - As an access region, from Initiator.BeginRegion until End: what is begun
//     in between is named by the one Handle that End returns, and Sync and Try
//     are errors. Access regions do not nest. What was begun before
//     BeginRegion and not synchronized stays outside and goes on.
//
// A Region takes up to eight slots for puts and eight for gets, one for ranks that are equal
// modulo eight, of the 2^17 that the endpoint has for all that is under way, and gives them back
// when it is synchronized. Once 2^15 were in use at a time, a Region may have one slot for all of
// a category. Without any, what is begun is refused (ErrResource).
//
// A Region may be used by many goroutines at once; Sync may then wait for what
// others begin meanwhile, too. The zero Region may be given to BeginRegion, and
// belongs to that endpoint from then on. It must not be copied after that.
type Region struct {
	x *Initiator
	// idle has bit c set for each category c of which nothing is under way, so that a
	// Sync is one load then (1 ns inlined, where the mutex below takes 40). It is 0 of the
	// zero Region, of one that is open, and until the first Sync. Written under mu.
	idle atomic.Uint32
	mu   sync.Mutex
	open bool
	// shared has the categories of which operations may be counted in slots of other ranks
	// than theirs, until none of the category is under way.
	shared Category
	used   uint32
	// slots count what is under way: puts and gets, by rank, and the open access region.
	// They are taken when the first operation does not complete at once, and mean
	// something where used has their bit; nil before the first.
	slots *[slotRegion + 1]slot
}

type slot struct {
	o    *op
	name uint64
}

// Ranks that are equal modulo ways are counted in one slot, so that a Region takes the same
// memory in a job of any size.
const (
	ways       = 8
	slotPuts   = 0
	slotGets   = ways
	slotRegion = 2 * ways
)

// spreadSlots bounds the slots that a Region may have beside its first of a category: those
// with a lower number. All others are left to operations, access regions and first slots, so
// that many Regions towards many ranks do not use up the table; they share instead.
const spreadSlots = numSlots / 4

// slotsOf is a bit for each slot of category c.
func slotsOf(c Category) (slots uint32) {
	if c&Puts != 0 {
		slots |= (1<<ways - 1) << slotPuts
	}
	if c&Gets != 0 {
		slots |= (1<<ways - 1) << slotGets
	}
	return slots
}

// slotsTowards is a bit for each slot that counts operations towards rank.
func slotsTowards(rank int) uint32 { return (1<<slotPuts | 1<<slotGets) << (uint(rank) % ways) }

// NewRegion makes a set of implicit operations of its own.
func (x *Initiator) NewRegion() *Region { return &Region{x: x} }

// Implicit is the set that all goroutines of the rank share. It cannot be made
// an access region.
func (x *Initiator) Implicit() *Region { return &x.implicit }

// BeginRegion begins an access region in r.
func (x *Initiator) BeginRegion(r *Region) error {
	const what = "extended: begin region"
	if x.ep == nil {
		return errNotBound(what)
	}
	if r == &x.implicit {
		return errs.BadArg("%s: the implicit set that all goroutines share cannot be an access region; use a Region of your own", what)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.x != nil && r.x != x {
		return errs.BadArg("%s: the region belongs to the endpoint of another rank", what)
	}
	if r.open {
		return errs.BadArg("%s: the region is open already; access regions do not nest", what)
	}
	r.x, r.open = x, true
	r.note()
	x.table.noteRegion(r, true)
	return nil
}

// End ends the access region and returns one handle for everything begun in it;
// the zero Handle if all of that is complete. On an error, which can only be
// that the region is not open or that there are MaxHandles handles already, the
// region is as before.
func (r *Region) End() (Handle, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open {
		return 0, errs.BadArg("extended: end region: the region is not open: BeginRegion comes first, and End once for each")
	}
	x := r.x
	o, name := r.at(slotRegion)
	if o == nil {
		h, err := x.complete("extended: access region", -1)
		if r.open = err != nil; !r.open {
			x.table.noteRegion(r, false)
		}
		return h, err
	}
	if o.left.Load() == 0 && !x.always {
		r.drop(slotRegion)
		r.open = false
		x.table.noteRegion(r, false)
		failure, _ := x.table.release(o, name)
		if failure != nil {
			return 0, failure
		}
		return 0, nil
	}
	if err := x.table.expose(o); err != nil {
		return 0, err
	}
	x.table.noteRegion(r, false)
	x.table.note(name, "extended: access region", -1)
	r.drop(slotRegion)
	r.open = false
	return Handle(name), nil
}

// Sync waits for all operations of category c that were begun in r, but not
// inside an access region, and returns the first failure among them.
func (r *Region) Sync(c Category) error {
	if r.idle.Load()>>c&1 != 0 {
		return nil
	}
	return r.sync(c)
}

// SyncRank is Sync for the operations towards rank, which is enough before an access to
// words there that they are about: a get that is begun after SyncRank(rank, Puts) sees what
// the puts have written, and a put after SyncRank(rank, Gets) is not seen by the gets. It
// does not wait for what is under way towards other ranks, but for those whose number differs
// from rank's by a multiple of eight, and for all of the category if very many slots were in
// use (see Region). Without a put or get under way it takes as long as Sync; a rank that does
// not exist is found only if something is under way.
func (r *Region) SyncRank(rank int, c Category) error {
	if r.idle.Load()>>c&1 != 0 {
		return nil
	}
	return r.syncRank(rank, c)
}

//go:noinline
func (r *Region) syncRank(rank int, c Category) error {
	const what = "extended: sync region with a rank"
	if err := r.checkSync(what, c); err != nil {
		return err
	}
	if err := r.x.checkRank(what, rank); err != nil {
		return err
	}
	return r.syncSlots(c, slotsTowards(rank))
}

//go:noinline
func (r *Region) sync(c Category) error {
	if err := r.checkSync("extended: sync region", c); err != nil {
		return err
	}
	return r.syncSlots(c, ^uint32(0))
}

// syncSlots waits for what of category c is counted in slots, a bit for each, or may be
// counted elsewhere.
func (r *Region) syncSlots(c Category, slots uint32) error {
	r.mu.Lock()
	slots = slotsOf(c) & (slots | slotsOf(r.shared)) & r.used
	r.mu.Unlock()
	var err error
	for ; slots != 0; slots &= slots - 1 {
		i := bits.TrailingZeros32(slots)
		o, name := r.slot(i)
		if o == nil {
			continue
		}
		if o.left.Load() != 0 {
			if werr := r.x.await(o, name, ^int64(0)); werr != nil {
				return first(err, werr)
			}
		}
		err = first(err, r.reap(i, name))
	}
	return err
}

// Try is Sync without waiting: it polls once if it must and reports whether all
// operations of category c are complete. False says nothing about any single
// one.
func (r *Region) Try(c Category) (done bool, err error) {
	if r.idle.Load()>>c&1 != 0 {
		return true, nil
	}
	return r.try(c)
}

//go:noinline
func (r *Region) try(c Category) (done bool, err error) {
	const what = "extended: try region"
	if err := r.checkSync(what, c); err != nil {
		return false, err
	}
	if !r.quiet(c) {
		r.x.poll.Poll()
		if !r.quiet(c) {
			return false, nil
		}
	}
	return true, r.sync(c)
}

func (r *Region) checkSync(what string, c Category) error {
	if c == 0 || c&^All != 0 {
		return errs.BadArg("%s: category %d; there are Puts (%d), Gets (%d) and All (%d)", what, c, Puts, Gets, All)
	}
	if r.x == nil || r.x.ep == nil {
		return errNotBound(what)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open {
		return errs.BadArg("%s: an access region is open: End it and synchronize its handle", what)
	}
	r.note()
	return nil
}

// note has idle say which slots are free. The caller holds mu; r is bound.
func (r *Region) note() {
	var idle uint32
	if !r.open {
		for _, c := range [...]Category{Puts, Gets, All} {
			if r.used&slotsOf(c) == 0 {
				idle |= 1 << c
			}
		}
	}
	r.idle.Store(idle)
}

func (r *Region) quiet(c Category) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for slots := r.used & slotsOf(c); slots != 0; slots &= slots - 1 {
		if r.slots[bits.TrailingZeros32(slots)].o.left.Load() != 0 {
			return false
		}
	}
	return true
}

func (r *Region) slot(i int) (*op, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at(i)
}

// at is slot i, nil if nothing is counted there. The caller holds mu, as for drop.
func (r *Region) at(i int) (*op, uint64) {
	if r.used>>i&1 == 0 {
		return nil, 0
	}
	return r.slots[i].o, r.slots[i].name
}

// drop forgets slot i.
func (r *Region) drop(i int) {
	r.slots[i] = slot{}
	r.used &^= 1 << i
	for _, c := range [...]Category{Puts, Gets} {
		if r.used&slotsOf(c) == 0 {
			r.shared &^= c
		}
	}
}

// reap gives back slot i if nothing is under way in it.
func (r *Region) reap(i int, name uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, now := r.at(i)
	if o == nil || now != name || o.left.Load() != 0 {
		return nil
	}
	r.drop(i)
	r.note()
	failure, _ := r.x.table.release(o, name)
	return failure
}

// place is the slot that counts an operation of category c towards dst. The caller holds mu.
func (r *Region) place(dst int, c Category) int {
	if r.open {
		return slotRegion
	}
	if r.shared&c != 0 {
		return bits.TrailingZeros32(r.used & slotsOf(c))
	}
	return bits.TrailingZeros32(slotsOf(c) & slotsTowards(dst))
}

// share has one slot of category c that is in use count all of the category; false if there
// is none. The caller holds mu.
func (r *Region) share(c Category) bool {
	if r.open || r.used&slotsOf(c) == 0 {
		return false
	}
	r.shared |= c
	return true
}

// begin counts an operation of category c. One with a result has a slot of its own, for which it
// may wait.
func (r *Region) begin(dst int, c Category, result bool) (flight, error) {
	p, err := r.join(dst, c, result)
	if err != nil || !result {
		return p, err
	}
	for {
		f, err := r.x.begin(byRegion)
		if err == nil {
			f.o.parent = p.o
			return f, nil
		}
		if err := r.x.awaitSlot(); err != nil {
			p.o.left.Add(-oneRemote)
			return flight{}, err
		}
	}
}

// join counts an operation in a slot of the region, which others may have, too; as one under way
// if it goes on in a slot of its own.
func (r *Region) join(dst int, c Category, apart bool) (flight, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.place(dst, c)
	o, name := r.at(i)
	if o == nil {
		var err error
		o, name, err = r.x.table.claim(false)
		switch {
		case (err != nil || o.slot >= spreadSlots) && r.share(c):
			if err == nil {
				r.x.table.release(o, name)
			}
			o, name = r.at(r.place(dst, c))
		case err != nil:
			return flight{}, err
		default:
			if r.slots == nil {
				r.slots = new([slotRegion + 1]slot)
			}
			r.slots[i] = slot{o, name}
			r.used |= 1 << i
			r.note()
			o.left.Store(0) // claim has counted its caller
		}
	}
	f := flight{x: r.x, o: o, a: &o.access, name: name, unit: starting}
	switch {
	case apart:
		f.unit = oneRemote
	case o.left.Load()&starting != 0: // another goroutine has the record just now
		f.a, f.unit = spares.Get().(*conduits.Access), oneRemote
	}
	o.left.Add(f.unit)
	return f, nil
}

// PutNBI begins to put src to address to of rank dst's segment; src may be
// reused when PutNBI returns, which may have to wait for that.
func (r *Region) PutNBI(dst int, to segment.NLA, src []byte) error {
	if x := r.x; x != nil && x.views.put(dst, to, src) {
		return nil
	}
	var q operation
	q.put(dst, to, src, wantCopy)
	return q.counted(r)
}

// PutBulkNBI is PutNBI for a source that must stay as it is until the operation
// is synchronized.
func (r *Region) PutBulkNBI(dst int, to segment.NLA, src []byte) error {
	if x := r.x; x != nil && x.views.put(dst, to, src) {
		return nil
	}
	var q operation
	q.put(dst, to, src, wantBulk)
	return q.counted(r)
}

// GetNBI begins to get len(dst) bytes from address from of rank src's segment
// to dst, which must not be touched until the operation is synchronized.
func (r *Region) GetNBI(src int, from segment.NLA, dst []byte) error {
	if x := r.x; x != nil && x.views.get(src, from, dst) {
		return nil
	}
	var q operation
	q.get(src, from, dst)
	return q.counted(r)
}

// PutValueNBI begins a PutValue.
func (r *Region) PutValueNBI(rank int, to segment.NLA, v uint64, n int) error {
	if x := r.x; x != nil && uint(n-1) < 8 && x.views.putValue(rank, to, v, n) {
		return nil
	}
	var q operation
	q.putValue(rank, to, v, n)
	return q.counted(r)
}

// MemsetNBI begins a Memset.
func (r *Region) MemsetNBI(rank int, to segment.NLA, value byte, n int) error {
	if x := r.x; x != nil && n > 0 && x.views.memset(rank, to, value, uint64(n)) {
		return nil
	}
	var q operation
	q.memset(rank, to, value, n)
	return q.counted(r)
}
