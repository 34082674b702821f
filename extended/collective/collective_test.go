package collective

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/testkit/testmain"
)

var errTest = errors.New("a reason")

// TestMismatch has one rank make another call than the rest. No rank hangs, and at
// the latest in the call after that all are told. Four ranks have cards that broadcast.
func TestMismatch(t *testing.T) {
	testmain.Long(t)
	type named struct {
		name string
		f    func(c *Member) error
	}
	b := func(n int) []byte { return make([]byte, n) }
	const bad = "a collective with bad arguments"
	calls := []named{
		{"Broadcast from rank 0 of 8 bytes", func(c *Member) error { return c.Broadcast(0, b(8)) }},
		{"Broadcast from rank 1 of 8 bytes", func(c *Member) error { return c.Broadcast(1, b(8)) }},
		{"Broadcast from rank 0 of 4 bytes", func(c *Member) error { return c.Broadcast(0, b(4)) }},
		{"Broadcast from rank 0 of 80000 bytes", func(c *Member) error { return c.Broadcast(0, b(80000)) }},
		{"Broadcast from rank 1 of 40 bytes", func(c *Member) error { return c.Broadcast(1, b(40)) }},
		{"Reduce to rank 0 of 8 bytes", func(c *Member) error { return c.Reduce(0, b(8), sum) }},
		{"Reduce to rank 1 of 8 bytes", func(c *Member) error { return c.Reduce(1, b(8), sum) }},
		{"AllReduce of 8 bytes", func(c *Member) error { return c.AllReduce(b(8), sum) }},
		{"Gather to rank 1 of 8 bytes", func(c *Member) error { return c.Gather(1, b(8), b(8*c.size)) }},
		{"AllGather of 8 bytes", func(c *Member) error { return c.AllGather(b(8), b(8*c.size)) }},
		{"ExclusiveScan of 8 bytes", func(c *Member) error { return c.ExclusiveScan(b(8), b(8), sum) }},
		{"Scan of 8 bytes", func(c *Member) error { return c.Scan(b(8), sum) }},
		{"Scatter from rank 1 of 8 bytes", func(c *Member) error { return c.Scatter(1, b(8*c.size), b(8)) }},
		{"Exchange of 120 bytes", func(c *Member) error { return c.Exchange(b(120), b(120)) }},
		{"AllReduce of 80000 bytes", func(c *Member) error { return c.AllReduceElements(8, b(80000), sum) }},
		{"ReduceScatter of 120 bytes", func(c *Member) error { return c.ReduceScatter(b(120), b(120/c.size), sum) }},
		{"GatherV to rank 1, in units of 8 bytes", func(c *Member) error { _, err := c.GatherV(1, 8, b(8*c.rank)); return err }},
		{"AllGatherV, in units of 8 bytes", func(c *Member) error { _, err := c.AllGatherV(8, b(8*c.rank)); return err }},
		{"ExchangeV, in units of 8 bytes", func(c *Member) error { _, err := c.ExchangeV(8, make([][]byte, c.size)); return err }},
		{"an agreement", func(c *Member) error { return c.Agree(b(8), sum) }},
		{"Barrier", func(c *Member) error { return c.Barrier() }},
		{bad, func(c *Member) error { _ = c.Broadcast(-1, nil); return nil }},
	}
	sizes := []int{2, 3, 4}
	if conc.Race {
		sizes = sizes[1:2]
	}
	for _, size := range sizes {
		for _, odd := range []int{0, size - 1} {
			for i, x := range calls {
				for k, y := range calls {
					if i == k || (i < k) == (odd == 0) {
						continue // each pair both ways, but not of each odd rank
					}
					network := "shm"
					if size == 4 {
						network = "card"
					}
					must(t, network, size, func(m *member) error {
						f := x.f
						if m.rank == odd {
							f = y.f
							if size == 2 && x.name != bad {
								// The other rank waits for this one, whatever it calls.
								if err := m.awaitNote(); err != nil {
									return err
								}
							}
						}
						err := f(m.Member)
						if err == nil {
							err = m.AllReduce(b(8), sum)
						}
						if !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), x.name) || !strings.Contains(err.Error(), y.name) ||
							!strings.Contains(err.Error(), "call 1 ") {
							return fmt.Errorf("rank %d of %d makes %s, the others %s; rank %d gets %v", odd, size, y.name, x.name, m.rank, err)
						}
						if again := m.AllReduce(b(8), sum); !errors.Is(again, errs.ErrBadArg) || m.Mismatch() == nil {
							return fmt.Errorf("the next call: %v", again)
						}
						return nil
					})
				}
			}
		}
	}
}

