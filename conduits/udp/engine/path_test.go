package engine_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
)

// far is for round trips of tenths of a second: RFC 9002's own constants.
func far(c *engine.Config) {
	c.InitialRTT, c.Granularity, c.AckDelay, c.DeadTime = 0, time.Millisecond, 200*time.Microsecond, 10*time.Second
}

// packet is the packet number and the sequence number of a datagram, low halves.
func packet(d []byte) (pn, seq uint32) { return le.Uint32(d[20:]), le.Uint32(d[24:]) }

// TestSamples has acknowledgements come after known times, also of contents that
// were sent again, and compares with section 5.3 of RFC 9002.
func TestSamples(t *testing.T) {
	a, b, _ := pair(t, far)
	now := time.Second
	var srtt, rttvar, least time.Duration
	for i, rtt := range []time.Duration{300, 320, 310, 500, 300, 290, 305, 300, 300} {
		rtt *= time.Millisecond
		a.Time(now)
		if _, err := a.Put(1, at(0), []byte{1}, conduits.RemoteDone, uint64(i)); err != nil {
			t.Fatal(err)
		}
		l := take(now, a)
		if i%3 == 1 { // lost, and sent again: the round trip of that is what counts
			var again [][]byte
			for !carries(again) {
				d, ok := a.Deadline()
				if !ok || d > now+time.Minute {
					t.Fatal("no probe")
				}
				now = d
				a.Advance(now)
				again = take(now, a)
			}
			if len(again) != 1 {
				t.Fatalf("a probe of %d datagrams", len(again))
			}
			p0, s0 := packet(l[0])
			if p1, s1 := packet(again[0]); p1 == p0 || s1 != s0 {
				t.Fatalf("packet %d of contents %d is sent again as %d of %d", p0, s0, p1, s1)
			}
			l = again
		}
		kept := time.Duration(i) * 3 * time.Millisecond // the receiver does not look at its socket
		give(now+rtt/2, b, 0, l)
		now += rtt + kept
		b.Advance(now - rtt/2)
		give(now, a, 1, take(now-rtt/2, b))
		if len(ends(t, a)) != 1 {
			t.Fatal("not acknowledged")
		}
		if least == 0 || rtt+kept < least {
			least = rtt + kept
		}
		adjusted := rtt + kept
		// The acknowledgement has the delay in sixteenths, rounded down.
		told := engine.Told(kept)
		if adjusted-told >= least {
			adjusted -= told
		}
		if i == 0 {
			srtt, rttvar = adjusted, adjusted/2
		} else {
			rttvar += ((srtt - adjusted).Abs() - rttvar) / 4
			srtt += (adjusted - srtt) / 8
		}
		if s := a.Path(1); s.SRTT != srtt || s.RTTVar != rttvar || s.Latest != adjusted || s.Least != least {
			t.Fatalf("round trip %d: %+v, want srtt %v, rttvar %v, latest %v, min %v", i, s, srtt, rttvar, adjusted, least)
		}
		if want := srtt + max(4*rttvar, time.Millisecond) + 200*time.Microsecond; a.Path(1).PTO != want {
			t.Fatalf("probe time-out %v, want %v", a.Path(1).PTO, want)
		}
	}
}

// TestDelayCodes: what an acknowledgement says of its delay is at most what it was,
// and not much less.
func TestDelayCodes(t *testing.T) {
	for d := time.Duration(0); d < 500*time.Millisecond; d += 1 + d/1000 {
		if c := engine.Told(d); c > d || d-c > max(time.Microsecond, d/16) {
			t.Fatalf("%v is told as %v", d, c)
		}
	}
}

