// Patience decides how long a rank that waits looks before it yields and then sleeps, by
// what its last waits came to. There is no verdict about the machine that could be wrong:
// each wait moves the limit of the next one.
//
// Looking is right if what is waited for comes sooner than a sleeper could be woken. It
// is wrong if what would bring it needs this processor: another rank that was put on it, or
// a neighbour that argon knows nothing of. Which of the two holds is seen by how waits
// end: one that ends by looking, or after a yield that came back at once, lengthens the looking of the next; one that
// ends after a yield that let others run, or by sleeping, halves it. A rank that looks too little finds out by trials: it looks for long once when some sleeps
// were shorter than that would have been, or such yields ended waits, and each trial that fails doubles how many
// of those the next one takes.
//
// Two yields come before each sleep: if what is waited for is another rank of this
// processor, they take 1.3 us, and a sleep 2.3 and the announcement before it 8. But sched_yield(2)
// may give the rest of a slice, 3 ms and more, to a neighbour, where a sleeper gets the
// processor at once when it is woken. So waits do not yield for a while after a yield that took so long.

package conc

import (
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/sys"
)

// Step is the next step of a wait.
type Step uint8

// The steps.
const (
	Look  Step = iota // poll again
	Yield             // let others run, report by Yielded, and poll again
	Park              // sleep, and report by Slept
)

const (
	// more is by how many looks a wait that ended in time lengthens the next one.
	more = 8
	// mostYields are made before each sleep.
	mostYields = 2
	// switched is the least time of a yield during which another thread ran. One that
	// finds no other takes 0.3 to 0.6 us, a switch there and back 2 us and more.
	switched = 1500 * time.Nanosecond
	// lost is the least time of a yield that gave the processor to a neighbour for a slice. One to another
	// rank, which waits or sends, takes some microseconds.
	lost = 200 * time.Microsecond
	// leastShun and mostShun are how many waits do not yield after a yield that was lost.
	leastShun = 64
	mostShun  = 1 << 14
	// aLook is the least that a look takes, so that sleeps of less than as many as a wait may make could have been saved.
	aLook = time.Microsecond
	// firstTrial and mostTrial are how many short sleeps, and waits ended by yields, lead to a trial.
	firstTrial = 4
	mostTrial  = 256
)

// Ends of a wait.
const (
	looked  uint32 = iota // or by a yield that came back at once
	gaveWay               // by a yield that let another thread run
	slept                 // or a yield was lost
)

// Patience is how long the goroutines of a rank look before they sleep. Its zero value
// yields and looks never, as is right for a rank that shares its processor for sure. Its
// methods may be called by many goroutines at once, which then share what they learn.
type Patience struct {
	most   int32 // looks
	sleeps bool  // without a yield before

	looks  atomic.Int32  // of the next wait
	limit  atomic.Int32  // of this one: looks, or most in a trial
	last   atomic.Uint32 // how the last wait ended, or this one so far
	shorts atomic.Int32  // short sleeps and waits ended by yields since the last trial
	need   atomic.Int32  // that many lead to one

	// Waits that still come without yields, and how many there will be after the next
	// yield that is lost.
	shun, nextShun atomic.Int32
}

// Set has waits look at most so many times, and sleep then without a yield if sleeps is true. It is
// called before all else.
func (p *Patience) Set(looks int, sleeps bool) {
	p.most, p.sleeps = int32(looks), sleeps
	p.looks.Store(p.most)
	p.limit.Store(p.most)
	p.need.Store(firstTrial)
}

// LooksOf is how many looks a wait may make among n ranks, where among two it may make so many. If all
// sleep, one of them wakes the others one after the other, 8 to 25 us for each on a virtual processor. If that took longer than waits
// look, all trials would fail, and ranks would sleep in every barrier: 15 of them, which looked for 70 us,
// took 97 us for one in place of 1.6.
func LooksOf(two, n int) int { return two * max(2, n) / 2 }

