package launch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/argon-go/argon/internal/errs"
)

const (
	readSize  = 64 << 10
	maxLine   = 64 << 20 // longer lines are passed on in pieces
	maxHeld   = 64 << 20 // stacks kept back while the summary is awaited
	tailLines = 5        // last lines kept for the final report
	tailWidth = 400      // bytes kept of each
	textMost  = 4 << 10  // bytes that are shown of a text from a rank or a host
)

// pumpHurry is how long a pipe that a stranger holds open is read on.
const pumpHurry = time.Second

// sink is one destination of output. Lines of several streams go there, each
// in one piece.
type sink struct {
	mu     sync.Mutex
	w      io.Writer
	failed func(error) // called once, at the first error
	err    error
	last   int  // rank whose output came last; -1 the launcher
	open   bool // that output did not end its line
}

// emit writes b, which came from rank (-1: the launcher). If another rank's
// line is unfinished it is ended first.
func (s *sink) emit(rank int, b []byte) {
	if len(b) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	if s.open && s.last != rank {
		s.write([]byte{'\n'})
	}
	s.write(b)
	end := b[len(b)-1]
	s.last, s.open = rank, end != '\n' && end != '\r'
}

func (s *sink) write(b []byte) {
	if s.err != nil {
		return
	}
	if _, err := s.w.Write(b); err != nil {
		s.err = err
		if s.failed != nil {
			s.failed(err)
		}
	}
}

// endLine ends an unfinished line.
func (s *sink) endLine() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		s.write([]byte{'\n'})
		s.open = false
	}
}

// printf writes a line of the launcher's own.
func (s *sink) printf(format string, args ...any) {
	s.emit(-1, fmt.Appendf(nil, format+"\n", args...))
}

// sinks makes one sink for each writer; writers that are the same file share
// one, so that their lines do not mix.
func sinks(failed func(error), ws ...io.Writer) []*sink {
	out := make([]*sink, len(ws))
	for i, w := range ws {
		for j := range i {
			if sameWriter(ws[j], w) {
				out[i] = out[j]
			}
		}
		if out[i] == nil {
			out[i] = &sink{w: w, failed: failed, last: -1}
		}
	}
	return out
}

func sameWriter(a, b io.Writer) bool {
	fa, ok1 := a.(*os.File)
	fb, ok2 := b.(*os.File)
	if ok1 && ok2 {
		if fa == fb {
			return true
		}
		sa, err1 := fa.Stat()
		sb, err2 := fb.Stat()
		return err1 == nil && err2 == nil && os.SameFile(sa, sb)
	}
	if ok1 != ok2 {
		return false
	}
	// Only pointers are compared: other writers might not be comparable.
	ba, ok1 := a.(*bytes.Buffer)
	bb, ok2 := b.(*bytes.Buffer)
	return ok1 && ok2 && ba == bb
}

// stream carries one output (stdout or stderr) of one rank to its sink.
type stream struct {
	rank   int
	label  []byte // written before every line; nil for none
	direct bool   // pass on unfinished lines at once
	sink   *sink
	copy   *os.File // the rank's file in Config.OutputDir, or nil
	copyTo func(error)
	ended  chan struct{} // closed at end of file
	// foreign: the end of file did not come after all processes of the job had
	// ended. Valid after ended.
	foreign bool
	pump    pump // of run

	mu     sync.Mutex
	buf    []byte   // line not passed on yet
	seen   int      // bytes of buf that hold no line end
	begun  bool     // part of the line in buf has been passed on already
	line   []byte   // first bytes of the current line, for tail
	tail   []string // last lines
	panicd string   // last line for which isCause holds
	held   *held
}

// held is output kept back while the launcher waits for the line in which a
// rank says where it waits.
type held struct {
	prefix   string        // how that line begins
	answer   string        // that line
	answered chan struct{} // closed when it has come
	got      bool
	rest     []byte // everything else
	dropped  int
}

func newStream(rank int, s *sink, label, direct bool, copy *os.File, copyFailed func(error)) *stream {
	st := &stream{rank: rank, sink: s, direct: direct, copy: copy, copyTo: copyFailed, ended: make(chan struct{})}
	if label {
		st.label = fmt.Appendf(nil, "[%d] ", rank)
	}
	return st
}

