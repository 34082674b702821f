package collective

import (
	"math/bits"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/conc"
)

// staging serves calls with more bytes than slots take, where ranks that share memory have
// conduits.SystemStaging. A call is rounds. In a round a rank copies what others need into its half of
// that memory, of which there are two, for even and for odd rounds, then writes the line before it, which
// is the slot of a channel, and reads the halves of others in place. As with slots, a rank begins a round
// when all have come to the round before, and so have read what it overwrites. What is longer than a half
// takes several rounds.
//
// Behind the word of such a slot are the length and the root of the call, which the word has not room for.
type staging struct {
	channel
	halves [2][][]byte // by parity and rank
	round  uint16      // of the call
}

// stagedWords are those of a slot of staging.
const stagedSize, stagedRoot = 1, 2

// Bounds of what is done at once, bytes. They were measured with two ranks on two processors.
const (
	// foldWhole is how many bytes of other ranks each rank combines for itself, in one
	// round; above that each combines a part for all, in two.
	foldWhole = 4 << 10
	// foldAtOnce stay in a first-level cache while they are combined.
	foldAtOnce = 8 << 10
	// castAtOnce is the least that is broadcast at once: while it is copied by the others the root
	// copies the next.
	castAtOnce = 16 << 10
)

// newStaging is the staging of all ranks of c, or nil.
func newStaging(c *Member, ep conduits.Endpoint) *staging {
	t := &staging{channel: channel{levels: make([][2]group, 1)}}
	for p := range t.halves {
		g := &t.levels[0][p]
		g.staged, g.at = true, c.rank
		for r := range c.size {
			area := ep.System(r, conduits.SystemStaging)
			if area == nil {
				return nil
			}
			// Areas are as far apart as a power of two: their lines are not to have one place in the caches.
			skew := r % 32 * lineBytes
			half := (len(area) - 32*lineBytes) / 2 &^ (lineBytes - 1)
			area = area[skew+p*half:][:half]
			g.slots = append(g.slots, lineAt(area, 0)[:])
			t.halves[p] = append(t.halves[p], area[lineBytes:])
		}
	}
	return t
}

// room is how many bytes a half has.
func (t *staging) room() int { return len(t.halves[0][0]) }

// of is the half of rank r in this round.
func (t *staging) of(r int) []byte { return t.halves[t.phase&1][r] }

// entered reports whether rank r is in a round of call seq.
func (t *staging) entered(r int, seq uint32) bool {
	for p := range t.levels[0] {
		if uint32(t.levels[0][p].slots[r][0].Load()>>wordSeq) == seq {
			return true
		}
	}
	return false
}

// wordOf is the word of call d in the round under way.
func (t *staging) wordOf(seq uint32, d call) uint64 {
	check := d.size*0x9e3779b97f4a7c15>>56 ^ uint64(d.root)
	return uint64(seq)<<wordSeq | uint64(t.round)<<wordRoot | uint64(d.kind+1)<<wordKind | check&0xff
}

// staged is the staging if it serves call a, else nil.
func (s *shared) staged(a *Call) *staging {
	if s == nil {
		return nil
	}
	n, size, cut := s.c.size, len(a.own), a.elem > 0
	least := directBlock // of n blocks each of so many bytes there are as many messages
	if n <= flatRanks {
		least = 0
	}
	switch a.kind {
	case kindAllReduce:
	default:
		return nil
	}
	if size < least*n || size == 0 || a.kind&kindNB != 0 {
		return nil
	}
	if !s.hasStaging {
		s.staging, s.hasStaging = newStaging(s.c, s.ep), true
	}
	t := s.staging
	if t == nil || size > t.room() && (!cut || 8*a.elem*n > t.room()) {
		return nil
	}
	return t
}

// doStaged makes call a.
func (s *shared) doStaged(t *staging, a *Call, combine Combine) error {
	t.round = 0
	return s.reduceStaged(t, a, combine)
}

// open begins a round, and returns the half that this rank fills for it.
func (s *shared) open(t *staging) ([]byte, error) {
	if err := s.awaitOwed(); err != nil {
		return nil, err
	}
	s.nextPhase(&t.channel)
	return t.of(s.c.rank), nil
}

// post says that this rank has filled its half. alone says that others wait for this rank alone.
func (s *shared) post(t *staging, alone bool) {
	g := &t.levels[0][t.phase&1]
	d, mine := s.c.call, g.slots[g.at]
	conc.Release64(plain(&mine[stagedSize]), d.size)
	conc.Release64(plain(&mine[stagedRoot]), uint64(d.root))
	word := t.wordOf(s.c.seq, d)
	s.owed = g.all(word)
	t.round++
	if s.c.size == 2 {
		conc.Release64(plain(&mine[0]), word)
		s.ep.Wake(1 - s.c.rank)
		return
	}
	// The stores of all ranks have one order, and the last in it sees all others here.
	if mine[0].Store(word); alone || s.owed.lacking() < 0 {
		s.wakeFrom(0)
	}
}

