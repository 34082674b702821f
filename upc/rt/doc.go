// Package rt has the functions that programs of a compiler for UPC 1.3 call: every service of the language
// and its libraries, with plain arguments and without error results. It is a thin front of
// packages gas and extended: a UPC thread is a rank.
//
// Generated code registers its shared variables by [Static] and gives [Main] a function, which each thread runs with a [Thread]
// of its own; the example is a whole program. Other languages use the same calls: docs/compilers.md is the guide for authors of
// compilers, with what must not be called where, and examples/caf one for coarrays.
//
// Sections are those of the UPC Language, Required Library (7.4, 7.5) and Optional Library
// (7.6 to 7.9) Specifications, version 1.3.
//
// # Pointers-to-shared
//
// A type with block size 1 or the indefinite one has [Phaseless] pointers, every other type
// and "shared void *" has [Phased] ones; both are words of 8 bytes, so that structures have
// one layout. [Wide] is either, unpacked. Sizes, block sizes and THREADS are arguments of the
// arithmetic: a compiler passes constants. What UPC leaves undefined has some result, and
// is not looked for.
//
//	UPC                       Phaseless        Phased
//	p + 1                     Next, AddLocal   Next
//	p + n, p - n              Add, AddLocal    Add
//	p - r; p < r              Sub, SubLocal    Sub, and its sign
//	p == r                    ==               Equal
//	(shared [B] T *)p         Phased           Phaseless, ResetPhase, or nothing: see Wide.Cast
//	upc_threadof              Thread           Thread
//	upc_phaseof               0                Phase
//	upc_addrfield             AddrField        AddrField
//	upc_resetphase            p                ResetPhase
//
// [ToPtr] and [FromPtr] lead to and from the pointers of package gas.
//
// # Shared objects and allocation
//
// [Static] registers the shared objects of a program, from which [Run] lays them out: in the
// order of the table, at the same address on all threads, as many bytes on each as the thread
// with the most elements needs, zero. [Thread.Base] is where one begins.
//
// A segment has, from its beginning on, what package gas needs, the static objects, the
// symmetric heap, and the thread's own allocations, which begin at its end:
//
//	Alloc        upc_alloc         the thread's own memory: nothing is sent
//	GlobalAlloc  upc_global_alloc  the symmetric heap: a call to thread 0
//	AllAlloc     upc_all_alloc     the symmetric heap, by thread 0, and a broadcast
//	Free         upc_free          to the thread that has the heap: a call, or nothing
//	AllFree      upc_all_free      a barrier, and Free by thread 0
//
// The symmetric heap is as large on all threads (Config.Heap), and thread 0 keeps account of
// it for all, so that blocks lie at one address everywhere and any thread may free them.
// Thread 0 answers when it accesses memory strictly, synchronizes or polls: where it computes for long, ARGON_PROGRESS=1
// has another goroutine do so.
//
// # Memory model
//
// [Get] and [Put] are relaxed, [GetStrict] and [PutStrict] strict accesses (UPC 1.3, 5.1.2.3
// and annex B): all threads agree on one order of the strict accesses, in which those of a
// thread stand as in its program; a relaxed access of a thread stands on the side of each of
// its strict accesses on which its program has it, as every thread sees it; a thread sees its
// own accesses to a place in order, and all threads see the accesses to one word of up to 8
// bytes in one order. [Thread.Fence], a barrier, and the taking and giving back of a lock are
// strict accesses. So, with words that are 0 at first:
//
//	store buffering      x=1, reads y | y=1, reads x     never both 0
//	message passing      x=1, y=1 | reads y, reads x     never 1, then 0
//	load buffering       reads x, y=1 | reads y, x=1     never both 1
//	independent reads    x=1 | y=1 | reads x, reads y | reads y, reads x
//	of independent       never both 1, then 0
//	writes
//	coherence            x=1, x=2 | reads x, reads x     never 2, then 1
//
// if all accesses are strict; in message passing x may be relaxed, in coherence all may.
// TestLitmus looks for the opposite. To the race detector of Go, strict accesses race.
//
// [PutAsync] and [GetAsync] are relaxed accesses that go on after the call, for those that a
// compiler knows to be independent, and the calls of the library for non-blocking transfers
// (7.9) are ordered by their synchronization alone.
//
// [Window] has the elements of a row, a block, or behind a pointer, for loops that access many of them; [Group] the
// accesses of a loop that are under way together.
//
// # Synchronization
//
// Locks ([Lock]) are queues, so that threads get them in the order in which they have come, and
// a thread that waits is woken once, by a write to its own memory. A thread that unlocks, or
// frees, what it may not ends the job, and so does one that locks what it holds.
//
// A barrier's expressions are compared by all threads: [Thread.Barrier] and its phases have one,
// [Thread.BarrierAny] and its phases match any. Notify completes what PutAsync and GetAsync have
// begun. Between notify and wait no call is made that all threads make together.
//
// [Thread.ForInt] and [Thread.ForShared] turn the affinity of upc_forall into bounds of a loop,
// so that no iteration tests it.
//
// # Collectives and the optional libraries
//
// Relocalization (7.4.2) is done by the collectives of package gas on the threads' own memory,
// reductions (7.4.3) of each thread's elements and then of the threads' results. What
// [SyncFlags] ask for is done by barriers; calls without them wait for threads as far as data
// has to come from them. Reductions with a function that is not commutative combine in the
// array's order; of floats, sums depend on THREADS. Arrays may begin inside a block.
//
// There are atomic domains (7.6, [Thread.AllDomainAlloc], [Atomic]), castability (7.7,
// [Thread.Cast], [Thread.Info]), timers (7.5, [Thread.TicksNow]), parallel I/O (7.8, [AllFOpen],
// [File]) and non-blocking transfers (7.9, [Thread.MemPutNB] and its kin).
//
// Calls on files have errors as results, which C programs get as errno: they alone go on after a failure.
//
// # Failure
//
// A thread that returns waits for all others; a status that it has given ([Thread.Status]) is that
// of the job then. [Thread.GlobalExit] ends the job at once.
//
// The first error of a thread ends its function and fails the job: [Run] returns it, with the
// line of the program, or of generated code: that which Go's line directives name, of the innermost call that is
// not made in a file called "<name>", as a generator calls the one that its helpers are in. A null pointer, an address that is not shared
// memory, a free of what is not allocated are such errors.
package rt
