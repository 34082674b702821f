package gas

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/segment"
)

func TestPtrIsOneWord(t *testing.T) {
	if s := unsafe.Sizeof(Ptr[[3]byte]{}); s != 8 {
		t.Errorf("a Ptr has %d bytes", s)
	}
	if s := unsafe.Sizeof(LockWord{}); s != extended.LockSize {
		t.Errorf("a LockWord has %d bytes", s)
	}
	if err := CheckType[Ptr[int]](); err != nil {
		t.Errorf("a Ptr cannot be shared: %v", err)
	}
}

func genRank() *rapid.Generator[int] { return rapid.IntRange(0, maxRanks-1) }

// place is a Ptr as the model sees it: a rank and a byte offset in its segment.
type place struct {
	rank, off int
}

func (p place) ptr(t *rapid.T) Ptr[[3]int32] {
	q, err := MakePtr[[3]int32](p.rank, segment.AttachBase+segment.NLA(p.off))
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestPtrArithmetic(t *testing.T) {
	const size = 12
	rapid.Check(t, func(t *rapid.T) {
		p := place{genRank().Draw(t, "rank"), rapid.IntRange(0, 1<<32).Draw(t, "off")}
		k := rapid.IntRange(-(p.off/size), 1<<31).Draw(t, "k")
		q := p.ptr(t).Add(k)
		want := place{p.rank, p.off + k*size}
		if q != want.ptr(t) {
			t.Fatalf("%v.Add(%d) is %v, want %v", p.ptr(t), k, q, want.ptr(t))
		}
		if q.Rank() != want.rank || q.Offset() != uint64(want.off) || q.IsNil() {
			t.Fatalf("%v has rank %d, offset %d", q, q.Rank(), q.Offset())
		}
		if d := q.Sub(p.ptr(t)); d != k {
			t.Fatalf("%v - %v is %d, want %d", q, p, d, k)
		}
		if r := q.Add(-k); r != p.ptr(t) {
			t.Fatalf("there and back is %v, not %v", r, p)
		}
		if lo, hi := q.Words(); PtrFromWords[[3]int32](lo, hi) != q || PtrFromUint64[[3]int32](q.Uint64()) != q {
			t.Fatalf("%v does not survive as words", q)
		}
		other := place{genRank().Draw(t, "other rank"), rapid.IntRange(0, 1<<32).Draw(t, "other off")}
		wantSign := 0
		switch {
		case want.rank != other.rank:
			wantSign = sign(want.rank - other.rank)
		default:
			wantSign = sign(want.off - other.off)
		}
		if s := q.Compare(other.ptr(t)); s != wantSign || q.Less(other.ptr(t)) != (wantSign < 0) {
			t.Fatalf("%v compared to %v is %d, want %d", q, other, s, wantSign)
		}
		if on := q.On(other.rank); on.Rank() != other.rank || on.Offset() != q.Offset() {
			t.Fatalf("%v.On(%d) is %v", q, other.rank, on)
		}
	})
}

func sign(x int) int {
	switch {
	case x < 0:
		return -1
	case x > 0:
		return 1
	}
	return 0
}

// Add is exact as long as there are addresses, and reaches neither another rank nor, from beyond
// them, any address again, however far it goes.
func TestPtrAdd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := place{genRank().Draw(t, "rank"), rapid.IntRange(0, 1<<38).Draw(t, "off")}.ptr(t)
		q, at, size := p, new(big.Int).SetUint64(uint64(p.NLA())), big.NewInt(12)
		for range 3 {
			k := farInt().Draw(t, "k")
			q = q.Add(k)
			at.Add(at, new(big.Int).Mul(big.NewInt(int64(k)), size))
			lost := at.Sign() < 0 || at.Cmp(big.NewInt(nowhere)) >= 0
			if lost {
				at.SetInt64(nowhere)
			}
			if q.Rank() != p.Rank() || uint64(q.NLA()) != at.Uint64() {
				t.Fatalf("%v and %d is %v, want %#x of rank %d", p, k, q, at, p.Rank())
			}
			if lost {
				q = q.Add(rapid.SampledFrom([]int{0, 1, -1, -1 << 20}).Draw(t, "more"))
				if q.NLA() != nowhere || !strings.Contains(q.String(), "nowhere") || q.On(1).Rank() != 1 {
					t.Fatalf("from nowhere to %v", q)
				}
				break
			}
		}
	})
}

