package barrier

import (
	"testing"
	"unsafe"
)

// Every rank of a job has a Barrier, and a process may hold a million ranks: what
// one costs, with its slots for so many ranks, does not grow by oversight.
func TestSize(t *testing.T) {
	if got := unsafe.Sizeof(Barrier{}); got > 216 {
		t.Errorf("a Barrier has %d bytes; 216 are enough", got)
	}
	var d dissem
	d.makeSlots(1 << 20)
	if got := uintptr(len(d.slots)) * unsafe.Sizeof(slot{}); got != 2*20*12 {
		t.Errorf("the slots of one of 2^20 ranks have %d bytes", got)
	}
}
