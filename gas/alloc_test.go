package gas

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/argon-go/argon/segment"
)

// wantErr says how err is not an error of that kind that names parts.
func wantErr(err, kind error, parts ...string) error {
	if !errors.Is(err, kind) {
		return fmt.Errorf("error %v, want one that is %v", err, kind)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			return fmt.Errorf("error %q, want it to contain %q", err, p)
		}
	}
	return nil
}

func TestNewGivesTheSameOffset(t *testing.T) {
	runN(t, 3, func(n *Node) error {
		// Own allocations, different on each rank, are not in the way.
		for range n.Rank() {
			Must(Alloc[[100]int](n, 1))
		}
		home := Must(NewSlice[uint64](n, 1))
		for i := range 20 {
			p := Must(NewSlice[[3]byte](n, 1+i*7))
			if p.Rank() != n.Rank() {
				return fmt.Errorf("rank %d got %v", n.Rank(), p)
			}
			if n.Rank() == 0 {
				n.Must(home.Put(n, p.Offset()))
			}
			n.Must(n.Barrier())
			if off, err := home.On(0).Get(n); err != nil || off != p.Offset() {
				return fmt.Errorf("offset %d here, %d on rank 0 (%v)", p.Offset(), off, err)
			}
			if i%3 == 0 {
				n.Must(Delete(n, p.On(0)))
			}
			n.Must(n.Barrier())
		}
		return nil
	})
}

func TestFreshMemoryIsZero(t *testing.T) {
	runN(t, 2, func(n *Node) error {
		for round := range 6 {
			var own []Ptr[uint64]
			for i := range 5 {
				p := Must(Alloc[uint64](n, 100+50*i+round))
				own = append(own, p)
				s, _ := p.LocalSlice(n, 100+50*i+round)
				for k := range s {
					if s[k] != 0 {
						return fmt.Errorf("round %d: element %d of %v is %d", round, k, p, s[k])
					}
					s[k] = ^uint64(0)
				}
			}
			c := Must(NewSlice[uint64](n, 1000+100*(round%3)))
			s, ok := c.LocalSlice(n, 1000+100*(round%3))
			if !ok {
				return errors.New("own memory is not local")
			}
			for k := range s {
				if s[k] != 0 {
					return fmt.Errorf("round %d: element %d of the collective %v is %d", round, k, c, s[k])
				}
				s[k] = ^uint64(0)
			}
			for _, p := range own {
				n.Must(Free(n, p))
			}
			n.Must(Delete(n, c))
		}
		if u := n.Usage(); u.Used != 0 {
			return fmt.Errorf("still used: %+v", u)
		}
		return nil
	})
}

func TestAllocRefuses(t *testing.T) {
	runN(t, 2, func(n *Node) error {
		total := n.Usage().Size
		before := n.Usage().Used
		for _, c := range []struct {
			count int
			kind  error
			parts []string
		}{
			{0, ErrBadArg, []string{"count 0"}},
			{-5, ErrBadArg, []string{"count -5"}},
			{1 << 20, ErrResource, []string{"8388608", fmt.Sprint(total), "ARGON_SEGMENT"}},
			{1 << 60, ErrResource, []string{"1152921504606846976 elements"}},
		} {
			_, err := Alloc[uint64](n, c.count)
			n.Must(wantErr(err, c.kind, c.parts...))
			_, err = NewSlice[uint64](n, c.count)
			n.Must(wantErr(err, c.kind, c.parts...))
		}
		_, err := Alloc[[]int](n, 1)
		n.Must(wantErr(err, ErrBadArg, "[]int"))
		_, err = New[string](n)
		n.Must(wantErr(err, ErrBadArg, "string"))
		_, err = NewArray[uint32](n, 0, 1)
		n.Must(wantErr(err, ErrBadArg, "length 0"))
		_, err = NewArray[uint32](n, 10, -1)
		n.Must(wantErr(err, ErrBadArg, "block -1"))
		if u := n.Usage().Used; u != before {
			return fmt.Errorf("%d bytes used before, %d after", before, u)
		}
		return nil
	})
}

