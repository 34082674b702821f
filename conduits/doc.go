// Package conduits is the contract between a transport and the runtime: the
// three units of the EXTOLL network card (VELO, RMA, ATU; Nüssle 2008, chapters
// 5 and 7) as Go interfaces.
//
// There are two ways to write a conduit. A [Transport] is the least: it moves
// messages and bytes, and package adapt makes an [Endpoint] of it. What follows is
// the Endpoint, which the layers above use, and which a conduit implements itself
// where the detour costs too much.
//
// # Concepts
//
// A job has Size ranks. Each opens one [Endpoint] and attaches one segment.
//
//   - VELO sends small messages: a 24-bit tag, up to [MaxWords] words, and
//     optionally a payload that the conduit carries into a landing buffer
//     (medium) or into the receiver's segment (long). The sender reserves room,
//     fills it in place, commits. "No credit" is an answer, never a wait.
//   - RMA moves bytes between local memory and a remote network logical address
//     and performs atomics there, without the remote program taking part. An
//     [Access] is the record of one such operation; [Endpoint].Post begins it.
//   - ATU translates network logical addresses: those of the attach segment, one
//     contiguous run that starts at segment.AttachBase, and those of memory that
//     the rank has registered with its ATU, of the Go heap or from MapMemory.
//
// An address of the attach segment is checked by the initiator, which knows its size
// and rights ([CheckRemote]). What is registered only its owner knows, so such an
// access may be refused later: with an error that matches segment.ErrFault, from
// Complete. Conduits that have an endpoint reach all memory of its rank embed
// [OwnMemory]; where several conduits serve a rank they share one ATU.
//
// Messages come in two classes, [Request] and [Reply] (the card's message type
// tags). The classes have separate credits all the way through: see Deadlock.
//
// # Duties of the caller
//
// Poll: messages run only when the rank polls. Everything that [Receiver] does
// runs on the polling goroutine, so it must not block, must not poll except by
// PollReplies, and must not send requests.
//
// Every Reserve that answers Ready is followed by exactly one Commit or Cancel,
// without a Poll in between. Other goroutines may use the endpoint meanwhile.
//
// # Concurrency
//
// An Endpoint may be used by many goroutines. Receiver methods are never run by
// two goroutines at once on one endpoint, but a Receive of a reply may be
// nested in a Receive of a request that called PollReplies.
//
// # Deadlock
//
// A request's Receive may send one reply to its source; if there is no credit
// for it, it calls PollReplies until there is. A reply's Receive sends nothing.
// So replies are always consumed by every rank that polls at all, in whatever
// state it is: their credits return, every blocked replier goes on, requests
// are consumed, and request credits return. What this needs of a conduit is
// that a reply's path (slots, landing buffer, wire) never waits for a request
// to be consumed.
//
// # Credit
//
// A sender that was answered NoCredit, or a replier, parks as for anything else:
// credit that returns is an arrival, so it ends a Park whose Arm came before it.
//
// # Order
//
// Messages have none, not even two of one class from one rank to one other: a
// conduit may deliver them as they come. Puts, gets and atomics have none among
// themselves, and with messages only this: the data of a ReservePut is in place
// when its message is delivered, and a put whose RemoteDone was reported is
// visible to the receiver of a message that is sent later. Every message is
// delivered once. Conduits with one path per pair do keep an order, shm that of each
// goroutine's messages; package chaos keeps none, and the conformance suite runs all
// layers on it, so that nothing above relies on more.
//
// # Attaching and leaving
//
// Attach of a job in which a rank closes its endpoint, or fails, before it has
// attached returns an error on all others that names that rank. Close is no
// failure: Err of the others stays nil. What they send to a rank that has closed is
// answered Dead, perhaps after NoCredit as long as the conduit has not heard of
// it, and a goroutine that is parked for its credit wakes to hear so.
//
// # Time and waiting
//
// Nothing above a conduit reads a clock, sleeps or starts a goroutine; a
// waiting layer calls [Wait], which uses Idle, Arm and Park of the endpoint. A
// conduit can therefore run the layers above in virtual time.
//
// # Leaving
//
// A rank leaves by Close. That is no failure, and what it had sent arrives; but
// what others still await from it does not come any more. Sends to it answer
// Dead, one-sided operations on it end with a *PeerError that names it, and a caller that
// waits for something else of it (a reply, its arrival in a barrier) waits by
// [WaitFor] with [Cond].Lacking, which is asked before it sleeps. Those
// errors match ErrClosed. Where all ranks need the one that has left, as in a
// barrier, the rank that finds out blames it ([Endpoint.Blame]), so that ranks
// that wait for it by way of others hear of it, too.
//
// # Failure
//
// When a rank of the job dies, Err becomes a *PeerError that names it, every
// parked caller wakes, and operations towards it answer Dead. It stays so. A rank
// ends the job with a status by failing with an [ExitError], which every conduit
// carries to all ranks as it is; other errors arrive as their text and status.
package conduits
