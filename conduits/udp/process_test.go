package udp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/lab/testprog"
	"github.com/argon-go/argon/internal/rendezvous"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/segment"
)

// programs are those of the ranks of the tests' jobs, each rank a process.
var programs = map[string]func(){
	"program":  program,
	"compute":  compute,
	"die":      die,
	"stop":     stop,
	"pause":    pause,
	"freeze":   freeze,
	"seize":    seize,
	"vanish":   vanish,
	"join":     func() { joined().Close() },
	"describe": describe,
	"trips":    trips,
}

// world is a job of processes that a test has started.
type world struct {
	t     *testing.T
	srv   *rendezvous.Server
	notes chan string // for the user, the first of each rank
	ranks []*process
}

// process is a rank of one.
type process struct {
	cmd      *exec.Cmd
	out, err text
}

// text is the output of a process so far.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (x *text) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.Write(p)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.String()
}

// rewrite returns the addresses that the next rendezvous of begin gives in place of ranks' own.
var rewrite func(viewer, rank int, addr netip.AddrPort) netip.AddrPort

// begin starts program as n processes that meet at a rendezvous on address host;
// env has further KEY=VALUE, of which later ones hold; for one rank only if they
// begin with "RANK:".
func begin(t *testing.T, host string, n int, program string, env ...string) *world {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	key := jobkey.New()
	notes := make(chan string, n)
	srv, err := rendezvous.Serve(l, rendezvous.ServerConfig{Key: key, Size: n, Logf: t.Logf, Rewrite: rewrite, Note: func(rank int, text string) {
		select {
		case notes <- fmt.Sprintf("rank %d %s", rank, text):
		default:
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, srv: srv, notes: notes}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		for _, p := range w.ranks {
			_ = p.cmd.Wait()
		}
		srv.Close()
	})
	for r := range n {
		p := &process{cmd: exec.CommandContext(ctx, self)}
		p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
		p.cmd.Env = append(os.Environ(),
			"ARGONTEST_JOB="+program, "ARGON_CONDUIT=udp", "ARGON_RANK="+strconv.Itoa(r), "ARGON_SIZE="+strconv.Itoa(n),
			"ARGON_RENDEZVOUS="+srv.Addr().String(), "ARGON_RENDEZVOUS_SERVE=0", "ARGON_JOB_KEY="+key.Reveal())
		for _, s := range env {
			if rank, rest, ok := strings.Cut(s, ":"); ok && rank == strconv.Itoa(r) {
				s = rest
			} else if ok && strings.Trim(rank, "0123456789") == "" {
				continue
			}
			p.cmd.Env = append(p.cmd.Env, s)
		}
		if err := p.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		w.ranks = append(w.ranks, p)
	}
	return w
}

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
		if got != want {
			w.t.Errorf("rank %d ended with status %d, not %d:\n%s%s", r, got, want, &p.out, &p.err)
		}
	}
	return w
}

// says fails the test unless rank has written all of parts to standard error.
func (w *world) says(rank int, parts ...string) *world {
	w.t.Helper()
	for _, s := range parts {
		if text := w.ranks[rank].err.String(); !strings.Contains(text, s) {
			w.t.Errorf("rank %d does not say %q:\n%s", rank, s, text)
		}
	}
	return w
}

// joined opens and attaches the calling rank's endpoint.
func joined() *endpoint {
	ep, err := testjob.Join(conduits.Config{})
	testjob.Check(err)
	e := &endpoint{Endpoint: ep.(*udp.Endpoint)}
	testjob.Check(e.Attach(conduits.AttachConfig{Size: 1 << 20, Receiver: e}))
	return e
}

// endpoint is an endpoint that remembers what has come.
type endpoint struct {
	*udp.Endpoint
	messages int
	done     int
	value    uint64
	err      error
}

func (e *endpoint) Receive(*conduits.Message) { e.messages++ }

func (e *endpoint) Complete(_ uint64, _ conduits.Event, v uint64, err error) {
	e.done++
	e.value, e.err = v, err
}

// wait waits for cond.
func (e *endpoint) wait(cond func() bool) { testjob.Check(conduits.Wait(e, nil, cond)) }

// send sends a message of a word.
func (e *endpoint) send(dst int) {
	for {
		switch e.Send(dst, conduits.Request, 1, []uint32{1}) {
		case conduits.Ready:
			return
		case conduits.Dead:
			testjob.Check(e.Err())
			testjob.Fatal("rank %d is gone", dst)
		}
		e.Poll()
	}
}

