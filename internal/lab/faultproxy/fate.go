package faultproxy

import (
	"math/rand/v2"
	"time"

	"github.com/argon-go/argon/internal/errs"
)

// Faults are the faults of a proxy. The zero value passes datagrams on as they
// are. Each of the first group is the probability for one datagram, 0 to 1.
type Faults struct {
	Drop      float64 // lost
	Duplicate float64 // comes twice; the chances below are for each of the two
	Corrupt   float64 // one to four neighbouring bytes are changed
	Truncate  float64 // any number of bytes is missing at its end, perhaps all
	Extend    float64 // one to 64 bytes are added at its end
	Delay     float64 // late
	Reorder   float64 // overtaken by later datagrams of its flow, if it is not late anyway

	// ReorderBy is by how many datagrams one is overtaken at most; 0 means 8.
	// ReorderFor is how long it waits for them at most; 0 means 5 ms.
	ReorderBy  int
	ReorderFor time.Duration
	// DelayBy is how late one is at most; 0 means 5 ms.
	DelayBy time.Duration
}

// Storm is everything at once, as bad as the weather gets that a job must
// survive: 20 % loss, 10 % duplication, 50 % reordering, 5 % corruption, and some
// cut, extended and late.
func Storm() Faults {
	return Faults{
		Drop: 0.2, Duplicate: 0.1, Reorder: 0.5, Corrupt: 0.05, Truncate: 0.02, Extend: 0.02, Delay: 0.05,
		ReorderFor: 300 * time.Microsecond, DelayBy: 300 * time.Microsecond,
	}
}

// ensure checks f and fills in what is 0.
func (f *Faults) ensure() error {
	for _, p := range []struct {
		name string
		v    float64
	}{
		{"Drop", f.Drop},
		{"Duplicate", f.Duplicate},
		{"Corrupt", f.Corrupt},
		{"Truncate", f.Truncate},
		{"Extend", f.Extend},
		{"Reorder", f.Reorder},
		{"Delay", f.Delay},
	} {
		if !(p.v >= 0 && p.v <= 1) {
			return errs.BadArg("faultproxy: Faults.%s is %v; a probability is 0 to 1", p.name, p.v)
		}
	}
	if f.ReorderBy < 0 || f.ReorderFor < 0 || f.DelayBy < 0 {
		return errs.BadArg("faultproxy: Faults: ReorderBy %d, ReorderFor %v, DelayBy %v; none is negative", f.ReorderBy, f.ReorderFor, f.DelayBy)
	}
	if f.ReorderBy == 0 {
		f.ReorderBy = 8
	}
	if f.ReorderFor == 0 {
		f.ReorderFor = 5 * time.Millisecond
	}
	if f.DelayBy == 0 {
		f.DelayBy = 5 * time.Millisecond
	}
	return nil
}

// A fate lists the copies that the proxy makes of one datagram.
type fate struct {
	n    int // how many come of it: 0, 1 or 2
	copy [2]copyFate
}

// A copyFate is the harm and the delay of one copy of a datagram.
type copyFate struct {
	corrupt, truncate, extend bool
	damage                    uint64        // decides which bytes, if any of them
	behind                    int           // by how many datagrams it is overtaken, or
	delay                     time.Duration // how late it is
}

// decide is the fate of the i-th datagram from one rank to another. f has been
// ensured. It draws the same numbers whatever f is, so that two plans that differ
// in one chance differ in that fault only.
func decide(seed uint64, from, to int, i uint64, f *Faults) fate {
	rnd := rand.New(rand.NewPCG(mix(seed, uint64(from)<<32|uint64(uint32(to))), i))
	var x fate
	drop, twice := rnd.Float64() < f.Drop, rnd.Float64() < f.Duplicate
	for k := range x.copy {
		c := &x.copy[k]
		c.corrupt = rnd.Float64() < f.Corrupt
		c.truncate = rnd.Float64() < f.Truncate
		c.extend = rnd.Float64() < f.Extend
		reorder, late := rnd.Float64() < f.Reorder, rnd.Float64() < f.Delay
		behind, delay := rnd.Float64(), rnd.Float64()
		c.damage = rnd.Uint64()
		switch {
		case late:
			c.delay = 1 + time.Duration(delay*float64(f.DelayBy))
		case reorder:
			c.behind = 1 + int(behind*float64(f.ReorderBy))
		}
	}
	switch {
	case drop:
	case twice:
		x.n = 2
	default:
		x.n = 1
	}
	return x
}

// mix makes one number of two, such that neighbours do not look alike
// (splitmix64).
func mix(a, b uint64) uint64 {
	for _, v := range []uint64{b, 0} {
		a = (a ^ v) + 0x9e3779b97f4a7c15
		a = (a ^ a>>30) * 0xbf58476d1ce4e5b9
		a = (a ^ a>>27) * 0x94d049bb133111eb
		a ^= a >> 31
	}
	return a
}

// apply returns a copy of b as it arrives.
func (c *copyFate) apply(b []byte) []byte {
	b = append(make([]byte, 0, len(b)+64), b...)
	if !c.corrupt && !c.truncate && !c.extend {
		return b
	}
	rnd := rand.New(rand.NewPCG(c.damage, 0))
	if c.corrupt && len(b) > 0 {
		at := rnd.IntN(len(b))
		for i := range min(1+rnd.IntN(4), len(b)) {
			b[(at+i)%len(b)] ^= byte(1 + rnd.IntN(255)) // never back to what it was
		}
	}
	if c.truncate && len(b) > 0 {
		b = b[:rnd.IntN(len(b))]
	}
	if c.extend {
		for range min(1+rnd.IntN(64), maxDatagram-len(b)) {
			b = append(b, byte(rnd.Uint32()))
		}
	}
	return b
}
