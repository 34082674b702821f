// The policy: which way an access to exposed memory takes. It knows the strategy, the
// limits of firehoses, and which buckets were touched lately; it moves nothing and asks
// no one, so that it can be read as a table. The ways, in the order in which they are
// tried:
//
//	direct   the memory is the own one: a copy
//	hit      a firehose is attached: the conduit's operation, at once
//	bounce   the owner copies; data travels in messages
//	once     the owner registers exactly this range for this one access
//	miss     a firehose is attached first, bucket by bucket
//
// Direct is a matter of the rank alone, and whether there is a hit the cache says. The
// rest, for strategy Adaptive, depends on the length n and on whether the bucket was
// touched lately:
//
//	n                             first touch   later
//	up to BounceMax               bounce        miss
//	up to onceFirst               miss          miss
//	from onceFirst on             once          miss
//	from OnceMin on, or more
//	than one pin covers           once          once
//
// package extended's comment has the measurements that the defaults come from.

package exposed

import (
	"fmt"
	"sync"

	"github.com/argon-go/argon/firehose"
)

// Strategy says how to reach exposed memory of another rank; see extended.Strategy.
type Strategy uint8

// The strategies.
const (
	Adaptive Strategy = iota
	AlwaysBounce
	AlwaysPin
	AlwaysRegister
	NumStrategies // how many there are
)

// String names the strategy, as gasbench's flags do.
func (s Strategy) String() string {
	switch s {
	case Adaptive:
		return "adaptive"
	case AlwaysBounce:
		return "bounce"
	case AlwaysPin:
		return "pin"
	case AlwaysRegister:
		return "register"
	}
	return fmt.Sprintf("Strategy(%d)", uint8(s))
}

// way is how an access that is no hit gets to its memory.
type way uint8

const (
	wayBounce way = iota
	wayMiss
	wayOnce
)

// Sizes, bytes.
const (
	// shortMax is the longest access that is made while the cache is locked.
	shortMax = 4096
	// bounceMost is the longest access that is bounced: requests say in 32 bits where
	// in it they belong.
	bounceMost = 1 << 30
	// onceFirst is from which length on memory that is touched for the first time
	// is registered for the one access instead of pinned: 4.8 us against 7.7 on
	// shm, 86 against 87 on udp.
	onceFirst = 64 << 10
)

// touches is for how many buckets the policy remembers that they were touched.
const touches = 1024

// policy is safe for concurrent use, but for set.
type policy struct {
	strategy  Strategy
	short     int // longest short access, bytes; 0 if the strategy has no use for them
	bounceMax int
	onceMin   uint64
	bucket    uint64 // firehose.Limits has these two
	maxOnce   uint64
	onePin    uint64 // bytes from a bucket's begin that one pin covers

	mu      sync.Mutex
	touched []uint64 // see first; nil before first use
}

// init sets all that does not change.
func (y *policy) init(l firehose.Limits, s Strategy, bounceMax int, onceMin uint64) {
	y.bounceMax, y.onceMin = min(bounceMax, bounceMost), onceMin
	y.bucket, y.maxOnce = l.Bucket, l.MaxOnce
	y.onePin = (l.MaxRemote-1)/l.Bucket*l.Bucket + l.Bucket
	y.set(s)
}

// set changes the strategy. No access is under way.
func (y *policy) set(s Strategy) {
	y.strategy, y.short = s, 0
	if s == Adaptive || s == AlwaysPin {
		y.short = shortMax
	}
}

// reach is how many bytes from a on one pin covers.
func (y *policy) reach(a firehose.Addr) uint64 { return y.onePin - uint64(a)&(y.bucket-1) }

// most is how much of n bytes at a is one access, to another rank's memory.
func (y *policy) most(a firehose.Addr, n uint64) uint64 {
	switch {
	case y.strategy == AlwaysBounce:
		return min(n, bounceMost)
	case y.strategy == AlwaysRegister, y.strategy == Adaptive && n >= y.onceMin:
		return min(n, y.maxOnce)
	}
	return min(n, y.reach(a))
}

// looks reports whether n bytes at a may be a hit.
func (y *policy) looks(a firehose.Addr, n uint64) bool {
	return y.strategy == Adaptive && n <= y.reach(a)
}

// fetches reports whether a short access that is no hit is worth a firehose, for which its
// caller then waits right there.
func (y *policy) fetches(rank int, a firehose.Addr, n int) bool {
	if y.strategy != Adaptive {
		return true
	}
	return uint64(n) < y.onceMin && (n > y.bounceMax || y.again(rank, a))
}

// fetched is told of a firehose that fetches was for: the next miss of the bucket is a
// first touch.
func (y *policy) fetched(rank int, a firehose.Addr, n int) {
	if y.strategy == Adaptive && n <= y.bounceMax {
		y.first(rank, a)
	}
}

// choose finds the way for n bytes at a that are no hit.
func (y *policy) choose(rank int, a firehose.Addr, n uint64) way {
	switch {
	case y.strategy == AlwaysBounce:
		return wayBounce
	case y.strategy == AlwaysRegister:
		return wayOnce
	case y.strategy == AlwaysPin:
		return wayMiss
	case n >= y.onceMin, n > y.reach(a):
		return wayOnce
	case n <= uint64(y.bounceMax) && y.first(rank, a):
		return wayBounce
	case n >= onceFirst && y.first(rank, a):
		return wayOnce
	}
	return wayMiss
}

// place is what stands for a's bucket in touched, 0 being none, and where.
func (y *policy) place(rank int, a firehose.Addr) (key, i uint64) {
	key = uint64(a)/y.bucket<<24 | uint64(rank) + 1
	return key, key * 0x9e3779b97f4a7c15 >> 54
}

// first reports whether a's bucket has not been touched lately, that is, since another one
// has taken its place in a table of so many. It is remembered if so, and forgotten if
// not.
func (y *policy) first(rank int, a firehose.Addr) bool {
	key, i := y.place(rank, a)
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.touched == nil {
		y.touched = make([]uint64, touches)
	}
	if y.touched[i] == key {
		y.touched[i] = 0
		return false
	}
	y.touched[i] = key
	return true
}

// again reports whether first would say no, and changes nothing.
func (y *policy) again(rank int, a firehose.Addr) bool {
	key, i := y.place(rank, a)
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.touched != nil && y.touched[i] == key
}
