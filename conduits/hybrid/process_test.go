package hybrid_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/lab/faultproxy"
	"github.com/argon-go/argon/internal/lab/testprog"
	"github.com/argon-go/argon/internal/rendezvous"
	"github.com/argon-go/argon/segment"
)

// envProgram is the variable that names the program of a rank.
const envProgram = "ARGONTEST_HYBRID"

// process is a rank.
type process struct {
	cmd *exec.Cmd
	out bytes.Buffer
}

// world is a job of processes that a test has started.
type world struct {
	t     *testing.T
	ranks []*process
	mem   []*shm.JobMemory // by host, if the test plays the launcher
}

// begin starts program as a job on pretended hosts of so many ranks each. launcher
// has it make the hosts' memory. env is further KEY=VALUE.
func begin(t *testing.T, hosts []int, launcher bool, program string, env ...string) *world {
	t.Helper()
	return beginIn(t, nil, hosts, launcher, program, env...)
}

// beginIn is begin in such weather; nil is none.
func beginIn(t *testing.T, weather *faultproxy.Faults, hosts []int, launcher bool, program string, env ...string) *world {
	t.Helper()
	var host []int
	for h, k := range hosts {
		host = append(host, slices.Repeat([]int{h}, k)...)
	}
	n := len(host)
	var rewrite func(viewer, rank int, addr netip.AddrPort) netip.AddrPort
	if weather != nil {
		p, err := faultproxy.New(faultproxy.Config{Size: n, Seed: 1, Faults: *weather})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		rewrite = p.Rewrite
	}
	return beginOn(t, rewrite, host, launcher, program, env...)
}

// beginOn is begin with the hosts of ranks, numbers from 0 on, in any order. rewrite is
// the rendezvous'.
func beginOn(t *testing.T, rewrite func(viewer, rank int, addr netip.AddrPort) netip.AddrPort, host []int, launcher bool, program string, env ...string) *world {
	t.Helper()
	n := len(host)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	key := jobkey.New()
	srv, err := rendezvous.Serve(l, rendezvous.ServerConfig{Key: key, Size: n, Logf: t.Logf, Rewrite: rewrite})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		for _, p := range w.ranks {
			_ = p.cmd.Wait()
		}
		for _, m := range w.mem {
			_ = m.Close()
		}
		srv.Close()
	})
	local := make([]int, slices.Max(host)+1) // ranks by host
	for _, h := range host {
		local[h]++
	}
	if launcher {
		for _, k := range local {
			m, err := shm.CreateJob(k, conduits.Config{MaxSegment: 4 << 20})
			if err != nil {
				t.Fatal(err)
			}
			w.mem = append(w.mem, m)
		}
	}
	begun := make([]int, len(local))
	for rank, h := range host {
		p := &process{cmd: exec.CommandContext(ctx, self)}
		p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
		p.cmd.Env = append(os.Environ(),
			envProgram+"="+program, "ARGON_CONDUIT=hybrid", "ARGON_RANK="+strconv.Itoa(rank), "ARGON_SIZE="+strconv.Itoa(n),
			"ARGON_LOCAL_RANK="+strconv.Itoa(begun[h]), "ARGON_LOCAL_SIZE="+strconv.Itoa(local[h]), "ARGON_HOST="+strconv.Itoa(h),
			"ARGON_SEGMENT=1048576",
			"ARGON_RENDEZVOUS="+srv.Addr().String(), "ARGON_RENDEZVOUS_SERVE=0", "ARGON_JOB_KEY="+key.Reveal())
		if launcher {
			p.cmd.ExtraFiles = []*os.File{w.mem[h].File()}
			p.cmd.Env = append(p.cmd.Env, "ARGON_SEGFD=3")
		}
		p.cmd.Env = append(p.cmd.Env, env...)
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		w.ranks = append(w.ranks, p)
		begun[h]++
	}
	return w
}

// anyBut0 is a status that stands for every one that is not 0.
const anyBut0 = -2

