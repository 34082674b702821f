// Gasbench measures the runtime between two ranks and puts every figure beside
// a reference that was taken in the same run:
//
//	gasrun -n 2 gasbench [-json] [-list] [-run REGEXP] [-time D] [-bursts N]
//
// Ranks 0 and 1 are measured; others, if there are any, wait, and take part in
// barrier. -run selects benchmarks by a regular expression that has to match
// the whole name, slash included; -list prints the names.
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
// # Benchmarks
//
// am/short, am/medium, am/long: half_rtt is half the time from a request, by way
// of its handler's reply of the same kind and size, to the requester's return
// from Wait; handlers do not look at payloads, as in GASNet's testam. rate is the
// time a message when one rank sends and the other only polls, the last message
// being answered. size is in bytes, for am/short the number of arguments.
//
// rma/put, rma/get, rma/putnb, atomic/add: operations on memory that the other
// rank does not touch meanwhile, one after the other, through package extended
// ("extended" with byte slices, "value" with words), or through gas.Ptr[uint64]
// ("ptr"). rma/putnb begins 64 puts and then waits for all of them.
//
// barrier: a full barrier of all ranks of the job.
//
// # Output
//
// A table, or with -json one object a line with the fields bench, conduit,
// ranks, size, metric (half_rtt, latency, rate: time an operation; bandwidth),
// value, unit (ns or bytes/s), ref (the reference's name) and ratio (value over
// reference), which references lack, via (where there are several ways), p50,
// p99, p999, batch, and ref_value.
//
// # Simulated jobs
//
//	gasbench -conduit sim [-profile NAME] [-json] [-list] [-run REGEXP] [-ranks N] [-plot FILE]
//
// simulates all ranks in one process, without gasrun, on the machine that -profile
// names (see package sim). Virtual time is exact: there are no bursts, percentiles
// or references. Figures stand beside the sum of the profile's times, and for
// profile extoll beside what the seed thesis predicts and has measured.
// docs/predictions.md explains them.
//
// thesis/... and am/short run by default. scale/barrier and scale/allreduce have
// to be selected; they run jobs of 2, 4, 8, ... up to -ranks ranks on a crossbar,
// a torus and a fat tree, and print the time of a call, the model's, and what the
// simulation took: events, CPU seconds of this process, and its memory for each
// rank. -plot draws their curves as SVG. See docs/scaling.md.
//
// The objects of -json have the fields bench, what, profile, ranks, size, metric,
// value, unit, expected (what the profile adds up to), hops (the same with the
// longest ways through the network), prognosis and published (of the thesis),
// difference_percent, note, events, cpu_s, events_per_cpu_s and bytes_per_rank;
// those without a value are left out.
package main
