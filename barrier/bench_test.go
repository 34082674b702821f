package barrier

import (
	"sync/atomic"
	"testing"
)

// BenchmarkBarrier/<algorithm>/<ranks> is the time of a barrier of goroutines;
// compare 2 ranks with BenchmarkCacheLine of the same run.
func BenchmarkBarrier(b *testing.B) {
	for _, how := range algorithms {
		for _, n := range []int{2, 8, 32} {
			b.Run(how.String()+"/"+utoa(uint32(n)), func(b *testing.B) {
				j := openJob(b, n, how, 0)
				defer j.close()
				j.each(func(r int) {
					for range b.N {
						if err := j.bars[r].Barrier(0, Anonymous); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}

// BenchmarkCacheLine is the one-way time of two flags that two goroutines hand
// back and forth, each in its own line.
func BenchmarkCacheLine(b *testing.B) {
	var l [2]line
	done := make(chan struct{})
	n := uint64(b.N/2 + 1)
	bounce := func(mine, theirs *atomic.Uint64, lead uint64) {
		for i := uint64(1); i <= n; i++ {
			if lead == 1 {
				mine.Store(i)
			}
			for theirs.Load() != i {
			}
			if lead == 0 {
				mine.Store(i)
			}
		}
	}
	go func() {
		bounce(&l[1].w[0], &l[0].w[0], 0)
		close(done)
	}()
	bounce(&l[0].w[0], &l[1].w[0], 1)
	<-done
}
