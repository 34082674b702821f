// Patience decides how long a rank that waits looks before it sleeps, by what its last
// waits came to. There is no verdict about the machine that could be wrong: each wait moves
// the limit of the next one.
//
// Looking is right if what is waited for comes sooner than a sleeper could be woken. It
// is wrong if what would bring it needs this processor: another rank that was put on it, or
// a neighbour that argon knows nothing of. Which of the two holds is seen by how waits
// end: one that ends by looking lengthens the looking of the next, one that ends by sleeping halves it.
// A rank that looks too little finds out by trials: it looks for long once when some sleeps
// were shorter than that would have been, and each trial that fails doubles how many such sleeps
// the next one takes.
//
// A rank that has a processor does not yield it: sched_yield(2) gives the rest of its slice, 3 ms
// and more, to whatever neighbour is there, where a sleeper gets the processor at once
// when it is woken. Ranks that share one yield twice before they sleep, which takes 1.3 us in place of 2.3, as long as
// yields come back soon.

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
	// mostYields are made before each sleep of a rank that shares its processor.
	mostYields = 2
	// lost is the least time of a yield that gave the processor to a neighbour for a slice. One to another
	// rank, which waits or sends, takes some microseconds.
	lost = 200 * time.Microsecond
	// leastShun and mostShun are how many waits do not yield after one that was lost.
	leastShun = 64
	mostShun  = 1 << 14
	// short is a sleep that looking as long as it may could have saved.
	short = 100 * time.Microsecond
	// firstTrial and mostTrial are how many short sleeps lead to a trial.
	firstTrial = 4
	mostTrial  = 256
)

// Patience is how long the goroutines of a rank look before they sleep. Its zero value
// yields and looks never, as is right for a rank that shares its processor for sure. Its
// methods may be called by many goroutines at once, which then share what they learn.
type Patience struct {
	most int32 // looks

	looks  atomic.Int32 // of the next wait
	limit  atomic.Int32 // of this one: looks, or most in a trial
	slept  atomic.Bool  // what the last wait came to
	shorts atomic.Int32 // short sleeps since the last trial
	need   atomic.Int32 // that many lead to one

	// Of ranks that share a processor: waits that still come without yields, and how many there will be
	// after the next yield that is lost.
	shun, nextShun atomic.Int32
}

// Set has waits look at most so many times. It is called before all else.
func (p *Patience) Set(looks int) {
	p.most = int32(looks)
	p.looks.Store(p.most)
	p.limit.Store(p.most)
	p.need.Store(firstTrial)
}

// Brief reports whether waits do not look at present, so that a single look should not take
// long either.
func (p *Patience) Brief() bool { return p.limit.Load() == 0 }

// Next returns the next step of a wait after idle looks and yields that found nothing. Below 0 it never
// parks: see conduits.Endpoint.Idle.
func (p *Patience) Next(idle int) Step {
	if idle == 0 {
		p.begin()
	}
	switch {
	case p.most != 0 && (idle < 0 || idle < int(p.limit.Load())):
		return Look
	case p.most == 0 && (idle < 0 || idle < mostYields && p.shun.Load() == 0):
		return Yield
	}
	p.slept.Store(true)
	return Park
}

// begin sets the limit of a wait by the last one.
func (p *Patience) begin() {
	if p.most == 0 {
		if n := p.shun.Load(); n > 0 {
			p.shun.Store(n - 1)
		}
		return
	}
	looks, limit := p.looks.Load(), p.limit.Load()
	switch {
	case p.slept.Load():
		p.slept.Store(false)
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
		if n > leastShun {
			p.nextShun.Store(n - 1)
		}
		return
	}
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
	if took >= short {
		return // looking could not have saved it, and says nothing of a trial
	}
	p.shorts.Add(1)
	if p.limit.Load() > p.looks.Load() { // a trial that has not brought what came soon after
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
