package conformance

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/gas"
)

// gasChecks are those of package gas.
var gasChecks = []check{
	{name: "gas/lock", seeded: true, run: gasLock},               // testhsl, testacc
	{name: "gas/lock-misuse", run: gasLockMisuse},                // testhsl's illegal uses
	{name: "gas/collectives", seeded: true, run: gasCollectives}, // testreduce, testteambcast
	{name: "gas/heap", seeded: true, run: gasHeap},               // testsegment's lack of room
	{name: "gas/calls", seeded: true, run: gasCalls},             // none
	{name: "gas/exit", run: gasExit},                             // testexit
}

const gasSegment = 256 << 10

// job runs fn as so many ranks; a rank that returns an error fails the check.
func (c *ctx) job(ranks int, fn func(n *gas.Node) error) {
	c.Helper()
	if err := c.gas(gas.Config{Ranks: ranks, SegmentSize: gasSegment}, fn); err != nil {
		c.Errorf("%d ranks: %v", ranks, err)
	}
}

// goroutines runs f(0..k-1) as goroutines of n's rank and returns their first
// error.
func goroutines(n *gas.Node, k int, f func(i int) error) error {
	var left atomic.Int32
	errs := make([]error, k)
	left.Store(int32(k))
	for i := range k {
		conduits.Go(n.Layers().Conduit, func() {
			errs[i] = f(i)
			left.Add(-1)
			n.Wake(n.Rank())
		})
	}
	if err := n.Wait(func() bool { return left.Load() == 0 }); err != nil {
		return err
	}
	return errors.Join(errs...)
}

// isErr is an error if err does not wrap want.
func isErr(err, want error, format string, args ...any) error {
	if errors.Is(err, want) {
		return nil
	}
	return fmt.Errorf(format+": error %w, want one that wraps %q", append(args, err, want)...)
}

// off is the error of an operation that went wrong: its own, or, if it has none,
// what was wrong with its result.
func off(err error, format string, args ...any) error {
	if err != nil {
		format, args = format+": %w", append(args, err)
	}
	return fmt.Errorf(format, args...)
}

// account is what locks protect: with the lock held a and b are equal.
type account struct {
	lock gas.LockWord
	a, b int64
}

