package launch

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/rendezvous"
	"github.com/argon-go/argon/internal/sys"
)

func init() {
	bootstraps["udp"] = bootstrap{ranks: MaxSize, network: true, memory: func(c *Config) (Memory, error) { return newNetMemory(c) }}
	bootstraps["hybrid"] = bootstrap{ranks: MaxSize, network: true, shared: true, memory: func(c *Config) (Memory, error) { return newNetMemory(c) }}
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

// An outfit is what ranks of one host need to find the others and to speak with
// them.
type outfit struct {
	server string   // address of the rendezvous
	key    *os.File // of the job
	host   string   // identity of this host
	iface  string   // see Config.Iface
	shared Memory   // of the ranks of this host; nil if they share none
}

// newOutfit is that of size ranks on this host.
func newOutfit(key seal.Key, shared bool, size int, segment uint64) (o outfit, err error) {
	if shared {
		if o.shared, err = newShmMemory(size, segment); err != nil {
			return o, err
		}
	}
	o.key, err = keyFile(key)
	if err != nil {
		o.close()
	}
	return o, err
}

// File is the memory that the ranks of this host share, if any.
func (o *outfit) File() *os.File {
	if o.shared == nil {
		return nil
	}
	return o.shared.File()
}

// bequeath tells ranks where the rendezvous is, and the key.
func (o *outfit) bequeath(in *inheritance) {
	in.file(o.key, seal.EnvKeyFile, "/proc/self/fd/")
	in.set(EnvRendezvous, o.server)
	in.set(EnvHost, o.host)
	if o.iface != "" {
		in.set(EnvIface, o.iface)
	}
}

func (o *outfit) close() error {
	var all []error
	if o.key != nil {
		all = append(all, o.key.Close())
	}
	if o.shared != nil {
		all = append(all, o.shared.Close())
	}
	return errors.Join(all...)
}

// netMemory is what the ranks of a job on this host have in common that do not
// share memory alone: a rendezvous, and the key that opens it.
type netMemory struct {
	outfit
	server *rendezvous.Server
}

func newNetMemory(c *Config) (*netMemory, error) {
	key := seal.NewKey()
	o, err := newOutfit(key, bootstraps[c.Conduit].shared, c.Size, c.attached())
	if err != nil {
		return nil, err
	}
	m := &netMemory{outfit: o}
	at := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if c.Iface != "" {
		at, err = interfaceAddr(c.Iface)
	}
	if err == nil {
		m.server, err = serve(c, key, at.String())
	}
	if err != nil {
		o.close()
		return nil, err
	}
	m.outfit.server, m.iface = m.server.Addr().String(), c.Iface
	if m.host, err = os.Hostname(); err != nil || m.host == "" {
		m.host = "localhost"
	}
	return m, nil
}

// serve runs the rendezvous of a job at an address of this host; "" stands for
// all.
func serve(c *Config, key seal.Key, at string) (*rendezvous.Server, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(at, "0"))
	if err != nil {
		return nil, errs.Resource("launch: the rendezvous cannot listen: %v (-iface)", err)
	}
	sc := rendezvous.ServerConfig{Key: key, Size: c.Size, Patience: joinPatience, Grace: deathGrace, Logf: c.logf, Rewrite: c.Rewrite}
	if d := envDuration(c.Env, rendezvous.EnvPatience); d > 0 {
		sc.Patience = d
	}
	if len(c.Freeze) > 0 {
		sc.Patience = freezePatience
	}
	// The rendezvous need not be the first to notice that a host is gone.
	sc.DeadTime = max(envDuration(c.Env, rendezvous.EnvDeadTime), rendezvous.DefaultDeadTime)
	s, err := rendezvous.Serve(l, sc)
	if err != nil {
		l.Close()
		return nil, err
	}
	return s, nil
}

// envDuration is the time that a variable holds for ranks whose environment has
// env besides this process's, 0 if it holds none: ranks, which read it too,
// complain.
func envDuration(env []string, key string) time.Duration {
	v := os.Getenv(key)
	for _, kv := range env { // the last setting counts
		if k, s, _ := strings.Cut(kv, "="); k == key {
			v = s
		}
	}
	d, _ := time.ParseDuration(v)
	return d
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
func (m *netMemory) Close() error { return errors.Join(m.server.Close(), m.outfit.close()) }

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
	i, err := net.InterfaceByName(name)
	if err != nil {
		a, err := netip.ParseAddr(name)
		switch {
		case err == nil && a.Is6() && a.IsLinkLocalUnicast():
			return a, errs.BadArg("launch: %s is an address of one link, which means another one on each host (-iface, ARGON_IFACE)", name)
		case err == nil && isOwn(a):
			return a.Unmap(), nil
		}
		return netip.Addr{}, errs.BadArg("launch: %q is neither an address nor an interface of this host; it has %s (-iface, ARGON_IFACE)", name, interfaces())
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

// isOwn says whether a is an address of this machine.
func isOwn(a netip.Addr) bool {
	if a.IsLoopback() { // all of 127.0.0.0/8 are
		return true
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return true // listening there will tell
	}
	for _, n := range addrs {
		if p, err := netip.ParsePrefix(n.String()); err == nil && p.Addr().Unmap() == a.Unmap() {
			return true
		}
	}
	return false
}

// interfaces lists what -iface may be here.
func interfaces() string {
	all, err := net.Interfaces()
	if err != nil {
		return err.Error()
	}
	var words []string
	for _, i := range all {
		var addrs []string
		l, _ := i.Addrs()
		for _, n := range l {
			if p, err := netip.ParsePrefix(n.String()); err == nil && !p.Addr().IsLinkLocalUnicast() {
				addrs = append(addrs, p.Addr().String())
			}
		}
		if len(addrs) > 0 { // else it is of no use
			words = append(words, fmt.Sprintf("%s (%s)", i.Name, strings.Join(addrs, ", ")))
		}
	}
	return strings.Join(words, ", ")
}

// cause is the innermost reason of an error of package net.
func cause(err error) error {
	var oe *net.OpError
	if errors.As(err, &oe) {
		return oe.Err
	}
	return err
}

// hostsMemory is what the launcher knows of ranks on other hosts: what they tell
// the rendezvous.
type hostsMemory struct {
	server *rendezvous.Server
	key    seal.Key
	hosts  []*host
}

// newHostsMemory serves the rendezvous at an address of this machine, "" for all
// that it has.
func newHostsMemory(j *job, listen string) (*hostsMemory, error) {
	m := &hostsMemory{key: seal.NewKey(), hosts: j.hosts}
	var err error
	m.server, err = serve(&j.Config, m.key, listen)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// File is nil: memory is shared within hosts at most.
func (m *hostsMemory) File() *os.File { return nil }

// State asks the rendezvous.
func (m *hostsMemory) State(rank int) State { return stateAt(m.server, rank) }

// Fail tells all ranks.
func (m *hostsMemory) Fail(rank, status int, cause string) {
	m.server.Fail(rank, status, cause)
	for _, h := range m.hosts {
		if rank >= h.first && rank < h.first+h.size {
			h.fail(rank, status, cause)
		}
	}
}

// Failure is what the rendezvous knows.
func (m *hostsMemory) Failure() (rank, status int, cause string, ok bool) { return m.server.Failure() }

// Close ends the service.
func (m *hostsMemory) Close() error { return m.server.Close() }
