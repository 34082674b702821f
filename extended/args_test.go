package extended

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/argon-go/argon/segment"
)

// TestBadArguments calls every form of every transfer with everything that is
// wrong with a rank or an address. Nothing may be moved, begun or leaked.
func TestBadArguments(t *testing.T) {
	for _, direct := range []bool{true, false} {
		for _, always := range []bool{false, true} {
			j := newFake(2, fakeOptions{direct: direct, config: Config{AlwaysHandle: always}})
			x := j.eps[0].x
			size := len(j.segs[1])
			for _, c := range []struct {
				what string
				rank int
				addr segment.NLA
				n    int
				says string
			}{
				{"rank -1", -1, at(0), 8, "rank -1 out of range: the job has ranks 0..1"},
				{"rank 2", 2, at(0), 8, "rank 2 out of range"},
				{"rank MinInt", math.MinInt, at(0), 8, "out of range"},
				{"before", 1, segment.PageSize - 1, 8, "outside the segment of rank 1, which has 16384 bytes"},
				{"across the beginning", 1, at(-4), 8, "outside the segment"},
				{"at the end", 1, at(size), 1, "outside the segment"},
				{"across the end", 1, at(size - 7), 8, "outside the segment"},
				{"across by one", 1, at(size - 1), 2, "outside the segment"},
				{"longer than the segment", 1, at(0), size + 1, "outside the segment"},
				{"address 0", 1, 0, 8, "outside the segment"},
				{"wrapping", 1, ^segment.NLA(0) - 3, 8, "outside the segment"},
				{"wrapping to the base", 1, ^segment.NLA(0), 8, "outside the segment"},
			} {
				buf := make([]byte, c.n)
				refused := func(form string, err error) {
					t.Helper()
					if !errors.Is(err, ErrBadArg) || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "extended: ") {
						t.Errorf("direct=%v %s, %s: %v", direct, form, c.what, err)
					}
				}
				nb := func(form string, h Handle, err error) {
					t.Helper()
					if h != 0 {
						t.Errorf("direct=%v %s, %s: handle %#x", direct, form, c.what, h)
					}
					refused(form, err)
				}
				refused("Put", x.Put(c.rank, c.addr, buf))
				refused("Get", x.Get(c.rank, c.addr, buf))
				refused("Memset", x.Memset(c.rank, c.addr, 1, c.n))
				h, err := x.PutNB(c.rank, c.addr, buf)
				nb("PutNB", h, err)
				h, err = x.PutBulkNB(c.rank, c.addr, buf)
				nb("PutBulkNB", h, err)
				h, err = x.GetNB(c.rank, c.addr, buf)
				nb("GetNB", h, err)
				h, err = x.MemsetNB(c.rank, c.addr, 1, c.n)
				nb("MemsetNB", h, err)
				refused("PutNBI", x.Implicit().PutNBI(c.rank, c.addr, buf))
				refused("PutBulkNBI", x.Implicit().PutBulkNBI(c.rank, c.addr, buf))
				refused("GetNBI", x.Implicit().GetNBI(c.rank, c.addr, buf))
				refused("MemsetNBI", x.Implicit().MemsetNBI(c.rank, c.addr, 1, c.n))
				if c.n <= 8 {
					refused("PutValue", x.PutValue(c.rank, c.addr, 1, c.n))
					_, err = x.GetValue(c.rank, c.addr, c.n)
					refused("GetValue", err)
					h, err = x.PutValueNB(c.rank, c.addr, 1, c.n)
					nb("PutValueNB", h, err)
					h, err = x.GetValueNB(c.rank, c.addr, new(uint64), c.n)
					nb("GetValueNB", h, err)
					refused("PutValueNBI", x.Implicit().PutValueNBI(c.rank, c.addr, 1, c.n))
				}
				// Shapes: a good run first, so that one must not be moved either.
				good := at(64)
				for name, shape := range map[string]func() (Shape, error){
					"vector": func() (Shape, error) {
						return Vector([]Extent{{good, 1}, {c.addr, c.n}}, [][]byte{{1}, buf})
					},
					"indexed": func() (Shape, error) {
						return Indexed(RemoteRuns{[]segment.NLA{good, c.addr}, c.n}, LocalRuns{make([]byte, 2*c.n), []int{0}, 2 * c.n})
					},
					"strided": func() (Shape, error) {
						return Strided(c.n, nil, RemoteBox{Addr: c.addr}, LocalBox{Mem: buf})
					},
				} {
					s, err := shape()
					if err != nil {
						t.Fatal(err)
					}
					refused("PutShape, "+name, x.PutShape(c.rank, s))
					refused("GetShape, "+name, x.GetShape(c.rank, s))
					h, err = x.PutShapeNB(c.rank, s)
					nb("PutShapeNB, "+name, h, err)
					h, err = x.GetShapeNB(c.rank, s)
					nb("GetShapeNB, "+name, h, err)
					refused("PutShapeNBI, "+name, x.Implicit().PutShapeNBI(c.rank, s))
					refused("GetShapeNBI, "+name, x.Implicit().GetShapeNBI(c.rank, s))
				}
			}
			for i, b := range j.segs[1] {
				if b != 0 {
					t.Fatalf("byte %d was written", i)
				}
			}
			if n := x.Outstanding(); n != 0 || j.eps[0].calls != 0 {
				t.Errorf("%d handles outstanding, %d calls of the conduit", n, j.eps[0].calls)
			}
		}
	}
}

