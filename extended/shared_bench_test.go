package extended

import (
	"testing"
)

// BenchmarkShared measures the state that goroutines of a rank share when they begin operations
// and wait for them: for -cpu 1,2,4.
//
//	slot      the slot of a blocking operation
//	handle    a handle
//	wait      the slot, and what a goroutine waits by
//	implicit  counting an operation of the implicit set, another being under way
//	region    counting an operation of a Region of the goroutine's own
func BenchmarkShared(b *testing.B) {
	slot := func(withHandle, wait bool) func(x *Initiator) func() {
		return func(x *Initiator) func() {
			return func() {
				o, name, err := x.table.claim(withHandle)
				if err != nil {
					panic(err)
				}
				if wait {
					x.table.putWaiter(x.table.getWaiter())
				}
				o.left.Add(-oneRemote)
				x.table.release(o, name)
			}
		}
	}
	count := func(r *Region) {
		f, err := r.begin(0, Puts, false)
		if err == nil {
			err = f.leave(nil)
		}
		if err != nil {
			panic(err)
		}
	}
	for _, c := range []struct {
		name string
		op   func(x *Initiator) func() // of a goroutine
	}{
		{"slot", slot(false, false)},
		{"handle", slot(true, false)},
		{"wait", slot(false, true)},
		{"implicit", func(x *Initiator) func() {
			return func() { count(&x.implicit) }
		}},
		{"region", func(x *Initiator) func() {
			r := x.NewRegion()
			return func() { count(r) }
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			x := newFake(1, fakeOptions{}).eps[0].x
			if _, err := x.implicit.begin(0, Puts, false); err != nil {
				b.Fatal(err)
			}
			b.RunParallel(func(p *testing.PB) {
				op := c.op(x)
				for p.Next() {
					op()
				}
			})
		})
	}
}
