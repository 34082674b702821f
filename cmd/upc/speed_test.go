package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// The programs of testdata/speed as they would be written in Go for one thread, with slices. A pass
// is what the programs time.

type matmulGo struct{ a, b, c []float64 }

const matmulN = 192

func newMatmulGo() *matmulGo {
	const n = matmulN
	m := &matmulGo{make([]float64, n*n), make([]float64, n*n), make([]float64, n*n)}
	for i := range n {
		for j := range n {
			m.a[i*n+j] = float64(i%7 + j%5)
			m.b[i*n+j] = float64(i%3 - j%4)
		}
	}
	return m
}

func (m *matmulGo) pass(int) {
	const n = matmulN
	for i := range n {
		row := m.c[i*n:][:n]
		clear(row)
		for l := range n {
			v, b := m.a[i*n+l], m.b[l*n:][:n]
			for j := range row {
				row[j] += v * b[j]
			}
		}
	}
}

func (m *matmulGo) sum() (s float64) {
	for _, v := range m.c {
		s += v
	}
	return s
}

type heatGo struct {
	grid   [2][]float64
	line   [2][]float64
	vector bool
}

const heatN, heatM = 256, 8192

func newHeatGo(vector bool) *heatGo {
	h := &heatGo{vector: vector}
	for k := range h.grid {
		h.grid[k], h.line[k] = make([]float64, heatN*heatN), make([]float64, heatM)
		for i := range heatN {
			for j := range heatN {
				h.grid[k][i*heatN+j] = float64(i%7 + j%5)
			}
		}
		for i := range h.line[k] {
			h.line[k][i] = float64(i % 11)
		}
	}
	return h
}

func (h *heatGo) pass(k int) {
	if h.vector {
		from, to := h.line[k%2], h.line[1-k%2]
		for i := 1; i < len(from)-1; i++ {
			to[i] = 0.25*from[i-1] + 0.5*from[i] + 0.25*from[i+1]
		}
		return
	}
	const n = heatN
	from, to := h.grid[k%2], h.grid[1-k%2]
	for i := 1; i < n-1; i++ {
		up, row, down, out := from[(i-1)*n:][:n], from[i*n:][:n], from[(i+1)*n:][:n], to[i*n:][:n]
		for j := 1; j < n-1; j++ {
			out[j] = 0.25 * (up[j] + down[j] + row[j-1] + row[j+1])
		}
	}
}

func (h *heatGo) sum() (s float64) {
	for _, v := range h.grid[0] {
		s += v
	}
	for _, v := range h.line[0] {
		s += v
	}
	return s
}

type cgGo struct {
	x, r, p, q []float64
	val        []float64
	col, start []int32
	rr         float64
}

func newCGGo() *cgGo {
	const n = 4096
	g := &cgGo{x: make([]float64, n), r: make([]float64, n), p: make([]float64, n), q: make([]float64, n), start: make([]int32, n+1)}
	for i := range n {
		for _, off := range []int{-640, -64, -8, -1, 0, 1, 8, 64, 640} {
			if j := i + off; j >= 0 && j < n {
				v := -1.0
				if off == 0 {
					v = 9.5
				}
				g.val, g.col = append(g.val, v), append(g.col, int32(j))
			}
		}
		g.start[i+1] = int32(len(g.val))
		g.r[i] = float64(1 + i%3)
		g.p[i] = g.r[i]
		g.rr += g.r[i] * g.r[i]
	}
	return g
}

func (g *cgGo) pass(int) {
	for i := range g.q {
		sum := 0.0
		for k := g.start[i]; k < g.start[i+1]; k++ {
			sum += g.val[k] * g.p[g.col[k]]
		}
		g.q[i] = sum
	}
	pq := 0.0
	for i, v := range g.p {
		pq += v * g.q[i]
	}
	was, alpha := g.rr, g.rr/pq
	g.rr = 0
	for i := range g.x {
		g.x[i] += alpha * g.p[i]
		g.r[i] -= alpha * g.q[i]
		g.rr += g.r[i] * g.r[i]
	}
	beta := g.rr / was
	for i := range g.p {
		g.p[i] = g.r[i] + beta*g.p[i]
	}
}

func (g *cgGo) sum() float64 { return math.Sqrt(g.rr) }

// plainGo is one of them.
type plainGo interface {
	pass(k int)
	sum() float64
}

var speedPrograms = []struct {
	name, file string
	args       []string
	passes     int
	plain      func() plainGo
}{
	{"matmul", "matmul", nil, 12, func() plainGo { return newMatmulGo() }},
	{"stencil5", "heat", nil, 40, func() plainGo { return newHeatGo(false) }},
	{"stencil3", "heat", []string{"vector"}, 40, func() plainGo { return newHeatGo(true) }},
	{"cg", "cg", nil, 25, func() plainGo { return newCGGo() }},
}

