// Package netns builds a small network of hosts for tests out of network
// namespaces of Linux: each host has interfaces, addresses and routes of its own
// and shares the file system and process numbers with the test. It needs root and
// the program ip; [New] skips the test where it may not.
//
//	n := netns.New(t, 3)
//	out, err := n.Hosts[1].Command(t.Context(), "ip", "addr").CombinedOutput()
//	n.Hosts[2].Unplug()
//
// The hosts hang by veth pairs on a bridge in a namespace of its own, [Net.Switch],
// which is also a host. Nothing of it is visible outside, so that every network
// has the same addresses: 10.77.0.1 and fd77::1 for host 0 and so on, 10.77.0.254
// and fd77::fe for the switch. [Net.Second] adds another network, 10.78.0.0/24 and
// fd78::/64, through interfaces eth1.
//
// A network goes when its test ends, with the processes that are still in it. What
// a test leaves behind that is killed is removed by the next call of New in any
// process: names of namespaces say whose they are.
package netns

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/sys"
)

// prefix begins the name of each namespace; the process number of its maker, the time at
// which that was started, a number, and the host follow.
const prefix = "argonnet-"

// maxHosts have addresses.
const maxHosts = 200

// folder is where ip keeps namespaces that have names.
const folder = "/run/netns"

var made atomic.Int32

// A Net is a network of hosts.
type Net struct {
	Hosts  []*Host
	Switch *Host

	t   testing.TB
	dir string
}

// A Host is a network namespace.
type Host struct {
	Name string // of its namespace, as ip netns knows it; its hostname, too
	// Short is a name that is the same in every run, such as "h0", which Net.SSH
	// and /etc/hosts of Command know.
	Short string
	IPv4  netip.Addr
	IPv6  netip.Addr
	// Second has the addresses in the second network, IPv4 and IPv6; see Net.Second.
	Second [2]netip.Addr

	n    *Net
	port string // the switch's end of its cable; "" for the switch
}

