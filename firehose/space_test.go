package firehose

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
	"pgregory.net/rapid"
)

// newSpace makes a Space with an ATU of its own.
func newSpace(t testing.TB, bucket uint64) (*Space, *segment.ATU) {
	atu, err := segment.NewATU(segment.ATUConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := atu.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := NewSpace(func() (*segment.ATU, error) { return atu, nil }, bucket)
	if err != nil {
		t.Fatal(err)
	}
	return s, atu
}

// exposed is one Expose in a model of a Space.
type exposed struct {
	mem    []byte
	rights segment.Rights
	peer   int
	held   int // pins of a part that is concealed
	gone   bool
}

// TestSpaceModel compares a Space of few addresses with a model that looks at
// every part: its addresses, what is reached by them, and when other parts get
// them.
func TestSpaceModel(t *testing.T) {
	wrapped, full := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		atu, err := segment.NewATU(segment.ATUConfig{})
		if err != nil {
			t.Fatal(err)
		}
		defer atu.Close()
		s, err := NewSpace(func() (*segment.ATU, error) { return atu, nil }, testBucket)
		if err != nil {
			t.Fatal(err)
		}
		const buckets = 16 // that can be given out
		s.limit = (buckets + 1) * testBucket
		m, err := newMachine(Config{Size: 1, Budget: 64 * testBucket, Bucket: testBucket, Memory: s})
		if err != nil {
			t.Fatal(err)
		}
		parts := map[Addr]*exposed{}
		type pin struct {
			slot uint32 // of m's, which holds it for a peer
			p    *exposed
		}
		var pins []pin
		end := func(a Addr, p *exposed) Addr { return a + Addr(s.size(len(p.mem))) }
		last := Addr(0)
		t.Repeat(map[string]func(*rapid.T){
			"expose": func(t *rapid.T) {
				n := rapid.OneOf(rapid.IntRange(1, 10), rapid.IntRange(1, 4*testBucket)).Draw(t, "n")
				p := &exposed{
					mem:    make([]byte, n),
					rights: segment.Rights(rapid.IntRange(1, int(segment.RightsAll)).Draw(t, "rights")),
					peer:   rapid.IntRange(-1, 2).Draw(t, "peer"),
				}
				// Where there is room: the first from the end of the last on.
				var busy [buckets + 1]bool
				busy[0] = true
				for a, q := range parts {
					for b := a; b < end(a, q); b += testBucket {
						busy[b/testBucket] = true
					}
				}
				k := int(s.size(n) / testBucket)
				fits := func(b int) bool { return b+k <= buckets+1 && !slices.Contains(busy[b:b+k], true) }
				want := 0
				for b := int(last / testBucket); b <= buckets && want == 0; b++ {
					if fits(b) {
						want = b
					}
				}
				for b := 1; b <= buckets && want == 0; b++ {
					if fits(b) {
						want = b
						wrapped++
					}
				}
				a, err := s.Expose(p.mem, p.rights, p.peer)
				if want == 0 {
					full++
					if !errors.Is(err, errs.ErrResource) {
						t.Fatalf("there is no room for %d bytes: %#x, %v", n, a, err)
					}
					return
				}
				if err != nil || int(a/testBucket) != want || a%testBucket != 0 {
					t.Fatalf("%d bytes are exposed at %#x, want bucket %d: %v", n, a, want, err)
				}
				for b, q := range parts {
					if a < b+Addr(len(q.mem))+segment.PageSize && b < a+Addr(n)+segment.PageSize {
						t.Fatalf("%d bytes are exposed at %#x, less than a page from %d at %#x", n, a, len(q.mem), b)
					}
				}
				parts[a] = p
				last = end(a, p)
			},
			"conceal": func(t *rapid.T) {
				a := Addr(rapid.IntRange(0, buckets).Draw(t, "bucket") * testBucket)
				p := parts[a]
				err := s.conceal(m, a, nil)
				if (p != nil && !p.gone) != (err == nil) || err != nil && !errors.Is(err, errs.ErrBadArg) {
					t.Fatalf("conceal %#x, which is exposed: %v: %v", a, p != nil && !p.gone, err)
				}
				if err == nil {
					p.gone = true
					for _, k := range pins {
						if k.p == p {
							p.held++
						}
					}
					if p.held == 0 {
						delete(parts, a)
					}
				}
			},
			"pin": func(t *rapid.T) {
				a := Addr(rapid.IntRange(0, (buckets+1)*testBucket-1).Draw(t, "a"))
				slot, g := m.hold(uint64(a) / testBucket)
				_, local := s.Local(a, 1)
				b := a &^ (testBucket - 1)
				if _, begins := s.Local(b, 1); (local || begins) != (slot != 0) || slot == 0 && g.NLA != refusedNotExposed {
					t.Fatalf("pin at %#x, which is exposed: %v: %v, %v", a, local, slot, g)
				}
				if slot != 0 {
					for at, p := range parts {
						if at <= a && a < end(at, p) {
							pins = append(pins, pin{slot, p})
						}
					}
				}
			},
			"release": func(t *rapid.T) {
				if len(pins) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(pins)-1).Draw(t, "pin")
				k := pins[i]
				pins = slices.Delete(pins, i, i+1)
				m.unhold(k.slot)
				if k.p.gone {
					if k.p.held--; k.p.held == 0 {
						for a, p := range parts {
							if p == k.p {
								delete(parts, a)
							}
						}
					}
				}
			},
			"reach": func(t *rapid.T) {
				a := Addr(rapid.IntRange(0, (buckets+2)*testBucket).Draw(t, "a"))
				n := uint64(rapid.OneOf(rapid.IntRange(0, 9), rapid.IntRange(0, 3*testBucket)).Draw(t, "n"))
				src := rapid.IntRange(0, 2).Draw(t, "src")
				need := segment.Rights(rapid.IntRange(0, int(segment.RightsAll)).Draw(t, "need"))
				var want []byte
				var of *exposed
				for at, p := range parts {
					if off := uint64(a - at); at <= a && !p.gone && off < uint64(len(p.mem)) && n <= uint64(len(p.mem))-off {
						want, of = p.mem[off:off+n], p
					}
				}
				for range 2 { // the second time by what was found the first time
					b, ok := s.Local(a, n)
					if ok != (of != nil) || ok && (len(b) != len(want) || cap(b) != len(b) || n > 0 && &b[0] != &want[0]) {
						t.Fatalf("%d bytes at %#x: %v, want %v", n, a, ok, of != nil)
					}
				}
				var b []byte
				err := s.Serve(src, a, n, need, func(mem []byte) { b = mem })
				switch {
				case of == nil:
					if !errors.Is(err, ErrNotExposed) {
						t.Fatalf("%d bytes at %#x, which are not exposed: %v", n, a, err)
					}
				case need&^of.rights != 0 || of.peer != segment.AnyPeer && of.peer != src:
					if !errors.Is(err, segment.ErrFault) {
						t.Fatalf("%d bytes at %#x, without rights: %v", n, a, err)
					}
				default:
					if err != nil || len(b) != len(want) || n > 0 && &b[0] != &want[0] {
						t.Fatalf("%d bytes at %#x: %v", n, a, err)
					}
				}
			},
			"": func(t *rapid.T) {
				live, dying := 0, 0
				for _, p := range parts {
					if p.gone {
						dying++
					} else {
						live++
					}
				}
				v := s.parts.Load()
				if len(v.starts)-s.gaps != live || len(s.dying) != dying || !slices.IsSorted(v.starts) {
					t.Fatalf("%d parts, %d of them gaps, and %d dying; want %d and %d: %v", len(v.starts), s.gaps, len(s.dying), live, dying, v.starts)
				}
				if l := s.last.Load(); l != nil && l.gone.Load() {
					t.Fatal("holds on to memory that is concealed")
				}
			},
		})
		for _, k := range pins {
			m.unhold(k.slot)
		}
		m.Close()
		var st segment.ATUStats
		if atu.Stats(&st); st.Regions != 0 || len(s.dying) > 0 || s.Err() != nil {
			t.Fatalf("%d registrations, %d parts are left: %v", st.Regions, len(s.dying), s.Err())
		}
	})
	if wrapped == 0 || full == 0 {
		t.Errorf("addresses came around %d times, and were used up %d times", wrapped, full)
	}
}

