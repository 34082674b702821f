package window_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/gastest"
	"github.com/argon-go/argon/gas/window"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

func TestMain(m *testing.M) { os.Exit(testmain.Run(m)) }

// conduits of the tests.
var conduits = testjob.Concurrent("shm", "udp", "sim")

// access is one of an epoch.
type access struct {
	by, to, at int
	op         int
	shape      gas.Shape
	local      []int64 // what is put, or what a get is to find
	where      []int   // the elements of local that it moves
}

const (
	opPut = iota
	opGet
	opAdd
	opMax
	opXor
)

var accumulations = map[int]func(*gas.Node, gas.Ptr[int64], int64) error{
	opAdd: gas.AddNBI[int64], opMax: gas.MaxNBI[int64], opXor: gas.XorNBI[int64],
}

// The ways to synchronize.
const (
	byFence = iota
	byStart
	byLock
	ways
)

// step is an epoch, and what the ranks' memory is after it.
type step struct {
	way      int
	accesses []access
	after    [][]int64
}

// program is what all ranks do.
type program struct {
	conduit    string
	ranks      int
	team       bool // the ranks in reverse order
	registered bool
	length     []int
	steps      []step
}

// elements are those at the target that a shape is about, and those in the slice, which is as long as the
// second result says.
func elements(s gas.Shape, flat int) (far, near []int, have int) {
	switch {
	case s.Index != nil:
		for k, i := range s.Index {
			far, near = append(far, i), append(near, k)
		}
		return far, near, len(s.Index)
	case s.Count == 0:
		s = gas.Shape{Count: 1, Len: flat}
	}
	for i := range s.Count {
		for j := range s.Len {
			far, near = append(far, i*max(s.Remote, s.Len)+j), append(near, i*max(s.Local, s.Len)+j)
		}
	}
	return far, near, near[len(near)-1] + 1
}

// drawn is a program, by which no two accesses of an epoch conflict.
func drawn(t *rapid.T) *program {
	p := &program{
		conduit: rapid.SampledFrom(conduits).Draw(t, "conduit"), ranks: rapid.IntRange(1, 4).Draw(t, "ranks"),
		team: rapid.Bool().Draw(t, "team"), registered: rapid.Bool().Draw(t, "registered"),
	}
	now := make([][]int64, p.ranks)
	for r := range now {
		now[r] = make([]int64, rapid.SampledFrom([]int{0, 1, 7, 40}).Draw(t, "length"))
		p.length = append(p.length, len(now[r]))
	}
	for range rapid.IntRange(1, 5).Draw(t, "epochs") {
		s := step{way: rapid.IntRange(0, ways-1).Draw(t, "way")}
		next := make([][]int64, p.ranks)
		use := make([]map[int]int, p.ranks) // what an element is used for
		for r := range next {
			next[r], use[r] = slices.Clone(now[r]), map[int]int{}
		}
		for range rapid.IntRange(0, 12).Draw(t, "accesses") {
			a := access{by: rapid.IntRange(0, p.ranks-1).Draw(t, "by"), to: rapid.IntRange(0, p.ranks-1).Draw(t, "to"), op: rapid.IntRange(opPut, opXor).Draw(t, "op")}
			length := p.length[a.to]
			if length == 0 {
				continue
			}
			a.at = rapid.IntRange(0, length-1).Draw(t, "at")
			flat := rapid.IntRange(1, 9).Draw(t, "count")
			switch rapid.IntRange(0, 2).Draw(t, "shape") {
			case 1:
				row := rapid.IntRange(1, 3).Draw(t, "row")
				a.shape = gas.Shape{Count: rapid.IntRange(1, 3).Draw(t, "rows"), Len: row, Remote: rapid.IntRange(row, 5).Draw(t, "remote"), Local: rapid.IntRange(row, 5).Draw(t, "local")}
			case 2:
				a.shape.Index = rapid.SliceOfNDistinct(rapid.IntRange(0, 12), 1, 5, rapid.ID[int]).Draw(t, "index")
			}
			far, near, have := elements(a.shape, flat)
			free := true
			for _, i := range far {
				u, used := use[a.to][a.at+i]
				free = free && a.at+i < length && (!used || u == a.op && a.op != opPut)
			}
			if !free {
				continue
			}
			a.local, a.where = make([]int64, have), near
			for k, i := range far {
				i += a.at
				use[a.to][i] = a.op
				v, q := int64(rapid.IntRange(-9, 9).Draw(t, "value")), &next[a.to][i]
				switch a.op {
				case opPut:
					*q = v
				case opGet:
					v = *q
				case opAdd:
					*q += v
				case opMax:
					*q = max(*q, v)
				case opXor:
					*q ^= v
				}
				a.local[near[k]] = v
			}
			s.accesses = append(s.accesses, a)
		}
		s.after, now = next, next
		p.steps = append(p.steps, s)
	}
	return p
}

