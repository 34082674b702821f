package segment

import (
	"bytes"
	"cmp"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/internal/errs"
	"pgregory.net/rapid"
)

func newATU(t testing.TB, c ATUConfig) *ATU {
	t.Helper()
	a, err := NewATU(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// pageMem returns n pages of Go memory that begin at a page.
func pageMem(n int) []byte {
	b := make([]byte, (n+1)*PageSize)
	off := -frameOf(b) & (PageSize - 1)
	return b[off : off+uint64(n)*PageSize]
}

func (t *ATU) translate(src int, a NLA, n uint64, need Rights) ([]byte, error) {
	u := t.Enter()
	defer u.Exit()
	return u.Translate(src, a, n, need)
}

// TestATUModel registers parts of an arena, overlapping and repeatedly, and
// compares every translation with a table of bytes. The room for addresses is
// small, so that regions come in pieces.
func TestATUModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		attach := pageMem(2)
		arena := make([]byte, 10*PageSize+100)
		base := frameOf(arena)
		tables := newSharedTables()
		listed := &listed{t: t, runs: map[NLA]Run{}}
		c := ATUConfig{Attach: attach, Rights: RightRead, Place: tables.place, Registrar: listed}
		var count atomic.Uint64
		if rapid.Bool().Draw(t, "count") {
			c.Count = &count
		}
		if rapid.Bool().Draw(t, "frames") {
			c.Frames = new(Frames)
			aligned := arena[-base&(PageSize-1):]
			for i, frame := range rapid.SliceOfNDistinct(rapid.Uint64Range(0, 40), 0, 9, rapid.ID).Draw(t, "shared") {
				if err := c.Frames.Share(aligned[i*PageSize:(i+1)*PageSize], frame); err != nil {
					t.Fatal(err)
				}
			}
		}
		atu, err := NewATU(c)
		if err != nil {
			t.Fatal(err)
		}
		defer atu.Close()
		listed.atu = atu
		const room = 20
		atu.room.limit = atu.room.base + room*PageSize
		foreign := tables.reader()

		type reg struct {
			r        Registration
			from, to uint64
			rights   Rights
			peer     int
			dead     bool // withdrawn
			number   uint64
		}
		var live []*reg
		var old []Registration
		var flushes uint64
		byteAt := func(a NLA) (*reg, uint64) { // the registration that maps a, and to which byte of arena
			for _, r := range live {
				for off := uint64(0); off < r.r.Len(); {
					at, n := r.r.At(off)
					if a >= at && uint64(a-at) < n {
						return r, r.from + off + uint64(a-at)
					}
					off += n
				}
			}
			return nil, 0
		}
		t.Repeat(map[string]func(*rapid.T){
			"register": func(t *rapid.T) {
				from := rapid.OneOf(rapid.IntRange(0, len(arena)-1), rapid.Map(rapid.IntRange(0, 9), func(p int) int {
					return int(-base&(PageSize-1)) + p*PageSize
				})).Draw(t, "from")
				n := rapid.OneOf(rapid.IntRange(1, 16), rapid.IntRange(1, len(arena)), rapid.Just(PageSize)).Draw(t, "n")
				to := min(from+n, len(arena))
				rights := Rights(rapid.IntRange(1, int(RightsAll)).Draw(t, "rights"))
				peer := rapid.SampledFrom([]int{AnyPeer, AnyPeer, 0, 3}).Draw(t, "peer")
				listed.refuse = rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2}).Draw(t, "refuse")
				if listed.refuse > 0 {
					before := len(listed.runs)
					if r, err := atu.Register(arena[from:to], rights, peer); listed.refuse > 0 && err == nil {
						listed.refuse = 0 // it was in fewer runs
						if err := atu.Deregister(r); err != nil {
							t.Fatal(err)
						}
						flushes++
					} else if !errors.Is(err, errRefused) && !errors.Is(err, errs.ErrResource) || len(listed.runs) != before {
						t.Fatalf("refused by the registrar: %v, %d runs, want %d", err, len(listed.runs), before)
					}
				}
				listed.refuse = 0
				r, err := atu.Register(arena[from:to], rights, peer)
				if errors.Is(err, errs.ErrResource) {
					t.Skip()
				}
				if err != nil {
					t.Fatal(err)
				}
				for off := uint64(0); off < r.Len(); {
					at, k := r.At(off)
					if k == 0 || off+k > r.Len() || uint64(at)%PageSize != (base+uint64(from)+off)%PageSize {
						t.Fatalf("byte %d of %d at %v, %d together", off, r.Len(), at, k)
					}
					off += k
				}
				live = append(live, &reg{r: r, from: uint64(from), to: uint64(to), rights: rights, peer: peer, number: atu.Registrations()})
				if n := count.Load(); c.Count != nil && n != atu.Registrations() {
					t.Fatalf("others read of %d registrations, there have been %d", n, atu.Registrations())
				}
			},
			"deregister": func(t *rapid.T) {
				if len(live) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				if err := atu.Deregister(live[i].r); err != nil {
					t.Fatal(err)
				}
				if !live[i].dead {
					flushes++
				}
				old = append(old, live[i].r)
				live = slices.Delete(live, i, i+1)
			},
			"deregister again": func(t *rapid.T) {
				if len(old) == 0 {
					t.Skip()
				}
				err := atu.Deregister(rapid.SampledFrom(old).Draw(t, "which"))
				if !errors.Is(err, errs.ErrBadArg) || !strings.Contains(err.Error(), "deregistered already") {
					t.Fatal(err)
				}
			},
			"withdraw": func(t *rapid.T) {
				from := rapid.Uint64Range(0, uint64(len(arena))-1).Draw(t, "from")
				to := min(from+rapid.Uint64Range(1, 600).Draw(t, "n"), uint64(len(arena)))
				want := 0
				for _, r := range live {
					if r.from < to && from < r.to && !r.dead {
						r.dead = true
						want++
					}
				}
				flushes += uint64(want)
				if n := atu.Withdraw(arena[from:to]); n != want {
					t.Fatalf("%d regions withdrawn, want %d", n, want)
				}
			},
			"translate": func(t *rapid.T) {
				var a NLA
				if len(live) > 0 && rapid.IntRange(0, 9).Draw(t, "near") > 0 {
					r := live[rapid.IntRange(0, len(live)-1).Draw(t, "whose")].r
					off := rapid.Uint64Range(0, r.Len()-1).Draw(t, "off")
					a, _ = r.At(rapid.SampledFrom([]uint64{0, off, r.Len() - 1}).Draw(t, "at"))
					a += NLA(rapid.IntRange(-8, 8).Draw(t, "delta"))
				} else {
					a = NLA(rapid.Uint64Range(0, 1<<42).Draw(t, "a"))
				}
				n := rapid.OneOf(rapid.Uint64Range(1, 32), rapid.Uint64Range(1, 3*PageSize)).Draw(t, "n")
				src := rapid.SampledFrom([]int{0, 3, 4, 1 << 20}).Draw(t, "src")
				need := Rights(rapid.IntRange(1, int(RightsAll)).Draw(t, "need"))
				got, err := atu.translate(src, a, n, need)
				var want []byte
				ok := true
				at0 := uint64(0)
				for i := uint64(0); i < n && ok; i++ {
					r, at := byteAt(a + NLA(i))
					if r == nil || r.dead || r.rights&need != need || r.peer != AnyPeer && r.peer != src || i > 0 && at != at0+i {
						ok = false
						break
					}
					if i == 0 {
						at0 = at
					}
				}
				if ok {
					want = arena[at0 : at0+n]
					newest := uint64(0)
					for i := range n {
						r, _ := byteAt(a + NLA(i))
						newest = max(newest, r.number)
					}
					for before := range atu.Registrations() + 1 {
						if got, want := atu.Since(a, n, before), newest > before; got != want {
							t.Fatalf("%d bytes at %v have been registered since registration %d: %v, want %v", n, a, before, got, want)
						}
					}
				}
				if n2, err2 := foreignTranslate(foreign, c.Frames, src, a, n, need); a+NLA(n) < AttachBase || a >= atu.room.base {
					if ok != (err2 == nil) && !(err2 == nil && n2 < n) || ok && n2 != n {
						t.Fatalf("read from beside: %d of %d bytes at %v by %d for %v: %v, want allowed: %v", n2, n, a, src, need, err2, ok)
					}
				}
				if ok != (err == nil) || ok && (frameOf(got) != frameOf(want) || len(got) != len(want)) {
					t.Fatalf("%d bytes at %v by %d for %v: %v, want allowed: %v", n, a, src, need, err, ok)
				}
				var f *FaultError
				if !ok && (!errors.As(err, &f) || f.Addr != a || f.Len != n) {
					t.Fatalf("refused by %v", err)
				}
			},
			"": func(t *rapid.T) {
				pages := map[uint64]bool{}
				regions, runs := 0, 0
				for _, r := range live {
					if !r.dead {
						regions++
						for off := uint64(0); off < r.r.Len(); runs++ {
							at, k := r.r.At(off)
							if x := listed.runs[at]; uint64(len(x.Mem)) != k || frameOf(x.Mem) != base+r.from+off || x.Rights != r.rights || x.Peer != r.peer {
								t.Fatalf("the registrar has %d bytes, %v for %d, of %d bytes, %v for %d, at %v", len(x.Mem), x.Rights, x.Peer, k, r.rights, r.peer, at)
							}
							off += k
						}
						for p := (base + r.from) / PageSize; p <= (base+r.to-1)/PageSize; p++ {
							pages[p] = true
						}
					}
				}
				if len(listed.runs) != runs {
					t.Fatalf("the registrar has %d runs, there are %d", len(listed.runs), runs)
				}
				var s ATUStats
				atu.Stats(&s)
				if s.Regions != regions || s.Bytes != uint64(len(pages))*PageSize || s.Flushes != flushes {
					t.Fatalf("%+v, want %d regions, %d pages, %d flushes", s, regions, len(pages), flushes)
				}
			},
		})
	})
}

