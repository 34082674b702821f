//go:build ofi && cgo

package ofi

import (
	"encoding/binary"
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/sys"
)

// call has rank 0 send rank 1 a message, and checks that programs inherit no connection
// that it has made. own is rank 1's port.
func call(t *testing.T, ts []conduits.Transport, own int) {
	t.Helper()
	before := sys.Descriptors()
	if st := ts[0].Send(1, []uint32{1}, nil); st != conduits.Ready {
		t.Fatal(st)
	}
	made := 0
	for _, fd := range sys.Descriptors() {
		near, err := syscall.Getsockname(fd)
		// Rank 1 may have accepted the connection already, which it hides when it has heard.
		if err != nil || slices.Contains(before, fd) || port(near) == own {
			continue
		}
		if made++; sys.Inherited(fd) {
			t.Errorf("programs inherit connection %d", fd)
		}
	}
	if made == 0 {
		t.Skip("the provider makes its connections later")
	}
}

// portOfOther is the port of rank 1's endpoint; 0 if it has none.
func portOfOther(ts []conduits.Transport) int {
	r := ts[1].(*transport)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hidden.port
}

// TestHidden: programs inherit no connection from the moment it is made, before the peer
// has answered.
func TestHidden(t *testing.T) {
	ts, _ := pair(t)
	call(t, ts, portOfOther(ts))
}

// TestHiddenBegun: nor do they inherit one that the peer's host has not answered yet.
func TestHiddenBegun(t *testing.T) {
	ts, _ := pair(t)
	own := portOfOther(ts)
	if own == 0 {
		t.Skip("addresses are not those of IP")
	}
	// What calls a listener whose queue is full is not answered (listen(2), tcp(7)).
	l, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	fds := []int{l}
	defer func() {
		for _, fd := range fds {
			if err := syscall.Close(fd); err != nil {
				t.Error(err)
			}
		}
	}()
	r := ts[0].(*transport)
	r.mu.Lock()
	card := &r.cards[1]
	card.addr = slices.Clone(card.addr)
	v4 := binary.NativeEndian.Uint16(card.addr) == syscall.AF_INET
	r.mu.Unlock()
	if !v4 {
		t.Skip("addresses are not those of IPv4")
	}
	at := &syscall.SockaddrInet4{Addr: [4]byte(card.addr[4:8])}
	if err := syscall.Bind(l, at); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(l, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(l)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, c)
		if err := syscall.Connect(c, name); err != nil && !errors.Is(err, syscall.EINPROGRESS) {
			t.Fatal(err)
		}
	}
	r.mu.Lock()
	binary.BigEndian.PutUint16(card.addr[2:], uint16(port(name)))
	r.mu.Unlock()
	call(t, ts, own)
	r.Fail(0, errors.New("the test has it fail"))
}

// TestPortOf: addresses of IP have a port, others none, whatever they begin with.
func TestPortOf(t *testing.T) {
	for _, c := range []struct {
		ip   bool
		addr []byte
		port int
	}{
		{true, nil, 0},
		{true, []byte{2, 0, 0x12, 0x34, 127, 0, 0, 1}, 0x1234},
		{true, append([]byte{10, 0, 0x12, 0x34}, make([]byte, 24)...), 0x1234},
		{false, []byte{2, 0, 0x12, 0x34, 127, 0, 0, 1}, 0},
		{true, []byte("an address of some card"), 0},
	} {
		if got := (&hidden{ip: c.ip}).portOf(c.addr); got != c.port {
			t.Errorf("%v has port %d, not %d", c.addr, got, c.port)
		}
	}
}

// TestCalls: a peer that cannot be reached is called more seldom the longer that takes.
func TestCalls(t *testing.T) {
	ts, _ := pair(t)
	r := ts[0].(*transport)
	// A socket that has a port and does not listen.
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(s)
	if err := syscall.Bind(s, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(s)
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	addr := r.cards[1].addr
	if r.hidden.portOf(addr) == 0 || len(addr) != syscall.SizeofSockaddrInet4 {
		r.mu.Unlock()
		t.Skip("the provider has no addresses of IPv4")
	}
	binary.BigEndian.PutUint16(addr[2:], uint16(port(at)))
	r.mu.Unlock()
	ts[0].Send(1, []uint32{1}, nil)
	defer ts[0].Fail(0, errors.New("the test is over"))
	const long = 300 * time.Millisecond
	for {
		ts[0].Poll()
		r.mu.Lock()
		p := r.peer(1)
		calls, took, lost := p.calls, r.Now()-p.firstCall, p.lost
		r.mu.Unlock()
		if lost != nil {
			t.Skipf("the provider gives the peer up by itself: %v", lost)
		}
		// Eight times the logarithm of the time in units of the shortest pause, and 50 a second.
		if calls > 8*14+uint32(took/mostCallGap) {
			t.Fatalf("%d calls in %v", calls, took)
		}
		if took > long {
			t.Logf("%d calls in %v", calls, took)
			return
		}
	}
}
