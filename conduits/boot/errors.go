package boot

import (
	"errors"
	"fmt"

	"github.com/argon-go/argon/internal/errs"
)

// The errors that this package's functions wrap, beside those of the conduit and of
// the program.
var (
	ErrBadArg       = errs.ErrBadArg       // a setting that can never be right
	ErrNotReady     = errs.ErrNotReady     // a launched process runs its rank again
	ErrNotSupported = errs.ErrNotSupported // the conduit cannot run in this way
	ErrClosed       = errs.ErrClosed       // a rank has left the job
	ErrPeer         = errs.ErrPeer         // matches every PeerError
	ErrExit         = errs.ErrExit         // a rank has ended the job by am.Messenger.Exit
)

// PeerError is the error of an operation that needs a rank which died, failed or
// left early.
type PeerError = errs.PeerError

// ExitError is the status of a job that a rank has ended by am.Messenger.Exit:
// errors.As finds it in what Run and the operations of all ranks return.
type ExitError = errs.ExitError

// RankError is the error of Run: which rank failed first, and how.
type RankError struct {
	Rank  int    // the rank whose function failed
	Err   error  // what it returned; for a panic or Goexit a description
	Stack []byte // the goroutine's stack at the panic; nil otherwise
}

// Error is one line, and for a panic the stack below it.
func (e *RankError) Error() string {
	s := fmt.Sprintf("rank %d: %v", e.Rank, e.Err)
	if len(e.Stack) > 0 {
		s += "\n\n" + string(e.Stack)
	}
	return s
}

// followed reports whether the rank failed only because another one had.
func (e *RankError) followed() bool {
	var p *PeerError
	if errors.As(e.Err, &p) {
		return p.Rank != e.Rank
	}
	return errors.Is(e.Err, ErrPeer)
}

// Unwrap gives the rank's own error.
func (e *RankError) Unwrap() error { return e.Err }