// TestATUAttach: the attach segment and registered memory are reached alike, up
// to Close.
func TestATUAttach(t *testing.T) {
	attach := pageMem(3)
	atu, err := NewATU(ATUConfig{Attach: attach, Rights: RightRead})
	if err != nil {
		t.Fatal(err)
	}
	mem := make([]byte, 100)
	r, err := atu.Register(mem, RightWrite, 7)
	if err != nil {
		t.Fatal(err)
	}
	at, _ := r.At(0)
	if b, err := atu.translate(1<<20, AttachBase+5, 3*PageSize-5, RightRead); err != nil || frameOf(b) != frameOf(attach)+5 {
		t.Error(err)
	}
	if b, err := atu.translate(7, at, 100, RightWrite); err != nil || frameOf(b) != frameOf(mem) {
		t.Error(err)
	}
	for _, c := range []struct {
		src  int
		a    NLA
		n    uint64
		need Rights
		want string
	}{
		{1, AttachBase, 1, RightWrite, "allows r-- only"},
		{1, AttachBase + 3*PageSize - 1, 2, RightRead, "nothing is mapped"},
		{1, at, 1, RightWrite, "belongs to vpid 7"},
		{7, at, 101, RightWrite, "is mapped"},
		{7, at - 1, 2, RightWrite, "page"},
	} {
		if _, err := atu.translate(c.src, c.a, c.n, c.need); !errors.Is(err, ErrFault) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d bytes at %v by %d: %v, want %q", c.n, c.a, c.src, err, c.want)
		}
	}
	var s ATUStats
	if atu.Stats(&s); s.Faults != 5 || s.Accesses != 7 {
		t.Errorf("%+v", s)
	}
	if err := errors.Join(atu.Close(), atu.Close()); err != nil {
		t.Fatal(err)
	}
	for _, a := range []NLA{AttachBase, at} {
		if _, err := atu.translate(7, a, 1, 0); !errors.Is(err, ErrFault) {
			t.Errorf("%v after Close: %v", a, err)
		}
	}
	if _, err := atu.Register(mem, RightRead, AnyPeer); !errors.Is(err, errs.ErrClosed) {
		t.Error(err)
	}
	if err := atu.Deregister(r); err != nil {
		t.Error(err)
	}
}

