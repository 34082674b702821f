// Package launch is the command gasrun as a function, for a gasrun that knows conduits of
// its own:
//
//	package main
//
//	import (
//		_ "example.com/mine" // registers the conduit
//
//		"github.com/argon-go/argon/launch"
//	)
//
//	func main() { launch.Main() }
//
// It starts jobs on each conduit that is registered with a conduits.Launch, argon's own
// included. go doc github.com/argon-go/argon/cmd/gasrun says what it does.
package launch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	_ "github.com/argon-go/argon/conduits/hybrid/shmofi" // these register how their jobs are started
	_ "github.com/argon-go/argon/conduits/hybrid/shmudp"
	_ "github.com/argon-go/argon/conduits/ofi"
	_ "github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conduits/sim"
	_ "github.com/argon-go/argon/conduits/udp"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/nets"
	"github.com/argon-go/argon/internal/job/profile"
	"github.com/argon-go/argon/internal/job/where"
	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// Main runs the command line of this process as gasrun does, and ends the process. It is to be
// called first: processes that it starts for itself, on other hosts too, are this executable.
func Main() {
	if status, ok := launch.Helper(); ok {
		os.Exit(status)
	}
	if len(os.Args) == 3 && os.Args[1] == measureArg {
		if err := measureRank(os.Args[2]); err != nil {
			launch.Report(os.Stderr, err)
			os.Exit(jobenv.StatusFailed)
		}
		os.Exit(0)
	}
	if err := sys.StartError(); err != nil {
		fmt.Fprintln(os.Stderr, "gasrun:", err)
		os.Exit(jobenv.StatusFailed)
	}
	for name, do := range map[string]func(args []string) error{"status": status, "monitor": showRecorded} {
		if len(os.Args) > 1 && os.Args[1] == name {
			if err := do(os.Args[2:]); err != nil {
				launch.Report(os.Stderr, err)
				os.Exit(jobenv.StatusUsage)
			}
			os.Exit(0)
		}
	}
	os.Exit(run(os.Args[1:]))
}

// status says where the ranks of a job wait that is under way.
func status(args []string) error {
	if len(args) > 1 || len(args) == 1 && strings.HasPrefix(args[0], "-") {
		return errors.New("usage: gasrun status [JOB]; a program of that name is gasrun -- status")
	}
	return launch.Status(os.Stdout, strings.Join(args, ""))
}

// self is this executable, even if its file has been removed or replaced.
const self = "/proc/self/exe"

// options is the command line.
type options struct {
	launch.Config
	sim     simulation
	fabric  fabric
	traffic recording
	measure measuring
	check   checking
	view    viewing
	arg     string
	dryRun  bool
}