// rma performs a put, an atomic and a get of rank dst and waits for each.
func (e *endpoint) rma(dst int, at segment.NLA, v []byte) {
	n := e.done
	ev, err := post.Put(e, dst, at, v, conduits.RemoteDone, 1)
	testjob.Check(err)
	if ev == 0 {
		n++
		e.wait(func() bool { return e.done == n })
		testjob.Check(e.err)
	}
	_, ev, err = post.Atomic(e, dst, segment.AttachBase, conduits.AtomicAdd, conduits.Uint64, 1, 0, 1)
	testjob.Check(err)
	if ev == 0 {
		n++
		e.wait(func() bool { return e.done == n })
		testjob.Check(e.err)
	}
	b := make([]byte, len(v))
	ev, err = post.Get(e, b, dst, at, conduits.RemoteDone, 1)
	testjob.Check(err)
	if ev == 0 {
		n++
		e.wait(func() bool { return e.done == n })
		testjob.Check(e.err)
	}
	if !bytes.Equal(b, v) {
		testjob.Fatal("rank %d gives back other bytes", dst)
	}
}

// program is one that uses everything.
func program() { testjob.Check(gas.Run(gas.Config{}, testprog.Everything)) }

func TestProgram(t *testing.T) {
	for _, c := range []struct {
		name, host string
		n          int
		env        []string
	}{
		{"one", "127.0.0.1", 1, nil},
		{"two", "127.0.0.1", 2, nil},
		{"five", "127.0.0.1", 5, nil},
		{"encrypted", "127.0.0.1", 2, []string{"ARGON_AUTH=encrypted"}},
		{"open", "127.0.0.1", 2, []string{"ARGON_AUTH=none"}},
		{"small datagrams", "127.0.0.1", 2, []string{"ARGON_DATAGRAM=512"}},
		{"large datagrams", "127.0.0.1", 2, []string{"ARGON_DATAGRAM=60000"}},
		{"two hosts", "127.0.0.1", 2, []string{"ARGON_HOST=x", "1:ARGON_HOST=y", "ARGON_IFACE=" + outer(t)}},
		{"interface", "127.0.0.1", 2, []string{"ARGON_IFACE=lo"}},
		{"IPv6", "::1", 3, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.host == "::1" {
				skipUnlessIPv6(t)
			}
			begin(t, c.host, c.n, "program", c.env...).want(0)
		})
	}
}

