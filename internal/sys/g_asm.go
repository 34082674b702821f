//go:build amd64 || arm64

package sys

// HasGoroutine reports whether Goroutine tells goroutines apart.
const HasGoroutine = true

// Goroutine identifies the calling goroutine among those alive. Only equality
// means anything, and a value is reused once its goroutine has ended.
func Goroutine() uintptr

// Stack is where the calling goroutine's stack lies: from lo on, and below hi. It
// moves with any later call.
func Stack() (lo, hi uintptr)
