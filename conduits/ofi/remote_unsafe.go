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

// card is a rank's message to the others at Attach: the address and the key of its segment,
// whether it has one that is registered, whether it has keys for other memory, and where its
// endpoint is. With FI_MR_RAW bytes are of any number.
type card struct {
	base       uint64
	registered bool
	keys       bool
	raw        []byte // of the key, as it travels
	key        uint64 // made of raw when it is first used
	known      bool   // key is
	addr       []byte
}

const cardBytes = 10

func (c *card) encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, c.base)
	flags := byte(0)
	if c.registered {
		flags |= 1
	}
	if c.keys {
		flags |= 2
	}
	b = append(b, flags, byte(len(c.raw)))
	return append(append(b, c.raw...), c.addr...)
}

func decodeCard(b []byte) (c card, ok bool) {
	if len(b) < cardBytes || b[8] > 3 || int(b[9]) > min(fabric.MostRaw, len(b)-cardBytes) {
		return c, false
	}
	return card{
		base: binary.LittleEndian.Uint64(b), registered: b[8]&1 != 0, keys: b[8]&2 != 0,
		raw: b[cardBytes:][:b[9]], addr: b[cardBytes+int(b[9]):],
	}, true
}

// uses returns the access flags to register memory with these rights, as the provider asks for.
func (t *transport) uses(rights segment.Rights) (uses uint64) {
	if rights&segment.RightRead != 0 {
		uses |= fabric.RemoteRead
	}
	if rights&segment.RightWrite != 0 {
		uses |= fabric.RemoteWrite
	}
	if t.ep.MR&fabric.MRLocal != 0 {
		uses |= fabric.Local
	}
	return uses
}

// register makes this rank's card, with mu held.
func (t *transport) register(rights segment.Rights) (c card, err error) {
	if c.addr, err = t.ep.Name(); err != nil {
		return c, err
	}
	t.own.native, c.keys = true, true
	if len(t.segment) == 0 || rights&(segment.RightRead|segment.RightWrite) == 0 {
		return c, nil
	}
	if err := t.ep.Populate(t.segment); err != nil {
		return c, err
	}
	t.area, err = t.ep.Register(t.segment, t.uses(rights))
	c.raw, c.base, c.registered = keyBytes(t.area), t.area.Base, err == nil
	return c, err
}

// leastRemote is how long a put or get is at least that goes by remote access: shorter ones are not worth
// the provider's own handshake, bytes.
const leastRemote = 16 << 10

// remote reports whether op goes by remote access, and by which key, with mu held. The caller
// starts it if it does.
func (t *transport) remote(op *operation, rank int) bool {
	n, a := uint64(len(op.mem)), t.all[rank]
	if n < leastRemote || n > t.ep.MaxMsg || !op.get && t.proof() == unprovable {
		return false
	}
	if op.addr >= segment.AttachBase && uint64(op.addr-segment.AttachBase)+n <= a.Size {
		return t.cards[rank].registered && t.segmentKey(&t.cards[rank])
	}
	need := segment.RightWrite
	if op.get {
		need = segment.RightRead
	}
	if op.key = op.peer.keys.find(op.addr, n, need); op.key == nil {
		return false
	}
	op.check = false
	op.key.uses++
	return true
}

