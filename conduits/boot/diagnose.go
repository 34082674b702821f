package boot

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/sys"
)

// Runs under way, for the signals that ask where ranks wait.
var running struct {
	mu   sync.Mutex
	runs map[*run]bool
	sig  chan os.Signal
}

// diagnose has signals answered for r until forget is called, by a line per rank that says
// where it waits. SIGQUIT ends the process, by all goroutine stacks and exit status 131;
// SIGUSR1 does not, nor does the launcher's question.
func diagnose(r *run) (forget func()) {
	d := &running
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.runs) == 0 {
		d.runs = map[*run]bool{}
		d.sig = make(chan os.Signal, 1)
		ask := syscall.SIGUSR1
		if joined.Load() && !foreign.Load() || os.Getenv(jobenv.SimStatus) != "" {
			ask = jobenv.AskSignal
		}
		sys.Catch(d.sig, syscall.SIGQUIT, ask)
		go func(sig <-chan os.Signal) {
			for s := range sig {
				answer(s == syscall.SIGQUIT)
			}
		}(d.sig)
	}
	d.runs[r] = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.runs, r)
		if len(d.runs) == 0 {
			signal.Stop(d.sig)
			close(d.sig)
		}
	}
}

// answer says where ranks wait, and ends the process if last is set.
func answer(last bool) {
	d := &running
	d.mu.Lock()
	var out io.Writer = os.Stderr
	for r := range d.runs {
		out = r.cfg.Output
		r.report(out)
	}
	if !last {
		d.mu.Unlock()
		return
	}
	buf := make([]byte, 1<<20)
	for len(buf) < 64<<20 {
		if k := runtime.Stack(buf, true); k < len(buf) {
			buf = buf[:k]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	fmt.Fprintf(out, "\n%s\n", buf)
	os.Exit(jobenv.StatusQuit)
}

// report writes a line for each rank, up to jobenv.MostDiagnosed.
func (r *run) report(out io.Writer) {
	chosen := make([]int, len(r.eps))
	for i := range chosen {
		chosen[i] = i
	}
	if len(chosen) > jobenv.MostDiagnosed {
		// Of very many those that do not wait tell more than those that wait for
		// them.
		slices.SortStableFunc(chosen, func(a, b int) int {
			return min(len(r.eps[a].Waiting()), 1) - min(len(r.eps[b].Waiting()), 1)
		})
		chosen = chosen[:jobenv.MostDiagnosed]
	}
	for _, i := range chosen {
		fmt.Fprintln(out, diagnosis(r.eps[i], r.ranks[i]))
	}
	if more := len(r.eps) - len(chosen); more > 0 {
		fmt.Fprintf(out, "argon: and %d more ranks\n", more)
	}
}

const (
	// lookFor is how long a rank is looked at before it is said not to wait, in time and in
	// time of processors, of which a loaded machine gives little; several times what a rank
	// spins and yields before it parks.
	lookFor  = 20 * time.Millisecond
	lookMost = 500 * time.Millisecond // of time, within what a launcher waits for an answer
	// simLooks is how often where time is simulated: it does not pass meanwhile, and
	// is not to be asked for here.
	simLooks = 1000
)

// diagnosis is a line with the place where the rank of ep waits and its operations under way.
func diagnosis(ep conduits.Endpoint, rank Rank) string {
	var where []string
	// A wait looks around before it parks, and after each wake-up: a rank that waits is
	// caught parked if it is looked at for a while.
	again := func(i int) bool { return i < simLooks }
	if _, simulated := conduits.As[conduits.Runner](ep); !simulated {
		start, used := ep.Now(), sys.ProcessorTime()
		again = func(int) bool {
			took := ep.Now() - start
			return took < lookFor || took < lookMost && sys.ProcessorTime()-used < lookFor
		}
	}
	for i := 0; again(i); i++ {
		for _, b := range ep.Waiting() {
			what := "parked, and has not said for what"
			if b != nil {
				what = b.Blocked()
			}
			where = append(where, what)
		}
		if len(where) > 0 {
			break
		}
		runtime.Gosched()
	}
	if len(where) == 0 {
		where = append(where, "not waiting")
	}
	line := fmt.Sprint(jobenv.WhereLine, ep.Rank(), jobenv.WhereWaits, strings.Join(where, "; "))
	if own := rank.Diagnosis(); own != "" {
		line += "; " + own
	}
	var s conduits.Stats
	ep.Stats(&s)
	line += fmt.Sprintf("; requests sent %d, received %d; replies sent %d, received %d; out of credit %d times; slept %d times",
		s.Sent[conduits.Request], s.Received[conduits.Request], s.Sent[conduits.Reply], s.Received[conduits.Reply], s.NoCredit, s.Parks)
	if d, ok := conduits.As[conduits.Diagnoser](ep); ok {
		if more := d.Diagnosis(); more != "" {
			line += "; " + more
		}
	}
	return line
}
