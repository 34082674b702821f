package rendezvous

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// limit is longer than anything here takes, on any machine.
const limit = 5 * time.Minute

// a job is a server, and what the tests of it have in common.
type job struct {
	t   *testing.T
	key jobkey.Key
	*Server
	addr string
}

func serve(t *testing.T, c ServerConfig) *job {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, l, c)
}

// serveOn is serve by a listener of the test's own.
func serveOn(t *testing.T, l net.Listener, c ServerConfig) *job {
	t.Helper()
	if !c.Key.Valid() {
		c.Key = jobkey.New()
	}
	if c.Logf == nil {
		c.Logf = t.Logf
	}
	if c.Patience == 0 {
		c.Patience = limit
	}
	s, err := Serve(l, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &job{t, c.Key, s, s.Addr().String()}
}

func (j *job) hello(rank int) Hello {
	return Hello{
		Rank: rank, Size: j.c.Size, Host: fmt.Sprint("host", rank/4), Port: uint16(2000 + rank),
		Incarnation: 1<<60 + uint64(rank)*uint64(rank), Public: fmt.Appendf(nil, "%32d", rank), Agree: "argon test",
	}
}

// a news is one call of an event.
type news struct {
	what         string // "attached", "failed", "left"
	rank, status int
	cause        string
}

// a member is a rank with all its events.
type member struct {
	*Client
	t  *testing.T
	ch chan news
}

func events(n int) (Events, chan news) {
	ch := make(chan news, n)
	return Events{
		Attached: func() { ch <- news{what: "attached"} },
		Failed:   func(p *errs.PeerError) { ch <- news{"failed", p.Rank, errs.CarriedStatus(p.Err), p.Err.Error()} },
		Left:     func(rank int) { ch <- news{what: "left", rank: rank} },
	}, ch
}

func (j *job) join(ctx context.Context, h Hello) (*member, error) {
	e, ch := events(h.Size + 2)
	c, err := Setup{Server: j.addr, Key: j.key}.Join(ctx, h, e)
	if err != nil {
		return nil, err
	}
	m := &member{c, j.t, ch}
	j.t.Cleanup(func() { m.Close() })
	return m, nil
}

// all joins all ranks at once.
func (j *job) all() []*member {
	j.t.Helper()
	m := make([]*member, j.c.Size)
	err := make([]error, j.c.Size)
	var wg sync.WaitGroup
	for i := range m {
		wg.Go(func() { m[i], err[i] = j.join(within(j.t), j.hello(i)) })
	}
	wg.Wait()
	if err := errors.Join(err...); err != nil {
		j.t.Fatal(err)
	}
	return m
}

// within is a context that ends with the test, or when something hangs.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// next is the next event.
func (m *member) next() news {
	m.t.Helper()
	select {
	case n := <-m.ch:
		return n
	case <-time.After(limit):
		m.t.Fatalf("rank %d: no event", m.rank)
	}
	return news{}
}

func (m *member) expect(want news) {
	m.t.Helper()
	if n := m.next(); n.what != want.what || n.rank != want.rank || !strings.Contains(n.cause, want.cause) {
		m.t.Fatalf("rank %d: got %+v, want %+v", m.rank, n, want)
	}
}

// eventually waits until the server knows something.
func (j *job) eventually(what string, is func() bool) {
	j.t.Helper()
	for end := time.Now().Add(limit); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			j.t.Fatalf("never %s", what)
		}
	}
}

// growing calls f with longer and longer times, from d on, until it is content: for
// what a time that passes brings about, if the machine has been quick enough to do
// everything else before.
func growing(t *testing.T, d time.Duration, f func(d time.Duration) error) {
	t.Helper()
	const most = 30 * time.Second
	for err := f(d); err != nil; err = f(d) {
		if d *= 4; d > most {
			t.Error(err)
			return
		}
		t.Logf("again, with %v: %v", d, err)
	}
}

