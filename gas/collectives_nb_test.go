package gas

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/internal/testkit/testjob"
)

// looked waits for f and compares its result with want.
func looked[R any](what string, want any, f Future[R], failed error) func() error {
	return func() error {
		if failed != nil {
			return fmt.Errorf("%s: %w", what, failed)
		}
		got, err := f.Wait()
		if a, b := fmt.Sprint(got), fmt.Sprint(want); err == nil && a != b {
			err = fmt.Errorf("%.200s, not %.200s", a, b)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
}

// begin begins all calls of blocks on g, which are waited for, and compared with what one
// rank alone computes, by the functions that it returns.
func (s blockStep) begin(g Group) []func() error {
	me, size, n := g.Rank(), g.Size(), s.length
	root := me == s.root
	var waits []func() error
	add := func(f func() error) { waits = append(waits, f) }
	own := func() []int64 { return s.block(me, 0, n) }
	room := func(k int) []int64 { return make([]int64, k) }
	gathered := each(size, func(r int) []int64 { return s.block(r, 0, n) })
	ragged := each(size, func(r int) []int64 { return s.ragged(r, 0) })
	var all []int64
	wantV, wantAll := [][]int64(nil), []int64(nil)
	var inAll []int64
	if root {
		all = flat(each(size, func(r int) []int64 { return s.block(s.root, r, n) }))
		wantV, wantAll, inAll = ragged, flat(gathered), room(n*size)
	}
	wide := func(a, b [100]int64) [100]int64 { return [100]int64{a[0] + b[0], 99: max(a[99], b[99])} }
	sumTo := func(k int) []int64 { return folded(n, k, func(r int) []int64 { return gathered[r] }) }
	out := flat(each(size, func(r int) []int64 { return s.block(me, r, n) }))

	{
		f, err := BarrierNB(g)
		add(looked("BarrierNB", struct{}{}, f, err))
	}
	{
		f, err := AllReduceNB(g, [][100]int64{{1, 99: int64(me)}}, wide)
		add(looked("AllReduceNB of much", [][100]int64{{int64(size), 99: int64(size - 1)}}, f, err))
	}
	{
		f, err := ScatterNB(g, s.root, all, room(n))
		add(looked("ScatterNB", s.block(s.root, me, n), f, err))
	}
	{
		f, err := BroadcastNB(g, s.root, own())
		add(looked("BroadcastNB", gathered[s.root], f, err))
	}
	{
		f, err := ReduceNB(g, s.root, own(), Sum)
		var want []int64
		if root {
			want = sumTo(size)
		}
		add(looked("ReduceNB", want, f, err))
	}
	{
		f, err := AllReduceNB(g, own(), Sum)
		add(looked("AllReduceNB", sumTo(size), f, err))
	}
	{
		f, err := GatherNB(g, s.root, own(), inAll)
		add(looked("GatherNB", wantAll, f, err))
	}
	{
		f, err := GatherVNB(g, s.root, s.ragged(me, 0))
		add(looked("GatherVNB", wantV, f, err))
	}
	{
		f, err := AllGatherNB(g, own(), room(n*size))
		add(looked("AllGatherNB", flat(gathered), f, err))
	}
	{
		f, err := AllGatherVNB(g, s.ragged(me, 0))
		add(looked("AllGatherVNB", ragged, f, err))
	}
	{
		f, err := AllToAllNB(g, out, room(n*size))
		add(looked("AllToAllNB", flat(each(size, func(r int) []int64 { return s.block(r, me, n) })), f, err))
	}
	{
		f, err := AllToAllVNB(g, each(size, func(r int) []int64 { return s.ragged(me, r) }))
		add(looked("AllToAllVNB", each(size, func(r int) []int64 { return s.ragged(r, me) }), f, err))
	}
	{
		f, err := ReduceScatterNB(g, append([]int64(nil), out...), room(n), Sum)
		add(looked("ReduceScatterNB", folded(n, size, func(r int) []int64 { return s.block(r, me, n) }), f, err))
	}
	{
		// This operation does not commute.
		f, err := InclusiveScanNB(g, [][2]int{{me, me}}, func(a, b [2]int) [2]int { return [2]int{a[0], b[1]} })
		add(looked("InclusiveScanNB", [][2]int{{0, me}}, f, err))
	}
	{
		f, err := InclusiveScanNB(g, own(), Sum)
		add(looked("InclusiveScanNB", sumTo(me+1), f, err))
	}
	{
		f, err := ExclusiveScanNB(g, own(), Sum)
		add(looked("ExclusiveScanNB", sumTo(me), f, err))
	}
	return waits
}

// beginInTeams has all calls under way in three teams at once, and waits for them in an
// order of each rank's own.
func (s blockStep) beginInTeams(n *Node, width, order int) error {
	rows, err := n.World().Split(n.rank/width, 0)
	if err != nil {
		return err
	}
	columns, err := n.World().Split(n.rank%width, -n.rank)
	if err != nil {
		return err
	}
	var waits []func() error
	for _, g := range []Group{rows, n, columns} {
		call := s
		call.root %= g.Size()
		waits = append(waits, call.begin(g)...)
	}
	var failed error
	for len(waits) > 0 {
		k := (order + n.rank*13) % len(waits)
		if err := waits[k](); err != nil {
			failed = errors.Join(failed, fmt.Errorf("rank %d, root %d, %d elements: %w", n.rank, s.root, s.length, err))
		}
		waits = append(waits[:k:k], waits[k+1:]...)
	}
	return errors.Join(failed, rows.Delete(), columns.Delete())
}

// TestCollectivesInFlight compares collectives that do not wait with their definitions.
func TestCollectivesInFlight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{1, 2, 3, 4, 6}).Draw(t, "ranks")
		s := drawBlockStep(t, size)
		width := rapid.IntRange(1, size).Draw(t, "width")
		order := rapid.IntRange(0, 60).Draw(t, "order")
		if err := Run(small(size), func(n *Node) error { return s.beginInTeams(n, width, order) }); err != nil {
			t.Fatal(err)
		}
	})
}

