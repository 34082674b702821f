package contract

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/segment"
)

// registeredChecks are the promises about memory beyond the segment.
var registeredChecks = []Check{
	{Name: "unit", Run: checkUnit},
	{Name: "registered", Run: checkRegistered},
	{Name: "registered rma", Seeded: true, Run: checkRegisteredRMA},
	{Name: "registered rma of threads", Seeded: true, Run: checkRegisteredRMAOfThreads},
	{Name: "registered tables", Run: checkRegisteredTables},
	{Name: "registered rights", Run: checkRegisteredRights},
	{Name: "registered bounds", Run: checkRegisteredBounds},
	{Name: "registered at once", Seeded: true, Run: checkAtOnce},
	{Name: "registered many at once", Seeded: true, Run: checkManyAtOnce},
	{Name: "registered again", Run: checkRegisteredAgain},
	{Name: "registered counter", Run: checkRegisteredCounter},
	{Name: "registered messages", Seeded: true, Run: checkRegisteredMessages},
	{Name: "refused messages", Run: checkRefusedMessages},
	{Name: "faults amid traffic", Seeded: true, Run: checkFaultsAmidTraffic},
	{Name: "deregister", Seeded: true, Run: checkDeregister},
	{Name: "unmap", Seeded: true, Run: checkUnmap},
	{Name: "registered at the end", Run: checkRegisteredAtEnd},
}

// extra is memory of a rank that is registered.
type extra struct {
	mem []byte
	r   segment.Registration
	to  segment.NLA // of the first byte
}

// at is the address of byte off, which may lie outside.
func (x *extra) at(off int) segment.NLA { return x.to + segment.NLA(off) }

// bytes are the n bytes at a, or nil.
func (x *extra) bytes(a segment.NLA, n int) []byte {
	if off := int64(a - x.to); off >= 0 && off+int64(n) <= int64(len(x.mem)) {
		return x.mem[off : off+int64(n)]
	}
	return nil
}

// register registers mem, whose addresses have to be consecutive: the rank has room
// for them.
func (p *Peer) register(mem []byte, rights segment.Rights, peer int) *extra {
	p.C.Helper()
	t, err := p.EP.ATU()
	p.Must(err)
	r, err := t.Register(mem, rights, peer)
	p.Must(err)
	a, k := r.At(0)
	if k != uint64(len(mem)) || !conduits.Registered(p.EP.SegmentSize(p.Rank), a, k) {
		p.Fatalf("%d bytes are registered at %v, %d of them together", len(mem), a, k)
	}
	return &extra{mem: mem, r: r, to: a}
}

func (p *Peer) deregister(x *extra) {
	p.C.Helper()
	t, err := p.EP.ATU()
	p.Must(err)
	p.Must(t.Deregister(x.r))
}

// mapped is memory of the conduit's, which stays until the rank unmaps it or the job
// has ended.
func (p *Peer) mapped(n int) []byte {
	p.C.Helper()
	mem, err := p.EP.MapMemory(uint64(n))
	p.Must(err)
	if len(mem) < n || len(mem)%segment.PageSize != 0 || !aligned(mem, segment.PageSize) {
		p.Fatalf("MapMemory of %d bytes gave %d, or not whole pages", n, len(mem))
	}
	p.job.mu.Lock()
	p.job.maps = append(p.job.maps, func() error { return p.EP.UnmapMemory(mem) })
	p.job.mu.Unlock()
	return mem
}

// attempt does an operation that the target may refuse, to its end, and returns
// the refusal.
func (r *rma) attempt(want conduits.Event, f func(cookie uint64) (uint64, conduits.Event, error)) (uint64, error) {
	r.C.Helper()
	o, cookie := r.begin(want)
	r.mu.Lock()
	o.mayFail = true
	r.mu.Unlock()
	v, ev, err := f(cookie)
	if err != nil {
		if ev != 0 || !errors.Is(err, segment.ErrFault) {
			r.Must(r.EP.Err())
			r.Fatalf("completion %#x and error %v, want one that wraps %q", ev, err, segment.ErrFault)
		}
		r.refused(cookie)
		return 0, err
	}
	r.errors.Add(1)
	r.done(cookie, ev, true, v)
	r.await(o)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ops, cookie)
	return o.val, o.err
}

func (r *rma) tryPut(dst int, to segment.NLA, b []byte) error {
	r.C.Helper()
	_, err := r.attempt(bothDone, func(c uint64) (uint64, conduits.Event, error) {
		ev, err := post.Put(r.EP, dst, to, b, bothDone, c)
		return 0, ev, err
	})
	return err
}

func (r *rma) tryGet(b []byte, dst int, to segment.NLA) error {
	r.C.Helper()
	_, err := r.attempt(conduits.RemoteDone, func(c uint64) (uint64, conduits.Event, error) {
		ev, err := post.Get(r.EP, b, dst, to, conduits.RemoteDone, c)
		return 0, ev, err
	})
	return err
}

func (r *rma) tryWord(dst int, to segment.NLA, v uint64, n int) error {
	r.C.Helper()
	_, err := r.attempt(bothDone, func(c uint64) (uint64, conduits.Event, error) {
		ev, err := post.PutWord(r.EP, dst, to, v, n, bothDone, c)
		return 0, ev, err
	})
	return err
}

func (r *rma) tryAdd(dst int, to segment.NLA, v uint64) (uint64, error) {
	r.C.Helper()
	return r.attempt(conduits.RemoteDone, func(c uint64) (uint64, conduits.Event, error) {
		return post.Atomic(r.EP, dst, to, conduits.AtomicAdd, conduits.Uint64, v, 0, c)
	})
}

// long sends a message with b put to an address, and waits until b may be reused.
func (r *rma) long(dst int, to segment.NLA, words []uint32, b []byte) {
	r.C.Helper()
	o, cookie := r.begin(conduits.SourceDone)
	r.mu.Lock()
	o.mayFail = true
	r.mu.Unlock()
	var s conduits.Slot
	var ev conduits.Event
	r.reserve(func() (st conduits.Status) {
		s, ev, st = r.EP.ReservePut(dst, conduits.Request, len(words), to, b, cookie)
		return st
	})
	copy(s.Words, words)
	r.EP.Commit(dst, conduits.Request, s, 1, len(b))
	r.done(cookie, ev, true, 0)
	r.await(o)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ops, cookie)
}

