package gas

// What is unsafe here: memory that a View allows is written as a T, which fits there.

import (
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended"
)

// Implicit operations end without a Handle each: SyncImplicit waits for all of them.
// An operation on memory in reach of load and store is done when the call returns.

// SyncImplicit waits until all implicit operations of this Node (the NBI forms) are
// complete: what they stored is visible to all ranks, what they load has arrived. The
// error is the first failure among them, which they did not return themselves.
//
// A Node has one set of implicit operations, for all goroutines that use it: what others
// begin meanwhile may be waited for, too, and the first SyncImplicit of them gets a failure. A lane
// ([Node.Lane]) has a set of its own where the conduit has lanes, and elsewhere shares that
// of the rank. Sets for parts of a program are extended.Region, of [Node.Layers].
//
// It costs a load where nothing is under way. A rank whose function returns with
// implicit operations under way does not hear of their failures.
func (n *Node) SyncImplicit() error { return n.x.Implicit().Sync(extended.All) }

// SyncImplicitRank is SyncImplicit for the operations towards rank, which is enough before
// own accesses to words there that they are about. It also waits for those towards ranks
// whose number differs from rank's by a multiple of eight.
func (n *Node) SyncImplicitRank(rank int) error { return n.x.Implicit().SyncRank(rank, extended.All) }

// PutNBI begins to store v, implicitly: [Node.SyncImplicit] waits for it. The copy of v is
// taken before it returns.
func (p Ptr[T]) PutNBI(n *Node, v T) error {
	if q, ok := n.writable(p.w, uint64(unsafe.Sizeof(v))); ok {
		*(*T)(q) = v
		return nil
	}
	return putNBISlow(n, p.w, v)
}

//go:noinline
func putNBISlow[T any](n *Node, w uint64, v T) error {
	const op = "gas: PutNBI"
	if size, ok := wordSize[T](w); ok {
		if err := n.check(op, w, size); err != nil {
			return err
		}
		return n.x.Implicit().PutValueNBI(wordRank(w), wordNLA(w), wordOf(v), int(size))
	}
	b, spare := scratch[T]()
	b[0] = v
	src := bytesOf(b)
	if err := n.check(op, w, uint64(len(src))); err != nil {
		return err
	}
	err := n.x.Implicit().PutNBI(wordRank(w), wordNLA(w), src)
	if err == nil { // PutNBI has copied it
		spare.put()
	}
	return err
}

// GetNBI begins to load *p into *dst, implicitly: dst must be left alone until
// [Node.SyncImplicit] has waited for it.
func (p Ptr[T]) GetNBI(n *Node, dst *T) error {
	return p.GetSliceNBI(n, unsafe.Slice(dst, 1))
}

// PutSliceNBI begins to store the elements of src at p and after it, implicitly: src must
// be left alone until [Node.SyncImplicit] has waited for it.
func (p Ptr[T]) PutSliceNBI(n *Node, src []T) error {
	b := bytesOf(src)
	if n.putDirect(p.w, b) {
		return nil
	}
	if err := n.check("gas: PutSliceNBI", p.w, uint64(len(b))); err != nil {
		return err
	}
	return n.x.Implicit().PutBulkNBI(p.Rank(), p.NLA(), b)
}

// GetSliceNBI begins to load len(dst) elements from p on into dst, implicitly: dst must be
// left alone until [Node.SyncImplicit] has waited for it.
func (p Ptr[T]) GetSliceNBI(n *Node, dst []T) error {
	b := bytesOf(dst)
	if n.getDirect(p.w, b) {
		return nil
	}
	if err := n.check("gas: GetSliceNBI", p.w, uint64(len(b))); err != nil {
		return err
	}
	return n.x.Implicit().GetNBI(p.Rank(), p.NLA(), b)
}

// Add adds d to *p atomically, wakes the waiters of p's rank, and returns when that has
// happened: it is FetchAdd without the result.
func Add[T Number](n *Node, p Ptr[T], d T) error {
	_, err := FetchAdd(n, p, d)
	return err
}

