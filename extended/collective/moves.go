package collective

import (
	"math/bits"

	"github.com/argon-go/argon/internal/bulk"
)

// broadcast spreads buf of root to all.
func (c *Endpoint) broadcast(root int, buf []byte) error {
	if err := c.expect(root, buf); err != nil {
		return err
	}
	if c.card != nil {
		if err := c.enter(); err != nil {
			return err
		}
		if c.rank == root {
			if err := c.met(); err != nil {
				return err
			}
		}
	}
	return c.spread(root, buf)
}

// expect is the first half of broadcast: buf is overwritten from now on, though
// not before the root calls spread.
func (c *Endpoint) expect(root int, buf []byte) error {
	dir, i, rank, ok := c.source(root)
	if !ok {
		return nil
	}
	if c.card != nil {
		c.mu.Lock()
		c.link(keyAt(cast, 0, c.job(root))).land = landing{open: true, buf: buf}
		c.mu.Unlock()
		return nil
	}
	return c.post(dir, i, rank, buf)
}

func (c *Endpoint) spread(root int, buf []byte) error {
	switch {
	case c.card == nil:
	case c.rank == root:
		return c.cast(buf)
	default:
		return c.awaitCast(root)
	}
	if dir, i, rank, ok := c.source(root); ok {
		if err := c.await(dir, i, rank); err != nil {
			return err
		}
	}
	return c.toBelow(root, func(dir, i, rank int) error { return c.send(dir, i, rank, buf) })
}

// roomKept is how much memory is kept from one call to the next, and how much the
// contributions of children may take at once in a reduction, bytes; one contribution
// may always be held, and is kept.
const roomKept = 64 << 10

// room is n bytes for the call under way.
func (c *Endpoint) room(n int) []byte {
	if n > roomKept {
		return make([]byte, n)
	}
	return words(&c.scratch, n)
}

// reduce combines acc of all ranks into acc of root; the others' acc holds
// something in between then. combine adds the contribution of later places in
// the tree to that of earlier ones. The order depends on root and size only.
func (c *Endpoint) reduce(root int, acc []byte, combine Combine) error {
	p := c.relative(root)
	kids := c.fanout(p)
	batch, stride := batchOf(kids, len(acc))
	room := words(&c.scratch, batch*stride)
	for first := 0; first < kids; first += batch {
		last := min(first+batch, kids)
		for i := first; i < last; i++ {
			if err := c.post(up, i, c.below(i), room[(i-first)*stride:][:len(acc)]); err != nil {
				return err
			}
		}
		for i := first; i < last; i++ {
			if err := c.await(up, i, c.below(i)); err != nil {
				return err
			}
			combine(acc, room[(i-first)*stride:][:len(acc)])
		}
	}
	if p == 0 {
		return nil
	}
	i := bits.TrailingZeros(uint(p))
	return c.send(up, i, c.above(i), acc)
}

// batchOf is how many of so many contributions of size bytes a reduction has room for at
// once, and how many bytes each takes there.
func batchOf(kids, size int) (batch, stride int) {
	stride = (size + 7) &^ 7
	if stride == 0 {
		return kids, 0
	}
	return min(kids, max(1, roomKept/stride)), stride
}

// allReduce is reduce with the result on all ranks.
func (c *Endpoint) allReduce(acc []byte, combine Combine) error {
	// Announced before anything is sent up: the result then meets ranks that are
	// ready for it. It cannot come before this rank has sent acc.
	if err := c.expect(0, acc); err != nil {
		return err
	}
	if err := c.reduce(0, acc, combine); err != nil {
		return err
	}
	return c.spread(0, acc)
}

// gather collects one block of each rank at root, in order of their places
// there. buf has room for the blocks of all ranks at and below this one, or is own if
// there are none below.
func (c *Endpoint) gather(root int, own, buf []byte) error {
	block, p := len(own), c.relative(root)
	bulk.Copy(buf, own)
	return c.collect(root, buf, func(i int) (from, n int) { return block << i, block * c.subtree(p+1<<i) })
}

// collect has the data of the ranks below this one land in buf, which begins with its own,
// and sends all of it up. below says which bytes are from the place at distance 2^i.
func (c *Endpoint) collect(root int, buf []byte, below func(i int) (from, n int)) error {
	p := c.relative(root)
	kids := c.fanout(p)
	for i := range kids {
		from, n := below(i)
		if err := c.post(up, i, c.below(i), buf[from:][:n]); err != nil {
			return err
		}
	}
	for i := range kids {
		if err := c.await(up, i, c.below(i)); err != nil {
			return err
		}
	}
	if p == 0 {
		return nil
	}
	i := bits.TrailingZeros(uint(p))
	return c.send(up, i, c.above(i), buf)
}

// allGather copies the own of all ranks into all.
func (c *Endpoint) allGather(own, all []byte) error {
	if block := len(own); c.directly(len(all)) {
		bulk.Copy(all[c.rank*block:], own)
		return c.direct(func(int) []byte { return own }, func(r int) []byte { return all[r*block:][:block] })
	}
	return c.gatherAndSpread(&all, func() error { return c.gather(0, own, all[:len(own)*c.subtree(c.rank)]) })
}

