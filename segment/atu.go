package segment

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
)

// AnyPeer in place of a rank means every rank.
const AnyPeer = -1

// ATUConfig has the options of an address translation unit. The zero value is
// useful: no attach segment, nothing locked, tables in the Go heap.
type ATUConfig struct {
	// Attach is the rank's attach segment, page aligned, a multiple of PageSize
	// long, and outside the Go heap or otherwise kept in place by the caller
	// until Close. nil for none.
	Attach []byte
	// Rights that all peers have to Attach.
	Rights Rights
	// Lock has registered memory locked (mlock): brought into memory and kept
	// there, as Locks says; nil for none. The attach segment is not. Limited by RLIMIT_MEMLOCK.
	Lock *Locks
	// Place gives memory for the tables, see Tables.Place; nil for the Go heap.
	Place func(gat int) *GAT
	// Frames, unless nil, say which frames stand in the entries; without, these are
	// pages of the owner's address space. Several ATUs of one process do not
	// share them.
	Frames *Frames
	// Registrar, unless nil, is called for each run that is registered or deregistered.
	Registrar Registrar
	// Count, unless nil, is where other processes read what Registrations says.
	// The ATU only writes it.
	Count *atomic.Uint64
}

// Registrar has to know the memory that peers may access: it is, say, a card that
// does the accesses and has keys of its own for memory. It must not call
// the ATU.
type Registrar interface {
	// Register is called before any address of r translates. An error refuses
	// the registration that r belongs to; ATU.Register returns it.
	Register(r Run) error
	// Deregister is called once for each Run that was registered, with the same
	// values: after the addresses have been revoked and the ATU's units have
	// done with them, before the memory is let go of and the addresses are
	// another's. It returns when no peer accesses the memory by r any more.
	Deregister(r Run)
}

// Run is a piece of a region which has consecutive addresses.
type Run struct {
	At     NLA // of the first byte; not given again until Deregister
	Mem    []byte
	Rights Rights
	Peer   int // the rank that has them, or AnyPeer
}

// ATU is a rank's address translation unit (Nüssle 2008, section 5.3): it
// registers memory beside the attach segment, which gives it network logical
// addresses, translates these for units that access it on behalf of peers, and
// takes them back such that afterwards no peer reaches the memory by them.
//
// All methods may be called by any goroutine. An access looks as follows, and
// takes no lock:
//
//	u := atu.Enter()
//	b, err := u.Translate(src, a, n, need)
//	... copy to or from b, if err is nil ...
//	u.Exit()
type ATU struct {
	c      ATUConfig
	tables Tables
	units  [numUnits]Unit
	faults atomic.Uint64

	others atomic.Pointer[[]*atomic.Uint64] // units of other processes

	mu      sync.Mutex
	room    addresses
	counts  intervals
	newest  *registration // of a list of those that live, by number
	live    int           // how many they are
	count   atomic.Uint64 // registrations so far
	closed  bool
	stats   ATUStats
	pins    *pins
	loans   *loans // nil if all that is registered is locked, or nothing
	scratch []span
}

// numUnits is how many accesses may be under way at once; more wait.
const numUnits = 16

// ATUStats count what an ATU has done. The card's registers (Nüssle 2008, figure 5-11) count
// cache hits and misses; here there is no cache, since the tables are as near
// (see Unit.Translate), but what takes its place: accesses and refusals.
type ATUStats struct {
	Regions      int    // registered now
	Bytes        uint64 // of memory registered now, in whole pages; what is registered twice counts once
	Locked       uint64 // of these locked in memory
	Registered   uint64 // registrations so far
	Deregistered uint64
	Accesses     uint64 // Enter and Exit
	Faults       uint64 // translations refused
	Flushes      uint64 // times entries were revoked and the units asked
	FlushWaits   uint64 // units that were at work then and had to be waited for
}

// registration is the state behind a Registration.
type registration struct {
	t      *ATU
	mem    []byte // nil once revoked
	addr   uint64 // of its first byte
	size   uint64
	rights Rights
	peer   int
	pin    *runtime.Pinner
	runs   []run
	inline [1]run
	number uint64 // of this registration, from 1 on

	newer, older *registration // in the list of t, under its lock

	mu    sync.Mutex
	state regState
}

type regState uint8

const (
	regLive    regState = iota
	regRevoked          // entries cleared and flushed; the addresses are not free yet
	regGone
)

// Registration is registered memory: a vector of network logical addresses behind an
// opaque value. The zero value is none.
type Registration struct{ r *registration }

