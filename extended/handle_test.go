package extended

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// TestHandleLimit drives the table to exactly as many handles as it promises,
// one beyond, and back, with operations complete at once and with all held.
func TestHandleLimit(t *testing.T) {
	for _, direct := range []bool{true, false} {
		t.Run(fmt.Sprintf("direct=%v", direct), func(t *testing.T) {
			j := newFake(2, fakeOptions{direct: direct, hold: true, config: Config{AlwaysHandle: true}})
			x := j.eps[0].x
			src := []byte("eight by")
			hs := make([]Handle, 0, MaxHandles)
			seen := make(map[Handle]bool, MaxHandles)
			fill := func() {
				for len(hs) < MaxHandles {
					h, err := x.PutBulkNB(1, at(8*(len(hs)%64)), src)
					if err != nil {
						t.Fatalf("handle %d: %v", len(hs)+1, err)
					}
					if h == 0 || seen[h] {
						t.Fatalf("handle %d is %#x, which is zero or was issued before", len(hs)+1, h)
					}
					seen[h] = true
					hs = append(hs, h)
					if n := x.Outstanding(); n != len(hs) {
						t.Fatalf("%d outstanding after %d", n, len(hs))
					}
				}
			}
			fill()
			if len(hs) != 65536 {
				t.Fatalf("the limit is %d", len(hs))
			}
			for range 2 { // a refusal must not leak anything, nor begin anything
				calls := j.eps[0].calls
				h, err := x.PutBulkNB(1, at(1024), src)
				if h != 0 || !errors.Is(err, ErrResource) || !strings.Contains(err.Error(), "65536") {
					t.Fatalf("one beyond: %#x, %v", h, err)
				}
				if j.eps[0].calls != calls || j.segs[1][1024] != 0 {
					t.Fatal("the operation one beyond was begun nevertheless")
				}
			}
			// A region cannot be ended either, and stays open for another try.
			var r Region
			if err := x.BeginRegion(&r); err != nil {
				t.Fatal(err)
			}
			if err := r.PutBulkNBI(1, at(0), src); err != nil {
				t.Fatal(err)
			}
			if _, err := r.End(); !errors.Is(err, ErrResource) {
				t.Fatalf("end region at the limit: %v", err)
			}
			j.eps[0].release()
			if err := x.Put(1, at(512), src); err != nil { // needs no handle
				t.Fatal(err)
			}
			if err := x.Wait(hs[1]); err != nil {
				t.Fatal(err)
			}
			h, err := r.End()
			if err != nil || h == 0 {
				t.Fatalf("end region with room: %#x, %v", h, err)
			}
			hs[1] = h
			if err := x.WaitAll(hs); err != nil {
				t.Fatal(err)
			}
			for i, h := range hs {
				if h != 0 {
					t.Fatalf("entry %d is %#x after WaitAll", i, h)
				}
			}
			if n := x.Outstanding(); n != 0 {
				t.Fatalf("%d outstanding after WaitAll", n)
			}
			// Once more with every slot in its second generation.
			hs = hs[:0]
			fill()
			if err := x.WaitAll(hs); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestHandleTableIsLazy: an endpoint that uses no handles has no table.
func TestHandleTableIsLazy(t *testing.T) {
	x := newFake(2, fakeOptions{direct: true}).eps[0].x
	b := make([]byte, 64)
	for range 100 {
		if h, err := x.PutNB(1, at(0), b); h != 0 || err != nil {
			t.Fatal(h, err)
		}
		if h, err := x.GetNB(1, at(0), b); h != 0 || err != nil {
			t.Fatal(h, err)
		}
	}
	if x.table.used != 0 {
		t.Fatalf("%d slots were used", x.table.used)
	}
}

func TestHandleMisuse(t *testing.T) {
	j := newFake(2, fakeOptions{direct: true, config: Config{AlwaysHandle: true}})
	x, y := j.eps[0].x, j.eps[1].x
	b := make([]byte, 16)
	issue := func(x *Initiator) Handle {
		h, err := x.PutNB(1, at(0), b)
		if err != nil || h == 0 {
			t.Fatal(h, err)
		}
		return h
	}
	refused := func(what string, h Handle) {
		t.Helper()
		name := fmt.Sprintf("%#x", uint64(h))
		check := func(form string, err error) {
			t.Helper()
			if !errors.Is(err, ErrBadArg) || !strings.Contains(err.Error(), name) || !strings.HasPrefix(err.Error(), "extended: ") {
				t.Errorf("%s: %s gave %v", what, form, err)
			}
		}
		check("Wait", x.Wait(h))
		_, err := x.Try(h)
		check("Try", err)
		good := issue(x)
		for form, f := range map[string]func(hs []Handle) error{
			"WaitAll":  x.WaitAll,
			"WaitSome": func(hs []Handle) error { _, err := x.WaitSome(hs); return err },
			"TrySome":  func(hs []Handle) error { _, err := x.TrySome(hs); return err },
			"TryAll":   func(hs []Handle) error { _, err := x.TryAll(hs); return err },
		} {
			hs := []Handle{0, good, h}
			check(form, f(hs))
			if hs[1] != good || hs[2] != h {
				t.Errorf("%s: %s touched the list: %#x", what, form, hs)
			}
		}
		if err := x.Wait(good); err != nil {
			t.Errorf("%s: the good handle beside it: %v", what, err)
		}
	}

	// The first handle of each rank, from the same slot, both outstanding.
	h, other := issue(x), issue(y)
	if h%numSlots != other%numSlots {
		t.Fatalf("first handles are %#x and %#x", h, other)
	}
	refused("another rank's", other)
	if err := y.Wait(other); err != nil {
		t.Fatal(err)
	}
	if err := x.Wait(h); err != nil {
		t.Fatal(err)
	}
	refused("waited twice", h)
	h2 := issue(x)
	if h2%numSlots != h%numSlots {
		t.Fatalf("the slot was not used again: %#x, %#x", h, h2)
	}
	refused("recycled slot", h)
	if err := x.Wait(h2); err != nil {
		t.Fatalf("the new user of the slot: %v", err)
	}
	refused("never issued", 1<<slotBits|5)
	refused("slot that was never made", 1<<slotBits|(numSlots-1))
	refused("all ones", ^Handle(0))
	refused("generation 0", 3)
	h = issue(x)
	refused("bit 63 set", h|1<<63)
	if err := x.Wait(h); err != nil {
		t.Fatal(err)
	}
	h = issue(x)
	hs := []Handle{h, h}
	if err := x.WaitAll(hs); !errors.Is(err, ErrBadArg) {
		t.Fatalf("one handle twice in a list: %v", err)
	}
	if n := x.Outstanding(); n != 0 {
		t.Fatalf("%d outstanding at the end", n)
	}
}

// TestInternalSlotsAreNotHandles: the name of a blocking operation's slot, or a
// region's, is nothing that a user can synchronize.
func TestInternalSlotsAreNotHandles(t *testing.T) {
	j := newFake(2, fakeOptions{hold: true})
	x := j.eps[0].x
	if err := x.Implicit().PutBulkNBI(1, at(0), make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	h := Handle(x.implicit.slots[slotPuts+1].name)
	if _, err := x.Try(h); !errors.Is(err, ErrBadArg) {
		t.Fatalf("%#x: %v", h, err)
	}
	j.eps[0].release()
	if err := x.Implicit().Sync(All); err != nil {
		t.Fatal(err)
	}
}

func TestGenerationsEnd(t *testing.T) {
	x := newFake(1, fakeOptions{direct: true, config: Config{AlwaysHandle: true}}).eps[0].x
	b := make([]byte, 8)
	h1, _ := x.PutNB(0, at(0), b)
	if err := x.Wait(h1); err != nil {
		t.Fatal(err)
	}
	slot := h1 % numSlots
	chunk, i := place(uint64(slot))
	(*x.table.chunks[chunk].Load())[i].state.Store((maxGen - 1) << stateShift)
	h2, _ := x.PutNB(0, at(0), b)
	if h2%numSlots != slot || uint64(h2)>>slotBits != maxGen || h2>>63 != 0 {
		t.Fatalf("last generation: %#x", h2)
	}
	if err := x.Wait(h2); err != nil {
		t.Fatal(err)
	}
	h3, _ := x.PutNB(0, at(0), b)
	if h3%numSlots == slot {
		t.Fatalf("a slot without generations left was used again: %#x", h3)
	}
	if err := x.Wait(h2); !errors.Is(err, ErrBadArg) {
		t.Fatalf("last handle of a retired slot, twice: %v", err)
	}
	if err := x.Wait(h3); err != nil {
		t.Fatal(err)
	}
}

func TestHandleLists(t *testing.T) {
	j := newFake(2, fakeOptions{hold: true})
	x := j.eps[0].x
	for _, hs := range [][]Handle{nil, {}, {0}, {0, 0, 0}} {
		if err := x.WaitAll(hs); err != nil {
			t.Error(err)
		}
		if n, err := x.WaitSome(hs); n != 0 || err != nil {
			t.Error(n, err)
		}
		if n, err := x.TrySome(hs); n != 0 || err != nil {
			t.Error(n, err)
		}
		if done, err := x.TryAll(hs); !done || err != nil {
			t.Error(done, err)
		}
	}
	if err := x.Wait(0); err != nil {
		t.Error(err)
	}
	if done, err := x.Try(0); !done || err != nil {
		t.Error(done, err)
	}
	hs := make([]Handle, 5)
	for i := range hs {
		if i != 2 {
			hs[i], _ = x.PutBulkNB(1, at(8*i), make([]byte, 8))
		}
	}
	if n, err := x.TrySome(hs); n != 0 || err != nil {
		t.Error("nothing has completed:", n, err)
	}
	if done, err := x.TryAll(hs); done || err != nil {
		t.Error("nothing has completed:", done, err)
	}
	for x.Outstanding() > 0 {
		for j.eps[0].deliver() == 0 {
			t.Fatal("nothing to deliver")
		}
		before := count(hs)
		n, err := x.WaitSome(hs)
		if err != nil || n == 0 || count(hs) != before-n {
			t.Fatal(n, err, hs)
		}
	}
	if done, err := x.TryAll(hs); !done || err != nil || count(hs) != 0 {
		t.Error(done, err, hs)
	}
}

func count(hs []Handle) int {
	n := 0
	for _, h := range hs {
		if h != 0 {
			n++
		}
	}
	return n
}

// handleMachine compares the handle table with a map.
type handleMachine struct {
	ep    *fakeEP
	x     *Initiator
	live  map[Handle]bool
	order []Handle // of live, so that choices are repeatable
	dead  []Handle
	buf   [4096]byte
}

func (m *handleMachine) add(h Handle) {
	if h == 0 {
		return
	}
	m.live[h] = true
	m.order = append(m.order, h)
}

func (m *handleMachine) drop(t *rapid.T, h Handle) {
	if !m.live[h] {
		t.Fatalf("%#x is not outstanding in the model", h)
	}
	delete(m.live, h)
	for i, o := range m.order {
		if o == h {
			m.order = append(m.order[:i], m.order[i+1:]...)
			break
		}
	}
	m.dead = append(m.dead, h)
}

func TestHandlesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := fakeOptions{
			hold: true, eager: rapid.Bool().Draw(t, "eager"), seed: rapid.Uint64().Draw(t, "seed"),
			direct: rapid.Bool().Draw(t, "direct"), config: Config{AlwaysHandle: rapid.Bool().Draw(t, "always")},
		}
		j := newFake(2, o)
		m := &handleMachine{ep: j.eps[0], x: j.eps[0].x, live: map[Handle]bool{}}
		fresh := func(t *rapid.T, h Handle, err error) {
			if err != nil {
				t.Fatal(err)
			}
			if m.live[h] {
				t.Fatalf("%#x was issued twice", h)
			}
			for _, d := range m.dead {
				if d == h && h != 0 {
					t.Fatalf("%#x was issued again", h)
				}
			}
			if h == 0 && o.config.AlwaysHandle {
				t.Fatal("zero handle")
			}
			m.add(h)
		}
		pick := func(t *rapid.T) []Handle {
			if len(m.order) == 0 {
				t.Skip("none")
			}
			hs := []Handle{0}
			for _, h := range m.order {
				if rapid.Bool().Draw(t, "take") {
					hs = append(hs, h)
				}
			}
			return hs
		}
		// after drops what a list form synchronized.
		after := func(t *rapid.T, old, hs []Handle) (n int) {
			for i := range hs {
				if hs[i] == 0 && old[i] != 0 {
					m.drop(t, old[i])
					n++
				} else if hs[i] != old[i] {
					t.Fatalf("entry became %#x", hs[i])
				}
			}
			return n
		}
		open := func() { m.ep.release() }
		shut := func() { m.ep.mu.Lock(); m.ep.hold = true; m.ep.mu.Unlock() }
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				h, err := m.x.PutBulkNB(1, at(0), m.buf[:rapid.IntRange(1, 64).Draw(t, "n")])
				fresh(t, h, err)
			},
			"get": func(t *rapid.T) {
				h, err := m.x.GetNB(1, at(64), m.buf[1024:1024+rapid.IntRange(1, 64).Draw(t, "n")])
				fresh(t, h, err)
			},
			"region": func(t *rapid.T) {
				var r Region
				if err := m.x.BeginRegion(&r); err != nil {
					t.Fatal(err)
				}
				for range rapid.IntRange(0, 3).Draw(t, "ops") {
					if err := r.PutBulkNBI(1, at(128), m.buf[:8]); err != nil {
						t.Fatal(err)
					}
				}
				h, err := r.End()
				fresh(t, h, err)
			},
			"deliver": func(t *rapid.T) { m.ep.deliver() },
			"try": func(t *rapid.T) {
				if len(m.order) == 0 {
					t.Skip("none")
				}
				h := rapid.SampledFrom(m.order).Draw(t, "h")
				done, err := m.x.Try(h)
				if err != nil {
					t.Fatal(err)
				}
				if done {
					m.drop(t, h)
				} else if o.direct {
					t.Fatal("direct, and not complete")
				}
			},
			"wait": func(t *rapid.T) {
				if len(m.order) == 0 {
					t.Skip("none")
				}
				h := rapid.SampledFrom(m.order).Draw(t, "h")
				open()
				err := m.x.Wait(h)
				shut()
				if err != nil {
					t.Fatal(err)
				}
				m.drop(t, h)
			},
			"waitSome": func(t *rapid.T) {
				hs := pick(t)
				old := append([]Handle(nil), hs...)
				open()
				n, err := m.x.WaitSome(hs)
				shut()
				if d := after(t, old, hs); err != nil || d != n || n == 0 && len(hs) > 1 {
					t.Fatal(n, d, err)
				}
			},
			"trySome": func(t *rapid.T) {
				hs := pick(t)
				old := append([]Handle(nil), hs...)
				n, err := m.x.TrySome(hs)
				if d := after(t, old, hs); err != nil || d != n {
					t.Fatal(n, d, err)
				}
			},
			"tryAll": func(t *rapid.T) {
				hs := pick(t)
				old := append([]Handle(nil), hs...)
				done, err := m.x.TryAll(hs)
				if after(t, old, hs); err != nil || done != (count(hs) == 0) {
					t.Fatal(done, hs, err)
				}
			},
			"waitAll": func(t *rapid.T) {
				hs := pick(t)
				old := append([]Handle(nil), hs...)
				open()
				err := m.x.WaitAll(hs)
				shut()
				if after(t, old, hs); err != nil || count(hs) != 0 {
					t.Fatal(hs, err)
				}
			},
			"dead": func(t *rapid.T) {
				if len(m.dead) == 0 {
					t.Skip("none")
				}
				h := rapid.SampledFrom(m.dead).Draw(t, "h")
				if _, err := m.x.Try(h); !errors.Is(err, ErrBadArg) {
					t.Fatalf("%#x again: %v", h, err)
				}
			},
			"": func(t *rapid.T) {
				if n := m.x.Outstanding(); n != len(m.live) {
					t.Fatalf("%d outstanding, %d in the model", n, len(m.live))
				}
			},
		})
		open()
		if err := m.x.WaitAll(m.order); err != nil {
			t.Fatal(err)
		}
	})
}

