package conc

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

const (
	looks = 100
	short = looks * aLook
)

// machine says how the waits of a model machine go: what is waited for comes after a
// number of looks, by a yield that lets its sender run, or never before a sleep, which
// takes so long.
type machine struct {
	comes  int // looks; beyond what any wait makes: a sleep is needed
	shares bool
	yield  time.Duration // of a yield that brings nothing
	sleep  time.Duration
}

// wait is one wait on m. It returns how many looks and yields it made, and whether it slept.
func (m machine) wait(p *Patience) (looked, yielded int, slept bool) {
	for idle := 0; ; idle++ {
		switch p.Next(idle) {
		case Look:
			if looked++; !m.shares && looked+yielded >= m.comes {
				return looked, yielded, false
			}
		case Yield:
			yielded++
			if m.shares {
				p.Yielded(2 * time.Microsecond)
				return looked, yielded, false
			}
			p.Yielded(m.yield)
			if looked+yielded >= m.comes {
				return looked, yielded, false
			}
		default:
			p.Slept(m.sleep)
			return looked, yielded, true
		}
	}
}

const never = 1 << 20

// TestSettled: to what waits come on a machine that stays as it is, wherever they begin.
func TestSettled(t *testing.T) {
	for _, c := range []struct {
		name  string
		m     machine
		most  int // looks of all but the trials
		slept bool
	}{
		{"the answer comes at once", machine{comes: 1}, 1, false},
		{"it takes as long as waits may look", machine{comes: looks}, looks, false},
		{"what it takes shares the processor", machine{shares: true}, 0, false},
		{"a neighbour has the other processor, and sleeps are short", machine{comes: never, sleep: 5 * time.Microsecond}, 0, true},
		{"the same, and a yield takes a slice", machine{comes: never, yield: lost, sleep: 5 * time.Microsecond}, 0, true},
		{"ranks compute for long", machine{comes: never, sleep: time.Millisecond}, 0, true},
	} {
		for start := range int32(looks + 1) {
			var p Patience
			p.Set(looks, false)
			p.looks.Store(start)
			for range 600 {
				c.m.wait(&p)
			}
			trials, sleeps := 0, 0
			const waits = 1000
			for range waits {
				looked, _, slept := c.m.wait(&p)
				if looked > c.most {
					trials++
				}
				if slept {
					sleeps++
				}
			}
			if c.slept && sleeps != waits || !c.slept && sleeps > 0 {
				t.Fatalf("%s: %d of %d waits slept", c.name, sleeps, waits)
			}
			if trials > waits/mostTrial+1 {
				t.Fatalf("%s: %d of %d waits looked for longer than %d looks", c.name, trials, waits, c.most)
			}
		}
	}
}

// TestMemory: whatever came before, waits that looking can end are ended by looking again
// after at most mostTrial sleeps of less than short, and those that only another thread of this processor can
// end make no look after a few.
func TestPatienceMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Patience
		p.Set(looks, false)
		kind := rapid.Custom(func(t *rapid.T) machine {
			return machine{
				comes:  rapid.SampledFrom([]int{1, 3, 10, looks, looks + mostYields, never}).Draw(t, "comes"),
				shares: rapid.Bool().Draw(t, "shares"),
				yield:  rapid.SampledFrom([]time.Duration{0, switched, lost - 1, lost, time.Second}).Draw(t, "yield"),
				sleep:  rapid.SampledFrom([]time.Duration{time.Microsecond, short - 1, short, time.Second}).Draw(t, "sleep"),
			}
		})
		for range rapid.IntRange(0, 8).Draw(t, "phases") {
			m := kind.Draw(t, "machine")
			for range rapid.IntRange(1, 1000).Draw(t, "waits") {
				m.wait(&p)
			}
		}
		answers := machine{comes: rapid.IntRange(1, looks).Draw(t, "comes"), sleep: 10 * time.Microsecond}
		slept := 0
		for range 2 * mostTrial {
			if _, _, s := answers.wait(&p); s {
				slept++
			}
		}
		if slept > mostTrial+1 {
			t.Fatalf("%d sleeps before a wait looked for %d looks", slept, answers.comes)
		}
		if _, _, s := answers.wait(&p); s {
			t.Fatalf("a wait sleeps where %d looks are enough, after %d others", answers.comes, 2*mostTrial)
		}
		vain := 0
		for range 2 * mostTrial {
			if looked, _, _ := (machine{shares: true}).wait(&p); looked > 0 {
				vain++
			}
		}
		if vain > 16 { // 7 halve the looks, 7 are trials
			t.Fatalf("%d waits looked where only a yield helps", vain)
		}
	})
}

// TestAfterPause: a rank that has learnt that looking does not help finds out soon after a long sleep that it does.
func TestAfterPause(t *testing.T) {
	var p Patience
	p.Set(looks, false)
	for _, phase := range []struct {
		m     machine
		waits int
	}{
		{machine{comes: never, sleep: 5 * time.Microsecond}, 4 * mostTrial},
		{machine{comes: never, sleep: short}, 1},
		{machine{comes: looks / 2, sleep: short / 2}, firstTrial + 1},
	} {
		for range phase.waits {
			phase.m.wait(&p)
		}
	}
	if _, _, slept := (machine{comes: looks}).wait(&p); slept {
		t.Fatalf("it sleeps after %d waits that looking could have ended", firstTrial+1)
	}
}

