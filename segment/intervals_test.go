package segment

import (
	"errors"
	"slices"
	"testing"

	"github.com/argon-go/argon/internal/errs"
	"pgregory.net/rapid"
)

func (v *intervals) all() (all []area) {
	for _, k := range v.chunks {
		all = append(all, k...)
	}
	return all
}

// TestFiveIntersections has each case of Seifert and Rehm 2000, figure 3, by its name and in
// what adding and taking back leaves.
func TestFiveIntersections(t *testing.T) {
	for _, c := range []struct {
		name       string
		start, end uint64 // against [10, 20), counted once
		want       overlap
		after      []area
		fresh      []span
	}{
		{"front", 5, 15, front, []area{{5, 10, 1}, {10, 15, 2}, {15, 20, 1}}, []span{{5, 10}}},
		{"front, same start", 10, 15, front, []area{{10, 15, 2}, {15, 20, 1}}, nil},
		{"rear", 15, 25, rear, []area{{10, 15, 1}, {15, 20, 2}, {20, 25, 1}}, []span{{20, 25}}},
		{"rear, same end", 15, 20, rear, []area{{10, 15, 1}, {15, 20, 2}}, nil},
		{"middle", 12, 18, middle, []area{{10, 12, 1}, {12, 18, 2}, {18, 20, 1}}, nil},
		{"total", 5, 25, total, []area{{5, 10, 1}, {10, 20, 2}, {20, 25, 1}}, []span{{5, 10}, {20, 25}}},
		{"total, equal", 10, 20, total, []area{{10, 20, 2}}, nil},
		{"disjoint below", 2, 7, disjoint, []area{{2, 7, 1}, {10, 20, 1}}, []span{{2, 7}}},
		{"disjoint above", 22, 27, disjoint, []area{{10, 20, 1}, {22, 27, 1}}, []span{{22, 27}}},
		{"disjoint, adjacent below", 5, 10, disjoint, []area{{5, 20, 1}}, []span{{5, 10}}},
		{"disjoint, adjacent above", 20, 25, disjoint, []area{{10, 25, 1}}, []span{{20, 25}}},
	} {
		var v intervals
		v.add(10, 20, nil)
		if got := meet(c.start, c.end, v.all()[0]); got != c.want {
			t.Errorf("%s: classified as %d, want %d", c.name, got, c.want)
		}
		if fresh := v.add(c.start, c.end, nil); !slices.Equal(fresh, c.fresh) {
			t.Errorf("%s: fresh %v, want %v", c.name, fresh, c.fresh)
		}
		if got := v.all(); !slices.Equal(got, c.after) {
			t.Errorf("%s: %v, want %v", c.name, got, c.after)
		}
		gone, err := v.sub(c.start, c.end, nil)
		if err != nil || !slices.Equal(gone, c.fresh) {
			t.Errorf("%s: gone %v, %v, want %v", c.name, gone, err, c.fresh)
		}
		if got := v.all(); !slices.Equal(got, []area{{10, 20, 1}}) || v.covered != 10 {
			t.Errorf("%s: %v and %d bytes are left", c.name, got, v.covered)
		}
	}
}

// TestIntervalsModel compares with an array of counts, and checks that areas are
// sorted, disjoint, not empty, and merged.
func TestIntervalsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 400
		var v intervals
		var model [size]uint32
		type iv struct{ start, end uint64 }
		var added []iv
		draw := func(t *rapid.T) iv {
			// Short ones mostly, so that there come to be several chunks.
			a := rapid.Uint64Range(0, size-1).Draw(t, "start")
			n := rapid.OneOf(rapid.Uint64Range(1, 2), rapid.Uint64Range(1, size)).Draw(t, "length")
			return iv{a, min(a+n, size)}
		}
		changed := func(x iv, d int, zero uint32) (want []span) {
			for i := x.start; i < x.end; i++ {
				if d > 0 && model[i] == zero || d < 0 && model[i] == zero+1 {
					if k := len(want) - 1; k >= 0 && want[k].end == i {
						want[k].end++
					} else {
						want = append(want, span{i, i + 1})
					}
				}
				model[i] += uint32(d)
			}
			return want
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				x := draw(t)
				added = append(added, x)
				got := v.add(x.start, x.end, nil)
				if want := changed(x, 1, 0); !slices.Equal(got, want) {
					t.Fatalf("add %v: fresh %v, want %v", x, got, want)
				}
			},
			"scatter": func(t *rapid.T) {
				for i := rapid.Uint64Range(0, 1).Draw(t, "from"); i < size; i += 2 {
					v.add(i, i+1, nil)
					changed(iv{i, i + 1}, 1, 0)
					added = append(added, iv{i, i + 1})
				}
			},
			"sub": func(t *rapid.T) {
				if len(added) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(added)-1).Draw(t, "which")
				x := added[i]
				added = slices.Delete(added, i, i+1)
				got, err := v.sub(x.start, x.end, nil)
				if want := changed(x, -1, 0); err != nil || !slices.Equal(got, want) {
					t.Fatalf("sub %v: gone %v, %v, want %v", x, got, err, want)
				}
			},
			"sub what is not there": func(t *rapid.T) {
				x := draw(t)
				if slices.Min(model[x.start:x.end]) > 0 {
					t.Skip()
				}
				before := v.all()
				if gone, err := v.sub(x.start, x.end, nil); !errors.Is(err, errs.ErrBadArg) || len(gone) > 0 || !slices.Equal(v.all(), before) {
					t.Fatalf("sub %v: gone %v, %v", x, gone, err)
				}
			},
			"": func(t *rapid.T) {
				covered := uint64(0)
				for i, n := range model {
					if got := v.count(uint64(i)); got != n {
						t.Fatalf("%d is counted %d times, want %d", i, got, n)
					}
					if n > 0 {
						covered++
					}
				}
				if v.covered != covered {
					t.Fatalf("%d covered, want %d", v.covered, covered)
				}
				all := v.all()
				for i, a := range all {
					if a.start >= a.end || a.count == 0 {
						t.Fatalf("area %v", a)
					}
					if i > 0 && (all[i-1].end > a.start || all[i-1].end == a.start && all[i-1].count == a.count) {
						t.Fatalf("areas %v and %v", all[i-1], a)
					}
				}
				for _, k := range v.chunks {
					if len(k) == 0 || len(k) > chunkAreas {
						t.Fatalf("a chunk of %d areas", len(k))
					}
				}
			},
		})
	})
}

// count is how often x has been added.
func (v *intervals) count(x uint64) uint32 {
	if p, ok := v.seek(x); ok && v.at(p).start <= x {
		return v.at(p).count
	}
	return 0
}
