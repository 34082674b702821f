package conformance

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/segment"
)

// amChecks are those of package am.
var amChecks = []check{
	{name: "am/indices", run: amIndices},                   // testgasnet
	{name: "am/tables", run: amTables},                     // none: a mismatch is undefined there
	{name: "am/medium", seeded: true, run: amMedium},       // testcore2
	{name: "am/long", seeded: true, run: amLong},           // testcore2
	{name: "am/empty", run: amEmpty},                       // testcore3
	{name: "am/immediate", seeded: true, run: amImmediate}, // testimm
	{name: "am/all-to-all", seeded: true, run: amAllToAll}, // testalltoall
	{name: "am/threads", seeded: true, run: amThreads},     // testthreads
	{name: "am/bad-arguments", run: amBadArguments},        // testgasnet
	{name: "am/misuse", run: amMisuse},                     // testexit, testhsl
	{name: "am/read-only", seeded: true, run: amReadOnly},  // testreadonly
	{name: "am/failure", run: amFailure},                   // testexit
	{name: "am/flood", seeded: true, run: amFlood},         // testcore2's depth, testalltoall's hotspot
}

// amIndices: index 0 gets the highest that is free, in order.
func amIndices(c *ctx) {
	nothing := func(*am.Token, []uint32, []byte) {}
	var chosen [2][]am.Entry
	c.stack(2, conduits.Config{}, layers{handlers: func(s *stack) []am.Entry {
		h := []am.Entry{
			{Name: "first", Fn: nothing},
			{Index: 254, Name: "fixed 254", Fn: nothing},
			{Name: "second", Fn: nothing},
			{Index: 128, Name: "fixed 128", Fn: nothing},
			{Index: 252, Name: "fixed 252", Fn: nothing},
			{Name: "third", Fn: nothing},
		}
		chosen[s.Rank] = h
		return h
	}}, func(s *stack) {
		for i, want := range []am.HandlerID{255, 254, 253, 128, 252, 251} {
			e := chosen[s.Rank][i]
			if e.Index != want || s.am.HandlerName(want) != e.Name {
				s.Errorf("handler %q has index %d, and at %d is %q", e.Name, e.Index, want, s.am.HandlerName(want))
			}
		}
		if name := s.am.HandlerName(250); name != "" {
			s.Errorf("handler 250 is %q", name)
		}
	})
}

// amTables: tables that differ, in whatever and wherever, are an error on every
// rank, the same one, which says where.
func amTables(c *ctx) {
	fn := func(*am.Token, []uint32, []byte) {}
	table := func() []am.Entry {
		return []am.Entry{{Index: 130, Name: "a", Fn: fn, Args: 3, Kinds: am.Short}, {Index: 131, Name: "b", Fn: fn, Args: am.AnyArgs}}
	}
	changes := []struct {
		what string
		do   func([]am.Entry) []am.Entry
	}{
		{"a name", func(t []am.Entry) []am.Entry { t[0].Name = "c"; return t }},
		{"a number of arguments", func(t []am.Entry) []am.Entry { t[0].Args = 4; return t }},
		{"kinds", func(t []am.Entry) []am.Entry { t[1].Kinds = am.Reply; return t }},
		{"an index", func(t []am.Entry) []am.Entry { t[1].Index = 132; return t }},
		{"one more", func(t []am.Entry) []am.Entry { return append(t, am.Entry{Index: 200, Name: "d", Fn: fn}) }},
		{"one less", func(t []am.Entry) []am.Entry { return t[:1] }},
		{"none", func(t []am.Entry) []am.Entry { return nil }},
	}
	for i, ch := range changes {
		n := []int{2, 3, 5}[i%3]
		odd := (i + 1) % n
		errs := make([]error, n)
		c.fails(n, layers{handlers: func(s *stack) []am.Entry {
			t := table()
			if s.Rank == odd {
				t = ch.do(t)
			}
			return t
		}}, func(s *doomed) { errs[s.Rank] = s.attach })
		for r, err := range errs {
			if !errors.Is(err, am.ErrBadArg) || err.Error() != errs[0].Error() {
				c.Errorf("tables of %d ranks differ in %s at rank %d: rank %d says %v, rank 0 says %v", n, ch.what, odd, r, err, errs[0])
			}
			if odd > 0 && err != nil && !strings.Contains(err.Error(), fmt.Sprintf("rank %d", odd)) {
				c.Errorf("tables of %d ranks differ in %s at rank %d: rank %d says %v", n, ch.what, odd, r, err)
			}
		}
	}
}

