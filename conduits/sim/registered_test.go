package sim_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/segment"
)

// accessor keeps what its operations ended with.
type accessor struct {
	ends map[uint64]error
	long int
}

func (a *accessor) Receive(m *conduits.Message) {
	if bytes.Count(m.Payload, []byte{9}) != 200 || len(m.Payload) != 200 {
		panic(fmt.Sprintf("message with %d bytes", len(m.Payload)))
	}
	a.long++
}

func (a *accessor) Complete(cookie uint64, ev conduits.Event, _ uint64, err error) {
	if ev&conduits.RemoteDone != 0 {
		a.ends[cookie] = err
	}
}

// TestRegisteredInTime has one rank register and withdraw memory at random times
// while another accesses it: what is there during the whole of an operation is
// reached, what is not at any time of it is refused, nothing is written afterwards;
// and the same seed does the same.
func TestRegisteredInTime(t *testing.T) {
	testjob.Simulated(t)
	var total [3]int
	defer func() {
		if total[0] == 0 || total[1] == 0 || total[2] == 0 {
			t.Errorf("%d operations done, %d refused, %d long messages", total[0], total[1], total[2])
		}
	}()
	for seed := range uint64(*sim.Seeds+3) / 4 {
		once := func() uint64 {
			type span struct{ from, to int } // to 0: still
			var spans []span
			// Ranks run ahead of the job's time, so what comes first is what is done first.
			clock := 0
			tick := func() int { clock++; return clock }
			var at segment.NLA
			over := false
			var done, refused, sent, adds int
			var c sim.Config
			c, _ = sim.RandomPlan(rand.New(rand.NewPCG(seed, 3)), 2)
			c.Faults.Crashes = nil
			c.Seed = seed
			j := newJob(t, 2, c)
			nodes := [2]*accessor{{ends: map[uint64]error{}}, {ends: map[uint64]error{}}}
			conduits.Run(j.Endpoints(), func(i int) {
				e, r := j.Endpoint(i), nodes[i]
				rnd := rand.New(rand.NewPCG(seed, uint64(i)))
				if err := e.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: r}); err != nil {
					t.Error(err)
					return
				}
				pause := func(most time.Duration) {
					for until := e.Now() + time.Duration(rnd.Int64N(int64(most))); e.Now() < until && e.Err() == nil; {
						e.Poll()
					}
				}
				if i == 1 {
					u, err := e.ATU()
					if err != nil {
						t.Error(err)
						return
					}
					mem, err := e.MapMemory(1 << 16)
					if err != nil {
						t.Error(err)
						return
					}
					counted := uint64(0)
					for !over && e.Err() == nil {
						reg, err := u.Register(mem, segment.RightsAll, 0)
						if err != nil {
							t.Error(err)
							return
						}
						a, _ := reg.At(0)
						spans = append(spans, span{from: tick()})
						at = a
						pause(20 * time.Microsecond)
						if err := u.Deregister(reg); err != nil {
							t.Error(err)
						}
						spans[len(spans)-1].to = tick()
						counted += uint64(mem[0]) | uint64(mem[1])<<8
						clear(mem)
						pause(5 * time.Microsecond)
						if bytes.Count(mem, []byte{0}) != len(mem) {
							t.Errorf("seed %d: memory has changed after it was withdrawn", seed)
						}
					}
					if err := e.UnmapMemory(mem); err != nil {
						t.Error(err)
					}
					if counted != uint64(adds) && e.Err() == nil {
						t.Errorf("seed %d: %d additions, %d counted", seed, adds, counted)
					}
					return
				}
				src := bytes.Repeat([]byte{9}, 200)
				for cookie := uint64(1); cookie <= 60 && e.Err() == nil; cookie++ {
					if at == 0 {
						pause(time.Microsecond)
						continue
					}
					to, n, begun, k := at, len(spans)-1, tick(), rnd.IntN(4)
					var ev conduits.Event
					var err error
					switch k {
					case 0:
						ev, err = post.Put(e, 1, to+64, src, conduits.RemoteDone, cookie)
					case 1:
						ev, err = post.Get(e, make([]byte, 200), 1, to+64, conduits.RemoteDone, cookie)
					case 2:
						_, ev, err = post.Atomic(e, 1, to, conduits.AtomicAdd, conduits.Uint64, 1, 0, cookie)
					case 3:
						s, _, st := e.ReservePut(1, conduits.Request, 0, to+8192, src, 0)
						if st != conduits.Ready {
							pause(time.Microsecond)
							continue
						}
						e.Commit(1, conduits.Request, s, 1, 0)
						sent++
						continue
					}
					if ev != 0 || err != nil && e.Err() == nil {
						t.Errorf("seed %d: an operation ended at once: %v, %v", seed, ev, err)
					}
					for waited := 0; e.Err() == nil; waited++ {
						if _, ok := r.ends[cookie]; ok {
							break
						}
						e.Poll()
					}
					err = r.ends[cookie]
					if e.Err() != nil {
						return
					}
					s := spans[n]
					all, none := s.to == 0, s.to != 0 && s.to < begun
					switch {
					case err == nil:
						done++
						if k == 2 {
							adds++
						}
					case errors.Is(err, segment.ErrFault):
						refused++
					}
					var f *segment.FaultError
					if err != nil && (!errors.As(err, &f) || f.Addr != to && f.Addr != to+64) || all && err != nil || none && err == nil {
						t.Errorf("seed %d: operation %d on what was there from %d to %d: %v", seed, begun, s.from, s.to, err)
					}
				}
				// No rank is told of a message that is refused.
				var s conduits.Stats
				for until := e.Now() + 5*time.Millisecond; e.Now() < until && e.Err() == nil && nodes[1].long+int(s.Faults) < sent; {
					e.Poll()
					j.Endpoint(1).Stats(&s)
				}
				over = true
			})
			total[0], total[1], total[2] = total[0]+done, total[1]+refused, total[2]+nodes[1].long
			var s conduits.Stats
			j.Endpoint(1).Stats(&s)
			if j.Endpoint(0).Err() == nil && nodes[1].long+int(s.Faults) != sent {
				t.Errorf("seed %d: %d long messages, %d came, %d were refused", seed, sent, nodes[1].long, s.Faults)
			}
			for i := range 2 {
				_ = j.Endpoint(i).Close()
			}
			return j.Digest()
		}
		if d := once(); once() != d {
			t.Errorf("seed %d: another run", seed)
		}
		if t.Failed() {
			return
		}
	}
}

