package sim

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strconv"
	"strings"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
)

// Record is what is needed to do a run again, and to see that it is the same
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
//	options seed=7 profile=extoll
//	job 1 64 seed=7 profile=extoll the first job of the process is opened
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
	Options string   // that were asked for, in the form of ParseOptions
	Jobs    []*JobRecord
	Exit    string // how the process ended: "status N" or a signal; "" if not known
}

// JobRecord is one job of the recorded process.
type JobRecord struct {
	Ranks       int
	Options     string // in the form of Config.String
	Checkpoints []Checkpoint
	End         *End   // nil if the record ends before
	Replay      string // where a run was repeated: "same", or how it is not
}

// Checkpoint is a place in a run.
type Checkpoint struct {
	Steps  uint64 // steps taken
	Digest uint64 // of all of them
	Time   Time   // virtual
}

// End is how a job ended.
type End struct {
	Checkpoint
	Failed bool
	Rank   int    // the rank that failed; -1: the job did
	Error  string // why, at most maxErrorText bytes
	Exited bool   // Rank has ended the job by Exit; Failed is set too
	Status int    // the status that Exit had
}

// String is how the job ended, for people: what a rank has said is escaped.
func (e *End) String() string {
	text := errs.Printable(e.Error, maxErrorText)
	at := " at " + duration(e.Time).String() + " of virtual time"
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
	recordMagic   = "argon-sim-record 1"
	maxErrorText  = 4096
	maxRecordLine = 1 << 20

	// ReplaySame is JobRecord.Replay of a job that went as recorded.
	ReplaySame = "same"
)

// Header is the record's beginning, up to its jobs.
func (r *Record) Header() []byte {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s", recordMagic)
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

// Bytes is the whole record.
func (r *Record) Bytes() []byte {
	b := r.Header()
	for i, j := range r.Jobs {
		b = append(b, j.line(i+1)...)
		for _, c := range j.Checkpoints {
			b = append(b, c.line(i+1)...)
		}
		if j.End != nil {
			b = append(b, j.End.line(i+1)...)
		}
		if j.Replay != "" {
			b = append(b, replayLine(i+1, j.Replay)...)
		}
	}
	if r.Exit != "" {
		b = append(b, "exit "+r.Exit+"\n"...)
	}
	return b
}

func (j *JobRecord) line(k int) string {
	return fmt.Sprintf("job %d %d %s\n", k, j.Ranks, j.Options)
}

func (c *Checkpoint) place(word string, k int) string {
	return fmt.Sprintf("%s %d %d %016x %d", word, k, c.Steps, c.Digest, c.Time)
}

func (c *Checkpoint) line(k int) string { return c.place("at", k) + "\n" }

func (e *End) line(k int) string {
	s := e.place("end", k)
	if !e.Failed {
		return s + " ok\n"
	}
	if e.Exited {
		return fmt.Sprintf("%s exited %d %d\n", s, e.Rank, e.Status)
	}
	return fmt.Sprintf("%s failed %d %q\n", s, e.Rank, e.Error)
}

func replayLine(k int, how string) string {
	if how == ReplaySame {
		return fmt.Sprintf("replay %d same\n", k)
	}
	return fmt.Sprintf("replay %d other %q\n", k, how)
}

// ReadRecord reads a record. A last line that has no end is left out: its writer
// was killed. The error, which wraps ErrBadArg unless reading failed, names the
// line.
func ReadRecord(from io.Reader) (*Record, error) {
	in := bufio.NewScanner(from)
	in.Buffer(nil, maxRecordLine)
	in.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			return i + 1, data[:i], nil
		}
		return 0, nil, nil
	})
	r := &Record{}
	n := 0
	for in.Scan() {
		n++
		err := errors.New("is not " + recordMagic + ": not a record, or one of another version")
		if n > 1 {
			err = r.read(in.Text())
		} else if in.Text() == recordMagic {
			err = nil
		}
		if err != nil {
			return nil, errs.BadArg("sim: record: line %d, %q: %v", n, clip(in.Text(), 80), err)
		}
	}
	if err := in.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, errs.BadArg("sim: record: line %d is longer than %d bytes", n+1, maxRecordLine)
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
func (r *Record) read(line string) error {
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
		if _, err := ParseOptions(rest); err != nil {
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
			return r.readJob(rest)
		}
		return r.Jobs[k-1].read(word, rest)
	}
	return errors.New("is of no known kind")
}

func (r *Record) readJob(rest string) error {
	ranks, options, ok := strings.Cut(rest, " ")
	v, err := number(ranks, MaxRanks)
	if err != nil || v == 0 || !ok || options == "" {
		return errForm
	}
	if _, err := ParseOptions(options); err != nil {
		return err
	}
	r.Jobs = append(r.Jobs, &JobRecord{Ranks: int(v), Options: options})
	return nil
}

