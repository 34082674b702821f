package conformance

import (
	"encoding/binary"
	"errors"
	"math"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/segment"
)

// extendedChecks are those of package extended but for atomics.
var extendedChecks = append([]check{
	{name: "extended/sizes", seeded: true, run: extendedSizes},      // testgasnet
	{name: "extended/values", seeded: true, run: extendedValues},    // testgasnet, testval
	{name: "extended/memset", seeded: true, run: extendedMemset},    // testlegacy
	{name: "extended/lists", seeded: true, run: extendedLists},      // testgasnet
	{name: "extended/regions", seeded: true, run: extendedRegions},  // testgasnet
	{name: "extended/own accesses", seeded: true, run: extendedOwn}, // none
	{name: "extended/slices", seeded: true, run: extendedSlices},    // testslice
	{name: "extended/shapes", seeded: true, run: extendedShapes},    // testvis
	{name: "extended/outstanding", run: extendedOutstanding},        // none drives the number that the specification gives
	{name: "extended/bad-arguments", run: extendedBadArguments},     // testgasnet
	{name: "extended/rights", run: extendedRights},                  // none
	{name: "extended/ring", seeded: true, run: extendedRing},        // testratomic, acquire and release
}, atomicChecks...)

// A form is a way to begin and complete an operation.
type form int

const (
	blocking form = iota
	byHandle
	bulkByHandle // puts only
	implicitly   // in the set that the rank shares
	counted      // in a set of one's own
	bulkCounted  // puts only
	inRegion     // in an access region
	numForms
)

// eachHandling runs body with and without AlwaysHandle.
func eachHandling(c *ctx, n int, size int, body func(s *stack)) {
	c.Helper()
	for _, always := range []bool{false, true} {
		c.stack(n, conduits.Config{}, layers{segment: contract.Pages(size), ext: extended.Config{AlwaysHandle: always}}, func(s *stack) {
			body(s)
			if k := s.ext.Outstanding(); k != 0 {
				s.Errorf("%d handles are outstanding at the end", k)
			}
		})
		if c.Failed() {
			c.Logf("AlwaysHandle %v", always)
			return
		}
	}
}

// put puts in a form and completes it. When the form allows it the source is
// spoilt before, else after.
func (s *stack) put(f form, dst int, to segment.NLA, src []byte) {
	s.C.Helper()
	switch f {
	case byHandle:
		h, err := s.ext.PutNB(dst, to, src)
		s.Must(err)
		contract.Spoil(src)
		s.Must(s.ext.Wait(h))
		return
	case bulkByHandle:
		h, err := s.ext.PutBulkNB(dst, to, src)
		s.Must(err)
		for done := false; !done; {
			if done, err = s.ext.Try(h); !done {
				s.Must(err)
				s.poll()
			}
		}
		s.Must(err)
	case implicitly:
		s.Must(s.ext.Implicit().PutNBI(dst, to, src))
		contract.Spoil(src)
		s.Must(s.ext.Implicit().Sync(extended.Puts))
		return
	case counted, bulkCounted:
		r := s.ext.NewRegion()
		if f == bulkCounted {
			s.Must(r.PutBulkNBI(dst, to, src))
		} else {
			s.Must(r.PutNBI(dst, to, src))
			contract.Spoil(src)
		}
		for done := false; !done; {
			var err error
			done, err = r.Try(extended.All)
			s.Must(err)
			s.poll()
		}
		if f == counted {
			return
		}
	case inRegion:
		var r extended.Region
		s.Must(s.ext.BeginRegion(&r))
		s.Must(r.PutBulkNBI(dst, to, src))
		h, err := r.End()
		s.Must(err)
		s.Must(s.ext.Wait(h))
	default:
		s.Must(s.ext.Put(dst, to, src))
	}
	contract.Spoil(src)
}

// get is put's counterpart.
func (s *stack) get(f form, dst []byte, src int, from segment.NLA) {
	s.C.Helper()
	switch f {
	case byHandle, bulkByHandle:
		h, err := s.ext.GetNB(src, from, dst)
		s.Must(err)
		s.Must(s.ext.Wait(h))
	case implicitly:
		s.Must(s.ext.Implicit().GetNBI(src, from, dst))
		s.Must(s.ext.Implicit().Sync(extended.Gets))
	case counted, bulkCounted:
		r := s.ext.NewRegion()
		s.Must(r.GetNBI(src, from, dst))
		s.Must(r.Sync(extended.Gets))
	case inRegion:
		var r extended.Region
		s.Must(s.ext.BeginRegion(&r))
		s.Must(r.GetNBI(src, from, dst))
		h, err := r.End()
		s.Must(err)
		s.Must(s.ext.Wait(h))
	default:
		s.Must(s.ext.Get(src, from, dst))
	}
}

