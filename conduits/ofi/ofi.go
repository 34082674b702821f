//go:build ofi && cgo

package ofi

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/adapt"
	"github.com/argon-go/argon/conduits/ofi/internal/fabric"
	"github.com/argon-go/argon/conduits/ofi/providers"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/rendezvous"
	"github.com/argon-go/argon/internal/sys/ifaddr"
	"github.com/argon-go/argon/segment"
)

func init() {
	conduits.Register(conduits.Conduit{
		Name: Name, Local: Local, Join: Join, Launch: &conduits.Launch{Rendezvous: true},
	})
}

// choose is the provider that the environment asks for, or the best there is by the rules
// of package providers.
func choose(env func(string) string, iface string) (providers.Choice, error) {
	w, err := providers.FromEnv(env)
	if err != nil {
		return providers.Choice{}, err
	}
	list, err := providers.List()
	if err != nil {
		return providers.Choice{}, err
	}
	if onTCP(w.Name) {
		iface = "" // an interface's addresses are tried as udp's are
	}
	w.Iface = iface
	return providers.Best(providers.Choose(list, w), w)
}

// onTCP reports whether a provider takes any IP address of the machine.
func onTCP(provider string) bool {
	core, _, _ := strings.Cut(provider, ";")
	return core == "net" || core == "tcp"
}

// openEndpoint opens an endpoint of the provider; on TCP at the local address node.
func openEndpoint(c providers.Choice, node string, l conduits.Limits) (*fabric.Endpoint, error) {
	domain := ""
	if !onTCP(c.Name) {
		node, domain = c.Address, c.Domain
	}
	i, err := fabric.Find(c.Name, node, domain)
	if err != nil {
		return nil, err
	}
	if need := uint64(frameBytes(l)); i.MaxMsg < need {
		return nil, errs.NotSupported("ofi: %s carries messages of %d bytes; the job's frames have %d (Config.MaxMedium)", i.Provider, i.MaxMsg, need)
	}
	if i.Receives < receives {
		return nil, errs.NotSupported("ofi: %s has room for %d messages to be received; %d are needed", i.Provider, i.Receives, receives)
	}
	return fabric.Open(i, max(4096, i.Sends+receives))
}

// defaultCredits is how many messages of a class may be under way to a rank, unless it is asked for
// another number. On net a flood of messages of 16 bytes took 0.30 us each with 64 of them, 0.22 with
// 128, 0.13 with 256 and 0.12 with 512: a frame holds some two hundred, and credit returns when
// half of it has been taken. What a rank keeps of frames it has not polled for is bounded by window.
const defaultCredits = 256

// withCredits is c with the default number of credits, if it asks for none.
func withCredits(c conduits.Config) conduits.Config {
	if c.Credits == 0 {
		c.Credits = defaultCredits
	}
	return c
}

// Local opens all ranks of a job in this process, which reach each other over the
// loopback interface.
func Local(n int, c conduits.Config) ([]conduits.Endpoint, error) {
	return adapt.Local(Name, Open)(n, c)
}

// MaxLocal is the largest size of a job in one process: each rank has a completion queue
// and connections to the others.
const MaxLocal = 256

// Open is Local without what package adapt adds.
func Open(n int, c conduits.Config) ([]conduits.Transport, error) {
	if n > MaxLocal {
		return nil, errs.BadArg("ofi: %d ranks in one process; at most %d (-n)", n, MaxLocal)
	}
	seats, err := adapt.Seats(Name, n, withCredits(c))
	if err != nil {
		return nil, err
	}
	p, err := choose(os.Getenv, os.Getenv(jobenv.Iface))
	if err != nil {
		return nil, errs.Misstarted(err)
	}
	ts, all := make([]conduits.Transport, n), &housemates{left: n}
	for i, s := range seats {
		ep, err := openEndpoint(p, "127.0.0.1", s.Limits())
		if err == nil {
			var t *transport
			if t, err = newTransport(s, ep); err == nil {
				t.mates, all.ranks, ts[i] = all, append(all.ranks, t), t
				continue
			}
			ep.Close()
		}
		for _, t := range all.ranks {
			t.release()
		}
		return nil, err
	}
	return ts, nil
}

