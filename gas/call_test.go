package gas

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

type summands struct {
	seq  uint32
	data [120]uint32
}

type tiny struct {
	a uint8
	b uint16
}

// The functions of these tests, with arguments and results of all sizes.
var (
	callNothing = RegisterCall("test.nothing", func(n *Node, _ struct{}) struct{} { return struct{}{} })
	callTiny    = RegisterCall("test.tiny", func(n *Node, a tiny) tiny { return tiny{a.a + 1, a.b ^ 0xffff} })
	callRank    = RegisterCall("test.rank", func(n *Node, _ struct{}) int { return n.Rank() })
	callSum     = RegisterCall("test.sum", func(n *Node, a summands) uint64 {
		s := uint64(a.seq)
		for _, v := range a.data {
			s += uint64(v)
		}
		return s
	})
	callFill = RegisterCall("test.fill", func(n *Node, v uint32) (b summands) {
		b.seq = v
		for i := range b.data {
			b.data[i] = v * uint32(i)
		}
		return b
	})
	callEdge = RegisterCall("test.edge", func(n *Node, a [13]uint32) [14]uint32 {
		var r [14]uint32
		copy(r[:], a[:])
		r[13] = ^a[12]
		return r
	})
	callOver = RegisterCall("test.over", func(n *Node, a [14]uint32) [15]uint32 {
		var r [15]uint32
		copy(r[:], a[:])
		r[14] = ^a[13]
		return r
	})
	callAdd = RegisterCall("test.add", func(n *Node, a Ptr[uint64]) uint64 {
		p, ok := a.Local(n)
		if !ok {
			return 0
		}
		*p++ // one call at a time runs on a rank
		return *p
	})
)

func TestCallsOfAllSizes(t *testing.T) {
	runN(t, 3, func(n *Node) error {
		for round := range 50 {
			for r := range n.Size() {
				Must(callNothing.Call(n, r, struct{}{}))
				if v, err := callRank.Call(n, r, struct{}{}); err != nil || v != r {
					return fmt.Errorf("rank %d says it is %d (%v)", r, v, err)
				}
				v, err := callTiny.Call(n, r, tiny{uint8(round), uint16(r)})
				if want := (tiny{uint8(round) + 1, uint16(r) ^ 0xffff}); err != nil || v != want {
					return fmt.Errorf("tiny: %v, want %v (%v)", v, want, err)
				}
				b := Must(callFill.Call(n, r, uint32(round+r)))
				for i, d := range b.data {
					if d != uint32(round+r)*uint32(i) {
						return fmt.Errorf("fill: %d at %d", d, i)
					}
				}
				want := uint64(b.seq)
				for _, d := range b.data {
					want += uint64(d)
				}
				if s, err := callSum.Call(n, r, b); err != nil || s != want {
					return fmt.Errorf("sum %d, want %d (%v)", s, want, err)
				}
				var e13 [13]uint32
				var e14 [14]uint32
				for i := range e14 {
					e14[i] = uint32(round * (i + 1))
				}
				copy(e13[:], e14[:])
				if e, err := callEdge.Call(n, r, e13); err != nil || [13]uint32(e[:13]) != e13 || e[13] != ^e13[12] {
					return fmt.Errorf("edge: %v (%v)", e, err)
				}
				if e, err := callOver.Call(n, r, e14); err != nil || [14]uint32(e[:14]) != e14 || e[14] != ^e14[13] {
					return fmt.Errorf("over: %v (%v)", e, err)
				}
			}
		}
		return nil
	})
}

// Many calls under way at once, from many goroutines of every rank, to one
// counter that only calls touch.
func TestFutures(t *testing.T) {
	const goroutines, each = 4, 100
	runN(t, 3, func(n *Node) error {
		p := Must(New[uint64](n))
		target := p.On(1)
		errc := make(chan error, goroutines)
		for range goroutines {
			go func() {
				var fs []Future[uint64]
				for range each {
					f, err := callAdd.Go(n, 1, target)
					if err != nil {
						errc <- err
						return
					}
					fs = append(fs, f)
				}
				last := uint64(0)
				for i := len(fs) - 1; i >= 0; i-- {
					v, err := fs[i].Wait()
					if err != nil || v == 0 || v > 3*goroutines*each {
						errc <- fmt.Errorf("count %d: %v", v, err)
						return
					}
					if i == len(fs)-1 {
						last = v
					}
				}
				if last == 0 {
					errc <- errors.New("no count")
					return
				}
				_, err := fs[0].Wait()
				errc <- wantErr(err, ErrBadArg, "taken twice")
			}()
		}
		for range goroutines {
			n.Must(<-errc)
		}
		n.Must(n.Barrier())
		if v, err := target.Get(n); err != nil || v != 3*goroutines*each {
			return fmt.Errorf("counted to %d (%v)", v, err)
		}
		return n.Barrier()
	})
}

