// The transport of bounces: accesses that the owner of the memory makes, asked for by
// active messages. It knows a bounce's request, sends what fits a message as there is
// credit, in order for each rank, and says when the last answer has come. The owner's
// side is the first three handlers below, the initiator's onBounced.
//
// An access that does not fit one message is moved by several. Arguments of the requests, the
// first two of which come back with the reply:
//
//	0 index of the access, 1 its gen, 2..3 address
//	read: 4 bytes, 5 where they are in the access
//	atomic: 4 operation | type<<8, 5..6 and 7..8 operands
//
// and of the reply: 2 status, 3..4 value, or 3 what was argument 5.

package firehose

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Indices of the handlers, of those of package extended.
const (
	handlerWrite   = am.FirstExtended + iota // medium request: put the payload
	handlerRead                              // short request
	handlerAtomic                            // short request
	handlerBounced                           // reply to all of them; medium if it carries data
)

// How many arguments they have.
const (
	writeArgs   = 4
	readArgs    = 6
	atomicArgs  = 9
	bouncedArgs = 5
)

// Answers of the owner.
const (
	bounceDone = iota
	bounceNotExposed
	bounceFault
	bounceUnaligned
	bounceRefused // the request is none
)

// errRefused: the memory is exposed, but not for that.
var errRefused = fmt.Errorf("the owner grants no such right to this rank: %w", segment.ErrFault)

// bounces is the transport. It is safe for concurrent use.
type bounces struct {
	route *Route // has the bounces' memory, and hears of their ends
	e     *am.Messenger
	reply []byte // of onRead, of which one runs at a time

	queued atomic.Int32 // bounces that are not all sent
	mu     sync.Mutex
	boxes  []outbox // no rank has two; none is empty and not busy
}

// bounce is an access that the owner makes. All but the first two fields are the
// transport's, under bounces.mu, until Route.bounced gets it.
type bounce struct {
	a          *conduits.Access
	index, gen uint32 // by which answers name it; gen differs for each use of index

	next    *bounce
	sent    int    // bytes that have been asked for
	out     int    // requests that have not been answered
	sending bool   // there is more to be asked for, so that no answer ends it
	value   uint64 // what an atomic found
	err     error  // the first
}

// outbox has the bounces that wait for credit towards one rank.
type outbox struct {
	rank        int
	busy        bool // a goroutine is sending
	first, last *bounce
}

func (q *outbox) add(b *bounce) {
	if q.first == nil {
		q.first = b
	} else {
		q.last.next = b
	}
	q.last = b
}

func (q *outbox) take() *bounce {
	b := q.first
	if b != nil {
		q.first, b.next = b.next, nil
	}
	return b
}

// back undoes take.
func (q *outbox) back(b *bounce) {
	if b.next = q.first; b.next == nil {
		q.last = b
	}
	q.first = b
}

func (t *bounces) handlers() []am.Entry {
	return []am.Entry{
		{Index: handlerWrite, Name: "extended.write", Fn: t.onWrite, Args: writeArgs, Kinds: am.Medium | am.Request},
		{Index: handlerRead, Name: "extended.read", Fn: t.onRead, Args: readArgs, Kinds: am.Short | am.Request},
		{Index: handlerAtomic, Name: "extended.atomic", Fn: t.onAtomic, Args: atomicArgs, Kinds: am.Short | am.Request},
		{Index: handlerBounced, Name: "extended.bounced", Fn: t.onBounced, Args: bouncedArgs, Kinds: am.Short | am.Medium | am.Reply},
	}
}

// start has the owner make a, for the access whose b is. Not in a handler.
func (t *bounces) start(b *bounce, a *conduits.Access, index, gen uint32) {
	rank := a.Rank // as soon as it is queued another goroutine may send it, and end it
	t.mu.Lock()
	*b = bounce{a: a, index: index, gen: gen, sending: true}
	k := t.box(rank)
	if k == nil {
		t.boxes = append(t.boxes, outbox{rank: rank})
		k = &t.boxes[len(t.boxes)-1]
	}
	k.add(b)
	t.queued.Add(1)
	t.mu.Unlock()
	t.send(rank)
}

