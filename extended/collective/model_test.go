package collective

import (
	"bytes"
	"fmt"
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

// block is what rank gives for rank to.
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
	kindAgree, kindScan, kindScatter, kindExchange,
}

// run makes the call and compares with what one rank alone computes.
func (s step) run(c *Endpoint, inPlace bool) error {
	me, size := c.rank, c.size
	mine := s.block(me, 0)
	var got, want []byte
	var err error
	switch s.kind {
	case kindBroadcast:
		got, want = mine, s.block(s.root, 0)
		err = c.Broadcast(s.root, got)
	case kindReduce:
		got, want = mine, s.fold(size, sum)
		if err = c.Reduce(s.root, got, sum); me != s.root {
			got, want = nil, nil
		}
	case kindAllReduce:
		got, want = mine, s.fold(size, sum)
		err = c.AllReduce(got, sum)
	case kindAgree:
		got, want = mine, s.fold(size, sum)
		err = c.Agree(got, sum)
	case kindGather:
		if me == s.root {
			got, want = make([]byte, size*s.n), blocks(size, func(r int) []byte { return s.block(r, 0) })
			if inPlace {
				own := got[me*s.n:][:s.n]
				copy(own, mine)
				mine = own
			}
		}
		err = c.Gather(s.root, mine, got)
	case kindAllGather:
		got, want = make([]byte, size*s.n), blocks(size, func(r int) []byte { return s.block(r, 0) })
		if inPlace {
			own := got[me*s.n:][:s.n]
			copy(own, mine)
			mine = own
		}
		err = c.AllGather(mine, got)
	case kindScatter:
		var all []byte
		if me == s.root {
			all = blocks(size, func(r int) []byte { return s.block(s.root, r) })
		}
		got, want = make([]byte, s.n), s.block(s.root, me)
		kept := slices.Clone(all)
		if err = c.Scatter(s.root, all, got); err == nil && !bytes.Equal(all, kept) {
			err = fmt.Errorf("Scatter has changed what it was given")
		}
	case kindExchange:
		out := blocks(size, func(r int) []byte { return s.block(me, r) })
		got, want = make([]byte, len(out)), blocks(size, func(r int) []byte { return s.block(r, me) })
		kept := slices.Clone(out)
		if err = c.Exchange(out, got); err == nil && !bytes.Equal(out, kept) {
			err = fmt.Errorf("Exchange has changed what it was given")
		}
	case kindScan:
		got, want = mine, s.fold(me+1, then)
		err = c.Scan(got, then)
	case kindExclusiveScan:
		before := bytes.Repeat([]byte{7}, s.n)
		got, want = append(mine, before...), s.fold(me+1, then)
		if me > 0 {
			want = append(want, s.fold(me, then)...)
		} else {
			want = append(want, before...)
		}
		err = c.ExclusiveScan(got[:s.n], got[s.n:], then)
	}
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("%.60x, not %.60x", got, want)
	}
	if err != nil {
		return fmt.Errorf("%s of %d bytes, root %d, on rank %d of %d: %w", c.name(s.kind), s.n, s.root, me, size, err)
	}
	return nil
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
						// None, a few, not whole words, more than a medium message.
						n: rapid.SampledFrom([]int{0, 2, 8, 36, 1030, 9000}).Draw(t, "bytes"),
					}
				}), 1, 6).Draw(t, "steps")
				skew := rapid.SliceOfN(rapid.SampledFrom([]int{0, 0, 0, 3, 50}), size, size).Draw(t, "skew")
				must(t, network, size, func(m *member) error {
					for i, s := range steps {
						for range skew[(m.rank+i)%size] {
							m.e.Poll()
							runtime.Gosched()
						}
						if err := s.run(m.Endpoint, i%2 == 0); err != nil {
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
					if err := s.run(m.Endpoint, false); err != nil {
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
			return step{kind: k, root: 3, n: roomKept + 10, seed: 5}.run(m.Endpoint, true)
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
				if err := s.run(m.Endpoint, false); err != nil {
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
