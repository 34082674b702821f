package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

var simprogs struct {
	once sync.Once
	dir  string
	err  error
}

// simulated is testdata/simprog or an example, built once.
func simulated(t *testing.T, name string) string {
	t.Helper()
	s := &simprogs
	s.once.Do(func() {
		if s.dir, s.err = os.MkdirTemp("", "gasrun-test-"); s.err != nil {
			return
		}
		out, err := exec.Command("go", "build", "-o", s.dir+"/", "./testdata/simprog",
			"../../examples/hello", "../../examples/ring", "../../examples/wordindex", "../../examples/gups", "../../examples/heat", "../../examples/uts", "../../examples/sort", "../../examples/bfs", "../../examples/compiled").CombinedOutput()
		if err != nil {
			s.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return filepath.Join(s.dir, name)
}

func simrun(t *testing.T, args ...string) result {
	t.Helper()
	return gasrun(t, append([]string{"-conduit", "sim"}, args...)...)
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Every example runs on the simulator as it is, does the same with the same seed,
// event by event, and something else with another one.
func TestSimulatedExamples(t *testing.T) {
	testmain.Long(t)
	for _, tc := range []struct {
		ranks string
		args  []string
		want  string // standard output contains it
	}{
		{"64", []string{"hello"}, "hello from rank 63 of 64"},
		{"64", []string{"ring", "-laps", "3"}, "as it should"},
		{"16", []string{"wordindex", "-check", "../../conduits"}, "a sequential run has the same index"},
		{"64", []string{"gups", "-size", "8"}, "0 are wrong now"},
		{"16", []string{"gups", "-size", "8", "-mode", "mailbox"}, "0 are wrong now"},
		{"16", []string{"heat", "-size", "32", "-steps", "10", "-check", "-o", ""}, "every cell is as on one rank"},
		{"16", []string{"uts"}, "tree small: 63914 nodes"},
		{"16", []string{"sort", "-size", "10"}, "1024 keys in order"},
		{"64", []string{"compiled", "-size", "100"}, "98 are 2, the largest square is 9801 at 99"},
		{"1", []string{"hello"}, "hello from rank 0 of 1"},
	} {
		t.Run(strings.Join(tc.args[:min(4, len(tc.args))], " ")+" "+tc.ranks, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			prog := simulated(t, tc.args[0])
			trace := func(name, seed string) []byte {
				name = filepath.Join(dir, name)
				r := simrun(t, append([]string{"-n", tc.ranks, "-seed", seed, "-topology", "torus", "-fault", "jitter=300ns", "-sim-trace", name, prog}, tc.args[1:]...)...)
				r.want(t, 0)
				if !strings.Contains(r.stdout, tc.want) {
					t.Errorf("wrote %q, want %q\n%s", r.stdout, tc.want, r.stderr)
				}
				return read(t, name)
			}
			one := trace("one", "1")
			if len(one) == 0 {
				t.Fatal("the trace is empty")
			}
			if !bytes.Equal(one, trace("again", "1")) {
				t.Errorf("the same seed does something else: %s", dir)
			}
			if tc.ranks != "1" && bytes.Equal(one, trace("two", "2")) {
				t.Errorf("another seed does the same")
			}
		})
	}
}

// How a job ends decides the status, and the last line names rank and time.
func TestSimulatedEnds(t *testing.T) {
	testmain.Long(t)
	for _, tc := range []struct {
		what   string
		args   []string // of gasrun
		status int
		last   string // pattern of the last line
	}{
		{"good", nil, 0, `^$`},
		{"twice", nil, 0, `^$`},
		{"both", nil, 0, `^$`},
		{"error", nil, 1, `^gasrun: rank 1 \(pid \d+\) failed at [0-9.]+µs of virtual time: out of luck$`},
		{"ignore", nil, 1, `^gasrun: rank 1 \(pid \d+\) failed at [0-9.]+µs of virtual time: out of luck$`},
		{"panic", nil, 1, `^gasrun: rank 1 \(pid \d+\) failed at [0-9.]+µs of virtual time: panic: boom$`},
		{"exit", nil, 3, `^gasrun: the simulated job \(pid \d+\) exited with status 3`},
		{"kill", nil, 137, `^gasrun: the simulated job \(pid \d+\) killed by SIGKILL`},
		{"wait", nil, 1, `^gasrun: 	rank 3: collective call`},
		{"nothing", nil, 1, `^gasrun: no rank of simprog attached`},
		{"foreign", nil, 1, `^gasrun: the simulated job \(pid \d+\) exited with status 1: .* of rank 1 is called by a goroutine that the simulator does not run`},
		{"good", []string{"-limit", "20us"}, 1, `^gasrun: the simulated job \(pid \d+\) failed at 20[0-9.]*µs of virtual time: .*-limit`},
		{"good", []string{"-fault", "crash=2@20us"}, 1, `^gasrun: rank 2 \(pid \d+\) failed at 2[0-9.]+µs of virtual time: .*crashed`},
		{"good", []string{"-fault", "slow=1x10,stall=2@10us+1ms", "-fault", "partition=0-1@5us+1ms", "-queue", "single"}, 0, `^$`},
		{"good", []string{"-sim", "latency=10us,credits=1", "-machine", "ideal"}, 0, `^$`},
		{"good", []string{"-segment", "128M"}, 0, `^$`},
		{"good", []string{"-x", "SLURM_PROCID=0", "-x", "SLURM_NTASKS=2"}, 0, `^$`},
	} {
		t.Run(strings.Join(append(tc.args, tc.what), " "), func(t *testing.T) {
			t.Parallel()
			rec := filepath.Join(t.TempDir(), "record")
			r := simrun(t, append(append([]string{"-n", "4", "-keep", rec}, tc.args...), simulated(t, "simprog"), tc.what)...)
			r.want(t, tc.status)
			if l := lastLine(r.stderr); !regexp.MustCompile(tc.last).MatchString(l) {
				t.Errorf("the last line is %q, want %q\n%s", l, tc.last, r.stderr)
			}
			if tc.what == "nothing" {
				gasrun(t, "-again", rec).want(t, jobenv.StatusUsage, "no job had begun")
				return
			}
			// A failure is reproduced as well as a success.
			r = gasrun(t, "-again", rec)
			r.want(t, 0, "reproduced: ")
			if strings.Contains(r.stderr, "NOT") {
				t.Error(r.stderr)
			}
		})
	}
}

// Wherever rank 2 crashes, all others notice, and gasrun names it.
func TestSimulatedCrashes(t *testing.T) {
	testmain.Long(t)
	for _, event := range []int{1, 2, 5, 20, 60, 100, 140, 200, 250, 300, 333} {
		t.Run(fmt.Sprint(event), func(t *testing.T) {
			t.Parallel()
			r := simrun(t, "-n", "4", "-seed", fmt.Sprint(event), "-fault", fmt.Sprintf("crash=2#%d", event), simulated(t, "simprog"), "good")
			r.want(t, 1)
			if l := lastLine(r.stderr); !strings.HasPrefix(l, "gasrun: rank 2 (pid ") || !strings.Contains(l, "crashed") || !strings.Contains(l, "of virtual time") {
				t.Errorf("the last line is %q\n%s", l, r.stderr)
			}
		})
	}
}

// A record is repeated as it was made, and a program that does something else is
// found out.
func TestAgain(t *testing.T) {
	testmain.Long(t)
	dir := t.TempDir()
	rec := filepath.Join(dir, "record")
	prog := simulated(t, "simprog")
	simrun(t, "-n", "8", "-seed", "3", "-fault", "jitter=1us", "-segment", "1M", "-x", "ARGON_DEBUG=1", "-x", "OTHER=a b", "-keep", rec, prog, "good", "20").want(t, 0)
	text := string(read(t, rec))
	for _, want := range []string{
		"\nprogram \"" + prog + "\"\narg \"good\"\narg \"20\"\n", "\nenv \"ARGON_DEBUG=1\"\n", "\nenv \"OTHER=a b\"\n",
		"\nenv \"ARGON_SEGMENT=1048576\"\n", "\nranks 8\n", "\noptions seed=3 machine=extoll jitter=1us\n", "\njob 1 8 ", "\nend 1 ", "\nexit status 0\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the record\n%s", want, text)
		}
	}
	gasrun(t, "-again", rec).want(t, 0, "reproduced: ended in good order")
	again := filepath.Join(dir, "again")
	gasrun(t, "-again", rec, "-keep", again).want(t, 0)
	if b := string(read(t, again)); b != regexp.MustCompile(`(?m)^end .*\n`).ReplaceAllString(text, "${0}replay 1 same\n") {
		t.Errorf("the record of the repetition is\n%s\nthat of the run\n%s", b, text)
	}
	r := gasrun(t, "-again", rec, prog, "good", "25")
	r.want(t, 1, "NOT reproduced: job 1", `the arguments are ["good" "25"]`, "they are the same up to step ", "of virtual time", "on a clock, random numbers")
	gasrun(t, "-again", rec, prog, "error", "20").want(t, 1, "NOT reproduced: job 1")
	gasrun(t, "-again", rec, prog, "twice", "20").want(t, 1, "NOT reproduced: job 1")
	gasrun(t, "-again", rec, prog, "after", "20").want(t, 1, "NOT reproduced: the jobs are the same, but the process ended with status 4, recorded is status 0")
	gasrun(t, "-again", rec, prog, "nothing").want(t, 1, "NOT reproduced", "opened 0 jobs, recorded are 1")
	gasrun(t, "-again", rec, simulated(t, "hello")).want(t, 1, "NOT reproduced", "the executable is not the one that was recorded")
	// What was recorded until a kill of everything is still good for that.
	if err := os.WriteFile(rec, []byte(text[:strings.Index(text, "\nend 1 ")+20]), 0o666); err != nil {
		t.Fatal(err)
	}
	gasrun(t, "-again", rec).want(t, 0, "the same as far as it is recorded")
	gasrun(t, "-again", rec, prog, "good", "21").want(t, 1, "NOT reproduced: job 1")
	// A process that ends before its job does is compared by how far it came.
	simrun(t, "-n", "8", "-keep", rec, prog, "exit", "20").want(t, 3)
	gasrun(t, "-again", rec).want(t, 0, "reproduced: the process ended with status 3 before the job did")
	gasrun(t, "-again", rec, prog, "exit", "10").want(t, 1, "NOT reproduced: the process ended after step")
	gasrun(t, "-again", rec, prog, "good", "20").want(t, 1, "NOT reproduced")
}

// TestAgainOfUglyText: what ranks and records say moves no cursor when gasrun repeats
// it.
func TestAgainOfUglyText(t *testing.T) {
	testmain.Long(t)
	rec := filepath.Join(t.TempDir(), "record")
	prog := simulated(t, "simprog")
	simrun(t, "-n", "3", "-keep", rec, prog, "ugly").want(t, 1)
	for _, args := range [][]string{{"-again", rec}, {"-again", rec, prog, "good"}} {
		r := gasrun(t, args...)
		said := false
		for _, l := range strings.Split(r.stderr, "\n") {
			if strings.HasPrefix(l, "gasrun: ") {
				said = said || strings.Contains(l, `owned`)
				if strings.ContainsAny(l, "\x1b\a\r") {
					t.Errorf("%q goes to the terminal", l)
				}
			}
		}
		if !said {
			t.Errorf("the failure is not told: %q", r.stderr)
		}
	}
	text := string(read(t, rec))
	if err := os.WriteFile(rec, []byte(strings.Replace(text, "exit status 1", "exit \x1b[2J", 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	r := gasrun(t, "-again", rec)
	if r.status == 0 || strings.Contains(r.stderr, "\x1b") || !strings.Contains(r.stderr, "has not the form") {
		t.Errorf("status %d, %q", r.status, r.stderr)
	}
}

// Without gasrun variables do what its flags do.
func TestSimulatedAlone(t *testing.T) {
	testmain.Long(t)
	dir := t.TempDir()
	rec, trace := filepath.Join(dir, "record"), filepath.Join(dir, "trace")
	alone := func(env ...string) (string, error) {
		cmd := exec.Command(simulated(t, "simprog"), "twice", "20")
		cmd.Env = append(append(os.Environ(), "ARGON_CONDUIT=sim", "ARGON_RANKS=5", "ARGON_SIM=seed=3,jitter=1us"), env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := alone("ARGON_SIM_KEEP="+rec, "ARGON_SIM_TRACE="+trace); err != nil || out != "" {
		t.Fatalf("%v: %s", err, out)
	}
	if one, two := read(t, trace), read(t, trace+".2"); len(one) == 0 || !bytes.Equal(one, two) {
		t.Error("two jobs of the same seed do not have the same trace")
	}
	if out, err := alone("ARGON_SIM_AGAIN=" + rec); err != nil || strings.Count(out, "went as recorded") != 2 {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := alone("ARGON_SIM_AGAIN="+rec, "ARGON_RANKS=6"); err == nil || !strings.Contains(out, "6 ranks") || !strings.Contains(out, "recorded are 5") {
		t.Errorf("%v: %s", err, out)
	}
	gasrun(t, "-again", rec).want(t, jobenv.StatusUsage, "no program given")
	gasrun(t, "-again", rec, simulated(t, "simprog"), "twice", "20").want(t, 0)
}

// A rank that waits in Go's own way stops all others: the time limit ends that,
// and says where all ranks are; so does SIGQUIT.
func TestSimulatedHang(t *testing.T) {
	testmain.Long(t)
	answers := func(t *testing.T, r result) {
		for i, where := range []string{"(barrier|collective)", "blocked", "(barrier|collective)", "(barrier|collective)"} {
			if !regexp.MustCompile(fmt.Sprintf(`(?m)^gasrun:   rank %d: %s`, i, where)).MatchString(r.stderr) {
				t.Errorf("no line for rank %d: %.3000s", i, r.stderr)
			}
		}
		if !strings.Contains(r.stacks, "testdata/simprog/main.go") {
			t.Error("the program's stacks are missing")
		}
	}
	t.Run("time", func(t *testing.T) {
		t.Parallel()
		for limit := 500 * time.Millisecond; ; limit *= 4 {
			r := simrun(t, "-n", "4", "-timeout", limit.String(), simulated(t, "simprog"), "deaf")
			r.want(t, jobenv.StatusTimeout, "-timeout")
			if strings.Contains(r.stderr, "rank 1: blocked") || limit > time.Minute { // it has come that far within the time
				answers(t, r)
				break
			}
		}
	})
	for _, sig := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			res := quitDeaf(t, sig)
			if sig == syscall.SIGINT {
				res.want(t, 130, "ended by SIGINT")
				return
			}
			for i := 0; i < 20 && !strings.Contains(res.stderr, "rank 1: blocked"); i++ { // it was still about to
				res = quitDeaf(t, sig)
			}
			res.want(t, jobenv.StatusQuit)
			answers(t, res)
		})
	}
}

// quitDeaf sends sig to gasrun when rank 1 is about to wait in Go's own way.
func quitDeaf(t *testing.T, sig syscall.Signal) result {
	t.Helper()
	cmd, r, stderr := piped(t, "-conduit", "sim", "-n", "4", simulated(t, "simprog"), "deaf")
	if _, err := io.ReadFull(r, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	send(t, cmd, sig)
	return await(t, cmd, &bytes.Buffer{}, stderr)
}

// A record of a run that is killed with everything else is there.
func TestKilledRecord(t *testing.T) {
	testmain.Long(t)
	rec := filepath.Join(t.TempDir(), "record")
	cmd, r, _ := piped(t, "-conduit", "sim", "-n", "4", "-keep", rec, simulated(t, "simprog"), "deaf", "40")
	if _, err := io.ReadFull(r, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if _, err := io.ReadAll(r); err != nil { // until the process is gone
		t.Fatal(err)
	}
	for len(jobOf(cmd)) > 0 {
		runtime.Gosched()
	}
	gasrun(t, "-again", rec, simulated(t, "simprog"), "good", "40").want(t, 0, "the same as far as it is recorded")
}

func TestBadSimulation(t *testing.T) {
	testmain.Long(t)
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte("no record\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(dir, "good")
	simrun(t, "-n", "2", "-keep", good, simulated(t, "simprog"), "good").want(t, 0)
	for _, tc := range []struct {
		args   []string
		status int
		want   []string
	}{
		{[]string{"-n", "16777217"}, 2, []string{`"16777217"`, "-n", "1 to 16777216"}},
		{[]string{"-n", "0"}, 2, []string{`"0"`, "-n"}},
		{[]string{"-seed", "x"}, 2, []string{"seed=x"}},
		{[]string{"-seed", ""}, 2, []string{`""`, "-seed"}},
		{[]string{"-seed", "1 crash=0@0"}, 2, []string{"-seed"}},
		{[]string{"-machine", "myrinet"}, 2, []string{"myrinet", "extoll"}},
		{[]string{"-topology", "ring"}, 2, []string{"ring", "torus"}},
		{[]string{"-queue", "two"}, 2, []string{"two", "voq"}},
		{[]string{"-limit", "5"}, 2, []string{"limit=5", "such as"}},
		{[]string{"-fault", "seed=1"}, 2, []string{"seed=1", "-fault", "no fault", "crash"}},
		{[]string{"-fault", ""}, 2, []string{"-fault"}},
		{[]string{"-fault", "crash=x@1ms"}, 2, []string{"crash=x@1ms"}},
		{[]string{"-n", "4", "-fault", "crash=4@1ms"}, 2, []string{"rank 4", "0..3", "-fault"}},
		{[]string{"-fault", "jitter=1us,drop=0.5,dup=0.1"}, 2, []string{"drop=0.5 dup=0.1", "without effect", "jitter", "-fault"}},
		{[]string{"-sim", "buffer=1"}, 2, []string{"buffer=1", "without effect"}},
		{[]string{"-sim", "sede=1"}, 2, []string{`"sede"`, "-sim"}},
		{[]string{"-n", "4", "-topology", "torus", "-sim", "dims=1x1x3"}, 2, []string{"3 positions for 4 nodes"}},
		{[]string{"-segment", "100T"}, 2, []string{"segments", "-segment"}},
		{[]string{"-l"}, 2, []string{"-l ", "one process"}},
		{[]string{"-bind", "core"}, 2, []string{"-bind", "one process"}},
		{[]string{"-freeze", "0"}, 2, []string{"-freeze", "one process"}},
		{[]string{"-output-dir", dir}, 2, []string{"-output-dir", "one process"}},
		{[]string{"-sim-trace", ""}, 2, []string{"-sim-trace", "empty"}},
		{[]string{"-keep", ""}, 2, []string{"-keep", "empty"}},
		{[]string{"-again", ""}, 2, []string{"-again", "empty"}},
		{[]string{"-again", bad}, 2, []string{"-again", bad, "line 1"}},
		{[]string{"-again", filepath.Join(dir, "none")}, 2, []string{"-again", "no such file"}},
		{[]string{"-again", good, "-n", "3"}, 2, []string{"-n and -again exclude"}},
		{[]string{"-again", good, "-seed", "3"}, 2, []string{"-seed and -again exclude"}},
		{[]string{"-again", good, "-conduit", "shm"}, 2, []string{"-again", "shm"}},
		{[]string{"-again", good, "-keep", good}, 2, []string{"-keep and -again", good}},
		{[]string{"-conduit", "shm", "-seed", "1", "-sim-trace", "x"}, 2, []string{"-seed, -sim-trace", "-conduit sim"}},
		{[]string{"-keep", filepath.Join(dir, "none", "x")}, 1, []string{"-keep", "no such file"}},
		{[]string{"-sim-trace", filepath.Join(dir, "none", "x")}, 1, []string{"-sim-trace", "no such file"}},
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			t.Parallel()
			var conduit []string
			if !strings.Contains(strings.Join(tc.args, " "), "-again") {
				conduit = []string{"-conduit", "sim"}
			}
			r := gasrun(t, append(append(conduit, tc.args...), simulated(t, "simprog"), "good")...)
			r.want(t, tc.status, tc.want...)
		})
	}
}

func TestSimulatedPlan(t *testing.T) {
	r := simrun(t, "-t", "-n", "1000000", "-seed", "5", "-fault", "crash=3@2ms", "-fault", "jitter=2us,detect=3us", "-segment", "1M", "-x", "A=b c", "true", "x")
	r.want(t, 0)
	want := "ranks 0..999999 in one process: env 'A=b c' 'ARGON_SIM=seed=5 machine=extoll jitter=2us crash=3@2ms detect=3us' " +
		"ARGON_RANKS=1000000 ARGON_CONDUIT=sim ARGON_SEGMENT=1048576 true x\n"
	if r.stdout != want {
		t.Errorf("wrote %q, want %q", r.stdout, want)
	}
}

// TestProfileFlag: the table of all ranks is printed once, and the name of a machine is told where it belongs.
func TestProfileFlag(t *testing.T) {
	r := gasrun(t, "-n", "3", "-profile", program(t), "good")
	r.want(t, 0)
	if strings.Count(r.stderr, "argon: profile of 3 ranks: ") != 1 || !strings.Contains(r.stderr, "argon:   main.go:") {
		t.Errorf("the table is not there once:\n%s", r.stderr)
	}
	for _, args := range [][]string{{"-profile=ideal"}, {"-profile", "ideal"}} {
		r := simrun(t, append(args, program(t))...)
		r.want(t, 2)
		if !strings.Contains(r.stderr, "the simulated machine is -machine ideal") {
			t.Errorf("%v: it says %s", args, r.stderr)
		}
	}
	if r := gasrun(t, "-profile=sizes,lines", program(t)); r.status != 2 || !strings.Contains(r.stderr, `"lines"`) || !strings.Contains(r.stderr, "json=FILE") {
		t.Errorf("status %d: %s", r.status, r.stderr)
	}
}
