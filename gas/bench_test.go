package gas

import (
	"errors"
	"sync/atomic"
	"testing"
)

// benchPair runs body on rank 0 of two in-process ranks, with the other rank
// answering until it is done.
func benchPair(b *testing.B, body func(n *Node, p Ptr[uint64])) {
	runN(b, 2, func(n *Node) error {
		p, err := NewSlice[uint64](n, 1024)
		if err != nil {
			return err
		}
		if n.Rank() == 0 {
			body(n, p.On(1))
		}
		return n.Barrier()
	})
}

func BenchmarkPtrPut(b *testing.B) {
	benchPair(b, func(n *Node, p Ptr[uint64]) {
		for b.Loop() {
			if err := p.Put(n, 42); err != nil {
				b.Fatal(err)
			}
		}
	})
}

var sink uint64

func BenchmarkPtrGet(b *testing.B) {
	benchPair(b, func(n *Node, p Ptr[uint64]) {
		for b.Loop() {
			v, err := p.Get(n)
			if err != nil {
				b.Fatal(err)
			}
			sink += v
		}
	})
}

func BenchmarkPtrPutNB(b *testing.B) {
	benchPair(b, func(n *Node, p Ptr[uint64]) {
		for b.Loop() {
			h, err := p.PutNB(n, 42)
			if err != nil {
				b.Fatal(err)
			}
			if err := n.Sync(h); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkPtrLoad(b *testing.B) {
	benchPair(b, func(n *Node, p Ptr[uint64]) {
		for b.Loop() {
			v, err := Load(n, p)
			if err != nil {
				b.Fatal(err)
			}
			sink += v
		}
	})
}

func BenchmarkFetchAdd(b *testing.B) {
	benchPair(b, func(n *Node, p Ptr[uint64]) {
		for b.Loop() {
			v, err := FetchAdd(n, p, 1)
			if err != nil {
				b.Fatal(err)
			}
			sink += v
		}
	})
}

func BenchmarkCompareAndSwap(b *testing.B) {
	b.Run("uint64", func(b *testing.B) {
		benchPair(b, func(n *Node, p Ptr[uint64]) { benchSwaps(b, n, p, 0, 1) })
	})
	b.Run("Ptr", func(b *testing.B) { // a struct
		benchPair(b, func(n *Node, p Ptr[uint64]) {
			q, err := Cast[Ptr[uint64]](p)
			if err != nil {
				b.Fatal(err)
			}
			benchSwaps(b, n, q, Ptr[uint64]{}, p)
		})
	})
}

func benchSwaps[T any](b *testing.B, n *Node, p Ptr[T], old, v T) {
	for b.Loop() {
		if _, swapped, err := CompareAndSwap(n, p, old, v); err != nil || !swapped {
			b.Fatal(swapped, err)
		}
		old, v = v, old
	}
}

// BenchmarkPtrOn names places of ranks in turn, as a loop over all of them does.
func BenchmarkPtrOn(b *testing.B) {
	benchPair(b, func(_ *Node, p Ptr[uint64]) {
		for i := 0; b.Loop(); i++ {
			q := p.On(i & 1023)
			sink += q.Uint64() + uint64(q.Rank())
		}
	})
}

func BenchmarkFetchMax(b *testing.B) {
	benchPair(b, func(n *Node, p Ptr[uint64]) {
		for b.Loop() {
			v, err := FetchMax(n, p, 1)
			if err != nil {
				b.Fatal(err)
			}
			sink += v
		}
	})
}

func BenchmarkLockUncontended(b *testing.B) {
	runN(b, 1, func(n *Node) error {
		l, err := NewLock(n)
		if err != nil {
			return err
		}
		for b.Loop() {
			if err := l.Lock(n); err != nil {
				return err
			}
			if err := l.Unlock(n); err != nil {
				return err
			}
		}
		return nil
	})
}

func BenchmarkArrayPut(b *testing.B) {
	runN(b, 2, func(n *Node) error {
		a, err := NewArray[uint64](n, 1000, Cyclic)
		if err != nil {
			return err
		}
		if n.Rank() == 0 {
			i := 0
			for b.Loop() {
				if err := a.Put(n, i, 7); err != nil {
					return err
				}
				if i++; i == 1000 {
					i = 0
				}
			}
		}
		return n.Barrier()
	})
}

var benchCall = RegisterCall("bench.add", func(n *Node, a [2]uint64) uint64 { return a[0] + a[1] })

func BenchmarkCallSelf(b *testing.B) {
	runN(b, 1, func(n *Node) error {
		for b.Loop() {
			v, err := benchCall.Call(n, 0, [2]uint64{1, 2})
			if err != nil {
				return err
			}
			sink += v
		}
		return nil
	})
}

func BenchmarkCall(b *testing.B) {
	runN(b, 2, func(n *Node) error {
		if n.Rank() == 0 {
			for b.Loop() {
				v, err := benchCall.Call(n, 1, [2]uint64{1, 2})
				if err != nil {
					return err
				}
				sink += v
			}
		}
		return n.Barrier()
	})
}

// BenchmarkPtrRegistered is a put and a get of 8 bytes that a firehose reaches, to plain
// memory that another rank of this process has registered: by one goroutine, and by as many
// as -cpu says.
func BenchmarkPtrRegistered(b *testing.B) {
	for _, c := range []struct {
		name string
		do   func(n *Node, p Ptr[uint64]) error
	}{
		{"put", func(n *Node, p Ptr[uint64]) error { return p.Put(n, 7) }},
		{"get", func(n *Node, p Ptr[uint64]) error { return second(p.Get(n)) }},
		{"put slice", func(n *Node, p Ptr[uint64]) error { return p.PutSlice(n, sliceOf7) }},
	} {
		for _, goroutines := range []string{"one", "many"} {
			b.Run(c.name+"/"+goroutines, func(b *testing.B) {
				var left atomic.Bool
				runN(b, 2, func(n *Node) error {
					p, err := Register(n, make([]uint64, 1000))
					if err != nil {
						return err
					}
					q, err := swapped(n, p)
					if err != nil {
						return err
					}
					if n.Rank() == 1 {
						return n.Wait(left.Load)
					}
					defer n.Wake(1)
					defer left.Store(true)
					for range 3 { // the first one may go without a firehose
						if err := c.do(n, q); err != nil {
							return err
						}
					}
					b.ResetTimer()
					if goroutines == "one" {
						for range b.N {
							err = errors.Join(err, c.do(n, q))
						}
						return err
					}
					var next atomic.Int32
					b.RunParallel(func(pb *testing.PB) {
						q := q.Add(int(next.Add(64)) % 1000)
						for pb.Next() {
							if err := c.do(n, q); err != nil {
								b.Error(err)
							}
						}
					})
					return nil
				})
			})
		}
	}
}

var sliceOf7 = []uint64{7}

// BenchmarkPerRank looks a rank's own variable up, as each served call of a container does, and the verdict on a type.
func BenchmarkPerRank(b *testing.B) {
	n := &Node{whole: new(whole)}
	for range 8 { // others
		new(PerRank[int]).Of(n)
	}
	var p PerRank[int]
	b.Run("Of", func(b *testing.B) {
		for b.Loop() {
			*p.Of(n)++
		}
	})
	b.Run("CheckType", func(b *testing.B) {
		for b.Loop() {
			if err := CheckType[struct{ a, b int }](); err != nil {
				b.Fatal(err)
			}
		}
	})
}
