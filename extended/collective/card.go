package collective

import (
	"github.com/argon-go/argon/conduits"
)

// card serves broadcasts to all ranks of the job where the conduit's cards have a
// barrier and its switches replicate messages: the receivers say that they are ready by the
// barrier, instead of to the rank above each, and the root sends each piece once. A
// reduction, or a gathering, with the result on all ranks needs no barrier for that: the root
// has heard of all ranks when it has the result.
type card struct {
	c     *Member
	unit  conduits.Card
	piece int    // the most that one multicast carries
	phase uint64 // of the barrier, which this rank has come to last
	waits bool   // for that, or what the root sends; guarded by Member.mu
}

// cardRanks is how many ranks a job has at least that uses the card: one message reaches the
// other one of two.
const cardRanks = 3

// useCard has c use the card, if there is one.
func (c *Member) useCard() {
	unit, ok := conduits.BarriersOf(c.e.Conduit(), conduits.BarrierOfCollectives+1)
	if piece := c.e.MaxMulticast(); ok && piece > 0 && c.size >= cardRanks {
		c.card = &card{c: c, unit: unit, piece: piece}
	}
}

// A rank brings to the barrier a hash of its call, above the rank's number in
// callRank bits. So the least and the greatest of all ranks are of the same call, or of two
// ranks whose calls differ.
const callRank = maxDistance

// callWord is that of the call under way.
func (k *card) callWord() uint64 {
	c := k.c
	h := uint64(c.seq)
	for _, v := range c.call.words() {
		h = (h ^ uint64(v)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h<<callRank | uint64(c.rank)
}

// enter says that this rank is ready for the call under way, and does not wait. The
// barrier's phase before may be one that this rank has not waited for.
func (k *card) enter() error {
	if err := k.met(); err != nil {
		return err
	}
	w := k.callWord()
	if err := k.unit.EnterBarrier(conduits.BarrierOfCollectives, w, w); err != nil {
		return err
	}
	k.phase++
	return nil
}

// met waits until all ranks have come to the phase that this rank has come to. If their
// calls differ, one of two ranks that know it of each other says so to the other, whose
// answer is as of any that do not match.
func (k *card) met() error {
	c := k.c
	var low, high uint64
	err := k.wait(-1, func() bool {
		var n uint64
		n, low, high = k.unit.BarrierResult(conduits.BarrierOfCollectives)
		return n == k.phase
	})
	if err != nil || low>>callRank == high>>callRank {
		return err
	}
	a, b := int(low&(1<<callRank-1)), int(high&(1<<callRank-1))
	if b == c.rank {
		a, b = b, a
	}
	if a == c.rank {
		if err := c.tell(b, handlerReady, direct<<8, c.seq, c.call); err != nil {
			return err
		}
	}
	return c.waitFor(b, false, nil, func() bool { return false })
}

// differ reports whether the phase that this rank has come to is over, and calls differ.
func (k *card) differ() bool {
	n, low, high := k.unit.BarrierResult(conduits.BarrierOfCollectives)
	return n == k.phase && low>>callRank != high>>callRank
}

// cast sends data to all other ranks, which are ready.
func (k *card) cast(data []byte) error {
	c := k.c
	word := c.number()<<16 | cast<<8
	return inPieces(data, k.piece, func(part []byte, lo, hi uint32) error {
		return c.e.Multicast(handlerData, part, c.seq, word, lo, hi)
	})
}

// take is Member.take of a stage by the card.
func (k *card) take(s *stage) error {
	c, root := k.c, int(s.rank)
	switch s.do {
	case stageExpect:
		c.mu.Lock()
		c.links.at(keyAt(cast, 0, c.job(root))).land = landingIn(s.buf)
		c.mu.Unlock()
		return nil
	case stageReady:
		if err := k.enter(); err != nil || c.rank != root {
			return err
		}
		return k.met()
	case stageCast:
		return k.cast(s.buf)
	}
	return k.await(root)
}

// await waits until what root casts has landed.
func (k *card) await(root int) error {
	c := k.c
	c.mu.Lock()
	l := &c.links.at(keyAt(cast, 0, c.job(root))).land
	c.mu.Unlock()
	landed := false // read while mu is held
	if err := k.wait(root, func() bool {
		landed = l.complete()
		return landed || k.differ()
	}); err != nil || landed {
		return err
	}
	return k.met()
}

// wait is Member.wait for what root sends, or, if that is -1, for all ranks.
func (k *card) wait(root int, ok func() bool) error {
	c := k.c
	c.mu.Lock()
	k.waits = true
	c.mu.Unlock()
	ep := c.e.Conduit()
	err := c.waitFor(root, false, func() int {
		r := k.unit.BarrierLeft(conduits.BarrierOfCollectives)
		if r < 0 && root >= 0 && ep.Left(c.job(root)) {
			r = c.job(root)
		}
		return r
	}, ok)
	c.mu.Lock()
	k.waits = false
	c.mu.Unlock()
	return err
}

// missing names the ranks that the barrier waits for, if this rank waits for any. Called with
// mu held.
func (k *card) missing() string {
	if !k.waits {
		return ""
	}
	ranks := k.unit.BarrierMissing(conduits.BarrierOfCollectives)
	if len(ranks) == 0 {
		return ""
	}
	return "waiting for rank " + conduits.RankList(ranks) + " to call it"
}
