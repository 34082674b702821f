package collective

import (
	"encoding/binary"
	"math/bits"

	"github.com/argon-go/argon/internal/bulk"
)

// A call that nothing waits for is a list of stages, which arrivals advance. The lists say
// what the functions of moves.go and direct.go do, in the same order, so that messages
// and the order of combination are the same.

// The stages.
const (
	stagePost    = iota // say that data is to land in buf
	stageAwait          // until it has
	stageSend           // buf, when the receiver is ready
	stageOffer          // of nothing: this rank is in the barrier
	stageHear           // until such an offer has come; up to here transfers
	stageCombine        // from into buf
	stageDo             // fn, which may add stages that come next
	stageDrop           // the link for direct transfers, with what came by it if from is not nil
)

// stage is one of them; dir, i and rank name the transfer as for Endpoint.post.
type stage struct {
	buf, from    []byte
	fn           func()
	rank         int32
	do, dir, far uint8 // far is i
}

func (o *op) add(do, dir, i, rank int, buf []byte) {
	o.stages = append(o.stages, stage{do: uint8(do), dir: uint8(dir), far: uint8(i), rank: int32(rank), buf: buf})
}

func (o *op) post(dir, i, rank int, buf []byte) { o.add(stagePost, dir, i, rank, buf) }
func (o *op) await(dir, i, rank int)            { o.add(stageAwait, dir, i, rank, nil) }
func (o *op) send(dir, i, rank int, buf []byte) { o.add(stageSend, dir, i, rank, buf) }
func (o *op) do(fn func())                      { o.stages = append(o.stages, stage{do: stageDo, fn: fn}) }

func (o *op) combineIn(acc, in []byte) {
	o.stages = append(o.stages, stage{do: stageCombine, buf: acc, from: in})
}

// room is n bytes for the call, aligned for every type.
func (o *op) room(n int) []byte { return words(&o.scratch, n) }

func (o *op) barrier() {
	c := o.c
	for i := 0; 1<<i < c.size; i++ {
		o.add(stageOffer, down, i, c.below(i), nil)
		o.add(stageHear, down, i, c.above(i), nil)
	}
}

func (o *op) broadcast(root int, buf []byte) {
	o.expect(root, buf)
	o.spread(root, buf)
}

func (o *op) expect(root int, buf []byte) {
	if dir, i, rank, ok := o.c.source(root); ok {
		o.post(dir, i, rank, buf)
	}
}

func (o *op) spread(root int, buf []byte) {
	if dir, i, rank, ok := o.c.source(root); ok {
		o.await(dir, i, rank)
	}
	_ = o.c.toBelow(root, func(dir, i, rank int) error {
		o.send(dir, i, rank, buf)
		return nil
	})
}

func (o *op) reduce(root int, acc []byte) {
	c := o.c
	p := c.relative(root)
	kids := c.fanout(p)
	batch, stride := batchOf(kids, len(acc))
	room := o.room(batch * stride)
	part := func(i int) []byte { return room[i%max(batch, 1)*stride:][:len(acc)] }
	for first := 0; first < kids; first += batch {
		last := min(first+batch, kids)
		for i := first; i < last; i++ {
			o.post(up, i, c.below(i), part(i))
		}
		for i := first; i < last; i++ {
			o.await(up, i, c.below(i))
			o.combineIn(acc, part(i))
		}
	}
	if p != 0 {
		i := bits.TrailingZeros(uint(p))
		o.send(up, i, c.above(i), acc)
	}
}

func (o *op) allReduce(acc []byte) {
	o.expect(0, acc)
	o.reduce(0, acc)
	o.spread(0, acc)
}

func (o *op) gather(root int, own, buf []byte) {
	block, p := len(own), o.c.relative(root)
	o.do(func() { bulk.Copy(buf, own) })
	o.collect(root, buf, func(i int) (from, n int) { return block << i, block * o.c.subtree(p+1<<i) })
}

func (o *op) collect(root int, buf []byte, below func(i int) (from, n int)) {
	c := o.c
	p := c.relative(root)
	kids := c.fanout(p)
	for i := range kids {
		from, n := below(i)
		o.post(up, i, c.below(i), buf[from:][:n])
	}
	for i := range kids {
		o.await(up, i, c.below(i))
	}
	if p != 0 {
		i := bits.TrailingZeros(uint(p))
		o.send(up, i, c.above(i), buf)
	}
}

