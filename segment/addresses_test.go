package segment

import (
	"errors"
	"slices"
	"testing"

	"github.com/argon-go/argon/internal/errs"
	"pgregory.net/rapid"
)

// TestAddressesModel: what is handed out is disjoint, within its room, never
// page 0, as long as asked, in one run if there is one, and nothing is lost. The
// room is small, so that it is often full and in pieces.
func TestAddressesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const pages, free = 24, 8 // of runs, and of single pages
		d := addresses{base: AttachBase, limit: AttachBase + pages*PageSize}
		d.single()
		for i := free + 1; i < GATEntries; i++ { // leave pages 2..8 and 1
			d.singles[i/64] |= 1 << (i % 64)
			d.taken++
		}
		d.free([]run{{PageSize, 1}})
		d.next = 1
		var live [][]run
		used := map[NLA]bool{}
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(t *rapid.T) {
				n := rapid.OneOf(rapid.Uint64Range(1, 3), rapid.Uint64Range(1, pages+free)).Draw(t, "pages")
				runs, err := d.alloc(nil, n)
				if left := uint64(pages + free - len(used)); (err != nil) != (n > left) {
					t.Fatalf("%d of %d pages: %v", n, left, err)
				}
				if err != nil {
					if !errors.Is(err, errs.ErrResource) || len(runs) > 0 {
						t.Fatalf("%v, %v", runs, err)
					}
					return
				}
				total := uint64(0)
				for _, r := range runs {
					total += r.pages
					for i := range r.pages {
						a := r.at + NLA(i<<PageBits)
						single := a >= PageSize && a <= free*PageSize
						if used[a] || a%PageSize != 0 || !single && (a < d.base || a >= d.limit) {
							t.Fatalf("%v handed out, used: %v", a, used[a])
						}
						used[a] = true
					}
				}
				if total != n {
					t.Fatalf("%d pages instead of %d", total, n)
				}
				live = append(live, runs)
			},
			"free": func(t *rapid.T) {
				if len(live) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				d.free(live[i])
				for _, r := range live[i] {
					for k := range r.pages {
						delete(used, r.at+NLA(k<<PageBits))
					}
				}
				live = slices.Delete(live, i, i+1)
			},
		})
	})
}

// TestAddressesKinds: single pages stay out of the way of runs, and addresses
// given back come again last.
func TestAddressesKinds(t *testing.T) {
	d := addresses{base: AttachBase, limit: NLALimit}
	take := func(n uint64) run {
		runs, err := d.alloc(nil, n)
		if err != nil || len(runs) != 1 || runs[0].pages != n {
			t.Fatalf("%d pages: %v, %v", n, runs, err)
		}
		return runs[0]
	}
	one, many := take(1), take(2)
	if one.at.GAT() != 0 || many.at < AttachBase {
		t.Errorf("a page at %v, two at %v", one.at, many.at)
	}
	d.free([]run{one, many})
	for i := range GATEntries - 2 {
		if r := take(1); r == one {
			t.Fatalf("page %v again after %d others", one.at, i)
		} else {
			d.free([]run{r})
		}
	}
	if r := take(1); r != one {
		t.Errorf("page %v after all others, want %v", r.at, one.at)
	}
	for i := range maxLate {
		if r := take(2); r == many {
			t.Fatalf("run %v again after %d others", many.at, i)
		} else {
			d.free([]run{r})
		}
	}
	three := take(3)
	if three.at == many.at {
		t.Errorf("three pages at %v, where two were given back", three.at)
	}
	if r := take(2); r != many {
		t.Errorf("run %v after %d others, want %v", r.at, maxLate, many.at)
	}
	d.free([]run{many, three})
	if take(uint64(NLALimit-AttachBase) / PageSize); len(d.late) > 0 {
		t.Error("runs that were given back are kept although room is needed")
	}
}
