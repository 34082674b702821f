package adapt

import (
	"encoding/binary"
	"errors"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// completion is what Complete is to be called with.
type completion struct {
	cookie uint64
	event  conduits.Event
	value  uint64
	err    error
}

// operation is a put, a get or an atomic that is under way. Its number is its index in
// Endpoint.ops.
type operation struct {
	name   string // "put" and so on; "": free, or the data of letter
	rank   int
	cookie uint64
	want   conduits.Event
	letter *letter        // to be sent when its data is in place
	class  conduits.Class // of letter

	atomic bool        // by message
	native bool        // an atomic of the Transport, whose result is in *old
	to     segment.NLA // of an atomic by message, with its size
	bytes  int

	// Kept for the next use of the number.
	word []byte  // of an immediate put
	old  *uint64 // of an atomic of the Transport
}

// begin numbers op; false if the endpoint is closed.
func (e *Endpoint) begin(op operation) (uint32, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed.Load() {
		return 0, false
	}
	if len(e.spare) == 0 {
		e.spare = append(e.spare, uint32(len(e.ops)))
		e.ops = append(e.ops, operation{})
	}
	id := e.spare[len(e.spare)-1]
	e.spare = e.spare[:len(e.spare)-1]
	op.word, op.old = e.ops[id].word, e.ops[id].old
	if op.native && op.old == nil {
		op.old = new(uint64)
	}
	e.ops[id] = op
	if !op.atomic {
		e.moving++
	}
	if op.letter != nil {
		e.ahead++
	}
	return id, true
}

// retire frees the number, with mu held.
func (e *Endpoint) retire(id uint32) operation {
	op := e.ops[id]
	if !op.atomic {
		e.moving--
	}
	if op.letter != nil {
		e.ahead--
	}
	e.ops[id] = operation{word: op.word, old: op.old}
	e.spare = append(e.spare, id)
	return op
}

// checkTarget is what the initiator of an operation can know.
func (e *Endpoint) checkTarget(op string, dst int, a segment.NLA, n uint64, need segment.Rights) error {
	if err := e.Err(); err != nil {
		return err
	}
	in := uint(dst) < uint(e.size) && conduits.InSegment(e, dst, a, n)
	if !in {
		if err := conduits.CheckRemote(e, e.name+": "+op, dst, a, n); err != nil {
			return err
		}
	}
	if in && e.SegmentRights(dst)&need != need {
		return errs.BadArg("%s: %s: rank %d attached its segment without the right to it (%v)", e.name, op, dst, need)
	}
	return nil
}

// Put copies src to dst's memory.
func (e *Endpoint) Put(dst int, to segment.NLA, src []byte, want conduits.Event, cookie uint64) (conduits.Event, error) {
	e.puts.Add(1)
	n := uint64(len(src))
	if err := e.checkTarget("put", dst, to, n, segment.RightWrite); err != nil {
		return 0, err
	}
	if n == 0 {
		return want, nil
	}
	if dst == e.rank {
		return e.putSelf("put", to, src, want)
	}
	id, ok := e.begin(operation{name: "put", rank: dst, cookie: cookie, want: want})
	if !ok {
		return 0, e.errClosed()
	}
	done, err := e.t.Put(dst, to, src, uint64(id))
	return e.moved(id, "put", dst, done, err, want)
}

// PutWord puts a word, from memory that stays until the put is done unless the
// Transport needs none.
func (e *Endpoint) PutWord(dst int, to segment.NLA, v uint64, n int, want conduits.Event, cookie uint64) (conduits.Event, error) {
	e.puts.Add(1)
	const op = "put of a word"
	if n < 1 || n > 8 || n&(n-1) != 0 || uint64(to)%uint64(n) != 0 {
		return 0, errs.BadArg("%s: %s: %d bytes at %v: 1, 2, 4 or 8, aligned", e.name, op, n, to)
	}
	if err := e.checkTarget(op, dst, to, uint64(n), segment.RightWrite); err != nil {
		return 0, err
	}
	id, ok := e.begin(operation{name: op, rank: dst, cookie: cookie, want: want})
	if !ok {
		return 0, e.errClosed()
	}
	if e.putWord != nil && dst != e.rank {
		done, err := e.putWord.PutWord(dst, to, v, n, uint64(id))
		return e.moved(id, op, dst, done, err, want)
	}
	w := e.wordOf(id)
	binary.LittleEndian.PutUint64(w, v)
	if dst == e.rank {
		ev, err := e.putSelf(op, to, w[:n], want)
		return e.moved(id, op, dst, true, err, ev)
	}
	done, err := e.t.Put(dst, to, w[:n], uint64(id))
	return e.moved(id, op, dst, done, err, want)
}

// putSelf is a put to this rank's own memory.
func (e *Endpoint) putSelf(op string, to segment.NLA, src []byte, want conduits.Event) (conduits.Event, error) {
	if b, ok := e.own.Bytes(to, uint64(len(src)), e.own.Size()); ok {
		bulk.Copy(b, src)
	} else if err := e.self(op, to, uint64(len(src)), segment.RightWrite, func(b []byte) { bulk.Copy(b, src) }); err != nil {
		return 0, err
	}
	e.waiters.notify()
	return want, nil
}

// wordOf is room for the word that operation id puts.
func (e *Endpoint) wordOf(id uint32) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ops[id].word == nil {
		e.ops[id].word = make([]byte, 8)
	}
	return e.ops[id].word
}

