package engine_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
)

// path carries datagrams between two engines in virtual time. An engine whose rank
// is paused is not called, and what comes for it waits, as in a socket.
type path struct {
	t      *testing.T
	now    time.Duration
	delay  time.Duration
	cut    bool // nothing arrives any more
	most   int  // longer datagrams do not arrive; 0: all do
	ends   [2]*engine.Engine
	paused [2]bool
	wire   [2][]letter // by receiver
	sent   [2]int      // datagrams, by sender
	done   int         // completions
}

type letter struct {
	at time.Duration
	b  []byte
}

func newPath(t *testing.T, delay time.Duration, adjust func(c *engine.Config)) *path {
	a, b, _ := pair(t, func(c *engine.Config) {
		c.InitialRTT, c.Granularity = 0, 0
		if adjust != nil {
			adjust(c)
		}
	})
	return &path{t: t, delay: delay, ends: [2]*engine.Engine{a, b}}
}

// serve lets an engine take what has come by now, and send.
func (p *path) serve(r int) {
	e := p.ends[r]
	var buf [2000]byte
	for len(p.wire[r]) > 0 && p.wire[r][0].at <= p.now {
		e.Receive(p.now, 1-r, p.wire[r][0].b)
		p.wire[r] = p.wire[r][1:]
	}
	e.Advance(p.now)
	for {
		if _, ok := e.NextCompletion(); !ok {
			break
		}
		p.done++
	}
	for _, n, ok := e.Next(p.now, buf[:]); ok; _, n, ok = e.Next(p.now, buf[:]) {
		p.sent[r]++
		if !p.cut && (p.most == 0 || n <= p.most) {
			p.wire[1-r] = append(p.wire[1-r], letter{p.now + p.delay, append([]byte(nil), buf[:n]...)})
		}
	}
}

// pass lets d pass: each engine that is not paused is called when it has asked for
// it or something has come.
func (p *path) pass(d time.Duration) {
	p.t.Helper()
	end := p.now + d
	for {
		next := end
		for r, e := range p.ends {
			if p.paused[r] {
				continue
			}
			p.serve(r)
			if at, ok := e.Deadline(); ok {
				next = min(next, max(at, p.now))
			}
		}
		for r := range p.ends {
			if !p.paused[r] && len(p.wire[r]) > 0 {
				next = min(next, max(p.wire[r][0].at, p.now))
			}
		}
		if p.now == end {
			return
		}
		if next == p.now {
			next++ // one serves the other
		}
		p.now = min(next, end)
	}
}

// atomic has rank r await something of the other.
func (p *path) atomic(r int) {
	p.t.Helper()
	if err := p.ends[r].Atomic(1-r, at(0), conduits.AtomicAdd, conduits.Uint64, 1, 0, 1); err != nil {
		p.t.Fatal(err)
	}
}

func (p *path) alive() {
	p.t.Helper()
	for r, e := range p.ends {
		if e.Dead(1 - r) {
			p.t.Fatalf("at %v: %v", p.now, e.Silence(1-r))
		}
	}
}

// TestSilence: a peer that is gone is dead after the dead time, at any round trip,
// with probes that had time for an answer, and the error describes what was heard.
func TestSilence(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Millisecond, 200 * time.Millisecond} {
		p := newPath(t, delay, func(c *engine.Config) { c.DeadTime = 10 * time.Second })
		p.atomic(0)
		p.pass(time.Second + 2*delay)
		p.cut = true
		p.wire = [2][]letter{}
		p.atomic(0)
		from := p.now
		for !p.ends[0].Dead(1) {
			if p.pass(10 * time.Millisecond); p.now > from+time.Minute {
				t.Fatal("not dead")
			}
		}
		if took := p.now - from; took < 10*time.Second || took > 10*time.Second+10*time.Millisecond {
			t.Errorf("delay %v: dead after %v", delay, took)
		}
		var s *engine.SilentError
		if err := p.ends[0].Silence(1); !errors.As(err, &s) {
			t.Fatalf("%v", err)
		}
		if s.Heard < s.Silent || s.Heard > 12*time.Second || s.Probes < 4 || s.Paused != 0 || s.Own != "rank 0" || s.Peer != "rank 1" {
			t.Errorf("delay %v: %+v", delay, s)
		}
	}
}

// TestAwaited: what is awaited of which rank, and when it was heard, can be asked for; a
// silent peer is told of once, when half of the dead time is over.
func TestAwaited(t *testing.T) {
	var doubts []time.Duration
	var p *path
	p = newPath(t, time.Millisecond, func(c *engine.Config) {
		c.DeadTime = 10 * time.Second
		if c.Rank == 0 {
			c.Doubt = func(rank int) { doubts = append(doubts, p.now) }
		}
	})
	e := p.ends[0]
	p.atomic(0)
	if l := e.Awaited(p.now); len(l) != 1 || l[0] != (engine.Awaited{Rank: 1, Heard: -1}) {
		t.Errorf("before anything was heard: %+v", l)
	}
	p.pass(time.Second)
	if l := e.Awaited(p.now); len(l) != 0 {
		t.Errorf("after the answer: %+v", l)
	}
	p.cut = true
	p.atomic(0)
	from := p.now
	p.pass(4 * time.Second)
	l := e.Awaited(p.now)
	if len(l) != 1 || l[0].Rank != 1 || l[0].Heard < 4*time.Second || l[0].Heard > 5*time.Second {
		t.Errorf("%v after a request: %+v", p.now-from, l)
	}
	if len(doubts) != 0 {
		t.Errorf("in doubt after %v", doubts[0]-from)
	}
	p.pass(20 * time.Second)
	if len(doubts) != 1 || doubts[0]-from < 5*time.Second || doubts[0]-from > 6*time.Second || !e.Dead(1) || len(e.Awaited(p.now)) != 0 {
		t.Errorf("in doubt at %v, asked at %v; %+v", doubts, from, e.Awaited(p.now))
	}
}

