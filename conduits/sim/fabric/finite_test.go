package fabric

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// finiteShape draws a network of finite buffers. safe: its routing excludes deadlocks.
func finiteShape(t *rapid.T) (p Params, nodes int, safe bool) {
	p = Params{
		Topology:   rapid.SampledFrom([]Topology{Torus, Mesh, Irregular}).Draw(t, "topology"),
		HopLatency: rapid.Int64Range(0, 20).Draw(t, "hop"),
		Byte:       rapid.Int64Range(0, 3).Draw(t, "byte"),
		Gap:        rapid.Int64Range(0, 20).Draw(t, "gap"),
		Free:       rapid.IntRange(0, 8).Draw(t, "free"),
		Packet:     rapid.SampledFrom([]int{0, 7, 16, 40}).Draw(t, "packet"),
		Flit:       rapid.SampledFrom([]int{1, 4, 16}).Draw(t, "flit"),
		Buffer:     rapid.IntRange(1, 8).Draw(t, "buffer"),
		Channels:   rapid.IntRange(1, 4).Draw(t, "channels"),
		Radix:      rapid.SampledFrom([]int{2, 3, 5}).Draw(t, "radix"),
		Routing:    Routing(rapid.IntRange(0, int(numRoutings)-1).Draw(t, "routing")),
		Wiring:     rapid.Uint64().Draw(t, "wiring"),
		Contention: true,
	}
	p.Latency = p.HopLatency + rapid.Int64Range(0, 5).Draw(t, "latency")
	nodes = rapid.IntRange(1, 40).Draw(t, "nodes")
	if p.Topology != Irregular && rapid.Bool().Draw(t, "flat") {
		x := rapid.IntRange(1, 7).Draw(t, "x")
		p.Dims = [3]int{x, (nodes + x - 1) / x, 1}
	}
	if p.Routing == WestFirst && (p.Topology != Mesh || p.Dims[2] != 1) {
		p.Routing = UpDown
	}
	safe = p.Routing == UpDown || p.Routing == WestFirst ||
		p.Routing == DimensionOrder && (p.Topology != Torus || p.Channels > 1)
	if !safe {
		p.Recover = rapid.Int64Range(1, 500).Draw(t, "recover")
	}
	return p, nodes, safe
}

// TestFinite: all that is sent arrives once and no sooner than it can, whatever the network; there is no
// deadlock where the routing excludes them, and nothing is left in the network.
func TestFinite(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p, nodes, safe := finiteShape(rt)
		msgs := draw(rt, nodes)
		again := slices.Clone(msgs)
		f, uses := play(rt, p, nodes, msgs)
		for i, m := range msgs {
			if m.got == 0 {
				rt.Fatalf("message %d, %+v, lost: %v", i, m, f.Deadlock())
			}
			if d := m.got - 1 - m.at - f.Unloaded(m.src, m.dst, m.bytes); d < 0 {
				rt.Fatalf("message %d, %+v, took %d less than it can", i, m, -d)
			}
		}
		s := f.Stats()
		if s.Delivered != uint64(len(msgs)) || safe && s.Deadlocks != 0 || f.Deadlock() != nil || s.Blocked > s.Requests || len(uses) != 0 {
			rt.Fatalf("stats %+v after %d messages, deadlock %v", s, len(msgs), f.Deadlock())
		}
		for i, c := range f.fin.ch {
			if c.worm != none || c.in != 0 || c.flying != 0 {
				rt.Fatalf("%s keeps %+v", f.fin.name(int32(i/p.Channels)), c)
			}
		}
		free := 0
		for i := f.fin.free; i != none; i = f.fin.worms[i].next {
			free++
		}
		if free != len(f.fin.worms) {
			rt.Fatalf("of %d packets %d are free", len(f.fin.worms), free)
		}
		checkEmpty(rt, f)
		if g, _ := play(rt, p, nodes, again); !slices.Equal(msgs, again) || g.Stats() != s {
			rt.Fatal("two runs differ")
		}
	})
}

