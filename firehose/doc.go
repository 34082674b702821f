// Package firehose reaches memory of other ranks that is too large to be
// registered all at once: the algorithm of Bell and Bonachea ("A new DMA
// registration strategy for pinning-based high performance networks", 2003).
//
// # Concepts
//
// Every rank may have M bytes of its memory pinned, that is, registered with its
// address translation unit, at any moment. M, less a part for its own local pins,
// is divided among its peers in buckets of a power of two pages. A peer's share
// are its firehoses: as long as a firehose is attached to a bucket, the bucket
// stays pinned, and the peer reaches it without asking. RemotePin of memory whose
// buckets all have firehoses (a hit) costs a look-up. Otherwise (a miss) one
// request to the owner, and its reply, attach firehoses that are free, or move
// such as are idle from their buckets to the new ones.
//
// A bucket that no firehose is attached to any more stays pinned at its owner
// until the room is needed: to unpin lazily costs nothing, and the next firehose
// or local pin may find it still there.
//
// Memory is addressed by [Addr], numbers that its owner has given it: [Space]
// gives them to slices and mapped memory and pins buckets of these by a
// segment.ATU. Absolute addresses do not leave a rank.
//
// [Machine] is the protocol alone, without I/O, locks or goroutines; [Cache] drives
// it over active messages.
//
// # Duties of the caller
//
// A region is in use from the pin to Release; a bucket in use is not moved. So
// whoever pins must release, and must come to that without waiting for other
// pins, except in this order: first a remote pin, then a local one. One remote
// and one local region at a time, per operation. Who needs more, or another
// order, uses TryRemotePin and TryLocalPin, which do not wait, and releases all
// before waiting when they fail.
//
// An access that faults although its region is pinned tells that the owner took
// the memory back: the caller says so by Stale, and pins anew, which says whether
// the memory is there again.
//
// # Deadlock
//
// Nobody waits for ever, provided that every rank polls, and that every region is
// released in the end. The argument:
//
// 1. An owner answers every request at once. A rank holds at most its share of
// firehoses at each owner: the owner checks it; and a request never relies on
// one that is still under way, since it gives up at least as many firehoses as it
// asks for beyond those that are free (so the requests under way may overtake
// each other, too). What is locally pinned is at most Config.Local. Shares and
// Local together are at most the budget. So if all of the budget is pinned when a
// request asks for one bucket more, there is a bucket that nobody uses, which is
// unpinned. In this sense remote requests have precedence: they take any bucket
// that no local pin uses, and local pins leave them enough by Config.Local; they
// never wait for a local Release.
//
// 2. A local pin waits for local releases only, by operations that have all they
// need: they hold a local region, and the order above forbids to wait after that.
//
// 3. A remote pin takes all of its buckets or none (it never holds some of them
// while it waits for others), and those that wait for the same owner are served
// in order, so that a large one is not overtaken for ever by small ones. The
// first of them waits for replies, which come by 1, and for releases by
// operations that wait for nothing but a local pin, which ends by 2.
//
// # Stale registrations
//
// Memory that is freed, unmapped or grown must not be reachable by a firehose
// that is attached to it. Go memory is not freed as long as it is exposed, or
// pinned: the Space and the ATU hold on to it. A slice that append has moved is
// other memory, which is not exposed; the old array stays what it was. Mapped
// memory is taken back before it is unmapped, by Space.Conceal or Space.Unmap:
// Machine.Withdraw revokes its buckets, whoever holds a firehose. Accesses fault
// from then on; the addresses are nobody else's until the last such firehose has
// been given up, so that a peer that does not know yet cannot hit other memory.
// Unmapping behind the Space's back is not noticed: watching for it by
// userfaultfd takes a privilege that processes usually lack.
//
// # Victims
//
// When a firehose has to move, SIEVE chooses from which bucket: first in, first
// out, except that buckets that were used since the last look stay where they
// are; and the look begins anew after 4 times as many victims as there are firehoses,
// without which buckets can stay for ever that nobody uses. Hit rates in percent, simulated with 1,024 firehoses for working sets of
// so many times that (BenchmarkPolicies):
//
//	                    FIFO   LRU  CLOCK  SIEVE  random
//	uniform   0.5, 1     100   100    100    100    99.5
//	uniform   2         49.9  49.8   49.9   49.8    49.9
//	uniform   8         12.6  12.7   12.6   12.5    12.4
//	Zipf      0.5, 1     100   100    100    100    99.4
//	Zipf      2         84.7  87.9   88.3   90.3    84.8
//	Zipf      8         65.3  69.8   70.8   76.5    65.4
//	streaming 0.5, 1     100   100    100    100    99.5
//	streaming 2            0     0      0      0    20.2
//	streaming 8            0     0      0      0     0.0
//	half Zipf, half streaming
//	          1         34.1  37.6   38.7   43.2    34.1
//	          8         25.2  28.0   28.9   32.2    25.2
//
// A hit costs SIEVE and CLOCK a mark, LRU two changes of a list. GASNet's victim
// queue, which buckets enter when their last user releases them, is LRU.
//
// # Costs
//
// Measured on one core, both ranks in one process, Go memory, buckets of a page
// (BenchmarkCache*): Borrow and Return of what a firehose reaches 10.5 ns; pin,
// address and release 55 ns, for an access that outlives the call; a pin that the
// owner refuses 1.4 us, which is the round trip alone; a miss 1.9 us, which is the
// round trip, the end of a registration and a new one.
//
// # Concurrency
//
// A Machine is used by one goroutine at a time; a Cache and a Space by many.
package firehose
