package sim_test

import (
	"fmt"
	"testing"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/gas"
)

// TestRing sends a token around a few thousand ranks.
func TestGas(t *testing.T) {
	err := gas.Run(gas.Config{Conduit: "sim", Ranks: 100}, func(n *gas.Node) error {
		if err := n.Barrier(); err != nil {
			return err
		}
		v, err := gas.AllReduce(n, int64(n.Rank()), func(a, b int64) int64 { return a + b })
		if err != nil {
			return err
		}
		if v != 4950 {
			return fmt.Errorf("sum %d", v)
		}
		if n.Rank() == 0 {
			fmt.Println(n.Conduit().Now())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestHalfRoundTrip is the sum of table 9-2's entries for a VELO message.
func TestHalfRoundTrip(t *testing.T) {
	j, err := sim.New(2, sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	eps := j.Endpoints()
	const rounds = 10
	conduits.Run(eps, func(i int) {
		got := 0
		e, err := am.Attach(eps[i], am.Config{Handlers: []am.Entry{{Index: 128, Name: "ping", Args: 4, Fn: func(*am.Token, []uint32, []byte) { got++ }}}})
		if err != nil {
			t.Error(err)
			return
		}
		start := eps[i].Now()
		for k := range rounds {
			if i == 0 {
				e.RequestShort(1, 128, 1, 2, 3, 4)
			}
			if err := e.Wait(nil, func() bool { return got == k+1 }); err != nil {
				t.Error(err)
				return
			}
			if i == 1 {
				e.RequestShort(0, 128, 1, 2, 3, 4)
			}
		}
		if i == 0 {
			t.Log((eps[i].Now() - start) / rounds / 2)
		}
	})
}
