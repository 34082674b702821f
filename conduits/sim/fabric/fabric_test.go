package fabric

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// extoll is table 9-2's network trip with a link of 1 byte/ns.
var extoll = Params{
	Latency: 650_000, HopLatency: 50_000, Loop: 100_000, Byte: 1000, Free: 64, Gap: 20_000,
	Packet: 512, Contention: true,
}

// shape draws a network. Times are small, so that things happen at once.
func shape(t *rapid.T) (Params, int) {
	p := Params{
		Topology:   Topology(rapid.IntRange(0, int(FatTree)).Draw(t, "topology")),
		HopLatency: rapid.Int64Range(0, 5).Draw(t, "hop"),
		Loop:       rapid.Int64Range(0, 5).Draw(t, "loop"),
		Byte:       rapid.Int64Range(0, 3).Draw(t, "byte"),
		Gap:        rapid.Int64Range(0, 20).Draw(t, "gap"),
		Free:       rapid.IntRange(0, 8).Draw(t, "free"),
		Packet:     rapid.SampledFrom([]int{0, 1, 4, 16}).Draw(t, "packet"),
		Queue:      Queue(rapid.IntRange(0, 1).Draw(t, "queue")),
		Crosspoint: rapid.IntRange(0, 3).Draw(t, "crosspoint"),
		Radix:      rapid.SampledFrom([]int{0, 4, 6, 8}).Draw(t, "radix"),
		Contention: true,
	}
	p.Latency = p.HopLatency + rapid.Int64Range(0, 5).Draw(t, "latency")
	n := rapid.IntRange(1, 70).Draw(t, "nodes")
	return p, n
}

// sent is one message of a test.
type sent struct {
	at              Time
	src, dst, bytes int
	got             Time // 0 until delivered, else one more than the time
}

type use struct {
	link       int
	start, occ Time
	id         uint64
	packet     uint32
	last       bool
}

// play runs messages, given in order of time, and returns what links did.
func play(t rapid.TB, p Params, nodes int, msgs []sent) (*Fabric, []use) {
	var f *Fabric
	loop := &Loop{}
	f, err := New(p, nodes, loop, func(now Time, id uint64) {
		m := &msgs[id]
		if m.got != 0 {
			t.Fatalf("message %d delivered twice", id)
		}
		if now != loop.Now() {
			t.Fatalf("message %d delivered for %d at %d", id, now, loop.Now())
		}
		m.got = now + 1
	})
	if err != nil {
		t.Fatal(err)
	}
	var uses []use
	seen := map[[2]uint64]uint32{} // packets of a message on a link
	f.trace = func(link int, start, occ Time, id uint64, last bool) {
		k := [2]uint64{uint64(link), id}
		uses = append(uses, use{link, start, occ, id, seen[k], last})
		seen[k]++
	}
	for i, m := range msgs {
		loop.RunUntil(f, m.at)
		f.Inject(m.at, m.src, m.dst, m.bytes, uint64(i))
	}
	loop.Run(f)
	return f, uses
}

func draw(t *rapid.T, nodes int) []sent {
	var at Time
	few := rapid.IntRange(1, nodes).Draw(t, "destinations")
	spread := rapid.Int64Range(0, 20).Draw(t, "spread")
	msgs := make([]sent, rapid.IntRange(1, 150).Draw(t, "messages"))
	for i := range msgs {
		at += rapid.Int64Range(0, spread).Draw(t, "wait")
		msgs[i] = sent{
			at: at, src: rapid.IntRange(0, nodes-1).Draw(t, "src"), dst: rapid.IntRange(0, few-1).Draw(t, "dst"),
			bytes: rapid.IntRange(0, 60).Draw(t, "bytes"),
		}
	}
	return msgs
}

