//go:build ofi && cgo

package fabric

// #include "shim.h"
import "C"

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"unsafe"
)

// Abilities that Demand takes from an endpoint, beside bits of Properties.MR.
const (
	NoDelivery = 1 << 62 // Properties.Delivery
	NoSAW      = 1 << 61 // OrderSAW
	Called     = 1 << 60 // progress that it makes by itself, and connections of IP: Properties.Manual
)

// Demand has e ask for more of its caller than its provider does: MRVirtAddr, MRLocal,
// MRRaw, MRAllocated, NoDelivery, NoSAW, Called, and keys that are chosen here in place of the provider's. It stands for cards that are
// not at hand, in tests: what keeps to its rules is done by the provider, and what does not
// is a panic that names the rule. All endpoints of a job lie in one process then, and all are asked.
// A context that is posted again before it is over is such a mistake, too, whatever modes are: a
// provider with FI_CONTEXT would overwrite what it keeps there. Before the first Register.
func (e *Endpoint) Demand(modes uint64) {
	i := *e.Info
	i.MR |= modes &^ (NoDelivery | NoSAW | Called)
	i.Delivery = i.Delivery && modes&NoDelivery == 0
	if modes&NoSAW != 0 {
		i.Order &^= OrderSAW
	}
	if modes&Called != 0 {
		i.IP, i.Manual = false, true
	}
	e.Info = &i
	e.fake = &domain{modes: modes, mine: map[uint32]uint64{}, mapped: map[uint64]uint64{}, local: map[uint64]piece{}, busy: map[uint32]bool{}}
	e.fake.sides = map[uint32]uint32{}
	e.fake.held, e.fake.late = map[uint64][]Op{}, map[uint32]Op{}
}

// domain is the state of an endpoint with Demand beside its provider.
type domain struct {
	modes  uint64
	mine   map[uint32]uint64 // its regions' keys, by number
	mapped map[uint64]uint64 // keys by what MapKey has returned
	local  map[uint64]piece  // by Desc
	busy   map[uint32]bool   // contexts under way
	sides  map[uint32]uint32 // regions of their local sides, with MRLocal

	// With NoDelivery.
	held  map[uint64][]Op // writes that are over and have not begun, by peer; Local is a copy
	early []Done          // what is to be said of them
	late  map[uint32]Op   // that are under way, by contexts of their own
	spare []uint32        // of these contexts
}

// post is Endpoint.Post.
func (d *domain) post(e *Endpoint, ops []Op) (n int, again bool, err error) {
	if len(ops) == 0 {
		return 0, false, nil
	}
	ops = d.translate(ops)
	defer func() { d.posted(ops[:n]) }()
	switch held, waits := d.delay(e, ops[0]); {
	case held:
		return 1, false, nil
	case waits:
		return 0, true, nil
	}
	return e.post(ops)
}

// delay keeps a write back with NoDelivery, and says so: it is over for the caller, and moves its
// data as late as may be, before what its order puts behind it. That waits until it has.
func (d *domain) delay(e *Endpoint, op Op) (held, waits bool) {
	if d.modes&NoDelivery == 0 {
		return false, false
	}
	behind := op.Kind == Send || op.Kind == Inject
	switch {
	case op.Kind == Write && d.modes&NoSAW != 0:
		panic(fmt.Sprintf("fabric: a write of %d bytes of which nothing tells when it is in place", op.Len))
	case op.Kind == Write:
		d.early = append(d.early, Done{Context: op.Context})
		op.Local = uintptr(C.argon_copy(C.uint64_t(op.Local), C.size_t(op.Len)))
		d.held[op.Peer] = append(d.held[op.Peer], op)
		return true, false
	case !behind:
		return false, false
	}
	for len(d.held[op.Peer]) > 0 {
		if len(d.spare) == 0 {
			c, err := e.Grow(1, 0)
			if err != nil {
				panic(err)
			}
			d.spare = append(d.spare, c)
		}
		w := d.held[op.Peer][0]
		w.Context = d.spare[len(d.spare)-1]
		_, again, err := e.post([]Op{w})
		if again || err != nil {
			return false, err == nil // of an error the caller hears itself
		}
		d.spare = d.spare[:len(d.spare)-1]
		d.late[w.Context] = w
		d.held[op.Peer] = d.held[op.Peer][1:]
	}
	for _, w := range d.late {
		waits = waits || w.Peer == op.Peer
	}
	return false, waits
}

type piece struct {
	at, n  uint64
	number uint32
}

// fakes are the regions of all endpoints with Demand, by the keys they were given.
var fakes = struct {
	sync.Mutex
	of map[uint64]fakeRegion
}{of: map[uint64]fakeRegion{}}

type fakeRegion struct {
	at, n uint64 // virtual address of the first byte, and bytes
	uses  uint64
	real  Region
}

