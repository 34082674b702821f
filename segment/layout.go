package segment

// Layout is how a UPC shared array lies on the ranks: what the type "shared
// [Block] T" and the constant THREADS say in UPC 1.3 (sections 6.5.2.1 and 6.4.2).
// Elements go to blocks in order, blocks to the threads in turn, and the elements of a
// thread lie one after the other. Methods do not check a Layout; they may be called by
// many goroutines at once, and neither allocate nor fail.
type Layout struct {
	Threads int // number of ranks; at least 1
	Block   int // elements of a block; 0 is UPC's indefinite block size, all on one rank
}

// Affinity is how many of the first count elements of an array lie on thread
// (upc_affinitysize, in elements).
func (l Layout) Affinity(count, thread int) int {
	if l.Block == 0 {
		if thread == 0 {
			return count
		}
		return 0
	}
	round := l.Block * l.Threads
	return count/round*l.Block + min(max(count%round-thread*l.Block, 0), l.Block)
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

// Index is the inverse of Locate.
func (l Layout) Index(thread, local int) int {
	if l.Block == 0 {
		return local
	}
	return (local/l.Block*l.Threads+thread)*l.Block + local%l.Block
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
// arithmetic. With Block 0 only the address moves, and the phase is 0.
func (s Shared) Add(l Layout, i, size int) Shared {
	if l.Block == 0 {
		s.Phase = 0
		s.Addr += NLA(i * size)
		return s
	}
	blocks, phase := floorDiv(s.Phase+i, l.Block)
	rounds, thread := floorDiv(s.Thread+blocks, l.Threads)
	s.Addr += NLA((rounds*l.Block + phase - s.Phase) * size)
	s.Thread, s.Phase = thread, phase
	return s
}

// Sub is UPC's s - r: the x for which r + x is s with the same phase. It is
// false if there is none, where UPC leaves the result undefined, and if size is 0.
func (s Shared) Sub(l Layout, r Shared, size int) (x int, ok bool) {
	bytes := int(s.Addr - r.Addr)
	if size < 1 || bytes%size != 0 {
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
	return (rounds/l.Block*l.Threads+s.Thread-r.Thread)*l.Block + dphase, true
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
