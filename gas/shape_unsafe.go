package gas

// What is unsafe here: elements at offsets of a View's memory are seen as T; the offsets are
// compared with what the View allows first.

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Shape is which elements at a Ptr and in a slice belong together: Count rows of Len elements
// each, as a block of a row-major matrix lies, or one by one those that Index lists. Nothing is
// moved if Count or Len is 0, and Index is nil.
type Shape struct {
	Count  int // rows
	Len    int // elements of a row
	Remote int // from the first element of a row to that of the next, at the Ptr; 0 is Len
	Local  int // from the first element of a row to that of the next, in the slice; 0 is Len

	// Index, unless nil, has in place of rows element k of the slice belong to p.Add(Index[k]).
	Index []int
}

// rows is the rows of s, for errors.
func (s Shape) rows() string {
	return fmt.Sprintf("{Count:%d Len:%d Remote:%d Local:%d}", s.Count, s.Len, s.Remote, s.Local)
}

// grid is rows in bytes.
type grid struct {
	count                         int
	row, remote, local, far, near uint64 // far, near: from the first byte of a side to the end of its last
}

// grid is r in bytes for elements of size bytes and have of them in the slice.
func (r Shape) grid(op string, put bool, size uint64, have int) (grid, error) {
	if r.Count < 0 || r.Len < 0 || r.Remote < 0 || r.Local < 0 {
		return grid{}, errs.BadArg("%s: %s: numbers of rows and elements are not negative", op, r.rows())
	}
	if r.Count == 0 || r.Len == 0 {
		return grid{}, nil
	}
	if r.Remote == 0 {
		r.Remote = r.Len
	}
	if r.Local == 0 {
		r.Local = r.Len
	}
	written := r.Local
	if put {
		written = r.Remote
	}
	most := nlaMask / int(max(size, 1))
	switch last := r.Count - 1; {
	case last > 0 && written < r.Len:
		return grid{}, errs.BadArg("%s: %s: rows overlap where they are written", op, r.rows())
	case r.Len > most || last > 0 && r.Remote > (most-r.Len)/last:
		return grid{}, errs.BadArg("%s: %s: rows of %d bytes an element leave the addresses of a rank, of which there are %d", op, r.rows(), size, uint64(nlaMask))
	case r.Len > have || last > 0 && r.Local > (have-r.Len)/last:
		return grid{}, errs.BadArg("%s: %s: the rows leave the slice of %d elements", op, r.rows(), have)
	}
	last := uint64(r.Count - 1)
	g := grid{count: r.Count, row: uint64(r.Len) * size, remote: uint64(r.Remote) * size, local: uint64(r.Local) * size}
	g.far, g.near = last*g.remote+g.row, last*g.local+g.row
	return g, nil
}

// PutShape stores elements of src at p as s says, and returns when they are visible to every rank.
// Rows may lie closer together or farther apart on one side than on the other; the elements
// between them are not touched. If an index is there twice, which of its values stays is
// undefined. Nothing is stored if an element would lie outside of src or of the memory at p, and
// the error names the first such index, but for registered memory, whose owner checks piece by piece.
func (p Ptr[T]) PutShape(n *Node, src []T, s Shape) error {
	_, err := p.shaped(n, "gas: PutShape", true, false, src, s)
	return err
}

// GetShape loads elements at p into dst, as PutShape stores them.
func (p Ptr[T]) GetShape(n *Node, dst []T, s Shape) error {
	_, err := p.shaped(n, "gas: GetShape", false, false, dst, s)
	return err
}

// PutShapeNB begins a PutShape. src must be left alone until the Handle has been synchronized;
// s.Index may be reused at once.
func (p Ptr[T]) PutShapeNB(n *Node, src []T, s Shape) (Handle, error) {
	return p.shaped(n, "gas: PutShapeNB", true, true, src, s)
}

// GetShapeNB begins a GetShape, as PutShapeNB does a PutShape.
func (p Ptr[T]) GetShapeNB(n *Node, dst []T, s Shape) (Handle, error) {
	return p.shaped(n, "gas: GetShapeNB", false, true, dst, s)
}

func (p Ptr[T]) shaped(n *Node, op string, put, nb bool, mem []T, s Shape) (Handle, error) {
	var t T
	if s.Index == nil {
		g, err := s.grid(op, put, uint64(unsafe.Sizeof(t)), len(mem))
		if err != nil {
			return 0, err
		}
		return n.strided(op, put, nb, p.w, bytesOf(mem), &g)
	}
	if len(s.Index) != len(mem) {
		return 0, errs.BadArg("%s: %d indices for %d elements", op, len(s.Index), len(mem))
	}
	if !(nb && n.debug) && p.indexedDirect(n, put, s.Index, mem) {
		return 0, nil
	}
	return n.indexed(op, put, nb, p.w, s.Index, uint64(unsafe.Sizeof(t)), bytesOf(mem))
}

