package main

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// checkFirehose checks a figure of firehose/..., as check does others.
func checkFirehose(t *testing.T, l *line, conduit string, ranks int) {
	t.Helper()
	if l.Conduit != conduit || l.Ranks != ranks || math.IsInf(l.Value, 0) || l.Size <= 0 {
		t.Errorf("wrong fields: %+v", l)
	}
	timed := l.Bench == "firehose/register" || l.Bench == "firehose/put" || l.Bench == "firehose/get"
	if timed && (!(l.Value > 0) || l.Unit != "ns" || l.Batch < 1 || !(l.P50 > 0)) {
		t.Errorf("not a time: %+v", l)
	}
	if timed && (l.Ref == "") != (l.Via == viaAttach && conduit != "shm" && l.Size > maxDatagram) {
		t.Errorf("no reference: %+v", l)
	}
	if got := len(l.Spread) > 0; got != (l.Bench == "firehose/register" && l.Size == spreadSize) {
		t.Errorf("how times spread: %+v", l)
	}
	switch l.Metric {
	case register, deregister:
		if l.Ref != refOwn || l.Via != kindHeap && l.Via != kindMapped {
			t.Errorf("%+v", l)
		}
	case hitRate:
		if l.Value < 0 || l.Value > 1 || math.Abs(l.Value-l.RefValue) > 0.02 {
			t.Errorf("hits are not as predicted: %+v", l)
		}
	case "requests":
		if l.Value != 1 {
			t.Errorf("a miss is not one round trip: %+v", l)
		}
	case "misses", "pins":
		// 512 firehoses can stay at as many of 976 buckets, and 256 more be pinned.
		if l.Value < 0.4 || l.Value > 1 {
			t.Errorf("misses do not miss, or pin nothing: %+v", l)
		}
	}
}

// plainSieve is the policy as its authors draw it, a list from new to old, but that
// the hand goes back.
type plainSieve struct {
	size int
	list []entry // newest first
	hand int
	left int // victims until the hand goes back to the oldest
}

type entry struct {
	k       int
	visited bool
}

func (p *plainSieve) access(k int) bool {
	if i := slices.IndexFunc(p.list, func(e entry) bool { return e.k == k }); i >= 0 {
		p.list[i].visited = true
		return true
	}
	if len(p.list) == p.size {
		back := func(i int) int {
			if i < 0 {
				p.left = sievePatience*p.size + 1
				return len(p.list) - 1
			}
			return i
		}
		if p.left == 0 {
			p.hand = -1
		}
		i := back(p.hand)
		for p.list[i].visited {
			p.list[i].visited = false
			i = back(i - 1)
		}
		p.left--
		p.list = slices.Delete(p.list, i, i+1)
		p.hand = i - 1
	}
	p.list = slices.Insert(p.list, 0, entry{k: k})
	if p.hand >= 0 && len(p.list) > 1 {
		p.hand++
	}
	return false
}

func TestSieve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 8).Draw(t, "size")
		s, p := newSieve(size), &plainSieve{size: size, hand: -1}
		for i, k := range rapid.SliceOf(rapid.IntRange(0, 12)).Draw(t, "accesses") {
			if got, want := s.access(k), p.access(k); got != want {
				t.Fatalf("access %d, of %d: hit %v, want %v", i, k, got, want)
			}
		}
	})
}

func TestSpread(t *testing.T) {
	var h histogram
	for range 999 {
		h.add(1000)
	}
	h.add(1 << 20)
	l := h.spread()
	first, last, sum := l[0], l[len(l)-1], 0.0
	for _, p := range l {
		sum += p[1]
	}
	if first[0] < 896 || first[0] > 1024 || first[1] != 0.999 || last[0] < 1<<20 || last[0] > 1<<21 || math.Abs(sum-1) > 1e-9 {
		t.Errorf("got %v", l)
	}
	if l := (&histogram{}).spread(); len(l) != 0 {
		t.Errorf("of nothing: %v", l)
	}
}
