package shm

import (
	"sync/atomic"

	"github.com/argon-go/argon/internal/release"
)

// bell is how this rank wakes others, and its own goroutines. It is a part of the
// mailbox, for every message reads it; fence is written by newEndpoint and Attach alone,
// all else is atomic.
type bell struct {
	parked *uint32       // this rank's announcement that some of its goroutines sleep
	fence  bool          // see notify
	spare  atomic.Uint32 // where this rank fences
	seat
	wakes atomic.Uint64
}

// notify wakes the receiver of r if it sleeps. The load must not overtake the
// status store. With plain stores the processor may let it; then the receiver,
// having announced itself, makes all running threads pass a barrier and looks
// again (Arm), or, where that does not work or not pay, senders fence.
func (b *bell) notify(r *outRing) {
	if b.fence {
		b.spare.Add(1)
	}
	if atomic.LoadUint32(r.parked) != 0 {
		b.wake(r.dst)
	}
}

// Wake makes rank's sleepers look again. The change that was made by direct
// access was a plain store, whatever stores of ours are: where no sleeper makes
// a barrier, fence.
func (b *bell) Wake(rank int) {
	if b.fence || !release.Plain {
		b.spare.Add(1)
	}
	if p := b.j.c32(rank, ctlParked); atomic.LoadUint32(p) != 0 {
		b.wake(rank)
	}
}

// wake is one system call for any number of messages: the sender that clears the word
// rouses; the sleeper sets it again before it sleeps again.
func (b *bell) wake(rank int) {
	if atomic.SwapUint32(b.j.c32(rank, ctlParked), 0) != 0 {
		b.wakes.Add(1)
		b.j.rouse(rank)
	}
}

// ran wakes siblings that may wait for what a handler did. As in notify, the
// load must not overtake the handler's stores.
func (b *bell) ran() {
	if b.fence {
		b.spare.Add(1)
	}
	if atomic.LoadUint32(b.parked) != 0 {
		b.wake(b.rank)
	}
}

// credit wakes a sender that sleeps until room was published.
func (b *bell) credit(r *inRing) {
	if b.fence {
		b.spare.Add(1)
	}
	if atomic.LoadUint32(r.parked) != 0 {
		b.wake(r.src)
	}
}