// bySize sends one request of every size in every manner, up to depth at a time.
func bySize(c *ctx, kind am.Kind, small, most, depth int) {
	const n = 2
	list := contract.Sizes(small, most)
	ways := mannersOf(kind)
	f := newTraffic(c, n, len(list)*len(ways), depth, most)
	f.run(func(s *stack, r *trafficRank) {
		id := 0
		for _, size := range list {
			for _, how := range ways {
				// The place may be used again when its request has been answered.
				if id >= depth {
					f.flush(r, id-depth, id-depth+1)
				}
				l := &letter{dst: s.RNG.IntN(n), id: id, kind: kind, size: size, how: how, inside: s.RNG.IntN(3) == 0}
				l.answer = answerShort + answer(s.RNG.IntN(int(numAnswers-answerShort)))
				if size > s.am.MaxMedium() && (l.answer == answerMedium || l.answer >= answerPrepared) {
					l.answer = answerLong
				}
				f.post(r, l)
				id++
			}
		}
		f.flush(r, 0, id)
	})
}

// amMedium: medium messages of all sizes, fixed and negotiated, immediate or
// not, cancelled or not, from in and outside the segment.
func amMedium(c *ctx) {
	most := c.Offer.Limits.MaxMedium
	bySize(c, am.Medium, 66, most, 1)
	bySize(c, am.Medium, 20, most, 7)
}

// amLong is the same for long ones.
func amLong(c *ctx) {
	most := int(min(c.Offer.Limits.MaxLong, c.Offer.Limits.MaxSegment/64, 100<<10))
	bySize(c, am.Long, 66, most, 1)
	bySize(c, am.Long, 20, min(most, 20<<10), 7)
}

// amEmpty: medium and long messages without a byte arrive, long ones with the
// address that was named, odd ones and those outside any segment too, also at a
// rank that has none.
func amEmpty(c *ctx) {
	const (
		n     = 3
		ask   = 190
		reply = 191
	)
	addrs := []segment.NLA{contract.At(0), contract.At(1), contract.At(3), contract.At(13), contract.At(segment.PageSize - 1), contract.At(segment.PageSize), contract.At(segment.PageSize + 7), contract.At(1<<30 + 5), 0, 1, segment.NLALimit - 1}
	type rank struct {
		done atomic.Int32
	}
	var ranks [n]rank
	var sizes [n]uint64
	for r := range sizes {
		sizes[r] = uint64(r%2) * segment.PageSize
	}
	handlers := func(p *contract.Peer) []am.Entry {
		me := &ranks[p.Rank]
		look := func(t *am.Token, args []uint32, payload []byte) bool {
			want := segment.NLA(am.Unpack64(args[0], args[1]))
			if t.Kind()&am.Medium != 0 {
				want = 0
			}
			if t.To() != want || len(payload) != 0 {
				p.Errorf("empty %v from %d: %d bytes for %v, want none for %v", t.Kind(), t.Src(), len(payload), t.To(), want)
			}
			return t.Kind()&am.Long != 0
		}
		return []am.Entry{
			{Index: ask, Name: "ask", Args: 2, Kinds: am.Request | am.Medium | am.Long, Fn: func(t *am.Token, args []uint32, payload []byte) {
				var err error
				if look(t, args, payload) {
					err = t.ReplyLong(reply, t.To(), nil, args...)
				} else {
					err = t.ReplyMedium(reply, nil, args...)
				}
				if err != nil {
					p.Errorf("empty reply: %v", err)
				}
			}},
			{Index: reply, Name: "reply", Args: 2, Kinds: am.Reply | am.Medium | am.Long, Fn: func(t *am.Token, args []uint32, payload []byte) {
				look(t, args, payload)
				me.done.Add(1)
				p.EP.Wake(p.Rank)
			}},
		}
	}
	c.Job(n, conduits.Config{}, func(p *contract.Peer) {
		b := barrier.New()
		e, err := am.Attach(p.EP, am.Config{SegmentSize: sizes[p.Rank], Handlers: handlers(p), Runtime: b.Handlers()})
		p.Must(err)
		p.Must(b.Bind(e))
		p.Must(b.Barrier(0, barrier.Anonymous))
		total := int32(0)
		for dst := range n {
			for _, a := range addrs {
				lo, hi := am.PackNLA(a)
				var ev am.Event
				p.Must(e.RequestMedium(dst, ask, nil, lo, hi))
				p.Must(e.RequestMedium(dst, ask, []byte{}, lo, hi))
				p.Must(e.RequestLong(dst, ask, a, nil, lo, hi))
				p.Must(e.RequestLongNB(dst, ask, a, []byte{}, &ev, lo, hi))
				p.Must(e.WaitEvent(&ev))
				m, err := e.PrepareMedium(dst, ask, 0, 64, 2)
				p.Must(err)
				p.Must(m.Commit(0, lo, hi))
				total += 5
			}
		}
		p.Wait("empty replies", func() bool { return ranks[p.Rank].done.Load() == total })
		p.Must(b.Barrier(0, barrier.Anonymous))
	})
}

