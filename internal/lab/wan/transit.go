package wan

import (
	"container/heap"
	"time"

	"github.com/argon-go/argon/internal/conc"
)

// transit holds packets until they arrive.
type transit struct {
	inOrder [2]conc.Queue[*Packet]
	late    arrivals
	number  uint64
	free    []*Packet
}

// packet is one in no use, or a new one.
func (t *transit) packet() *Packet {
	if k := len(t.free); k > 0 {
		q := t.free[k-1]
		t.free = t.free[:k-1]
		q.Data, q.Segment, q.to = q.Data[:0], Segment{}, nil
		return q
	}
	return new(Packet)
}

func (t *transit) release(q *Packet) { t.free = append(t.free, q) }

// carry has q, which comes from side, arrive as f says.
func (t *transit) carry(q *Packet, side int, f Fate) {
	if f.N == 0 {
		t.release(q)
		return
	}
	q.side = side
	if f.N == 2 {
		r := t.packet()
		data := append(r.Data[:0], q.Data...)
		*r = *q
		r.Data = data
		t.schedule(r, f.At[1], false)
	}
	t.schedule(q, f.At[0], f.InOrder)
}

func (t *transit) schedule(q *Packet, at time.Duration, inOrder bool) {
	t.number++
	q.at, q.number = at, t.number
	// The delay may have become shorter: then it overtakes others.
	r := &t.inOrder[q.side]
	if all := r.All(); inOrder && (len(all) == 0 || all[len(all)-1].at <= at) {
		r.Add(q)
	} else {
		heap.Push(&t.late, q)
	}
}

// first is the packet that arrives next, and where it waits; nil if there is none.
func (t *transit) first() (q *Packet, from int) {
	for i := range t.inOrder {
		if r := &t.inOrder[i]; !r.Empty() && before(r.First(), q) {
			q, from = r.First(), i
		}
	}
	if len(t.late) > 0 && before(t.late[0], q) {
		q, from = t.late[0], -1
	}
	return q, from
}

// take removes the packet that first has found.
func (t *transit) take(from int) {
	if from < 0 {
		heap.Pop(&t.late)
	} else {
		t.inOrder[from].Take()
	}
}

func before(a, b *Packet) bool {
	return b == nil || a.at < b.at || a.at == b.at && a.number < b.number
}
