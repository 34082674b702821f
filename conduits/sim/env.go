package sim

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"syscall"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/env"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/simrecord"
)

// Variables that Local heeds. gasrun sets them from its flags; they work without
// it too.
const (
	EnvOptions = "ARGON_SIM"       // options in the form of ParseOptions
	EnvTrace   = "ARGON_SIM_TRACE" // file that gets the trace; those of further jobs of the process get .2, .3, ...
	EnvKeep    = "ARGON_SIM_KEEP"  // file that gets the record of the process's jobs
	EnvAgain   = "ARGON_SIM_AGAIN" // record of a run that this process is to repeat
	EnvStatus  = jobenv.SimStatus  // number of an inherited file that gets a record too; gasrun's own
)

// session has the options of the environment for the jobs of this process.
type session struct {
	env    [5]string
	mu     sync.Mutex
	jobs   int // opened so far
	record *os.File
	status *os.File
	replay *Record
}

// messages gets what has to be said to people and is no error of a call.
var messages io.Writer = os.Stderr

var (
	sessionsMu sync.Mutex
	sessions   []*session
)

// open returns the session of an environment.
func openSession(getenv func(string) string) (*session, error) {
	key := [...]string{getenv(EnvOptions), getenv(EnvTrace), getenv(EnvKeep), getenv(EnvAgain), getenv(EnvStatus)}
	sessionsMu.Lock()
	defer sessionsMu.Unlock()
	for _, s := range sessions {
		if s.env == key {
			return s, nil
		}
	}
	s := &session{env: key}
	if name := getenv(EnvAgain); name != "" {
		f, err := os.Open(name)
		if err != nil {
			return nil, errs.BadArg("sim: record to repeat (-again, %s): %v", EnvAgain, err)
		}
		s.replay, err = ReadRecord(f)
		f.Close()
		if err != nil {
			return nil, errs.BadArg("sim: %s (-again, %s): %v", name, EnvAgain, err)
		}
	}
	if n := getenv(EnvStatus); n != "" {
		fd, err := strconv.Atoi(n)
		var st syscall.Stat_t
		if err != nil || fd < 3 || syscall.Fstat(fd, &st) != nil {
			return nil, errs.BadArg("sim: %s=%q is no file that is open; gasrun sets it", EnvStatus, n)
		}
		syscall.CloseOnExec(fd)
		s.status = os.NewFile(uintptr(fd), "status")
		if _, err := fmt.Fprintln(s.status, simrecord.Magic); err != nil {
			return nil, errs.Resource("sim: %s: %v", EnvStatus, err)
		}
	}
	if name := getenv(EnvKeep); name != "" {
		var err error
		if s.status != nil { // gasrun has written the beginning
			s.record, err = os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		} else {
			s.record, err = os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_TRUNC, 0o666)
		}
		if err != nil {
			return nil, errs.Resource("sim: record (-keep, %s): %v", EnvKeep, err)
		}
		if s.status == nil {
			r := Record{Args: os.Args[1:], Options: key[0]}
			if _, err := s.record.Write(r.Header()); err != nil {
				return nil, errs.Resource("sim: record (-keep, %s): %v", EnvKeep, err)
			}
		}
	}
	sessions = append(sessions, s)
	if v := getenv("ARGON_VERBOSEENV"); v != "" && v != "0" {
		for _, key := range []string{EnvOptions, EnvTrace, EnvKeep, EnvAgain} {
			v := getenv(key)
			if v == "" {
				v = "(not set)"
			}
			fmt.Fprintf(messages, "argon: env %-18s %-12s %s\n", key, v, env.Meaning(key))
		}
	}
	return s, nil
}

// beginJob numbers a job and records that it begins, which is before any later one
// does.
func (s *session) beginJob(j *JobRecord) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs++
	s.add(j.Line(s.jobs))
	return s.jobs
}

// write adds a line to the record, and to what gasrun reads.
func (s *session) write(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(line)
}

// add is write with the lock held.
func (s *session) add(line string) {
	if s.status != nil {
		_, _ = io.WriteString(s.status, line)
	}
	if s.record == nil {
		return
	}
	if _, err := io.WriteString(s.record, line); err != nil {
		fmt.Fprintf(messages, "argon: sim: the record is not complete: %v\n", err)
		// Maybe amid a line, which must be the last.
		s.record.Close()
		s.record = nil
	}
}