// want waits for all ranks and fails the test unless each ends with the status
// that is given for it, or with the last one given.
func (w *world) want(status ...int) *world {
	w.t.Helper()
	for r, p := range w.ranks {
		_ = p.cmd.Wait()
		want := status[min(r, len(status)-1)]
		got := p.cmd.ProcessState.ExitCode()
		if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			got = 128 + int(ws.Signal())
		}
		if got != want && (want != anyBut0 || got == 0) {
			w.t.Errorf("rank %d ended with status %d, not %d:\n%s", r, got, want, &p.out)
		}
	}
	return w
}

// says fails the test unless rank has printed all of parts.
func (w *world) says(rank int, parts ...string) *world {
	w.t.Helper()
	for _, s := range parts {
		if text := w.ranks[rank].out.String(); !strings.Contains(text, s) {
			w.t.Errorf("rank %d does not say %q:\n%s", rank, s, text)
		}
	}
	return w
}

// fatal ends a rank because of err.
func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// program is one that uses everything.
func program() { gas.Main(testprog.Everything) }

// TestProgram runs it on hosts of several sizes, with a launcher and without.
func TestProgram(t *testing.T) {
	for _, hosts := range [][]int{{1}, {3}, {1, 1}, {2, 2}, {3, 1, 2}} {
		for _, launcher := range []bool{true, false} {
			t.Run(fmt.Sprint(hosts, launcher), func(t *testing.T) { begin(t, hosts, launcher, "program").want(0) })
		}
	}
}

// TestStorm runs it, and barriers, over a network that does everything that a
// network can do: a parked rank must send again in time, whatever woke it last.
func TestStorm(t *testing.T) {
	storm := faultproxy.Storm()
	for _, p := range []string{"program", "barriers"} {
		t.Run(p, func(t *testing.T) {
			beginIn(t, &storm, []int{2, 2}, false, p, "ARGON_DEADTIME=60s").want(0)
		})
	}
}

