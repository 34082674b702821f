// Package extended is the one-sided interface for generated code: put, get,
// memory set, atomics, signals and locks on the memory of other ranks, without the
// remote program taking part (GASNet-1 specification, "Extended API";
// Nüssle 2008, sections 7.4 and 7.5).
//
// Everything is a plain method with plain arguments. The local side of a
// transfer is any memory, the Go heap included; the remote side, which puts and gets
// name first, is a rank and a network logical address, of one of three kinds, which
// every operation takes:
//
//   - in the segment that the rank attached;
//   - of memory that the rank has registered (segment.ATU);
//   - exposed: of memory that [Initiator.Expose] has given addresses to, which is
//     registered only while others use it. See below.
//
// Where the
// rank's segment can be reached by load and store (the same process or host),
// blocking operations, value forms and atomics are the load, store or locked
// instruction itself behind one comparison that checks bounds and rights; they
// allocate nothing. Everything else goes through the conduit.
//
// # Set-up
//
// The handler tables and the completer must exist before the job is attached,
// so an Initiator is made in two steps:
//
//	x := extended.New(extended.Config{})
//	e, err := am.Attach(ep, am.Config{Runtime: x.Handlers(), Completer: x, Exposer: x, SegmentSize: 1 << 20})
//	...
//	x.Bind(e)
//
// With exposed memory there are a firehose.Space and a firehose.Cache beside it,
// whose handlers are among those of the Initiator; after a barrier the cache is
// bound, too:
//
//	space, err := firehose.NewSpace(ep.ATU, bucket)
//	cache, err := firehose.NewCache(firehose.Config{Memory: space, Bucket: bucket, ...})
//	x := extended.New(extended.Config{Firehose: cache, Space: space})
//	...
//	err = cache.Bind(e)
//
// # Completion
//
// A blocking operation is complete when it returns: a put is visible at the
// target, a get's data is there. The NB forms return a [Handle] for [Initiator.Wait],
// [Initiator.Try] and their list forms; the zero Handle says that the operation
// is complete already, which is what one gets wherever memory can be reached
// directly ([Config].AlwaysHandle changes that). The NBI forms count in a
// [Region]. Until a non-blocking operation is synchronized
//
//   - a bulk put, and any put of a Shape, still reads its
//     source. PutNB and PutNBI do not: they return when it may be reused;
//   - a get's destination and an atomic's result are undefined;
//   - it is undefined in which order it and others take effect.
//
// That is so of the accesses of one goroutine to one word, too. Before a get of what a put
// has written, or a put where another one or a get is under way, synchronize with the rank
// that the word is of: [Region.SyncRank]. It costs a load where nothing is under way.
//
// A Shape describes a strided, indexed or vector transfer; the lists that it was
// made of are not looked at after the call that uses it.
// Source and destination of one operation must not overlap, but for those of Copy.
//
// # Memory model
//
// This holds for all layers: package gas adds nothing but names.
//
// Values of 1, 2, 4 and 8 bytes at a multiple of their size (PutValue, GetValue and
// their kin), and puts and gets of 8 aligned bytes of a segment, are single-copy atomic: a load
// yields what one store has written, never a mixture, and a store changes no other
// byte; puts and gets of bytes of registered and exposed memory, and runs of a Shape, promise none of that. Values are relaxed: they order nothing, and
// neither does any other put or get.
// Without what follows, others may see the accesses of a goroutine in any order, also
// a load before a store that came first.
//
// Atomics (Load, Store, Swap, CompareAndSwap, the Fetch forms and those without
// result, the forms that take an AtomicOp, Signal, the signals of PutSignal and GetSignal) are
// sequentially consistent: there is one order of all of them, by all ranks and on all
// words, in which those of one goroutine stand as in its program and a load yields
// what the last store before it has written. This is so whether they are direct
// accesses or go through a conduit. An NB or NBI form has a place in that order between
// its call and its synchronization. Atomics also order other accesses:
//
//   - An atomic releases: a rank that sees its effect, by an atomic, WaitUntil or TestUntil
//     on that word, which acquire, also sees all that its caller put, and
//     synchronized, before.
//   - An active message or a barrier after a completed put does the same for the
//     handler and for every rank after the barrier.
//   - A lock is an atomic when it is taken and one when it is given back: its next
//     holder sees what the last one did.
//   - Fence is a full barrier for the direct accesses of the calling goroutine, by
//     this package, by gas or in the memory that Direct returns: every one before it
//     comes before every one after it, stores before loads too. Values with a Fence
//     between any two are sequentially consistent. What goes through a conduit needs
//     none: a blocking operation has taken effect when it returns. Programs whose
//     flags are atomics need no Fence.
//
// So, with words that are 0 at first (TestLitmus looks for the opposite):
//
//	store buffering      x=1, reads y | y=1, reads x     never both 0
//	message passing      x=1, y=1 | reads y, reads x     never 1, then 0
//	load buffering       reads x, y=1 | reads y, x=1     never both 1
//	independent reads    x=1 | y=1 | reads x, reads y | reads y, reads x
//	of independent       never both 1, then 0
//	writes
//
// if all accesses are atomics, or values with a Fence between them; in message passing
// it is enough that y is an atomic.
//
// In Go's terms atomics, messages and barriers are synchronized-before. When the ranks
// are goroutines of one process and conduit shm joins them, segments are of the Go heap
// and all direct accesses are plain loads, stores and copies of this package, so the race
// detector sees them and reports puts and gets that nothing but a Fence orders. It sees
// nothing of segments elsewhere, which are mapped.
//
// The words that atomics work on must not be put to, or got from, at the same
// time, but for values of their own size, which are then relaxed accesses (and
// races to the detector). Atomics of different types or sizes must not be mixed
// on one word concurrently.
//
// # Locks
//
// A lock is three words, LockSize bytes, anywhere in memory that its users may access
// with atomics, and [Initiator.LockAt] names it by rank and address: there is
// nothing to make and nothing to free. Requests that have to wait are kept in a queue and
// granted in its order, without a message meanwhile; goroutines that wait have their places in memory of
// their own rank, see Config.LockMemory. One that runs what package am has put off (a task)
// while it waits is passed over until that has returned. A lock of this rank that is free is
// taken and given back by atomic instructions and the rank's own table of what it
// holds; a wait names the rank that holds the lock.
//
// # Exposed memory
//
// Memory of any size may be exposed; how much of it is registered at a time, the
// firehoses' budget limits. An access by another rank takes one of these ways:
//
//	firehose  it is attached: the conduit's operation, as on registered memory
//	miss      one is attached first, or moved, by one round trip
//	bounce    the owner copies: data travels in active messages
//	register  the owner registers just this memory for just this access
//
// Measured: a blocking put by shm and by udp, microseconds of processor time of
// both ranks together, which are goroutines of one process on one processor
// (go test -bench Exposed -cpu 1, cpu-ns/op; least of five and of three), buckets
// of 64 KiB:
//
//	         shm                                udp
//	bytes    firehose   miss  bounce  register  firehose   miss  bounce  register
//	8            0.04    2.0    0.53       2.1        25     34      16        37
//	1024         0.05    2.4    0.60       2.3        26     36      15        36
//	4096         0.08    2.7    0.66       2.1        27     44      15        39
//	16384        0.45    3.1     1.3       3.2        31     38      44        58
//	65536         1.7    7.7     3.7       4.8        43     87     151        86
//	256 KiB       6.5     24      14       9.9       154    199     441       161
//	1 MiB          28     88      57        30       514    982    2899       428
//	4 MiB         147    401     326       102      3180   3571    6334      2839
//
// The misses on shm were taken later than the rest, that of 8 bytes last, when
// blocking operations of up to 4 KiB waited for their pin themselves; those of 1,024 and
// 4,096 bytes are of the time before.
//
// Put, Get, value forms and atomics that miss, of up to 4 KiB of a rank in reach of load and
// store, ask the owner, wait and access the memory themselves; everything else goes
// through queues. Between two processes a put of 8 bytes that misses then takes
// 2.0 us, and 3.5 through queues: gasbench's firehose/targets, medians of runs that were taken
// in turn, in which a round trip of a short message takes 0.4 us, and one with a
// registration, and the end of another, in its handler 1.2. That is some 3 round
// trips beyond the registration instead of 6.5. Of the rest 0.2 to 0.3 us are the put
// itself, which finds nothing of that bucket in any cache; a hit takes a tenth.
//
// A miss costs more than an access that leaves no firehose behind, and is worth it
// if others follow. So strategy [firehose.Adaptive] has a firehose attached when a bucket is
// touched for the second time while it is remembered (among 1,024 of them). The
// first time what has at most [firehose.DefaultBounceMax] bytes is bounced, and what has
// 64 KiB is registered, for on shm that takes less than a miss, and on udp the
// same; in between the conduits disagree, and it is pinned at once. From
// [firehose.DefaultOnceMin] on registration costs no more than a firehose that is attached,
// and drives no other away; where the budget has no room for it, it goes bucket by
// bucket.
//
// A hit of 8 bytes on shm takes 40 ns, where the conduit's own put to registered
// memory takes 22, to the segment 7, and load and store 4 (the same benchmark). It
// allocates nothing.
//
// Non-blocking operations do not wait for firehoses: their round trips overlap. But
// PutNB and PutNBI of more than 64 KiB (4 KiB to ranks in reach of load and store),
// which are not copied, have to wait for the put itself if the memory is not
// pinned.
//
// Nothing goes on between calls: what waits for a firehose, or for credit to
// bounce, goes on when a goroutine of the rank waits or polls by this package.
//
// Memory that an owner conceals is refused from then on, with an error that matches
// segment.ErrFault, and firehose.ErrNotExposed if nothing is exposed there at all;
// so is memory that it has not granted. An access that is refused by a firehose asks the
// owner once more, since firehoses may be older than what is there. A refusal may
// come after a part of a large access has been done, and lists of addresses and
// boxes are not checked as a whole: the owner checks. The same holds for
// registered memory.
//
// Exposed memory may begin at any byte, but atomics need it to be aligned.
//
// # Concurrency and handlers
//
// An Initiator may be used by many goroutines. A handler of an active message
// may use what completes at once by direct access (the zero Handle's case),
// Signal included, because that does not wait; it must not use anything that
// goes through the conduit, nor Wait, Sync, WaitUntil, locks and the like, which fail
// there.
//
// # Failure
//
// Arguments are checked before anything is moved: a rank out of range, an
// address that is of none of the three kinds or across the end of the segment,
// missing rights to the segment, an unaligned atomic, a handle that is not
// outstanding give ErrBadArg with the value and the limit. What is wrong with an
// address of registered or exposed memory, its owner finds: such an operation, or
// its handle, fails with segment.ErrFault, which matches ErrBadArg. The 65,537th
// handle gives ErrResource. When a rank has died, what is under way towards it ends
// with an error that matches ErrPeer when it is synchronized, and all waiters are
// woken with the job's failure; direct access does not notice, as the memory stays.
// Using an Initiator before Bind gives ErrNotInit, and exposed addresses without
// Config.Firehose ErrNotSupported.
package extended
