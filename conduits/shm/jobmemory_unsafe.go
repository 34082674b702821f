package shm

import (
	"os"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/jobenv"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// JobMemory is a launcher's hold on the memory of processes that are ranks of a
// job. It numbers them from 0, and other ranks of the job relative to that: the
// caller, which knows the number of the first, adds it.
type JobMemory struct {
	j    *job
	file *os.File
}

// CreateJob makes the memory for n ranks: a memfd, or an unlinked file in the
// directory that ARGON_SHM_DIR names (such as /dev/shm) where memfd_create is
// not to be had. Nothing of it is touched yet. c.MaxSegment 0 lets the ranks
// attach 85 % of the memory that is available, divided by n, at most 64 GiB
// each; an explicit size that does not fit is an error.
func CreateJob(n int, c conduits.Config) (*JobMemory, error) {
	if err := checkSize(n); err != nil {
		return nil, err
	}
	dir := os.Getenv(jobenv.ShmDir)
	stride, err := chooseStride(n, c.Lanes, dir, c.MaxSegment)
	if err != nil {
		return nil, err
	}
	g, err := geometryFor(n, stride).configure(c)
	if err != nil {
		return nil, err
	}
	f, err := sys.CreateMemory(dir, "argon", g.total())
	if err != nil && dir == "" {
		const fallback = "/dev/shm"
		if stride, err = chooseStride(n, c.Lanes, fallback, c.MaxSegment); err == nil {
			g.segment = stride
			f, err = sys.CreateMemory(fallback, "argon", g.total())
		}
	}
	if err != nil {
		return nil, errs.Resource("shm: cannot make %d bytes of shared memory for %d ranks: %v (-segment, ARGON_SEGMENT, ARGON_SHM_DIR)", g.total(), n, err)
	}
	p, err := sys.Map(f.Fd(), g.launched())
	if err != nil {
		f.Close()
		return nil, errs.Resource("shm: %v", err)
	}
	j := newJob(g, whole(n), p, p)
	j.launcher = true
	j.initHeader(n > sys.Processors())
	return &JobMemory{j: j, file: f}, nil
}

// chooseStride checks a wanted segment size against what there is, or chooses.
func chooseStride(n, lanes int, dir string, want uint64) (int64, error) {
	avail, limit := sys.AvailableMemory()
	if dir != "" {
		free, err := sys.FreeSpace(dir)
		if err != nil {
			return 0, errs.Resource("shm: %s: %v (ARGON_SHM_DIR)", dir, err)
		}
		if avail == 0 || free < avail {
			avail, limit = free, "the space free in "+dir
		}
	}
	if avail != 0 {
		avail = max(avail-mailboxes(n, lanes), 1)
	}
	return strideFor(n, want, avail, limit)
}

// mailboxes is how much memory a job takes beside its segments if every rank
// talks to eight others in all of its lanes.
func mailboxes(n, lanes int) int64 {
	g := geometryFor(n, 0)
	return g.ctlOffset(n) + int64(n)*int64(min(n, 8))*int64(max(lanes, 1))*int64(g.talk())
}

// strideFor is chooseStride without the system: avail is 0 if unknown.
func strideFor(n int, want uint64, avail int64, limit string) (int64, error) {
	const most = 64 << 30
	if want == 0 {
		if avail == 0 {
			return 256 << 20, nil
		}
		s := min(avail/100*85/int64(n), most) &^ (segment.PageSize - 1)
		return max(s, segment.PageSize), nil
	}
	if want > uint64(segment.MaxAttach) {
		return 0, errs.Resource("shm: a segment of %d bytes: the most is %d (-segment, ARGON_SEGMENT)", want, uint64(segment.MaxAttach))
	}
	if avail != 0 && want > uint64(avail)/uint64(n) {
		return 0, errs.Resource("shm: %d segments of %d bytes need %.0f MiB, but %s allows %d MiB beside the mailboxes: at most %d bytes a rank (-segment, ARGON_SEGMENT, or a container's --shm-size and memory limit)",
			n, want, float64(n)*float64(want)/(1<<20), limit, avail>>20, avail/int64(n)&^(segment.PageSize-1))
	}
	return int64(want+segment.PageSize-1) &^ (segment.PageSize - 1), nil
}

// File is the memory as a file for ranks to inherit; a rank finds its number in
// ARGON_SEGFD. It stays the launcher's.
func (m *JobMemory) File() *os.File { return m.file }

// State says how far rank has come.
func (m *JobMemory) State(rank int) RankState {
	return RankState(atomic.LoadUint32(m.j.c32(rank, ctlState)))
}

// MaxSegment is the most a rank can attach, bytes.
func (m *JobMemory) MaxSegment() int64 { return m.j.segment }

// Fail records that rank ended with status because of cause and wakes all
// ranks, whose waits and sends then end with a *conduits.PeerError. Only the
// first failure of a job is recorded. The rank's process must have ended.
func (m *JobMemory) Fail(rank, status int, cause string) {
	m.j.fail(m.j.n, rank, status, cause)
	atomic.StoreUint32(m.j.c32(rank, ctlState), uint32(Failed))
}

// Failure returns the recorded failure, if any: a rank may have announced its
// own before it ended. cause is one printable line, see errs.Line. A record that no
// rank of ours has written is reported as such, with rank -1.
func (m *JobMemory) Failure() (rank, status int, cause string, ok bool) { return m.j.failure() }

// Close gives up the launcher's hold. The memory goes when the last rank ends.
func (m *JobMemory) Close() error {
	err := sys.Unmap(m.j.base, m.j.launched())
	if cerr := m.file.Close(); err == nil {
		err = cerr
	}
	return err
}
