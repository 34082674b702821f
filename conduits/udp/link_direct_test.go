package udp

import (
	"bytes"
	"fmt"
	"testing"
)

// TestDirect sends to one rank, to two in turns, and in large runs, over sockets
// whose ranks are not known by their addresses: all arrives, in order, whichever
// socket it is sent from and however it is received.
func TestDirect(t *testing.T) {
	for _, addr := range []string{"127.0.0.1", "::1"} {
		t.Run(addr, func(t *testing.T) {
			l := linked(t, addr)
			for _, s := range l {
				s.book = anonymous{s.book}
			}
			w := &l[0].out
			o, number := newOutbox(), 0
			var in [2]inbox
			send := func(dst, datagrams, size int) {
				var want [][]byte
				for range datagrams {
					p := bytes.Repeat([]byte(fmt.Sprintf("%8d", number)), size/8)
					number++
					want = append(want, p)
					o.add(dst, copy(o.room(len(p)), p), nil)
				}
				l[0].Send(o)
				o.clear()
				for len(want) > 0 {
					if !l[dst].Recv(&in[dst]) {
						l[dst].Wait(0)
						continue
					}
					for _, d := range in[dst].list {
						if d.src != -1 || len(want) == 0 || !bytes.Equal(d.b, want[0]) {
							t.Fatalf("%d bytes from %d; %d datagrams are to come", len(d.b), d.src, len(want))
						}
						want = want[1:]
					}
				}
			}
			for i := range 2 * loyal {
				if connected := w.direct.conn != nil; connected != (i >= loyal) {
					t.Fatalf("connected %v after %d", connected, i)
				}
				send(1, 1, 64)
			}
			for range 2 * loyal { // in turns: it stays
				send(0, 1, 64)
				send(1, 1, 64)
			}
			if w.direct.to != 1 {
				t.Fatalf("connected to rank %d, whom it does not serve more than the other", w.direct.to)
			}
			for range loyal {
				send(0, 1, 64)
			}
			if w.direct.to != 0 {
				t.Fatalf("connected to rank %d", w.direct.to)
			}
			for range 20 {
				send(0, 40, 1400)
				send(1, 40, 1400)
				for range quiet { // until they come one by one again
					for r := range l {
						if l[r].Recv(&in[r]) {
							t.Fatal("something came from nowhere")
						}
					}
				}
				send(0, 3, 64)
			}
		})
	}
}

// TestDirectPeerGone: what is sent to a rank whose socket is closed is lost, and
// nothing else.
func TestDirectPeerGone(t *testing.T) {
	l := linked(t, "127.0.0.1")
	for _, s := range l {
		s.book = anonymous{s.book}
	}
	o := newOutbox()
	send := func(dst int) {
		copy(o.room(8), "somebody")
		o.add(dst, 8, nil)
		l[0].Send(o)
		o.clear()
	}
	for range loyal {
		send(1)
	}
	if l[0].out.direct.conn == nil {
		t.Fatal("not connected")
	}
	l[1].Close()
	for range 10 {
		send(1) // the kernel says that no socket is there
	}
	send(0)
	for in := new(inbox); !l[0].Recv(in); {
		l[0].Wait(0)
	}
	l[0].Close()
	send(1)
}

// TestDirectNames: where ranks are known by their addresses, no other socket sends.
func TestDirectNames(t *testing.T) {
	l := linked(t, "127.0.0.1")
	o, in := newOutbox(), new(inbox)
	for range 2 * loyal {
		copy(o.room(8), "somebody")
		o.add(1, 8, nil)
		l[0].Send(o)
		o.clear()
		for !l[1].Recv(in) {
			l[1].Wait(0)
		}
		if in.list[0].src != 0 {
			t.Fatal("from a stranger")
		}
	}
	if l[0].out.direct.conn != nil {
		t.Error("connected")
	}
}
