package rt

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/argon-go/argon/gas"
)

// flagSets are combinations of flags, after which the test meets by itself.
var flagSets = []SyncFlags{0, InAllSync | OutAllSync, InMySync | OutMySync, InNoSync | OutNoSync, InAllSync, OutMySync, InNoSync | OutAllSync}

// TestRelocalization restates 7.4.2 byte by byte.
func TestRelocalization(t *testing.T) {
	onEach(t, 3, func(t *Thread) {
		const n = 24
		rnd := rand.New(rand.NewPCG(1, 2)) // the same on all threads
		total := uint64(n * t.threads)
		src, dst, perm := t.AllAlloc(uint64(t.threads), total), t.AllAlloc(uint64(t.threads), total), t.AllAlloc(uint64(t.threads), 4)
		part := func(p Phaseless, r int) Phaseless { return MakePhaseless(r, p.Addr()) }
		for round, f := range flagSets {
			for call := range 6 {
				// All threads know what all memory holds.
				was := make([][]byte, t.threads)
				for r := range was {
					was[r] = make([]byte, total)
					for i := range was[r] {
						was[r][i] = byte(rnd.Uint32())
					}
				}
				to := rnd.Perm(t.threads)
				root := rnd.IntN(t.threads)
				t.MemPut(part(src, t.me), was[t.me])
				t.MemSet(part(dst, t.me), 0xee, int(total))
				Put(t, part(perm, t.me), int32(to[t.me]))
				if f&(InMySync|InNoSync) != 0 {
					t.BarrierAny()
				}
				want := bytes.Repeat([]byte{0xee}, int(total))
				switch call {
				case 0:
					t.AllBroadcast(dst, part(src, root), n, f)
					copy(want, was[root][:n])
				case 1:
					t.AllScatter(dst, part(src, root), n, f)
					copy(want, was[root][t.me*n:(t.me+1)*n])
				case 2:
					t.AllGather(part(dst, root), src, n, f)
					for r := range was {
						if t.me == root {
							copy(want[r*n:], was[r][:n])
						}
					}
				case 3:
					t.AllGatherAll(dst, src, n, f)
					for r := range was {
						copy(want[r*n:], was[r][:n])
					}
				case 4:
					t.AllExchange(dst, src, n, f)
					for r := range was {
						copy(want[r*n:], was[r][t.me*n:(t.me+1)*n])
					}
				case 5:
					t.AllPermute(dst, src, perm, n, f)
					copy(want, was[slices.Index(to, t.me)][:n])
				}
				if f&OutNoSync != 0 {
					t.BarrierAny()
				}
				got := make([]byte, total)
				t.MemGet(got, part(dst, t.me))
				if !bytes.Equal(got, want) {
					t.failf("round %d, call %d: %x, not %x", round, call, got, want)
				}
				t.BarrierAny()
			}
		}
	})
}

