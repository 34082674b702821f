package rt

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/segment"
)

// walked is a shared array as UPC 1.3 lays it out (6.5.2.1p5: blocks go to the threads in
// turn, the elements of a thread lie one after the other), written down element by element.
func walked(threads, block, size, count int, base segment.NLA) []Wide {
	have := make([]int, threads)
	all := make([]Wide, count)
	thread, phase := 0, 0
	for i := range all {
		all[i] = Wide{Thread: thread, Phase: phase, Addr: base + segment.NLA(have[thread]*size)}
		have[thread]++
		if block == 0 {
			continue
		}
		if phase++; phase == block {
			phase = 0
			thread = (thread + 1) % threads
		}
	}
	return all
}

func genShape(t *rapid.T) (threads, size, count int) {
	return rapid.OneOf(rapid.IntRange(1, 7), rapid.Just(MaxThreads)).Draw(t, "THREADS"), rapid.SampledFrom([]int{1, 2, 4, 8, 12, 100}).Draw(t, "size"), 120
}

const testBase = segment.AttachBase + 4096

// TestPhasedWalk: the arithmetic of phased pointers is that of a walk (6.4.2p3 to p8).
func TestPhasedWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threads, size, count := genShape(t)
		block := rapid.IntRange(1, 9).Draw(t, "block")
		if threads == MaxThreads {
			count = block*MaxThreads + 20
		}
		all := walked(threads, block, size, count, testBase)
		i, j := rapid.IntRange(0, count-1).Draw(t, "i"), rapid.IntRange(0, count-1).Draw(t, "j")
		a, ok := all[i].Phased()
		b, ok2 := all[j].Phased()
		if !ok || !ok2 || a.Wide() != all[i] || a.Thread() != all[i].Thread || a.Phase() != all[i].Phase || a.Addr() != all[i].Addr {
			t.Fatalf("%v packed is %v, %v", all[i], a, ok)
		}
		if a.AddrField() != uint64(all[i].Addr-segment.AttachBase) || a.AddrField() != all[i].AddrField() {
			t.Fatalf("%v: addrfield %#x", a, a.AddrField())
		}
		if got := a.Add(j-i, block, size, threads); got != b {
			t.Fatalf("[%d] of %d threads: %v + %d is %v, not %v", block, threads, a, j-i, got, b)
		}
		if got := b.Sub(a, block, size, threads); got != j-i {
			t.Fatalf("[%d] of %d threads: %v - %v is %d, not %d", block, threads, b, a, got, j-i)
		}
		if got := all[i].Add(j-i, block, size, threads); got != all[j] {
			t.Fatalf("[%d] of %d threads: %v + %d is %v, not %v", block, threads, all[i], j-i, got, all[j])
		}
		if got, ok := all[j].Sub(all[i], block, size, threads); !ok || got != j-i {
			t.Fatalf("[%d] of %d threads: %v - %v is %d, %v", block, threads, all[j], all[i], got, ok)
		}
		if i+1 < count {
			next, _ := all[i+1].Phased()
			if got := a.Next(block, size, threads); got != next {
				t.Fatalf("[%d] of %d threads: %v + 1 is %v, not %v", block, threads, a, got, next)
			}
		}
		if a.Equal(b) != (i == j) || !a.Equal(a.ResetPhase()) || a.ResetPhase().Phase() != 0 || all[i].Equal(all[j]) != (i == j) {
			t.Fatalf("%v and %v: == is %v", a, b, a.Equal(b))
		}
	})
}

// TestPhaselessWalk: the same for block size 1 and the indefinite one.
func TestPhaselessWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threads, size, count := genShape(t)
		if threads == MaxThreads {
			count += MaxThreads
		}
		i, j := rapid.IntRange(0, count-1).Draw(t, "i"), rapid.IntRange(0, count-1).Draw(t, "j")
		cyclic := walked(threads, 1, size, count, testBase)
		a, b := cyclic[i].Phaseless(), cyclic[j].Phaseless()
		if a.Wide() != cyclic[i] || a.Thread() != cyclic[i].Thread || a.Addr() != cyclic[i].Addr || a.AddrField() != cyclic[i].AddrField() {
			t.Fatalf("%v packed is %v", cyclic[i], a)
		}
		if got := a.Add(j-i, size, threads); got != b {
			t.Fatalf("%d threads: %v + %d is %v, not %v", threads, a, j-i, got, b)
		}
		if got := b.Sub(a, size, threads); got != j-i {
			t.Fatalf("%d threads: %v - %v is %d, not %d", threads, b, a, got, j-i)
		}
		if i+1 < count && a.Next(size, threads) != cyclic[i+1].Phaseless() {
			t.Fatalf("%d threads: %v + 1 is %v", threads, a, a.Next(size, threads))
		}
		thread := rapid.IntRange(0, threads-1).Draw(t, "thread")
		local := walked(1, 0, size, count, testBase)
		c, d := MakePhaseless(thread, local[i].Addr), MakePhaseless(thread, local[j].Addr)
		if got := c.AddLocal(j-i, size); got != d || d.SubLocal(c, size) != j-i {
			t.Fatalf("%v + %d is %v, not %v; the difference is %d", c, j-i, got, d, d.SubLocal(c, size))
		}
		if c.Phased().Phaseless() != c || c.Phased().Wide() != c.Wide() {
			t.Fatalf("%v as a generic pointer is %v", c, c.Phased())
		}
		if p := ToPtr[int32](c); p.Rank() != thread || p.NLA() != local[i].Addr || FromPtr(p) != c {
			t.Fatalf("%v as gas.Ptr is %v", c, p)
		}
	})
}