// NewATU makes an address translation unit.
func NewATU(c ATUConfig) (*ATU, error) {
	t := &ATU{c: c, pins: &pins{}}
	t.tables.Place = c.Place
	for i := range t.units {
		t.units[i].t = t
	}
	size := uint64(len(c.Attach))
	// The page behind the attach segment is not given out either.
	t.room = addresses{base: NLA(alignUp(uint64(AttachBase)+size+PageSize, GATSpan)), limit: NLALimit}
	if size > 0 {
		at := frameOf(c.Attach)
		if at%PageSize != 0 {
			return nil, errs.BadArg("segment: attach segment at address %#x: not a multiple of the page size, %d", at, PageSize)
		}
		frame := at >> PageBits
		if c.Frames != nil {
			frame |= FramePrivate // peers reach it by its View
		}
		if err := t.tables.AttachRun(size, frame, AnyVPID, c.Rights); err != nil {
			return nil, err
		}
	}
	runtime.AddCleanup(t, (*pins).unpinAll, t.pins)
	if c.Lock != nil && c.Lock.Host > 0 {
		return t, t.borrow(c.Lock)
	}
	return t, nil
}

// Tables are the global address tables, for readers that have no
// ATU, such as processes that share their memory. Only the ATU writes them.
func (t *ATU) Tables() *Tables { return &t.tables }

// Register makes mem accessible with rights to rank peer, or to all if peer is
// AnyPeer, until Deregister. mem may be of the Go heap, which it keeps alive and
// in place, or mapped, which the caller then must not unmap but by Unmap. It
// holds pointer-free values only. Nothing beyond mem becomes accessible, though
// registration is by pages: the byte behind it faults, and so do the next PageSize
// addresses behind the last page, which are never another registration's or the
// attach segment's. Without room for that the error matches ErrResource.
//
// The same memory may be registered many times, in parts and overlapping, with
// different rights and for different peers; each registration has addresses of
// its own and ends by its own Deregister. Takes time linear in the pages.
func (t *ATU) Register(mem []byte, rights Rights, peer int) (Registration, error) {
	if len(mem) == 0 {
		return Registration{}, errs.BadArg("segment: registration of 0 bytes")
	}
	if rights == 0 || rights&^RightsAll != 0 {
		return Registration{}, errs.BadArg("segment: registration with rights %#x: some of %#x are needed", uint8(rights), uint8(RightsAll))
	}
	owner := uint16(AnyVPID)
	if peer != AnyPeer {
		if peer < 0 {
			return Registration{}, errs.BadArg("segment: registration for rank %d", peer)
		}
		if peer >= AnyVPID {
			return Registration{}, errs.NotSupported("segment: registration for rank %d: an entry can name ranks 0..%d only", peer, AnyVPID-1)
		}
		owner = uint16(peer)
	}
	addr := frameOf(mem)
	low, high := addr&^(PageSize-1), alignUp(addr+uint64(len(mem)), PageSize)

	r := &registration{t: t, mem: mem, addr: addr, size: uint64(len(mem)), rights: rights, peer: peer}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return Registration{}, errs.Closed("segment: registration after Close")
	}
	var err error
	if r.runs, err = t.room.alloc(r.inline[:0], (high-low)>>PageBits); err != nil {
		return Registration{}, err
	}
	r.pin = t.pins.pin(mem)
	t.scratch = t.counts.add(low, high, t.scratch[:0])
	if err = t.tables.prepare(r.runs); err == nil {
		err = t.lock(t.scratch)
	}
	if err == nil {
		if err = t.announce(r); err != nil {
			t.unlock(t.scratch)
		}
	}
	if err != nil {
		if _, e := t.counts.sub(low, high, nil); e != nil {
			panic("segment: " + e.Error()) // it was added above
		}
		t.pins.unpin(r.pin)
		t.room.free(r.runs)
		return Registration{}, err
	}
	t.insert(r) // before a unit finds its entries: see Since
	t.enter(r, owner, low)
	return Registration{r}, nil
}

// insert numbers r and makes it the newest.
func (t *ATU) insert(r *registration) {
	r.number = t.count.Load() + 1
	if r.older = t.newest; r.older != nil {
		r.older.newer = r
	}
	t.newest = r
	t.live++
	t.count.Store(r.number)
	if t.c.Count != nil {
		t.c.Count.Store(r.number)
	}
}

// remove takes r out of the list.
func (t *ATU) remove(r *registration) {
	if r.newer == nil {
		t.newest = r.older
	} else {
		r.newer.older = r.older
	}
	if r.older != nil {
		r.older.newer = r.newer
	}
	r.newer, r.older = nil, nil
	t.live--
}

// Registrations is how many registrations there have been so far. It takes no lock.
func (t *ATU) Registrations() uint64 { return t.count.Load() }

