package chaos_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/chaos"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/segment"
)

// registrant counts what comes.
type registrant struct {
	ep   conduits.Endpoint
	mu   sync.Mutex
	done map[uint64]error // by cookie: RemoteDone
	long int
	bad  int
	late int  // that came with memory that was
	gone bool // by then
}

func (r *registrant) Receive(m *conduits.Message) {
	r.mu.Lock()
	r.long++
	if len(m.Payload) != 300 || bytes.Count(m.Payload, []byte{7}) != 300 {
		r.bad++
	}
	if r.gone {
		r.late++
	}
	r.mu.Unlock()
	r.ep.Wake(1 - r.ep.Rank())
}

func (r *registrant) Complete(cookie uint64, ev conduits.Event, _ uint64, err error) {
	r.mu.Lock()
	if ev&conduits.RemoteDone != 0 {
		r.done[cookie] = err
	}
	r.mu.Unlock()
	r.ep.Wake(r.ep.Rank())
}

// TestRegistered accesses registered memory, a part of the operations long after
// they were begun, then withdraws it amid others and amid long messages that wait.
func TestRegistered(t *testing.T) {
	for name, open := range opens {
		t.Run(name, func(t *testing.T) {
			eps, err := open(chaos.Config{Defer: 0.5, Delay: 1, Patience: 20})(2, conduits.Config{Seed: 5})
			if err != nil {
				t.Fatal(err)
			}
			const n, size = 60, 1 << 14
			mem := make([]byte, size)
			var at atomic.Uint64
			var begun, gone, sent atomic.Int64
			adds := uint64(0) // that ended well
			var all chaos.Counts
			var nodes [2]*registrant
			for i, ep := range eps {
				nodes[i] = &registrant{ep: ep, done: map[uint64]error{}}
			}
			conduits.Run(eps, func(i int) {
				ep, r := eps[i], nodes[i]
				wait := func(cond func() bool) {
					if err := conduits.Wait(ep, nil, cond); err != nil {
						t.Error(err)
					}
				}
				if err := ep.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: r}); err != nil {
					t.Error(err)
					return
				}
				if i == 1 {
					u, err := ep.ATU()
					if err != nil {
						t.Error(err)
						return
					}
					region, err := u.Register(mem, segment.RightsAll, 0)
					if err != nil {
						t.Error(err)
						return
					}
					a, _ := region.At(0)
					at.Store(uint64(a))
					ep.Wake(0)
					wait(func() bool {
						r.mu.Lock()
						defer r.mu.Unlock()
						c, _ := chaos.Done(ep)
						return begun.Load() == 1 && r.long > 0 && int(c.Delayed) > r.long // some are kept
					})
					if err := u.Deregister(region); err != nil {
						t.Error(err)
					}
					r.mu.Lock()
					r.gone = true
					r.mu.Unlock()
					after := bytes.Clone(mem)
					gone.Store(1)
					ep.Wake(0)
					wait(func() bool { return gone.Load() == 2 })
					// No rank is told of a message that is refused.
					for ep.Err() == nil {
						var s [2]conduits.Stats
						for k, ep := range eps {
							ep.Stats(&s[k])
						}
						r.mu.Lock()
						have := int64(r.long) + int64(s[0].Faults) + int64(s[1].Faults)
						r.mu.Unlock()
						if have >= sent.Load() {
							break
						}
						ep.Poll()
						ep.Wake(0)
						runtime.Gosched()
					}
					if !bytes.Equal(mem, after) {
						t.Error("memory that was withdrawn has changed")
					}
					gone.Store(3)
					ep.Wake(0)
					return
				}
				wait(func() bool { return at.Load() != 0 })
				rng := rand.New(rand.NewPCG(1, 2))
				to := segment.NLA(at.Load())
				cookie := uint64(0)
				buf := bytes.Repeat([]byte{7}, 300)
				added := map[uint64]bool{}
				begin := func() {
					cookie++
					var ev conduits.Event
					var err error
					off := segment.NLA(64 + rng.IntN(size-64-300))
					switch rng.IntN(4) {
					case 0:
						ev, err = post.Put(ep, 1, to+off, buf, conduits.RemoteDone, cookie)
					case 1:
						ev, err = post.Get(ep, make([]byte, 300), 1, to+off, conduits.RemoteDone, cookie)
					case 2:
						ev, err = post.PutWord(ep, 1, (to+off)&^7, 0x0707070707070707, 8, conduits.RemoteDone, cookie)
					case 3:
						added[cookie] = true
						_, ev, err = post.Atomic(ep, 1, to, conduits.AtomicAdd, conduits.Uint64, 1, 0, cookie)
					}
					if ev != 0 || err != nil {
						r.mu.Lock()
						r.done[cookie] = err
						r.mu.Unlock()
					}
				}
				ended := func() bool {
					r.mu.Lock()
					defer r.mu.Unlock()
					return len(r.done) == int(cookie)
				}
				for range n {
					begin()
				}
				wait(ended)
				for c, err := range r.done {
					if err != nil {
						t.Errorf("operation %d: %v", c, err)
					}
				}
				long := func() {
					var s conduits.Slot
					var st conduits.Status
					src := bytes.Clone(buf)
					wait(func() bool {
						s, _, st = ep.ReservePut(1, conduits.Request, 0, to+64, src, 0)
						return st != conduits.NoCredit
					})
					if st == conduits.Ready {
						sent.Add(1)
						ep.Commit(1, conduits.Request, s, 1, 300)
					}
				}
				for range n {
					long()
					begin()
				}
				begun.Store(1)
				ep.Wake(1)
				for gone.Load() == 0 && ep.Err() == nil { // until it is withdrawn
					long()
					begin()
					ep.Poll()
				}
				wait(ended)
				last := cookie
				for range n {
					long()
					begin()
				}
				wait(ended)
				for c, err := range r.done {
					if err == nil && added[c] {
						adds++
					}
					if err != nil && !errors.Is(err, segment.ErrFault) || err == nil && c > last {
						t.Errorf("operation %d: %v", c, err)
					}
				}
				gone.Store(2)
				ep.Wake(1)
				wait(func() bool { return gone.Load() == 3 })
				c, _ := chaos.Done(ep)
				add(&all, c)
			})
			var s [2]conduits.Stats
			for k, ep := range eps {
				ep.Stats(&s[k])
				if err := ep.Close(); err != nil {
					t.Error(err)
				}
			}
			refused := s[0].Faults + s[1].Faults
			if got := uint64(nodes[1].long) + refused; got != uint64(sent.Load()) || refused == 0 || nodes[1].long == 0 || nodes[1].bad+nodes[1].late > 0 {
				t.Errorf("%d long messages: %d came, %d without their data, %d too late, %d refused", sent.Load(), nodes[1].long, nodes[1].bad, nodes[1].late, refused)
			}
			if v := binary.NativeEndian.Uint64(mem); v != adds || adds == 0 {
				t.Errorf("%d additions, the counter is %d", adds, v)
			}
			if all.Deferred == 0 || all.Late == 0 {
				t.Errorf("%+v", all)
			}
		})
	}
}

