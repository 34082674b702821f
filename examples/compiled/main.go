// Compiled is a program such as a compiler could make of a small UPC program: calls of packages am,
// extended, barrier and segment with plain arguments, started by package conduits/boot,
// without package gas.
//
//	go run ./examples/compiled -n 4                     # ranks in one process
//	go run ./cmd/gasrun -n 4 ./examples/compiled -size 1000
//
// The source that it is made of:
//
//	shared [3] int64_t a[SIZE], b[SIZE];
//	shared int64_t sum, last, where;
//	shared int64_t *shared inner[THREADS];
//	upc_lock_t *lock;
//
//	int main(void) {
//		upc_forall (int i = 0; i < SIZE; i++; &a[i])
//			a[i] = (int64_t)i * i;
//		inner[MYTHREAD] = upc_alloc(sizeof(int64_t));
//		*inner[MYTHREAD] = 0;
//		upc_barrier 1;
//		upc_forall (int i = 0; i < SIZE; i++; &b[i]) {
//			b[i] = a[(i + SIZE - 1) % SIZE] - 2 * a[i] + a[(i + 1) % SIZE];
//			add(&sum, b[i]);                // an atomic
//			if (b[i] == 2) ++*inner[MYTHREAD];
//			upc_lock(lock);
//			if (a[i] > last) { last = a[i]; where = i; }
//			upc_unlock(lock);
//		}
//		upc_barrier 2;
//		if (MYTHREAD == 0) {
//			int64_t twos = 0;
//			for (int i = 0; i < THREADS; i++) {
//				twos += *inner[i];
//				upc_free(inner[i]);
//			}
//			printf("...", sum, twos, last, where);
//		}
//		upc_barrier 3;
//	}
//
// A second difference of squares is 2, but where the ring of elements closes, and around a
// ring second differences add up to 0.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/boot"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/segment"
)

func main() {
	ranks := flag.Int("n", 4, "run `N` ranks in this process (gasrun -n decides for processes)")
	size := flag.Int("size", 300, "`S` elements in each array")
	flag.Parse()
	switch {
	case *ranks < 1:
		usage("-n %d: it must be at least 1", *ranks)
	case *size < 3 || *size > maxSize:
		usage("-size %d: it must be 3 to %d", *size, maxSize)
	case flag.NArg() > 0:
		usage("unexpected argument %q", flag.Arg(0))
	}
	boot.Exit(run(*ranks, *size, os.Stdout))
}

func usage(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "compiled: "+format+"\n", args...)
	os.Exit(2)
}

const (
	maxSize = 1 << 20 // squares and their sums are far from 2^63
	block   = 3       // of shared [3]
	word    = 8       // sizeof(int64_t)
)

// The shared scalars lie at the beginning of thread 0's segment, whose memory is zero
// when the job starts. The arrays begin behind them, at the same address everywhere.
const (
	atLock  = segment.AttachBase
	atSum   = atLock + extended.LockSize
	atLast  = atSum + word
	atWhere = atLast + word
	atInner = atWhere + word // this thread's element of inner
	atA     = atInner + word
)

// run is the job, which prints to out.
func run(ranks, size int, out io.Writer) error {
	cfg := boot.Config{Name: "compiled", Ranks: ranks, MaxSegment: segmentSize(size)}
	return boot.Run(context.Background(), cfg, func(ep conduits.Endpoint) error {
		t, err := begin(ep, size)
		if err != nil {
			return err
		}
		return t.main(size, out)
	})
}

// thread is the state of a UPC thread in the program's runtime. A process may be several.
type thread struct {
	x      *extended.Initiator
	b      *barrier.Barrier
	me     int // MYTHREAD
	heap   heap
	layout segment.Layout // of shared [3]
	atB    segment.NLA    // where b begins
}

// staticSize is enough for all variables on any number of threads, for one may have all
// elements, in whole pages. Memory that is not touched costs nothing.
func staticSize(size int) uint64 {
	need := uint64(atA-segment.AttachBase) + 2*uint64(size)*word
	return (need + segment.PageSize - 1) &^ (segment.PageSize - 1)
}

// segmentSize has a page for the heap besides.
func segmentSize(size int) uint64 { return staticSize(size) + segment.PageSize }

// begin builds the runtime on ep: the handlers and the completer exist before all ranks
// attach, and no rank sends to one that has not bound its layers yet.
func begin(ep conduits.Endpoint, size int) (*thread, error) {
	t := &thread{
		x: extended.New(extended.Config{}), b: barrier.New(), me: ep.Rank(),
		layout: segment.Layout{Threads: ep.Size(), Block: block},
	}
	var err error
	if t.heap.own, err = segment.NewHeap(segment.AttachBase+segment.NLA(staticSize(size)), segment.PageSize); err != nil {
		return nil, err
	}
	e, err := am.Attach(ep, am.Config{
		SegmentSize: segmentSize(size),
		Runtime:     slices.Concat(t.b.Handlers(), t.x.Handlers(), t.heap.handlers()),
		Completer:   t.x,
		Exposer:     t.x,
	})
	if err != nil {
		return nil, err
	}
	t.x.Bind(e)
	t.heap.e = e
	if err := t.b.Bind(e); err != nil {
		return nil, err
	}
	// Thread 0 has the most elements of a.
	t.atB = atA + segment.NLA(t.layout.Affinity(size, 0)*word)
	return t, t.b.Barrier(0, barrier.Anonymous)
}

