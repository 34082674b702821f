package extended

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// divided is the table of an endpoint with parts.
func divided() *table {
	t := &New(Config{}).table
	t.parts.Store(new(parts))
	return t
}

// count counts the slots that are free, and the handles that are left, in all parts.
func (t *table) count() (free, left int) {
	all := []*part{&t.part}
	if ps := t.parts.Load(); ps != nil {
		for i := range ps {
			all = append(all, &ps[i].part)
		}
	}
	for _, p := range all {
		for o := p.free; o != nil; o = o.next {
			free++
		}
		left += int(p.left)
	}
	return free, left
}

// TestPartsModel has goroutines, one at a time, claim, and release what others may have
// claimed, and compares with counting: no slot is given out twice, none is lost, and none
// is new while one is free.
func TestPartsModel(t *testing.T) {
	const goroutines = 5
	var work [goroutines]chan func()
	done := make(chan bool)
	for g := range work {
		work[g] = make(chan func())
		defer close(work[g])
		go func() {
			for f := range work[g] {
				f()
				done <- true
			}
		}()
	}
	rapid.Check(t, func(t *rapid.T) {
		tab := divided()
		type held struct {
			o        *op
			name     uint64
			explicit bool
		}
		var all []held
		handles, most := 0, 0
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			g := rapid.IntRange(0, goroutines-1).Draw(t, "goroutine")
			take, explicit := rapid.IntRange(0, 2).Draw(t, "take") > 0, rapid.Bool().Draw(t, "handle")
			at := rapid.IntRange(0, max(0, len(all)-1)).Draw(t, "which")
			work[g] <- func() {
				if take {
					o, name, err := tab.claim(explicit)
					if err != nil {
						t.Errorf("claim with %d of %d slots in use: %v", len(all), numSlots, err)
						return
					}
					for _, h := range all {
						if h.o == o {
							t.Errorf("slot %d is given out twice", o.slot)
						}
					}
					if (tab.handle(Handle(name)) == o) != explicit {
						t.Errorf("%#x is a handle, or none", name)
					}
					all = append(all, held{o, name, explicit})
				} else if len(all) > 0 {
					h := all[at]
					all[at] = all[len(all)-1]
					all = all[:len(all)-1]
					if _, ok := tab.release(h.o, h.name); !ok {
						t.Errorf("%#x is not outstanding", h.name)
					}
					if _, ok := tab.release(h.o, h.name); ok {
						t.Errorf("%#x is released twice", h.name)
					}
				}
			}
			<-done
			handles = 0
			for _, h := range all {
				if h.explicit {
					handles++
				}
			}
			most = max(most, len(all))
			free, left := tab.count()
			if tab.outstanding() != handles || left != MaxHandles-handles {
				t.Fatalf("%d handles outstanding and %d left, want %d and %d", tab.outstanding(), left, handles, MaxHandles-handles)
			}
			if int(tab.used) != most || free != most-len(all) {
				t.Fatalf("%d slots were used and %d are free, with %d in use and %d at most", tab.used, free, len(all), most)
			}
		}
	})
}

// TestPartsLimits: each of MaxHandles handles, and of all slots, is found wherever it is
// left, and not one more.
func TestPartsLimits(t *testing.T) {
	tab := divided()
	each := func(n int, f func()) { // by a goroutine for each of them
		var wg sync.WaitGroup
		for range n {
			wg.Add(1)
			go func() {
				defer wg.Done()
				f()
			}()
		}
		wg.Wait()
	}
	type name struct {
		o    *op
		name uint64
	}
	names := make(chan name, numSlots)
	claim := func(withHandle bool, want error) {
		o, n, err := tab.claim(withHandle)
		if !errors.Is(err, want) {
			t.Errorf("claim: %v, want %v", err, want)
		} else if err == nil {
			names <- name{o, n}
		}
	}
	const goroutines = 16
	each(goroutines, func() {
		for range MaxHandles / goroutines {
			claim(true, nil)
		}
	})
	claim(true, ErrResource)
	if tab.outstanding() != MaxHandles {
		t.Errorf("%d handles are outstanding, want %d", tab.outstanding(), MaxHandles)
	}
	each(goroutines, func() {
		for range (numSlots - MaxHandles) / goroutines {
			claim(false, nil)
		}
	})
	claim(false, ErrResource)
	if tab.room() {
		t.Error("there is room")
	}
	seen := map[*op]bool{}
	for range numSlots {
		n := <-names
		if seen[n.o] {
			t.Fatalf("slot %d is given out twice", n.o.slot)
		}
		seen[n.o] = true
		names <- n
	}
	// What one goroutine gives back another one finds, once.
	for range 100 {
		each(1, func() {
			n := <-names // with a handle: these come first
			tab.release(n.o, n.name)
		})
		if !tab.room() {
			t.Error("there is no room")
		}
		each(1, func() { claim(true, nil) })
		each(1, func() { claim(true, ErrResource) })
	}
}

