// Package crowd finds out by measurement whether the processors are shared: by
// jobs, sessions or containers that know nothing of each other. A launcher can
// only count the ranks that it starts itself.
//
// What counts is how long the threads of this process stood in run queues, ready
// to run, beside how long they ran (/proc/PID/task/TID/schedstat, see "Scheduler
// Statistics" in the kernel's documentation). That also shows where a control group
// is throttled. Where the kernel does not tell, involuntary context switches stand
// for it (getrusage(2)).
//
// A process that waits by spinning or yielding takes processors away from those it
// waits for, and sched_yield(2) does not help: it gives way only to threads of the
// same scheduler group. So ranks that are crowded sleep at once.
package crowd

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/internal/sys"
)

// every is how often Sample measures at most.
const every = 90 * time.Millisecond

var (
	now   atomic.Bool
	ranks atomic.Int64 // see Ranks
)

// Ranks says that n ranks of this process wait side by side, each by spinning if it
// may: what threads want beyond n processors they take from each other. Without a
// call n is 1; of several calls the largest counts.
func Ranks(n int) {
	for {
		was := ranks.Load()
		if int64(n) <= was || ranks.CompareAndSwap(was, int64(n)) {
			return
		}
	}
}

// Room says whether n ranks of this host, each a process, have a processor each. A rank
// that is bound to one (-bind core) leaves the others to its neighbours: what there is
// shows in the process that started it.
func Room(n int) bool {
	return n <= min(max(runtime.GOMAXPROCS(0), sys.NumCPUOf(os.Getppid())), sys.QuotaCPU())
}

// Now says whether the processors are shared, as far as the last Sample knew.
func Now() bool { return now.Load() }

var sampler struct {
	sync.Mutex
	judge    Judge
	last     time.Time     // when it measured
	switches int64         // involuntary, until then
	at       time.Time     // when it last read run and delay
	run      time.Duration // until then
	delay    time.Duration
}

// Sample measures, unless it has done so just before. It takes a microsecond as
// long as no thread of this process is preempted, and some ten microseconds a
// thread otherwise, and allocates nothing. Those that have a reason to wake up now
// and then call it, and no other code.
func Sample() {
	s := &sampler
	if !s.TryLock() {
		return
	}
	defer s.Unlock()
	t := time.Now()
	if t.Sub(s.last) < every {
		return
	}
	first := s.last.IsZero()
	s.last = t
	switches := sys.InvoluntarySwitches()
	preempted := switches - s.switches
	s.switches = switches
	if !first && !s.judge.Crowded() && preempted < fewSwitches {
		s.judge.Look(1, every, every, 0)
		return
	}
	run, delay, ok := sys.RunDelay()
	if !ok {
		run = sys.ProcessorTime()
		delay = s.delay + time.Duration(preempted)*perSwitch
	}
	wall := t.Sub(s.at)
	dRun, dDelay := max(run-s.run, 0), max(delay-s.delay, 0) // threads that have ended are missing
	s.at, s.run, s.delay = t, run, delay
	if !first {
		now.Store(s.judge.Look(max(int(ranks.Load()), 1), wall, dRun, dDelay))
	}
}

const (
	// fewSwitches is how often a process is preempted between two looks that has
	// processors to itself: by timers, interrupts' threads, its own threads.
	fewSwitches = 4
	// perSwitch is what an involuntary switch is taken for where the delay is not
	// known: the shortest slice that schedulers give (EEVDF: 3 ms; CFS: 0.75 ms).
	perSwitch = time.Millisecond
)

// Judge decides from measurements. Its zero value has seen nothing, and says no.
//
// Ranks that sleep because they are crowded leave the processors idle, as if they
// were not crowded, and what wakes them waits a moment for a processor, as if they
// were. So what takes two looks to be noticed ends by trial: after a second, and each
// time it comes back soon after twice that, up to a minute, unless threads get less
// than some half of what they want all the time.
type Judge struct {
	crowded bool
	short   int // looks in a row that found processors short
	calm    int // looks in a row that did not
	need    int // calm looks before the word changes
}

const (
	shortLooks = 2
	leastCalm  = 10
	mostCalm   = 640
)

// Crowded is the last word.
func (j *Judge) Crowded() bool { return j.crowded }

// Look takes what has been measured for wall: how long the threads of so many ranks
// ran, and how long they were ready and did not run. It returns whether processors
// are shared.
//
// They are if the threads got less than seven tenths of what they wanted, and wanted
// something: of three that spin on two processors each gets two thirds. A rank wants
// one processor. The other threads of its process, such as those that wait for the
// network and those of the collector, stand in run queues behind it: a spinning rank
// with two processors for two ranks was seen to run for 95 ms of 95 ms, with a delay
// of 60 ms.
func (j *Judge) Look(ranks int, wall, run, delay time.Duration) bool {
	want := min(run+delay, time.Duration(ranks)*wall)
	if !j.crowded {
		j.calm++
		if j.short++; run*10 >= want*7 || delay*10 < wall {
			j.short = 0
		}
		if j.short >= shortLooks {
			if j.need = min(2*j.need, mostCalm); j.need == 0 || j.calm > 4*j.need {
				j.need = leastCalm
			}
			j.crowded, j.calm = true, 0
		}
		return j.crowded
	}
	if j.calm++; run*20 < want*11 && delay*10 > wall {
		j.calm = 0
	}
	if j.calm >= j.need {
		j.crowded, j.calm, j.short = false, 0, 0
	}
	return j.crowded
}