// TestLocalAgainstConceal lets goroutines look addresses up while others take them
// back: what is found is what is exposed there, and nothing is found after Conceal
// has returned. Memory stays while Serve accesses it.
func TestLocalAgainstConceal(t *testing.T) {
	const size, rounds, readers = 3 * testBucket, 1000, 2
	s, _ := newSpace(t, testBucket)
	m, err := newMachine(Config{Size: 1, Budget: 8 * testBucket, Bucket: testBucket, Memory: s})
	if err != nil {
		t.Fatal(err)
	}
	var newest, concealed, seen atomic.Uint64 // addresses, which only grow; how many were found
	var stop atomic.Bool
	var wg sync.WaitGroup
	for id := range readers {
		wg.Go(func() {
			for ; !stop.Load(); runtime.Gosched() {
				a, before := Addr(newest.Load()), concealed.Load()
				if a == 0 { // the first is not announced: a+testBucket may be its begin
					continue
				}
				b, ok := s.Local(a+testBucket, 8)
				if ok && (uint64(a) <= before || word(b, 0) != uint64(a)) {
					t.Errorf("%#x is found after %#x was concealed; it holds %#x", a, before, word(b, 0))
					return
				}
				if ok {
					seen.Add(1)
				}
				_ = s.Serve(id, a+testBucket+8, 8, segment.RightRead, func(b []byte) {
					for range 3 {
						if word(b, 0) != uint64(a) {
							t.Errorf("%#x holds %#x in an access", a, word(b, 0))
						}
						runtime.Gosched()
					}
				})
			}
		})
	}
	for i := 0; i < rounds || seen.Load() == 0; i++ {
		mem := make([]byte, size)
		a, err := s.Expose(mem, segment.RightsAll, segment.AnyPeer)
		if err != nil {
			t.Fatal(err)
		}
		// No rank looks for it before it is announced.
		binary.LittleEndian.PutUint64(mem[testBucket:], uint64(a))
		binary.LittleEndian.PutUint64(mem[testBucket+8:], uint64(a))
		newest.Store(uint64(a))
		runtime.Gosched()
		if err := s.conceal(m, a, nil); err != nil {
			t.Fatal(err)
		}
		concealed.Store(uint64(a))
		clear(mem[testBucket+8:]) // no other rank reaches it any more
	}
	stop.Store(true)
	wg.Wait()
}

