//go:build ofi && cgo

package guest

// unsafe is what cgo makes of the calls; no pointer is kept.

/*
#cgo LDFLAGS: -ldl
#include "guest.h"
*/
import "C"

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/argon-go/argon/internal/sys"
)

// Call calls f, which calls a library that may load others, start threads or open
// descriptors. Handlers of signals that it has changed are those of before when Call
// returns, with a message on standard error that says what was called: without Go's own a nil dereference, or SIGQUIT, would be the end of the process,
// and signal.Notify would be told nothing. Descriptors that are open now and were not
// before are closed in programs that the process starts (FD_CLOEXEC); none is started
// meanwhile.
//
// f must start no program. Goroutines may be in calls at the same time; one that opens
// a descriptor to be inherited does so with syscall.ForkLock held for writing.
func Call(what string, f func()) {
	var h C.struct_argon_handlers
	C.argon_save_handlers(&h)
	syscall.ForkLock.RLock()
	before := sys.Descriptors()
	f()
	hide(before)
	syscall.ForkLock.RUnlock()
	changed := uint64(C.argon_restore_handlers(&h))
	if changed == 0 {
		return
	}
	var names []string
	for s := range 64 {
		if changed>>s&1 != 0 {
			names = append(names, syscall.Signal(s+1).String())
		}
	}
	fmt.Fprintf(os.Stderr, "argon: %s replaced the handlers of signals (%s); they are put back\n", what, strings.Join(names, ", "))
}

// hide has programs that are started inherit no descriptor but those in before, unless
// that is not known.
func hide(before []int) {
	if before == nil {
		return
	}
	was := make(map[int]bool, len(before))
	for _, fd := range before {
		was[fd] = true
	}
	for _, fd := range sys.Descriptors() {
		if !was[fd] {
			syscall.CloseOnExec(fd)
		}
	}
}
