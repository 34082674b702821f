package am

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
)

// Prepared is a medium message whose payload is being filled in place: the
// negotiated-payload interface. Between Prepare and Commit or Cancel, exactly
// one of which must follow, the goroutine must not call this package, and the
// receiver runs nothing that was sent to it later in the same class. It must
// not be copied.
type Prepared struct {
	e     *Messenger
	token *Token // of a reply
	dst   int
	class conduits.Class
	h     HandlerID
	nargs int
	slot  conduits.Slot
}

// PrepareMedium makes room for a medium request to handler h of dst with nargs
// arguments and as many payload bytes as can be had now between least and most.
// most may exceed MaxMedium; least may not. It waits, polling, while there is
// no room for least.
func (e *Messenger) PrepareMedium(dst int, h HandlerID, least, most, nargs int) (Prepared, error) {
	if err := prepareSizes(least, most, nargs); err != nil {
		return Prepared{}, err
	}
	if err := e.check("prepared request", dst, h, Medium|Request, nargs, least); err != nil {
		return Prepared{}, err
	}
	s, st := e.prepare(dst, conduits.Request, nargs, least, most)
	if st != conduits.Ready {
		var err error
		if s, err = e.awaitCredit("prepared request", dst, nargs, least); err != nil {
			return Prepared{}, err
		}
	}
	return Prepared{e: e, dst: dst, class: conduits.Request, h: h, nargs: nargs, slot: s}, nil
}

// TryPrepareMedium is PrepareMedium that returns false instead of waiting.
func (e *Messenger) TryPrepareMedium(dst int, h HandlerID, least, most, nargs int) (Prepared, bool, error) {
	if err := prepareSizes(least, most, nargs); err != nil {
		return Prepared{}, false, err
	}
	if err := e.check("prepared request", dst, h, Medium|Request, nargs, least); err != nil {
		return Prepared{}, false, err
	}
	s, st := e.prepare(dst, conduits.Request, nargs, least, most)
	if st != conduits.Ready {
		return Prepared{}, false, e.dead("prepared request", dst, st)
	}
	return Prepared{e: e, dst: dst, class: conduits.Request, h: h, nargs: nargs, slot: s}, true, nil
}

// PrepareMedium is the same for the reply; it counts as the reply.
func (t *Token) PrepareMedium(h HandlerID, least, most, nargs int) (Prepared, error) {
	if err := t.repliable("prepared reply", h, Medium|Reply, nargs, least); err != nil {
		return Prepared{}, err
	}
	if t.failed = prepareSizes(least, most, nargs); t.failed != nil {
		return Prepared{}, t.failed
	}
	p := Prepared{e: t.e, token: t, dst: t.m.Src, class: conduits.Reply, h: h, nargs: nargs}
	var st conduits.Status
	if p.slot, st = t.e.prepare(t.m.Src, conduits.Reply, nargs, least, most); st != conduits.Ready {
		var err error
		if p.slot, err = t.awaitCredit("prepared reply", nargs, least); err != nil {
			return Prepared{}, err
		}
	}
	t.replied, t.failed = true, errPrepared
	return p, nil
}

// errPrepared stands in Token.failed while a prepared reply is neither committed
// nor cancelled: the requester's later replies would wait behind it for ever.
var errPrepared = errs.BadArg("the reply that it prepared was neither committed nor cancelled")

func prepareSizes(least, most, nargs int) error {
	if least < 0 || most < least || nargs < 0 {
		return errs.BadArg("am: prepare of %d arguments with least %d and most %d: 0 <= arguments, 0 <= least <= most", nargs, least, most)
	}
	return nil
}

// prepare asks for most, and for least if there is not so much room.
func (e *Messenger) prepare(dst int, c conduits.Class, nargs, least, most int) (conduits.Slot, conduits.Status) {
	want := min(most, int(e.max))
	s, st := e.ep.Reserve(dst, c, nargs, want)
	if st == conduits.NoCredit && least < want {
		return e.ep.Reserve(dst, c, nargs, least)
	}
	return s, st
}

// Payload is the buffer to fill, of least to most bytes; its content is
// undefined at first. It is aligned to 8 bytes.
func (p *Prepared) Payload() []byte { return p.slot.Payload }

// Commit sends the first n bytes of the payload with args, as many as announced.
// After an error about n or args the message is still prepared.
func (p *Prepared) Commit(n int, args ...uint32) error {
	switch {
	case p.e == nil:
		return errs.BadArg("am: commit of a message to handler %d of rank %d that is not prepared, or has been committed or cancelled", p.h, p.dst)
	case n < 0 || n > len(p.slot.Payload):
		return errs.BadArg("am: commit of %d bytes to handler %d of rank %d; %d were prepared", n, p.h, p.dst, len(p.slot.Payload))
	case len(args) != p.nargs:
		return errs.BadArg("am: commit with %d arguments to handler %d of rank %d; prepared for %d", len(args), p.h, p.dst, p.nargs)
	}
	copy(p.slot.Words, args)
	p.e.ep.Commit(p.dst, p.class, p.slot, tagMedium|conduits.Tag(p.h), n)
	if p.token != nil {
		p.token.failed = nil
	}
	p.e = nil
	return nil
}

// Cancel gives the room back; nothing is sent, and a handler may reply again.
func (p *Prepared) Cancel() error {
	if p.e == nil {
		return errs.BadArg("am: cancel of a message to handler %d of rank %d that is not prepared, or has been committed or cancelled", p.h, p.dst)
	}
	p.e.ep.Cancel(p.dst, p.class, p.slot)
	if p.token != nil {
		p.token.replied, p.token.failed = false, nil
	}
	p.e = nil
	return nil
}