func usage(w io.Writer) {
	fmt.Fprint(w, `usage: gasrun [flags] [--] PROGRAM|PACKAGE [ARGS]
       gasrun status [JOB]
       gasrun monitor FILE [HOST:PORT]

Runs PROGRAM, or builds and runs the main package PACKAGE (a directory, an
import path, or a .go file), as a job of several ranks on this host or others.

  -n N            number of ranks (default 1, or all slots of the hosts; at most
                  65536, of a simulation 16777216)
  -conduit NAME   transport that ranks join: `+strings.Join(launch.Conduits(), ", ")+`
                  (default ARGON_CONDUIT, or `+launch.DefaultConduit+`; on hosts `+launch.DefaultHostsConduit+`)
                  or ofi, or hybrid-ofi (ofi between hosts alone), in a gasrun built for
                  them, see docs/fabrics.md
  -provider NAME  provider of libfabric, with -conduit ofi or hybrid-ofi (default
                  ARGON_PROVIDER, or the best one)
  -provider-force  use it although argon refuses it by name (default
                  ARGON_PROVIDER_FORCE)
  -providers      list the providers of this machine, best first, with the reason why
                  the others were passed over, and do nothing else
  -segment SIZE   largest segment per rank, such as 512M (default ARGON_SEGMENT, or the conduit's)
  -lanes N        lanes of a rank, by which goroutines send without a common lock
                  (default ARGON_LANES, or one for each processor of a rank)
  -segment-large  segments grow as they are used, and peers reach them through
                  firehoses (default ARGON_SEGMENT_LARGE); -segment may then be large
  -pinnable SIZE  most memory of a rank that peers reach through firehoses at once
                  (default ARGON_PINNABLE, or 512M)
  -pin-local SIZE  part of that for the rank's own pins (default ARGON_PIN_LOCAL, or
                  a quarter)
  -pin-bucket SIZE  unit of it, a power of two pages (default ARGON_PIN_BUCKET, or 64K)
  -l              put "[rank] " before each line of output
  -output-dir D   also write each rank's output to D/rank-R.out and D/rank-R.err
  -x VAR[=VALUE]  set a variable for the ranks, or check that it is set; may be repeated
  -wdir D         working directory of the ranks
  -tmpdir D       where programs are built, and put on hosts that lack them (default
                  TMPDIR there, or /tmp); must not be mounted noexec
  -hosts LIST     run on these hosts, in blocks: a:8,user@b:8,[fd00::5]:4 are 20 ranks;
                  localhost:2,localhost:2 are two hosts on this machine
  -hostfile FILE  the same from a file: a line NAME, NAME:N or NAME slots=N for each
  -ppn N          ranks on each host (default its slots, which are 1 if not given)
  -ssh COMMAND    in place of the system's ssh, such as "ssh -p 2222"; see go doc
  -start-timeout D  time for all hosts to get ready (default 1m)
  -iface NAME     interface, or address of one, for conduits udp and hybrid
                  (default ARGON_IFACE, or by route)
  -networks FILE  networks of the hosts, with latency and bandwidth: data takes the
                  quickest way, by its size; see docs/hosts.md
  -measure FILE   find and measure the networks of the hosts, write FILE for -networks
                  (-: to standard output), and run no program
  -check          look whether jobs can run here, or on the hosts of -hosts: ssh, addresses,
                  datagrams, clocks, limits; print what is well (ok), what could be
                  better (note), what keeps jobs from running (FAIL), and what mends it
  -bind HOW       where ranks of a host run: spread divides the processors that no
                  other job has taken, core gives each rank one core, numa whole
                  memory nodes, none binds nothing (default ARGON_BIND, or spread,
                  and none on hosts that are reached by ssh)
  -timeout D      end the job after this time, such as 10m, and say where each rank waits
  -stall D        when no rank has got on for this time (default 30s; 0: never), or ranks wait for
                  each other, say which is the cause and where each is; D,end ends the job then
  -top            show once a second what each rank does, for how long, and its rates: below the
                  output on a terminal, else as lines of standard error
  -monitor[=HOST:PORT]  show the same on a page, whose address is printed, and as /metrics for
                  Prometheus; other hosts than this need the token in that address
  -monitor-record FILE  write to FILE what the page would show, a line for each view: once a second,
                  then less often; gasrun monitor FILE shows it, during the job or later
  -profile[=HOW]  say at the end where the time of the ranks went, by line of the program;
                  HOW is a list: peers, sizes, labels, json=FILE, and traffic or traffic=FILE:
                  how much each rank sent to each other one (default ARGON_PROFILE)
  -trace FILE     write to FILE what all ranks do, message by message, to be looked at in
                  Perfetto, on any conduit (default ARGON_TRACE); see docs/seeing.md
  -trace-last D   write to it only what ranks have done in this time, such as 5s, until the job
                  fails, or a report says where they wait (default ARGON_TRACE_LAST); without
                  -trace to argon-PID.pftrace
  -kill-grace D   time between asking ranks to end and killing them (default 5s)
  -freeze RANK    stop this rank before it runs, for a debugger; may be repeated
  -record FILE    write to FILE what ranks send, put and get, and what they wait for: their
                  traffic, for -replay (default ARGON_RECORD)
  -t              say what would be done, and do nothing
  -v, -q          say more, say less

Simulation, with -conduit sim: one process runs all ranks in virtual time, and
the seed decides what is left to chance. Times are such as 500ns, 2us or 1.5ms.

  -seed S         seed (default 0, or that of ARGON_SIM, as with all options here)
  -machine P      machine: `+strings.Join(sim.Profiles(), ", ")+` (default extoll)
  -topology T     network: crossbar, torus, fattree, mesh, irregular
  -queue Q        queues at the inputs of a crossbar: voq, single
  -fault SPEC     what goes wrong, comma-separated; may be repeated: jitter=TIME,
                  slow=RANKxFACTOR, stall=RANK@TIME+TIME, crash=RANK@TIME,
                  crash=RANK#EVENT, partition=RANK-RANK@TIME+TIME, detect=TIME
  -limit D        end the job after so much virtual time
  -sim OPTIONS    any other option of a simulation, such as latency=1us,credits=4
  -sim-trace FILE  write to FILE a line for each step of each message
  -replay FILE    run the traffic of FILE, from -record on any conduit, in place of a
                  program: what would it take on this machine? or that of a table,
                  such as npb:lu.W.8; see docs/replay.md
  -compute F      have ranks compute F times as long as recorded (default 1)
  -keep FILE      write to FILE what it takes to do the same again
  -again FILE     do again what FILE has kept, and see whether it is the same

Exit status: that of the rank that failed first (128 plus the signal's number if
one killed it) or of Exit; 0 if all ended in good order; 1 if the job failed otherwise; 2 for
bad arguments and programs that do not build; 124 time limit; 131 SIGQUIT.

kill -USR1 says where each rank waits, and the job goes on; Ctrl-C says it and ends the job.
gasrun status JOB prints it in another terminal: JOB is the number of gasrun's process, not needed if
there is one job of yours on this host. A program with that name is gasrun -- status.
`)
}