// Brief reports whether waits do not look at present, so that a single look should not take
// long either.
func (p *Patience) Brief() bool { return p.limit.Load() == 0 }

// Next returns the next step of a wait after idle looks and yields that found nothing. Below 0 it never
// parks: see conduits.Endpoint.Idle.
func (p *Patience) Next(idle int) Step {
	if idle == 0 {
		p.begin()
	}
	limit := int(p.limit.Load())
	switch {
	case idle >= 0 && idle < limit:
		return Look
	case p.shun.Load() == 0 && (idle < 0 || idle < limit+mostYields && !p.sleeps):
		return Yield
	case idle < 0:
		return Look
	}
	p.last.Store(slept)
	return Park
}

// begin sets the limit of a wait by the last one.
func (p *Patience) begin() {
	if n := p.shun.Load(); n > 0 {
		p.shun.Store(n - 1)
	}
	if p.most == 0 {
		return
	}
	looks, limit := p.looks.Load(), p.limit.Load()
	switch last := p.last.Load(); {
	case last != looked:
		p.last.Store(looked)
		if last == gaveWay {
			p.saved()
		}
		looks /= 2
	case limit > looks: // a trial that succeeded
		looks = p.most
		p.need.Store(firstTrial)
	default:
		looks = min(looks+more, p.most)
	}
	limit = looks
	if p.shorts.Load() >= p.need.Load() {
		p.shorts.Store(0)
		limit = p.most
	}
	p.looks.Store(looks)
	p.limit.Store(limit)
}

// Yielded reports how long a yield took that Next had asked for.
func (p *Patience) Yielded(took time.Duration) {
	n := max(p.nextShun.Load(), leastShun)
	if took < lost {
		if p.last.Store(looked); took >= switched {
			p.last.Store(gaveWay)
		}
		if n > leastShun {
			p.nextShun.Store(n - 1)
		}
		return
	}
	p.last.Store(slept)
	p.shun.Store(n)
	p.nextShun.Store(min(2*n, mostShun))
}

// Idle takes the next step, but for sleeping, of which it reports that it is to be taken, as
// conduits.Endpoint.Idle does. Every so many looks it lets goroutines of this process run.
func (p *Patience) Idle(idle, every int, yield func()) bool {
	switch p.Next(idle) {
	case Look:
		if idle%every == every-1 {
			runtime.Gosched()
		}
	case Yield:
		began := time.Now()
		yield()
		p.Yielded(time.Since(began))
	default:
		return false
	}
	return true
}

// Slept reports how long a sleep took.
func (p *Patience) Slept(took time.Duration) {
	if took < time.Duration(p.most)*aLook { // else looking could not have saved it, and this tells nothing of a trial
		p.saved()
		return
	}
	// What trials came to before it may not hold behind it: among 15 ranks scatters of 8 bytes took 128 us, not 1.4, for
	// the first tens of milliseconds after gathers of 1 MiB.
	p.need.Store(firstTrial)
}

// saved counts a wait that looking for as long as it may could have ended. If this one
// did, as a trial, trials become rarer.
func (p *Patience) saved() {
	p.shorts.Add(1)
	if p.limit.Load() > p.looks.Load() {
		p.need.Store(min(2*p.need.Load(), mostTrial))
	}
}

// HaveProcessors reports whether this rank has a processor to itself, as one of n ranks of
// this host, each a process. Where ranks were bound to sets of processors it counts how many are
// in this rank's. Otherwise a rank that is bound leaves other processors to its
// neighbours: what there is shows in the process that started it.
func HaveProcessors(n int) bool {
	quota := sys.QuotaCPU()
	if sharers, err := strconv.Atoi(os.Getenv(jobenv.Sharers)); err == nil {
		return sharers <= sys.NumCPU() && n <= quota
	}
	return n <= min(max(runtime.GOMAXPROCS(0), sys.NumCPUOf(os.Getppid())), quota)
}
