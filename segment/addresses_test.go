package segment

import (
	"errors"
	"slices"
	"testing"

	"github.com/argon-go/argon/internal/errs"
	"pgregory.net/rapid"
)

// TestAddressesModel: what is handed out is disjoint, within its room, never
// page 0, as long as asked, in one run if there is one, and nothing is lost; the
// page behind a run is free. The room is small, so that it is often full and in
// pieces.
func TestAddressesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const pages, free = 24, 4 // of runs, and single pages
		d := addresses{base: AttachBase, limit: AttachBase + pages*PageSize}
		if r, ok := d.single(); !ok || r.at != 2*PageSize {
			t.Fatalf("%v is the first single page", r)
		}
		for i := free + 1; i < numSingles; i++ { // leave pages 2, 4, 6 and 8
			d.flip(i, 1)
		}
		d.free([]run{{at: 2 * PageSize, pages: 1}})
		var live [][]run
		used := map[NLA]bool{} // with the pages behind
		// largest is how many consecutive pages are free, of n and one behind at most,
		// and singles how many single ones.
		look := func(n uint64) (largest uint64, singles int) {
			for a := NLA(2 * PageSize); a <= 2*free*PageSize; a += 2 * PageSize {
				if !used[a] {
					singles++
				}
			}
			k := uint64(0)
			for a := d.base; a < d.limit; a += PageSize {
				if k++; used[a] {
					k = 0
				}
				largest = min(max(largest, k), n+1)
			}
			return largest, singles
		}
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(t *rapid.T) {
				n := rapid.OneOf(rapid.Uint64Range(1, 3), rapid.Uint64Range(1, pages+free)).Draw(t, "pages")
				largest, singles := look(n)
				roomy := largest > n || n == 1 && singles > 0
				runs, err := d.alloc(nil, n)
				if err != nil {
					if !errors.Is(err, errs.ErrResource) || len(runs) > 0 || roomy {
						t.Fatalf("%d pages: %v, %v, %d consecutive and %d single ones are free", n, runs, err, largest, singles)
					}
					if n <= uint64(singles) || largest > 1 && n <= largest-1+uint64(singles) {
						t.Fatalf("%d pages: %v, and %d consecutive and %d single ones are free", n, err, largest, singles)
					}
					return
				}
				total := uint64(0)
				for _, r := range runs {
					total += r.pages
					for i := range r.pages + 1 {
						a := r.at + NLA(i<<PageBits)
						single := a >= 2*PageSize && a <= (2*free+1)*PageSize
						if used[a] || a%PageSize != 0 || !single && (a < d.base || a >= d.limit) {
							t.Fatalf("%v handed out or left behind %v, used: %v", a, r, used[a])
						}
						used[a] = true
					}
				}
				if roomy && len(runs) > 1 || total != n {
					t.Fatalf("%v for %d pages", runs, n)
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
					for k := range r.pages + 1 {
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
	for i := range numSingles - 2 {
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
	if take(uint64(NLALimit-AttachBase)/PageSize - 1); len(d.late) > 0 {
		t.Error("runs that were given back are kept although room is needed")
	}
}

// TestAddressesLarge: large runs that come and go take addresses of few tables.
func TestAddressesLarge(t *testing.T) {
	d := addresses{base: AttachBase, limit: NLALimit}
	for _, n := range []uint64{GATEntries / 16, GATEntries, 3 * GATEntries} {
		tables := map[int]bool{}
		for range 2000 {
			runs, err := d.alloc(nil, n)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range runs {
				for p := uint64(0); p < r.pages; p += GATEntries {
					tables[(r.at + NLA(p*PageSize)).GAT()] = true
				}
			}
			d.free(runs)
		}
		if most := max(8, int(leastLate+2)*int(n/GATEntries+1)); len(tables) > most {
			t.Errorf("runs of %d pages, one at a time, use %d tables, at most %d", n, len(tables), most)
		}
	}
}
