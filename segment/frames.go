package segment

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/internal/errs"
)

// FramePrivate marks a frame that is a page of the owner's address space, with
// that page's number in the other bits; a frame without it is a page of memory
// that other processes can map as well. Addresses have it as [AddrPrivate].
const (
	FramePrivate = 1 << (frameBits - 1)
	AddrPrivate  = uint64(FramePrivate) << PageBits
)

// Frames say which frames an ATU enters for its owner's memory, so that other
// processes can make use of the entries: a page that lies in a shared file has
// its number in that file for a frame, every other page its number in the
// owner's address space and FramePrivate. The zero value knows no shared memory.
//
// All methods may be called by any goroutine. Looking up takes no lock.
type Frames struct {
	mu   sync.Mutex // whatever writes
	maps atomic.Pointer[frameMaps]
}

// frameMaps are the shared ranges, twice: sorted by page and by frame. They are
// replaced as a whole.
type frameMaps struct{ byPage, byFrame []frameRange }

// frameRange is n pages of the owner's that have consecutive frames.
type frameRange struct{ page, frame, n uint64 }

// Share says that mem, whole pages, is page frame of the shared file and those
// after it. To be called before any of mem is registered. What is shared twice,
// in the owner's memory or in the file, is an error.
func (f *Frames) Share(mem []byte, frame uint64) error {
	r, err := frameRangeOf(mem)
	if err != nil {
		return err
	}
	if r.frame = frame; frame >= FramePrivate || r.n > FramePrivate-frame {
		return errs.BadArg("segment: %d shared pages from frame %#x on: frames are below %#x", r.n, frame, FramePrivate)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var m frameMaps
	if p := f.maps.Load(); p != nil {
		m = *p
	}
	i := sort.Search(len(m.byPage), func(i int) bool { return m.byPage[i].page+m.byPage[i].n > r.page })
	k := sort.Search(len(m.byFrame), func(k int) bool { return m.byFrame[k].frame+m.byFrame[k].n > r.frame })
	if i < len(m.byPage) && m.byPage[i].page < r.page+r.n || k < len(m.byFrame) && m.byFrame[k].frame < r.frame+r.n {
		return errs.BadArg("segment: some of %d pages from %#x on, frame %#x, are shared already", r.n, r.page<<PageBits, frame)
	}
	f.maps.Store(&frameMaps{
		byPage:  slices.Insert(slices.Clone(m.byPage), i, r),
		byFrame: slices.Insert(slices.Clone(m.byFrame), k, r),
	})
	return nil
}

// Unshare ends what one Share of the same mem began. To be called when nothing
// of mem is registered any more; see ATU.Withdraw.
func (f *Frames) Unshare(mem []byte) error {
	r, err := frameRangeOf(mem)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	same := func(x frameRange) bool { return x.page == r.page && x.n == r.n }
	m := f.maps.Load()
	if m == nil || !slices.ContainsFunc(m.byPage, same) {
		return errs.BadArg("segment: %d pages at %#x are not what has been shared", r.n, r.page<<PageBits)
	}
	f.maps.Store(&frameMaps{
		byPage:  slices.DeleteFunc(slices.Clone(m.byPage), same),
		byFrame: slices.DeleteFunc(slices.Clone(m.byFrame), same),
	})
	return nil
}

func frameRangeOf(mem []byte) (frameRange, error) {
	at, n := frameOf(mem), uint64(len(mem))
	if n == 0 || at%PageSize != 0 || n%PageSize != 0 {
		return frameRange{}, errs.BadArg("segment: %d bytes at %#x: not whole pages of %d", n, at, PageSize)
	}
	return frameRange{page: at >> PageBits, n: n >> PageBits}, nil
}

// Frame is the frame of the owner's page, and how many of n pages from there on
// have consecutive ones.
func (f *Frames) Frame(page, n uint64) (frame, k uint64) {
	m := f.maps.Load()
	if m == nil {
		return page | FramePrivate, n
	}
	i := sort.Search(len(m.byPage), func(i int) bool { return m.byPage[i].page+m.byPage[i].n > page })
	if i == len(m.byPage) {
		return page | FramePrivate, n
	}
	r := &m.byPage[i]
	if r.page > page {
		return page | FramePrivate, min(n, r.page-page)
	}
	return r.frame + page - r.page, min(n, r.page+r.n-page)
}

// Page is the reverse of Frame: the owner's page of a frame, and how many of n
// frames from there on are consecutive pages of the owner's; 0 if the frame is
// of no memory of the owner's.
func (f *Frames) Page(frame, n uint64) (page, k uint64) {
	if frame&FramePrivate != 0 {
		return frame &^ FramePrivate, min(n, 1<<frameBits-frame)
	}
	m := f.maps.Load()
	if m == nil {
		return 0, 0
	}
	i := sort.Search(len(m.byFrame), func(i int) bool { return m.byFrame[i].frame+m.byFrame[i].n > frame })
	if i == len(m.byFrame) || m.byFrame[i].frame > frame {
		return 0, 0
	}
	r := &m.byFrame[i]
	return r.page + frame - r.frame, min(n, r.frame+r.n-frame)
}
