package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/testkit/testjob"
)

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]func(){"hello": main})
}

// check looks for one line of each rank, in order.
func check(t *testing.T, out string, ranks int) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != ranks {
		t.Fatalf("%d lines of %d ranks:\n%s", len(lines), ranks, out)
	}
	for r, l := range lines {
		if !strings.HasPrefix(l, fmt.Sprintf("hello from rank %d of %d, process ", r, ranks)) {
			t.Errorf("line %d is %q", r, l)
		}
	}
}

func TestInProcess(t *testing.T) {
	for _, ranks := range []int{1, 2, 7} {
		var out bytes.Buffer
		if err := run(ranks, &out); err != nil {
			t.Fatal(err)
		}
		check(t, out.String(), ranks)
	}
}

func TestProcesses(t *testing.T) {
	r := testjob.Run(t, 4, "hello").Want(t, 0)
	check(t, r.Stdout[0], 4)
	if pids := strings.Count(r.Stdout[0], strings.Fields(r.Stdout[0])[7]); pids != 1 {
		t.Errorf("ranks share a process:\n%s", r.Stdout[0])
	}
	if rest := r.Stdout[1] + r.Stdout[2] + r.Stdout[3]; rest != "" {
		t.Errorf("other ranks printed %q", rest)
	}
}

func TestUsage(t *testing.T) {
	testjob.Misuse(t, "hello", map[string]string{
		"-n 0": "hello: -n 0: it must be at least 1\n",
		"-n x": "invalid value \"x\" for flag -n",
		"you":  "hello: unexpected argument \"you\"\n",
	})
}
