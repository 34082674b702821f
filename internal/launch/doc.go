// Package launch starts the ranks of a job as processes of this host or others,
// watches over them, and leaves nothing behind. Command gasrun is its command
// line; tests use it through package internal/testkit/testjob.
//
// # Concepts
//
// A job is Config.Size processes that run one program. Each is a rank: it learns
// its number from the environment (ARGON_RANK and the others of package jobenv) and
// inherits two files, the job's memory (ARGON_SEGFD) and the read end of a
// control pipe (ARGON_CTLFD) whose write end only the launcher has: end of file
// there means that the launcher is gone and that the rank has to go too.
//
// A process between the launcher and the program may close those files, or put others in
// their place. So the program asks for its rank at a socket (ARGON_JOB_SOCKET, package
// claim), and gets the files with it; what it has inherited counts where that socket cannot
// be reached, as in another network namespace. The first process that asks for a rank is the
// rank. A later one that the rank has started is a job of its own, as is every process that
// finds in its environment that another one has taken the rank (ARGON_TAKEN_BY); any other
// is refused: a rank is one process that joins the job once. Processes of another user have
// to descend from one that the launcher started.
//
// # Failure
//
// The job ends when all ranks have ended, or when one fails: it dies by a
// signal, exits with another status than 0, or exits with status 0 without
// having left the job in good order. The launcher then notes the death in the
// job's memory, which wakes the other ranks with a PeerError, sends them SIGTERM
// and, after Config.KillGrace, SIGKILL. The first failure in time decides the
// job's status, except that a rank which says by status [jobenv.StatusPeerFailed] that
// it ended because of another one, or that ended after the failure of another one had been
// known, gives way to that other one. Why it failed is read from the end of its standard
// error (cause.go).
//
// A rank that calls Exit announces the job's status as it would a failure. That
// status is the job's then, also if it is 0, and however the ranks end is no
// failure; those that still run after a second are ended as above.
//
// Every rank leads a process group of its own. Processes that ranks start and
// leave behind come to the launcher (it is a child subreaper while a job runs)
// and are killed when the job ends, whatever group or session they have moved
// to. If the launcher itself is killed, the kernel kills the ranks (the parent
// death signal), and a guard process does the rest (Config.Guard).
//
// # Network
//
// Ranks that join a conduit between processes (udp, hybrid) meet at a rendezvous
// which this package serves (package internal/rendezvous; ARGON_RENDEZVOUS). It
// makes a key for each job, which ranks inherit as a file in memory that only its
// owner can read (ARGON_JOB_KEY_FILE). What becomes of a rank the launcher knows
// from the rendezvous then.
//
// # Hosts
//
// With Config.Hosts a deputy looks after the ranks of each host: the executable
// Config.Deputy with EnvDeputy set, which calls [Helper]. It is a process of this
// machine, or is started by ssh, with a script that receives the executable if
// need be (bootScript). Both talk in frames (wire.go) over the deputy's standard
// input and output. All decisions are the launcher's (job in run.go). Without Config.Hosts
// the ranks have one deputy, which is in the launcher's own process: frames are calls there,
// and output and input do not pass it.
//
// No rank's standard output, error or input holds up another one: of each stream
// there is a window under way, and reading frames never waits for a consumer. Both
// sides give signs of life. The end of a deputy's input is the end of its ranks; the
// end of its output is a host lost, and so the job's end on all others.
//
// A deputy that is cut off ends its ranks without a word from the launcher, at most
// 5 s after the dead time (ARGON_DEADTIME, else 10 s): when it has heard nothing of
// the launcher for so long, when it has lost the rendezvous, which it watches
// (rendezvous.Watch), and when the job or one of its ranks has failed and the
// launcher does nothing about it. A launcher that is stopped (SIGSTOP) for that long
// is as good as gone; one that its terminal stops tells the deputies first.
//
// # Output
//
// Output of several ranks is forwarded in whole lines, and no line holds bytes of two
// streams. Part of a line for whose rest its rank takes its time (a prompt, a progress
// display; 60 ms) is forwarded alone. If other output follows, a line end is added, and
// the rest comes in a line of its own, with the mark "..." behind its label if there are
// labels; nothing else is ever added. A newline that ends such a line after all is not
// repeated. Characters and terminals' control sequences are not torn. A rank's last
// line need not end in a newline. Lines of more than 64 MiB are passed on in pieces.
// The output of a job of one rank without labels is forwarded as it comes, byte by byte,
// and so are the copies in Config.OutputDir.
//
// # Duties of the caller
//
// While a job runs no other part of the process may wait for arbitrary children
// (wait4 with pid -1). Several jobs may run at once.
package launch
