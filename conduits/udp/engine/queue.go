package engine

// linked is an element of a queue, of one at a time.
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

// pool keeps things in no use, the latest first.
type pool[T any, P linked[T]] struct {
	first P
	n     int
}

// A burst takes as many as may be under way, and they are needed again at once only as
// far as acknowledgements free some for those that are sent next. So many of a kind,
// and bytes of buffers, are kept, and the collector has the rest: half a million puts
// of 200 bytes at once left 220 MB behind, and leave 16. Bursts of 50,000 such puts, in
// 8,000 datagrams, sixteen times what a short path has under way, allocate next to
// nothing; the puts of four times larger ones take a tenth longer (BenchmarkBurst).
const (
	mostFree  = 8192
	freeBytes = 4 << 20
)

func (p *pool[T, P]) add(v P) {
	if p.n < mostFree {
		*v.link() = p.first
		p.first = v
		p.n++
	}
}

func (p *pool[T, P]) take() P {
	v := p.first
	if v != nil {
		p.first = *v.link()
		*v.link() = nil
		p.n--
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
