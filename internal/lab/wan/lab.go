package wan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/lab/netns"
	"github.com/argon-go/argon/internal/sys"
)

// A Lab is two hosts, network namespaces, with a relay between them.
type Lab struct {
	Net   *netns.Net
	Relay *Relay
	Addr  [2]netip.Addr // of the hosts on the relay

	t testing.TB
}

const (
	device = "wan0"
	// deviceQueue is how many packets wait for the relay to look: it decides what is
	// dropped, not the device.
	deviceQueue = 100000
	// socketBytes bounds the kernel's buffer of a TCP connection, bytes.
	socketBytes = 256 << 20
)

// NewLab makes the hosts, or skips the test with the reason why it cannot. It goes
// with the test.
func NewLab(t testing.TB, p Path) *Lab {
	t.Helper()
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skipf("wan: no TUN devices here: %v", err)
	}
	l := &Lab{Net: netns.New(t, 2), t: t, Addr: [2]netip.Addr{netip.MustParseAddr("10.79.0.1"), netip.MustParseAddr("10.79.0.2")}}
	var err error
	if l.Relay, err = StartRelay(p, device, [2]string{l.space(0), l.space(1)}); err != nil {
		t.Skipf("wan: no relay here: %v", err)
	}
	t.Cleanup(func() {
		if err := l.Relay.Close(); err != nil {
			t.Error(err)
		}
	})
	for i, h := range l.Net.Hosts {
		h.Second[0] = l.Addr[i]
		for _, c := range []string{
			fmt.Sprintf("ip link set %s txqueuelen %d", device, deviceQueue),
			"sysctl -qw net.ipv6.conf." + device + ".disable_ipv6=1",
			fmt.Sprintf("ip addr add %s/24 dev %s", l.Addr[i], device),
			"ip link set " + device + " up",
			"sysctl -qw net.ipv4.tcp_no_metrics_save=1",
			// A connection that begins with BBR is paced for ever, whatever is chosen
			// for it afterwards, and CUBIC's slow start ends later if it is paced. Any
			// namespace may begin with Reno.
			"sysctl -qw net.ipv4.tcp_congestion_control=reno",
			fmt.Sprintf("sysctl -qw net.ipv4.tcp_rmem='4096 131072 %d'", socketBytes),
			fmt.Sprintf("sysctl -qw net.ipv4.tcp_wmem='4096 131072 %d'", socketBytes),
		} {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			out, err := h.Command(ctx, "sh", "-c", c).CombinedOutput()
			cancel()
			if err != nil && !strings.Contains(c, "ipv6") {
				t.Fatalf("wan: %s: %v: %s", c, err, out)
			}
		}
	}
	return l
}

// space is the file of a host's network namespace.
func (l *Lab) space(side int) string { return filepath.Join("/run/netns", l.Net.Hosts[side].Name) }

// Listen listens for TCP at host side.
func (l *Lab) Listen(side int) net.Listener {
	l.t.Helper()
	var s net.Listener
	err := sys.InNamespace(l.space(side), func() (err error) {
		s, err = net.Listen("tcp4", netip.AddrPortFrom(l.Addr[side], 0).String())
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

// A Meter notes how many bytes have come by when.
type Meter struct {
	mu    sync.Mutex
	times []time.Time
	bytes []int64
}

// Add notes that there have been so many in all.
func (m *Meter) Add(at time.Time, bytes int64) {
	m.mu.Lock()
	m.times, m.bytes = append(m.times, at), append(m.bytes, bytes)
	m.mu.Unlock()
}

// First is when the meter began, and Last when it noted something last.
func (m *Meter) First() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.times) == 0 {
		return time.Time{}
	}
	return m.times[0]
}

// Last is when the meter noted something last.
func (m *Meter) Last() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.times) == 0 {
		return time.Time{}
	}
	return m.times[len(m.times)-1]
}

// at is how many bytes there had been at a time, between two notes in proportion.
func (m *Meter) at(t time.Time) float64 {
	i := sort.Search(len(m.times), func(i int) bool { return m.times[i].After(t) })
	switch {
	case i == 0:
		return 0
	case i == len(m.times):
		return float64(m.bytes[i-1])
	}
	part := float64(t.Sub(m.times[i-1])) / float64(m.times[i].Sub(m.times[i-1]))
	return float64(m.bytes[i-1]) + part*float64(m.bytes[i]-m.bytes[i-1])
}

// Rate is the mean rate between two times, bit/s.
func (m *Meter) Rate(from, to time.Time) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !to.After(from) {
		return 0
	}
	return (m.at(to) - m.at(from)) * 8 / to.Sub(from).Seconds()
}

// A Bulk is a transfer by the kernel's TCP from host 0 to host 1.
type Bulk struct {
	Meter // what has been received

	lab  *Lab
	conn *net.TCPConn
	wait sync.WaitGroup
	mu   sync.Mutex
	errs []error
}

// StartTCP begins a transfer that lasts until Stop, with the kernel's congestion
// control of the given name; it skips the test if the kernel has none such.
func (l *Lab) StartTCP(control string) *Bulk {
	l.t.Helper()
	b := &Bulk{lab: l}
	s := l.Listen(1)
	fail := func(err error) {
		if err != nil && !errors.Is(err, net.ErrClosed) {
			b.mu.Lock()
			b.errs = append(b.errs, err)
			b.mu.Unlock()
		}
	}
	var dialed net.Conn
	err := sys.InNamespace(l.space(0), func() (err error) {
		dialed, err = (&net.Dialer{Timeout: 20 * time.Second, FallbackDelay: -1}).Dial("tcp4", s.Addr().String())
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	b.conn = dialed.(*net.TCPConn)
	raw, err := b.conn.SyscallConn()
	if err != nil {
		l.t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) {
		got, err := sys.SetCongestion(fd, control)
		if err != nil || strings.TrimRight(got, "\x00") != control {
			l.t.Skipf("wan: no congestion control %s here: %q, %v", control, got, err)
		}
	})
	b.Add(time.Now(), 0)
	b.wait.Go(func() {
		defer s.Close()
		c, err := s.Accept()
		if err != nil {
			fail(err)
			return
		}
		defer c.Close()
		buf := make([]byte, 1<<20)
		sum, noted := int64(0), time.Now()
		for {
			n, err := c.Read(buf)
			sum += int64(n)
			if now := time.Now(); now.Sub(noted) > time.Millisecond || err != nil {
				b.Add(now, sum)
				noted = now
			}
			if err != nil {
				if err != io.EOF {
					fail(err)
				}
				return
			}
		}
	})
	b.wait.Go(func() {
		buf := make([]byte, 256<<10)
		for {
			if _, err := b.conn.Write(buf); err != nil {
				fail(err)
				return
			}
		}
	})
	return b
}

// Counts returns the kernel's counts of the connection.
func (b *Bulk) Counts() (c sys.TCPCounts) {
	if raw, err := b.conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { c = sys.CountTCP(fd) })
	}
	return c
}

// Stop ends the transfer; what is under way is lost.
func (b *Bulk) Stop() {
	b.lab.t.Helper()
	_ = b.conn.SetLinger(0)
	_ = b.conn.Close()
	b.wait.Wait()
}
