package nets

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"time"
)

// MaxPaths is how many paths a pair of hosts has at most, by size.
const MaxPaths = 4

// largest is the size from which on nothing changes.
const largest = 1 << 30

// Map is a graph with the hosts of a job. Any goroutine may use it.
type Map struct {
	graph *Graph
	on    []uint16 // by host: bit k is set if it is on network k
	sizes []uint64 // for which paths may differ

	mu    sync.Mutex
	known map[[2]uint16][]Path // by the networks of two hosts; without hosts
}

// Path is a way from one host to another.
type Path struct {
	From     uint64 // the least size of data that takes it
	Networks []int
	Hosts    []int // the two, and between them those that hand data on from one network to the next
}

// Next is the host and network that follow host on the path; ok is false if host is not
// on it, or is its end.
func (p *Path) Next(host int) (next, network int, ok bool) {
	i := slices.Index(p.Hosts, host)
	if i < 0 || i == len(p.Networks) {
		return 0, 0, false
	}
	return p.Hosts[i+1], p.Networks[i], true
}

// NewMap makes the map of hosts, so many, that are on networks as on reports.
func NewMap(g *Graph, hosts int, on func(host, network int) bool) *Map {
	m := &Map{graph: g, on: make([]uint16, hosts), known: map[[2]uint16][]Path{}}
	for h := range m.on {
		for k := range g.Networks {
			if on(h, k) {
				m.on[h] |= 1 << k
			}
		}
	}
	m.sizes = []uint64{0}
	for n := uint64(64); n <= largest; n *= 2 {
		m.sizes = append(m.sizes, n)
	}
	for i := range g.Networks {
		for _, s := range g.Networks[i].Steps {
			m.sizes = append(m.sizes, s.Size)
		}
	}
	slices.Sort(m.sizes)
	m.sizes = slices.Compact(m.sizes)
	return m
}

// Paths are the paths from host a to b, another one, by size, the first for the smallest;
// none if there is no way. Those from b to a are the same ones backwards.
func (m *Map) Paths(a, b int) []Path {
	low, high := min(a, b), max(a, b)
	l := slices.Clone(m.routes(m.on[low], m.on[high]))
	for i := range l {
		p := &l[i]
		p.Networks = slices.Clone(p.Networks)
		p.Hosts = append(make([]int, 0, len(p.Networks)+1), low)
		for j := 1; j < len(p.Networks); j++ {
			p.Hosts = append(p.Hosts, m.between(low, high, p.Networks[j-1], p.Networks[j]))
		}
		p.Hosts = append(p.Hosts, high)
		if a > b {
			slices.Reverse(p.Hosts)
			slices.Reverse(p.Networks)
		}
	}
	return l
}

// between is a host that hands on from network k to the next for two others, by turns for
// different ones. Neither of the two is on both networks, or the path would begin or end
// there, and no host hands on twice, or it would do so at once.
func (m *Map) between(a, b, k, next int) int {
	both := uint16(1<<k | 1<<next)
	for i := range m.on {
		if h := (a + b + i) % len(m.on); m.on[h]&both == both {
			return h
		}
	}
	panic("nets: a path through no host")
}

// Relayed reports whether some hosts reach each other through a third one.
func (m *Map) Relayed() bool {
	all := slices.Clone(m.on)
	slices.Sort(all)
	all = slices.Compact(all)
	for _, a := range all {
		for _, b := range all {
			if slices.ContainsFunc(m.routes(a, b), func(p Path) bool { return len(p.Networks) > 1 }) {
				return true
			}
		}
	}
	return false
}

// Relays reports whether a host may be such a third one, if there are any.
func (m *Map) Relays(host int) bool { return bits.OnesCount16(m.on[host]) > 1 }

// routes are the paths between hosts that are on networks a and b.
func (m *Map) routes(a, b uint16) []Path {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.known[[2]uint16{a, b}]
	if ok {
		return l
	}
	for _, n := range m.sizes {
		networks := m.shortest(a, b, n)
		if networks == nil {
			break
		}
		if k := len(l); k == 0 || k < MaxPaths && !slices.Equal(networks, l[k-1].Networks) {
			l = append(l, Path{From: n, Networks: networks})
		}
	}
	m.known[[2]uint16{a, b}] = l
	return l
}

// way is how a network is reached.
type way struct {
	latency  time.Duration
	networks []int
}

// shortest is the path for n bytes, nil if there is none. Datagrams of one transfer are on all
// networks of a path at once, so that it takes the sum of their latencies and the time of
// the slowest for n bytes. The least latency to a network is kept for each that may be
// the slowest so far, until none becomes less (as Dijkstra's algorithm would, of which
// the order does not matter with so few networks). Of two as long the one with fewer networks
// counts: a relay costs a nanosecond at least.
func (m *Map) shortest(a, b uint16, n uint64) []int {
	nets := m.graph.Networks
	least := make([][]way, len(nets)) // by network and by the slowest
	cost := make([]time.Duration, len(nets))
	for k := range nets {
		least[k] = make([]way, len(nets))
		s := nets[k].step(n)
		cost[k] = time.Duration(min(float64(n)/s.Rate*float64(time.Second), math.MaxInt64/4))
		if a>>k&1 != 0 {
			least[k][k] = way{s.Latency, []int{k}}
		}
	}
	for changed := m.graph.Relay >= 0; changed; {
		changed = false
		for k := range nets {
			for slowest, w := range least[k] {
				for next := range nets {
					if w.networks == nil || slices.Contains(w.networks, next) || !m.bridged(k, next) {
						continue
					}
					s := slowest
					if cost[next] > cost[s] {
						s = next
					}
					d := w.latency + max(m.graph.Relay, 1) + nets[next].step(n).Latency
					if o := &least[next][s]; o.networks == nil || d < o.latency {
						*o = way{d, append(slices.Clone(w.networks), next)}
						changed = true
					}
				}
			}
		}
	}
	var networks []int
	best := time.Duration(math.MaxInt64)
	for k := range nets {
		for slowest, w := range least[k] {
			if w.networks != nil && b>>k&1 != 0 && w.latency+cost[slowest] < best {
				best, networks = w.latency+cost[slowest], w.networks
			}
		}
	}
	return networks
}

// bridged reports whether some host is on both networks.
func (m *Map) bridged(k, next int) bool {
	both := uint16(1<<k | 1<<next)
	return slices.ContainsFunc(m.on, func(on uint16) bool { return on&both == both })
}

// Choices tells the paths of a pair by size, such as "fast; lan from 65536 bytes" or
// "left, b, right": from one network to another through host b.
func (m *Map) Choices(l []Path, name func(host int) string) string {
	if len(l) == 0 {
		return "no way"
	}
	var all []string
	for i := range l {
		s := m.Name(&l[i], name)
		if i > 0 {
			s += fmt.Sprintf(" from %d bytes", l[i].From)
		}
		all = append(all, s)
	}
	return strings.Join(all, "; ")
}

// Name tells one path.
func (m *Map) Name(p *Path, name func(host int) string) string {
	var s []string
	for i, k := range p.Networks {
		if i > 0 {
			s = append(s, name(p.Hosts[i]))
		}
		s = append(s, m.graph.Networks[k].Name)
	}
	return strings.Join(s, ", ")
}
