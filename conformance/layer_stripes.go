package conformance

import (
	"math/rand/v2"

	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/segment"
)

// stripes is a rank's random transfers to its own stripe of every segment, beside
// plain arrays that say what the stripes must hold.
type stripes struct {
	s      *stack
	rng    *rand.Rand
	stripe int
	base   int
	model  [][]byte
	begun  []extended.Handle
	set    *extended.Region
	region extended.Region
	open   bool
	busy   []usedRange
	checks []func()
}

type usedRange struct{ rank, lo, hi int }

func newStripes(s *stack, stripe int) *stripes {
	m := &stripes{s: s, rng: s.RNG, stripe: stripe, base: s.Rank * stripe, set: s.ext.NewRegion()}
	for r := range s.Size {
		m.model = append(m.model, contract.Fill(make([]byte, stripe), contract.Mix(uint64(s.Rank), uint64(r)), 0))
		s.Must(s.ext.Put(r, contract.At(m.base), m.model[r]))
	}
	return m
}

// claim makes room for an operation on bytes lo to hi of the stripe at rank: none
// under way may touch them.
func (m *stripes) claim(rank, lo, hi int) {
	for _, b := range m.busy {
		if b.rank == rank && lo < b.hi && b.lo < hi {
			m.sync()
			break
		}
	}
	m.busy = append(m.busy, usedRange{rank, lo, hi})
}

// do runs an operation in a random form.
func (m *stripes) do(block func() error, nb func() (extended.Handle, error), nbi func(r *extended.Region) error) {
	s := m.s
	s.C.Helper()
	switch m.rng.IntN(4) {
	case 0:
		s.Must(block())
	case 1:
		h, err := nb()
		s.Must(err)
		m.begun = append(m.begun, h)
	case 2:
		s.Must(nbi(m.set))
	default:
		if !m.open {
			s.Must(s.ext.BeginRegion(&m.region))
			m.open = true
		}
		s.Must(nbi(&m.region))
	}
}

// sync completes everything and looks at what gets have brought.
func (m *stripes) sync() {
	s := m.s
	s.C.Helper()
	if m.open {
		h, err := m.region.End()
		s.Must(err)
		m.begun, m.open = append(m.begun, h), false
	}
	s.Must(s.ext.WaitAll(m.begun))
	m.begun = m.begun[:0]
	if m.rng.IntN(2) == 0 {
		s.Must(m.set.Sync(extended.Puts))
	}
	s.Must(m.set.Sync(extended.All))
	for _, f := range m.checks {
		f()
	}
	m.checks, m.busy = nil, nil
}

// expect has sync compare what a get brings, got, with want.
func (m *stripes) expect(what string, got, want []byte) {
	m.checks = append(m.checks, func() {
		if i := contract.Differ(got, want); i >= 0 {
			m.s.Fatalf("%s: byte %d of %d is %#x, not %#x", what, i, len(want), got[i], want[i])
		}
	})
}

// verify compares all stripes with the model.
func (m *stripes) verify() {
	m.sync()
	got := make([]byte, m.stripe)
	for r := range m.s.Size {
		m.s.Must(m.s.ext.Get(r, contract.At(m.base), got))
		if i := contract.Differ(got, m.model[r]); i >= 0 {
			m.s.Fatalf("byte %d of the stripe at rank %d is %#x, not %#x", i, r, got[i], m.model[r][i])
		}
	}
}

func (m *stripes) bytes(n int) []byte { return contract.Fill(make([]byte, n), m.rng.Uint64(), 0) }

