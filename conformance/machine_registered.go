package conformance

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/segment"
)

// arenaSize is how many bytes each rank of a bare program has beyond its segment, of Go
// memory and of mapped memory each: the arenas, of which it registers windows. In
// the model's memory they follow the segments.
const arenaSize = 3*segment.PageSize + 72

const arenas = 2 // of a rank

// arena is the index of rank's arena of a kind in the model's memory.
func (m *model) arena(rank, kind int) int { return m.n*(1+kind) + rank }

// window is a part of an arena that is registered, for good or until deregistered.
type window struct {
	owner, kind int
	area        int // index in the model's memory
	off, n      int // in the arena
	rights      segment.Rights
	peer        int
	dead        bool // as the model goes

	r  segment.Registration // as the program runs
	to segment.NLA
}

func (w *window) permits(rank int, need segment.Rights) bool {
	return !w.dead && w.rights&need == need && (w.peer == segment.AnyPeer || w.peer == rank)
}

// addArenas gives the model the arenas, as makeArenas makes them.
func (m *model) addArenas() {
	for k := range arenas {
		for r := range m.n {
			m.mem = append(m.mem, scrambled(arenaSize, uint64(m.arena(r, k))+1000))
		}
	}
}

func (a *actor) makeArenas(n int) {
	mem, err := a.ep.MapMemory(arenaSize)
	a.want(err)
	a.arenas = [arenas][]byte{contract.OnPage(arenaSize), mem[:arenaSize]}
	a.mapping = mem
	for k, b := range a.arenas {
		scramble(b, uint64(n*(1+k)+a.rank)+1000)
	}
}

// checkArenas compares the arenas with the model, by their owners' eyes.
func (a *actor) checkArenas(m *model, want [][]byte) {
	for k, b := range a.arenas {
		if d := difference(b, want[m.arena(a.rank, k)]); d != "" {
			a.fatalf("arena %d of rank %d: %s", k, a.rank, d)
		}
	}
}

func (m *model) register(s Step) {
	w := &window{owner: s.Rank, kind: mod(s.Arg, arenas), rights: segment.RightsAll, peer: segment.AnyPeer}
	w.area = m.arena(w.owner, w.kind)
	w.off = mod(s.At, arenaSize)
	w.n = 1 + mod(m.length(s.Len), arenaSize-w.off)
	if s.Value&8 != 0 {
		w.rights = 1 + segment.Rights(s.Value%uint64(segment.RightsAll))
	}
	if s.Value&16 != 0 {
		w.peer = mod(s.Peer, m.n)
	}
	m.windows = append(m.windows, w)
	m.by(s.Rank, func(a *actor) {
		t, err := a.ep.ATU()
		a.want(err)
		w.r, err = t.Register(a.arenas[w.kind][w.off:w.off+w.n], w.rights, w.peer)
		a.want(err)
		var k uint64
		if w.to, k = w.r.At(0); k != uint64(w.n) {
			a.fatalf("%d bytes are registered at %v, %d of them together", w.n, w.to, k)
		}
	})
}

// window is the one that s chooses: a live one, or one time in four any.
func (m *model) window(s Step) *window {
	ws := m.windows
	if s.Value&3 != 0 {
		ws = slices.DeleteFunc(slices.Clone(ws), func(w *window) bool { return w.dead })
	}
	if len(ws) == 0 {
		return nil
	}
	return ws[mod(s.Arg, len(ws))]
}

func (m *model) deregister(s Step) {
	w := m.window(s)
	if w == nil {
		return
	}
	if w.dead {
		m.by(w.owner, func(a *actor) {
			t, err := a.ep.ATU()
			a.want(err)
			a.want(t.Deregister(w.r), conduits.ErrBadArg)
		})
		return
	}
	m.claim(spansOf(w.area, true, run{w.off, w.n}))
	w.dead = true
	m.by(w.owner, func(a *actor) {
		t, err := a.ep.ATU()
		a.want(err)
		a.want(t.Deregister(w.r))
	})
}

// part is where in w the n bytes lie that s means, at most all. Every fourth that
// could lie behind the end, in the same page, does: inside is false then.
func (w *window) part(s Step, n int) (off, k int, inside bool) {
	if rest := -(w.off + w.n) & (segment.PageSize - 1); rest > 0 && s.Value&12 == 12 {
		return w.n, 1 + mod(n, rest), false
	}
	off = mod(s.At, w.n)
	return off, min(max(n, 1), w.n-off), true
}

// beyond writes down an operation on n bytes at off of w, and reports whether it is
// permitted.
func (m *model) beyond(s Step, w *window, off, n int, inside bool, need segment.Rights, src []byte, begin func(a *actor, cookie uint64, o *bareOp) (uint64, conduits.Event, error), check func(o *bareOp) string) bool {
	if !inside || !w.permits(s.Rank, need) {
		m.by(s.Rank, func(a *actor) { a.isRefused(begin) })
		return false
	}
	spans := spansOf(w.area, need != segment.RightRead, run{w.off + off, n})
	m.claim(spans)
	o := &bareOp{want: conduits.RemoteDone, src: src}
	if src != nil && s.Arg&1 != 0 {
		o.want |= conduits.SourceDone
	}
	o.check = func() string { return check(o) }
	m.under = append(m.under, &pending{owner: s.Rank, how: "bare", spans: spans, o: o})
	m.by(s.Rank, func(a *actor) {
		a.begin0(o, func(c uint64) (uint64, conduits.Event, error) { return begin(a, c, o) })
	})
	return true
}

