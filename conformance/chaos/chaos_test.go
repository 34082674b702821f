package chaos_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conformance/chaos"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/segment"
)

// open is how a job under chaos is opened.
type open func(cfg chaos.Config) func(n int, c conduits.Config) ([]conduits.Endpoint, error)

var opens = map[string]open{
	"shm": func(cfg chaos.Config) func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		return chaos.Local(shm.Local, cfg)
	},
	"sim": func(cfg chaos.Config) func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		return chaos.Local(simLocal, cfg)
	},
	"twice": func(cfg chaos.Config) func(n int, c conduits.Config) ([]conduits.Endpoint, error) {
		return chaos.Local(chaos.Local(shm.Local, chaos.Config{}), cfg)
	},
}

func simLocal(n int, c conduits.Config) ([]conduits.Endpoint, error) {
	found, err := conduits.Lookup(sim.Name)
	if err != nil {
		return nil, err
	}
	return found.Local(n, c)
}

// node is one rank: it counts what comes, by identity.
type node struct {
	t    *testing.T
	ep   conduits.Endpoint
	mu   sync.Mutex
	reqs map[uint32]int // requests received, by source<<20 | number
	reps map[uint32]int // replies received, by number
	done map[uint64]conduits.Event
	vals map[uint64]uint64
	errs map[uint64]error
}

func newNode(t *testing.T, ep conduits.Endpoint) *node {
	return &node{
		t: t, ep: ep, reqs: map[uint32]int{}, reps: map[uint32]int{},
		done: map[uint64]conduits.Event{}, vals: map[uint64]uint64{}, errs: map[uint64]error{},
	}
}

func pattern(b []byte, seed uint32) {
	for i := range b {
		b[i] = byte(uint32(i)*7 + seed)
	}
}

func (n *node) Receive(m *conduits.Message) {
	id := m.Words[0]
	for i, w := range m.Words {
		if w != id+uint32(i) {
			n.t.Errorf("message %#x from %d: word %d is %#x", id, m.Src, i, w)
		}
	}
	if uint32(m.Tag) != id&0xffffff {
		n.t.Errorf("message %#x from %d has tag %#x", id, m.Src, m.Tag)
	}
	for i, b := range m.Payload {
		if b != byte(uint32(i)*7+id) {
			n.t.Errorf("message %#x from %d: byte %d of %d is %#x", id, m.Src, i, len(m.Payload), b)
			break
		}
	}
	for i := range m.Payload { // the receiver may
		m.Payload[i] = 0
	}
	n.mu.Lock()
	if m.Class == conduits.Reply {
		n.reps[id]++
		n.mu.Unlock()
		n.ep.Wake(n.ep.Rank())
		return
	}
	n.reqs[uint32(m.Src)<<20|id]++
	n.mu.Unlock()
	// Reply likewise: short or medium.
	p := make([]byte, len(m.Payload)%300)
	pattern(p, id)
	words := make([]uint32, len(m.Words))
	for i := range words {
		words[i] = id + uint32(i)
	}
	for {
		var st conduits.Status
		if len(p) == 0 {
			st = n.ep.Send(m.Src, conduits.Reply, m.Tag, words)
		} else {
			st = n.ep.SendPayload(m.Src, conduits.Reply, m.Tag, words, p, 0)
		}
		switch st {
		case conduits.Ready:
			return
		case conduits.Dead:
			return
		}
		if n.ep.PollReplies() == 0 && n.ep.Err() != nil {
			return
		}
		if !n.ep.Idle(1 << 20) {
			n.ep.Disarm(n.ep.Arm(nil))
		}
	}
}

func (n *node) Complete(cookie uint64, ev conduits.Event, value uint64, err error) {
	n.mu.Lock()
	if n.done[cookie]&ev != 0 || ev == 0 {
		n.t.Errorf("operation %d completed with %d after %d", cookie, ev, n.done[cookie])
	}
	n.done[cookie] |= ev
	if ev&conduits.RemoteDone != 0 {
		n.vals[cookie] = value
	}
	if err != nil {
		n.errs[cookie] = err
	}
	n.mu.Unlock()
	n.ep.Wake(n.ep.Rank())
}

// has reports whether cookie has completed with all of want.
func (n *node) has(cookie uint64, want conduits.Event) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.done[cookie]&want == want
}

