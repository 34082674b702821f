// Package testmain runs the tests of a package that starts ranks or goroutines.
// It is called by TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(testmain.Run(m)) }
//
// (testjob.Main calls it.) It does two things.
//
// A watchdog ends the tests when nothing moves any more, and names the tests that
// run, what the ranks of their jobs wait for and where their goroutines stand. A
// test hangs if for [DefaultPatience] no test began or ended and no thread of this
// process and of its descendants ran or was ready to run; threads that do run have
// four times as long. Neither is measured by the clock: the watchdog looks every
// half second and counts looks, so that time in which the process was stopped, or
// its host paused, does not count, and a thread that waits for a processor is one
// that is ready to run. The patience grows with the machine's load and with -timeout
// where that is above go test's default; -timeout 0 and a debugger turn the
// watchdog off, as -fuzz and -bench do.
//
// Signals that were ignored when the tests started, as under nohup or in the
// background of a script, are at their defaults in programs that the tests start;
// in the tests themselves they stay without effect.
//
// Environment: ARGONTEST_WATCHDOG is the patience, such as 2m, or off; for ARGONTEST_LONG see [Quick].
package testmain

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/job/live"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/testkit/sandbox"
)

// DefaultPatience is how long nothing may move.
const DefaultPatience = 30 * time.Second

const (
	look        = 500 * time.Millisecond
	goTimeout   = 10 * time.Minute // go test's own -timeout, if none is given
	awakeFactor = 4                // threads that run may go on so many times as long
	mostLoaded  = 10               // the load scales the patience by no more than this
	askGrace    = 20 * time.Second // for jobs of several processes to answer
	// status is that of a test program which the testing package's own time limit
	// ends.
	status = 2
)

// Run runs the tests and returns the exit status.
func Run(m *testing.M) int {
	sandbox.Enter()
	// The Go runtime leaves no other ignored (os/signal, "Default behavior of signals").
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			// A signal that is caught is at its default again after execve(2).
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	flag.Parse()
	if p := patience(); p > 0 {
		go watch(p)
	}
	code := m.Run()
	if barked.Load() {
		select {} // the watchdog has ended what a test waited for, and ends the process
	}
	return code
}

// Spend returns when this process has used the processors for d, in which other threads that
// can run have had their share of a loaded machine, too. It is for tests that look whether
// something goes wrong meanwhile.
func Spend(d time.Duration) {
	for start := sys.ProcessorTime(); sys.ProcessorTime()-start < d; {
		runtime.Gosched()
	}
}

