package shm

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/sys/place"
	"github.com/argon-go/argon/segment"
)

// Goroutines that send requests to one rank at the same time keep each other from the lock
// of the ring, and each message then waits for lines that another processor has written. So
// a goroutine that has found the lock taken a few times moves to another ring to the same rank, a
// strand. The receiver polls strands as it polls rings of other ranks, under the one lock of its
// mailbox: handlers run one at a time as before. Replies go by the first ring alone, since the
// goroutine that polls sends them all.
//
// A goroutine's own messages keep their order: the first thing that it sends by another ring tells
// how many cells of the one before the receiver has to have taken first (move). It goes back to the
// first ring, whose cells its replies share, when no other goroutine uses that any more.
//
// Strands lie where the job's memory grows. The sender takes room for all of them when the
// first is made, and uses one when the receiver has said that it looks at it: where either
// cannot have the memory, all go by the first ring.
type strands struct {
	// way has the strand of each goroutine, 0 for the first ring, by a hash: goroutines that share
	// an entry share their strand. An entry changes while the locks of the ring that it names, and
	// of the next one, are held. Its lines are seldom written.
	way  [wayCount]atomic.Uint32
	ring [mostStrands]atomic.Pointer[outRing] // made one after the other, with mu

	mu    sync.Mutex // guards what follows; taken with the lock of a ring held
	base  unsafe.Pointer
	told  uint64 // at talkStrands
	moves int    // to strands
}

const (
	mostStrands = 15
	wayCount    = 1 << 12 // of 16 goroutines two share an entry in 3 cases of 100

	// crowdedOften is how often a ring's lock has been found taken before a goroutine moves, and
	// crowdedLater how much more often once each strand has been moved to.
	crowdedOften = 8
	crowdedLater = 1 << 13
	// homeOften is how many messages of a strand there are between two looks at whether its
	// goroutine can go home.
	homeOften = 1024
)

// lockRing locks the ring by which the calling goroutine sends requests to the rank of home, the
// first one, and returns it.
func (box *mailbox) lockRing(home *outRing) *outRing {
	for {
		r, s := home, home.strands.Load()
		var way *atomic.Uint32
		if s != nil {
			way = &s.way[conc.FirstWord(wayCount)]
			if k := way.Load(); k != 0 {
				r = s.ring[k-1].Load()
			}
		}
		if !conc.Enter(&r.lock) && !r.lock.TryLock() {
			r.lock.Lock()
			r.crowded++
		}
		switch {
		case home.strands.Load() != s || s != nil && way.Load() != uint32(r.strand):
			r.lock.Unlock() // another goroutine of this entry has moved
			continue
		case r.crowded >= crowdedOften:
			if r.crowded = 0; s == nil {
				home.strands.Store(box.newStrands(home))
			} else {
				r = r.move(box.spread(s, home, r), home, way)
			}
		case r.strand != 0 && r.tail-r.looked >= homeOften:
			r = r.homeward(home, way)
		}
		return r
	}
}

// newStrands is what home has from now on: without room for any strand, or if goroutines cannot
// be told apart, none is ever made.
func (box *mailbox) newStrands(home *outRing) *strands {
	s := new(strands)
	if sys.HasGoroutine {
		s.base, s.told = box.j.newStrands(box.rank, int(home.dst), box.lane)
	}
	return s
}

// spread is the strand to which a goroutine of ring r moves next, or nil as long as the receiver
// looks at no further one.
func (box *mailbox) spread(s *strands, home, r *outRing) *outRing {
	s.mu.Lock()
	defer s.mu.Unlock()
	made := int(s.told & (segment.PageSize - 1))
	taken := min(atomic.LoadUint64(takenWord(home.sumWords)), uint64(made)) // whatever stands there
	if s.moves < int(taken) || taken == mostStrands {
		to := s.ring[s.moves%mostStrands].Load()
		if s.moves++; s.moves > mostStrands {
			r.crowded = crowdedOften - crowdedLater
		}
		return to
	}
	if int(taken) < made || s.base == nil {
		return nil
	}
	next := box.j.outRing(unsafe.Add(s.base, made*box.j.strand()), int(home.dst), box.lane, conduits.Request)
	next.strand = uint8(made + 1)
	s.ring[made].Store(next)
	if box.life.closed.Load() { // shutRequests may have passed
		next.lock.Lock()
		next.shut()
		next.lock.Unlock()
	}
	s.told++
	atomic.StoreUint64(strandsWord(home.sumWords), s.told)
	atomic.AddUint32(box.word(int(home.dst), ctlOpenSeq), 1)
	return nil
}

// move has the goroutines of an entry send by ring to, if that has room, and returns the ring by
// which they do, locked. The lock of r, theirs so far, is held.
func (r *outRing) move(to, home *outRing, way *atomic.Uint32) *outRing {
	if to == nil || to == r || !to.lock.TryLock() {
		return r
	}
	if !to.room() {
		to.lock.Unlock()
		return r
	}
	t := to.tail
	to.tail++
	to.cancelled++
	p := to.cell(t)
	*head(p) = r.tail
	conc.Release64((*uint64)(p), status(t, stSkip|stDirect|uint64(r.strand)))
	to.crowded = r.crowded
	to.looked, to.before = to.tail, atomic.LoadUint64(headWord(home.sumWords))
	way.Store(uint32(to.strand))
	r.lock.Unlock()
	return to
}

