package barrier

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
)

// call is one rank's part in one phase.
type call struct {
	id     uint32
	flags  Flags
	waitID uint32
	waitFl Flags
	form   int // of waiting: see finishPhase
	skew   int // yields before notifying
	double bool
}

var ids = []uint32{0, 3, 5, 1<<32 - 1}

func drawCall(t *rapid.T, common uint32) call {
	c := call{id: common, waitID: common}
	// Half of the calls agree, so that phases of many ranks sometimes match.
	if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
		c.id = rapid.SampledFrom(ids).Draw(t, "id")
	}
	if rapid.IntRange(0, 9).Draw(t, "oddwait") == 0 {
		c.waitID = rapid.SampledFrom(ids).Draw(t, "waitID")
	}
	c.flags = rapid.SampledFrom([]Flags{0, 0, Anonymous, Anonymous}).Draw(t, "flags")
	c.waitFl = rapid.SampledFrom([]Flags{0, 0, Anonymous}).Draw(t, "waitFlags")
	switch rapid.IntRange(0, 39).Draw(t, "mismatch") {
	case 0:
		c.flags |= Mismatch
	case 1:
		c.waitFl |= Mismatch
	}
	c.form = rapid.IntRange(0, 3).Draw(t, "form")
	c.skew = rapid.SampledFrom([]int{0, 0, 0, 1, 10, 100}).Draw(t, "skew")
	c.double = rapid.IntRange(0, 9).Draw(t, "double") == 0
	return c
}

// outcome is the model's verdict: what the rules say, computed from everything.
type outcome struct {
	mismatch bool
	named    bool
	id       uint32
}

func judge(calls []call) outcome {
	var o outcome
	seen := map[uint32]bool{}
	for _, c := range calls {
		if c.flags&Mismatch != 0 {
			o.mismatch = true
		} else if c.flags&Anonymous == 0 {
			seen[c.id] = true
			o.id, o.named = c.id, true
		}
	}
	if o.mismatch = o.mismatch || len(seen) > 1; o.mismatch {
		o.named, o.id = false, 0
	}
	return o
}

// rank reports whether the rank that made call c must see a mismatch.
func (o outcome) rank(c call) bool {
	return o.mismatch || c.waitFl&Mismatch != 0 ||
		o.named && c.waitFl&Anonymous == 0 && c.waitID != o.id
}

// finishPhase waits in one of four forms.
func finishPhase(b *Barrier, c call) error {
	switch c.form {
	case 1:
		for {
			if done, err := b.Try(c.waitID, c.waitFl); done || err != nil {
				if !done {
					return fmt.Errorf("try failed but says that it is not over: %w", err)
				}
				return err
			}
			runtime.Gosched()
		}
	case 2:
		res := make(chan error)
		go func() { res <- b.Wait(c.waitID, c.waitFl) }()
		return <-res
	case 3:
		if done, err := b.Try(c.waitID, c.waitFl); done || err != nil {
			return err
		}
	}
	return b.Wait(c.waitID, c.waitFl)
}

// runPhase performs c and compares with the model.
func runPhase(b *Barrier, c call, o outcome) error {
	for range c.skew {
		runtime.Gosched()
	}
	if err := b.Notify(c.id, c.flags); err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	if c.double {
		if err := b.Notify(c.id, c.flags); !errors.Is(err, errs.ErrNotReady) {
			return fmt.Errorf("second notify: %v", err)
		}
	}
	err := finishPhase(b, c)
	switch want := o.rank(c); {
	case want && !errors.Is(err, errs.ErrBarrierMismatch):
		return fmt.Errorf("%+v: want a mismatch, got %v", c, err)
	case !want && err != nil:
		return fmt.Errorf("%+v: want none, got %v", c, err)
	}
	if id, named := b.Result(); id != o.id || named != o.named {
		return fmt.Errorf("%+v: result is id %d, named %v; want id %d, named %v", c, id, named, o.id, o.named)
	}
	if c.double {
		if err := b.Wait(c.waitID, c.waitFl); !errors.Is(err, errs.ErrNotReady) {
			return fmt.Errorf("second wait: %v", err)
		}
	}
	return nil
}

