package conformance

import (
	"errors"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/segment"
)

// barrierChecks are those of package barrier; all are testbarrierconf's but for
// the last three.
var barrierChecks = []check{
	{name: "barrier/rules", run: barrierRules},
	{name: "barrier/random", seeded: true, run: barrierRandom},
	{name: "barrier/misuse", run: barrierMisuse},
	{name: "barrier/threads", seeded: true, run: barrierThreads}, // testbarrierconf -t
	{name: "barrier/visible", seeded: true, run: barrierVisible}, // testbarrierlate, testslice's use of it
}

// barrierCall is the arguments of one call, and whether Wait is made of tries.
type barrierCall struct {
	id    uint32
	flags barrier.Flags
	tries bool
}

// barrierPhase is what each rank notifies and waits with in one phase.
type barrierPhase struct {
	notify, wait []barrierCall
}

// verdict is what the ranks' notifications come to: a mismatch, or whether
// a rank named the barrier and how.
func (p *barrierPhase) verdict() (id uint32, named, mismatch bool) {
	for _, n := range p.notify {
		switch {
		case n.flags&barrier.Mismatch != 0:
			return 0, false, true
		case n.flags&barrier.Anonymous != 0:
		case named && n.id != id:
			return 0, false, true
		default:
			id, named = n.id, true
		}
	}
	return id, named, false
}

// fails reports whether rank's wait is to report a mismatch.
func (p *barrierPhase) fails(rank int) bool {
	id, named, mismatch := p.verdict()
	w := p.wait[rank]
	return mismatch || w.flags&barrier.Mismatch != 0 || w.flags&barrier.Anonymous == 0 && named && w.id != id
}

// do is one rank's part in the phase; late polls of its own lie between its
// notify and its wait.
func (p *barrierPhase) do(s *stack, late int) {
	n, w := p.notify[s.Rank], p.wait[s.Rank]
	s.Must(s.bar.Notify(n.id, n.flags))
	for range late {
		s.am.Poll()
	}
	var err error
	if w.tries {
		err = s.try(w.id, w.flags)
	} else {
		err = s.bar.Wait(w.id, w.flags)
	}
	id, named, mismatch := p.verdict()
	switch want := p.fails(s.Rank); {
	case want && !errors.Is(err, barrier.ErrBarrierMismatch):
		s.Fatalf("notified %+v, waited %+v: %v, want a mismatch", p.notify, w, err)
	case !want && err != nil:
		s.Fatalf("notified %+v, waited %+v: %v", p.notify, w, err)
	}
	if mismatch {
		id, named = 0, false
	}
	if gotID, gotNamed := s.bar.Result(); gotNamed != named || named && gotID != id {
		s.Fatalf("notified %+v: the result is %d, %v, want %d, %v", p.notify, gotID, gotNamed, id, named)
	}
}

// shared reports whether n ranks of the conduit have their system areas in common,
// which Flat and Tree need.
func (c *ctx) shared(n int) bool {
	c.Helper()
	var without atomic.Int32
	c.Job(n, conduits.Config{}, func(p *contract.Peer) {
		b := barrier.New()
		e, err := am.Attach(p.EP, am.Config{Runtime: b.Handlers()})
		p.Must(err)
		p.Must(b.Bind(e))
		for r := range n {
			if p.EP.System(r) == nil {
				without.Add(1)
			}
		}
		p.Must(b.Barrier(0, barrier.Anonymous))
	})
	return without.Load() == 0
}

// algorithms are the barrier's that work for n ranks of the conduit.
func (c *ctx) algorithms(n int) []barrier.Algorithm {
	c.Helper()
	if !c.shared(n) {
		return []barrier.Algorithm{barrier.Auto, barrier.Dissemination} // Auto is Levels if the conduit has several neighbourhoods
	}
	return []barrier.Algorithm{barrier.Auto, barrier.Flat, barrier.Tree, barrier.Dissemination}
}

// barrierJob runs body with each algorithm.
func barrierJob(c *ctx, n int, body func(s *stack)) {
	for _, a := range c.algorithms(n) {
		c.stack(n, conduits.Config{}, layers{bar: barrier.Config{Force: a}}, func(s *stack) {
			if got := s.bar.Algorithm(); a != barrier.Auto && got != a || got == barrier.Auto {
				s.Errorf("algorithm %v was asked for, %v is used", a, got)
			}
			body(s)
		})
		if c.Failed() {
			c.Logf("%d ranks, algorithm %v", n, a)
			return
		}
	}
}

