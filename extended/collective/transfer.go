package collective

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
)

// Directions of a transfer: away from the root or towards it, in the one tree;
// away from it inside a neighbourhood and between the first ranks of them; to and from
// a rank at any distance; from the root to all ranks at once.
const (
	down = iota
	up
	near
	far
	direct
	cast
	slots // of shared memory: a rank is waited for there
	directions
)

// link is the transfers in one direction with one partner.
type link struct {
	wanted  note   // the partner is ready to receive
	offered note   // the partner waits to send
	key     uint32 // see keyAt
	land    landing
}

// keyAt is the key of a link for a direction: with the logarithm of the distance i, or,
// for direct and slots, the partner's rank, which is the source of what comes by it.
func keyAt(dir, i, rank int) uint32 {
	if dir == direct || dir == slots {
		return uint32(dir)<<maxDistance | uint32(rank)
	}
	return uint32(dir<<8 | i)
}

// link is the link of a key. Called with mu held.
func (c *Member) link(key uint32) *link { return c.links.at(key) }

// links are in order of their keys.
type links []*link

// at is the link of a key, made if there is none.
func (ls *links) at(key uint32) *link {
	k, ok := ls.index(key)
	if ok {
		return (*ls)[k]
	}
	l := spareLinks.Get().(*link)
	l.key = key
	*ls = slices.Insert(*ls, k, l)
	return l
}

// index is where the link of a key is, or would be.
func (ls links) index(key uint32) (int, bool) {
	return slices.BinarySearchFunc(ls, key, func(l *link, key uint32) int { return cmp.Compare(l.key, key) })
}

// remove gives back link k.
func (ls *links) remove(k int) {
	l := (*ls)[k]
	*l = link{}
	spareLinks.Put(l)
	*ls = slices.Delete(*ls, k, k+1)
}

// drop gives back all of them.
func (ls *links) drop() {
	for _, l := range *ls {
		*l = link{}
		spareLinks.Put(l)
	}
	clear(*ls)
	*ls = (*ls)[:0]
}

// unlinkDirect gives back the link for direct transfers with rank if the call under way
// needs it no longer: a call may have a partner in each rank of a large job. landed says
// that the data from rank has landed.
func (c *Member) unlinkDirect(rank int, landed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.links.index(keyAt(direct, 0, c.job(rank)))
	if !ok {
		return
	}
	l := c.links[k]
	if landed {
		l.land = landing{}
	}
	if l.land.open || l.wanted.set || l.offered.later(c.seq) {
		return
	}
	c.links.remove(k)
}

// spareLinks are links that no rank of this process uses.
var spareLinks = sync.Pool{New: func() any { return new(link) }}

