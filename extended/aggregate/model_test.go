package aggregate

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/argon-go/argon/internal/testkit/testjob"
	"pgregory.net/rapid"
)

// token is an item of the tests: it is handed on so many times, each time to a rank that its
// number decides, and says where it came from.
type token struct {
	id, left, from uint32
}

const tokenSize = 12

func (k token) bytes(size int) []byte {
	b := make([]byte, size)
	binary.LittleEndian.PutUint32(b, k.id)
	binary.LittleEndian.PutUint32(b[4:], k.left)
	binary.LittleEndian.PutUint32(b[8:], k.from)
	for i := tokenSize; i < size; i++ {
		b[i] = byte(k.id) + byte(i)
	}
	return b
}

func parse(b []byte) (token, error) {
	k := token{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])}
	for i := tokenSize; i < len(b); i++ {
		if b[i] != byte(k.id)+byte(i) {
			return k, fmt.Errorf("item %d has %#x at byte %d", k.id, b[i], i)
		}
	}
	return k, nil
}

// target is where a token goes that has left hops.
func (k token) target(ranks int) int { return int((k.id*2654435761 + k.left*40503) % uint32(ranks)) }

// plan has the pushes of a job.
type plan struct {
	network            string
	ranks, size        int
	items, hops, syncs int
	direct             bool // by Send
	routed             bool // by a grid
}

// play runs p and checks that each token was delivered as often, and where, as it should have
// been, and before the Sync of its epoch had ended.
func (p plan) play(t testjob.TB) {
	must(t, p.network, p.ranks, func(m *member) error {
		if p.routed {
			m.columns = columns(p.ranks)
		}
		seen := make(map[token]int)
		var failed error
		epoch := 0
		var b *Box
		push := func(k token) error {
			k.from = uint32(m.rank)
			if p.direct {
				return b.Send(k.target(p.ranks), k.bytes(p.size))
			}
			return b.Push(k.target(p.ranks), k.bytes(p.size))
		}
		var err error
		b, err = m.Open(Spec{Name: "tokens", Size: p.size, Deliver: func(src int, items []byte) {
			for ; len(items) > 0; items = items[p.size:] {
				k, err := parse(items[:p.size])
				if err == nil && (src != int(k.from) || k.target(p.ranks) != m.rank || int(k.id)%p.syncs != epoch) {
					err = fmt.Errorf("rank %d got %+v of rank %d in epoch %d", m.rank, k, src, epoch)
				}
				seen[token{id: k.id, left: k.left}]++
				if k.left > 0 && err == nil {
					k.left--
					err = push(k)
				}
				if err != nil && failed == nil {
					failed = err
				}
			}
		}})
		if err != nil {
			return err
		}
		b.Start()
		if err := m.meet(); err != nil {
			return err
		}
		for ; epoch < p.syncs; epoch++ {
			for i := range p.items {
				id := uint32((i*p.ranks+m.rank)*p.syncs + epoch)
				if err := push(token{id: id, left: uint32(i % (p.hops + 1))}); err != nil {
					return err
				}
			}
			if err := m.Sync(100, "sync", b); err != nil {
				return err
			}
			if failed != nil {
				return failed
			}
			for i := range p.items {
				for r := range p.ranks {
					k := token{id: uint32((i*p.ranks+r)*p.syncs + epoch)}
					for k.left = range uint32(i%(p.hops+1) + 1) {
						want := 0
						if k.target(p.ranks) == m.rank {
							want = 1
						}
						if seen[k] != want {
							return fmt.Errorf("rank %d was given %+v %d times in epoch %d, want %d", m.rank, k, seen[k], epoch, want)
						}
					}
				}
			}
		}
		b.Close()
		return nil
	})
}

// TestExactlyOnce pushes what is handed on several times, in several epochs.
func TestExactlyOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan{
			network: rapid.SampledFrom(networks).Draw(t, "network"),
			ranks:   rapid.IntRange(1, 9).Draw(t, "ranks"),
			size:    rapid.SampledFrom([]int{12, 16, 24, 100, 400}).Draw(t, "size"),
			items:   rapid.SampledFrom([]int{0, 1, 7, 100, 700}).Draw(t, "items"),
			hops:    rapid.IntRange(0, 4).Draw(t, "hops"),
			syncs:   rapid.IntRange(1, 3).Draw(t, "syncs"),
			direct:  rapid.Bool().Draw(t, "direct"),
			routed:  rapid.Bool().Draw(t, "routed"),
		}.play(t)
	})
}

func TestTable(t *testing.T) {
	for _, n := range networks {
		for _, ranks := range []int{1, 2, 5} {
			for _, routed := range []bool{false, true} {
				t.Run(fmt.Sprint(n, ranks, routed), func(t *testing.T) {
					plan{n, ranks, 16, 100, 2, 2, false, routed}.play(t)
					plan{n, ranks, 16, 100, 2, 2, true, routed}.play(t)
				})
			}
		}
	}
}
