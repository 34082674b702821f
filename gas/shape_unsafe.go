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

// Rows describe a block of a row-major matrix as it lies at a Ptr and in a slice, in
// elements: Count rows of Len elements each. Nothing is moved where one of these is 0.
type Rows struct {
	Count  int // rows
	Len    int // elements of a row
	Remote int // from the first element of a row to that of the next, at the Ptr; 0 is Len
	Local  int // from the first element of a row to that of the next, in the slice; 0 is Len
}

// grid is Rows in bytes.
type grid struct {
	count                         int
	row, remote, local, far, near uint64 // far, near: from the first byte of a side to the end of its last
}

// grid is r in bytes for elements of size bytes and have of them in the slice.
func (r Rows) grid(op string, put bool, size uint64, have int) (grid, error) {
	if r.Count < 0 || r.Len < 0 || r.Remote < 0 || r.Local < 0 {
		return grid{}, errs.BadArg("%s: %+v: numbers of rows and elements are not negative", op, r)
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
		return grid{}, errs.BadArg("%s: %+v: rows overlap where they are written", op, r)
	case r.Len > most || last > 0 && r.Remote > (most-r.Len)/last:
		return grid{}, errs.BadArg("%s: %+v: rows of %d bytes an element leave the addresses of a rank, of which there are %d", op, r, size, uint64(nlaMask))
	case r.Len > have || last > 0 && r.Local > (have-r.Len)/last:
		return grid{}, errs.BadArg("%s: %+v: the rows leave the slice of %d elements", op, r, have)
	}
	last := uint64(r.Count - 1)
	g := grid{count: r.Count, row: uint64(r.Len) * size, remote: uint64(r.Remote) * size, local: uint64(r.Local) * size}
	g.far, g.near = last*g.remote+g.row, last*g.local+g.row
	return g, nil
}

// PutStrided stores rows of src as rows at p, where those may lie closer together or farther
// apart, and returns when they are visible to every rank. The elements between rows are not
// touched. Nothing is stored if a row would lie outside of src or of the memory at p, but for
// registered memory, whose owner checks piece by piece.
func (p Ptr[T]) PutStrided(n *Node, src []T, r Rows) error {
	_, err := p.strided(n, "gas: PutStrided", true, false, src, r)
	return err
}

// GetStrided loads rows at p into rows of dst, as PutStrided stores them.
func (p Ptr[T]) GetStrided(n *Node, dst []T, r Rows) error {
	_, err := p.strided(n, "gas: GetStrided", false, false, dst, r)
	return err
}

// PutStridedNB begins a PutStrided. src must be left alone until the Handle has been
// synchronized.
func (p Ptr[T]) PutStridedNB(n *Node, src []T, r Rows) (Handle, error) {
	return p.strided(n, "gas: PutStridedNB", true, true, src, r)
}

// GetStridedNB begins a GetStrided. dst must be left alone until the Handle has been
// synchronized.
func (p Ptr[T]) GetStridedNB(n *Node, dst []T, r Rows) (Handle, error) {
	return p.strided(n, "gas: GetStridedNB", false, true, dst, r)
}

func (p Ptr[T]) strided(n *Node, op string, put, nb bool, s []T, r Rows) (Handle, error) {
	var t T
	g, err := r.grid(op, put, uint64(unsafe.Sizeof(t)), len(s))
	if err != nil {
		return 0, err
	}
	return n.strided(op, put, nb, p.w, bytesOf(s), &g)
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

// PutIndexed stores src[k] at p.Add(idx[k]) for each k, and returns when all are visible to
// every rank. If an index is there twice, which of its values stays is undefined. The error
// names the first index whose element lies outside of the rank's memory, and nothing is
// stored then, but for registered memory, whose owner checks piece by piece.
func (p Ptr[T]) PutIndexed(n *Node, idx []int, src []T) error {
	_, err := p.indexed(n, "gas: PutIndexed", true, false, idx, src)
	return err
}

// GetIndexed loads *p.Add(idx[k]) into dst[k] for each k. Errors are as for PutIndexed.
func (p Ptr[T]) GetIndexed(n *Node, idx []int, dst []T) error {
	_, err := p.indexed(n, "gas: GetIndexed", false, false, idx, dst)
	return err
}

// PutIndexedNB begins a PutIndexed. src must be left alone until the Handle has been
// synchronized; idx may be reused at once.
func (p Ptr[T]) PutIndexedNB(n *Node, idx []int, src []T) (Handle, error) {
	return p.indexed(n, "gas: PutIndexedNB", true, true, idx, src)
}

// GetIndexedNB begins a GetIndexed. dst must be left alone until the Handle has been
// synchronized; idx may be reused at once.
func (p Ptr[T]) GetIndexedNB(n *Node, idx []int, dst []T) (Handle, error) {
	return p.indexed(n, "gas: GetIndexedNB", false, true, idx, dst)
}

func (p Ptr[T]) indexed(n *Node, op string, put, nb bool, idx []int, s []T) (Handle, error) {
	if len(idx) != len(s) {
		return 0, errs.BadArg("%s: %d indices for %d elements", op, len(idx), len(s))
	}
	if !(nb && n.debug) && p.indexedDirect(n, put, idx, s) {
		return 0, nil
	}
	var t T
	return n.indexed(op, put, nb, p.w, idx, uint64(unsafe.Sizeof(t)), bytesOf(s))
}

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
