package libc

import (
	"strings"
	"testing"
	"time"
)

// TestLongjmp: longjmp ends what is between it and the function of setjmp, also of a call further up than others with
// setjmp, and is refused once that has returned.
func TestLongjmp(t *testing.T) {
	c := New(func() time.Duration { return 0 })
	var outer, inner [2]uint64
	var got []int32
	Catch(&c, func(frame uint64, place, value int32) {
		got = append(got, place, value)
		if place != 0 {
			return
		}
		Setjmp(&outer[0], 4, frame)
		Catch(&c, func(frame uint64, place, value int32) {
			got = append(got, place, value)
			Setjmp(&inner[0], 5, frame)
			if place == 0 {
				Longjmp(&c, &inner[0], 0)
			}
			Longjmp(&c, &outer[0], 7)
		})
	})
	for i, want := range []int32{0, 0, 0, 0, 5, 1, 4, 7} {
		if i >= len(got) || got[i] != want {
			t.Fatalf("%v, not %d at %d", got, want, i)
		}
	}
	calls := 0
	Catch(&c, func(frame uint64, _, _ int32) { // a handler beside the thread jumps, and the function returns
		if calls++; calls == 1 {
			c.jump = &jump{frame, 1, 1}
		}
	})
	if calls != 1 {
		t.Errorf("a function that had returned was called %d times", calls)
	}
	defer func() {
		if s, _ := recover().(string); !strings.Contains(s, "has returned") || len(c.live) > 0 {
			t.Errorf("%q, %v", s, c.live)
		}
	}()
	Longjmp(&c, &inner[0], 1)
}
