package engine

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/bits"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// A datagram, little endian:
//
//	 0 magic        1 flags       2 words of the acknowledgement
//	 3 how long it waited (see delayCode)
//	 4 checksum (CRC-32C of the datagram with this field 0; 0 if sealed)
//	 8 source rank
//	12 source's incarnation
//	16 the destination's incarnation as the source knows it; 0: not at all
//	20 packet number, low 32 bits, if there are contents
//	24 sequence number of the contents in their class, low 32 bits
//	28 one more than the highest packet number that has arrived
//	32 next sequence number expected, class 0  36 class 1
//	40 messages consumed in all, class 0       44 class 1
//	48 the words, 8 bytes each: bit i of the k-th says that packet number
//	   highest-64(k+1)+i has arrived
//	   frames to the end, if flags say so
//
// A packet number is that of one transmission: contents that are sent again have
// another one, and the same sequence number. All counts are cumulative and only
// grow, so a datagram that is lost, repeated or late does no harm.
const (
	headerBytes = 48
	magic       = 0xA8

	flagClass = 1 << 0 // class of the contents
	flagData  = 1 << 1 // there are contents
	flagNow   = 1 << 2 // acknowledge them at once
	flagAsk   = 1 << 3 // answer at once
	flagPiece = 1 << 4 // the contents are in pieces, of which this is one; see pieceHeader
	flagSound = 1 << 5 // padding: has this size arrived? see pathMTU
	flagKnown = 1<<6 - 1

	// An acknowledgement has at most so many words, and one that goes with contents
	// so many.
	ackWords  = 31
	dataWords = 4
)

// Frames begin with a byte of their kind.
const (
	frMessage  = iota + 1 // words u8, payload u16, tag u32; words; payload
	frMedium              // fragment: words u8, len u16, tag u32, message u32, total u32, offset u32; words (offset 0 only); bytes
	frLong                // fragment: as frMedium with u64 total and offset and the address u64 after them
	frPut                 // len u16, address u64; bytes
	frPart                // fragment of a put: len u16, u64 address, total and offset of the whole; bytes
	frGet                 // operation u64, address u64, len u64
	frData                // fragment of what a get asked for: len u16, operation u64, offset u64; bytes
	frAtomic              // op u8, type u8, operation u64, address u64, a u64, b u64
	frResult              // operation u64, value u64
	frFault               // operation u64, page u64, entry u64: a get or an atomic was refused
	frPutFault            // datagram u32, offset in its frames u16, page u64, entry u64: a put was refused
)

// fixedBytes is how long the part of each kind of frame is that follows the kind
// and that always has the same length.
var fixedBytes = [...]int{
	frMessage: 7, frMedium: 19, frLong: 35, frPut: 10, frPart: 26, frGet: 24, frData: 18, frAtomic: 34, frResult: 16, frFault: 24, frPutFault: 22,
}

type header struct {
	flags      byte
	delay      byte
	src        uint32
	epoch      uint32
	dstEpoch   uint32
	pn, seq    uint32
	top        uint32
	cum, taken [conduits.NumClasses]uint32
	words      []byte
	body       []byte
	frames     int // in body, once they have been counted
}