// checkUnit: an endpoint has one address translation unit, from Attach to Close,
// and memory to register.
func checkUnit(c *Case) {
	c.Job(2, conduits.Config{}, func(p *Peer) {
		if t, err := p.EP.ATU(); t != nil || !errors.Is(err, conduits.ErrNotReady) {
			p.Fatalf("before Attach: unit %p, error %v, want one that wraps %q", t, err, conduits.ErrNotReady)
		}
		p.attach(segment.PageSize, &sink{})
		var units [4]*segment.ATU
		p.Threads(len(units), func(i int) {
			t, err := p.EP.ATU()
			p.Must(err)
			units[i] = t
		})
		for _, t := range units {
			if t == nil || t != units[0] {
				p.Fatalf("units %v of one endpoint", units)
			}
		}
		for _, n := range []int{1, segment.PageSize, segment.PageSize + 1, 3 << 20} {
			mem := p.mapped(n)
			if want := int(Pages(n)); len(mem) != want {
				p.Fatalf("MapMemory of %d bytes gave %d, want %d", n, len(mem), want)
			}
			for i, b := range mem {
				if b != 0 {
					p.Fatalf("byte %d of fresh memory is %#x", i, b)
				}
			}
			Spoil(mem)
			p.Must(p.EP.UnmapMemory(mem))
		}
		for _, n := range []uint64{0, uint64(segment.NLALimit) + 1, 1<<64 - 1} {
			if mem, err := p.EP.MapMemory(n); !errors.Is(err, conduits.ErrBadArg) || mem != nil {
				p.Fatalf("MapMemory of %d bytes: %d bytes, %v", n, len(mem), err)
			}
		}
		p.Meet()
	})
}

// kinds of memory that a rank registers, and how.
var kinds = []struct {
	what   string
	mapped bool
	n      int // bytes of the memory
	lo, hi int // what is registered of it
}{
	{"Go memory within a page", false, segment.PageSize, 80, 180},
	{"one byte of Go memory", false, 100, 17, 18},
	{"Go memory across pages", false, 4*segment.PageSize + 100, 5, 4*segment.PageSize + 77},
	{"whole pages of Go memory", false, 3 * segment.PageSize, 0, 2 * segment.PageSize},
	{"mapped memory", true, 16 * segment.PageSize, 0, 16 * segment.PageSize},
	{"a part of mapped memory", true, 16 * segment.PageSize, 100, 9000},
	{"the last byte of mapped memory", true, segment.PageSize, segment.PageSize - 1, segment.PageSize},
	{"much memory", true, much, 3, much - 5},
}

// much is more than a message or a datagram has.
var much = unlessRaced(1<<20, 1<<18)

// kind makes memory of kind k that begins at a page, and registers it. what lies
// beside is filled.
func (p *Peer) kind(k int, rights segment.Rights, peer int) (whole []byte, x *extra) {
	p.C.Helper()
	d := &kinds[k]
	if d.mapped {
		whole = p.mapped(d.n)
	} else {
		whole = OnPage(d.n)
	}
	Fill(whole, Mix(uint64(p.Rank), uint64(k)), 0)
	return whole, p.register(whole[d.lo:d.hi], rights, peer)
}

// unkind ends what kind began.
func (p *Peer) unkind(k int, whole []byte, x *extra) {
	p.C.Helper()
	p.deregister(x)
	if kinds[k].mapped {
		p.Must(p.EP.UnmapMemory(whole))
	}
}

// OnPage is n bytes of Go memory that begin at a page.
func OnPage(n int) []byte {
	b := make([]byte, n+segment.PageSize)
	off := 0
	for !aligned(b[off:], segment.PageSize) {
		off++
	}
	return b[off : off+n : off+n]
}

// checkRegistered puts and gets every kind of memory at its ends and in its
// middle, a peer's and the own, and looks at what lies beside.
func checkRegistered(c *Case) {
	for _, n := range []int{1, 2, 3} {
		xs := make([][]*extra, n)
		c.Job(n, conduits.Config{}, func(p *Peer) {
			r := newRMA(p)
			p.attach(segment.PageSize, &r.sink)
			wholes := make([][]byte, len(kinds))
			for k := range kinds {
				var x *extra
				wholes[k], x = p.kind(k, segment.RightsAll, segment.AnyPeer)
				xs[p.Rank] = append(xs[p.Rank], x)
			}
			p.Meet()
			for turn := range 2 { // a peer, and itself
				dst := (p.Rank + 1 - turn + n) % n
				for k, d := range kinds {
					x, size := xs[dst][k], d.hi-d.lo
					key := Mix(uint64(dst), uint64(k))
					model := Fill(make([]byte, size), key, d.lo)
					if turn == 1 { // the peer's work, or what it was before
						key = Mix(uint64((p.Rank+n-1)%n), uint64(k), 7)
						model = Fill(make([]byte, size), key, 0)
					}
					all := func(what string) {
						p.C.Helper()
						b := append(make([]byte, size), "outside"...)
						r.await(r.get(b[:size:size], dst, x.at(0), conduits.RemoteDone))
						if i := Differ(b[:size], model); i >= 0 {
							p.Fatalf("%s of rank %d, %s: byte %d of %d is %#x, want %#x", d.what, dst, what, i, size, b[i], model[i])
						}
						if string(b[size:]) != "outside" {
							p.Fatalf("%s of rank %d, %s: a get wrote beyond its end", d.what, dst, what)
						}
					}
					all("as it was")
					for i, span := range [][2]int{{0, 1}, {size - 1, size}, {0, min(8, size)}, {max(size-8, 0), size}, {size / 3, size / 2}, {1 % size, size}, {0, size}, {size / 2, size / 2}} {
						lo, hi := span[0], span[1]
						Fill(model[lo:hi], uint64(i), 0)
						r.await(r.put(dst, x.at(lo), uint64(i), hi-lo, bothDone))
						if b := r.read(dst, x.at(lo), hi-lo); Differ(b, model[lo:hi]) >= 0 {
							p.Fatalf("%s of rank %d: %d bytes at %d are not what was put", d.what, dst, hi-lo, lo)
						}
					}
					all("after puts")
					for _, w := range []int{1, 2, 4, 8} {
						first := int(-x.to & segment.NLA(w-1))
						for _, off := range []int{first, first + w, first + (size-first-w)/w*w} {
							if off < 0 || off+w > size {
								continue
							}
							v := p.RNG.Uint64()
							copy(model[off:], nativeWord(v, w))
							r.await(r.putWord(dst, x.at(off), v, w, bothDone))
							if w < 4 {
								continue
							}
							t := conduits.Uint32
							if w == 8 {
								t = conduits.Uint64
							}
							var old [8]byte
							copy(old[:], model[off:off+w])
							was, now := applyAtomic(old, conduits.AtomicXor, t, v>>3&(1<<(8*w)-1), 0)
							if got := r.atomic(dst, x.at(off), conduits.AtomicXor, t, v>>3&(1<<(8*w)-1), 0); got != was {
								p.Fatalf("%s of rank %d: atomic on %d bytes at %d gives %#x, want %#x", d.what, dst, w, off, got, was)
							}
							copy(model[off:off+w], now[:])
						}
					}
					all("after words")
					r.await(r.put(dst, x.at(0), Mix(uint64(p.Rank), uint64(k), 7), size, bothDone))
				}
				p.Meet()
			}
			for k, d := range kinds {
				w := wholes[k]
				if i := Wrong(w[d.lo:d.hi], Mix(uint64(p.Rank), uint64(k), 7), 0); i >= 0 {
					p.Fatalf("%s: byte %d is %#x in memory, and not what was put", d.what, i, w[d.lo+i])
				}
				key := Mix(uint64(p.Rank), uint64(k))
				if Wrong(w[:d.lo], key, 0) >= 0 || Wrong(w[d.hi:], key, d.hi) >= 0 {
					p.Fatalf("%s: memory beside what is registered was changed", d.what)
				}
			}
			r.over()
			for k := range kinds {
				p.unkind(k, wholes[k], xs[p.Rank][k])
			}
		})
	}
}

