package shm

import (
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// growth is how a process sees what lies in the job's file beyond the part that
// was there from the beginning: address tables, memory that ranks have mapped,
// desks. Ranks take room there by the header's hdrEnd; the file only grows. What
// a rank needs of it, it maps when it first needs it.
type growth struct {
	file  *os.File      // nil once closed
	base  uint64        // where it begins
	known atomic.Uint64 // where the file ended when that was last looked at
	// Other ranks' memory, as far as this process has needed it, in chunks.
	chunks atomic.Pointer[[mostChunks]atomic.Pointer[byte]]

	mu     sync.Mutex
	free   []room // of what this process has taken and given back
	maps   map[unsafe.Pointer]room
	mapped map[unsafe.Pointer]int64 // all that is mapped of the file: bytes
}

// room is bytes [off, off+n) of the job's file.
type room struct{ off, n uint64 }

// A chunk is the unit in which other ranks' memory is mapped. The first mostChunks can be
// reached by load and store; ranks ask for what lies beyond.
const (
	chunkShift = 30
	chunkBytes = 1 << chunkShift
	mostChunks = 1 << 16
)

// open lets the file grow beyond base bytes. fd stays the caller's.
func (g *growth) open(fd uintptr, base int64) error {
	own, err := sys.Detach(fd)
	if err != nil {
		return errs.Resource("shm: %v", err)
	}
	g.file, g.base = os.NewFile(own, "memory of the job"), uint64(base)
	return nil
}

// close makes the file grow no more for this process. What is mapped stays.
func (g *growth) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.file != nil {
		g.file.Close()
		g.file = nil
	}
}

func (g *growth) closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.file == nil
}

// mapAt maps n bytes from offset off of the file on, with the lock held.
func (g *growth) mapAt(off, n uint64, writable bool) (unsafe.Pointer, error) {
	p, err := sys.MapAt(g.file.Fd(), int64(off), int64(n), writable)
	if err == nil {
		if g.mapped == nil {
			g.mapped = map[unsafe.Pointer]int64{}
		}
		g.mapped[p] = int64(n)
	}
	return p, err
}

// unmap ends what a process sees of a job's memory. A rank's process does not: its
// memory ends with it, and may be looked at until then. Nothing of the job may be
// called afterwards.
func (j *job) unmap() {
	g := &j.growth
	g.close()
	g.mu.Lock()
	defer g.mu.Unlock()
	for p, n := range g.mapped {
		_ = sys.Unmap(p, n)
	}
	g.mapped = nil
	if j.base != nil {
		_ = sys.Unmap(j.base, j.total())
		j.base = nil
	}
}

// space is the room that is left in the file system of the job's file.
func (g *growth) space() sys.Room {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.file == nil {
		return sys.Room{}
	}
	return sys.FileSystemRoom(g.file.Fd())
}

// allocate finds n bytes, whole pages, that no other caller has. They are zeros. The lock
// is held.
func (j *job) allocate(n uint64) (room, error) {
	g := &j.growth
	for i, f := range g.free {
		if f.n >= n {
			g.free[i] = room{f.off + n, f.n - n}
			if f.n == n {
				g.free = slices.Delete(g.free, i, i+1)
			}
			return room{f.off, n}, nil
		}
	}
	if g.file == nil {
		return room{}, errClosed
	}
	const most = segment.AddrPrivate // what a frame can name
	word := (*uint64)(unsafe.Add(j.header, hdrEnd))
	for {
		off := atomic.LoadUint64(word)
		if off < g.base || off%segment.PageSize != 0 || off >= most || n > most-off {
			return room{}, errs.Resource("shm: the job's memory cannot grow from %d bytes by %d", off, n)
		}
		if !atomic.CompareAndSwapUint64(word, off, off+n) {
			continue
		}
		if err := sys.Extend(g.file.Fd(), int64(off+n)); err != nil {
			return room{}, errs.Resource("shm: the job's memory cannot grow to %d bytes: %v", off+n, err)
		}
		return room{off, n}, nil
	}
}