// Every message arrives once, not before it could; links carry the packets of
// its path, in order, one at a time.
func TestTraffic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p, nodes := shape(rt)
		msgs := draw(rt, nodes)
		f, uses := play(rt, p, nodes, msgs)
		var delay Time
		for i, m := range msgs {
			if m.got == 0 {
				rt.Fatalf("message %d, %+v, lost", i, m)
			}
			d := m.got - 1 - m.at - f.Unloaded(m.src, m.dst, m.bytes)
			if d < 0 {
				rt.Fatalf("message %d, %+v, took %d less than it can", i, m, -d)
			}
			delay += d
		}
		s := f.Stats()
		if s.Messages != uint64(len(msgs)) || s.Delivered != s.Messages || s.Delay != delay {
			rt.Fatalf("stats %+v after %d messages of delay %d", s, len(msgs), delay)
		}
		checkLinks(rt, f, msgs, uses)
		checkWaiting(rt, f, msgs, uses)
		checkEmpty(rt, f)
	})
}

func checkLinks(t *rapid.T, f *Fabric, msgs []sent, uses []use) {
	free := map[int]Time{}
	type packetID struct {
		id     uint64
		packet uint32
	}
	paths := map[packetID][]int{}
	var busy Time
	for _, u := range uses {
		if u.start < free[u.link] {
			t.Fatalf("%s is given away for %d, but busy until %d", f.LinkName(u.link), u.start, free[u.link])
		}
		free[u.link] = u.start + u.occ
		busy += u.occ
		k := packetID{u.id, u.packet}
		paths[k] = append(paths[k], u.link)
		packets, tail := f.cut(msgs[u.id].bytes)
		if u.last != (int(u.packet) == packets-1) {
			t.Fatalf("%s carries the last packet of message %d as number %d of %d", f.LinkName(u.link), u.id, u.packet, packets)
		}
		size := f.p.Packet
		if int(u.packet) == packets-1 {
			size = tail
		}
		if u.occ != f.occ(size) {
			t.Fatalf("packet %d of %d with %d bytes took %d", u.packet, packets, size, u.occ)
		}
	}
	count := 0
	for i, m := range msgs {
		if m.src == m.dst {
			continue
		}
		packets, _ := f.cut(m.bytes)
		count += packets
		want := f.Path(nil, m.src, m.dst)
		for k := range packets {
			if got := paths[packetID{uint64(i), uint32(k)}]; !slices.Equal(got, want) {
				t.Fatalf("packet %d of message %d went by %v, not %v", k, i, got, want)
			}
		}
	}
	if len(paths) != count {
		t.Fatalf("links carried %d packets of %d", len(paths), count)
	}
	if s := f.Stats(); s.Busy != busy || s.Hops != uint64(len(uses)) {
		t.Fatalf("stats %+v, but links were busy for %d, %d times", s, busy, len(uses))
	}
}

// checkEmpty finds what an idle network keeps.
func checkEmpty(t *rapid.T, f *Fabric) {
	free := 0
	for i := f.free; i != none; i = f.msgs[i].next {
		free++
	}
	packets := 0
	for i := f.unpk; i != none; i = f.packets[i].next {
		packets++
	}
	if free != len(f.msgs) || packets != len(f.packets) {
		t.Fatalf("of %d messages %d are free, of %d packets %d", len(f.msgs), free, len(f.packets), packets)
	}
	sending := 0
	for i, n := range f.ports {
		if n.inHead != none || n.outHead != none || n.inKick || n.outKick || n.waiting {
			t.Fatalf("port %d still has %+v", i, n)
		}
		if n.sending != none {
			sending++ // freePlace is called when the place is wanted
		}
	}
	if f.used != sending {
		t.Fatalf("%d pairs in an idle network, %d of them last used", f.used, sending)
	}
}

// One message at a time takes what Unloaded says.
func TestIdle(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p, nodes := shape(rt)
		p.Contention = rapid.Bool().Draw(rt, "contention")
		msgs := draw(rt, nodes)
		for i := range msgs {
			msgs[i].at = Time(i) * 10_000
		}
		f, _ := play(rt, p, nodes, msgs)
		for i, m := range msgs {
			if d := f.Unloaded(m.src, m.dst, m.bytes); m.got != m.at+d+1 {
				rt.Fatalf("message %d, %+v, took %d, not %d", i, m, m.got-1-m.at, d)
			}
		}
		if s := f.Stats(); s.Delay != 0 || s.MaxDelay != 0 {
			rt.Fatalf("delay in an idle network: %+v", s)
		}
	})
}

