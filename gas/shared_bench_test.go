package gas

import "testing"

// BenchmarkSharedCall measures the part of a call that goroutines of a rank share: the place
// where an answer arrives, taken and given back. For -cpu 1,2,4.
func BenchmarkSharedCall(b *testing.B) {
	n := &Node{calls: new(calls)}
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			s, i := n.calls.claim(benchCall.function, 0)
			n.returned(0, []uint32{i, s.use(), 1, 0}, nil)
			f := Future[uint64]{n: n, s: s, i: i, use: s.use()}
			if _, err := f.Wait(); err != nil {
				panic(err)
			}
		}
	})
}
