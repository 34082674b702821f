package udp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
)

// refusals remember which ranks the system refuses to send to, for reasons that do
// not go away (sys.Lasting). A datagram that is refused is as good as lost; when
// enough have been, in a row and for long enough, the rank cannot be reached, and
// nothing is gained by waiting for the dead time. docs/failures.md has a table of the
// system's errors. Guarded by the socket's out lock but for verdict.
type refusals struct {
	by      map[int]*sys.Tries // by rank; nil as long as there was none
	dead    time.Duration      // the job's dead time; 0 if it has none
	own     netip.Addr         // from which datagrams go; unspecified: as the route has it
	verdict atomic.Pointer[unreachable]
}

// unreachable is a rank that cannot be sent to.
type unreachable struct {
	rank int
	err  error
}

// note takes errno, of a datagram to rank, into account.
func (r *refusals) note(rank int, errno syscall.Errno, now time.Duration, name func() string) {
	if _, lasting := sys.Lasting(errno); !lasting {
		return
	}
	why := ""
	// Linux says so of a socket whose address has been taken from its interface
	// (ip_route_output_key_hash_rcu, net/ipv4/route.c), which may be given back as a route is.
	if errno == syscall.EINVAL || errno == syscall.EADDRNOTAVAIL {
		if _, _, there := interfaceOf(r.own); !there && r.own.IsValid() && !r.own.IsUnspecified() {
			errno, why = syscall.ENETUNREACH, fmt.Sprintf(": its own address %v is on no interface any more", r.own)
		}
	}
	if r.by == nil {
		r.by = map[int]*sys.Tries{}
	}
	f := r.by[rank]
	if f == nil {
		// The dead time gives a lost route time to come back.
		f = &sys.Tries{Routes: r.dead / 2}
		r.by[rank] = f
	}
	if f.Lasting(errno, now) {
		r.verdict.CompareAndSwap(nil, &unreachable{rank, fmt.Errorf("this host cannot send to it at %s: %w (%s)%s, %d times in %v; usual reasons: no route, a local firewall, the wrong interface (%s)",
			name(), errno, sys.ErrnoName(errno), why, f.Count, f.Took.Round(time.Millisecond), EnvIface)})
	}
}

// passed notes that datagrams to the ranks of l have been sent.
func (r *refusals) passed(l []outgoing) {
	if len(r.by) == 0 {
		return
	}
	for i := range l {
		delete(r.by, l[i].dst)
	}
}

// interfaceOf is the interface of this host that has an address.
func interfaceOf(a netip.Addr) (name string, mtu int, ok bool) {
	all, err := net.Interfaces()
	if err != nil {
		return "", 0, false
	}
	for _, i := range all {
		addrs, _ := i.Addrs()
		for _, n := range addrs {
			if p, err := netip.ParsePrefix(n.String()); err == nil && p.Addr().Unmap().WithZone("") == a.Unmap().WithZone("") {
				return i.Name, i.MTU, true
			}
		}
	}
	return "", 0, false
}

// MTU names the interface of this host with address a and its MTU, such as "eth0 has 500"; ""
// if none has that address.
func MTU(a netip.Addr) string {
	name, mtu, ok := interfaceOf(a)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s has %d", name, mtu)
}

// mtuOf is MTU as the end of a message.
func mtuOf(a netip.Addr) string {
	if s := MTU(a); s != "" {
		return "; here " + s
	}
	return ""
}

// errTooLong is the error of a datagram of the least size that every path has to carry, if
// the interface does not take it.
func errTooLong(err error, size int, own netip.Addr) error {
	if !errors.Is(err, syscall.EMSGSIZE) {
		return nil
	}
	return errs.Resource("udp: the interface at %v takes no datagrams of %d bytes: its MTU is too small%s; raise it, or choose shorter datagrams (%s)", own, size, mtuOf(own), EnvDatagram)
}
