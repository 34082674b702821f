package collective

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// step is one collective call of a random program, the same on all ranks.
type step struct {
	kind kind
	root int
	n    int // bytes of a block
	seed uint64
}

// block is the data that rank gives for rank to.
func (s step) block(rank, to int) []byte {
	rnd := rand.New(rand.NewPCG(s.seed, uint64(rank)<<20|uint64(to)))
	b := make([]byte, s.n)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

// sum is a Combine that does not care for order.
func sum(acc, in []byte) {
	for i := range acc {
		acc[i] += in[i]
	}
}

// then is a Combine that does: pairs of bytes are functions x -> a*x + b, of which in
// is the one that is applied first.
func then(acc, in []byte) {
	for i := 0; i+1 < len(acc); i += 2 {
		acc[i], acc[i+1] = in[i]*acc[i], acc[i]*in[i+1]+acc[i+1]
	}
}

// fold combines what ranks 0 to n-1 give, the lower ones first.
func (s step) fold(n int, combine Combine) []byte {
	acc := s.block(n-1, 0)
	for r := n - 2; r >= 0; r-- {
		combine(acc, s.block(r, 0))
	}
	return acc
}

// blocks is f(0) to f(size-1), one behind the other.
func blocks(size int, f func(r int) []byte) (all []byte) {
	for r := range size {
		all = append(all, f(r)...)
	}
	return all
}

// stepKinds are those that a step has.
var stepKinds = []kind{
	kindBroadcast, kindReduce, kindAllReduce, kindGather, kindAllGather, kindExclusiveScan,
	kindAgree, kindScan, kindScatter, kindExchange, kindReduceScatter, kindGatherV, kindAllGatherV, kindExchangeV,
}

// part is a block of any length, some of them empty: what rank gives for rank to.
func (s step) part(rank, to int) []byte {
	b := s.block(rank, to)
	if k := (uint64(rank) + 3*uint64(to) + s.seed) % 5; k < 4 {
		b = b[:uint64(len(b))/2*k/4*2]
	}
	return b
}

// joined is blocks with their lengths, one behind the other.
func joined(blocks [][]byte) []byte {
	if blocks == nil {
		return nil
	}
	all := []byte("blocks")
	for _, b := range blocks {
		all = append(fmt.Append(all, len(b), ":"), b...)
	}
	return all
}

// parts are f(0) to f(size-1).
func parts(size int, f func(r int) []byte) (all [][]byte) {
	for r := range size {
		all = append(all, f(r))
	}
	return all
}

// run makes the call and compares with what one rank alone computes.
func (s step) run(c *Member, inPlace bool) error { return s.begin(c, inPlace, false)() }

// begin makes the call, or begins it without waiting; the function that it returns waits for
// it and compares with what one rank alone computes.
func (s step) begin(c *Member, inPlace, nb bool) func() error {
	me, size := c.rank, c.size
	mine := s.block(me, 0)
	var got, want []byte
	var h Handle
	var err error
	also := func(in [][]byte) error { return nil } // with the result of a call that returns one
	do := func(call func() error, begin func() (Handle, error)) {
		if nb {
			h, err = begin()
		} else {
			err = call()
		}
	}
	// doV is do for calls that return blocks, which are want, if that is not nil.
	doV := func(call func() ([][]byte, error), begin func() (Handle, error)) {
		also = func(in [][]byte) error {
			got = joined(in)
			return nil
		}
		do(func() error {
			in, err := call()
			return errors.Join(err, also(in))
		}, begin)
	}
	switch s.kind {
	case kindBroadcast:
		got, want = mine, s.block(s.root, 0)
		do(func() error { return c.Broadcast(s.root, got) }, func() (Handle, error) { return c.BroadcastNB(s.root, got) })
	case kindReduce:
		want = s.fold(size, sum)
		do(func() error { return c.Reduce(s.root, mine, sum) }, func() (Handle, error) { return c.ReduceNB(s.root, mine, sum) })
		if got = mine; me != s.root {
			got, want = nil, nil
		}
	case kindAllReduce:
		got, want = mine, s.fold(size, sum)
		if inPlace && s.n > 0 {
			do(func() error { return c.AllReduceElements(2, got, sum) }, func() (Handle, error) { return c.AllReduceElementsNB(2, got, sum) })
		} else {
			do(func() error { return c.AllReduce(got, sum) }, func() (Handle, error) { return c.AllReduceNB(got, sum) })
		}
	case kindReduceScatter:
		all := blocks(size, func(r int) []byte { return s.block(me, r) })
		got, want = make([]byte, s.n), make([]byte, s.n)
		for r := range size {
			sum(want, s.block(r, me))
		}
		if inPlace {
			got = all[me*s.n:][:s.n]
		}
		do(func() error { return c.ReduceScatter(all, got, sum) }, func() (Handle, error) { return c.ReduceScatterNB(all, got, sum) })
	case kindGatherV:
		own := s.part(me, 0)
		if me == s.root {
			want = joined(parts(size, func(r int) []byte { return s.part(r, 0) }))
		}
		doV(func() ([][]byte, error) { return c.GatherV(s.root, 2, own) }, func() (Handle, error) { return c.GatherVNB(s.root, 2, own) })
	case kindAllGatherV:
		own := s.part(me, 0)
		want = joined(parts(size, func(r int) []byte { return s.part(r, 0) }))
		doV(func() ([][]byte, error) { return c.AllGatherV(2, own) }, func() (Handle, error) { return c.AllGatherVNB(2, own) })
	case kindExchangeV:
		out := parts(size, func(r int) []byte { return s.part(me, r) })
		want = joined(parts(size, func(r int) []byte { return s.part(r, me) }))
		doV(func() ([][]byte, error) { return c.ExchangeV(2, out) }, func() (Handle, error) { return c.ExchangeVNB(2, out) })
	case kindAgree:
		got, want = mine, s.fold(size, sum)
		err, nb = c.Agree(got, sum), false
	case kindGather:
		if me == s.root {
			got, want = make([]byte, size*s.n), blocks(size, func(r int) []byte { return s.block(r, 0) })
			if inPlace {
				own := got[me*s.n:][:s.n]
				copy(own, mine)
				mine = own
			}
		}
		do(func() error { return c.Gather(s.root, mine, got) }, func() (Handle, error) { return c.GatherNB(s.root, mine, got) })
	case kindAllGather:
		got, want = make([]byte, size*s.n), blocks(size, func(r int) []byte { return s.block(r, 0) })
		if inPlace {
			own := got[me*s.n:][:s.n]
			copy(own, mine)
			mine = own
		}
		do(func() error { return c.AllGather(mine, got) }, func() (Handle, error) { return c.AllGatherNB(mine, got) })
	case kindScatter:
		var all []byte
		if me == s.root {
			all = blocks(size, func(r int) []byte { return s.block(s.root, r) })
		}
		got, want = make([]byte, s.n), s.block(s.root, me)
		kept := slices.Clone(all)
		do(func() error { return c.Scatter(s.root, all, got) }, func() (Handle, error) { return c.ScatterNB(s.root, all, got) })
		also = unchanged(all, kept)
	case kindExchange:
		out := blocks(size, func(r int) []byte { return s.block(me, r) })
		got, want = make([]byte, len(out)), blocks(size, func(r int) []byte { return s.block(r, me) })
		kept := slices.Clone(out)
		do(func() error { return c.Exchange(out, got) }, func() (Handle, error) { return c.ExchangeNB(out, got) })
		also = unchanged(out, kept)
	case kindScan:
		got, want = mine, s.fold(me+1, then)
		do(func() error { return c.Scan(got, then) }, func() (Handle, error) { return c.ScanNB(got, then) })
	case kindExclusiveScan:
		before := bytes.Repeat([]byte{7}, s.n)
		got, want = append(mine, before...), s.fold(me+1, then)
		if me > 0 {
			want = append(want, s.fold(me, then)...)
		} else {
			want = append(want, before...)
		}
		do(func() error { return c.ExclusiveScan(got[:s.n], got[s.n:], then) }, func() (Handle, error) { return c.ExclusiveScanNB(got[:s.n], got[s.n:], then) })
	}
	return func() error {
		if err == nil && nb {
			var in [][]byte
			if in, err = h.WaitBlocks(); err == nil {
				err = also(in)
			}
		} else if err == nil && s.kind != kindGatherV && s.kind != kindAllGatherV && s.kind != kindExchangeV {
			err = also(nil)
		}
		if err == nil && !bytes.Equal(got, want) {
			err = fmt.Errorf("%.60x, not %.60x", got, want)
		}
		if err != nil {
			return fmt.Errorf("%s of %d bytes, root %d, on rank %d of %d, without waiting %v: %w", c.name(s.kind), s.n, s.root, me, size, nb, err)
		}
		return nil
	}
}

// unchanged says that a call has left what it was given.
func unchanged(b, kept []byte) func([][]byte) error {
	return func([][]byte) error {
		if !bytes.Equal(b, kept) {
			return errors.New("the call has changed what it was given")
		}
		return nil
	}
}

// TestModel runs random programs of collectives, with ranks that come at different
// times.
func TestModel(t *testing.T) {
	for _, network := range networks {
		t.Run(network, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				size := rapid.SampledFrom([]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 17}).Draw(t, "ranks")
				steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
					return step{
						kind: rapid.SampledFrom(stepKinds).Draw(t, "kind"),
						root: rapid.IntRange(0, size-1).Draw(t, "root"),
						seed: rapid.Uint64().Draw(t, "seed"),
						// None, a few, not whole words, more than a medium message, large parts.
						n: rapid.SampledFrom([]int{0, 2, 8, 36, 1030, 9000, 20002}).Draw(t, "bytes"),
					}
				}), 1, 6).Draw(t, "steps")
				skew := rapid.SliceOfN(rapid.SampledFrom([]int{0, 0, 0, 3, 50}), size, size).Draw(t, "skew")
				must(t, network, size, func(m *member) error {
					for i, s := range steps {
						for range skew[(m.rank+i)%size] {
							m.e.Poll()
							runtime.Gosched()
						}
						if err := s.run(m.Member, i%2 == 0); err != nil {
							return fmt.Errorf("step %d: %w", i, err)
						}
					}
					return nil
				})
			})
		})
	}
}