// segmentKey makes the key of a segment one that operations take, with mu held.
func (t *transport) segmentKey(c *card) bool {
	if !c.known {
		key, _, ok := t.keyOf(c.base, c.raw)
		c.key, c.known, c.registered = key, true, ok
	}
	return c.registered
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
		if !op.used { // abandoned
			p.remote.Take()
			continue
		}
		if len(t.bare) == 0 {
			if err := t.growBare(); err != nil {
				t.lose(p, err)
				return
			}
		}
		c := t.bare[len(t.bare)-1]
		pin := new(runtime.Pinner)
		remote, key := t.there(op)
		post := [1]fabric.Op{{
			Kind: fabric.Write, Context: c, Peer: p.addr, Local: fabric.Pin(pin, op.mem), Len: uint64(len(op.mem)),
			Remote: remote, Key: key,
		}}
		if op.get {
			post[0].Kind = fabric.Read
		}
		local, lent, loan, err := t.local(op)
		again := false
		if err == nil {
			post[0].Desc = local.Desc
			again, err = t.issue(p, post[:])
		}
		if again || err != nil {
			pin.Unpin()
			if loan { // it is tried again, or ends
				op.loan, op.loaned = local, true
			}
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
		t.flying += int64(len(op.mem))
		p.remote.Take()
		t.bare = t.bare[:len(t.bare)-1]
		op.context = c
		op.loan, op.loaned = fabric.Region{}, false
		if !op.get && t.proof() == byMessage {
			p.writes.add(id, op)
			t.makeDue(p)
		}
		noted := op.note != nil
		t.follow(op)
		t.slots[c] = slot{peer: p, rma: true, op: id, mem: op.mem, pin: pin, key: op.key, local: local, loan: loan, lent: lent, noted: noted}
		if lent != nil {
			lent.locals++
		}
		if noted {
			t.sendNotes(p)
		}
		t.announce(p)
	}
}

// there returns the provider's address and key of the target of op, with mu held.
func (t *transport) there(op *operation) (remote, key uint64) {
	if k := op.key; k != nil {
		return k.base + uint64(op.addr-k.at), k.key
	}
	c := &t.cards[op.peer.rank]
	return c.base + uint64(op.addr-segment.AttachBase), c.key
}

// local is the registration of the local side of an access, for providers with
// FI_MR_LOCAL: the segment is registered, and so is memory that the rank has registered, lent
// then. Other memory is registered for the one access, a loan. Nothing is kept of that:
// the Go runtime gives memory back to the system and takes it again (MADV_DONTNEED) without a
// word, and programs unmap theirs, and the card would go on with the pages that were there.
func (t *transport) local(op *operation) (r fabric.Region, lent *ownKey, loan bool, err error) {
	switch {
	case t.ep.MR&fabric.MRLocal == 0:
		return r, nil, false, nil
	case op.loaned: // the provider had no room
		return op.loan, nil, true, nil
	}
	mem := op.mem
	at := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	base := uintptr(unsafe.Pointer(unsafe.SliceData(t.segment)))
	if at >= base && at-base < uintptr(len(t.segment)) && t.area.Desc != 0 {
		return t.area, nil, false, nil
	}
	if k := t.own.covering(mem); k != nil {
		return k.region, k, false, nil
	}
	if err := t.ep.Populate(mem); err != nil {
		return r, nil, false, err
	}
	r, err = t.ep.Register(mem, fabric.Local)
	if err == nil {
		t.loans++
	}
	return r, nil, err == nil, err
}

// address is where mem begins.
func address(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }

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
	if s.pin != nil {
		s.pin.Unpin()
	}
	t.hidden.fresh = t.hidden.fresh || s.peer.heard == 0
	s.peer.heard++
	s.peer.over++
	s.peer.flying -= int64(len(s.mem))
	t.flying -= int64(len(s.mem))
	t.slots[d.Context] = slot{}
	t.bare = append(t.bare, d.Context)
	if s.loan {
		if err := t.ep.Deregister(s.local); err != nil {
			t.failSoon(t.rank, err)
		}
	}
	if k := s.lent; k != nil && k.locals > 0 {
		k.locals--
		t.released(k)
	}
	if d.Err == 0 && !s.stale && t.unsure(&s) {
		return
	}
	if s.key != nil {
		t.unuse(s.peer, s.key)
	}
	if d.Err != 0 {
		t.lose(s.peer, t.ep.Explain("remote access", d)) // and the operation ends when it is known why
	}
	if s.stale {
		return
	}
	op := &t.ops[s.op]
	if d.Err != 0 {
		if op.err != nil { // its owner has left, or the job has failed
			t.finish(s.op, op.err)
		}
		return
	}
	proof := t.proof()
	if !op.get && !s.noted && proof != byMessage {
		s.peer.touch = true
		t.makeDue(s.peer)
	}
	if op.get || proof == byDelivery || proof == byMessage && !op.unproven {
		op.err = nil
	}
	t.finish(s.op, op.err)
}
