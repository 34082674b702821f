package udp

import (
	"sync"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/segment"
)

// oneThread opens two ranks that the calling goroutine works for, both of them:
// what they cost it is what they cost, whatever else the machine does.
func oneThread(b *testing.B, datagram int, sealed bool) (eps []*Endpoint, s []*speaker) {
	b.Helper()
	eps = speedJob(b, engine.Config{Datagram: datagram}, sealed, 0)
	var wg sync.WaitGroup
	for _, ep := range eps {
		if l, ok := ep.l.(*socket); ok { // as if they were processes
			l.marks, l.book = nil, anonymous{l.book}
			if err := l.detach(); err != nil {
				b.Fatal(err)
			}
		}
		sp := &speaker{ep: ep}
		s = append(s, sp)
		wg.Go(func() {
			if err := ep.Attach(conduits.AttachConfig{Size: speedSegment, Receiver: sp}); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	b.Cleanup(func() {
		for _, ep := range eps {
			wg.Go(func() { _ = ep.Close() })
		}
		wg.Wait()
	})
	return eps, s
}

// BenchmarkHop is a message there and one back on one goroutine, which is the work
// of a round trip but not what passes from one processor to another.
func BenchmarkHop(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		s, t := bare(b)
		p := make([]byte, 2000)
		for range b.N {
			_, _ = s.Send(p[:64])
			for n := 0; n == 0; n, _ = t.Receive(p) {
			}
			_, _ = t.Send(p[:64])
			for n := 0; n == 0; n, _ = s.Receive(p) {
			}
		}
	})
	for _, sealed := range []bool{false, true} {
		b.Run(map[bool]string{false: "none", true: "sealed"}[sealed], func(b *testing.B) {
			eps, s := oneThread(b, 1400, sealed)
			s[1].answer = true
			words := []uint32{1, 2, 3, 4}
			b.ResetTimer()
			for i := range b.N {
				if eps[0].Send(1, conduits.Request, 1, words) != conduits.Ready {
					b.Fatal("no credit")
				}
				for s[1].got <= i {
					eps[1].Spin()
				}
				for s[0].got <= i {
					eps[0].Spin()
				}
			}
		})
	}
}

// BenchmarkMiB is a put of 1 MiB on one goroutine, beside the same through bare
// sockets.
func BenchmarkMiB(b *testing.B) {
	src, dst := make([]byte, 1<<20), make([]byte, 1<<20)
	b.Run("bare", func(b *testing.B) {
		s, t := bare(b)
		if !s.Segment(1400) || !t.Segment(1400) {
			b.Skip("no segmentation offload")
		}
		p := make([]byte, 1<<16)
		b.SetBytes(int64(len(src)))
		for range b.N {
			for off := 0; off < len(src); {
				_, _ = s.Send(src[off:min(off+46*1400, len(src))])
				n := 0
				for ; n == 0; n, _ = t.Receive(p) {
				}
				off += copy(dst[off:], p[:n])
			}
		}
	})
	for _, c := range []struct {
		name     string
		datagram int
		sealed   bool
	}{{"none1400", 1400, false}, {"sealed1400", 1400, true}, {"none65000", 65000, false}, {"sealed65000", 65000, true}} {
		b.Run(c.name, func(b *testing.B) {
			eps, s := oneThread(b, c.datagram, c.sealed)
			b.SetBytes(int64(len(src)))
			b.ResetTimer()
			for i := range b.N {
				if _, err := post.Put(eps[0], 1, segment.AttachBase, src, conduits.RemoteDone, 1); err != nil {
					b.Fatal(err)
				}
				for s[0].done <= i {
					eps[1].Spin()
					eps[0].Spin()
				}
			}
		})
	}
}