// barriers has ranks meet, some late, so that the first ranks of both hosts park
// and are woken by their neighbours and by the network in turns.
func barriers() {
	gas.Main(func(n *gas.Node) error {
		for i := range 100 {
			if i%n.Size() == n.Rank() {
				for range 20_000 { // long enough for the others to park
					runtime.Gosched()
				}
			}
			if err := n.Barrier(); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestWithoutRendezvous runs it where the launcher's memory is all there is.
func TestWithoutRendezvous(t *testing.T) {
	begin(t, []int{3}, true, "program", "ARGON_RENDEZVOUS=").want(0)
}

// die has a rank end itself while the others wait.
func die() {
	gas.Main(func(n *gas.Node) error {
		if err := n.Barrier(); err != nil {
			return err
		}
		if n.Rank() == n.Size()-1 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return n.Barrier()
	})
}

// TestDeath has all ranks, on its host and on the other, hear of a rank's death,
// though no launcher looks after them.
func TestDeath(t *testing.T) {
	for _, hosts := range [][]int{{3}, {2, 2}, {3, 1}} {
		t.Run(fmt.Sprint(hosts), func(t *testing.T) {
			w := begin(t, hosts, false, "die")
			last := len(w.ranks) - 1
			status := make([]int, last+1)
			for r := range last {
				status[r] = 1 // no rank has told how the other has ended
			}
			status[last] = 128 + int(syscall.SIGKILL)
			w.want(status...)
			for r := range last {
				w.says(r, fmt.Sprintf("rank %d", last))
			}
		})
	}
}

// fail has a rank of the first host return an error.
func fail() {
	gas.Main(func(n *gas.Node) error {
		if n.Rank() == 1 {
			return errors.New("no more ink")
		}
		return n.Barrier()
	})
}

// TestFailure has all ranks hear what a rank failed of.
func TestFailure(t *testing.T) {
	w := begin(t, []int{2, 2}, true, "fail").want(1, 1, 1)
	for _, r := range []int{0, 2, 3} {
		w.says(r, "rank 1", "no more ink")
	}
}

// mute is a Receiver.
type mute struct{ done int }

func (*mute) Receive(*conduits.Message)                        {}
func (n *mute) Complete(uint64, conduits.Event, uint64, error) { n.done++ }

// join is the calling rank's endpoint.
func join() (conduits.Endpoint, error) {
	j, _, err := conduits.Launched(os.Getenv)
	fatal(err)
	c, err := conduits.Lookup("hybrid")
	fatal(err)
	return c.Join(j, conduits.Config{})
}

// early has a rank end between joining and attaching, while those of its host wait
// for it in shared memory and the others for all.
func early() {
	ep, err := join()
	if err == nil {
		if ep.Rank() == 1 {
			os.Exit(3)
		}
		err = ep.Attach(conduits.AttachConfig{Size: 1 << 16, Receiver: &mute{}})
	} // else a rank that finds out which ranks it shares memory with was late
	var p *conduits.PeerError
	if !errors.As(err, &p) || p.Rank != 1 {
		fatal(fmt.Errorf("attach: %v", err))
	}
}

// TestEarlyDeath runs it.
func TestEarlyDeath(t *testing.T) {
	for _, hosts := range [][]int{{3}, {2, 2}} {
		begin(t, hosts, false, "early").want(0, 3, 0)
	}
}

// visible has rank 2, alone on its host, put to rank 1's segment, and rank 0 see
// it there by direct access, and put there itself; rank 2 then gets what it put.
// Rank 1 is parked meanwhile.
func visible() {
	ep, err := join()
	fatal(err)
	me := &mute{}
	fatal(ep.Attach(conduits.AttachConfig{Size: 1 << 16, Receiver: me}))
	const rounds = 300
	wait := func(cond func() bool) { fatal(conduits.Wait(ep, nil, cond)) }
	at := func(i int) segment.NLA { return segment.AttachBase + segment.NLA(8*i) }
	switch ep.Rank() {
	case 0:
		_, views := ep.Views()
		b, _ := views[1].Bytes(at(0), 16, views[1].Size())
		for i := uint64(1); i <= rounds; i++ {
			for load(b) != i { // nothing tells this rank
				ep.Poll()
			}
			store(b[8:], i)
			ep.Wake(1)
		}
	case 1:
		_, views := ep.Views()
		b, _ := views[1].Bytes(at(0), 16, views[1].Size())
		for i := uint64(1); i <= rounds; i++ {
			wait(func() bool { return load(b) >= i && load(b[8:]) >= i })
		}
	case 2:
		got := make([]byte, 8)
		for i := uint64(1); i <= rounds; i++ {
			me.done = 0
			_, err := post.PutWord(ep, 1, at(0), i, 8, conduits.RemoteDone, 1)
			fatal(err)
			wait(func() bool { return me.done == 1 })
			for load(got) != i {
				me.done = 0
				_, err := post.Get(ep, got, 1, at(1), conduits.RemoteDone, 1)
				fatal(err)
				wait(func() bool { return me.done == 1 })
			}
		}
		for r := range 2 { // no rank leaves before all is done
			me.done = 0
			_, err := post.PutWord(ep, r, at(2), 1, 8, conduits.RemoteDone, 1)
			fatal(err)
			wait(func() bool { return me.done == 1 })
		}
		fatal(ep.Close())
		return
	}
	first, views := ep.Views()
	b, _ := views[ep.Rank()-first].Bytes(at(2), 8, 1<<16)
	wait(func() bool { return load(b) == 1 })
	fatal(ep.Close())
}

// TestVisible runs it.
func TestVisible(t *testing.T) { begin(t, []int{2, 1}, false, "visible").want(0) }

// TestMisfit has the launcher say otherwise than the ranks.
func TestMisfit(t *testing.T) {
	w := begin(t, []int{2, 2}, true, "program", "ARGON_HOST=same").want(anyBut0)
	w.says(0, "ARGON_LOCAL_SIZE", "ranks 0 to 3", "ARGON_HOST")
	beginOn(t, nil, []int{0, 1, 0}, true, "program").want(anyBut0).says(2, "ARGON_SEGFD", "ranks 0, 2 say", "ARGON_HOST")
	begin(t, []int{2}, true, "program", "ARGON_SEGFD=x", "ARGON_LOCAL_SIZE=2").want(2).says(1, `ARGON_SEGFD="x"`)
}
