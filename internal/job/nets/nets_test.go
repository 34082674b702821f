package nets

import (
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestParse reads a description, and what it is written as.
func TestParse(t *testing.T) {
	g, err := Parse("file", `
# a comment
network fast 10.1.0.0/16 latency 5us bandwidth 1GB/s from 64K latency 50us bandwidth 200MB/s hosts a,b # another
network lan 192.168.1.0/24 latency 50us bandwidth 10Gbit/s; relay 30us
`)
	if err != nil {
		t.Fatal(err)
	}
	want := &Graph{Relay: 30 * time.Microsecond, Networks: []Network{
		{"fast", netip.MustParsePrefix("10.1.0.0/16"), []string{"a", "b"}, []Step{{0, 5 * time.Microsecond, 1e9}, {64 << 10, 50 * time.Microsecond, 2e8}}},
		{"lan", netip.MustParsePrefix("192.168.1.0/24"), nil, []Step{{0, 50 * time.Microsecond, 1.25e9}}},
	}}
	if !reflect.DeepEqual(g, want) {
		t.Errorf("%+v, want %+v", g, want)
	}
	if again, err := Parse("again", g.String()); err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("%q: %+v, %v", g, again, err)
	}
	for a, on := range map[string]bool{"10.1.2.3": true, "10.2.0.1": false, "fd00::1": false} {
		if n := &g.Networks[0]; n.Has(netip.MustParseAddr(a), "0.a", "a") != on || n.Has(netip.MustParseAddr(a), "c") {
			t.Errorf("%s on %v: not %v", a, n, on)
		}
	}
}