// TestPlaceInPage has rank 0 access memory of rank 1 that lies elsewhere in its page,
// or in two of them: that is not the program's doing, and no other run.
func TestPlaceInPage(t *testing.T) {
	once := func(off int) (uint64, string) {
		var text bytes.Buffer
		j := newJob(t, 2, sim.Config{Seed: 1, Trace: &text})
		var at, further segment.NLA
		over := false
		conduits.Run(j.Endpoints(), func(i int) {
			e, r := j.Endpoint(i), &accessor{ends: map[uint64]error{}}
			if err := e.Attach(conduits.AttachConfig{Size: 3 * segment.PageSize, Receiver: r}); err != nil {
				t.Error(err)
				return
			}
			if i == 1 {
				u, err := e.ATU()
				if err != nil {
					t.Error(err)
					return
				}
				mem, err := e.MapMemory(4 * segment.PageSize)
				if err != nil {
					t.Error(err)
					return
				}
				reg, err := u.Register(mem[off:off+200], segment.RightsAll, 0)
				if err != nil {
					t.Error(err)
					return
				}
				reg2, err := u.Register(mem[off:off+2*segment.PageSize], segment.RightsAll, 0)
				if err != nil {
					t.Error(err)
					return
				}
				at, _ = reg.At(0)
				further, _ = reg2.At(0)
				for !over {
					e.Poll()
				}
				return
			}
			for at == 0 || further == 0 {
				e.Poll()
			}
			cookie := uint64(0)
			do := func(ev conduits.Event, err error) {
				for err == nil && ev&conduits.RemoteDone == 0 {
					var ok bool
					if err, ok = r.ends[cookie]; ok {
						break
					}
					e.Poll()
				}
				if err != nil {
					t.Error(err)
				}
				cookie++
			}
			data := make([]byte, 200)
			for _, a := range []segment.NLA{at, further} {
				do(post.Put(e, 1, a, data, conduits.RemoteDone, cookie))
				do(post.Get(e, data, 1, a, conduits.RemoteDone, cookie))
				_, ev, err := post.Atomic(e, 1, a, conduits.AtomicAdd, conduits.Uint64, 1, 0, cookie)
				do(ev, err)
			}
			// Where in the segment is the program's doing.
			do(post.Put(e, 1, segment.AttachBase+3*segment.PageSize-200, data, conduits.RemoteDone, cookie))
			over = true
		})
		if err := j.Flush(); err != nil {
			t.Error(err)
		}
		return j.Digest(), text.String()
	}
	first, text := once(0)
	if strings.Count(text, " at registered memory\n") < 20 || !strings.Contains(text, " at 40002f38\n") {
		t.Errorf("the trace has not what was done:\n%s", text)
	}
	for _, off := range []int{8, 1024, segment.PageSize - 104} {
		if d, other := once(off); d != first || other != text {
			t.Errorf("at byte %d of a page: another run:\n%s\nthan at byte 0:\n%s", off, other, text)
		}
	}
}

