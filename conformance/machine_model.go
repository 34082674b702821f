package conformance

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// segmentUnit divides the sizes of segments.
const segmentUnit = segment.PageSize

// segmentSizes are those of the ranks, again and again.
var segmentSizes = [...]int{segmentUnit, 2 * segmentUnit, 0, segmentUnit, 3 * segmentUnit}

// model is all ranks of a job as plain data. It reads a program once, before it
// runs, and writes down what each rank has to do and what has to come of it:
// the moves. Since one rank moves at a time, and since nothing under way shares a
// byte with a later step before it is synchronized, all that is known then.
type model struct {
	n         int
	maxMedium int
	maxLong   uint64
	mem       [][]byte // the segments when all that was begun is complete
	open      []bool   // ranks whose access region is open
	under     []*pending
	msgs      []*message
	bare      []*bareMessage
	moves     []*move
	step      int // that the moves being written belong to

	windows     []*window // of a bare program
	refusedLong uint64    // messages whose data is refused

	notified []bool // the barrier phase
	offers   []offered
}

// move is a step that some ranks do at the same time.
type move struct {
	step  int // index in the program, -1 for what is not from it
	ranks []int
	run   func(a *actor)
	// end is called when all are through, by one of them; it describes a fault, or returns "".
	// May be nil.
	end func() string
}

// pending is something under way.
type pending struct {
	owner int // the rank that synchronizes it
	how   string
	cat   extended.Category
	spans []span
	f     *flight  // of a handle
	m     *message // of how "message", unless it is b
	b     *bareMessage
	o     *bareOp // of how "bare"
}

// span is a run of bytes in a segment.
type span struct {
	rank, lo, hi int
	write        bool
}

// offered has the identifier and flags that a rank gave the barrier.
type offered struct {
	id    uint32
	flags barrier.Flags
}

func newModel(p *Program, l conduits.Limits) *model {
	n := min(max(p.Ranks, 1), 16)
	m := &model{n: n, maxMedium: l.MaxMedium, maxLong: l.MaxLong, open: make([]bool, n), notified: make([]bool, n), offers: make([]offered, n)}
	for r := range n {
		b := make([]byte, segmentSizes[r%len(segmentSizes)])
		scramble(b, uint64(r)+1000)
		m.mem = append(m.mem, b)
	}
	if p.Bare {
		m.addArenas()
	}
	return m
}

// plan makes the moves of p.
func (m *model) plan(p *Program) error {
	m.step = -1
	if p.Bare {
		m.startBare()
	} else {
		m.start()
	}
	for i, s := range p.Steps {
		m.step = i
		f := plans[s.Do]
		isBare := slices.ContainsFunc(bareActions, func(a action) bool { return a.do == s.Do })
		isFull := slices.ContainsFunc(actions, func(a action) bool { return a.do == s.Do })
		if f == nil || p.Bare && !isBare || !p.Bare && !isFull {
			return fmt.Errorf("step %d: no action %q", i, s.Do)
		}
		s.Rank = mod(s.Rank, m.n)
		f(m, s)
	}
	m.step = -1
	m.check()
	m.last()
	return nil
}

// plans has a function for each action.
var plans map[string]func(m *model, s Step)

