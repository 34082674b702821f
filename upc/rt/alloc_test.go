package rt

import (
	"testing"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/segment"
)

var (
	objA = Static(Object{Name: "a", Size: 8, Block: 3, Count: 100})
	objB = Static(Object{Name: "b", Size: 4, Block: 1, Count: 7, TimesThreads: true})
	objC = Static(Object{Name: "c", Size: 2, Block: 0, Count: 33})
	objD = Static(Object{Name: "d", Size: 1, Block: Star, Count: 50})
	objE = Static(Object{Name: "e", Size: 8, Block: 1, Count: 64, TimesThreads: true})
)

// TestStatic: elements of all objects of the table are zero at first, and distinct; every
// thread finds them at the same places.
func TestStatic(t *testing.T) {
	onEach(t, 3, func(t *Thread) {
		type element struct {
			o *Object
			p Phaseless
		}
		var all []element
		for _, o := range []*Object{objA, objB, objC, objD} {
			b := o.BlockSize(t.threads)
			for _, w := range walked(t.threads, b, o.Size, o.elements(t.threads), t.Base(o).Addr()) {
				all = append(all, element{o, w.Phaseless()})
			}
		}
		if t.me == 0 {
			seen := map[Phaseless]bool{}
			for i, e := range all {
				for k := range e.o.Size {
					at := e.p.AddLocal(k, 1)
					if seen[at] || at.Phased() == 0 {
						t.failf("byte %d of element %d of the walk lies at %v, as another", k, i, at)
					}
					seen[at] = true
					if v := Get[uint8](t, at); v != 0 {
						t.failf("it is %d at first", v)
					}
				}
				if e.o != objD {
					Put(t, e.p, int16(i+1))
				}
			}
		}
		t.meet()
		for i, e := range all {
			if e.o != objD && Get[int16](t, e.p) != int16(i+1) {
				t.failf("element %d of the walk is %d", i, Get[int16](t, e.p))
			}
		}
		if got := t.BasePhased(objA).Wide(); got.Thread != 0 || got.Phase != 0 || got.Addr != t.Base(objA).Addr() {
			t.failf("a begins at %v", got)
		}
	})
}

func TestStaticRefused(t *testing.T) {
	was := table.objects
	defer func() { table.objects = was }()
	for _, c := range []struct {
		kind error
		says string
		o    Object
	}{
		{gas.ErrResource, "shared object big: 524288 bytes on each thread", Object{Name: "big", Size: 1 << 19, Block: 1, Count: 2}},
		{gas.ErrResource, "more than 2 threads have shared memory", Object{Name: "huge", Size: 1 << 30, Block: 1, Count: 1 << 40}},
		{gas.ErrResource, "more than 2 threads have shared memory", Object{Name: "star", Size: 8, Block: Star, Count: 1<<62 + 1, TimesThreads: true}},
		{gas.ErrResource, "more than 2 threads have shared memory", Object{Name: "long", Size: 1 << 62, Block: 1, Count: 4}},
		{gas.ErrBadArg, "at most 1048576 (UPC_MAX_BLOCK_SIZE)", Object{Name: "block", Size: 1, Block: MaxBlock + 1, Count: 1}},
		{gas.ErrBadArg, "0 elements of 8 bytes", Object{Name: "none", Size: 8, Block: 1}},
	} {
		table.objects = was
		Static(c.o)
		refused(t, 2, c.kind, c.says, func(*Thread) {})
	}
	table.objects = was
	if err := Run(Config{Threads: 2, Static: 3}, func(*Thread) {}); err == nil {
		t.Error("a program for 3 threads runs on 2")
	}
}

