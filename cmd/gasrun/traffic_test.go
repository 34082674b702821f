package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conduits/sim/replay"
	"github.com/argon-go/argon/conduits/traffic"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// TestReplay: the traffic of examples, recorded on one simulated machine, takes on that machine as long
// as the program, to the nanosecond of each rank, and on others about as long as the program does there.
func TestReplay(t *testing.T) {
	testmain.Long(t)
	const from = "extoll"
	for _, tc := range []struct {
		ranks string
		args  []string
		bound float64 // parts of the program's time
	}{
		{"4", []string{"heat", "-size", "64", "-steps", "20", "-o", ""}, .05},
		{"8", []string{"gups", "-size", "7"}, .05},
		{"8", []string{"gups", "-size", "10", "-mode", "mailbox"}, .05},
		{"8", []string{"sort", "-size", "10"}, .05},
		{"8", []string{"bfs", "-scale", "6"}, .20}, // its rounds depend on what has come by when
	} {
		t.Run(strings.Join(tc.args, " "), func(t *testing.T) {
			record := func(options string) (*traffic.Traffic, time.Duration) {
				t.Helper()
				file := filepath.Join(t.TempDir(), "traffic")
				simrun(t, append([]string{"-n", tc.ranks, "-sim", options, "-record", file, simulated(t, tc.args[0])}, tc.args[1:]...)...).want(t, 0)
				f, err := os.Open(file)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				tr, err := traffic.Read(file, f)
				if err != nil {
					t.Fatal(err)
				}
				took := time.Duration(0)
				for r := range tr.Ranks {
					took = max(took, tr.Ranks[r].Took)
				}
				return tr, took
			}
			run := func(tr *traffic.Traffic, options string) *replay.Report {
				t.Helper()
				c, err := sim.ParseOptions(options)
				if err != nil {
					t.Fatal(err)
				}
				r, err := replay.Run(tr, replay.Options{Sim: c, Compute: 1})
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			tr, _ := record("machine=" + from)
			same := run(tr, "machine="+from)
			for r := range tr.Ranks {
				if got, want := same.Ranks[r].Took, tr.Ranks[r].Took; got != want {
					t.Errorf("rank %d took %v, and %v again", r, want, got)
				}
			}
			for _, machine := range []string{"machine=atoll", "machine=firmvia topology=torus"} {
				_, want := record(machine)
				got := run(tr, machine).Took
				if off := float64(got)/float64(want) - 1; math.Abs(off) > tc.bound {
					t.Errorf("%s: the program takes %v, its traffic from %s %v: %+.1f %%; %.0f %% at most", machine, want, from, got, 100*off, 100*tc.bound)
				} else {
					t.Logf("%s: %v, from %s %v: %+.1f %%", machine, want, from, got, 100*off)
				}
			}
		})
	}
}

// TestRecord records processes on each conduit, and what cannot be recorded or run is refused.
func TestRecord(t *testing.T) {
	testmain.Long(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "traffic")
	for _, conduit := range []string{"shm", "udp"} {
		trace := filepath.Join(dir, conduit+".trace")
		gasrun(t, "-conduit", conduit, "-n", "3", "-record", file, "-trace", trace, simulated(t, "sort"), "-size", "8").want(t, 0)
		if b := read(t, trace); !bytes.Contains(b, []byte("rank 2")) || !bytes.Contains(b, []byte("main.go:")) {
			t.Errorf("%s: the trace has not rank 2, or no line of the program", conduit)
		}
		r := gasrun(t, "-replay", file, "-machine", "atoll", "-topology", "crossbar", "-compute", "0.5")
		r.want(t, 0)
		for _, w := range []string{"3 ranks: ", "recorded on " + conduit, "machine=atoll topology=crossbar", "waiting/all waiting"} {
			if !strings.Contains(r.stdout, w) {
				t.Errorf("%q is missing in %s", w, r.stdout)
			}
		}
	}
	kept := filepath.Join(dir, "kept")
	simrun(t, "-n", "2", "-keep", kept, simulated(t, "hello")).want(t, 0)
	for _, tc := range []struct {
		args   []string
		status int
		want   []string
	}{
		{[]string{"-replay", "npb:ep.4", "-machine", "ideal"}, 0, nil},
		{[]string{"-replay", kept}, jobenv.StatusUsage, []string{kept, "offset 0", "-again"}},
		{[]string{"-again", file}, jobenv.StatusUsage, []string{file, "line 1"}},
		{[]string{"-replay", filepath.Join(dir, "none")}, jobenv.StatusUsage, []string{"no such file"}},
		{[]string{"-replay", "npb:is.D.8"}, jobenv.StatusUsage, []string{"npb:is.D.8", "is.CLASS.TASKS"}},
		{[]string{"-replay", file, "./program"}, jobenv.StatusUsage, []string{"not a program", "-again"}},
		{[]string{"-replay", file, "-n", "4"}, jobenv.StatusUsage, []string{"-n and -replay exclude"}},
		{[]string{"-replay", file, "-conduit", "shm"}, jobenv.StatusUsage, []string{"shm"}},
		{[]string{"-replay", file, "-compute", "-1"}, jobenv.StatusUsage, []string{"-1", "factor"}},
		{[]string{"-replay", file, "-machine", "none"}, jobenv.StatusUsage, []string{"none"}},
		{[]string{"-compute", "2", "./program"}, jobenv.StatusUsage, []string{"-replay"}},
		{[]string{"-record", "", "./program"}, jobenv.StatusUsage, []string{"-record", "empty"}},
		{[]string{"-trace", "/dev/full", simulated(t, "hello")}, 0, []string{"argon: trace: it is not complete"}},
		{[]string{"-trace", "", "./program"}, jobenv.StatusUsage, []string{"-trace", "empty"}},
		{[]string{"-trace", filepath.Join(dir, "none", "x"), simulated(t, "hello")}, jobenv.StatusFailed, []string{"-trace", "no such file"}},
		{[]string{"-record", filepath.Join(dir, "none", "x"), simulated(t, "hello")}, jobenv.StatusFailed, []string{"-record", "no such file"}},
		{[]string{"-record", file, "-hosts", "elsewhere:2", simulated(t, "hello")}, jobenv.StatusFailed, []string{"elsewhere", "-record"}},
	} {
		gasrun(t, tc.args...).want(t, tc.status, tc.want...)
	}
}