// extendedSizes: puts and gets of all sizes, in all forms, at odd places, to every
// rank; what lies before and behind stays.
func extendedSizes(c *ctx) {
	const n, edge = 2, 16
	most := int(min(c.Offer.Limits.MaxSegment/8, 150<<10))
	list := contract.Sizes(70, most)
	eachHandling(c, n, n*(most+4*edge), func(s *stack) {
		base := s.Rank * (most + 3*edge)
		guard := contract.Fill(make([]byte, edge), 99, 0)
		for k, size := range list {
			dst := s.RNG.IntN(n)
			f := form(k % int(numForms))
			if size <= 70 && s.RNG.IntN(2) == 0 {
				f = form(s.RNG.IntN(int(numForms)))
			}
			off := base + edge + s.RNG.IntN(edge)
			key := contract.Mix(c.Seed, uint64(s.Rank), uint64(k))
			s.Must(s.ext.Put(dst, contract.At(off-edge), guard))
			s.Must(s.ext.Put(dst, contract.At(off+size), guard))
			src := contract.Fill(make([]byte, size+8)[s.RNG.IntN(8):][:size], key, 0)
			s.put(f, dst, contract.At(off), src)
			got := contract.Fill(make([]byte, size+2*edge), 5, 0)
			mid := s.RNG.IntN(2 * edge)
			s.get(f, got[mid:][:size], dst, contract.At(off))
			if i := contract.Wrong(got[mid:][:size], key, 0); i >= 0 {
				s.Fatalf("%d bytes at %v of rank %d, form %d: byte %d is %#x, not %#x", size, contract.At(off), dst, f, i, got[mid+i], contract.ByteOf(key, i))
			}
			if i := contract.Wrong(got[:mid], 5, 0); i >= 0 {
				s.Fatalf("get of %d bytes, form %d, wrote %d bytes before", size, f, mid-i)
			}
			if i := contract.Wrong(got[mid+size:], 5, mid+size); i >= 0 {
				s.Fatalf("get of %d bytes, form %d, wrote byte %d behind", size, f, i)
			}
			for _, o := range []int{off - edge, off + size} {
				s.Must(s.ext.Get(dst, contract.At(o), got[:edge]))
				if i := contract.Differ(got[:edge], guard); i >= 0 {
					s.Fatalf("put of %d bytes at %v, form %d, wrote byte %v", size, contract.At(off), f, contract.At(o+i))
				}
			}
		}
	})
}

// extendedValues: values of 1 to 8 bytes at every alignment: the low bytes are
// put, nothing beside them is touched, and a get extends with zeros.
func extendedValues(c *ctx) {
	const n, room = 3, 32
	eachHandling(c, n, n*room, func(s *stack) {
		base := s.Rank * room
		got := make([]byte, room)
		for dst := range n {
			for size := 1; size <= 8; size++ {
				for shift := range 9 {
					model := contract.Fill(make([]byte, room), uint64(size*100+shift), 0)
					s.Must(s.ext.Put(dst, contract.At(base), model))
					to, v := contract.At(base+8+shift), s.RNG.Uint64()|1<<63
					var b [8]byte
					binary.LittleEndian.PutUint64(b[:], v)
					copy(model[8+shift:], b[:size])
					switch s.RNG.IntN(4) {
					case 0:
						s.Must(s.ext.PutValue(dst, to, v, size))
					case 1:
						h, err := s.ext.PutValueNB(dst, to, v, size)
						s.Must(err)
						s.Must(s.ext.Wait(h))
					case 2:
						s.Must(s.ext.Implicit().PutValueNBI(dst, to, v, size))
						s.Must(s.ext.Implicit().Sync(extended.All))
					default:
						var r extended.Region
						s.Must(s.ext.BeginRegion(&r))
						s.Must(r.PutValueNBI(dst, to, v, size))
						h, err := r.End()
						s.Must(err)
						s.Must(s.ext.Wait(h))
					}
					s.Must(s.ext.Get(dst, contract.At(base), got))
					if i := contract.Differ(got, model); i >= 0 {
						s.Fatalf("value %#x of %d bytes at offset %d: byte %d is %#x, not %#x", v, size, 8+shift, i, got[i], model[i])
					}
					want := v << (64 - 8*size) >> (64 - 8*size)
					w, err := s.ext.GetValue(dst, to, size)
					s.Must(err)
					nb := ^uint64(0)
					h, err := s.ext.GetValueNB(dst, to, &nb, size)
					s.Must(err)
					s.Must(s.ext.Wait(h))
					if w != want || nb != want {
						s.Fatalf("value of %d bytes at offset %d is %#x, and %#x by handle, not %#x", size, 8+shift, w, nb, want)
					}
				}
			}
		}
	})
}

