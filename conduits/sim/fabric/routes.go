package fabric

import "strconv"

// Links of a torus, in the order of positions: those of a position are the six
// to its neighbours, +x -x +y -y +z -z, then the one from and the one to its
// node.
const (
	torusLinks  = 8
	torusInject = 6
)

// A position of a torus is one word, 20 bits for each of x, y and z.
const (
	posBits  = 20
	sideMask = 1<<posBits - 1
)

// position is where a node is: x runs fastest.
func (f *Fabric) position(node uint32) uint64 {
	x := node % f.dims[0]
	node /= f.dims[0]
	return uint64(x) | uint64(node%f.dims[1])<<posBits | uint64(node/f.dims[1])<<(2*posBits)
}

// torusStep goes one link from position at towards position to, which differs:
// along x until that is right, then along y, then along z (dimension order).
func (f *Fabric) torusStep(at, to uint64) (link uint32, next uint64) {
	var shift, dim uint
	switch diff := at ^ to; {
	case diff&sideMask != 0:
	case diff>>posBits&sideMask != 0:
		shift, dim = posBits, 1
	default:
		shift, dim = 2*posBits, 2
	}
	c, d, n := uint32(at>>shift)&sideMask, uint32(to>>shift)&sideMask, f.dims[dim]
	x, y, z := uint32(at)&sideMask, uint32(at>>posBits)&sideMask, uint32(at>>(2*posBits))
	link = torusLinks*(x+f.dims[0]*(y+f.dims[1]*z)) + 2*uint32(dim)
	if forward(c, d, n) {
		if c++; c == n {
			c = 0
		}
	} else {
		link++
		if c == 0 {
			c = n
		}
		c--
	}
	return link, at&^(sideMask<<shift) | uint64(c)<<shift
}

// forward says whether the shortest way from c to d on a ring of n goes up. Of
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
	a, b := f.position(src), f.position(dst)
	var h uint32
	for i, n := range f.dims {
		h += around(uint32(a>>(i*posBits))&sideMask, uint32(b>>(i*posBits))&sideMask, n)
	}
	return int(h)
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

// treeDown marks positions of packets on their way down; the rest is the level
// of the lower switch of the next link.
const treeDown = 1 << 8

// treeStep goes one link of the path that turns at level turn.
func (f *Fabric) treeStep(src, dst, turn uint32, at uint64) (link uint32, next uint64, last bool) {
	l := uint32(at) &^ treeDown
	below := f.pow[l]            // switches that differ in digits under l
	block := below * f.down      // links that they have up
	digits := dst % below        // of the lower switch, set on the way up
	port := dst / below % f.down // the link
	if at&treeDown == 0 {
		link = src/block*block + digits*f.down + port
		next = at + 1
		if l+1 == turn {
			next = at | treeDown
		}
		return f.treeLink(l, link, 0), next, false
	}
	link = dst/block*block + digits*f.down + port
	return f.treeLink(l, link, 1), at - 1, l == 0
}

func (f *Fabric) treeLink(level, i, direction uint32) uint32 {
	return 2*uint32(f.nodes) + 2*(level*f.width+i) + direction
}

// Path appends the links that a message from src to dst uses, in order, to
// links and returns it. There are none from a node to itself.
func (f *Fabric) Path(links []int, src, dst int) []int {
	f.check(src, dst)
	if src == dst {
		return links
	}
	s, d := uint32(src), uint32(dst)
	links = append(links, int(f.injection(s)))
	switch f.p.Topology {
	case Torus:
		for at, to := f.position(s), f.position(d); at != to; {
			var i uint32
			i, at = f.torusStep(at, to)
			links = append(links, int(i))
		}
	case FatTree:
		if turn := f.turn(s, d); turn > 0 {
			var at uint64
			for last := false; !last; {
				var i uint32
				i, at, last = f.treeStep(s, d, turn, at)
				links = append(links, int(i))
			}
		}
	}
	return append(links, int(f.ejection(d)))
}

// LinkName says between what a link of Path or Stats is, such as "node 3 out",
// "node 3 in", "(0,2,1) +x" or "level 1 number 17 up".
func (f *Fabric) LinkName(link int) string {
	i := uint32(link)
	if f.p.Topology == Torus {
		at := i / torusLinks
		switch i %= torusLinks; i {
		case torusInject:
			return "node " + strconv.Itoa(int(at)) + " out"
		case torusInject + 1:
			return "node " + strconv.Itoa(int(at)) + " in"
		}
		p := f.position(at)
		return "(" + strconv.Itoa(int(p&sideMask)) + "," + strconv.Itoa(int(p>>posBits&sideMask)) + "," +
			strconv.Itoa(int(p>>(2*posBits))) + ") " + [...]string{"+x", "-x", "+y", "-y", "+z", "-z"}[i]
	}
	if i < 2*uint32(f.nodes) {
		return "node " + strconv.Itoa(link/2) + [...]string{" out", " in"}[i%2]
	}
	i -= 2 * uint32(f.nodes)
	return "level " + strconv.Itoa(int(i/2/f.width)) + " number " + strconv.Itoa(int(i/2%f.width)) +
		[...]string{" up", " down"}[i%2]
}
