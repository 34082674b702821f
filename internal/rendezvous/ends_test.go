package rendezvous

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// kill ends a rank's connection as the end of its process does, in two ways.
func (m *member) kill(reset bool) {
	if t, ok := m.conn.(*net.TCPConn); ok && reset {
		t.SetLinger(0)
	}
	m.conn.Close()
}

// joinRaw joins a rank that is a bare connection.
func (j *job) joinRaw(rank int) (*tls.Conn, net.Conn) {
	j.t.Helper()
	c, below := j.raw()
	h := hello{Hello: j.hello(rank)}
	h.Addr = addrPort(c.LocalAddr()).Addr()
	if _, err := c.Write(frame(nil, kHello, h.append)); err != nil {
		j.t.Fatal(err)
	}
	j.eventually("joined", func() bool { return j.State(rank) == Joined })
	return c, below
}

// TestKilled ends rank 1 at every stage; the others hear of it.
func TestKilled(t *testing.T) {
	const size = 4
	for _, reset := range []bool{false, true} {
		t.Run(fmt.Sprint("reset ", reset), func(t *testing.T) {
			t.Run("unproven", func(t *testing.T) {
				j := serve(t, ServerConfig{Size: size})
				_, below := j.raw()
				(&member{Client: &Client{conn: below}}).kill(reset)
				j.all() // no rank minds
			})
			t.Run("joining", func(t *testing.T) {
				j := serve(t, ServerConfig{Size: size})
				got := make(chan error, 1)
				go func() {
					_, err := j.join(within(t), j.hello(0))
					got <- err
				}()
				j.eventually("joined", func() bool { return j.State(0) == Joined })
				_, below := j.joinRaw(1)
				(&member{Client: &Client{conn: below}}).kill(reset)
				var p *errs.PeerError
				if err := <-got; !errors.As(err, &p) || p.Rank != 1 || !strings.Contains(err.Error(), "its connection to the rendezvous ended") {
					t.Errorf("rank 0: %v", err)
				}
			})
			stages := []string{"joined", "attaching", "attached", "waiting", "leaving", "left"}
			for stage, name := range stages {
				t.Run(name, func(t *testing.T) {
					j := serve(t, ServerConfig{Size: size})
					m := j.all()
					if stage >= 1 {
						m[1].Attach(1<<20, 3)
					}
					if stage >= 2 {
						for _, r := range []int{0, 2, 3} {
							m[r].Attach(1<<20, 3)
						}
						for _, c := range m {
							c.expect(news{what: "attached"})
						}
					}
					got := make(chan error, 1)
					if stage == 3 {
						go func() {
							_, err := m[1].Get(within(t), "never")
							got <- err
						}()
						j.eventually("waiting", func() bool {
							j.mu.Lock()
							defer j.mu.Unlock()
							return len(j.waiting) == 1
						})
					}
					rest := []*member{m[0], m[2], m[3]}
					if stage >= 4 {
						if err := m[0].Leave(); err != nil {
							t.Fatal(err)
						}
						rest = m[2:]
						for _, c := range rest {
							c.expect(news{what: "left", rank: 0})
						}
					}
					if stage == 5 {
						if err := m[1].Leave(); err != nil {
							t.Fatal(err)
						}
					}
					m[1].kill(reset)
					if stage == 5 {
						for _, c := range rest {
							c.expect(news{what: "left", rank: 1})
						}
						if err := m[2].Put("k", nil); err != nil {
							t.Error(err)
						}
						return
					}
					for _, c := range rest {
						c.expect(news{what: "failed", rank: 1, cause: "its connection to the rendezvous ended"})
						if err := c.Leave(); !errors.Is(err, errs.ErrPeer) {
							t.Errorf("rank %d leaves: %v", c.rank, err)
						}
					}
					if stage == 3 {
						if err := <-got; err == nil {
							t.Error("a value that nobody has put")
						}
					}
					if j.State(1) != Failed {
						t.Errorf("rank 1 is %v", j.State(1))
					}
				})
			}
		})
	}
}

