package gas

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/segment"
)

// TestSpans compares the tree with a list that is searched from end to end.
func TestSpans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := newSpans()
		var model []span
		next := segment.ExposedBase
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				from := rapid.UintptrRange(1, 60).Draw(t, "from")
				next += segment.NLA(rapid.IntRange(1, 3).Draw(t, "step")) << 16
				s := span{from: from, to: from + rapid.UintptrRange(1, 30).Draw(t, "length"), at: next}
				tree.add(s)
				model = append(model, s)
			},
			"remove": func(t *rapid.T) {
				if len(model) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(model)-1).Draw(t, "which")
				if a := model[i].at; !tree.remove(a) || tree.has(a) || tree.remove(a) {
					t.Fatalf("the span at %v cannot be removed, or twice", a)
				}
				model = append(model[:i], model[i+1:]...)
			},
			"find": func(t *rapid.T) {
				from := rapid.UintptrRange(0, 95).Draw(t, "from")
				to := from + rapid.UintptrRange(1, 20).Draw(t, "length")
				var want segment.NLA
				for _, s := range model {
					if a := s.at + segment.NLA(from-s.from); s.from <= from && to <= s.to && a > want {
						want = a
					}
				}
				if got, ok := tree.find(from, to); got != want || ok != (want != 0) {
					t.Fatalf("found %v, %v for [%d, %d), want %v", got, ok, from, to, want)
				}
			},
			"": func(t *rapid.T) {
				for _, s := range model {
					if !tree.has(s.at) {
						t.Fatalf("%+v is not there", s)
					}
				}
				if n := len(tree.nodes); n != len(model) {
					t.Fatalf("there are %d spans of %d", n, len(model))
				}
			},
		})
	})
}
