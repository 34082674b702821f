package gas

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/origin"
	"github.com/argon-go/argon/internal/sys"
)

// Must does nothing if err is nil. Otherwise it ends the rank's function, and Run returns err
// as this rank's, as if the function had returned it, with the line of the program that called
// in front ("main.go:17: "); the first such error of a rank counts. Package gas/must has the
// operations of this package so, which leaves sparse code as short as UPC's:
//
//	must.Put(n, p.On(right), must.Get(n, p)+1)
//
// The function ends as by runtime.Goexit: its deferred calls run, recover finds nothing, and
// what is still under way is as after a failure. On a goroutine of the program's own Must ends
// that goroutine in the same way and fails the job, so that what the rank's function waits for
// ends, too; Run returns err once the function has returned, whatever it returns. In a called
// function or a handler it ends the goroutine that has polled: return errors there.
func (n *Node) Must(err error) {
	if err != nil {
		n.abandon(err)
	}
}

// The errors of Must end a goroutine by Goexit, not by a panic: recover does not swallow it, a
// goroutine that is not the rank's function does not crash the process, and there is no value
// to be told from panics of the program. The error lies in the Node meanwhile.

// sticky is the error that Must has ended the rank's function with.
type sticky struct {
	function uintptr // the goroutine that the function runs on
	err      atomic.Pointer[error]
}

// abandon ends the calling goroutine and, sooner or later, the rank's function with err.
//
//go:noinline
func (n *Node) abandon(err error) {
	at := origin.Caller()
	if !n.ep.Polling() {
		err = n.failed(err)
	}
	err = fmt.Errorf("%s: %w", at, err)
	n.sticky.err.CompareAndSwap(nil, &err)
	if !sys.HasGoroutine || sys.Goroutine() != n.sticky.function {
		n.fail(err)
	}
	runtime.Goexit()
}

// fail has the job fail with err of this rank, or because of the rank that err names.
func (n *Node) fail(err error) {
	var p *PeerError
	switch {
	case n.ep.Err() != nil:
	case errors.As(err, &p) && uint(p.Rank) < uint(n.size) && p.Rank != n.rank:
		n.ep.Blame(p.Rank, errs.Reason(n.rank, p))
	default:
		n.ep.Fail(err)
	}
}

// Ended is the error that Must has ended the rank's function with, nil if it has not.
func (m *member) Ended() error {
	if err := m.sticky.err.Load(); err != nil {
		return *err
	}
	return nil
}
