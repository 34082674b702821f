package udp

// outbox is datagrams to be sent, in order, and the memory that they are in.
type outbox struct {
	list []outgoing
	mem  []byte // what has not been taken is free
	used int
}

// outgoing is one datagram: head, which lies in the outbox's memory, and data,
// which lies where the program has it.
type outgoing struct {
	dst  int
	head []byte
	data []byte
}

// size is how many bytes it has.
func (d *outgoing) size() int { return len(d.head) + len(d.data) }

// bounds of an outbox: what one message to the system can carry, so that the
// receiver need not wait for the next, and the memory stays in the cache.
const (
	outDatagrams = 64
	outBytes     = 64 << 10
)

func newOutbox() *outbox {
	return &outbox{list: make([]outgoing, 0, outDatagrams), mem: make([]byte, outBytes)}
}

// room is memory for a head of up to n bytes, or nil if o is full.
func (o *outbox) room(n int) []byte {
	if len(o.list) == cap(o.list) || len(o.mem)-o.used < n {
		return nil
	}
	return o.mem[o.used : o.used+n : o.used+n]
}

// add adds a datagram whose head is the first n bytes of what room has given, not
// nil.
func (o *outbox) add(dst, n int, data []byte) {
	i := len(o.list)
	o.list = o.list[:i+1]
	d := &o.list[i]
	d.dst, d.head, d.data = dst, o.mem[o.used:o.used+n], data
	o.used += n
}

// clear forgets all.
func (o *outbox) clear() {
	clear(o.list)
	o.list, o.used = o.list[:0], 0
}

// inbox is datagrams that have come. They are valid, and may be changed, until
// the link receives into it again.
type inbox struct {
	list []incoming
	more bool // there may be more at hand
	// What has come beside list, and is not for this rank: so many datagrams, of so many bytes in all.
	others, otherBytes int
	link               any // the link's own
}

// incoming is one datagram. src is its source if the link knows it, else -1: then
// it is for the datagram itself to tell, if a sealer shows that it is true.
type incoming struct {
	src int
	b   []byte
}
