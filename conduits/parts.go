package conduits

import (
	"context"

	"github.com/argon-go/argon/segment"
)

// A conduit may be a part of another one: Near reaches the ranks of one host, Far all
// ranks of a job of several. Package hybrid makes one conduit of any two.

// Near opens the conduit inside a host.
type Near struct {
	// Local opens n ranks, which share memory, of a job that runs in this process as a
	// whole.
	Local func(n int, p Part, c Config) ([]NearEndpoint, error)
	// Join opens this process's rank, whose number in the job is rank, over the memory
	// of n ranks that file descriptor fd is.
	Join func(fd, rank, n int, p Part) (NearEndpoint, error)
	// Memory makes the memory of n ranks, as Launch.Memory does; its File is what the
	// ranks Join.
	Memory func(n int, c Config) (JobMemory, error)
}

// Part says where the ranks that share a memory stand in a job that has other
// ranks, too.
type Part struct {
	First int // the lowest of them
	// Ranks are their numbers in the job, ascending, if those are not consecutive;
	// First does not count then. Read-only.
	Ranks   []int
	Size    int    // ranks of the whole job
	Conduit string // what Endpoint.Conduit answers
	// Outside has the segments of Near.Local lie outside the Go heap, unseen by the
	// race detector: for a conduit that may read what it has been asked for once
	// more, to send it again for nothing, when a neighbour writes there already.
	Outside bool
}

// NearEndpoint is a rank's endpoint to the ranks of its host. They have their numbers
// in the job; Size is that of the job.
type NearEndpoint interface {
	Endpoint
	Deliverer
	// DeliverCount is Deliver for an f that returns how many handlers it has run, which
	// is passed on, and after which goroutines that sleep are woken if it is not 0. An f
	// that is made once needs no memory at each call.
	DeliverCount(f func() int) (n int, ok bool)
	// Ranks are those that it reaches, ascending. The slice is the caller's.
	Ranks() []int
	// Hook has h called from now on. Only before Attach, and once.
	Hook(h Hooks)
	// MadeATU is what ATU returns, or nil as long as no call has asked for that.
	MadeATU() *segment.ATU
	// Release unmaps the segments of all ranks that one call of Near.Local with
	// Part.Outside has opened. To be called for one of them, when all of them are
	// closed and nothing accesses their memory any more.
	Release()
}

// Hooks are what a conduit that gives a NearEndpoint away as its own has to do
// besides; nil stands for nothing. They spare the endpoint's user a detour at
// every operation.
type Hooks struct {
	// Attached is called when all ranks have attached, with this rank's segment.
	Attached func(v segment.View, c AttachConfig) error
	// Failed is called by Fail before any rank of the host can know of the failure.
	Failed func(err error)
	// Blamed is called when Blame has been, with the job's failure as this memory has
	// it, which need not be of the rank blamed: only the first counts.
	Blamed func(failure *PeerError)
	// Closed is called by Close, once.
	Closed func() error
	// Look is called now and then from Attach to Close, by another goroutine, until
	// the job has failed: whether a rank polls or not.
	Look func()
	// Registrar is told what is registered beyond segments, too: see FarEndpoint.
	Registrar segment.Registrar
}

// Far opens the conduit between hosts.
type Far struct {
	// Local opens all ranks of a job in this process.
	Local func(n int, c Config) ([]FarEndpoint, error)
	// Join opens this process's rank of a launched job.
	Join func(j Job, c Config) (FarEndpoint, error)
}

// FarEndpoint is a rank's endpoint to all ranks of the job.
type FarEndpoint interface {
	Endpoint
	Deliverer
	// AttachOver is Attach with memory that the caller has, all of v, as the segment,
	// and with the address translation unit that atu returns, or nil as long as there
	// is none, for registered memory: ATU of this endpoint is not ready then. Both
	// stay the caller's and must outlive the endpoint's use. c.Size is v's. Atomics
	// that other ranks ask for are done with the processor's own, so that they may be
	// mixed with those of direct access.
	AttachOver(v segment.View, atu func() *segment.ATU, c AttachConfig) error
	// Registrar is told what is registered with the unit of AttachOver, from Attach on; nil if
	// the conduit does not need that.
	Registrar() segment.Registrar
	// RepliesBeside is PollReplies for a caller that is in a handler, but in none of
	// this endpoint, while none is run. Unlike Deliver it does not wake goroutines
	// that have armed, unless it has run something.
	RepliesBeside() int
	// Failure is Err for a caller that does not poll.
	Failure() error
	// AtEnd has f called when a job whose ranks are all in this process has ended
	// without failing: all of its endpoints are closed, and none has to do with their
	// memory any more. That is a moment after the last Close. To be called before
	// Attach; f must not use endpoints.
	AtEnd(f func())
	// Board is where the ranks of a job of several processes tell each other what they
	// need to meet; nil if the ranks are in one process.
	Board() Board
}

// Board has what the ranks of a job have told each other, by keys. Its methods may be
// called by any goroutine until the endpoint is closed, and fail when the job has.
type Board interface {
	// Host is the number of rank's host: equal for ranks of one host.
	Host(rank int) int
	// Put tells all ranks a value, once for a key.
	Put(key string, value []byte) error
	// Get waits until a value has been put.
	Get(ctx context.Context, key string) ([]byte, error)
}
