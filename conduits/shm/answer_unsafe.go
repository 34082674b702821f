package shm

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// answers is a rank's side of others' questions.
type answers struct {
	seat
	life  *lifecycle
	mem   *memory
	bell  *bell
	mu    sync.Mutex       // held during answers to one rank; guards what follows
	desks []unsafe.Pointer // those of the askers, by place
}

// serve answers the ranks that have asked this one. The caller polls.
func (a *answers) serve() int {
	n := 0
	reg := a.j.registry(a.rank)
	for i := range (a.j.n + 31) / 32 {
		word := (*uint32)(unsafe.Add(reg, regAsked+i*4))
		if atomic.LoadUint32(word) == 0 {
			continue
		}
		for b := atomic.SwapUint32(word, 0); b != 0; b &= b - 1 {
			if k := i*32 + bits.TrailingZeros32(b); k < a.j.n && k != a.here {
				n += a.answerAll(a.j.rank(k))
			}
		}
	}
	if n > 0 {
		a.bell.ran()
	}
	return n
}

// stopServing waits until no answer is under way. The endpoint is closed: there will
// be none any more.
func (a *answers) stopServing() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.desks)
}

// answerAll answers what src has asked this rank.
func (a *answers) answerAll(src int) int {
	// A question that is open when this rank leaves the job gets no answer, or all of it.
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.life.closed.Load() {
		return 0
	}
	d := a.desks[a.j.place(src)]
	if d == nil {
		off := atomic.LoadUint64((*uint64)(unsafe.Add(a.j.registry(src), regDesk)))
		if d = a.j.mapOld(off, deskBytes, true); d == nil {
			a.life.Fail(fmt.Errorf("rank %d asks rank %d for memory by a desk at %#x, which cannot be mapped", src, a.rank, off))
			return 0
		}
		a.desks[a.j.place(src)] = d
	}
	n := 0
	for i := range deskPlaces {
		p := unsafe.Add(d, i*deskLine)
		state := (*uint32)(unsafe.Add(p, askState))
		if atomic.LoadUint32(state) != askPosted || atomic.LoadUint32((*uint32)(unsafe.Add(p, askDst))) != uint32(a.here) ||
			!atomic.CompareAndSwapUint32(state, askPosted, askBusy) {
			continue
		}
		page, have := a.answer(src, p, unsafe.Slice((*byte)(unsafe.Add(d, deskRooms+i*deskRoom)), deskRoom))
		*(*uint64)(unsafe.Add(p, askPage)) = page
		*(*uint64)(unsafe.Add(p, askHave)) = uint64(have)
		atomic.StoreUint32(state, askDone)
		n++
	}
	if n > 0 {
		atomic.AddUint32(a.j.c32(src, ctlOpenSeq), 1)
		a.bell.Wake(src)
	}
	return n
}

// answer does what src asks for at p, with room for data. It reads everything once
// and believes nothing. If it refuses it returns 1 and a page, as one number, and
// the page's entry.
func (a *answers) answer(src int, p unsafe.Pointer, room []byte) (page uint64, have segment.Entry) {
	kind := atomic.LoadUint32((*uint32)(unsafe.Add(p, askKind)))
	opType := atomic.LoadUint32((*uint32)(unsafe.Add(p, askOp)))
	at := segment.NLA(atomic.LoadUint64((*uint64)(unsafe.Add(p, askTo))))
	n := atomic.LoadUint64((*uint64)(unsafe.Add(p, askLen)))
	x := atomic.LoadUint64((*uint64)(unsafe.Add(p, askA)))
	y := atomic.LoadUint64((*uint64)(unsafe.Add(p, askB)))

	q := conduits.Access{
		At: at, Size: uint8(min(n, 255)), Op: conduits.AtomicOp(opType), Type: conduits.AtomicType(opType >> 8),
		Mem: room[:min(n, uint64(len(room)))], A: x, B: y,
	}
	sound := n >= 1 && n <= uint64(len(room))
	switch kind {
	case askPut:
	case askGet:
		q.Verb = conduits.Get
	case askWord:
		q.Verb = conduits.PutWord
	case askAtomic:
		q.Verb = conduits.Atomic
	default:
		sound = false
	}
	if !sound || !q.Sound() || n != q.Len() {
		return uint64(at)&^(segment.PageSize-1) | 1, 0
	}
	m, u, err := conduits.Admit(a.mem.MadeATU(), src, at, n, q.Need())
	if err != nil {
		if f, ok := err.(*segment.FaultError); ok {
			return uint64(f.Page)&^(segment.PageSize-1) | 1, f.Have
		}
		return uint64(at)&^(segment.PageSize-1) | 1, 0
	}
	there := segment.Touch(m, func() { q.PerformOn(m) })
	if q.Verb == conduits.Atomic {
		*(*uint64)(unsafe.Add(p, askValue)) = q.Value
	}
	u.Exit()
	if !there {
		return uint64(at)&^(segment.PageSize-1) | 1, 0
	}
	return 0, 0
}