// extendedMemset: a range is filled, and only the range.
func extendedMemset(c *ctx) {
	const n, room = 2, 3000
	eachHandling(c, n, n*room, func(s *stack) {
		base := s.Rank * room
		got := make([]byte, room)
		for k, size := range append(contract.Sizes(40, 2048), 0) {
			dst, off := k%n, s.RNG.IntN(room-2048)
			model := contract.Fill(make([]byte, room), uint64(k), 0)
			s.Must(s.ext.Put(dst, contract.At(base), model))
			v := byte(s.RNG.Uint32())
			for i := range size {
				model[off+i] = v
			}
			to := contract.At(base + off)
			switch k % 4 {
			case 0:
				s.Must(s.ext.Memset(dst, to, v, size))
			case 1:
				h, err := s.ext.MemsetNB(dst, to, v, size)
				s.Must(err)
				s.Must(s.ext.WaitAll([]extended.Handle{h}))
			case 2:
				s.Must(s.ext.Implicit().MemsetNBI(dst, to, v, size))
				s.Must(s.ext.Implicit().Sync(extended.Puts))
			default:
				r := s.ext.NewRegion()
				s.Must(r.MemsetNBI(dst, to, v, size))
				s.Must(r.Sync(extended.All))
			}
			s.Must(s.ext.Get(dst, contract.At(base), got))
			if i := contract.Differ(got, model); i >= 0 {
				s.Fatalf("memset of %d bytes at %d: byte %d is %#x, not %#x", size, off, i, got[i], model[i])
			}
		}
		s.Wants(s.ext.Memset(0, contract.At(0), 1, -1), extended.ErrBadArg, "memset of -1 bytes")
	})
}

// extendedOwn: between accesses of a rank to words of another one a sync with that rank is
// enough, whatever is under way towards the others.
func extendedOwn(c *ctx) {
	const n, words, steps = 3, 32, 150
	eachHandling(c, n, n*8*words, func(s *stack) {
		base := s.Rank * 8 * words // of this rank's words at each rank
		var model [n][]byte
		for r := range n {
			model[r] = contract.Fill(make([]byte, 8*words), s.RNG.Uint64(), 0)
			s.Must(s.ext.Put(r, contract.At(base), model[r]))
		}
		set := s.ext.Implicit()
		if s.RNG.IntN(2) == 0 {
			set = s.ext.NewRegion()
		}
		for range steps {
			dst, first := s.RNG.IntN(n), s.RNG.IntN(words)
			size := 8 * (1 + s.RNG.IntN(min(4, words-first)))
			to, part := contract.At(base+8*first), model[dst][8*first:][:size]
			// What is under way may be about these words.
			s.Must(set.SyncRank(dst, extended.Puts))
			got := make([]byte, size)
			synced := func() {
				s.C.Helper()
				if i := contract.Differ(got, part); i >= 0 {
					s.Fatalf("byte %d of %d at %v of rank %d is %#x after a sync with it, not %#x", i, size, to, dst, got[i], part[i])
				}
			}
			switch s.RNG.IntN(3) {
			case 0:
				s.Must(s.ext.Get(dst, to, got))
				synced()
			case 1:
				s.Must(set.GetNBI(dst, to, got))
				s.Must(set.SyncRank(dst, extended.Gets))
				synced()
			}
			src := contract.Fill(make([]byte, size), s.RNG.Uint64(), 0)
			copy(part, src)
			switch s.RNG.IntN(3) {
			case 0:
				s.Must(set.PutNBI(dst, to, src))
				contract.Spoil(src)
			case 1:
				s.Must(set.PutBulkNBI(dst, to, src))
			default:
				for i := 0; i < size; i += 8 {
					s.Must(set.PutValueNBI(dst, to+segment.NLA(i), binary.LittleEndian.Uint64(src[i:]), 8))
				}
			}
		}
		s.Must(set.Sync(extended.All))
		for r := range n {
			got := make([]byte, 8*words)
			s.Must(s.ext.Get(r, contract.At(base), got))
			if i := contract.Differ(got, model[r]); i >= 0 {
				s.Fatalf("byte %d of rank %d is %#x, not %#x", i, r, got[i], model[r][i])
			}
		}
		s.Wants(set.SyncRank(0, 0), extended.ErrBadArg, "sync with a rank of no category")
	})
}

// beginPuts starts k puts of 8 bytes to dst.
func (s *stack) beginPuts(k, dst int) []extended.Handle {
	s.C.Helper()
	hs := make([]extended.Handle, k)
	for i := range hs {
		var err error
		hs[i], err = s.ext.PutNB(dst, contract.At(8*(s.Rank*64+i%64)), []byte("8 bytes!"))
		s.Must(err)
	}
	return hs
}

