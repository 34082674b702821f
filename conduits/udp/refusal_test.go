package udp

import (
	"errors"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/segment"
)

// TestRefusals: a rank is given up when nothing but refusals that last came from the
// system for long enough while this host ran; the address and the error are named.
func TestRefusals(t *testing.T) {
	name := func() string { return "192.0.2.1:7" }
	step := 100 * time.Millisecond
	for _, c := range []struct {
		what  string
		errno syscall.Errno
		every time.Duration
		clear int // a datagram passes after so many
		given int // up after so many; 0: never
		dead  time.Duration
	}{
		{"no route", syscall.ENETUNREACH, step, 0, 11, 2 * time.Second},
		{"no way to the host", syscall.EHOSTUNREACH, step, 0, 11, 2 * time.Second},
		{"the interface is down", syscall.ENETDOWN, step, 0, 11, 2 * time.Second},
		{"an address of no interface", syscall.EADDRNOTAVAIL, step, 0, 3, 10 * time.Second},
		{"another family", syscall.EAFNOSUPPORT, step, 0, 3, 10 * time.Second},
		{"what the system does not take", syscall.EINVAL, step, 0, 3, 10 * time.Second},
		{"no memory for a packet", syscall.ENOMEM, step, 0, 0, 10 * time.Second},
		{"a full queue", syscall.EAGAIN, step, 0, 0, 10 * time.Second},
		{"no permission", syscall.EACCES, step, 0, 3, 10 * time.Second},
		{"a local firewall", syscall.EPERM, 10 * time.Second, 0, 11, 10 * time.Second},
		{"nobody there", syscall.ECONNREFUSED, step, 0, 0, 10 * time.Second},
		{"no memory", syscall.ENOBUFS, step, 0, 0, 10 * time.Second},
		{"too large", syscall.EMSGSIZE, step, 0, 0, 10 * time.Second},
		{"no route, for long", syscall.ENETUNREACH, step, 0, 41, 8 * time.Second},
		{"no permission, for long", syscall.EACCES, step, 0, 3, time.Hour},
		{"routes that flap", syscall.ENETUNREACH, step, 9, 0, 10 * time.Second},
	} {
		r := refusals{dead: c.dead}
		given, now := 0, time.Duration(0)
		for i := 1; i <= 50 && given == 0; i++ {
			if r.note(1, c.errno, now, name); r.verdict.Load() != nil {
				given = i
			}
			if c.clear > 0 && i%c.clear == 0 {
				r.passed([]outgoing{{dst: 1}})
			}
			now += c.every
		}
		if given != c.given {
			t.Errorf("%s: given up after %d, want %d", c.what, given, c.given)
		}
		if u := r.verdict.Load(); u != nil && (u.rank != 1 || !errors.Is(u.err, c.errno) || !strings.Contains(u.err.Error(), name())) {
			t.Errorf("%s: %+v", c.what, u)
		}
	}
}

// TestRefusalOfAddress: the system's words for a socket whose address has been taken away are
// those for what it never takes; the former is waited for as a route is, and named.
func TestRefusalOfAddress(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EINVAL, syscall.EADDRNOTAVAIL} {
		r := refusals{dead: 2 * time.Second, own: netip.MustParseAddr("192.0.2.77")} // of no host (RFC 5737)
		for i := 1; i <= 11; i++ {
			if r.verdict.Load() != nil {
				t.Fatalf("%v: given up after %d", errno, i-1)
			}
			r.note(1, errno, time.Duration(i)*100*time.Millisecond, func() string { return "192.0.2.1:7" })
		}
		if u := r.verdict.Load(); u == nil || !strings.Contains(u.err.Error(), "192.0.2.77 is on no interface any more") {
			t.Errorf("%v: %+v", errno, u)
		}
	}
	lo := netip.MustParseAddr("127.0.0.1")
	if _, mtu, ok := interfaceOf(lo); !ok || mtu < 68 || !strings.Contains(mtuOf(lo), "; here lo has ") {
		t.Errorf("lo: MTU %d, %v; %q", mtu, ok, mtuOf(lo))
	}
	if err := errTooLong(syscall.EMSGSIZE, 548, lo); err == nil || !strings.Contains(err.Error(), "548 bytes") || !strings.Contains(err.Error(), mtuOf(lo)) || !strings.Contains(err.Error(), EnvDatagram) {
		t.Errorf("%v", err)
	}
	if err := errTooLong(syscall.ENOBUFS, 548, lo); err != nil {
		t.Errorf("%v", err)
	}
}

// astray is a book in which rank 1 is where the system lets no process send to.
type astray struct{ book }

func (b astray) addr(rank int) netip.AddrPort {
	if rank == 1 {
		return netip.MustParseAddrPort("127.0.0.1:0")
	}
	return b.book.addr(rank)
}

// TestUnreachable: a rank that cannot be sent to fails the job with the system's
// error, long before the dead time.
func TestUnreachable(t *testing.T) {
	eps, err := Joined(seal.Authenticated, map[string]string{EnvDeadTime: "24h"})(2, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var got [2]counter
	var wg sync.WaitGroup
	for r, ep := range eps {
		wg.Go(func() {
			if err := ep.Attach(conduits.AttachConfig{Size: 1 << 16, Receiver: &got[r]}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	e := eps[0].(*joinedHere).Endpoint
	s := e.l.(*socket)
	s.out.Lock()
	s.book, s.out.dst = astray{s.book}, -1
	s.out.Unlock()
	if _, err := post.Put(eps[0], 1, segment.AttachBase, []byte{1}, conduits.RemoteDone, 1); err != nil {
		t.Fatal(err)
	}
	err = conduits.Wait(eps[0], nil, func() bool { return false })
	var p *conduits.PeerError
	if !errors.As(err, &p) || p.Rank != 1 || !strings.Contains(err.Error(), "127.0.0.1:0: invalid argument (EINVAL)") {
		t.Errorf("%v", err)
	}
	for _, ep := range eps {
		wg.Go(func() { _ = ep.Close() })
	}
	wg.Wait()
}