// Get copies from src's memory.
func (e *Endpoint) Get(dst []byte, src int, from segment.NLA, want conduits.Event, cookie uint64) (conduits.Event, error) {
	e.gets.Add(1)
	n := uint64(len(dst))
	if err := e.checkTarget("get", src, from, n, segment.RightRead); err != nil {
		return 0, err
	}
	if n == 0 {
		return want, nil
	}
	if src == e.rank {
		if err := e.self("get", from, n, segment.RightRead, func(b []byte) { bulk.Copy(dst, b) }); err != nil {
			return 0, err
		}
		return want, nil
	}
	id, ok := e.begin(operation{name: "get", rank: src, cookie: cookie, want: want})
	if !ok {
		return 0, e.errClosed()
	}
	done, err := e.t.Get(dst, src, from, uint64(id))
	return e.moved(id, "get", src, done, err, want)
}

// moved is what a put or get returns of which the Transport has said so.
func (e *Endpoint) moved(id uint32, name string, rank int, done bool, err error, want conduits.Event) (conduits.Event, error) {
	if !done && err == nil {
		return 0, nil
	}
	e.mu.Lock()
	e.retire(id)
	closed := e.closed.Load()
	e.mu.Unlock()
	if closed { // the carrier waits for the last operation
		e.waiters.notify()
	}
	if err != nil {
		return 0, e.explain(name, rank, err)
	}
	return want, nil
}

// Complete ends a put or get.
func (o owner) Complete(cookie uint64, err error) {
	e := o.e
	e.mu.Lock()
	defer e.mu.Unlock()
	op := e.retire(uint32(cookie))
	switch {
	case op.letter != nil:
		e.sendLong(op.rank, op.class, op.letter, err)
	case op.native:
		d := completion{cookie: op.cookie, event: op.want, value: *op.old}
		if err != nil {
			d.value, d.err = 0, e.explain(op.name, op.rank, err)
		}
		e.done.Add(d)
	case op.want != 0:
		switch {
		case err == nil:
		case op.want&conduits.RemoteDone == 0 && isFault(err):
			e.stats.Faults++
			err = nil
		default:
			err = e.explain(op.name, op.rank, err)
		}
		e.done.Add(completion{cookie: op.cookie, event: op.want, err: err})
	case isFault(err):
		e.stats.Faults++
	}
}

// isFault reports whether the target has refused the access.
func isFault(err error) bool {
	var fault *segment.FaultError
	return errors.As(err, &fault)
}

// explain says which operation on which rank has ended with err.
func (e *Endpoint) explain(name string, rank int, err error) error {
	switch {
	case isFault(err):
		return conduits.Fault(e.name+": "+name, rank, err)
	case e.t.Err() != nil: // if the rank left because the job failed, then that comes first
		return e.t.Err()
	case errors.Is(err, conduits.ErrClosed):
		return e.departed(name, rank)
	}
	return err
}

// departed is what operations on a rank that has left end with.
func (e *Endpoint) departed(name string, rank int) error {
	return &conduits.PeerError{Rank: rank, Op: e.name + ": " + name, Err: errLeft}
}

var errLeft = errors.New("it has left the job")

// Access is the target's part of puts and gets, and of this rank's own.
func (o owner) Access(src int, a segment.NLA, n uint64, need segment.Rights, f func(mem []byte)) error {
	e := o.e
	if e.closed.Load() {
		return e.errClosed()
	}
	if b, ok := e.own.Bytes(a, n, e.own.Size()); ok && (src == e.rank || e.rights&need == need) {
		f(b)
		return nil
	}
	b, u, err := e.registered(src, a, n, need)
	if err != nil {
		return err
	}
	if !segment.Touch(b, func() { f(b) }) {
		err = segment.Gone(src, a, n, need)
	}
	u.Exit()
	return err
}

// self has f access this rank's own memory.
func (e *Endpoint) self(op string, a segment.NLA, n uint64, need segment.Rights, f func(b []byte)) error {
	if err := (owner{e}).Access(e.rank, a, n, need, f); err != nil {
		return e.explain(op, e.rank, err)
	}
	return nil
}