func init() {
	plans = map[string]func(m *model, s Step){
		"short":      (*model).message,
		"medium":     (*model).message,
		"long":       (*model).message,
		"flood":      (*model).flood,
		"drain":      func(m *model, s Step) { m.finishAll(s.Rank, "message") },
		"put":        (*model).put,
		"putBulk":    (*model).put,
		"get":        (*model).get,
		"putValue":   (*model).putValue,
		"getValue":   (*model).getValue,
		"memset":     (*model).memset,
		"putStrided": (*model).shaped,
		"getStrided": (*model).shaped,
		"putIndexed": (*model).shaped,
		"getIndexed": (*model).shaped,
		"putVector":  (*model).shaped,
		"getVector":  (*model).shaped,
		"atomic":     (*model).atomic,
		"addAll":     (*model).addAll,
		"signal":     (*model).signal,
		"await":      (*model).await,
		"test":       (*model).test,
		"wait":       (*model).wait,
		"try":        (*model).try,
		"waitAll":    (*model).waitAll,
		"waitSome":   func(m *model, s Step) { m.by(s.Rank, (*actor).waitSome) },
		"trySome":    func(m *model, s Step) { m.by(s.Rank, (*actor).trySome) },
		"tryAll":     func(m *model, s Step) { m.by(s.Rank, (*actor).tryAll) },
		"again":      func(m *model, s Step) { m.by(s.Rank, (*actor).again) },
		"bogus":      func(m *model, s Step) { m.by(s.Rank, func(a *actor) { a.bogus(s.Value) }) },
		"sync":       (*model).sync,
		"trySync":    (*model).sync,
		"begin":      (*model).beginRegion,
		"end":        (*model).endRegion,
		"notify":     (*model).notify,
		"meet":       (*model).meet,
		"tryMeet":    (*model).tryMeet,
		"poll":       func(m *model, s Step) { m.by(s.Rank, func(a *actor) { a.ep.Poll() }) },
		"check":      func(m *model, _ Step) { m.check() },
		"send":       (*model).bareSend,
		"bput":       (*model).barePut,
		"bget":       (*model).bareGet,
		"bword":      (*model).bareWord,
		"batomic":    (*model).bareAtomic,
		"register":   (*model).register,
		"deregister": (*model).deregister,
		"rput":       (*model).beyondPut,
		"rget":       (*model).beyondGet,
		"rword":      (*model).beyondWord,
		"ratomic":    (*model).beyondAtomic,
		"rlong":      (*model).beyondLong,
		"park":       (*model).park,
		"disarm":     (*model).disarm,
	}
}

func mod(a, n int) int { return (a%n + n) % n }

// scramble writes bytes that depend on seed.
func scramble(b []byte, seed uint64) {
	x := seed*0x9e3779b97f4a7c15 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x >> 24)
	}
}

func scrambled(n int, seed uint64) []byte {
	b := make([]byte, n)
	scramble(b, seed)
	return b
}

// addr is the address of an offset, which may lie outside the segment.
func addr(off int) segment.NLA { return segment.NLA(int64(segment.AttachBase) + int64(off)) }

// by appends a move of one rank.
func (m *model) by(rank int, run func(a *actor)) {
	m.moves = append(m.moves, &move{step: m.step, ranks: []int{rank}, run: run})
}

// together appends a move of all ranks.
func (m *model) together(run func(a *actor), end func() string) {
	all := make([]int, m.n)
	for i := range all {
		all[i] = i
	}
	m.moves = append(m.moves, &move{step: m.step, ranks: all, run: run, end: end})
}

// length is Step.Len in bytes.
func (m *model) length(n int) int {
	switch {
	case n >= 0:
		return n
	case n == -1:
		return m.maxMedium
	}
	return m.maxMedium + 1
}

// run is some bytes of one segment.
type run struct{ off, n int }

// reach is the error that an access to runs of rank has to give.
func (m *model) reach(rank int, runs []run) error {
	if rank < 0 || rank >= m.n {
		return am.ErrBadArg
	}
	for _, r := range runs {
		if r.n > 0 && (r.off < 0 || r.off > len(m.mem[rank]) || r.n > len(m.mem[rank])-r.off) {
			return am.ErrBadArg
		}
	}
	return nil
}

// vague reports whether one of runs, of rank, has addresses that memory beyond the
// segment may have: then it is rank that refuses them, and late.
func (m *model) vague(rank int, runs []run) bool {
	if rank < 0 || rank >= m.n {
		return false
	}
	size := uint64(len(m.mem[rank]))
	return slices.ContainsFunc(runs, func(r run) bool {
		return r.n > 0 && conduits.Registered(size, addr(r.off), uint64(r.n))
	})
}

