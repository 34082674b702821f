package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]func(){"onesided": main})
}

func want(ranks, rounds int) string {
	var largest int64
	for i := range ranks * rounds {
		largest = max(largest, value(i/rounds, i%rounds))
	}
	return fmt.Sprintf("%d ranks, %d rounds: the largest number is %d\n", ranks, rounds, largest)
}

func TestInProcess(t *testing.T) {
	for _, ranks := range []int{1, 2, 5} {
		for _, conduit := range []string{"shm", "udp", "sim"} {
			t.Setenv("ARGON_CONDUIT", conduit)
			var out bytes.Buffer
			if err := run(ranks, 20, &out); err != nil || out.String() != want(ranks, 20) {
				t.Errorf("%d ranks on %s: %q, %v", ranks, conduit, &out, err)
			}
		}
	}
}

func TestProcesses(t *testing.T) {
	r := testjob.RunConfig(t, 3, "onesided", testjob.Config{Args: []string{"-rounds", "20"}}).Want(t, 0)
	if r.Stdout[0] != want(3, 20) || r.Stdout[1]+r.Stdout[2] != "" {
		t.Errorf("the ranks print %q", r.Stdout)
	}
}

// TestLock: a lock is held by one rank exclusively, or by any of them shared, which its word
// tells as table 7-4 has it, and what was added before the lock is given back is seen by the next holder.
func TestLock(t *testing.T) {
	const ranks, rounds = 3, 60
	hold := func(n *gas.Node) error {
		s := newSync(n)
		p, err := gas.New[int64](n)
		if err != nil {
			return err
		}
		sum, err := gas.New[int64](n)
		if err != nil {
			return err
		}
		p, sum = p.On(1), sum.On(1)
		if err := n.Barrier(); err != nil {
			return err
		}
		for i := range rounds {
			how := shared
			if i%3 == n.Rank() {
				how = exclusive
			}
			if err := s.lock(p, how); err != nil {
				return err
			}
			v, err := gas.Load(n, p)
			switch {
			case err != nil:
				return err
			case how == shared && (v < 1 || v > ranks), how == exclusive && v != ranks+1:
				return fmt.Errorf("the variable is %d, the lock is of kind %d", v, how)
			case how == exclusive:
				if v, err = sum.Get(n); err != nil {
					return err
				}
				if err := sum.Put(n, v+1); err != nil {
					return err
				}
			}
			if err := s.unlock(p); err != nil {
				return err
			}
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		v, err := gas.Load(n, p)
		if err != nil || v != 0 {
			return fmt.Errorf("the variable is %d at last, %v", v, err)
		}
		if v, err := sum.Get(n); err != nil || v != rounds {
			return fmt.Errorf("%d of %d additions under the lock are there, %v", v, rounds, err)
		}
		if err := s.unlock(p); err == nil || !strings.Contains(err.Error(), "does not hold") {
			return fmt.Errorf("unlocking what is not locked: %v", err)
		}
		return n.Barrier()
	}
	for _, conduit := range []string{"shm", "udp", "sim"} {
		if err := gas.Run(gas.Config{Ranks: ranks, Conduit: conduit}, hold); err != nil {
			t.Errorf("%s: %v", conduit, err)
		}
	}
}

func TestUsage(t *testing.T) {
	testjob.Misuse(t, "onesided", map[string]string{
		"-n 0":      "onesided: -n 0: it must be at least 1\n",
		"-rounds 0": "onesided: -rounds 0: it must be at least 1\n",
		"it":        "onesided: unexpected argument \"it\"\n",
	})
}