// amImmediate: whatever the pace of polling, and however often there is no
// credit, everything that was sent arrives once.
func amImmediate(c *ctx) {
	const n, each = 3, 120
	for pace, name := range []string{"next", "retry", "lazy", "always"} {
		f := newTraffic(c, n, each, each, 320)
		f.run(func(s *stack, r *trafficRank) {
			var queue []*letter
			for id := range each {
				l := f.draw(s.RNG, s.RNG.IntN(n), id)
				l.size = min(l.size, 320)
				switch {
				case l.how == withEvent || l.kind != am.Medium:
					l.how = immediately
				case l.how != preparedNow:
					l.how = immediately
				}
				queue = append(queue, l)
			}
			for tries := 0; len(queue) > 0; tries++ {
				l := queue[0]
				if f.send(r, l) {
					queue = queue[1:]
					if name == "always" {
						s.am.Poll()
					}
					continue
				}
				s.Must(s.EP.Err())
				switch name {
				case "next": // another one first
					queue = append(queue[1:], l)
					s.poll()
				case "lazy": // poll seldom
					if tries%5 == 0 {
						s.poll()
					}
				default:
					s.poll()
				}
			}
		})
		if c.Failed() {
			c.Logf("pace %d (%s)", pace, name)
			return
		}
	}
}

// amAllToAll: every rank sends to every rank, in polite order (each begins with
// its neighbour), to one after the other (a hotspot), and in random order, with
// and without answers.
func amAllToAll(c *ctx) {
	const n, rounds = 5, 24
	for order := range 3 {
		for _, answered := range []bool{false, true} {
			f := newTraffic(c, n, n*rounds, n*rounds, 256)
			f.run(func(s *stack, r *trafficRank) {
				var ls []*letter
				for i := range n * rounds {
					dst := i / rounds
					if order == 0 {
						dst = (s.Rank + i) % n
					}
					l := f.draw(s.RNG, dst, i)
					l.size = min(l.size, 256)
					switch {
					case !answered:
						l.answer = answerNone
					case l.answer == answerNone:
						l.answer = answerShort
					}
					ls = append(ls, l)
				}
				if order == 2 {
					s.RNG.Shuffle(len(ls), func(i, j int) { ls[i], ls[j] = ls[j], ls[i] })
				}
				for _, l := range ls {
					f.post(r, l)
				}
			})
			if c.Failed() {
				c.Logf("order %d, answered %v", order, answered)
				return
			}
		}
	}
}