func TestBadLengths(t *testing.T) {
	for _, direct := range []bool{true, false} {
		j := newFake(2, fakeOptions{direct: direct})
		x := j.eps[0].x
		refused := func(says string, err error) {
			t.Helper()
			if !errors.Is(err, ErrBadArg) || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), "extended: ") {
				t.Errorf("direct=%v, %q: %v", direct, says, err)
			}
		}
		for _, n := range []int{0, -1, 9, math.MaxInt, math.MinInt} {
			says := fmt.Sprintf("1 to 8 bytes, not %d", n)
			refused(says, x.PutValue(1, at(0), 1, n))
			_, err := x.GetValue(1, at(0), n)
			refused(says, err)
			_, err = x.PutValueNB(1, at(0), 1, n)
			refused(says, err)
			_, err = x.GetValueNB(1, at(0), new(uint64), n)
			refused(says, err)
			refused(says, x.Implicit().PutValueNBI(1, at(0), 1, n))
		}
		refused("negative length -1", x.Memset(1, at(0), 1, -1))
		_, err := x.MemsetNB(1, at(0), 1, math.MinInt)
		refused("negative length", err)
		refused("negative length -7", x.Implicit().MemsetNBI(1, at(0), 1, -7))

		b := make([]byte, 16)
		one := []int{1}
		put := func(s Shape, err error) error {
			if err == nil {
				err = x.PutShape(1, s)
			}
			return err
		}
		get := func(s Shape, err error) error {
			if err == nil {
				err = x.GetShape(1, s)
			}
			return err
		}
		made := func(s Shape, err error) error {
			if !reflect.DeepEqual(s, Shape{}) {
				t.Errorf("a shape beside the error %v", err)
			}
			return err
		}
		refused("1 counts, but 2 remote and 1 local", made(Strided(1, one, RemoteBox{at(0), []int{1, 2}}, LocalBox{b, 0, one})))
		refused("1 counts, but 1 remote and 0 local", made(Strided(1, one, RemoteBox{at(0), one}, LocalBox{b, 0, nil})))
		refused("negative element size -1", made(Strided(-1, one, RemoteBox{at(0), one}, LocalBox{b, 0, one})))
		refused("negative count -2 in dimension 0", made(Strided(1, []int{-2}, RemoteBox{at(0), one}, LocalBox{b, 0, one})))
		for _, c := range []struct {
			counts, strides []int
			elem            int
		}{
			{[]int{3}, []int{math.MaxInt}, 1},
			{[]int{3}, []int{math.MinInt}, 1},
			{[]int{2, 2}, []int{math.MinInt, math.MinInt}, 1},
			{[]int{2, 2}, []int{math.MinInt, math.MaxInt}, 1},
			{[]int{2}, []int{math.MaxInt}, 2},
		} {
			refused("overflow", made(Strided(c.elem, c.counts, RemoteBox{at(0), c.strides}, LocalBox{b, 0, make([]int, len(c.counts))})))
		}
		two := func(a segment.NLA, stride int) (Shape, error) {
			return Strided(1, []int{2}, RemoteBox{a, []int{stride}}, LocalBox{b, 0, one})
		}
		refused("outside the segment", put(two(at(0), -1)))
		refused("outside the segment", put(two(at(8), len(j.segs[1])-8)))
		refused("outside the segment", get(two(segment.PageSize-8, 8)))
		for _, c := range []struct{ off, stride, elem, count int }{
			{-1, 1, 1, 1},
			{17, 1, 1, 1},
			{16, 1, 1, 1},
			{0, -1, 1, 2},
			{15, 1, 1, 2},
			{0, 15, 2, 2},
			{9, -8, 8, 2},
			{0, math.MaxInt, 1, 2},
			{math.MaxInt, 1, 1, 2},
			{math.MinInt, 1, 1, 2},
		} {
			refused("leave the local slice of 16 bytes",
				made(Strided(c.elem, []int{c.count}, RemoteBox{at(64), []int{16}}, LocalBox{b, c.off, []int{c.stride}})))
		}
		indexed := func(addrs []segment.NLA, rlen int, offs []int, llen int) (Shape, error) {
			return Indexed(RemoteRuns{addrs, rlen}, LocalRuns{b, offs, llen})
		}
		zero := []segment.NLA{at(0)}
		refused("negative length: remote -1", made(indexed(zero, -1, []int{0}, 1)))
		refused("negative length: remote 1, local -1", made(indexed(zero, 1, []int{0}, -1)))
		refused("do not make", made(indexed(zero, 4, []int{0}, 8)))
		refused("do not make", made(indexed([]segment.NLA{at(0), at(0)}, math.MaxInt, []int{0}, 8)))
		refused("local run 1 of 2, at offset 15 of 2 bytes", made(indexed(zero, 4, []int{0, 15}, 2)))
		refused("at offset -1", made(indexed(zero, 2, []int{-1}, 2)))
		refused("remote run 1 of 2", put(indexed([]segment.NLA{at(0), at(-1)}, 2, []int{0}, 4)))
		refused("negative length -3", made(Vector([]Extent{{at(0), -3}}, nil)))
		refused("5 bytes together, local ones 4", made(Vector([]Extent{{at(0), 2}, {at(8), 3}}, [][]byte{b[:4]})))
		refused("the first 2 of 3 remote runs have 9223372036854775808 bytes",
			made(Vector([]Extent{{at(0), 1}, {at(0), math.MaxInt}, {at(0), math.MaxInt}}, nil)))
		refused("remote run 1 of 2", get(Vector([]Extent{{at(0), 2}, {segment.PageSize - 8, 2}}, [][]byte{b[:4]})))
		for i, b := range j.segs[1] {
			if b != 0 {
				t.Fatalf("byte %d was written", i)
			}
		}
	}
}

