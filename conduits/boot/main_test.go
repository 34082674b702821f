package boot

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/sys/place"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

func TestMain(m *testing.M) {
	alone := layered(func(r *rank) error { fmt.Println("rank", r.Rank(), "of", r.Size()); return nil })
	testjob.Main(m, map[string]func(){
		"alone":            func() { Main(Config{}, alone) },
		"all":              func() { Main(Config{}, layered(around)) },
		"fail":             func() { Main(Config{}, layered(failAsTold)) },
		"kill":             func() { Main(Config{}, layered(killed)) },
		"nests":            func() { Main(Config{}, layered(nests)) },
		"quit":             func() { Main(Config{}, layered(quitWhileWaiting)) },
		"silent":           func() { Main(Config{}, layered(func(s *rank) error { fmt.Println("ready"); return s.forever() })) },
		"twice":            runTwice,
		"where":            func() { Main(Config{}, layered(threads)) },
		"canceled":         func() { canceled(false) },
		"canceled-before":  func() { canceled(true) },
		"canceled-joining": canceledJoining,
		"status42": func() {
			signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM) // or rank 2 could die of one that comes too soon
			Main(Config{}, layered(status42))
		},
	})
}

var errTest = errors.New("this is the cause")

// conduitsHere are those that run the ranks of tests in this process.
var conduitsHere = []string{"shm", "udp", "hybrid", "sim"}

// rank is a rank with active messages and the barrier, as a program that a compiler has
// made has them.
type rank struct {
	conduits.Endpoint
	e    *am.Messenger
	b    *barrier.Barrier
	came int // messages of around; its handler runs while the rank waits
}

// layered is a function for Run that calls fn when all ranks have their layers.
func layered(fn func(r *rank) error) func(ep conduits.Endpoint) error {
	return func(ep conduits.Endpoint) error {
		r := &rank{Endpoint: ep, b: barrier.New()}
		var err error
		r.e, err = am.Attach(ep, am.Config{Runtime: r.b.Handlers(), User: r, Handlers: []am.Entry{
			{Index: am.FirstClient, Name: "test.around", Fn: func(t *am.Token, _ []uint32, _ []byte) { t.User().(*rank).came++ }},
		}})
		if err == nil {
			err = r.b.Bind(r.e)
		}
		if err == nil {
			err = r.barrier()
		}
		if err != nil {
			return err
		}
		return fn(r)
	}
}

func (r *rank) barrier() error { return r.b.Barrier(0, barrier.Anonymous) }

// forever waits until the job fails.
func (r *rank) forever() error { return r.e.Wait(waiting{}, func() bool { return false }) }

type waiting struct{}

func (waiting) Blocked() string { return "what never comes" }

// around sends a message to the next rank and waits for that of the one before.
func around(r *rank) error {
	if err := r.e.RequestShort((r.Rank()+1)%r.Size(), am.FirstClient); err != nil {
		return err
	}
	if err := r.e.Wait(waiting{}, func() bool { return r.came == 1 }); err != nil {
		return err
	}
	return r.barrier()
}

// failAsTold fails on rank 1 as the first argument says; the others wait for it.
func failAsTold(r *rank) error {
	if r.Rank() == 1 {
		switch os.Args[1] {
		case "error":
			return errTest
		case "panic":
			panic("out of luck")
		case "goexit":
			runtime.Goexit()
		case "exit":
			os.Exit(42)
		case "status":
			return r.e.Exit(7)
		case "kill":
			return killed(r)
		}
	}
	return r.barrier()
}

// killed has rank 1 killed while the others wait for it.
func killed(r *rank) error {
	if r.Rank() == 1 {
		return syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	}
	return r.forever()
}

// status42 has rank 1 fail with status 42, and on udp not end, rank 2 compute and rank 0 wait.
func status42(r *rank) error {
	switch r.Rank() {
	case 1:
		err := errs.WithStatus(errors.New("no more ink"), 42)
		if r.Conduit() != "udp" {
			return err
		}
		r.Fail(err)
		select {}
	case 2:
		select {}
	}
	return r.forever()
}

// threads prints where the rank's threads run, and what it knows of that.
func threads(r *rank) error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	sets := map[string]bool{}
	for _, th := range threads {
		tid, _ := strconv.Atoi(th.Name())
		if cpus, err := sys.AffinityOf(tid); err == nil {
			sets[place.List(cpus)] = true
		}
	}
	fmt.Println("threads on", slices.Sorted(maps.Keys(sets)), "at once", runtime.GOMAXPROCS(0), "alone", conc.HaveProcessors(r.Size()))
	return r.barrier()
}

// waits has the reasons of the goroutines of ep's rank that wait.
func waits(ep conduits.Endpoint) string {
	var all []string
	for _, b := range ep.Waiting() {
		all = append(all, b.Blocked())
	}
	return strings.Join(all, "; ")
}

// quitWhileWaiting sends SIGQUIT to the process of rank 0 when that waits in a barrier.
func quitWhileWaiting(r *rank) error {
	if r.Rank() == 0 {
		go func() {
			for !strings.Contains(waits(r), "barrier phase") {
				runtime.Gosched()
			}
			syscall.Kill(os.Getpid(), syscall.SIGQUIT)
		}()
		return r.barrier()
	}
	return r.forever()
}

// nests is around, and has each rank run a program of another job.
func nests(r *rank) error {
	if err := around(r); err != nil {
		return err
	}
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "ARGONTEST_JOB=alone", "ARGON_RANKS=1")
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		return err
	}
	return r.barrier()
}

// wantErr checks that err is a kind, and has parts in its text.
func wantErr(t *testing.T, err, kind error, parts ...string) {
	t.Helper()
	for _, p := range append(parts, "") {
		if !errors.Is(err, kind) || !strings.Contains(err.Error(), p) {
			t.Errorf("error %v, want %v with %q", err, kind, p)
		}
	}
}