// If one rank cannot, none has: all get an error, and the next attempt works.
func TestCollectiveAllocationFailsOnAllRanks(t *testing.T) {
	runN(t, 3, func(n *Node) error {
		var hog Ptr[byte]
		if n.Rank() == 1 {
			var err error
			if hog, err = Alloc[byte](n, 900<<10); err != nil {
				return err
			}
		}
		_, err := NewSlice[byte](n, 500<<10)
		n.Must(wantErr(err, ErrResource, "rank 1", "512000", "ARGON_SEGMENT"))
		if used := n.Usage().Collective; used != 0 {
			return fmt.Errorf("%d bytes are left of a failed allocation", used)
		}
		n.Must(Free(n, hog))
		p := Must(NewSlice[byte](n, 500<<10))
		return Delete(n, p)
	})
}

func TestCollectiveArgumentsMustAgree(t *testing.T) {
	runN(t, 3, func(n *Node) error {
		_, err := NewSlice[uint64](n, 10+n.Rank()/2)
		n.Must(wantErr(err, ErrBadArg, "rank 0", "rank 2"))
		count := 3
		if n.Rank() == 2 {
			count = -3
		}
		_, err = NewSlice[uint64](n, count)
		n.Must(wantErr(err, ErrBadArg))
		_, err = NewArray[uint64](n, 100, 1+n.Rank()/2)
		n.Must(wantErr(err, ErrBadArg))
		if n.Rank() == 1 {
			_, err = New[int](n)
		} else {
			err = Delete(n, Ptr[int]{})
		}
		n.Must(wantErr(err, ErrNotReady, "do not match"))
		if used := n.Usage().Used; used != 0 {
			return fmt.Errorf("%d bytes used", used)
		}
		return nil
	})
}

func TestFree(t *testing.T) {
	runN(t, 3, func(n *Node) error {
		box := Must(NewSlice[Ptr[[40]int]](n, 1))
		p := Must(Alloc[[40]int](n, 2))
		n.Must(box.Put(n, p))
		n.Must(n.Barrier())
		// Each rank frees the memory of the rank to its right, twice.
		right := (n.Rank() + 1) % n.Size()
		q := Must(box.On(right).Get(n))
		n.Must(wantErr(Free(n, q.Add(1)), ErrBadArg, "not an allocated block"))
		n.Must(Free(n, q))
		n.Must(wantErr(Free(n, q), ErrBadArg, "freed already", fmt.Sprintf("rank %d", right)))
		n.Must(n.Barrier())
		n.Must(wantErr(Free(n, p), ErrBadArg, "freed already"))
		n.Must(wantErr(Free(n, box), ErrBadArg, "all ranks have one", "Delete takes it back"))
		n.Must(Free(n, Ptr[int]{}))
		n.Must(wantErr(Free(n, p.On(7)), ErrBadArg, "rank 7"))
		foreign := Ptr[byte]{w: makeWord(right, segment.AttachBase+segment.NLA(n.ep.SegmentSize(right))+64)}
		n.Must(wantErr(Free(n, foreign), ErrBadArg, "the heap has addresses"))
		n.Must(wantErr(Delete(n, p), ErrBadArg))
		n.Must(Delete(n, box))
		n.Must(wantErr(Delete(n, box), ErrBadArg, "deleted already", "gas: Delete of "))
		if _, err := NewSlice[int64](n, 3+2*n.Rank()); n.Size() > 1 {
			n.Must(wantErr(err, ErrBadArg, "rank 0", "3 elements of 8 bytes", fmt.Sprintf("%d elements of 8 bytes", 3+2*(n.Size()-1))))
		}
		if _, err := NewArray[int64](n, 10+n.Rank(), 2); n.Size() > 1 {
			return wantErr(err, ErrBadArg, "an array of 10 elements in blocks of 2", fmt.Sprintf("an array of %d elements", 9+n.Size()))
		}
		return nil
	})
}

