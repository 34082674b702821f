package shm

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// memory is the memory of all ranks as this one reaches it, and its own as others do: the
// segments, by views; what is registered, by address tables (foreign_unsafe.go); and what
// MapMemory gives (grow_unsafe.go). Attach makes the tables by rank, which do not change
// afterwards; the watcher shuts the window when the job has failed.
type memory struct {
	conduits.OwnMemory
	seat
	life   *lifecycle
	views  []segment.View
	sizes  []uint64 // of all segments, by rank-first, and what others may do to them
	rights []segment.Rights
	window []segment.View // what Views answers: views, until the job has failed

	accessed []atomic.Pointer[conduits.AccessCounts] // by Post of any lane: by rank-first, made on first use
	faults   atomic.Uint64                           // see conduits.Stats
	calls    atomic.Uint64                           // conduits.Stats.SystemCalls

	vpid    uint16 // what this rank is called in others' tables
	frames  segment.Frames
	units   unsafe.Pointer         // nil in one process, as what follows
	peers   []atomic.Pointer[peer] // by rank-first, made on first use
	cookie  *[regCookieBytes]byte  // see present
	probing sync.Mutex             // guards the finding out of peer.vm
	noVM    bool                   // for tests: this rank may not reach into other processes
	words   bool                   // sys.CopiesWords
	lost    lostUnits
}

// Views is the direct-access table, from the lowest to the highest of the ranks that
// share this memory.
func (mem *memory) Views() (first int, views []segment.View) { return mem.first, mem.window }

// near reports whether rank is in the table of views. If it does not share this memory
// (see reaches) its view refuses all.
func (mem *memory) near(rank int) bool { return uint(rank-mem.first) < uint(len(mem.views)) }

// reaches reports whether rank shares this memory and has attached.
func (mem *memory) reaches(rank int) bool { return mem.near(rank) && mem.j.has(rank) }

// count counts an access by Post.
func (mem *memory) count(a *conduits.Access) {
	i := uint(a.Rank - mem.first)
	if i >= uint(len(mem.accessed)) {
		return
	}
	c := mem.accessed[i].Load()
	if c == nil {
		c = mem.countFor(a.Rank)
	}
	c.Accessed(a)
}

// countFor makes the counts of a rank of the table.
func (mem *memory) countFor(rank int) *conduits.AccessCounts {
	if !mem.j.has(rank) {
		return new(conduits.AccessCounts) // that are nowhere: there is no such rank
	}
	to := &mem.accessed[rank-mem.first]
	to.CompareAndSwap(nil, new(conduits.AccessCounts))
	return to.Load()
}

// SegmentSize is the size that rank attached.
func (mem *memory) SegmentSize(rank int) uint64 {
	if !mem.near(rank) {
		return 0
	}
	return mem.sizes[rank-mem.first]
}

// SegmentRights are the rights of this rank to rank's segment.
func (mem *memory) SegmentRights(rank int) segment.Rights {
	switch {
	case !mem.near(rank):
		return 0
	case rank == mem.rank:
		return segment.RightsAll
	}
	return mem.rights[rank-mem.first]
}

// System is an area of rank, nil if rank does not share this memory.
func (mem *memory) System(rank int, area conduits.SystemArea) []byte {
	switch {
	case !mem.j.has(rank):
		return nil
	case area == conduits.SystemStaging:
		return unsafe.Slice((*byte)(mem.j.stagingOf(rank)), mem.j.staging())
	}
	return unsafe.Slice((*byte)(unsafe.Add(mem.j.ctl(rank), ctlSystem)), conduits.SystemBytes)
}

// shutWindow has direct accesses take the slow path from now on, where they learn
// of the failure: no code of this package runs in a loop of them.
func (mem *memory) shutWindow() {
	for i := range mem.window {
		mem.window[i].Shut()
	}
}

// MapMemory maps memory of the job's file, which peers map, too; ranks that are in
// one process have each other's anyway.
func (mem *memory) MapMemory(n uint64) ([]byte, error) {
	if mem.j.local != nil {
		return mem.OwnMemory.MapMemory(n)
	}
	size, err := conduits.CheckMap(n)
	switch {
	case err != nil:
		return nil, err
	case !mem.life.attached.Load():
		return nil, errs.NotReady("shm: no memory to be mapped before Attach")
	case mem.life.closed.Load():
		return nil, errClosed
	}
	// A process that touches what has no room there any more dies of SIGBUS.
	if r := sys.Narrowest(sys.MemoryRoom(false), mem.j.growth.space()); size > uint64(r.Free) {
		return nil, errs.Resource("shm: %d bytes of memory: %v", size, r)
	}
	p, r, err := mem.j.mapNew(size)
	if err != nil {
		return nil, err
	}
	b := unsafe.Slice((*byte)(p), size)
	if err := mem.frames.Share(b, r.off>>segment.PageBits); err != nil {
		return nil, err // only if the header's end has been tampered with
	}
	g := &mem.j.growth
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.maps == nil {
		g.maps = map[unsafe.Pointer]room{}
	}
	g.maps[p] = r
	return b, nil
}

// UnmapMemory is the end of MapMemory: afterwards no rank has the memory, and the
// machine has it back.
func (mem *memory) UnmapMemory(b []byte) error {
	if mem.j.local != nil {
		return mem.OwnMemory.UnmapMemory(b)
	}
	p, g := unsafe.Pointer(unsafe.SliceData(b)), &mem.j.growth
	g.mu.Lock()
	r, ok := g.maps[p]
	if ok && r.n == uint64(len(b)) {
		delete(g.maps, p)
	}
	g.mu.Unlock()
	if !ok || r.n != uint64(len(b)) {
		return errs.BadArg("shm: %d bytes at %p are not what MapMemory has returned", len(b), p)
	}
	if t := mem.MadeATU(); t != nil {
		t.Withdraw(b)
	}
	if err := mem.frames.Unshare(b); err != nil {
		return err
	}
	err := sys.Discard(p, int64(r.n))
	if !isKept(b) { // else no call gets the room, nor the addresses, which are remembered
		g.mu.Lock() // or mapAt could get these addresses before they are forgotten
		if err := sys.Unmap(p, int64(r.n)); err != nil {
			g.mu.Unlock()
			return errs.Resource("shm: %v", err)
		}
		delete(g.mapped, p)
		if err == nil {
			g.giveBack(r)
		}
		g.mu.Unlock()
	}
	if err != nil {
		return errs.Resource("shm: %d bytes of memory stay taken until the job ends: %v", r.n, err)
	}
	return nil
}