// own is the error that looking at rank's own aligned words at offs has to give:
// that of the first that is wrong. Nothing is registered, so what memory beyond
// the segment may have is refused too.
func (m *model) own(rank int, offs ...int) error {
	for _, off := range offs {
		r := []run{{off, 8}}
		if m.vague(rank, r) {
			return segment.ErrFault
		}
		if err := m.reach(rank, r); err != nil {
			return err
		}
	}
	return nil
}

func spansOf(rank int, write bool, runs ...run) (s []span) {
	for _, r := range runs {
		if r.n > 0 {
			s = append(s, span{rank, r.off, r.off + r.n, write})
		}
	}
	return s
}

// claim synchronizes what is under way in the way of spans.
func (m *model) claim(spans []span) {
	for i := 0; i < len(m.under); i++ {
		if clash(m.under[i].spans, spans) {
			m.finish(m.under[i])
			i = -1 // the list has changed
		}
	}
}

func clash(a, b []span) bool {
	for _, x := range a {
		for _, y := range b {
			if x.rank == y.rank && x.lo < y.hi && y.lo < x.hi && (x.write || y.write) {
				return true
			}
		}
	}
	return false
}

// finish synchronizes q, and with it whatever is synchronized by the same call.
func (m *model) finish(q *pending) {
	switch q.how {
	case "nb":
		m.by(q.owner, func(a *actor) { a.wait(q.f) })
		m.drop(func(p *pending) bool { return p == q })
	case "bare":
		m.by(q.owner, func(a *actor) { a.finishOp(q.o) })
		m.drop(func(p *pending) bool { return p == q })
	case "message":
		m.by(q.owner, func(a *actor) {
			if q.b != nil {
				a.awaitBare(q.b)
			} else {
				a.awaitMessage(q.m)
			}
		})
		m.drop(func(p *pending) bool { return p == q })
	case "region":
		m.finish(m.closeRegion(q.owner))
	default:
		m.syncSet(q.owner, q.how, extended.All)
	}
}

// finishAll finishes all of rank's (all ranks': -1) that is under way in a way
// (any: "").
func (m *model) finishAll(rank int, how string) {
	for i := 0; i < len(m.under); i++ {
		if q := m.under[i]; (rank < 0 || q.owner == rank) && (how == "" || q.how == how) {
			m.finish(q)
			i = -1
		}
	}
}

func (m *model) drop(which func(p *pending) bool) {
	m.under = slices.DeleteFunc(m.under, which)
}

// syncSet synchronizes an implicit set.
func (m *model) syncSet(owner int, how string, c extended.Category) {
	m.by(owner, func(a *actor) { a.syncSet(how, c, false) })
	m.drop(func(p *pending) bool { return p.owner == owner && p.how == how && p.cat&c != 0 })
}

// access writes down one transfer or atomic in the form that s asks for, and
// reports whether it is to succeed.
func (m *model) access(s Step, write bool, cat extended.Category, runs []run, wants []error, ops func(a *actor, f *flight) forms) bool {
	if m.vague(s.Peer, runs) {
		return false // package extended's checks have it
	}
	if err := m.reach(s.Peer, runs); err != nil {
		wants = append(wants, err)
	}
	spans := spansOf(s.Peer, write, runs...)
	if len(wants) == 0 {
		m.claim(spans)
	}
	form := s.Form
	if form == "region" && !m.open[s.Rank] {
		form = "set"
	}
	f := &flight{cat: cat}
	m.by(s.Rank, func(a *actor) { a.begin(form, f, ops(a, f), wants) })
	switch {
	case len(wants) > 0:
		return false
	case form == "nb", form == "implicit", form == "set", form == "region":
		m.under = append(m.under, &pending{owner: s.Rank, how: form, cat: cat, spans: spans, f: f})
	}
	return true
}

// explicit replaces forms by which the action cannot be counted in a set.
func explicit(s Step) Step {
	if s.Form != "nb" {
		s.Form = ""
	}
	return s
}

