// Package onesided is the synchronization of MPI-2's one-sided communication, each step of
// which is one fetch-compare-and-add on a word of the target (Nüssle 2008, 7.5.4): locks that
// are shared or exclusive, and epochs by post, start, complete and wait.
//
// FCAA adds to a variable if that is at most a value for comparison, and tells what is there
// afterwards and whether it has added. The operands are those of tables 7-3 and 7-5, where n is
// the number of ranks of the job:
//
//	                 compare  add       the variable then (tables 7-4 and 7-6)
//	lock exclusive   0        n+1       n+1   locked exclusive
//	lock shared      n        1         m     locked shared by m of n ranks
//	unlock exclusive MAX_INT  -(n+1)    0     unlocked
//	unlock shared    MAX_INT  -1
//
//	post (local)     3        -1        2     posted
//	start            2        -1        1     started
//	complete         1        -1        0     completed
//	wait (local)     0        3         3     idle
//
// The comparison lets every lower value pass. So a start of the tables alone, when the origin
// has completed an epoch and the target has not waited for it, would take 0 to -1: Start looks
// at the variable until it is posted, and then takes the step, which is the only one that is due.
//
// Start goes on when the target has posted, the next post when the target has waited, which
// goes on when the origin has completed. An epoch is between one origin and one target: a
// target with several origins has a variable for each. Puts and atomics that the origin has
// completed before Complete are seen by the target after Wait.
//
// A variable is Size bytes, at a multiple of that, in memory of the target that the ranks may
// access with atomics: the 32-bit variable of the thesis, and four bytes that stay zero. A lock
// begins as zeros, an epoch variable by Reset.
//
// # Waiting
//
// What cannot be done yet is tried again, with polls in between, so that handlers run; Wait
// parks. Locks are not fair: those of package upc/rt are, for a price of more steps.
//
// # Misuse
//
// A lock that this rank holds is not locked again (the count of table 7-4 has room for each
// rank once), and what it does not hold is not unlocked: these are errors that match
// extended.ErrBadArg, and nothing is changed. So is a post of what is posted, which takes its
// step back; a start of what another origin has started finds the same.
//
// A Sync may be used by many goroutines, but not in handlers.
package onesided
