package segment

import (
	"math/big"
	"math/bits"
)

// Layout is how a UPC shared array lies on the ranks: what the type "shared
// [Block] T" and the constant THREADS say in UPC 1.3 (sections 6.5.2.1 and 6.4.2).
// Elements go to blocks in order, blocks to the threads in turn, and the elements of a
// thread lie one after the other. Methods do not check a Layout; they may be called by
// many goroutines at once, and do not fail: numbers of any size are exact, or are no element's.
type Layout struct {
	Threads int // number of ranks; at least 1
	Block   int // elements of a block; 0 is UPC's indefinite block size, all on one rank
}

// Affinity is how many of the first count elements of an array lie on thread
// (upc_affinitysize, in elements).
func (l Layout) Affinity(count, thread int) int {
	switch {
	case uint(thread) >= uint(l.Threads) || count <= 0:
		return 0
	case l.Block == 0 && thread == 0:
		return count
	case l.Block == 0:
		return 0
	}
	// In this order no product is larger than count.
	blocks, rest := count/l.Block, count%l.Block
	n := blocks / l.Threads * l.Block
	switch last := blocks % l.Threads; {
	case thread < last:
		n += l.Block
	case thread == last:
		n += rest
	}
	return n
}

// Locate is the place of element i >= 0 of an array that begins with phase 0 on
// thread 0: its thread, and its index among the elements there.
func (l Layout) Locate(i int) (thread, local int) {
	if l.Block == 0 {
		return 0, i
	}
	block, phase := i/l.Block, i%l.Block
	return block % l.Threads, block/l.Threads*l.Block + phase
}

// Phase is the phase of element local of a thread: 0 to Block-1, and 0 if Block is 0.
func (l Layout) Phase(local int) int {
	if l.Block == 0 {
		return 0
	}
	return local % l.Block
}

// Index is the inverse of Locate; -1 if the number of the element does not fit an int.
func (l Layout) Index(thread, local int) int {
	if l.Block == 0 {
		return local
	}
	if n := (local/l.Block*l.Threads+thread)*l.Block + local%l.Block; small(local, thread, l.Threads, l.Block) {
		return n
	}
	block, ok := mulAdd(local/l.Block, l.Threads, thread)
	if n, fits := mulAdd(block, l.Block, local%l.Block); ok && fits {
		return n
	}
	return -1
}

// small reports whether products of two of these numbers, and sums of a few such, fit an int.
func small(a, b, c, d int) bool { return uint(a)|uint(b)|uint(c)|uint(d) < 1<<30 }

// mulAdd is a*b+c, or false if that does not fit an int. None is negative.
func mulAdd(a, b, c int) (int, bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	sum, carry := bits.Add64(lo, uint64(c), 0)
	return int(sum), hi == 0 && carry == 0 && int(sum) >= 0
}

// Shared is a UPC pointer-to-shared without its type: the size of its elements, bytes,
// is an argument of the methods that count in them, as the layout is. A compiler passes
// constants. The zero Shared is the null pointer-to-shared. Operator == compares
// the phase too; UPC's == does not.
type Shared struct {
	Thread int // upc_threadof: a rank
	Phase  int // upc_phaseof: 0 to Block-1, and 0 if Block is 0
	Addr   NLA // upc_addrfield: the address in the thread's segment
}

// At is element i of an array whose first element is at base of thread 0 and whose
// elements have size bytes; on every thread its part begins at base.
func (l Layout) At(base NLA, i, size int) Shared { return Shared{Addr: base}.Add(l, i, size) }

