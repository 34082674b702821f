// Gasbench measures the runtime between two ranks and puts every figure beside
// a reference that was taken in the same run:
//
//	gasrun -n 2 gasbench [-json] [-list] [-run REGEXP] [-size SIZE,...] [-time D] [-bursts N] [-against FILE [-slack F]] [-beside NEIGHBOUR,...]
//	gasbench -conduit NAME,... [-auth MODE,...] [-datagram BYTES,...] [-loss PERCENT,...] [-rounds N] [-bind HOW]
//
// In the second form gasbench starts the jobs itself; see below. Ranks 0 and 1 are
// measured; others, if there are any, wait, and take part in barrier. -run selects
// benchmarks by a regular expression that has to match the whole name, slash
// included; -list prints the names. -size leaves out all sizes but those.
//
// # Method
//
// On a virtual machine the host moves the two processors between placements in
// which a cache line takes anything from 30 to 270 ns, for seconds or minutes.
// Absolute figures of different runs therefore do not compare. So reference and
// measurement are taken in turn, in bursts of some milliseconds: reference,
// measurement, percentiles, reference, and so on. A burst's ratio is its value
// over the mean of the reference bursts before and after it; bursts between
// which the reference moved by more than a fifth are left out. What is printed
// is the median over the bursts, of values and of ratios separately.
//
// A burst is timed as a whole: the clock costs more than many operations. Each
// begins with operations that are not counted, until the caches and the other
// rank are warm. Percentiles come from bursts of their own, in which samples of
// so many operations are timed that a sample takes at least 500 ns; the clock's
// cost, measured at the start, is subtracted. They are percentiles of the mean
// of a sample ("batch" operations in -json), so that one slow operation in a
// batch shows by its share only. For bandwidth they are the bandwidths of the
// samples that slow.
//
// # References
//
//	ref/cacheline  one way of a ping-pong of two flags: each rank writes a flag
//	               in a cache line of its own by a plain store (amd64; an atomic
//	               store elsewhere) and spins on a load of the other's
//	ref/copy       the same with a payload, which each rank copies into the
//	               other's segment before it sets its flag, and out of its own
//	               segment when it has seen the other's
//	ref/memcpy     copy() of warm memory, to the other rank's segment ("peer") or
//	               within the own ("own")
//
// Ranks that do not reach each other's memory have sockets to be compared with.
// These are connected, do not block, are used by bare system calls that the
// scheduler does not hear of, and both ranks spin on them. They take the way that
// the ranks' connections to the job's rendezvous take; without one, loopback.
//
//	ref/udp        one way of a ping-pong of datagrams with the same payload (of
//	               messages: the arguments), at least 8 bytes
//	ref/udpmsg     datagrams of that payload from one rank to the other, one a
//	               system call on both sides; at most 256 are on their way, and
//	               the receiver tells of every 64
//	ref/udpstream  a stream of the same bytes in datagrams as large as the
//	               conduit's: the sender hands the kernel 64 of them at once, or as
//	               many as have 65,000 bytes, which it cuts by UDP_SEGMENT, and the
//	               receiver takes as many by UDP_GRO, where the kernel can, and
//	               copies them once to its segment. At most 512 KiB are on their
//	               way, less if the system's buffers are small (net.core.rmem_max);
//	               the receiver tells of every quarter of that. There are no
//	               headers, checks or sequence numbers.
//
// A stream ends when the sender knows that all has come. Datagrams that are lost
// are replaced, as bytes only.
//
// A gasbench that was built with go build -tags ofi has references of bare libfabric: one
// endpoint of the provider that docs/fabrics.md says, in C, beside the job's own, which
// looks at its completions and does nothing else until a burst is over.
//
//	ref/ofi        one way of a ping-pong of messages with the same payload, at least
//	               8 bytes and at most 4 KiB
//	ref/ofimsg     messages of that payload from one rank to the other, one a call;
//	               at most 512 are on their way, and the receiver tells of every 64
//	ref/ofiwrite   a write of as many bytes, until it is in the other rank's memory
//	               (FI_DELIVERY_COMPLETE), and only then the next
//
// They stand beside the figures of a job on conduit ofi, the first two for messages of up to
// 4 KiB, the last for accesses and bandwidths; on other conduits -run 'ref/ofi.*' measures them
// alone.
//
// # Benchmarks
//
// am/short, am/medium, am/long: half_rtt is half the time from a request, by way
// of its handler's reply of the same kind and size, to the requester's return
// from Wait; handlers do not look at payloads, as in GASNet's testam. rate is the
// time a message when one rank sends and the other only polls, the last message
// being answered. size is in bytes, for am/short the number of arguments.
//
// am/short "goroutine 1", "goroutine 2" and "goroutine 8": messages of four arguments,
// and their references, by the first, the second and the eighth goroutine of rank 0 that
// has used its endpoint. Each runs alone while it is measured; the others have sent some
// hundred messages before, and wait.
//
// lanes/own: the time a message when 1, 2, 4 and so on goroutines of rank 0 send messages
// of four arguments to their own rank at once, each by a lane of its own, and poll it after
// every sixteenth. size is the number of goroutines, up to the rank's lanes (ARGON_LANES);
// more of them than processors show nothing.
//
// lanes/shared: the time a message when 1, 2, 4, 8 and 16 goroutines of rank 0 send messages of
// four arguments to rank 1 at once, by one endpoint.
//
// rma/put, rma/get, rma/putnb, atomic/add: operations on memory that the other
// rank does not touch meanwhile, one after the other, through package extended
// ("extended" with byte slices, "value" with words), or through gas.Ptr[uint64]
// ("ptr"). rma/putnb begins 64 puts and then waits for all of them. rma/prepared does so
// to the attach segment and to registered memory ("heap"), with the arguments given each time and with puts
// that were prepared once. rma/handles
// begins 65,536 puts, or gets, of 8 bytes each at an address of its own, before it
// waits for the first, and compares what came of them; its value is the time of
// one of them.
//
// overlap/put, overlap/get, overlap/long, and of all ranks overlap/allreduce and overlap/broadcast, which rank 1
// is the root of, begun by gas.AllReduceNB and BroadcastNB: how much of a transfer goes on while rank 0 computes
// for about as long as it takes. With c for the transfer alone, w for the work alone and b for
// both, the transfer begun first and waited for last, the share is (c + w - b) / min(c, w),
// the medians of bursts in turn. ARGON_PROGRESS=1 makes the figures of ranks that have
// Config.Progress. They mean what they say where a rank has a processor for each. With -conduit sim, overlap has both
// in virtual time.
//
// component/...: parts of operations by themselves; what belongs to an operation and is not
// named is not timed. component/post: a rank hands over 16 puts, or short messages of four
// arguments, one after the other, and does not wait for them. component/complete: a Poll that
// finds nothing ("empty"), and the wait for puts of 8 bytes that have been in place for a
// while ("handle"). component/translate: address tables look up 8 bytes, and 64 KiB, of the
// attach segment and of registered memory. component/wake: the round trip of a short
// message to a rank that had nothing to do for 2 ms. See docs/components.md.
//
// barrier: a full barrier of all ranks of the job.
//
// # Aggregation, calls and collective calls
//
// All ranks of the job take part in agg/..., dist/..., coll/... and team/..., each in a loop. Those of
// agg/... change, or load, 131,072 words of an array that is spread over them, at random
// indices, which lie in a slice; an operation ends when all of all ranks are done, and
// includes making and ending the mailbox. updates is how many there are in a second, those of all
// ranks together.
//
// agg/atomics: gas.AddNBI of 2,048 words, then SyncImplicit and a barrier.
//
// agg/mailbox: items of 8 bytes, which say which word to increment ("word"), and of 16, an
// index and what to add ("value"), by a loop over the slice that pushes, and a function,
// written for this.
//
// agg/arrays: gas.AddAll, Array.UpdateAll with exclusive or, Array.PutAll, beside the mailbox
// of index and value. agg/gather: Array.GetAll, and a gas.Batch written for the same, beside
// that mailbox, too.
//
// dist/queue: 16,384 items of 8 bytes of each rank, pushed and popped: by each its own ("local"), and all
// pushed by rank 0, of which the others steal ("steal"), with the end of the phase. dist/map: 2,048
// entries of a map with words for keys and values, which lie on all ranks, put, got and updated by a
// function, each by a call. dist/mapbulk: 16,384 by Map.PutAll, Map.GetAll and Update.Push. All of them
// end by a barrier; the reference of those of many is the mailbox of index and value.
//
// rpc: calls of rank 1 by rank 0 with a result, one after the other: a word there and one back
// ("inline", gas.RegisterCall), a slice ("argument") and a string, whose lengths come back, and a slice
// whose length is given ("result"), by functions of RegisterFunc, and a word by a task. The reference is a
// round trip of a short message of four arguments, and of bandwidths a put to the attach segment.
//
// coll/...: collective calls of a gas.Node, one after the other: Barrier; AllReduceSlice of
// words, AllReduce of one; BroadcastSlice, of which each rank is the root in turn; AllToAll,
// size being that of a block; AllGatherSlice and ReduceScatter, likewise; ReduceSlice, GatherSlice and ScatterSlice, of
// which each rank is the root in turn; InclusiveScanSlice, each second one in a team of reverse order. The
// root of a broadcast, and the first rank of a scan, would run ahead otherwise.
//
// team/...: the same of a team of all ranks that Split has made, and Split and Close.
//
// # Services of UPC
//
// upc/... are those of package upc/rt, beside what they are made of: rank 0 is thread 0, and all
// ranks take part in upc/barrier, upc/collective and the contended lock. The reference go/slice is a loop that adds up
// the elements of a slice; gas/... are words, bytes, locks and collective calls of package gas.
//
// upc/pointer: p + 1 and p + 3 of pointers-to-shared, each from the one before, with blocks of 1
// ("phaseless") and of 64 elements ("phased"), and accesses to words of the own thread by pointers;
// upc/target: by how much they take longer than an access to a slice, burst by burst, beside what they may.
// upc/access: words of the own thread ("near") and of thread 1 ("far"). upc/copy: upc_memput and
// upc_memget to thread 1. upc/nb: 64 puts of words to thread 1, then the wait for all of them, by
// handles, without, and as generated code does it ("async"). upc/lock: one thread alone, and all at once,
// followed by a barrier.
//
// upc/forall: an iteration that adds to an element of the thread's own, of a loop of 4,096 such: without
// affinity, with an integer, with elements of arrays in blocks of 1, of 64 and indefinite ones, and, "tested",
// with a test of the affinity of all threads' iterations, of which as many more are passed over as there are
// other threads.
//
// upc/barrier, upc/collective: "no", "my" and "all" are NOSYNC, MYSYNC and ALLSYNC on both sides; the
// references have no flags.
//
// # Memory beyond the segment
//
// firehose/... have rank 0 reach memory that rank 1 has exposed: a slice that
// gas.MakeSlice has made, of memory of the conduit's MapMemory, or, where the name ends in
// -heap, a slice of the Go heap (extended.Expose). See docs/registered.md. Unless ARGON_PINNABLE and ARGON_PIN_LOCAL say otherwise, 48 MiB
// of a rank may be pinned, 16 MiB of these for single transfers, so that with two
// ranks 32 MiB are within reach of firehoses, 512 buckets of 64 KiB.
//
// firehose/register: registration of a piece of memory that is in use, of the Go heap
// ("heap") or mapped ("mapped"), and its end, each beside a copy of as many bytes.
// They are done by up to 64 in a row, one after the other piece of 64 MiB. Those of 16
// KiB are timed one by one, so that -json has how their times spread.
//
// firehose/put, firehose/get: transfers to the attach segment ("attach"); to memory
// that a firehose reaches ("hit"); to one bucket after the other of more memory than
// may be pinned, so that every transfer moves firehoses, and the owner ends one
// registration and begins another ("miss"); to memory that the owner registers and
// deregisters for each transfer ("register"); by way of active messages, whose
// handlers copy ("bounce"). The reference is the attach segment.
//
// firehose/pieces: puts and gets of 1 to 1,024 pieces of a Go slice, 1 KiB apart, that
// firehoses reach, by one Shape ("put-together-64") and each by a blocking operation
// ("put-alone-64"), also while the owner sleeps ("put-asleep-1"). Times are of one piece.
//
// firehose/workingset: the share of puts that find a firehose, after some to each bucket
// and as many others to warm up, in working sets of 0.5, 1, 2 and 8 times what firehoses
// reach. Beside it stands what the policy by itself, SIEVE over the same addresses, makes
// of them.
//
// firehose/targets: what hits and misses cost beside what they should. "am+register" is a
// round trip whose handler ends a registration and begins another, which is the least
// that a miss can be. The bursts of all of them are taken in turn, and of each burst the
// median over its operations; "added" is the median of the differences of a hit and a put
// to the attach segment, "factor" that of (miss - hit - registration) / round trip, where
// the round trip is of short messages and the registration is what am+register takes
// beyond that. Then follow, from the runtime's counters, which share of the puts missed (some
// buckets may stay where they are), and the requests that rank 0 sends and the
// buckets that rank 1 pins for each miss.
//
// # Output
//
// A table, or with -json one object a line with the fields bench, conduit,
// ranks, size, metric (half_rtt, latency, rate: time an operation; bandwidth),
// value, unit (ns or bytes/s), ref (the reference's name) and ratio (value over
// reference), which references lack, via (where there are several ways), p50,
// p99, p999, batch, and ref_value; low and high, the quartiles over the bursts of ratio,
// or of value without a reference; spread, of times and shares, if every operation was
// timed by itself. In place of a reference stands "predicted" or "target" where a figure
// is to be compared with what it should be, and such have no percentiles; where ranks talk by datagrams auth and datagram
// (the most bytes of one), and loss if a relay loses some; beside with -beside.
//
// The program in folder plot draws curves of what -json prints.
//
// # Comparison with earlier figures
//
// -against compares a run with what -json has written before, figure by figure: the
// medians, in units of the reference where there is one, and beside them the quartiles of
// all bursts. The file may hold several runs, one after the other, and so may this one
// (-rounds): a band then has what moves from run to run, too. Runs count whose reference
// lies within a fifth of one of the other side's; a figure without any is not compared,
// since the host has moved the processors. "slower" is a figure all of whose
// band lies beyond the earlier one's (some, such as hit rates, have a band with three runs
// or more alone, and are neither before); if there is one, the exit status is 1. -slack 2 lets
// figures be up to twice as slow, as where rows that ran alone are compared with the same rows after others:
// a row must not depend on what ran before it. With -json the comparison goes to standard error.
//
//	gasbench -conduit shm -rounds 7 -json > before.json
//	gasbench -conduit shm -rounds 7 -against before.json
//
// # Neighbours
//
// -beside measures the rows once beside each of some neighbours on the machine, processes
// that gasbench starts before and ends after them: "nothing", "loop" (which never ends),
// "nice" (the same at nice 10), "pulse" (50 ms of a loop, then a pause as long, in turn), "build" (go build
// of a package of Go's library with an empty cache, again and again; left out where there is no go), "job" (a job of two ranks on
// the same conduit, started on its own, that measures the same); loop*2 is two. They run wherever the launcher of the job may, even if ranks are bound.
// Column beside, and the field in -json, name the neighbour; -against compares rows beside
// the same one. References run beside it, too: compare values rather than ratios.
//
//	gasrun -n 2 gasbench -beside nothing,nice,loop,loop*2,pulse,build,job -run am/short -size 4
//
// # Jobs
//
// gasbench -conduit starts jobs of two ranks on this host, bound as
// gasrun's -bind says: one for each conduit named, and on udp for each combination of
// ARGON_AUTH (-auth), ARGON_DATAGRAM (-datagram) and share of datagrams lost
// (-loss, percent). -rounds runs all of them so many times in turn.
// It prints the medians over the rounds, and how each kind of job relates
// to the first: the median over the rounds of the quotient of their values, without
// rounds in which the machine moved between the two.
//
//	gasbench -conduit udp -auth none,authenticated,encrypted -datagram 1400,65000
//	gasbench -conduit shm,hybrid -rounds 15 -run 'am/short|rma/put'
//	gasbench -conduit udp -auth none -loss 0,1,5 -run 'rma/put|rma/handles'
//
// With -loss every datagram of the job goes through a relay in this process, also
// with -loss 0; that is slower than the way from rank to rank, and the references
// do not take it. So figures with loss compare with those of -loss 0.
//
// # Simulated jobs
//
//	gasbench -conduit sim [-machine NAME] [-json] [-list] [-run REGEXP] [-ranks N]
//
// simulates all ranks in one process, without gasrun, on the machine that -machine
// names (see package sim). Virtual time is exact: there are no bursts, percentiles
// or references. Figures stand beside the sum of the profile's times.
//
// scale/barrier and scale/allreduce run jobs of 2, 4, 8, ... up to -ranks ranks on a crossbar,
// a torus and a fat tree, and print the time of a call, the model's, and what the
// simulation took: events, CPU seconds of this process, and its memory for each
// rank. scale/offload runs jobs of 16, 64, 256, ... ranks with
// and without cards that do barriers and multicasts, each call after a barrier. See
// docs/scaling.md. network/load and network/locality measure networks with finite buffers by themselves, of up
// to 16 x 16 nodes, by load and by how far packets go: docs/network-model.md.
//
// The objects of -json have the fields bench, what, profile, ranks, size, x (of network/...: the load in percent, or how far), metric,
// value, unit, expected (what the profile adds up to), hops (the same with the
// longest ways through the network), events, cpu_s, events_per_cpu_s and bytes_per_rank;
// those without a value are left out.
package main