// register makes what the caller sees of a region of the provider's.
func (d *domain) register(mem []byte, uses uint64, real Region) Region {
	fakes.Lock()
	defer fakes.Unlock()
	r := real
	at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
	key := rand.Uint64()
	fakes.of[key] = fakeRegion{at, uint64(len(mem)), uses, real}
	d.mine[real.number] = key
	r.Key, r.Base = key, 0
	if d.modes&MRVirtAddr != 0 {
		r.Base = at
	}
	if d.modes&MRLocal != 0 {
		r.Desc = rand.Uint64() | 1
		d.local[r.Desc] = piece{at, uint64(len(mem)), real.number}
	}
	if d.modes&MRRaw != 0 {
		r.Key = rand.Uint64() // names nothing
		r.Raw = fmt.Appendf(nil, "a raw key %016x %016x", key, r.Base)
	}
	return r
}

// deregister forgets region number.
func (d *domain) deregister(number uint32) {
	for context, n := range d.sides {
		if n == number && d.busy[context] {
			panic(fmt.Sprintf("fabric: region %d is deregistered while context %d moves data from or to it", number, context))
		}
	}
	fakes.Lock()
	defer fakes.Unlock()
	delete(fakes.of, d.mine[number])
	delete(d.mine, number)
	for desc, p := range d.local {
		if p.number == number {
			delete(d.local, desc)
		}
	}
}

// mapKey is MapKey.
func (d *domain) mapKey(base uint64, raw []byte) uint64 {
	var key, at uint64
	if _, err := fmt.Sscanf(string(raw), "a raw key %x %x", &key, &at); err != nil || at != base {
		panic(fmt.Sprintf("fabric: the raw key %q with base %#x is of no region", raw, base))
	}
	k := rand.Uint64()
	d.mapped[k] = key
	return k
}

// translate checks operations and makes them the provider's.
func (d *domain) translate(ops []Op) []Op {
	fakes.Lock()
	defer fakes.Unlock()
	out := make([]Op, len(ops))
	for i, op := range ops {
		if d.busy[op.Context] {
			panic(fmt.Sprintf("fabric: context %d is posted again before it is over", op.Context))
		}
		if op.Kind == Write || op.Kind == Read {
			d.remote(&op)
		}
		out[i] = op
	}
	return out
}

// remote checks an access, and has it name what the provider knows.
func (d *domain) remote(op *Op) {
	key := op.Key
	if d.modes&MRRaw != 0 {
		k, ok := d.mapped[key]
		if !ok {
			panic(fmt.Sprintf("fabric: an access by key %#x, which MapKey has not made, or UnmapKey forgotten", key))
		}
		key = k
	}
	r, ok := fakes.of[key]
	if !ok {
		panic(fmt.Sprintf("fabric: an access by key %#x, which no region has any more", key))
	}
	off := op.Remote
	if d.modes&MRVirtAddr != 0 {
		off -= r.at
	}
	need := uint64(RemoteWrite)
	if op.Kind == Read {
		need = RemoteRead
	}
	if off > r.n || op.Len > r.n-off || r.uses&need == 0 {
		panic(fmt.Sprintf("fabric: an access of %d bytes at %#x to a region of %d at %#x with uses %#x", op.Len, op.Remote, r.n, r.at, r.uses))
	}
	if d.modes&MRLocal != 0 {
		p, ok := d.local[op.Desc]
		if at := uint64(op.Local); !ok || at < p.at || at-p.at > p.n || op.Len > p.n-(at-p.at) {
			panic(fmt.Sprintf("fabric: an access of %d bytes from %#x, which is not what %#x describes", op.Len, op.Local, op.Desc))
		}
		op.Desc = 0
		d.sides[op.Context] = p.number
	}
	op.Remote, op.Key = r.real.Base+off, r.real.Key
}

// posted notes what is under way.
func (d *domain) posted(ops []Op) {
	for _, op := range ops {
		if op.Kind != Inject {
			d.busy[op.Context] = true
		}
	}
}

// over notes what is not any more, of the n first of all, and returns how many the caller is told of.
func (d *domain) over(all []Done, n int) int {
	told := all[:0]
	for _, x := range all[:n] {
		if w, ok := d.late[x.Context]; ok {
			C.argon_drop(C.uint64_t(w.Local))
			delete(d.late, x.Context)
			d.spare = append(d.spare, x.Context)
			continue
		}
		told = append(told, x)
	}
	for len(told) < len(all) && len(d.early) > 0 {
		told, d.early = append(told, d.early[0]), d.early[1:]
	}
	for _, x := range told {
		delete(d.busy, x.Context)
		delete(d.sides, x.Context)
	}
	return len(told)
}

// Held counts the registrations of e and the keys that MapKey has made, and lists the uses
// that the registrations allow. The keys and uses are known with Demand alone.
func (e *Endpoint) Held() (regions, mapped int, uses []uint64) {
	for _, r := range unsafe.Slice(e.c.regions, int(e.c.nregions)) {
		if r != nil {
			regions++
		}
	}
	if e.fake == nil {
		return regions, 0, nil
	}
	fakes.Lock()
	defer fakes.Unlock()
	for _, key := range e.fake.mine {
		uses = append(uses, fakes.of[key].uses)
	}
	return regions, len(e.fake.mapped), uses
}
