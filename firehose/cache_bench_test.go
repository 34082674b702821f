package firehose_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/segment"
)

// bench runs f at rank 0 of two in one process, on one goroutine.
func bench(b *testing.B, f func(r *rank, a firehose.Addr) error) {
	var done atomic.Bool
	for i, err := range job(b, 2, firehose.Config{Budget: 40 * bucket, Local: 10 * bucket}, nil, func(r *rank) error {
		if err := r.expose(64*bucket, segment.RightsAll); err != nil {
			return err
		}
		if err := r.sync(); err != nil {
			return err
		}
		var err error
		if r.e.Rank() == 1 {
			err = conduits.Wait(r.e.Conduit(), nil, done.Load)
		} else {
			err = f(r, r.all[1].addrs[0])
			done.Store(true)
			r.e.Conduit().Wake(1)
		}
		if err != nil {
			return err
		}
		return r.sync()
	}) {
		if err != nil {
			b.Error(fmt.Errorf("rank %d: %w", i, err))
		}
	}
}

func (r *rank) pin(a firehose.Addr) error {
	reg, err := r.c.RemotePin(1, a, 8)
	if err != nil {
		return err
	}
	r.c.At(reg, a)
	return r.c.Release(reg)
}

// BenchmarkCacheHit is a pin, its address and its release.
func BenchmarkCacheHit(b *testing.B) {
	bench(b, func(r *rank, a firehose.Addr) error {
		for b.Loop() {
			if err := r.pin(a); err != nil {
				return err
			}
		}
		return nil
	})
}

// BenchmarkCacheNow is the shortest form of a hit.
func BenchmarkCacheNow(b *testing.B) {
	bench(b, func(r *rank, a firehose.Addr) error {
		if err := r.pin(a); err != nil {
			return err
		}
		for b.Loop() {
			if !r.x.Now(&conduits.Access{Verb: conduits.PutWord, Size: 8, Rank: 1, At: nla(a + 96), A: 5}) {
				b.Fatal("miss")
			}
		}
		return nil
	})
}

// BenchmarkCacheMiss is the same with a firehose that moves each time.
func BenchmarkCacheMiss(b *testing.B) {
	bench(b, func(r *rank, a firehose.Addr) error {
		for i := 0; b.Loop(); i++ {
			if err := r.pin(a + firehose.Addr(i%60*bucket)); err != nil {
				return err
			}
		}
		return nil
	})
}

// BenchmarkCacheRefused is a pin that the peer refuses: a miss's messages without
// registration.
func BenchmarkCacheRefused(b *testing.B) {
	bench(b, func(r *rank, a firehose.Addr) error {
		for b.Loop() {
			if err := r.pin(a + 1<<40); err == nil {
				b.Error("pinned what is not there")
			}
		}
		return nil
	})
}