// TestBackoff: probes without an answer come at twice the time each, as far as
// several fit into the dead time; only an acknowledgement ends that.
func TestBackoff(t *testing.T) {
	const dead = 10 * time.Minute
	a, b, _ := pair(t, func(c *engine.Config) { far(c); c.DeadTime = dead })
	start := time.Second
	a.Time(start)
	_, _ = a.Put(1, at(0), []byte{1}, conduits.RemoteDone, 1)
	last := take(start, a)
	wait := 3 * 333 * time.Millisecond // RFC 9002, 6.2.2
	sent := start
	for i := range 8 {
		at := sent + wait
		var l [][]byte
		for now := sent; len(l) == 0 || !carries(l); { // the rest is the clock of silence
			d, ok := a.Deadline()
			if !ok || d > at {
				t.Fatalf("probe %d: nothing until %v, expected at %v", i, d-start, at-start)
			}
			now = d
			a.Advance(now)
			l = take(now, a)
			if carries(l) && now != at {
				t.Fatalf("probe %d at %v, expected at %v", i, now-start, at-start)
			}
		}
		p0, _ := packet(last[len(last)-1])
		if p1, _ := packet(l[0]); p1 <= p0 {
			t.Fatalf("packet number %d after %d", p1, p0)
		}
		last, sent = l, at
		wait = max(3*333*time.Millisecond, min(2*wait, dead/8))
		// Something else comes that acknowledges nothing.
		b.Time(at)
		b.Reserve(0, conduits.Request)
		b.Send(0, conduits.Request, 1, nil, nil)
		give(at, a, 1, take(at, b))
		a.Release(a.NextMessage(conduits.Request))
		take(at, a)
		if e := a.Path(1).Expired; e != uint(i+1) {
			t.Fatalf("%d time-outs in a row, expected %d", e, i+1)
		}
	}
	give(sent, b, 0, last)
	b.Advance(sent + time.Millisecond)
	give(sent+time.Millisecond, a, 1, take(sent+time.Millisecond, b))
	if len(ends(t, a)) != 1 || a.Path(1).Expired != 0 || a.Path(1).SRTT > 2*time.Millisecond {
		t.Errorf("after the acknowledgement: %+v", a.Path(1))
	}
}

// carries reports whether some of l have contents.
func carries(l [][]byte) bool {
	for _, d := range l {
		if d[1]&2 != 0 {
			return true
		}
	}
	return false
}

// near is for a path that is too short to be paced on.
func near(c *engine.Config) {
	c.InitialRTT, c.Granularity, c.AckDelay, c.DeadTime = 0, tick, tick/2, 10*time.Second
}

const tick = 10 * time.Microsecond

// warm has a and b exchange until the window of a is at least so many bytes, at a
// round trip of rtt, and returns the time.
func warm(t *testing.T, a, b *engine.Engine, now, rtt time.Duration, bytes float64) time.Duration {
	t.Helper()
	big := make([]byte, 30000)
	for i := 0; a.Path(1).Cwnd < bytes; i++ {
		if i > 1000 {
			t.Fatalf("the window does not grow: %+v", a.Path(1))
		}
		if a.Drained() {
			for range int(bytes) / len(big) * 2 {
				_, _ = a.Put(1, at(0), big, conduits.SourceDone, 0)
			}
		}
		step := rtt / 20
		a.Advance(now)
		l := take(now, a)
		now += rtt / 2
		give(now, b, 0, l)
		acks := take(now, b)
		now += rtt/2 + step
		give(now, a, 1, acks)
		b.Advance(now)
	}
	for i := 0; !a.Drained(); i++ {
		a.Advance(now)
		l := take(now, a)
		give(now, b, 0, l)
		b.Advance(now + tick)
		acks := take(now+tick, b)
		now += rtt
		give(now, a, 1, acks)
		if i > 10000 {
			t.Fatal("never drained")
		}
	}
	for _, ok := a.NextCompletion(); ok; _, ok = a.NextCompletion() {
	}
	return now
}

