package hybrid

import (
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// lone is the state of a job of one host beside the endpoint of its shared memory,
// which is the job's endpoint without a detour: far only tells of failures, for
// where no launcher watches the processes of a host the rendezvous does.
type lone struct {
	near conduits.NearEndpoint
	far  conduits.FarEndpoint
	made conduits.JobMemory // by this process; dropped when all have joined it
	stop func()             // ends the watching for failures
}

// accompany has far told what happens to near, and near what far hears.
func accompany(near conduits.NearEndpoint, far conduits.FarEndpoint, made conduits.JobMemory) {
	l := &lone{near: near, far: far, made: made}
	near.Hook(conduits.Hooks{Attached: l.attached, Failed: l.failed, Blamed: l.blamed, Closed: l.closed})
	l.stop = watchFor(far, l.hear) // which calls hooks at once if the job has failed
}

func (l *lone) attached(v segment.View, c conduits.AttachConfig) error {
	if err := l.far.AttachOver(v, l.near.MadeATU, c); err != nil {
		return err
	}
	if l.made != nil {
		_ = l.made.Close()
		l.made = nil
	}
	return nil
}

// hear tells the shared memory of a failure, and reports whether there is no more to
// hear.
func (l *lone) hear() bool {
	err := l.far.Failure()
	if f, ok := err.(*conduits.PeerError); ok {
		l.near.Blame(f.Rank, f.Err)
	}
	return err != nil
}

// failed has all ranks told of this rank's failure by far, and near of the one that counts: of ranks that end the job by
// Exit far names one.
func (l *lone) failed(err error) {
	l.far.Fail(err)
	_ = l.hear()
}

// blamed has far told of a failure that near knows of: a rank that computes hears of
// it by the rendezvous, before its launcher ends it.
func (l *lone) blamed(failure *conduits.PeerError) { l.far.Blame(failure.Rank, failure.Err) }

func (l *lone) closed() error {
	l.stop()
	return l.far.Close()
}

// drop closes memory that all have joined by now, or never will.
func drop(m *atomic.Pointer[conduits.JobMemory]) {
	if made := m.Swap(nil); made != nil {
		_ = (*made).Close()
	}
}

// watchFor has hear called, by another goroutine, whenever something has happened
// in far, until it returns true or stop is called.
func watchFor(far conduits.FarEndpoint, hear func() bool) (stop func()) {
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
