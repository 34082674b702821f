// Package segment has the addresses of remote memory and the bookkeeping behind
// them: network logical addresses, address tables, and the shared heap.
//
// # Concepts
//
// Every rank attaches one segment: memory that is zero at first, never moves, and that
// peers may read, write and update one-sidedly. Where ranks are goroutines of one
// process and shared memory joins them it is of the Go heap, for the race detector to
// see; elsewhere it is mapped. A byte of it is named
// by its rank and a network logical address, [NLA]. Absolute addresses never
// leave a rank. The attach segment occupies consecutive NLAs from [AttachBase]
// on, so arithmetic on an NLA is arithmetic on the segment.
//
// Addresses are of one of three kinds, which all fit 40 bits:
//
//	from AttachBase on, as many as the segment has bytes   the attach segment; no table, a View's comparison
//	below AttachBase, and in runs above the segment        registered by the ATU; the owner's tables, at each access
//	from ExposedBase on (bit 39)                           exposed by a firehose.Space; package extended, by an address of the second kind
//
// The comparison with a View's size refuses the other two kinds along with wrong
// addresses, so that the fast path is not an instruction longer for them.
//
// An NLA is translated by its owner's [Tables]: the GAT number selects a global
// address table, the entry field one 64-bit [Entry] in it, which holds the
// page's frame, the rank it is granted to, and the [Rights] (Nüssle 2008, section
// 5.3). A refused access is a [FaultError], the remote equivalent of a
// segmentation fault.
//
// Memory beside the attach segment, of the Go heap or mapped, gets addresses by
// [ATU.Register] and loses them by [ATU.Deregister], after which no peer reaches
// it: the flush protocol of Nüssle 2008. Pages that are registered alone have
// their addresses in table 0, others in runs above the attach segment. A whole
// registration and its end take 0.44 us for a page, 1.2 us for 256 KiB, 35 us
// for 16 MiB (BenchmarkRegister; the card of Nüssle 2008 begins at 2 us for either).
//
// Tables may lie in memory that processes share ([ATUConfig.Place]): a peer then
// translates by a [Reader], which trusts nothing that it finds there, and reaches
// the memory by the frames that [Frames] have had entered: pages of a shared file
// or of the owner's address space. A [Registrar] is told what is registered, for
// cards that have keys of their own.
//
// Ranks that share a segment with their host's other ranks need no table: a
// [View] is the segment as plain memory, with bounds and rights folded into one
// comparison per access.
//
// [Heap] allocates blocks of a segment: for one rank by itself (Alloc), or for
// all ranks at the same address (AllocCollective). [Layout] and [Shared] are the
// arithmetic of UPC's shared arrays, for any block size.
//
// # Duties of the caller
//
// Only pointer-free values may be stored in a segment: the garbage collector
// does not look there. A Heap never touches the memory it hands out; contents
// are whatever was there before. Freed memory may be handed out again at once:
// the caller of free makes sure that no peer still uses it.
//
// Memory that is registered and mapped is not unmapped but by [ATU.Unmap], or
// after [ATU.Withdraw]; memory of the Go heap needs nothing: it stays as long as
// it is registered, also if the program forgets it.
//
// The memory of a View is shared. Its slices stay valid until the endpoint is
// closed; peers change their contents at any time.
//
// # Failure
//
// Errors name the value, the limit and the knob, and match the sentinels of
// every layer: what is out of bounds, not permitted or not allocated is
// ErrBadArg, no room is ErrResource. Nothing in this package panics on a
// caller's bad argument, except View.Bytes on a View that was made up.
package segment
