// Package chaos is a conduit on top of another one that keeps the contract of
// package conduits and otherwise does what its users hope will not happen: it
// delays and reorders messages, has no credit where there is room, completes
// late what was done at once, performs puts and gets long after they were begun,
// wakes for nothing, gives up early, and lets ranks die. Code that works on it
// relies on the contract and not on the habits of one conduit.
//
//	open := chaos.Local(shm.Local, chaos.Config{HideNeighbours: true})
//	eps, err := open(4, conduits.Config{Seed: 7})
//
// That is of Endpoints, which all conduits have. [Transport] and [Open] do the like to a
// conduits.Transport, below package adapt: for those that write one.
//
// Everything is decided by one random stream a rank, made from the seed and the
// rank: on a conduit that is deterministic the same seed gives the same run.
// [Done] counts what was really done to an endpoint.
//
// # Where messages wait
//
// Messages wait at the receiver. Were they kept by the sender, one that computes
// instead of polling would stop what it has sent already, which no conduit does.
// But a request that waits runs when the conduit below is no longer inside the
// Receive that brought it, and its handler may reply, which conduits allow only
// there, because they need no lock then. So the conduit below must be a
// [conduits.Deliverer]: it lends its state of being in a handler.
//
// One that came with data in registered memory is dropped, and counted as refused,
// if that memory has been withdrawn meanwhile.
//
// The exception is a long request whose source may still be read: its sender has
// to poll in any case, to hear that it may be reused, so some of these are put
// and sent by a later poll of the sender. That finds callers that reuse a source early.
//
// # Nothing waits for ever
//
// A message that is kept goes on after Config.Patience polls of its rank; no
// answer is wrong more than Config.Streak times in a row; and a goroutine that parks
// while something is kept, or was told that there is no credit since it armed,
// does not sleep.
package chaos
