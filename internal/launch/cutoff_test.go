package launch

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/rendezvous"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// The test binary is the deputy that a test starts, and that one's guard.
func init() {
	if status, ok := Helper(); ok {
		os.Exit(status)
	}
}

// A puppet is a deputy whose launcher is the test.
type puppet struct {
	cmd    *exec.Cmd
	link   *link
	server *rendezvous.Server
	ranks  []int // process ids
	stderr bytes.Buffer
	mute   atomic.Bool   // the launcher gives no more signs of life
	echoes atomic.Int32  // signs of life of the deputy
	ended  chan struct{} // closed at the end of its output
}

// begin has a deputy run two ranks that sleep, with a dead time of a second.
func begin(t *testing.T) *puppet {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	key := jobkey.New()
	p := &puppet{ended: make(chan struct{})}
	if p.server, err = rendezvous.Serve(l, rendezvous.ServerConfig{Key: key, Size: 2, Patience: time.Hour}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.server.Close() })
	p.cmd = exec.Command("/proc/self/exe")
	p.cmd.Env = append(os.Environ(), EnvDeputy+"=1")
	p.cmd.Stderr = &p.stderr
	p.cmd.WaitDelay = time.Minute
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	})
	p.link = newLink(in)
	t.Cleanup(p.link.close)
	r := bufio.NewReader(out)
	expect := func(kind frameKind) {
		t.Helper()
		for {
			f, err := readFrame(r)
			if err != nil {
				t.Fatalf("waiting for %q: %v", kind, err)
			}
			switch f.kind {
			case kind:
				return
			case frameStarted:
				p.ranks = append(p.ranks, f.num(1))
			case frameAlive:
			default:
				t.Fatalf("%q %v %q instead of %q", f.kind, f.nums, f.texts, kind)
			}
		}
	}
	expect(frameHello)
	task := task{
		ID: fmt.Sprintf("%d.cutoff.%s", os.Getpid(), t.Name()), Host: "0.here", Conduit: "udp", Program: "sh", Path: "/bin/sh", Dir: "/", Key: key.Reveal(),
		Args: []string{"-c", "sleep 10000"}, Env: []string{"ARGON_DEADTIME=1s"}, Servers: []string{l.Addr().String()}, Size: 2, Count: 2,
	}
	p.link.send(frameJob, nil, task.encode())
	expect(frameReady)
	p.link.send(frameGo, nil)
	expect(frameRunning)
	go func() {
		defer close(p.ended)
		for {
			f, err := readFrame(r)
			if err != nil {
				_, _ = io.Copy(io.Discard, r)
				return
			}
			if f.kind == frameAlive {
				p.echoes.Add(1)
			}
		}
	}()
	go func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-p.ended:
				return
			case <-tick.C:
				if !p.mute.Load() {
					p.link.send(frameAlive, nil)
				}
			}
		}
	}()
	return p
}

// want waits for the deputy's end, and checks what it says and that its ranks are
// gone.
func (p *puppet) want(t *testing.T, says string) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(2 * time.Minute): // or 5 minutes of silence end it
		t.Error("the deputy goes on")
		_ = p.cmd.Process.Kill()
	}
	_ = p.cmd.Wait()
	if s := p.stderr.String(); p.cmd.ProcessState.ExitCode() != jobenv.StatusFailed || strings.Count(s, "\n") != 1 || !strings.Contains(s, says) {
		t.Errorf("%v, and it has said %q, not %q", p.cmd.ProcessState, s, says)
	}
	for _, pid := range p.ranks {
		if q, ok := readProcess(pid); ok && q.state != 'Z' {
			t.Errorf("rank's process %d is %s", pid, q.describe())
		}
	}
}

// TestCutOff has hosts lose the launcher, the rendezvous and ranks, without a word
// from the launcher: the deputy ends its ranks.
func TestCutOff(t *testing.T) {
	testmain.Long(t)
	for _, c := range []struct {
		name, says string
		happens    func(p *puppet)
	}{
		{"silence", "no sign of life from the launcher for 3s (ARGON_DEADTIME)", func(p *puppet) { p.mute.Store(true) }},
		{"service", "lost the rendezvous at 127.0.0.1:", func(p *puppet) { p.server.Close() }},
		{"rank", "rank 1 killed by SIGKILL, and the launcher does nothing about it", func(p *puppet) { _ = syscall.Kill(p.ranks[1], syscall.SIGKILL) }},
		{"failure", "rank 0 failed: out of ink", func(p *puppet) { p.server.Fail(0, 1, "out of ink") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := begin(t)
			c.happens(p)
			p.want(t, c.says)
		})
	}
}

// TestLauncherDecides has a launcher that has heard of a rank's end, and has asked
// the others to end, give them time: the deputy leaves them alone.
func TestLauncherDecides(t *testing.T) {
	testmain.Long(t)
	t.Parallel()
	p := begin(t)
	_ = syscall.Kill(p.ranks[1], syscall.SIGKILL)
	p.server.Fail(1, 137, "killed by SIGKILL")
	p.link.send(frameSignal, []int64{int64(syscall.SIGTERM), 0})
	before := p.echoes.Load()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end) || p.echoes.Load() < before+20; { // the dead time is 1 s
		select {
		case <-p.ended:
			_ = p.cmd.Wait() // until then its standard error may still come
			t.Fatalf("the deputy has ended: %s", &p.stderr)
		case <-time.After(50 * time.Millisecond):
		}
	}
	p.link.send(frameEnd, nil)
	<-p.ended
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, &p.stderr)
	}
}
