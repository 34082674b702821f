package rt

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestForInt restates 6.6.2: iteration i is that of thread (a*i+b) mod THREADS.
func TestForInt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threads := rapid.IntRange(1, 9).Draw(t, "THREADS")
		lo, hi := rapid.IntRange(-60, 60).Draw(t, "lo"), rapid.IntRange(-60, 60).Draw(t, "hi")
		step := rapid.SampledFrom([]int{1, 2, 3, 7, -1, -4}).Draw(t, "step")
		a, b := rapid.IntRange(-4, 4).Draw(t, "a"), rapid.IntRange(-9, 9).Draw(t, "b")
		goes := func(i int) bool { return step > 0 && i < hi || step < 0 && i > hi }
		for me := range threads {
			var want, got []int
			for i := lo; goes(i); i += step {
				if ((a*i+b)%threads+threads)%threads == me {
					want = append(want, i)
				}
			}
			th := &Thread{me: me, threads: threads}
			first, stride := th.ForInt(lo, hi, step, a, b)
			for i := first; goes(i); i += stride {
				got = append(got, i)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("for i from %d to %d by %d, affinity %d*i+%d: thread %d of %d does %v, not %v", lo, hi, step, a, b, me, threads, got, want)
			}
		}
	})
}

// TestForShared restates 6.6.2: iteration i is that of the thread that element i+b is on; and
// a run's elements lie one after the other.
func TestForShared(t *testing.T) {
	const size = 8
	rapid.Check(t, func(t *rapid.T) {
		threads, block := rapid.IntRange(1, 5).Draw(t, "THREADS"), rapid.IntRange(0, 5).Draw(t, "block")
		all := walked(threads, block, size, 140, testBase)
		start := rapid.IntRange(0, 40).Draw(t, "p") // p is &array[start]
		b := rapid.IntRange(-start, 10).Draw(t, "b")
		lo, hi := rapid.IntRange(-b-start, 50).Draw(t, "lo"), rapid.IntRange(-20, 50).Draw(t, "hi")
		step := rapid.IntRange(1, 5).Draw(t, "step")
		for me := range threads {
			var want, got []int
			for i := lo; i < hi; i += step {
				if all[start+i+b].Thread == me {
					want = append(want, i)
				}
			}
			th := &Thread{me: me, threads: threads}
			for from, to := range th.ForShared(lo, hi, step, all[start], b, block) {
				for i := from; i < to; i += step {
					got = append(got, i)
					if d := int(all[start+i+b].Addr - all[start+from+b].Addr); d != (i-from)*size {
						t.Fatalf("element %d of the run from %d lies %d bytes on", i, from, d)
					}
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("[%d]: for i from %d to %d by %d, &p[i+%d], p element %d: thread %d of %d does %v, not %v", block, lo, hi, step, b, start, me, threads, got, want)
			}
			for range th.ForShared(lo, hi, step, all[start], b, block) {
				break // which is allowed
			}
		}
	})
}

// farAffinity is the thread of element i+b of an array in blocks, from its place by big numbers.
func farAffinity(i, b, block, threads int) int {
	x := new(big.Int).Add(big.NewInt(int64(i)), big.NewInt(int64(b)))
	x.Div(x, big.NewInt(int64(block)))
	return int(x.Mod(x, big.NewInt(int64(threads))).Int64())
}

// TestForFar: loops of a few iterations whose bounds are near the limits of numbers.
func TestForFar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threads, block := rapid.IntRange(1, 5).Draw(t, "THREADS"), rapid.IntRange(1, 3).Draw(t, "block")
		step := rapid.SampledFrom([]int{1, 2, 5}).Draw(t, "step")
		lo, b := farInt().Draw(t, "lo"), farInt().Draw(t, "b")
		hi := lo
		for range rapid.IntRange(0, 20).Draw(t, "iterations") {
			hi = max(hi, hi+step-rapid.IntRange(0, step-1).Draw(t, "less"))
		}
		for me := range threads {
			th := &Thread{me: me, threads: threads}
			var want, got []int
			for i := lo; i < hi; i += step {
				if farAffinity(i, b, block, threads) == me {
					want = append(want, i)
				}
				if i > math.MaxInt-step {
					break
				}
			}
			for from, to := range th.ForShared(lo, hi, step, Wide{Addr: testBase}, b, block) {
				for i := from; i < to; i += step {
					if got = append(got, i); i > math.MaxInt-step {
						break
					}
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("[%d]: for i from %d to %d by %d, &p[i+%d]: thread %d of %d does %v, not %v", block, lo, hi, step, b, me, threads, got, want)
			}
			if hi > math.MaxInt-step*threads {
				continue // refused, or without an iteration
			}
			want, got = nil, nil
			for i := lo; i < hi; i += step {
				if farAffinity(i, b, 1, threads) == me {
					want = append(want, i)
				}
			}
			first, stride := th.ForInt(lo, hi, step, 1, b)
			for i := first; i < hi; i += stride {
				got = append(got, i)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("for i from %d to %d by %d, affinity i+%d: thread %d of %d does %v, not %v", lo, hi, step, b, me, threads, got, want)
			}
		}
	})
}

// farInt draws numbers near the limits of 31 to 63 bits, of either sign, and small ones.
func farInt() *rapid.Generator[int] {
	return rapid.Custom(func(t *rapid.T) int {
		n := rapid.IntRange(-9, 9).Draw(t, "near")
		if bits := rapid.SampledFrom([]int{0, 20, 31, 32, 34, 40, 62, 63}).Draw(t, "bits"); bits > 0 {
			n += 1 << bits
		}
		if rapid.Bool().Draw(t, "negative") {
			n = -n
		}
		return n
	})
}

// TestOwnRun: the runs one at a time are those of ForShared.
func TestOwnRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threads, block := rapid.IntRange(1, 5).Draw(t, "THREADS"), rapid.IntRange(0, 5).Draw(t, "block")
		p := walked(threads, block, 8, 60, testBase)[rapid.IntRange(0, 59).Draw(t, "p")]
		b := rapid.IntRange(-9, 9).Draw(t, "b")
		lo, hi := rapid.IntRange(-60, 60).Draw(t, "lo"), rapid.IntRange(-60, 60).Draw(t, "hi")
		q, _ := p.Phased()
		for me := range threads {
			th := &Thread{me: me, threads: threads}
			var got, want [][2]int
			for from, to := range th.ForShared(lo, hi, 1, p, b, block) {
				want = append(want, [2]int{from, to})
			}
			shift := Shift(q, block)
			if block != 0 {
				shift += b
			}
			for from, to := th.OwnRun(lo, hi, shift, block); from < to; from, to = th.OwnRun(to, hi, shift, block) {
				got = append(got, [2]int{from, to})
			}
			if !slices.Equal(got, want) {
				t.Fatalf("[%d]: from %d to %d, &p[i+%d] with p %v: thread %d of %d has %v, not %v", block, lo, hi, b, p, me, threads, got, want)
			}
		}
	})
}
