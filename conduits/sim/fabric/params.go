package fabric

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/argon-go/argon/internal/errs"
)

// Time is a point or a length of virtual time in picoseconds: 2^63 of them are
// 106 days.
type Time = int64

// Topology is how switches and nodes are joined.
type Topology uint8

// The topologies.
const (
	// Crossbar is one switch with a port for every node.
	Crossbar Topology = iota
	// Torus is a 3-D torus with a switch in every node's interface and
	// dimension-order routing.
	Torus
	// FatTree is a tree of switches with as many links up as down at each
	// level (a k-ary n-tree) and up-down routing.
	FatTree
	// Mesh is a torus without the links that go round.
	Mesh
	// Irregular is switches with a node each, joined at random.
	Irregular
	numTopologies
)

var topologyNames = [numTopologies]string{"crossbar", "torus", "fattree", "mesh", "irregular"}

// String names the topology as ParseTopology reads it.
func (t Topology) String() string { return nameOf(t, "topology", topologyNames[:]) }

// ParseTopology finds the topology of that name. The error wraps errs.ErrBadArg.
func ParseTopology(name string) (Topology, error) {
	return parse[Topology](name, "topology", topologyNames[:])
}

// Queue is how packets wait at the inputs of a crossbar.
type Queue uint8

// The kinds of queues.
const (
	// VOQ gives each input a virtual output queue per destination.
	VOQ Queue = iota
	// Single gives each input one queue; the packet at its head holds up all
	// behind it (head-of-line blocking).
	Single
	numQueues
)

var queueNames = [numQueues]string{"voq", "single"}

// String names the kind as ParseQueue reads it.
func (q Queue) String() string { return nameOf(q, "queue", queueNames[:]) }

// ParseQueue finds the kind of queue of that name. The error wraps errs.ErrBadArg.
func ParseQueue(name string) (Queue, error) {
	return parse[Queue](name, "queue", queueNames[:])
}

// Routing is how packets find their way where buffers are finite. All ways are shortest ones, of
// those that a routing allows.
type Routing uint8

// The routings.
const (
	// DimensionOrder goes along x, then y, then z: free of deadlocks in meshes, and in tori with
	// two channels or more.
	DimensionOrder Routing = iota
	// WestFirst goes along -x first, and then any free way, in meshes of two dimensions: free of
	// deadlocks (Glass and Ni 1992).
	WestFirst
	// UpDown goes towards the switch of node 0 first and away from it then, by any free way: free of
	// deadlocks wherever (Autonet; Schroeder et al. 1991).
	UpDown
	// Shortest goes one of the shortest ways, which a pair of nodes always uses, and does not
	// exclude deadlocks.
	Shortest
	numRoutings
)

var routingNames = [numRoutings]string{"dimension", "westfirst", "updown", "shortest"}

// String names the routing as ParseRouting reads it.
func (r Routing) String() string { return nameOf(r, "routing", routingNames[:]) }

// ParseRouting finds the routing of that name. The error wraps errs.ErrBadArg.
func ParseRouting(name string) (Routing, error) {
	return parse[Routing](name, "routing", routingNames[:])
}

// nameOf is v, which is a what, by its name.
func nameOf[T ~uint8](v T, what string, names []string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return what + " " + strconv.Itoa(int(v))
}

// parse finds the what of that name.
func parse[T ~uint8](name, what string, names []string) (T, error) {
	if i := slices.Index(names, name); i >= 0 {
		return T(i), nil
	}
	return 0, errs.BadArg("fabric: %s %q, there are %s", what, name, strings.Join(names, ", "))
}

// Defaults of networks with finite buffers.
const (
	// DefaultBuffer is Params.Buffer of meshes and irregular networks, which have no others.
	DefaultBuffer = 4
	// DefaultFlit is Params.Flit, bytes.
	DefaultFlit = 64
)

// DefaultRadix is the radix of a fat tree's switches where Params does not say:
// 16 links down and 16 up, so that four levels join 65,536 nodes.
const DefaultRadix = 32