// speedModule compiles the programs into one module and returns the folder of the binaries.
func speedModule(tb testing.TB) string {
	tb.Helper()
	dir := moduleDir(tb)
	sources, err := filepath.Glob("testdata/speed/*.upc")
	if err != nil || len(sources) == 0 {
		tb.Fatal(sources, err)
	}
	for _, f := range sources {
		files, _, err := compile(&options{files: []string{f}})
		if err != nil {
			tb.Fatal(err)
		}
		at := filepath.Join(dir, filepath.Base(f[:len(f)-len(".upc")]))
		if err := os.MkdirAll(at, 0o777); err != nil {
			tb.Fatal(err)
		}
		for n, f := range files {
			if err := os.WriteFile(filepath.Join(at, n), f.Text, 0o666); err != nil {
				tb.Fatal(err)
			}
		}
	}
	if err := goBuild(dir, filepath.Join(dir, "bin")+"/", "./...", os.Stderr); err != nil {
		tb.Fatal(err)
	}
	return filepath.Join(dir, "bin")
}

// speedRun runs a program on one thread and returns the least time of a pass, and its sum.
func speedRun(tb testing.TB, program string, args ...string) (ns, sum float64) {
	tb.Helper()
	speedValues(tb, exec.Command(program, args...), []string{"ARGON_RANKS=1"}, &ns, &sum)
	return ns, sum
}

// speedValues runs a command and reads the numbers that it prints.
func speedValues(tb testing.TB, c *exec.Cmd, env []string, values ...any) {
	tb.Helper()
	c.Env = append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err == nil {
		_, err = fmt.Sscan(string(out), values...)
	}
	if err != nil {
		tb.Fatalf("%s: %v\n%s", c, err, out)
	}
}

// issued are the accesses of gather.upc.
var issued = []string{"gather", "scatter", "update"}

// gathered runs the program that gathers, scatters and updates elements of another thread: the times of each
// together, and one by one.
func gathered(tb testing.TB, bin string, env ...string) (times [3][2]float64, sum float64) {
	tb.Helper()
	t := &times
	speedValues(tb, exec.Command(filepath.Join(bin, "gather")), env, &t[0][0], &t[0][1], &t[1][0], &t[1][1], &t[2][0], &t[2][1], &sum)
	return times, sum
}

// TestSpeedPrograms: the programs whose speed is measured compute what their counterparts in Go do.
func TestSpeedPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	bin := speedModule(t)
	for _, p := range speedPrograms {
		_, sum := speedRun(t, filepath.Join(bin, p.file), p.args...)
		m := p.plain()
		for k := range p.passes {
			m.pass(k)
		}
		if want := m.sum(); math.Abs(sum-want) > 1e-5*math.Abs(want) {
			t.Errorf("%s: %g, and %g in Go", p.name, sum, want)
		}
	}
	_, want := gathered(t, bin, "ARGON_RANKS=1")
	times, sum := gathered(t, bin, "ARGON_RANKS=2", "ARGON_CONDUIT=sim")
	if sum != want {
		t.Errorf("gather: %g in all on another thread, %g on the own", sum, want)
	}
	for k, v := range times {
		if v[0] > v[1]/2 {
			t.Errorf("simulated, %s takes %.0f ns and %.0f one by one", issued[k], v[0], v[1])
		}
	}
}

// BenchmarkGenerated has how many times as long as Go with slices the code takes that is made of the
// programs, on one thread: the median of 15 runs of each in turn, of which each is its fastest pass. Of a
// gather, a scatter and updates of 10,000 elements of another thread by udp it is how many times as long
// as issued together they take one by one: the median of 5 runs, of the least of 5 of each in turn.
func BenchmarkGenerated(b *testing.B) {
	bin := speedModule(b)
	for _, p := range speedPrograms {
		b.Run(p.name, func(b *testing.B) {
			var ratios, all []float64
			for range 15 {
				ns, _ := speedRun(b, filepath.Join(bin, p.file), p.args...)
				least := math.Inf(1)
				for m, k := p.plain(), 0; k < p.passes; k++ {
					begun := time.Now()
					m.pass(k)
					least = min(least, float64(time.Since(begun)))
				}
				ratios, all = append(ratios, ns/least), append(all, ns)
			}
			slices.Sort(ratios)
			slices.Sort(all)
			b.ReportMetric(ratios[len(ratios)/2], "x-of-go")
			b.ReportMetric(all[len(all)/2], "ns/pass")
			b.ReportMetric(0, "ns/op")
		})
	}
	var ratios, times [3][]float64
	for range 5 {
		all, _ := gathered(b, bin, "ARGON_RANKS=2", "ARGON_CONDUIT=udp")
		for k, v := range all {
			ratios[k], times[k] = append(ratios[k], v[1]/v[0]), append(times[k], v[0])
		}
	}
	for k, name := range issued {
		b.Run(name, func(b *testing.B) {
			slices.Sort(ratios[k])
			slices.Sort(times[k])
			b.ReportMetric(ratios[k][2], "x-one-by-one")
			b.ReportMetric(times[k][2], "ns/pass")
			b.ReportMetric(0, "ns/op")
		})
	}
}