// area registers size bytes for random operations, of either sort of memory, and
// returns the address of each rank's.
func (p *Peer) area(size int, xs []*extra) func(rank, off int) segment.NLA {
	p.C.Helper()
	mem := OnPage(size + 16)[16:] // words have to be aligned
	if p.Rank%2 == 1 {
		mem = p.mapped(size + 16)[8 : 8+size]
	}
	xs[p.Rank] = p.register(mem, segment.RightsAll, segment.AnyPeer)
	p.Meet()
	return func(rank, off int) segment.NLA { return xs[rank].at(off) }
}

// checkRegisteredRMA is checkRMA on registered memory.
func checkRegisteredRMA(c *Case) {
	for _, n := range sizesOfJobs {
		xs := make([]*extra, n)
		c.Job(n, conduits.Config{}, func(p *Peer) {
			r := newRMA(p)
			p.attach(0, &r.sink)
			r.place = p.area(n*rmaBlocks*rmaBlock, xs)
			r.random(p.RNG, p.Rank*rmaBlocks, rmaBlocks, 40)
			r.over()
		})
	}
}

// checkRegisteredRMAOfThreads is checkRMAOfThreads on registered memory, and other
// memory comes and goes meanwhile.
func checkRegisteredRMAOfThreads(c *Case) {
	const threads = 3
	xs := make([]*extra, 2)
	c.Job(2, conduits.Config{}, func(p *Peer) {
		r := newRMA(p)
		p.attach(segment.PageSize, &r.sink)
		r.place = p.area(2*threads*rmaBlocks*rmaBlock, xs)
		p.Threads(threads+1, func(i int) {
			if i == threads {
				for k := range 40 {
					p.deregister(p.register(make([]byte, 1+k*1000), segment.RightsAll, segment.AnyPeer))
					p.yieldOnce()
				}
				return
			}
			r.random(c.Random(uint64(p.Rank), uint64(i)), (p.Rank*threads+i)*rmaBlocks, rmaBlocks, 40)
		})
		r.over()
	})
}

// checkRegisteredTables puts and gets across the border between two global address
// tables.
func checkRegisteredTables(c *Case) {
	const size = segment.GATSpan + 4*segment.PageSize
	xs := make([]*extra, 2)
	c.Job(2, conduits.Config{}, func(p *Peer) {
		r := newRMA(p)
		p.attach(0, &r.sink)
		var mem []byte
		if p.Rank == 1 {
			mem = p.mapped(size)
			xs[1] = p.register(mem[24:], segment.RightsAll, segment.AnyPeer)
		}
		p.Meet()
		if p.Rank == 0 {
			x := xs[1]
			border := int((x.to+segment.GATSpan)&^(segment.GATSpan-1) - x.to)
			for i, n := range []int{2, 100, 3 * segment.PageSize} {
				for _, off := range []int{border - n/2, border, border - n, size - 24 - n} {
					key := Mix(uint64(i), uint64(off))
					r.await(r.put(1, x.at(off), key, n, bothDone))
					if j := Wrong(r.read(1, x.at(off), n), key, 0); j >= 0 {
						p.Fatalf("%d bytes at %v: byte %d is not what was put", n, x.at(off), j)
					}
				}
			}
			r.await(r.putWord(1, x.at(border-8), 1, 8, bothDone))
			r.atomic(1, x.at(border-8), conduits.AtomicAdd, conduits.Uint64, 2, 0)
			r.await(r.put(1, x.at(border-50), 99, 100, bothDone))
			r.denied("beyond the last table", 1, x.at(size-24-4), 8, false, false, false)
		}
		p.Meet()
		if p.Rank == 1 {
			border := int((xs[1].to+segment.GATSpan)&^(segment.GATSpan-1) - xs[1].to)
			if j := Wrong(xs[1].mem[border-50:border+50], 99, 0); j >= 0 {
				p.Fatalf("byte %d of what was put across the border of two tables is wrong", j)
			}
			p.Must(p.EP.UnmapMemory(mem))
		}
		r.over()
	})
}