// Params describe a network. The zero value is a crossbar that takes next to
// no time.
type Params struct {
	Topology Topology
	// Dims are the sides of the torus or mesh; their product is at least the number of
	// nodes, and positions beyond it are switches without a node. All zero:
	// as near to a cube as the number of nodes allows (see Cube).
	Dims [3]int
	// Radix is the number of ports of a fat tree's switch, even and at least
	// 4: half of them lead down. Zero means DefaultRadix. In an irregular network it is
	// the most links that a switch has to others; zero means 4.
	Radix int
	// Latency is the time of a message of up to Free bytes from interface to
	// interface where there is least in between: through one switch of a
	// crossbar or fat tree, over one link of a torus.
	Latency Time
	// HopLatency is added by each further switch, or link of a torus. In a
	// torus it is at most Latency.
	HopLatency Time
	// Loop is the latency of messages from a node to itself, which use no
	// link.
	Loop Time
	// Byte is the time a byte takes on a link.
	Byte Time
	// Free is the size of the smallest packet in bytes: smaller ones take as
	// long, and its time is part of Latency.
	Free int
	// Gap is the least time between the beginnings of two packets on a link, and
	// 1 ps where it is less.
	Gap Time
	// Packet is the largest packet in bytes; longer messages are cut. Zero:
	// messages are never cut.
	Packet int
	// Queue is how packets wait at the inputs of a crossbar.
	Queue Queue
	// Crosspoint is how many packets the buffer at each crosspoint of a
	// crossbar holds, at most 65,535. Zero: there are none, and a packet leaves
	// its input when its output is free.
	Crosspoint int
	// Buffer is how many flits a channel's buffer at the end of a link has, from which back-pressure
	// comes; of tori, meshes and irregular networks. Zero: buffers of a torus are not bounded;
	// DefaultBuffer for the others.
	Buffer int
	// Flit is the unit of transfer where buffers are finite, in bytes; lengths beyond Free are
	// rounded up to it. Zero means DefaultFlit.
	Flit int
	// Channels is how many virtual channels share a link where buffers are finite. Zero: two in a torus, else one.
	Channels int
	// Routing is how packets find their way where buffers are finite. DimensionOrder means UpDown in an irregular network.
	Routing Routing
	// Recover is the time after which a packet that is part of a deadlock, and is taken out of
	// the network for that, is sent again. Zero: none is; see Fabric.Deadlock.
	Recover Time
	// Wiring decides how an irregular network is joined.
	Wiring uint64
	// Contention makes messages wait for each other. Without it links are
	// never busy, and every message takes what Unloaded says.
	Contention bool
}

// maxSide bounds what is multiplied, far beyond what is built.
const maxSide = 1 << 20

// EnsureDefaults fills in what is zero and has a default for that many nodes.
func (p *Params) EnsureDefaults(nodes int) {
	if (p.Topology == Torus || p.Topology == Mesh) && p.Dims == [3]int{} {
		p.Dims = Cube(nodes)
	}
	if p.Topology >= Mesh && p.Buffer == 0 {
		p.Buffer = DefaultBuffer
	}
	if p.Topology == Irregular && p.Radix == 0 {
		p.Radix = 4
	}
	if p.Topology == Irregular && p.Routing == DimensionOrder {
		p.Routing = UpDown
	}
	if p.Buffer > 0 && p.Flit == 0 {
		p.Flit = DefaultFlit
	}
	if p.Buffer > 0 && p.Channels == 0 {
		p.Channels = 1
		if p.Topology == Torus {
			p.Channels = 2
		}
	}
	if p.Topology == FatTree && p.Radix == 0 {
		p.Radix = DefaultRadix
	}
}

// Validate returns an error that names the wrong values of p, after EnsureDefaults, for that
// many nodes. It wraps errs.ErrBadArg.
func (p *Params) Validate(nodes int) error {
	switch {
	case nodes < 1 || nodes > math.MaxInt32/16:
		return errs.BadArg("fabric: %d nodes, at least 1 and at most %d", nodes, math.MaxInt32/16)
	case p.Topology >= numTopologies:
		return errs.BadArg("fabric: unknown %v", p.Topology)
	case p.Queue >= numQueues:
		return errs.BadArg("fabric: unknown %v", p.Queue)
	case p.Latency < 0 || p.HopLatency < 0 || p.Loop < 0 || p.Byte < 0 || p.Gap < 0:
		return errs.BadArg("fabric: negative time in Latency %d, HopLatency %d, Loop %d, Byte %d, Gap %d",
			p.Latency, p.HopLatency, p.Loop, p.Byte, p.Gap)
	case p.Free < 0 || p.Packet < 0:
		return errs.BadArg("fabric: negative size in Free %d, Packet %d", p.Free, p.Packet)
	case p.Crosspoint < 0 || p.Crosspoint > math.MaxUint16:
		return errs.BadArg("fabric: Crosspoint %d, at most %d", p.Crosspoint, math.MaxUint16)
	}
	if err := p.validateFinite(nodes); err != nil {
		return err
	}
	switch p.Topology {
	case Torus, Mesh:
		volume := 1
		for _, d := range p.Dims {
			if d < 1 || d > maxSide {
				return errs.BadArg("fabric: Dims %v, each side from 1 to %d", p.Dims, maxSide)
			}
			if volume *= d; volume > math.MaxInt32/8 {
				return errs.BadArg("fabric: Dims %v have more than %d positions", p.Dims, math.MaxInt32/8)
			}
		}
		if volume < nodes {
			return errs.BadArg("fabric: Dims %v have %d positions for %d nodes", p.Dims, volume, nodes)
		}
		if p.HopLatency > p.Latency {
			return errs.BadArg("fabric: HopLatency %d beyond Latency %d of a whole path", p.HopLatency, p.Latency)
		}
	case FatTree:
		if p.Radix < 4 || p.Radix%2 != 0 || p.Radix > maxSide {
			return errs.BadArg("fabric: Radix %d, an even number from 4 to %d", p.Radix, maxSide)
		}
	}
	return nil
}

