package launch

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/rendezvous"
	"github.com/argon-go/argon/internal/sys"
)

func init() {
	bootstraps["udp"] = bootstrap{ranks: MaxSize, network: true, memory: func(c *Config) (Memory, error) { return newNetMemory(c, false) }}
	bootstraps["hybrid"] = bootstrap{ranks: MaxSize, network: true, memory: func(c *Config) (Memory, error) { return newNetMemory(c, true) }}
}

// The patience of the rendezvous. Ranks that die are noticed by the launcher, so
// it need only be longer than what a program may do before it joins.
const (
	joinPatience   = 10 * time.Minute
	freezePatience = 365 * 24 * time.Hour // somebody looks at a rank with a debugger
)

// deathGrace is how long the rendezvous lets the launcher say how a rank ended
// whose connection is gone.
const deathGrace = 500 * time.Millisecond

// netMemory is what the ranks of a job across processes or hosts have in common:
// a rendezvous, the key that opens it, and on this host perhaps memory.
type netMemory struct {
	server *rendezvous.Server
	addr   string // where ranks of this host reach server
	key    *os.File
	host   string
	iface  string
	shared Memory // of the ranks of this host; nil if they share none
}

// newNetMemory serves the rendezvous of a job all of whose ranks are on this
// host. With shared they get shared memory too.
func newNetMemory(c *Config, shared bool) (_ *netMemory, err error) {
	m := &netMemory{iface: c.Iface}
	defer func() {
		if err != nil {
			m.Close()
		}
	}()
	if shared {
		if m.shared, err = newShmMemory(c.Size, c.Segment); err != nil {
			return nil, err
		}
	}
	key := seal.NewKey()
	if m.key, err = keyFile(key); err != nil {
		return nil, err
	}
	at := netip.MustParseAddr("127.0.0.1")
	if c.Iface != "" {
		if at, err = interfaceAddr(c.Iface); err != nil {
			return nil, err
		}
	}
	if m.server, err = serve(c, key, at); err != nil {
		return nil, err
	}
	m.addr = m.server.Addr().String()
	if m.host, err = os.Hostname(); err != nil || m.host == "" {
		m.host = "localhost"
	}
	return m, nil
}

// serve runs the rendezvous of a job at an address of this host, of which the
// unspecified one stands for all.
func serve(c *Config, key seal.Key, at netip.Addr) (*rendezvous.Server, error) {
	l, err := net.Listen("tcp", netip.AddrPortFrom(at, 0).String())
	if err != nil {
		return nil, errs.Resource("launch: the rendezvous cannot listen: %v (-iface)", err)
	}
	patience := joinPatience
	if len(c.Freeze) > 0 {
		patience = freezePatience
	}
	s, err := rendezvous.Serve(l, rendezvous.ServerConfig{Key: key, Size: c.Size, Patience: patience, Grace: deathGrace})
	if err != nil {
		l.Close()
		return nil, err
	}
	return s, nil
}

// File is the memory that the ranks of this host share, if any.
func (m *netMemory) File() *os.File {
	if m.shared == nil {
		return nil
	}
	return m.shared.File()
}

// bequeath tells ranks where the rendezvous is, and the key.
func (m *netMemory) bequeath(in *inheritance) {
	in.file(m.key, seal.EnvKeyFile, "/proc/self/fd/")
	in.set(EnvRendezvous, m.addr)
	in.set(EnvHost, m.host)
	if m.iface != "" {
		in.set(EnvIface, m.iface)
	}
}

// State asks the rendezvous, which ranks tell when they leave in good order
// before they end.
func (m *netMemory) State(rank int) State { return stateAt(m.server, rank) }

func stateAt(s *rendezvous.Server, rank int) State {
	switch s.State(rank) {
	case rendezvous.Joined:
		return Joined
	case rendezvous.Attached:
		return Attached
	case rendezvous.Left:
		return Finished
	case rendezvous.Failed:
		return Failed
	}
	return Starting
}

// Fail tells all ranks, those that wait in shared memory as well.
func (m *netMemory) Fail(rank, status int, cause string) {
	m.server.Fail(rank, status, cause)
	if m.shared != nil {
		m.shared.Fail(rank, status, cause)
	}
}

// Failure is what the rendezvous knows.
func (m *netMemory) Failure() (rank, status int, cause string, ok bool) { return m.server.Failure() }

// Close ends the service.
func (m *netMemory) Close() error {
	var all []error
	if m.server != nil {
		all = append(all, m.server.Close())
	}
	if m.key != nil {
		all = append(all, m.key.Close())
	}
	if m.shared != nil {
		all = append(all, m.shared.Close())
	}
	return errors.Join(all...)
}

// keyFile returns an open file without a name that holds the key: who has it
// open, and is its owner, can read it by /proc/self/fd, and nobody can change it.
func keyFile(key seal.Key) (*os.File, error) {
	f, err := sys.CreateMemory("", "argon-key", 0)
	if err != nil {
		if f, err = sys.CreateMemory("/dev/shm", "argon-key", 0); err != nil {
			return nil, errs.Resource("launch: cannot make a file in memory for the job's key: %v", err)
		}
	}
	defer f.Close()
	if _, err = f.WriteString(key.Reveal()); err == nil {
		err = f.Chmod(0o400)
	}
	var r *os.File
	if err == nil { // what ranks inherit is not open for writing
		r, err = os.Open(fdName(f))
	}
	if err != nil {
		return nil, errs.Resource("launch: cannot make a file in memory for the job's key: %v", err)
	}
	return r, nil
}

// fdName is a name under which this process can open f once more.
func fdName(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// interfaceAddr is the address that -iface stands for on this host: itself, or
// the first of the interface of that name, IPv4 before IPv6, that others reach.
func interfaceAddr(name string) (netip.Addr, error) {
	if a, err := netip.ParseAddr(name); err == nil {
		return a.Unmap(), nil
	}
	i, err := net.InterfaceByName(name)
	if err != nil {
		return netip.Addr{}, errs.BadArg("launch: %q is neither an address nor an interface of this host: %v (-iface, ARGON_IFACE)", name, cause(err))
	}
	addrs, err := i.Addrs()
	if err != nil {
		return netip.Addr{}, errs.Resource("launch: interface %s: %v (-iface)", name, err)
	}
	var best netip.Addr
	for _, n := range addrs {
		p, err := netip.ParsePrefix(n.String())
		if err != nil {
			continue
		}
		a := p.Addr().Unmap()
		if a.IsLinkLocalUnicast() { // needs a zone, which differs between hosts
			continue
		}
		if !best.IsValid() || a.Is4() && !best.Is4() {
			best = a
		}
	}
	if !best.IsValid() {
		return best, errs.BadArg("launch: interface %s has no address that other hosts reach (-iface)", name)
	}
	return best, nil
}

// cause is the innermost reason of an error of package net.
func cause(err error) error {
	var oe *net.OpError
	if errors.As(err, &oe) {
		return oe.Err
	}
	return err
}
