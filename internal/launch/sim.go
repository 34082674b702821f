package launch

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/job/simrecord"
)

// newSimMemory makes the file that the one process of a job writes its record to.
func newSimMemory() (*simMemory, error) {
	f, err := os.CreateTemp("", "gasrun-sim-")
	if err != nil {
		return nil, errs.Resource("launch: file for the state of a simulation: %v", err)
	}
	_ = os.Remove(f.Name()) // it goes on without a name
	return &simMemory{f: f}, nil
}

// simMemory is the Memory of a simulated job: a file that its one process writes a record
// to.
type simMemory struct {
	noMemory
	f *os.File
}

func (m *simMemory) File() *os.File { return m.f }

// record is the record that the process has written so far.
func (m *simMemory) record() *simrecord.Record {
	fi, err := m.f.Stat()
	if err != nil || fi.Size() == 0 {
		return &simrecord.Record{}
	}
	r, err := simrecord.Read(io.NewSectionReader(m.f, 0, fi.Size()), nil)
	if err != nil {
		return &simrecord.Record{}
	}
	return r
}

// last is the job that decides: the last one.
func (m *simMemory) last() *simrecord.Job {
	if r := m.record(); len(r.Jobs) > 0 {
		return r.Jobs[len(r.Jobs)-1]
	}
	return nil
}

// State is that of the process: finished if its last job has ended in good
// order.
func (m *simMemory) State(int) State {
	switch j := m.last(); {
	case j == nil:
		return Starting
	case j.End == nil:
		return Attached
	case j.End.Failed:
		return Failed
	}
	return Finished
}

// Failure is that of a rank that has called Exit.
func (m *simMemory) Failure() (rank, status int, cause string, ok bool) {
	if j := m.last(); j != nil && j.End != nil && j.End.Exited {
		x := errs.NewExit(j.End.Status)
		return j.End.Rank, errs.CarriedStatus(x), x.Error(), true
	}
	return m.noMemory.Failure()
}

func (m *simMemory) Close() error { return m.f.Close() }

// explain names the simulated rank that failed instead of the process, if the
// process said so before it ended by itself. memory is how much it has used, bytes.
func (m *simMemory) explain(e *RankError, memory int64) {
	e.Rank = -1
	if e.Signal == syscall.SIGKILL { // as the system does when it runs out of memory
		e.Cause += fmt.Sprintf(", using %d MiB of memory", memory>>20)
	}
	if e.Status == 0 || e.Status == jobenv.StatusPeerFailed { // the other rank is one of its own
		e.Status = jobenv.StatusFailed
	}
	j := m.last()
	switch {
	case j == nil:
		return
	case j.End == nil && len(j.Checkpoints) > 0:
		c := j.Checkpoints[len(j.Checkpoints)-1]
		e.Cause += fmt.Sprintf(" (after more than %d steps and %v of virtual time)", c.Steps, simrecord.Duration(c.Time))
		return
	case j.End == nil || !j.End.Failed || e.Signal != 0:
		return
	}
	e.Rank, e.Last = j.End.Rank, nil
	e.Cause = fmt.Sprintf("failed at %v of virtual time: %s", simrecord.Duration(j.End.Time), errs.Printable(j.End.Error, textMost))
}
