package engine_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
)

// craft makes a datagram of rank 1 of a pair.
func craft(flags byte, seq, cum uint32, body []byte) []byte {
	b := make([]byte, 48, 100)
	le := binary.LittleEndian
	b[1] = flags
	le.PutUint32(b[20:], seq)
	le.PutUint32(b[24:], seq)
	le.PutUint32(b[28:], cum)
	le.PutUint32(b[32:], cum)
	b = append(b, body...)
	seal(b, 1, 8)
	return b
}

// seal makes b pass for a datagram of rank src.
func seal(b []byte, src, epoch uint32) {
	le := binary.LittleEndian
	b[0] = 0xA8
	le.PutUint32(b[8:], src)
	le.PutUint32(b[12:], epoch)
	le.PutUint32(b[4:], 0)
	le.PutUint32(b[4:], castagnoli(b))
}

// TestFutureAcknowledged: no peer can have what was never sent, or have consumed
// it.
func TestFutureAcknowledged(t *testing.T) {
	a, _, _ := pair(t, nil)
	buf := make([]byte, 2000)
	_, _ = a.Put(1, at(0), buf[:8], conduits.RemoteDone, 1)
	_, n, _ := a.Next(0, buf)
	if n == 0 {
		t.Fatal("nothing to send")
	}
	a.Receive(0, 1, craft(0, 0, 2, nil))
	d := craft(0, 0, 1, nil)
	d[40] = 1
	seal(d, 1, 8)
	a.Receive(0, 1, d)
	if s := a.Stats(); s.Malformed != 2 {
		t.Errorf("%+v", s)
	}
	if _, ok := a.NextCompletion(); ok {
		t.Error("complete by a lie")
	}
	a.Receive(0, 1, craft(0, 0, 1, nil))
	if _, ok := a.NextCompletion(); !ok {
		t.Error("not complete")
	}
}

// TestWrongAnswers: an answer to an operation that is over, of another kind, or
// beyond its end changes nothing.
func TestWrongAnswers(t *testing.T) {
	a, b, _ := pair(t, nil)
	_ = a.Atomic(1, at(0), conduits.AtomicAdd, conduits.Uint64, 1, 0, 1)
	carry(0, a, b)
	carry(time.Millisecond, a, b)
	if _, ok := a.NextCompletion(); !ok {
		t.Fatal("not complete")
	}
	_ = a.Atomic(1, at(0), conduits.AtomicAdd, conduits.Uint64, 1, 0, 2) // index 0 again
	get := make([]byte, 8)
	_, _ = a.Get(get, 1, at(0), conduits.RemoteDone, 3) // index 1
	le := binary.LittleEndian
	result := func(id uint64) []byte { return le.AppendUint64(le.AppendUint64([]byte{9}, id), 77) }
	data := func(id, off uint64, n int) []byte {
		d := le.AppendUint16([]byte{7}, uint16(n))
		d = le.AppendUint64(le.AppendUint64(d, id), off)
		for range n {
			d = append(d, 9)
		}
		return d
	}
	fault := func(id uint64) []byte { return append(le.AppendUint64([]byte{10}, id), make([]byte, 16)...) }
	putFault := func(seq, at int) []byte {
		return append(le.AppendUint16(le.AppendUint32([]byte{11}, uint32(seq)), uint16(at)), make([]byte, 16)...)
	}
	take(time.Millisecond, a)
	for i, body := range [][]byte{
		result(1 << 32),              // over
		result(3 << 32),              // not begun
		result(1<<32 | 1),            // a get
		result(1<<32 | 2),            // none
		data(2<<32, 0, 8),            // an atomic
		data(1<<32|1, 1, 8),          // beyond its end
		data(1<<32|1, 1<<63, 8),      // far beyond
		data(1<<32|1, ^uint64(0), 1), // wraps
		fault(1 << 32),               // over
		fault(1<<32 | 2),             // none
		fault(0),
		putFault(0, 0),     // has arrived
		putFault(1, 0),     // of an atomic and a get
		putFault(1, 35),    // the get
		putFault(1, 7),     // no frame
		putFault(1, 60),    // at the end of the frames
		putFault(1, 65535), // beyond
		putFault(2, 0),     // not sent
		putFault(1<<31, 0), // long ago
		putFault(^0, 0),    // before the first
		putFault(1<<31-1, 0),
	} {
		before := a.Stats()
		a.Receive(time.Millisecond, 1, craft(3, uint32(1+i), 1, body))
		if s := a.Stats(); s.Refused != before.Refused+1 {
			t.Errorf("answer %d: %+v", i, s)
		}
	}
	if c, ok := a.NextCompletion(); ok || get[0] != 0 {
		t.Errorf("completion %+v, contents %v", c, get)
	}
}

// TestCreditOverdrawn: what a peer sends beyond its credit is not heard.
func TestCreditOverdrawn(t *testing.T) {
	a, b, _ := pair(t, func(c *engine.Config) { c.Credits = 4 + 8*(1-c.Rank) })
	for i := range 10 {
		if a.Reserve(1, conduits.Request) != conduits.Ready {
			t.Fatal("no credit")
		}
		a.Send(1, conduits.Request, conduits.Tag(i), nil, nil)
	}
	carry(0, a, b)
	n := 0
	for m := b.NextMessage(conduits.Request); m != nil; m = b.NextMessage(conduits.Request) {
		n++
	}
	if s := b.Stats(); n != 4 || s.Beyond != 6 {
		t.Errorf("%d messages, %+v", n, s)
	}
}

// TestCreditLost loses the datagram that gives credit back: the sender that waits
// for it asks.
func TestCreditLost(t *testing.T) {
	a, b, _ := pair(t, func(c *engine.Config) { c.Credits = 1 })
	a.Reserve(1, conduits.Request)
	a.Send(1, conduits.Request, 0, nil, nil)
	carry(0, a, b)
	carry(time.Millisecond, a, b)
	b.Release(b.NextMessage(conduits.Request))
	buf := make([]byte, 2000)
	if _, _, ok := b.Next(time.Millisecond, buf); !ok { // lost
		t.Fatal("the credit is not sent at once")
	}
	if a.Reserve(1, conduits.Request) != conduits.NoCredit {
		t.Fatal("credit from nowhere")
	}
	carry(time.Millisecond, a, b)
	if a.Reserve(1, conduits.Request) != conduits.Ready {
		t.Error("the credit never comes")
	}
}

// TestAliveButSlow keeps an operation waiting for much longer than the dead time
// while its target shows that it lives.
func TestAliveButSlow(t *testing.T) {
	a, b, _ := pair(t, nil)
	_, _ = a.Get(make([]byte, 100), 1, at(0), conduits.RemoteDone, 1)
	buf := make([]byte, 2000)
	for now := time.Duration(0); now < 10*time.Second; now += time.Millisecond {
		a.Advance(now)
		for _, n, ok := a.Next(now, buf); ok; _, n, ok = a.Next(now, buf) {
			b.Receive(now, 0, buf[:n])
		}
		b.Advance(now)
		for _, n, ok := b.Next(now, buf); ok; _, n, ok = b.Next(now, buf) {
			// What it brings is always lost, not what its header says.
			n = min(n, 48+8*int(buf[2]))
			buf[1] &^= 7
			seal(buf[:n], 1, 8)
			a.Receive(now, 1, buf[:n])
		}
		if a.Dead(1) {
			t.Fatalf("declared dead at %v", now)
		}
	}
}
