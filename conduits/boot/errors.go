package boot

import (
	"errors"
	"fmt"

	"github.com/argon-go/argon/internal/errs"
)

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
	var p *errs.PeerError
	if errors.As(e.Err, &p) {
		return p.Rank != e.Rank
	}
	return errors.Is(e.Err, errs.ErrPeer)
}

// Unwrap gives the rank's own error.
func (e *RankError) Unwrap() error { return e.Err }
