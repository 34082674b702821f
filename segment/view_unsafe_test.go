package segment

import (
	"math"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// TestViewAt compares the wrapping comparison of At with arithmetic that cannot
// wrap, above all for addresses around the segment's ends and around 2^64.
func TestViewAt(t *testing.T) {
	mem := make([]byte, 2*PageSize+1) // one more, for no bytes at the end
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Uint64Range(0, uint64(len(mem)-1)).Draw(t, "size")
		rights := Rights(rapid.IntRange(0, int(RightsAll)).Draw(t, "rights"))
		v := NewView(unsafe.Pointer(&mem[0]), size, rights)
		if rights != 0 && v.Size() != size {
			t.Fatalf("size %d, want %d", v.Size(), size)
		}
		near := rapid.SampledFrom([]uint64{0, uint64(AttachBase), uint64(AttachBase) + size, uint64(NLALimit), 1 << 63}).Draw(t, "near")
		a := NLA(near + uint64(rapid.Int64Range(-20, 20).Draw(t, "delta")))
		n := rapid.OneOf(rapid.Uint64Range(0, 40), rapid.Uint64Range(0, size), rapid.Uint64Range(^uint64(0)-40, ^uint64(0))).Draw(t, "n")
		for right, limit := range map[Rights]uint64{RightRead: v.Read, RightWrite: v.Write, RightAtomic: v.Atomic} {
			inside := uint64(a) >= uint64(AttachBase) && uint64(a)-uint64(AttachBase) <= size &&
				n <= size-(uint64(a)-uint64(AttachBase))
			want := inside && rights&right != 0
			if !inside || n > 0 || uint64(a) > uint64(AttachBase) {
				p, ok := v.At(a, n, limit)
				if ok != want {
					t.Fatalf("%d bytes at %#x of %d with %v for %v: %v", n, uint64(a), size, rights, right, ok)
				}
				if ok && uintptr(p)-uintptr(v.Base) != uintptr(a-AttachBase) {
					t.Fatalf("address %v is %#x from the base", a, uintptr(p)-uintptr(v.Base))
				}
			}
			if b, ok := v.Bytes(a, n, limit); ok && uint64(len(b)) != n {
				t.Fatalf("%d bytes, want %d", len(b), n)
			}
			if n == 0 || n > math.MaxInt {
				continue
			}
			first := rapid.IntRange(0, 1<<20).Draw(t, "first")
			views, off := NewViews(first, []View{{}, v, {}}), min(uint64(a-AttachBase), MaxOffset)
			for _, rank := range []int{first - 1, first, first + 1, first + 2, first + 3, -1, math.MinInt} {
				p, ok := views.reach(right, uint64(rank), off, n)
				if ok != (want && rank == first+1) {
					t.Fatalf("%d bytes at offset %#x of %d of rank %d from %d on with %v for %v: %v", n, off, size, rank, first, rights, right, ok)
				}
				if ok && uintptr(p)-uintptr(v.Base) != uintptr(off) {
					t.Fatalf("offset %#x is %#x from the base", off, uintptr(p)-uintptr(v.Base))
				}
			}
		}
	})
}

// reach is the method for right.
func (s *Views) reach(right Rights, rank, off, n uint64) (unsafe.Pointer, bool) {
	switch right {
	case RightRead:
		return s.Read(rank, off, n)
	case RightWrite:
		return s.Write(rank, off, n)
	}
	return s.Atomic(rank, off, n, 1)
}

func TestZeroViewRefuses(t *testing.T) {
	var v View
	for _, a := range []NLA{0, AttachBase - 1, AttachBase, AttachBase + 1, ^NLA(0)} {
		if _, ok := v.At(a, 1, v.Read); ok {
			t.Errorf("the zero view has a byte at %v", a)
		}
	}
}

func TestViewDoesNotAllocate(t *testing.T) {
	mem := make([]byte, PageSize)
	v := NewView(unsafe.Pointer(&mem[0]), PageSize, RightsAll)
	if n := testing.AllocsPerRun(100, func() {
		if b, ok := v.Bytes(AttachBase+8, 16, v.Write); !ok || len(b) != 16 {
			t.Fatal("refused")
		}
	}); n != 0 {
		t.Fatalf("%v allocations per access", n)
	}
}
