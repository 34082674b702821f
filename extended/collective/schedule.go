package collective

import (
	"encoding/binary"
	"math/bits"
	"sync"

	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/segment"
)

// A collective is a schedule: lists of stages, of which the next is made when all stages of the
// one before are done. So a list may depend on what has come, and what only this rank does between
// transfers is done where the list is made. A call that waits takes one stage after the other
// (Member.take); of one that does not, arrivals take the stages (op.run). Both send
// the same messages and combine in the same order.

// The stages.
const (
	stagePost    = iota // say that data is to land in buf
	stageAwait          // until it has, and combine it into buf if that is not nil
	stageSend           // buf, when the receiver is ready
	stageOffer          // of nothing: this rank is in the barrier
	stageHear           // until such an offer has come; up to here transfers
	stageFrom           // nothing: the next stage takes what it combines or copies from buf
	stageCombine        // that into buf
	stageCopy           // that to buf
	stageFold           // that, which is blocks of all ranks, into buf: foldBlocks
	// By the card, in calls that wait; rank is the root.
	stageExpect    // data that is cast, in buf
	stageReady     // for that: the root waits for all
	stageCast      // buf
	stageAwaitCast // until it has landed
)

// stage is one of them; dir, i and rank name the transfer as for Member.post.
type stage struct {
	buf          []byte
	rank         int32
	do, dir, far uint8 // far is i
}

// add appends a stage to the list.
func (w *work) add(do, dir, i, rank int, buf []byte) {
	w.stages = append(w.stages, stage{buf: buf, do: uint8(do), dir: uint8(dir), far: uint8(i), rank: int32(rank)})
}

func (w *work) post(dir, i, rank int, buf []byte) { w.add(stagePost, dir, i, rank, buf) }
func (w *work) await(dir, i, rank int)            { w.add(stageAwait, dir, i, rank, nil) }
func (w *work) send(dir, i, rank int, buf []byte) { w.add(stageSend, dir, i, rank, buf) }

// local is stage do, which is no transfer, with what it takes from another place.
func (w *work) local(do int, buf, from []byte) {
	w.add(stageFrom, 0, 0, 0, from)
	w.add(do, 0, 0, 0, buf)
}

func (w *work) merge(acc, in []byte) { w.local(stageCombine, acc, in) }
func (w *work) copy(to, from []byte) { w.local(stageCopy, to, from) }

// call has the arguments of a that must be the same on all ranks.
func (a *Call) call() call {
	d := call{form: form{a.kind, a.Type}, root: uint32(a.root), elem: uint32(a.element()), size: uint64(len(a.own))}
	switch a.kind {
	case kindReduceScatter:
		d.size = uint64(len(a.all))
	case kindGatherV, kindAllGatherV, kindExchangeV:
		d.size = uint64(a.unit)
	}
	return d
}

// work is a call that is made by messages, and how far its lists are.
type work struct {
	c *Member
	Call

	ls   *links   // of the call
	kept []uint64 // room that is kept from one call to the next

	puts *puts       // nil as long as there was none
	at   segment.NLA // where the stage that sends puts its data, or 0

	stages []stage // of the list that was made last
	link   *link   // of the stage that was looked at last
	call   call
	seq    uint32
	peer   int32 // see waiting
	pieces int32 // that a stage which sends has sent
	// waiting says that the stage which was looked at last waits for peer: to be ready, or for its data.
	waiting, ready bool
	sub            int8 // of a stage that sends: subOffered and so on
	part           int8 // of a call that consists of several
	k              int  // round, or partner
	*lists
}

// lists has the state of calls that take many lists; other calls have none.
type lists struct {
	posted     int // see direct
	block      int // of an AllReduce that is made directly, of each rank
	room       []byte
	lens, data []byte // of the ranks at and below this one
	whole      []byte // of all ranks
	blocks     [][]byte
}

// The states of a stage that sends.
const (
	subOffered = iota + 1
	subSending
)

// card reports whether the card makes the call: those that wait.
func (w *work) card() bool { return w.waits() && w.c.card != nil }

// waits reports whether the caller waits for the call.
func (w *work) waits() bool { return w.ls == &w.c.links }