// TestHandlesManyGoroutines: goroutines of one rank issue and synchronize, some
// of them each other's handles, and none is left asleep.
func TestHandlesManyGoroutines(t *testing.T) {
	j := newFake(2, fakeOptions{eager: true, seed: 7})
	x := j.eps[0].x
	const workers, rounds = 8, 300
	pass := make(chan Handle, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			src := []byte{byte(w), 1, 2, 3, 4, 5, 6, 7}
			got := make([]byte, 8)
			for i := range rounds {
				h, err := x.PutNB(1, at(8*w), src)
				if err != nil {
					t.Error(err)
					return
				}
				if i%4 == 0 {
					pass <- h
					h = <-pass
				}
				if err := x.Wait(h); err != nil {
					t.Error(err)
					return
				}
				if i%4 == 0 {
					continue // the own put may still be under way
				}
				if err := x.Get(1, at(8*w), got); err != nil {
					t.Error(err)
					return
				}
				if got[0] != byte(w) {
					t.Errorf("worker %d read %v", w, got)
					return
				}
			}
		})
	}
	wg.Wait()
	close(pass)
	for h := range pass {
		if err := x.Wait(h); err != nil {
			t.Error(err)
		}
	}
	if n := x.Outstanding(); n != 0 {
		t.Errorf("%d outstanding", n)
	}
}

