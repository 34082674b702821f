package gas

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argon-go/argon/internal/testkit/testjob"
)

// blockStep is the blocks that ranks give to each other in a random call.
type blockStep struct {
	root, length int
	seed         int64
}

// block has the n elements that rank gives to rank to.
func (s blockStep) block(rank, to, n int) []int64 {
	v := make([]int64, n)
	for i := range v {
		v[i] = (s.seed+int64(rank)*7919+int64(to)*31+int64(i)*104729)%2003 - 1000
	}
	return v
}

// ragged is block with a length that differs by rank, 0 for some.
func (s blockStep) ragged(rank, to int) []int64 {
	return s.block(rank, to, s.length*((rank+2*to+int(uint64(s.seed)%7))%4)/3)
}

// each is f of 0 to size-1.
func each(size int, f func(r int) []int64) [][]int64 {
	all := make([][]int64, size)
	for r := range all {
		all[r] = f(r)
	}
	return all
}

func flat(all [][]int64) []int64 {
	v := []int64{}
	for _, b := range all {
		v = append(v, b...)
	}
	return v
}

// folded is the sum of f(0) to f(size-1), element by element.
func folded(length, size int, f func(r int) []int64) []int64 {
	acc := make([]int64, length)
	for r := range size {
		for i, x := range f(r) {
			acc[i] += x
		}
	}
	return acc
}

// run makes all calls of blocks on g, and compares with what one rank alone computes.
func (s blockStep) run(g Group) error {
	me, size, n := g.Rank(), g.Size(), s.length
	root := me == s.root
	own := s.block(me, 0, n)
	var failed []error
	same := func(what string, err error, got, want any) {
		if a, b := fmt.Sprint(got), fmt.Sprint(want); err == nil && a != b {
			err = fmt.Errorf("%.200s, not %.200s", a, b)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s on rank %d of %d, root %d, %d elements: %w", what, me, size, s.root, n, err))
		}
	}
	var vs, all []int64
	if root {
		vs = s.block(s.root, 9, size)
		all = flat(each(size, func(r int) []int64 { return s.block(s.root, r, n) }))
	}
	v, err := Scatter(g, s.root, vs)
	same("Scatter", err, v, s.block(s.root, 9, size)[me])
	got := make([]int64, n)
	err = ScatterSlice(g, s.root, all, got)
	same("ScatterSlice", err, got, s.block(s.root, me, n))

	gathered := each(size, func(r int) []int64 { return s.block(r, 0, n) })
	if err = GatherSlice(g, s.root, own, all); root || err != nil {
		same("GatherSlice", err, all, flat(gathered))
	}
	all = make([]int64, n*size)
	err = AllGatherSlice(g, own, all)
	same("AllGatherSlice", err, all, flat(gathered))

	ragged := each(size, func(r int) []int64 { return s.ragged(r, 0) })
	in, err := GatherV(g, s.root, s.ragged(me, 0))
	if root || err != nil {
		same("GatherV", err, in, ragged)
	} else {
		same("GatherV", err, in == nil, true)
	}
	in, err = AllGatherV(g, s.ragged(me, 0))
	same("AllGatherV", err, in, ragged)

	out := flat(each(size, func(r int) []int64 { return s.block(me, r, n) }))
	err = AllToAll(g, out, all)
	same("AllToAll", err, all, flat(each(size, func(r int) []int64 { return s.block(r, me, n) })))
	in, err = AllToAllV(g, each(size, func(r int) []int64 { return s.ragged(me, r) }))
	same("AllToAllV", err, in, each(size, func(r int) []int64 { return s.ragged(r, me) }))

	err = ReduceScatter(g, out, got, Sum)
	same("ReduceScatter", err, got, folded(n, size, func(r int) []int64 { return s.block(r, me, n) }))
	got = s.block(me, 0, n)
	err = AllReduceSlice(g, got, Sum)
	same("AllReduceSlice", err, got, folded(n, size, func(r int) []int64 { return gathered[r] }))

	got = s.block(me, 0, n)
	err = InclusiveScanSlice(g, got, Sum)
	same("InclusiveScanSlice", err, got, folded(n, me+1, func(r int) []int64 { return gathered[r] }))
	got = s.block(me, 0, n)
	err = ExclusiveScanSlice(g, got, Sum)
	same("ExclusiveScanSlice", err, got, folded(n, me, func(r int) []int64 { return gathered[r] }))
	// This operation does not commute.
	span, err := InclusiveScan(g, [2]int{me, me}, func(a, b [2]int) [2]int { return [2]int{a[0], b[1]} })
	same("InclusiveScan", err, span, [2]int{0, me})
	return errors.Join(failed...)
}

