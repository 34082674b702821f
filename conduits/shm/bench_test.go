package shm

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/segment"
)

// benchJob is n ranks of which all others have sent to rank 0, one goroutine
// standing in for all of them.
func benchJob(b *testing.B, n int) (eps []*Endpoint, received *int) {
	l, err := Local(n, conduits.Config{})
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range l {
		eps = append(eps, e.(*Endpoint))
	}
	received = new(int)
	attach(b, eps, page, func(int, *conduits.Message) { *received++ })
	for _, e := range eps[1:] {
		e.Send(0, conduits.Request, 1, nil)
	}
	for *received < n-1 {
		eps[0].Poll()
	}
	return eps, received
}

// BenchmarkPollEmpty is the cost of a poll that finds nothing, by how many ranks
// have ever sent.
func BenchmarkPollEmpty(b *testing.B) {
	for _, n := range []int{2, 3, 5, 9, 17, 33, 65, 128} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			eps, _ := benchJob(b, n)
			for b.Loop() {
				eps[0].Poll()
			}
		})
	}
}

// BenchmarkFromAnybody sends messages to rank 0 from all others in turn, the
// worst case for a receiver that expects the next from the sender of the last.
// Includes the sending.
func BenchmarkFromAnybody(b *testing.B) {
	for _, n := range []int{2, 3, 5, 9, 17, 33, 65, 128} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			eps, received := benchJob(b, n)
			polls, from := 0, 0
			for b.Loop() {
				from = (from + 37) % (n - 1)
				eps[1+from].Send(0, conduits.Request, 1, nil)
				for want := *received + 1; *received != want; polls++ {
					eps[0].Poll()
				}
			}
			b.ReportMetric(float64(polls)/float64(b.N), "polls/op")
		})
	}
}

// BenchmarkLoopback sends a message to the own rank and runs it.
func BenchmarkLoopback(b *testing.B) {
	eps, _ := benchJob(b, 1)
	words := []uint32{1, 2, 3, 4}
	for b.Loop() {
		eps[0].Send(0, conduits.Request, 1, words)
		eps[0].Poll()
	}
}

// BenchmarkTogether has goroutines of a rank send 16 messages each to another rank at once, which
// takes them then. first-quartile-ns is what a message took, of all goroutines, in the round that is slower than a quarter of them.
func BenchmarkTogether(b *testing.B) {
	const each = 16
	for k := 1; k <= runtime.GOMAXPROCS(0); k *= 2 {
		b.Run(fmt.Sprint(k), func(b *testing.B) {
			eps, received := benchJob(b, 2)
			*received = 0
			var round, ready atomic.Int64
			send := func() {
				for range each {
					for eps[1].Send(0, conduits.Request, 1, []uint32{1, 2, 3, 4}) != conduits.Ready {
						runtime.Gosched()
					}
				}
			}
			for range k - 1 {
				go func() {
					for i := int64(1); i <= int64(b.N); i++ {
						for ready.Add(1); round.Load() < i; {
						}
						send()
					}
					ready.Add(1)
				}()
			}
			took := make([]float64, b.N)
			for i := range b.N {
				for ready.Load() < int64((k-1)*(i+1)) {
					runtime.Gosched()
				}
				start := time.Now()
				round.Add(1)
				send()
				for ready.Load() < int64((k-1)*(i+2)) {
				}
				took[i] = float64(time.Since(start)) / float64(k*each)
				for want := k * each * (i + 1); *received < want; {
					eps[0].Poll()
				}
			}
			slices.Sort(took)
			b.ReportMetric(took[b.N/4], "first-quartile-ns")
		})
	}
}

// BenchmarkPut puts to the segment and to registered memory of another rank, in
// one process and as processes do, by all the ways that there are.
func BenchmarkPut(b *testing.B) {
	for _, w := range ways() {
		if w.fence || w.blind {
			continue
		}
		all := w.nodes(b, 2)
		mem := w.memory(b, all[1].Endpoint, 1<<20)
		at, _ := register(b, all[1].Endpoint, mem, segment.RightsAll, segment.AnyPeer)
		put := func(name string, at segment.NLA, n int) {
			b.Run(fmt.Sprintf("%s/%s/%d", w.name, name, n), func(b *testing.B) {
				src := make([]byte, n)
				b.SetBytes(int64(n))
				for b.Loop() {
					ev, err := post.Put(all[0], 1, at, src, conduits.RemoteDone, 0)
					if err != nil {
						b.Fatal(err)
					}
					if ev != 0 {
						continue
					}
					for ; ev == 0; ev = all[0].done[0].ev {
						all[1].Poll()
						all[0].Poll()
					}
					delete(all[0].done, 0)
				}
			})
		}
		for _, n := range []int{8, 64, page, 1 << 20} {
			if n <= page {
				put("segment", segment.AttachBase, n)
			}
			put("registered", (at+7)&^7, n)
		}
		runtime.KeepAlive(mem)
	}
}
