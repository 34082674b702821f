package contract

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/post"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/segment"
)

var rmaChecks = []Check{
	{Name: "rma sizes", Run: checkRMASizes},
	{Name: "rma", Seeded: true, Run: checkRMA},
	{Name: "rma of threads", Seeded: true, Run: checkRMAOfThreads},
	{Name: "rma outside", Run: checkRMAOutside},
	{Name: "rights", Run: checkRights},
	{Name: "atomics", Run: checkAtomics},
	{Name: "shared counter", Run: checkCounter},
	{Name: "whole words", Run: checkWholeWords, skip: func(*Offer) string {
		if conc.Race {
			return "the race detector reports what it is about"
		}
		return ""
	}},
	{Name: "put then message", Run: checkPutThenMessage},
	{Name: "fence", Run: checkFence, skip: func(o *Offer) string {
		switch {
		case conc.Race:
			return "the race detector reports what it is about"
		case !o.Direct:
			return "no direct access"
		case o.Runner:
			return "its ranks run one at a time"
		}
		return ""
	}},
}

const bothDone = conduits.SourceDone | conduits.RemoteDone

// op is an RMA operation under way.
type op struct {
	want conduits.Event // completions asked for and not reported yet
	src  []byte         // of a put: kept as it is until SourceDone
	key  uint64         // of what fills src
	val  uint64         // an atomic's result

	mayFail bool  // the target may refuse it
	err     error // it has
}

// rma keeps a rank's operations and checks that each completion that was asked
// for comes once, with its cookie, and no other. Goroutines share it.
type rma struct {
	*Peer
	sink sink

	puts, gets, atomics atomic.Int64
	errors              atomic.Int64 // operations that were refused

	// place is the address of byte off of rank's memory that random operations are
	// on; nil: of its segment.
	place func(rank, off int) segment.NLA

	mu   sync.Mutex // held for a moment only
	last uint64
	ops  map[uint64]*op
}

func (r *rma) at(rank, off int) segment.NLA {
	if r.place != nil {
		return r.place(rank, off)
	}
	return At(off)
}

func newRMA(p *Peer) *rma {
	r := &rma{Peer: p, ops: map[uint64]*op{}}
	r.sink.complete = r.complete
	return r
}

// begin registers an operation.
func (r *rma) begin(want conduits.Event) (*op, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	o, cookie := &op{want: want}, Mix(r.last, uint64(r.Rank))
	r.ops[cookie] = o
	return o, cookie
}

// done takes note of completions.
func (r *rma) done(cookie uint64, ev conduits.Event, returned bool, value uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.ops[cookie]
	switch {
	case ev&^bothDone != 0 || ev == 0 && !returned:
		r.Errorf("completion %#x", ev)
	case o == nil:
		r.Errorf("completion %#x of cookie %#x, which no operation has", ev, cookie)
		return
	case !returned && ev&^o.want != 0:
		r.Errorf("completion %#x of cookie %#x was not asked for, or came before: wanted %#x", ev, cookie, o.want)
	}
	o.want &^= ev
	if ev&conduits.RemoteDone != 0 {
		o.val = value
	}
	if ev&conduits.SourceDone != 0 && o.src != nil {
		if Wrong(o.src, o.key, 0) >= 0 {
			r.Errorf("the source of a put was changed")
		}
		Spoil(o.src)
		o.src = nil
	}
}

// refused forgets an operation that could not be.
func (r *rma) refused(cookie uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ops, cookie)
	r.errors.Add(1)
}

func (r *rma) complete(cookie uint64, ev conduits.Event, value uint64, err error) {
	if err != nil && !r.failed(cookie, err) && !r.C.Failed() {
		r.Errorf("completion %#x of cookie %#x: %v", ev, cookie, err)
	}
	r.done(cookie, ev, false, value)
}

// failed takes note of an operation's error, and reports whether it may have one.
func (r *rma) failed(cookie uint64, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.ops[cookie]
	if o == nil || !o.mayFail || !errors.Is(err, segment.ErrFault) {
		return false
	}
	o.err = err
	return true
}

// pending reports whether o lacks any of ev.
func (r *rma) pending(o *op, ev conduits.Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return o.want&ev != 0
}

// await waits for all completions of o that were asked for.
func (r *rma) await(o *op) {
	r.C.Helper()
	if r.pending(o, bothDone) {
		r.Wait("completions", func() bool { return !r.pending(o, bothDone) })
	}
}

// put begins a put of n bytes that key determines.
func (r *rma) put(dst int, to segment.NLA, key uint64, n int, want conduits.Event) *op {
	r.C.Helper()
	o, cookie := r.begin(want)
	src := Fill(make([]byte, n), key, 0)
	if want&conduits.SourceDone != 0 {
		o.src, o.key = src, key // else it is never said to be reusable
	}
	r.puts.Add(1)
	ev, err := post.Put(r.EP, dst, to, src, want, cookie)
	r.Must(err)
	r.done(cookie, ev, true, 0)
	return o
}

