// Command gasrun runs a program as a job of several ranks.
//
//	gasrun [flags] [--] PROGRAM|PACKAGE [ARGS]
//
// PACKAGE is a directory with a main package (./cmd/gasbench), an import path
// (example.com/x) or one .go file, and is built first. PROGRAM is an executable.
// Flags end at the first argument that is none.
//
// gasrun -help lists the flags, as docs/knobs.md does.
//
// # Output
//
// Lines of several ranks do not mix: each is written whole. A prompt, or another part of
// a line on which its rank pauses, is shown after 60 ms; if another rank writes then, it
// does so in a new line, and the rest of the first line follows in one more, which -l
// labels "[0] ... ". A job of one rank, without -l, writes what the rank does, byte by
// byte; for several ranks, -output-dir has that.
//
// # Processes between gasrun and the program
//
// PROGRAM may be a script, a shell, sudo -E, setsid, a container or another process that
// starts the program: that asks gasrun for its rank by a socket (ARGON_JOB_SOCKET) and gets
// the job's files with it, whatever has become of open descriptors on the way. An abstract
// socket is the network namespace's, so that a container needs gasrun's network (docker run
// --network=host) unless it leaves descriptors open; what removes the variables ARGON_* (env
// -i, sudo without -E) makes the program a job by itself.
//
// A rank is the first process that asks for it. What a rank starts is a job of its own: a
// program of argon one of its own ranks (ARGON_RANKS), another gasrun what its flags say, with
// the settings of users but not with the conduit and segment of the outer job. A script that
// runs a second program of argon in the same rank is an error, which that program prints: a
// job is one program.
//
// # Hosts
//
// With -hosts or -hostfile the ranks are spread over hosts in blocks: the first
// host's slots are filled first. Ranks of one host share memory, and those of
// different hosts talk over UDP (conduit hybrid; with -conduit udp all do). Entries
// localhost and loopback addresses are this machine, without ssh, and each of them
// counts as a host of its own, which is good for tests. Other names that occur
// several times are one host with the slots of all entries; this machine's own
// name needs no ssh either.
//
// On every other host gasrun runs, by ssh, a deputy of itself: its own executable,
// which is taken from the same path if the same file is there and belongs to this
// user or root, and is sent otherwise, as is the program. Copies lie in a directory
// for temporary files (-tmpdir, or TMPDIR there) that only the user may enter, and go when the
// job ends, however it does. What a host needs is thus sshd, sh, the core utilities,
// and a processor of the kind that the executables are for. ssh is called such that it asks
// for nothing (BatchMode): keys must be set up. The command of -ssh, split into words as a
// shell does, is called with the host's name and one more argument, a command
// line for a shell on that host, and must pass standard input, output and error
// through unchanged. So a container or a name space can be a host:
//
//	gasrun -hosts 10.99.0.2:2,10.99.0.3:2 -ssh ./enter PROGRAM
//
// where the script enter is
//
//	#!/bin/sh
//	exec ip netns exec "ns-$1" sh -c "$2"
//
// Nothing is started before all hosts are ready. If some are not, all of them are
// named, with what ssh has said. Ranks have gasrun's variables ARGON_*, those of
// -x, and else the environment that ssh gives them; their working directory is the
// same as here, or if it is not there the home directory, unless -wdir insists.
// Standard input goes to rank 0, signals to all ranks. On this machine rank 0 has the file
// or pipe itself, and gasrun reads none of it; the
// input of a rank 0 on another machine it reads from the moment that the rank waits for it. A
// terminal it reads as lines are typed. So a loop such as
// "while read host; do gasrun -hosts $host ./prog; done <list" keeps its list. If a host is lost, or a rank
// fails, the job ends on all hosts. A host is lost when ssh ends, or when nothing
// has come from it for 15 s (5 s more than ARGON_DEADTIME); it ends its own ranks when it
// has heard nothing of gasrun for 12 s. While it gets ready it has a minute. If gasrun
// is killed the deputies notice, end their ranks, and clean up.
//
// Ranks find each other at a rendezvous in gasrun, a TCP port. It is announced to
// each host by the address that leads there, or that ssh came from; every address
// that this machine has is tried, and IPv4 first unless all hosts are reached by
// IPv6, since all ranks use one of the two. -iface decides for one address, and for
// the interface of the datagrams; -networks describes several networks, among which datagrams
// go by what is quickest, and -measure writes that description (docs/hosts.md). -check looks whether all that
// works between the hosts. Only holders of the job's key are let in. gasrun makes it for each
// job and hands it on through ssh and by files without names: it is in no command
// line, environment or log. For secrets of the program's own use -x VAR, which takes
// the value from gasrun's environment: other users can see command lines.
//
// # Fabrics
//
// A gasrun that was built with go build -tags ofi starts jobs on libfabric: conduit ofi
// between all ranks, hybrid-ofi between hosts, whose ranks share memory. It builds packages
// with that tag for them; docs/fabrics.md says what to install. Without the tag nothing of
// it is linked, and these conduits say how to build. Of a job on hosts that is given no conduit,
// by flag or ARGON_CONDUIT, the ranks take ofi, or hybrid-ofi if a host has several, if the
// program is built with the tag and a provider on gasrun's machine drives a network card by
// itself (InfiniBand, RoCE, Slingshot, EFA, Omni-Path); -v prints by which rule, and
// -conduit hybrid does without.
//
// # Simulation
//
// With -conduit sim one process runs all ranks of the program, one at a time, on
// a simulated network in virtual time (package conduits/sim). It takes no change
// of the program, and its memory is the limit: about 12 KB a rank and what
// the program itself needs. Times are such as 500ns, 2us or 1.5ms, and virtual.
//
// The SPEC of -fault is a comma-separated list of
//
//	jitter=TIME                     each message is up to so much later, which reorders them
//	slow=RANKxFACTOR                a slower processor
//	stall=RANK@TIME+TIME            one that stands still, from when and for how long
//	crash=RANK@TIME                 a rank ends, at a time
//	crash=RANK#EVENT                or before the so manyth event of the job
//	partition=RANK-RANK@TIME+TIME   no message passes between these ranks and the others
//	detect=TIME                     how long until the others know of a crash
//
// The card delivers what it is given, so there is nothing to be lost: drop, dup, corrupt,
// truncate, delay, delayby and buffer, which sim.ParseOptions knows for datagram sockets,
// are refused here.
//
// Flags change what ARGON_SIM (options, as for -sim), ARGON_SIM_TRACE and
// ARGON_SIM_KEEP (files) say. These work without gasrun, too:
//
//	ARGON_CONDUIT=sim ARGON_RANKS=64 ARGON_SIM="seed=3 topology=torus" go run ./examples/ring
//
// Ranks share the process and its standard output, so -l, -output-dir, -bind and
// -freeze are refused. SIGQUIT and -timeout tell where each rank waits (of very
// many the first 256), and the job fails with a report of what each waits for if
// no rank can go on. The last line that gasrun writes names the rank that failed
// and when, in virtual time. If the process runs several jobs, one after the other
// or at once, the one opened last decides whether it has failed; each has a trace
// of its own, in FILE, FILE.2, and so on.
//
// # The same again
//
// The seed decides everything in the simulation. A program does the same each
// time if what its ranks do depends on nothing but argon, its arguments and its
// files. What may be different the next time:
//
//   - time.Now and timers, except for what is only printed. A rank's virtual clock
//     is Node.Now.
//   - Random numbers without a seed of their own (math/rand's functions); rand.New
//     with a fixed seed and the rank is fine.
//   - The order of range over a map, and of select among ready channels.
//   - Goroutines. Those of a rank that use argon must be started by conduits.Go; one
//     of the program's own that does so ends the process. One that only computes
//     is fine if its rank waits for it at a fixed place (sync.WaitGroup), which
//     stops the whole simulation meanwhile. A rank that waits in Go's own ways for
//     another rank waits for ever: then -timeout helps.
//   - Pointers printed or used as keys, process ids, input from a terminal.
//   - Which of two jobs that are opened at once is the first.
//
// -keep writes the options, ranks, program, arguments and variables, and then
// as the run goes on how far it is: so there is a record whatever ends it. -again
// runs it once more, with the program of the record or the one that is given, and
// compares. A run that does not do the same is ended where that is noticed, and
// gasrun says between which steps it differs; the difference itself is in two
// traces. Its status is then 1, and 0 if all went as recorded, a failure included.
//
//	gasrun -conduit sim -n 64 -seed 5 -fault crash=3@1ms -keep bug.sim ./program -x
//	gasrun -again bug.sim
//
// # Traffic
//
// -record has the ranks of a job on any conduit write what they send, put and get, what they wait
// for, and how long they compute. -replay runs that, without the program, on the machine that the
// flags of a simulation describe, and prints how long it takes there, beside the recorded
// time: see docs/replay.md.
//
//	gasrun -n 4 -record p.traffic ./program -x
//	gasrun -replay p.traffic -machine atoll -topology torus
//	gasrun -replay npb:lu.W.8 -compute 0
//
// # Ends of a job
//
// If a rank fails, the others are told (their pending operations end with an
// error that names it), get SIGTERM, and after the grace time SIGKILL. A rank
// fails if it is killed by a signal, exits with a status other than 0, or exits
// with status 0 although it has not left the job in good order. The last line
// that gasrun writes names the first rank that failed, its process id and host,
// and how.
// All processes that ranks have started are killed when the job ends.
//
// A rank may end the job by Exit with any status, 0 included (gas.Node.Exit).
// However ranks end then is no failure, and those that have not ended after a
// second get SIGTERM, and after the grace time SIGKILL.
//
// "gasrun status [JOB]" in another terminal does what SIGUSR1 does, and prints it there.
//
// SIGUSR1 asks each rank where it waits and prints one line for each, or one for
// all ranks whose answers are alike if there are many; the job goes on.
// SIGINT, SIGTERM and SIGHUP ask, too, unless -q is given, for at most a second. Then they
// are forwarded to the ranks, and the job is killed if it has not ended after the grace
// time; a second one kills it at once.
// SIGQUIT (Ctrl-\) asks, prints one line for each rank, writes the stacks of
// their goroutines to argon-PID.stacks here, or in the directory of -output-dir, unless -q is
// given, and ends the job.
// SIGUSR2 is forwarded. SIGTSTP (Ctrl-Z) stops the ranks too.
//
// # Exit status
//
//	0     all ranks ended in good order, or one has called Exit(0)
//	1     the job failed and no rank has another status: it could not be
//	      started, or a rank ended with status 0 too early, or none attached
//	2     bad flags or arguments, no such program, program does not build
//	124   the time limit was reached
//	131   SIGQUIT
//	else  the status of the rank that failed first, or called Exit; 128 plus the signal's
//	      number if a signal killed it or was sent to gasrun
package main
