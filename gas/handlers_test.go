package gas

import (
	"fmt"
	"testing"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

// TestNodeOf: a handler beside gas finds its rank's Node, and what it may use of it.
func TestNodeOf(t *testing.T) {
	const hAdd = firstClient
	var sums PerRank[Ptr[uint64]]
	add := am.Entry{Index: hAdd, Name: "add", Args: 1, Fn: func(t *am.Token, args []uint32, _ []byte) {
		n := NodeOf(t)
		if n.Rank() != t.Messenger().Rank() || n.Layers().AM != t.Messenger() {
			t.Messenger().Conduit().Fail(fmt.Errorf("the handler on rank %d finds %d", t.Messenger().Rank(), n.Rank()))
			return
		}
		if _, err := FetchAdd(n, *sums.Of(n), uint64(args[0])); err != nil {
			t.Messenger().Conduit().Fail(err)
		}
	}}
	for _, conduit := range testjob.Concurrent("shm", "sim") {
		err := Run(Config{Ranks: 5, Conduit: conduit, Handlers: []am.Entry{add}}, func(n *Node) error {
			sum, err := New[uint64](n)
			*sums.Of(n) = sum.On(n.Rank())
			if err == nil {
				err = n.Barrier()
			}
			for r := 0; r < n.Size() && err == nil; r++ {
				err = n.Layers().AM.RequestShort(r, hAdd, uint32(n.Rank()+1))
			}
			if err != nil {
				return err
			}
			return n.Wait(func() bool {
				v, err := Load(n, sum.On(n.Rank()))
				return err != nil || v == 1+2+3+4+5
			})
		})
		if err != nil {
			t.Errorf("%s: %v", conduit, err)
		}
	}
}
