// Package errs holds the error values that several packages return. Public
// packages re-export them, so that users write gas.ErrBadArg or am.ErrBadArg
// and errors.Is works across layers.
package errs

import (
	"errors"
	"fmt"
	"io/fs"
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
	// ErrPeer is matched by every PeerError.
	ErrPeer = errors.New("peer failed")
	// ErrGoexit is how a rank fails whose function has not returned and has not panicked.
	ErrGoexit = errors.New("the rank's function ended its goroutine (runtime.Goexit)")
)

// PeerError is the error of a rank that died, left early, or could not be reached.
type PeerError struct {
	Rank int    // the rank that failed; negative: none in particular
	Op   string // what the caller was doing, such as "request short" or "barrier"
	Err  error  // why: how the rank ended, as far as is known
	Own  bool   // Rank is the rank that has the error: others have declared it failed
}

// Error names the rank first: it is what the reader needs.
func (e *PeerError) Error() string {
	s := "the job failed"
	switch {
	case e.Own:
		s = fmt.Sprintf("the job has given up this rank, %d", e.Rank)
	case e.Rank >= 0:
		s = fmt.Sprintf("rank %d failed", e.Rank)
	}
	if x, ok := e.Err.(*ExitError); ok {
		s = fmt.Sprintf("rank %d ended the job with status %d (Exit)", e.Rank, x.Code)
	} else if e.Err != nil {
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

// Reason is why p's rank has failed, as rank knows it. A program may return a
// PeerError of its own without one.
func Reason(rank int, p *PeerError) error {
	if p.Err != nil {
		return p.Err
	}
	return fmt.Errorf("rank %d says so without a reason (PeerError.Err)", rank)
}

// WithStatus is err that says, to ExitStatus, which exit status its process ends
// with or has ended with. The text and what it matches are err's.
func WithStatus(err error, status int) error { return &withStatus{err, status} }

// Misstarted is err of a process that has not joined a job yet. If it matches
// ErrBadArg, because of what the environment says, the process ends with status 2
// (jobenv.StatusUsage).
func Misstarted(err error) error {
	if errors.Is(err, ErrBadArg) {
		return WithStatus(err, 2)
	}
	return err
}

// ExitStatus is the exit status that err or an error which it wraps says by
// WithStatus or as an ExitError; ok is false if none does.
func ExitStatus(err error) (status int, ok bool) {
	var e *ExitError
	if errors.As(err, &e) {
		return e.Code, true
	}
	var w *withStatus
	if errors.As(err, &w) {
		return w.status, true
	}
	return 0, false
}

type withStatus struct {
	error
	status int
}

func (w *withStatus) Unwrap() error { return w.error }

// Cause is an error of package os without the file's name.
func Cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

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
