package conc

import (
	"slices"
	"testing"
)

// TestList: each has a slot of its own, and a slot that is free is used again.
func TestList(t *testing.T) {
	var l Sleepers[string]
	a, b, c := l.Add("a"), l.Add("b"), l.Add("c")
	if a == b || b == c || a == c {
		t.Fatalf("slots %d, %d, %d", a, b, c)
	}
	l.Remove(b)
	if got := l.All(); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("%q wait", got)
	}
	if d := l.Add("d"); d != b {
		t.Errorf("slot %d, and %d is free", d, b)
	}
	for _, s := range []int32{a, b, c} {
		l.Remove(s)
	}
	if got := l.All(); got != nil {
		t.Errorf("%q wait", got)
	}
}
