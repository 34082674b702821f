package conformance

import (
	"bytes"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/segment"
)

// belowChecks are of what compilers use beside package gas.
var belowChecks = []check{
	{name: "extended/segment", run: extendedSegment},
	{name: "extended/copy", seeded: true, run: extendedCopy},
	{name: "collective/model", seeded: true, run: collectiveModel}, // testreduce, testteambcast
	{name: "collective/mismatch", run: collectiveMismatch},
}

// extendedSegment: a segment is zero at attach, all of it and no more is at hand where
// views reach, and what is stored there others find, by load and by get.
func extendedSegment(c *ctx) {
	const n, size = 3, 3 * segment.PageSize
	// Twice, for memory that an earlier job has used may not be zero.
	for range 2 {
		c.stack(n, conduits.Config{}, layers{segment: size}, func(s *stack) {
			own := s.ext.Segment(s.Rank)
			if len(own) != size || cap(own) != size {
				s.Fatalf("the own segment has %d bytes with room for %d, not %d", len(own), cap(own), size)
			}
			if !bytes.Equal(own, make([]byte, size)) {
				s.Fatalf("the own segment is not zero after attach")
			}
			s.barrier() // all have looked
			contract.Fill(own, uint64(s.Rank), 0)
			s.barrier()
			want := make([]byte, size)
			for r := range n {
				contract.Fill(want, uint64(r), 0)
				mem := s.ext.Segment(r)
				first, views := s.EP.Views()
				i := r - first
				if near := i >= 0 && i < len(views) && views[i].Base != nil; (mem != nil) != near {
					s.Fatalf("%d bytes of rank %d are in reach; that its view is there is %v", len(mem), r, near)
				}
				if mem != nil && !bytes.Equal(mem, want) {
					s.Fatalf("the segment of rank %d does not hold what its owner stored there", r)
				}
				got := make([]byte, size)
				s.Must(s.ext.Get(r, contract.At(0), got))
				if !bytes.Equal(got, want) {
					s.Fatalf("a get from rank %d brings other bytes than its owner stored", r)
				}
			}
			for _, r := range []int{-1, n} {
				if s.ext.Segment(r) != nil {
					s.Fatalf("there is a segment of rank %d", r)
				}
			}
		})
	}
	c.stack(2, conduits.Config{}, layers{}, func(s *stack) {
		if mem := s.ext.Segment(s.Rank); mem != nil {
			s.Fatalf("%d bytes of a segment that was not attached", len(mem))
		}
	})
}

// extendedCopy: every rank copies between all pairs of ranks, its own part of each
// segment, of lengths that take one piece and several; what lies beside stays.
func extendedCopy(c *ctx) {
	const n, part = 3, 160 << 10
	c.stack(n, conduits.Config{}, layers{segment: contract.Pages(n * part)}, func(s *stack) {
		x := s.ext
		place := func(off int) segment.NLA { return contract.At(s.Rank*part + off) }
		want := make([][]byte, n) // the own part of each segment
		for r := range n {
			want[r] = contract.Fill(make([]byte, part), contract.Mix(c.Seed, uint64(s.Rank*n+r)), 0)
			s.Must(x.Put(r, place(0), want[r]))
		}
		for i, size := range []int{1, 8, 9, 300, 5000, 70_001} {
			for dst := range n {
				for src := range n {
					from, to := 1000*i, 1000*i+dst*77 // which overlap in one rank
					if (dst+src)%2 == 1 {
						from, to = to, from
					}
					s.Must(x.Copy(dst, place(to), src, place(from), size))
					copy(want[dst][to:to+size], want[src][from:from+size])
				}
			}
		}
		got := make([]byte, part)
		for r := range n {
			s.Must(x.Get(r, place(0), got))
			for i := range got {
				if got[i] != want[r][i] {
					s.Fatalf("byte %d of rank %d's part of rank %d's segment is %#x, and its copies leave %#x", i, s.Rank, r, got[i], want[r][i])
				}
			}
		}
		s.Wants(x.Copy(n, place(0), 0, place(0), 8), extended.ErrBadArg, "copy to a rank that there is not")
		s.Wants(x.Copy(0, place(0), 1, contract.At(n*part-4), 1<<20), extended.ErrBadArg, "copy from beyond the end")
	})
}
