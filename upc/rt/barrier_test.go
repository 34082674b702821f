package rt

import (
	"testing"

	"github.com/argon-go/argon/gas"
)

// TestBarrier: what threads wrote before a barrier all see after it, and not what came later.
func TestBarrier(t *testing.T) {
	onEach(t, 3, func(t *Thread) {
		const many = 50
		words := t.Base(objE)
		for round := range uint64(12) {
			to := MakePhaseless((t.me+1)%t.threads, words.Addr())
			for i := range many {
				PutAsync(t, to.AddLocal(i, 8), round+1)
			}
			switch round % 4 {
			case 0:
				t.BarrierAny()
			case 1:
				t.Barrier(int32(-round))
			case 2:
				t.Notify(7)
				t.Wait(7)
			case 3:
				if t.me == 1 { // one that has no expression matches any
					t.NotifyAny()
				} else {
					t.Notify(5)
				}
				t.WaitAny()
			}
			for r := range t.threads {
				if v := Get[uint64](t, MakePhaseless(r, words.Addr()).AddLocal(many-1, 8)); v != round+1 {
					t.failf("after barrier %d a word of thread %d is %d", round, r, v)
				}
			}
			t.BarrierAny()
		}
	})
}

func TestBarrierMisuse(t *testing.T) {
	refused(t, 3, gas.ErrBarrierMismatch, "", func(t *Thread) { t.Barrier(int32(t.me / 2)) })
	refused(t, 2, gas.ErrBarrierMismatch, "", func(t *Thread) { t.Notify(3); t.Wait(4) })
	refused(t, 3, gas.ErrBarrierMismatch, "different expressions, ", func(t *Thread) { t.Barrier(-int32(t.me)) })
	for _, id := range []int32{exitID, gasEnd} { // the end's are as good as others
		// Which thread is the first to say so is open, and only the one that gave id knows that it is no end.
		refused(t, 2, gas.ErrBarrierMismatch, "", func(t *Thread) { t.Barrier(id - 7*int32(t.me)) })
		refused(t, 2, gas.ErrBarrierMismatch, "", func(t *Thread) {
			if t.me == 1 {
				t.Barrier(id)
			}
		})
		onEach(t, 2, func(t *Thread) { t.Barrier(id) })
	}
	refused(t, 2, gas.ErrNotReady, "upc_wait without upc_notify", func(t *Thread) { t.WaitAny() })
	refused(t, 2, gas.ErrNotReady, "after an upc_notify without its upc_wait", func(t *Thread) { t.NotifyAny(); t.BarrierAny() })
	refused(t, 2, gas.ErrNotReady, "upc_all_alloc between upc_notify and upc_wait", func(t *Thread) { t.NotifyAny(); t.AllAlloc(1, 8) })
	refused(t, 2, gas.ErrNotReady, "returned from main between upc_notify and upc_wait", func(t *Thread) { t.NotifyAny() })
	refused(t, 2, gas.ErrBarrierMismatch, "", func(t *Thread) { // one thread has returned
		if t.me == 1 {
			t.Barrier(5)
		}
	})
}
