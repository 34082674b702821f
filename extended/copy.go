package extended

import (
	"sync"

	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// copyPiece is the most that Copy keeps of what it moves between two ranks of which it
// reaches neither directly, bytes.
const copyPiece = 64 << 10

var copyBuffers = sync.Pool{New: func() any { return new([copyPiece]byte) }}

// Copy copies n bytes from address from of rank src to address to of rank dst, and
// returns when they are visible there. Any two of dst, src and the own rank may be the
// same. Of one rank the two ranges may overlap: dst then holds what src held before, as
// with Go's copy, if both addresses are of one kind; the same memory under addresses of
// two kinds, or of two registrations, must not overlap. Neither range may be changed
// meanwhile.
//
// Where load and store reach both ranges, which are in segments, nothing else moves;
// where they reach one it is a put or a get of the whole; else the bytes come here and go there, at most 64 KiB
// at a time, which are all that is kept of them. An aligned copy of 1, 2, 4 or 8 bytes is
// single-copy atomic on both sides. Copying nothing succeeds whatever the addresses.
// Both ranges are checked before anything is moved; a later error leaves an unknown
// part of dst's range changed. There is no non-blocking form, as it could not begin to
// store before it has loaded: begin a Get, and a Put when it is synchronized.
func (x *Initiator) Copy(dst int, to segment.NLA, src int, from segment.NLA, n int) error {
	const what = "extended: copy"
	if n <= 0 {
		if n < 0 {
			return errs.BadArg("%s: negative length %d", what, n)
		}
		if err := x.checkRank(what, dst); err != nil {
			return err
		}
		return x.checkRank(what, src)
	}
	size := uint64(n)
	p, stores := x.views.writable(dst, to, size)
	q, loads := x.views.readable(src, from, size)
	if !stores {
		if err := x.check(what, dst, to, size, segment.RightWrite); err != nil {
			return err
		}
	}
	if !loads {
		if err := x.check(what, src, from, size, segment.RightRead); err != nil {
			return err
		}
	}
	switch {
	case n <= 8:
		v, err := x.GetValue(src, from, n)
		if err != nil {
			return err
		}
		return x.PutValue(dst, to, v, n)
	case stores && loads:
		bulk.Copy(bytesAt(p, n), bytesAt(q, n))
		return nil
	case stores:
		return x.Get(src, from, bytesAt(p, n))
	case loads:
		return x.Put(dst, to, bytesAt(q, n))
	}
	return x.copyPieces(dst, to, src, from, n)
}

// copyPieces is Copy by way of this rank, from the end on where a piece that is stored
// would else be one that is still to be loaded.
func (x *Initiator) copyPieces(dst int, to segment.NLA, src int, from segment.NLA, n int) error {
	buffer := copyBuffers.Get().(*[copyPiece]byte)
	backward := to > from
	for done := 0; done < n; {
		piece := buffer[:min(n-done, copyPiece)]
		off := segment.NLA(done)
		if backward {
			off = segment.NLA(n - done - len(piece))
		}
		err := x.Get(src, from+off, piece)
		if err == nil {
			err = x.Put(dst, to+off, piece)
		}
		if err != nil {
			return err // and the conduit may still have the buffer
		}
		done += len(piece)
	}
	copyBuffers.Put(buffer)
	return nil
}