// parse reads the command line.
func parse(args []string) (options, error) {
	var o options
	o.Conduit = os.Getenv(jobenv.Conduit)
	size := "1"
	f := flag.NewFlagSet("gasrun", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	f.StringVar(&size, "n", size, "")
	f.StringVar(&o.Conduit, "conduit", o.Conduit, "")
	f.BoolVar(&o.fabric.list, "providers", false, "")
	f.StringVar(&o.fabric.name, "provider", "", "")
	f.BoolVar(&o.fabric.force, "provider-force", false, "")
	f.Func("segment", "", func(s string) (err error) {
		o.Segment, err = jobenv.ParseSize(s)
		return err
	})
	f.BoolVar(&o.Large, "segment-large", false, "")
	f.Func("lanes", "", func(s string) error {
		o.Env = append(o.Env, jobenv.Lanes+"="+s)
		_, err := jobenv.ParseLanes(s)
		return err
	})
	pin := func(name, key string, fits func(n uint64) error) {
		f.Func(name, "", func(s string) error {
			n, err := jobenv.ParseSize(s)
			if err == nil {
				err = fits(n)
			}
			o.Env = append(o.Env, key+"="+s)
			return err
		})
	}
	pin("pinnable", jobenv.Pinnable, func(uint64) error { return nil })
	pin("pin-local", jobenv.PinLocal, func(uint64) error { return nil })
	pin("pin-bucket", jobenv.PinBucket, func(n uint64) error {
		if n < segment.PageSize || n&(n-1) != 0 {
			return fmt.Errorf("%d bytes are no power of two pages of %d", n, segment.PageSize)
		}
		return nil
	})
	f.BoolVar(&o.Label, "l", false, "")
	f.StringVar(&o.OutputDir, "output-dir", "", "")
	f.Func("x", "", func(s string) error {
		if !strings.Contains(s, "=") && s != "" {
			v, ok := os.LookupEnv(s)
			if !ok {
				return fmt.Errorf("the variable is not set")
			}
			s += "=" + v
		}
		o.Env = append(o.Env, s)
		return nil
	})
	duration := func(to *time.Duration) func(string) error {
		return func(s string) (err error) {
			if *to, err = time.ParseDuration(s); err != nil {
				return errors.New("not a time such as 90s, 10m or 1h30m")
			}
			return nil
		}
	}
	f.StringVar(&o.Iface, "iface", "", "")
	f.Func("networks", "", func(s string) error {
		b, err := os.ReadFile(s)
		if err != nil {
			return err
		}
		g, err := nets.Parse(s, string(b))
		if err == nil {
			o.Env = append(o.Env, jobenv.Networks+"="+g.String())
		}
		return err
	})
	hosts := func(read func(string) ([]launch.Host, error)) func(string) error {
		return func(s string) (err error) {
			if len(o.Hosts) > 0 {
				return errors.New("hosts are given already, by -hosts or -hostfile")
			}
			o.Hosts, err = read(s)
			return err
		}
	}
	f.Func("hosts", "", hosts(launch.ParseHosts))
	f.Func("hostfile", "", hosts(launch.ReadHostfile))
	f.Func("ppn", "", func(s string) (err error) {
		if o.PerHost, err = strconv.Atoi(s); err != nil || o.PerHost < 1 || o.PerHost > jobenv.MaxRanks {
			return fmt.Errorf("a host has 1 to %d ranks", jobenv.MaxRanks)
		}
		return nil
	})
	f.Func("ssh", "", func(s string) (err error) {
		o.SSH, err = launch.ParseSSH(s)
		return err
	})
	f.Func("start-timeout", "", duration(&o.StartLimit))
	f.StringVar(&o.Dir, "wdir", "", "")
	f.StringVar(&o.TempDir, "tmpdir", "", "")
	f.Func("bind", "", func(s string) (err error) {
		o.Bind, err = launch.ParseBind(s)
		return err
	})
	f.Func("timeout", "", duration(&o.Timeout))
	f.Func("stall", "", func(s string) (err error) {
		o.Stall, err = where.ParseStall(s)
		return err
	})
	f.BoolFunc("profile", "", func(s string) error {
		if s == "true" {
			s = "1"
		}
		if slices.Contains(sim.Profiles(), s) {
			return errMachine(s)
		}
		o.Env = append(o.Env, jobenv.Profile+"="+s)
		_, err := profile.ParseOptions(s)
		return err
	})
	f.Func("kill-grace", "", duration(&o.KillGrace))
	f.Func("freeze", "", func(s string) error {
		r, err := strconv.Atoi(s)
		if err != nil {
			return errors.New("not the number of a rank")
		}
		o.Freeze = append(o.Freeze, r)
		return nil
	})
	o.sim.flags(f)
	o.traffic.flags(f)
	o.measure.flags(f)
	o.check.flags(f)
	o.view.flags(f)
	f.BoolVar(&o.dryRun, "t", false, "")
	f.BoolVar(&o.Verbose, "v", false, "")
	f.BoolVar(&o.Quiet, "q", false, "")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	given := map[string]bool{}
	f.Visit(func(fl *flag.Flag) { given[fl.Name] = true })
	if err := errors.Join(o.measure.finish(&o, given, f.NArg()), o.check.finish(&o, given, f.NArg()), o.traffic.finish(&o, given)); err != nil {
		return o, err
	}
	if err := o.sim.finish(&o, given); err != nil {
		return o, err
	}
	if err := o.fabric.finish(&o); err != nil {
		return o, err
	}
	if o.Size == 0 && (given["n"] || len(o.Hosts) == 0) { // else all slots
		var err error
		if o.Size, err = strconv.Atoi(size); err != nil || o.Size < 1 || o.Size > launch.MaxRanks(o.Conduit) {
			return o, fmt.Errorf("invalid value %q for flag -n: a job has 1 to %d ranks", size, launch.MaxRanks(o.Conduit))
		}
	}
	for _, f := range []struct{ name, value string }{
		{"monitor-record", o.view.record}, {"iface", o.Iface}, {"output-dir", o.OutputDir}, {"tmpdir", o.TempDir}, {"wdir", o.Dir}, {"provider", o.fabric.name},
	} {
		if given[f.name] && f.value == "" {
			return o, fmt.Errorf("-%s: the name is empty", f.name)
		}
	}
	switch {
	case given["v"] && given["q"] && o.Verbose && o.Quiet:
		return o, errors.New("-v and -q exclude each other")
	case given["kill-grace"] && o.KillGrace < 0, given["timeout"] && o.Timeout <= 0:
		return o, errors.New("a time must not be negative, and -timeout not 0")
	case given["start-timeout"] && o.StartLimit <= 0:
		return o, errors.New("-start-timeout must be more than 0")
	case given["iface"] && given["networks"]:
		return o, errors.New("-iface and -networks exclude each other: the networks say which interfaces datagrams go through")
	case (given["ssh"] || given["start-timeout"]) && len(o.Hosts) == 0:
		return o, errors.New("-ssh and -start-timeout are for jobs on hosts (-hosts, -hostfile)")
	case given["conduit"] && o.Conduit == "":
		return o, fmt.Errorf("-conduit: the name is empty; known: %s", strings.Join(launch.Conduits(), ", "))
	case f.NArg() > 0 && o.traffic.replay != "":
		return o, fmt.Errorf("-replay runs the traffic of %s, not a program (%s): -again runs one once more", o.traffic.replay, f.Arg(0))
	case f.NArg() == 0 && o.sim.old == nil && !o.fabric.list && o.traffic.replay == "" && o.measure.file == "" && !o.check.on:
		return o, errors.New("no program given")
	}
	if given["kill-grace"] && o.KillGrace == 0 {
		o.KillGrace = -1
	}
	switch {
	case f.NArg() == 0 && (o.fabric.list || o.traffic.replay != "" || o.measure.file != "" || o.check.on):
		return o, nil
	case f.NArg() == 0:
		return o, o.sim.recorded(&o)
	}
	o.arg, o.Args = f.Arg(0), f.Args()[1:]
	if given["profile"] && slices.Contains(sim.Profiles(), o.arg) {
		if _, err := os.Stat(o.arg); err != nil {
			return o, errMachine(o.arg)
		}
	}
	return o, nil
}

// errMachine is the error of -profile with the name of a machine, which was its value once.
func errMachine(name string) error {
	return fmt.Errorf("-profile says where the time of a job went; the simulated machine is -machine %s", name)
}

func run(args []string) int {
	complain := func(err error) { launch.Report(os.Stderr, err) }
	outer, nested := jobenv.LeaveOuter()
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		usage(os.Stdout)
		return 0
	}
	if err != nil {
		complain(err)
		fmt.Fprintln(os.Stderr, "gasrun: see gasrun -help")
		return jobenv.StatusUsage
	}
	if o.fabric.list {
		wish, err := o.fabric.wish(&o, os.Getenv)
		if err == nil {
			err = o.fabric.print(os.Stdout, wish)
		}
		if err != nil {
			complain(err)
			return jobenv.StatusUsage
		}
		return 0
	}
	if o.traffic.replay != "" {
		usage, err := o.traffic.play(os.Stdout, o.sim.conf)
		switch {
		case err == nil:
			return 0
		case usage:
			complain(err)
			return jobenv.StatusUsage
		}
		complain(err)
		return jobenv.StatusFailed
	}
	if o.check.on {
		status, err := o.check.run(o.Config, os.Stdout)
		if err != nil {
			complain(err)
			return jobenv.StatusFailed
		}
		return status
	}
	if o.measure.file != "" {
		if err := o.measure.run(o.Config); err != nil {
			complain(err)
			return jobenv.StatusFailed
		}
		return 0
	}
	target, err := launch.Resolve(o.arg)
	if err != nil {
		complain(err)
		return jobenv.StatusUsage
	}
	rule, err := o.fabric.choose(&o, target, here(), os.Getenv)
	if err == nil {
		err = o.fabric.known(&o, target, here())
	}
	if err != nil {
		complain(err)
		return jobenv.StatusUsage
	}
	if onFabric(o.Conduit) {
		target.Tags = fabricTag
	}
	c := &o.Config
	c.Deputy = self
	c.EnsureDefaults()
	c.Program = target.String()
	if err := errors.Join(c.Validate(), o.sim.validate(c)); err != nil {
		complain(err)
		return jobenv.StatusUsage
	}
	if c.Verbose && rule != "" {
		fmt.Fprintln(os.Stderr, "gasrun: "+rule)
	}
	if c.Verbose {
		if nested {
			fmt.Fprintf(os.Stderr, "gasrun: started by %s; the ranks started here form a job of their own\n", outer)
		}
		if l, ok := jobenv.FindStarter(os.Getenv); ok {
			fmt.Fprintf(os.Stderr, "gasrun: started by %s (%s); the ranks started here form a job of their own on this host\n", l.Name, l.Said)
		}
	}
	if o.dryRun {
		plan(os.Stdout, &o, target)
		return 0
	}
	c.Signals = signals()
	if target.Package != nil {
		dir, err := os.MkdirTemp(c.TempDir, "gasrun-")
		if err != nil {
			complain(fmt.Errorf("no room for the program: %w (-tmpdir, TMPDIR)", err))
			return jobenv.StatusFailed
		}
		defer os.RemoveAll(dir)
		c.Remove = []string{dir}
		if c.Verbose {
			fmt.Fprintln(os.Stderr, "gasrun: "+target.String())
		}
		var by syscall.Signal
		if c.Program, by, err = build(target, dir, c.Signals); by != 0 {
			complain(fmt.Errorf("ended by %s, before the program was built", sys.SignalName(by)))
			return 128 + int(by)
		}
		if err == nil {
			err = launch.Runnable(c.Program)
		}
		if err != nil {
			complain(err)
			return jobenv.StatusUsage
		}
	}
	if c.Stdin, err = stdin(); err != nil {
		complain(err)
		return jobenv.StatusFailed
	}
	c.Stdout, c.Stderr, c.Log = os.Stdout, os.Stderr, os.Stderr
	c.Exclusive = true
	c.Guard = self
	if c.Stacks = filepath.Join(c.OutputDir, fmt.Sprintf("argon-%d.stacks", os.Getpid())); c.Quiet {
		c.Stacks = os.DevNull
	}
	if err := errors.Join(o.sim.start(&o), o.traffic.start(&o)); err != nil {
		complain(err)
		return jobenv.StatusFailed
	}
	defer o.traffic.finished(os.Stderr)
	unseen, err := o.view.start(&o)
	if err != nil {
		complain(err)
		return jobenv.StatusUsage
	}
	told := false
	c.Ended = func(res launch.Result, err error) {
		if told {
			return
		}
		told = true
		stuck := unseen()
		piped := res.Status == 128+int(syscall.SIGPIPE) && !c.Verbose && res.Failed < 0 // gasrun ... | head
		if !stuck && !piped && !res.Unread && diverged(res) < 0 {                       // else that is the reason, and conclude says it
			launch.Report(os.Stderr, err)
		}
	}
	res, err := launch.Run(context.Background(), *c)
	c.Ended(res, err) // of a job that has not begun
	if res.Unread {
		return res.Status
	}
	return o.sim.conclude(os.Stderr, &o, res)
}