// homeward moves the goroutines of an entry to the first ring if none has used that since the last
// look. The lock of r, a strand, is held.
func (r *outRing) homeward(home *outRing, way *atomic.Uint32) *outRing {
	h := atomic.LoadUint64(headWord(home.sumWords))
	if h == r.before {
		return r.move(home, home, way)
	}
	r.looked, r.before = r.tail, h
	return r
}

// follows reports whether s, the status that the receiver has found, is what move writes of a ring
// of the same ranks, and a number of cells that one can have.
func (r *inRing) follows(s uint64) bool {
	k := s & stTagMask
	if r.class != conduits.Request || s != status(r.head, stSkip|stDirect|k) || k > uint64(len(r.home.strands)) || k == uint64(r.strand) {
		return false
	}
	from := r.from(k)
	return int64(*head(unsafe.Pointer(r.next()))-from.head) <= int64(from.mask+1)
}

// mayFollow reports whether what lies before it has been taken.
func (r *inRing) mayFollow(s uint64) bool {
	return int64(*head(unsafe.Pointer(r.next()))-r.from(s&stTagMask).head) <= 0
}

// from is the first ring, or strand k.
func (r *inRing) from(k uint64) *inRing {
	if k == 0 {
		return r.home
	}
	return r.home.strands[k-1]
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

// of is the ring that slot was reserved in; r is the first one.
func (r *outRing) of(slot conduits.Slot) *outRing {
	if k := slot.Ref >> refStrandShift & refStrandMask; k != 0 {
		return r.strands.Load().ring[k-1].Load()
	}
	return r
}

// Words of a conversation, by where the sender's sum of its requests is.
func headWord(sum *uint64) *uint64 {
	return (*uint64)(unsafe.Add(unsafe.Pointer(sum), talkHead-talkSum))
}

func takenWord(sum *uint64) *uint64 {
	return (*uint64)(unsafe.Add(unsafe.Pointer(sum), talkTaken-talkSum))
}

func strandsWord(sum *uint64) *uint64 {
	return (*uint64)(unsafe.Add(unsafe.Pointer(sum), talkStrands-talkSum))
}

// audit compares what home says of its strands with what it said.
func (s *strands) audit(home *outRing) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := atomic.LoadUint64(strandsWord(home.sumWords)); got != s.told && s.told%segment.PageSize != 0 {
		return fmt.Sprintf("the ring of %vs to rank %d says that its strands are %#x, and it said %#x", home.class, int(home.dst), got, s.told)
	}
	return ""
}

// takeStrands has the polls look at the strands that the sender of r has made, and tells it. The
// caller polls.
func (box *mailbox) takeStrands(r *inRing) {
	if r.class != conduits.Request || r.strand != 0 {
		return
	}
	w := atomic.LoadUint64(strandsWord(r.sumWords))
	off, n := w&^(segment.PageSize-1), int(w&(segment.PageSize-1))
	if n <= len(r.strands) {
		return
	}
	if sound := true; r.base == nil {
		if r.base, sound = box.j.strandsAt(r.src, box.rank, box.lane, off); !sound || n > mostStrands {
			box.damaged(fmt.Sprintf("the ring of %vs from rank %d says that its strands are %#x", r.class, r.src, w))
			return
		}
		if r.base == nil {
			return
		}
	}
	for k := len(r.strands); k < min(n, mostStrands); k++ {
		s := box.j.inRing(unsafe.Add(r.base, k*box.j.strand()), r.src, box.lane, r.class)
		s.strand, s.home = uint8(k+1), r
		r.strands = append(r.strands, s)
		box.join(s)
	}
	atomic.StoreUint64(takenWord(r.sumWords), uint64(len(r.strands)))
}

// newStrands takes memory for strands from src to dst in a lane, nil if there is none; and
// where in the job's file it is.
func (j *job) newStrands(src, dst, lane int) (p unsafe.Pointer, off uint64) {
	size := uint64(mostStrands * j.strand())
	if j.local != nil {
		p, _ = j.strandsAt(src, dst, lane, 0)
		return p, 0
	}
	// A process that touches what has no room there any more dies of SIGBUS.
	if r := sys.Narrowest(sys.MemoryRoom(false), j.growth.space()); 2*size > uint64(r.Free) {
		return nil, 0
	}
	p, r, err := j.mapNew(size)
	if err != nil {
		return nil, 0
	}
	return p, r.off
}

// strandsAt is the memory for strands from src to dst in a lane, nil if this process cannot have
// it; and whether it can lie where it is said to.
func (j *job) strandsAt(src, dst, lane int, off uint64) (p unsafe.Pointer, sound bool) {
	size := uint64(mostStrands * j.strand())
	if l := j.local; l != nil {
		i := -1 - j.talkIndex(j.place(src), j.place(dst), lane)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.talks[i] == nil {
			l.talks[i] = block(int(size))
		}
		return l.talks[i], off == 0
	}
	g := &j.growth
	if p = j.mapOld(off, size, true); p != nil {
		if node, ok := place.OwnNode(); ok { // before the sender touches it: see lieOn
			_ = sys.PreferNode(p, int64(size), node)
		}
		return p, true
	}
	return nil, off%segment.PageSize == 0 && (g.grown(off, size) || g.closed())
}
