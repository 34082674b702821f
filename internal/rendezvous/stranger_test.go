package rendezvous

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobkey"
)

// a log has the lines that a server has logged.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(&l.text, format+"\n", args...)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// plain connects without a word.
func (j *job) plain() net.Conn {
	j.t.Helper()
	c, err := net.Dial("tcp", j.addr)
	if err != nil {
		j.t.Fatal(err)
	}
	j.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(limit))
	return c
}

// raw connects with the job's key, and says nothing yet.
func (j *job) raw() (*tls.Conn, net.Conn) {
	j.t.Helper()
	id, err := newIdentity(j.key)
	if err != nil {
		j.t.Fatal(err)
	}
	below := j.plain()
	c := tls.Client(below, id.config())
	if err := c.Handshake(); err != nil {
		j.t.Fatal(err)
	}
	return c, below
}

// gone waits until the other side has closed c.
func gone(t *testing.T, c net.Conn) {
	t.Helper()
	_, err := io.Copy(io.Discard, c)
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		t.Fatal("the connection stays open")
	}
}

func TestWrongKey(t *testing.T) {
	var l log
	j := serve(t, ServerConfig{Size: 2, Logf: l.printf})
	other := jobkey.New()
	_, err := Setup{Server: j.addr, Key: other}.Join(within(t), j.hello(0), Events{})
	for _, want := range []string{"does not hold the same job key", "ARGON_JOB_KEY_FILE", "ARGON_JOB_KEY", j.addr, "rank 0"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("error %v lacks %q", err, want)
		}
	}
	if !errors.Is(err, errs.ErrBadArg) {
		t.Errorf("%v is no ErrBadArg", err)
	}
	j.eventually("counted", func() bool { return j.Strangers() == 1 })
	j.eventually("logged", func() bool { return strings.Contains(l.String(), "another job key (1 so far)") })
	for _, k := range []jobkey.Key{j.key, other} {
		if strings.Contains(l.String()+err.Error(), k.Reveal()) {
			t.Error("the key is printed")
		}
	}
	if st := j.State(0); st != Missing {
		t.Errorf("rank 0 is %v", st)
	}
	if _, _, _, failed := j.Failure(); failed {
		t.Error("a stranger fails the job")
	}
}

// TestStolenCertificate shows the service the certificate that it shows
// all, without its private key, and others.
func TestStolenCertificate(t *testing.T) {
	j := serve(t, ServerConfig{Size: 1})
	var stolen []byte
	look := &tls.Config{
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			stolen = s.PeerCertificates[0].Raw
			return nil
		},
	}
	// Without any certificate.
	c := tls.Client(j.plain(), look)
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	gone(t, c)
	// It is counted after its connection is closed.
	j.eventually("counted", func() bool { return j.Strangers() == 1 })

	_, private, _ := ed25519.GenerateKey(rand.Reader)
	mine, err := newIdentity(jobkey.New())
	if err != nil {
		t.Fatal(err)
	}
	for what, cert := range map[string]tls.Certificate{
		"stolen": {Certificate: [][]byte{stolen}, PrivateKey: private},
		"other":  mine.cert,
		"first":  {Certificate: [][]byte{mine.cert.Certificate[0], stolen}, PrivateKey: mine.cert.PrivateKey},
		"second": {Certificate: [][]byte{stolen, mine.cert.Certificate[0]}, PrivateKey: mine.cert.PrivateKey},
	} {
		before := j.Strangers()
		c := tls.Client(j.plain(), &tls.Config{
			InsecureSkipVerify: true,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return &cert, nil
			},
		})
		h := hello{Hello: j.hello(0)}
		if err := c.Handshake(); err == nil {
			c.Write(frame(nil, kHello, h.append))
			var buf []byte
			if k, _, err := readFrame(c, &buf, maxFrame); err == nil {
				t.Errorf("%s: got in (%d)", what, k)
			}
		}
		j.eventually("counted", func() bool { return j.Strangers() == before+1 })
	}
	if st := j.State(0); st != Missing {
		t.Errorf("rank 0 is %v", st)
	}
	// Old versions are refused, whatever they bring.
	id, _ := newIdentity(j.key)
	old := id.config()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if err := tls.Client(j.plain(), old).Handshake(); err == nil {
		t.Error("TLS 1.2 got in")
	}
	if _, err := j.join(within(t), j.hello(0)); err != nil {
		t.Error(err)
	}
}