// TestSpurious has datagrams overtake others: what was taken for lost, and had
// arrived, is noticed, gives back the window, and the next time there is more time.
func TestSpurious(t *testing.T) {
	const rtt = 225 * time.Microsecond
	a, b, _ := pair(t, near)
	now := warm(t, a, b, time.Second, rtt*2/3, 40000)
	for range 6 { // something waits in a queue, so that losses are congestion
		_, _ = a.Put(1, at(0), make([]byte, 1000), conduits.SourceDone, 0)
		give(now+rtt/2, b, 0, take(now, a))
		b.Advance(now + rtt/2 + tick)
		now += rtt + tick
		give(now, a, 1, take(now-rtt/2, b))
		ends(t, a)
	}
	before := a.Stats().Again
	for round := range 6 {
		cwnd := a.Path(1).Cwnd
		_, _ = a.Put(1, at(0), make([]byte, 13000), conduits.RemoteDone, 1)
		l := take(now, a)
		if len(l) < 9 {
			t.Fatalf("%d datagrams", len(l))
		}
		give(now+rtt/2, b, 0, l[4:])
		acks := take(now+rtt/2, b)
		give(now+rtt, a, 1, acks) // four are missing
		again := take(now+rtt, a)
		if sent := carries(again); sent != (round == 0) {
			t.Fatalf("round %d: sent again: %v", round, sent)
		}
		if round == 0 && a.Path(1).Cwnd >= cwnd {
			t.Error("four losses in a queue are no congestion")
		}
		late := now + rtt + rtt/8
		give(late-rtt/2, b, 0, l[:4])
		b.Advance(late - rtt/2 + tick)
		give(late, a, 1, take(late-rtt/2+tick, b))
		if len(ends(t, a)) != 1 {
			t.Fatalf("round %d: not complete: %+v", round, a.Stats())
		}
		give(late+rtt/2, b, 0, again)
		b.Advance(late + rtt/2 + tick)
		now = late + rtt
		give(now, a, 1, take(late+rtt/2+tick, b))
		if c := a.Path(1).Cwnd; c < cwnd {
			t.Errorf("round %d: window of %v, before %v", round, c, cwnd)
		}
	}
	if s := a.Stats(); s.Spurious != 4 || s.Again-before != 4 || a.Path(1).Overtake < 2 {
		t.Errorf("%+v, %+v", s, a.Path(1))
	}
	if s := b.Stats(); s.Twice != 4 {
		t.Errorf("%+v", s)
	}
}

// TestPersistentCongestion loses everything for a while (RFC 9002, section 7.6):
// the window is the least one afterwards, but only if that was long.
func TestPersistentCongestion(t *testing.T) {
	for _, long := range []bool{false, true} {
		const rtt = 225 * time.Microsecond
		a, b, _ := pair(t, near)
		now := warm(t, a, b, time.Second, rtt, 60000)
		s := a.Path(1)
		period := 3 * (s.SRTT + max(4*s.RTTVar, tick) + tick/2)
		pause := period / 2
		if long {
			pause = period + tick
		}
		for i := range 2 { // both are lost
			if i > 0 {
				now += pause
			}
			a.Time(now)
			_, _ = a.Put(1, at(0), make([]byte, 3000), conduits.RemoteDone, 1)
			if len(take(now, a)) == 0 {
				t.Fatal("nothing is sent")
			}
		}
		for i := range 4 { // and these are not
			now += tick
			_, _ = a.Put(1, at(i), make([]byte, 300), conduits.RemoteDone, 1)
			l := take(now, a)
			give(now, b, 0, l)
		}
		give(now+rtt, a, 1, take(now, b))
		if a.Stats().Again == 0 && !carries(take(now+rtt, a)) {
			t.Fatal("nothing is lost")
		}
		if c := a.Path(1).Cwnd; (c == 2*engine.DefaultDatagram) != long {
			t.Errorf("%v without news, the period is %v: window of %v bytes", pause, period, c)
		}
	}
}