// validateFinite is Validate of what finite buffers need.
func (p *Params) validateFinite(nodes int) error {
	const most = 1 << 16
	switch {
	case p.Buffer < 0 || p.Flit < 0 || p.Channels < 0 || p.Recover < 0 || p.Buffer > most || p.Channels > 64 || p.Recover > 1<<60:
		return errs.BadArg("fabric: Buffer %d, at most %d; Flit %d; Channels %d, at most 64; Recover %d", p.Buffer, most, p.Flit, p.Channels, p.Recover)
	case p.Routing >= numRoutings:
		return errs.BadArg("fabric: unknown %v", p.Routing)
	case p.Buffer == 0 && (p.Channels > 0 || p.Routing != DimensionOrder || p.Recover > 0):
		return errs.BadArg("fabric: Channels %d, Routing %v, Recover %d: of networks with finite buffers (flits)", p.Channels, p.Routing, p.Recover)
	case p.Buffer == 0:
	case p.Topology == Crossbar || p.Topology == FatTree:
		return errs.BadArg("fabric: Buffer %d of a %v: finite buffers have %v, %v and %v", p.Buffer, p.Topology, Torus, Mesh, Irregular)
	case p.Flit < 1 || p.Channels < 1:
		return errs.BadArg("fabric: Flit %d, Channels %d, at least 1 with finite buffers", p.Flit, p.Channels)
	case nodes > most || p.Topology == Irregular && (p.Radix < 2 || p.Radix > 64):
		return errs.BadArg("fabric: %d nodes with finite buffers, at most %d, and Radix %d of an irregular network, 2 to 64", nodes, most, p.Radix)
	case p.Routing == WestFirst && (p.Topology != Mesh || p.Dims[2] != 1), p.Routing == DimensionOrder && p.Topology == Irregular:
		return errs.BadArg("fabric: Routing %v of a %v of %v: %v is of meshes of two dimensions, %v of meshes and tori",
			p.Routing, p.Topology, p.Dims, WestFirst, DimensionOrder)
	case p.HopLatency > p.Latency:
		return errs.BadArg("fabric: HopLatency %d beyond Latency %d of a whole path", p.HopLatency, p.Latency)
	}
	return nil
}

// Cube returns the sides of a torus for that many nodes: those of the box that
// they fill exactly and whose longest way is shortest, if it is at most twice
// as long as wide, else those of the box of the shortest longest way that holds
// them.
func Cube(nodes int) [3]int {
	nodes = max(nodes, 1)
	var best [2][3]int // of boxes that are filled, of all
	for x := 1; x*x*x <= nodes; x++ {
		for y := x; y <= nodes; y++ {
			z := (nodes + x*y - 1) / (x * y)
			if z < y {
				break
			}
			d := [3]int{z, y, x}
			if x*y*z == nodes && better(d, best[0]) {
				best[0] = d
			}
			if better(d, best[1]) {
				best[1] = d
			}
		}
	}
	if d := best[0]; d != [3]int{} && d[0] <= 2*d[2] || best[1] == [3]int{} {
		return d
	}
	return best[1]
}

// better reports whether box a has a shorter longest way than b, or as long a one
// with less waste.
func better(a, b [3]int) bool {
	if b == [3]int{} {
		return true
	}
	if ra, rb := a[0]/2+a[1]/2+a[2]/2, b[0]/2+b[1]/2+b[2]/2; ra != rb {
		return ra < rb
	}
	if va, vb := a[0]*a[1]*a[2], b[0]*b[1]*b[2]; va != vb {
		return va < vb
	}
	return a[0] < b[0]
}
