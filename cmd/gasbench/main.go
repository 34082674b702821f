package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/launch"
)

// options are the command line.
type options struct {
	json    bool
	list    bool
	run     *regexp.Regexp
	time    time.Duration // for one line of the table, references included
	bursts  int
	named   bool   // benchmarks were selected
	sizes   []int  // the only ones to measure, as in -json; nil: all
	against string // a file of earlier figures, or ""
	slack   float64
	beside  []beside // a set of rows for each

	sim  *simOptions // with -conduit sim
	jobs *jobOptions // with -conduit and anything else
}

// wants reports whether figures of a size are to be measured.
func (o *options) wants(size int) bool { return o.sizes == nil || slices.Contains(o.sizes, size) }

// maxBursts bounds what is kept in memory.
const maxBursts = 10000

// parse reads the command line. What it returns besides is to be printed, and
// is flag.ErrHelp if that is all there is to do.
func parse(args []string, usage io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("gasbench", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.BoolVar(&o.json, "json", false, "print one JSON object a line")
	f.BoolVar(&o.list, "list", false, "print the names of the benchmarks")
	run := f.String("run", ".*", "run the benchmarks whose whole name matches `REGEXP`")
	f.DurationVar(&o.time, "time", 200*time.Millisecond, "measure each figure for about `D`, references included")
	f.IntVar(&o.bursts, "bursts", 15, "take each figure `N` times in turn with its references")
	sizes := f.String("size", "", "measure these sizes only, `SIZE,...`, such as 8,1M; of am/short numbers of arguments")
	f.StringVar(&o.against, "against", "", "compare with the figures that -json has written to `FILE`; what became slower is an error")
	f.Float64Var(&o.slack, "slack", 1, "with -against: what became slower by less than the factor `F` is none")
	neighbours := f.String("beside", "", "measure each row beside `NEIGHBOUR,...`: nothing, loop, nice (a loop at nice 10), pulse (a loop, on and off), build (go build), job (two ranks that measure the same); loop*2 is two")
	conduit := f.String("conduit", "", "start jobs of two ranks on conduits `NAME,...`, without gasrun; \"sim\": simulate all ranks in this process")
	auth := f.String("auth", "", "with -conduit udp: jobs for each of `MODE,...`: none, authenticated, encrypted")
	datagram := f.String("datagram", "", "with -conduit udp: jobs for each of these largest datagrams, `BYTES,...`")
	loss := f.String("loss", "", "with -conduit udp: jobs through a relay that loses so many datagrams, `PERCENT,...`")
	rounds := f.Int("rounds", 1, "with -conduit: run each kind of job `N` times in turn")
	bind := f.String("bind", string(launch.BindSpread), "with -conduit: where ranks run, as gasrun's: spread, core, numa or none")
	machine := f.String("machine", "extoll", "with -conduit sim: simulate machine `NAME`: "+strings.Join(sim.Profiles(), ", "))
	ranks := f.Int("ranks", 4096, "with -conduit sim: scale/... up to `N` ranks")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(usage, "usage: gasrun -n 2 gasbench [-json] [-list] [-run REGEXP] [-size SIZE,...] [-time D] [-bursts N] [-against FILE [-slack F]] [-beside NEIGHBOUR,...]")
			fmt.Fprintln(usage, "       gasbench -conduit NAME,... [-auth MODE,...] [-datagram BYTES,...] [-loss PERCENT,...] [-rounds N] [-bind HOW] [flags as above]")
			fmt.Fprintln(usage, "       gasbench -conduit sim [-machine NAME] [-json] [-list] [-run REGEXP] [-ranks N]")
			f.SetOutput(usage)
			f.PrintDefaults()
		} else if strings.HasSuffix(err.Error(), ": -profile") {
			err = fmt.Errorf("%w; the simulated machine is -machine NAME", err)
		}
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q; benchmarks are selected by -run", f.Arg(0))
	}
	set := map[string]bool{}
	f.Visit(func(x *flag.Flag) { set[x.Name] = true })
	if *sizes != "" {
		for _, text := range strings.Split(*sizes, ",") {
			size, err := jobenv.ParseSize(text)
			if err != nil && text != "0" {
				return o, fmt.Errorf("-size %s: not a size such as 8, 64K or 1M", text)
			}
			o.sizes = append(o.sizes, int(size))
		}
	}
	simulated := *conduit == sim.Name
	for _, name := range []string{"auth", "datagram", "loss", "rounds", "bind"} {
		if set[name] && (simulated || *conduit == "") {
			return o, fmt.Errorf("-%s is for jobs that gasbench starts: it needs -conduit, such as -conduit udp", name)
		}
	}
	for _, name := range []string{"size", "against", "beside"} {
		if simulated && set[name] {
			return o, fmt.Errorf("-%s is not for simulated jobs", name)
		}
	}
	if set["against"] && o.against == "" {
		return o, errors.New("-against: no file is named")
	}
	if set["slack"] && (o.against == "" || !(o.slack >= 1)) {
		return o, fmt.Errorf("-slack %v: it is a factor, 1 or more, for -against", o.slack)
	}
	if simulated {
		v, err := parseSim(o, set, *machine, *ranks, *run)
		o.sim = &v
		return o, err
	}
	for _, name := range []string{"machine", "ranks"} {
		if set[name] {
			return o, fmt.Errorf("-%s is for simulated jobs: it needs -conduit sim", name)
		}
	}
	re, err := wholeName(*run)
	if err != nil {
		return o, err
	}
	o.run, o.named = re, set["run"]
	if o.beside, err = parseBeside(*neighbours); err != nil {
		return o, err
	}
	if o.time <= 0 {
		return o, fmt.Errorf("-time %v: it must be more than 0", o.time)
	}
	if o.bursts < 1 || o.bursts > maxBursts {
		return o, fmt.Errorf("-bursts %d: it must be 1 to %d", o.bursts, maxBursts)
	}
	if *conduit != "" {
		v, err := parseJobs(o, *conduit, *auth, *datagram, *loss, *bind, *rounds, *run, *sizes, *neighbours)
		if err != nil {
			return o, err
		}
		o.jobs = &v
	}
	var names []string
	for _, b := range benchmarks {
		if re.MatchString(b.name) {
			return o, nil
		}
		names = append(names, b.name)
	}
	return o, fmt.Errorf("-run %q matches no benchmark as a whole; there are %s", *run, strings.Join(names, ", "))
}

