//go:build ofi && cgo

package ofi

import (
	"github.com/argon-go/argon/conduits/ofi/internal/fabric"
	"github.com/argon-go/argon/internal/conc"
)

// A provider may say of a write only that this side's memory is free, and not that the data
// is in place (FI_DELIVERY_COMPLETE). That is then found out by what does not overtake
// it: a message (FI_ORDER_SAW), which the target answers. A read behind it would not do: that
// order (FI_ORDER_RAW) is of the bytes that both touch, up to max_order_raw_size
// (fi_endpoint(3)). Without either, long puts go in pieces by messages.

// proof is how a rank knows that the data of a write is in place.
type proof uint8

const (
	byDelivery proof = iota // the write is over
	byMessage               // a message behind it has been answered
	unprovable              // nothing tells: no write is posted
)

// proof returns the way of proof that the provider offers.
func (t *transport) proof() proof {
	switch {
	case t.ep.Delivery:
		return byDelivery
	case t.ep.Order&fabric.OrderSAW != 0:
		return byMessage
	}
	return unprovable
}

// writes are those to a peer which are not known to be in place, guarded by transport.mu.
// Their keys stay in use.
type writes struct {
	// With byMessage: message number marks is to be sent if ask is set; its answer is of all
	// operations with a mark up to that.
	marks uint32
	ask   bool
	sent  conc.Queue[uint32] // operations, by mark
}

func (w *writes) any() bool { return !w.sent.Empty() }

// add takes in that the write of operation id has been posted.
func (w *writes) add(id uint32, op *operation) {
	op.mark, op.unproven, w.ask = w.marks, true, true
	w.sent.Add(id)
}

// askProof sends the message behind writes that have been posted to p, with mu held.
func (t *transport) askProof(p *peer) {
	if p.writes.ask {
		t.cut(p)
		t.filled(p, accesses)
	}
}

// proven takes in that p has answered message number mark, with rx and mu held; false if
// none of that number has been sent.
func (t *transport) proven(p *peer, mark uint32) bool {
	w := &p.writes
	if int32(mark-w.marks) >= 0 {
		return false
	}
	for !w.sent.Empty() {
		id := w.sent.First()
		op := &t.ops[id]
		if int32(op.mark-mark) > 0 {
			break
		}
		w.sent.Take()
		op.unproven = false
		if !op.moved {
			continue
		}
		if op.key != nil {
			t.unuse(p, op.key)
		}
		t.finish(id, nil)
	}
	return true
}

// unsure reports whether the write that s was, which is over, has to be proven yet, with mu
// held: its operation is under way then.
func (t *transport) unsure(s *slot) bool {
	op := &t.ops[s.op]
	if op.get || op.err != nil || t.proof() != byMessage {
		return false
	}
	op.moved = op.unproven
	return op.moved
}
