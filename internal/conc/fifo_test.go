package conc

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestModel compares a queue with a slice.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue[int]
		var model []int
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for range rapid.IntRange(1, 100).Draw(t, "n") {
					next++
					q.Add(next)
					model = append(model, next)
				}
			},
			"take": func(t *rapid.T) {
				for range rapid.IntRange(1, 100).Draw(t, "n") {
					if len(model) > 0 && q.First() != model[0] {
						t.Fatalf("first is %d, not %d", q.First(), model[0])
					}
					v, ok := q.Take()
					if ok != (len(model) > 0) || ok && v != model[0] {
						t.Fatalf("took %d, %v of %v", v, ok, model)
					}
					model = model[min(1, len(model)):]
				}
			},
			"": func(t *rapid.T) {
				if q.Empty() != (len(model) == 0) || !slices.Equal(q.All(), model) {
					t.Fatalf("%v, want %v", q.All(), model)
				}
			},
		})
	})
}

// TestMemory: what is taken is not kept alive, steady use allocates nothing, and a
// long burst's memory goes when the queue is empty.
func TestMemory(t *testing.T) {
	var q Queue[*int]
	for range 100 {
		q.Add(new(int))
	}
	if allocs := testing.AllocsPerRun(1000, func() {
		v, _ := q.Take()
		q.Add(v)
	}); allocs != 0 {
		t.Errorf("%v allocations to take and add one", allocs)
	}
	for range 60 {
		q.Take()
	}
	if i := slices.IndexFunc(q.v[:q.head], func(p *int) bool { return p != nil }); i >= 0 {
		t.Errorf("value %d is kept after it was taken", i)
	}
	for range most + 1 {
		q.Add(nil)
	}
	for !q.Empty() {
		q.Take()
	}
	if q.v != nil {
		t.Errorf("%d values' memory is kept by an empty queue", cap(q.v))
	}
}
