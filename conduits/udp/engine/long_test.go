package engine_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/segment"
)

// TestLongCopied sends long messages from memory that changes as soon as the event says
// that it may, and loses the first transmission of each: what arrives is what was sent.
func TestLongCopied(t *testing.T) {
	const medium = 4096
	for _, datagram := range []int{1400, 65000} {
		for _, size := range []int{1, 257, medium, medium + 1, engine.CopyMost - 1, engine.CopyMost} {
			a, b, mem := pair(t, func(c *engine.Config) { c.Datagram, c.MaxMedium = datagram, medium })
			src := fill(make([]byte, size), 3)
			want := bytes.Clone(src)
			if a.Reserve(1, conduits.Request) != conduits.Ready {
				t.Fatal("no credit")
			}
			if size <= medium {
				if a.SendLong(1, conduits.Request, 7, []uint32{1, 2}, at(0), src, 1) != conduits.SourceDone {
					t.Errorf("%d bytes are not copied", size)
				}
			} else {
				a.SendCopy(1, conduits.Request, 7, []uint32{1, 2}, at(0), a.Copy(src))
			}
			clear(src)
			buf := make([]byte, datagram)
			if _, _, ok := a.Next(0, buf); !ok { // lost
				t.Fatal("nothing is sent")
			}
			var m *engine.Message
			for now := time.Duration(0); m == nil; now += time.Millisecond {
				if now > time.Second {
					t.Fatalf("%d bytes by datagrams of %d do not arrive", size, datagram)
				}
				carry(now, a, b)
				m = b.NextMessage(conduits.Request)
			}
			if !bytes.Equal(m.Payload, want) || !bytes.Equal(mem.b[:size], want) || len(m.Words) != 2 || m.Words[1] != 2 {
				t.Errorf("%d bytes by datagrams of %d: other ones arrive", size, datagram)
			}
			if c, ok := a.NextCompletion(); ok {
				t.Errorf("%d bytes: completion %+v of what was copied", size, c)
			}
		}
	}
}

// TestCopies: there are so many copies and no more, and each is there again when its
// message has arrived, was given up, or can never arrive.
func TestCopies(t *testing.T) {
	a, b, _ := pair(t, func(c *engine.Config) { c.Credits = 1000 })
	src := make([]byte, 5000)
	all := func() (l [][]byte) {
		for c := a.Copy(src); c != nil; c = a.Copy(src) {
			if len(c) != len(src) || len(l) > 1000 {
				t.Fatalf("copy %d of %d bytes has %d", len(l), len(src), len(c))
			}
			l = append(l, c)
		}
		return l
	}
	send := func(l [][]byte) {
		for _, c := range l {
			_ = a.Reserve(1, conduits.Request) // the peer may be gone
			a.SendCopy(1, conduits.Request, 7, nil, at(0), c)
		}
	}
	if a.Copy(make([]byte, engine.CopyMost+1)) != nil {
		t.Error("a copy of too many bytes")
	}
	l := all()
	most := len(l)
	for _, c := range l {
		a.Uncopy(c)
	}
	for _, x := range []struct {
		what string
		end  func()
	}{
		{"arrived", func() {
			for now := time.Millisecond; !a.Drained(); now += time.Millisecond {
				carry(now, a, b)
			}
		}},
		{"the peer has left", func() { a.Part(1) }},
		{"the peer had left", func() {}},
	} {
		if l = all(); len(l) != most {
			t.Fatalf("before %q: %d copies, at first %d", x.what, len(l), most)
		}
		send(l)
		x.end()
	}
	if n := len(all()); n != most {
		t.Errorf("at the end: %d copies, at first %d", n, most)
	}
}

// TestShared: medium and long messages that come while others are under way share
// datagrams, with each other too.
func TestShared(t *testing.T) {
	a, b, _ := pair(t, func(c *engine.Config) { c.Datagram, c.Hold = 65000, 10*time.Microsecond })
	payload := fill(make([]byte, 512), 1)
	const messages = 40
	for i := range messages {
		if a.Reserve(1, conduits.Request) != conduits.Ready {
			t.Fatal("no credit")
		}
		if i%2 == 0 {
			a.Send(1, conduits.Request, 1, nil, payload)
		} else {
			a.SendLong(1, conduits.Request, 2, nil, at(512*i), payload, 1)
		}
		if i == 0 {
			buf := make([]byte, 65000)
			_, n, _ := a.Next(0, buf)
			b.Receive(0, 0, buf[:n])
		}
	}
	carry(100*time.Microsecond, a, b)
	got := [3]int{}
	for m := b.NextMessage(conduits.Request); m != nil; m = b.NextMessage(conduits.Request) {
		got[m.Tag]++
		if !bytes.Equal(m.Payload, payload) {
			t.Errorf("message of tag %d: other bytes arrive", m.Tag)
		}
		b.Release(m)
	}
	if s := a.Stats(); got != [3]int{0, messages / 2, messages / 2} || s.Sent > 1+messages*600/(16<<10)+1 {
		t.Errorf("%v messages in %d datagrams", got, s.Sent)
	}
}

// TestLongRefused: a long message beside others in a datagram whose address is refused
// is not delivered; they are, and its credit returns.
func TestLongRefused(t *testing.T) {
	a, b, mem := pair(t, func(c *engine.Config) { c.Credits, c.Datagram = 2, 65000 })
	mem.rights = segment.RightRead
	for now := time.Millisecond; now < 20*time.Millisecond; now += time.Millisecond {
		for a.Reserve(1, conduits.Request) == conduits.Ready {
			a.SendLong(1, conduits.Request, 7, nil, at(0), []byte{1}, 1)
		}
		carry(now, a, b)
		if b.NextMessage(conduits.Request) != nil {
			t.Fatal("a message that tells of data which is not there")
		}
	}
	mem.rights = segment.RightsAll
	for now := 20 * time.Millisecond; a.Reserve(1, conduits.Request) != conduits.Ready; now += time.Millisecond {
		if now > time.Second {
			t.Fatal("credit does not return")
		}
		carry(now, a, b)
	}
	if mem.b[0] != 0 || b.Stats().Unheard < 2 {
		t.Errorf("memory %v, %+v", mem.b[:1], b.Stats())
	}
}

// TestPutCopied begins puts while nothing can be sent: those that fit into a datagram are copied,
// what has been copied arrives whatever becomes of the source, and no endless amount is.
func TestPutCopied(t *testing.T) {
	a, b, mem := pair(t, func(c *engine.Config) { c.Datagram = 1400 })
	const size, most = 1000, 1 << 10
	src := make([]byte, size)
	want := bytes.Repeat([]byte{7}, size)
	n := 0
	for ; n < most; n++ {
		copy(src, want)
		ev, err := a.Put(1, at(0), src, conduits.SourceDone|conduits.RemoteDone, 1)
		if err != nil {
			t.Fatal(err)
		}
		if ev != conduits.SourceDone {
			break
		}
		clear(src)
	}
	if n < 2 || n == most {
		t.Fatalf("%d puts of %d bytes have been copied", n, size)
	}
	done := 0
	for now := time.Duration(0); done <= n; now += time.Millisecond {
		if now > time.Second {
			t.Fatalf("%d of %d puts have ended", done, n+1)
		}
		carry(now, a, b)
		for c, ok := a.NextCompletion(); ok; c, ok = a.NextCompletion() {
			if c.Err != nil || c.Event&conduits.RemoteDone == 0 {
				t.Fatalf("%+v", c)
			}
			done++
		}
	}
	if !bytes.Equal(mem.b[:size], want) {
		t.Error("other bytes have arrived")
	}
}
