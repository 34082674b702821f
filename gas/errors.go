package gas

import (
	"github.com/argon-go/argon/conduits/boot"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// The errors that operations wrap; test for them with errors.Is. The text of an
// error names the value, the limit and the knob.
var (
	ErrNotInit         = errs.ErrNotInit         // the job is not attached, or no longer
	ErrResource        = errs.ErrResource        // out of memory, handles or room
	ErrBadArg          = errs.ErrBadArg          // an argument that can never be right
	ErrNotReady        = errs.ErrNotReady        // out of order, such as a barrier wait without notify
	ErrBarrierMismatch = errs.ErrBarrierMismatch // ranks named different barriers
	ErrNotSupported    = errs.ErrNotSupported    // this conduit or type cannot do it
	ErrClosed          = errs.ErrClosed          // this rank has left the job
	ErrPeer            = errs.ErrPeer            // matches every PeerError
	ErrExit            = errs.ErrExit            // a rank has ended the job by Node.Exit

	// ErrFault is the remote segmentation fault: what is accessed was never
	// registered, or is deregistered, or not for this rank, or not with the right.
	// It matches ErrBadArg too.
	ErrFault = segment.ErrFault
)

// PeerError is the error of an operation that needs a rank which died, failed or
// left early.
//
//	type PeerError struct {
//		Rank int    // the rank that failed; negative: none in particular
//		Op   string // what the caller was doing, such as "request short" or "barrier"
//		Err  error  // why: how the rank ended, as far as is known
//		Own  bool   // Rank is the rank that has the error: others have declared it failed
//	}
type PeerError = errs.PeerError

// ExitError is the status of a job that a rank has ended by Node.Exit: errors.As
// finds it in what Run and the operations of all ranks return.
//
//	type ExitError struct {
//		Code int // the job's exit status, 0 to 255
//	}
type ExitError = errs.ExitError

// RankError is the error of Run: which rank failed first, and how.
type RankError = boot.RankError
