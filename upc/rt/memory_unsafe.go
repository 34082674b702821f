// Accesses to shared memory. What is unsafe here: pointers into a segment, made as package gas
// makes them, from a view's base and an offset that was compared with its limits; and values
// of scalar types as bytes.

package rt

import (
	"unsafe"

	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/upc/races"
	"github.com/argon-go/argon/segment"
)

const allOps = extended.All

// Scalar are the types whose values are accessed at once: those of C, and packed pointers.
type Scalar interface {
	~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64
}

const base = uint64(segment.AttachBase)

// writable is the size bytes at p for storing, or false if they are not reached so.
func (t *Thread) writable(p Phaseless, size uintptr) (unsafe.Pointer, bool) {
	return t.views.Write(uint64(p>>addrBits), (uint64(p)-base)&addrMask, uint64(size))
}

// readable is writable for loading.
func (t *Thread) readable(p Phaseless, size uintptr) (unsafe.Pointer, bool) {
	return t.views.Read(uint64(p>>addrBits), (uint64(p)-base)&addrMask, uint64(size))
}

// Get is a relaxed read of the T at p.
func Get[T Scalar](t *Thread, p Phaseless) (v T) {
	if checked {
		saw(t, p, int(unsafe.Sizeof(v)), races.Reads)
	}
	if q, ok := t.readable(p, unsafe.Sizeof(v)); ok {
		return *(*T)(q)
	}
	return getSlow[T](t, p)
}

// Put is a relaxed write to the T at p. It has taken effect when it returns.
func Put[T Scalar](t *Thread, p Phaseless, v T) {
	if checked {
		saw(t, p, int(unsafe.Sizeof(v)), races.Writes)
	}
	if q, ok := t.writable(p, unsafe.Sizeof(v)); ok {
		*(*T)(q) = v
		return
	}
	putSlow(t, p, v)
}

//go:noinline
func getSlow[T Scalar](t *Thread, p Phaseless) T {
	t.there("read", p)
	var v T
	w, err := t.x.GetValue(p.Thread(), p.Addr(), int(unsafe.Sizeof(v)))
	t.must(err)
	return fromWord[T](w)
}

//go:noinline
func putSlow[T Scalar](t *Thread, p Phaseless, v T) {
	t.there("write", p)
	t.must(t.x.PutValue(p.Thread(), p.Addr(), toWord(v), int(unsafe.Sizeof(v))))
}

// there fails the thread if p is null.
func (t *Thread) there(what string, p Phaseless) {
	if p == 0 {
		t.must(errs.BadArg("upc: %s through a null pointer-to-shared%s", what, t.whyNull()))
	}
}

// whyNull lists the likely sources of a null pointer, for an error that names one.
func (t *Thread) whyNull() string {
	if t.noRoom == "" {
		return ""
	}
	return "; before, " + t.noRoom
}

// toWord is v's bytes as a number, as the value forms of package extended take it.
func toWord[T Scalar](v T) uint64 {
	switch p := unsafe.Pointer(&v); unsafe.Sizeof(v) {
	case 1:
		return uint64(*(*uint8)(p))
	case 2:
		return uint64(*(*uint16)(p))
	case 4:
		return uint64(*(*uint32)(p))
	default:
		return *(*uint64)(p)
	}
}

// fromWord is the inverse of toWord.
func fromWord[T Scalar](w uint64) (v T) {
	switch p := unsafe.Pointer(&v); unsafe.Sizeof(v) {
	case 1:
		*(*uint8)(p) = uint8(w)
	case 2:
		*(*uint16)(p) = uint16(w)
	case 4:
		*(*uint32)(p) = uint32(w)
	default:
		*(*uint64)(p) = w
	}
	return v
}

// GetStrict is a strict read of the T at p. It also answers other threads' messages, so that
// a loop may wait for a value by it.
func GetStrict[T Scalar](t *Thread, p Phaseless) T {
	t.Fence()
	var v T
	if checked {
		v = getSettled[T](t, p)
	} else {
		v = Get[T](t, p)
	}
	t.x.Fence()
	t.n.Poll()
	return v
}