// farInt draws numbers near the limits of 31 to 63 bits, of either sign, and others.
func farInt() *rapid.Generator[int] {
	return rapid.Custom(func(t *rapid.T) int {
		near := rapid.IntRange(-9, 9).Draw(t, "near")
		switch base := rapid.SampledFrom([]int{0, 20, 31, 32, 39, 40, 60, 62, 63}).Draw(t, "bits"); {
		case base == 0:
			return near
		case rapid.Bool().Draw(t, "negative"):
			return -1<<base + near
		default:
			return 1<<base + near
		}
	})
}

func TestMakePtrRefuses(t *testing.T) {
	for _, c := range []struct {
		rank int
		a    segment.NLA
		want string
	}{
		{-1, segment.AttachBase, "rank -1"},
		{maxRanks, segment.AttachBase, "rank 16776960"},
		{1 << 24, segment.AttachBase, "rank 16777216"},
		{0, 0, "0x0"},
		{0, segment.ExposedLimit, "0x10000000000"},
	} {
		_, err := MakePtr[int](c.rank, c.a)
		if !errors.Is(err, ErrBadArg) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("MakePtr(%d, %#x): %v, want it to name %s", c.rank, uint64(c.a), err, c.want)
		}
	}
	if _, err := MakePtr[*int](0, segment.AttachBase); !errors.Is(err, ErrBadArg) {
		t.Errorf("MakePtr[*int]: %v", err)
	}
}

type node struct {
	Key  uint64
	next Ptr[node]
	name [3]struct{ text [4]byte }
}

type hidden struct {
	A int
	B [2]struct {
		C bool
		D []int
	}
}

func TestCheckType(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want string // "" for none
	}{
		{"int", CheckType[int](), ""},
		{"complex128", CheckType[complex128](), ""},
		{"node", CheckType[node](), ""},
		{"[0]*int in a struct", CheckType[struct {
			_ [0]*int
			x int
		}](), ""},
		{"string", CheckType[string](), "type string holds Go pointers"},
		{"*int", CheckType[*int](), "type *int"},
		{"unsafe.Pointer", CheckType[unsafe.Pointer](), "unsafe.Pointer"},
		{"error", CheckType[error](), "error"},
		{"map", CheckType[map[int]int](), "map[int]int"},
		{"chan", CheckType[chan int](), "chan int"},
		{"func", CheckType[func()](), "func()"},
		{"hidden", CheckType[hidden](), "field B[].D has type []int"},
		{"array", CheckType[[3]*int](), "field [] has type *int"},
		{"struct{}", CheckType[struct{}](), "size 0"},
		{"[0]int", CheckType[[0]int](), "size 0"},
	} {
		switch {
		case c.want == "" && c.err != nil:
			t.Errorf("%s: %v", c.name, c.err)
		case c.want != "" && (!errors.Is(c.err, ErrBadArg) || !strings.Contains(c.err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, c.err, c.want)
		}
	}
	if a, b := CheckType[hidden](), CheckType[hidden](); a != b {
		t.Error("a verdict is not cached")
	}
	for name, f := range map[string]func(){
		"PtrFromUint64": func() { PtrFromUint64[[]int](1 << 30) },
		"PtrFromWords":  func() { PtrFromWords[string](0, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s of a type with pointers passes", name)
				}
			}()
			f()
		}()
	}
}

func TestField(t *testing.T) {
	p, err := MakePtr[node](3, segment.AttachBase+160)
	if err != nil {
		t.Fatal(err)
	}
	next := Field(p, func(n *node) *Ptr[node] { return &n.next })
	if next.Rank() != 3 || next.Offset() != 168 {
		t.Errorf("next is at %v", next)
	}
	if b := Field(p, func(n *node) *byte { return &n.name[2].text[3] }); b.Offset() != 160+16+11 {
		t.Errorf("the last byte is at %v", b)
	}
	defer func() {
		if recover() == nil {
			t.Error("Field of something else passes")
		}
	}()
	var other int
	Field(p, func(*node) *int { return &other })
}

