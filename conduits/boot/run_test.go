package boot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/where"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/segment"
)

// TestRun has ranks send each other messages on every conduit.
func TestRun(t *testing.T) {
	for _, conduit := range conduitsHere {
		for _, size := range []int{1, 2, 5} {
			var ran atomic.Int32
			if err := Run(context.Background(), Config{Ranks: size, Conduit: conduit}, layered(func(r *rank) error {
				ran.Add(1)
				return around(r)
			})); err != nil || int(ran.Load()) != size {
				t.Errorf("%s: %d of %d ranks ran: %v", conduit, ran.Load(), size, err)
			}
		}
	}
}

var never map[int]int

// TestOneRankFails has rank 1 fail in each way while the others wait for it, or have
// returned: they hear of it, and Run names it.
func TestOneRankFails(t *testing.T) {
	ways := map[string]struct {
		fail  func() error
		want  string
		stack bool
	}{
		"error":       {func() error { return errTest }, "rank 1: this is the cause", false},
		"panic":       {func() error { panic("out of luck") }, "rank 1: panic: out of luck", true},
		"panic error": {func() error { panic(errTest) }, "rank 1: panic: this is the cause", true},
		"nil map":     {func() error { never[0] = 1; return nil }, "rank 1: panic: assignment to entry in nil map", true},
		"Goexit":      {func() error { runtime.Goexit(); return nil }, "rank 1: the rank's function ended its goroutine", false},
	}
	for _, conduit := range conduitsHere {
		for how, way := range ways {
			for _, attached := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%s/attached=%v", conduit, how, attached), func(t *testing.T) {
					others := make([]error, 3)
					rest := layered(func(r *rank) error {
						if r.Rank() == 1 {
							return way.fail()
						}
						return r.forever()
					})
					err := Run(context.Background(), Config{Ranks: len(others), Conduit: conduit}, func(ep conduits.Endpoint) error {
						if ep.Rank() == 1 {
							if !attached {
								return way.fail()
							}
							return rest(ep)
						}
						err := rest(ep)
						others[ep.Rank()] = err
						return err
					})
					var re *RankError
					if !errors.As(err, &re) || re.Rank != 1 || !strings.HasPrefix(err.Error(), way.want) {
						t.Fatalf("Run: %v", err)
					}
					if way.stack != (len(re.Stack) > 0) || way.stack && !strings.Contains(string(re.Stack), "run_test.go") {
						t.Errorf("stack: %s", re.Stack)
					}
					for _, noise := range []string{"debug.Stack", "WaitGroup", "boot.(*run)", "boot.(*bare)"} {
						if strings.Contains(string(re.Stack), noise) {
							t.Errorf("the stack shows %s: %s", noise, re.Stack)
						}
					}
					if strings.Contains(way.want, "this is the cause") && !errors.Is(err, errTest) {
						t.Errorf("the cause is lost: %v", err)
					}
					for _, r := range []int{0, 2} {
						var pe *errs.PeerError
						if !errors.As(others[r], &pe) || pe.Rank != 1 || !errors.Is(others[r], errs.ErrPeer) {
							t.Errorf("rank %d: %v", r, others[r])
						}
					}
				})
			}
		}
	}
}

// TestRanksFail: of two ranks that fail Run names one that did not fail because of
// another, with its own error; so does a job whose ranks drop what they have heard.
func TestRanksFail(t *testing.T) {
	for _, conduit := range conduitsHere {
		err := Run(context.Background(), Config{Ranks: 4, Conduit: conduit}, layered(func(r *rank) error {
			switch r.Rank() {
			case 1, 3:
				return fmt.Errorf("%d's own", r.Rank())
			case 2:
				return r.forever()
			}
			_ = r.forever() // has not failed itself, but must not have succeeded
			return nil
		}))
		var re *RankError
		if !errors.As(err, &re) || re.Rank&1 == 0 || re.Err.Error() != fmt.Sprintf("%d's own", re.Rank) {
			t.Errorf("%s: %v", conduit, err)
		}
	}
	var alone error
	err := Run(context.Background(), Config{Ranks: 2}, layered(func(r *rank) error {
		if r.Rank() == 0 {
			alone = r.e.Exit(9)
			return nil
		}
		_ = r.forever()
		return nil
	}))
	var exit *errs.ExitError
	if !errors.As(err, &exit) || exit.Code != 9 || !errors.Is(alone, errs.ErrExit) {
		t.Errorf("Exit: %v, and its rank %v", err, alone)
	}
}

