// Package sim is a conduit whose ranks, cards, network and clock are simulated:
// any number of ranks in one process, one running at a time, in virtual time,
// with everything that is left to chance decided by one seed. The layers above
// run on it as they are.
//
// # Ranks
//
// Ranks are coroutines (iter.Pull). One runs until it polls or parks and others
// have something to do before its clock; then the job handles events, in the
// order of their times, until the rank goes on. So a blocked rank costs no real
// time, and nothing in a job is concurrent. Each rank has a clock of its own,
// which runs ahead of the job's while the rank computes: sends, arrivals and
// polls take the times that the [Profile] says, everything else takes none.
//
// A program may do anything that does not wait in Go's own ways. What runs a rank
// is started by conduits.Run (package gas does that) and conduits.Go, and waits
// by conduits.Wait or the layers above; a goroutine of another origin that uses
// an endpoint panics. A mutex must not be held across a poll.
//
// The same program with the same [Config] does the same, event by event, as long
// as it takes nothing from real clocks, unseeded random numbers, the order of
// maps, or the outside world; [Job.Digest] is a hash of all that happened.
//
// # Time
//
// A transfer takes the sum of its sub-operations (seed thesis, tables 9-1 and
// 9-2), for small data:
//
//	short, medium up to Eager  software/2, PIO | trip | DMA write, software/2
//	notification put           software/2, PIO, unit | trip | unit, DMA write, software/2
//	immediate put              software/2, PIO, unit | trip | unit, ATU, DMA write
//	put                        software/2, PIO, unit, ATU, DMA read | trip | unit, ATU, DMA write
//	  its message (ReservePut)   DMA write, software/2
//	  its completion (RemoteDone) | trip | DMA write, software/2
//	get                        software/2, PIO, unit | trip | unit, ATU, DMA read | trip | unit, ATU, 2 DMA writes, software/2
//	atomic                     software/2, PIO, unit | trip | unit, DMA read, DMA write | trip | unit, DMA write, software/2
//
// "trip" is package fabric's business: the route, the time per byte, waiting for
// links. Messages and RMA operations of one card follow each other at the
// profile's gaps.
//
// # Faults
//
// [Faults] delays, reorders, slows, stalls, crashes ranks and partitions the
// network, at virtual times. The messages of a conduit arrive nevertheless,
// unless their rank crashes. Below that level [Endpoint.Socket] is an unreliable
// datagram socket, for protocol engines.
//
// When nothing is under way and every rank waits, the job fails with a
// [DeadlockError] that says who waits for what.
//
// # What a rank costs
//
// Tables are by rank really talked to. Measured at 65,536 ranks with package gas:
// 12 KB a rank, 4 KB of it the coroutine's stack; see TestManyRanks.
//
// Coroutines must not be locked to threads (runtime.LockOSThread).
package sim