func (h *header) class() conduits.Class { return conduits.Class(h.flags & flagClass) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var noBytes [4]byte

// checksum returns the checksum of a datagram, p and then data, with its field taken as 0.
func checksum(p, data []byte) uint32 {
	c := crc32.Update(0, castagnoli, p[:4])
	c = crc32.Update(c, castagnoli, noBytes[:])
	c = crc32.Update(c, castagnoli, p[8:])
	return crc32.Update(c, castagnoli, data)
}

// parse reads what is before the frames into h, a zero header. (To return it
// would copy it just after it was written, which takes longer than to read it.)
func (h *header) parse(p []byte, sealed bool) bool {
	if len(p) < headerBytes || p[0] != magic {
		return false
	}
	le := binary.LittleEndian
	if sum := le.Uint32(p[4:]); !sealed && sum != checksum(p, nil) || sealed && sum != 0 {
		return false
	}
	h.flags, h.delay = p[1], p[3]
	h.src, h.epoch, h.dstEpoch = le.Uint32(p[8:]), le.Uint32(p[12:]), le.Uint32(p[16:])
	h.pn, h.seq, h.top = le.Uint32(p[20:]), le.Uint32(p[24:]), le.Uint32(p[28:])
	h.cum[0], h.cum[1] = le.Uint32(p[32:]), le.Uint32(p[36:])
	h.taken[0], h.taken[1] = le.Uint32(p[40:]), le.Uint32(p[44:])
	n := 8 * int(p[2])
	over := p[2] > ackWords
	p = p[headerBytes:]
	if h.flags&^flagKnown != 0 || h.epoch == 0 || over || n > len(p) {
		return false
	}
	h.words, h.body = p[:n], p[n:]
	if data := h.flags&(flagData|flagSound) != 0; data != (len(h.body) > 0) {
		return false
	}
	switch h.flags & (flagData | flagPiece | flagSound) {
	case flagData | flagPiece:
		_, _, _, ok := readPiece(h.body)
		return ok
	case 0, flagData, flagSound:
		return true
	}
	return false
}

// expand finds the number with the given low bits that is nearest to ref.
func expand(ref uint64, low uint32) uint64 {
	return ref + uint64(int64(int32(low-uint32(ref))))
}

// older reports whether number a comes before b. What a datagram says may stand for a
// number before 0, which wraps: plain comparisons are for numbers of this rank alone.
func older(a, b uint64) bool { return int64(a-b) < 0 }

// An acknowledgement tells how long it has waited since the highest packet number
// arrived (RFC 9000, 13.2.5), in one byte: four bits of exponent and four of
// mantissa, microseconds, rounded down. tooLate: it was sent before, or is longer.
const (
	tooLate  = 0xFF
	maxDelay = 31 << 14 * time.Microsecond
)

func delayCode(d time.Duration) byte {
	if d >= maxDelay {
		return tooLate
	}
	us := uint32(max(d, 0) / time.Microsecond)
	if us < 16 {
		return byte(us)
	}
	e := bits.Len32(us) - 5 // us>>e is 16 to 31
	return byte(e+1)<<4 | byte(us>>e&15)
}

func delayOf(c byte) time.Duration {
	m := time.Duration(c & 15)
	if e := c >> 4; e > 0 {
		m = (m + 16) << (e - 1)
	}
	return m * time.Microsecond
}

// frame is a decoded frame. words and data lie in the datagram.
type frame struct {
	kind  byte
	op    conduits.AtomicOp
	typ   conduits.AtomicType
	tag   conduits.Tag
	msg   uint32
	total uint64
	off   uint64
	to    segment.NLA
	id    uint64 // operation
	a, b  uint64
	words []byte
	data  []byte
}

// next cuts the first frame off b. It checks the frame's form and that it
// belongs into class c, not whether the access is permitted.
func (f *frame) next(b []byte, c conduits.Class) (rest []byte, ok bool) {
	le := binary.LittleEndian
	*f = frame{}
	f.kind = b[0]
	b = b[1:]
	if f.kind == 0 || int(f.kind) >= len(fixedBytes) {
		return nil, false
	}
	fixed, class := fixedBytes[f.kind], c
	switch f.kind {
	case frPart, frPut, frGet, frAtomic:
		class = conduits.Request
	case frData, frResult, frFault, frPutFault:
		class = conduits.Reply
	}
	if len(b) < fixed || c != class {
		return nil, false
	}
	p := b[:fixed]
	b = b[fixed:]
	words, data := 0, 0
	switch f.kind {
	case frMessage, frMedium, frLong:
		words, data = int(p[0]), int(le.Uint16(p[1:]))
		f.tag = conduits.Tag(le.Uint32(p[3:]))
		f.total = uint64(data)
		if f.kind == frMedium {
			f.msg, f.total, f.off = le.Uint32(p[7:]), uint64(le.Uint32(p[11:])), uint64(le.Uint32(p[15:]))
		}
		if f.kind == frLong {
			f.msg, f.total, f.off, f.to = le.Uint32(p[7:]), le.Uint64(p[11:]), le.Uint64(p[19:]), segment.NLA(le.Uint64(p[27:]))
		}
		if words > conduits.MaxWords || f.tag>>conduits.TagBits != 0 || f.off != 0 && words != 0 ||
			f.off > f.total || f.total-f.off < uint64(data) || data == 0 && f.total != 0 {
			return nil, false
		}
	case frPut:
		data, f.to = int(le.Uint16(p)), segment.NLA(le.Uint64(p[2:]))
	case frPart:
		data, f.to, f.total, f.off = int(le.Uint16(p)), segment.NLA(le.Uint64(p[2:])), le.Uint64(p[10:]), le.Uint64(p[18:])
		if f.off > f.total || f.total-f.off < uint64(data) {
			return nil, false
		}
	case frGet:
		f.id, f.to, f.total = le.Uint64(p), segment.NLA(le.Uint64(p[8:])), le.Uint64(p[16:])
	case frData:
		data, f.id, f.off = int(le.Uint16(p)), le.Uint64(p[2:]), le.Uint64(p[10:])
	case frAtomic:
		f.op, f.typ = conduits.AtomicOp(p[0]), conduits.AtomicType(p[1])
		f.id, f.to, f.a, f.b = le.Uint64(p[2:]), segment.NLA(le.Uint64(p[10:])), le.Uint64(p[18:]), le.Uint64(p[26:])
		if f.op >= conduits.NumAtomicOps || f.typ >= conduits.NumAtomicTypes {
			return nil, false
		}
	case frResult:
		f.id, f.a = le.Uint64(p), le.Uint64(p[8:])
	case frFault:
		f.id, f.a, f.b = le.Uint64(p), le.Uint64(p[8:]), le.Uint64(p[16:])
	case frPutFault:
		f.msg, f.off, f.a, f.b = le.Uint32(p), uint64(le.Uint16(p[4:])), le.Uint64(p[6:]), le.Uint64(p[14:])
	}
	if len(b) < 4*words+data {
		return nil, false
	}
	f.words, b = b[:4*words], b[4*words:]
	f.data, b = b[:data:data], b[data:]
	return b, true
}

func appendWords(b []byte, words []uint32) []byte {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// The fixed part of each kind of frame.

func appendMessage(b []byte, tag conduits.Tag, words []uint32, payload []byte) []byte {
	b = append(b, frMessage, byte(len(words)))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, uint32(tag))
	b = appendWords(b, words)
	return append(b, payload...)
}

// longFrame is how long the frame of a long message is without its words and data.
const longFrame = 36

// appendLong writes all of message number msg that goes with its data.
func appendLong(b []byte, msg uint32, tag conduits.Tag, words []uint32, to segment.NLA, data []byte) []byte {
	le := binary.LittleEndian
	b = append(b, frLong, byte(len(words)))
	b = le.AppendUint16(b, uint16(len(data)))
	b = le.AppendUint32(b, uint32(tag))
	b = le.AppendUint32(b, msg)
	b = le.AppendUint64(b, uint64(len(data)))
	b = le.AppendUint64(b, 0)
	b = le.AppendUint64(b, uint64(to))
	b = appendWords(b, words)
	return append(b, data...)
}

// appendFragment writes all of a fragment's frame but its n bytes.
func appendFragment(b []byte, it *item, off uint64, n int) []byte {
	le := binary.LittleEndian
	words := it.words[:it.nwords]
	if off > 0 {
		words = nil
	}
	b = append(b, it.kind)
	switch it.kind {
	case frMedium, frLong:
		b = append(b, byte(len(words)))
		b = le.AppendUint16(b, uint16(n))
		b = le.AppendUint32(b, uint32(it.tag))
		b = le.AppendUint32(b, it.msg)
		if it.kind == frMedium {
			b = le.AppendUint32(b, uint32(len(it.data)))
			b = le.AppendUint32(b, uint32(off))
		} else {
			b = le.AppendUint64(b, uint64(len(it.data)))
			b = le.AppendUint64(b, off)
			b = le.AppendUint64(b, uint64(it.to))
		}
		b = appendWords(b, words)
	case frPart:
		b = le.AppendUint16(b, uint16(n))
		b = le.AppendUint64(b, uint64(it.to))
		b = le.AppendUint64(b, uint64(len(it.data)))
		b = le.AppendUint64(b, off)
	case frData:
		b = le.AppendUint16(b, uint16(n))
		b = le.AppendUint64(b, it.id)
		b = le.AppendUint64(b, off)
	}
	return b
}

func appendPut(b []byte, to segment.NLA, data []byte) []byte {
	b = append(b, frPut)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(data)))
	b = binary.LittleEndian.AppendUint64(b, uint64(to))
	return append(b, data...)
}

