package weathertest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/lab/netns"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// haulRank is a rank of a job in which each one puts a block of 100 KB to the next one in each
// round, and looks whether it has come whole.
func haulRank() {
	const block = 100_000
	err := gas.Run(gas.Config{}, func(n *gas.Node) error {
		a, err := gas.NewArray[byte](n, n.Size()*block, block)
		if err != nil {
			return err
		}
		fmt.Printf("rank %d pid %d rendezvous %s\n", n.Rank(), os.Getpid(), os.Getenv("ARGON_RENDEZVOUS"))
		src, own := make([]byte, block), make([]byte, block)
		for round := 1; ; round++ {
			for i := range src {
				src[i] = byte(i*round + n.Rank())
			}
			if err := a.PutRange(n, (n.Rank()+1)%n.Size()*block, src); err != nil {
				return err
			}
			if err := n.Barrier(); err != nil {
				return err
			}
			if err := a.GetRange(n, n.Rank()*block, own); err != nil {
				return err
			}
			for i, v := range own {
				if v != byte(i*round+(n.Rank()+n.Size()-1)%n.Size()) {
					return fmt.Errorf("round %d: byte %d of rank %d is %d", round, i, n.Rank(), v)
				}
			}
			stop := 0
			if n.Rank() == 0 {
				fmt.Println("round", round)
				if _, err := os.Stat(os.Getenv(envStop)); err == nil {
					stop = 1
				}
			}
			if stop, err = gas.Broadcast(n, 0, stop); err != nil || stop != 0 {
				return err
			}
		}
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// hauling starts such a job, see toiling.
func hauling(t *testing.T, n *netns.Net, args ...string) *toil {
	return toiling(t, n, append([]string{"-x", envRole + "=haul", "-segment", "1M"}, args...)...)
}

// on runs a command on a host.
func on(t *testing.T, h *netns.Host, name string, args ...string) {
	t.Helper()
	if out, err := h.Command(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}

// rounds waits until rank 0 has gone through some more rounds of the job, or the job has ended.
func (j *toil) rounds(t *testing.T) {
	t.Helper()
	from := strings.Count(j.out.String(), "round ")
	wait(t, func() bool { return strings.Count(j.out.String(), "round ") >= from+3 || j.over() }, func() string {
		return "no rounds: " + j.out.String() + j.err.String()
	})
	if j.over() {
		t.Fatalf("status %d\n%s\n%s", j.wait(), &j.out, &j.err)
	}
}

// TestChanges changes a host's interface, address and route while a job runs: the job goes on.
func TestChanges(t *testing.T) {
	testmain.Long(t)
	for _, c := range conduitsOfHosts {
		t.Run(c, func(t *testing.T) {
			n := netns.New(t, 2)
			j := hauling(t, n, "-conduit", c, "-x", "ARGON_DEADTIME=30s")
			h := n.Hosts[0]
			for _, mtu := range []int{1280, 1000, 600, 576, 1200, 1500} {
				on(t, h, "ip", "link", "set", "eth0", "mtu", fmt.Sprint(mtu))
				j.rounds(t)
			}
			for _, s := range [][2]string{
				{"addr del ADDR/24 dev eth0", "addr add ADDR/24 dev eth0"},
				{"route del 10.77.0.0/24", "route add 10.77.0.0/24 dev eth0 src ADDR"},
				{"link set eth0 down", "link set eth0 up"},
			} {
				for _, step := range s {
					on(t, h, "ip", strings.Fields(strings.ReplaceAll(step, "ADDR", h.IPv4.String()))...)
					time.Sleep(300 * time.Millisecond) // some datagrams are refused meanwhile
				}
				j.rounds(t)
			}
			j.end()
			j.want(n, 0)
		})
	}
}

// TestSmallMTU starts jobs between hosts whose interfaces have a small MTU from the beginning:
// they work, or end with an error that names it.
func TestSmallMTU(t *testing.T) {
	testmain.Long(t)
	for _, c := range []struct {
		mtu    int
		args   []string
		status int
		says   []string
	}{
		{1200, nil, 0, nil},
		{576, nil, 0, nil},
		{500, nil, 1, []string{"takes no datagrams of 548 bytes", "here eth0 has 500", "ARGON_DATAGRAM"}},
		{500, []string{"-x", "ARGON_DATAGRAM=400"}, 0, nil},
	} {
		t.Run(fmt.Sprint(c.mtu, c.args), func(t *testing.T) {
			n := netns.New(t, 2)
			for _, h := range n.Hosts {
				on(t, h, "ip", "link", "set", "eth0", "mtu", fmt.Sprint(c.mtu))
			}
			args := append([]string{"-hosts", list(n, 2, false), "-conduit", "udp"}, c.args...)
			r := gasrun(t, n, n.Switch, append(args, program(t, "examples/sort"))...)
			r.want(n, c.status)
			for _, s := range c.says {
				if !strings.Contains(r.err.String(), s) {
					t.Errorf("it does not say %q: %s", s, &r.err)
				}
			}
		})
	}
}

// TestShrinksBelow has the interface of a host in a running job become too narrow for any
// datagram that there may be: the job ends with an error that names it.
func TestShrinksBelow(t *testing.T) {
	testmain.Long(t)
	n := netns.New(t, 2)
	j := hauling(t, n, "-conduit", "udp", "-x", "ARGON_DEADTIME=3s")
	on(t, n.Hosts[0], "ip", "link", "set", "eth0", "mtu", "400")
	if status := j.wait(); status == 0 {
		t.Error("the job has ended well")
	}
	if s := j.err.String(); !strings.Contains(s, "ARGON_DATAGRAM") || !strings.Contains(s, "MTU") {
		t.Errorf("it says %s", s)
	}
}

// TestFirewallLater drops or rejects a host's datagrams in a running job: the job ends with an
// error that says why.
func TestFirewallLater(t *testing.T) {
	testmain.Long(t)
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skipf("there is no nft here (Debian's package nftables): %v", err)
	}
	for _, c := range []struct{ name, rule, says string }{
		{"output drop", "type filter hook output priority 0; meta l4proto udp drop;", "EPERM"},
		{"input drop", "type filter hook input priority 0; meta l4proto udp drop;", "it answers the rendezvous meanwhile"},
		{"output reject", "type filter hook output priority 0; meta l4proto udp reject;", "EPERM"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := netns.New(t, 2)
			j := hauling(t, n, "-conduit", "udp", "-x", "ARGON_DEADTIME=4s")
			on(t, n.Hosts[0], "nft", "table inet late { chain c { "+c.rule+" }; }")
			if status := j.wait(); status == 0 {
				t.Error("the job has ended well")
			}
			if s := j.err.String(); !strings.Contains(s, c.says) {
				t.Errorf("it says %s", s)
			}
		})
	}
}
