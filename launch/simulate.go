package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/launch"
	"github.com/argon-go/argon/internal/sys"
)

// simulation has the flags for a simulated job.
type simulation struct {
	options            string // -sim
	seed, machine      string
	topology, queue    string
	limit              string
	faults             []string
	trace, keep, again string // files

	used  []string    // flags that were given
	conf  sim.Config  // what all of this comes to
	old   *sim.Record // of -again
	bin   string      // hash of the executable that runs
	other bool        // it is not the one that was recorded
}

// flags defines the flags.
func (s *simulation) flags(f *flag.FlagSet) {
	for _, d := range []struct {
		name string
		to   *string
	}{
		{"sim", &s.options},
		{"seed", &s.seed},
		{"machine", &s.machine},
		{"topology", &s.topology},
		{"queue", &s.queue},
		{"limit", &s.limit},
		{"sim-trace", &s.trace},
		{"keep", &s.keep},
		{"again", &s.again},
	} {
		f.StringVar(d.to, d.name, "", "")
	}
	f.Func("fault", "", func(v string) error { s.faults = append(s.faults, v); return nil })
}

// simFlags are the flags of a simulation.
var simFlags = []string{"sim", "seed", "machine", "topology", "queue", "limit", "fault", "sim-trace", "keep", "again"}

// faultKeys are the options that are faults.
var faultKeys = []string{"jitter", "slow", "stall", "crash", "partition", "detect", "drop", "dup", "corrupt", "truncate", "delay", "delayby", "buffer"}

// finish brings the flags together, over what the environment says.
func (s *simulation) finish(o *options, given map[string]bool) error {
	for _, name := range simFlags {
		if given[name] {
			s.used = append(s.used, "-"+name)
		}
	}
	if given["again"] || o.Conduit == sim.Name {
		if v := os.Getenv(sim.EnvAgain); v != "" {
			return fmt.Errorf("%s=%q is for programs that run without gasrun, whose flag is -again", sim.EnvAgain, v)
		}
		for _, kv := range o.Env {
			if k, v, _ := strings.Cut(kv, "="); strings.HasPrefix(k, sim.EnvOptions) && v != "" {
				return fmt.Errorf("-x %s: gasrun sets this variable by its flags -sim, -sim-trace, -keep and -again", k)
			}
		}
	}
	if given["again"] {
		if s.again == "" {
			return errors.New("-again: the name is empty")
		}
		return s.load(o, given)
	}
	if o.Conduit != sim.Name {
		if len(s.used) > 0 {
			return fmt.Errorf("%s: only for simulated jobs (-conduit sim)", strings.Join(s.used, ", "))
		}
		return nil
	}
	for _, v := range []struct{ name, value string }{{"-sim-trace", s.trace}, {"-keep", s.keep}} {
		if given[v.name[1:]] && v.value == "" {
			return fmt.Errorf("%s: the name is empty", v.name)
		}
	}
	if s.trace == "" {
		s.trace = os.Getenv(sim.EnvTrace)
	}
	if s.keep == "" {
		s.keep = os.Getenv(sim.EnvKeep)
	}
	var all []error
	set := func(options string) {
		if err := s.conf.Set(options); err != nil {
			all = append(all, err)
		}
	}
	set(os.Getenv(sim.EnvOptions))
	set(s.options)
	for _, v := range []struct{ key, value string }{{"machine", s.machine}, {"seed", s.seed}, {"topology", s.topology}, {"queue", s.queue}, {"limit", s.limit}} {
		if !given[v.key] {
			continue
		}
		if v.value == "" || strings.ContainsAny(v.value, " ,\t\n") {
			all = append(all, fmt.Errorf("invalid value %q for flag -%s", v.value, v.key))
			continue
		}
		set(v.key + "=" + v.value)
	}
	for _, f := range s.faults {
		for _, one := range strings.Split(f, ",") {
			if key, _, _ := strings.Cut(one, "="); !slices.Contains(faultKeys, key) {
				all = append(all, fmt.Errorf("invalid value %q for flag -fault: %q is no fault; there are %s", f, one, strings.Join(faultKeys, ", ")))
				f = ""
				break
			}
		}
		set(f)
	}
	return errors.Join(all...)
}