// amThreads: several goroutines of each rank send, put, get, add and wait at
// random.
func amThreads(c *ctx) {
	const n, threads, each = 3, 4, 60
	const words = 64 // behind the traffic: words[rank*threads+thread]
	f := newTraffic(c, n, threads*each, threads*each, 128)
	l := f.layers()
	base := int(l.segment)
	l.segment += contract.Pages(n * threads * words)
	l.ext.AlwaysHandle = c.RNG.IntN(2) == 0
	c.stack(n, conduits.Config{}, l, func(s *stack) {
		r := f.ranks[s.Rank]
		s.Threads(threads, func(th int) {
			rng := c.Random(uint64(s.Rank), uint64(th), 9)
			mine := contract.At(base + (s.Rank*threads+th)*words)
			model := make([][]byte, n)
			for i := range model {
				model[i] = make([]byte, words)
				s.Must(s.ext.Put(i, mine, model[i]))
			}
			added := uint64(0)
			for id := th * each; id < (th+1)*each; id++ {
				dst := rng.IntN(n)
				switch rng.IntN(6) {
				case 0:
					off, k := rng.IntN(words-8), rng.IntN(8)+1
					b := contract.Fill(model[dst][8:][off:min(off+k, words-8)], rng.Uint64(), 0)
					if rng.IntN(2) == 0 {
						s.Must(s.ext.Put(dst, mine+8+segment.NLA(off), b))
						break
					}
					h, err := s.ext.PutNB(dst, mine+8+segment.NLA(off), b)
					s.Must(err)
					s.Must(s.ext.Wait(h))
				case 1:
					got := make([]byte, words-8)
					s.Must(s.ext.Get(dst, mine+8, got))
					if i := contract.Differ(got, model[dst][8:]); i >= 0 {
						s.Errorf("thread %d: byte %d at rank %d is %#x, not %#x", th, i, dst, got[i], model[dst][8+i])
					}
				case 2:
					v := rng.Uint64() >> 8
					old, err := extended.FetchAdd[uint64](s.ext, 0, mine, v)
					s.Must(err)
					if old != added {
						s.Errorf("thread %d: sum is %d, not %d", th, old, added)
					}
					added += v
				default:
					l := f.draw(rng, dst, id)
					l.size = min(l.size, 128)
					f.post(r, l)
					if rng.IntN(8) == 0 {
						f.flush(r, th*each, id+1)
					}
				}
			}
			f.flush(r, th*each, (th+1)*each)
		})
		f.verify(r)
	})
}

