package collective

import (
	"encoding/binary"
	"math/bits"
	"slices"

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
// Behind the word of such a slot is what the word has not room for: the length of the call, and its root, type and size of an element.
type staging struct {
	channel
	halves [2][][]byte // by parity and rank
	round  uint16      // of the call
}

// wordRound is where the number of a round is in a word, and the other two are words behind it.
const wordRound, stagedSize, stagedRest = 16, 1, 2

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

// newStaging is the staging of all ranks, or nil.
func (s *shared) newStaging() *staging {
	c := s.c
	t := &staging{channel: channel{levels: make([][2]group, 1)}}
	for p := range t.halves {
		g := &t.levels[0][p]
		g.staged, g.at = true, c.rank
		for r := range c.size {
			area := s.stagedOf(r)
			if area == nil {
				return nil
			}
			half, skew := halfOf(area), 0
			if s.places == nil {
				// Areas are as far apart as a power of two: their lines are not to have one place in the caches.
				skew = r % skews * lineBytes
			}
			area = area[skew+p*half:][:half]
			g.slots = append(g.slots, lineAt(area, 0)[:])
			t.halves[p] = append(t.halves[p], area[lineBytes:])
		}
	}
	return t
}

// skews is how many lines the halves of the job's staging may be moved by.
const skews = 8

// halfOf is how long the halves of area are, with their flags.
func halfOf(area []byte) int { return (len(area) - skews*lineBytes) / 2 &^ (lineBytes - 1) }

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

// stagedWord is the word of a round of call d.
func stagedWord(seq uint32, round uint16, d call) uint64 {
	check := (d.size ^ d.rest()) * 0x9e3779b97f4a7c15 >> 58
	return uint64(seq)<<wordSeq | uint64(round)<<wordRound | uint64(d.kind+1)<<wordKind | check
}

// rest is the second word of a staged slot.
func (d call) rest() uint64 {
	return uint64(d.root) | uint64(d.typ)<<maxDistance | uint64(d.elem)<<32
}

// staged is the staging if it serves call a, else nil.
func (s *shared) staged(a *Call) *staging {
	if s == nil {
		return nil
	}
	// A half has so many blocks, which have to be there as a whole, unless pieces of step bytes do.
	n, block, blocks, step, reduces := s.c.size, len(a.own), 1, 8*a.element(), true
	if s.mailed {
		return s.stagedMail(a)
	}
	switch a.kind {
	case kindAllReduce, kindReduce, kindScan, kindExclusiveScan:
	case kindReduceScatter:
		blocks = n
	case kindBroadcast, kindGather, kindAllGather:
		reduces = false
	case kindScatter:
		blocks, reduces = n, false
	case kindExchange:
		block, blocks, reduces = block/n, n, false
	case kindAllGatherV, kindExchangeV:
		if n > fanIn {
			return nil // no rank knows how long the blocks of the others are
		}
		block, reduces = 1, false
	default:
		return nil
	}
	switch {
	case block == 0, n > fanIn && (block < directBlock || reduces && block*blocks < n*directBlock):
		// Each rank looks at all others, where a tree of messages is log(n) deep.
		return nil
	}
	switch t := s.stagingNow(); {
	case t == nil, t.room() < n*lineBytes, reduces && (step == 0 || n*step > t.room()) && strideOf(block)*blocks > t.room():
		return nil
	default:
		return t
	}
}

// doStaged makes call a, which returns blocks if their lengths differ.
func (s *shared) doStaged(t *staging, a *Call, combine Combine) ([][]byte, error) {
	t.round = 0
	switch a.kind {
	case kindAllReduce, kindReduce:
		return nil, s.reduceStaged(t, a, combine)
	case kindReduceScatter:
		return nil, s.reduceScatterStaged(t, a, combine)
	case kindScan, kindExclusiveScan:
		return nil, s.scanStaged(t, a, combine)
	case kindAllGatherV:
		return s.blocksStaged(t, [][]byte{a.own}, a.own)
	case kindExchangeV:
		out := slices.Clone(a.out)
		out[s.c.rank] = nil
		return s.blocksStaged(t, out, a.out[s.c.rank])
	}
	return nil, s.moveStaged(t, a)
}

// open begins a round, and returns the half that this rank fills for it.
func (s *shared) open(t *staging) ([]byte, error) {
	if err := s.awaitOwed(); err != nil {
		return nil, err
	}
	s.nextPhase(&t.channel)
	return t.of(s.c.rank), nil
}

// Which ranks wait in a round for what a rank has filled.
const (
	waitAll   = iota // for all of them, or it is the root that does
	waitAlone        // for this one alone
	waitBelow        // for those below them, and themselves
)

// post says that this rank has filled its half, or has nothing to fill in.
func (s *shared) post(t *staging, wait int) {
	g := &t.levels[0][t.phase&1]
	d, mine := s.c.call, g.slots[g.at]
	conc.Release64(plain(&mine[stagedSize]), d.size)
	conc.Release64(plain(&mine[stagedRest]), d.rest())
	word := stagedWord(s.c.seq, t.round, d)
	s.owed = g.all(word)
	t.round++
	if s.c.size == 2 && !s.mailed {
		conc.Release64(plain(&mine[0]), word)
		s.ep.Wake(s.c.job(1 - s.c.rank))
		return
	}
	// The stores of all ranks have one order, and the last in it sees all others here.
	mine[0].Store(word)
	switch below := (awaited{g: g, word: word, to: s.c.rank + 1}); {
	case s.mailed:
	case wait == waitAlone || s.owed.lacking() < 0:
		s.wakeFrom(0)
	case wait == waitBelow && below.lacking() < 0:
		s.wakeFrom(s.c.rank + 1)
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
		if q := w.g.slots[r]; q[stagedSize].Load() != d.size || q[stagedRest].Load() != d.rest() {
			return s.tellOdd(w, r)
		}
	}
	return nil
}

// moveStaged is a call that combines nothing.
func (s *shared) moveStaged(t *staging, a *Call) error {
	n, me, block := s.c.size, s.c.rank, len(a.own)
	give, get, from, to, wait := wholly(a.own), evenly(a.all, block), 0, n, waitAll
	gives, step := true, t.room()
	switch a.kind {
	case kindBroadcast:
		get, from, to, wait = give, a.root, a.root+1, waitAlone
		step = min(step, max(castAtOnce, (block/4+lineBytes)&^(lineBytes-1)))
	case kindScatter:
		give, get, from, to, wait = get, give, a.root, a.root+1, waitAlone
	case kindGather:
		if gives = me != a.root; gives {
			to = 0
		}
	case kindExchange:
		block /= n
		give, get = evenly(a.own, block), evenly(a.all, block)
	}
	if wait == waitAlone && me != a.root {
		gives, wait = false, waitAll
	}
	each := give.stride > 0 // rank has a block of its own
	if each {
		step = step / (n - 1) &^ (lineBytes - 1)
	}
	// other is where the block of rank r lies in the half of rank of, which has none of its own.
	other := func(of, r int) int {
		if r > of {
			r--
		}
		return r * step
	}
	for off := 0; off < block; off += step {
		k := min(step, block-off)
		half, err := s.open(t)
		switch {
		case err != nil:
			return err
		case gives && !each:
			bulk.Copy(half, give.of(me)[off:][:k])
		case gives:
			for r := range n {
				if r != me {
					bulk.Copy(half[other(me, r):], give.of(r)[off:][:k])
				}
			}
		}
		if s.post(t, wait); from <= me && me < to {
			copyOther(get.of(me)[off:], give.of(me)[off:][:k])
		}
		if err := s.mail(&t.channel, func(r int) (data []byte, off int) {
			switch {
			case !gives:
				return nil, 0
			case each:
				off = other(me, r)
			}
			return half[off:][:k], off
		}); err != nil {
			return err
		}
		if err := s.filled(from, to); err != nil {
			return err
		}
		for r := me + 1; r < me+n; r++ { // ranks read in different order
			r := around(r, 0, n)
			if r < from || r >= to {
				continue
			}
			in := t.of(r)
			if each {
				in = in[other(r, me):]
			}
			bulk.Copy(get.of(r)[off:], in[:k])
		}
	}
	return nil
}

// blocksStaged is a call whose blocks have lengths that differ. Each rank gives its out one behind the other, in the first round after
// their lengths; the block of a rank is the one with its number, or the only one. It returns the blocks of this rank, whose own is own.
func (s *shared) blocksStaged(t *staging, out [][]byte, own []byte) (blocks [][]byte, err error) {
	n, me, mine := s.c.size, s.c.rank, s.c.rank%len(out)
	head, most := 8*len(out), 0
	lens, starts := make([]byte, 8*n), make([]int, n)
	for at := 0; at == 0 || at < most; {
		half, err := s.open(t)
		if err != nil {
			return nil, err
		}
		room, from := half[head:], -at // where a block begins in room
		for d, b := range out {
			if head > 0 {
				binary.LittleEndian.PutUint64(half[8*d:], uint64(len(b)))
			}
			if from < len(room) && from+len(b) > 0 {
				bulk.Copy(room[max(from, 0):], b[max(-from, 0):])
			}
			from += len(b)
		}
		s.post(t, waitAll)
		if err := s.filled(0, n); err != nil {
			return nil, err
		}
		if head > 0 {
			for r := range n {
				theirs := t.of(r)[:head]
				starts[r], most = sumLengths(theirs, 0, mine), max(most, sumLengths(theirs, 0, len(out)))
				binary.LittleEndian.PutUint64(lens[8*r:], uint64(length(theirs, mine)))
			}
			binary.LittleEndian.PutUint64(lens[8*me:], uint64(len(own)))
			blocks = cut(lens)
			bulk.Copy(blocks[me], own)
		}
		for r := me + 1; r < me+n; r++ {
			r := around(r, 0, n)
			in, from := t.of(r)[head:], starts[r]-at
			if b := blocks[r]; from < len(in) && from+len(b) > 0 {
				bulk.Copy(b[max(-from, 0):], in[max(from, 0):])
			}
		}
		at, head = at+len(room), 0
	}
	return blocks, nil
}

// reduceStaged is a reduction to one rank or to all.
func (s *shared) reduceStaged(t *staging, a *Call, combine Combine) error {
	c, acc, step := s.c, a.own, 8*a.element()
	o := operands{buf: &c.waitingWork().kept, rank: c.rank, atOnce: len(acc)}
	if step > 0 {
		o.atOnce = max(foldAtOnce/step, 1) * step
	}
	everywhere := a.kind == kindAllReduce
	if !everywhere {
		o.root = a.root
	}
	if len(acc) <= t.room() && (s.mailed || step == 0 || c.size*step > t.room() || (c.size-1)*len(acc) <= foldWhole) {
		return s.reduceWhole(t, acc, &o, everywhere, combine)
	}
	// One other rank copies the next while the root combines.
	most, alone := t.room()/step*step, !everywhere && c.size == 2
	if alone {
		most = min(most, max(castAtOnce/step, 1)*step)
	}
	for err := error(nil); len(acc) > 0; {
		part := acc[:min(most, len(acc))]
		if acc = acc[len(part):]; alone {
			err = s.reduceWhole(t, part, &o, everywhere, combine)
		} else {
			err = s.reducePart(t, part, step, &o, everywhere, combine)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reduceWhole is a reduction of acc, which a half has room for, in one round: the ranks that want the result combine all.
func (s *shared) reduceWhole(t *staging, acc []byte, o *operands, everywhere bool, combine Combine) error {
	wants := everywhere || o.root == o.rank
	half, err := s.open(t)
	if err != nil {
		return err
	}
	if o.halves = t.halves[t.phase&1]; everywhere || !wants {
		bulk.Copy(half, acc)
	} else {
		o.mine = acc // whose place is the first
	}
	s.post(t, waitAll)
	given := half[:len(acc)]
	if o.mine != nil {
		given = nil
	}
	if err := s.mail(&t.channel, func(int) ([]byte, int) { return given, 0 }); err != nil || !wants {
		return err
	}
	if err := s.filled(0, s.c.size); err != nil {
		return err
	}
	o.fold(acc, combine)
	return nil
}

// reducePart is a reduction of acc, which a half has room for, in two rounds: each rank combines a piece, and those that want the
// result copy all pieces.
func (s *shared) reducePart(t *staging, acc []byte, step int, o *operands, everywhere bool, combine Combine) error {
	n := s.c.size
	half, err := s.open(t)
	if err != nil {
		return err
	}
	all := evenly(acc, ((len(acc)+step-1)/step+n-1)/n*step)
	own := all.of(o.rank)
	o.halves, o.off, o.mine = t.halves[t.phase&1], min(o.rank*all.stride, len(acc)), nil
	if atWord(own) {
		o.mine = own
		bulk.Copy(half, acc[:o.off])
		bulk.Copy(half[o.off+len(own):], acc[o.off+len(own):])
	} else {
		bulk.Copy(half, acc)
	}
	s.post(t, waitAll)
	if err := s.filled(0, n); err != nil {
		return err
	}
	wants := everywhere || o.root == o.rank
	if half, err = s.open(t); err != nil {
		return err
	}
	o.fold(half[:len(own)], combine)
	if s.post(t, waitAll); !wants {
		return nil
	}
	bulk.Copy(own, half[:len(own)])
	if err := s.filled(0, n); err != nil {
		return err
	}
	for r := o.rank + 1; r < o.rank+n; r++ {
		r := around(r, 0, n)
		bulk.Copy(all.of(r), t.of(r))
	}
	return nil
}

// reduceScatterStaged is a reduction with scatter: a rank combines the blocks that it gets.
func (s *shared) reduceScatterStaged(t *staging, a *Call, combine Combine) error {
	n, me, block := s.c.size, s.c.rank, len(a.own)
	o := operands{buf: &s.c.waitingWork().kept, rank: me, atOnce: block}
	stride := strideOf(block)
	if step := 8 * a.element(); step > 0 {
		o.atOnce = max(foldAtOnce/step, 1) * step
		if n*step <= t.room() && !s.mailed { // else all blocks fit as a whole, see staged
			stride = min(stride, t.room()/n/step*step)
		}
	}
	all := evenly(a.all, block)
	for off := 0; off < block; off += stride {
		k := min(stride, block-off)
		half, err := s.open(t)
		if err != nil {
			return err
		}
		o.halves, o.off, o.mine = t.halves[t.phase&1], me*stride, all.of(me)[off:][:k]
		if !atWord(o.mine) || &a.own[0] == &all.of(me)[0] {
			bulk.Copy(half[o.off:], o.mine)
			o.mine = nil
		}
		for r := range n {
			if r != me {
				bulk.Copy(half[r*stride:], all.of(r)[off:][:k])
			}
		}
		s.post(t, waitAll)
		if err := s.mail(&t.channel, func(r int) ([]byte, int) { return half[r*stride:][:k], r * stride }); err != nil {
			return err
		}
		if err := s.filled(0, n); err != nil {
			return err
		}
		o.fold(a.own[off:][:k], combine)
	}
	return nil
}

// scanStaged is a scan: a rank reads what those below it give.
func (s *shared) scanStaged(t *staging, a *Call, combine Combine) error {
	acc, before, me := a.own, a.all, s.c.rank
	atOnce := len(acc)
	if step := 8 * a.elem; step > 0 {
		atOnce = max(min(t.room(), roomKept/s.c.size)/step, 1) * step
	}
	for off := 0; off < len(acc); off += atOnce {
		k := min(atOnce, len(acc)-off)
		half, err := s.open(t)
		if err != nil {
			return err
		}
		bulk.Copy(half, acc[off:][:k])
		s.post(t, waitBelow)
		if err := s.filled(0, me+1); err != nil {
			return err
		}
		var b []byte
		if before != nil {
			b = before[off:][:k]
		}
		room := words(&s.c.waitingWork().kept, (me+1)*strideOf(k))
		scan(me, acc[off:][:k], b, room, combine, func(r int, block []byte) { bulk.Copy(block, t.of(r)) })
	}
	return nil
}

// copyOther copies from to to, unless they are the same.
func copyOther(to, from []byte) {
	if &to[0] != &from[0] {
		bulk.Copy(to, from)
	}
}

// operands are blocks of all ranks that are combined in the order of the tree whose root is rank root: in the halves
// of a parity, from byte off on, and this rank's in mine if that is not nil.
type operands struct {
	halves     [][]byte
	mine       []byte
	buf        *[]uint64 // for what lies between
	rank, root int
	off        int
	atOnce     int // bytes of each block that are combined at once
}

// at is the block at a place, n bytes from byte k on.
func (o *operands) at(place, k, n int) []byte {
	r := around(o.root, place, len(o.halves))
	if r == o.rank && o.mine != nil {
		return o.mine[k:][:n]
	}
	return o.halves[r][o.off+k:][:n]
}

// fold leaves the combination of all blocks in acc.
func (o *operands) fold(acc []byte, combine Combine) {
	room := words(o.buf, bits.Len(uint(len(o.halves)))*strideOf(min(o.atOnce, len(acc))))
	for k := 0; k < len(acc); k += o.atOnce {
		o.foldFrom(acc[k:min(k+o.atOnce, len(acc))], room, k, 0, len(o.halves), combine)
	}
}

// foldFrom is fold of the piece from byte k on of the blocks of the places from place on, span of them at most.
func (o *operands) foldFrom(acc, room []byte, k, place, span int, combine Combine) {
	size, n := len(o.halves), len(acc)
	copyOther(acc, o.at(place, k, n))
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
