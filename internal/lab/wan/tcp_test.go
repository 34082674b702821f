package wan

import (
	"math"
	"testing"
	"time"
)

// TestTCPAlone fills paths with one flow, and says what it takes of them.
func TestTCPAlone(t *testing.T) {
	for _, c := range []struct {
		p     Path
		queue float64
		least float64 // of the rate
	}{
		{Path{Rate: 10e6, Delay: 5 * time.Millisecond}, 1, 0.93},
		{Path{Rate: 100e6, Delay: 50 * time.Microsecond}, 1, 0.93},
		{Path{Rate: 100e6, Delay: 5 * time.Millisecond}, 0.25, 0.90},
		{Path{Rate: 100e6, Delay: 25 * time.Millisecond}, 1, 0.90},
		{Path{Rate: 100e6, Delay: 25 * time.Millisecond}, 4, 0.90},
		{Path{Rate: 100e6, Delay: 100 * time.Millisecond}, 1, 0.70},
	} {
		p := c.p.Queued(c.queue)
		const d = 10 * time.Second
		n := New(p)
		s, ends := BulkTCP()
		n.Flow(0, ends)
		n.Run(d)
		got := float64(s.Acked) * 8 / d.Seconds()
		l := &n.Links[0].Counts
		t.Logf("%v: %s, %d of %d again, queue %v", p, rate(got), s.Again, s.Sent, l.QueueDelay().Round(time.Microsecond))
		if got < c.least*float64(p.Rate) || got > float64(p.Rate)*MSS/dataSize {
			t.Errorf("%v: %s", p, rate(got))
		}
		// A bulk transfer without loss by chance sends again what the queue dropped,
		// and hardly anything else.
		if over := s.Again - l.Dropped; over > 20+l.Dropped/5 || s.Timeouts > 1 {
			t.Errorf("%v: %d segments again, %d dropped, %d time-outs", p, s.Again, l.Dropped, s.Timeouts)
		}
	}
}

// TestTCPShares has two flows on a path: in the long run each gets about a half.
func TestTCPShares(t *testing.T) {
	p := Path{Rate: 50e6, Delay: 10 * time.Millisecond}.Queued(2)
	n := New(p)
	a, ends := BulkTCP()
	n.Flow(0, ends)
	b, ends := BulkTCP()
	n.Flow(time.Second, ends)
	const d = 120 * time.Second
	n.Run(d)
	share := float64(a.Acked) / float64(a.Acked+b.Acked)
	t.Logf("%.2f", share)
	if share < 0.35 || share > 0.65 {
		t.Errorf("the first has %.2f of what both have", share)
	}
}

// TestTCPResponse compares the mean window at random loss with RFC 9438's
// equation (section 5.1, figure 3, and its Reno-friendly region).
func TestTCPResponse(t *testing.T) {
	for _, loss := range []float64{1e-2, 1e-3, 1e-4} {
		const rtt, d = 100 * time.Millisecond, 1500 * time.Second
		p := Path{Rate: 10e9, Delay: rtt / 2, Queue: 1 << 30, Loss: loss, Seed: 1}
		n := New(p)
		n.Links[1].Path.Loss = 0
		s, ends := BulkTCP()
		n.Flow(0, ends)
		n.Run(d)
		got := float64(s.Acked) / MSS / (d.Seconds() / rtt.Seconds())
		// AVG_W_cubic and AVG_W of standard TCP, of which the larger holds.
		want := max(1.054*math.Pow(rtt.Seconds(), 0.75)/math.Pow(loss, 0.75), 1.2/math.Sqrt(loss))
		t.Logf("loss %g: mean window %.1f segments, equation %.1f", loss, got, want)
		if got < 0.6*want || got > 1.5*want {
			t.Errorf("loss %g: mean window %.1f segments, equation %.1f", loss, got, want)
		}
	}
}
