package engine_test

import (
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
)

// room is a path within a room, whose largest datagram the engine looks for.
func room(t *testing.T) *path {
	t.Helper()
	return newPath(t, 20*time.Microsecond, func(c *engine.Config) {
		c.Granularity, c.DeadTime = 64*time.Microsecond, 10*time.Second
		c.Sure = func(int) int { return 0 }
	})
}

// put has rank 0 put n times 50000 bytes to rank 1.
func (p *path) put(n int) {
	p.t.Helper()
	for range n {
		if _, err := p.ends[0].Put(1, at(0), make([]byte, 50000), conduits.RemoteDone, 1); err != nil {
			p.t.Fatal(err)
		}
	}
}

// drain passes time until all of rank 0's puts are done, and returns how long it took.
func (p *path) drain() time.Duration {
	p.t.Helper()
	from := p.now
	for !p.ends[0].Drained() {
		if p.pass(100 * time.Microsecond); p.now > from+time.Minute {
			p.t.Fatalf("the puts never arrive: %+v", p.ends[0].Stats())
		}
	}
	return p.now - from
}

// TestComputingPeerIsNoHole: a peer that does not call its engine for a while, at any
// moment of a put, says nothing of the sizes of datagrams.
func TestComputingPeerIsNoHole(t *testing.T) {
	for _, pause := range []time.Duration{time.Millisecond, 15 * time.Millisecond, 100 * time.Millisecond, 5 * time.Second} {
		for n := range 20 {
			p := room(t)
			p.put(20)
			p.drain()
			p.put(20)
			p.pass(time.Duration(n) * 20 * time.Microsecond)
			p.paused[1] = true
			p.put(1)
			p.pass(pause)
			p.paused[1] = false
			p.drain()
			p.put(1)
			p.drain()
			if s := p.ends[0].Stats(); s.Timeouts == 0 || s.BlackHoles != 0 || s.Split != 0 {
				t.Fatalf("a pause of %v, after %d: %+v", pause, n, s)
			}
		}
	}
}

// TestHole has a path become narrower: it takes little longer than two probe time-outs
// to find out, also if the peer computes meanwhile.
func TestHole(t *testing.T) {
	for _, pause := range []time.Duration{0, 15 * time.Millisecond} {
		p := room(t)
		p.put(20)
		p.drain()
		p.most = 1200
		p.put(1)
		p.paused[1] = pause > 0
		p.pass(pause)
		p.paused[1] = false
		took := p.drain()
		s := p.ends[0].Stats()
		if s.BlackHoles != 1 || s.Split == 0 || took > 3*time.Millisecond+2*pause {
			t.Errorf("a pause of %v, then %v: %+v", pause, took, s)
		}
	}
}

// TestLateAdvance has a rank look at its clock late, with acknowledgements unread: what
// they tell of is not sent again.
func TestLateAdvance(t *testing.T) {
	for _, late := range []time.Duration{time.Millisecond, 15 * time.Millisecond, 3 * time.Second} {
		p := room(t)
		p.put(20)
		p.drain()
		before := p.ends[0].Stats()
		p.put(1)
		p.serve(0)
		drained := p.now
		p.paused[0] = true
		p.pass(late)
		p.paused[0] = false
		if len(p.wire[0]) == 0 {
			t.Fatal("nothing has come")
		}
		p.ends[0].AdvanceTo(p.now, drained)
		if d, ok := p.ends[0].Deadline(); !ok || d < p.now || d > p.now+100*time.Microsecond {
			t.Errorf("late by %v: called again at %v, it is %v", late, d, p.now)
		}
		if l := take(p.now, p.ends[0]); carries(l) {
			t.Errorf("late by %v: %d datagrams before the acknowledgements are read", late, len(l))
		}
		p.drain()
		if s := p.ends[0].Stats(); s.Again != before.Again || s.Probes != before.Probes {
			t.Errorf("late by %v: %+v", late, s)
		}
	}
}

// TestProbesAfterPause has a rank that does not run for a while find that nothing has
// come: it sends the two oldest datagrams again, and no more before the next time-out.
func TestProbesAfterPause(t *testing.T) {
	for _, pause := range []time.Duration{15 * time.Millisecond, 3 * time.Second} {
		p := room(t)
		p.put(20)
		p.drain()
		p.put(1)
		p.cut = true
		p.serve(0)
		p.now += pause
		sent, before := p.sent[0], p.ends[0].Stats()
		p.serve(0)
		s := p.ends[0].Stats()
		// A probe of silence may ask for an answer beside them.
		if n := p.sent[0] - sent; n < 2 || n > 3 || s.Again != before.Again+2 || s.Probes != before.Probes+1 {
			t.Errorf("after %v: %d datagrams; %+v", pause, n, s)
		}
		if d, ok := p.ends[0].Deadline(); !ok || d <= p.now {
			t.Errorf("after %v: the next time-out is at %v, it is %v", pause, d, p.now)
		}
	}
}
