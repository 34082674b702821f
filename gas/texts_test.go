package gas

import (
	"errors"
	"strings"
	"testing"
)

// TestRefusalTexts holds refusals to what they have to name, once each.
func TestRefusalTexts(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(n *Node) error
		want string
	}{
		{"index", func(n *Node) error {
			a, err := NewArray[int](n, 10, 2)
			if err != nil {
				return err
			}
			return a.At(12).Put(n, 1)
		}, "nil Ptr: the zero one, or that of an index outside an array (Array.At); the last such was index 12 of an array of 10 elements"},
		{"free twice", func(n *Node) error {
			p, err := Alloc[int](n, 4)
			for i := 0; i < 2 && err == nil; i++ {
				err = Free(n, p)
			}
			return err
		}, "gas: Free of 0+0xfffe0, a gas.Ptr[int]: freed already"},
		{"free twice elsewhere", func(n *Node) error {
			p, err := Alloc[int](n, 4)
			if err == nil {
				err = Free(n, p)
			}
			if err == nil {
				err = n.Barrier()
			}
			if err == nil && n.rank == 0 {
				err = Free(n, p.On(1))
			}
			return err
		}, "gas: Free of 1+0xfffe0, a gas.Ptr[int]: rank 1: freed already"},
		{"delete twice", func(n *Node) error {
			p, err := NewSlice[int](n, 4)
			for i := 0; i < 2 && err == nil; i++ {
				err = Delete(n, p)
			}
			return err
		}, "gas: Delete of 0+0x0, a gas.Ptr[int]: deleted already"},
		{"delete an array twice", func(n *Node) error {
			a, err := NewArray[int](n, 10, 4)
			for i := 0; i < 2 && err == nil; i++ {
				err = a.Delete(n)
			}
			return err
		}, "gas: Delete of Array[int](10 elements in blocks of 4 over 2 ranks) at 0+0x0: deleted already"},
		{"delete no array", func(n *Node) error { return Array[int]{}.Delete(n) }, "gas: Delete of the zero Array[int], which NewArray has not given: nothing was allocated there"},
		{"delete nil", func(n *Node) error { return Delete(n, Ptr[int]{}) }, "gas: Delete of nil, a gas.Ptr[int]: nothing was allocated there"},
		{"delete what is one rank's", func(n *Node) error {
			p, err := Alloc[int](n, 4)
			return errors.Join(err, Delete(n, p))
		}, "gas: Delete of 0+0xfffe0, a gas.Ptr[int]: this rank alone has it, by Alloc: Free gives it back"},
		{"free what is all ranks'", func(n *Node) error {
			p, err := NewSlice[int](n, 4)
			return errors.Join(err, Free(n, p))
		}, "gas: Free of 0+0x0, a gas.Ptr[int]: all ranks have one, by New, NewSlice or NewArray: Delete takes it back"},
		{"end a mailbox twice", func(n *Node) error {
			m, err := NewMailbox(n, "box", func(*Node, int, []int) {})
			for i := 0; i < 2 && err == nil; i++ {
				err = m.Delete()
			}
			return err
		}, `gas: Delete of mailbox "box" on rank 0, which is deleted`},
		{"end a batch twice", func(n *Node) error {
			b, err := NewBatch(n, "batch", func(*Node, int, int) int { return 1 })
			for i := 0; i < 2 && err == nil; i++ {
				err = b.Delete()
			}
			return err
		}, `of batch "batch" on rank 0, which is deleted`},
		{"delete a team's slice twice", func(n *Node) error {
			s, err := NewTeamSlice[int](n.World(), 3)
			for i := 0; i < 2 && err == nil; i++ {
				err = s.Delete()
			}
			return err
		}, "gas: Delete of a TeamSlice of 3 elements of int on rank 0: deleted already"},
		{"skip a barrier", func(n *Node) error {
			if n.rank == 1 {
				return n.Quiesce()
			}
			return n.Barrier()
		}, "rank 0 notified 0, rank 1 notified 1073741823 (id 0 is a barrier, id 1073741823 is Quiesce)"},
		{"skip a mailbox", func(n *Node) error {
			m, err := NewMailbox(n, "box", func(*Node, int, []int) {})
			if n.rank == 1 {
				return errors.Join(err, m.Sync())
			}
			return errors.Join(err, n.Barrier())
		}, `(id 0 is a barrier, id 536870913 is a call for mailbox or batch "box")`},
		{"counts", func(n *Node) error {
			_, err := NewSlice[int](n, 4+n.rank)
			return err
		}, "rank 0 and rank 1 gave different arguments: 4 elements of 8 bytes and 5 elements of 8 bytes"},
		{"deletes", func(n *Node) error {
			p, err := NewSlice[int](n, 8)
			if err != nil {
				return err
			}
			q, err := NewSlice[int](n, 4)
			if err != nil {
				return err
			}
			if n.rank == 0 {
				p = q
			}
			return Delete(n, p)
		}, "rank 1 and rank 0 gave different arguments: Ptr 1+0x0 and Ptr 0+0x40"},
	} {
		cfg := small(2)
		var zero error
		_ = Run(cfg, func(n *Node) error {
			err := c.f(n)
			if n.rank == 0 {
				zero = err
			}
			return err
		})
		kind := ErrBadArg
		for _, k := range []error{ErrNotReady, ErrBarrierMismatch} {
			if errors.Is(zero, k) {
				kind = k
			}
		}
		if err := wantErr(zero, kind, c.want); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestBeyondRegistered: an access that runs over the end of registered memory says
// where that is, whether the owner was asked, makes it, or its tables are read.
func TestBeyondRegistered(t *testing.T) {
	everywhere(t, Config{Ranks: 2, SegmentSize: 1 << 20}, func(n *Node) error {
		p := Must(Register(n, make([]int64, 1000)))
		all := Must(AllGather(n, p))
		last := all[1-n.rank].Add(998)
		over := func(want string) {
			t.Helper()
			if err := wantErr(last.GetSlice(n, make([]int64, 4)), ErrFault, want); err != nil {
				t.Error(err)
			}
		}
		over("what is exposed there ends before " + all[1-n.rank].Add(1000).NLA().String())
		for range 8 { // until there is a firehose
			Must(last.Get(n))
		}
		over("is mapped")
		if err := wantErr(p.Add(998).GetSlice(n, make([]int64, 4)), ErrFault, "ends before "+p.Add(1000).NLA().String()); err != nil {
			t.Error(err)
		}
		return n.Barrier()
	})
}

// TestStrayIndexIsCheap: stencils ask for indices outside an array at its borders.
func TestStrayIndexIsCheap(t *testing.T) {
	runN(t, 1, func(n *Node) error {
		a, err := NewArray[int](n, 10, 2)
		if k := testing.AllocsPerRun(100, func() {
			if err == nil && (!a.At(-1).IsNil() || !a.At(10).IsNil()) {
				t.Error("an index outside the array has a Ptr that is not nil")
			}
		}); k != 0 {
			t.Errorf("%v allocations", k)
		}
		return err
	})
}

// TestPeerErrorWithoutReason has a program blame a rank without saying why.
func TestPeerErrorWithoutReason(t *testing.T) {
	var other error
	_ = Run(small(3), func(n *Node) error {
		switch n.Rank() {
		case 0:
			return &PeerError{Rank: 2}
		case 1:
			other = n.Wait(func() bool { return false })
			return other
		}
		return n.Wait(func() bool { return false })
	})
	var p *PeerError
	if !errors.As(other, &p) || p.Rank != 2 || !strings.Contains(other.Error(), "rank 0 says so without a reason") {
		t.Errorf("another rank hears %v", other)
	}
}
