package collective

import (
	"encoding/binary"

	"github.com/argon-go/argon/internal/bulk"
)

// Blocks of at least directBlock bytes are sent to the ranks that want them, and to no
// other on the way. That takes Size - 1 messages of a rank in place of O(log Size), of which
// each is a message that says that the receiver is ready and one with data. The size lies between
// where the two ways cross on simulated ranks with links of their own, 64 to 256 bytes, and
// where they do if ranks share two processors, 1 to 4 KiB and more: BenchmarkDirect, and
// docs/performance.md.
const directBlock = 2 << 10

// window is how many ranks may send directly to this one at once: it bounds what is
// kept of them.
const window = 32

// direct sends out(r) to each other rank r, and has data from it land in in(r). Both
// ranks know how long that is; nothing is sent of what is empty.
func (c *Endpoint) direct(out, in func(r int) []byte) error {
	posted := 1
	for k := 1; k < c.size; k++ {
		for ; posted < c.size && posted < k+window; posted++ {
			from := around(c.rank, -posted, c.size)
			if b := in(from); len(b) > 0 {
				if err := c.post(direct, 0, from, b); err != nil {
					return err
				}
			}
		}
		to, from := around(c.rank, k, c.size), around(c.rank, -k, c.size)
		if b := out(to); len(b) > 0 {
			if err := c.send(direct, 0, to, b); err != nil {
				return err
			}
			c.unlinkDirect(to, false)
		}
		if len(in(from)) > 0 {
			if err := c.await(direct, 0, from); err != nil {
				return err
			}
			c.unlinkDirect(from, true)
		}
	}
	return nil
}

// combineBlocks leaves in the first of n blocks the combination of all, each of size
// bytes and stride bytes behind the one before it. The order is that of reduce with root 0,
// whose place p combines p + 2^i for all i in turn.
func combineBlocks(room []byte, n, stride, size int, combine Combine) {
	for d := 1; d < n; d *= 2 {
		for p := 0; p+d < n; p += 2 * d {
			combine(room[p*stride:][:size], room[(p+d)*stride:][:size])
		}
	}
}

// directly reports whether n bytes, which are one block of each rank, are enough for the
// blocks to be sent directly.
func (c *Endpoint) directly(n int) bool { return c.size > 1 && n/c.size >= directBlock }

// reduceDirect combines out(rank), which each rank has as long as own is here, and
// leaves it in own.
func (c *Endpoint) reduceDirect(out func(r int) []byte, own []byte, combine Combine) error {
	stride := (len(own) + 7) &^ 7
	var room []byte
	if len(own) > 0 {
		room = c.room(stride * c.size)
		bulk.Copy(room[c.rank*stride:], out(c.rank))
	}
	err := c.direct(out, func(r int) []byte { return room[min(len(room), r*stride):][:len(own)] })
	if err == nil && len(own) > 0 {
		combineBlocks(room, c.size, stride, len(own), combine)
		bulk.Copy(own, room)
	}
	return err
}

// allReduceDirect is allReduce of acc, which has elements of elem bytes: each rank combines
// a part of them for all.
func (c *Endpoint) allReduceDirect(acc []byte, elem int, combine Combine) error {
	per := (len(acc)/elem + c.size - 1) / c.size
	part := (per + 7) &^ 7 * elem // begins at a multiple of 8 bytes
	of := func(r int) []byte {
		at := min(r*part, len(acc))
		return acc[at:min(at+part, len(acc))]
	}
	own := of(c.rank)
	if err := c.reduceDirect(of, own, combine); err != nil {
		return err
	}
	return c.direct(func(int) []byte { return own }, of)
}

// reduceScatter leaves in own the combination of block rank of the all of all ranks.
func (c *Endpoint) reduceScatter(all, own []byte, combine Combine) error {
	if block := len(own); c.directly(len(all)) {
		return c.reduceDirect(func(r int) []byte { return all[r*block:][:block] }, own, combine)
	}
	if err := c.reduce(0, all, combine); err != nil {
		return err
	}
	return c.scatter(0, all, own)
}

