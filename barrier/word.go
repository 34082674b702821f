package barrier

// word is the state of one rank, or of a set of ranks, in one phase. It is one
// 64-bit word, so that it is published and read in one piece:
//
//	63            34   33     32   31            0
//	+---------------+------+------+---------------+
//	|  phase (30)   |  mm  | named|    id (32)    |
//	+---------------+------+------+---------------+
//
// mm: the ranks do not match. named: id counts. Phases count from 1 and wrap;
// they are only ever compared for equality, and a word can hold no phase but
// the one looked for and the one two before it. In counters the phase field
// counts arrivals instead.
type word uint64

const (
	wordNamed    word = 1 << 32
	wordMismatch word = 1 << 33
	wordPhase         = 34 // first bit of the phase field
	phaseMask         = 1<<30 - 1

	wordID    word = 1<<32 - 1
	wordState      = wordMismatch | wordNamed | wordID
)

func (w word) phase() uint32 { return uint32(w >> wordPhase) }
func (w word) id() uint32    { return uint32(w) }

// offer is the state part of the word for the arguments of Notify.
func offer(id uint32, flags Flags) word {
	switch {
	case flags&Mismatch != 0:
		return wordMismatch
	case flags&Anonymous != 0:
		return 0
	}
	return wordNamed | word(id)
}

// combine merges the states of two sets of ranks: anonymous matches anything,
// equal names match, a mismatch spreads. It is commutative, associative and
// idempotent, so any tree, and rounds that overlap, give the same verdict.
func combine(a, b word) word {
	switch {
	case (a|b)&wordMismatch != 0:
		return wordMismatch
	case b&wordNamed == 0:
		return a & wordState
	case a&wordNamed == 0 || (a^b)&wordID == 0:
		return b & wordState
	}
	return wordMismatch
}
