package main

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/argon-go/argon/conduits/sim/fabric"
)

// netEvents is the event queue of a network by itself.
type netEvents struct {
	l   []netEvent
	seq uint64
}

type netEvent struct {
	at        fabric.Time
	seq, a, b uint64
}

func (q *netEvents) Len() int { return len(q.l) }
func (q *netEvents) Less(i, j int) bool {
	return q.l[i].at < q.l[j].at || q.l[i].at == q.l[j].at && q.l[i].seq < q.l[j].seq
}
func (q *netEvents) Swap(i, j int) { q.l[i], q.l[j] = q.l[j], q.l[i] }
func (q *netEvents) Push(x any)    { q.l = append(q.l, x.(netEvent)) }
func (q *netEvents) Pop() any {
	e := q.l[len(q.l)-1]
	q.l = q.l[:len(q.l)-1]
	return e
}

// Schedule implements fabric.Scheduler.
func (q *netEvents) Schedule(t fabric.Time, a, b uint64) {
	q.seq++
	heap.Push(q, netEvent{t, q.seq, a, b})
}

// netFlits is the flits of a packet of a network experiment, and netSlots how many times of a
// packet on a link it measures, after a quarter of that for warming up.
const (
	netFlits = 8
	netSlots = 400
)

// network is one that is measured.
type network struct {
	name     string
	topology fabric.Topology
	routing  fabric.Routing
	channels int
}

// networks are those of figures 2-20 to 2-22 of Nüssle 2008, and what virtual channels make of the torus.
var networks = []network{
	{"mesh, dimension order", fabric.Mesh, fabric.DimensionOrder, 1},
	{"mesh, west first", fabric.Mesh, fabric.WestFirst, 1},
	{"mesh, up*/down*", fabric.Mesh, fabric.UpDown, 1},
	{"mesh, shortest", fabric.Mesh, fabric.Shortest, 1},
	{"torus, dimension order", fabric.Torus, fabric.DimensionOrder, 1},
	{"torus, dimension order, 2 channels", fabric.Torus, fabric.DimensionOrder, 2},
	{"torus, up*/down*", fabric.Torus, fabric.UpDown, 1},
	{"torus, shortest", fabric.Torus, fabric.Shortest, 1},
}

// traffic is where the packets of a node go.
type traffic struct {
	name string
	dst  func(rng *rand.Rand, src, side int) int
}

// uniform goes to all nodes alike, hot one packet of 32 to the node in the middle, and unbalanced
// one of two to the node across.
var (
	uniform = traffic{"uniform", func(rng *rand.Rand, _, side int) int { return rng.IntN(side * side) }}
	hot     = traffic{"hot spot", func(rng *rand.Rand, _, side int) int {
		if rng.IntN(32) == 0 {
			return side*side/2 + side/2
		}
		return rng.IntN(side * side)
	}}
	unbalanced = traffic{"unbalanced", func(rng *rand.Rand, src, side int) int {
		if rng.IntN(2) == 0 {
			return side*side - 1 - src
		}
		return rng.IntN(side * side)
	}}
)

// within goes to nodes up to that far away in each dimension.
func within(far int) traffic {
	return traffic{fmt.Sprintf("up to %d away", far), func(rng *rand.Rand, src, side int) int {
		near := func(c int) int {
			low, high := max(0, c-far), min(side-1, c+far)
			return low + rng.IntN(high-low+1)
		}
		for {
			if dst := near(src/side)*side + near(src%side); dst != src {
				return dst
			}
		}
	}}
}

// netResult is what an experiment on a network gives.
type netResult struct {
	delay      float64 // mean time of a packet from its coming to its arrival, in times of a packet on a link
	throughput float64 // of each node's link, of what is offered
	blocked    float64 // share of the requests for a channel that wait
	deadlocks  float64 // for each packet that arrives
	circle     float64 // packets of a deadlock
}