func TestATUArguments(t *testing.T) {
	atu, other := newATU(t, ATUConfig{}), newATU(t, ATUConfig{})
	mem := make([]byte, 8)
	for _, c := range []struct {
		mem    []byte
		rights Rights
		peer   int
		want   error
	}{
		{nil, RightRead, AnyPeer, errs.ErrBadArg},
		{mem[:0], RightRead, AnyPeer, errs.ErrBadArg},
		{mem, 0, AnyPeer, errs.ErrBadArg},
		{mem, 8, AnyPeer, errs.ErrBadArg},
		{mem, RightRead, -2, errs.ErrBadArg},
		{mem, RightRead, AnyVPID, errs.ErrNotSupported},
	} {
		if _, err := atu.Register(c.mem, c.rights, c.peer); !errors.Is(err, c.want) {
			t.Errorf("%d bytes, rights %v, peer %d: %v", len(c.mem), c.rights, c.peer, err)
		}
	}
	r, err := other.Register(mem, RightRead, AnyPeer)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []Registration{{}, r} {
		if err := atu.Deregister(r); !errors.Is(err, errs.ErrBadArg) {
			t.Error(err)
		}
		if err := atu.Revoke(r); !errors.Is(err, errs.ErrBadArg) {
			t.Error(err)
		}
	}
	if (Registration{}).Len() != 0 || (Registration{}).Rights() != 0 || r.Len() != 8 || r.Rights() != RightRead {
		t.Error("region")
	}
	if _, err := NewATU(ATUConfig{Attach: pageMem(2)[1 : PageSize+1], Rights: RightRead}); !errors.Is(err, errs.ErrBadArg) {
		t.Error(err)
	}
}

