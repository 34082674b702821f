// Package am sends active messages: a message names a handler that runs at the
// receiver, with up to 16 arguments of 32 bits, and may carry a payload (the
// core API of GASNet; Nüssle 2008, section 8.7).
//
//	short   arguments only
//	medium  plus a payload in a temporary buffer at the receiver
//	long    plus a payload put to an address of the receiver: in its segment, or
//	        where it has registered or exposed memory
//
// # Concepts
//
// All ranks register the same table of handlers and call [Attach], which checks
// that the tables agree. Index 0..127 belongs to the runtime, each package of which
// has a range ([FirstBarrier] and its kin), 128..255 to clients. A request is sent from anywhere but a handler; its handler gets a
// [Token], by which it may reply once, to the requester. A reply's handler
// sends nothing.
//
// # Set-up
//
// An [Messenger] stands on an endpoint of a conduit: a program that runs under
// gasrun, or as many ranks of one process, gets it with all layers on it from
// gas.Run (Node.Layers, and Config.Handlers for its own table). Without package gas,
// boot.Run opens the endpoint (package conduits/boot); the example shows the order in
// which the layers are made, and that a barrier comes before the first message.
//
// # Duties of the caller
//
// Handlers run when the receiver polls, on the goroutine that polls: inside
// Poll, Wait, and every call that waits, such as a request that finds no
// credit. A handler must not block, must not wait or poll, and must not send
// requests. It runs while no other request handler of its rank runs; a reply
// handler may run inside a request handler that waits for credit to reply.
// Arguments and medium payload are valid until the handler returns; the handler
// may overwrite a medium payload. No order is promised between messages, not
// even between two ranks.
//
// The payload given to a Request or Reply call is the caller's again when the
// call returns; RequestLongNB is the exception and says so.
//
// # Deadlock
//
// Requests and replies travel in separate classes with separate credits. A
// request that finds no credit polls, and so runs handlers. A reply that finds
// none polls replies only: reply handlers send nothing, so every rank that
// polls at all consumes replies, their credit returns, repliers go on, requests
// are consumed, and their credit returns too. No rank can wait in a circle.
//
// # Failure
//
// Arguments out of range are errors that wrap ErrBadArg and name value and
// limit; nothing is sent. Breaking a rule of this package inside a handler (a
// second reply, a reply from a reply handler, a request or a wait in a handler,
// a token used after its handler) is an error that names the handler, and it
// fails the job, because the other side may wait for what will never come,
// whatever the program does with the error. A request, a poll and a wait in a
// handler are found every time, also when they need not wait.
// When a rank of the job dies, calls that would wait return a *PeerError; so they
// do when one has ended the job by [Messenger.Exit].
//
// # Concurrency
//
// All methods of [Messenger] may be called by many goroutines.
package am
