package engine_test

import (
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
)

// TestFewAcks: messages and their answers bring each other's acknowledgements, so
// that no datagram is sent for those alone, whatever the window; and of a stream
// one way, few are.
func TestFewAcks(t *testing.T) {
	for _, datagram := range []int{1400, 65000} {
		adjust := func(c *engine.Config) { c.Datagram = datagram; c.AckDelay = time.Second }
		a, b, _ := pair(t, adjust)
		now := time.Microsecond
		buf := make([]byte, datagram)
		move := func(from, to *engine.Engine) (n int) {
			for {
				_, k, ok := from.Next(now, buf)
				if !ok {
					return n
				}
				to.Receive(now, from.Config().Rank, buf[:k])
				n++
			}
		}
		for i := range 1000 {
			for _, way := range [][2]*engine.Engine{{a, b}, {b, a}} {
				from, to := way[0], way[1]
				class := conduits.Class(from.Config().Rank) // requests, and replies to them
				if from.Reserve(to.Config().Rank, class) != conduits.Ready {
					t.Fatal("no credit")
				}
				from.Send(to.Config().Rank, class, 1, nil, nil)
				now += 3 * time.Microsecond
				if n := move(from, to); n != 1 {
					t.Fatalf("datagrams of %d bytes: round %d of messages takes %d of them one way", datagram, i, n)
				}
				if move(to, from) != 0 {
					t.Fatalf("datagrams of %d bytes: round %d: a message is acknowledged by itself", datagram, i)
				}
				m := to.NextMessage(class)
				if m == nil {
					t.Fatal("the message has not come")
				}
				to.Release(m)
			}
		}
		a, b, mem := pair(t, adjust) // with a window that has to grow
		mem.b = make([]byte, 64<<20)
		big := make([]byte, 32<<20)
		if _, err := a.Put(1, at(0), big, conduits.RemoteDone, 1); err != nil {
			t.Fatal(err)
		}
		sent := 0
		for !a.Drained() { // nothing but datagrams and what they ask for moves it on
			n := move(a, b)
			sent += n
			now += 10 * time.Microsecond
			if move(b, a)+n == 0 {
				t.Fatalf("datagrams of %d bytes: after %d nothing is acknowledged", datagram, sent)
			}
		}
		if acks := int(b.Stats().Acks); acks > sent/8+16 {
			t.Errorf("datagrams of %d bytes: %d acknowledgements of %d", datagram, acks, sent)
		}
	}
}
