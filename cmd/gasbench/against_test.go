package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/internal/testkit/testjob"
)

// written is a file with the lines as -json prints them.
func written(t *testing.T, lines []line) string {
	t.Helper()
	var b bytes.Buffer
	for _, l := range lines {
		if err := json.NewEncoder(&b).Encode(l); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "before.json")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAgainst(t *testing.T) {
	figure := func(bench, unit string, ref, ratio, low, high float64) line {
		l := line{Bench: bench, Conduit: "shm", Ranks: 2, Metric: latency, Unit: unit, Value: ratio, Low: low, High: high}
		if ref > 0 {
			l.Ref, l.RefValue, l.Ratio, l.Value = refLine, ref, ratio, ref*ratio
		}
		return l
	}
	loss := 0.01
	lossy := figure("lossy", "ns", 50, 1, 0.9, 1.1)
	lossy.Loss = &loss
	before := []line{
		figure("worse", "ns", 50, 1, 0.9, 1.1),
		figure("better", "ns", 50, 1, 0.9, 1.1),
		figure("noisy", "ns", 50, 1, 0.9, 1.1),
		figure("narrower", "bytes/s", 50, 1, 0.9, 1.1),
		figure("wider", "bytes/s", 50, 1, 0.9, 1.1),
		figure("moved", "ns", 50, 1, 0.9, 1.1),
		figure("bare", "ns", 0, 100, 90, 110),
		figure("single", "share", 0, 0.5, 0, 0),
		figure("ref/x", "ns", 0, 100, 90, 110),
		// The run in which the machine was slow is no measure for one in which it is fast.
		figure("twice", "ns", 50, 1, 0.9, 1.1),
		figure("twice", "ns", 250, 3, 2.9, 3.1),
		lossy,
	}
	slowerLossy := lossy
	slowerLossy.Ratio, slowerLossy.Low, slowerLossy.High = 2, 1.9, 2.1
	now := []line{
		figure("worse", "ns", 55, 1.3, 1.2, 1.4),
		figure("better", "ns", 45, 0.8, 0.7, 0.85),
		figure("noisy", "ns", 50, 1.2, 1.05, 1.4),
		figure("narrower", "bytes/s", 50, 0.8, 0.7, 0.85),
		figure("wider", "bytes/s", 50, 1.3, 1.2, 1.4),
		figure("moved", "ns", 250, 2, 1.9, 2.1),
		figure("bare", "ns", 0, 130, 120, 140),
		figure("single", "share", 0, 0.4, 0, 0), // nothing is known of its noise
		figure("ref/x", "ns", 0, 300, 290, 310),
		figure("twice", "ns", 52, 1.3, 1.2, 1.4),
		figure("lossy", "ns", 50, 2, 1.9, 2.1), // without a relay: another figure
		slowerLossy,
	}
	e, err := readEarlier(written(t, before), 1)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = e.compare(now, &out)
	if !errors.Is(err, errSlower) || err.Error() != "5 of 10 figures are slower than before" {
		t.Errorf("error %v", err)
	}
	verdicts := map[string]string{}
	for _, l := range strings.Split(out.String(), "\n") {
		if f := strings.Fields(l); len(f) > 1 {
			verdicts[f[0]] = f[len(f)-1]
		}
	}
	for bench, want := range map[string]string{
		"worse": slower, "better": faster, "noisy": "1.20", "narrower": slower, "wider": faster,
		"moved": "moved", "bare": slower, "single": "0.800", "ref/x": "", "twice": slower, "lossy": slower,
	} {
		if verdicts[bench] != want {
			t.Errorf("%s: %q, want %q", bench, verdicts[bench], want)
		}
	}
	if want := "10 figures: 5 slower, 2 faster, by more than the noise of both; 1 not compared, as their references differ by more than 20 %; 1 of this run are not in"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
	e.slack = 1.2
	if err := e.compare(now, &out); err == nil || err.Error() != "1 of 10 figures are slower than before" {
		t.Errorf("with a slack of 1.2, error %v", err) // of the one on a lossy path
	}
	e.slack = 1
	out.Reset()
	if err := e.compare(before, &out); err != nil {
		t.Errorf("a run is slower than itself: %v\n%s", err, out.String())
	}
	if err := e.compare([]line{{Bench: "new", Metric: rate, Unit: "ns"}}, &out); err == nil || !strings.Contains(err.Error(), "no figure of this run") {
		t.Errorf("nothing to compare: %v", err)
	}
}

// TestSameNoise compares runs whose bursts are drawn from one and the same set: the
// median of one side lies in the band of the other, so that none is slower.
func TestSameNoise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Float64Range(1, 100), 1, 30).Draw(t, "bursts")
		low, high := quartiles(v)
		mid := median(v)
		if low > mid || mid > high {
			t.Fatalf("the median %v of %v is not between the quartiles %v and %v", mid, v, low, high)
		}
		l := line{Bench: "x", Unit: rapid.SampledFrom([]string{"ns", "bytes/s"}).Draw(t, "unit"), Value: mid, Low: low, High: high}
		runs := make([]line, rapid.IntRange(1, 9).Draw(t, "runs"))
		for i := range runs {
			runs[i] = l
		}
		if c := compare(keyOf(&l), runs, []line{l}, 1); c.verdict != same || c.nowBand.mid != mid {
			t.Fatalf("%d runs of %+v are %q than one of them: %+v", len(runs), l, c.verdict, c)
		}
	})
}

