package launch

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

// TestLimitElsewhere: of a rank on another machine only where to look is known.
func TestLimitElsewhere(t *testing.T) {
	for text, want := range map[string]string{
		"runtime/cgo: pthread_create failed: Resource temporarily unavailable": " (ulimit -u, or ",
		"open x: too many open files":                                          " (ulimit -n)",
		"open x: too many open files (ulimit -n)":                              "",
		"fatal error: runtime: out of memory":                                  " (ulimit -v, ulimit -d, or memory)",
		"read x: resource temporarily unavailable":                             "", // the program's own affair
		"": "",
	} {
		if got := limitIn(false, "first", text); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	err := limited(&RankError{Cause: "cannot be started: " + syscall.EMFILE.Error()})
	if !strings.Contains(err.Error(), "(ulimit -n)") || !errors.As(err, new(*RankError)) {
		t.Errorf("%v", err)
	}
	if limited(nil) != nil {
		t.Error("no error has a limit")
	}
}
