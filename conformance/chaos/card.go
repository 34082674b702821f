package chaos

import "github.com/argon-go/argon/conduits"

// card is that of the conduit below, whose multicasts are kept as all messages are.
type card struct {
	conduits.Card
	e *endpoint
}

// EnterBarrier enters the card's barrier.
func (k card) EnterBarrier(reg int, low, high uint64) error {
	if !k.e.op() {
		return k.e.gone()
	}
	return k.Card.EnterBarrier(reg, low, high)
}

// BarrierLeft is a rank that the card waits for and that has left this endpoint, too.
func (k card) BarrierLeft(reg int) int {
	if r := k.Card.BarrierLeft(reg); r >= 0 && k.e.Left(r) {
		return r
	}
	return -1
}

// Multicast sends to all other ranks, or answers NoCredit falsely.
func (k card) Multicast(tag conduits.Tag, words []uint32, payload []byte) conduits.Status {
	if !k.e.op() {
		return conduits.Dead
	}
	if k.e.lie(k.e.cfg.NoCredit) {
		k.e.did.noCredit.Add(1)
		return conduits.NoCredit
	}
	k.e.mu.Lock()
	k.e.lied = 0
	k.e.mu.Unlock()
	return k.Card.Multicast(tag, words, payload)
}
