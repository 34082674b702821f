package exposed

import (
	"testing"

	"github.com/argon-go/argon/firehose"
	"pgregory.net/rapid"
)

const testBucket = 64 << 10

// newPolicy bounces up to 1,000 bytes, registers 1 MiB and more once, and has pins of
// up to six buckets.
func newPolicy(s Strategy) *policy {
	y := new(policy)
	y.init(firehose.Limits{Bucket: testBucket, MaxRemote: 5*testBucket + 1, MaxOnce: 8 << 20}, s, 1000, 1<<20)
	return y
}

// TestChoose is the table in the policy's head.
func TestChoose(t *testing.T) {
	for _, c := range []struct {
		strategy     Strategy
		off, n       uint64
		first, later way
	}{
		{Adaptive, 0, 8, wayBounce, wayMiss},
		{Adaptive, 0, 1000, wayBounce, wayMiss},
		{Adaptive, 0, 1001, wayMiss, wayMiss},
		{Adaptive, 0, onceFirst - 1, wayMiss, wayMiss},
		{Adaptive, 0, onceFirst, wayOnce, wayMiss},
		{Adaptive, 0, 6 * testBucket, wayOnce, wayMiss},
		{Adaptive, 1, 6 * testBucket, wayOnce, wayOnce}, // seven buckets
		{Adaptive, 0, 1 << 20, wayOnce, wayOnce},
		{AlwaysBounce, 0, 1 << 20, wayBounce, wayBounce},
		{AlwaysPin, 0, 8, wayMiss, wayMiss},
		{AlwaysPin, 0, 1 << 20, wayMiss, wayMiss},
		{AlwaysRegister, 0, 8, wayOnce, wayOnce},
	} {
		y := newPolicy(c.strategy)
		a := firehose.Addr(7*testBucket + c.off)
		if got := y.choose(3, a, c.n); got != c.first {
			t.Errorf("%v, %d bytes at %#x: way %d at the first touch, want %d", c.strategy, c.n, a, got, c.first)
		}
		if got := y.choose(3, a, c.n); got != c.later {
			t.Errorf("%v, %d bytes at %#x: way %d later, want %d", c.strategy, c.n, a, got, c.later)
		}
	}
}

// TestMost: an access is cut where its way ends.
func TestMost(t *testing.T) {
	for _, c := range []struct {
		strategy     Strategy
		off, n, want uint64
	}{
		{Adaptive, 0, 6*testBucket + 1, 6 * testBucket},
		{Adaptive, 5, 6 * testBucket, 6*testBucket - 5},
		{Adaptive, 5, 1 << 20, 1 << 20},
		{Adaptive, 5, 9 << 20, 8 << 20},
		{AlwaysPin, 5, 1 << 20, 6*testBucket - 5},
		{AlwaysRegister, 5, 9 << 20, 8 << 20},
		{AlwaysRegister, 5, 8, 8},
		{AlwaysBounce, 5, 1 << 31, bounceMost},
	} {
		if got := newPolicy(c.strategy).most(firehose.Addr(testBucket+c.off), c.n); got != c.want {
			t.Errorf("%v, %d bytes at offset %d: %d are one access, want %d", c.strategy, c.n, c.off, got, c.want)
		}
	}
}

// TestFetches: a short access fetches a firehose exactly where it would have one
// attached if it went through the state machine, and leaves the same memory of touches.
func TestFetches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom([]Strategy{Adaptive, AlwaysPin}).Draw(t, "strategy")
		short, long := newPolicy(s), newPolicy(s)
		misses := 0
		for range rapid.IntRange(1, 60).Draw(t, "accesses") {
			rank := rapid.IntRange(0, 2).Draw(t, "rank")
			a := firehose.Addr(rapid.IntRange(1, 4).Draw(t, "bucket") * testBucket)
			n := rapid.SampledFrom([]int{1, 999, 1000, 1001, shortMax}).Draw(t, "n")
			want := long.choose(rank, a, uint64(n)) == wayMiss
			got := short.fetches(rank, a, n)
			if got != want {
				t.Fatalf("%v: %d bytes at %#x of rank %d: fetches %v, and the way is a miss: %v", s, n, a, rank, got, want)
			}
			if got {
				misses++
				short.fetched(rank, a, n)
			} else {
				short.choose(rank, a, uint64(n))
			}
		}
		if s == AlwaysPin && misses == 0 {
			t.Fatal("nothing is fetched")
		}
	})
}
