package shm

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/segment"
)

// TestFlushWaits: Deregister returns when no rank is in an access any more, though it
// be of another process.
func TestFlushWaits(t *testing.T) {
	for _, maps := range []bool{false, true} {
		w := mappedWay(maps)
		all := w.nodes(t, 3)
		mem := w.memory(t, all[1].Endpoint, 4*page)
		at, r := register(t, all[1].Endpoint, mem, segment.RightsAll, segment.AnyPeer)
		if err := all[2].put(all, 1, at, []byte{1}); err != nil {
			t.Fatal(err)
		}
		in := all[2].enter()
		var over atomic.Bool
		ended := make(chan struct{})
		go func() {
			deregister(t, all[1].Endpoint, r)
			over.Store(true)
			close(ended)
		}()
		// When the entries are revoked Deregister is about to return, but for the unit.
		u, _ := all[1].ATU()
		for u.Tables().Load(at).Valid() {
			runtime.Gosched()
		}
		for range 2000 {
			runtime.Gosched()
		}
		if over.Load() {
			t.Fatal("Deregister has not waited")
		}
		exit(in)
		<-ended
		runtime.KeepAlive(mem)
	}
}

// TestFlushHolds: after Deregister nothing changes any more, however hard others try.
func TestFlushHolds(t *testing.T) {
	for name, w := range map[string]way{"mapped": mappedWay(true), "private": mappedWay(false), "asked": asking(false), "blind": asking(true)} {
		t.Run(name, func(t *testing.T) {
			all := w.nodes(t, 3)
			owner := all[2]
			var at atomic.Uint64
			var stop atomic.Bool
			var wg sync.WaitGroup
			for _, n := range all[:2] {
				wg.Add(1)
				go func() {
					defer wg.Done()
					src := make([]byte, 3*page)
					for i := range src {
						src[i] = 0xff
					}
					for c := uint64(0); !stop.Load(); c++ {
						a := segment.NLA(at.Load())
						if a == 0 {
							runtime.Gosched()
							continue
						}
						clear(n.done)
						ev, err := post.Put(n, 2, a, src, conduits.RemoteDone, c)
						for err == nil && ev == 0 && !stop.Load() {
							n.Poll()
							runtime.Gosched()
							ev, err = n.done[c].ev, n.done[c].err
						}
						if err != nil && !errors.Is(err, segment.ErrFault) {
							t.Error(err)
							return
						}
						if c%8 == 0 {
							runtime.Gosched()
						}
					}
				}()
			}
			mem := w.memory(t, owner.Endpoint, 3*page)
			for range 100 {
				a, r := register(t, owner.Endpoint, mem, segment.RightsAll, segment.AnyPeer)
				at.Store(uint64(a))
				for i := 0; i < 5 || i < 500 && mem[0] == 0; i++ {
					owner.Poll()
					runtime.Gosched()
				}
				at.Store(0)
				deregister(t, owner.Endpoint, r)
				clear(mem)
				for range 4 {
					owner.Poll()
					runtime.Gosched()
				}
				for i, b := range mem {
					if b != 0 {
						t.Fatalf("byte %d has been put after Deregister", i)
					}
				}
			}
			stop.Store(true)
			wg.Wait()
			runtime.KeepAlive(mem)
		})
	}
}

// TestFlushGivesUp: a rank that dies in an access, so that the job has failed, is not
// waited for; what it may have been writing to becomes nothing else.
func TestFlushGivesUp(t *testing.T) {
	for _, maps := range []bool{false, true} {
		w := mappedWay(maps)
		all := w.nodes(t, 3)
		mem := w.memory(t, all[1].Endpoint, 4*page)
		at, r := register(t, all[1].Endpoint, mem, segment.RightsAll, segment.AnyPeer)
		if err := all[2].put(all, 1, at, []byte{1}); err != nil {
			t.Fatal(err)
		}
		all[2].enter()
		all[2].Fail(errors.New("out of ink"))
		deregister(t, all[1].Endpoint, r)
		if !isKept(mem) {
			t.Error("the memory is not kept")
		}
		if !maps {
			continue
		}
		if err := all[1].UnmapMemory(mem); err != nil {
			t.Fatal(err)
		}
		mem[0]++ // the addresses are no other memory's either
		g := &all[1].j.growth
		for _, f := range g.free {
			t.Errorf("%+v is free, and perhaps written to", f)
		}
	}
}

