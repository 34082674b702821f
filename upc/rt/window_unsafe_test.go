package rt

import (
	"testing"
	"unsafe"
)

// TestWindow: windows that begin at any element of an array, or behind a pointer, have the elements
// around it, in the window and outside of it.
func TestWindow(t *testing.T) {
	onEach(t, 3, func(t *Thread) {
		const block, count, reach = 4, 60, 9
		blocked := t.AllAlloc(count/block, block*8).Phased()
		whole := MakePhaseless(1, t.AllAlloc(1, count*8*uint64(t.threads)).Addr())
		if t.me == 0 {
			for i := range count {
				Put(t, blocked.Add(i, block, 8, t.threads).Phaseless(), float64(i))
				Put(t, whole.AddLocal(i, 8), int32(i))
			}
		}
		t.BarrierAny()
		for i := range count {
			q := blocked.Add(i, block, 8, t.threads)
			w := Row[float64, [block]byte](t, q, block)
			s := Span[int32](t, whole.AddLocal(i, 8), count-i)
			for k := max(-reach, -i); k < min(reach, count-i); k++ {
				if v := w.Get(t, k); v != float64(i+k) {
					t.failf("element %d of the row at %d is %v", k, i, v)
				}
				in := k >= 0 && k < len(w.Own())
				if in && w.Own()[k] != float64(i+k) {
					t.failf("element %d of the slice at %d is %v", k, i, w.Own()[k])
				}
				if q.Thread() == t.me && in != (k >= 0 && k < block-i%block) {
					t.failf("the row at %d: element %d is in it: %v", i, k, in)
				}
			}
			for k := max(-reach/2, -i); k < min(reach, count-i); k++ {
				if Get[int32](t, whole.AddLocal(i+k, 8)) != int32(i+k) {
					t.failf("element %d behind %d is not as it was", k, i)
				}
				if k%2 == 0 && s.Get(t, k) != int32(i+k/2) {
					t.failf("half element %d behind %d is %d", k, i, s.Get(t, k))
				}
			}
		}
		own := Row[float64, [block]byte](t, blocked.Add(t.me*block, block, 8, t.threads), block)
		for k := -2; k < block+2; k++ {
			for n := -1; n < block+2; n++ {
				want := 0
				if k >= 0 && k < block {
					want = min(n, block-k)
				}
				p, run := own.Run(k, n)
				if run != want || run > 0 && (*p != float64(t.me*block+k) || unsafe.Add(unsafe.Pointer(p), 8*run-8) != unsafe.Pointer(&own.Own()[k+run-1])) {
					t.failf("%d of %d elements from %d on are in the window, want %d", run, n, k, want)
				}
			}
		}
		if n := Span[int32](t, 0, 5); len(n.Own()) != 0 {
			t.failf("a window on null has elements")
		}
		t.BarrierAny()
		if t.me == 2 { // puts by windows of others, behind their ends and before their beginnings
			for i := 5; i < count; i += 10 {
				w := Row[float64, [block]byte](t, blocked.Add(i, block, 8, t.threads), block)
				for k := -5; k < 5; k++ {
					w.Put(t, k, float64(1000+i+k))
				}
			}
		}
		t.BarrierAny()
		for i := range count {
			if v := Get[float64](t, blocked.Add(i, block, 8, t.threads).Phaseless()); v != float64(1000+i) {
				t.failf("element %d is %v", i, v)
			}
		}
		t.BarrierAny()
	})
}

