package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conduits/sim/fabric"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/internal/testkit/testmain"
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

// TestSimOverlap: where the rank computes, and has Config.Progress, all but a fifth of a transfer of 64 KiB and more
// goes on; puts, gets and long messages are the card's and need none. An all-reduce alone waits for the rank.
func TestSimOverlap(t *testing.T) {
	l := simulated(t, "-run", "overlap")
	if len(l) != 2*len(overlapped)*len(overlapSizes) {
		t.Fatalf("%d figures", len(l))
	}
	for _, f := range l {
		own := strings.HasPrefix(f.What, "allreduce") || strings.HasPrefix(f.What, "broadcast")
		progress := strings.HasSuffix(f.What, "with Progress")
		if f.Metric != overlap || f.Value > 1 || f.Size >= 64<<10 && f.Value < 0.8 && (progress || !own) {
			t.Errorf("%+v", f)
		}
		if f.What == "allreduce" && f.Size >= 64<<10 && f.Value > 0.2 {
			t.Errorf("goes on without the rank: %+v", f)
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

// TestNetwork: what excludes deadlocks has none; what does not has, where packets go far, and blocks more (figures
// 2-20 to 2-22 of Nüssle 2008).
func TestNetwork(t *testing.T) {
	got := map[string]float64{}
	l := simulated(t, "-run", "network/locality", "-ranks", "64")
	for _, f := range l {
		got[fmt.Sprint(f.What, " ", f.Metric)] = f.Value
	}
	if len(l) != len(networks)*4*5 || len(got) != len(l) {
		t.Fatalf("%d figures, %d of them different", len(l), len(got))
	}
	for _, w := range networks {
		safe := w.routing != fabric.Shortest && (w.topology == fabric.Mesh || w.channels > 1 || w.routing != fabric.DimensionOrder)
		for _, far := range []int{1, 2, 4, 8} {
			if d := got[fmt.Sprintf("%s, up to %d away deadlocks", w.name, far)]; safe && d != 0 {
				t.Errorf("%s, %d: %v deadlocks a packet", w.name, far, d)
			}
		}
		near, far := got[w.name+", up to 1 away blocked"], got[w.name+", up to 8 away blocked"]
		if !(near < far && far < 1) {
			t.Errorf("%s: %v of requests block near, %v far", w.name, near, far)
		}
	}
	if a, b := got["mesh, shortest, up to 8 away blocked"], got["mesh, dimension order, up to 8 away blocked"]; a < 1.2*b {
		t.Errorf("by shortest ways %v of requests block, in dimension order %v", a, b)
	}
}

// TestNetworkLoad: a network carries what is offered until it is full, and the delay grows with the load.
func TestNetworkLoad(t *testing.T) {
	o, err := parse([]string{"-conduit", "sim"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	s := &study{o: *o.sim}
	for _, to := range []traffic{uniform, hot, unbalanced} {
		last := 0.0
		for _, load := range []float64{0.02, 0.08, 0.6} {
			r, err := s.experiment(networks[5], 8, load, to)
			if err != nil {
				t.Fatal(err)
			}
			if r.delay <= last || r.throughput > 1.1*load || load < 0.1 && r.throughput < 0.9*load || r.deadlocks != 0 {
				t.Errorf("%s at %v: %+v, delay before %v", to.name, load, r, last)
			}
			last = r.delay
			if again, err := s.experiment(networks[5], 8, load, to); err != nil || again != r {
				t.Errorf("%s at %v: %+v and then %+v, %v", to.name, load, r, again, err)
			}
		}
	}
}

func TestScale(t *testing.T) {
	l := simulated(t, "-run", "scale/barrier|scale/allreduce", "-ranks", "64")
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
}

// TestScalingDocs compares a row of each table of docs/scaling.md with what is
// simulated now, and the models of a million ranks.
func TestScalingDocs(t *testing.T) {
	testmain.Long(t)
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
	o, err := parse([]string{"-conduit", "sim", "-run", "scale/barrier", "-ranks", "2"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := simulate(*o.sim, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`simulated, profile extoll: software 300 ns`,
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
		{"-conduit sim -machine ideal -json", ""},
		{"-conduit sim -run scale/.* -ranks 65536", ""},
		{"-conduit sim -list", ""},
		{"-machine extoll", "-machine is for simulated jobs"},
		{"-conduit sim -profile extoll", "the simulated machine is -machine NAME"},
		{"-ranks 4", "-ranks is for simulated jobs"},
		{"-conduit sim -time 1s", "-time has no meaning with -conduit sim"},
		{"-conduit sim -bursts 2", "-bursts has no meaning with -conduit sim"},
		{"-conduit sim -machine x", `no machine "x"; known: ` + strings.Join(sim.Profiles(), ", ")},
		{"-conduit sim -run barrier", `-run "barrier" matches no benchmark of -conduit sim as a whole; there are scale/barrier`},
		{"-conduit sim -run (", "is not a regular expression"},
		{"-conduit sim -run scale/.* -ranks 1", "-ranks 1: it must be 2 to 16777216"},
		{"-conduit sim -run scale/barrier x", `unexpected argument "x"`},
	} {
		_, err := parse(strings.Fields(c.args), io.Discard)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: error %v, want %q", c.args, err, c.want)
		}
	}
	o, err := parse([]string{"-conduit", "sim"}, io.Discard)
	if err != nil || !o.sim.run.MatchString("scale/barrier") {
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
	for _, args := range [][]string{{"-conduit", "sim"}, {"-conduit", "sim", "-ranks", "2", "-json"}} {
		o, err := parse(args, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if err := simulate(*o.sim, failing{}); !errors.Is(err, errWrite) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
