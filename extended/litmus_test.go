package extended_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/testkit/testmain"
	"github.com/argon-go/argon/segment"
)

// litmus is a small program of several ranks with an outcome that the memory model
// of the package comment forbids.
type litmus struct {
	name    string
	threads int
	// step is what rank me does with the words a, of rank 0, and b, of rank 1, which
	// are 0; it returns what it has read.
	step func(x *extended.Initiator, me int, a, b segment.NLA) (r, s uint64, err error)
	// forbidden reports whether the ranks, by their numbers, must not have read this.
	forbidden func(r, s []uint64) bool
	plain     bool // has accesses that a race detector calls races
}

// The ways to access the words of litmus tests.
type access struct {
	store func(x *extended.Initiator, rank int, to segment.NLA, v uint64) error
	load  func(x *extended.Initiator, rank int, from segment.NLA) (uint64, error)
}

var (
	atomics64 = access{extended.Store[uint64], extended.Load[uint64]}
	atomics32 = access{
		func(x *extended.Initiator, rank int, to segment.NLA, v uint64) error {
			return extended.Store[uint32](x, rank, to, uint32(v))
		},
		func(x *extended.Initiator, rank int, from segment.NLA) (uint64, error) {
			v, err := extended.Load[uint32](x, rank, from)
			return uint64(v), err
		},
	}
)

// values are accesses of n bytes which Fence orders.
func values(n int) access {
	return access{
		func(x *extended.Initiator, rank int, to segment.NLA, v uint64) error {
			err := x.PutValue(rank, to, v, n)
			x.Fence()
			return err
		},
		func(x *extended.Initiator, rank int, from segment.NLA) (uint64, error) {
			v, err := x.GetValue(rank, from, n)
			x.Fence()
			return v, err
		},
	}
}

// shapes are the tests by one way of access, which is to be sequentially consistent.
func shapes(how string, c access, plain bool) []litmus {
	return []litmus{
		{
			name: "store buffering/" + how, threads: 2, plain: plain,
			step: func(x *extended.Initiator, me int, a, b segment.NLA) (r, s uint64, err error) {
				mine, other := a, b
				if me == 1 {
					mine, other = b, a
				}
				if err = c.store(x, me, mine, 1); err == nil {
					r, err = c.load(x, 1-me, other)
				}
				return r, 0, err
			},
			forbidden: func(r, s []uint64) bool { return r[0] == 0 && r[1] == 0 },
		},
		{
			name: "message passing/" + how, threads: 2, plain: plain,
			step: func(x *extended.Initiator, me int, a, b segment.NLA) (r, s uint64, err error) {
				if me == 0 {
					if err = c.store(x, 0, a, 1); err == nil {
						err = c.store(x, 1, b, 1)
					}
					return 0, 0, err
				}
				if r, err = c.load(x, 1, b); err == nil {
					s, err = c.load(x, 0, a)
				}
				return r, s, err
			},
			forbidden: func(r, s []uint64) bool { return r[1] == 1 && s[1] == 0 },
		},
		{
			name: "load buffering/" + how, threads: 2, plain: plain,
			step: func(x *extended.Initiator, me int, a, b segment.NLA) (r, s uint64, err error) {
				mine, other := a, b
				if me == 1 {
					mine, other = b, a
				}
				if r, err = c.load(x, 1-me, other); err == nil {
					err = c.store(x, me, mine, 1)
				}
				return r, 0, err
			},
			forbidden: func(r, s []uint64) bool { return r[0] == 1 && r[1] == 1 },
		},
		{
			name: "independent reads of independent writes/" + how, threads: 4, plain: plain,
			step: func(x *extended.Initiator, me int, a, b segment.NLA) (r, s uint64, err error) {
				switch me {
				case 0:
					return 0, 0, c.store(x, 0, a, 1)
				case 1:
					return 0, 0, c.store(x, 1, b, 1)
				case 2:
					if r, err = c.load(x, 0, a); err == nil {
						s, err = c.load(x, 1, b)
					}
				case 3:
					if r, err = c.load(x, 1, b); err == nil {
						s, err = c.load(x, 0, a)
					}
				}
				return r, s, err
			},
			forbidden: func(r, s []uint64) bool { return r[2] == 1 && s[2] == 0 && r[3] == 1 && s[3] == 0 },
		},
	}
}

