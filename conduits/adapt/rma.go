package adapt

import (
	"encoding/binary"
	"errors"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/segment"
)

// completion has the arguments for a call of Complete.
type completion struct {
	cookie uint64
	event  conduits.Event
	value  uint64
	err    error
}

// operation is a put, a get or an atomic that is under way. Its number is its index in
// Endpoint.ops.
type operation struct {
	verb   conduits.Verb
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

// begin numbers op; false if the endpoint is closed. It counts a, unless that is nil or counted by owned.
func (e *Endpoint) begin(op operation, a *conduits.Access) (uint32, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a != nil && a.Rank != e.rank {
		e.tally.Accessed(a)
	}
	return begun(e, op)
}

// begun is begin with mu held.
func begun(e *Endpoint, op operation) (uint32, bool) {
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

// Post has the Transport make an access, unless it is to this rank's own memory or an atomic
// that goes by a message.
func (e *Endpoint) Post(a *conduits.Access) (conduits.Event, error) {
	if a.Now {
		return 0, nil
	}
	if err := e.Err(); err != nil {
		return 0, err
	}
	if err := conduits.CheckAccess(e, e.name, a); err != nil {
		return 0, err
	}
	n := a.Len()
	if a.Rank == e.rank {
		e.owned.Accessed(a)
	} else if n == 0 {
		e.mu.Lock()
		e.tally.Accessed(a)
		e.mu.Unlock()
	}
	switch {
	case n == 0:
		return a.Want, nil
	case a.Verb == conduits.Atomic && e.card != nil && e.native(a.Rank, conduits.InSegment(e, a.Rank, a.At, n), a.Op, a.Type):
		return e.postThere(a)
	case a.Rank == e.rank:
		return e.postOwn(a)
	case a.Verb == conduits.Atomic:
		return e.postAtomic(a)
	}
	id, ok := e.begin(operation{verb: a.Verb, rank: a.Rank, cookie: a.Cookie, want: a.Want}, a)
	if !ok {
		return 0, e.errClosed()
	}
	var done bool
	var err error
	switch {
	case a.Verb == conduits.Put:
		done, err = e.t.Put(a.Rank, a.At, a.Mem, uint64(id))
	case a.Verb == conduits.Get:
		done, err = e.t.Get(a.Mem, a.Rank, a.At, uint64(id))
	case e.putWord != nil:
		done, err = e.putWord.PutWord(a.Rank, a.At, a.A, int(a.Size), uint64(id))
	default: // from memory that stays until the put is done
		w := e.wordOf(id)
		binary.LittleEndian.PutUint64(w, a.A)
		done, err = e.t.Put(a.Rank, a.At, w[:a.Size], uint64(id))
	}
	return e.moved(id, a, done, err)
}

// postOwn makes an access to this rank's own memory.
func (e *Endpoint) postOwn(a *conduits.Access) (conduits.Event, error) {
	if b, ok := e.own.Bytes(a.At, a.Len(), e.own.Size()); ok && !e.closed.Load() {
		a.PerformOn(b)
	} else if err := (owner{e}).Access(e.rank, a.At, a.Len(), a.Need(), a.PerformOn); err != nil {
		return 0, e.explain(a.Verb, e.rank, err)
	}
	if a.Writes() {
		e.waiters.notify()
	}
	return a.Wanted(), nil
}

// postAtomic asks the rank by a message to perform an atomic.
func (e *Endpoint) postAtomic(a *conduits.Access) (conduits.Event, error) {
	op := operation{verb: a.Verb, rank: a.Rank, cookie: a.Cookie, want: conduits.RemoteDone, atomic: true, to: a.At, bytes: a.Type.Size()}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tally.Accessed(a)
	if e.peers[a.Rank].left || e.failed { // which abandons only what has begun
		return 0, e.explain(a.Verb, a.Rank, conduits.ErrClosed)
	}
	id, ok := begun(e, op)
	if !ok {
		return 0, e.errClosed()
	}
	w := e.out[:8]
	w[0], w[1] = header(kindAtomic, 0, conduits.Tag(uint32(a.Op)|uint32(a.Type)<<8)), id
	put64(w[2:], uint64(a.At))
	put64(w[4:], a.A)
	put64(w[6:], a.B)
	e.transmit(a.Rank, w, nil)
	return 0, nil
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

// moved returns the result of a put or get for which the Transport returned done and err.
func (e *Endpoint) moved(id uint32, a *conduits.Access, done bool, err error) (conduits.Event, error) {
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
		return 0, e.explain(a.Verb, a.Rank, err)
	}
	return a.Wanted(), nil
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
			d.value, d.err = 0, e.explain(op.verb, op.rank, err)
		}
		e.done.Add(d)
	case op.want != 0:
		switch {
		case err == nil:
		case op.want&conduits.RemoteDone == 0 && isFault(err):
			e.faults++
			err = nil
		default:
			err = e.explain(op.verb, op.rank, err)
		}
		e.done.Add(completion{cookie: op.cookie, event: op.want, err: err})
	case isFault(err):
		e.faults++
	}
}