// TestReductionUndone has datagrams taken for lost that have only been overtaken, while
// the path has a queue: the window is reduced, stays so while any of them may be lost,
// and as large as before once the last has turned up (RFC 9438, section 4.9.2).
func TestReductionUndone(t *testing.T) {
	const rtt, queued = 225 * time.Microsecond, 450 * time.Microsecond
	a, b, _ := pair(t, near)
	now := warm(t, a, b, time.Second, rtt, 60000)
	exchange := func(l [][]byte, rtt time.Duration) {
		now += rtt / 2
		give(now, b, 0, l)
		b.Advance(now + tick)
		acks := take(now+tick, b)
		now += max(rtt/2, tick)
		give(now, a, 1, acks)
	}
	for i := range 8 { // long round trips, so that losses are of a queue
		a.Advance(now)
		_, _ = a.Put(1, at(i), make([]byte, 300), conduits.RemoteDone, 1)
		exchange(take(now, a), queued)
	}
	a.Advance(now)
	_, _ = a.Put(1, at(0), make([]byte, 30000), conduits.RemoteDone, 2)
	l := take(now, a)
	if len(l) < 20 {
		t.Fatalf("%d datagrams", len(l))
	}
	late := [][]byte{l[1], l[4], l[5], l[9]}
	before, again := a.Path(1).Cwnd, a.Stats().Again
	exchange(slices.DeleteFunc(l, func(d []byte) bool {
		return slices.ContainsFunc(late, func(x []byte) bool { return &x[0] == &d[0] })
	}), queued)
	for i := 0; a.Stats().Again < again+uint64(len(late)); i++ {
		d, ok := a.Deadline()
		if !ok || i > 10 {
			t.Fatalf("nothing is taken for lost: %+v", a.Stats())
		}
		now = max(now, d)
		a.Advance(now)
		take(now, a) // what is sent again is lost
	}
	cut := a.Path(1).Cwnd
	if cut >= before {
		t.Fatalf("window of %v bytes, before %v: it is not reduced", cut, before)
	}
	// While a later one is missing b lists those that have come, and not only that all have.
	var more [2][][]byte
	for i := range more {
		_, _ = a.Put(1, at(i), make([]byte, 2000), conduits.RemoteDone, 3)
		more[i] = take(now, a)
	}
	exchange(more[1], 0)
	for i := range late {
		if c := a.Path(1).Cwnd; c >= before {
			t.Errorf("window of %v bytes again when %d of %d datagrams have turned up", c, i, len(late))
		}
		exchange(late[i:i+1], 0) // before what was sent again is due to be heard of
	}
	if c := a.Path(1).Cwnd; c < before {
		t.Errorf("window of %v bytes when all have turned up, before %v", c, before)
	}
	if s := a.Stats().Spurious; s != uint64(len(late)) {
		t.Errorf("%d losses were none, want %d", s, len(late))
	}
}

// TestAcknowledgementsLost loses only what comes back: a probe time-out sends no more
// than two, nothing is taken for lost, and everything takes effect once.
func TestAcknowledgementsLost(t *testing.T) {
	const rtt = 225 * time.Microsecond
	a, b, mem := pair(t, near)
	now := warm(t, a, b, time.Second, rtt, 40000)
	cwnd := a.Path(1).Cwnd
	adds := 20
	for range adds {
		_ = a.Atomic(1, at(8), conduits.AtomicAdd, conduits.Uint64, 1, 0, 7)
	}
	_, _ = a.Put(1, at(100), bytes.Repeat([]byte{3}, 13000), conduits.RemoteDone, 1)
	give(now, b, 0, take(now, a))
	take(now, b) // lost
	probes := 0
	for range 4 {
		for l := [][]byte(nil); !carries(l); {
			d, ok := a.Deadline()
			if !ok {
				t.Fatal("nothing is due")
			}
			now = d
			a.Advance(now)
			if l = take(now, a); len(l) > 2 {
				t.Fatalf("%d datagrams after a time-out", len(l))
			}
			probes += len(l)
			give(now, b, 0, l)
			b.Advance(now)
			take(now, b) // lost
		}
	}
	b.Advance(now + time.Second)
	carryOn := func() {
		give(now, a, 1, take(now, b))
		give(now, b, 0, take(now, a))
		now += rtt
		a.Advance(now)
		b.Advance(now)
	}
	for range 50 {
		carryOn()
	}
	if l := le.Uint64(mem.b[8:]); l != uint64(adds) || !bytes.Equal(mem.b[100:13100], bytes.Repeat([]byte{3}, 13000)) {
		t.Errorf("%d of %d additions", l, adds)
	}
	if !a.Drained() || a.Path(1).Cwnd < cwnd {
		t.Errorf("window %v, before %v: %+v", a.Path(1).Cwnd, cwnd, a.Stats())
	}
}