// TestCollectivesInFlightOnOthers does so on other conduits.
func TestCollectivesInFlightOnOthers(t *testing.T) {
	for _, conduit := range testjob.Concurrent("udp", "hybrid", "sim", "hidden") {
		for _, length := range []int{3, 2000} {
			cfg := small(4)
			cfg.Conduit = conduit
			if err := Run(cfg, func(n *Node) error { return blockStep{root: 2, length: length, seed: 1}.beginInTeams(n, 2, length%17) }); err != nil {
				t.Errorf("%s: %v", conduit, err)
			}
		}
	}
}

// TestCollectiveFutures: a Future of a collective call is used as that of a call is.
func TestCollectiveFutures(t *testing.T) {
	for _, conduit := range testjob.Concurrent("shm", "sim") {
		cfg := small(3)
		cfg.Conduit = conduit
		if err := Run(cfg, func(n *Node) error {
			begin := func(v int) Future[[]int] {
				f, err := AllReduceNB(n, []int{v}, Sum)
				if err != nil {
					t.Error(err)
				}
				return f
			}
			f, g, h := begin(1), begin(2), begin(3)
			i, v, err := WaitAny(f, g)
			if err != nil || v[0] != 3*(i+1) {
				return fmt.Errorf("any: %d, %v: %w", i, v, err)
			}
			rest := []Future[[]int]{g, f}[i]
			if all, err := WaitAll(rest, h); err != nil || all[1][0] != 9 || all[0][0]+v[0] != 9 {
				return fmt.Errorf("all: %v: %w", all, err)
			}
			if _, err := h.Wait(); !errors.Is(err, ErrBadArg) || !strings.Contains(err.Error(), "taken twice") {
				return fmt.Errorf("taken twice: %w", err)
			}
			f = begin(4)
			if v, err := f.WaitContext(context.Background()); err != nil || v[0] != 12 {
				return fmt.Errorf("with a context: %v: %w", v, err)
			}
			// One that is left to Then, another that nothing waits for.
			got := 0
			n.Must(begin(5).Then(func(_ *Node, v []int, err error) { got = v[0] }))
			begin(6)
			if err := n.Wait(func() bool { return got != 0 }); err != nil || got != 15 {
				return fmt.Errorf("then %d: %w", got, err)
			}
			return n.Barrier()
		}); err != nil {
			t.Errorf("%s: %v", conduit, err)
		}
	}
}