// send sends request number id in one of the ways there are.
func (n *node) send(rng *rand.Rand, dst int, id uint32, at segment.NLA) error {
	words := make([]uint32, 1+rng.IntN(conduits.MaxWords))
	for i := range words {
		words[i] = id + uint32(i)
	}
	tag := conduits.Tag(id)
	p := make([]byte, 1+rng.IntN(512))
	pattern(p, id)
	way := rng.IntN(5)
	cookie := uint64(id)
	late := false
	var st conduits.Status
	try := func() bool {
		switch way {
		case 0:
			st = n.ep.Send(dst, conduits.Request, tag, words)
		case 1:
			st = n.ep.SendPayload(dst, conduits.Request, tag, words, p, 0)
		case 4:
			var s conduits.Slot
			var ev conduits.Event
			if s, ev, st = n.ep.ReservePut(dst, conduits.Request, len(words), at, p, cookie); st == conduits.Ready {
				copy(s.Words, words)
				n.ep.Commit(dst, conduits.Request, s, tag, len(p))
				late = ev&conduits.SourceDone == 0
			}
		default:
			var s conduits.Slot
			if s, st = n.ep.Reserve(dst, conduits.Request, len(words), len(p)); st == conduits.Ready {
				copy(s.Words, words)
				copy(s.Payload, p)
				if way == 3 && rng.IntN(2) == 0 {
					n.ep.Cancel(dst, conduits.Request, s)
					st = conduits.NoCredit
					return false
				}
				n.ep.Commit(dst, conduits.Request, s, tag, len(p))
			}
		}
		return st != conduits.NoCredit
	}
	if err := conduits.Wait(n.ep, nil, try); err != nil {
		return err
	}
	if st == conduits.Dead {
		return errors.Join(errors.New("dead"), n.ep.Err())
	}
	if late {
		if err := conduits.Wait(n.ep, nil, func() bool { return n.has(cookie, conduits.SourceDone) }); err != nil {
			return err
		}
	}
	for i := range p {
		p[i] = 0xee // reused at once
	}
	return nil
}

// traffic sends each requests to all ranks from goroutines, waits for all replies
// and for what the others send.
func (n *node) traffic(seed uint64, each, goroutines int) error {
	size := n.ep.Size()
	var mu sync.Mutex
	left := goroutines
	var failed error
	for g := range goroutines {
		conduits.Go(n.ep, func() {
			rng := rand.New(rand.NewPCG(seed, uint64(n.ep.Rank()<<8|g)))
			var err error
			for i := g; i < each && err == nil; i += goroutines {
				for dst := range size {
					id := uint32(i*size + dst)
					// A place for each message: nothing says when one has been read.
					at := segment.AttachBase + segment.NLA(n.ep.Rank()*each+i)*512
					if err = n.send(rng, dst, id, at); err != nil {
						break
					}
				}
			}
			mu.Lock()
			left--
			failed = errors.Join(failed, err)
			mu.Unlock()
			n.ep.Wake(n.ep.Rank())
		})
	}
	err := conduits.Wait(n.ep, nil, func() bool {
		mu.Lock()
		sent := left == 0
		mu.Unlock()
		n.mu.Lock()
		defer n.mu.Unlock()
		return sent && len(n.reps) == each*size && len(n.reqs) == each*size
	})
	mu.Lock()
	defer mu.Unlock()
	return errors.Join(err, failed)
}