func (m *model) put(s Step) {
	n, bulk := m.length(s.Len), s.Do == "putBulk"
	if bulk && s.Form == "" {
		s.Form = "nb"
	}
	data := scrambled(n, s.Value)
	if !m.access(s, true, extended.Puts, []run{{s.At, n}}, nil, func(a *actor, _ *flight) forms {
		src, to := slices.Clone(data), addr(s.At)
		fm := forms{
			block: func() error { return a.x.Put(s.Peer, to, src) },
			nb:    func() (extended.Handle, error) { return a.x.PutNB(s.Peer, to, src) },
			nbi:   func(r *extended.Region) error { return r.PutNBI(s.Peer, to, src) },
			src:   src,
		}
		if bulk {
			fm.late = true
			fm.nb = func() (extended.Handle, error) { return a.x.PutBulkNB(s.Peer, to, src) }
			fm.nbi = func(r *extended.Region) error { return r.PutBulkNBI(s.Peer, to, src) }
		}
		return fm
	}) || n == 0 {
		return
	}
	copy(m.mem[s.Peer][s.At:], data)
}

func (m *model) get(s Step) {
	n := m.length(s.Len)
	var want []byte
	if m.reach(s.Peer, []run{{s.At, n}}) == nil && n > 0 {
		want = slices.Clone(m.mem[s.Peer][s.At : s.At+n])
	}
	m.access(s, false, extended.Gets, []run{{s.At, n}}, nil, func(a *actor, f *flight) forms {
		b := newGuarded(n)
		dst, from := b.bytes(), addr(s.At)
		f.check = func() string { return b.differs(want) }
		return forms{
			block: func() error { return a.x.Get(s.Peer, from, dst) },
			nb:    func() (extended.Handle, error) { return a.x.GetNB(s.Peer, from, dst) },
			nbi:   func(r *extended.Region) error { return r.GetNBI(s.Peer, from, dst) },
		}
	})
}

// valueLen is Step.Len as the size of a value: 0 and 9 are wrong.
func valueLen(s Step) (int, []error) {
	n := mod(s.Len, 10)
	if n < 1 || n > 8 {
		return n, []error{am.ErrBadArg}
	}
	return n, nil
}

func (m *model) putValue(s Step) {
	n, wants := valueLen(s)
	if !m.access(s, true, extended.Puts, []run{{s.At, n}}, wants, func(a *actor, _ *flight) forms {
		return forms{
			block: func() error { return a.x.PutValue(s.Peer, addr(s.At), s.Value, n) },
			nb:    func() (extended.Handle, error) { return a.x.PutValueNB(s.Peer, addr(s.At), s.Value, n) },
			nbi:   func(r *extended.Region) error { return r.PutValueNBI(s.Peer, addr(s.At), s.Value, n) },
		}
	}) {
		return
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], s.Value)
	copy(m.mem[s.Peer][s.At:], b[:n])
}

func (m *model) getValue(s Step) {
	n, wants := valueLen(s)
	var want uint64
	if wants == nil && m.reach(s.Peer, []run{{s.At, n}}) == nil {
		var b [8]byte
		copy(b[:], m.mem[s.Peer][s.At:s.At+n])
		want = binary.LittleEndian.Uint64(b[:])
	}
	m.access(explicit(s), false, extended.Gets, []run{{s.At, n}}, wants, func(a *actor, f *flight) forms {
		got := ^want
		f.check = func() string {
			if got != want {
				return fmt.Sprintf("value of %d bytes is %#x, not %#x", n, got, want)
			}
			return ""
		}
		return forms{
			block: func() (err error) { got, err = a.x.GetValue(s.Peer, addr(s.At), n); return err },
			nb:    func() (extended.Handle, error) { return a.x.GetValueNB(s.Peer, addr(s.At), &got, n) },
		}
	})
}

func (m *model) memset(s Step) {
	var wants []error
	if s.Len < 0 {
		wants = []error{am.ErrBadArg}
	}
	runs := []run{{s.At, max(s.Len, 0)}}
	if !m.access(s, true, extended.Puts, runs, wants, func(a *actor, _ *flight) forms {
		v := byte(s.Value)
		return forms{
			block: func() error { return a.x.Memset(s.Peer, addr(s.At), v, s.Len) },
			nb:    func() (extended.Handle, error) { return a.x.MemsetNB(s.Peer, addr(s.At), v, s.Len) },
			nbi:   func(r *extended.Region) error { return r.MemsetNBI(s.Peer, addr(s.At), v, s.Len) },
		}
	}) {
		return
	}
	for i := range s.Len {
		m.mem[s.Peer][s.At+i] = byte(s.Value)
	}
}

