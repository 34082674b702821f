package chaos

import "github.com/argon-go/argon/conduits"

// What follows is the card of the conduit below, whose multicasts are kept as all messages are.

// Barriers is how many registers the card has.
func (e *endpoint) Barriers() int { return e.card.Barriers() }

// EnterBarrier enters the card's barrier.
func (e *endpoint) EnterBarrier(reg int, low, high uint64) error {
	if !e.op() {
		return e.gone()
	}
	return e.card.EnterBarrier(reg, low, high)
}

// BarrierResult is the card's.
func (e *endpoint) BarrierResult(reg int) (phase, low, high uint64) {
	return e.card.BarrierResult(reg)
}

// BarrierLeft is a rank that the card waits for and that has left this endpoint, too.
func (e *endpoint) BarrierLeft(reg int) int {
	if r := e.card.BarrierLeft(reg); r >= 0 && e.Left(r) {
		return r
	}
	return -1
}

// BarrierMissing is the card's.
func (e *endpoint) BarrierMissing(reg int) []int { return e.card.BarrierMissing(reg) }

// MaxMulticast is the most bytes that the switches replicate.
func (e *endpoint) MaxMulticast() int { return e.card.MaxMulticast() }

// Multicast sends to all other ranks, or answers NoCredit falsely.
func (e *endpoint) Multicast(tag conduits.Tag, words []uint32, payload []byte) conduits.Status {
	if !e.op() {
		return conduits.Dead
	}
	if e.lie(e.cfg.NoCredit) {
		e.did.noCredit.Add(1)
		return conduits.NoCredit
	}
	e.mu.Lock()
	e.lied = 0
	e.mu.Unlock()
	return e.card.Multicast(tag, words, payload)
}