// TestParseErrors: errors name the line, the value and what it may be.
func TestParseErrors(t *testing.T) {
	ok := "network n 10.0.0.0/8 latency 1us bandwidth 1GB/s"
	var many strings.Builder
	for i := range MaxNetworks + 1 {
		fmt.Fprintf(&many, "network n%d 10.0.0.0/8 latency 1us bandwidth 1GB/s\n", i)
	}
	for _, c := range []struct{ text, want string }{
		{"", "F names no network"},
		{"# nothing", "F names no network"},
		{"\nnet x", `F:2: "net": a line begins with network or relay`},
		{"network n", "F:1: a network has NAME PREFIX latency TIME bandwidth RATE"},
		{"network n 10.0.0.0 latency 1us bandwidth 1GB/s", `F:1: network n: "10.0.0.0" is no prefix of addresses, such as 10.1.0.0/16`},
		{"network n 10.1.0.0/8 latency 1us bandwidth 1GB/s", "prefix 10.1.0.0/8 has bits beyond its length; it is 10.0.0.0/8"},
		{"network n 10.0.0.0/8 latency 1 bandwidth 1GB/s", `network n: latency "1" is no time up to 10s, such as 5us`},
		{"network n 10.0.0.0/8 latency 11s bandwidth 1GB/s", `latency "11s" is no time up to 10s`},
		{"network n 10.0.0.0/8 latency 1us bandwidth 1Gbps", `bandwidth "1Gbps" is no rate from 1B/s to 1000000GB/s, such as 10Gbit/s or 1.2GB/s`},
		{"network n 10.0.0.0/8 latency 1us bandwidth NaNGB/s", `bandwidth "NaNGB/s" is no rate`},
		{"network n 10.0.0.0/8 bandwidth 1GB/s latency 1us", "latency TIME bandwidth RATE are expected"},
		{ok + " from 0 latency 1us bandwidth 1GB/s", `from "0" is no size above 0 bytes`},
		{ok + " from 2K latency 1us bandwidth 1GB/s from 1K latency 1us bandwidth 1GB/s", `from "1K" is no size above 2048 bytes`},
		{ok + " from 2K", `latency TIME bandwidth RATE are expected`},
		{ok + " host a", `"host a" at the end of the line; from SIZE, or hosts HOST,HOST,...`},
		{ok + " hosts a,,b", "a host without a name"},
		{ok + "\n" + ok, "F:2: network n has two lines"},
		{ok + ";network m fd00::/8 latency 1us bandwidth 1GB/s", "IPv4 and IPv6 in one job"},
		{ok + "\nrelay", `F:2: "relay": relay has one time, or none, on one line`},
		{ok + "\nrelay 1us\nrelay 2us", `F:3: "relay 2us"`},
		{ok + "\nrelay -1us", `relay "-1us" is no time`},
		{many.String(), fmt.Sprintf("network n%d: a job has at most %d", MaxNetworks, MaxNetworks)},
		{strings.Repeat("#", MaxText+1), fmt.Sprintf("F has %d bytes; a description has at most %d", MaxText+1, MaxText)},
	} {
		if _, err := Parse("F", c.text); err == nil || !strings.HasPrefix(err.Error(), "nets: F") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

// time is how long n bytes take by some networks.
func (m *Map) time(networks []int, n uint64) (d time.Duration) {
	slowest := 0.0
	for i, k := range networks {
		s := m.graph.Networks[k].step(n)
		d += s.Latency
		if i > 0 {
			d += max(m.graph.Relay, 1)
		}
		slowest = max(slowest, float64(n)/s.Rate*1e9)
	}
	return d + time.Duration(slowest)
}

// TestPaths compares the paths with the best of all ways there are.
func TestPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &Graph{Relay: time.Duration(rapid.IntRange(-1, 50).Draw(t, "relay, us")) * time.Microsecond}
		for k := range rapid.IntRange(1, 5).Draw(t, "networks") {
			n := Network{Name: fmt.Sprint(k)}
			for i := range rapid.IntRange(1, 2).Draw(t, "steps") {
				n.Steps = append(n.Steps, Step{
					uint64(i) * 5000, time.Duration(rapid.IntRange(0, 200).Draw(t, "us")) * time.Microsecond, rapid.SampledFrom([]float64{1e6, 1e7, 1e8, 1e9}).Draw(t, "rate"),
				})
			}
			g.Networks = append(g.Networks, n)
		}
		hosts := rapid.IntRange(2, 6).Draw(t, "hosts")
		on := make([]uint16, hosts)
		for h := range on {
			on[h] = uint16(rapid.IntRange(1, 1<<len(g.Networks)-1).Draw(t, "on"))
		}
		m := NewMap(g, hosts, func(h, k int) bool { return on[h]>>k&1 != 0 })
		a := rapid.IntRange(0, hosts-2).Draw(t, "a")
		b := rapid.IntRange(a+1, hosts-1).Draw(t, "b")
		l, back := m.Paths(a, b), m.Paths(b, a)
		if len(l) > MaxPaths || len(back) != len(l) {
			t.Fatalf("%d paths, %d back", len(l), len(back))
		}
		for i, p := range l {
			if i == 0 && p.From != 0 || i > 0 && p.From <= l[i-1].From {
				t.Fatalf("path %d is for %d bytes", i, p.From)
			}
			if len(p.Hosts) != len(p.Networks)+1 || p.Hosts[0] != a || p.Hosts[len(p.Networks)] != b {
				t.Fatalf("%v", p)
			}
			for j, k := range p.Networks {
				if on[p.Hosts[j]]>>k&1 == 0 || on[p.Hosts[j+1]]>>k&1 == 0 || slices.Contains(p.Hosts[:j], p.Hosts[j]) {
					t.Fatalf("%v by hosts that are on %b", p, on)
				}
				if h, n, ok := p.Next(p.Hosts[j]); !ok || h != p.Hosts[j+1] || n != k {
					t.Fatalf("after host %d of %v: %d by %d, %v", p.Hosts[j], p, h, n, ok)
				}
			}
			if len(p.Networks) > 1 && !m.Relayed() {
				t.Fatal("Relayed reports that none is")
			}
			for _, h := range p.Hosts[1:len(p.Networks)] {
				if !m.Relays(h) {
					t.Fatalf("Relays reports that host %d does not", h)
				}
			}
			other := back[i]
			slices.Reverse(other.Hosts)
			slices.Reverse(other.Networks)
			if !reflect.DeepEqual(other, p) {
				t.Fatalf("%v there, %v back", p, other)
			}
		}
		for _, n := range m.sizes {
			best := time.Duration(math.MaxInt64)
			var walk func(way []int)
			walk = func(way []int) {
				if on[b]>>way[len(way)-1]&1 != 0 {
					best = min(best, m.time(way, n))
				}
				for k := range g.Networks {
					if g.Relay >= 0 && !slices.Contains(way, k) && m.bridged(way[len(way)-1], k) {
						walk(append(slices.Clone(way), k))
					}
				}
			}
			for k := range g.Networks {
				if on[a]>>k&1 != 0 {
					walk([]int{k})
				}
			}
			i := len(l) - 1
			for i > 0 && l[i].From > n {
				i--
			}
			switch {
			case i < 0:
				if best != math.MaxInt64 {
					t.Fatalf("no path from host %d to %d for %d bytes; there is one of %v", a, b, n, best)
				}
			case len(l) < MaxPaths && m.time(l[i].Networks, n) > best+1:
				t.Fatalf("%d bytes take %v by %v; there is a path of %v", n, m.time(l[i].Networks, n), l[i], best)
			}
		}
	})
}
