package conduits

import "github.com/argon-go/argon/segment"

// Capabilities are abilities of a Transport beyond its own methods, as
// interfaces that it implements or does not. Package adapt asks for each in its own
// Attach, for Direct before that of the Transport, and has its own way of doing it
// otherwise. A
// capability is the same on all ranks of a job; docs/capabilities.md is the table.
// [Neighbourly] and [Diagnoser] are two more, which a Transport implements as an Endpoint does. A Transport on
// top of another one is a [Wrapper].
//
// Unless said otherwise a method keeps the rules of Transport: any goroutine calls it,
// it does not block, it may end at once or by Owner.Complete with its cookie, and its
// errors are those of Put.

// NotifyPutter is a Transport that can put data and say so at the target in one
// operation: a write with remote completion data.
type NotifyPutter interface {
	// NotifyWords is how many words PutNotify carries, 0 to TransportWords. 0 is no
	// capability. 1 is enough for package adapt to send the message beside the data,
	// and TransportWords to send nothing else.
	NotifyWords() int
	// PutNotify is Put that also has words, 1 to NotifyWords of them, delivered at dst
	// by Owner.Deliver, without payload, when the data is in place there. They are read
	// during the call alone. Nothing is delivered of a put that is refused. What is
	// delivered is an event of dst.
	PutNotify(dst int, to segment.NLA, src []byte, words []uint32, cookie uint64) (done bool, err error)
}

// WordPutter is a Transport with an immediate put, whose data travels with the
// command: an injected write.
type WordPutter interface {
	// PutWord puts the low n bytes (1, 2, 4 or 8) of v to an address of another rank
	// that is aligned to n, in one piece. It reads no memory of this rank later.
	PutWord(dst int, to segment.NLA, v uint64, n int, cookie uint64) (done bool, err error)
}

// Coherence says with what an atomic of a Transport is atomic.
type Coherence uint8

// From no operation to one that mixes with all others.
const (
	// CoherentNever: the Transport has no such operation.
	CoherentNever Coherence = iota
	// CoherentCard: with all atomics of the target's card, those that other ranks and
	// the target have it do. A processor's atomic may be lost, or lose one.
	CoherentCard
	// CoherentOwner: with those of the target's processors, too.
	CoherentOwner
)

// AtomicUnit is a Transport that performs atomics itself, while the target does not
// poll.
//
// Which of them package adapt uses, such that no update is lost where atomics of one
// word go different ways:
//
//   - Those that are CoherentOwner always, but for the own rank's words, which its
//     processor does, unless the next rule takes the width. The others are the
//     processor's as ever.
//   - Those that are CoherentCard only if the Transport has all operations on all types
//     of that width. Then all atomics of that width on segments are the Transport's,
//     the own rank's included, and the rank's own View has no right to atomics, so
//     that no layer lets a processor do one. Registered memory, whose owner reaches it
//     without the conduit, goes as if there were none of them. A Transport that is
//     [Direct], too, whose neighbours' processors reach segments, has no use of them.
//
// Words of 4 and of 8 bytes that overlap are no words of one width.
type AtomicUnit interface {
	// AtomicOps says what there is of op on type t, of those for which CheckAtomic has
	// no error. The same on all ranks.
	AtomicOps(op AtomicOp, t AtomicType) Coherence
	// Atomic performs op on an aligned word. dst may be the own rank if AtomicOps has
	// said CoherentCard of any operation on a word of that width. The old content is in old when the operation is done; old is
	// the Transport's until then. The owner's part is Owner.Access with the right to
	// atomics.
	Atomic(dst int, to segment.NLA, op AtomicOp, t AtomicType, a, b uint64, old *uint64, cookie uint64) (done bool, err error)
}

// Reserver is a Transport that gives room for messages in its own memory, so that
// they are written once, where the card reads them.
type Reserver interface {
	// Reserve gives room for a message of 1 to TransportWords words and at most
	// Limits.MaxMedium bytes of payload to another rank, which is the caller's until
	// Commit; Slot.Payload is aligned to 8 bytes, and nil for none. NoCredit is the answer if there is
	// none now: package adapt stages the message then, and sends it by Send. Replies of
	// a Transport with a ReplyLane are staged always, and sent there. Ref is the
	// Transport's own.
	Reserve(dst int, words, payload int) (Slot, Status)
	// Commit sends all words and so many bytes of the payload, at most as reserved,
	// without fail, or gives the room back and sends nothing. Rooms that are still
	// reserved when Close is called are the Transport's again.
	Commit(dst int, s Slot, payload int, send bool)
}

// ReplyLane is a Transport on which replies travel apart from requests, so that a
// handler that waits for credit takes them in and leaves requests in the network.
type ReplyLane interface {
	// SendReply is Send for replies, and for what package adapt sends itself and a
	// replier may wait for. The lane has room of its own: it comes back while the
	// receiver calls PollReplies alone.
	SendReply(dst int, words []uint32, payload []byte) Status
	// PollReplies is Poll for what came by SendReply, the words of PutNotify, and
	// Complete alone. It is called as Poll is, by one goroutine at a time for both.
	PollReplies() int
}

// Direct is a Transport some of whose ranks reach each other's segments by load and
// store. [Neighbourly] names those, so that layers work on two levels.
type Direct interface {
	// Segment makes the memory of this rank's segment where its neighbours reach it:
	// size bytes, zero, page aligned, not nil for 0, there as long as views of it are,
	// and outside the Go heap or followed by a byte that is no part of it. Called once,
	// before Attach.
	Segment(size uint64) ([]byte, error)
	// Reach is what Endpoint.Views is, and the system areas of the same ranks, nil of
	// those out of reach: SystemBytes each, zero, aligned to 64 bytes. The own rank's
	// entries are there. Called once, when Attach has returned.
	Reach() (first int, views []segment.View, systems [][]byte)
}

// Adopter is a Direct Transport that can be a part of another conduit, in whose memory
// segments lie: see [FarEndpoint].
type Adopter interface {
	// Adopt has mem be this rank's segment, in place of what Segment would return. Called
	// once, before Attach; mem stays the caller's, and there until Close has closed the
	// Transport.
	Adopt(mem []byte)
}

// Registering is a Transport whose card accesses registered memory itself, and so has to
// hear of what is registered beyond the segment: package adapt has the rank's translation
// unit tell it, or that of the conduit whose part it is (FarEndpoint.Registrar). Register and
// Deregister are called as [segment.Registrar] says, by any
// goroutine that no method of the Owner runs on, with locks held that Owner.Access does not take.
type Registering interface{ segment.Registrar }

// Kicker is a Transport that ends waits of other ranks by itself.
type Kicker interface {
	// KickRank is Kick of another rank, which may have left.
	KickRank(rank int)
}

// Wrapper is a Transport on top of another one, with methods for capabilities that the
// other one may lack. It has those that both of them have.
type Wrapper interface {
	Transport
	// Below is the other one. The same at every call.
	Below() Transport
}

// CapabilityOf is t as a C, a capability, if t has that: what
// package adapt, and a Wrapper of the one below it, ask by.
func CapabilityOf[C any](t Transport) (c C, ok bool) {
	if w, is := t.(Wrapper); is {
		if _, ok := CapabilityOf[C](w.Below()); !ok {
			return c, false
		}
	}
	c, ok = t.(C)
	return c, ok
}
