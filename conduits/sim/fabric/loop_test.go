package fabric

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Events come by time, and those of a time in the order they came in.
func TestLoop(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var l Loop
		var model []event
		next := uint64(0)
		more := func() {
			e := event{t: l.now + rapid.Int64Range(0, 100).Draw(rt, "wait"), a: next}
			next++
			l.Schedule(e.t, e.a, 7)
			at, _ := slices.BinarySearchFunc(model, e.t+1, func(m event, t Time) int { return cmp.Compare(m.t, t) })
			model = slices.Insert(model, at, e)
		}
		for range rapid.IntRange(0, 300).Draw(rt, "first") {
			more()
		}
		for range rapid.IntRange(0, 50).Draw(rt, "then") {
			if rapid.Bool().Draw(rt, "more") {
				more()
			}
			if len(model) > 0 {
				checkPop(rt, &l, model[0])
				model = model[1:]
			}
		}
		for _, e := range model {
			checkPop(rt, &l, e)
		}
		if len(l.heap) != 0 {
			rt.Fatalf("%d events too many", len(l.heap))
		}
	})
}

// The same with more events than rapid likes to draw.
func TestLoopMany(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		var l Loop
		var last event
		// As on busy links: some events soon, some behind all there are.
		end := Time(0)
		for n := 0; n < 3000 || len(l.heap) > 0; n++ {
			for range rng.IntN(3) {
				switch {
				case n >= 3000:
				case rng.IntN(2) == 0:
					l.Schedule(l.now+rng.Int64N(20), 0, 0)
				default:
					end = max(end, l.now) + rng.Int64N(20)
					l.Schedule(end, 0, 0)
				}
			}
			if len(l.heap) == 0 {
				continue
			}
			e := l.pop()
			l.now = e.t
			if e.before(&last) {
				t.Fatalf("event %d of %d after %d of %d", e.seq, e.t, last.seq, last.t)
			}
			last = e
			for i := 1; i < len(l.heap); i++ {
				if l.heap[i].before(&l.heap[(i-1)/4]) {
					t.Fatalf("event %d of %d lies before its parent", i, len(l.heap))
				}
			}
		}
	}
}

// RunUntil leaves what is at its end.
func TestRunUntil(t *testing.T) {
	var l Loop
	var got []uint64
	f, err := New(Params{Latency: 5}, 2, &l, func(_ Time, id uint64) { got = append(got, id) })
	if err != nil {
		t.Fatal(err)
	}
	f.Inject(0, 0, 1, 0, 1)
	f.Inject(1, 0, 1, 0, 2)
	if n := l.RunUntil(f, 6); n != 1 || l.Now() != 6 || !slices.Equal(got, []uint64{1}) {
		t.Errorf("%d events, %v delivered, %d now", n, got, l.Now())
	}
	if n := l.Run(f); n != 1 || l.Now() != 6 || !slices.Equal(got, []uint64{1, 2}) {
		t.Errorf("%d events, %v delivered, %d now", n, got, l.Now())
	}
}

func checkPop(t *rapid.T, l *Loop, want event) {
	e := l.pop()
	l.now = e.t
	if e.t != want.t || e.a != want.a || e.b != 7 {
		t.Fatalf("event %d of %d, expected %d of %d", e.a, e.t, want.a, want.t)
	}
}

// A Loop is an event queue that drives one fabric and nothing else: what tests
// and experiments on the network alone need. Events of the same time come in
// the order they were scheduled in. The zero value is ready.
type Loop struct {
	heap []event
	seq  uint64
	now  Time
}

type event struct {
	t    Time
	seq  uint64
	a, b uint64
}

func (e *event) before(o *event) bool { return e.t < o.t || e.t == o.t && e.seq < o.seq }

// Now returns the time of the latest event.
func (l *Loop) Now() Time { return l.now }

// Schedule implements Scheduler. A time in the past panics.
func (l *Loop) Schedule(t Time, a, b uint64) {
	if t < l.now {
		panic("fabric: event in the past")
	}
	l.seq++
	e := event{t, l.seq, a, b}
	l.heap = append(l.heap, e)
	h, i := l.heap, len(l.heap)-1
	for i > 0 {
		up := (i - 1) / 4
		if !e.before(&h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
}

// Run hands f its events until there are none. It returns how many there were.
func (l *Loop) Run(f *Fabric) int { return l.RunUntil(f, math.MaxInt64) }

// RunUntil hands f its events of times before end, then makes end the present,
// unless it is the largest Time. It returns how many events there were.
func (l *Loop) RunUntil(f *Fabric, end Time) int {
	n := 0
	for ; len(l.heap) > 0 && l.heap[0].t < end; n++ {
		e := l.pop()
		l.now = e.t
		f.Handle(e.t, e.a, e.b)
	}
	if end < math.MaxInt64 {
		l.now = end
	}
	return n
}

func (l *Loop) pop() event {
	h := l.heap
	first, n := h[0], len(h)-1
	e := h[n]
	l.heap = h[:n]
	for i := 0; ; {
		c := 4*i + 1
		if c >= n {
			if n > 0 {
				h[i] = e
			}
			return first
		}
		for k, end := c+1, min(c+4, n); k < end; k++ {
			if h[k].before(&h[c]) {
				c = k
			}
		}
		if !h[c].before(&e) {
			h[i] = e
			return first
		}
		h[i] = h[c]
		i = c
	}
}
