package gen

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/argon-go/argon/internal/upc/front"
	"github.com/argon-go/argon/internal/upc/ir"
)

// File is a Go file that was made.
type File struct {
	Text []byte // formatted, with the lines of the source in comments
	// Located is Text with a line directive wherever the place in the source is another than
	// that of the line before. A program that is built of it names source files and lines in
	// its errors, stack traces, profiles and reports of races.
	Located []byte
}

const directive = "//line "

// mark says that the code which follows is of a line of the source. It is indented, since
// go/format moves directives in comments that are not.
func (g *gen) mark(p front.Pos) {
	if p.File != "" && p.Line > 0 && p.Line < 1<<30 && !strings.ContainsAny(p.File, "\r\n") {
		g.emit(&ir.Stmt{Kind: ir.Mark, Text: fmt.Sprintf("%s:%d", p.File, p.Line)})
	}
}

// located is a formatted file whose marks name files as the command line does.
func located(marked []byte) (f File, err error) {
	type place struct {
		file string
		line int
	}
	mark := func(line []byte) (p place, ok bool) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(string(line)), directive)
		if !ok {
			return p, false
		}
		colon := strings.LastIndexByte(rest, ':')
		p.file = rest[:colon]
		p.line, _ = strconv.Atoi(rest[colon+1:]) // gen has written it
		return p, true
	}
	var is, next place // where the code is from, and where the compiler takes the next line to be from
	lines := bytes.SplitAfter(marked, []byte("\n"))
	absolute := map[string]string{}
	for i, l := range lines {
		p, ok := mark(l)
		if !ok && bytes.HasPrefix(l, []byte("func ")) && i+1 < len(lines) {
			if q, first := mark(lines[i+1]); first {
				is = q // the mark of a function stands in it, since go/format would move it
			}
		}
		if ok {
			is = p
			continue
		}
		f.Text = append(f.Text, l...)
		code := bytes.TrimSpace(l)
		if len(code) > 0 && !bytes.HasPrefix(code, []byte("//")) && is.line > 0 && is != next {
			if absolute[is.file] == "" {
				if absolute[is.file], err = filepath.Abs(is.file); err != nil {
					return f, fmt.Errorf("gen: %s: %w", is.file, err)
				}
			}
			f.Located = fmt.Appendf(f.Located, "%s%s:%d\n", directive, absolute[is.file], is.line)
			next = is
		}
		f.Located = append(f.Located, l...)
		next.line++
	}
	return f, nil
}
