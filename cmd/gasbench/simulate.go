package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/internal/job/jobenv"
)

// In virtual time references mean nothing: figures are exact, and stand beside the sum of the
// profile's times instead.

// studies are the benchmarks of -conduit sim, in the order they run.
var studies = []struct {
	name  string
	about string
	run   func(s *study) error
}{
	{"scale/barrier", "barriers by number of ranks, on three topologies", scaleBarrier},
	{"scale/allreduce", "all-reduce of 8 bytes by number of ranks, on three topologies", scaleAllReduce},
	{"overlap", "the share of transfers that goes on while the rank computes", simOverlap},
	{"scale/offload", "barriers, broadcasts and all-reduces by messages and by cards that have them", scaleOffload},
	{"network/load", "delay, blocking and deadlocks of networks with finite buffers by load", networkLoad},
	{"network/locality", "the same by how far packets go", networkLocality},
}

// simOptions are the command line of -conduit sim.
type simOptions struct {
	json    bool
	list    bool
	run     *regexp.Regexp
	profile sim.Profile
	ranks   int
}

// A figure is one result of a simulation, as -json prints it. Values are of the
// metric's unit, ns.
type figure struct {
	Bench    string  `json:"bench"`
	What     string  `json:"what"` // topology, and operation
	Profile  string  `json:"profile"`
	Ranks    int     `json:"ranks"`
	Size     int     `json:"size"`        // bytes
	X        int     `json:"x,omitempty"` // of network/...: the load in percent, or how far packets go
	Metric   string  `json:"metric"`
	Value    float64 `json:"value"`
	Unit     string  `json:"unit"`
	Expected float64 `json:"expected,omitempty"` // what the profile's figures add up to
	Hops     float64 `json:"hops,omitempty"`     // the same with the longest ways through the network

	Events uint64  `json:"events,omitempty"`
	CPU    float64 `json:"cpu_s,omitempty"`
	PerCPU float64 `json:"events_per_cpu_s,omitempty"`
	Memory float64 `json:"bytes_per_rank,omitempty"`
}

// study is a run of benchmarks on simulated jobs.
type study struct {
	o     simOptions
	bench string
	out   io.Writer
	json  *json.Encoder
}

// simulate runs what o selects and writes the figures to out.
func simulate(o simOptions, out io.Writer) error {
	s := &study{o: o, out: out}
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
	return nil
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

// add prints figures, as JSON or as the row given.
func (s *study) add(l []figure, columns ...string) error {
	for _, f := range l {
		f.Bench, f.Profile = s.bench, s.o.profile.Name
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

// parseSim reads the flags of -conduit sim alone; set has the names of flags that were given.
func parseSim(o options, set map[string]bool, profile string, ranks int, run string) (simOptions, error) {
	r := simOptions{json: o.json, list: o.list, ranks: ranks}
	for _, name := range []string{"time", "bursts"} {
		if set[name] {
			return r, fmt.Errorf("-%s has no meaning with -conduit sim: figures of virtual time are exact", name)
		}
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
	for _, b := range studies {
		if r.run.MatchString(b.name) {
			return r, nil
		}
		names = append(names, b.name)
	}
	return r, fmt.Errorf("-run %q matches no benchmark of -conduit sim as a whole; there are %s", run, strings.Join(names, ", "))
}