// gatherAndSpread is gather, by which rank 0 hears of all ranks, and a broadcast from there of
// buf, which gather may choose on rank 0. By the card that needs no barrier: each rank says what
// it expects before it takes part in gather, and rank 0 casts when it has heard of all. Nothing
// comes into buf before this rank has sent what it has gathered, which may lie there.
func (c *Endpoint) gatherAndSpread(buf *[]byte, gather func() error) error {
	if c.card == nil {
		if err := gather(); err != nil {
			return err
		}
		return c.broadcast(0, *buf)
	}
	if err := c.expect(0, *buf); err != nil {
		return err
	}
	if err := gather(); err != nil {
		return err
	}
	return c.spread(0, *buf)
}

// gathered is where gather collects at this rank, if all is where root wants it.
func (c *Endpoint) gathered(root int, own, all []byte) []byte {
	p := c.relative(root)
	switch {
	case p == 0:
		return all
	case c.fanout(p) == 0:
		return own
	}
	return c.room(len(own) * c.subtree(p))
}

// rotate moves the last n bytes of b to its beginning.
func rotate(b []byte, n int) {
	k := len(b) - n
	if n <= k {
		last := bulk.Clone(b[k:])
		bulk.Copy(b[n:], b[:k])
		bulk.Copy(b, last)
		return
	}
	rest := bulk.Clone(b[:k])
	bulk.Copy(b, b[k:])
	bulk.Copy(b[n:], rest)
}

// scatter is gather backwards: own is this rank's block of root's all.
func (c *Endpoint) scatter(root int, all, own []byte) error {
	block, p := len(own), c.relative(root)
	kids := c.fanout(p)
	buf := own
	switch {
	case p == 0:
		bulk.Copy(own, all[root*block:])
	case kids > 0:
		buf = c.room(block * c.subtree(p))
	}
	if p != 0 {
		i := bits.TrailingZeros(uint(p))
		if err := c.post(down, i, c.above(i), buf); err != nil {
			return err
		}
		if err := c.await(down, i, c.above(i)); err != nil {
			return err
		}
	}
	for i := kids - 1; i >= 0; i-- {
		var part []byte
		if n := c.subtree(p + 1<<i); p != 0 {
			part = buf[block<<i:][:block*n]
		} else {
			part = c.blocks(all, block, c.below(i), n)
		}
		if err := c.send(down, i, c.below(i), part); err != nil {
			return err
		}
	}
	if p != 0 && kids > 0 {
		bulk.Copy(own, buf)
	}
	return nil
}

// blocks are the n blocks of all from that of rank first on; after the last one
// comes the one of rank 0.
func (c *Endpoint) blocks(all []byte, block, first, n int) []byte {
	if first+n <= c.size {
		return all[first*block:][:n*block]
	}
	part := append(make([]byte, 0, n*block), all[first*block:]...)
	return append(part, all[:(first+n-c.size)*block]...)
}

// exchange sends block r of out to rank r and has block r of in come from there. In
// round i blocks that have 2^i ranks to go, and whatever they have to go after that, move
// on by so many (Bruck et al. 1997).
func (c *Endpoint) exchange(out, in []byte) error {
	block := len(out) / c.size
	if c.directly(len(out)) {
		bulk.Copy(in[c.rank*block:], out[c.rank*block:][:block])
		return c.direct(func(r int) []byte { return out[r*block:][:block] }, func(r int) []byte { return in[r*block:][:block] })
	}
	// Block j of way is to go j ranks, and later one that has come j ranks.
	way := c.room(len(out))
	rotated := bulk.Copy(way, out[c.rank*block:])
	bulk.Copy(way[rotated:], out)
	for i := 0; 1<<i < c.size; i++ {
		n := 0
		for j := 1 << i; j < c.size; j += 2 << i {
			n += bulk.Copy(in[n:], way[j*block:min(j+1<<i, c.size)*block])
		}
		// n is at most half of in: below each such j there is one without the bit.
		come := in[n:][:n]
		if err := c.post(down, i, c.above(i), come); err != nil {
			return err
		}
		if err := c.send(down, i, c.below(i), in[:n]); err != nil {
			return err
		}
		if err := c.await(down, i, c.above(i)); err != nil {
			return err
		}
		n = 0
		for j := 1 << i; j < c.size; j += 2 << i {
			n += bulk.Copy(way[j*block:min(j+1<<i, c.size)*block], come[n:])
		}
	}
	for j := range c.size {
		from := (c.rank - j + c.size) % c.size
		bulk.Copy(in[from*block:][:block], way[j*block:])
	}
	return nil
}

// subtree is how many places there are at and below place p.
func (c *Endpoint) subtree(p int) int {
	if p == 0 {
		return c.size
	}
	return min(p&-p, c.size-p)
}

// scan leaves in acc the combination of all ranks up to this one and in before
// that of all ranks below it, if there are any; before may be nil. prepend makes acc the
// combination of in, which is of lower ranks, and acc.
func (c *Endpoint) scan(acc, before []byte, prepend Combine) error {
	in := words(&c.scratch, len(acc))
	for i := 0; 1<<i < c.size; i++ {
		has := c.rank >= 1<<i
		if has {
			if err := c.post(down, i, c.above(i), in); err != nil {
				return err
			}
		}
		if c.rank+1<<i < c.size {
			if err := c.send(down, i, c.below(i), acc); err != nil {
				return err
			}
		}
		if !has {
			continue
		}
		if err := c.await(down, i, c.above(i)); err != nil {
			return err
		}
		switch {
		case before == nil:
		case i == 0:
			bulk.Copy(before, in)
		default:
			prepend(before, in)
		}
		prepend(acc, in)
	}
	return nil
}
