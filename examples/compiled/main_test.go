package main

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/boot"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]func(){"compiled": main})
}

func want(ranks, size int) string {
	return fmt.Sprintf("%d elements on %d threads: second differences add up to 0, %d are 2, the largest square is %d at %d\n",
		size, ranks, size-2, (size-1)*(size-1), size-1)
}

// TestInProcess: on any number of ranks, with a part of a block for the last one, or
// nothing, the arrays hold what they should.
func TestInProcess(t *testing.T) {
	for _, c := range [][2]int{{1, 50}, {2, 7}, {3, 100}, {7, 4}, {8, 3}} {
		var out bytes.Buffer
		if err := run(c[0], c[1], &out); err != nil || out.String() != want(c[0], c[1]) {
			t.Errorf("%d ranks, %d elements: %q, %v", c[0], c[1], &out, err)
		}
	}
}

func TestProcesses(t *testing.T) {
	r := testjob.RunConfig(t, 3, "compiled", testjob.Config{Args: []string{"-size", "40"}}).Want(t, 0)
	if r.Stdout[0] != want(3, 40) || r.Stdout[1]+r.Stdout[2] != "" {
		t.Errorf("the ranks print %q", r.Stdout)
	}
}

// TestFree: a thread gives back what another one has allocated, once.
func TestFree(t *testing.T) {
	var out bytes.Buffer
	cfg := boot.Config{Name: "compiled", Ranks: 2, MaxSegment: segmentSize(3)}
	err := boot.Run(context.Background(), cfg, func(ep conduits.Endpoint) error {
		th, err := begin(ep, 3)
		if err != nil {
			return err
		}
		p, err := th.heap.alloc(word)
		if err != nil {
			return err
		}
		if err := th.b.Barrier(1, 0); err != nil {
			return err
		}
		if th.me == 0 {
			p.Thread = 1 // whose first block has the same address
			fmt.Fprintln(&out, th.heap.free(p))
			fmt.Fprintln(&out, th.heap.free(p))
		}
		return th.b.Barrier(2, 0)
	})
	// The first block is the last one of the heap, which is the segment's second page.
	const want = "<nil>\ncompiled: upc_free of 1:0x1:0xff0 on thread 1: not an allocated block\n"
	if err != nil || out.String() != want {
		t.Errorf("%v, %q", err, &out)
	}
}

func TestUsage(t *testing.T) {
	testjob.Misuse(t, "compiled", map[string]string{
		"-n 0":    "compiled: -n 0: it must be at least 1\n",
		"-size 2": "compiled: -size 2: it must be 3 to 1048576\n",
		"it":      "compiled: unexpected argument \"it\"\n",
	})
}
