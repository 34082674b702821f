package firehose

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/segment"
)

// TestSharedAgainstModel compares what readers find with a map. The table may give up what
// is in it for want of a place, and finds nothing wrong.
func TestSharedAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const bucket = segment.PageSize
		s := newShared(bucket)
		model := map[[2]uint64]Grant{}
		marked := map[[2]uint64]bool{}
		place := rapid.Custom(func(t *rapid.T) [2]uint64 {
			return [2]uint64{rapid.Uint64Range(0, 3).Draw(t, "rank"), rapid.Uint64Range(0, 300).Draw(t, "bucket")}
		})
		hits := uint64(0)
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			at := place.Draw(t, "place")
			key := sharedKey(int(at[0]), at[1])
			switch rapid.IntRange(0, 4).Draw(t, "do") {
			case 0, 1:
				if _, ok := model[at]; !ok {
					model[at] = Grant{segment.NLA(rapid.Uint64Range(1, 1<<20).Draw(t, "nla") * bucket), rapid.Uint64().Draw(t, "key")}
				}
				s.add(key, model[at])
			case 2:
				s.remove(key)
				delete(model, at)
				delete(marked, at)
			case 3:
				if was := s.takeMark(key); was && !marked[at] {
					t.Fatalf("%v is marked, and was not used", at)
				}
				delete(marked, at)
			default:
				u := s.enter()
				if u == nil {
					t.Fatal("there is no unit")
				}
				off := rapid.Uint64Range(0, bucket-1).Draw(t, "off")
				n := rapid.Uint64Range(1, bucket+1).Draw(t, "n")
				g, ok := s.Look(int(at[0]), Addr(at[1]*bucket+off), n)
				u.exit(ok)
				want, there := model[at]
				if want.NLA += segment.NLA(off); ok != (there && off+n <= bucket) || ok && g != want {
					t.Fatalf("%d bytes from %d of %v: %+v, %v, want %+v, %v", n, off, at, g, ok, want, there)
				}
				if ok {
					hits++
					marked[at] = true
				}
			}
			if got := s.hits(); got != hits {
				t.Fatalf("%d hits are counted, want %d", got, hits)
			}
		}
	})
}

// TestSharedIsBounded: the table has a limit, beyond which it forgets.
func TestSharedIsBounded(t *testing.T) {
	s := newShared(segment.PageSize)
	const all = 3 * ways * mostSets
	for b := range uint64(all) {
		s.add(sharedKey(0, b), Grant{NLA: segment.NLA((b + 1) * segment.PageSize)})
	}
	if n := len(s.table.Load().sets); n != mostSets {
		t.Errorf("%d sets, want %d", n, mostSets)
	}
	found := 0
	for b := range uint64(all) {
		if g, ok := s.Look(0, Addr(b*segment.PageSize), 8); ok {
			found++
			if g.NLA != segment.NLA((b+1)*segment.PageSize) {
				t.Fatalf("bucket %d is at %v", b, g.NLA)
			}
		}
	}
	if found < ways*mostSets/2 {
		t.Errorf("%d of %d are found: there is room for %d", found, all, ways*mostSets)
	}
}

// TestRemovedWhileRead: while a reader uses what it has found, that is not removed; when
// remove has returned no reader uses it.
func TestRemovedWhileRead(t *testing.T) {
	const readers, rounds, buckets = 3, 2000, 8
	s := newShared(segment.PageSize)
	var alive [buckets]atomic.Bool // what a grant stands for
	var stop atomic.Bool
	var wg sync.WaitGroup
	for r := range readers {
		wg.Go(func() {
			for i := r; !stop.Load(); i++ {
				if u := s.enter(); u != nil {
					g, ok := s.Look(1, Addr(i%buckets*segment.PageSize), 8)
					if i%3 == 0 {
						runtime.Gosched()
					}
					if ok && !alive[g.NLA/segment.PageSize-1].Load() {
						t.Error("what a reader uses is gone")
						stop.Store(true)
					}
					u.exit(ok)
				}
				runtime.Gosched()
			}
		})
	}
	for i := 0; i < rounds && !stop.Load(); i++ {
		b := i * 5 % buckets
		alive[b].Store(true)
		s.add(sharedKey(1, uint64(b)), Grant{NLA: segment.NLA((b + 1) * segment.PageSize)})
		runtime.Gosched()
		s.remove(sharedKey(1, uint64(b)))
		alive[b].Store(false)
	}
	stop.Store(true)
	wg.Wait()
}

// TestVictimSparesShared: what readers have used since the hand came by is no victim.
func TestVictimSparesShared(t *testing.T) {
	var tab table
	for b := range uint64(4) {
		tab.unuse(tab.insert(b, present))
	}
	asked := map[uint64]int{}
	tab.used = func(b uint64) bool { asked[b]++; return b == 0 && asked[b] == 1 }
	tab.slots[tab.find(0)].shared = true
	tab.slots[tab.find(1)].shared = true
	for _, want := range []uint64{1, 2, 3, 0} {
		i := tab.victim()
		if b := tab.slots[i].bucket; b != want {
			t.Fatalf("the victim is bucket %d, want %d", b, want)
		}
		tab.remove(i)
	}
	if asked[2] != 0 {
		t.Error("bucket 2 is not shared, and was asked for")
	}
}

// TestVictimAmongReaders: the search for a victim ends although readers mark every bucket
// again as soon as its mark is taken away. The oldest is the victim.
func TestVictimAmongReaders(t *testing.T) {
	const all = 5
	var tab table
	for b := range uint64(all) {
		i := tab.insert(b, present)
		tab.slots[i].shared = true
		tab.use(i) // marked by the owner of the lock, too
		tab.unuse(i)
		tab.unuse(i)
	}
	asked := 0
	tab.used = func(uint64) bool {
		if asked++; asked > 2*all {
			t.Fatalf("%d buckets, and no victim after %d looks", all, asked-1)
		}
		return true
	}
	if b := tab.slots[tab.victim()].bucket; b != 0 || asked < all {
		t.Errorf("the victim is bucket %d after %d looks at marks, want the oldest, after %d", b, asked, all)
	}
}

// TestHitsDoNotGoBack: readers that find nothing never count as hits, not for a moment, and
// one that finds something counts once.
func TestHitsDoNotGoBack(t *testing.T) {
	const readers, misses = 2, 20000
	s := newShared(segment.PageSize)
	s.add(sharedKey(0, 0), Grant{NLA: segment.PageSize})
	var wg sync.WaitGroup
	var under atomic.Int32
	under.Store(readers)
	for range readers {
		wg.Go(func() {
			defer under.Add(-1)
			for i := 0; i < misses; {
				if u := s.enter(); u != nil {
					u.exit(i == misses/2)
					i++
				}
			}
		})
	}
	for last := uint64(0); under.Load() > 0; {
		n := s.hits()
		if n < last || n > readers {
			t.Errorf("%d hits after %d, at most %d were made", n, last, readers)
			break
		}
		last = n
	}
	wg.Wait()
	if n := s.hits(); n != readers {
		t.Errorf("%d hits, want %d", n, readers)
	}
}
