package firehose

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// AddrLimit is the first value that is no Addr of a Space: they fit a pointer of
// 40 bits, beside the network logical addresses.
const AddrLimit = Addr(segment.ExposedLimit - segment.ExposedBase)

// Space gives addresses to a rank's memory, and pins buckets of it by an address
// translation unit: it is the Memory of a Cache. Exposing memory costs nothing
// but addresses; registered, and locked if the ATU does that, is only what the
// Cache pins. See the package comment on how addresses are given out.
//
// All methods may be called by any goroutine.
type Space struct {
	bucket uint64
	limit  Addr // AddrLimit
	unit   func() (*segment.ATU, error)

	last  atomic.Pointer[part] // that Local found
	parts atomic.Pointer[parts]
	enter sync.RWMutex // held by accesses on behalf of peers

	mu     sync.Mutex     // of what follows, and of changes of what precedes
	next   Addr           // where the search for addresses goes on
	gaps   int            // of parts
	dying  []*hold        // concealed, while peers still hold firehoses to them; by address
	pinned *registrations // nil before first use
	lately *part          // that something was pinned of
	err    error
}

// part is memory that is exposed: from a bucket's begin on.
type part struct {
	start  Addr
	mem    []byte
	rights segment.Rights
	peer   int
	gone   atomic.Bool // concealed
	hold   *hold
}

// hold has the range and the pins of a part. It outlives the part: memory that
// is concealed must not be kept because peers remember where it was.
type hold struct {
	start, end Addr
	pins       int // registrations
	gone       bool
}

// parts are sorted by address. Readers take no lock: elements are
// added behind the last, beyond the length that earlier readers know, and taken
// out by writing nil.
type parts struct {
	starts []Addr
	part   []atomic.Pointer[part]
}

// noParts are the parts of a new Space. Read only.
var noParts parts

// pinned is a registration.
type pinned struct {
	r    segment.Registration
	hold *hold
}

// registrations has the pinned memory: few ranks of a large job pin anything.
type registrations struct {
	index index    // address to place in regs
	regs  []pinned // [0] is none's
	spare []uint32 // places in regs that are free
}

// NewSpace makes an empty Space whose buckets are those of Config.Bucket. atu is
// asked for the address translation unit when something is to be pinned, not
// before: a conduit's Endpoint.ATU.
func NewSpace(atu func() (*segment.ATU, error), bucket uint64) (*Space, error) {
	if err := checkBucket(bucket); err != nil {
		return nil, err
	}
	s := &Space{unit: atu, bucket: bucket, limit: AddrLimit, next: Addr(bucket)}
	s.parts.Store(&noParts)
	return s, nil
}

// find is the index of the part that begins at a or before, or -1. What it finds
// may have been taken out.
func (p *parts) find(a Addr) int {
	return sort.Search(len(p.starts), func(i int) bool { return p.starts[i] > a }) - 1
}

// at is the part that a lies in, or nil.
func (s *Space) at(a Addr) *part {
	v := s.parts.Load()
	i := v.find(a)
	if i < 0 {
		return nil
	}
	if p := v.part[i].Load(); p != nil && uint64(a-p.start) < uint64(len(p.mem)) {
		return p
	}
	return nil
}

// End is the address behind the last byte of the memory whose addresses a is one of,
// or lies behind by less than what keeps memory apart: what an access that is not all
// exposed has run over. 0 if there is none.
func (s *Space) End(a Addr) Addr {
	v := s.parts.Load()
	if i := v.find(a); i >= 0 {
		if p := v.part[i].Load(); p != nil && uint64(a-p.start) < s.size(len(p.mem)) {
			return p.start + Addr(len(p.mem))
		}
	}
	return 0
}

// notExposed is ErrNotExposed for an access at a.
func (s *Space) notExposed(a Addr) error { return NotExposed(s.End(a)) }

// Local is the memory of [a, a+n), for this rank's own accesses, which need no
// rights; false if some of it is not exposed, or it is more than one Expose has
// given addresses to. It takes no lock. Go memory stays what it is as long as the
// caller has the slice, though no other rank may reach it any more; mapped memory
// must not be used any more when it is unmapped.
func (s *Space) Local(a Addr, n uint64) ([]byte, bool) {
	if p := s.last.Load(); p != nil {
		if off := uint64(a - p.start); off < uint64(len(p.mem)) && n <= uint64(len(p.mem))-off && !p.gone.Load() {
			return p.mem[off : off+n : off+n], true
		}
	}
	return s.local(a, n)
}

func (s *Space) local(a Addr, n uint64) ([]byte, bool) {
	p := s.at(a)
	if p == nil {
		return nil, false
	}
	s.last.Store(p)
	if p.gone.Load() { // Conceal may have looked at last before
		s.last.CompareAndSwap(p, nil)
		return nil, false
	}
	off := uint64(a - p.start)
	if n > uint64(len(p.mem))-off {
		return nil, false
	}
	return p.mem[off : off+n : off+n], true
}

