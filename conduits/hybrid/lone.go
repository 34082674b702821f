package hybrid

import (
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
)

// lone is an endpoint of a job of one host. All that it does goes through shared
// memory, without a detour; far only tells of failures, since where no launcher
// watches the processes of a host the rendezvous does.
type lone struct {
	*shm.Endpoint
	far  Remote
	made atomic.Pointer[shm.JobMemory]
	stop atomic.Pointer[func()] // ends the watching
}

// Attach attaches to both.
func (l *lone) Attach(c conduits.AttachConfig) error {
	if err := conduits.CheckAttach("hybrid", &c, l.Limits().MaxSegment); err != nil {
		return err
	}
	stop := watchFor(l.far, l.hear)
	err := l.Endpoint.Attach(c)
	if err == nil {
		first, views := l.Views()
		err = l.far.AttachOver(views[l.Rank()-first], c)
	}
	if err != nil {
		stop()
		return err
	}
	l.stop.Store(&stop)
	drop(&l.made)
	return nil
}

// hear tells the shared memory of a failure, and says whether there is no more to
// hear.
func (l *lone) hear() bool {
	err := l.far.Failure()
	if f, ok := err.(*conduits.PeerError); ok {
		l.Blame(f.Rank, f.Err)
	}
	return err != nil
}

// Fail declares this rank failed.
func (l *lone) Fail(err error) {
	l.Endpoint.Fail(err)
	l.far.Fail(err)
}

// Close leaves the job.
func (l *lone) Close() error {
	near := l.Endpoint.Close()
	if near != nil {
		return near
	}
	drop(&l.made)
	if stop := l.stop.Swap(nil); stop != nil {
		(*stop)()
	}
	return l.far.Close()
}

// drop closes memory that all have joined by now, or never will.
func drop(m *atomic.Pointer[shm.JobMemory]) {
	if made := m.Swap(nil); made != nil {
		_ = made.Close()
	}
}

// watchFor has hear called, by another goroutine, whenever something has happened
// in far, until it returns true or stop is called.
func watchFor(far Remote, hear func() bool) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			t := far.Arm(watching{})
			select {
			case <-done:
				far.Disarm(t)
				return
			default:
			}
			if hear() {
				far.Disarm(t)
				return
			}
			far.Park(t)
		}
	}()
	return func() {
		close(done)
		far.Wake(far.Rank())
		<-ended
	}
}