// TestBehindRegistrations: whatever has been registered and deregistered, the page
// of addresses behind a registration's last byte faults, as does an access that runs
// from the region into it, also where addresses run out. All are given back.
func TestBehindRegistrations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		attach := pageMem(rapid.IntRange(0, 2).Draw(t, "attached"))
		atu, err := NewATU(ATUConfig{Attach: attach, Rights: RightsAll})
		if err != nil {
			t.Fatal(err)
		}
		defer atu.Close()
		d := &atu.room
		little := rapid.Bool().Draw(t, "little room")
		if little {
			d.limit = d.base + 12*PageSize
			for d.taken < numSingles {
				d.single()
			}
			for i := range 3 {
				d.flip(1+i, -1)
			}
		}
		arena := pageMem(6)
		var live []Registration
		behind := func(r Registration) {
			last, _ := r.At(r.Len() - 1)
			for off := NLA(1); off <= PageSize; off += 1 + 7*(off/2) {
				for _, n := range []uint64{1, 8, 2 * PageSize} {
					if _, err := atu.translate(0, last+off, n, RightRead); !errors.Is(err, ErrFault) {
						t.Fatalf("%d bytes, %d behind a region of %d at %v: %v, want a fault", n, off, r.Len(), last, err)
					}
				}
			}
			if _, err := atu.translate(0, last, 2, RightRead); !errors.Is(err, ErrFault) {
				t.Fatalf("2 bytes at the last one of a region of %d, %v: %v, want a fault", r.Len(), last, err)
			}
			if _, err := atu.translate(0, last, 1, RightRead); err != nil {
				t.Fatal(err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"register": func(t *rapid.T) {
				page := rapid.IntRange(0, 5).Draw(t, "page")
				from := page*PageSize + rapid.SampledFrom([]int{0, 0, 8, PageSize - 1}).Draw(t, "from")
				to := rapid.IntRange(page+1, 6).Draw(t, "end")*PageSize - rapid.SampledFrom([]int{0, 0, 1, 5}).Draw(t, "short")
				r, err := atu.Register(arena[from:max(to, from+1)], RightsAll, AnyPeer)
				if little && errors.Is(err, errs.ErrResource) {
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				live = append(live, r)
			},
			"deregister": func(t *rapid.T) {
				if len(live) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				if err := atu.Deregister(live[i]); err != nil {
					t.Fatal(err)
				}
				live = slices.Delete(live, i, i+1)
			},
			"": func(t *rapid.T) {
				runs := []run{{at: AttachBase, pages: uint64(len(attach)) / PageSize}}
				for _, r := range live {
					behind(r)
					runs = append(runs, r.r.runs...)
				}
				slices.SortFunc(runs, func(a, b run) int { return cmp.Compare(a.at, b.at) })
				for i, r := range runs[1:] {
					if end := runs[i].at + NLA(runs[i].pages<<PageBits); r.at < end+PageSize {
						t.Fatalf("%v begins %d bytes behind %v", r, r.at-end, runs[i])
					}
				}
			},
		})
		for _, r := range live {
			if err := atu.Deregister(r); err != nil {
				t.Fatal(err)
			}
		}
		want := 1
		if little {
			want = numSingles - 3
		}
		if d.singles != nil && d.taken != want {
			t.Fatalf("%d single pages are taken, want %d", d.taken, want)
		}
		if all := uint64(d.limit-d.base)/PageSize - 1; d.heap != nil {
			if r, ok := d.block(all); !ok {
				t.Fatalf("there are no %d pages: %+v", all, d.heap.Usage())
			} else {
				d.free([]run{r})
			}
		}
	})
}

