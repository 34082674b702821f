package gas

import "github.com/argon-go/argon/extended/collective"

// Group is the ranks that a collective call is of: all of the job, for a [*Node], or the
// members of a [*Team]. Ranks and roots of the call are numbers in it.
type Group interface {
	// Rank is this rank's number in the group, 0 to Size()-1.
	Rank() int
	// Size is the number of ranks in the group.
	Size() int

	// Node is the rank that has the group.
	Node() *Node
	// Barrier is collective: it waits until all ranks of the group have called it.
	Barrier() error
	// Must ends the rank's function with err, unless that is nil: see [Must].
	Must(err error)

	members() *members
}

// members has the state of a group for its collective calls.
type members struct {
	coll *collective.Member
	cell cell
}

// Node is n: as a [Group], a Node is the group of all ranks.
func (n *Node) Node() *Node { return n }

func (n *Node) members() *members { return &n.all }
