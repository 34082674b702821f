package engine_test

import (
	"encoding/binary"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/segment"
)

// A liar is rank 1 of a pair, which holds the key and sends any frames: its
// datagrams are well numbered and acknowledge what there is, so that nothing but
// their contents is wrong.
type liar struct {
	e   *engine.Engine
	now time.Duration
	seq [conduits.NumClasses]uint32
}

// tell gives the engine frames of class c, as the next datagram or as one that it
// has not had, and drops the answers of the engine.
func (l *liar) tell(c conduits.Class, frames ...[]byte) {
	var body []byte
	for _, f := range frames {
		body = append(body, f...)
	}
	l.now += time.Microsecond
	l.e.Receive(l.now, 1, craft(byte(c)|2, l.seq[c], 0, body))
	l.seq[c]++
	l.e.Advance(l.now)
}

// Frames as a liar writes them; kinds and forms are those of wire.go.
var le = binary.LittleEndian

func lieMedium(msg, total, off uint32, data int) []byte {
	b := le.AppendUint16([]byte{2, 0}, uint16(data))
	b = le.AppendUint32(le.AppendUint32(b, 5), msg)
	b = le.AppendUint32(le.AppendUint32(b, total), off)
	return append(b, make([]byte, data)...)
}

func lieLong(msg uint32, total, off uint64, to segment.NLA, data int) []byte {
	b := le.AppendUint16([]byte{3, 0}, uint16(data))
	b = le.AppendUint32(le.AppendUint32(b, 5), msg)
	b = le.AppendUint64(le.AppendUint64(b, total), off)
	b = le.AppendUint64(b, uint64(to))
	for range data {
		b = append(b, 0xEE)
	}
	return b
}

func liePut(to segment.NLA, data int) []byte {
	b := le.AppendUint64(le.AppendUint16([]byte{4}, uint16(data)), uint64(to))
	for range data {
		b = append(b, 0xEE)
	}
	return b
}

func liePart(to segment.NLA, total, off uint64, data int) []byte {
	b := le.AppendUint64(le.AppendUint16([]byte{5}, uint16(data)), uint64(to))
	b = le.AppendUint64(le.AppendUint64(b, total), off)
	for range data {
		b = append(b, 0xEE)
	}
	return b
}

func lieGet(id uint64, from segment.NLA, n uint64) []byte {
	b := le.AppendUint64([]byte{6}, id)
	return le.AppendUint64(le.AppendUint64(b, uint64(from)), n)
}

func lieAtomic(op, typ byte, to segment.NLA) []byte {
	b := le.AppendUint64([]byte{8, op, typ}, 1)
	return append(le.AppendUint64(b, uint64(to)), make([]byte, 16)...)
}

// TestLieTwice says that a message of several parts is complete, by a part that is
// the whole of it, and goes on with parts: it is delivered once, and its memory is
// not touched afterwards.
func TestLieTwice(t *testing.T) {
	e, _, _ := pair(t, nil)
	l := &liar{e: e}
	l.tell(0, lieMedium(7, 100, 0, 50))
	l.tell(0, lieMedium(7, 100, 0, 100), lieMedium(7, 100, 0, 100), lieMedium(7, 100, 50, 50))
	l.tell(0, lieMedium(7, 100, 0, 50))
	// The first is of the two halves, the third part belongs to another one.
	m := e.NextMessage(conduits.Request)
	if m == nil || len(m.Payload) != 100 {
		t.Fatalf("message %+v", m)
	}
	e.Release(m)
	if m := e.NextMessage(conduits.Request); m != nil {
		t.Fatalf("another message, %+v", m)
	}
	if s := e.Stats(); s.Refused != 2 {
		t.Errorf("%+v", s)
	}
}

// TestLieGap sends one half of a message twice: in place of the other half the receiver sees nothing of a message that
// lay there before.
func TestLieGap(t *testing.T) {
	e, _, _ := pair(t, nil)
	l := &liar{e: e}
	for _, first := range []byte{0x5A, 0} {
		half := lieMedium(uint32(first), 100, 0, 50)
		for i := range half[len(half)-50:] {
			half[len(half)-50+i] = first
		}
		second := half
		if first != 0 {
			second = lieMedium(uint32(first), 100, 50, 50)
			for i := range second[len(second)-50:] {
				second[len(second)-50+i] = first
			}
		}
		l.tell(0, half)
		l.tell(0, second)
		m := e.NextMessage(conduits.Request)
		if m == nil || len(m.Payload) != 100 {
			t.Fatalf("message %+v", m)
		}
		for i, b := range m.Payload {
			if b != first {
				t.Fatalf("byte %d of a message of %#x is %#x", i, first, b)
			}
		}
		e.Release(m)
	}
}

