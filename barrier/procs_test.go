package barrier

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/segment"
)

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]func(){"phases": phases, "die": die})
}

// joinAsProcess makes the calling process a rank whose barrier is forced to the
// algorithm that the first argument numbers.
func joinAsProcess() (*am.Messenger, *Barrier) {
	how, err := strconv.Atoi(os.Args[1])
	testjob.Check(err)
	ep, err := testjob.Join(conduits.Config{})
	testjob.Check(err)
	b := NewWith(Config{Force: Algorithm(how)})
	e, err := am.Attach(ep, am.Config{Runtime: b.Handlers(), SegmentSize: segment.PageSize})
	testjob.Check(err)
	testjob.Check(b.Bind(e))
	return e, b
}

// phases puts a word to every rank before each barrier and looks at what all
// ranks have put after it. In some phases one rank names another barrier.
func phases() {
	e, b := joinAsProcess()
	ep, rank, size := e.Conduit(), e.Rank(), e.Size()
	cell := func(phase, rank int) segment.NLA {
		return segment.AttachBase + segment.NLA(8*(phase&1*size+rank))
	}
	const want = conduits.SourceDone | conduits.RemoteDone
	for p := 1; p <= 500; p++ {
		for r := range size {
			if ev, err := post.PutWord(ep, r, cell(p, rank), uint64(p), 8, want, 0); err != nil || ev != want {
				testjob.Fatal("put: %v, %v", ev, err)
			}
		}
		id, odd := uint32(p), p%10 == 0
		if odd && p/10%size == rank {
			id++
		}
		if err := b.Barrier(id, 0); errors.Is(err, errs.ErrBarrierMismatch) != odd || !odd && err != nil {
			testjob.Fatal("phase %d: %v", p, err)
		}
		var buf [8]byte
		for r := range size {
			if ev, err := post.Get(ep, buf[:], rank, cell(p, r), want, 0); err != nil || ev != want {
				testjob.Fatal("get: %v, %v", ev, err)
			}
			if buf[0] != byte(p) || buf[1] != byte(p>>8) {
				testjob.Fatal("passed phase %d, but rank %d has put % x", p, r, buf)
			}
		}
	}
	testjob.Check(ep.Close())
}

// die has one rank exit in the middle of the others' wait.
func die() {
	signal.Ignore(syscall.SIGTERM) // which the launcher sends to the ranks that are left
	e, b := joinAsProcess()
	err := b.Barrier(0, Anonymous)
	if e.Rank() == 1 {
		testjob.Check(err)
		os.Exit(3)
	}
	// A rank may hear of the death while it is still on its way out of the first
	// barrier, in which the others then no longer help it.
	if err == nil {
		err = b.Barrier(0, Anonymous)
	}
	fmt.Println(err)
	testjob.Check(err)
}

func TestProcesses(t *testing.T) {
	forAll(t, []int{2, 3, 10}, func(t *testing.T, n int, how Algorithm) {
		testjob.RunConfig(t, n, "phases", testjob.Config{Args: []string{strconv.Itoa(int(how))}}).Want(t, 0)
	})
}

func TestProcessDiesDuringBarrier(t *testing.T) {
	forAll(t, []int{2, 3, 10}, func(t *testing.T, n int, how Algorithm) {
		r := testjob.RunConfig(t, n, "die", testjob.Config{Args: []string{strconv.Itoa(int(how))}}).Want(t, 3)
		for rank, out := range r.Stdout {
			if rank != 1 && !strings.HasPrefix(out, "barrier phase 2: rank 1 failed: ") &&
				!strings.HasPrefix(out, "barrier phase 1: rank 1 failed: ") {
				t.Errorf("rank %d says %q", rank, out)
			}
		}
	})
}
