package gas

// What is unsafe here: elements that a View allows to be read or written are seen as T.

import (
	"unsafe"

	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/internal/errs"
)

// GetIndexed loads element idx[k] into dst[k] for each k, whatever ranks have them: those that
// are not in reach of load and store are under way at once. The error names the first index
// that is not in 0..Len()-1, and nothing is loaded then.
func (a Array[T]) GetIndexed(n *Node, idx []int, dst []T) error {
	return a.indexed(n, "gas: Array.GetIndexed", false, idx, dst)
}

// PutIndexed stores src[k] as element idx[k] for each k, and returns when all are visible to
// every rank. If an index is there twice, which of its values stays is undefined. Otherwise it
// is as GetIndexed.
func (a Array[T]) PutIndexed(n *Node, idx []int, src []T) error {
	return a.indexed(n, "gas: Array.PutIndexed", true, idx, src)
}

func (a Array[T]) indexed(n *Node, op string, put bool, idx []int, s []T) (err error) {
	if len(idx) != len(s) {
		return errs.BadArg("%s: %d indices for %d elements", op, len(idx), len(s))
	}
	for k, i := range idx {
		if uint(i) >= uint(a.length) {
			return errs.BadArg("%s: index %d (entry %d of %d): the array has %d elements", op, i, k, len(idx), a.length)
		}
	}
	var far *extended.Region // a set of their own, so that errors of others stay with these
	for k, i := range idx {
		p := a.At(i)
		if put {
			if q, ok := n.writable(p.w, uint64(unsafe.Sizeof(s[k]))); ok {
				*(*T)(q) = s[k]
				continue
			}
		} else if q, ok := n.readable(p.w, uint64(unsafe.Sizeof(s[k]))); ok {
			s[k] = *(*T)(q)
			continue
		}
		if far == nil {
			far = n.x.NewRegion()
		}
		if put {
			err = far.PutBulkNBI(p.Rank(), p.NLA(), bytesOf(s[k:k+1]))
		} else {
			err = far.GetNBI(p.Rank(), p.NLA(), bytesOf(s[k:k+1]))
		}
		if err != nil {
			break
		}
	}
	if far == nil {
		return nil
	}
	if late := far.Sync(extended.All); err == nil {
		err = late
	}
	return err
}
