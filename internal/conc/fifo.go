package conc

// most is the capacity in values that an empty queue keeps; the collector has what
// a longer burst has left.
const most = 1 << 16

// A Queue gives values back in the order in which they were added. The zero Queue
// is empty. It is not safe for concurrent use.
type Queue[T any] struct {
	v    []T
	head int
}

// Empty reports whether there is nothing to take.
func (q *Queue[T]) Empty() bool { return q.head == len(q.v) }

// Add puts v at the end.
func (q *Queue[T]) Add(v T) {
	if q.head > 32 && q.head > len(q.v)/2 {
		n := copy(q.v, q.v[q.head:])
		clear(q.v[n:])
		q.v, q.head = q.v[:n], 0
	}
	q.v = append(q.v, v)
}

// First returns the value that Take takes next; the queue is not empty.
func (q *Queue[T]) First() T { return q.v[q.head] }

// Take takes the first value; ok is false if there is none.
func (q *Queue[T]) Take() (v T, ok bool) {
	if q.head == len(q.v) {
		return v, false
	}
	var zero T
	v, q.v[q.head] = q.v[q.head], zero
	if q.head++; q.head == len(q.v) {
		if q.v, q.head = q.v[:0], 0; cap(q.v) > most {
			q.v = nil
		}
	}
	return v, true
}

// All returns the values, first to last, in the queue's memory: good until the next
// call.
func (q *Queue[T]) All() []T { return q.v[q.head:] }
