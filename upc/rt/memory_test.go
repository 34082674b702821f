package rt

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/argon-go/argon/gas"
)

// echo writes and reads v in all ways at p.
func echo[T Scalar](t *Thread, p Phaseless, v, w T) {
	Put(t, p, v)
	if got := Get[T](t, p); got != v {
		t.failf("%T: put %v, got %v", v, v, got)
	}
	PutStrict(t, p, w)
	if got := GetStrict[T](t, p); got != w {
		t.failf("%T: strict put %v, got %v", v, w, got)
	}
	PutAsync(t, p, v)
	t.SyncThread(p.Thread())
	var later T
	GetAsync(t, p, &later)
	t.Fence()
	if later != v {
		t.failf("%T: later put %v, got %v", v, v, later)
	}
}

// TestScalars: every scalar type, on every thread.
func TestScalars(t *testing.T) {
	onEach(t, 3, func(t *Thread) {
		p := t.AllAlloc(uint64(t.threads), 64*uint64(t.threads))
		for r := range t.threads {
			at := MakePhaseless(r, p.Addr()).AddLocal(64*t.me, 1)
			echo(t, at, int8(-5), 7)
			echo(t, at.AddLocal(1, 1), uint8(200), 1)
			echo(t, at.AddLocal(2, 1), int16(-30000), 5)
			echo(t, at.AddLocal(4, 1), uint16(60000), 3)
			echo(t, at.AddLocal(8, 1), int32(math.MinInt32), 1)
			echo(t, at.AddLocal(12, 1), uint32(math.MaxUint32), 2)
			echo(t, at.AddLocal(16, 1), int64(math.MinInt64), -1)
			echo(t, at.AddLocal(24, 1), uint64(math.MaxUint64), 2)
			echo(t, at.AddLocal(32, 1), float32(-1.5), 2.25)
			echo(t, at.AddLocal(40, 1), math.Inf(1), math.Pi)
			echo(t, at.AddLocal(48, 1), at.Phased(), 0)
			// Neither has changed what is beside.
			if a, b := Get[int8](t, at), Get[uint16](t, at.AddLocal(4, 1)); a != -5 || b != 60000 {
				t.failf("values before have changed to %d and %d", a, b)
			}
		}
	})
}

// TestLibrary drives copies of all kinds on stripes of all threads' memory beside a model.
func TestLibrary(t *testing.T) {
	onEach(t, 3, func(t *Thread) {
		const stripe, steps = 256, 120
		p := t.AllAlloc(uint64(t.threads), stripe*uint64(t.threads))
		at := func(r, off int) Phaseless { return MakePhaseless(r, p.Addr()).AddLocal(stripe*t.me+off, 1) }
		model := make([][]byte, t.threads)
		for r := range model {
			model[r] = make([]byte, stripe)
			t.MemSet(at(r, 0), 0, stripe)
		}
		rnd := rand.New(rand.NewPCG(uint64(t.me), 7))
		src, dst := make([]byte, stripe), make([]byte, stripe)
		for step := range steps {
			r, n := rnd.IntN(t.threads), rnd.IntN(stripe/2)
			off := rnd.IntN(stripe/2 - n)
			from := stripe/2 + rnd.IntN(stripe/2-n)
			r2 := rnd.IntN(t.threads)
			for i := range src {
				src[i] = byte(rnd.Uint32())
			}
			put, get := model[r][off:off+n], model[r2][from:from+n]
			var h Handle
			switch kind := step % 12; kind {
			case 0:
				t.MemPut(at(r, off), src[:n])
				copy(put, src)
			case 1:
				h = t.MemPutNB(at(r, off), src[:n])
				copy(put, src)
			case 2:
				t.MemPutNBI(at(r, off), src[:n])
				copy(put, src)
			case 3:
				t.MemSet(at(r, off), byte(step), n)
			case 4:
				h = t.MemSetNB(at(r, off), byte(step), n)
			case 5:
				t.MemSetNBI(at(r, off), byte(step), n)
			case 6:
				t.MemCpy(at(r, off), at(r2, from), n)
				copy(put, get)
			case 7:
				h = t.MemCpyNB(at(r, off), at(r2, from), n)
				copy(put, get)
			case 8:
				t.MemCpyNBI(at(r, off), at(r2, from), n)
				copy(put, get)
			case 9:
				t.MemGet(dst[:n], at(r2, from))
			case 10:
				h = t.MemGetNB(dst[:n], at(r2, from))
			case 11:
				t.MemGetNBI(dst[:n], at(r2, from))
			}
			if k := step % 12; k >= 3 && k <= 5 {
				for i := range put {
					put[i] = byte(step)
				}
			}
			if step%2 == 0 {
				t.Sync(h)
				t.SyncI()
			} else {
				for !t.SyncAttempt(h) {
					t.n.Poll()
				}
				for !t.SyncIAttempt() {
					t.n.Poll()
				}
			}
			if k := step % 12; k >= 9 && !bytes.Equal(dst[:n], get) {
				t.failf("step %d: got %x, not %x", step, dst[:n], get)
			}
		}
		for r := range model {
			t.MemGet(dst, at(r, 0))
			if !bytes.Equal(dst, model[r]) {
				t.failf("thread %d's stripe is not what was put", r)
			}
		}
	})
}