// TestLateThread: with UPC_IN_MYSYNC a call touches no memory of a thread that has not entered it (7.3.3), whatever
// the others do meanwhile, for as long as they are given in virtual time; with UPC_OUT_MYSYNC none is touched
// of one that has returned.
func TestLateThread(t *testing.T) {
	const n, threads = 24, 3
	err := run("sim", threads, func(t *Thread) {
		src, dst, perm := t.AllAlloc(threads, n*threads), t.AllAlloc(threads, n*threads), t.AllAlloc(threads, 4)
		part := func(p Phaseless) Phaseless { return MakePhaseless(t.me, p.Addr()) }
		for late := range threads {
			for number, call := range []func(){
				func() { t.AllPermute(dst, src, perm, n, InMySync|OutMySync) },
				func() { t.AllBroadcast(dst, MakePhaseless((late+1)%threads, src.Addr()), n, InMySync|OutMySync) },
				func() { t.AllExchange(dst, src, n/threads, InMySync|OutMySync) },
				func() { t.AllGatherAll(dst, src, n, InMySync|OutMySync) },
			} {
				t.MemSet(part(src), byte(t.me+1), n*threads)
				t.MemSet(part(dst), 0xee, n*threads)
				Put(t, part(perm), int32((t.me+1)%threads))
				t.BarrierAny()
				got := make([]byte, n*threads)
				if t.me == late {
					for end := t.n.Now() + time.Millisecond; t.n.Now() < end; {
						t.n.Poll()
					}
					t.MemGet(got, part(dst))
					if i := slices.IndexFunc(got, func(b byte) bool { return b != 0xee }); i >= 0 {
						t.failf("call %d has written byte %d of this thread, which has not entered it", number, i)
					}
				}
				call()
				t.MemSet(part(dst), 0xdd, n*threads) // it is this thread's again
				for end := t.n.Now() + time.Millisecond; t.me != late && t.n.Now() < end; {
					t.n.Poll()
				}
				t.MemGet(got, part(dst))
				if i := slices.IndexFunc(got, func(b byte) bool { return b != 0xdd }); i >= 0 {
					t.failf("call %d has written byte %d of this thread, which has returned from it", number, i)
				}
				t.BarrierAny()
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// fill writes an array of elements, all by thread 0, and returns them on all threads.
func fill(t *Thread, p Phased, block, total int, rnd *rand.Rand) []int32 {
	list := make([]int32, total)
	for i := range list {
		list[i] = int32(rnd.IntN(7)) - 3
		if t.me == 0 {
			Put(t, p.Wide().Add(i, block, 4, t.threads).Phaseless(), list[i])
		}
	}
	return list
}

// TestComputation restates 7.4.3 element by element, on arrays that begin on any thread, and
// with a function that is associative and not commutative.
func TestComputation(t *testing.T) {
	onEach(t, 3, func(t *Thread) {
		rnd := rand.New(rand.NewPCG(3, 4))
		const most = 64
		src, dst := t.AllAlloc(uint64(t.threads), 4*most+128), t.AllAlloc(uint64(t.threads), 4*most+128)
		first := func(a, _ int32) int32 { return a } // the leftmost
		ops := []Op{OpAdd, OpMult, OpAnd, OpOr, OpXor, OpLogAnd, OpLogOr, OpMin, OpMax, OpFunc, OpNonComm}
		for i := range 4 * len(ops) {
			op := ops[i%len(ops)]
			total, block := 1+rnd.IntN(most-1), rnd.IntN(6)
			// Of blocks that are larger than one element, the array may begin inside one.
			phase := 0
			if block > 1 {
				phase = rnd.IntN(block)
			}
			start, to := makePhased(rnd.IntN(t.threads), phase, src.Addr()+64), makePhased(rnd.IntN(t.threads), phase, dst.Addr()+64)
			fn, model := first, combiner(op, first)
			if op == OpFunc {
				fn = func(a, b int32) int32 { return max(a, b) }
				model = fn
			}
			list := fill(t, start, block, total, rnd)
			want := make([]int32, total)
			for k, v := range list {
				want[k] = v
				if k > 0 {
					want[k] = model(want[k-1], v)
				}
			}
			f := flagSets[i%2]
			AllReduce(t, to.Phaseless(), start, op, total, block, fn, f)
			if got := Get[int32](t, to.Phaseless()); got != want[total-1] {
				t.failf("%v of %v, blocks of %d from %v: %d, not %d", op, list, block, start, got, want[total-1])
			}
			t.BarrierAny()
			AllPrefixReduce(t, to, start, op, total, block, fn, f)
			for k := range want {
				if got := Get[int32](t, to.Wide().Add(k, block, 4, t.threads).Phaseless()); got != want[k] {
					t.failf("%v of %v, blocks of %d from %v to %v: %d is %d, not %d", op, list, block, start, to, k, got, want[k])
				}
			}
			t.BarrierAny()
		}
		// Floats have no bits.
		if combiner[float64](OpAnd, nil) != nil || combiner[float32](OpXor, nil) != nil || combiner[float64](OpAdd, nil)(1.5, 2) != 3.5 || combiner[int8](OpOr, nil) == nil {
			t.failf("operations of types are not those of UPC")
		}
	})
}

func TestSort(t *testing.T) {
	onEach(t, 3, func(t *Thread) {
		rnd := rand.New(rand.NewPCG(5, 6))
		p := t.AllAlloc(uint64(t.threads), 4*64).Phased()
		for range 8 {
			total, block := 1+rnd.IntN(60), rnd.IntN(5)
			list := fill(t, p, block, total, rnd)
			slices.Sort(list)
			t.AllSort(p, 4, total, block, func(a, b Phaseless) int {
				return cmp.Compare(Get[int32](t, a), Get[int32](t, b))
			}, 0)
			for i, v := range list {
				if got := Get[int32](t, p.Wide().Add(i, block, 4, t.threads).Phaseless()); got != v {
					t.failf("element %d of %d is %d, not %d", i, total, got, v)
				}
			}
			t.BarrierAny()
		}
	})
}

func TestCollectiveMisuse(t *testing.T) {
	base := func(t *Thread) Phaseless { return t.Base(objE) }
	refused(t, 2, gas.ErrBadArg, "at most one for each side", func(t *Thread) { t.AllBroadcast(base(t), base(t), 8, InAllSync|InNoSync) })
	refused(t, 2, gas.ErrNotReady, "upc_all_gather between", func(t *Thread) { t.NotifyAny(); t.AllGather(base(t), base(t), 8, 0) })
	refused(t, 2, gas.ErrBadArg, "perm[", func(t *Thread) {
		Put(t, MakePhaseless(t.me, base(t).Addr()), int32(2))
		t.AllPermute(base(t), base(t), base(t), 8, 0)
	})
	refused(t, 2, gas.ErrBadArg, "UPC_XOR of type float64", func(t *Thread) { AllReduce[float64](t, base(t), base(t).Phased(), OpXor, 2, 1, nil, 0) })
	refused(t, 2, gas.ErrBadArg, "UPC_GET of type int32", func(t *Thread) { AllReduce[int32](t, base(t), base(t).Phased(), OpGet, 2, 1, nil, 0) })
}

// TestFarCollectives: counts whose products with sizes and threads leave 64 bits are refused.
func TestFarCollectives(t *testing.T) {
	const far = 1 << 62
	for _, n := range []int{far, far + 1, -far, -1, 1 << 61, 1 << 34} {
		for name, call := range map[string]func(t *Thread, p Phaseless){
			"exchange":   func(t *Thread, p Phaseless) { t.AllExchange(p, p, n, 0) },
			"gather all": func(t *Thread, p Phaseless) { t.AllGatherAll(p, p, n, 0) },
			"reduce":     func(t *Thread, p Phaseless) { AllReduce[int64](t, p, p.Phased(), OpAdd, n, 0, nil, 0) },
			"blocks":     func(t *Thread, p Phaseless) { AllReduce[int64](t, p, p.Phased(), OpAdd, 3, n, nil, 0) },
			"sort":       func(t *Thread, p Phaseless) { t.AllSort(p.Phased(), 8, n, 1, nil, 0) },
			"slice":      func(t *Thread, p Phaseless) { LocalSlice[int64](t, MakePhaseless(t.me, p.Addr()), n) },
		} {
			refused(t, 4, gas.ErrBadArg, "upc: ", func(t *Thread) {
				call(t, t.AllAlloc(4, 8))
				t.failf("%s of %d is done", name, n)
			})
		}
	}
}