// wait waits for one of the handles that the rank has, or for the zero one.
func (m *model) wait(s Step) {
	if q := m.handle(s); q != nil {
		m.finish(q)
		return
	}
	m.by(s.Rank, func(a *actor) { a.wait(&flight{}) })
}

// try asks for one. What it finds complete is not known here, so the bytes stay
// claimed.
func (m *model) try(s Step) {
	f := &flight{}
	if q := m.handle(s); q != nil {
		f = q.f
	}
	m.by(s.Rank, func(a *actor) { a.try(f) })
}

func (m *model) handle(s Step) *pending {
	var hs []*pending
	for _, q := range m.under {
		if q.owner == s.Rank && q.how == "nb" {
			hs = append(hs, q)
		}
	}
	if len(hs) == 0 {
		return nil
	}
	return hs[mod(s.Arg, len(hs))]
}

func (m *model) waitAll(s Step) {
	m.by(s.Rank, (*actor).waitAll)
	m.drop(func(p *pending) bool { return p.owner == s.Rank && p.how == "nb" })
}

func (m *model) sync(s Step) {
	c := extended.Category(mod(s.Arg, 5))
	try := s.Do == "trySync"
	set := s.Form
	if set != "set" && set != "region" {
		set = "implicit"
	}
	if c == 0 || c > extended.All || set == "region" && m.open[s.Rank] {
		m.by(s.Rank, func(a *actor) { a.syncWrong(set, c) })
		return
	}
	switch {
	case set == "region": // nothing is in it
		m.by(s.Rank, func(a *actor) {
			if a.begun {
				a.want(a.region.Sync(c))
			} else {
				a.want(a.region.Sync(c), extended.ErrNotInit)
			}
		})
	case try:
		m.by(s.Rank, func(a *actor) { a.syncSet(set, c, true) })
	default:
		m.syncSet(s.Rank, set, c)
	}
}

func (m *model) beginRegion(s Step) {
	if mod(s.Arg, 8) == 7 {
		m.by(s.Rank, func(a *actor) { a.want(a.x.BeginRegion(a.x.Implicit()), am.ErrBadArg) })
		return
	}
	var wants []error
	if m.open[s.Rank] {
		wants = []error{am.ErrBadArg}
	}
	m.open[s.Rank] = true
	m.by(s.Rank, func(a *actor) {
		a.want(a.x.BeginRegion(&a.region), wants...)
		a.begun = true
	})
}

func (m *model) endRegion(s Step) {
	if m.open[s.Rank] {
		m.closeRegion(s.Rank)
		return
	}
	m.by(s.Rank, func(a *actor) {
		h, err := a.region.End()
		if a.want(err, am.ErrBadArg); h != 0 {
			a.fatalf("end of a region that is not open gave handle %#x", h)
		}
	})
}

// closeRegion ends rank's access region; what was begun in it has one handle now.
func (m *model) closeRegion(rank int) *pending {
	q := &pending{owner: rank, how: "nb", f: &flight{}}
	m.drop(func(p *pending) bool {
		if p.owner != rank || p.how != "region" {
			return false
		}
		q.spans = append(q.spans, p.spans...)
		return true
	})
	m.under = append(m.under, q)
	m.open[rank] = false
	m.by(rank, func(a *actor) { a.endRegion(q.f) })
	return q
}

// start fills the segments and lets the ranks meet, so that all are ready for
// messages.
func (m *model) start() {
	begin := m.snapshot()
	m.together(func(a *actor) {
		if b := begin[a.rank]; len(b) > 0 {
			a.want(a.x.Put(a.rank, segment.AttachBase, b))
		}
		a.want(a.bar.Barrier(0, barrier.Anonymous))
	}, nil)
}

