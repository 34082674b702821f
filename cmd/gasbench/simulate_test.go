package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conduits/sim/fabric"
	"github.com/argon-go/argon/internal/testjob"
)

// simulated runs gasbench -conduit sim with args and returns the figures.
func simulated(t *testing.T, args ...string) []figure {
	t.Helper()
	o, err := parse(append([]string{"-conduit", "sim", "-json"}, args...), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := simulate(*o.sim, &out); err != nil {
		t.Fatal(err)
	}
	var l []figure
	d := json.NewDecoder(&out)
	d.DisallowUnknownFields()
	for {
		var f figure
		if err := d.Decode(&f); err == io.EOF {
			return l
		} else if err != nil {
			t.Fatal(err)
		}
		l = append(l, f)
	}
}

// TestTable91 predicts what was measured within 6 %, and what Nüssle 2008 adds up
// exactly.
func TestTable91(t *testing.T) {
	l := simulated(t, "-profile", "extoll", "-run", "thesis/latency")
	if len(l) != 8 || len(table91) != 8 {
		t.Fatalf("%d rows, want 8", len(l))
	}
	for i, f := range l {
		r := table91[i]
		if f.What != r.name || f.Prog != r.prognosis || f.Measured != r.measured {
			t.Errorf("row %d is %+v, want %+v", i, f, r)
		}
		if f.Value != r.prognosis || f.Expected != r.prognosis {
			t.Errorf("%s: simulated %v ns, steps add up to %v, in Nüssle 2008 to %v", r.name, f.Value, f.Expected, r.prognosis)
		}
		if d := 100 * (f.Value/r.measured - 1); math.Abs(d) > 6 || math.Abs(d-f.Diff) > 1e-9 {
			t.Errorf("%s: simulated %v ns, measured %v: off by %.1f %%, printed as %.1f", r.name, f.Value, r.measured, d, f.Diff)
		}
	}
}

// TestSteps changes each step of table 9-2 by itself: what is simulated then
// changes as often as the table says that the operation takes it.
func TestSteps(t *testing.T) {
	const more = 17 * sim.Nanosecond
	for _, r := range table91 {
		for _, c := range []struct {
			name  string
			times int
			step  func(p *sim.Profile) *sim.Time
		}{
			{"DMA read", r.steps.dmaRead, func(p *sim.Profile) *sim.Time { return &p.DMARead }},
			{"ATU", r.steps.atu, func(p *sim.Profile) *sim.Time { return &p.ATU }},
			{"trip", r.steps.trips, func(p *sim.Profile) *sim.Time { return &p.Net.Latency }},
			{"DMA write", r.steps.dmaWrite, func(p *sim.Profile) *sim.Time { return &p.DMAWrite }},
			{"PIO", r.steps.pio, func(p *sim.Profile) *sim.Time { return &p.PIO }},
			{"unit", r.steps.units, func(p *sim.Profile) *sim.Time { return &p.Unit }},
			{"software", 1, func(p *sim.Profile) *sim.Time { return &p.Software }},
		} {
			p := sim.Extoll()
			*c.step(&p) += 2 * more // even, for software is halved
			ns, err := r.run(p)
			if err != nil {
				t.Fatal(err)
			}
			if want := r.prognosis + float64(c.times)*2*17; ns != want || r.steps.sum(&p) != want {
				t.Errorf("%s with a slower %s: %v ns, the sum is %v; want %v", r.name, c.name, ns, r.steps.sum(&p), want)
			}
		}
	}
}

func TestRates(t *testing.T) {
	l := simulated(t, "-run", "thesis/rate")
	if len(l) != 4 {
		t.Fatalf("%d rates, want 4", len(l))
	}
	for _, f := range l {
		if math.Abs(f.Diff) > 0.2 || math.Abs(f.Value/f.Expected-1) > 0.002 || f.Metric != rate {
			t.Errorf("%+v", f)
		}
	}
}

// TestText pins how far the model goes; docs say which of these fit.
func TestText(t *testing.T) {
	got := map[string]float64{}
	for _, f := range simulated(t, "-run", "thesis/text") {
		got[f.What] = f.Value
	}
	for what, want := range map[string]float64{
		"bandwidth of puts of 4 KiB":        274e6,
		"bandwidth of full VELO slots":      214e6,
		"half bandwidth, ping-pong of puts": 576,
		"half bandwidth, streaming VELO":    32,
		"put faster than VELO, ping-pong":   736,
		"put above VELO, streaming":         192,
		"landing buffer faster than slots":  1008,
	} {
		if math.Abs(got[what]/want-1) > 0.003 {
			t.Errorf("%s: %v, want %v", what, got[what], want)
		}
	}
}

// TestShort adds messages up: one slot, and two.
func TestShort(t *testing.T) {
	slots := map[int]int{0: 1, 4: 1, 8: 1, 12: 1, 13: 2, 14: 2, 16: 2}
	// 16 bytes of header a slot, 8 of tag, 4 an argument; 24 are free; 3.636 ns.
	for _, f := range simulated(t, "-run", "am/short") {
		n := slots[f.Size]
		want := 1300 + 3.636*float64(16*n+8+4*f.Size-24)
		if math.Abs(f.Value-want) > 0.5 || math.Abs(f.Expected-want) > 1e-6 || f.What[0] != byte('0'+n) {
			t.Errorf("%d arguments: %v ns, sum %v, %s; want %v in %d slots", f.Size, f.Value, f.Expected, f.What, want, n)
		}
		delete(slots, f.Size)
	}
	if len(slots) > 0 {
		t.Errorf("no figure for %v arguments", slots)
	}
}

func TestSizes(t *testing.T) {
	last := map[string]float64{}
	n := 0
	for _, f := range simulated(t, "-run", "thesis/size") {
		k := f.What + f.Metric
		if f.Value < last[k] {
			t.Errorf("%s of %d bytes: %v after %v for half of them", k, f.Size, f.Value, last[k])
		}
		last[k] = f.Value
		n++
	}
	if n != 50 {
		t.Errorf("%d figures, want 10 sizes of 5", n)
	}
}

// TestIdeal has no figures to compare with.
func TestIdeal(t *testing.T) {
	for _, f := range simulated(t, "-profile", "ideal", "-run", "thesis/latency|thesis/rate|am/short") {
		if f.Measured != 0 || f.Prog != 0 || f.Diff != 0 || f.Profile != "ideal" {
			t.Errorf("%+v", f)
		}
		if f.Unit == "ns" && math.Abs(f.Value-f.Expected) > 2 {
			t.Errorf("%s: %v ns, want %v", f.What, f.Value, f.Expected)
		}
	}
}

// TestOffload: what cards and switches do for all ranks is faster than messages are, the
// barrier the more so the more ranks there are.
func TestOffload(t *testing.T) {
	took := map[string]float64{}
	l := simulated(t, "-run", "scale/offload", "-ranks", "64")
	for _, f := range l {
		took[fmt.Sprint(f.What, f.Size, f.Ranks)] = f.Value
	}
	if len(l) != 2*len(offloads)*len(topologies)*2 || len(took) != len(l) {
		t.Fatalf("%d figures, %d of them different", len(l), len(took))
	}
	for _, topo := range topologies {
		for _, o := range offloads {
			gain := func(ranks int) float64 {
				what := topo.String() + " " + o.name
				return took[fmt.Sprint(what, o.size, ranks)] / took[fmt.Sprint(what+" by the card", o.size, ranks)]
			}
			// A broadcast of few bytes has hops across the torus both ways, and gains less there.
			few, many := gain(16), gain(64)
			if grows := o.name == "barrier"; !(few > 1.2 && many > 1.2) || grows && many <= few {
				t.Errorf("%v: %s of %d bytes is faster by %v with 16 ranks, by %v with 64", topo, o.name, o.size, few, many)
			}
		}
	}
}

func TestScale(t *testing.T) {
	file := filepath.Join(t.TempDir(), "scale.svg")
	l := simulated(t, "-run", "scale/barrier|scale/allreduce", "-ranks", "64", "-plot", file)
	if len(l) != 2*3*6 {
		t.Fatalf("%d figures, want 36", len(l))
	}
	for _, f := range l {
		rounds := float64(log2(f.Ranks))
		model, most := rounds*(1300+3.636*16), 0.0
		if f.Bench == "scale/allreduce" {
			// A rank that begins says two things, which takes its processor and the card.
			model, most = 2*rounds*(1300+3.636*24), 500
		}
		if math.Abs(f.Expected-model) > 1 || f.Hops < f.Expected {
			t.Errorf("%+v: model is %v", f, model)
		}
		if f.What == "crossbar" && (f.Value < model-2 || f.Value > model+most+2) {
			t.Errorf("%s of %d ranks on a crossbar: %v ns, model %v", f.Bench, f.Ranks, f.Value, model)
		}
		if f.Value < model-2 || f.Value > 1.2*f.Hops+most {
			t.Errorf("%s of %d ranks on a %s: %v ns, model %v to %v", f.Bench, f.Ranks, f.What, f.Value, model, f.Hops)
		}
		if f.Events == 0 {
			t.Errorf("no events: %+v", f)
		}
	}
	svg, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	points := circles(t, svg) - 2*3 // those of the legends
	if points != len(l) {
		t.Errorf("%d points drawn for %d figures", points, len(l))
	}
}

// TestPlotOne draws one chart only, and reports a file that cannot be.
func TestPlotOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.svg")
	simulated(t, "-run", "scale/barrier", "-ranks", "4", "-plot", file)
	svg, err := os.ReadFile(file)
	if err != nil || strings.Count(string(svg), ">ranks<") != 1 || !strings.Contains(string(svg), "Dissemination") {
		t.Errorf("%v, %s", err, svg)
	}
	o, err := parse([]string{"-conduit", "sim", "-run", "scale/barrier", "-ranks", "2", "-plot", filepath.Join(file, "x")}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := simulate(*o.sim, io.Discard); err == nil {
		t.Error("no error for a file in a file")
	}
}

// TestDocs compares docs/predictions.md with what is printed now.
func TestDocs(t *testing.T) {
	o, err := parse([]string{"-conduit", "sim", "-profile", "extoll"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := simulate(*o.sim, &out); err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../docs/predictions.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range strings.Split(out.String(), "\n\n") {
		if !strings.Contains(string(doc), "```\n"+strings.TrimSpace(table)+"\n```") {
			t.Errorf("docs/predictions.md does not have this:\n%s", table)
		}
	}
}

// TestScalingDocs compares a row of each table of docs/scaling.md with what is
// simulated now, and the models of a million ranks.
func TestScalingDocs(t *testing.T) {
	b, err := os.ReadFile("../../docs/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	for _, c := range []struct {
		bench, name string
		model       func(p *sim.Profile, ranks int) (flat, hops float64, err error)
	}{
		{"scale/barrier", "barrier", barrierModel},
		{"scale/allreduce", "all-reduce", allReduceModel},
	} {
		us := map[string]float64{}
		for _, f := range simulated(t, "-run", c.bench, "-ranks", "1024") {
			if f.Ranks == 1024 {
				us[f.What] = f.Value / 1000
				us["model"], us["hops "+f.What] = f.Expected/1000, f.Hops/1000
			}
		}
		row := fmt.Sprintf("| %s, 1024 ranks | %.2f | %.2f | %.2f | %.2f | %.2f |",
			c.name, us["model"], us["crossbar"], us["fattree"], us["torus"], us["hops torus"])
		if !strings.Contains(doc, row) {
			t.Errorf("docs/scaling.md lacks %s", row)
		}
		million := func(topo fabric.Topology) (flat, hops float64) {
			p := sim.Extoll()
			p.Net.Topology = topo
			flat, hops, err := c.model(&p, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			return flat / 1000, hops / 1000
		}
		flat, torus := million(fabric.Torus)
		_, tree := million(fabric.FatTree)
		row = fmt.Sprintf("| %s, 1,048,576 ranks (model only) | %.1f | | up to %.1f | | %.1f |", c.name, flat, tree, torus)
		if !strings.Contains(doc, row) {
			t.Errorf("docs/scaling.md lacks %s", row)
		}
	}
}

func TestSimTable(t *testing.T) {
	o, err := parse([]string{"-conduit", "sim", "-run", "thesis/latency|scale/barrier", "-ranks", "2"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := simulate(*o.sim, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`simulated, profile extoll: software 300 ns`,
		`put, no notification +1890 +1890 +1890 +1990 +-5\.0 %\n`,
		`torus 2 +1\.36 +1\.36 +1\.36 +\d+ +\d+\.\d\d +\S+ +\d+\n`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
}

func TestSimParse(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-conduit sim", ""},
		{"-conduit sim -profile ideal -json", ""},
		{"-conduit sim -run scale/.* -ranks 65536 -plot x.svg", ""},
		{"-conduit sim -list", ""},
		{"-profile extoll", "-profile is for simulated jobs"},
		{"-ranks 4", "-ranks is for simulated jobs"},
		{"-conduit sim -time 1s", "-time has no meaning with -conduit sim"},
		{"-conduit sim -bursts 2", "-bursts has no meaning with -conduit sim"},
		{"-conduit sim -profile x", `no profile "x"; known: extoll, ideal`},
		{"-conduit sim -run barrier", `-run "barrier" matches no benchmark of -conduit sim as a whole; there are thesis/latency`},
		{"-conduit sim -run (", "is not a regular expression"},
		{"-conduit sim -ranks 8", "-ranks is for benchmarks scale/..."},
		{"-conduit sim -run scale/.* -ranks 1", "-ranks 1: it must be 2 to 16777216"},
		{"-conduit sim -plot x", "-plot x: nothing to plot"},
		{"-conduit sim -run scale/barrier x", `unexpected argument "x"`},
	} {
		_, err := parse(strings.Fields(c.args), io.Discard)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: error %v, want %q", c.args, err, c.want)
		}
	}
	o, err := parse([]string{"-conduit", "sim"}, io.Discard)
	if err != nil || o.sim.run.MatchString("scale/barrier") || !o.sim.run.MatchString("thesis/rate") {
		t.Errorf("by itself it runs %v, %v", o.sim.run, err)
	}
}

// TestSimAlone refuses what would not be the job that was asked for.
func TestSimAlone(t *testing.T) {
	o, err := parse([]string{"-conduit", "sim"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("ARGON_RANKS", "3")
	if err := simulate(*o.sim, io.Discard); err == nil || !strings.Contains(err.Error(), "ARGON_RANKS is set") {
		t.Errorf("ARGON_RANKS=3: %v", err)
	}
	r := testjob.RunConfig(t, 1, "gasbench", testjob.Config{Args: []string{"-conduit", "sim"}}).Want(t, 1)
	if !strings.Contains(r.Stderr[0], "without gasrun") {
		t.Errorf("as a rank it says %q", r.Stderr[0])
	}
}

// TestVirtual refuses to measure real time in a simulated job.
func TestVirtual(t *testing.T) {
	t.Setenv("ARGON_RANKS", "2")
	t.Setenv("ARGON_CONDUIT", "sim")
	o, err := parse(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := bench(o, io.Discard, os.Stderr); err == nil || !strings.Contains(err.Error(), "gasbench -conduit sim") {
		t.Errorf("error %v", err)
	}
}

// failing fails at every write.
type failing struct{}

var errWrite = errors.New("full")

func (failing) Write([]byte) (int, error) { return 0, errWrite }

func TestSimWriteError(t *testing.T) {
	for _, args := range [][]string{{"-conduit", "sim"}, {"-conduit", "sim", "-json"}} {
		o, err := parse(args, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if err := simulate(*o.sim, failing{}); !errors.Is(err, errWrite) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "", 1300: "1300", 1358.18: "1358.2", 0.04: "0", 12.96: "13"} {
		if got := plainNumber(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}