// getSettled is a strict read that comes after the writes that it has seen, and no others: it reads once more
// what is written meanwhile, unless that does not end.
func getSettled[T Scalar](t *Thread, p Phaseless) (v T) {
	const most = 100
	for range most {
		t.races.Reads(t.me, uint64(p))
		t.strict = true
		v = Get[T](t, p)
		t.strict = false
		if t.races.Settled(t.me, uint64(p)) {
			break
		}
		t.n.Poll()
	}
	t.races.Acquire(t.me, uint64(p), int(unsafe.Sizeof(v)))
	return v
}

// Poll answers other threads' messages. A loop that waits for a relaxed write to this thread's
// own memory calls it, since reading that gives messages no chance to arrive.
func (t *Thread) Poll() { t.n.Poll() }

// PutStrict is a strict write to the T at p.
func PutStrict[T Scalar](t *Thread, p Phaseless, v T) {
	t.Fence()
	if checked {
		t.races.Release(t.me, uint64(p), int(unsafe.Sizeof(v)))
		t.races.Writes(t.me, uint64(p))
		t.strict = true
	}
	Put(t, p, v)
	if checked {
		t.races.Writes(t.me, 0)
		t.strict = false
	}
	t.x.Fence()
}

// Fence is upc_fence: a strict reference to no memory (UPC 1.3, 6.6.1).
func (t *Thread) Fence() {
	if err := t.x.Implicit().Sync(allOps); err != nil {
		t.must(err)
	}
	t.x.Fence()
}

// PutAsync is a relaxed write that may take effect later, up to the next strict access, fence,
// barrier or lock. Until then, or until SyncThread, the thread does not access that memory in
// another way: a compiler that cannot tell calls SyncThread before.
func PutAsync[T Scalar](t *Thread, p Phaseless, v T) {
	if q, ok := t.writable(p, unsafe.Sizeof(v)); ok {
		*(*T)(q) = v
		return
	}
	putAsyncSlow(t, p, v)
}

//go:noinline
func putAsyncSlow[T Scalar](t *Thread, p Phaseless, v T) {
	t.there("write", p)
	t.must(t.x.Implicit().PutValueNBI(p.Thread(), p.Addr(), toWord(v), int(unsafe.Sizeof(v))))
}

// GetAsync begins a relaxed read: *v is the T at p after the next of what PutAsync says, and
// must be left alone until then.
func GetAsync[T Scalar](t *Thread, p Phaseless, v *T) {
	t.there("read", p)
	t.must(t.x.Implicit().GetNBI(p.Thread(), p.Addr(), unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))))
}

// SyncThread completes what PutAsync and GetAsync have begun towards thread.
func (t *Thread) SyncThread(thread int) { t.must(t.x.Implicit().SyncRank(thread, allOps)) }

// Local is the cast of p to a pointer-to-local (6.4.3p4): size bytes at p, which have affinity
// to the calling thread, as memory of this process. nil for null; memory of another thread,
// which UPC leaves undefined, ends the job.
func (t *Thread) Local(p Phaseless, size int) unsafe.Pointer {
	if p == 0 {
		return nil
	}
	if p.Thread() != t.me {
		t.must(errs.BadArg("upc: cast of %v to a pointer-to-local by thread %d", p, t.me))
	}
	return unsafe.Pointer(unsafe.SliceData(t.memory(p, size)))
}

// LocalSlice is Local for count elements.
func LocalSlice[T Scalar](t *Thread, p Phaseless, count int) []T {
	var v T
	size := int(unsafe.Sizeof(v))
	if uint(count) > MaxShared {
		t.must(errs.BadArg("upc: %d elements at %v: a thread has at most %d bytes of shared memory", count, p, uint64(MaxShared)))
	}
	return unsafe.Slice((*T)(t.Local(p, count*size)), count)
}

// memory is size bytes at p as memory of this process, if the thread is reached by load and
// store.
func (t *Thread) memory(p Phaseless, size int) []byte {
	b := t.x.Direct(p.Thread(), p.Addr(), uint64(size))
	if b == nil && p.Thread() == t.me {
		t.must(errs.BadArg("upc: %d bytes at %v are beyond the end of the thread's shared memory", size, p))
	}
	return b
}

// Bytes is size bytes of private memory from p on, as the calls of the library take it.
func Bytes(p unsafe.Pointer, size int) []byte { return unsafe.Slice((*byte)(p), size) }
