package conduits

import (
	"runtime"
	"time"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/job/jobenv"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// The errors of every layer; see package gas for their meaning to users.
var (
	ErrResource     = errs.ErrResource
	ErrBadArg       = errs.ErrBadArg
	ErrNotReady     = errs.ErrNotReady
	ErrNotSupported = errs.ErrNotSupported
	ErrClosed       = errs.ErrClosed
	ErrPeer         = errs.ErrPeer
)

// PeerError names a rank that failed, and why.
//
//	type PeerError struct {
//		Rank int    // the rank that failed; negative: none in particular
//		Op   string // what the caller was doing, such as "request short" or "barrier"
//		Err  error  // why: how the rank ended, as far as is known
//		Own  bool   // Rank is the rank that has the error: others have declared it failed
//	}
type PeerError = errs.PeerError

// ExitError is what a rank fails with, by Endpoint.Fail, to end the job with a
// status of its choice, 0 included: the first counts, as of all failures.
//
//	type ExitError struct {
//		Code int // the job's exit status, 0 to 255
//	}
type ExitError = errs.ExitError

// Class is the message type tag that separates requests from replies.
type Class uint8

// The two classes.
const (
	Request Class = iota
	Reply
	NumClasses = 2
)

// String names the class.
func (c Class) String() string {
	if c == Reply {
		return "reply"
	}
	return "request"
}

// Tag is carried unchanged from Commit to Message. Its low TagBits belong to
// the layer above; the others must be zero.
type Tag uint32

// Sizes that every conduit offers at least.
const (
	TagBits  = 24 // bits of a Tag
	MaxWords = 20 // 32-bit words of a small message: 16 arguments and 4 of a header

	// SystemBytes is the size of SystemWords, see Endpoint.System.
	SystemBytes = 2048
	// SystemCollective is where the part of package collective begins in SystemWords; that
	// of package barrier is before it.
	SystemCollective = SystemBytes / 2
)

// SystemArea names what a rank has beside its segment for the layers above; see Endpoint.System.
type SystemArea uint8

// The areas.
const (
	SystemWords   SystemArea = iota // SystemBytes, of packages barrier and collective
	SystemStaging                   // data of package collective; not every conduit has it
)

// Status answers an operation that may have to be tried again.
type Status uint8

// The answers.
const (
	Ready    Status = iota // done, or room reserved
	NoCredit               // not now: poll, then try again
	Dead                   // never: the peer or the job has failed, see Err; may be noticed only when credit runs out
	Apart                  // of SendPayload alone: not by one call
)

// Slot is room for one message, reserved by Reserve or ReservePut and handed
// back by Commit or Cancel. Words and Payload point into the conduit's memory,
// hold garbage at first, and must not be touched after Commit or Cancel.
type Slot struct {
	Words   []uint32 // as many as reserved
	Payload []byte   // as long as reserved; aligned to 8 bytes; nil for ReservePut and for none
	Ref     uint64   // the conduit's own
}

// Message is one arrived message. It and the memory it points to are valid only
// until Receive returns. The receiver may overwrite Payload; a medium payload
// is a temporary buffer, a long one is the segment itself, or memory that the
// rank has registered: it is not to be unmapped while a handler uses it.
type Message struct {
	Src     int   // sender; filled in by the conduit, not by the sender
	Class   Class // Request or Reply
	Tag     Tag   // as committed
	Words   []uint32
	Payload []byte      // medium: aligned to 8 bytes; long: the bytes where they were put; else nil
	To      segment.NLA // long only: where Payload lies; 0 otherwise
}

// Event says which completion of an RMA operation happened (Nüssle 2008, table
// 7-2, as seen by the initiator).
type Event uint8

// The completions.
const (
	// SourceDone: the source buffer may be reused (requester notification).
	SourceDone Event = 1 << iota
	// RemoteDone: a put is visible at the target, a get's data has arrived, an
	// atomic has been performed and its result is at hand (responder
	// notification).
	RemoteDone
)

// Receiver is the layer above an endpoint. Its methods run inside Poll,
// PollReplies, Spin and Wait, on the caller's goroutine, one at a time (but see
// the package comment on nesting).
type Receiver interface {
	// Receive handles one message. m belongs to the conduit.
	Receive(m *Message)
	// Complete reports a completion asked for with cookie and not already
	// reported by the operation's own return value. value is an atomic's
	// result; err is a *PeerError if the peer died, and matches segment.ErrFault
	// if the target refused the access.
	Complete(cookie uint64, ev Event, value uint64, err error)
}

// AtomicOp is an operation on a 4- or 8-byte aligned word.
type AtomicOp uint8

// The operations. "old" is returned by all of them.
const (
	AtomicLoad  AtomicOp = iota // read
	AtomicStore                 // write a
	AtomicSwap                  // write a
	AtomicCAS                   // if old == a, write b
	AtomicAdd                   // write old + a
	AtomicAnd                   // write old & a
	AtomicOr                    // write old | a
	AtomicXor                   // write old ^ a
	AtomicMin                   // write min(old, a)
	AtomicMax                   // write max(old, a)
	// AtomicFCAA is fetch-compare-and-add (Nüssle 2008, section 7.5.4): if
	// old <= a, write old + b. The caller derives success from old.
	AtomicFCAA
	NumAtomicOps
)

// AtomicType says how an atomic's operand bits are to be read. Values travel as
// uint64: 32-bit types in the low half, zero extended; floats by their IEEE bits.
type AtomicType uint8

// The types. And, or, xor and FCAA exist for integers only.
const (
	Int32 AtomicType = iota
	Uint32
	Int64
	Uint64
	Float32
	Float64
	NumAtomicTypes
)

// Size is the operand's size in bytes, which is also the required alignment.
func (t AtomicType) Size() int {
	switch t {
	case Int32, Uint32, Float32:
		return 4
	}
	return 8
}

// Float reports whether t is a floating point type.
func (t AtomicType) Float() bool { return t == Float32 || t == Float64 }

// Limits are fixed once the endpoint is open and equal on all ranks.
type Limits struct {
	MaxMedium  int    // largest payload of Reserve, bytes; at least 512
	MaxLong    uint64 // largest data of ReservePut and Post, bytes
	MaxSegment uint64 // largest size Attach accepts, bytes
	Credits    int    // messages of one class to one rank that may be under way, those cancelled included until the receiver has passed them

	// Datagram is the size of the largest datagram in bytes, without the headers of UDP and
	// IP; 0 if the conduit sends none.
	Datagram int
	// Authentication is how ranks make sure that a message is from the rank that it names, such
	// as "HMAC-SHA-256" or "none"; empty if that is not stated.
	Authentication string
}

// Stats count what an endpoint has done since it was opened. They are exact
// when the endpoint is quiet and may lag while others use it.
type Stats struct {
	Sent      [NumClasses]uint64 // messages committed
	Received  [NumClasses]uint64 // messages given to the Receiver
	NoCredit  uint64             // times Reserve answered NoCredit
	Resent    uint64             // datagrams sent once more, since no acknowledgement came; by udp alone
	Puts      uint64             // RMA puts that went through the endpoint, but not with Now
	Gets      uint64
	Atomics   uint64
	Parks     uint64 // times a caller went to sleep
	Wakes     uint64 // times this rank woke a sleeping peer
	PeersUsed int    // ranks this endpoint keeps state for
	Refused   uint64 // what came from the network and was of no rank of the job
	Faults    uint64 // long messages, and puts without RemoteDone, that were refused: no error tells of them; counted where it was found out, at the initiator or the target

	// How this rank reached memory that is registered and private to another process of
	// its host, such as slices of the Go heap: each costs a microsecond and more, where
	// memory of MapMemory (gas.MakeSlice) is reached by load and store.
	SystemCalls uint64 // by process_vm_readv and process_vm_writev
	Asked       uint64 // by a question to the owner: atomics, words, and what cannot be reached otherwise

	// Peers are the ranks that the endpoint has had to do with, in order of ranks: what they
	// count adds up to Sent, Received, NoCredit, Resent, Puts, Gets and Atomics. They are filled in only
	// if Peers is not nil when Stats is called, into its memory as far as that goes:
	// Stats{Peers: []PeerStats{}} asks for them. All other values of Stats are overwritten.
	Peers []PeerStats
}

// AttachConfig has the options of one rank for the collective Attach.
type AttachConfig struct {
	// Size of this rank's segment in bytes, a multiple of segment.PageSize; may
	// be 0 and may differ between ranks.
	Size uint64
	// Rights that peers have; 0 means segment.RightsAll.
	Rights segment.Rights
	// Lock has what this rank registers beyond the segment locked in memory; see
	// segment.ATUConfig.
	Lock *segment.Locks
	// Receiver gets what arrives from now on. Required.
	Receiver Receiver
	// Lane, if not nil, gives the Receiver of what arrives in a lane, 1 and up, of a Laned
	// endpoint: when the lane is first asked for, or something has arrived there. It is
	// called once a lane, by any goroutine, which may be in Poll; it must not wait.
	Lane func(lane int, ep Endpoint) Receiver
}

// MaxLanes is the most lanes that a rank can have.
const MaxLanes = jobenv.MaxLanes

// DefaultLanes is how many lanes ranks have that divide the processors of this process, if
// nothing says how many: one for each processor of a rank.
func DefaultLanes(ranks int) int {
	return min(max(min(runtime.GOMAXPROCS(0), sys.Processors())/max(ranks, 1), 1), MaxLanes)
}

// Laned is implemented by endpoints whose ranks have several lanes: endpoints of one rank
// that share its memory, and its fate, and nothing that is written by each message. What
// lane i sends, lane i of the other rank receives, in the order that the contract gives
// for one endpoint; between lanes there is no order. The Receivers of different lanes may
// run at once, on different goroutines.
//
// A poll of one lane that finds nothing polls those for a while not polled by others,
// too, and a wait does. So nothing starves in a lane as long as some goroutine of the rank
// polls, or waits; what came to a lane that was polled when others went to sleep may take
// three tenths of a second. Completions of what a lane has begun may come while another one
// is polled. Wake wakes the goroutines of all lanes of a rank, Left looks at all
// lanes, Stats count for all, and Close closes all.
type Laned interface {
	// Lanes is how many there are, the endpoint included, which is lane 0. Fixed when the
	// endpoint was opened, and equal on all ranks.
	Lanes() int
	// Lane is lane i, which takes its memory at the first call. Any lane of the rank
	// answers the same. After Attach.
	Lane(i int) (Endpoint, error)
}

// Ticket is an announcement that a goroutine is about to park; see Arm.
type Ticket struct {
	Seq  uint32
	Slot int32
}

// Blocked describes what a goroutine waits for, for reports of why a job
// hangs, which find in the text the ranks that it needs, as in "waiting for rank 3", or "credit of rank 3" where
// the rank need only answer. It is called from another goroutine while the wait goes on, which does not return meanwhile:
// it must not wait, nor use the endpoint but to ask for its rank, size and segments.
type Blocked interface {
	Blocked() string
}

// Endpoint is one rank's open network interface. Unless said otherwise a method
// may be called by any goroutine at any time after Attach has returned, does
// not block, does not allocate, and does not run the Receiver.
type Endpoint interface {
	// Rank and Size identify the endpoint in its job. Legal before Attach.
	Rank() int
	Size() int
	// Conduit is the registered name of the transport, such as "shm".
	Conduit() string
	// Limits may be called before Attach.
	Limits() Limits
	// Stats fills in s.
	Stats(s *Stats)

	// Attach makes this rank's segment and mailbox reachable and waits until
	// all ranks of the job have done the same. Collective, once, blocking.
	Attach(c AttachConfig) error
	// Views is the table for direct access to ranks from first on: views[i] is
	// of rank first+i, and the zero View if that rank cannot be reached by load
	// and store. The own rank's entry is always there, with all rights, but for
	// atomics where even the own rank's are the conduit's to do. Ranks outside the table
	// cannot be reached, so that a rank without neighbours has a table of one
	// entry, however large the job. It begins with the lowest rank in reach and ends
	// with the highest; in between may be ranks that are not. Shared and read-only.
	// When the job has failed a conduit may set the sizes to 0, so that a loop of
	// direct accesses, which calls no conduit, comes to one that returns Err; bases
	// stay. A conduit that unmaps segments when the last endpoint of a job is closed
	// replaces the entries by the zero View first, so that later accesses are refused.
	Views() (first int, views []segment.View)
	// SegmentSize is the size that rank attached, bytes.
	SegmentSize(rank int) uint64
	// SegmentRights is what this rank may do to rank's segment: what rank
	// attached it with, or everything if it is the own rank.
	SegmentRights(rank int) segment.Rights
	// System is an area of rank, zero at attach, that the layers above
	// share with direct access, 64-byte aligned; nil if rank
	// is outside the neighbourhood. SystemWords is SystemBytes long; packages barrier and
	// collective own a part each, see SystemCollective. SystemStaging is as long on all ranks,
	// nil on all of them where the conduit has none, and takes no memory before it is touched or,
	// of ranks in one process, asked for.
	System(rank int, area SystemArea) []byte

	// ATU is this rank's address translation unit, with which it registers memory
	// beyond its segment; see segment.ATU.Register. The addresses are good for
	// Post and ReservePut of every rank that the
	// registration admits, itself included if it does, until Deregister has
	// returned. An access that is refused because of the address, the length, the
	// rights or the rank that asks ends with an error that matches segment.ErrFault and
	// names rank and address: from the operation itself or from Complete. A put
	// may have been done in part then, as far as memory was registered when it
	// was reached. ATU is made when first asked for, which must be after Attach,
	// and closed with the endpoint.
	ATU() (*segment.ATU, error)
	// MapMemory returns n bytes of zeroed memory outside the Go heap that the
	// conduit's peers reach best once it is registered: n is rounded up to whole
	// pages. No memory stands behind it before it is touched. UnmapMemory
	// withdraws what is registered of it and gives it back; mem is what
	// MapMemory returned. It stays until then, Close or not. After Attach.
	MapMemory(n uint64) (mem []byte, err error)
	UnmapMemory(mem []byte) error

	// Send sends a message without payload: Reserve, the copy of words and
	// Commit in one call, which is the short message's hot path. words, at most
	// MaxWords, is only read, and only during the call.
	//
	// Replies are sent and reserved only inside Receive of a request, by the
	// goroutine that runs it; so conduits need no lock for them.
	Send(dst int, c Class, tag Tag, words []uint32) Status
	// SendPayload is Send with a payload, which is copied. If to is 0 that is a medium one,
	// of 1 to MaxMedium bytes. Else the message is a long one, and the payload is put to
	// address to of dst, of which nothing has been checked, before it is delivered there.
	// Apart is the answer, and nothing has happened, if the endpoint cannot put it during
	// the call, or may not: then ReservePut, and the checks before it, are to send the
	// message, or to tell why. That depends on dst, to and the length alone while the
	// endpoint is open.
	SendPayload(dst int, c Class, tag Tag, words []uint32, payload []byte, to segment.NLA) Status
	// Reserve asks for room for a message to dst with so many words (at most
	// MaxWords) and payload bytes (at most MaxMedium; 0 for none), sent in
	// class c. dst may be the own rank. Out-of-range arguments are a broken
	// promise of the layer above, which checks them, and may panic.
	Reserve(dst int, c Class, words, payload int) (Slot, Status)
	// ReservePut is Reserve for a message whose payload is data, put to address
	// to of dst before the message is delivered there (a notification put). The
	// caller has checked the range with CheckRemote, and that SegmentRights has
	// the right to write if it is the segment. The data may be read until the
	// operation's SourceDone: if the returned Event lacks it, Complete will be
	// called with cookie.
	//
	// If to is registered memory, and the access is refused, the message is not
	// delivered, for it would tell of data that is not there; nor is it if the
	// memory has been withdrawn when its turn has come. Its SourceDone and its
	// credit come as ever, and Stats.Faults counts it; a layer that must know
	// puts with RemoteDone first.
	ReservePut(dst int, c Class, words int, to segment.NLA, data []byte, cookie uint64) (Slot, Event, Status)
	// Commit sends the message with tag. words and payload are the lengths
	// really used: words as reserved, payload at most as reserved.
	Commit(dst int, c Class, s Slot, tag Tag, payload int)
	// Cancel gives the room back, some conduits only when the receiver has
	// passed it; nothing is sent. After ReservePut the data may have been put
	// nevertheless, and its SourceDone is reported as if it had been committed.
	Cancel(dst int, c Class, s Slot)

	// Post begins an access, which is only read, and its Value written, during the call. It
	// returns the completions that have happened already; for each other one that is
	// Wanted, Complete is called later with Cookie. Mem stays in use until then: the source of
	// a put until SourceDone, the destination of a get until RemoteDone. The atomic's old
	// content is in Value if RemoteDone is returned; else Complete brings it.
	// An address outside the segment, or one whose rights forbid the access, is an error
	// and nothing is moved (CheckAccess); for registered memory see ATU: a put that asks for no
	// RemoteDone and is refused later than the call is only counted, see Stats.
	// A rank may access its own memory. No bytes may be put to and got from
	// any address that CheckRemote accepts.
	// PutWord, GetWord and a Get with Size are single-copy atomic, and so are a Put and a Get of 8 aligned
	// bytes of the segment. Of registered memory these are bytes, which the system may copy.
	Post(a *Access) (Event, error)

	// Poll runs what has arrived, at most a bounded batch, and returns how many
	// messages and completions it ran; 0 at once if another goroutine of this
	// rank is polling.
	Poll() int
	// Spin is Poll for a caller that has nothing else to do: it may watch for
	// an arrival for about a microsecond before it returns 0.
	Spin() int
	// PollReplies is Poll for replies and completions only, for a caller that is
	// inside Receive of a request, and for no other.
	PollReplies() int
	// Polling reports whether the calling goroutine is inside Poll, Spin or
	// PollReplies of this endpoint, that is, in a handler.
	Polling() bool

	// Idle is called after idle consecutive empty polls by a caller that still
	// waits; it may yield the processor. False means that it is time to park. A caller
	// that was woken for nothing may count from below 0, so as to poll for longer.
	Idle(idle int) bool
	// Arm announces that the caller is about to park. After Arm the caller
	// looks once more for what it waits for and polls; then it calls Park or
	// Disarm. Anything that arrives, or that Wake announces, after Arm makes
	// Park return; also what a peer's Post
	// changes in this rank's segment. b is remembered for diagnosis until then.
	Arm(b Blocked) Ticket
	// Park sleeps until something has arrived since Arm; may return early.
	Park(t Ticket)
	// Disarm takes an announcement back.
	Disarm(t Ticket)
	// Wake makes rank's parked goroutines look again: to be called after a
	// change that they wait for was made by direct access. It costs a load of
	// a cache line that is written only when a goroutine parks.
	Wake(rank int)
	// Waiting lists what goroutines of this rank are parked for: the Blocked of each is "" once that wait is
	// over, see Awaited.
	Waiting() []Blocked

	// Now is time since some fixed moment: real, or virtual in a simulation.
	Now() time.Duration
	// Err is the job's failure as this rank knows it, or nil. Sticky.
	Err() error
	// Fail declares this rank failed because of err: Err of every rank becomes
	// a *PeerError that names it, and parked goroutines wake. Only the first
	// failure of a job counts.
	Fail(err error)
	// Blame declares rank failed because of err, as Fail does the own rank: for a
	// rule that rank broke and this rank noticed. The job's first failure counts,
	// which may be another. Blame may wait for a moment until the job knows it.
	Blame(rank int, err error)
	// Left reports whether rank has left the job: it has closed its endpoint, and this
	// rank has run all messages that it had sent before. So what is awaited from a
	// rank, and is not there after Left has been true, will not come. A rank that
	// leaves is no failure. Parked goroutines wake when one leaves. Never true of a
	// rank that failed, which Err tells of; not to be called by handlers.
	Left(rank int) bool
	// Close leaves the job. It does not wait for other ranks (a barrier before
	// it does); operations after it, and those that wait, fail with ErrClosed.
	Close() error
}