func (m *model) snapshot() [][]byte {
	var s [][]byte
	for _, b := range m.mem {
		s = append(s, slices.Clone(b))
	}
	return s
}

// check synchronizes everything and has each rank look at its own segment and
// at another's.
func (m *model) check() {
	m.finishAll(-1, "")
	want := m.snapshot()
	m.together(func(a *actor) {
		for _, r := range []int{a.rank, (a.rank + 1) % m.n} {
			var got []byte
			if a.p.Bare {
				got = a.read(r, segment.AttachBase, len(want[r]))
			} else {
				got = make([]byte, len(want[r]))
				a.want(a.x.Get(r, segment.AttachBase, got))
			}
			if string(got) != string(want[r]) {
				a.fatalf("segment of rank %d: %s", r, difference(got, want[r]))
			}
		}
		if a.p.Bare {
			a.checkArenas(m, want)
			return
		}
		if n := a.x.Outstanding(); n != 0 {
			a.fatalf("%d handles outstanding, though all are synchronized", n)
		}
		if len(a.live) != 0 {
			a.fatalf("%d handles left over", len(a.live))
		}
	}, nil)
}

// last meets, so that no rank leaves before all have finished, and counts: what
// was sent has been received, as every message has had its effect.
func (m *model) last() {
	if slices.Contains(m.notified, true) {
		m.meet(Step{Form: "anonymous"})
	}
	stats := make([]conduits.Stats, m.n)
	m.together(func(a *actor) {
		if !a.p.Bare {
			a.want(a.bar.Barrier(0, barrier.Anonymous))
			return
		}
		a.want(a.ep.UnmapMemory(a.mapping)) // and what of it is registered
	}, nil)
	m.together(func(a *actor) { a.ep.Stats(&stats[a.rank]) }, func() string {
		for c := range conduits.Class(conduits.NumClasses) {
			var sent, received uint64
			for _, s := range stats {
				sent += s.Sent[c]
				received += s.Received[c]
			}
			if sent < received || c == conduits.Reply && sent > received || sent > received+m.refusedLong {
				return fmt.Sprintf("ranks have sent %d messages of class %v and received %d", sent, c, received)
			}
		}
		return ""
	})
}

// difference says where got differs from want.
func difference(got, want []byte) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d bytes, not %d", len(got), len(want))
	}
	n, first := 0, -1
	for i := range got {
		if got[i] != want[i] {
			if n++; first < 0 {
				first = i
			}
		}
	}
	if n == 0 {
		return ""
	}
	end := min(first+8, len(got))
	return fmt.Sprintf("%d bytes differ, the first at %d: % x, not % x", n, first, got[first:end], want[first:end])
}

// guarded is a buffer whose surroundings show whether they were written.
type guarded struct {
	all []byte
	n   int
}

const guard = 16

func newGuarded(n int) *guarded { return &guarded{scrambled(n+2*guard, 77), n} }

func (g *guarded) bytes() []byte { return g.all[guard : guard+g.n : guard+g.n] }

// differs says how the buffer differs from want, or its guards from what they
// were.
func (g *guarded) differs(want []byte) string {
	fresh := scrambled(g.n+2*guard, 77)
	copy(fresh[guard:guard+g.n], want)
	if d := difference(g.bytes(), fresh[guard:guard+g.n]); d != "" {
		return d
	}
	if difference(g.all, fresh) != "" {
		return "bytes before or after the destination were written"
	}
	return ""
}

// The kinds of reply: Step.Value modulo numReplies.
const (
	noReply = iota
	replyShort
	replyMedium
	replyLong
	replyPrepared
	replyCancelled // prepared, cancelled, and then a short one
	replyTry
	numReplies
)

// message is one request and its reply. Before it is sent only its sender
// writes to it.
type message struct {
	id       int
	src, dst int
	kind     am.Kind
	args     []uint32
	payload  []byte
	to       segment.NLA
	ev       am.Event

	reply    int
	rargs    []uint32
	rpayload []byte
	rto      segment.NLA

	delivered, replied atomic.Int32
}