// starts are phases to begin after: the first ever, and just before the wrap.
var starts = []uint32{0, phaseMask - 2, phaseMask/2 - 1}

func TestAllRanksSeeTheModelsVerdict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 33).Draw(t, "ranks")
		how := rapid.SampledFrom(algorithms).Draw(t, "algorithm")
		plan := make([][]call, rapid.IntRange(1, 6).Draw(t, "phases"))
		for p := range plan {
			common := rapid.SampledFrom(ids).Draw(t, "common")
			plan[p] = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) call { return drawCall(t, common) }), n, n).Draw(t, "calls")
		}
		j := openJob(t, n, how, rapid.SampledFrom(starts).Draw(t, "start"))
		defer j.close()
		failures := make([]error, n)
		j.each(func(r int) {
			for p, calls := range plan {
				if err := runPhase(j.bars[r], calls[r], judge(calls)); err != nil && failures[r] == nil {
					failures[r] = fmt.Errorf("phase %d: %w", p, err)
				}
			}
		})
		for r, err := range failures {
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
		}
	})
}

// machine drives all ranks from one goroutine, so that rapid chooses the
// interleaving, and knows at each step which rank has notified what.
type machine struct {
	*job
	how    Algorithm
	start  uint32
	phase  []int // phases notified, by rank
	waited []int // phases finished, by rank
	calls  map[int][]call
}

func (m *machine) complete(phase int) bool {
	return !slices.ContainsFunc(m.phase, func(p int) bool { return p < phase })
}

func (m *machine) notify(t *rapid.T) {
	r := rapid.IntRange(0, len(m.bars)-1).Draw(t, "rank")
	c := drawCall(t, 3)
	err := m.bars[r].Notify(c.id, c.flags)
	if m.phase[r] > m.waited[r] {
		if !errors.Is(err, errs.ErrNotReady) {
			t.Fatalf("rank %d: second notify: %v", r, err)
		}
		return
	}
	if err != nil {
		t.Fatalf("rank %d: notify: %v", r, err)
	}
	m.phase[r]++
	p := m.phase[r]
	if m.calls[p] == nil {
		m.calls[p] = make([]call, len(m.bars))
	}
	m.calls[p][r] = c
}

func (m *machine) try(t *rapid.T) {
	r := rapid.IntRange(0, len(m.bars)-1).Draw(t, "rank")
	b, p := m.bars[r], m.phase[r]
	if p == m.waited[r] {
		if done, err := b.Try(3, 0); done || !errors.Is(err, errs.ErrNotReady) {
			t.Fatalf("rank %d: try without notify: %v, %v", r, done, err)
		}
		return
	}
	c := m.calls[p][r]
	done, err := b.Try(c.waitID, c.waitFl)
	complete := m.complete(p)
	// Where messages travel other ranks may have to try first.
	if done && !complete || !done && complete && m.how != Dissemination && m.how != Levels {
		t.Fatalf("rank %d: phase %d: try says %v; ranks have notified %v", r, p, done, m.phase)
	}
	if !done {
		if err != nil {
			t.Fatalf("rank %d: phase %d: try: %v", r, p, err)
		}
		return
	}
	m.waited[r]++
	o := judge(m.calls[p])
	if got := errors.Is(err, errs.ErrBarrierMismatch); got != o.rank(c) || !got && err != nil {
		t.Fatalf("rank %d: phase %d: %+v: %v; want mismatch %v", r, p, c, err, o.rank(c))
	}
	if id, named := b.Result(); id != o.id || named != o.named {
		t.Fatalf("rank %d: phase %d: result is id %d, named %v; want %+v", r, p, id, named, o)
	}
}

