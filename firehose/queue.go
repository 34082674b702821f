package firehose

// fifo is a queue of values that keeps its memory.
type fifo[T any] struct {
	v    []T
	head int
}

func (q *fifo[T]) empty() bool { return q.head == len(q.v) }

func (q *fifo[T]) add(v T) {
	if q.head == len(q.v) {
		q.v, q.head = q.v[:0], 0
	} else if q.head > 32 && q.head > len(q.v)/2 {
		n := copy(q.v, q.v[q.head:])
		clear(q.v[n:])
		q.v, q.head = q.v[:n], 0
	}
	q.v = append(q.v, v)
}

func (q *fifo[T]) take() (v T, ok bool) {
	if q.empty() {
		return v, false
	}
	var zero T
	v = q.v[q.head]
	q.v[q.head] = zero
	q.head++
	return v, true
}

// flights are the requests that a peer has not answered, in the order in which
// they were sent, which most answers come in, too. Behind the first there is nil
// where one has been answered.
type flights struct{ fifo[*flight] }

// find is the request of that number, or nil.
func (q *flights) find(id uint32) *flight {
	for _, f := range q.v[q.head:] {
		if f != nil && f.id == id {
			return f
		}
	}
	return nil
}

// remove takes out one that find has found.
func (q *flights) remove(f *flight) {
	for i := q.head; ; i++ {
		if q.v[i] == f {
			q.v[i] = nil
			break
		}
	}
	for q.head < len(q.v) && q.v[q.head] == nil {
		q.head++
	}
}

// queue is requests in the order in which they came.
type queue struct{ fifo[*request] }

func (q *queue) first() *request { return q.v[q.head] }

func (q *queue) pop() *request {
	r, _ := q.take()
	return r
}
