package udp

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
)

// Name is the conduit's name.
const Name = "udp"

func init() {
	conduits.Register(conduits.Conduit{
		Name: Name, Local: Local, Join: Join,
		Launch: &conduits.Launch{Rendezvous: true},
	})
}

// MaxLocal is the largest size of a job in one process: each rank has a socket.
const MaxLocal = 512

// Datagrams inside one host. Large ones cost the least: puts by 65,000 bytes took
// half to two thirds of the time that they took by 8192 (BenchmarkPut and
// BenchmarkIncast). But only if the sockets keep many of them: with 200 KiB, which
// most systems allow at first, three times as long.
const (
	roomyDatagram = 65000
	localDatagram = 8192
	roomy         = 4 << 20 // bytes that a socket keeps
)

// hostDatagram is the largest datagram that suits a socket if all peers are on
// the same host.
func hostDatagram(s *socket) int {
	if room, err := syscall.GetsockoptInt(int(s.fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF); err != nil || room < roomy {
		return localDatagram
	}
	return roomyDatagram
}

// limits are the limits of c, with defaults, for a job of n ranks, at most most.
func limits(n, most int, c conduits.Config) (conduits.Limits, error) {
	if n < 1 || n > most {
		return conduits.Limits{}, errs.BadArg("udp: %d ranks; 1 to %d (-n)", n, most)
	}
	return c.Limits(Name)
}

// localBook is the book of a job in one process: small enough for a map, whose
// point is that no other socket's datagrams are taken.
type localBook struct {
	addrs []netip.AddrPort
	ranks map[netip.AddrPort]int
}

func (b *localBook) addr(rank int) netip.AddrPort { return b.addrs[rank] }

func (b *localBook) source(from netip.AddrPort) (int, bool) {
	r, ok := b.ranks[from]
	return r, ok
}

// sockets opens n sockets on the loopback interface that know each other.
func sockets(n int) ([]*socket, error) {
	l := make([]*socket, n)
	b := &localBook{make([]netip.AddrPort, n), make(map[netip.AddrPort]int, n)}
	start := time.Now()
	marks := make([]atomic.Uint64, n)
	for r := range l {
		conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err == nil {
			l[r], err = newSocket(conn, r, b, start, false)
		}
		if err != nil {
			for _, s := range l[:r] {
				s.Close()
			}
			return nil, errs.Resource("udp: socket of rank %d of %d: %v (-n; ulimit -n)", r, n, err)
		}
		l[r].marks = marks
		b.addrs[r] = conn.LocalAddr().(*net.UDPAddr).AddrPort()
		b.ranks[b.addrs[r]] = r
	}
	return l, nil
}

// Local opens all ranks of a job in this process, on sockets of the loopback
// interface. Their datagrams are not sealed.
func Local(n int, c conduits.Config) ([]conduits.Endpoint, error) {
	return conc.UpcastSlice[conduits.Endpoint](openLocal(n, c))
}

func openLocal(n int, c conduits.Config) ([]*Endpoint, error) {
	lim, err := limits(n, MaxLocal, c)
	if err != nil {
		return nil, err
	}
	l, err := sockets(n)
	if err != nil {
		return nil, err
	}
	b := newBoard(n)
	epoch := rand.Uint32() | 1
	eps := make([]*Endpoint, n)
	for r := range eps {
		e, err := newEndpoint(seat{b, r, spawn}, l[r], lim, nil, engine.Config{
			Rank: r, Size: n, Epoch: epoch, Datagram: hostDatagram(l[r]),
			InitialRTT: nearRTT,
			// Ranks of one process do not die one by one.
			DeadTime: 24 * time.Hour,
		})
		if err != nil {
			for _, s := range l {
				s.Close()
			}
			return nil, err
		}
		if n <= min(runtime.GOMAXPROCS(0), sys.Processors()) {
			e.patience.Set(mostPolls, true)
		}
		b.eps = append(b.eps, e)
		eps[r] = e
	}
	return eps, nil
}

// spawn starts a goroutine.
func spawn(f func()) { go f() }
