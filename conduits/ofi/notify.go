//go:build ofi && cgo

package ofi

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/ofi/internal/fabric"
	"github.com/argon-go/argon/segment"
)

var _ conduits.NotifyPutter = (*transport)(nil)

// NotifyWords is all, if the provider keeps messages behind the writes that were posted
// before them.
func (t *transport) NotifyWords() int {
	if t.ep.Order&fabric.OrderSAW == 0 {
		return 0
	}
	return conduits.TransportWords
}

// PutNotify puts src and has words delivered behind it. A remote access has them follow it
// at once; of a put in messages they are sent when it is done.
func (t *transport) PutNotify(dst int, to segment.NLA, src []byte, words []uint32, cookie uint64) (bool, error) {
	return t.access(operation{cookie: cookie, mem: src, addr: to, note: append([]uint32(nil), words...)}, dst)
}

// follow has the note of op be sent, with mu held: its data is in place before whatever is
// posted from now on.
func (t *transport) follow(op *operation) {
	if op.note != nil {
		op.peer.notes.Add(op.note)
		op.note = nil
		t.makeDue(op.peer)
	}
}

// sendNotes adds notes to the frame for p as far as there is room, with mu held, and says
// whether all have been.
func (t *transport) sendNotes(p *peer) bool {
	for !p.notes.Empty() && p.lost == nil && !p.left {
		b := t.room(p, messages, messageBytes(len(p.notes.First()), 0))
		if b == nil {
			return false
		}
		words, _ := p.notes.Take()
		putMessage(b, words, nil)
		t.filled(p, messages)
	}
	return true
}
