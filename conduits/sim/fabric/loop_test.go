package fabric

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Events come by time, and those of a time in the order they came in.
func TestLoop(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var l Loop
		var model []event
		for i := range rapid.IntRange(1, 200).Draw(rt, "steps") {
			if rapid.IntRange(0, 2).Draw(rt, "step") > 0 {
				e := event{t: l.now + rapid.Int64Range(0, 10).Draw(rt, "wait"), a: uint64(i)}
				l.Schedule(e.t, e.a, 7)
				model = append(model, e)
				continue
			}
			if len(model) == 0 {
				continue
			}
			slices.SortStableFunc(model, func(a, b event) int { return cmp.Compare(a.t, b.t) })
			e := l.pop()
			l.now = e.t
			if e.t != model[0].t || e.a != model[0].a || e.b != 7 {
				rt.Fatalf("event %d of %d, expected %d of %d", e.a, e.t, model[0].a, model[0].t)
			}
			model = model[1:]
		}
		if len(l.heap) != len(model) {
			rt.Fatalf("%d events, expected %d", len(l.heap), len(model))
		}
	})
}
