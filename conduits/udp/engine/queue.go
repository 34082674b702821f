package engine

// linked is what can stand in a queue, in one at a time.
type linked[T any] interface {
	*T
	link() **T
}

func (m *Message) link() **Message { return &m.next }
func (k *pkt) link() **pkt         { return &k.next }
func (i *item) link() **item       { return &i.next }

// queue is a list that things are added to at its end.
type queue[T any, P linked[T]] struct{ first, last P }

func (q *queue[T, P]) empty() bool { return q.first == nil }

func (q *queue[T, P]) add(v P) {
	*v.link() = nil
	if q.first == nil {
		q.first = v
	} else {
		*q.last.link() = v
	}
	q.last = v
}

func (q *queue[T, P]) take() P {
	v := q.first
	if v != nil {
		q.first = *v.link()
		*v.link() = nil
	}
	return v
}

// list is a list of datagrams that any can be taken out of.
type list struct{ first, last *pkt }

func (l *list) add(k *pkt) {
	k.prev, k.next = l.last, nil
	if l.first == nil {
		l.first = k
	} else {
		l.last.next = k
	}
	l.last = k
}

func (l *list) remove(k *pkt) {
	if k.prev == nil {
		l.first = k.next
	} else {
		k.prev.next = k.next
	}
	if k.next == nil {
		l.last = k.prev
	} else {
		k.next.prev = k.prev
	}
	k.prev, k.next = nil, nil
}

// ring is a queue of values.
type ring[T any] struct {
	b    []T
	head int
}

func (r *ring[T]) add(v T) {
	if r.head > 1024 && r.head > len(r.b)/2 {
		n := copy(r.b, r.b[r.head:])
		clear(r.b[n:])
		r.b, r.head = r.b[:n], 0
	}
	r.b = append(r.b, v)
}

func (r *ring[T]) take() (v T, ok bool) {
	if r.head == len(r.b) {
		return v, false
	}
	var zero T
	v, r.b[r.head] = r.b[r.head], zero
	if r.head++; r.head == len(r.b) {
		r.b, r.head = r.b[:0], 0
	}
	return v, true
}
