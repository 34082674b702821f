package engine_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/conduits/udp/engine"
	"github.com/argon-go/argon/segment"
)

// slotAt is the address of a slot: a place for registered memory that is given to
// one region after the other, which an ATU avoids as long as it can.
func slotAt(slot int) segment.NLA { return 5*segment.GATSpan + segment.NLA(slot)<<24 }

// slot is a slot of one rank. Times are counted in events of the whole job.
type slot struct {
	gens []*generation
	used int // bytes that puts have had, each its own
}

// generation is a region that had a slot for a while.
type generation struct {
	id       uint64
	from, to int // 0: still there
	mem      []byte
	r        segment.Registration
	after    []byte // what it held when it was withdrawn
}

// Layout of a region: a counter, words that have its number, what is put to.
const (
	genConst = 8
	genPuts  = 16384
	genSize  = 1 << 18
)

// live is the region that has the slot now.
func (s *slot) live() *generation {
	if n := len(s.gens); n > 0 && s.gens[n-1].to == 0 {
		return s.gens[n-1]
	}
	return nil
}

// access is an operation on a slot.
type access struct {
	start, end int // 0: not ended
	dst, slot  int
	off, n     int
}

// during reports whether g had the slot at any time of a, and whether at all times.
func (g *generation) during(a *access) (some, all bool) {
	some = (a.end == 0 || g.from < a.end) && (g.to == 0 || g.to > a.start)
	return some, some && g.from < a.start && (g.to == 0 || a.end != 0 && g.to > a.end)
}

