package fabric

import (
	"flag"
	"math"
	"testing"
)

var slots = flag.Int("fabric.slots", 2000, "how long experiments on crossbars run")

// Head-of-line blocking: with one queue per input and no buffers in the
// crossbar, uniform traffic gets 2-sqrt(2) = 58.6 % of the links' throughput
// (Karol, Hluchyj and Morgan 1987; the limit for many ports), and one overloaded
// output takes all others with it. Virtual output queues end both.
func TestHeadOfLine(t *testing.T) {
	limit := 2 - math.Sqrt2
	for _, c := range []struct {
		name     string
		x        Traffic
		min, max float64 // of Result.Output
	}{
		{"single", Traffic{Queue: Single, Load: 1}, limit - 0.01, limit + 0.02},
		{"single, buffer 1", Traffic{Queue: Single, Load: 1, Crosspoint: 1}, 0.75, 0.96},
		{"single, buffer 4", Traffic{Queue: Single, Load: 1, Crosspoint: 4}, 0.85, 0.99},
		{"voq", Traffic{Queue: VOQ, Load: 1}, 0.96, 1},
		{"voq, buffer 1", Traffic{Queue: VOQ, Load: 1, Crosspoint: 1}, 0.96, 1},
		{"single, hot", Traffic{Queue: Single, Load: 0.5, Hot: 0.25}, 0.05, 0.12},
		{"single, buffer 1, hot", Traffic{Queue: Single, Load: 0.5, Hot: 0.25, Crosspoint: 1}, 0.05, 0.15},
		{"voq, hot", Traffic{Queue: VOQ, Load: 0.5, Hot: 0.25}, 0.365, 0.385},
		{"voq, buffer 1, hot", Traffic{Queue: VOQ, Load: 0.5, Hot: 0.25, Crosspoint: 1}, 0.365, 0.385},
	} {
		c.x.Ports, c.x.Slots, c.x.Seed = 32, *slots, 1
		r, err := c.x.Run()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-22s  outputs %.3f, hot one %.3f, delay %.1f slots", c.name, r.Output, r.Hot, r.Delay)
		if r.Output < c.min || r.Output > c.max {
			t.Errorf("%s: outputs %.3f of a packet per slot, expected %.3f to %.3f", c.name, r.Output, c.min, c.max)
		}
		if c.x.Hot > 0 && r.Hot < 0.99 {
			t.Errorf("%s: the hot output idles: %.3f", c.name, r.Hot)
		}
	}
}

// The table of the documentation: run with -v.
func TestTrafficTable(t *testing.T) {
	for _, q := range []Queue{Single, VOQ} {
		for _, k := range []int{0, 1, 2, 4} {
			for _, ports := range []int{8, 32, 64} {
				if testing.Short() && ports > 8 {
					continue
				}
				r, err := Traffic{Ports: ports, Queue: q, Crosspoint: k, Load: 1, Slots: *slots / 4, Seed: 1}.Run()
				if err != nil {
					t.Fatal(err)
				}
				if r.Output <= 0.5 || r.Output > 1 {
					t.Errorf("%v, buffer %d, %d ports: %.3f", q, k, ports, r.Output)
				}
				t.Logf("saturation: %-6v buffer %d, %2d ports: %.3f", q, k, ports, r.Output)
			}
			for _, load := range []float64{0.3, 0.5, 0.7, 0.9, 0.96} {
				r, err := Traffic{Ports: 32, Queue: q, Crosspoint: k, Load: load, Slots: *slots / 4, Seed: 1}.Run()
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("delay: %-6v buffer %d, load %.2f: %6.2f slots, outputs %.3f", q, k, load, r.Delay, r.Output)
			}
		}
	}
}

func TestTrafficArguments(t *testing.T) {
	for _, x := range []Traffic{
		{Ports: 1, Slots: 10},
		{Ports: 2, Slots: 10, Load: 1.1},
		{Ports: 2, Slots: 10, Load: math.NaN()},
		{Ports: 2, Slots: 10, Hot: -1},
		{Ports: 2, Slots: 10, Crosspoint: -1},
	} {
		if _, err := x.Run(); err == nil {
			t.Errorf("%+v is taken", x)
		}
	}
}

// Inputs that all want one output get it in turn, and an input serves its
// destinations in turn: at any time no source has had two packets more than
// another.
func TestTurns(t *testing.T) {
	for _, c := range []struct {
		p          Params
		many, long bool // sources (else destinations); messages of many packets
	}{
		{Params{Queue: Single}, true, true},
		{Params{Queue: Single, Crosspoint: 1}, true, true},
		{Params{Queue: Single, Crosspoint: 3}, true, true},
		{Params{Queue: VOQ}, true, true},
		{Params{Queue: VOQ, Crosspoint: 1}, true, true},
		{Params{Queue: VOQ, Crosspoint: 3}, true, false},
		{Params{Queue: VOQ}, false, true},
		{Params{Queue: VOQ, Crosspoint: 1}, false, true},
		{Params{Queue: VOQ, Crosspoint: 3}, false, false},
		{Params{Topology: Torus}, false, true},
		{Params{Topology: FatTree}, false, true},
	} {
		const peers, packets = 5, 12
		p := c.p
		p.Contention, p.Gap, p.Packet = true, 10, 4
		var loop Loop
		f, err := New(p, peers+1, &loop, func(Time, uint64) {})
		if err != nil {
			t.Fatal(err)
		}
		shared := int(f.injection(0))
		if c.many {
			shared = int(f.ejection(0))
		}
		var had [peers]int
		f.trace = func(link int, _, _ Time, id uint64, _ bool) {
			if link != shared {
				return
			}
			had[id]++
			// The first may be ahead by what buffers hold, the others not by
			// more than the turn.
			if lead := had[id] - min(had[0], had[1], had[2], had[3], had[4]); lead > 2 {
				t.Errorf("%+v: %v packets, %d has had %d more than another", p, had, id, lead)
			}
		}
		n, size := packets, 4
		if c.long {
			n, size = 1, 4*packets
		}
		for range n {
			for i := range peers {
				if c.many {
					f.Inject(0, i+1, 0, size, uint64(i))
				} else {
					f.Inject(0, 0, i+1, size, uint64(i))
				}
			}
		}
		loop.Run(f)
		if had != [peers]int{packets, packets, packets, packets, packets} {
			t.Errorf("%+v: %v packets", p, had)
		}
	}
}
