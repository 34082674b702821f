package gas

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/segment"
)

// TestSpans compares the tree with a list that is searched from end to end.
func TestSpans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tree spans
		var model []*span
		next := segment.ExposedBase
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				from := rapid.UintptrRange(1, 60).Draw(t, "from")
				next += segment.NLA(rapid.IntRange(1, 3).Draw(t, "step")) << 16
				s := &span{from: from, to: from + rapid.UintptrRange(1, 30).Draw(t, "length"), at: next}
				tree.add(s)
				model = append(model, s)
			},
			"remove": func(t *rapid.T) {
				if len(model) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(model)-1).Draw(t, "which")
				tree.remove(model[i])
				model = append(model[:i], model[i+1:]...)
			},
			"find": func(t *rapid.T) {
				from := rapid.UintptrRange(0, 95).Draw(t, "from")
				to := from + rapid.UintptrRange(1, 20).Draw(t, "length")
				var want *span
				for _, s := range model {
					if s.from <= from && to <= s.to && (want == nil || s.at > want.at) {
						want = s
					}
				}
				if got := tree.find(from, to); got != want {
					t.Fatalf("found %+v for [%d, %d), want %+v", got, from, to, want)
				}
			},
			"": func(t *rapid.T) {
				n := 0
				var walk func(s *span) (most uintptr)
				walk = func(s *span) (most uintptr) {
					if s == nil {
						return 0
					}
					n++
					for _, c := range []*span{s.left, s.right} {
						if c != nil && (c.weight > s.weight || c.before(s) != (c == s.left)) {
							t.Fatalf("%+v is below %+v", c, s)
						}
					}
					if most = max(s.to, walk(s.left), walk(s.right)); most != s.most {
						t.Fatalf("the farthest end below %+v is %d", s, most)
					}
					return most
				}
				walk(tree.root)
				if n != len(model) {
					t.Fatalf("the tree has %d spans of %d", n, len(model))
				}
			},
		})
	})
}

// However spans come, the tree does not become deep.
func TestSpansBalance(t *testing.T) {
	var tree spans
	const count = 1 << 14
	for i := range uintptr(count) {
		tree.add(&span{from: i * 100, to: i*100 + 150, at: segment.ExposedBase + segment.NLA(i)<<16})
	}
	var depth func(s *span) int
	depth = func(s *span) int {
		if s == nil {
			return 0
		}
		return 1 + max(depth(s.left), depth(s.right))
	}
	if d := depth(tree.root); d > 60 {
		t.Errorf("%d spans make a tree of depth %d", count, d)
	}
}
