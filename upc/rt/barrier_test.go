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
	refused(t, 3, gas.ErrBarrierMismatch, "different expressions: 0 by thread 0 at barrier_test.go:", func(t *Thread) { t.Barrier(-int32(t.me)) })
	for _, id := range []int32{exitID, 1<<31 - 1} { // the end's, and that of package gas, are as good as others
		refused(t, 2, gas.ErrBarrierMismatch, "different expressions: ", func(t *Thread) { t.Barrier(id - 7*int32(t.me)) })
		onEach(t, 2, func(t *Thread) { t.Barrier(id) })
	}
	refused(t, 2, gas.ErrNotReady, "upc_wait without upc_notify", func(t *Thread) { t.WaitAny() })
	refused(t, 2, gas.ErrNotReady, "after an upc_notify without its upc_wait", func(t *Thread) { t.NotifyAny(); t.BarrierAny() })
	refused(t, 2, gas.ErrNotReady, "upc_all_alloc between upc_notify and upc_wait", func(t *Thread) { t.NotifyAny(); t.AllAlloc(1, 8) })
	refused(t, 2, gas.ErrNotReady, "returned from main between upc_notify and upc_wait", func(t *Thread) { t.NotifyAny() })
	for _, id := range []int32{5, 1<<31 - 1} { // package gas has that for a rank that has returned
		refused(t, 2, gas.ErrBarrierMismatch, "thread 0 has returned from main while others are in a barrier: ", func(t *Thread) {
			if t.me == 1 {
				t.Barrier(id)
			}
		})
	}
	if err := run("shm", 2, func(t *Thread) { // a thread that has given the end's expression ends alone
		if t.me == 1 {
			t.Barrier(exitID)
		}
	}); err == nil {
		t.Error("a thread gave a barrier the expression of the end, and the job has no error")
	}
	refused(t, 3, gas.ErrBarrierMismatch, "different expressions: 1 by thread 0 at barrier_test.go:", func(t *Thread) { // a thread in a call waits, too
		if t.me == 2 {
			t.AllFree(0)
		}
		t.Barrier(int32(t.me + 1))
	})
}