// TestConcealLetsGo: what is concealed is garbage, whatever was looked up last; and
// exposing again and again takes nothing but addresses, which come around.
func TestConcealLetsGo(t *testing.T) {
	s, atu := newSpace(t, testBucket)
	s.limit = 1000 * testBucket
	m, err := newMachine(Config{Size: 1, Budget: 8 * testBucket, Bucket: testBucket, Memory: s})
	if err != nil {
		t.Fatal(err)
	}
	var held []uint32 // slots of m that a peer remembers
	var freed atomic.Int64
	const n = 5000
	keep, err := s.Expose(make([]byte, 1), segment.RightRead, segment.AnyPeer)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		mem := make([]byte, 2*testBucket)
		runtime.AddCleanup(&mem[0], func(int) { freed.Add(1) }, 0)
		a, err := s.Expose(mem, segment.RightRead, segment.AnyPeer)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := s.Local(a, 1); !ok {
			t.Fatal("not found")
		}
		if i%7 == 0 {
			slot, g := m.hold(uint64(a) / testBucket)
			if slot == 0 {
				t.Fatal(g)
			}
			if len(held) < 3 {
				held = append(held, slot)
			} else {
				m.unhold(slot)
			}
		}
		if err := s.conceal(m, a, nil); err != nil {
			t.Fatal(err)
		}
	}
	v := s.parts.Load()
	if cap(v.starts) > 100 || len(s.dying) != len(held) || s.pinned.index.n != len(held) {
		t.Errorf("room for %d parts, %d dying, %d pinned", cap(v.starts), len(s.dying), s.pinned.index.n)
	}
	for freed.Load() < n { // cleanups run on a goroutine of their own
		runtime.GC()
		runtime.Gosched()
	}
	for _, slot := range held {
		m.unhold(slot)
	}
	if len(s.dying)+s.pinned.index.n > 0 {
		t.Errorf("%d dying, %d pinned", len(s.dying), s.pinned.index.n)
	}
	if _, ok := s.Local(keep, 1); !ok {
		t.Error("what stays exposed is gone")
	}
	var st segment.ATUStats
	if atu.Stats(&st); st.Regions > 0 {
		t.Errorf("%d regions", st.Regions)
	}
	runtime.KeepAlive(s)
}

