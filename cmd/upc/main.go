// Upc compiles and runs programs of UPC 1.3.
//
//	go run ./cmd/upc run -n 4 hello.upc        # four threads in one process
//	go run ./cmd/upc run -n 4 -conduit udp hello.upc
//	go run ./cmd/upc build -o hello hello.upc  # a program for gasrun
//	go run ./cmd/upc vet hello.upc             # errors only
//
// The Go that is made is a module of its own, which requires this one.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/upc/front"
	"github.com/argon-go/argon/internal/upc/gen"
	"github.com/argon-go/argon/internal/upc/opt"
	"github.com/argon-go/argon/upc/rt"
)

func main() {
	args := os.Args[1:]
	if filepath.Base(os.Args[0]) == "upcc" {
		args = append([]string{"cc"}, args...)
	}
	os.Exit(run(args, os.Stdout, os.Stderr))
}

const usage = `usage: upc build [flags] -o PROGRAM FILES
       upc run [flags] FILES [ARGS]
       upc vet [flags] FILES
       upc [cc] [flags of cc] FILES

Compiles programs of UPC 1.3: FILES end in .upc or .c.

  -o FILE     what build writes (default the name of the first file)
  -T N        compile for N threads (static THREADS); default any number
  -I DIR      look for headers there; may be repeated
  -D NAME[=V] define a macro; may be repeated
  -S DIR      keep the Go that is made in DIR
  -d PASS     print the functions instead, as they are after PASS: typed (the tree with its
              types, conversions and shared accesses), opt (what may be done with
              each loop), go (the Go, with a note of each loop's accesses)
  -race       have Go's race detector look; it takes strict accesses for races
  -races      have the program look for its own data races where it is simulated; -seeds
              does without -races=false
  -tags LIST  build tags of the runtime, such as ofi
  -segment N  shared memory of each thread, such as 64M or 2G (default ARGON_SEGMENT,
              or 64M): shared variables that have no room there are errors, and run
              starts the program with it

Without a word before them, or behind cc, or if the command is called upcc, flags are those
of C compilers, so that a Makefile with UPC=upc works: -c, -E, -S, -o, -D, -U, -I, -L, -l, -O, -g, -W,
-std, @FILE, and -T; and FILES may be objects, which -c makes, and libraries of them (.o, .a).

of run, which starts the threads in one process unless -conduit or -gasrun says
otherwise:

  -n N        number of threads (default 1, or that of -T)
  -conduit C  transport: shm, udp, hybrid, sim, and with -tags ofi ofi and hybrid-ofi;
              the program runs under gasrun
  -seeds N    simulate the program with seeds 1 to N, and stop at one with which it
              fails, or has a data race: it prints how to do the same again
  -gasrun F   more flags of gasrun, separated by spaces, such as "-seed 7"

Exit status: that of the program; 1 if it has errors; 2 for bad arguments.
`

// list is a flag that may be repeated.
type list []string

func (l *list) String() string { return strings.Join(*l, " ") }
func (l *list) Set(s string) error {
	*l = append(*l, s)
	return nil
}

// options is the command line.
type options struct {
	out, keep, pass string
	threads, n      int
	include, define list
	conduit, gasrun string
	segment         uint64 // bytes; 0 for the default
	race, races     bool
	tags            string
	seeds           int
	files, args     []string
	units           []*front.Unit     // what compile has made of the files
	object          bool              // there need be no main, and nothing is linked
	reads           map[string]string // the files that were read
}

// passes are those of -d, and what they print.
var passes = map[string]func(o *options, files map[string]gen.File) string{
	"typed": func(o *options, _ map[string]gen.File) (s string) {
		for _, u := range o.units {
			s += u.Dump()
		}
		return s
	},
	"opt": func(o *options, _ map[string]gen.File) (s string) {
		for _, u := range o.units {
			s += opt.Options{Threads: o.threads}.Dump(u)
		}
		return s
	},
	"go": func(_ *options, files map[string]gen.File) (s string) {
		for _, n := range slices.Sorted(maps.Keys(files)) {
			if n != "program.go" { // which has no function of the program
				s += string(files[n].Text)
			}
		}
		return s
	},
}

