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
	"sync"
	"syscall"

	"github.com/argon-go/argon/internal/sys"
)

// calling is held during Call: one that began while another's handlers are installed would
// take these for those of before.
var calling sync.Mutex

// Call calls f, which calls a library that may load others, start threads or open
// descriptors. Handlers of signals that it has changed are those of before when Call
// returns, with a message on standard error that says what was called: without Go's own a nil dereference, or SIGQUIT, would be the end of the process,
// and signal.Notify would be told nothing. Of descriptors the same holds as of Hide.
//
// f must start no program, and call neither Call nor Hide. Of goroutines in Call at the
// same time one calls its f after the other.
func Call(what string, f func()) {
	calling.Lock()
	var h C.struct_argon_handlers
	C.argon_save_handlers(&h)
	Hide(f)
	changed := uint64(C.argon_restore_handlers(&h))
	calling.Unlock()
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

// Hide calls f, which may open descriptors. Those that programs which the process starts
// would inherit now, and would not have before, are closed in these (FD_CLOEXEC); none is
// started meanwhile. It takes a microsecond or less for each descriptor that is open.
//
// f must start no program. Goroutines may be in calls at the same time; one that opens
// a descriptor to be inherited does so with syscall.ForkLock held for writing.
func Hide(f func()) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	before, known := inherited()
	f()
	if !known {
		return
	}
	after, _ := inherited()
	for fd := range after {
		if !before[fd] {
			syscall.CloseOnExec(fd)
		}
	}
}

// inherited is which descriptors programs inherit, if that is known.
func inherited() (set map[int]bool, known bool) {
	all := sys.Descriptors()
	set = make(map[int]bool, 4)
	for _, fd := range all {
		if sys.Inherited(fd) {
			set[fd] = true
		}
	}
	return set, all != nil
}
