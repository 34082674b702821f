package extended

import (
	"fmt"
	"math"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Extent is a run of bytes of a remote rank.
type Extent struct {
	Addr segment.NLA
	Len  int // bytes, not negative
}

type shapeKind uint8

const (
	strided shapeKind = iota
	indexed
	vector
)

// shape describes a transfer of more than one run. Everything in it is checked
// before anything is moved, and it is not looked at after the call.
type shape struct {
	what string
	kind shapeKind
	put  bool
	rank int
	// beyond: not everything lies in the segment, so it is not all in reach.
	beyond bool

	// strided and indexed
	local []byte
	// strided
	remote           segment.NLA
	off              int
	rstrides, counts []int
	lstrides         []int
	elem             int
	// indexed
	addrs      []segment.NLA
	offs       []int
	rlen, llen int
	// vector
	extents []Extent
	locals  [][]byte
}

func (s *shape) need() segment.Rights {
	if s.put {
		return segment.RightWrite
	}
	return segment.RightRead
}

// check says what is wrong with s, and how many bytes it moves; after it
// strided dimensions that are contiguous on both sides are one.
func (s *shape) check(x *Endpoint) (n uint64, err error) {
	if err := x.checkRank(s.what, s.rank); err != nil {
		return 0, err
	}
	switch s.kind {
	case strided:
		return s.checkStrided(x)
	case indexed:
		return s.checkIndexed(x)
	}
	return s.checkVector(x)
}

// remoteOK checks one remote range.
func (s *shape) remoteOK(x *Endpoint, a segment.NLA, n uint64) bool {
	if x.check(s.what, s.rank, a, n, s.need()) != nil {
		return false
	}
	s.beyond = s.beyond || !conduits.InSegment(x.ep, s.rank, a, n)
	return true
}

func (s *shape) checkStrided(x *Endpoint) (uint64, error) {
	d := len(s.counts)
	if len(s.rstrides) != d || len(s.lstrides) != d {
		return 0, errs.BadArg("%s: %d counts, but %d remote and %d local strides", s.what, d, len(s.rstrides), len(s.lstrides))
	}
	if s.elem < 0 {
		return 0, errs.BadArg("%s: negative element size %d", s.what, s.elem)
	}
	empty := s.elem == 0
	for i, c := range s.counts {
		if c < 0 {
			return 0, errs.BadArg("%s: negative count %d in dimension %d", s.what, c, i)
		}
		empty = empty || c == 0
	}
	if empty {
		return 0, nil
	}
	lo, hi, ok := span(s.counts, s.rstrides, s.elem)
	if !ok {
		return 0, errs.BadArg("%s: counts %v with remote strides %v overflow the address space", s.what, s.counts, s.rstrides)
	}
	// The range from lo to hi holds the base, so if there is such a range of
	// addresses, nothing has wrapped.
	if !s.remoteOK(x, s.remote+segment.NLA(lo), uint64(hi-lo)) {
		what := fmt.Sprintf("%s: base %v, counts %v, remote strides %v", s.what, s.remote, s.counts, s.rstrides)
		return 0, x.check(what, s.rank, s.remote+segment.NLA(lo), uint64(hi-lo), s.need())
	}
	lo, hi, ok = span(s.counts, s.lstrides, s.elem)
	if !ok || s.off < 0 || s.off > len(s.local) || lo < -s.off || hi > len(s.local)-s.off {
		return 0, errs.BadArg("%s: offset %d, counts %v, local strides %v and element size %d leave the local slice of %d bytes",
			s.what, s.off, s.counts, s.lstrides, s.elem, len(s.local))
	}
	for d--; d >= 0; d-- {
		if s.counts[d] != 1 && (s.rstrides[d] != s.elem || s.lstrides[d] != s.elem) {
			break
		}
		s.elem *= s.counts[d]
	}
	s.counts = s.counts[:d+1]
	return uint64(s.elem), nil
}

// span is the range of bytes, relative to the base, that elements touch: lo is
// at most 0 and hi at least elem. False if it does not fit an int. No count is 0.
func span(counts, strides []int, elem int) (lo, hi int, ok bool) {
	hi = elem
	for i, c := range counts {
		s := strides[i]
		m := (c - 1) * s
		if s != 0 && m/s != c-1 {
			return 0, 0, false
		}
		switch {
		case m < 0:
			if lo < math.MinInt-m {
				return 0, 0, false
			}
			lo += m
		case hi > math.MaxInt-m:
			return 0, 0, false
		default:
			hi += m
		}
	}
	if hi > math.MaxInt+lo {
		return 0, 0, false
	}
	return lo, hi, true
}

func (s *shape) checkIndexed(x *Endpoint) (uint64, error) {
	if s.rlen < 0 || s.llen < 0 {
		return 0, errs.BadArg("%s: negative length: remote %d, local %d", s.what, s.rlen, s.llen)
	}
	rn, ok := total(len(s.addrs), s.rlen)
	ln, ok2 := total(len(s.offs), s.llen)
	if !ok || !ok2 || rn != ln {
		return 0, errs.BadArg("%s: %d remote runs of %d bytes do not make %d local runs of %d bytes",
			s.what, len(s.addrs), s.rlen, len(s.offs), s.llen)
	}
	if rn == 0 {
		return 0, nil
	}
	for i, a := range s.addrs {
		if !s.remoteOK(x, a, uint64(s.rlen)) {
			what := fmt.Sprintf("%s: remote run %d of %d", s.what, i, len(s.addrs))
			return 0, x.check(what, s.rank, a, uint64(s.rlen), s.need())
		}
	}
	for i, o := range s.offs {
		if o < 0 || o > len(s.local) || s.llen > len(s.local)-o {
			return 0, errs.BadArg("%s: local run %d of %d, at offset %d of %d bytes, leaves the slice of %d bytes",
				s.what, i, len(s.offs), o, s.llen, len(s.local))
		}
	}
	return uint64(rn), nil
}

func total(n, size int) (int, bool) {
	t := n * size
	return t, size == 0 || t/size == n
}

func (s *shape) checkVector(x *Endpoint) (uint64, error) {
	var rn, ln uint64 // no overflow: slices exist, and addresses end at 2^40
	for i, e := range s.extents {
		if e.Len < 0 {
			return 0, errs.BadArg("%s: remote run %d of %d has negative length %d", s.what, i, len(s.extents), e.Len)
		}
		if e.Len == 0 {
			continue
		}
		if !s.remoteOK(x, e.Addr, uint64(e.Len)) {
			what := fmt.Sprintf("%s: remote run %d of %d", s.what, i, len(s.extents))
			return 0, x.check(what, s.rank, e.Addr, uint64(e.Len), s.need())
		}
		rn += uint64(e.Len)
	}
	for _, b := range s.locals {
		ln += uint64(len(b))
	}
	if rn != ln {
		return 0, errs.BadArg("%s: remote runs have %d bytes together, local ones %d", s.what, rn, ln)
	}
	return rn, nil
}

// move moves or, with f, begins to move all runs.
func (s *shape) move(x *Endpoint, f *flight) error {
	switch s.kind {
	case strided:
		return s.dimension(x, f, 0, s.remote, s.off)
	case indexed:
		return s.stream(x, f, len(s.addrs), len(s.offs))
	}
	return s.stream(x, f, len(s.extents), len(s.locals))
}

// run moves one run that has been checked.
func (s *shape) run(x *Endpoint, f *flight, a segment.NLA, local []byte) error {
	switch {
	case f == nil && s.put:
		x.putDirect(s.rank, a, local)
	case f == nil:
		x.getDirect(local, s.rank, a)
	case s.put && x.putDirect(s.rank, a, local), !s.put && x.getDirect(local, s.rank, a):
		// In the segment, beside runs that are not.
	case s.put:
		return f.put(a, local)
	default:
		return f.get(local, a)
	}
	return nil
}

// dimension does dimension d and those inside it.
func (s *shape) dimension(x *Endpoint, f *flight, d int, a segment.NLA, off int) error {
	if d == len(s.counts) {
		return s.run(x, f, a, s.local[off:off+s.elem])
	}
	last := d+1 == len(s.counts)
	for range s.counts[d] {
		var err error
		if last {
			err = s.run(x, f, a, s.local[off:off+s.elem])
		} else {
			err = s.dimension(x, f, d+1, a, off)
		}
		if err != nil {
			return err
		}
		a += segment.NLA(s.rstrides[d])
		off += s.lstrides[d]
	}
	return nil
}

func (s *shape) remoteRun(i int) (segment.NLA, int) {
	if s.kind == indexed {
		return s.addrs[i], s.rlen
	}
	return s.extents[i].Addr, s.extents[i].Len
}

func (s *shape) localRun(i int) []byte {
	if s.kind == indexed {
		return s.local[s.offs[i] : s.offs[i]+s.llen]
	}
	return s.locals[i]
}

// stream matches runs of different lengths on the two sides, as two sequences
// of equally many bytes.
func (s *shape) stream(x *Endpoint, f *flight, remotes, locals int) error {
	var a segment.NLA
	var left int
	var b []byte
	for r, l := 0, 0; ; {
		for left == 0 && r < remotes {
			a, left = s.remoteRun(r)
			r++
		}
		for len(b) == 0 && l < locals {
			b = s.localRun(l)
			l++
		}
		n := min(left, len(b))
		if n == 0 {
			return nil
		}
		if err := s.run(x, f, a, b[:n:n]); err != nil {
			return err
		}
		a += segment.NLA(n)
		left -= n
		b = b[n:]
	}
}

// direct says whether everything is in reach of load and store.
func (s *shape) direct(x *Endpoint) bool { return !s.beyond && x.view(s.rank) != nil }

func (x *Endpoint) shape(s *shape) error {
	n, err := s.check(x)
	if n == 0 || err != nil {
		return err
	}
	if s.direct(x) {
		return s.move(x, nil)
	}
	f, err := x.begin(s.rank, wantBulk)
	if err != nil {
		return err
	}
	return f.finish(s.move(x, &f))
}

func (x *Endpoint) shapeNB(s *shape) (Handle, error) {
	n, err := s.check(x)
	if n == 0 || err != nil {
		return 0, err
	}
	if err := x.admit(); err != nil {
		return 0, err
	}
	if s.direct(x) {
		if err := s.move(x, nil); err != nil {
			return 0, err
		}
		return x.complete(s.what, s.rank)
	}
	f, err := x.beginNB(s.what, s.rank, wantBulk)
	if err != nil {
		return 0, err
	}
	return f.leave(s.move(x, &f))
}

func (r *Region) shape(s *shape) error {
	x, err := r.endpoint(s.what)
	if err != nil {
		return err
	}
	n, err := s.check(x)
	if n == 0 || err != nil {
		return err
	}
	if s.direct(x) {
		return s.move(x, nil)
	}
	c := Gets
	if s.put {
		c = Puts
	}
	f, err := r.begin(s.rank, wantBulk, c)
	if err != nil {
		return err
	}
	return f.leaveImplicit(s.move(x, &f))
}

// PutStrided puts a box of elements of elem bytes each. Dimension d of the box
// has counts[d] elements, which lie toStrides[d] bytes apart at the target,
// counted from address to, and srcStrides[d] bytes apart in src, counted from
// offset srcOff. Strides may be negative or zero; any number of dimensions is
// allowed, also none, which is one element; the last varies fastest. If elem or
// a count is 0 nothing is done. Bytes between elements are not touched. Nothing
// is moved unless everything lies in the segment and in src. If elements
// overlap at the target, which of them stays is undefined.
//
// toStrides, srcStrides and counts are not kept.
func (x *Endpoint) PutStrided(dst int, to segment.NLA, toStrides []int, src []byte, srcOff int, srcStrides []int, elem int, counts []int) error {
	s := shape{
		what: "extended: strided put", kind: strided, put: true, rank: dst, remote: to, rstrides: toStrides,
		local: src, off: srcOff, lstrides: srcStrides, elem: elem, counts: counts,
	}
	return x.shape(&s)
}

// GetStrided is PutStrided in the other direction.
func (x *Endpoint) GetStrided(src int, from segment.NLA, fromStrides []int, dst []byte, dstOff int, dstStrides []int, elem int, counts []int) error {
	s := shape{
		what: "extended: strided get", kind: strided, rank: src, remote: from, rstrides: fromStrides,
		local: dst, off: dstOff, lstrides: dstStrides, elem: elem, counts: counts,
	}
	return x.shape(&s)
}

// PutStridedNB begins a PutStrided. src must stay as it is until the handle is
// synchronized; the lists are not kept.
func (x *Endpoint) PutStridedNB(dst int, to segment.NLA, toStrides []int, src []byte, srcOff int, srcStrides []int, elem int, counts []int) (Handle, error) {
	s := shape{
		what: "extended: non-blocking strided put", kind: strided, put: true, rank: dst, remote: to, rstrides: toStrides,
		local: src, off: srcOff, lstrides: srcStrides, elem: elem, counts: counts,
	}
	return x.shapeNB(&s)
}

// GetStridedNB begins a GetStrided. dst must not be touched until the handle is
// synchronized; the lists are not kept.
func (x *Endpoint) GetStridedNB(src int, from segment.NLA, fromStrides []int, dst []byte, dstOff int, dstStrides []int, elem int, counts []int) (Handle, error) {
	s := shape{
		what: "extended: non-blocking strided get", kind: strided, rank: src, remote: from, rstrides: fromStrides,
		local: dst, off: dstOff, lstrides: dstStrides, elem: elem, counts: counts,
	}
	return x.shapeNB(&s)
}

// PutStridedNBI is Endpoint.PutStridedNB counted in the region.
func (r *Region) PutStridedNBI(dst int, to segment.NLA, toStrides []int, src []byte, srcOff int, srcStrides []int, elem int, counts []int) error {
	s := shape{
		what: "extended: implicit strided put", kind: strided, put: true, rank: dst, remote: to, rstrides: toStrides,
		local: src, off: srcOff, lstrides: srcStrides, elem: elem, counts: counts,
	}
	return r.shape(&s)
}

// GetStridedNBI is Endpoint.GetStridedNB counted in the region.
func (r *Region) GetStridedNBI(src int, from segment.NLA, fromStrides []int, dst []byte, dstOff int, dstStrides []int, elem int, counts []int) error {
	s := shape{
		what: "extended: implicit strided get", kind: strided, rank: src, remote: from, rstrides: fromStrides,
		local: dst, off: dstOff, lstrides: dstStrides, elem: elem, counts: counts,
	}
	return r.shape(&s)
}

// PutIndexed puts runs of srcLen bytes each, which lie at offsets offs of src,
// to runs of toLen bytes each at addresses tos. Both sides are read as one
// sequence of bytes and must be equally long. Nothing is moved unless
// everything lies in the segment and in src; nothing to move is no error. tos
// and offs are not kept. Target runs must not overlap.
func (x *Endpoint) PutIndexed(dst int, tos []segment.NLA, toLen int, src []byte, offs []int, srcLen int) error {
	s := shape{
		what: "extended: indexed put", kind: indexed, put: true, rank: dst, addrs: tos, rlen: toLen,
		local: src, offs: offs, llen: srcLen,
	}
	return x.shape(&s)
}

// GetIndexed is PutIndexed in the other direction.
func (x *Endpoint) GetIndexed(src int, froms []segment.NLA, fromLen int, dst []byte, offs []int, dstLen int) error {
	s := shape{
		what: "extended: indexed get", kind: indexed, rank: src, addrs: froms, rlen: fromLen,
		local: dst, offs: offs, llen: dstLen,
	}
	return x.shape(&s)
}

// PutIndexedNB begins a PutIndexed. src must stay as it is until the handle is
// synchronized; the lists are not kept.
func (x *Endpoint) PutIndexedNB(dst int, tos []segment.NLA, toLen int, src []byte, offs []int, srcLen int) (Handle, error) {
	s := shape{
		what: "extended: non-blocking indexed put", kind: indexed, put: true, rank: dst, addrs: tos, rlen: toLen,
		local: src, offs: offs, llen: srcLen,
	}
	return x.shapeNB(&s)
}

// GetIndexedNB begins a GetIndexed. dst must not be touched until the handle is
// synchronized; the lists are not kept.
func (x *Endpoint) GetIndexedNB(src int, froms []segment.NLA, fromLen int, dst []byte, offs []int, dstLen int) (Handle, error) {
	s := shape{
		what: "extended: non-blocking indexed get", kind: indexed, rank: src, addrs: froms, rlen: fromLen,
		local: dst, offs: offs, llen: dstLen,
	}
	return x.shapeNB(&s)
}

// PutIndexedNBI is Endpoint.PutIndexedNB counted in the region.
func (r *Region) PutIndexedNBI(dst int, tos []segment.NLA, toLen int, src []byte, offs []int, srcLen int) error {
	s := shape{
		what: "extended: implicit indexed put", kind: indexed, put: true, rank: dst, addrs: tos, rlen: toLen,
		local: src, offs: offs, llen: srcLen,
	}
	return r.shape(&s)
}

// GetIndexedNBI is Endpoint.GetIndexedNB counted in the region.
func (r *Region) GetIndexedNBI(src int, froms []segment.NLA, fromLen int, dst []byte, offs []int, dstLen int) error {
	s := shape{
		what: "extended: implicit indexed get", kind: indexed, rank: src, addrs: froms, rlen: fromLen,
		local: dst, offs: offs, llen: dstLen,
	}
	return r.shape(&s)
}

// PutVector puts the bytes of srcs, one slice after the other, to the runs tos,
// one after the other; both must be equally long together. Nothing is moved
// unless all runs lie in the segment. tos and srcs are not kept, but what srcs
// names is read. Target runs must not overlap.
func (x *Endpoint) PutVector(dst int, tos []Extent, srcs [][]byte) error {
	s := shape{what: "extended: vector put", kind: vector, put: true, rank: dst, extents: tos, locals: srcs}
	return x.shape(&s)
}

// GetVector is PutVector in the other direction.
func (x *Endpoint) GetVector(src int, froms []Extent, dsts [][]byte) error {
	s := shape{what: "extended: vector get", kind: vector, rank: src, extents: froms, locals: dsts}
	return x.shape(&s)
}

// PutVectorNB begins a PutVector. What srcs names must stay as it is until the
// handle is synchronized; the lists are not kept.
func (x *Endpoint) PutVectorNB(dst int, tos []Extent, srcs [][]byte) (Handle, error) {
	s := shape{what: "extended: non-blocking vector put", kind: vector, put: true, rank: dst, extents: tos, locals: srcs}
	return x.shapeNB(&s)
}

// GetVectorNB begins a GetVector. What dsts names must not be touched until the
// handle is synchronized; the lists are not kept.
func (x *Endpoint) GetVectorNB(src int, froms []Extent, dsts [][]byte) (Handle, error) {
	s := shape{what: "extended: non-blocking vector get", kind: vector, rank: src, extents: froms, locals: dsts}
	return x.shapeNB(&s)
}

// PutVectorNBI is Endpoint.PutVectorNB counted in the region.
func (r *Region) PutVectorNBI(dst int, tos []Extent, srcs [][]byte) error {
	s := shape{what: "extended: implicit vector put", kind: vector, put: true, rank: dst, extents: tos, locals: srcs}
	return r.shape(&s)
}

// GetVectorNBI is Endpoint.GetVectorNB counted in the region.
func (r *Region) GetVectorNBI(src int, froms []Extent, dsts [][]byte) error {
	s := shape{what: "extended: implicit vector get", kind: vector, rank: src, extents: froms, locals: dsts}
	return r.shape(&s)
}
