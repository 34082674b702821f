package rt

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// The symmetric heap is a run of addresses that every thread has memory at, and thread 0 alone
// keeps the list of blocks in use: GlobalAlloc, and the frees of what it gave, are calls to thread
// 0, which answers when it polls or waits. AllAlloc is one by thread 0, and a broadcast. So a
// block may be freed by any one thread, whichever function has allocated it, as UPC has it
// (7.2.2.4), without the others taking part.

// alignment of what the program allocates, bytes, at least.
const granule = segment.MinAlign

func (t *Thread) makeHeap(size uint64) error {
	if size == 0 {
		size = t.n.Usage().LargestCollective / 2
	}
	size &^= segment.PageSize - 1
	if size == 0 { // of a very small segment
		t.heapBase = segment.AttachBase
		t.heapEnd = t.heapBase
	} else {
		p, err := gas.NewSlice[byte](t.n, int(size))
		if err != nil {
			return err
		}
		t.heapBase = p.NLA()
		t.heapEnd = p.NLA() + segment.NLA(size)
	}
	if t.me != 0 {
		return nil
	}
	var err error
	t.heap, err = segment.NewHeap(t.heapBase, uint64(t.heapEnd-t.heapBase))
	return err
}

// threadOf is the thread that a called function runs on.
func threadOf(c *gas.Call) (*Thread, error) {
	t, ok := threadsOf.Load(c.Node)
	if !ok {
		return nil, errs.NotReady("upc: thread %d has ended", c.Rank())
	}
	return t, nil
}

var (
	allocCall = gas.RegisterFunc("upc.alloc", func(c *gas.Call, size uint64) (uint64, error) {
		t, err := threadOf(c)
		if err != nil {
			return 0, err
		}
		a, err := t.heap.Alloc(size, 0)
		return uint64(a), err
	})
	freeCall = gas.RegisterFunc("upc.free", func(c *gas.Call, at uint64) (struct{}, error) {
		t, err := threadOf(c)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, t.heap.Free(segment.NLA(at))
	})
)

// blockBytes is how much of each thread's memory count blocks of size bytes take.
// ok is false if it is more than there can be.
func (t *Thread) blockBytes(count, size uint64) (n uint64, ok bool) {
	rounds := (count + uint64(t.threads) - 1) / uint64(t.threads)
	hi, n := bits.Mul64(rounds, size)
	return n, count <= 1<<62 && hi == 0 && n <= MaxShared
}

// null is the result of an allocation for which there is no room, as UPC has it (7.2.2p1): the
// error that its use ends with says so. Another failure ends the thread here.
func (t *Thread) null(err error, format string, args ...any) Phaseless {
	if !errors.Is(err, gas.ErrResource) {
		t.must(fmt.Errorf("upc: "+format+": %w", append(args, err)...))
	}
	t.noRoom = fmt.Sprintf(format+" found no room (-segment, ARGON_SEGMENT)", args...)
	return 0
}

// GlobalAlloc is upc_global_alloc (7.2.2.1): memory of the type shared [size] char[count*size],
// for the calling thread; null if count or size is 0, or there is no room. Its contents are
// undefined.
func (t *Thread) GlobalAlloc(count, size uint64) Phaseless {
	const what = "upc_global_alloc of %d blocks of %d bytes"
	n, ok := t.blockBytes(count, size)
	switch {
	case !ok:
		return t.null(gas.ErrResource, what, count, size)
	case n == 0:
		return 0
	}
	a, err := t.askAlloc(n)
	if err != nil {
		return t.null(err, what, count, size)
	}
	if checked {
		allocated(t, segment.NLA(a), n)
	}
	return MakePhaseless(0, segment.NLA(a))
}

// allocated has the detector forget what was at n bytes of each thread.
func allocated(t *Thread, at segment.NLA, n uint64) {
	for i := range t.threads {
		t.races.Allocated(uint64(MakePhaseless(i, at)), n)
	}
}

func (t *Thread) askAlloc(n uint64) (uint64, error) {
	if t.heap != nil {
		a, err := t.heap.Alloc(n, 0)
		return uint64(a), err
	}
	return allocCall.Call(t.n, 0, n)
}

// AllAlloc is upc_all_alloc (7.2.2.2): all threads call it, with the same arguments, and get
// the same memory, as GlobalAlloc gives.
func (t *Thread) AllAlloc(count, size uint64) Phaseless {
	t.together("upc_all_alloc")
	const what = "upc_all_alloc of %d blocks of %d bytes"
	n, ok := t.blockBytes(count, size)
	switch {
	case !ok:
		return t.null(gas.ErrResource, what, count, size)
	case n == 0:
		return 0
	}
	type result struct{ at, count, size uint64 }
	r := result{count: count, size: size}
	var failed error
	if t.me == 0 {
		var a segment.NLA
		a, failed = t.heap.Alloc(n, 0)
		r.at = uint64(a)
		if checked {
			allocated(t, a, n)
		}
	}
	r, err := gas.Broadcast(t.n, 0, r)
	t.must(err)
	switch {
	case failed != nil:
		return t.null(failed, what, count, size)
	case r.count != count || r.size != size:
		t.must(errs.BadArg("upc: upc_all_alloc of %d blocks of %d bytes, and on thread 0 of %d blocks of %d", count, size, r.count, r.size))
	case r.at == 0:
		return t.null(gas.ErrResource, what, count, size)
	}
	return MakePhaseless(0, segment.NLA(r.at))
}

// Alloc is upc_alloc (7.2.2.3): size bytes of the calling thread's memory; null if size is 0,
// or there is no room. The memory is zero.
func (t *Thread) Alloc(size uint64) Phaseless {
	if size == 0 {
		return 0
	}
	const what = "upc_alloc of %d bytes"
	if size > MaxShared {
		return t.null(gas.ErrResource, what, size)
	}
	p, err := gas.Alloc[byte](t.n, int((size+granule-1)&^(granule-1)))
	if err != nil {
		return t.null(err, what, size)
	}
	if checked {
		t.races.Allocated(p.Uint64(), size)
	}
	return Phaseless(p.Uint64())
}

// Free is upc_free (7.2.2.4): one thread gives back, once, a block that any thread has allocated
// by any of the functions above. Null does nothing; any other pointer, or one that was freed
// already, ends the job.
func (t *Thread) Free(p Phaseless) {
	a := p.Addr()
	if a < t.heapBase || a >= t.heapEnd {
		t.must(gas.Free(t.n, ToPtr[byte](p)))
		return
	}
	var err error
	switch {
	case p.Thread() != 0:
		err = errs.BadArg("it does not begin on thread 0")
	case t.heap != nil:
		err = t.heap.Free(a)
	default:
		_, err = freeCall.Call(t.n, 0, uint64(a))
	}
	if err != nil {
		t.must(fmt.Errorf("upc: upc_free of %v: %w", p, err))
	}
}

// AllFree is upc_all_free (7.2.2.5): all threads call it with the same pointer, and the memory
// stays until they all have.
func (t *Thread) AllFree(p Phaseless) {
	t.together("upc_all_free")
	t.must(t.x.Implicit().Sync(allOps))
	t.meet()
	if t.me == 0 {
		t.Free(p)
	}
}
