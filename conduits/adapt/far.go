package adapt

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// The methods of this file make an Endpoint the part of another conduit that reaches all ranks: a
// conduits.FarEndpoint but for AtEnd and Board, which only the Transport's package knows.

// over is memory that AttachOver was given.
type over struct {
	view segment.View
	atu  func() *segment.ATU
}

// AttachOver is Attach with memory that the caller has, all of v, as the segment, and with
// the unit that atu returns, or nil as long as there is none, for registered memory; see
// conduits.FarEndpoint. A Transport that is conduits.Direct has to be a conduits.Adopter,
// too.
func (e *Endpoint) AttachOver(v segment.View, atu func() *segment.ATU, c conduits.AttachConfig) error {
	if c.Size != v.Size() {
		return errs.BadArg("%s: attach of %d bytes over memory of %d", e.name, c.Size, v.Size())
	}
	return e.attach(c, &over{v, atu})
}

// adopt has v be the segment.
func (e *Endpoint) adopt(v segment.View) error {
	if e.direct == nil {
		return nil
	}
	a, ok := conduits.CapabilityOf[conduits.Adopter](e.t)
	if !ok {
		return errs.NotSupported("%s: the transport makes its segments itself, and takes none of another conduit", e.name)
	}
	mem, _ := v.Bytes(segment.AttachBase, v.Size(), v.Size())
	a.Adopt(mem)
	return nil
}

// unit is the address translation unit for accesses to this rank, or nil if none has been
// made.
func (e *Endpoint) unit() *segment.ATU {
	if e.over != nil {
		return e.over.atu()
	}
	return e.MadeATU()
}

// Registrar is the Transport, if its card has to hear of registered memory.
func (e *Endpoint) Registrar() segment.Registrar {
	r, _ := conduits.CapabilityOf[conduits.Registering](e.t)
	return r
}

// RepliesBeside is PollReplies for a caller that is in a handler of another conduit, while
// none of this endpoint's runs.
func (e *Endpoint) RepliesBeside() int {
	if e.closed.Load() || !e.poller.CompareAndSwap(0, sys.Goroutine()) {
		return 0
	}
	n := e.PollReplies()
	e.poller.Store(0)
	return n
}

// Failure is Err: the Transport hears of failures while its rank does not poll.
func (e *Endpoint) Failure() error { return e.Err() }
