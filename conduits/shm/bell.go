package shm

import (
	"sync/atomic"

	"github.com/argon-go/argon/internal/conc"
)

// bell is how this rank wakes others, and its own goroutines. It is a part of the
// mailbox, for every message reads it; fence is written by newEndpoint and Attach alone,
// all else is atomic.
type bell struct {
	parked *uint32       // this lane's announcement that some of the rank's goroutines sleep
	asleep *uint32       // not 0 while goroutines of the rank sleep, of any lane: parked, if there is one
	fence  bool          // see notify
	spare  atomic.Uint32 // where this rank fences
	seat
	lanes *lanes // nil of a rank with one lane
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
		b.wake(int(r.dst))
	}
}

// Wake makes rank's sleepers look again. The change that was made by direct
// access was a plain store, whatever stores of ours are: where no sleeper makes
// a barrier, fence.
func (b *bell) Wake(rank int) {
	if b.fence || !conc.PlainRelease {
		b.spare.Add(1)
	}
	for lane := range b.j.lanes {
		if p := b.j.p32(rank, lane, ctlParked); atomic.LoadUint32(p) != 0 {
			b.wakeLane(rank, lane)
		}
	}
}

// wake is one system call for any number of messages: the sender that clears the word
// rouses; the sleeper sets it again before it sleeps again.
func (b *bell) wake(rank int) { b.wakeLane(rank, b.lane) }

// wakeLane is wake for any lane. Those that sleep for it may be of another one.
func (b *bell) wakeLane(rank, lane int) {
	v := atomic.SwapUint32(b.j.p32(rank, lane, ctlParked), 0)
	if v == 0 {
		return
	}
	if v <= uint32(b.j.lanes) { // else no process of ours has written it
		lane = int(v) - 1
	}
	b.wakes.Add(1)
	b.j.rouse(rank, lane)
}

// ran wakes siblings that may wait for what a handler did. As in notify, the
// load must not overtake the handler's stores.
func (b *bell) ran() {
	if b.fence {
		b.spare.Add(1)
	}
	if atomic.LoadUint32(b.asleep) == 0 {
		return
	}
	if b.lanes == nil {
		b.wake(b.rank)
	} else {
		b.lanes.rouse()
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