// build builds target in dir. by is the signal that ended it, or 0.
func build(target launch.Target, dir string, signals <-chan os.Signal) (program string, by syscall.Signal, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ctx.Done():
				return
			case s := <-signals:
				switch s {
				case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
					by = s.(syscall.Signal)
					cancel()
					return
				case syscall.SIGTSTP:
					_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
				}
			}
		}
	}()
	program, err = target.Build(ctx, dir, os.Stderr)
	cancel()
	<-ended
	return program, by, err
}

// signals is where the signals of this process arrive. Those that were ignored
// when it started (nohup) stay ignored.
func signals() <-chan os.Signal {
	ch := make(chan os.Signal, 16)
	sys.Catch(
		ch, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGCONT,
	)
	// A write to a pipe that no process reads then ends with an error, and the job
	// in good order, not this process by a signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	// A read from the terminal in the background then ends with an error.
	signal.Ignore(syscall.SIGTTIN)
	return ch
}

// stdin is rank 0's input. A file or pipe is handed over, so that no other process
// holds it open. A terminal is copied: ranks are not in its foreground process
// group and must not read it.
func stdin() (*os.File, error) {
	if sys.IsTerminal(0) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		go copyTerminal(w)
		return r, nil
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	fd, err := syscall.Dup(0)
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(fd)
	if err := syscall.Dup3(int(null.Fd()), 0, 0); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "stdin"), nil
}