// experiment sends packets at random: load of what a node's link carries.
func (s *study) experiment(w network, side int, load float64, to traffic) (netResult, error) {
	p := s.o.profile.Net
	p.Topology, p.Dims, p.Routing, p.Channels = w.topology, [3]int{side, side, 1}, w.routing, w.channels
	p.Flit, p.Buffer, p.Packet, p.Contention = fabric.DefaultFlit, fabric.DefaultBuffer, 0, true
	bytes := p.Free + (netFlits-1)*p.Flit
	slot := fabric.Time(bytes) * p.Byte
	if slot < 1 {
		return netResult{}, fmt.Errorf("profile %s: a network whose links take no time is never loaded", s.o.profile.Name)
	}
	p.Recover = 4 * slot
	begin, end := netSlots/4*slot, netSlots*5/4*slot
	var q netEvents
	var delay fabric.Time
	var arrived uint64
	f, err := fabric.New(p, side*side, &q, func(now fabric.Time, id uint64) {
		if now >= begin {
			delay += now - fabric.Time(id)
			arrived++
		}
	})
	if err != nil {
		return netResult{}, err
	}
	rng := rand.New(rand.NewPCG(1, uint64(w.topology)<<8|uint64(w.routing)))
	const comes = math.MaxUint64 // an event of ours: a packet comes to node a
	wait := func() fabric.Time { return 1 + fabric.Time(rng.ExpFloat64()*float64(slot)/load) }
	for node := range side * side {
		q.Schedule(wait(), uint64(node), comes)
	}
	var before fabric.Stats
	for warm := false; ; {
		e := heap.Pop(&q).(netEvent)
		if !warm && e.at >= begin {
			warm, before = true, f.Stats()
		}
		if e.at >= end {
			break
		}
		if e.b == comes {
			f.Inject(e.at, int(e.a), to.dst(rng, int(e.a), side), bytes, uint64(e.at))
			q.Schedule(e.at+wait(), e.a, comes)
			continue
		}
		f.Handle(e.at, e.a, e.b)
	}
	st := f.Stats()
	n := max(1, float64(arrived))
	dead := float64(st.Deadlocks - before.Deadlocks)
	return netResult{
		delay:      float64(delay) / float64(slot) / n,
		throughput: float64(arrived) / netSlots / float64(side*side),
		blocked:    float64(st.Blocked-before.Blocked) / max(1, float64(st.Requests-before.Requests)),
		deadlocks:  dead / n,
		circle:     float64(st.Circle-before.Circle) / max(1, dead),
	}, nil
}

// side is that of the largest square of up to 16 x 16 nodes.
func (s *study) side() int { return max(2, min(16, int(math.Sqrt(float64(s.o.ranks))))) }

// point adds the figures of a point of a curve.
func (s *study) point(w network, side int, to traffic, x int, r netResult) error {
	var l []figure
	for _, m := range []struct {
		metric, unit string
		value        float64
	}{
		{"delay", "packet times", r.delay},
		{"throughput", "of a link", r.throughput},
		{"blocked", "of requests", r.blocked},
		{"deadlocks", "a packet", r.deadlocks},
		{"circle", "packets", r.circle},
	} {
		l = append(l, figure{What: w.name + ", " + to.name, Ranks: side * side, X: x, Metric: m.metric, Value: m.value, Unit: m.unit})
	}
	return s.add(l, w.name, fmt.Sprint(x), fmt.Sprintf("%.2f", r.delay), fmt.Sprintf("%.3f", r.throughput),
		fmt.Sprintf("%.3f", r.blocked), fmt.Sprintf("%.5f", r.deadlocks), fmt.Sprintf("%.1f", r.circle))
}

// curves measures all networks at points of one kind of traffic each.
func (s *study) curves(title, column string, points []int, at func(x int) (load float64, to traffic)) error {
	side := s.side()
	if err := s.head(fmt.Sprintf("%d x %d nodes, %s", side, side, title), "", column, "delay", "throughput", "blocked", "deadlocks", "circle"); err != nil {
		return err
	}
	for _, w := range networks {
		for _, x := range points {
			load, to := at(x)
			r, err := s.experiment(w, side, load, to)
			if err == nil {
				err = s.point(w, side, to, x, r)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	return nil
}

// netLoads are the loads, in percent of a node's link.
var netLoads = []int{1, 2, 4, 8, 16, 32}

func networkLoad(s *study) error {
	for _, to := range []traffic{uniform, hot, unbalanced} {
		err := s.curves(to.name+" traffic; delay in times of a packet on a link", "load, %", netLoads,
			func(x int) (float64, traffic) { return float64(x) / 100, to })
		if err != nil {
			return err
		}
	}
	return nil
}

func networkLocality(s *study) error {
	return s.curves("by how far packets go in each dimension, at 16 % load", "far", []int{1, 2, 4, 8},
		func(x int) (float64, traffic) { return 0.16, within(x) })
}
