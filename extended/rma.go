package extended

import (
	"sync"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// The completions that operations ask of the conduit. A bulk put leaves its
// source alone until it is synchronized; any other put waits for SourceDone.
const (
	wantBulk = conduits.RemoteDone
	wantCopy = conduits.RemoteDone | conduits.SourceDone
)

// flight is an operation that goes through the conduit: the slot in which its
// pieces are counted.
type flight struct {
	x    *Endpoint
	o    *op
	name uint64
	dst  int
	want conduits.Event
	wait bool // it is one access, and the caller waits for it
}

// The conduit's operations, with exposed memory among what they reach.

func (x *Endpoint) conduitPut(dst int, to segment.NLA, src []byte, want conduits.Event, cookie uint64, wait bool) (conduits.Event, error) {
	if to.Exposed() {
		return x.exposed.Post(&conduits.Access{Verb: conduits.Put, Want: want, Rank: dst, At: to, Mem: src, Cookie: cookie}, wait)
	}
	return x.ep.Put(dst, to, src, want, cookie)
}

func (x *Endpoint) conduitGet(dst []byte, src int, from segment.NLA, want conduits.Event, cookie uint64, wait bool) (conduits.Event, error) {
	if from.Exposed() {
		return x.exposed.Post(&conduits.Access{Verb: conduits.Get, Want: want, Rank: src, At: from, Mem: dst, Cookie: cookie}, wait)
	}
	return x.ep.Get(dst, src, from, want, cookie)
}

func (x *Endpoint) conduitWord(dst int, to segment.NLA, v uint64, n int, want conduits.Event, cookie uint64, wait bool) (conduits.Event, error) {
	if to.Exposed() {
		return x.exposed.Post(&conduits.Access{Verb: conduits.PutWord, Size: uint8(n), Want: want, Rank: dst, At: to, A: v, Cookie: cookie}, wait)
	}
	return x.ep.PutWord(dst, to, v, n, want, cookie)
}

func (x *Endpoint) conduitAtomic(dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64, cookie uint64, wait bool) (uint64, conduits.Event, error) {
	if to.Exposed() {
		k := conduits.Access{Verb: conduits.Atomic, Op: op, Type: t, Want: conduits.RemoteDone, Rank: dst, At: to, A: a, B: b, Cookie: cookie}
		ev, err := x.exposed.Post(&k, wait)
		return k.Value, ev, err
	}
	return x.ep.Atomic(dst, to, op, t, a, b, cookie)
}

// most is how much of an access of n bytes may be one operation of the conduit.
func (x *Endpoint) most(rank int, a segment.NLA, n uint64) uint64 {
	if a.Exposed() {
		return x.exposed.Most(rank, a, n)
	}
	return min(n, x.maxLong)
}

// put begins to put src, in pieces if it is longer than the conduit takes.
func (f *flight) put(to segment.NLA, src []byte) error {
	x := f.x
	for len(src) > 0 {
		piece := src[:x.most(f.dst, to, uint64(len(src)))]
		f.o.left.Add(units(f.want))
		ev, err := x.conduitPut(f.dst, to, piece, f.want, f.name, f.wait)
		if f.account(ev, err) != nil {
			return err
		}
		src = src[len(piece):]
		to += segment.NLA(len(piece))
	}
	return nil
}

// getValue begins to get n bytes, 1 to 8, into the slot, and from there into
// *result if that is not nil.
func (f *flight) getValue(from segment.NLA, result *uint64, n int) error {
	o := f.o
	o.kind, o.n, o.r64 = resultValue, uint8(n), result
	o.left.Add(oneRemote)
	ev, err := f.x.conduitGet(o.buf[:n], f.dst, from, wantBulk, f.name, f.wait)
	if err == nil && ev&conduits.RemoteDone != 0 {
		o.deliver(0)
	}
	return f.account(ev, err)
}

// get begins to get dst.
func (f *flight) get(from segment.NLA, dst []byte) error {
	x := f.x
	for len(dst) > 0 {
		piece := dst[:x.most(f.dst, from, uint64(len(dst)))]
		f.o.left.Add(units(f.want))
		ev, err := x.conduitGet(piece, f.dst, from, f.want, f.name, f.wait)
		if f.account(ev, err) != nil {
			return err
		}
		dst = dst[len(piece):]
		from += segment.NLA(len(piece))
	}
	return nil
}

// word begins to put the low n bytes of v.
func (f *flight) word(to segment.NLA, v uint64, n int) error {
	for n > 0 {
		w := 1
		for _, m := range [...]int{8, 4, 2} {
			if n >= m && uint64(to)%uint64(m) == 0 {
				w = m
				break
			}
		}
		f.o.left.Add(units(f.want))
		ev, err := f.x.conduitWord(f.dst, to, v, w, f.want, f.name, f.wait)
		if f.account(ev, err) != nil {
			return err
		}
		n -= w
		to += segment.NLA(w)
		v >>= 8 * w
	}
	return nil
}

// atomic begins an atomic.
func (f *flight) atomic(to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64) error {
	f.o.left.Add(oneRemote)
	value, ev, err := f.x.conduitAtomic(f.dst, to, op, t, a, b, f.name, f.wait)
	if err == nil && ev&conduits.RemoteDone != 0 && f.o.kind != resultNone {
		f.o.deliver(value)
	}
	f.want = conduits.RemoteDone
	return f.account(ev, err)
}

// account takes off the slot what the answer of the conduit has completed.
func (f *flight) account(ev conduits.Event, err error) error {
	if err != nil {
		ev = f.want
	}
	if ev &= f.want; ev != 0 {
		f.o.left.Add(-units(ev))
	}
	return err
}

// begin takes a slot for an operation towards dst.
func (x *Endpoint) begin(dst int, want conduits.Event) (flight, error) {
	o, name, err := x.table.claim(false)
	return flight{x: x, o: o, name: name, dst: dst, want: want}, err
}

// beginNB is begin for an operation with a handle; what names it.
func (x *Endpoint) beginNB(what string, dst int, want conduits.Event) (flight, error) {
	o, name, err := x.table.claim(true)
	if err == nil {
		x.table.note(name, what, dst)
	}
	return flight{x: x, o: o, name: name, dst: dst, want: want}, err
}

// finish ends a blocking operation: it waits for the pieces and frees the slot.
// err is what went wrong when they were begun.
func (f *flight) finish(err error) error {
	_, err = f.value(err)
	return err
}

// value is finish for an operation with a result.
func (f *flight) value(err error) (uint64, error) {
	if f.o.left.Add(-oneRemote) != 0 {
		if werr := f.x.await(f.o, f.name, ^int64(0)); werr != nil {
			f.x.table.abandon(f.o, f.name, 0)
			return 0, first(err, werr)
		}
	}
	v := f.o.val
	failure, _ := f.x.table.release(f.o, f.name)
	return v, first(err, failure)
}

// detach ends the beginning of a non-blocking operation: it waits for the
// sources, if that was wanted, and says by which handle the rest goes on.
func (f *flight) detach(err error) (Handle, error) {
	x := f.x
	if err == nil && f.o.left.Load()&sourceMask != 0 {
		err = x.await(f.o, f.name, sourceMask)
	}
	if err != nil {
		x.table.abandon(f.o, f.name, oneRemote)
		return 0, err
	}
	if f.o.left.Add(-oneRemote) == 0 && !x.always {
		failure, _ := x.table.release(f.o, f.name)
		return 0, failure
	}
	return Handle(f.name), nil
}

func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// complete is the handle of an operation that was complete at once.
func (x *Endpoint) complete(what string, dst int) (Handle, error) {
	if !x.always {
		return 0, nil
	}
	o, name, err := x.table.claim(true)
	if err != nil {
		return 0, err
	}
	o.left.Add(-oneRemote)
	x.table.note(name, what, dst)
	return Handle(name), nil
}

// admit refuses an operation for which there would be no handle before it does
// anything. Another goroutine may still take the last one in between.
func (x *Endpoint) admit() error {
	if x.always && x.table.outstanding() == MaxHandles {
		return errTooManyHandles()
	}
	return nil
}

// bounces are buffers for what conduits, and other goroutines for them, read and write
// while the caller of a blocking operation waits and its stack may move.
var bounces = sync.Pool{New: func() any { return new([bounceSize]byte) }}

const bounceSize = 4096

// bounce gives n bytes of the heap.
func bounce(n int) []byte {
	if n > bounceSize {
		return make([]byte, n)
	}
	return bounces.Get().(*[bounceSize]byte)[:n]
}

// debounce takes back what bounce gave, if the operation that used it is complete: one
// that has failed may use it yet, and leaves it to the collector.
func debounce(b []byte, err error) {
	if err == nil && cap(b) == bounceSize {
		bounces.Put((*[bounceSize]byte)(b[:bounceSize]))
	}
}

// putSlow is Put where load and store do not do it. src may be hidden.
//
//go:noinline
func (x *Endpoint) putSlow(dst int, to segment.NLA, src []byte) error {
	if !onStack(src) {
		return x.putHeap(dst, to, src)
	}
	heap := bounce(len(src))
	bulk.Copy(heap, src)
	err := x.putHeap(dst, to, heap)
	debounce(heap, err)
	return err
}

func (x *Endpoint) putHeap(dst int, to segment.NLA, src []byte) error {
	const what = "extended: put"
	if len(src) == 0 {
		return x.checkRank(what, dst)
	}
	if x.exposed != nil && to.Exposed() && x.exposed.Now(&conduits.Access{Verb: conduits.Put, Rank: dst, At: to, Mem: src}) {
		return nil
	}
	if err := x.check(what, dst, to, uint64(len(src)), segment.RightWrite); err != nil {
		return err
	}
	f, err := x.begin(dst, wantBulk)
	if err != nil {
		return err
	}
	f.wait = true
	return f.finish(f.put(to, src))
}

// getSlow is Get where load and store do not do it. dst may be hidden.
//
//go:noinline
func (x *Endpoint) getSlow(src int, from segment.NLA, dst []byte) error {
	if !onStack(dst) {
		return x.getHeap(src, from, dst)
	}
	heap := bounce(len(dst))
	err := x.getHeap(src, from, heap)
	if err == nil {
		bulk.Copy(dst, heap)
	}
	debounce(heap, err)
	return err
}

func (x *Endpoint) getHeap(src int, from segment.NLA, dst []byte) error {
	const what = "extended: get"
	if len(dst) == 0 {
		return x.checkRank(what, src)
	}
	if x.exposed != nil && from.Exposed() && x.exposed.Now(&conduits.Access{Verb: conduits.Get, Rank: src, At: from, Mem: dst}) {
		return nil
	}
	if err := x.check(what, src, from, uint64(len(dst)), segment.RightRead); err != nil {
		return err
	}
	f, err := x.begin(src, wantBulk)
	if err != nil {
		return err
	}
	f.wait = true
	return f.finish(f.get(from, dst))
}

// PutNB begins to put src to address to of rank dst's segment. src may be
// reused when PutNB returns, which may have to wait for that. The put is
// visible at dst once the handle is synchronized; see Handle.
func (x *Endpoint) PutNB(dst int, to segment.NLA, src []byte) (Handle, error) {
	if !x.always && x.putDirect(dst, to, src) {
		return 0, nil
	}
	return x.putNBSlow(dst, to, src, wantCopy)
}

// PutBulkNB is PutNB for a source that must stay as it is, and must not be
// freed by other than the garbage collector, until the handle is synchronized.
func (x *Endpoint) PutBulkNB(dst int, to segment.NLA, src []byte) (Handle, error) {
	if !x.always && x.putDirect(dst, to, src) {
		return 0, nil
	}
	return x.putNBSlow(dst, to, src, wantBulk)
}

//go:noinline
func (x *Endpoint) putNBSlow(dst int, to segment.NLA, src []byte, want conduits.Event) (Handle, error) {
	const what = "extended: non-blocking put"
	if len(src) == 0 {
		return 0, x.checkRank(what, dst)
	}
	if err := x.check(what, dst, to, uint64(len(src)), segment.RightWrite); err != nil {
		return 0, err
	}
	if err := x.admit(); err != nil {
		return 0, err
	}
	if x.putDirect(dst, to, src) {
		return x.complete(what, dst)
	}
	f, err := x.beginNB(what, dst, want)
	if err != nil {
		return 0, err
	}
	return f.detach(f.put(to, src))
}

// GetNB begins to get len(dst) bytes from address from of rank src's segment.
// dst holds them once the handle is synchronized; until then its contents are
// undefined and it must not be touched.
func (x *Endpoint) GetNB(src int, from segment.NLA, dst []byte) (Handle, error) {
	if !x.always && x.getDirect(src, from, dst) {
		return 0, nil
	}
	return x.getNBSlow(src, from, dst)
}

//go:noinline
func (x *Endpoint) getNBSlow(src int, from segment.NLA, dst []byte) (Handle, error) {
	const what = "extended: non-blocking get"
	if len(dst) == 0 {
		return 0, x.checkRank(what, src)
	}
	if err := x.check(what, src, from, uint64(len(dst)), segment.RightRead); err != nil {
		return 0, err
	}
	if err := x.admit(); err != nil {
		return 0, err
	}
	if x.getDirect(src, from, dst) {
		return x.complete(what, src)
	}
	f, err := x.beginNB(what, src, wantBulk)
	if err != nil {
		return 0, err
	}
	return f.detach(f.get(from, dst))
}

// checkValue is check for a value of n bytes.
func (x *Endpoint) checkValue(what string, rank int, a segment.NLA, n int, need segment.Rights) error {
	if n < 1 || n > 8 {
		return errs.BadArg("%s: a value has 1 to 8 bytes, not %d", what, n)
	}
	return x.check(what, rank, a, uint64(n), need)
}

//go:noinline
func (x *Endpoint) putValueSlow(rank int, to segment.NLA, v uint64, n int) error {
	if x.exposed != nil && to.Exposed() && uint(n-1) < 8 && x.exposed.Now(&conduits.Access{Verb: conduits.PutWord, Size: uint8(n), Rank: rank, At: to, A: v}) {
		return nil
	}
	if err := x.checkValue("extended: put value", rank, to, n, segment.RightWrite); err != nil {
		return err
	}
	if x.putValueDirect(rank, to, v, n) {
		return nil
	}
	f, err := x.begin(rank, wantBulk)
	if err != nil {
		return err
	}
	f.wait = true
	return f.finish(f.word(to, v, n))
}

//go:noinline
func (x *Endpoint) getValueSlow(rank int, from segment.NLA, n int) (uint64, error) {
	if x.exposed != nil && from.Exposed() {
		a := conduits.Access{Verb: conduits.GetWord, Size: uint8(n), Rank: rank, At: from}
		if x.exposed.Now(&a) {
			return a.Value, nil
		}
	}
	if err := x.checkValue("extended: get value", rank, from, n, segment.RightRead); err != nil {
		return 0, err
	}
	if v, ok := x.getValueDirect(rank, from, n); ok {
		return v, nil
	}
	f, err := x.begin(rank, wantBulk)
	if err != nil {
		return 0, err
	}
	f.wait = true
	return f.value(f.getValue(from, nil, n))
}

// PutValueNB begins a PutValue.
func (x *Endpoint) PutValueNB(rank int, to segment.NLA, v uint64, n int) (Handle, error) {
	if !x.always && uint(n-1) < 8 && x.putValueDirect(rank, to, v, n) {
		return 0, nil
	}
	const what = "extended: non-blocking put value"
	if err := x.checkValue(what, rank, to, n, segment.RightWrite); err != nil {
		return 0, err
	}
	if err := x.admit(); err != nil {
		return 0, err
	}
	if x.putValueDirect(rank, to, v, n) {
		return x.complete(what, rank)
	}
	f, err := x.beginNB(what, rank, wantBulk)
	if err != nil {
		return 0, err
	}
	return f.detach(f.word(to, v, n))
}

// GetValueNB begins a GetValue; *result holds the value once the handle is
// synchronized.
func (x *Endpoint) GetValueNB(rank int, from segment.NLA, result *uint64, n int) (Handle, error) {
	const what = "extended: non-blocking get value"
	if err := x.checkValue(what, rank, from, n, segment.RightRead); err != nil {
		return 0, err
	}
	if err := x.admit(); err != nil {
		return 0, err
	}
	if v, ok := x.getValueDirect(rank, from, n); ok {
		*result = v
		return x.complete(what, rank)
	}
	f, err := x.beginNB(what, rank, wantBulk)
	if err != nil {
		return 0, err
	}
	return f.detach(f.getValue(from, result, n))
}

// Memset fills n bytes from address to of rank with value. n must not be
// negative.
func (x *Endpoint) Memset(rank int, to segment.NLA, value byte, n int) error {
	if n > 0 && x.memsetDirect(rank, to, value, uint64(n)) {
		return nil
	}
	ok, err := x.checkMemset("extended: memset", rank, to, n)
	if !ok {
		return err
	}
	f, err := x.begin(rank, wantBulk)
	if err != nil {
		return err
	}
	return f.finish(f.memset(to, value, n))
}

// MemsetNB begins a Memset.
func (x *Endpoint) MemsetNB(rank int, to segment.NLA, value byte, n int) (Handle, error) {
	if !x.always && n > 0 && x.memsetDirect(rank, to, value, uint64(n)) {
		return 0, nil
	}
	const what = "extended: non-blocking memset"
	ok, err := x.checkMemset(what, rank, to, n)
	if !ok {
		return 0, err
	}
	if err := x.admit(); err != nil {
		return 0, err
	}
	if x.memsetDirect(rank, to, value, uint64(n)) {
		return x.complete(what, rank)
	}
	f, err := x.beginNB(what, rank, wantBulk)
	if err != nil {
		return 0, err
	}
	return f.detach(f.memset(to, value, n))
}

// checkMemset is check for a memset; ok says that there is something to do.
func (x *Endpoint) checkMemset(what string, rank int, to segment.NLA, n int) (ok bool, err error) {
	if n < 0 {
		return false, errs.BadArg("%s: negative length %d", what, n)
	}
	if n == 0 {
		return false, x.checkRank(what, rank)
	}
	err = x.check(what, rank, to, uint64(n), segment.RightWrite)
	return err == nil, err
}

// memset begins to put n equal bytes. The conduit reads them from one block,
// again and again; the collector frees it when it has done so.
func (f *flight) memset(to segment.NLA, value byte, n int) error {
	block := zeros[:]
	if value != 0 || n > 4*len(zeros) {
		block = make([]byte, min(n, 64<<10))
		fill(block, value)
	}
	for n > 0 {
		piece := block[:min(n, len(block))]
		if err := f.put(to, piece); err != nil {
			return err
		}
		n -= len(piece)
		to += segment.NLA(len(piece))
	}
	return nil
}

var zeros [4096]byte

func fill(b []byte, value byte) {
	if value == 0 {
		bulk.Clear(b)
		return
	}
	for i := range b[:min(len(b), 64)] {
		b[i] = value
	}
	for i := 64; i < len(b); {
		i += copy(b[i:], b[:min(i, 4096)])
	}
}