// checkRegisteredRights: each region has rights of its own, for all or for one
// rank; the owner has no others.
func checkRegisteredRights(c *Case) {
	const n, slot = 3, 64
	type grant struct {
		rights segment.Rights
		peer   int
		x      *extra
	}
	var grants [n][]*grant
	c.Job(n, conduits.Config{}, func(p *Peer) {
		r := newRMA(p)
		// Rights to the segment are others, and are not asked for.
		r.sink.p = p
		p.Must(p.EP.Attach(conduits.AttachConfig{Size: segment.PageSize, Rights: segment.RightAtomic, Receiver: &r.sink}))
		p.Up()
		p.Meet()
		mem := OnPage(slot * n)
		if p.Rank == 1 {
			mem = p.mapped(slot * n)
		}
		for g := segment.Rights(1); g <= segment.RightsAll; g++ {
			for _, peer := range []int{segment.AnyPeer, 0, 1, 2} {
				grants[p.Rank] = append(grants[p.Rank], &grant{g, peer, p.register(mem, g, peer)})
			}
		}
		p.Meet()
		for dst := range n {
			for _, g := range grants[dst] {
				may := func(need segment.Rights) bool {
					return g.rights&need != 0 && (g.peer == segment.AnyPeer || g.peer == p.Rank)
				}
				for _, k := range []int{4, 8, 13} {
					r.denied(fmt.Sprintf("memory with %v for %d", g.rights, g.peer), dst, g.x.at(slot*p.Rank), k,
						may(segment.RightWrite), may(segment.RightRead), may(segment.RightAtomic))
				}
			}
		}
		r.over()
	})
}

// checkRegisteredBounds: no byte beside what is registered is reached, although
// registration is by pages.
func checkRegisteredBounds(c *Case) {
	const n = 2
	var xs [n][]*extra
	c.Job(n, conduits.Config{}, func(p *Peer) {
		r := newRMA(p)
		p.attach(segment.PageSize, &r.sink)
		wholes := make([][]byte, len(kinds))
		for k := range kinds {
			var x *extra
			wholes[k], x = p.kind(k, segment.RightsAll, segment.AnyPeer)
			xs[p.Rank] = append(xs[p.Rank], x)
		}
		// Neighbours in memory, and perhaps in addresses, which are apart all the same.
		left := p.register(wholes[2][:5], segment.RightRead, segment.AnyPeer)
		p.Meet()
		for dst := range n {
			for k, d := range kinds {
				x, size := xs[dst][k], d.hi-d.lo
				try := func(what string, off, n int) {
					p.C.Helper()
					r.denied(fmt.Sprintf("%s, %s", d.what, what), dst, x.at(off), n, false, false, false)
				}
				for _, n := range []int{1, 2, 4, 8, 100} {
					if d.hi%segment.PageSize+n <= segment.PageSize && d.hi%segment.PageSize != 0 {
						try("behind the end", size, n)
					}
					if d.lo%segment.PageSize >= n {
						try("before the beginning", -n, n)
					}
				}
				if d.hi%segment.PageSize != 0 { // else the next page may be another region's
					try("across the end", size-1, 2)
					try("across the end by a byte", 0, size+1)
					try("across the end by much", size/2, size+3*segment.PageSize)
				}
				if d.lo%segment.PageSize != 0 {
					try("across the beginning", -1, 2)
					try("across both ends", -1, size+2)
				}
			}
		}
		r.over()
		p.Meet()
		for k, d := range kinds {
			key := Mix(uint64(p.Rank), uint64(k))
			w := wholes[k]
			if Wrong(w[:d.lo], key, 0) >= 0 || Wrong(w[d.hi:], key, d.hi) >= 0 {
				p.Fatalf("%s: memory beside what is registered was changed", d.what)
			}
		}
		p.deregister(left)
		for k := range kinds {
			p.unkind(k, wholes[k], xs[p.Rank][k])
		}
	})
}

// deniedAtOnce tries accesses at once where they must not be.
func (r *rma) deniedAtOnce(what string, dst int, to segment.NLA, n int, put, get, atomic bool) {
	r.C.Helper()
	x := r.EP
	if !conduits.Registered(r.EP.SegmentSize(dst), to, uint64(n)) {
		return
	}
	b := Fill(make([]byte, n), 78, 0)
	if !put && (post.PutNow(x, dst, to, b) || post.PutWordNow(x, dst, to, 0x78, n)) {
		r.Fatalf("put at once of %d bytes at %v, %s", n, to, what)
	}
	word := false
	if !get {
		_, word = post.GetWordNow(x, dst, to, n)
	}
	if !get && (word || post.GetNow(x, b, dst, to) || Wrong(b, 78, 0) >= 0) {
		r.Fatalf("get at once of %d bytes at %v, %s", n, to, what)
	}
	if !atomic && n == 8 {
		if _, done := post.AtomicNow(x, dst, to, conduits.AtomicAdd, conduits.Uint64, 1, 0); done {
			r.Fatalf("atomic at once at %v, %s", to, what)
		}
	}
}

// bothKinds attaches, and registers size bytes of private memory and as many of the conduit's.
// When it returns all ranks have.
func (p *Peer) bothKinds(size int, xs *[2]*extra) *rma {
	p.C.Helper()
	r := newRMA(p)
	p.attach(segment.PageSize, &r.sink)
	for k, mem := range [2][]byte{OnPage(size), p.mapped(size)} {
		xs[k] = p.register(mem[:size], segment.RightsAll, segment.AnyPeer)
	}
	p.Meet()
	return r
}

