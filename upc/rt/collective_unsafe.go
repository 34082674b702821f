// Collective calls. What is unsafe here: Sizeof, and values of scalar types as bytes.

package rt

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/upc/races"
)

// SyncFlags is upc_flag_t (UPC 1.3, 7.3.3 and 7.3.4): when a collective call may touch memory.
// Zero, or one of either kind alone, stands for All of the missing kind.
type SyncFlags uint32

// The flags. InAllSync waits for all threads before memory is touched, and OutAllSync before
// the call returns. Calls without them touch a thread's memory only while it is in the call, as
// MySync requires, which is more than NoSync does.
const (
	InAllSync SyncFlags = 1 << iota
	InMySync
	InNoSync
	OutAllSync
	OutMySync
	OutNoSync

	inSync  = InAllSync | InMySync | InNoSync
	outSync = OutAllSync | OutMySync | OutNoSync
)

// arrive is the entry into a call that all threads make. others: the call touches memory of threads
// that need not have entered it, so that MySync is AllSync.
func arrive(t *Thread, what string, f SyncFlags, others bool) {
	t.together(what)
	in, out := f&inSync, f&outSync
	if in&(in-1) != 0 || out&(out-1) != 0 || f&^(inSync|outSync) != 0 {
		t.must(errs.BadArg("upc: %s with synchronization flags %#x: at most one for each side", what, uint32(f)))
	}
	t.Fence()
	if in == 0 || in == InAllSync || others && in == InMySync {
		t.meet()
	}
}

// depart is the return from it.
func depart(t *Thread, f SyncFlags, others bool) {
	if out := f & outSync; out == 0 || out == OutAllSync || others && out == OutMySync {
		t.meet()
	}
	t.x.Fence()
}

// begin is arrive for a collective call.
func (t *Thread) begin(what string, f SyncFlags, others bool) {
	arrive(t, what, f, others)
	if checked {
		t.races.Enter(t.me, f&InNoSync == 0)
	}
}

// allThreads have the data of a collective call, in place of one.
const allThreads = -1

// finishCall is depart for one that brings data from a thread to a thread.
func (t *Thread) finishCall(f SyncFlags, from, to int, others bool) {
	if checked {
		low, high := from, from+1
		switch {
		case f&OutNoSync != 0 || to != allThreads && to != t.me:
			low, high = 0, 0
		case from == allThreads:
			low, high = 0, t.threads
		}
		t.races.Leave(t.me, low, high)
	}
	depart(t, f, others)
}

// mine is n bytes of the calling thread's memory at the address of p, for a collective call.
func (t *Thread) mine(p Phaseless, n int, k races.Access) []byte {
	return own(t, MakePhaseless(t.me, p.Addr()), n, k)
}

// blocks is the size of one block of n bytes for each thread.
func (t *Thread) blocks(n int) int {
	if uint(n) > MaxShared {
		t.must(errs.BadArg("upc: a collective call with blocks of %d bytes: a thread has at most %d bytes of shared memory", n, uint64(MaxShared)))
	}
	return n * t.threads
}

// at is own if the bytes are the calling thread's.
func (t *Thread) at(p Phaseless, n int, k races.Access) []byte {
	if p.Thread() != t.me {
		return nil
	}
	return own(t, p, n, k)
}

// AllBroadcast is upc_all_broadcast (7.4.2.1): n bytes at src go to dst, of the type
// shared [n] char[n*THREADS].
func (t *Thread) AllBroadcast(dst, src Phaseless, n int, f SyncFlags) {
	t.begin("upc_all_broadcast", f, false)
	own := t.mine(dst, n, races.Writes)
	bulk.Copy(own, t.at(src, n, races.Reads))
	t.must(gas.BroadcastSlice(t.n, src.Thread(), own))
	t.finishCall(f, src.Thread(), allThreads, false)
}

// AllScatter is upc_all_scatter (7.4.2.2): block i of src, shared [] char[n*THREADS], goes to
// thread i's part of dst, shared [n] char[n*THREADS].
func (t *Thread) AllScatter(dst, src Phaseless, n int, f SyncFlags) {
	t.begin("upc_all_scatter", f, false)
	t.must(gas.ScatterSlice(t.n, src.Thread(), t.at(src, t.blocks(n), races.Reads), t.mine(dst, n, races.Writes)))
	t.finishCall(f, src.Thread(), allThreads, false)
}

