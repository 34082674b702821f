package conduits

import (
	"strconv"
	"strings"

	"github.com/argon-go/argon/internal/errs"
)

// maxLaunched bounds the ranks of a job: a rank is the owner of a GAT entry,
// which has 16 bits for it (seed thesis, figure 5-8).
const maxLaunched = 1 << 16

// The environment variables that say where in a job a process is.
const (
	envRank       = "ARGON_RANK"
	envSize       = "ARGON_SIZE"
	envLocalRank  = "ARGON_LOCAL_RANK"
	envLocalSize  = "ARGON_LOCAL_SIZE"
	envConduit    = "ARGON_CONDUIT"
	envRendezvous = "ARGON_RENDEZVOUS"
)

// A launcher says by environment variables which rank a process is. Of each list
// the first variable that is set counts.
type launcher struct {
	name                 string
	rank, size           []string
	localRank, localSize []string
	// same is another variable that the launcher sets to the rank; "" for none.
	same  string
	slurm bool // the ranks of a host are what Slurm's variables say
}

// launchers are those that are known. A process may have the variables of more
// than one: Open MPI and MPICH start their daemons with Slurm, whose ranks are
// then not those of the job, so that they come first.
var launchers = [...]launcher{
	{
		name: "Open MPI",
		rank: []string{"OMPI_COMM_WORLD_RANK"}, size: []string{"OMPI_COMM_WORLD_SIZE"},
		localRank: []string{"OMPI_COMM_WORLD_LOCAL_RANK"}, localSize: []string{"OMPI_COMM_WORLD_LOCAL_SIZE"},
		same: "PMIX_RANK",
	},
	{
		name: "PMI",
		rank: []string{"PMI_RANK"}, size: []string{"PMI_SIZE"},
		localRank: []string{"MPI_LOCALRANKID", "PMI_LOCAL_RANK"}, localSize: []string{"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"},
	},
	{
		name: "PMIx", // has no variable for the size
		rank: []string{"PMIX_RANK"}, size: []string{"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS", envSize},
		localRank: []string{"SLURM_LOCALID"}, slurm: true,
	},
	{
		name: "Slurm", // a step's numbers may be others than the allocation's
		rank: []string{"SLURM_PROCID"}, size: []string{"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"},
		localRank: []string{"SLURM_LOCALID"}, slurm: true,
	},
	{
		name: "Kubernetes", // an indexed Job, whose manifest sets the size
		rank: []string{"JOB_COMPLETION_INDEX"}, size: []string{envSize},
	},
}

// Launched is this process's place in the job that it was started for: what a
// program without package gas hands to a Conduit's Join. env looks variables up,
// as os.Getenv does. ok is false if the process is by itself; an error names what
// the variables say that cannot be.
//
// gasrun sets ARGON_RANK and ARGON_SIZE, and whoever else does is believed, too.
// Without them, but only if ARGON_RENDEZVOUS says where ranks find each other, the
// rank is what Open MPI, PMI, PMIx or Slurm say (the first of them, for they may
// have started each other), or the index of a Kubernetes Job, together with
// ARGON_SIZE. Then Job.Env knows ARGON_RANK, ARGON_SIZE, ARGON_LOCAL_RANK and
// ARGON_LOCAL_SIZE as far as the launcher has said that, and ARGON_CONDUIT is
// hybrid, unless they are set. Ranks of a host need not have consecutive numbers
// then.
func Launched(env func(key string) string) (j Job, ok bool, err error) {
	j.Env = env
	rank, size, at := env(envRank), env(envSize), env(envRendezvous)
	if rank == "" && at != "" {
		for i := range launchers {
			if l := &launchers[i]; first(env, l.rank).value != "" {
				return l.place(env)
			}
		}
		if size == "" {
			return j, true, errs.BadArg("conduits: %s=%q is set, so this process is one of several, but nothing says which: no %s and %s, and none of %s",
				envRendezvous, at, envRank, envSize, known())
		}
	}
	if rank == "" && size == "" {
		return j, false, nil
	}
	if j.Size, err = strconv.Atoi(size); err != nil || j.Size < 1 || j.Size > maxLaunched {
		return j, true, errs.BadArg("conduits: ARGON_SIZE=%q is not a number of ranks from 1 to %d; gasrun sets it together with ARGON_RANK=%q",
			size, maxLaunched, rank)
	}
	if j.Rank, err = strconv.Atoi(rank); err != nil || j.Rank < 0 || j.Rank >= j.Size {
		return j, true, errs.BadArg("conduits: ARGON_RANK=%q is no rank of a job with ARGON_SIZE=%d: ranks are 0 to %d", rank, j.Size, j.Size-1)
	}
	if at != "" && env(envConduit) == "" {
		j.Env = overlay(env, map[string]string{envConduit: "hybrid"})
	}
	return j, true, nil
}

// known lists the variables that name a rank.
func known() string {
	var all []string
	for _, l := range launchers {
		all = append(all, l.rank[0])
	}
	return strings.Join(all, ", ")
}

