package netns_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/argon-go/argon/internal/lab/netns"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// envRole has the test binary do something else than run tests.
const envRole = "ARGONTEST_NETNS_ROLE"

func TestMain(m *testing.M) {
	switch role, arg, _ := strings.Cut(os.Getenv(envRole), " "); role {
	case "":
		os.Exit(testmain.Run(m))
	case "echo": // send back what comes, to the end of time
		c, err := net.ListenPacket("udp", arg)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("ready")
		b := make([]byte, 2000)
		for {
			n, from, err := c.ReadFrom(b)
			if err == nil {
				_, _ = c.WriteTo(b[:n], from)
			}
		}
	case "ask": // print what comes back
		arg, patient := strings.CutSuffix(arg, " patiently")
		c, err := net.Dial("udp", arg)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		// Patient if asked to be: hosts have to find each other first.
		tries := 3
		if patient {
			tries = 2000
		}
		for range tries {
			_, _ = c.Write([]byte("hello"))
			_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			b := make([]byte, 2000)
			if n, err := c.Read(b); err == nil {
				fmt.Println(string(b[:n]))
				break
			}
		}
	}
}

// role is a command that has the test binary take a role on a host.
func role(t *testing.T, h *netns.Host, role string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	c := h.Command(ctx, self)
	c.Env = append(os.Environ(), envRole+"="+role)
	c.Stderr = os.Stderr
	return c
}

// TestHosts sends datagrams between hosts, by both protocols, with cables in and
// out, and finds nothing left in the end.
func TestHosts(t *testing.T) {
	var names []string
	t.Run("network", func(t *testing.T) {
		n := netns.New(t, 3)
		for _, h := range append(n.Hosts, n.Switch) {
			names = append(names, h.Name)
		}
		for _, of := range []func(*netns.Host) netip.Addr{
			func(h *netns.Host) netip.Addr { return h.IPv4 },
			func(h *netns.Host) netip.Addr { return h.IPv6 },
		} {
			if !of(n.Hosts[1]).IsValid() {
				continue
			}
			to := netip.AddrPortFrom(of(n.Hosts[1]), 7777).String()
			echo := role(t, n.Hosts[1], "echo "+to)
			out, err := echo.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := echo.Start(); err != nil {
				t.Fatal(err)
			}
			line := make([]byte, 100)
			if k, err := out.Read(line); err != nil || string(line[:k]) != "ready\n" {
				t.Fatalf("%q, %v", line[:k], err)
			}
			if p := n.Hosts[1].Processes(); len(p) != 1 || p[0] != echo.Process.Pid {
				t.Errorf("processes %v on the host of %d", p, echo.Process.Pid)
			}
			ask := func(h *netns.Host, how string) bool {
				t.Helper()
				b, err := role(t, h, "ask "+to+how).Output()
				if err != nil {
					t.Fatal(err)
				}
				return bytes.HasPrefix(b, []byte("hello"))
			}
			if !ask(n.Hosts[0], " patiently") || !ask(n.Switch, " patiently") || !ask(n.Hosts[1], " patiently") {
				t.Errorf("%s: no answer", to)
			}
			n.Hosts[1].Unplug()
			if ask(n.Hosts[2], "") {
				t.Errorf("%s: an answer without a cable", to)
			}
			n.Hosts[1].Plug()
			if !ask(n.Hosts[2], " patiently") {
				t.Errorf("%s: no answer from where the cable is back", to)
			}
			_ = echo.Process.Kill()
			_ = echo.Wait()
		}
		// Left behind on purpose.
		if err := role(t, n.Hosts[0], "echo "+netip.AddrPortFrom(n.Hosts[0].IPv4, 1).String()).Start(); err != nil {
			t.Fatal(err)
		}
	})
	for _, name := range names {
		if _, err := os.Stat("/run/netns/" + name); err == nil {
			t.Errorf("%s is left", name)
		}
	}
}

