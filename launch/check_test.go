package launch

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestCheckFlags: what makes no sense beside -check is refused.
func TestCheckFlags(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-check prog":                  "-check runs no program",
		"-check -n 4":                  "-n and -check exclude each other",
		"-check -measure - -hosts a,b": "exclude each other",
		"-measure - -hosts a,b -n 4":   "-n and -measure exclude each other",
	} {
		if _, err := parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// TestCheckJudge: what reports of hosts amount to.
func TestCheckJudge(t *testing.T) {
	t.Parallel()
	at := func(s string) netip.Addr { return netip.MustParseAddr(s) }
	all := []int{44, 548, 1200, 1400, 8952}
	// well are reports of hosts between which all pass.
	well := func(addrs ...string) (l []report) {
		for i, a := range addrs {
			r := report{Host: i, Addr: at(a), MTU: "eth0 has 9000", Sizes: all, Least: 548, Heard: map[int][]int{}, Refused: map[int]string{}, Clock: map[int][2]time.Duration{}}
			r.Findings = []finding{{levelOK, topicVersions, "Linux 6"}}
			for j := range addrs {
				if j != i {
					r.Heard[j], r.Clock[j] = all, [2]time.Duration{time.Millisecond, time.Microsecond}
				}
			}
			l = append(l, r)
		}
		return l
	}
	three := []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}
	for name, c := range map[string]struct {
		addrs  []string
		change func(r []report)
		ok     bool
		want   string
	}{
		"well":     {three, func([]report) {}, true, "ok   all 3 hosts: jumbo frames: datagrams of 8952 bytes pass"},
		"no jumbo": {three, func(r []report) { r[1].Heard[0] = all[:4] }, true, "ok   all 3 hosts: datagrams: of 44, 548, 1200, 1400 bytes pass both ways\nok   all 3 hosts: clocks"},
		"asked jumbo": {three, func(r []report) {
			for i := range r {
				r[i].Datagram = true
			}
			r[1].Heard[0] = all[:4]
		}, true, "note b: datagrams: of 8952 bytes do not come from a, those of 1400 do"},
		"too small": {three, func(r []report) { r[2].Heard[0] = all[:1] }, false, "FAIL c: datagrams: of 548, 1200, 1400 bytes do not come from a, those of 44 do"},
		"refused": {three, func(r []report) {
			r[2].Heard[0] = nil
			r[0].Refused[2] = "operation not permitted (EPERM)"
		}, false, "FAIL c: datagrams: none come from a, whose system refuses to send them: operation not permitted (EPERM): a firewall there"},
		"kernels":  {three, func(r []report) { r[1].Findings[0].Text = "Linux 5" }, true, "note b: versions: Linux 5: the hosts differ"},
		"families": {[]string{"10.0.0.1", "fd00::2"}, func([]report) {}, false, "FAIL a, b: addresses: a is at 10.0.0.1 and b at fd00::2: IPv4 and IPv6 in one job; choose with -iface"},
		"loopback": {[]string{"10.0.0.1", "127.0.0.1"}, func([]report) {}, false, "other hosts do not reach a loopback address"},
		"clocks":   {three, func(r []report) { r[0].Clock[2] = [2]time.Duration{-time.Minute, time.Second} }, true, "note a, c: clocks: 59s apart or more"},
		"slow":     {three, func(r []report) { r[0].Clock[2] = [2]time.Duration{time.Second, time.Second} }, true, "ok   all 3 hosts: clocks: "},
	} {
		labels := []string{"a", "b", "c"}[:len(c.addrs)]
		r := well(c.addrs...)
		c.change(r)
		v := verdict{hosts: labels}
		v.judge(r, labels)
		var out bytes.Buffer
		if ok := v.print(&out); ok != c.ok || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %v, and\n%s", name, ok, &out)
		}
	}
}
