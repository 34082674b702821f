package collective

import (
	"testing"
	"unsafe"
)

// Every rank of a job has a Member, and a process may hold a million ranks.
func TestSize(t *testing.T) {
	for _, x := range []struct {
		name       string
		size, most uintptr
	}{
		{"Member", unsafe.Sizeof(Member{}), 256},
		{"link", unsafe.Sizeof(link{}), 112},
	} {
		t.Logf("%s: %d bytes", x.name, x.size)
		if x.size > x.most {
			t.Errorf("%s has %d bytes; %d are enough", x.name, x.size, x.most)
		}
	}
}
