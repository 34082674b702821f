package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/dist"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]func(){"uts": main})
}

const small = "tree small: 63914 nodes, 51124 leaves, depth 7; "

func check(t *testing.T, out, want string) {
	t.Helper()
	if !strings.Contains(out, want) {
		t.Errorf("got %q, want %q", out, want)
	}
}

// TestAlone compares what is said of the trees with a search without a queue; T1 and T3 have the
// published numbers.
func TestAlone(t *testing.T) {
	for name, tr := range trees {
		if testing.Short() && name != "small" {
			continue
		}
		if c := tr.alone(); c != tr.want {
			t.Errorf("tree %s has %+v, want %+v", name, c, tr.want)
		}
	}
}

// TestRoot: the benchmark's random numbers, by the first nodes of T3.
func TestRoot(t *testing.T) {
	t3 := trees["T3"]
	r := t3.start()
	var c count
	next := t3.visit(&r, &c, nil)
	if len(next) != 2000 || next[0].depth != 1 || next[0] == next[1] || c != (count{Nodes: 1}) {
		t.Errorf("%d children, counted %+v", len(next), c)
	}
	if u := r.random(); u < 0 || u >= 1 {
		t.Errorf("a random number of %v", u)
	}
}

func TestInProcess(t *testing.T) {
	for _, ranks := range []int{1, 2, 5} {
		var out bytes.Buffer
		if err := run(options{ranks: ranks, tree: "small", check: true}, &out); err != nil {
			t.Fatalf("%d ranks: %v", ranks, err)
		}
		check(t, out.String(), small)
		check(t, out.String(), "the same without a queue: ")
	}
}

func TestProcesses(t *testing.T) {
	r := testjob.Run(t, 3, "uts").Want(t, 0)
	check(t, r.Stdout[0], small+"3 ranks: ")
}

// TestStopsEarly: a search that has lost a node would be noticed.
func TestStopsEarly(t *testing.T) {
	tr := trees["small"]
	err := gas.Run(gas.Config{Ranks: 1}, func(n *gas.Node) error {
		q, err := dist.NewQueue[node](n, "nodes", 0)
		if err != nil {
			return err
		}
		c, err := tr.search(n, q)
		if err != nil {
			return err
		}
		if err := q.Delete(); err != nil {
			return err
		}
		c.Nodes--
		return tr.report(n, options{tree: "small"}, found{Count: c}, 1, &bytes.Buffer{})
	})
	if err == nil || !strings.Contains(err.Error(), "uts: tree small has {Nodes:63914 Leaves:51124 Depth:7}, found were {Nodes:63913") {
		t.Errorf("got %v", err)
	}
}

func TestErrors(t *testing.T) {
	for args, want := range map[string]string{
		"-n 0":     "uts: -n 0: it must be at least 1\n",
		"-tree T9": "uts: -tree \"T9\": it must be one of T1, T3, small\n",
		"much":     "uts: unexpected argument \"much\"\n",
	} {
		r := testjob.RunConfig(t, 1, "uts", testjob.Config{Args: strings.Fields(args)})
		if r.Status == 0 || !strings.Contains(r.Stderr[0], want) {
			t.Errorf("uts %s: status %d, %q, want %q", args, r.Status, r.Stderr[0], want)
		}
	}
}
