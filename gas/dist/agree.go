package dist

import (
	"fmt"
	"hash/fnv"
	"math"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/errs"
)

// ranks are those that a container lies on. Its own numbers of ranks are those of the group.
type ranks struct {
	g    gas.Group
	n    *gas.Node
	team *gas.Team // nil for all ranks of the job
	rank int       // this one, in the group
	size int
}

// ranksOf is the ranks of g, on which the call what makes a container.
func ranksOf(g gas.Group, what string) (ranks, error) {
	team, ok := g.(*gas.Team)
	if ok && team == nil || g == nil {
		return ranks{}, errs.BadArg("dist: %s: on team nil, which Team.Split returns to a rank that is in none: the members alone make it", what)
	}
	return ranks{g, g.Node(), team, g.Rank(), g.Size()}, nil
}

// job is the number in the job of rank k of the group.
func (r *ranks) job(k int) int {
	if r.team == nil {
		return k
	}
	return r.team.Global(k)
}

// statement combines the values of several ranks in agree: the least and the most of a value that
// should be equal, the ranks of the job that have them, and the first that could not do its part, plus 1.
type statement struct {
	low, high     uint64
	lowAt, highAt uint32
	badAt         uint32
}

func (a statement) combine(b statement) statement {
	if b.low < a.low {
		a.low, a.lowAt = b.low, b.lowAt
	}
	if b.high > a.high {
		a.high, a.highAt = b.high, b.highAt
	}
	if b.badAt != 0 && (a.badAt == 0 || b.badAt < a.badAt) {
		a.badAt = b.badAt
	}
	return a
}

// agree is collective: it returns when all ranks are in it, and an error on all of them if
// they do not say the same, or one has failed. what is the call that the program has made.
func (r *ranks) agree(what string, say uint64, failed error) error {
	_, err := r.compare(what, say, 0, failed)
	return err
}

// compare is agree in which ranks may differ in the bits of free, and returns what all say.
func (r *ranks) compare(what string, say, free uint64, failed error) (all statement, err error) {
	rank := uint32(r.n.Rank())
	s := statement{low: say, high: say, lowAt: rank, highAt: rank}
	if failed != nil {
		s.badAt = rank + 1
	}
	all, err = gas.AllReduce(r.g, s, statement.combine)
	switch {
	case err != nil:
		err = fmt.Errorf("dist: %s: %w", what, err)
	case failed != nil:
		err = failed
	case all.badAt != 0:
		err = errs.BadArg("dist: %s: rank %d gave a bad argument, which its own error names", what, all.badAt-1)
	case (all.low^all.high)&^free != 0:
		err = errs.BadArg("dist: %s: ranks %d and %d gave different arguments or made different calls: names, types and lengths are the same on all ranks",
			what, all.lowAt, all.highAt)
	}
	return all, err
}

// enter is agree for a container that calls of other ranks reach: it returns the number that c has
// on all ranks of the group then, and on none of them another container, of whatever group.
func (r *ranks) enter(c served, what string, say uint64, failed error) (uint32, error) {
	t := tables.Of(r.n)
	// Before others can have seen that all ranks are here, and call.
	number := t.add(c, 0)
	for round := 0; ; round++ {
		all, err := r.compare(what, say&^math.MaxUint32|uint64(number), math.MaxUint32, failed)
		if err == nil && all.low == all.high {
			return number, nil
		}
		t.remove(number)
		if err != nil {
			return 0, err
		}
		// Ranks have made unlike numbers of containers if they are in different teams. Goroutines of
		// a rank that enter containers of two teams at once, and those of the other ranks, may take
		// each other's numbers again and again, unless they look further and further apart.
		apart := mix(all.low+uint64(all.lowAt)<<32^mix(all.high+uint64(all.highAt)<<32)) >> (64 - min(round, 16))
		number = t.add(c, uint32(all.high)+1+uint32(apart))
	}
}

// sayOf is a word for agree that tells calls with different texts apart.
func sayOf(texts ...string) uint64 {
	h := fnv.New64a()
	for _, t := range texts {
		h.Write([]byte(t))
		h.Write([]byte{0})
	}
	return mix(h.Sum64())
}
