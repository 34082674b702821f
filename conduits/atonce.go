package conduits

import "github.com/argon-go/argon/segment"

// AtOnce is implemented by endpoints that reach registered memory of ranks without those:
// by load and store, or by a system call. Its methods are accesses of 1 byte or more at
// addresses outside of segments that are complete when they return true, as those of
// Endpoint are with SourceDone and RemoteDone, and wait for nothing. Otherwise nothing has
// been transferred, or, of memory that is not there any more, a part, and the method of
// Endpoint finds out what is wrong, or asks the owner. What they do is not counted in Puts,
// Gets and Atomics of Stats, so that goroutines share no line for it.
type AtOnce interface {
	// PutAtOnce is Put.
	PutAtOnce(dst int, to segment.NLA, src []byte) bool
	// GetAtOnce is Get.
	GetAtOnce(dst []byte, src int, from segment.NLA) bool
	// PutWordAtOnce is PutWord: 1, 2, 4 or 8 bytes, aligned.
	PutWordAtOnce(dst int, to segment.NLA, v uint64, n int) bool
	// GetWordAtOnce is Get of such a word.
	GetWordAtOnce(src int, from segment.NLA, n int) (v uint64, done bool)
	// AtomicAtOnce is Atomic.
	AtomicAtOnce(dst int, to segment.NLA, op AtomicOp, t AtomicType, a, b uint64) (old uint64, done bool)
}
