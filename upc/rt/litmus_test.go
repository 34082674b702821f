package rt

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

// litmus is a small program of several threads with an outcome that the memory model of UPC
// 1.3 (5.1.2.3, annex B) forbids.
type litmus struct {
	name    string
	threads int
	// step is what a thread does with the words x and y, which are 0; it returns what it has
	// read.
	step      func(t *Thread, x, y Phaseless) (r, s uint32)
	forbidden func(r, s []uint32) bool
}

func strictPut(t *Thread, p Phaseless, v uint32)  { PutStrict(t, p, v) }
func strictGet(t *Thread, p Phaseless) uint32     { return GetStrict[uint32](t, p) }
func relaxedPut(t *Thread, p Phaseless, v uint32) { Put(t, p, v) }

var litmusTests = []litmus{
	{
		name: "store buffering", threads: 2,
		step: func(t *Thread, x, y Phaseless) (r, s uint32) {
			if t.me == 1 {
				x, y = y, x
			}
			strictPut(t, x, 1)
			return strictGet(t, y), 0
		},
		forbidden: func(r, s []uint32) bool { return r[0] == 0 && r[1] == 0 },
	},
	{
		// The relaxed write comes before the strict accesses of its thread.
		name: "store buffering, relaxed write", threads: 2,
		step: func(t *Thread, x, y Phaseless) (r, s uint32) {
			if t.me == 0 {
				relaxedPut(t, x, 1)
				return strictGet(t, y), 0
			}
			strictPut(t, y, 1)
			return strictGet(t, x), 0
		},
		forbidden: func(r, s []uint32) bool { return r[0] == 0 && r[1] == 0 },
	},
	{
		name: "message passing", threads: 2,
		step: func(t *Thread, x, y Phaseless) (r, s uint32) {
			if t.me == 0 {
				PutAsync[uint32](t, x, 1)
				strictPut(t, y, 1)
				return 0, 0
			}
			r = strictGet(t, y)
			return r, Get[uint32](t, x)
		},
		forbidden: func(r, s []uint32) bool { return r[1] == 1 && s[1] == 0 },
	},
	{
		// The writes are under way to different threads, and the reader has the first beside it.
		name: "message passing between three", threads: 3,
		step: func(t *Thread, x, y Phaseless) (r, s uint32) {
			switch t.me {
			case 2:
				PutAsync[uint32](t, x, 1)
				strictPut(t, y, 1)
			case 0:
				for strictGet(t, y) == 0 {
					runtime.Gosched()
				}
				return 1, Get[uint32](t, x)
			}
			return 0, 0
		},
		forbidden: func(r, s []uint32) bool { return s[0] == 0 },
	},
	{
		name: "load buffering", threads: 2,
		step: func(t *Thread, x, y Phaseless) (r, s uint32) {
			if t.me == 1 {
				x, y = y, x
			}
			r = strictGet(t, y)
			strictPut(t, x, 1)
			return r, 0
		},
		forbidden: func(r, s []uint32) bool { return r[0] == 1 && r[1] == 1 },
	},
	{
		name: "independent reads of independent writes", threads: 4,
		step: func(t *Thread, x, y Phaseless) (r, s uint32) {
			switch t.me {
			case 0:
				strictPut(t, x, 1)
			case 1:
				strictPut(t, y, 1)
			case 2:
				r = strictGet(t, x)
				return r, strictGet(t, y)
			case 3:
				r = strictGet(t, y)
				return r, strictGet(t, x)
			}
			return 0, 0
		},
		forbidden: func(r, s []uint32) bool { return r[2] == 1 && s[2] == 0 && r[3] == 1 && s[3] == 0 },
	},
	{
		// One word has one order of writes, by relaxed accesses also.
		name: "coherence", threads: 2,
		step: func(t *Thread, x, _ Phaseless) (r, s uint32) {
			if t.me == 0 {
				Put[uint32](t, x, 1)
				Put[uint32](t, x, 2)
				return Get[uint32](t, x), 0
			}
			r = Get[uint32](t, x)
			return r, Get[uint32](t, x)
		},
		forbidden: func(r, s []uint32) bool { return r[0] != 2 || r[1] > s[1] },
	},
}

// litmusWords is one instance: its words lie apart, on the first threads.
var litmusWords = Static(Object{Name: "litmus", Size: 64, Block: 0, Count: 2000})

// TestLitmus looks for outcomes that the model forbids, where threads share memory and where
// they do not.
func TestLitmus(t *testing.T) {
	testmain.Long(t)
	type on struct {
		conduit string
		times   int
	}
	all := []on{{"shm", 2000}, {"udp", 20}, {"hybrid", 100}, {"rt-chaos", 40}, {"rt-sim", 60}}
	if networks[0] == launched {
		all = []on{{launched, 100}}
	}
	for _, on := range all {
		for _, l := range litmusTests {
			t.Run(on.conduit+"/"+l.name, func(t *testing.T) {
				if conc.Race && (on.conduit == "shm" || on.conduit == "hybrid" || on.conduit == "rt-chaos") {
					t.Skip("what fences order the race detector calls a race")
				}
				times := on.times
				if l.threads > 2 { // they take turns on small machines
					times = min(times, 100)
				}
				var ready *atomic.Int64
				if on.conduit == "shm" {
					ready = new(atomic.Int64)
				}
				if err := run(on.conduit, l.threads, func(t *Thread) { l.run(t, times, ready) }); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// run does l so often, each time with words of its own. Where ready counts the threads that
// are about to begin, they begin at once.
func (l *litmus) run(t *Thread, times int, ready *atomic.Int64) {
	at := t.Base(litmusWords).Addr()
	read := make([][2]uint32, 0, times)
	for i := range times {
		x := MakePhaseless(0, at).AddLocal(i, 64)
		y := MakePhaseless(1, at).AddLocal(i, 64)
		if ready == nil {
			t.meet()
		} else {
			Get[uint32](t, x) // have them at hand
			Get[uint32](t, y)
			ready.Add(1)
			for k := 1; ready.Load() < int64((i+1)*t.threads) && t.n.Layers().Conduit.Err() == nil; k++ {
				if k%1000 == 0 {
					runtime.Gosched()
				}
			}
		}
		r, s := l.step(t, x, y)
		read = append(read, [2]uint32{r, s})
	}
	t.meet()
	all := make([][2]uint32, times*t.threads)
	t.must(gas.AllGatherSlice(t.n, read, all))
	for i := range times {
		r, s := make([]uint32, t.threads), make([]uint32, t.threads)
		for k := range r {
			r[k], s[k] = all[k*times+i][0], all[k*times+i][1]
		}
		if l.forbidden(r, s) {
			t.must(fmt.Errorf("instance %d: the threads read %v and %v", i, r, s))
		}
	}
}