// Without contention a message never waits and is one event.
func TestNoContention(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p, nodes := shape(rt)
		p.Contention = false
		loop := &Loop{}
		got := map[uint64]Time{}
		f, err := New(p, nodes, loop, func(now Time, id uint64) { got[id] = now })
		if err != nil {
			rt.Fatal(err)
		}
		msgs := draw(rt, nodes)
		for i, m := range msgs {
			f.Inject(0, m.src, m.dst, m.bytes, uint64(i))
		}
		if n := loop.Run(f); n != len(msgs) {
			rt.Fatalf("%d events for %d messages", n, len(msgs))
		}
		for i, m := range msgs {
			if got[uint64(i)] != f.Unloaded(m.src, m.dst, m.bytes) {
				rt.Fatalf("message %d, %+v, at %d", i, m, got[uint64(i)])
			}
		}
	})
}

// The same messages make the same trace.
func TestDeterminism(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p, nodes := shape(rt)
		msgs := draw(rt, nodes)
		again := slices.Clone(msgs)
		_, a := play(rt, p, nodes, msgs)
		_, b := play(rt, p, nodes, again)
		if !slices.Equal(a, b) || !slices.Equal(msgs, again) {
			rt.Fatal("two runs differ")
		}
	})
}

// A network trip of a smallest message is the profile's, and the sizes that
// follow are as the LogGP terms say.
func TestExtoll(t *testing.T) {
	for _, topology := range []Topology{Crossbar, Torus, FatTree} {
		p := extoll
		p.Topology = topology
		for _, c := range []struct {
			bytes int
			want  Time
		}{{0, 650_000}, {64, 650_000}, {65, 651_000}, {512, 1_098_000}, {1024, 1_610_000}} {
			msgs := []sent{{src: 0, dst: 1, bytes: c.bytes}}
			f, _ := play(t, p, 8, msgs)
			if got := msgs[0].got - 1; got != c.want || got != f.Unloaded(0, 1, c.bytes) {
				t.Errorf("%v: %d bytes took %d ps, not %d", topology, c.bytes, got, c.want)
			}
		}
	}
}

// Idle networks cost few events.
func TestEvents(t *testing.T) {
	for _, c := range []struct {
		topology  Topology
		dst, want int
	}{{Crossbar, 63, 1}, {Torus, 1, 1}, {Torus, 2, 2}, {Torus, 2 + 4*2 + 16*2, 6}, {FatTree, 1, 1}, {FatTree, 63, 4}} {
		p := extoll
		p.Topology, p.Radix, p.Crosspoint = c.topology, 8, 1
		loop := &Loop{}
		f, err := New(p, 64, loop, func(Time, uint64) {})
		if err != nil {
			t.Fatal(err)
		}
		f.Inject(0, 0, c.dst, 64, 0)
		if n := loop.Run(f); n != c.want {
			t.Errorf("%v to %d: %d events, expected %d", c.topology, c.dst, n, c.want)
		}
	}
}

// A short message does not wait for the end of a long one before it, only for
// the packet under way and one more.
func TestInterleave(t *testing.T) {
	for _, topology := range []Topology{Torus, FatTree, Crossbar} {
		p := extoll
		p.Topology = topology
		msgs := []sent{{src: 0, dst: 1, bytes: 1 << 20}, {src: 0, dst: 2, bytes: 8}}
		f, _ := play(t, p, 8, msgs)
		if d := msgs[1].got - 1; d > f.Unloaded(0, 2, 8)+2*f.occFull {
			t.Errorf("%v: short message took %d ps", topology, d)
		}
	}
}

