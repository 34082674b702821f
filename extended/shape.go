package extended

import (
	"fmt"
	"math"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// RemoteBox is the remote side of a Strided shape: the address of its first
// element, and for each dimension how many bytes its elements lie apart.
type RemoteBox struct {
	Addr    segment.NLA
	Strides []int // bytes; may be negative or zero
}

// LocalBox is the local side of a Strided shape: its first element lies Offset
// bytes from the beginning of Mem.
type LocalBox struct {
	Mem     []byte
	Offset  int   // bytes; not 0 where strides lead backwards
	Strides []int // bytes; may be negative or zero
}

// RemoteRuns is the remote side of an Indexed shape: runs of Len bytes each.
type RemoteRuns struct {
	Addrs []segment.NLA
	Len   int // bytes, not negative
}

// LocalRuns is the local side of an Indexed shape: runs of Len bytes each, which
// begin at Offsets of Mem.
type LocalRuns struct {
	Mem     []byte
	Offsets []int // bytes
	Len     int   // bytes, not negative
}

// Extent is a run of bytes of a remote rank.
type Extent struct {
	Addr segment.NLA
	Len  int // bytes, not negative
}

type shapeKind uint8

const (
	empty shapeKind = iota // of the zero Shape
	strided
	indexed
	vector
	numShapes
)

// Shape lists the bytes of a rank, which the transfer names, and of local
// memory that a transfer of more than one run moves, and the order in which both
// sides are matched. Strided, Indexed and Vector make one and check all that does not
// depend on the rank; a transfer checks the addresses, before it moves anything,
// against the rank's segment. The zero Shape moves nothing.
//
// A Shape may be used any number of times, by many goroutines, for puts and for
// gets, for any rank whose memory lies at the same addresses. It refers to the
// lists and to the local memory that it was made of: the lists must stay as they
// are until the last call that uses the Shape has returned, which may be before
// what it began is synchronized.
//
// Memory that is private to another process is copied by the system, many runs in one call.
type Shape struct {
	kind  shapeKind
	moves bool // there is something to move

	// strided and indexed
	local []byte
	// strided; dimensions that are contiguous on both sides are one
	addr     segment.NLA
	off      int
	counts   []int
	rstrides []int
	lstrides []int
	elem     int
	lo, hi   int // the remote bytes that elements touch, counted from addr
	// indexed
	addrs      []segment.NLA
	offs       []int
	rlen, llen int
	// vector
	extents []Extent
	locals  [][]byte
}

// Strided is the Shape of a box of elements of elem bytes each. Dimension d of
// the box has counts[d] elements, which lie remote.Strides[d] bytes apart at the
// remote side and local.Strides[d] bytes apart at the local one. Any number of
// dimensions is allowed, also none, which is one element; the last varies
// fastest. If elem or a count is 0 the Shape moves nothing. Bytes between
// elements are not touched. If elements overlap where they are written, which of
// them stays is undefined.
func Strided(elem int, counts []int, remote RemoteBox, local LocalBox) (Shape, error) {
	s := Shape{
		kind: strided, local: local.Mem, addr: remote.Addr, off: local.Offset,
		counts: counts, rstrides: remote.Strides, lstrides: local.Strides, elem: elem,
	}
	if err := s.checkStrided(); err != nil {
		return Shape{}, err
	}
	return s, nil
}

// Indexed is the Shape of equally long runs on each side. Both sides are read as
// one sequence of bytes and must be equally long, which may be 0. Runs must not
// overlap where they are written.
func Indexed(remote RemoteRuns, local LocalRuns) (Shape, error) {
	s := Shape{
		kind: indexed, local: local.Mem, addrs: remote.Addrs, rlen: remote.Len, offs: local.Offsets, llen: local.Len,
	}
	if err := s.checkIndexed(); err != nil {
		return Shape{}, err
	}
	return s, nil
}

// Vector is the Shape of runs of any length: the remote ones, one after the
// other, are as long together as the local slices, one after the other. Runs must
// not overlap where they are written.
func Vector(remote []Extent, local [][]byte) (Shape, error) {
	s := Shape{kind: vector, extents: remote, locals: local}
	if err := s.checkVector(); err != nil {
		return Shape{}, err
	}
	return s, nil
}

// checkStrided returns the error of s by itself. After it strided dimensions
// that are contiguous on both sides are one.
func (s *Shape) checkStrided() error {
	const what = "extended: strided shape"
	d := len(s.counts)
	if len(s.rstrides) != d || len(s.lstrides) != d {
		return errs.BadArg("%s: %d counts, but %d remote and %d local strides", what, d, len(s.rstrides), len(s.lstrides))
	}
	if s.elem < 0 {
		return errs.BadArg("%s: negative element size %d", what, s.elem)
	}
	s.moves = s.elem != 0
	for i, c := range s.counts {
		if c < 0 {
			return errs.BadArg("%s: negative count %d in dimension %d", what, c, i)
		}
		s.moves = s.moves && c != 0
	}
	if !s.moves {
		return nil
	}
	var ok bool
	if s.lo, s.hi, ok = span(s.counts, s.rstrides, s.elem); !ok {
		return errs.BadArg("%s: counts %v with remote strides %v overflow the address space", what, s.counts, s.rstrides)
	}
	lo, hi, ok := span(s.counts, s.lstrides, s.elem)
	if !ok || s.off < 0 || s.off > len(s.local) || lo < -s.off || hi > len(s.local)-s.off {
		return errs.BadArg("%s: offset %d, counts %v, local strides %v and element size %d leave the local slice of %d bytes",
			what, s.off, s.counts, s.lstrides, s.elem, len(s.local))
	}
	for d--; d >= 0; d-- {
		if s.counts[d] != 1 && (s.rstrides[d] != s.elem || s.lstrides[d] != s.elem) {
			break
		}
		s.elem *= s.counts[d]
	}
	s.counts = s.counts[:d+1]
	return nil
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

func (s *Shape) checkIndexed() error {
	const what = "extended: indexed shape"
	if s.rlen < 0 || s.llen < 0 {
		return errs.BadArg("%s: negative length: remote %d, local %d", what, s.rlen, s.llen)
	}
	rn, ok := total(len(s.addrs), s.rlen)
	ln, ok2 := total(len(s.offs), s.llen)
	if !ok || !ok2 || rn != ln {
		return errs.BadArg("%s: %d remote runs of %d bytes do not make %d local runs of %d bytes",
			what, len(s.addrs), s.rlen, len(s.offs), s.llen)
	}
	if s.moves = rn != 0; !s.moves {
		return nil
	}
	for i, o := range s.offs {
		if o < 0 || o > len(s.local) || s.llen > len(s.local)-o {
			return errs.BadArg("%s: local run %d of %d, at offset %d of %d bytes, leaves the slice of %d bytes",
				what, i, len(s.offs), o, s.llen, len(s.local))
		}
	}
	return nil
}

func total(n, size int) (int, bool) {
	t := n * size
	return t, size == 0 || t/size == n
}

func (s *Shape) checkVector() error {
	const what = "extended: vector shape"
	var rn, ln uint64
	for i, e := range s.extents {
		if e.Len < 0 {
			return errs.BadArg("%s: remote run %d of %d has negative length %d", what, i, len(s.extents), e.Len)
		}
		if rn += uint64(e.Len); rn > math.MaxInt {
			return errs.BadArg("%s: the first %d of %d remote runs have %d bytes together, and no memory more than %d",
				what, i+1, len(s.extents), rn, math.MaxInt)
		}
	}
	for _, b := range s.locals {
		ln += uint64(len(b))
	}
	if rn != ln {
		return errs.BadArg("%s: remote runs have %d bytes together, local ones %d", what, rn, ln)
	}
	s.moves = rn != 0
	return nil
}

// transfer is one put or get of a Shape. It is not looked at after the call.
type transfer struct {
	Shape
	rank int
	put  bool
	// beyond: not everything lies in the segment, so it is not all in reach.
	beyond bool
	// batch collects runs that are short and exposed, if the conduit transfers many of them
	// at once.
	batch *firehose.Batch
}

// whole moves t, or begins to, as Initiator.run does.
func (t *transfer) whole(x *Initiator, how completion, r *Region) (Handle, error) {
	q := operation{Access: conduits.Access{Want: wantBulk, Rank: t.rank}, verb: verbShape + 2*verb(t.kind)}
	if t.put {
		q.verb++
	}
	if x == nil {
		return 0, errNotBound(q.name(how))
	}
	h, _, err := x.run(&q, t, how, r)
	return h, err
}

func (t *transfer) verb() conduits.Verb {
	if t.put {
		return conduits.Put
	}
	return conduits.Get
}

func (t *transfer) need() segment.Rights {
	if t.put {
		return segment.RightWrite
	}
	return segment.RightRead
}

// check returns the error of a wrong rank or remote address, and whether
// there is something to move.
func (t *transfer) check(x *Initiator, what string) (moves bool, err error) {
	if err := x.checkRank(what, t.rank); err != nil || !t.moves {
		return false, err
	}
	if t.kind == strided {
		// The range from lo to hi holds the base, so if there is such a range of
		// addresses, nothing has wrapped.
		a, n := t.addr+segment.NLA(t.lo), uint64(t.hi-t.lo)
		if !t.remoteOK(x, a, n) {
			what = fmt.Sprintf("%s: base %v, counts %v, remote strides %v", what, t.addr, t.counts, t.rstrides)
			return false, x.check(what, t.rank, a, n, t.need())
		}
		return true, nil
	}
	for i := range t.remotes() {
		a, n := t.remoteRun(i)
		if n != 0 && !t.remoteOK(x, a, uint64(n)) {
			what = fmt.Sprintf("%s: remote run %d of %d", what, i, t.remotes())
			return false, x.check(what, t.rank, a, uint64(n), t.need())
		}
	}
	return true, nil
}

// remoteOK checks one remote range.
func (t *transfer) remoteOK(x *Initiator, a segment.NLA, n uint64) bool {
	if x.check("", t.rank, a, n, t.need()) != nil {
		return false
	}
	t.beyond = t.beyond || !conduits.InSegment(x.ep, t.rank, a, n)
	return true
}

// move moves or, with f, begins to move all runs.
func (t *transfer) move(x *Initiator, f *flight) error {
	if !t.beyond || x.exposed == nil || !x.exposed.Batches(t.rank) {
		return t.all(x, f)
	}
	t.batch = firehose.NewBatch()
	err := t.all(x, f)
	if err == nil {
		err = t.flush(x, f)
	}
	t.batch.Free()
	return err
}

func (t *transfer) all(x *Initiator, f *flight) error {
	if t.kind == strided {
		return t.dimension(x, f, 0, t.addr, t.off)
	}
	return t.stream(x, f)
}

// flush begins the runs of the batch, those by themselves that are not done at once.
func (t *transfer) flush(x *Initiator, f *flight) error {
	for t.batch.Len() != 0 {
		if t.batch.Len() > 1 && x.exposed.Many(t.rank, t.verb(), t.batch) {
			continue
		}
		a, local := t.batch.Take()
		if err := t.begin(f, a, local); err != nil {
			return err
		}
	}
	t.batch.Reset()
	return nil
}

func (t *transfer) begin(f *flight, a segment.NLA, local []byte) error {
	f.a.At, f.a.Verb = a, t.verb()
	return f.pieces(local)
}

// run moves one run that has been checked.
func (t *transfer) run(x *Initiator, f *flight, a segment.NLA, local []byte) error {
	switch {
	case f == nil && t.put:
		x.views.put(t.rank, a, local)
	case f == nil:
		x.views.get(t.rank, a, local)
	case t.put && x.views.put(t.rank, a, local), !t.put && x.views.get(t.rank, a, local):
		// In the segment, beside runs that are not.
	case t.batch != nil && a.Exposed() && t.batch.Add(a, local):
		if t.batch.Full() {
			return t.flush(x, f)
		}
	default:
		return t.begin(f, a, local)
	}
	return nil
}

// dimension does dimension d and those inside it.
func (t *transfer) dimension(x *Initiator, f *flight, d int, a segment.NLA, off int) error {
	if d == len(t.counts) {
		return t.run(x, f, a, t.local[off:off+t.elem])
	}
	last := d+1 == len(t.counts)
	for range t.counts[d] {
		var err error
		if last {
			err = t.run(x, f, a, t.local[off:off+t.elem])
		} else {
			err = t.dimension(x, f, d+1, a, off)
		}
		if err != nil {
			return err
		}
		a += segment.NLA(t.rstrides[d])
		off += t.lstrides[d]
	}
	return nil
}

// The runs of a Shape that is not strided.

func (s *Shape) remotes() int {
	if s.kind == indexed {
		return len(s.addrs)
	}
	return len(s.extents)
}

func (s *Shape) remoteRun(i int) (segment.NLA, int) {
	if s.kind == indexed {
		return s.addrs[i], s.rlen
	}
	return s.extents[i].Addr, s.extents[i].Len
}

func (s *Shape) locally() int {
	if s.kind == indexed {
		return len(s.offs)
	}
	return len(s.locals)
}

func (s *Shape) localRun(i int) []byte {
	if s.kind == indexed {
		return s.local[s.offs[i] : s.offs[i]+s.llen]
	}
	return s.locals[i]
}

// stream matches runs of different lengths on the two sides, as two sequences
// of equally many bytes.
func (t *transfer) stream(x *Initiator, f *flight) error {
	var a segment.NLA
	var left int
	var b []byte
	for r, l := 0, 0; ; {
		for left == 0 && r < t.remotes() {
			a, left = t.remoteRun(r)
			r++
		}
		for len(b) == 0 && l < t.locally() {
			b = t.localRun(l)
			l++
		}
		n := min(left, len(b))
		if n == 0 {
			return nil
		}
		if err := t.run(x, f, a, b[:n:n]); err != nil {
			return err
		}
		a += segment.NLA(n)
		left -= n
		b = b[n:]
	}
}

// directly moves t if everything is in reach of load and store.
func (t *transfer) directly(x *Initiator) bool {
	if v := x.views.Of(uint64(t.rank)); t.beyond || v == nil || v.Size() == 0 {
		return false
	}
	_ = t.move(x, nil) // what can fail is to begin
	return true
}

// PutShape puts what the local side of s names to its remote side, on rank.
// Nothing is moved unless all of that lies where rank's memory may be written.
func (x *Initiator) PutShape(rank int, s Shape) error {
	t := transfer{Shape: s, rank: rank, put: true}
	_, err := t.whole(x, byReturn, nil)
	return err
}

// GetShape is PutShape in the other direction.
func (x *Initiator) GetShape(rank int, s Shape) error {
	t := transfer{Shape: s, rank: rank}
	_, err := t.whole(x, byReturn, nil)
	return err
}

// PutShapeNB begins a PutShape. The local memory must stay as it is until the
// handle is synchronized.
func (x *Initiator) PutShapeNB(rank int, s Shape) (Handle, error) {
	t := transfer{Shape: s, rank: rank, put: true}
	return t.whole(x, byHandle, nil)
}

// GetShapeNB begins a GetShape. The local memory must not be touched until the
// handle is synchronized.
func (x *Initiator) GetShapeNB(rank int, s Shape) (Handle, error) {
	t := transfer{Shape: s, rank: rank}
	return t.whole(x, byHandle, nil)
}

// PutShapeNBI is Initiator.PutShapeNB counted in the region.
func (r *Region) PutShapeNBI(rank int, s Shape) error {
	t := transfer{Shape: s, rank: rank, put: true}
	_, err := t.whole(r.x, byRegion, r)
	return err
}

// GetShapeNBI is Initiator.GetShapeNB counted in the region.
func (r *Region) GetShapeNBI(rank int, s Shape) error {
	t := transfer{Shape: s, rank: rank}
	_, err := t.whole(r.x, byRegion, r)
	return err
}
