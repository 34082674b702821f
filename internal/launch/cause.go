package launch

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// A witness reads the lines of a rank's standard error and knows from them why the rank
// ended: from the report of a panic or a fatal error of Go, of a failed rank by package
// boot, of an exception of Python, of a sanitizer and the like the message and the place
// in the program, else the last line. Reports end in stacks and registers, so that their
// last lines say nothing.
type witness struct {
	kind  reportKind
	state reportState
	after bool   // other lines have followed the report
	parts []part // of the report: exceptions with others as their cause are several
	last  string // the last line that belongs to no report and is no stack
	log   string // the last message of package log if it has several lines, up to last

	before   string   // the line before this one, if it may be the function of a frame
	counting bool     // the frames that come are those of the culprit
	counted  bool     // its frames have come
	segments []placed // of a stack between panics, the latest panic first
}

// part is a message and where it comes from.
type part struct {
	text []string // its lines
	at   string   // "file:line (function)", or ""
}

// placed is the innermost frame that tells of a stack: one of the program, else of argon,
// else of the standard library.
type placed struct {
	class frameClass
	at    string
}

type reportKind byte

const (
	noReport        reportKind = iota
	goReport                   // of Go's runtime
	rankReport                 // of package boot
	pythonReport               // a traceback
	sanitizerReport            // of a C compiler's sanitizer
	textReport                 // a message without more
)

type reportState byte

const (
	outside   reportState = iota
	inMessage             // lines are the message's, up to an empty one
	inStack               // lines are a stack's, up to an empty one
	between               // stacks, or behind them
)

type frameClass byte

const (
	noFrame frameClass = iota
	ofLibrary
	ofArgon
	ofProgram
)

const (
	messageLines = 8   // lines kept of a message
	causeMost    = 800 // bytes shown of a cause
)

var (
	goStart        = regexp.MustCompile(`^(panic: |fatal error: |fatal: (morestack|systemstack|bad g)|unexpected fault address |runtime(/cgo)?: |SIG[A-Z0-9]+: [a-z]|signal [0-9]+ received )`)
	rankStart      = regexp.MustCompile(`^argon: rank [0-9]+: `)
	sanitizerStart = regexp.MustCompile(`^==[0-9]+==\s?(ERROR|WARNING): ([A-Za-z]+Sanitizer: .*)`)
	logStart       = regexp.MustCompile(`^([^ ]+ )?[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)? `)
	textStart      = regexp.MustCompile(`^(Assertion failed: |terminate called |thread '.*' (\([0-9]+\) )?panicked at |Exception in thread "|Fatal Python error: )`)
	goroutine      = regexp.MustCompile(`^goroutine ([0-9]+) (gp=.*)?\[`)
	frameFile      = regexp.MustCompile(`^\t(.+):([0-9]+)( \+0x[0-9a-f]+)?( fp=0x.*)?$`)
	pythonFrame    = regexp.MustCompile(`^  File "(.*)", line ([0-9]+)(?:, in (.*))?$`)
	register       = regexp.MustCompile(`^[a-z][a-z0-9]{1,6}\s+0x[0-9a-f]+\s*$`)
	signalPlace    = regexp.MustCompile(` (addr|pc)=0x[0-9a-f]+`)
)

const pythonStart = "Traceback (most recent call last):"

// line takes the next line, without its end.
func (w *witness) line(s string) {
	switch w.state {
	case inMessage:
		if w.message(s) {
			return
		}
	case inStack:
		w.frame(s)
		return
	case between:
		if w.beside(s) {
			return
		}
	}
	w.other(s)
}

// other takes a line outside of reports.
func (w *witness) other(s string) {
	w.state = outside
	start := func(kind reportKind, text string) {
		*w = witness{kind: kind, state: inMessage, last: w.last, log: w.log, parts: []part{{text: []string{text}}}}
	}
	switch {
	case goStart.MatchString(s):
		start(goReport, s)
	case rankStart.MatchString(s):
		start(rankReport, s)
	case s == pythonStart:
		start(pythonReport, "")
		w.state, w.parts = inStack, []part{{}}
	case sanitizerStart.MatchString(s):
		start(sanitizerReport, sanitizerStart.FindStringSubmatch(s)[2])
	case textStart.MatchString(s) || strings.Contains(s, ": Assertion ") && strings.HasSuffix(strings.TrimSuffix(s, "."), " failed"):
		start(textReport, strings.TrimSuffix(s, ":"))
	case strings.TrimSpace(s) == "" || noise(s):
	default:
		switch {
		case logStart.MatchString(s):
			w.log = s
		case w.log != "" && strings.Count(w.log, "\n") < messageLines/2:
			w.log += "\n" + s
		default:
			w.log = ""
		}
		w.last, w.after = s, true
	}
}

