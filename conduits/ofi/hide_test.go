//go:build ofi && cgo

package ofi

import (
	"slices"
	"syscall"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/sys"
)

// TestHidden: programs inherit no connection from the moment it is made, before the peer
// has answered.
func TestHidden(t *testing.T) {
	ts, _ := pair(t)
	before := sys.Descriptors()
	if st := ts[0].Send(1, []uint32{1}, nil); st != conduits.Ready {
		t.Fatal(st)
	}
	made := 0
	for _, fd := range sys.Descriptors() {
		if _, err := syscall.Getsockname(fd); err != nil || slices.Contains(before, fd) {
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

// TestPortOf: addresses of IP have a port, others none.
func TestPortOf(t *testing.T) {
	for _, c := range []struct {
		addr []byte
		port int
	}{
		{nil, 0},
		{[]byte{2, 0, 0x12, 0x34, 127, 0, 0, 1}, 0x1234},
		{append([]byte{10, 0, 0x12, 0x34}, make([]byte, 24)...), 0x1234},
		{[]byte("an address of some card"), 0},
	} {
		if got := portOf(c.addr); got != c.port {
			t.Errorf("%v has port %d, not %d", c.addr, got, c.port)
		}
	}
}