// TestLeavesAtOnce: a rank whose function returns leaves the job without a barrier, and
// one that still needs it says so.
func TestLeavesAtOnce(t *testing.T) {
	for _, conduit := range conduitsHere {
		err := Run(context.Background(), Config{Ranks: 2, Conduit: conduit}, layered(func(r *rank) error {
			if r.Rank() == 1 {
				return nil
			}
			return r.e.WaitFor(waiting{}, conduits.Cond{Ready: func() bool { return false }, Lacking: conduits.LackingRank(r.e.Conduit(), 1)})
		}))
		var pe *errs.PeerError
		if !errors.As(err, &pe) || pe.Rank != 1 || !errors.Is(err, errs.ErrClosed) {
			t.Errorf("%s: %v", conduit, err)
		}
	}
}

// member is a Rank that notes what is called.
type member struct {
	bare
	close  func(killed bool) error
	closed atomic.Bool
}

func (m *member) Close(killed bool) error {
	m.closed.Store(true)
	return m.close(killed)
}

func (m *member) Diagnosis() string { return "a kettle on the stove" }

// TestRankCloses: Close is called before the endpoint closes and after the others have been
// told, once, and its error fails the rank.
func TestRankCloses(t *testing.T) {
	for name, c := range map[string]struct {
		run, close error
		want       error
	}{
		"well":      {},
		"run":       {run: errTest, want: errTest},
		"close":     {close: errTest, want: errTest},
		"run first": {run: errTest, close: errors.New("late"), want: errTest},
	} {
		t.Run(name, func(t *testing.T) {
			var m *member
			err := RunRanks(context.Background(), Config{}, func(ep conduits.Endpoint) Rank {
				m = &member{bare: bare{ep, func(conduits.Endpoint) error { return c.run }}}
				m.close = func(killed bool) error {
					if told := ep.Err() != nil; told != (c.run != nil) || killed {
						t.Errorf("in Close the job has failed: %v; killed: %v", told, killed)
					}
					return c.close
				}
				return m
			})
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || !m.closed.Load() {
				t.Errorf("closed %v, %v", m.closed.Load(), err)
			}
		})
	}
}

// between is an endpoint whose rank waits, and is looked at while it looks around
// between two naps.
type between struct {
	conduits.Endpoint
	looks int
}

func (b *between) Waiting() []conduits.Blocked {
	if b.looks--; b.looks > 0 {
		return nil
	}
	return []conduits.Blocked{lastly{}, conduits.Idling{}}
}

func (b *between) Diagnosis() string { return "the network is up" }

type lastly struct{}

func (lastly) Blocked() string { return "FetchAdd at rank 1" }