// TestSinceNeighbours: what has been registered beside a region is not taken for it.
func TestSinceNeighbours(t *testing.T) {
	atu := newATU(t, ATUConfig{})
	at := map[NLA]uint64{} // registrations, by address
	for range 5 {
		r, err := atu.Register(pageMem(1), RightsAll, AnyPeer)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := r.At(0)
		at[a] = atu.Registrations()
	}
	neighbours := 0
	for a, number := range at {
		if atu.Since(a, PageSize, number) || !atu.Since(a, 1, number-1) || !atu.Since(a+PageSize-1, 1, number-1) {
			t.Errorf("registration %d at %v is taken for another", number, a)
		}
		if atu.Since(a-PageSize, PageSize, 0) || atu.Since(a+PageSize, PageSize, 0) {
			t.Errorf("what is beside registration %d at %v is taken for it", number, a)
		}
		if at[a+2*PageSize] > 0 {
			neighbours++
			if !atu.Since(a+PageSize, PageSize+1, 0) {
				t.Errorf("the first byte behind the gap at %v is of no registration", a+PageSize)
			}
		}
	}
	if neighbours != 4 {
		t.Errorf("%d regions have others behind them: %v", neighbours, at)
	}
}

// TestRevokeKeepsAddresses: until Deregister the addresses are not given again.
func TestRevokeKeepsAddresses(t *testing.T) {
	atu := newATU(t, ATUConfig{})
	atu.room.limit = atu.room.base + 2*PageSize
	mem := pageMem(2)
	r, err := atu.Register(mem, RightRead, AnyPeer)
	if err != nil {
		t.Fatal(err)
	}
	at, _ := r.At(0)
	if err := errors.Join(atu.Revoke(r), atu.Revoke(r)); err != nil {
		t.Fatal(err)
	}
	q, err := atu.Register(mem, RightRead, AnyPeer)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := q.At(0); b == at {
		t.Error("addresses of a revoked region are handed out")
	}
	if _, err := atu.translate(0, at, 1, RightRead); !errors.Is(err, ErrFault) {
		t.Error(err)
	}
	if err := errors.Join(atu.Deregister(r), atu.Deregister(q)); err != nil {
		t.Fatal(err)
	}
}