// TestRegistered has ranks register, withdraw and replace memory while others
// access it, over a bad network: what was there all the time is reached, what was
// not is refused, and nothing is written to memory that has been withdrawn, or
// that has been given an address after an operation on it had ended.
func TestRegistered(t *testing.T) {
	var sum engine.Stats
	var outcomes [2]int
	for seed := range uint64(*flagSeeds) {
		const slots, ranks = 3, 3
		f := weather()
		f.DelayBy = sim.Time([]int{30, 300}[seed%2]) * sim.Microsecond
		if seed%7 == 6 {
			f = sim.Faults{}
		}
		clock, id, sent, got, atomics := 0, uint64(0), 0, 0, uint64(0)
		tick := func() int { clock++; return clock }
		var all [ranks][slots]slot
		accesses := map[uint64]*access{} // by stamp
		j := run(t, ranks, seed+1, f, func(c *engine.Config) {
			c.Datagram = []int{256, 1400, 9000}[seed/2%3]
			c.Window = []int{64, 512}[seed/3%2]
			c.Credits = []int{2, 64}[seed%2]
		}, func(n *node) {
			atu, err := segment.NewATU(segment.ATUConfig{})
			if err != nil {
				t.Error(err)
				return
			}
			n.mem.atu = atu
			n.mem.alias = func(a segment.NLA) segment.NLA {
				for s := range all[n.rank] {
					if g := all[n.rank][s].live(); g != nil && a >= slotAt(s) && a < slotAt(s)+genSize {
						at, _ := g.r.At(uint64(a - slotAt(s)))
						return at
					}
				}
				return segment.PageSize
			}
			withdraw := func(s *slot) {
				g := s.live()
				if err := atu.Deregister(g.r); err != nil {
					t.Error(err)
				}
				g.to, g.after = tick(), bytes.Clone(g.mem)
			}
			n.message = func(m *engine.Message) {
				got++
				stamp := uint64(m.Words[0])
				a := accesses[stamp]
				a.end = tick()
				for _, g := range all[a.dst][a.slot].gens {
					if _, through := g.during(a); through && !stamped(m.Payload, stamp) {
						t.Errorf("seed %d: message %d came without its data", seed, stamp)
					}
				}
			}
			type op struct {
				a     *access
				ended func(error)
			}
			open := map[uint64]op{}
			n.done = func(c engine.Completion) {
				if c.Event == conduits.SourceDone { // of a message
					return
				}
				o, ok := open[c.Cookie]
				if !ok {
					t.Errorf("seed %d: completion %+v", seed, c)
					return
				}
				delete(open, c.Cookie)
				a := o.a
				a.end = tick()
				var fault *segment.FaultError
				if c.Err != nil && (!errors.As(c.Err, &fault) || !errors.Is(c.Err, segment.ErrFault) || fault.Addr != slotAt(a.slot)+segment.NLA(a.off) || fault.Len != uint64(a.n)) {
					t.Errorf("seed %d: %v", seed, c.Err)
				}
				some := false
				for _, g := range all[a.dst][a.slot].gens {
					x, through := g.during(a)
					some = some || x
					if through && c.Err != nil {
						t.Errorf("seed %d: refused, though it is registered: %v", seed, c.Err)
					}
				}
				if !some && c.Err == nil {
					t.Errorf("seed %d: access to what was never registered: %+v", seed, a)
				}
				if c.Err == nil {
					outcomes[0]++
				} else {
					outcomes[1]++
				}
				o.ended(c.Err)
			}
			for range 60 {
				dst, k := n.rnd.IntN(ranks), n.rnd.IntN(slots)
				s := &all[dst][k]
				id++
				stamp := id
				a := &access{dst: dst, slot: k}
				at := func(off, l int) segment.NLA {
					a.off, a.n = off, l
					a.start = tick()
					accesses[stamp] = a
					return slotAt(k) + segment.NLA(off)
				}
				place := func(l int) (segment.NLA, bool) {
					if genPuts+s.used+l > genSize {
						return 0, false
					}
					s.used += l
					return at(genPuts+s.used-l, l), true
				}
				switch n.rnd.IntN(7) {
				case 0, 1: // its own memory
					s := &all[n.rank][k]
					was := s.live() != nil
					if was {
						withdraw(s)
					}
					if !was || n.rnd.IntN(2) == 0 {
						g := &generation{id: stamp, mem: make([]byte, genSize)}
						for i := genConst; i < genPuts; i += 8 {
							binary.NativeEndian.PutUint64(g.mem[i:], g.id)
						}
						if g.r, err = atu.Register(g.mem, segment.RightsAll, segment.AnyPeer); err != nil {
							t.Error(err)
							return
						}
						g.from = tick()
						s.gens = append(s.gens, g)
					}
				case 2, 3:
					l := 8 * (1 + n.rnd.IntN(1500/(1+99*n.rnd.IntN(2))))
					to, ok := place(l)
					if !ok {
						continue
					}
					src := make([]byte, l)
					for i := 0; i < l; i += 8 {
						binary.NativeEndian.PutUint64(src[i:], stamp)
					}
					open[stamp] = op{a, func(err error) {
						clear(src)
						for _, g := range s.gens {
							if _, through := g.during(a); through && !stamped(g.mem[a.off:a.off+l], stamp) {
								t.Errorf("seed %d: put %d of %d bytes is not there", seed, stamp, l)
							}
						}
					}}
					if _, err := n.Put(dst, to, src, conduits.RemoteDone, stamp); err != nil {
						t.Error(err)
					}
				case 4:
					l := 8 * (1 + n.rnd.IntN((genPuts-genConst)/8/(1+99*n.rnd.IntN(2))))
					dest := make([]byte, l)
					open[stamp] = op{a, func(err error) {
						for i := 0; i < l && err == nil; i += 8 {
							v := binary.NativeEndian.Uint64(dest[i:])
							if !slices.ContainsFunc(s.gens, func(g *generation) bool { x, _ := g.during(a); return x && g.id == v }) {
								t.Errorf("seed %d: get of what region %d holds", seed, v)
								return
							}
						}
					}}
					if _, err := n.Get(dest, dst, at(genConst, l), conduits.RemoteDone, stamp); err != nil {
						t.Error(err)
					}
				case 5:
					open[stamp] = op{a, func(err error) {
						if err == nil {
							atomics++
						}
					}}
					if err := n.Atomic(dst, at(0, 8), conduits.AtomicAdd, conduits.Uint64, 1, 0, stamp); err != nil {
						t.Error(err)
					}
				case 6:
					l := 8 * (1 + n.rnd.IntN(400/(1+99*n.rnd.IntN(2))))
					n.wait("credit", func() bool { return n.Reserve(dst, conduits.Request) == conduits.Ready })
					to, ok := place(l)
					if !ok {
						n.Cancel(dst, conduits.Request)
						continue
					}
					src := make([]byte, l)
					for i := 0; i < l; i += 8 {
						binary.NativeEndian.PutUint64(src[i:], stamp)
					}
					sent++
					n.SendLong(dst, conduits.Request, 1, []uint32{uint32(stamp)}, to, src, stamp)
				}
				for range n.rnd.IntN(4) {
					n.step()
				}
			}
			n.wait("completions", func() bool { return len(open) == 0 })
			n.j.check = append(n.j.check, func() error { return atu.Close() })
		})
		unheard := 0
		for _, n := range j.nodes {
			s := n.Stats()
			unheard += int(s.Unheard)
			sum.Unheard += s.Unheard
			sum.Faults += s.Faults
			sum.Twice += s.Twice
			sum.Again += s.Again
			if s.Deaths+int(s.Stale) != 0 {
				t.Errorf("seed %d: %+v", seed, s)
			}
		}
		if got+unheard != sent {
			t.Errorf("seed %d: of %d long messages %d came and %d were refused", seed, sent, got, unheard)
		}
		var counted uint64
		for r := range all {
			for k := range all[r] {
				for _, g := range all[r][k].gens {
					counted += binary.NativeEndian.Uint64(g.mem)
					if g.to != 0 && !bytes.Equal(g.mem, g.after) {
						t.Errorf("seed %d: memory that was withdrawn has changed", seed)
					}
					for i := genConst; i < genPuts; i += 8 {
						if binary.NativeEndian.Uint64(g.mem[i:]) != g.id {
							t.Fatalf("seed %d: byte %d of region %d has changed", seed, i, g.id)
						}
					}
					for i := genPuts; i < genSize; i += 8 {
						stamp := binary.NativeEndian.Uint64(g.mem[i:])
						if stamp == 0 {
							continue
						}
						a := accesses[stamp]
						if a == nil || a.dst != r || a.slot != k || i < a.off || i >= a.off+a.n {
							t.Fatalf("seed %d: byte %d of region %d is of operation %d: %+v", seed, i, g.id, stamp, a)
						}
						if some, _ := g.during(a); !some {
							t.Fatalf("seed %d: operation %d, %+v, wrote to region %d, of %d to %d", seed, stamp, a, g.id, g.from, g.to)
						}
					}
				}
			}
		}
		if counted != atomics {
			t.Errorf("seed %d: %d additions that ended well, counters of %d", seed, atomics, counted)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d done, %d refused, %+v", outcomes[0], outcomes[1], sum)
	if outcomes[0] == 0 || outcomes[1] == 0 || sum.Unheard == 0 || sum.Twice == 0 || sum.Again == 0 {
		t.Errorf("something never happened: %d done, %d refused, %+v", outcomes[0], outcomes[1], sum)
	}
}

// stamped reports whether b is nothing but stamps.
func stamped(b []byte, stamp uint64) bool {
	for i := 0; i < len(b); i += 8 {
		if binary.NativeEndian.Uint64(b[i:]) != stamp {
			return false
		}
	}
	return true
}

// grant makes a pair of engines, the second of which has registered n bytes.
func grant(t *testing.T, n int, rights segment.Rights, adjust func(c *engine.Config)) (a, b *engine.Engine, atu *segment.ATU, mem []byte, r segment.Registration, at segment.NLA) {
	t.Helper()
	atu, err := segment.NewATU(segment.ATUConfig{})
	if err != nil {
		t.Fatal(err)
	}
	a, b, m := pair(t, adjust)
	m.atu = atu
	mem = make([]byte, n)
	if r, err = atu.Register(mem, rights, segment.AnyPeer); err != nil {
		t.Fatal(err)
	}
	at, _ = r.At(0)
	return a, b, atu, mem, r, at
}

// take moves all datagrams of e there are to be sent now into memory of their own.
func take(now time.Duration, e *engine.Engine) (l [][]byte) {
	buf := make([]byte, 65507)
	for {
		_, n, ok := e.Next(now, buf)
		if !ok {
			return l
		}
		l = append(l, bytes.Clone(buf[:n]))
	}
}

// give has e receive datagrams of rank src, each as it was sent.
func give(now time.Duration, e *engine.Engine, src int, l [][]byte) {
	for _, d := range l {
		e.Receive(now, src, bytes.Clone(d))
	}
	e.Advance(now)
}

// ends are the completions there are, by cookie.
func ends(t *testing.T, e *engine.Engine) map[uint64]error {
	t.Helper()
	l := map[uint64]error{}
	for c, ok := e.NextCompletion(); ok; c, ok = e.NextCompletion() {
		if _, twice := l[c.Cookie]; twice {
			t.Errorf("operation %d ended twice", c.Cookie)
		}
		l[c.Cookie] = c.Err
	}
	return l
}

// TestWithdrawnAmid withdraws memory when a part of a put has come: nothing more is
// written, whatever comes again, also when other memory has the address; the put
// ends with an error, and soon, since its initiator is told at once.
func TestWithdrawnAmid(t *testing.T) {
	for lost := range 5 {
		a, b, atu, mem, r, to := grant(t, 12000, segment.RightWrite, nil)
		src := bytes.Repeat([]byte{1}, len(mem))
		if _, err := a.Put(1, to, src, conduits.SourceDone|conduits.RemoteDone, 7); err != nil {
			t.Fatal(err)
		}
		now := time.Microsecond
		puts := take(now, a)
		if len(puts) < 9 {
			t.Fatalf("%d datagrams", len(puts))
		}
		give(now, b, 0, puts[:7])
		if bytes.Count(mem, []byte{1}) < 8000 {
			t.Fatal("nothing has been written")
		}
		if err := atu.Deregister(r); err != nil {
			t.Fatal(err)
		}
		after := bytes.Clone(mem)
		give(now, b, 0, puts) // the rest, and the beginning again
		for range lost {      // what tells of it; nothing else has said that the put is over
			take(now, b)
			now += 3 * time.Millisecond
			b.Advance(now)
			a.Advance(now)
			give(now, b, 0, take(now, a))
		}
		give(now, a, 1, take(now, b))
		if l := ends(t, a); len(l) != 0 {
			t.Fatalf("%d answers lost: ended with %v, and the datagrams have not been acknowledged", lost, l)
		}
		give(now, b, 0, take(now, a)) // knows of it
		give(now, a, 1, take(now, b)) // hears that all has come
		var f *segment.FaultError
		if l := ends(t, a); len(l) != 1 || !errors.As(l[7], &f) || f.Addr != to || f.Len != uint64(len(src)) || f.VPID != 0 || f.Need != segment.RightWrite || f.Page.GAT() != to.GAT() {
			t.Fatalf("%d answers lost: completions %v", lost, l)
		}
		if !strings.Contains(f.Error(), "nothing is mapped") {
			t.Errorf("%v", f)
		}
		// Other memory gets the address, and old datagrams come.
		other := make([]byte, len(mem))
		s, err := atu.Register(other, segment.RightsAll, segment.AnyPeer)
		if err != nil {
			t.Fatal(err)
		}
		b.Config().Memory.(*memory).alias = func(x segment.NLA) segment.NLA {
			n, _ := s.At(uint64(x - to))
			return n
		}
		give(now, b, 0, puts)
		if !bytes.Equal(mem, after) {
			t.Error("withdrawn memory has changed")
		}
		if !bytes.Equal(other, make([]byte, len(other))) {
			t.Error("what came again was written to other memory")
		}
		if _, err := a.Put(1, to, src, conduits.RemoteDone, 8); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			now += time.Millisecond
			carry(now, a, b)
		}
		if l := ends(t, a); len(l) != 1 || l[8] != nil || !bytes.Equal(other, src) {
			t.Errorf("a new put: %v", l)
		}
		if err := atu.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSmallPutsRefused has puts share a datagram, of which one is refused.
func TestSmallPutsRefused(t *testing.T) {
	a, b, _, mem, _, to := grant(t, 4096, segment.RightWrite, nil)
	a.Time(1)
	for i := range uint64(10) {
		want := conduits.RemoteDone
		if i%4 == 3 {
			want = conduits.SourceDone // no caller waits for them
		}
		at := to + segment.NLA(8*i)
		if i == 5 || i == 7 {
			at = to + 4096
		}
		if _, err := a.Put(1, at, []byte{1, byte(i)}, want, i); err != nil {
			t.Fatal(err)
		}
	}
	if l := take(1, a); len(l) != 1 {
		t.Fatalf("%d datagrams", len(l))
	} else {
		give(1, b, 0, l)
	}
	carry(2, a, b)
	l := ends(t, a)
	for i := range uint64(10) {
		err, ok := l[i]
		if ok != (i%4 != 3) || errors.Is(err, segment.ErrFault) != (i == 5) || err != nil && i != 5 {
			t.Errorf("put %d: %v, %v", i, ok, err)
		}
		if i != 5 && i != 7 && mem[8*i+1] != byte(i) {
			t.Errorf("put %d is not there", i)
		}
	}
	if s := a.Stats(); s.Faults != 2 || s.Unheard != 1 {
		t.Errorf("%+v", s)
	}
}

// TestGetWithdrawn withdraws memory when a part of what a get asked for is under
// way: that may come again, as it was; the rest is refused, once.
func TestGetWithdrawn(t *testing.T) {
	a, b, atu, mem, r, from := grant(t, 1<<17, segment.RightRead, nil)
	for i := range mem {
		mem[i] = 5
	}
	dst := make([]byte, len(mem))
	if _, err := a.Get(dst, 1, from, conduits.RemoteDone, 3); err != nil {
		t.Fatal(err)
	}
	now := time.Microsecond
	give(now, b, 0, take(now, a))
	first := take(now, b)
	if err := atu.Deregister(r); err != nil {
		t.Fatal(err)
	}
	clear(mem)
	if len(first) < 8 || len(first) > 64 {
		t.Fatalf("%d datagrams", len(first))
	}
	give(now, a, 1, first[1:]) // one is lost
	for range 6 {
		now += 3 * time.Millisecond
		carry(now, a, b)
	}
	if l := ends(t, a); len(l) != 1 || !errors.Is(l[3], segment.ErrFault) {
		t.Errorf("completions %v", l)
	}
	for i, v := range dst {
		if v != 5 && v != 0 {
			t.Fatalf("byte %d is %d", i, v)
		}
	}
	if n := bytes.Count(dst, []byte{5}); n < 1000*(len(first)-1) {
		t.Errorf("%d bytes have come", n)
	}
	if s := b.Stats(); s.Refused != 1 {
		t.Errorf("%+v", s)
	}
	if !a.Drained() || !b.Drained() {
		t.Error("something is under way still")
	}
}

// TestLongWithdrawn withdraws the memory of long messages: of one of which a part
// has come, and of one that waits to be taken. Neither is delivered, also if other
// memory has been given its addresses, and the credit comes back.
func TestLongWithdrawn(t *testing.T) {
	for k := range 4 {
		whole, reused := k&1 != 0, k&2 != 0
		a, b, atu, mem, r, to := grant(t, 12000, segment.RightWrite, func(c *engine.Config) { c.Credits = 1 })
		if a.Reserve(1, conduits.Request) != conduits.Ready {
			t.Fatal("no credit")
		}
		a.SendLong(1, conduits.Request, 1, nil, to, bytes.Repeat([]byte{1}, len(mem)), 9)
		now := time.Microsecond
		puts := take(now, a)
		if !whole {
			give(now, b, 0, puts[:5])
		} else {
			give(now, b, 0, puts)
		}
		if err := atu.Deregister(r); err != nil {
			t.Fatal(err)
		}
		for i := 0; reused; i++ {
			if i > 10_000 {
				t.Fatal("the addresses are not given out again")
			}
			other, err := atu.Register(make([]byte, len(mem)), segment.RightWrite, segment.AnyPeer)
			if err != nil {
				t.Fatal(err)
			}
			if at, _ := other.At(0); at == to {
				break
			}
			if err := atu.Deregister(other); err != nil {
				t.Fatal(err)
			}
		}
		after := bytes.Clone(mem)
		give(now, b, 0, puts)
		if m := b.NextMessage(conduits.Request); m != nil {
			t.Errorf("whole %v, reused %v: message of %d bytes", whole, reused, len(m.Payload))
		}
		for range 4 {
			now += time.Millisecond
			carry(now, a, b)
		}
		if l := ends(t, a); len(l) != 1 || l[9] != nil {
			t.Errorf("whole %v, reused %v: completions %v", whole, reused, l)
		}
		if a.Reserve(1, conduits.Request) != conduits.Ready {
			t.Errorf("whole %v, reused %v: the credit is lost", whole, reused)
		}
		if s := b.Stats(); s.Unheard != 1 || s.Faults != 0 {
			t.Errorf("whole %v, reused %v: %+v", whole, reused, s)
		}
		if !bytes.Equal(mem, after) {
			t.Error("withdrawn memory has changed")
		}
	}
}

// TestRefusedThenGone: a put that was refused stays so when its target has left or
// has died since, where others end well, or with its death.
func TestRefusedThenGone(t *testing.T) {
	for _, left := range []bool{false, true} {
		a, b, _, _, _, to := grant(t, 4096, segment.RightRead, nil)
		_, _ = a.Put(1, to, make([]byte, 8), conduits.RemoteDone, 1)
		_, _ = a.Put(1, to, make([]byte, 1000), conduits.RemoteDone, 2)
		give(1, b, 0, take(1, a))
		_, _ = a.Put(1, at(0), make([]byte, 8), conduits.RemoteDone, 3) // of the segment
		give(1, a, 1, take(1, b))
		if left {
			a.Part(1)
		} else {
			for !a.Dead(1) {
				d, _ := a.Deadline()
				a.Advance(d)
			}
		}
		l := ends(t, a)
		if len(l) != 3 || !errors.Is(l[1], segment.ErrFault) || !errors.Is(l[2], segment.ErrFault) || errors.Is(l[3], conduits.ErrPeer) == left {
			t.Errorf("left %v: %v", left, l)
		}
	}
}

// TestRefusalsCounted: a put that is refused counts once, in however many fragments
// it goes.
func TestRefusalsCounted(t *testing.T) {
	a, b, _, _, _, to := grant(t, 1<<16, segment.RightRead, nil)
	if _, err := a.Put(1, to, make([]byte, 1<<16), conduits.RemoteDone, 1); err != nil {
		t.Fatal(err)
	}
	now := time.Microsecond
	for range 6 {
		carry(now, a, b)
		now += 3 * time.Millisecond
	}
	if l := ends(t, a); len(l) != 1 || !errors.Is(l[1], segment.ErrFault) {
		t.Errorf("completions %v", l)
	}
	if s := b.Stats(); s.Refused < 2 {
		t.Fatalf("%d fragments were refused", s.Refused)
	}
	if s := a.Stats(); s.Faults != 1 || s.Unheard != 0 {
		t.Errorf("%+v", s)
	}
}
