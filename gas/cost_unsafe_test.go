//go:build !race

package gas

// The race detector's frames are larger, so that stacks would say nothing.

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
)

// heapAndStacks are the bytes that all objects and all goroutines' stacks take.
func heapAndStacks() (heap, stacks uint64) {
	runtime.GC() // twice: the first may still shrink stacks and leave finalizers
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.StackInuse
}

// TestRankCost pins what a rank takes of memory when it has attached, while it
// waits, and after collectives: for jobs whose ranks are all in one process.
func TestRankCost(t *testing.T) {
	cfg := Config{}
	attach := func(n *Node) error { return n.attach(&cfg) }
	bare := func(n *Node) (err error) {
		n.b = barrier.New()
		if n.e, err = am.Attach(n.ep, am.Config{Runtime: n.b.Handlers()}); err != nil {
			return err
		}
		return n.b.Bind(n.e)
	}
	reduce := func(n *Node) error {
		sum, err := AllReduce(n, n.rank, Sum[int])
		if err == nil && sum != n.size*(n.size-1)/2 {
			t.Errorf("rank %d: sum %d", n.rank, sum)
		}
		return err
	}
	t.Run("bare", func(t *testing.T) {
		rankCost(t, []costStep{
			{"attached", bare, false, 1500 + uint64(unsafe.Sizeof(Node{}))},
			{"in a barrier", (*Node).Barrier, true, 1550 + uint64(unsafe.Sizeof(Node{}))},
		})
	})
	t.Run("node", func(t *testing.T) {
		rankCost(t, []costStep{
			{"attached", attach, false, 4800},
			{"in a barrier", (*Node).Barrier, true, 4900},
			{"after a reduction", reduce, false, 5400},
			{"leaving", (*Node).leave, true, 5750},
		})
	})
}

// costStep is something that all ranks do, and what each may take then, bytes.
type costStep struct {
	name  string
	do    func(n *Node) error
	while bool // what it takes while all but rank 0 wait, instead of afterwards
	most  uint64
}

func rankCost(t *testing.T, body []costStep) {
	const ranks = 1024
	// Ranks begin with stacks of 2 KiB; this is one doubling and what the runtime
	// keeps for itself.
	const mostStack = 2300
	j, job := newFakeJob(ranks), &run{cfg: new(Config).EnsureDefaults()}
	nodes := make([]*Node, ranks)
	steps := make([]chan bool, ranks)
	var done sync.WaitGroup
	var first atomic.Pointer[error]
	for r := range ranks {
		steps[r] = make(chan bool)
	}
	for r := range ranks {
		go func() {
			for i, s := range body {
				<-steps[r]
				if i == 0 {
					nodes[r] = newNode(j.eps[r], job)
				}
				if err := s.do(nodes[r]); err != nil {
					first.CompareAndSwap(nil, &err)
					j.fail(r, err)
				}
				done.Done()
			}
			<-steps[r]
		}()
	}
	defer func() {
		for _, c := range steps {
			close(c)
		}
	}()
	heap0, stack0 := heapAndStacks()
	measure := func(s *costStep) {
		t.Helper()
		if p := first.Load(); p != nil {
			t.Fatal(*p)
		}
		heap, stack := heapAndStacks()
		// What other tests have left may go meanwhile.
		heap, stack = (max(heap, heap0)-heap0)/ranks, (max(stack, stack0)-stack0)/ranks
		t.Logf("%s: %d bytes a rank, and its stack has grown by %d", s.name, heap, stack)
		if heap > s.most || stack > mostStack {
			t.Errorf("%s: a rank takes %d bytes and %d more of stack; %d and %d are enough", s.name, heap, stack, s.most, mostStack)
		}
	}
	for i := range body {
		s := &body[i]
		done.Add(ranks)
		for r := 1; r < ranks; r++ {
			steps[r] <- true
		}
		if s.while {
			for j.parked.Load() < ranks-1 {
				runtime.Gosched()
			}
			measure(s)
		}
		steps[0] <- true
		done.Wait()
		if !s.while {
			measure(s)
		}
	}
	runtime.KeepAlive(nodes)
}