// TestVouch: a silent peer that is vouched for whenever it is in doubt lives as long as that
// goes on, however long, and is dead one dead time after the last time.
func TestVouch(t *testing.T) {
	const dead = 10 * time.Second
	var p *path
	vouched, last := 40, time.Duration(0)
	var in bool
	p = newPath(t, time.Millisecond, func(c *engine.Config) {
		c.DeadTime = dead
		if c.Rank == 0 {
			c.Doubt = func(rank int) { in = true }
			c.Seen = func(rank int) string { return "it was seen" }
		}
	})
	e := p.ends[0]
	p.atomic(0)
	p.pass(time.Second)
	p.cut = true
	p.atomic(0)
	from := p.now
	for !e.Dead(1) {
		if p.pass(10 * time.Millisecond); p.now-from > 100*dead {
			t.Fatal("not dead")
		}
		if silent, doubted := e.Doubted(1); in && doubted && vouched > 0 {
			if d := p.now - from - silent; d < -time.Second || d > time.Second {
				t.Fatalf("after %v it is silent for %v", p.now-from, silent)
			}
			e.Vouch(1)
			if _, doubted = e.Doubted(1); doubted {
				t.Fatal("in doubt when it has just been vouched for")
			}
			vouched--
			in, last = false, p.now
		}
	}
	if vouched > 0 {
		t.Fatalf("dead after %v with %d times to vouch left", p.now-from, vouched)
	}
	if took := p.now - last; took < dead || took > dead+100*time.Millisecond {
		t.Errorf("dead %v after the last time", took)
	}
	var s *engine.SilentError
	if err := e.Silence(1); !errors.As(err, &s) || s.Silent < p.now-from-time.Second || s.Seen != "it was seen" || !strings.Contains(s.Error(), "it was seen") || strings.Contains(s.Error(), "firewall") {
		t.Errorf("%v", err)
	}
}

// TestSilenceOfPause stops both ranks for longer than the dead time, at any moment
// of an exchange: neither is dead.
func TestSilenceOfPause(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Millisecond, 200 * time.Millisecond} {
		for n := range 50 {
			p := newPath(t, delay, nil) // dead time 1 s
			p.pass(time.Duration(n+1) * time.Millisecond)
			for range 3 {
				p.atomic(0)
				p.atomic(1)
				p.pass(time.Duration(n) * delay / 20)
				p.now += 12 * time.Second
				// Whose turn comes first may be starved for a while yet.
				r := n % 2
				p.paused[r] = true
				p.pass(time.Duration(n) * 10 * time.Millisecond)
				p.paused[r] = false
			}
			p.pass(5 * time.Second)
			p.alive()
		}
	}
}

// TestSilenceAfterPauses: answers that came after minutes, since both ranks were
// stopped, or late, since the other one was, do not put off the verdict on a peer that
// is gone.
func TestSilenceAfterPauses(t *testing.T) {
	for _, both := range []bool{false, true} {
		p := newPath(t, time.Millisecond, func(c *engine.Config) { c.DeadTime = 10 * time.Second })
		p.atomic(0)
		p.pass(time.Second)
		for range 3 {
			p.atomic(0)
			p.pass(500 * time.Microsecond) // the request is under way
			p.paused = [2]bool{both, true}
			p.pass(map[bool]time.Duration{false: 9 * time.Second, true: 2 * time.Minute}[both])
			p.paused = [2]bool{}
			p.pass(time.Second)
		}
		p.alive()
		p.cut = true
		p.atomic(0)
		from := p.now
		for !p.ends[0].Dead(1) && p.now < from+10*time.Minute {
			p.pass(10 * time.Millisecond)
		}
		if took := p.now - from; took < 10*time.Second || took > 10*time.Second+10*time.Millisecond {
			t.Errorf("both were stopped: %v; dead after %v", both, took)
		}
	}
}

// TestSilenceStarved has a rank look at its clock much too seldom: its peers are not
// dead, unless they are gone, and the error says that this host did not run.
func TestSilenceStarved(t *testing.T) {
	for _, gone := range []bool{false, true} {
		p := newPath(t, time.Millisecond, nil)
		p.atomic(0)
		p.pass(10 * time.Millisecond)
		p.cut = gone
		p.atomic(0)
		for range 200 {
			p.paused[0] = true
			p.pass(700 * time.Millisecond)
			p.paused[0] = false
			if p.ends[0].Dead(1) {
				break
			}
			p.serve(0)
			if !gone {
				p.atomic(0)
			}
		}
		if !gone {
			p.alive()
			continue
		}
		if !p.ends[0].Dead(1) {
			t.Fatal("who is gone is not dead")
		}
		if err := p.ends[0].Silence(1); !strings.Contains(err.Error(), "this host did not run for ") {
			t.Errorf("%v", err)
		}
	}
}

// TestSilenceOfBacklog: a rank that has not received all that has come judges no peer.
func TestSilenceOfBacklog(t *testing.T) {
	p := newPath(t, 0, nil)
	e := p.ends[0]
	p.atomic(0)
	p.pass(0)
	p.atomic(0)
	p.cut = true
	p.pass(0)
	var buf [2000]byte
	for now := p.now; now < time.Minute; now += 10 * time.Millisecond {
		e.AdvanceTo(now, p.now)
		for _, _, ok := e.Next(now, buf[:]); ok; _, _, ok = e.Next(now, buf[:]) {
		}
	}
	p.alive()
	p.now = time.Minute
	p.pass(2 * time.Second)
	if !e.Dead(1) {
		t.Error("who is gone is not dead")
	}
}
