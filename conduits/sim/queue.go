package sim

// Time is virtual time in picoseconds since the job began.
type Time = int64

// Units of Time.
const (
	Nanosecond  Time = 1000
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// event is something that happens at a time. Events of one time happen in the
// order of key: the order they were made in, unless the seed shuffles it.
type event struct {
	at   Time
	key  uint64 // its low bits say what it is
	a, b uint64 // no pointers, so that the collector skips the queue
}

func (e *event) before(f *event) bool {
	return e.at < f.at || e.at == f.at && e.key < f.key
}

// queue is a heap of events with four children a node: half as deep as a binary
// one, and the children of a node share two cache lines.
type queue struct {
	h []event
}

func (q *queue) push(e event) {
	q.h = append(q.h, e)
	h := q.h
	i := len(h) - 1
	for i > 0 {
		p := (i - 1) / 4
		if !e.before(&h[p]) {
			break
		}
		h[i] = h[p]
		i = p
	}
	h[i] = e
}

// pop removes the first event; there must be one.
func (q *queue) pop() event {
	h := q.h
	first := h[0]
	last := len(h) - 1
	e := h[last]
	q.h = h[:last]
	if h = q.h; last == 0 {
		return first
	}
	i := 0
	for {
		c := 4*i + 1
		if c >= last {
			break
		}
		least := c
		for k := c + 1; k < min(c+4, last); k++ {
			if h[k].before(&h[least]) {
				least = k
			}
		}
		if !h[least].before(&e) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = e
	return first
}
