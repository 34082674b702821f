package gas

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/testkit/testjob"
	"github.com/argon-go/argon/segment"
)

// plainPieces is plainPiecesOf for processes of which no other reaches the memory by load
// and store.
func plainPieces(n *Node) error {
	calls, pieces, err := plainPiecesOf(n)
	if err == nil && calls > pieces/8 {
		err = fmt.Errorf("%d system calls and questions for %d pieces", calls, pieces)
	}
	return err
}

// plainPiecesOf puts and gets pieces of a plain slice of the next rank by all kinds of Shapes,
// and compares with a copy of it. It returns how many there were, and how many system calls
// and questions that took.
func plainPiecesOf(n *Node) (calls, pieces uint64, err error) {
	const size = 300_000 // several buckets
	x, me := n.Layers().Extended, n.Rank()
	p, err := Register(n, make([]byte, size))
	if err != nil {
		return 0, 0, err
	}
	q, err := swapped(n, p)
	if err != nil {
		return 0, 0, err
	}
	dst, at, model := q.Rank(), q.NLA(), make([]byte, size)
	rng := rand.New(rand.NewPCG(7, uint64(me)))
	// Firehoses first, to count what accesses take that need none.
	if err := x.Exposed().SetStrategy(firehose.AlwaysPin); err != nil {
		return 0, 0, err
	}
	if err := q.GetSlice(n, make([]byte, size)); err != nil {
		return 0, 0, err
	}
	var before, after conduits.Stats
	n.Stats(&before)
	steps := 30
	if conc.Race {
		steps = 9
	}
	for step := range steps {
		local := make([]byte, 40_000)
		for i := range local {
			local[i] = byte(rng.Uint32())
		}
		// The same runs both ways: remote ones, and what of local they have.
		var extents []extended.Extent
		var there [][]byte
		var s extended.Shape
		used := 0
		run := func(off, length int) {
			extents = append(extents, extended.Extent{Addr: at + segment.NLA(off), Len: length})
			there = append(there, model[off:off+length])
			used += length
		}
		switch step % 3 {
		case 0: // runs of any length, also none, and local slices divided elsewhere
			for off := rng.IntN(300); off < size && used < 30_000; off += 1 + rng.IntN(900) {
				length := min(rng.IntN(50), size-off)
				if rng.IntN(100) == 0 {
					length = min(rng.IntN(6000), size-off)
				}
				run(off, length)
				off += length
			}
			var locals [][]byte
			for left := local[:used]; len(left) > 0; {
				k := min(rng.IntN(200), len(left))
				locals, left = append(locals, left[:k]), left[k:]
			}
			s, err = extended.Vector(extents, locals)
		case 1: // equal runs in any order
			length := 1 + rng.IntN(40)
			addrs, offs := []segment.NLA{}, []int{}
			for _, k := range rng.Perm(size / length)[:600] {
				addrs, offs = append(addrs, at+segment.NLA(k*length)), append(offs, used)
				run(k*length, length)
			}
			s, err = extended.Indexed(extended.RemoteRuns{Addrs: addrs, Len: length}, extended.LocalRuns{Mem: local, Offsets: offs, Len: length})
		default: // a box of aligned words
			rows, columns := 20, 30
			for r := range rows {
				for c := range columns {
					run(8+r*9000+c*16, 8)
				}
			}
			s, err = extended.Strided(8, []int{rows, columns}, extended.RemoteBox{Addr: at + 8, Strides: []int{9000, 16}},
				extended.LocalBox{Mem: local, Strides: []int{columns * 8, 8}})
		}
		if err != nil {
			return 0, 0, err
		}
		pieces += uint64(len(extents))
		switch rng.IntN(4) {
		case 0:
			err = x.PutShape(dst, s)
		case 1:
			err = sync2(n)(x.PutShapeNB(dst, s))
		case 2:
			if err = x.Implicit().PutShapeNBI(dst, s); err == nil {
				err = n.SyncImplicit()
			}
		default:
			if err = x.GetShape(dst, s); err == nil && !bytes.Equal(local[:used], bytes.Join(there, nil)) {
				err = fmt.Errorf("step %d: a shape of %d runs gives other bytes than were put", step, len(extents))
			}
		}
		if err != nil {
			return 0, 0, err
		}
		for used = 0; len(there) > 0; there = there[1:] {
			used += copy(there[0], local[used:])
		}
	}
	n.Stats(&after)
	got := make([]byte, size)
	if err := q.GetSlice(n, got); err != nil {
		return 0, 0, err
	}
	if !bytes.Equal(got, model) {
		return 0, 0, fmt.Errorf("the slice of rank %d is not what was put there", dst)
	}
	if err := n.Barrier(); err != nil {
		return 0, 0, err
	}
	if err := Free(n, p); err != nil {
		return 0, 0, err
	}
	if err := n.Barrier(); err != nil {
		return 0, 0, err
	}
	s, err := extended.Vector([]extended.Extent{{Addr: at, Len: 3}, {Addr: at + 8, Len: 5}, {Addr: at + 100_000, Len: 2}}, [][]byte{make([]byte, 10)})
	if err != nil {
		return 0, 0, err
	}
	for what, err := range map[string]error{
		"put": x.PutShape(dst, s), "get": x.GetShape(dst, s), "non-blocking": sync2(n)(x.PutShapeNB(dst, s)),
	} {
		if err := wantErr(err, ErrFault); err != nil {
			return 0, 0, fmt.Errorf("%s of what is deregistered: %w", what, err)
		}
	}
	return after.SystemCalls + after.Asked - before.SystemCalls - before.Asked, pieces, n.Barrier()
}

// TestPlainPieces: on every conduit.
func TestPlainPieces(t *testing.T) {
	everywhere(t, Config{Ranks: 2}, func(n *Node) error { return third(plainPiecesOf(n)) })
}

// TestPlainPiecesOfProcesses: between processes many pieces are one system call.
func TestPlainPiecesOfProcesses(t *testing.T) {
	testjob.RunConfig(t, 2, "plain pieces", testjob.Config{}).Want(t, 0)
}