// isFault reports whether the target has refused the access.
func isFault(err error) bool {
	var fault *segment.FaultError
	return errors.As(err, &fault)
}

// explain is the error of an operation on rank that has ended with err.
func (e *Endpoint) explain(verb conduits.Verb, rank int, err error) error {
	switch {
	case isFault(err):
		return conduits.Fault(e.name+": "+verb.String(), rank, err)
	case e.t.Err() != nil: // if the rank left because the job failed, then that comes first
		return e.t.Err()
	case errors.Is(err, conduits.ErrClosed):
		return e.departed(verb, rank)
	}
	return err
}

// departed is the error of operations on a rank that has left.
func (e *Endpoint) departed(verb conduits.Verb, rank int) error {
	return &conduits.PeerError{Rank: rank, Op: e.name + ": " + verb.String(), Err: errLeft}
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
	return conduits.Reach(e.unit(), src, a, n, need, f)
}

// postThere has the Transport perform an atomic.
func (e *Endpoint) postThere(a *conduits.Access) (conduits.Event, error) {
	id, ok := e.begin(operation{verb: a.Verb, rank: a.Rank, cookie: a.Cookie, want: conduits.RemoteDone, native: true}, a)
	if !ok {
		return 0, e.errClosed()
	}
	e.mu.Lock()
	result := e.ops[id].old
	e.mu.Unlock()
	done, err := e.card.Atomic(a.Rank, a.At, a.Op, a.Type, a.A, a.B, result, uint64(id))
	if done {
		a.Value = *result // another operation's as soon as the number is
	}
	ev, err := e.moved(id, a, done, err)
	if done && a.Rank == e.rank {
		e.waiters.notify()
	}
	return ev, err
}

// perform performs the atomic that src has asked for, and answers, with mu held.
func (e *Endpoint) perform(src int, op conduits.AtomicOp, t conduits.AtomicType, w []uint32) {
	if e.closed.Load() {
		return // src hears that this rank has left
	}
	id := w[0]
	a := conduits.Access{Verb: conduits.Atomic, Op: op, Type: t, At: segment.NLA(get64(w[1:])), A: get64(w[3:]), B: get64(w[5:])}
	err := conduits.CheckAtomic(e.name, op, t, a.At)
	if err == nil {
		err = (owner{e}).Access(src, a.At, a.Len(), segment.RightAtomic, a.PerformOn)
	}
	r := e.out[:6]
	r[0], r[1] = header(kindResult, 0, 0), id
	if err == nil {
		put64(r[2:], a.Value)
		e.transmit(src, r[:4], nil)
		return
	}
	r[0] = header(kindResult, 0, 1)
	fault := &segment.FaultError{Page: a.At &^ (segment.PageSize - 1)}
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
			e.done.Add(completion{cookie: op.cookie, event: op.want, err: e.explain(op.verb, op.rank, conduits.ErrClosed)})
		}
	}
}