// step makes the next list of stages; more says that another one follows.
func (w *work) step() (more bool) {
	switch w.kind {
	case kindAllReduce, kindAllGather, kindExchange, kindReduceScatter, kindGatherV, kindAllGatherV, kindExchangeV:
		if w.lists == nil && (w.kind > kindAllGather || w.c.directly(max(len(w.own), len(w.all)))) {
			w.lists = new(lists)
		}
	}
	switch w.kind {
	case kindBarrier:
		w.barrier()
	case kindBroadcast:
		w.broadcast(w.root, w.own)
	case kindReduce:
		w.reduce(w.root, w.own)
	case kindAllReduce, kindAgree, kindLeave, kindClose:
		if w.unit > 0 {
			return w.allReduceDirect()
		}
		return w.allReduce()
	case kindSplit:
		if w.all == nil {
			return w.allReduce()
		}
		return w.allGather(w.own, w.all)
	case kindGather:
		return w.gatherTo()
	case kindAllGather:
		return w.allGather(w.own, w.all)
	case kindScatter:
		w.scatter(w.root, w.all, w.own)
	case kindExchange:
		return w.exchange(w.own, w.all)
	case kindReduceScatter:
		return w.reduceScatter()
	case kindScan, kindExclusiveScan:
		w.scan()
	case kindGatherV:
		return w.gatherV()
	case kindAllGatherV:
		return w.allGatherV()
	case kindExchangeV:
		return w.exchangeV()
	}
	return false
}

// roomKept is how much memory is kept from one call to the next, and how much the
// contributions of children may take at once in a reduction, bytes; one contribution
// may always be held.
const roomKept = 64 << 10

// keep is n bytes for the call, aligned for every type.
func (w *work) keep(n int) []byte {
	if n > roomKept && n > 8*len(w.kept) {
		if room, ok := largeRooms.Get().(*[]uint64); ok {
			w.kept = *room
		}
	}
	return words(&w.kept, n)
}

// largeRooms are rooms of more than roomKept bytes, which no call uses and the collector takes in time. Where each call
// has its room made, and so cleared, an AllReduce of 1 MiB between two ranks takes 850 us over udp, not 676.
var largeRooms sync.Pool // of *[]uint64

// release gives back a room of more than roomKept bytes of a call that has ended well. After a failure a put
// may still read it.
func (w *work) release(err error) {
	if len(w.kept) <= roomKept/8 {
		return
	}
	if err == nil {
		room := w.kept
		largeRooms.Put(&room)
	}
	w.kept = nil
}

func (w *work) barrier() {
	c := w.c
	for i := 0; 1<<i < c.size; i++ {
		w.add(stageOffer, down, i, c.below(i), nil)
		w.add(stageHear, down, i, c.above(i), nil)
	}
}

// broadcast spreads buf of root to all.
func (w *work) broadcast(root int, buf []byte) {
	w.expect(root, buf)
	if w.card() {
		w.add(stageReady, 0, 0, root, nil)
	}
	w.spread(root, buf)
}

// expect is the first half of broadcast: buf is overwritten from now on, though not before the root
// comes to spread.
func (w *work) expect(root int, buf []byte) {
	dir, i, rank, ok := w.c.source(root)
	switch {
	case !ok:
	case w.card():
		w.add(stageExpect, 0, 0, root, buf)
	default:
		w.post(dir, i, rank, buf)
	}
}

func (w *work) spread(root int, buf []byte) {
	dir, i, rank, ok := w.c.source(root)
	switch {
	case w.card() && ok:
		w.add(stageAwaitCast, 0, 0, root, nil)
	case w.card():
		w.add(stageCast, 0, 0, 0, buf)
	default:
		if ok {
			w.await(dir, i, rank)
		}
		w.c.toBelow(root, func(dir, i, rank int) { w.send(dir, i, rank, buf) })
	}
}

// reduce combines acc of all ranks into acc of root; the others' acc holds
// something in between then. The contribution of later places in
// the tree is combined into that of earlier ones. The order depends on root and size only.
func (w *work) reduce(root int, acc []byte) {
	c := w.c
	p := c.relative(root)
	kids := c.fanout(p)
	batch, stride := batchOf(kids, len(acc))
	room := w.keep(batch * stride)
	for first := 0; first < kids; first += batch {
		last := min(first+batch, kids)
		for i := first; i < last; i++ {
			w.post(up, i, c.below(i), room[(i-first)*stride:][:len(acc)])
		}
		for i := first; i < last; i++ {
			w.add(stageAwait, up, i, c.below(i), acc)
		}
	}
	if p != 0 {
		i := bits.TrailingZeros(uint(p))
		w.send(up, i, c.above(i), acc)
	}
}

// batchOf is how many of so many contributions of size bytes a reduction has room for at
// once, and how many bytes each takes there.
func batchOf(kids, size int) (batch, stride int) {
	stride = strideOf(size)
	if stride == 0 {
		return kids, 0
	}
	return min(kids, max(1, roomKept/stride)), stride
}