// AllGather is upc_all_gather (7.4.2.3): thread i's part of src, shared [n] char[n*THREADS],
// becomes block i of dst, shared [] char[n*THREADS].
func (t *Thread) AllGather(dst, src Phaseless, n int, f SyncFlags) {
	t.begin("upc_all_gather", f, false)
	t.must(gas.GatherSlice(t.n, dst.Thread(), t.mine(src, n, races.Reads), t.at(dst, t.blocks(n), races.Writes)))
	t.finishCall(f, allThreads, dst.Thread(), false)
}

// AllGatherAll is upc_all_gather_all (7.4.2.4): thread i's part of src, shared [n]
// char[n*THREADS], becomes block i of every thread's part of dst, shared [n*THREADS]
// char[n*THREADS*THREADS].
func (t *Thread) AllGatherAll(dst, src Phaseless, n int, f SyncFlags) {
	t.begin("upc_all_gather_all", f, false)
	t.must(gas.AllGatherSlice(t.n, t.mine(src, n, races.Reads), t.mine(dst, t.blocks(n), races.Writes)))
	t.finishCall(f, allThreads, allThreads, false)
}

// AllExchange is upc_all_exchange (7.4.2.5): block i of thread j's part of src becomes block j
// of thread i's part of dst; both are shared [n*THREADS] char[n*THREADS*THREADS].
func (t *Thread) AllExchange(dst, src Phaseless, n int, f SyncFlags) {
	t.begin("upc_all_exchange", f, false)
	t.must(gas.AllToAll(t.n, t.mine(src, t.blocks(n), races.Reads), t.mine(dst, t.blocks(n), races.Writes)))
	t.finishCall(f, allThreads, allThreads, false)
}

// AllPermute is upc_all_permute (7.4.2.6): thread i's part of src goes to thread perm[i]'s part
// of dst; both are shared [n] char[n*THREADS], and perm is shared int[THREADS].
func (t *Thread) AllPermute(dst, src, perm Phaseless, n int, f SyncFlags) {
	t.begin("upc_all_permute", f, true)
	to := int(Get[int32](t, MakePhaseless(t.me, perm.Addr())))
	if uint(to) >= uint(t.threads) {
		t.must(errs.BadArg("upc: upc_all_permute: perm[%d] is %d: there are %d threads", t.me, to, t.threads))
	}
	saw(t, MakePhaseless(to, dst.Addr()), n, races.Writes)
	t.must(t.x.Put(to, dst.Addr(), t.mine(src, n, races.Reads)))
	t.finishCall(f, allThreads, allThreads, true)
}

// Op is upc_op_t (7.3.1): an operation of the library, or a set of them. The values are those of
// the macros in <upc_types.h>, <upc_collective.h> and <upc_atomic.h>.
type Op uint32

// The operations UPC_ADD and so on. Reductions have those up to OpNonComm, of which the last
// two are the caller's function; atomic operations are others, and some of both.
const (
	OpAdd Op = 1 << iota
	OpMult
	OpAnd
	OpOr
	OpXor
	OpLogAnd
	OpLogOr
	OpMin
	OpMax
	OpFunc    // UPC_FUNC: the function is commutative
	OpNonComm // UPC_NONCOMM_FUNC: it is not
	OpGet
	OpSet
	OpCSwap
	OpSub
	OpInc
	OpDec
)

var opNames = [...]string{
	"UPC_ADD", "UPC_MULT", "UPC_AND", "UPC_OR", "UPC_XOR", "UPC_LOGAND", "UPC_LOGOR", "UPC_MIN", "UPC_MAX",
	"UPC_FUNC", "UPC_NONCOMM_FUNC", "UPC_GET", "UPC_SET", "UPC_CSWAP", "UPC_SUB", "UPC_INC", "UPC_DEC",
}

// String is UPC's name of the operation, or those of a set.
func (o Op) String() string {
	if o == 0 || o >= 1<<len(opNames) {
		return fmt.Sprintf("%#x, an operation that there is not", uint32(o))
	}
	var names []string
	for i, n := range opNames {
		if o&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, " | ")
}