// gasLock: exclusive holders exclude all, shared ones each other not, on
// locks of every rank, by several goroutines of each.
func gasLock(c *ctx) {
	const ranks, threads, each = 3, 2, 30
	c.job(ranks, func(n *gas.Node) error {
		p, err := gas.New[account](n)
		if err != nil {
			return err
		}
		var added [ranks]atomic.Int64
		err = goroutines(n, threads, func(th int) error {
			rng := c.Random(uint64(n.Rank()), uint64(th), 17)
			for range each {
				host := rng.IntN(ranks)
				q := p.On(host)
				l := gas.LockAt(gas.Field(q, func(t *account) *gas.LockWord { return &t.lock }))
				a, b := gas.Field(q, func(t *account) *int64 { return &t.a }), gas.Field(q, func(t *account) *int64 { return &t.b })
				shared, try := rng.IntN(3) == 0, rng.IntN(2) == 0
				take, release := l.Lock, l.Unlock
				if shared {
					take, release = l.RLock, l.RUnlock
				}
				if try {
					take = func(n *gas.Node) error {
						for {
							ok, err := l.TryLock(n)
							if shared {
								if ok {
									return errors.Join(err, l.Unlock(n), l.RLock(n))
								}
								ok, err = l.TryRLock(n)
							}
							if ok || err != nil {
								return err
							}
							n.Poll()
							runtime.Gosched()
						}
					}
				}
				if err := take(n); err != nil {
					return err
				}
				va, err := a.Get(n)
				if err != nil {
					return err
				}
				if !shared {
					d := int64(rng.IntN(1000))
					added[host].Add(d)
					if err := a.Put(n, va+d); err != nil {
						return err
					}
					n.Poll()
					if err := b.Put(n, va+d); err != nil {
						return err
					}
				} else if vb, err := b.Get(n); err != nil || va != vb {
					return fmt.Errorf("with the lock of rank %d held: %d and %d, %v", host, va, vb, err)
				}
				if err := release(n); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for host := range ranks {
			sum, err := gas.AllReduce(n, added[host].Load(), gas.Sum[int64])
			if err != nil {
				return err
			}
			q := p.On(host)
			a, err := gas.Field(q, func(t *account) *int64 { return &t.a }).Get(n)
			if err != nil || a != sum {
				return fmt.Errorf("account of rank %d: %d, not %d, %v", host, a, sum, err)
			}
		}
		return nil
	})
}

// gasLockMisuse: what a lock's user gets wrong is an error and leaves the lock
// as it was.
func gasLockMisuse(c *ctx) {
	c.job(2, func(n *gas.Node) error {
		l, err := gas.NewLock(n)
		if err != nil {
			return err
		}
		free := func(what string) error {
			ok, err := l.TryLock(n)
			if err == nil && !ok {
				err = errors.New("the lock is not free")
			}
			if err == nil {
				err = l.Unlock(n)
			}
			if err != nil {
				return off(err, "after %s", what)
			}
			return nil
		}
		bad := func(err error, what string) error { return isErr(err, gas.ErrBadArg, "%s", what) }
		if n.Rank() == 0 {
			if err := errors.Join(
				bad(l.Unlock(n), "unlock of a lock that is free"),
				bad(l.RUnlock(n), "shared unlock of a lock that is free"),
				free("unlocks"),
				l.Lock(n),
				bad(l.RUnlock(n), "shared unlock of an exclusive hold"),
				l.Unlock(n),
				bad(l.Unlock(n), "second unlock"),
				free("a second unlock"),
				l.RLock(n), l.RLock(n),
				bad(l.Unlock(n), "exclusive unlock of a shared hold"),
				l.RUnlock(n), l.RUnlock(n),
				bad(l.RUnlock(n), "third unlock of two holds"),
				free("shared holds"),
				bad(gas.LockAt(gas.Ptr[gas.LockWord]{}).Lock(n), "lock at nil"),
				l.Lock(n)); err != nil {
				return err
			}
			// No lock is recursive.
			if ok, err := l.TryLock(n); ok || err != nil {
				return off(err, "second exclusive hold: %v", ok)
			}
			if ok, err := l.TryRLock(n); ok || err != nil {
				return off(err, "shared hold beside an exclusive one: %v", ok)
			}
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if n.Rank() == 1 {
			ok, err := l.TryLock(n)
			if ok || err != nil {
				return off(err, "the lock that rank 0 has: %v", ok)
			}
			if err := errors.Join(bad(l.Unlock(n), "unlock of rank 0's hold"), bad(l.RUnlock(n), "shared unlock of rank 0's hold")); err != nil {
				return err
			}
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if n.Rank() == 0 {
			if err := l.Unlock(n); err != nil {
				return err
			}
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if n.Rank() == 1 {
			return free("all that")
		}
		return nil
	})
}

// affine is a function x -> A*x+B; composition of such is associative and not
// commutative.
type affine struct{ A, B uint64 }

func then(f, g affine) affine { return affine{f.A * g.A, g.A*f.B + g.B} }

// block is a value that does not fit one message everywhere.
type block struct {
	Key  uint64
	Rest [600]uint32
}

func makeBlock(key uint64) block {
	b := block{Key: key}
	for i := range b.Rest {
		b.Rest[i] = uint32(contract.Mix(key, uint64(i)))
	}
	return b
}

// gasCollectives: all collectives against what they mean, with random roots and
// lengths, in jobs of sizes that are no powers of two too, and with ranks that
// come at different times.
func gasCollectives(c *ctx) {
	for _, ranks := range []int{1, 2, 3, 5, 8, 13} {
		c.job(ranks, func(n *gas.Node) error { return collectives(c, n) })
		if c.Failed() {
			return
		}
	}
}

func collectives(c *ctx, n *gas.Node) error {
	plan := c.Random(uint64(n.Size()), 3) // the same on all ranks
	own := c.Random(uint64(n.Size()), uint64(n.Rank()), 4)
	for round := range 16 {
		root := plan.IntN(n.Size())
		base := plan.Uint64()
		value := func(rank int) int64 { return int64(contract.Mix(base, uint64(rank)) >> 20) }
		for range own.IntN(4) {
			n.Poll()
		}
		fail := func(what string, got, want any, err error) error {
			return off(err, "round %d: %s, root %d of %d: %v, not %v", round, what, root, n.Size(), got, want)
		}
		var all []int64
		var sum, low, high, prod, xor int64 = 0, math.MaxInt64, math.MinInt64, 1, 0
		for r := range n.Size() {
			v := value(r)
			all = append(all, v)
			sum, low, high, prod, xor = sum+v, min(low, v), max(high, v), prod*v, xor^v
		}
		mine, atRoot := value(n.Rank()), n.Rank() == root
		if v, err := gas.Broadcast(n, root, mine); err != nil || v != all[root] {
			return fail("broadcast", v, all[root], err)
		}
		if b, err := gas.Broadcast(n, root, makeBlock(uint64(mine))); err != nil || b != makeBlock(uint64(all[root])) {
			return fail("broadcast of a block", b.Key, all[root], err)
		}
		ops := []struct {
			what string
			op   func(a, b int64) int64
			want int64
		}{{"sum", gas.Sum[int64], sum}, {"minimum", gas.Min[int64], low}, {"maximum", gas.Max[int64], high}, {"product", gas.Product[int64], prod}, {"xor", gas.Xor[int64], xor}}
		o := ops[plan.IntN(len(ops))]
		want := int64(0)
		if atRoot {
			want = o.want
		}
		if v, err := gas.Reduce(n, root, mine, o.op); err != nil || v != want {
			return fail("reduce to the "+o.what, v, want, err)
		}
		if v, err := gas.AllReduce(n, mine, o.op); err != nil || v != o.want {
			return fail("reduce everywhere to the "+o.what, v, o.want, err)
		}
		// Floats come out the same bits everywhere.
		f, err := gas.AllReduce(n, 1/float64(mine|1), gas.Sum[float64])
		if err != nil {
			return err
		}
		fs, err := gas.AllGather(n, math.Float64bits(f))
		if err != nil || len(fs) != n.Size() {
			return fail("gather everywhere", len(fs), n.Size(), err)
		}
		for r := range fs {
			if fs[r] != math.Float64bits(f) {
				return fail("sum of floats", f, math.Float64frombits(fs[r]), nil)
			}
		}
		got, err := gas.Gather(n, root, mine)
		if err != nil || atRoot && !slices.Equal(got, all) || !atRoot && got != nil {
			return fail("gather", got, all, err)
		}
		blocks, err := gas.AllGather(n, makeBlock(uint64(mine)))
		if err != nil || len(blocks) != n.Size() {
			return fail("gather of blocks", len(blocks), n.Size(), err)
		}
		for r := range blocks {
			if blocks[r] != makeBlock(uint64(all[r])) {
				return fail("gather of blocks", blocks[r].Key, all[r], nil)
			}
		}
		scan := affine{1, 0}
		for r := range n.Rank() {
			scan = then(scan, affine{uint64(all[r]) | 1, uint64(r)})
		}
		if n.Rank() == 0 {
			scan = affine{}
		}
		if v, err := gas.ExclusiveScan(n, affine{uint64(mine) | 1, uint64(n.Rank())}, then); err != nil || v != scan {
			return fail("scan", v, scan, err)
		}
		size := []int{0, 1, 3, 70, 1000, 5000}[plan.IntN(6)]
		row := func(rank int) []int64 {
			s := make([]int64, size)
			for i := range s {
				s[i] = value(rank) + int64(i)*int64(rank+1)
			}
			return s
		}
		sums := make([]int64, size)
		for r := range n.Size() {
			for i, v := range row(r) {
				sums[i] += v
			}
		}
		what := fmt.Sprintf(" of %d elements", size)
		s := row(n.Rank())
		if err := gas.BroadcastSlice(n, root, s); err != nil || !slices.Equal(s, row(root)) {
			return fail("broadcast"+what, "another slice", "root's", err)
		}
		s = row(n.Rank())
		if err := gas.ReduceSlice(n, root, s, gas.Sum[int64]); err != nil || atRoot && !slices.Equal(s, sums) {
			return fail("reduce"+what, "another slice", "the sums", err)
		}
		s = row(n.Rank())
		if err := gas.AllReduceSlice(n, s, gas.Sum[int64]); err != nil || !slices.Equal(s, sums) {
			return fail("reduce everywhere"+what, "another slice", "the sums", err)
		}
	}
	return nil
}

// gasHeap: collective and own allocations, freed by any rank that has the pointer, and
// what happens without room.
func gasHeap(c *ctx) {
	const ranks = 3
	c.job(ranks, func(n *gas.Node) error {
		plan := c.Random(21) // the same on all ranks
		before := n.Usage()
		for range 10 {
			k := 1 + plan.IntN(2000)
			p, err := gas.NewSlice[uint16](n, k)
			if err != nil {
				return err
			}
			offs, err := gas.AllGather(n, p.Offset())
			if err != nil || offs[0] != p.Offset() || p.Rank() != n.Rank() {
				return off(err, "%d elements are at %v; offsets %v", k, p, offs)
			}
			got := make([]uint16, k)
			next := p.On((n.Rank() + 1) % ranks)
			if err := next.GetSlice(n, got); err != nil || slices.Max(got) != 0 {
				return off(err, "fresh memory of %d elements holds %d", k, slices.Max(got))
			}
			if err := n.Barrier(); err != nil {
				return err
			}
			for i := range got {
				got[i] = uint16(contract.Mix(uint64(n.Rank()), uint64(i)))
			}
			if err := next.PutSlice(n, got); err != nil {
				return err
			}
			if err := n.Barrier(); err != nil {
				return err
			}
			if err := gas.Delete(n, p); err != nil {
				return err
			}
			own, err := gas.Alloc[uint64](n, 1+n.Rank()+plan.IntN(50))
			if err != nil {
				return err
			}
			all, err := gas.AllGather(n, own)
			if err != nil {
				return err
			}
			if err := gas.Free(n, all[(n.Rank()+1)%ranks]); err != nil {
				return fmt.Errorf("free of another rank's memory: %w", err)
			}
			if err := n.Barrier(); err != nil {
				return err
			}
			if err := isErr(gas.Free(n, own), gas.ErrBadArg, "second free"); err != nil {
				return err
			}
		}
		_, tooMuch := gas.NewSlice[byte](n, 2*gasSegment)
		_, alloc := gas.Alloc[byte](n, 2*gasSegment)
		if err := errors.Join(isErr(tooMuch, gas.ErrResource, "too much of all ranks"), isErr(alloc, gas.ErrResource, "too much")); err != nil {
			return err
		}
		// One rank without room is an error on all.
		var hog gas.Ptr[byte]
		if n.Rank() == 1 {
			var err error
			if hog, err = gas.Alloc[byte](n, int(n.Usage().Largest)-4096); err != nil {
				return err
			}
		}
		_, err := gas.NewSlice[byte](n, 64<<10)
		if err := isErr(err, gas.ErrResource, "no room on rank 1"); err != nil {
			return err
		}
		if err := gas.Free(n, hog); err != nil {
			return err
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if after := n.Usage(); after.Used != before.Used || after.Collective != before.Collective {
			return fmt.Errorf("%d bytes are in use at the end, %d at the beginning", after.Used, before.Used)
		}
		return nil
	})
}

// Functions that ranks call. They are registered for every program that has this
// package, under names of its own.
var (
	callMix = gas.RegisterCall("conformance.mix", func(n *gas.Node, a [3]uint64) uint64 {
		return contract.Mix(a[0], a[1], a[2], uint64(n.Rank()))
	})
	callEcho = gas.RegisterCall("conformance.echo", func(_ *gas.Node, a [500]byte) [500]byte {
		contract.Spoil(a[:])
		return a
	})
	callNote = gas.RegisterCall("conformance.note", func(n *gas.Node, a uint64) struct{} {
		notes.Of(n).Add(a)
		return struct{}{}
	})
	callNoted = gas.RegisterCall("conformance.noted", func(n *gas.Node, _ struct{}) uint64 { return notes.Of(n).Load() })
	callPanic = gas.RegisterCall("conformance.panic", func(n *gas.Node, rank int32) struct{} {
		if int(rank) == n.Rank() {
			panic("called to panic")
		}
		return struct{}{}
	})
	callLock = gas.RegisterCall("conformance.lock", func(n *gas.Node, p gas.Ptr[gas.LockWord]) bool {
		return gas.LockAt(p).Lock(n) == nil
	})
	notes gas.PerRank[atomic.Uint64]
)

// gasCalls: calls of all ranks on all ranks, many at once, with small and large
// arguments and results, answered in any order.
func gasCalls(c *ctx) {
	const ranks, rounds = 3, 20
	c.job(ranks, func(n *gas.Node) error {
		rng := c.Random(uint64(n.Rank()), 44)
		sent := make([]uint64, ranks)
		for range rounds {
			type small struct {
				f    gas.Future[uint64]
				want uint64
			}
			type large struct {
				f    gas.Future[[500]byte]
				want [500]byte
			}
			var ss []small
			var ls []large
			for range rng.IntN(12) {
				dst := rng.IntN(ranks)
				switch rng.IntN(3) {
				case 0:
					var a [500]byte
					contract.Fill(a[:], rng.Uint64(), 0)
					f, err := callEcho.Go(n, dst, a)
					if err != nil {
						return err
					}
					contract.Spoil(a[:])
					ls = append(ls, large{f, a})
				case 1:
					d := rng.Uint64() >> 40
					sent[dst] += d
					if err := callNote.Send(n, dst, d); err != nil {
						return err
					}
				default:
					a := [3]uint64{rng.Uint64(), 2, 3}
					f, err := callMix.Go(n, dst, a)
					if err != nil {
						return err
					}
					ss = append(ss, small{f, contract.Mix(a[0], a[1], a[2], uint64(dst))})
				}
			}
			rng.Shuffle(len(ss), func(i, j int) { ss[i], ss[j] = ss[j], ss[i] })
			for _, k := range ss {
				got, err := k.f.Wait()
				if err != nil || got != k.want {
					return off(err, "call: %#x, not %#x", got, k.want)
				}
				_, err = k.f.Wait()
				if err := isErr(err, gas.ErrBadArg, "second wait for a call"); err != nil {
					return err
				}
			}
			for _, k := range ls {
				if got, err := k.f.Wait(); err != nil || got != k.want {
					return off(err, "large call: wrong at byte %d", contract.Differ(got[:], k.want[:]))
				}
			}
			a := [3]uint64{9, 9, rng.Uint64()}
			dst := rng.IntN(ranks)
			if got, err := callMix.Call(n, dst, a); err != nil || got != contract.Mix(9, 9, a[2], uint64(dst)) {
				return off(err, "call of rank %d: %#x", dst, got)
			}
		}
		_, err := callMix.Call(n, ranks, [3]uint64{})
		if err := isErr(err, gas.ErrBadArg, "call of a rank that is not there"); err != nil {
			return err
		}
		for dst := range ranks {
			want, err := gas.AllReduce(n, sent[dst], gas.Sum[uint64])
			if err != nil {
				return err
			}
			for {
				got, err := callNoted.Call(n, dst, struct{}{})
				if err != nil || got > want {
					return off(err, "rank %d has noted %d, not %d", dst, got, want)
				}
				if got == want { // what was only sent may be under way
					break
				}
			}
		}
		return n.Barrier()
	})
}

// gasExit: however a rank ends, what the others wait for ends too, with an error
// that names it, and so does Run.
func gasExit(c *ctx) {
	const ranks, culprit, nothing = 3, 1, 150
	why := errors.New("given up")
	ways := map[string]func() error{
		"an error": func() error { return why },
		"a panic":  func() error { panic("broken") },
		"Goexit":   func() error { runtime.Goexit(); return nil },
		"leaving":  func() error { return nil },
	}
	type places struct {
		lock gas.Lock
		flag gas.Ptr[uint64]
	}
	waits := map[string]func(n *gas.Node, p places) error{
		"a barrier": func(n *gas.Node, _ places) error { return n.Barrier() },
		"a split barrier": func(n *gas.Node, _ places) error {
			if err := n.BarrierNotify(); err != nil {
				return err
			}
			return n.BarrierWait()
		},
		"a reduction":   func(n *gas.Node, _ places) error { _, err := gas.AllReduce(n, 1, gas.Sum[int]); return err },
		"a broadcast":   func(n *gas.Node, _ places) error { _, err := gas.Broadcast(n, culprit, 1); return err },
		"an allocation": func(n *gas.Node, _ places) error { _, err := gas.New[int64](n); return err },
		"a flag":        func(n *gas.Node, p places) error { _, err := gas.WaitUntil(n, p.flag, gas.Ge, 1); return err },
		"a condition":   func(n *gas.Node, _ places) error { return n.Wait(func() bool { return false }) },
		"a lock":        func(n *gas.Node, p places) error { return p.lock.Lock(n) },
		"a goroutine":   func(n *gas.Node, p places) error { return goroutines(n, 1, func(int) error { return p.lock.RLock(n) }) },
		"calls": func(n *gas.Node, _ places) error {
			return forever(func() error { _, err := callMix.Call(n, culprit, [3]uint64{}); return err })
		},
		"credit": func(n *gas.Node, _ places) error {
			return forever(func() error { return callNote.Send(n, culprit, 1) })
		},
		"credit of am's": func(n *gas.Node, _ places) error {
			return forever(func() error { return n.Layers().AM.RequestShort(culprit, nothing) })
		},
	}
	for how, end := range ways {
		for what, wait := range waits {
			// A rank that has left still answers, and a condition may come true yet.
			if how == "leaving" && what != "a barrier" && what != "a split barrier" && what != "a reduction" && what != "a broadcast" && what != "an allocation" {
				continue
			}
			var ready atomic.Int32
			errs := make([]error, ranks)
			err := c.gas(gas.Config{Ranks: ranks, SegmentSize: gasSegment, Handlers: []am.Entry{
				{Index: nothing, Name: "nothing", Fn: func(*am.Token, []uint32, []byte) {}},
			}}, func(n *gas.Node) error {
				l, err := gas.NewLock(n)
				if err != nil {
					return err
				}
				f, err := gas.New[uint64](n)
				if err != nil {
					return err
				}
				if n.Rank() == culprit {
					if err := l.Lock(n); err != nil {
						return err
					}
				}
				if err := n.Barrier(); err != nil {
					return err
				}
				if n.Rank() == culprit {
					if err := n.Wait(func() bool { return ready.Load() == ranks-1 }); err != nil {
						return err
					}
					return end()
				}
				ready.Add(1)
				n.Wake(culprit)
				errs[n.Rank()] = wait(n, places{l, f})
				return errs[n.Rank()]
			})
			var re *gas.RankError
			switch {
			case !errors.As(err, &re):
				c.Errorf("%s while others wait for %s: Run returned %v", how, what, err)
			case how == "leaving":
			case re.Rank != culprit:
				c.Errorf("%s of rank %d while others wait for %s: Run says %v", how, culprit, what, err)
			case how == "an error" && !errors.Is(err, why), how == "a panic" && !strings.Contains(err.Error(), "broken"), how == "Goexit" && !strings.Contains(err.Error(), "Goexit"):
				c.Errorf("%s of rank %d while others wait for %s: Run says %v", how, culprit, what, err)
			}
			for r, err := range errs {
				var pe *gas.PeerError
				switch {
				case r == culprit:
				case how == "leaving" && err == nil:
					c.Errorf("rank %d got its %s from a rank that has left", r, what)
				case how == "leaving":
				case !errors.As(err, &pe) || pe.Rank != culprit:
					c.Errorf("%s of rank %d: rank %d, waiting for %s, got %v", how, culprit, r, what, err)
				}
			}
			if c.Failed() {
				return
			}
		}
	}
	// A panic of a called function is its caller's error, if that waits for the result.
	err := c.gas(gas.Config{Ranks: ranks, SegmentSize: gasSegment}, func(n *gas.Node) error {
		var ce *gas.CallError
		if _, err := callPanic.Call(n, culprit, culprit); !errors.As(err, &ce) || !ce.Panic || ce.Rank != culprit {
			return fmt.Errorf("a called function panics: rank %d got %v", n.Rank(), err)
		}
		return n.Barrier()
	})
	if err != nil {
		c.Errorf("%v", err)
	}
	// Else what a called function does wrong is the called rank's failure.
	for what, call := range map[string]func(n *gas.Node, l gas.Lock) error{
		"panics": func(n *gas.Node, _ gas.Lock) error { return callPanic.Send(n, culprit, culprit) },
		"waits":  func(n *gas.Node, l gas.Lock) error { _, err := callLock.Call(n, culprit, l.Word()); return err },
	} {
		errs := make([]error, ranks)
		err := c.gas(gas.Config{Ranks: ranks, SegmentSize: gasSegment}, func(n *gas.Node) (err error) {
			defer func() { errs[n.Rank()] = err }()
			l, err := gas.NewLock(n)
			if err != nil {
				return err
			}
			if n.Rank() == 0 {
				if err := l.Lock(n); err != nil {
					return err
				}
				err = call(n, l)
			}
			return errors.Join(err, n.Wait(func() bool { return false }))
		})
		var re *gas.RankError
		if !errors.As(err, &re) || what == "panics" && re.Rank != culprit {
			c.Errorf("a called function %s: Run says %v", what, err)
		}
		for r, err := range errs {
			var pe *gas.PeerError
			if r != culprit && (!errors.As(err, &pe) || pe.Rank != culprit) {
				c.Errorf("a called function of rank %d %s: rank %d got %v", culprit, what, r, err)
			}
		}
	}
}

// forever repeats f until it fails.
func forever(f func() error) error {
	for {
		if err := f(); err != nil {
			return err
		}
	}
}