// TestNothing: moving nothing succeeds whatever the address, but a rank must exist.
func TestNothing(t *testing.T) {
	for _, direct := range []bool{true, false} {
		j := newFake(2, fakeOptions{direct: direct, config: Config{AlwaysHandle: true}})
		x := j.eps[0].x
		for _, rank := range []int{1, 2} {
			for _, a := range []segment.NLA{0, at(0), at(-1), at(len(j.segs[1])), at(1 << 30), ^segment.NLA(0)} {
				both := func(h Handle, err error) error {
					if h != 0 {
						t.Errorf("handle %#x for nothing", h)
					}
					return err
				}
				put := func(s Shape, err error) error {
					if err != nil {
						t.Error(err)
					}
					return x.PutShape(rank, s)
				}
				nothing, err := Strided(0, nil, RemoteBox{Addr: a}, LocalBox{})
				if err != nil {
					t.Error(err)
				}
				for i, err := range []error{
					x.Put(rank, a, nil), x.Get(rank, a, nil), x.Memset(rank, a, 1, 0),
					both(x.PutNB(rank, a, nil)), both(x.GetNB(rank, a, nil)), both(x.MemsetNB(rank, a, 1, 0)),
					x.Implicit().PutNBI(rank, a, []byte{}), x.Implicit().GetNBI(rank, a, []byte{}), x.Implicit().MemsetNBI(rank, a, 1, 0),
					put(Strided(1, []int{0}, RemoteBox{a, []int{1 << 62}}, LocalBox{nil, 5, []int{1 << 62}})),
					put(Strided(0, []int{1 << 62}, RemoteBox{a, []int{1 << 62}}, LocalBox{nil, -5, []int{1 << 62}})),
					both(x.GetShapeNB(rank, nothing)), both(x.PutShapeNB(rank, Shape{})), x.Implicit().GetShapeNBI(rank, nothing),
					put(Indexed(RemoteRuns{nil, 5}, LocalRuns{nil, nil, 7})),
					put(Indexed(RemoteRuns{[]segment.NLA{a}, 0}, LocalRuns{nil, []int{3}, 0})),
					put(Vector([]Extent{{a, 0}}, [][]byte{nil})), x.GetShape(rank, Shape{}),
				} {
					if rank == 1 && err != nil || rank == 2 && !errors.Is(err, ErrBadArg) {
						// An address and no bytes are what the fast path accepts for
						// any rank that it knows; others it refuses.
						t.Errorf("direct=%v rank %d address %v, form %d: %v", direct, rank, a, i, err)
					}
				}
			}
		}
	}
}