// StoreNBI begins a [Store], implicitly: [Node.SyncImplicit] waits for it.
func StoreNBI[T any](n *Node, p Ptr[T], v T) error {
	if n.atomicAt(p.w, uint64(unsafe.Sizeof(v))) != nil {
		return Store(n, p, v)
	}
	t, ok := wordType[T]()
	if !ok {
		return notWord[T](implicitNames[conduits.AtomicStore])
	}
	return n.atomicNBI(p.w, conduits.AtomicStore, t, toBits(v))
}

// AddNBI begins to add d to *p atomically, implicitly: [Node.SyncImplicit] waits until that
// has happened. Operations of one goroutine on one word take effect in any order. Over a
// network many are under way at once: between two ranks over udp on a loopback one of a
// hundred takes 0.5 us, and one that is waited for by itself 12 (BenchmarkAdds).
func AddNBI[T Number](n *Node, p Ptr[T], d T) error {
	if n.atomicAt(p.w, uint64(unsafe.Sizeof(d))) != nil {
		return Add(n, p, d)
	}
	return n.atomicNBI(p.w, conduits.AtomicAdd, extended.TypeOf[T](), toBits(d))
}

// AndNBI begins to replace *p atomically by *p & m, as AddNBI adds.
func AndNBI[T Integer](n *Node, p Ptr[T], m T) error {
	return computeNBI(n, p, conduits.AtomicAnd, m, FetchAnd[T])
}

// OrNBI begins to replace *p atomically by *p | m, as AddNBI adds.
func OrNBI[T Integer](n *Node, p Ptr[T], m T) error {
	return computeNBI(n, p, conduits.AtomicOr, m, FetchOr[T])
}

// XorNBI begins to replace *p atomically by *p ^ m, as AddNBI adds.
func XorNBI[T Integer](n *Node, p Ptr[T], m T) error {
	return computeNBI(n, p, conduits.AtomicXor, m, FetchXor[T])
}

// MinNBI begins a [FetchMin] without its result, as AddNBI adds.
func MinNBI[T Number](n *Node, p Ptr[T], v T) error {
	return computeNBI(n, p, conduits.AtomicMin, v, FetchMin[T])
}

// MaxNBI begins a [FetchMax] without its result, as AddNBI adds.
func MaxNBI[T Number](n *Node, p Ptr[T], v T) error {
	return computeNBI(n, p, conduits.AtomicMax, v, FetchMax[T])
}

// computeNBI begins op without its result; now is the operation where p is in reach.
func computeNBI[T Number](n *Node, p Ptr[T], op conduits.AtomicOp, v T, now func(*Node, Ptr[T], T) (T, error)) error {
	if n.atomicAt(p.w, uint64(unsafe.Sizeof(v))) != nil {
		_, err := now(n, p, v)
		return err
	}
	return n.atomicNBI(p.w, op, extended.TypeOf[T](), toBits(v))
}

var implicitNames = [conduits.NumAtomicOps]string{
	conduits.AtomicStore: "gas: StoreNBI", conduits.AtomicAdd: "gas: AddNBI", conduits.AtomicAnd: "gas: AndNBI",
	conduits.AtomicOr: "gas: OrNBI", conduits.AtomicXor: "gas: XorNBI",
	conduits.AtomicMin: "gas: MinNBI", conduits.AtomicMax: "gas: MaxNBI",
}

// atomicNBI begins an atomic that the conduit carries.
//
//go:noinline
func (n *Node) atomicNBI(w uint64, op conduits.AtomicOp, t conduits.AtomicType, v uint64) error {
	name := implicitNames[op]
	if err := n.check(name, w, uint64(t.Size())); err != nil {
		return err
	}
	if err := conduits.CheckAtomic(name, op, t, wordNLA(w)); err != nil {
		return err
	}
	return n.x.Implicit().AtomicBitsNBI(wordRank(w), wordNLA(w), op, t, v, 0)
}
