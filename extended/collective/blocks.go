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

// abreast is how many ranks one sends to before it waits for what they send. Eight ranks on two processors take 4.2 ms for
// an AllReduce of 64 KiB over udp so, and 8.7 where they wait after each; four take 1.4 and 1.8.
const abreast = 8

// foldBlocks leaves in own the combination of the blocks of n ranks in room, each as long as
// own. The order is that of a reduction with root 0, whose place p combines p + 2^i for all i in turn.
func foldBlocks(own, room []byte, n int, combine Combine) {
	stride, size := strideOf(len(own)), len(own)
	for d := 1; d < n; d *= 2 {
		for p := 0; p+d < n; p += 2 * d {
			combine(room[p*stride:][:size], room[(p+d)*stride:][:size])
		}
	}
	bulk.Copy(own, room)
}

// strideOf is how far apart blocks of size bytes are, so that each begins at a multiple of 8 bytes.
func strideOf(size int) int { return (size + 7) &^ 7 }

// pieces are the data of each rank: those of a list, or size bytes, or less at the end, of all at each stride.
type pieces struct {
	all          []byte
	stride, size int
	list         [][]byte
}

// evenly is all in blocks of one size.
func evenly(all []byte, block int) pieces { return pieces{all: all, stride: block, size: block} }

// wholly is b for each rank.
func wholly(b []byte) pieces { return pieces{all: b, size: len(b)} }

// of is those of rank r.
func (p pieces) of(r int) []byte {
	if p.list != nil {
		return p.list[r]
	}
	at := min(r*p.stride, len(p.all))
	return p.all[at:min(at+p.size, len(p.all))]
}

// cut is n blocks of lens[0], lens[1], ... bytes, and what lies in
// them. Each begins at a multiple of 8 bytes.
func cut(lens []byte) [][]byte {
	n := len(lens) / 8
	total := 0
	for r := range n {
		total += strideOf(length(lens, r))
	}
	var buf []uint64
	room := words(&buf, total)
	blocks := make([][]byte, n)
	for r := range blocks {
		k := length(lens, r)
		blocks[r] = room[:k:k]
		room = room[strideOf(k):]
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

// filled is blocks of the lengths lens with data.
func filled(lens, data []byte) [][]byte {
	all := cut(lens)
	for _, b := range all {
		data = data[bulk.Copy(b, data):]
	}
	return all
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

// wrapped is n blocks of all from number first on; after the last one comes the first.
func wrapped(all []byte, block, first, n int) []byte {
	all, from := all[:len(all):len(all)], first*block
	if from+n*block <= len(all) {
		return all[from:][:n*block]
	}
	part := append(make([]byte, 0, n*block), all[from:]...)
	return append(part, all[:n*block-len(part)]...)
}