// Add is UPC's s + i: the element i further in array order, where i may be
// negative. With div rounding down and mod nonnegative,
//
//	phase'  = (phase + i) mod Block
//	thread' = (thread + (phase + i) div Block) mod Threads
//
// and the address follows from the correspondence of shared and local
// arithmetic. With Block 0 only the address moves, and the phase is 0. A pointer of a thread
// that the layout does not have stays on it; what leaves the addresses is at ExposedLimit, which no
// memory has, wherever it is moved from there.
func (s Shared) Add(l Layout, i, size int) Shared {
	const most = 1 << 40 // three such numbers times a size of 20 bits fit an int
	if uint(i+most/2)|uint(s.Phase)|uint(l.Block)|uint(l.Threads) >= most || uint(size) >= 1<<20 || s.Addr >= ExposedLimit || uint(s.Thread) >= uint(l.Threads) {
		return s.addFar(l, i, size)
	}
	if l.Block == 0 {
		s.Phase = 0
		s.Addr = min(s.Addr+NLA(i*size), ExposedLimit)
		return s
	}
	blocks, phase := floorDiv(s.Phase+i, l.Block)
	rounds, thread := floorDiv(s.Thread+blocks, l.Threads)
	s.Addr = min(s.Addr+NLA((rounds*l.Block+phase-s.Phase)*size), ExposedLimit)
	s.Thread, s.Phase = thread, phase
	return s
}

// addFar is Add of any numbers.
func (s Shared) addFar(l Layout, i, size int) Shared {
	if s.Addr >= ExposedLimit || uint(s.Thread) >= uint(l.Threads) || l.Threads < 1 || l.Block < 0 {
		s.Addr = ExposedLimit
		return s
	}
	local, phase, thread := big.NewInt(int64(i)), new(big.Int), big.NewInt(int64(s.Thread))
	if l.Block > 0 {
		block, threads := big.NewInt(int64(l.Block)), big.NewInt(int64(l.Threads))
		local.Add(local, big.NewInt(int64(s.Phase)))
		local.DivMod(local, block, phase) // of positive divisors it rounds down
		local.Add(local, thread).DivMod(local, threads, thread)
		local.Mul(local, block).Add(local, phase).Sub(local, big.NewInt(int64(s.Phase)))
	}
	at := local.Mul(local, big.NewInt(int64(size)))
	at.Add(at, new(big.Int).SetUint64(uint64(s.Addr)))
	s.Thread, s.Phase, s.Addr = int(thread.Int64()), int(phase.Int64()), ExposedLimit
	if at.Sign() >= 0 && at.IsUint64() {
		s.Addr = min(NLA(at.Uint64()), ExposedLimit)
	}
	return s
}

// Sub is UPC's s - r: the x for which r + x is s with the same phase. It is
// false if there is none, where UPC leaves the result undefined, and if size is 0.
func (s Shared) Sub(l Layout, r Shared, size int) (x int, ok bool) {
	bytes := int(s.Addr - r.Addr)
	if size < 1 || bytes%size != 0 || max(s.Addr, r.Addr) >= ExposedLimit {
		return 0, false
	}
	d := bytes / size // local elements
	if l.Block == 0 {
		return d, s.Thread == r.Thread && s.Phase == 0
	}
	for _, p := range [...]Shared{s, r} {
		if uint(p.Phase) >= uint(l.Block) || uint(p.Thread) >= uint(l.Threads) {
			return 0, false
		}
	}
	dphase := s.Phase - r.Phase
	rounds := d - dphase
	if rounds%l.Block != 0 {
		return 0, false
	}
	block, dthread := rounds/l.Block, s.Thread-r.Thread
	// Addresses have 40 bits, so that only sums with much larger layouts do not fit.
	if max(uint(l.Block), uint(l.Threads)) < 1<<20 {
		return (block*l.Threads+dthread)*l.Block + dphase, true
	}
	n := new(big.Int).Mul(big.NewInt(int64(block)), big.NewInt(int64(l.Threads)))
	n.Add(n, big.NewInt(int64(dthread))).Mul(n, big.NewInt(int64(l.Block))).Add(n, big.NewInt(int64(dphase)))
	return int(n.Int64()), n.IsInt64()
}

// floorDiv is a div b rounding down, and a mod b, nonnegative; b is positive.
func floorDiv(a, b int) (q, r int) {
	q, r = a/b, a%b
	if r < 0 {
		q--
		r += b
	}
	return q, r
}
