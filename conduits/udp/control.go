package udp

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// control carries news between ranks beside datagrams: which have attached, with which
// segments, which have left, and whether the job has failed. Any goroutine may use it; a
// change that another rank has made is followed by notify of the rank's endpoint.
type control interface {
	conduits.Blocked // names the ranks that Attach waits for

	// attach announces what this rank has attached.
	attach(size uint64, rights segment.Rights) error
	// open reports whether all ranks have attached; then segment returns their segments.
	open() bool
	segment(rank int) (size uint64, rights segment.Rights)

	// failure is the job's, or nil.
	failure() *conduits.PeerError
	// fail declares rank failed, unless another one has before.
	fail(rank int, err error)

	// gone reports whether rank has left.
	gone(rank int) bool
	// allArrived reports whether rank has left, and all that it had sent has arrived.
	allArrived(rank int) bool
	// leave announces that this rank has closed. Others may still need it: see stay.
	leave()
	// stay serves the others until none needs this rank any more, nor this rank
	// them, and releases what the endpoint holds.
	stay(e *Endpoint)

	// wake makes rank's parked goroutines look again, if direct access to its
	// segment can have changed anything.
	wake(rank int)
}
