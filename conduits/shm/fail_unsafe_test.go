package shm

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/post"
)

// awaitArmed returns when n goroutines of e have announced that they sleep.
func awaitArmed(e *Endpoint, n int) {
	for len(e.Waiting()) < n {
		runtime.Gosched()
	}
}

// peerFailed checks that err names the rank that failed, and why.
func peerFailed(err error, rank int, why string) error {
	var pe *conduits.PeerError
	switch {
	case !errors.As(err, &pe) || !errors.Is(err, conduits.ErrPeer):
		return fmt.Errorf("error is %v, want a PeerError", err)
	case pe.Rank != rank || !strings.Contains(pe.Error(), why):
		return fmt.Errorf("error is %v, want rank %d and %q", pe, rank, why)
	}
	return nil
}

// TestFailWakesAll: whatever ranks wait for, a failure ends it and names the
// rank that failed.
func TestFailWakesAll(t *testing.T) {
	const n = 4
	eachForm(t, func(t *testing.T, fm form) {
		eps := fm.open(t, n, conduits.Config{Credits: 4})
		attach(t, eps, 0, func(int, *conduits.Message) {})
		// Rank 0 waits for a message, rank 1 for credit of rank 3, rank 2 by two
		// goroutines for what never happens.
		done := make(chan error)
		wait := func(r int, cond func() bool) {
			go func() { done <- conduits.Wait(eps[r], why("test"), cond) }()
		}
		wait(0, func() bool { return false })
		wait(1, func() bool { return !send(eps[1], 3, conduits.Request) && eps[1].Err() != nil })
		wait(2, func() bool { return false })
		wait(2, func() bool { return false })
		for r, k := range []int{1, 1, 2} {
			awaitArmed(eps[r], k)
		}
		eps[3].Fail(errors.New("the disk is full"))
		for range 4 {
			if err := <-done; err != nil {
				if err := peerFailed(err, 3, "the disk is full"); err != nil {
					t.Error(err)
				}
			}
		}
		for r, e := range eps {
			if err := peerFailed(e.Err(), 3, "the disk is full"); err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
			if err := e.Err(); err != e.Err() {
				t.Errorf("rank %d: the error is not the same twice", r)
			}
		}
		eps[1].Fail(errors.New("another reason"))
		if err := peerFailed(eps[0].Err(), 3, "the disk is full"); err != nil {
			t.Errorf("after a second failure: %v", err)
		}
		if _, st := eps[0].Reserve(1, conduits.Request, 0, 0); st == conduits.NoCredit {
			t.Error("no credit after a failure")
		}
	})
}

// TestFailWhileAttaching: ranks that wait in Attach are told, and late ones too.
func TestFailWhileAttaching(t *testing.T) {
	eachForm(t, func(t *testing.T, fm form) {
		eps := fm.open(t, 3, conduits.Config{})
		done := make(chan error)
		go func() { done <- eps[0].Attach(conduits.AttachConfig{Receiver: &sink{}}) }()
		awaitArmed(eps[0], 1)
		if b := eps[0].Waiting()[0].Blocked(); b != "attach: waiting for ranks [1 2]" {
			t.Errorf("rank 0 is %q", b)
		}
		eps[2].Fail(errors.New("no memory"))
		if err := peerFailed(<-done, 2, "no memory"); err != nil {
			t.Error(err)
		}
		if err := peerFailed(eps[1].Attach(conduits.AttachConfig{Receiver: &sink{}}), 2, "no memory"); err != nil {
			t.Error(err)
		}
	})
}

func TestAttachSaysWhoIsLate(t *testing.T) {
	eps := forms[0].open(t, 20, conduits.Config{})
	go eps[3].Attach(conduits.AttachConfig{Receiver: &sink{}})
	awaitArmed(eps[3], 1)
	if b, want := eps[3].Waiting()[0].Blocked(), "attach: waiting for ranks [0 1 2 4 5 6 7 8] and 11 more"; b != want {
		t.Errorf("rank 3 is %q, want %q", b, want)
	}
	eps[0].Fail(errors.New("over"))
}

