package distancetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/internal/lab/wan"
	"github.com/argon-go/argon/segment"
)

// udpHeader is what IPv4 and UDP add to a datagram.
const udpHeader = 28

// rank is an engine at one end of a path.
type rank struct {
	*engine.Engine
	port *wan.Port
	next *wan.Packet // to be filled
	mem  memory
	more func(now time.Duration) // called before it sends
	done func(now time.Duration, c engine.Completion)
	got  func(now time.Duration, m *engine.Message)
	size func(n int) // of each datagram that comes
	dead int
}

// memory is a segment that is granted to all.
type memory struct{ b []byte }

func (m *memory) Target(_ int, a segment.NLA, n uint64, _ segment.Rights) ([]byte, bool) {
	off := uint64(a - segment.AttachBase)
	if off > uint64(len(m.b)) || uint64(len(m.b))-off < n {
		return nil, false
	}
	return m.b[off : off+n : off+n], true
}

func (m *memory) Access(src int, a segment.NLA, n uint64, need segment.Rights) ([]byte, *segment.Unit, error) {
	return conduits.Admit(nil, src, a, n, need)
}

func (m *memory) Registrations() uint64                 { return 0 }
func (m *memory) Since(_ segment.NLA, _, _ uint64) bool { return false }
func (m *memory) Atomic(_ int, _ segment.NLA, _ conduits.AtomicOp, _ conduits.AtomicType, _, _ uint64) (uint64, error) {
	return 0, fmt.Errorf("no atomics here")
}

// Receive takes a datagram.
func (r *rank) Receive(now time.Duration, p *wan.Packet) {
	if r.size != nil {
		r.size(len(p.Data))
	}
	r.Engine.Receive(now, -1, p.Data)
}

// Run serves the engine.
func (r *rank) Run(now time.Duration) (time.Duration, bool) {
	r.Advance(now)
	for c := range conduits.Class(conduits.NumClasses) {
		for m := r.NextMessage(c); m != nil; m = r.NextMessage(c) {
			if r.got != nil {
				r.got(now, m)
			}
			r.Release(m)
		}
	}
	for c, ok := r.NextCompletion(); ok; c, ok = r.NextCompletion() {
		if r.done != nil {
			r.done(now, c)
		}
	}
	for _, ok := r.NextDead(); ok; _, ok = r.NextDead() {
		r.dead++
	}
	if r.more != nil {
		r.more(now)
	}
	for {
		q := r.next
		if q == nil {
			q = r.port.Packet()
		}
		r.next = nil
		if cap(q.Data) < r.Config().Datagram {
			q.Data = make([]byte, r.Config().Datagram)
		}
		_, n, ok := r.Next(now, q.Data[:cap(q.Data)])
		if !ok {
			r.next = q
			return r.Deadline()
		}
		q.Data, q.Size = q.Data[:n], n+udpHeader
		r.port.Send(q)
	}
}

// segmentBytes is how large ranks' segments are.
const segmentBytes = 1 << 20

// job makes two ranks, the ends of a flow.
func job(t testing.TB, adjust func(c *engine.Config)) (rs [2]*rank, ends [2]func(*wan.Port) wan.Endpoint) {
	t.Helper()
	for i := range rs {
		r := &rank{mem: memory{make([]byte, segmentBytes)}}
		c := engine.Config{Rank: i, Size: 2, Epoch: uint32(i) + 7, Memory: &r.mem}
		if adjust != nil {
			adjust(&c)
		}
		var err error
		if r.Engine, err = engine.New(c); err != nil {
			t.Fatal(err)
		}
		rs[i] = r
		ends[i] = func(p *wan.Port) wan.Endpoint { r.port = p; return r }
	}
	return rs, ends
}

// bulk is a stream of puts from rank 0 to rank 1.
type bulk struct {
	ranks [2]*rank
	size  int
	bytes int64         // put, and known to have arrived
	at    time.Duration // when the last of them was
	fails []error

	depth, issued int
}

// puts makes rank 0 of a new job put size bytes again and again, with about depth
// bytes of them outstanding.
func puts(t testing.TB, size, depth int, adjust func(c *engine.Config)) (*bulk, [2]func(*wan.Port) wan.Endpoint) {
	t.Helper()
	rs, ends := job(t, adjust)
	b := &bulk{ranks: rs, size: size, depth: max(2, depth/size)}
	src := make([]byte, size)
	rs[0].done = func(now time.Duration, c engine.Completion) {
		if c.Event&conduits.RemoteDone == 0 {
			return
		}
		b.issued--
		if c.Err != nil {
			b.fails = append(b.fails, c.Err)
			return
		}
		b.bytes += int64(size)
		b.at = now
	}
	rs[0].more = func(time.Duration) {
		for b.issued < b.depth && len(b.fails) == 0 {
			if _, err := rs[0].Put(1, segment.AttachBase, src, conduits.SourceDone|conduits.RemoteDone, 1); err != nil {
				b.fails = append(b.fails, err)
				return
			}
			b.issued++
		}
	}
	return b, ends
}

// rate is the goodput up to the last completion, bit/s, of a flow that began at
// start.
func (b *bulk) rate(start time.Duration) float64 {
	if b.at <= start {
		return 0
	}
	return float64(b.bytes) * 8 / (b.at - start).Seconds()
}
