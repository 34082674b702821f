package firehose

import (
	"testing"

	"github.com/argon-go/argon/segment"
)

// pair is two ranks whose messages arrive at once.
func pair(t testing.TB, c Config) (a, b *machine) {
	c.Size = 2
	a, _ = newTest(t, c)
	c.Rank = 1
	b, _ = newTest(t, c)
	return a, b
}

// exchange carries a's requests to b until none is left.
func exchange(a, b *machine, reply []byte) []byte {
	for {
		q, ok := a.NextMessage()
		if !ok {
			return reply
		}
		if q.Payload == nil {
			w, _ := b.ReceiveMove(a.c.Rank, q.Move)
			if d, ok := a.ReceiveMoved(b.c.Rank, w); ok {
				a.done.Add(d) // for the caller
			}
			continue
		}
		reply, _ = b.Receive(a.c.Rank, q.Payload, reply[:0])
		a.Recycle(q.Payload)
		a.ReceiveReply(b.c.Rank, reply)
	}
}

func TestHitDoesNotAllocate(t *testing.T) {
	a, b := pair(t, Config{Budget: 40 * testBucket, Local: 10 * testBucket})
	for _, n := range []uint64{1, 3 * testBucket} {
		if _, ok, err := a.RemotePin(1, 0, n, 1); ok || err != nil {
			t.Fatal(ok, err)
		}
		exchange(a, b, nil)
		d, ok := a.NextDone()
		if !ok || d.Err != nil {
			t.Fatal(d.Err)
		}
		if err := a.Release(d.Pinned); err != nil {
			t.Fatal(err)
		}
		if k := testing.AllocsPerRun(100, func() {
			r, ok, _ := a.RemotePin(1, 0, n, 1)
			if !ok {
				t.Fatal("no hit")
			}
			if _, k := a.At(r, 5); k == 0 || a.Release(r) != nil {
				t.Fatal("no address")
			}
		}); k != 0 {
			t.Errorf("%v allocations for %d bytes", k, n)
		}
	}
}

// BenchmarkHit is a pin that finds its firehose, the address, and the release.
func BenchmarkHit(b *testing.B) {
	x, y := pair(b, Config{Budget: 60 * testBucket, Local: 10 * testBucket})
	for i := range 40 {
		x.RemotePin(1, Addr(i*testBucket), 1, 1)
		exchange(x, y, nil)
		d, _ := x.NextDone()
		x.Release(d.Pinned)
	}
	for i := 0; b.Loop(); i++ {
		a := Addr(i % 40 * testBucket)
		r, ok, _ := x.RemotePin(1, a, 8, 1)
		if g, _ := x.At(r, a); !ok || g.NLA == 0 {
			b.Fatal("miss")
		}
		x.Release(r)
	}
}

// noMemory registers nothing, in no time.
type noMemory struct{}

func (noMemory) Pin(a Addr, _ uint64) (Grant, error) {
	return Grant{NLA: segment.PageSize + segment.NLA(a)}, nil
}
func (noMemory) PinOnce(Addr, uint64) (Grant, error) { return Grant{}, ErrNotExposed }
func (noMemory) Unpin(Addr, uint64, Grant)           {}
func (noMemory) Revoke(Addr, uint64, Grant)          {}
func (noMemory) Forget(Addr, uint64, Grant)          {}

// bare is pair without memory.
func bare(b *testing.B) (x, y *machine) {
	c := Config{Size: 2, Budget: 40 * testBucket, Local: 10 * testBucket, Bucket: testBucket, Memory: noMemory{}}
	x, err := newMachine(c)
	if err != nil {
		b.Fatal(err)
	}
	c.Rank = 1
	if y, err = newMachine(c); err != nil {
		b.Fatal(err)
	}
	return x, y
}

// BenchmarkMiss is a pin that moves a firehose, both sides, without a network and
// without registration.
func BenchmarkMiss(b *testing.B) {
	x, y := bare(b)
	var reply []byte
	for i := 0; b.Loop(); i++ {
		a := Addr(i % 60 * testBucket)
		r, ok, _ := x.RemotePin(1, a, 8, 1)
		if !ok {
			reply = exchange(x, y, reply)
			d, _ := x.NextDone()
			r = d.Pinned
		}
		x.Release(r)
	}
}