// gatherTo is Gather: gather, and what lies in order of places in order of ranks then.
func (o *op) gatherTo(root int, own, all []byte) {
	buf, p := all, o.c.relative(root)
	switch {
	case p == 0:
	case o.c.fanout(p) == 0:
		buf = own
	default:
		buf = o.room(len(own) * o.c.subtree(p))
	}
	o.gather(root, own, buf)
	if p == 0 && root != 0 {
		o.do(func() { rotate(all, root*len(own)) })
	}
}

func (o *op) allGather(own, all []byte) {
	c := o.c
	if block := len(own); c.directly(len(all)) {
		bulk.Copy(all[c.rank*block:], own)
		o.direct(func(int) []byte { return own }, func(r int) []byte { return all[r*block:][:block] })
		return
	}
	o.gather(0, own, all[:len(own)*c.subtree(c.rank)])
	o.broadcast(0, all)
}

func (o *op) scatter(root int, all, own []byte) {
	c := o.c
	block, p := len(own), c.relative(root)
	kids := c.fanout(p)
	buf := own
	if p != 0 && kids > 0 {
		buf = o.room(block * c.subtree(p))
	}
	if p != 0 {
		i := bits.TrailingZeros(uint(p))
		o.post(down, i, c.above(i), buf)
		o.await(down, i, c.above(i))
	}
	o.do(func() {
		for i := kids - 1; i >= 0; i-- {
			n := c.subtree(p + 1<<i)
			if p == 0 {
				o.send(down, i, c.below(i), c.blocks(all, block, c.below(i), n))
				continue
			}
			o.send(down, i, c.below(i), buf[block<<i:][:block*n])
		}
		switch {
		case p == 0:
			bulk.Copy(own, all[root*block:])
		case kids > 0:
			bulk.Copy(own, buf)
		}
	})
}

func (o *op) exchange(out, in []byte) {
	c := o.c
	block := len(out) / c.size
	if c.directly(len(out)) {
		bulk.Copy(in[c.rank*block:], out[c.rank*block:][:block])
		o.direct(func(r int) []byte { return out[r*block:][:block] }, func(r int) []byte { return in[r*block:][:block] })
		return
	}
	way := o.room(len(out))
	o.do(func() {
		rotated := bulk.Copy(way, out[c.rank*block:])
		bulk.Copy(way[rotated:], out)
	})
	for i := 0; 1<<i < c.size; i++ {
		o.do(func() {
			n := 0
			for j := 1 << i; j < c.size; j += 2 << i {
				n += bulk.Copy(in[n:], way[j*block:min(j+1<<i, c.size)*block])
			}
			come := in[n:][:n]
			o.post(down, i, c.above(i), come)
			o.send(down, i, c.below(i), in[:n])
			o.await(down, i, c.above(i))
			o.do(func() {
				n := 0
				for j := 1 << i; j < c.size; j += 2 << i {
					n += bulk.Copy(way[j*block:min(j+1<<i, c.size)*block], come[n:])
				}
			})
		})
	}
	o.do(func() {
		for j := range c.size {
			from := (c.rank - j + c.size) % c.size
			bulk.Copy(in[from*block:][:block], way[j*block:])
		}
	})
}

func (o *op) scan(acc, before []byte) {
	c := o.c
	in := o.room(len(acc))
	for i := 0; 1<<i < c.size; i++ {
		has := c.rank >= 1<<i
		if has {
			o.post(down, i, c.above(i), in)
		}
		if c.rank+1<<i < c.size {
			o.send(down, i, c.below(i), acc)
		}
		if !has {
			continue
		}
		o.await(down, i, c.above(i))
		switch {
		case before == nil:
		case i == 0:
			o.do(func() { bulk.Copy(before, in) })
		default:
			o.combineIn(before, in)
		}
		o.combineIn(acc, in)
	}
}

func (o *op) direct(out, in func(r int) []byte) {
	c := o.c
	k, posted := 1, 1
	var more func()
	more = func() {
		if k >= c.size {
			return
		}
		for ; posted < c.size && posted < k+window; posted++ {
			from := around(c.rank, -posted, c.size)
			if b := in(from); len(b) > 0 {
				o.post(direct, 0, from, b)
			}
		}
		to, from := around(c.rank, k, c.size), around(c.rank, -k, c.size)
		if b := out(to); len(b) > 0 {
			o.send(direct, 0, to, b)
			o.add(stageDrop, direct, 0, to, nil)
		}
		if b := in(from); len(b) > 0 {
			o.await(direct, 0, from)
			o.stages = append(o.stages, stage{do: stageDrop, dir: direct, rank: int32(from), from: b})
		}
		k++
		o.do(more)
	}
	o.do(more)
}