// giveBack undoes allocate. The room is a hole again. The lock is held.
func (g *growth) giveBack(r room) {
	i, _ := slices.BinarySearchFunc(g.free, r, func(a, b room) int {
		if a.off < b.off {
			return -1
		}
		return 1
	})
	g.free = slices.Insert(g.free, i, r)
	if i+1 < len(g.free) && r.off+r.n == g.free[i+1].off {
		g.free[i].n += g.free[i+1].n
		g.free = slices.Delete(g.free, i+1, i+2)
	}
	if i > 0 && g.free[i-1].off+g.free[i-1].n == r.off {
		g.free[i-1].n += g.free[i].n
		g.free = slices.Delete(g.free, i, i+1)
	}
}

// mapNew takes n bytes and maps them.
func (j *job) mapNew(n uint64) (unsafe.Pointer, room, error) {
	g := &j.growth
	g.mu.Lock()
	defer g.mu.Unlock()
	r, err := j.allocate(n)
	if err != nil {
		return nil, room{}, err
	}
	if g.file == nil {
		g.giveBack(r)
		return nil, room{}, errClosed
	}
	p, err := g.mapAt(r.off, n, true)
	if err != nil {
		g.giveBack(r)
		return nil, room{}, errs.Resource("shm: %v", err)
	}
	return p, r, nil
}

// mapOld maps n bytes from offset off on, which another rank has taken if it does
// not lie.
func (j *job) mapOld(off, n uint64, writable bool) unsafe.Pointer {
	g := &j.growth
	if off%segment.PageSize != 0 || !g.grown(off, n) {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.file == nil {
		return nil
	}
	p, err := g.mapAt(off, n, writable)
	if err != nil {
		return nil
	}
	return p
}

// grown reports whether bytes [off, off+n) lie in the part of the file that has been
// added. Beyond the end of a file its mapping must not be touched.
func (g *growth) grown(off, n uint64) bool {
	if off < g.base || off+n < off {
		return false
	}
	if off+n <= g.known.Load() {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.file == nil {
		return false
	}
	size, err := sys.FileSize(g.file.Fd())
	if err != nil {
		return false
	}
	g.known.Store(uint64(size))
	return off+n <= uint64(size)
}

// find is where the n bytes from byte off of the file on lie, if they are in one
// chunk that has been mapped, else nil. off+n does not overflow.
func (g *growth) find(off, n uint64) unsafe.Pointer {
	from := off - g.base // huge if off is below
	at := from & (chunkBytes - 1)
	t := g.chunks.Load()
	if t == nil || from >= mostChunks<<chunkShift || at+n > chunkBytes || off+n > g.known.Load() {
		return nil
	}
	p := t[from>>chunkShift].Load()
	if p == nil {
		return nil
	}
	return unsafe.Add(unsafe.Pointer(p), at)
}

// chunk is find for what may not have been mapped yet and may go on in the next
// chunk: it returns how many of the bytes are in the first, 0 if none can be had.
func (g *growth) chunk(off, n uint64) (unsafe.Pointer, uint64) {
	from := off - g.base
	if !g.grown(off, n) || from >= mostChunks<<chunkShift {
		return nil, 0
	}
	p := g.mapChunk(from >> chunkShift)
	if p == nil {
		return nil, 0
	}
	at := from & (chunkBytes - 1)
	return unsafe.Add(p, at), min(n, chunkBytes-at)
}

func (g *growth) mapChunk(i uint64) unsafe.Pointer {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.chunks.Load()
	if t == nil {
		t = new([mostChunks]atomic.Pointer[byte])
		g.chunks.Store(t)
	}
	if p := t[i].Load(); p != nil {
		return unsafe.Pointer(p)
	}
	if g.file == nil {
		return nil
	}
	// The file may end in the chunk: what follows is reached when it has grown.
	p, err := g.mapAt(g.base+i<<chunkShift, chunkBytes, true)
	if err != nil {
		return nil
	}
	t[i].Store((*byte)(p))
	return p
}