// box finds the outbox towards rank. t.mu is held.
func (t *bounces) box(rank int) *outbox {
	for i := range t.boxes {
		if t.boxes[i].rank == rank {
			return &t.boxes[i]
		}
	}
	return nil
}

// sendAll sends what there is credit for. Not in a handler.
func (t *bounces) sendAll() {
	if t.queued.Load() == 0 {
		return
	}
	t.mu.Lock()
	for i := 0; i < len(t.boxes); i++ {
		rank := t.boxes[i].rank
		t.mu.Unlock()
		t.send(rank)
		t.mu.Lock()
	}
	t.mu.Unlock()
}

// send sends what there is credit for to one rank, in order. What has to wait
// does not hold up what goes to other ranks.
func (t *bounces) send(rank int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.box(rank)
	if q == nil || q.busy {
		return // nothing, or it is being sent
	}
	q.busy = true
	for {
		b := q.take()
		if b == nil {
			break
		}
		// The reply may be here before the request's sender goes on.
		b.out++
		n := min(int(b.a.Len())-b.sent, t.e.MaxMedium())
		t.mu.Unlock()
		sent, err := t.ask(b, n)
		t.mu.Lock()
		q = t.box(rank)
		if !sent && b.out > 0 { // else the owner has answered what it was not asked
			b.out--
		}
		if !sent && err == nil {
			q.back(b)
			q.busy = false
			return
		}
		b.sent += n
		if err != nil && b.err == nil {
			b.err = err
		}
		if b.sent < int(b.a.Len()) && b.err == nil {
			q.back(b)
			continue
		}
		t.queued.Add(-1)
		if b.sending = false; b.out == 0 {
			t.mu.Unlock()
			t.route.bounced(b)
			t.mu.Lock()
			q = t.box(rank)
		}
	}
	last := len(t.boxes) - 1
	*q = t.boxes[last]
	t.boxes[last] = outbox{}
	t.boxes = t.boxes[:last]
}

// ask sends a request for the next n bytes of b if there is credit.
func (t *bounces) ask(b *bounce, n int) (bool, error) {
	a := b.a
	lo, hi := am.Pack64(uint64(addrOf(a.At)) + uint64(b.sent))
	switch a.Verb {
	case conduits.Get:
		return t.e.TryRequestShort(a.Rank, handlerRead, b.index, b.gen, lo, hi, uint32(n), uint32(b.sent))
	case conduits.Atomic:
		vlo, vhi := am.Pack64(a.A)
		wlo, whi := am.Pack64(a.B)
		return t.e.TryRequestShort(a.Rank, handlerAtomic, b.index, b.gen, lo, hi, uint32(a.Op)|uint32(a.Type)<<8, vlo, vhi, wlo, whi)
	}
	return t.e.TryRequestMedium(a.Rank, handlerWrite, a.Mem[b.sent:b.sent+n:b.sent+n], b.index, b.gen, lo, hi)
}

// status encodes err, of an access at a, for the asker: a status, and two words with the
// address at which the memory ends that the access has run over.
func (t *bounces) status(a Addr, err error) (st, lo, hi uint32) {
	switch {
	case err == nil:
		return bounceDone, 0, 0
	case errors.Is(err, ErrNotExposed):
		lo, hi = am.Pack64(uint64(t.route.space.End(a)))
		return bounceNotExposed, lo, hi
	}
	return bounceFault, 0, 0
}

// wake has goroutines of this rank look again that wait for words of its memory.
func (t *bounces) wake() {
	c := t.e.Conduit()
	c.Wake(c.Rank())
}

// An error of a reply means that the job has failed, which waiters are told.

