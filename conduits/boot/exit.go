package boot

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
)

// Exit ends the process with what Run returned: status 0 for nil; else it prints
// "argon: " and the error to standard error and ends with status 1, or 2 if the
// program was started in a way that cannot be meant, such as with a variable
// ARGON_* that there is not, or a value that it cannot have. If a rank has ended the
// job by am.Messenger.Exit, it prints nothing and ends with the status given there. A
// rank that failed only because another one had ends with 121 under gasrun, and under
// other launchers with the status of that other one as far as it is known, else 1,
// so that the launcher's own status is that of the cause. There SIGTERM, which they
// send when a rank has failed, ends the process in the same way from the job's
// failure on, unless it is ignored: also before Run has returned.
func Exit(err error) {
	if err == nil {
		os.Exit(0)
	}
	var exit *errs.ExitError
	if errors.As(err, &exit) {
		os.Exit(exit.Code)
	}
	fmt.Fprintf(os.Stderr, "argon: %v\n", err)
	os.Exit(status(err))
}

// alone reports whether this process, which has no place in a job, may be a job by
// itself: not if another launcher has started several processes, which would then
// be as many jobs where one was meant, unless ARGON_ALONE is 1. The remark, if
// there is one, is for a process that a launcher has started alone: the script of a
// Slurm job, in which srun has been forgotten, looks the same. prefix begins errors.
func alone(prefix string, env func(string) string) (remark string, err error) {
	switch v := env(jobenv.Alone); v {
	case "1":
		return "", nil
	case "", "0":
	default:
		return "", errs.BadArg("%s: %s=%q is neither 0 nor 1", prefix, jobenv.Alone, v)
	}
	l, ok := jobenv.FindStarter(env)
	switch {
	case ok && l.Several:
		better := ""
		if l.Name == "Slurm" {
			better = "start them by srun --mpi=pmi2, or "
		}
		return "", errs.WithStatus(errs.BadArg("%s: %s (%s) has started several processes and nothing says where they meet, so each would be a job by itself: %sset ARGON_RENDEZVOUS=host:port and ARGON_JOB_KEY_FILE for all, or start them with gasrun -n, or set %s=1 if that is meant",
			prefix, l.Name, l.Said, better, jobenv.Alone), jobenv.StatusUsage)
	case ok:
		return fmt.Sprintf("%s (%s) has started this process alone, so it is a job by itself; set %s=1 if that is meant", l.Name, l.Said, jobenv.Alone), nil
	}
	return "", nil
}

// foreign is set when this process has taken its rank in a job that gasrun does not
// look after.
var foreign atomic.Bool

// status is the exit status of a process whose Run has returned err, which is not
// nil: that of errs.WithStatus, else 1. A rank that has failed only
// because of another one ends with 121 under gasrun, which knows how that other
// one has ended. Other launchers take the largest status (srun), their bitwise or
// (MPICH) or the first (Open MPI), so there it ends with the status of the rank
// that is the cause, or 1, the least, if that is not known.
func status(err error) int {
	var r *RankError
	s, said := errs.ExitStatus(err)
	if errors.As(err, &r) && r.followed() || r == nil && errors.Is(err, errs.ErrPeer) {
		if !foreign.Load() {
			return jobenv.StatusPeerFailed
		}
	}
	if !said || s < 1 || s > 255 {
		return jobenv.StatusFailed
	}
	return s
}

// obey is called when the job that this process is a rank of has failed, if no
// gasrun looks after it. The launcher then ends the other ranks by SIGTERM, and
// srun would give the job the status 143 for those that die of it, so that the
// process ends with the status of the job's failure. The rank that is the cause may be
// slower than those which end because of it: it says then what it would have said.
func obey(rank int, cause *conduits.PeerError) {
	if signal.Ignored(syscall.SIGTERM) {
		return
	}
	err := error(cause)
	if cause.Rank == rank && !cause.Own {
		err = cause.Err
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	go func() {
		<-told
		Exit(&RankError{Rank: rank, Err: err})
	}()
}
