package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
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
)

const pulseTime = 50 * time.Millisecond

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
		case besideLoop, besideNice, besidePulse:
		default:
			return nil, fmt.Errorf("-beside %s: known: %s, %s, %s, %s, and loop*2 and so on for several", t, besideNothing, besideLoop, besideNice, besidePulse)
		}
		if slices.ContainsFunc(l, func(o beside) bool { return o.text == t }) {
			return nil, fmt.Errorf("-beside %s: it is there twice", t)
		}
		l = append(l, b)
	}
	return l, nil
}

// with runs f beside b's processes. They start before it and are killed after it, and
// the kernel ends them if this process dies. One that has ended earlier is an error: the
// figures are not of rows beside it then.
func (b beside) with(f func() error) (err error) {
	if b.count == 0 {
		return f()
	}
	var children []*exec.Cmd
	started, done := make(chan error), make(chan struct{})
	go func() {
		// PR_SET_PDEATHSIG goes by the thread that has started the child, and affinity is
		// a thread's: this one ends with the goroutine.
		runtime.LockOSThread()
		var err error
		for len(children) < b.count && err == nil {
			var c *exec.Cmd
			if c, err = b.start(); err == nil {
				children = append(children, c)
			}
		}
		started <- err
		<-done
	}()
	if err = <-started; err == nil {
		err = f()
	}
	for _, c := range children {
		_ = c.Process.Kill() // fails if it has ended, which Wait reports
		_ = c.Wait()         // an error as it is killed
		if w := c.ProcessState.Sys().(syscall.WaitStatus); err == nil && w.Signal() != syscall.SIGKILL {
			err = fmt.Errorf("-beside %s: a neighbour has ended before the rows: %v", b.text, c.ProcessState)
		}
	}
	close(done)
	return err
}

// start starts one process, which is a neighbour by the time it returns.
func (b beside) start() (*exec.Cmd, error) {
	if os.Getenv(jobenv.Rank) != "" {
		// A rank may be bound to processors of its own; a neighbour runs where the launcher may.
		if cpus, err := sys.AffinityOf(os.Getppid()); err == nil {
			_ = sys.SetAffinity(cpus) // else it runs where the rank does
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("-beside %s: %w", b.text, err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), envNeighbour+"="+b.kind)
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	ready, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("-beside %s: %w", b.text, err)
	}
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		_ = c.Process.Kill()
		return nil, fmt.Errorf("-beside %s: a neighbour has ended at its start: %w", b.text, errors.Join(err, c.Wait()))
	}
	return c, nil
}

// neighbour is the main function of a neighbour, which runs until it is killed.
func neighbour(kind string) {
	runtime.LockOSThread() // niceness is a thread's
	if kind == besideNice {
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 10); err != nil {
			fmt.Fprintf(os.Stderr, "gasbench: nice 10: %v\n", err)
			os.Exit(1)
		}
	}
	_, _ = os.Stdout.WriteString("\n") // fails if gasbench has died, and so will this process
	for begun := time.Now(); ; {
		if kind == besidePulse && time.Since(begun) > pulseTime {
			time.Sleep(pulseTime)
			begun = time.Now()
		}
	}
}
