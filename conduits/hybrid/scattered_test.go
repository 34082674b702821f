package hybrid_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/gas"
)

// scattered are jobs by the hosts of their ranks, whose numbers are not consecutive on
// a host as under srun -m cyclic or mpirun --map-by node.
var scattered = [][]int{
	{0, 1, 0, 1},
	{0, 1, 0},
	{0, 0, 1, 2, 1, 0, 1, 0},
}

// TestScattered runs what uses everything, and barriers in which ranks park.
func TestScattered(t *testing.T) {
	for _, host := range scattered {
		for _, program := range []string{"program", "barriers"} {
			t.Run(fmt.Sprint(host, " ", program), func(t *testing.T) { beginOn(t, nil, host, false, program).want(0) })
		}
	}
}

// envHosts tells the program reach where ranks are.
const envHosts = "ARGONTEST_HYBRID_HOSTS"

// whoami answers with the rank that calls and the rank that is called.
var whoami = gas.RegisterCall("whoami", func(n *gas.Node, asks int) [2]int { return [2]int{asks, n.Rank()} })

// reach has each rank look at the ranks that it reaches directly, and send to and access its
// neighbours in every way that there is.
func reach() {
	hosts := strings.Split(os.Getenv(envHosts), ",")
	gas.Main(func(n *gas.Node) error {
		ep := n.Layers().Conduit
		first, views := ep.Views()
		near := func(r int) bool { return hosts[r] == hosts[n.Rank()] }
		for r := range n.Size() {
			i := r - first
			if direct := i >= 0 && i < len(views) && views[i].Base != nil; direct != near(r) || n.Neighbour(r) != near(r) {
				return fmt.Errorf("rank %d is reached directly: %v, %v; on the same host: %v", r, direct, n.Neighbour(r), near(r))
			}
		}
		words, err := gas.NewSlice[uint64](n, n.Size())
		if err != nil {
			return err
		}
		for r := range n.Size() {
			at := words.On(r).Add(n.Rank())
			if _, direct := at.Local(n); direct != near(r) {
				return fmt.Errorf("a pointer to rank %d is local: %v", r, direct)
			}
			if !near(r) {
				continue
			}
			// By way of the conduit and not by load and store.
			a := at.NLA()
			if _, err := post.PutWord(ep, r, a, uint64(100*r), 8, 0, 0); err != nil {
				return err
			}
			old, ev, err := post.Atomic(ep, r, a, conduits.AtomicAdd, conduits.Uint64, 7, 0, 0)
			if err != nil || ev&conduits.RemoteDone == 0 || old != uint64(100*r) {
				return fmt.Errorf("rank %d had %d, events %v, error %v", r, old, ev, err)
			}
			got, ev, err := post.Atomic(ep, r, a, conduits.AtomicLoad, conduits.Uint64, 0, 0, 0)
			if err != nil || ev&conduits.RemoteDone == 0 || got != uint64(100*r+7) {
				return fmt.Errorf("rank %d has %d, events %v, error %v", r, got, ev, err)
			}
			if got, err := at.Get(n); err != nil || got != uint64(100*r+7) {
				return fmt.Errorf("rank %d has %d, error %v", r, got, err)
			}
			who, err := whoami.Call(n, r, n.Rank())
			if err != nil || who != [2]int{n.Rank(), r} {
				return fmt.Errorf("a call of rank %d answers %v, error %v", r, who, err)
			}
		}
		return n.Barrier()
	})
}

// TestReach runs it. Where a rank would send datagrams to its neighbours the test
// listens, and hears none.
func TestReach(t *testing.T) {
	for _, host := range scattered {
		t.Run(fmt.Sprint(host), func(t *testing.T) {
			conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			trap := conn.LocalAddr().(*net.UDPAddr).AddrPort()
			rewrite := func(viewer, rank int, addr netip.AddrPort) netip.AddrPort {
				if viewer != rank && host[viewer] == host[rank] {
					return trap
				}
				return addr
			}
			hosts := strings.Trim(strings.ReplaceAll(fmt.Sprint(host), " ", ","), "[]")
			beginOn(t, rewrite, host, false, "reach", envHosts+"="+hosts, "ARGON_DEADTIME=5s").want(0)
			// What was sent to the trap is there; one from itself comes last.
			if _, err := conn.WriteToUDPAddrPort([]byte{1}, trap); err != nil {
				t.Fatal(err)
			}
			if _, from, err := conn.ReadFromUDPAddrPort(make([]byte, 1)); err != nil || from != trap {
				t.Errorf("a datagram from %v to a rank of the same host, error %v", from, err)
			}
		})
	}
}

// remain has the last rank end itself while the others access memory of their
// neighbours in loops that run no code of a conduit, if they have any.
func remain() {
	gas.Main(func(n *gas.Node) error {
		w, err := gas.New[uint64](n)
		if err != nil {
			return err
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if n.Rank() == n.Size()-1 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		near := n.Rank()
		for r := range n.Size() - 1 {
			if r != n.Rank() && n.Neighbour(r) {
				near = r
			}
		}
		for {
			if _, err := gas.FetchAdd(n, w.On(near), 1); err != nil {
				return err
			}
		}
	})
}

// TestScatteredFailure has all ranks hear which one has died, by its number in the job:
// those that wait for it, and those that access memory.
func TestScatteredFailure(t *testing.T) {
	for _, host := range scattered {
		for _, program := range []string{"die", "remain"} {
			t.Run(fmt.Sprint(host, " ", program), func(t *testing.T) {
				w := beginOn(t, nil, host, false, program)
				last := len(host) - 1
				status := make([]int, last+1)
				for r := range last {
					status[r] = 1
				}
				status[last] = 128 + int(syscall.SIGKILL)
				w.want(status...)
				for r := range last {
					w.says(r, fmt.Sprintf("rank %d", last))
				}
			})
		}
	}
}
