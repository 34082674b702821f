package barrier

import (
	"math"
	"strconv"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
)

// card is the barrier of the conduit's card (conduits.Card). What a rank brings is
// two words, low and high, of which the least and the greatest of all ranks come back:
//
//	               low     high
//	anonymous      2^64-1  0
//	named id       id      id+1
//	mismatch       0       2^64-1
//
// So ids are the same if high is low+1, and else low and high-1 are two that differ.
type card struct {
	unit conduits.Card
	// base is the card's number of a phase less the Barrier's.
	base atomic.Uint32
}

// most is greater than every id.
const most = math.MaxUint64

func (c *card) arrive(w word) error {
	low, high := uint64(most), uint64(0)
	switch {
	case w&wordMismatch != 0:
		low, high = 0, most
	case w&wordNamed != 0:
		low, high = uint64(w.id()), uint64(w.id())+1
	}
	n, _, _ := c.unit.BarrierResult(conduits.BarrierOfJob)
	c.base.Store(uint32(n) + 1 - w.phase())
	return c.unit.EnterBarrier(conduits.BarrierOfJob, low, high)
}

// known returns the combined knowledge of all ranks in phase; ok is false if it is not over.
func (c *card) known(phase uint32) (k knowledge, ok bool) {
	n, low, high := c.unit.BarrierResult(conduits.BarrierOfJob)
	switch {
	case (uint32(n)-c.base.Load())&phaseMask != phase || n == 0:
		return k, false
	case high == most:
		k.w = wordMismatch
	case high == 0:
	case low+1 == high:
		k.w = wordNamed | word(low)
	default:
		k = knowledge{w: wordMismatch | wordNamed | word(low), other: uint32(high - 1)}
	}
	return k, true
}

func (c *card) verdict(phase uint32) (word, bool) {
	k, ok := c.known(phase)
	return bare(k.w), ok
}

// spin has nothing to watch: where there is such a card nothing runs beside a rank that spins.
func (c *card) spin(uint32) {}

func (c *card) appendBlocked(b []byte, phase uint32) []byte {
	missing := c.unit.BarrierMissing(conduits.BarrierOfJob)
	if _, over := c.known(phase); over || len(missing) == 0 {
		return append(b, "all ranks have arrived"...)
	}
	b = append(b, "waiting for rank "...)
	b = append(b, conduits.RankList(missing)...)
	b = append(b, " (barrier "...)
	b = strconv.AppendInt(b, conduits.BarrierOfJob, 10)
	return append(b, " of the card)"...)
}

func (c *card) lacking(uint32) int { return c.unit.BarrierLeft(conduits.BarrierOfJob) }

func (c *card) explain(phase uint32) (string, [2]uint32, bool) {
	k, _ := c.known(phase)
	return k.explain()
}
