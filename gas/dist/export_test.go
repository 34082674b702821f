package dist

import (
	"errors"

	"github.com/argon-go/argon/gas"
)

// OwnerAmong is the rank of key in a job of so many.
func OwnerAmong[K comparable, V any](m *Map[K, V], key K, ranks int) int {
	return ownerOf(m.keys.hash(&key), ranks)
}

// Groupings are what groups of a job tests have containers of.
var Groupings = []string{"job", "job", "halves", "overlapping"}

// InGroups has the ranks of n's job run fn in the groups of a grouping: in teams of odd and of even ranks,
// numbered backwards, at once; or then, too, in a team that overlaps both, and lacks rank 0.
func InGroups(n *gas.Node, grouping string, fn func(g gas.Group) error) error {
	if grouping == "job" {
		return fn(n)
	}
	half, err := n.World().Split(n.Rank()%2, -n.Rank())
	if err != nil {
		return err
	}
	if grouping == "halves" {
		return errors.Join(fn(half), half.Delete())
	}
	most, err := n.World().Split(min(n.Rank(), 1)-1, 0)
	if err == nil {
		// While the halves have one that others have not.
		var m *Map[int, int]
		if m, err = NewMap[int, int](half, "model"); err == nil && most != nil {
			err = errors.Join(fn(most), most.Delete())
		}
		if err == nil {
			err = errors.Join(fn(half), m.Delete())
		}
	}
	return errors.Join(err, half.Delete())
}