// TestLieOutside asks for and writes to what is not in the segment: around both
// ends, and with lengths and offsets that wrap.
func TestLieOutside(t *testing.T) {
	e, _, mem := pair(t, nil)
	const guard, size = 4096, 8192
	all := mem.b
	mem.b = all[guard : guard+size]
	l := &liar{e: e}
	max64 := uint64(math.MaxUint64)
	frames := map[conduits.Class][][]byte{}
	add := func(c conduits.Class, f []byte) { frames[c] = append(frames[c], f) }
	for i, a := range []segment.NLA{
		0, at(0) - 1, at(0) - 8, at(size) - 7, at(size), at(size) + 8, 1 << 63, segment.NLA(max64), segment.NLA(max64 - 7),
	} {
		add(conduits.Request, liePut(a, 8))
		add(conduits.Request, liePut(a, 1000))
		add(conduits.Request, liePart(a, 1000, 0, 8))
		add(conduits.Request, liePart(a, max64, max64-8, 8))
		add(conduits.Request, lieGet(uint64(i), a, 8))
		add(conduits.Request, lieGet(uint64(i), a, max64))
		add(conduits.Request, lieGet(uint64(i), a, max64-uint64(a)+1))
		add(conduits.Request, lieAtomic(byte(conduits.AtomicAdd), byte(conduits.Uint64), a))
		for c := range conduits.Class(conduits.NumClasses) {
			add(c, lieLong(uint32(100+i), 8, 0, a, 8))
			add(c, lieLong(uint32(200+i), max64, max64-8, a, 8))
			add(c, lieLong(uint32(300+i), max64, 0, a, 8))
		}
	}
	for _, f := range [][]byte{
		liePut(at(0), 0), // nothing: permitted, and no effect
		liePart(at(0), size+1, 0, 8),
		liePart(at(8), size, size-8, 8),
		liePart(at(8), max64, 0, 8),
		lieGet(1, at(0), 0), lieGet(1, at(0), size+1), lieGet(1, at(1), size), lieGet(1, at(0), max64),
		lieAtomic(byte(conduits.AtomicAdd), byte(conduits.Uint64), at(4)), // not aligned
		lieAtomic(byte(conduits.AtomicAnd), byte(conduits.Float64), at(0)),
	} {
		add(conduits.Request, f)
	}
	asked := uint64(0)
	for c, fs := range frames {
		for _, f := range fs {
			before := e.Stats().Refused
			l.tell(c, f)
			asked++
			// Parts of long messages that never become whole are refused, too.
			if n := e.Stats().Refused; n == before && f[0] != 4 {
				t.Errorf("class %v: frame %x is not refused", c, f[:min(len(f), 40)])
			}
		}
	}
	if s := e.Stats(); s.FramesIn != asked || s.Malformed != 0 {
		t.Errorf("%d of %d frames were looked at: %+v", s.FramesIn, asked, s)
	}
	for i, v := range all {
		if v != 0 {
			t.Fatalf("byte %d has changed", i-guard)
		}
	}
	for c := range conduits.Class(conduits.NumClasses) {
		if m := e.NextMessage(c); m != nil {
			t.Errorf("a message of %d bytes", len(m.Payload))
		}
	}
}

// TestLieForm: frames that are longer than their datagram, or contradict
// themselves, make the whole datagram nonsense: none of it takes effect.
func TestLieForm(t *testing.T) {
	e, _, mem := pair(t, nil)
	l := &liar{e: e}
	good := liePut(at(0), 8)
	short := func(b []byte, n int) []byte { return b[:len(b)-n] }
	bad := [][]byte{
		{0},
		{11},
		{255},
		{1},
		{1, 21, 0, 0, 0, 0, 0, 0},
		{1, 0, 0, 0, 0, 0, 0, 1}, // a tag of more bits
		short(liePut(at(0), 8), 1),
		short(lieMedium(1, 100, 0, 50), 1),
		lieMedium(1, 100, 60, 50),           // beyond its end
		lieMedium(1, 100, 101, 0),           // begins there
		lieMedium(1, 100, 0, 0),             // brings nothing
		lieMedium(1, 1<<20, 0, 50),          // longer than medium messages are
		lieMedium(1, math.MaxUint32, 0, 50), // far longer
		lieLong(1, 100, 60, at(0), 50),      // beyond its end
		lieLong(1, 10, math.MaxUint64, at(0), 50), // wraps
		liePart(at(0), 100, math.MaxUint64-10, 50),
		liePart(at(0), 10, 0, 50),
		short(lieGet(1, at(0), 8), 1),
		lieAtomic(byte(conduits.NumAtomicOps), 0, at(0)),
		lieAtomic(0, byte(conduits.NumAtomicTypes), at(0)),
		{7, 0, 0},
		{9, 1},
		{10}, // replies, and short
		le.AppendUint64(le.AppendUint64([]byte{9}, 1), 1), // a result among requests
	}
	for i, f := range bad {
		before := e.Stats()
		l.tell(conduits.Request, good, f)
		if s := e.Stats(); s.Malformed != before.Malformed+1 || s.FramesIn != before.FramesIn {
			t.Errorf("%d: frame %x: %+v", i, f[:min(len(f), 40)], s)
		}
	}
	for c, f := range map[conduits.Class][]byte{conduits.Reply: good} {
		before := e.Stats()
		l.tell(c, f)
		if s := e.Stats(); s.Malformed != before.Malformed+1 {
			t.Errorf("a put among replies: %+v", s)
		}
	}
	for i, v := range mem.b {
		if v != 0 {
			t.Fatalf("byte %d has changed", i)
		}
	}
}

