package am

import (
	"fmt"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Exposer moves the payloads of long messages to exposed addresses, which
// conduits do not know; package extended.
type Exposer interface {
	// Exposes reports whether there are such addresses; the others are called only
	// if there are. All ranks must answer the same.
	Exposes() bool
	// PutExposed puts src to exposed address to of rank dst, and waits until it
	// is there. It is not called in handlers.
	PutExposed(dst int, to segment.NLA, src []byte) error
	// Deposit returns the n bytes at exposed address to of this rank, if rank src
	// may write them, and copies data there unless it is nil. It is called in
	// handlers.
	Deposit(src int, to segment.NLA, n uint64, data []byte) ([]byte, error)
}

// exposed is the state of a Messenger whose Exposer exposes memory.
type exposed struct {
	Exposer
	faults   atomic.Uint64
	messages *[conduits.NumClasses]conduits.Message // as the handlers see them; nil before the first
}

// A long message to an exposed address travels as a message to handler hExposed,
// whose words are these and the arguments:
//
//	0     handler (8), 0 (8), high half of the payload's length (16)
//	1     low half
//	2..3  address
//
// A payload that fits travels with it; a longer one has been put before.
const exposedHead = 4

// hExposed is the handler of these messages, and one that Attach keeps.
const hExposed HandlerID = firstRuntime - 1

// Faults is how many long messages to exposed addresses of this rank were not
// delivered because their sender has no right to write there, or nothing is
// exposed there any more. What went to registered addresses the conduit counts.
func (e *Messenger) Faults() uint64 {
	if e.exposed == nil {
		return 0
	}
	if s := e.shared(); s != nil {
		return s.faults()
	}
	return e.exposed.faults.Load()
}

// putExposed is putMessage for an exposed address.
func (e *Messenger) putExposed(op string, dst int, c conduits.Class, h HandlerID, to segment.NLA, payload []byte, ev *Event, wait bool, args []uint32) (bool, error) {
	n := uint64(len(payload))
	switch {
	case e.exposed == nil:
		return false, errs.NotSupported("am: %s: %v is an exposed address: Config.Exposer knows none", op, to)
	case n > uint64(segment.ExposedLimit-to):
		return false, errs.BadArg("am: %s: %d bytes at %v: exposed addresses end at %#x", op, n, to, uint64(segment.ExposedLimit-segment.ExposedBase))
	case ev != nil && !ev.Done():
		return false, errEventInUse(op)
	case n > uint64(e.max) && c == conduits.Reply:
		return false, errs.NotSupported("am: %s: payload of %d bytes to an exposed address: a reply, which must not wait, brings at most %d there (MaxMedium)", op, n, int(e.max))
	case n > uint64(e.max):
		if err := e.inHandler(op); err != nil {
			return false, err
		}
		if err := e.exposed.PutExposed(dst, to, payload); err != nil {
			return false, fmt.Errorf("am: %s: %w", op, err)
		}
		payload = nil
	}
	var buf [exposedHead + MaxArgs]uint32
	words := buf[:exposedHead+len(args)]
	words[0], words[1] = uint32(h)|uint32(n>>32)<<16, uint32(n)
	words[2], words[3] = PackNLA(to)
	copy(words[exposedHead:], args)
	tag := tagMedium | conduits.Tag(hExposed)
	st := e.send(dst, c, tag, words, payload)
	if st == conduits.NoCredit && wait {
		err := e.awaitSend(op, dst, c, tag, append([]uint32(nil), words...), payload)
		return err == nil, err
	}
	err := e.dead(op, dst, st)
	return st == conduits.Ready, err
}

// onExposed runs the handler that a message to an exposed address is for. One
// whose sender may not write there is not delivered.
func (*Messenger) onExposed(t *Token, words []uint32, payload []byte) {
	e := t.e // which may be a lane
	if len(words) < exposedHead {
		e.ep.Fail(errs.BadArg("am: rank %d sent a broken message to an exposed address", t.Src()))
		return
	}
	h, n, to := HandlerID(words[0]), uint64(words[1])|uint64(words[0]>>16)<<32, UnpackNLA(words[2], words[3])
	args := words[exposedHead:]
	k := Long | Request
	if t.m.Class == conduits.Reply {
		k = Long | Reply
	}
	err := e.sendable("message to an exposed address", h, k, len(args), 0)
	if err == nil && (!to.Exposed() || payload != nil && uint64(len(payload)) != n) {
		err = errs.BadArg("am: %d bytes to %v, of which %d are here", n, to, len(payload))
	}
	if err != nil {
		e.ep.Fail(fmt.Errorf("am: rank %d sent a broken message: %w", t.Src(), err))
		return
	}
	var mem []byte
	if n > 0 {
		if mem, err = e.exposed.Deposit(t.Src(), to, n, payload); err != nil {
			e.exposed.faults.Add(1)
			return
		}
	}
	// The conduit's own message stays as it is.
	if e.exposed.messages == nil {
		e.exposed.messages = new([conduits.NumClasses]conduits.Message)
	}
	m := &e.exposed.messages[t.m.Class]
	*m = conduits.Message{Src: t.m.Src, Class: t.m.Class, Tag: tagLong | conduits.Tag(h), Words: args, Payload: mem, To: to}
	t.m, t.handler = m, h
	e.fn(h)(t, args, mem)
}