// checkAtOnce: an access that has been made at once (Access.Now) is as if it had been made
// otherwise, which the others are.
func checkAtOnce(c *Case) {
	const n, size, counters = 2, 3 * segment.PageSize, 64
	var xs [n][2]*extra
	c.Job(n, conduits.Config{}, func(p *Peer) {
		r := p.bothKinds(size, &xs[p.Rank])
		once := p.EP
		rng := c.Random(uint64(p.Rank))
		model := [n][2][]byte{}
		added := [n][2]uint64{}
		// Each rank has its half of a region behind the counters, and all have those.
		half := (size - counters) / n
		from := counters + p.Rank*half
		for dst := range n {
			for k := range 2 {
				model[dst][k] = make([]byte, half)
			}
		}
		for step := range 200 {
			dst, k := rng.IntN(n), rng.IntN(2)
			x, m := xs[dst][k], model[dst][k]
			length := 1 + rng.IntN(16)
			if step%10 == 0 {
				length = 1 + rng.IntN(half)
			}
			off := rng.IntN(half - length + 1)
			at, word := x.at(from+off), 1<<rng.IntN(4)
			wordOff := off / word * word % (half / word * word)
			wordAt, wordMem := x.at(from+wordOff), m[wordOff:][:word]
			b := make([]byte, length)
			switch rng.IntN(5) {
			case 0:
				Fill(b, uint64(step), 0)
				if !post.PutNow(once, dst, at, b) {
					p.Must(r.tryPut(dst, at, b))
				}
				copy(m[off:], b)
			case 1:
				if !post.GetNow(once, b, dst, at) {
					p.Must(r.tryGet(b, dst, at))
				}
				if !bytes.Equal(b, m[off:off+length]) {
					p.Fatalf("step %d: get of %d bytes at %d of rank %d: %x, want %x", step, length, off, dst, b, m[off:off+length])
				}
			case 2:
				v := rng.Uint64()
				if !post.PutWordNow(once, dst, wordAt, v, word) {
					p.Must(r.tryWord(dst, wordAt, v, word))
				}
				for i := range wordMem {
					wordMem[i] = byte(v >> (8 * i))
				}
			case 3:
				if v, done := post.GetWordNow(once, dst, wordAt, word); done {
					for i := range wordMem {
						if byte(v>>(8*i)) != wordMem[i] {
							p.Fatalf("step %d: word of %d bytes at %d of rank %d: %#x, want %x", step, word, wordOff, dst, v, wordMem)
						}
					}
				}
			default:
				if _, done := post.AtomicNow(once, dst, x.at(0), conduits.AtomicAdd, conduits.Uint64, 3, 0); !done {
					_, err := r.tryAdd(dst, x.at(0), 3)
					p.Must(err)
				}
				added[dst][k] += 3
			}
		}
		r.over()
		for dst := range n {
			for k := range 2 {
				_, err := r.tryAdd(dst, xs[dst][k].at(8), added[dst][k])
				p.Must(err)
			}
		}
		p.Meet()
		for k := range 2 {
			if mem := xs[p.Rank][k].mem; binary.LittleEndian.Uint64(mem) != binary.LittleEndian.Uint64(mem[8:]) {
				p.Fatalf("region %d has counted to %d, want %d", k, binary.LittleEndian.Uint64(mem), binary.LittleEndian.Uint64(mem[8:]))
			}
			p.deregister(xs[p.Rank][k])
		}
		p.Meet()
		for k := range 2 {
			r.deniedAtOnce("what has been deregistered", 1-p.Rank, xs[1-p.Rank][k].at(from/8*8), 8, false, false, false)
		}
		p.Meet()
	})
}

// checkRegisteredAgain: the same memory may be registered more than once and in
// parts; each registration ends by itself.
func checkRegisteredAgain(c *Case) {
	const n, size = 2, 3 * segment.PageSize
	spans := [][2]int{{0, size}, {0, size}, {100, 5000}, {4000, size}, {5000, 5001}, {segment.PageSize, 2 * segment.PageSize}}
	var xs [n][]*extra
	var dead [n][]atomic.Bool
	c.Job(n, conduits.Config{}, func(p *Peer) {
		r := newRMA(p)
		p.attach(0, &r.sink)
		mem := OnPage(size)
		if p.Rank == 1 {
			mem = p.mapped(size)
		}
		for _, s := range spans {
			xs[p.Rank] = append(xs[p.Rank], p.register(mem[s[0]:s[1]], segment.RightsAll, segment.AnyPeer))
		}
		dead[p.Rank] = make([]atomic.Bool, len(spans))
		p.Meet()
		dst := 1 - p.Rank
		for i := range spans {
			for k, s := range spans {
				x := xs[dst][k]
				at := max(s[0], 5000) // a byte that all but one have
				if at >= s[1] {
					at = s[0]
				}
				if dead[dst][k].Load() {
					r.denied("deregistered", dst, x.at(at-s[0]), 1, false, false, false)
					continue
				}
				r.await(r.putWord(dst, x.at(at-s[0]), uint64(10*i+k), 1, bothDone))
				for l, t := range spans { // by all the others
					if !dead[dst][l].Load() && t[0] <= at && at < t[1] {
						if b := r.read(dst, xs[dst][l].at(at-t[0]), 1); b[0] != byte(10*i+k) {
							p.Fatalf("byte %d, put by registration %d, is %d by registration %d, want %d", at, k, b[0], l, 10*i+k)
						}
					}
				}
			}
			p.Meet()
			k := (i*5 + 2) % len(spans)
			p.deregister(xs[p.Rank][k])
			dead[p.Rank][k].Store(true)
			p.Meet()
		}
		for k := range spans {
			r.denied("deregistered", dst, xs[dst][k].at(0), 1, false, false, false)
		}
		t, err := p.EP.ATU()
		p.Must(err)
		var s segment.ATUStats
		if t.Stats(&s); s.Regions != 0 || s.Bytes != 0 {
			p.Fatalf("nothing is registered any more, and the unit says %d regions, %d bytes", s.Regions, s.Bytes)
		}
		r.over()
	})
}

// checkRegisteredCounter has all ranks, the owner too, count in words of registered
// memory by two registrations: each value is drawn once. Then by one that is for
// itself alone, so that other atomics than those of one conduit's path meet.
func checkRegisteredCounter(c *Case) {
	for _, n := range []int{1, 2, 5} {
		for _, mapped := range []bool{false, true} {
			each := 600 / n
			drawn := make([]atomic.Bool, n*each)
			var xs [2]*extra
			c.Job(n, conduits.Config{}, func(p *Peer) {
				r := newRMA(p)
				p.attach(0, &r.sink)
				var mem []byte
				if p.Rank == n-1 {
					mem = OnPage(64)
					if mapped {
						mem = p.mapped(64)
					}
					xs[0] = p.register(mem[8:24], segment.RightAtomic, segment.AnyPeer)
					xs[1] = p.register(mem[:64], segment.RightsAll, segment.AnyPeer)
				}
				p.Meet()
				for i := range each {
					x, off := xs[i%2], 0
					if i%2 == 1 {
						off = 8
					}
					v := r.atomic(n-1, x.at(off), conduits.AtomicAdd, conduits.Uint64, 1, 0)
					if v >= uint64(len(drawn)) || drawn[v].Swap(true) {
						p.Fatalf("the counter gave %d twice, or beyond %d", v, len(drawn))
					}
					r.atomic(n-1, x.at(off+8), conduits.AtomicMax, conduits.Int32, uint64(i), 0)
				}
				r.over()
				if p.Rank == n-1 {
					if v := binary.NativeEndian.Uint64(mem[8:]); v != uint64(len(drawn)) {
						p.Fatalf("the counter ends at %d, want %d", v, len(drawn))
					}
					if v := binary.NativeEndian.Uint32(mem[16:]); v != uint32(each-1) {
						p.Fatalf("the maximum is %d, want %d", v, each-1)
					}
				}
				p.Meet()
			})
		}
	}
}

