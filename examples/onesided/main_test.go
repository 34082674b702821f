package main

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/argon-go/argon/internal/testkit/testjob"
)

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]func(){"onesided": main})
}

func want(ranks, cells, steps int) string {
	var heat float64
	for i := range ranks * cells {
		heat += initial(i)
	}
	return fmt.Sprintf("%d ranks, %d steps of %d cells, by fences and by epochs: heat %.3f, every cell as on one rank\n", ranks, steps, ranks*cells, heat)
}

func TestInProcess(t *testing.T) {
	for _, ranks := range []int{1, 2, 5} {
		for _, conduit := range []string{"shm", "udp", "sim"} {
			t.Setenv("ARGON_CONDUIT", conduit)
			var out bytes.Buffer
			if err := run(ranks, 30, 25, &out); err != nil || out.String() != want(ranks, 30, 25) {
				t.Errorf("%d ranks on %s: %q, %v", ranks, conduit, &out, err)
			}
		}
	}
}

func TestProcesses(t *testing.T) {
	r := testjob.RunConfig(t, 3, "onesided", testjob.Config{Args: []string{"-steps", "20", "-cells", "1"}}).Want(t, 0)
	if r.Stdout[0] != want(3, 1, 20) || r.Stdout[1]+r.Stdout[2] != "" {
		t.Errorf("the ranks print %q", r.Stdout)
	}
}

func TestUsage(t *testing.T) {
	testjob.Misuse(t, "onesided", map[string]string{
		"-n 0":      "onesided: -n 0: it must be at least 1\n",
		"-cells 0":  "onesided: -cells 0: it must be at least 1\n",
		"-steps -1": "onesided: -steps -1: it must be at least 0\n",
		"it":        "onesided: unexpected argument \"it\"\n",
	})
}
