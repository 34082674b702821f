package must_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/must"
	"github.com/argon-go/argon/internal/race"
	"github.com/argon-go/argon/internal/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

var conduits = []string{"shm", "udp", "hybrid", "sim"}

var double = gas.RegisterCall("must_test.double", func(n *gas.Node, x int) int { return 2*x + n.Rank() })

var breaks = gas.RegisterCall("must_test.breaks", func(n *gas.Node, x int) int { n.Must(errTest); return x })

// everything uses each operation once where it succeeds, and checks what comes of it.
func everything(n *gas.Node) error {
	me, next := n.Rank(), (n.Rank()+1)%n.Size()
	prev := (me + n.Size() - 1) % n.Size()
	var wrong []string
	same := func(what string, got, want any) {
		if fmt.Sprint(got) != fmt.Sprint(want) {
			wrong = append(wrong, fmt.Sprintf("%s: %v, want %v", what, got, want))
		}
	}
	p := must.NewSlice[int64](n, 16)
	q := p.On(next)
	must.Put(n, q, 1)
	same("Get", must.Get(n, q), 1)
	must.PutSlice(n, q.Add(1), []int64{2, 3})
	must.Sync(n, must.PutNB(n, q.Add(3), 4))
	must.SyncAll(n, []gas.Handle{must.PutSliceNB(n, q.Add(4), []int64{5, 6})})
	must.PutNBI(n, q.Add(6), 7)
	must.PutSliceNBI(n, q.Add(7), []int64{8})
	must.SyncImplicit(n)
	must.PutStrided(n, q.Add(8), []int64{9, 11}, gas.Rows{Count: 2, Len: 1, Remote: 2})
	must.Sync(n, must.PutStridedNB(n, q.Add(9), []int64{10, 12}, gas.Rows{Count: 2, Len: 1, Remote: 2}))
	must.PutIndexed(n, q, []int{13, 12}, []int64{14, 13})
	must.Sync(n, must.PutIndexedNB(n, q, []int{15, 14}, []int64{16, 15}))
	want := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	got := make([]int64, 16)
	must.GetSlice(n, q, got[:2])
	h := must.GetNB(n, q.Add(2), &got[2])
	for !must.TrySync(n, h) {
	}
	must.Sync(n, must.GetSliceNB(n, q.Add(3), got[3:5]))
	must.GetNBI(n, q.Add(5), &got[5])
	must.GetSliceNBI(n, q.Add(6), got[6:8])
	must.SyncImplicitRank(n, next)
	must.GetStrided(n, q.Add(8), got[8:10], gas.Rows{Count: 1, Len: 2})
	must.Sync(n, must.GetStridedNB(n, q.Add(10), got[10:12], gas.Rows{Count: 2, Len: 1}))
	must.GetIndexed(n, q, []int{12, 13}, got[12:14])
	must.Sync(n, must.GetIndexedNB(n, q, []int{14, 15}, got[14:]))
	same("slices", got, want)
	must.Barrier(n)

	pending := []gas.Future[int]{must.BroadcastNB(n, 1, me), must.AllReduceNB(n, me, gas.Sum), must.ExclusiveScanNB(n, 1, gas.Sum)}
	begun, reduced := must.BarrierNB(n), must.ReduceNB(n, 0, 1, gas.Sum)
	lists := []gas.Future[[]int]{
		must.BroadcastSliceNB(n, 1, []int{me}), must.AllReduceSliceNB(n, []int{1}, gas.Sum),
		must.AllGatherNB(n, 3), must.ReduceSliceNB(n, 0, []int{1}, gas.Sum), must.GatherNB(n, 0, 2),
	}
	must.Result(n, begun)
	for i, want := range []int{1, n.Size() * (n.Size() - 1) / 2, me} {
		same("begun", must.Result(n, pending[i]), want)
	}
	sum, ones, twos, threes := 0, []int(nil), []int(nil), slices.Repeat([]int{3}, n.Size())
	if me == 0 {
		sum, ones, twos = n.Size(), []int{n.Size()}, slices.Repeat([]int{2}, n.Size())
	}
	same("ReduceNB", must.Result(n, reduced), sum)
	for i, want := range [][]int{{1}, {n.Size()}, threes, ones, twos} {
		same("begun", must.Result(n, lists[i]), want)
	}

	must.Store(n, q, 5)
	same("Load", must.Load(n, q), 5)
	same("Swap", must.Swap(n, q, 6), 5)
	old, swapped := must.CompareAndSwap(n, q, 6, 7)
	same("CompareAndSwap", []any{old, swapped}, []any{6, true})
	must.Add(n, q, 1)
	same("FetchAdd", must.FetchAdd(n, q, 2), 8)
	same("FetchAnd", must.FetchAnd(n, q, 14), 10)
	same("FetchOr", must.FetchOr(n, q, 5), 10)
	same("FetchXor", must.FetchXor(n, q, 1), 15)
	same("FetchMin", must.FetchMin(n, q, 9), 14)
	same("FetchMax", must.FetchMax(n, q, 12), 9)
	after, added := must.FetchCompareAdd(n, q, 12, 3)
	same("FetchCompareAdd", []any{after, added}, []any{15, true})
	must.StoreNBI(n, q.Add(1), 8)
	must.SyncImplicit(n)
	must.AddNBI(n, q.Add(1), 3)
	must.AndNBI(n, q.Add(2), 2)
	must.OrNBI(n, q.Add(3), 3)
	must.XorNBI(n, q.Add(4), 1)
	must.MinNBI(n, q.Add(5), 3)
	must.MaxNBI(n, q.Add(6), 30)
	must.SyncImplicit(n)
	must.GetSlice(n, q, got[:7])
	same("NBI", got[:7], []int64{15, 11, 2, 7, 4, 3, 30})
	must.Barrier(n)

	flags := must.NewSlice[uint64](n, 4)
	own := []gas.Ptr[uint64]{flags.On(me), flags.On(me).Add(1), flags.On(me).Add(2), flags.On(me).Add(3)}
	must.PutSignal(n, q, []int64{int64(me)}, flags.On(next), 3)
	must.PutSignalSet(n, q.Add(1), []int64{int64(me)}, flags.On(next).Add(1), 4)
	must.Sync(n, must.PutSignalNB(n, q.Add(2), []int64{1}, flags.On(next).Add(2), 5))
	must.Sync(n, must.PutSignalSetNB(n, q.Add(3), []int64{1}, flags.On(next).Add(3), 6))
	same("WaitAtLeast", must.WaitAtLeast(n, own[0], 2), 3)
	same("WaitUntil", must.WaitUntil(n, own[1], gas.Eq, 4), 4)
	must.WaitUntilAll(n, own, gas.Ge, 3)
	same("WaitUntilAny", must.WaitUntilAny(n, own, -1, gas.Gt, 4), 2)
	same("WaitUntilSome", must.WaitUntilSome(n, nil, own, gas.Gt, 4), []int{2, 3})
	same("TestUntilSome", must.TestUntilSome(n, nil, own, gas.Gt, 9), []int{})
	same("signalled", must.Get(n, p.On(me)), prev)

	a := must.NewArray[int32](n, 10, 2)
	must.Barrier(n)
	if me == 0 {
		must.PutAt(n, a, 9, 90)
		must.PutRange(n, a, 1, []int32{10, 20, 30})
	}
	must.BarrierNotify(n)
	must.BarrierWait(n)
	part := make([]int32, 3)
	must.GetRange(n, a, 2, part)
	same("array", []any{must.GetAt(n, a, 9), part}, []any{90, []int32{20, 30, 0}})
	must.Barrier(n)
	if me == 0 {
		must.PutAtIndexed(n, a, []int{5, 0}, []int32{50, 5})
		must.GetAtIndexed(n, a, []int{0, 9, 5}, part)
		same("indexed array", part, []int32{5, 90, 50})
	}
	must.Barrier(n)
	must.DeleteArray(n, a)

	same("Broadcast", must.Broadcast(n, 0, me+5), 5)
	s := []int{me, 1}
	must.BroadcastSlice(n, 0, s)
	same("BroadcastSlice", s, []int{0, 1})
	same("AllReduce", must.AllReduce(n, 2, gas.Sum), 2*n.Size())
	must.AllReduceSlice(n, s, gas.Sum)
	same("AllReduceSlice", s, []int{0, n.Size()})
	if v := must.Reduce(n, 0, me, gas.Max); me == 0 {
		same("Reduce", v, n.Size()-1)
	}
	must.ReduceSlice(n, 0, []int{me}, gas.Max)
	same("AllGather", must.AllGather(n, me)[n.Size()-1], n.Size()-1)
	if all := must.Gather(n, 0, me); me == 0 {
		same("Gather", len(all), n.Size())
	}
	same("ExclusiveScan", must.ExclusiveScan(n, 1, gas.Sum), me)

	same("Call", must.Call(n, double, next, 7), 14+next)
	same("Go", must.Result(n, must.Go(n, double, next, 8)), 16+next)
	must.Send(n, double, next, 9)
	must.Wait(n, func() bool { return true })

	l := must.NewLock(n)
	must.Lock(n, l)
	must.Unlock(n, l)
	must.RLock(n, l)
	must.RUnlock(n, l)
	must.Barrier(n)
	if me == 0 {
		same("TryLock", []bool{must.TryLock(n, l), must.TryRLock(n, l)}, []bool{true, false})
		must.Unlock(n, l)
	}
	must.Free(n, must.Alloc[int](n, 3))
	mem, m := must.MakeSlice[int](n, 8)
	must.Put(n, m.Add(2), 3)
	same("MakeSlice", mem[2], 3)
	must.FreeSlice(n, m)
	must.Deregister(n, must.Register(n, got))
	must.Deregister(n, must.RegisterFor(n, got, gas.RightRead, next))
	r := must.New[int](n)
	must.BarrierNotify(n)
	for !must.BarrierTry(n) {
	}
	must.Delete(n, r)
	if wrong != nil {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}

func TestEverything(t *testing.T) {
	for _, conduit := range conduits {
		for _, large := range []bool{false, true} {
			if err := gas.Run(gas.Config{Ranks: 3, Conduit: conduit, SegmentSize: 1 << 20, Large: large}, everything); err != nil {
				t.Errorf("%s, large %v: %v", conduit, large, err)
			}
		}
	}
}

var errTest = errors.New("this is the cause")

// plain finds what is wrong with err as what Run returns when rank ended with a plain error
// at a line of this file.
func plain(err error, rank int, kind error) error {
	var r *gas.RankError
	switch {
	case !errors.As(err, &r) || r.Rank != rank || r.Stack != nil:
		return fmt.Errorf("Run returned %#v (%w)", err, err)
	case !errors.Is(err, kind) || !strings.Contains(err.Error(), "_test.go:") || strings.Contains(err.Error(), "panic"):
		return fmt.Errorf("Run returned %w", err)
	}
	return nil
}

// TestErrors gives operations what they refuse, on rank 1, while rank 0 waits.
func TestErrors(t *testing.T) {
	var p gas.Ptr[int64]
	var f gas.Ptr[uint64]
	s := make([]int64, 2)
	for name, op := range map[string]func(n *gas.Node){
		"Get":          func(n *gas.Node) { s[0] = must.Get(n, p) },
		"Put":          func(n *gas.Node) { must.Put(n, p, 1) },
		"PutSlice":     func(n *gas.Node) { must.PutSlice(n, p, s) },
		"GetNB":        func(n *gas.Node) { must.GetNB(n, p, &s[0]) },
		"PutSliceNBI":  func(n *gas.Node) { must.PutSliceNBI(n, p, s) },
		"PutStrided":   func(n *gas.Node) { must.PutStrided(n, p, s, gas.Rows{Count: 5, Len: 5}) },
		"GetIndexed":   func(n *gas.Node) { must.GetIndexed(n, p, []int{1}, s) },
		"Load":         func(n *gas.Node) { must.Load(n, p) },
		"AddNBI":       func(n *gas.Node) { must.AddNBI(n, p, 1) },
		"CAS":          func(n *gas.Node) { must.CompareAndSwap(n, p, 1, 2) },
		"GetAt":        func(n *gas.Node) { must.GetAt(n, gas.Array[int]{}, 7) },
		"Sync":         func(n *gas.Node) { must.Sync(n, 12345) },
		"WaitUntil":    func(n *gas.Node) { must.WaitUntil(n, f, gas.Eq, 0) },
		"WaitUntilAny": func(n *gas.Node) { must.WaitUntilAny(n, nil, -1, gas.Eq, 0) },
		"Unlock":       func(n *gas.Node) { must.Unlock(n, gas.LockAt(gas.Ptr[gas.LockWord]{})) },
		"Call":         func(n *gas.Node) { must.Call(n, double, 9, 1) },
		"Register":     func(n *gas.Node) { must.Register(n, s[:0]) },
		"Must":         func(n *gas.Node) { n.Must(fmt.Errorf("%w: own", gas.ErrBadArg)) },
	} {
		ends(t, name, gas.ErrBadArg, func(n *gas.Node) {
			if n.Rank() == 1 {
				op(n)
			}
		})
	}
}

// ends has op, which both ranks run, end the function of rank 1, while rank 0 waits.
func ends(t *testing.T, name string, kind error, op func(n *gas.Node)) {
	t.Helper()
	waited := error(nil)
	err := gas.Run(gas.Config{Ranks: 2, SegmentSize: 1 << 16}, func(n *gas.Node) error {
		if n.Rank() == 0 {
			op(n)
			waited = n.Barrier()
			return waited
		}
		defer func() {
			if v := recover(); v != nil {
				t.Errorf("%s: recover found %v", name, v)
			}
		}()
		op(n)
		t.Errorf("%s: the function goes on", name)
		return nil
	})
	var peer *gas.PeerError
	if err := plain(err, 1, kind); err != nil || !errors.As(waited, &peer) || peer.Rank != 1 {
		t.Errorf("%s: %v; rank 0 got %v", name, err, waited)
	}
}

// TestGoroutine ends a rank's function by a goroutine that it has started, with what the
// function returns and with what it waits for.
func TestGoroutine(t *testing.T) {
	for _, conduit := range []string{"shm", "udp", "hybrid"} {
		for how, fn := range map[string]func(n *gas.Node, wg *sync.WaitGroup) error{
			"returns nil":   func(_ *gas.Node, wg *sync.WaitGroup) error { wg.Wait(); return nil },
			"returns other": func(_ *gas.Node, wg *sync.WaitGroup) error { wg.Wait(); return errors.New("another") },
			"waits":         func(n *gas.Node, _ *sync.WaitGroup) error { return n.Wait(func() bool { return false }) },
			"must": func(n *gas.Node, wg *sync.WaitGroup) error {
				must.Wait(n, func() bool { return false })
				return nil
			},
		} {
			err := gas.Run(gas.Config{Ranks: 2, Conduit: conduit, SegmentSize: 1 << 16, Lanes: 2}, func(n *gas.Node) error {
				if n.Rank() == 0 {
					return n.Barrier()
				}
				l, err := n.Lane()
				n.Must(err)
				var wg sync.WaitGroup
				for range 2 {
					wg.Go(func() { l.Must(errTest) })
				}
				return fn(n, &wg)
			})
			if err := plain(err, 1, errTest); err != nil {
				t.Errorf("%s, %s: %v", conduit, how, err)
			}
		}
	}
}

// TestPeerDies: a rank whose operation ends because another one has failed is not the cause.
func TestPeerDies(t *testing.T) {
	for _, conduit := range conduits {
		err := gas.Run(gas.Config{Ranks: 3, Conduit: conduit, SegmentSize: 1 << 16}, func(n *gas.Node) error {
			f := must.New[uint64](n)
			switch n.Rank() {
			case 0:
				must.WaitUntil(n, f, gas.Ne, 0)
			case 1:
				n.Must(errTest)
			}
			must.Barrier(n)
			return nil
		})
		if err := plain(err, 1, errTest); err != nil {
			t.Errorf("%s: %v", conduit, err)
		}
	}
}

// TestInCall: a called function that must ends the rank that runs it.
func TestInCall(t *testing.T) {
	for _, conduit := range conduits {
		err := gas.Run(gas.Config{Ranks: 2, Conduit: conduit, SegmentSize: 1 << 16}, func(n *gas.Node) error {
			if n.Rank() == 0 {
				must.Call(n, breaks, 1, 1)
			}
			return n.Barrier()
		})
		if err := plain(err, 1, errTest); err != nil {
			t.Errorf("%s: %v", conduit, err)
		}
	}
}

// TestLeft: a rank that waits in a barrier names the one that has returned.
func TestLeft(t *testing.T) {
	err := gas.Run(gas.Config{Ranks: 2, SegmentSize: 1 << 16}, func(n *gas.Node) error {
		if n.Rank() == 0 {
			return nil
		}
		must.Barrier(n)
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "has returned from") {
		t.Errorf("Run returned %v", err)
	}
}

// TestExit: the status of Node.Exit stays.
func TestExit(t *testing.T) {
	err := gas.Run(gas.Config{Ranks: 2, SegmentSize: 1 << 16}, func(n *gas.Node) error {
		if n.Rank() == 0 {
			n.Must(n.Exit(7))
		}
		must.Barrier(n)
		return nil
	})
	var exit *gas.ExitError
	if !errors.As(err, &exit) || exit.Code != 7 {
		t.Errorf("Run returned %v", err)
	}
}

func TestNothingAllocates(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	err := gas.Run(gas.Config{Ranks: 1, SegmentSize: 1 << 16}, func(n *gas.Node) error {
		p, buf := must.NewSlice[uint64](n, 8), make([]uint64, 4)
		a := must.NewArray[uint64](n, 8, 2)
		if got := testing.AllocsPerRun(100, func() {
			must.Put(n, p, must.Get(n, p)+1)
			must.PutSlice(n, p, buf)
			must.GetSlice(n, p, buf)
			must.FetchAdd(n, p, 1)
			must.AddNBI(n, p, 1)
			must.PutNBI(n, p, 1)
			must.SyncImplicit(n)
			must.PutAt(n, a, 3, must.GetAt(n, a, 4))
		}); got != 0 {
			return fmt.Errorf("%v allocations", got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
