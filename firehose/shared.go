package firehose

import (
	"math/bits"
	"sync/atomic"

	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/segment"
)

// shared is where goroutines find hits without the Cache's lock: a table of grants that
// were found under the lock before. Readers are inside a unit while they look and while
// they use what they have found. A firehose that is given up is taken out of the table
// first, and then all units are waited for, with the lock held: so a reader either finds
// nothing or is waited for, and no access goes to an address that has become another
// bucket's. Readers never take the lock inside, nor wait.
//
// All of it is made for the second goroutine that looks: the one that the lock is biased to
// finds what it seeks under the lock, at less than the atomic read-modify-write that a unit
// takes.
type shared struct {
	bits  uint   // of an address in a bucket
	mask  uint64 // of these bits
	units [sharedUnits]unit
	table atomic.Pointer[grants] // changed with the Cache's lock held, as what it holds

	counted int64 // what hits has answered last; with the Cache's lock held
}

// sharedUnits is how many readers may be inside at once; more take the lock.
const sharedUnits = 16

// unit is where one reader at a time is. It has its lines to itself.
type unit struct {
	seq   atomic.Uint64 // odd while a reader is inside
	other atomic.Uint64 // of the visits so far, the one under way included, those that were no hits
	kept  kept          // of the reader that is inside
	_     [128]byte
}

// grants is a hash table of sets of ways places each.
type grants struct {
	sets  []grantSet // a power of two
	shift uint       // of the hash
}

const ways = 4

type grantSet [ways]sharedGrant

// sharedGrant is one that readers may use while key is its bucket's. It changes only while
// key is 0 and no reader is inside that has seen another.
type sharedGrant struct {
	key  atomic.Uint64 // see sharedKey; 0 for none
	nla  atomic.Uint64
	card atomic.Uint64 // Grant.Key
	used atomic.Uint32 // 1 if readers have used it since the table's hand came by
}

// The least and the most sets. A set that is full doubles the table until there are the
// most, 2 MiB; then it gives a place up.
const (
	fewSets  = 16
	mostSets = 1 << 14
)

// sharedKey stands for a bucket of rank; 0 for what is none of a job's.
func sharedKey(rank int, bucket uint64) uint64 {
	if uint(rank) >= maxRanks-1 || bucket >= 1<<40 {
		return 0
	}
	return bucket<<24 | uint64(rank+1)
}

func newShared(bucket uint64) *shared {
	s := &shared{bits: uint(bits.TrailingZeros64(bucket)), mask: bucket - 1}
	s.table.Store(newGrants(fewSets))
	return s
}

func newGrants(sets uint) *grants {
	g := &grants{sets: make([]grantSet, sets), shift: 64}
	for ; sets > 1; sets /= 2 {
		g.shift--
	}
	return g
}

func (g *grants) set(key uint64) *grantSet {
	return &g.sets[key*0x9e3779b97f4a7c15>>g.shift]
}

// find is the place of key, or nil.
func (g *grants) find(key uint64) *sharedGrant {
	set := g.set(key)
	for i := range set {
		if e := &set[i]; e.key.Load() == key {
			return e
		}
	}
	return nil
}

// enter is a unit that the caller is inside of from now on, or nil if too many are.
func (s *shared) enter() *unit {
	i := conc.FirstWord(sharedUnits)
	for k := range uint64(4) {
		if u := &s.units[(i+k)%sharedUnits]; conc.EnterWord(&u.seq) {
			return u
		}
	}
	return nil
}

// exit leaves u. hit reports whether a grant was used.
func (u *unit) exit(hit bool) {
	if !hit {
		u.other.Add(1) // before the visit counts, see hits
	}
	conc.LeaveWord(&u.seq)
}

// Look is where to reach [a, a+n) of rank, which lies in one bucket. The caller is inside a
// unit, and may use it until it leaves.
func (s *shared) Look(rank int, a Addr, n uint64) (g Grant, ok bool) {
	off := uint64(a) & s.mask
	if n > s.mask+1-off {
		return g, false
	}
	key := sharedKey(rank, uint64(a)>>s.bits)
	e := s.table.Load().find(key)
	if e == nil || key == 0 {
		return g, false
	}
	if e.used.Load() == 0 {
		e.used.Store(1) // once after each look of the hand, so that readers share the line
	}
	return Grant{segment.NLA(e.nla.Load() + off), e.card.Load()}, true
}

// add has readers find g, the grant of a bucket that is present, for key.
func (s *shared) add(key uint64, g Grant) {
	for {
		t := s.table.Load()
		if t.find(key) != nil || key == 0 {
			return
		}
		if t.put(key, g) {
			return
		}
		if len(t.sets) < mostSets {
			s.grow(t)
			continue
		}
		s.remove(t.set(key)[g.NLA>>segment.PageBits%ways].key.Load())
	}
}

// put enters key if there is a free place for it.
func (t *grants) put(key uint64, g Grant) bool {
	set := t.set(key)
	for i := range set {
		if e := &set[i]; e.key.Load() == 0 {
			e.nla.Store(uint64(g.NLA))
			e.card.Store(g.Key)
			e.used.Store(0)
			e.key.Store(key)
			return true
		}
	}
	return false
}

// grow makes the table larger. Readers of the old one are waited for, since what is removed
// from now on is removed from the new one alone.
func (s *shared) grow(old *grants) {
	t := newGrants(2 * uint(len(old.sets)))
	for i := range old.sets {
		for k := range old.sets[i] {
			if e := &old.sets[i][k]; e.key.Load() != 0 {
				// Two sets of the new table share what was one set, so that there is room.
				t.put(e.key.Load(), Grant{segment.NLA(e.nla.Load()), e.card.Load()})
			}
		}
	}
	s.table.Store(t)
	s.await()
}

// remove has readers find key no more, and returns when no reader uses it.
func (s *shared) remove(key uint64) {
	if e := s.table.Load().find(key); e != nil && key != 0 {
		e.key.Store(0)
		s.await()
	}
}

// await waits for the readers that are inside now.
func (s *shared) await() {
	for i := range s.units {
		conc.AwaitWord(&s.units[i].seq)
	}
}

// takeMark reports whether readers have used key's bucket since the last call.
func (s *shared) takeMark(key uint64) bool {
	e := s.table.Load().find(key)
	return e != nil && key != 0 && e.used.Load() != 0 && e.used.Swap(0) != 0
}

// hits is how many there have been. While readers come and go it may lack some, but is
// never less than it was before. The caller holds the Cache's lock.
func (s *shared) hits() uint64 {
	n := int64(0)
	for i := range s.units {
		u := &s.units[i]
		visits := u.seq.Load() / 2 // first: of these, other has all that were no hits
		n += int64(visits - u.other.Load())
	}
	s.counted = max(s.counted, n)
	return uint64(s.counted)
}
