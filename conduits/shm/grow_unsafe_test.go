package shm

import (
	"bytes"
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
	"pgregory.net/rapid"
)

// mappedWay is memory of ranks that map a launcher's as processes do.
func mappedWay(maps bool) way { return way{form: forms[3], maps: maps} }

// blocks is how much memory stands behind the job's file, bytes.
func blocks(t tb, j *job) int64 {
	i, err := j.growth.file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return i.Sys().(*syscall.Stat_t).Blocks * 512
}

// moveEnd has what ranks add to the job's file begin further behind.
func moveEnd(j *job, to uint64) {
	atomic.StoreUint64((*uint64)(unsafe.Add(j.header, hdrEnd)), to)
}

// TestRoom: no two ranks get the same room of the job's file, whatever they take and
// give back, and what lies behind fits.
func TestRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, err := CreateJob(2, conduits.Config{MaxSegment: page})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		var js [2]*job
		for r := range js {
			js[r] = join(t, m, r, 2).j
		}
		type taken struct {
			by int
			room
		}
		var l []taken
		var own [2]uint64 // bytes of the file that each has taken
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			by := rapid.IntRange(0, 1).Draw(t, "by")
			g := &js[by].growth
			if len(l) > 0 && rapid.Bool().Draw(t, "give back") {
				i := rapid.IntRange(0, len(l)-1).Draw(t, "which")
				js[l[i].by].growth.giveBack(l[i].room)
				l = append(l[:i], l[i+1:]...)
			} else {
				end := atomic.LoadUint64((*uint64)(unsafe.Add(js[by].header, hdrEnd)))
				r, err := js[by].allocate(page * uint64(rapid.IntRange(1, 5).Draw(t, "pages")))
				if err != nil {
					t.Fatal(err)
				}
				own[by] += atomic.LoadUint64((*uint64)(unsafe.Add(js[by].header, hdrEnd))) - end
				for _, x := range l {
					if r.off < x.off+x.n && x.off < r.off+r.n {
						t.Fatalf("%+v and %+v overlap", r, x)
					}
				}
				if r.off < uint64(js[by].total()) || !js[1-by].growth.grown(r.off, r.n) {
					t.Fatalf("%+v is not in the file", r)
				}
				l = append(l, taken{by, r})
			}
			has := uint64(0)
			for _, f := range g.free {
				has += f.n
			}
			for _, x := range l {
				if x.by == by {
					has += x.n
				}
			}
			if has != own[by] {
				t.Fatalf("%d bytes are taken or free, of %d that were taken of the file: %+v", has, own[by], g.free)
			}
			for i := 1; i < len(g.free); i++ {
				if a, b := g.free[i-1], g.free[i]; a.off+a.n >= b.off {
					t.Fatalf("%+v and %+v are free, not sorted, or one", a, b)
				}
			}
		}
	})
}

// TestUnmap: memory that is unmapped is the machine's again, and no other rank's.
func TestUnmap(t *testing.T) {
	w := mappedWay(true)
	all := w.nodes(t, 2)
	e := all[1].Endpoint
	const size = 64 * page
	mem := w.memory(t, e, size)
	at, region := register(t, e, mem, segment.RightsAll, segment.AnyPeer)
	before := blocks(t, e.j)
	if err := all[0].put(all, 1, at, bytes.Repeat([]byte{1}, size)); err != nil {
		t.Fatal(err)
	}
	if n := blocks(t, e.j) - before; n < size-page { // the last page may have been written when the file grew
		t.Fatalf("%d bytes of memory stand behind %d that were written", n, size)
	}
	for what, wrong := range map[string][]byte{"a part": mem[page:], "less": mem[:page], "others'": make([]byte, page)} {
		if err := e.UnmapMemory(wrong); !isBadArg(err) {
			t.Fatalf("unmapping %s: %v", what, err)
		}
	}
	if err := e.UnmapMemory(mem); err != nil {
		t.Fatal(err)
	}
	if n := blocks(t, e.j) - before; n > 0 {
		t.Fatalf("%d bytes of memory are left", n)
	}
	if err := e.UnmapMemory(unsafe.Slice(unsafe.SliceData(mem), size)); !isBadArg(err) {
		t.Fatalf("unmapping twice: %v", err)
	}
	if err := all[0].put(all, 1, at, make([]byte, 10)); !errors.Is(err, segment.ErrFault) {
		t.Fatalf("put to what was unmapped: %v", err)
	}
	deregister(t, e, region)
	again := w.memory(t, e, size)
	for i, b := range again {
		if b != 0 {
			t.Fatalf("byte %d of new memory is %d", i, b)
		}
	}
	if end := *(*uint64)(unsafe.Add(e.j.header, hdrEnd)); e.j.growth.maps[unsafe.Pointer(&again[0])].off+size > end {
		t.Fatal("new memory lies beyond the end")
	}
	// It stays when the endpoint is closed, and can be unmapped then.
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	again[0]++
	if err := e.UnmapMemory(again); err != nil {
		t.Fatal(err)
	}
	if _, err := e.MapMemory(page); !errors.Is(err, conduits.ErrClosed) {
		t.Fatalf("mapping after Close: %v", err)
	}
}