// Port is a TCP port at which no process listens, as far as one can know. It is none of those that
// the system gives to connections, and to listeners that ask for any: one of them might get it
// before the test uses it.
func Port(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := 10_000 + rand.IntN(20_000)
		if l, err := net.Listen("tcp", fmt.Sprintf(":%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// Executable writes a script that the test is to run. No process that another goroutine starts
// meanwhile inherits the file: what a process has open to write cannot be run (ETXTBSY).
func Executable(t testing.TB, name, text string) string {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// Long skips a test that -short leaves out: it takes long, and what it notices others notice in
// part.
func Long(t testing.TB) {
	t.Helper()
	if Quick() {
		t.Skip("left out by -short")
	}
}

// Quick reports whether -short is to leave out what takes long. ARGONTEST_LONG=1 has it run
// nevertheless, where all runs slowly, as under an emulator.
func Quick() bool { return testing.Short() && os.Getenv("ARGONTEST_LONG") != "1" }

// patience is how long nothing may move on a machine without load; 0 means for
// ever.
func patience() time.Duration {
	p := DefaultPatience
	switch s := os.Getenv("ARGONTEST_WATCHDOG"); s {
	case "":
	case "off":
		return 0
	default:
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 {
			fmt.Fprintf(os.Stderr, "testmain: ARGONTEST_WATCHDOG=%q is neither a duration such as 2m nor off\n", s)
			os.Exit(2)
		}
		return d
	}
	if value("test.fuzz") != "" || value("test.bench") != "" {
		return 0 // they last as long as they are told to
	}
	limit, err := time.ParseDuration(value("test.timeout"))
	if err != nil || limit == 0 {
		return 0
	}
	if limit > goTimeout {
		p = time.Duration(float64(p) * float64(limit) / float64(goTimeout))
	}
	return p
}

// value is a flag's value, "" if there is no such flag.
func value(name string) string {
	if f := flag.Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}

// watch looks at this process until nothing moves for p, and ends it then. While
// the process computes it allocates nothing: tests count allocations.
func watch(p time.Duration) {
	runtime.LockOSThread() // a thread that threadsAwake can leave out
	self := syscall.Gettid()
	u := new(syscall.Rusage)
	tests, still, looks := "", 0.0, 0
	part := 0.5 // of the limit, after which to look which tests run: costly
	patience := p.Seconds() / look.Seconds()
	for range time.Tick(look) {
		looks++
		if computes(u) || awake(self) {
			still += 1.0 / awakeFactor
		} else {
			still++
		}
		if still < part*patience || still < part*patience*load() {
			continue
		}
		now, _ := running()
		switch {
		case traced():
			still, looks = 0, 0
		case now != tests:
			tests, still, looks, part = now, 0, 0, 0.5
		case part < 1:
			part = 1
		default:
			bark(os.Stderr, fmt.Sprintf("no test has begun or ended, and nothing has moved, for %v (patience %v, load x%.1f)",
				time.Duration(looks)*look, p, load()))
		}
	}
}

// computes reports whether this process has used more than a hundredth of a processor
// since the call before. u is for it alone.
func computes(u *syscall.Rusage) bool {
	before := u.Utime.Nano() + u.Stime.Nano()
	if syscall.Getrusage(syscall.RUSAGE_SELF, u) != nil {
		return false
	}
	return u.Utime.Nano()+u.Stime.Nano()-before > int64(look/100)
}

// barked is set when the tests are given up.
var barked atomic.Bool

// Barked reports whether the tests have been given up; what would be a test's log is
// then to be written to standard error.
func Barked() bool { return barked.Load() }

// bark writes what there is to know, has jobs of several processes say where
// their ranks wait, kills descendants and ends this process.
func bark(w io.Writer, why string) {
	barked.Store(true)
	_, names := running()
	fmt.Fprintf(w, "\nwatchdog: %s (ARGONTEST_WATCHDOG, -timeout); tests that run:\n", why)
	for _, n := range names {
		fmt.Fprintf(w, "watchdog:   %s\n", n)
	}
	jobs := live.Jobs()
	for i, j := range jobs {
		fmt.Fprintf(w, "watchdog: job %d of %d in this process:\n%s\n", i+1, len(jobs), waiting(j))
	}
	children := descendants()
	for _, c := range children {
		fmt.Fprintf(w, "watchdog: process %d (%s) of the tests is in state %c\n", c.pid, c.name, c.state)
	}
	fmt.Fprintf(w, "\n%s\n", stacks())
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for _, j := range jobs {
			if j.Ask != nil {
				j.Ask()
			}
		}
	}()
	select {
	case <-asked:
	case <-time.After(askGrace):
	}
	for _, c := range descendants() {
		_ = syscall.Kill(c.pid, syscall.SIGKILL)
	}
	os.Exit(status)
}

// waiting asks j, which may be broken.
func waiting(j *live.Job) string {
	if j.Waiting == nil {
		return "\t(of several processes)"
	}
	said := make(chan string, 1)
	go func() {
		debug.SetPanicOnFault(true)
		defer func() {
			if r := recover(); r != nil {
				said <- fmt.Sprintf("\tcannot be asked: %v", r)
			}
		}()
		said <- j.Waiting()
	}()
	select {
	case s := <-said:
		return s
	case <-time.After(2 * time.Second):
		return "\tdoes not answer"
	}
}

// running is a text that changes when a test begins or ends, and the tests with
// their places.
func running() (key string, names []string) {
	var ids []string
	for g := range strings.SplitSeq(stacks(), "\n\n") {
		at := strings.Index(g, "\ntesting.tRunner(")
		if at < 0 {
			continue
		}
		id, _, _ := strings.Cut(g, " [")
		ids = append(ids, id)
		lines := strings.Split(g[:at], "\n")
		if len(lines) < 3 {
			continue
		}
		// The two lines before tRunner are the test's function and its place.
		fn, place := lines[len(lines)-2], strings.TrimSpace(lines[len(lines)-1])
		if i := strings.LastIndex(fn, "("); i > 0 {
			fn = fn[:i]
		}
		if strings.HasPrefix(fn, "testing.") {
			continue // waits for subtests
		}
		place, _, _ = strings.Cut(place, " +0x")
		state, _, _ := strings.Cut(lines[0], ":")
		names = append(names, fmt.Sprintf("%s, at %s: %s", fn[strings.LastIndex(fn, "/")+1:], filepath.Base(place), state))
	}
	slices.Sort(ids)
	return strings.Join(ids, " "), names
}

// stacks is all goroutines' stacks, up to 64 MiB.
func stacks() string {
	for n := 1 << 20; ; n *= 2 {
		b := make([]byte, n)
		if k := runtime.Stack(b, true); k < n || n >= 64<<20 {
			return string(b[:k])
		}
	}
}

// traced reports whether a debugger holds this process (proc_pid_status(5),
// TracerPid).
func traced() bool {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	_, rest, ok := strings.Cut(string(b), "\nTracerPid:")
	if !ok {
		return false
	}
	pid, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(pid) != "0"
}

// load is how many runnable threads there are for each processor (proc_loadavg(5),
// the first minute), from 1 to mostLoaded.
func load() float64 {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 1
	}
	first, _, _ := strings.Cut(string(b), " ")
	v, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 1
	}
	return min(max(v/float64(runtime.NumCPU()), 1), mostLoaded)
}

// awake reports whether a thread of this process but self, or one of a descendant,
// runs or is ready to run, or waits for a disk.
func awake(self int) bool {
	if threadsAwake(os.Getpid(), self) {
		return true
	}
	return slices.ContainsFunc(descendants(), func(p process) bool { return threadsAwake(p.pid, 0) })
}

func threadsAwake(pid, except int) bool {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return false
	}
	for _, t := range tasks {
		tid, err := strconv.Atoi(t.Name())
		if err != nil || tid == except {
			continue
		}
		if p, ok := stat(fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid)); ok && (p.state == 'R' || p.state == 'D') {
			return true
		}
	}
	return false
}