// extendedLists: synchronizing one, some, all of a list of handles; what is
// complete becomes zero, and nothing can be synchronized twice.
func extendedLists(c *ctx) {
	const n = 2
	var foreign [n]atomic.Uint64
	eachHandling(c, n, n*512, func(s *stack) {
		x, dst := s.ext, 1-s.Rank
		for what, f := range map[string]func([]extended.Handle) (int, bool, error){
			"WaitAll":  func(hs []extended.Handle) (int, bool, error) { return 0, true, x.WaitAll(hs) },
			"TryAll":   func(hs []extended.Handle) (int, bool, error) { ok, err := x.TryAll(hs); return 0, ok, err },
			"WaitSome": func(hs []extended.Handle) (int, bool, error) { k, err := x.WaitSome(hs); return k, true, err },
			"TrySome":  func(hs []extended.Handle) (int, bool, error) { k, err := x.TrySome(hs); return k, true, err },
		} {
			for _, hs := range [][]extended.Handle{nil, {}, make([]extended.Handle, 5)} {
				if k, ok, err := f(hs); k != 0 || !ok || err != nil {
					s.Errorf("%s of %d zero handles: %d, %v, %v", what, len(hs), k, ok, err)
				}
			}
			hs := s.beginPuts(3, dst)
			old := append([]extended.Handle(nil), hs...)
			s.Must(x.WaitAll(hs))
			if old[1] == 0 {
				continue // complete at once: there is nothing to misuse
			}
			_, _, err := f([]extended.Handle{0, old[1]})
			s.Wants(err, extended.ErrBadArg, "%s of a handle that was synchronized before", what)
			_, _, err = f([]extended.Handle{1<<40 + 3})
			s.Wants(err, extended.ErrBadArg, "%s of a handle that was never issued", what)
		}
		if done, err := x.Try(0); !done || err != nil || x.Wait(0) != nil {
			s.Errorf("the zero handle is not complete: %v, %v", done, err)
		}
		s.Wants(x.Wait(1<<40), extended.ErrBadArg, "wait for a handle that was never issued")
		_, err := x.Try(1 << 40)
		s.Wants(err, extended.ErrBadArg, "try of a handle that was never issued")
		// One after the other, in random order.
		for range 20 {
			k := 1 + s.RNG.IntN(40)
			hs := s.beginPuts(k, s.RNG.IntN(n))
			live := 0
			for _, h := range hs {
				if h != 0 {
					live++
				}
			}
			if got := x.Outstanding(); got != live {
				s.Fatalf("%d handles are outstanding, not %d", got, live)
			}
			s.RNG.Shuffle(k, func(i, j int) { hs[i], hs[j] = hs[j], hs[i] })
			used := append([]extended.Handle(nil), hs...)
			switch s.RNG.IntN(5) {
			case 0:
				s.Must(x.WaitAll(hs))
			case 1:
				for done := false; !done; {
					done, err = x.TryAll(hs)
					s.Must(err)
					s.poll()
				}
			case 2, 3:
				for sum := 0; sum < live; {
					var m int
					if live%2 == 0 {
						m, err = x.TrySome(hs)
						s.poll()
					} else if m, err = x.WaitSome(hs); m == 0 && err == nil {
						s.Fatalf("WaitSome has returned without any")
					}
					s.Must(err)
					zeros := 0
					for i, h := range hs {
						if h == 0 && used[i] != 0 {
							zeros++
						} else if h != used[i] {
							s.Fatalf("entry %d of a list was %#x, and is %#x", i, used[i], h)
						}
					}
					if sum += m; zeros != sum {
						s.Fatalf("%d of %d handles are synchronized, %d overwritten", sum, live, zeros)
					}
				}
			default:
				for i := range hs {
					s.Must(x.Wait(hs[i]))
					hs[i] = 0
				}
			}
			for i := range hs {
				if hs[i] != 0 {
					s.Fatalf("entry %d of a list that is complete is %#x", i, hs[i])
				}
				if used[i] != 0 {
					s.Wants(x.Wait(used[i]), extended.ErrBadArg, "second wait")
				}
			}
			if got := x.Outstanding(); got != 0 {
				s.Fatalf("%d handles are outstanding, though all were synchronized", got)
			}
		}
		// A handle that is refused leaves the others as they were.
		hs := s.beginPuts(4, dst)
		live := x.Outstanding()
		bad := append([]extended.Handle{hs[0], hs[1], 1 << 41}, hs[2:]...)
		s.Wants(x.WaitAll(bad), extended.ErrBadArg, "a list with a wrong handle")
		if got := x.Outstanding(); got != live {
			s.Errorf("%d handles are outstanding after a list that was refused, not %d", got, live)
		}
		s.Must(x.WaitAll(hs))
		// Handles are the rank's that began the operation.
		foreign[s.Rank].Store(uint64(s.beginPuts(1, dst)[0]))
		s.barrier()
		if h := extended.Handle(foreign[dst].Load()); h != 0 {
			s.Wants(x.Wait(h), extended.ErrBadArg, "wait for another rank's handle")
		}
		s.barrier()
		s.Must(x.Wait(extended.Handle(foreign[s.Rank].Load())))
	})
}

