//go:build ofi && cgo

package providers

import (
	"os"
	"slices"
	"testing"
)

// TestList: what the library says of this machine has the form that the rules expect,
// and asking leaves no descriptors. Nothing is skipped where the library was built without
// net: the table that a user gets is printed.
func TestList(t *testing.T) {
	count := func() int {
		d, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(d)
	}
	before := count()
	list, err := List()
	if err != nil {
		t.Fatal(err)
	}
	if n := count(); n != before {
		t.Errorf("%d descriptors, %d before", n, before)
	}
	for i, p := range list {
		if p.Name == "" || p.Domain == "" || p.Protocol == "" || p.MaxMsg == 0 || p.Caps&Asked != Asked || p.Caps&CapAtomic != 0 {
			t.Errorf("%+v", p)
		}
		if slices.ContainsFunc(list[:i], p.same) {
			t.Errorf("%+v is there twice", p)
		}
		if p.Name == "net" && (p.Order&(OrderSAS|OrderSAW) != OrderSAS|OrderSAW || p.Caps&CapMultiRecv == 0 || p.Address == "") {
			t.Errorf("net: %+v", p)
		}
	}
	again, err := List()
	if err != nil || !slices.Equal(list, again) {
		t.Errorf("asked again: %v, %v", again, err)
	}
	if err := Print(os.Stdout, Choose(list, Wish{})); err != nil {
		t.Error(err)
	}
}

// TestBits: sets of bits go to the library's form and back.
func TestBits(t *testing.T) {
	for set := range uint64(MROther) {
		if got := back(translate(set, mrBits), mrBits, uint64(MROther)); got != set {
			t.Errorf("%s becomes %s", MR(set), MR(got))
		}
	}
	if got := back(1<<40, mrBits, uint64(MROther)); MR(got) != MROther {
		t.Errorf("an unknown bit becomes %s", MR(got))
	}
}
