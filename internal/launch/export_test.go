package launch

import (
	"syscall"
	"time"
)

// WithoutSubreaper has the kernel not know PR_SET_CHILD_SUBREAPER until undo.
func WithoutSubreaper() (undo func()) {
	was := setSubreaper
	setSubreaper = func(bool) error { return syscall.EINVAL }
	return func() { setSubreaper = was }
}

// WithOutputLimit has launchers wait so long for readers of their output, and for hosts that
// clean up, until undo.
func WithOutputLimit(d time.Duration) (undo func()) {
	output, bye := outputLimit, byeLimit
	outputLimit, byeLimit = d, d
	return func() { outputLimit, byeLimit = output, bye }
}
