package gas

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/internal/sys/origin"
)

// Must is v, the result of an operation, if err is nil. Otherwise it ends the rank's function, and
// Run returns err as this rank's, as if the function had returned it, with the line of the program
// that called in front ("main.go:17: "); the first such error of a rank counts. Sparse code is then
// as short as UPC's. [Must2] is for operations with two results, [Node.Must] for those with none:
//
//	n.Must(p.On(right).Put(n, gas.Must(p.Get(n))+1))
//	v, found := gas.Must2(words.Get("the"))
//
// The function ends as by runtime.Goexit: its deferred calls run, recover finds nothing, and
// what is still under way is as after a failure. On a goroutine of the program's own Must ends
// that goroutine in the same way and fails the job, so that what the rank's function waits for
// ends, too; Run returns err once the function has returned, whatever it returns. Where the process
// runs several ranks, Must takes such a goroutine for one of the lowest rank's; Node.Must knows the
// rank. When no rank runs any more Must ends the goroutine alone; before any has, it panics. In a called function or a handler both end the goroutine that has polled: return errors
// there.
func Must[T any](v T, err error) T {
	if err != nil {
		abandon(err)
	}
	return v
}

// Must2 is [Must] for operations with two results.
func Must2[A, B any](a A, b B, err error) (A, B) {
	if err != nil {
		abandon(err)
	}
	return a, b
}

// Must is the function [Must] for operations that return an error alone, of this rank.
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

// running are the ranks of this process whose functions run, by the goroutines of those.
var running struct {
	sync.Mutex
	ranks map[uintptr]*Node
}

// running notes that n's function runs on the calling goroutine.
func (n *Node) running() {
	n.sticky.function = sys.Goroutine()
	running.Lock()
	defer running.Unlock()
	if running.ranks == nil {
		running.ranks = make(map[uintptr]*Node)
	}
	running.ranks[n.sticky.function] = n
}

// over ends what running has noted.
func (n *Node) over() {
	running.Lock()
	defer running.Unlock()
	if running.ranks[n.sticky.function] == n {
		delete(running.ranks, n.sticky.function)
	}
}

// abandon is Node.abandon of the rank whose function calls; on another goroutine, of the
// lowest that runs.
//
//go:noinline
func abandon(err error) {
	running.Lock()
	n := running.ranks[sys.Goroutine()]
	if n == nil {
		for _, r := range running.ranks {
			if n == nil || r.rank < n.rank {
				n = r
			}
		}
	}
	early := running.ranks == nil
	running.Unlock()
	switch {
	case n != nil:
		n.abandon(err)
	case early:
		panic(fmt.Errorf("gas: Must before Run: %w", err))
	}
	runtime.Goexit()
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

// Ended is the error that Must has ended the rank's function with, nil if it has not. The rank's profile ends with it.
func (m *member) Ended() error {
	err := m.sticky.err.Load()
	if err == nil {
		return nil
	}
	if q, ok := m.ep.(*profiled); ok && q.profiling.options.On {
		q.profiling.stop((*Node)(m))
		q.profiling.finish((*Node)(m), true)
	}
	return *err
}