// outer is an address of this host that is not a loopback address, or else one
// that is.
func outer(t *testing.T) string {
	l, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range l {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	return "127.0.0.1"
}

func skipUnlessIPv6(t *testing.T) {
	c, err := net.ListenPacket("udp6", "[::1]:0")
	if err != nil {
		t.Skipf("this machine has no IPv6 loopback address: %v", err)
	}
	c.Close()
}

// compute has rank 1 wait without polling until rank 0 is through with operations
// on it that need its engine.
func compute() {
	e := joined()
	told := func() bool { // looks at the own segment, and at nothing else
		v, _, err := post.Atomic(e, 1, segment.AttachBase+8, conduits.AtomicLoad, conduits.Uint64, 0, 0, 1)
		testjob.Check(err)
		return v != 0
	}
	switch e.Rank() {
	case 0:
		big := bytes.Repeat([]byte{1, 2, 3}, 50_000)
		for range 3 {
			e.rma(1, segment.AttachBase+64, big)
		}
		for range e.Limits().Credits {
			e.send(1)
		}
		_, err := post.PutWord(e, 1, segment.AttachBase+8, 1, 8, conduits.RemoteDone, 1)
		testjob.Check(err)
	case 1:
		for !told() {
		}
		if e.messages > 0 {
			testjob.Fatal("somebody has run the Receiver")
		}
		e.wait(func() bool { return e.messages == e.Limits().Credits })
	}
	testjob.Check(e.Close())
}

// TestCompute has a rank compute: no other rank waits for it.
func TestCompute(t *testing.T) { begin(t, "127.0.0.1", 2, "compute").want(0) }

// die has rank 1 end itself while the others wait for it.
func die() {
	e := joined()
	if e.Rank() == 1 {
		e.send(0)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	testjob.Check(conduits.Wait(e, nil, func() bool { return false }))
}

// TestDie has a rank killed: all others hear of it at once, and by its number.
func TestDie(t *testing.T) {
	begin(t, "127.0.0.1", 4, "die").want(121, 137, 121).says(0, "rank 1 failed").says(2, "rank 1 failed").says(3, "rank 1 failed")
}

// stop has rank 1 stand still while rank 0 awaits something of it.
func stop() {
	e := joined()
	if e.Rank() == 1 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
	if e.Rank() == 0 {
		for e.Err() == nil {
			e.rma(1, segment.AttachBase+64, []byte("are you there?"))
		}
	}
	testjob.Check(conduits.Wait(e, nil, func() bool { return false }))
}

// TestRestart starts rank 1 again where it was, with all that it knew, after it
// has died: it is not taken for the first one, and the job has failed.
func TestRestart(t *testing.T) {
	w := begin(t, "127.0.0.1", 2, "die")
	_ = w.ranks[1].cmd.Wait()
	again := &process{cmd: exec.CommandContext(t.Context(), w.ranks[1].cmd.Path)}
	again.cmd.Stderr, again.cmd.Env = &again.err, w.ranks[1].cmd.Env
	w.ranks[1] = again
	if err := again.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.want(121).says(0, "rank 1 failed").says(1, "rank 1 failed")
}

// TestStop has a rank's process stand still for longer than the dead time.
func TestStop(t *testing.T) {
	w := begin(t, "127.0.0.1", 3, "stop", "ARGON_DEADTIME=2s", "0:ARGON_HOST=0.blue", "1:ARGON_HOST=1.green", "2:ARGON_HOST=0.blue")
	for _, r := range []int{2, 0, 1} {
		if r == 1 {
			// It hears what others think of it.
			_ = w.ranks[1].cmd.Process.Signal(syscall.SIGCONT)
		}
		_ = w.ranks[r].cmd.Wait()
		if r == 1 {
			w.says(r, "the job has given up this rank, 1: rank 0 (")
			continue
		}
		w.says(r, "rank 1 failed", `rank 0 (host "blue", `, `) has not heard from rank 1 (host "green", 127.0.0.1:`, " probes have not been answered", " is stopped (state T), by a signal", "ARGON_DEADTIME")
	}
}

// pause has rank 1 stand still until the test lets it go on, once rank 0 has sent something
// again.
func pause() {
	e := joined()
	if e.Rank() == 1 {
		fmt.Println("stopping")
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		e.wait(func() bool { return e.messages == 1 })
	} else {
		go func() {
			for strings.Contains(e.Diagnosis(), "(0 again,") {
				time.Sleep(time.Millisecond)
			}
			fmt.Println("again")
		}()
		e.rma(1, segment.AttachBase+64, bytes.Repeat([]byte("patience"), 10_000))
		e.send(1)
	}
	testjob.Check(e.Close())
}

// TestPause has a rank's process stand still for less than the dead time.
func TestPause(t *testing.T) {
	w := begin(t, "127.0.0.1", 2, "pause")
	p := w.ranks[1].cmd.Process
	for !stopped(p.Pid) || !strings.Contains(w.ranks[0].out.String(), "again") {
		time.Sleep(time.Millisecond)
	}
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.want(0)
}

// freeze exchanges with the next rank until it is told to end.
func freeze() {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGUSR1)
	e := joined()
	next := (e.Rank() + 1) % e.Size()
	work := func() { e.rma(next, segment.AttachBase+64+segment.NLA(e.Rank()), []byte{byte(e.Rank())}) }
	work()
	fmt.Println("running")
	for {
		work()
		select {
		case <-told:
			for range 100 {
				work()
			}
			for r := range e.Size() {
				e.send(r)
			}
			e.wait(func() bool { return e.messages == e.Size() }) // no peer needs this rank any more
			testjob.Check(e.Close())
			return
		default:
		}
	}
}

// TestFreeze stops all ranks for longer than the dead time, as a paused virtual
// machine does: none of them takes another one for dead afterwards.
func TestFreeze(t *testing.T) {
	w := begin(t, "127.0.0.1", 3, "freeze", "ARGON_DEADTIME=1s")
	for _, p := range w.ranks {
		for !strings.Contains(p.out.String(), "running") {
			if stopped(p.cmd.Process.Pid) {
				t.Fatalf("a rank has ended: %s", p.err.String())
			}
			time.Sleep(time.Millisecond)
		}
	}
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT, syscall.SIGUSR1} {
		if s == syscall.SIGCONT {
			time.Sleep(2 * time.Second) // twice the dead time; engine/pauses_test.go has all else in virtual time
		}
		for _, p := range w.ranks {
			if err := p.cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.want(0)
}

// stopped reports whether process pid stands still, or has ended.
func stopped(pid int) bool {
	f := sys.ProcStat(pid)
	return len(f) == 0 || f[0] == "T" || f[0] == "Z"
}

// vanish has ranks leave as soon as they have sent to each other, so that the
// last acknowledgements find no socket.
func vanish() {
	e := joined()
	for r := range e.Size() {
		for range 5 {
			e.send(r)
		}
	}
	e.wait(func() bool { return e.messages == 5*e.Size() })
	testjob.Check(e.Close())
	if e.Err() == nil || errors.Is(e.Err(), conduits.ErrPeer) {
		testjob.Fatal("after Close: %v", e.Err())
	}
}

// TestVanish repeats that, since it is a matter of luck what is lost.
func TestVanish(t *testing.T) {
	for range 5 {
		begin(t, "127.0.0.1", 6, "vanish").want(0)
	}
}

// describe prints the authentication and the conduit of a rank's job.
func describe() {
	e := joined()
	fmt.Printf("%s %s\n", e.Limits().Authentication, e.Conduit())
	testjob.Check(e.Close())
}

// trips prints the round trips to others that the rank begins with, milliseconds.
func trips() {
	e := joined()
	for r := range e.Size() {
		if r != e.Rank() {
			fmt.Printf("%d ", e.FirstTrip(r).Milliseconds())
		}
	}
	testjob.Check(e.Close())
}

// TestFirstTrips: engines begin with the round trips that the hosts' first ranks have
// measured between them, those of the other ranks, too.
func TestFirstTrips(t *testing.T) {
	w := begin(t, "127.0.0.1", 3, "trips", "0:ARGON_HOST=a", "1:ARGON_HOST=b", "2:ARGON_HOST=b").want(0)
	for r, near := range []int{-1, 1, 1} { // which of the two is on the same host
		l := strings.Fields(w.ranks[r].out.String())
		if len(l) != 2 {
			t.Fatalf("rank %d says %q", r, l)
		}
		for i, s := range l {
			ms, err := strconv.Atoi(s)
			if i == near && ms != 5 || err != nil || ms < 1 || ms > 60_000 {
				t.Errorf("rank %d begins with round trips of %v ms", r, l)
			}
		}
	}
}

// TestBadEnvironment has a rank's environment say what cannot be.
func TestBadEnvironment(t *testing.T) {
	for _, c := range []struct {
		env  string
		says []string
	}{
		{"ARGON_AUTH=rot13", []string{"ARGON_AUTH", "rot13", "authenticated"}},
		{"ARGON_DATAGRAM=much", []string{"ARGON_DATAGRAM", "much", "65507"}},
		{"ARGON_DATAGRAM=100", []string{"ARGON_DATAGRAM", "100", "304"}},
		{"ARGON_DATAGRAM=66000", []string{"ARGON_DATAGRAM", "66000", "65507"}},
		{"ARGON_DEADTIME=10", []string{"ARGON_DEADTIME", "10", "500ms"}},
		{"ARGON_DEADTIME=1ms", []string{"ARGON_DEADTIME", "1ms", "500ms"}},
		{"ARGON_IFACE=none0", []string{"ARGON_IFACE", "none0", "lo"}},
		{"ARGON_IFACE=192.0.2.1", []string{"ARGON_IFACE", "192.0.2.1"}},
		{"ARGON_JOB_KEY=x", []string{"ARGON_JOB_KEY", "64"}},
	} {
		t.Run(c.env, func(t *testing.T) { begin(t, "127.0.0.1", 1, "join", c.env).want(1).says(0, c.says...) })
	}
}

// TestWrongKey has one of two ranks hold another job's key.
func TestWrongKey(t *testing.T) {
	w := begin(t, "127.0.0.1", 2, "join", "1:ARGON_JOB_KEY="+jobkey.New().Reveal())
	_ = w.ranks[1].cmd.Wait()
	w.says(1, "key")
	if strings.Contains(w.ranks[1].err.String(), "panic") {
		t.Error(w.ranks[1].err.String())
	}
}

// TestDisagree has two ranks want different things.
func TestDisagree(t *testing.T) {
	w := begin(t, "127.0.0.1", 2, "join", "1:ARGON_AUTH=none")
	for r := range 2 {
		_ = w.ranks[r].cmd.Wait()
	}
	w.says(1, "ARGON_AUTH", "none", "authenticated")
}
