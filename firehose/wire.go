package firehose

import (
	"encoding/binary"

	"github.com/argon-go/argon/segment"
)

// Messages, little endian. A request:
//
//	0   digest of the agreement (4)
//	4   number of the request (4)
//	8   kind (1), 0 (3)
//	12  buckets given up (2)
//	14  buckets asked for (2)
//	16  their numbers, those given up first (8 each)
//
// A reply:
//
//	0   digest (4)
//	4   number of the request (4)
//	8   kind (1), 1 if there are keys (1), 0 (2)
//	12  0 (2)
//	14  buckets (2)
//	16  network logical addresses, or a refusal's code (8 each)
//	    keys, if there are (8 each)
//
// The request of kind once carries an address and a length (8 each), and is answered
// like one that asks for one bucket. That of kind drop has nothing but a head, whose
// number is that of a request of kind once that was granted, and is not answered.
//
// A request that moves or attaches one firehose, as most do, is a
// short message instead, as its answer is between ranks in reach of load and store, where
// it takes less time. The words of other answers are the bytes of a medium one.
// See move and moved.
const (
	kindMove = 1
	kindOnce = 3
	kindDrop = 4
)

// Codes in place of an address. No bucket has an address in the first page.
const (
	refusedNotExposed = 1 + iota
	refusedResource
	refusedRule
	refusedDisagree
	numRefusals
)

// move is a request that asks for one bucket and gives up one or none, as the words
// of a short message.
type move [4]uint32

// The words of a move.
const (
	moveDigest = iota
	moveID
	moveUnpin // 1 + the bucket given up; 0 for none
	movePin   // the bucket asked for

	moveBuckets = 1<<32 - 1 // buckets from this one on need a medium message
)

// moved answers a move.
type moved [5]uint32

// The words of a moved.
const (
	movedID   = 0
	movedAddr = 1 // a network logical address, or a refusal's code, in 2 words
	movedKey  = 3 // in 2 words
)

func movedTo(id uint32, g Grant) moved {
	return moved{id, uint32(g.NLA), uint32(g.NLA >> 32), uint32(g.Key), uint32(g.Key >> 32)}
}

// append adds w's bytes to b.
func (w *moved) append(b []byte) []byte {
	for _, v := range w {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// movedIn reads the words that append has added; zero, the answer to nothing, if there are none.
func movedIn(b []byte) (w moved) {
	if len(b) != 4*len(w) {
		return w
	}
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return w
}

func (w *moved) grant() Grant {
	return Grant{
		NLA: segment.NLA(w[movedAddr]) | segment.NLA(w[movedAddr+1])<<32,
		Key: uint64(w[movedKey]) | uint64(w[movedKey+1])<<32,
	}
}

type head struct {
	digest uint32
	id     uint32
	kind   uint8
	keys   bool
	unpins int
	pins   int
}

func appendHead(b []byte, h head) []byte {
	b = binary.LittleEndian.AppendUint32(b, h.digest)
	b = binary.LittleEndian.AppendUint32(b, h.id)
	keys := byte(0)
	if h.keys {
		keys = 1
	}
	b = append(b, h.kind, keys, 0, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(h.unpins))
	return binary.LittleEndian.AppendUint16(b, uint16(h.pins))
}

func parseHead(b []byte) (h head, rest []byte, ok bool) {
	if len(b) < headBytes {
		return h, nil, false
	}
	h = head{
		digest: binary.LittleEndian.Uint32(b),
		id:     binary.LittleEndian.Uint32(b[4:]),
		kind:   b[8],
		keys:   b[9] == 1,
		unpins: int(binary.LittleEndian.Uint16(b[12:])),
		pins:   int(binary.LittleEndian.Uint16(b[14:])),
	}
	return h, b[headBytes:], b[9] <= 1 && b[10] == 0 && b[11] == 0
}

func appendWord(b []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(b, v) }

func word(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }

// appendReply writes a reply to h. Each grant is one, or a code as its NLA.
func appendReply(b []byte, h head, grants []Grant) []byte {
	h.keys = false
	for _, g := range grants {
		h.keys = h.keys || g.Key != 0
	}
	h.unpins, h.pins = 0, len(grants)
	b = appendHead(b, h)
	for _, g := range grants {
		b = appendWord(b, uint64(g.NLA))
	}
	if h.keys {
		for _, g := range grants {
			b = appendWord(b, g.Key)
		}
	}
	return b
}

// parseReply reads the grants of a reply whose head is h.
func parseReply(b []byte, h head, grants []Grant) ([]Grant, bool) {
	n := 8 * h.pins
	if h.keys {
		n *= 2
	}
	if len(b) != n || h.unpins != 0 {
		return grants, false
	}
	for i := range h.pins {
		g := Grant{NLA: segment.NLA(word(b, i))}
		if h.keys {
			g.Key = word(b, h.pins+i)
		}
		grants = append(grants, g)
	}
	return grants, true
}
