package gas

import (
	"errors"
	"fmt"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/extended/collective"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Collective operations on the heap end alike on all ranks: each rank makes a statement of
// its part, and the statements are combined and handed to all.

// Handler indices of calls.
const (
	handlerCall   = am.FirstGas
	handlerReturn = am.FirstGas + 1
	handlerAsk    = am.FirstGas + 2
	handlerRoom   = am.FirstGas + 3
	handlerPiece  = am.FirstGas + 4
	handlerRun    = am.FirstGas + 5
	handlerResult = am.FirstGas + 6
	handlerPull   = am.FirstGas + 7
)

// The operations that ranks may find themselves in.
const (
	opLeave = iota
	opNewSlice
	opDelete
	opMailbox
)

var agreeNames = [...]string{"the end of its function", "New, NewSlice or NewArray", "Delete", "NewMailbox"}

// Why a rank could not do its part.
const (
	reasonNone = iota
	reasonNoMemory
	reasonBadArg
	reasonNotAllocated
)

// statement is that of one rank, or of all ranks below one: their
// operations, the first rank that could not do its part and why, and the range of
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

// agree combines what all ranks say into s, on all of them.
func (n *Node) agree(s *statement) error {
	if s.opLow == opLeave {
		return n.all.coll.Leave(bytesAt(s), combineStatements, n.b.Mismatched)
	}
	return n.agreeNow(s)
}

// agreeNow is not inlined: the Call would be on the stack of a rank that leaves.
//
//go:noinline
func (n *Node) agreeNow(s *statement) error {
	return n.all.coll.Do(collective.Agree(bytesAt(s)), combineStatements)
}

var combineStatements = combining(statement.combine)

// same makes all ranks agree on operation op with value, which should be the
// same everywhere; elem is the size of what this rank has elements of; failed is why
// this rank could not do its part, or nil. The error is the rank's own reason where
// it has one, and on all ranks one of the same kind.
func (n *Node) same(op uint8, value, elem uint64, failed error, asked, largest uint64) error {
	all := n.statement(op, value, failed, asked, largest)
	if err := n.agree(all); err != nil {
		return err
	}
	return all.verdict(op, elem, failed)
}

// statement is that of this rank, see same. It is not on the stack, of which
// every rank of a large job has one while it waits.
//
//go:noinline
func (n *Node) statement(op uint8, value uint64, failed error, asked, largest uint64) *statement {
	rank := uint32(n.rank)
	mine := &statement{
		opLow: op, opHigh: op, opLowAt: rank, opHighAt: rank, reasonAt: rank,
		low: value, high: value, lowAt: rank, highAt: rank,
	}
	switch {
	case errors.Is(failed, ErrResource):
		mine.reason, mine.asked, mine.largest = reasonNoMemory, asked, largest
	case errors.Is(failed, segment.ErrDoubleFree), errors.Is(failed, segment.ErrNotAllocated):
		mine.reason = reasonNotAllocated
	case failed != nil:
		mine.reason = reasonBadArg
	}
	return mine
}

// verdict is the error of same for what all ranks say.
//
//go:noinline
func (all *statement) verdict(op uint8, elem uint64, failed error) error {
	what := agreeNames[op]
	switch {
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
		return errs.BadArg("gas: %s: rank %d gave a bad argument, which its own error names", what, all.reasonAt)
	case all.low != all.high:
		if elem == 0 || op != opNewSlice || (all.low|all.high)&sayArray != 0 || all.low%elem != 0 || all.high%elem != 0 {
			elem = 1 // bytes
		}
		a, b := arguments(op, all.lowAt, all.low, elem), arguments(op, all.highAt, all.high, elem)
		return errs.BadArg("gas: %s: rank %d and rank %d gave different arguments: %s and %s", what, all.lowAt, all.highAt, a, b)
	}
	return nil
}

// arguments describes the arguments of rank for operation op, from value in its statement,
// in elements of elem bytes.
func arguments(op uint8, rank uint32, value, elem uint64) string {
	switch {
	case op == opMailbox:
		return fmt.Sprintf("items of %d bytes, name %#x", value>>32, uint32(value))
	case op == opDelete:
		return "Ptr " + Ptr[byte]{w: makeWord(int(rank), segment.NLA(value))}.String()
	case value&sayArray != 0 && value&sayMixed != 0:
		return "an array of very many elements"
	case value&sayArray != 0:
		return fmt.Sprintf("an array of %d elements in blocks of %d", value<<1>>33, value&(1<<32-1))
	}
	if elem > 1 {
		return fmt.Sprintf("%d elements of %d bytes", value/elem, elem)
	}
	return fmt.Sprintf("%d bytes", value)
}

// sayArray is the bit of what a rank says to opNewSlice that tells arrays, their
// length and block, from slices, their size; sayMixed means that those are too
// large for the rest of the word, which only tells most of them apart.
const (
	sayArray = 1 << 63
	sayMixed = 1 << 62
)

// sayOfArray is the value in the statement of a rank that makes an array.
func sayOfArray(length, block int) uint64 {
	if length < 1<<30 && block < 1<<32 {
		return sayArray | uint64(length)<<32 | uint64(block)
	}
	return sayArray | sayMixed | (uint64(length)*0x9e3779b97f4a7c15^uint64(block))&(sayMixed-1)
}
