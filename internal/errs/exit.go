package errs

import (
	"errors"
	"fmt"
)

// ErrExit is matched by the error of a job that a rank has ended by Exit.
var ErrExit = errors.New("the job was ended by Exit")

// ExitError is the error of a job that a rank has ended with a status. It travels as
// the Err of a PeerError, which names the rank.
type ExitError struct {
	Code int // the job's exit status, 0 to 255
}

// NewExit is the ExitError of code, of which the low eight bits count, as for
// exit(3).
func NewExit(code int) *ExitError { return &ExitError{code & 0xff} }

// Error names the rank and the status.
func (e *ExitError) Error() string {
	return fmt.Sprintf("it ended the job with status %d (Exit)", e.Code)
}

// Is makes errors.Is(err, ErrExit) hold.
func (e *ExitError) Is(target error) bool { return target == ErrExit }

// MostCarried is the largest number that CarriedStatus returns.
const MostCarried = exitMark | 0xff

// exitMark is the bit that the status of a job ended by Exit has beside its code
// where a failure travels as a number and a text.
const exitMark = 1 << 8

// CarriedStatus is the number that stands for err in records and messages which
// tell other processes of a failure: the exit status that err says, 1 if it says
// none, and more than 255 if err is an Exit.
func CarriedStatus(err error) int {
	var e *ExitError
	if errors.As(err, &e) {
		return exitMark | e.Code&0xff
	}
	if s, ok := ExitStatus(err); ok {
		return s
	}
	return 1
}

// Carried is the error that CarriedStatus and the error's text stand for.
func Carried(status int, cause string) error {
	if code, ok := CarriedExit(status); ok {
		return &ExitError{code}
	}
	return WithStatus(errors.New(cause), status)
}

// CarriedExit is the job's exit status if a number from CarriedStatus stands for an
// Exit.
func CarriedExit(status int) (code int, ok bool) { return status &^ exitMark, status&^0xff == exitMark }