// New builds a network of hosts, or skips the test with the reason why it cannot.
func New(t testing.TB, hosts int) *Net {
	t.Helper()
	if hosts < 1 || hosts > maxHosts {
		t.Fatalf("netns: %d hosts; 1 to %d", hosts, maxHosts)
	}
	if os.Geteuid() != 0 {
		t.Skip("netns: network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skipf("netns: there is no program ip: %v", err)
	}
	sweep(t)
	start, ok := started(os.Getpid())
	if !ok {
		t.Skip("netns: there is no /proc")
	}
	base := fmt.Sprintf("%s%d-%s-%d-", prefix, os.Getpid(), start, made.Add(1))
	n := &Net{t: t, dir: t.TempDir()}
	n.Switch = &Host{Name: base + "sw", Short: "sw", IPv4: netip.AddrFrom4([4]byte{10, 77, 0, 254}), IPv6: netip.MustParseAddr("fd77::fe"), n: n}
	for i := range hosts {
		n.Hosts = append(n.Hosts, &Host{
			Name: fmt.Sprintf("%sh%d", base, i), Short: fmt.Sprintf("h%d", i),
			IPv4: netip.AddrFrom4([4]byte{10, 77, 0, byte(i + 1)}),
			IPv6: netip.MustParseAddr(fmt.Sprintf("fd77::%x", i+1)),
			n:    n, port: fmt.Sprintf("p%d", i),
		})
	}
	t.Cleanup(func() { n.remove() })
	// A sandbox forbids the first step; after it, everything must work.
	if err := ip("netns", "add", n.Switch.Name); err != nil {
		t.Skipf("netns: no network namespaces here: %v", err)
	}
	if err := ip("-n", n.Switch.Name, "link", "add", "br0", "type", "bridge"); err != nil {
		t.Skipf("netns: no bridges here: %v", err)
	}
	n.must("-n", n.Switch.Name, "link", "set", "br0", "up")
	n.address(n.Switch, "br0")
	for i, h := range n.Hosts {
		n.must("netns", "add", h.Name)
		if err := ip("-n", n.Switch.Name, "link", "add", h.port, "type", "veth", "peer", "name", "eth0", "netns", h.Name); err != nil && i == 0 {
			t.Skipf("netns: no veth pairs here: %v", err)
		} else if err != nil {
			t.Fatal(err)
		}
		n.must("-n", n.Switch.Name, "link", "set", h.port, "master", "br0", "up")
		n.must("-n", h.Name, "link", "set", "eth0", "up")
		n.address(h, "eth0")
	}
	return n
}

// Second connects all hosts by a second network, whose interfaces are called eth1,
// on the switch br1. Unplug leaves it alone.
func (n *Net) Second() {
	n.t.Helper()
	n.must("-n", n.Switch.Name, "link", "add", "br1", "type", "bridge")
	n.must("-n", n.Switch.Name, "link", "set", "br1", "up")
	for _, h := range append([]*Host{n.Switch}, n.Hosts...) {
		link, last := "br1", h.IPv4.As4()[3]
		if h != n.Switch {
			link = "eth1"
			port := "q" + h.port
			n.must("-n", n.Switch.Name, "link", "add", port, "type", "veth", "peer", "name", link, "netns", h.Name)
			n.must("-n", n.Switch.Name, "link", "set", port, "master", "br1", "up")
			n.must("-n", h.Name, "link", "set", link, "up")
		}
		h.Second[0] = netip.AddrFrom4([4]byte{10, 78, 0, last})
		n.must("-n", h.Name, "addr", "add", h.Second[0].String()+"/24", "dev", link)
		if h.IPv6.IsValid() {
			h.Second[1] = netip.MustParseAddr(fmt.Sprintf("fd78::%x", last))
			n.must("-n", h.Name, "addr", "add", h.Second[1].String()+"/64", "dev", link, "nodad")
		}
	}
}

// Received is how many bytes have come to the host by an interface, such as eth0.
func (h *Host) Received(link string) uint64 {
	h.n.t.Helper()
	out, err := exec.Command("ip", "netns", "exec", h.Name, "cat", "/proc/net/dev").CombinedOutput()
	if err != nil {
		h.n.t.Fatalf("netns: %v: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), link+":"); ok {
			var bytes uint64
			if _, err := fmt.Sscan(rest, &bytes); err != nil {
				h.n.t.Fatalf("netns: %q: %v", line, err)
			}
			return bytes
		}
	}
	h.n.t.Fatalf("netns: %s has no interface %s", h.Short, link)
	return 0
}

// must runs ip.
func (n *Net) must(args ...string) {
	n.t.Helper()
	if err := ip(args...); err != nil {
		n.t.Fatal(err)
	}
}

// address gives h its addresses.
func (n *Net) address(h *Host, link string) {
	n.t.Helper()
	n.must("-n", h.Name, "link", "set", "lo", "up")
	n.must("-n", h.Name, "addr", "add", h.IPv4.String()+"/24", "dev", link)
	// Without duplicate address detection, during which it could not be used.
	if err := ip("-n", h.Name, "addr", "add", h.IPv6.String()+"/64", "dev", link, "nodad"); err != nil {
		n.t.Logf("netns: no IPv6: %v", err)
		h.IPv6 = netip.Addr{}
	}
}

// remove takes the network down, with what runs in it.
func (n *Net) remove() {
	for _, h := range append([]*Host{n.Switch}, n.Hosts...) {
		if _, err := os.Stat(filepath.Join(folder, h.Name)); err != nil {
			continue
		}
		if err := remove(h.Name); err != nil {
			n.t.Errorf("netns: %v", err)
		}
	}
}

// remove ends the processes in a namespace and removes it.
func remove(name string) error {
	for _, pid := range inside(name) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return ip("netns", "del", name)
}

// inside lists the processes in a namespace.
func inside(name string) []int {
	out, _ := exec.Command("ip", "netns", "pids", name).Output()
	var pids []int
	for _, f := range strings.Fields(string(out)) {
		if pid, err := strconv.Atoi(f); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// sweep removes the namespaces of processes that have ended.
func sweep(t testing.TB) {
	names, _ := os.ReadDir(folder)
	for _, e := range names {
		if !stale(e.Name()) {
			continue
		}
		// Another process may be sweeping, too.
		if err := remove(e.Name()); err != nil {
			t.Logf("netns: left by an earlier run: %v", err)
		}
	}
}

// stale reports whether name is that of a namespace whose maker has ended.
func stale(name string) bool {
	rest, ours := strings.CutPrefix(name, prefix)
	f := strings.Split(rest, "-")
	if !ours || len(f) != 4 {
		return false
	}
	pid, err := strconv.Atoi(f[0])
	if err != nil {
		return false
	}
	start, ok := started(pid)
	return !ok || start != f[1]
}

// started is when a process was started, in the kernel's clock ticks, which tells
// it from a later one with its number.
func started(pid int) (string, bool) {
	f := sys.ProcStat(pid)
	if len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return "", false
	}
	return f[19], true
}

// ip runs the program ip. The limit is for a kernel that hangs: while other network namespaces
// are taken down on a machine under load, a call has taken more than 20 s.
func ip(args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// Command is exec.CommandContext on the host. The command has the host's name as
// hostname where the system permits that.
func (h *Host) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "sh", append([]string{h.n.script(h), name}, args...)...)
}

// script is a shell script that runs its arguments on the host, in the place of
// its own process.
func (n *Net) script(h *Host) string {
	n.t.Helper()
	name := filepath.Join(n.dir, h.Short)
	if _, err := os.Stat(name); err == nil {
		return name
	}
	n.write(name, fmt.Sprintf(`unshare --uts true 2>/dev/null || exec ip netns exec %[1]s "$@"
exec ip netns exec %[1]s unshare --uts sh -c 'hostname %[1]s; exec "$@"' sh "$@"
`, h.Name))
	return name
}

// SSH is a program that stands for ssh between the hosts of n: called as
// "PROGRAM [options] HOST COMMAND...", with HOST an address, a name or a short
// name of a host, also as user@HOST, it runs COMMAND there with sh -c, as ssh
// does. Addresses of a second network count if it is there already. A HOST that
// does not exist is an error with ssh's message and status 255. Of options, those
// of ssh are understood and ignored.
func (n *Net) SSH() string {
	n.t.Helper()
	var b strings.Builder
	b.WriteString(`#!/bin/sh
while [ $# -gt 0 ]; do
	case $1 in
	--) shift; break ;;
	-[bcDEeFIiJLlmOopQRSWw]) shift 2 ;;
	-*) shift ;;
	*) break ;;
	esac
done
host=${1#*@}; shift
[ "$1" != -- ] || shift
case $host in
`)
	for _, h := range append([]*Host{n.Switch}, n.Hosts...) {
		fmt.Fprintf(&b, "%s|%s", h.Short, h.Name)
		for _, a := range []netip.Addr{h.IPv4, h.IPv6, h.Second[0], h.Second[1]} {
			if a.IsValid() {
				fmt.Fprintf(&b, "|%s|'[%s]'", a, a)
			}
		}
		fmt.Fprintf(&b, ") exec sh %s sh -c \"$*\" ;;\n", n.script(h))
	}
	b.WriteString(`esac
echo "ssh: Could not resolve hostname $host: Name or service not known" >&2
exit 255
`)
	name := filepath.Join(n.dir, "ssh")
	n.write(name, b.String())
	return name
}

func (n *Net) write(name, text string) {
	n.t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		n.t.Fatal(err)
	}
}

// Unplug pulls the host's cable: its interface has no carrier, and nothing goes
// through. Plug puts it back in.
func (h *Host) Unplug() {
	h.n.t.Helper()
	h.n.must("-n", h.n.Switch.Name, "link", "set", h.port, "down")
}

// Plug ends what Unplug began. It returns when both ends of the cable are up,
// which the kernel takes up to a second for; others may look for the host's
// hardware address for another one.
func (h *Host) Plug() {
	h.n.t.Helper()
	h.n.must("-n", h.n.Switch.Name, "link", "set", h.port, "up")
	for end := time.Now().Add(20 * time.Second); !up(h.Name, "eth0") || !up(h.n.Switch.Name, h.port); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			h.n.t.Fatalf("netns: %s stays down", h.Short)
		}
	}
}

// up reports whether an interface works.
func up(namespace, link string) bool {
	out, err := exec.Command("ip", "-n", namespace, "-o", "link", "show", "dev", link).Output()
	return err == nil && bytes.Contains(out, []byte(" state UP "))
}

// Processes lists the numbers of the processes that run on the host.
func (h *Host) Processes() []int { return inside(h.Name) }