// Atomic performs an operation on a word of dst, by a message to it unless the
// Transport does it.
func (e *Endpoint) Atomic(dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64, cookie uint64) (uint64, conduits.Event, error) {
	e.atomics.Add(1)
	if err := conduits.CheckAtomic(e.atomic, op, t, to); err != nil {
		return 0, 0, err
	}
	n := t.Size()
	if err := e.checkTarget("atomic", dst, to, uint64(n), segment.RightAtomic); err != nil {
		return 0, 0, err
	}
	if e.card != nil && e.native(dst, conduits.InSegment(e, dst, to, uint64(n)), op, t) {
		return e.atomicThere(dst, to, op, t, a, b, cookie)
	}
	if dst == e.rank {
		old, err := e.atomicHere(e.rank, to, op, t, a, b)
		if err != nil {
			return 0, 0, e.explain("atomic", dst, err)
		}
		e.waiters.notify()
		return old, conduits.RemoteDone, nil
	}
	id, ok := e.begin(operation{name: "atomic", rank: dst, cookie: cookie, want: conduits.RemoteDone, atomic: true, to: to, bytes: n})
	if !ok {
		return 0, 0, e.errClosed()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.peers[dst].left || e.failed {
		e.retire(id)
		return 0, 0, e.explain("atomic", dst, conduits.ErrClosed)
	}
	w := e.out[:8]
	w[0], w[1] = header(kindAtomic, 0, conduits.Tag(uint32(op)|uint32(t)<<8)), id
	put64(w[2:], uint64(to))
	put64(w[4:], a)
	put64(w[6:], b)
	e.transmit(dst, w, nil)
	return 0, 0, nil
}

// atomicThere has the Transport perform an atomic.
func (e *Endpoint) atomicThere(dst int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64, cookie uint64) (uint64, conduits.Event, error) {
	id, ok := e.begin(operation{name: "atomic", rank: dst, cookie: cookie, want: conduits.RemoteDone, native: true})
	if !ok {
		return 0, 0, e.errClosed()
	}
	e.mu.Lock()
	result := e.ops[id].old
	e.mu.Unlock()
	done, err := e.card.Atomic(dst, to, op, t, a, b, result, uint64(id))
	var old uint64
	if done {
		old = *result // another operation's as soon as the number is
	}
	ev, err := e.moved(id, "atomic", dst, done, err, conduits.RemoteDone)
	if done && dst == e.rank {
		e.waiters.notify()
	}
	return old, ev, err
}

// atomicHere performs an atomic of src on this rank's memory.
func (e *Endpoint) atomicHere(src int, to segment.NLA, op conduits.AtomicOp, t conduits.AtomicType, a, b uint64) (old uint64, err error) {
	n := uint64(t.Size())
	if mem, ok := e.own.Bytes(to, n, e.own.Size()); ok && (src == e.rank || e.rights&segment.RightAtomic != 0) {
		return apply(mem, op, t, a, b), nil
	}
	mem, u, err := e.registered(src, to, n, segment.RightAtomic)
	if err != nil {
		return 0, err
	}
	if !segment.Touch(mem, func() { old = apply(mem, op, t, a, b) }) {
		err = segment.Gone(src, to, n, segment.RightAtomic)
	}
	u.Exit()
	return old, err
}

// perform performs the atomic that src has asked for, and answers, with mu held.
func (e *Endpoint) perform(src int, op conduits.AtomicOp, t conduits.AtomicType, w []uint32) {
	if e.closed.Load() {
		return // src hears that this rank has left
	}
	id, a := w[0], segment.NLA(get64(w[1:]))
	x, y := get64(w[3:]), get64(w[5:])
	err := conduits.CheckAtomic(e.name, op, t, a)
	var old uint64
	if err == nil {
		old, err = e.atomicHere(src, a, op, t, x, y)
	}
	r := e.out[:6]
	r[0], r[1] = header(kindResult, 0, 0), id
	if err == nil {
		put64(r[2:], old)
		e.transmit(src, r[:4], nil)
		return
	}
	r[0] = header(kindResult, 0, 1)
	fault := &segment.FaultError{Page: a &^ (segment.PageSize - 1)}
	errors.As(err, &fault)
	put64(r[2:], uint64(fault.Page))
	put64(r[4:], uint64(fault.Have.Disclosed()))
	e.transmit(src, r, nil)
}

// result ends an atomic on src, with mu held; false if there is none of that number.
func (e *Endpoint) result(src int, refused bool, w []uint32) bool {
	id := w[0]
	if uint64(id) >= uint64(len(e.ops)) || !e.ops[id].atomic || e.ops[id].rank != src {
		return e.failed // which has ended it
	}
	op := e.retire(id)
	d := completion{cookie: op.cookie, event: op.want, value: get64(w[1:])}
	if refused {
		d.value, d.err = 0, conduits.Fault(e.name+": atomic", src, &segment.FaultError{
			Addr: op.to, Len: uint64(op.bytes), Need: segment.RightAtomic, VPID: uint16(min(e.rank, segment.AnyVPID)),
			Page: segment.NLA(get64(w[1:])), Have: segment.Entry(get64(w[3:])),
		})
	}
	e.done.Add(d)
	return true
}

// abandon ends the atomics on rank, which has left, or on all ranks if it is -1 and the
// job has failed, with mu held. Puts and gets are the Transport's to complete.
func (e *Endpoint) abandon(rank int) {
	for id := range e.ops {
		if op := e.ops[id]; op.atomic && (rank < 0 || op.rank == rank) {
			e.retire(uint32(id))
			e.done.Add(completion{cookie: op.cookie, event: op.want, err: e.explain(op.name, op.rank, conduits.ErrClosed)})
		}
	}
}

// Post begins an access.
func (e *Endpoint) Post(a *conduits.Access) (conduits.Event, error) { return conduits.PostBy(e, a) }