// extendedRegions: what access regions allow and forbid, and that they name
// just what was begun in them.
func extendedRegions(c *ctx) {
	const n = 2
	eachHandling(c, n, n*4096, func(s *stack) {
		x, base := s.ext, contract.At(s.Rank*4096)
		var r extended.Region
		s.Must(x.BeginRegion(&r))
		s.Wants(x.BeginRegion(&r), extended.ErrBadArg, "a region in a region")
		s.Wants(r.Sync(extended.All), extended.ErrBadArg, "sync in a region")
		_, err := r.Try(extended.Puts)
		s.Wants(err, extended.ErrBadArg, "try in a region")
		h, err := r.End()
		s.Must(err)
		s.Must(x.Wait(h)) // of an empty region
		_, err = r.End()
		s.Wants(err, extended.ErrBadArg, "a second end")
		s.Wants(x.BeginRegion(x.Implicit()), extended.ErrBadArg, "a region of the set that all share")
		s.Wants(r.Sync(0), extended.ErrBadArg, "sync of no category")
		s.Wants(r.Sync(8), extended.ErrBadArg, "sync of an unknown category")
		s.Wants(x.Implicit().Sync(0), extended.ErrBadArg, "sync of no category")
		// Any number of operations, in and outside, beside handles.
		for range 6 {
			k := 1 + s.RNG.IntN(200)
			src, got, other := contract.Fill(make([]byte, k*8), uint64(k), 0), make([]byte, k*8), make([]byte, k*8)
			dst := s.RNG.IntN(n)
			set := x.NewRegion()
			s.Must(set.PutBulkNBI(dst, base+2048, src[:8]))
			s.Must(set.GetNBI(1-dst, base+2048, other[:8]))
			s.Must(x.BeginRegion(set)) // those stay outside
			for i := range k {
				s.Must(set.PutBulkNBI(dst, base+segment.NLA(i*8), src[i*8:][:8]))
			}
			h, err := set.End()
			s.Must(err)
			s.Must(x.Wait(h))
			for i := range k {
				s.Must(set.GetNBI(dst, base+segment.NLA(i*8), got[i*8:][:8]))
			}
			s.Must(set.Sync(extended.Gets))
			if i := contract.Differ(got, src); i >= 0 {
				s.Fatalf("%d puts in a region: byte %d is %#x, not %#x", k, i, got[i], src[i])
			}
			s.Must(set.Sync(extended.Puts))
			s.Must(x.Get(dst, base+2048, got[:8]))
			if i := contract.Differ(got[:8], src[:8]); i >= 0 {
				s.Fatalf("a put from before the region is not there")
			}
		}
	})
}

// extendedOutstanding: 65,536 handles at once, and not one more.
func extendedOutstanding(c *ctx) {
	c.stack(2, conduits.Config{}, layers{segment: 2 * segment.PageSize, ext: extended.Config{AlwaysHandle: true}}, func(s *stack) {
		if s.Rank == 1 {
			return
		}
		x := s.ext
		hs := make([]extended.Handle, extended.MaxHandles)
		seen := make(map[extended.Handle]bool, len(hs))
		start := func(i int) {
			h, err := x.PutValueNB(1, contract.At(8*(i%511)), uint64(i), 8) // not to the last word, which full uses
			s.Must(err)
			if h == 0 || seen[h] {
				s.Fatalf("handle %d is %#x, zero or issued before", i, h)
			}
			seen[h], hs[i] = true, h
		}
		for i := range hs {
			start(i)
			if i+1 == 65535 && x.Outstanding() != 65535 {
				s.Fatalf("%d handles are outstanding, not 65535", x.Outstanding())
			}
		}
		full := func() {
			if x.Outstanding() != 65536 {
				s.Fatalf("%d handles are outstanding, not 65536", x.Outstanding())
			}
			var v uint64
			_, err := x.PutValueNB(1, contract.At(0), 0, 8)
			s.Wants(err, extended.ErrResource, "put value beyond the last handle")
			_, err = x.GetValueNB(1, contract.At(0), &v, 8)
			s.Wants(err, extended.ErrResource, "get value beyond the last handle")
			_, err = x.PutNB(1, contract.At(0), []byte{1})
			s.Wants(err, extended.ErrResource, "put beyond the last handle")
			_, err = x.GetNB(1, contract.At(0), make([]byte, 4))
			s.Wants(err, extended.ErrResource, "get beyond the last handle")
			_, err = extended.AtomicNB[uint64](x, 1, contract.At(0), &v, extended.AtomicAdd, 1, 0)
			s.Wants(err, extended.ErrResource, "atomic beyond the last handle")
			// What needs no handle goes on.
			s.Must(x.PutValue(1, contract.At(segment.PageSize), 3, 8))
			s.Must(x.Implicit().PutNBI(1, contract.At(segment.PageSize), []byte{4}))
			s.Must(x.Implicit().Sync(extended.All))
			if v, err := x.GetValue(1, contract.At(segment.PageSize), 8); err != nil || v != 4 {
				s.Fatalf("value is %d, %v", v, err)
			}
		}
		full()
		for range 1000 { // each that is given back makes room for one
			i := s.RNG.IntN(len(hs))
			s.Must(x.Wait(hs[i]))
			start(i)
		}
		full()
		s.Must(x.WaitAll(hs[:100]))
		if x.Outstanding() != 65436 {
			s.Fatalf("%d handles are outstanding, not 65436", x.Outstanding())
		}
		s.Must(x.WaitAll(hs))
		if x.Outstanding() != 0 {
			s.Fatalf("%d handles are outstanding, not 0", x.Outstanding())
		}
	})
}

// oneRun is the shape of the plainest vector transfer.
func oneRun(a segment.NLA, b []byte) (extended.Shape, error) {
	return extended.Vector([]extended.Extent{{Addr: a, Len: len(b)}}, [][]byte{b})
}

