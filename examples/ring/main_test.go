package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/argon-go/argon/internal/testkit/testjob"
)

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]func(){"ring": main})
}

func TestInProcess(t *testing.T) {
	for _, c := range []struct {
		ranks, laps int
		want        string
	}{
		{1, 5, "5 laps around 1 ranks: the token came back with 0, as it should; "},
		{2, 100, "100 laps around 2 ranks: the token came back with 100, as it should; "},
		{5, 20, "20 laps around 5 ranks: the token came back with 200, as it should; "},
	} {
		var out bytes.Buffer
		if err := run(c.ranks, c.laps, &out); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.String(), c.want) {
			t.Errorf("%d ranks: %q, want %q", c.ranks, out.String(), c.want)
		}
	}
}

func TestProcesses(t *testing.T) {
	r := testjob.RunConfig(t, 3, "ring", testjob.Config{Args: []string{"-laps", "50"}}).Want(t, 0)
	if want := "50 laps around 3 ranks: the token came back with 150, as it should; "; !strings.HasPrefix(r.Stdout[0], want) {
		t.Errorf("got %q, want %q", r.Stdout[0], want)
	}
}

func TestUsage(t *testing.T) {
	testjob.Misuse(t, "ring", map[string]string{
		"-n 0":    "ring: -n 0: it must be at least 1\n",
		"-laps 0": "ring: -laps 0: it must be 1 to 1073741824\n",
		"round":   "ring: unexpected argument \"round\"\n",
	})
}