// load takes everything from the record to be replayed.
func (s *simulation) load(o *options, given map[string]bool) error {
	for _, name := range append([]string{"n", "segment"}, simFlags...) {
		if given[name] && name != "again" && name != "sim-trace" && name != "keep" {
			return fmt.Errorf("-%s and -again exclude each other: the record decides", name)
		}
	}
	if given["conduit"] && o.Conduit != sim.Name {
		return fmt.Errorf("-again: conduit %s has no records, only %s has", o.Conduit, sim.Name)
	}
	f, err := os.Open(s.again)
	if err != nil {
		return fmt.Errorf("-again: %w", err)
	}
	defer f.Close()
	if s.old, err = sim.ReadRecord(f); err != nil {
		return fmt.Errorf("-again: %s: %w", s.again, err)
	}
	old := s.old
	if len(old.Jobs) == 0 {
		return fmt.Errorf("-again: %s: no job had begun when the record ended", s.again)
	}
	if s.keep != "" && same(s.keep, s.again) {
		return fmt.Errorf("-keep and -again name the same file, %s", s.keep)
	}
	if err := s.conf.Set(old.Options); err != nil {
		return fmt.Errorf("-again: %s: %w", s.again, err)
	}
	o.Conduit = sim.Name
	if o.Size = old.Ranks; o.Size == 0 { // recorded without gasrun
		o.Size = old.Jobs[0].Ranks
	}
	if err := s.environment(o); err != nil {
		return err
	}
	if !given["wdir"] {
		o.Dir = old.Dir
	}
	return nil
}

// environment restores the variables of the record.
func (s *simulation) environment(o *options) error {
	var env []string
	set := map[string]bool{}
	for _, kv := range s.old.Env {
		k, v, _ := strings.Cut(kv, "=")
		set[k] = true
		if k == jobenv.Large {
			o.Large = true
			continue
		}
		if k != jobenv.Segment {
			env = append(env, kv)
			continue
		}
		var err error
		if o.Segment, err = jobenv.ParseSize(v); err != nil {
			return fmt.Errorf("-again: %s: %q: %w", s.again, kv, err)
		}
	}
	for _, kv := range os.Environ() {
		if k, _, _ := strings.Cut(kv, "="); ofProgram(k) && !set[k] {
			env = append(env, k+"=") // as if it were not there
		}
	}
	o.Env = append(env, o.Env...)
	return nil
}

// ofProgram reports whether variable key is for the program, and not one in place of a flag of
// the launcher or the simulation.
func ofProgram(key string) bool {
	return strings.HasPrefix(key, "ARGON_") && !launch.Reserved(key) && !strings.HasPrefix(key, sim.EnvOptions)
}

func same(a, b string) bool {
	fa, err := os.Stat(a)
	fb, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(fa, fb)
}

// recorded takes program and arguments from the record.
func (s *simulation) recorded(o *options) error {
	if s.old.Program == "" {
		return fmt.Errorf("no program given, and %s, which was written without gasrun, does not name it", s.again)
	}
	o.arg, o.Args = s.old.Program, s.old.Args
	return nil
}

// validate returns the faults of the simulation of c, once c has its defaults.
func (s *simulation) validate(c *launch.Config) error {
	if c.Conduit != sim.Name {
		return nil
	}
	o := s.conf
	if c.Segment != 0 && !c.Large {
		o.MaxSegment = c.Segment
	}
	if err := errors.Join(o.Validate(c.Size), o.Reliable()); err != nil {
		return err
	}
	for _, v := range []struct{ key, file string }{{sim.EnvTrace, s.trace}, {sim.EnvKeep, s.keep}, {sim.EnvAgain, s.again}} {
		if v.file != "" {
			abs, err := filepath.Abs(v.file)
			if err != nil {
				return err
			}
			v.file = abs
		} else if os.Getenv(v.key) == "" {
			continue
		}
		c.Env = append(c.Env, v.key+"="+v.file)
	}
	c.Env = append(c.Env, sim.EnvOptions+"="+s.conf.String())
	return nil
}

// start writes the beginning of the record and remembers which program runs.
func (s *simulation) start(o *options) error {
	if o.Conduit != sim.Name {
		return nil
	}
	if s.keep != "" || s.old != nil {
		s.bin = hash(o.Program)
		s.other = s.old != nil && s.bin != "" && s.old.Binary != "" && s.bin != s.old.Binary
	}
	if s.keep == "" {
		return nil
	}
	r := sim.Record{Program: o.arg, Args: o.Args, Dir: o.Dir, Binary: s.bin, Ranks: o.Size, Options: s.conf.String()}
	set := map[string]string{}
	for _, kv := range os.Environ() {
		if k, v, _ := strings.Cut(kv, "="); ofProgram(k) {
			set[k] = v
		}
	}
	for _, kv := range o.Env { // -x
		if k, v, _ := strings.Cut(kv, "="); !strings.HasPrefix(k, sim.EnvOptions) {
			set[k] = v
		}
	}
	if o.Segment != 0 {
		set[jobenv.Segment] = strconv.FormatUint(o.Segment, 10)
	}
	if o.Large {
		set[jobenv.Large] = "1"
	}
	for k, v := range set {
		if v != "" {
			r.Env = append(r.Env, k+"="+v)
		}
	}
	slices.Sort(r.Env)
	if err := os.WriteFile(s.keep, r.Header(), 0o666); err != nil {
		return fmt.Errorf("record (-keep): %w", err)
	}
	return nil
}

