package boot

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/sys/place"
)

// bindRank binds a rank that another launcher than gasrun has started to its part of the processors
// of its host, unless that launcher has bound it, and returns what came of it.
func bindRank(j conduits.Job) (note string) {
	how := place.Bind(j.Env(jobenv.Bind)) // env.CheckValues has looked at it
	if how == "" {
		how = place.Spread
	}
	rank, err1 := strconv.Atoi(j.Env(jobenv.LocalRank))
	ranks, err2 := strconv.Atoi(j.Env(jobenv.LocalSize))
	allowed, err := sys.AffinityOf(os.Getpid())
	switch {
	case how == place.None:
		return "not bound (" + jobenv.Bind + ")"
	case err != nil:
		return "not bound: " + err.Error()
	case err1 != nil || err2 != nil || rank < 0 || rank >= ranks:
		return "not bound: nothing says which of how many ranks of the host this is"
	}
	if by := boundBy(os.Getenv, allowed); by != "" {
		return "processors " + place.List(allowed) + ", as " + by + " has it"
	}
	set, err := takeSeat(place.Read(os.DirFS("/"), allowed), how, rank, ranks, allowed)
	if err != nil {
		note = ", " + err.Error()
	}
	procs := min(len(allowed), max(sys.QuotaCPU(), 2)) // as the runtime chooses
	if set.CPUs == nil {
		return "not bound: no processor of " + place.List(allowed) + " is online"
	}
	if err := sys.BindProcess(set.CPUs); err != nil {
		return "not bound: " + err.Error()
	}
	_ = os.Setenv(jobenv.Sharers, strconv.Itoa(set.Ranks))
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) == procs { // else the user or the program has decided
		runtime.GOMAXPROCS(place.Procs(set, sys.QuotaCPU(), ranks))
	}
	return "processors " + place.List(set.CPUs) + note
}

// takeSeat takes, as long as this process runs, the set of one of the host's ranks, each of
// which chooses for itself: its part if no job has taken that, what is free of it, or else as many of the processors that the fewest have. The claims
// of its own job's ranks are not told from others.
func takeSeat(t *place.Topology, how place.Bind, rank, ranks int, allowed []int) (set place.Set, err error) {
	part := place.Divide(t, how, ranks, func(int) int { return 0 })[rank]
	_, err = place.Take(allowed, func(load func(cpu int) int) []int {
		set = part
		if part.Ranks == 1 {
			set.CPUs = leastTaken(part.CPUs, allowed, load)
		}
		return set.CPUs
	})
	return set, err
}

// leastTaken has the free processors of part, or else as many of allowed as the fewest have taken.
func leastTaken(part, allowed []int, load func(cpu int) int) []int {
	free := slices.DeleteFunc(slices.Clone(part), func(cpu int) bool { return load(cpu) > 0 })
	if len(free) > 0 || len(part) == 0 {
		return free
	}
	all := slices.Clone(allowed)
	slices.SortStableFunc(all, func(a, b int) int { return load(a) - load(b) })
	if load(all[0]) == load(part[0]) { // nothing is better
		return part
	}
	return slices.Sorted(slices.Values(all[:len(part)]))
}

// boundBy is the launcher that has bound this process to allowed, as it says by variables or shows by
// having more processors itself; "" if it has not.
func boundBy(getenv func(string) string, allowed []int) string {
	switch kind := getenv("SLURM_CPU_BIND_TYPE"); { // srun(1), "OUTPUT ENVIRONMENT VARIABLES"
	case kind != "" && kind != "none":
		return "Slurm"
	case getenv("OMPI_MCA_orte_bound_at_launch") != "":
		return "Open MPI"
	}
	if above, err := sys.AffinityOf(os.Getppid()); err == nil && len(above) > len(allowed) {
		return fmt.Sprintf("process %d, which has started it and has %d,", os.Getppid(), len(above))
	}
	return ""
}
