//go:build !race

package gas

import (
	"fmt"
	"testing"
)

// No hot path allocates. The other rank takes part where it must.
func TestNothingAllocates(t *testing.T) {
	const runs = 200
	runN(t, 2, func(n *Node) error {
		p, err := NewSlice[uint64](n, 64)
		if err != nil {
			return err
		}
		type record struct {
			a uint64
			b [5]uint32
		}
		rec, err := New[record](n)
		if err != nil {
			return err
		}
		arr, err := NewArray[uint32](n, 100, 8)
		if err != nil {
			return err
		}
		l, err := NewLock(n)
		if err != nil {
			return err
		}
		f, err := New[float64](n)
		if err != nil {
			return err
		}
		q, r, buf := p.On(1), rec.On(1), make([]uint64, 32)
		rng := make([]uint32, 50)
		var failed error
		check := func(err error) {
			if err != nil {
				failed = err
			}
		}
		alone := map[string]func(){
			"Put":          func() { check(q.Put(n, 1)) },
			"Get":          func() { _, err := q.Get(n); check(err) },
			"Put struct":   func() { check(r.Put(n, record{a: 1, b: [5]uint32{2}})) },
			"Get struct":   func() { _, err := r.Get(n); check(err) },
			"PutNB":        func() { h, err := q.PutNB(n, 1); check(err); check(n.Sync(h)) },
			"GetNB":        func() { h, err := q.GetNB(n, &buf[0]); check(err); check(n.Sync(h)) },
			"PutSliceNB":   func() { h, err := q.PutSliceNB(n, buf); check(err); check(n.Sync(h)) },
			"GetSliceNB":   func() { h, err := q.GetSliceNB(n, buf); check(err); check(n.Sync(h)) },
			"PutSlice":     func() { check(q.PutSlice(n, buf)) },
			"GetSlice":     func() { check(q.GetSlice(n, buf)) },
			"Put local":    func() { var v [2]uint64; check(q.PutSlice(n, v[:])) },
			"Get local":    func() { var v [2]uint64; check(q.GetSlice(n, v[:])) },
			"Load":         func() { _, err := Load(n, q); check(err) },
			"Store":        func() { check(Store(n, q, 1)) },
			"Swap":         func() { _, err := Swap(n, q, 1); check(err) },
			"CAS":          func() { _, _, err := CompareAndSwap(n, q, 1, 1); check(err) },
			"FetchAdd":     func() { _, err := FetchAdd(n, q, 1); check(err) },
			"FetchAnd":     func() { _, err := FetchAnd(n, q, 1); check(err) },
			"FetchXor":     func() { _, err := FetchXor(n, q, 1); check(err) },
			"FetchMax":     func() { _, err := FetchMax(n, q, 1); check(err) },
			"FCAA":         func() { _, _, err := FetchCompareAdd(n, q, 100, 1); check(err) },
			"FetchAdd f64": func() { _, err := FetchAdd(n, f, 0.5); check(err) },
			"Local":        func() { _, _ = r.Local(n) },
			"Field":        func() { check(Field(r, func(r *record) *uint64 { return &r.a }).Put(n, 1)) },
			"Wait":         func() { looks := 0; check(n.Wait(func() bool { looks++; return looks > 3 })) },
			"Array":        func() { check(arr.Put(n, 77, 1)); _, err := arr.Get(n, 77); check(err) },
			"Range":        func() { check(arr.PutRange(n, 3, rng)); check(arr.GetRange(n, 4, rng)) },
			"Local range": func() {
				s := uint32(0)
				for i, v := range arr.Local(n) {
					s += *v + uint32(i)
				}
				sink += uint64(s)
			},
			"Lock":   func() { check(l.Lock(n)); check(l.Unlock(n)) },
			"RLock":  func() { check(l.RLock(n)); check(l.RUnlock(n)) },
			"Call":   func() { _, err := callRank.Call(n, 1, struct{}{}); check(err) },
			"Call L": func() { _, err := callFill.Call(n, 1, 5); check(err) },
			"Send":   func() { check(callTiny.Send(n, 1, tiny{})) },
			"PtrFromWords": func() {
				sink += PtrFromWords[record](rec.Words()).Offset()
			},
		}
		if n.Rank() == 0 {
			for name, op := range alone {
				if a := testing.AllocsPerRun(runs, op); a != 0 {
					check(fmt.Errorf("%s allocates %v times (%v)", name, a, failed))
				}
			}
		}
		if failed != nil {
			return failed
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		// AllocsPerRun counts what both ranks allocate, and runs once more than
		// it is told.
		if n.Rank() == 0 {
			if a := testing.AllocsPerRun(runs, func() { check(n.Barrier()) }); a != 0 {
				return fmt.Errorf("Barrier allocates %v times", a)
			}
		} else {
			for range runs + 1 {
				check(n.Barrier())
			}
		}
		return failed
	})
}
