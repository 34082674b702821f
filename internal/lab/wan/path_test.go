package wan

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestLink offers packets to a link and compares with what its path says.
func TestLink(t *testing.T) {
	l := NewLink(Path{Rate: 8e6, Delay: 10 * time.Millisecond, Queue: 3000, MTU: 1500}, 0) // a byte a microsecond
	for i, c := range []struct {
		now   time.Duration
		size  int
		at    time.Duration // 0: dropped
		count func() int64
	}{
		{0, 1000, 11000, nil},
		{0, 1000, 12000, nil}, // the first is being sent: 1000 bytes wait
		{0, 1000, 13000, nil}, // 2000 bytes wait, and now 3000
		{0, 1000, 0, func() int64 { return l.Counts.Dropped }},
		{1, 1, 13001, nil}, // one byte less waits
		{1, 1, 0, nil},
		{5000, 1500, 16500, nil},
		{5000, 1501, 0, func() int64 { return l.Counts.TooLong }},
	} {
		f := l.Offer(c.now*time.Microsecond, c.size)
		if c.at == 0 {
			if f.N != 0 || c.count != nil && c.count() != 1 {
				t.Errorf("packet %d: %+v, %+v", i, f, l.Counts)
			}
			continue
		}
		if f.N != 1 || !f.InOrder || f.At[0] != c.at*time.Microsecond {
			t.Errorf("packet %d: %+v, want arrival after %v", i, f, c.at*time.Microsecond)
		}
	}
}

// TestChance has a link do everything to many packets, twice alike.
func TestChance(t *testing.T) {
	const n = 100000
	run := func(seed uint64) (Counts, time.Duration) {
		l := NewLink(Path{Delay: time.Millisecond, Loss: 0.2, Repeat: 0.1, Reorder: 0.5, Corrupt: 0.05, Late: 30 * time.Microsecond, Seed: seed}, 1)
		sum := time.Duration(0)
		for range n {
			f := l.Offer(0, 100)
			for _, at := range f.At[:f.N] {
				sum += at
				if at < time.Millisecond || at > time.Millisecond+30*time.Microsecond {
					t.Fatalf("arrives after %v", at)
				}
			}
		}
		return l.Counts, sum
	}
	c, sum := run(1)
	for _, k := range []struct {
		name      string
		got, want float64
	}{
		{"lost", float64(c.Lost), 0.2 * n},
		{"repeated", float64(c.Repeated), 0.8 * 0.1 * n},
		{"reordered", float64(c.Delayed), 0.8 * 0.5 * n},
		{"corrupted", float64(c.Corrupted), 0.8 * 0.05 * n},
	} {
		if math.Abs(k.got-k.want) > 6*math.Sqrt(k.want) {
			t.Errorf("%s: %v, expected %v", k.name, k.got, k.want)
		}
	}
	if d, s := run(1); d != c || s != sum {
		t.Error("the same seed does something else")
	}
	if d, _ := run(2); d == c {
		t.Error("another seed does the same")
	}
}

// TestJitter has packets come late by chance: within bounds, none before another that was
// offered earlier, some of them much later than others, and twice alike.
func TestJitter(t *testing.T) {
	const delay, late, n = 10 * time.Millisecond, 4 * time.Millisecond, 20000
	for _, p := range []Path{
		{Delay: delay, Jitter: late, Seed: 1},
		{Delay: delay, Pause: late, Seed: 1},
		{Delay: delay, Jitter: late / 2, Pause: late / 2, Seed: 1},
		{Delay: delay, Pause: late, Loss: 0.1, Seed: 1},
	} {
		run := func(p Path) (at []time.Duration) {
			l := NewLink(p, 0)
			for i := range time.Duration(n) {
				f := l.Offer(i*50*time.Microsecond, 100)
				if f.N > 0 && !f.InOrder {
					t.Fatalf("%v: packet %d may be overtaken", p, i)
				}
				if f.N == 0 {
					at = append(at, 0)
					continue
				}
				at = append(at, f.At[0]-i*50*time.Microsecond)
			}
			return at
		}
		at := run(p)
		last, delayed := time.Duration(0), 0
		for i, d := range at {
			if d == 0 {
				continue // lost
			}
			if d < delay || d > delay+late {
				t.Fatalf("%v: packet %d takes %v", p, i, d)
			}
			if d > delay+late/4 {
				delayed++
			}
			if arrives := time.Duration(i)*50*time.Microsecond + d; arrives < last {
				t.Fatalf("%v: packet %d overtakes", p, i)
			} else {
				last = arrives
			}
		}
		if delayed < n/20 || p.Jitter == 0 && delayed > n/2 {
			t.Errorf("%v: %d of %d packets are late by more than a quarter of the most", p, delayed, n)
		}
		if !slices.Equal(run(p), at) {
			t.Errorf("%v: the same seed does something else", p)
		}
		p.Seed++
		if slices.Equal(run(p), at) {
			t.Errorf("%v: another seed does the same", p)
		}
	}
}