// TestFiniteIdle: one message at a time takes what Unloaded says, but for the rounding to flits, if
// buffers hold what a link carries meanwhile.
func TestFiniteIdle(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p, nodes, _ := finiteShape(rt)
		p.Buffer, p.Gap = 64, 0
		msgs := draw(rt, nodes)
		for i := range msgs {
			msgs[i].at = Time(i) * 100_000
		}
		f, _ := play(rt, p, nodes, msgs)
		for i, m := range msgs {
			packets, _ := f.cut(m.bytes)
			d := m.got - 1 - m.at - f.Unloaded(m.src, m.dst, m.bytes)
			if most := Time(packets) * (Time(p.Flit)*p.Byte + 64 + Time(p.Free)*p.Byte); d < 0 || d > most {
				rt.Fatalf("message %d, %+v, took %d more than it should; %d is the rounding", i, m, d, most)
			}
		}
	})
}

// burst has every node send n messages to others at random.
func burst(f *Fabric, nodes, n, bytes int, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for range n {
		for src := range nodes {
			f.Inject(0, src, rng.IntN(nodes), bytes, 0)
		}
	}
}

// wormhole is a network whose packets of 8 flits are longer than its buffers.
var wormhole = Params{Topology: Torus, Dims: [3]int{8, 8, 1}, Latency: 100, HopLatency: 10, Byte: 1, Free: 16, Flit: 16, Packet: 128, Buffer: 2, Contention: true}

// TestRoutingDeadlock: a torus without virtual channels comes to a stop, which is found, named and, with Recover,
// resolved. With two channels it goes on.
func TestRoutingDeadlock(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(p *Params)
		dead bool
	}{
		{"torus, dimension order, no virtual channels", func(p *Params) { p.Channels = 1 }, true},
		{"torus, dimension order", func(p *Params) { p.Channels = 2 }, false},
		{"torus, up*/down*", func(p *Params) { p.Channels, p.Routing = 1, UpDown }, false},
		{"torus, shortest", func(p *Params) { p.Channels, p.Routing = 1, Shortest }, true},
		{"mesh, dimension order", func(p *Params) { p.Topology, p.Channels = Mesh, 1 }, false},
		{"mesh, west first", func(p *Params) { p.Topology, p.Channels, p.Routing = Mesh, 1, WestFirst }, false},
		{"mesh, shortest", func(p *Params) { p.Topology, p.Channels, p.Routing = Mesh, 1, Shortest }, true},
		{"irregular, up*/down*", func(p *Params) { p.Topology, p.Dims = Irregular, [3]int{} }, false},
		{"irregular, shortest", func(p *Params) { p.Topology, p.Dims, p.Routing = Irregular, [3]int{}, Shortest }, true},
	} {
		for _, recover := range []Time{0, 5000} {
			p := wormhole
			c.set(&p)
			p.Recover = recover
			var loop Loop
			got := 0
			f, err := New(p, 64, &loop, func(Time, uint64) { got++ })
			if err != nil {
				t.Fatal(err)
			}
			const n = 30
			burst(f, 64, n, 128, 7)
			loop.Run(f)
			s, d := f.Stats(), f.Deadlock()
			if (s.Deadlocks > 0) != c.dead || (d != nil) != (c.dead && recover == 0) || (got < 64*n) != (d != nil) {
				t.Errorf("%s: %d of %d messages, %+v, %v", c.name, got, 64*n, s, d)
			}
			if s.Deadlocks > 0 {
				t.Logf("%s: %d deadlocks of %.1f packets, %.2f of requests blocked", c.name, s.Deadlocks, float64(s.Circle)/float64(s.Deadlocks), float64(s.Blocked)/float64(s.Requests))
			}
			if d == nil {
				continue
			}
			// Each keeps the channel before the switch at which the next one's begins.
			for i, l := range d.Cycle {
				if len(d.Cycle) < 2 || !strings.Contains(d.Error(), fmt.Sprintf("%d packets", len(d.Cycle))) || slices.Contains(d.Cycle[:i], l) {
					t.Errorf("%s: %v", c.name, d)
				}
			}
		}
	}
}

// TestRing makes the deadlock of the books: four packets of a ring, each of which needs the link that the next one has.
func TestRing(t *testing.T) {
	p := wormhole
	p.Dims, p.Channels = [3]int{4, 1, 1}, 1
	var loop Loop
	f, err := New(p, 4, &loop, func(Time, uint64) {})
	if err != nil {
		t.Fatal(err)
	}
	n := f.fin
	for src := range 4 {
		f.Inject(0, src, (src+2)%4, 128, 0)
	}
	loop.Run(f)
	// Even positions go up and odd ones down where both ways are as long.
	if d := f.Deadlock(); d != nil {
		t.Fatalf("two packets each way: %v", d)
	}
	if n.name(0) != "(0,0,0) +x" || n.name(7) != "node 0 in" {
		t.Error(n.name(0), n.name(7))
	}
	p.Dims = [3]int{5, 1, 1}
	if f, err = New(p, 5, &loop, func(Time, uint64) {}); err != nil {
		t.Fatal(err)
	}
	for src := range 5 {
		f.Inject(loop.Now(), src, (src+2)%5, 128, 0)
	}
	loop.Run(f)
	d := f.Deadlock()
	if d == nil || len(d.Cycle) != 5 || !slices.Contains(d.Cycle, "(3,0,0) +x channel 0") || f.Stats().Delivered != 0 {
		t.Fatalf("%v, %+v", d, f.Stats())
	}
}

