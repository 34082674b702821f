package udp

import (
	"bytes"
	"math/rand/v2"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
)

// linked opens two sockets on addr that know each other.
func linked(t *testing.T, addr string) [2]*socket {
	t.Helper()
	b := &localBook{make([]netip.AddrPort, 2), map[netip.AddrPort]int{}}
	var l [2]*socket
	for r := range l {
		conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(addr), 0)))
		if err != nil {
			t.Skipf("no socket on %s: %v", addr, err)
		}
		if l[r], err = newSocket(conn, r, b, time.Now(), r == 1); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l[r].Close)
		b.addrs[r] = l[r].own
		b.ranks[b.addrs[r]] = r
	}
	return l
}

// TestBatches sends datagrams of all sizes, some of whose ends lie elsewhere, to
// two ranks in turns, and sees that all arrive as they were, in order, whether
// the kernel cuts messages into datagrams or not.
func TestBatches(t *testing.T) {
	for _, addr := range []string{"127.0.0.1", "::1"} {
		for _, segments := range []bool{true, false} {
			l := linked(t, addr)
			if !segments {
				l[0].out.segments = false
			}
			rnd := rand.New(rand.NewPCG(1, 2))
			var want [2][][]byte
			var in [2]inbox
			got := 0
			o := newOutbox()
			for round := range 200 {
				size, dst := 1+rnd.IntN(1400), rnd.IntN(2)
				if round%10 == 0 {
					size = 65000
				}
				sent := 0
				for o.room(65507) != nil && sent < 100 {
					n := size
					switch rnd.IntN(30) {
					case 0:
						n = 1 + rnd.IntN(1400)
					case 1:
						dst = rnd.IntN(2)
					}
					p := make([]byte, n)
					for i := 0; i < n; i += 7 {
						p[i] = byte(rnd.Uint32())
					}
					cut := n
					if rnd.IntN(3) == 0 {
						cut = 1 + rnd.IntN(n)
					}
					copy(o.room(cut), p)
					o.add(dst, cut, p[cut:])
					want[dst] = append(want[dst], p)
					sent++
				}
				l[0].Send(o)
				o.clear()
				for r := range l {
					for len(want[r]) > 0 {
						if !l[r].Recv(&in[r]) {
							l[r].Wait(0)
							continue
						}
						for _, d := range in[r].list {
							if d.src != 0 || len(want[r]) == 0 || !bytes.Equal(d.b, want[r][0]) {
								t.Fatalf("%s: a datagram of %d bytes from %d; %d are to come", addr, len(d.b), d.src, len(want[r]))
							}
							want[r] = want[r][1:]
							got++
						}
					}
				}
			}
			if l[0].out.segments != segments {
				t.Logf("%s: the kernel does not cut messages", addr)
			}
			t.Logf("%s, cut by the kernel %v: %d datagrams", addr, l[0].out.segments, got)
		}
	}
}

// TestNoAddress sends to a rank that the book has no address of, amid datagrams to another one: those
// to it are lost, alone.
func TestNoAddress(t *testing.T) {
	for _, addr := range []string{"127.0.0.1", "::1"} {
		l := linked(t, addr)
		l[0].book.(*localBook).addrs[0] = netip.AddrPort{}
		segments := l[0].out.segments
		o := newOutbox()
		for i, dst := range []int{0, 1, 0, 0, 1, 1, 0} {
			o.room(1)[0] = byte(i)
			o.add(dst, 1, nil)
		}
		l[0].Send(o)
		o.clear()
		o.room(1)[0] = 7
		o.add(0, 1, nil)
		l[0].Send(o) // alone it goes by another system call
		var in inbox
		for _, want := range []byte{1, 4, 5} {
			for len(in.list) == 0 && !l[1].Recv(&in) {
				l[1].Wait(0)
			}
			if got := in.list[0].b; !bytes.Equal(got, []byte{want}) {
				t.Fatalf("%s: %v, want %d", addr, got, want)
			}
			in.list = in.list[1:]
		}
		if w := &l[0].out; w.segments != segments || len(w.refused.by) > 0 {
			t.Errorf("%s: messages are cut %v, before %v; refusals that last: %v", addr, w.segments, segments, w.refused.by)
		}
	}
}

// TestRefusedSegments has a kernel that refuses to cut messages into datagrams:
// that is noticed once, and they arrive nevertheless.
func TestRefusedSegments(t *testing.T) {
	l := linked(t, "127.0.0.1")
	if !l[0].out.segments {
		t.Skip("the kernel cannot cut messages")
	}
	// Without checksums it does not, as for an interface that cannot make them.
	if err := l[0].raw.Control(func(fd uintptr) {
		if err := syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_NO_CHECK, 1); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	o, want := newOutbox(), 0
	for _, size := range []int{50, 50, 50, 7, 1400, 1400, 1400, 30} {
		copy(o.room(size), bytes.Repeat([]byte{byte(size)}, size))
		o.add(1, size, nil)
		want += size
	}
	l[0].Send(o)
	if l[0].out.segments {
		t.Error("the refusal was not noticed")
	}
	for n, in := 0, new(inbox); n < 8; {
		if !l[1].Recv(in) {
			l[1].Wait(0)
			continue
		}
		for _, d := range in.list {
			n++
			want -= len(d.b)
		}
	}
	if want != 0 {
		t.Errorf("%d bytes did not come", want)
	}
}

// TestClosedLink: a closed link loses what it is given.
func TestClosedLink(t *testing.T) {
	l := linked(t, "127.0.0.1")
	l[0].Close()
	o := newOutbox()
	copy(o.room(1), "x")
	o.add(1, 1, nil)
	l[0].Send(o)
	if l[0].Recv(new(inbox)) {
		t.Error("something came from nowhere")
	}
}

// TestPromptWithoutPolls has a rank send two messages in a row and then not poll
// any more: the second waits for company, but not for the rank.
func TestPromptWithoutPolls(t *testing.T) {
	got := make(chan time.Time, 1)
	// It would wait for an hour.
	both(t, speedJob(t, engine.Config{Hold: time.Hour}, false, 0), func(ep *Endpoint, _ *speaker) {
		start := time.Now()
		for range 2 {
			if ep.Send(1, conduits.Request, 1, nil) != conduits.Ready {
				t.Error("no credit")
			}
		}
		select {
		case at := <-got:
			t.Logf("both there after %v", at.Sub(start))
		case <-time.After(5 * time.Minute):
			t.Error("the second never came")
		}
	}, func(ep *Endpoint, s *speaker) {
		if err := conduits.Wait(ep, nil, func() bool { return s.got == 2 }); err != nil {
			t.Error(err)
		}
		got <- time.Now()
	})
}
