package extended

import (
	"errors"
	"fmt"
	"testing"
)

// The operations whose cost users ask about, on memory that is reached
// directly. Reference: copy of the same length.
func BenchmarkDirect(b *testing.B) {
	x := newFake(2, fakeOptions{direct: true, bytes: 2 << 20}).eps[0].x
	for _, n := range []int{8, 64, 4096, 1 << 20} {
		buf, to := make([]byte, n), make([]byte, n)
		b.Run(fmt.Sprintf("copy/%d", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				copy(to, buf)
			}
		})
		b.Run(fmt.Sprintf("put/%d", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				if err := x.Put(1, at(0), buf); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("get/%d", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				if err := x.Get(1, at(0), buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	buf := make([]byte, 8)
	y := newFake(2, fakeOptions{direct: true, config: Config{AlwaysHandle: true}}).eps[0].x
	for name, f := range map[string]func() error{
		"putValue":   func() error { return x.PutValue(1, at(0), 1, 8) },
		"getValue":   func() error { _, err := x.GetValue(1, at(0), 8); return err },
		"fetchAdd":   func() error { _, err := FetchAdd[uint64](x, 1, at(0), 1); return err },
		"lock":       func() error { return errors.Join(x.LockAt(1, at(16)).Lock(), x.LockAt(1, at(16)).Unlock()) },
		"addFloat64": func() error { return Add[float64](x, 1, at(0), 1) },
		"putnb+sync": func() error {
			h, err := x.PutNB(1, at(0), buf)
			if err != nil {
				return err
			}
			return x.Wait(h)
		},
		"putnb+sync/table": func() error {
			h, err := y.PutNB(1, at(0), buf)
			if err != nil {
				return err
			}
			return y.Wait(h)
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
