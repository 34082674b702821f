package segment

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/argon-go/argon/internal/errs"
	"pgregory.net/rapid"
)

// heapModel is the allocator said plainly: the list of allocated blocks in
// address order, and a scan of the gaps between them.
type heapModel struct {
	base, end uint64
	blocks    []modelBlock
}

type modelBlock struct {
	off, size  uint64
	collective bool
}

// round is the size and alignment that a request gets.
func (m *heapModel) round(n, align uint64) (uint64, uint64) {
	g := uint64(16)
	if n >= 64 {
		g = 64
	}
	return (n + g - 1) / g * g, max(align, g)
}

// part is the range that an allocation may use: up to the first own block, or
// from the last collective block on.
func (m *heapModel) part(collective bool) (from, to uint64) {
	from, to = m.base, m.end
	for _, b := range m.blocks {
		if collective && !b.collective {
			return from, b.off
		}
		if !collective && b.collective {
			from = b.off + b.size
		}
	}
	return from, to
}

// gaps calls f for each free range of an allocation's part, in address order.
func (m *heapModel) gaps(collective bool, f func(from, to uint64)) {
	from, to := m.part(collective)
	at := from
	for _, b := range m.blocks {
		if b.off >= from && b.off < to {
			if b.off > at {
				f(at, b.off)
			}
			at = b.off + b.size
		}
	}
	if at < to {
		f(at, to)
	}
}

func (m *heapModel) alloc(n, align uint64, collective bool) (off uint64, ok bool) {
	n, align = m.round(n, align)
	m.gaps(collective, func(from, to uint64) {
		if collective {
			if at := (from + align - 1) / align * align; !ok && at+n <= to {
				off, ok = at, true
			}
		} else if to >= n {
			if at := (to - n) / align * align; at >= from {
				off, ok = at, true
			}
		}
	})
	if ok {
		i, _ := slices.BinarySearchFunc(m.blocks, off, func(b modelBlock, off uint64) int { return int(b.off) - int(off) })
		m.blocks = slices.Insert(m.blocks, i, modelBlock{off, n, collective})
	}
	return off, ok
}

func (m *heapModel) largest(collective bool) (most uint64) {
	m.gaps(collective, func(from, to uint64) { most = max(most, to-from) })
	return most
}

// check compares everything that h says about itself with the model, and h's
// structure with its own rules.
func (m *heapModel) check(t interface{ Fatalf(string, ...any) }, h *Heap) {
	u := h.Usage()
	var used, collective uint64
	for _, b := range m.blocks {
		used += b.size
		if b.collective {
			collective += b.size
		}
	}
	if u.Size != m.end-m.base || u.Used != used || u.Collective != collective || u.Free != u.Size-used ||
		u.Largest != m.largest(false) || u.LargestCollective != m.largest(true) || u.Peak < used {
		t.Fatalf("usage %+v; want used %d, collective %d, largest %d, collective %d", u, used, collective, m.largest(false), m.largest(true))
	}
	// The blocks partition the heap, no two free ones adjacent.
	at, free, i := h.base, false, 0
	for b := h.find(h.base); b != 0; b = h.tree.At(b).next {
		n, off := h.tree.At(b), h.tree.Key(b)
		switch {
		case off != at || n.size == 0:
			t.Fatalf("block at %#x of %d follows %#x", off, n.size, at)
		case n.kind == blockFree && free:
			t.Fatalf("two free blocks meet at %#x", off)
		case n.kind != blockFree && (i >= len(m.blocks) || m.blocks[i] != modelBlock{off, n.size, n.kind == blockCollective}):
			t.Fatalf("block %d is %#x of %d %v, want %+v", i, off, n.size, n.kind, m.blocks)
		case n.kind != blockFree:
			i++
		}
		at, free = off+n.size, n.kind == blockFree
	}
	if at != h.end || i != len(m.blocks) {
		t.Fatalf("blocks end at %#x, want %#x; %d allocated, want %d", at, h.end, i, len(m.blocks))
	}
}

