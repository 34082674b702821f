package main

import (
	"fmt"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// heap is upc_alloc and upc_free: a thread allocates of its own memory, and any thread gives it
// back, by an active message to the owner, which alone keeps books, in memory that no thread
// can write to. It shows what a runtime adds to the layers: handlers, among those of the
// runtime, and a wait for their answer.
type heap struct {
	own *segment.Heap
	e   *am.Messenger
	// answer is the answer to this thread's request, 0 before it has come. There is one request at a time.
	answer atomic.Uint32
}

const (
	handlerFree   = am.FirstFree + iota // request: address
	handlerAnswer                       // reply: answer
)

const (
	none = iota
	freed
	notAllocated
)

// handlers are the entries for am.Config.Runtime.
func (h *heap) handlers() []am.Entry {
	return []am.Entry{
		{Index: handlerFree, Name: "upc.free", Fn: h.onFree, Args: 2, Kinds: am.Short | am.Request},
		{Index: handlerAnswer, Name: "upc.answer", Fn: h.onAnswer, Args: 1, Kinds: am.Short | am.Reply},
	}
}

// alloc is upc_alloc.
func (h *heap) alloc(size uint64) (segment.Shared, error) {
	a, err := h.own.Alloc(size, 0)
	return segment.Shared{Thread: h.e.Rank(), Addr: a}, err
}

// free is upc_free.
func (h *heap) free(p segment.Shared) error {
	if p.Thread == h.e.Rank() {
		return h.own.Free(p.Addr)
	}
	h.answer.Store(none)
	lo, hi := am.Pack64(uint64(p.Addr))
	if err := h.e.RequestShort(p.Thread, handlerFree, lo, hi); err != nil {
		return err
	}
	if err := h.e.WaitFor(h, conduits.Cond{
		Ready:   func() bool { return h.answer.Load() != none },
		Lacking: conduits.LackingRank(h.e.Conduit(), p.Thread),
	}); err != nil {
		return err
	}
	if h.answer.Load() != freed {
		return fmt.Errorf("compiled: upc_free of %v on thread %d: %w", p.Addr, p.Thread, segment.ErrNotAllocated)
	}
	return nil
}

// Blocked makes h a conduits.Blocked: what says of a job that hangs what its ranks wait for.
func (h *heap) Blocked() string { return "compiled: upc_free, for its answer" }

// onFree runs on the owner.
func (h *heap) onFree(t *am.Token, args []uint32, _ []byte) {
	answer := uint32(freed)
	if h.own.Free(segment.NLA(am.Unpack64(args[0], args[1]))) != nil {
		answer = notAllocated
	}
	_ = t.ReplyShort(handlerAnswer, answer) // if it fails, so has the job
}

func (h *heap) onAnswer(t *am.Token, args []uint32, _ []byte) {
	h.answer.Store(args[0])
	t.Messenger().Conduit().Wake(t.Messenger().Rank())
}