// TestProcess kills a process, which says nothing any more.
func TestProcess(t *testing.T) {
	const env = "RENDEZVOUS_TEST_SERVER"
	if addr := os.Getenv(env); addr != "" {
		setup, err := FromEnv(func(k string) string {
			if k == jobenv.Rendezvous {
				return addr
			}
			return os.Getenv(k)
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := setup.Join(t.Context(), Hello{Rank: 1, Size: 2, Host: "h", Port: 1, Public: make([]byte, 32), Agree: "argon test"}, Events{}); err != nil {
			t.Fatal(err)
		}
		select {} // until it is killed
	}
	j := serve(t, ServerConfig{Size: 2})
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProcess$", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), env+"="+j.addr, jobenv.RendezvousServe+"=0", "ARGON_JOB_KEY="+j.key.Reveal())
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m, err := j.join(within(t), j.hello(0))
	cmd.Process.Kill()
	cmd.Wait()
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	m.expect(news{what: "failed", rank: 1, cause: "connection"}) // closed or reset
}

// TestServerClosed ends the service at every stage.
func TestServerClosed(t *testing.T) {
	for _, inRank := range []bool{false, true} {
		lost := func(m *member) news {
			if inRank && m.rank != 0 {
				return news{"failed", 0, 0, "the rendezvous at " + m.server + ", which it served, is lost"}
			}
			return news{"failed", m.rank, 0, "lost the rendezvous at " + m.server}
		}
		t.Run(fmt.Sprint("in rank ", inRank), func(t *testing.T) {
			t.Run("before", func(t *testing.T) {
				j := serve(t, ServerConfig{Size: 2, InRank: inRank})
				j.Close()
				growing(t, 200*time.Millisecond, func(d time.Duration) error {
					ctx, cancel := context.WithTimeout(t.Context(), d)
					defer cancel()
					_, err := j.join(ctx, j.hello(1))
					if !errors.Is(err, errs.ErrNotReady) || !strings.Contains(err.Error(), j.addr) || !strings.Contains(err.Error(), "connection refused") {
						return fmt.Errorf("joining what is closed: %v", err)
					}
					return nil
				})
			})
			t.Run("joining", func(t *testing.T) {
				j := serve(t, ServerConfig{Size: 2, InRank: inRank})
				got := make(chan error, 1)
				go func() {
					_, err := j.join(within(t), j.hello(0))
					got <- err
				}()
				j.eventually("joined", func() bool {
					j.mu.Lock()
					defer j.mu.Unlock()
					for p := range j.peers {
						return p.welcomed
					}
					return false
				})
				// The welcome may still be on its way: then the client tries again, and
				// its context must end that.
				j.mu.Lock()
				var flushed <-chan struct{}
				for p := range j.peers {
					flushed = p.out.flushed()
				}
				j.mu.Unlock()
				<-flushed
				j.Close()
				if err := <-got; !errors.Is(err, errs.ErrPeer) || !strings.Contains(err.Error(), "lost the rendezvous at "+j.addr) {
					t.Errorf("%v", err)
				}
			})
			for stage, name := range []string{"joined", "attaching", "attached", "waiting", "left"} {
				t.Run(name, func(t *testing.T) {
					j := serve(t, ServerConfig{Size: 2, InRank: inRank})
					m := j.all()
					if stage >= 1 {
						m[0].Attach(4096, 1)
					}
					if stage >= 2 {
						m[1].Attach(4096, 1)
						m[0].expect(news{what: "attached"})
						m[1].expect(news{what: "attached"})
					}
					got := make(chan error, 1)
					if stage == 3 {
						go func() {
							_, err := m[1].Get(within(t), "never")
							got <- err
						}()
						j.eventually("waiting", func() bool {
							j.mu.Lock()
							defer j.mu.Unlock()
							return len(j.waiting) == 1
						})
					}
					rest := m
					if stage == 4 {
						if err := m[0].Leave(); err != nil {
							t.Fatal(err)
						}
						rest = m[1:]
						m[1].expect(news{what: "left", rank: 0})
					}
					j.Close()
					for _, c := range rest {
						c.expect(lost(c))
						for what, err := range map[string]error{
							"attach": c.Attach(0, 0), "put": c.Put("k", nil), "leave": c.Leave(),
						} {
							if !errors.Is(err, errs.ErrPeer) {
								t.Errorf("rank %d: %s: %v", c.rank, what, err)
							}
						}
						c.Fail(0, 1, "too late")
					}
					if stage == 3 {
						if err := <-got; !errors.Is(err, errs.ErrPeer) {
							t.Errorf("get: %v", err)
						}
					}
					if stage == 4 {
						<-m[0].ended
						select {
						case n := <-m[0].ch:
							t.Errorf("rank 0 has left, and hears %+v", n)
						default:
						}
					}
				})
			}
		})
	}
}

// TestFailTwice: the first failure counts, whichever rank tells it.
func TestFailTwice(t *testing.T) {
	j := serve(t, ServerConfig{Size: 3})
	m := j.all()
	m[0].Fail(2, 1, "first \xff cause")
	for _, c := range m {
		c.expect(news{what: "failed", rank: 2, cause: "first ? cause"})
	}
	m[1].Fail(0, 1, "second")
	j.Fail(1, 9, "third")
	m[2].kill(true)
	j.eventually("lost", func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		return len(j.peers) == 2
	})
	if rank, status, cause, ok := j.Failure(); rank != 2 || status != jobenv.StatusFailed || cause != "first ? cause" || !ok {
		t.Errorf("rank %d, status %d: %s", rank, status, cause)
	}
	for _, c := range m[:2] {
		if err := c.Put("k", nil); !errors.Is(err, errs.ErrPeer) {
			t.Errorf("put: %v", err)
		}
		c.Close()
		select {
		case n := <-c.ch:
			t.Errorf("rank %d: then %+v", c.rank, n)
		default:
		}
	}
}

// TestBlame: a rank that believes another one has failed hears which one has before it goes on, as long as that may still come.
func TestBlame(t *testing.T) {
	j := serve(t, ServerConfig{Size: 2})
	m := j.all()
	m[0].Blame(1, errors.New("silence"))
	m[1].Fail(0, 1, "silence")
	m[1].hear(time.Hour)
	select {
	case n := <-m[1].ch:
		if n != (news{"failed", 1, 1, "silence"}) {
			t.Errorf("%+v", n)
		}
	default:
		t.Error("the rank goes on before it has heard")
	}
	j.Close()
	m[1].Blame(0, errors.New("silence"))
	m = serve(t, ServerConfig{Size: 2}).all()
	m[0].hear(time.Millisecond)
	m[1].Close()
	m[1].hear(time.Hour)
}

// TestServerFail: what a launcher says, with a status, of a rank or of none.
func TestServerFail(t *testing.T) {
	for _, rank := range []int{1, NoRank, 77} {
		j := serve(t, ServerConfig{Size: 2})
		m := j.all()
		j.Fail(rank, 137, "killed by a signal")
		if rank == 77 {
			rank = NoRank
		}
		for _, c := range m {
			if n := c.next(); n != (news{"failed", rank, 137, "killed by a signal"}) {
				t.Errorf("rank %d: %+v", c.rank, n)
			}
			err := c.Leave()
			var p *errs.PeerError
			if !errors.Is(err, errs.ErrPeer) || errors.As(err, &p) != (rank != NoRank) || !strings.Contains(err.Error(), "killed by a signal") {
				t.Errorf("rank %d: %v", c.rank, err)
			}
		}
	}
}

// A slowConn is a connection over which, once hold is set, what is written waits until hold
// is closed or patience is over.
type slowConn struct {
	net.Conn
	hold     atomic.Pointer[chan struct{}]
	patience time.Duration
	written  atomic.Bool // with hold set
}

func (c *slowConn) Write(b []byte) (int, error) {
	hold := c.hold.Load()
	if hold != nil {
		select {
		case <-*hold:
		case <-time.After(c.patience):
		}
		defer c.written.Store(true)
	}
	return c.Conn.Write(b)
}

type slowListener struct{ net.Listener }

func (l slowListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &slowConn{Conn: c, patience: 200 * time.Millisecond}, nil
}

// TestServingRankHearsLast: the process of rank 0, which serves, may end when it hears
// that the job has failed; by then the others have been told.
func TestServingRankHearsLast(t *testing.T) {
	const size = 4
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	j := serveOn(t, slowListener{l}, ServerConfig{Size: size, InRank: true})
	m := j.all()
	heard := make(chan struct{}) // by rank 0
	var others []*slowConn
	j.mu.Lock()
	for p := range j.peers {
		if c := p.conn.(*slowConn); p.rank != 0 {
			c.hold.Store(&heard)
			others = append(others, c)
		}
	}
	j.mu.Unlock()
	j.Fail(3, 9, "killed")
	m[0].expect(news{what: "failed", rank: 3, cause: "killed"})
	close(heard)
	for _, c := range others {
		if !c.written.Load() {
			t.Error("rank 0 heard of the failure before another rank was told")
		}
	}
	for _, c := range m[1:] {
		c.expect(news{what: "failed", rank: 3, cause: "killed"})
	}
}

// TestGrace: a launcher has the time to say how a rank ended, and if it does not,
// its end is a failure nevertheless.
func TestGrace(t *testing.T) {
	j := serve(t, ServerConfig{Size: 2, Grace: time.Hour})
	m := j.all()
	m[1].kill(false)
	j.eventually("lost", func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		return len(j.peers) == 1
	})
	if _, _, cause, failed := j.Failure(); failed {
		t.Fatal(cause)
	}
	j.Fail(1, 9, "killed by signal 9")
	m[0].expect(news{what: "failed", rank: 1, cause: "signal 9"})

	j = serve(t, ServerConfig{Size: 2, Grace: time.Millisecond})
	m = j.all()
	m[1].kill(false)
	m[0].expect(news{what: "failed", rank: 1, cause: "connection"})
}