func drawHeap(t *rapid.T) (*Heap, *heapModel) {
	// Unaligned bases make alignment of the first block an effort.
	base := uint64(AttachBase) + 16*rapid.Uint64Range(0, 300).Draw(t, "base")
	size := 16 * rapid.OneOf(rapid.Uint64Range(0, 64), rapid.Uint64Range(0, 2048)).Draw(t, "granules")
	h, err := NewHeap(NLA(base), size)
	if err != nil {
		t.Fatal(err)
	}
	return h, &heapModel{base: base, end: base + size}
}

var drawSize = rapid.OneOf(rapid.Uint64Range(1, 80), rapid.Uint64Range(1, 2000), rapid.Uint64Range(1, 40000))

func TestHeapModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, m := drawHeap(t)
		ever := map[uint64]bool{}
		var allocs, frees uint64
		alloc := func(collective bool) func(t *rapid.T) {
			return func(t *rapid.T) {
				n := drawSize.Draw(t, "n")
				align := rapid.SampledFrom([]uint64{0, 1, 8, 16, 32, 64, 128, 1024, 4096, 8192}).Draw(t, "align")
				if align > max(m.end-m.base, 16) {
					align = 0
				}
				var a NLA
				var err error
				if collective {
					a, err = h.AllocCollective(n, align)
				} else {
					a, err = h.Alloc(n, align)
				}
				off, ok := m.alloc(n, align, collective)
				if !ok {
					if !errors.Is(err, errs.ErrResource) {
						t.Fatalf("%d bytes aligned to %d without room: %v, %v", n, align, a, err)
					}
					return
				}
				if err != nil || uint64(a) != off {
					t.Fatalf("%d bytes aligned to %d: %v, %v; want %v", n, align, a, err, NLA(off))
				}
				if align > 0 && uint64(a)%align != 0 || uint64(a)%16 != 0 || n >= 64 && uint64(a)%64 != 0 {
					t.Fatalf("%v is not aligned to %d", a, align)
				}
				if own, all := h.CheckFree(a, false), h.CheckFree(a, true); (own == nil) == (all == nil) {
					t.Fatalf("free of %d bytes at %v: %v, and collectively: %v", n, a, own, all)
				}
				ever[off] = true
				allocs++
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"":                m.checker(h, &allocs, &frees),
			"alloc":           alloc(false),
			"allocCollective": alloc(true),
			"free": func(t *rapid.T) {
				if len(m.blocks) == 0 {
					t.Skip("nothing to free")
				}
				i := rapid.IntRange(0, len(m.blocks)-1).Draw(t, "block")
				b := m.blocks[i]
				right, wrong := h.Free, h.FreeCollective
				if b.collective {
					right, wrong = wrong, right
				}
				if err := wrong(NLA(b.off)); !errors.Is(err, ErrNotAllocated) {
					t.Fatalf("free of the other kind: %v", err)
				}
				if err := right(NLA(b.off)); err != nil {
					t.Fatal(err)
				}
				m.blocks = slices.Delete(m.blocks, i, i+1)
				frees++
			},
			"freeWrong": func(t *rapid.T) {
				a := m.base - 64 + rapid.Uint64Range(0, m.end-m.base+128).Draw(t, "a")
				inside := false
				for _, b := range m.blocks {
					if b.off == a {
						t.Skip("a block")
					}
					inside = inside || b.off < a && a < b.off+b.size
				}
				want, not := ErrNotAllocated, ErrDoubleFree
				if ever[a] && !inside {
					want, not = not, want
				}
				for _, err := range []error{h.CheckFree(NLA(a), true), h.CheckFree(NLA(a), false), h.Free(NLA(a)), h.FreeCollective(NLA(a))} {
					if !errors.Is(err, want) || errors.Is(err, not) || !errors.Is(err, errs.ErrBadArg) {
						t.Fatalf("free of %v: %v, want %v", NLA(a), err, want)
					}
				}
			},
		})
		for _, b := range m.blocks {
			free := h.Free
			if b.collective {
				free = h.FreeCollective
			}
			if err := free(NLA(b.off)); err != nil {
				t.Fatal(err)
			}
		}
		if u := h.Usage(); u.Largest != u.Size || u.LargestCollective != u.Size || u.Used != 0 {
			t.Fatalf("with everything freed: %+v", u)
		}
	})
}