// TestCompletionWakesOthers: the goroutine that polls completes an operation
// that another one sleeps for.
func TestCompletionWakesOthers(t *testing.T) {
	e := newFake(2, fakeOptions{hold: true}).eps[0]
	x := e.x
	b := make([]byte, 8)
	h, err := x.PutBulkNB(1, at(0), b)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for what, wait := range map[string]func() error{
		"a handle":        func() error { return x.Wait(h) },
		"one of handles":  func() error { _, err := x.WaitSome([]Handle{0, h}); return err },
		"a blocking get":  func() error { return x.Get(1, at(0), b) },
		"a region":        func() error { return first(x.Implicit().PutBulkNBI(1, at(8), b), x.Implicit().Sync(All)) },
		"a source":        func() error { h, err := x.PutNB(1, at(16), b); return first(err, x.Wait(h)) },
		"an atomic's old": func() error { _, err := Atomic[int32](x, 1, at(32), AtomicOr, 4, 0); return err },
	} {
		if h == 0 {
			if h, err = x.PutBulkNB(1, at(0), b); err != nil {
				t.Fatal(err)
			}
		}
		go func() { done <- wait() }()
		for ended := false; !ended; {
			select {
			case <-e.parked:
				e.deliver()
			case err := <-done:
				if ended = true; err != nil {
					t.Fatalf("%s: %v", what, err)
				}
			}
		}
		if x.table.handle(h) == nil {
			h = 0
		}
	}
}

func TestPeerDies(t *testing.T) {
	for _, job := range []bool{false, true} {
		j := newFake(2, fakeOptions{hold: true})
		e := j.eps[0]
		x := e.x
		b := make([]byte, 8)
		h1, _ := x.PutBulkNB(1, at(0), b)
		h2, _ := x.GetNB(1, at(0), b)
		if err := x.Implicit().PutBulkNBI(1, at(0), b); err != nil {
			t.Fatal(err)
		}
		e.die(errDied, job)
		e.release()
		if err := x.WaitAll([]Handle{h1, h2}); !errors.Is(err, ErrPeer) {
			t.Errorf("handles: %v", err)
		}
		if err := x.Implicit().Sync(Puts); !errors.Is(err, ErrPeer) {
			t.Errorf("region: %v", err)
		}
		if err := x.Implicit().Sync(Puts); err != nil {
			t.Errorf("the failure was reported already: %v", err)
		}
		if err := x.Put(1, at(0), b); !errors.Is(err, ErrPeer) {
			t.Errorf("later put: %v", err)
		}
		if n := x.Outstanding(); n != 0 {
			t.Errorf("%d outstanding", n)
		}
	}
}