func (t *bounces) onWrite(k *am.Token, args []uint32, payload []byte) {
	a := Addr(am.Uint64(args, 2))
	err := t.route.space.Serve(k.Src(), a, uint64(len(payload)), segment.RightWrite, func(mem []byte) { copyWords(mem, payload) })
	if err == nil {
		t.wake()
	}
	st, lo, hi := t.status(a, err)
	_ = k.ReplyShort(handlerBounced, args[0], args[1], st, lo, hi)
}

func (t *bounces) onRead(k *am.Token, args []uint32, _ []byte) {
	n := args[4]
	if n == 0 || uint64(n) > uint64(t.e.MaxMedium()) {
		_ = k.ReplyShort(handlerBounced, args[0], args[1], bounceRefused, 0, 0)
		return
	}
	a := Addr(am.Uint64(args, 2))
	if cap(t.reply) < int(n) {
		t.reply = make([]byte, t.e.MaxMedium())
	}
	if err := t.route.space.Serve(k.Src(), a, uint64(n), segment.RightRead, func(mem []byte) { copyWords(t.reply[:n], mem) }); err != nil {
		st, lo, hi := t.status(a, err)
		_ = k.ReplyShort(handlerBounced, args[0], args[1], st, lo, hi)
		return
	}
	// Outside of Serve: the reply may have to wait for credit.
	_ = k.ReplyMedium(handlerBounced, t.reply[:n], args[0], args[1], bounceDone, args[5], 0)
}

func (t *bounces) onAtomic(k *am.Token, args []uint32, _ []byte) {
	op, typ := conduits.AtomicOp(args[4]), conduits.AtomicType(args[4]>>8)
	var value uint64
	var lo, hi uint32
	st := uint32(bounceRefused)
	if args[4]>>16 == 0 && conduits.CheckAtomic("", op, typ, 0) == nil {
		a := Addr(am.Uint64(args, 2))
		var ok bool
		err := t.route.space.Serve(k.Src(), a, uint64(typ.Size()), segment.RightAtomic, func(mem []byte) {
			value, ok = applyWord(mem, op, typ, am.Uint64(args, 5), am.Uint64(args, 7))
		})
		if st, lo, hi = t.status(a, err); err == nil {
			if ok {
				lo, hi = am.Pack64(value)
			} else {
				st = bounceUnaligned
			}
			t.wake()
		}
	}
	_ = k.ReplyShort(handlerBounced, args[0], args[1], st, lo, hi)
}

// onBounced takes an owner's answer. What is no answer to a request that is under
// way to that rank is dropped.
func (t *bounces) onBounced(k *am.Token, args []uint32, payload []byte) {
	b := t.route.bounceAt(args[0])
	if b != nil && t.answered(b, k.Src(), args, payload) {
		t.route.bounced(b)
	}
}

// answered enters rank's answer to b and reports whether it was the last.
func (t *bounces) answered(b *bounce, rank int, args []uint32, payload []byte) (over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b.out == 0 || b.gen != args[1] || b.a.Rank != rank {
		return false
	}
	var err error
	switch args[2] {
	case bounceDone:
		b.value = am.Uint64(args, 3)
		if b.a.Verb != conduits.Get {
			break
		}
		if at := uint64(args[3]); at+uint64(len(payload)) > uint64(len(b.a.Mem)) || len(payload) == 0 {
			err = errs.BadArg("the owner has sent %d bytes from %d on", len(payload), at)
		} else {
			copyWords(b.a.Mem[at:at+uint64(len(payload))], payload)
		}
	case bounceNotExposed:
		err = NotExposed(Addr(am.Uint64(args, 3)))
	case bounceFault:
		err = errRefused
	case bounceUnaligned:
		err = errUnaligned(b.a)
	default:
		err = errs.BadArg("the owner, rank %d, has refused the request as one that no rank sends (answer %d)", rank, args[2])
	}
	if err != nil && b.err == nil {
		b.err = err
	}
	b.out--
	return b.out == 0 && !b.sending
}
