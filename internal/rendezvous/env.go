package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/jobkey"
)

// DefaultLinger is how long a service that lives in rank 0 goes on when rank 0
// has closed its Client and others have not left.
const DefaultLinger = 60 * time.Second

// wordGrace is how much later than the end of a rank's connection the others hear
// of its death if no launcher of ours tells them. They end because of it, and their
// launcher should have noticed by then which ended first, whose status mpirun takes.
const wordGrace = 500 * time.Millisecond

// Setup has the values by which a process joins the rendezvous of its job.
type Setup struct {
	// Server is the service's address, "host:port".
	Server string
	// Key is the job's.
	Key jobkey.Key
	// Job is Hello.Job where that is empty: the same on all ranks, another one in
	// other jobs, "" if the job has been given no name.
	Job string
	// Serve: rank 0's process runs the service, on the port of Server,
	// since no launcher does.
	Serve bool
	// Patience is how long ranks may be missing; 0 means DefaultPatience.
	Patience time.Duration
	// DeadTime is how long a host may be silent until its connections to the
	// service are given up. It counts where the service runs; less than
	// DefaultDeadTime means that, since the service need not be the first to notice.
	DeadTime time.Duration
	// Linger bounds how long Close of rank 0 waits for the others, if its process
	// serves; 0 means DefaultLinger. If some have not left then, the job goes on,
	// but a rank that dies is only noticed by those that talk to it.
	Linger time.Duration
	// Logf prints what the service has to say, see ServerConfig; FromEnv has it
	// print to standard error.
	Logf func(format string, args ...any)

	at      net.Listener // where rank 0 serves, if it listens already
	meeting *meeting     // the file that says so, or nil
}

// FromEnv reads ARGON_RENDEZVOUS, ARGON_RENDEZVOUS_SERVE, ARGON_JOIN_TIMEOUT,
// ARGON_DEADTIME and the job's key from the environment, which env looks up as
// os.Getenv does. The job's name is ARGON_JOBID, or what Slurm, PMI or PMIx call
// it. Without ARGON_RENDEZVOUS, a process that has a process manager (jobenv.Managed)
// learns by it where ranks meet, and the key unless it is set, once: FromEnv waits until
// all ranks have called it, or rank 0 has. Else, or without the key, it returns ErrNotReady, and
// ErrBadArg for all that cannot be, together.
func FromEnv(env func(key string) string) (Setup, error) {
	managed := jobenv.Managed(env)
	s := Setup{Server: env(jobenv.Rendezvous), Logf: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "argon: "+format+"\n", args...)
	}}
	if s.Server == "" && !managed {
		return Setup{}, errs.NotReady("rendezvous: %s=host:port is not set; gasrun sets it, and without gasrun what starts the ranks", jobenv.Rendezvous)
	}
	var all []error
	host, port, err := net.SplitHostPort(s.Server)
	if n, bad := strconv.ParseUint(port, 10, 16); !managed && (err != nil || bad != nil || n == 0 || host == "") {
		all = append(all, errs.BadArg("rendezvous: %s=%q is not host:port with a port from 1 to 65535", jobenv.Rendezvous, s.Server))
	}
	switch v := env(jobenv.RendezvousServe); v {
	case "":
		s.Serve = env(jobenv.JobID) == ""
	case "0", "1":
		s.Serve = v == "1"
	default:
		all = append(all, errs.BadArg("rendezvous: %s=%q is neither 0 nor 1", jobenv.RendezvousServe, v))
	}
	for _, d := range [...]struct {
		key string
		to  *time.Duration
	}{{jobenv.JoinTimeout, &s.Patience}, {jobenv.DeadTime, &s.DeadTime}} {
		v := env(d.key)
		if v == "" {
			continue
		}
		if *d.to, err = time.ParseDuration(v); err != nil || *d.to <= 0 {
			all = append(all, errs.BadArg("rendezvous: %s=%q is not a time above zero such as 90s", d.key, v))
		}
	}
	s.Job = clip(jobenv.JobName(env), MaxJob)
	if s.Key, err = jobkey.LoadFrom(env); err != nil && !(managed && errors.Is(err, errs.ErrNotReady)) {
		all = append(all, fmt.Errorf("rendezvous: %w", err))
	}
	if err := errors.Join(all...); err != nil {
		return Setup{}, err
	}
	if managed {
		return s.meet(env)
	}
	return s, nil
}

// Join starts the service if that is up to this rank, and joins it. If ctx has no
// deadline, a rank tries for Patience to reach the service.
//
// A service that it has started lives until the Client is closed. Close then
// waits until all other ranks have left too or know that the job has failed, for
// Linger at most.
func (s Setup) Join(ctx context.Context, h Hello, e Events) (*Client, error) {
	defer s.meeting.close()
	if s.Patience == 0 {
		s.Patience = DefaultPatience
	}
	if s.Linger == 0 {
		s.Linger = DefaultLinger
	}
	if h.Job == "" {
		h.Job = s.Job
	}
	if err := h.check(); err != nil {
		return nil, err
	}
	var srv *Server
	dial := s.Server
	if s.Serve && h.Rank == 0 {
		l, err := s.at, error(nil)
		if l == nil {
			l, err = listen(s.Server)
		}
		if err != nil {
			return nil, err
		}
		srv, err = Serve(l, ServerConfig{
			Key: s.Key, Job: h.Job, Size: h.Size, Patience: s.Patience, DeadTime: max(s.DeadTime, DefaultDeadTime),
			InRank: true, Logf: s.Logf, Grace: wordGrace,
		})
		if err != nil {
			l.Close()
			return nil, err
		}
		// Its own name may not be known here, or not yet.
		if at := srv.Addr(); at.Addr().IsUnspecified() {
			dial = net.JoinHostPort("localhost", strconv.Itoa(int(at.Port())))
		} else {
			dial = at.String()
		}
	}
	c, err := join(ctx, s.Server, dial, s.Key, h, e, s.Patience, s.Serve)
	if srv != nil {
		if err != nil {
			srv.Fail(0, jobenv.StatusFailed, err.Error()) // unless it has failed before
			srv.shutdown(0)
			return nil, err
		}
		c.serving = func() { srv.shutdown(s.Linger) }
	}
	return c, err
}

// listen opens the port of the service: on its address if that is one of this
// host, else on all, for a name may be one that only others resolve to this host.
func listen(server string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return nil, errs.BadArg("rendezvous: %q is not host:port (%s)", server, jobenv.Rendezvous)
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "localhost" {
		host = ""
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		l, err = net.Listen("tcp", net.JoinHostPort("", port))
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, errs.Resource("rendezvous: rank 0 cannot serve at %s: somebody does already: another job's rank 0, or a launcher; two jobs at a time need two ports (%s, %s=0)", server, jobenv.Rendezvous, jobenv.RendezvousServe)
	}
	if err != nil {
		return nil, errs.Resource("rendezvous: rank 0 cannot serve at %s: %s (%s)", server, reason(err), jobenv.Rendezvous)
	}
	return l, nil
}