func (m *heapModel) checker(h *Heap, allocs, frees *uint64) func(*rapid.T) {
	var peak uint64
	return func(t *rapid.T) {
		m.check(t, h)
		u := h.Usage()
		peak = max(peak, u.Used)
		if u.Peak != peak || u.Allocs != *allocs || u.Frees != *frees {
			t.Fatalf("usage %+v, want peak %d, allocs %d, frees %d", u, peak, *allocs, *frees)
		}
	}
}

// TestCollectiveOffsetsAgree runs the same collective calls on heaps of
// different sizes whose own allocations differ. Whenever one of them has no
// room, the others undo, as a runtime would.
func TestCollectiveOffsetsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const ranks = 3
		var heaps [ranks]*Heap
		var own [ranks][]NLA
		for r := range heaps {
			var err error
			if heaps[r], err = NewHeap(AttachBase, 4096*rapid.Uint64Range(1, 16).Draw(t, "pages")); err != nil {
				t.Fatal(err)
			}
		}
		var shared []NLA
		t.Repeat(map[string]func(*rapid.T){
			"allocCollective": func(t *rapid.T) {
				n, align := drawSize.Draw(t, "n"), rapid.SampledFrom([]uint64{0, 64, 256, 4096}).Draw(t, "align")
				var got []NLA
				for _, h := range heaps {
					if a, err := h.AllocCollective(n, align); err == nil {
						got = append(got, a)
					} else if got = append(got, 0); !errors.Is(err, errs.ErrResource) {
						t.Fatal(err)
					}
				}
				if !slices.Contains(got, 0) {
					if got[0] != got[1] || got[0] != got[2] {
						t.Fatalf("%d bytes aligned to %d: %v", n, align, got)
					}
					shared = append(shared, got[0])
					return
				}
				for r, a := range got {
					if a != 0 {
						if err := heaps[r].FreeCollective(a); err != nil {
							t.Fatal(err)
						}
					}
				}
			},
			"freeCollective": func(t *rapid.T) {
				if len(shared) == 0 {
					t.Skip("nothing to free")
				}
				i := rapid.IntRange(0, len(shared)-1).Draw(t, "block")
				for _, h := range heaps {
					if err := h.FreeCollective(shared[i]); err != nil {
						t.Fatal(err)
					}
				}
				shared = slices.Delete(shared, i, i+1)
			},
			"alloc": func(t *rapid.T) {
				r := rapid.IntRange(0, ranks-1).Draw(t, "rank")
				if a, err := heaps[r].Alloc(drawSize.Draw(t, "n"), 0); err == nil {
					own[r] = append(own[r], a)
				}
			},
			"free": func(t *rapid.T) {
				r := rapid.IntRange(0, ranks-1).Draw(t, "rank")
				if len(own[r]) == 0 {
					t.Skip("nothing to free")
				}
				i := rapid.IntRange(0, len(own[r])-1).Draw(t, "block")
				if err := heaps[r].Free(own[r][i]); err != nil {
					t.Fatal(err)
				}
				own[r] = slices.Delete(own[r], i, i+1)
			},
		})
	})
}

func TestNewHeapArguments(t *testing.T) {
	for _, c := range []struct {
		base NLA
		size uint64
		want string
	}{
		{AttachBase + 8, 4096, "multiples of 16"},
		{AttachBase, 4096 + 8, "multiples of 16"},
		{NLALimit - 16, 32, "addresses end at 511:0x3ffff:0xfff"},
		{ExposedLimit - 16, 32, "addresses end at exposed:0x7fffffffff"},
		{ExposedLimit, 0, "addresses end at"},
		{AttachBase, ^uint64(0) - 15, "addresses end at"},
	} {
		if h, err := NewHeap(c.base, c.size); h != nil || !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("heap of %d at %v: %v, want %q", c.size, c.base, err, c.want)
		}
	}
}

