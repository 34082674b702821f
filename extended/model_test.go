package extended

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/argon-go/argon/segment"
	"pgregory.net/rapid"
)

const modelBytes = segment.PageSize

// A form is how an operation is completed.
type form int

const (
	blocking form = iota
	withHandle
	counted // in a Region's set
	inRegion
	numForms
)

// rmaModel drives one rank's transfers to all ranks beside plain arrays.
type rmaModel struct {
	j   *fakeJob
	x   *Initiator
	mem [][]byte // what the segments must hold once everything is synchronized

	set     *Region
	region  Region
	open    bool
	handles []Handle
	busy    []struct{ rank, lo, hi int }
	checks  []func() error // what gets must have brought
}

func newRMAModel(t *rapid.T) *rmaModel {
	o := fakeOptions{
		bytes:  modelBytes,
		direct: rapid.Bool().Draw(t, "direct"),
		eager:  rapid.Bool().Draw(t, "eager"),
		seed:   rapid.Uint64().Draw(t, "seed"),
		config: Config{AlwaysHandle: rapid.Bool().Draw(t, "always")},
	}
	if rapid.Bool().Draw(t, "narrow") {
		o.maxLong = uint64(rapid.IntRange(8, 40).Draw(t, "maxLong"))
	}
	m := &rmaModel{j: newFake(3, o)}
	m.x = m.j.eps[0].x
	m.set = m.x.NewRegion()
	for r := range m.j.segs {
		m.mem = append(m.mem, make([]byte, modelBytes))
		for i := range m.mem[r] {
			m.mem[r][i] = byte(i*7 + r*31)
		}
		copy(m.j.segs[r], m.mem[r])
	}
	return m
}

// claim makes room for an operation on bytes lo to hi of rank: those may not
// be in use by one that is under way.
func (m *rmaModel) claim(t *rapid.T, rank, lo, hi int) {
	for _, b := range m.busy {
		if b.rank == rank && lo < b.hi && b.lo < hi {
			m.sync(t)
			break
		}
	}
	m.busy = append(m.busy, struct{ rank, lo, hi int }{rank, lo, hi})
}