func TestReadEarlier(t *testing.T) {
	if _, err := readEarlier(filepath.Join(t.TempDir(), "none"), 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for text, want := range map[string]string{
		"":                             "there are no figures in it; -json prints some",
		"bench  via":                   "at byte",
		`{"bench":"x","profile":"y"}`:  `unknown field "profile"`,
		`{"bench":"x","metric":"lat"}`: "has no bench, metric or unit",
	} {
		file := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readEarlier(file, 1); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestAgainstItself has a job compare its figures with another's, both ways of
// starting one.
func TestAgainstItself(t *testing.T) {
	defer testjob.AssertNoLeftovers(t)
	args := []string{"-json", "-time", "1us", "-bursts", "1", "-run", "am/short|ref/cacheline", "-size", "0"}
	r := testjob.RunConfig(t, 2, "gasbench", testjob.Config{Args: args}).Want(t, 0)
	var lines []line
	for d := json.NewDecoder(strings.NewReader(r.Stdout[0])); d.More(); {
		var l line
		if err := d.Decode(&l); err != nil {
			t.Fatal(err)
		}
		// So wide that nothing is beyond it, and beside whatever reference.
		for _, f := range []float64{1, 1.4, 2, 2.8, 4, 5.6, 8, 11, 16, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.09, 0.06} {
			w := l
			w.RefValue *= f
			w.Low, w.High = 1e-9, 1e9
			lines = append(lines, w)
		}
	}
	file := written(t, lines)
	r = testjob.RunConfig(t, 2, "gasbench", testjob.Config{Args: append(args, "-against", file)}).Want(t, 0)
	if !strings.Contains(r.Stderr[0], "2 figures: 0 slower, 0 faster") {
		t.Errorf("the job printed %s", r.Output())
	}
	r = testjob.RunConfig(t, 2, "gasbench", testjob.Config{Args: append(args, "-against", file+".not")})
	if !strings.Contains(r.Stderr[0], file+".not") {
		t.Errorf("without the file the job printed %s", r.Output())
	}

	t.Setenv("ARGONTEST_JOB", "gasbench") // what this binary is when it is started again
	o, err := parse([]string{"-conduit", "shm", "-time", "1us", "-bursts", "1", "-run", "am/short", "-size", "0", "-against", file}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := runJobs(*o.jobs, &out, os.Stderr); err != nil || !strings.Contains(out.String(), "2 figures: 0 slower, 0 faster") {
		t.Errorf("%v, printed\n%s", err, out.String())
	}
}
