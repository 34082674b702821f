package gas

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Collective operations of this package end alike on all ranks: each rank says
// what it did, the statements are combined up a binomial tree to rank 0, and the
// result comes back down. A rank's parent is its number without the lowest set
// bit, so a rank exchanges messages with at most log2(Size)+1 others.

// Handler indices of package gas: 80 to 127; 64 to 79 are the collectives'.
const (
	handlerAgreeUp   = 80
	handlerAgreeDown = 81
	handlerCall      = 82
	handlerReturn    = 83
)

// The operations that ranks may find themselves in.
const (
	opLeave = iota
	opNewSlice
	opDelete
)

var agreeNames = [...]string{"the end of its function", "New, NewSlice or NewArray", "Delete or Array.Free"}

// Why a rank could not do its part.
const (
	reasonNone = iota
	reasonNoMemory
	reasonBadArg
	reasonNotAllocated
)

// statement is what one rank, or all ranks below one, say: which operations they
// are in, the first rank that could not do its part and why, and the range of
// the values that should be equal.
type statement struct {
	opLow, opHigh, reason       uint8
	opLowAt, opHighAt, reasonAt uint32 // ranks
	asked, largest              uint64 // of rank reasonAt if it lacks memory, bytes
	low, high                   uint64
	lowAt, highAt               uint32
}

// combine is the statement of all those that a and b speak for.
func (a statement) combine(b statement) statement {
	if b.opLow < a.opLow {
		a.opLow, a.opLowAt = b.opLow, b.opLowAt
	}
	if b.opHigh > a.opHigh {
		a.opHigh, a.opHighAt = b.opHigh, b.opHighAt
	}
	if b.reason != reasonNone && (a.reason == reasonNone || b.reasonAt < a.reasonAt) {
		a.reason, a.reasonAt, a.asked, a.largest = b.reason, b.reasonAt, b.asked, b.largest
	}
	if b.low < a.low {
		a.low, a.lowAt = b.low, b.lowAt
	}
	if b.high > a.high {
		a.high, a.highAt = b.high, b.highAt
	}
	return a
}

// A statement travels as this many arguments, with its sequence number.
const statementWords = 15

func (a statement) words(seq uint32) [statementWords]uint32 {
	w := [statementWords]uint32{
		0: seq,
		1: uint32(a.opLow) | uint32(a.opHigh)<<8 | uint32(a.reason)<<16,
		2: a.opLowAt, 3: a.opHighAt, 4: a.reasonAt,
		13: a.lowAt, 14: a.highAt,
	}
	for i, v := range [...]uint64{a.asked, a.largest, a.low, a.high} {
		w[5+2*i], w[6+2*i] = am.Pack64(v)
	}
	return w
}

func parseStatement(w []uint32) (seq uint32, a statement) {
	return w[0], statement{
		opLow: uint8(w[1]), opHigh: uint8(w[1] >> 8), reason: uint8(w[1] >> 16),
		opLowAt: w[2], opHighAt: w[3], reasonAt: w[4],
		asked: am.Unpack64(w[5], w[6]), largest: am.Unpack64(w[7], w[8]),
		low: am.Unpack64(w[9], w[10]), high: am.Unpack64(w[11], w[12]),
		lowAt: w[13], highAt: w[14],
	}
}

// agreement is the state of one rank's part in agreeing. Two rounds may overlap:
// children may be one ahead.
type agreement struct {
	seq uint32 // rounds entered; used by the one goroutine that is in one

	mu    sync.Mutex
	round [2]struct {
		said  statement // of the children that have arrived
		above statement // what came down
		from  uint32    // bit k: the child that differs in bit k has arrived
		down  bool
	}
}

// children is a set of bits: bit k is set if rank + 1<<k is a child of rank.
func children(rank, size int) (set uint32) {
	for k := 0; rank+1<<k < size && rank&(1<<k) == 0; k++ {
		set |= 1 << k
	}
	return set
}

// parent of a rank that is not 0.
func parent(rank int) int { return rank & (rank - 1) }

func (n *Node) onAgreeUp(t *am.Token, args []uint32, _ []byte) {
	seq, s := parseStatement(args)
	a := &n.agreement
	a.mu.Lock()
	r := &a.round[seq&1]
	if r.from == 0 {
		r.said = s
	} else {
		r.said = r.said.combine(s)
	}
	r.from |= uint32(t.Src() - n.rank)
	a.mu.Unlock()
}