// checkRegisteredMessages: messages with data for registered memory come with that
// memory, and the data in it.
func checkRegisteredMessages(c *Case) {
	const rounds, room = 60, 3 * segment.PageSize
	for _, n := range []int{1, 2, 3} {
		xs := make([]*extra, n)
		c.Job(n, conduits.Config{}, func(p *Peer) {
			r := newRMA(p)
			got := 0
			r.sink.beyond = func(a segment.NLA, n int) []byte { return xs[p.Rank].bytes(a, n) }
			r.sink.receive = func(m *conduits.Message) {
				if len(m.Words) != 3 || m.Words[0] > rounds || m.Words[1] != uint32(len(m.Payload)) {
					p.Errorf("a message that was not sent: words %v, %d bytes", m.Words, len(m.Payload))
					return
				}
				if m.Words[1] > 0 && m.To != xs[p.Rank].at(int(m.Words[2])) {
					p.Errorf("a message with data at %v, want %v", m.To, xs[p.Rank].at(int(m.Words[2])))
				}
				if i := Wrong(m.Payload, Mix(uint64(m.Src), uint64(m.Words[0])), 0); i >= 0 {
					p.Errorf("message %d of rank %d: byte %d of %d is %#x", m.Words[0], m.Src, i, len(m.Payload), m.Payload[i])
				}
				got++
			}
			p.attach(segment.PageSize, &r.sink)
			p.area(n*room, xs)
			dst := (p.Rank + 1) % n
			for i := range rounds {
				size := p.RNG.IntN(room)
				if i%4 == 0 {
					size = i / 4
				}
				off := p.Rank*room + p.RNG.IntN(room-size)
				r.long(dst, xs[dst].at(off), []uint32{uint32(i), uint32(size), uint32(off)}, Fill(make([]byte, size), Mix(uint64(p.Rank), uint64(i)), 0))
				// The next may fall on the same bytes.
				p.Wait("a message", func() bool { return got == i+1 })
				p.Meet()
			}
			r.over()
		})
	}
}

// checkRefusedMessages: a message whose data is refused is not delivered; its
// source is said to be reusable, its credit comes back, it is counted, and those
// before and after it arrive.
func checkRefusedMessages(c *Case) {
	const n = 2
	var x, ro, dead *extra
	var faults [n]atomic.Uint64
	var bad atomic.Uint64
	c.Job(n, Small, func(p *Peer) {
		r := newRMA(p)
		good, last := uint32(0), false
		r.sink.beyond = func(a segment.NLA, n int) []byte { return x.bytes(a, n) }
		r.sink.receive = func(m *conduits.Message) {
			switch {
			case len(m.Words) == 1 && m.Words[0] == 7 && m.To != 0 && Wrong(m.Payload, 5, 0) < 0:
				good++
			case len(m.Words) == 0:
				last = true
			default:
				p.Errorf("a message that was to be refused: words %v, %d bytes at %v", m.Words, len(m.Payload), m.To)
			}
		}
		p.attach(segment.PageSize, &r.sink)
		mem := Fill(OnPage(2*segment.PageSize), 1, 0)
		if p.Rank == 1 {
			x = p.register(mem[8:1000], segment.RightsAll, segment.AnyPeer)
			ro = p.register(mem[2000:5000], segment.RightRead|segment.RightAtomic, segment.AnyPeer)
			dead = p.register(mem[2000:5000], segment.RightsAll, segment.AnyPeer)
			p.deregister(dead)
		}
		p.Meet()
		rounds := 3*p.EP.Limits().Credits + 5
		if p.Rank == 0 {
			b := Fill(make([]byte, 64), 6, 0)
			g := Fill(make([]byte, 64), 5, 0)
			for i := range min(rounds, 400) {
				for _, to := range []segment.NLA{ro.at(0), dead.at(100), x.at(992 - 63), x.at(-8), segment.GATSpan - segment.PageSize + 8, segment.NLALimit - segment.PageSize/2} {
					if i%3 == 0 || to == dead.at(100) {
						r.long(1, to, []uint32{9}, b)
						bad.Add(1)
					}
				}
				r.long(1, x.at(64*(i%8)), []uint32{7}, g)
			}
			p.reserve(func() conduits.Status { return p.EP.Send(1, conduits.Request, 0, nil) })
		} else {
			p.Wait("the messages that are good", func() bool { return good == uint32(min(rounds, 400)) && last })
		}
		p.Meet()
		count := func() uint64 {
			var s conduits.Stats
			p.EP.Stats(&s)
			if faults[p.Rank].Swap(s.Faults) != s.Faults {
				p.nudge(1 - p.Rank)
			}
			return faults[0].Load() + faults[1].Load()
		}
		p.Wait("the last refusals to be counted", func() bool { return count() >= bad.Load() })
		p.Meet()
		p.linger()
		if sum := count(); sum != bad.Load() {
			p.Fatalf("%d messages were refused; initiator and target count %d and %d", bad.Load(), faults[0].Load(), faults[1].Load())
		}
		p.Meet()
		if p.Rank == 1 && (Wrong(mem[2000:], 1, 2000) >= 0 || Wrong(mem[1000:2000], 1, 1000) >= 0 || Wrong(mem[:8], 1, 0) >= 0) {
			p.Fatalf("the data of a message that was refused has been put")
		}
		p.Meet()
		r.over()
	})
}

