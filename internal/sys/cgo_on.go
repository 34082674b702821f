//go:build cgo

package sys

// withC reports whether the program is built with C, which then starts its threads.
const withC = true
