package shm

import (
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/segment"
)

// mute is a Receiver of nothing.
type mute struct{}

func (mute) Receive(*conduits.Message)                      {}
func (mute) Complete(uint64, conduits.Event, uint64, error) {}

// TestPutsWake: what a peer's endpoint puts, or changes by an atomic, wakes a
// rank that is parked for it, as an arrival does.
func TestPutsWake(t *testing.T) {
	eps, err := Local(2, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	const at = segment.AttachBase
	changes := []func(ep conduits.Endpoint, v uint64) error{
		func(ep conduits.Endpoint, v uint64) error {
			b := [8]byte{}
			*(*uint64)(unsafe.Pointer(&b)) = v
			_, err := post.Put(ep, 0, at, b[:], 0, 0)
			return err
		},
		func(ep conduits.Endpoint, v uint64) error {
			_, err := post.PutWord(ep, 0, at, v, 8, 0, 0)
			return err
		},
		func(ep conduits.Endpoint, v uint64) error {
			_, _, err := post.Atomic(ep, 0, at, conduits.AtomicStore, conduits.Uint64, v, 0, 0)
			return err
		},
	}
	conduits.Run(eps, func(r int) {
		ep := eps[r]
		if err := ep.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: mute{}}); err != nil {
			t.Error(err)
			return
		}
	})
	// Both have attached, so this goroutine may use either endpoint.
	ep := eps[0]
	// Armed, it must be woken by each, whenever the change comes: Seq is
	// what Park compares.
	for i, change := range changes {
		tk := ep.Arm(nil)
		if err := change(eps[1], uint64(i+1)); err != nil {
			t.Error(err)
		}
		if seq := atomic.LoadUint32(ep.(*Endpoint).j.c32(0, ctlSeq)); seq == tk.Seq {
			t.Errorf("change %d woke no rank", i)
		}
		ep.Disarm(tk)
	}
	// A load changes nothing.
	release := unwatched([]*Endpoint{ep.(*Endpoint), eps[1].(*Endpoint)})
	tk := ep.Arm(nil)
	if v, _, err := post.Atomic(eps[1], 0, at, conduits.AtomicLoad, conduits.Uint64, 0, 0, 0); v != 3 || err != nil {
		t.Errorf("loaded %d, %v", v, err)
	}
	if seq := atomic.LoadUint32(ep.(*Endpoint).j.c32(0, ctlSeq)); seq != tk.Seq {
		t.Error("a load woke somebody")
	}
	ep.Disarm(tk)
	release()
	for _, ep := range eps {
		if err := ep.Close(); err != nil {
			t.Error(err)
		}
	}
}
