package firehose

import (
	"errors"
	"slices"
	"sort"
	"sync"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Space gives addresses to a rank's memory, and pins buckets of it by an address
// translation unit: it is the Memory of a Machine. Exposing memory costs nothing
// but addresses; registered, and locked if the ATU does that, is only what the
// Machine pins. Addresses are never given out twice, so one that is remembered
// after its memory is gone faults for ever.
//
// All methods may be called by any goroutine.
type Space struct {
	atu    *segment.ATU
	bucket uint64

	mu     sync.Mutex
	next   Addr   // of what is exposed next
	parts  []part // by address
	pinned map[Addr]segment.Region
	err    error
}

// part is memory that is exposed: from a bucket's begin on.
type part struct {
	start  Addr
	mem    []byte
	rights segment.Rights
	peer   int
}

// NewSpace makes an empty Space whose buckets are those of Config.Bucket.
func NewSpace(atu *segment.ATU, bucket uint64) (*Space, error) {
	if bucket < segment.PageSize || bucket&(bucket-1) != 0 {
		return nil, errs.BadArg("firehose: buckets of %d bytes: a power of two, at least a page of %d, is needed", bucket, segment.PageSize)
	}
	return &Space{atu: atu, bucket: bucket, next: Addr(bucket), pinned: map[Addr]segment.Region{}}, nil
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
	s.mu.Lock()
	defer s.mu.Unlock()
	size := (uint64(len(mem)) + s.bucket - 1) &^ (s.bucket - 1)
	if uint64(s.next)+size < uint64(s.next) {
		return 0, errs.Resource("firehose: no addresses are left for %d bytes", len(mem))
	}
	a := s.next
	s.next += Addr(size)
	s.parts = append(s.parts, part{a, mem, rights, peer})
	return a, nil
}

// Conceal takes memory that was exposed at a back: m, whose Memory s is and
// which the caller may use now, withdraws it. When it returns nobody reaches the
// memory by its addresses.
func (s *Space) Conceal(m *Machine, a Addr) error {
	_, err := s.conceal(m, a)
	return err
}

func (s *Space) conceal(m *Machine, a Addr) (mem []byte, err error) {
	s.mu.Lock()
	i := s.find(a)
	found := i >= 0 && s.parts[i].start == a
	var p part
	if found {
		p = s.parts[i]
		s.parts = slices.Delete(s.parts, i, i+1)
	}
	s.mu.Unlock()
	if !found {
		return nil, errs.BadArg("firehose: no memory is exposed from %#x on", uint64(a))
	}
	return p.mem, m.Withdraw(a, uint64(len(p.mem)))
}

// Unmap conceals mapped memory, takes back whatever else the ATU has registered
// of it, and unmaps it.
func (s *Space) Unmap(m *Machine, a Addr) error {
	mem, err := s.conceal(m, a)
	if err != nil {
		return err
	}
	return s.atu.Unmap(mem)
}

// find is the index of the part that a lies in, or -1.
func (s *Space) find(a Addr) int {
	i := sort.Search(len(s.parts), func(i int) bool { return s.parts[i].start > a }) - 1
	if i >= 0 && uint64(a-s.parts[i].start) >= uint64(len(s.parts[i].mem)) {
		return -1
	}
	return i
}

// Pin registers a bucket, or as much of it as is exposed; see Memory.
func (s *Space) Pin(a Addr, n uint64) (Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(a)
	if i < 0 {
		return Grant{}, ErrNotExposed
	}
	p := &s.parts[i]
	off := uint64(a - p.start)
	mem := p.mem[off:min(off+n, uint64(len(p.mem)))]
	r, err := s.atu.Register(mem, p.rights, p.peer)
	if err != nil {
		return Grant{}, err
	}
	at, k := r.At(0)
	if k < r.Len() {
		return Grant{}, errors.Join(
			errs.Resource("firehose: no contiguous addresses for a bucket of %d bytes", n), s.atu.Deregister(r))
	}
	s.pinned[a] = r
	return Grant{NLA: at}, nil
}

// Unpin deregisters a bucket; see Memory.
func (s *Space) Unpin(a Addr, n uint64, g Grant) { s.Forget(a, n, g) }

// Revoke has a bucket's addresses fault; see Memory.
func (s *Space) Revoke(a Addr, _ uint64, _ Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed(s.atu.Revoke(s.pinned[a]))
}

// Forget gives a bucket's addresses back; see Memory.
func (s *Space) Forget(a Addr, _ uint64, _ Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed(s.atu.Deregister(s.pinned[a]))
	delete(s.pinned, a)
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