// checkFaultsAmidTraffic: what is refused disturbs nothing else: other operations
// of the same rank, those of others, and messages.
func checkFaultsAmidTraffic(c *Case) {
	const n, each, size = 3, 120, 512
	xs, dead := make([]*extra, n), make([]*extra, n)
	c.Job(n, conduits.Config{}, func(p *Peer) {
		r := newRMA(p)
		came := 0
		r.sink.receive = func(m *conduits.Message) {
			if len(m.Payload) != 100 || Wrong(m.Payload, uint64(m.Src), 0) >= 0 {
				p.Errorf("a message that was not sent: %d bytes from rank %d", len(m.Payload), m.Src)
			}
			came++
		}
		p.attach(segment.PageSize, &r.sink)
		mem := OnPage(n*size + 5)
		if p.Rank == 1 {
			mem = p.mapped(n*size + 5)[:n*size+5]
		}
		xs[p.Rank] = p.register(mem, segment.RightsAll, segment.AnyPeer)
		dead[p.Rank] = p.register(mem, segment.RightsAll, segment.AnyPeer)
		p.deregister(dead[p.Rank])
		p.Meet()
		mine := p.Rank * size
		model := make([][]byte, n)
		for dst := range n {
			model[dst] = make([]byte, size)
			r.await(r.put(dst, xs[dst].at(mine), 0, size, bothDone))
			Fill(model[dst], 0, 0)
		}
		for i := range each {
			var ops []*op
			dst := p.RNG.IntN(n)
			for k := range 4 { // under way together with those that are refused
				key := Mix(uint64(i), uint64(k))
				off, d := k*100, (dst+k)%n
				Fill(model[d][off:off+100], key, 0)
				ops = append(ops, r.put(d, xs[d].at(mine+off), key, 100, bothDone))
			}
			bad := []segment.NLA{dead[dst].at(mine), xs[dst].at(n*size + 5), xs[dst].at(n*size - 2), 2 * segment.PageSize * 1000, segment.NLALimit - 64}[p.RNG.IntN(5)]
			var err error
			what := p.RNG.IntN(4)
			switch what {
			case 0:
				err = r.tryPut(dst, bad, make([]byte, 64))
			case 1:
				err = r.tryGet(make([]byte, 64), dst, bad)
			case 2:
				// 8 aligned bytes at the end are good ones, of the last rank.
				good := bad == xs[dst].at(n*size-2)
				if good && p.Rank < n-1 {
					bad, good = dead[dst].at(mine), false
				}
				if err = r.tryWord(dst, bad&^7, 1, 8); good && err == nil {
					err = segment.ErrFault
				}
			case 3:
				if bad == xs[dst].at(n*size-2) || bad == xs[dst].at(n*size+5) {
					bad = dead[dst].at(mine)
				}
				_, err = r.tryAdd(dst, bad&^7, 1)
			}
			if err == nil {
				p.Fatalf("operation %d at %v of rank %d, where nothing is registered, is not refused", what, bad, dst)
			}
			if !strings.Contains(err.Error(), fmt.Sprintf("rank %d", dst)) && what != 2 {
				p.Fatalf("the refusal %q does not name rank %d", err, dst)
			}
			p.reserve(func() conduits.Status {
				return p.EP.SendPayload((p.Rank+1)%n, conduits.Request, 1, nil, Fill(make([]byte, 100), uint64(p.Rank), 0), 0)
			})
			for _, o := range ops {
				r.await(o)
			}
			d := p.RNG.IntN(n)
			// The word that case 2 may have put is at the end of the last rank's.
			if b := r.read(d, xs[d].at(mine), 400); Differ(b, model[d][:400]) >= 0 {
				p.Fatalf("byte %d of rank %d is not what was put", Differ(b, model[d][:400]), d)
			}
		}
		p.Wait("the messages", func() bool { return came == each })
		r.over()
	})
}

// hammer has ranks other than 0 do operations of all kinds on memory of rank 0
// whose address changes, until stop. good counts what was done, by rank, and seen
// is the last address that was refused.
type hammer struct {
	to   atomic.Uint64 // NLA of 64 bytes for each thread that swings; 0: none now
	stop atomic.Bool
	good [4]atomic.Int64
	seen [4]atomic.Uint64
}

// swing does so as rank i in 64 bytes that no other thread uses, those of the given
// index, beginning with operation first.
func (h *hammer) swing(r *rma, i, index, first int) {
	b := make([]byte, 40)
	for k := first; !h.stop.Load(); k++ {
		a := segment.NLA(h.to.Load())
		if a == 0 || uint64(a) == h.seen[i].Load() {
			r.EP.Poll()
			r.yieldOnce()
			r.Must(r.EP.Err())
			continue
		}
		mine := a + segment.NLA(64*index)
		Fill(b, Mix(uint64(k), uint64(i))|1, 0)
		b[0] |= 1
		var err error
		switch k % 6 {
		case 0:
			err = r.tryPut(0, mine, b)
		case 1:
			err = r.tryGet(b, 0, mine)
		case 2:
			err = r.tryWord(0, mine+40, 0x0101010101010101, 8)
		case 3:
			_, err = r.tryAdd(0, mine+48, 1)
		case 4:
			// Without a completion its end is not known, if the memory is
			// taken away before.
			_, err = r.attempt(conduits.SourceDone, func(c uint64) (uint64, conduits.Event, error) {
				ev, err := post.Put(r.EP, 0, mine+56, b[:8], conduits.SourceDone, c)
				return 0, ev, err
			})
		case 5:
			r.long(0, mine+8, nil, b[:16])
		}
		if err != nil {
			h.seen[i].Store(uint64(a))
		} else {
			h.good[i].Add(1)
		}
		r.nudge(0)
		r.step()
	}
}

// busy waits until all have done more operations.
func (h *hammer) busy(p *Peer, n int) {
	var was [4]int64
	for i := 1; i < n; i++ {
		was[i] = h.good[i].Load()
	}
	p.Wait("the others' operations", func() bool {
		for i := 1; i < n; i++ {
			if h.good[i].Load() < was[i]+4 {
				return false
			}
		}
		return true
	})
}

// refused waits until all have been refused at a.
func (h *hammer) refused(p *Peer, n int, a segment.NLA) {
	p.Wait("the others' refusals", func() bool {
		for i := 1; i < n; i++ {
			if h.seen[i].Load() != uint64(a) {
				return false
			}
		}
		return true
	})
}