// TestOtherServer has clients meet a server that is not the service.
func TestOtherServer(t *testing.T) {
	for what, c := range map[string]struct {
		do   func(net.Conn)
		want string
		wait time.Duration
	}{
		"garbage": {func(c net.Conn) { io.WriteString(c, "220 mail ready, what do you want?\r\n") }, "is not the rendezvous of a job", limit},
		"closes":  {func(c net.Conn) {}, "connection", limit},
		"silent":  {func(c net.Conn) { io.Copy(io.Discard, c) }, "timed out", 300 * time.Millisecond},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ctx, cancel := context.WithTimeout(t.Context(), c.wait)
		defer cancel()
		go func() {
			for come := 1; ; come++ {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				if come == 2 { // it would try for ever
					cancel()
				}
				go func() {
					c.do(conn)
					conn.Close()
				}()
			}
		}()
		h := Hello{Size: 1, Host: "h", Port: 1}
		_, err = Setup{Server: l.Addr().String(), Key: jobkey.New()}.Join(ctx, h, Events{})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), l.Addr().String()) {
			t.Errorf("%s: %v; want %q", what, err, c.want)
		}
	}
}

// TestStrangers has all kinds of them come in numbers while a job comes together.
func TestStrangers(t *testing.T) {
	const each = 6
	var l log
	j := serve(t, ServerConfig{Size: 4, Logf: l.printf, handshake: limit})
	var wg, said sync.WaitGroup
	for _, do := range []func() net.Conn{
		func() net.Conn { return j.plain() }, // says nothing
		func() net.Conn {
			c := j.plain()
			c.Close()
			return nil
		},
		func() net.Conn {
			c := j.plain()
			io.WriteString(c, "GET / HTTP/1.1\r\n\r\n")
			return c
		},
		func() net.Conn { // without end
			c := j.plain()
			junk := make([]byte, 1<<16)
			rand.Read(junk)
			c.Write(junk)
			return c
		},
		func() net.Conn { // a handshake message of 16 MiB
			c := j.plain()
			c.Write([]byte{22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff})
			for range 1 << 10 {
				if _, err := c.Write(make([]byte, 16<<10)); err != nil {
					break
				}
			}
			return c
		},
		func() net.Conn { // knows the key, and then says nothing
			c, _ := j.raw()
			return c
		},
		func() net.Conn { // a frame of 4 GiB
			c, _ := j.raw()
			c.Write([]byte{0xff, 0xff, 0xff, 0xff, byte(kHello)})
			return c
		},
		func() net.Conn { // too large for a hello, though not for others
			c, _ := j.raw()
			c.Write(frame(nil, kHello, func(b []byte) []byte { return append(b, make([]byte, maxHello)...) }))
			return c
		},
		func() net.Conn { // a byte at a time
			c, _ := j.raw()
			h := hello{Hello: j.hello(0)}
			for _, b := range frame(nil, kHello, h.append)[:20] {
				if _, err := c.Write([]byte{b}); err != nil {
					break
				}
			}
			return c
		},
	} {
		for range each {
			said.Add(1)
			wg.Go(func() {
				c := do()
				said.Done()
				if c != nil {
					gone(t, c)
				}
			})
		}
	}
	m := j.all()
	// Connections that wait for something have had their time when all have said what they
	// had to say.
	said.Wait()
	j.eventually("all counted", func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		for e := j.pending.Front(); e != nil; e = e.Next() {
			e.Value.(*pending).conn.SetDeadline(time.Unix(1, 0))
		}
		return j.strangers == 9*each
	})
	wg.Wait()
	if n := strings.Count(l.String(), "\n"); n > 8 {
		t.Errorf("%d lines for %d strangers:\n%s", n, 9*each, l.String())
	}
	if err := m[0].Put("still", []byte("here")); err != nil {
		t.Error(err)
	}
	if _, _, cause, failed := j.Failure(); failed {
		t.Errorf("strangers fail the job: %s", cause)
	}
}

// TestSilent: a connection that says nothing has a time for it.
func TestSilent(t *testing.T) {
	j := serve(t, ServerConfig{Size: 1, handshake: 50 * time.Millisecond})
	gone(t, j.plain())
	j.eventually("counted", func() bool { return j.Strangers() == 1 })
}

