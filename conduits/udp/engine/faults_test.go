package engine_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/segment"
)

// TestRepliesPassRequests has two ranks that consume no requests and are full of
// them, over a bad network: replies go through nevertheless.
func TestRepliesPassRequests(t *testing.T) {
	for seed := range uint64(*flagSeeds) {
		const replies = 200
		run(t, 2, seed+1, weather(), func(c *engine.Config) { c.Credits = 4 }, func(n *node) {
			n.hold = true
			got, requests := 0, 0
			n.message = func(m *engine.Message) {
				if m.Class == conduits.Reply {
					got++
				} else {
					requests++
				}
			}
			for i := range 4 {
				n.send(1-n.rank, conduits.Request, i, nil, make([]byte, 4096))
			}
			if n.Reserve(1-n.rank, conduits.Request) != conduits.NoCredit {
				n.j.t.Error("credit beyond the limit")
			}
			for i := range replies {
				n.send(1-n.rank, conduits.Reply, i, nil, make([]byte, i))
			}
			n.wait("replies", func() bool { return got == replies })
			if requests != 0 {
				n.j.t.Error("requests were consumed")
			}
			n.hold = false
			n.wait("requests", func() bool { return requests == 4 })
		})
	}
}

// TestPartition cuts two ranks off for 3 s, which is less than the dead time.
func TestPartition(t *testing.T) {
	for seed := range uint64(5) {
		f := weather()
		f.Partitions = []sim.Partition{{First: 0, Last: 1, At: 100 * sim.Microsecond, For: 3 * sim.Second}}
		j := run(t, 4, seed+1, f, func(c *engine.Config) {
			c.DeadTime = 10 * time.Second
		}, func(n *node) {
			exercise(n, 40)
			if now := n.s.Now(); now < 3*time.Second {
				t.Errorf("rank %d was done at %v", n.rank, now)
			}
		})
		for _, n := range j.nodes {
			if s := n.Stats(); s.Deaths != 0 {
				t.Fatalf("%+v", s)
			}
		}
	}
}

// TestDead cuts a rank off for longer than the dead time: whatever is under way
// to it ends with an error that names it, and the others go on.
func TestDead(t *testing.T) {
	for _, what := range []string{"put", "small put", "get", "atomic", "message", "long", "credit"} {
		f := weather()
		f.Partitions = []sim.Partition{{First: 2, Last: 2, At: sim.Millisecond, For: 100 * sim.Second}}
		run(t, 3, 3, f, func(c *engine.Config) { c.Credits = 2 }, func(n *node) {
			got := 0
			n.message = func(*engine.Message) { got++ }
			if n.rank == 2 {
				return // it serves
			}
			var ended []engine.Completion
			n.done = func(c engine.Completion) { ended = append(ended, c) }
			n.wait("contact", func() bool { return n.Reserve(2, conduits.Request) == conduits.Ready })
			n.Send(2, conduits.Request, 1, nil, nil)
			until(n, 2*time.Millisecond)
			began := n.s.Now()
			b := make([]byte, 5000)
			asked := true
			switch what {
			case "put":
				_, _ = n.Put(2, at(0), b, conduits.RemoteDone, 42)
			case "small put":
				_, _ = n.Put(2, at(0), b[:8], conduits.RemoteDone, 42)
			case "get":
				_, _ = n.Get(b, 2, at(0), conduits.RemoteDone, 42)
			case "atomic":
				_ = n.Atomic(2, at(0), conduits.AtomicAdd, conduits.Int64, 1, 0, 42)
			case "message", "credit":
				asked = false
				for n.Reserve(2, conduits.Request) == conduits.Ready {
					n.Send(2, conduits.Request, 1, nil, nil)
				}
			case "long":
				n.wait("credit", func() bool { return n.Reserve(2, conduits.Request) == conduits.Ready })
				n.SendLong(2, conduits.Request, 1, nil, at(0), b, 42)
			}
			n.wait("death", func() bool { return len(n.dead) > 0 && (!asked || len(ended) > 0) })
			if took := n.s.Now() - began; took < time.Second-10*time.Millisecond || took > time.Second+10*time.Millisecond {
				t.Errorf("%s: declared dead after %v", what, took)
			}
			var p *conduits.PeerError
			if asked && (len(ended) != 1 || ended[0].Cookie != 42 || !errors.As(ended[0].Err, &p) || p.Rank != 2) {
				t.Errorf("%s: completions %+v", what, ended)
			}
			if n.Reserve(2, conduits.Request) != conduits.Dead || !n.Dead(2) {
				t.Errorf("%s: messages are still accepted", what)
			}
			if _, err := n.Put(2, at(0), b, conduits.RemoteDone, 43); !errors.Is(err, conduits.ErrPeer) {
				t.Errorf("%s: put: %v", what, err)
			}
			n.send(1-n.rank, conduits.Request, 5, nil, nil)
			n.wait("the living", func() bool { return got == 1 })
		})
	}
}