// extendedBadArguments: what is wrong is an error, moves nothing, and leaves
// nothing outstanding.
func extendedBadArguments(c *ctx) {
	const n, size = 2, segment.PageSize
	eachHandling(c, n, size, func(s *stack) {
		x := s.ext
		own := s.ext.Direct(s.Rank, contract.At(0), size)
		key := uint64(s.Rank)
		contract.Fill(own, key, 0)
		s.barrier()
		b := make([]byte, 64)
		set := x.NewRegion()
		shape := func(h extended.Shape, err error) extended.Shape {
			s.Must(err)
			return h
		}
		strided := func(elem, count int, a segment.NLA, far, off, near int) extended.Shape {
			return shape(extended.Strided(elem, []int{count},
				extended.RemoteBox{Addr: a, Strides: []int{far}}, extended.LocalBox{Mem: b, Offset: off, Strides: []int{near}}))
		}
		indexed := func(a segment.NLA, n, off int) extended.Shape {
			return shape(extended.Indexed(extended.RemoteRuns{Addrs: []segment.NLA{a}, Len: n}, extended.LocalRuns{Mem: b, Offsets: []int{off}, Len: n}))
		}
		vector := func(a segment.NLA, b []byte) extended.Shape { return shape(oneRun(a, b)) }
		type place struct {
			rank int
			a    segment.NLA
		}
		for what, p := range map[string]place{
			"rank -1":          {-1, contract.At(0)},
			"rank n":           {n, contract.At(0)},
			"rank 1<<40":       {1 << 40, contract.At(0)},
			"before the start": {1, contract.At(-1)},
			"address 0":        {0, 0},
			"past the end":     {1, contract.At(size)},
			"across the end":   {1, contract.At(size - 63)},
			"far away":         {0, 2*segment.NLALimit + 8},
			"no address":       {0, 2 * segment.NLALimit}, // below are those that can be exposed
			"wrapping":         {0, ^segment.NLA(0) - 5},
		} {
			var w uint64
			var h extended.Handle
			nb := func(got extended.Handle, err error) error { h = got; return err }
			for op, f := range map[string]func() error{
				"put":        func() error { return x.Put(p.rank, p.a, b) },
				"put nb":     func() error { return nb(x.PutNB(p.rank, p.a, b)) },
				"bulk":       func() error { return nb(x.PutBulkNB(p.rank, p.a, b)) },
				"put nbi":    func() error { return x.Implicit().PutNBI(p.rank, p.a, b) },
				"bulk nbi":   func() error { return set.PutBulkNBI(p.rank, p.a, b) },
				"get":        func() error { return x.Get(p.rank, p.a, b) },
				"get nb":     func() error { return nb(x.GetNB(p.rank, p.a, b)) },
				"get nbi":    func() error { return set.GetNBI(p.rank, p.a, b) },
				"memset":     func() error { return x.Memset(p.rank, p.a, 1, 64) },
				"memset nb":  func() error { return nb(x.MemsetNB(p.rank, p.a, 1, 64)) },
				"memset nbi": func() error { return set.MemsetNBI(p.rank, p.a, 1, 64) },
				"strided":    func() error { return x.PutShape(p.rank, strided(16, 4, p.a, 16, 0, 16)) },
				"get str.":   func() error { return nb(x.GetShapeNB(p.rank, strided(1, 2, p.a, 63, 0, 1))) },
				"backwards":  func() error { return set.GetShapeNBI(p.rank, strided(1, 64, p.a+63, -1, 63, -1)) },
				"indexed":    func() error { return x.PutShape(p.rank, indexed(p.a, 64, 0)) },
				"get index.": func() error { return nb(x.GetShapeNB(p.rank, indexed(p.a, 64, 0))) },
				"vector":     func() error { return x.PutShape(p.rank, vector(p.a, b)) },
				"get vector": func() error { return set.GetShapeNBI(p.rank, vector(p.a, b)) },
			} {
				if err := f(); !errors.Is(err, extended.ErrBadArg) || h != 0 {
					s.Fatalf("%s %s: %v (handle %#x), want one that wraps %v", op, what, err, h, extended.ErrBadArg)
				}
			}
			if what == "across the end" {
				p.a = contract.At(size - 4) // 8 bytes reach across
			}
			for op, f := range map[string]func() error{
				"put value":     func() error { return x.PutValue(p.rank, p.a, 1, 8) },
				"put value nb":  func() error { return nb(x.PutValueNB(p.rank, p.a, 1, 8)) },
				"put value nbi": func() error { return x.Implicit().PutValueNBI(p.rank, p.a, 1, 8) },
				"get value":     func() error { _, err := x.GetValue(p.rank, p.a, 8); return err },
				"get value nb":  func() error { return nb(x.GetValueNB(p.rank, p.a, &w, 8)) },
				"add":           func() error { return extended.Add[uint64](x, p.rank, p.a, 1) },
				"fetch add":     func() error { _, err := extended.FetchAdd[int64](x, p.rank, p.a, 1); return err },
				"swap nb":       func() error { return nb(extended.AtomicNB[uint64](x, p.rank, p.a, &w, extended.AtomicSwap, 1, 0)) },
				"signal":        func() error { return x.Signal(p.rank, p.a, extended.SignalAdd, 1) },
				"put signal":    func() error { return x.PutSignal(p.rank, contract.At(0), b, p.a, extended.SignalAdd, 1) },
				"put, signal":   func() error { return x.PutSignal(p.rank, p.a, b, contract.At(0), 7, 1) },
				"wait until":    func() error { _, err := x.WaitUntil(p.a, extended.Eq, 0); return err },
			} {
				if op == "wait until" && p.a == contract.At(0) {
					continue // a good address, were it not for the rank
				}
				if err := f(); !errors.Is(err, extended.ErrBadArg) || h != 0 {
					s.Fatalf("%s %s: %v (handle %#x), want one that wraps %v", op, what, err, h, extended.ErrBadArg)
				}
			}
			if x.Direct(p.rank, p.a, 64) != nil {
				s.Fatalf("direct access %s", what)
			}
		}
		for what, err := range map[string]error{
			"value of 0 bytes":   x.PutValue(1, contract.At(0), 1, 0),
			"value of 9 bytes":   x.PutValue(1, contract.At(0), 1, 9),
			"value of -1 bytes":  x.Implicit().PutValueNBI(1, contract.At(0), 1, -1),
			"unaligned add":      extended.Add[uint64](x, 1, contract.At(4), 1),
			"unaligned add of 4": extended.Add[int32](x, 1, contract.At(2), 1),
			"unaligned float":    extended.Add[float64](x, 1, contract.At(12), 1),
			"unaligned signal":   x.Signal(1, contract.At(4), extended.SignalSet, 1),
			"unknown signal":     x.Signal(1, contract.At(0), 9, 1),
			"signal for nobody":  x.WaitUntilAll([]segment.NLA{contract.At(3)}, extended.Eq, 0),
		} {
			s.Wants(err, extended.ErrBadArg, "%s", what)
		}
		// What is wrong with a shape whatever the rank, its constructor says.
		badShape := func(what string, h extended.Shape, err error) {
			s.Wants(err, extended.ErrBadArg, "%s", what)
			s.Must(x.PutShape(1, h)) // the zero Shape
		}
		one := []int{1}
		for what, e := range map[string]extended.Extent{
			"lengths that differ": {Addr: contract.At(0), Len: 3},
			"a negative extent":   {Addr: contract.At(0), Len: -3},
		} {
			h, err := extended.Vector([]extended.Extent{e}, [][]byte{b})
			badShape(what, h, err)
		}
		for what, r := range map[string]struct{ far, off, near int }{
			"runs that differ":  {3, 0, 4},
			"a run outside":     {4, 61, 4},
			"a negative offset": {4, -1, 4},
		} {
			h, err := extended.Indexed(extended.RemoteRuns{Addrs: []segment.NLA{contract.At(0)}, Len: r.far},
				extended.LocalRuns{Mem: b, Offsets: []int{r.off}, Len: r.near})
			badShape(what, h, err)
		}
		for what, r := range map[string]struct {
			elem, count    int
			far            []int
			off, localStep int
		}{
			"ranks of strides":   {1, 1, []int{1, 2}, 0, 1},
			"a negative count":   {1, -1, one, 0, 1},
			"a negative element": {-1, 1, one, 0, 1},
			"a local end":        {1, 5, one, 60, 1},
			"a local start":      {1, 2, one, 0, -1},
			"strides that wrap":  {1, 3, []int{math.MaxInt}, 0, 0},
		} {
			h, err := extended.Strided(r.elem, []int{r.count}, extended.RemoteBox{Addr: contract.At(0), Strides: r.far},
				extended.LocalBox{Mem: b, Offset: r.off, Strides: []int{r.localStep}})
			badShape(what, h, err)
		}
		var w uint64
		_, err := extended.AtomicNB[uint64](x, 1, contract.At(0), &w, 99, 1, 0)
		s.Wants(err, extended.ErrBadArg, "an unknown atomic")
		_, err = extended.Atomic[float64](x, 1, contract.At(0), extended.AtomicAnd, 1, 0)
		s.Wants(err, extended.ErrNotSupported, "an and of floats")
		_, err = extended.Atomic[float32](x, 1, contract.At(0), extended.AtomicFCAA, 1, 0)
		s.Wants(err, extended.ErrNotSupported, "a compare-and-add of floats")
		// Nothing to move is no error, wherever it is.
		s.Must(x.Put(1, 0, nil))
		s.Must(x.Get(1, contract.At(1<<37), nil))
		s.Must(x.Memset(1, 0, 1, 0))
		s.Must(x.PutShape(1, shape(extended.Indexed(extended.RemoteRuns{Len: 4}, extended.LocalRuns{Mem: b, Len: 4}))))
		s.Must(x.PutShape(1, vector(0, nil)))
		s.Must(x.PutShape(1, strided(1, 0, 0, 1, 0, 1)))
		s.Must(set.Sync(extended.All))
		s.Must(x.Implicit().Sync(extended.All))
		s.barrier()
		if i := contract.Wrong(own, key, 0); i >= 0 {
			s.Errorf("byte %d was changed by what was refused", i)
		}
		if k := x.Outstanding(); k != 0 {
			s.Errorf("%d handles are outstanding of what was refused", k)
		}
	})
}

