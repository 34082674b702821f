package launch

import (
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
	"github.com/argon-go/argon/internal/rendezvous"
)

// The patience of the rendezvous. Ranks that die are noticed by the launcher, so
// it need only be longer than what a program may do before it joins.
const (
	joinPatience   = 10 * time.Minute
	freezePatience = 365 * 24 * time.Hour // for ranks in a debugger
)

// DeathGrace is how long the rendezvous lets the launcher say how a rank ended
// whose connection is gone. Tests have more of it for slow machines.
var DeathGrace = 500 * time.Millisecond

// An outfit has the files and variables that ranks of one host inherit.
type outfit struct {
	file    *os.File // what they share, of which the variable fileKey has the number; nil: nothing
	fileKey string
	vars    []string // KEY=VALUE

	// Of conduits that use the network:
	key    *os.File // of the job
	shared Memory   // of the ranks of this host; nil if they share none
}

// newOutfit is that of t's ranks, which find the others at server by key, and whose memory,
// if they share any, is to be like that.
func newOutfit(t *task, key jobkey.Key, server string, like conduits.Config) (o outfit, err error) {
	if l, _ := launched(t.Conduit); t.Shared {
		if o.shared, err = l.Memory(t.Count, like); err != nil {
			return o, err
		}
		o.file, o.fileKey = o.shared.File(), jobenv.SegFD
	}
	o.vars = []string{jobenv.Rendezvous + "=" + server, jobenv.Host + "=" + t.Host}
	if t.Iface != "" {
		o.vars = append(o.vars, jobenv.Iface+"="+t.Iface)
	}
	if o.key, err = key.File(); err != nil {
		o.close()
	}
	return o, err
}

// bequeath has ranks inherit it.
func (o *outfit) bequeath(in *inheritance) {
	if o.file != nil {
		in.file(o.file, o.fileKey, "")
	}
	if o.key != nil {
		in.file(o.key, jobenv.JobKeyFile, jobenv.FDFolder)
	}
	in.vars = append(in.vars, o.vars...)
}

func (o *outfit) close() {
	if o.key != nil {
		o.key.Close()
	}
	if o.shared != nil {
		_ = o.shared.Close()
	}
}

// serve runs the rendezvous of a job at an address of this host; "" stands for
// all.
func serve(c *Config, key jobkey.Key, at string) (*rendezvous.Server, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(at, "0"))
	if err != nil {
		return nil, errs.Resource("launch: the rendezvous cannot listen: %v (-iface)", err)
	}
	sc := rendezvous.ServerConfig{
		Key: key, Size: c.Size, Patience: joinPatience, Grace: DeathGrace, Logf: c.logf, Rewrite: c.Rewrite,
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

// rankEnv is the value of a variable for ranks whose environment has env besides this
// process's.
func rankEnv(env []string, key string) string {
	v := os.Getenv(key)
	for _, kv := range env { // the last setting counts
		if k, s, _ := strings.Cut(kv, "="); k == key {
			v = s
		}
	}
	return v
}

// envDuration is the time that a variable holds for ranks, 0 if it holds none: ranks, which
// read it too, complain.
func envDuration(env []string, key string) time.Duration {
	d, _ := time.ParseDuration(rankEnv(env, key))
	return d
}

// netMemory is the Memory of ranks that find each other at a rendezvous: their states are
// those that they report there.
type netMemory struct {
	server *rendezvous.Server
	key    jobkey.Key
	hosts  []*host
}

// newNetMemory serves the rendezvous at an address of this machine, "" for all that it has.
func newNetMemory(j *job, listen string) (m *netMemory, err error) {
	m = &netMemory{key: jobkey.New(), hosts: j.hosts}
	m.server, err = serve(&j.Config, m.key, listen)
	return m, err
}

// File is nil: memory is shared within hosts at most.
func (*netMemory) File() *os.File { return nil }

// State asks the rendezvous, which ranks tell when they leave in good order
// before they end.
func (m *netMemory) State(rank int) State {
	switch m.server.State(rank) {
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

// Fail tells all ranks, those of the same host that wait in shared memory as well.
func (m *netMemory) Fail(rank, status int, cause string) {
	m.server.Fail(rank, status, cause)
	for _, h := range m.hosts {
		if rank >= h.first && rank < h.first+h.size {
			h.fail(rank, status, cause)
		}
	}
}

// Failure is the first failure that the rendezvous knows of.
func (m *netMemory) Failure() (rank, status int, cause string, ok bool) { return m.server.Failure() }

// Close ends the service.
func (m *netMemory) Close() error { return m.server.Close() }