func TestRights(t *testing.T) {
	for _, direct := range []bool{true, false} {
		for _, rights := range []segment.Rights{segment.RightRead, segment.RightWrite, segment.RightAtomic} {
			x := newFake(2, fakeOptions{direct: direct, eager: true, rights: rights}).eps[0].x
			b := make([]byte, 8)
			check := func(form string, need segment.Rights, err error) {
				t.Helper()
				if need == rights && err != nil {
					t.Errorf("direct=%v %v %s: %v", direct, rights, form, err)
				}
				if need != rights && (!errors.Is(err, ErrBadArg) || !strings.Contains(err.Error(), "right")) {
					t.Errorf("direct=%v %v %s without the right: %v", direct, rights, form, err)
				}
			}
			check("put", segment.RightWrite, x.Put(1, at(0), b))
			check("get", segment.RightRead, x.Get(1, at(0), b))
			check("memset", segment.RightWrite, x.Memset(1, at(0), 1, 8))
			check("put value", segment.RightWrite, x.PutValue(1, at(0), 1, 5))
			_, err := x.GetValue(1, at(0), 3)
			check("get value", segment.RightRead, err)
			_, err = x.PutNB(1, at(0), b)
			if need := segment.RightWrite; need != rights {
				check("put nb", need, err)
			}
			for name, shape := range map[string]func() (Shape, error){
				"strided": func() (Shape, error) {
					return Strided(1, []int{4}, RemoteBox{at(0), []int{2}}, LocalBox{b, 0, []int{2}})
				},
				"vector": func() (Shape, error) { return Vector([]Extent{{at(0), 8}}, [][]byte{b}) },
			} {
				s, err := shape()
				if err != nil {
					t.Fatal(err)
				}
				check(name, segment.RightWrite, x.PutShape(1, s))
				check(name, segment.RightRead, x.GetShape(1, s))
			}
			_, err = FetchAdd[uint64](x, 1, at(0), 1)
			check("atomic", segment.RightAtomic, err)
			check("signal", segment.RightAtomic, x.Signal(1, at(0), SignalAdd, 1))
		}
	}
}