// amBadArguments: what a caller gets wrong is an error, sends nothing, and harms
// nothing.
func amBadArguments(c *ctx) {
	const n, h, replies, shorts = 2, 200, 201, 202
	var ran [n]atomic.Int32
	c.stack(n, conduits.Config{}, layers{segment: segment.PageSize, handlers: func(s *stack) []am.Entry {
		count := func(*am.Token, []uint32, []byte) {
			ran[s.Rank].Add(1)
			s.EP.Wake(s.Rank)
		}
		return []am.Entry{
			{Index: h, Name: "two", Fn: count, Args: 2},
			{Index: replies, Name: "replies", Fn: count, Args: am.AnyArgs, Kinds: am.Reply},
			{Index: shorts, Name: "shorts", Fn: count, Args: am.AnyArgs, Kinds: am.Short | am.Request},
		}
	}}, func(s *stack) {
		var ev am.Event
		big := make([]byte, s.am.MaxMedium()+1)
		seventeen := make([]uint32, 17)
		for what, f := range map[string]func() error{
			"rank -1":                     func() error { return s.am.RequestShort(-1, h, 1, 2) },
			"rank n":                      func() error { return s.am.RequestShort(n, h, 1, 2) },
			"medium to rank n":            func() error { return s.am.RequestMedium(n, h, nil, 1, 2) },
			"long to rank n":              func() error { return s.am.RequestLong(n, h, contract.At(0), nil, 1, 2) },
			"an argument too few":         func() error { return s.am.RequestShort(1, h, 1) },
			"an argument too many":        func() error { return s.am.RequestMedium(1, h, nil, 1, 2, 3) },
			"17 arguments":                func() error { return s.am.RequestShort(1, shorts, seventeen...) },
			"a handler that is not there": func() error { return s.am.RequestShort(1, 203) },
			"a long for it":               func() error { return s.am.RequestLong(1, 203, contract.At(0), nil) },
			"a handler of am's own":       func() error { return s.am.RequestMedium(1, 0, nil, 1, 2) },
			"a request to replies":        func() error { return s.am.RequestShort(1, replies) },
			"a medium to shorts":          func() error { return s.am.RequestMedium(1, shorts, nil) },
			"a long to shorts":            func() error { return s.am.RequestLong(1, shorts, contract.At(0), nil) },
			"a medium too large":          func() error { return s.am.RequestMedium(1, h, big, 1, 2) },
			"a long past the end":         func() error { return s.am.RequestLong(1, h, contract.At(segment.PageSize-8), make([]byte, 9), 1, 2) },
			"a long before the start":     func() error { return s.am.RequestLong(1, h, contract.At(-1), make([]byte, 9), 1, 2) },
			"a long to 0":                 func() error { return s.am.RequestLong(1, h, 0, make([]byte, 1), 1, 2) },
			"a long that wraps":           func() error { return s.am.RequestLong(1, h, ^segment.NLA(0)-3, make([]byte, 9), 1, 2) },
			"a non-blocking long past the end": func() error {
				return s.am.RequestLongNB(1, h, contract.At(segment.PageSize), make([]byte, 1), &ev, 1, 2)
			},
			"an immediate short to rank n":  func() error { _, err := s.am.TryRequestShort(n, h, 1, 2); return err },
			"an immediate medium too large": func() error { _, err := s.am.TryRequestMedium(1, h, big, 1, 2); return err },
			"an immediate long past the end": func() error {
				_, err := s.am.TryRequestLong(1, h, contract.At(segment.PageSize-1), big, &ev, 1, 2)
				return err
			},
			"a prepared one to rank n":          func() error { _, err := s.am.PrepareMedium(n, h, 0, 0, 2); return err },
			"a prepared one to shorts":          func() error { _, err := s.am.PrepareMedium(1, shorts, 0, 0, 2); return err },
			"a prepared one with an arg. short": func() error { _, err := s.am.PrepareMedium(1, h, 0, 0, 1); return err },
		} {
			s.Wants(f(), am.ErrBadArg, "%s", what)
		}
		if !ev.Done() {
			s.Errorf("the event of a message that was refused is pending")
		}
		// What must have come had it been sent: this does, and nothing else has.
		s.barrier()
		for dst := range n {
			s.Must(s.am.RequestShort(dst, h, 1, 2))
		}
		s.Wait("what was sent rightly", func() bool { return ran[s.Rank].Load() >= n })
		s.barrier()
		s.am.Poll()
		if k := ran[s.Rank].Load(); k != n {
			s.Errorf("%d handlers ran, not %d", k, n)
		}
	})
}

