package conformance

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/segment"
)

// runsShape is a transfer of several runs: byte i of it lies at remote[i] of the
// segment and at local[i] of a buffer of size bytes.
type runsShape struct {
	remote, local []int
	size          int
	runs          []run
	// shape makes it, with a buffer.
	shape func(buf []byte) (extended.Shape, error)
}

// put gives the forms of a put from buf, of which exactly one is used.
func (h *runsShape) put(a *actor, s Step, buf []byte) forms {
	shape, err := h.shape(buf)
	a.want(err)
	return forms{
		block: func() error { return a.x.PutShape(s.Peer, shape) },
		nb:    func() (extended.Handle, error) { return a.x.PutShapeNB(s.Peer, shape) },
		nbi:   func(r *extended.Region) error { return r.PutShapeNBI(s.Peer, shape) },
		src:   buf,
		late:  true,
	}
}

// get gives the forms of a get to buf, of which exactly one is used.
func (h *runsShape) get(a *actor, s Step, buf []byte) forms {
	shape, err := h.shape(buf)
	a.want(err)
	return forms{
		block: func() error { return a.x.GetShape(s.Peer, shape) },
		nb:    func() (extended.Handle, error) { return a.x.GetShapeNB(s.Peer, shape) },
		nbi:   func(r *extended.Region) error { return r.GetShapeNBI(s.Peer, shape) },
	}
}

// shaped does a strided, indexed or vector transfer.
func (m *model) shaped(s Step) {
	g := rand.New(rand.NewPCG(s.Value, 2))
	put := s.Do[:3] == "put"
	var h runsShape
	switch s.Do[3:] {
	case "Strided":
		h = stridedShape(g, s)
	case "Indexed":
		h = indexedShape(g, s)
	default:
		h = vectorShape(g, s)
	}
	if put {
		data := scrambled(h.size, s.Value)
		if m.access(s, true, extended.Puts, h.runs, nil, func(a *actor, _ *flight) forms {
			return h.put(a, s, slices.Clone(data))
		}) {
			for i, r := range h.remote {
				m.mem[s.Peer][r] = data[h.local[i]]
			}
		}
		return
	}
	want := scrambled(h.size+2*guard, 77)[guard : guard+h.size]
	if m.reach(s.Peer, h.runs) == nil {
		for i, r := range h.remote {
			want[h.local[i]] = m.mem[s.Peer][r]
		}
	}
	m.access(s, false, extended.Gets, h.runs, nil, func(a *actor, f *flight) forms {
		b := newGuarded(h.size)
		f.check = func() string { return b.differs(want) }
		return h.get(a, s, b.bytes())
	})
}

// stridedShape is a box of up to three dimensions, whose rows may run backwards
// at the target, and which is stored in another order of dimensions here.
func stridedShape(g *rand.Rand, s Step) runsShape {
	elem := mod(s.Len, 9)
	d := g.IntN(4)
	counts, far, near := make([]int, d), make([]int, d), make([]int, d)
	elems := 1
	for i := range d {
		counts[i] = 1 + g.IntN(4)
		if g.IntN(20) == 0 {
			counts[i] = 0
		}
		elems *= counts[i]
	}
	base, off := s.At, 0
	at := elem
	for i := d - 1; i >= 0; i-- {
		far[i] = at + g.IntN(2)*g.IntN(9)
		at = far[i] * max(counts[i], 1)
		if g.IntN(4) == 0 && counts[i] > 0 {
			base += far[i] * (counts[i] - 1)
			far[i] = -far[i]
		}
	}
	size := elem
	for _, i := range g.Perm(d) {
		near[i] = size + g.IntN(2)*g.IntN(5)
		size = near[i] * max(counts[i], 1)
	}
	h := runsShape{size: size}
	if elem > 0 && elems > 0 {
		walk(counts, far, base, func(b int) {
			h.runs = append(h.runs, run{b, elem})
			for k := range elem {
				h.remote = append(h.remote, b+k)
			}
		})
		walk(counts, near, off, func(b int) {
			for k := range elem {
				h.local = append(h.local, b+k)
			}
		})
	}
	h.shape = func(buf []byte) (extended.Shape, error) {
		return extended.Strided(elem, counts,
			extended.RemoteBox{Addr: addr(base), Strides: far},
			extended.LocalBox{Mem: buf, Offset: off, Strides: near})
	}
	return h
}

