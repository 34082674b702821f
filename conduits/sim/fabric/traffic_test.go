package fabric

import (
	"flag"
	"math"
	"testing"
)

var slots = flag.Int("fabric.slots", 2000, "how long experiments on crossbars run")

// Head-of-line blocking: with one queue per input and no buffers in the
// crossbar, uniform traffic gets 2-sqrt(2) = 58.6 % of the links' throughput
// (Karol, Hluchyj and Morgan, 1987; the limit for many ports), and one overloaded
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
