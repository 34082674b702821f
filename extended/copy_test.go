package extended

import (
	"bytes"
	"errors"
	"testing"

	"github.com/argon-go/argon/segment"
	"pgregory.net/rapid"
)

// TestCopyModel: copies between ranks of which any are in reach, of any length and also
// inside one range, leave what Go's copy leaves.
func TestCopyModel(t *testing.T) {
	const size = 3 * copyPiece
	rapid.Check(t, func(t *rapid.T) {
		j := newFake(4, fakeOptions{bytes: size, seed: rapid.Uint64().Draw(t, "seed"), eager: rapid.Bool().Draw(t, "eager")})
		x := j.eps[0].x
		lo := rapid.IntRange(0, 4).Draw(t, "first in reach")
		x.views.Views = segment.NewViews(lo, j.views[lo:rapid.IntRange(lo, 4).Draw(t, "first beyond")])
		model := make([][]byte, 4)
		for r := range model {
			model[r] = make([]byte, size)
			for i := range model[r] {
				model[r][i] = byte(i*7 ^ i>>8*13 + r*31)
			}
			copy(j.segs[r], model[r])
		}
		rank := rapid.IntRange(0, 3)
		length := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(copyPiece-3, copyPiece+3), rapid.IntRange(0, size))
		for range rapid.IntRange(1, 6).Draw(t, "copies") {
			dst, src, n := rank.Draw(t, "dst"), rank.Draw(t, "src"), length.Draw(t, "n")
			from := rapid.IntRange(0, size-n).Draw(t, "from")
			to := rapid.IntRange(0, size-n).Draw(t, "to")
			if rapid.Bool().Draw(t, "near") {
				to = min(max(from+rapid.IntRange(-20, 20).Draw(t, "by"), 0), size-n)
			}
			if rapid.Bool().Draw(t, "aligned") {
				from, to = from&^7, to&^7
			}
			if err := x.Copy(dst, at(to), src, at(from), n); err != nil {
				t.Fatal(err)
			}
			copy(model[dst][to:to+n], model[src][from:from+n])
			for r := range model {
				if !bytes.Equal(j.segs[r], model[r]) {
					t.Fatalf("%d bytes from %d of rank %d to %d of rank %d: rank %d differs", n, from, src, to, dst, r)
				}
			}
		}
	})
}

// TestCopyRefused: what is wrong with either range is found before anything is moved.
func TestCopyRefused(t *testing.T) {
	if err := New(Config{}).Copy(0, at(0), 0, at(0), 1); !errors.Is(err, ErrNotInit) {
		t.Errorf("before Bind: %v", err)
	}
	for _, direct := range []bool{true, false} {
		j := newFake(2, fakeOptions{direct: direct})
		x := j.eps[0].x
		end := at(len(j.segs[0]))
		for _, c := range []struct {
			dst  int
			to   segment.NLA
			src  int
			from segment.NLA
			n    int
		}{
			{2, at(0), 0, at(0), 1},
			{0, at(0), -1, at(0), 1},
			{2, at(0), 0, at(0), 0},
			{0, at(0), 2, at(0), 0},
			{0, at(0), 1, at(64), -1},
			{0, end - 9, 1, at(0), 10},
			{1, at(0), 0, end - 9, 10},
			{1, at(0), 0, 0, 10},
			{1, segment.ExposedBase, 0, at(0), 10},
		} {
			if err := x.Copy(c.dst, c.to, c.src, c.from, c.n); !errors.Is(err, ErrBadArg) && !errors.Is(err, ErrNotSupported) {
				t.Errorf("direct %v: %+v: %v", direct, c, err)
			}
		}
		if calls := j.eps[0].calls; calls != 0 {
			t.Errorf("%d operations were begun", calls)
		}
	}
}

// TestCopyAllocates: nothing, between any two ranks.
func TestCopyAllocates(t *testing.T) {
	for _, direct := range []bool{true, false} {
		x := newFake(3, fakeOptions{direct: direct, bare: true}).eps[0].x
		for _, n := range []int{200, 1000} {
			if got := testing.AllocsPerRun(200, func() {
				if err := x.Copy(1, at(0), 2, at(8), n); err != nil {
					t.Fatal(err)
				}
			}); got >= 1 { // the collector may empty the pool
				t.Errorf("direct %v: %v allocations for %d bytes", direct, got, n)
			}
		}
	}
}
