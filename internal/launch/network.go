package launch

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/ifaddr"
	"github.com/argon-go/argon/internal/jobenv"
	"github.com/argon-go/argon/internal/jobkey"
	"github.com/argon-go/argon/internal/rendezvous"
)

// The patience of the rendezvous. Ranks that die are noticed by the launcher, so
// it need only be longer than what a program may do before it joins.
const (
	joinPatience   = 10 * time.Minute
	freezePatience = 365 * 24 * time.Hour // for ranks in a debugger
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

// memoryMaker makes what the ranks of a host share, see conduits.Launch; nil if they
// share nothing.
type memoryMaker func(n int, c conduits.Config) (conduits.JobMemory, error)

// newOutfit is that of size ranks on this host, whose memory is to be like that.
func newOutfit(key jobkey.Key, shared memoryMaker, size int, like conduits.Config) (o outfit, err error) {
	if shared != nil {
		if o.shared, err = shared(size, like); err != nil {
			return o, err
		}
	}
	o.key, err = key.File()
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
	in.file(o.key, jobenv.JobKeyFile, jobenv.FDFolder)
	in.set(jobenv.Rendezvous, o.server)
	in.set(jobenv.Host, o.host)
	if o.iface != "" {
		in.set(jobenv.Iface, o.iface)
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
	key := jobkey.New()
	o, err := newOutfit(key, c.launch().Memory, c.Size, c.memory())
	if err != nil {
		return nil, err
	}
	m := &netMemory{outfit: o}
	at := ifaddr.Loopback()
	if c.Iface != "" {
		at, err = ifaddr.Choose(c.Iface, true)
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
func serve(c *Config, key jobkey.Key, at string) (*rendezvous.Server, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(at, "0"))
	if err != nil {
		return nil, errs.Resource("launch: the rendezvous cannot listen: %v (-iface)", err)
	}
	sc := rendezvous.ServerConfig{
		Key: key, Size: c.Size, Patience: joinPatience, Grace: deathGrace, Logf: c.logf, Rewrite: c.Rewrite,
		Process: c.process,
	}
	if c.remark != nil {
		sc.Note = func(rank int, text string) { c.remark(fmt.Sprintf("rank %d %s", rank, text)) }
	}
	if d := envDuration(c.Env, jobenv.JoinTimeout); d > 0 {
		sc.Patience = d
	}
	if len(c.Freeze) > 0 {
		sc.Patience = freezePatience
	}
	// The rendezvous need not be the first to notice that a host is gone.
	sc.DeadTime = max(envDuration(c.Env, jobenv.DeadTime), rendezvous.DefaultDeadTime)
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
	key    jobkey.Key
	hosts  []*host
}

// newHostsMemory serves the rendezvous at an address of this machine, "" for all
// that it has.
func newHostsMemory(j *job, listen string) (*hostsMemory, error) {
	m := &hostsMemory{key: jobkey.New(), hosts: j.hosts}
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