// TestDeregisterAgainstAccesses has goroutines write to regions while these come
// and go. After Deregister the owner writes without any synchronisation but
// what Deregister gives; the race detector, and the check of the content, find
// an access that was still under way.
func TestDeregisterAgainstAccesses(t *testing.T) {
	atu := newATU(t, ATUConfig{})
	const slots, accessors = 3, 3
	var published [slots]atomic.Uint64
	var stop atomic.Bool
	var wg sync.WaitGroup
	var done, refused atomic.Uint64
	for g := range accessors {
		wg.Go(func() {
			for i := g; !stop.Load(); i++ {
				a := NLA(published[i%slots].Load())
				if a == 0 {
					runtime.Gosched()
					continue
				}
				u := atu.Enter()
				// 24 bytes of its own in each block, over the border of a page.
				b, err := u.Translate(g, a+NLA(PageSize-40+24*g), 24, RightWrite)
				if err == nil {
					for k := range b {
						b[k] = byte(i) | 1
					}
					done.Add(1)
				} else {
					refused.Add(1)
				}
				u.Exit()
				runtime.Gosched() // be preempted here rather than inside
			}
		})
	}
	const rounds = 100
	zero := make([]byte, 2*PageSize)
	for i := range rounds {
		mem := pageMem(2)
		r, err := atu.Register(mem, RightWrite, AnyPeer)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := r.At(0)
		published[i%slots].Store(uint64(a))
		for n := done.Load(); done.Load() < n+20; {
			runtime.Gosched()
		}
		if i%2 == 0 {
			err = atu.Deregister(r)
		} else {
			atu.Withdraw(mem[100:101])
			defer func() {
				if err := atu.Deregister(r); err != nil {
					t.Error(err)
				}
			}()
		}
		if err != nil {
			t.Fatal(err)
		}
		clear(mem)
		for range 10 {
			runtime.Gosched()
		}
		if !bytes.Equal(mem, zero) {
			t.Fatalf("round %d: memory changed after it was taken back", i)
		}
	}
	stop.Store(true)
	wg.Wait()
	if refused.Load() == 0 {
		t.Log("no access came late")
	}
}