// TestFarArithmetic: sums with numbers near the limits are those of big.Int, or no address at all
// (null where pointers are packed), never another thread's or another address.
func TestFarArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threads := rapid.SampledFrom([]int{1, 2, 7, MaxThreads}).Draw(t, "THREADS")
		block := rapid.OneOf(rapid.IntRange(1, 9), rapid.Just(MaxBlock)).Draw(t, "block")
		size := rapid.SampledFrom([]int{1, 8, 12, 1 << 20, 1<<33 + 8, 1 << 40, 1 << 62}).Draw(t, "size")
		off := rapid.OneOf(rapid.IntRange(64, 1<<20), rapid.IntRange(offsetMask-100, offsetMask)).Draw(t, "offset")
		w := Wide{Thread: rapid.IntRange(0, threads-1).Draw(t, "thread"), Phase: rapid.IntRange(0, block-1).Draw(t, "phase"), Addr: segment.AttachBase + segment.NLA(off)}
		n := farInt().Draw(t, "n")
		want, there := farSum(w, n, block, size, threads)
		if got := w.Add(n, block, size, threads); there && got != want || !there && got.Addr != segment.ExposedLimit {
			t.Fatalf("[%d] of %d threads, size %d: %v + %d is %v, not %v (%v)", block, threads, size, w, n, got, want, there)
		}
		q, _ := w.Phased()
		packed, fits := want.Phased()
		if got := q.Add(n, block, size, threads); got != packed && there && fits || got != 0 && !(there && fits) {
			t.Fatalf("[%d] of %d threads, size %d: %v + %d is %v, not %v (%v)", block, threads, size, q, n, got, packed, fits)
		}
		p := w.Phaseless()
		want, there = farSum(p.Wide(), n, 1, size, threads)
		if got := p.Add(n, size, threads); there && got.Wide() != want || !there && got != 0 {
			t.Fatalf("%d threads, size %d: %v + %d is %v, not %v (%v)", threads, size, p, n, got, want, there)
		}
		want, there = farSum(p.Wide(), n, 0, size, threads)
		if got := p.AddLocal(n, size); there && got.Wide() != want || !there && got != 0 {
			t.Fatalf("size %d: %v + %d is %v, not %v (%v)", size, p, n, got, want, there)
		}
		thread := farInt().Draw(t, "any thread")
		if got := MakePhaseless(thread, w.Addr); got.Thread() != thread && got != 0 {
			t.Fatalf("thread %d became %d", thread, got.Thread())
		}
		if got := FromPtr(ToPtr[int32](p).On(thread)); got.Thread() != thread && got != 0 {
			t.Fatalf("rank %d became thread %d", thread, got.Thread())
		}
		total, on := farInt().Draw(t, "total"), farInt().Draw(t, "on")
		if got := AffinitySize(total, block, on, threads); got < 0 || got > max(total, 0) || got != 0 && uint(on) >= uint(threads) {
			t.Fatalf("thread %d of %d has %d of %d in blocks of %d", on, threads, got, total, block)
		}
	})
}

// farSum is w + n by 6.4.2p3 and p4, if there is an address.
func farSum(w Wide, n, block, size, threads int) (sum Wide, ok bool) {
	num := func(n int) *big.Int { return big.NewInt(int64(n)) }
	local, phase := num(n), num(w.Phase)
	if block > 0 {
		to, rounds := new(big.Int), new(big.Int)
		local.DivMod(local.Add(local, phase), num(block), to)
		rounds.DivMod(local.Add(local, num(w.Thread)), num(threads), local)
		w.Thread, w.Phase = int(local.Int64()), int(to.Int64())
		local = rounds.Add(rounds.Mul(rounds, num(block)), to.Sub(to, phase))
	}
	at := local.Add(local.Mul(local, num(size)), num(int(w.Addr)))
	w.Addr = segment.NLA(at.Uint64())
	return w, at.Sign() >= 0 && at.Cmp(num(int(segment.ExposedLimit))) < 0
}

