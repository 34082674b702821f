package launch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
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

// sink is one destination of output. Streams write there in turn, and no line
// holds bytes of two of them.
type sink struct {
	mu     sync.Mutex
	w      io.Writer
	failed func(error) // called once, at the first error
	err    error
	open   *stream // whose line is unfinished there; nil: none

	taken     atomic.Int64 // bytes that w took
	abandoned atomic.Bool  // nothing more is written: w takes nothing, see abandon
}

// emit writes b, which came from st (nil: the launcher). If another stream's line
// is unfinished it is ended first.
func (s *sink) emit(st *stream, b []byte) {
	if s.abandoned.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st != nil {
		b = st.lay(b)
	}
	if len(b) == 0 || s.err != nil {
		return
	}
	if o := s.open; o != st && (o == nil || st == nil || !st.direct || !o.direct) {
		s.cut()
	}
	s.write(b)
	s.open = nil
	if st != nil && st.at != atStart {
		s.open = st
	}
}

// cut ends an unfinished line.
func (s *sink) cut() {
	if st := s.open; st != nil {
		s.open = nil
		s.write([]byte{'\n'})
		if st.at == atMiddle {
			st.at = cutMiddle
		} else {
			st.at = cutStart
		}
	}
}

// abandon gives the sink up if a write is under way, which may never return.
func (s *sink) abandon() {
	if s.mu.TryLock() {
		s.mu.Unlock()
		return
	}
	s.abandoned.Store(true)
}

func (s *sink) write(b []byte) {
	if s.err != nil {
		return
	}
	n, err := s.w.Write(b)
	s.taken.Add(int64(n))
	if err != nil {
		s.err = err
		if s.failed != nil {
			s.failed(err)
		}
	}
}

// endLine ends a line of st that is unfinished, or of any stream if st is nil.
func (s *sink) endLine(st *stream) {
	if s.abandoned.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st == nil || st == s.open {
		s.cut()
	}
}

// printf writes a line of the launcher's own.
func (s *sink) printf(format string, args ...any) {
	s.emit(nil, fmt.Appendf(nil, format+"\n", args...))
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
			out[i] = &sink{w: w, failed: failed}
		}
	}
	return out
}

func sameWriter(a, b io.Writer) bool {
	fa, ok1 := a.(*os.File)
	fb, ok2 := b.(*os.File)
	if ok1 && ok2 && fa != fb {
		sa, err1 := fa.Stat()
		sb, err2 := fb.Stat()
		return err1 == nil && err2 == nil && os.SameFile(sa, sb)
	}
	return reflect.TypeOf(a).Comparable() && a == b
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

	mu      sync.Mutex
	buf     []byte      // of a line, not passed on yet
	seen    int         // bytes of buf that hold no line end
	timer   *time.Timer // of tick; nil before the first unfinished line
	armed   bool        // it will fire
	ticks   int         // how often it has fired for what is in buf
	line    []byte      // first bytes of the current line, for tail
	tail    []string    // last lines
	held    *held
	witness *witness // of standard error; nil: none

	at column // of what was written last in its line; guarded by the sink
}

// A column is where in a line a stream is at its sink.
type column byte

const (
	atStart   column = iota // of a line
	atMiddle                // of a line
	atReturn                // behind a carriage return, which ends a line unless a newline follows
	cutStart                // of a line, and a newline that comes now is there already
	cutMiddle               // of a line of which the sink has ended the first part
)

// cutMark is between the label of a line and its text if the text goes on where the
// stream's line was ended before, by another rank's output.
const cutMark = "... "

// Part of a line is shown when it has been there for showTicks ticks, or, if it is
// longer than showShort, has not grown for so long. Several ticks, for a process that
// the system has not let run for a while may find the timer's end before the rest of
// the line.
const (
	showTick  = 20 * time.Millisecond
	showTicks = 3
	showShort = 4 << 10
)

// A held is output in which the launcher looks for the lines in which the ranks of a
// process say where they wait.
type held struct {
	need     int  // how many there are
	keep     bool // all else is kept back, too
	answers  map[int]string
	answered chan struct{} // closed when all have come
	rest     []byte        // what was kept back
	dropped  int
}

