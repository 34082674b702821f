package segment

import (
	"testing"

	"pgregory.net/rapid"
)

// TestLayoutWalk: places, phases and pointers of elements beside a walk through the
// array as UPC 1.3 defines it, with blocks of every kind.
func TestLayoutWalk(t *testing.T) {
	const size, base = 12, AttachBase + 4096
	rapid.Check(t, func(t *rapid.T) {
		l := Layout{Threads: rapid.IntRange(1, 7).Draw(t, "threads"), Block: rapid.OneOf(rapid.Just(0), rapid.Just(1), rapid.IntRange(2, 9)).Draw(t, "block")}
		count := rapid.IntRange(1, 150).Draw(t, "count")
		have := make([]int, l.Threads)
		var walk []Shared
		var at Shared
		for i := range count {
			local := have[at.Thread]
			have[at.Thread]++
			at.Addr = base + NLA(local*size)
			walk = append(walk, at)
			if thread, k := l.Locate(i); thread != at.Thread || k != local || l.Index(thread, k) != i || l.Phase(k) != at.Phase {
				t.Fatalf("%+v: element %d lies at %d of thread %d, of phase %d; it should be %d of thread %d", l, i, k, thread, l.Phase(k), local, at.Thread)
			}
			if got := l.At(base, i, size); got != at {
				t.Fatalf("%+v: element %d is %+v, not %+v", l, i, got, at)
			}
			if l.Block == 0 {
				continue
			}
			if at.Phase++; at.Phase == l.Block {
				at.Phase, at.Thread = 0, (at.Thread+1)%l.Threads
			}
		}
		for thread, want := range have {
			if got := l.Affinity(count, thread); got != want {
				t.Fatalf("%+v: %d of %d elements on thread %d, not %d", l, got, count, thread, want)
			}
		}
		i, j := rapid.IntRange(0, count-1).Draw(t, "i"), rapid.IntRange(0, count-1).Draw(t, "j")
		if got := walk[i].Add(l, j-i, size); got != walk[j] {
			t.Fatalf("%+v: element %d and %d more is %+v, not %+v", l, i, j-i, got, walk[j])
		}
		if x, ok := walk[j].Sub(l, walk[i], size); !ok || x != j-i {
			t.Fatalf("%+v: element %d minus element %d is %d, %v", l, j, i, x, ok)
		}
		part := walk[j]
		part.Addr += size / 2
		if x, ok := part.Sub(l, walk[i], size); ok {
			t.Fatalf("%+v: the middle of element %d minus element %d is %d", l, j, i, x)
		}
	})
}
