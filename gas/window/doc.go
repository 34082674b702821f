// Package window has the windows of MPI-2's one-sided communication (MPI-2, chapter 6), for programs that come
// from it: memory that each rank of a group opens to all others, which put, get and accumulate there by rank,
// displacement and shape, in epochs that are begun and ended by synchronization. What is new is better written with
// package gas, whose pointers need no epochs.
//
//	MPI_Win_create                 New
//	MPI_Win_free                   Window.Delete
//	MPI_Put, MPI_Get               Window.Put, Window.Get
//	MPI_Accumulate                 Window.Accumulate, of gas.AddNBI, MaxNBI, MinNBI, AndNBI, OrNBI, XorNBI, StoreNBI
//	MPI_Win_fence                  Window.Fence
//	MPI_Win_post, MPI_Win_wait     Window.Post, Window.Wait
//	MPI_Win_start, _complete       Window.Start, Window.Complete
//	MPI_Win_lock, MPI_Win_unlock   Window.Lock, Window.LockShared, Window.Unlock
//	a derived data type            gas.Shape
//
// # Epochs
//
// A rank may access the window of another only in an epoch, and what it accesses is done when that epoch ends:
//
//   - Fence ends an epoch of all ranks, and begins the next.
//   - Start begins an epoch with some ranks, each of which opens its memory to this one by Post; Complete ends it. Wait
//     returns at a rank that has called Post when all ranks that it named have called Complete.
//   - Lock and LockShared begin an epoch with one rank, which has no part in it; Unlock ends it.
//
// Until the epoch ends what a put takes its elements from must not be changed, and what a get has is undefined. Two
// accesses of one epoch, by whichever ranks, must not have an element in common of which one writes it, but for
// accumulations by the same operation, each of which is atomic. After the epoch the target finds what was put by plain loads: after
// Fence, Wait, or a lock of its own. An access outside of an epoch is an error.
//
// # How
//
// Transfers are those of package gas: one-sided, and by load and store where a rank is in reach. Fence is mutual immediate puts, as Nüssle
// 2008, section 8.6, makes it, of a word each, to one rank a round of which there are as many as the logarithm of the ranks. Post and
// Complete are a word each, put to the other side, where Start and Wait sleep for it; in the operands of tables
// 7-5 and 7-6 there both are variables of the target, on which a start has to be repeated. The lock is a gas.Lock. A window takes, of each
// rank, its memory, 40 bytes, and 32 for each rank of the group.
//
// A Window is used by one goroutine of a rank at a time. If a rank dies, calls that need it end with a [*gas.PeerError].
package window