// TestOneWakesAll: a rank whose waits all take as long as one rank wakes all others, 25 us for each and 40 until the last one runs, comes
// to look for what it waits for.
func TestOneWakesAll(t *testing.T) {
	const look = 700 * time.Nanosecond
	for _, n := range []int{2, 3, 4, 7, 8, 9, 15, 16, 64, 255} {
		var p Patience
		p.Set(LooksOf(looks, n), false)
		takes := time.Duration(n-1)*25*time.Microsecond + 40*time.Microsecond
		m := machine{comes: never, sleep: time.Second}
		for range 16 {
			m.wait(&p)
		}
		m = machine{comes: int(takes / look), sleep: takes}
		for range 2 * mostTrial {
			m.wait(&p)
		}
		if _, _, slept := m.wait(&p); slept {
			t.Fatalf("one of %d ranks sleeps where others need %v to wake each other", n, takes)
		}
	}
}

// TestShared: the zero value, of a rank that shares its processor for sure, does not look.
func TestPatienceShared(t *testing.T) {
	var p Patience
	for _, m := range []machine{{comes: 1}, {shares: true}, {comes: never, sleep: 1}, {comes: never, sleep: time.Second}} {
		for range 2 * mostTrial {
			if looked, yielded, _ := m.wait(&p); looked > 0 || yielded > mostYields || !p.Brief() {
				t.Fatalf("%d looks and %d yields", looked, yielded)
			}
		}
	}
}

// TestWoken: a caller that counts from below 0 does not park before it has come to 0.
func TestWoken(t *testing.T) {
	for _, most := range []int{0, looks} {
		var p Patience
		p.Set(most, false)
		for range 10 {
			machine{comes: never, sleep: time.Second}.wait(&p)
			for idle := -64; idle < 0; idle++ {
				if s := p.Next(idle); s != Yield {
					t.Fatalf("step %d at %d, with %d looks", s, idle, most)
				}
			}
		}
	}
}

// TestLongSleeps: sleeps that looking could not have saved lead to no trial.
func TestLongSleeps(t *testing.T) {
	var p Patience
	p.Set(looks, false)
	m := machine{comes: never, sleep: short}
	for range 10 {
		m.wait(&p)
	}
	for i := range 4 * mostTrial {
		if looked, _, _ := m.wait(&p); looked > 0 {
			t.Fatalf("%d looks in wait %d, after sleeps of %v", looked, i, short)
		}
	}
}

// TestLostYields: after a yield that gave a slice to a neighbour waits come without one,
// each time for longer, and with one again where yields come back soon.
func TestLostYields(t *testing.T) {
	for _, most := range []int{0, looks} {
		var p Patience
		p.Set(most, false)
		lose, soon := machine{comes: never, yield: lost, sleep: time.Second}, machine{comes: never, sleep: time.Second}
		without := func(m machine) (n int) {
			for ; n <= 2*mostShun; n++ {
				if _, yielded, _ := m.wait(&p); yielded > 0 {
					break
				}
			}
			return n
		}
		without(lose)
		for want := leastShun; want <= 4*mostShun; want *= 2 {
			// The wait that counts the last one yields.
			if n := without(lose); n != min(want, mostShun)-1 {
				t.Fatalf("%d waits did not yield, want %d, with %d looks", n, min(want, mostShun)-1, most)
			}
		}
		without(soon)
		for range mostShun {
			if n := without(soon); n != 0 {
				t.Fatalf("%d waits do not yield where yields come back soon, with %d looks", n, most)
			}
		}
		without(lose)
		if n := without(lose); n != leastShun-1 {
			t.Fatalf("%d waits did not yield after many that came back soon, want %d", n, leastShun-1)
		}
		// A wait that may not park meanwhile looks.
		p.begin()
		for idle := -64; idle < 0; idle++ {
			if s := p.Next(idle); s != Look {
				t.Fatalf("step %d at %d after a yield that was lost", s, idle)
			}
		}
	}
}

// TestYieldEndsWait: a wait that a yield ends has outlasted its looks, and leads to trials as short
// sleeps do, so that ranks that do not share a processor any more look again.
func TestYieldEndsWait(t *testing.T) {
	var p Patience
	p.Set(looks, false)
	for range 16 {
		machine{shares: true}.wait(&p)
	}
	if !p.Brief() {
		t.Fatalf("waits look %d times after 16 that yields ended", p.limit.Load())
	}
	apart := machine{comes: looks, sleep: time.Second}
	for i := range 4 * mostTrial {
		// The yields of a wait that does not look end it while the rank does not know.
		m := machine{shares: true}
		if !p.Brief() || p.shorts.Load() >= p.need.Load() {
			m = apart
		}
		if looked, _, _ := m.wait(&p); looked == looks {
			return
		} else if i == 4*mostTrial-1 {
			t.Fatal("no wait looks again")
		}
	}
}

// TestSleepsAtOnce: where sleeping costs little no wait that may park yields.
func TestSleepsAtOnce(t *testing.T) {
	var p Patience
	p.Set(looks, true)
	for range 100 {
		if _, yielded, slept := (machine{comes: never, sleep: time.Microsecond}).wait(&p); yielded > 0 || !slept {
			t.Fatalf("%d yields, slept %v", yielded, slept)
		}
	}
}