// do runs the operation in a form; only those given exist.
func (m *rmaModel) do(t *rapid.T, block func() error, nb func() (Handle, error), nbi func(r *Region) error) {
	f := form(rapid.IntRange(0, int(numForms)-1).Draw(t, "form"))
	var err error
	switch {
	case f == withHandle:
		var h Handle
		if h, err = nb(); h != 0 {
			m.handles = append(m.handles, h)
		}
	case f == counted && nbi != nil:
		err = nbi(m.set)
	case f == inRegion && nbi != nil:
		if !m.open {
			if err := m.x.BeginRegion(&m.region); err != nil {
				t.Fatal(err)
			}
			m.open = true
		}
		err = nbi(&m.region)
	default:
		err = block()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// sync synchronizes everything and compares all memory.
func (m *rmaModel) sync(t *rapid.T) {
	if m.open {
		if rapid.Bool().Draw(t, "probe") {
			if err := m.region.Sync(All); err == nil {
				t.Fatal("sync inside an access region")
			}
		}
		h, err := m.region.End()
		if err != nil {
			t.Fatal(err)
		}
		m.open = false
		m.handles = append(m.handles, h)
	}
	if err := m.x.WaitAll(m.handles); err != nil {
		t.Fatal(err)
	}
	m.handles = m.handles[:0]
	if rapid.Bool().Draw(t, "puts first") {
		if err := m.set.Sync(Puts); err != nil {
			t.Fatal(err)
		}
	}
	for {
		done, err := m.set.Try(Gets)
		if err != nil {
			t.Fatal(err)
		}
		if done {
			break
		}
	}
	if err := m.set.Sync(All); err != nil {
		t.Fatal(err)
	}
	for _, c := range m.checks {
		if err := c(); err != nil {
			t.Fatal(err)
		}
	}
	m.checks, m.busy = nil, nil
	for r, want := range m.mem {
		if got := m.j.segs[r]; !bytes.Equal(got, want) {
			for i := range got {
				if got[i] != want[i] {
					t.Fatalf("rank %d byte %d is %d, not %d", r, i, got[i], want[i])
				}
			}
		}
	}
}

func (m *rmaModel) expect(what string, got []byte, want []byte) {
	want = bytes.Clone(want)
	m.checks = append(m.checks, func() error {
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%s brought %v, not %v", what, got, want)
		}
		return nil
	})
}

func scribble(b []byte) {
	for i := range b {
		b[i] ^= 0xa5
	}
}

func drawRange(t *rapid.T, limit int) (off, n int) {
	n = rapid.OneOf(rapid.IntRange(0, 20), rapid.IntRange(0, limit)).Draw(t, "n")
	off = rapid.IntRange(0, limit-n).Draw(t, "off")
	if rapid.Bool().Draw(t, "aligned") {
		off &^= 7
	}
	return off, n
}

func drawBytes(t *rapid.T, n int) []byte {
	b := make([]byte, n)
	s := rapid.Byte().Draw(t, "fill")
	for i := range b {
		b[i] = s + byte(i*13)
	}
	return b
}

func TestRMAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newRMAModel(t)
		rank := func(t *rapid.T) int { return rapid.IntRange(0, len(m.mem)-1).Draw(t, "rank") }
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				r := rank(t)
				off, n := drawRange(t, modelBytes)
				src := drawBytes(t, n)
				m.claim(t, r, off, off+n)
				copy(m.mem[r][off:], src)
				m.do(t, func() error { return m.x.Put(r, at(off), src) },
					func() (Handle, error) { return m.x.PutNB(r, at(off), src) },
					func(g *Region) error { return g.PutNBI(r, at(off), src) })
				scribble(src) // the source may be reused
			},
			"putBulk": func(t *rapid.T) {
				r := rank(t)
				off, n := drawRange(t, modelBytes)
				src := drawBytes(t, n)
				m.claim(t, r, off, off+n)
				copy(m.mem[r][off:], src)
				m.do(t, func() error { return m.x.Put(r, at(off), src) },
					func() (Handle, error) { return m.x.PutBulkNB(r, at(off), src) },
					func(g *Region) error { return g.PutBulkNBI(r, at(off), src) })
			},
			"get": func(t *rapid.T) {
				r := rank(t)
				off, n := drawRange(t, modelBytes)
				dst := drawBytes(t, n)
				m.claim(t, r, off, off+n)
				m.expect("get", dst, m.mem[r][off:off+n])
				m.do(t, func() error { return m.x.Get(r, at(off), dst) },
					func() (Handle, error) { return m.x.GetNB(r, at(off), dst) },
					func(g *Region) error { return g.GetNBI(r, at(off), dst) })
			},
			"putValue": func(t *rapid.T) {
				r, n := rank(t), rapid.IntRange(1, 8).Draw(t, "n")
				off := rapid.IntRange(0, modelBytes-n).Draw(t, "off")
				v := rapid.Uint64().Draw(t, "v")
				var b [8]byte
				binary.LittleEndian.PutUint64(b[:], v)
				m.claim(t, r, off, off+n)
				copy(m.mem[r][off:], b[:n])
				m.do(t, func() error { return m.x.PutValue(r, at(off), v, n) },
					func() (Handle, error) { return m.x.PutValueNB(r, at(off), v, n) },
					func(g *Region) error { return g.PutValueNBI(r, at(off), v, n) })
			},
			"getValue": func(t *rapid.T) {
				r, n := rank(t), rapid.IntRange(1, 8).Draw(t, "n")
				off := rapid.IntRange(0, modelBytes-n).Draw(t, "off")
				m.claim(t, r, off, off+n)
				var b [8]byte
				copy(b[:], m.mem[r][off:off+n])
				want := binary.LittleEndian.Uint64(b[:])
				got := new(uint64)
				m.checks = append(m.checks, func() error {
					if *got != want {
						return fmt.Errorf("value of %d bytes at %d is %#x, not %#x", n, off, *got, want)
					}
					return nil
				})
				m.do(t, func() (err error) { *got, err = m.x.GetValue(r, at(off), n); return err },
					func() (Handle, error) { return m.x.GetValueNB(r, at(off), got, n) }, nil)
			},
			"memset": func(t *rapid.T) {
				r := rank(t)
				off, n := drawRange(t, modelBytes)
				v := rapid.SampledFrom([]byte{0, 1, 0xff}).Draw(t, "v")
				m.claim(t, r, off, off+n)
				for i := range n {
					m.mem[r][off+i] = v
				}
				m.do(t, func() error { return m.x.Memset(r, at(off), v, n) },
					func() (Handle, error) { return m.x.MemsetNB(r, at(off), v, n) },
					func(g *Region) error { return g.MemsetNBI(r, at(off), v, n) })
			},
			"strided": m.strided,
			"indexed": m.indexed,
			"vector":  m.vector,
			"poll":    func(t *rapid.T) { m.j.eps[0].Poll() },
			"sync":    m.sync,
		})
		m.sync(t)
		if n := m.x.Outstanding(); n != 0 {
			t.Fatalf("%d outstanding", n)
		}
	})
}