// extendedRights: a segment attached with some rights refuses what needs others,
// for the owner's peers.
func extendedRights(c *ctx) {
	for rights := segment.Rights(1); rights <= segment.RightsAll; rights++ {
		c.Job(2, conduits.Config{}, func(p *contract.Peer) {
			s := &stack{Peer: p, bar: barrier.New(), ext: extended.New(extended.Config{})}
			e, err := am.Attach(p.EP, am.Config{
				SegmentSize: segment.PageSize, Rights: rights, Completer: s.ext, Exposer: s.ext, Runtime: append(s.bar.Handlers(), s.ext.Handlers()...),
				Handlers: []am.Entry{{Index: 128, Name: "nothing", Fn: func(*am.Token, []uint32, []byte) {}}},
			})
			p.Must(err)
			s.am = e
			p.Must(s.bar.Bind(e))
			s.ext.Bind(e)
			s.barrier()
			x, dst, b := s.ext, 1-s.Rank, make([]byte, 16)
			vector, err := oneRun(contract.At(0), b)
			p.Must(err)
			for what, f := range map[string]struct {
				need segment.Rights
				do   func() error
			}{
				"put": {segment.RightWrite, func() error { return x.Put(dst, contract.At(0), b) }},
				"put nbi": {segment.RightWrite, func() error {
					return errors.Join(x.Implicit().PutNBI(dst, contract.At(0), b), x.Implicit().Sync(extended.All))
				}},
				"put value":  {segment.RightWrite, func() error { return x.PutValue(dst, contract.At(0), 0, 8) }},
				"memset":     {segment.RightWrite, func() error { return x.Memset(dst, contract.At(0), 0, 16) }},
				"put vector": {segment.RightWrite, func() error { return x.PutShape(dst, vector) }},
				"long":       {segment.RightWrite, func() error { return e.RequestLong(dst, 128, contract.At(0), b) }},
				"get":        {segment.RightRead, func() error { return x.Get(dst, contract.At(0), b) }},
				"get value":  {segment.RightRead, func() error { _, err := x.GetValue(dst, contract.At(0), 8); return err }},
				"get vector": {segment.RightRead, func() error { return x.GetShape(dst, vector) }},
				"add":        {segment.RightAtomic, func() error { return extended.Add[uint64](x, dst, contract.At(24), 1) }},
				"load":       {segment.RightAtomic, func() error { _, err := extended.Load[int32](x, dst, contract.At(32)); return err }},
				"signal":     {segment.RightAtomic, func() error { return x.Signal(dst, contract.At(40), extended.SignalAdd, 1) }},
			} {
				if _, v := p.EP.Views(); what == "long" && len(v) == 1 {
					continue // the sender cannot know the rights
				}
				err := f.do()
				if rights&f.need != 0 {
					p.Must(err)
				} else {
					p.Wants(err, extended.ErrBadArg, "%s in a segment with rights %v", what, rights)
				}
			}
			p.Must(x.Implicit().Sync(extended.All))
			s.barrier()
		})
		if c.Failed() {
			return
		}
	}
}

