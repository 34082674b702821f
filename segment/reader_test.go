package segment

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/internal/errs"
	"pgregory.net/rapid"
)

// sharedTables are tables and their directory as an owner would place them in
// shared memory: words of the directory are one more than an index in gats.
type sharedTables struct {
	dir  *Directory
	gats []*GAT
}

func newSharedTables() *sharedTables { return &sharedTables{dir: new(Directory)} }

func (s *sharedTables) place(gat int) *GAT {
	g := new(GAT)
	s.gats = append(s.gats, g)
	s.dir[gat].Store(uint64(len(s.gats)))
	return g
}

func (s *sharedTables) reader() *Reader {
	return &Reader{Directory: s.dir, Open: func(_ int, w uint64) *GAT {
		if w > uint64(len(s.gats)) {
			return nil
		}
		return s.gats[w-1]
	}}
}

// foreignTranslate goes through all pieces of n bytes at a, and says how many
// from the first on are consecutive in the owner's memory by the owner's frames
// f, which may be nil.
func foreignTranslate(r *Reader, f *Frames, src int, a NLA, n uint64, need Rights) (uint64, error) {
	vpid := uint16(min(src, AnyVPID))
	addr, k, err := r.Translate(vpid, a, n, need)
	if err != nil {
		return 0, err
	}
	first, together := uint64(0), uint64(0)
	for done := uint64(0); ; {
		for k > 0 { // bytes of a page, as the owner has them
			m := min(k, PageSize-addr%PageSize)
			own := addr
			if f != nil {
				page, _ := f.Page(addr>>PageBits, 1)
				own = page<<PageBits | addr%PageSize
			}
			if done == 0 {
				first = own
			}
			if together == done && own == first+done {
				together += m
			}
			addr, k, done = addr+m, k-m, done+m
		}
		if done >= n {
			return together, nil
		}
		if addr, k, err = r.Next(vpid, a+NLA(done), n-done, need); err != nil || k == 0 {
			return together, errors.Join(errors.New("permitted, and then not"), err)
		}
	}
}

var errRefused = errors.New("refused")

// listed is a Registrar that keeps the list, and sees that nothing translates
// that is not on it.
type listed struct {
	t      *rapid.T
	atu    *ATU
	runs   map[NLA]Run
	refuse int // the how many-th run is refused; 0 for none
}

func (l *listed) unreachable(r Run) {
	// By any rank, for no right in particular: only what is not there faults.
	for _, src := range []int{0, 3, 7} {
		if _, _, err := l.atu.tables.Translate(uint16(src), r.At, 1, 0); !errors.Is(err, ErrFault) {
			l.t.Fatalf("%v translates while the registrar is told of it: %v", r.At, err)
		}
	}
}

func (l *listed) Register(r Run) error {
	l.unreachable(r)
	if _, ok := l.runs[r.At]; ok || len(r.Mem) == 0 {
		l.t.Fatalf("%d bytes at %v are registered twice: %v", len(r.Mem), r.At, ok)
	}
	if l.refuse > 0 {
		if l.refuse--; l.refuse == 0 {
			l.refuse = 1
			return errRefused
		}
	}
	l.runs[r.At] = r
	return nil
}

func (l *listed) Deregister(r Run) {
	l.unreachable(r)
	x, ok := l.runs[r.At]
	if !ok || frameOf(x.Mem) != frameOf(r.Mem) || len(x.Mem) != len(r.Mem) || x.Rights != r.Rights || x.Peer != r.Peer {
		l.t.Fatalf("%d bytes at %v end that began as %d bytes: %v", len(r.Mem), r.At, len(x.Mem), ok)
	}
	delete(l.runs, r.At)
}

