package am

import (
	"fmt"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
)

// Event is the local completion of a non-blocking long message: it is done when
// the payload may be reused, also because the message's rank has failed, which
// the next call that waits reports. The zero Event is done. It belongs to the caller
// and may be used again once it is done; it must not be copied meanwhile.
type Event struct {
	pending atomic.Bool
}

// Done reports whether the payload may be reused. It does not poll.
func (ev *Event) Done() bool { return !ev.pending.Load() }

// WaitEvent polls until ev is done.
func (e *Messenger) WaitEvent(ev *Event) error { return e.Wait((*eventWait)(ev), ev.Done) }

// eventWait is an Event that is waited for.
type eventWait Event

// Blocked says so to people.
func (*eventWait) Blocked() string {
	return "am: until the payload of a long message has been read, and may be reused"
}

// source is one payload that a conduit still reads.
type source struct {
	ev   *Event // nil: a blocking call looks at done
	busy bool
	done bool
	err  error // why it will not arrive
	next int32 // of one not in use: see Messenger.free
}

// ownCookie marks the completions that belong to this package.
const ownCookie = 1 << 63

// begin finds a cookie for a payload that is about to be handed to the conduit.
func (e *Messenger) begin(op string, ev *Event) (uint64, error) {
	if ev != nil && !ev.pending.CompareAndSwap(false, true) {
		return 0, errEventInUse(op)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	i := int(e.free) - 1
	if i >= 0 {
		e.free = e.sources[i].next
	} else {
		i = len(e.sources)
		e.sources = append(e.sources, source{})
	}
	e.sources[i] = source{ev: ev, busy: true}
	return ownCookie | uint64(i), nil
}

func errEventInUse(op string) error {
	return errs.BadArg("am: %s: the event is in use by an earlier message", op)
}

// finish gives the cookie back: the payload may be reused.
func (e *Messenger) finish(cookie uint64) {
	i := int(cookie &^ ownCookie)
	e.mu.Lock()
	s := &e.sources[i]
	if ev := s.ev; ev != nil {
		ev.pending.Store(false)
	}
	*s = source{next: e.free}
	e.free = int32(i) + 1
	e.mu.Unlock()
}

// awaitSource waits for the conduit to have read a payload.
func (e *Messenger) awaitSource(op string, dst int, c conduits.Class, cookie uint64) error {
	var failed error
	err := e.await(op, dst, c, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		s := &e.sources[cookie&^ownCookie]
		failed = s.err
		return s.done
	})
	e.finish(cookie)
	if err == nil && failed != nil {
		err = fmt.Errorf("am: %s to rank %d: %w", op, dst, failed)
	}
	return err
}

// Complete routes completions; part of conduits.Receiver.
func (e *Messenger) Complete(cookie uint64, ev conduits.Event, value uint64, err error) {
	if cookie&ownCookie == 0 {
		e.completer.Complete(cookie, ev, value, err)
		return
	}
	if ev&conduits.SourceDone == 0 {
		return
	}
	e.mu.Lock()
	s := &e.sources[cookie&^ownCookie]
	blocking := s.ev == nil
	s.done, s.err = true, err
	e.mu.Unlock()
	if !blocking {
		e.finish(cookie)
	}
}