// Since reports whether [a, a+n) was reused: whether some of it belongs to a registration
// newer than number count, see Registrations. Bytes that a peer stored there earlier then
// went to other memory, which has been withdrawn. It takes no lock if there has been no
// registration since, and else time linear in those that still exist.
func (t *ATU) Since(a NLA, n, count uint64) bool {
	if t.count.Load() <= count {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := t.newest; r != nil && r.number > count; r = r.older {
		for _, x := range r.runs {
			if x.at < a+NLA(n) && a < x.at+NLA(x.pages<<PageBits) {
				return true
			}
		}
	}
	return false
}

// enter writes the entries of r, whose tables are there and whose first page is
// at low.
func (t *ATU) enter(r *registration, owner uint16, low uint64) {
	for _, x := range r.runs {
		for a, left := x.at, x.pages; left > 0; {
			frame, n := low>>PageBits, left
			if t.c.Frames != nil {
				frame, n = t.c.Frames.Frame(frame, left)
			}
			t.fill(a, n, MakeEntry(owner, frame, r.rights), low, r.addr, r.addr+r.size)
			a, left, low = a+NLA(n<<PageBits), left-n, low+n<<PageBits
		}
	}
}

// fill writes entries for n pages from low on, of which [from, to) is registered:
// e, and what counts up from it.
func (t *ATU) fill(a NLA, n uint64, e Entry, low, from, to uint64) {
	high := low + n<<PageBits
	if from > low {
		must(t.tables.FillPart(a, e, from-low, min(to-low, PageSize)))
		a, n, e = a+PageSize, n-1, e+1<<frameShift
	}
	part := n > 0 && to < high
	if part {
		n--
	}
	if n > 0 {
		must(t.tables.Fill(a, n, e))
	}
	a, e = a+NLA(n<<PageBits), e+Entry(n)<<frameShift
	if part {
		must(t.tables.FillPart(a, e, 0, to-(high-PageSize))) // the region's last page
	}
}

// announce tells the registrar of r's runs, of all or none.
func (t *ATU) announce(r *registration) error {
	if t.c.Registrar == nil {
		return nil
	}
	for i := range r.runs {
		if err := t.c.Registrar.Register(r.run(i)); err != nil {
			for k := range i {
				t.c.Registrar.Deregister(r.run(k))
			}
			return err
		}
	}
	return nil
}

// run returns run i as the registrar gets it.
func (r *registration) run(i int) Run {
	off := r.addr & (PageSize - 1) // of the registered bytes in the pages
	from := uint64(0)
	for _, x := range r.runs[:i] {
		from += x.pages << PageBits
	}
	to := min(from+r.runs[i].pages<<PageBits, off+r.size)
	at := r.runs[i].at
	if i == 0 {
		at, from = at+NLA(off), off
	}
	return Run{At: at, Mem: r.mem[from-off : to-off], Rights: r.rights, Peer: r.peer}
}

// clear revokes the entries of r.
func (t *ATU) clear(r *registration) {
	for _, k := range r.runs {
		must(t.tables.Fill(k.at, k.pages, 0))
	}
}

// must is for what cannot fail: entries in tables that have been prepared.
func must(err error) {
	if err != nil {
		panic("segment: " + err.Error())
	}
}

// lock locks the pages of spans, all or none.
func (t *ATU) lock(spans []span) error {
	switch {
	case t.c.Lock == nil:
		return nil
	case t.loans != nil:
		t.addLoans(spans)
		return nil
	}
	for i, s := range spans {
		if err := sys.Mlock(uintptr(s.start), uintptr(s.end-s.start)); err != nil {
			t.unlock(spans[:i])
			// A range with a hole is locked up to there.
			_ = sys.Munlock(uintptr(s.start), uintptr(s.end-s.start))
			return errs.Resource("segment: %d bytes more than the %d that are locked cannot be (ulimit -l is %d bytes): %v",
				s.end-s.start, t.stats.Locked, sys.LockLimit(), err)
		}
		t.stats.Locked += s.end - s.start
	}
	return nil
}

func (t *ATU) unlock(spans []span) {
	if t.loans != nil {
		t.dropLoans(spans)
		return
	}
	for _, s := range spans {
		if t.stats.Locked > 0 {
			// Fails only if the memory has been unmapped, which unlocked it.
			_ = sys.Munlock(uintptr(s.start), uintptr(s.end-s.start))
			t.stats.Locked -= s.end - s.start
		}
	}
}

// uncount takes a registration of [low, high) back and unlocks what no other
// registration has.
func (t *ATU) uncount(low, high uint64) {
	gone, err := t.counts.sub(low, high, t.scratch[:0])
	if err != nil {
		panic("segment: " + err.Error()) // it was added by Register
	}
	t.scratch = gone[:0]
	t.unlock(gone)
}

// Deregister takes the region back: it revokes the entries, waits until no unit
// that may have read them before is at work any more (the flush protocol of
// section 5.3), lets go of the memory, and frees the addresses. When it returns
// no access reaches the memory by r's addresses; later ones fault. It must not
// be called between Enter and Exit.
//
// A region that Withdraw or Unmap has revoked is freed without an error. A second
// Deregister is an error.
func (t *ATU) Deregister(r Registration) error {
	if r.r == nil || r.r.t != t {
		return errs.BadArg("segment: deregistration of a region that is not of this rank")
	}
	r.r.revoke()
	r.r.mu.Lock()
	defer r.r.mu.Unlock()
	if r.r.state == regGone {
		return errs.BadArg("segment: region of %d bytes: deregistered already", r.r.size)
	}
	r.r.state = regGone
	t.mu.Lock()
	defer t.mu.Unlock()
	t.room.free(r.r.runs)
	t.stats.Deregistered++
	return nil
}

// Revoke is Deregister but for the last step: the addresses stay r's, and fault,
// until Deregister. It is for an owner that knows that peers still remember them.
func (t *ATU) Revoke(r Registration) error {
	if r.r == nil || r.r.t != t {
		return errs.BadArg("segment: revocation of a region that is not of this rank")
	}
	r.r.revoke()
	return nil
}

// revoke waits for another revoke of the same registration that is under way.
func (r *registration) revoke() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != regLive {
		return
	}
	t := r.t
	t.clear(r)
	t.flush()
	if t.c.Registrar != nil {
		for i := range r.runs {
			t.c.Registrar.Deregister(r.run(i))
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.uncount(r.addr&^(PageSize-1), alignUp(r.addr+r.size, PageSize))
	t.pins.unpin(r.pin)
	t.remove(r)
	r.state, r.pin, r.mem = regRevoked, nil, nil
}

// flush waits until every access that is under way has ended. Those that begin
// meanwhile see the tables as they are now, and are not waited for.
func (t *ATU) flush() {
	waits := uint64(0)
	wait := func(seq *atomic.Uint64) {
		if conc.AwaitWord(seq) {
			waits++
		}
	}
	for i := range t.units {
		wait(&t.units[i].seq)
	}
	if o := t.others.Load(); o != nil {
		for _, seq := range *o {
			wait(seq)
		}
	}
	t.mu.Lock()
	t.stats.Flushes++
	t.stats.FlushWaits += waits
	t.mu.Unlock()
}

// Watch makes every flush from now on wait for a unit outside this ATU too:
// one, such as another process that reads Tables in shared memory, that
// makes *seq odd by an atomic read-modify-write before it reads an entry, and
// even again when it has done with the memory.
func (t *ATU) Watch(seq *atomic.Uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*atomic.Uint64
	if o := t.others.Load(); o != nil {
		all = append(all, *o...)
	}
	all = append(all, seq)
	t.others.Store(&all)
}

// Withdraw revokes every region that has a byte of mem, whole: it is to be
// called before mem is unmapped, shrunk or used for other things, where its
// registrations are not known. Their owners still call Deregister. It returns
// how many there were.
func (t *ATU) Withdraw(mem []byte) int {
	from := frameOf(mem)
	to := from + uint64(len(mem))
	t.mu.Lock()
	var hit []*registration
	for r := t.newest; r != nil; r = r.older {
		if meet(from, to, area{start: r.addr, end: r.addr + r.size}) != disjoint {
			hit = append(hit, r)
		}
	}
	t.mu.Unlock()
	for _, r := range hit {
		r.revoke()
	}
	return len(hit)
}

// Unmap withdraws mem, which sys.Map or sys.Reserve has returned, and unmaps it.
func (t *ATU) Unmap(mem []byte) error {
	if len(mem) == 0 {
		return errs.BadArg("segment: unmapping of 0 bytes")
	}
	t.Withdraw(mem)
	return unmap(mem)
}

// Close revokes everything, the attach segment too, and lets go of all memory. The
// error is nil.
func (t *ATU) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	all := make([]*registration, 0, t.live)
	for r := t.newest; r != nil; r = r.older {
		all = append(all, r)
	}
	t.mu.Unlock()
	t.tables.detach()
	t.flush()
	for _, r := range all {
		r.revoke()
	}
	if t.loans != nil {
		t.loans.m.Leave()
	}
	return nil
}

// Stats fills in s. Accesses may lag.
func (t *ATU) Stats(s *ATUStats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*s = t.stats
	s.Regions = t.live
	s.Registered = t.count.Load()
	s.Bytes = t.counts.covered
	s.Faults = t.faults.Load()
	for i := range t.units {
		s.Accesses += t.units[i].seq.Load() / 2
	}
}

// Unit is one of the units that accesses run in: what Nüssle 2008 calls a
// functional unit, which answers a flush when it does not use the address.
type Unit struct {
	seq atomic.Uint64 // odd while an access is inside
	t   *ATU
	_   [128 - 16]byte // a unit has its lines to itself
}

// Enter begins an access. The caller soon calls Exit, on the same goroutine, and
// does not block, Enter again, or Deregister before.
func (t *ATU) Enter() *Unit {
	i := conc.FirstWord(numUnits)
	for {
		for range numUnits {
			u := &t.units[i%numUnits]
			// Either a flush sees the unit inside, or the unit sees the entry revoked.
			if conc.EnterWord(&u.seq) {
				return u
			}
			i++
		}
		runtime.Gosched()
	}
}

// Exit ends the access. What Translate returned must not be touched any more.
func (u *Unit) Exit() { conc.LeaveWord(&u.seq) }

// Translate returns the n bytes at a for an access by rank src that needs the
// rights need. It is valid until Exit. A refusal is a *FaultError: the access
// would have been a segmentation fault. n must not be 0, and the bytes must lie
// at consecutive addresses, as those of one region do.
//
// There is no translation cache: the walk of the tables is as short. Measured,
// of 8 bytes, in ns beside an empty loop: 3.1 by walk and 2.7 by a direct-mapped
// cache of 1024 lines if there are at most 512 pages; 3.2 and 7.2 if there are
// 4,096; 5.3 and 8.4 at 262,144 (BenchmarkTranslate).
func (u *Unit) Translate(src int, a NLA, n uint64, need Rights) ([]byte, error) {
	vpid := uint16(min(src, AnyVPID))
	addr, k, err := u.t.tables.Translate(vpid, a, n, need)
	if err == nil && k == n {
		if u.t.c.Frames == nil {
			return memoryAt(addr, n), nil
		}
		if addr&AddrPrivate != 0 {
			return memoryAt(addr&^AddrPrivate, n), nil
		}
	}
	return u.gather(vpid, a, n, need, addr, k, err)
}

// gather is the rest of Translate, whose pages have been found permitted: the
// first k bytes at addr. They are one piece of memory only if all of them are
// consecutive in the owner's address space.
func (u *Unit) gather(vpid uint16, a NLA, n uint64, need Rights, addr, k uint64, err error) ([]byte, error) {
	f := u.t.c.Frames
	first, done := uint64(0), uint64(0)
	for err == nil {
		if f != nil {
			off := addr & (PageSize - 1)
			page, pages := f.Page(addr>>PageBits, (off+k+PageSize-1)>>PageBits)
			if pages == 0 {
				break // no memory of the owner's, which has not kept to the order
			}
			addr, k = page<<PageBits|off, min(k, pages<<PageBits-off)
		}
		if done == 0 {
			first = addr
		} else if addr != first+done {
			break
		}
		if done += k; done == n {
			return memoryAt(first, n), nil
		}
		if f == nil {
			break
		}
		addr, k, err = u.t.tables.Translate(vpid, a+NLA(done), n-done, need)
	}
	u.t.faults.Add(1)
	if err == nil {
		page := (a + NLA(done)) &^ (PageSize - 1)
		err = &FaultError{Addr: a, Len: n, Need: need, VPID: vpid, Page: page, Have: u.t.tables.Load(page)}
	}
	return nil, err
}

// Len is the region's length in bytes; 0 for none.
func (r Registration) Len() uint64 {
	if r.r == nil {
		return 0
	}
	return r.r.size
}

// Rights are those that the region was registered with; 0 for none.
func (r Registration) Rights() Rights {
	if r.r == nil {
		return 0
	}
	return r.r.rights
}

// At is the address of byte off of the region, and how many bytes from there on
// have consecutive addresses: all of them, unless there was no contiguous room
// for addresses. off is less than Len.
func (r Registration) At(off uint64) (NLA, uint64) {
	x := r.r
	at := off + x.addr&(PageSize-1) // from the first page's begin
	end := x.size + x.addr&(PageSize-1)
	for _, k := range x.runs {
		n := k.pages << PageBits
		if at < n {
			return k.at + NLA(at), min(n, end) - at
		}
		at, end = at-n, end-n
	}
	return 0, 0
}
