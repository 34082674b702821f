package collective

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/argon-go/argon/internal/conc"
)

// staged are calls that go by staging if they do not fit a slot, with elements of so many bytes, and what of their
// results is defined on a rank. Their Combine is order, which works on bytes.
var staged = []struct {
	name string
	f    func(m *member, s step, elem int, at func(n int) []byte) ([]byte, error)
}{
	{"AllReduce", func(m *member, s step, elem int, at func(n int) []byte) ([]byte, error) {
		acc := at(s.n)
		copy(acc, s.block(m.rank, 0))
		return acc, m.Do(inElements(AllReduce(acc), elem), order)
	}},
	{"Reduce", func(m *member, s step, elem int, at func(n int) []byte) ([]byte, error) {
		acc := at(s.n)
		copy(acc, s.block(m.rank, 0))
		err := m.Do(inElements(Reduce(s.root, acc), elem), order)
		if m.rank != s.root {
			acc = nil
		}
		return acc, err
	}},
	{"ReduceScatter", func(m *member, s step, elem int, at func(n int) []byte) ([]byte, error) {
		own, all := at(s.n), at(s.n*m.size)
		copy(all, blocks(m.size, func(r int) []byte { return s.block(m.rank, r) }))
		if s.seed%2 > 0 {
			own = all[m.rank*s.n:][:s.n]
		}
		return own, m.Do(inElements(ReduceScatter(all, own), elem), order)
	}},
	{"Scan", func(m *member, s step, elem int, at func(n int) []byte) ([]byte, error) {
		acc := at(s.n)
		copy(acc, s.block(m.rank, 0))
		return acc, m.Do(inElements(Scan(acc), elem), order)
	}},
	{"ExclusiveScan", func(m *member, s step, elem int, at func(n int) []byte) ([]byte, error) {
		acc, before := at(s.n), at(s.n)
		copy(acc, s.block(m.rank, 0))
		err := m.Do(inElements(ExclusiveScan(acc, before), elem), order)
		return append(bytes.Clone(acc), before...), err
	}},
	{"Broadcast", func(m *member, s step, elem int, at func(n int) []byte) ([]byte, error) {
		buf := at(s.n)
		copy(buf, s.block(m.rank, 0))
		return buf, m.Do(Broadcast(s.root, buf), nil)
	}},
	{"Gather", func(m *member, s step, elem int, at func(n int) []byte) ([]byte, error) {
		own, all := at(s.n), at(s.n*m.size)
		if m.rank == s.root && s.seed%2 > 0 {
			own = all[m.rank*s.n:][:s.n]
		}
		copy(own, s.block(m.rank, 0))
		err := m.Do(Gather(s.root, own, all), nil)
		if m.rank != s.root {
			all = nil
		}
		return all, err
	}},
	{"AllGather", func(m *member, s step, elem int, at func(n int) []byte) ([]byte, error) {
		own, all := at(s.n), at(s.n*m.size)
		if s.seed%2 > 0 {
			own = all[m.rank*s.n:][:s.n]
		}
		copy(own, s.block(m.rank, 0))
		return all, m.Do(AllGather(own, all), nil)
	}},
	{"Scatter", func(m *member, s step, elem int, at func(n int) []byte) ([]byte, error) {
		own, all := at(s.n), at(s.n*m.size)
		copy(all, blocks(m.size, func(r int) []byte { return s.block(m.rank, r) }))
		return own, m.Do(Scatter(s.root, all, own), nil)
	}},
	{"Exchange", func(m *member, s step, elem int, at func(n int) []byte) ([]byte, error) {
		out, in := at(s.n*m.size), at(s.n*m.size)
		copy(out, blocks(m.size, func(r int) []byte { return s.block(m.rank, r) }))
		return in, m.Do(Exchange(out, in), nil)
	}},
}

// inElements is a in elements of elem bytes, if that is not 0.
func inElements(a *Call, elem int) *Call {
	if elem == 0 {
		return a
	}
	return a.InElements(elem)
}

// TestStaged compares calls by staging with those by messages, of lengths around a word, a line, what is combined at once and a
// half of the staging, of buffers that begin at any byte, where any rank may be ahead.
func TestStaged(t *testing.T) {
	sizes := []int{sharedBytes + 1, 64, 1000, foldWhole, 3*foldAtOnce + 8, 80_000, 530_000}
	for _, n := range []int{2, 3, 5, 8, 13, 20} {
		if conc.Race && n > 3 {
			continue
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			must(t, "shm", n, func(m *member) error {
				shared, skew := m.shared, rand.New(rand.NewPCG(uint64(n), uint64(m.rank)))
				for k, size := range sizes {
					if (n > 5 || conc.Race) && size > 100_000 {
						continue
					}
					for j, call := range staged {
						size, elem := size, []int{0, 1, 8, 24}[(k+j)%4]
						if elem > 1 {
							size += elem - size%elem
						}
						s := step{n: size, root: (k + j) % n, seed: uint64(k)}
						at := func(n int) []byte { return make([]byte, n+8)[(k+m.rank)%8:][:n] }
						m.shared = nil
						want, err := call.f(m, s, elem, at)
						m.shared = shared
						if err != nil {
							return err
						}
						for range skew.IntN(3) {
							runtime.Gosched()
						}
						before := uint32(0)
						if shared.staging != nil {
							before = shared.staging.phase
						}
						for range 3 { // more than parities
							got, err := call.f(m, s, elem, at)
							if err != nil {
								return err
							}
							if !bytes.Equal(got, want) {
								return fmt.Errorf("%s of %d bytes in elements of %d: not what it is by messages", call.name, size, elem)
							}
						}
						if fits := n <= flatRanks && (elem > 0 || size*n < 200_000); fits && (shared.staging == nil || shared.staging.phase == before) {
							return fmt.Errorf("%s of %d bytes in elements of %d did not go by staging", call.name, size, elem)
						}
					}
				}
				return nil
			})
		})
	}
}