// TestMissing: a rank that does not come is named, everywhere.
func TestMissing(t *testing.T) {
	const size = 20
	growing(t, 300*time.Millisecond, func(d time.Duration) (lacks error) {
		var l log
		j := serve(t, ServerConfig{Size: size, Patience: d, Logf: l.printf})
		err := make([]error, 3)
		var wg sync.WaitGroup
		for i, r := range []int{0, 5, 19} {
			wg.Go(func() { _, err[i] = j.join(within(t), j.hello(r)) })
		}
		wg.Wait()
		_, _, cause, _ := j.Failure()
		for _, text := range []string{fmt.Sprint(err[0]), fmt.Sprint(err[1]), fmt.Sprint(err[2]), cause, l.String()} {
			for _, want := range []string{"ranks 1, 2, 3, 4, 6, 7, 8, 9 and 9 more of 20", d.String(), "ARGON_JOIN_TIMEOUT"} {
				if !strings.Contains(text, want) {
					lacks = errors.Join(lacks, fmt.Errorf("%q lacks %q", text, want))
				}
			}
		}
		return lacks
	})
}

// TestImpatient: a rank whose context ends knows which were missing, and the others
// learn that it has given up.
func TestImpatient(t *testing.T) {
	growing(t, 200*time.Millisecond, func(d time.Duration) error {
		j := serve(t, ServerConfig{Size: 4})
		all, stop := context.WithCancel(within(t))
		defer stop()
		other := make(chan error, 1)
		go func() {
			_, err := j.join(all, j.hello(3))
			other <- err
		}()
		j.eventually("joined", func() bool { return j.State(3) == Joined })
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		_, err := j.join(ctx, j.hello(0))
		if !errors.Is(err, errs.ErrNotReady) || !strings.Contains(err.Error(), "ranks 1 and 2 joined") {
			stop()
			<-other
			return fmt.Errorf("the impatient: %v", err)
		}
		var p *errs.PeerError
		if err := <-other; !errors.As(err, &p) || p.Rank != 0 || !strings.Contains(err.Error(), "gave up") || !strings.Contains(err.Error(), "ranks 1 and 2") {
			return fmt.Errorf("the other: %v", err)
		}
		return nil
	})

	j := serve(t, ServerConfig{Size: 2})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		j.eventually("joined", func() bool { return j.State(0) == Joined })
		cancel()
	}()
	if _, err := j.join(ctx, j.hello(0)); !errors.Is(err, errs.ErrNotReady) || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("%v", err)
	}
	j.eventually("failed", func() bool { return j.State(0) == Failed })
}

