package udp

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestProbed: hosts try each other, all of them where there are few, and no host
// many; following the tries leads to all hosts.
func TestProbed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "hosts")
		seed := rapid.Uint64().Draw(t, "seed")
		of := make([][]int, n)
		for h := range n {
			of[h] = probed(n, h, seed)
			if !slices.IsSorted(of[h]) || slices.Contains(of[h], h) || len(slices.Compact(slices.Clone(of[h]))) != len(of[h]) {
				t.Fatalf("host %d of %d tries %v", h, n, of[h])
			}
			if n <= fullMesh && len(of[h]) != n-1 || len(of[h]) > max(fullMesh-1, 2*strides) {
				t.Fatalf("host %d of %d tries %d", h, n, len(of[h]))
			}
		}
		for h := range n {
			if n > 1 && !slices.Contains(of[h], (h+1)%n) {
				t.Fatalf("host %d of %d does not try the next one", h, n)
			}
			for _, p := range of[h] {
				if !slices.Contains(of[p], h) {
					t.Fatalf("host %d tries %d of %d, which does not try it", h, p, n)
				}
			}
		}
	})
}

// TestTrips has two hosts try each other in virtual time, of which one listens later
// than the other sends, over a path that loses datagrams: both measure the path's
// round trip, and nothing that waited for the other to listen.
func TestTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		delay := time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "delay"))
		late := time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "late"))
		loss := rapid.IntRange(0, 40).Draw(t, "loss, %")
		type letter struct {
			at time.Duration
			b  []byte
		}
		var ps [2]*prober
		var wire [2][]letter // by receiver, in the order of their times
		now, sent := time.Duration(0), 0
		clock := func() time.Time { return time.Unix(0, 0).Add(now) }
		for h := range ps {
			ps[h] = &prober{
				m: newMember(h, 2), self: h, peers: []int{1 - h}, ways: make([]tried, 1), size: rapid.SampledFrom([]int{probeSize, 548, 1232}).Draw(t, "size"),
				write: func(b []byte, to int) error {
					sent++
					if rapid.IntRange(1, 100).Draw(t, "arrives") > loss {
						wire[to] = append(wire[to], letter{now + delay, bytes.Clone(b)})
					}
					return nil
				},
			}
		}
		ticks := [2]time.Duration{0, late}
		for !ps[0].ways[0].done() || !ps[1].ways[0].done() {
			next, who := ticks[0], 0
			for h := range ps {
				if ticks[h] < next {
					next, who = ticks[h], h
				}
				if len(wire[h]) > 0 {
					if at := max(wire[h][0].at, []time.Duration{0, late}[h]); at < next {
						next, who = at, h
					}
				}
			}
			if now = next; now > time.Minute {
				t.Fatalf("after %v: %+v, %+v", now, ps[0].ways[0], ps[1].ways[0])
			}
			for len(wire[who]) > 0 && wire[who][0].at <= now {
				ps[who].receive(wire[who][0].b, clock())
				wire[who] = wire[who][1:]
			}
			if ticks[who] <= now {
				ticks[who] += probeEvery
				if !ps[who].ways[0].done() {
					ps[who].send(0, 0, clock())
				}
			}
		}
		for h, p := range ps {
			if got, want := p.ways[0].trip, max(2*delay, leastTrip); got != want {
				t.Fatalf("host %d has measured %v, the round trip is %v", h, got, want)
			}
			_, trips := p.report("x")
			p.measured(trips)
			if p.m.trip(1-h, 0) != p.ways[0].trip || p.m.trip(h, 0) != 0 {
				t.Fatalf("host %d knows of %v", h, *p.m.trips.Load())
			}
		}
		if loss == 0 && sent > 8+4*int((late+4*delay)/probeEvery+1) {
			t.Fatalf("%d probes", sent)
		}
	})
}

// TestReport: what a host reports comes back.
func TestReport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &prober{ways: make([]tried, rapid.IntRange(0, 63).Draw(t, "peers"))}
		bits := ""
		for i := range p.ways {
			p.ways[i].heard = rapid.Bool().Draw(t, "heard")
			p.ways[i].trip = time.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "trip"))
			bits += map[bool]string{false: "0", true: "1"}[p.ways[i].heard]
		}
		b, want := p.report("host")
		name, heard, trips := parseReport(b)
		if name != "host" || heard != bits || !slices.Equal(trips, want) {
			t.Fatalf("%q: %q, %q, %v, expected %q, %v", b, name, heard, trips, bits, want)
		}
	})
}