func (n *Node) onAgreeDown(_ *am.Token, args []uint32, _ []byte) {
	seq, s := parseStatement(args)
	a := &n.agreement
	a.mu.Lock()
	a.round[seq&1].above, a.round[seq&1].down = s, true
	a.mu.Unlock()
}

// agree combines what all ranks say and returns it on all of them.
func (n *Node) agree(mine statement) (statement, error) {
	a := &n.agreement
	a.mu.Lock()
	a.seq++
	seq := a.seq
	a.mu.Unlock()
	r := &a.round[seq&1]
	kids := children(n.rank, n.size)
	await := func(ok func() bool) error {
		return n.e.Wait(a.blocked(n), func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return ok()
		})
	}
	if kids != 0 {
		if err := await(func() bool { return r.from == kids }); err != nil {
			return mine, err
		}
		a.mu.Lock()
		mine = mine.combine(r.said)
		a.mu.Unlock()
	}
	if n.rank != 0 {
		w := mine.words(seq)
		if err := n.e.RequestShort(parent(n.rank), handlerAgreeUp, w[:]...); err != nil {
			return mine, err
		}
		if err := await(func() bool { return r.down }); err != nil {
			return mine, err
		}
		a.mu.Lock()
		mine = r.above
		a.mu.Unlock()
	}
	// The next use of this round is two ahead: nobody gets there before this
	// rank has gone on.
	a.mu.Lock()
	r.from, r.down = 0, false
	a.mu.Unlock()
	w := mine.words(seq)
	for k := range rankBits {
		if kids&(1<<k) != 0 {
			if err := n.e.RequestShort(n.rank+1<<k, handlerAgreeDown, w[:]...); err != nil {
				return mine, err
			}
		}
	}
	return mine, nil
}

// blocked describes a wait in agree.
func (a *agreement) blocked(n *Node) conduits.Blocked { return agreeBlocked{n} }

type agreeBlocked struct{ n *Node }

// Blocked says which ranks are awaited.
func (b agreeBlocked) Blocked() string {
	n := b.n
	a := &n.agreement
	a.mu.Lock()
	defer a.mu.Unlock()
	missing := children(n.rank, n.size) &^ a.round[a.seq&1].from
	if missing == 0 {
		return fmt.Sprintf("collective call %d: waiting for the result from rank %d", a.seq, parent(n.rank))
	}
	var l []string
	for k := range rankBits {
		if missing&(1<<k) != 0 {
			l = append(l, fmt.Sprint(n.rank+1<<k))
		}
	}
	return fmt.Sprintf("collective call %d: waiting for rank %s and those below", a.seq, strings.Join(l, ", "))
}

// same makes all ranks agree on operation op with value, which should be the
// same everywhere; failed is why this rank could not do its part, or nil. The
// error is the rank's own reason where it has one, and on all ranks one of the
// same kind.
func (n *Node) same(op uint8, value uint64, failed error, asked, largest uint64) error {
	rank := uint32(n.rank)
	mine := statement{opLow: op, opHigh: op, opLowAt: rank, opHighAt: rank, reasonAt: rank,
		low: value, high: value, lowAt: rank, highAt: rank}
	switch {
	case errors.Is(failed, ErrResource):
		mine.reason, mine.asked, mine.largest = reasonNoMemory, asked, largest
	case errors.Is(failed, segment.ErrDoubleFree), errors.Is(failed, segment.ErrNotAllocated):
		mine.reason = reasonNotAllocated
	case failed != nil:
		mine.reason = reasonBadArg
	}
	all, err := n.agree(mine)
	what := agreeNames[op]
	switch {
	case err != nil:
		return err
	case all.opLow != all.opHigh:
		return errs.NotReady("gas: collective calls do not match: rank %d is in %s, rank %d in %s",
			all.opLowAt, agreeNames[all.opLow], all.opHighAt, agreeNames[all.opHigh])
	case failed != nil:
		return failed
	case all.reason == reasonNoMemory:
		return errs.Resource("gas: %s: rank %d is out of memory: it asked for %d bytes and has %d in one piece (-segment, ARGON_SEGMENT)",
			what, all.reasonAt, all.asked, all.largest)
	case all.reason == reasonNotAllocated:
		return errs.BadArg("gas: %s: rank %d has not allocated that collectively, or freed it", what, all.reasonAt)
	case all.reason != reasonNone:
		return errs.BadArg("gas: %s: rank %d gave a bad argument", what, all.reasonAt)
	case all.low != all.high:
		return errs.BadArg("gas: %s: rank %d and rank %d gave different arguments", what, all.lowAt, all.highAt)
	}
	return nil
}
