// Package simrecord is the format of the records that the simulator writes of its runs
// (conduits/sim), and that gasrun reads: while a run goes on, to tell its state, and to
// repeat it.
package simrecord

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/argon-go/argon/internal/errs"
)

// Record describes a run, so that it can be repeated, and found to be the same
// run: its options, and how far it had come after how many steps. It is a text
// file, written line by line while the run goes on, so that what a run that was
// killed has written is a record too:
//
//	argon-sim-record 1
//	program "./examples/ring"      what gasrun was told to run
//	arg "-laps"                    its arguments, one a line
//	dir "/home/me"                 its working directory, if gasrun was told
//	env "ARGON_DEBUG=1"            what else was set for it
//	binary 5fd8...                 SHA-256 of the executable
//	ranks 64
//	options seed=7 machine=extoll
//	job 1 64 seed=7 machine=extoll the first job of the process is opened
//	at 1 1024 93a0... 81250000     after 1024 steps: digest, time in ps
//	end 1 1733 77b1... 99125000 ok
//	end 1 1733 77b1... 99125000 failed 3 "out of luck"
//	end 1 1733 77b1... 99125000 exited 3 0   by Exit of rank 3, with status 0
//	replay 1 same                  only where a run is repeated
//	exit status 1                  how the process ended, or: exit SIGKILL
type Record struct {
	Program string   // as gasrun was told; "" if it was not gasrun that ran it
	Args    []string // of the program
	Dir     string   // working directory; "" is that of gasrun
	Env     []string // KEY=VALUE
	Binary  string   // hexadecimal hash of the executable, or ""
	Ranks   int      // that were asked for; 0 if not known
	Options string   // that were asked for, in the form of sim.ParseOptions
	Jobs    []*Job
	Exit    string // how the process ended: "status N" or a signal; "" if not known
}

// Job is one job of the recorded process.
type Job struct {
	Ranks       int
	Options     string // in the form of sim.Config.String
	Checkpoints []Checkpoint
	End         *End   // nil if the record ends before
	Replay      string // where a run was repeated: "same", or how it is not
}

// Checkpoint is a place in a run.
type Checkpoint struct {
	Steps  uint64 // steps taken
	Digest uint64 // of all of them
	Time   int64  // virtual, picoseconds
}

// End is how a job ended.
type End struct {
	Checkpoint
	Failed bool
	Rank   int    // the rank that failed; -1: the job did
	Error  string // why, at most MaxErrorText bytes
	Exited bool   // Rank has ended the job by Exit; Failed is set too
	Status int    // the status that Exit had
}

// String is how the job ended, for people: what a rank has said is escaped.
func (e *End) String() string {
	text := errs.Printable(e.Error, MaxErrorText)
	at := " at " + Duration(e.Time).String() + " of virtual time"
	switch {
	case !e.Failed:
		return "ended in good order" + at
	case e.Exited:
		return fmt.Sprintf("rank %d ended the job%s with status %d (Exit)", e.Rank, at, e.Status)
	case e.Rank < 0:
		return "failed" + at + ": " + text
	}
	return fmt.Sprintf("rank %d failed%s: %s", e.Rank, at, text)
}

const (
	// Magic is the first line of a record.
	Magic = "argon-sim-record 1"
	// MaxErrorText is the most bytes of End.Error.
	MaxErrorText = 4096
	// MaxRanks is the most ranks of a job.
	MaxRanks = 1 << 24
	// Same is Job.Replay of a job that went as recorded.
	Same = "same"
	// MaxLine is the most bytes of a line.
	MaxLine = 1 << 20
)

// Duration is a virtual time of so many picoseconds, as far as nanoseconds.
func Duration(picoseconds int64) time.Duration { return time.Duration(picoseconds / 1000) }

