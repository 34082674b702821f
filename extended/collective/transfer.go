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
	"github.com/argon-go/argon/segment"
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
	wanted  note        // the partner is ready to receive
	offered note        // the partner waits to send
	at      segment.NLA // with wanted: where it has data put to, or 0
	key     uint32      // see keyAt
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
	*ls = append(*ls, nil) // not slices.Insert, which takes more of a waiting rank's stack
	copy((*ls)[k+1:], (*ls)[k:])
	(*ls)[k] = l
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

// done gives back link l of call seq if it has nothing more to say: a call may have a partner in each
// rank of a large job. The only one stays, for it is often used next.
func (ls *links) done(l *link, seq uint32) {
	if len(*ls) == 1 || l.land.state != landShut || l.wanted.set || l.offered.later(seq) {
		return
	}
	if k, ok := ls.index(l.key); ok {
		ls.remove(k)
	}
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

// landing is where data lands.
type landing struct {
	buf   []byte
	state int // landShut, landOpen, or landBegun and how many bytes have come
}

// States of a landing. They and the count share a word, as a rank of a large job has several links.
const (
	landShut = iota
	landOpen
	landBegun
)

func landingIn(buf []byte) landing { return landing{buf: buf, state: landOpen} }

func (c *Member) onData(t *am.Token, args []uint32, payload []byte) {
	key, ok := keyOf(args[1], t.Src())
	if !ok {
		return
	}
	c = c.at(args[1] >> 16)
	c.mu.Lock()
	var o *op
	ls := &c.links
	if args[1]>>8&dirNB != 0 {
		if o = c.inFlight(args[0]); o != nil {
			ls = &o.links
		}
	}
	if o != nil || args[1]>>8&dirNB == 0 && args[0] == c.seq {
		if k, ok := ls.index(key); ok {
			l := &(*ls)[k].land
			took := false
			if len(args) == putWords {
				took = l.takeAll(payload)
			} else {
				took = l.take(am.Unpack64(args[2], args[3]), payload)
			}
			if took && o != nil && l.complete() {
				c.world().engine.Load().kick(o)
			}
		}
	}
	c.mu.Unlock()
	wake(t)
}

func (l *landing) complete() bool { return l.state == landBegun+len(l.buf) }

// take puts a piece of data at off, if there is room for it.
func (l *landing) take(off uint64, payload []byte) bool {
	if l.state == landShut || off > uint64(len(l.buf)) || uint64(len(payload)) > uint64(len(l.buf))-off {
		return false
	}
	l.state = max(l.state, landBegun) + bulk.Copy(l.buf[off:], payload)
	return true
}

// maxDistance is how many powers of two there are among ranks.
const maxDistance = 24

// keyOf is the key that the second argument of a message of rank src is about.
func keyOf(w uint32, src int) (key uint32, ok bool) {
	dir, i := int(w>>8)&0xff&^dirNB, int(w&0xff)
	return keyAt(dir, i, src), dir < directions && i < maxDistance
}

// take takes stage k, and waits for it.
func (c *Member) take(k int, combine Combine) error {
	for s := &c.work.stages[k]; ; {
		came, err := c.work.attempt(k, combine)
		if came != stageWaits || err != nil {
			return err
		}
		held := func() bool { return c.work.held(s) }
		if over, err := c.wait(int(s.rank), nil, held); !over || err != nil {
			if err = c.waited(err, held); err != nil {
				return err
			}
		}
	}
}

// Results of a stage.
const (
	stageDone = iota
	stageWaits
	stageStalls // without credit
)

// attempt takes stage k as far as it can be taken without waiting for other ranks' messages. It is
// not inlined: a rank that waits needs no stack for it.
//
//go:noinline
func (w *work) attempt(k int, combine Combine) (came int, err error) {
	c, s := w.c, &w.stages[k]
	if c.team.planned(s) {
		return stageDone, nil
	}
	if w.puts != nil && w.writes(s) {
		if came, err = w.drain(); came != stageDone || err != nil {
			return came, err
		}
	}
	switch s.do {
	case stagePost:
		at := w.open(s)
		c.mu.Lock()
		w.linkOf(s).land = landingIn(s.buf)
		c.mu.Unlock()
		return w.invite(s, at)
	case stageOffer:
		return w.tell(s, handlerOffer)
	case stageAwait, stageHear:
		in, held, err := w.look(s)
		if !held {
			return stageWaits, err
		}
		if s.buf != nil {
			combine(s.buf, in)
		}
	case stageSend:
		return w.trySend(s)
	case stageFrom:
	case stageCombine:
		combine(s.buf, w.stages[k-1].buf)
	case stageCopy:
		bulk.Copy(s.buf, w.stages[k-1].buf)
	case stageFold:
		foldBlocks(s.buf, w.stages[k-1].buf, c.size, combine)
	default:
		return stageDone, c.card.take(s)
	}
	return stageDone, nil
}

// linkOf is the link of a stage. Called with mu held.
func (w *work) linkOf(s *stage) *link {
	w.link = w.ls.at(keyAt(int(s.dir), int(s.far), w.c.job(int(s.rank))))
	return w.link
}

// word is the key of a stage's link as it travels.
func (w *work) word(s *stage) uint32 {
	return w.c.number()<<16 | uint32(s.dir)<<8 | uint32(s.far)
}

// tell says to the rank of s which call this rank is in and for what it waits.
func (w *work) tell(s *stage, h am.HandlerID) (int, error) {
	if w.waits() {
		return stageDone, w.c.tell(int(s.rank), h, w.word(s), w.seq, w.call)
	}
	d := w.call.words()
	return sent(w.c.e.TryRequestShort(w.c.job(int(s.rank)), h, w.seq, w.word(s), d[0], d[1], d[2], d[3], d[4]))
}

// tell says to rank that this one is in call d, of number seq, and waits by the link of word.
func (c *Member) tell(rank int, h am.HandlerID, word, seq uint32, d call) error {
	w := d.words()
	return c.e.RequestShort(c.job(rank), h, seq, word, w[0], w[1], w[2], w[3], w[4])
}

// sent is the outcome of a stage that sends.
func sent(ok bool, err error) (int, error) {
	if err != nil || ok {
		return stageDone, err
	}
	return stageStalls, nil
}

// held reports whether what stage s, which was looked at, waits for has come. Called with mu held.
func (w *work) held(s *stage) bool {
	switch s.do {
	case stageSend:
		return w.link.wanted.set && w.link.wanted.seq == w.seq
	case stageHear:
		return w.link.offered.set
	}
	return w.link.land.complete()
}

// look reports whether what stage s waits for has come, and takes it then: data has the bytes
// that landed.
func (w *work) look(s *stage) (data []byte, held bool, err error) {
	c := w.c
	c.mu.Lock()
	l := w.linkOf(s)
	err = c.broken
	held = w.held(s) && err == nil
	if waiting, ready := !held && err == nil, s.do != stageAwait; w.waits() {
		c.waiting, c.waitPeer, c.waitReady = waiting, s.rank, ready
	} else {
		w.waiting, w.peer, w.ready = waiting, s.rank, ready
	}
	if held && s.do != stageHear {
		if s.do == stageSend {
			l.wanted.set = false
			w.at = l.at
		} else {
			data, l.land = l.land.buf, landing{}
		}
		w.ls.done(l, w.seq)
	}
	c.mu.Unlock()
	if held && s.do == stageAwait && w.puts != nil {
		w.close(s)
	}
	return data, held, err
}

// trySend sends buf to a rank that is ready for it, or tells it once that this one waits for that.
func (w *work) trySend(s *stage) (came int, err error) {
	if w.sub != subSending {
		switch _, held, err := w.look(s); {
		case err != nil || !held && w.sub == subOffered:
			return stageWaits, err
		case !held:
			if came, err = w.tell(s, handlerOffer); came == stageDone {
				w.sub, came = subOffered, stageWaits
			}
			return came, err
		}
		w.sub, w.pieces = subSending, 0
	}
	if w.at != 0 {
		return w.put(s)
	}
	to, word := w.c.job(int(s.rank)), w.word(s)
	if w.waits() {
		w.sub = 0
		return stageDone, inPieces(s.buf, w.c.e.MaxMedium(), func(part []byte, lo, hi uint32) error {
			return w.c.e.RequestMedium(to, handlerData, part, w.seq, word, lo, hi)
		})
	}
	for piece := w.c.e.MaxMedium(); ; w.pieces++ {
		off := int(w.pieces) * piece
		k := min(piece, len(s.buf)-off)
		lo, hi := am.Pack64(uint64(off))
		if came, err = sent(w.c.e.TryRequestMedium(to, handlerData, s.buf[off:off+k], w.seq, word|dirNB<<8, lo, hi)); came != stageDone || err != nil {
			return came, err
		}
		if off+k == len(s.buf) {
			w.sub = 0
			return stageDone, nil
		}
	}
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
	_, err := c.wait(peer, lacking, ok)
	return c.waited(err, ok)
}

// wait is waitFor of what Blocked knows already. over reports whether ok or the mismatch has ended it.
func (c *Member) wait(peer int, lacking func() int, ok func() bool) (over bool, err error) {
	look := func() bool {
		c.mu.Lock()
		over = ok() || c.broken != nil
		c.mu.Unlock()
		return over || c.stop != nil && c.stop()
	}
	if lacking == nil {
		lacking = conduits.LackingRank(c.e.Conduit(), c.job(peer))
	}
	err = c.e.WaitFor(c, conduits.Cond{Work: true, Ready: look, Lacking: lacking})
	return over, err
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

// ErrStopped is the error of a Leave that its stop has ended.
var ErrStopped = errs.NotReady("collective: the end of the program was given up, as the caller of Leave asked")

// Blocked names the ranks that the call waits for; it makes c a conduits.Blocked.
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
