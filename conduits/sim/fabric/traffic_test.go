package fabric

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/argon-go/argon/internal/errs"
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

// TestUnbalanced: where part of the traffic of an input has an output of its own, throughput dips in between, and is whole where
// all has (figure 3.9 of Papamichael 2007).
func TestUnbalanced(t *testing.T) {
	for _, own := range []float64{0, 0.25, 0.5, 0.75, 1} {
		var got []float64
		for _, x := range []Traffic{{Queue: VOQ}, {Queue: VOQ, Crosspoint: 1}, {Queue: Single, Crosspoint: 1}} {
			x.Ports, x.Load, x.Own, x.Slots, x.Seed = 32, 1, own, *slots, 1
			r, err := x.Run()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r.Output)
			if least := 0.8; x.Queue == VOQ && r.Output < least || own == 1 && r.Output < 0.99 {
				t.Errorf("%v, buffer %d, %v of its own: %.3f", x.Queue, x.Crosspoint, own, r.Output)
			}
		}
		t.Logf("| %.2f | %.3f | %.3f | %.3f |", own, got[0], got[1], got[2])
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

// Traffic is an experiment on a crossbar: packets of one size come to its
// inputs at random, at most one per input and slot, where a slot is the time that a
// packet keeps a link. It shows which part of the packets gets through.
type Traffic struct {
	Ports      int     // inputs, and as many outputs
	Queue      Queue   // at the inputs
	Crosspoint int     // packets in each crosspoint buffer
	Load       float64 // packets that come to each input in a slot, up to 1
	// Hot is the share of the packets that goes to output 0 on purpose; the
	// others go to all outputs alike.
	Hot float64
	// Own is the share of the others that goes to the output of the input's number.
	Own   float64
	Slots int    // how long to measure, after a quarter of that for warming up
	Seed  uint64 // decides what comes when
}

// Result has the figures of a Traffic.
type Result struct {
	Output float64 // packets per slot of each output but the hot one
	Hot    float64 // packets per slot of output 0; with Traffic.Hot 0 it counts among the others too
	Delay  float64 // mean time in slots from coming to having left, of what left
}

// Run runs the experiment. Memory grows with what does not get through. The
// error wraps errs.ErrBadArg.
func (x Traffic) Run() (Result, error) {
	if x.Ports < 2 || x.Slots < 4 || !(x.Load >= 0 && x.Load <= 1) || !(x.Hot >= 0 && x.Hot <= 1) {
		return Result{}, errs.BadArg("fabric: traffic %+v: at least 2 ports and 4 slots, Load and Hot from 0 to 1", x)
	}
	const slot = 1000
	p := Params{Gap: slot, Queue: x.Queue, Crosspoint: x.Crosspoint, Contention: true}
	begin := Time(x.Slots/4) * slot
	var all, hot int
	var delay Time
	var loop Loop
	// Inputs and outputs are different nodes, so that nothing loops back.
	f, err := New(p, 2*x.Ports, &loop, func(now Time, id uint64) {
		// The latency is none: what is delivered at a time begins to leave
		// then. The id is when it came, and the hot output's mark.
		if now < begin {
			return
		}
		if id&1 != 0 {
			hot++
		}
		all++
		delay += now - Time(id>>1) + slot
	})
	if err != nil {
		return Result{}, err
	}
	rng := rand.New(rand.NewPCG(x.Seed, 0x243f6a8885a308d3))
	end := begin + Time(x.Slots)*slot
	order := make([]int, x.Ports)
	for i := range order {
		order[i] = i
	}
	for now := Time(0); now < end; now += slot {
		// Events of this slot come before its new packets.
		loop.RunUntil(f, now+1)
		loop.now = now
		// No input is always the first to ask.
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, src := range order {
			if rng.Float64() >= x.Load {
				continue
			}
			dst := 0
			if rng.Float64() >= x.Hot {
				dst = rng.IntN(x.Ports)
				if x.Own > 0 && rng.Float64() < x.Own {
					dst = src
				}
			}
			id := uint64(now) << 1
			if dst == 0 {
				id |= 1
			}
			f.Inject(now, src, x.Ports+dst, 0, id)
		}
	}
	slots := float64(x.Slots)
	r := Result{Hot: float64(hot) / slots, Delay: math.NaN()}
	if x.Hot == 0 {
		r.Output = float64(all) / slots / float64(x.Ports)
	} else {
		r.Output = float64(all-hot) / slots / float64(x.Ports-1)
	}
	if all > 0 {
		r.Delay = float64(delay) / slot / float64(all)
	}
	return r, nil
}