// TestMismatchOfAgreements: what agrees about more than others is another call.
func TestMismatchOfAgreements(t *testing.T) {
	must(t, "shm", 2, func(m *member) error {
		err := m.Agree(make([]byte, 8+m.rank), sum)
		if !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), "agreement of 8 bytes") || !strings.Contains(err.Error(), "agreement of 9 bytes") {
			return fmt.Errorf("rank %d: %w", m.rank, err)
		}
		return nil
	})
}

// TestFailure: a rank that fails while others are in a call, which it takes no part
// in, or leaves the job, is named by the error of all.
func TestFailure(t *testing.T) {
	const size = 5
	leaving := map[string]func(m *member) error{
		"fails":  func(*member) error { return errTest },
		"leaves": func(m *member) error { return errors.Join(m.e.Conduit().Close(), errLeft) },
	}
	for _, network := range append([]string{"hybrid"}, networks...) {
		for gone := range size {
			for i, k := range stepKinds {
				if network == "hybrid" && i != gone {
					continue // jobs take their time there
				}
				for how, leave := range leaving {
					s := step{kind: k, n: 600}
					var begun atomic.Int32
					all := run(t, network, size, func(m *member) error {
						if m.rank == gone {
							// Not before the others are out of the barrier.
							err := m.e.Wait(nil, func() bool { return begun.Load() == size-1 })
							return errors.Join(err, leave(m))
						}
						begun.Add(1)
						m.e.Conduit().Wake(gone)
						err := s.run(m.Member, false)
						if err == nil { // it needed nothing of the other one
							err = m.AllReduce(make([]byte, 8), sum)
						}
						return err
					})
					for r, err := range all {
						var p *errs.PeerError
						if r != gone && (!errors.As(err, &p) || p.Rank != gone || !strings.HasPrefix(p.Op, "collective call ")) {
							t.Errorf("%s: rank %d %s in kind %d of others; rank %d gets %v", network, gone, how, k, r, err)
						}
					}
				}
			}
		}
	}
}

// TestLeave: a rank that is at its end, while others are in a collective, tells them;
// those in an agreement find it out themselves.
func TestLeave(t *testing.T) {
	for gone := range 3 {
		for _, late := range []bool{false, true} {
			must(t, "shm", 3, func(m *member) error {
				var err error
				if m.rank == gone {
					if late && gone == 1 { // a rank above which another one waits for
						err = m.awaitNote()
					}
					err = errors.Join(err, m.Leave([]byte{1}, sum, nil))
				} else {
					err = m.AllReduce(make([]byte, 8), sum)
				}
				if !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), "the end of the program") || !strings.Contains(err.Error(), "AllReduce") {
					return fmt.Errorf("rank %d leaves, rank %d gets %w", gone, m.rank, err)
				}
				return nil
			})
			must(t, "shm", 3, func(m *member) error {
				acc := []byte{byte(m.rank)}
				call := func() error { return m.Agree(acc, sum) }
				if m.rank == gone {
					call = func() error { return m.Leave(acc, sum, nil) }
				}
				if err := call(); err != nil || acc[0] != 3 {
					return fmt.Errorf("agreed on %d: %w", acc[0], err)
				}
				return nil
			})
		}
	}
}

// TestLeaveStopped: Leave ends when its stop says so, as for ranks that are in a
// barrier of another name.
func TestLeaveStopped(t *testing.T) {
	must(t, "shm", 3, func(m *member) error {
		name := uint32(5)
		if m.rank > 0 {
			name = 6
		}
		if err := m.b.Notify(name, 0); err != nil {
			return err
		}
		if m.rank > 0 {
			if err := m.Leave([]byte{1}, sum, m.b.Mismatched); !errors.Is(err, ErrStopped) {
				return fmt.Errorf("rank %d: %w", m.rank, err)
			}
		}
		if err := m.b.Wait(name, 0); err == nil {
			return errors.New("the barrier matched")
		}
		return nil
	})
}

