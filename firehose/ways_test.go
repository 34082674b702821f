package firehose

import (
	"testing"
)

const wayBucket = 64 << 10

// newPolicy bounces up to 1,000 bytes, registers 1 MiB and more once, and has pins of
// up to six buckets.
func newPolicy(s Strategy) *policy {
	y := new(policy)
	y.init(Limits{Bucket: wayBucket, MaxRemote: 5*wayBucket + 1, MaxOnce: 8 << 20}, s, 1000, 1<<20)
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
		{Adaptive, 0, 6 * wayBucket, wayOnce, wayMiss},
		{Adaptive, 1, 6 * wayBucket, wayOnce, wayOnce}, // seven buckets
		{Adaptive, 0, 1 << 20, wayOnce, wayOnce},
		{AlwaysBounce, 0, 1 << 20, wayBounce, wayBounce},
		{AlwaysPin, 0, 8, wayMiss, wayMiss},
		{AlwaysPin, 0, 1 << 20, wayMiss, wayMiss},
		{AlwaysRegister, 0, 8, wayOnce, wayOnce},
	} {
		y := newPolicy(c.strategy)
		a := Addr(7*wayBucket + c.off)
		first := y.choose(3, a, c.n)
		if first != c.first || y.choose(3, a, c.n) != first {
			t.Errorf("%v, %d bytes at %#x: way %d at the first touch, want %d", c.strategy, c.n, a, first, c.first)
		}
		y.touch(3, a, c.n, first)
		if got := y.choose(3, a, c.n); got != c.later {
			t.Errorf("%v, %d bytes at %#x: way %d later, want %d", c.strategy, c.n, a, got, c.later)
		}
		y.touch(3, a, c.n, c.later)
		if got := y.choose(3, a, c.n); got != c.first {
			t.Errorf("%v, %d bytes at %#x: way %d once a firehose was fetched, want %d", c.strategy, c.n, a, got, c.first)
		}
	}
}

// TestMost: an access is cut where its way ends.
func TestMost(t *testing.T) {
	for _, c := range []struct {
		strategy     Strategy
		off, n, want uint64
	}{
		{Adaptive, 0, 6*wayBucket + 1, 6 * wayBucket},
		{Adaptive, 5, 6 * wayBucket, 6*wayBucket - 5},
		{Adaptive, 5, 1 << 20, 1 << 20},
		{Adaptive, 5, 9 << 20, 8 << 20},
		{AlwaysPin, 5, 1 << 20, 6*wayBucket - 5},
		{AlwaysRegister, 5, 9 << 20, 8 << 20},
		{AlwaysRegister, 5, 8, 8},
		{AlwaysBounce, 5, 1 << 31, bounceMost},
	} {
		if got := newPolicy(c.strategy).most(Addr(wayBucket+c.off), c.n); got != c.want {
			t.Errorf("%v, %d bytes at offset %d: %d are one access, want %d", c.strategy, c.n, c.off, got, c.want)
		}
	}
}
