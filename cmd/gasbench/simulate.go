package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/internal/jobenv"
)

// In virtual time references mean nothing: figures are exact, and stand beside
// what was published instead.

// studies are the benchmarks of -conduit sim, in the order they run.
var studies = []struct {
	name  string
	about string
	run   func(s *study) error
}{
	{"thesis/latency", "start-up latencies, beside table 9-1 of Nüssle 2008", latencies},
	{"thesis/rate", "message rates, beside table 9-3", rates},
	{"thesis/size", "half round trips and bandwidths by size", sizes},
	{"thesis/text", "sizes at which curves cross, beside what the text says", crossings},
	{"am/short", "half round trips of short active messages by number of arguments", shorts},
	{"scale/barrier", "barriers by number of ranks, on three topologies", scaleBarrier},
	{"scale/allreduce", "all-reduce of 8 bytes by number of ranks, on three topologies", scaleAllReduce},
	{"scale/offload", "barriers, broadcasts and all-reduces by messages and by cards that have them", scaleOffload},
}

// quick are the benchmarks that run if none are chosen.
const quick = `thesis/.*|am/.*`

// simOptions are the command line of -conduit sim.
type simOptions struct {
	json    bool
	list    bool
	run     *regexp.Regexp
	profile sim.Profile
	ranks   int
	plot    string // a file, or ""
}

// A figure is one result of a simulation, as -json prints it. Values are of the
// metric's unit: ns, operations/s, bytes/s or bytes.
type figure struct {
	Bench    string  `json:"bench"`
	What     string  `json:"what"` // operation, or topology
	Profile  string  `json:"profile"`
	Ranks    int     `json:"ranks"`
	Size     int     `json:"size"` // bytes; am/short: arguments
	Metric   string  `json:"metric"`
	Value    float64 `json:"value"`
	Unit     string  `json:"unit"`
	Expected float64 `json:"expected,omitempty"`  // what the profile's figures add up to
	Hops     float64 `json:"hops,omitempty"`      // the same with the longest ways through the network
	Prog     float64 `json:"prognosis,omitempty"` // of Nüssle 2008
	Measured float64 `json:"published,omitempty"` // measured there
	Diff     float64 `json:"difference_percent,omitempty"`
	Note     string  `json:"note,omitempty"`

	Events uint64  `json:"events,omitempty"`
	CPU    float64 `json:"cpu_s,omitempty"`
	PerCPU float64 `json:"events_per_cpu_s,omitempty"`
	Memory float64 `json:"bytes_per_rank,omitempty"`
}

// compare notes what was published.
func (f *figure) compare(prognosis, measured float64) {
	f.Prog, f.Measured = prognosis, measured
	if measured > 0 {
		f.Diff = 100 * (f.Value - measured) / measured
	}
}

// study is a run of benchmarks on simulated jobs.
type study struct {
	o       simOptions
	bench   string
	out     io.Writer
	json    *json.Encoder
	extoll  bool // the profile is the one that figures were published of
	figures []figure
}

// simulate runs what o selects and writes the figures to out.
func simulate(o simOptions, out io.Writer) error {
	s := &study{o: o, out: out, extoll: o.profile.Name == "extoll"}
	if _, launched, err := conduits.Launched(os.Getenv); launched || err != nil {
		return errors.New("-conduit sim simulates all ranks in one process: start gasbench without gasrun")
	}
	for _, v := range []string{jobenv.Conduit, jobenv.Ranks, jobenv.Segment, "ARGON_PROGRESS"} {
		if os.Getenv(v) != "" {
			return fmt.Errorf("%s is set, which would change the simulated jobs: unset it for -conduit sim", v)
		}
	}
	if o.json {
		s.json = json.NewEncoder(out)
	} else if _, err := fmt.Fprintf(out, "simulated, profile %v\n", o.profile); err != nil {
		return err
	}
	for _, b := range studies {
		if !o.run.MatchString(b.name) {
			continue
		}
		s.bench = b.name
		if err := b.run(s); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	if o.plot == "" {
		return nil
	}
	return plotTo(o.plot, scaleCharts(&o.profile, s.figures))
}

// head begins the table of a benchmark.
func (s *study) head(title string, columns ...string) error {
	if s.json != nil {
		return nil
	}
	_, err := fmt.Fprintf(s.out, "\n%s: %s\n", s.bench, title)
	if err == nil {
		err = s.row(columns...)
	}
	return err
}

// row prints the columns of a table: the first is a name.
func (s *study) row(columns ...string) error {
	var b strings.Builder
	for i, c := range columns {
		if i == 0 {
			fmt.Fprintf(&b, "%-34s", c)
		} else {
			fmt.Fprintf(&b, " %12s", c)
		}
	}
	_, err := fmt.Fprintln(s.out, strings.TrimRight(b.String(), " "))
	return err
}

// add keeps a figure and prints it, as JSON or as the row given.
func (s *study) add(f figure, columns ...string) error {
	return s.addAll([]figure{f}, columns...)
}

// addAll is add of all figures of one row.
func (s *study) addAll(l []figure, columns ...string) error {
	for _, f := range l {
		f.Bench, f.Profile = s.bench, s.o.profile.Name
		s.figures = append(s.figures, f)
		if s.json != nil {
			if err := s.json.Encode(f); err != nil {
				return err
			}
		}
	}
	if s.json != nil {
		return nil
	}
	return s.row(columns...)
}

// plain prints v as it is, to a tenth, and nothing for 0.
func plainNumber(v float64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'f', max(0, min(1, tenths(v))), 64)
}

// tenths is 1 if v has something after the point.
func tenths(v float64) int {
	if r := strconv.FormatFloat(v, 'f', 1, 64); strings.HasSuffix(r, ".0") {
		return 0
	}
	return 1
}

// percent prints a difference from what was published.
func (f *figure) percent() string {
	if f.Measured == 0 {
		return ""
	}
	return fmt.Sprintf("%+.1f %%", f.Diff)
}

// parseSim reads what only -conduit sim has; set says which flags were given.
func parseSim(o options, set map[string]bool, profile string, ranks int, plotFile, run string) (simOptions, error) {
	r := simOptions{json: o.json, list: o.list, ranks: ranks, plot: plotFile}
	for _, name := range []string{"time", "bursts"} {
		if set[name] {
			return r, fmt.Errorf("-%s has no meaning with -conduit sim: figures of virtual time are exact", name)
		}
	}
	if !set["run"] {
		run = quick
	}
	var err error
	if r.profile, err = sim.ProfileByName(profile); err != nil {
		return r, err
	}
	if r.run, err = wholeName(run); err != nil {
		return r, err
	}
	if r.ranks < 2 || r.ranks > sim.MaxRanks {
		return r, fmt.Errorf("-ranks %d: it must be 2 to %d", r.ranks, sim.MaxRanks)
	}
	var names []string
	any, scale := false, false
	for _, b := range studies {
		names = append(names, b.name)
		if r.run.MatchString(b.name) {
			any = true
			scale = scale || strings.HasPrefix(b.name, "scale/")
		}
	}
	switch {
	case !any:
		return r, fmt.Errorf("-run %q matches no benchmark of -conduit sim as a whole; there are %s", run, strings.Join(names, ", "))
	case r.plot != "" && !scale:
		return r, fmt.Errorf("-plot %s: nothing to plot; select with -run 'scale/.*'", r.plot)
	case set["ranks"] && !scale:
		return r, errors.New("-ranks is for benchmarks scale/...; select them with -run 'scale/.*'")
	}
	return r, nil
}