func TestAllocArguments(t *testing.T) {
	h, err := NewHeap(AttachBase, 4096)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Alloc(100, 0); err != nil {
		t.Fatal(err)
	}
	before := h.Usage()
	for _, c := range []struct {
		n, align uint64
		is       error
		want     string
	}{
		{0, 0, errs.ErrBadArg, "segment: allocation of 0 bytes"},
		{8, 24, errs.ErrBadArg, "alignment 24: not a power of two"},
		{8, 8192, errs.ErrBadArg, "alignment 8192: the heap has 4096 bytes (-segment, ARGON_SEGMENT)"},
		{8, 1 << 63, errs.ErrBadArg, "the heap has 4096 bytes"},
		{4000, 0, errs.ErrResource, "asked for 4000 bytes aligned to 64; largest free block 3968, free 3968 of 4096 in total (-segment, ARGON_SEGMENT)"},
		{4097, 0, errs.ErrResource, "asked for 4097 bytes"},
		{^uint64(0), 16, errs.ErrResource, "asked for 18446744073709551615 bytes"},
	} {
		for name, alloc := range map[string]func(n, align uint64) (NLA, error){"own": h.Alloc, "collective": h.AllocCollective} {
			if a, err := alloc(c.n, c.align); a != 0 || !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %d bytes aligned to %d: %v, %v; want %q", name, c.n, c.align, a, err, c.want)
			}
		}
	}
	if after := h.Usage(); after != before {
		t.Errorf("refused allocations changed the heap: %+v, before %+v", after, before)
	}
}

// TestOutOfMemoryNamesReachableRoom: free memory in the other end's part does
// not count as the largest block.
func TestOutOfMemoryNamesReachableRoom(t *testing.T) {
	h, err := NewHeap(AttachBase, 4096)
	if err != nil {
		t.Fatal(err)
	}
	hole, _ := h.AllocCollective(1024, 0)
	if _, err := h.AllocCollective(2048, 0); err != nil {
		t.Fatal(err)
	}
	if err := h.FreeCollective(hole); err != nil {
		t.Fatal(err)
	}
	u := h.Usage()
	if u.Largest != 1024 || u.LargestCollective != 1024 || u.Free != 2048 {
		t.Fatalf("%+v", u)
	}
	if _, err := h.Alloc(960, 0); err != nil {
		t.Fatal(err)
	}
	if _, err = h.Alloc(65, 0); !errors.Is(err, errs.ErrResource) || !strings.Contains(err.Error(), "largest free block 64, free 1088 of 4096") {
		t.Fatalf("own: %v", err)
	}
	if _, err = h.AllocCollective(1025, 0); !errors.Is(err, errs.ErrResource) || !strings.Contains(err.Error(), "largest free block 1024, free 1088 of 4096") {
		t.Fatalf("collective: %v", err)
	}
}

func TestFreeErrors(t *testing.T) {
	h, err := NewHeap(AttachBase, 4096)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := h.Alloc(128, 0)
	b, _ := h.Alloc(128, 0)
	c, _ := h.AllocCollective(128, 0)
	if err := h.Free(a); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		a    NLA
		is   error
		want string
	}{
		{a, ErrDoubleFree, "freed already"},
		{b + 16, ErrNotAllocated, "it lies inside the one of 128 bytes at " + b.String()},
		{b + 1, ErrNotAllocated, "it lies inside"},
		{AttachBase + 1024, ErrNotAllocated, "none ever began there"},
		{a + 1, ErrNotAllocated, "none ever began there"},
		{AttachBase - 16, ErrNotAllocated, "the heap has addresses 1:0x0:0x0 up to 1:0x1:0x0"},
		{AttachBase + 4096, ErrNotAllocated, "the heap has addresses"},
		{0, ErrNotAllocated, "the heap has addresses"},
		{^NLA(0), ErrNotAllocated, "the heap has addresses"},
		{c, ErrNotAllocated, "it was allocated collectively"},
	} {
		if err := h.Free(x.a); !errors.Is(err, x.is) || !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("free of %v: %v, want %q", x.a, err, x.want)
		}
	}
	if err := h.FreeCollective(b); !errors.Is(err, ErrNotAllocated) || !strings.Contains(err.Error(), "it was allocated by one rank alone") {
		t.Errorf("collective free of %v: %v", b, err)
	}
	if u := h.Usage(); u.Used != 256 || u.Frees != 1 {
		t.Errorf("refused frees changed the heap: %+v", u)
	}
}

