package env

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
)

// A Reader overrides settings by variables that are set. What is wrong with their
// values it keeps for Err. It is used by one goroutine.
type Reader struct {
	Who     string                  // begins its errors
	Getenv  func(key string) string // looks variables up; "" counts as not set
	Verbose io.Writer               // gets a line for each variable that is looked at; nil for none

	all []error
}

// Err is all that was wrong, or nil.
func (r *Reader) Err() error { return errors.Join(r.all...) }

// look is the value of a variable.
func (r *Reader) look(key string) (v string, ok bool) {
	v = r.Getenv(key)
	ok = v != ""
	if r.Verbose != nil {
		said := v
		if !ok {
			said = "(not set)"
		}
		fmt.Fprintf(r.Verbose, "argon: env %-19s %-12s %s\n", key, said, Meaning(key))
	}
	return v, ok
}

// bad notes what is wrong with a value.
func (r *Reader) bad(format string, args ...any) {
	r.all = append(r.all, errs.BadArg(r.Who+": "+format, args...))
}

// Text reads a variable of any value.
func (r *Reader) Text(key string, to *string) {
	if v, ok := r.look(key); ok {
		*to = v
	}
}

// Bool reads a variable that is 0 or 1, or what strconv.ParseBool takes besides.
func (r *Reader) Bool(key string, to *bool) {
	v, ok := r.look(key)
	if !ok {
		return
	}
	b, err := strconv.ParseBool(v)
	if err != nil {
		r.bad("%s=%q is neither 0 nor 1", key, v)
		return
	}
	*to = b
}

// Size reads a number of bytes, which may have a suffix as jobenv.ParseSize takes it.
func (r *Reader) Size(key string, to *uint64) {
	v, ok := r.look(key)
	if !ok {
		return
	}
	b, err := jobenv.ParseSize(v)
	if err != nil {
		r.bad("%s=%q: %v", key, v, err)
		return
	}
	*to = b
}

// Number reads a number from 1 to most; what says of what.
func (r *Reader) Number(key, what string, most int, to *int) {
	v, ok := r.look(key)
	if !ok {
		return
	}
	k, err := strconv.Atoi(v)
	if err != nil || k < 1 || k > most {
		r.bad("%s=%q is not a %s from 1 to %d", key, v, what, most)
		return
	}
	*to = k
}
