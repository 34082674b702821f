package conduits

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// A word that is waited for; the waiter writes another one when its wait is over.
type wordWait struct{ word string }

func (w *wordWait) Blocked() string { return w.word }

// TestSleepers: each wait has a slot of its own, one that is free is used again, and of a wait that is over nothing is
// told, though another one has its slot.
func TestSleepers(t *testing.T) {
	var l Sleepers
	words := func(list []Blocked) (s string) {
		for _, b := range list {
			s += b.Blocked() + "."
		}
		return s
	}
	two, idle := &wordWait{"two"}, Idling{}.Blocked()
	a, b, c := l.Add(&wordWait{"one"}), l.Add(two), l.Add(nil)
	if a == b || b == c || a == c {
		t.Fatalf("slots %d, %d, %d", a, b, c)
	}
	all := l.All()
	if got, want := words(all), "one.two."+idle+"."; got != want || Awaited(all[1]) != two || Awaited(two) != two {
		t.Errorf("%q wait, not %q", got, want)
	}
	l.Remove(b)
	two.word = "three"
	if got, want := words(all), "one.."+idle+"."; got != want {
		t.Errorf("%q wait, not %q", got, want)
	}
	if again := l.Add(two); again != b {
		t.Errorf("slot %d, and %d is free", again, b)
	}
	if got := all[1].Blocked(); got != "" {
		t.Errorf("a wait that is over is for %q", got)
	}
	for _, s := range []int32{a, b, c} {
		l.Remove(s)
	}
	if got := l.All(); got != nil {
		t.Errorf("%q wait", words(got))
	}
}

// TestSleepersAsked asks a goroutine for what it waits while it waits for one thing after another: the race
// detector sees a text that is made of a wait that is over.
func TestSleepersAsked(t *testing.T) {
	var l Sleepers
	var enough atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for w := new(wordWait); !enough.Load(); {
			w.word = "a word"
			slot := l.Add(w)
			runtime.Gosched()
			l.Remove(slot)
			w.word = "another"
		}
	}()
	for seen := 0; seen < 100; {
		for _, b := range l.All() {
			switch s := b.Blocked(); s {
			case "":
			case "a word":
				seen++
			default:
				t.Errorf("the text %q", s)
				seen++
			}
		}
		runtime.Gosched()
	}
	enough.Store(true)
	<-done
}
