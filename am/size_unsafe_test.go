package am

import (
	"testing"
	"unsafe"
)

// Every rank of a job has an Endpoint, and a process may hold a million ranks:
// what one costs, and that it keeps the handlers that were registered, no more.
func TestSize(t *testing.T) {
	if got := unsafe.Sizeof(Endpoint{}); got > 512 {
		t.Errorf("an Endpoint has %d bytes; 512 are enough", got)
	}
	if got := unsafe.Sizeof(handler{}); got != 32 {
		t.Errorf("a handler has %d bytes; 32 are enough", got)
	}
	e := attachAlone(t, Entry{Index: hEcho, Name: "a", Fn: func(*Token, []uint32, []byte) {}})
	if len(e.handlers) != 2 || cap(e.handlers) != 2 {
		t.Errorf("for one handler there are %d with room for %d; besides it there is the one that is none", len(e.handlers), cap(e.handlers))
	}
	for h := range NumHandlers {
		if name := e.HandlerName(HandlerID(h)); (name == "a") != (h == int(hEcho)) || name != "" && name != "a" {
			t.Errorf("handler %d is called %q", h, name)
		}
	}
}
