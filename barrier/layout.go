package barrier

import "github.com/argon-go/argon/conduits"

// Layout of this package's part of a rank's system area (conduits.Endpoint.System). Every line has 64 bytes; every word in it exists
// twice, for even and for odd phases, because a rank may be one phase ahead of
// another that still reads.
//
//	  0  arrival line    +0 even  +8 odd   written by the owner only, but
//	                     +16 even +24 odd  rank 1's words in a job of two ranks
//	 64  release line    +0 even  +8 odd   rank 0's area only: the verdict; with
//	                                       Levels, each first rank's: what its
//	                                       neighbourhood notified
//	128  counter line 0  +0 even  +8 odd   the tree's group of level 0 led by the owner
//	192  counter line 1                    level 1
//	...
//	 960 verdict line    +0 even  +8 odd   Levels: each first rank's area only
//	                     +16 even +24 odd  two ids that differ, if they do
//
// Two ranks share one arrival line, rank 0's, so that a rank finds the other's
// word in the line that it has just taken to write its own.
//
// An arrival word holds the phase and what its rank notified; a release word
// the phase and the verdict; a counter word the number of arrivals and their
// combined state, zero between uses.
const (
	lineBytes  = 64
	arrivalOff = 0
	releaseOff = lineBytes
	counterOff = 2 * lineBytes
	verdictOff = conduits.SystemCollective - lineBytes
	maxLevels  = (verdictOff - counterOff) / lineBytes
)
