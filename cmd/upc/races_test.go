package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRaces: a search names both places of the one race that each of ten programs has, with the first seed, and finds none in
// those that look like them. What the programs print when they end without a failure stays out of it.
// A thread that has not seen a flag is not after what it says, however close it was.
func TestRaces(t *testing.T) {
	const programs, n = 10, 3 // and more that have none
	b := newBundle(t)
	b.races = true
	b.add(t, "wrong", 0, "testdata/races/wrong.upc")
	b.add(t, "right", 0, "testdata/races/right.upc")
	b.add(t, "unseen", 0, "testdata/races/unseen.upc")
	b.add(t, "update", 0, "testdata/wrong/update.upc")
	b.addTwice(t)
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
	}
	for k := 1; k <= programs+1; k++ {
		var out, errs strings.Builder
		o := options{seeds: 3, n: n, args: []string{fmt.Sprint(k)}}
		if code := search(&o, b.bin("right"), &out, &errs); code != 0 {
			t.Errorf("right %d: status %d:\n%s%s", k, code, out.String(), errs.String())
		}
	}
	unseen := 0
	for k := 200; k <= 1000; k += 25 {
		out, err := output(b.dir, []string{"ARGON_CONDUIT=sim", "ARGON_RANKS=2"}, b.bin("unseen"), fmt.Sprint(k))
		if strings.Contains(out, "old flag") != (err != nil) {
			t.Errorf("unseen %d: %v:\n%s", k, err, out)
		}
		if err != nil {
			unseen++
		}
	}
	if unseen == 0 {
		t.Error("unseen: the flag was seen each time")
	}
	var out, errs strings.Builder
	if code := search(&options{seeds: 1, n: 3}, b.bin("twice"), &out, &errs); code != 0 {
		t.Errorf("two jobs in one process: status %d:\n%s%s", code, out.String(), errs.String())
	}
	if code := search(&options{seeds: 1, n: 3}, b.bin("update"), &out, &errs); code != 1 || !report.MatchString(strings.ReplaceAll(out.String(), "update.upc", "wrong.upc")) || !strings.Contains(out.String(), "lost updates: ") {
		t.Errorf("updates that are not messages: status %d:\n%s%s", code, out.String(), errs.String())
	}
}

// addTwice adds a program that runs two jobs, which have nothing to do with each other.
func (b *bundle) addTwice(t *testing.T) {
	t.Helper()
	const text = `package program

import "github.com/argon-go/argon/upc/rt"

func Main() {
	var p rt.Phaseless
	for job := range 2 {
		err := rt.Run(rt.Config{Threads: 3, Conduit: "sim"}, func(t *rt.Thread) {
			if job == 0 {
				if q := t.AllAlloc(1, 8); t.MyThread() == 0 {
					p = q
				}
				t.BarrierAny()
			}
			if t.MyThread() == job {
				rt.Put(t, p, int64(job))
			}
		})
		if err != nil {
			panic(err)
		}
	}
}
`
	b.names = append(b.names, "twice")
	to := filepath.Join(b.dir, "twice")
	err := os.Mkdir(to, 0o777)
	if err == nil {
		err = os.WriteFile(filepath.Join(to, "main.go"), []byte(text), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}