// until serves until a time.
func until(n *node, t time.Duration) {
	for n.s.Now() < t {
		if !n.step() {
			d, ok := n.Deadline()
			if !ok || d > t {
				d = t
			}
			n.s.Wait(d)
		}
	}
}

// TestStalledPeer sends to a rank that stands still and to one that does not:
// the latter is served as if it were alone.
func TestStalledPeer(t *testing.T) {
	took := func(stall sim.Time) (d time.Duration) {
		f := sim.Faults{Stalls: []sim.Stall{{Rank: 1, At: 0, For: stall}}}
		run(t, 3, 1, f, nil, func(n *node) {
			if n.rank != 0 {
				return
			}
			done := 0
			n.done = func(c engine.Completion) {
				if c.Cookie == 2 {
					done++
				}
			}
			data := make([]byte, 100000)
			for range 20 {
				_, _ = n.Put(1, at(partBase), data, conduits.RemoteDone, 1)
			}
			for range 20 {
				_, _ = n.Put(2, at(partBase), data, conduits.RemoteDone, 2)
			}
			n.wait("puts", func() bool { return done == 20 })
			d = n.s.Now()
		})
		return d
	}
	plain, stalled := took(0), took(100*sim.Millisecond)
	t.Logf("%v with both, %v with one stalled", plain, stalled)
	if stalled > plain*5/4 {
		t.Errorf("%v beside a stalled peer, %v without", stalled, plain)
	}
}

// TestManyPuts has 65,536 puts outstanding at once while 5 % of the datagrams
// are lost.
func TestManyPuts(t *testing.T) {
	const puts = 65536
	run(t, 2, 1, sim.Faults{Drop: 0.05, Buffer: 1 << 18}, nil, func(n *node) {
		if n.rank == 1 {
			return
		}
		done := make([]bool, puts)
		left := puts
		n.done = func(c engine.Completion) {
			if done[c.Cookie] || c.Err != nil {
				t.Errorf("completion %+v", c)
			}
			done[c.Cookie] = true
			left--
		}
		for i := range puts {
			v := []byte{byte(i), byte(i >> 8), 1}
			if ev, err := n.Put(1, at(partBase+3*i), v, conduits.SourceDone|conduits.RemoteDone, uint64(i)); err != nil || ev != conduits.SourceDone {
				t.Errorf("put: %v, %v", ev, err)
			}
		}
		n.wait("puts", func() bool { return left == 0 })
		b := n.j.nodes[1].mem.b[partBase:]
		for i := range puts {
			if !bytes.Equal(b[3*i:3*i+3], []byte{byte(i), byte(i >> 8), 1}) {
				t.Fatalf("put %d is not there", i)
			}
		}
		t.Logf("%v, %+v", n.s.Now(), n.Stats())
	})
}