// TestManyFar has 65,536 operations of each kind outstanding at a round trip of
// 400 ms: nothing is sent twice, and they take as long as slow start does.
func TestManyFar(t *testing.T) {
	const ops = 1 << 16
	for name, begin := range map[string]func(e *engine.Engine, i int) error{
		"put": func(e *engine.Engine, i int) error {
			_, err := e.Put(1, at(i%8000), []byte{1, 2, 3, 4, 5, 6, 7, 8}, conduits.RemoteDone, uint64(i))
			return err
		},
		"get": func(e *engine.Engine, i int) error {
			_, err := e.Get(make([]byte, 8), 1, at(i%8000), conduits.RemoteDone, uint64(i))
			return err
		},
		"atomic": func(e *engine.Engine, i int) error {
			return e.Atomic(1, at(0), conduits.AtomicAdd, conduits.Uint64, 1, 0, uint64(i))
		},
	} {
		p := newPath(t, 200*time.Millisecond, far)
		for i := range ops {
			if err := begin(p.ends[0], i); err != nil {
				t.Fatal(err)
			}
		}
		for p.now < 30*time.Second && p.done < ops {
			p.pass(100 * time.Millisecond)
		}
		a, b := p.ends[0].Stats(), p.ends[1].Stats()
		t.Logf("%s: %v, %+v", name, p.now, a)
		if p.done != ops || p.now > 12*time.Second || a.Again+b.Again+a.Twice+b.Twice+b.Beyond > 0 {
			t.Errorf("%s: %d after %v: %+v, %+v", name, p.done, p.now, a, b)
		}
	}
}

// TestPaced: on a long path a window does not leave at once.
func TestPaced(t *testing.T) {
	p := newPath(t, 50*time.Millisecond, far)
	big := make([]byte, 60000)
	for i := range 200 {
		_, _ = p.ends[0].Put(1, at(0), big, conduits.RemoteDone, uint64(i))
	}
	most := 0
	for p.now < 5*time.Second && !p.ends[0].Drained() {
		before := p.sent[0]
		p.pass(time.Millisecond)
		if p.now > 500*time.Millisecond {
			most = max(most, p.sent[0]-before)
		}
	}
	s := p.ends[0].Path(1)
	window := int(s.Cwnd) / engine.DefaultDatagram
	if !p.ends[0].Drained() || window < 500 || most > window/8 {
		t.Errorf("up to %d datagrams in a millisecond, of windows of up to %d: %+v", most, window, p.ends[0].Stats())
	}
}

// TestKnownTrip: where the round trip is known before the first contact, the first
// loss is made good after three of them, and on a long path nothing is sent twice.
func TestKnownTrip(t *testing.T) {
	for _, c := range []struct {
		rtt  time.Duration
		lose bool // the first datagram
		most time.Duration
	}{
		{time.Millisecond, true, 5 * time.Millisecond},
		{20 * time.Millisecond, true, 85 * time.Millisecond},
		{time.Millisecond, false, 2 * time.Millisecond},
		{300 * time.Millisecond, false, 301 * time.Millisecond},
		{800 * time.Millisecond, false, 801 * time.Millisecond},
	} {
		p := newPath(t, c.rtt/2, func(cc *engine.Config) {
			cc.DeadTime = time.Minute
			cc.RTT = func(int) time.Duration { return c.rtt }
		})
		if _, err := p.ends[0].Put(1, at(0), []byte{1}, conduits.RemoteDone, 1); err != nil {
			t.Fatal(err)
		}
		p.cut = c.lose
		p.pass(0)
		p.cut = false
		from := p.now
		for p.done == 0 && p.now < from+time.Minute {
			p.pass(100 * time.Microsecond)
		}
		again := p.ends[0].Stats().Again
		if took := p.now - from; took > c.most || c.lose != (again > 0) {
			t.Errorf("round trip %v, the first lost %v: it took %v, %d datagrams sent again", c.rtt, c.lose, took, again)
		}
	}
}
