package hybrid

import "github.com/argon-go/argon/conduits"

// Attach makes the segment in shared memory and shows it to the other hosts.
func (e *Endpoint) Attach(c conduits.AttachConfig) error {
	if e.closed.Load() {
		return errClosed
	}
	if err := conduits.CheckAttach("hybrid", &c, e.limits.MaxSegment); err != nil {
		return err
	}
	if err := e.Err(); err != nil {
		return err
	}
	if err := e.attachNear(c); err != nil {
		return err
	}
	// The other ranks of this host have attached there, too, and none of them sends
	// anything before all ranks have attached here.
	_, views := e.near.Views()
	err := e.far.AttachOver(views[uint(e.rank)-e.first], e.near.MadeATU, c)
	if err == nil {
		e.attached.Store(true)
		drop(&e.made)
	}
	return err
}

// attachNear attaches to the shared memory. Ranks that wait there do not hear by
// themselves that a rank elsewhere has failed.
func (e *Endpoint) attachNear(c conduits.AttachConfig) error {
	stop := watchFor(e.far, func() bool { return e.hear() != nil })
	err := e.near.Attach(c)
	stop()
	if _, failed := err.(*conduits.PeerError); failed {
		return e.Err()
	}
	return err
}

// hear finds out whether the job has failed, has both conduits know, and says so.
// The conduit between hosts comes first, for it has all ranks agree on which one has
// failed. No goroutine of this rank says so before both know: it might end then, and others
// would take it for one that has left of its own accord.
func (e *Endpoint) hear() error {
	if f := e.failed.Load(); f != nil {
		return f
	}
	f, ok := e.far.Failure().(*conduits.PeerError)
	if !ok {
		f, ok = e.near.Err().(*conduits.PeerError)
	}
	if !ok {
		return nil
	}
	e.far.Blame(f.Rank, f.Err)
	e.near.Blame(f.Rank, f.Err)
	e.failed.CompareAndSwap(nil, f)
	return e.failed.Load()
}

// Err is the job's failure.
func (e *Endpoint) Err() error {
	if err := e.hear(); err != nil {
		return err
	}
	if e.closed.Load() {
		return errClosed
	}
	return e.far.Err()
}

// Diagnosis is that of the conduit between hosts.
func (e *Endpoint) Diagnosis() string {
	if d, ok := conduits.As[conduits.Diagnoser](e.far); ok {
		return d.Diagnosis()
	}
	return ""
}

// Fail declares this rank failed, to both.
func (e *Endpoint) Fail(err error) {
	e.far.Fail(err)
	_ = e.hear()
	e.near.Fail(err)
}

// Blame declares rank failed, to both.
func (e *Endpoint) Blame(rank int, err error) {
	e.far.Blame(rank, err)
	_ = e.hear()
	e.near.Blame(rank, err)
}

// Left reports whether rank has left, and what it had sent has been run.
func (e *Endpoint) Left(rank int) bool {
	if e.isNear(rank) {
		return e.near.Left(rank)
	}
	return e.far.Left(rank)
}

// Close leaves the job.
func (e *Endpoint) Close() error {
	if !e.closed.CompareAndSwap(false, true) {
		return errClosed
	}
	e.mu.Lock()
	e.stopped = true
	if e.handed != nil {
		close(e.handed)
	}
	e.mu.Unlock()
	e.far.Wake(e.rank) // ends the watcher's Park
	drop(&e.made)
	near, far := e.near.Close(), e.far.Close()
	if near != nil {
		return near
	}
	return far
}