// combiner is the function of an operation; nil if T does not have it.
func combiner[T Scalar](op Op, fn func(a, b T) T) func(a, b T) T {
	half := 0.5 // not a constant, which would have to be one of all T
	if integer := T(half) == 0; !integer && (op == OpAnd || op == OpOr || op == OpXor) {
		return nil
	}
	truth := func(v bool) T {
		if v {
			return 1
		}
		return 0
	}
	switch op {
	case OpAdd:
		return func(a, b T) T { return a + b }
	case OpMult:
		return func(a, b T) T { return a * b }
	case OpAnd:
		return func(a, b T) T { return fromWord[T](toWord(a) & toWord(b)) }
	case OpOr:
		return func(a, b T) T { return fromWord[T](toWord(a) | toWord(b)) }
	case OpXor:
		return func(a, b T) T { return fromWord[T](toWord(a) ^ toWord(b)) }
	case OpLogAnd:
		return func(a, b T) T { return truth(a != 0 && b != 0) }
	case OpLogOr:
		return func(a, b T) T { return truth(a != 0 || b != 0) }
	case OpMin:
		return func(a, b T) T { return min(a, b) }
	case OpMax:
		return func(a, b T) T { return max(a, b) }
	case OpFunc, OpNonComm:
		return fn
	}
	return nil
}

func must2[T Scalar](t *Thread, what string, op Op, fn func(a, b T) T) func(a, b T) T {
	c := combiner(op, fn)
	if c == nil {
		var v T
		t.must(errs.BadArg("upc: %s: %v of type %T", what, op, v))
	}
	return c
}

// piece is a block of an array, or the part of it that there is: so many elements at a place,
// the first of which has this number.
type piece struct {
	index, count int
	at           Phaseless
}

// pieces are the blocks of an array of total elements of size bytes that lie on thread, in
// order. p is the first element: with a phase it stands in its block, of which what is before
// it is not part of the array.
func (t *Thread) pieces(p Phased, thread, total, block, size int) (all []piece) {
	if most := MaxShared / max(size, 1); uint(total) > uint(most*t.threads) || uint(block) > uint(max(total, MaxBlock)) {
		t.must(errs.BadArg("upc: a collective call on an array of %d elements of %d bytes in blocks of %d: %d threads have room for %d, and blocks at most %d (UPC_MAX_BLOCK_SIZE)",
			total, size, block, t.threads, most*t.threads, MaxBlock))
	}
	if block == 0 {
		if p.Thread() == thread && total > 0 {
			all = append(all, piece{0, total, p.Phaseless()})
		}
		return all
	}
	phase := p.Phase()
	if phase >= block {
		t.must(errs.BadArg("upc: a collective call on an array with blocks of %d elements that begins with phase %d", block, phase))
	}
	_, first := divide(thread-p.Thread(), t.threads)
	for k := first; k*block-phase < total; k += t.threads {
		from := max(k*block-phase, 0)
		at := MakePhaseless(thread, p.Addr()).AddLocal((p.Thread()+k)/t.threads*block+from-k*block, size)
		all = append(all, piece{from, min((k+1)*block-phase, total) - from, at})
	}
	return all
}

// some is the combination of some elements, or of none.
type some[T Scalar] struct {
	value T
	there int64
}

func (a some[T]) with(b some[T], c func(a, b T) T) some[T] {
	if a.there == 0 {
		return b
	}
	if b.there != 0 {
		a.value = c(a.value, b.value)
	}
	return a
}

// totals are the combinations of the calling thread's pieces of an array.
func totals[T Scalar](t *Thread, all []piece, c func(a, b T) T) []T {
	sums := make([]T, 0, len(all))
	for _, p := range all {
		saw(t, p.at, p.count*int(unsafe.Sizeof(*new(T))), races.Reads)
		s := LocalSlice[T](t, p.at, p.count)
		sum := s[0]
		for _, v := range s[1:] {
			sum = c(sum, v)
		}
		sums = append(sums, sum)
	}
	return sums
}

