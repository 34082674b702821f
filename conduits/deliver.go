package conduits

// Deliverer is implemented by endpoints that another conduit can be built on:
// one that keeps arrived messages and gives them to its own Receiver later, as
// chaos does, or that gathers those of several conduits, as a hybrid does. The
// Receiver of such a message may reply, but the message's own Receive has
// returned by then.
type Deliverer interface {
	// Deliver calls f as Poll calls Receive for a request, although there need
	// not be one: no other goroutine of this rank is polling meanwhile, Polling is true,
	// and what f calls may send replies, any number to any rank, and may call
	// PollReplies. f keeps the rules of Receive otherwise. Deliver returns false
	// without having called f if a goroutine is polling, the caller included.
	Deliver(f func()) bool
}
