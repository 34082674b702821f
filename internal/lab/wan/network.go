package wan

import "time"

// A Packet is under way. A sender gets one from Port.Packet; the network takes
// it back after it has arrived.
type Packet struct {
	Size    int    // bytes of the IP packet
	Data    []byte // its contents, if they matter
	Segment Segment

	at     time.Duration
	number uint64
	side   int // it comes from
	to     *Port
}

// An Endpoint is one end of a flow: a state machine that a network drives.
type Endpoint interface {
	// Receive takes a packet that has come, which is the endpoint's until it
	// returns.
	Receive(now time.Duration, p *Packet)
	// Run is called after packets have come and when the deadline has come, and at
	// first. It sends by Port.Send, and returns when it is to be called at the
	// latest; ok is false if only a packet makes it do anything.
	Run(now time.Duration) (deadline time.Duration, ok bool)
}

// A Network has endpoints on both sides of a path, in pairs, and a clock of its
// own. It is not safe for concurrent use.
type Network struct {
	Links [2]*Link // from side 0 to side 1, and back

	transit
	now     time.Duration
	ports   []*Port
	actions []action
}

type action struct {
	at time.Duration
	f  func()
}

// A Port is where an endpoint sends.
type Port struct {
	n        *Network
	side     int
	peer     *Port
	e        Endpoint
	deadline time.Duration
	waits    bool

	// Sent and Got are how many packets have gone and come.
	Sent, Got int64
	// Dropped is how many that were sent did not arrive.
	Dropped int64
}

// New makes a network.
func New(p Path) *Network {
	return &Network{Links: [2]*Link{NewLink(p, 0), NewLink(p, 1)}}
}

// Flow adds a pair of endpoints. Both make their endpoint with the port it sends
// through. They run from the time start on.
func (n *Network) Flow(start time.Duration, ends [2]func(*Port) Endpoint) [2]*Port {
	a, b := &Port{n: n, side: 0}, &Port{n: n, side: 1}
	a.peer, b.peer = b, a
	for i, p := range []*Port{a, b} {
		p.e = ends[i](p)
		p.deadline, p.waits = start, true
		n.ports = append(n.ports, p)
	}
	return [2]*Port{a, b}
}

// At has f called at a time. Calls for one time are made in the order of At.
func (n *Network) At(t time.Duration, f func()) {
	i := len(n.actions)
	for i > 0 && n.actions[i-1].at > t {
		i--
	}
	n.actions = append(n.actions, action{})
	copy(n.actions[i+1:], n.actions[i:])
	n.actions[i] = action{t, f}
}

// Now is the time.
func (n *Network) Now() time.Duration { return n.now }

// Packet is an empty packet, to be filled and sent.
func (p *Port) Packet() *Packet { return p.n.packet() }

// Wake has the endpoint's Run called now.
func (p *Port) Wake() { p.deadline, p.waits = p.n.now, true }

// Send sends q, which is the network's from now on.
func (p *Port) Send(q *Packet) {
	n := p.n
	p.Sent++
	f := n.Links[p.side].Offer(n.now, q.Size)
	q.to = p.peer
	if f.N == 0 {
		p.Dropped++
	}
	if f.Corrupt && len(q.Data) > 0 {
		bit := f.Bit % uint64(8*len(q.Data))
		q.Data[bit/8] ^= 1 << (bit % 8)
	}
	n.carry(q, p.side, f)
}

// Run runs the network until a time.
func (n *Network) Run(until time.Duration) {
	for {
		q, from := n.first()
		at, what := until, -1
		if q != nil && q.at <= at {
			at, what = q.at, 0
		}
		if len(n.actions) > 0 && n.actions[0].at < at {
			at, what = n.actions[0].at, 1
		}
		var port *Port
		for _, p := range n.ports {
			if p.waits && p.deadline < at {
				at, what, port = p.deadline, 2, p
			}
		}
		n.now = max(n.now, at)
		switch what {
		case -1:
			return
		case 0:
			n.take(from)
			port = q.to
			port.Got++
			port.e.Receive(n.now, q)
			n.release(q)
			// Packets that come at one time to one endpoint are taken together.
			for q, from = n.first(); q != nil && q.at <= n.now && q.to == port; q, from = n.first() {
				n.take(from)
				port.Got++
				port.e.Receive(n.now, q)
				n.release(q)
			}
			n.call(port)
		case 1:
			f := n.actions[0].f
			n.actions = n.actions[1:]
			f()
		case 2:
			n.call(port)
		}
	}
}

// tick is the least time between two calls of an endpoint that no packet causes:
// clocks of real systems are no finer.
const tick = time.Microsecond

func (n *Network) call(p *Port) {
	d, ok := p.e.Run(n.now)
	p.deadline, p.waits = n.Links[1-p.side].Awake(max(d, n.now+tick)), ok
}

// arrivals is a heap.
type arrivals []*Packet

func (a arrivals) Len() int           { return len(a) }
func (a arrivals) Less(i, j int) bool { return before(a[i], a[j]) }
func (a arrivals) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *arrivals) Push(x any)        { *a = append(*a, x.(*Packet)) }
func (a *arrivals) Pop() any {
	b := *a
	q := b[len(b)-1]
	b[len(b)-1] = nil
	*a = b[:len(b)-1]
	return q
}
