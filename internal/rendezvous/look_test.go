package rendezvous

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/sys"
)

// TestLook: a look at a rank shows whether it answers, and what its process does meanwhile,
// seen by the service, by what it was given, or by another rank of the host.
func TestLook(t *testing.T) {
	const while = 100 * time.Millisecond
	var given atomic.Pointer[func(n int) (sys.Activity, bool)] // what looks at processes; nil: nothing does
	var looked atomic.Int32
	notes := make(chan string, 10)
	j := serve(t, ServerConfig{
		Size: 4,
		Process: func(rank int) (a sys.Activity, pid int, ok bool) {
			if f := given.Load(); f != nil {
				a, ok = (*f)(int(looked.Add(1)))
			}
			return a, 4000 + rank, ok
		},
		Note: func(rank int, text string) { notes <- text },
	})
	deaf := make(chan struct{})
	defer close(deaf)
	e, ch := events(8)
	e.Left = func(int) { <-deaf } // keeps the goroutine that answers
	joined := make(chan *member)
	go func() {
		c, err := Setup{Server: j.addr, Key: j.key}.Join(within(t), j.hello(1), e)
		if err != nil {
			t.Error(err)
		}
		joined <- &member{c, t, ch}
	}()
	others := make(chan *member, 3)
	for _, r := range []int{0, 2, 3} {
		go func() {
			m, err := j.join(within(t), j.hello(r))
			if err != nil {
				t.Error(err)
			}
			others <- m
		}()
	}
	m := map[int]*member{}
	for range 3 {
		o := <-others
		m[o.rank] = o
	}
	m[1] = <-joined
	defer m[1].Close()
	see := func(rank int, silent time.Duration) Sight {
		t.Helper()
		s, err := m[0].Look(within(t), rank, while, silent)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s, err := m[0].Look(within(t), 1, time.Minute, time.Hour); err != nil || !s.Answers || s.Busy() || s.PID != os.Getpid() || !strings.Contains(s.String(), "firewall") {
		t.Errorf("a rank that answers: %+v: %v", s, s)
	}
	if _, err := m[0].Look(within(t), 4, while, 0); err == nil {
		t.Error("a look at a rank that there is not")
	}
	if err := m[3].Leave(); err != nil {
		t.Fatal(err)
	}
	m[2].next() // rank 3 has left: rank 1 is told, too, and keeps its reader there
	j.mu.Lock()
	j.processes++ // the service sees no rank's process any more
	j.mu.Unlock()
	for _, c := range []struct {
		name string
		// does is what the process has done at the first look and at the second one.
		does [2]sys.Activity
		busy bool
		says string
	}{
		{"runs", [2]sys.Activity{{State: 'R', Ran: time.Hour}, {State: 'R', Ran: time.Hour + while}}, true, "its process 4001 runs (state R"},
		{"is not given a processor", [2]sys.Activity{{State: 'R'}, {State: 'R', Delayed: while}}, true, "its process 4001 runs"},
		{"waits for pages", [2]sys.Activity{{State: 'D', Faults: 7}, {State: 'D', Faults: 8}}, true, "its process 4001 runs"},
		{"sleeps", [2]sys.Activity{{State: 'S', Ran: time.Hour, Faults: 7}, {State: 'S', Ran: time.Hour + while/1000, Faults: 7}}, false, "lives and does not run (state S"},
		{"is stopped", [2]sys.Activity{{State: 'R'}, {State: 'T', Ran: while}}, false, "its process 4001 is stopped (state T)"},
		{"is traced", [2]sys.Activity{{State: 'R'}, {State: 't', Ran: while}}, false, "its process 4001 is stopped (state t)"},
	} {
		looked.Store(0)
		f := func(n int) (sys.Activity, bool) { return c.does[min(n, 2)-1], true }
		given.Store(&f)
		if s := see(1, 0); s.Answers || s.PID != 4001 || s.Busy() != c.busy || !strings.Contains(s.String(), c.says) || s.Stopped() != strings.Contains(c.name, "ed") {
			t.Errorf("a process that %s: %+v: %v", c.name, s, s)
		}
	}
	select {
	case n := <-notes:
		t.Errorf("a note on ranks that are not silent for long: %q", n)
	default:
	}
	// The user is told once, and when it has taken twice as long.
	f := func(n int) (sys.Activity, bool) { return sys.Activity{State: 'R', Ran: time.Duration(n) * while}, true }
	given.Store(&f)
	see(1, 2*time.Second)
	if n := <-notes; !strings.HasPrefix(n, "has not answered for 2s and is waited for: its process 4001 runs") {
		t.Errorf("note: %q", n)
	}
	see(1, 3*time.Second)
	see(1, 4*time.Second)
	if n := <-notes; !strings.HasPrefix(n, "has not answered for 4s") {
		t.Errorf("second note: %q", n)
	}
	// Where nothing is given, another rank that sees the process looks at it.
	given.Store(nil)
	growing(t, while, func(d time.Duration) error { // in which that one answers twice
		if s, err := m[0].Look(within(t), 1, d, 0); err != nil || s.Answers || s.PID != os.Getpid() || s.State == 0 || s.State == 'T' {
			return fmt.Errorf("by another rank of the host: %+v: %v, %w", s, s, err)
		}
		return nil
	})
	j.mu.Lock()
	j.seats[1].processes += 2 // and of the other ranks none sees it
	j.mu.Unlock()
	if s := see(1, 0); s.Answers || s.PID != 0 || s.Busy() || s.String() != "" {
		t.Errorf("seen by none: %+v: %v", s, s)
	}
	if len(j.looks) != 0 || len(j.echoes) != 0 {
		t.Errorf("%d looks and %d echoes are still awaited", len(j.looks), len(j.echoes))
	}
}