// newMessage makes the message that s describes, or says why it must fail.
func (m *model) newMessage(s Step, kind am.Kind, n int) (*message, []error) {
	q := &message{id: len(m.msgs), src: s.Rank, dst: s.Peer, kind: kind, args: make([]uint32, mod(s.Arg, 19))}
	var wants []error
	if len(q.args) > am.MaxArgs {
		wants = append(wants, am.ErrBadArg)
	}
	for i := range q.args {
		q.args[i] = uint32(q.id+i) * 0x9e3779b1
	}
	if len(q.args) > 0 {
		q.args[0] = uint32(q.id)
	}
	if kind != am.Short {
		q.payload = scrambled(n, uint64(q.id)+5000)
	}
	if err := m.reach(s.Peer, nil); err != nil {
		wants = append(wants, err)
	}
	g := rand.New(rand.NewPCG(s.Value, 1))
	q.reply = int(s.Value % numReplies)
	q.rargs = make([]uint32, 1+g.IntN(am.MaxArgs))
	for i := range q.rargs {
		q.rargs[i] = uint32(q.id) + uint32(i)<<20
	}
	q.rpayload = scrambled(g.IntN(600), uint64(q.id)+9000)
	if q.reply == replyLong {
		room := len(m.mem[s.Rank])
		q.rpayload = q.rpayload[:min(len(q.rpayload), room)]
		q.rto = addr(g.IntN(room - len(q.rpayload) + 1))
	}
	return q, wants
}

func (m *model) message(s Step) {
	kind := map[string]am.Kind{"short": am.Short, "medium": am.Medium, "long": am.Long}[s.Do]
	n := m.length(s.Len)
	if kind == am.Long && uint64(n) > m.maxLong {
		return
	}
	if kind == am.Long && m.vague(s.Peer, []run{{s.At, n}}) {
		return // it is not delivered
	}
	q, wants := m.newMessage(s, kind, n)
	form := s.Form
	switch {
	case form == "try":
	case kind == am.Long && form == "nb":
	case kind == am.Medium && (form == "prepare" || form == "cancel"):
		q.payload = q.payload[:min(n, m.maxMedium)]
	default:
		form = ""
	}
	var spans []span
	switch kind {
	case am.Medium:
		if len(q.payload) > m.maxMedium {
			wants = append(wants, am.ErrBadArg)
		}
	case am.Long:
		q.to = addr(s.At)
		if m.reach(s.Peer, []run{{s.At, n}}) != nil {
			wants = append(wants, am.ErrBadArg)
		} else {
			spans = spansOf(s.Peer, true, run{s.At, n})
		}
	}
	if len(wants) > 0 {
		m.by(s.Rank, func(a *actor) { a.send(q, form, wants) })
		return
	}
	if form == "cancel" {
		m.by(s.Rank, func(a *actor) { a.cancel(q) })
		return
	}
	if q.reply == replyLong {
		back := span{s.Rank, int(q.rto - segment.AttachBase), int(q.rto-segment.AttachBase) + len(q.rpayload), true}
		if back.hi > back.lo && clash(spans, []span{back}) {
			q.reply = replyShort // the reply would fall on the request's data
		} else if back.hi > back.lo {
			spans = append(spans, back)
		}
	}
	m.claim(spans)
	if kind == am.Long && n > 0 {
		copy(m.mem[s.Peer][s.At:], q.payload)
	}
	if q.reply == replyLong {
		copy(m.mem[s.Rank][int(q.rto-segment.AttachBase):], q.rpayload)
	}
	m.msgs = append(m.msgs, q)
	m.under = append(m.under, &pending{owner: s.Rank, how: "message", spans: spans, m: q})
	m.by(s.Rank, func(a *actor) { a.send(q, form, nil) })
}

