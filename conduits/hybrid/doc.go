// Package hybrid makes a conduit for jobs of several hosts of any two: one that
// reaches the ranks of a host by memory they share (conduits.Near), and one that
// reaches all ranks (conduits.Far). Package shmudp makes argon's own of shm and udp.
// Each rank has an endpoint of both, and each operation goes to the one that reaches
// its target: which that is was settled when the job began, and is a comparison of
// rank numbers. The ranks of a host are a neighbourhood, whatever their numbers: where those
// are not consecutive, as in a cyclic distribution, there is a table to be looked at,
// too, with an entry for each rank from the host's lowest to its highest. Such tables
// take some 120 bytes an entry in each rank, which is 8 MB at most, in a job of 65,536
// ranks.
//
// # One memory
//
// A rank's segment lies in the shared memory of its host. The endpoint between hosts
// serves puts, gets and atomics from other hosts in that same memory, with the same
// instructions for atomics, so neighbours see what comes from afar, and a word may
// be the target of both.
//
// # One host
//
// A job of one host has the endpoint of its shared memory itself, under the name
// of the whole: nothing comes between. The endpoint between hosts, if there is a
// rendezvous, then only tells of failures. In a job of several hosts half a round trip
// between neighbours takes 1.17 times that of shm alone (84 and 72 ns, two processes on
// two cores, the other host on the same ones): an empty poll takes 16 ns where that of
// shm takes 6.
//
// # Handlers
//
// A rank is polled by one goroutine at a time, whatever a message comes by: the
// network is polled inside Deliver of the near endpoint. So a handler of either may
// reply, and a handler that waits until it can polls the replies of both: a cycle
// of ranks that wait for each other's credit may go through both conduits.
//
// # Polling and sleeping
//
// A look at shared memory takes some nanoseconds, one at a socket a microsecond. So
// the socket is looked at every 50 us while shared memory is busy; while it is idle
// every 5 us, or every microsecond if the network brought the last message; and
// again at once after a look that found something. A goroutine that parks
// does so in shared memory; a goroutine of this package, the watcher, is parked on
// the network meanwhile and wakes the rank. drive.go argues why nothing is slept
// through.
//
// # Failure
//
// A failure that either conduit hears of is told to the other. Where both have one
// the network's counts, since the rendezvous has all ranks agree.
//
// # Bootstraps
//
// [Pair.Local] pretends hosts inside one process, two unless ARGON_HYBRID_HOST says how
// many ranks a host has. [Pair.Join] finds the other ranks by the rendezvous (package
// udp lists its variables). The memory of a host's ranks is inherited
// (ARGON_SEGFD, ARGON_LOCAL_SIZE), if their numbers are consecutive, or made by the
// first of them. ARGON_HOST tells
// hosts apart; ranks that cannot share memory, in containers say, must have
// different ones.
package hybrid