// TestLocal: the casts to pointers-to-local.
func TestLocal(t *testing.T) {
	onEach(t, 2, func(t *Thread) {
		p := MakePhaseless(t.me, t.Base(objE).Addr())
		s := LocalSlice[uint64](t, p, 4)
		s[3] = uint64(t.me + 9)
		if Get[uint64](t, p.AddLocal(3, 8)) != uint64(t.me+9) || t.Local(0, 8) != nil {
			t.failf("a local pointer is to other memory")
		}
		t.meet()
		if other := Get[uint64](t, MakePhaseless(1-t.me, p.Addr()).AddLocal(3, 8)); other != uint64(1-t.me+9) {
			t.failf("thread %d's element is %d", 1-t.me, other)
		}
	})
}

func TestMemoryRefused(t *testing.T) {
	refused(t, 2, gas.ErrBadArg, "memory_test.go:158: upc: read through a null pointer-to-shared", func(t *Thread) { Get[int32](t, 0) })
	refused(t, 2, gas.ErrBadArg, "write through a null pointer-to-shared", func(t *Thread) { Put(t, 0, 1.5) })
	refused(t, 2, gas.ErrBadArg, "upc_memput through a null pointer-to-shared", func(t *Thread) { t.MemPut(0, []byte{1}) })
	refused(t, 2, gas.ErrBadArg, "to a pointer-to-local by thread", func(t *Thread) { t.Local(MakePhaseless(1-t.me, t.Base(objE).Addr()), 8) })
	refused(t, 2, gas.ErrBadArg, "beyond the end", func(t *Thread) { t.Local(MakePhaseless(t.me, t.Base(objE).Addr()), 1<<30) })
	refused(t, 2, gas.ErrBadArg, "", func(t *Thread) { Get[int32](t, MakePhaseless(7, t.Base(objE).Addr())) })
	refused(t, 2, gas.ErrNotReady, "returned from main between upc_notify and upc_wait", func(t *Thread) { t.notified = true })
}

//go:noinline
func sumPointer(t *Thread, p Phaseless) (sum int64) {
	for range steps {
		sum += Get[int64](t, p)
		p = p.AddLocal(1, 8)
	}
	return sum
}

//go:noinline
func sumPhased(t *Thread, q Phased) (sum int64) {
	for range steps {
		sum += Get[int64](t, q.Phaseless())
		q = q.Next(steps, 8, 1)
	}
	return sum
}

//go:noinline
func sumSlice(s []int64) (sum int64) {
	for i := range steps {
		sum += s[i]
	}
	return sum
}

// BenchmarkDereference compares reads of local elements by pointers-to-shared, increment
// included, with those of a slice.
func BenchmarkDereference(b *testing.B) {
	err := Run(Config{Threads: 1, Conduit: "shm"}, func(t *Thread) {
		p := t.Alloc(8 * (steps + 1))
		s := LocalSlice[int64](t, p, steps)
		for _, c := range []struct {
			name string
			sum  func() int64
		}{
			{"phaseless", func() int64 { return sumPointer(t, p) }},
			{"phased", func() int64 { return sumPhased(t, p.Phased()) }},
			{"slice", func() int64 { return sumSlice(s) }},
		} {
			b.Run(c.name, func(b *testing.B) {
				for b.Loop() {
					sink += uint64(c.sum())
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/steps, "ns/step")
			})
		}
	})
	if err != nil {
		b.Fatal(err)
	}
}
