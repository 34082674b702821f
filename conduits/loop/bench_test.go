package loop_test

import (
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/loop"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/segment"
)

// deaf is a Receiver that does nothing.
type deaf struct{}

func (deaf) Receive(*conduits.Message)                      {}
func (deaf) Complete(uint64, conduits.Event, uint64, error) {}

// pair is two attached ranks, both of which the benchmark's goroutine drives.
func pair(b *testing.B) []conduits.Endpoint {
	b.Helper()
	eps, err := loop.Local(2, conduits.Config{})
	if err != nil {
		b.Fatal(err)
	}
	errs := make(chan error)
	for _, e := range eps {
		go func() { errs <- e.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: deaf{}}) }()
	}
	for range eps {
		if err := <-errs; err != nil {
			b.Fatal(err)
		}
	}
	b.Cleanup(func() {
		for _, e := range eps {
			_ = e.Close()
		}
	})
	return eps
}

// BenchmarkAdapted measures a short message, its arrival and a put through package
// adapt.
func BenchmarkAdapted(b *testing.B) {
	b.Run("Short", func(b *testing.B) {
		eps, words := pair(b), []uint32{1, 2, 3, 4}
		for b.Loop() {
			if st := eps[0].Send(1, conduits.Request, 1, words); st != conduits.Ready {
				b.Fatal(st)
			}
			eps[1].Poll()
			eps[0].Poll()
		}
	})
	b.Run("Put", func(b *testing.B) {
		eps, src := pair(b), make([]byte, 8)
		for b.Loop() {
			if _, err := post.Put(eps[0], 1, segment.AttachBase, src, conduits.RemoteDone, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Atomic", func(b *testing.B) {
		eps := pair(b)
		for b.Loop() {
			if _, _, err := post.Atomic(eps[0], 1, segment.AttachBase, conduits.AtomicAdd, conduits.Uint64, 1, 0, 1); err != nil {
				b.Fatal(err)
			}
			eps[1].Poll()
			eps[0].Poll()
		}
	})
}
