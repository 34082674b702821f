package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/sys"
)

// envNeighbour makes a process of gasbench a neighbour of that kind.
const envNeighbour = "GASBENCH_NEIGHBOUR"

// The kinds of neighbours.
const (
	besideNothing = "nothing"
	besideLoop    = "loop"  // a loop that never ends
	besideNice    = "nice"  // the same at nice 10
	besidePulse   = "pulse" // a loop of pulseTime, and a pause as long, in turn
	besideBuild   = "build" // go build of a package and all that it imports, again and again
	besideJob     = "job"   // a job of two ranks that measures the same
)

const (
	pulseTime = 50 * time.Millisecond
	// jobTime is -time of a neighbour: so long that it hardly starts jobs.
	jobTime = "10s"
	// builtPackage imports some two hundred packages, all of Go's own library.
	builtPackage = "net/http"
)

// maxNeighbours bounds how many of a kind run at once.
const maxNeighbours = 1024

// beside is the load on the machine while a set of rows is measured.
type beside struct {
	text, kind string
	count      int
}

// parseBeside reads the argument of -beside. Without one, nothing runs beside the rows and
// they do not name it.
func parseBeside(text string) ([]beside, error) {
	if text == "" {
		return []beside{{}}, nil
	}
	var l []beside
	for _, t := range strings.Split(text, ",") {
		b := beside{text: t, count: 1}
		kind, times, many := strings.Cut(t, "*")
		b.kind = kind
		if many {
			var err error
			if b.count, err = strconv.Atoi(times); err != nil || b.count < 1 || b.count > maxNeighbours {
				return nil, fmt.Errorf("-beside %s: %q is not a number from 1 to %d", t, times, maxNeighbours)
			}
		}
		switch kind {
		case besideNothing:
			b.count = 0
		case besideLoop, besideNice, besidePulse, besideBuild, besideJob:
		default:
			return nil, fmt.Errorf("-beside %s: known: %s, %s, %s, %s, %s, %s, and loop*2 and so on for several", t, besideNothing, besideLoop, besideNice, besidePulse, besideBuild, besideJob)
		}
		if slices.ContainsFunc(l, func(o beside) bool { return o.text == t }) {
			return nil, fmt.Errorf("-beside %s: it is there twice", t)
		}
		l = append(l, b)
	}
	return l, nil
}

// lacks reports why b cannot be had here; "" if it can.
func (b beside) lacks() string {
	if b.kind == besideBuild {
		if _, err := exec.LookPath("go"); err != nil {
			return err.Error()
		}
	}
	return ""
}

// with runs f beside b's processes, of which jobs have the arguments args. They start before it, and end when
// their standard input does, after it or with this process. One that has ended earlier is an error: the
// figures are not of rows beside it then.
func (b beside) with(args []string, f func() error) (err error) {
	var all []neighbour
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // affinity is a thread's: this one ends with the goroutine
		var err error
		for len(all) < b.count && err == nil {
			var n neighbour
			if n, err = b.start(args); err == nil {
				all = append(all, n)
			}
		}
		started <- err
	}()
	if err = <-started; err == nil {
		err = f()
	}
	for _, n := range all {
		_ = n.input.Close()
		if failed := n.cmd.Wait(); err == nil && failed != nil {
			err = fmt.Errorf("-beside %s: a neighbour has ended before the rows: %w", b.text, failed)
		}
	}
	return err
}

// A neighbour is a process that runs beside rows until its input is closed.
type neighbour struct {
	cmd   *exec.Cmd
	input io.Closer
}

// start starts one process, which is a neighbour by the time it returns.
func (b beside) start(args []string) (n neighbour, err error) {
	if os.Getenv(jobenv.Rank) != "" {
		// A rank may be bound to processors of its own; a neighbour runs where the launcher may.
		if cpus, err := sys.AffinityOf(os.Getppid()); err == nil {
			_ = sys.SetAffinity(cpus) // else it runs where the rank does
		}
	}
	self, err := os.Executable()
	if err != nil {
		return n, fmt.Errorf("-beside %s: %w", b.text, err)
	}
	c := exec.Command(self, args...)
	c.Env = append(os.Environ(), envNeighbour+"="+b.kind)
	c.Stderr = os.Stderr
	ready, err1 := c.StdoutPipe()
	input, err2 := c.StdinPipe()
	if err = errors.Join(err1, err2); err == nil {
		err = c.Start()
	}
	if err != nil {
		return n, fmt.Errorf("-beside %s: %w", b.text, err)
	}
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		_ = c.Process.Kill()
		return n, fmt.Errorf("-beside %s: a neighbour has ended at its start: %w", b.text, errors.Join(err, c.Wait()))
	}
	return neighbour{c, input}, nil
}

// beNeighbour is the main function of a neighbour, which ends with its input.
func beNeighbour(kind string, args []string) {
	runtime.LockOSThread()        // niceness is a thread's, and so is what a child dies with
	_ = os.Unsetenv("GOMAXPROCS") // a bound rank's
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	ready := sync.OnceFunc(func() {
		_, _ = os.Stdout.WriteString("\n") // fails if gasbench has died, and so will this process
	})
	var err error
	switch kind {
	case besideBuild:
		err = build(ready, ended)
	case besideJob:
		err = runBeside(args, ready, ended)
	default:
		go func() {
			<-ended
			os.Exit(0)
		}()
		err = loop(kind, ready)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "gasbench: -beside %s: %v\n", kind, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// loop returns only with an error.
func loop(kind string, ready func()) error {
	if kind == besideNice {
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 10); err != nil {
			return fmt.Errorf("nice 10: %w", err)
		}
	}
	ready()
	for begun := time.Now(); ; {
		if kind == besidePulse && time.Since(begun) > pulseTime {
			time.Sleep(pulseTime)
			begun = time.Now()
		}
	}
}

// build builds a package until it is ended, each time with an empty cache.
func build(ready func(), ended <-chan struct{}) (err error) {
	caches, err := os.MkdirTemp("", "gasbench-build-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(caches)) }()
	for i := 0; ; i++ {
		cache := filepath.Join(caches, strconv.Itoa(i))
		c := exec.Command("go", "build", builtPackage)
		c.Dir, c.Stderr = caches, os.Stderr
		c.Env = append(os.Environ(), "GOCACHE="+cache, "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0")
		// A group of its own, which has the compilers that it starts.
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			return err
		}
		ready()
		done := make(chan error)
		go func() { done <- c.Wait() }()
		select {
		case err := <-done:
			if err != nil {
				return fmt.Errorf("go build %s: %w", builtPackage, err)
			}
		case <-ended:
			_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // fails if all have ended
			<-done
			return nil
		}
		if err := os.RemoveAll(cache); err != nil {
			return err
		}
	}
}

// runBeside runs jobs with the command line args of a gasbench until it is ended.
func runBeside(args []string, ready func(), ended <-chan struct{}) error {
	jobenv.Leave()
	_ = os.Setenv(envNeighbour, "") // ranks are none
	o, err := parse(args, io.Discard)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 1)
	go func() {
		<-ended
		signals <- syscall.SIGTERM
	}()
	r := &runner{o: *o.jobs, program: program, signals: signals, stderr: os.Stderr, started: ready}
	for {
		err := r.job(o.jobs.variants[0], append([]string{"-json"}, o.jobs.args...), io.Discard)
		select {
		case <-ended:
			return nil
		default:
		}
		if err != nil {
			return err
		}
	}
}