// run copies in, the read end of the rank's pipe, until its end.
func (st *stream) run(in *os.File) { st.close(st.pump.run(in, st.accept)) }

// close says that nothing more comes. The caller of accept calls it.
func (st *stream) close(foreign bool) {
	st.foreign = foreign
	st.finish()
	if st.copy != nil {
		if err := st.copy.Close(); err != nil {
			st.copyTo(err)
		}
	}
	close(st.ended)
}

// hurry gives a stream that runs a second for the rest, and awaits its end. All
// processes of the job have ended.
func (st *stream) hurry() {
	st.pump.hurry()
	<-st.ended
}

func (st *stream) accept(b []byte) {
	if st.copy != nil {
		if _, err := st.copy.Write(b); err != nil {
			st.copyTo(err)
			st.copy.Close()
			st.copy = nil
		}
	}
	st.feed(b)
}

// feed takes the next bytes.
func (st *stream) feed(b []byte) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.remember(b)
	st.buf = append(st.buf, b...)
	end := st.lineEnd()
	if end == 0 && len(st.buf) >= maxLine || st.direct && st.held == nil {
		end = len(st.buf)
	}
	if end == 0 {
		return
	}
	st.pass(st.buf[:end])
	st.buf = append(st.buf[:0], st.buf[end:]...)
	if cap(st.buf) > 1<<20 && len(st.buf) < readSize {
		st.buf = bytes.Clone(st.buf)
	}
	st.seen = min(st.seen, len(st.buf))
}

// lineEnd returns the length of the whole lines at the start of buf. A carriage
// return ends a line unless a newline follows, so the last byte cannot tell.
func (st *stream) lineEnd() int {
	end := 0
	for i := len(st.buf) - 1; i >= st.seen; i-- {
		if c := st.buf[i]; c == '\n' || c == '\r' && i+1 < len(st.buf) && st.buf[i+1] != '\n' {
			end = i + 1
			break
		}
	}
	// A carriage return at the very end is looked at again.
	st.seen = max(len(st.buf)-1, 0) - end
	st.seen = max(st.seen, 0)
	return end
}

// finish passes on what is left at end of file.
func (st *stream) finish() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.buf) > 0 {
		if st.label != nil && st.buf[len(st.buf)-1] != '\n' {
			st.buf = append(st.buf, '\n')
		}
		st.pass(st.buf)
		st.buf, st.seen = nil, 0
	}
	if len(st.line) > 0 {
		st.remember([]byte{'\n'})
	}
}

// pass hands b to the sink, or keeps it back.
func (st *stream) pass(b []byte) {
	if h := st.held; h != nil {
		for len(b) > 0 {
			line := b
			if i := bytes.IndexByte(b, '\n'); i >= 0 {
				line = b[:i+1]
			}
			b = b[len(line):]
			switch {
			case !h.got && bytes.HasPrefix(line, []byte(h.prefix)):
				h.answer, h.got = strings.TrimSpace(string(line[len(h.prefix):])), true
				close(h.answered)
			case len(h.rest)+len(line) > maxHeld:
				h.dropped += len(line)
			default:
				h.rest = append(h.rest, line...)
			}
		}
		return
	}
	st.write(b)
}

func (st *stream) write(b []byte) {
	if st.label == nil {
		st.sink.emit(st.rank, b)
		return
	}
	out := make([]byte, 0, len(b)+len(b)/16+64)
	for len(b) > 0 {
		line := b
		for i, c := range b {
			if c == '\n' || c == '\r' && i+1 < len(b) && b[i+1] != '\n' {
				line = b[:i+1]
				break
			}
		}
		if !st.begun {
			out = append(out, st.label...)
		}
		out = append(out, line...)
		b = b[len(line):]
		end := line[len(line)-1]
		st.begun = end != '\n' && end != '\r'
	}
	st.sink.emit(st.rank, out)
}

// hold keeps back what comes from now on, looking for a line with prefix.
func (st *stream) hold(prefix string) *held {
	h := &held{prefix: prefix, answered: make(chan struct{})}
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.buf) > 0 { // an unfinished line belongs to the time before
		st.write(append(st.buf, '\n'))
		st.buf, st.seen = nil, 0
	}
	st.held = h
	return h
}

