package conformance

import (
	"bytes"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/segment"
)

// belowChecks are of what compilers use beside package gas.
var belowChecks = []check{
	{name: "extended/segment", run: extendedSegment},
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
