// Package firehose reaches memory of other ranks that is too large to be
// registered all at once: the algorithm of Bell and Bonachea 2003.
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
// or local pin may find it still there. An owner whose budget is all pinned unpins
// one such bucket when it has answered a request, so that the next one does not wait
// for that.
//
// PinOnce is for one transfer that is too large for firehoses: exactly its range
// is registered, in place of what its owner may pin locally, and deregistered when
// it is released. Its owner refuses it if there is no room, so that no
// request waits for it.
//
// [Machine] is the protocol alone, without I/O, locks or goroutines; [Cache] drives
// it over active messages. It takes 1.6 KB with its Space, however large the job,
// and 2.3 KB more for a peer with 16 firehoses. Ranks must agree on what a Config
// says of all of them: the layer above compares [Config.Digest] with what else it
// compares at the start. Ranks that do not agree refuse each other's requests.
//
// # Addresses
//
// Memory is addressed by [Addr], numbers below AddrLimit that its owner has given
// it: [Space] gives them to slices and mapped memory and pins buckets of these by a
// segment.ATU. Absolute addresses do not leave a rank.
//
// Every part that is exposed begins a bucket, and a bucket has no two parts' memory,
// since it is registered with one part's rights: a small part takes a bucket's
// addresses, but no more memory than it is long. Addresses are given out in order,
// and again only after all of them have been, 8 million small parts with buckets of
// 64 KiB; then those are left out that a peer still has a firehose to. So a rank
// that remembers an address beyond its memory's time finds nothing there, for as long as
// can be; it is a mistake all the same, as with other memory that is freed. Ranks
// that expose parts of the same lengths in the same order get the same addresses.
//
// # Duties of the caller
//
// A region is in use from the pin to Release; a bucket in use is not moved. So
// a caller that pins must release, and must come to that without waiting for other
// pins, except in this order: first a remote pin, then a local one. One remote
// and one local region at a time, per operation. A caller that needs more, or another
// order, uses TryRemotePin and TryLocalPin, which do not wait, and releases all
// before waiting when they fail. A caller that has something by PinOnce waits for no
// pin before it has released it.
//
// Pins that do not wait (RemotePinThen, PinOnceThen) call a function when they end,
// wherever that comes to light: in a handler, too, where nothing can be sent. So
// every loop that polls for a rank, whatever it waits for, looks at [Cache.Busy] and
// calls [Cache.Advance]. The methods of a Cache that wait do so themselves.
//
// An access that faults although its region is pinned tells that the owner took
// the memory back: the caller says so by Stale, and pins anew, which reports whether
// the memory is there again.
//
// # Deadlock
//
// No pin waits for ever, provided that every rank polls, and that every region is
// released in the end. The argument:
//
// 1. An owner answers every request at once. A rank holds at most its share of
// firehoses at each owner: the owner checks it; and a request never relies on
// one that is still under way, since it gives up at least as many firehoses as it
// asks for beyond those that are free (so the requests under way may overtake
// each other, too). What is locally pinned, or pinned once by peers, is together at
// most Config.Local. Shares and Local together are at most the budget. So if all of the budget is pinned when a
// request asks for one bucket more, there is a bucket that is not in use, which is
// unpinned. In this sense remote requests have precedence: they take any bucket
// that no local pin uses, and local pins leave them enough by Config.Local; they
// never wait for a local Release.
//
// 2. A local pin waits only for releases of local regions and of what peers have
// pinned once, by operations that have all they need: the order above forbids to
// wait after either. What is pinned once is never waited for by other pins at once:
// they are refused, also while local pins wait, so that these are not overtaken for
// ever.
//
// 3. A remote pin takes all of its buckets or none (it never holds some of them
// while it waits for others), and those that wait for the same owner are served
// in order, so that a large one is not overtaken for ever by small ones. The
// first of them waits for replies, which come by 1, and for releases by
// operations that wait for nothing but a local pin, which ends by 2.
//
// # Stale registrations
//
// Memory that is freed, unmapped or grown must not be reachable by a firehose that
// is attached to it.
//
// Go memory that its owner drops stays as long as it is exposed: the Space holds on
// to it. When it is concealed it is garbage, even if a rank has a firehose to it. A slice
// that append has moved is other memory, which is not exposed; the old array stays
// what it was, and its owner conceals it and exposes the new one.
//
// Mapped memory is taken back before it is unmapped, by [Cache.Unmap]:
// Machine.Withdraw revokes its buckets and what is pinned once of it, also those in
// use. Accesses fault from then on; the addresses are not given again until the last
// such firehose has been given up, so that a peer that does not know yet cannot hit
// other memory, also not what is mapped or exposed in the same place. The peer says
// Stale, and its next pin is told that nothing is exposed there.
//
// Unmapping behind the Space's back is not noticed, and must not happen: userfaultfd,
// where it is permitted (Linux 6.18, UFFD_USER_MODE_ONLY), tells of it when the
// memory has gone already, too late for an access that is under way, at 2 us for
// each mapping that is watched and 10 us and more for its end.
//
// # Victims
//
// When a firehose has to move, SIEVE chooses from which bucket: first in, first
// out, except that buckets that were used since the last look stay where they are;
// and the look begins anew after twice as many victims as there are firehoses,
// without which unused buckets can stay for ever. Hit rates in percent,
// simulated with 1,024 firehoses for working sets of so many times that
// (BenchmarkPolicies):
//
//	                    FIFO   LRU  CLOCK  SIEVE  random
//	uniform   0.5, 1     100   100    100    100    99.5
//	uniform   2         49.9  49.8   49.9   49.8    49.9
//	uniform   8         12.6  12.7   12.6   12.5    12.4
//	Zipf      0.5, 1     100   100    100    100    99.4
//	Zipf      2         84.7  87.9   88.3   90.7    84.8
//	Zipf      8         65.3  69.8   70.8   74.5    65.4
//	streaming 0.5, 1     100   100    100    100    99.5
//	streaming 2            0     0      0      0    20.2
//	streaming 8            0     0      0      0     0.0
//	half Zipf, half streaming
//	          1         34.1  37.6   38.7   40.6    34.1
//	          8         25.2  28.0   28.9   30.2    25.2
//
// A hit costs SIEVE and CLOCK a mark, LRU two changes of a list. GASNet's victim
// queue, which buckets enter when their last user releases them, is LRU.
//
// # Costs
//
// Measured on one core, both ranks in one process, Go memory, buckets of a page
// (BenchmarkCache*): Reach of what a firehose reaches 9.4 ns, or 7.6 if it is the
// bucket that was reached last; pin, address and release 22 ns, for an access that outlives the call; a pin that the
// owner refuses 1.4 us, which is the round trip alone; a miss 1.9 us, which is the
// round trip, the end of a registration and a new one. Space.Local finds the part
// that it found last in 3.4 ns, another of ten in 11 ns, of a thousand in 19 ns.
//
// # Concurrency
//
// A Machine is used by one goroutine at a time; a Cache and a Space by many. Hits of
// [Cache.Enter] take no lock that another goroutine takes for one. The Cache's lock is held while its Space is called, never the other way around.
package firehose
