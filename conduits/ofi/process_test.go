//go:build ofi && cgo

package ofi_test

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/ofi/providers"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/lab/testprog"
	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

// onFabric has a job run on this conduit.
func onFabric(c *launch.Config) { c.Conduit = "ofi" }

func everything() { testjob.Check(gas.Run(gas.Config{}, testprog.Everything)) }

func TestProcesses(t *testing.T) {
	for _, n := range []int{1, 3} {
		testjob.RunConfig(t, n, "everything", testjob.Config{Launch: onFabric}).Want(t, 0)
	}
}

// outlive has the calling rank say what it has heard although the launcher ends ranks that
// survive another one.
func outlive() { signal.Ignore(syscall.SIGTERM) }

// die has the last rank be killed while the others wait for it.
func die() {
	outlive()
	err := gas.Run(gas.Config{}, func(n *gas.Node) error {
		if err := n.Barrier(); err != nil {
			return err
		}
		if n.Rank() == n.Size()-1 {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return n.Barrier()
	})
	fmt.Println(err)
	testjob.Check(err)
}

func TestKilled(t *testing.T) {
	const n = 3
	r := testjob.RunConfig(t, n, "die", testjob.Config{KillGrace: time.Hour, Launch: onFabric}).Want(t, 137)
	if r.Failed != n-1 {
		t.Errorf("rank %d is named, not %d", r.Failed, n-1)
	}
	for i, out := range r.Stdout[:n-1] {
		if !strings.Contains(out, fmt.Sprintf("rank %d failed", n-1)) {
			t.Errorf("rank %d says %q, which does not name rank %d", i, out, n-1)
		}
	}
}

// differ has rank 1 choose another provider than the others.
func differ() {
	outlive()
	p := "net"
	if testjob.Rank() == 1 {
		p = "tcp;ofi_rxm"
	}
	os.Setenv(providers.EnvName, p)
	err := gas.Run(gas.Config{}, func(*gas.Node) error { return nil })
	fmt.Println(err)
	testjob.Check(err)
}

func TestProvidersDiffer(t *testing.T) {
	r := testjob.RunConfig(t, 2, "differ", testjob.Config{KillGrace: time.Hour, Launch: onFabric})
	if r.Status == 0 {
		t.Errorf("the job ended with status 0%s", r.Output())
	}
	for i, out := range r.Stdout {
		for _, want := range []string{"provider net", "provider tcp;ofi_rxm", "rank 1"} {
			if !strings.Contains(out, want) {
				t.Errorf("rank %d says %q, not %q", i, out, want)
			}
		}
	}
}

// mix has rank 1 be reached by IPv6.
func mix() {
	outlive()
	os.Setenv(providers.EnvName, "net")
	if testjob.Rank() == 1 {
		os.Setenv(jobenv.Iface, "::1")
	}
	err := gas.Run(gas.Config{}, func(*gas.Node) error { return nil })
	fmt.Println(err)
	testjob.Check(err)
}

// TestFamiliesDiffer: ranks that are reached by IPv4 and by IPv6 do not come together, and are told why, for
// a provider takes no address of the other.
func TestFamiliesDiffer(t *testing.T) {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skipf("no IPv6: %v", err)
	}
	l.Close()
	r := testjob.RunConfig(t, 2, "mix", testjob.Config{KillGrace: time.Hour, Launch: onFabric})
	if r.Status == 0 {
		t.Errorf("the job ended with status 0%s", r.Output())
	}
	for i, out := range r.Stdout {
		for _, want := range []string{"on IPv4", "on IPv6", "rank 1", jobenv.Iface} {
			if !strings.Contains(out, want) {
				t.Errorf("rank %d says %q, not %q", i, out, want)
			}
		}
	}
}

// unattached has rank 1 close its endpoint before it attaches. Rank 0 hears of it where it attaches, or
// where it joins if rank 1 is faster.
func unattached() {
	outlive()
	e, err := testjob.Join(conduits.Config{})
	if testjob.Rank() == 0 {
		if err == nil {
			err = e.Attach(conduits.AttachConfig{Receiver: quiet{}})
		}
		if fmt.Println(err); err == nil {
			testjob.Fatal("it has attached, and rank 1 has not")
		}
	} else {
		testjob.Check(err)
	}
	if e != nil {
		testjob.Check(e.Close())
	}
	_, service, err := net.SplitHostPort(os.Getenv(jobenv.Rendezvous))
	testjob.Check(err)
	for _, fd := range sys.Descriptors() {
		if at, err := syscall.Getpeername(fd); err == nil {
			if a, ok := at.(*syscall.SockaddrInet4); ok && fmt.Sprint(a.Port) == service {
				testjob.Fatal("descriptor %d is still connected to the rendezvous", fd)
			}
		}
	}
	fmt.Println("fine")
}

// TestUnattached: a rank that closes before it attaches fails the job, and the connection of no
// rank to the rendezvous outlives its endpoint.
func TestUnattached(t *testing.T) {
	r := testjob.RunConfig(t, 2, "unattached", testjob.Config{KillGrace: time.Hour, Launch: onFabric})
	for i, out := range r.Stdout {
		if !strings.HasSuffix(out, "fine\n") || i == 0 && !strings.Contains(out, "rank 1 failed") {
			t.Errorf("rank %d says %q%s", i, out, r.Output())
		}
	}
}