// lattice is a naive strided layout: the offset of each element, in order.
func lattice(base int, strides, counts []int) []int {
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

// drawLattice draws counts and the strides of two layouts, with elements that do
// not overlap in either, and places both in memory of limit bytes. Layouts are
// nested in one order on each side, which gives transposes, with some
// dimensions reversed.
func drawLattice(t *rapid.T, limit int) (elem int, counts []int, base [2]int, strides [2][]int, size int) {
	elem = rapid.SampledFrom([]int{1, 8, 2, 4, 3, 11, 8, 0}).Draw(t, "elem")
	d := rapid.IntRange(0, 4).Draw(t, "dims")
	for range d {
		counts = append(counts, rapid.SampledFrom([]int{2, 1, 3, 4, 2, 3, 5, 0}).Draw(t, "count"))
	}
	for s := range strides {
		strides[s] = make([]int, d)
		span := max(elem, 1)
		order := rapid.Permutation(upTo(d)).Draw(t, "order")
		for _, i := range order {
			strides[s][i] = span + rapid.SampledFrom([]int{0, 0, 1, 5}).Draw(t, "gap")
			span = strides[s][i] * max(counts[i], 1)
		}
		for i := range strides[s] {
			if rapid.Bool().Draw(t, "reverse") {
				base[s] += strides[s][i] * max(counts[i]-1, 0)
				strides[s][i] = -strides[s][i]
			}
		}
		if span > limit {
			t.Skip("too large")
		}
		size = max(size, span)
	}
	return elem, counts, base, strides, size
}

func upTo(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

func (m *rmaModel) shape(s Shape, err error) Shape {
	if err != nil {
		panic(err)
	}
	return s
}

func (m *rmaModel) putShape(t *rapid.T, r int, s Shape) {
	m.do(t, func() error { return m.x.PutShape(r, s) },
		func() (Handle, error) { return m.x.PutShapeNB(r, s) },
		func(g *Region) error { return g.PutShapeNBI(r, s) })
}

func (m *rmaModel) getShape(t *rapid.T, r int, s Shape) {
	m.do(t, func() error { return m.x.GetShape(r, s) },
		func() (Handle, error) { return m.x.GetShapeNB(r, s) },
		func(g *Region) error { return g.GetShapeNBI(r, s) })
}

func (m *rmaModel) strided(t *rapid.T) {
	elem, counts, base, strides, size := drawLattice(t, modelBytes)
	r := rapid.IntRange(0, len(m.mem)-1).Draw(t, "rank")
	shift := rapid.IntRange(0, modelBytes-size).Draw(t, "shift")
	base[0] += shift
	local := drawBytes(t, size)
	m.claim(t, r, shift, shift+size)
	remotes, locals := lattice(base[0], strides[0], counts), lattice(base[1], strides[1], counts)
	shape := m.shape(Strided(elem, counts, RemoteBox{at(base[0]), strides[0]}, LocalBox{local, base[1], strides[1]}))
	m.move(t, "strided", r, elem, shape, local, remotes, locals)
	// The lists are not looked at after the call.
	for s := range strides {
		for i := range strides[s] {
			strides[s][i] = 1 << 40
		}
	}
	for i := range counts {
		counts[i] = -1
	}
}

// TestStridedModel is the strided part of TestRMAModel on its own, so that
// every run of it meets all the ways in which dimensions can be contiguous.
func TestStridedModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newRMAModel(t)
		for range 8 {
			m.strided(t)
		}
		m.sync(t)
	})
}

