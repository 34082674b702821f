//go:build ofi && cgo

package fabric

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"unsafe"
)

// Demand has e ask for more of its caller than its provider does: MRVirtAddr, MRLocal,
// MRRaw, MRAllocated, and keys that are chosen here in place of the provider's. It stands for cards that are
// not at hand, in tests: what keeps to its rules is done by the provider, and what does not
// is a panic that says which rule. All endpoints of a job lie in one process then, and all are asked.
// A context that is posted again before it is over is such a mistake, too, whatever modes are: a
// provider with FI_CONTEXT would overwrite what it keeps there. Before the first Register.
func (e *Endpoint) Demand(modes uint64) {
	i := *e.Info
	i.MR |= modes
	e.Info = &i
	e.fake = &domain{modes: modes, mine: map[uint32]uint64{}, mapped: map[uint64]uint64{}, local: map[uint64]piece{}, busy: map[uint32]bool{}}
}

// domain is what an endpoint with Demand knows beside its provider.
type domain struct {
	modes  uint64
	mine   map[uint32]uint64 // its regions' keys, by number
	mapped map[uint64]uint64 // keys by what MapKey has returned
	local  map[uint64]piece  // by Desc
	busy   map[uint32]bool   // contexts under way
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

// over notes what is not any more.
func (d *domain) over(all []Done) {
	for _, x := range all {
		delete(d.busy, x.Context)
	}
}
