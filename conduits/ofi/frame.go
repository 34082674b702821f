//go:build ofi && cgo

package ofi

import (
	"encoding/binary"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/ofi/internal/fabric"
)

// A frame is the contents of one message of libfabric: a header and records of one class.
// Numbers are little-endian.
//
//	byte   0  job, 4 bytes: frames of another job are dropped
//	       4  source rank, 4
//	       8  class, 1;  flags, 1
//	      10  remote accesses of the source's to the receiver that are under way, 2:
//	          MiB, rounded up, or 65535 if there are more
//	      12  frames of each class taken from the receiver of this one, 3 x 4, modulo 2^32
//	      24  frames of messages that have arrived from it, taken or not, 4
//	      28  number of the frame in its class, modulo 2^32, 4; 0 of a header alone
//	      32  records
//
// A record begins at a multiple of 8 bytes:
//
//	message  0, words, 0, 0, payload bytes (4); words; payload
//	others   kind (1), code (1), 0 (2), length (4), address (8), operation (4), high (4); data
//
//	kind     address           length                data
//	put      where to          of the data           to be put
//	get      where from        to be got             none
//	check    of a put or get   of all of it          none: whether it may be done
//	touched  0                 0                     none
//	done     page of a fault   8 if it is a fault    the page's entry, if it is
//	got      offset in the get of the data           got
//	flush    0                 0                     none: operation has a number, of the writes before
//	flushed  0                 0                     none: the same, when they are in place
//	recall   number of a key   0                     none: operation has how often it was told
//	recalled number of a key   0                     none
const (
	headerBytes = 32
	recordBytes = 24 // of a record that is no message, without data
)

// class separates frames that may have to wait for the receiver in different ways. Each
// has a window of its own for each pair of ranks.
type class uint8

const (
	messages class = iota // wait until the receiver polls
	accesses              // are served while it does anything: answers may have to wait
	answers               // never wait, so that accesses and windows go on
	numClasses
	acks = numClasses // a header alone, of no window
)

// String names the contents of the frames.
func (c class) String() string { return [...]string{"messages", "accesses", "answers", "acks"}[c] }

// wantAck is a flag: the receiver is to say at once what has arrived.
const wantAck = 1

type kind uint8

const (
	kindMessage kind = iota
	kindPut
	kindGet
	kindCheck
	kindTouched
	kindDone
	kindGot
	kindRecall
	kindRecalled
	kindFlush
	kindFlushed
)

// Codes of kindDone.
const (
	codeDone   = iota
	codeFault  // refused by the owner
	codeClosed // the owner has left
	codeKey    // of a check: it may be done by remote access, by the key that follows
)

// codeGet is of kindCheck: it is of a get, otherwise of a put.
const codeGet = 1

// header is the fixed part of a frame.
type header struct {
	job   uint32
	src   uint32
	class class
	flags uint8
	busy  uint16
	taken [numClasses]uint32
	here  uint32
	seq   uint32
}

func (h *header) encode(b []byte) {
	_ = b[headerBytes-1]
	le := binary.LittleEndian
	le.PutUint32(b, h.job)
	le.PutUint32(b[4:], h.src)
	le.PutUint32(b[8:], uint32(h.class)|uint32(h.flags)<<8|uint32(h.busy)<<16)
	for c, n := range h.taken {
		le.PutUint32(b[12+4*c:], n)
	}
	le.PutUint32(b[24:], h.here)
	le.PutUint32(b[28:], h.seq)
}

// decodeHeader is false if b is no frame.
func decodeHeader(b []byte) (h header, ok bool) {
	if len(b) < headerBytes {
		return h, false
	}
	le := binary.LittleEndian
	h = header{job: le.Uint32(b), src: le.Uint32(b[4:]), class: class(b[8]), flags: b[9], busy: le.Uint16(b[10:]), here: le.Uint32(b[24:]), seq: le.Uint32(b[28:])}
	for c := range h.taken {
		h.taken[c] = le.Uint32(b[12+4*c:])
	}
	return h, h.class <= acks && h.flags <= wantAck
}

// round is n rounded up to where a record may begin.
func round(n int) int { return (n + 7) &^ 7 }

// messageBytes is how long a message is in a frame.
func messageBytes(words, payload int) int { return round(8 + 4*words + payload) }

// putMessage writes a message of that length to b.
func putMessage(b []byte, words []uint32, payload []byte) {
	le := binary.LittleEndian
	le.PutUint32(b, uint32(len(words))<<8)
	le.PutUint32(b[4:], uint32(len(payload)))
	at := 8
	for _, w := range words {
		le.PutUint32(b[at:], w)
		at += 4
	}
	copy(b[at:], payload)
}

// message takes the first message of b, of at most most bytes of payload. words are
// decoded into w. ok is false if there is none.
func message(b []byte, w *[conduits.TransportWords]uint32, most int) (words []uint32, payload, rest []byte, ok bool) {
	le := binary.LittleEndian
	if len(b) < 8 || b[0] != 0 || b[2]|b[3] != 0 {
		return nil, nil, nil, false
	}
	n, bytes := int(b[1]), int(le.Uint32(b[4:]))
	if n < 1 || n > len(w) || bytes > most || messageBytes(n, bytes) > len(b) {
		return nil, nil, nil, false
	}
	for i := range n {
		w[i] = le.Uint32(b[8+4*i:])
	}
	if bytes > 0 {
		payload = b[8+4*n:][:bytes:bytes]
	}
	return w[:n], payload, b[messageBytes(n, bytes):], true
}

// record is one that is no message.
type record struct {
	kind   kind
	code   uint8
	length uint32
	addr   uint64
	op     uint32
	high   uint32 // of kindCheck 32 bits of the length; of kindDone the bytes of a get that are not sent
}

func (r *record) encode(b []byte) {
	_ = b[recordBytes-1]
	le := binary.LittleEndian
	le.PutUint32(b, uint32(r.kind)|uint32(r.code)<<8)
	le.PutUint32(b[4:], r.length)
	le.PutUint64(b[8:], r.addr)
	le.PutUint32(b[16:], r.op)
	le.PutUint32(b[20:], r.high)
}

// decodeRecord takes the first record of b; ok is false if there is none that frames of
// class c have.
func decodeRecord(b []byte, c class) (r record, data, rest []byte, ok bool) {
	if len(b) < recordBytes || b[2]|b[3] != 0 {
		return r, nil, nil, false
	}
	le := binary.LittleEndian
	r = record{kind(b[0]), b[1], le.Uint32(b[4:]), le.Uint64(b[8:]), le.Uint32(b[16:]), le.Uint32(b[20:])}
	rest = b[recordBytes:]
	n := int(r.length)
	switch {
	case c == accesses && r.kind == kindPut, c == answers && r.kind == kindGot:
		ok = n > 0
	case c == accesses && r.kind == kindGet:
		return r, nil, rest, n > 0
	case c == accesses && r.kind == kindCheck:
		return r, nil, rest, r.code <= codeGet
	case c == accesses && (r.kind == kindTouched || r.kind == kindRecall || r.kind == kindFlush),
		c == answers && (r.kind == kindRecalled || r.kind == kindFlushed):
		ok = n == 0
	case c == answers && r.kind == kindDone:
		ok = r.code == codeFault && n == 8 || (r.code == codeDone || r.code == codeClosed) && n == 0 ||
			r.code == codeKey && n > grantBytes && n <= grantBytes+fabric.MostRaw
	}
	if !ok || round(n) > len(rest) {
		return r, nil, nil, false
	}
	return r, rest[:n:n], rest[round(n):], true
}
