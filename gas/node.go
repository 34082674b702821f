package gas

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// Node is one rank's place in a running job: what a program does, it does from
// a Node. Many goroutines may use it at once, except that collective calls are
// made by one goroutine of each rank at a time, in the same order on all ranks.
// It is valid until the function that Run gave it to returns.
type Node struct {
	views []segment.View // indexed by rank; first, because every access reads it
	ep    conduits.Endpoint
	rank  int
	size  int
}

// Rank is this rank's number, 0 to Size()-1.
func (n *Node) Rank() int { return n.rank }

// Size is the number of ranks in the job.
func (n *Node) Size() int { return n.size }