// read takes a line about the job.
func (j *JobRecord) read(word, rest string) error {
	if word == "replay" {
		how, text, _ := strings.Cut(rest, " ")
		v, err := strconv.Unquote(text)
		switch {
		case j.Replay != "":
			return errForm
		case how == ReplaySame && text == "":
			j.Replay = ReplaySame
		case how == "other" && err == nil && v != "" && v != ReplaySame && strconv.Quote(v) == text:
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
	c.Time = Time(at)
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

// DivergedError says that a run which should repeat a recorded one does not.
type DivergedError struct {
	Common Checkpoint // up to here both are the same
	What   string     // what comes next, there and here
}

// Error says where, and what may be the reason.
func (d *DivergedError) Error() string {
	return fmt.Sprintf("sim: this run is not the recorded one: they are the same up to step %d at %v of virtual time; %s. "+
		"Either this is not the program that was recorded, or what it does depends on more than argon, the options and its arguments: "+
		"on a clock, random numbers, input, goroutines or the order of a map (compare the traces of two runs, -trace)",
		d.Common.Steps, duration(d.Common.Time), d.What)
}

// checkpointMask plus 1 is how many steps lie between two checkpoints.
const checkpointMask = 1<<10 - 1

// kept says whether the checkpoint after so many steps goes into a record: 32 of
// each doubling of their number, so that a record stays small and a difference
// is found within a thirtieth of the run.
func kept(steps uint64) bool {
	n := steps / (checkpointMask + 1)
	shift := max(0, bits.Len64(n)-6)
	return n&(1<<shift-1) == 0
}

// watch follows one job: it writes the job's lines, and compares it with a
// recorded one.
type watch struct {
	j        *Job
	k        int // number of the job in its process
	write    func(line string)
	want     *JobRecord // nil: nothing to compare with
	from     string     // the file that it is from
	next     int        // of want.Checkpoints
	common   Checkpoint
	diverged error
	over     bool
	trace    io.Closer // nil: none
	launched bool      // by gasrun, which tells how it ended
}

// checkpoint is Config.Checkpoint of the job.
func (w *watch) checkpoint(steps, digest uint64) {
	c := Checkpoint{steps, digest, w.j.now}
	if kept(steps) {
		w.write(c.line(w.k))
	}
	// What is lost of the trace if the process is killed is little.
	_ = w.j.Flush()
	if w.want == nil || w.diverged != nil {
		return
	}
	for w.next < len(w.want.Checkpoints) && w.want.Checkpoints[w.next].Steps < steps {
		w.next++
	}
	switch end := w.want.End; {
	case w.next < len(w.want.Checkpoints) && w.want.Checkpoints[w.next].Steps == steps:
		if was := w.want.Checkpoints[w.next]; was != c {
			w.differ("at step %d they are not any more (recorded at %v, now at %v)", steps, duration(was.Time), duration(c.Time))
			return
		}
		w.common = c
		w.next++
	case end != nil && steps > end.Steps:
		w.differ("recorded is an end after %d steps (%v), this run goes on", end.Steps, end)
	}
}

// differ ends the job because it is not the recorded one.
func (w *watch) differ(format string, args ...any) {
	w.diverged = &DivergedError{w.common, fmt.Sprintf(format, args...)}
	if !w.over {
		w.j.fail(-1, w.diverged)
	}
}

// finish records the end of the job. panicked is what ended it, if not itself.
func (w *watch) finish(panicked any) {
	if w.over {
		return
	}
	w.over = true
	defer w.close()
	j := w.j
	e := &End{Checkpoint: Checkpoint{j.trace.count, j.trace.digest, j.now}}
	if j.err != nil {
		e.Failed, e.Rank, e.Error, e.Time = true, j.failer, j.err.Error(), j.failedAt
		// The innermost is the cause: rank 2 failed because rank 3 had.
		var p *conduits.PeerError
		for err := j.err; errors.As(err, &p); err = p.Err {
			if e.Rank = p.Rank; p.Err == nil {
				break
			}
			e.Error = p.Err.Error()
		}
		var x *conduits.ExitError
		if errors.As(j.err, &x) {
			e.Exited, e.Status, e.Error = true, x.Code, ""
		}
	}
	if panicked != nil {
		e.Failed, e.Rank, e.Error, e.Exited, e.Status = true, -1, fmt.Sprint("panic: ", panicked), false, 0
	}
	if len(e.Error) > maxErrorText {
		e.Error = e.Error[:maxErrorText]
	}
	w.write(e.line(w.k))
	if w.want == nil {
		return
	}
	if was := w.want.End; w.diverged == nil && was != nil && *was != *e {
		w.differ("recorded is an end after %d steps (%v), this run ended after %d (%v)", was.Steps, was, e.Steps, e)
	} else if w.diverged == nil && was == nil && w.next < len(w.want.Checkpoints) {
		last := w.want.Checkpoints[len(w.want.Checkpoints)-1]
		w.differ("recorded are %d steps and more, this run ended after %d (%v)", last.Steps, e.Steps, e)
	}
	how := ReplaySame
	if w.diverged != nil {
		how = w.diverged.Error()
	}
	w.write(replayLine(w.k, how))
}