// TestCloseWaits: an endpoint that is closed is in no access.
func TestCloseWaits(t *testing.T) {
	w := mappedWay(true)
	all := w.nodes(t, 2)
	mem := w.memory(t, all[1].Endpoint, page)
	at, _ := register(t, all[1].Endpoint, mem, segment.RightsAll, segment.AnyPeer)
	if err := all[0].put(all, 1, at, []byte{1}); err != nil {
		t.Fatal(err)
	}
	in := all[0].enter()
	ended := make(chan error)
	var over atomic.Bool
	go func() {
		err := all[0].Close()
		over.Store(true)
		ended <- err
	}()
	for !all[0].closed.Load() {
		runtime.Gosched()
	}
	for range 2000 {
		runtime.Gosched()
	}
	if over.Load() {
		t.Fatal("Close has not waited")
	}
	if all[0].enter() != nil {
		t.Fatal("an access has begun after Close")
	}
	exit(in)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// TestPutWakes: a put to registered memory wakes its owner, whichever way it goes.
func TestPutWakes(t *testing.T) {
	eachWay(t, func(t *testing.T, w way) {
		all := w.nodes(t, 2)
		a, b := all[0], all[1]
		mem := w.memory(t, b.Endpoint, page)
		at, _ := register(t, b.Endpoint, mem, segment.RightsAll, segment.AnyPeer)
		at = (at + 7) &^ 7
		word := (*uint64)(unsafe.Add(unsafe.Pointer(&mem[0]), -uintptr(unsafe.Pointer(&mem[0]))&7))
		ended := make(chan error)
		const rounds = 300
		go func() {
			var err error
			for i := uint64(1); i <= rounds && err == nil; i++ {
				err = conduits.Wait(b, nil, func() bool { return atomic.LoadUint64(word) >= i })
			}
			ended <- err
		}()
		for range rounds {
			a.next++
			_, ev, err := post.Atomic(a, 1, at, conduits.AtomicAdd, conduits.Uint64, 1, 0, a.next)
			if err == nil && ev == 0 {
				err = conduits.Wait(a, nil, func() bool { return a.done[a.next].ev != 0 })
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		runtime.KeepAlive(mem)
	})
}

// TestFlushGivesUpOnce: an access that has been waited for without end is not waited for
// at each deregistration that follows.
func TestFlushGivesUpOnce(t *testing.T) {
	all := mappedWay(true).nodes(t, 3)
	owner := all[1].Endpoint
	m, err := owner.MapMemory(page)
	if err != nil {
		t.Fatal(err)
	}
	at, first := register(t, owner, m, segment.RightsAll, segment.AnyPeer)
	_, second := register(t, owner, m, segment.RightsAll, segment.AnyPeer)
	if err := all[2].put(all, 1, at, []byte{1}); err != nil {
		t.Fatal(err)
	}
	in := all[2].enter()
	all[2].Fail(errors.New("out of ink"))
	deregister(t, owner, first)
	// As if nothing had happened: a flush now waits for ever.
	failed := atomic.SwapUint64(owner.j.failedWord(), 0)
	state := atomic.SwapUint32(owner.j.c32(2, ctlState), uint32(conduits.RankAttached))
	deregister(t, owner, second)
	atomic.StoreUint64(owner.j.failedWord(), failed)
	atomic.StoreUint32(owner.j.c32(2, ctlState), state)
	// Another access by the same unit is waited for.
	exit(in)
	atomic.AddUint64(in, 1)
	if owner.lost.is(in, atomic.LoadUint64(in)) {
		t.Error("another access is taken for one that was given up")
	}
	exit(in)
}
