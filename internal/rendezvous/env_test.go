package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

func TestFromEnv(t *testing.T) {
	key := jobkey.New()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key.Reveal()), 0o400); err != nil {
		t.Fatal(err)
	}
	hex := "ARGON_JOB_KEY=" + key.Reveal()
	for _, c := range []struct {
		env      string
		serve    bool
		patience time.Duration
		dead     time.Duration
		kind     error
		want     []string // of the error
	}{
		{env: hex + " ARGON_RENDEZVOUS=a:1", serve: true},
		{env: "ARGON_JOB_KEY_FILE=" + file + " ARGON_RENDEZVOUS=a:1 ARGON_RENDEZVOUS_SERVE=1 ARGON_JOBID=x", serve: true},
		{env: hex + " ARGON_RENDEZVOUS=a:1 ARGON_RENDEZVOUS_SERVE=0"},
		{env: hex + " ARGON_RENDEZVOUS=[fd00::1]:65535 ARGON_JOBID=x"},
		{env: hex + " ARGON_RENDEZVOUS=a:1 ARGON_JOIN_TIMEOUT=90s ARGON_DEADTIME=2m", serve: true, patience: 90 * time.Second, dead: 2 * time.Minute},
		{env: hex, kind: errs.ErrNotReady, want: []string{"ARGON_RENDEZVOUS"}},
		{env: "ARGON_RENDEZVOUS=a:1", kind: errs.ErrNotReady, want: []string{"ARGON_JOB_KEY_FILE", "ARGON_JOB_KEY"}},
		{env: "ARGON_RENDEZVOUS=a:1 ARGON_JOB_KEY=" + key.Reveal()[1:], kind: errs.ErrBadArg, want: []string{"ARGON_JOB_KEY", "63"}},
		{env: hex + " ARGON_RENDEZVOUS=a", kind: errs.ErrBadArg, want: []string{`ARGON_RENDEZVOUS="a"`}},
		{env: hex + " ARGON_RENDEZVOUS=a:0", kind: errs.ErrBadArg, want: []string{`ARGON_RENDEZVOUS="a:0"`}},
		{env: hex + " ARGON_RENDEZVOUS=:7", kind: errs.ErrBadArg, want: []string{`ARGON_RENDEZVOUS=":7"`}},
		{env: hex + " ARGON_RENDEZVOUS=a:http", kind: errs.ErrBadArg, want: []string{`"a:http"`}},
		{
			env: hex + " ARGON_RENDEZVOUS=a:65536 ARGON_RENDEZVOUS_SERVE=yes ARGON_JOIN_TIMEOUT=90 ARGON_DEADTIME=-1s", kind: errs.ErrBadArg,
			want: []string{`"a:65536"`, `ARGON_RENDEZVOUS_SERVE="yes"`, `ARGON_JOIN_TIMEOUT="90"`, `ARGON_DEADTIME="-1s"`},
		},
	} {
		m := map[string]string{}
		for f := range strings.FieldsSeq(c.env) {
			k, v, _ := strings.Cut(f, "=")
			m[k] = v
		}
		shown := strings.ReplaceAll(c.env, key.Reveal(), "KEY")
		s, err := FromEnv(func(k string) string { return m[k] })
		if c.kind != nil {
			if !errors.Is(err, c.kind) {
				t.Errorf("%s: %v", shown, err)
				continue
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%s: %v lacks %s", shown, err, w)
				}
			}
			if strings.Contains(err.Error(), key.Reveal()[1:]) {
				t.Errorf("%s: the key is printed", shown)
			}
			continue
		}
		if err != nil || s.Server != m["ARGON_RENDEZVOUS"] || !s.Key.Equal(key) || s.Serve != c.serve || s.Patience != c.patience || s.DeadTime != c.dead {
			t.Errorf("%s: %+v, %v", shown, s, err)
		}
	}
}