func TestBadParams(t *testing.T) {
	for _, p := range []Params{
		{Topology: numTopologies},
		{Queue: numQueues},
		{Latency: -1},
		{Packet: -1},
		{Free: -1},
		{Crosspoint: 1 << 16},
		{Topology: Torus, Dims: [3]int{2, 2, 1}},
		{Topology: Torus, Dims: [3]int{8, 1, 0}},
		{Topology: Torus, HopLatency: 2, Latency: 1},
		{Topology: FatTree, Radix: 5},
		{Topology: FatTree, Radix: 2},
		{Buffer: 4},
		{Channels: 2},
		{Topology: Torus, Routing: Shortest},
		{Topology: Torus, Recover: 1},
		{Topology: Torus, Buffer: -1},
		{Topology: Torus, Buffer: 4, Routing: numRoutings},
		{Topology: Torus, Buffer: 4, Channels: 65},
		{Topology: Torus, Buffer: 4, Routing: WestFirst},
		{Topology: Mesh, Dims: [3]int{2, 2, 2}, Routing: WestFirst},
		{Topology: Mesh, Dims: [3]int{2, 2, 1}},
		{Topology: Irregular, Radix: 1},
		{Topology: Irregular, Routing: WestFirst},
		{Topology: Irregular, HopLatency: 2, Latency: 1},
	} {
		if _, err := New(p, 8, &Loop{}, func(Time, uint64) {}); err == nil {
			t.Errorf("%+v is taken", p)
		}
	}
	if _, err := New(Params{}, 0, &Loop{}, func(Time, uint64) {}); err == nil {
		t.Error("no nodes is taken")
	}
	if _, err := ParseTopology("ring"); err == nil {
		t.Error("a ring is taken")
	}
}

func TestStats(t *testing.T) {
	var loop Loop
	p := extoll
	f, err := New(p, 2, &loop, func(Time, uint64) {})
	if err != nil {
		t.Fatal(err)
	}
	f.Inject(0, 0, 1, 1000, 0)
	f.Inject(0, 0, 1, 100, 0)
	loop.Run(f)
	s := f.Stats()
	if want := (Stats{
		Messages: 2, Delivered: 2, Packets: 3, Bytes: 1100, Hops: 6, Delay: 1_000_000, MaxDelay: 1_000_000,
		Links: 4, Busy: 2_200_000, Busiest: 0, MostBusy: 1_100_000,
	}); s != want {
		t.Errorf("%+v, expected %+v", s, want)
	}
	if f.links[3].busy != s.MostBusy || f.links[2].busy != 0 {
		t.Errorf("links busy for %d and %d", f.links[3].busy, f.links[2].busy)
	}
}

func TestNames(t *testing.T) {
	for i := range numTopologies {
		if got, err := ParseTopology(i.String()); got != i || err != nil {
			t.Error(i, got, err)
		}
	}
	for i := range numRoutings {
		if got, err := ParseRouting(i.String()); got != i || err != nil {
			t.Error(i, got, err)
		}
	}
	for i := range numQueues {
		if got, err := ParseQueue(i.String()); got != i || err != nil {
			t.Error(i, got, err)
		}
	}
}

func ExampleFabric() {
	p := Params{Topology: Torus, Latency: 650_000, HopLatency: 50_000, Byte: 1000, Free: 64, Packet: 512, Contention: true}
	var loop Loop
	f, err := New(p, 64, &loop, func(now Time, id uint64) { fmt.Printf("message %d at %d ns\n", id, now/1000) })
	if err != nil {
		fmt.Println(err)
		return
	}
	f.Inject(0, 0, 42, 64, 1)
	f.Inject(0, 0, 1, 4096, 2)
	loop.Run(f)
	for _, l := range f.Path(nil, 0, 42) {
		fmt.Println(f.LinkName(l))
	}
	// Output:
	// message 1 at 900 ns
	// message 2 at 4746 ns
	// node 0 out
	// (0,0,0) +x
	// (1,0,0) +x
	// (2,0,0) +y
	// (2,1,0) +y
	// (2,2,0) +z
	// (2,2,1) +z
	// node 42 in
}
