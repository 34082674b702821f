package ifaddr

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/errs"
)

// TestPrefer: the first address of the wanted family, else the first.
func TestPrefer(t *testing.T) {
	four, four2 := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	six, six2 := netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2")
	for _, c := range []struct {
		all  []netip.Addr
		is4  bool
		want netip.Addr
	}{
		{nil, true, netip.Addr{}},
		{[]netip.Addr{six, four, four2}, true, four},
		{[]netip.Addr{four, six, six2}, false, six},
		{[]netip.Addr{six, six2}, true, six},
		{[]netip.Addr{four, four2}, false, four},
	} {
		if got := prefer(c.all, c.is4); got != c.want {
			t.Errorf("%v, IPv4 %v: %v, want %v", c.all, c.is4, got, c.want)
		}
	}
}

// TestUsable: link-local addresses are left out, and mapped ones are IPv4.
func TestUsable(t *testing.T) {
	var list []net.Addr
	for _, s := range []string{"fe80::1/64", "169.254.1.1/16", "10.0.0.1/8", "fd00::1/64"} {
		ip, n, err := net.ParseCIDR(s)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, &net.IPNet{IP: ip, Mask: n.Mask})
	}
	want := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}
	if got := usable(list); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// needAddresses skips a test where the system does not tell the host's addresses.
func needAddresses(t *testing.T) {
	t.Helper()
	if _, err := net.InterfaceAddrs(); err != nil {
		t.Skipf("the addresses of this host: %v", err)
	}
}

func TestChoose(t *testing.T) {
	needAddresses(t)
	loopback := netip.MustParseAddr("127.0.0.1")
	if a, err := Choose("127.0.0.1", false); err != nil || a != loopback {
		t.Errorf("an address of this host: %v, %v", a, err)
	}
	if a, err := Choose("::ffff:127.0.0.1", false); err != nil || a != loopback {
		t.Errorf("a mapped address of this host: %v, %v", a, err)
	}
	for name, says := range map[string]string{
		"none0":      `"none0" is neither`,
		"192.0.2.1":  `"192.0.2.1" is neither`, // RFC 5737: for documents
		"fe80::1":    "another one on each host",
		"fe80::1%lo": "another one on each host",
	} {
		if a, err := Choose(name, true); !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "ARGON_IFACE") || a.IsValid() {
			t.Errorf("%s: %v, %v", name, a, err)
		}
	}
}

func TestTo(t *testing.T) {
	needAddresses(t)
	if a, err := To(context.Background(), "127.0.0.1:9"); err != nil || !a.IsLoopback() {
		t.Errorf("the route to this host: %v, %v", a, err)
	}
	if a, err := To(context.Background(), "nowhere"); err == nil || a.IsValid() {
		t.Errorf("no address: %v", a)
	}
	for _, a := range Own() {
		if a.IsLoopback() || !IsOwn(a) {
			t.Errorf("%v is own, but not reachable or not own", a)
		}
	}
	if IsOwn(netip.MustParseAddr("192.0.2.1")) {
		t.Error("192.0.2.1 is own")
	}
}
