package shm

import (
	"fmt"
	"os"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/sys"
)

// JobMemory is a launcher's hold on the memory of processes that are ranks of a
// job. It numbers them from 0, and other ranks of the job relative to that: the
// caller, which knows the number of the first, adds it.
type JobMemory struct {
	j    *job
	file *os.File
}

// CreateJob makes the memory for n ranks: a memfd, or an unlinked file in the
// directory that ARGON_SHM_DIR names, or in /dev/shm where memfd_create is
// forbidden. Nothing of it is touched yet. c.MaxSegment 0 lets the ranks
// attach 85 % of the memory that is available, divided by n, at most 64 GiB
// each, or less where another limit is narrower (see room); an explicit size that does not
// fit is an error. c.Lanes 0 gives ranks conduits.DefaultLanes, or fewer where their rings could
// take much of any of this.
func CreateJob(n int, c conduits.Config) (*JobMemory, error) {
	if err := checkSize(n); err != nil {
		return nil, err
	}
	g, err := geometryFor(n, 0).configure(c)
	if err != nil {
		return nil, err
	}
	f, err := g.create(os.Getenv(jobenv.ShmDir), c)
	if err != nil {
		return nil, err
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

// create makes the file, and chooses g.segment.
func (g *geometry) create(dir string, c conduits.Config) (*os.File, error) {
	var forbidden error
	if dir == "" {
		if forbidden = sys.MemfdError(); forbidden != nil {
			dir = "/dev/shm"
		}
	}
	bounds, err := g.room(dir, forbidden, c.MaxSegment == 0)
	if want := conduits.DefaultLanes(g.n); c.Lanes == 0 && want > 1 && err == nil {
		room := bounds[0].Room
		for _, b := range bounds {
			room = sys.Narrowest(room, b.Room)
		}
		for g.lanes = want; g.lanes > 1 && g.segmentOffset(0) > room.Free/64; g.lanes /= 2 {
		}
		bounds, err = g.room(dir, forbidden, c.MaxSegment == 0)
	}
	if err == nil {
		var size uint64
		if size, err = conduits.FitSegment("shm", g.n, c.MaxSegment, c.Remark, bounds...); err != nil {
			return nil, err
		}
		g.segment = int64(size)
		var f *os.File
		if f, err = sys.CreateMemory(dir, "argon", g.total()); err == nil {
			return f, nil
		}
	}
	why := "ARGON_SHM_DIR"
	if dir == "" {
		why = "-segment, ARGON_SEGMENT"
	} else if forbidden != nil {
		why = fmt.Sprintf("which is used because of %v: allow that, or let ARGON_SHM_DIR name a directory of a tmpfs", forbidden)
	}
	return nil, errs.Resource("shm: cannot make %s of shared memory for %d ranks: %v (%s)", sys.Amount(g.total()), g.n, err, why)
}

// room has the bounds of the memory of a job of this geometry: how much memory there is, here
// and in the file system of dir; how much a process may map, for every rank maps all of it; and
// how long a file may be, which grows when ranks register memory.
func (g *geometry) room(dir string, forbidden error, chosen bool) ([]conduits.Bound, error) {
	talks := g.ctlOffset(g.n) + int64(g.n)*int64(min(g.n, 8))*int64(g.lanes)*int64(g.talk()) // if every rank talks to eight in all lanes
	talks += int64(g.n) * int64(g.staging())
	mapped := conduits.Addresses(false)
	mapped.Beside += g.segmentOffset(0)
	bounds := []conduits.Bound{
		{Room: sys.MemoryRoom(chosen), Beside: talks, Share: 85},
		mapped,
		{Room: sys.FileRoom(), Beside: g.segmentOffset(0), Share: 85},
	}
	if dir == "" {
		return bounds, nil
	}
	free, err := sys.DirectoryRoom(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if forbidden != nil {
		free.Knob = fmt.Sprintf("docker run --shm-size, mount -o remount,size=; or allow what is refused: %v", forbidden)
	}
	return append(bounds, conduits.Bound{Room: free, Beside: talks, Share: 85}), nil
}

// File is the memory as a file for ranks to inherit; a rank finds its number in
// ARGON_SEGFD. It stays the launcher's.
func (m *JobMemory) File() *os.File { return m.file }

// State says how far rank has come.
func (m *JobMemory) State(rank int) conduits.RankState {
	return conduits.RankState(atomic.LoadUint32(m.j.c32(rank, ctlState)))
}

// Fail records that rank ended with status because of cause and wakes all
// ranks, whose waits and sends then end with a *conduits.PeerError. Only the
// first failure of a job is recorded. The rank's process must have ended.
func (m *JobMemory) Fail(rank, status int, cause string) {
	m.j.fail(m.j.n, rank, status, cause)
	atomic.StoreUint32(m.j.c32(rank, ctlState), uint32(conduits.RankFailed))
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