// message takes a line where the report's message may go on. It is false if the line
// belongs to no report.
func (w *witness) message(s string) bool {
	p := &w.parts[len(w.parts)-1]
	f := frameFile.FindStringSubmatch(s)
	switch {
	case w.kind == sanitizerReport:
		if _, sum, ok := strings.Cut(s, "SUMMARY: "); ok {
			p.text = []string{sum}
		}
	case s == "" && w.before != "":
		w.say(w.before)
		w.state = between
	case s == "":
		w.state = between
	case goroutine.MatchString(s) || s == "runtime stack:":
		w.beside(s)
	case w.kind == rankReport && f != nil && w.before != "": // as of a CallError
		w.state, w.counting, w.counted = inStack, true, true
		w.step(w.before, f)
	case w.kind == rankReport:
		if w.before != "" {
			w.say(w.before)
		}
		w.before = s
		return true
	case w.kind == goReport && strings.HasPrefix(s, "[signal "):
		w.say(signalPlace.ReplaceAllString(s, ""))
	case w.kind == goReport && (noise(s) && s[0] != '\t' || strings.HasPrefix(s, "SIG") || strings.HasPrefix(s, "runtime: sp=")):
	case w.kind == textReport && strings.HasPrefix(s, "\tat "):
		w.state, p.at = inStack, strings.TrimPrefix(s, "\tat ")
	case w.kind == textReport && strings.HasPrefix(p.text[0], "thread '"): // of Rust: one line, then the stack or a note
		w.say(s)
		w.state = inStack
	case w.kind == textReport && !strings.HasPrefix(s, "  "):
		return false
	case w.kind == pythonReport && len(p.text) == messageLines/2: // other output: no message ends
		return false
	default:
		w.say(s)
	}
	w.before = ""
	return true
}

// say adds a line to the message.
func (w *witness) say(s string) {
	if p := &w.parts[len(w.parts)-1]; len(p.text) < messageLines && strings.TrimSpace(s) != "" {
		p.text = append(p.text, strings.TrimSpace(s))
	}
}

// beside takes a line that follows a message or a stack. It is false if the line belongs
// to no report.
func (w *witness) beside(s string) bool {
	switch g := goroutine.FindStringSubmatch(s); {
	case g != nil:
		w.state, w.counting = inStack, g[1] != "0" && !w.counted
		w.counted = w.counted || w.counting
	case s == "runtime stack:":
		w.state, w.counting = inStack, false
	case w.kind == pythonReport && (strings.HasSuffix(s, " following exception:") || strings.HasSuffix(s, " another exception occurred:")):
		w.parts = append(w.parts, part{})
	case w.kind == pythonReport && s == pythonStart && w.parts[len(w.parts)-1].text == nil:
		w.state = inStack
	case w.kind == goReport && strings.HasPrefix(s, "SIG"):
	case strings.TrimSpace(s) == "" || noise(s):
	default:
		return false
	}
	return true
}

// frame takes a line of a stack.
func (w *witness) frame(s string) {
	f := frameFile.FindStringSubmatch(s)
	switch p := &w.parts[len(w.parts)-1]; {
	case w.kind == pythonReport:
		if f := pythonFrame.FindStringSubmatch(s); f != nil {
			p.at = fmt.Sprintf("%s:%s (%s)", f[1], f[2], f[3])
		} else if s != "" && s[0] != ' ' {
			w.state = inMessage
			w.say(s)
		}
	case s == "":
		w.state = between
	case strings.HasPrefix(s, "created by "):
		w.counting = false
	case f != nil:
		w.step(w.before, f)
	case w.kind == goReport && !strings.HasSuffix(s, ")") && !noise(s) && !strings.HasPrefix(s, "runtime: ") && !strings.HasPrefix(p.text[len(p.text)-1], "SIG") && !strings.HasPrefix(p.text[0], "runtime/cgo: "):
		w.other(s) // of a program that has printed its own stack, where no empty line follows; that of C code is dumped
	default:
		w.before = s
	}
}

// step takes the frame of a function of which f is the place.
func (w *witness) step(function string, f []string) {
	if len(w.segments) == 0 || strings.HasPrefix(function, "panic(") {
		w.segments = append(w.segments, placed{})
	}
	if i := strings.LastIndexByte(function, '('); i > 0 {
		function = function[:i] // without its arguments
	}
	last := &w.segments[len(w.segments)-1]
	if c := classOf(function, f[1]); w.counting && c > last.class {
		*last = placed{c, fmt.Sprintf("%s:%s (%s)", f[1], f[2], function)}
	}
}