// TestServingRank: rank 0 serves, and stays until all others have left.
func TestServingRank(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "localhost", "192.0.2.1"} { // the last one is not ours
		t.Run(host, func(t *testing.T) {
			const size = 4
			port := strconv.Itoa(testmain.Port(t))
			s := Setup{Server: net.JoinHostPort(host, port), Key: jobkey.New(), Serve: true, Patience: limit, Linger: time.Hour, Logf: t.Logf}
			others := s
			if host == "192.0.2.1" {
				others.Server = net.JoinHostPort("127.0.0.1", port)
			}
			m := make([]*Client, size)
			var wg sync.WaitGroup
			for r := range size {
				wg.Go(func() {
					setup := others
					if r == 0 {
						setup = s
					}
					var err error
					if m[r], err = setup.Join(within(t), Hello{Rank: r, Size: size, Host: "h", Port: 1, Agree: "a"}, Events{}); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if t.Failed() {
				t.FailNow()
			}
			if err := m[0].Leave(); err != nil {
				t.Fatal(err)
			}
			closed := make(chan error)
			go func() { closed <- m[0].Close() }()
			for _, c := range m[1:] {
				select {
				case err := <-closed:
					t.Fatalf("rank 0 has closed (%v) before rank %d has left", err, c.rank)
				default:
				}
				if err := c.Put(fmt.Sprint(c.rank), nil); err != nil {
					t.Errorf("rank %d: %v", c.rank, err)
				}
				if err := c.Leave(); err != nil {
					t.Error(err)
				}
				c.Close()
			}
			if err := <-closed; err != nil {
				t.Error(err)
			}
			if c, err := net.Dial("tcp", others.Server); err == nil {
				c.Close()
				t.Error("somebody still listens")
			}
		})
	}
}

// TestServingRankFails: the others learn why before the service is gone.
func TestServingRankFails(t *testing.T) {
	for what, c := range map[string]struct {
		linger time.Duration
		end    func(c *Client)
		want   news
	}{
		"fails": {time.Hour, func(c *Client) { c.Fail(0, 1, "out of luck") }, news{what: "failed", rank: 0, cause: "out of luck"}},
		"ends":  {time.Hour, func(c *Client) {}, news{what: "failed", rank: 0, cause: "its connection to the rendezvous ended"}},
		"leaves early": {1, func(c *Client) {
			if err := c.Leave(); err != nil {
				t.Error(err)
			}
		}, news{what: "left", rank: 0}},
	} {
		t.Run(what, func(t *testing.T) {
			s := Setup{Server: fmt.Sprintf("127.0.0.1:%d", testmain.Port(t)), Key: jobkey.New(), Serve: true, Linger: c.linger}
			e, ch := events(4)
			var other *Client
			joined := make(chan error, 1)
			go func() {
				var err error
				other, err = s.Join(within(t), Hello{Rank: 1, Size: 2, Host: "h", Port: 1}, e)
				joined <- err
			}()
			first, err := s.Join(within(t), Hello{Rank: 0, Size: 2, Host: "h", Port: 1}, Events{})
			if err != nil {
				t.Fatal(err)
			}
			if err := <-joined; err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			c.end(first)
			first.Close()
			m := &member{other, t, ch}
			m.expect(c.want)
			if c.linger == 1 { // the job goes on without the service
				<-other.ended
				if err := other.Put("k", nil); !errors.Is(err, errs.ErrClosed) {
					t.Errorf("put: %v", err)
				}
				if err := other.Leave(); err != nil {
					t.Errorf("leave: %v", err)
				}
				select {
				case n := <-ch:
					t.Errorf("then %+v", n)
				default:
				}
			}
		})
	}
}

// TestServingRankRefused: what rank 0 cannot serve, and what it serves to no rank.
func TestServingRankRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := Setup{Server: l.Addr().String(), Key: jobkey.New(), Serve: true}
	_, err = s.Join(within(t), Hello{Size: 1, Host: "h", Port: 1}, Events{})
	if !errors.Is(err, errs.ErrResource) || !strings.Contains(err.Error(), s.Server) || !strings.Contains(err.Error(), "ARGON_RENDEZVOUS_SERVE=0") {
		t.Errorf("taken: %v", err)
	}
	s = Setup{Server: fmt.Sprintf("127.0.0.1:%d", testmain.Port(t)), Key: jobkey.New(), Serve: true}
	growing(t, 200*time.Millisecond, func(d time.Duration) error {
		s.Patience = d
		_, err := s.Join(within(t), Hello{Rank: 0, Size: 3, Host: "h", Port: 1}, Events{})
		if !errors.Is(err, errs.ErrPeer) || !strings.Contains(err.Error(), "ranks 1 and 2 of 3 did not join within "+d.String()) {
			return fmt.Errorf("alone: %v", err)
		}
		return nil
	})
	s.Patience = limit
	growing(t, 200*time.Millisecond, func(d time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		if _, err = s.Join(ctx, Hello{Rank: 0, Size: 3, Host: "h", Port: 1}, Events{}); !errors.Is(err, errs.ErrNotReady) || !strings.Contains(err.Error(), "ranks 1 and 2") {
			return fmt.Errorf("impatient: %v", err)
		}
		return nil
	})
	// A rank whose own patience is shorter than that of its context.
	s.Patience = 100 * time.Millisecond
	for _, s.Serve = range []bool{false, true} {
		_, err = s.Join(t.Context(), Hello{Rank: 1, Size: 3, Host: "h", Port: 1}, Events{})
		if !errors.Is(err, errs.ErrNotReady) || !strings.Contains(err.Error(), "ARGON_JOIN_TIMEOUT") || strings.Contains(err.Error(), "rank 0 is to") != s.Serve {
			t.Errorf("nobody: %v", err)
		}
	}
}

func TestBadArguments(t *testing.T) {
	key := jobkey.New()
	good := Hello{Rank: 1, Size: 2, Host: "h", Port: 1}
	for want, change := range map[string]func(h *Hello){
		"0 ranks":         func(h *Hello) { h.Size = 0 },
		"65537 ranks":     func(h *Hello) { h.Size = jobenv.MaxRanks + 1 },
		"rank 2":          func(h *Hello) { h.Rank = 2 },
		"rank -1":         func(h *Hello) { h.Rank = -1 },
		"256 bytes":       func(h *Hello) { h.Host = strings.Repeat("h", 256) },
		"1025 bytes":      func(h *Hello) { h.Agree = strings.Repeat("h", 1025) },
		"which means any": func(h *Hello) { h.Addr = addrPort(&net.TCPAddr{IP: net.IPv4zero}).Addr() },
		"ARGON_IFACE":     func(h *Hello) { h.Addr = addrPort(&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}).Addr() },
	} {
		h := good
		change(&h)
		if _, err := (Setup{Server: "127.0.0.1:1", Key: key}).Join(t.Context(), h, Events{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", h, err, want)
		}
		if _, err := (Setup{Server: "127.0.0.1:1", Key: key, Serve: true}).Join(t.Context(), h, Events{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", h, err, want)
		}
	}
	if _, err := (Setup{Server: "nowhere", Key: key}).Join(t.Context(), good, Events{}); !errors.Is(err, errs.ErrBadArg) {
		t.Errorf("no port: %v", err)
	}
	if _, err := (Setup{Server: "127.0.0.1:1", Key: jobkey.Key{}}).Join(t.Context(), good, Events{}); !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), "ARGON_JOB_KEY") {
		t.Errorf("no key: %v", err)
	}
	for want, c := range map[string]ServerConfig{
		"0 ranks": {Key: key}, "65537 ranks": {Key: key, Size: jobenv.MaxRanks + 1}, "no job key": {Size: 1}, "Patience is -1s": {Key: key, Size: 1, Patience: -time.Second},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if s, err := Serve(l, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v; want %q", s, err, want)
		}
		l.Close()
	}
}

// TestTune: the kernel is told when a host counts as dead, on both sides.
func TestTune(t *testing.T) {
	const dead = 42 * time.Second
	j := serve(t, ServerConfig{Size: 1, DeadTime: dead})
	c := j.all()[0]
	j.mu.Lock()
	conns := []net.Conn{c.conn}
	for p := range j.peers {
		conns = append(conns, p.conn)
	}
	j.mu.Unlock()
	for _, conn := range conns {
		raw, err := conn.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		j.eventually("tuned", func() (ok bool) {
			raw.Control(func(fd uintptr) {
				const userTimeout = 18 // TCP_USER_TIMEOUT
				ms, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeout)
				idle, err2 := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE)
				ok = err == nil && err2 == nil && ms == int(dead.Milliseconds()) && idle == 14
			})
			return ok
		})
	}
}
