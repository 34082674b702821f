// Package bulk copies and clears memory of any length in pieces, between which the
// collector can stop the goroutine.
//
// The built-in copy and clear are one call of assembly each, in which a goroutine cannot
// be preempted (runtime/preempt.go: assembly is no asynchronous safe-point). A collector
// that wants to stop the world then stops every other goroutine of the process until the
// call has ended, the one that answers the process's peers among them: memory that is
// touched for the first time takes 20 s for a GiB on some virtual machines, and the peers
// declare the process dead meanwhile. So memory whose length a caller chooses is copied
// and cleared by this package, which internal/tools/lint checks.
package bulk

import (
	"strings"
	"unsafe"
)

// Piece is how many bytes are copied or cleared at once. Up to so many the built-in is
// called directly; above it Go's memmove stores around the caches (runtime/memmove_amd64.s),
// which pieces of that size still do.
const Piece = 1 << 20

// Copy is the built-in copy.
func Copy(dst, src []byte) int {
	if len(dst) <= Piece || len(src) <= Piece {
		return copy(dst, src)
	}
	return pieces(dst, src)
}

// Clear is the built-in clear.
func Clear(b []byte) {
	for len(b) > Piece {
		wipe(b[:Piece])
		b = b[Piece:]
	}
	clear(b)
}

// CopySlice is the built-in copy for slices of any type that do not overlap.
func CopySlice[T any](dst, src []T) int {
	var t T
	n, per := min(len(dst), len(src)), max(Piece/max(int(unsafe.Sizeof(t)), 1), 1)
	for from := 0; from < n; from += per {
		to := min(from+per, n)
		moveSlice(dst[from:to], src[from:to])
	}
	return n
}

// Clone is a copy of b.
func Clone(b []byte) []byte {
	c := make([]byte, len(b)) // which Go clears in pieces (runtime/malloc.go, memclrNoHeapPointersChunked)
	Copy(c, b)
	return c
}

// Uncleared is n bytes of the heap, at least one, which its caller overwrites: what a strings.Builder
// would have its text in, the one memory that Go gives out without clearing it.
func Uncleared(n int) []byte {
	var b strings.Builder
	b.Grow(n)
	_ = b.WriteByte(0) // the bytes of an empty string are not defined
	return unsafe.Slice(unsafe.StringData(b.String()), n)
}

// pieces is Copy for more than one piece. Of memory that overlaps, the end that the
// other copies would overwrite goes first.
func pieces(dst, src []byte) int {
	n := min(len(dst), len(src))
	d, s := uintptr(unsafe.Pointer(unsafe.SliceData(dst))), uintptr(unsafe.Pointer(unsafe.SliceData(src)))
	if d-s < uintptr(n) { // dst begins within src
		for to := n; to > 0; to -= min(to, Piece) {
			from := max(to-Piece, 0)
			move(dst[from:to], src[from:to])
		}
		return n
	}
	for from := 0; from < n; from += Piece {
		to := min(from+Piece, n)
		move(dst[from:to], src[from:to])
	}
	return n
}

// move, moveSlice and wipe take one piece. They are functions of their own, since a function that
// calls another begins with a look at the limit of its stack, which is where a goroutine
// that is to stop does so: a signal to preempt it nearly always finds it in the assembly.

//go:noinline
func move(dst, src []byte) { copy(dst, src) }

//go:noinline
func moveSlice[T any](dst, src []T) { copy(dst, src) }

//go:noinline
func wipe(b []byte) { clear(b) }