func (m *machine) check(t *rapid.T) {
	for r, b := range m.bars {
		got := b.Blocked()
		p := m.phase[r]
		want := fmt.Sprintf("barrier phase %d: ", (m.start+uint32(p))&phaseMask)
		switch {
		case p == m.waited[r]:
			want += "not waiting"
		case m.how == Dissemination || m.how == Levels:
			if !strings.HasPrefix(got, want) {
				t.Fatalf("rank %d says %q, want %q...", r, got, want)
			}
			continue
		default:
			var missing []int
			for q, done := range m.phase {
				if done < p {
					missing = append(missing, q)
				}
			}
			want += string(appendRanks(nil, missing[:min(len(missing), maxListed)], len(missing)))
		}
		if got != want {
			t.Fatalf("rank %d says %q, want %q", r, got, want)
		}
	}
}

func TestInterleavings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 2, 2, 3, 4, 5, 9, 10, 17}).Draw(t, "ranks")
		m := &machine{
			how:    rapid.SampledFrom(algorithms).Draw(t, "algorithm"),
			start:  rapid.SampledFrom(starts).Draw(t, "start"),
			phase:  make([]int, n),
			waited: make([]int, n),
			calls:  map[int][]call{},
		}
		m.job = openJob(t, n, m.how, m.start)
		defer m.close()
		t.Repeat(map[string]func(*rapid.T){
			"notify":  m.notify,
			"notify2": m.notify,
			"try":     m.try,
			"try2":    m.try,
			"":        m.check,
		})
	})
}

// TestManyPhases has ranks at very different speeds write plain memory before
// notifying and read all ranks' after waiting: the race detector sees a
// barrier that lets a rank through, and so do the values.
func TestManyPhases(t *testing.T) {
	phases := 3000
	if testing.Short() {
		phases = 300
	}
	forAll(t, []int{2, 3, 8, 20}, func(t *testing.T, n int, how Algorithm) {
		phases := phases
		if how == Levels {
			phases /= 10 // over a network
		}
		j := openJob(t, n, how, phaseMask-100)
		defer j.close()
		var cells [2][]int
		cells[0], cells[1] = make([]int, n), make([]int, n)
		j.each(func(r int) {
			for p := 1; p <= phases; p++ {
				if (p*7+r*3)%(r+2) == 0 {
					runtime.Gosched()
				}
				c := cells[p&1]
				c[r] = p
				if err := j.bars[r].Barrier(uint32(p), 0); err != nil {
					t.Errorf("rank %d: phase %d: %v", r, p, err)
					return
				}
				for q, v := range c {
					if v != p {
						t.Errorf("rank %d: passed phase %d while rank %d is in %d", r, p, q, v)
						return
					}
				}
			}
		})
	})
}

