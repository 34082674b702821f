package fabric

import "math"

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
