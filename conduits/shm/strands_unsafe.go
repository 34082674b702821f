package shm

import (
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/sys"
)

// Goroutines that send requests to one rank at the same time keep each other from the lock
// of the ring, and each message then waits for lines that another processor has written. So
// a goroutine that has found the lock taken a few times gets another ring to the same rank, a
// strand, which it has for itself as long as there are enough. The receiver polls strands as
// it polls rings of other ranks, under the one lock of its mailbox: handlers run one at
// a time as before.
//
// A goroutine's own messages keep their order: it changes from one ring to another only
// when the receiver has taken all that it has sent by the first, which it sees by the
// statuses in the cells (taken). It goes back to the first ring, whose cells its replies
// share, when no other goroutine uses that any more.
//
// Replies go by one ring, since the goroutine that polls sends them all.
type strands struct {
	// owner has the goroutines that have a strand, in sets by a hash of theirs, with the
	// number of the strand in the topmost byte. An entry changes while the lock of the strand
	// is held that it names, or is 0, and home's: but to 0 without the latter. Its lines are
	// seldom written.
	owner [strandSets * strandWays]atomic.Uint64

	ring [mostStrands]atomic.Pointer[outRing] // made on first use, with home's lock
	turn int                                  // which entry of a full set is looked at next; home's lock
}

const (
	// mostStrands is how many further rings there are to each rank, in jobs of up to
	// strandRanks: with more ranks than that, few processors are left to a rank's goroutines.
	mostStrands = 15
	strandRanks = 32

	strandSets, strandWays = 8, 8 // a set fills a line

	strandShift = 56

	// crowdedOften is how often a ring's lock has been found taken before the next
	// goroutine gets a strand, and crowdedLater how much more often if one has got none;
	// strandLooks how often one looks, of about 15 ns each, until the receiver has taken
	// what is in the ring: longer than a receiver takes that polls.
	crowdedOften = 8
	longTurn     = 16 // messages of one goroutine, after which another one's count as crowding
	crowdedLater = 512
	strandLooks  = 256

	// homeOften is how many messages of a strand there are between two looks at whether
	// its goroutine can go home.
	homeOften = 1024
)

// strands is how many strands there are from each rank to each.
func (g geometry) strands() int {
	if g.n > strandRanks {
		return 0
	}
	return mostStrands
}

// lockRing locks the ring by which the calling goroutine sends requests to the rank of r, the
// first one, and returns it.
func (box *mailbox) lockRing(r *outRing) *outRing {
	if s := r.strands.Load(); s != nil {
		if own := s.lockRing(r); own != nil {
			return own
		}
	}
	if conc.Enter(&r.lock) {
		return r
	}
	if !r.lock.TryLock() {
		r.lock.Lock()
		r.crowded++
	} else if g := uint64(sys.Goroutine()); g != r.before {
		// Goroutines that take turns on one processor find it free, and pay for a mutex.
		if r.tail-r.looked >= longTurn {
			r.crowded++
		}
		r.before, r.looked = g, r.tail
	}
	if r.crowded < crowdedOften || box.lane != 0 || box.j.strands() == 0 || !sys.HasGoroutine {
		return r
	}
	r.crowded = 0
	own := box.unravel(r)
	if own == nil {
		r.crowded = -crowdedLater
		own = r
	}
	return own
}

// find is where g has its entry, or -1.
func (s *strands) find(g uint64) int {
	at := int(conc.FirstWord(strandSets)) * strandWays
	for i := at; i < at+strandWays; i++ {
		if s.owner[i].Load()&(1<<strandShift-1) == g {
			return i
		}
	}
	return -1
}

// lockRing locks the calling goroutine's strand and returns it, nil if it has none.
func (s *strands) lockRing(home *outRing) *outRing {
	g := uint64(sys.Goroutine())
	i := s.find(g)
	if i < 0 {
		return nil
	}
	v := s.owner[i].Load()
	if v&(1<<strandShift-1) != g {
		return nil
	}
	r := s.ring[v>>strandShift].Load()
	if !conc.Enter(&r.lock) {
		r.lock.Lock()
	}
	if s.owner[i].Load() != v { // lost to another goroutine, with all taken
		r.lock.Unlock()
		return nil
	}
	if r.tail-r.looked >= homeOften {
		tail := home.peek()
		if tail == r.before && r.drained() {
			s.owner[i].Store(0)
			r.lock.Unlock()
			return nil
		}
		r.before, r.looked = tail, r.tail
	}
	return r
}

// peek is the tail of a ring whose lock is not held: perhaps not the newest.
func (r *outRing) peek() uint64 {
	if conc.Race {
		r.lock.Lock()
		defer r.lock.Unlock()
	}
	return atomic.LoadUint64(&r.tail)
}