// Header is the record's beginning, up to its jobs.
func (r *Record) Header() []byte {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s", Magic)
	if r.Program != "" {
		line("program %q", r.Program)
	}
	for _, a := range r.Args {
		line("arg %q", a)
	}
	if r.Dir != "" {
		line("dir %q", r.Dir)
	}
	for _, e := range r.Env {
		line("env %q", e)
	}
	if r.Binary != "" {
		line("binary %s", r.Binary)
	}
	if r.Ranks != 0 {
		line("ranks %d", r.Ranks)
	}
	if r.Options != "" {
		line("options %s", r.Options)
	}
	return b.Bytes()
}

// Line is the job's beginning in a record; k is its number, from 1.
func (j *Job) Line(k int) string {
	return fmt.Sprintf("job %d %d %s\n", k, j.Ranks, j.Options)
}

func (c *Checkpoint) place(word string, k int) string {
	return fmt.Sprintf("%s %d %d %016x %d", word, k, c.Steps, c.Digest, c.Time)
}

// Line is the checkpoint of job k in a record.
func (c *Checkpoint) Line(k int) string { return c.place("at", k) + "\n" }

// Line is the end of job k in a record.
func (e *End) Line(k int) string {
	s := e.place("end", k)
	if !e.Failed {
		return s + " ok\n"
	}
	if e.Exited {
		return fmt.Sprintf("%s exited %d %d\n", s, e.Rank, e.Status)
	}
	return fmt.Sprintf("%s failed %d %q\n", s, e.Rank, e.Error)
}

// ReplayLine says how job k has been repeated: Same, or how it is not.
func ReplayLine(k int, how string) string {
	if how == Same {
		return fmt.Sprintf("replay %d same\n", k)
	}
	return fmt.Sprintf("replay %d other %q\n", k, how)
}

// Read reads a record. options says what is wrong with the options of a run or a job;
// nil takes any. A last line that has no end is left out: its writer
// was killed. The error, which wraps ErrBadArg unless reading failed, names the
// line.
func Read(from io.Reader, options func(string) error) (*Record, error) {
	in := bufio.NewScanner(from)
	in.Buffer(nil, MaxLine)
	in.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			return i + 1, data[:i], nil
		}
		return 0, nil, nil
	})
	if options == nil {
		options = func(string) error { return nil }
	}
	r := &Record{}
	n := 0
	for in.Scan() {
		n++
		err := errors.New("is not " + Magic + ": not a record, or one of another version")
		if n > 1 {
			err = r.read(in.Text(), options)
		} else if in.Text() == Magic {
			err = nil
		}
		if err != nil {
			return nil, errs.BadArg("sim: record: line %d, %q: %v", n, clip(in.Text(), 80), err)
		}
	}
	if err := in.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, errs.BadArg("sim: record: line %d is longer than %d bytes", n+1, MaxLine)
	} else if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, errs.BadArg("sim: record: it is empty")
	}
	return r, nil
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n] + "..."
	}
	return s
}

var errForm = errors.New("has not the form of such a line")

// read takes one line.
func (r *Record) read(line string, check func(options string) error) error {
	word, rest, _ := strings.Cut(line, " ")
	once := func(to *string, v string) error {
		if *to != "" || v == "" || len(r.Jobs) > 0 {
			return errors.New("comes twice, too late or without a value")
		}
		*to = v
		return nil
	}
	if r.Exit != "" {
		return errors.New("comes after the end")
	}
	switch word {
	case "program", "arg", "dir", "env":
		v, err := strconv.Unquote(rest)
		switch {
		case err != nil || strconv.Quote(v) != rest:
			return errForm
		case word == "program":
			return once(&r.Program, v)
		case word == "dir":
			return once(&r.Dir, v)
		case len(r.Jobs) > 0:
			return errors.New("comes too late")
		case word == "env":
			if k, _, ok := strings.Cut(v, "="); !ok || k == "" || strings.ContainsRune(v, 0) {
				return errForm
			}
			r.Env = append(r.Env, v)
		default:
			r.Args = append(r.Args, v)
		}
		return nil
	case "binary":
		return once(&r.Binary, rest)
	case "ranks":
		v, err := number(rest, MaxRanks)
		if err != nil || v == 0 || r.Ranks != 0 || len(r.Jobs) > 0 {
			return errForm
		}
		r.Ranks = int(v)
		return nil
	case "options":
		if err := check(rest); err != nil {
			return err
		}
		return once(&r.Options, rest)
	case "exit":
		if rest == "" || errs.Line(rest, 0) != rest {
			return errForm
		}
		r.Exit = rest
		return nil
	case "job", "at", "end", "replay":
		num, rest, _ := strings.Cut(rest, " ")
		k, err := number(num, 1<<31)
		if err != nil || k == 0 || k > uint64(len(r.Jobs)+1) || (word == "job") != (k == uint64(len(r.Jobs)+1)) {
			return fmt.Errorf("is of job %q; there are %d", num, len(r.Jobs))
		}
		if word == "job" {
			return r.readJob(rest, check)
		}
		return r.Jobs[k-1].read(word, rest)
	}
	return errors.New("is of no known kind")
}