// AllReduce is upc_all_reduceT (7.4.3.1): it combines total elements of src, an array with
// blocks of block elements, 0 for the indefinite size, whose phase is respected, and leaves the
// result at dst. fn is looked at for OpFunc and OpNonComm alone.
func AllReduce[T Scalar](t *Thread, dst Phaseless, src Phased, op Op, total, block int, fn func(a, b T) T, f SyncFlags) {
	const what = "upc_all_reduce"
	t.begin(what, f, false)
	c := must2(t, what, op, fn)
	var v T
	own := totals(t, t.pieces(src, t.me, total, block, int(unsafe.Sizeof(v))), c)
	var result some[T]
	if op == OpNonComm {
		all, err := gas.GatherV(t.n, dst.Thread(), own)
		t.must(err)
		if t.me == dst.Thread() {
			for _, sum := range inOrder(t, src, all) {
				result = result.with(some[T]{sum, 1}, c)
			}
		}
	} else {
		for _, sum := range own {
			result = result.with(some[T]{sum, 1}, c)
		}
		var err error
		result, err = gas.Reduce(t.n, dst.Thread(), result, func(a, b some[T]) some[T] { return a.with(b, c) })
		t.must(err)
	}
	if t.me == dst.Thread() && result.there != 0 {
		Put(t, dst, result.value)
	}
	t.finishCall(f, allThreads, dst.Thread(), false)
}

// inOrder lists the threads' blocks of an array that begins at p, in the array's order.
func inOrder[T any](t *Thread, p Phased, all [][]T) (list []T) {
	for k := 0; ; k++ {
		own := all[(p.Thread()+k)%t.threads]
		if k/t.threads >= len(own) {
			return list
		}
		list = append(list, own[k/t.threads])
	}
}

// AllPrefixReduce is upc_all_prefix_reduceT (7.4.3.1): element i of dst is the combination of
// those of src up to i; dst has src's layout, and its phase.
func AllPrefixReduce[T Scalar](t *Thread, dst, src Phased, op Op, total, block int, fn func(a, b T) T, f SyncFlags) {
	const what = "upc_all_prefix_reduce"
	t.begin(what, f, true)
	c := must2(t, what, op, fn)
	if block != 0 && dst.Phase() != src.Phase() {
		t.must(errs.BadArg("upc: %s from phase %d to phase %d", what, src.Phase(), dst.Phase()))
	}
	var v T
	size := int(unsafe.Sizeof(v))
	own := t.pieces(src, t.me, total, block, size)
	all, err := gas.AllGatherV(t.n, totals(t, own, c))
	t.must(err)
	var before some[T] // of the blocks up to k
	k := 0
	sums := inOrder(t, src, all)
	for _, p := range own {
		for block != 0 && k < (p.index+src.Phase())/block {
			before = before.with(some[T]{sums[k], 1}, c)
			k++
		}
		run := before
		out := make([]T, p.count)
		for i, v := range LocalSlice[T](t, p.at, p.count) {
			run = run.with(some[T]{v, 1}, c)
			out[i] = run.value
		}
		to := dst.Phaseless()
		if block != 0 {
			to = dst.Wide().Add(p.index, block, size, t.threads).Phaseless()
		}
		t.MemPut(to, Bytes(unsafe.Pointer(unsafe.SliceData(out)), len(out)*size))
	}
	t.finishCall(f, allThreads, allThreads, true)
}

// AllSort is upc_all_sort (UPC Collective Operations Specifications 1.0, 4.3.4; 1.3 has none):
// it sorts total elements of size bytes of an array with blocks of block elements, as
// compare says, whose result is negative if a comes before b. Both are elements of a copy of
// the array, in shared memory of the calling thread. Elements that are equal keep their order.
func (t *Thread) AllSort(p Phased, size, total, block int, compare func(a, b Phaseless) int, f SyncFlags) {
	t.begin("upc_all_sort", f, true)
	var mine []byte
	for _, q := range t.pieces(p, t.me, total, block, size) {
		mine = append(mine, own(t, q.at, q.count*size, races.Reads)...)
	}
	all, err := gas.AllGatherV(t.n, mine)
	t.must(err)
	whole := t.Alloc(uint64(total * size))
	if whole == 0 && total > 0 {
		t.must(errs.Resource("upc: upc_all_sort: no room for a copy of the array; %s", t.noRoom))
	}
	elements := t.memory(whole, total*size)
	for r := range t.threads {
		for _, q := range t.pieces(p, r, total, block, size) {
			n := bulk.Copy(elements[q.index*size:], all[r][:q.count*size])
			all[r] = all[r][n:]
		}
	}
	order := make([]int, total)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compare(whole.AddLocal(a, size), whole.AddLocal(b, size)) })
	for _, q := range t.pieces(p, t.me, total, block, size) {
		to := own(t, q.at, q.count*size, races.Writes)
		for i := range q.count {
			bulk.Copy(to[i*size:], elements[order[q.index+i]*size:][:size])
		}
	}
	t.Free(whole)
	t.finishCall(f, allThreads, allThreads, true)
}