// copyTerminal copies the terminal to w until its end, or until no process reads w
// any more. In the background it waits for the foreground.
func copyTerminal(w *os.File) {
	defer w.Close()
	front := make(chan os.Signal, 1)
	signal.Notify(front, syscall.SIGCONT)
	buf := make([]byte, 32<<10)
	for {
		n, err := os.Stdin.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return
			}
		}
		switch {
		case errors.Is(err, syscall.EIO):
			<-front
		case err != nil:
			return
		}
	}
}

// plan prints the processes and hosts of the job without starting it, for -t.
func plan(w io.Writer, o *options, t launch.Target) {
	if t.Package != nil {
		fmt.Fprintln(w, "build:", t)
	}
	program := t.Program
	if t.Package != nil {
		program = "TEMPORARY"
	}
	hosts := o.PlanHosts()
	for r, env := range o.Plan() {
		switch {
		case o.Conduit == sim.Name:
			fmt.Fprintf(w, "ranks 0..%d in one process:", o.Size-1)
		case hosts != nil:
			fmt.Fprintf(w, "rank %d on %s:", r, hosts[r])
		default:
			fmt.Fprintf(w, "rank %d:", r)
		}
		if o.Dir != "" {
			fmt.Fprint(w, " cd ", quote(o.Dir), " &&")
		}
		fmt.Fprint(w, " env")
		for _, s := range append(append(env, program), o.Args...) {
			fmt.Fprint(w, " ", quote(s))
		}
		fmt.Fprintln(w)
	}
}

// quote writes s as a shell would want it.
func quote(s string) string {
	if s != "" && strings.IndexFunc(s, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("-_./=:,@%+", c))
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
