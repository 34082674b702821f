// Package testprog has a program that the tests of several conduits run in real
// processes.
package testprog

import (
	"fmt"

	"github.com/argon-go/argon/gas"
)

// Everything is a rank of a program that uses atomics, a barrier, gets and
// collectives, and checks what they give.
func Everything(n *gas.Node) error {
	count, err := gas.New[uint64](n)
	if err != nil {
		return err
	}
	const rounds = 200
	for i := range rounds {
		if _, err := gas.FetchAdd(n, count.On((n.Rank()+i)%n.Size()), 1); err != nil {
			return err
		}
	}
	if err := n.Barrier(); err != nil {
		return err
	}
	all := uint64(0)
	for r := range n.Size() {
		v, err := count.On(r).Get(n)
		if err != nil {
			return err
		}
		all += v
	}
	if all != uint64(rounds*n.Size()) {
		return fmt.Errorf("counted %d", all)
	}
	sum, err := gas.AllReduce(n, uint64(n.Rank()), gas.Sum)
	if err != nil {
		return err
	}
	if want := uint64(n.Size() * (n.Size() - 1) / 2); sum != want {
		return fmt.Errorf("the sum of the ranks is %d, not %d", sum, want)
	}
	for root := range n.Size() {
		v, err := gas.Broadcast(n, root, n.Rank()+1)
		if err != nil {
			return err
		}
		if v != root+1 {
			return fmt.Errorf("rank %d broadcasts %d", root, v)
		}
	}
	return nil
}