// TestAlloc: blocks of all kinds are disjoint on every thread, and any thread frees them.
func TestAlloc(t *testing.T) {
	onEach(t, 3, func(t *Thread) {
		const rounds = 4
		for round := range rounds {
			size := uint64(16 + 24*round)
			all := t.AllAlloc(5, size) // two blocks on threads 0 and 1, one on thread 2
			global := t.GlobalAlloc(uint64(t.threads), size)
			own := t.Alloc(size)
			if all.Thread() != 0 || global.Thread() != 0 || own.Thread() != t.me {
				t.failf("blocks begin at %v, %v and %v", all, global, own)
			}
			// Each thread writes its number into its own blocks, on all threads.
			for r := range t.threads {
				for k := range int(size) {
					Put(t, MakePhaseless(r, global.Addr()).AddLocal(k, 1), uint8(t.me+1))
					if r == t.me {
						Put(t, MakePhaseless(r, all.Addr()).AddLocal(k, 1), uint8(0x80+t.me))
						Put(t, own.AddLocal(k, 1), uint8(0x40+t.me))
					}
				}
			}
			t.meet()
			for r := range t.threads {
				for k := range int(size) {
					if v := Get[uint8](t, MakePhaseless(r, global.Addr()).AddLocal(k, 1)); v != uint8(t.me+1) {
						t.failf("byte %d of the global block on thread %d is %#x", k, r, v)
					}
					if v := Get[uint8](t, MakePhaseless(r, all.Addr()).AddLocal(k, 1)); v != uint8(0x80+r) {
						t.failf("byte %d of the common block on thread %d is %#x", k, r, v)
					}
				}
			}
			// The next thread frees what this one has allocated.
			Put(t, t.Base(objE).Add((t.me+1)%t.threads, 8, t.threads), uint64(own))
			Put(t, t.Base(objE).Add(t.threads+(t.me+1)%t.threads, 8, t.threads), uint64(global))
			t.meet()
			t.Free(Phaseless(Get[uint64](t, t.Base(objE).Add(t.me, 8, t.threads))))
			t.Free(Phaseless(Get[uint64](t, t.Base(objE).Add(t.threads+t.me, 8, t.threads))))
			if round%2 == 0 {
				t.AllFree(all)
			} else if t.meet(); t.me == 1 {
				t.Free(all)
			}
			t.meet()
		}
		t.Free(0)
		if t.AllAlloc(0, 8) != 0 || t.GlobalAlloc(8, 0) != 0 || t.Alloc(0) != 0 {
			t.failf("no bytes are not null")
		}
		if u := t.n.Usage(); u.Used != u.Collective {
			t.failf("%d bytes are still allocated", u.Used-u.Collective)
		}
		if t.me == 0 && t.heap.Usage().Used != 0 {
			t.failf("%d bytes of the symmetric heap are still allocated", t.heap.Usage().Used)
		}
	})
}

func TestAllocRefused(t *testing.T) {
	for _, c := range []struct {
		kind error
		says string
		main func(t *Thread)
	}{
		{segment.ErrDoubleFree, "freed already", func(t *Thread) {
			if t.me == 1 {
				p := t.GlobalAlloc(1, 8)
				t.Free(p)
				t.Free(p)
			}
		}},
		{segment.ErrDoubleFree, "freed already", func(t *Thread) {
			if t.me == 0 {
				p := t.GlobalAlloc(1, 8)
				t.Free(p)
				t.Free(p)
			}
		}},
		{gas.ErrBadArg, "not an allocated block", func(t *Thread) {
			if t.me == 1 {
				t.Free(t.Alloc(64).AddLocal(16, 1))
			}
		}},
		{gas.ErrBadArg, "does not begin on thread 0", func(t *Thread) { t.Free(t.GlobalAlloc(2, 8).Next(1, 2)) }},
		{gas.ErrBadArg, "null pointer-to-shared; before, upc_global_alloc of 1 blocks of 1048576 bytes", func(t *Thread) { Put(t, t.GlobalAlloc(1, 1<<20), t.noRoom[0]) }},
		{gas.ErrBadArg, "null pointer-to-shared; before, upc_all_alloc of 1 blocks of 1048576 bytes", func(t *Thread) { Put(t, t.AllAlloc(1, 1<<20), t.noRoom[0]) }},
		{gas.ErrBadArg, "null pointer-to-shared; before, upc_global_alloc of 3 blocks of", func(t *Thread) { Get[int8](t, t.GlobalAlloc(3, 1<<63)) }},
		{gas.ErrBadArg, "null pointer-to-shared; before, upc_alloc of 1048576 bytes", func(t *Thread) { Get[int8](t, t.Alloc(1<<20)) }},
		{gas.ErrBadArg, "on thread 0 of 2 blocks of 8", func(t *Thread) { t.AllAlloc(uint64(2+t.me), 8) }},
	} {
		err := run("shm", 2, c.main)
		if err == nil {
			t.Errorf("no error that says %q", c.says)
			continue
		}
		refused(t, 2, kindOf(c.kind), c.says, c.main)
	}
}

// kindOf is what an error matches also when it has come from another rank.
func kindOf(err error) error {
	if err == segment.ErrDoubleFree {
		return gas.ErrBadArg
	}
	return err
}
