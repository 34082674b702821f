package sys

import (
	"os"
	"slices"
	"syscall"
	"testing"
)

// TestDescriptors: what is open is listed; Inherited is the opposite of FD_CLOEXEC.
func TestDescriptors(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd := int(f.Fd())
	all := Descriptors()
	if all == nil {
		t.Skip("there is no /proc")
	}
	if !slices.Contains(all, fd) {
		t.Errorf("%v lacks %d", all, fd)
	}
	if Inherited(fd) {
		t.Error("what package os opens is inherited")
	}
	d, err := syscall.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(d)
	if !Inherited(d) {
		t.Error("what dup(2) returns is not inherited")
	}
	if Inherited(-1) {
		t.Error("a descriptor that is not open is inherited")
	}
}
