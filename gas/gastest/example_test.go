package gastest_test

import (
	"testing"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/gastest"
)

// sum is what is tested: the sum of what the ranks have.
func sum(n *gas.Node, mine int) (int, error) { return gas.AllReduce(n, mine, gas.Sum) }

// testSum is TestSum in a program.
func testSum(t *testing.T) {
	check := func(n *gas.Node) error {
		if s := gas.Must(sum(n, n.Rank())); s != 6 {
			t.Errorf("rank %d: the sum is %d", n.Rank(), s)
		}
		return nil
	}
	gastest.Run(t, 4, check)                                          // in one process
	gastest.RunConfig(t, gas.Config{Ranks: 4, Conduit: "udp"}, check) // over datagrams
	gastest.RunSeeds(t, 10, gas.Config{Ranks: 4, Debug: true}, check) // in virtual time
}

// A test of a function that ranks call together; go test calls testSum by its name in a program, TestSum.
func Example() {
	_ = testing.InternalTest{Name: "TestSum", F: testSum}
}
