package gas

import (
	"testing"
	"unsafe"
)

// Every rank of a job has a Node, and a process may hold a million ranks: its
// parts hold what has been used, not what could be.
func TestSize(t *testing.T) {
	for _, x := range []struct {
		name       string
		size, most uintptr
	}{
		{"Node", unsafe.Sizeof(Node{}), 432},
		{"calls", unsafe.Sizeof(calls{}), 128},
	} {
		t.Logf("%s: %d bytes", x.name, x.size)
		if x.size > x.most {
			t.Errorf("%s has %d bytes; %d are enough", x.name, x.size, x.most)
		}
	}
}
