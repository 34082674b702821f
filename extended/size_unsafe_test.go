package extended

import (
	"testing"
	"unsafe"
)

// Every rank of a job has an Initiator, and a process may hold a million ranks:
// what one costs before it is used, and what its first operation adds.
func TestSize(t *testing.T) {
	if got := unsafe.Sizeof(Initiator{}); got > 416 {
		t.Errorf("an Initiator has %d bytes; 416 are enough", got)
	}
	if got := before(1) * uint64(unsafe.Sizeof(op{})); got > 1024 {
		t.Errorf("the first chunk of operations has %d bytes; 1024 are enough", got)
	}
}

// TestPlace checks that every slot has a place of its own, next to the one before
// it, and that the chunks end where the slots do.
func TestPlace(t *testing.T) {
	chunk, index := 0, uint64(0)
	for i := range uint64(numSlots) {
		if c, at := place(i); c != chunk || at != index {
			t.Fatalf("slot %d is at %d of chunk %d, not %d of %d", i, at, c, index, chunk)
		}
		if index++; index == before(chunk+1)-before(chunk) {
			chunk, index = chunk+1, 0
		}
	}
	if chunk != numChunks || index != 0 {
		t.Errorf("after the last slot comes %d of chunk %d; there are %d chunks", index, chunk, numChunks)
	}
}
