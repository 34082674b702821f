package place

import (
	"maps"
	"slices"

	"github.com/argon-go/argon/internal/errs"
)

// Bind is how ranks are bound to processors.
type Bind string

// The ways to bind.
const (
	Spread Bind = "spread" // all processors are divided evenly
	Core   Bind = "core"   // a core for each rank, the first ones
	NUMA   Bind = "numa"   // the processors of a memory node, or of several whole ones
	None   Bind = "none"   // ranks run wherever the system has them run
)

// ParseBind reads a Bind.
func ParseBind(s string) (Bind, error) {
	switch b := Bind(s); b {
	case Spread, Core, NUMA, None:
		return b, nil
	}
	return "", errs.BadArg("place: binding %q: known are %s, %s, %s and %s (-bind, ARGON_BIND)", s, Spread, Core, NUMA, None)
}

// A Set is where a rank runs.
type Set struct {
	CPUs []int // ascending; nil: the rank is not bound
	// Ranks is how many ranks of the job run there.
	Ranks int
}

// Divide returns the sets of so many ranks. load is how many other jobs have taken a
// processor; of those which fewer have taken only as many are used as it takes for each rank to have a
// processor. Sets are disjoint if there are as many processors as ranks, and then:
//
//   - Spread uses all of those, and sets differ by at most one core, or where there are fewer cores
//     than ranks by one thread of a core. Threads of a core are in one set unless each rank has just
//     a thread. Neighbours have neighbouring sets, so that sets are whole caches where those can be
//     divided.
//   - Core has a core in each set, and NUMA whole memory nodes.
//
// With more ranks each processor (NUMA: node) has a group of ranks, and groups differ by at most
// one rank.
func Divide(t *Topology, how Bind, ranks int, load func(cpu int) int) []Set {
	sets := make([]Set, ranks)
	for i := range sets {
		sets[i].Ranks = 1
	}
	pool := t.pool(ranks, load)
	if how == None || len(pool) == 0 {
		return sets
	}
	units := unitsOf(pool, func(p processor) int { return p.core })
	if len(units) < ranks {
		units = unitsOf(pool, func(p processor) int { return p.id })
	}
	switch {
	case how == NUMA:
		units = unitsOf(pool, func(p processor) int { return p.node })
	case how == Core && len(units) > ranks:
		units = units[:ranks]
	}
	for i := range sets {
		if m := len(units); m < ranks {
			unit := i * m / ranks
			sets[i].CPUs = units[unit]
			// Group u has the ranks from ceil(u*ranks/m) on.
			sets[i].Ranks = ((unit+1)*ranks+m-1)/m - (unit*ranks+m-1)/m
		} else {
			sets[i].CPUs = slices.Concat(units[i*m/ranks : (i+1)*m/ranks]...)
		}
		sets[i].CPUs = slices.Sorted(slices.Values(sets[i].CPUs))
	}
	return sets
}

// Procs is how many goroutines of a rank may run at once (runtime.GOMAXPROCS): as many as it has
// processors, or less where a control group allows all ranks together just quota of them, but
// two at least. With one a goroutine that answers peers, or a timer, waits for 10 ms until another one
// that computes is preempted, while the system would let its thread run at once.
func Procs(set Set, quota, ranks int) int {
	return max(min(len(set.CPUs), quota/max(ranks, 1)), 2)
}

// pool is the processors that Divide uses.
func (t *Topology) pool(ranks int, load func(cpu int) int) []processor {
	loads := map[int]int{} // of cores: threads of one disturb each other
	for _, p := range t.all {
		loads[p.core] = max(loads[p.core], load(p.id))
	}
	var pool []processor
	for _, most := range slices.Compact(slices.Sorted(maps.Values(loads))) {
		pool = pool[:0]
		for _, p := range t.all {
			if loads[p.core] <= most {
				pool = append(pool, p)
			}
		}
		if len(pool) >= ranks {
			break
		}
	}
	return pool
}

// unitsOf groups processors by a number that those of a group have beside each other.
func unitsOf(pool []processor, by func(processor) int) (units [][]int) {
	for i, p := range pool {
		if i == 0 || by(pool[i-1]) != by(p) {
			units = append(units, nil)
		}
		units[len(units)-1] = append(units[len(units)-1], p.id)
	}
	return units
}
