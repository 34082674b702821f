package seal

import (
	"testing"

	"pgregory.net/rapid"
)

// TestWindow compares the window with a set of all that was seen.
func TestWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w window
		seen := map[uint64]bool{}
		next := uint64(0)
		step := rapid.OneOf(
			rapid.Int64Range(-3, 3),
			rapid.Int64Range(-70, 70),
			rapid.Int64Range(-Window-70, Window+200),
			rapid.Int64Range(-Window-2, -Window+2),
			rapid.Int64Range(60*64, 70*64),
			rapid.Int64Range(0, 1<<40),
		)
		at := int64(rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Range(0, maxBlocks/2)).Draw(t, "first"))
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "newest") {
				at = int64(next)
			}
			at = min(max(0, at+step.Draw(t, "step")), maxBlocks-1)
			c := uint64(at)
			want := Accepted
			switch {
			case c < next && next-c > Window:
				want = TooOld
			case seen[c]:
				want = Replayed
			}
			if got := w.look(c); got != want {
				t.Fatalf("look at counter %d, newest %d: %v, want %v", c, int64(next)-1, got, want)
			}
			if got := w.see(c); got != want {
				t.Fatalf("counter %d, newest %d: %v, want %v", c, int64(next)-1, got, want)
			}
			if want == Accepted {
				seen[c] = true
				next = max(next, c+1)
			}
		}
	})
	if Window < 1024 {
		t.Error("the window is narrower than promised")
	}
}

// TestWindowDense goes over every edge of every word, in order and each bit.
func TestWindowDense(t *testing.T) {
	var w window
	for c := range uint64(3 * windowWords * 64) {
		if c%3 == 1 {
			continue // left out, to come late
		}
		if got := w.see(c); got != Accepted {
			t.Fatalf("counter %d: %v", c, got)
		}
		if late := c - Window + 1; c >= Window && late%3 == 1 {
			if got := w.see(late); got != Accepted {
				t.Fatalf("counter %d after %d: %v", late, c, got)
			}
			if got := w.see(late); got != Replayed {
				t.Fatalf("counter %d again: %v", late, got)
			}
		}
		if c >= Window {
			if got := w.see(c - Window); got != TooOld {
				t.Fatalf("counter %d after %d: %v", c-Window, c, got)
			}
		}
	}
}

// TestWindowJump fills the window, jumps on, and expects to find all that lies
// behind the jump unseen.
func TestWindowJump(t *testing.T) {
	for from := uint64(2 * Window); from < 2*Window+64; from += 7 {
		for jump := uint64(1); jump < 3*Window; jump += 61 {
			var w window
			for c := range from {
				w.see(c)
			}
			at := from - 1 + jump
			if got := w.see(at); got != Accepted {
				t.Fatalf("jump to %d: %v", at, got)
			}
			for c := at - Window + 1; c < at; c++ {
				want := Accepted
				if c < from {
					want = Replayed
				}
				if got := w.see(c); got != want {
					t.Fatalf("counter %d after a jump from %d to %d: %v", c, from-1, at, got)
				}
			}
		}
	}
}

// TestTable compares the table with a map.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := theRuns.sealer(t, 0, MaxRanks, None)
		m := map[uint32]*peer{}
		rank := rapid.OneOf(rapid.Uint32Range(0, 40), rapid.Uint32Range(0, MaxRanks-1),
			rapid.Map(rapid.Uint32Range(0, 40), func(r uint32) uint32 { return r << 8 }))
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			r := rank.Draw(t, "rank")
			if got := s.peers.Load().find(r); got != m[r] {
				t.Fatalf("find %d: %p, want %p", r, got, m[r])
			}
			if rapid.Bool().Draw(t, "add") {
				p := s.peerOf(r)
				if m[r] != nil && m[r] != p || p.rank != r {
					t.Fatalf("rank %d has two peers", r)
				}
				m[r] = p
			}
		}
		for r, p := range m {
			if s.peers.Load().find(r) != p {
				t.Fatalf("rank %d was lost", r)
			}
		}
		if tb := s.peers.Load(); tb.used != len(m) || 2*tb.used > len(tb.slots) {
			t.Fatalf("%d of %d slots used for %d peers", tb.used, len(tb.slots), len(m))
		}
	})
}