// Every way to access refuses everything that is not wholly inside.
func TestAccessOutside(t *testing.T) {
	runN(t, 2, func(n *Node) error {
		if n.Rank() == 1 {
			return nil
		}
		size := n.ep.SegmentSize(1)
		at := func(off uint64) Ptr[uint64] { return Ptr[uint64]{w: makeWord(1, segment.AttachBase+segment.NLA(off))} }
		for name, p := range map[string]Ptr[uint64]{
			"nil":          {},
			"low address":  {w: 1<<nlaBits | 8},
			"before":       at(^uint64(7)),
			"before, 4":    at(^uint64(3)),
			"end":          at(size),
			"across":       at(size - 4),
			"far":          at(1 << 38),
			"last NLA":     {w: 1<<nlaBits | nlaMask},
			"wrap":         at(0).Add(-1),
			"no such rank": at(0).On(2),
			"last rank":    at(0).On(maxRanks - 1),
		} {
			buf := make([]uint64, 3)
			_, getErr := p.Get(n)
			_, getNBErr := p.GetNB(n, &buf[0])
			_, putNBErr := p.PutNB(n, 1)
			_, loadErr := Load(n, p)
			_, swapErr := Swap(n, p, 1)
			_, _, casErr := CompareAndSwap(n, p, 0, 1)
			_, addErr := FetchAdd(n, p, 1)
			_, andErr := FetchAnd(n, p, 1)
			_, orErr := FetchOr(n, p, 1)
			_, xorErr := FetchXor(n, p, 1)
			_, minErr := FetchMin(n, p, 1)
			_, maxErr := FetchMax(n, p, 1)
			_, _, fcaaErr := FetchCompareAdd(n, p, 1, 1)
			for op, err := range map[string]error{
				"Get": getErr, "Put": p.Put(n, 1), "GetSlice": p.GetSlice(n, buf), "PutSlice": p.PutSlice(n, buf),
				"GetNB": getNBErr, "PutNB": putNBErr, "Load": loadErr, "Store": Store(n, p, 1), "Swap": swapErr,
				"CompareAndSwap": casErr, "FetchAdd": addErr, "FetchAnd": andErr, "FetchOr": orErr, "FetchXor": xorErr,
				"FetchMin": minErr, "FetchMax": maxErr, "FetchCompareAdd": fcaaErr,
			} {
				if !errors.Is(err, ErrBadArg) {
					return fmt.Errorf("%s at %s: %v", op, name, err)
				}
			}
			if _, ok := p.Local(n); ok {
				return fmt.Errorf("Local at %s", name)
			}
			if _, ok := p.LocalSlice(n, 3); ok {
				return fmt.Errorf("LocalSlice at %s", name)
			}
		}
		last := at(size - 8)
		if err := last.Put(n, 5); err != nil {
			return err
		}
		if err := last.PutSlice(n, []uint64{1, 2}); !errors.Is(err, ErrBadArg) || !strings.Contains(err.Error(), "length 16") {
			return fmt.Errorf("slice across the end: %v", err)
		}
		for _, count := range []int{2, 1 << 60, -1} {
			if _, ok := last.LocalSlice(n, count); ok {
				return fmt.Errorf("LocalSlice of %d at the end", count)
			}
		}
		if _, ok := last.LocalSlice(n, 1); !ok {
			return errors.New("no LocalSlice of 1 at the end")
		}
		odd := Ptr[uint64]{w: last.w - 4}
		if _, err := FetchAdd(n, odd, 1); !errors.Is(err, ErrBadArg) || !strings.Contains(err.Error(), "aligned") {
			return fmt.Errorf("unaligned atomic: %v", err)
		}
		three, err := Cast[[3]byte](last)
		if err != nil {
			return err
		}
		if err := Store(n, three, [3]byte{}); !errors.Is(err, ErrBadArg) || !strings.Contains(err.Error(), "4 or 8 bytes") {
			return fmt.Errorf("atomic of 3 bytes: %v", err)
		}
		if _, _, err := CompareAndSwap(n, three, [3]byte{}, [3]byte{}); !errors.Is(err, ErrBadArg) {
			return fmt.Errorf("atomic of 3 bytes: %v", err)
		}
		if _, err := Load(n, three); !errors.Is(err, ErrBadArg) {
			return fmt.Errorf("atomic of 3 bytes: %v", err)
		}
		if _, err := Cast[string](last); !errors.Is(err, ErrBadArg) {
			return fmt.Errorf("Cast[string]: %v", err)
		}
		return nil
	})
}