func TestBadArguments(t *testing.T) {
	must(t, "shm", 3, func(m *member) error {
		b := func(n int) []byte { return make([]byte, n) }
		for _, x := range []struct {
			f    func() error
			text string
		}{
			{func() error { return m.Broadcast(3, nil) }, "collective: Broadcast: root 3 out of range: the job has ranks 0..2"},
			{func() error { return m.Reduce(-1, nil, sum) }, "Reduce: root -1 out of range"},
			{func() error { return m.Gather(3, nil, nil) }, "Gather: root 3"},
			{func() error { return m.Scatter(-1, nil, nil) }, "Scatter: root -1"},
			{func() error { return m.AllGather(b(4), b(13)) }, "AllGather: a buffer of 13 bytes for 3 blocks of 4 bytes"},
			{func() error { return m.Exchange(b(4), b(4)) }, "Exchange: buffers of 4 and 4 bytes"},
			{func() error { return m.Exchange(b(6), b(3)) }, "Exchange: buffers of 6 and 3 bytes"},
			{func() error { return m.ExclusiveScan(b(4), b(5), sum) }, "results of 5 bytes for 4 bytes"},
			{func() error { return m.AllReduceElements(3, b(4), sum) }, "AllReduce: 4 bytes in elements of 3"},
			{func() error { return m.AllReduceElements(0, b(4), sum) }, "AllReduce: 4 bytes in elements of 0"},
			{func() error { return m.ReduceScatter(b(13), b(4), sum) }, "ReduceScatter: a buffer of 13 bytes for 3 blocks of 4 bytes"},
			{func() error { _, err := m.GatherV(3, 1, nil); return err }, "GatherV: root 3"},
			{func() error { _, err := m.GatherV(0, 2, b(3)); return err }, "GatherV: block 0 has 3 bytes in units of 2"},
			{func() error { _, err := m.AllGatherV(0, b(3)); return err }, "AllGatherV: block 0 has 3 bytes in units of 0"},
			{func() error { _, err := m.ExchangeV(1, nil); return err }, "ExchangeV: 0 blocks: there is one for each of the 3 ranks"},
			{func() error { _, err := m.ExchangeV(2, [][]byte{b(2), b(5), b(4)}); return err }, "ExchangeV: block 1 has 5 bytes"},
			{func() error { return m.Refuse(fmt.Errorf("%w: mine", errs.ErrBadArg)) }, "mine"},
		} {
			if err := x.f(); !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), x.text) {
				return fmt.Errorf("rank %d: %w, not %q", m.rank, err, x.text)
			}
		}
		// All ranks erred alike, so they are still in step.
		acc := []byte{byte(m.rank)}
		if err := m.AllReduce(acc, sum); err != nil || acc[0] != 3 {
			return fmt.Errorf("afterwards: %d, %w", acc[0], err)
		}
		if err := m.meet(); err != nil {
			return err
		}
		// What is wrong at root alone makes the call another one there.
		for _, f := range []func() error{
			func() error { return m.Gather(1, b(4), b(m.rank)) },
			func() error { return m.AllReduce(b(1), sum) },
		} {
			if err := f(); !errors.Is(err, errs.ErrBadArg) && m.rank == 1 {
				return fmt.Errorf("root: %w", err)
			}
		}
		if m.Mismatch() == nil {
			return errors.New("no mismatch")
		}
		return nil
	})
}

func second(_ [][]byte, err error) error { return err }

func TestUnbound(t *testing.T) {
	c := New(Config{})
	for i, err := range []error{
		c.Broadcast(0, nil), c.Reduce(0, nil, sum), c.AllReduce(nil, sum), c.Gather(0, nil, nil), c.AllGather(nil, nil),
		c.Scatter(0, nil, nil), c.Exchange(nil, nil), c.Scan(nil, sum), c.ExclusiveScan(nil, nil, sum), c.Agree(nil, sum),
		c.Leave(nil, sum, nil), c.AllReduceElements(1, nil, sum), c.ReduceScatter(nil, nil, sum),
		second(c.GatherV(0, 1, nil)), second(c.AllGatherV(1, nil)), second(c.ExchangeV(1, nil)),
	} {
		if !errors.Is(err, errs.ErrNotInit) || !strings.Contains(err.Error(), "call Bind") {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func TestTwoGoroutines(t *testing.T) {
	must(t, "shm", 2, func(m *member) error {
		acc := []byte{1}
		if m.rank == 1 {
			if err := m.meet(); err != nil {
				return err
			}
			return m.AllReduce(acc, sum)
		}
		// Rank 1 joins only after the second goroutine has been refused.
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := m.AllReduce(acc, sum); acc[0] != 2 || err != nil {
				t.Errorf("the first: %d, %v", acc[0], err)
			}
		})
		for busy := false; !busy; {
			m.mu.Lock()
			busy = m.busy
			m.mu.Unlock()
			runtime.Gosched()
		}
		if err := m.AllReduce([]byte{1}, sum); !errors.Is(err, errs.ErrNotReady) || !strings.Contains(err.Error(), "AllReduce of 1 bytes: another goroutine of rank 0") {
			t.Errorf("the second: %v", err)
		}
		if err := m.meet(); err != nil {
			return err
		}
		wg.Wait()
		return nil
	})
}

func TestBlocked(t *testing.T) {
	must(t, "shm", 2, func(m *member) error {
		if m.rank == 1 {
			if err := m.meet(); err != nil {
				return err
			}
			return m.Broadcast(1, make([]byte, 4))
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := m.Broadcast(1, make([]byte, 4)); err != nil {
				t.Error(err)
			}
		})
		want := "collective call 1, Broadcast from rank 1 of 4 bytes: waiting for rank 1 to call it"
		for m.Blocked() != want {
			runtime.Gosched()
		}
		if err := m.meet(); err != nil {
			return err
		}
		wg.Wait()
		if s := m.Blocked(); !strings.HasSuffix(s, "not waiting") {
			t.Error(s)
		}
		return nil
	})
	for _, n := range []int{4, sharedBytes} { // in one line and in two
		must(t, "shm", 2, func(m *member) error {
			if m.rank == 1 {
				if err := m.meet(); err != nil {
					return err
				}
				return m.AllReduce(make([]byte, n), sum)
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := m.AllReduce(make([]byte, n), sum); err != nil {
					t.Error(err)
				}
			})
			want := fmt.Sprintf("collective call 1, AllReduce of %d bytes: waiting for rank 1 to call it", n)
			for m.Blocked() != want {
				runtime.Gosched()
			}
			err := m.meet()
			wg.Wait()
			return err
		})
	}
}

