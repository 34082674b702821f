package conduits

import (
	"time"

	"github.com/argon-go/argon/segment"
)

// TransportWords is the most words of a message between Transports: those of a
// layer's message, and what package adapt sends along.
const TransportWords = MaxWords + 5

// Transport is one rank's access to a network that knows nothing of credits,
// atomics, handlers or parking: what the author of a conduit writes. Package adapt
// makes the [Endpoint] of it that the layers above use; package loop is one to read.
// Further abilities are the interfaces of capabilities.go.
//
// # Calls
//
// A method may be called by any goroutine at any time after Attach has returned,
// but one goroutine at a time is in Poll, and one in Wait. None but Attach, Wait, Fail and
// Close blocks, and Deregister of those that have it ([Registering]). A Transport calls the [Owner] that Attach was given: Deliver, Complete and
// Left inside Poll alone, Access from anywhere, and holds no lock then that its other
// methods take, for an Owner's methods may call Send, Kick and Err.
//
// # What may be reordered
//
// Everything: messages among themselves, puts and gets among themselves, and both
// with each other. Nothing is lost, damaged or repeated. Only two things have an
// order: what is sent after a put has been reported done is delivered when the put's
// data is in place, and Left comes after all that the rank has sent.
//
// # What ends a wait
//
// An event of a rank is: a message that Poll would deliver, or a Complete or a Left
// that it would call; room for a message after Send has answered NoCredit; data that
// a peer's put has changed here; the job's failure; a Kick. Wait returns when there
// has been an event since it returned the last time, so that one which meets no goroutine
// in Wait is not missed. It may return early.
type Transport interface {
	// Rank and Size identify the rank in its job. Legal before Attach.
	Rank() int
	Size() int
	// Limits may be called before Attach. Credits is what package adapt keeps to; of
	// a Transport's own room nothing is promised but that it comes back while the
	// receiver polls.
	Limits() Limits

	// Attach makes this rank reachable by messages, and its segment of size bytes by
	// puts and gets that ask o for it, and waits until all ranks of the job have done
	// so. It returns what the ranks have attached, by rank: shared and read-only. If
	// a rank fails before it has attached, the error is Err. Collective, once.
	Attach(o Owner, size uint64, rights segment.Rights) ([]Attached, error)

	// Send sends a message of 1 to TransportWords words and at most Limits.MaxMedium
	// bytes of payload to another rank. Both are read during the call alone. NoCredit
	// is the answer as long as there is no room, Dead if dst has left or the job has
	// failed.
	Send(dst int, words []uint32, payload []byte) Status
	// Put copies src, not empty, to address to of another rank; Get copies from
	// address from of rank src to dst. The addresses lie in the segment of that rank
	// or are of memory that it has registered. True: the put is visible at the target,
	// or the data are here; else Complete will say so, once, and the local memory
	// stays in use until then. The error of an access that its owner refuses is the
	// one that Access has returned there, at least its *segment.FaultError; of a rank
	// that has left, it matches ErrClosed; of a job that has failed, it is Err.
	// An access that is an aligned word of 8 bytes is moved in one piece.
	Put(dst int, to segment.NLA, src []byte, cookie uint64) (done bool, err error)
	Get(dst []byte, src int, from segment.NLA, cookie uint64) (done bool, err error)

	// Poll calls the Owner for what has arrived, a bounded amount of it, and returns
	// how many calls that were.
	Poll() int
	// Wait returns when there has been an event since it has returned the last time,
	// or when Now has reached until; 0 is never.
	Wait(until time.Duration)
	// Kick is an event of this rank.
	Kick()

	// Now is time since some fixed moment.
	Now() time.Duration
	// Err is the job's failure as this rank knows it, a *PeerError, or nil. Sticky.
	// Legal before Attach.
	Err() error
	// Fail declares that rank has failed because of err: Err of every rank becomes a
	// *PeerError that names it and wraps err, or has its text and exit status (see
	// ExitError). The first failure of a job counts. Legal before Attach.
	Fail(rank int, err error)
	// Close leaves the job: other ranks hear of it as Left, after all that was sent.
	// Legal before Attach, and called once, with no put or get under way unless the job
	// has failed. Other methods may be called during and after it by goroutines that
	// began before: Send answers Dead then, Put and Get fail with ErrClosed, Poll calls
	// nothing.
	Close() error
}

// Attached describes the segment that a rank has attached.
type Attached struct {
	Size   uint64         // of its segment, bytes
	Rights segment.Rights // that the other ranks have to it
}

// Owner is the rank behind a Transport: package adapt.
type Owner interface {
	// Deliver hands over a message that rank src has sent. Both slices are the
	// Transport's again when it returns.
	Deliver(src int, words []uint32, payload []byte)
	// Complete says that the put or get with cookie is done, or has failed.
	Complete(cookie uint64, err error)
	// Left says that rank has left the job and that all it had sent has been
	// delivered.
	Left(rank int)
	// Access has f move data from or to n bytes, at least 1, of this rank's segment or
	// of memory that it has registered, if rank src may: it is the target's part of
	// Put and Get. f must not keep the slice. The error is a *segment.FaultError, or
	// matches ErrClosed when this rank has left. Any goroutine may call it.
	Access(src int, a segment.NLA, n uint64, need segment.Rights, f func(mem []byte)) error
}