func drawBlockStep(t *rapid.T, size int) blockStep {
	return blockStep{
		root:   rapid.IntRange(0, size-1).Draw(t, "root"),
		length: rapid.SampledFrom([]int{0, 1, 5, 300, 2100}).Draw(t, "length"),
		seed:   rapid.Int64Range(0, 1<<40).Draw(t, "seed"),
	}
}

// TestBlocks compares the collectives of blocks with their definitions.
func TestBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{1, 2, 3, 4, 5, 7}).Draw(t, "ranks")
		s := drawBlockStep(t, size)
		if err := Run(small(size), func(n *Node) error { return s.run(n) }); err != nil {
			t.Fatal(err)
		}
	})
}

// TestBlocksOnOthers does so on other conduits, with blocks beyond what is kept as room.
func TestBlocksOnOthers(t *testing.T) {
	for _, conduit := range testjob.Concurrent("udp", "hybrid", "sim") {
		for _, length := range []int{3, 2000} {
			cfg := small(4)
			cfg.Conduit = conduit
			if err := Run(cfg, func(n *Node) error { return blockStep{root: 2, length: length, seed: 1}.run(n) }); err != nil {
				t.Errorf("%s: %v", conduit, err)
			}
		}
	}
	runN(t, 3, func(n *Node) error { return blockStep{root: 1, length: 9000, seed: 2}.run(n) })
}

// TestBlocksBadArguments: wrong lengths are errors that name them, on all ranks alike, and
// other types of elements are another call.
func TestBlocksBadArguments(t *testing.T) {
	runN(t, 3, func(n *Node) error {
		two, five := make([]int, 2), make([]int, 5)
		_, short := AllToAllV(n, [][]int{two})
		_, pointers := AllGatherV(n, []*int{nil})
		_, root := GatherV(n, 3, two)
		for _, x := range []struct {
			err  error
			text string
		}{
			{ScatterSlice(n, 3, five, two), "ScatterSlice: root 3 out of range"},
			{AllGatherSlice(n, two, five), "AllGatherSlice: a buffer of 5 elements for 3 blocks of 2 elements"},
			{AllToAll(n, five, five), "AllToAll: buffers of 5 and 5 elements: both have one block for each of the 3 ranks"},
			{ReduceScatter(n, five, two, Sum), "ReduceScatter: a buffer of 5"},
			{short, "AllToAllV: 1 blocks: there is one for each of the 3 ranks"},
			{pointers, "Go pointers"},
			{root, "GatherV: root 3"},
		} {
			if !errors.Is(x.err, ErrBadArg) || !strings.Contains(x.err.Error(), x.text) {
				return fmt.Errorf("rank %d: %w, not %q", n.rank, x.err, x.text)
			}
		}
		got, err := AllGatherV(n, []int{n.rank}) // they are in step
		if want := [][]int{{0}, {1}, {2}}; err != nil || !reflect.DeepEqual(got, want) {
			return fmt.Errorf("afterwards: %v, %w", got, err)
		}
		if err := n.Barrier(); err != nil { // an error of the next call may end this one
			return err
		}
		if n.rank == 1 {
			_, err = AllGatherV(n, []int8{1})
		} else {
			_, err = AllGatherV(n, []int{1})
		}
		if err == nil {
			_, err = AllReduce(n, 1, Sum)
		}
		if !errors.Is(err, ErrBadArg) || !strings.Contains(err.Error(), "in units of 1 bytes on rank 1") {
			return fmt.Errorf("rank %d: other units: %w", n.rank, err)
		}
		return nil
	})
}
