// Package gastest runs jobs in tests of programs that use package gas:
//
//	func TestSum(t *testing.T) {
//		gastest.Run(t, 4, func(n *gas.Node) error {
//			if sum := gas.Must(gas.AllReduce(n, n.Rank(), gas.Sum)); sum != 6 {
//				t.Errorf("rank %d: the sum is %d", n.Rank(), sum)
//			}
//			return nil
//		})
//	}
//
// The ranks are goroutines of the test, where a debugger and the race detector see all of them. A
// test passes if every rank's function has returned nil. It fails, and says which rank was the cause,
// if one returns an error, panics, or calls t.Fatal, which a rank may do although it is not
// the test's goroutine: what the others wait for ends then. t.Skip in a rank skips the
// test.
//
// A job that hangs fails its test after seconds, with a report of what each rank waits for and where in the
// program, the cause first; docs/seeing.md tells how to read it. Ranks that wait for each other, or for what
// nothing will do, take some three seconds, others of which none gets on ten: [gas.Config].Stall. An
// endless loop cannot be told from work: the report comes before go test's own time limit does. Where there is none
// (-timeout 0, a debugger) a job may take as long as it likes.
//
// What a test has left behind is a failure, too: a goroutine that a rank has started and that goes on
// after the job. (Locks that are held, and with Config.Debug operations that nothing waits for, are
// errors of the rank already.)
package gastest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// TB is what jobs need of a test: a *testing.T, *testing.B, or what a package for property tests has in place of them.
// With one that has a Deadline, as *testing.T, jobs that hang end.
type TB interface {
	Helper()
	Log(args ...any)
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
	FailNow()
	Failed() bool
	SkipNow()
}

// Run calls fn on each of so many ranks, in one process, as gas.Run does, and fails t at once if the job fails.
// It is called on the test's own goroutine.
func Run(t TB, ranks int, fn func(n *gas.Node) error) {
	t.Helper()
	run(t, gas.Config{Ranks: ranks}, fn, "")
}

// RunConfig is [Run] with all that gas.Run takes: with Conduit "udp" the ranks exchange datagrams by the loopback.
// Output gets, besides, what becomes a part of the test's log. Stall is "10s" unless it is set.
func RunConfig(t TB, cfg gas.Config, fn func(n *gas.Node) error) {
	t.Helper()
	run(t, cfg, fn, "")
}

// RunSeeds is [RunConfig] in virtual time (docs/simulation.md), so many times, with as many seeds from cfg.Seed on, or from 1
// on if that is 0. Each seed is another order in which messages arrive, and always the same one: the first seed
// that fails is named, and fails again as the first of another call. cfg.Conduit is "", which means "gastest": a simulator
// whose network delays each message by up to 5 us, as the seed decides.
func RunSeeds(t TB, seeds int, cfg gas.Config, fn func(n *gas.Node) error) {
	t.Helper()
	if cfg.Conduit == "" {
		cfg.Conduit = shaken
	}
	cfg.Seed = max(cfg.Seed, 1)
	for range seeds {
		run(t, cfg, fn, fmt.Sprintf(" (Config.Seed %d)", cfg.Seed))
		cfg.Seed++
	}
}

// Main runs a package's tests and ends the process, for a TestMain. It adds a watchdog to what Run does for each
// job: tests that hang outside of jobs, or that start processes, end after half a minute in which nothing
// moves, with the stacks of all goroutines (ARGONTEST_WATCHDOG: a time such as 2m, or off).
func Main(m *testing.M) { os.Exit(testmain.Run(m)) }

// shaken is the conduit of simulations that are given seeds: what the simulator leaves to chance at its
// defaults is little.
const shaken = "gastest"

func init() {
	conduits.Register(conduits.Conduit{Name: shaken, Local: func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		j, err := sim.New(n, sim.Config{
			Seed: c.Seed, MaxSegment: c.MaxSegment, Credits: c.Credits, MaxMedium: c.MaxMedium,
			Faults: sim.Faults{Jitter: 5 * sim.Microsecond},
		})
		if err != nil {
			return nil, err
		}
		return j.Endpoints(), nil
	}})
}

const (
	patience = "10s" // Config.Stall
	// What is left of go test's time limit for the report, and its part of it at most.
	reserve, part = 10 * time.Second, 5
	// grace is how long ranks may take to return from a job that hangs, of which some never do, and
	// its part of the reserve at most.
	grace, graceful = 2 * time.Second, 4
)

// errHangs ends a job of which a report was made.
var errHangs = errors.New("the job hangs")