// take reports whether line is an answer, which it notes.
func (h *held) take(line []byte) bool {
	after, ours := strings.CutPrefix(string(line), jobenv.WhereLine)
	number, text, _ := strings.Cut(after, jobenv.WhereWaits)
	rank, err := strconv.Atoi(number)
	if !ours || err != nil || h.answers[rank] != "" || len(h.answers) == h.need {
		return false
	}
	if h.answers[rank] = strings.TrimSpace(text); len(h.answers) == h.need {
		close(h.answered)
	}
	return true
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
		if err := closeCopy(st.copy); err != nil {
			st.copyTo(err)
		}
	}
	close(st.ended)
}

// closeCopy closes a rank's file. The error says why it does not have the rank's output: a
// file system with quotas may say so at the end only (close(2)), and a file may have been
// deleted.
func closeCopy(f *os.File) error {
	fi, err := f.Stat()
	if err == nil {
		if st, ok := fi.Sys().(*syscall.Stat_t); ok && st.Nlink == 0 {
			err = &os.PathError{Op: "close", Path: f.Name(), Err: errors.New("the file has been deleted")}
		}
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// hurry gives a stream that runs a second for the rest, and awaits its end. All
// processes of the job have ended.
func (st *stream) hurry() {
	st.pump.hurry()
	<-st.ended
}

func (st *stream) accept(b []byte) {
	if st.copy != nil {
		if _, err := st.copy.Write(withoutAnswers(b)); err != nil {
			st.copyTo(err)
			st.copy.Close()
			st.copy = nil
		}
	}
	st.feed(b)
}

// withoutAnswers is b without the lines that are for the launcher.
func withoutAnswers(b []byte) []byte {
	if !bytes.Contains(b, []byte(jobenv.WhereLine)) {
		return b
	}
	var rest []byte
	for line := range bytes.Lines(b) {
		if at := answerIn(line); at >= 0 {
			line = line[:at]
		}
		rest = append(rest, line...)
	}
	return rest
}

// answerIn is where in line a rank's answer begins, or -1: the program may have begun the line.
func answerIn(line []byte) int {
	at := bytes.Index(line, []byte(jobenv.WhereLine))
	if at >= 0 && !bytes.Contains(line[at:], []byte(jobenv.WhereWaits)) {
		return -1
	}
	return at
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
	if end > 0 {
		st.passed(end)
	} else if len(st.buf) > showShort {
		st.ticks = 0
	}
	if len(st.buf) > 0 && !st.armed {
		st.armed = true
		if st.timer == nil {
			st.timer = time.AfterFunc(showTick, st.tick)
		} else {
			st.timer.Reset(showTick)
		}
	}
}

// passed passes on the first n bytes of buf.
func (st *stream) passed(n int) {
	st.ticks = 0
	st.pass(st.buf[:n])
	st.buf = append(st.buf[:0], st.buf[n:]...)
	if cap(st.buf) > 1<<20 && len(st.buf) < readSize {
		st.buf = bytes.Clone(st.buf)
	}
	st.seen = min(st.seen, len(st.buf))
}

// tick passes on part of a line for which the rank takes its time: a prompt, a dot
// of progress.
func (st *stream) tick() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.armed = false
	if len(st.buf) == 0 || st.held != nil {
		return
	}
	if st.ticks++; st.ticks < showTicks {
		st.armed = true
		st.timer.Reset(showTick)
		return
	}
	if n := len(st.buf) - halfTail(st.buf); n > 0 {
		st.seen = 0
		st.passed(n)
	}
}

// halfTail is the length of a character, or of a terminal's control sequence (ECMA-48,
// 5.4), of which b's end has the beginning. Another rank's output within would spoil
// both.
func halfTail(b []byte) int {
	const longest = 64 // of control sequences that are waited for
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if t := b[len(b)-n:]; utf8.RuneStart(t[0]) {
			if !utf8.FullRune(t) {
				return n
			}
			break
		}
	}
	t := b[max(0, len(b)-longest):]
	i := bytes.LastIndexByte(t, 0x1b)
	if i < 0 {
		return 0
	}
	t = t[i:]
	whole := func(r rune) bool { return r < ' ' || r > '?' } // no parameter and no intermediate byte
	if len(t) == 1 || t[1] == '[' && bytes.IndexFunc(t[2:], whole) < 0 {
		return len(t)
	}
	return 0
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
	if st.timer != nil {
		st.timer.Stop()
	}
	st.armed = true // nothing more comes
	if len(st.buf) > 0 {
		st.pass(st.buf)
		st.buf, st.seen = nil, 0
	}
	if st.label != nil && st.held == nil {
		st.sink.endLine(st)
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
			if at := answerIn(line); at > 0 && !h.keep {
				st.write(line[:at])
				line = line[at:]
			}
			switch {
			case h.take(line):
			case !h.keep:
				st.write(line)
			case len(h.rest)+len(line) > maxHeld:
				h.dropped += len(line)
			default:
				h.rest = append(h.rest, line...)
			}
		}
		return
	}
	st.write(withoutAnswers(b))
}

