package udp

import "github.com/argon-go/argon/conduits/sim"

// simLink is a link over the simulator's sockets, which take and give one
// datagram at a time.
type simLink struct{ *sim.Socket }

func (l simLink) Send(o *outbox) {
	for _, d := range o.list {
		p := d.head
		if len(d.data) > 0 {
			p = append(p[:len(p):len(p)], d.data...)
		}
		_ = l.Socket.Send(d.dst, p)
	}
}

func (l simLink) Recv(in *inbox) bool {
	b, _ := in.link.([]byte)
	if b == nil {
		b = make([]byte, sim.MaxDatagram)
		in.link = b
	}
	in.list, in.more = in.list[:0], true
	n, src, ok := l.Socket.Recv(b)
	if ok {
		in.list = append(in.list, incoming{src, b[:n]})
	}
	return ok
}

func (l simLink) Unreachable() (int, error) { return -1, nil }

func (l simLink) Err() error { return l.Endpoint().Err() }
func (l simLink) Close()     {}