// TestHeapFull allocates every block of a heap and frees them in another order.
func TestHeapFull(t *testing.T) {
	const blocks = 1 << 14
	h, err := NewHeap(AttachBase, blocks*16)
	if err != nil {
		t.Fatal(err)
	}
	for range blocks {
		if _, err := h.Alloc(16, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Alloc(1, 0); !errors.Is(err, errs.ErrResource) {
		t.Fatalf("one more: %v", err)
	}
	for i := NLA(0); i < blocks; i += 2 {
		if err := h.Free(AttachBase + i*16); err != nil {
			t.Fatal(err)
		}
	}
	if u := h.Usage(); u.Largest != 16 || u.Free != blocks/2*16 {
		t.Fatalf("every second block freed: %+v", u)
	}
	for i := NLA(1); i < blocks; i += 2 {
		if err := h.Free(AttachBase + i*16); err != nil {
			t.Fatal(err)
		}
	}
	if u := h.Usage(); u.Largest != u.Size || u.Allocs != blocks || u.Frees != blocks {
		t.Fatalf("all freed: %+v", u)
	}
}

// TestHeapConcurrent hands out blocks to goroutines that each write a pattern
// of their own into what stands for the memory: blocks that overlap would show,
// and under the race detector at once.
func TestHeapConcurrent(t *testing.T) {
	const size, workers = 1 << 16, 4
	h, err := NewHeap(AttachBase, size)
	if err != nil {
		t.Fatal(err)
	}
	mem := make([]byte, size)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(w)))
			type held struct {
				a    NLA
				n    uint64
				free func(NLA) error
			}
			var mine []held
			drop := func(i int) error {
				x := mine[i]
				for j, c := range mem[x.a-AttachBase : x.a-AttachBase+NLA(x.n)] {
					if c != byte(w+1) {
						return fmt.Errorf("byte %d of block %v is %d", j, x.a, c)
					}
				}
				mine = slices.Delete(mine, i, i+1)
				return x.free(x.a)
			}
			for range 2000 {
				if len(mine) > 0 && rng.IntN(2) == 0 {
					if err := drop(rng.IntN(len(mine))); err != nil {
						t.Error(err)
						return
					}
					continue
				}
				x := held{n: 1 + rng.Uint64N(2000), free: h.Free}
				alloc := h.Alloc
				if rng.IntN(2) == 0 {
					alloc, x.free = h.AllocCollective, h.FreeCollective
				}
				var err error
				if x.a, err = alloc(x.n, 0); errors.Is(err, errs.ErrResource) {
					continue
				} else if err != nil {
					t.Error(err)
					return
				}
				for j := range x.n {
					mem[uint64(x.a-AttachBase)+j] = byte(w + 1)
				}
				mine = append(mine, x)
				if u := h.Usage(); u.Used > u.Size || u.Used < x.n {
					t.Errorf("usage %+v with %d bytes held", u, x.n)
					return
				}
			}
			for len(mine) > 0 {
				if err := drop(0); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if u := h.Usage(); u.Largest != size || u.Used != 0 || u.Allocs != u.Frees {
		t.Fatalf("all freed: %+v", u)
	}
}

// TestHeapDoesNotAllocate: bookkeeping is made once for each address and
// recycled after that.
func TestHeapDoesNotAllocate(t *testing.T) {
	h, err := NewHeap(AttachBase, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	round := func() {
		a, err := h.Alloc(100, 0)
		b, err2 := h.AllocCollective(5000, 4096)
		if err != nil || err2 != nil || h.Free(a) != nil || h.FreeCollective(b) != nil {
			t.Fatal("refused")
		}
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Fatalf("%v Go allocations per round", n)
	}
}

func BenchmarkHeap(b *testing.B) {
	for _, live := range []int{1, 1000, 100000} {
		b.Run(fmt.Sprintf("live=%d", live), func(b *testing.B) {
			h, err := NewHeap(AttachBase, 1<<30)
			if err != nil {
				b.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			held := make([]NLA, live)
			for i := range held {
				held[i], _ = h.Alloc(1+rng.Uint64N(1000), 0)
			}
			b.ReportAllocs()
			for b.Loop() {
				i := rng.IntN(live)
				if err := h.Free(held[i]); err != nil {
					b.Fatal(err)
				}
				if held[i], err = h.Alloc(1+rng.Uint64N(1000), 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
