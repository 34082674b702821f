package conduits_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// TestFitSegment: the narrowest bound decides, and is named when it refuses, or makes a
// default smaller than usual.
func TestFitSegment(t *testing.T) {
	const mib, page = 1 << 20, segment.PageSize
	bound := func(what string, free, beside, share int64) conduits.Bound {
		return conduits.Bound{Room: sys.Room{Free: free, Limit: 2 * free, What: what, Knob: "knob of " + what}, Beside: beside, Share: share}
	}
	none := conduits.Bound{Room: sys.Room{Free: math.MaxInt64}, Beside: 1 << 62, Share: 1}
	for _, c := range []struct {
		n      int
		want   uint64
		bounds []conduits.Bound
		got    uint64
		parts  []string // of the error, or of the remark
	}{
		{n: 2, bounds: nil, got: 256 * mib},
		{n: 2, bounds: []conduits.Bound{none}, got: 256 * mib},
		{n: 2, bounds: []conduits.Bound{none, bound("a", 1000*mib, 0, 85)}, got: 425 * mib},
		{n: 1, bounds: []conduits.Bound{bound("a", 1<<50, 0, 85)}, got: 64 << 30}, // the most by default
		{n: 2, bounds: []conduits.Bound{bound("a", 1000*mib, 0, 85), bound("b", 500*mib, 100*mib, 50)}, got: 100 * mib},
		{
			n: 2, bounds: []conduits.Bound{bound("b", 500*mib, 100*mib, 10), bound("a", 1000*mib, 0, 85)}, got: 20 * mib,
			parts: []string{"at most 20 MiB a rank", "usual 64 MiB", "b allows 1000 MiB, of which 500 MiB are left", "knob of b"},
		},
		{n: 2, bounds: []conduits.Bound{bound("a", 2*page, 0, 1)}, got: page, parts: []string{"4 KiB a rank", "knob of a"}},
		{n: 2, bounds: []conduits.Bound{bound("a", 2*page-1, 0, 85)}, parts: []string{"2 ranks need", "4096 bytes or more", "a allows", "knob of a"}},
		{n: 2, bounds: []conduits.Bound{bound("a", 100*mib, 200*mib, 85)}, parts: []string{"200 MiB for the rest", "100 MiB are left", "knob of a"}},
		{n: 4, want: 1, bounds: []conduits.Bound{bound("a", mib, 0, 1)}, got: page},
		{n: 4, want: page + 1, bounds: []conduits.Bound{bound("a", mib, 0, 1)}, got: 2 * page},
		{n: 4, want: 16 * mib, bounds: []conduits.Bound{bound("a", 64*mib, 0, 1), bound("b", 65*mib, mib, 1)}, got: 16 * mib}, // fits exactly
		{
			n: 4, want: 16*mib + 1, bounds: []conduits.Bound{bound("a", 66*mib, 2*mib, 1)},
			parts: []string{"4 segments of 16777217 bytes need 64 MiB and 2 MiB for the rest", "a allows 132 MiB, of which 66 MiB are left", "at most 16777216 bytes a rank", "-segment", "ARGON_SEGMENT", "knob of a"},
		},
		{n: 2, want: 1 << 40, parts: []string{"1099511627776", "548682072064"}},
		{n: 1024, want: 1<<64 - 1, bounds: []conduits.Bound{bound("a", 64*mib, 0, 1)}, parts: []string{"18446744073709551615"}},
		{n: 1024, want: uint64(segment.MaxAttach), bounds: []conduits.Bound{bound("a", math.MaxInt64/2, 0, 1)}, got: uint64(segment.MaxAttach)},
	} {
		said := ""
		got, err := conduits.FitSegment("test", c.n, c.want, func(s string) { said += s }, c.bounds...)
		if err != nil {
			said = err.Error()
			if !errors.Is(err, conduits.ErrResource) {
				t.Errorf("%+v: %v", c, err)
			}
		}
		if got != c.got || (said == "") != (c.parts == nil) || said != "" && !strings.HasPrefix(said, "test: ") {
			t.Errorf("%+v: got %d, %q", c, got, said)
		}
		for _, p := range c.parts {
			if !strings.Contains(said, p) {
				t.Errorf("%+v: %q does not say %q", c, said, p)
			}
		}
	}
}
