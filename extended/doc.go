// Package extended is the one-sided interface for generated code: put, get,
// memory set, atomics and signals on the segments of other ranks, without the
// remote program taking part (GASNet-1 specification, "Extended API"; seed
// thesis, sections 7.4 and 7.5).
//
// Everything is a plain method with plain arguments. The local side of a
// transfer is any memory, the Go heap included; the remote side is a rank and a
// network logical address in the segment that this rank attached. Where the
// rank's segment can be reached by load and store (the same process or host),
// blocking operations, value forms and atomics are the load, store or locked
// instruction itself behind one comparison that checks bounds and rights; they
// allocate nothing. Everything else goes through the conduit.
//
// # Set-up
//
// The handler tables and the completer must exist before the job is attached,
// so an Endpoint is made in two steps:
//
//	x := extended.New(extended.Config{})
//	e, err := am.Attach(ep, am.Config{Runtime: x.Handlers(), Completer: x, SegmentSize: 1 << 20})
//	...
//	x.Bind(e)
//
// # Completion
//
// A blocking operation is complete when it returns: a put is visible at the
// target, a get's data is there. The NB forms return a [Handle] for [Endpoint.Wait],
// [Endpoint.Try] and their list forms; the zero Handle says that the operation
// is complete already, which is what one gets wherever memory can be reached
// directly ([Config].AlwaysHandle changes that). The NBI forms count in a
// [Region]. Until a non-blocking operation is synchronized
//
//   - a bulk put, and any strided, indexed or vector put, still reads its
//     source. PutNB and PutNBI do not: they return when it may be reused;
//   - a get's destination and an atomic's result are undefined;
//   - it is undefined in which order it and others take effect.
//
// Lists of strides, counts, addresses and slices are consumed by the call.
// Source and destination of one operation must not overlap.
//
// # Memory model
//
// An aligned 8-byte put or get, and value forms of 1, 2, 4 and 8 bytes at a
// multiple of their size, are single-copy atomic: who reads sees the old or the
// new value, never a mixture. They order nothing. Neither does any other put or
// get. What orders is:
//
//   - An atomic, Signal or PutSignal releases: whoever sees its effect, by an
//     atomic, WaitUntil or TestUntil on that word, which acquire, also sees all
//     that its caller put, and synchronized, before.
//   - An active message or a barrier after a completed put: the handler, and
//     every rank after the barrier, sees it.
//   - Fence orders direct accesses of one goroutine. It is needed only by
//     programs that build their own protocols of plain puts and gets.
//
// In Go's terms the first two are synchronized-before. When the ranks are
// goroutines of one process, segments are Go memory and all direct accesses are
// plain loads, stores and copies of this package, so the race detector sees
// them and reports puts and gets that nothing orders. Across processes it sees
// nothing of the segments.
//
// The words that atomics work on must not be put to, or got from, at the same
// time, but for values of their own size, which are then relaxed accesses (and
// races to the detector). Atomics of different types or sizes must not be mixed
// on one word concurrently.
//
// # Concurrency and handlers
//
// An Endpoint may be used by many goroutines. A handler of an active message
// may use what completes at once by direct access (the zero Handle's case),
// Signal included, because that does not wait; it must not use anything that
// goes through the conduit, nor Wait, Sync, WaitUntil and the like, which fail
// there.
//
// # Failure
//
// Arguments are checked before anything is moved: a rank out of range, an
// address before, after or across the end of the segment, missing rights, an
// unaligned atomic, a handle that is not outstanding give ErrBadArg with the
// value and the limit. The 65,537th handle gives ErrResource. When a rank has
// died, what is under way towards it ends with an error that matches ErrPeer
// when it is synchronized, and whoever waits is woken with the job's failure;
// direct access does not notice, as the memory stays. Using an Endpoint before
// Bind gives ErrNotInit.
package extended
