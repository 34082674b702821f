package sim

import (
	"fmt"
	"iter"
	"testing"
)

// BenchmarkSwitch compares ways to switch to a rank and back, at numbers of ranks
// that fit into the caches and that do not: coroutines of iter.Pull, which the
// simulator uses, and goroutines that hand over by channels.
func BenchmarkSwitch(b *testing.B) {
	for _, n := range []int{1, 65536} {
		b.Run(fmt.Sprintf("pull/%d", n), func(b *testing.B) {
			next := make([]func() (struct{}, bool), n)
			for i := range next {
				var stop func()
				next[i], stop = iter.Pull(func(yield func(struct{}) bool) {
					for yield(struct{}{}) {
					}
				})
				defer stop()
				next[i]()
			}
			for i := 0; b.Loop(); i++ {
				next[i%n]()
			}
		})
		b.Run(fmt.Sprintf("channels/%d", n), func(b *testing.B) {
			type pair struct{ resume, stopped chan struct{} }
			all := make([]pair, n)
			for i := range all {
				p := pair{make(chan struct{}), make(chan struct{})}
				all[i] = p
				go func() {
					for range p.resume {
						p.stopped <- struct{}{}
					}
				}()
				defer close(p.resume)
			}
			for i := 0; b.Loop(); i++ {
				p := &all[i%n]
				p.resume <- struct{}{}
				<-p.stopped
			}
		})
	}
}