// TestNothingIsLostOrRepeated: every request and its reply come once, whole, and
// all mischief has happened.
func TestNothingIsLostOrRepeated(t *testing.T) {
	const size, each = 3, 80
	for name, open := range opens {
		t.Run(name, func(t *testing.T) {
			eps, err := open(chaos.Config{})(size, conduits.Config{Seed: 3, Credits: 8})
			if err != nil {
				t.Fatal(err)
			}
			var all chaos.Counts
			var sent, received [conduits.NumClasses]uint64
			var mu sync.Mutex
			conduits.Run(eps, func(r int) {
				n := newNode(t, eps[r])
				if err := n.ep.Attach(conduits.AttachConfig{Size: 32 * segment.PageSize, Receiver: n}); err != nil {
					t.Errorf("attach: %v", err)
					return
				}
				if err := n.traffic(3, each, 2); err != nil {
					t.Errorf("rank %d: %v", r, err)
					n.ep.Fail(err)
				}
				n.mu.Lock()
				for id, k := range n.reqs {
					if k != 1 {
						t.Errorf("rank %d: request %#x came %d times", r, id, k)
					}
				}
				for id, k := range n.reps {
					if k != 1 {
						t.Errorf("rank %d: reply %#x came %d times", r, id, k)
					}
				}
				n.mu.Unlock()
				var s conduits.Stats
				n.ep.Stats(&s)
				c, ok := chaos.Done(n.ep)
				if !ok {
					t.Error("Done of an endpoint of ours")
				}
				mu.Lock()
				defer mu.Unlock()
				add(&all, c)
				for c := range sent {
					sent[c] += s.Sent[c]
					received[c] += s.Received[c]
				}
				if s.NoCredit < c.NoCredit+c.Cancelled {
					t.Errorf("rank %d: NoCredit %d of at least %d", r, s.NoCredit, c.NoCredit+c.Cancelled)
				}
			})
			want := [conduits.NumClasses]uint64{size * size * each, size * size * each}
			if sent != want || received != want {
				t.Errorf("sent %d, received %d, want %d", sent, received, want)
			}
			for _, k := range []struct {
				what string
				n    uint64
			}{
				{"delayed", all.Delayed},
				{"reordered", all.Reordered},
				{"late", all.Late},
				{"no credit", all.NoCredit},
				{"cancelled", all.Cancelled},
				{"split", all.Split},
				{"empty", all.Empty},
				{"idle", all.Idle},
				{"ops", all.Ops},
			} {
				if k.n == 0 {
					t.Errorf("nothing was %s: %+v", k.what, all)
				}
			}
			if name != "sim" && all.Deferred == 0 {
				t.Errorf("nothing was deferred: %+v", all)
			}
			for _, ep := range eps {
				if err := ep.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func add(a *chaos.Counts, b chaos.Counts) {
	a.Delayed += b.Delayed
	a.Reordered += b.Reordered
	a.Late += b.Late
	a.Deferred += b.Deferred
	a.NoCredit += b.NoCredit
	a.Cancelled += b.Cancelled
	a.Split += b.Split
	a.Empty += b.Empty
	a.Woken += b.Woken
	a.Idle += b.Idle
	a.Killed += b.Killed
	a.Ops += b.Ops
}

// TestMoving: puts, gets, words and atomics do what they say, and each completion
// is told once.
func TestMoving(t *testing.T) {
	const size, rounds = 3, 300
	for name, open := range opens {
		t.Run(name, func(t *testing.T) {
			eps, err := open(chaos.Config{Late: 0.5, Defer: 0.5, HideNeighbours: true})(size, conduits.Config{Seed: 5})
			if err != nil {
				t.Fatal(err)
			}
			conduits.Run(eps, func(r int) {
				n := newNode(t, eps[r])
				ep := n.ep
				if err := ep.Attach(conduits.AttachConfig{Size: segment.PageSize, Receiver: n}); err != nil {
					t.Errorf("attach: %v", err)
					return
				}
				if first, views := ep.Views(); first != r || len(views) != 1 || ep.System((r+1)%size, conduits.SystemWords) != nil || ep.System(r, conduits.SystemWords) == nil {
					t.Errorf("rank %d sees %d views from %d", r, len(views), first)
				}
				const both = conduits.SourceDone | conduits.RemoteDone
				rng := rand.New(rand.NewPCG(5, uint64(r)))
				var model [size][512]byte
				for i := range uint64(rounds) {
					dst := rng.IntN(size)
					base := segment.AttachBase + segment.NLA(512*r)
					off, k := rng.IntN(256), 1+rng.IntN(256)
					ev, want := conduits.Event(0), both
					var err error
					check := func() {}
					switch rng.IntN(4) {
					case 0:
						b := make([]byte, k)
						pattern(b, uint32(i))
						copy(model[dst][off:], b)
						ev, err = post.Put(ep, dst, base+segment.NLA(off), b, want, i)
					case 1:
						b := make([]byte, k)
						want = conduits.RemoteDone
						ev, err = post.Get(ep, b, dst, base+segment.NLA(off), want, i)
						check = func() {
							if string(b) != string(model[dst][off:off+k]) {
								t.Errorf("rank %d: get %d of %d bytes at %d of %d differs", r, i, k, off, dst)
							}
						}
					case 2:
						off &^= 7
						binary.LittleEndian.PutUint64(model[dst][off:], i)
						ev, err = post.PutWord(ep, dst, base+segment.NLA(off), i, 8, want, i)
					case 3:
						off &^= 7
						old := binary.LittleEndian.Uint64(model[dst][off:])
						binary.LittleEndian.PutUint64(model[dst][off:], old+i)
						want = conduits.RemoteDone
						var v uint64
						v, ev, err = post.Atomic(ep, dst, base+segment.NLA(off), conduits.AtomicAdd, conduits.Uint64, i, 0, i)
						at := ev
						check = func() {
							n.mu.Lock()
							defer n.mu.Unlock()
							if at == 0 {
								v = n.vals[i]
							}
							if v != old {
								t.Errorf("rank %d: atomic %d found %d, not %d", r, i, v, old)
							}
						}
					}
					if err != nil {
						t.Errorf("rank %d: operation %d: %v", r, i, err)
					}
					if ev&^want != 0 {
						t.Errorf("rank %d: operation %d: completions %d of %d", r, i, ev, want)
					}
					if err := conduits.Wait(ep, nil, func() bool { return n.has(i, want&^ev) }); err != nil {
						t.Errorf("rank %d: %v", r, err)
						return
					}
					n.mu.Lock()
					if n.done[i]&ev != 0 || n.errs[i] != nil {
						t.Errorf("rank %d: operation %d: told %d at once, %d later, %v", r, i, ev, n.done[i], n.errs[i])
					}
					n.mu.Unlock()
					check()
				}
				// What is wrong is an error at once, however much is deferred.
				for range 20 {
					if _, err := post.Put(ep, 0, segment.AttachBase+segment.PageSize, []byte{1}, both, 1<<40); !errors.Is(err, conduits.ErrBadArg) {
						t.Errorf("put outside: %v", err)
					}
					if _, err := post.Get(ep, make([]byte, 1), size, segment.AttachBase, both, 1<<40); !errors.Is(err, conduits.ErrBadArg) {
						t.Errorf("get of no rank: %v", err)
					}
				}
				c, _ := chaos.Done(ep)
				if c.Late == 0 || name != "sim" && c.Deferred == 0 {
					t.Errorf("rank %d: %+v", r, c)
				}
			})
			for _, ep := range eps {
				if err := ep.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestAlwaysWrong: with every probability 1 everything still gets through.
func TestAlwaysWrong(t *testing.T) {
	for name, open := range opens {
		t.Run(name, func(t *testing.T) {
			cfg := chaos.Config{Delay: 1, Late: 1, Defer: 1, NoCredit: 1, Cancel: 1, Split: 1, Empty: 1, Wake: 1, Idle: 1}
			eps, err := open(cfg)(2, conduits.Config{Seed: 9})
			if err != nil {
				t.Fatal(err)
			}
			busy(t, eps, 9, 20, 1, func(r int, c chaos.Counts) {
				if c.Woken == 0 && name == "sim" {
					t.Errorf("rank %d: %+v", r, c)
				}
			})
		})
	}
}

// busy has all ranks send to each other, see traffic, and calls then with what has been done to each.
func busy(t *testing.T, eps []conduits.Endpoint, seed uint64, each, goroutines int, then func(r int, c chaos.Counts)) {
	conduits.Run(eps, func(r int) {
		n := newNode(t, eps[r])
		if err := n.ep.Attach(conduits.AttachConfig{Size: 32 * segment.PageSize, Receiver: n}); err != nil {
			t.Errorf("attach: %v", err)
			return
		}
		if err := n.traffic(seed, each, goroutines); err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
		c, _ := chaos.Done(n.ep)
		then(r, c)
	})
}

// TestCalm: nothing is done that is turned off.
func TestCalm(t *testing.T) {
	eps, err := chaos.Local(shm.Local, chaos.Calm())(2, conduits.Config{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	busy(t, eps, 1, 20, 1, func(r int, c chaos.Counts) {
		if c.Ops == 0 {
			t.Error("no operation was counted")
		}
		if c.Ops = 0; c != (chaos.Counts{}) {
			t.Errorf("rank %d: %+v", r, c)
		}
	})
}

// TestKill: whenever a rank dies, it and the others hear of it, and no rank waits
// for ever.
func TestKill(t *testing.T) {
	for name, open := range opens {
		t.Run(name, func(t *testing.T) {
			for after := uint64(1); after < 300; after += after/3 + 1 {
				const victim = 1
				cfg := chaos.Config{Kill: []chaos.Kill{{Rank: victim, After: after}}}
				eps, err := open(cfg)(3, conduits.Config{Seed: after, Credits: 8})
				if err != nil {
					t.Fatal(err)
				}
				conduits.Run(eps, func(r int) {
					n := newNode(t, eps[r])
					err := n.ep.Attach(conduits.AttachConfig{Size: 64 * segment.PageSize, Receiver: n})
					if err == nil {
						err = n.traffic(after, 200, 2)
					}
					var pe *conduits.PeerError
					if !errors.As(err, &pe) || pe.Rank != victim || !strings.Contains(pe.Error(), fmt.Sprint("killed at operation ", after)) {
						t.Errorf("after %d: rank %d got %v", after, r, err)
					}
					if r != victim {
						return
					}
					if c, _ := chaos.Done(n.ep); c.Killed != 1 {
						t.Errorf("after %d: %+v", after, c)
					}
					if st := n.ep.Send(0, conduits.Request, 0, []uint32{0}); st != conduits.Dead {
						t.Errorf("after %d: a killed rank sends: %v", after, st)
					}
					if _, err := post.Put(n.ep, 0, segment.AttachBase, []byte{1}, 0, 0); err == nil {
						t.Errorf("after %d: a killed rank puts", after)
					}
					if n.ep.Poll() != 0 {
						t.Errorf("after %d: a killed rank runs messages", after)
					}
					n.ep.Park(n.ep.Arm(nil))
				})
				if t.Failed() {
					return
				}
			}
		})
	}
}

// TestSameSeed: on a deterministic conduit the same seed does the same, and
// another seed something else.
func TestSameSeed(t *testing.T) {
	run := func(seed uint64) (s string) {
		eps, err := chaos.Local(simLocal, chaos.Config{Seed: seed})(3, conduits.Config{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		busy(t, eps, 2, 30, 2, func(r int, c chaos.Counts) {
			s += fmt.Sprintf("%d %v %+v\n", r, eps[r].Now(), c)
		})
		return s
	}
	a, b, c := run(1), run(1), run(2)
	if a != b {
		t.Errorf("the same seed did\n%sand\n%s", a, b)
	}
	if a == c {
		t.Errorf("two seeds did\n%s", a)
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []chaos.Config{
		{Delay: 1.5},
		{NoCredit: 2},
		{Patience: -1},
		{Streak: -1},
		{Kept: -2},
		{Kill: []chaos.Kill{{Rank: 2, After: 1}}},
		{Kill: []chaos.Kill{{Rank: 0}}},
		{Kill: []chaos.Kill{{Rank: -1, After: 1}}},
	} {
		if _, err := chaos.Local(shm.Local, c)(2, conduits.Config{}); !errors.Is(err, conduits.ErrBadArg) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := chaos.Local(plain, chaos.Config{})(2, conduits.Config{}); !errors.Is(err, conduits.ErrNotSupported) {
		t.Errorf("an endpoint that is no Deliverer: %v", err)
	}
	if _, ok := chaos.Done(bare{}); ok {
		t.Error("Done of an endpoint that is none of ours")
	}
}

// bare hides all of an endpoint that is not in the contract's interface.
type bare struct{ conduits.Endpoint }

func plain(n int, c conduits.Config) ([]conduits.Endpoint, error) {
	eps, err := shm.Local(n, c)
	for i, ep := range eps {
		eps[i] = bare{ep}
	}
	return eps, err
}

// TestMisuse: what is committed twice is found out.
func TestMisuse(t *testing.T) {
	eps, err := chaos.Local(shm.Local, chaos.Calm())(1, conduits.Config{})
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t, eps[0])
	if err := n.ep.Attach(conduits.AttachConfig{Receiver: n}); err != nil {
		t.Fatal(err)
	}
	s, st := n.ep.Reserve(0, conduits.Request, 1, 8)
	if st != conduits.Ready || s.Words[0] == 0 || s.Payload[0] == 0 {
		t.Errorf("reserve: %v, %+v", st, s)
	}
	n.ep.Cancel(0, conduits.Request, s)
	defer func() {
		if recover() == nil {
			t.Error("a message was cancelled and committed")
		}
	}()
	n.ep.Commit(0, conduits.Request, s, 0, 0)
}

// TestNobodySleepsOnAMessage: a rank that parks while a message is kept comes back, also
// when another goroutine kept it.
func TestNobodySleepsOnAMessage(t *testing.T) {
	cfg := chaos.Calm()
	cfg.Delay, cfg.Patience = 1, 1<<40
	eps, err := chaos.Local(shm.Local, cfg)(1, conduits.Config{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t, eps[0])
	if err := n.ep.Attach(conduits.AttachConfig{Receiver: n}); err != nil {
		t.Fatal(err)
	}
	send := func() {
		if st := n.ep.Send(0, conduits.Request, 1, []uint32{1}); st != conduits.Ready || n.ep.Poll() != 0 {
			t.Errorf("sent with %v, and a poll ran it", st)
		}
	}
	// Kept after Arm: the poll that keeps it rouses.
	tk := n.ep.Arm(nil)
	send()
	n.ep.Park(tk)
	// Kept before: Park looks.
	n.ep.Park(n.ep.Arm(nil))
	if c, _ := chaos.Done(n.ep); c.Delayed != 1 || c.Woken != 0 {
		t.Errorf("%+v", c)
	}
}
