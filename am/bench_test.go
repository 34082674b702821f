package am

import (
	"testing"

	"github.com/argon-go/argon/conduits"
	_ "github.com/argon-go/argon/conduits/shm"
)

// BenchmarkShortSelf is a short request to the own rank and its handler, without
// any other processor taking part: what this package and the conduit's loopback
// compute.
func BenchmarkShortSelf(b *testing.B) {
	ran := 0
	e := attachAlone(b, Entry{Index: hEcho, Name: "count", Fn: func(*Token, []uint32, []byte) { ran++ }, Args: 4})
	for i := 0; b.Loop(); i++ {
		if err := e.RequestShort(0, hEcho, 1, 2, 3, uint32(i)); err != nil {
			b.Fatal(err)
		}
		for ran <= i {
			e.Poll()
		}
	}
}

// BenchmarkReplySelf is a short request to the own rank that is replied to.
func BenchmarkReplySelf(b *testing.B) {
	ran := 0
	e := attachAlone(b,
		Entry{Index: hEcho, Name: "echo", Fn: func(t *Token, args []uint32, _ []byte) {
			if err := t.ReplyShort(hEchoed, args...); err != nil {
				b.Error(err)
			}
		}, Args: 4},
		Entry{Index: hEchoed, Name: "echoed", Fn: func(*Token, []uint32, []byte) { ran++ }, Args: 4})
	for i := 0; b.Loop(); i++ {
		if err := e.RequestShort(0, hEcho, 1, 2, 3, uint32(i)); err != nil {
			b.Fatal(err)
		}
		for ran <= i {
			e.Poll()
		}
	}
}

// attachAlone attaches the one rank of a job.
func attachAlone(tb testing.TB, handlers ...Entry) *Endpoint {
	cd, err := conduits.Lookup("shm")
	if err != nil {
		tb.Fatal(err)
	}
	eps, err := cd.Local(1, conduits.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { eps[0].Close() })
	e, err := Attach(eps[0], Config{Handlers: handlers})
	if err != nil {
		tb.Fatal(err)
	}
	return e
}