// walk visits the elements of a box in order.
func walk(counts, strides []int, base int, visit func(at int)) {
	if len(counts) == 0 {
		visit(base)
		return
	}
	for i := range counts[0] {
		walk(counts[1:], strides[1:], base+i*strides[0], visit)
	}
}

// indexedShape is 12 k bytes in equal runs, other ones on each side, in any
// order.
func indexedShape(g *rand.Rand, s Step) runsShape {
	total := 12 * mod(s.Len, 6)
	side := func(from int) (offs []int, n, end int) {
		n = []int{1, 2, 3, 4, 6, 12}[g.IntN(6)]
		end = from
		for range total / n {
			end += g.IntN(2) * g.IntN(6)
			offs = append(offs, end)
			end += n
		}
		g.Shuffle(len(offs), func(i, j int) { offs[i], offs[j] = offs[j], offs[i] })
		return offs, n, end
	}
	far, farLen, _ := side(s.At)
	near, nearLen, size := side(0)
	h := runsShape{size: size}
	var addrs []segment.NLA
	for _, o := range far {
		h.runs = append(h.runs, run{o, farLen})
		addrs = append(addrs, addr(o))
		for k := range farLen {
			h.remote = append(h.remote, o+k)
		}
	}
	for _, o := range near {
		for k := range nearLen {
			h.local = append(h.local, o+k)
		}
	}
	h.shape = func(buf []byte) (extended.Shape, error) {
		return extended.Indexed(extended.RemoteRuns{Addrs: addrs, Len: farLen}, extended.LocalRuns{Mem: buf, Offsets: near, Len: nearLen})
	}
	return h
}

// vectorShape is Len mod 50 bytes in runs of any length, none included.
func vectorShape(g *rand.Rand, s Step) runsShape {
	total := mod(s.Len, 50)
	side := func(from int) (runs []run, end int) {
		end = from
		for left := total; left > 0; {
			n := min(g.IntN(20), left)
			end += g.IntN(2) * g.IntN(6)
			runs = append(runs, run{end, n})
			end += n
			left -= n
		}
		return runs, end
	}
	far, _ := side(s.At)
	near, size := side(0)
	h := runsShape{size: size, runs: far}
	var extents []extended.Extent
	for _, r := range far {
		extents = append(extents, extended.Extent{Addr: addr(r.off), Len: r.n})
		for k := range r.n {
			h.remote = append(h.remote, r.off+k)
		}
	}
	for _, r := range near {
		for k := range r.n {
			h.local = append(h.local, r.off+k)
		}
	}
	h.shape = func(buf []byte) (extended.Shape, error) {
		var bufs [][]byte
		for _, r := range near {
			bufs = append(bufs, buf[r.off:r.off+r.n])
		}
		return extended.Vector(extents, bufs)
	}
	return h
}

// word reads n bytes of a segment, little-endian.
func (m *model) word(rank, off, n int) (v uint64) {
	for i := n - 1; i >= 0; i-- {
		v = v<<8 | uint64(m.mem[rank][off+i])
	}
	return v
}

func (m *model) setWord(rank, off, n int, v uint64) {
	for i := range n {
		m.mem[rank][off+i] = byte(v >> (8 * i))
	}
}

// atomic does one atomic. Len mod 8 of 7 keeps an address that is not aligned.
func (m *model) atomic(s Step) {
	t := conduits.AtomicType(mod(s.Arg, int(conduits.NumAtomicTypes)))
	op := conduits.AtomicOp(mod(s.Arg/int(conduits.NumAtomicTypes), int(conduits.NumAtomicOps)))
	n := t.Size()
	if mod(s.Len, 8) != 7 {
		s.At -= mod(s.At, n)
	}
	var wants []error
	if t.Float() && (op == conduits.AtomicAnd || op == conduits.AtomicOr || op == conduits.AtomicXor || op == conduits.AtomicFCAA) {
		wants = append(wants, extended.ErrNotSupported)
	}
	if mod(s.At, n) != 0 {
		wants = append(wants, extended.ErrBadArg)
	}
	k := atomicPlan{t: t, op: op, a: operand(t, s.Value), b: operand(t, s.Value>>3), silent: s.Value&6 == 6}
	fine := wants == nil && m.reach(s.Peer, []run{{s.At, n}}) == nil
	if fine {
		k.old = m.word(s.Peer, s.At, n)
		if t.Float() && math.IsNaN(float(t, k.old)) && op != conduits.AtomicCAS {
			k.op = conduits.AtomicStore // what bits a result has that is not a number is not promised
		}
		if (op == conduits.AtomicCAS || op == conduits.AtomicFCAA) && s.Value&1 == 0 {
			k.a = k.old
		}
		k.now = applied(k.op, t, k.old, k.a, k.b)
		k.fits = !lessInt(t, k.a, k.old)
	}
	if s.Form == "named" && wants != nil {
		s.Form = ""
	}
	cat := extended.Gets
	if k.silent {
		cat = extended.Puts
	}
	if !m.access(s, true, cat, []run{{s.At, n}}, wants, func(r *actor, f *flight) forms {
		return atomicForms(r, f, s, k)
	}) {
		return
	}
	m.setWord(s.Peer, s.At, n, k.now)
}