// barrierRules: each rule of matching by itself, for a pair and for three ranks
// and more, with Wait and with Try.
func barrierRules(c *ctx) {
	const anon, mm = barrier.Anonymous, barrier.Mismatch
	all := func(n int, k barrierCall) []barrierCall {
		ks := make([]barrierCall, n)
		for i := range ks {
			ks[i] = k
		}
		return ks
	}
	but := func(ks []barrierCall, i int, k barrierCall) []barrierCall {
		ks = append([]barrierCall(nil), ks...)
		ks[i%len(ks)] = k
		return ks
	}
	for _, n := range []int{1, 2, 3, 5} {
		named, anonymous := all(n, barrierCall{id: 7}), all(n, barrierCall{id: 99, flags: anon})
		mixed := append([]barrierCall(nil), named...)
		for i := range mixed {
			if i%2 == 1 {
				mixed[i] = barrierCall{id: uint32(i), flags: anon}
			}
		}
		phases := []barrierPhase{
			{named, named},
			{anonymous, anonymous},
			// The flags of notify and wait may differ.
			{named, anonymous},
			{anonymous, named}, // no rank named it: any name will do
			{anonymous, but(named, 1, barrierCall{id: 8})},
			{mixed, mixed},
			{mixed, named},
			// The extreme ids are ids as any other.
			{all(n, barrierCall{id: 0}), all(n, barrierCall{id: 0})},
			{all(n, barrierCall{id: ^uint32(0)}), all(n, barrierCall{id: ^uint32(0)})},
			{all(n, barrierCall{id: 0}), named},
			// A wait that names another one concerns its own rank.
			{named, but(named, 1, barrierCall{id: 8})},
			{mixed, but(mixed, n-1, barrierCall{id: 8})},
			{named, all(n, barrierCall{id: 8})},
			// So does a wait that signals a mismatch.
			{named, but(named, n-1, barrierCall{id: 7, flags: mm})},
			{anonymous, but(anonymous, 0, barrierCall{flags: anon | mm})},
			// Ids that differ, each in one bit or altogether.
			{but(named, 0, barrierCall{id: 6}), named},
			{but(named, n-1, barrierCall{id: 7 | 1<<31}), named},
			{but(mixed, 2, barrierCall{id: 6}), anonymous},
			{but(but(named, 0, barrierCall{id: 1}), n-1, barrierCall{id: 2}), anonymous}, // three ways
			// One rank signals a mismatch, alone or beside others.
			{but(named, n-1, barrierCall{id: 7, flags: mm}), named},
			{but(anonymous, 0, barrierCall{flags: mm}), anonymous},
			{but(anonymous, 1, barrierCall{flags: mm | anon}), anonymous},
			{but(but(named, 0, barrierCall{id: 1}), 1, barrierCall{flags: mm}), mixed},
			{all(n, barrierCall{flags: mm}), all(n, barrierCall{flags: mm})},
			{named, named}, // after all that, as at first
		}
		// Each rank in turn is the one that differs.
		for odd := range n {
			phases = append(phases,
				barrierPhase{but(named, odd, barrierCall{id: 8}), anonymous},
				barrierPhase{but(anonymous, odd, barrierCall{id: 8}), all(n, barrierCall{id: 8})},
				barrierPhase{but(anonymous, odd, barrierCall{id: 8}), named},
				barrierPhase{but(named, odd, barrierCall{flags: anon}), named},
				barrierPhase{but(named, odd, barrierCall{flags: mm}), named})
		}
		barrierJob(c, n, func(s *stack) {
			// Half of the ranks wait and half try, then the other way round.
			for pass := range 2 {
				for k, p := range phases {
					p.wait = append([]barrierCall(nil), p.wait...)
					for i := range p.wait {
						p.wait[i].tries = (i+k+pass)%2 == 1
					}
					p.do(s, 0)
				}
			}
		})
		if c.Failed() {
			return
		}
	}
}

// barrierRandom: random phases against the rules, in jobs of many sizes, by
// dissemination too where another algorithm is the conduit's.
func barrierRandom(c *ctx) {
	for _, n := range []int{2, 3, 5, 8, 13} {
		rng := c.Random(uint64(n), 31)
		draw := func(odd int) barrierCall {
			k := barrierCall{id: 3, tries: rng.IntN(3) == 0}
			if rng.IntN(3) == 0 {
				k.flags |= barrier.Anonymous
			}
			if rng.IntN(odd) == 0 {
				k.id = rng.Uint32()
			}
			if rng.IntN(odd) == 0 {
				k.flags |= barrier.Mismatch
			}
			return k
		}
		phases := make([]barrierPhase, 40)
		for i := range phases {
			for range n {
				phases[i].notify = append(phases[i].notify, draw(4*n))
				phases[i].wait = append(phases[i].wait, draw(8))
			}
		}
		barrierJob(c, n, func(s *stack) {
			for i := range phases {
				phases[i].do(s, s.RNG.IntN(3))
			}
		})
		if c.Failed() {
			return
		}
	}
}