// allReduce is reduce of own with the result on all ranks. What comes back is announced before
// anything is sent up: the result then meets ranks that are ready for it. It cannot come
// before this rank has sent own.
func (w *work) allReduce() (more bool) {
	if w.part == 1 {
		w.spread(0, w.own)
		return false
	}
	w.part = 1
	w.expect(0, w.own)
	w.reduce(0, w.own)
	return true
}

// gather collects one block of each rank at root, in order of their places
// there. buf has room for the blocks of all ranks at and below this one, or is own if
// there are none below.
func (w *work) gather(root int, own, buf []byte) {
	block, p := len(own), w.c.relative(root)
	bulk.Copy(buf, own)
	w.collect(root, buf, func(i int) (from, n int) { return block << i, block * w.c.subtree(p+1<<i) })
}

// collect has the data of the ranks below this one land in buf, which begins with its own,
// and sends all of it up. below returns the bytes that come from the place at distance 2^i.
func (w *work) collect(root int, buf []byte, below func(i int) (from, n int)) {
	c := w.c
	p := c.relative(root)
	kids := c.fanout(p)
	for i := range kids {
		from, n := below(i)
		w.post(up, i, c.below(i), buf[from:][:n])
	}
	for i := range kids {
		w.await(up, i, c.below(i))
	}
	if p != 0 {
		i := bits.TrailingZeros(uint(p))
		w.send(up, i, c.above(i), buf)
	}
}

// gatherTo is gather at root's all, where blocks are moved from the order of places, which
// begin with root, to that of ranks.
func (w *work) gatherTo() (more bool) {
	p := w.c.relative(w.root)
	if rooted(w.c, len(w.own)) {
		return w.gatherDirect()
	}
	if w.part == 1 {
		rotate(w.all, w.root*len(w.own))
		return false
	}
	buf := w.all
	switch {
	case p == 0:
	case w.c.fanout(p) == 0:
		buf = w.own
	default:
		buf = w.keep(len(w.own) * w.c.subtree(p))
	}
	w.gather(w.root, w.own, buf)
	w.part = 1
	return p == 0 && w.root != 0
}

// gatherDirect has each rank send own to the root, where window of them land at once.
func (w *work) gatherDirect() (more bool) {
	c, block := w.c, len(w.own)
	if c.rank != w.root {
		w.send(direct, 0, w.root, w.own)
		return false
	}
	if w.k == 0 {
		bulk.Copy(w.all[w.root*block:], w.own)
		w.k = 1
	}
	last := min(w.k+window, c.size)
	for k := w.k; k < last; k++ {
		r := around(w.root, k, c.size)
		w.post(direct, 0, r, w.all[r*block:][:block])
	}
	for k := w.k; k < last; k++ {
		w.await(direct, 0, around(w.root, k, c.size))
	}
	w.k = last
	return last < c.size
}

// allGather copies the own of all ranks into all. By the card the broadcast from rank 0 needs no
// barrier: each rank expects it before it takes part in gather, and rank 0 casts when it has heard
// of all. Nothing comes into all before this rank has sent what it has gathered there.
func (w *work) allGather(own, all []byte) (more bool) {
	c := w.c
	if block := len(own); c.directly(len(all)) {
		if w.k == 0 {
			bulk.Copy(all[c.rank*block:], own)
		}
		return w.direct(wholly(own), evenly(all, block))
	}
	if w.card() {
		w.expect(0, all)
	}
	w.gather(0, own, all[:len(own)*c.subtree(c.rank)])
	if !w.card() {
		w.expect(0, all)
	}
	w.spread(0, all)
	return false
}

// scatter is gather backwards: own is this rank's block of root's all.
func (w *work) scatter(root int, all, own []byte) {
	c := w.c
	block, p := len(own), c.relative(root)
	if rooted(c, block) {
		if p != 0 {
			w.post(direct, 0, root, own)
			w.await(direct, 0, root)
			return
		}
		for k := 1; k < c.size; k++ {
			r := around(root, k, c.size)
			w.send(direct, 0, r, all[r*block:][:block])
		}
		w.copy(own, all[root*block:][:block])
		return
	}
	kids := c.fanout(p)
	buf := own
	if p != 0 {
		if kids > 0 {
			buf = w.keep(block * c.subtree(p))
		}
		i := bits.TrailingZeros(uint(p))
		w.post(down, i, c.above(i), buf)
		w.await(down, i, c.above(i))
	}
	for i := kids - 1; i >= 0; i-- {
		if n := c.subtree(p + 1<<i); p != 0 {
			w.send(down, i, c.below(i), buf[block<<i:][:block*n])
		} else {
			w.send(down, i, c.below(i), wrapped(all, block, c.below(i), n))
		}
	}
	switch {
	case p == 0:
		w.copy(own, all[root*block:][:block])
	case kids > 0:
		w.copy(own, buf[:block])
	}
}