func (n *Node) strided(op string, put, nb bool, w uint64, local []byte, g *grid) (Handle, error) {
	if !(nb && n.debug) && n.stridedDirect(put, w, local, g) {
		return 0, nil
	}
	if err := n.check(op, w, g.far); err != nil || g.count == 0 {
		return 0, err
	}
	l := lists.Get().(*shapeLists)
	defer lists.Put(l)
	l.counts[0], l.remote[0], l.local[0] = g.count, int(g.remote), int(g.local)
	s, err := extended.Strided(int(g.row), l.counts[:], extended.RemoteBox{Addr: wordNLA(w), Strides: l.remote[:]},
		extended.LocalBox{Mem: local, Strides: l.local[:]})
	if err != nil {
		return 0, err
	}
	return n.shape(put, nb, wordRank(w), s)
}

// stridedDirect moves rows that lie in reach of load and store; false if they do not.
func (n *Node) stridedDirect(put bool, w uint64, local []byte, g *grid) bool {
	at := n.reach(put, w, g.far)
	if at == nil {
		return false
	}
	for i := range uint64(g.count) {
		there, here := unsafe.Slice((*byte)(unsafe.Add(at, i*g.remote)), g.row), local[i*g.local:][:g.row]
		if put {
			bulk.Copy(there, here)
		} else {
			bulk.Copy(here, there)
		}
	}
	return true
}

// reach returns size bytes at w, more than 0, for writing or reading, or nil if they cannot
// be had directly.
func (n *Node) reach(put bool, w, size uint64) unsafe.Pointer {
	var q unsafe.Pointer
	switch {
	case size-1 >= nlaMask:
	case put:
		q, _ = n.writable(w, size)
	default:
		q, _ = n.readable(w, size)
	}
	return q
}

// shape moves s, or begins to.
func (n *Node) shape(put, nb bool, rank int, s extended.Shape) (Handle, error) {
	switch {
	case put && nb:
		return n.x.PutShapeNB(rank, s)
	case nb:
		return n.x.GetShapeNB(rank, s)
	case put:
		return 0, n.x.PutShape(rank, s)
	}
	return 0, n.x.GetShape(rank, s)
}

// shapeLists are the lists of one Shape, which nothing looks at when the call that uses it
// has returned.
type shapeLists struct {
	counts, remote, local [1]int
	addrs                 []segment.NLA
}

var lists = sync.Pool{New: func() any { return new(shapeLists) }}

// mostIndex bounds indices of elements of size bytes: what is farther away is outside of
// any rank's memory, and its distance in bytes might wrap.
func mostIndex(size uint64) int { return nlaMask / int(max(size, 1)) }

// indexedDirect moves elements that lie in reach of load and store; false if one does not,
// and then it has moved none.
func (p Ptr[T]) indexedDirect(n *Node, put bool, idx []int, s []T) bool {
	var t T
	size := uint64(unsafe.Sizeof(t))
	v := n.views.Of(p.w >> nlaBits)
	if v == nil || len(idx) == 0 {
		return false
	}
	off, limit, most := (p.w-base)&nlaMask, limitOf(v, put), mostIndex(size)
	if limit < size {
		return false
	}
	for _, i := range idx {
		if i > most || i < -most || off+uint64(i)*size > limit-size {
			return false
		}
	}
	for k, i := range idx {
		q := (*T)(unsafe.Add(v.Base, off+uint64(i)*size))
		if put {
			*q = s[k]
		} else {
			s[k] = *q
		}
	}
	return true
}

func (n *Node) indexed(op string, put, nb bool, w uint64, idx []int, size uint64, local []byte) (Handle, error) {
	if err := n.check(op, w, 0); err != nil || len(idx) == 0 {
		return 0, err
	}
	l := lists.Get().(*shapeLists)
	defer lists.Put(l)
	l.addrs = l.addrs[:0]
	for k, i := range idx {
		a := uint64(wordNLA(w)) + uint64(i)*size
		at := makeWord(wordRank(w), segment.NLA(a))
		if most := mostIndex(size); i > most || i < -most || a&^uint64(nlaMask) != 0 {
			return 0, errs.BadArg("%s: index %d (entry %d of %d) of elements of %d bytes at %v: no rank has memory there",
				op, i, k, len(idx), size, Ptr[byte]{w: w})
		}
		if n.check(op, at, size) != nil {
			return 0, n.check(fmt.Sprintf("%s: index %d (entry %d of %d)", op, i, k, len(idx)), at, size)
		}
		l.addrs = append(l.addrs, segment.NLA(a))
	}
	l.local[0] = 0
	s, err := extended.Indexed(extended.RemoteRuns{Addrs: l.addrs, Len: int(size)},
		extended.LocalRuns{Mem: local, Offsets: l.local[:], Len: len(local)})
	if err != nil {
		return 0, err
	}
	return n.shape(put, nb, wordRank(w), s)
}

// limitOf is how many bytes of v's memory may be written or read.
func limitOf(v *segment.View, put bool) uint64 {
	if put {
		return v.Write
	}
	return v.Read
}