// TestCrowd has more strangers hold connections than the service takes at once,
// and more come for each that it throws out; ranks get in nevertheless.
func TestCrowd(t *testing.T) {
	j := serve(t, ServerConfig{Size: 3, handshake: time.Hour, handshakeLow: time.Millisecond})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range maxPending + 20 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				c, err := net.Dial("tcp", j.addr)
				if err != nil {
					continue
				}
				c.SetReadDeadline(time.Now().Add(limit))
				done := make(chan struct{})
				go func() {
					select {
					case <-stop:
						c.Close()
					case <-done:
					}
				}()
				c.Read(make([]byte, 1))
				close(done)
				c.Close()
			}
		})
	}
	j.eventually("crowded", func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		if n := j.pending.Len(); n > maxPending {
			t.Fatalf("%d at once", n)
		}
		return j.strangers > maxPending
	})
	j.all()
	close(stop)
	wg.Wait()
}

// TestUnproven counts the bytes that the service takes from a stranger.
func TestUnproven(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	go io.Copy(a, bytes.NewReader(make([]byte, 2*maxUnproven)))
	n, err := io.Copy(io.Discard, &limited{b, maxUnproven})
	if n != maxUnproven || err == nil || !strings.Contains(err.Error(), "16384 bytes") {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestMisfits has ranks with the right key that do not fit the others.
func TestMisfits(t *testing.T) {
	for what, c := range map[string]struct {
		first, second func(h *Hello)
		rank          int
		want          []string
	}{
		"twice": {nil, func(h *Hello) { h.Rank, h.Host = 1, "elsewhere" }, 1, []string{"rank 1 came twice", `"host0"`, `"elsewhere"`, "127.0.0.1:"}},
		"size":  {nil, func(h *Hello) { h.Size = 7 }, NoRank, []string{"rank 2", "has 7 ranks", "it has 3"}},
		"range": {nil, func(h *Hello) { h.Size, h.Rank = 9, 8 }, NoRank, []string{"rank 8", "9 ranks", "3"}},
		"agree": {
			func(h *Hello) { h.Agree = "datagram 1400" },
			func(h *Hello) { h.Agree = "datagram 9000" },
			2,
			[]string{"rank 1", `"datagram 1400"`, "rank 2", `"datagram 9000"`},
		},
		"public": {nil, func(h *Hello) { h.Public = nil }, 2, []string{"rank 2", "0 bytes", "rank 1", "32"}},
	} {
		t.Run(what, func(t *testing.T) {
			var l log
			j := serve(t, ServerConfig{Size: 3, Logf: l.printf})
			h := j.hello(1)
			if c.first != nil {
				c.first(&h)
			}
			firstErr := make(chan error, 1)
			go func() {
				_, err := j.join(within(t), h)
				firstErr <- err
			}()
			j.eventually("joined", func() bool { return j.State(1) == Joined })
			h = j.hello(2)
			c.second(&h)
			_, err := j.join(within(t), h)
			first := <-firstErr
			rank, status, cause, failed := j.Failure()
			if !failed || rank != c.rank || status == 0 {
				t.Errorf("failure %v of rank %d, status %d", failed, rank, status)
			}
			for _, w := range c.want {
				for who, text := range map[string]string{
					"the newcomer": fmt.Sprint(err), "the first": fmt.Sprint(first), "the service": cause, "the log": l.String(),
				} {
					if !strings.Contains(text, w) {
						t.Errorf("%s lacks %q: %s", who, w, text)
					}
				}
			}
			if !errors.Is(err, errs.ErrBadArg) || !errors.Is(first, errs.ErrPeer) {
				t.Errorf("not ErrBadArg: %v; or not ErrPeer: %v", err, first)
			}
			// A rank that comes later learns it at once.
			if _, err := j.join(within(t), j.hello(0)); !errors.Is(err, errs.ErrPeer) || !strings.Contains(err.Error(), c.want[0]) {
				t.Errorf("a late one: %v", err)
			}
		})
	}
}

// TestMisfitLater: a job that is complete does not suffer from those of another.
func TestMisfitLater(t *testing.T) {
	j := serve(t, ServerConfig{Size: 2})
	m := j.all()
	for _, h := range []Hello{j.hello(1), {Rank: 5, Size: 6, Host: "x"}} {
		if _, err := j.join(within(t), h); !errors.Is(err, errs.ErrBadArg) {
			t.Errorf("rank %d of %d: %v", h.Rank, h.Size, err)
		}
	}
	if err := m[0].Put("k", nil); err != nil {
		t.Error(err)
	}
	if _, _, cause, failed := j.Failure(); failed {
		t.Error(cause)
	}
}

// TestMalformed has a holder of the key send what is no message, before and
// after the hello.
func TestMalformed(t *testing.T) {
	other := func(b []byte) []byte {
		h := hello{Hello: Hello{Size: 2, Agree: "argon test"}}
		b = h.append(b)
		binary.BigEndian.PutUint16(b[len(b)-len(h.append(nil)):], version+1)
		return b
	}
	for what, c := range map[string]struct {
		k    kind
		body func([]byte) []byte
		want string
	}{
		"version": {kHello, other, fmt.Sprintf("version %d of the rendezvous, the service version %d", version+1, version)},
		"empty":   {kHello, nil, "not a hello"},
		"cut":     {kHello, func(b []byte) []byte { return append(b, 0, version, 0, 0) }, "not a hello"},
		"kind":    {kPut, func(b []byte) []byte { return append(b, 0, version, 0, 0) }, "not a hello"},
	} {
		j := serve(t, ServerConfig{Size: 2})
		conn, _ := j.raw()
		conn.Write(frame(nil, c.k, c.body))
		var buf []byte
		k, body, err := readFrame(conn, &buf, maxFrame)
		a, ok := parseAnswer(body)
		if err != nil || k != kRefuse || !ok || !strings.Contains(string(a.data), c.want) {
			t.Errorf("%s: kind %d, %q, %v; want %q", what, k, body, err, c.want)
		}
		if _, _, cause, failed := j.Failure(); !failed || !strings.Contains(cause, c.want) {
			t.Errorf("%s: the service's failure is %q; want %q", what, cause, c.want)
		}
	}
	for what, b := range map[string][]byte{
		"kind 0":       frame(nil, 0, nil),
		"kind 99":      frame(nil, 99, nil),
		"the server's": frame(nil, kBye, nil),
		"second hello": frame(nil, kHello, nil),
		"attach cut":   frame(nil, kAttach, nil),
		"put cut":      frame(nil, kPut, nil),
		"fail cut":     frame(nil, kFail, nil),
		"fail rank":    frame(nil, kFail, (&failure{rank: 2}).append),
		"length 0":     {0, 0, 0, 0, byte(kPut)},
		"length":       {0, 1, 0, 1, byte(kPut)},
		"early leave":  frame(nil, kLeave, nil),
		"early attach": frame(nil, kAttach, (&segment{}).append),
		"long value":   frame(nil, kPut, (&request{1, "k", make([]byte, MaxValue+1)}).append),
	} {
		j := serve(t, ServerConfig{Size: 2})
		conn, _ := j.raw()
		h := hello{Hello: j.hello(1)}
		h.Addr = addrPort(conn.LocalAddr()).Addr()
		conn.Write(frame(nil, kHello, h.append))
		conn.Write(b)
		gone(t, conn)
		j.eventually("failed "+what, func() bool { return j.State(1) == Failed })
		if rank, _, cause, _ := j.Failure(); rank != 1 {
			t.Errorf("%s: rank %d: %s", what, rank, cause)
		}
	}
}

// TestEvicted: a hello that is found after its connection was given up does not
// let a rank in.
func TestEvicted(t *testing.T) {
	j := serve(t, ServerConfig{Size: 1})
	h := hello{Hello: j.hello(0)}
	h.Addr = j.Addr().Addr()
	conn := j.plain()
	j.mu.Lock()
	e := j.pending.PushBack(&pending{conn: conn, evicted: true})
	j.mu.Unlock()
	if p, a := j.admit(conn, e, nil, kHello, h.append(nil)); p != nil || a.v == good {
		t.Errorf("%+v, %+v", p, a)
	}
	if _, _, cause, failed := j.Failure(); failed || j.State(0) != Missing {
		t.Errorf("rank 0 is %v; %s", j.State(0), cause)
	}
	j.mu.Lock()
	j.pending.Remove(e)
	j.mu.Unlock()
}
