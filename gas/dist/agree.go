package dist

import (
	"hash/fnv"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/errs"
)

// statement combines the values of several ranks in agree: the least and the most of a value that
// should be equal, the ranks that have them, and the first rank that could not do its part, plus 1.
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
func agree(n *gas.Node, what string, say uint64, failed error) error {
	rank := uint32(n.Rank())
	s := statement{low: say, high: say, lowAt: rank, highAt: rank}
	if failed != nil {
		s.badAt = rank + 1
	}
	all, err := gas.AllReduce(n, s, statement.combine)
	switch {
	case err != nil:
		return err
	case failed != nil:
		return failed
	case all.badAt != 0:
		return errs.BadArg("dist: %s: rank %d gave a bad argument, which its own error names", what, all.badAt-1)
	case all.low != all.high:
		return errs.BadArg("dist: %s: ranks %d and %d gave different arguments or made different calls: names, types and lengths are the same on all ranks",
			what, all.lowAt, all.highAt)
	}
	return nil
}

// sayOf is a word for agree that tells calls with different texts apart.
func sayOf(texts ...string) uint64 {
	h := fnv.New64a()
	for _, t := range texts {
		h.Write([]byte(t))
		h.Write([]byte{0})
	}
	return h.Sum64()
}