// TestBackPressure: a hot spot fills the buffers behind it, and holds up what only shares links with it.
func TestBackPressure(t *testing.T) {
	delay := func(buffer int) Time {
		p := wormhole
		p.Buffer, p.Dims = buffer, [3]int{8, 1, 1}
		var loop Loop
		var at Time
		f, err := New(p, 8, &loop, func(now Time, id uint64) {
			if id == 1 {
				at = now
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			f.Inject(0, 2, 3, 128, 0)
			f.Inject(0, 3, 3, 128, 0)
			f.Inject(0, 1, 3, 128, 0)
		}
		loop.RunUntil(f, 500)
		f.Inject(500, 0, 2, 128, 1)
		loop.Run(f)
		return at - 500
	}
	if bounded, open := delay(2), delay(0); 2*bounded < 3*open {
		t.Errorf("past a hot spot a message takes %d, %d where buffers are not bounded", bounded, open)
	}
}

// TestFiniteAllocations: nothing is allocated once pools have grown.
func TestFiniteAllocations(t *testing.T) {
	for _, r := range []Routing{DimensionOrder, WestFirst, UpDown} {
		p := wormhole
		p.Topology, p.Routing = Mesh, r
		var loop Loop
		f, err := New(p, 64, &loop, func(Time, uint64) {})
		if err != nil {
			t.Fatal(err)
		}
		n := 1.0
		for tries := 0; tries < 5 && n != 0; tries++ { // the watchdog of tests allocates, too, when it looks
			n = testing.AllocsPerRun(1, func() {
				for i := range 200 {
					f.Inject(loop.Now(), i%64, i*7%64, i*13%2000, 0)
				}
				loop.Run(f)
			})
		}
		if n != 0 {
			t.Errorf("%v: %v allocations", r, n)
		}
	}
}

// TestBufferBound: no channel but those into nodes ever has more flits, on the way or there, than its buffer holds.
func TestBufferBound(t *testing.T) {
	p := wormhole
	var loop Loop
	f, err := New(p, 64, &loop, func(Time, uint64) {})
	if err != nil {
		t.Fatal(err)
	}
	burst(f, 64, 3, 128, 3)
	n, full := f.fin, 0
	for len(loop.heap) > 0 {
		loop.RunUntil(f, loop.heap[0].t+1)
		for i, c := range n.ch {
			if link := int32(i / n.f.p.Channels); link%n.stride != n.stride-1 && int(c.in+c.flying) > p.Buffer {
				t.Fatalf("%s has %d flits and %d on the way", n.name(link), c.in, c.flying)
			}
			if int(c.in) == p.Buffer {
				full++
			}
		}
	}
	if full == 0 || f.Stats().Delivered != 3*64 {
		t.Errorf("%d full buffers, %+v", full, f.Stats())
	}
}

// TestDownOnly: what has gone down is never led up again.
func TestDownOnly(t *testing.T) {
	p := wormhole
	p.Topology, p.Dims, p.Radix = Irregular, [3]int{}, 5
	f, err := New(p, 64, &Loop{}, func(Time, uint64) {})
	if err != nil {
		t.Fatal(err)
	}
	n, led := f.fin, 0
	for dst := range uint32(64) {
		for s := range int32(64) {
			if uint32(s) == dst || n.distances(dst)[64+s] > 64 { // where no packet for dst has gone down to
				continue
			}
			for _, y := range n.ways(s, &worm{dst: dst, down: true}, nil) {
				led++
				if n.order[n.to[y.link]] < n.order[s] {
					t.Errorf("from %d to %d a packet that has gone down goes %s", s, dst, n.name(y.link))
				}
			}
		}
	}
	if led == 0 {
		t.Error("no ways down")
	}
}
