package boot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
)

// run is the ranks of one call of Run.
type run struct {
	cfg   *Config
	eps   []conduits.Endpoint
	ranks []Rank // by index in eps

	mu     sync.Mutex
	closed []bool     // by index in eps: the endpoint is, or is about to be
	first  *RankError // of all failures the one to return
	asked  error      // what the context's end has asked a simulated rank to fail with
	ended  error      // what the context has ended the job with, nil if it has not

	watched *watcher // nil: none looks whether ranks get on
}

// runRanks runs ranks that begin makes on eps, and closes them.
func runRanks(ctx context.Context, cfg *Config, eps []conduits.Endpoint, begin func(ep conduits.Endpoint) Rank) error {
	r := &run{cfg: cfg, eps: eps, ranks: make([]Rank, len(eps)), closed: make([]bool, len(eps))}
	for i, ep := range eps {
		r.ranks[i] = begin(ep)
	}
	stall, _ := cfg.stall() // it has been validated
	unwatch := r.watch(stall)
	forget := diagnose(r)
	defer forget()
	defer unwatch()
	stop := context.AfterFunc(ctx, func() { r.interrupt(cfg.ended(ctx)) })
	conduits.Run(eps, r.rank)
	stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.first == nil:
		return nil
	case r.ended != nil && !errors.Is(r.first, context.Cause(ctx)):
		// The failure came as a text, by memory or messages.
		return &endedError{r.first, r.ended}
	}
	return r.first
}

// endedError is the failure of a job whose context has ended.
type endedError struct {
	*RankError
	cause error
}

func (e *endedError) Unwrap() []error { return []error{e.RankError, e.cause} }

// interrupt fails the job from outside, if a rank of it is still there and none is
// known to have failed.
func (r *run) interrupt(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var there conduits.Endpoint
	for i, ep := range r.eps {
		if r.closed[i] {
			continue
		}
		if there == nil {
			there = ep
		}
		// Only its own goroutines may ask a simulated rank, see fail.
		if _, simulated := conduits.As[conduits.Runner](ep); !simulated && ep.Err() != nil {
			return
		}
	}
	if there == nil || r.first != nil {
		return
	}
	if _, simulated := conduits.As[conduits.Runner](there); simulated {
		r.asked = err
	} else {
		r.ended = err
	}
	conduits.Interrupt(there, err)
}

// rank runs rank i from its begin to its close. It returns only by returning, unless
// the rank ends the goroutine. Its frame is on the stack of every rank that waits.
func (r *run) rank(i int) {
	returned := false
	defer func() {
		killed := false
		if !returned {
			killed = r.broken(i, recover())
		}
		r.close(i, killed)
	}()
	err := r.ranks[i].Run()
	returned = true
	if err == nil {
		// A rank that broke a rule in a handler has failed, although its function
		// may have dropped the error and everything waited for has come.
		err = r.eps[i].Err()
	}
	if err != nil {
		r.fail(i, err, nil)
	}
}

// broken fails rank i, which has ended by panic with p or by runtime.Goexit, and reports
// whether a simulator has ended it.
//
//go:noinline
func (r *run) broken(i int, p any) (killed bool) {
	if p != nil {
		err := fmt.Errorf("panic: %v", p)
		if e, ok := p.(error); ok {
			err = fmt.Errorf("panic: %w", e)
		}
		r.fail(i, err, panicStack(debug.Stack()))
		return false
	}
	if e, ok := r.ranks[i].(Ender); ok {
		if err := e.Ended(); err != nil {
			r.fail(i, err, nil)
			return false
		}
	}
	err := r.eps[i].Err()
	if err == nil {
		err = errs.ErrGoexit
	} else {
		// A simulator ends so all goroutines of a rank that it lets die.
		killed = !(&RankError{Rank: r.eps[i].Rank(), Err: err}).followed()
	}
	r.fail(i, err, nil)
	return killed
}

// close ends rank i's part in the job.
//
//go:noinline
func (r *run) close(i int, killed bool) {
	ep := r.eps[i]
	if err := r.ranks[i].Close(killed); err != nil && ep.Err() == nil {
		r.fail(i, err, nil)
	}
	r.mu.Lock()
	r.closed[i] = true
	r.mu.Unlock()
	if err := ep.Close(); err != nil && ep.Err() == nil {
		r.fail(i, err, nil)
	}
}

// runner is the method whose frame is below that of a Rank's Run.
const runner = "\ngithub.com/argon-go/argon/conduits/boot.(*run).rank("

// panicStack leaves out of the stack of a function that has recovered from a
// panic what is above the panic and what is below the program's function, or below a
// runtime's Rank, which always look the same. A stack of another form is left as it is.
func panicStack(s []byte) []byte {
	head, rest, ok := bytes.Cut(s, []byte("\n"))
	at := bytes.Index(rest, []byte("\npanic("))
	end := bytes.LastIndex(rest, []byte(runner))
	if !ok || at < 0 || end <= at {
		return s
	}
	// A frame is two lines. Where the last one is argon's own Rank, it says nothing.
	if i := bytes.LastIndexByte(rest[:end], '\n'); i > at {
		if i = bytes.LastIndexByte(rest[:i], '\n'); i >= at && ownRank(rest[i+1:]) {
			end = i
		}
	}
	return append(append(head[:len(head):len(head)], '\n'), rest[at+1:end+1]...)
}

// ownRank reports whether a frame is a Rank of argon, whose Run calls the program's function.
func ownRank(frame []byte) bool {
	for _, f := range []string{"conduits/boot.(*bare).Run(", "gas.(*member).Run("} {
		if bytes.HasPrefix(frame, []byte("github.com/argon-go/argon/"+f)) {
			return true
		}
	}
	return false
}

// fail notes that rank i has failed with err, if by a panic with its stack, and tells
// the other ranks.
//
//go:noinline
func (r *run) fail(i int, err error, stack []byte) {
	ep := r.eps[i]
	rank := ep.Rank()
	failed := &RankError{Rank: rank, Err: err, Stack: stack}
	job := ep.Err()
	if errors.Is(job, errs.ErrExit) && !errors.Is(err, errs.ErrExit) {
		failed = &RankError{Rank: rank, Err: job} // the rest is what comes of it
	}
	r.mu.Lock()
	if r.asked != nil && errors.Is(job, r.asked) {
		r.ended = r.asked
	}
	if r.first == nil || r.first.followed() && !failed.followed() {
		r.first = failed
	}
	r.mu.Unlock()
	// A rank that fails because of another one would only hide the cause.
	if ep.Err() != nil {
		return
	}
	var p *errs.PeerError
	if errors.As(failed.Err, &p) && p.Rank >= 0 && p.Rank < ep.Size() && p.Rank != rank {
		ep.Blame(p.Rank, errs.Reason(rank, p)) // it has left the job, but this one needed it
		return
	}
	ep.Fail(failed.Err)
}