// putBytes puts b, which stays as it is.
func (r *rma) putBytes(dst int, to segment.NLA, b []byte) *op {
	r.C.Helper()
	o, cookie := r.begin(bothDone)
	r.puts.Add(1)
	ev, err := post.Put(r.EP, dst, to, b, bothDone, cookie)
	r.Must(err)
	r.done(cookie, ev, true, 0)
	return o
}

func (r *rma) putWord(dst int, to segment.NLA, v uint64, n int, want conduits.Event) *op {
	r.C.Helper()
	o, cookie := r.begin(want)
	r.puts.Add(1)
	ev, err := post.PutWord(r.EP, dst, to, v, n, want, cookie)
	r.Must(err)
	r.done(cookie, ev, true, 0)
	return o
}

func (r *rma) get(b []byte, src int, from segment.NLA, want conduits.Event) *op {
	r.C.Helper()
	o, cookie := r.begin(want)
	r.gets.Add(1)
	ev, err := post.Get(r.EP, b, src, from, want, cookie)
	r.Must(err)
	r.done(cookie, ev, true, 0)
	return o
}

// read gets n bytes and waits for them.
func (r *rma) read(src int, from segment.NLA, n int) []byte {
	r.C.Helper()
	b := make([]byte, n)
	r.await(r.get(b, src, from, conduits.RemoteDone))
	return b
}

// beginAtomic begins an atomic, whose result op.val will be.
func (r *rma) beginAtomic(dst int, to segment.NLA, o conduits.AtomicOp, t conduits.AtomicType, a, b uint64) *op {
	r.C.Helper()
	w, cookie := r.begin(conduits.RemoteDone)
	r.atomics.Add(1)
	v, ev, err := post.Atomic(r.EP, dst, to, o, t, a, b, cookie)
	r.Must(err)
	r.done(cookie, ev, true, v)
	return w
}

// atomic performs an atomic and waits for its result.
func (r *rma) atomic(dst int, to segment.NLA, o conduits.AtomicOp, t conduits.AtomicType, a, b uint64) uint64 {
	r.C.Helper()
	w := r.beginAtomic(dst, to, o, t, a, b)
	r.await(w)
	return w.val
}

