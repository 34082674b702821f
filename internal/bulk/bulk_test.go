package bulk

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// TestCopy compares Copy, CopySlice, Clone and Clear with the built-ins, on memory that overlaps and does not,
// of lengths around multiples of a piece.
func TestCopy(t *testing.T) {
	const most = 4 * Piece
	random := make([]byte, most)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	got, want := make([]byte, most), make([]byte, most)
	rapid.Check(t, func(t *rapid.T) {
		length := func(name string) int {
			near := rapid.SampledFrom([]int{0, 1, Piece, 2 * Piece, 3 * Piece, most}).Draw(t, name)
			return min(max(near+rapid.IntRange(-9, 9).Draw(t, name+" more"), 0), most)
		}
		slice := func(name string) (from, to int) {
			from, to = length(name+" from"), length(name+" to")
			return min(from, to), max(from, to)
		}
		copy(got, random)
		copy(want, random)
		d0, d1 := slice("dst")
		s0, s1 := slice("src")
		if n, m := Copy(got[d0:d1], got[s0:s1]), copy(want[d0:d1], want[s0:s1]); n != m || !bytes.Equal(got, want) {
			t.Fatalf("copy of [%d:%d] to [%d:%d]: %d bytes instead of %d, or others", s0, s1, d0, d1, n, m)
		}
		words, from := make([]uint32, length("words")/8), make([]uint32, length("from words")/8)
		for i := range from {
			from[i] = uint32(i)
		}
		if n := CopySlice(words, from); n != min(len(words), len(from)) || !slices.Equal(words[:n], from[:n]) {
			t.Fatalf("copy of %d words to %d: %d, or others", len(from), len(words), n)
		}
		if c := Clone(got[d0:d1]); !bytes.Equal(c, want[d0:d1]) {
			t.Fatalf("clone of [%d:%d]", d0, d1)
		}
		c0, c1 := slice("clear")
		Clear(got[c0:c1])
		clear(want[c0:c1])
		if !bytes.Equal(got, want) {
			t.Fatalf("clear of [%d:%d]", c0, c1)
		}
	})
}

// TestPreemptible: the world stops amid Copy and Clear, and not only when all is done.
func TestPreemptible(t *testing.T) {
	const size = 64 * Piece
	b, from, words := make([]byte, size), make([]byte, size), make([]uint64, size/4)
	for _, c := range []struct {
		name, piece string
		do          func()
	}{
		{"copy", "bulk.move(", func() { Copy(b, from) }},
		{"overlapping copy", "bulk.move(", func() { Copy(b[1:], b) }},
		{"copy of a slice", "bulk.moveSlice[", func() { CopySlice(words, words[len(words)/2:]) }},
		{"clear", "bulk.wipe(", func() { Clear(b) }},
	} {
		var over atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			for !over.Load() {
				c.do()
			}
		}()
		// The stacks are those of a stopped world. A goroutine that is preempted between
		// two pieces stands at the beginning of the function that takes one.
		stacks := make([]byte, 1<<16)
		amid := false
		for range 1000 {
			if amid = bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte(c.piece)); amid {
				break
			}
			runtime.Gosched()
		}
		over.Store(true)
		<-done
		if !amid {
			t.Errorf("%s: in 1000 stops of the world it was never stopped between two pieces", c.name)
		}
	}
}
