//go:build ofi && cgo

package ofi

import (
	"encoding/binary"
	"syscall"

	"github.com/argon-go/argon/conduits/ofi/internal/fabric"
	"github.com/argon-go/argon/internal/sys"
)

// hidden is what tells connections of a rank from other sockets of its process: providers
// over TCP make them when ranks first talk, and programs that the process starts would
// inherit them.
type hidden struct {
	port   int          // of the endpoint, which accepted connections have, too; 0 if it has none
	called map[int]bool // ports of peers that connections were made to
	fresh  bool         // a peer has been heard from for the first time
}

// portOf is the port of an address of IP, in the form of struct sockaddr; 0 if it is none.
func portOf(addr []byte) int {
	if len(addr) < 8 {
		return 0
	}
	switch binary.NativeEndian.Uint16(addr) {
	case syscall.AF_INET, syscall.AF_INET6:
		return int(binary.BigEndian.Uint16(addr[2:]))
	}
	return 0
}

// issue posts an operation to p, with mu held. The first one makes the connection: no
// program is started before that is closed in programs.
func (t *transport) issue(p *peer, op []fabric.Op) (again bool, err error) {
	if p.called || t.hidden.port == 0 {
		_, again, err = t.ep.Post(op)
		return again, err
	}
	p.called = true
	t.hidden.called[portOf(t.cards[p.rank].addr)] = true
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	_, again, err = t.ep.Post(op)
	t.hide()
	return again, err
}

// hide has programs that this process starts inherit no connection, with mu held. It takes
// a tenth of a microsecond for each descriptor that is open.
func (t *transport) hide() {
	if t.hidden.port == 0 {
		return
	}
	for _, fd := range sys.Descriptors() {
		if sys.Inherited(fd) && t.hidden.ours(fd) {
			syscall.CloseOnExec(fd)
		}
	}
}

// ours says whether fd is a connection of this rank.
func (h *hidden) ours(fd int) bool {
	near, err := syscall.Getsockname(fd)
	if err != nil {
		return false
	}
	if port(near) == h.port {
		return true
	}
	far, err := syscall.Getpeername(fd)
	return err == nil && h.called[port(far)]
}

// port is 0 of an address that has none.
func port(a syscall.Sockaddr) int {
	switch a := a.(type) {
	case *syscall.SockaddrInet4:
		return a.Port
	case *syscall.SockaddrInet6:
		return a.Port
	}
	return 0
}