// operand makes a small or any number of type t of bits; floats are never NaN.
func operand(t conduits.AtomicType, v uint64) uint64 {
	switch t {
	case conduits.Float32:
		return uint64(math.Float32bits(float32(int16(v)) / 4))
	case conduits.Float64:
		return math.Float64bits(float64(int32(v)) / 8)
	case conduits.Int32, conduits.Uint32:
		return uint64(uint32(v))
	}
	return v
}

func float(t conduits.AtomicType, bits uint64) float64 {
	if t == conduits.Float32 {
		return float64(math.Float32frombits(uint32(bits)))
	}
	return math.Float64frombits(bits)
}

// lessInt compares integers of type t.
func lessInt(t conduits.AtomicType, x, y uint64) bool {
	switch t {
	case conduits.Int32:
		return int32(x) < int32(y)
	case conduits.Int64:
		return int64(x) < int64(y)
	}
	return x < y
}

// applied is the new value of a word after an atomic, computed in the plainest way.
func applied(op conduits.AtomicOp, t conduits.AtomicType, old, a, b uint64) uint64 {
	v := old
	switch op {
	case conduits.AtomicStore, conduits.AtomicSwap:
		v = a
	case conduits.AtomicCAS:
		if old == a {
			v = b
		}
	case conduits.AtomicAdd:
		switch t {
		case conduits.Float32:
			v = uint64(math.Float32bits(math.Float32frombits(uint32(old)) + math.Float32frombits(uint32(a))))
		case conduits.Float64:
			v = math.Float64bits(math.Float64frombits(old) + math.Float64frombits(a))
		default:
			v = old + a
		}
	case conduits.AtomicAnd:
		v = old & a
	case conduits.AtomicOr:
		v = old | a
	case conduits.AtomicXor:
		v = old ^ a
	case conduits.AtomicMin, conduits.AtomicMax:
		f := math.Min
		if op == conduits.AtomicMax {
			f = math.Max
		}
		switch {
		case t == conduits.Float32:
			v = uint64(math.Float32bits(float32(f(float(t, old), float(t, a)))))
		case t == conduits.Float64:
			v = math.Float64bits(f(float(t, old), float(t, a)))
		case lessInt(t, a, old) == (op == conduits.AtomicMin):
			v = a
		}
	case conduits.AtomicFCAA:
		if !lessInt(t, a, old) {
			v = old + b
		}
	}
	if t.Size() == 4 {
		v = uint64(uint32(v))
	}
	return v
}

// addAll has all ranks add to one word at once: what they find are the sums of
// some order.
func (m *model) addAll(s Step) {
	s.At &^= 7
	per := 1 + mod(s.Arg, 8)
	if m.vague(s.Peer, []run{{s.At, 8}}) {
		return
	}
	if m.reach(s.Peer, []run{{s.At, 8}}) != nil {
		m.together(func(a *actor) {
			_, err := extended.FetchAdd[uint64](a.x, s.Peer, addr(s.At), s.Value)
			a.want(err, am.ErrBadArg)
		}, nil)
		return
	}
	m.claim(spansOf(s.Peer, true, run{s.At, 8}))
	base := m.word(s.Peer, s.At, 8)
	found := make([][]uint64, m.n)
	m.together(func(a *actor) {
		for range per {
			v, err := extended.FetchAdd[uint64](a.x, s.Peer, addr(s.At), s.Value)
			a.want(err)
			found[a.rank] = append(found[a.rank], v)
		}
	}, func() string {
		var want []uint64
		for i := range m.n * per {
			want = append(want, base+uint64(i)*s.Value)
		}
		got := slices.Concat(found...)
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Sprintf("adding %d to %d, the ranks found %d", s.Value, base, got)
		}
		return ""
	})
	m.setWord(s.Peer, s.At, 8, base+uint64(m.n*per)*s.Value)
}

