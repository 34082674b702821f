package rt

import "testing"

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
		for _, c := range [][5]int{{0, 4, 0, 0, 0}, {-9, 9, 0, -1, 1}, {100, 120, 104, -2, 0}, {0, 3, 7, 0, 0}} {
			from, to := own.Within(c[0], c[1], c[2], c[3], c[4])
			for i := c[0]; i < c[1]; i++ {
				low, high := i+c[3]-c[2], i+c[4]-c[2]
				if in := i >= from && i < to; in != (low >= 0 && high < block) {
					t.failf("%v: iteration %d, elements %d to %d, is within: %v", c, i, low, high, in)
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
