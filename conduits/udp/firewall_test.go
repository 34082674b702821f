package udp_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/lab/faultproxy"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// TestPathLost has ranks of three hosts be told a wrong address of one, as if a
// firewall dropped what goes there: the job fails before it begins, and names the
// hosts that do not reach each other.
func TestPathLost(t *testing.T) {
	testmain.Long(t)
	hole, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer hole.Close()
	for _, c := range []struct {
		name string
		lost func(from, to int) bool // ranks
		want []string
	}{
		{"one way", func(from, to int) bool { return from == 2 && to == 1 }, []string{"from red (rank 2 at 127.0.0.1:", "to green (rank 1 at 127.0.0.1:", "though they pass back"}},
		{"both ways", func(from, to int) bool { return from+to == 3 && from*to > 0 }, []string{"between green (rank 1 at", "and red (rank 2 at", "in either direction"}},
		{"none", func(from, to int) bool { return false }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			rewrite = func(viewer, rank int, addr netip.AddrPort) netip.AddrPort {
				if c.lost(viewer, rank) {
					return hole.LocalAddr().(*net.UDPAddr).AddrPort()
				}
				return addr
			}
			defer func() { rewrite = nil }()
			w := begin(t, "127.0.0.1", 4, "compute", "ARGON_DEADTIME=5s", "0:ARGON_HOST=0.blue", "1:ARGON_HOST=1.green", "2:ARGON_HOST=2.red", "3:ARGON_HOST=2.red")
			if c.want == nil {
				w.want(0)
				return
			}
			w.want(1, 121) // all others end because of rank 0's words
			for r := range 4 {
				w.says(r, append(c.want, "udp: no datagrams pass ", "a firewall")...)
				if s := w.ranks[r].err.String(); strings.Contains(s, "blue") || strings.Contains(s, "more pairs") {
					t.Errorf("more than one pair: %s", s)
				}
			}
		})
	}
}

// TestFarPaths has hosts with round trips of up to 800 ms between them, by paths
// that lose each fifth datagram: such paths work.
func TestFarPaths(t *testing.T) {
	p, err := faultproxy.New(faultproxy.Config{Size: 4, Seed: 1, Faults: faultproxy.Faults{
		Drop: 0.2, Delay: 1, DelayBy: 400 * time.Millisecond,
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	rewrite = p.Rewrite
	defer func() { rewrite = nil }()
	began := time.Now()
	begin(t, "127.0.0.1", 4, "join", "ARGON_DEADTIME=10m", "0:ARGON_HOST=a", "1:ARGON_HOST=b", "2:ARGON_HOST=c", "3:ARGON_HOST=d").want(0)
	if took := time.Since(began); took > 5*time.Minute {
		t.Errorf("it took %v: the dead time has been waited for", took)
	}
	var probes uint64
	for from := range 4 {
		for to := range 4 {
			probes += p.Stats(from, to).Received
		}
	}
	if probes < 12 {
		t.Errorf("%d datagrams have passed between 4 hosts", probes)
	}
}
