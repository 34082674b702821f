package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/internal/testkit/testjob"
)

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]func(){"triangles": main})
}

// slowly looks at all pairs and triples of vertices.
func slowly(o *options) (r result) {
	n := uint32(1) << o.scale
	beside := make([]bool, n*n)
	for i := range o.edges() {
		if e := o.draw(i); e.from != e.to {
			beside[e.from*n+e.to], beside[e.to*n+e.from] = true, true
		}
	}
	for u := range n {
		degree := uint64(0)
		for v := range n {
			if !beside[u*n+v] {
				continue
			}
			degree++
			for w := range n {
				if beside[u*n+w] && beside[v*n+w] {
					r.triangles++
				}
			}
		}
		r = r.add(result{edges: degree, wedges: degree * (degree - min(degree, 1)) / 2, largest: degree})
	}
	r.edges /= 2
	r.triangles /= 6
	return r
}

// lines is what is to be printed of r, but for the times.
func lines(o *options, r result, ranks int) []string {
	return []string{
		fmt.Sprintf("%d vertices and %d edges over %d ranks, the largest degree is %d\n", 1<<o.scale, r.edges, ranks, r.largest),
		fmt.Sprintf("%d triangles; %.4f of", r.triangles, 3*float64(r.triangles)/max(float64(r.wedges), 1)),
	}
}

func check(t interface{ Fatalf(string, ...any) }, out string, want ...string) {
	for _, w := range want {
		if !strings.Contains(out, w) {
			t.Fatalf("got %q, want %q", out, w)
		}
	}
}

// Graphs of all kinds, with more ranks than vertices among them, have the
// triangles that looking at all triples finds.
func TestAgainstAllTriples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := options{
			ranks:  rapid.IntRange(1, 9).Draw(t, "ranks"),
			scale:  rapid.IntRange(1, 6).Draw(t, "scale"),
			degree: rapid.IntRange(1, 12).Draw(t, "degree"),
			seed:   rapid.Uint64().Draw(t, "seed"),
			check:  true,
		}
		want := slowly(&o)
		if got := alone(&o); got != want {
			t.Fatalf("one rank alone finds %+v, want %+v", got, want)
		}
		var out bytes.Buffer
		if err := run(o, &out); err != nil {
			t.Fatal(err)
		}
		check(t, out.String(), append(lines(&o, want, o.ranks), "check: one rank alone finds the same\n")...)
	})
}

// TestDraw: every edge is drawn by its number alone, and few vertices have many.
func TestDraw(t *testing.T) {
	o := options{scale: 10, degree: 16, seed: 3}
	var degrees [1 << 10]int
	for i := range o.edges() {
		e := o.draw(i)
		if e != o.draw(i) || e.from >= 1<<10 || e.to >= 1<<10 {
			t.Fatalf("edge %d is %v", i, e)
		}
		degrees[e.from]++
	}
	slices.Sort(degrees[:])
	half := 0
	for _, d := range degrees[512:] {
		half += d
	}
	if share := float64(half) / float64(o.edges()); share < 0.85 {
		t.Errorf("half of the vertices have only %.2f of the edges", share)
	}
	o.seed = 4
	if o.draw(0) == (&options{scale: 10, seed: 3}).draw(0) && o.draw(1) == (&options{scale: 10, seed: 3}).draw(1) {
		t.Error("the seed changes nothing")
	}
}

func TestShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count, ranks := rapid.IntRange(0, 1<<40).Draw(t, "count"), rapid.IntRange(1, 1<<20).Draw(t, "ranks")
		r := rapid.IntRange(0, ranks-1).Draw(t, "rank")
		first, end := share(count, ranks, r)
		_, before := share(count, ranks, max(r-1, 0))
		if r == 0 {
			before = 0
		}
		if n := end - first; first != before || n < count/ranks || n > count/ranks+1 || r == ranks-1 && end != count {
			t.Fatalf("rank %d of %d has %d to %d of %d, and what comes before ends at %d", r, ranks, first, end, count, before)
		}
	})
}

// With hardly any room for firehoses it takes longer.
func TestProcesses(t *testing.T) {
	o := options{scale: 9, degree: 16, seed: 1}
	want := lines(&o, slowly(&o), 4)
	for _, env := range [][]string{nil, {"ARGON_PINNABLE=32K", "ARGON_PIN_LOCAL=8K"}} {
		r := testjob.RunConfig(t, 4, "triangles", testjob.Config{Args: []string{"-scale", "9", "-check", "-v"}, Env: env}).Want(t, 0)
		check(t, r.Stdout[0], append(want, "check: one rank alone finds the same\n", " % of ")...)
	}
}

// TestWrong shows that -check would notice.
func TestWrong(t *testing.T) {
	o := options{scale: 5, degree: 4, check: true}
	all := alone(&o)
	if err := report(2, &o, new(bytes.Buffer), all, use{}, 1, 1); err != nil {
		t.Fatal(err)
	}
	all.triangles--
	if err := report(2, &o, new(bytes.Buffer), all, use{}, 1, 1); err == nil || !strings.Contains(err.Error(), "triangles: check: ") {
		t.Errorf("a lost triangle: %v", err)
	}
}

func TestErrors(t *testing.T) {
	for args, want := range map[string]string{
		"-n 0":         "triangles: -n 0: it must be at least 1\n",
		"-scale 0":     "triangles: -scale 0: it must be 1 to 26\n",
		"-scale 27":    "triangles: -scale 27: it must be 1 to 26\n",
		"-degree 0":    "triangles: -degree 0: it must be 1 to 1024\n",
		"-degree 1025": "triangles: -degree 1025: it must be 1 to 1024\n",
		"many":         "triangles: unexpected argument \"many\"\n",
	} {
		r := testjob.RunConfig(t, 1, "triangles", testjob.Config{Args: strings.Fields(args)})
		if r.Status == 0 || !strings.Contains(r.Stderr[0], want) {
			t.Errorf("triangles %s: status %d, %q, want %q", args, r.Status, r.Stderr[0], want)
		}
	}
}
