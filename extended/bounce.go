package extended

import (
	"errors"
	"fmt"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Indices of this package's handlers, of the range 32..63 that it owns.
const (
	handlerWrite   am.HandlerID = 32 + iota // medium request: put the payload
	handlerRead                             // short request
	handlerAtomic                           // short request
	handlerBounced                          // reply to all of them; medium if it carries data
)

// What does not fit one message is moved by several. Arguments of the requests, the
// first two of which come back with the reply:
//
//	0 index of the piece, 1 its gen, 2..3 address
//	read: 4 bytes, 5 where they are in the piece
//	atomic: 4 operation | type<<8, 5..6 and 7..8 operands
//
// and of the reply: 2 status, 3..4 value, or 3 what was argument 5.
const (
	writeArgs   = 4
	readArgs    = 6
	atomicArgs  = 9
	bouncedArgs = 5
)

// What the owner says.
const (
	bounceDone = iota
	bounceNotExposed
	bounceFault
	bounceUnaligned
	bounceRefused // the request is none
)

func (f *far) handlers() []am.Entry {
	return append(f.cache.Handlers(),
		am.Entry{Index: handlerWrite, Name: "extended.write", Fn: f.onWrite, Args: writeArgs, Kinds: am.Medium | am.Request},
		am.Entry{Index: handlerRead, Name: "extended.read", Fn: f.onRead, Args: readArgs, Kinds: am.Short | am.Request},
		am.Entry{Index: handlerAtomic, Name: "extended.atomic", Fn: f.onAtomic, Args: atomicArgs, Kinds: am.Short | am.Request},
		am.Entry{Index: handlerBounced, Name: "extended.bounced", Fn: f.onBounced, Args: bouncedArgs, Kinds: am.Short | am.Medium | am.Reply})
}

// errRefused: the memory is exposed, but not for that.
var errRefused = fmt.Errorf("the owner grants no such right to this rank: %w", segment.ErrFault)

// bounce has the owner do p.
func (f *far) bounce(p *piece) {
	p.way = wayBounce
	dst := p.dst // as soon as it is queued somebody else may send it, and end it
	f.mu.Lock()
	p.out, p.sending = 0, true
	q := f.queue(dst)
	if q == nil {
		f.bounces = append(f.bounces, bounce{dst: dst})
		q = &f.bounces[len(f.bounces)-1]
	}
	q.pieces.add(p)
	f.todo.Add(1)
	f.mu.Unlock()
	f.send(dst)
}

// queue finds the queue of rank's bounces. f.mu is held.
func (f *far) queue(rank int) *bounce {
	for i := range f.bounces {
		if f.bounces[i].dst == rank {
			return &f.bounces[i]
		}
	}
	return nil
}

// sendAll sends what there is credit for.
func (f *far) sendAll() {
	f.mu.Lock()
	for i := 0; i < len(f.bounces); i++ {
		dst := f.bounces[i].dst
		f.mu.Unlock()
		f.send(dst)
		f.mu.Lock()
	}
	f.mu.Unlock()
}

// send sends what there is credit for to one rank, in order. What has to wait
// does not hold up what goes to other ranks.
func (f *far) send(dst int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queue(dst)
	if q == nil || q.busy {
		return // nothing, or somebody is sending it
	}
	q.busy = true
	for {
		p := q.pieces.take()
		if p == nil {
			break
		}
		// The reply may be here before the request's sender goes on.
		p.out++
		n := min(p.size()-p.done, f.e.MaxMedium())
		f.mu.Unlock()
		sent, err := f.request(p, n)
		f.mu.Lock()
		q = f.queue(dst)
		if !sent && p.out > 0 { // else the owner has answered what it was not asked
			p.out--
		}
		if !sent && err == nil {
			q.pieces.back(p)
			q.busy = false
			return
		}
		p.done += n
		if err != nil && p.err == nil {
			p.err = err
		}
		if p.done < p.size() && p.err == nil {
			q.pieces.back(p)
			continue
		}
		f.todo.Add(-1)
		if p.sending = false; p.out == 0 {
			f.mu.Unlock()
			f.end(p, p.err)
			f.mu.Lock()
			q = f.queue(dst)
		}
	}
	last := len(f.bounces) - 1
	*q = f.bounces[last]
	f.bounces[last] = bounce{}
	f.bounces = f.bounces[:last]
}

// request sends a request for the next n bytes of p if there is credit.
func (f *far) request(p *piece, n int) (bool, error) {
	lo, hi := am.Pack64(uint64(p.addr) + uint64(p.done))
	switch p.kind {
	case getPiece:
		return f.e.TryRequestShort(p.dst, handlerRead, p.index, p.gen, lo, hi, uint32(n), uint32(p.done))
	case atomicPiece:
		vlo, vhi := am.Pack64(p.v)
		wlo, whi := am.Pack64(p.w)
		return f.e.TryRequestShort(p.dst, handlerAtomic, p.index, p.gen, lo, hi, uint32(p.op)|uint32(p.typ)<<8, vlo, vhi, wlo, whi)
	}
	return f.e.TryRequestMedium(p.dst, handlerWrite, p.b[p.done:p.done+n:p.done+n], p.index, p.gen, lo, hi)
}

// status is what the owner says of err, of an access at a: a status, and two words, in
// which is where the memory ends that the access has run over.
func (f *far) status(a firehose.Addr, err error) (st, lo, hi uint32) {
	switch {
	case err == nil:
		return bounceDone, 0, 0
	case errors.Is(err, firehose.ErrNotExposed):
		lo, hi = am.Pack64(uint64(f.space.End(a)))
		return bounceNotExposed, lo, hi
	}
	return bounceFault, 0, 0
}

// An error of a reply means that the job has failed, which whoever waits hears of.

func (f *far) onWrite(t *am.Token, args []uint32, payload []byte) {
	a := firehose.Addr(am.Uint64(args, 2))
	err := f.space.Serve(t.Src(), a, uint64(len(payload)), segment.RightWrite, func(mem []byte) { copyWords(mem, payload) })
	if err == nil {
		f.x.ep.Wake(f.x.ep.Rank())
	}
	st, lo, hi := f.status(a, err)
	_ = t.ReplyShort(handlerBounced, args[0], args[1], st, lo, hi)
}

func (f *far) onRead(t *am.Token, args []uint32, _ []byte) {
	n := args[4]
	if n == 0 || uint64(n) > uint64(f.e.MaxMedium()) {
		_ = t.ReplyShort(handlerBounced, args[0], args[1], bounceRefused, 0, 0)
		return
	}
	a := firehose.Addr(am.Uint64(args, 2))
	if cap(f.reply) < int(n) {
		f.reply = make([]byte, f.e.MaxMedium())
	}
	if err := f.space.Serve(t.Src(), a, uint64(n), segment.RightRead, func(mem []byte) { copyWords(f.reply[:n], mem) }); err != nil {
		st, lo, hi := f.status(a, err)
		_ = t.ReplyShort(handlerBounced, args[0], args[1], st, lo, hi)
		return
	}
	// Outside of Serve: the reply may have to wait for credit.
	_ = t.ReplyMedium(handlerBounced, f.reply[:n], args[0], args[1], bounceDone, args[5], 0)
}

func (f *far) onAtomic(t *am.Token, args []uint32, _ []byte) {
	op, typ := conduits.AtomicOp(args[4]), conduits.AtomicType(args[4]>>8)
	var value uint64
	var lo, hi uint32
	st := uint32(bounceRefused)
	if args[4]>>16 == 0 && conduits.CheckAtomic("", op, typ, 0) == nil {
		a := firehose.Addr(am.Uint64(args, 2))
		var ok bool
		err := f.space.Serve(t.Src(), a, uint64(typ.Size()), segment.RightAtomic, func(mem []byte) {
			value, ok = applyWord(mem, op, typ, am.Uint64(args, 5), am.Uint64(args, 7))
		})
		if st, lo, hi = f.status(a, err); err == nil {
			if ok {
				lo, hi = am.Pack64(value)
			} else {
				st = bounceUnaligned
			}
			f.x.ep.Wake(f.x.ep.Rank())
		}
	}
	_ = t.ReplyShort(handlerBounced, args[0], args[1], st, lo, hi)
}

// onBounced takes an owner's answer. What is no answer to a request that is under
// way to that rank is dropped.
func (f *far) onBounced(t *am.Token, args []uint32, payload []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if uint64(args[0]) >= uint64(len(f.all)) {
		return
	}
	p := f.all[args[0]]
	if p.out == 0 || p.gen != args[1] || p.dst != t.Src() {
		return
	}
	var err error
	switch args[2] {
	case bounceDone:
		p.value = am.Uint64(args, 3)
		if p.kind != getPiece {
			break
		}
		if at := uint64(args[3]); at+uint64(len(payload)) > uint64(len(p.b)) || len(payload) == 0 {
			err = errs.BadArg("the owner has sent %d bytes from %d on", len(payload), at)
		} else {
			copyWords(p.b[at:at+uint64(len(payload))], payload)
		}
	case bounceNotExposed:
		err = firehose.NotExposed(firehose.Addr(am.Uint64(args, 3)))
	case bounceFault:
		err = errRefused
	case bounceUnaligned:
		err = errUnaligned(exposedAt(p.addr), p.dst, p.typ)
	default:
		err = errs.BadArg("the owner, rank %d, has refused the request as one that no rank sends (answer %d)", t.Src(), args[2])
	}
	if err != nil && p.err == nil {
		p.err = err
	}
	if p.out--; p.out == 0 && !p.sending {
		f.mu.Unlock()
		f.end(p, p.err)
		f.mu.Lock()
	}
}

// Exposes says whether there are exposed addresses; part of am.Exposer.
func (x *Endpoint) Exposes() bool { return x.far != nil }

// PutExposed is Put; part of am.Exposer.
func (x *Endpoint) PutExposed(dst int, to segment.NLA, src []byte) error { return x.Put(dst, to, src) }

// Deposit puts what rank src has sent to an exposed address of this rank; part of
// am.Exposer, not for users.
func (x *Endpoint) Deposit(src int, to segment.NLA, n uint64, data []byte) ([]byte, error) {
	var there []byte
	err := x.far.space.Serve(src, addrOf(to), n, segment.RightWrite, func(mem []byte) {
		there = mem
		if data != nil {
			copyWords(mem, data)
		}
	})
	return there, err
}