// TestCloseBeforeAttach: the others do not wait for ever.
func TestCloseBeforeAttach(t *testing.T) {
	eachForm(t, func(t *testing.T, fm form) {
		eps := fm.open(t, 2, conduits.Config{})
		done := make(chan error)
		go func() { done <- eps[0].Attach(conduits.AttachConfig{Receiver: &sink{}}) }()
		awaitArmed(eps[0], 1)
		if err := eps[1].Close(); err != nil {
			t.Error(err)
		}
		if err := peerFailed(<-done, 1, "left the job before it attached"); err != nil {
			t.Error(err)
		}
	})
}

// TestCloseEarly: a sender that waits for credit of a rank that has left is told, and the
// rank itself can do nothing more.
func TestCloseEarly(t *testing.T) {
	eachForm(t, func(t *testing.T, fm form) {
		eps := fm.open(t, 3, conduits.Config{Credits: 4, MaxMedium: 512})
		attach(t, eps, page, func(int, *conduits.Message) {})
		send(eps[1], 2, conduits.Request)
		done := make(chan conduits.Status)
		go func() {
			var st conduits.Status
			for st == conduits.Ready {
				conduits.Wait(eps[0], why("test"), func() bool {
					var s conduits.Slot
					if s, st = eps[0].Reserve(1, conduits.Request, 1, 500); st == conduits.Ready {
						eps[0].Commit(1, conduits.Request, s, 1, 500)
					}
					return st != conduits.NoCredit
				})
			}
			done <- st
		}()
		awaitArmed(eps[0], 1)
		if err := eps[1].Close(); err != nil {
			t.Fatal(err)
		}
		if st := <-done; st != conduits.Dead {
			t.Errorf("status %v, want Dead", st)
		}
		if err := eps[0].Err(); err != nil {
			t.Errorf("a rank that leaves in good order fails nobody: %v", err)
		}
		if st := conduits.RankState(*eps[0].j.c32(1, ctlState)); st != conduits.RankFinished {
			t.Errorf("it is %v, want finished", st)
		}
		e := eps[1]
		if err := e.Close(); !errors.Is(err, conduits.ErrClosed) {
			t.Errorf("second Close: %v", err)
		}
		for _, dst := range []int{0, 2} { // a ring that was in use and one that was not
			if _, st := e.Reserve(dst, conduits.Request, 1, 0); st != conduits.Dead {
				t.Errorf("Reserve after Close: %v", st)
			}
			if _, st := e.Reserve(dst, conduits.Reply, 1, 500); st != conduits.Dead {
				t.Errorf("Reserve of a payload after Close: %v", st)
			}
		}
		if _, err := post.Put(e, 0, 1<<30, make([]byte, 8), 0, 0); !errors.Is(err, conduits.ErrClosed) {
			t.Errorf("Put after Close: %v", err)
		}
		if _, err := post.Get(e, make([]byte, 8), 0, 1<<30, 0, 0); !errors.Is(err, conduits.ErrClosed) {
			t.Errorf("Get after Close: %v", err)
		}
		if _, err := post.PutWord(e, 0, 1<<30, 1, 8, 0, 0); !errors.Is(err, conduits.ErrClosed) {
			t.Errorf("PutWord after Close: %v", err)
		}
		if _, _, err := post.Atomic(e, 0, 1<<30, conduits.AtomicAdd, conduits.Uint64, 1, 0, 0); !errors.Is(err, conduits.ErrClosed) {
			t.Errorf("Atomic after Close: %v", err)
		}
		if err := conduits.Wait(e, nil, func() bool { return false }); !errors.Is(err, conduits.ErrClosed) {
			t.Errorf("Wait after Close: %v", err)
		}
		if err := e.Attach(conduits.AttachConfig{Receiver: &sink{}}); !errors.Is(err, conduits.ErrClosed) {
			t.Errorf("Attach after Close: %v", err)
		}
	})
}

// TestCloseBesideHandler: a rank leaves while another of its goroutines is in a
// handler that replies. Neither waits for the other, or gets in its way; what is
// replied later finds no room.
func TestCloseBesideHandler(t *testing.T) {
	eachForm(t, func(t *testing.T, fm form) {
		eps := fm.open(t, 2, conduits.Config{})
		e := eps[0]
		replying, closed := make(chan struct{}), make(chan struct{})
		status := make(chan conduits.Status, 2)
		attach(t, eps, page, func(_ int, m *conduits.Message) {
			reply := func() conduits.Status { return e.Send(1, conduits.Reply, 1, []uint32{1}) }
			if m.Words[0] == 0 {
				close(replying)
				for range 20 {
					reply()
				}
				<-closed
			}
			status <- reply()
		})
		send(eps[1], 0, conduits.Request, 0)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 10 {
				e.Poll()
			}
			send(eps[1], 0, conduits.Request, 1)
			e.Poll()
		}()
		<-replying
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		close(closed)
		<-done
		if st := <-status; st == conduits.NoCredit {
			t.Error("no credit for a reply of a handler during which the endpoint was closed")
		}
		if st := <-status; st != conduits.Dead {
			t.Errorf("reply after Close: %v, want Dead", st)
		}
	})
}