// Serve has access use [a, a+n) on behalf of rank src, which needs the rights need:
// it is how an owner serves what comes without a firehose. The memory may be pinned or
// not, and stays what it is until access returns, also if it is concealed meanwhile:
// that waits. access calls no method of the Space or of a Cache, and does not wait. An
// error matches ErrNotExposed or segment.ErrFault; it is the latter, and the access
// may have been made in part, if the memory was unmapped behind the Space's back.
func (s *Space) Serve(src int, a Addr, n uint64, need segment.Rights, access func(mem []byte)) error {
	s.enter.RLock()
	defer s.enter.RUnlock()
	p := s.at(a)
	if p == nil || n > uint64(len(p.mem))-uint64(a-p.start) {
		return fmt.Errorf("firehose: access of %d bytes at %#x by rank %d: %w", n, uint64(a), src, s.notExposed(a))
	}
	if need&^p.rights != 0 || p.peer != segment.AnyPeer && p.peer != src {
		return fmt.Errorf("firehose: access of %d bytes at %#x by rank %d, which needs %v: %v is granted, to rank %d (-1 for all): %w", n, uint64(a), src, need, p.rights, p.peer, segment.ErrFault)
	}
	off := uint64(a - p.start)
	mem := p.mem[off : off+n : off+n]
	if !segment.Touch(mem, func() { access(mem) }) {
		return segment.ErrFault
	}
	return nil
}