func TestNotBound(t *testing.T) {
	x := New(Config{})
	var r Region
	b := make([]byte, 8)
	_, err1 := x.PutNB(0, at(0), b)
	_, err2 := Load[int64](x, 0, at(0))
	_, err3 := x.WaitUntil(at(0), Eq, 0)
	_, err4 := x.Implicit().Try(All)
	for i, err := range []error{
		x.Put(0, at(0), b), x.Get(0, at(0), b), x.PutValue(0, at(0), 1, 8), err1, err2, err3, err4,
		x.Signal(0, at(0), SignalSet, 1), x.Implicit().Sync(All), x.Implicit().PutNBI(0, at(0), b), x.BeginRegion(&r), r.PutNBI(0, at(0), b),
		r.GetNBI(0, at(0), b), r.PutValueNBI(0, at(0), 1, 8), r.MemsetNBI(0, at(0), 1, 8), r.Sync(All),
		AtomicNBI[int32](&r, 0, at(0), nil, AtomicAdd, 1, 0), r.PutShapeNBI(0, Shape{}), x.PutShape(0, Shape{}),
	} {
		if !errors.Is(err, ErrNotInit) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	x.Fence()
	x.Wake(0)
	if x.Direct(0, at(0), 8) != nil {
		t.Error("memory before Bind")
	}
}

func TestRegionMisuse(t *testing.T) {
	j := newFake(2, fakeOptions{hold: true})
	x := j.eps[0].x
	b := make([]byte, 8)
	refused := func(says string, err error) {
		t.Helper()
		if !errors.Is(err, ErrBadArg) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", says, err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	r := x.NewRegion()
	_, err := r.End()
	refused("not open", err)
	must(r.PutBulkNBI(1, at(0), b)) // before the access region
	must(x.BeginRegion(r))
	refused("do not nest", x.BeginRegion(r))
	refused("open", r.Sync(All))
	_, err = r.Try(Puts)
	refused("open", err)
	must(r.PutBulkNBI(1, at(8), b))
	h, err := r.End()
	must(err)
	if h == 0 {
		t.Fatal("the operation is under way, but there is no handle")
	}
	_, err = r.End()
	refused("not open", err)
	if done, err := r.Try(All); done || err != nil {
		t.Fatal("what was begun before the access region is forgotten", err)
	}
	refused("category 0", r.Sync(0))
	refused("category 4", r.Sync(4))
	refused("all goroutines share", x.BeginRegion(x.Implicit()))
	refused("another rank", j.eps[1].x.BeginRegion(r))
	j.eps[0].release()
	must(r.Sync(Puts))
	must(x.Wait(h))

	// The zero Region belongs to the Initiator that begins it; an empty one is complete.
	var z Region
	must(x.BeginRegion(&z))
	if h, err := z.End(); h != 0 || err != nil {
		t.Fatal(h, err)
	}
	must(z.GetNBI(1, at(0), b))
	must(z.Sync(Puts))
	must(z.Sync(Gets))
	for range 3 { // again and again
		must(x.BeginRegion(&z))
		must(z.GetNBI(1, at(0), b))
		must(z.PutNBI(1, at(0), b))
		h, err := z.End()
		must(err)
		must(x.Wait(h))
	}
	if x.Outstanding() != 0 {
		t.Fatal(x.Outstanding())
	}
}

// TestDirect gives memory only where it is.
func TestDirect(t *testing.T) {
	j := newFake(2, fakeOptions{direct: true})
	x := j.eps[0].x
	size := uint64(len(j.segs[1]))
	b := x.Direct(1, at(8), 16)
	if len(b) != 16 {
		t.Fatal(len(b))
	}
	b[3] = 77
	if v, err := x.GetValue(1, at(11), 1); v != 77 || err != nil {
		t.Fatal(v, err)
	}
	for off := range 2 {
		if b := x.Direct(1, at(off*int(size)), 0); b == nil || len(b) != 0 {
			t.Error("no bytes are not memory that is not there")
		}
	}
	for _, bad := range [][]byte{x.Direct(2, at(0), 8), x.Direct(-1, at(0), 8), x.Direct(1, at(0), size+1), x.Direct(1, at(-1), 1), x.Direct(1, ^segment.NLA(0), 2)} {
		if bad != nil {
			t.Error("memory that is not there")
		}
	}
}

// TestRegionIsForgotten: an access region whose operations are complete when it ends,
// and that so has no handle, is not open any more.
func TestRegionIsForgotten(t *testing.T) {
	j := newFake(2, fakeOptions{bare: true, config: Config{Origins: true}})
	x := j.eps[0].x
	r := x.NewRegion()
	if err := x.BeginRegion(r); err != nil {
		t.Fatal(err)
	}
	if _, regions, _ := x.Forgotten(); regions != 1 {
		t.Errorf("%d regions are open, want 1", regions)
	}
	if err := r.PutBulkNBI(1, at(8), make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		j.eps[0].Poll()
	}
	if h, err := r.End(); h != 0 || err != nil {
		t.Fatal(h, err)
	}
	if handles, regions, list := x.Forgotten(); handles+regions != 0 {
		t.Errorf("%d handles and %d regions are open: %v", handles, regions, list)
	}
}
