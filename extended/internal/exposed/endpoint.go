package exposed

import (
	"fmt"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// copyMax is the longest source, bytes, that is copied so that its owner may go on while
// the memory that it goes to is being pinned, and copyNear the same where the access
// itself is no more than a copy.
const (
	copyMax  = 64 << 10
	copyNear = 4096
)

// Config is what an Endpoint is made with; see extended.Config. Nothing may be missing.
type Config struct {
	Firehose  *firehose.Cache
	Space     *firehose.Space
	Strategy  Strategy
	BounceMax int    // bytes
	OnceMin   uint64 // bytes
}

// Endpoint is one rank's access to exposed memory, its own included. All methods but
// SetStrategy may be called by many goroutines at once. A nil Endpoint is that of a rank
// without firehoses; of its methods only Check may be called.
type Endpoint struct {
	views    []segment.View // of the neighbourhood, from rank first on
	first    int
	policy   policy
	accesses accesses
	bounces  bounces
	space    *firehose.Space
}

// New makes an endpoint that waits for Bind. Operations that are not complete at once
// are completed by user.
func New(c Config, user am.Completer) *Endpoint {
	x := &Endpoint{space: c.Space}
	x.policy.init(c.Firehose.Limits(), c.Strategy, c.BounceMax, c.OnceMin)
	x.bounces.space, x.bounces.owner = c.Space, &x.accesses
	s := &x.accesses
	s.cache, s.policy, s.bounces, s.user = c.Firehose, &x.policy, &x.bounces, user
	return x
}

// Handlers are for am.Config.Runtime: the cache's and those of bounces.
func (x *Endpoint) Handlers() []am.Entry {
	return append(x.accesses.cache.Handlers(), x.bounces.handlers()...)
}

// Bind connects x with the rank's endpoint, before any operation.
func (x *Endpoint) Bind(e *am.Endpoint) {
	ep := e.Conduit()
	x.accesses.e, x.accesses.ep, x.accesses.maxLong, x.bounces.e = e, ep, ep.Limits().MaxLong, e
	x.accesses.atOnce, _ = ep.(conduits.AtOnce)
	x.accesses.many, _ = ep.(conduits.ManyAtOnce)
	x.first, x.views = ep.Views()
}

// SetStrategy changes the strategy. No operation is under way.
func (x *Endpoint) SetStrategy(s Strategy) { x.policy.set(s) }

// Cache is Config.Firehose.
func (x *Endpoint) Cache() *firehose.Cache { return x.accesses.cache }

// near reports whether rank's memory is in reach of load and store, so that an
// access to what is registered there is no more than a copy.
func (x *Endpoint) near(rank int) bool {
	i := uint(rank - x.first)
	return i < uint(len(x.views)) && x.views[i].Base != nil
}

// short reports whether an access of n bytes may be made while the cache is locked.
func (x *Endpoint) short(rank, n int) bool { return n <= x.policy.short && x.near(rank) }

// Most is how much of an access of n bytes may be one operation.
func (x *Endpoint) Most(rank int, a segment.NLA, n uint64) uint64 {
	if rank == x.rank() {
		return n
	}
	return x.policy.most(addrOf(a), n)
}

func (x *Endpoint) rank() int { return x.accesses.ep.Rank() }

// Local is own exposed memory of n bytes from a on; false if that is not all exposed.
func (x *Endpoint) Local(a segment.NLA, n uint64) ([]byte, bool) { return x.space.Local(addrOf(a), n) }

// direct has access use own exposed memory.
func (x *Endpoint) direct(a segment.NLA, n uint64, access func(mem []byte)) error {
	mem, ok := x.Local(a, n)
	if !ok {
		return fmt.Errorf("extended: %d bytes at %v of rank %d, which is this one: %w", n, a, x.rank(), firehose.NotExposed(x.space.End(addrOf(a))))
	}
	if !segment.Touch(mem, func() { access(mem) }) {
		return fmt.Errorf("extended: %d bytes at %v of rank %d, which is this one: exposed, and not mapped any more: %w", n, a, x.rank(), segment.ErrFault)
	}
	return nil
}

// Put is conduits.Endpoint.Put for an exposed address.
func (x *Endpoint) Put(dst int, to segment.NLA, src []byte, want conduits.Event, cookie uint64) (conduits.Event, error) {
	if dst == x.rank() {
		if err := x.direct(to, uint64(len(src)), func(mem []byte) { copyWords(mem, src) }); err != nil {
			return 0, err
		}
		return want, nil
	}
	done, p, _ := x.TryPut(dst, to, src, false)
	if done {
		return want, nil
	}
	if p != nil {
		x.Attach(p, want, cookie)
		return 0, nil
	}
	p = x.accesses.claim(kindPut, dst, to, want, cookie)
	p.b = src
	limit := copyMax
	if x.near(dst) {
		limit = copyNear
	}
	var have conduits.Event
	if want&conduits.SourceDone != 0 && len(src) <= limit {
		p.own = append(p.own[:0], src...)
		p.b = p.own
		have = conduits.SourceDone
		p.want &^= have
	}
	x.accesses.start(p)
	return have, nil
}

// Get is conduits.Endpoint.Get, with the remote side first; wait as for TryPut.
func (x *Endpoint) Get(src int, from segment.NLA, dst []byte, want conduits.Event, cookie uint64, wait bool) (conduits.Event, error) {
	if src == x.rank() {
		if err := x.direct(from, uint64(len(dst)), func(mem []byte) { copyWords(dst, mem) }); err != nil {
			return 0, err
		}
		return want, nil
	}
	done, p, err := x.TryGet(src, from, dst, wait)
	if err != nil {
		return 0, err
	}
	if done {
		return want, nil
	}
	if p != nil {
		x.Attach(p, want, cookie)
		return 0, nil
	}
	p = x.accesses.claim(kindGet, src, from, want, cookie)
	p.b = dst
	x.accesses.start(p)
	return 0, nil
}

// PutWord is conduits.Endpoint.PutWord; wait as for TryPut.
func (x *Endpoint) PutWord(dst int, to segment.NLA, v uint64, n int, want conduits.Event, cookie uint64, wait bool) (conduits.Event, error) {
	if dst == x.rank() {
		if err := x.direct(to, uint64(n), func(mem []byte) { storeWord(mem, v) }); err != nil {
			return 0, err
		}
		return want, nil
	}
	done, p, err := x.tryWord(dst, to, v, n, wait)
	if err != nil {
		return 0, err
	}
	if done {
		return want, nil
	}
	have := want & conduits.SourceDone
	if p != nil {
		x.Attach(p, want&^have, cookie)
		return have, nil
	}
	p = x.accesses.claim(kindWord, dst, to, want&^have, cookie)
	p.setWord(v, n)
	x.accesses.start(p)
	return have, nil
}

// Atomic is conduits.Endpoint.Atomic.
func (x *Endpoint) Atomic(dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64, cookie uint64) (uint64, conduits.Event, error) {
	if dst == x.rank() {
		var v uint64
		var ok bool
		if err := x.direct(to, uint64(t.Size()), func(mem []byte) { v, ok = applyWord(mem, op, t, a, b) }); err != nil {
			return 0, 0, err
		}
		if !ok {
			return 0, 0, errUnaligned(to, dst, t)
		}
		x.accesses.ep.Wake(dst)
		return v, conduits.RemoteDone, nil
	}
	v, done, p, _ := x.TryAtomic(dst, to, op, t, a, b, false)
	if done {
		return v, conduits.RemoteDone, nil
	}
	if p != nil {
		x.Attach(p, conduits.RemoteDone, cookie)
		return 0, 0, nil
	}
	p = x.accesses.claim(kindAtomic, dst, to, conduits.RemoteDone, cookie)
	p.op, p.typ, p.v, p.w = op, t, a, b
	x.accesses.start(p)
	return 0, 0, nil
}

// Complete takes the conduit's completions whose cookies have Cookie.
func (x *Endpoint) Complete(cookie, value uint64, err error) {
	x.accesses.complete(cookie&^Cookie, value, err)
}

// Check says what is wrong with an access to exposed memory, as far as ranks other than
// its owner can know.
func (x *Endpoint) Check(op string, a segment.NLA, n uint64) error {
	if x == nil {
		return errs.NotSupported("%s: %v is an exposed address: the endpoint was made without Config.Firehose and Config.Space", op, a)
	}
	if n > uint64(segment.ExposedLimit-a) {
		return errs.BadArg("%s: %d bytes at %v: exposed addresses end at %#x", op, n, a, uint64(segment.ExposedLimit-segment.ExposedBase))
	}
	return nil
}

// Expose is extended.Endpoint.Expose. Arguments have been checked.
func (x *Endpoint) Expose(mem []byte, rights segment.Rights, peer int) (segment.NLA, error) {
	a, err := x.space.Expose(mem, rights, peer)
	return nlaOf(a), err
}

// Conceal is extended.Endpoint.Conceal. Arguments have been checked.
func (x *Endpoint) Conceal(a segment.NLA) error { return x.accesses.cache.Conceal(x.space, addrOf(a)) }

// Deposit puts n bytes that rank src has sent to own memory, and returns that memory;
// data is nil if they are there already.
func (x *Endpoint) Deposit(src int, to segment.NLA, n uint64, data []byte) (there []byte, err error) {
	err = x.space.Serve(src, addrOf(to), n, segment.RightWrite, func(mem []byte) {
		there = mem
		if data != nil {
			copyWords(mem, data)
		}
	})
	return there, err
}
