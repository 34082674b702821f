package fabric

import (
	"math"
	"math/rand/v2"

	"github.com/argon-go/argon/internal/errs"
)

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
	Hot   float64
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
// error wraps ErrBadArg.
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
