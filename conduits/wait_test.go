package conduits

import (
	"errors"
	"testing"
)

// busy is an endpoint of a failed job to which messages never cease to come.
type busy struct {
	Endpoint
	polls int
}

var errFailed = errors.New("the job has failed")

func (b *busy) Err() error { return errFailed }

func (b *busy) Spin() int {
	b.polls++
	return 1
}

func TestWaitHearsOfFailureAmidArrivals(t *testing.T) {
	b := &busy{}
	err := Wait(b, nil, func() bool { return b.polls > 1000 })
	if !errors.Is(err, errFailed) {
		t.Fatalf("Wait polled %d times in a failed job and returned %v", b.polls, err)
	}
}