// TestFlushWaits: Deregister waits for an access that began before it, and not
// for one that began after the entries were cleared.
func TestFlushWaits(t *testing.T) {
	atu := newATU(t, ATUConfig{})
	mem := make([]byte, 64)
	for _, foreign := range []bool{false, true} {
		r, err := atu.Register(mem, RightRead, AnyPeer)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := r.At(0)
		var word atomic.Uint64
		var u *Unit
		if foreign {
			atu.Watch(&word)
			word.Add(1)
		} else {
			u = atu.Enter()
			if _, err := u.Translate(0, a, 64, RightRead); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan error)
		go func() { done <- atu.Deregister(r) }()
		for err == nil { // until the entries are cleared
			_, err = atu.translate(0, a, 64, RightRead)
			runtime.Gosched()
		}
		if !errors.Is(err, ErrFault) {
			t.Errorf("an access that began during the flush: %v", err)
		}
		for range 1000 { // time for a flush that does not wait
			runtime.Gosched()
		}
		select {
		case err := <-done:
			t.Errorf("did not wait: %v", err)
			continue
		default:
		}
		if foreign {
			word.Add(1)
		} else {
			u.Exit()
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	// Attempts of the loop above, too, may have been waited for, and an access may have
	// ended before its flush, on a machine that is slow, looked: see TestFlushCountsWaits.
	var s ATUStats
	if atu.Stats(&s); s.Flushes != 2 {
		t.Errorf("%+v", s)
	}
}

// TestFlushCountsWaits: a flush waits for the units that are at work, and counts these. The
// words of two always say so: whenever one access ends, the next has begun.
func TestFlushCountsWaits(t *testing.T) {
	atu := newATU(t, ATUConfig{})
	r, err := atu.Register(make([]byte, 64), RightRead, AnyPeer)
	if err != nil {
		t.Fatal(err)
	}
	var words [3]atomic.Uint64
	words[0].Store(1)
	words[2].Store(1)
	for i := range words {
		atu.Watch(&words[i])
	}
	done := make(chan error, 1)
	go func() { done <- atu.Deregister(r) }()
	for ended := false; !ended; {
		words[0].Add(2)
		words[2].Add(2)
		select {
		case err = <-done:
			ended = true
		default:
			runtime.Gosched()
		}
	}
	words[0].Add(1) // Close flushes, too
	words[2].Add(1)
	var s ATUStats
	if atu.Stats(&s); err != nil || s.Flushes != 1 || s.FlushWaits != 2 {
		t.Errorf("%v, %+v, want one flush that waited for 2", err, s)
	}
}

// TestManyUnits has more accesses under way than there are units.
func TestManyUnits(t *testing.T) {
	atu := newATU(t, ATUConfig{})
	mem := make([]byte, 8)
	r, err := atu.Register(mem, RightRead, AnyPeer)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := r.At(0)
	var inside, most atomic.Int64
	var wg sync.WaitGroup
	for range 4 * numUnits {
		wg.Go(func() {
			for range 20 {
				u := atu.Enter()
				if _, err := u.Translate(0, a, 8, RightRead); err != nil {
					t.Error(err)
				}
				n := inside.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				runtime.Gosched()
				inside.Add(-1)
				u.Exit()
			}
		})
	}
	wg.Wait()
	if n := most.Load(); n > numUnits {
		t.Errorf("%d in %d units", n, numUnits)
	}
	var s ATUStats
	if atu.Stats(&s); s.Accesses != 4*numUnits*20 {
		t.Errorf("%d accesses", s.Accesses)
	}
}

// TestRegisteredGoMemoryLives: nothing but the registration holds on to it; and
// what was registered is the array, not what append makes of it.
func TestRegisteredGoMemoryLives(t *testing.T) {
	atu := newATU(t, ATUConfig{})
	freed := make(chan int, 2)
	type block struct{ b [3 * PageSize]byte }
	make1 := func(id int) (Registration, NLA) {
		x := new(block)
		runtime.AddCleanup(x, func(id int) { freed <- id }, id)
		for i := range x.b {
			x.b[i] = byte(id)
		}
		r, err := atu.Register(x.b[5:9000], RightRead, AnyPeer)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := r.At(0)
		return r, a
	}
	r1, a1 := make1(1)
	r2, a2 := make1(2)
	for range 3 {
		runtime.GC()
	}
	for id, a := range map[byte]NLA{1: a1, 2: a2} {
		b, err := atu.translate(0, a, 8995, RightRead)
		if err != nil || bytes.Count(b, []byte{id}) != 8995 {
			t.Fatalf("block %d: %v", id, err)
		}
	}
	if err := atu.Revoke(r1); err != nil {
		t.Fatal(err)
	}
	for id := 0; id == 0; {
		runtime.GC()
		select {
		case id = <-freed:
			if id != 1 {
				t.Errorf("block %d was freed", id)
			}
		default:
		}
	}
	if err := errors.Join(atu.Deregister(r1), atu.Deregister(r2)); err != nil {
		t.Error(err)
	}

	small := make([]byte, 10)
	r, err := atu.Register(small, RightRead|RightWrite, AnyPeer)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := r.At(0)
	grown := append(small, make([]byte, 2*PageSize)...)
	if b, err := atu.translate(0, a, 10, RightWrite); err != nil || frameOf(b) == frameOf(grown) {
		t.Error("the grown slice is registered", err)
	}
	if _, err := atu.translate(0, a, 11, RightRead); !errors.Is(err, ErrFault) {
		t.Error("bytes that were appended are reachable:", err)
	}
}

// TestForgottenATU: one that is not closed does no harm. The runtime panics if
// a Pinner is lost that pins.
func TestForgottenATU(t *testing.T) {
	gone := make(chan struct{})
	func() {
		atu, err := NewATU(ATUConfig{})
		if err != nil {
			t.Fatal(err)
		}
		runtime.AddCleanup(atu, func(c chan struct{}) { close(c) }, gone)
		if _, err := atu.Register(make([]byte, 100), RightRead, AnyPeer); err != nil {
			t.Fatal(err)
		}
	}()
	for {
		runtime.GC()
		select {
		case <-gone:
			runtime.GC()
			runtime.GC()
			return
		default:
		}
	}
}

func TestTranslateDoesNotAllocate(t *testing.T) {
	atu := newATU(t, ATUConfig{})
	mem := make([]byte, 3*PageSize)
	r, err := atu.Register(mem, RightsAll, AnyPeer)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := r.At(0)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := atu.translate(3, a, uint64(len(mem)), RightWrite); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Fatalf("%v allocations per access", n)
	}
}

// TestNeighboursStayApart: whatever stands in the tables behind a region, an access
// does not run into it, unless it is the next memory too.
func TestNeighboursStayApart(t *testing.T) {
	atu := newATU(t, ATUConfig{})
	mem := pageMem(4)
	r, err := atu.Register(mem[PageSize:2*PageSize], RightRead, AnyPeer)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := r.At(0)
	b := a + PageSize
	for i, at := range []NLA{b, b + PageSize} { // pages 0 and 1
		if err := atu.tables.Store(at, MakeEntry(AnyVPID, frameOf(mem[i*PageSize:])>>PageBits, RightRead)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := atu.translate(0, a, 2*PageSize, RightRead); !errors.Is(err, ErrFault) || !strings.Contains(err.Error(), "another piece of memory begins at page "+b.String()) {
		t.Error(err)
	}
	if m, err := atu.translate(0, b, 2*PageSize, RightRead); err != nil || frameOf(m) != frameOf(mem) {
		t.Error(err)
	}
}

// TestUnitHasOneUser lets goroutines fight for the one unit that is left.
func TestUnitHasOneUser(t *testing.T) {
	atu := newATU(t, ATUConfig{})
	var held []*Unit
	for range numUnits - 1 {
		held = append(held, atu.Enter())
	}
	var users atomic.Int32
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for range 3000 {
				u := atu.Enter()
				if users.Add(1) != 1 {
					t.Error("two are in one unit")
				}
				users.Add(-1)
				u.Exit()
			}
		})
	}
	wg.Wait()
	for _, u := range held {
		u.Exit()
	}
}