func (st *stream) write(b []byte) { st.sink.emit(st, b) }

// lay returns b with labels, for st's sink, and notes the place in a line where that ends.
// The sink calls it.
func (st *stream) lay(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	if !st.direct && st.at >= cutStart {
		if b[0] == '\n' {
			b, st.at = b[1:], atStart
		} else if st.at == cutStart {
			st.at = atStart
		}
	}
	if st.label == nil {
		if len(b) > 0 {
			st.at = placeAfter(b[len(b)-1])
		}
		return b
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
		if st.at == atStart || st.at == cutMiddle || st.at == atReturn && line[0] != '\n' {
			out = append(out, st.label...)
		}
		if st.at == cutMiddle {
			out = append(out, cutMark...)
		}
		out = append(out, line...)
		b = b[len(line):]
		st.at = placeAfter(line[len(line)-1])
	}
	return out
}

// placeAfter is the column behind the last byte that was written.
func placeAfter(last byte) column {
	switch last {
	case '\n':
		return atStart
	case '\r':
		return atReturn
	}
	return atMiddle
}

// hold looks for the answers of need ranks in what comes from now on, and keeps back the
// rest of it if keep is set.
func (st *stream) hold(need int, keep bool) *held {
	h := &held{need: need, keep: keep, answers: map[int]string{}, answered: make(chan struct{})}
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.buf) > 0 { // an unfinished line belongs to the time before
		if keep {
			st.buf = append(st.buf, '\n')
		}
		st.write(st.buf)
		st.buf, st.seen = nil, 0
	}
	st.held = h
	return h
}

// release passes on what was kept back, to a file if that is not nil.
func (st *stream) release(to *os.File) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	h := st.held
	if h == nil {
		return nil
	}
	st.held = nil
	rest := h.rest
	if h.dropped > 0 {
		rest = fmt.Appendf(rest, "(%d more bytes)\n", h.dropped)
	}
	if to != nil {
		_, err := to.Write(rest)
		return err
	}
	if len(rest) > 0 {
		st.write(rest)
	}
	if st.label != nil {
		st.sink.endLine(st)
	}
	if len(st.buf) > 0 && !st.armed { // for tick has not shown it meanwhile
		st.armed = true
		st.timer.Reset(showTick)
	}
	return nil
}

// answers are those that have come.
func (st *stream) answers() map[int]string {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.held == nil {
		return nil
	}
	return maps.Clone(st.held.answers)
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
		if bytes.HasPrefix(st.line, []byte(jobenv.WhereLine)) {
			st.line = st.line[:0]
			continue
		}
		if st.witness != nil {
			st.witness.line(strings.TrimSuffix(string(st.line), "\r"))
		}
		if s := strings.TrimRight(string(st.line), "\r \t"); s != "" {
			if len(st.tail) == tailLines {
				copy(st.tail, st.tail[1:])
				st.tail = st.tail[:tailLines-1]
			}
			st.tail = append(st.tail, s)
		}
		st.line = st.line[:0]
	}
}

// lastLines returns the last lines, as they may be shown on a terminal among the
// launcher's own.
func (st *stream) lastLines() (tail []string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, s := range st.tail {
		tail = append(tail, errs.Line(s, 0))
	}
	return tail
}

// why is the cause of the rank's end in its output, see witness.why.
func (st *stream) why(status int, sig syscall.Signal) string {
	st.mu.Lock()
	defer st.mu.Unlock()
	return errs.Line(st.witness.why(status, sig), 0)
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

// run copies in to take until its end, closes it, and reports whether the end did
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

// rest takes what is in the pipe without waiting for more, and reports whether
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
