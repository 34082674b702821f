//go:build ignore

// Benchlines checks what `gasbench -json` prints, on its standard input: every
// line is one object with the documented fields, figures are positive, and each
// benchmark named on the command line is there.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

type line struct {
	Bench, Conduit, Metric, Unit, Ref string
	Ranks                             int
	Size                              *int
	Value, Ratio                      float64
	RefValue                          float64 `json:"ref_value"`
}

func main() {
	seen := map[string]int{}
	lines := 0
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		lines++
		var l line
		d := json.NewDecoder(bytes.NewReader(in.Bytes()))
		if err := d.Decode(&l); err != nil || d.More() {
			fail("line %d is not one JSON object (%v): %s", lines, err, in.Text())
		}
		if l.Bench == "" || l.Conduit == "" || l.Metric == "" || l.Unit == "" || l.Ranks != 2 || l.Size == nil {
			fail("line %d lacks a field: %s", lines, in.Text())
		}
		seen[l.Bench]++
		switch l.Metric {
		case "hit_rate": // which is 0 of what is streamed
			if d := l.Value - l.RefValue; !(-0.02 < d && d < 0.02) {
				fail("line %d has other hits than predicted: %s", lines, in.Text())
			}
			continue
		case "requests":
			if l.Value != 1 {
				fail("line %d: a miss is not one round trip: %s", lines, in.Text())
			}
			continue
		case "added", "factor": // differences, in which little is left of short bursts
			continue
		}
		if !(l.Value > 0) || l.Ref != "" && !(l.Ratio > 0) {
			fail("line %d has a figure that cannot be: %s", lines, in.Text())
		}
	}
	if err := in.Err(); err != nil {
		fail("%v", err)
	}
	for _, name := range os.Args[1:] {
		if seen[name] == 0 {
			fail("no figure for %s among %d lines", name, lines)
		}
	}
	fmt.Printf("%d lines, all good: %v\n", lines, seen)
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "benchlines: "+format+"\n", args...)
	os.Exit(1)
}