// Local opens a job in this process as users of the registry do, with the
// options of ARGON_SIM. c.Seed, unless it is 0, and other fields of c that are set win over
// those.
func Local(n int, c conduits.Config) ([]conduits.Endpoint, error) {
	j, err := local(n, c, os.Getenv)
	if err != nil {
		return nil, err
	}
	return j.Endpoints(), nil
}

func local(n int, c conduits.Config, env func(string) string) (*Job, error) {
	o, err := ParseOptions(env(EnvOptions))
	if err != nil {
		return nil, err
	}
	if c.Seed != 0 {
		o.Seed = c.Seed
	}
	if c.MaxSegment != 0 {
		o.MaxSegment = c.MaxSegment
	}
	if c.Credits != 0 {
		o.Credits = c.Credits
	}
	if c.MaxMedium != 0 {
		o.MaxMedium = c.MaxMedium
	}
	if err := o.Reliable(); err != nil {
		return nil, err
	}
	s, err := openSession(env)
	if err != nil {
		return nil, err
	}
	if s.record == nil && s.replay == nil && s.status == nil && env(EnvTrace) == "" {
		return New(n, o)
	}
	if err := o.Validate(n); err != nil {
		return nil, err
	}
	mine := JobRecord{Ranks: n, Options: o.String()}

	k := s.beginJob(&mine)
	w := &watch{k: k, write: s.write, from: env(EnvAgain)}
	if r := s.replay; r != nil {
		if err := w.follow(r, &mine); err != nil {
			s.write(simrecord.ReplayLine(k, err.Error()))
			return nil, err
		}
	}
	if name := env(EnvTrace); name != "" {
		if k > 1 {
			name += "." + strconv.Itoa(k)
		}
		f, err := os.Create(name)
		if err != nil {
			return nil, errs.Resource("sim: trace (-sim-trace, %s): %v", EnvTrace, err)
		}
		o.Trace = f
		w.trace = f
	}
	o.Checkpoint = w.checkpoint
	j, err := New(n, o)
	if err != nil {
		return nil, err
	}
	w.j = j
	w.launched = s.status != nil
	j.watch = w
	return j, nil
}

// follow makes w compare its job with the one of its number in r.
func (w *watch) follow(r *Record, mine *JobRecord) error {
	switch {
	case w.k <= len(r.Jobs):
		was := r.Jobs[w.k-1]
		if was.Ranks != mine.Ranks || was.Options != mine.Options {
			return errs.BadArg("sim: job %d of this run is not the recorded one: it has %d ranks and the options %s; recorded are %d and %s",
				w.k, mine.Ranks, mine.Options, was.Ranks, was.Options)
		}
		w.want = was
	case r.Exit != "" && len(r.Jobs) > 0:
		return errs.BadArg("sim: this run is not the recorded one: it opens job %d, recorded are %d", w.k, len(r.Jobs))
	}
	// A record that was cut off does not tell how the run went on.
	return nil
}

// abort ends a process of gasrun's in which a goroutine from outside the job uses it, as a
// panic would, but for the status and the form. The place comes first: gasrun repeats the
// last line.
func (w *watch) abort(what string) {
	if w.launched {
		fmt.Fprintf(os.Stderr, "%s\nargon: %s\n", debug.Stack(), what)
		os.Exit(1)
	}
}

// close ends what belongs to the job.
func (w *watch) close() {
	if err := w.j.Flush(); err != nil {
		fmt.Fprintf(messages, "argon: sim: the trace is not complete: %v\n", err)
	}
	if w.trace != nil {
		if err := w.trace.Close(); err != nil {
			fmt.Fprintf(messages, "argon: sim: the trace is not complete: %v\n", err)
		}
	}
	if w.want == nil || w.launched {
		return // gasrun says it
	}
	if w.diverged != nil {
		fmt.Fprintf(messages, "argon: %v\n", w.diverged)
	} else {
		fmt.Fprintf(messages, "argon: sim: job %d went as recorded in %s\n", w.k, w.from)
	}
}

func init() {
	conduits.Register(conduits.Conduit{
		Name: Name, Local: Local,
		Launch: &conduits.Launch{MaxRanks: MaxRanks, Single: true},
	})
}
