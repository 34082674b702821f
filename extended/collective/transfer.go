package collective

import (
	"strconv"
	"sync"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/internal/errs"
)

// Directions of a transfer: away from the root or towards it, in the one tree;
// away from it inside a neighbourhood and between the first ranks of them.
const (
	down = iota
	up
	near
	far
	directions
)

// link is the transfers in one direction with one partner.
type link struct {
	wanted  note   // the partner is ready to receive
	offered note   // the partner waits to send
	slot    uint16 // direction and logarithm of the distance
	land    landing
}

// link is the link for a direction and the logarithm of the distance. Called
// with mu held.
func (c *Endpoint) link(dir, i int) *link {
	slot := uint16(dir<<8 | i)
	for _, l := range c.links {
		if l.slot == slot {
			return l
		}
	}
	l := spareLinks.Get().(*link)
	l.slot = slot
	c.links = append(c.links, l)
	return l
}

// spareLinks are links that no rank of this process uses.
var spareLinks = sync.Pool{New: func() any { return new(link) }}

// unlink gives back the links that nothing of a later call is kept in: a rank that
// waits elsewhere than in a collective has most often none. Called with mu held.
func (c *Endpoint) unlink() {
	kept := c.links[:0]
	for _, l := range c.links {
		l.land = landing{}
		if l.wanted.later(c.seq) || l.offered.later(c.seq) {
			kept = append(kept, l)
			continue
		}
		*l = link{}
		spareLinks.Put(l)
	}
	clear(c.links[len(kept):])
	c.links = kept
}

// landing is where data lands. got counts bytes.
type landing struct {
	buf   []byte
	got   int
	open  bool
	begun bool
}

func (c *Endpoint) onData(t *am.Token, args []uint32, payload []byte) {
	dir, i, ok := slotOf(args[1])
	if !ok {
		return
	}
	off := am.Unpack64(args[2], args[3])
	c.mu.Lock()
	l := &c.link(dir, i).land
	if l.open && args[0] == c.seq && off <= uint64(len(l.buf)) && uint64(len(payload)) <= uint64(len(l.buf))-off {
		l.got += copy(l.buf[off:], payload)
		l.begun = true
	}
	c.mu.Unlock()
	wake(t)
}

// maxDistance is how many powers of two there are among ranks.
const maxDistance = 24

// slotOf takes the second argument of a message apart.
func slotOf(w uint32) (dir, i int, ok bool) {
	dir, i = int(w>>8), int(w&0xff)
	return dir, i, dir < directions && i < maxDistance
}

// post says that data from rank is to land in buf.
func (c *Endpoint) post(dir, i, rank int, buf []byte) error {
	c.mu.Lock()
	c.link(dir, i).land = landing{open: true, buf: buf}
	c.mu.Unlock()
	return c.tell(rank, handlerReady, dir, i)
}

// tell says to rank which call this rank is in and for what it waits.
func (c *Endpoint) tell(rank int, h am.HandlerID, dir, i int) error {
	lo, hi := am.Pack64(c.call.size)
	return c.e.RequestShort(rank, h, c.seq, uint32(dir)<<8|uint32(i), uint32(c.call.kind), c.call.root, lo, hi)
}

// await waits until the data that was posted for has landed.
func (c *Endpoint) await(dir, i, rank int) error {
	c.mu.Lock()
	l := &c.link(dir, i).land
	c.mu.Unlock()
	return c.wait(rank, false, func() bool { return l.begun && l.got == len(l.buf) })
}

// send waits until rank is ready and sends it data.
func (c *Endpoint) send(dir, i, rank int, data []byte) error {
	c.mu.Lock()
	w := &c.link(dir, i).wanted
	ready := w.set && w.seq == c.seq
	c.mu.Unlock()
	if !ready {
		if err := c.tell(rank, handlerOffer, dir, i); err != nil {
			return err
		}
	}
	if err := c.wait(rank, true, func() bool { return w.set && w.seq == c.seq }); err != nil {
		return err
	}
	c.mu.Lock()
	w.set = false
	c.mu.Unlock()
	slot := uint32(dir)<<8 | uint32(i)
	piece := c.e.MaxMedium()
	for off := 0; ; off += piece {
		k := min(piece, len(data)-off)
		lo, hi := am.Pack64(uint64(off))
		if err := c.e.RequestMedium(rank, handlerData, data[off:off+k], c.seq, slot, lo, hi); err != nil {
			return err
		}
		if off+k == len(data) {
			return nil
		}
	}
}

// wait waits until ok, which is called with mu held, or for the mismatch.
func (c *Endpoint) wait(peer int, ready bool, ok func() bool) error {
	c.mu.Lock()
	c.waiting, c.waitPeer, c.waitReady = true, peer, ready
	c.mu.Unlock()
	err := c.e.WaitFrom(peer, c, func() bool {
		c.mu.Lock()
		over := ok() || c.broken != nil
		c.mu.Unlock()
		return over || c.stop != nil && c.stop()
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = false
	if err == nil {
		err = c.broken
	}
	if err == nil && !ok() {
		err = ErrStopped
	}
	return err
}

// ErrStopped is what Leave returns when its stop has said so.
var ErrStopped = errs.NotReady("collective: the end of the program was given up, as the caller of Leave asked")

// Blocked says which rank the call waits for; it makes c a conduits.Blocked.
func (c *Endpoint) Blocked() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := "collective call " + strconv.FormatUint(uint64(c.seq), 10) + ", " + c.text(c.call) + ": "
	switch {
	case !c.waiting:
		return s + "not waiting"
	case c.waitReady:
		return s + "waiting for rank " + strconv.Itoa(c.waitPeer) + " to call it"
	}
	return s + "waiting for data from rank " + strconv.Itoa(c.waitPeer)
}
