package sim

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"time"
)

// A rank that runs on and on stops all others, for one runs at a time. A loop that is visible
// in virtual time ends the job (see sync); a goroutine outside of it, the overseer, sees the
// rest. It only prints: it depends on real time, and must not change the run of the job.

// oversight is how often the overseer looks, in real time, and how many looks in
// turn have to find the same before it says so: that the job does not come to its
// loop, and that only one rank runs. Looks are counted, and not time, for the process
// may have been stopped.
type oversight struct {
	every         time.Duration
	silent, alone int
}

// overseen are the overseer's limits; tests change them.
var overseen = oversight{time.Second, 5, 10}

// idleLimit is how long, in virtual time, a rank may poll when nothing is under way
// and every other thread is parked: nothing can come of it but what the rank itself
// does when time has passed.
const idleLimit = 10 * Second

// oversee reports a rank that does not give the processor back, and one that alone
// is given it, once each. It returns when done is closed.
func (j *Job) oversee(o oversight, done <-chan struct{}) {
	t := time.NewTicker(o.every)
	defer t.Stop()
	for silent := 0; ; {
		select {
		case <-done:
			return
		case <-t.C:
		}
		// The loop takes the question back, see answerAll.
		if !j.asked.Load() {
			silent = 0
			j.overseen.Store(true)
			j.asked.Store(true)
			continue
		}
		if silent++; silent == o.silent {
			if stack := j.runningStack(); stack != nil {
				fmt.Fprintf(messages, standstillText, j.running.Load().e.rank, time.Duration(o.silent)*o.every, stack)
				return
			}
		}
	}
}

const standstillText = `argon: sim: rank %d has run for %v without giving the processor back: no other rank runs meanwhile, and virtual time stands still.
	If it computes, it will go on. If it waits in a loop, for a word (Load, Get, TryLock), a variable or the clock (Now), it waits for ever:
	let the loop poll (gas.Node.Poll), or wait by gas.Node.Wait, Lock.Lock or extended's WaitUntil. It is here:

%s

`

// runningStack is the stack of the rank that runs, nil if none does: of all threads
// of the job only that one's coroutine is not suspended. Of several jobs in one
// process it may be another job's.
func (j *Job) runningStack() []byte {
	buf := make([]byte, 1<<20)
	for n := runtime.Stack(buf, true); ; n = runtime.Stack(buf, true) {
		if n < len(buf) || len(buf) >= 256<<20 {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 4*len(buf))
	}
	for _, g := range bytes.Split(buf, []byte("\n\n")) {
		head, _, _ := bytes.Cut(g, []byte("\n"))
		if bytes.Contains(g, []byte("/sim.(*Job).start.func")) && !bytes.Contains(head, []byte("[coroutine")) {
			return g
		}
	}
	return nil
}

// alone is called at each look that the loop answers. It reports a rank that has been
// the only one to run for a while: what the rank repeats changes nothing that it, or
// another rank, waits for.
func (j *Job) alone() {
	if j.turns != j.turnsSeen || j.last == nil || j.reported {
		j.turnsSeen, j.alike = j.turns, 0
		return
	}
	if j.alike++; j.alike < overseen.alone {
		return
	}
	d := j.waiting()
	if len(d.Waiting) == 0 || j.live == 1 {
		return // one that is alone in the job may compute as long as it likes
	}
	j.reported = true
	fmt.Fprintf(messages, "argon: sim: for %v only rank %d has run, up to %v of virtual time: it repeats a request or polls. All others wait:\n\t%s\n",
		time.Duration(j.alike)*overseen.every, j.last.e.rank, duration(j.now), strings.Join(d.lines(), "\n\t"))
}