func TestNothingAllocates(t *testing.T) {
	if conc.Race {
		t.Skip("the race detector has sync.Pool drop at random what it is given")
	}
	const runs = 100
	must(t, "shm", 3, func(m *member) error {
		var failed error
		acc, all, other := make([]byte, 2<<10), make([]byte, 6<<10), make([]byte, 6<<10)
		round := func() {
			for _, n := range []int{16, 100, 2 << 10} { // at the slots, along the tree, and directly
				acc, all, other := acc[:n], all[:3*n], other[:3*n]
				for _, err := range [...]error{
					m.AllReduce(acc, sum), m.Broadcast(1, acc), m.Reduce(2, acc, sum), m.ExclusiveScan(acc, other[:n], sum),
					m.Scan(acc, sum), m.Gather(0, acc, all), m.AllGather(acc, all), m.Scatter(0, all, acc), m.Exchange(all, other), m.Agree(acc, sum),
					m.AllReduceElements(4, all, sum), m.ReduceScatter(all, acc, sum),
				} {
					if err != nil {
						failed = err
					}
				}
			}
		}
		for range 20 {
			round()
		}
		if m.rank > 0 {
			for range runs + 1 {
				round()
			}
		} else if a := testing.AllocsPerRun(runs, round); a != 0 {
			t.Errorf("%v allocations for twelve collectives of three sizes on three ranks", a)
		}
		return failed
	})
}

// TestLinksGivenBack: after a call a rank keeps only the links in which there is
// something of a later one.
func TestLinksGivenBack(t *testing.T) {
	must(t, "shm", 5, func(m *member) error {
		for root := range m.size {
			if err := errors.Join(m.AllReduce(make([]byte, 8), sum), m.Broadcast(root, make([]byte, 8))); err != nil {
				return err
			}
			m.mu.Lock()
			for _, l := range m.links {
				if !l.wanted.later(m.seq) && !l.offered.later(m.seq) {
					t.Errorf("rank %d keeps %+v after call %d", m.rank, *l, m.seq)
				}
			}
			m.mu.Unlock()
		}
		return nil
	})
}

// TestHistory compares what is remembered of the last calls with all there were.
func TestHistory(t *testing.T) {
	var c Member
	all := []call{{form: form{kind: kindPast}}}
	for seq := uint32(1); seq < 5*historyLen; seq++ {
		d := call{form: form{kind: kindReduce}, root: seq, size: uint64(seq)}
		c.remember(seq, d)
		all = append(all, d)
		for s := seq; s > 0 && seq-s < historyLen; s-- {
			if got := c.history(s); got != all[s] {
				t.Fatalf("after call %d number %d is %v, not %v", seq, s, got, all[s])
			}
		}
	}
	if len(c.past) != historyLen {
		t.Errorf("%d calls are kept, not %d", len(c.past), historyLen)
	}
	c.past = nil
	if got := c.history(0); got.kind != kindPast {
		t.Errorf("before the first call there was %v", got)
	}
}

// TestKinds: every kind has a name and travels, and what is none is one of the past.
func TestKinds(t *testing.T) {
	c := New(Config{})
	var seen []string
	for k := range numKinds {
		if name := c.name(k); name == "" || slices.Contains(seen, name) || kindOf(uint32(k)) != k {
			t.Errorf("kind %d is %q, and arrives as %d", k, name, kindOf(uint32(k)))
		} else {
			seen = append(seen, name)
		}
	}
	if kindOf(uint32(numKinds)) != kindPast || kindOf(1<<31) != kindPast {
		t.Error("a number that is no kind is one")
	}
}
