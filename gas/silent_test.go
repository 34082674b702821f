package gas

import (
	"errors"
	"strings"
	"testing"
)

// TestNotTheSame: ranks that combine elements of different types, or with Config.Debug by different operations, get an
// error that names both, on conduits with shared memory and without, for values and for blocks.
func TestNotTheSame(t *testing.T) {
	block := func(n *Node) error { return AllReduceSlice(n, make([]int64, 5000), Sum) }
	for name, c := range map[string]struct {
		one, others func(n *Node) error
		says        []string
	}{
		"values": {
			func(n *Node) error { _, err := AllReduce(n, int64(1), Sum); return err },
			func(n *Node) error { _, err := AllReduce(n, 1.0, Sum); return err },
			[]string{"(int64, Sum) on rank 1", "(float64, Sum) on rank "},
		},
		"operations": {
			func(n *Node) error { _, err := AllReduce(n, 1, Max); return err },
			func(n *Node) error { _, err := AllReduce(n, 1, Sum); return err },
			[]string{"(int64, Max) on rank 1", "(int64, Sum) on rank "},
		},
		"blocks": {
			func(n *Node) error { return AllReduceSlice(n, make([]float64, 5000), Sum) }, block,
			[]string{"(float64, Sum) on rank 1", "(int64, Sum) on rank "},
		},
		"roots": {
			func(n *Node) error { _, err := Broadcast(n, 1, 1); return errors.Join(err, n.Barrier()) },
			func(n *Node) error { _, err := Broadcast(n, 0, 1); return errors.Join(err, n.Barrier()) },
			[]string{"from rank 1 of 8 bytes on rank 1", "from rank 0 of 8 bytes on rank "},
		},
	} {
		for _, conduit := range []string{"shm", "udp", "sim"} {
			err := Run(Config{Ranks: 3, Conduit: conduit, Debug: true}, func(n *Node) error {
				if n.Rank() == 1 {
					return c.one(n)
				}
				return c.others(n)
			})
			for _, s := range c.says {
				if err == nil || !strings.Contains(err.Error(), s) {
					t.Errorf("%s on %s: %v, want %q", name, conduit, err, s)
				}
			}
		}
	}
	// Integers of one size are of one type.
	if err := Run(Config{Ranks: 2}, func(n *Node) error {
		if n.Rank() == 0 {
			_, err := AllReduce(n, 1, Sum)
			return err
		}
		_, err := AllReduce(n, int64(1), Sum)
		return err
	}); err != nil {
		t.Error(err)
	}
}

// TestAfterTheEnd: a Node whose function has returned meets no other rank.
func TestAfterTheEnd(t *testing.T) {
	for _, ranks := range []int{1, 2, 3} {
		nodes := make([]*Node, ranks)
		if err := Run(Config{Ranks: ranks}, func(n *Node) error { nodes[n.Rank()] = n; return n.Barrier() }); err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes {
			if n.Barrier() == nil || n.BarrierNotify() == nil {
				t.Errorf("rank %d of %d is in a barrier after the end", n.Rank(), ranks)
			}
			if _, err := AllReduce(n, 1, Sum); !errors.Is(err, ErrClosed) {
				t.Errorf("rank %d of %d reduces after the end: %v", n.Rank(), ranks, err)
			}
		}
	}
}

var deepCall *Func[int, int]

func init() {
	deepCall = RegisterTask("test.deep", func(c *Call, left int) (int, error) {
		if left == 0 {
			return 0, errors.New("the end of the line")
		}
		return deepCall.Call(c.Node, 1-c.Node.Rank(), left-1)
	})
}

// TestDeepFailure: the error of functions that call each other very deep has the ends of its text.
func TestDeepFailure(t *testing.T) {
	err := Run(Config{Ranks: 2}, func(n *Node) error {
		if n.Rank() == 0 {
			if _, err := deepCall.Call(n, 1, 500); err != nil {
				s := err.Error()
				if len(s) > mostFailure+100 || !strings.HasPrefix(s, "gas: test.deep on rank 1: gas: test.deep on rank 0: ") || !strings.HasSuffix(s, ": the end of the line") {
					t.Errorf("%d bytes: %.300s", len(s), s)
				}
			} else {
				t.Error("no error")
			}
		}
		return n.Barrier()
	})
	if err != nil {
		t.Error(err)
	}
}

// TestUnsynced: with Config.Debug implicit operations that are not waited for are an error.
func TestUnsynced(t *testing.T) {
	err := Run(Config{Ranks: 2, Conduit: "udp", Debug: true}, func(n *Node) error {
		p, err := New[uint64](n)
		if err != nil {
			return err
		}
		return p.On(1-n.Rank()).PutNBI(n, 3)
	})
	if err == nil || !strings.Contains(err.Error(), "SyncImplicit has not waited for") {
		t.Error(err)
	}
}