// TestSSH runs commands as ssh would.
func TestSSH(t *testing.T) {
	n := netns.New(t, 2)
	n.Second()
	ssh := n.SSH()
	for _, args := range [][]string{
		{"h1"},
		{"-o", "BatchMode=yes", "-T", "-p", "22", n.Hosts[1].IPv4.String()},
		{"-x", "somebody@" + n.Hosts[1].IPv4.String(), "--"},
		{"-oBatchMode=yes", "--", n.Hosts[1].Name},
		{n.Hosts[1].Second[0].String()},
	} {
		out, err := exec.Command(ssh, append(args, "ip -o -4 addr show dev eth0;", "echo 'a  b'")...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), n.Hosts[1].IPv4.String()+"/24") || !strings.HasSuffix(string(out), "\na  b\n") {
			t.Errorf("ssh %q: %q, %v", args, out, err)
		}
	}
	out, err := exec.Command(ssh, "h1", "exit 7").CombinedOutput()
	if e, ok := err.(*exec.ExitError); !ok || e.ExitCode() != 7 {
		t.Errorf("%q, %v", out, err)
	}
	out, err = exec.Command(ssh, "nobody", "true").CombinedOutput()
	if e, ok := err.(*exec.ExitError); !ok || e.ExitCode() != 255 || !strings.Contains(string(out), "resolve hostname nobody") {
		t.Errorf("%q, %v", out, err)
	}
}

// TestSecond sends datagrams through the second network, and nothing of them comes
// through the first one.
func TestSecond(t *testing.T) {
	n := netns.New(t, 2)
	n.Second()
	n.Hosts[1].Unplug() // which is for the first one alone
	for _, to := range n.Hosts[1].Second {
		if !to.IsValid() {
			continue
		}
		at := netip.AddrPortFrom(to, 7777).String()
		echo := role(t, n.Hosts[1], "echo "+at)
		out, err := echo.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := echo.Start(); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, len("ready\n"))
		if _, err := io.ReadFull(out, line); err != nil || string(line) != "ready\n" {
			t.Fatalf("%q, %v", line, err)
		}
		before := n.Hosts[1].Received("eth1")
		for _, h := range []*netns.Host{n.Hosts[0], n.Switch} {
			if b, err := role(t, h, "ask "+at+" patiently").Output(); err != nil || !bytes.HasPrefix(b, []byte("hello")) {
				t.Errorf("%s from %s: %q, %v", at, h.Short, b, err)
			}
		}
		if got := n.Hosts[1].Received("eth1"); got < before+2*uint64(len("hello")) {
			t.Errorf("%s: %d bytes came through eth1, %d before", at, got, before)
		}
		_ = echo.Process.Kill()
		_ = echo.Wait()
	}
}

// TestSweep leaves a namespace as a process would that was killed, and one that
// another owner made: the next network removes the former alone.
func TestSweep(t *testing.T) {
	netns.New(t, 1)
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	stale := fmt.Sprintf("argonnet-%d-1-1-h0", dead.Process.Pid)
	reused := fmt.Sprintf("argonnet-%d-1-1-h0", os.Getpid()) // with another start time
	other := fmt.Sprintf("argonnot-%d-1-1-h0", dead.Process.Pid)
	for _, name := range []string{stale, reused, other} {
		if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		defer exec.Command("ip", "netns", "del", name).Run()
	}
	left := exec.Command("ip", "netns", "exec", stale, "sleep", "1000")
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	// It is in the namespace once ip has become sleep.
	for {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", left.Process.Pid))
		if err != nil || string(b) == "sleep\n" {
			break
		}
		if f := sys.ProcStat(left.Process.Pid); len(f) > 0 && f[0] == "Z" {
			break // another package's test has swept the namespace before ip entered it
		}
	}
	netns.New(t, 1)
	if err := left.Wait(); err == nil {
		t.Error("a process outlives its stale namespace")
	}
	for name, want := range map[string]bool{stale: false, reused: false, other: true} {
		if _, err := os.Stat("/run/netns/" + name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