// signal changes a word that no rank waits for. Arg mod 16 of 15 keeps an address
// that is not aligned.
func (m *model) signal(s Step) {
	if mod(s.Arg, 16) != 15 {
		s.At &^= 7
	}
	op := extended.SignalOp(mod(s.Arg, 2))
	var wants []error
	if mod(s.Arg, 67) == 66 {
		op = 2
		wants = append(wants, am.ErrBadArg)
	}
	if mod(s.At, 8) != 0 {
		wants = append(wants, am.ErrBadArg)
	}
	data := scrambled(max(s.Len, 0), s.Value)
	word, rest := run{s.At, 8}, run{s.At + 8, len(data)}
	runs := []run{word}
	if s.Form != "" {
		runs = append(runs, rest)
	}
	to, sig := addr(s.At+8), addr(s.At)
	handles, gets := strings.HasSuffix(s.Form, "nb"), strings.HasPrefix(s.Form, "get")
	var there []byte // what a get finds, if it is good
	if uint(s.Peer) < uint(m.n) && s.At >= 0 && s.At+8 <= len(m.mem[s.Peer]) {
		mem := m.mem[s.Peer][s.At+8:]
		there = slices.Clone(mem[:min(len(data), len(mem))])
	}
	read := func(got []byte, err error) error {
		if err == nil && !bytes.Equal(got, there) {
			err = fmt.Errorf("a get with signal has %x, want %x", got, there)
		}
		return err
	}
	how := s
	how.Form = ""
	if handles {
		how.Form = "nb"
	}
	if !m.access(how, true, extended.Puts, runs, wants, func(a *actor, _ *flight) forms {
		return forms{
			block: func() error {
				switch {
				case s.Form == "":
					return a.x.Signal(s.Peer, sig, op, s.Value)
				case gets:
					b := make([]byte, len(data))
					return read(b, a.x.GetSignal(s.Peer, to, b, sig, op, s.Value))
				}
				return a.x.PutSignal(s.Peer, to, data, sig, op, s.Value)
			},
			nb: func() (extended.Handle, error) {
				if gets {
					b := make([]byte, len(data))
					h, err := a.x.GetSignalNB(s.Peer, to, b, sig, op, s.Value)
					return h, read(b, err)
				}
				return a.x.PutSignalNB(s.Peer, to, data, sig, op, s.Value)
			},
		}
	}) {
		return
	}
	m.signalled(s.Peer, s.At, op, s.Value)
	if s.Form != "" && !gets {
		copy(m.mem[s.Peer][min(s.At+8, len(m.mem[s.Peer])):], data)
	}
}

func (m *model) signalled(rank, off int, op extended.SignalOp, v uint64) {
	if op == extended.SignalAdd {
		v += m.word(rank, off, 8)
	}
	m.setWord(rank, off, 8, v)
}

// holds reports whether comparison c of word and v is true.
func holds(c extended.Cmp, word, v uint64) bool {
	return [...]bool{word == v, word != v, word > v, word >= v, word < v, word <= v}[c]
}

// comparison makes one that holds for now, and not for old where that can be.
func comparison(c extended.Cmp, old, now uint64) (extended.Cmp, uint64) {
	switch {
	case c == extended.Ne && now != old:
		return c, old
	case c == extended.Gt && now > 0:
		return c, now - 1
	case c == extended.Lt && now < math.MaxUint64:
		return c, now + 1
	case c == extended.Ge, c == extended.Le:
		return c, now
	}
	return extended.Eq, now
}

