package jobenv

import (
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/argon-go/argon/internal/errs"
)

// A launcher says by environment variables which rank a process is. Of each list
// the first variable that is set counts.
type launcher struct {
	name, rank                 string
	size, localRank, localSize []string
	// same is another variable that the launcher sets to the rank; "" for none.
	same  string
	slurm bool // the ranks of a host are what Slurm's variables say

	// The launcher's name of a job: a word for the kind of name and the variables
	// of its parts. There is no name without one of these, or if unnamed is set.
	kind    string
	job     []string
	unnamed string

	// counts says how many processes were started together, and is unset for one
	// that was started by itself; asked is what a script of the launcher has in its
	// place. Both are "" if there is no such variable.
	counts, asked string
	// batch launchers number processes that are no one job; after is a variable
	// whose launcher says more of what was started. See Starter.
	batch bool
	after string
}

// pmi is the name of process managers that speak PMI-1 or PMI-2.
const pmi = "PMI"

// launchers are those that are known. A process may have the variables of more
// than one: Open MPI and MPICH start their daemons with Slurm, whose ranks are
// then not those of the job, so that they come first.
var launchers = [...]launcher{
	{
		name: "Open MPI",
		rank: "OMPI_COMM_WORLD_RANK", size: []string{"OMPI_COMM_WORLD_SIZE"},
		localRank: []string{"OMPI_COMM_WORLD_LOCAL_RANK"}, localSize: []string{"OMPI_COMM_WORLD_LOCAL_SIZE"},
		same: "PMIX_RANK",
		kind: "PMIx", job: []string{"PMIX_NAMESPACE"},
		counts: "OMPI_COMM_WORLD_SIZE",
	},
	{
		name: pmi,
		rank: "PMI_RANK", size: []string{"PMI_SIZE"},
		localRank: []string{"MPI_LOCALRANKID", "PMI_LOCAL_RANK"}, localSize: []string{"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"},
		kind: "PMI", job: []string{"PMI_JOBID"},
		counts: "PMI_SIZE",
	},
	{
		name: "PMIx", // has no variable for the size
		rank: "PMIX_RANK", size: []string{"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS", Size},
		localRank: []string{"SLURM_LOCALID"}, slurm: true,
		kind: "PMIx", job: []string{"PMIX_NAMESPACE"},
		after: "SLURM_PROCID",
	},
	{
		name: "Slurm", // a step's numbers may be others than the allocation's
		rank: "SLURM_PROCID", size: []string{"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"},
		localRank: []string{"SLURM_LOCALID"}, slurm: true,
		// The parts of a heterogeneous job have numbers of their own.
		kind: "Slurm", job: []string{"SLURM_JOB_ID", "SLURM_STEP_ID"}, unnamed: "SLURM_HET_SIZE",
		counts: "SLURM_STEP_NUM_TASKS", asked: "SLURM_NTASKS",
	},
	{
		name: "Kubernetes", // an indexed Job, whose manifest sets the size
		rank: "JOB_COMPLETION_INDEX", size: []string{Size},
		batch: true,
	},
}

// A Place is where a process is in the job that it was started for.
type Place struct {
	Rank, Size int
	// Env looks variables up as the process's environment does. It also has the
	// variables of this package that follow from those of another launcher.
	Env func(key string) string
}

