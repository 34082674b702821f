package udp

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/seal"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/segment"
)

// benchJob opens two ranks that have joined, attached.
func benchJob(b *testing.B, mode seal.Mode, datagram int) (eps []conduits.Endpoint, got []counter) {
	b.Helper()
	env := map[string]string{}
	if datagram > 0 {
		env[EnvDatagram] = fmt.Sprint(datagram)
	}
	eps, err := Joined(mode, env)(2, conduits.Config{})
	if err != nil {
		b.Fatal(err)
	}
	got = make([]counter, 2)
	var wg sync.WaitGroup
	for r, ep := range eps {
		wg.Go(func() {
			if err := ep.Attach(conduits.AttachConfig{Size: 1 << 22, Receiver: &got[r]}); err != nil {
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
	return eps, got
}

// BenchmarkAttendant is a message there and one back, on one goroutine, with and
// without the attendants.
func BenchmarkAttendant(b *testing.B) {
	for _, with := range []bool{true, false} {
		b.Run(fmt.Sprintf("with=%v", with), func(b *testing.B) {
			eps, got := benchJob(b, seal.None, 0)
			if !with {
				for _, ep := range eps {
					e := ep.(*joinedHere).Endpoint
					e.att.retire()
					e.att = nil
				}
			}
			words := []uint32{1}
			for i := range b.N {
				for r, ep := range eps {
					if ep.Send(1-r, conduits.Request, 1, words) != conduits.Ready {
						b.Fatal("no credit")
					}
					for got[1-r].n <= i {
						eps[1-r].Poll()
					}
				}
			}
		})
	}
}

// BenchmarkSelf is a request of a rank to itself and the reply, polled for, beside
// a request to another rank and its reply, both ranks on one goroutine.
func BenchmarkSelf(b *testing.B) {
	for _, dst := range []int{0, 1} {
		b.Run(fmt.Sprintf("to=%d", dst), func(b *testing.B) {
			eps, got := benchJob(b, seal.None, 0)
			words := []uint32{1}
			for range b.N {
				for _, c := range []conduits.Class{conduits.Request, conduits.Reply} {
					src, to := 0, dst
					if c == conduits.Reply {
						src, to = dst, 0
					}
					n := got[to].n
					if eps[src].Send(to, c, 1, words) != conduits.Ready {
						b.Fatal("no credit")
					}
					for got[to].n == n {
						eps[to].Poll()
					}
				}
			}
		})
	}
}

// BenchmarkRoundTrip is a put, a get and an atomic of 8 bytes, awaited, both ranks on one
// goroutine: what both sides compute, and the system. BenchmarkAttendant has messages.
func BenchmarkRoundTrip(b *testing.B) {
	for _, mode := range []seal.Mode{seal.None, seal.Authenticated} {
		word := make([]byte, 8)
		for _, op := range []struct {
			name  string
			begin func(ep conduits.Endpoint) (conduits.Event, error)
		}{
			{"put", func(ep conduits.Endpoint) (conduits.Event, error) {
				return post.Put(ep, 1, segment.AttachBase, word, conduits.RemoteDone, 1)
			}},
			{"get", func(ep conduits.Endpoint) (conduits.Event, error) {
				return post.Get(ep, word, 1, segment.AttachBase, conduits.RemoteDone, 1)
			}},
			{"atomic", func(ep conduits.Endpoint) (conduits.Event, error) {
				_, ev, err := post.Atomic(ep, 1, segment.AttachBase, conduits.AtomicAdd, conduits.Int64, 1, 0, 1)
				return ev, err
			}},
		} {
			b.Run(fmt.Sprintf("%v/%s", mode, op.name), func(b *testing.B) {
				eps, got := benchJob(b, mode, 65000)
				for i := range b.N {
					if ev, err := op.begin(eps[0]); err != nil || ev&conduits.RemoteDone != 0 {
						b.Fatal(ev, err)
					}
					for got[0].done <= i {
						eps[1].Spin()
						eps[0].Spin()
					}
				}
			})
		}
	}
}

// BenchmarkRefuseDatagrams is a rank that polls while datagrams of a stranger come, which
// has copied the header of one that passes: the time from a poll that finds some to the one
// that finds none, per datagram.
func BenchmarkRefuseDatagrams(b *testing.B) {
	for _, n := range []int{100, 1400, 65000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			eps, _ := benchJob(b, seal.Authenticated, 65000)
			e0, e1 := eps[0].(*joinedHere), eps[1].(*joinedHere)
			d, err := e1.sealing.s.Seal(nil, 0, make([]byte, 100))
			if err != nil {
				b.Fatal(err)
			}
			d = append(d[:seal.HeaderSize], make([]byte, n-seal.HeaderSize)...)
			conn, err := net.Dial("udp4", e0.client.Addr(0).String())
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			burst := min(64, 128<<10/n)
			done, took := 0, time.Duration(0)
			for done < b.N {
				before := e0.Refused().Total()
				for range burst {
					if _, err := conn.Write(d); err != nil {
						b.Fatal(err)
					}
				}
				begun := time.Now()
				for e0.Refused().Total() < before+uint64(burst) {
					e0.Poll()
				}
				took += time.Since(begun)
				done += burst
			}
			b.ReportMetric(float64(took)/float64(done), "ns/op")
		})
	}
}

// BenchmarkPut is puts of 1 MiB by datagram size, both ranks on one goroutine.
func BenchmarkPut(b *testing.B) {
	for _, mode := range []seal.Mode{seal.None, seal.Authenticated, seal.Encrypted} {
		for _, size := range []int{1400, 4096, 8192, 16384, 32768, 65000} {
			b.Run(fmt.Sprintf("%v/%d", mode, size), func(b *testing.B) {
				eps, _ := benchJob(b, mode, size)
				src := make([]byte, 1<<20)
				b.SetBytes(int64(len(src)))
				for range b.N {
					ev, err := post.Put(eps[0], 1, segment.AttachBase, src, conduits.RemoteDone, 1)
					if err != nil {
						b.Fatal(err)
					}
					done := ev != 0
					for c := eps[0].(*joinedHere).receiver.(*counter); !done; done = c.done > 0 {
						eps[0].Poll()
						eps[1].Poll()
					}
					eps[0].(*joinedHere).receiver.(*counter).done = 0
				}
			})
		}
	}
}

// BenchmarkIncast is puts of 1 MiB of all of 8 ranks to rank 0 at once.
func BenchmarkIncast(b *testing.B) {
	for _, size := range []int{1400, 8192, 16384, 32768, 65000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			const n = 8
			eps, err := Joined(seal.Authenticated, map[string]string{EnvDatagram: fmt.Sprint(size)})(n, conduits.Config{})
			if err != nil {
				b.Fatal(err)
			}
			got := make([]counter, n)
			b.SetBytes((n - 1) << 20)
			var wg sync.WaitGroup
			var again, sent uint64
			for r, ep := range eps {
				wg.Go(func() {
					if err := ep.Attach(conduits.AttachConfig{Size: 1 << 22, Receiver: &got[r]}); err != nil {
						b.Error(err)
						return
					}
					if r == 0 {
						for got[0].n < n-1 {
							_ = conduits.Wait(ep, nil, func() bool { return got[0].n == n-1 })
						}
						return
					}
					src := make([]byte, 1<<20)
					for i := range b.N {
						if _, err := post.Put(ep, 0, segment.AttachBase, src, conduits.RemoteDone, 1); err != nil {
							b.Error(err)
						}
						_ = conduits.Wait(ep, nil, func() bool { return got[r].done > i })
					}
					ep.Send(0, conduits.Request, 1, nil)
				})
			}
			wg.Wait()
			b.StopTimer()
			for _, ep := range eps {
				wg.Go(func() {
					_ = ep.Close()
				})
			}
			wg.Wait()
			for _, ep := range eps {
				s := ep.(*joinedHere).eng.Stats()
				again += s.Again
				sent += s.Sent
			}
			b.ReportMetric(float64(again)/float64(sent), "again/sent")
		})
	}
}
