// The functions of this file tell one goroutine when others have left what they were in, so that
// what was taken out of a table before is not used any more. Each is present by a word,
// which is odd while one is inside: it enters by one atomic read-modify-write, leaves by a
// store, and takes no lock.
//
// What is unsafe here: a word of package atomic is stored by package release.

package conc

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/internal/sys"
)

// EnterWord makes word odd unless it is, and reports whether it did: the caller is inside until
// LeaveWord. What EnterWord is before is seen as it is when a later AwaitWord of word returns false,
// or newer: the read-modify-write orders them.
func EnterWord(word *atomic.Uint64) bool {
	s := word.Load()
	return s&1 == 0 && word.CompareAndSwap(s, s+1)
}

// LeaveWord ends what EnterWord has begun. It does not wait for the word's line.
func LeaveWord(word *atomic.Uint64) {
	Release64((*uint64)(unsafe.Pointer(word)), word.Load()+1)
}

// AwaitWord waits until the one that is inside has left, and reports whether there was one. Later
// ones are not waited for.
func AwaitWord(word *atomic.Uint64) (waited bool) {
	s := word.Load()
	if s&1 == 0 {
		return false
	}
	for i := 0; word.Load() == s; i++ {
		// A copy of a page takes about as long as 100 looks.
		if i < 100 {
			continue
		}
		runtime.Gosched()
		if i%16 == 0 {
			sys.Yield() // it may be another process's
		}
	}
	return true
}

// FirstWord is the word, of count, at which the calling goroutine tries to enter first:
// goroutines tend to words of their own, whose lines stay with their core. count is a
// power of two, at most 1<<16.
func FirstWord(count uint64) uint64 {
	return uint64(sys.Goroutine()) * 0x9e3779b97f4a7c15 >> 48 & (count - 1)
}