// FindPlace is the place of a process whose variables env looks up, as os.Getenv
// does. ok is false if the process is by itself; an error names what the variables
// say that cannot be.
//
// Rank and Size count before all others. Without them, but only if Rendezvous says
// where ranks find each other, or a process manager can (see Managed), the rank is what
// the first of the launchers says that has numbered the process. Then Place.Env knows
// Rank, Size, LocalRank and LocalSize as far as that launcher has said them, and Conduit
// is hybrid, unless they are set.
func FindPlace(env func(key string) string) (p Place, ok bool, err error) {
	p.Env = env
	rank, size, at := env(Rank), env(Size), env(Rendezvous)
	if rank == "" && (at != "" || Managed(env)) {
		for i := range launchers {
			if l := &launchers[i]; env(l.rank) != "" {
				return l.place(env)
			}
		}
		if size == "" {
			return p, true, errs.BadArg("jobenv: %s=%q is set, so this process is one of several, but nothing says which: no %s and %s, and none of %s",
				Rendezvous, at, Rank, Size, known())
		}
	}
	if rank == "" && size == "" {
		return p, false, nil
	}
	if p.Size, err = strconv.Atoi(size); err != nil || p.Size < 1 || p.Size > MaxRanks {
		return p, true, errs.BadArg("jobenv: ARGON_SIZE=%q is not a number of ranks from 1 to %d; gasrun sets it together with ARGON_RANK=%q",
			size, MaxRanks, rank)
	}
	if p.Rank, err = strconv.Atoi(rank); err != nil || p.Rank < 0 || p.Rank >= p.Size {
		return p, true, errs.BadArg("jobenv: ARGON_RANK=%q is no rank of a job with ARGON_SIZE=%d: ranks are 0 to %d", rank, p.Size, p.Size-1)
	}
	if at != "" && env(Conduit) == "" {
		p.Env = overlay(env, map[string]string{Conduit: "hybrid"})
	}
	return p, true, nil
}

// Managed reports whether a process has to learn from its process manager where the ranks
// meet: that has started several and left each a socket to it, or a folder (see Meeting), no
// gasrun or user has said where, and no user that the processes are jobs by themselves.
func Managed(env func(key string) string) bool {
	s, _ := FindStarter(env)
	return s.Several && (s.Name == pmi && env(PMIFD) != "" || Meeting(env) != "") && env(Rendezvous) == "" && env(JobID) == "" && env(Alone) != "1"
}

// Meeting is the file in which rank 0 of a job that a PMIx launcher has started tells where
// it serves, if all ranks are on this host; "" if not, or if nothing says so.
func Meeting(env func(key string) string) string {
	dir, job := env(PMIxDir), env("PMIX_NAMESPACE")
	if dir == "" || job == "" {
		return ""
	}
	for i := range launchers {
		if l := &launchers[i]; env(l.rank) != "" {
			// Or it is a step of Slurm's that a shell of another step has started.
			outer := l.slurm && !strings.HasSuffix(job, "."+env("SLURM_JOB_ID")+"."+env("SLURM_STEP_ID"))
			if p, _, err := l.place(env); err != nil || l.kind != "PMIx" || outer || p.Env(LocalSize) != strconv.Itoa(p.Size) {
				break
			}
			return filepath.Join(dir, "argon-"+url.PathEscape(job))
		}
	}
	return ""
}

// known lists the variables that name a rank.
func known() string {
	var all []string
	for _, l := range launchers {
		all = append(all, l.rank)
	}
	return strings.Join(all, ", ")
}

// JobName is the launcher's name of the job, with a word for the kind of the name;
// "" if it does not. All ranks of a job must find the same, so that a variable counts
// only if the launcher that has numbered the ranks sets it for all of them.
func JobName(env func(key string) string) string {
	if id := env(JobID); id != "" {
		return "argon " + id
	}
	for i := range launchers {
		l := &launchers[i]
		if env(l.rank) == "" {
			continue
		}
		if len(l.job) == 0 || l.unnamed != "" && env(l.unnamed) != "" {
			return ""
		}
		parts := make([]string, len(l.job))
		for i, key := range l.job {
			if parts[i] = env(key); parts[i] == "" {
				return ""
			}
		}
		return l.kind + " " + strings.Join(parts, ".")
	}
	return ""
}

// A Starter is another launcher that has numbered a process.
type Starter struct {
	Name string
	Said string // the variables that say so, with their values
	// Several reports whether it has started other processes together with this one.
	Several bool
}

