package firehose

import (
	"errors"
	"runtime"
	"testing"

	"github.com/argon-go/argon/internal/errs"
)

// TestDigest: options that must be equal change it, a default counts as its value,
// and options that may differ do not change it.
func TestDigest(t *testing.T) {
	base := Config{Size: 5, Budget: 1 << 30, Local: 1 << 20, Bucket: 64 << 10, Payload: 600}
	for what, change := range map[string]func(*Config){
		"size":    func(c *Config) { c.Size++ },
		"budget":  func(c *Config) { c.Budget++ },
		"local":   func(c *Config) { c.Local++ },
		"bucket":  func(c *Config) { c.Bucket *= 2 },
		"payload": func(c *Config) { c.Payload++ },
	} {
		c := base
		if change(&c); c.Digest() == base.Digest() {
			t.Errorf("%s is not part of it", what)
		}
	}
	c := base
	c.Rank, c.Memory, c.leave = 3, newFakeMemory(t, 0, 1), func(int, Addr) {}
	if c.Digest() != base.Digest() {
		t.Error("it differs between ranks")
	}
	zero := Config{Size: 5}
	if zero.Digest() != (Config{Size: 5, Budget: 512 << 20, Local: 128 << 20, Bucket: 64 << 10, Payload: 512}).Digest() {
		t.Error("of defaults")
	}
}

// TestDefaults: the zero budget is good for few ranks and for many, and for buckets
// of any size.
func TestDefaults(t *testing.T) {
	for _, bucket := range []uint64{0, 4 << 10, 32 << 20, 1 << 30} {
		for _, size := range []int{1, 2, 3, 100, 1000, 10000, 1 << 20} {
			c := Config{Size: size, Bucket: bucket, Memory: newFakeMemory(t, 0, 1)}
			m, err := newMachine(c)
			if err != nil {
				t.Errorf("%d ranks, buckets of %d: %v", size, bucket, err)
				continue
			}
			l := m.l
			if size > 1 && l.Share < 16 || l.Local < 5 || l.Share*(size-1)+l.Local > l.Budget {
				t.Errorf("%d ranks, buckets of %d: %+v", size, bucket, l)
			}
		}
	}
}

// TestHugeLocal: what a region cannot say is not granted.
func TestHugeLocal(t *testing.T) {
	m, err := newMachine(Config{Size: 2, Budget: 4 << 40, Local: 2 << 40, Memory: newFakeMemory(t, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.PinOnce(1, 0, 1<<40, 1); !errors.Is(err, errs.ErrResource) || m.l.MaxOnce != 1<<40-1 {
		t.Errorf("%v, at most %d", err, m.l.MaxOnce)
	}
	if err := m.PinOnce(1, 0, 1<<40-1, 1); err != nil {
		t.Error(err)
	}
}

// TestManyRanks: what a rank's cache takes does not depend on how many ranks there
// are, but on how many it deals with.
func TestManyRanks(t *testing.T) {
	const caches = 2000
	perCache := func(size int) uint64 {
		all := make([]*Cache, caches)
		spaces := make([]*Space, caches)
		c := Config{Size: size}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range all {
			var err error
			if spaces[i], err = NewSpace(nil, 64<<10); err != nil {
				t.Fatal(err)
			}
			c.Rank, c.Memory = i%size, spaces[i]
			if all[i], err = NewCache(c); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(all)
		return (after.TotalAlloc - before.TotalAlloc) / caches
	}
	few, many := perCache(2), perCache(1<<20)
	t.Logf("%d bytes for a Space and a Cache of 2 ranks, %d of 1,048,576", few, many)
	if many > few+64 || many > 3000 {
		t.Errorf("%d bytes for a cache of 2 ranks, %d of many", few, many)
	}

	// A peer, with its firehoses.
	const size, share = 1000, 16
	c := Config{Size: size, Budget: (size*share + share) * testBucket, Local: testBucket, Bucket: testBucket, Memory: newFakeMemory(t, 0, 1)}
	m, err := newMachine(c)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for r := 1; r < size; r++ {
		p := m.peer(r)
		for b := range uint64(share) {
			p.t.insert(b, present)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(m)
	n := (after.HeapAlloc - before.HeapAlloc) / (size - 1)
	t.Logf("%d bytes for a peer with %d firehoses", n, share)
	if n > 4000 {
		t.Errorf("%d bytes", n)
	}
}