func (o *op) reduceDirect(out func(r int) []byte, own []byte) {
	c := o.c
	stride := (len(own) + 7) &^ 7
	var room []byte
	if len(own) > 0 {
		room = o.room(stride * c.size)
		bulk.Copy(room[c.rank*stride:], out(c.rank))
	}
	o.direct(out, func(r int) []byte { return room[min(len(room), r*stride):][:len(own)] })
	if len(own) > 0 {
		o.do(func() {
			combineBlocks(room, c.size, stride, len(own), o.combine)
			bulk.Copy(own, room)
		})
	}
}

func (o *op) allReduceDirect(acc []byte, elem int) {
	c := o.c
	per := (len(acc)/elem + c.size - 1) / c.size
	part := (per + 7) &^ 7 * elem
	of := func(r int) []byte {
		at := min(r*part, len(acc))
		return acc[at:min(at+part, len(acc))]
	}
	own := of(c.rank)
	o.reduceDirect(of, own)
	o.direct(func(int) []byte { return own }, of)
}

func (o *op) reduceScatter(all, own []byte) {
	if block := len(own); o.c.directly(len(all)) {
		o.reduceDirect(func(r int) []byte { return all[r*block:][:block] }, own)
		return
	}
	o.reduce(0, all)
	o.scatter(0, all, own)
}

func (o *op) exchangeV(out [][]byte) {
	c := o.c
	lens, come := make([]byte, 8*c.size), make([]byte, 8*c.size)
	for r, b := range out {
		binary.LittleEndian.PutUint64(lens[8*r:], uint64(len(b)))
	}
	o.exchange(lens, come)
	o.do(func() {
		in := cut(come)
		bulk.Copy(in[c.rank], out[c.rank])
		o.blocks = in
		o.direct(func(r int) []byte { return out[r] }, func(r int) []byte { return in[r] })
	})
}

func (o *op) gatherV(root int, own []byte) {
	o.gatherPlaces(root, own, func(lens, data []byte) {
		if o.c.rank != root {
			return
		}
		rotate(lens, 8*root)
		rotate(data, sumLengths(lens, 0, root))
		o.blocks = filled(lens, data)
	})
}

// filled is blocks of the lengths lens with data.
func filled(lens, data []byte) [][]byte {
	all := cut(lens)
	for _, b := range all {
		data = data[bulk.Copy(b, data):]
	}
	return all
}

// gatherPlaces has then get what Endpoint.gatherPlaces returns.
func (o *op) gatherPlaces(root int, own []byte, then func(lens, data []byte)) {
	c := o.c
	p := c.relative(root)
	lens := make([]byte, 8*c.subtree(p))
	mine := binary.LittleEndian.AppendUint64(nil, uint64(len(own)))
	o.gather(root, mine, lens)
	o.do(func() {
		data := own
		if c.fanout(p) > 0 {
			data = make([]byte, sumLengths(lens, 0, len(lens)/8))
			bulk.Copy(data, own)
		}
		o.collect(root, data, func(i int) (from, n int) {
			return sumLengths(lens, 0, 1<<i), sumLengths(lens, 1<<i, c.subtree(p+1<<i))
		})
		o.do(func() { then(lens, data) })
	})
}

func (o *op) allGatherV(own []byte) {
	c := o.c
	lens := make([]byte, 8*c.size)
	binary.LittleEndian.PutUint64(lens[8*c.rank:], uint64(len(own)))
	o.allGather(lens[8*c.rank:][:8], lens)
	o.do(func() {
		total := sumLengths(lens, 0, c.size)
		if c.directly(total) {
			all := cut(lens)
			bulk.Copy(all[c.rank], own)
			o.blocks = all
			o.direct(func(int) []byte { return own }, func(r int) []byte { return all[r] })
			return
		}
		o.gatherPlaces(0, own, func(_, data []byte) {
			if c.rank != 0 {
				data = make([]byte, total)
			}
			o.broadcast(0, data)
			o.do(func() { o.blocks = filled(lens, data) })
		})
	})
}