// TestCloseInHandler: a handler may be what has its rank leave.
func TestCloseInHandler(t *testing.T) {
	eachForm(t, func(t *testing.T, fm form) {
		eps := fm.open(t, 2, conduits.Config{})
		got := 0
		attach(t, eps, page, func(int, *conduits.Message) {
			got++
			if st := eps[0].Send(1, conduits.Reply, 1, nil); st != conduits.Ready {
				t.Errorf("reply: %v", st)
			}
			if err := eps[0].Close(); err != nil {
				t.Error(err)
			}
			want := conduits.Dead
			if !eps[0].Polling() { // goroutines cannot be told apart
				want = conduits.Ready
			}
			if st := eps[0].Send(1, conduits.Reply, 1, nil); st != want {
				t.Errorf("reply after Close: %v, want %v", st, want)
			}
		})
		send(eps[1], 0, conduits.Request)
		if eps[0].Poll(); got != 1 {
			t.Errorf("%d messages", got)
		}
	})
}

// TestLauncherFails: the launcher's word is as good as the rank's own, and the
// first counts.
func TestLauncherFails(t *testing.T) {
	m, err := CreateJob(2, conduits.Config{MaxSegment: page})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	eps := []*Endpoint{join(t, m, 0, 2), join(t, m, 1, 2)}
	for r, want := range []conduits.RankState{conduits.RankStarting, conduits.RankStarting} {
		if st := m.State(r); st != want {
			t.Errorf("rank %d is %v", r, st)
		}
	}
	attach(t, eps, 0, func(int, *conduits.Message) {})
	if m.State(0) != conduits.RankAttached || m.State(1) != conduits.RankAttached {
		t.Errorf("ranks are %v, %v", m.State(0), m.State(1))
	}
	if _, _, _, ok := m.Failure(); ok {
		t.Error("a failure before any")
	}
	done := make(chan error)
	go func() { done <- conduits.Wait(eps[0], nil, func() bool { return false }) }()
	awaitArmed(eps[0], 1)
	m.Fail(1, 137, "killed by SIGKILL")
	if err := peerFailed(<-done, 1, "killed by SIGKILL"); err != nil {
		t.Error(err)
	}
	m.Fail(0, 1, "later")
	rank, status, cause, ok := m.Failure()
	if rank != 1 || status != 137 || cause != "killed by SIGKILL" || !ok {
		t.Errorf("recorded %d, %d, %q, %v", rank, status, cause, ok)
	}
	if m.State(1) != conduits.RankFailed {
		t.Errorf("rank 1 is %v", m.State(1))
	}
}

// TestLongCause: a cause is cut, not written over what follows.
func TestLongCause(t *testing.T) {
	eps := forms[0].open(t, 2, conduits.Config{})
	eps[0].Fail(errors.New(strings.Repeat("x", 5*recMax)))
	if err := peerFailed(eps[1].Err(), 0, strings.Repeat("x", recMax)); err != nil {
		t.Error(err)
	}
	if b := *(*byte)(unsafe.Add(eps[0].j.ctl(0), ctlBytes)); b != 0 {
		t.Errorf("%#x is written behind the record", b)
	}
}

// TestDeathWhileFailing: a rank that dies after it has written its record, and
// before it has named it, leaves the failure to the launcher.
func TestDeathWhileFailing(t *testing.T) {
	m, err := CreateJob(2, conduits.Config{MaxSegment: page})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	e := join(t, m, 0, 2)
	m.j.fail(1, 1, 1, "half a failure")
	atomic.StoreUint64(m.j.failedWord(), 0)
	if e.Err() != nil {
		t.Fatal("half a failure is none")
	}
	m.Fail(1, 139, "killed by SIGSEGV")
	if err := peerFailed(e.Err(), 1, "killed by SIGSEGV"); err != nil {
		t.Error(err)
	}
}