// checkDeregister takes memory back that others hammer at. When Deregister has
// returned nothing is written to it any more, whatever it is used for then, and every
// later operation is refused.
func checkDeregister(c *Case) {
	const n, rounds, size = 3, 30, 64 * 2 * 3
	for _, threads := range []int{1, 2} {
		var h hammer
		c.Job(n, conduits.Config{}, func(p *Peer) {
			r := newRMA(p)
			r.sink.receive = func(m *conduits.Message) { p.step() }
			// The memory that messages bring is not looked at.
			r.sink.beyond = func(segment.NLA, int) []byte { return nil }
			r.sink.p = p
			p.Must(p.EP.Attach(conduits.AttachConfig{Receiver: hammered{&r.sink}}))
			p.Up()
			p.Meet()
			if p.Rank > 0 {
				p.Threads(threads, func(i int) {
					h.swing(r, p.Rank, 2*p.Rank+i, 3*i)
				})
				p.Meet()
				return
			}
			zero := make([]byte, size)
			mapped := p.mapped(size + 100)
			for round := range rounds {
				mem := make([]byte, size+8*round)[8*round:] // across pages or not
				if round%3 == 1 {
					mem = mapped[8*(round%5):][:size]
				}
				x := p.register(mem, segment.RightsAll, segment.AnyPeer)
				h.to.Store(uint64(x.to))
				h.wake(p)
				h.busy(p, n)
				p.deregister(x)
				clear(mem)
				h.refused(p, n, x.to)
				p.linger()
				if i := Differ(mem, zero); i >= 0 {
					p.Fatalf("round %d: byte %d was written after Deregister had returned", round, i)
				}
			}
			h.stop.Store(true)
			h.wake(p)
			p.Meet()
		})
		if c.Failed() {
			return
		}
	}
}

// wake has all ranks look.
func (h *hammer) wake(p *Peer) {
	for rank := range p.Size {
		p.nudge(rank)
	}
}

// hammered is a Receiver that looks at no payload.
type hammered struct{ *sink }

// Receive takes a message whose memory comes and goes.
func (h hammered) Receive(*conduits.Message) { h.p.step() }

// checkUnmap unmaps memory that others hammer at, without a word about what is
// registered of it.
func checkUnmap(c *Case) {
	const n, rounds, size = 3, 15, 64 * 3
	var h hammer
	c.Job(n, conduits.Config{}, func(p *Peer) {
		r := newRMA(p)
		r.sink.p = p
		p.Must(p.EP.Attach(conduits.AttachConfig{Receiver: hammered{&r.sink}}))
		p.Up()
		p.Meet()
		if p.Rank > 0 {
			h.swing(r, p.Rank, p.Rank, p.Rank)
			p.Meet()
			return
		}
		for round := range rounds {
			mem := p.mapped(3 * segment.PageSize)
			off := []int{0, 4000, 4096, 8192, 1000}[round%5]
			x := p.register(mem[off:off+size], segment.RightsAll, segment.AnyPeer)
			y := p.register(mem, segment.RightRead, 1)
			h.to.Store(uint64(x.to))
			h.wake(p)
			h.busy(p, n)
			p.Must(p.EP.UnmapMemory(mem))
			again := p.mapped(3 * segment.PageSize) // most often at the same place
			h.refused(p, n, x.to)
			for i, b := range again {
				if b != 0 {
					p.Fatalf("round %d: byte %d was written to memory that was never registered", round, i)
				}
			}
			p.deregister(x)
			p.deregister(y)
			p.Must(p.EP.UnmapMemory(again))
		}
		h.stop.Store(true)
		h.wake(p)
		p.Meet()
	})
}

// checkRegisteredAtEnd: Close takes all registrations back, and leaves mapped
// memory; others go on.
func checkRegisteredAtEnd(c *Case) {
	const n = 3
	var xs [n]*extra
	var through atomic.Int32
	c.Job(n, conduits.Config{}, func(p *Peer) {
		r := newRMA(p)
		p.attach(0, &r.sink)
		mem := Fill(p.mapped(2*segment.PageSize), 3, 0)
		xs[p.Rank] = p.register(mem[8:5000], segment.RightsAll, segment.AnyPeer)
		own := p.register(make([]byte, 100), segment.RightsAll, segment.AnyPeer)
		t, err := p.EP.ATU()
		p.Must(err)
		p.Meet()
		r.await(r.put((p.Rank+1)%n, xs[(p.Rank+1)%n].at(0), 4, 100, bothDone))
		p.Meet()
		if p.Rank == 1 {
			p.Must(p.EP.Close())
			if Wrong(mem[8:108], 4, 0) >= 0 || Wrong(mem[108:], 3, 108) >= 0 {
				p.Fatalf("Close has changed memory")
			}
			Spoil(mem)
			for what, f := range map[string]func() error{
				"Register": func() error {
					_, err := t.Register(mem, segment.RightsAll, segment.AnyPeer)
					return err
				},
				"Put": func() error { _, err := post.Put(p.EP, 1, xs[1].to, mem[:8], bothDone, 1); return err },
				"Get": func() error { _, err := post.Get(p.EP, mem[:8], 0, xs[0].to, bothDone, 1); return err },
				"Atomic": func() error {
					_, _, err := post.Atomic(p.EP, 0, xs[0].to, conduits.AtomicAdd, conduits.Uint64, 1, 0, 1)
					return err
				},
			} {
				if err := f(); !errors.Is(err, conduits.ErrClosed) {
					p.Fatalf("%s after Close: error %v, want one that wraps %q", what, err, conduits.ErrClosed)
				}
			}
			p.Must(t.Deregister(own.r))
			p.Must(p.EP.UnmapMemory(mem))
			return
		}
		other := 2 - p.Rank
		for i := range 20 {
			r.await(r.put(other, xs[other].at(0), uint64(i), 100, bothDone))
			if Wrong(r.read(other, xs[other].at(0), 100), uint64(i), 0) >= 0 {
				p.Fatalf("what was put after another rank has left is not there")
			}
		}
		through.Add(1)
		p.nudge(other)
		p.Wait("the other rank that is left", func() bool { return through.Load() == 2 })
	})
}
