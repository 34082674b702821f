// Package ifaddr chooses among this host's addresses: the one that an interface's
// name stands for, those by which others reach the host, and the one from which a
// route leads to another. Link-local addresses are never chosen, for their zone
// means something else on each host.
package ifaddr

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/argon-go/argon/internal/errs"
)

// Choose returns the address that a name stands for on this host: itself, if it is
// one of the host's addresses, or of the interface of that name the first that
// others reach, of IPv4 if is4, else of IPv6; of the other family if there is none.
func Choose(name string, is4 bool) (netip.Addr, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		a, err := netip.ParseAddr(name)
		switch {
		case err == nil && a.Is6() && a.IsLinkLocalUnicast():
			return netip.Addr{}, errs.BadArg("ifaddr: %s is an address of one link, which means another one on each host (-iface, ARGON_IFACE)", name)
		case err == nil && IsOwn(a):
			return a.Unmap(), nil
		}
		return netip.Addr{}, errs.BadArg("ifaddr: %q is neither an address nor an interface of this host; it has %s (-iface, ARGON_IFACE)", name, interfaces())
	}
	addrs, err := i.Addrs()
	if err != nil {
		return netip.Addr{}, errs.Resource("ifaddr: interface %s: %v (-iface, ARGON_IFACE)", name, err)
	}
	best := prefer(usable(addrs), is4)
	if !best.IsValid() {
		return best, errs.BadArg("ifaddr: interface %s has no address that other hosts reach (-iface, ARGON_IFACE)", name)
	}
	return best, nil
}

// prefer is the first address of the family, else the first.
func prefer(all []netip.Addr, is4 bool) (best netip.Addr) {
	for _, a := range all {
		if !best.IsValid() || a.Is4() == is4 && best.Is4() != is4 {
			best = a
		}
	}
	return best
}

// usable are the addresses of a list that are not link-local.
func usable(list []net.Addr) []netip.Addr {
	var all []netip.Addr
	for _, n := range list {
		p, err := netip.ParsePrefix(n.String())
		if err != nil {
			continue
		}
		if a := p.Addr().Unmap(); !a.IsLinkLocalUnicast() {
			all = append(all, a)
		}
	}
	return all
}

// Own lists the addresses under which others may reach this host, IPv4 first.
func Own() []netip.Addr {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var four, six []netip.Addr
	for _, a := range usable(list) {
		switch {
		case a.IsLoopback():
		case a.Is4():
			four = append(four, a)
		default:
			six = append(six, a)
		}
	}
	return append(four, six...)
}

// Loopback is the address that processes of this host meet at: 127.0.0.1, or ::1 where no
// interface has a loopback address of IPv4.
func Loopback() netip.Addr {
	four, six := netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()
	best := four // listening there will tell what is wrong
	list, _ := net.InterfaceAddrs()
	for _, n := range list {
		p, err := netip.ParsePrefix(n.String())
		switch {
		case err != nil:
		case p.Contains(four): // all of a loopback prefix is the host's own
			return four
		case p.Addr() == six:
			best = six
		}
	}
	return best
}

// IsOwn reports whether a is an address of this host.
func IsOwn(a netip.Addr) bool {
	if a.IsLoopback() { // all of 127.0.0.0/8 are
		return true
	}
	list, err := net.InterfaceAddrs()
	if err != nil {
		return true // listening there will tell
	}
	for _, n := range list {
		if p, err := netip.ParsePrefix(n.String()); err == nil && p.Addr().Unmap() == a.Unmap() {
			return true
		}
	}
	return false
}

// To is the address of this host that the host of server, host:port, would see. It
// resolves the name and looks at the routes, and sends nothing to server.
func To(ctx context.Context, server string) (netip.Addr, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "udp", server)
	if err != nil {
		return netip.Addr{}, err
	}
	defer c.Close()
	a, ok := c.LocalAddr().(*net.UDPAddr)
	if !ok {
		return netip.Addr{}, errors.New("ifaddr: the socket has no address")
	}
	return a.AddrPort().Addr().Unmap(), nil
}

// interfaces lists the names that Choose takes.
func interfaces() string {
	all, err := net.Interfaces()
	if err != nil {
		return err.Error()
	}
	var words []string
	for _, i := range all {
		list, err := i.Addrs()
		if err != nil {
			continue
		}
		if addrs := usable(list); len(addrs) > 0 { // else it is of no use
			words = append(words, fmt.Sprintf("%s (%s)", i.Name, strings.Trim(fmt.Sprint(addrs), "[]")))
		}
	}
	return strings.Join(words, ", ")
}