// TestPartsRace has goroutines claim and release at once, and two at a time release the
// same: one of them does.
func TestPartsRace(t *testing.T) {
	tab := &New(Config{}).table
	var released atomic.Int64
	const goroutines, times = 4, 2000
	type name struct {
		o    *op
		name uint64
	}
	shared := make(chan name, goroutines)
	var wg sync.WaitGroup
	release := func(n name) {
		if _, ok := tab.release(n.o, n.name); ok {
			released.Add(1)
		}
	}
	for g := range goroutines {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range times {
				o, n, err := tab.claim((g+i)%2 == 0)
				if err != nil {
					t.Error(err)
					return
				}
				shared <- name{o, n}
				release(name{o, n})
				release(<-shared)
			}
		}()
	}
	wg.Wait()
	free, left := tab.count()
	if got := released.Load(); got != goroutines*times || left != MaxHandles || free != int(tab.used) {
		t.Errorf("%d of %d were released; %d handles are left of %d, %d slots free of %d",
			got, goroutines*times, left, MaxHandles, free, tab.used)
	}
}

// TestDivided: a table is divided when one goroutine meets another at its lock, and not
// before.
func TestDivided(t *testing.T) {
	tab := &New(Config{}).table
	for range 3 * meetEach {
		o, name, err := tab.claim(true)
		if err != nil {
			t.Fatal(err)
		}
		tab.release(o, name)
	}
	if tab.parts.Load() != nil {
		t.Fatal("one goroutine has parts")
	}
	for tab.parts.Load() == nil { // until the other one has come while the lock is held
		start, met := make(chan bool), make(chan bool)
		tab.mu.Lock()
		go func() {
			close(start)
			tab.meet()
			close(met)
		}()
		<-start
		runtime.Gosched()
		tab.mu.Unlock()
		<-met
	}
	ps := tab.parts.Load()
	if tab.meet(); tab.parts.Load() != ps {
		t.Error("the table was divided twice")
	}
	if tab.own() == &tab.part {
		t.Error("goroutines go on with the reserve")
	}
}

// TestPartsKeepRest: slots that come with the one that a claim for a handle takes from the
// reserve are not lost if the caller's part, which lacks the handle alone, has slots.
func TestPartsKeepRest(t *testing.T) {
	tab := divided()
	p := tab.own()
	fill := func(n int) {
		var ops [3]*op
		var names [3]uint64
		for i := range n {
			var err error
			if ops[i], names[i], err = tab.claim(false); err != nil {
				t.Fatal(err)
			}
		}
		for i := range n {
			tab.release(ops[i], names[i])
		}
	}
	fill(3)
	reserve := p.free
	p.free = nil
	fill(2)
	tab.free, tab.left, p.left = reserve, tab.left+p.left, 0
	o, name, err := tab.claim(true)
	if free, left := tab.count(); err != nil || free != 4 || left != MaxHandles-1 {
		t.Fatalf("%d slots are free and %d handles left, want 4 of 5 and %d: %v", free, left, MaxHandles-1, err)
	}
	tab.release(o, name)
	if free, left := tab.count(); free != 5 || left != MaxHandles {
		t.Errorf("%d slots are free and %d handles left, want 5 and %d", free, left, MaxHandles)
	}
}

// TestPartsAtOnce: what is free at every moment is found, and the handles outstanding are
// counted right, though what is free goes from one end of the parts to the other while a
// goroutine has looked at the first part and not at the last.
func TestPartsAtOnce(t *testing.T) {
	const rounds = 200
	claim := func(withHandle bool) func(*table) bool {
		return func(tab *table) bool {
			_, _, err := tab.claim(withHandle)
			return err == nil
		}
	}
	move := func(from, to *part) {
		to.left, from.left = to.left+from.left, 0
		to.free, from.free = from.free, nil
	}
	for _, c := range []struct {
		name    string
		handles int32 // free, beside the one that moves
		used    uint32
		back    bool // from the first part to the last
		look    func(*table) bool
	}{
		{"handle", 0, 0, false, claim(true)},
		{"slot", 100, numSlots, false, claim(false)},
		{"handle and slot", 0, numSlots, false, claim(true)},
		{"access region", 0, numSlots, false, func(tab *table) bool { return tab.expose(new(op)) == nil }},
		{"room", 100, numSlots, false, (*table).room},
		{"outstanding", MaxHandles - 1, numSlots, true, func(tab *table) bool { return tab.outstanding() == 0 }},
	} {
		for range rounds {
			tab := divided()
			ps := tab.parts.Load()
			low, high := &ps[0].part, &ps[numParts-1].part
			tab.left, tab.used = c.handles, c.used
			from, to := high, low
			if c.back {
				from, to = low, high
			}
			from.left = 1
			if c.used > 0 {
				from.free = new(op)
			}
			high.mu.Lock()
			found := make(chan bool)
			go func() { found <- c.look(tab) }()
			for range 100 { // until the goroutine waits for the last part, or nearly so
				runtime.Gosched()
			}
			if low.mu.TryLock() { // not if it holds the locks of several parts
				move(from, to)
				low.mu.Unlock()
			}
			high.mu.Unlock()
			if !<-found {
				t.Fatalf("%s: what was free all the time is not found, or counted wrongly", c.name)
			}
		}
	}
}
