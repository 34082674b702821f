package conduits

import (
	"fmt"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// CheckAttach returns an error that names the value and the limit if c is not
// what Attach accepts where a segment may have limit bytes, and fills in the
// rights if c has none. conduit is the name that the error begins with.
func CheckAttach(conduit string, c *AttachConfig, limit uint64) error {
	switch {
	case c.Receiver == nil:
		return errs.BadArg("%s: attach without a Receiver", conduit)
	case c.Size%segment.PageSize != 0:
		return errs.BadArg("%s: segment of %d bytes is no multiple of the page size %d", conduit, c.Size, segment.PageSize)
	case c.Size > limit:
		return errs.Resource("%s: segment of %d bytes asked for, the job allows %d a rank (-segment, ARGON_SEGMENT)", conduit, c.Size, limit)
	}
	if c.Rights == 0 {
		c.Rights = segment.RightsAll
	}
	return nil
}

// CheckRank returns an error that names rank if it is not in 0..size-1.
func CheckRank(ep Endpoint, op string, rank int) error {
	if uint(rank) >= uint(ep.Size()) {
		return errs.BadArg("%s: rank %d out of range: the job has ranks 0..%d", op, rank, ep.Size()-1)
	}
	return nil
}

// CheckRemote returns an error that names the value and the limit if bytes
// [a, a+n) do not lie in the segment that rank attached, and are not registered
// memory either, see Registered; what is there, only rank itself knows.
func CheckRemote(ep Endpoint, op string, rank int, a segment.NLA, n uint64) error {
	if err := CheckRank(ep, op, rank); err != nil {
		return err
	}
	size := ep.SegmentSize(rank)
	off := uint64(a - segment.AttachBase)
	if off > size || size-off < n {
		if Registered(size, a, n) {
			return nil
		}
		if a.Exposed() {
			return errs.BadArg("%s: address %v of rank %d is an exposed one, which only the layers above conduits resolve", op, a, rank)
		}
		beyond := ""
		if Registered(size, a, 1) {
			end := segment.NLA(segment.NLALimit)
			if a < segment.AttachBase {
				end = segment.AttachBase
			}
			beyond = fmt.Sprintf("; what is registered there ends at %v, or before", end-1)
		}
		return errs.BadArg("%s: address %v (offset %#x) and length %d are outside the segment of rank %d, which has %d bytes (-segment, ARGON_SEGMENT)%s",
			op, a, off, n, rank, size, beyond)
	}
	return nil
}

// InSegment reports whether [a, a+n) lies in the segment that rank attached: what
// CheckRemote accepts otherwise are addresses of registered memory.
func InSegment(ep Endpoint, rank int, a segment.NLA, n uint64) bool {
	size := ep.SegmentSize(rank)
	off := uint64(a - segment.AttachBase)
	return off <= size && size-off >= n
}

// Registered reports whether [a, a+n) are addresses that memory may have which a
// rank with a segment of size bytes has registered: single pages lie below the
// attach segment, runs of pages in the tables above it.
func Registered(size uint64, a segment.NLA, n uint64) bool {
	if a < segment.AttachBase {
		return a >= segment.PageSize && n <= uint64(segment.AttachBase-a)
	}
	above := segment.AttachBase + segment.NLA(size+segment.GATSpan-1)&^(segment.GATSpan-1)
	return a >= above && a < segment.NLALimit && n <= uint64(segment.NLALimit-a)
}

// atomicSound reports whether CheckAtomic has no error.
func atomicSound(o AtomicOp, t AtomicType, a segment.NLA) bool {
	const integers = 1<<AtomicAnd | 1<<AtomicOr | 1<<AtomicXor | 1<<AtomicFCAA
	return o < NumAtomicOps && t < NumAtomicTypes && !(t.Float() && integers>>o&1 != 0) && uint64(a)%uint64(t.Size()) == 0
}

// CheckAtomic returns an error unless op exists for t and a is aligned.
func CheckAtomic(op string, o AtomicOp, t AtomicType, a segment.NLA) error {
	if o >= NumAtomicOps || t >= NumAtomicTypes {
		return errs.BadArg("%s: no atomic operation %d on type %d", op, o, t)
	}
	if t.Float() && (o == AtomicAnd || o == AtomicOr || o == AtomicXor || o == AtomicFCAA) {
		return errs.NotSupported("%s: and, or, xor and FCAA exist for integers only", op)
	}
	if n := t.Size(); uint64(a)%uint64(n) != 0 {
		return errs.BadArg("%s: address %v is not aligned to the %d bytes of the type", op, a, n)
	}
	return nil
}

// Fault is the error of an access to memory registered by rank, which was refused
// because of err, a *segment.FaultError. op begins with the conduit's name.
func Fault(op string, rank int, err error) error {
	return fmt.Errorf("%s: rank %d: %w", op, rank, err)
}
