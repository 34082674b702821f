package extended

import (
	"sync"

	"github.com/argon-go/argon/internal/sys"
)

// part holds slots that are free, handles that may still be issued, and waiters. A table
// is one until two goroutines meet at its lock; then each group of goroutines has a part of
// its own, and the table's, the reserve, has what they lack. All handles are in parts or
// outstanding, and so are all slots that were ever used.
//
// The lock of the reserve is taken before that of a part, and a part's after those of parts
// with a lower index alone. Only atOnce has the locks of several.
type part struct {
	mu      sync.Mutex
	free    *op     // used before, and free
	waiters *waiter // not in use
	left    int32   // handles that may still be issued
	used    uint32  // of the reserve: slots that were ever used, which are all below
}

// ownPart has a line to itself.
type ownPart struct {
	part
	_ [32]byte
}

// numParts is a power of two; a table that has parts takes 512 bytes for them.
const (
	numParts  = 8
	partShift = 64 - 3
)

// meetEach is how many times a slot is used from one look for another goroutine to the next.
const meetEach = 32

// partHandles is how many handles a part that has none gets from the reserve at most.
const partHandles = 64

// parts are those of all groups.
type parts [numParts]ownPart

// own is the calling goroutine's part.
//
//go:noinline
func (ps *parts) own() *part {
	return &ps[uint64(sys.Goroutine())*0x9e3779b97f4a7c15>>partShift].part
}

// own is the part of the calling goroutine, which may be all there is.
func (t *table) own() *part {
	if ps := t.parts.Load(); ps != nil {
		return ps.own()
	}
	return &t.part
}

// meet gives goroutines parts of their own if another one is at the table just now.
func (t *table) meet() {
	if t.parts.Load() != nil {
		return
	}
	if !t.mu.TryLock() {
		t.mu.Lock()
		if t.parts.Load() == nil {
			t.parts.Store(new(parts))
		}
	}
	t.mu.Unlock()
}

// lack is claim for a caller whose part p, which is not locked, has no slot or no handle.
func (t *table) lack(p *part, withHandle bool) (*op, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if withHandle && !t.recall() {
		return nil, errTooManyHandles()
	}
	o := t.list()
	if o == nil {
		return nil, errTooManyOperations()
	}
	if withHandle {
		t.left--
	}
	rest := o.next
	if p == &t.part {
		t.free = rest
		return o, nil
	}
	p.mu.Lock()
	if p.free == nil {
		p.free = rest
	} else {
		t.free = rest
	}
	if p.left == 0 {
		p.left = min(t.left, partHandles)
		t.left -= p.left
	}
	p.mu.Unlock()
	return o, nil
}

// each calls f for one part after the other, with its lock held.
func (ps *parts) each(f func(*part)) {
	if ps == nil {
		return
	}
	for i := range ps {
		p := &ps[i].part
		p.mu.Lock()
		f(p)
		p.mu.Unlock()
	}
}

// atOnce calls f for all parts with the locks of all of them held. After each, what has come
// to a part looked at, while another was taken from one still to come, would be missed or be
// counted twice. The caller holds the lock of the reserve.
func (ps *parts) atOnce(f func(*part)) {
	if ps == nil {
		return
	}
	for i := range ps {
		ps[i].mu.Lock()
	}
	for i := range ps {
		f(&ps[i].part)
		ps[i].mu.Unlock()
	}
}

// recall has the reserve have a handle if one is left anywhere. The caller holds mu.
func (t *table) recall() bool {
	take := func(p *part) {
		t.left += p.left
		p.left = 0
	}
	if t.left == 0 {
		t.parts.Load().each(take)
	}
	if t.left == 0 {
		t.parts.Load().atOnce(take)
	}
	return t.left > 0
}

// list takes slots that are free, at least one, from where there are some; nil if all
// are in use. The caller holds mu.
func (t *table) list() *op {
	o := t.free
	t.free = nil
	take := func(p *part) {
		if o == nil {
			o, p.free = p.free, nil
		}
	}
	if o == nil {
		t.parts.Load().each(take)
	}
	if o == nil {
		o = t.fresh()
	}
	if o == nil {
		t.parts.Load().atOnce(take)
	}
	return o
}

// outstanding is the number of handles issued and not synchronized.
func (t *table) outstanding() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := t.left
	t.parts.Load().atOnce(func(p *part) { left += p.left })
	return MaxHandles - int(left)
}

// room reports whether claim would find a slot.
func (t *table) room() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free = t.list()
	return t.free != nil
}
