package gas_test

import (
	"errors"
	"fmt"

	"github.com/argon-go/argon/gas"
)

// must is for examples: programs return errors from the function they give Run.
func must(err error) {
	if err != nil {
		fmt.Println(err)
	}
}

// Four ranks each write into their right neighbour's memory.
func Example() {
	err := gas.Run(gas.Config{Ranks: 4}, func(n *gas.Node) error {
		p, err := gas.New[int](n)
		if err != nil {
			return err
		}
		right := (n.Rank() + 1) % n.Size()
		if err := p.On(right).Put(n, 100*n.Rank()); err != nil {
			return err
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if n.Rank() == 0 {
			for r := range n.Size() {
				v, err := p.On(r).Get(n)
				if err != nil {
					return err
				}
				fmt.Println("rank", r, "has", v)
			}
		}
		return nil
	})
	must(err)
	// Output:
	// rank 0 has 300
	// rank 1 has 0
	// rank 2 has 100
	// rank 3 has 200
}

// A rank that fails ends the job; what others wait for ends with an error that
// names it.
func ExampleRun_failure() {
	err := gas.Run(gas.Config{Ranks: 3}, func(n *gas.Node) error {
		if n.Rank() == 2 {
			return errors.New("the input is damaged")
		}
		err := n.Barrier()
		var peer *gas.PeerError
		if n.Rank() == 0 && errors.As(err, &peer) {
			fmt.Println("rank 0 learns that rank", peer.Rank, "failed")
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// rank 0 learns that rank 2 failed
	// rank 2: the input is damaged
}

// Every rank counts into one counter on rank 0.
func ExampleFetchAdd() {
	must(gas.Run(gas.Config{Ranks: 4}, func(n *gas.Node) error {
		p, err := gas.New[uint64](n)
		if err != nil {
			return err
		}
		for range 1000 {
			if _, err := gas.FetchAdd(n, p.On(0), 1); err != nil {
				return err
			}
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if n.Rank() == 0 {
			v, err := gas.Load(n, p)
			fmt.Println(v, err)
		}
		return nil
	}))
	// Output: 4000 <nil>
}

// An array in blocks of three over two ranks: each rank fills what is local to
// it, and any rank reads any element.
func ExampleNewArray() {
	must(gas.Run(gas.Config{Ranks: 2}, func(n *gas.Node) error {
		a, err := gas.NewArray[int](n, 10, 3)
		if err != nil {
			return err
		}
		for i, v := range a.Local(n) {
			*v = i * i
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if n.Rank() == 1 {
			all := make([]int, a.Len())
			if err := a.GetRange(n, 0, all); err != nil {
				return err
			}
			fmt.Println(all)
			fmt.Println("element 4 is on rank", a.Owner(4))
			fmt.Println("rank 1 has", a.LocalSlice(n))
		}
		return nil
	}))
	// Output:
	// [0 1 4 9 16 25 36 49 64 81]
	// element 4 is on rank 1
	// rank 1 has [9 16 25 81]
}

type word struct {
	hash  uint64
	count uint32
}

// Field points to a part of a struct, so that a put, get or atomic moves no more
// than that.
func ExampleField() {
	must(gas.Run(gas.Config{Ranks: 1}, func(n *gas.Node) error {
		p, err := gas.New[word](n)
		if err != nil {
			return err
		}
		count := gas.Field(p, func(w *word) *uint32 { return &w.count })
		if _, err := gas.FetchAdd(n, count, 3); err != nil {
			return err
		}
		w, err := p.Get(n)
		fmt.Println(w.hash, w.count, "and", count.Offset()-p.Offset(), "bytes further")
		return err
	}))
	// Output: 0 3 and 8 bytes further
}

type item struct {
	value int
	next  gas.Ptr[item]
}

// Linked data in shared memory holds Ptrs. One rank builds a list, another walks
// it.
func ExampleAlloc() {
	must(gas.Run(gas.Config{Ranks: 2}, func(n *gas.Node) error {
		head, err := gas.New[gas.Ptr[item]](n)
		if err != nil {
			return err
		}
		if n.Rank() == 0 {
			var next gas.Ptr[item]
			for v := range 3 {
				p, err := gas.Alloc[item](n, 1)
				if err != nil {
					return err
				}
				if err := p.Put(n, item{v, next}); err != nil {
					return err
				}
				next = p
			}
			if err := head.Put(n, next); err != nil {
				return err
			}
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if n.Rank() == 1 {
			p, err := head.On(0).Get(n)
			for !p.IsNil() && err == nil {
				var it item
				if it, err = p.Get(n); err != nil {
					return err
				}
				fmt.Println(it.value)
				p = it.next
			}
		}
		return nil
	}))
	// Output:
	// 2
	// 1
	// 0
}

// Transfers that overlap with each other and with computing.
func ExamplePtr_PutSliceNB() {
	must(gas.Run(gas.Config{Ranks: 2}, func(n *gas.Node) error {
		p, err := gas.NewSlice[float64](n, 4)
		if err != nil {
			return err
		}
		if n.Rank() == 0 {
			h1, err := p.On(1).PutSliceNB(n, []float64{1, 2})
			if err != nil {
				return err
			}
			h2, err := p.On(1).Add(2).PutSliceNB(n, []float64{3, 4})
			if err != nil {
				return err
			}
			if err := n.SyncAll([]gas.Handle{h1, h2}); err != nil {
				return err
			}
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if s, ok := p.LocalSlice(n, 4); ok && n.Rank() == 1 {
			fmt.Println(s)
		}
		return nil
	}))
	// Output: [1 2 3 4]
}

// A rank computes between the two halves of a barrier.
func ExampleNode_BarrierNotify() {
	must(gas.Run(gas.Config{Ranks: 2}, func(n *gas.Node) error {
		p, err := gas.New[int](n)
		if err != nil {
			return err
		}
		if err := p.On(1-n.Rank()).Put(n, 42); err != nil {
			return err
		}
		if err := n.BarrierNotify(); err != nil {
			return err
		}
		// Here is time for what needs no other rank.
		if err := n.BarrierWait(); err != nil {
			return err
		}
		if v, err := p.Get(n); n.Rank() == 0 {
			fmt.Println(v, err)
		}
		return nil
	}))
	// Output: 42 <nil>
}

type move struct{ from, to uint32 }

// distance runs on the rank that is called. All ranks register it, before Run.
var distance = gas.RegisterCall("distance", func(n *gas.Node, m move) int {
	return int(m.to) - int(m.from) + 1000*n.Rank()
})

func ExampleRegisterCall() {
	must(gas.Run(gas.Config{Ranks: 3}, func(n *gas.Node) error {
		if n.Rank() != 0 {
			return nil
		}
		d, err := distance.Call(n, 2, move{from: 5, to: 11})
		fmt.Println(d, err)

		// Two calls at once.
		a, err := distance.Go(n, 1, move{from: 1, to: 2})
		if err != nil {
			return err
		}
		b, err := distance.Go(n, 2, move{from: 1, to: 3})
		if err != nil {
			return err
		}
		fmt.Println(a.Wait())
		fmt.Println(b.Wait())
		return nil
	}))
	// Output:
	// 2006 <nil>
	// 1001 <nil>
	// 2002 <nil>
}

// Ranks take turns with memory that is not atomic.
func ExampleLock() {
	type pair struct{ low, high uint64 }
	must(gas.Run(gas.Config{Ranks: 4}, func(n *gas.Node) error {
		l, err := gas.NewLock(n)
		if err != nil {
			return err
		}
		p, err := gas.New[pair](n)
		if err != nil {
			return err
		}
		p = p.On(0)
		for range 100 {
			if err := l.Lock(n); err != nil {
				return err
			}
			v, err := p.Get(n)
			if err != nil {
				return err
			}
			if err := p.Put(n, pair{v.low + 1, v.high + 2}); err != nil {
				return err
			}
			if err := l.Unlock(n); err != nil {
				return err
			}
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if n.Rank() == 0 {
			v, err := p.Get(n)
			fmt.Println(v, err)
			fmt.Println(l.Unlock(n))
		}
		return nil
	}))
	// Output:
	// {400 800} <nil>
	// extended: Unlock of lock 0+0x0: rank 0 does not hold it
}

// A flag that another rank waits for is stored, not put: Store wakes waiters.
func ExampleNode_Wait() {
	must(gas.Run(gas.Config{Ranks: 2}, func(n *gas.Node) error {
		flag, err := gas.New[uint32](n)
		if err != nil {
			return err
		}
		if n.Rank() == 0 {
			return gas.Store(n, flag.On(1), 7)
		}
		var v uint32
		err = n.Wait(func() bool {
			v, _ = gas.Load(n, flag)
			return v != 0
		})
		fmt.Println(v, err)
		return err
	}))
	// Output: 7 <nil>
}

// Only types without Go pointers can be shared; the message says why one is not.
func ExampleCheckType() {
	type entry struct {
		ID   uint64
		Tags [4]struct{ Name string }
	}
	fmt.Println(gas.CheckType[[16]float32]())
	fmt.Println(gas.CheckType[entry]())
	// Output:
	// <nil>
	// gas: type gas_test.entry cannot live in shared memory: field Tags[].Name has type string, which holds Go pointers
}