// TestConformance is GASNet's testbarrierconf: each rule, with every rank in
// each role, waited for and tried for.
func TestConformance(t *testing.T) {
	const a, b, c = 5551212, 12345, 911
	named := func(id uint32) call { return call{id: id, waitID: id} }
	anon := func(id uint32) call { return call{id: id, flags: Anonymous, waitID: id, waitFl: Anonymous} }
	// Of each case rank i plays one, rank k two, and the rest plays rest.
	cases := []struct {
		name           string
		one, two, rest call
		bad            bool // all ranks see a mismatch
		badOne         bool // rank i sees one
		named          bool
		id             uint32
	}{
		{"all named", named(a), named(a), named(a), false, false, true, a},
		{"id 0", named(0), named(0), named(0), false, false, true, 0},
		{"id 2^32-1", named(1<<32 - 1), named(1<<32 - 1), named(1<<32 - 1), false, false, true, 1<<32 - 1},
		{"all anonymous", anon(a), anon(b), anon(c), false, false, false, 0},
		{"anonymous notify, named wait", call{flags: Anonymous, waitID: b}, call{flags: Anonymous}, call{flags: Anonymous}, false, false, false, 0},
		{"named notify, anonymous wait", call{id: a, waitID: c, waitFl: Anonymous}, named(a), named(a), false, false, true, a},
		{"one anonymous", anon(b), named(a), named(a), false, false, true, a},
		{"one anonymous, well-named wait", call{id: b, flags: Anonymous, waitID: a}, named(a), named(a), false, false, true, a},
		{"one anonymous, ill-named wait", call{id: b, flags: Anonymous, waitID: b}, named(a), named(a), false, true, true, a},
		{"one named", named(0xcafef00d), anon(c), anon(c), false, false, true, 0xcafef00d},
		{"one named, one ill-named wait", call{id: 0, flags: Anonymous, waitID: 1}, named(0), anon(c), false, true, true, 0},
		{"wait names another id", call{id: a, waitID: b}, named(a), named(a), false, true, true, a},
		{"two names", named(1), named(0), named(0), true, false, false, 0},
		{"two names and anonymous", named(1592), named(1776), anon(b), true, false, false, 0},
		{"mismatch given", call{flags: Mismatch, waitFl: Mismatch}, named(0), named(0), true, false, false, 0},
		{"mismatch given to anonymous", call{flags: Mismatch}, anon(0), anon(0), true, false, false, 0},
		{"mismatch outweighs anonymous", call{flags: Mismatch | Anonymous}, anon(0), anon(0), true, false, false, 0},
		{"mismatch given to wait", call{id: a, waitID: a, waitFl: Mismatch}, named(a), named(a), false, true, true, a},
	}
	sizes := []int{2, 3, 4, 9}
	if conc.Race {
		sizes = sizes[:3] // the roles of nine ranks are those of four, many times
	}
	forAll(t, sizes, func(t *testing.T, n int, how Algorithm) {
		j := openJob(t, n, how, 0)
		defer j.close()
		j.each(func(r int) {
			for _, x := range cases {
				for i := range n {
					for k := range n {
						if k == i {
							continue
						}
						for form := range 2 {
							c := x.rest
							switch r {
							case i:
								c = x.one
							case k:
								c = x.two
							}
							c.form = form
							bar := j.bars[r]
							if err := bar.Notify(c.id, c.flags); err != nil {
								t.Errorf("%s: rank %d: notify: %v", x.name, r, err)
							}
							err := finishPhase(bar, c)
							want := x.bad || x.badOne && r == i
							if errors.Is(err, errs.ErrBarrierMismatch) != want || !want && err != nil {
								t.Errorf("%s: rank %d of %d (roles %d, %d): got %v, want mismatch %v", x.name, r, n, i, k, err, want)
							}
							if id, is := bar.Result(); id != x.id || is != x.named {
								t.Errorf("%s: rank %d: result %d, %v; want %d, %v", x.name, r, id, is, x.id, x.named)
							}
						}
					}
				}
			}
		})
	})
}

func TestMismatchSaysWhatWasSeen(t *testing.T) {
	forAll(t, []int{5}, func(t *testing.T, n int, how Algorithm) {
		j := openJob(t, n, how, 0)
		defer j.close()
		ids := []string{"ids differ: rank 1 notified 3, rank 3 notified 5", "rank 2 signalled a mismatch"}
		if how == Dissemination {
			ids = []string{"ids differ: 3 and 5", "a rank signalled a mismatch"}
		}
		if how == Levels { // ranks 0 to 2 are neighbours, and ranks 3 and 4
			ids = []string{"ids differ: 3 and 5", " signalled a mismatch"}
		}
		j.each(func(r int) {
			flags := Flags(Anonymous)
			if r == 1 || r == 3 {
				flags = 0
			}
			if err := j.bars[r].Barrier(uint32(r+2), flags); err == nil || !strings.Contains(err.Error(), ids[0]) || !strings.Contains(err.Error(), "phase 1 ") {
				t.Errorf("rank %d: %v", r, err)
			}
			flags = 0
			if r == 2 {
				flags = Mismatch
			}
			if err := j.bars[r].Barrier(7, flags); err == nil || !strings.Contains(err.Error(), ids[1]) {
				t.Errorf("rank %d: %v", r, err)
			}
			if err := j.bars[r].Notify(8, 0); err != nil {
				t.Error(err)
			}
			if err := j.bars[r].Wait(9, 0); err == nil || !strings.Contains(err.Error(), "named id 9, the ranks notified 8") {
				t.Errorf("rank %d: %v", r, err)
			}
		})
	})
}

