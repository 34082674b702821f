package shm

import (
	"math/bits"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// MaxRanks is the most ranks one job of this conduit can have.
const MaxRanks = 1024

// The job's memory, in this order:
//
//	header          one page
//	control blocks  one page a rank
//	lanes           a small block for each rank and lane but the first
//	registries      two pages a rank
//	conversations   one for each lane and ordered pair (requester, replier)
//	staging         one area a rank, see conduits.SystemStaging
//	segments        one a rank
//
// and beyond what ranks add to it: address tables, memory that MapMemory maps,
// desks, strands. Everything but the header stays a hole in the file until it is used.
const (
	magic   = 0x314e4f4752410a0d // "\r\nARGON1", little endian
	version = 10

	// Header.
	hdrMagic    = 0
	hdrVersion  = 8    // uint32
	hdrSize     = 12   // uint32: ranks
	hdrCells    = 16   // uint32: cells of a ring
	hdrLanding  = 20   // uint32: bytes of a landing buffer
	hdrSegment  = 24   // uint64: bytes between two segments
	hdrFence    = 32   // uint32: senders fence, see bell.notify
	hdrEnd      = 40   // uint64: where what ranks add next begins
	hdrLanes    = 48   // uint32: lanes of a rank
	hdrFailed   = 64   // uint64: which failure record counts, see namedRecord; 0 before a failure
	hdrRecord   = 128  // the launcher's failure record
	hdrAttached = 1280 // uint32: ranks that have attached
	hdrBytes    = segment.PageSize

	// Failure record: there is one of each rank, in its control block, and one of
	// the launcher, so that no other process writes it and none is ever half written
	// when hdrFailed names it.
	recRank   = 0  // uint32: rank that failed, plus failedBias
	recStatus = 4  // uint32: its exit status
	recLen    = 8  // uint32: bytes of text
	recSum    = 16 // uint64: checksum of what is above and of the text
	recText   = 24
	recBytes  = 1024
	recMax    = recBytes - recText

	// failedBias makes room for ranks of the job that do not share this memory:
	// relative to those that do, they may have negative numbers.
	failedBias = 1 << 20

	// Control block of a rank.
	ctlParked  = 0    // uint32: 0, or 1 and the lane whose goroutine sleeps, or is about to: see lanes.announce
	ctlSeq     = 64   // uint32: counts wake-ups; the futex
	ctlState   = 128  // uint32: conduits.RankState
	ctlRights  = 132  // uint32
	ctlSegment = 136  // uint64: bytes attached
	ctlJoined  = 144  // uint32: 1 once a process has joined as this rank
	ctlOpenSeq = 192  // uint32: counts changes of the bits below, and what else a poll should look for, see Endpoint.news
	ctlAudits  = 196  // uint32: how often the rank has audited its rings
	ctlLanes   = 200  // uint64, by bits: lanes that others have sent to, but for the first
	ctlOpen    = 256  // MaxRanks bits: sources that have sent to this rank
	ctlSystem  = 1024 // conduits.SystemBytes
	ctlRecord  = 3072 // this rank's failure record
	ctlBytes   = segment.PageSize

	// Block of a lane: ctlParked, ctlSeq, ctlOpenSeq, ctlAudits and ctlOpen.
	laneBytes = 512

	// Registry of a rank: how processes reach what it has registered. It begins
	// with its segment.Directory, words that are page numbers of this file.
	regReaders = 4096 // MaxRanks bits: ranks that read the tables
	regAsked   = 4224 // MaxRanks bits: ranks with a question on their desk for this one
	regDesk    = 4352 // uint64: where this rank's desk lies in the file, 0 for nowhere yet
	regPid     = 4360 // uint32: its process
	regProbe   = 4368 // uint64: address there of regCookieBytes bytes that are
	regCookie  = 4376 // these
	regCount   = 4416 // uint64: how many registrations there have been
	regUnits   = 4608 // this rank's units, regUnitStep apart: see memory.enter
	regBytes   = 2 * segment.PageSize

	regCookieBytes = 16
	regUnitStep    = 128
	numUnits       = 8

	// Desk of a rank: places where it puts its questions to other ranks, a line and
	// room for data each.
	deskPlaces = 32
	deskLine   = 128
	deskRoom   = 16 << 10
	deskRooms  = deskPlaces * deskLine // where the first room begins
	deskBytes  = deskRooms + deskPlaces*deskRoom

	// Place of a desk; see ask_unsafe.go.
	askState = 0  // uint32
	askDst   = 4  // uint32: the rank that is asked
	askKind  = 8  // uint32
	askOp    = 12 // uint32: AtomicOp, and AtomicType << 8
	askTo    = 16 // uint64: address
	askLen   = 24 // uint64: bytes
	askA     = 32 // uint64: operand, or word to be put
	askB     = 40 // uint64
	askValue = 48 // uint64: the answer
	askPage  = 56 // uint64: 0, or 1 and the page that refused
	askHave  = 64 // uint64: its entry

	// Conversation of two ranks: the requests of one and the other's replies.
	// First the words that the receiver of a class writes, a line for each class, and
	// behind it one that the sender writes, rarely.
	talkHead     = 0   // uint64: messages consumed, published by the receiver
	talkLandRead = 8   // uint64: bytes of the landing buffer consumed, likewise
	talkTaken    = 16  // uint64: how many strands the receiver looks at, likewise; of requests
	talkSum      = 64  // a sum, see auditSent: by the sender
	talkStrands  = 88  // uint64: where its strands lie in the file, and how many it has made; of requests
	talkClass    = 128 // bytes from the words of one class to those of the other
	talkCells    = conduits.NumClasses * talkClass

	// Cell: one request and one reply. See the package comment for its shape.
	cellBytes = 384
	nearClass = 32            // a class's half of the first line: a status and
	nearBytes = nearClass - 8 // this much of a body,
	headBytes = 8             // a header included where there is one
	farAt     = lineBytes     // request's, if it does not fit there; reply's after it
	farBytes  = 160
	lineBytes = 64
)

// Status word of a message; see the package comment.
const (
	stSeqShift   = 40
	stSeqMask    = 1<<24 - 1
	stValid      = 1 << 39
	stFar        = 1 << 38
	stKindShift  = 36
	stKindMask   = 3
	stSkipShift  = 35
	stSkip       = 1 << stSkipShift
	stWordsShift = 30
	stWordsMask  = 31
	stDirect     = 1 << 29 // of a long message: sendLong's, with its header beside the status; with stSkip: see move
	stTagMask    = 1<<conduits.TagBits - 1
)

// Kinds of message.
const (
	kindShort = iota
	kindLanded
	kindInline
	kindLong
)

// Where the words begin in a body, by kind. Only what ReservePut makes has more than
// words and payload there: other headers are beside the status.
var wordsAt = [4]int{0, 0, 0, 24}

// geometry has the sizes that all ranks of a job must agree on.
type geometry struct {
	n       int // ranks
	cells   int // of a conversation, a power of two
	landing int // bytes of a landing buffer, a power of two
	segment int64
	lanes   int // of a rank
}

// geometryFor chooses sizes so that the mailboxes of a job in which all ranks
// have talked to all stay below 512 MiB of cells and 256 MiB of landing
// buffers, from 2 ranks (64 cells, 128 KiB) to 128 (64 cells, 16 KiB). Beyond
// that it is 48 KiB for each pair and direction that is really used; each lane has its own. More than
// 64 cells are slower: they no longer stay in the first-level caches.
func geometryFor(n int, maxSegment int64) geometry {
	return geometry{
		n:       n,
		cells:   min(max(floorPow2(512<<20/cellBytes/(n*n)), 32), 64),
		landing: min(max(floorPow2(256<<20/(n*n*conduits.NumClasses)), 16<<10), 128<<10),
		segment: maxSegment,
		lanes:   1,
	}
}

// configure replaces what c asks for; see conduits.Config.
func (g geometry) configure(c conduits.Config) (geometry, error) {
	if c.Credits < 0 || c.Credits > mostCells {
		return g, errs.BadArg("shm: %d credits; 1 to %d, or 0", c.Credits, mostCells)
	}
	if most := mostLanding / 4; c.MaxMedium < 0 || c.MaxMedium > most {
		return g, errs.BadArg("shm: medium payloads of %d bytes; 1 to %d, or 0", c.MaxMedium, most)
	}
	if c.Lanes < 0 || c.Lanes > conduits.MaxLanes {
		return g, errs.BadArg("shm: %d lanes; 1 to %d, or 0 (-lanes, ARGON_LANES)", c.Lanes, conduits.MaxLanes)
	}
	g.lanes = max(c.Lanes, 1)
	if c.Credits > 0 {
		g.cells = max(ceilPow2(c.Credits), leastCells)
	}
	if c.MaxMedium > 0 {
		g.landing = max(ceilPow2(4*c.MaxMedium), leastLanding)
	}
	return g, nil
}

// Bounds of a ring and a landing buffer: the least has a quarter of a ring to
// publish and takes payloads of 512 bytes, the most fits the fields of a status
// and of a landed payload.
const (
	leastCells, mostCells     = 4, 1 << 16
	leastLanding, mostLanding = 2048, 1 << 23
)

// sound reports whether g, found in a header, is one that the rest can work with.
func (g geometry) sound() bool {
	pow2 := func(n, least, most int) bool { return n >= least && n <= most && n&(n-1) == 0 }
	return checkSize(g.n) == nil && pow2(g.cells, leastCells, mostCells) && pow2(g.landing, leastLanding, mostLanding) &&
		g.lanes >= 1 && g.lanes <= conduits.MaxLanes && g.segment >= 0 && g.segment <= int64(segment.MaxAttach) && g.segment%segment.PageSize == 0
}

func ceilPow2(n int) int { return 1 << bits.Len(uint(n-1)) }

func floorPow2(n int) int {
	if n <= 1 {
		return 1
	}
	return 1 << (bits.Len(uint(n)) - 1)
}

// talk is the size of a conversation: cells and two landing buffers, in whole
// pages.
func (g geometry) talk() int {
	return roundUp(g.landingOffset(conduits.NumClasses), segment.PageSize)
}

func (g geometry) landingOffset(c conduits.Class) int {
	return talkCells + g.cells*cellBytes + int(c)*g.landing
}

// strand is the size of a strand: a conversation without replies.
func (g geometry) strand() int { return roundUp(g.landingOffset(conduits.Reply), segment.PageSize) }

func (g geometry) maxMedium() int { return g.landing / 4 }

func (g geometry) ctlOffset(rank int) int64 { return hdrBytes + int64(rank)*ctlBytes }

// laneOffset is where the block of a lane lies that is not the first, from the first of
// them on.
func (g geometry) laneOffset(rank, lane int) int { return ((lane-1)*g.n + rank) * laneBytes }

// launched is where that ends which a launcher has to do with.
func (g geometry) launched() int64 {
	return g.ctlOffset(g.n) + int64(roundUp(g.laneOffset(0, g.lanes), segment.PageSize))
}

func (g geometry) regOffset(rank int) int64 { return g.launched() + int64(rank)*regBytes }

// talkIndex counts conversations.
func (g geometry) talkIndex(src, dst, lane int) int { return (lane*g.n+src)*g.n + dst }

func (g geometry) talkOffset(src, dst, lane int) int64 {
	return g.regOffset(g.n) + int64(g.talkIndex(src, dst, lane))*int64(g.talk())
}

// Bounds of the staging of one rank, and of all up to where each has the least.
const (
	leastStaging, mostStaging = 64 << 10, 1 << 20
	allStaging                = 64 << 20
)

// staging is the length of a rank's staging area.
func (g geometry) staging() int {
	return min(max(floorPow2(allStaging/g.n), leastStaging), mostStaging)
}

func (g geometry) stagingOffset(rank int) int64 {
	return g.talkOffset(0, 0, g.lanes) + int64(rank)*int64(g.staging())
}

func (g geometry) segmentOffset(rank int) int64 {
	return g.stagingOffset(g.n) + int64(rank)*g.segment
}

func (g geometry) total() int64 { return g.segmentOffset(g.n) }

func roundUp(n, to int) int { return (n + to - 1) / to * to }

func checkSize(n int) error {
	if n < 1 || n > MaxRanks {
		return errs.BadArg("shm: %d ranks; this conduit takes 1 to %d (-n)", n, MaxRanks)
	}
	return nil
}
