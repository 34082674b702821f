//go:build !(amd64 || arm64)

package sys

// HasGoroutine reports whether Goroutine tells goroutines apart.
const HasGoroutine = false

// Goroutine returns 1 for every goroutine on this architecture.
func Goroutine() uintptr { return 1 }

// Stack returns all addresses: the calling goroutine's stack may lie anywhere.
func Stack() (lo, hi uintptr) { return 0, ^uintptr(0) }