// With a progress goroutine a Future serves in select, and a rank answers while
// its function computes.
func TestFutureInSelect(t *testing.T) {
	cfg := small(2)
	cfg.Progress = true
	var release sync.WaitGroup
	release.Add(1)
	err := Run(cfg, func(n *Node) error {
		if n.Rank() == 1 {
			release.Wait() // does not answer by itself
			return nil
		}
		defer release.Done()
		for i := range 200 {
			f := Must(callRank.Go(n, 1, struct{}{}))
			select {
			case <-f.Done():
			case <-make(chan int): // never
			}
			if !f.Ready() {
				return errors.New("done and not ready")
			}
			if i%2 == 0 {
				<-f.Done() // again
			}
			if v, err := f.Wait(); err != nil || v != 1 {
				return fmt.Errorf("%d, %v", v, err)
			}
			<-f.Done() // after Wait
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSendAsksForNothing(t *testing.T) {
	runN(t, 2, func(n *Node) error {
		p := Must(New[uint64](n))
		other := p.On(1 - n.Rank())
		for range 500 {
			n.Must(callAdd.Send(n, 1-n.Rank(), other))
		}
		n.Must(n.Wait(func() bool {
			v, err := Load(n, p)
			return err != nil || v == 500
		}))
		n.calls.mu.Lock()
		defer n.calls.mu.Unlock()
		if k := len(n.calls.slots); k != 0 {
			return fmt.Errorf("%d slots were used", k)
		}
		return nil
	})
}

func TestCallRefuses(t *testing.T) {
	runN(t, 2, func(n *Node) error {
		for _, rank := range []int{-1, 2, 1 << 30} {
			_, err := callRank.Call(n, rank, struct{}{})
			n.Must(wantErr(err, ErrBadArg, fmt.Sprint(rank), "test.rank"))
			n.Must(wantErr(callRank.Send(n, rank, struct{}{}), ErrBadArg, fmt.Sprint(rank)))
		}
		n.calls.mu.Lock()
		defer n.calls.mu.Unlock()
		if len(n.calls.free) != len(n.calls.slots) {
			return fmt.Errorf("%d slots, %d free", len(n.calls.slots), len(n.calls.free))
		}
		return nil
	})
	for name, f := range map[string]func(){
		"test.rank":                       func() { RegisterCall("test.rank", func(*Node, int) int { return 0 }) },
		"":                                func() { RegisterCall("", func(*Node, int) int { return 0 }) },
		"and a function":                  func() { RegisterCall[int, int]("test.none", nil) },
		"result: type *int cannot travel": func() { RegisterCall("test.pointer", func(*Node, int) *int { return nil }) },
		"field at has type map[int]int":   func() { RegisterCall("test.map", func(*Node, struct{ at map[int]int }) int { return 0 }) },
		"field a[].b[][] has type chan int": func() {
			RegisterCall("test.chan", func(*Node, struct{ a []struct{ b [2][]chan int } }) int { return 0 })
		},
		"RegisterTask(\"test.func\"): argument: type func() cannot": func() {
			RegisterTask("test.func", func(*Call, func()) (int, error) { return 0, nil })
		},
		"RegisterFunc(\"test.any\"): result: type []interface {} cannot travel: field []": func() {
			RegisterFunc("test.any", func(*Call, int) ([]any, error) { return nil, nil })
		},
		"field next[] has type gas.endless, which holds itself": func() {
			RegisterCall("test.endless", func(_ *Node, e endless) int { return len(e.name) + len(e.next) })
		},
	} {
		func() {
			defer func() {
				if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), name) {
					t.Errorf("%s: %v", name, p)
				}
			}()
			f()
		}()
	}
}

// endless holds itself.
type endless struct {
	name string
	next []endless
}

// A function registered while a job runs is refused there.
func TestCallRegisteredTooLate(t *testing.T) {
	var late *Func[int, int]
	runN(t, 1, func(n *Node) error {
		late = RegisterCall(fmt.Sprintf("test.late %d", time.Now().UnixNano()), func(_ *Node, a int) int { return a + 1 })
		_, err := late.Call(n, 0, 1)
		return wantErr(err, ErrNotReady, "after Run had begun")
	})
	runN(t, 1, func(n *Node) error {
		v, err := late.Call(n, 0, 41)
		if err != nil || v != 42 {
			return fmt.Errorf("%d, %v", v, err)
		}
		return nil
	})
}

var callPanics = RegisterCall("test.panics", func(n *Node, v int) int {
	if v == 7 {
		panic("seven")
	}
	return v
})

// A panic in a called function is the caller's error if it waits, else the called rank's.
func TestCalledFunctionPanics(t *testing.T) {
	runN(t, 2, func(n *Node) error {
		if n.Rank() == 0 {
			_, err := callPanics.Call(n, 1, 7)
			var ce *CallError
			if !errors.As(err, &ce) || ce.Rank != 1 || ce.Func != "test.panics" || ce.Text != "seven" || !ce.Panic || !strings.Contains(ce.Stack, "call_test.go") {
				return fmt.Errorf("the caller: %w", err)
			}
			if v, err := callPanics.Call(n, 1, 8); v != 8 || err != nil {
				return fmt.Errorf("afterwards: %d, %w", v, err)
			}
		}
		return n.Barrier()
	})
	err := Run(small(2), func(n *Node) error {
		if n.Rank() == 0 {
			n.Must(callPanics.Send(n, 1, 7))
		}
		return n.Wait(func() bool { return false })
	})
	var re *RankError
	if !errors.As(err, &re) || re.Rank != 1 || !strings.Contains(err.Error(), "seven") || !strings.Contains(string(re.Stack), "call_test.go") {
		t.Errorf("Run: %v", err)
	}
}

var callBlocks = RegisterCall("test.blocks", func(n *Node, _ struct{}) (r refusal) {
	err := n.Barrier()
	if err == nil {
		return
	}
	r.n = uint32(copy(r.text[:], err.Error()))
	return r
})

// A called function that waits is told so, and the job ends instead of hanging.
func TestCalledFunctionBlocks(t *testing.T) {
	err := Run(small(2), func(n *Node) error {
		if n.Rank() == 0 {
			r := Must(callBlocks.Call(n, 1, struct{}{}))
			return fmt.Errorf("it may: %s", r.text[:r.n])
		}
		return n.Wait(func() bool { return false })
	})
	if err == nil || !strings.Contains(err.Error(), "handler") {
		t.Errorf("Run: %v", err)
	}
}

var visits PerRank[map[int]int]

var callVisit = RegisterCall("test.visit", func(n *Node, from int) int {
	m := visits.Of(n)
	if *m == nil {
		*m = map[int]int{}
	}
	(*m)[from]++
	return len(*m)
})

func TestPerRank(t *testing.T) {
	var other PerRank[int]
	for range 2 { // a new run has new variables
		runN(t, 3, func(n *Node) error {
			for range n.Rank() + 1 {
				Must(callVisit.Call(n, 1, n.Rank()))
			}
			*other.Of(n) += 10 + n.Rank()
			n.Must(n.Barrier())
			if v := *other.Of(n); v != 10+n.Rank() {
				return fmt.Errorf("another rank's: %d", v)
			}
			var own [64]PerRank[int]
			var g sync.WaitGroup
			for i := range 4 * len(own) { // goroutines that ask first get the same one
				g.Go(func() {
					if a, b := own[i%64].Of(n), own[i%64].Of(n); a != b || a == own[(i+1)%64].Of(n) {
						t.Errorf("%p and %p, of variable %d", a, b, i%64)
					}
				})
			}
			g.Wait()
			m := *visits.Of(n)
			if n.Rank() == 1 && (len(m) != 3 || m[0] != 1 || m[1] != 2 || m[2] != 3) || n.Rank() != 1 && m != nil {
				return fmt.Errorf("visits %v", m)
			}
			return n.Barrier()
		})
	}
}