// exchange sends block r of out to rank r and has block r of in come from there. In
// round i blocks that have 2^i ranks to go, and whatever they have to go after that, move
// on by so many (Bruck et al. 1997).
func (w *work) exchange(out, in []byte) (more bool) {
	c := w.c
	block := len(out) / c.size
	if c.directly(len(out)) {
		if w.k == 0 {
			bulk.Copy(in[c.rank*block:], out[c.rank*block:][:block])
		}
		return w.direct(evenly(out, block), evenly(in, block))
	}
	// Block j of room is to go j ranks, and later one that has come j ranks.
	if w.k == 0 {
		w.room = w.keep(len(out))
		rotated := bulk.Copy(w.room, out[c.rank*block:])
		bulk.Copy(w.room[rotated:], out)
	}
	// moved copies the blocks of round i by move, and returns how many bytes they are: at most
	// half of in, since below each such block there is one that stays.
	moved := func(i int, move func(way []byte, n int) int) (n int) {
		for j := 1 << i; j < c.size; j += 2 << i {
			n += move(w.room[j*block:min(j+1<<i, c.size)*block], n)
		}
		return n
	}
	if w.k > 0 {
		n := moved(w.k-1, func(way []byte, _ int) int { return len(way) })
		moved(w.k-1, func(way []byte, at int) int { return bulk.Copy(way, in[n+at:]) })
	}
	if i := w.k; 1<<i < c.size {
		n := moved(i, func(way []byte, at int) int { return bulk.Copy(in[at:], way) })
		w.post(down, i, c.above(i), in[n:][:n])
		w.send(down, i, c.below(i), in[:n])
		w.await(down, i, c.above(i))
		w.k++
		return true
	}
	for j := range c.size {
		bulk.Copy(in[around(c.rank, -j, c.size)*block:][:block], w.room[j*block:])
	}
	w.k = 0
	return false
}

// scan leaves in own the combination of all ranks up to this one and in all
// that of all ranks below it, if there are any; all may be nil. The Combine makes acc the
// combination of in, which is of lower ranks, and acc.
func (w *work) scan() {
	c, acc, before := w.c, w.own, w.all
	in := w.keep(len(acc))
	for i := 0; 1<<i < c.size; i++ {
		has := c.rank >= 1<<i
		if has {
			w.post(down, i, c.above(i), in)
		}
		if c.rank+1<<i < c.size {
			w.send(down, i, c.below(i), acc)
		}
		if !has {
			continue
		}
		w.await(down, i, c.above(i))
		switch {
		case before == nil:
		case i == 0:
			w.copy(before, in)
		default:
			w.merge(before, in)
		}
		w.merge(acc, in)
	}
}

// direct sends out of each other rank there, and has data from it land in its in, abreast partners in
// a list. Both ranks know how long that is; nothing is sent of what is empty.
func (w *work) direct(out, in pieces) (more bool) {
	c := w.c
	if w.k == 0 {
		w.k, w.posted = 1, 1
	}
	if w.k == c.size { // one rank
		w.k = 0
		return false
	}
	for ; w.posted < c.size && w.posted < w.k+window; w.posted++ {
		from := around(c.rank, -w.posted, c.size)
		if b := in.of(from); len(b) > 0 {
			w.post(direct, 0, from, b)
		}
	}
	last := min(w.k+abreast, c.size)
	for k := w.k; k < last; k++ {
		to := around(c.rank, k, c.size)
		if b := out.of(to); len(b) > 0 {
			w.send(direct, 0, to, b)
		}
	}
	for k := w.k; k < last; k++ {
		from := around(c.rank, -k, c.size)
		if b := in.of(from); len(b) > 0 {
			w.await(direct, 0, from)
		}
	}
	if w.k = last; w.k == c.size {
		w.k = 0
	}
	return w.k > 0
}

// reduceDirect combines the out of this rank, which each rank has as long as own is here, and
// leaves it in own.
func (w *work) reduceDirect(out pieces, own []byte) (more bool) {
	c, stride := w.c, strideOf(len(own))
	if w.k == 0 && len(own) > 0 {
		w.room = w.keep(stride * c.size)
		bulk.Copy(w.room[c.rank*stride:], out.of(c.rank))
	}
	if w.direct(out, pieces{all: w.room, stride: stride, size: len(own)}) {
		return true
	}
	if len(own) > 0 {
		w.local(stageFold, own, w.room)
	}
	return false
}

