package launch

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/launch"
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
			r := report{Addr: at(a), MTU: "eth0 has 9000", Sizes: all, Least: 548, Heard: map[int][]int{}, Refused: map[int]string{}, Clock: map[int][2]time.Duration{}}
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
		"is jumbo": {three, func(r []report) { r[0].Datagram, r[1].Datagram, r[2].Datagram = true, true, true }, true, "\nok   all 3 hosts: datagrams: of 44, 548, 1200, 1400, 8952 bytes pass both ways\nok   all 3 hosts: clocks"},
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
		v.judge(r, labels, true)
		var out bytes.Buffer
		if ok := v.print(&out); ok != c.ok || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %v, and\n%s", name, ok, &out)
		}
	}
}

// TestCheckHeldUp: the hosts that others wait for are known from how far each rank has got.
func TestCheckHeldUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stages []int // of the first and the second rank of each host
		want   []int
	}{
		"well":            {[]int{stageOver, stageOver, stageOver, stageOver}, nil},
		"not started":     {[]int{stageStarted, stageStarted, stageNone, stageNone}, []int{1}},
		"second not":      {[]int{stageStarted, stageStarted, stageStarted, stageNone}, []int{1}},
		"all join":        {[]int{stageStarted, stageStarted, stageStarted, stageStarted}, []int{0, 1}},
		"does not look":   {[]int{stageLooked, stageStarted, stageStarted, stageStarted}, []int{1}},
		"0 lets none go":  {[]int{stageLooked, stageStarted, stageLooked, stageStarted}, []int{0}},
		"does not begin":  {[]int{stageSent, stageStarted, stageLooked, stageStarted}, []int{1}},
		"does not send":   {[]int{stageSent, stageStarted, stageBegun, stageStarted}, []int{1}},
		"all send":        {[]int{stageBegun, stageStarted, stageBegun, stageStarted}, []int{0, 1}},
		"0 ends none":     {[]int{stageSent, stageStarted, stageSent, stageStarted}, []int{0}},
		"does not end":    {[]int{stageOver, stageOver, stageSent, stageOver}, []int{1}},
		"second does not": {[]int{stageOver, stageOver, stageOver, stageStarted}, []int{1}},
		"no second ends":  {[]int{stageOver, stageStarted, stageOver, stageStarted}, []int{0, 1}},
	} {
		var out strings.Builder
		for rank, stage := range c.stages {
			fmt.Fprintf(&out, "{\"Rank\":%d,\"Stage\":%d}\n", rank, stage)
		}
		if got := heldUp(parseReports(out.String(), len(c.stages)/2)); !slices.Equal(got, c.want) {
			t.Errorf("%s: hosts %v, want %v", name, got, c.want)
		}
	}
	// What a rank has found stays when it gets on.
	r := parseReports(`{"Rank":2,"Stage":2,"Findings":[{"Level":"ok"}]}
{"Rank":2,"Stage":3}
other output
{"Rank":4,"Stage":3}
`, 2)
	if len(r) != 4 || r[2].Stage != stageBegun || len(r[2].Findings) != 1 {
		t.Errorf("%+v", r)
	}
}

// TestCheckStartless: a host that an error names is left out, under the name it has had from the start, and
// an error that names none of them ends the check.
func TestCheckStartless(t *testing.T) {
	t.Parallel()
	a, b := launch.Host{Name: "a"}, launch.Host{Name: "b"}
	for name, c := range map[string]struct {
		hosts  []launch.Host
		labels []string
		err    error
		left   []string
		want   string
	}{
		"first": {[]launch.Host{a, a, b}, []string{"a#1", "a#2", "b"}, &launch.HostError{Host: "a#1", Cause: "no"}, []string{"a#2", "b"}, "FAIL a#1: start: no"},
		"then":  {[]launch.Host{a, b}, []string{"a#2", "b"}, &launch.HostError{Host: "a", Cause: "no"}, []string{"b"}, "FAIL a#2: start: no"},
		"both": {[]launch.Host{a, b}, []string{"a", "b"}, errors.Join(&launch.HostError{Host: "a", Cause: "no"},
			&launch.RankError{Host: "b", Last: []string{"oh"}, Cause: "exited"}), nil, "FAIL b: start: oh; exited"},
		"strange host": {[]launch.Host{a, b}, []string{"a", "b"}, &launch.HostError{Host: "x", Cause: "no"}, nil, "FAIL a, b: start: host x: no"},
		"strange rank": {[]launch.Host{a, b}, []string{"a", "b"}, &launch.RankError{Cause: "exited"}, nil, "FAIL a, b: start: rank 0"},
		"not awaited":  {[]launch.Host{a}, []string{"a"}, &launch.HostError{Host: "a", Cause: launch.NotAwaited}, nil, "FAIL a: start: host a: had not answered"},
	} {
		conf := launch.Config{Hosts: c.hosts, PerHost: 2}
		v := verdict{hosts: []string{"a#1", "a#2", "b"}}
		left, labels := v.startless(conf, c.labels, c.err)
		var out bytes.Buffer
		if v.print(&out) || !slices.Equal(labels, c.left) || len(left) != len(labels) || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %v of %v are left, and\n%s", name, labels, left, &out)
		}
	}
}

// TestCheckDrain: a datagram that was there before the deadline is read after it.
func TestCheckDrain(t *testing.T) {
	t.Parallel()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	own := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	c := &checker{
		conn: conn, token: make([]byte, 16), addrs: []netip.AddrPort{own, own},
		r: &report{Heard: map[int][]int{}, Refused: map[int]string{}},
	}
	c.host = 1
	c.datagram(0, checkHeader, checkHeader, 1, 0)
	c.host = 0
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Read(func(fd uintptr) bool { // returns when the datagram is there
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
		return err != syscall.EAGAIN
	}); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := c.read(); err != nil {
		t.Fatal(err)
	}
	if got := c.r.Heard[1]; !slices.Equal(got, []int{checkHeader}) {
		t.Errorf("heard %v of host 1, refused %v", got, c.r.Refused)
	}
}
