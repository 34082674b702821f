package am

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/segment"
)

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]func(){
		"traffic": trafficRank,
		"tables":  tablesRank,
		"stuck":   stuckRank,
		"killed":  killedRank,
	})
}

// tinyJob gives a job of processes the mailboxes of tiny.
func tinyJob(c *launch.Config) {
	c.Memory = func(n int, _ uint64) (launch.Memory, error) { return shm.LaunchMemory(n, tiny) }
}

func joinRank() conduits.Endpoint {
	ep, err := testjob.Join(conduits.Config{})
	testjob.Check(err)
	return ep
}

// trafficRank plays its part of a script that all ranks draw from one seed.
func trafficRank() {
	seed, err := strconv.ParseUint(os.Args[1], 10, 64)
	testjob.Check(err)
	ep := joinRank()
	medium := ep.Limits().MaxMedium
	s, used := newScript(seeded(seed), ep.Size(), 3, 300, medium)
	got, want := newMark(), s.expect(medium)[ep.Rank()]
	size := (used[ep.Rank()]/segment.PageSize + 1) * segment.PageSize
	e, err := Attach(ep, Config{Handlers: got.handlers(medium), SegmentSize: uint64(size)})
	testjob.Check(err)
	testjob.Check(s.play(e, got, want))
	testjob.Check(errors.Join(got.wrong, compare(got.requests, want.requests), compare(got.replies, want.replies)))
	fmt.Println("done")
	testjob.Check(ep.Close())
}

// TestTrafficOfProcesses is TestTraffic with ranks that are processes.
func TestTrafficOfProcesses(t *testing.T) {
	for seed := range 6 {
		n := []int{2, 3, 4, 2, 8, 1}[seed]
		r := testjob.RunConfig(t, n, "traffic", testjob.Config{Args: []string{strconv.Itoa(seed)}, Launch: tinyJob}).Want(t, 0)
		for i, out := range r.Stdout {
			if out != "done\n" {
				t.Errorf("seed %d: rank %d wrote %q", seed, i, out)
			}
		}
	}
	testjob.AssertNoLeftovers(t)
}

// tablesRank registers a handler whose name differs on rank 1.
func tablesRank() {
	name := "f"
	if testjob.Rank() == 1 {
		name = "g"
	}
	_, err := Attach(joinRank(), Config{Handlers: []Entry{{200, name, nop, 2, 0}}})
	fmt.Println(err)
	if err == nil {
		testjob.Fatal("attached")
	}
	// End with status 0, so that every rank can say what it has to say.
	os.Exit(0)
}

func TestTablesOfProcesses(t *testing.T) {
	r := testjob.Run(t, 5, "tables")
	said := 0
	for i, out := range r.Stdout {
		if strings.Contains(out, `rank 1 has handler 200 "g"`) {
			said++
		} else if r.Ranks[i].Signal != syscall.SIGTERM && !strings.Contains(out, "failed: exited with status 0") {
			// Neither ended nor told of the end of one that had said it.
			t.Errorf("rank %d says %q", i, out)
		}
	}
	if said == 0 || r.Status != 1 {
		t.Errorf("%d ranks say it, and the status is %d", said, r.Status)
	}
}

// stuckRank: rank 1 stops polling, rank 0 floods it until it sleeps for credit,
// says for what, and ends the job.
func stuckRank() {
	ep := joinRank()
	e, err := Attach(ep, Config{Handlers: []Entry{{200, "f", nop, 0, 0}}})
	testjob.Check(err)
	if e.Rank() == 1 {
		_ = syscall.Pause()
	}
	go func() {
		for {
			for _, b := range ep.Waiting() {
				if s := b.Blocked(); s != "" {
					fmt.Println(s)
					os.Exit(9)
				}
			}
			runtime.Gosched()
		}
	}()
	for {
		testjob.Check(e.RequestShort(1, 200))
	}
}

func TestStuckRankIsNamed(t *testing.T) {
	r := testjob.Run(t, 2, "stuck").Want(t, 9)
	if want := "request waits for credit of rank 1"; !strings.Contains(r.Stdout[0], want) {
		t.Errorf("rank 0 says %q, want %q", r.Stdout[0], want)
	}
}

// killedRank: rank 2 is killed in the middle of a flood of all to all.
func killedRank() {
	ep := joinRank()
	f := &flood{medium: ep.Limits().MaxMedium}
	e, err := Attach(ep, Config{SegmentSize: f.segment(ep.Size()), Handlers: f.handlers(ep.Rank())})
	testjob.Check(err)
	for i := 0; ; i++ {
		for dst := range e.Size() {
			testjob.Check(f.send(e, 0, dst, i))
		}
		if i == 200 && e.Rank() == 2 {
			testjob.Check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
		}
	}
}

func TestKilledInFlood(t *testing.T) {
	for range 5 {
		r := testjob.RunConfig(t, 4, "killed", testjob.Config{Launch: tinyJob}).Want(t, 137)
		if r.Failed != 2 {
			t.Errorf("rank %d is named, want 2", r.Failed)
		}
	}
	testjob.AssertNoLeftovers(t)
}
