//go:build ofi && cgo

package ofi

// Long puts and gets of segments go by the provider's remote access. The segment is
// registered when it is attached; this side's memory is pinned for as long as the provider
// may use it. unsafe makes slices of the segment's memory, which is outside the Go heap.

import (
	"encoding/binary"
	"runtime"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/ofi/internal/fabric"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

var _ conduits.Direct = (*transport)(nil)

// Segment makes the segment's memory, which is registered in Attach: the Transport has to
// know where it is, and that is what the capability is for. No other rank is in reach.
func (t *transport) Segment(size uint64) ([]byte, error) {
	if size == 0 {
		t.segment = make([]byte, 1)[:0:0]
		return t.segment, nil
	}
	p, err := sys.Reserve(int64(size))
	if err != nil {
		return nil, errs.Resource("ofi: a segment: %v (-segment, ARGON_SEGMENT)", err)
	}
	runtime.AddCleanup(t, func(p unsafe.Pointer) { _ = sys.Unmap(p, int64(size)) }, p)
	t.segment = unsafe.Slice((*byte)(p), size)
	return t.segment, nil
}

// Reach is the own rank alone.
func (t *transport) Reach() (first int, views []segment.View, systems [][]byte) {
	v := segment.NewView(unsafe.Pointer(unsafe.SliceData(t.segment)), uint64(len(t.segment)), segment.RightsAll)
	return t.rank, []segment.View{v}, [][]byte{conduits.NewSystem()}
}

// card is what a rank tells the others at Attach: the key and the address of its segment,
// whether it has one that is registered, and where its endpoint is.
type card struct {
	key, base  uint64
	registered bool
	addr       []byte
}

const cardBytes = 17

func (c *card) encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, c.key)
	b = binary.LittleEndian.AppendUint64(b, c.base)
	if c.registered {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	return append(b, c.addr...)
}

func decodeCard(b []byte) (c card, ok bool) {
	if len(b) < cardBytes || b[16] > 1 {
		return c, false
	}
	return card{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), b[16] == 1, b[cardBytes:]}, true
}

// register makes this rank's card, with mu held.
func (t *transport) register(rights segment.Rights) (c card, err error) {
	if c.addr, err = t.ep.Name(); err != nil {
		return c, err
	}
	// The other side of an access is not registered, which FI_MR_LOCAL asks for, and keys
	// have 8 bytes.
	if len(t.segment) == 0 || t.ep.MR&(fabric.MRLocal|fabric.MRRaw) != 0 || rights&(segment.RightRead|segment.RightWrite) == 0 {
		return c, nil
	}
	r, err := t.ep.Register(t.segment, rights&segment.RightRead != 0, rights&segment.RightWrite != 0)
	c.key, c.base, c.registered = r.Key, r.Base, err == nil
	return c, err
}

// leastRemote is how long a put or get is at least that goes by remote access: shorter ones are not worth
// the provider's own handshake, bytes.
const leastRemote = 16 << 10

// remote says whether op goes by remote access, with mu held.
func (t *transport) remote(op *operation, rank int) bool {
	n, a := uint64(len(op.mem)), t.all[rank]
	return n >= leastRemote && n <= t.ep.MaxMsg && t.cards[rank].registered &&
		op.addr >= segment.AttachBase && uint64(op.addr-segment.AttachBase)+n <= a.Size
}

// startRemote posts operation id, or has it wait for the provider's room, with mu held.
func (t *transport) startRemote(p *peer, id uint32) {
	p.remote.Add(id)
	t.postRemote(p)
}

// postRemote posts what waits for p, with mu held.
func (t *transport) postRemote(p *peer) {
	for !p.remote.Empty() && p.lost == nil && !p.left && t.reach(p) {
		id := p.remote.First()
		op := &t.ops[id]
		if len(t.bare) == 0 {
			if err := t.growBare(); err != nil {
				t.lose(p, err)
				return
			}
		}
		c := t.bare[len(t.bare)-1]
		card, pin := &t.cards[p.rank], new(runtime.Pinner)
		post := [1]fabric.Op{{
			Kind: fabric.Write, Context: c, Peer: p.addr, Local: fabric.Pin(pin, op.mem), Len: uint64(len(op.mem)),
			Remote: card.base + uint64(op.addr-segment.AttachBase), Key: card.key,
		}}
		if op.get {
			post[0].Kind = fabric.Read
		}
		_, again, err := t.ep.Post(post[:])
		if again || err != nil {
			pin.Unpin()
			if err != nil {
				t.lose(p, err)
			} else {
				t.stuck++
				p.full = true
				t.makeDue(p)
			}
			return
		}
		p.posted++
		p.full = false
		p.flying += int64(len(op.mem))
		t.attend()
		p.remote.Take()
		t.bare = t.bare[:len(t.bare)-1]
		op.context = c
		t.slots[c] = slot{peer: p, rma: true, op: id, mem: op.mem, pin: pin}
	}
}

// growBare makes more contexts for remote accesses, which have no buffers, with mu held.
func (t *transport) growBare() error {
	n := max(32, len(t.slots)/4)
	first, err := t.ep.Grow(n, 0)
	if err != nil {
		return err
	}
	t.slots = append(t.slots, make([]slot, n)...)
	for i := range n {
		t.bare = append(t.bare, first+uint32(i))
	}
	return nil
}

// ended takes in that a remote access is over, with mu held. A put has changed data that its
// target may wait for, which a provider does not tell it.
func (t *transport) ended(d fabric.Done) {
	s := t.slots[d.Context]
	s.pin.Unpin()
	s.peer.heard++
	s.peer.flying -= int64(len(s.mem))
	t.slots[d.Context] = slot{}
	t.bare = append(t.bare, d.Context)
	if d.Err != 0 {
		t.lose(s.peer, t.ep.Explain("remote access", d)) // and the operation ends when it is known why
	}
	if s.stale || d.Err != 0 {
		return
	}
	if op := &t.ops[s.op]; !op.get {
		s.peer.touch = true
		t.makeDue(s.peer)
	}
	t.finish(s.op, nil)
}