func TestNewArray(t *testing.T) {
	for _, c := range []struct{ ranks, length, block int }{
		{1, 10, 3}, {2, 10, Cyclic}, {3, 10, Blocked}, {3, 100, 7}, {4, 3, 1}, {4, 3, Blocked}, {4, 64, 8}, {3, 5, 100},
	} {
		runN(t, c.ranks, func(n *Node) error {
			a := Must(NewArray[[3]int32](n, c.length, c.block))
			// Each rank writes what is local by one way, and reads all by others.
			count := 0
			for i, e := range a.Local(n) {
				if a.Owner(i) != n.Rank() || a.At(i).Rank() != n.Rank() {
					return fmt.Errorf("element %d of %v is not rank %d's", i, a, n.Rank())
				}
				*e = [3]int32{int32(i), int32(-i), int32(n.Rank())}
				count++
			}
			if count != a.LocalLen(n.Rank()) || count != len(a.LocalSlice(n)) {
				return fmt.Errorf("%v: %d local elements, LocalLen says %d", a, count, a.LocalLen(n.Rank()))
			}
			for k, e := range a.LocalSlice(n) {
				if i := a.Layout().Index(n.Rank(), k); int32(i) != e[0] {
					return fmt.Errorf("%v: local element %d is %d, want %d", a, k, e[0], i)
				}
			}
			for start, b := range a.LocalBlocks(n) {
				for k := range b {
					if int32(start+k) != b[k][0] {
						return fmt.Errorf("%v: block at %d has %d at %d", a, start, b[k][0], k)
					}
				}
			}
			n.Must(n.Barrier())
			total := 0
			for r := range n.Size() {
				total += a.LocalLen(r)
			}
			if total != c.length || a.Len() != c.length {
				return fmt.Errorf("%v: ranks have %d elements in all", a, total)
			}
			for i := range c.length {
				v, err := a.Get(n, i)
				if err != nil || v[0] != int32(i) || v[2] != int32(a.Owner(i)) {
					return fmt.Errorf("%v: element %d is %v, %v", a, i, v, err)
				}
				if s := a.Shared(i); Must(MakePtr[[3]int32](s.Thread, s.Addr)) != a.At(i) {
					return fmt.Errorf("%v: element %d is at %v as pointer-to-shared, %v", a, i, s, a.At(i))
				}
			}
			for from := 0; from <= c.length; from += 3 {
				dst := make([][3]int32, (c.length-from)/2)
				n.Must(a.GetRange(n, from, dst))
				for k := range dst {
					if dst[k][1] != -int32(from+k) {
						return fmt.Errorf("%v: range at %d has %v at %d", a, from, dst[k], k)
					}
				}
			}
			n.Must(n.Barrier())
			if n.Rank() == n.Size()-1 {
				src := make([][3]int32, c.length-1)
				for k := range src {
					src[k][0] = int32(1000 + k)
				}
				n.Must(a.PutRange(n, 1, src))
				n.Must(a.Put(n, 0, [3]int32{999}))
			}
			n.Must(n.Barrier())
			for i, e := range a.Local(n) {
				if e[0] != int32(999+i) {
					return fmt.Errorf("%v: element %d is %v after PutRange", a, i, *e)
				}
				if i > c.length/2 {
					break
				}
			}
			for _, i := range []int{-1, c.length, 1 << 62} {
				if !a.At(i).IsNil() || a.Owner(i) != -1 {
					return fmt.Errorf("%v has an element %d", a, i)
				}
				_, err := a.Get(n, i)
				n.Must(wantErr(err, ErrBadArg, fmt.Sprint(i), fmt.Sprint(c.length)))
				n.Must(wantErr(a.Put(n, i, [3]int32{}), ErrBadArg, fmt.Sprint(i)))
				n.Must(wantErr(a.GetRange(n, i, make([][3]int32, 1)), ErrBadArg))
			}
			n.Must(wantErr(a.PutRange(n, 1, make([][3]int32, c.length)), ErrBadArg))
			n.Must(n.Barrier())
			n.Must(a.Delete(n))
			if used := n.Usage().Used; used != 0 {
				return fmt.Errorf("%d bytes used after Free", used)
			}
			return nil
		})
	}
}