// TestCollectiveFutureInSelect: the channel of a Future is closed by a goroutine that polls.
func TestCollectiveFutureInSelect(t *testing.T) {
	cfg := small(2)
	cfg.Progress = true
	if err := Run(cfg, func(n *Node) error {
		f := Must(AllGatherNB(n, []int{n.rank}, make([]int, n.size)))
		<-f.Done()
		if all, err := f.Wait(); err != nil || fmt.Sprint(all) != "[0 1]" {
			return fmt.Errorf("%v: %w", all, err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestCollectiveWaitGivesUp: the end of a context ends the wait and not the call.
func TestCollectiveWaitGivesUp(t *testing.T) {
	runN(t, 2, func(n *Node) error {
		if n.rank == 1 {
			n.Must(n.Barrier())
		}
		f := Must(AllReduceNB(n, []int{n.rank + 1}, Sum))
		if n.rank == 0 {
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(errTest)
			if _, err := f.WaitContext(ctx); !errors.Is(err, errTest) || !strings.Contains(err.Error(), "collective call") {
				return fmt.Errorf("given up: %w", err)
			}
			n.Must(n.Barrier())
		}
		if v, err := f.Wait(); err != nil || v[0] != 3 {
			return fmt.Errorf("%v: %w", v, err)
		}
		return nil
	})
}

// TestCollectiveFuturesFail: what a rank does wrong, or that it fails, is said by all
// Futures, and nothing waits for ever.
func TestCollectiveFuturesFail(t *testing.T) {
	for _, conduit := range testjob.Concurrent("shm", "udp", "sim") {
		for what, odd := range map[string]func(n *Node) error{
			"AllReduceNB of 16 bytes": func(n *Node) error {
				_, err := AllReduceNB(n, [][2]int{{}}, func(a, _ [2]int) [2]int { return a })
				return err
			},
			"AllReduce of 8 bytes":      func(n *Node) error { _, err := AllReduce(n, 1, Sum); return err },
			"the end of the program":    func(n *Node) error { return nil },
			"rank 1 failed: this is th": func(n *Node) error { return errTest },
		} {
			cfg := small(3)
			cfg.Conduit = conduit
			said := make([]error, 3)
			err := Run(cfg, func(n *Node) error {
				var fs []Future[[]int]
				if said[n.rank] = n.Barrier(); said[n.rank] != nil { // that a rank has failed
					return said[n.rank]
				}
				for i := range 3 {
					if n.rank == 1 && i == 1 {
						said[1] = odd(n)
						return said[1]
					}
					f, err := AllReduceNB(n, []int{i}, Sum)
					if err != nil {
						said[n.rank] = err
						break
					}
					fs = append(fs, f)
				}
				for _, f := range fs {
					_, err := f.Wait()
					said[n.rank] = errors.Join(said[n.rank], err)
				}
				if _, err := WaitAll(fs...); !errors.Is(err, ErrBadArg) && len(fs) > 0 {
					return fmt.Errorf("taken twice: %w", err)
				}
				return said[n.rank]
			})
			if err == nil {
				t.Errorf("%s: %s: no error", conduit, what)
			}
			for _, r := range []int{0, 2} {
				if s := fmt.Sprint(said[r]); !strings.Contains(s, what) && !(strings.Contains(s, "rank 1 failed") || strings.Contains(s, "rank 0 failed") || strings.Contains(s, "rank 2 failed")) {
					t.Errorf("%s: %s: rank %d gets %v", conduit, what, r, said[r])
				}
			}
		}
	}
}
