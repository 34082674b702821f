// Package gas is a partitioned global address space for Go programs: N ranks run
// one program, each brings a segment of memory that all others read and write
// one-sidedly through typed pointers, and ranks call functions on each other.
//
// # Running
//
// A program hands its work to [Run] or [Main], which call it once per rank with
// that rank's [Node]:
//
//	func main() {
//		gas.Main(func(n *gas.Node) error {
//			fmt.Println("rank", n.Rank(), "of", n.Size())
//			return n.Barrier()
//		})
//	}
//
// Under "gasrun -n 4 prog" each rank is a process. Without it, Config.Ranks (or
// ARGON_RANKS) ranks run as goroutines of one process, over the same code paths.
// Since a process may be several ranks, every operation names its Node, and
// program state belongs in variables of the function or in [PerRank], not in
// plain package variables.
//
// Returning nil from the function enters a final barrier, so a rank's memory
// stays reachable until all are done. A rank that returns an error, panics, or
// ends its goroutine fails the job.
//
// Code that has nothing to do about errors is shorter with [Must], [Must2] and [Node.Must], by which
// the first error of a rank ends its function.
//
// # Memory
//
// [New] and [NewSlice] are collective: all ranks call them and get memory at the
// same offset, so p.On(rank) is rank's counterpart of p. [Alloc] takes memory
// from the calling rank's segment alone; the [Ptr] is then sent or stored to
// where others find it. [NewArray] spreads an [Array] over all ranks by UPC's
// rules, and [segment.Shared] does UPC's arithmetic. What all ranks have made together, by a function
// whose name begins with New, Delete takes back from all of them: [Delete], [Array.Delete],
// [Team.Delete], [Mailbox.Delete] and so on. What one rank has taken by itself, by Alloc, [MakeSlice],
// [Register] or [Node.Lane], Free gives back: [Free], [Node.Free]. Fresh memory is zero. Types that hold Go pointers cannot be
// shared; [CheckType] names the field.
//
// Memory beyond the segment takes part too. [MakeSlice] makes a slice of any size that the
// processes of a host reach by load and store, after a look-up.
// [Register] gives a Ptr to a slice of the rank's own, in the Go heap or mapped.
// Accesses after [Free] are errors that match [ErrFault]. All that works on a
// segment works there: transfers, atomics, locks, signals, calls that are given
// the Ptr. Peers reach a part of it when its owner has granted it to them, which
// takes a message the first time; what is used again and again stays granted, up to
// Config.Pinnable (package firehose). [PtrTo] finds the Ptr for a Go pointer.
// The program orders the owner's own accesses to the slice, as below; it
// must not write a Go pointer into it. Config.Large makes the whole segment such
// memory, so that it can be as large as addresses reach.
//
// Put and Get are blocking: they return when the data is where it belongs.
// PutNB and GetNB begin a transfer that [Node.Sync] waits for, or a Future of [Node.Future]; PutNBI, GetNBI, [AddNBI] and
// their kin begin operations without a Handle each, and [Node.SyncImplicit] waits for all
// of them. [Ptr.PutShape] and its kin move many elements that do
// not lie together, by a [Shape]. [Ptr.Local] gives plain Go access to what the process can reach by load
// and store.
//
// # Order
//
// Put and Get order nothing between ranks and wake no rank. What one rank has
// written another one sees for certain after
//
//   - a barrier of both ([Node.Barrier], [Node.BarrierNotify]) or another
//     collective operation in which data flows from the one to the other;
//   - an atomic by which it sees what the writer stored with an atomic after
//     writing ([Store], [FetchAdd] and so on), alone or in [Node.Wait];
//   - [WaitUntil] and its kin for one, all, any or some of many flags, for
//     what [Ptr.PutSignal] brought, and may overwrite what [Ptr.GetSignal] has read;
//   - taking a [Lock] that the writer has given back;
//   - a call from the writer, or its answer.
//
// [Broadcast], [Reduce], [AllReduce], [Gather], [AllGather], [Scatter], [InclusiveScan] and
// [ExclusiveScan] combine numbers and small structs of all ranks; slices those whose names
// end in Slice, [AllToAll] and [ReduceScatter], and slices whose lengths differ [GatherV],
// [AllGatherV] and [AllToAllV]. [Team.Split] of [Node.World] makes a [Team] of some ranks, for
// which these are called in place of the Node; [NewTeamSlice] allocates memory of its members, and
// containers of package dist take it, too.
//
// # Calls
//
// Barriers do not wait for calls: what [Func.Send] and [Func.Go] have begun may run after the
// caller's next barrier. [Future.Wait] waits for one, [Node.Quiesce] for all of all ranks, and for
// what they cause.
//
// [RegisterCall] makes a function callable on any rank. It runs inside the
// target's progress, as every active message handler does: it must not block,
// so it may use local memory, atomics on its own neighbourhood and its own data,
// and nothing that waits. [RegisterFunc] is for functions that may fail or want to know
// their caller, [RegisterTask] for those that put, get, lock or call others: tasks run
// later, on a goroutine of the rank that waits or polls, and so does what any function puts
// off by [Node.Defer].
//
// Arguments and results may hold strings and slices of any length, which the receiver gets
// as its own. An error of a function, or its panic if the caller waits, is the caller's: a
// [*CallError] that names function and rank, and matches what the function's error matched
// of this package's. If a rank dies, calls of it end with a [*PeerError].
//
// A [Mailbox] is for programs whose ranks send each other very many small items: it
// sends them in batches, and its function gets many at a time. A [Batch] does so with questions
// and answers, and [Array.GetAll], [Array.PutAll] and [AddAll] with elements of an array.
//
// # Progress
//
// A rank answers calls and, outside the neighbourhood, puts and gets of others
// when it calls anything in this package that waits, or [Node.Poll].
// Config.Progress does it in the background.
//
// # Environment
//
//	ARGON_RANKS          ranks inside this process: Config.Ranks
//	ARGON_CONDUIT        transport: Config.Conduit, -conduit
//	ARGON_LANES          lanes of a rank: Config.Lanes, -lanes
//	ARGON_BIND           processors of the ranks of a host: -bind
//	ARGON_PROGRESS       answer peers in the background, 0 or 1: Config.Progress
//	ARGON_WORKERS        goroutines that run tasks: Config.Workers
//	ARGON_SEGMENT        shared memory of a rank: Config.SegmentSize, -segment
//	ARGON_SEGMENT_LARGE  reach segments by firehoses, 0 or 1: Config.Large, -segment-large
//	ARGON_PINNABLE       memory that firehoses reach: Config.Pinnable, -pinnable
//	ARGON_PIN_LOCAL      part of ARGON_PINNABLE for own pins: Config.PinLocal, -pin-local
//	ARGON_PIN_BUCKET     unit of ARGON_PINNABLE, pinned at once: Config.PinBucket, -pin-bucket
//	ARGON_PIN_LOCK       have pinned memory locked, 0 or 1: Config.PinLock
//	ARGON_PIN_HOST       what all jobs of a host lock together: Config.PinHost
//	ARGON_PIN_LEAST      part of ARGON_PIN_HOST that each rank has: Config.PinLeast
//	ARGON_ALONE          processes of another launcher are jobs by themselves, 0 or 1
//	ARGON_DEBUG          checks that cost time, 0 or 1: Config.Debug
//	ARGON_STALL          say why when no rank gets on: -stall
//	ARGON_PROFILE        print where time goes: Config.Profile, -profile
//	ARGON_TRACE          file for a trace: Config.Trace, -trace
//	ARGON_TRACE_LAST     keep the last of the trace: Config.TraceLast, -trace-last
//	ARGON_FREEZE         stop before joining, for a debugger, 0 or 1: -freeze RANK
//	ARGON_VERBOSEENV     print what came of the variables, 0 or 1
//	ARGON_RECORD         file for the traffic: -record
//
// docs/knobs.md lists all that there are. Another name that begins with ARGON_, a value
// that a variable cannot have, and ARGON_SIM on a conduit other than sim are errors:
// Run returns them, and Main ends with status 2.
//
// # Failure
//
// Invalid arguments give an error that names the value, the limit and the knob;
// it matches [ErrBadArg], [ErrResource] and their kin with errors.Is. When a
// rank fails, every operation of other ranks that needs it ends with a
// [*PeerError] naming it; nothing waits for ever. One rank ends the job with a
// status of its choice by [Node.Exit], and a context that ends ends the job of
// [RunContext]. When no rank has got on for 30 s (ARGON_STALL), and on SIGUSR1, a program prints which rank is
// the cause and where each is, and goes on; on SIGQUIT it prints all goroutine stacks, too, and ends.
//
// # Concurrency
//
// A Node may be used by many goroutines. Collective operations (barriers, New,
// NewArray, Delete and so on: the first line of a comment says so) are called by
// one goroutine per rank at a time, in the same order on every rank.
//
// Goroutines that send all the time should have a lane each, [Node.Lane]: a Node of the
// same rank by which they send and poll without a lock that others take.
package gas
