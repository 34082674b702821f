package contract

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
)

// Patience is how long a job may stand still, and until when it must end.
type Patience struct {
	Wait time.Duration
	End  time.Time // zero: never
}

// PatienceOf is that of a test's own jobs.
func PatienceOf(t *testing.T) Patience { return Patience{*flagPatience, limit(t)} }

var flagPatience = flag.Duration("conformance.patience", 10*time.Second, "how long nothing may move in a job before it is ended as one that hangs")

// Watch looks after a job while it runs. What is wrong with a conduit often shows
// as ranks that wait for ever; so a job in which nothing moves is ended, and if
// even that does not help it is left behind, for the suite to say so. Conduits
// that run their ranks themselves find out by themselves.
type Watch struct {
	steps atomic.Int64 // grows with what happens in the test's memory

	mu  sync.Mutex
	eps []conduits.Endpoint
	is  []stage
}

// stage is how far a rank has come.
type stage uint8

const (
	opened   stage = iota
	attached       // its endpoint may be asked
	ended
)

// Texts of a watch; internal/tools/mutants looks for the second.
const (
	Hung    = "nothing moves any more"
	tooLong = "the job still runs when the test's time is nearly over"
	Stayed  = "Fail of all ranks does not end the job, which stays behind"
)

// looks is how often a watch looks before it ends a job. It counts looks and not
// time: if the machine stands still, so do its clocks' ticks.
const looks = 20

// Job sets the endpoints to be watched.
func (w *Watch) Job(eps []conduits.Endpoint) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.eps, w.is = eps, make([]stage, len(eps))
}

// Step says that something was done in the test's memory.
func (w *Watch) Step() { w.steps.Add(1) }

// Up says that rank is attached: its endpoint may be asked.
func (w *Watch) Up(rank int) { w.set(rank, attached) }

// Over says that rank has ended.
func (w *Watch) Over(rank int) { w.set(rank, ended) }

// set says how far rank has come.
func (w *Watch) set(rank int, to stage) {
	w.steps.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if rank < len(w.is) {
		w.is[rank] = to
	}
}

// now is the endpoints and how far they have come.
func (w *Watch) now() ([]conduits.Endpoint, []stage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.eps, slices.Clone(w.is)
}

// moved is a number that changes whenever anything has been done. Sleeping, waking
// and trying without success count as nothing.
func (w *Watch) moved() uint64 {
	n := uint64(w.steps.Load())
	eps, is := w.now()
	for i, ep := range eps {
		if is[i] == attached {
			var s conduits.Stats
			ep.Stats(&s)
			n += s.Sent[0] + s.Sent[1] + s.Received[0] + s.Received[1] + s.Puts + s.Gets + s.Atomics + s.Wakes
		}
	}
	return n
}

// state describes what the ranks do, as far as their endpoints tell.
type state struct {
	text string
	busy bool // some of them are awake
}

func (w *Watch) state() (st state) {
	eps, is := w.now()
	var b strings.Builder
	for r, ep := range eps {
		var l []string
		switch is[r] {
		case opened:
			l = append(l, "Attach has not returned")
		case ended:
			l = append(l, "has ended")
		case attached:
			for _, p := range ep.Waiting() {
				what := "(not said)"
				if p != nil {
					what = p.Blocked()
				}
				l = append(l, what)
			}
			if len(l) == 0 {
				l, st.busy = append(l, "is not parked"), true
			}
		}
		fmt.Fprintf(&b, "\n\trank %d: %s", r, strings.Join(l, "; "))
	}
	st.text = b.String()
	return st
}

// fail ends the job.
func (w *Watch) fail(err error) {
	eps, _ := w.now()
	for _, ep := range eps {
		go ep.Fail(err)
	}
}

// ask calls f on a goroutine of its own, since a conduit that is broken may hold
// its locks for ever.
func ask[T any](f func() T) <-chan T {
	c := make(chan T, 1)
	go func() { c <- f() }()
	return c
}

// Guard calls f, which runs the job, and returns when it returns. If nothing moves
// for pt.wait, or several times as long if ranks are awake, or pt.end comes,
// complain is told, and the job is ended.
// If f does not return even then, Guard returns without it, with the stacks of the
// goroutines of the job.
func (w *Watch) Guard(pt Patience, complain func(text string), f func()) (stuck string) {
	wait, end := pt.Wait, pt.End
	over := make(chan struct{})
	go func() {
		defer close(over)
		f()
	}()
	tick := time.NewTicker(max(wait/looks, time.Millisecond))
	defer tick.Stop()
	moved := ask(w.moved)
	for seen, still := ^uint64(0), 0; ; {
		select {
		case <-over:
			return ""
		case <-tick.C:
		}
		still++
		select {
		case now := <-moved:
			moved = ask(w.moved)
			if now != seen {
				seen, still = now, 0
			}
		default: // not even that moves
		}
		late := !end.IsZero() && time.Now().After(end)
		if !late && still < looks {
			continue
		}
		st := state{text: "\n\tthe endpoints do not answer"}
		select {
		case st = <-ask(w.state):
		case <-time.After(time.Second):
		}
		if !late && st.busy && still < 4*looks {
			continue // a rank that is awake may have much to do
		}
		why := fmt.Sprintf("%s, for %v (-conformance.patience)", Hung, wait*time.Duration(still)/looks)
		if late {
			why = tooLong + " (-timeout)"
		}
		complain(why + "; waiting:" + st.text)
		w.fail(fmt.Errorf("conformance: %s", why))
		break
	}
	for range looks {
		select {
		case <-over:
			return ""
		case <-tick.C:
		}
	}
	return fmt.Sprintf("%s; what it does:\n%s", Stayed, stacks())
}

// stacks are those of the goroutines that conduits.Run and conduits.Go have started.
func stacks() string {
	b := make([]byte, 1<<20)
	var l []string
	for _, g := range strings.Split(string(b[:runtime.Stack(b, true)]), "\n\n") {
		if strings.Contains(g, "argon/conduits.Run.") || strings.Contains(g, "argon/conduits.Go ") {
			l = append(l, g)
		}
	}
	return strings.Join(l, "\n\n")
}

// limit is when jobs have to end for the suite to be able to say so; the zero
// time if the test may last for ever.
func limit(t *testing.T) time.Time {
	end, ok := t.Deadline()
	if !ok {
		return time.Time{}
	}
	left := time.Until(end)
	return end.Add(-min(left/4, 10*time.Second))
}