func TestJob(t *testing.T) {
	const size = 9
	j := serve(t, ServerConfig{Size: size})
	m := j.all()
	for _, c := range m {
		if c.Instance() != m[0].Instance() || c.Instance() == [16]byte{} {
			t.Errorf("rank %d: instance %x, rank 0 %x", c.rank, c.Instance(), m[0].Instance())
		}
		for r := range size {
			h := j.hello(r)
			if a := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), h.Port); c.Addr(r) != a {
				t.Errorf("rank %d: rank %d is at %v, want %v", c.rank, r, c.Addr(r), a)
			}
			if c.Incarnation(r) != h.Incarnation || c.Host(r) != r/4 || !bytes.Equal(c.Public(r), h.Public) {
				t.Errorf("rank %d: rank %d has incarnation %d and host %d", c.rank, r, c.Incarnation(r), c.Host(r))
			}
		}
		if s, r := c.Segment(0); s != 0 || r != 0 {
			t.Errorf("rank %d: rank 0 has segment %d, %d before it is attached", c.rank, s, r)
		}
	}
	for r, c := range m {
		if st := j.State(r); st != Joined {
			t.Errorf("rank %d is %v", r, st)
		}
		if err := c.Attach(uint64(r)<<40, uint32(r)+7); err != nil {
			t.Fatal(err)
		}
		if err := c.Attach(0, 0); !errors.Is(err, errs.ErrBadArg) {
			t.Errorf("attached twice: %v", err)
		}
	}
	for _, c := range m {
		c.expect(news{what: "attached"})
		for r := range size {
			if s, rights := c.Segment(r); s != uint64(r)<<40 || rights != uint32(r)+7 {
				t.Errorf("rank %d: rank %d has segment %d, %d", c.rank, r, s, rights)
			}
		}
	}
	if st := j.State(size - 1); st != Attached {
		t.Errorf("the last rank is %v", st)
	}
	for r, c := range m[:size-1] {
		if err := c.Leave(); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		m[size-1].expect(news{what: "left", rank: r})
	}
	if err := m[size-1].Leave(); err != nil {
		t.Fatal(err)
	}
	j.eventually("all have left", func() bool { return j.State(size-1) == Left })
	if _, _, cause, ok := j.Failure(); ok {
		t.Errorf("failed: %s", cause)
	}
	select {
	case n := <-m[size-1].ch:
		t.Errorf("after Leave: %+v", n)
	default:
	}
}

// TestRewrite tells each rank its own addresses of the others.
func TestRewrite(t *testing.T) {
	other := func(viewer, rank int, a netip.AddrPort) netip.AddrPort {
		if viewer == rank {
			return a
		}
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(viewer), byte(rank)}), a.Port()+1)
	}
	j := serve(t, ServerConfig{Size: 3, Rewrite: other})
	for viewer, c := range j.all() {
		for rank := range 3 {
			own := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), j.hello(rank).Port)
			if a := c.Addr(rank); a != other(viewer, rank, own) {
				t.Errorf("rank %d finds rank %d at %v", viewer, rank, a)
			}
		}
	}
}

// TestMain looks for what is left over.
func TestMain(m *testing.M) {
	code := testmain.Run(m)
	left := func() (n int, stacks string) {
		b := make([]byte, 1<<20)
		b = b[:runtime.Stack(b, true)]
		for _, g := range strings.Split(string(b), "\n\n") {
			if strings.Contains(g, "rendezvous.(*") {
				n++
			}
		}
		return n, string(b)
	}
	for end := time.Now().Add(limit); code == 0; time.Sleep(10 * time.Millisecond) {
		n, stacks := left()
		if n == 0 {
			break
		}
		if time.Now().After(end) {
			fmt.Fprintf(os.Stderr, "%d goroutines are left over\n%s\n", n, stacks)
			code = 1
		}
	}
	os.Exit(code)
}

func TestIPv6(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("no IPv6 here: %v", err)
	}
	j := &job{t: t, key: jobkey.New(), addr: l.Addr().String()}
	if j.Server, err = Serve(l, ServerConfig{Key: j.key, Size: 2}); err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if j.Addr().String() != j.addr {
		t.Errorf("listens at %v, not %v", j.Addr(), j.addr)
	}
	for _, c := range j.all() {
		if a := c.Addr(1); a != netip.MustParseAddrPort("[::1]:2001") {
			t.Errorf("rank 1 is at %v", a)
		}
	}
}

// TestChosenAddress: what a rank says of itself goes before where it comes from.
func TestChosenAddress(t *testing.T) {
	j := serve(t, ServerConfig{Size: 2})
	h := j.hello(1)
	h.Addr = netip.MustParseAddr("::ffff:192.0.2.7") // mapped; the others see IPv4
	done := make(chan error, 1)
	go func() {
		_, err := j.join(within(t), h)
		done <- err
	}()
	m, err := j.join(within(t), j.hello(0))
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	if a := m.Addr(1); a != netip.MustParseAddrPort("192.0.2.7:2001") {
		t.Errorf("rank 1 is at %v", a)
	}
}
