package conduits

// The registers of a Card that argon's layers use. Others are for layers that are
// not argon's.
const (
	// BarrierOfJob is package barrier's.
	BarrierOfJob = iota
	// BarrierOfCollectives is package extended/collective's.
	BarrierOfCollectives
	// BarrierRegisters is how many a card needs for both.
	BarrierRegisters
)

// Card is implemented by endpoints of a card, and of the switches that join cards, that do
// something for all ranks of a job at once: barriers, and the replication of messages. The
// layers have their own ways by messages otherwise. An Endpoint has each on all ranks of a job
// or on none.
//
// A barrier is a register of the card: it joins all ranks of the job, never some of them, and is
// in one phase at a time. Those of different registers know nothing of each other.
//
// The methods do not wait. The result of a phase is an event of the rank, as a message is:
// it ends Park.
type Card interface {
	// Barriers is how many registers there are, numbers 0 and up; 0 is no capability. The
	// same on all ranks, and legal before Attach.
	Barriers() int
	// EnterBarrier says that this rank has come to its next phase of register reg, with two
	// words, of which the least of all low and the greatest of all high become known to all
	// ranks. What is complete at this rank before is seen by every rank that knows the
	// result. ErrNotReady, with nothing done, if the rank's last phase is not over; Err if the
	// job has failed; ErrBadArg if there is no such register.
	EnterBarrier(reg int, low, high uint64) error
	// BarrierResult is the number of the last phase that all ranks have come to, as far as
	// this one knows, and the words of that; the first phase is 1. All are 0 before.
	BarrierResult(reg int) (phase, low, high uint64)
	// BarrierLeft is a rank that has left the job, as Left says, and has not come to the
	// phase of reg that this rank waits for; -1 if there is none.
	BarrierLeft(reg int) int
	// BarrierMissing lists the ranks, ascending, that have not come to the phase that this rank
	// waits for; for reports, as it may look at all ranks. Nil if this rank waits for none.
	BarrierMissing(reg int) []int

	// MaxMulticast is the largest payload of Multicast in bytes, at most Limits.MaxMedium;
	// 0 is no capability. The same on all ranks, and legal before Attach.
	MaxMulticast() int
	// Multicast sends a request of 0 to MaxMulticast bytes, which are copied, to all other
	// ranks, each of which receives it once, as if SendPayload had sent it there, or Send one
	// without payload. It has a credit of its own: NoCredit is the answer while ranks have not
	// taken as many of this rank's multicasts as may be under way. A rank that has left
	// the job takes what comes. There is no order between multicasts, nor with messages.
	Multicast(tag Tag, words []uint32, payload []byte) Status
}

// BarriersOf is ep's card, if it has at least so many barriers.
func BarriersOf(ep Endpoint, registers int) (c Card, ok bool) {
	c, ok = As[Card](ep)
	return c, ok && c.Barriers() >= registers
}

// MulticastOf is ep's card, if its switches replicate messages.
func MulticastOf(ep Endpoint) (c Card, ok bool) {
	c, ok = As[Card](ep)
	return c, ok && c.MaxMulticast() > 0
}
