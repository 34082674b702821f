package conduits

import (
	"strconv"

	"github.com/argon-go/argon/internal/errs"
)

// maxLaunched bounds the ranks of a job: a rank is the owner of a GAT entry,
// which has 16 bits for it (seed thesis, figure 5-8).
const maxLaunched = 1 << 16

// Launched is this process's place in the job that gasrun started it for: what a
// program without package gas hands to a Conduit's Join. env looks variables up,
// as os.Getenv does; it reads ARGON_RANK and ARGON_SIZE. ok is false if gasrun
// did not start the process, and an error names what the variables say that
// cannot be.
func Launched(env func(key string) string) (j Job, ok bool, err error) {
	rank, size := env("ARGON_RANK"), env("ARGON_SIZE")
	if rank == "" && size == "" {
		return j, false, nil
	}
	j.Env = env
	if j.Size, err = strconv.Atoi(size); err != nil || j.Size < 1 || j.Size > maxLaunched {
		return j, true, errs.BadArg("conduits: ARGON_SIZE=%q is not a number of ranks from 1 to %d; gasrun sets it together with ARGON_RANK=%q",
			size, maxLaunched, rank)
	}
	if j.Rank, err = strconv.Atoi(rank); err != nil || j.Rank < 0 || j.Rank >= j.Size {
		return j, true, errs.BadArg("conduits: ARGON_RANK=%q is no rank of a job with ARGON_SIZE=%d: ranks are 0 to %d", rank, j.Size, j.Size-1)
	}
	return j, true, nil
}
