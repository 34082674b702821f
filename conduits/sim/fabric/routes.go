package fabric

import (
	"math"
	"math/bits"
)

// Links of a torus, in the order of positions: those of a position are the six
// to its neighbours, +x -x +y -y +z -z, then the one from and the one to its
// node.
const (
	torusLinks  = 8
	torusInject = 6
)

// reciprocal returns the number with which divide divides by d.
func reciprocal(d uint32) uint64 { return math.MaxUint64/uint64(d) + 1 }

// divide returns n/d and n%d for d > 1, given d's reciprocal: a multiplication,
// where a division would take as long as all the rest of a hop.
func divide(n, d uint32, inv uint64) (quo, rem uint32) {
	if inv == 0 { // d is 1
		return n, 0
	}
	hi, _ := bits.Mul64(uint64(n), inv)
	return uint32(hi), n - uint32(hi)*d
}

// torusStep goes one link from position at towards position to, which differs:
// along x, which runs fastest, until that is right, then along y, then along z
// (dimension order).
func (f *Fabric) torusStep(at, to uint32) (link, next uint32) {
	n := f.dims[0]
	stride := uint32(1)
	dim := uint32(0)
	q, c := divide(at, n, f.inv[0])
	r, d := divide(to, n, f.inv[0])
	if c == d {
		stride, n, dim = n, f.dims[1], 2
		q, c = divide(q, n, f.inv[1])
		r, d = divide(r, n, f.inv[1])
		if c == d {
			stride, n, dim = stride*n, f.dims[2], 4
			c, d = q, r
		}
	}
	link = torusLinks*at + dim
	if forward(c, d, n) {
		if c == n-1 {
			return link, at - c*stride
		}
		return link, at + stride
	}
	if c == 0 {
		return link + 1, at + (n-1)*stride
	}
	return link + 1, at - stride
}

// forward reports whether the shortest way from c to d on a ring of n goes up. Of
// two that are as short, every other c takes one, which halves the load.
func forward(c, d, n uint32) bool {
	up := d - c
	if d < c {
		up += n
	}
	return 2*up < n || 2*up == n && c%2 == 0
}

// around is the number of links between c and d on a ring of n.
func around(c, d, n uint32) uint32 {
	up := d - c
	if d < c {
		up += n
	}
	return min(up, n-up)
}

func (f *Fabric) torusHops(src, dst uint32) int {
	q, x := divide(src, f.dims[0], f.inv[0])
	r, u := divide(dst, f.dims[0], f.inv[0])
	z, y := divide(q, f.dims[1], f.inv[1])
	w, v := divide(r, f.dims[1], f.inv[1])
	return int(around(x, u, f.dims[0]) + around(y, v, f.dims[1]) + around(z, w, f.dims[2]))
}

// A fat tree of switches with d links down has levels 0 (with the nodes) to
// n-1. Written with digits to base d, a switch of level l is a word w of n-1
// digits; its link up number u leads to the switch of level l+1 whose word has
// u for digit l and is else the same. Nodes p with the same p/d hang on switch
// p/d of level 0. A packet goes up as far as the highest digit in which source
// and destination differ, taking as link up at level l digit l of the
// destination, which spreads destinations evenly, then down the only way there
// is.
//
// Links, after the two of each node: for each level l but the highest, in the
// order of the lower switch and of u, the one up and the one down.

// grow sets f.down, f.pow and f.width, and returns the number of links.
func (f *Fabric) grow() int {
	f.down = uint32(f.p.Radix / 2)
	f.pow = []uint32{1}
	n := uint64(f.nodes)
	for p := uint64(f.down); p < n; p *= uint64(f.down) {
		f.pow = append(f.pow, uint32(p))
	}
	levels := len(f.pow)
	// The highest digit may not need all its values.
	top := uint64(f.pow[levels-1])
	f.width = uint32((n + top - 1) / top * top)
	return 2*f.nodes + 2*(levels-1)*int(f.width)
}

// turn is the level of the lowest switch from which both nodes can be reached.
func (f *Fabric) turn(src, dst uint32) uint32 {
	src, dst = src/f.down, dst/f.down
	var l uint32
	for ; src != dst; l++ {
		src, dst = src/f.down, dst/f.down
	}
	return l
}

// treeStep goes one link of the path from src that a packet's b describes.
func (f *Fabric) treeStep(src uint32, b uint64) (link uint32, next uint64, last bool) {
	l := uint32(b>>levelShift) & levelMask
	dst := uint32(b)
	below := f.pow[l]       // switches that differ in digits under l
	block := below * f.down // links that they have up
	// Digits under l of the lower switch are those of the destination: they
	// were set on the way up.
	i := dst%below*f.down + dst/below%f.down
	if b&downMark != 0 {
		return f.treeLink(l, dst/block*block+i, 1), b - 1<<levelShift, l == 0
	}
	next = b + 1<<levelShift
	if uint64(l+1) == b>>turnShift&levelMask {
		next = b | downMark
	}
	return f.treeLink(l, src/block*block+i, 0), next, false
}

func (f *Fabric) treeLink(level, i, direction uint32) uint32 {
	return 2*uint32(f.nodes) + 2*(level*f.width+i) + direction
}
