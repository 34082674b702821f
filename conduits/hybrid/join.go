package hybrid

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
)

// Join opens this process's rank of a job. It returns when all ranks are there.
//
// Ranks share memory if they say that they are on the same host (see
// ARGON_HOST), whatever their numbers. The memory is inherited from the
// launcher, whose ranks of a host have consecutive numbers; without one, the first
// of them makes it and the others open it by way of /proc, for which they need to
// see its process and belong to the same user.
func (p Pair) Join(j conduits.Job, c conduits.Config) (conduits.Endpoint, error) {
	fd, given, err := inherited(j)
	if err != nil {
		return nil, err
	}
	if given && j.Env(jobenv.Rendezvous) == "" {
		// No other host can be reached: all are here, or JoinPart finds out.
		e, err := p.Near.Join(fd, j.Rank, j.Size, conduits.Part{Size: j.Size, Conduit: p.Name})
		if err != nil {
			return nil, err
		}
		return e, nil
	}
	far, err := p.Far.Join(j, conduits.Config{Credits: c.Credits, MaxMedium: c.MaxMedium})
	if err != nil {
		return nil, err
	}
	e, err := p.join(j, c, far, fd, given)
	if err != nil {
		err = reason(far, err)
		far.Fail(err)
		_ = far.Close()
		return nil, err
	}
	return e, nil
}

// patience is how long reason waits.
const patience = time.Second

// reason is why this rank could not join: err, unless the job has failed. Then
// other ranks have left, with the memory that they made, perhaps before this one
// hears of it.
func reason(far conduits.FarEndpoint, err error) error {
	var failure error
	heard := make(chan struct{})
	stop := watchFor(far, func() bool {
		p, ok := far.Failure().(*conduits.PeerError)
		if ok {
			failure = p
			close(heard)
		}
		return ok
	})
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-heard:
	case <-late.C:
	}
	stop()
	if failure != nil {
		return failure
	}
	return err
}

// inherited is the file that the launcher has left as memory, if any.
func inherited(j conduits.Job) (fd int, given bool, err error) {
	s := j.Env(jobenv.SegFD)
	if s == "" {
		return 0, false, nil
	}
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, false, errs.Misstarted(errs.BadArg("hybrid: %s=%q is no file descriptor", jobenv.SegFD, s))
	}
	return int(n), true, nil
}

// join joins the shared memory of this host's ranks: file fd if it is given.
func (p Pair) join(j conduits.Job, c conduits.Config, far conduits.FarEndpoint, fd int, given bool) (conduits.Endpoint, error) {
	m := far.Board()
	hoods := conduits.NewNeighbourhoods(j.Size, m.Host)
	hood := hoods.Of(j.Rank)
	ranks := hoods.Ranks(hood)
	first, n := ranks[0], len(ranks)
	if s := j.Env(jobenv.LocalSize); given && s != "" && s != strconv.Itoa(n) {
		return nil, errs.BadArg("hybrid: rank %d got memory for %s ranks (%s), but ranks %s say that they are on its host (%s)",
			j.Rank, s, jobenv.LocalSize, conduits.RankList(ranks), jobenv.Host)
	}
	if given && ranks[n-1] != first+n-1 { // the launcher counts the ranks from the first one on
		return nil, errs.BadArg("hybrid: rank %d got memory from its launcher (%s), for ranks with consecutive numbers, but ranks %s say that they are on its host (%s)",
			j.Rank, jobenv.SegFD, conduits.RankList(ranks), jobenv.Host)
	}
	var made conduits.JobMemory // until all have joined
	if !given {
		f, own, err := p.meet(m, j.Rank, first, n, c)
		if err != nil {
			return nil, err
		}
		if made = own; made == nil {
			defer f.Close()
		}
		fd = int(f.Fd())
	}
	near, err := p.Near.Join(fd, j.Rank, n, conduits.Part{Ranks: ranks, Size: j.Size, Conduit: p.Name})
	if err != nil {
		return nil, err
	}
	if n == j.Size {
		accompany(near, far, made)
		return near, nil
	}
	limits, err := agree(m, j.Rank, hoods, least(near.Limits(), far.Limits()))
	if err != nil {
		return nil, err
	}
	e, err := New(Config{Near: near, Far: far, Neighbourhoods: hoods, Limits: limits})
	if err != nil {
		return nil, err
	}
	if made != nil {
		e.made.Store(&made)
	}
	return e, nil
}

