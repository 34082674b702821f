package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// TestProbe: a probe finds the job's service and leaves no trace; another
// server is not taken for it.
func TestProbe(t *testing.T) {
	var l log
	j := serve(t, ServerConfig{Size: 1, Logf: l.printf})
	for range 3 {
		if err := ask(within(t), j.addr, j.key); err != nil {
			t.Fatal(err)
		}
	}
	if n := j.Strangers(); n != 0 || l.String() != "" {
		t.Errorf("%d strangers, and %q is logged", n, l.String())
	}
	if err := ask(within(t), j.addr, jobkey.New()); err == nil || !strings.Contains(err.Error(), errOtherKey.Error()) {
		t.Errorf("with another key: %v", err)
	}
	j.all()

	// A host that takes connections and says nothing.
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		c, err := mute.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.ReadFull(c, make([]byte, 1)) // the beginning of its handshake
		cancel()
		_, _ = io.Copy(io.Discard, c)
	}()
	if err := ask(ctx, mute.Addr().String(), j.key); !errors.Is(err, context.Canceled) {
		t.Errorf("at somebody who says nothing: %v", err)
	}
	gone := mute.Addr().String()
	mute.Close()
	if err := ask(within(t), gone, j.key); err == nil {
		t.Error("nobody is there, and no error")
	}
}

// others reports whether n more ranks of other jobs have come.
func (j *job) others(n uint64) func() bool {
	count := func() uint64 {
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.Server.others
	}
	was := count()
	return func() bool { return count() >= was+n }
}

// TestOtherJob: a rank that an earlier job under the same key has left behind does
// not disturb the next one, whichever of its ranks are there already, and a rank
// that comes before the service of its own job does waits for it.
func TestOtherJob(t *testing.T) {
	var l log
	j := serve(t, ServerConfig{Size: 2, Job: "new", Logf: l.printf})
	hello := func(rank int, job string) Hello {
		h := j.hello(rank)
		h.Job = job
		return h
	}
	stray := func() {
		t.Helper()
		ctx, cancel := context.WithCancel(within(t))
		defer cancel()
		go func() { // when it comes again it knows why
			defer cancel()
			j.eventually("came twice", j.others(2))
		}()
		h := hello(1, "old")
		h.Agree = "of another version"
		_, err := j.join(ctx, h)
		if !errors.Is(err, errs.ErrNotReady) || !strings.Contains(err.Error(), `"old"`) || !strings.Contains(err.Error(), `"new"`) {
			t.Errorf("the stray: %v", err)
		}
	}
	stray()
	var wg sync.WaitGroup
	m := make([]*member, 2)
	for r := range m {
		name := []string{"new", ""}[r] // without a name it fits, too
		wg.Go(func() {
			var err error
			if m[r], err = j.join(within(t), hello(r, name)); err != nil {
				t.Error(err)
			}
		})
		if r == 0 {
			j.eventually("joined", func() bool { return j.State(0) == Joined })
			stray()
		}
	}
	wg.Wait()
	stray()
	if _, _, cause, failed := j.Failure(); failed {
		t.Error(cause)
	}
	if !strings.Contains(l.String(), `sent rank 1 at 127.0.0.1:`) {
		t.Errorf("the log: %s", l.String())
	}
	// Also when the old service has failed, and not ended yet.
	j.Fail(0, 1, "test")
	stray()
}

// TestJobNames: the name of a job is cut to what a Hello takes, and jobs of different
// names do not meet.
func TestJobNames(t *testing.T) {
	long := map[string]string{
		jobenv.Rendezvous: "a:1", jobenv.JobKey: jobkey.New().Reveal(), jobenv.JobID: strings.Repeat("x", 300),
	}
	if s, err := FromEnv(func(k string) string { return long[k] }); err != nil || s.Job != "argon "+strings.Repeat("x", MaxJob-6) {
		t.Errorf("a long name: %q, %v", s.Job, err)
	}
	key, sent := jobkey.New(), make(chan struct{}, 9)
	logf := func(format string, args ...any) { sent <- struct{}{} }
	s := Setup{Server: fmt.Sprintf("127.0.0.1:%d", testmain.Port(t)), Key: key, Job: "a", Serve: true, Patience: limit, Linger: limit, Logf: logf}
	c, err := s.Join(within(t), Hello{Size: 1, Host: "h", Port: 1}, Events{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s.Job, s.Serve = "b", false
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	go func() {
		defer cancel()
		<-sent // by the second line
		<-sent
	}()
	if _, err := s.Join(ctx, Hello{Size: 1, Host: "h", Port: 1}, Events{}); !errors.Is(err, errs.ErrNotReady) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("a rank of job b: %v", err)
	}
}

// TestPersist: an address to which no host answers is asked again while there is time, and
// one that answers otherwise is not.
func TestPersist(t *testing.T) {
	away := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}
	for _, c := range []struct {
		name  string
		says  []error
		calls int
	}{
		{"answers later", []error{away, away, nil}, 3},
		{"refuses later", []error{away, syscall.ECONNREFUSED}, 2},
		{"no route", []error{syscall.ENETUNREACH}, 1},
	} {
		calls := 0
		err := persist(t.Context(), func() error { calls++; return c.says[calls-1] })
		if want := c.says[len(c.says)-1]; err != want || calls != c.calls {
			t.Errorf("%s: %v after %d calls, not %v after %d", c.name, err, calls, want, c.calls)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := persist(over, func() error { return away }); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("without time: %v", err)
	}
}