// amMisuse: a handler that breaks a rule gets an error that names it, and fails
// the job, so that no rank waits for what will never come.
func amMisuse(c *ctx) {
	const start, other, back = 210, 211, 212
	var kept *am.Token
	for _, m := range []struct {
		what  string
		debug bool
		culp  int    // the rank that breaks the rule: 1 gets the request of 0
		name  string // in the error
		on    func(s *stack, t *am.Token) error
		reply func(s *stack, t *am.Token) error
		after func(s *stack) error
	}{
		{what: "a second reply", culp: 1, name: "start", on: func(s *stack, t *am.Token) error {
			s.Must(t.ReplyShort(other))
			return t.ReplyShort(other)
		}},
		{what: "a second reply, medium", culp: 1, name: "start", on: func(s *stack, t *am.Token) error {
			s.Must(t.ReplyShort(other))
			return t.ReplyMedium(other, nil)
		}},
		{what: "a second reply, long", culp: 1, name: "start", on: func(s *stack, t *am.Token) error {
			s.Must(t.ReplyMedium(other, nil))
			return t.ReplyLong(other, 0, nil)
		}},
		{what: "a second reply, prepared", culp: 1, name: "start", on: func(s *stack, t *am.Token) error {
			s.Must(t.ReplyShort(other))
			_, err := t.PrepareMedium(other, 0, 0, 0)
			return err
		}},
		{what: "a second reply, immediate", culp: 1, name: "start", on: func(s *stack, t *am.Token) error {
			s.Must(t.ReplyLong(other, 0, nil))
			_, err := t.TryReplyShort(other)
			return err
		}},
		{
			what: "a reply to a reply", culp: 0, name: "back", on: func(s *stack, t *am.Token) error { return t.ReplyShort(back) },
			reply: func(s *stack, t *am.Token) error { return t.ReplyShort(other) },
		},
		{what: "a request in a handler", debug: true, culp: 1, name: "start", on: func(s *stack, t *am.Token) error {
			return s.am.RequestShort(0, other)
		}},
		{what: "a medium request in a handler", debug: true, culp: 1, name: "start", on: func(s *stack, t *am.Token) error {
			return s.am.RequestMedium(0, other, nil)
		}},
		{what: "a long request in a handler", debug: true, culp: 1, name: "start", on: func(s *stack, t *am.Token) error {
			return s.am.RequestLong(0, other, 0, nil)
		}},
		{what: "a wait in a handler", culp: 1, name: "start", on: func(s *stack, t *am.Token) error {
			return s.am.Wait(nil, func() bool { return false })
		}},
		{
			what: "a request in a reply's handler", debug: true, culp: 0, name: "back", on: func(s *stack, t *am.Token) error { return t.ReplyShort(back) },
			reply: func(s *stack, t *am.Token) error { return s.am.RequestShort(1, other) },
		},
		{
			what: "a reply after the handler", culp: 1, name: "start", on: func(s *stack, t *am.Token) error { kept = t; return nil },
			after: func(s *stack) error { return kept.ReplyShort(other) },
		},
	} {
		var got [2]error
		var ran atomic.Bool
		c.fails(2, layers{debug: m.debug, handlers: func(s *stack) []am.Entry {
			return []am.Entry{
				{Index: start, Name: "start", Fn: func(t *am.Token, _ []uint32, _ []byte) {
					if got[s.Rank] = m.on(s, t); got[s.Rank] == nil && s.Rank == m.culp && m.after == nil {
						s.Errorf("%s: no error", m.what) // and no rank would be told
					}
					ran.Store(true)
					s.EP.Wake(s.Rank)
				}},
				{Index: other, Name: "other", Fn: func(*am.Token, []uint32, []byte) {}, Args: am.AnyArgs},
				{Index: back, Name: "back", Fn: func(t *am.Token, _ []uint32, _ []byte) {
					if got[s.Rank] = m.reply(s, t); got[s.Rank] == nil {
						s.Errorf("%s: no error", m.what)
					}
				}},
			}
		}}, func(s *doomed) {
			if s.Rank == 0 {
				s.Must(s.am.RequestShort(1, start))
			} else if m.after != nil {
				s.Wait("the handler", ran.Load)
				got[1] = m.after(s.stack)
			}
			err := s.awaitFailure()
			s.Names(err, m.culp, "%s", m.what)
			if s.Rank == m.culp {
				s.Wants(got[s.Rank], am.ErrBadArg, "%s", m.what)
				if !strings.Contains(got[s.Rank].Error(), m.name) {
					s.Errorf("%s: error %q does not name handler %s", m.what, got[s.Rank], m.name)
				}
			}
		})
		if c.Failed() {
			c.Logf("misuse: %s", m.what)
			return
		}
	}
	// A handler that lets the error of its reply drop has not replied.
	for what, on := range map[string]func(t *am.Token){
		"to a handler that is not there": func(t *am.Token) { _ = t.ReplyShort(250) },
		"with an argument too many":      func(t *am.Token) { _ = t.ReplyShort(other, 1) },
		"to a handler of requests":       func(t *am.Token) { _ = t.ReplyShort(start) },
		"of too much":                    func(t *am.Token) { _ = t.ReplyMedium(other, make([]byte, t.Messenger().MaxMedium()+1)) },
		"outside the segment":            func(t *am.Token) { _ = t.ReplyLong(other, 1, make([]byte, 1)) },
		"that stays prepared":            func(t *am.Token) { _, _ = t.PrepareMedium(other, 0, 8, 0) },
		"of -1 bytes":                    func(t *am.Token) { _, _ = t.PrepareMedium(other, -1, 8, 0) },
	} {
		c.fails(2, layers{handlers: func(s *stack) []am.Entry {
			return []am.Entry{
				{Index: start, Name: "start", Fn: func(t *am.Token, _ []uint32, _ []byte) { on(t) }, Kinds: am.Request},
				{Index: other, Name: "other", Fn: func(*am.Token, []uint32, []byte) {}},
			}
		}}, func(s *doomed) {
			if s.Rank == 0 {
				s.Must(s.am.RequestShort(1, start))
			}
			s.Names(s.awaitFailure(), 1, "a reply %s", what)
		})
		if c.Failed() {
			c.Logf("dropped: a reply %s", what)
			return
		}
	}
	// One that replies after an error has done its duty.
	var came [2]atomic.Bool
	c.stack(2, conduits.Config{}, layers{handlers: func(s *stack) []am.Entry {
		return []am.Entry{
			{Index: start, Name: "start", Kinds: am.Request, Fn: func(t *am.Token, _ []uint32, _ []byte) {
				s.Wants(t.ReplyShort(250), am.ErrBadArg, "reply without a source")
				_, err := t.PrepareMedium(other, 5, 4, 0)
				s.Wants(err, am.ErrBadArg, "reply prepared wrongly")
				if err := t.ReplyShort(other); err != nil {
					s.Errorf("reply after an error: %v", err)
				}
			}},
			{Index: other, Name: "other", Fn: func(*am.Token, []uint32, []byte) { came[s.Rank].Store(true); s.EP.Wake(s.Rank) }},
		}
	}}, func(s *stack) {
		s.Must(s.am.RequestShort(1-s.Rank, start))
		s.Wait("the reply", came[s.Rank].Load)
	})
}

