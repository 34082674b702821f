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

// ManyAtOnce is an AtOnce that transfers many pieces for the price of one where each by
// itself would be a system call. Its methods transfer pieces of registered memory, of which
// no two overlap where they are written, in any order, and return how many from the first
// on are complete, as by PutAtOnce and GetAtOnce; pieces behind these may have been
// transferred, in whole or in part. The caller gives what is left again if there were any,
// and else transfers the first by itself, which finds out what is wrong. No
// piece is single-copy atomic. The pieces are the caller's again when the call returns.
type ManyAtOnce interface {
	// PutManyAtOnce puts.
	PutManyAtOnce(dst int, pieces []Piece) int
	// GetManyAtOnce gets.
	GetManyAtOnce(src int, pieces []Piece) int
}
