package weathertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/job/nets"
	"github.com/argon-go/argon/internal/lab/netns"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// described writes a description of networks, for -networks.
func described(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "networks")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// conveys lets a job of blocks of 100 KB go through some rounds and returns how many bytes
// have come to the last host by each interface meanwhile.
func conveys(t *testing.T, n *netns.Net, j *toil, links ...string) (came []uint64) {
	t.Helper()
	last := n.Hosts[len(n.Hosts)-1]
	j.rounds(t)
	for _, l := range links {
		came = append(came, last.Received(l))
	}
	j.rounds(t)
	for i, l := range links {
		came[i] = last.Received(l) - came[i]
	}
	j.end()
	j.want(n, 0)
	return came
}

// twoSpeeds makes two hosts with two networks, of which that of eth1 carries 100 Mbit/s.
func twoSpeeds(t *testing.T) *netns.Net {
	t.Helper()
	if _, err := exec.LookPath("tc"); err != nil {
		t.Skipf("there is no program tc: %v", err)
	}
	n := netns.New(t, 2)
	n.Second()
	for _, h := range n.Hosts {
		if out, err := h.Command(t.Context(), "tc", "qdisc", "add", "dev", "eth1", "root", "tbf", "rate", "100mbit", "burst", "64kb", "latency", "100ms").CombinedOutput(); err != nil {
			t.Skipf("no queue of a rate here: %v: %s", err, out)
		}
	}
	return n
}

// TestNetworksBySize has two hosts with two networks, one that carries 100 Mbit/s and is said to be
// quick, and one that is said to be far: blocks take the wide one, and what is short the quick one.
func TestNetworksBySize(t *testing.T) {
	testmain.Long(t)
	n := twoSpeeds(t)
	file := described(t, `
# quick carries little, wide is far
network quick 10.78.0.0/24 latency 50us bandwidth 100Mbit/s
network wide  10.77.0.0/24 latency 2ms  bandwidth 10Gbit/s
`)
	j := hauling(t, n, "-v", "-conduit", "udp", "-networks", file)
	came := conveys(t, n, j, "eth0", "eth1")
	t.Logf("%d bytes by eth0, %d by eth1", came[0], came[1])
	if came[0] < 100_000 || came[1] > came[0]/10 || came[1] < 100 {
		t.Errorf("%d bytes came by the wide network, %d by the quick one", came[0], came[1])
	}
	if s := "quick; wide from 32768 bytes"; !strings.Contains(j.err.String(), s) {
		t.Errorf("-v does not say %q:\n%s", s, &j.err)
	}
}

// TestNetworksThroughAnother has a cluster behind a gateway: hosts on either side have one
// network, and the one between them hands on.
func TestNetworksThroughAnother(t *testing.T) {
	testmain.Long(t)
	n := netns.New(t, 3)
	n.Second()
	on(t, n.Hosts[0], "ip", "link", "set", "eth1", "down")
	on(t, n.Hosts[2], "ip", "link", "set", "eth0", "down")
	file := described(t, `
network left  10.77.0.0/24 latency 50us bandwidth 10Gbit/s
network right 10.78.0.0/24 latency 50us bandwidth 10Gbit/s
relay 30us
`)
	hosts := fmt.Sprintf("%s:2,%s:2,%s:2", n.Hosts[0].IPv4, n.Hosts[1].IPv4, n.Hosts[2].Second[0])
	j := toilingOn(t, n, n.Hosts[1], hosts, "-v", "-x", envRole+"=haul", "-segment", "1M", "-networks", file)
	if came := conveys(t, n, j, "eth1"); came[0] < 100_000 {
		t.Errorf("%d bytes came to the host behind the gateway", came[0])
	}
	if s := fmt.Sprintf("left, %s, right", n.Hosts[1].IPv4); !strings.Contains(j.err.String(), s) {
		t.Errorf("-v does not say %q:\n%s", s, &j.err)
	}
}

// TestNetworksMeasured has gasrun find the two networks of two hosts, of which one carries 100 Mbit/s, and
// what is no network of theirs though both have an address in its prefix; and it takes what it has written.
func TestNetworksMeasured(t *testing.T) {
	testmain.Long(t)
	n := twoSpeeds(t)
	for _, h := range n.Hosts {
		on(t, h, "ip", "link", "add", "inner0", "type", "veth", "peer", "name", "inner1")
		on(t, h, "ip", "addr", "add", "10.99.0.1/16", "dev", "inner0")
		on(t, h, "ip", "link", "set", "inner0", "up")
		on(t, h, "ip", "link", "set", "inner1", "up")
	}
	file := filepath.Join(t.TempDir(), "networks")
	hosts := fmt.Sprintf("%s:2,%s:2", n.Hosts[0].IPv4, n.Hosts[1].IPv4)
	gasrun(t, n, n.Hosts[0], "-hosts", hosts, "-measure", file).want(n, 0)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", text)
	g, err := nets.Parse(file, string(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Networks) != 2 || g.Networks[0].Name != "eth0" || g.Networks[1].Name != "eth1" {
		t.Fatalf("networks %v, not those of eth0 and eth1", g)
	}
	if r := g.Networks[1].Steps[0].Rate; r > 15e6 {
		t.Errorf("%.0f bytes a second by eth1, which carries 12.5e6", r)
	}
	if !strings.Contains(string(text), "# inner0 10.99.0.0/16 of 2 hosts cannot be used: two hosts have the address 10.99.0.1") {
		t.Errorf("%s\ndoes not say that inner0 is no network", text)
	}
	j := hauling(t, n, "-conduit", "udp", "-networks", file)
	j.rounds(t)
	j.end()
	j.want(n, 0)
}
