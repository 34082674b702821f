package heap

import (
	"errors"
	"fmt"
	"sync"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// The errors of this package; all it returns wrap one of them, or a *PeerError.
var (
	ErrNotInit  = errs.ErrNotInit
	ErrResource = errs.ErrResource
	ErrBadArg   = errs.ErrBadArg
	ErrPeer     = errs.ErrPeer
)

// PeerError says which rank failed, or left, while a call waited for an owner.
type PeerError = errs.PeerError

// Handler indices: some of those of package extended.
const (
	handlerAlloc  = am.FirstExtended + 16 + iota // request: slot, use, size
	handlerFree                                  // request: slot, use, address
	handlerAnswer                                // reply: slot, use, status, value; medium if it says why not
)

const (
	requestArgs = 4
	answerArgs  = 5
)

// status is how an owner answers.
type status uint32

const (
	statusDone status = iota
	statusNoMemory
	statusDoubleFree
	statusNotAllocated
	statusBadArg
	numStatuses
)

// kinds are the errors that statuses stand for.
var kinds = [numStatuses]error{
	statusNoMemory:     ErrResource,
	statusDoubleFree:   segment.ErrDoubleFree,
	statusNotAllocated: segment.ErrNotAllocated,
	statusBadArg:       ErrBadArg,
}

// statusOf is the status of an error of segment.Heap.
func statusOf(err error) status {
	for s, kind := range kinds {
		if kind != nil && errors.Is(err, kind) {
			return status(s)
		}
	}
	return statusBadArg
}

// refusal is the reason of another rank, as it has put it.
type refusal struct {
	text string
	kind error
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.kind }

// Heap is one rank's access to the heaps of all ranks. Make it with New, hand Handlers to
// am.Attach (Config.Runtime), then call Bind.
type Heap struct {
	own  *segment.Heap
	e    *am.Endpoint // nil before Bind
	rank int

	mu    sync.Mutex
	calls []*pending // by slot
	spare []uint32   // slots that no call is in
}

// pending is a call that waits for an owner, and the next one in its slot. Only an
// answer that names its use is for it.
type pending struct {
	h         *Heap
	slot, use uint32
	rank      int
	free      bool   // of the block at value; else an allocation of so many bytes
	value     uint64 // when it is answered, the address of an allocation
	answered  bool
	refused   error
}

// Blocked names the call; it makes p a conduits.Blocked.
func (p *pending) Blocked() string {
	p.h.mu.Lock() // it may be another call by now
	defer p.h.mu.Unlock()
	if p.free {
		return fmt.Sprintf("heap: Free of %v on rank %d, for its answer", segment.NLA(p.value), p.rank)
	}
	return fmt.Sprintf("heap: Alloc on rank %d, for its answer", p.rank)
}

// New makes the access to all heaps of a rank whose own heap is own. nil is a heap
// without memory, for ranks that have no segment.
func New(own *segment.Heap) *Heap {
	if own == nil {
		own, _ = segment.NewHeap(segment.AttachBase, 0) // no bytes are in range
	}
	return &Heap{own: own}
}

// Own is this rank's heap.
func (h *Heap) Own() *segment.Heap { return h.own }

// Handlers are the entries for am.Config.Runtime, 48 to 50 of package extended's.
func (h *Heap) Handlers() []am.Entry {
	return []am.Entry{
		{Index: handlerAlloc, Name: "extended.heap.alloc", Fn: h.onAlloc, Args: requestArgs, Kinds: am.Short | am.Request},
		{Index: handlerFree, Name: "extended.heap.free", Fn: h.onFree, Args: requestArgs, Kinds: am.Short | am.Request},
		{Index: handlerAnswer, Name: "extended.heap.answer", Fn: h.onAnswer, Args: answerArgs, Kinds: am.Short | am.Medium | am.Reply},
	}
}

// Bind joins h to an attached endpoint whose handler table contains h's Handlers. Every
// rank of the job does it once, before any call; other ranks may be calling already.
func (h *Heap) Bind(e *am.Endpoint) { h.e, h.rank = e, e.Rank() }

// Alloc returns the address of a new block of at least size bytes, which is at least 1, in
// rank's memory.
func (h *Heap) Alloc(rank int, size uint64) (segment.NLA, error) {
	a, err := h.alloc(rank, size)
	if err != nil {
		return 0, fmt.Errorf("heap: Alloc of %d bytes on rank %d: %w", size, rank, err)
	}
	return a, nil
}

func (h *Heap) alloc(rank int, size uint64) (segment.NLA, error) {
	if err := h.check(rank); err != nil {
		return 0, err
	}
	if rank == h.rank {
		return h.own.Alloc(size, 0)
	}
	a, err := h.ask(rank, handlerAlloc, size)
	return segment.NLA(a), err
}

// Free gives back the block of rank's memory at address at, which any rank has
// allocated. One rank does it, once.
func (h *Heap) Free(rank int, at segment.NLA) error {
	if err := h.free(rank, at); err != nil {
		return fmt.Errorf("heap: Free of %v on rank %d: %w", at, rank, err)
	}
	return nil
}

func (h *Heap) free(rank int, at segment.NLA) error {
	if err := h.check(rank); err != nil {
		return err
	}
	if rank == h.rank {
		return reason(h.own.Free(at))
	}
	_, err := h.ask(rank, handlerFree, uint64(at))
	return err
}

func (h *Heap) check(rank int) error {
	if h.e == nil {
		return errs.NotInit("the heap is not bound; call Bind after am.Attach")
	}
	if uint(rank) >= uint(h.e.Size()) {
		return errs.BadArg("rank out of range: the job has ranks 0..%d", h.e.Size()-1)
	}
	return nil
}

// reason is what is wrong with an address, without the address, which is named before.
func reason(err error) error {
	if err == nil {
		return nil // before there is an e
	}
	var e *segment.HeapError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// ask has another rank run handler to with value, and returns what it answers.
func (h *Heap) ask(rank int, to am.HandlerID, value uint64) (uint64, error) {
	p := h.openCall(rank, to == handlerFree, value)
	lo, hi := am.Pack64(value)
	err := h.e.RequestShort(rank, to, p.slot, p.use, lo, hi)
	if err == nil {
		err = h.e.WaitFrom(rank, p, func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			return p.answered
		})
	}
	value, refused := h.closeCall(p)
	if err == nil {
		err = refused
	}
	return value, err
}

// openCall begins a call in a slot of its own.
func (h *Heap) openCall(rank int, free bool, value uint64) *pending {
	h.mu.Lock()
	defer h.mu.Unlock()
	if k := len(h.spare); k > 0 {
		p := h.calls[h.spare[k-1]]
		h.spare = h.spare[:k-1]
		*p = pending{h: h, slot: p.slot, use: p.use, rank: rank, free: free, value: value}
		return p
	}
	p := &pending{h: h, slot: uint32(len(h.calls)), rank: rank, free: free, value: value}
	h.calls = append(h.calls, p)
	return p
}

// closeCall ends a call, answered or not, and returns the answer.
func (h *Heap) closeCall(p *pending) (uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.use++
	h.spare = append(h.spare, p.slot)
	return p.value, p.refused
}

func (h *Heap) onAlloc(t *am.Token, args []uint32, _ []byte) {
	a, err := h.own.Alloc(am.Unpack64(args[2], args[3]), 0)
	answer(t, args, uint64(a), err)
}

func (h *Heap) onFree(t *am.Token, args []uint32, _ []byte) {
	answer(t, args, 0, reason(h.own.Free(segment.NLA(am.Unpack64(args[2], args[3])))))
}

// answer tells the requester what has come of its request. If the reply fails, so has
// the job, which it hears of.
func answer(t *am.Token, args []uint32, value uint64, err error) {
	lo, hi := am.Pack64(value)
	if err == nil {
		_ = t.ReplyShort(handlerAnswer, args[0], args[1], uint32(statusDone), lo, hi)
		return
	}
	text := []byte(err.Error())
	text = text[:min(len(text), t.Endpoint().MaxMedium())]
	_ = t.ReplyMedium(handlerAnswer, text, args[0], args[1], uint32(statusOf(err)), lo, hi)
}

func (h *Heap) onAnswer(t *am.Token, args []uint32, text []byte) {
	h.note(t.Src(), args, text)
	ep := t.Endpoint().Conduit()
	ep.Wake(ep.Rank())
}

// note gives rank src's answer to the call that it is for, unless that is over, is
// answered or is another rank's.
func (h *Heap) note(src int, args []uint32, text []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := args[0]
	if i >= uint32(len(h.calls)) || h.calls[i].use != args[1] || h.calls[i].rank != src || h.calls[i].answered {
		return
	}
	p := h.calls[i]
	p.answered, p.value = true, am.Unpack64(args[3], args[4])
	if s := status(args[2]); s != statusDone {
		// The other rank's program may have written what it likes.
		p.refused = &refusal{errs.Line(string(text), 0), kinds[min(s, statusBadArg)]}
	}
}