// main is the program.
func (t *thread) main(size int, out io.Writer) error {
	// upc_forall visits the elements of this thread, each of which is the next of its
	// part of the array.
	for k := range t.layout.Affinity(size, t.me) {
		i := t.layout.Index(t.me, k)
		if err := t.x.PutValue(t.me, atA+segment.NLA(k*word), uint64(i)*uint64(i), word); err != nil {
			return err
		}
	}
	inner, err := t.heap.alloc(word)
	if err != nil {
		return err
	}
	if err := t.x.PutValue(t.me, inner.Addr, 0, word); err != nil {
		return err
	}
	if err := t.x.PutValue(t.me, atInner, uint64(inner.Addr), word); err != nil {
		return err
	}
	if err := t.b.Barrier(1, 0); err != nil {
		return err
	}
	for k := range t.layout.Affinity(size, t.me) {
		if err := t.element(t.layout.Index(t.me, k), size, inner); err != nil {
			return err
		}
	}
	if err := t.b.Barrier(2, 0); err != nil {
		return err
	}
	if t.me == 0 {
		if err := t.print(size, out); err != nil {
			return err
		}
	}
	// The function that boot.Run runs ends with a barrier of its own: thread 0 still
	// reads the others' memory.
	return t.b.Barrier(3, 0)
}

// element is the body of the second loop.
func (t *thread) element(i, size int, inner segment.Shared) error {
	var near [3]uint64 // a[i-1], a[i], a[i+1]
	for d := range near {
		var err error
		if near[d], err = t.load(t.layout.At(atA, (i+d-1+size)%size, word)); err != nil {
			return err
		}
	}
	v := near[0] - 2*near[1] + near[2] // modulo 2^64, as signed numbers are
	to := t.layout.At(t.atB, i, word)
	if err := t.x.PutValue(to.Thread, to.Addr, v, word); err != nil {
		return err
	}
	if err := extended.Add[uint64](t.x, 0, atSum, v); err != nil {
		return err
	}
	if v == 2 {
		had, err := t.load(inner)
		if err != nil {
			return err
		}
		if err := t.x.PutValue(t.me, inner.Addr, had+1, word); err != nil {
			return err
		}
	}
	if err := t.x.LockAt(0, atLock).Lock(); err != nil {
		return err
	}
	last, err := t.load(segment.Shared{Addr: atLast})
	if err == nil && near[1] > last {
		if err = t.x.PutValue(0, atLast, near[1], word); err == nil {
			err = t.x.PutValue(0, atWhere, uint64(i), word)
		}
	}
	if err != nil {
		return err
	}
	return t.x.LockAt(0, atLock).Unlock()
}

// load is the element that p points to.
func (t *thread) load(p segment.Shared) (uint64, error) { return t.x.GetValue(p.Thread, p.Addr, word) }

// print prints the result and checks it.
func (t *thread) print(size int, out io.Writer) error {
	var got [3]uint64
	for k, at := range [...]segment.NLA{atSum, atLast, atWhere} {
		var err error
		if got[k], err = t.load(segment.Shared{Addr: at}); err != nil {
			return err
		}
	}
	var twos uint64
	for i := range t.layout.Threads {
		at, err := t.load(segment.Shared{Thread: i, Addr: atInner})
		if err != nil {
			return err
		}
		inner := segment.Shared{Thread: i, Addr: segment.NLA(at)}
		v, err := t.load(inner)
		if err != nil {
			return err
		}
		twos += v
		if err := t.heap.free(inner); err != nil {
			return err
		}
	}
	// Pointer arithmetic in array order visits what upc_forall has written.
	p, other := t.layout.At(t.atB, 0, word), 0
	for range size {
		v, err := t.load(p)
		if err != nil {
			return err
		}
		if v != 2 {
			other++
		}
		p = p.Add(t.layout, 1, word)
	}
	most := uint64(size - 1)
	if want := [...]uint64{0, most * most, most}; got != want || twos != most-1 || other != 2 {
		return fmt.Errorf("compiled: sum, last and where are %d, not %d; %d elements of b are 2, and %d are not, instead of 2", got, want, twos, other)
	}
	_, err := fmt.Fprintf(out, "%d elements on %d threads: second differences add up to %d, %d are 2, the largest square is %d at %d\n",
		size, t.layout.Threads, got[0], twos, got[1], got[2])
	return err
}
