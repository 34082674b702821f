//go:build ofi && cgo

package ofi

import (
	"encoding/binary"
	"syscall"
	"time"

	"github.com/argon-go/argon/conduits/ofi/internal/fabric"
	"github.com/argon-go/argon/internal/job/guest"
	"github.com/argon-go/argon/internal/sys"
)

// hidden tells connections of a rank from other sockets of its process: providers
// over TCP make them when ranks first talk, and programs that the process starts would
// inherit them.
type hidden struct {
	ip     bool         // addresses are those of IP
	port   int          // of the endpoint, which accepted connections have, too; 0 if it has none
	called map[int]bool // ports of peers that connections were made to
	fresh  bool         // a peer has been heard from for the first time
	looks  uint32       // of the watch
}

// portOf is the port of a peer's address; 0 if that is not one of IP (struct sockaddr).
func (h *hidden) portOf(addr []byte) int {
	if !h.ip || len(addr) < 8 {
		return 0
	}
	switch binary.NativeEndian.Uint16(addr) {
	case syscall.AF_INET, syscall.AF_INET6:
		return int(binary.BigEndian.Uint16(addr[2:]))
	}
	return 0
}

// issue posts an operation to p, with mu held. The first attempt begins the connection, and
// its socket has no peer yet (ENOTCONN) until that has answered: so what is open after it
// and was not before is closed in programs, and none is started meanwhile. Providers may
// have no room until the connection is there, and make it in a later attempt: the first one
// that succeeds has all connections looked at.
//
// Attempts come with pauses that grow with the time since the first one. Of two peers of net that
// call each other, one refuses the other's connection while its own is on the way. If the first packet
// of that is lost, for a second or more, a rank that tried with every poll made 900 connections a
// second, each of which keeps a port for a minute. An attempt that fails counts as no room: nothing
// is lost by trying again, until the peer would count as dead.
func (t *transport) issue(p *peer, op []fabric.Op) (again bool, err error) {
	t.attend()
	switch {
	case p.called:
		_, again, err = t.ep.Post(op)
		return again, err
	case p.calls == 0:
		p.calls, p.firstCall = 1, t.Now()
		if port := t.hidden.portOf(t.cards[p.rank].addr); port != 0 {
			t.hidden.called[port] = true
		}
		guest.Hide(func() { _, again, err = t.ep.Post(op) })
	case t.Now() < p.nextCall:
		return true, nil
	default:
		p.calls++
		p.nextCall = t.Now() + min((t.Now()-p.firstCall)/callParts, mostCallGap)
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		if _, again, err = t.ep.Post(op); !again {
			t.hide()
		}
	}
	if err != nil {
		p.refusal = err
		// The watch gives it up, but for jobs in one process, whose dead time is a day.
		if t.dead == unheardOf && t.Now()-p.firstCall > defaultDeadTime+connecting {
			return false, err
		}
		return true, nil
	}
	p.called = !again
	return again, nil
}

// The pauses between attempts to reach a peer: a part of the time that they have taken, up to
// a limit.
const (
	callParts   = 8
	mostCallGap = 20 * time.Millisecond
)

// hideLooks is after how many looks of the watch connections are looked at, of which
// some may have been made again.
const hideLooks = 4

// hideSome has the watch hide connections now and then, with mu held.
func (t *transport) hideSome() {
	if t.hidden.looks++; t.hidden.looks%hideLooks == 1 {
		t.hide()
	}
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

// unread is how many bytes have arrived at connections of this rank that the provider has not
// read yet, as far as those can be told from other sockets. It takes half a microsecond for each
// descriptor that is open.
func (t *transport) unread() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hidden.port == 0 {
		return 0
	}
	for _, fd := range sys.Descriptors() {
		if k := sys.Unread(fd); k > 0 && t.hidden.ours(fd) {
			n += k
		}
	}
	return n
}

// ours reports whether fd is a connection of this rank.
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