// FindStarter is the launcher, if any, that has started a process with these
// variables, or the script that the process is of.
func FindStarter(env func(key string) string) (s Starter, ok bool) {
	for i := range launchers {
		l := &launchers[i]
		rank := env(l.rank)
		if rank == "" || l.batch || l.after != "" && env(l.after) != "" {
			continue
		}
		s = Starter{Name: l.name, Said: l.rank + "=" + rank}
		count := env(l.counts)
		if l.counts != "" && count != "" {
			s.Said += ", " + l.counts + "=" + count
		} else if l.asked != "" && env(l.asked) != "" {
			s.Said += ", " + l.asked + "=" + env(l.asked)
		}
		size, _ := strconv.Atoi(count)
		s.Several = size > 1 || rank != "0"
		return s, true
	}
	return s, false
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

// place is FindPlace for a launcher that has given this process a rank.
func (l *launcher) place(env func(string) string) (p Place, ok bool, err error) {
	bad := func(format string, args ...any) (Place, bool, error) {
		return Place{Env: env}, true, errs.BadArg("jobenv: "+l.name+": "+format, args...)
	}
	if id := env("PMI_JOBID"); l.name == pmi && id != "" && id == env("SLURM_JOB_ID")+"."+env("SLURM_STEP_ID") {
		step := *l // srun --mpi=pmi2: Slurm's variables are those of the ranks, not of daemons
		step.slurm, step.localRank = true, []string{"SLURM_LOCALID"}
		l = &step
	}
	rank, size := setting{l.rank, env(l.rank)}, first(env, l.size)
	if p.Size, err = strconv.Atoi(size.value); err != nil || p.Size < 1 || p.Size > MaxRanks {
		return bad("%v is not a number of ranks from 1 to %d (with %v)", size, MaxRanks, rank)
	}
	if own := env(Size); own != "" && own != strconv.Itoa(p.Size) {
		return bad("%v contradicts %s=%q", size, Size, own)
	}
	if p.Rank, err = strconv.Atoi(rank.value); err != nil || p.Rank < 0 || p.Rank >= p.Size {
		return bad("%v is no rank of a job with %v: ranks are 0 to %d", rank, size, p.Size-1)
	}
	if s := first(env, []string{l.same}); s.value != "" && s.value != rank.value {
		return bad("%v contradicts %v", rank, s)
	}
	more := map[string]string{
		Rank: strconv.Itoa(p.Rank), Size: strconv.Itoa(p.Size), Conduit: "hybrid",
	}
	count := first(env, l.localSize)
	local, err := strconv.Atoi(count.value) // ranks of this host; 0 if unknown
	if l.slurm {
		local, count, err = slurmLocal(env, p.Size)
	}
	if count.value != "" && (err != nil || local < 1 || local > p.Size) {
		return bad("%v does not say how many of %d ranks are on this host", count, p.Size)
	}
	if local > 0 {
		more[LocalSize] = strconv.Itoa(local)
	} else {
		local = p.Size
	}
	if r := first(env, l.localRank); r.value != "" {
		n, err := strconv.Atoi(r.value)
		switch {
		case err != nil || n < 0 || n >= p.Size:
			return bad("%v is no rank of a host in a job with %v", r, size)
		case n >= local:
			return bad("%v is no rank of a host that has %d of them (%v)", r, local, count)
		}
		more[LocalRank] = strconv.Itoa(n)
	}
	p.Env = overlay(env, more)
	return p, true, nil
}

// slurmLocal is the number of ranks on this host, and what says so; 0 and nothing
// if nothing does.
func slurmLocal(env func(string) string, size int) (n int, count setting, err error) {
	if count = (setting{"SLURM_STEP_TASKS_PER_NODE", env("SLURM_STEP_TASKS_PER_NODE")}); count.value != "" {
		n, err = atNode(count.value, env("SLURM_NODEID"))
		return n, count, err
	}
	// The number that was asked for, perhaps for the allocation: nodes may have fewer.
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
		return 0, errs.BadArg("jobenv: node %q of %q", node, list)
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
			return 0, errs.BadArg("jobenv: ranks per node %q", list)
		}
		if n >= 0 && n < k {
			found = v
		}
		n -= k
	}
	return found, nil // 0: the list has no such node
}
