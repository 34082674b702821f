package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestTogether: loops whose accesses are under way together do what the program says, whatever
// messages overtake others, which those of a simulated network with jitter do. The simulator's
// clock shows which loops have them so, and which must not.
func TestTogether(t *testing.T) {
	b := newBundle(t)
	b.add(t, "together", 0, "testdata/together.upc")
	b.add(t, "updates", 0, "testdata/updates.upc")
	b.add(t, "overlap", 0, "testdata/overlap/overlap.upc")
	b.build(t)
	environments := []string{"ARGON_CONDUIT=udp"}
	for seed := 1; seed <= 20; seed++ {
		environments = append(environments, fmt.Sprintf("ARGON_CONDUIT=sim ARGON_SIM=seed=%d,jitter=20us", seed))
	}
	for _, e := range environments {
		out, err := output(t.TempDir(), append(strings.Fields(e), "ARGON_RANKS=3"), b.bin("together"))
		if err != nil || out != "together: 0 wrong\n" {
			t.Errorf("%s: %v\n%s", e, err, out)
		}
		if out, err = output(t.TempDir(), append(strings.Fields(e), "ARGON_RANKS=3"), b.bin("updates")); err != nil {
			t.Errorf("%s: %v\n%s", e, err, out)
		}
		golden(t, "testdata/updates.out", out)
	}
	out, err := output(t.TempDir(), []string{"ARGON_CONDUIT=sim", "ARGON_RANKS=2"}, b.bin("overlap"))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	golden(t, "testdata/overlap/overlap.out", out)
}
