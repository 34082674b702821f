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
		next := uint64(0)
		more := func() {
			e := event{t: l.now + rapid.Int64Range(0, 100).Draw(rt, "wait"), a: next}
			next++
			l.Schedule(e.t, e.a, 7)
			at, _ := slices.BinarySearchFunc(model, e.t+1, func(m event, t Time) int { return cmp.Compare(m.t, t) })
			model = slices.Insert(model, at, e)
		}
		for range rapid.IntRange(0, 300).Draw(rt, "first") {
			more()
		}
		for range rapid.IntRange(0, 50).Draw(rt, "then") {
			if rapid.Bool().Draw(rt, "more") {
				more()
			}
			if len(model) > 0 {
				checkPop(rt, &l, model[0])
				model = model[1:]
			}
		}
		for _, e := range model {
			checkPop(rt, &l, e)
		}
		if len(l.heap) != 0 {
			rt.Fatalf("%d events too many", len(l.heap))
		}
	})
}

func checkPop(t *rapid.T, l *Loop, want event) {
	e := l.pop()
	l.now = e.t
	if e.t != want.t || e.a != want.a || e.b != 7 {
		t.Fatalf("event %d of %d, expected %d of %d", e.a, e.t, want.a, want.t)
	}
}