// Expose gives mem addresses, consecutive from the one returned on, by which
// rank peer, or every peer if that is segment.AnyPeer, can pin it and access it
// with rights. mem is kept from the garbage collector until Conceal; it may be
// mapped memory too, which must not be unmapped before Conceal, or but by Unmap.
// The same memory may be exposed many times. A bucket has no two parts' memory.
func (s *Space) Expose(mem []byte, rights segment.Rights, peer int) (Addr, error) {
	if len(mem) == 0 {
		return 0, errs.BadArg("firehose: 0 bytes are to be exposed")
	}
	if rights == 0 || rights&^segment.RightsAll != 0 {
		return 0, errs.BadArg("firehose: memory is to be exposed with rights %#x: some of %#x are needed", uint8(rights), uint8(segment.RightsAll))
	}
	if peer >= segment.AnyVPID {
		return 0, errs.NotSupported("firehose: memory is to be exposed to rank %d alone: protection knows ranks 0..%d only", peer, segment.AnyVPID-1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.room(s.size(len(mem)))
	if !ok {
		return 0, errs.Resource("firehose: no addresses are left for %d bytes: there are %d, in buckets of %d", len(mem), uint64(s.limit), s.bucket)
	}
	s.add(&part{start: a, mem: mem, rights: rights, peer: peer, hold: &hold{start: a, end: a + Addr(s.size(len(mem)))}})
	return a, nil
}

// size is how many addresses n bytes take: whole buckets, and at least a page of
// addresses that is nothing's, so that what runs over the end of memory faults
// instead of reaching what was exposed next.
func (s *Space) size(n int) uint64 {
	return (uint64(n) + segment.PageSize + s.bucket - 1) &^ (s.bucket - 1)
}

// room finds addresses that no rank has or remembers: from where the last ones
// were found on, so that addresses are not used again before all of them have
// been.
func (s *Space) room(size uint64) (Addr, bool) {
	if size > uint64(s.limit)-s.bucket {
		return 0, false
	}
	v := s.parts.Load()
	a, wrapped := s.next, false
	i, k := v.find(a), sort.Search(len(s.dying), func(k int) bool { return s.dying[k].start > a })-1
	for i, k = max(i, 0), max(k, 0); ; {
		if uint64(s.limit-a) < size {
			if wrapped {
				return 0, false
			}
			a, i, k, wrapped = Addr(s.bucket), 0, 0, true
		}
		// A hold that begins before the end of the gap and ends behind its begin is in
		// the way.
		var h *hold
		for ; i < len(v.starts) && v.starts[i] < a+Addr(size); i++ {
			if p := v.part[i].Load(); p != nil && p.hold.end > a {
				h = p.hold
				break
			}
		}
		for ; h == nil && k < len(s.dying) && s.dying[k].start < a+Addr(size); k++ {
			if s.dying[k].end > a {
				h = s.dying[k]
			}
		}
		if h == nil {
			s.next = a + Addr(size)
			return a, true
		}
		a = h.end
	}
}

// add enters a part. s.mu is held.
func (s *Space) add(p *part) {
	v := *s.parts.Load()
	if k := len(v.starts); k == cap(v.starts) || k > 0 && v.starts[k-1] >= p.start {
		v = s.rebuild(&v, p)
	} else {
		v.starts = append(v.starts, p.start)
		v.part = v.part[:k+1]
		v.part[k].Store(p)
	}
	s.parts.Store(&v)
}

// rebuild copies parts without gaps, and with p unless it is nil.
func (s *Space) rebuild(old *parts, p *part) parts {
	n := len(old.starts) - s.gaps
	c := n + n/2 + 4
	v := parts{make([]Addr, 0, c), make([]atomic.Pointer[part], 0, c)}
	put := func(q *part) {
		v.starts = append(v.starts, q.start)
		v.part = v.part[:len(v.starts)]
		v.part[len(v.starts)-1].Store(q)
	}
	for i := range old.starts {
		q := old.part[i].Load()
		if q == nil {
			continue
		}
		if p != nil && q.start > p.start {
			put(p)
			p = nil
		}
		put(q)
	}
	if p != nil {
		put(p)
	}
	s.gaps = 0
	return v
}

// conceal takes memory that was exposed at a back: m, whose Memory s is and
// which the caller may use now, withdraws it. When it returns no rank reaches the
// memory by its addresses. Mapped memory is unmapped by unmap: a conduit's
// Endpoint.UnmapMemory, which takes back whatever else has been registered of it.
func (s *Space) conceal(m *machine, a Addr, unmap func(mem []byte) error) error {
	s.mu.Lock()
	v := s.parts.Load()
	i := v.find(a)
	if i < 0 || v.starts[i] != a || v.part[i].Load() == nil {
		s.mu.Unlock()
		return errs.BadArg("firehose: no memory is exposed from %#x on", uint64(a))
	}
	p := v.part[i].Load()
	v.part[i].Store(nil)
	p.gone.Store(true)
	s.last.CompareAndSwap(p, nil)
	if s.lately == p {
		s.lately = nil
	}
	if s.gaps++; s.gaps > 8+len(v.starts)/2 {
		w := s.rebuild(v, nil)
		s.parts.Store(&w)
	}
	p.hold.gone = true
	if p.hold.pins > 0 {
		k := sort.Search(len(s.dying), func(k int) bool { return s.dying[k].start > a })
		s.dying = slices.Insert(s.dying, k, p.hold)
	}
	s.mu.Unlock()
	s.enter.Lock()
	s.enter.Unlock() //lint:ignore SA2001 accesses that have found it have ended
	err := m.Withdraw(a, uint64(len(p.mem)))
	if err == nil && unmap != nil {
		err = unmap(p.mem)
	}
	return err
}

// Pin registers a bucket, or as much of it as is exposed; see Memory.
func (s *Space) Pin(a Addr, n uint64) (Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.lately
	if p == nil || uint64(a-p.start) >= uint64(len(p.mem)) {
		if p = s.at(a); p == nil {
			return Grant{}, ErrNotExposed
		}
		s.lately = p
	}
	return s.register(p, uint64(a-p.start), min(n, uint64(len(p.mem))-uint64(a-p.start)))
}

// PinOnce registers a range that is exposed as a whole; see Memory.
func (s *Space) PinOnce(a Addr, n uint64) (Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.at(a)
	if p == nil || n > uint64(len(p.mem))-uint64(a-p.start) {
		return Grant{}, s.notExposed(a)
	}
	return s.register(p, uint64(a-p.start), n)
}

func (s *Space) register(p *part, off, n uint64) (Grant, error) {
	atu, err := s.unit()
	if err != nil {
		return Grant{}, err
	}
	r, err := atu.Register(p.mem[off:off+n], p.rights, p.peer)
	if err != nil {
		return Grant{}, err
	}
	at, k := r.At(0)
	if k < r.Len() {
		return Grant{}, errors.Join(
			errs.Resource("firehose: no contiguous addresses for %d bytes", n), atu.Deregister(r))
	}
	if s.pinned == nil {
		s.pinned = &registrations{regs: make([]pinned, 1, 8)}
	}
	q := s.pinned
	i := uint32(len(q.regs))
	if k := len(q.spare) - 1; k >= 0 {
		i, q.spare = q.spare[k], q.spare[:k]
	} else {
		q.regs = append(q.regs, pinned{})
	}
	q.regs[i] = pinned{r, p.hold}
	q.index.set(uint64(at), i)
	p.hold.pins++
	return Grant{NLA: at}, nil
}

// Unpin deregisters what Pin or PinOnce registered; see Memory.
func (s *Space) Unpin(a Addr, n uint64, g Grant) { s.Forget(a, n, g) }

// Revoke has addresses fault; see Memory.
func (s *Space) Revoke(_ Addr, _ uint64, g Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	atu, err := s.unit()
	if err == nil {
		err = atu.Revoke(s.pinned.regs[s.pinned.index.find(uint64(g.NLA))].r)
	}
	s.failed(err)
}

// Forget gives addresses back; see Memory.
func (s *Space) Forget(_ Addr, _ uint64, g Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.pinned
	i := q.index.find(uint64(g.NLA))
	k := q.regs[i]
	atu, err := s.unit()
	if err == nil {
		err = atu.Deregister(k.r)
	}
	s.failed(err)
	q.index.remove(uint64(g.NLA))
	q.regs[i], q.spare = pinned{}, append(q.spare, i)
	if k.hold.pins--; k.hold.pins == 0 && k.hold.gone {
		s.dying = slices.DeleteFunc(s.dying, func(h *hold) bool { return h == k.hold })
	}
}

func (s *Space) failed(err error) {
	if err != nil && s.err == nil {
		s.err = err
	}
}

// Err is why memory could not be taken back, if that has happened: a unit of the
// ATU has died in an access.
func (s *Space) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