// TestReaderAgainstLies reads tables and a directory that are full of anything.
func TestReaderAgainstLies(t *testing.T) {
	const gats = 3
	tables := newSharedTables()
	for g := range gats {
		tables.place(g)
	}
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		rnd := rand.New(rand.NewPCG(seed, 1))
		r := tables.reader()
		for g := range numGATs {
			tables.dir[g].Store(0)
		}
		for range 20 {
			tables.dir[rnd.IntN(8)].Store(uint64(rnd.IntN(gats + 2)))
			tables.dir[rnd.IntN(numGATs)].Store(rnd.Uint64())
		}
		// Pages around the border between two tables.
		const around = 12
		for _, g := range tables.gats {
			for i := range around {
				for _, k := range []int{i, GATEntries - 1 - i} {
					e := rnd.Uint64()
					if rnd.IntN(3) > 0 { // most often such as would be permitted, and consecutive
						e = uint64(MakeEntry(uint16(rnd.IntN(2))-1, FramePrivate-4+uint64(k), RightsAll))
						e |= uint64(entryPart) * (rnd.Uint64() & 1)
					}
					g.entries[k].Store(e)
					g.bounds[k].Store(rnd.Uint32() | uint32(PageSize<<16*rnd.IntN(2)))
				}
			}
		}
		for range 100 {
			a := NLA(rnd.IntN(9))*GATSpan + NLA(rnd.IntN(2*around*PageSize)) - around*PageSize
			n := rnd.Uint64N(4 * PageSize)
			if rnd.IntN(9) == 0 {
				a, n = NLA(rnd.Uint64()), rnd.Uint64()
			}
			src, need := uint16(rnd.IntN(3))-1, Rights(rnd.IntN(9))
			addr, k, err := r.Translate(src, a, n, need)
			if err != nil {
				if n > 0 && !errors.Is(err, ErrFault) || !errors.Is(err, errs.ErrBadArg) || err.Error() == "" {
					t.Fatalf("%d bytes at %v: %v", n, a, err)
				}
				continue
			}
			for done := uint64(0); ; {
				if k == 0 || k > n-done || addr >= 1<<52 || (addr^(addr+k-1))&AddrPrivate != 0 {
					t.Fatalf("%d bytes at %v: %d bytes at %#x after %d", n, a, k, addr, done)
				}
				if done += k; done == n {
					break
				}
				if addr, k, err = r.Next(src, a+NLA(done), n-done, need); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestReaderOpens: a table is opened once, whatever the owner does to the word.
func TestReaderOpens(t *testing.T) {
	tables := newSharedTables()
	atu := newATU(t, ATUConfig{Place: tables.place})
	r := tables.reader()
	if _, _, err := r.Translate(0, PageSize, 1, RightRead); !errors.Is(err, ErrFault) {
		t.Error(err)
	}
	region, err := atu.Register(make([]byte, 1), RightRead, AnyPeer)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := region.At(0)
	opened := 0
	open := r.Open
	r.Open = func(g int, w uint64) *GAT { opened++; return open(g, w) }
	for _, w := range []uint64{77, 1, 0, 78} {
		tables.dir[0].Store(w)
		_, _, err := r.Translate(0, a, 1, RightRead)
		if (err == nil) != (w != 77) {
			t.Errorf("word %d: %v", w, err)
		}
	}
	if opened != 2 {
		t.Errorf("opened %d times", opened)
	}
}

// TestReaderAgainstDeregister is TestDeregisterAgainstAccesses for accesses of
// other processes, which announce themselves by a word.
func TestReaderAgainstDeregister(t *testing.T) {
	tables := newSharedTables()
	atu := newATU(t, ATUConfig{Place: tables.place, Frames: new(Frames)})
	tables.gats = make([]*GAT, 0, 8)
	mem := pageMem(3)
	var words [2]atomic.Uint64
	for i := range words {
		atu.Watch(&words[i])
	}
	var at atomic.Uint64
	var stop atomic.Bool
	var wg sync.WaitGroup
	var done atomic.Uint64
	first, err := atu.Register(mem[:2*PageSize], RightWrite, AnyPeer) // has the table made
	if err != nil {
		t.Fatal(err)
	}
	r := tables.reader()
	for i := range words {
		wg.Go(func() {
			for !stop.Load() {
				a := NLA(at.Load())
				words[i].Add(1)
				addr, k, err := r.Translate(1, a+NLA(PageSize-24+16*i), 16, RightWrite)
				if err == nil {
					for b := range memoryAt(addr&^AddrPrivate, k) {
						memoryAt(addr&^AddrPrivate, k)[b] = 1
					}
					done.Add(1)
				}
				words[i].Add(1)
				runtime.Gosched()
			}
		})
	}
	at.Store(uint64(must2(first.At(0))))
	region := first
	for range 100 {
		for n := done.Load(); done.Load() < n+10; {
			runtime.Gosched()
		}
		if err := atu.Deregister(region); err != nil {
			t.Fatal(err)
		}
		clear(mem)
		for range 10 {
			runtime.Gosched()
		}
		for i, b := range mem {
			if b != 0 {
				t.Fatalf("byte %d was written after it was taken back", i)
			}
		}
		if region, err = atu.Register(mem[:2*PageSize], RightWrite, AnyPeer); err != nil {
			t.Fatal(err)
		}
		at.Store(uint64(must2(region.At(0))))
	}
	stop.Store(true)
	wg.Wait()
}

func must2(a NLA, _ uint64) NLA { return a }

func TestReaderDoesNotAllocate(t *testing.T) {
	tables := newSharedTables()
	f := new(Frames)
	atu := newATU(t, ATUConfig{Place: tables.place, Frames: f})
	mem := pageMem(4)
	if err := f.Share(mem[PageSize:2*PageSize], 5); err != nil {
		t.Fatal(err)
	}
	region, err := atu.Register(mem[1:], RightRead, AnyPeer)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := region.At(0)
	r := tables.reader()
	n := testing.AllocsPerRun(100, func() {
		for _, n := range []uint64{10, 4*PageSize - 1} {
			if k, err := foreignTranslate(r, f, 0, a, n, RightRead); k != n || err != nil {
				t.Fatal(k, err)
			}
		}
		if _, err := atu.translate(0, a, 4*PageSize-1, RightRead); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

// TestFramesModel compares Frames with a table of pages.
func TestFramesModel(t *testing.T) {
	const pages, frames = 12, 16
	mem := pageMem(pages)
	base := frameOf(mem) >> PageBits
	rapid.Check(t, func(t *rapid.T) {
		var f Frames
		shared := map[[2]int]int{} // pages from, to: first frame
		frame := func(p int) uint64 {
			for x, f := range shared {
				if p >= x[0] && p < x[1] {
					return uint64(f + p - x[0])
				}
			}
			return (base + uint64(p)) | FramePrivate
		}
		t.Repeat(map[string]func(*rapid.T){
			"share": func(t *rapid.T) {
				from := rapid.IntRange(0, pages-1).Draw(t, "from")
				to := min(pages, from+rapid.IntRange(1, 4).Draw(t, "n"))
				at := rapid.IntRange(0, frames).Draw(t, "frame")
				free := true
				for x, f := range shared {
					free = free && (to <= x[0] || x[1] <= from) && (at+to-from <= f || f+x[1]-x[0] <= at)
				}
				if err := f.Share(mem[from*PageSize:to*PageSize], uint64(at)); (err == nil) != free || err != nil && !errors.Is(err, errs.ErrBadArg) {
					t.Fatalf("pages %d..%d as %d: %v, want allowed: %v", from, to, at, err, free)
				}
				if free {
					shared[[2]int{from, to}] = at
				}
			},
			"unshare": func(t *rapid.T) {
				from := rapid.IntRange(0, pages-1).Draw(t, "from")
				to := min(pages, from+rapid.IntRange(1, 4).Draw(t, "n"))
				for x := range shared {
					if rapid.Bool().Draw(t, "this") {
						from, to = x[0], x[1]
						break
					}
				}
				_, ok := shared[[2]int{from, to}]
				if err := f.Unshare(mem[from*PageSize : to*PageSize]); (err == nil) != ok || err != nil && !errors.Is(err, errs.ErrBadArg) {
					t.Fatalf("pages %d..%d: %v, want allowed: %v", from, to, err, ok)
				}
				delete(shared, [2]int{from, to})
			},
			"": func(t *rapid.T) {
				for p := range pages {
					fr, k := f.Frame(base+uint64(p), uint64(pages-p))
					if fr != frame(p) || k == 0 || k > uint64(pages-p) {
						t.Fatalf("page %d has frame %#x, %d together", p, fr, k)
					}
					for i := range k {
						if frame(p+int(i)) != fr+i {
							t.Fatalf("page %d has %d frames from %#x on, but not %d", p, k, fr, i)
						}
					}
					if back, n := f.Page(fr, k); back != base+uint64(p) || n != k {
						t.Fatalf("frame %#x is page %#x, %d together, want %#x, %d", fr, back, n, base+uint64(p), k)
					}
				}
				used := map[uint64]bool{}
				for p := range pages {
					used[frame(p)] = true
				}
				for fr := range uint64(frames + 4) {
					if _, k := f.Page(fr, 1); (k == 1) != used[fr] {
						t.Fatalf("frame %d is of the owner's memory: %v", fr, k)
					}
				}
			},
		})
	})
	var f Frames
	for _, c := range []struct {
		mem   []byte
		frame uint64
		want  string
	}{
		{nil, 0, "not whole pages"},
		{mem[1:PageSize], 0, "not whole pages"},
		{mem[:PageSize+1], 0, "not whole pages"},
		{mem[:2*PageSize], FramePrivate - 1, "frames are below"},
		{mem, 1 << 60, "frames are below"},
	} {
		if err := f.Share(c.mem, c.frame); !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d bytes as %#x: %v", len(c.mem), c.frame, err)
		}
	}
}

// TestFrameOfNoMemory: an entry whose memory has been unshared too early faults.
func TestFrameOfNoMemory(t *testing.T) {
	f := new(Frames)
	atu := newATU(t, ATUConfig{Frames: f})
	mem := pageMem(2)
	if err := f.Share(mem, 7); err != nil {
		t.Fatal(err)
	}
	r, err := atu.Register(mem[5:], RightsAll, AnyPeer)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := r.At(0)
	if b, err := atu.translate(0, a, 2*PageSize-5, RightRead); err != nil || frameOf(b) != frameOf(mem)+5 {
		t.Fatal(err)
	}
	if err := f.Unshare(mem); err != nil {
		t.Fatal(err)
	}
	if _, err := atu.translate(0, a, 1, RightRead); !errors.Is(err, ErrFault) {
		t.Error(err)
	}
}

// TestFramesApart: pages whose frames are consecutive by chance are not one piece of
// their owner's memory.
func TestFramesApart(t *testing.T) {
	f := new(Frames)
	atu := newATU(t, ATUConfig{Frames: f})
	mem := pageMem(3)
	if err := errors.Join(f.Share(mem[:PageSize], 7), f.Share(mem[2*PageSize:], 8)); err != nil {
		t.Fatal(err)
	}
	r, err := atu.Register(mem[:PageSize], RightRead, AnyPeer)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := r.At(0)
	if err := atu.tables.Store(a+PageSize, MakeEntry(AnyVPID, 8, RightRead)); err != nil {
		t.Fatal(err)
	}
	if _, err := atu.translate(0, a, 2*PageSize, RightRead); !errors.Is(err, ErrFault) || !strings.Contains(err.Error(), "another piece of memory begins at page "+(a+PageSize).String()) {
		t.Error(err)
	}
}

// TestReaderPieces: a piece ends where the next page is elsewhere, whatever comes
// after that.
func TestReaderPieces(t *testing.T) {
	tables := newSharedTables()
	g := tables.place(0)
	for i, frame := range []uint64{10, 99, 11, 12, FramePrivate - 1, FramePrivate} {
		g.entries[1+i].Store(uint64(MakeEntry(AnyVPID, frame, RightRead)))
	}
	r := tables.reader()
	at, n := NLA(PageSize+5), uint64(6*PageSize-5)
	addr, k, err := r.Translate(0, at, n, RightRead)
	for _, want := range []struct{ addr, k uint64 }{
		{10<<PageBits + 5, PageSize - 5},
		{99 << PageBits, PageSize},
		{11 << PageBits, 2 * PageSize},
		{(FramePrivate - 1) << PageBits, PageSize},
		{AddrPrivate, PageSize},
	} {
		if addr != want.addr || k != want.k || err != nil {
			t.Fatalf("%d bytes at %#x, %v, want %d at %#x", k, addr, err, want.k, want.addr)
		}
		if at, n = at+NLA(k), n-k; n > 0 {
			addr, k, err = r.Next(0, at, n, RightRead)
		}
	}
	if n != 0 {
		t.Errorf("%d bytes are left", n)
	}
	if _, _, err := r.Translate(0, PageSize, 7*PageSize, RightRead); !errors.Is(err, ErrFault) {
		t.Error("beyond the last page:", err)
	}
	if _, k, err := r.Next(0, PageSize, 7*PageSize, RightRead); k != PageSize || err != nil {
		t.Error("Next looks at other pages than the first:", k, err)
	}
}

// refuser refuses one run.
type refuser struct{ told, refuse int }

func (r *refuser) Register(Run) error {
	if r.told == r.refuse {
		return errRefused
	}
	r.told++
	return nil
}

func (r *refuser) Deregister(Run) { r.told-- }

// TestRegistrarRefuses: nothing is left of a registration that is refused, in
// whichever of its runs.
func TestRegistrarRefuses(t *testing.T) {
	reg := &refuser{}
	atu := newATU(t, ATUConfig{Registrar: reg})
	atu.room.limit = atu.room.base + 5*PageSize
	for i := range 3 {
		reg.refuse = i
		var before, after ATUStats
		atu.Stats(&before)
		if _, err := atu.Register(pageMem(6), RightRead, AnyPeer); !errors.Is(err, errRefused) {
			t.Errorf("refused in run %d: %v", i, err)
		}
		if atu.Stats(&after); after != before || reg.told != 0 || len(atu.pins.all) != 0 {
			t.Errorf("refused in run %d: %+v, want %+v, and %d runs and %d pins stay", i, after, before, reg.told, len(atu.pins.all))
		}
	}
	reg.refuse = 3
	r, err := atu.Register(pageMem(6), RightRead, AnyPeer)
	if err != nil || reg.told != 3 {
		t.Fatal(reg.told, err)
	}
	if err := atu.Deregister(r); err != nil || reg.told != 0 {
		t.Fatal(reg.told, err)
	}
}