// TestMapRefuses: what cannot be mapped is an error.
func TestMapRefuses(t *testing.T) {
	e := mappedWay(true).open(t, 1, conduits.Config{})[0]
	if _, err := e.MapMemory(page); !errors.Is(err, conduits.ErrNotReady) {
		t.Errorf("before Attach: %v", err)
	}
	attach(t, []*Endpoint{e}, page, nil)
	if _, err := e.MapMemory(0); !isBadArg(err) {
		t.Errorf("0 bytes: %v", err)
	}
	if r := sys.MemoryRoom(false); r.Bounded() {
		if _, err := e.MapMemory(uint64(r.Free) * 2); !errors.Is(err, conduits.ErrResource) {
			t.Errorf("more than there is: %v", err)
		}
	}
	for _, end := range []uint64{0, uint64(e.j.total()) - page, uint64(e.j.total()) + 1, segment.AddrPrivate - page, 1<<64 - page} {
		moveEnd(e.j, end)
		if _, err := e.MapMemory(2 * page); !errors.Is(err, conduits.ErrResource) {
			t.Errorf("with the end at %#x: %v", end, err)
		}
	}
}

// TestMapNoRoom: what the file system of the job's memory has no room for is an error,
// and no signal when it is touched.
func TestMapNoRoom(t *testing.T) {
	const dir = "/dev/shm"
	room, err := sys.DirectoryRoom(dir)
	if err != nil || !room.Bounded() || room.Free < 1<<20 {
		t.Skip("no file system in memory: ", room, err)
	}
	free := room.Free
	t.Setenv("ARGON_SHM_DIR", dir)
	e := mappedWay(true).nodes(t, 1)[0]
	if r := e.j.growth.space(); r.Free <= 0 || !r.Bounded() {
		t.Errorf("where the job's memory lies: %v", r)
	}
	if mem, err := e.MapMemory(1 << 16); err != nil {
		t.Error(err)
	} else {
		mem[len(mem)-1]++
	}
	if _, err := e.MapMemory(2 * uint64(free)); !errors.Is(err, conduits.ErrResource) {
		t.Errorf("%d bytes where %d are free: %v", 2*free, free, err)
	}
	t.Setenv("ARGON_SHM_DIR", "")
	if r := mappedWay(true).nodes(t, 1)[0].j.growth.space(); r.Bounded() {
		t.Errorf("in a memfd: %v", r)
	}
}

// TestChunks: memory in two chunks of the job's file, some of which the other has
// not mapped yet, or cannot.
func TestChunks(t *testing.T) {
	w := mappedWay(true)
	all := w.nodes(t, 2)
	j := all[1].j
	for i, before := range []uint64{0, page, 5 * page, 7 * page} {
		moveEnd(j, uint64(j.total())+uint64(i+1)<<chunkShift-before)
		check(t, all, w.memory(t, all[1].Endpoint, 8*page))
	}
	// Beyond what can be mapped, the owner is asked.
	moveEnd(j, uint64(j.total())+mostChunks<<chunkShift-page)
	check(t, all, w.memory(t, all[1].Endpoint, 4*page))
}

// check has rank 0 put to all of mem, of rank 1, by different operations.
func check(t *testing.T, all []*node, mem []byte) {
	t.Helper()
	at, r := register(t, all[1].Endpoint, mem, segment.RightsAll, segment.AnyPeer)
	want := make([]byte, len(mem))
	for i := range want {
		want[i] = byte(i + i>>8)
	}
	for _, n := range []int{len(mem), page, 8, 1000} {
		clear(mem)
		for i := 0; i < len(mem); i += n {
			if err := all[0].put(all, 1, at+segment.NLA(i), want[i:min(i+n, len(mem))]); err != nil {
				t.Fatal(err)
			}
		}
		got := make([]byte, len(mem))
		for i := 0; i < len(mem); i += n {
			if err := all[0].get(all, got[i:min(i+n, len(mem))], 1, at+segment.NLA(i)); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(mem, want) || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes at once are not what was put", n)
		}
	}
	for i := 0; i < len(mem); i += page - 8 {
		i &^= 7
		old, err := all[0].atomic(all, 1, at+segment.NLA(i), conduits.AtomicAdd, conduits.Uint64, 1, 0)
		if err != nil || old != *(*uint64)(unsafe.Pointer(&want[i])) || old+1 != *(*uint64)(unsafe.Pointer(&mem[i])) {
			t.Fatalf("atomic at %d: %d, %v", i, old, err)
		}
	}
	deregister(t, all[1].Endpoint, r)
}

// TestSealed: no rank can take memory from under the others by making the job's file
// shorter, while it goes on growing.
func TestSealed(t *testing.T) {
	t.Setenv("ARGON_SHM_DIR", "")
	w := mappedWay(true)
	all := w.nodes(t, 2)
	mem := w.memory(t, all[1].Endpoint, 8*page)
	f := all[0].j.growth.file // as much as a rank has
	i, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{0, hdrBytes, all[0].j.total(), i.Size() - 1} {
		if err := f.Truncate(size); !errors.Is(err, syscall.EPERM) {
			t.Errorf("ftruncate to %d of %d bytes: %v", size, i.Size(), err)
		}
	}
	check(t, all, mem)
	check(t, all, w.memory(t, all[1].Endpoint, 4*page))
}

// TestGrowthCloses: no descriptor is left when an endpoint is closed.
func TestGrowthCloses(t *testing.T) {
	count := func() int {
		l, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(l)
	}
	w := mappedWay(true)
	before := count()
	all := w.nodes(t, 3)
	for _, n := range all {
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(); n > before+1 { // the launcher's
		t.Errorf("%d descriptors are open, %d were", n, before)
	}
}

// TestCloseUnattached: an endpoint that is closed before it has attached leaves no
// file open either.
func TestCloseUnattached(t *testing.T) {
	m, err := CreateJob(2, conduits.Config{MaxSegment: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	e := join(t, m, 0, 2)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if e.j.growth.file != nil {
		t.Error("the job's file is still open")
	}
}