// filled waits until ranks from to to-1 have filled their halves.
func (s *shared) filled(from, to int) error {
	w := s.owed
	w.from, w.to = from, to
	if err := s.await(w); err != nil {
		return err
	}
	if to-from == s.c.size {
		s.owed.g = nil // all have come
	}
	// What the words do not have room for.
	d := s.c.call
	for r := from; r < to; r++ {
		if q := w.g.slots[r]; q[stagedSize].Load() != d.size || q[stagedRoot].Load() != uint64(d.root) {
			return s.tellOdd(w, r)
		}
	}
	return nil
}

// operands are blocks of all ranks that are combined in the order of the tree whose root is rank root: in the halves
// of a parity, from byte off on, and this rank's in mine if that is not nil.
type operands struct {
	halves     [][]byte
	mine       []byte
	rank, root int
	off        int
}

// at is the block at a place, n bytes from byte k on.
func (o *operands) at(place, k, n int) []byte {
	r := around(o.root, place, len(o.halves))
	if r == o.rank && o.mine != nil {
		return o.mine[k:][:n]
	}
	return o.halves[r][o.off+k:][:n]
}

// fold leaves the combination of all blocks in acc, pieces of so many bytes at once. buf is for what lies between.
func (o *operands) fold(acc []byte, atOnce int, buf *[]uint64, combine Combine) {
	atOnce = min(atOnce, len(acc))
	room := words(buf, bits.Len(uint(len(o.halves)))*strideOf(atOnce))
	for k := 0; k < len(acc); k += atOnce {
		n := min(atOnce, len(acc)-k)
		o.foldFrom(acc[k:][:n], room, k, 0, len(o.halves), combine)
	}
}

// foldFrom is fold of the piece from byte k on of the blocks of the places from place on, span of them at most.
func (o *operands) foldFrom(acc, room []byte, k, place, span int, combine Combine) {
	size, n := len(o.halves), len(acc)
	bulk.Copy(acc, o.at(place, k, n))
	for d := 1; d < span && place+d < size; d *= 2 {
		in := room[:n]
		if d == 1 || place+d+1 == size {
			in = o.at(place+d, k, n)
		} else {
			o.foldFrom(in, room[strideOf(n):], k, place+d, d, combine)
		}
		combine(acc, in)
	}
}

// reduceStaged is an all-reduction.
func (s *shared) reduceStaged(t *staging, a *Call, combine Combine) error {
	c, acc := s.c, a.own
	n, room := c.size, t.room()
	kept := &c.waitingWork().kept
	atOnce, step := len(acc), 8*a.elem
	if step > 0 {
		atOnce = max(foldAtOnce/step, 1) * step
	}
	if len(acc) <= room && (step == 0 || (n-1)*len(acc) <= foldWhole) {
		half, err := s.open(t)
		if err != nil {
			return err
		}
		bulk.Copy(half, acc)
		s.post(t, false)
		if err := s.filled(0, n); err != nil {
			return err
		}
		o := operands{halves: t.halves[t.phase&1], rank: c.rank}
		o.fold(acc, atOnce, kept, combine)
		return nil
	}
	for most := room / step * step; len(acc) > 0; {
		part := acc[:min(most, len(acc))]
		acc = acc[len(part):]
		if err := s.reducePart(t, part, step, atOnce, kept, combine); err != nil {
			return err
		}
	}
	return nil
}

// reducePart is an all-reduction of acc, which a half has room for: each rank combines a piece of it.
func (s *shared) reducePart(t *staging, acc []byte, step, atOnce int, kept *[]uint64, combine Combine) error {
	c := s.c
	half, err := s.open(t)
	if err != nil {
		return err
	}
	all := evenly(acc, ((len(acc)+step-1)/step+c.size-1)/c.size*step)
	own := all.of(c.rank)
	at := min(c.rank*all.stride, len(acc))
	o := operands{halves: t.halves[t.phase&1], rank: c.rank, off: at}
	if atWord(own) {
		o.mine = own
		bulk.Copy(half, acc[:at])
		bulk.Copy(half[at+len(own):], acc[at+len(own):])
	} else {
		bulk.Copy(half, acc)
	}
	s.post(t, false)
	if err := s.filled(0, c.size); err != nil {
		return err
	}
	if half, err = s.open(t); err != nil {
		return err
	}
	o.fold(half[:len(own)], atOnce, kept, combine)
	s.post(t, false)
	if err := s.filled(0, c.size); err != nil {
		return err
	}
	for k := range c.size {
		r := around(c.rank, k, c.size)
		bulk.Copy(all.of(r), t.of(r))
	}
	return nil
}