// TestManyParts: exposing does not take time for those that there are, nor does
// concealing.
func TestManyParts(t *testing.T) {
	s, _ := newSpace(t, testBucket)
	m, err := newMachine(Config{Size: 1, Budget: 8 * testBucket, Bucket: testBucket, Memory: s})
	if err != nil {
		t.Fatal(err)
	}
	const n, each = 200000, 2 * testBucket // a part and the page behind
	mem := make([]byte, n)
	for i := range n {
		if a, err := s.Expose(mem[i:i+1], segment.RightsAll, segment.AnyPeer); err != nil || a != Addr(testBucket+i*each) {
			t.Fatal(a, err)
		}
	}
	for i := range n {
		if b, ok := s.Local(Addr(testBucket+i*each), 1); !ok || &b[0] != &mem[i] {
			t.Fatalf("part %d: %v", i, ok)
		}
	}
	for i := range n {
		if err := s.conceal(m, Addr(testBucket+i*7919%n*each), nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := cap(s.parts.Load().starts); n > 100 {
		t.Errorf("room for %d parts is kept", n)
	}
}

// TestConcealedWhileLookedUp: Local may come to remember a part just when it is
// concealed.
func TestConcealedWhileLookedUp(t *testing.T) {
	s, _ := newSpace(t, testBucket)
	m, err := newMachine(Config{Size: 1, Budget: 8 * testBucket, Bucket: testBucket, Memory: s})
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.Expose(make([]byte, 1), segment.RightsAll, segment.AnyPeer)
	if err != nil {
		t.Fatal(err)
	}
	p := s.at(a)
	if err := s.conceal(m, a, nil); err != nil {
		t.Fatal(err)
	}
	s.last.Store(p)
	if _, ok := s.Local(a, 1); ok {
		t.Error("found")
	}
}

// TestLazyUnit: the ATU is not asked for before something is pinned, and what it
// says is passed on.
func TestLazyUnit(t *testing.T) {
	asked := 0
	refuse := errors.New("no unit")
	s, err := NewSpace(func() (*segment.ATU, error) { asked++; return nil, refuse }, testBucket)
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.Expose(make([]byte, 10), segment.RightsAll, segment.AnyPeer)
	if err != nil || asked != 0 {
		t.Fatal(err, asked)
	}
	if _, err := s.Pin(a, testBucket); !errors.Is(err, refuse) || asked != 1 {
		t.Error(err, asked)
	}
	if _, err := s.PinOnce(a, 10); !errors.Is(err, refuse) {
		t.Error(err)
	}
	for _, n := range []uint64{0, 100, testBucket + 1, 3 * testBucket} {
		if _, err := NewSpace(nil, n); !errors.Is(err, errs.ErrBadArg) {
			t.Errorf("buckets of %d bytes: %v", n, err)
		}
	}
}

func BenchmarkLocal(b *testing.B) {
	for _, n := range []int{1, 10, 1000, 100000} {
		s, _ := newSpace(b, testBucket)
		addrs := make([]Addr, n)
		for i := range n {
			var err error
			if addrs[i], err = s.Expose(make([]byte, 16), segment.RightsAll, segment.AnyPeer); err != nil {
				b.Fatal(err)
			}
		}
		for _, stride := range []int{0, 7919} {
			b.Run(fmt.Sprintf("parts=%d/last=%v", n, stride == 0 || n == 1), func(b *testing.B) {
				for i := 0; b.Loop(); {
					if _, ok := s.Local(addrs[i]+3, 8); !ok {
						b.Fatal("not found")
					}
					if i += stride; i >= n {
						i %= n
					}
				}
			})
			if n == 1 {
				break
			}
		}
	}
}

// TestPeerBeyondProtection: what could not be registered is not exposed.
func TestPeerBeyondProtection(t *testing.T) {
	s, _ := newSpace(t, testBucket)
	for peer, want := range map[int]error{segment.AnyVPID - 1: nil, segment.AnyVPID: errs.ErrNotSupported, 1 << 20: errs.ErrNotSupported} {
		if _, err := s.Expose(make([]byte, 1), segment.RightsAll, peer); !errors.Is(err, want) {
			t.Errorf("rank %d: %v, want %v", peer, err, want)
		}
	}
}

// TestPastTheEnd: behind memory that ends with a bucket there is nothing, although
// other memory is exposed next.
func TestPastTheEnd(t *testing.T) {
	s, _ := newSpace(t, testBucket)
	a, err := s.Expose(make([]byte, testBucket), segment.RightsAll, segment.AnyPeer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Expose(make([]byte, testBucket), segment.RightsAll, segment.AnyPeer); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Local(a+testBucket, 1); ok {
		t.Error("the byte behind it is there")
	}
	if _, err := s.Pin(a+testBucket, testBucket); !errors.Is(err, ErrNotExposed) {
		t.Errorf("the bucket behind it: %v", err)
	}
}
