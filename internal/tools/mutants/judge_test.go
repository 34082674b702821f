package main

import (
	"errors"
	"strings"
	"testing"
)

// TestJudge reads what a suite prints, as it ends in different ways.
func TestJudge(t *testing.T) {
	const (
		run   = "=== RUN   TestConformance\n=== RUN   TestConformance/contract\n=== RUN   TestConformance/contract/flood\n"
		fails = "--- FAIL: TestConformance (0.1s)\n    --- FAIL: TestConformance/contract (0.1s)\n        --- FAIL: TestConformance/contract/flood (0.1s)\nFAIL\n"
		unrun = "=== RUN   TestConformance/layers/gas/lock\n    suite.go:9: not run: the test's time (-timeout) is nearly over\n" +
			"--- FAIL: TestConformance (0.1s)\n    --- FAIL: TestConformance/layers (0.1s)\n        --- FAIL: TestConformance/layers/gas/lock (0.1s)\n"
		hang = "    suite.go:9: rank 0: the job still runs when the test's time is nearly over; rank 0: credit\n"
	)
	for _, k := range []struct {
		name, out string
		passed    bool
		want      string
	}{
		{"passes", run + "--- PASS: TestConformance (0.1s)\nPASS\n", true, "c: SURVIVES"},
		{"fails", run + fails, false, "c: contract/flood"},
		{
			"two tests, one check each, and one twice",
			run + fails + "--- FAIL: TestConformanceHidden (0.1s)\n    --- FAIL: TestConformanceHidden/layers (0.1s)\n" +
				"        --- FAIL: TestConformanceHidden/layers/am/long (0.1s)\n        --- FAIL: TestConformanceHidden/contract/flood (0.1s)\n", false,
			"c: contract/flood, layers/am/long",
		},
		{"hangs", run + hang + fails, false, "c: contract/flood (time limit)"},
		{
			"hangs again and again",
			run + hang + "=== RUN   TestConformance/layers/gas/lock\n" + hang + "=== RUN   TestConformance/machine/programs\npanic: test timed out after 1m0s\n", false,
			"c: contract/flood (time limit), layers/gas/lock (time limit)",
		},
		{
			"hangs, and no time is left", run + hang + fails + unrun, false,
			"c: contract/flood (time limit)",
		},
		{"is slow", run + unrun, false, "c: SURVIVES, with no time for 1 checks (-limit)"},
		{"does not end", run + "panic: test timed out after 1m0s\nrunning tests:\n", false, "c: contract/flood (does not end)"},
		{"crashes", run + "unexpected fault address 0x10\nfatal error: fault\n", false, "c: contract/flood (crash)"},
		{"panics in the check", run + fails + "panic: index out of range\n", false, "c: contract/flood (crash)"},
		{"is killed", run, false, "c: contract/flood (signal: killed)"},
		{"does not begin", "=== RUN   TestConformance\n--- FAIL: TestConformance (0.1s)\n", false, "c: the first look"},
	} {
		err := errors.New("signal: killed")
		if k.passed {
			err = nil
		}
		v := judge("c", k.out, err)
		if got := v.String(); got != k.want {
			t.Errorf("%s: %q, want %q", k.name, got, k.want)
		}
		if v.caught() == (k.passed || strings.Contains(k.want, "SURVIVES")) {
			t.Errorf("%s: caught is %v", k.name, v.caught())
		}
	}
}

// TestTable: rows of what was tried are replaced, others stay, those of mutants
// that are no more go, and all is in the order of the list.
func TestTable(t *testing.T) {
	first, second := mutants[0], mutants[1]
	text := "before\n" + tableBegin + tableHead +
		"| " + second.name + " | old | stays | x | y |\n| gone | a | b | c | d |\n" + tableEnd + "after\n"
	got, err := withTable(text, []outcome{{m: first, on: []verdict{
		{conduit: "shm", checks: []string{"a (time limit)", "b", "c", "d", "e"}},
		{conduit: "sim"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	want := "before\n" + tableBegin + tableHead +
		"| " + first.name + " | " + first.defect + " | " + first.file + " | shm, sim | shm: b, c, d and 2 more<br>sim: **nothing** |\n" +
		"| " + second.name + " | old | stays | x | y |\n" + tableEnd + "after\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, err := withTable("no markers", nil); err == nil || !strings.Contains(err.Error(), "table") {
		t.Errorf("a file without markers: %v", err)
	}
}
