package sim

import (
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/job/simrecord"
)

// Record describes a run, so that it can be repeated and compared: its jobs, checkpoints in
// them and their ends.
type (
	Record     = simrecord.Record
	JobRecord  = simrecord.Job
	Checkpoint = simrecord.Checkpoint
	End        = simrecord.End
)

// ReplaySame is JobRecord.Replay of a job that went as recorded.
const ReplaySame = simrecord.Same

// ReadRecord reads a record. A last line that has no end is left out: its writer
// was killed. The error, which wraps ErrBadArg unless reading failed, names the
// line.
func ReadRecord(from io.Reader) (*Record, error) {
	return simrecord.Read(from, func(options string) error {
		_, err := ParseOptions(options)
		return err
	})
}

// DivergedError is the error of a run that should repeat a recorded one and does not.
type DivergedError struct {
	Common Checkpoint // up to here both are the same
	What   string     // what comes next, there and here
}

// Error says where, and what may be the reason.
func (d *DivergedError) Error() string {
	return fmt.Sprintf("sim: this run is not the recorded one: they are the same up to step %d at %v of virtual time; %s. "+
		"Either this is not the program that was recorded, or what it does depends on more than argon, the options and its arguments: "+
		"on a clock, random numbers, input, goroutines or the order of a map (compare the traces of two runs, -sim-trace)",
		d.Common.Steps, duration(d.Common.Time), d.What)
}

// checkpointMask plus 1 is how many steps lie between two checkpoints.
const checkpointMask = 1<<10 - 1

// kept reports whether the checkpoint after so many steps goes into a record: 32 of
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
	c := Checkpoint{Steps: steps, Digest: digest, Time: w.j.now}
	if kept(steps) {
		w.write(c.Line(w.k))
	}
	// If the process is killed later, little of the trace is lost.
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

// finish records the end of the job. panicked is the panic that ended it, or nil.
func (w *watch) finish(panicked any) {
	if w.over {
		return
	}
	w.over = true
	defer w.close()
	j := w.j
	e := &End{Checkpoint: Checkpoint{Steps: j.trace.count, Digest: j.trace.digest, Time: j.now}}
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
	if len(e.Error) > simrecord.MaxErrorText {
		e.Error = e.Error[:simrecord.MaxErrorText]
	}
	w.write(e.Line(w.k))
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
	w.write(simrecord.ReplayLine(w.k, how))
}