func TestMisuse(t *testing.T) {
	forAll(t, []int{1, 2}, func(t *testing.T, n int, how Algorithm) {
		j := openJob(t, n, how, 0)
		defer j.close()
		j.each(func(r int) {
			b := j.bars[r]
			is := func(what string, err, kind error) {
				if !errors.Is(err, kind) {
					t.Errorf("rank %d: %s: %v, want %v", r, what, err, kind)
				}
			}
			is("wait at first", b.Wait(0, 0), errs.ErrNotReady)
			_, err := b.Try(0, 0)
			is("try at first", err, errs.ErrNotReady)
			is("flags", b.Notify(0, 8), errs.ErrBadArg)
			is("notify", b.Notify(1, 0), nil)
			is("second notify", b.Notify(2, 0), errs.ErrNotReady)
			is("wait's flags", b.Wait(1, 8), errs.ErrBadArg)
			_, err = b.Try(1, 16)
			is("try's flags", err, errs.ErrBadArg)
			is("wait", b.Wait(1, 0), nil)
			is("second wait", b.Wait(1, 0), errs.ErrNotReady)
			is("second bind", b.Bind(j.ends[r]), errs.ErrBadArg)
			is("barrier", b.Barrier(9, 0), nil)
			if id, named := b.Result(); id != 9 || !named {
				t.Errorf("rank %d: result %d, %v", r, id, named)
			}
		})
	})
	b := New()
	if err := b.Notify(0, 0); !errors.Is(err, errs.ErrNotInit) {
		t.Errorf("notify before bind: %v", err)
	}
	if err := b.Wait(0, 0); !errors.Is(err, errs.ErrNotInit) {
		t.Errorf("wait before bind: %v", err)
	}
	if _, err := b.Try(0, 0); !errors.Is(err, errs.ErrNotInit) {
		t.Errorf("try before bind: %v", err)
	}
}

func TestFailureEndsWaiting(t *testing.T) {
	forAll(t, []int{3, 10}, func(t *testing.T, n int, how Algorithm) {
		j := openJob(t, n, how, 0)
		cause := errors.New("killed by signal 9")
		var wg sync.WaitGroup
		for r := range n - 1 {
			if err := j.bars[r].Notify(1, 0); err != nil {
				t.Fatal(err)
			}
			if done, err := j.bars[r].Try(1, 0); done || err != nil {
				t.Errorf("rank %d: try: %v, %v", r, done, err)
			}
			wg.Go(func() {
				err := j.bars[r].Wait(1, 0)
				var p *errs.PeerError
				if !errors.As(err, &p) || p.Rank != n-1 || !strings.Contains(err.Error(), cause.Error()) || !strings.Contains(p.Op, "barrier phase 1") {
					t.Errorf("rank %d: wait: %v", r, err)
				}
				if done, err := j.bars[r].Try(1, 0); done || !errors.As(err, &p) {
					t.Errorf("rank %d: try: %v, %v", r, done, err)
				}
			})
		}
		j.ends[n-1].Conduit().Fail(cause)
		wg.Wait()
		for _, e := range j.ends {
			_ = e.Conduit().Close() // may report the failure
		}
	})
}

// TestTwoWaiters lets two goroutines of each rank wait for one phase, which is
// one too many: one finishes it, the other is told, neither hangs, and the next
// phase is as good as ever. (Two that find the phase complete at the same instant
// may both succeed.)
func TestTwoWaiters(t *testing.T) {
	forAll(t, []int{1, 2, 9}, func(t *testing.T, n int, how Algorithm) {
		j := openJob(t, n, how, 0)
		defer j.close()
		for range 100 {
			var won, lost atomic.Int32
			j.each(func(r int) {
				if err := j.bars[r].Notify(1, 0); err != nil {
					t.Error(err)
				}
				var wg sync.WaitGroup
				for range 2 {
					wg.Go(func() {
						switch err := j.bars[r].Wait(1, 0); {
						case err == nil:
							won.Add(1)
						case errors.Is(err, errs.ErrNotReady):
							lost.Add(1)
						default:
							t.Errorf("rank %d: %v", r, err)
						}
					})
				}
				wg.Wait()
			})
			if int(won.Load()) < n || int(won.Load()+lost.Load()) != 2*n {
				t.Fatalf("%d waits of %d ranks finished a phase and %d were refused", won.Load(), n, lost.Load())
			}
		}
	})
}

