package sim_test

import (
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

// TestBytesPerRank compares what a waiting rank of package gas holds, in heap and
// stack, with the figures in docs/scaling.md. One frame of a kilobyte in a function
// that ranks wait in doubles the stack. A collection that comes while ranks run, as on a busy
// machine, halves or doubles those of some.
func TestBytesPerRank(t *testing.T) {
	testjob.Simulated(t) // and the race detector's frames are larger
	const ranks = 2048
	doc, err := os.ReadFile("../../docs/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`holds\s+([0-9,]+)\s+bytes\s+of\s+heap\s+and\s+([0-9,]+)\s+of\s+stack`).FindSubmatch(doc)
	if m == nil {
		t.Fatal("docs/scaling.md does not say what a rank holds")
	}
	said := func(b []byte) float64 {
		n, err := strconv.Atoi(strings.ReplaceAll(string(b), ",", ""))
		if err != nil {
			t.Fatal(err)
		}
		return float64(n)
	}
	wantHeap, wantStack := said(m[1]), said(m[2])

	held := func() (heap, stack float64) {
		runtime.GC() // twice: the first may leave finalizers
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return float64(s.HeapAlloc), float64(s.StackInuse)
	}
	var heap, stack float64
	heap0, stack0 := held()
	j, err := sim.New(ranks, sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	err = runGas(j, gas.Config{}, func(n *gas.Node) error {
		for range 3 {
			if err := n.Barrier(); err != nil {
				return err
			}
		}
		if _, err := gas.Broadcast(n, 7, n.Rank()); err != nil {
			return err
		}
		if _, err := gas.AllReduce(n, int64(1), gas.Sum[int64]); err != nil {
			return err
		}
		if n.Rank() == 0 {
			for range 20_000 { // the virtual time in which all others come to wait for this one
				n.Poll()
			}
			heap, stack = held()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	heap, stack = (heap-heap0)/ranks, (stack-stack0)/ranks
	t.Logf("%d ranks: %.0f bytes of heap and %.0f of stack a rank", ranks, heap, stack)
	for _, f := range []struct {
		of          string
		got, want   float64
		least, most float64 // parts of want
	}{{"heap", heap, wantHeap, 0.85, 1.05}, {"stack", stack, wantStack, 0.6, 1.4}} {
		if f.got < f.least*f.want || f.got > f.most*f.want {
			t.Errorf("a rank holds %.0f bytes of %s; docs/scaling.md says %.0f: change what grew, or the document with what it measures now", f.got, f.of, f.want)
		}
	}
}
