package boot

import (
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/sys/awake"
)

// lookAtFailure is how often OnFailure looks.
const lookAtFailure = 50 * time.Millisecond

// OnFailure has fn called once when ep knows that the job has failed, by a goroutine that
// looks at Endpoint.Err from time to time. stop ends that, before ep is closed, and waits for it. Where the conduit runs the ranks itself there is
// no such goroutine, and fn is not called.
func OnFailure(ep conduits.Endpoint, fn func(err error)) (stop func()) {
	if _, simulated := conduits.As[conduits.Runner](ep); simulated {
		return func() {}
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			next, cancel := awake.NewTimer(lookAtFailure)
			select {
			case <-over:
				cancel()
				return
			case <-next:
				if err := ep.Err(); err != nil {
					fn(err)
					return
				}
			}
		}
	}()
	return func() { close(over); <-ended }
}