// unravel gives the calling goroutine a strand, and returns it locked and home unlocked; or
// nil, with home locked, if there is none for it now, or its messages are not taken. The
// lock of home is held.
func (box *mailbox) unravel(home *outRing) *outRing {
	if home.open.Load() != 0 || home.limit == 0 {
		return nil
	}
	s := home.strands.Load()
	if s == nil {
		s = new(strands)
		home.strands.Store(s)
	}
	i := box.assign(s, home)
	if i < 0 {
		return nil
	}
	v := s.owner[i].Load()
	r := s.ring[v>>strandShift].Load()
	home.lookAtHead()
	from, to := home.limit-home.mask-1, home.tail
	home.lock.Unlock()
	looks := strandLooks
	for ; from != to && looks > 0; looks-- {
		if home.taken(from) {
			from++
		} else {
			conc.Changed((*uint64)(home.cell(from)), atomic.LoadUint64((*uint64)(home.cell(from))), 1)
		}
	}
	r.lock.Lock()
	if from == to && s.owner[i].Load() == v {
		return r
	}
	s.owner[i].CompareAndSwap(v, 0)
	r.lock.Unlock()
	home.lock.Lock()
	return nil
}

// assign makes an entry for the calling goroutine, which has none, and returns where it is, or
// -1. Of a full set it looks at one that it has seen idle before. The lock of home is held.
func (box *mailbox) assign(s *strands, home *outRing) int {
	at := int(conc.FirstWord(strandSets)) * strandWays
	to := -1
	for i := at; i < at+strandWays; i++ {
		if s.owner[i].Load() == 0 {
			to = i
		}
	}
	if to < 0 {
		to = at + s.turn%strandWays
		s.turn++
		r := s.ring[s.owner[to].Load()>>strandShift].Load()
		tail := r.peek()
		idle := tail == r.idleTail
		if r.idleTail = tail; !idle || !r.lock.TryLock() {
			return -1
		}
		idle = r.drained()
		if idle {
			s.owner[to].Store(0)
		}
		r.lock.Unlock()
		if !idle {
			return -1
		}
	}
	var owners [mostStrands]int
	for i := range s.owner {
		if v := s.owner[i].Load(); v != 0 {
			owners[v>>strandShift]++
		}
	}
	best := 0
	for k, n := range owners {
		if n < owners[best] {
			best = k
		}
	}
	if s.ring[best].Load() == nil {
		s.ring[best].Store(box.connectStrand(home, best))
	}
	s.owner[to].Store(uint64(sys.Goroutine()) | uint64(best)<<strandShift)
	return to
}

// connectStrand makes strand k beside home, and makes it known to the receiver.
func (box *mailbox) connectStrand(home *outRing, k int) *outRing {
	r := box.j.outRing(box.rank, home.dst, box.lane, k+1, conduits.Request)
	if box.life.closed.Load() {
		r.shut()
	}
	atomic.OrUint64(home.strandsWord(), 1<<k)
	atomic.AddUint32(box.word(home.dst, ctlOpenSeq), 1)
	return r
}

// taken reports whether the receiver has taken message t, if that has been published.
func (r *outRing) taken(t uint64) bool {
	s := atomic.LoadUint64((*uint64)(r.cell(t)))
	return s == 0 || s>>stSeqShift != (t+1)&stSeqMask
}

// drained reports whether the receiver has taken all that was sent by a strand. The lock is
// held, so that no message is being written but those that open counts.
func (r *outRing) drained() bool {
	if r.open.Load() != 0 || r.limit == 0 {
		return false
	}
	r.lookAtHead()
	for t := r.limit - r.mask - 1; t != r.tail; t++ {
		if !r.taken(t) {
			return false
		}
	}
	return true
}

// each is r and its strands.
func (r *outRing) each(f func(*outRing)) {
	f(r)
	if s := r.strands.Load(); s != nil {
		for i := range s.ring {
			if r := s.ring[i].Load(); r != nil {
				f(r)
			}
		}
	}
}

// of is the ring that s was reserved in; r is the first one.
func (r *outRing) of(s conduits.Slot) *outRing {
	if k := s.Ref >> refStrandShift & refStrandMask; k != 0 {
		return r.strands.Load().ring[k-1].Load()
	}
	return r
}

// strandsWord has, by bits, the strands that the sender of these messages has made.
func (r *outRing) strandsWord() *uint64 {
	return (*uint64)(unsafe.Add(unsafe.Pointer(r.sumWords), talkStrands-talkSum))
}

// admitStrands takes up the strands that other ranks have made. The caller polls.
func (box *mailbox) admitStrands() {
	for _, r := range box.in {
		for k := range box.j.strands() {
			if r.unknown()>>k&1 == 0 {
				continue
			}
			r.strands |= 1 << k
			s := box.j.inRing(r.src, box.rank, box.lane, k+1, r.class)
			s.index = len(box.in)
			box.in = append(box.in, s)
			box.watch = append(box.watch, s.next())
		}
	}
}

// unknown has the bits of strands that the sender of r has made and this rank not taken up.
func (r *inRing) unknown() uint64 {
	if r.class != conduits.Request || r.strand != 0 {
		return 0
	}
	w := atomic.LoadUint64((*uint64)(unsafe.Add(unsafe.Pointer(r.sumWords), talkStrands-talkSum)))
	return w & (1<<mostStrands - 1) &^ r.strands
}