// amReadOnly: what is sent from and put from read-only pages.
func amReadOnly(c *ctx) {
	const n, h, back, size = 2, 220, 221, 3 * segment.PageSize
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		c.Skip("no file to map: ", err)
	}
	defer file.Close()
	page, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		c.Skip("cannot map it: ", err)
	}
	defer func() { _ = syscall.Munmap(page) }()
	var answers [n]atomic.Int32
	c.stack(n, conduits.Config{}, layers{segment: n * size, handlers: func(s *stack) []am.Entry {
		return []am.Entry{
			{Index: h, Name: "look", Args: 1, Fn: func(t *am.Token, args []uint32, payload []byte) {
				want := page[args[0]:][:len(payload)]
				if i := contract.Differ(payload, want); i >= 0 {
					s.Errorf("%v of read-only memory: byte %d is %#x, not %#x", t.Kind(), i, payload[i], want[i])
				}
				if err := t.ReplyMedium(back, want[:min(len(want), 9)]); err != nil {
					s.Errorf("reply: %v", err)
				}
			}},
			{Index: back, Name: "back", Fn: func(*am.Token, []uint32, []byte) { answers[s.Rank].Add(1); s.EP.Wake(s.Rank) }},
		}
	}}, func(s *stack) {
		total, to := int32(0), contract.At(s.Rank*size)
		for i := range 24 {
			k := 1 + s.RNG.IntN(size)
			off := s.RNG.IntN(size - k + 1)
			src, dst := page[off:][:k], i%n
			s.Must(s.am.RequestLong(dst, h, to, src, uint32(off)))
			s.Must(s.am.RequestMedium(dst, h, src[:min(k, s.am.MaxMedium())], uint32(off)))
			total += 2
			s.Wait("answers", func() bool { return answers[s.Rank].Load() == total })
			s.Must(s.ext.Put(dst, to, src))
			hd, err := s.ext.PutBulkNB(dst, to, src)
			s.Must(err)
			s.Must(s.ext.Wait(hd))
			got := make([]byte, k)
			s.Must(s.ext.Get(dst, to, got))
			if i := contract.Differ(got, src); i >= 0 {
				s.Errorf("put of read-only memory: byte %d is %#x, not %#x", i, got[i], src[i])
			}
		}
	})
}

