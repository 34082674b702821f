package segment

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/sys"
)

// frameOf is the address of mem's first byte. Frames are the owner's virtual
// pages: a translation's result is an address of the owner's process.
func frameOf(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) }

// memoryAt returns the n bytes at addr, which a translation has just found in a valid
// entry. An entry is valid only while the registration that wrote it holds on to
// the memory: by a Go pointer to it and a Pinner, so that it neither moves nor
// is freed if it is of the Go heap; otherwise by the caller's promise not to
// unmap it. So the address is that of live memory, of one object, until Exit.
// It is made a pointer by its bits because checkptr cannot know that.
func memoryAt(addr, n uint64) []byte {
	p := *(*unsafe.Pointer)(unsafe.Pointer(&addr))
	return unsafe.Slice((*byte)(p), n)
}

// Reach is Enter and Translate in one for the usual access, of bytes of one page that the
// frame itself is the address of. u is nil otherwise, and nothing has begun.
func (t *ATU) Reach(src int, a NLA, n uint64, need Rights) (p unsafe.Pointer, u *Unit) {
	off := uint64(a) & (PageSize - 1)
	if t.c.Frames != nil || a >= NLALimit || n-1 >= PageSize-off {
		return nil, nil
	}
	if u = &t.units[conc.FirstWord(numUnits)]; !conc.EnterWord(&u.seq) {
		u = t.Enter()
	}
	if g := t.tables.gats[a.GAT()].Load(); g != nil {
		if e := Entry(g.entries[a.Entry()].Load()); e.whole(uint16(min(src, AnyVPID)), need) {
			addr := e.Frame()<<PageBits | off
			return *(*unsafe.Pointer)(unsafe.Pointer(&addr)), u // see memoryAt
		}
	}
	u.Exit()
	return nil, nil
}

// pins are the Pinners of an ATU's registrations. They live apart from it, so
// that one that is forgotten without Close can be cleaned up after: the runtime
// panics when it finds a Pinner lost that still pins.
type pins struct {
	mu  sync.Mutex
	all map[*runtime.Pinner]struct{}
}

// pin pins mem, if it is Go memory.
func (p *pins) pin(mem []byte) *runtime.Pinner {
	pin := new(runtime.Pinner)
	pin.Pin(unsafe.SliceData(mem))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[*runtime.Pinner]struct{}{}
	}
	p.all[pin] = struct{}{}
	return pin
}

func (p *pins) unpin(pin *runtime.Pinner) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, pin)
	pin.Unpin()
}

func (p *pins) unpinAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for pin := range p.all {
		pin.Unpin()
	}
	p.all = nil
}

func unmap(mem []byte) error {
	return sys.Unmap(unsafe.Pointer(unsafe.SliceData(mem)), int64(len(mem)))
}