func TestHandlersRunWhileWaiting(t *testing.T) {
	const ping, pong = 200, 201
	forAll(t, []int{2, 9}, func(t *testing.T, n int, how Algorithm) {
		var pongs atomic.Int32
		j := openJob(t, n, how, 0,
			am.Entry{Index: ping, Name: "ping", Args: 0, Fn: func(tok *am.Token, _ []uint32, _ []byte) {
				if err := tok.ReplyShort(pong); err != nil {
					t.Error(err)
				}
			}},
			am.Entry{Index: pong, Name: "pong", Args: 0, Fn: func(*am.Token, []uint32, []byte) { pongs.Add(1) }})
		defer j.close()
		j.each(func(r int) {
			if r == 0 {
				// The others are in the barrier, or on their way there: no other goroutine
				// runs their handlers.
				for q := 1; q < n; q++ {
					if err := j.ends[0].RequestShort(q, ping); err != nil {
						t.Error(err)
					}
				}
				if err := j.ends[0].Wait(nil, func() bool { return int(pongs.Load()) == n-1 }); err != nil {
					t.Error(err)
				}
			}
			if err := j.bars[r].Barrier(0, Anonymous); err != nil {
				t.Error(err)
			}
		})
	})
}

func TestNoAllocations(t *testing.T) {
	const runs = 200
	// Ranks of one process on hybrid wake what waits for datagrams by a deadline of Go's own
	// poller, which makes an error for each; that is once for each rank that sleeps, and again where it is woken for nothing.
	most := func(n int, how Algorithm) float64 {
		if how == Levels {
			return float64(2 * n)
		}
		return 0
	}
	forAll(t, []int{1, 2, 5}, func(t *testing.T, n int, how Algorithm) {
		j := openJob(t, n, how, 0)
		defer j.close()
		j.each(func(r int) {
			b := j.bars[r]
			round := func() {
				if err := b.Notify(7, 0); err != nil {
					t.Error(err)
				}
				if err := b.Wait(7, 0); err != nil {
					t.Error(err)
				}
			}
			for range 50 {
				round()
			}
			if r > 0 {
				for range runs + 1 {
					round()
				}
				return
			}
			// The count is of the whole process, all ranks included.
			if a := testing.AllocsPerRun(runs, round); a > most(n, how) {
				t.Errorf("%v allocations for a barrier, at most %v", a, most(n, how))
			}
		})
	})
}

func TestAutoChooses(t *testing.T) {
	for n, want := range map[int]Algorithm{1: Flat, maxFlat: Flat, maxFlat + 1: Tree} {
		j := openJob(t, n, Auto, 0)
		for r, b := range j.bars {
			if b.Algorithm() != want {
				t.Errorf("%d ranks: rank %d chose %v, want %v", n, r, b.Algorithm(), want)
			}
		}
		j.close()
	}
}

func TestCombine(t *testing.T) {
	gen := rapid.Custom(func(t *rapid.T) knowledge {
		id := rapid.SampledFrom(ids).Draw(t, "id")
		return knowledge{w: offer(id, Flags(rapid.IntRange(0, 3).Draw(t, "flags")))}
	})
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(gen, 3, 3).Draw(t, "words")
		a, b, c := all[0], all[1], all[2]
		if combine(a.w, b.w) != combine(b.w, a.w) {
			t.Fatalf("combine does not commute")
		}
		if combine(combine(a.w, b.w), c.w) != combine(a.w, combine(b.w, c.w)) {
			t.Fatalf("combine does not associate")
		}
		if combine(a.w, a.w) != a.w {
			t.Fatalf("combine is not idempotent")
		}
		m := merge(merge(a, b), c)
		v := combine(combine(a.w, b.w), c.w)
		if m.w&wordMismatch != v&wordMismatch || v&wordMismatch == 0 && m.w != v {
			t.Fatalf("merge says %#x, combine %#x", m.w, v)
		}
		if m.w&wordMismatch != 0 && m.w&wordNamed != 0 {
			has := func(id uint32) bool {
				return slices.ContainsFunc(all, func(k knowledge) bool { return k.w == wordNamed|word(id) })
			}
			if m.w.id() == m.other || !has(m.w.id()) || !has(m.other) {
				t.Fatalf("evidence %d and %d of %v", m.w.id(), m.other, all)
			}
		}
	})
}

