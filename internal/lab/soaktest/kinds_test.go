package soaktest

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/dist"
	"github.com/argon-go/argon/upc/rt"
)

// kind is a kind of resource. run takes some of it and gives all of it back, on all ranks
// together. rounds are the fewest that show more than what is kept for later use.
type kind struct {
	name   string
	rounds int
	run    func(s *soak) error
}

// Registered memory is reached by firehoses, which are kept until others take their place,
// and the last 1024 runs of addresses that were given back are not given out.
const registeredRounds = 2000

var kinds = []kind{
	{"register", registeredRounds, func(s *soak) error {
		mem := make([]byte, s.size(1<<20))
		p, err := gas.Register(s.Node, mem)
		if err == nil {
			err = s.reach(p, len(mem))
		}
		if err == nil {
			err = gas.Free(s.Node, p)
		}
		return err
	}},
	{"register, part and rights", 400, func(s *soak) error {
		mem := make([]int32, 3+s.size(1<<14))
		p, err := gas.RegisterFor(s.Node, mem[1:], gas.RightRead, s.peerOf())
		q, err2 := gas.Register(s.Node, mem[:2])
		all, err3 := gas.AllGather(s.Node, p)
		_, put := all[s.peer()].Get(s.Node) // of one peer alone: the others fault
		if put != nil && !errors.Is(put, gas.ErrFault) {
			return put
		}
		return errors.Join(err, err2, err3, s.Barrier(), gas.Free(s.Node, p), gas.Free(s.Node, q))
	}},
	{"accesses to what is gone", 400, func(s *soak) error {
		mem := make([]byte, s.size(1<<20))
		p, err := gas.Register(s.Node, mem)
		if err != nil {
			return err
		}
		all, err := gas.AllGather(s.Node, p)
		q := all[s.peer()]
		_, err2 := q.Get(s.Node)
		if err := errors.Join(err, err2, s.Barrier(), gas.Free(s.Node, p), s.Barrier()); err != nil {
			return err
		}
		if _, err := q.Get(s.Node); !errors.Is(err, gas.ErrFault) {
			return fmt.Errorf("a get of memory that is deregistered: %v", err)
		}
		return s.Barrier()
	}},
	{"MakeSlice", registeredRounds, func(s *soak) error {
		mem, p, err := gas.MakeSlice[byte](s.Node, s.size(1<<20))
		if err == nil {
			err = s.reach(p, len(mem))
		}
		if err == nil {
			err = gas.Free(s.Node, p)
		}
		return err
	}},
	{"Alloc", 400, func(s *soak) error {
		p, err := gas.Alloc[int64](s.Node, s.size(1<<12))
		q, err2 := gas.Alloc[byte](s.Node, s.size(1<<12))
		all, err3 := gas.AllGather(s.Node, p)
		if err := errors.Join(err, err2, err3, gas.Free(s.Node, q)); err != nil {
			return err
		}
		return errors.Join(gas.Free(s.Node, all[s.peer()]), s.Barrier()) // another's
	}},
	{"New, NewSlice, NewArray", 400, func(s *soak) error {
		p, err := gas.New[int64](s.Node)
		q, err2 := gas.NewSlice[int32](s.Node, 1+s.all.IntN(1<<12))
		a, err3 := gas.NewArray[uint16](s.Node, 1+s.all.IntN(1<<12), 1+s.all.IntN(99))
		return errors.Join(err, err2, err3, gas.Delete(s.Node, p), a.Delete(s.Node), gas.Delete(s.Node, q))
	}},
	{"refused allocations", 400, func(s *soak) error {
		_, err := gas.Alloc[byte](s.Node, segmentSize)
		_, err2 := gas.NewSlice[byte](s.Node, segmentSize)
		if !errors.Is(err, gas.ErrResource) || !errors.Is(err2, gas.ErrResource) {
			return fmt.Errorf("%v, %v", err, err2)
		}
		return nil
	}},
	{"teams", 200, func(s *soak) error {
		t, err := s.World().Split(s.all.IntN(9)+s.Rank()%2, s.Rank())
		if err != nil {
			return err
		}
		sum, err := gas.AllReduce(t, 1, gas.Sum)
		if err != nil || sum != t.Size() {
			return fmt.Errorf("a team of %d counts %d: %w", t.Size(), sum, err)
		}
		m, err := gas.NewTeamSlice[int32](t, 1+s.all.IntN(999))
		u, err2 := t.Split(0, -t.Rank())
		h, err3 := s.HostTeam()
		if err := errors.Join(err, err2, err3); err != nil {
			return err
		}
		return errors.Join(m.Delete(), u.Delete(), t.Delete(), h.Delete())
	}},
	{"collective calls", 200, func(s *soak) error {
		k := 1 + s.all.IntN(3000)
		_, err := gas.AllGatherV(s.Node, make([]int64, s.size(2000)))
		f, err2 := gas.AllReduceNB(s.Node, make([]int64, k), gas.Sum)
		g, err3 := gas.BarrierNB(s.Node)
		if err := errors.Join(err, err2, err3); err != nil {
			return err
		}
		_, err = f.Wait()
		_, err2 = g.Wait()
		out := make([]int32, k*s.Size())
		return errors.Join(err, err2, gas.AllToAll(s.Node, out, make([]int32, len(out))))
	}},
	{"mailboxes", 120, func(s *soak) error {
		got := 0
		b, err := gas.NewMailbox(s.Node, s.name(), func(_ *gas.Node, _ int, items []int64) { got += len(items) })
		if err != nil {
			return err
		}
		c, err := gas.NewBatch(s.Node, s.name(), func(_ *gas.Node, _ int, q uint32) uint64 { return uint64(q) })
		if err != nil {
			return err
		}
		for i := range s.size(500) {
			err = errors.Join(err, b.Push(i%s.Size(), int64(i)))
		}
		err = errors.Join(err, b.Sync(), b.Delete(), c.Ask(s.peer(), 7))
		_, err2 := c.Answers()
		return errors.Join(err, err2, c.Delete())
	}},
	{"lanes", 200, func(s *soak) error {
		l, err := s.Lane()
		if err != nil {
			return err
		}
		// The peer's call comes by the same lane, which is this goroutine's to poll.
		s.lanes++
		_, err = serve.Call(l, s.peer(), make([]byte, s.size(3000)))
		return errors.Join(err, l.Wait(func() bool { return *served.Of(s.Node) == s.lanes }), l.Free(), s.Barrier())
	}},
	{"calls and futures", 200, func(s *soak) error {
		to, k := s.peer(), s.size(20000)
		f, err := echo.Go(s.Node, to, make([]byte, k))
		g, err2 := task.Go(s.Node, to, k)
		h, err3 := fails.Go(s.Node, to, k)
		i, err4 := echo.Go(s.Node, to, nil)
		j, err5 := task.Go(s.Node, to, 0)
		_, err6 := panics.Call(s.Node, to, k)
		if err := errors.Join(err, err2, err3, err4, err5, echo.Send(s.Node, to, make([]byte, 9))); err != nil {
			return err
		}
		b, err := f.Wait()
		if len(b) != k || err != nil {
			return fmt.Errorf("%d bytes are returned of %d: %w", len(b), k, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		then, none := false, i.Done()
		_, err2 = g.WaitContext(ctx)
		if errors.Is(err2, context.Canceled) {
			_, err2 = g.Wait() // which gives its place back
		}
		_, err3 = h.Wait()
		if err2 != nil || err3 == nil || err6 == nil {
			return fmt.Errorf("%v, %v, %v", err2, err3, err6)
		}
		_, err = i.Wait()
		<-none
		s.Defer(func(*gas.Node) {})
		return errors.Join(err, j.Then(func(*gas.Node, int, error) { then = true }),
			s.Wait(func() bool { return then }), s.Quiesce())
	}},
	{"handles and regions", 200, func(s *soak) error {
		a, err := gas.NewSlice[byte](s.Node, 1<<16)
		if err != nil {
			return err
		}
		to, k := a.On(s.peer()), s.size(1<<16)
		buf := make([]byte, k)
		h, err := to.PutSliceNB(s.Node, buf)
		g, err2 := to.GetSliceNB(s.Node, buf)
		if err := errors.Join(err, err2, s.SyncAll([]gas.Handle{h, g}), to.PutSliceNBI(s.Node, buf), s.SyncImplicit()); err != nil {
			return err
		}
		x := s.Layers().Extended
		r, access := x.NewRegion(), x.NewRegion()
		if err := errors.Join(r.GetNBI(to.Rank(), to.NLA(), buf), r.Sync(extended.All), x.BeginRegion(access),
			access.PutNBI(to.Rank(), to.NLA(), buf)); err != nil {
			return err
		}
		h, err = access.End()
		return errors.Join(err, s.Sync(h), s.Barrier(), gas.Delete(s.Node, a))
	}},
	{"signals", 200, func(s *soak) error {
		flag, err := gas.New[uint64](s.Node)
		a, err2 := gas.NewSlice[byte](s.Node, 1<<12)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		to := s.peer()
		err = a.On(to).PutSignal(s.Node, make([]byte, s.size(1<<12)), flag.On(to), gas.SignalAdd, 1)
		_, err2 = gas.WaitUntil(s.Node, flag.On(s.Rank()), gas.Ge, 1)
		return errors.Join(err, err2, gas.Delete(s.Node, flag), gas.Delete(s.Node, a))
	}},
	{"locks", 100, func(s *soak) error {
		l, err := gas.NewLock(s.Node)
		if err != nil {
			return err
		}
		if err := errors.Join(l.Lock(s.Node), l.Unlock(s.Node), l.RLock(s.Node), l.RUnlock(s.Node)); err != nil {
			return err
		}
		ok, err := l.TryLock(s.Node)
		if ok {
			err = errors.Join(err, l.Unlock(s.Node))
		}
		own, err2 := gas.Alloc[gas.LockWord](s.Node, 1)
		if err := errors.Join(err, err2, gas.LockAt(own).Lock(s.Node), gas.LockAt(own).Unlock(s.Node), gas.Free(s.Node, own)); err != nil {
			return err
		}
		return gas.Delete(s.Node, l.Word())
	}},
	{"maps", 60, func(s *soak) error {
		m, err := dist.NewMap[string, int](s.Node, s.name())
		if err != nil {
			return err
		}
		count, err := dist.NewUpdate(m, s.name(), func(e *dist.Entry[string, int], by int) int { *e.Value += by; return *e.Value })
		if err != nil {
			return err
		}
		keys, values := []string{}, []int{}
		for i := range s.size(100) {
			keys, values = append(keys, fmt.Sprint(s.Rank(), i)), append(values, i)
		}
		err = m.PutAll(keys, values)
		_, err2 := count.Call(keys[0], 1)
		_, err3 := m.Remove(keys[len(keys)-1])
		if err := errors.Join(err, err2, err3, s.Barrier()); err != nil {
			return err
		}
		for range maps.Collect(m.All()) {
			break
		}
		return m.Delete()
	}},
	{"queues", 40, func(s *soak) error {
		q, err := dist.NewQueue[int](s.Node, s.name(), 0)
		if err != nil {
			return err
		}
		return errors.Join(q.PushAll(make([]int, s.size(99))), q.Run(func(*gas.Node, int) error { return nil }), q.Delete())
	}},
	{"rows and matrices", 60, func(s *soak) error {
		cols := 1 + s.all.IntN(20)
		rows := make([][]dist.Nonzero[float64], s.size(20))
		for i := range rows {
			rows[i] = make([]dist.Nonzero[float64], s.own.IntN(cols))
		}
		r, err := dist.NewRows(s.Node, s.name(), rows)
		if err != nil {
			return err
		}
		a, err := dist.NewSparse(r, cols)
		if err != nil {
			return err
		}
		x, err := gas.NewArray[float64](s.Node, cols, 1)
		if err != nil {
			return err
		}
		_, err = a.Times(x)
		b, err2 := a.Transpose()
		m, err3 := dist.NewMatrix[int32](s.Node, s.name(), cols, 1+s.all.IntN(40), 3, 4)
		bits, err4 := dist.NewBitmap(s.Node, s.name(), s.all.IntN(1<<14))
		if err := errors.Join(err, err2, err3, err4); err != nil {
			return err
		}
		return errors.Join(b.Delete(), m.Delete(), bits.Delete(), a.Delete(), x.Delete(s.Node))
	}},
	{"objects and locks of UPC", 100, func(s *soak) error {
		t := s.thread
		p := t.AllAlloc(uint64(1+s.all.IntN(9)), uint64(1+s.all.IntN(999)))
		q, r := t.GlobalAlloc(2, uint64(s.size(999))), t.Alloc(uint64(s.size(999)))
		rt.Put(t, p, int32(s.Rank()))
		l, own := t.AllLockAlloc(), t.GlobalLockAlloc()
		for _, l := range []rt.Lock{l, own} {
			t.Lock(l)
			t.Unlock(l)
		}
		t.LockAttempt(own)
		t.LockFree(own)
		d := t.AllDomainAlloc(rt.AtomicInt, rt.OpAdd)
		t.SyncI()
		t.BarrierAny()
		t.Free(q)
		t.Free(r)
		t.AllFree(p)
		t.AllLockFree(l)
		t.AllDomainFree(d)
		return nil
	}},
}

// Functions that ranks call.
var (
	served gas.PerRank[int]
	serve  = gas.RegisterCall("soak: serve", func(n *gas.Node, b []byte) []byte { *served.Of(n)++; return b })

	echo  = gas.RegisterCall("soak: echo", func(_ *gas.Node, b []byte) []byte { return b })
	task  = gas.RegisterTask("soak: task", func(c *gas.Call, k int) (int, error) { return k, nil })
	fails = gas.RegisterFunc("soak: fails", func(_ *gas.Call, k int) (int, error) {
		return 0, fmt.Errorf("%d is refused", k)
	})
	panics = gas.RegisterCall("soak: panics", func(_ *gas.Node, k int) int { panic(k) })
)

// size is a number of this rank's from 1 to most, small ones as often as large ones.
func (s *soak) size(most int) int {
	for s.own.IntN(3) > 0 && most > 16 {
		most /= 8
	}
	return 1 + s.own.IntN(most)
}

// name is another one in each round.
func (s *soak) name() string { return fmt.Sprintf("soak %d", s.round) }

// peerOf is the rank whose peer this one is next.
func (s *soak) peerOf() int { return (s.Rank() + 1) % s.Size() }

// reach has every other rank read and write the memory at p, in part and whole.
func (s *soak) reach(p gas.Ptr[byte], n int) error {
	all, err := gas.AllGather(s.Node, p)
	if err != nil {
		return err
	}
	sizes, err := gas.AllGather(s.Node, n)
	if err != nil {
		return err
	}
	for r := range all {
		if r == s.Rank() {
			continue
		}
		i := s.own.IntN(sizes[r])
		if err := all[r].Add(i).Put(s.Node, 1); err != nil {
			return err
		}
		if r == s.peerOf() {
			if err := all[r].GetSlice(s.Node, make([]byte, sizes[r])); err != nil {
				return err
			}
		}
	}
	return s.Barrier()
}