// TestSpread: spreads that begin at any element of an array have the elements around it: in place on a number of threads that
// is a power of two, as far as there is memory, and by Get and Put otherwise.
func TestSpread(t *testing.T) {
	for _, threads := range []int{1, 3, 4} {
		onEach(t, threads, func(t *Thread) {
			const block, count = 3, 15
			blocked := t.AllAlloc(count/block, block*8).Phased()
			cyclic := t.AllAlloc(count, 2)
			if t.me == 0 {
				for i := range count {
					Put(t, blocked.Add(i, block, 8, t.threads).Phaseless(), float64(i))
					Put(t, cyclic.Add(i, 2, t.threads), int16(-i))
				}
			}
			t.BarrierAny()
			for i := range count {
				b := Blocked[float64, [block]byte](t, blocked.Add(i, block, 8, t.threads))
				c := Cyclic[int16](t, cyclic.Add(i, 2, t.threads))
				for k := -i; k < count-i; k++ {
					if v, w := b.Get(t, k), c.Get(t, k); v != float64(i+k) || w != int16(-i-k) {
						t.failf("elements %d behind %d are %v and %v", k, i, v, w)
					}
					at, room := blocked.Add(i+k, block, 8, t.threads), block-(i+k)%block
					if threads == 1 {
						room = 4
					}
					if w := b.Row(t, k, 4); w.p != uint64(at) || w.Get(t, 0) != float64(i+k) || t.Near() && len(w.Own()) != min(room, 4) {
						t.failf("the row at element %d behind %d is of %d elements at %v", k, i, len(w.Own()), Phased(w.p))
					}
					for n := -1; n < 6; n++ {
						want := min(n, room)
						switch {
						case n < 1 || threads == 1 && t.Near():
							want = n
						case t.views.Of(uint64(at.Thread())) == nil:
							want = 0
						}
						p, run := b.Run(t, k, n)
						if run != want || run > 0 && (*p != float64(i+k) || *(*float64)(unsafe.Add(unsafe.Pointer(p), 8*(min(run, count-i-k)-1))) != float64(i+k+min(run, count-i-k)-1)) {
							t.failf("%d of %d elements from %d behind %d on lie there, want %d", run, n, k, i, want)
						}
						if q, run := b.Alone(k, n); run != n || q != nil && n > 0 && (q != p || threads > 1) || q == nil && threads == 1 && t.Near() && n > 0 {
							t.failf("%d elements from %d behind %d on are found at %p, want %p", n, k, i, q, p)
						}
					}
					if p, run := c.Run(t, k, 1); t.Near() && (run != 1 || *p != int16(-i-k)) {
						t.failf("element %d behind %d does not lie there", k, i)
					}
					if in := threads != 3 && t.Near(); b.Has(k) != in || c.Has(k) != in {
						t.failf("element %d behind %d is in place: %v, %v", k, i, b.Has(k), c.Has(k))
					} else if in && (*b.At(k) != float64(i+k) || *c.At(k) != int16(-i-k)) {
						t.failf("elements %d behind %d are %v and %v in place", k, i, *b.At(k), *c.At(k))
					}
				}
			}
			b, c := Blocked[float64, [block]byte](t, blocked.Add(2, block, 8, t.threads)), Cyclic[int16](t, cyclic)
			for _, far := range []int{-1 << 63, -1 << 40, MaxShared / 8 * t.threads, 1 << 61, 1<<63 - 1} {
				if b.Has(far) || c.Has(far) {
					t.failf("element %d is in place", far)
				}
				b.Run(t, far, 5) // does not panic: a condition in the loop may leave it out
				c.Run(t, far, 5)
				if p, _ := b.Alone(far, 5); p != nil {
					t.failf("elements from %d on are in place", far)
				}
			}
			if n := Cyclic[int16](t, 0); n.Has(0) || n.Has(1) || n.place(t, 0) != 0 || runs(n.Run(t, 0, 5)) != 0 || Blocked[int16, [block]byte](t, 0).place(t, 0) != 0 {
				t.failf("a spread on null has elements")
			}
			t.BarrierAny()
			for i := t.me; i < count; i += t.threads {
				b.Put(t, i-2, float64(2*i))
				if c.Has(i) {
					*c.At(i) = int16(3 * i)
				}
				c.Put(t, i, int16(3*i))
			}
			t.BarrierAny()
			for i := range count {
				if v, w := Get[float64](t, blocked.Add(i, block, 8, t.threads).Phaseless()), Get[int16](t, cyclic.Add(i, 2, t.threads)); v != float64(2*i) || w != int16(3*i) {
					t.failf("elements %d are %v and %v", i, v, w)
				}
			}
			t.BarrierAny()
		})
	}
}

func runs[T any](_ *T, n int) int { return n }