// process has fields of a process in proc_pid_stat(5).
type process struct {
	pid, ppid int
	state     byte
	name      string
}

func stat(file string) (p process, ok bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return p, false
	}
	// PID (NAME) STATE PPID ...; the name may hold anything.
	from, to := strings.IndexByte(string(b), '('), strings.LastIndexByte(string(b), ')')
	if from < 0 || to < from {
		return p, false
	}
	f := strings.Fields(string(b[to+1:]))
	if len(f) < 2 || len(f[0]) != 1 {
		return p, false
	}
	p.pid, _ = strconv.Atoi(strings.TrimSpace(string(b[:from])))
	p.ppid, _ = strconv.Atoi(f[1])
	p.state, p.name = f[0][0], strconv.QuoteToASCII(string(b[from+1:to]))
	return p, true
}

// descendants are the processes that this one has started, and those that they
// have, as far as their parents live.
func descendants() (found []process) {
	if tasks, err := filepath.Glob("/proc/self/task/*/children"); err == nil && len(tasks) > 0 {
		none := true
		for _, t := range tasks {
			b, err := os.ReadFile(t)
			none = none && (err != nil || len(b) == 0)
		}
		if none {
			return nil
		}
	}
	all, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]process{}
	for _, e := range all {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		if p, ok := stat("/proc/" + e.Name() + "/stat"); ok {
			children[p.ppid] = append(children[p.ppid], p)
		}
	}
	var visit func(pid int)
	visit = func(pid int) {
		for _, c := range children[pid] {
			found = append(found, c)
			visit(c.pid)
		}
	}
	visit(os.Getpid())
	return found
}
