package fabric

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
)

var nodesFlag = flag.Int("fabric.nodes", 65536, "nodes of benchmarks")

// wheel is an event queue of almost no cost of its own, so that benchmarks show
// the fabric's: buckets of a nanosecond, not sorted inside. Times are rounded
// up to buckets, which no link minds.
type wheel struct {
	slots [][]queued
	now   Time
	n     int
}

const wheelSlots = 1 << 11

type queued struct {
	t    Time
	a, b uint64
}

func newWheel() *wheel {
	w := &wheel{slots: make([][]queued, wheelSlots)}
	for i := range w.slots {
		w.slots[i] = make([]queued, 0, 256)
	}
	return w
}

func (w *wheel) Schedule(t Time, a, b uint64) {
	i := (max(t, w.now) + 999) / 1000
	if i-w.now/1000 >= wheelSlots {
		i = w.now/1000 + wheelSlots - 1
	}
	s := &w.slots[i%wheelSlots]
	*s = append(*s, queued{t, a, b})
	w.n++
}

// run hands out events until there have been n.
func (w *wheel) run(f *Fabric, n int) (done int) {
	for done < n && w.n > 0 {
		s := &w.slots[w.now/1000%wheelSlots]
		for i := 0; i < len(*s); i++ {
			e := (*s)[i]
			w.n--
			done++
			f.Handle(max(e.t, w.now), e.a, e.b)
		}
		*s = (*s)[:0]
		w.now += 1000
	}
	return done
}

// Every node keeps a message under way to a random other; a delivery starts
// the receiver's next.
func BenchmarkTraffic(b *testing.B) {
	for _, p := range []Params{
		{Topology: Crossbar, Queue: VOQ, Crosspoint: 1},
		{Topology: Crossbar, Queue: VOQ},
		{Topology: Crossbar, Queue: Single},
		{Topology: Torus},
		{Topology: FatTree},
	} {
		name := p.Topology.String()
		if p.Topology == Crossbar {
			name = fmt.Sprintf("%s/%v/%d", name, p.Queue, p.Crosspoint)
		}
		b.Run(name, func(b *testing.B) {
			q := extoll
			q.Topology, q.Queue, q.Crosspoint = p.Topology, p.Queue, p.Crosspoint
			nodes := *nodesFlag
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			rng := rand.New(rand.NewPCG(1, 2))
			w := newWheel()
			var f *Fabric
			f, err := New(q, nodes, w, func(now Time, id uint64) {
				f.Inject(now, int(id), rng.IntN(nodes), 64, uint64(rng.IntN(nodes)))
			})
			if err != nil {
				b.Fatal(err)
			}
			for i := range nodes {
				f.Inject(0, i, rng.IntN(nodes), 64, uint64(rng.IntN(nodes)))
			}
			w.run(f, 20*nodes) // until pools are as large as they get
			warm := f.Stats()
			b.ReportAllocs()
			b.ResetTimer()
			n := w.run(f, b.N)
			b.StopTimer()
			s := f.Stats()
			s.Delivered -= warm.Delivered
			s.Hops -= warm.Hops
			if s.Delivered > 0 {
				b.ReportMetric(float64(n)/float64(s.Delivered), "events/message")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(s.Hops), "ns/link")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(s.Delivered), "ns/message")
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
			w.slots = nil
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(nodes), "B/node")
			runtime.KeepAlive(f)
		})
	}
}

// Once pools have grown, nothing is allocated.
func TestNoAllocations(t *testing.T) {
	for _, topology := range []Topology{Crossbar, Torus, FatTree} {
		for _, queue := range []Queue{VOQ, Single} {
			for _, crosspoint := range []int{0, 1, 2} {
				p := extoll
				p.Topology, p.Queue, p.Crosspoint, p.Radix = topology, queue, crosspoint, 8
				var loop Loop
				var f *Fabric
				f, err := New(p, 32, &loop, func(Time, uint64) {})
				if err != nil {
					t.Fatal(err)
				}
				// Collections, which start at any time, allocate a handful for themselves.
				if n := testing.AllocsPerRun(50, func() {
					for i := range 500 {
						f.Inject(loop.Now(), i%32, i*7%32, i*13%2000, 0)
					}
					loop.Run(f)
				}); n != 0 {
					t.Errorf("%v, %v, %d: %v allocations", topology, queue, crosspoint, n)
				}
			}
		}
	}
}