func TestAppendRanks(t *testing.T) {
	for _, x := range []struct {
		listed []int
		total  int
		want   string
	}{
		{nil, 0, "all ranks have arrived"},
		{[]int{3}, 1, "waiting for rank 3"},
		{[]int{0, 3}, 2, "waiting for ranks 0 and 3"},
		{[]int{0, 3, 5}, 3, "waiting for ranks 0, 3 and 5"},
		{[]int{0, 3, 5, 9}, 5, "waiting for ranks 0, 3, 5, 9 and 1 more"},
		{[]int{0, 3, 5, 9}, 33, "waiting for ranks 0, 3, 5, 9 and 29 more"},
	} {
		if got := string(appendRanks(nil, x.listed, x.total)); got != x.want {
			t.Errorf("%v of %d: %q, want %q", x.listed, x.total, got, x.want)
		}
	}
}

// TestTreeFits checks the layout for the largest job there can be.
func TestTreeFits(t *testing.T) {
	levels := 0
	for span := uint64(1); span < 1<<32; span *= fanIn {
		levels++
	}
	if levels > maxLevels {
		t.Errorf("%d levels for 2^32 ranks, room for %d", levels, maxLevels)
	}
}

// TestRoundsSuffice checks that the rounds reach every rank and none is superfluous.
func TestRoundsSuffice(t *testing.T) {
	for size := 1; size < 70; size++ {
		if k := rounds(size); 1<<k < size || k > 0 && 1<<(k-1) >= size {
			t.Errorf("%d rounds for %d ranks", k, size)
		}
	}
}

// looking counts the calls of lacking.
type looking struct {
	transport
	n int
}

func (l *looking) lacking(phase uint32) int {
	l.n++
	return l.transport.lacking(phase)
}

// TestTryLooksSeldom: one of every n unsuccessful Tries calls lacking, in a job of n
// ranks, because lacking looks at each rank.
func TestTryLooksSeldom(t *testing.T) {
	const n, rounds = 10, 6
	j := openJob(t, n, Tree, 0)
	b := j.bars[0]
	l := &looking{transport: b.t}
	b.t = l
	if err := b.Notify(1, 0); err != nil {
		t.Fatal(err)
	}
	for range rounds * n {
		if done, err := b.Try(1, 0); done || err != nil {
			t.Fatal(done, err)
		}
	}
	if l.n != rounds {
		t.Errorf("%d looks by %d tries of a job of %d ranks, want %d", l.n, rounds*n, n, rounds)
	}
	for _, e := range j.ends {
		_ = e.Conduit().Close() // rank 0 leaves in a barrier
	}
}

// TestBehind: which phases a rank has not come to, also where their numbers wrap.
func TestBehind(t *testing.T) {
	for _, c := range []struct {
		last, phase uint32
		want        bool
	}{
		{0, 1, true},
		{1, 1, false},
		{2, 1, false},
		{1, 2, true},
		{1, 7, true},
		{phaseMask, 0, true},
		{phaseMask, phaseMask, false},
		{0, phaseMask, false},
		{1, phaseMask, false},
	} {
		var b Barrier
		b.state.Store(uint64(c.last)<<wordPhase | stateNotified)
		if got := b.Behind(c.phase); got != c.want {
			t.Errorf("phase %d notified last: behind phase %d: %v", c.last, c.phase, got)
		}
	}
}
