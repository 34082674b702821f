package am

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
	_ "github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/segment"
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

// BenchmarkPayloadSelf is the same for messages with a payload of so many bytes.
func BenchmarkPayloadSelf(b *testing.B) {
	for _, kind := range []string{"medium", "long"} {
		for _, size := range []int{0, 8, 64, 512} {
			b.Run(fmt.Sprintf("%s/%d", kind, size), func(b *testing.B) {
				ran := 0
				payload := make([]byte, size)
				e := attachWith(b, segment.PageSize, Entry{Index: hEcho, Name: "count", Fn: func(*Token, []uint32, []byte) { ran++ }, Args: 0})
				send := func() error { return e.RequestMedium(0, hEcho, payload) }
				if kind == "long" {
					send = func() error { return e.RequestLong(0, hEcho, segment.AttachBase, payload) }
				}
				for i := 0; b.Loop(); i++ {
					if err := send(); err != nil {
						b.Fatal(err)
					}
					for ran <= i {
						e.Poll()
					}
				}
			})
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

// BenchmarkPollEmpty is a poll that finds nothing, as loops of generated code make it.
func BenchmarkPollEmpty(b *testing.B) {
	e := attachAlone(b)
	for b.Loop() {
		e.Poll()
	}
}

// attachAlone attaches the one rank of a job.
func attachAlone(tb testing.TB, handlers ...Entry) *Messenger { return attachWith(tb, 0, handlers...) }

// attachWith is attachAlone with a segment of so many bytes.
func attachWith(tb testing.TB, segment uint64, handlers ...Entry) *Messenger {
	cd, err := conduits.Lookup("shm")
	if err != nil {
		tb.Fatal(err)
	}
	eps, err := cd.Local(1, conduits.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { eps[0].Close() })
	e, err := Attach(eps[0], Config{Handlers: handlers, SegmentSize: segment})
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// BenchmarkLook is one look of a loop that waits, at a message that arrives and the
// condition: of conduits.Wait by itself, by a Messenger, and by one that Advance has
// given a function with two loads to, as package extended does when exposed memory
// is used.
func BenchmarkLook(b *testing.B) {
	type waiter struct {
		name string
		wait func(e *Messenger, cond func() bool) error
	}
	var busy atomic.Bool
	var todo atomic.Int64
	own := func(e *Messenger, cond func() bool) error { return e.Wait(nil, cond) }
	for _, w := range []waiter{
		{"conduit", func(e *Messenger, cond func() bool) error { return conduits.Wait(e.ep, nil, cond) }},
		{"endpoint", own},
		{"advance", own},
	} {
		b.Run(w.name, func(b *testing.B) {
			e := attachAlone(b, Entry{Index: hEcho, Name: "nothing", Fn: func(*Token, []uint32, []byte) {}, Args: 4})
			if w.name == "advance" {
				e.Advance(func() {
					if busy.Load() || todo.Load() != 0 {
						b.Error("there is nothing to do")
					}
				})
			}
			// A message for each look, so that the loop does not get idle.
			left := b.N
			cond := func() bool {
				left--
				return left < 0 || e.RequestShort(0, hEcho, 1, 2, 3, 4) != nil
			}
			b.ResetTimer()
			if err := w.wait(e, cond); err != nil {
				b.Fatal(err)
			}
		})
	}
}