// TestLongOverOthers has a long message wait to be delivered while its addresses are
// given to other memory: it is not delivered over that.
func TestLongOverOthers(t *testing.T) {
	j := newJob(t, 2, sim.Config{})
	const size = 2 * segment.PageSize // single pages have addresses that come again much later
	var at segment.NLA
	reused := false
	conduits.Run(j.Endpoints(), func(i int) {
		e, r := j.Endpoint(i), &accessor{ends: map[uint64]error{}}
		if err := e.Attach(conduits.AttachConfig{Receiver: r}); err != nil {
			t.Error(err)
			return
		}
		send := func() {
			s, _, st := e.ReservePut(1, conduits.Request, 0, at, bytes.Repeat([]byte{9}, 200), 0)
			if st != conduits.Ready {
				t.Error(st)
				return
			}
			e.Commit(1, conduits.Request, s, 1, 0)
		}
		if i == 0 {
			for at == 0 {
				e.Poll()
			}
			send()
			for !reused {
				e.Poll()
			}
			send()
			return
		}
		u, err := e.ATU()
		if err != nil {
			t.Error(err)
			return
		}
		mem, err := e.MapMemory(2 * size)
		if err != nil {
			t.Error(err)
			return
		}
		old, others := mem[:size], mem[size:]
		register := func(mem []byte) (segment.Registration, segment.NLA) {
			reg, err := u.Register(mem, segment.RightsAll, segment.AnyPeer)
			if err != nil {
				t.Error(err)
			}
			a, _ := reg.At(0)
			return reg, a
		}
		reg, a := register(old)
		at = a
		for old[199] == 0 {
			e.PollReplies()
		}
		for again := segment.NLA(0); again != at && !t.Failed(); {
			if err := u.Deregister(reg); err != nil {
				t.Error(err)
			}
			reg, again = register(others)
		}
		var s conduits.Stats
		for s.Faults == 0 && r.long == 0 { // the data has come ahead of the message
			e.Poll()
			e.Stats(&s)
		}
		if s.Faults != 1 || r.long > 0 || others[199] != 0 {
			t.Errorf("%d faults, %d messages delivered", s.Faults, r.long)
		}
		// What goes to the memory that has the addresses now is delivered.
		for reused = true; r.long == 0; {
			e.Poll()
		}
	})
}

// TestRegisteredNeeds: an endpoint has no ATU before Attach, makes one when it is asked for,
// serves memory that is registered then, and registers none after Close.
func TestRegisteredNeeds(t *testing.T) {
	j := newJob(t, 1, sim.Config{})
	e := j.Endpoint(0)
	if _, err := e.ATU(); !errors.Is(err, conduits.ErrNotReady) {
		t.Errorf("before Attach: %v", err)
	}
	conduits.Run(j.Endpoints(), func(int) {
		r := &accessor{ends: map[uint64]error{}}
		if err := e.Attach(conduits.AttachConfig{Receiver: r}); err != nil {
			t.Error(err)
			return
		}
		end := func(cookie uint64, err error) error {
			for err == nil {
				var ok bool
				if err, ok = r.ends[cookie]; ok {
					break
				}
				e.Poll()
			}
			return err
		}
		// Nothing is registered, and no tables are made for that.
		_, err := post.Put(e, 0, 5*segment.GATSpan, make([]byte, 8), conduits.RemoteDone, 1)
		if err = end(1, err); !errors.Is(err, segment.ErrFault) || e.MadeATU() != nil {
			t.Errorf("put to what nobody has registered: %v", err)
		}
		u, err := e.ATU()
		if err != nil {
			t.Error(err)
			return
		}
		mem := make([]byte, 64)
		reg, err := u.Register(mem, segment.RightWrite, 0)
		if err != nil {
			t.Error(err)
			return
		}
		a, _ := reg.At(0)
		if _, err = post.Put(e, 0, a, []byte{1}, conduits.RemoteDone, 2); end(2, err) != nil || mem[0] != 1 {
			t.Errorf("put to its own memory: %v", r.ends[2])
		}
		if _, err = post.Get(e, make([]byte, 1), 0, a, conduits.RemoteDone, 3); !errors.Is(end(3, err), segment.ErrFault) {
			t.Errorf("get without the right to it: %v", r.ends[3])
		}
		if _, err = post.Put(e, 0, a, nil, conduits.RemoteDone, 4); end(4, err) != nil {
			t.Errorf("put of nothing: %v", r.ends[4])
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if _, err := e.ATU(); err != nil && !errors.Is(err, conduits.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		if _, err := u.Register(mem, segment.RightsAll, 0); !errors.Is(err, conduits.ErrClosed) {
			t.Errorf("registration after Close: %v", err)
		}
	})
}
