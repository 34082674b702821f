package fabric

import (
	"fmt"
	"strconv"
)

// What tests ask of routes, by the steps that messages take.

// Diameter returns the largest number of hops between two positions of the
// network.
func (f *Fabric) Diameter() int {
	if f.nodes == 1 {
		return 0
	}
	switch f.p.Topology {
	case Torus:
		return int(f.dims[0]/2 + f.dims[1]/2 + f.dims[2]/2)
	case FatTree:
		return 2*int(f.turn(0, uint32(f.nodes-1))) + 1
	}
	return 1
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
		for s != d {
			var i uint32
			i, s = f.torusStep(s, d)
			links = append(links, int(i))
		}
	case FatTree:
		if turn := f.turn(s, d); turn > 0 {
			b := uint64(turn)<<turnShift | uint64(d)
			for last := false; !last; {
				var i uint32
				i, b, last = f.treeStep(s, b)
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
		x, y, z := at%f.dims[0], at/f.dims[0]%f.dims[1], at/f.dims[0]/f.dims[1]
		return fmt.Sprintf("(%d,%d,%d) %s", x, y, z, [...]string{"+x", "-x", "+y", "-y", "+z", "-z"}[i])
	}
	if i < 2*uint32(f.nodes) {
		return "node " + strconv.Itoa(link/2) + [...]string{" out", " in"}[i%2]
	}
	i -= 2 * uint32(f.nodes)
	return "level " + strconv.Itoa(int(i/2/f.width)) + " number " + strconv.Itoa(int(i/2%f.width)) +
		[...]string{" up", " down"}[i%2]
}