// release passes on what was kept back.
func (st *stream) release() {
	st.mu.Lock()
	defer st.mu.Unlock()
	h := st.held
	if h == nil {
		return
	}
	st.held = nil
	if len(h.rest) > 0 {
		st.write(h.rest)
	}
	if h.dropped > 0 {
		st.write(fmt.Appendf(nil, "(%d more bytes)\n", h.dropped))
	}
}

// heldSize is how much is kept back.
func (st *stream) heldSize() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.held == nil {
		return 0
	}
	return len(st.held.rest) + st.held.dropped
}

// remember keeps the last lines.
func (st *stream) remember(b []byte) {
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		part := b
		if i >= 0 {
			part = b[:i]
		}
		if room := tailWidth - len(st.line); room > 0 {
			st.line = append(st.line, part[:min(room, len(part))]...)
		}
		if i < 0 {
			return
		}
		b = b[i+1:]
		if s := strings.TrimRight(string(st.line), "\r \t"); s != "" {
			if isCause(s) {
				st.panicd = s
			}
			if len(st.tail) == tailLines {
				copy(st.tail, st.tail[1:])
				st.tail = st.tail[:tailLines-1]
			}
			st.tail = append(st.tail, s)
		}
		st.line = st.line[:0]
	}
}

// isCause says whether a line of standard error says by itself why a rank fails:
// it begins like a panic of Go, or like the report of one that package boot has
// caught. Stacks follow such lines, so that the last line says less.
func isCause(line string) bool {
	if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
		return true
	}
	rest, ours := strings.CutPrefix(line, "argon: rank ")
	_, rest, _ = strings.Cut(rest, ": ")
	return ours && strings.HasPrefix(rest, "panic: ")
}

// lastLines returns the last lines, and the line that says why the rank failed
// if there was one, as they may be shown on a terminal among the launcher's own.
func (st *stream) lastLines() (tail []string, panicd string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, s := range st.tail {
		tail = append(tail, errs.Line(s, 0))
	}
	return tail, errs.Line(st.panicd, 0)
}

// outputFiles makes the two files of a rank in dir.
func outputFiles(dir string, rank, size int) (stdout, stderr *os.File, err error) {
	width := len(fmt.Sprint(size - 1))
	name := filepath.Join(dir, fmt.Sprintf("rank-%0*d", width, rank))
	if stdout, err = os.Create(name + ".out"); err != nil {
		return nil, nil, err
	}
	if stderr, err = os.Create(name + ".err"); err != nil {
		stdout.Close()
		return nil, nil, err
	}
	return stdout, stderr, nil
}

// A pump copies a pipe from a process. The zero pump has none yet.
type pump struct {
	mu      sync.Mutex
	in      *os.File
	hurried bool
}

// run copies in to take until its end, closes it, and says whether the end did
// not come within a second after hurry: some process still has the other end.
func (p *pump) run(in *os.File, take func([]byte)) (foreign bool) {
	defer in.Close()
	p.mu.Lock()
	p.in = in
	if p.hurried {
		in.SetReadDeadline(time.Now().Add(pumpHurry))
	}
	p.mu.Unlock()
	buf := make([]byte, readSize)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			take(buf[:n])
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return rest(in, buf, take)
		}
		if err != nil {
			return false
		}
	}
}

// hurry says that all processes have ended that should have the other end.
func (p *pump) hurry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hurried = true
	if p.in != nil {
		p.in.SetReadDeadline(time.Now().Add(pumpHurry))
	}
}

// rest takes what is in the pipe without waiting for more, and says whether
// a process still has the other end.
func rest(in *os.File, buf []byte, take func([]byte)) (open bool) {
	raw, err := in.SyscallConn()
	if err != nil {
		return true
	}
	for {
		n := 0
		if e := raw.Control(func(fd uintptr) { n, err = syscall.Read(int(fd), buf) }); e != nil {
			return true
		}
		if n <= 0 || err != nil {
			return !(n == 0 && err == nil)
		}
		take(buf[:n])
	}
}