// TestShare sees that small messages share a datagram when one with others is
// under way, that the first never waits, and what ends the wait of others.
func TestShare(t *testing.T) {
	const hold = 10 * time.Microsecond
	for _, c := range []struct {
		name string
		end  func(a, b *engine.Engine, now time.Duration, first []byte) time.Duration
	}{
		{"time", func(a, _ *engine.Engine, now time.Duration, _ []byte) time.Duration {
			d, ok := a.Deadline()
			if !ok || d > now+hold {
				t.Errorf("deadline %v, %v", d, ok)
			}
			a.Advance(d)
			return d
		}},
		{"another message after the time", func(a, _ *engine.Engine, now time.Duration, _ []byte) time.Duration {
			a.Time(now + hold)
			a.Reserve(1, conduits.Request)
			a.Send(1, conduits.Request, 1, nil, nil)
			return now + hold
		}},
		{"acknowledgement", func(a, b *engine.Engine, now time.Duration, first []byte) time.Duration {
			b.Receive(now, 0, first)
			b.Advance(now + 5*time.Microsecond)
			buf := make([]byte, 2000)
			_, n, _ := b.Next(now+5*time.Microsecond, buf)
			a.Receive(now+5*time.Microsecond, 1, buf[:n])
			return now + 5*time.Microsecond
		}},
		{"push", func(a, _ *engine.Engine, now time.Duration, _ []byte) time.Duration {
			a.Push()
			return now
		}},
		{"no credit", func(a, _ *engine.Engine, now time.Duration, _ []byte) time.Duration {
			for a.Reserve(1, conduits.Request) == conduits.Ready {
				a.Send(1, conduits.Request, 1, nil, nil)
			}
			return now
		}},
		{"enough", func(a, _ *engine.Engine, now time.Duration, _ []byte) time.Duration {
			for range 8 {
				a.Reserve(1, conduits.Request)
				a.Send(1, conduits.Request, 1, nil, make([]byte, 1000))
			}
			return now
		}},
		{"much else", func(a, _ *engine.Engine, now time.Duration, _ []byte) time.Duration {
			_, _ = a.Put(1, at(0), make([]byte, 2000), conduits.RemoteDone, 1)
			return now
		}},
	} {
		a, b, _ := pair(t, func(c *engine.Config) { c.Hold, c.Credits, c.Datagram = hold, 60, 2000 })
		buf, first := make([]byte, 2000), make([]byte, 2000)
		now := time.Second
		a.Time(now)
		send := func() {
			a.Reserve(1, conduits.Request)
			a.Send(1, conduits.Request, 1, []uint32{1}, nil)
		}
		send()
		_, n, ok := a.Next(now, first)
		if !ok {
			t.Errorf("%s: the first message is held back", c.name)
		}
		first = first[:n]
		now += time.Microsecond
		a.Time(now)
		for range 40 {
			send()
		}
		if _, _, ok := a.Next(now, buf); ok || !a.Held() {
			t.Errorf("%s: sent at once, held %v", c.name, a.Held())
		}
		now = c.end(a, b, now, first)
		most := 0
		for _, l, ok := a.Next(now, buf); ok; _, l, ok = a.Next(now, buf) {
			most = max(most, l)
		}
		if most < 40*13 {
			t.Errorf("%s: 40 messages that wait: a datagram of %d bytes", c.name, most)
		}
		if a.Held() {
			t.Errorf("%s: held still", c.name)
		}
	}
}

