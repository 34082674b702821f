// Package firehose reaches memory of other ranks that is too large to be
// registered all at once: the algorithm of Bell and Bonachea 2003.
//
// # Concepts
//
// Every rank may have M bytes of its memory pinned, that is, registered with its
// address translation unit, at any moment. M, less a part for single transfers,
// is divided among its peers in buckets of a power of two pages. A peer's share
// are its firehoses: as long as a firehose is attached to a bucket, the bucket
// stays pinned, and the peer reaches it without asking. An access whose
// buckets all have firehoses (a hit) costs a look-up. Otherwise (a miss) one
// request to the owner, and its reply, attach firehoses that are free, or move
// such as are idle from their buckets to the new ones.
//
// A bucket that no firehose is attached to any more stays pinned at its owner
// until the room is needed: to unpin lazily costs nothing, and the next firehose
// may find it still there. An owner whose budget is all pinned unpins
// one such bucket when it has answered a request, so that the next one does not wait
// for that.
//
// For one transfer that is too large for firehoses exactly its range is registered, within
// Config.Local, and deregistered afterwards. Its owner refuses it if there is no room, so
// that no request waits for it.
//
// # Parts
//
// Each can be read alone:
//
//	route.go    Route: an access' way, as a state machine; self.go for own memory
//	ways.go     which way that is
//	bounce.go   what the owner does for an access
//	batch.go    many short accesses at once
//	cache.go    Cache: the protocol at work; shared.go finds hits without its lock
//	machine.go  the protocol alone, without I/O, locks or goroutines; owner.go is its other side
//	space.go    Space: what this rank exposes
//
// A Route asks its Cache by four calls: now makes an access that a firehose reaches, ask
// pins, done and giveUp end that. None of them returns with a lock held.
//
// A Cache takes 1.6 KB with its Space, however large the job,
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
// # Deadlock
//
// A region is in use from the pin to its release; a bucket in use is not moved. An access
// has one pin, which it releases when the conduit has ended its operations: it waits for
// nothing else while it has it. So no pin waits for ever, provided that every rank polls.
// The argument:
//
// 1. An owner answers every request at once. A rank holds at most its share of
// firehoses at each owner: the owner checks it; and a request never relies on
// one that is still under way, since it gives up at least as many firehoses as it
// asks for beyond those that are free (so the requests under way may overtake
// each other, too). What is registered for single transfers is together at
// most Config.Local. Shares and Local together are at most the budget. So if all of the budget is pinned when a
// request asks for one bucket more, there is a bucket that is not in use, which is
// unpinned.
//
// 2. What is registered for a single transfer is never waited for by other such pins:
// they are refused.
//
// 3. A pin takes all of its buckets or none (it never holds some of them
// while it waits for others), and those that wait for the same owner are served
// in order, so that a large one is not overtaken for ever by small ones. The
// first of them waits for replies, which come by 1, and for releases by
// accesses that wait for nothing but the conduit.
//
// 4. What is held for longer (Route.Hold) leaves as many firehoses of each share as the largest pin
// needs, so that the releases which 3 waits for are enough.
//
// A pin may end in a handler, where nothing can be sent. So every loop that polls for a
// rank, whatever it waits for, calls what the Route has registered by am.Messenger.Advance.
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
// its buckets and what is pinned once of it are revoked, also those in
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
// (BenchmarkCache*): pin, address and release 22 ns, for an access that outlives the call; a pin that the
// owner refuses 1.4 us, which is the round trip alone; a miss 1.9 us, which is the
// round trip, the end of a registration and a new one. Space.Local finds the part
// that it found last in 3.4 ns, another of ten in 11 ns, of a thousand in 19 ns.
//
// # Concurrency
//
// A Cache, a Space and a Route are used by many goroutines. Hits of [Route.Now] take no lock that
// another goroutine takes for one. The Cache's lock is held while its Space is called, never
// the other way around.
package firehose
