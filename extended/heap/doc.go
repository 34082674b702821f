// Package heap is a shared heap of which any rank allocates, and to which any rank
// frees, memory of any rank's segment, without that rank's program taking part: what
// upc_alloc and upc_free of UPC 1.3 need for memory that one thread has allocated. It is
// for compilers and runtimes that use package am without package gas.
//
// Blocks of different ranks have nothing to do with each other: an upc_global_alloc, whose
// blocks lie at the same place on all ranks, needs an allocator that knows the
// whole job, for example one rank's segment.Heap, asked by messages.
//
// # Set-up
//
// Each rank has a [segment.Heap] of a part of its segment, made with its addresses and
// sizes before the job is attached, which may differ between ranks:
//
//	own, err := segment.NewHeap(segment.AttachBase, size)
//	h := heap.New(own)
//	e, err := am.Attach(ep, am.Config{Runtime: h.Handlers(), SegmentSize: size})
//	...
//	h.Bind(e)
//
// A barrier, or what else makes sure that all ranks have attached, comes before the first
// call. The rank may use own besides, at any time: by its AllocCollective all ranks get
// memory at the same offsets (upc_all_alloc), with nothing sent; all ranks give it back by
// own.FreeCollective, and Free refuses it.
//
// # What a call does
//
// [Heap.Alloc] and [Heap.Free] for the own rank are those of own, under its mutex. For
// another rank they send one active message to it, whose answer they wait for: a round
// trip, in which the calling goroutine runs handlers. The owner answers when it polls or
// waits. Blocks are aligned to 16 bytes, those of 64 bytes and more to 64, and have the
// contents that the memory had. All bookkeeping is at the owner, in memory of the Go heap
// that no peer writes to.
//
// A block belongs to the rank that has allocated it, or to others that it has told; one
// of them frees it, when none of them uses it any more and its puts to it are complete.
//
// # Concurrency
//
// All methods may be called by many goroutines at once. In a handler calls for the own rank
// are allowed; those for other ranks wait, and fail the job there.
//
// # Failure
//
// Without room the error matches [ErrResource] and names the rank, the size, the largest
// free block and the knob. What is freed twice, or was never allocated, is an error that
// matches [segment.ErrDoubleFree] or [segment.ErrNotAllocated], which are [ErrBadArg]; what
// lies there instead is said, and nothing changes. Errors are the same for the own rank
// and for others. If the owner fails or leaves, or another rank
// fails the job, calls that wait return a *[PeerError] in their error; whether the
// owner has done what was asked is not known then. Calls before Bind are [ErrNotInit].
package heap