// drawRuns cuts total bytes into pieces of at most limit and places them, in
// random order and with gaps, in memory of limit bytes.
func drawRuns(t *rapid.T, lens []int, limit int) (offs []int, size int) {
	offs = make([]int, len(lens))
	for _, i := range rapid.Permutation(upTo(len(lens))).Draw(t, "order") {
		size += rapid.IntRange(0, 4).Draw(t, "gap")
		offs[i] = size
		size += lens[i]
	}
	if size > limit {
		t.Skip("too large")
	}
	return offs, size
}

func drawCut(t *rapid.T, total int) (lens []int) {
	for total > 0 {
		n := rapid.IntRange(0, total).Draw(t, "len")
		lens = append(lens, n)
		total -= n
		if len(lens) > 12 {
			return append(lens, total)
		}
	}
	return lens
}

// expand lists the bytes that runs name, in order.
func expand(offs, lens []int) (all []int) {
	for i, o := range offs {
		for k := range lens[i] {
			all = append(all, o+k)
		}
	}
	return all
}

func equal(n, v int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = v
	}
	return s
}

// move puts or gets shape, between the elements of elem bytes at remotes of rank r and those at locals of local.
func (m *rmaModel) move(t *rapid.T, what string, r, elem int, shape Shape, local []byte, remotes, locals []int) {
	if rapid.Bool().Draw(t, "put") {
		for i := range remotes {
			copy(m.mem[r][remotes[i]:][:elem], local[locals[i]:][:elem])
		}
		m.putShape(t, r, shape)
		return
	}
	want := bytes.Clone(local)
	for i := range remotes {
		copy(want[locals[i]:][:elem], m.mem[r][remotes[i]:][:elem])
	}
	m.expect(what+" get", local, want)
	m.getShape(t, r, shape)
}

func (m *rmaModel) indexed(t *rapid.T) {
	// a*b runs on each side so that both lengths divide the same total.
	a, b, c := rapid.IntRange(1, 5).Draw(t, "a"), rapid.IntRange(1, 5).Draw(t, "b"), rapid.IntRange(0, 6).Draw(t, "c")
	rlens, llens := equal(a, b*c), equal(b, a*c)
	roffs, rsize := drawRuns(t, rlens, modelBytes)
	loffs, lsize := drawRuns(t, llens, modelBytes)
	r := rapid.IntRange(0, len(m.mem)-1).Draw(t, "rank")
	shift := rapid.IntRange(0, modelBytes-rsize).Draw(t, "shift")
	addrs := make([]segment.NLA, a)
	for i := range roffs {
		roffs[i] += shift
		addrs[i] = at(roffs[i])
	}
	local := drawBytes(t, lsize)
	m.claim(t, r, shift, shift+rsize)
	shape := m.shape(Indexed(RemoteRuns{addrs, b * c}, LocalRuns{local, loffs, a * c}))
	m.move(t, "indexed", r, 1, shape, local, expand(roffs, rlens), expand(loffs, llens))
	clear(addrs)
	clear(loffs)
}

func (m *rmaModel) vector(t *rapid.T) {
	total := rapid.IntRange(0, 200).Draw(t, "total")
	rlens, llens := drawCut(t, total), drawCut(t, total)
	roffs, rsize := drawRuns(t, rlens, modelBytes)
	loffs, lsize := drawRuns(t, llens, modelBytes)
	r := rapid.IntRange(0, len(m.mem)-1).Draw(t, "rank")
	shift := rapid.IntRange(0, modelBytes-rsize).Draw(t, "shift")
	extents := make([]Extent, len(roffs))
	for i := range roffs {
		roffs[i] += shift
		extents[i] = Extent{at(roffs[i]), rlens[i]}
	}
	local := drawBytes(t, lsize)
	slices := make([][]byte, len(loffs))
	for i, o := range loffs {
		slices[i] = local[o : o+llens[i]]
	}
	m.claim(t, r, shift, shift+rsize)
	shape := m.shape(Vector(extents, slices))
	m.move(t, "vector", r, 1, shape, local, expand(roffs, rlens), expand(loffs, llens))
	clear(extents)
	clear(slices)
}