// TestRefused asks for what the target does not permit.
func TestRefused(t *testing.T) {
	for _, rights := range []segment.Rights{0, segment.RightsAll} {
		run(t, 2, 1, weather(), nil, func(n *node) {
			n.mem.rights = rights
			got := 0
			n.message = func(m *engine.Message) {
				if m.Tag != 7 {
					t.Errorf("message %d got through", m.Tag)
				}
				got++
			}
			ended := map[uint64]error{}
			n.done = func(c engine.Completion) { ended[c.Cookie] = c.Err }
			peer := 1 - n.rank
			before := bytes.Clone(n.mem.b)
			end := segment.AttachBase + segment.NLA(len(n.mem.b))
			bad := []segment.NLA{end - 4, end, segment.AttachBase - 4, 0, ^segment.NLA(0) - 3, ^segment.NLA(0) &^ 7}
			if rights == 0 {
				bad = append(bad, at(64))
			}
			big := bytes.Repeat([]byte{1}, 5000)
			cookie := uint64(0)
			for _, a := range bad {
				_, _ = n.Put(peer, a, big[:8], conduits.RemoteDone, 1000)
				_, _ = n.Put(peer, a, big, conduits.RemoteDone, 1001)
				cookie++
				_, _ = n.Get(make([]byte, 8), peer, a, conduits.RemoteDone, cookie)
				cookie++
				_ = n.Atomic(peer, a, conduits.AtomicAdd, conduits.Uint64, 1, 0, cookie)
				n.wait("credit", func() bool { return n.Reserve(peer, conduits.Request) == conduits.Ready })
				n.SendLong(peer, conduits.Request, 8, []uint32{1}, a, big, 1002)
			}
			n.wait("the end of all", func() bool {
				for c := uint64(1); c <= cookie; c++ {
					if _, ok := ended[c]; !ok {
						return false
					}
				}
				return true
			})
			for c := uint64(1); c <= cookie; c++ {
				if !errors.Is(ended[c], segment.ErrFault) {
					t.Errorf("operation %d: %v", c, ended[c])
				}
			}
			n.send(peer, conduits.Request, 7, nil, nil)
			n.wait("a message", func() bool { return got == 1 })
			if !bytes.Equal(before, n.mem.b) {
				t.Error("memory has changed")
			}
			if s := n.Stats(); s.Refused == 0 || s.Faults == 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// pair is two engines without a network.
func pair(t testing.TB, adjust func(c *engine.Config)) (a, b *engine.Engine, mem *memory) {
	t.Helper()
	mem = &memory{b: make([]byte, 1<<16), rights: segment.RightsAll}
	var e [2]*engine.Engine
	for r := range e {
		c := config(r, 2)
		c.Memory = mem
		if adjust != nil {
			adjust(&c)
		}
		var err error
		if e[r], err = engine.New(c); err != nil {
			t.Fatal(err)
		}
	}
	return e[0], e[1], mem
}

// carry hands all datagrams that there are from a, of rank 0, to b and back.
func carry(now time.Duration, a, b *engine.Engine) {
	buf := make([]byte, 65507)
	a.Advance(now)
	b.Advance(now)
	for any := true; any; {
		any = false
		for _, l := range []struct {
			from, to *engine.Engine
			src      int
		}{{a, b, 0}, {b, a, 1}} {
			for {
				_, n, ok := l.from.Next(now, buf)
				if !ok {
					break
				}
				l.to.Receive(now, l.src, buf[:n])
				any = true
			}
		}
	}
}

// TestIncarnation starts a rank again: those that knew the first ignore the
// second, and the second ignores what was meant for the first.
func TestIncarnation(t *testing.T) {
	a, b, _ := pair(t, nil)
	a.Reserve(1, conduits.Request)
	a.Send(1, conduits.Request, 1, nil, nil)
	carry(0, a, b)
	carry(time.Millisecond, a, b) // the acknowledgement waits for company
	if m := b.NextMessage(conduits.Request); m == nil {
		t.Fatal("no message")
	}
	_, again, _ := pair(t, func(c *engine.Config) { c.Epoch += 100 })
	a.Reserve(1, conduits.Request)
	a.Send(1, conduits.Request, 2, nil, nil)
	again.Reserve(0, conduits.Request)
	again.Send(0, conduits.Request, 3, nil, nil)
	carry(2*time.Millisecond, a, again)
	if again.NextMessage(conduits.Request) != nil || a.NextMessage(conduits.Request) != nil {
		t.Error("a message from or to another incarnation")
	}
	if a.Stats().Stale == 0 || again.Stats().Stale == 0 {
		t.Errorf("%+v\n%+v", a.Stats(), again.Stats())
	}
	for now := 2 * time.Millisecond; now < 2*time.Second; now += 10 * time.Millisecond {
		carry(now, a, again)
	}
	if r, ok := a.NextDead(); !ok || r != 1 {
		t.Error("who was started again is not dead")
	}
}

// TestContact sees that ranks which were never talked to cost nothing.
func TestContact(t *testing.T) {
	a, _, _ := pair(t, func(c *engine.Config) { c.Size = 1 << 20 })
	if a.Stats().Peers != 0 {
		t.Errorf("%+v", a.Stats())
	}
	a.Receive(0, 77777, []byte("nonsense"))
	a.Receive(0, 1<<20, nil)
	if s := a.Stats(); s.Peers != 0 || s.Malformed != 2 {
		t.Errorf("%+v", s)
	}
	a.Reserve(1, conduits.Request)
	if a.Stats().Peers != 1 {
		t.Errorf("%+v", a.Stats())
	}
}

// TestDeathAfterAcknowledgement lets a peer die between the parts of its answer:
// nothing of this rank is under way any more, and yet it notices.
func TestDeathAfterAcknowledgement(t *testing.T) {
	a, b, _ := pair(t, nil)
	_, _ = a.Get(make([]byte, 3000), 1, at(0), conduits.RemoteDone, 42)
	buf := make([]byte, 2000)
	_, n, _ := a.Next(0, buf)
	b.Receive(0, 0, buf[:n])
	_, n, _ = b.Next(0, buf)
	a.Receive(0, 1, buf[:n])
	asked := 0
	var now time.Duration
	for !a.Dead(1) {
		d, ok := a.Deadline()
		if !ok {
			t.Fatal("nothing more is expected")
		}
		now = d
		a.Advance(now)
		for _, _, ok := a.Next(now, buf); ok; _, _, ok = a.Next(now, buf) {
			asked++
		}
	}
	if now != time.Second || asked < 10 {
		t.Errorf("dead at %v after %d questions", now, asked)
	}
	if c, ok := a.NextCompletion(); !ok || c.Cookie != 42 || !errors.Is(c.Err, conduits.ErrPeer) {
		t.Errorf("completion %+v", c)
	}
}