// TestNeighbourhoods makes all calls where there are two neighbourhoods.
func TestNeighbourhoods(t *testing.T) {
	for _, size := range []int{3, 4, 7} {
		must(t, "hybrid", size, func(m *member) error {
			for root := range size {
				for i, k := range stepKinds {
					s := step{kind: k, root: root, n: []int{0, 36, 4000}[(root+i)%3], seed: uint64(i)}
					if err := s.run(m.Member, false); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
}

// TestLarge moves more than what is kept as room, and many medium messages.
func TestLarge(t *testing.T) {
	for _, k := range stepKinds {
		must(t, "shm", 5, func(m *member) error {
			return step{kind: k, root: 3, n: roomKept + 10, seed: 5}.run(m.Member, true)
		})
	}
}

// TestManyCalls keeps ranks several calls apart where the calls allow it.
func TestManyCalls(t *testing.T) {
	const rounds = 1000
	for _, size := range []int{2, 5} {
		must(t, "shm", size, func(m *member) error {
			for i := range rounds {
				if i%(m.rank+3) == 0 {
					runtime.Gosched()
				}
				s := step{kind: stepKinds[i%len(stepKinds)], root: i % size, n: 2 * (i % 7), seed: uint64(i)}
				if err := s.run(m.Member, false); err != nil {
					return fmt.Errorf("round %d: %w", i, err)
				}
			}
			return nil
		})
	}
}

// TestRotate compares with moving one byte at a time.
func TestRotate(t *testing.T) {
	for size := range 12 {
		for n := range size + 1 {
			b := make([]byte, size)
			for i := range b {
				b[i] = byte(i)
			}
			rotate(b, n)
			for i := range b {
				if int(b[(i+n)%size]) != i {
					t.Fatalf("the last %d of %d to the beginning: %v", n, size, b)
				}
			}
		}
	}
}

// TestDirectReductionsAreTheSame: large reductions, by other ways than small ones, leave
// the same bits, though addition of floats is not associative.
func TestDirectReductionsAreTheSame(t *testing.T) {
	const block = directBlock + 8
	add := func(acc, in []byte) {
		for i := 0; i < len(acc); i += 4 {
			x := math.Float32frombits(binary.LittleEndian.Uint32(acc[i:])) + math.Float32frombits(binary.LittleEndian.Uint32(in[i:]))
			binary.LittleEndian.PutUint32(acc[i:], math.Float32bits(x))
		}
	}
	for size := 2; size <= 9; size++ {
		must(t, "shm", size, func(m *member) error {
			rnd := rand.New(rand.NewPCG(1, uint64(m.rank)))
			var given []byte
			for range size * block / 4 {
				given = binary.LittleEndian.AppendUint32(given, math.Float32bits(rnd.Float32()))
			}
			small, large, scattered := slices.Clone(given), slices.Clone(given), make([]byte, block)
			if err := errors.Join(m.AllReduce(small, add), m.AllReduceElements(4, large, add), m.ReduceScatter(given, scattered, add)); err != nil {
				return err
			}
			if !bytes.Equal(small, large) || !bytes.Equal(small[m.rank*block:][:block], scattered) {
				return fmt.Errorf("rank %d of %d: other sums", m.rank, size)
			}
			return nil
		})
	}
}
