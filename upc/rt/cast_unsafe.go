// Castability and timers. What is unsafe here: a pointer to the memory that package extended
// gives as bytes.

package rt

import "unsafe"

// Castable is the memory of a thread that may be cast to pointers-to-local (7.7).
type Castable uint32

// The kinds of memory: UPC_CASTABLE_ALL_ALLOC and so on.
const (
	CastableAllAlloc Castable = 1 << iota
	CastableGlobalAlloc
	CastableAlloc
	CastableStatic

	CastableAll = CastableAllAlloc | CastableGlobalAlloc | CastableAlloc | CastableStatic
)

// ThreadInfo is upc_thread_info_t (7.7.2.2).
type ThreadInfo struct {
	Guaranteed Castable // guaranteedCastable
	Probable   Castable // probablyCastable
}

// Info is upc_thread_info (7.7.2.2): all memory of threads that are reached by load and store
// is castable, and none of others.
func (t *Thread) Info(thread int) ThreadInfo {
	if thread == t.me || t.n.Neighbour(thread) {
		return ThreadInfo{CastableAll, CastableAll}
	}
	return ThreadInfo{}
}

// Cast is upc_cast (7.7.2.1): size bytes at p, of any thread, as memory of this process, or nil
// if they cannot be had so.
func (t *Thread) Cast(p Phaseless, size int) unsafe.Pointer {
	if p == 0 || size == 0 {
		return nil
	}
	return unsafe.Pointer(unsafe.SliceData(t.memory(p, size)))
}

// TicksNow is upc_ticks_now (7.5.2.1): nanoseconds since some time before the program's start; of
// a simulated program, of its virtual time.
func (t *Thread) TicksNow() uint64 { return uint64(t.n.Now()) }

// TicksToNS is upc_ticks_to_ns (7.5.2.2).
func TicksToNS(ticks uint64) uint64 { return ticks }
