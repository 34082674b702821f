package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRaces: a search names both places of the one race that each of ten programs has, with the first seed, and finds none in
// ten that look like them. What the programs print when they end without a failure stays out of it.
func TestRaces(t *testing.T) {
	const programs, n = 10, 3
	b := newBundle(t)
	b.races = true
	b.add(t, "wrong", 0, "testdata/races/wrong.upc")
	b.add(t, "right", 0, "testdata/races/right.upc")
	b.build(t, "-tags=upcraces")
	source, err := os.ReadFile("testdata/races/wrong.upc")
	if err != nil {
		t.Fatal(err)
	}
	report := regexp.MustCompile(`data race on \w+: thread \d .* at (wrong.upc:\d+), and thread \d .* at (wrong.upc:\d+): `)
	for k := 1; k <= programs; k++ {
		var want []string
		for i, l := range strings.Split(string(source), "\n") {
			if strings.Contains(l, fmt.Sprintf("/* race %d */", k)) {
				want = append(want, fmt.Sprintf("wrong.upc:%d", i+1))
			}
		}
		var out, errs strings.Builder
		o := options{seeds: 3, n: n, args: []string{fmt.Sprint(k)}}
		code := search(&o, b.bin("wrong"), &out, &errs)
		found := report.FindAllStringSubmatch(out.String(), -1)
		if code != 1 || !strings.Contains(errs.String(), "exit status 1 with seed 1 ") || len(found) != 1 {
			t.Errorf("wrong %d: status %d, %d races, not one with seed 1:\n%s%s", k, code, len(found), out.String(), errs.String())
			continue
		}
		places := found[0][1:]
		slices.Sort(want)
		slices.Sort(places)
		if places = slices.Compact(places); !slices.Equal(places, want) {
			t.Errorf("wrong %d: a race at %v, not %v", k, places, want)
		}
		out.Reset()
		errs.Reset()
		if code := search(&o, b.bin("right"), &out, &errs); code != 0 {
			t.Errorf("right %d: status %d:\n%s%s", k, code, out.String(), errs.String())
		}
	}
}
