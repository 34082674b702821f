package shm

import (
	"flag"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
)

// rounds is how often the wake-up tests sleep and wake; a lost wake-up is a hang.
var rounds = flag.Int("rounds", 0, "rounds of each wake-up test; 0 means 20000, and 2000 with -short")

func wakeRounds() int {
	switch {
	case *rounds > 0:
		return *rounds
	case testing.Short():
		return 2000
	}
	return 20000
}

// delay takes a moment that differs from call to call, so that the steps of one
// rank meet those of another in every order.
func delay(r *rand.Rand) {
	switch r.IntN(4) {
	case 0:
	case 1:
		runtime.Gosched()
	default:
		for range r.IntN(200) {
			spinSink.Add(1)
		}
	}
}

var spinSink atomic.Uint64

// nap is a wait that goes to sleep at once, with delays between all its steps:
// conduits.Wait without its spinning.
func nap(e *Endpoint, r *rand.Rand, cond func() bool) error {
	for !cond() {
		delay(r)
		t := e.Arm(why("nap"))
		delay(r)
		if cond() {
			e.Disarm(t)
			return nil
		}
		if e.Poll() > 0 {
			e.Disarm(t)
			continue
		}
		if err := e.Err(); err != nil {
			e.Disarm(t)
			return err
		}
		delay(r)
		e.Park(t)
	}
	return nil
}

func delays(i int) *rand.Rand { return rand.New(rand.NewPCG(uint64(i), 1)) }

// TestWakeByMessage bounces a message between two ranks that sleep at once.
func TestWakeByMessage(t *testing.T) {
	eachForm(t, func(t *testing.T, fm form) {
		eps := fm.open(t, 2, conduits.Config{})
		var got [2]atomic.Int64
		attach(t, eps, 0, func(rank int, m *conduits.Message) { got[rank].Add(1) })
		n := wakeRounds()
		inParallel(t, 2, func(me int) error {
			e, r := eps[me], delays(me)
			for i := range n {
				if i%2 == me {
					delay(r)
					s, st := e.Reserve(1-me, conduits.Request, 1, 0)
					if st != conduits.Ready {
						t.Errorf("round %d: %v", i, st)
					}
					delay(r)
					e.Commit(1-me, conduits.Request, s, 1, 0)
				} else if err := nap(e, r, func() bool { return got[me].Load() == int64((i+1+me)/2) }); err != nil {
					return err
				}
			}
			return nil
		})
		var s conduits.Stats
		if eps[0].Stats(&s); s.Parks == 0 {
			t.Error("nobody slept")
		}
	})
}

// TestWakeByCredit lets senders sleep for credit of a small ring, in both
// classes and with payloads, while the receiver sleeps for messages.
func TestWakeByCredit(t *testing.T) {
	eachForm(t, func(t *testing.T, fm form) {
		for _, payload := range []int{0, 400} {
			eps := fm.open(t, 2, conduits.Config{Credits: 4, MaxMedium: 512})
			var got atomic.Int64
			attach(t, eps, 0, func(rank int, m *conduits.Message) { got.Add(1) })
			n := int64(wakeRounds())
			inParallel(t, 2, func(me int) error {
				e, r := eps[me], delays(me)
				if me == 1 {
					return nap(e, r, func() bool { return got.Load() == n })
				}
				for i := range n {
					c := conduits.Class(i % 2)
					if err := nap(e, r, func() bool {
						s, st := e.Reserve(1, c, 1, payload)
						if st == conduits.Ready {
							e.Commit(1, c, s, 1, payload)
						}
						return st == conduits.Ready
					}); err != nil {
						return err
					}
				}
				return nil
			})
		}
	})
}

