// Package traffic records what the ranks of a job ask of their endpoints, on any conduit, and
// reads such recordings: which messages and accesses, of which size and to which rank, what
// each of them had waited for, and the time that a rank computed in between. Package
// conduits/sim/replay runs them on simulated machines. It also has the traffic of programs
// of which no more is known than a table: see [NPB].
//
// # Recording
//
// [Record] puts an endpoint on top of each rank's. That has the ranks talk as they would if
// each had a host of its own: it hides views of other ranks, lanes, neighbours, shared areas
// and what a card does for all ranks, and says of no access that it is complete when Post
// returns, but that its source may be used again if it is short; the completion comes with
// the next poll. So the layers take the ways by messages and accesses that they
// take on a network, on shm too, and wait where a program waits for them.
//
// What lies between the end of one call and the beginning of the next is computation. What
// lies between a poll that found nothing and the next poll is waiting, unless it is longer
// than [compute].
//
// # What a wait is for
//
// A rank goes on after polls because of something that came. A recording does not tell which of
// several things it was, so the rules are these:
//
//   - A wait is for the message or completion that came last in it, and for all that the
//     rank had before it began,
//   - but not for requests that it only answered.
//   - A wait in whose last poll nothing came is for memory: for all puts and atomics to
//     the rank that had been performed by then, as far as their initiators' completions tell.
//   - Polls for credit are waits for credit, which the simulated machine decides.
//   - A reply waits for its request, wherever the rank is then.
//
// # The file
//
// Text, and then chunks of records that ranks append as they go on:
//
//	argon-traffic 1
//	ranks 4 conduit shm program "./heat"
//	'C' rank length crc (32 bits each, little-endian) records ...
package traffic
