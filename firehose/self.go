package firehose

import (
	"fmt"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// Expose gives mem exposed addresses, from the one returned on; see Space.Expose.
func (x *Route) Expose(mem []byte, rights segment.Rights, peer int) (segment.NLA, error) {
	a, err := x.space.Expose(mem, rights, peer)
	return nlaOf(a), err
}

// Conceal takes memory back that Expose has given addresses from a on.
func (x *Route) Conceal(a segment.NLA) error { return x.cache.Conceal(x.space, addrOf(a)) }

// Local is own exposed memory of n bytes from a on; false if that is not all exposed.
func (x *Route) Local(a segment.NLA, n uint64) ([]byte, bool) { return x.space.Local(addrOf(a), n) }

// Deposit puts n bytes that rank src has sent to own memory, and returns that memory;
// data is nil if they are there already.
func (x *Route) Deposit(src int, to segment.NLA, n uint64, data []byte) (there []byte, err error) {
	err = x.space.Serve(src, addrOf(to), n, segment.RightWrite, func(mem []byte) {
		there = mem
		if data != nil {
			copyWords(mem, data)
		}
	})
	return there, err
}

// serveSelf makes an access to own memory.
func (x *Route) serveSelf(a *conduits.Access) (conduits.Event, error) {
	n := a.Len()
	mem, ok := x.Local(a.At, n)
	if !ok {
		return 0, fmt.Errorf("firehose: %v of %d bytes at %v of rank %d, which is this one: %w", a.Verb, n, a.At, a.Rank, NotExposed(x.space.End(addrOf(a.At))))
	}
	aligned := true
	if !segment.Touch(mem, func() { aligned = apply(mem, a) }) {
		return 0, fmt.Errorf("firehose: %v of %d bytes at %v of rank %d, which is this one: exposed, and not mapped any more: %w", a.Verb, n, a.At, a.Rank, segment.ErrFault)
	}
	if !aligned {
		return 0, errUnaligned(a)
	}
	if a.Verb == conduits.Atomic {
		x.ep.Wake(a.Rank)
	}
	return complete, nil
}

// apply makes a on mem, as long as a is. False if a is an atomic, and mem is not aligned.
func apply(mem []byte, a *conduits.Access) (ok bool) {
	if a.Verb == conduits.Atomic {
		a.Value, ok = applyWord(mem, a.Op, a.Type, a.A, a.B)
		return ok
	}
	a.PerformOn(mem)
	return true
}