// isRefused does what the target must refuse, to its end.
func (a *actor) isRefused(begin func(a *actor, cookie uint64, o *bareOp) (uint64, conduits.Event, error)) {
	o := &bareOp{want: conduits.RemoteDone, mayFail: true}
	a.ops = append(a.ops, o)
	_, ev, err := begin(a, uint64(len(a.ops)-1), o)
	if err != nil {
		a.want(err, segment.ErrFault)
		return
	}
	o.happened(ev & o.want)
	a.until("a refusal", func() bool { return o.have == o.want })
	if o.err == nil {
		a.fatalf("what is not permitted has been done")
	}
}

func (m *model) beyondPut(s Step) {
	w := m.window(s)
	if w == nil {
		return
	}
	off, n, inside := w.part(s, m.length(s.Len))
	data := scrambled(n, s.Value)
	src := slices.Clone(data)
	if m.beyond(s, w, off, n, inside, segment.RightWrite, src, func(a *actor, c uint64, o *bareOp) (uint64, conduits.Event, error) {
		ev, err := post.Put(a.ep, w.owner, w.to+segment.NLA(off), src, o.want, c)
		return 0, ev, err
	}, fine) {
		copy(m.mem[w.area][w.off+off:], data)
	}
}

func (m *model) beyondGet(s Step) {
	w := m.window(s)
	if w == nil {
		return
	}
	off, n, inside := w.part(s, m.length(s.Len))
	b := newGuarded(n)
	var want []byte
	if inside {
		want = slices.Clone(m.mem[w.area][w.off+off : w.off+off+n])
	}
	m.beyond(s, w, off, n, inside, segment.RightRead, nil, func(a *actor, c uint64, o *bareOp) (uint64, conduits.Event, error) {
		ev, err := post.Get(a.ep, b.bytes(), w.owner, w.to+segment.NLA(off), o.want, c)
		return 0, ev, err
	}, func(*bareOp) string { return b.differs(want) })
}

// aligned is the first aligned word of n bytes at or after where s points, or
// false if w has none.
func (w *window) aligned(s Step, n int) (off int, ok bool) {
	at := w.off + mod(s.At, w.n)
	at = (at + n - 1) / n * n
	return at - w.off, at+n <= w.off+w.n
}

func (m *model) beyondWord(s Step) {
	w := m.window(s)
	if w == nil {
		return
	}
	n := 1 << mod(s.Len, 4)
	off, ok := w.aligned(s, n)
	if !ok {
		return
	}
	if m.beyond(s, w, off, n, true, segment.RightWrite, nil, func(a *actor, c uint64, o *bareOp) (uint64, conduits.Event, error) {
		ev, err := post.PutWord(a.ep, w.owner, w.to+segment.NLA(off), s.Value, n, o.want, c)
		return 0, ev, err
	}, fine) {
		m.setWord(w.area, w.off+off, n, s.Value)
	}
}

func (m *model) beyondAtomic(s Step) {
	w := m.window(s)
	if w == nil {
		return
	}
	t := conduits.AtomicType(mod(s.Len, int(conduits.NumAtomicTypes)))
	op := conduits.AtomicOp(mod(s.Arg, int(conduits.NumAtomicOps)))
	n := t.Size()
	off, ok := w.aligned(s, n)
	if !ok || conduits.CheckAtomic("", op, t, 0) != nil {
		return
	}
	a, b := operand(t, s.Value), operand(t, s.Value>>3)
	old := m.word(w.area, w.off+off, n)
	if t.Float() && math.IsNaN(float(t, old)) {
		op = conduits.AtomicStore
	}
	if s.Value&1 == 0 && (op == conduits.AtomicCAS || op == conduits.AtomicFCAA) {
		a = old
	}
	now := applied(op, t, old, a, b)
	if m.beyond(s, w, off, n, true, segment.RightAtomic, nil, func(r *actor, c uint64, _ *bareOp) (uint64, conduits.Event, error) {
		return post.Atomic(r.ep, w.owner, w.to+segment.NLA(off), op, t, a, b, c)
	}, func(o *bareOp) string {
		if o.value != old {
			return fmt.Sprintf("atomic %d of type %d with %#x and %#x on %#x gives %#x", op, t, a, b, old, o.value)
		}
		return ""
	}) {
		m.setWord(w.area, w.off+off, n, now)
	}
}

// beyondLong sends a message with data, or one that is refused and not delivered.
func (m *model) beyondLong(s Step) {
	w := m.window(s)
	if w == nil {
		return
	}
	off, n, inside := w.part(s, min(m.length(s.Len), m.maxMedium))
	q := &bareMessage{
		id: len(m.bare), src: s.Rank, dst: w.owner, long: true, window: w, off: off,
		words: make([]uint32, mod(s.Arg, conduits.MaxWords+1)), payload: scrambled(n, uint64(len(m.bare))+5000),
		reply: int(s.Value) & bareSmall,
	}
	if !inside || !w.permits(s.Rank, segment.RightWrite) {
		m.refusedLong++
		m.bare = append(m.bare, q)
		q.src = -1 // it must not arrive
		m.by(s.Rank, func(a *actor) { a.sendBare(q, "") })
		return
	}
	spans := spansOf(w.area, true, run{w.off + off, n})
	m.claim(spans)
	copy(m.mem[w.area][w.off+off:], q.payload)
	m.bare = append(m.bare, q)
	m.under = append(m.under, &pending{owner: s.Rank, how: "message", spans: spans, b: q})
	m.by(s.Rank, func(a *actor) { a.sendBare(q, "") })
}

// fault takes note of the error of a completion, and reports whether it may be.
func (o *bareOp) fault(err error) bool {
	if err != nil {
		o.err = err
	}
	return err == nil || o.mayFail && errors.Is(err, segment.ErrFault)
}