// allReduceDirect is allReduce of own, which has elements of unit bytes: each rank combines
// a part of them for all.
func (w *work) allReduceDirect() (more bool) {
	c, acc := w.c, w.own
	if w.block == 0 {
		per := (len(acc)/w.unit + c.size - 1) / c.size
		w.block = (per + 7) &^ 7 * w.unit // each begins at a multiple of 8 bytes
	}
	all := evenly(acc, w.block)
	own := all.of(c.rank)
	if w.part == 0 {
		if w.reduceDirect(all, own) {
			return true
		}
		w.part = 1
	}
	return w.direct(wholly(own), all)
}

// reduceScatter leaves in own the combination of block rank of the all of all ranks.
func (w *work) reduceScatter() (more bool) {
	if w.c.directly(len(w.all)) {
		return w.reduceDirect(evenly(w.all, len(w.own)), w.own)
	}
	w.reduce(0, w.all)
	w.scatter(0, w.all, w.own)
	return false
}

// exchangeV sends out[r] to rank r, for all r, and leaves in blocks what the ranks send to this one.
func (w *work) exchangeV() (more bool) {
	c := w.c
	if w.part == 0 {
		if w.lens == nil {
			w.lens, w.whole = make([]byte, 8*c.size), make([]byte, 8*c.size)
			for r, b := range w.out {
				binary.LittleEndian.PutUint64(w.lens[8*r:], uint64(len(b)))
			}
		}
		if w.exchange(w.lens, w.whole) {
			return true
		}
		w.part, w.blocks = 1, cut(w.whole)
		bulk.Copy(w.blocks[c.rank], w.out[c.rank])
	}
	return w.direct(pieces{list: w.out}, pieces{list: w.blocks})
}

// gatherV leaves in blocks the own of all ranks at root.
func (w *work) gatherV() (more bool) {
	w.part++
	switch w.part {
	case 1:
		w.gatherLengths(w.root)
		return true
	case 2:
		w.gatherData(w.root)
		return true
	}
	if w.c.rank == w.root {
		rotate(w.lens, 8*w.root) // places begin with root, ranks with 0
		rotate(w.data, sumLengths(w.lens, 0, w.root))
		w.blocks = filled(w.lens, w.data)
	}
	return false
}

// gatherLengths leaves in lens the lengths of what the ranks give from this one's place on, as
// far as they are below it in the tree of root.
func (w *work) gatherLengths(root int) {
	w.lens = make([]byte, 8*w.c.subtree(w.c.relative(root)))
	w.gather(root, binary.LittleEndian.AppendUint64(nil, uint64(len(w.own))), w.lens)
}

// gatherData leaves in data what these ranks give.
func (w *work) gatherData(root int) {
	c := w.c
	p := c.relative(root)
	w.data = w.own
	if c.fanout(p) > 0 {
		w.data = make([]byte, sumLengths(w.lens, 0, len(w.lens)/8))
		bulk.Copy(w.data, w.own)
	}
	w.collect(root, w.data, func(i int) (from, n int) {
		return sumLengths(w.lens, 0, 1<<i), sumLengths(w.lens, 1<<i, c.subtree(p+1<<i))
	})
}

// allGatherV leaves in blocks the own of all ranks on all ranks, of which room has the lengths.
func (w *work) allGatherV() (more bool) {
	c := w.c
	const lengthsOfAll, lengths, data, all, last, directly = 0, 1, 2, 3, 4, 5
	switch w.part {
	case lengthsOfAll:
		w.part, w.room = lengths, make([]byte, 8*c.size)
		binary.LittleEndian.PutUint64(w.room[8*c.rank:], uint64(len(w.own)))
		w.allGather(w.room[8*c.rank:][:8], w.room)
		return true
	case lengths:
		total := sumLengths(w.room, 0, c.size)
		if c.directly(total) {
			w.part, w.blocks = directly, cut(w.room)
			bulk.Copy(w.blocks[c.rank], w.own)
			break
		}
		if c.rank != 0 {
			w.whole = make([]byte, total)
		}
		if w.card() { // as for allGather
			w.expect(0, w.whole)
		}
		w.part = data
		w.gatherLengths(0)
		return true
	case data:
		w.part = all
		w.gatherData(0)
		return true
	case all:
		if c.rank == 0 {
			w.whole = w.data
		}
		if !w.card() {
			w.expect(0, w.whole)
		}
		w.part = last
		w.spread(0, w.whole)
		return true
	case last:
		w.blocks = filled(w.room, w.whole)
		return false
	}
	return w.direct(wholly(w.own), pieces{list: w.blocks})
}
