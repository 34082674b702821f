package sim

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// kind is the kind of a message in the network, or of one that has left it.
type kind uint8

const (
	kindFree kind = iota
	kindReserved
	kindShort       // words
	kindMedium      // words and a payload for the landing buffer
	kindLong        // words and data for the segment or registered memory
	kindPut         // data for it
	kindGet         // asks for data
	kindGetReply    // brings it
	kindAtomic      // asks for an operation
	kindAtomicReply // brings its result
	kindAck         // says that a put is done
	kindDone        // no message: a completion that waits to be reported
	kindDatagram    // see Socket
	kindPart        // a rank's part of a barrier; see offload
	kindResult      // brings all parts together
	kindCast        // a multicast on its way to the switches
	kindCopy        // and from there to one rank
)

var kindNames = [...]string{"free", "reserved", "short", "medium", "long", "put", "get", "get-reply", "atomic", "atomic-reply", "ack", "done", "datagram", "part", "result", "multicast", "copy"}

func (k kind) String() string { return kindNames[k] }

// answer reports whether it travels back to the initiator of the operation.
func (k kind) answer() bool { return k == kindGetReply || k == kindAtomicReply || k == kindAck }

// owner is the rank whose memory to is an address of.
func (m *message) owner() int32 {
	if m.kind.answer() {
		return m.src
	}
	return m.dst
}

// message is anything that is under way. Its fields are used as its kind needs.
type message struct {
	kind   kind
	class  conduits.Class
	op     conduits.AtomicOp
	typ    conduits.AtomicType
	want   conduits.Event // completions that src still wants
	nwords uint8
	late   bool // a datagram that has had its misfortune
	src    int32
	dst    int32
	next   uint32 // in the list that it is in; 0 ends it
	tag    conduits.Tag
	words  [conduits.MaxWords]uint32
	data   []byte // the payload: the sender's own memory until it has been read, then a buffer
	own    bool   // data is a buffer of the job's
	cast   uint32 // of which multicast it is; 0: none
	*remote
}

// remote has the fields of messages that access memory, and of completions. It is apart,
// for most messages of a large job are others, and each rank has two or three under way.
type remote struct {
	to     segment.NLA
	a, b   uint64 // operands; the result
	cookie uint64
	dest   []byte // of a get
	regs   uint64 // its target's registrations before the data of a long message was put
	err    error
}

// noRemote is that of all other messages. Read only.
var noRemote remote

const chunk = 512

// arena holds messages; numbers begin at 1.
type arena struct {
	chunks []*[chunk]message
	free   uint32
	n      uint32 // handed out so far
	inUse  int
	spare  []*remote
	bufs   [17][][]byte // free buffers of 64 << i bytes
}

func (a *arena) at(id uint32) *message { return &a.chunks[id/chunk][id%chunk] }

func (a *arena) get() (uint32, *message) {
	a.inUse++
	if id := a.free; id != 0 {
		m := a.at(id)
		a.free = m.next
		m.next = 0
		return id, m
	}
	a.n++
	if int(a.n/chunk) == len(a.chunks) {
		a.chunks = append(a.chunks, new([chunk]message))
	}
	m := a.at(a.n)
	m.remote = &noRemote
	return a.n, m
}

// access makes m, which is new, a message that accesses memory, or a completion.
func (a *arena) access(m *message) {
	if k := len(a.spare) - 1; k >= 0 {
		m.remote, a.spare = a.spare[k], a.spare[:k]
		return
	}
	m.remote = new(remote)
}

func (a *arena) put(id uint32) {
	m := a.at(id)
	a.release(m)
	if m.remote != &noRemote {
		*m.remote = remote{}
		a.spare = append(a.spare, m.remote)
	}
	*m = message{next: a.free, remote: &noRemote}
	a.free = id
	a.inUse--
}

// release gives m's buffer back.
func (a *arena) release(m *message) {
	if m.own {
		a.keep(m.data)
	}
	m.data, m.own = nil, false
}

// buffer returns n bytes with any contents, aligned to 8.
func (a *arena) buffer(n int) []byte {
	for i := range a.bufs {
		if n <= 64<<i {
			if f := a.bufs[i]; len(f) > 0 {
				b := f[len(f)-1]
				a.bufs[i] = f[:len(f)-1]
				return b[:n]
			}
			return make([]byte, n, 64<<i)
		}
	}
	return make([]byte, n)
}

func (a *arena) keep(b []byte) {
	for i := range a.bufs {
		if cap(b) == 64<<i {
			a.bufs[i] = append(a.bufs[i], b)
			return
		}
	}
}

// list is a queue of messages.
type list struct{ first, last uint32 }

func (l *list) add(a *arena, id uint32) {
	if l.first == 0 {
		l.first = id
	} else {
		a.at(l.last).next = id
	}
	l.last = id
}

func (l *list) take(a *arena) uint32 {
	id := l.first
	if id != 0 {
		m := a.at(id)
		l.first, m.next = m.next, 0
	}
	return id
}
