package front

import (
	"cmp"
	"fmt"
	"slices"
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
	Pos   Pos
	Msg   string
	Warn  bool     // the program is compiled nevertheless
	Notes []*Error // other places that it is about
	Text  string   // the line of the source; "" if it has none
}

// Error is the error as gcc writes it.
func (e *Error) Error() string {
	if e.Warn {
		return e.line("warning")
	}
	return e.line("error")
}

func (e *Error) line(kind string) string { return fmt.Sprintf("%v: %s: %s", e.Pos, kind, e.Msg) }

// note adds another place that an error, or nil, is about.
func (e *Error) note(p Pos, format string, args ...any) {
	if e != nil && p.File != "" {
		e.Notes = append(e.Notes, &Error{Pos: p, Msg: fmt.Sprintf(format, args...)})
	}
}

// caret is the line of the source with a caret below the place, as clang has it.
func (e *Error) caret() string {
	if e.Text == "" || e.Pos.Col > len(e.Text) {
		return ""
	}
	blank := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r // which is as wide as the one above it
		}
		return ' '
	}, e.Text[:e.Pos.Col-1])
	return "\n" + e.Text + "\n" + blank + "^"
}

// Errors has the mistakes of a program, in the order of its source.
type Errors []*Error

// Error is a line for each error and each of its notes.
func (l Errors) Error() string { return l.list(func(*Error) string { return "" }) }

// Show is Error with the lines of the source.
func (l Errors) Show() string { return l.list((*Error).caret) }

func (l Errors) list(more func(*Error) string) string {
	var s []string
	errors := 0
	for _, e := range l {
		if !e.Warn {
			if errors++; errors > maxErrors {
				s = append(s, "too many errors: the others are not printed")
				break
			}
		}
		s = append(s, e.Error()+more(e))
		for _, n := range e.Notes {
			s = append(s, n.line("note")+more(n))
		}
	}
	return strings.Join(s, "\n")
}

// maxErrors is how many errors are collected before the compiler gives up on a file, and printed of all.
const maxErrors = 20

// stop is the value of the panic by which the compiler gives up on a file.
type stop struct{}

// stretch is consecutive lines of a file, the order of which is that of the source: the text between two
// lines that include others, or that #line renames.
type stretch struct {
	called      string
	first, last int // lines, as they are counted
	shift       int // how far names of lines are from that
	lines       []string
}

// reporter collects errors.
type reporter struct {
	errs      Errors
	warns     Errors
	at        map[Pos]bool // one error for each place
	stretches []stretch
}

// place is the number of the stretch that a place is in, and its line there; -1 for none.
func (r *reporter) place(p Pos) (number, line int) {
	for i := len(r.stretches) - 1; i >= 0; i-- {
		if s := r.stretches[i]; s.called == p.File && p.Line-s.shift >= s.first && p.Line-s.shift <= s.last {
			return i, p.Line - s.shift
		}
	}
	return -1, p.Line
}

// locate gives an error, and its notes, the lines of the source.
func (r *reporter) locate(e *Error) {
	if i, line := r.place(e.Pos); i >= 0 && e.Text == "" && line >= 1 && line <= len(r.stretches[i].lines) {
		e.Text = strings.TrimRight(r.stretches[i].lines[line-1], "\r\n")
	}
	for _, n := range e.Notes {
		r.locate(n)
	}
}

// Locate gives an error that was found later the line of the source, if it is one of this file.
func (u *Unit) Locate(e *Error) { u.reporter.locate(e) }

// sorted is errors and warnings, in the order of the source.
func (r *reporter) sorted() Errors {
	all := append(slices.Clone(r.errs), r.warns...)
	slices.SortStableFunc(all, func(a, b *Error) int {
		i, k := r.place(a.Pos)
		j, l := r.place(b.Pos)
		return cmp.Or(i-j, k-l, a.Pos.Col-b.Pos.Col)
	})
	for _, e := range all {
		r.locate(e)
	}
	return all
}

// errorf reports an error; it returns nil if there is one at that place.
func (r *reporter) errorf(p Pos, format string, args ...any) *Error {
	if r.at == nil {
		r.at = map[Pos]bool{}
	}
	if r.at[p] {
		return nil
	}
	r.at[p] = true
	e := &Error{Pos: p, Msg: fmt.Sprintf(format, args...)}
	r.errs = append(r.errs, e)
	if len(r.errs) > maxErrors {
		panic(stop{})
	}
	return e
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
