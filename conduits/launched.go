package conduits

import "github.com/argon-go/argon/internal/job/jobenv"

// Launched is this process's place in the job that it was started for: what
// package boot, or a program without it, hands to a Conduit's Join. env looks variables up,
// as os.Getenv does. ok is false if the process is by itself; an error names what
// the variables say that cannot be.
//
// gasrun sets ARGON_RANK and ARGON_SIZE, and other launchers that do are believed, too.
// Without them, but only if ARGON_RENDEZVOUS says where ranks find each other, or their
// process manager speaks PMI-1 or, on one host, has a folder for them, the rank is what
// Open MPI, PMI, PMIx or Slurm say (the first of them, for they may have started each
// other), or the index of a Kubernetes Job, together with ARGON_SIZE. Then Job.Env knows ARGON_RANK, ARGON_SIZE, ARGON_LOCAL_RANK
// and ARGON_LOCAL_SIZE as far as the launcher has said that, and ARGON_CONDUIT is
// hybrid, unless they are set. Ranks of a host need not have consecutive numbers
// then.
func Launched(env func(key string) string) (j Job, ok bool, err error) {
	p, ok, err := jobenv.FindPlace(env)
	return Job{Rank: p.Rank, Size: p.Size, Env: p.Env}, ok, err
}
