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
// maps, or the outside world; [Job.Digest] is a hash of all that happened. Where
// in its page a slice of the Go heap lies is of the outside world, and the
// addresses that it gets when it is registered have the same offset. Traces and
// digests leave such addresses out; a program that computes with them can differ.
//
// A rank's panic ends the job: conduits.Run panics with a [PanicError] that keeps
// its stack, after the other ranks have run what they have deferred. A rank that
// crashes ends likewise, as by runtime.Goexit. One that goes on waiting although
// the job has failed, which would be for ever, panics.
//
// # Time
//
// A transfer takes the sum of its sub-operations (Nüssle 2008, tables 9-1 and
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
// profile's gaps. A credit is back as soon as the message has been taken, and
// takes time, that of a trip, only to reach a sender that had run out of them.
//
// Registered memory is reached at the time at which the target's card writes or
// reads, and checked then; the source of a put when the initiator's card reads it.
//
// A message takes three events on an idle crossbar: it enters the network when the card
// has it, is in the target's card after the trip, and in the mailbox after the DMA write,
// which resumes the rank if it is parked. A torus adds one for each hop. conduits.Wait
// costs one switch of coroutines a message: polls between Arm and Park, and spins, look
// without letting the job come up, twice in a row at most.
//
// With [Config.Offload] cards and switches do barriers and multicasts of all ranks
// (fabric.Tree): one costs a rank as much as a short or medium message, and the trip is up
// the tree of switches and down.
//
// # Faults
//
// [Faults] delays, reorders, slows, stalls, crashes ranks and partitions the
// network, at virtual times. The messages of a conduit arrive nevertheless,
// unless a rank crashes: what it has not sent by then and what has not reached it
// is lost, its credits stay away, and all others know of it Detect later. Below
// that level [Endpoint.Socket] is an unreliable
// datagram socket, for protocol engines.
//
// When nothing is under way and every rank waits, the job fails with a
// [DeadlockError] that names what each rank waits for. A rank that does nothing but
// poll for ten seconds of virtual time counts as one that waits.
//
// # Loops that wait
//
// A loop that waits for something and neither polls nor parks stops the job: nothing
// can come while it runs, and time does not pass. Such are loops over a Load, Get or
// TryLock of the own segment, over a variable, and over Now. The simulator cannot tell
// them from computation, in virtual time: what they call is an access to memory. So a
// goroutine outside of the job looks after it in real time, prints after five seconds
// which rank has not given the processor back, with its stack, and changes nothing.
// It also prints, after ten, that only one rank has run and the others wait: one that
// asks for a word of another rank again and again gives the processor back, and
// virtual time passes until Config.Limit.
//
// The way out is a poll in the loop, or a wait by what argon has for it. What is not
// detected is a rank that waits for the outside world, such as a file or a channel,
// within a call of the system: it is reported like a loop if it takes so long. Nothing
// is said of a job whose ranks take turns in waiting for what never comes: that is
// for Config.Limit, and gasrun's -timeout.
//
// # What a rank costs
//
// Tables are by rank really talked to, 12 bytes a peer. Segments are addresses reserved at
// once; memory stands behind the pages that are written. Measured at 65,536 ranks with package gas:
// 12 KB a rank, 4 KB of it the coroutine's stack; see TestManyRanks.
//
// To a coroutine and back takes 64 ns, to a goroutine by two channels 244 ns, if
// there is one; with 65,536, more than the caches hold, 0.78 and 0.79 us (least
// of 24 each on two cores of a busy AMD EPYC: go test -run - -bench Switch -count 8
// ./conduits/sim). Coroutines need no lock, whatever the number.
//
// Coroutines must not be locked to threads (runtime.LockOSThread).
package sim
