// Patience decides how long a rank that waits looks and yields before it
// sleeps, by what its last waits came to. There is no verdict about the machine that
// could be wrong: each wait moves the limit of the next one.
//
// Looking is right if what is waited for comes sooner than a sleeper could be woken. It
// is wrong if what would bring it needs this processor: another rank that was put on it, or
// a neighbour that argon knows nothing of. Which of the two holds is seen by how waits
// end. One that ends by looking, or after a sched_yield(2) that came back at once, lengthens the looking
// of the next; one that ends after a yield that let others run, or by sleeping, halves it.
// A rank that looks too little finds out by trials: it looks for long once when some sleeps
// were shorter than that would have been, and each trial that fails doubles how many such sleeps
// the next one takes.

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
	// leastYields are made before each sleep: what is about to come on another
	// processor comes meanwhile, and a rank of the same processor gets it.
	leastYields = 2
	// switched is the least time of a yield during which another thread ran. One that
	// finds no other takes 0.3 to 0.6 us, a switch there and back 2 us and more.
	switched = 1500 * time.Nanosecond
	// short is a sleep that looking as long as it may could have saved.
	short = 100 * time.Microsecond
	// firstTrial and mostTrial are how many short sleeps lead to a trial.
	firstTrial = 4
	mostTrial  = 256
	// apart is how many waits in a row end by a yield until one sleeps in its place. Two
	// ranks that yield to each other stay on one processor though another one is idle; a
	// sleeper is woken on one that is idle.
	apart = 64
)

// Ends of a wait.
const (
	looked uint32 = iota
	gaveWay
	slept
)

// Patience is how long the goroutines of a rank look before they sleep. Its zero value
// yields twice and looks never, as is right for a rank that shares its processor for sure. Its
// methods may be called by many goroutines at once, which then share what they learn.
type Patience struct {
	most   int32 // looks
	yields int32

	shared atomic.Bool // the last yield let another thread run

	looks  atomic.Int32  // of the next wait
	limit  atomic.Int32  // of this one: looks, or most in a trial
	last   atomic.Uint32 // what the last wait came to
	gave   atomic.Int32  // waits in a row that ended by a yield
	shorts atomic.Int32  // short sleeps since the last trial
	need   atomic.Int32  // that many lead to one
}

// Set has waits look at most so many times and then yield at most so many times. It is
// called before all else.
func (p *Patience) Set(looks, yields int) {
	p.most, p.yields = int32(looks), int32(yields)
	p.looks.Store(p.most)
	p.limit.Store(p.most)
	p.need.Store(firstTrial)
}

// Brief reports whether waits do not look at present because another thread needs the
// processor, so that a single look should not take long either.
func (p *Patience) Brief() bool { return p.limit.Load() == 0 && (p.most == 0 || p.shared.Load()) }

// Next returns the next step of a wait after idle looks and yields that found nothing. Below 0 it never
// parks: see conduits.Endpoint.Idle.
func (p *Patience) Next(idle int) Step {
	if idle == 0 {
		p.begin()
	}
	limit := int(p.limit.Load())
	switch {
	case idle < limit && limit > 0:
		return Look
	case idle >= 0 && p.gave.Load() >= apart: // sleep
	case idle < 0 || idle < limit+p.mayYield(limit):
		return Yield
	}
	p.gave.Store(0)
	p.last.Store(slept)
	return Park
}

// mayYield is how many yields a wait makes that looks so often: in proportion.
func (p *Patience) mayYield(limit int) int {
	if p.most == 0 {
		return leastYields
	}
	return min(max(int(p.yields)*limit/int(p.most), leastYields), int(p.yields))
}

// begin sets the limit of a wait by the last one.
func (p *Patience) begin() {
	looks, limit := p.looks.Load(), p.limit.Load()
	last := p.last.Load()
	if p.most == 0 {
		return
	}
	if last == gaveWay {
		p.gave.Add(1)
	} else if p.gave.Load() != 0 {
		p.gave.Store(0)
	}
	switch {
	case last == looked && limit > looks: // a trial that succeeded
		looks = p.most
		p.need.Store(firstTrial)
	case last == looked:
		looks = min(looks+more, p.most)
	default:
		p.last.Store(looked)
		if last == gaveWay && limit > looks {
			p.failed()
		}
		looks /= 2
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
	other := took >= switched
	if other != p.shared.Load() {
		p.shared.Store(other)
	}
	if other {
		p.last.Store(gaveWay)
	} else {
		p.last.Store(looked)
	}
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
	if p.limit.Load() > p.looks.Load() {
		p.failed()
	}
}

// failed notes that a trial has not brought what was waited for, which came soon after.
func (p *Patience) failed() { p.need.Store(min(2*p.need.Load(), mostTrial)) }

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