// TestLieHeader: counts and ranks that cannot be.
func TestLieHeader(t *testing.T) {
	e, _, _ := pair(t, nil)
	l := &liar{e: e}
	l.tell(0, liePut(at(0), 8))
	base := craft(0, 0, 0, nil)
	for i, change := range []func(d []byte){
		func(d []byte) { d[8] = 0 },                            // another rank's number
		func(d []byte) { d[8] = 7 },                            // no rank's
		func(d []byte) { d[1] = 1 << 7 },                       // a flag that there is not
		func(d []byte) { d[1] = 2 },                            // contents, but none
		func(d []byte) { d[2] = 1 },                            // bits, but none
		func(d []byte) { d[2] = 32 },                           // more of them than there may be
		func(d []byte) { le.PutUint32(d[28:], 1) },             // acknowledges what was not sent
		func(d []byte) { le.PutUint32(d[32:], 1) },             // the same
		func(d []byte) { le.PutUint32(d[36:], 1<<30) },         // far ahead
		func(d []byte) { le.PutUint32(d[40:], 1) },             // consumed what was not sent
		func(d []byte) { le.PutUint32(d[44:], math.MaxInt32) }, // all the credit there is
		func(d []byte) { le.PutUint32(d[12:], 0) },             // no incarnation
	} {
		d := append([]byte(nil), base...)
		change(d)
		le.PutUint32(d[4:], 0)
		le.PutUint32(d[4:], castagnoli(d))
		before := e.Stats()
		e.Receive(l.now, 1, d)
		if s := e.Stats(); s.Malformed != before.Malformed+1 || s.Peers != 1 {
			t.Errorf("lie %d: %+v", i, s)
		}
	}
}

// TestLieForever has a liar ask for ever and never acknowledge an answer, and send
// messages without credit: what is kept for it is bounded.
func TestLieForever(t *testing.T) {
	e, _, _ := pair(t, func(c *engine.Config) { c.Credits = 8 })
	l := &liar{e: e}
	out := make([]byte, 65507)
	measure := func(n int) uint64 {
		for range n {
			// Refused ones are answered.
			l.tell(conduits.Reply, lieLong(1, 8, 0, 0, 8))
			l.tell(conduits.Request, lieGet(1, 0, 8), lieAtomic(0, 0, 0), liePut(0, 8))
			l.tell(conduits.Request, lieGet(1, at(0), 1<<15), lieMedium(l.seq[0], 1000, 0, 10), lieMedium(l.seq[0], 10, 0, 10))
			for range 3 {
				if _, _, ok := e.Next(l.now, out); !ok {
					break
				}
			}
		}
		return heap()
	}
	measure(60000) // the backlog is full
	before := measure(1000)
	if after := measure(60000); after > before+1<<20 {
		t.Errorf("%d bytes, before %d: %+v", after, before, e.Stats())
	}
	if s := e.Stats(); s.Beyond == 0 {
		t.Errorf("%+v", s)
	}
}

// TestLieLarge has a liar with large datagrams ask for as many answers as fit, and
// never acknowledge one: what waits for it is bounded in bytes.
func TestLieLarge(t *testing.T) {
	e, _, _ := pair(t, func(c *engine.Config) { c.Datagram = 65507 })
	l := &liar{e: e}
	asks := make([][]byte, 1800)
	for i := range asks {
		asks[i] = lieAtomic(0, byte(conduits.Uint64), at(0))
	}
	out := make([]byte, 65507)
	before := heap()
	for range 3000 {
		l.tell(conduits.Request, asks...)
		_, _, _ = e.Next(l.now, out)
	}
	if after, s := heap(), e.Stats(); after > before+64<<20 || s.Beyond == 0 || s.Malformed > 0 {
		t.Errorf("%d MiB are kept: %+v", (after-before)>>20, s)
	}
}

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
