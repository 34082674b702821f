// Package aggregate collects small items for other ranks into batches, and finds out when
// all of them have been handled. It works on bytes, for compilers and runtimes that use
// package am without package gas, whose Mailbox and Quiesce are fronts of it.
//
// # Boxes
//
// A Box has a function that gets the items which others push to this rank. Push collects
// items by destination, Send takes as many as the caller has collected itself. The
// function runs on the goroutine that is in a call of this package, never in a handler, so
// it may put, get and call, and needs no lock against what that goroutine does otherwise.
// Its own items are queued: it never waits for room, so memory grows by what functions push.
// A rank that pushes outside of them waits, and delivers meanwhile, while more than 64 KiB
// of a box wait to be sent, and at most 64 KiB of a box are on the way to a rank, or wait
// there to be handled.
//
// A rank therefore may have to wait in Push until others are in a call of this package, too.
// One that waits for something else then, such as a barrier that the pushing rank is to
// come to, waits for ever; so programs end what they push by Sync.
//
// # Sync
//
// Sync ends when all that was pushed before, and all that was pushed because of that, has
// been handled on all ranks. It works for other things that are counted, too: see Party.
//
// # Routes
//
// In jobs of up to 128 ranks each sends to each. In larger ones Push sends by one rank in
// between: ranks form a grid, and a rank sends to those of its row and its column. A rank
// then has buffers, and windows, for two times the root of all ranks.
//
// # Failure
//
// A rank that fails ends the calls of others with a *PeerError. A batch whose counts
// contradict each other, which only a faulty peer sends, is a panic that names it.
package aggregate