// begin begins the accesses of s by rank me to rank to, or to all if that is -1, and returns what
// checks the gets afterwards.
func (s *step) begin(w *window.Window[int64], me, to int) (check func() error, err error) {
	var gets []func() error
	for _, a := range s.accesses {
		if a.by != me || to >= 0 && a.to != to || err != nil {
			continue
		}
		switch a.op {
		case opPut:
			err = w.Put(a.to, a.at, a.local, a.shape)
		case opGet:
			got := make([]int64, len(a.local))
			err = w.Get(a.to, a.at, got, a.shape)
			gets = append(gets, func() error {
				for _, i := range a.where {
					if got[i] != a.local[i] {
						return fmt.Errorf("a get at %d of rank %d, %+v, has %v, not %v", a.at, a.to, a.shape, got, a.local)
					}
				}
				return nil
			})
		default:
			err = w.Accumulate(a.to, a.at, a.local, a.shape, accumulations[a.op])
		}
	}
	return func() error {
		for _, g := range gets {
			if err := g(); err != nil {
				return err
			}
		}
		return nil
	}, err
}

// epoch does the accesses of s by rank me.
func (s *step) epoch(w *window.Window[int64], me int) error {
	others := func(mine func(a access) (is bool, other int)) (all []int) {
		for _, a := range s.accesses {
			if is, r := mine(a); is && !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
		return all
	}
	targets := others(func(a access) (bool, int) { return a.by == me, a.to })
	switch s.way {
	case byFence:
		if err := w.Fence(); err != nil {
			return err
		}
		check, err := s.begin(w, me, -1)
		return errors.Join(err, w.Fence(), check())
	case byStart:
		if err := w.Post(others(func(a access) (bool, int) { return a.to == me, a.by })...); err != nil {
			return err
		}
		if err := w.Start(targets...); err != nil {
			return err
		}
		check, err := s.begin(w, me, -1)
		return errors.Join(err, w.Complete(), check(), w.Wait())
	}
	for _, r := range targets {
		lock := w.LockShared
		if slices.ContainsFunc(s.accesses, func(a access) bool { return a.by == me && a.to == r && a.op != opGet }) {
			lock = w.Lock
		}
		if err := lock(r); err != nil {
			return err
		}
		check, err := s.begin(w, me, r)
		if err := errors.Join(err, w.Unlock(r), check()); err != nil {
			return err
		}
	}
	return nil
}

// run runs p.
func (p *program) run() error {
	return gas.Run(gas.Config{Conduit: p.conduit, Ranks: p.ranks, SegmentSize: 1 << 18}, func(n *gas.Node) error {
		var g gas.Group = n
		if p.team {
			t := gas.Must(n.World().Split(0, n.Size()-n.Rank()))
			defer t.Delete()
			g = t
		}
		me := g.Rank()
		var at gas.Ptr[int64]
		var err error
		own := make([]int64, p.length[me])
		if len(own) > 0 {
			if p.registered {
				at, err = gas.Register(n, own)
			} else if at, err = gas.Alloc[int64](n, len(own)); err == nil {
				own, _ = at.LocalSlice(n, len(own))
			}
		}
		if err != nil {
			return err
		}
		w := gas.Must(window.New(g, at, len(own)))
		for i := range p.steps {
			s := &p.steps[i]
			if err := s.epoch(w, me); err != nil {
				return fmt.Errorf("epoch %d: %w", i, err)
			}
			if s.way == byLock { // of which the target does not learn
				n.Must(n.Barrier())
			}
			if !slices.Equal(own, s.after[me]) {
				return fmt.Errorf("epoch %d: rank %d has %v, not %v", i, me, own, s.after[me])
			}
			if i+1 < len(p.steps) && p.steps[i+1].way == byLock { // for which the target need not be ready
				n.Must(n.Barrier())
			}
		}
		return w.Delete()
	})
}

// TestModel: what epochs of all kinds leave in the ranks' memory, and what their gets have, is what a
// sequential program finds.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := drawn(t).run(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestLockExcludes: what a rank puts under a lock another rank's puts do not mix with, and a shared lock sees it whole.
func TestLockExcludes(t *testing.T) {
	const count, rounds = 33, 20
	for _, conduit := range conduits {
		gastest.RunConfig(t, gas.Config{Conduit: conduit, Ranks: 3, SegmentSize: 1 << 18}, func(n *gas.Node) error {
			p := gas.Must(gas.NewSlice[int64](n, count))
			w := gas.Must(window.New(n, p, count))
			own, got := make([]int64, count), make([]int64, count)
			for i := range rounds {
				for k := range own {
					own[k] = int64(1000*n.Rank() + i)
				}
				to := i % n.Size()
				n.Must(errors.Join(w.Lock(to), w.Put(to, 0, own[:count/2], gas.Shape{})))
				for range 30 {
					n.Poll()
					runtime.Gosched()
				}
				n.Must(errors.Join(w.Put(to, count/2, own[count/2:], gas.Shape{}), w.Unlock(to)))
				n.Must(errors.Join(w.LockShared(to), w.Get(to, 0, got, gas.Shape{}), w.Unlock(to)))
				if slices.Max(got) != slices.Min(got) {
					return fmt.Errorf("round %d: two ranks' puts are mixed: %v", i, got)
				}
			}
			return w.Delete()
		})
	}
}

// TestMisuse: accesses outside of epochs or of the window, and epochs that do not end as they began, are errors.
func TestMisuse(t *testing.T) {
	err := gas.Run(gas.Config{Ranks: 2, SegmentSize: 1 << 18}, func(n *gas.Node) error {
		p, err := gas.NewSlice[int64](n, 8)
		if err != nil {
			return err
		}
		wantErr := func(err, is error, text string) error {
			if !errors.Is(err, is) || !strings.Contains(err.Error(), text) {
				return fmt.Errorf("the error is %v, not %v with %q", err, is, text)
			}
			return nil
		}
		count := 8
		if n.Rank() == 1 {
			count = -1
		}
		_, err = window.New(n, p, count)
		n.Must(wantErr(err, gas.ErrBadArg, []string{"rank 1 has no memory", "-1 elements"}[n.Rank()]))
		w := gas.Must(window.New(n, p, 8))
		src := make([]int64, 4)
		n.Must(wantErr(w.Put(1, 0, src, gas.Shape{}), gas.ErrNotReady, "outside of an epoch"))
		n.Must(w.Fence())
		for text, err := range map[string]error{
			"at rank 2": w.Put(2, 0, src, gas.Shape{}),
			"Put at displacement 5 of rank 1: 1 rows of 4": w.Put(1, 5, src, gas.Shape{}),
			"Get at displacement -1":                       w.Get(1, -1, src, gas.Shape{}),
			"Accumulate at displacement 9":                 w.Accumulate(1, 9, src, gas.Shape{}, gas.AddNBI[int64]),
			"2 rows of 2 elements, 7 apart there":          w.Put(1, 0, src, gas.Shape{Count: 2, Len: 2, Remote: 7}),
			"2 rows of 2 elements, 0 apart there and 3":    w.Accumulate(1, 0, src, gas.Shape{Count: 2, Len: 2, Local: 3}, gas.AddNBI[int64]),
			"1 indices for 4":                              w.Get(1, 0, src, gas.Shape{Index: []int{0}}),
			"index 1 is 7; there are 7":                    w.Get(1, 1, src[:2], gas.Shape{Index: []int{0, 7}}),
			"-1 rows":                                      w.Put(1, 0, src, gas.Shape{Count: -1, Len: 2}),
			"named twice":                                  w.Post(0, 0),
			"Start at rank -1":                             w.Start(-1),
		} {
			n.Must(wantErr(err, gas.ErrBadArg, text))
		}
		n.Must(n.Barrier())
		n.Must(w.Lock(n.Rank()))
		for text, err := range map[string]error{
			"LockShared of rank": w.LockShared(n.Rank()),
			"does not have":      w.Unlock(1 - n.Rank()),
			"Put at rank":        w.Put(1-n.Rank(), 0, src, gas.Shape{}),
		} {
			n.Must(wantErr(err, gas.ErrNotReady, text))
		}
		n.Must(w.Unlock(n.Rank()))
		n.Must(errors.Join(w.Post(0, 1), wantErr(w.Post(1), gas.ErrNotReady, "Post for ranks [1], before that for ranks [0 1]")))
		n.Must(errors.Join(w.Start(1, 0), wantErr(w.Start(0), gas.ErrNotReady, "Start for ranks [0]"), w.Complete(), w.Wait()))
		n.Must(w.Delete())
		return wantErr(w.Fence(), gas.ErrNotReady, "deleted")
	})
	if err != nil {
		t.Error(err)
	}
}

// TestRankFails: a rank that fails in an epoch ends the waits of the others with an error.
func TestRankFails(t *testing.T) {
	for _, conduit := range conduits {
		err := gas.Run(gas.Config{Conduit: conduit, Ranks: 3, SegmentSize: 1 << 18}, func(n *gas.Node) error {
			w := gas.Must(window.New(n, gas.Ptr[int64]{}, 0))
			switch n.Rank() {
			case 0:
				return w.Start(1)
			case 1:
				return errors.New("rank 1 gives up")
			}
			return w.Fence()
		})
		if err == nil || !strings.Contains(err.Error(), "rank 1 gives up") {
			t.Errorf("%s: %v", conduit, err)
		}
	}
}