// hash is the hash of a program, "" if it cannot be read.
func hash(program string) string {
	f, err := os.Open(program)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// conclude completes the record, prints the verdict of a replay, and returns the
// status of gasrun.
func (s *simulation) conclude(w io.Writer, o *options, res launch.Result) int {
	if o.Conduit != sim.Name || res.Simulated == nil {
		return res.Status
	}
	exit := ""
	if len(res.Ranks) == 1 {
		exit = fmt.Sprintf("status %d", res.Ranks[0].Status)
		if sig := res.Ranks[0].Signal; sig != 0 {
			exit = sys.SignalName(sig)
		}
	}
	if s.keep != "" && exit != "" {
		if err := appendLine(s.keep, "exit "+exit); err != nil {
			fmt.Fprintf(w, "gasrun: the record is not complete: %v (-keep)\n", err)
		}
	}
	if s.old == nil {
		return res.Status
	}
	if res.Status == jobenv.StatusTimeout || res.Status == jobenv.StatusQuit || res.Status > 128 && len(res.Ranks) == 1 && res.Ranks[0].Signal == syscall.Signal(res.Status-128) && exit != s.old.Exit {
		fmt.Fprintf(w, "gasrun: not repeated to its end: %s\n", s.again)
		return res.Status
	}
	status := jobenv.StatusFailed
	how := ""
	jobs := res.Simulated.Jobs
	bad := diverged(res)
	switch {
	case bad >= 0:
		how = fmt.Sprintf("NOT reproduced: job %d: %s", bad+1, strings.TrimPrefix(jobs[bad].Replay, "sim: "))
	case len(jobs) < len(s.old.Jobs):
		how = fmt.Sprintf("NOT reproduced: the program has opened %d jobs, recorded are %d", len(jobs), len(s.old.Jobs))
	case s.old.Exit != "" && !sameEnd(jobs[len(jobs)-1], s.old.Jobs[len(s.old.Jobs)-1]):
		how = fmt.Sprintf("NOT reproduced: the process ended %s, recorded is an end %s",
			reached(jobs[len(jobs)-1]), reached(s.old.Jobs[len(s.old.Jobs)-1]))
	case s.old.Exit == "":
		status = 0
		how = "the same as far as it is recorded: the record ends before the process did"
	case s.old.Exit != exit:
		how = fmt.Sprintf("NOT reproduced: the jobs are the same, but the process ended with %s, recorded is %s", exit, s.old.Exit)
	default:
		status = 0
		how, _, _ = strings.Cut("reproduced: "+outcome(s.old), "\n")
	}
	if s.other {
		how += "\nthe executable is not the one that was recorded"
	}
	if s.old.Program != "" && !slices.Equal(o.Args, s.old.Args) {
		how += fmt.Sprintf("\nthe arguments are %q, recorded are %q", o.Args, s.old.Args)
	}
	for i, l := range strings.Split(how, "\n") {
		if i == 0 {
			l = s.again + ": " + l
		}
		// Some of it is text of the record and of ranks.
		fmt.Fprintln(w, "gasrun: "+errs.Line(l, maxSaid))
	}
	return status
}

// maxSaid bounds a line about a replay, bytes.
const maxSaid = 8 << 10

// diverged is the index of the job that is not as recorded, or -1.
func diverged(res launch.Result) int {
	if res.Simulated == nil {
		return -1
	}
	return slices.IndexFunc(res.Simulated.Jobs, func(j *sim.JobRecord) bool { return j.Replay != "" && j.Replay != sim.ReplaySame })
}

// sameEnd reports whether two jobs have come equally far; those that have ended have
// been compared by the process.
func sameEnd(a, b *sim.JobRecord) bool {
	return (a.End == nil) == (b.End == nil) && (a.End != nil || slices.Equal(a.Checkpoints, b.Checkpoints))
}

// reached is how far a job has come.
func reached(j *sim.JobRecord) string {
	switch n := len(j.Checkpoints); {
	case j.End != nil:
		return fmt.Sprintf("after the job had (%v)", j.End)
	case n == 0:
		return "soon after the job began"
	default:
		return fmt.Sprintf("after step %d of the job", j.Checkpoints[n-1].Steps)
	}
}

// outcome is how the recorded process ended.
func outcome(r *sim.Record) string {
	last := r.Jobs[len(r.Jobs)-1].End
	if last == nil {
		return "the process ended with " + r.Exit + " before the job did"
	}
	return last.String()
}

func appendLine(file, line string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}