// slice does one contiguous transfer.
func (m *stripes) slice() {
	x, r := m.s.ext, m.rng.IntN(m.s.Size)
	size := m.rng.IntN(m.stripe + 1)
	if m.rng.IntN(2) == 0 {
		size = m.rng.IntN(40)
	}
	off := m.rng.IntN(m.stripe - size + 1)
	if m.rng.IntN(2) == 0 {
		off &^= 7
	}
	to := contract.At(m.base + off)
	m.claim(r, off, off+size)
	part := m.model[r][off:][:size]
	switch m.rng.IntN(4) {
	case 0:
		src := m.bytes(size)
		copy(part, src)
		m.do(func() error { return x.Put(r, to, src) },
			func() (extended.Handle, error) { return x.PutNB(r, to, src) },
			func(g *extended.Region) error { return g.PutNBI(r, to, src) })
		contract.Spoil(src)
	case 1:
		src := m.bytes(size)
		copy(part, src)
		m.do(func() error { return x.Put(r, to, src) },
			func() (extended.Handle, error) { return x.PutBulkNB(r, to, src) },
			func(g *extended.Region) error { return g.PutBulkNBI(r, to, src) })
	case 2:
		v := byte(m.rng.Uint32())
		for i := range part {
			part[i] = v
		}
		m.do(func() error { return x.Memset(r, to, v, size) },
			func() (extended.Handle, error) { return x.MemsetNB(r, to, v, size) },
			func(g *extended.Region) error { return g.MemsetNBI(r, to, v, size) })
	default:
		dst := m.bytes(size)
		m.expect("get", dst, append([]byte(nil), part...))
		m.do(func() error { return x.Get(r, to, dst) },
			func() (extended.Handle, error) { return x.GetNB(r, to, dst) },
			func(g *extended.Region) error { return g.GetNBI(r, to, dst) })
	}
}

// extendedSlices: random slices of every rank's memory against a model.
func extendedSlices(c *ctx) {
	const n, stripe = 3, 2000
	eachHandling(c, n, n*stripe, func(s *stack) {
		m := newStripes(s, stripe)
		for range 300 {
			m.slice()
			if s.RNG.IntN(8) == 0 {
				s.am.Poll()
			}
		}
		m.verify()
	})
}

// grid is a naive strided layout: the offset of each element, in order.
func grid(base int, strides, counts []int) []int {
	offs := []int{base}
	for d := range counts {
		var next []int
		for _, o := range offs {
			for i := range counts[d] {
				next = append(next, o+i*strides[d])
			}
		}
		offs = next
	}
	return offs
}

func (m *stripes) putShape(r int, s extended.Shape) {
	x := m.s.ext
	m.do(func() error { return x.PutShape(r, s) },
		func() (extended.Handle, error) { return x.PutShapeNB(r, s) },
		func(g *extended.Region) error { return g.PutShapeNBI(r, s) })
}

func (m *stripes) getShape(r int, s extended.Shape) {
	x := m.s.ext
	m.do(func() error { return x.GetShape(r, s) },
		func() (extended.Handle, error) { return x.GetShapeNB(r, s) },
		func(g *extended.Region) error { return g.GetShapeNBI(r, s) })
}

// strided does one strided transfer: dimensions are nested in one order here and
// in another there, which transposes, and some run backwards.
func (m *stripes) strided() {
	rng := m.rng
	elem := []int{1, 8, 2, 4, 3, 11, 8, 0}[rng.IntN(8)]
	dims := rng.IntN(4)
	counts := make([]int, dims)
	for i := range counts {
		counts[i] = []int{2, 1, 3, 4, 2, 3, 5, 0}[rng.IntN(8)]
	}
	var base [2]int
	var strides [2][]int
	size := 0
	for side := range strides {
		strides[side] = make([]int, dims)
		ext := max(elem, 1)
		for _, i := range rng.Perm(dims) {
			strides[side][i] = ext + []int{0, 0, 1, 5}[rng.IntN(4)]
			ext = strides[side][i] * max(counts[i], 1)
		}
		for i := range strides[side] {
			if rng.IntN(3) == 0 {
				base[side] += strides[side][i] * max(counts[i]-1, 0)
				strides[side][i] = -strides[side][i]
			}
		}
		size = max(size, ext)
	}
	if size > m.stripe {
		return
	}
	r, shift := rng.IntN(m.s.Size), rng.IntN(m.stripe-size+1)
	m.claim(r, shift, shift+size)
	base[0] += shift
	remote, local := grid(base[0], strides[0], counts), grid(base[1], strides[1], counts)
	mem, to := m.bytes(size), contract.At(m.base+base[0])
	// Lists are the caller's again when the call returns.
	rs, ls, cs := append([]int(nil), strides[0]...), append([]int(nil), strides[1]...), append([]int(nil), counts...)
	shape, err := extended.Strided(elem, cs, extended.RemoteBox{Addr: to, Strides: rs}, extended.LocalBox{Mem: mem, Offset: base[1], Strides: ls})
	m.s.Must(err)
	if rng.IntN(2) == 0 {
		for i := range remote {
			copy(m.model[r][remote[i]:][:elem], mem[local[i]:][:elem])
		}
		m.putShape(r, shape)
	} else {
		want := append([]byte(nil), mem...)
		for i := range remote {
			copy(want[local[i]:][:elem], m.model[r][remote[i]:][:elem])
		}
		m.expect("strided get", mem, want)
		m.getShape(r, shape)
	}
	for i := range cs {
		rs[i], ls[i], cs[i] = 1<<40, 1<<40, -1
	}
}