// barrierMisuse: what is out of order or unknown is an error and changes
// nothing.
func barrierMisuse(c *ctx) {
	barrierJob(c, 3, func(s *stack) {
		const bad = barrier.Flags(1 << 7)
		b := s.bar
		for range 2 {
			for _, f := range []barrier.Flags{0, barrier.Anonymous, barrier.Mismatch} {
				s.Wants(b.Wait(1, f), barrier.ErrNotReady, "wait before notify")
				done, err := b.Try(1, f)
				s.Wants(err, barrier.ErrNotReady, "try before notify")
				if done {
					s.Errorf("a phase is over that was not begun")
				}
			}
			s.Wants(b.Notify(1, bad), barrier.ErrBadArg, "notify with unknown flags")
			s.Wants(b.Wait(1, 0), barrier.ErrNotReady, "wait after a notify that was refused")
			s.Must(b.Notify(1, 0))
			s.Wants(b.Notify(2, 0), barrier.ErrNotReady, "second notify")
			s.Wants(b.Notify(2, barrier.Mismatch), barrier.ErrNotReady, "second notify")
			s.Wants(b.Barrier(2, 0), barrier.ErrNotReady, "barrier in a phase")
			s.Wants(b.Wait(1, bad), barrier.ErrBadArg, "wait with unknown flags")
			_, err := b.Try(1, bad)
			s.Wants(err, barrier.ErrBadArg, "try with unknown flags")
			s.Wants(b.Bind(s.am), barrier.ErrBadArg, "second bind")
			s.Must(b.Wait(1, 0))
			if id, named := b.Result(); id != 1 || !named {
				s.Errorf("the result is %d, %v", id, named)
			}
		}
	})
	b := barrier.New()
	for what, err := range map[string]error{"notify": b.Notify(1, 0), "wait": b.Wait(1, 0), "barrier": b.Barrier(1, 0)} {
		if !errors.Is(err, barrier.ErrNotInit) {
			c.Errorf("%s before bind: %v", what, err)
		}
	}
	if done, err := b.Try(1, 0); done || !errors.Is(err, barrier.ErrNotInit) {
		c.Errorf("try before bind: %v, %v", done, err)
	}
	if _, named := b.Result(); named || b.Algorithm() != barrier.Auto {
		c.Errorf("a barrier that is not bound has a result, or algorithm %v", b.Algorithm())
	}
	if c.shared(2) {
		return
	}
	c.Job(2, conduits.Config{}, func(p *contract.Peer) {
		b := barrier.NewWith(barrier.Config{Force: barrier.Flat})
		e, err := am.Attach(p.EP, am.Config{Runtime: b.Handlers()})
		p.Must(err)
		p.Wants(b.Bind(e), barrier.ErrNotSupported, "a flat barrier without direct access")
	})
}

// barrierThreads: notify and wait may be called by different goroutines, and of
// several that wait for one phase one finishes it.
func barrierThreads(c *ctx) {
	const n, threads, phases = 3, 3, 25
	barrierJob(c, n, func(s *stack) {
		for k := range uint32(phases) {
			var through, late atomic.Int32
			s.Threads(1, func(int) { s.Must(s.bar.Notify(k, 0)) })
			s.Threads(threads, func(i int) {
				var err error
				if i == 1 {
					err = s.try(k, 0)
				} else {
					err = s.bar.Wait(k, 0)
				}
				switch {
				case err == nil:
					through.Add(1)
				case errors.Is(err, barrier.ErrNotReady):
					late.Add(1)
				default:
					s.Must(err)
				}
			})
			if through.Load() != 1 || late.Load() != threads-1 {
				s.Errorf("%d of %d goroutines finished phase %d, and %d were late", through.Load(), threads, k, late.Load())
			}
		}
	})
}

// barrierVisible: what was put before a barrier is there after it, and a split
// barrier orders what came before the notify.
func barrierVisible(c *ctx) {
	const n, words, phases = 3, 40, 30
	for _, a := range c.algorithms(n) {
		c.stack(n, conduits.Config{}, layers{segment: contract.Pages(n * words * 8), bar: barrier.Config{Force: a}, ext: extended.Config{AlwaysHandle: true}}, func(s *stack) {
			word := func(writer, w int) segment.NLA { return contract.At((writer*words + w) * 8) }
			got := make([]byte, words*8)
			for k := range phases {
				key := func(writer int) uint64 { return contract.Mix(c.Seed, uint64(k), uint64(writer)) }
				for r := range n {
					b := contract.Fill(make([]byte, words*8), key(s.Rank), 0)
					cut := s.RNG.IntN(len(b) + 1)
					h, err := s.ext.PutNB(r, word(s.Rank, 0), b[:cut])
					s.Must(err)
					s.Must(s.ext.Put(r, word(s.Rank, 0)+segment.NLA(cut), b[cut:]))
					s.Must(s.ext.Wait(h))
				}
				s.Must(s.bar.Notify(uint32(k), 0))
				s.am.Poll()
				s.Must(s.bar.Wait(uint32(k), 0))
				for w := range n {
					r := s.RNG.IntN(n)
					s.Must(s.ext.Get(r, word(w, 0), got))
					if i := contract.Wrong(got, key(w), 0); i >= 0 {
						s.Fatalf("phase %d: byte %d that rank %d put to rank %d before the barrier is not there", k, i, w, r)
					}
				}
				s.barrier() // before it is overwritten
			}
		})
		if c.Failed() {
			c.Logf("algorithm %v", a)
			return
		}
	}
}