// TestRegisterLastPages: of the last two pages of all addresses the first is as good
// as any other, and the second stays free.
func TestRegisterLastPages(t *testing.T) {
	u, err := NewATU(ATUConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	for u.room.taken < numSingles {
		if _, ok := u.room.single(); !ok {
			t.Fatal("no page is left")
		}
	}
	mem := make([]byte, 2*PageSize)
	off := PageSize - frameOf(mem)%PageSize
	u.room.base = NLALimit - PageSize
	if _, err := u.Register(mem[:8], RightsAll, AnyPeer); !errors.Is(err, errs.ErrResource) {
		t.Fatalf("registration at the last page: %v", err)
	}
	u.room.base, u.room.heap = NLALimit-2*PageSize, nil
	r, err := u.Register(mem[off+8:off+PageSize-8], RightsAll, AnyPeer)
	if err != nil {
		t.Fatal(err)
	}
	if a, n := r.At(0); a != NLALimit-2*PageSize+8 || n != PageSize-16 {
		t.Fatalf("%d bytes at %v", n, a)
	}
	if err := u.Deregister(r); err != nil {
		t.Fatal(err)
	}
}

// TestLengthsLeaveNothing: memory of ever new lengths that is registered and taken back
// leaves nothing behind. What the unit keeps on purpose, the addresses that it gives out
// again as late as possible and the tables of a fragmented address space, is the same after
// the first half of the rounds.
func TestLengthsLeaveNothing(t *testing.T) {
	u := newATU(t, ATUConfig{})
	mem := make([]byte, 4<<20)
	r := rand.New(rand.NewPCG(1, 1))
	const rounds = 40 * maxLate
	live := func() (objects, bytes uint64) {
		for range rounds / 2 {
			g, err := u.Register(mem[:1+r.IntN(len(mem))], RightsAll, AnyPeer)
			if err == nil {
				err = u.Deregister(g)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapObjects, m.HeapAlloc
	}
	objects, bytes := live()
	if o, b := live(); o > objects+rounds/100 || b > bytes+rounds {
		t.Errorf("%d registrations, all taken back, left %d objects of %d bytes", rounds/2, int64(o-objects), int64(b-bytes))
	}
	runtime.KeepAlive(mem)
}