// await has the rank wait for words of its own that Peer signals meanwhile.
func (m *model) await(s Step) {
	s.At &^= 7
	k := 1
	if s.Form == "all" || s.Form == "any" || s.Form == "some" {
		k += mod(s.Arg, 3)
	}
	words := run{s.At, 8 * k}
	var offs []int
	var sigs []segment.NLA
	for i := range k {
		offs = append(offs, s.At+8*i)
		sigs = append(sigs, addr(s.At+8*i))
	}
	if wrong := m.own(s.Rank, offs...); wrong != nil {
		m.by(s.Rank, func(a *actor) {
			a.want(a.x.WaitUntilAll(sigs, extended.Ge, 0), wrong)
			_, err := a.x.WaitUntilAny(sigs, -1, extended.Ge, 0)
			a.want(err, wrong)
			found, err := a.x.TestUntilSome(nil, sigs, extended.Ge, 0)
			if a.want(err, wrong); len(found) > 0 {
				a.fatalf("TestUntilSome finds %d among words outside the segment", found)
			}
		})
		return
	}
	if m.reach(s.Peer, nil) != nil {
		m.by(s.Rank, func(a *actor) {
			a.want(a.x.Signal(s.Peer, addr(s.At), extended.SignalAdd, 1), am.ErrBadArg)
		})
		return
	}
	op := extended.SignalOp(mod(s.Arg/6, 2))
	if k > 1 {
		op = extended.SignalSet
	}
	var data []byte
	if s.Form == "put" {
		room := len(m.mem[s.Rank]) - s.At - 8
		data = scrambled(min(max(s.Len, 0), room), s.Value)
	}
	m.claim(spansOf(s.Rank, true, words, run{s.At + 8, len(data)}))
	old := m.word(s.Rank, s.At, 8)
	for _, off := range offs {
		m.signalled(s.Rank, off, op, s.Value)
	}
	copy(m.mem[s.Rank][s.At+8:], data)
	now := m.word(s.Rank, s.At, 8)
	c, v := comparison(extended.Cmp(mod(s.Arg, 6)), old, now)
	if k > 1 {
		c, v = extended.Eq, now
	}
	w := &waitFor{sigs: sigs, c: c, v: v, old: old, now: now, data: data, form: s.Form, after: addr(s.At + 8)}
	signal := func(a *actor) {
		for _, sig := range sigs {
			if s.Form == "put" {
				a.want(a.x.PutSignal(s.Rank, w.after, data, sig, op, s.Value))
			} else {
				a.want(a.x.Signal(s.Rank, sig, op, s.Value))
			}
		}
	}
	ranks := []int{s.Rank}
	if s.Peer != s.Rank {
		ranks = append(ranks, s.Peer)
	}
	m.moves = append(m.moves, &move{step: m.step, ranks: ranks, run: func(a *actor) {
		if a.rank == s.Peer {
			signal(a)
		}
		if a.rank == s.Rank {
			a.await(w)
		}
	}})
}

// waitFor describes a wait for words.
type waitFor struct {
	sigs     []segment.NLA
	c        extended.Cmp
	v        uint64
	old, now uint64 // the first word before and after
	form     string
	data     []byte // that is put before the word changes
	after    segment.NLA
}

// test compares a word of the own segment.
func (m *model) test(s Step) {
	s.At &^= 7
	if wrong := m.own(s.Rank, s.At); wrong != nil {
		m.by(s.Rank, func(a *actor) {
			_, _, err := a.x.TestUntil(addr(s.At), extended.Eq, s.Value)
			a.want(err, wrong)
			_, err = a.x.WaitUntil(addr(s.At), extended.Ge, 0)
			a.want(err, wrong)
		})
		return
	}
	m.claim(spansOf(s.Rank, false, run{s.At, 8}))
	word := m.word(s.Rank, s.At, 8)
	c, v := extended.Cmp(mod(s.Arg, 6)), s.Value
	if s.Value&1 == 0 {
		v = word + s.Value&2
	}
	m.by(s.Rank, func(a *actor) {
		got, ok, err := a.x.TestUntil(addr(s.At), c, v)
		if a.want(err); got != word || ok != holds(c, word, v) {
			a.fatalf("a word of %d %v %d: TestUntil gives %d, %v", word, c, v, got, ok)
		}
		found, err := a.x.TestUntilSome(nil, []segment.NLA{addr(s.At)}, c, v)
		if a.want(err); (len(found) == 1) != ok {
			a.fatalf("a word of %d %v %d: TestUntilSome finds %d", word, c, v, found)
		}
	})
}