// TestAnothersAddress: a message that has been kept until its memory is withdrawn
// and another has its addresses is not delivered: neither is what was put. Nor is it
// if the same memory has been registered once more.
func TestAnothersAddress(t *testing.T) {
	for i, name := range []string{"other memory", "the same"} {
		t.Run(name, func(t *testing.T) { anothersAddress(t, 1-i) })
	}
}

// anothersAddress has memory 0 withdrawn, and which registered.
func anothersAddress(t *testing.T, which int) {
	eps, err := opens["shm"](chaos.Config{Delay: 1, Patience: 1000})(2, conduits.Config{Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	var nodes [2]*registrant
	var wg sync.WaitGroup
	for i, ep := range eps {
		nodes[i] = &registrant{ep: ep, done: map[uint64]error{}}
		wg.Go(func() {
			if err := ep.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: nodes[i]}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	const size = 2 * segment.PageSize // single pages have addresses that come again much later
	u, err := eps[1].ATU()
	if err != nil {
		t.Fatal(err)
	}
	register := func(mem []byte) (segment.Registration, segment.NLA) {
		r, err := u.Register(mem, segment.RightsAll, segment.AnyPeer)
		if err != nil {
			t.Fatal(err)
		}
		at, _ := r.At(0)
		return r, at
	}
	var mem [2][]byte
	for i := range mem {
		if mem[i], err = eps[1].MapMemory(size); err != nil {
			t.Fatal(err)
		}
	}
	r, at := register(mem[0])
	s, _, st := eps[0].ReservePut(1, conduits.Request, 0, at, bytes.Repeat([]byte{7}, 300), 0)
	if st != conduits.Ready {
		t.Fatal(st)
	}
	eps[0].Commit(1, conduits.Request, s, 1, 300)
	for c, _ := chaos.Done(eps[1]); c.Delayed == 0; c, _ = chaos.Done(eps[1]) {
		eps[0].Poll()
		eps[1].Poll()
	}
	if err := u.Deregister(r); err != nil {
		t.Fatal(err)
	}
	other, again := register(mem[which])
	for again != at {
		if err := u.Deregister(other); err != nil {
			t.Fatal(err)
		}
		other, again = register(mem[which])
	}
	var c conduits.Stats
	for nodes[1].long == 0 && c.Faults == 0 {
		eps[1].Poll()
		eps[1].Stats(&c)
	}
	if nodes[1].long != 0 {
		t.Error("it has been delivered")
	}
	for i, ep := range eps {
		if err := ep.Close(); err != nil {
			t.Error(i, err)
		}
	}
	for i := range mem {
		if err := eps[1].UnmapMemory(mem[i]); err != nil {
			t.Error(err)
		}
	}
}
