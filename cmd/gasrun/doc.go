// Command gasrun runs a program as a job of several ranks.
//
//	gasrun [flags] [--] PROGRAM|PACKAGE [ARGS]
//
// PACKAGE is a directory with a main package (./cmd/gasbench), an import path
// (example.com/x) or one .go file, and is built first. PROGRAM is an executable.
// Flags end at the first argument that is none.
//
//	-n N            number of ranks (default 1)
//	-conduit NAME   transport that ranks join (default shm, or ARGON_CONDUIT)
//	-segment SIZE   largest segment per rank, such as 512M (default ARGON_SEGMENT, or the conduit's)
//	-l              put "[rank] " before each line of output
//	-output-dir D   also write each rank's output to D/rank-R.out and D/rank-R.err
//	-x VAR[=VALUE]  set a variable for the ranks, or check that it is set; may be repeated
//	-wdir D         working directory of the ranks
//	-bind core      pin rank i to the i-th processor, counted around (default none)
//	-timeout D      end the job after this time, such as 10m, and say where each rank waits
//	-kill-grace D   time between asking ranks to end and killing them (default 5s)
//	-freeze RANK    stop this rank before it runs, for a debugger; may be repeated
//	-t              say what would be done, and do nothing
//	-v, -q          say more, say less
//
// # Ends of a job
//
// If a rank fails, the others are told (their pending operations end with an
// error that names it), get SIGTERM, and after the grace time SIGKILL. A rank
// fails if it is killed by a signal, exits with a status other than 0, or exits
// with status 0 although it has not left the job in good order. The last line
// that gasrun writes names the first rank that failed, its process id, and how.
// All processes that ranks have started are killed when the job ends.
//
// SIGINT, SIGTERM and SIGHUP are forwarded to the ranks, and the job is killed
// if it has not ended after the grace time; a second one kills it at once.
// SIGUSR1 and SIGUSR2 are forwarded. SIGTSTP (Ctrl-Z) stops the ranks too.
// SIGQUIT (Ctrl-\) asks each rank where it waits, prints one line for each and
// then the stacks of their goroutines, and ends the job.
//
// # Exit status
//
//	0     all ranks ended in good order
//	1     the job failed and no rank has another status: it could not be
//	      started, or a rank ended with status 0 too early, or none attached
//	2     bad flags or arguments, no such program, program does not build
//	124   the time limit was reached
//	131   SIGQUIT
//	else  the status of the rank that failed first; 128 plus the signal's
//	      number if a signal killed it or was sent to gasrun
package main