// macro matches the argument of -D.
var macro = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\([^()]*\))?(=|$)`)

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("upc", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.out, "o", "", "")
	f.StringVar(&o.keep, "S", "", "")
	f.StringVar(&o.pass, "d", "", "")
	f.IntVar(&o.threads, "T", 0, "")
	f.IntVar(&o.n, "n", 0, "")
	f.Var(&o.include, "I", "")
	f.Var(&o.define, "D", "")
	f.StringVar(&o.conduit, "conduit", "", "")
	f.BoolVar(&o.race, "race", false, "")
	f.BoolVar(&o.races, "races", false, "")
	f.StringVar(&o.tags, "tags", "", "")
	f.IntVar(&o.seeds, "seeds", 0, "")
	f.StringVar(&o.gasrun, "gasrun", "", "")
	segment := f.String("segment", os.Getenv("ARGON_SEGMENT"), "")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if *segment != "" {
		if o.segment, err = jobenv.ParseSize(*segment); err != nil {
			return o, fmt.Errorf("-segment: %w", err)
		}
	}
	rest := f.Args()
	for len(rest) > 0 && (strings.HasSuffix(rest[0], ".upc") || strings.HasSuffix(rest[0], ".c")) {
		o.files = append(o.files, rest[0])
		rest = rest[1:]
	}
	o.args = rest
	var wrong error
	looks := o.seeds > 0
	f.Visit(func(f *flag.Flag) {
		n, _ := strconv.Atoi(f.Value.String())
		switch {
		case (f.Name == "n" || f.Name == "T") && n < 1:
			wrong = fmt.Errorf("-%s %d: a number of threads is at least 1", f.Name, n)
		case f.Name == "T" && n > rt.MaxThreads:
			wrong = fmt.Errorf("-T %d: there are at most %d threads", n, rt.MaxThreads)
		case f.Name == "seeds" && n < 1:
			wrong = fmt.Errorf("-seeds %d: a number of seeds is at least 1", n)
		case f.Name == "races":
			looks = o.races
		}
	})
	o.races = looks
	for _, d := range o.define {
		if !macro.MatchString(d) {
			wrong = fmt.Errorf("-D %s: a macro's name is an identifier", d)
		}
	}
	switch {
	case wrong != nil:
		return o, wrong
	case o.pass != "" && passes[o.pass] == nil:
		return o, fmt.Errorf("-d %s: the passes are typed, opt and go", o.pass)
	case len(o.files) == 0 && len(rest) > 0:
		return o, fmt.Errorf("no input files: %q ends neither in .upc nor in .c", rest[0])
	case len(o.files) == 0:
		return o, errors.New("no input files")
	case o.seeds > 0 && (o.conduit != "" && o.conduit != "sim" || o.gasrun != ""):
		return o, errors.New("-seeds simulates: without -gasrun, or another conduit")
	case o.threads > 0 && o.n > 0 && o.threads != o.n:
		return o, fmt.Errorf("-T %d and -n %d differ", o.threads, o.n)
	}
	if o.n == 0 {
		o.n = max(o.threads, 1)
	}
	return o, nil
}

func run(args []string, stdout, stderr io.Writer) int {
	fail := func(err error) int {
		fmt.Fprintln(stderr, "upc:", err)
		return 2
	}
	if len(args) > 0 && args[0] == "cc" {
		return cc(args[1:], stdout, stderr)
	}
	if len(args) > 0 && (args[0][0:min(1, len(args[0]))] == "@" || slices.Contains(suffixes, filepath.Ext(args[0])) || strings.HasPrefix(args[0], "-") && args[0] != "-h" && args[0] != "-help") {
		return cc(args, stdout, stderr)
	}
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "-help" {
		fmt.Fprint(stderr, usage)
		return 2
	}
	verb := args[0]
	if verb != "build" && verb != "run" && verb != "vet" {
		return fail(fmt.Errorf("unknown command %q; there are build, run and vet", verb))
	}
	o, err := parse(args[1:])
	switch {
	case err != nil:
		return fail(err)
	case verb != "run" && len(o.args) > 0:
		return fail(fmt.Errorf("unexpected argument %q, which ends neither in .upc nor in .c", o.args[0]))
	}
	given := o.segment
	if verb == "run" && given == 0 && o.conduit == "" && o.gasrun == "" {
		o.segment = gas.DefaultSegment
	}
	if o.pass != "" && verb != "build" {
		return fail(fmt.Errorf("-d %s: only upc build prints it", o.pass))
	}
	files, warnings, err := compile(&o)
	if status := report(warnings, err, stderr); err != nil {
		return status
	}
	if verb == "vet" {
		return min(len(warnings), 1)
	}
	if o.pass != "" {
		fmt.Fprint(stdout, passes[o.pass](&o, files))
		return 0
	}
	dir := o.keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "upc-"); err != nil {
			return fail(err)
		}
		defer os.RemoveAll(dir)
	}
	if err := writeModule(dir, files); err != nil {
		return fail(err)
	}
	program := filepath.Join(dir, "program")
	if verb == "build" {
		program = o.out
		if program == "" {
			program = strings.TrimSuffix(filepath.Base(o.files[0]), filepath.Ext(o.files[0]))
		}
	}
	if program, err = filepath.Abs(program); err != nil {
		return fail(err)
	}
	flags := []string{"-tags=" + o.tags}
	if o.races {
		flags[0] += ",upcraces"
	}
	if o.race {
		flags = append(flags, "-race")
	}
	if err := buildLocated(dir, program, files, stderr, flags...); err != nil {
		return fail(err)
	}
	if verb == "build" {
		return 0
	}
	if given != 0 {
		os.Setenv("ARGON_SEGMENT", strconv.FormatUint(given, 10)) // which the program inherits
	}
	if o.seeds > 0 {
		return search(&o, program, stdout, stderr)
	}
	return start(&o, dir, program, stdout, stderr)
}

// compile is the Go files of a program, and what the compiler warns of.
func compile(o *options) (files map[string]gen.File, warnings front.Errors, err error) {
	var errs front.Errors
	source := map[string]string{}
	list, err := inputs(o)
	if err != nil {
		return nil, nil, err
	}
	var members []*front.Unit // of libraries
	defined := map[string]bool{}
	for _, in := range list {
		if len(list) > 1 {
			maps.Copy(defined, front.Definitions(&in.Config, in.name, in.text))
		}
	}
	for _, in := range list {
		source[in.name] = in.text
		in.Elsewhere = func(name string) (bool, bool) { return defined[name], defined[name] || !o.object }
		u, err := front.Parse(&in.Config, in.name, in.text)
		var l front.Errors
		if errors.As(err, &l) {
			errs = append(errs, l...)
			continue
		}
		if in.member {
			members = append(members, u)
			continue
		}
		o.units = append(o.units, u)
		warnings = append(warnings, u.Warnings...)
	}
	if len(errs) > 0 {
		return nil, warnings, errs
	}
	if o.object {
		return nil, warnings, nil
	}
	o.units = linked(o.units, members)
	files, err = gen.Program(o.units, gen.Options{Threads: o.threads, Source: source, Segment: o.segment, Notes: o.pass == "go", Checked: o.races})
	if errors.As(err, &errs) {
		for _, e := range errs {
			for _, u := range o.units {
				u.Locate(e)
			}
		}
	}
	return files, warnings, err
}

// goBuild builds a package with more flags of go build.
func goBuild(dir, out, pkg string, stderr io.Writer, flags ...string) error {
	args := append([]string{"build", "-mod=mod", "-buildvcs=false", "-o", out}, flags...)
	c := exec.Command("go", append(args, pkg)...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GOWORK=off")
	c.Stderr = stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	return nil
}

// buildLocated builds the program in dir, which names lines of the UPC source in errors,
// stack traces and profiles: files in dir are as people read them, without the directives.
func buildLocated(dir, out string, files map[string]gen.File, stderr io.Writer, flags ...string) error {
	tmp, err := os.MkdirTemp("", "upc-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	var overlay struct{ Replace map[string]string } // see go help build
	overlay.Replace = map[string]string{}
	for n, f := range files {
		to := filepath.Join(tmp, n)
		overlay.Replace[filepath.Join(dir, n)] = to
		if err := os.WriteFile(to, f.Located, 0o666); err != nil {
			return err
		}
	}
	b, err := json.Marshal(overlay)
	if err != nil {
		return err
	}
	list := filepath.Join(tmp, "overlay.json")
	if err := os.WriteFile(list, b, 0o666); err != nil {
		return err
	}
	return goBuild(dir, out, ".", stderr, append([]string{"-overlay", list}, flags...)...)
}

// notes begins the line with which a program says what races it has not looked for.
const notes = "argon: upc: races: "

// search simulates the program with one seed after another until it fails. Messages take
// longer by up to two microseconds, so that seeds differ.
func search(o *options, program string, stdout, stderr io.Writer) int {
	how := "ARGON_CONDUIT=sim"
	if os.Getenv("ARGON_SIM_FILES") == "" {
		how += " ARGON_SIM_FILES=memory"
	}
	input := &recording{from: os.Stdin}
	note := "" // of a search for races that was not complete
	for s := 1; s <= o.seeds; s++ {
		c := exec.Command(program, o.args...)
		seed := fmt.Sprintf("ARGON_SIM=seed=%d,jitter=2us", s)
		c.Env = append(append(os.Environ(), "ARGON_RANKS="+strconv.Itoa(o.n), seed), strings.Fields(how)...)
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, &out
		err := input.run(c)
		if err == nil {
			if _, rest, ok := strings.Cut(out.String(), notes); ok && note == "" {
				note, _, _ = strings.Cut(notes+rest, "\n")
			}
			continue
		}
		stdout.Write(out.Bytes())
		fmt.Fprintf(stderr, "upc: %v with seed %d (%s %s)\n", err, s, how, seed)
		return 1
	}
	fmt.Fprintf(stdout, "no failure with %d seeds\n", o.seeds)
	if note != "" {
		fmt.Fprintln(stdout, note)
	}
	return 0
}

// recording is standard input, which programs read one after the other, each from its beginning.
type recording struct {
	from io.Reader

	sync.Mutex
	more    sync.Cond // there is more, or the end
	started bool
	text    []byte
	ended   bool
}

// record reads as much as there is.
func (r *recording) record() {
	b := make([]byte, 1<<16)
	for {
		n, err := r.from.Read(b)
		r.Lock()
		r.text = append(r.text, b[:n]...)
		r.ended = err != nil
		r.more.Broadcast()
		r.Unlock()
		if err != nil {
			return
		}
	}
}

// run runs a command, which reads the recording from its beginning.
func (r *recording) run(c *exec.Cmd) error {
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	if !r.started {
		r.started, r.more.L = true, r
		go r.record()
	}
	over := false
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer in.Close()
		for at := 0; ; {
			r.Lock()
			for at == len(r.text) && !r.ended && !over {
				r.more.Wait()
			}
			text := r.text[at:]
			stop := over || len(text) == 0
			r.Unlock()
			if stop {
				return
			}
			n, err := in.Write(text)
			if at += n; err != nil {
				return // the program does not read on
			}
		}
	}()
	err = c.Wait()
	r.Lock()
	over = true
	r.more.Broadcast()
	r.Unlock()
	<-done
	return err
}

// start runs the program and is its exit status.
func start(o *options, dir, program string, stdout, stderr io.Writer) int {
	c := exec.Command(program, o.args...)
	if o.conduit != "" || o.gasrun != "" {
		launcher := filepath.Join(dir, "gasrun")
		if err := goBuild(dir, launcher, module+"/cmd/gasrun", stderr, "-tags="+o.tags); err != nil {
			fmt.Fprintln(stderr, "upc:", err)
			return 2
		}
		flags := []string{"-n", strconv.Itoa(o.n)}
		if o.conduit != "" {
			flags = append(flags, "-conduit", o.conduit)
		}
		flags = append(flags, strings.Fields(o.gasrun)...)
		c = exec.Command(launcher, append(append(flags, "--", program), o.args...)...)
	} else {
		c.Env = append(os.Environ(), "ARGON_RANKS="+strconv.Itoa(o.n))
	}
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, stdout, stderr
	// An interrupt is for the program, which ends by it; this process waits for it. It is
	// caught, since the program would inherit that it is ignored.
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt)
	defer signal.Stop(interrupt)
	err := c.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode()
	}
	fmt.Fprintln(stderr, "upc:", err)
	return 1
}
