// Package errs holds the error values that several packages return. Public
// packages re-export them, so that users write gas.ErrBadArg or am.ErrBadArg
// and errors.Is works across layers.
package errs

import (
	"errors"
	"fmt"
)

// The sentinels mirror the GASNET_ERR_* family (GASNet-1 specification, "Error
// codes"), plus what Go programs expect. Errors returned by argon wrap one of
// them and add the value, the limit and the knob.
var (
	ErrNotInit         = errors.New("not attached")
	ErrResource        = errors.New("out of resources")
	ErrBadArg          = errors.New("bad argument")
	ErrNotReady        = errors.New("not ready")
	ErrBarrierMismatch = errors.New("barrier mismatch")
	ErrNotSupported    = errors.New("not supported")
	ErrClosed          = errors.New("closed")
	// ErrPeer is what every PeerError matches.
	ErrPeer = errors.New("peer failed")
)

// PeerError says that a rank died, left early, or could not be reached.
type PeerError struct {
	Rank int    // the rank that failed; negative: none in particular
	Op   string // what the caller was doing, such as "request short" or "barrier"
	Err  error  // why: how the rank ended, as far as is known
}

// Error names the rank first: it is what the reader needs.
func (e *PeerError) Error() string {
	s := "the job failed"
	if e.Rank >= 0 {
		s = fmt.Sprintf("rank %d failed", e.Rank)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Op != "" {
		s = e.Op + ": " + s
	}
	return s
}

// Unwrap gives the cause.
func (e *PeerError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrPeer) hold for every PeerError.
func (e *PeerError) Is(target error) bool { return target == ErrPeer }

// BadArg returns an error that wraps ErrBadArg.
func BadArg(format string, args ...any) error { return wrap(ErrBadArg, format, args) }

// Resource returns an error that wraps ErrResource.
func Resource(format string, args ...any) error { return wrap(ErrResource, format, args) }

// NotReady returns an error that wraps ErrNotReady.
func NotReady(format string, args ...any) error { return wrap(ErrNotReady, format, args) }

// NotInit returns an error that wraps ErrNotInit.
func NotInit(format string, args ...any) error { return wrap(ErrNotInit, format, args) }

// NotSupported returns an error that wraps ErrNotSupported.
func NotSupported(format string, args ...any) error { return wrap(ErrNotSupported, format, args) }

// Closed returns an error that wraps ErrClosed.
func Closed(format string, args ...any) error { return wrap(ErrClosed, format, args) }

// Mismatch returns an error that wraps ErrBarrierMismatch.
func Mismatch(format string, args ...any) error { return wrap(ErrBarrierMismatch, format, args) }

func wrap(kind error, format string, args []any) error {
	return &marked{msg: fmt.Sprintf(format, args...), kind: kind}
}

// marked carries a full sentence and matches its kind without repeating the
// kind's words in the text.
type marked struct {
	msg  string
	kind error
}

func (m *marked) Error() string { return m.msg }
func (m *marked) Unwrap() error { return m.kind }