func appendGet(b []byte, id uint64, from segment.NLA, n uint64) []byte {
	le := binary.LittleEndian
	b = append(b, frGet)
	b = le.AppendUint64(b, id)
	b = le.AppendUint64(b, uint64(from))
	return le.AppendUint64(b, n)
}

func appendAtomic(b []byte, id uint64, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, x, y uint64) []byte {
	le := binary.LittleEndian
	b = append(b, frAtomic, byte(op), byte(t))
	b = le.AppendUint64(b, id)
	b = le.AppendUint64(b, uint64(to))
	b = le.AppendUint64(b, x)
	return le.AppendUint64(b, y)
}

func appendResult(b []byte, id, v uint64) []byte {
	b = append(b, frResult)
	b = binary.LittleEndian.AppendUint64(b, id)
	return binary.LittleEndian.AppendUint64(b, v)
}

// appendData writes all that a get asked for.
func appendData(b []byte, id uint64, data []byte) []byte {
	b = append(b, frData)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(data)))
	b = binary.LittleEndian.AppendUint64(b, id)
	b = binary.LittleEndian.AppendUint64(b, 0)
	return append(b, data...)
}

func appendFault(b []byte, id uint64, err error) []byte {
	return appendWhy(binary.LittleEndian.AppendUint64(append(b, frFault), id), err)
}

// appendPutFault appends the refusal of the put at offset at of the frames of datagram seq.
func appendPutFault(b []byte, seq uint32, at int, err error) []byte {
	b = binary.LittleEndian.AppendUint32(append(b, frPutFault), seq)
	return appendWhy(binary.LittleEndian.AppendUint16(b, uint16(at)), err)
}

// appendWhy appends the cause of a fault: the page, and its entry with
// the bounds of a part, but not where in the target's memory the page lies.
func appendWhy(b []byte, err error) []byte {
	var f segment.FaultError
	if p := (*segment.FaultError)(nil); errors.As(err, &p) {
		f = *p
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(f.Page))
	return binary.LittleEndian.AppendUint64(b, uint64(f.Have.Disclosed()))
}