// released is message passing of data, plain values, by an atomic or a signal.
func released(how string, signal func(x *extended.Initiator, to segment.NLA) error, size int) litmus {
	return litmus{
		name: "message passing/" + how, threads: 2,
		step: func(x *extended.Initiator, me int, a, b segment.NLA) (r, s uint64, err error) {
			if me == 0 {
				// The data lies on both ranks.
				if err = x.PutValue(0, a, 1, size); err == nil {
					err = x.PutValue(1, b+8, 1, size)
				}
				if err == nil {
					err = signal(x, b)
				}
				return 0, 0, err
			}
			if r, err = extended.Load[uint64](x, 1, b); err != nil || r == 0 {
				return r, 0, err
			}
			v, err := x.GetValue(0, a, size)
			if err == nil {
				s, err = x.GetValue(1, b+8, size)
			}
			return r, s & v, err
		},
		forbidden: func(r, s []uint64) bool { return r[1] == 1 && s[1] == 0 },
	}
}

// litmusTests are all of them.
func litmusTests() []litmus {
	all := append(shapes("atomics of 8 bytes", atomics64, false), shapes("atomics of 4 bytes", atomics32, false)...)
	for _, n := range []int{1, 2, 4, 8} {
		all = append(all, shapes(fmt.Sprintf("values of %d bytes and fences", n), values(n), true)...)
	}
	for _, n := range []int{1, 2, 4, 8} {
		of := fmt.Sprintf(", values of %d bytes", n)
		all = append(all,
			released("store"+of, func(x *extended.Initiator, to segment.NLA) error { return extended.Store[uint64](x, 1, to, 1) }, n),
			released("addition"+of, func(x *extended.Initiator, to segment.NLA) error { return extended.Add[uint64](x, 1, to, 1) }, n),
			released("signal"+of, func(x *extended.Initiator, to segment.NLA) error {
				return x.Signal(1, to, extended.SignalSet, 1)
			}, n))
	}
	return all
}

// Where litmus tests have their words: instance i at litmusWords + i*litmusStride.
const (
	litmusWords  = segment.AttachBase + segment.PageSize
	litmusStride = 64
)

// TestLitmus looks for outcomes that the memory model forbids. Only ranks in reach
// of load and store access memory at the same time; elsewhere owners do it all, and
// a few rounds show that blocking operations take effect before they return.
func TestLitmus(t *testing.T) {
	testmain.Long(t)
	for _, on := range []struct {
		conduit           string
		sweeps, instances int
	}{{"shm", 4, 500}, {"udp", 1, 20}, {"sim", 1, 100}} {
		if testing.Short() {
			on.sweeps = 1
		}
		t.Run(on.conduit, func(t *testing.T) {
			for _, l := range litmusTests() {
				t.Run(l.name, func(t *testing.T) {
					if l.plain && conc.Race {
						t.Skip("what Fence orders the race detector calls a race")
					}
					sweeps := on.sweeps
					if l.threads > 2 { // they take turns on small machines
						sweeps = 1
					}
					l.run(t, on.conduit, sweeps, on.instances)
				})
			}
		})
	}
}