// amFlood: more requests than there is credit for, from all ranks at once, to
// each other and to one rank, by callers that never poll on their own account.
func amFlood(c *ctx) {
	const n = 3
	each := min(max(2*c.Offer.Limits.Credits+50, 300), 1500)
	for _, hot := range []bool{false, true} {
		f := newTraffic(c, n, each, each, 48)
		f.run(func(s *stack, r *trafficRank) {
			for id := range each {
				l := f.draw(s.RNG, s.RNG.IntN(n), id)
				l.how, l.size = plainly, min(l.size, 48)
				if hot {
					l.dst = 0
				}
				f.post(r, l)
			}
		})
		if c.Failed() {
			return
		}
	}
}

// amFailure: a rank that fails ends what the others wait for, in whatever call,
// with an error that names it.
func amFailure(c *ctx) {
	const n, nothing = 3, 230
	why := errors.New("a reason to fail")
	for what, f := range map[string]func(s *doomed) error{
		"an answer": func(s *doomed) error { return s.am.Wait(nil, func() bool { return false }) },
		"a barrier": func(s *doomed) error { return s.bar.Barrier(7, 0) },
		"barriers in tries": func(s *doomed) error {
			if err := s.bar.Notify(7, 0); err != nil { // the other rank was quicker
				return err
			}
			return s.try(7, 0)
		},
		"a signal": func(s *doomed) error { _, err := s.ext.WaitUntil(contract.At(0), extended.Ne, 0); return err },
		"signals": func(s *doomed) error {
			_, err := s.ext.WaitUntilAny([]segment.NLA{contract.At(0), contract.At(8)}, -1, extended.Ne, 0)
			return err
		},
		"credit": func(s *doomed) error {
			for {
				if err := s.am.RequestShort(n-1, nothing, 1); err != nil {
					return err
				}
			}
		},
		"credit with a payload": func(s *doomed) error {
			for {
				if err := s.am.RequestMedium(n-1, nothing, make([]byte, 300), 1); err != nil {
					return err
				}
			}
		},
		"credit for a long one": func(s *doomed) error {
			for {
				if err := s.am.RequestLong(n-1, nothing, contract.At(64*s.Rank), make([]byte, 30), 1); err != nil {
					return err
				}
			}
		},
		"room for a prepared one": func(s *doomed) error {
			for {
				m, err := s.am.PrepareMedium(n-1, nothing, 100, 100, 1)
				if err != nil {
					return err
				}
				if err := m.Commit(100, 1); err != nil {
					return err
				}
			}
		},
		"credit in tries": func(s *doomed) error {
			for {
				if ok, err := s.am.TryRequestShort(n-1, nothing, 1); err != nil {
					return err
				} else if !ok {
					s.poll()
				}
			}
		},
	} {
		for _, how := range []barrier.Algorithm{barrier.Auto, barrier.Dissemination} {
			if how != barrier.Auto && !strings.Contains(what, "barrier") {
				continue
			}
			var ready atomic.Int32
			c.fails(n, layers{segment: segment.PageSize, bar: barrier.Config{Force: how}, handlers: func(s *stack) []am.Entry {
				return []am.Entry{{Index: nothing, Name: "nothing", Fn: func(*am.Token, []uint32, []byte) {}, Args: 1}}
			}}, func(s *doomed) {
				// All ranks are there before one fails.
				s.Must(s.bar.Barrier(0, barrier.Anonymous))
				if s.Rank == n-1 {
					s.Wait("the others", func() bool { return ready.Load() == n-1 })
					s.EP.Fail(why)
					s.Names(s.awaitFailure(), n-1, "what rank %d knows of itself", n-1)
					return
				}
				ready.Add(1)
				s.EP.Wake(n - 1)
				s.Names(f(s), n-1, "waiting for %s", what)
				s.Names(s.EP.Err(), n-1, "after waiting for %s", what)
				// And it stays so.
				s.Names(s.am.Wait(nil, func() bool { return false }), n-1, "waiting again after %s", what)
			})
			if c.Failed() {
				c.Logf("failure: %s, %v", what, how)
				return
			}
		}
	}
}