// run is RunConfig of one job. which is added to the failure.
func run(t TB, cfg gas.Config, fn func(n *gas.Node) error, which string) {
	t.Helper()
	limit, ok := time.Time{}, false
	if d, is := t.(interface{ Deadline() (time.Time, bool) }); is {
		limit, ok = d.Deadline()
	}
	l := &log{t: t, also: cfg.Output, report: make(chan string, 1)}
	cfg.Output = l
	if cfg.Stall == "" {
		cfg.Stall = patience
		if !ok {
			cfg.Stall = "0"
		}
	}
	late, patient := make(<-chan time.Time), grace
	if ok {
		left := time.Until(limit)
		kept := min(reserve, left/part)
		patient = min(patient, kept/graceful)
		timer := time.NewTimer(left - kept)
		defer timer.Stop()
		late = timer.C
	}
	held := make(chan os.Signal, 1) // so that SIGUSR1 ends nothing where the job has just ended, or has not begun
	signal.Notify(held, syscall.SIGUSR1)
	defer signal.Stop(held)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	mark, before := strconv.FormatInt(marks.Add(1), 10), runtime.NumGoroutine()
	ctxOfRanks := pprof.WithLabels(ctx, pprof.Labels(label, mark))
	done := make(chan error, 1)
	go func() {
		done <- gas.RunContext(ctx, cfg, func(n *gas.Node) error {
			pprof.SetGoroutineLabels(ctxOfRanks) // and of what it starts
			return fn(n)
		})
	}()
	var err error
	for report := ""; ; {
		select {
		case err = <-done:
		case report = <-l.report:
			cancel(errHangs)
			select {
			case <-done:
			case <-time.After(patient):
				report += "\nSome ranks do not return; their goroutines are left behind."
			}
			l.close()
			t.Fatalf("gastest: the job of %d ranks%s hangs.\n%s", cfg.Ranks, which, report)
		case <-late:
			l.asked.Store(true)
			if syscall.Kill(os.Getpid(), syscall.SIGUSR1) != nil { // has the job report
				l.report <- "There is no report."
			}
			continue
		}
		break
	}
	l.close()
	switch {
	case err == nil:
		if left := leftBehind(mark, before); left != "" {
			t.Fatalf("gastest: the job of %d ranks%s is over, and what its ranks have started is not:\n%s", cfg.Ranks, which, left)
		}
	case errors.Is(err, errs.ErrGoexit) && t.Failed():
		t.Logf("gastest: %s%s; this was t.Fatal or its like", rankOf(err), which)
		t.FailNow()
	case errors.Is(err, errs.ErrGoexit) && skipped(t):
		t.SkipNow()
	default:
		t.Fatalf("gastest: of %d ranks%s %v", cfg.Ranks, which, err)
	}
}

func skipped(t TB) bool {
	s, ok := t.(interface{ Skipped() bool })
	return ok && s.Skipped()
}

// rankOf is the first line of a rank's failure.
func rankOf(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// log is Config.Output of a job.
type log struct {
	t      TB
	also   io.Writer
	report chan string // what ends the test
	asked  atomic.Bool // for one at the end of the time that there is

	mu     sync.Mutex
	closed bool // the test may have ended
}

// Write takes one piece of what the job says.
func (l *log) Write(b []byte) (int, error) {
	text := strings.TrimSuffix(string(b), "\n")
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
	case strings.Contains(text, "\nargon:   rank") && (strings.Contains(text, "(ARGON_STALL)") || l.asked.Load()):
		select {
		case l.report <- text:
		default: // there is one
		}
	default:
		l.t.Log(text)
	}
	if l.also != nil {
		return l.also.Write(b)
	}
	return len(b), nil
}

func (l *log) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
}

// label marks the goroutines of a job.
const label = "gastest"

var marks atomic.Int64

// looks is how often leftBehind looks for goroutines that are about to end, with pauses of milliseconds that grow.
var looks = 80

// leftBehind describes goroutines of the mark that do not end. There were so many of all kinds before the job.
func leftBehind(mark string, before int) (text string) {
	for i := range looks {
		if runtime.NumGoroutine() <= before {
			return ""
		}
		if text = marked(mark); text == "" {
			return ""
		}
		time.Sleep(time.Duration(i) * time.Millisecond)
	}
	return text
}

// marked describes the goroutines of the mark that there are.
func marked(mark string) string {
	var b bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		return err.Error()
	}
	var found []string
	for g := range strings.SplitSeq(b.String(), "\n\n") { // those of one place and one label
		if strings.Contains(g, fmt.Sprintf("%q:%q", label, mark)) {
			count, _, _ := strings.Cut(g, " @")
			_, frames, _ := strings.Cut(g, "\n#\t")
			found = append(found, fmt.Sprintf("goroutines: %s\n#\t%s", count, frames))
		}
	}
	return strings.Join(found, "\n\n")
}