// TestNull: the null pointer is null in every form (6.4.2p7, 6.4.3p5).
func TestNull(t *testing.T) {
	q, ok := Wide{}.Phased()
	if !ok || q != 0 || Phaseless(0).Phased() != 0 || Phased(0).Phaseless() != 0 || Phased(0).Wide() != (Wide{}) || !(Wide{}).IsNull() ||
		!ToPtr[int32](0).IsNil() || FromPtr(gas.Ptr[int32]{}) != 0 {
		t.Error("a form of null is not null")
	}
	if Phased(0).AddrField() != 0 || Phaseless(0).AddrField() != 0 || (Wide{}).AddrField() != 0 {
		t.Error("null has an address")
	}
	for _, s := range []string{Phased(0).String(), Phaseless(0).String()} {
		if s != "null" {
			t.Errorf("null prints as %q", s)
		}
	}
	for _, w := range []Wide{
		{Thread: MaxThreads, Addr: testBase},
		{Phase: MaxBlock, Addr: testBase},
		{Addr: segment.AttachBase + MaxShared},
		{Addr: segment.AttachBase - 1},
		{Addr: segment.AttachBase}, // would be null
		{Thread: -1, Addr: testBase},
	} {
		if q, ok := w.Phased(); ok {
			t.Errorf("%+v packs as %v", w, q)
		}
	}
}

// TestCast restates 6.4.3p2 and p3.
func TestCast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gen := func(name string) Type {
			return Type{rapid.SampledFrom([]int{0, 1, 4, 8}).Draw(t, name+" size"), rapid.IntRange(0, 3).Draw(t, name+" block")}
		}
		from, to := gen("from"), gen("to")
		w := Wide{Thread: 2, Phase: rapid.IntRange(0, max(0, from.Block-1)).Draw(t, "phase"), Addr: testBase}
		if from.Size == 0 {
			w.Phase = rapid.IntRange(0, 5).Draw(t, "generic phase")
		}
		got := w.Cast(from, to)
		if got.Thread != w.Thread || got.Addr != w.Addr {
			t.Fatalf("the cast moves %v to %v", w, got)
		}
		generic := from.Size == 0 || to.Size == 0
		switch {
		case to.Size == 0:
			if got.Phase != w.Phase {
				t.Fatalf("p1: phase %d of %+v is %d as generic pointer", w.Phase, from, got.Phase)
			}
		case !generic && from != to:
			if got.Phase != 0 {
				t.Fatalf("p1: phase %d of %+v is %d as %+v", w.Phase, from, got.Phase, to)
			}
		case generic && to.Block <= 1:
			if got.Phase != 0 {
				t.Fatalf("p2: generic phase %d is %d as %+v", w.Phase, got.Phase, to)
			}
		default:
			if w.Phase < to.Block && got.Phase != w.Phase {
				t.Fatalf("p2: phase %d is %d as %+v", w.Phase, got.Phase, to)
			}
		}
	})
}

// TestAffinitySize restates 7.2.3.5: the bytes of a walk that lie on a thread.
func TestAffinitySize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threads, block, total := rapid.IntRange(1, 6).Draw(t, "THREADS"), rapid.IntRange(0, 9).Draw(t, "nbytes"), rapid.IntRange(0, 100).Draw(t, "totalsize")
		want := make([]int, threads)
		for _, w := range walked(threads, block, 1, total, testBase) {
			want[w.Thread]++
		}
		for r := range want {
			if got := AffinitySize(total, block, r, threads); got != want[r] {
				t.Fatalf("%d bytes in blocks of %d on %d threads: %d on thread %d, not %d", total, block, threads, got, r, want[r])
			}
		}
	})
}

// steps is how many pointers a benchmark's walk makes: its time is for so many.
const steps = 4096

// The walks stand apart so that the benchmark's loop does not change how they compile.

//go:noinline
func walkPhased(q Phased, block, threads int) (sum uint64) {
	for range steps {
		sum += uint64(q)
		q = q.Next(block, 8, threads)
	}
	return sum
}

//go:noinline
func walkCyclic(p Phaseless, threads int) (sum uint64) {
	for range steps {
		sum += uint64(p)
		p = p.Next(8, threads)
	}
	return sum
}

//go:noinline
func walkLocal(p Phaseless) (sum uint64) {
	for range steps {
		sum += uint64(p)
		p = p.AddLocal(1, 8)
	}
	return sum
}

//go:noinline
func walkIndex(p uint64) (sum uint64) {
	for range steps {
		sum += p
		p++
	}
	return sum
}

var sink uint64

// BenchmarkIncrement compares the increments of pointers-to-shared with that of an index.
func BenchmarkIncrement(b *testing.B) {
	p, q := MakePhaseless(0, testBase), makePhased(0, 0, testBase)
	for _, c := range []struct {
		name string
		walk func() uint64
	}{
		{"phased", func() uint64 { return walkPhased(q, 64, 4) }},
		{"cyclic", func() uint64 { return walkCyclic(p, 4) }},
		{"indefinite", func() uint64 { return walkLocal(p) }},
		{"index", func() uint64 { return walkIndex(0) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				sink += c.walk()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/steps, "ns/step")
		})
	}
}
