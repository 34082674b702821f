package traffic

import (
	"encoding/binary"
	"time"

	"github.com/argon-go/argon/conduits"
)

// Records begin with a byte: kind, whether a gap follows (computation before it, ns, as a
// uvarint), and three flags of the kind. All numbers behind are uvarints, but for hashes.
const (
	recSend  = iota + 1 // dst, words, payload, hash
	recLong             // dst, words, length, address, hash
	recPost             // verb, rank, length, address
	recGot              // src, hash: a message is handled
	recDone             // how many accesses ago it was begun, itself counted: a completion
	recWait             // polls begin that something is waited for by
	recEnd              // time since the last recEnd, polls: they are over
	recPolls            // so many polls by the way
	recWork             // ns that the handler of the last recGot computed
	recClose            // time since attaching, time spent in waits

	kindMask = 1<<4 - 1
	gapFlag  = 1 << 4
	flagBits = 5

	flagReply  = 1 << 0 // of recSend, recLong, recGot: class reply
	flagMemory = 1 << 0 // of recEnd: in the last poll nothing came
	// Of recLong, recPost and recDone the two higher flags are the conduits.Event.
	eventShift = 1
)

func flags(c conduits.Class, ev conduits.Event) byte {
	f := byte(ev) << eventShift
	if c == conduits.Reply {
		f |= flagReply
	}
	return f
}

// stream encodes records.
type stream struct{ b []byte }

func (s *stream) rec(kind, flags byte, gap time.Duration, values ...uint64) {
	k := kind | flags<<flagBits
	if gap > 0 {
		k |= gapFlag
	}
	s.b = append(s.b, k)
	if gap > 0 {
		s.b = binary.AppendUvarint(s.b, uint64(gap))
	}
	for _, v := range values {
		s.b = binary.AppendUvarint(s.b, v)
	}
}

func (s *stream) hash(h uint16) { s.b = binary.LittleEndian.AppendUint16(s.b, h) }

// print tells messages of one pair of ranks from each other, for the network may deliver them in any
// order: two that have the same are alike.
func print(tag conduits.Tag, words []uint32, payload int) uint16 {
	h := uint64(tag)<<32 ^ uint64(payload)<<8 ^ uint64(len(words))
	for _, w := range words {
		h = (h ^ uint64(w)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	h *= 0x9e3779b97f4a7c15
	return uint16(h >> 48)
}

// record is one that has been read.
type record struct {
	kind, flags byte
	gap         time.Duration
	v           [4]uint64
	hash        uint16
}

func (r *record) class() conduits.Class {
	if r.flags&flagReply != 0 {
		return conduits.Reply
	}
	return conduits.Request
}

func (r *record) event() conduits.Event { return conduits.Event(r.flags >> eventShift & 3) }

// fields is how many numbers a record has, and whether a hash follows.
var fields = [...]struct {
	n    int
	hash bool
}{
	recSend: {3, true}, recLong: {4, true}, recPost: {4, false}, recGot: {1, true}, recDone: {1, false},
	recWait: {0, false}, recEnd: {2, false}, recPolls: {1, false}, recWork: {1, false}, recClose: {2, false},
}

// most bounds all numbers of records, so that sums of them do not overflow.
const most = 1 << 50

// read takes a record off b, and returns how long it is. bad says what is wrong with it.
func (r *record) read(b []byte) (n int, bad string) {
	*r = record{kind: b[0] & kindMask, flags: b[0] >> flagBits}
	if r.kind < recSend || int(r.kind) >= len(fields) {
		return 0, "there is no such kind of record"
	}
	n = 1
	number := func() (v uint64) {
		v, k := binary.Uvarint(b[n:])
		switch {
		case bad != "":
		case k == 0:
			bad = "the record is cut off"
		case k < 0 || v > most:
			bad = "a number is more than 2^50"
		default:
			n += k
		}
		return v
	}
	if b[0]&gapFlag != 0 {
		r.gap = time.Duration(number())
	}
	f := fields[r.kind]
	for i := range f.n {
		r.v[i] = number()
	}
	if f.hash && bad == "" {
		if len(b) < n+2 {
			return 0, "the record is cut off"
		}
		r.hash = binary.LittleEndian.Uint16(b[n:])
		n += 2
	}
	return n, bad
}
