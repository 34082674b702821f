package exposed

import (
	"fmt"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

type kind uint8

const (
	kindPut kind = iota
	kindGet
	kindWord // a put of 1, 2, 4 or 8 bytes that is single-copy atomic
	kindAtomic
)

var kindNames = [...]string{"put", "get", "put", "atomic"}

// request is what an access is to do. It does not change before the access has ended.
type request struct {
	kind kind
	typ  conduits.AtomicType
	op   conduits.AtomicOp
	rank int // whose memory it is; not the own one
	addr firehose.Addr
	b    []byte // source or destination; of a word, the same bytes as v
	v, w uint64 // operands
}

// size is how many bytes are accessed.
func (q *request) size() int {
	if q.kind == kindAtomic {
		return q.typ.Size()
	}
	return len(q.b)
}

func addrOf(a segment.NLA) firehose.Addr { return firehose.Addr(a - segment.ExposedBase) }
func nlaOf(a firehose.Addr) segment.NLA  { return segment.ExposedBase + segment.NLA(a) }

// failure is what an access that err ended fails with.
func failure(k kind, n int, a firehose.Addr, rank int, err error) error {
	return fmt.Errorf("extended: %s of %d bytes at %v of rank %d: %w", kindNames[k], n, nlaOf(a), rank, err)
}

func errUnaligned(a segment.NLA, rank int, t conduits.AtomicType) error {
	return errs.BadArg("extended: atomic at %v of rank %d: the memory that is exposed there is not aligned to the %d bytes of the type", a, rank, t.Size())
}
