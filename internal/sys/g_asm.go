//go:build amd64 || arm64

package sys

// HasGoroutine says whether Goroutine tells goroutines apart.
const HasGoroutine = true

// Goroutine identifies the calling goroutine among those alive. Only equality
// means anything, and a value is reused once its goroutine has ended.
func Goroutine() uintptr