func (r *Record) readJob(rest string, check func(options string) error) error {
	ranks, options, ok := strings.Cut(rest, " ")
	v, err := number(ranks, MaxRanks)
	if err != nil || v == 0 || !ok || options == "" {
		return errForm
	}
	if err := check(options); err != nil {
		return err
	}
	r.Jobs = append(r.Jobs, &Job{Ranks: int(v), Options: options})
	return nil
}

// read takes a line about the job.
func (j *Job) read(word, rest string) error {
	if word == "replay" {
		how, text, _ := strings.Cut(rest, " ")
		v, err := strconv.Unquote(text)
		switch {
		case j.Replay != "":
			return errForm
		case how == Same && text == "":
			j.Replay = Same
		case how == "other" && err == nil && v != "" && v != Same && strconv.Quote(v) == text:
			j.Replay = v
		default:
			return errForm
		}
		return nil
	}
	f := strings.SplitN(rest, " ", 6)
	if len(f) < 3 || j.End != nil || j.Replay != "" {
		return errForm
	}
	var c Checkpoint
	var at uint64
	var err [3]error
	c.Steps, err[0] = number(f[0], 1<<63)
	c.Digest, err[1] = strconv.ParseUint(f[1], 16, 64)
	at, err[2] = number(f[2], 1<<62)
	c.Time = int64(at)
	if e := errors.Join(err[:]...); e != nil || fmt.Sprintf("%016x", c.Digest) != f[1] {
		return errForm
	}
	if n := len(j.Checkpoints); n > 0 && (c.Steps < j.Checkpoints[n-1].Steps || word == "at" && c.Steps == j.Checkpoints[n-1].Steps) {
		return errors.New("comes after one of more steps")
	}
	switch {
	case word == "at" && len(f) == 3:
		j.Checkpoints = append(j.Checkpoints, c)
	case word == "end" && len(f) == 4 && f[3] == "ok":
		j.End = &End{Checkpoint: c}
	case word == "end" && len(f) == 6 && f[3] == "failed":
		rank, e1 := strconv.Atoi(f[4])
		text, e2 := strconv.Unquote(f[5])
		if e1 != nil || e2 != nil || rank < -1 || rank >= j.Ranks || strconv.Itoa(rank) != f[4] || strconv.Quote(text) != f[5] {
			return errForm
		}
		j.End = &End{Checkpoint: c, Failed: true, Rank: rank, Error: text}
	case word == "end" && len(f) == 6 && f[3] == "exited":
		rank, e1 := number(f[4], uint64(j.Ranks)-1)
		code, e2 := number(f[5], 255)
		if e1 != nil || e2 != nil {
			return errForm
		}
		j.End = &End{Checkpoint: c, Failed: true, Rank: int(rank), Exited: true, Status: int(code)}
	default:
		return errForm
	}
	return nil
}

// number reads a number up to most in its only form.
func number(s string, most uint64) (uint64, error) {
	v, err := strconv.ParseUint(s, 10, 64)
	if err == nil && (v > most || strconv.FormatUint(v, 10) != s) {
		err = errForm
	}
	return v, err
}