// cut is n blocks of lens[0], lens[1], ... bytes, and what lies in
// them. Each begins at a multiple of 8 bytes.
func cut(lens []byte) [][]byte {
	n := len(lens) / 8
	total := 0
	for r := range n {
		total += (length(lens, r) + 7) &^ 7
	}
	var buf []uint64
	room := words(&buf, total)
	blocks := make([][]byte, n)
	for r := range blocks {
		k := length(lens, r)
		blocks[r] = room[:k:k]
		room = room[(k+7)&^7:]
	}
	return blocks
}

// length is the length number r of lens, in which they are words.
func length(lens []byte, r int) int { return int(binary.LittleEndian.Uint64(lens[8*r:])) }

// sumLengths is that of the lengths from number r on, n of them.
func sumLengths(lens []byte, r, n int) (total int) {
	for i := range n {
		total += length(lens, r+i)
	}
	return total
}

// exchangeV sends out[r] to rank r, for all r, and returns what the ranks send to this one.
func (c *Endpoint) exchangeV(out [][]byte) ([][]byte, error) {
	lens, come := make([]byte, 8*c.size), make([]byte, 8*c.size)
	for r, b := range out {
		binary.LittleEndian.PutUint64(lens[8*r:], uint64(len(b)))
	}
	if err := c.exchange(lens, come); err != nil {
		return nil, err
	}
	in := cut(come)
	bulk.Copy(in[c.rank], out[c.rank])
	return in, c.direct(func(r int) []byte { return out[r] }, func(r int) []byte { return in[r] })
}

// gatherV returns the own of all ranks at root.
func (c *Endpoint) gatherV(root int, own []byte) ([][]byte, error) {
	lens, data, err := c.gatherPlaces(root, own)
	if err != nil || c.rank != root {
		return nil, err
	}
	rotate(lens, 8*root) // places begin with root, ranks with 0
	rotate(data, sumLengths(lens, 0, root))
	all := cut(lens)
	for _, b := range all {
		data = data[bulk.Copy(b, data):]
	}
	return all, nil
}

// gatherPlaces returns the lengths of what the ranks give from this one's place on, as
// far as they are below it in the tree of root, and what they give.
func (c *Endpoint) gatherPlaces(root int, own []byte) (lens, data []byte, err error) {
	p := c.relative(root)
	lens = make([]byte, 8*c.subtree(p))
	var mine [8]byte
	binary.LittleEndian.PutUint64(mine[:], uint64(len(own)))
	if err := c.gather(root, mine[:], lens); err != nil {
		return nil, nil, err
	}
	data = own
	if c.fanout(p) > 0 {
		data = make([]byte, sumLengths(lens, 0, len(lens)/8))
		bulk.Copy(data, own)
	}
	return lens, data, c.collect(root, data, func(i int) (from, n int) {
		return sumLengths(lens, 0, 1<<i), sumLengths(lens, 1<<i, c.subtree(p+1<<i))
	})
}

// allGatherV returns the own of all ranks on all ranks.
func (c *Endpoint) allGatherV(own []byte) ([][]byte, error) {
	lens := make([]byte, 8*c.size)
	binary.LittleEndian.PutUint64(lens[8*c.rank:], uint64(len(own)))
	if err := c.allGather(lens[8*c.rank:][:8], lens); err != nil {
		return nil, err
	}
	all := cut(lens)
	if total := sumLengths(lens, 0, c.size); !c.directly(total) {
		var data []byte
		if c.rank != 0 {
			data = make([]byte, total)
		}
		err := c.gatherAndSpread(&data, func() error {
			_, gathered, err := c.gatherPlaces(0, own)
			if c.rank == 0 {
				data = gathered
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, b := range all {
			data = data[bulk.Copy(b, data):]
		}
		return all, nil
	}
	bulk.Copy(all[c.rank], own)
	return all, c.direct(func(int) []byte { return own }, func(r int) []byte { return all[r] })
}