// extendedRing: a token goes round, with data that grows; each rank sees what all
// before it have put, by whatever releases and acquires.
func extendedRing(c *ctx) {
	const n, rounds = 4, 16
	size := 8 * n * rounds
	c.stack(n, conduits.Config{}, layers{segment: contract.Pages(8 + size)}, func(s *stack) {
		x, next := s.ext, (s.Rank+1)%n
		for k := range rounds {
			turn := uint64(k*n + s.Rank) // how often the token has been passed on
			log := make([]byte, 8*turn)
			if turn > 0 {
				switch k % 3 {
				case 0:
					_, err := x.WaitUntil(contract.At(0), extended.Ge, turn)
					s.Must(err)
				case 1:
					s.Must(s.am.Wait(nil, func() bool { _, ok, err := x.TestUntil(contract.At(0), extended.Eq, turn); return ok || err != nil }))
				default:
					for {
						v, err := extended.Load[uint64](x, s.Rank, contract.At(0))
						s.Must(err)
						if v >= turn {
							break
						}
						s.poll()
					}
				}
				s.Must(x.Get(s.Rank, contract.At(8), log))
			}
			for i := range turn {
				if got, want := binary.LittleEndian.Uint64(log[8*i:]), contract.Mix(c.Seed, i); got != want {
					s.Fatalf("entry %d of %d that came with the token is %#x, not %#x", i, turn, got, want)
				}
			}
			log = binary.LittleEndian.AppendUint64(log, contract.Mix(c.Seed, turn))
			var err error
			switch s.RNG.IntN(5) {
			case 0:
				err = x.PutSignal(next, contract.At(8), log, contract.At(0), extended.SignalSet, turn+1)
			case 1:
				s.Must(x.Put(next, contract.At(8), log))
				err = x.Signal(next, contract.At(0), extended.SignalSet, turn+1)
			case 2:
				s.Must(x.Put(next, contract.At(8), log))
				err = extended.Store[uint64](x, next, contract.At(0), turn+1)
				x.Wake(next)
			case 3:
				s.Must(x.Put(next, contract.At(8), log))
				_, err = extended.Swap[uint64](x, next, contract.At(0), turn+1)
				x.Wake(next)
			default:
				h, e := x.PutNB(next, contract.At(8), log)
				s.Must(e)
				s.Must(x.Wait(h))
				_, err = extended.Atomic(x, next, contract.At(0), extended.AtomicMax, turn+1, 0)
				x.Wake(next)
			}
			s.Must(err)
		}
	})
}
