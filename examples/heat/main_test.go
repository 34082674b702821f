package main

import (
	"bytes"
	"fmt"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/internal/testkit/testjob"
)

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]func(){"heat": main})
}

const checked = "check: every cell is as on one rank\n"

// TestInProcess runs plates of all shapes, also with fewer rows than ranks, and
// compares each with a run on one rank.
func TestInProcess(t *testing.T) {
	for _, c := range []struct{ ranks, size, steps int }{
		{1, 2, 3}, {1, 40, 50}, {2, 40, 51}, {3, 40, 50}, {4, 7, 20}, {5, 5, 20}, {8, 3, 10}, {7, 50, 0},
	} {
		var out bytes.Buffer
		if err := run(options{ranks: c.ranks, size: c.size, steps: c.steps, check: true}, &out); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if !strings.HasSuffix(out.String(), checked) {
			t.Errorf("%+v: %s", c, out.String())
		}
	}
}

func TestProcesses(t *testing.T) {
	name := filepath.Join(t.TempDir(), "heat.png")
	r := testjob.RunConfig(t, 4, "heat", testjob.Config{
		Args: []string{"-size", "60", "-steps", "80", "-check", "-o", name},
	}).Want(t, 0)
	if !strings.HasSuffix(r.Stdout[0], checked+"wrote "+name+"\n") || strings.Join(r.Stdout[1:], "") != "" {
		t.Errorf("output:%s", r.Output())
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	if b := img.Bounds(); b.Dx() != 60 || b.Dy() != 60 {
		t.Errorf("the picture is %v", b)
	}
	// The plate's corner is the coldest place, the bar is warm.
	bright := func(x, y int) uint32 {
		r, g, b, _ := img.At(x, y).RGBA()
		return r + g + b
	}
	if bright(59, 0) >= bright(30, 55) {
		t.Errorf("the corner has brightness %d, the bar %d", bright(59, 0), bright(30, 55))
	}
	// Every colour is what the cell's temperature says.
	u := alone(60, 80)
	_, warmest := extremes(u)
	for i, v := range u {
		got, want := color.NRGBAModel.Convert(img.At(i%60, i/60)), colour(v/warmest)
		if got != want {
			t.Fatalf("pixel (%d, %d) is %v, want %v", i%60, i/60, got, want)
		}
	}
}

// TestShare checks that rows are dealt out completely, in order and evenly.
func TestShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, ranks := rapid.IntRange(2, 200).Draw(t, "size"), rapid.IntRange(1, 64).Draw(t, "ranks")
		next := 0
		for r := range ranks {
			first, count := share(size, ranks, r)
			if first != next || count < size/ranks || count > (size+ranks-1)/ranks {
				t.Fatalf("rank %d of %d has %d rows from %d of %d", r, ranks, count, first, size)
			}
			next += count
		}
		if next != size {
			t.Fatalf("%d of %d rows", next, size)
		}
	})
}

// TestConserved shows that the check would notice a lost row.
func TestConserved(t *testing.T) {
	if err := conserved(100, 100*(1+1e-13), 1000); err != nil {
		t.Error(err)
	}
	if conserved(100, 100*(1+1e-9), 1000) == nil {
		t.Error("a loss goes unnoticed")
	}
}

// TestColours checks that warmer is brighter.
func TestColours(t *testing.T) {
	last := -1
	for i := range 101 {
		c := colour(float64(i) / 100)
		sum := 2*int(c.R) + 7*int(c.G) + int(c.B) // weights of the eye
		if sum < last {
			t.Errorf("at %d %% the colour %v is darker than before", i, c)
		}
		last = sum
	}
}

func TestErrors(t *testing.T) {
	for args, want := range map[string]string{
		"-n 0":                "heat: -n 0: it must be at least 1\n",
		"-size 1":             fmt.Sprintf("heat: -size 1: it must be 2 to %d\n", maxSize),
		"-steps -1":           "heat: -steps -1: it must be at least 0\n",
		"-o /no/such/dir/x":   "heat: -o /no/such/dir/x: there is no folder /no/such/dir\n",
		"now":                 "heat: unexpected argument \"now\"\n",
		"-size 4000 -steps 0": "a plate of 4000 by 4000 cells over 1 ranks",
	} {
		r := testjob.RunConfig(t, 1, "heat", testjob.Config{Args: strings.Fields(args)})
		if r.Status == 0 || !strings.Contains(r.Stderr[0], want) {
			t.Errorf("heat %s: status %d, %q, want %q", args, r.Status, r.Stderr[0], want)
		}
	}
}