// run does l instances times in a row, sweeps times.
func (l *litmus) run(t *testing.T, conduit string, sweeps, instances int) {
	cd, err := conduits.Lookup(conduit)
	if err != nil {
		t.Fatal(err)
	}
	size := uint64(segment.PageSize + instances*litmusStride + segment.PageSize - 1)
	size &^= segment.PageSize - 1
	ends, err := cd.Local(l.threads, conduits.Config{MaxSegment: size})
	if err != nil {
		t.Fatal(err)
	}
	read := make([][2][]uint64, l.threads)
	for me := range read {
		read[me] = [2][]uint64{make([]uint64, instances), make([]uint64, instances)}
	}
	var ready atomic.Int64
	seen := 0
	rank := func(me int) error {
		end := ends[me]
		x := extended.New(extended.Config{})
		e, err := am.Attach(end, am.Config{Runtime: x.Handlers(), Completer: x, Exposer: x, SegmentSize: size})
		if err != nil {
			return err
		}
		x.Bind(e)
		for sweep := range sweeps {
			if err := meet(x, uint64(2*sweep+1)); err != nil {
				return err
			}
			for i := range instances {
				w := litmusWords + segment.NLA(i*litmusStride)
				if conduit == "shm" {
					for r := range 2 { // have them at hand
						if _, err := extended.Load[uint64](x, r, w); err != nil {
							return err
						}
					}
					ready.Add(1)
					for k := 1; ready.Load() < int64((sweep*instances+i+1)*l.threads) && end.Err() == nil; k++ {
						if k%1000 == 0 {
							runtime.Gosched()
						}
					}
				}
				if read[me][0][i], read[me][1][i], err = l.step(x, me, w, w); err != nil {
					return err
				}
			}
			if err := meet(x, uint64(2*sweep+2)); err != nil {
				return err
			}
			if me == 0 {
				r, s := make([]uint64, l.threads), make([]uint64, l.threads)
				for i := range instances {
					for k := range read {
						r[k], s[k] = read[k][0][i], read[k][1][i]
					}
					if l.forbidden(r, s) {
						if seen++; seen == 1 {
							t.Errorf("sweep %d, instance %d: the ranks read %v and %v", sweep, i, r, s)
						}
					}
				}
			}
			// Each rank's own words; the others wait for the next meeting.
			clear(x.Direct(me, litmusWords, uint64(instances*litmusStride)))
		}
		return meet(x, uint64(2*sweeps+1))
	}
	var mu sync.Mutex
	conduits.Run(ends, func(me int) {
		if err := rank(me); err != nil {
			mu.Lock()
			t.Errorf("rank %d: %v", me, err)
			mu.Unlock()
			ends[me].Fail(err)
		}
		if err := ends[me].Close(); err != nil && !t.Failed() {
			t.Error(err)
		}
	})
	if seen > 0 {
		t.Errorf("%d of %d outcomes are forbidden", seen, sweeps*instances)
	}
}

// TestValuesBeside: a store of a small value changes no other byte, also while other
// goroutines store to them.
func TestValuesBeside(t *testing.T) {
	const threads, rounds = 4, 2000
	cd, err := conduits.Lookup("shm")
	if err != nil {
		t.Fatal(err)
	}
	ends, err := cd.Local(threads, conduits.Config{MaxSegment: segment.PageSize})
	if err != nil {
		t.Fatal(err)
	}
	rank := func(me int) error {
		x := extended.New(extended.Config{})
		e, err := am.Attach(ends[me], am.Config{Runtime: x.Handlers(), Completer: x, Exposer: x, SegmentSize: segment.PageSize})
		if err != nil {
			return err
		}
		x.Bind(e)
		for i, size := range []int{1, 2, 4} {
			if err := meet(x, uint64(i+1)); err != nil {
				return err
			}
			at := segment.AttachBase + 512 + segment.NLA(me*size)
			for v := range uint64(rounds) {
				if err := x.PutValue(0, at, v, size); err != nil {
					return err
				}
				got, err := x.GetValue(0, at, size)
				if err != nil {
					return err
				}
				if want := v & (1<<(8*size) - 1); got != want {
					return fmt.Errorf("rank %d stored %d in %d bytes and finds %d", me, want, size, got)
				}
			}
		}
		return meet(x, 4)
	}
	conduits.Run(ends, func(me int) {
		if err := rank(me); err != nil {
			t.Error(err)
			ends[me].Fail(err)
		}
		if err := ends[me].Close(); err != nil && !t.Failed() {
			t.Error(err)
		}
	})
}