// setting is a variable with its value.
type setting struct{ key, value string }

func (s setting) String() string { return s.key + "=" + strconv.Quote(s.value) }

// first is the first of keys that is set, or the first without a value.
func first(env func(string) string, keys []string) setting {
	for _, k := range keys {
		if v := env(k); v != "" {
			return setting{k, v}
		}
	}
	if len(keys) == 0 {
		return setting{}
	}
	return setting{key: keys[0]}
}

// overlay is env with other variables, where env has none.
func overlay(env func(string) string, more map[string]string) func(string) string {
	return func(key string) string {
		if v := env(key); v != "" {
			return v
		}
		return more[key]
	}
}

// place is Launched for a launcher that has given this process a rank.
func (l *launcher) place(env func(string) string) (j Job, ok bool, err error) {
	bad := func(format string, args ...any) (Job, bool, error) {
		return Job{Env: env}, true, errs.BadArg("conduits: "+l.name+": "+format, args...)
	}
	rank, size := first(env, l.rank), first(env, l.size)
	if j.Size, err = strconv.Atoi(size.value); err != nil || j.Size < 1 || j.Size > maxLaunched {
		return bad("%v is not a number of ranks from 1 to %d (with %v)", size, maxLaunched, rank)
	}
	if own := env(envSize); own != "" && own != strconv.Itoa(j.Size) {
		return bad("%v contradicts %s=%q", size, envSize, own)
	}
	if j.Rank, err = strconv.Atoi(rank.value); err != nil || j.Rank < 0 || j.Rank >= j.Size {
		return bad("%v is no rank of a job with %v: ranks are 0 to %d", rank, size, j.Size-1)
	}
	if s := first(env, []string{l.same}); s.value != "" && s.value != rank.value {
		return bad("%v contradicts %v", rank, s)
	}
	more := map[string]string{
		envRank: strconv.Itoa(j.Rank), envSize: strconv.Itoa(j.Size), envConduit: "hybrid",
	}
	count := first(env, l.localSize)
	local, err := strconv.Atoi(count.value) // ranks of this host; 0 if unknown
	if l.slurm {
		local, count, err = slurmLocal(env, j.Size)
	}
	if count.value != "" && (err != nil || local < 1 || local > j.Size) {
		return bad("%v does not say how many of %d ranks are on this host", count, j.Size)
	}
	if local > 0 {
		more[envLocalSize] = strconv.Itoa(local)
	} else {
		local = j.Size
	}
	if r := first(env, l.localRank); r.value != "" {
		n, err := strconv.Atoi(r.value)
		switch {
		case err != nil || n < 0 || n >= j.Size:
			return bad("%v is no rank of a host in a job with %v", r, size)
		case n >= local:
			return bad("%v is no rank of a host that has %d of them (%v)", r, local, count)
		}
		more[envLocalRank] = strconv.Itoa(n)
	}
	j.Env = overlay(env, more)
	return j, true, nil
}

// slurmLocal is the number of ranks on this host, and what says so; 0 and nothing
// if nothing does.
func slurmLocal(env func(string) string, size int) (n int, count setting, err error) {
	if count = (setting{"SLURM_STEP_TASKS_PER_NODE", env("SLURM_STEP_TASKS_PER_NODE")}); count.value != "" {
		n, err = atNode(count.value, env("SLURM_NODEID"))
		return n, count, err
	}
	// What was asked for, perhaps for the allocation: nodes may have fewer.
	count = setting{"SLURM_NTASKS_PER_NODE", env("SLURM_NTASKS_PER_NODE")}
	n, err = strconv.Atoi(count.value)
	nodes := first(env, []string{"SLURM_STEP_NUM_NODES", "SLURM_NNODES"})
	if k, bad := strconv.Atoi(nodes.value); err == nil && bad == nil && n > 0 && k == size/n && k*n == size {
		return n, count, nil
	}
	return 0, setting{}, nil
}

// atNode is the number of ranks on a node, of a list such as "4(x2),3": two nodes
// with 4 each and one with 3.
func atNode(list, node string) (int, error) {
	n, err := strconv.Atoi(node)
	if node == "" && !strings.ContainsAny(list, ",(") {
		n, err = 0, nil // there is one node
	}
	if err != nil || n < 0 {
		return 0, errs.BadArg("conduits: node %q of %q", node, list)
	}
	found := 0
	for item := range strings.SplitSeq(list, ",") {
		count, times, repeated := strings.Cut(item, "(x")
		v, err := strconv.Atoi(count)
		k := 1
		if err == nil && repeated {
			digits, closed := strings.CutSuffix(times, ")")
			if k, err = strconv.Atoi(digits); !closed {
				err = strconv.ErrSyntax
			}
		}
		if err != nil || v < 1 || k < 1 {
			return 0, errs.BadArg("conduits: ranks per node %q", list)
		}
		if n >= 0 && n < k {
			found = v
		}
		n -= k
	}
	return found, nil // 0: the list has no such node
}
