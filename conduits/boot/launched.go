package boot

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
)

// joined is set when this process has taken its rank.
var joined atomic.Bool

// keepInherited has programs that this one runs not inherit what the launcher has left
// it open: the job's memory and its key.
func keepInherited(j conduits.Job) {
	if fd, err := strconv.Atoi(j.Env(jobenv.SegFD)); err == nil {
		syscall.CloseOnExec(fd)
	}
	if s, ok := strings.CutPrefix(j.Env(jobenv.JobKeyFile), jobenv.FDFolder); ok {
		if fd, err := strconv.Atoi(s); err == nil {
			syscall.CloseOnExec(fd)
		}
	}
}

// runLaunched runs the one rank of a process that a launcher started.
func runLaunched(ctx context.Context, cfg *Config, cd conduits.Conduit, j conduits.Job, begin func(ep conduits.Endpoint) Rank) error {
	if joined.Swap(true) {
		return errs.NotReady("%s: Run called again: a process of a launched job is rank %d once", cfg.Name, j.Rank)
	}
	jobenv.Take()
	if cd.Join == nil {
		return errs.NotSupported("%s: conduit %s cannot join a launched job", cfg.Name, cd.Name)
	}
	if err := watchLauncher(cfg.Name, j.Env(jobenv.CtlFD)); err != nil {
		return errs.Misstarted(err)
	}
	if j.Env(jobenv.CtlFD) == "" {
		foreign.Store(true)
		j.Failed = func(cause *conduits.PeerError) { obey(j.Rank, cause) }
	}
	if j.Env(jobenv.Freeze) == "1" {
		fmt.Fprintf(cfg.Output, "argon: rank %d: stopped before it joins; debug or continue (kill -CONT) process %d\n", j.Rank, os.Getpid())
		if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
			return fmt.Errorf("%s: %s: %w", cfg.Name, jobenv.Freeze, err)
		}
	}
	if foreign.Load() {
		if note := bindRank(j); os.Getenv("ARGON_VERBOSEENV") == "1" {
			fmt.Fprintf(cfg.Output, "argon: rank %d: %s\n", j.Rank, note)
		}
	}
	ep, err := joinJob(ctx, cfg, cd, j)
	if err != nil {
		return err
	}
	eps, err := recorded(cfg, []conduits.Endpoint{ep})
	if err != nil {
		return err
	}
	return runRanks(ctx, cfg, eps, begin)
}

// withKey is env in which the job's key is itself, and not a file.
func withKey(env func(string) string, key string) func(string) string {
	return func(name string) string {
		switch name {
		case jobenv.JobKey:
			return key
		case jobenv.JobKeyFile:
			return ""
		}
		return env(name)
	}
}

// joinJob is cd.Join that the end of ctx ends. Nothing stops Join: the rank fails, and
// leaves, when it has joined after all, so that the others hear the cause, unless the
// process has ended before.
func joinJob(ctx context.Context, cfg *Config, cd conduits.Conduit, j conduits.Job) (conduits.Endpoint, error) {
	c := conduits.Config{Lanes: cfg.Lanes, Remark: func(line string) { fmt.Fprintf(cfg.Output, "argon: rank %d: %s\n", j.Rank, line) }}
	if ctx.Done() == nil {
		return cd.Join(j, c)
	}
	var ep conduits.Endpoint
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		ep, err = cd.Join(j, c)
	}()
	select {
	case <-done:
		return ep, err
	case <-ctx.Done():
	}
	go func() {
		if <-done; err == nil {
			ep.Fail(cfg.ended(ctx))
			_ = ep.Close() // no rank is left to tell
		}
	}()
	return nil, cfg.ended(ctx)
}

// watchLauncher ends the process when the launcher is gone, which closes the
// other end of the pipe that it left us. prefix begins errors.
func watchLauncher(prefix, s string) error {
	if s == "" {
		return nil
	}
	fd, err := strconv.Atoi(s)
	if err != nil || fd < 0 {
		return errs.BadArg("%s: %s=%q is no file descriptor; gasrun sets it", prefix, jobenv.CtlFD, s)
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return errs.BadArg("%s: %s=%d is not open (%v): environment of a rank without the rank; gasrun sets it", prefix, jobenv.CtlFD, fd, err)
	}
	syscall.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "control pipe")
	go func() {
		// Bytes are for later versions; only the end counts.
		io.Copy(io.Discard, f)
		fmt.Fprintln(os.Stderr, "argon: the launcher is gone")
		os.Exit(jobenv.StatusPeerFailed)
	}()
	return nil
}
