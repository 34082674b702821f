package front

import (
	"fmt"
	"strings"
)

// Pos is a place in a source file; lines and columns count from 1, columns in bytes.
type Pos struct {
	File      string
	Line, Col int
}

// String is file:line:column.
func (p Pos) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col) }

// Error is one thing that is wrong with a program.
type Error struct {
	Pos  Pos
	Msg  string
	Warn bool // the program is compiled nevertheless
}

// Error is the error as gcc writes it.
func (e *Error) Error() string {
	kind := "error"
	if e.Warn {
		kind = "warning"
	}
	return fmt.Sprintf("%v: %s: %s", e.Pos, kind, e.Msg)
}

// Errors has the mistakes of a program, in the order in which they were found.
type Errors []*Error

// Error is a line for each.
func (l Errors) Error() string {
	s := make([]string, len(l))
	for i, e := range l {
		s[i] = e.Error()
	}
	return strings.Join(s, "\n")
}

// maxErrors is how many errors are collected before the compiler gives up.
const maxErrors = 20

// stop is the value of the panic by which the compiler gives up on a file.
type stop struct{}

// reporter collects errors.
type reporter struct {
	errs  Errors
	warns Errors
	at    map[Pos]bool // one error for each place
}

func (r *reporter) errorf(p Pos, format string, args ...any) {
	if r.at == nil {
		r.at = map[Pos]bool{}
	}
	if r.at[p] {
		return
	}
	r.at[p] = true
	r.errs = append(r.errs, &Error{Pos: p, Msg: fmt.Sprintf(format, args...)})
	if len(r.errs) >= maxErrors {
		panic(stop{})
	}
}

// warnf reports what is undefined, or seldom meant.
func (r *reporter) warnf(p Pos, format string, args ...any) {
	r.warns = append(r.warns, &Error{Pos: p, Msg: fmt.Sprintf(format, args...), Warn: true})
}

// fatalf is errorf where nothing can follow.
func (r *reporter) fatalf(p Pos, format string, args ...any) {
	r.errorf(p, format, args...)
	panic(stop{})
}
