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

package firehose

import (
	"fmt"
	"sync"
)

// Strategy is how to reach exposed memory of another rank. The strategies but
// the first are for measurements and tests.
type Strategy uint8

// The strategies.
const (
	// Adaptive bounces what is at most bounceMax long when it touches a
	// bucket for the first time in a while, registers for the one transfer what is
	// too long for one pin, or at least onceMin long, or 64 KiB at a first
	// touch, and has firehoses for all else.
	Adaptive Strategy = iota
	// AlwaysBounce has the owner copy everything: data travels in active
	// messages.
	AlwaysBounce
	// AlwaysPin has firehoses for everything.
	AlwaysPin
	// AlwaysRegister has the owner register exactly the range of every transfer,
	// and take that back afterwards.
	AlwaysRegister
	numStrategies
)

var strategyNames = [numStrategies]string{Adaptive: "adaptive", AlwaysBounce: "bounce", AlwaysPin: "pin", AlwaysRegister: "register"}

// String names the strategy, as gasbench's flags do.
func (s Strategy) String() string {
	if s < numStrategies {
		return strategyNames[s]
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
	// DefaultBounceMax: a put of 16 KiB to memory without a firehose takes 1.3 us by bouncing
	// and 3.1 by a miss on shm; 44 and 38 on udp, which at 8 KiB still are 31 and 45.
	DefaultBounceMax = 16 << 10
	// DefaultOnceMin: a put of 1 MiB takes 30 us with registration, 28 by firehoses that are
	// attached and 88 by such as are not on shm; 428, 514 and 982 on udp.
	DefaultOnceMin = 1 << 20
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
	bucket    uint64 // Limits has these two
	maxOnce   uint64
	onePin    uint64 // bytes from a bucket's begin that one pin covers

	mu      sync.Mutex
	touched []uint64 // see touch; nil before first use
}

// init sets all that does not change.
func (y *policy) init(l Limits, s Strategy, bounceMax int, onceMin uint64) {
	if bounceMax == 0 {
		bounceMax = DefaultBounceMax
	}
	if onceMin == 0 {
		onceMin = DefaultOnceMin
	}
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
func (y *policy) reach(a Addr) uint64 { return y.onePin - uint64(a)&(y.bucket-1) }

// most is how much of n bytes at a is one access, to another rank's memory.
func (y *policy) most(a Addr, n uint64) uint64 {
	switch {
	case y.strategy == AlwaysBounce:
		return min(n, bounceMost)
	case y.strategy == AlwaysRegister, y.strategy == Adaptive && n >= y.onceMin:
		return min(n, y.maxOnce)
	}
	return min(n, y.reach(a))
}

// looks reports whether n bytes at a may be a hit.
func (y *policy) looks(a Addr, n uint64) bool {
	return y.strategy == Adaptive && n <= y.reach(a)
}

// choose is the way for n bytes at a if they are no hit.
func (y *policy) choose(rank int, a Addr, n uint64) way {
	switch {
	case y.strategy == AlwaysBounce:
		return wayBounce
	case y.strategy == AlwaysRegister:
		return wayOnce
	case y.strategy == AlwaysPin:
		return wayMiss
	case n >= y.onceMin, n > y.reach(a):
		return wayOnce
	case n <= uint64(y.bounceMax) && !y.again(rank, a):
		return wayBounce
	case n >= onceFirst && !y.again(rank, a):
		return wayOnce
	}
	return wayMiss
}

// touch is told of an access that was no hit, and of the way that choose has chosen for it: a
// first touch is remembered, and forgotten once a firehose was worth it, so that the next
// miss of the bucket is a first touch.
func (y *policy) touch(rank int, a Addr, n uint64, w way) {
	if y.strategy != Adaptive || n >= y.onceMin || n > y.reach(a) || n > uint64(y.bounceMax) && n < onceFirst {
		return // what choose did not ask again for
	}
	key, i := y.place(rank, a)
	y.mu.Lock()
	defer y.mu.Unlock()
	switch {
	case w != wayMiss:
		if y.touched == nil {
			y.touched = make([]uint64, touches)
		}
		y.touched[i] = key
	case y.touched != nil && y.touched[i] == key:
		y.touched[i] = 0
	}
}

// place returns the key for a's bucket in touched, 0 being none, and its index there.
func (y *policy) place(rank int, a Addr) (key, i uint64) {
	key = uint64(a)/y.bucket<<24 | uint64(rank) + 1
	return key, key * 0x9e3779b97f4a7c15 >> 54
}

// again reports whether a's bucket was touched lately, that is, no other one has taken its
// place since in a table of so many.
func (y *policy) again(rank int, a Addr) bool {
	key, i := y.place(rank, a)
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.touched != nil && y.touched[i] == key
}
