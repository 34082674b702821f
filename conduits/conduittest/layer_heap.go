package conduittest

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/conduittest/contract"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/segment"
)

// heapBytes is the size of a rank's heap; a table of blocks, by which a rank hands its own
// to the next one, lies behind it.
const (
	heapBytes  = 64 << 10
	heapBlocks = 24 // of a rank in a round
	heapEntry  = 24 // rank, address, size
	heapTable  = heapBlocks * heapEntry
)

// heapBlock is one that a rank has allocated.
type heapBlock struct {
	rank int
	at   segment.NLA
	size int
}

// heapModel: blocks that all ranks allocate of all heaps at once overlap none, each rank
// frees those of the one before it, and all heaps are empty afterwards, with their
// collective blocks where they were.
func heapModel(c *ctx) {
	for _, n := range []int{1, 2, 3, 5, 8} {
		c.stack(n, conduits.Config{}, layers{segment: contract.Pages(heapBytes + heapTable), heap: heapBytes}, func(s *stack) {
			common, err := s.heap.Own().AllocCollective(100, segment.MinAlign)
			s.Must(err)
			s.barrier()
			for round := range 3 {
				s.heapRound(n, c.Random(uint64(n), uint64(s.Rank), uint64(round)))
			}
			s.Must(s.heap.Own().FreeCollective(common))
			if u := s.heap.Own().Usage(); u.Used != 0 {
				s.Fatalf("%d bytes of the heap are in use when all are freed", u.Used)
			}
		})
		if c.Failed() {
			return
		}
	}
}

// heapRound has a rank of n allocate, fill and look, and free what another one had.
func (s *stack) heapRound(n int, rnd *rand.Rand) {
	s.C.Helper()
	round := rnd.Uint64() // so that what is left of another round is no pattern of this one
	var mine []heapBlock
	table := make([]byte, heapTable)
	for i := range heapBlocks {
		b := heapBlock{rank: rnd.IntN(n), size: 1 + rnd.IntN(300)}
		var err error
		b.at, err = s.heap.Alloc(b.rank, uint64(b.size))
		s.Must(err)
		mine = append(mine, b)
		le := binary.LittleEndian
		le.PutUint64(table[i*heapEntry:], uint64(b.rank))
		le.PutUint64(table[i*heapEntry+8:], uint64(b.at))
		le.PutUint64(table[i*heapEntry+16:], uint64(b.size))
	}
	pattern := func(i, size int) []byte {
		return contract.Fill(make([]byte, size), contract.Mix(round, uint64(s.Rank), uint64(i)), 0)
	}
	for i, b := range mine {
		s.Must(s.ext.Put(b.rank, b.at, pattern(i, b.size)))
	}
	s.Must(s.ext.Put((s.Rank+1)%n, contract.At(heapBytes), table))
	s.barrier() // all have put all
	for i, b := range mine {
		got := make([]byte, b.size)
		s.Must(s.ext.Get(b.rank, b.at, got))
		if !bytes.Equal(got, pattern(i, b.size)) {
			s.Fatalf("block %+v does not hold what the rank that allocated it put there: another one overlaps it", b)
		}
	}
	theirs := make([]byte, heapTable)
	s.Must(s.ext.Get(s.Rank, contract.At(heapBytes), theirs))
	s.barrier() // all have looked
	for _, i := range rnd.Perm(heapBlocks) {
		e := theirs[i*heapEntry:]
		s.Must(s.heap.Free(int(binary.LittleEndian.Uint64(e)), segment.NLA(binary.LittleEndian.Uint64(e[8:]))))
	}
	s.barrier() // all have freed, and none has allocated again
}

// heapRefusals: what cannot be is the same error for the own heap and for another rank's, and
// changes nothing.
func heapRefusals(c *ctx) {
	const n = 3
	c.stack(n, conduits.Config{}, layers{segment: contract.Pages(heapBytes + heapTable), heap: heapBytes}, func(s *stack) {
		for dst := range n {
			at, err := s.heap.Alloc(dst, 64)
			s.Must(err)
			_, err = s.heap.Alloc(dst, heapBytes+1)
			s.Wants(err, conduits.ErrResource, "more of rank %d than there is", dst)
			s.Wants(s.heap.Free(dst, at+8), segment.ErrNotAllocated, "the middle of a block of rank %d", dst)
			s.Wants(s.heap.Free(dst, contract.At(heapBytes)), extended.ErrBadArg, "what is no heap's of rank %d", dst)
			s.Must(s.heap.Free(dst, at))
		}
		_, err := s.heap.Alloc(n, 8)
		s.Wants(err, extended.ErrBadArg, "memory of a rank that there is not")
		s.barrier() // no rank allocates any more
		if s.Rank == 0 {
			for dst := range n {
				at, err := s.heap.Alloc(dst, 64)
				s.Must(err)
				s.Must(s.heap.Free(dst, at))
				s.Wants(s.heap.Free(dst, at), extended.ErrBadArg, "a second free of a block of rank %d", dst)
			}
		}
		s.barrier()
		if u := s.heap.Own().Usage(); u.Used != 0 {
			s.Fatalf("%d bytes of the heap are in use when all are freed", u.Used)
		}
	})
}