// TestWakeByDirectAccess lets a rank sleep for a word of its segment, which the
// other one stores and then calls Wake.
func TestWakeByDirectAccess(t *testing.T) {
	eachForm(t, func(t *testing.T, fm form) {
		eps := fm.open(t, 2, conduits.Config{})
		attach(t, eps, page, func(int, *conduits.Message) {})
		n := wakeRounds()
		word := func(rank int) *atomic.Uint64 { return segmentWord(eps[rank], rank) }
		inParallel(t, 2, func(me int) error {
			e, r := eps[me], delays(me)
			for i := 1; i <= n; i++ {
				if i%2 == me {
					delay(r)
					word(1 - me).Store(uint64(i))
					delay(r)
					e.Wake(1 - me)
				} else if err := nap(e, r, func() bool { return word(me).Load() == uint64(i) }); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// TestWakeSiblings has several goroutines of one rank sleep for what any of
// them may be the one to run.
func TestWakeSiblings(t *testing.T) {
	const each = 3
	eachForm(t, func(t *testing.T, fm form) {
		eps := fm.open(t, 2, conduits.Config{})
		var got [2][each]atomic.Int64
		attach(t, eps, 0, func(rank int, m *conduits.Message) { got[rank][m.Words[0]].Add(1) })
		n := wakeRounds() / each
		inParallel(t, 2*each, func(g int) error {
			me, k := g%2, g/2
			e, r := eps[me], delays(g)
			for i := range n {
				if i%2 == me {
					delay(r)
					if err := conduits.Wait(e, nil, func() bool { return send(e, 1-me, conduits.Request, uint32(k)) }); err != nil {
						return err
					}
				} else if err := nap(e, r, func() bool { return got[me][k].Load() == int64((i+1+me)/2) }); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// TestWakeFromAnyRing has more peers than one poll looks at, each of which sends
// one message a round.
func TestWakeFromAnyRing(t *testing.T) {
	const n = 24
	eachForm(t, func(t *testing.T, fm form) {
		eps := fm.open(t, n, conduits.Config{Credits: 4, MaxMedium: 512})
		var got [n]atomic.Int64
		attach(t, eps, 0, func(rank int, m *conduits.Message) { got[rank].Add(1) })
		rounds := wakeRounds() / 100
		inParallel(t, n, func(me int) error {
			e, r := eps[me], delays(me)
			for i := range rounds {
				if me != 0 {
					if !send(e, 0, conduits.Request, 1) {
						t.Error("no room")
					}
					if err := nap(e, r, func() bool { return got[me].Load() == int64(i+1) }); err != nil {
						return err
					}
					continue
				}
				if err := nap(e, r, func() bool { return got[0].Load() == int64((i+1)*(n-1)) }); err != nil {
					return err
				}
				for dst := 1; dst < n; dst++ {
					if !send(e, dst, conduits.Reply, 1) {
						t.Error("no room")
					}
				}
			}
			return nil
		})
	})
}

// TestNoSleepOverPending: a message that came before Arm, into a ring that the
// poll after Arm did not look at, keeps Park from sleeping.
func TestNoSleepOverPending(t *testing.T) {
	const n = 24
	eachForm(t, func(t *testing.T, fm form) {
		eps := fm.open(t, n, conduits.Config{})
		var got atomic.Int64
		attach(t, eps, 0, func(int, *conduits.Message) { got.Add(1) })
		e := eps[0]
		for _, p := range eps[1:] {
			send(p, 0, conduits.Request)
		}
		for got.Load() < n-1 {
			e.Poll()
		}
		for src := 1; src < n; src++ {
			send(eps[src], 0, conduits.Request)
			tk := e.Arm(nil)
			if e.Poll() > 0 {
				e.Disarm(tk)
			} else {
				parkAwake(t, e, tk)
				for got.Load() < int64(n-1+src) {
					e.Poll()
				}
			}
		}
	})
}

// parkAwake parks and fails the test if that sleeps.
func parkAwake(t *testing.T, e *Endpoint, tk conduits.Ticket) {
	t.Helper()
	before := e.parks.Load()
	done := make(chan bool)
	go func() { e.Park(tk); close(done) }()
	for {
		select {
		case <-done:
			return
		default:
		}
		if e.parks.Load() != before {
			e.j.rouse(e.rank, 0)
			<-done
			t.Fatal("Park sleeps")
		}
		runtime.Gosched()
	}
}

// unwatched keeps the watchers of endpoints from waking them, until what it returns is called.
func unwatched(eps []*Endpoint) func() {
	var held []*sync.Mutex
	for _, e := range eps {
		if mu := &e.j.watch.mu; !slices.Contains(held, mu) {
			mu.Lock()
			held = append(held, mu)
		}
	}
	return func() {
		for _, mu := range held {
			mu.Unlock()
		}
	}
}

// TestNoSleepWhileSiblingPolls: while another goroutine polls, the poll after
// Arm did nothing, so Park must not sleep on its word; but if that goroutine
// itself sleeps in a handler, it may, and is woken when the handler is over.
func TestNoSleepWhileSiblingPolls(t *testing.T) {
	eachForm(t, func(t *testing.T, fm form) {
		eps := fm.open(t, 2, conduits.Config{})
		inside, leave := make(chan bool), make(chan bool)
		nested := false
		attach(t, eps, 0, func(rank int, m *conduits.Message) {
			inside <- true
			if nested {
				tk := eps[0].Arm(why("handler"))
				eps[0].Park(tk)
			}
			<-leave
		})
		defer unwatched(eps)()
		e := eps[0]
		poll := func() chan bool {
			send(eps[1], 0, conduits.Request)
			done := make(chan bool)
			go func() {
				for e.Poll() == 0 {
					runtime.Gosched()
				}
				close(done)
			}()
			<-inside
			return done
		}
		done := poll()
		tk := e.Arm(nil)
		if n := e.Poll(); n != 0 {
			t.Fatalf("two goroutines polled at once: %d", n)
		}
		parkAwake(t, e, tk)
		leave <- true
		<-done

		nested = true
		done = poll()
		for e.nested.Load() == 0 {
			runtime.Gosched()
		}
		tk = e.Arm(nil)
		before := e.parks.Load()
		slept := make(chan bool)
		go func() { e.Park(tk); close(slept) }()
		for e.parks.Load() == before {
			runtime.Gosched()
		}
		e.j.rouse(0, 0) // the handler sleeps too
		leave <- true
		<-done
		<-slept
	})
}

// TestPollerWakesSiblings: the poller wakes goroutines that may wait for what a
// handler did, though the message's sender saw none parked.
func TestPollerWakesSiblings(t *testing.T) {
	eachForm(t, func(t *testing.T, fm form) {
		for name, poll := range map[string]func(e *Endpoint) int{"poll": (*Endpoint).Poll, "spin": (*Endpoint).Spin} {
			eps := fm.open(t, 2, conduits.Config{})
			attach(t, eps, 0, func(int, *conduits.Message) {})
			for c := range conduits.Class(conduits.NumClasses) {
				send(eps[1], 0, c)
				tk := eps[0].Arm(nil)
				ran := make(chan int)
				go func() { ran <- poll(eps[0]) }()
				if n := <-ran; n != 1 {
					t.Fatalf("%s: %d messages", name, n)
				}
				if atomic.LoadUint32(eps[0].j.c32(0, ctlSeq)) == tk.Seq {
					t.Fatalf("%s: the sibling was not woken after a %v", name, c)
				}
				eps[0].Park(tk)
			}
		}
	})
}

// TestArmed: what happens between Arm and Park makes Park return at once.
func TestArmed(t *testing.T) {
	eachForm(t, func(t *testing.T, fm form) {
		for name, event := range map[string]func(eps []*Endpoint){
			"message": func(eps []*Endpoint) { send(eps[1], 0, conduits.Request) },
			"reply":   func(eps []*Endpoint) { send(eps[1], 0, conduits.Reply) },
			"cancel": func(eps []*Endpoint) {
				s, _ := eps[1].Reserve(0, conduits.Request, 0, 0)
				eps[1].Cancel(0, conduits.Request, s)
			},
			"to itself": func(eps []*Endpoint) { send(eps[0], 0, conduits.Request) },
			"wake":      func(eps []*Endpoint) { eps[1].Wake(0) },
			"own wake":  func(eps []*Endpoint) { eps[0].Wake(0) },
			"fail":      func(eps []*Endpoint) { eps[1].Fail(conduits.ErrClosed) },
			"close":     func(eps []*Endpoint) { eps[1].Close() },
		} {
			t.Run(name, func(t *testing.T) {
				eps := fm.open(t, 2, conduits.Config{})
				attach(t, eps, 0, func(int, *conduits.Message) {})
				e := eps[0]
				seq := atomic.LoadUint32(e.j.c32(0, ctlSeq))
				tk, other := e.Arm(why("one")), e.Arm(why("two"))
				if l := e.Waiting(); len(l) != 2 {
					t.Fatalf("waiting for %v", l)
				}
				event(eps)
				if atomic.LoadUint32(e.j.c32(0, ctlSeq)) == seq {
					t.Fatal("nobody was woken")
				}
				e.Park(tk)
				e.Park(other)
				if atomic.LoadUint32(e.parked) != 0 || len(e.Waiting()) != 0 {
					t.Fatalf("left behind: %s", e.state())
				}
			})
		}
	})
}

// TestDisarmKeepsSiblings: taking one announcement back leaves the others.
func TestDisarmKeepsSiblings(t *testing.T) {
	eps := forms[1].open(t, 2, conduits.Config{})
	attach(t, eps, 0, func(int, *conduits.Message) {})
	defer unwatched(eps)()
	e := eps[0]
	one, two := e.Arm(why("one")), e.Arm(why("two"))
	e.Disarm(one)
	if atomic.LoadUint32(e.parked) == 0 || len(e.Waiting()) != 1 || e.Waiting()[0].Blocked() != "two" {
		t.Fatal(e.state())
	}
	send(eps[1], 0, conduits.Request)
	e.Park(two)
	if atomic.LoadUint32(e.parked) != 0 {
		t.Fatal(e.state())
	}
}

// TestWakeCostsNothing: senders do not call the system for a rank that is awake.
func TestWakeCostsNothing(t *testing.T) {
	eps := forms[3].open(t, 2, conduits.Config{})
	attach(t, eps, 0, func(int, *conduits.Message) {})
	defer unwatched(eps)()
	for range 10 {
		send(eps[1], 0, conduits.Request)
		eps[1].Wake(0)
	}
	tk := eps[0].Arm(nil)
	for range 10 {
		send(eps[1], 0, conduits.Request)
	}
	eps[0].Park(tk)
	var s conduits.Stats
	if eps[1].Stats(&s); s.Wakes != 1 {
		t.Errorf("%d wake-ups for one sleeper, want 1", s.Wakes)
	}
}