// unlink gives back the links that nothing of a later call is kept in: a rank that
// waits elsewhere than in a collective has most often none. Called with mu held.
func (c *Member) unlink() {
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

func (c *Member) onData(t *am.Token, args []uint32, payload []byte) {
	key, ok := keyOf(args[1], t.Src())
	if !ok {
		return
	}
	c = c.at(args[1] >> 16)
	off := am.Unpack64(args[2], args[3])
	if args[1]>>8&dirNB != 0 {
		c.dataNB(args[0], key, off, payload)
	} else {
		c.mu.Lock()
		if l := &c.link(key).land; args[0] == c.seq {
			l.take(off, payload)
		}
		c.mu.Unlock()
	}
	wake(t)
}

// take puts a piece of data at off, if there is room for it.
func (l *landing) take(off uint64, payload []byte) bool {
	if !l.open || off > uint64(len(l.buf)) || uint64(len(payload)) > uint64(len(l.buf))-off {
		return false
	}
	l.got += bulk.Copy(l.buf[off:], payload)
	l.begun = true
	return true
}

// maxDistance is how many powers of two there are among ranks.
const maxDistance = 24

// keyOf is the key that the second argument of a message of rank src is about.
func keyOf(w uint32, src int) (key uint32, ok bool) {
	dir, i := int(w>>8)&0xff&^dirNB, int(w&0xff)
	return keyAt(dir, i, src), dir < directions && i < maxDistance
}

// take does what stage s says, and waits for it.
func (c *Member) take(s *stage, combine Combine) error {
	if c.team.planned(s) {
		return nil
	}
	dir, i, rank := int(s.dir), int(s.far), int(s.rank)
	switch s.do {
	case stagePost:
		return c.post(dir, i, rank, s.buf)
	case stageAwait:
		return c.await(dir, i, rank)
	case stageSend:
		return c.send(dir, i, rank, s.buf)
	}
	return c.takeLocal(s, combine)
}

// takeLocal is take of what is no transfer by messages. Its stack is not that of transfers.
//
//go:noinline
func (c *Member) takeLocal(s *stage, combine Combine) error {
	switch s.do {
	case stageCombine:
		combine(s.buf, s.from)
	case stageCopy:
		bulk.Copy(s.buf, s.from)
	case stageFold:
		foldBlocks(s.buf, s.from, c.size, combine)
	case stageDrop:
		c.unlinkDirect(int(s.rank), s.from != nil)
	default:
		return c.card.take(s)
	}
	return nil
}

// post says that data from rank is to land in buf.
//
//go:noinline
func (c *Member) post(dir, i, rank int, buf []byte) error {
	c.mu.Lock()
	c.link(keyAt(dir, i, c.job(rank))).land = landing{open: true, buf: buf}
	c.mu.Unlock()
	return c.tell(rank, handlerReady, dir, i)
}

// tell says to rank which call this rank is in and for what it waits.
func (c *Member) tell(rank int, h am.HandlerID, dir, i int) error {
	return c.tellOf(rank, h, dir, i, c.seq, c.call)
}

// tellOf is tell of call d, of number seq.
func (c *Member) tellOf(rank int, h am.HandlerID, dir, i int, seq uint32, d call) error {
	lo, hi := am.Pack64(d.size)
	return c.e.RequestShort(c.job(rank), h, seq, c.number()<<16|uint32(dir)<<8|uint32(i), uint32(d.kind), d.root, lo, hi)
}

// await waits until the data that was posted for has landed.
func (c *Member) await(dir, i, rank int) error {
	c.mu.Lock()
	l := &c.link(keyAt(dir, i, c.job(rank))).land
	c.mu.Unlock()
	return c.waitFor(rank, false, nil, func() bool { return l.begun && l.got == len(l.buf) })
}

// send waits until rank is ready and sends it data.
func (c *Member) send(dir, i, rank int, data []byte) error {
	c.mu.Lock()
	w := &c.link(keyAt(dir, i, c.job(rank))).wanted
	ready := w.set && w.seq == c.seq
	c.mu.Unlock()
	if !ready {
		if err := c.tell(rank, handlerOffer, dir, i); err != nil {
			return err
		}
	}
	if err := c.waitFor(rank, true, nil, func() bool { return w.set && w.seq == c.seq }); err != nil {
		return err
	}
	c.mu.Lock()
	w.set = false
	c.mu.Unlock()
	word := c.number()<<16 | uint32(dir)<<8 | uint32(i)
	to, piece := c.job(rank), c.e.MaxMedium()
	return inPieces(data, piece, func(part []byte, lo, hi uint32) error {
		return c.e.RequestMedium(to, handlerData, part, c.seq, word, lo, hi)
	})
}

// inPieces calls send with pieces of data, of so many bytes at most, and where each begins; of
// no data with one of no bytes.
func inPieces(data []byte, piece int, send func(part []byte, lo, hi uint32) error) error {
	for off := 0; ; off += piece {
		k := min(piece, len(data)-off)
		lo, hi := am.Pack64(uint64(off))
		if err := send(data[off:off+k], lo, hi); err != nil {
			return err
		}
		if off+k == len(data) {
			return nil
		}
	}
}

// waitFor waits until ok, which is called with mu held, or for the mismatch, or until lacking names a
// rank; nil stands for peer, if it has left.
func (c *Member) waitFor(peer int, ready bool, lacking func() int, ok func() bool) error {
	c.mu.Lock()
	c.waiting, c.waitPeer, c.waitReady = true, int32(peer), ready
	c.mu.Unlock()
	look := func() bool {
		c.mu.Lock()
		over := ok() || c.broken != nil
		c.mu.Unlock()
		return over || c.stop != nil && c.stop()
	}
	if lacking == nil {
		lacking = conduits.LackingRank(c.e.Conduit(), c.job(peer))
	}
	err := c.e.WaitFor(c, conduits.Cond{Work: true, Ready: look, Lacking: lacking})
	return c.waited(err, ok)
}

// waited ends a wait that ended with err.
//
//go:noinline
func (c *Member) waited(err error, ok func() bool) error {
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
func (c *Member) Blocked() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting && c.card != nil {
		if text := c.card.missing(); text != "" {
			return c.callNumber(c.seq) + ", " + c.text(c.call) + ": " + text
		}
	}
	if c.waiting && c.shared != nil {
		if text := c.shared.missing(); text != "" {
			return c.callNumber(c.seq) + ", " + c.text(c.call) + ": " + text
		}
	}
	return c.blocked(c.seq, c.call, c.waiting, c.waitReady, int(c.waitPeer))
}

// blocked is Blocked of call d, which waits for peer.
func (c *Member) blocked(seq uint32, d call, waiting, ready bool, peer int) string {
	s := c.callNumber(seq) + ", " + c.text(d) + ": "
	switch {
	case !waiting:
		return s + "not waiting"
	case ready:
		return s + "waiting for rank " + strconv.Itoa(c.job(peer)) + " to call it"
	}
	return s + "waiting for data from rank " + strconv.Itoa(c.job(peer))
}