// runs places pieces of these lengths in memory, in random order and with gaps.
func (m *stripes) runs(lens []int) (offs []int, size int) {
	offs = make([]int, len(lens))
	for _, i := range m.rng.Perm(len(lens)) {
		size += m.rng.IntN(4)
		offs[i] = size
		size += lens[i]
	}
	return offs, size
}

// cut divides total into pieces of any length, none included.
func (m *stripes) cut(total int) (lens []int) {
	for total > 0 && len(lens) < 12 {
		k := m.rng.IntN(total + 1)
		lens = append(lens, k)
		total -= k
	}
	return append(lens, total)
}

// list lists the bytes that runs name.
func list(offs, lens []int) (all []int) {
	for i := range offs {
		for k := range lens[i] {
			all = append(all, offs[i]+k)
		}
	}
	return all
}

// irregular does one indexed or vector transfer.
func (m *stripes) irregular() {
	rng := m.rng
	indexed := rng.IntN(2) == 0
	var rlens, llens []int
	rlen, llen := 0, 0
	if indexed {
		rlen, llen = 1+rng.IntN(8), 1+rng.IntN(8)
		k := rng.IntN(6)
		for range llen * k { // both sides have rlen*llen*k bytes
			rlens = append(rlens, rlen)
		}
		for range rlen * k {
			llens = append(llens, llen)
		}
	} else {
		total := rng.IntN(200)
		rlens, llens = m.cut(total), m.cut(total)
	}
	roffs, rsize := m.runs(rlens)
	loffs, lsize := m.runs(llens)
	if rsize > m.stripe {
		return
	}
	r, shift := rng.IntN(m.s.Size), rng.IntN(m.stripe-rsize+1)
	m.claim(r, shift, shift+rsize)
	mem := m.bytes(lsize)
	for i := range roffs {
		roffs[i] += shift
	}
	remote, local := list(roffs, rlens), list(loffs, llens)
	var addrs []segment.NLA
	var extents []extended.Extent
	var pieces [][]byte
	for i, o := range roffs {
		addrs = append(addrs, contract.At(m.base+o))
		extents = append(extents, extended.Extent{Addr: contract.At(m.base + o), Len: rlens[i]})
	}
	for i, o := range loffs {
		pieces = append(pieces, mem[o:][:llens[i]])
	}
	want := append([]byte(nil), mem...)
	put := rng.IntN(2) == 0
	for i := range remote {
		if put {
			m.model[r][remote[i]] = mem[local[i]]
		} else {
			want[local[i]] = m.model[r][remote[i]]
		}
	}
	if !put {
		m.expect("indexed or vector get", mem, want)
	}
	var shape extended.Shape
	var err error
	if indexed {
		shape, err = extended.Indexed(extended.RemoteRuns{Addrs: addrs, Len: rlen}, extended.LocalRuns{Mem: mem, Offsets: loffs, Len: llen})
	} else {
		shape, err = extended.Vector(extents, pieces)
	}
	m.s.Must(err)
	if put {
		m.putShape(r, shape)
	} else {
		m.getShape(r, shape)
	}
	// The lists are not kept.
	clear(addrs)
	clear(extents)
	clear(pieces)
	for i := range loffs {
		loffs[i] = -1
	}
}

// extendedShapes: random strided, indexed and vector transfers against a model;
// bytes between the runs stay.
func extendedShapes(c *ctx) {
	const n, stripe = 2, 1600
	eachHandling(c, n, n*stripe, func(s *stack) {
		m := newStripes(s, stripe)
		for range 150 {
			m.strided()
			m.irregular()
			if s.RNG.IntN(8) == 0 {
				m.slice()
			}
		}
		m.verify()
	})
}