// wholeName compiles the argument of -run.
func wholeName(run string) (*regexp.Regexp, error) {
	re, err := regexp.Compile("^(?:" + run + ")$")
	if err != nil {
		return nil, fmt.Errorf("-run %q is not a regular expression: %v", run, err)
	}
	return re, nil
}

func main() {
	if kind := os.Getenv(envNeighbour); kind != "" {
		beNeighbour(kind, os.Args[1:])
	}
	if status, ok := launch.Helper(); ok {
		os.Exit(status)
	}
	if _, nested := jobenv.Nested(); nested { // parse starts jobs unless this is a rank
		jobenv.Leave()
	}
	o, err := parse(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "gasbench: %v\n", err)
		os.Exit(2)
	case o.list && o.sim != nil:
		for _, b := range studies {
			fmt.Printf("%-16s %s\n", b.name, b.about)
		}
		return
	case o.sim != nil:
		if err := simulate(*o.sim, os.Stdout); err != nil {
			fmt.Fprintf(os.Stderr, "gasbench: %v\n", err)
			os.Exit(1)
		}
		return
	case o.list:
		for _, b := range benchmarks {
			fmt.Printf("%-19s %s\n", b.name, b.about)
		}
		return
	}
	if o.jobs != nil {
		switch err := runJobs(*o.jobs, os.Stdout, os.Stderr); {
		case errors.Is(err, errSlower):
			fmt.Fprintf(os.Stderr, "gasbench: %v\n", err)
			os.Exit(1)
		case err != nil:
			launch.Report(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	gas.Exit(bench(o, os.Stdout, os.Stderr))
}

// bench runs what o selects and writes the figures to out.
func bench(o options, out io.Writer, progress *os.File) error {
	var verdict error // of the comparison; the job itself has not failed
	err := gas.Run(gas.Config{Handlers: handlers, Pinnable: pinnable, PinLocal: pinLocal}, func(n *gas.Node) error {
		if n.Size() < 2 {
			return errors.New("gasbench measures between two ranks and is one: start it with gasrun -n 2")
		}
		if n.Layers().Conduit.Conduit() == sim.Name {
			return errors.New("gasbench measures real time, and this job's is virtual: run gasbench -conduit sim, without gasrun")
		}
		j, err := newJob(n)
		if err != nil {
			return err
		}
		defer j.close()
		if n.Rank() != 0 {
			return j.serve()
		}
		var before *earlier
		if o.against != "" {
			if before, err = readEarlier(o.against, o.slack); err != nil {
				return err
			}
		}
		r := newReport(o, out, progress, j)
		again := []string{"-conduit", n.Layers().Conduit.Conduit(), "-run", o.run.String(), "-time", jobTime}
		if o.sizes != nil {
			again = append(again, "-size", strings.Trim(strings.ReplaceAll(fmt.Sprint(o.sizes), " ", ","), "[]"))
		}
		for _, b := range o.beside {
			if why := b.lacks(); why != "" {
				r.leaveOut("-beside "+b.text, why)
				continue
			}
			r.beside = b.text
			if err := b.with(again, func() error { return j.rows(o, r) }); err != nil {
				return err
			}
		}
		if r.err != nil {
			return r.err
		}
		if before != nil {
			verdict = before.compare(r.all, comparison(o.json, out, progress))
		}
		return j.command(cmdQuit, 0, 0)
	})
	if err == nil {
		err = verdict
	}
	return err
}

// rows measures what o selects, on rank 0.
func (j *job) rows(o options, r *report) error {
	for _, b := range benchmarks {
		if !o.run.MatchString(b.name) {
			continue
		}
		why, err := j.meet(b.needs)
		if err != nil {
			return err
		}
		if why != "" {
			if o.named || b.needs != needDirect && b.needs != needBare {
				r.leaveOut(b.name, why)
			}
			continue
		}
		if b.lines != nil {
			r.doing(b.name)
			lines, err := b.lines(j, o)
			if err != nil {
				return fmt.Errorf("%s: %w", b.name, err)
			}
			for i := range lines {
				lines[i].Bench = b.name
			}
			if err := r.add(lines); err != nil {
				return err
			}
			continue
		}
		cases, err := b.cases(j)
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		for _, c := range cases {
			if !o.wants(c.size) {
				continue
			}
			c.bench = b.name
			r.doing(c.title())
			lines, err := j.measure(&c, o)
			if err != nil {
				return fmt.Errorf("%s: %w", c.title(), err)
			}
			if err := r.add(lines); err != nil {
				return err
			}
		}
	}
	return nil
}