// meet has the first rank of a neighbourhood make its memory, and the others find
// it. The memory is the caller's if it is the first, else the file.
func (p Pair) meet(m conduits.Board, rank, first, n int, c conduits.Config) (*os.File, conduits.JobMemory, error) {
	key := "hybrid/memory/" + strconv.Itoa(first)
	if rank == first {
		made, err := p.Near.Memory(n, c)
		if err != nil {
			return nil, nil, err
		}
		id, err := identity(made.File())
		if err == nil && n > 1 {
			err = m.Put(key, fmt.Appendf(nil, "/proc/%d/fd/%d %s", os.Getpid(), made.File().Fd(), id))
		}
		if err != nil {
			return nil, nil, errors.Join(err, made.Close())
		}
		return made.File(), made, nil
	}
	b, err := m.Get(context.Background(), key)
	if err != nil {
		return nil, nil, err
	}
	path, want, err := parseMeeting(b)
	if err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, errs.Resource("hybrid: rank %d cannot open the memory that rank %d has made: %v; ranks that cannot share memory must have different %s",
			rank, first, err, jobenv.Host)
	}
	if id, err := identity(f); err != nil || id != want {
		f.Close()
		return nil, nil, errs.Resource("hybrid: %s, where rank %d has made memory, is another file for rank %d (%s, not %s): do both see the same processes? Ranks that do not must have different %s",
			path, first, rank, id, want, jobenv.Host)
	}
	return f, nil, nil
}

// parseMeeting reads where memory is.
func parseMeeting(b []byte) (path, id string, err error) {
	var pid, fd int
	if _, err := fmt.Sscanf(string(b), "/proc/%d/fd/%d %s", &pid, &fd, &id); err != nil || pid < 1 || fd < 0 {
		return "", "", errs.Resource("hybrid: the rendezvous says that memory is at %q, which no rank of this version would say", b)
	}
	return fmt.Sprintf("/proc/%d/fd/%d", pid, fd), id, nil
}

// identity tells one file of this host from another.
func identity(f *os.File) (string, error) {
	i, err := f.Stat()
	if err != nil {
		return "", errs.Resource("hybrid: %v", err)
	}
	s, ok := i.Sys().(*syscall.Stat_t)
	if !ok {
		return "", errs.NotSupported("hybrid: files have no identity here")
	}
	return fmt.Sprintf("%d:%d", s.Dev, s.Ino), nil
}

// agree finds the limits of the job: the first rank of each neighbourhood says
// what is possible there, rank 0 what is possible everywhere. Each rank learns it
// in one message.
func agree(m conduits.Board, rank int, hoods *conduits.Neighbourhoods, mine conduits.Limits) (conduits.Limits, error) {
	key := func(first int) string { return "hybrid/limits/" + strconv.Itoa(first) }
	const all = "hybrid/limits"
	if rank == 0 {
		for _, f := range hoods.Firsts()[1:] {
			l, err := learn(m, key(f))
			if err != nil {
				return l, err
			}
			mine = least(mine, l)
		}
		return mine, m.Put(all, formatLimits(mine))
	}
	if hoods.Firsts()[hoods.Of(rank)] == rank {
		if err := m.Put(key(rank), formatLimits(mine)); err != nil {
			return mine, err
		}
	}
	return learn(m, all)
}

func learn(m conduits.Board, key string) (conduits.Limits, error) {
	b, err := m.Get(context.Background(), key)
	if err != nil {
		return conduits.Limits{}, err
	}
	return parseLimits(b)
}

func formatLimits(l conduits.Limits) []byte {
	return fmt.Appendf(nil, "%d %d %d %d", l.MaxMedium, l.MaxLong, l.MaxSegment, l.Credits)
}

func parseLimits(b []byte) (l conduits.Limits, err error) {
	_, err = fmt.Sscanf(string(b), "%d %d %d %d", &l.MaxMedium, &l.MaxLong, &l.MaxSegment, &l.Credits)
	if err != nil || l.MaxMedium < 512 || l.Credits < 1 {
		return l, errs.Resource("hybrid: the rendezvous says that limits are %q, which no rank of this version would say", b)
	}
	return l, nil
}
