package aggregate

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/internal/testkit/testjob"
)

var countRanks = flag.Int("aggregate.ranks", 0, "the number of ranks, instead of the usual ones, of TestNext and TestRoutes; of 65,536 they take minutes")

// TestNext follows the way of an item between all pairs of ranks: it takes one hop in a row or a
// column and two else, and a rank sends to those of its row and column alone.
func TestNext(t *testing.T) {
	if *countRanks > 0 {
		follow(t, *countRanks)
		return
	}
	for size := 1; size <= 150; size++ {
		follow(t, size)
	}
}

func follow(t *testing.T, size int) {
	k := columns(size)
	if k*k < size || (k-1)*(k-1) >= size {
		t.Fatalf("%d columns for %d ranks", k, size)
	}
	var rows atomic.Int64
	var wg sync.WaitGroup
	for range min(size, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for rank := int(rows.Add(1)) - 1; rank < size; rank = int(rows.Add(1)) - 1 {
				if err := followFrom(rank, size, k); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func followFrom(rank, size, k int) error {
	near := make([]bool, size)
	for dst := range size {
		via := next(rank, dst, size, k)
		if via < 0 || via >= size {
			return fmt.Errorf("%d ranks: rank %d sends to rank %d for %d", size, rank, via, dst)
		}
		near[via] = true
		if via == dst {
			continue
		}
		if last := next(via, dst, size, k); last != dst || via == rank {
			return fmt.Errorf("%d ranks: from %d to %d by %d, and then %d", size, rank, dst, via, last)
		}
	}
	peers := 0
	for r, is := range near {
		switch {
		case !is || r == rank:
		case r/k != rank/k && r%k != rank%k:
			return fmt.Errorf("%d ranks: rank %d sends to rank %d, of another row and column", size, rank, r)
		default:
			peers++
		}
	}
	if peers > 2*(k-1) {
		return fmt.Errorf("%d ranks: rank %d sends to %d", size, rank, peers)
	}
	return nil
}

// hops is how many messages an item from rank takes to dst, one after the other.
func hops(rank, dst, size int) int {
	k := columns(size)
	switch {
	case rank == dst:
		return 0
	case size <= 128 || rank/k == dst/k || rank%k == dst%k:
		return 1
	}
	return 2
}

// permuted is to which of size ranks one has an item.
func permuted(rank, size int) int { return (rank*(size-1) + size/3) % size }

// TestRoutes has each rank push an item to one other rank, and Sync, and compares with
// formulae how many messages there are and how many each item takes one after the other: on
// profile ideal each takes 1 us. Then Sync with nothing to do is compared: a barrier, and two waves up
// and down a tree.
func TestRoutes(t *testing.T) {
	sizes := []int{2, 3, 16, 128, 129, 150, 256}
	if *countRanks > 0 {
		sizes = []int{*countRanks}
	}
	for _, n := range sizes {
		runRoutes(t, n)
	}
}

// counters has the sums of the counts of a job's ranks.
type counters struct {
	items, batches uint64        // of other ranks, and the messages that they took
	slowest        time.Duration // of items
	waves          uint32
	sent           uint64        // messages of Push and Sync
	quiet          uint64        // messages of Sync with nothing to do
	took           time.Duration // that
}

func runRoutes(t *testing.T, n int) {
	p := sim.Ideal()
	j, err := sim.New(n, sim.Config{Profile: &p, MaxSegment: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	var got counters
	all, eps := make([]error, n), j.Endpoints()
	together := testjob.Together{Latency: time.Microsecond}
	conduits.Run(eps, func(r int) {
		all[r] = join(eps[r], func(m *member) error { return countRoutes(m, eps[r], &together, &got) })
		all[r] = errors.Join(all[r], eps[r].Close())
	})
	if err := errors.Join(all...); err != nil {
		t.Fatalf("%d ranks: %v", n, err)
	}
	tree, levels := uint64(n-1), bits.Len(uint(n))-1
	rounds := bits.Len(uint(n - 1))
	barrier := uint64(n * rounds)
	want := counters{quiet: barrier + 4*tree, took: time.Duration(rounds+4*levels) * time.Microsecond, waves: got.waves}
	for r := range n {
		h := hops(r, permuted(r, n), n)
		want.items += min(uint64(h), 1)
		want.batches += uint64(h)
		want.slowest = max(want.slowest, time.Duration(h)*time.Microsecond)
	}
	t.Logf("%d ranks: %+v", n, got)
	if want.sent = want.batches + barrier + 2*uint64(got.waves)*tree; got != want {
		t.Errorf("%d ranks: %+v, want %+v", n, got, want)
	}
}

func countRoutes(m *member, ep conduits.Endpoint, together *testjob.Together, got *counters) error {
	b, err := m.Open(Spec{Name: "one", Size: 8, Deliver: func(_ int, items []byte) {
		got.slowest = max(got.slowest, (ep.Now() - time.Duration(binary.LittleEndian.Uint64(items))).Round(time.Microsecond))
		got.items++
	}})
	if err != nil {
		return err
	}
	b.Start()
	var s conduits.Stats
	// sync is Sync of what there is, by all ranks at once; it returns how many messages this
	// rank has sent since.
	sync := func(push func() error) (sent uint64, took time.Duration, err error) {
		if err := together.Wait(ep, func() error { return nil }); err != nil {
			return 0, 0, err
		}
		ep.Stats(&s)
		before, begun := s.Sent[conduits.Request], ep.Now()
		err = errors.Join(push(), m.Sync(100, "sync", b))
		ep.Stats(&s)
		return s.Sent[conduits.Request] - before, ep.Now() - begun, err
	}
	wave := m.waves.wave
	sent, _, err := sync(func() error {
		if permuted(m.rank, m.size) == m.rank {
			return nil // that would be no message
		}
		item := binary.LittleEndian.AppendUint64(nil, uint64(ep.Now()))
		return b.Push(permuted(m.rank, m.size), item)
	})
	if err != nil {
		return err
	}
	got.waves = m.waves.wave - max(wave, 1)
	got.sent += sent
	got.batches += b.sent
	quiet, took, err := sync(func() error { return nil })
	got.quiet += quiet
	got.took = max(got.took, took.Round(time.Microsecond))
	b.Close()
	return err
}

// TestManyRanks has each of so many ranks that there are routes push to all, and counts
// with how many a box has to do.
func TestManyRanks(t *testing.T) {
	const ranks = 150
	must(t, "sim", ranks, func(m *member) error {
		got := make([]int, ranks)
		b, err := m.Open(Spec{Name: "all", Size: 8, Deliver: func(src int, items []byte) { got[src] += len(items) / 8 }})
		if err != nil {
			return err
		}
		b.Start()
		if err := m.meet(); err != nil {
			return err
		}
		for dst := range ranks {
			if err := b.Push(dst, make([]byte, 8)); err != nil {
				return err
			}
		}
		if err := m.Sync(100, "sync", b); err != nil {
			return err
		}
		for src, k := range got {
			if k != 1 {
				return fmt.Errorf("rank %d got %d items of rank %d", m.rank, k, src)
			}
		}
		if most := 4 * columns(ranks); m.Direct() || len(b.peers) > most {
			return fmt.Errorf("rank %d has to do with %d ranks; at most %d", m.rank, len(b.peers), most)
		}
		b.Close()
		return nil
	})
}