// classOf is the class of a frame, from its function's name and its file. Files of the
// standard library lie in src/PACKAGE below Go's directory, or are called PACKAGE/FILE by
// -trimpath, and its packages have no dot in their first element.
func classOf(function, file string) frameClass {
	slash := strings.LastIndexByte(function, '/') + 1
	name, _, _ := strings.Cut(function[slash:], ".")
	pkg := function[:slash] + name
	first, _, _ := strings.Cut(pkg, "/")
	dir := file[:max(0, strings.LastIndexByte(file, '/'))]
	switch {
	case pkg == "main" && (strings.HasPrefix(file, "_cgo_") || file == "_testmain.go"):
		return ofLibrary
	case pkg == "main":
		return ofProgram
	case pkg == "runtime" || strings.HasPrefix(pkg, "runtime/") || strings.HasPrefix(pkg, "internal/runtime/") || function == "panic",
		dir == "runtime" || strings.HasSuffix(dir, "/src/runtime"): // a function of another package by go:linkname
		return noFrame
	case strings.HasPrefix(pkg, "github.com/argon-go/argon/"):
		return ofArgon
	case !strings.Contains(first, ".") && (strings.HasSuffix(dir, "/src/"+pkg) || dir == pkg):
		return ofLibrary
	}
	return ofProgram
}

// place is where the first of the panics that the stack shows came from, and where a later
// one did.
func (w *witness) place() string {
	all := slices.DeleteFunc(slices.Clone(w.segments), func(p placed) bool { return p.class == noFrame })
	if len(all) == 0 || all[len(all)-1].class == ofLibrary && !strings.HasPrefix(w.parts[0].text[0], "panic: ") {
		return "" // where an idle goroutine of the library is says nothing
	}
	origin := all[len(all)-1]
	for _, p := range all {
		if p.class >= origin.class {
			origin = p
		}
	}
	if all[0].class == ofProgram && all[0] != origin {
		return origin.at + ", then at " + all[0].at
	}
	return origin.at
}

// why is the rank's own reason for an end with status, or by sig if that is not 0: one
// line, or "".
func (w *witness) why(status int, sig syscall.Signal) string {
	if w == nil {
		return ""
	}
	by := sig
	if sig == 0 && status > 128 { // so a shell says that its command died by a signal
		by = syscall.Signal(status - 128)
	}
	fatal := slices.Contains(fatalSignals, by)
	if sig != 0 && !fatal { // another process's doing
		return ""
	}
	reported := w.kind != noReport
	if w.after { // the program may have survived what is reported
		switch w.kind {
		case goReport:
			reported = status == 2 || fatal
		case pythonReport, textReport:
			reported = fatal
		}
	}
	switch {
	case reported:
		return w.text()
	case sig != 0 && sig != syscall.SIGABRT: // the last line is about something else
		return ""
	case w.log != "":
		return strings.ReplaceAll(w.log, "\n", "; ")
	}
	return strings.TrimSpace(w.last)
}

// fatalSignals are those by which a process dies of what it has done itself.
var fatalSignals = []syscall.Signal{syscall.SIGABRT, syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGILL, syscall.SIGFPE, syscall.SIGTRAP, syscall.SIGSYS}

// text is the report's messages and places.
func (w *witness) text() string {
	parts := slices.Clone(w.parts)
	if n := len(parts); w.kind == goReport || w.kind == rankReport {
		parts[n-1].at = w.place()
		if w.kind == rankReport && w.state == inMessage && w.before != "" {
			parts[n-1].text = append(slices.Clone(parts[n-1].text), strings.TrimSpace(w.before))
		}
	}
	var all []string
	for _, p := range parts {
		if len(p.text) == 0 {
			continue
		}
		s := strings.Join(p.text, "; ")
		if len(s) > causeMost {
			s = s[:causeMost] + " ..."
		}
		if p.at != "" {
			s += ", at " + p.at
		}
		all = append(all, s+remedy(s))
	}
	return strings.Join(all, "; ")
}

// remedy returns the advice, in parentheses, for a message of the system, "" if there is none.
func remedy(s string) string {
	if strings.Contains(s, "SIGBUS: bus error code=0x2") { // BUS_ADRERR, sigaction(2)
		return busRemedy
	}
	return ""
}

// busRemedy explains a SIGBUS: the system has no pages for a mapped file.
const busRemedy = " (no memory for a mapped file: /dev/shm, ARGON_SHM_DIR or another file system is full, or a file was cut off)"

// noise reports whether a line says nothing by itself, wherever it is: of stacks,
// registers, and what go run and shells add.
func noise(s string) bool {
	for _, prefix := range []string{"\t", "exit status ", "-----", "PC=0x", "[signal ", "signal arrived during ", "instruction bytes: ", "created by ", "...additional frames "} {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return strings.Contains(s, " 0x") && register.MatchString(s)
}