// TestDiagnosis: a rank that is between two naps when it is asked is not said to be not
// waiting, and the answer has what the rank and the conduit know.
func TestDiagnosis(t *testing.T) {
	if err := Run(context.Background(), Config{}, func(ep conduits.Endpoint) error {
		r := &run{eps: []conduits.Endpoint{&between{ep, 50}}, ranks: []Rank{&member{}}, closed: make([]bool, 1)}
		a := r.diagnosis(0, nil, false, func() wait { return r.parked([]int{0})[0] })
		counts := "a kettle on the stove; requests sent 0, received 0; replies sent 0, received 0; out of credit 0 times; slept 0 times; the network is up"
		if a.State != where.Waits || a.Text != "FetchAdd at rank 1" || !slices.Equal(a.Needs, []int{1}) || !a.Served || len(a.Others) != 1 || a.Counts != counts {
			t.Errorf("it says %+v", a)
		}
		r = &run{eps: []conduits.Endpoint{&between{ep, 1 << 60}}, ranks: []Rank{&bare{}}, closed: make([]bool, 1)}
		if a := r.diagnosis(0, nil, false, func() wait { return r.parked([]int{0})[0] }); a.State != where.Unknown || a.Text != "is not seen to wait" {
			t.Errorf("it says %+v", a)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestReport has few lines for very many ranks, and names those that do not wait.
func TestReport(t *testing.T) {
	const ranks, busy = jobenv.MostDiagnosed + 44, 17
	var out bytes.Buffer
	r := &run{closed: make([]bool, ranks)}
	for i := range ranks {
		waits := []conduits.Blocked{lastly{}}
		if i >= ranks-busy {
			waits = nil
		}
		r.eps = append(r.eps, &still{rank: i, waits: waits})
		r.ranks = append(r.ranks, &bare{})
	}
	all := r.answers(true)
	for i := range all {
		all[i].Held = "" // on a busy machine
	}
	report(&out, "asked", all, ranks, false)
	want := []string{
		"argon: asked: rank 1, which ranks 0, 2-238 wait for, waits for FetchAdd at rank 1",
		"argon:   ranks 0-238 (239), as rank 0: FetchAdd at rank 1",
		"argon:   ranks 283-299 (17), as rank 283: is not seen to wait",
		"argon:   and 44 more ranks",
	}
	if got := strings.Split(strings.TrimSpace(out.String()), "\n"); !slices.Equal(got[1:], want[1:]) {
		t.Errorf("%q", got)
	}
}

// TestFewQuestions: a simulation is asked for all of its ranks at once, however many it has.
func TestFewQuestions(t *testing.T) {
	const ranks = 1 << 16
	r := &run{closed: make([]bool, ranks), ranks: make([]Rank, ranks)}
	asked := 0
	for i := range ranks {
		r.eps = append(r.eps, &crowd{still{rank: i}, &asked})
		r.ranks[i] = &bare{}
	}
	all := r.answers(true)
	if len(all) != jobenv.MostDiagnosed || asked != 2 {
		t.Errorf("%d answers by %d questions", len(all), asked)
	}
	for _, a := range all {
		if a.State != where.Waits || a.Text != "FetchAdd at rank 1" {
			t.Fatalf("%+v", a)
		}
	}
}

// crowd is an endpoint that is asked for many ranks at once, and not for one.
type crowd struct {
	still
	asked *int
}

func (c *crowd) Waiting() []conduits.Blocked { panic("one of very many ranks is asked for") }

func (c *crowd) Look(ranks []int, f func(i int, waits []conduits.Blocked)) {
	*c.asked++
	for i := range ranks {
		f(i, []conduits.Blocked{lastly{}})
	}
}

// still is an endpoint of a simulated rank that does nothing.
type still struct {
	conduits.Endpoint
	conduits.Runner
	rank  int
	waits []conduits.Blocked
}

func (s *still) Rank() int                   { return s.rank }
func (s *still) Waiting() []conduits.Blocked { return s.waits }

// Stats has met twenty ranks, the higher the more.
func (s *still) Stats(to *conduits.Stats) {
	*to = conduits.Stats{Peers: to.Peers[:0]}
	for i := range 20 {
		n := uint64(i)
		to.Count(&conduits.PeerStats{Rank: i, Sent: [conduits.NumClasses]uint64{n, 2 * n}, SentBytes: 3 * n, Puts: 4 * n, PutBytes: 5 * n, Gets: 6 * n, GetBytes: 7 * n, Atomics: 8 * n, NoCredit: 9 * n, Resent: 10 * n})
	}
}

// TestPeers: an answer has the five largest peers of the rank, without itself, and only if they are asked for.
func TestPeers(t *testing.T) {
	r := &run{eps: []conduits.Endpoint{&still{rank: 18, waits: []conduits.Blocked{lastly{}}}}, ranks: []Rank{&bare{}}, closed: make([]bool, 1)}
	var want []where.Peer
	for _, i := range []int{19, 17, 16, 15, 14} {
		n := uint64(i)
		want = append(want, where.Peer{Rank: i, Count: 21 * n, Bytes: 15 * n, NoCredit: 9 * n, Resent: 10 * n})
	}
	if a := r.answers(true)[0]; !slices.Equal(a.Peers, want) {
		t.Errorf("its peers are %+v", a.Peers)
	}
	if a := r.answers(false)[0]; a.Peers != nil || a.Sent != 3*190 || a.Accesses != 18*190 {
		t.Errorf("unasked it has %+v", a)
	}
}

// lineWriter sends each line that is written to it.
type lineWriter chan string

func (w lineWriter) Write(b []byte) (int, error) {
	w <- string(b)
	return len(b), nil
}

// Ranks of one process say at SIGUSR1 where they wait, as often as it comes, and go on.
func TestAskedInOneProcess(t *testing.T) {
	lines := make(lineWriter, 16)
	err := Run(context.Background(), Config{Ranks: 3, Output: lines}, layered(func(r *rank) error {
		if r.Rank() != 0 {
			return r.barrier()
		}
		for range 2 {
			if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
				return err
			}
			if got := strings.Split(<-lines, "\n"); len(got) != 5 || !strings.HasPrefix(got[0], "argon: where each rank waits") {
				t.Errorf("it says %q", got)
			} else if !strings.HasPrefix(got[1], "argon:   rank 0: ") || !strings.Contains(got[1], " at run_test.go:") {
				t.Errorf("of rank 0 it says %q", got[1])
			}
		}
		return r.barrier()
	}))
	if err != nil {
		t.Error(err)
	}
}

func TestSIGQUITInOneProcess(t *testing.T) {
	out, err := testjob.Command(t, "quit", "ARGON_RANKS=3").CombinedOutput()
	var ee *exec.ExitError
	if !errors.As(err, &ee) || ee.ExitCode() != jobenv.StatusQuit {
		t.Errorf("ended with %v", err)
	}
	stacks, report, _ := strings.Cut(string(out), "\nargon: where each rank waits: ")
	lines := strings.Split(report, "\n")
	if len(lines) != 5 {
		t.Fatalf("%s", out)
	}
	for r, want := range []string{"argon:   rank 0: barrier phase", "argon:   rank 1: ", "argon:   rank 2: "} {
		if !strings.HasPrefix(lines[1+r], want) || !strings.Contains(lines[1+r], "; requests sent ") {
			t.Errorf("line %d is %q, want %q", r, lines[1+r], want)
		}
	}
	if !strings.Contains(stacks, "quitWhileWaiting") {
		t.Errorf("no stacks before the report:\n%s", stacks)
	}
}

// TestContext ends a job by its context, wherever its ranks wait.
func TestContext(t *testing.T) {
	for _, conduit := range conduitsHere {
		t.Run(conduit, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			waits := make([]error, 3)
			body := layered(func(r *rank) error {
				switch r.Rank() {
				case 0:
					cancel(errEnough)
					for r.Err() == nil {
						r.e.Poll()
						runtime.Gosched()
					}
					return r.Err()
				case 1:
					return r.barrier()
				}
				return r.forever()
			})
			err := Run(ctx, Config{Ranks: len(waits), Conduit: conduit}, func(ep conduits.Endpoint) error {
				err := body(ep)
				waits[ep.Rank()] = err
				return err
			})
			var re *RankError
			if !errors.Is(err, errEnough) || errors.Is(err, context.Canceled) || !errors.As(err, &re) || !strings.Contains(err.Error(), "boot: the context of the job has ended") {
				t.Errorf("the job: %v", err)
			}
			for rank, err := range waits {
				var p *errs.PeerError
				if !errors.As(err, &p) || !strings.Contains(err.Error(), errEnough.Error()) {
					t.Errorf("rank %d: %v", rank, err)
				}
			}
		})
	}
}

func TestConfigRefuses(t *testing.T) {
	nothing := func(conduits.Endpoint) error { return nil }
	err := Run(context.Background(), Config{Name: "upc", Ranks: -3, MaxSegment: 1 << 50, Conduit: "pigeon"}, nothing)
	wantErr(t, err, errs.ErrBadArg, "upc: Config.Ranks is -3", "upc: Config.MaxSegment is 1125899906842624")
	if s := status(err); s != 1 {
		t.Errorf("a mistake of the program ends with status %d", s)
	}
	err = Run(context.Background(), Config{Conduit: "pigeon"}, nothing)
	wantErr(t, err, errs.ErrBadArg, "pigeon", "shm")
	if s := status(err); s != 1 {
		t.Errorf("a conduit of the program that there is not ends with status %d", s)
	}
	t.Setenv("ARGON_CONDUIT", "dove")
	err = Run(context.Background(), Config{Conduit: "pigeon"}, nothing)
	wantErr(t, err, errs.ErrBadArg, "dove", "shm")
	if s := status(err); s != jobenv.StatusUsage {
		t.Errorf("a conduit of the environment that there is not ends with status %d", s)
	}
	wantErr(t, Run(context.Background(), Config{Name: "upc"}, nil), errs.ErrBadArg, "upc: Run without a function")
	wantErr(t, RunRanks(context.Background(), Config{Ranks: -1, Conduit: "shm"}, nil), errs.ErrBadArg, "boot: Config.Ranks is -1")
}

// TestMaxSegment: what the ranks may attach is what the program asks for, in whole
// pages, unless the environment says otherwise.
func TestMaxSegment(t *testing.T) {
	for _, c := range []struct {
		env        string
		asked, got uint64
	}{{"", 5 * segment.PageSize, 5 * segment.PageSize}, {"", 5*segment.PageSize + 1, 6 * segment.PageSize}, {"64K", 5 * segment.PageSize, 64 << 10}} {
		t.Setenv("ARGON_SEGMENT", c.env)
		if err := Run(context.Background(), Config{MaxSegment: c.asked}, func(ep conduits.Endpoint) error {
			if got := ep.Limits().MaxSegment; got != c.got {
				t.Errorf("%d asked for, and ARGON_SEGMENT=%s: %d may be attached, want %d", c.asked, c.env, got, c.got)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// settings is a Config with a runtime's own option.
type settings struct {
	Config
	loud bool
}

func (s *settings) Validate() error {
	if s.loud && s.Ranks > 2 {
		return errors.Join(s.Config.Validate(), errs.BadArg("upc: %d loud ranks", s.Ranks))
	}
	return s.Config.Validate()
}

// TestOverride: the environment has the last word, and what is at fault has the status.
func TestOverride(t *testing.T) {
	for _, c := range []struct {
		ranks  int
		env    string
		status int // 0: none
	}{{2, "", 0}, {9, "2", 0}, {2, "9", jobenv.StatusUsage}, {9, "", 1}, {2, "many", jobenv.StatusUsage}, {9, "8", 1}} {
		t.Setenv("ARGON_RANKS", c.env)
		err := Override("upc", &settings{Config{Ranks: c.ranks}, true})
		got := 0
		if err != nil {
			got = status(err)
		}
		if got != c.status {
			t.Errorf("%d ranks, ARGON_RANKS=%s: %v, status %d, want %d", c.ranks, c.env, err, got, c.status)
		}
	}
}

// TestPanicStack: a stack of another form is left as it is.
func TestPanicStack(t *testing.T) {
	const before, program, bare, after = "goroutine 7 [running]:\nruntime/debug.Stack()\n\tstack.go:26\npanic({0x1})\n\tpanic.go:792\n", "main.fill(0x1)\n\tmain.go:7\n", "github.com/argon-go/argon/conduits/boot.(*bare).Run(0x2)\n\tboot.go:3\n", "github.com/argon-go/argon/conduits/boot.(*run).rank(0x3)\n\tranks.go:1\n"
	for in, want := range map[string]string{
		before + program + bare + after: "goroutine 7 [running]:\npanic({0x1})\n\tpanic.go:792\n" + program,
		before + program + after:        "goroutine 7 [running]:\npanic({0x1})\n\tpanic.go:792\n" + program,
		before + program:                before + program,
		program + after:                 program + after,
		"goroutine 7":                   "goroutine 7",
		"":                              "",
		before + after:                  "goroutine 7 [running]:\npanic({0x1})\n\tpanic.go:792\n",
	} {
		if got := string(panicStack([]byte(in))); got != want {
			t.Errorf("of\n%s\nis left\n%s\nwant\n%s", in, got, want)
		}
	}
}

// TestManyAtOnce runs several jobs at the same time.
func TestManyAtOnce(t *testing.T) {
	done := make(chan error)
	jobs := 6
	if conc.Race {
		jobs = 3
	}
	for i := range jobs {
		go func() {
			done <- Run(context.Background(), Config{Ranks: 1 + i%3}, layered(around))
		}()
	}
	for range jobs {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
