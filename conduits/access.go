package conduits

import (
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Verb is the kind of an [Access].
type Verb uint8

// The verbs.
const (
	Put     Verb = iota // copy Mem to address At of Rank
	Get                 // copy len(Mem) bytes from there to Mem
	PutWord             // store the low Size bytes (1, 2, 4 or 8) of A at At, aligned to Size: the card's immediate put, with no source memory
	GetWord             // load such a word into Value; only with Now
	Atomic              // perform Op on the aligned word of type Type at At
)

// String names the verb, as errors do.
func (v Verb) String() string {
	switch v {
	case Put:
		return "put"
	case Get:
		return "get"
	case PutWord:
		return "put of a word"
	case GetWord:
		return "get of a word"
	case Atomic:
		return "atomic"
	}
	return "access"
}

// Access is one access to the memory of a rank: what [Endpoint].Post takes, by pointer,
// from a record that its caller keeps and uses again.
type Access struct {
	Verb Verb
	Op   AtomicOp   // of Atomic
	Type AtomicType // of Atomic
	Size uint8      // of PutWord and GetWord, bytes; as many of a Get that must be one load of a word, as GetWord is

	// Want are the completions asked for. An Atomic has RemoteDone alone, whatever Want is.
	Want Event

	// Now asks for an access that is complete when Post returns, or is not made. It is for
	// registered memory, see Endpoint.ATU, of 1 byte or more. If the endpoint reaches that
	// without its rank, by load and store or by a system call, Post returns SourceDone and
	// RemoteDone, whatever Want is. Else it returns 0 and no error; nothing has been
	// transferred then, or, of memory that is not there any more, a part, and the same access
	// without Now finds out what is wrong, or asks the owner. An access with Now waits for
	// nothing and is not counted in Puts, Gets and Atomics of Stats, so that goroutines share
	// no line for it.
	Now bool

	Rank int
	At   segment.NLA
	Mem  []byte // source of a Put, destination of a Get

	// Pieces, if there are any, are put or got in place of At and Mem, for the price of one
	// where each by itself would be a system call; only with Now. No two of them overlap
	// where they are written, and none is single-copy atomic. Value becomes how many are complete, from
	// the first on, and Post returns 0 if it is none; pieces behind these may have been
	// transferred, in whole or in part. The caller gives what is left again if there were
	// any, and else transfers the first by itself, which finds out what is wrong. The pieces are
	// the caller's again when Post returns.
	Pieces []Piece

	A, B   uint64 // the word of PutWord; the operands of Atomic
	Value  uint64 // set by Post if it returns RemoteDone: an Atomic's old word, the word of GetWord, or see Pieces
	Cookie uint64 // of Complete
}

// Piece is one of several accesses of one rank's memory: Mem, 1 byte or more, is the local
// side.
type Piece struct {
	At  segment.NLA
	Mem []byte
}

// Len is how many bytes a accesses, of its pieces not counted.
func (a *Access) Len() uint64 {
	switch a.Verb {
	case PutWord, GetWord:
		return uint64(a.Size)
	case Atomic:
		return uint64(a.Type.Size())
	}
	return uint64(len(a.Mem))
}

// Need is the right that a needs.
func (a *Access) Need() segment.Rights {
	switch a.Verb {
	case Put, PutWord:
		return segment.RightWrite
	case Get, GetWord:
		return segment.RightRead
	}
	return segment.RightAtomic
}

// Writes reports whether a changes memory of its rank.
func (a *Access) Writes() bool {
	return a.Verb == Put || a.Verb == PutWord || a.Verb == Atomic && a.Op != AtomicLoad
}

// Wanted are the completions asked for.
func (a *Access) Wanted() Event {
	if a.Verb == Atomic {
		return RemoteDone
	}
	return a.Want
}

// wordSound reports whether a's word may be put or got.
func (a *Access) wordSound() bool {
	n := a.Size
	return n >= 1 && n <= 8 && n&(n-1) == 0 && uint64(a.At)%uint64(n) == 0
}

// Sound reports whether a has a verb, and a word or an operation that there is, aligned.
func (a *Access) Sound() bool {
	switch a.Verb {
	case Put, Get:
		return true
	case PutWord:
		return a.wordSound()
	case GetWord:
		return a.Now && a.wordSound()
	}
	return a.Verb == Atomic && atomicSound(a.Op, a.Type, a.At)
}

// CheckAccess is what the initiator of an access without Now can know of it: nil, or an
// error that names the value and the limit. conduit is the name that it begins with.
func CheckAccess(ep Endpoint, conduit string, a *Access) error {
	if a.Verb != Put && a.Verb != Get {
		if err := checkWord(conduit, a); err != nil {
			return err
		}
	}
	if uint(a.Rank) < uint(ep.Size()) && InSegment(ep, a.Rank, a.At, a.Len()) {
		if need := a.Need(); ep.SegmentRights(a.Rank)&need == 0 {
			return errs.BadArg("%s: %v: rank %d attached its segment without the right to it (%v)", conduit, a.Verb, a.Rank, need)
		}
		return nil
	}
	if uint(a.Rank) < uint(ep.Size()) && Registered(ep.SegmentSize(a.Rank), a.At, a.Len()) {
		return nil
	}
	return CheckRemote(ep, conduit+": "+a.Verb.String(), a.Rank, a.At, a.Len())
}

// checkWord is CheckAccess for what concerns no rank, of an access that is no copy.
func checkWord(conduit string, a *Access) error {
	switch {
	case a.Sound():
		return nil
	case a.Verb == PutWord:
		return errs.BadArg("%s: %v: %d bytes at %v: 1, 2, 4 or 8, aligned", conduit, a.Verb, a.Size, a.At)
	case a.Verb == Atomic:
		return CheckAtomic(conduit+": atomic", a.Op, a.Type, a.At)
	}
	return errs.BadArg("%s: no access of verb %d without Now", conduit, a.Verb)
}
