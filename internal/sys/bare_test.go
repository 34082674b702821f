package sys

import (
	"bytes"
	"net/netip"
	"testing"
)

// barePair is two sockets that are connected with each other.
func barePair(t *testing.T, ip string) (a, b *BareSocket) {
	t.Helper()
	addr := netip.MustParseAddr(ip)
	var s [2]*BareSocket
	var at [2]netip.AddrPort
	for i := range s {
		var err error
		if s[i], err = OpenBare(netip.AddrPortFrom(addr, 0), 1<<20); err != nil {
			t.Skipf("no UDP socket at %s: %v", ip, err)
		}
		t.Cleanup(func() {
			if err := s[i].Close(); err != nil {
				t.Error(err)
			}
		})
		port, err := s[i].Port()
		if err != nil || port == 0 {
			t.Fatalf("port %d, %v", port, err)
		}
		at[i] = netip.AddrPortFrom(addr, port)
	}
	for i := range s {
		if err := s[i].Connect(at[1-i]); err != nil {
			t.Fatal(err)
		}
	}
	return s[0], s[1]
}

func receive(t *testing.T, s *BareSocket, p []byte) int {
	t.Helper()
	for {
		n, err := s.Receive(p)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return n
		}
	}
}

func TestBareSocket(t *testing.T) {
	for _, ip := range []string{"127.0.0.1", "::1"} {
		t.Run(ip, func(t *testing.T) {
			a, b := barePair(t, ip)
			if a.Buffer() <= 0 {
				t.Errorf("a buffer of %d bytes", a.Buffer())
			}
			var p [100]byte
			if n, err := b.Receive(p[:]); n != 0 || err != nil {
				t.Fatalf("nothing was sent; received %d, %v", n, err)
			}
			for _, size := range []int{1, 8, 99} {
				want := bytes.Repeat([]byte{byte(size)}, size)
				if ok, err := a.Send(want); !ok || err != nil {
					t.Fatalf("sent: %v, %v", ok, err)
				}
				if n := receive(t, b, p[:]); !bytes.Equal(p[:n], want) {
					t.Fatalf("got %v, want %v", p[:n], want)
				}
			}
		})
	}
}

// TestBareSegments sends more than a datagram holds in one call.
func TestBareSegments(t *testing.T) {
	a, b := barePair(t, "127.0.0.1")
	if !a.Segment(1400) || !b.Segment(1400) {
		t.Skip("no segmentation offload here")
	}
	want := make([]byte, 40*1400+7)
	for i := range want {
		want[i] = byte(i * 7)
	}
	if ok, err := a.Send(want); !ok || err != nil {
		t.Fatalf("sent: %v, %v", ok, err)
	}
	var got []byte
	p := make([]byte, 1<<16)
	for len(got) < len(want) {
		got = append(got, p[:receive(t, b, p)]...)
	}
	if !bytes.Equal(got, want) {
		t.Error("the bytes differ")
	}
}

func TestBareRefused(t *testing.T) {
	if s, err := OpenBare(netip.MustParseAddrPort("192.0.2.1:0"), 1<<16); err == nil {
		_ = s.Close()
		t.Error("a socket at an address that this host does not have")
	}
	a, b := barePair(t, "127.0.0.1")
	port, _ := a.Port()
	if s, err := OpenBare(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port), 1<<16); err == nil {
		_ = s.Close()
		t.Error("a second socket at the same port")
	}
	if ok, err := b.Send(make([]byte, 1<<17)); ok || err == nil {
		t.Errorf("128 KiB in a datagram: %v, %v", ok, err)
	}
}
