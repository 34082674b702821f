package launch

import (
	"os"
	"strconv"

	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/sys/place"
)

// Bind says where ranks may run, see package place.
type Bind = place.Bind

// The bindings.
const (
	BindSpread = place.Spread
	BindCore   = place.Core
	BindNUMA   = place.NUMA
	BindNone   = place.None
)

// ParseBind reads a Bind.
func ParseBind(s string) (Bind, error) { return place.ParseBind(s) }

// seats are where the ranks of a host run. The zero value binds none.
type seats struct {
	Sets  []place.Set // by rank
	Nodes []int       // the memory node of each set, -1 for none
	Note  string      // why ranks are not kept apart, or not from other jobs
	All   int         // ranks of the job on this machine
	claim *place.Claim
}

// part is the seats of n ranks from first on.
func (s *seats) part(first, n int) seats {
	p := seats{All: s.All}
	if first == 0 {
		p.Note = s.Note
	}
	if s.Sets != nil {
		p.Sets, p.Nodes = s.Sets[first:first+n], s.Nodes[first:first+n]
	}
	return p
}

// takeSeats divides the processors that this process may use among so many ranks, and has other jobs
// take others until the claim is released.
func takeSeats(how Bind, ranks int, spawn *spawner) (s seats) {
	if how == BindNone || how == "" {
		return s
	}
	s.All = ranks
	var allowed []int
	var err error
	spawn.do(func() { allowed, err = sys.Affinity() })
	if err != nil {
		s.Note = "not bound: " + err.Error()
		return s
	}
	t := place.Read(os.DirFS("/"), allowed)
	s.claim, err = place.Take(allowed, func(load func(cpu int) int) (all []int) {
		s.Sets = place.Divide(t, how, ranks, load)
		for _, set := range s.Sets {
			all = append(all, set.CPUs...)
		}
		return all
	})
	if err != nil {
		s.Note = bare(err)
	}
	for _, set := range s.Sets {
		node, ok := t.Node(set.CPUs)
		if !ok {
			node = -1
		}
		s.Nodes = append(s.Nodes, node)
	}
	return s
}

// seat has f start a process in a set of the spawner's thread, and returns where that is, for
// -v. If that thread cannot be bound the process runs wherever it may.
func (s *seats) seat(i int, f func(set place.Set)) (where string) {
	if i >= len(s.Sets) || s.Sets[i].CPUs == nil {
		f(place.Set{})
		if i == 0 && s.Note != "" {
			return ", " + s.Note
		}
		return ""
	}
	set := s.Sets[i]
	before, err := sys.Affinity()
	if err == nil {
		err = sys.SetAffinity(set.CPUs)
	}
	if err != nil {
		f(place.Set{})
		return ", not bound: " + err.Error()
	}
	f(set)
	_ = sys.SetAffinity(before) // what it was; the next rank has a set of its own all the same
	where = ", processors " + place.List(set.CPUs)
	if s.Nodes[i] >= 0 {
		where += " of memory node " + strconv.Itoa(s.Nodes[i])
	}
	if set.Ranks > 1 {
		where += " with " + strconv.Itoa(set.Ranks-1) + " more"
	}
	if i == 0 && s.Note != "" {
		where += ", " + s.Note
	}
	return where
}

// variables are those of a rank in a set, of a job with the configuration c.
func (s *seats) variables(set place.Set, c *Config) (vars []string) {
	if set.CPUs == nil {
		return nil
	}
	vars = append(vars, jobenv.Sharers+"="+strconv.Itoa(set.Ranks))
	const procs = "GOMAXPROCS"
	if rankEnv(c.Env, procs) == "" {
		vars = append(vars, procs+"="+strconv.Itoa(place.Procs(set, sys.QuotaCPU(), s.All)))
	}
	return vars
}