// housemates are the ranks of a job that is in one process.
type housemates struct {
	ranks []*transport
	mu    sync.Mutex
	left  int // endpoints that are not closed
}

// released counts one whose endpoint is closed, and says it when none is left.
func (h *housemates) released() {
	h.mu.Lock()
	h.left--
	last := h.left == 0
	h.mu.Unlock()
	if !last || h.ranks[0].Err() != nil {
		return // what a rank waited for has failed, and other goroutines may look at its memory yet
	}
	for _, t := range h.ranks {
		if t.atEnd != nil {
			t.atEnd()
		}
	}
}

// Join opens this process's rank of a job. It returns when all ranks are there.
func Join(j conduits.Job, c conduits.Config) (conduits.Endpoint, error) {
	return conc.UpcastOne[conduits.Endpoint](openProcess(j, c))
}

// openProcess is Join for a conduit that uses this one, too.
func openProcess(j conduits.Job, c conduits.Config) (e farEndpoint, err error) {
	if c.MaxSegment == 0 {
		c.MaxSegment = uint64(segment.MaxAttach) // nothing is set aside before Attach
	}
	c = withCredits(c)
	limits, err := c.Limits(Name)
	if err != nil {
		return e, err
	}
	if j.Rank < 0 || j.Rank >= j.Size {
		return e, errs.BadArg("ofi: rank %d of %d does not exist (%s)", j.Rank, j.Size, jobenv.Rank)
	}
	iface := j.Env(jobenv.Iface)
	p, err := choose(j.Env, iface)
	if err != nil {
		return e, errs.Misstarted(err)
	}
	setup, err := rendezvous.FromEnv(j.Env)
	if err != nil {
		return e, errs.Misstarted(err)
	}
	node := ""
	if onTCP(p.Name) {
		if node, err = localAddr(iface, setup); err != nil {
			return e, errs.Misstarted(err)
		}
	}
	ep, err := openEndpoint(p, node, limits)
	if err != nil {
		return e, err
	}
	t, err := join(j, c, ep)
	if err != nil {
		ep.Close()
		return e, err
	}
	t.setDeadTime(cmp.Or(setup.DeadTime, defaultDeadTime))
	t.apart = conc.HaveProcessors(t.Mates())
	return farEndpoint{adapt.NewProcess(Name, t, t.Mates()), t}, nil
}

// localAddr is the address at which other ranks reach this one; "" if the provider is to
// choose.
func localAddr(iface string, setup rendezvous.Setup) (string, error) {
	a, err := ifaddr.To(context.Background(), setup.Server)
	if err == nil && iface != "" {
		a, err = ifaddr.Choose(iface, a.Is4())
	}
	if err != nil {
		return "", errs.Resource("ofi: no way to the rendezvous at %s: %v (%s, %s)", setup.Server, err, jobenv.Rendezvous, jobenv.Iface)
	}
	if host, _, err := net.SplitHostPort(setup.Server); iface == "" && a.IsLoopback() && err == nil {
		// The service's name may lead back to this host by the loopback interface.
		if s, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !s.IsLoopback()) {
			return "", nil
		}
	}
	return a.String(), nil
}

// join joins the job, and makes the transport.
func join(j conduits.Job, c conduits.Config, ep *fabric.Endpoint) (*transport, error) {
	name, err := ep.Name()
	if err != nil {
		return nil, err
	}
	s, err := adapt.Join(Name, j, c, fmt.Sprintf(", provider %s (%s)%s, libfabric %s, mr_mode %#x, order %#x",
		ep.Provider, providers.EnvName, family(ep, name), ep.Version, ep.MR, ep.Order))
	if err != nil {
		return nil, err
	}
	t, err := newTransport(s, ep)
	if err != nil {
		s.Fail(j.Rank, err)
		s.Leave()
		return nil, err
	}
	return t, nil
}

// family says of which protocol the address is: a provider takes no other one's.
func family(ep *fabric.Endpoint, addr []byte) string {
	if !ep.IP || len(addr) < 2 {
		return ""
	}
	switch binary.NativeEndian.Uint16(addr) {
	case syscall.AF_INET:
		return " on IPv4 (" + jobenv.Iface + ")"
	case syscall.AF_INET6:
		return " on IPv6 (" + jobenv.Iface + ")"
	}
	return ""
}
