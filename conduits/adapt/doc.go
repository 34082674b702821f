// Package adapt makes a conduits.Endpoint of a conduits.Transport: what a network
// need not know is done here, once for all of them.
//
//   - Classes and credit. A rank may send Limits.Credits messages of each class to
//     each rank; the receiver returns credit by a message when half of it has been
//     run. So a Transport needs neither classes nor credits: what arrives is taken at
//     once, and waits here for its turn.
//   - Staging. Reserve gives room in a buffer of this package, or in one of a
//     [conduits.Reserver], and Commit sends it. What
//     the Transport has no room for waits in a backlog by rank, and is sent by later
//     polls, or by a goroutine that is there as long as there is a backlog: the rank
//     need not poll again.
//   - Notification puts. The data is put first, and the message sent when that is
//     done, which is all the order that a Transport has. A [conduits.NotifyPutter]
//     carries the message with the data, or else a note: the message is sent beside
//     the data then, and the receiver runs it when both have arrived.
//   - Atomics. A message asks the owner, whose poll performs the operation and
//     answers: they go on only while the target polls, or waits.
//   - Immediate puts are puts from a buffer of this package.
//   - Waiting and waking. One of the goroutines that are parked waits for the
//     Transport; wakes of other ranks are messages.
//   - Handlers: which goroutine polls, replies before requests inside a handler.
//
// Work that a Transport has a capability for (package conduits, capabilities.go) is left to
// it; docs/capabilities.md has the table of them.
//
// # Messages
//
// The first word of a message between Transports holds its kind, and class and tag
// of a layer's message:
//
//	bits  0..23   tag; of an atomic the operation and its type, of a result 1: refused
//	bit   24      class
//	bits 25..27   kind
//
//	kind     words that follow
//	message  those of the layer
//	long     address and length of the data, two words each, lower first; those of the layer
//	credit   requests, replies that have been run
//	wake     none
//	atomic   number, address, operands a and b, of two words each but the first
//	result   number, old content; or, if refused: number, page, its entry in the table
//	awaited  as of long, with the number of a note in bits 40 to 63 of the length
//	note     none; or, if the data was refused: one. The number is in place of the tag
//
// A message that is none of these fails the rank that has sent it.
//
// # What is not as fast as it could be
//
// Each message is copied once by its sender's Reserve, if that is used, and once by
// the receiver. A conduit that cannot afford that implements conduits.Endpoint.
package adapt
