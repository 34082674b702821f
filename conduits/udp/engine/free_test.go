package engine_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
)

// burst has rank 0 begin n puts of 200 bytes at once, and lets all of them arrive.
func burst(t testing.TB, a, b *engine.Engine, now time.Duration, n int) time.Duration {
	src := make([]byte, 200)
	for i := range n {
		if _, err := a.Put(1, at(0), src, conduits.RemoteDone, uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	for done := 0; done < n; {
		now += 100 * time.Microsecond
		carry(now, a, b)
		for _, ok := a.NextCompletion(); ok; _, ok = a.NextCompletion() {
			done++
		}
	}
	return now
}

// TestFree: what a burst has taken is the collector's again.
func TestFree(t *testing.T) {
	a, b, _ := pair(t, nil)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	now := burst(t, a, b, time.Second, 1000)
	before := heap()
	burst(t, a, b, now, 500_000)
	kept := heap() - before
	t.Logf("%d bytes", kept)
	if kept > 25<<20 {
		t.Errorf("%d bytes are kept", kept)
	}
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
}

func BenchmarkBurst(b *testing.B) {
	for _, n := range []int{1000, 10_000, 50_000, 200_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x, y, _ := pair(b, nil)
			now := burst(b, x, y, time.Second, n)
			b.ReportAllocs()
			for b.Loop() {
				now = burst(b, x, y, now, n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/put")
		})
	}
}