// TestEarlyBird: a rank finds a service that comes later, and says why it did
// not find one that never comes.
func TestEarlyBird(t *testing.T) {
	addr := fmt.Sprintf("127.0.0.1:%d", testmain.Port(t))
	j := &job{t: t, addr: addr}
	j.key = serve(t, ServerConfig{Size: 1}).key
	got, tries := make(chan error, 1), make(chan struct{}, 1)
	h := Hello{Size: 1, Host: "h", Port: 1}
	id, err := newIdentity(j.key)
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(addr, addr, h, Events{})
	dial := c.open
	c.open = func(ctx context.Context, network, at string) (net.Conn, error) {
		select {
		case tries <- struct{}{}:
		default:
		}
		return dial(ctx, network, at)
	}
	go func() {
		conn, err := c.connect(within(t), id, h, limit, false)
		if err == nil {
			conn.Close()
		}
		got <- err
	}()
	for range 3 { // so that two have found nothing
		<-tries
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Skipf("somebody took the port: %v", err)
	}
	s, err := Serve(l, ServerConfig{Key: j.key, Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := <-got; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = Setup{Server: "no-such-host.invalid:7", Key: j.key}.Join(ctx, Hello{Size: 1, Host: "h", Port: 1}, Events{})
	if !errors.Is(err, errs.ErrNotReady) || !strings.Contains(err.Error(), "no-such-host.invalid:7") || !strings.Contains(err.Error(), "ARGON_RENDEZVOUS") {
		t.Errorf("%v", err)
	}
}

// TestStuck: a rank that does not read holds up no other.
func TestStuck(t *testing.T) {
	const size = 8
	j := serve(t, ServerConfig{Size: size})
	stuck, _ := j.joinRaw(0) // never reads anything
	var m [size]*member
	var wg sync.WaitGroup
	for r := 1; r < size; r++ {
		wg.Go(func() {
			var err error
			if m[r], err = j.join(within(t), j.hello(r)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	// Many answers that it does not take, more than the system's buffers hold.
	value := make([]byte, MaxValue)
	if err := m[1].Put("large", value); err != nil {
		t.Fatal(err)
	}
	for id := range uint32(2 * maxRequests) {
		r := request{id: id + 1, key: "large"}
		if _, err := stuck.Write(frame(nil, kGet, r.append)); err != nil {
			t.Fatal(err)
		}
	}
	for r := 1; r < size; r++ {
		if err := m[r].Put(fmt.Sprint(r), []byte{byte(r)}); err != nil {
			t.Fatal(err)
		}
		if v, err := m[r].Get(within(t), "1"); err != nil || len(v) != 1 {
			t.Fatalf("%v, %v", v, err)
		}
	}
	if err := m[1].Leave(); err != nil {
		t.Fatal(err)
	}
	m[2].expect(news{what: "left", rank: 1})
	if j.State(0) != Joined {
		t.Errorf("the stuck rank is %v", j.State(0))
	}
	// Until it asks for more than it may.
	for id := range uint32(2 * maxRequests) {
		r := request{id: id + 10000, key: "large"}
		if _, err := stuck.Write(frame(nil, kGet, r.append)); err != nil {
			break
		}
	}
	m[2].expect(news{what: "failed", rank: 0, cause: "requests at once"})
}

// counting counts the writes of all connections that it accepts.
type counting struct {
	net.Listener
	writes *atomic.Int64
}

type countingConn struct {
	net.Conn
	writes *atomic.Int64
}

func (l counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return countingConn{c, l.writes}, nil
}

func (c countingConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// TestLeaveTogether: ranks that leave together do not make as many messages as
// there are pairs of them; and half of them leave before the others know that all
// have joined.
func TestLeaveTogether(t *testing.T) {
	size := 200
	if testing.Short() {
		size = 60
	}
	half := size / 2
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var writes atomic.Int64
	j := &job{t: t, addr: l.Addr().String()}
	j.key = serve(t, ServerConfig{Size: 1}).key
	if j.Server, err = Serve(counting{l, &writes}, ServerConfig{Key: j.key, Size: size, Patience: limit}); err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	// The slow half has said hello, and looks only later at what was answered.
	slow := make([]*tls.Conn, half)
	for i := range slow {
		slow[i], _ = j.joinRaw(i)
	}
	before, began := writes.Load(), time.Now()
	var wg sync.WaitGroup
	for r := half; r < size; r++ {
		wg.Go(func() {
			m, err := j.join(within(t), j.hello(r))
			if err == nil {
				err = m.Leave()
				m.Close()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	j.eventually("all gone", func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		return len(j.peers) == half
	})
	took := time.Since(began)
	// Now they look: welcome, the table, and all that have left.
	for i, c := range slow {
		var buf []byte
		left, table := map[uint16]bool{}, false
		for len(left) < half {
			k, body, err := readFrame(c, &buf, maxFrame)
			if err != nil {
				t.Fatalf("rank %d: %v after %d", i, err, len(left))
			}
			switch k {
			case kTable:
				p, ok := parsePart(body)
				if !ok {
					t.Fatal("malformed")
				}
				if _, err := parseTable(p.data, size); err != nil {
					t.Fatal(err)
				}
				table = true
			case kLeft:
				ranks, ok := parseRanks(body)
				if !ok || !table {
					t.Fatalf("rank %d: %d, %v, table %v", i, ranks, ok, table)
				}
				for _, r := range ranks {
					if left[r] || int(r) < half {
						t.Fatalf("rank %d hears that %d has left; before: %v", i, r, left)
					}
					left[r] = true
				}
			case kWelcome:
			default:
				t.Fatalf("rank %d: kind %d", i, k)
			}
		}
	}
	// Handshakes, tables and farewells are a few writes per rank. On a machine that
	// lets them leave one by one they are told of so, but for those of 5 ms together.
	pairs, turns := int64(half*half), int64(took/(5*time.Millisecond))
	if n := writes.Load() - before; n > pairs/2 && n > int64(half)*turns+int64(8*size) {
		t.Errorf("%d writes for %d ranks that leave and %d that stay, in %v", n, half, half, took)
	} else {
		t.Logf("%d writes, %d pairs", n, pairs)
	}
}

// TestTurns: the first that leaves is told of at once, those that leave meanwhile
// all together.
func TestTurns(t *testing.T) {
	const size = 6
	j := serve(t, ServerConfig{Size: size})
	m := j.all()
	j.mu.Lock()
	for p := range j.peers {
		if p.rank > 0 {
			j.leave(p)
		}
	}
	if j.told != 1 || len(j.gone) != size-1 {
		t.Errorf("%d of %d who have left are told of", j.told, len(j.gone))
	}
	j.mu.Unlock()
	left := map[int]bool{}
	for range size - 1 {
		n := m[0].next()
		if n.what != "left" || left[n.rank] {
			t.Fatalf("%+v after %v", n, left)
		}
		left[n.rank] = true
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.told != size-1 {
		t.Errorf("%d are told of", j.told)
	}
}