// TestPause has the timers of an endpoint wait while its host stands still, as what comes
// to it does.
func TestPause(t *testing.T) {
	n := New(Path{Delay: time.Millisecond, Pause: 8 * time.Millisecond, Seed: 1})
	a := &clock{period: 100 * time.Microsecond}
	n.Flow(0, [2]func(*Port) Endpoint{
		func(*Port) Endpoint { return a }, func(*Port) Endpoint { return &clock{period: time.Hour} },
	})
	n.Run(time.Second)
	most := time.Duration(0)
	for i := 1; i < len(a.at); i++ {
		most = max(most, a.at[i]-a.at[i-1])
		if at := a.at[i]; n.Links[1].Awake(at) != at {
			t.Fatalf("called at %v, when the host stands still until %v", at, n.Links[1].Awake(at))
		}
	}
	if len(a.at) < 5000 || most < 4*time.Millisecond || most > 9*time.Millisecond {
		t.Errorf("called %d times, at most %v apart", len(a.at), most)
	}
}

// clock is called again and again.
type clock struct {
	period time.Duration
	at     []time.Duration
}

func (c *clock) Receive(time.Duration, *Packet) {}

func (c *clock) Run(now time.Duration) (time.Duration, bool) {
	c.at = append(c.at, now)
	return now + c.period, true
}

// TestRanges compares with a plain set.
func TestRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ranges
		plain := map[uint64]bool{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			from := uint64(rapid.IntRange(0, 60).Draw(t, "from"))
			to := from + uint64(rapid.IntRange(0, 12).Draw(t, "length"))
			if rapid.IntRange(0, 5).Draw(t, "what") == 0 {
				r.trim(from)
				for v := range plain {
					if v < from {
						delete(plain, v)
					}
				}
			} else {
				r.add(from, to, func(seq uint64) {
					if plain[seq] || seq < from || seq >= to {
						t.Fatalf("add(%d, %d) says that %d is new", from, to, seq)
					}
					plain[seq] = true
				})
				for v := from; v < to; v++ {
					if !plain[v] {
						t.Fatalf("add(%d, %d) does not say that %d is new", from, to, v)
					}
				}
			}
			for v := range uint64(80) {
				if b, ok := r.within(v); ok != plain[v] || ok && (v < b[0] || v >= b[1]) {
					t.Fatalf("within(%d) is %v, %v of %v", v, b, ok, r)
				}
			}
			for i := 1; i < len(r); i++ {
				if r[i][0] <= r[i-1][1] {
					t.Fatalf("%v", r)
				}
			}
		}
	})
}

// echo answers each packet once.
type echo struct {
	p     *Port
	first int
	at    []time.Duration
}

func (e *echo) send(b byte) {
	q := e.p.Packet()
	q.Size, q.Data = 100, append(q.Data, b)
	e.p.Send(q)
}

func (e *echo) Receive(now time.Duration, p *Packet) {
	e.at = append(e.at, now)
	if p.Data[0] < 4 {
		e.send(p.Data[0] + 1)
	}
}

func (e *echo) Run(now time.Duration) (time.Duration, bool) {
	for ; e.first > 0; e.first-- {
		e.send(0)
	}
	return 0, false
}

// TestNetwork has packets go to and fro.
func TestNetwork(t *testing.T) {
	n := New(Path{Delay: 10 * time.Millisecond})
	a, b := &echo{first: 1}, &echo{}
	n.Flow(3*time.Millisecond, [2]func(*Port) Endpoint{
		func(p *Port) Endpoint { a.p = p; return a }, func(p *Port) Endpoint { b.p = p; return b },
	})
	changed := time.Duration(0)
	n.At(30*time.Millisecond, func() { changed = n.Now(); n.Links[0].Path.Delay = 20 * time.Millisecond })
	n.Run(time.Second)
	ms := func(v ...time.Duration) (s []time.Duration) {
		for _, d := range v {
			s = append(s, d*time.Millisecond)
		}
		return s
	}
	for i, c := range []struct{ got, want []time.Duration }{{b.at, ms(13, 33, 63)}, {a.at, ms(23, 43)}} {
		if len(c.got) != len(c.want) {
			t.Fatalf("side %d: %v, want %v", 1-i, c.got, c.want)
		}
		for j := range c.got {
			if c.got[j] != c.want[j] {
				t.Errorf("side %d: %v, want %v", 1-i, c.got, c.want)
			}
		}
	}
	if changed != 30*time.Millisecond || n.Now() != time.Second {
		t.Errorf("changed at %v, ended at %v", changed, n.Now())
	}
}