// over checks that nothing comes any more, and that the statistics count what
// was done; what was refused may be counted or not.
func (r *rma) over() {
	r.C.Helper()
	r.Meet()
	r.linger()
	s := addsUp(r.Peer)
	all := r.puts.Load() + r.gets.Load() + r.atomics.Load() + r.errors.Load()
	if s.Puts < uint64(r.puts.Load()) || s.Gets < uint64(r.gets.Load()) || s.Atomics < uint64(r.atomics.Load()) ||
		s.Puts+s.Gets+s.Atomics > uint64(all) {
		r.Fatalf("statistics: %d puts, %d gets, %d atomics; really %d, %d, %d, and %d that were refused", s.Puts, s.Gets, s.Atomics,
			r.puts.Load(), r.gets.Load(), r.atomics.Load(), r.errors.Load())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for cookie, o := range r.ops {
		if o.want != 0 {
			r.Fatalf("completion %#x of cookie %#x has not come", o.want, cookie)
		}
	}
}

// checkRMASizes puts and gets every small size at every alignment, and a few
// large ones, and leaves untouched what lies beside.
func checkRMASizes(c *Case) {
	const room = 200 << 10
	for _, n := range []int{1, 2} {
		c.Job(n, conduits.Config{}, func(p *Peer) {
			r := newRMA(p)
			p.attach(room, &r.sink)
			peer := (p.Rank + 1) % n
			key, model := uint64(0), Fill(make([]byte, room), 1, 0)
			r.await(r.put(peer, At(0), 1, room, bothDone))
			try := func(off, size int) {
				key++
				Fill(model[off:off+size], key, 0)
				r.await(r.put(peer, At(off), key, size, bothDone))
				lo, hi := max(off-9, 0), min(off+size+9, room)
				b := make([]byte, hi-lo+7)
				Spoil(b)
				copy(b[hi-lo:], "outside")
				r.await(r.get(b[:hi-lo:hi-lo], peer, At(lo), bothDone))
				if i := Differ(b[:hi-lo], model[lo:hi]); i >= 0 {
					p.Fatalf("put and get of %d bytes at %d: byte %d is %#x, want %#x", size, off, lo+i, b[i], model[lo+i])
				}
				if string(b[hi-lo:]) != "outside" {
					p.Fatalf("get of %d bytes wrote beyond them", hi-lo)
				}
			}
			for off := range 9 {
				for size := range 20 {
					try(off+16, size)
				}
			}
			for _, size := range Sizes(0, room-64) {
				try(p.RNG.IntN(64), size)
			}
			try(room-1, 1)
			try(room, 0)
			for _, size := range []int{1, 2, 4, 8} {
				for off := 0; off < 32; off += size {
					v := p.RNG.Uint64()
					copy(model[off:], nativeWord(v, size))
					r.await(r.putWord(peer, At(off), v, size, bothDone))
					if b := r.read(peer, At(0), 48); Differ(b, model[:48]) >= 0 {
						p.Fatalf("put of a word of %d bytes at %d: %x, want %x", size, off, b, model[:48])
					}
				}
			}
			r.over()
		})
	}
}

// Random operations touch blocks of a segment. Each block is
// written by one rank only.
const (
	rmaBlock  = 256
	rmaBlocks = 8 // of each writer
)

// checkRMA does random operations, many at once, on all ranks, against a model of
// plain arrays.
func checkRMA(c *Case) {
	for _, n := range sizesOfJobs {
		c.Job(n, conduits.Config{}, func(p *Peer) {
			r := newRMA(p)
			p.attach(n*rmaBlocks*rmaBlock, &r.sink)
			r.random(p.RNG, p.Rank*rmaBlocks, rmaBlocks, 60)
			r.over()
		})
	}
}

// checkRMAOfThreads has the goroutines of a rank do so at once, each in blocks of
// its own.
func checkRMAOfThreads(c *Case) {
	const threads = 3
	c.Job(2, conduits.Config{}, func(p *Peer) {
		r := newRMA(p)
		p.attach(2*threads*rmaBlocks*rmaBlock, &r.sink)
		p.Threads(threads, func(i int) {
			r.random(c.Random(uint64(p.Rank), uint64(i)), (p.Rank*threads+i)*rmaBlocks, rmaBlocks, 60)
		})
		r.over()
	})
}

// random does batches of operations on count blocks from first on, of every
// rank. The operations of a batch touch different blocks.
func (r *rma) random(rng *rand.Rand, first, count, batches int) {
	model := make([][]byte, r.Size)
	for dst := range model {
		model[dst] = make([]byte, count*rmaBlock)
		r.await(r.put(dst, r.at(dst, first*rmaBlock), Mix(uint64(dst)), count*rmaBlock, bothDone))
		Fill(model[dst], Mix(uint64(dst)), 0)
	}
	type after struct {
		op    *op
		check func()
	}
	wants := []conduits.Event{conduits.RemoteDone, bothDone, conduits.SourceDone, 0}
	for range batches {
		var batch []after
		for range 1 + rng.IntN(2*count) {
			dst, block := rng.IntN(r.Size), len(batch)%count
			if len(batch) >= count {
				break
			}
			base := first*rmaBlock + block*rmaBlock
			own := model[dst][block*rmaBlock : (block+1)*rmaBlock]
			off := rng.IntN(rmaBlock)
			if rng.IntN(2) == 0 {
				off &^= 7
			}
			size := rng.IntN(rmaBlock - off + 1)
			if rng.IntN(3) == 0 {
				size = min(size, 8)
			}
			want := wants[rng.IntN(len(wants))]
			if conc.Race { // to get what another goroutine puts, until it is there, is a race
				want |= conduits.RemoteDone
			}
			to := r.at(dst, base+off)
			a := after{check: func() {}}
			lands := func() { // a put that is not said to be done
				for !bytes.Equal(r.read(dst, to, size), own[off:off+size]) {
					r.EP.Poll()
					r.Must(r.EP.Err())
				}
			}
			switch rng.IntN(4) {
			case 0:
				key := rng.Uint64()
				Fill(own[off:off+size], key, 0)
				a.op = r.put(dst, to, key, size, want)
				if want&conduits.RemoteDone == 0 {
					a.check = lands
				}
			case 1:
				b := make([]byte, size)
				Spoil(b)
				a.op = r.get(b, dst, to, want|conduits.RemoteDone)
				expect := bytes.Clone(own[off : off+size])
				a.check = func() {
					if i := Differ(b, expect); i >= 0 {
						r.Fatalf("get of %d bytes at %d of rank %d: byte %d is %#x, want %#x", size, base+off, dst, i, b[i], expect[i])
					}
				}
			case 2:
				size = 1 << rng.IntN(4)
				off &^= size - 1
				to = r.at(dst, base+off)
				v := rng.Uint64()
				copy(own[off:], nativeWord(v, size))
				a.op = r.putWord(dst, to, v, size, want)
				if want&conduits.RemoteDone == 0 {
					a.check = lands
				}
			case 3:
				t := conduits.AtomicType(rng.IntN(int(conduits.NumAtomicTypes)))
				o := conduits.AtomicOp(rng.IntN(int(conduits.NumAtomicOps)))
				if t.Float() { // floats of random bits may be NaN, whose bits are not promised
					t = conduits.Uint64
				}
				off &^= t.Size() - 1
				if off+8 > rmaBlock {
					off = rmaBlock - 8
				}
				x, y := rng.Uint64(), rng.Uint64()
				if t.Size() == 4 {
					x, y = uint64(uint32(x)), uint64(uint32(y))
				}
				old, now := applyAtomic([8]byte(own[off:off+8]), o, t, x, y)
				copy(own[off:], now[:])
				w := r.beginAtomic(dst, r.at(dst, base+off), o, t, x, y)
				a.op = w
				a.check = func() {
					if w.val != old {
						r.Fatalf("atomic %d of type %d: old value %#x, want %#x", o, t, w.val, old)
					}
				}
			}
			batch = append(batch, a)
		}
		for _, i := range rng.Perm(len(batch)) {
			r.await(batch[i].op)
			batch[i].check()
		}
	}
	for dst := range model {
		b := r.read(dst, r.at(dst, first*rmaBlock), count*rmaBlock)
		if i := Differ(b, model[dst]); i >= 0 {
			r.Fatalf("memory of rank %d: byte %d is %#x, want %#x", dst, first*rmaBlock+i, b[i], model[dst][i])
		}
	}
}

// nativeWord is the low n bytes of v in the order of this machine's memory.
func nativeWord(v uint64, n int) []byte {
	var w [8]byte
	switch n {
	case 1:
		w[0] = byte(v)
	case 2:
		binary.NativeEndian.PutUint16(w[:], uint16(v))
	case 4:
		binary.NativeEndian.PutUint32(w[:], uint32(v))
	default:
		binary.NativeEndian.PutUint64(w[:], v)
	}
	return w[:n]
}

// denied tries each operation where it must not be: all are errors and nothing
// moves. They are at once, and nothing completes, unless the address is one that
// memory beyond the segment may have: whether it has is known to its owner only.
func (r *rma) denied(what string, dst int, to segment.NLA, n int, put, get, atomic bool) {
	r.C.Helper()
	try := func(op string, want conduits.Event, refuse bool, f func(cookie uint64) (conduits.Event, error)) {
		r.C.Helper()
		late := refuse && conduits.Registered(r.EP.SegmentSize(dst), to, uint64(n))
		o, cookie := r.begin(want)
		r.mu.Lock()
		o.mayFail = late
		r.mu.Unlock()
		ev, err := f(cookie)
		switch {
		case late && err == nil:
			r.errors.Add(1)
			r.done(cookie, ev, true, 0)
			if r.await(o); o.err == nil {
				r.Fatalf("%s of %d bytes at %v, %s: completed without an error", op, n, to, what)
			}
		case late && !errors.Is(err, segment.ErrFault):
			r.Fatalf("%s of %d bytes at %v, %s: error %v, want one that wraps %q", op, n, to, what, err, segment.ErrFault)
		case refuse && !errors.Is(err, conduits.ErrBadArg):
			r.Fatalf("%s of %d bytes, %s: error %v, want one that wraps %q", op, n, what, err, conduits.ErrBadArg)
		case refuse && ev != 0:
			r.Fatalf("%s of %d bytes, %s: completion %#x of what was refused", op, n, what, ev)
		case refuse:
			r.refused(cookie)
		case err != nil:
			r.Fatalf("%s of %d bytes, %s: %v", op, n, what, err)
		default:
			r.errors.Add(1) // as good as: it is not told apart in the statistics
			r.done(cookie, ev, true, 0)
			r.await(o)
		}
	}
	b := Fill(make([]byte, n), 77, 0)
	try("put", bothDone, !put, func(cookie uint64) (conduits.Event, error) { return post.Put(r.EP, dst, to, b, bothDone, cookie) })
	try("get", bothDone, !get, func(cookie uint64) (conduits.Event, error) { return post.Get(r.EP, b, dst, to, bothDone, cookie) })
	if !get && Wrong(b, 77, 0) >= 0 {
		r.Fatalf("get of %d bytes, %s: moved something", n, what)
	}
	r.deniedAtOnce(what, dst, to, n, put, get, atomic)
	if n != 8 && n != 4 && n != 2 && n != 1 || uint64(to)%uint64(n) != 0 {
		return
	}
	try("put of a word", bothDone, !put, func(cookie uint64) (conduits.Event, error) {
		return post.PutWord(r.EP, dst, to, 0x77, n, bothDone, cookie)
	})
	if n < 4 {
		return
	}
	t := conduits.Uint32
	if n == 8 {
		t = conduits.Uint64
	}
	try("atomic", conduits.RemoteDone, !atomic, func(cookie uint64) (conduits.Event, error) {
		_, ev, err := post.Atomic(r.EP, dst, to, conduits.AtomicAdd, t, 1, 0, cookie)
		return ev, err
	})
}

// checkRMAOutside: what is not wholly inside a segment is an error, and nothing
// moves. Sizes differ, one segment is empty.
func checkRMAOutside(c *Case) {
	const n = 3
	size := func(r int) uint64 { return uint64(r) * segment.PageSize }
	c.Job(n, conduits.Config{}, func(p *Peer) {
		r := newRMA(p)
		p.attach(int(size(p.Rank)), &r.sink)
		Fill(memory(p.EP, p.Rank, At(0), int(size(p.Rank))), uint64(p.Rank), 0)
		p.Meet()
		for dst := range n {
			end := segment.AttachBase + segment.NLA(size(dst))
			for _, to := range []segment.NLA{
				0, 8, segment.AttachBase - 8, segment.AttachBase - 1, end, end + 8, end + segment.PageSize, end + 1<<30,
				segment.NLALimit - 8, segment.NLALimit, 1 << 63, 1<<64 - 8, 1<<64 - 1, 1<<64 - segment.GATSpan,
			} {
				for _, n := range []int{1, 2, 4, 8, 100} {
					r.denied("outside of the segment", dst, to, n, false, false, false)
				}
			}
			for _, n := range []int{2, 3, 8, 100} { // the last byte is the first outside
				r.denied("across the end", dst, end-segment.NLA(n)+1, n, false, false, false)
				r.denied("across the beginning", dst, segment.AttachBase-segment.NLA(n)+1, n, false, false, false)
			}
			r.denied("from below the beginning to beyond the end", dst, segment.AttachBase-8, int(size(dst))+16, false, false, false)
			r.denied("more than there is", dst, segment.AttachBase, int(size(dst))+1, false, false, false)
			for _, n := range []int{0, 3, 5, 7, 9, 16, -1} {
				r.errors.Add(1)
				if _, err := post.PutWord(p.EP, dst, At(0), 1, n, bothDone, 1); !errors.Is(err, conduits.ErrBadArg) {
					p.Fatalf("put of a word of %d bytes: error %v", n, err)
				}
			}
		}
		for _, a := range []struct {
			rank, off, n int
		}{{1, 1, 2}, {1, 2, 4}, {2, 4, 8}, {2, 1, 8}} {
			r.errors.Add(1)
			if _, err := post.PutWord(p.EP, a.rank, At(a.off), 1, a.n, bothDone, 1); !errors.Is(err, conduits.ErrBadArg) {
				p.Fatalf("put of a word of %d bytes at %d: error %v", a.n, a.off, err)
			}
		}
		for _, a := range []struct {
			off int
			op  conduits.AtomicOp
			t   conduits.AtomicType
			err error
		}{
			{4, conduits.AtomicAdd, conduits.Uint64, conduits.ErrBadArg},
			{2, conduits.AtomicAdd, conduits.Uint32, conduits.ErrBadArg},
			{1, conduits.AtomicLoad, conduits.Float32, conduits.ErrBadArg},
			{0, conduits.NumAtomicOps, conduits.Uint64, conduits.ErrBadArg},
			{0, conduits.AtomicAdd, conduits.NumAtomicTypes, conduits.ErrBadArg},
			{0, conduits.AtomicXor, conduits.Float64, conduits.ErrNotSupported},
			{0, conduits.AtomicFCAA, conduits.Float32, conduits.ErrNotSupported},
		} {
			r.errors.Add(1)
			if _, ev, err := post.Atomic(p.EP, 2, At(a.off), a.op, a.t, 1, 1, 1); !errors.Is(err, a.err) || ev != 0 {
				p.Fatalf("atomic %d of type %d at %d: completion %#x, error %v, want %v", a.op, a.t, a.off, ev, err, a.err)
			}
		}
		// What is just inside is well; so are no bytes at the end.
		for dst := 1; dst < n; dst++ {
			r.denied("the last byte", dst, segment.AttachBase+segment.NLA(size(dst))-1, 0, true, true, true)
			r.denied("no bytes at the end", dst, segment.AttachBase+segment.NLA(size(dst)), 0, true, true, true)
		}
		r.over()
		p.Meet()
		if b := memory(p.EP, p.Rank, At(0), int(size(p.Rank))); Wrong(b, uint64(p.Rank), 0) >= 0 {
			p.Fatalf("byte %d of the segment was changed", Wrong(b, uint64(p.Rank), 0))
		}
		p.Meet()
	})
}

// checkRights: peers can do what they have been granted and no more.
func checkRights(c *Case) {
	const all = segment.RightsAll
	rights := []segment.Rights{
		segment.RightRead, segment.RightWrite, segment.RightAtomic,
		all &^ segment.RightRead, all &^ segment.RightWrite, all &^ segment.RightAtomic, 0, all,
	}
	c.Job(len(rights), conduits.Config{}, func(p *Peer) {
		r := newRMA(p)
		r.sink.p = p
		p.Must(p.EP.Attach(conduits.AttachConfig{Size: segment.PageSize, Rights: rights[p.Rank], Receiver: &r.sink}))
		p.Up()
		mine := func(rank int) int { return rank * 64 } // where rank writes
		clear(memory(p.EP, p.Rank, At(0), segment.PageSize))
		p.Meet()
		first, views := p.EP.Views()
		for dst, g := range rights {
			if g == 0 {
				g = all
			}
			if i := dst - first; dst != p.Rank && i >= 0 && i < len(views) && views[i].Base != nil {
				v := views[i]
				if want := segment.NewView(v.Base, segment.PageSize, g); v != want {
					p.Fatalf("view of rank %d, which granted %v: %+v, want %+v", dst, g, v, want)
				}
			}
			want := g
			if dst == p.Rank {
				want = all
			}
			if have := p.EP.SegmentRights(dst); have != want {
				p.Fatalf("rights %v to the segment of rank %d, which granted %v; want %v", have, dst, g, want)
			}
			for _, n := range []int{4, 8, 13} {
				if dst == p.Rank { // rights are those of peers
					r.denied("own", dst, At(mine(p.Rank)), n, true, true, true)
				} else {
					r.denied(g.String(), dst, At(mine(p.Rank)), n, g&segment.RightWrite != 0, g&segment.RightRead != 0, g&segment.RightAtomic != 0)
				}
			}
		}
		r.over()
		p.Meet()
		// Its atomics may be the card's.
		if v := views[p.Rank-first]; v != segment.NewView(v.Base, segment.PageSize, all) && v != segment.NewView(v.Base, segment.PageSize, all&^segment.RightAtomic) {
			p.Fatalf("view of the own segment, which grants others %v: %+v", rights[p.Rank], v)
		}
		for src := range rights {
			if src == p.Rank {
				continue
			}
			b := memory(p.EP, p.Rank, At(mine(src)), 13)
			var zero [13]byte
			g := rights[p.Rank]
			if g != 0 && g&segment.RightWrite == 0 && (!bytes.Equal(b[8:], zero[8:]) || g&segment.RightAtomic == 0 && !bytes.Equal(b, zero[:])) {
				p.Fatalf("rank %d changed a segment with the rights %v: %x", src, g, b)
			}
		}
		p.Meet()
	})
}

// operands are bits that are special to one type or another.
var operands = []uint64{
	0, 1, 2, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<63 - 1, 1 << 63, 1<<64 - 1, 0x8000000080000000,
	math.Float64bits(1.5), math.Float64bits(-2.25), math.Float64bits(math.Inf(1)), math.Float64bits(math.Inf(-1)),
	uint64(math.Float32bits(1.5)), uint64(math.Float32bits(-2.25)), uint64(math.Float32bits(float32(math.Inf(1)))),
}

// checkAtomics compares every operation of every type with ApplyAtomic, and sees
// that what lies beside a word stays.
func checkAtomics(c *Case) {
	times := unlessRaced(24, 12)
	c.Job(2, conduits.Config{}, func(p *Peer) {
		r := newRMA(p)
		p.attach(segment.PageSize, &r.sink)
		base := p.Rank * 256
		for dst := range 2 {
			for t := range conduits.NumAtomicTypes {
				for o := range conduits.NumAtomicOps {
					if conduits.CheckAtomic("", o, t, At(0)) != nil {
						continue
					}
					for i := range times {
						pick := func() uint64 {
							v := operands[p.RNG.IntN(len(operands))]
							if i%3 == 0 {
								v = uint64(p.RNG.IntN(4))
							}
							if t.Size() == 4 {
								v = uint64(uint32(v))
							}
							return v
						}
						var w [8]byte
						off := p.RNG.IntN(8) * 8
						binary.NativeEndian.PutUint64(w[:], pick())
						if t.Size() == 4 && i%2 == 1 { // the upper half of 8 bytes
							copy(w[4:], w[:4])
						}
						r.await(r.putWord(dst, At(base+off), binary.NativeEndian.Uint64(w[:]), 8, conduits.RemoteDone))
						r.await(r.put(dst, At(base+off+8), 5, 8, conduits.RemoteDone))
						x, y := pick(), pick()
						shift := 0
						var old uint64
						var now [8]byte
						if t.Size() == 4 && i%2 == 1 {
							shift = 4
							var half [8]byte
							copy(half[:], w[4:])
							old, half = applyAtomic(half, o, t, x, y)
							now = w
							copy(now[4:], half[:4])
						} else {
							old, now = applyAtomic(w, o, t, x, y)
						}
						got := r.atomic(dst, At(base+off+shift), o, t, x, y)
						b := r.read(dst, At(base+off), 16)
						if got != old || [8]byte(b) != now || Wrong(b[8:], 5, 0) >= 0 {
							p.Fatalf("atomic %d of type %d of %x at byte %d with %#x, %#x: old %#x, now %x; want %#x, %x", o, t, w, shift, x, y, got, b[:8], old, now)
						}
					}
				}
			}
		}
		r.over()
	})
}

// checkCounter has all ranks count in words of one of them: each value is drawn
// once. Every rank's memory is a target, by turns.
func checkCounter(c *Case) {
	const most = 500 // of a network, a thousand take ten seconds
	for _, n := range []int{1, 2, 5, 17} {
		each := most / n
		for target := range min(n, 2) {
			total := n * each
			drawn := [2][]atomic.Bool{make([]atomic.Bool, total), make([]atomic.Bool, total)}
			c.Job(n, conduits.Config{}, func(p *Peer) {
				r := newRMA(p)
				p.attach(segment.PageSize, &r.sink)
				if p.Rank == target {
					r.await(r.put(target, At(0), 0, 0, 0))
					b := memory(p.EP, p.Rank, At(0), 64)
					clear(b)
				}
				p.Meet()
				draw := func(word int, v uint64) {
					if v >= uint64(total) || drawn[word][v].Swap(true) {
						p.Fatalf("counter %d gave %d twice, or beyond %d", word, v, total)
					}
				}
				one := math.Float64bits(1)
				for range each {
					r.atomic(target, At(16), conduits.AtomicAdd, conduits.Float64, one, 0)
					draw(0, r.atomic(target, At(0), conduits.AtomicAdd, conduits.Uint64, 1, 0))
					for have := uint64(0); ; {
						old := r.atomic(target, At(8), conduits.AtomicCAS, conduits.Uint32, have, have+1)
						if old == have {
							draw(1, old)
							break
						}
						have = old
					}
					r.atomic(target, At(24), conduits.AtomicFCAA, conduits.Int32, uint64(total/2-1), 1) // not beyond the half
					r.atomic(target, At(28), conduits.AtomicMax, conduits.Uint32, uint64(p.Rank*1000), 0)
				}
				r.over()
				b := r.read(target, At(0), 32)
				for i, want := range []uint64{uint64(total), uint64(total), math.Float64bits(float64(total))} {
					if v := binary.NativeEndian.Uint64(b[8*i:]); v != want && !(i == 1 && uint64(binary.NativeEndian.Uint32(b[8:])) == want) {
						p.Fatalf("counter %d ended at %#x, want %#x", i, v, want)
					}
				}
				if v := binary.NativeEndian.Uint32(b[24:]); v != uint32(total/2) {
					p.Fatalf("fetch-compare-and-add went to %d, want %d", v, total/2)
				}
				if v := binary.NativeEndian.Uint32(b[28:]); v != uint32(n-1)*1000 {
					p.Fatalf("maximum %d, want %d", v, (n-1)*1000)
				}
				r.over()
			})
		}
	}
}

// checkWholeWords: of those that put to an aligned word, one is seen, not a
// mixture. Ranks take turns as the one that reads.
func checkWholeWords(c *Case) {
	const rounds = 4000
	for _, n := range []int{2, 3} {
		c.Job(n, conduits.Config{}, func(p *Peer) {
			r := newRMA(p)
			p.attach(segment.PageSize, &r.sink)
			r.await(r.putWord(p.Rank, At(8), 0, 8, bothDone))
			p.Meet()
			o, cookie := r.begin(0) // one for all: what surrounds the operations is to be short
			again := func(count *atomic.Int64, want conduits.Event, f func() (conduits.Event, error)) {
				count.Add(1)
				r.mu.Lock()
				o.want = want
				r.mu.Unlock()
				ev, err := f()
				r.Must(err)
				r.done(cookie, ev, true, 0)
				r.await(o)
			}
			b := make([]byte, 8)
			for turn := range n {
				for i := range rounds {
					v := 0x0101010101010101 * uint64(p.Rank*80+i%80+1)
					switch {
					case turn == p.Rank:
						again(&r.gets, conduits.RemoteDone, func() (conduits.Event, error) {
							return post.Get(p.EP, b, i%n, At(8), conduits.RemoteDone, cookie)
						})
						if got := binary.NativeEndian.Uint64(b); got != got&0xff*0x0101010101010101 {
							p.Fatalf("a word that was not put: %#x", got)
						}
					case i%2 == 0:
						binary.NativeEndian.PutUint64(b, v)
						again(&r.puts, bothDone, func() (conduits.Event, error) {
							return post.Put(p.EP, i/2%n, At(8), b, bothDone, cookie)
						})
					default:
						again(&r.puts, bothDone, func() (conduits.Event, error) {
							return post.PutWord(p.EP, i/2%n, At(8), v, 8, bothDone, cookie)
						})
					}
				}
				p.Meet()
			}
			r.over()
		})
	}
}

// checkPutThenMessage: the receiver of a message that was sent after the completion of
// a put sees the put, in its memory and by a get of its own.
func checkPutThenMessage(c *Case) {
	const rounds = 60
	for _, n := range []int{2, 3} {
		c.Job(n, conduits.Config{}, func(p *Peer) {
			const room = 8 << 10
			r := newRMA(p)
			turn, replies := 0, 0
			r.sink.receive = func(m *conduits.Message) {
				if m.Class == conduits.Reply {
					replies++
					return
				}
				if len(m.Words) != 2 || m.Words[0] > rounds || m.Words[1] > room {
					p.Errorf("a message that was not sent: words %v", m.Words)
					return
				}
				i, n := int(m.Words[0]), int(m.Words[1])
				b := memory(p.EP, p.Rank, At(m.Src*room+i%8), n)
				if j := Wrong(b, Mix(uint64(m.Src), uint64(i)), 0); j >= 0 {
					p.Errorf("round %d: byte %d of %d that rank %d had put is %#x", i, j, n, m.Src, b[j])
				}
				if v := binary.NativeEndian.Uint64(memory(p.EP, p.Rank, At(m.Src*room+room-16), 8)); v != uint64(i) {
					p.Errorf("round %d: the word that rank %d had put is %d", i, m.Src, v)
				}
				if v := binary.NativeEndian.Uint64(memory(p.EP, p.Rank, At(m.Src*room+room-8), 8)); v != uint64(i) {
					p.Errorf("round %d: the word that rank %d had stored is %d", i, m.Src, v)
				}
				turn++
				r.sink.await("credit for a reply", func() bool { return p.EP.Send(m.Src, conduits.Reply, 0, nil) != conduits.NoCredit })
			}
			p.attach(n*room, &r.sink)
			dst := (p.Rank + 1) % n
			for i := 1; i <= rounds; i++ {
				size := p.RNG.IntN(room - 32)
				a := r.put(dst, At(p.Rank*room+i%8), Mix(uint64(p.Rank), uint64(i)), size, conduits.RemoteDone)
				b := r.putWord(dst, At(p.Rank*room+room-16), uint64(i), 8, conduits.RemoteDone)
				r.atomic(dst, At(p.Rank*room+room-8), conduits.AtomicStore, conduits.Uint64, uint64(i), 0)
				r.await(a)
				r.await(b)
				p.reserve(func() conduits.Status {
					return p.EP.Send(dst, conduits.Request, 1, []uint32{uint32(i), uint32(size)})
				})
				p.Wait("a reply", func() bool { return replies == i })
			}
			r.over()
			if turn != rounds {
				p.Fatalf("%d messages of %d", turn, rounds)
			}
			p.Meet()
		})
	}
}

// checkFence: of two ranks that each store a word, fence, and load the other's,
// at least one sees the store.
func checkFence(c *Case) {
	const rounds = 20000
	var saw [2][rounds]uint64
	var ready atomic.Int64
	c.Job(2, conduits.Config{}, func(p *Peer) {
		size := 0
		if p.Rank == 0 {
			size = 2 * rounds * 64
		}
		p.attach(size, &sink{})
		if p.Rank == 0 {
			clear(memory(p.EP, 0, At(0), size))
		}
		p.Meet()
		for i := range rounds {
			mine, other := word(p.EP, 0, At((2*i+p.Rank)*64)), word(p.EP, 0, At((2*i+1-p.Rank)*64))
			saw[p.Rank][i] = *other // have it at hand
			if ready.Add(1)%256 == 0 {
				p.step()
			}
			for spins := 0; ready.Load() < int64(2*i+2) && p.EP.Err() == nil; spins++ {
				if spins > 1000 {
					runtime.Gosched()
				}
			}
			*mine = 1
			conduits.Fence()
			saw[p.Rank][i] = *other
		}
		p.Meet()
	})
	for i := range rounds {
		if saw[0][i] == 0 && saw[1][i] == 0 && !c.Failed() {
			c.Fatalf("round %d: neither of two ranks saw what the other had stored before a fence", i)
		}
	}
}
