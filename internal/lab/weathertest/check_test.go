package weathertest

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/lab/netns"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// TestCheck has gasrun -check look at hosts of which one has too small an MTU, one drops datagrams, one
// there is not, and two are well.
func TestCheck(t *testing.T) {
	testmain.Long(t)
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skipf("there is no nft here (Debian's package nftables): %v", err)
	}
	n := netns.New(t, 4)
	on(t, n.Hosts[1], "ip", "link", "set", "eth0", "mtu", "1000")
	on(t, n.Hosts[2], "nft", "table inet f { chain c { type filter hook input priority 0; meta l4proto udp drop; }; }")
	r := gasrun(t, n, n.Switch, "-check", "-hosts", "h0,h1,h2,h3,h9", "-start-timeout", "1h")
	r.want(n, 1)
	out := r.out.String()
	for _, want := range []string{
		`(?m)^FAIL h9: start: .*Could not resolve hostname.* give its address$`,
		`(?m)^ok   h0, h1, h2, h3: start: by ssh`,
		`(?m)^ok   h0, h1, h2, h3: versions: Linux .*go1`,
		`(?m)^note h1: datagrams: of 1200, 1400 bytes do not come from h0, h2, h3, those of 548 do: .*\(here eth0 has 1000, there eth0 has 1500\).* mtu 1500`,
		`(?m)^note h0, h3: datagrams: of 1200, 1400 bytes do not come from h1, those of 548 do: .*\(here eth0 has 1500, there eth0 has 1000\)`,
		`(?m)^FAIL h2: datagrams: none come from h0, h1, h3, though TCP does: a firewall`,
		`(?m)^ok   h0, h1, h2, h3: datagrams: of 44, 548, 1200, 1400 bytes pass from host to host in 4 of 12 cases$`,
		`(?m)^FAIL no job can run on all 5 hosts`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no line %s", want)
		}
	}
	for line := range strings.Lines(out) {
		if !regexp.MustCompile(`^(ok  |note|FAIL) `).MatchString(line) {
			t.Errorf("line %q", line)
		}
	}
	if t.Failed() {
		t.Logf("%s%s", out, &r.err)
	}
}