// flood makes all ranks send at once.
func (m *model) flood(s Step) {
	qs := make([][]*message, m.n)
	kind, n := am.Short, 0
	if s.Value/numReplies%2 == 1 {
		kind, n = am.Medium, min(m.length(s.Len), m.maxMedium)
	}
	for r := range m.n {
		for range 4 * mod(s.Arg, 67) {
			one := Step{Rank: r, Peer: mod(r+1+s.Peer%m.n, m.n), Value: s.Value, Arg: 1 + mod(s.Arg, am.MaxArgs)}
			if one.Value%numReplies == replyLong {
				one.Value++
			}
			q, _ := m.newMessage(one, kind, n)
			m.msgs = append(m.msgs, q)
			qs[r] = append(qs[r], q)
		}
	}
	m.together(func(a *actor) {
		for _, q := range qs[a.rank] {
			a.send(q, "", nil)
		}
		for _, q := range qs[a.rank] {
			a.awaitMessage(q)
		}
	}, nil)
}

// notify gives the barrier a rank's offer.
func (m *model) notify(s Step) {
	o := offer1(s)
	var wants []error
	if mod(s.Arg, 67) == 66 {
		o.flags |= 1 << 7
		wants = append(wants, am.ErrBadArg)
	}
	if m.notified[s.Rank] {
		wants = append(wants, errs.ErrNotReady)
	}
	if wants == nil {
		m.notified[s.Rank], m.offers[s.Rank] = true, o
	}
	m.by(s.Rank, func(a *actor) { a.want(a.bar.Notify(o.id, o.flags), wants...) })
}

func offer1(s Step) offered {
	o := offered{id: uint32(s.Value % 3)}
	switch s.Form {
	case "anonymous":
		o.flags = barrier.Anonymous
	case "mismatch":
		o.flags = barrier.Mismatch
	}
	return o
}

// meet finishes the phase: ranks that have not notified do so, all wait.
func (m *model) meet(s Step) {
	before := slices.Clone(m.notified)
	for r := range m.n {
		if !before[r] {
			m.offers[r] = offer1(s)
			if s.Form == "mismatch" && r != s.Rank {
				m.offers[r].flags = 0
			}
		}
	}
	offers := slices.Clone(m.offers)
	var id uint32
	named, mismatch := false, false
	for _, o := range offers {
		switch {
		case o.flags&barrier.Mismatch != 0:
			mismatch = true
		case o.flags&barrier.Anonymous != 0:
		case named && o.id != id:
			mismatch = true
		default:
			id, named = o.id, true
		}
	}
	if mismatch {
		id, named = 0, false
	}
	m.together(func(a *actor) {
		o := offers[a.rank]
		if !before[a.rank] {
			a.want(a.bar.Notify(o.id, o.flags))
		}
		if a.rank == s.Rank {
			switch mod(s.Arg, 8) {
			case 4:
				o.flags = barrier.Anonymous
			case 5:
				o.id++
			case 6:
				o.flags = barrier.Mismatch
			}
		}
		var wants []error
		if mismatch || o.flags&barrier.Mismatch != 0 || named && o.id != id && o.flags&barrier.Anonymous == 0 {
			wants = []error{errs.ErrBarrierMismatch}
		}
		a.want(a.meet(o, s.Form == "try"), wants...)
		if gotID, got := a.bar.Result(); got != named || named && gotID != id {
			a.fatalf("the barrier's result is id %d, named %v; the ranks agreed on id %d, named %v", gotID, got, id, named)
		}
	}, nil)
	clear(m.notified)
}

// tryMeet asks whether the phase is over.
func (m *model) tryMeet(s Step) {
	o := offer1(s)
	switch {
	case !m.notified[s.Rank]:
		m.by(s.Rank, func(a *actor) {
			done, err := a.bar.Try(o.id, o.flags)
			if a.want(err, errs.ErrNotReady); done {
				a.fatalf("a barrier that was not notified is over")
			}
			a.want(a.bar.Wait(o.id, o.flags), errs.ErrNotReady)
		})
	case slices.Contains(m.notified, false):
		m.by(s.Rank, func(a *actor) {
			done, err := a.bar.Try(o.id, o.flags)
			if a.want(err); done {
				a.fatalf("the barrier is over before all ranks have notified")
			}
		})
	default:
		s.Form = "try"
		m.meet(s)
	}
}
