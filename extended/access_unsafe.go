package extended

import (
	"sync"
	"unsafe"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// What is unsafe here: a result goes to where its caller wants it, 4 or 8 bytes as its type has.

// The completions that operations ask of the conduit. A bulk put leaves its
// source alone until it is synchronized; any other put waits for SourceDone.
const (
	wantBulk = conduits.RemoteDone
	wantCopy = conduits.RemoteDone | conduits.SourceDone
)

// completion is how the caller learns that an operation is complete.
type completion uint8

const (
	byReturn completion = iota
	byHandle
	byRegion
	numCompletions
)

// verb is the verb of an operation.
type verb uint8

const (
	verbPut verb = iota
	verbGet
	verbPutValue
	verbGetValue
	verbMemset
	verbShape                                  // a get of the first kind; then its put, and so the other kinds
	verbAtomic = verbShape + 2*verb(numShapes) // the first operation; one behind the last stands for what is none
	numVerbs   = verbAtomic + verb(conduits.NumAtomicOps) + 1
)

// names is how errors and reports call operations.
var names = func() (names [numCompletions][numVerbs]string) {
	verbs := [numVerbs]string{
		verbPut: "put", verbGet: "get", verbPutValue: "put value", verbGetValue: "get value", verbMemset: "memset",
		numVerbs - 1: "atomic",
	}
	for kind, s := range [numShapes]string{empty: "empty", strided: "strided", indexed: "indexed", vector: "vector"} {
		verbs[verbShape+2*verb(kind)], verbs[verbShape+2*verb(kind)+1] = s+" get", s+" put"
	}
	for op, s := range [conduits.NumAtomicOps]string{"load", "store", "swap", "compare-and-swap", "add", "and", "or", "xor", "minimum", "maximum", "fetch-compare-and-add"} {
		verbs[verbAtomic+verb(op)] = "atomic " + s
	}
	for how, s := range [numCompletions]string{byHandle: "non-blocking ", byRegion: "implicit "} {
		for v := range verbs {
			names[how][v] = "extended: " + s + verbs[v]
		}
	}
	return names
}()

// target is where a result goes: a word of 4 or 8 bytes.
type target = unsafe.Pointer

// operation is an access as the caller asks for it. It is not looked at after the call.
type operation struct {
	conduits.Access // as the conduit gets it, if it is one access there
	verb            verb
	n               int    // bytes of a value or a memset, which may be wrong
	result          target // where an atomic's or a value's result goes, or nil
	as              string // a name in place of the verb's
}

func (q *operation) name(how completion) string {
	if q.as != "" {
		return q.as
	}
	return names[how][q.verb]
}

// An operation is made where it stays, field by field: a copy of what has just been written so
// waits for the stores.

// atomic is an atomic of the word at to of rank.
func (q *operation) atomic(rank int, to segment.NLA, op AtomicOp, t AtomicType, a, b uint64) {
	q.Verb, q.Op, q.Type, q.Want, q.Rank, q.At, q.A, q.B = conduits.Atomic, op, t, conduits.RemoteDone, rank, to, a, b
	q.verb = verbAtomic + min(verb(op), verb(conduits.NumAtomicOps))
}

func (q *operation) put(rank int, to segment.NLA, src []byte, want conduits.Event) {
	q.Verb, q.Want, q.Rank, q.At, q.Mem, q.verb = conduits.Put, want, rank, to, src, verbPut
}

func (q *operation) get(rank int, from segment.NLA, dst []byte) {
	q.Verb, q.Want, q.Rank, q.At, q.Mem, q.verb = conduits.Get, wantBulk, rank, from, dst, verbGet
}

func (q *operation) putValue(rank int, to segment.NLA, v uint64, n int) {
	q.Verb, q.Size, q.Want, q.Rank, q.At, q.A = conduits.PutWord, sizeOf(n), wantBulk, rank, to, v
	q.verb, q.n = verbPutValue, n
}

func (q *operation) getValue(rank int, from segment.NLA, result *uint64, n int) {
	q.Verb, q.Size, q.Want, q.Rank, q.At = conduits.GetWord, sizeOf(n), wantBulk, rank, from
	q.verb, q.n, q.result = verbGetValue, n, unsafe.Pointer(result)
}

// sizeOf is n of a value that there is, else 0.
func sizeOf(n int) uint8 {
	if uint(n) > 8 {
		return 0
	}
	return uint8(n)
}

func (q *operation) memset(rank int, to segment.NLA, value byte, n int) {
	q.Verb, q.Want, q.Rank, q.At, q.A, q.verb, q.n = conduits.Put, wantBulk, rank, to, uint64(value), verbMemset, n
}

// check returns the error of q if its arguments are wrong, and whether it moves anything.
func (q *operation) check(x *Initiator, what string) (moves bool, err error) {
	n := uint64(len(q.Mem))
	switch {
	case q.Verb == conduits.Atomic:
		if err := x.checkRank(what, q.Rank); err != nil {
			return false, err
		}
		if err := conduits.CheckAtomic(what, q.Op, q.Type, q.At); err != nil {
			return false, err
		}
		n = uint64(q.Type.Size())
	case q.verb == verbMemset:
		if q.n < 0 {
			return false, errs.BadArg("%s: negative length %d", what, q.n)
		}
		n = uint64(q.n)
	case q.verb != verbPut && q.verb != verbGet:
		if q.n < 1 || q.n > 8 {
			return false, errs.BadArg("%s: a value has 1 to 8 bytes, not %d", what, q.n)
		}
		n = uint64(q.n)
	}
	if n == 0 {
		return false, x.checkRank(what, q.Rank)
	}
	err = x.check(what, q.Rank, q.At, n, q.Need())
	return err == nil, err
}

// direct makes q, which has been checked, if load and store do it.
func (q *operation) direct(x *Initiator) (value uint64, ok bool) {
	switch {
	case q.Verb == conduits.Atomic:
		value, ok = x.views.apply(q.Rank, q.At, q.Op, q.Type, q.A, q.B)
	case q.verb == verbPut:
		return 0, x.views.put(q.Rank, q.At, q.Mem)
	case q.verb == verbGet:
		return 0, x.views.get(q.Rank, q.At, q.Mem)
	case q.verb == verbPutValue:
		return 0, x.views.putValue(q.Rank, q.At, q.A, q.n)
	case q.verb == verbGetValue:
		value, ok = x.views.getValue(q.Rank, q.At, q.n)
	default:
		return 0, x.views.memset(q.Rank, q.At, byte(q.A), uint64(q.n))
	}
	if ok && q.result != nil {
		tell(q.result, q.resultSize(), value)
	}
	return value, ok
}

// resultSize is how many bytes a result of q has.
func (q *operation) resultSize() uint8 {
	if q.Verb == conduits.Atomic {
		return uint8(q.Type.Size())
	}
	return 8
}

// tell stores a result at p.
func tell(p unsafe.Pointer, size uint8, value uint64) {
	if size == 4 {
		*(*uint32)(p) = uint32(value)
	} else {
		*(*uint64)(p) = value
	}
}

// now makes q and waits for it. Of a hit, one access to exposed memory that a firehose reaches,
// it is all.
func (q *operation) now(x *Initiator) (value uint64, err error) {
	if x.exposed != nil && q.At.Exposed() && q.Len()-1 < 1<<32 && x.exposed.Now(&q.Access) {
		return q.Value, nil
	}
	_, value, err = x.run(q, nil, byReturn, nil)
	return value, err
}

// begun begins q.
func (q *operation) begun(x *Initiator) (Handle, error) {
	h, _, err := x.run(q, nil, byHandle, nil)
	return h, err
}

// counted begins q in r.
func (q *operation) counted(r *Region) error {
	if r.x == nil {
		return errNotBound(q.name(byRegion))
	}
	_, _, err := r.x.run(q, nil, byRegion, r)
	return err
}

// run makes q, or begins to, so that its caller learns of the completion as how says; r is the
// region of byRegion. Of a Shape t has the runs, and else is nil: beside q, whose memory goes to
// the heap, as the compiler would send t there, too. All operations that load and store have not
// done come through here.
func (x *Initiator) run(q *operation, t *transfer, how completion, r *Region) (h Handle, value uint64, err error) {
	what := q.name(how)
	var moves bool
	if t != nil {
		moves, err = t.check(x, what)
	} else {
		moves, err = q.check(x, what)
	}
	if !moves {
		return 0, 0, err
	}
	if how == byHandle {
		if err := x.admit(); err != nil {
			return 0, 0, err
		}
	}
	var ok bool
	if t != nil {
		ok = t.directly(x)
	} else {
		value, ok = q.direct(x)
	}
	if ok {
		if how == byHandle {
			h, err = x.complete(what, q.Rank)
		}
		return h, value, err
	}
	if how == byReturn && q.single(x) {
		err = x.exposed.Do(&q.Access)
		return 0, q.Value, err
	}
	var f flight
	switch how {
	case byRegion:
		f, err = r.begin(q.Rank, q.category(), q.result != nil)
	case byHandle:
		if f, err = x.begin(how); err == nil {
			x.table.note(f.name, what, q.Rank)
		}
	default:
		for f, err = x.begin(how); err != nil && q.At.Exposed(); f, err = x.begin(how) {
			if err := x.awaitSlot(); err != nil {
				return 0, 0, err
			}
		}
	}
	if err != nil {
		return 0, 0, err
	}
	if *f.a = q.Access; t != nil {
		err = t.move(x, &f)
	} else {
		err = q.start(&f)
	}
	return f.finish(err, how)
}

// single reports whether q is one access to exposed memory. One that is waited for needs no slot.
func (q *operation) single(x *Initiator) bool {
	n := q.Len()
	if n == 0 || !q.At.Exposed() || q.Verb <= conduits.Get && x.exposed.Most(q.Rank, q.At, n) < n {
		return false
	}
	return q.Verb <= conduits.Get || n&(n-1) == 0 && uint64(q.At)%n == 0
}

// category is the category in which a region counts q.
func (q *operation) category() Category {
	shape := q.verb >= verbShape && q.verb < verbAtomic
	if q.result != nil || q.verb == verbGet || shape && (q.verb-verbShape)%2 == 0 {
		return Gets
	}
	return Puts
}

// start begins q in the slot of f, piece by piece.
func (q *operation) start(f *flight) error {
	a, o := f.a, f.o
	switch {
	case q.Verb == conduits.Atomic:
		if f.own {
			o.kind, o.result, o.n = resultWord, q.result, q.resultSize()
		}
		return f.post()
	case q.verb == verbGetValue:
		o.kind, o.result, o.n = resultValue, q.result, uint8(q.n)
		a.Verb = conduits.Get
		return f.pieces(o.buf[:q.n])
	case q.verb == verbPutValue:
		return f.word(q.n)
	case q.verb == verbMemset:
		return f.memset(byte(q.A), q.n)
	}
	return f.pieces(q.Mem)
}

// flight is an operation that goes through the conduit: the slot in which its
// pieces are counted, and the record of the piece that is begun.
type flight struct {
	x    *Initiator
	o    *op
	a    *conduits.Access // of o, or one for a goroutine that shares it
	name uint64
	unit int64 // what o.left counts for the caller
	own  bool  // o is the caller's alone
}

// begin takes a slot for an operation.
func (x *Initiator) begin(how completion) (flight, error) {
	o, name, err := x.table.claim(how == byHandle)
	if err != nil {
		return flight{}, err
	}
	return flight{x: x, o: o, a: &o.access, name: name, unit: oneRemote, own: true}, nil
}

// post begins one piece, and takes off the slot what that has completed.
func (f *flight) post() (err error) {
	a, o := f.a, f.o
	a.Cookie = f.name
	o.left.Add(units(a.Want))
	var ev conduits.Event
	if a.At.Exposed() {
		ev, err = f.x.exposed.Post(a)
	} else {
		ev, err = f.x.ep.Post(a)
	}
	switch {
	case err != nil:
		ev = a.Want
	case ev&conduits.RemoteDone != 0 && o.kind != resultNone:
		o.deliver(a.Value)
	}
	if ev &= a.Want; ev != 0 {
		o.left.Add(-units(ev))
	}
	return err
}

// pieces begins the put or get of all of mem, in pieces if it is longer than the conduit takes.
func (f *flight) pieces(mem []byte) error {
	a := f.a
	for len(mem) > 0 {
		n := f.x.most(a.Rank, a.At, uint64(len(mem)))
		a.Mem = mem[:n]
		if err := f.post(); err != nil {
			return err
		}
		mem = mem[n:]
		a.At += segment.NLA(n)
	}
	a.Mem = nil
	return nil
}

// most is how much of an access of n bytes may be one operation of the conduit.
func (x *Initiator) most(rank int, a segment.NLA, n uint64) uint64 {
	if a.Exposed() {
		return x.exposed.Most(rank, a, n)
	}
	return min(n, x.maxLong)
}

// word begins to put the low n bytes of a.A.
func (f *flight) word(n int) error {
	a := f.a
	for n > 0 {
		w := 1
		for _, m := range [...]int{8, 4, 2} {
			if n >= m && uint64(a.At)%uint64(m) == 0 {
				w = m
				break
			}
		}
		a.Size = uint8(w)
		if err := f.post(); err != nil {
			return err
		}
		n -= w
		a.At += segment.NLA(w)
		a.A >>= 8 * w
	}
	return nil
}

// memset begins to put n equal bytes. The conduit reads them from one block,
// again and again; the collector frees it when it has done so.
func (f *flight) memset(value byte, n int) error {
	block := zeros[:]
	if value != 0 || n > 4*len(zeros) {
		block = make([]byte, min(n, 64<<10))
		fill(block, value)
	}
	for n > 0 {
		piece := block[:min(n, len(block))]
		if err := f.pieces(piece); err != nil {
			return err
		}
		n -= len(piece)
	}
	return nil
}

// deliver hands the result of an atomic or a value get to where the user wants it.
func (o *op) deliver(value uint64) {
	size := o.n
	if o.kind == resultValue {
		value, size = littleEndian(o.buf[:o.n]), 8
	}
	if o.val = value; o.result != nil {
		tell(o.result, size, value)
	}
}

// finish ends the call when all pieces have been begun, or one has failed with err.
func (f *flight) finish(err error, how completion) (h Handle, value uint64, _ error) {
	switch how {
	case byReturn:
		value, err = f.value(err)
	case byHandle:
		h, err = f.detach(err)
	default:
		err = f.leave(err)
	}
	return h, value, err
}

// value waits for the pieces and frees the slot.
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

// detach waits for the sources, if that was wanted, and says by which handle the rest goes on.
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

// leave waits for the sources, if that was wanted, and lets a region count the rest.
func (f *flight) leave(err error) error {
	if f.own {
		f.x.table.abandon(f.o, f.name, oneRemote)
		return err
	}
	if err == nil && f.a.Want&conduits.SourceDone != 0 && f.o.left.Load()&sourceMask != 0 {
		err = f.x.await(f.o, f.name, sourceMask)
	}
	if f.unit == oneRemote {
		spares.Put(f.a)
	}
	if f.o.left.Add(-f.unit) == 0 {
		f.x.ep.Wake(f.x.ep.Rank()) // another goroutine may wait for no more than this
	}
	return err
}

// spares are records for goroutines that begin operations of one region towards one rank at once.
var spares = sync.Pool{New: func() any { return new(conduits.Access) }}

func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// complete is the handle of an operation that was complete at once.
func (x *Initiator) complete(what string, dst int) (Handle, error) {
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
func (x *Initiator) admit() error {
	if x.always && x.table.outstanding() == MaxHandles {
		return errTooManyHandles()
	}
	return nil
}
