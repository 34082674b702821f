// Package origin says where in a program a call of argon was made, for messages to
// people.
package origin

import (
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// layers are the packages whose calls are not the program's own.
var layers = [...]string{"am", "barrier", "conduits", "extended", "firehose", "gas", "internal", "segment", "upc"}

const module = "github.com/argon-go/argon/"

// Caller is "file.go:12" of the innermost call that the program has made: not argon,
// but its tests. It takes about a microsecond.
func Caller() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if f.File != "" && !Own(f.Function, f.File) {
			return place(f.File, f.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}

// Func is the name and "file.go:12" of the function whose code begins at pc.
func Func(pc uintptr) string {
	f := runtime.FuncForPC(pc)
	if f == nil {
		return "an unknown function"
	}
	file, line := f.FileLine(pc)
	// A function called as a value of a method has no file of its own.
	if name, ok := strings.CutSuffix(f.Name(), "-fm"); ok || strings.HasPrefix(file, "<") {
		return name
	}
	return place(file, line)
}

func place(file string, line int) string {
	return filepath.Base(file) + ":" + strconv.Itoa(line)
}

// Own reports whether a function, whose code is in file, is argon's or of Go's runtime.
func Own(function, file string) bool {
	rest, ok := strings.CutPrefix(function, module)
	if !ok {
		return strings.HasPrefix(function, "runtime.")
	}
	if strings.HasSuffix(file, "_test.go") {
		return false
	}
	for _, l := range layers {
		if tail, ok := strings.CutPrefix(rest, l); ok && (tail[0] == '.' || tail[0] == '/') {
			return true
		}
	}
	return false
}
