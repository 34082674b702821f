package main

import (
	"strings"
	"testing"
)

// TestLoops compares what the compiler makes of the loops of testdata/loops.upc, after each pass, with what
// lies beside them: an optimisation that ceases to apply is a difference.
func TestLoops(t *testing.T) {
	for pass := range passes {
		var out, errs strings.Builder
		if status := run([]string{"build", "-d", pass, "testdata/loops.upc"}, &out, &errs); status != 0 || errs.String() != "" {
			t.Errorf("-d %s: status %d: %s", pass, status, errs.String())
			continue
		}
		golden(t, "testdata/loops."+pass+".txt", out.String())
	}
}
