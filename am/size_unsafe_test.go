package am

import (
	"testing"
	"unsafe"
)

// Every rank of a job has a Messenger, and a process may hold a million ranks:
// what one costs, and that it keeps the handlers that were registered, no more.
func TestSize(t *testing.T) {
	if got := unsafe.Sizeof(Messenger{}); got > 256 {
		t.Errorf("a Messenger has %d bytes; 256 are enough", got)
	}
	if got := unsafe.Sizeof(signature{}); got != 4 {
		t.Errorf("a signature has %d bytes; 4 are enough", got)
	}
	entry := func(name string) Entry {
		return Entry{Index: hEcho, Name: name, Fn: func(*Token, []uint32, []byte) {}}
	}
	e := attachAlone(t, entry("a"))
	if len(e.fns) != 2 || cap(e.fns) != 2 {
		t.Errorf("for one handler there are %d functions with room for %d; besides it there is the one that is none", len(e.fns), cap(e.fns))
	}
	for h := range NumHandlers {
		if name := e.handlerName(HandlerID(h)); (name == "a") != (h == int(hEcho)) || name != "" && name != "a" {
			t.Errorf("handler %d is called %q", h, name)
		}
	}
	if equal := attachAlone(t, entry("a")); equal.table != e.table {
		t.Error("two ranks with equal tables have one each")
	}
	if other := attachAlone(t, entry("b")); other.table == e.table || other.handlerName(hEcho) != "b" || e.handlerName(hEcho) != "a" {
		t.Errorf("handlers a and b are called %q and %q", e.handlerName(hEcho), other.handlerName(hEcho))
	}
}
