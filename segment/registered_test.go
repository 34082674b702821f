package segment_test

import (
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// TestRegistered: conduits let pass what an ATU gives out, for a segment of any
// size, and neither the segment nor what is between.
func TestRegistered(t *testing.T) {
	for _, pages := range []int{0, 1, 3, segment.GATEntries, segment.GATEntries + 1} {
		size := uint64(pages) * segment.PageSize
		var own conduits.OwnMemory
		attach, err := own.MapMemory(max(size, 1))
		if err != nil {
			t.Fatal(err)
		}
		if pages == 0 {
			defer own.UnmapMemory(attach)
			attach = nil
		}
		atu, err := segment.NewATU(segment.ATUConfig{Attach: attach, Rights: segment.RightsAll})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []uint64{1, segment.PageSize, 2 * segment.PageSize, segment.GATSpan / 64} {
			r, err := atu.Register(make([]byte, n), segment.RightRead, segment.AnyPeer)
			if err != nil {
				t.Fatal(err)
			}
			for off := uint64(0); off < n; {
				a, k := r.At(off)
				if !conduits.Registered(size, a, k) || conduits.Registered(size, a, uint64(segment.NLALimit)) {
					t.Errorf("segment of %#x: %#x bytes at %v are no registered addresses", size, k, a)
				}
				off += k
			}
		}
		for _, a := range []segment.NLA{0, segment.PageSize - 1, segment.AttachBase, segment.AttachBase + segment.NLA(size) - 1, segment.NLALimit, segment.ExposedBase + 5} {
			if size > 0 && conduits.Registered(size, a, 1) || conduits.Registered(size, a, 2) && a != segment.AttachBase && a != segment.AttachBase-1 {
				t.Errorf("segment of %#x: %v is a registered address", size, a)
			}
		}
		if err := atu.Close(); err != nil {
			t.Error(err)
		}
		if attach != nil {
			if err := own.UnmapMemory(attach); err != nil {
				t.Error(err)
			}
		}
	}
}
