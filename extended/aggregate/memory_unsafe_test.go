package aggregate

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"
)

// busy is a box of a rank in the middle of a job of size ranks that never sends: what is full is
// taken out of its queues as if it had been.
type busy struct {
	*Box
	k int
}

func newBusy(size, bytes int) busy {
	c := New(Config{})
	c.size, c.most, c.columns = size, mostBatch, columns(size)
	c.rank = c.columns*(c.columns/2) + c.columns/2
	return busy{&Box{c: c, spec: Spec{Name: "busy", Size: bytes}, peers: map[int]*peer{}}, c.columns}
}

// take has an item collected for a hop.
func (b busy) take(h hop, rank int) error {
	p := b.peers[h.rank]
	if p == nil {
		p = b.peer(h.rank)
		p.sent = window // no room there, so that what is full is queued
	}
	if full, err := b.collect(h, rank, make([]byte, b.spec.Size)); !full || err != nil {
		return err
	}
	for {
		t, ok := p.queue.Take()
		if !ok {
			return nil
		}
		b.c.give(t.data)
	}
}

// hops are all that items of this rank and of others in its row are sent by.
func (b busy) hops() (all []hop) {
	row, column := b.c.rank/b.k*b.k, b.c.rank%b.k
	for i := range b.k {
		if r := row + i; r != b.c.rank {
			all = append(all, hop{r, kindPlain}, hop{r, kindTo})
		}
		if r := i*b.k + column; r != b.c.rank {
			all = append(all, hop{r, kindPlain}, hop{r, kindFrom})
		}
	}
	return all
}

// memory is how many bytes b has for all its hops: in buffers, and in all.
func (b busy) memory() (buffers, all int) {
	for _, p := range b.packs {
		buffers += cap(p.items) + 4*cap(p.ranks)
	}
	all = buffers + len(b.packs)*int(unsafe.Sizeof(pack{})) + len(b.peers)*int(unsafe.Sizeof(peer{}))
	for _, p := range b.peers {
		all += cap(p.queue.All()) * int(unsafe.Sizeof(batch{}))
	}
	for _, r := range b.c.room {
		all += cap(r)
	}
	return buffers, all
}

// growth is how much larger than what it holds a slice may be that append has made.
const growth = 1.6

// TestMemory compares what a rank of a large job keeps for its box, when items for all others
// and from all of its row have filled its buffers again and again, with the formulae of
// docs/scaling.md: 4 (k-1) buffers for 2 (k-1) ranks, in a grid of k columns, and at most budget
// bytes in all of them where items go to all ranks from the beginning on.
func TestMemory(t *testing.T) {
	for _, k := range []int{16, 64, 256} {
		rng := rand.New(rand.NewPCG(1, uint64(k)))
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		b := newBusy(k*k, 8)
		all := b.hops()
		for _, h := range all {
			if err := b.take(h, h.rank); err != nil {
				t.Fatal(err)
			}
		}
		for range 4096 * len(all) / 8 {
			h := all[rng.IntN(len(all))]
			if err := b.take(h, h.rank); err != nil {
				t.Fatal(err)
			}
		}
		buffers, total := b.memory()
		runtime.GC()
		runtime.ReadMemStats(&after)
		t.Logf("%d ranks: %d buffers of %d bytes for %d ranks, %d bytes with what there is beside them, %d of heap",
			k*k, len(b.packs), buffers, len(b.peers), total, after.HeapAlloc-before.HeapAlloc)
		packs := 4 * (k - 1)
		if len(b.packs) != packs || len(b.peers) != packs/2 {
			t.Errorf("%d ranks: %d buffers for %d ranks, want %d for %d", k*k, len(b.packs), len(b.peers), packs, packs/2)
		}
		share := min(mostBatch, budget/packs)
		if float64(buffers) > growth*float64(packs*share) || buffers < packs*share/2 {
			t.Errorf("%d ranks: buffers of %d bytes, want at most %d, and what append makes of that", k*k, buffers, packs*share)
		}
		runtime.KeepAlive(b.Box)
	}
}

// TestMemoryOneByOne is the worst order: each buffer grows before there is another one.
func TestMemoryOneByOne(t *testing.T) {
	const k = 256
	b := newBusy(k*k, 8)
	for _, h := range b.hops() {
		for range 4096 / 8 * 3 {
			if err := b.take(h, h.rank); err != nil {
				t.Fatal(err)
			}
		}
	}
	buffers, _ := b.memory()
	packs := float64(len(b.packs))
	most := budget * (1 + math.Log(packs*mostBatch/budget))
	t.Logf("%v buffers of %d bytes, by formula %.0f", packs, buffers, most)
	if float64(buffers) > growth*most {
		t.Errorf("%v buffers of %d bytes, want at most %.0f, and what append makes of that", packs, buffers, most)
	}
}
