package am

import (
	"fmt"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// Token is a handler's means to learn where its message comes from and to
// reply. It is valid until the handler returns and must not leave its goroutine.
type Token struct {
	e       *Messenger
	m       *conduits.Message // of the handler that runs, or ran last
	active  bool
	replied bool
	handler HandlerID // for a handler that keeps the token too long: m is not its own to read
	failed  error     // of a reply that was not sent
}

// Src is the rank that sent the message; the conduit vouches for it.
func (t *Token) Src() int { return t.m.Src }

// Messenger is the receiving rank's.
func (t *Token) Messenger() *Messenger { return t.e }

// User is Config.User of the receiving rank.
func (t *Token) User() any {
	if t.e.given == nil {
		return nil
	}
	return t.e.given.user
}

// Handler is the index of the running handler.
func (t *Token) Handler() HandlerID { return t.handler }

// Kind is the kind of the message: Short, Medium or Long, with Request or Reply.
func (t *Token) Kind() Kind {
	k := Request
	if t.m.Class == conduits.Reply {
		k = Reply
	}
	return k | Short<<(t.m.Tag>>8)
}

// To is the address that a long message's payload was put to, also when the
// payload is empty; 0 for other messages.
func (t *Token) To() segment.NLA { return t.m.To }

// describe names the handler for messages to people.
func (t *Token) describe() string {
	if g := t.e.given; g != nil && g.describe != nil {
		if s := g.describe(t.Handler()); s != "" {
			return s
		}
	}
	return fmt.Sprintf("%d (%s)", t.Handler(), t.e.table.name(t.Handler()))
}

// misuse reports a broken rule of the interface: the other side may wait for
// what will not come, so the job fails with the same words.
func (t *Token) misuse(format string, args ...any) error {
	err := errs.BadArg(format, args...)
	t.e.ep.Fail(err)
	return err
}

// Receive runs the handler of one message; part of conduits.Receiver.
func (e *Messenger) Receive(m *conduits.Message) {
	h := HandlerID(m.Tag)
	fn := e.fn(h)
	if fn == nil {
		e.unregistered(m)
		return
	}
	t := &e.token[m.Class]
	if t.m != m { // the conduit uses the same one again and again
		t.m = m
	}
	t.active, t.replied, t.handler = true, false, h
	was := e.checks // only the goroutine that polls changes it; replies may nest
	conc.Release32(&e.checks, was|checkRunning)
	fn(t, m.Words, m.Payload)
	conc.Release32(&e.checks, was)
	t.active = false
	if t.failed != nil {
		t.unanswered()
	}
}

// unregistered fails the job for a message to a handler that there is not.
//
//go:noinline
func (e *Messenger) unregistered(m *conduits.Message) {
	e.ep.Fail(fmt.Errorf("am: rank %d sent a %v to handler %d, which is not registered here", m.Src, m.Class, HandlerID(m.Tag)))
}

// unanswered fails the job when a handler dropped the error of its reply, or
// left a prepared one as it was.
func (t *Token) unanswered() {
	err := t.failed
	t.failed = nil
	if (!t.replied || err == errPrepared) && t.e.ep.Err() == nil {
		t.misuse("am: handler %s did not reply, having failed to: %v", t.describe(), err)
	}
}

// repliable checks a reply and claims the one reply there is.
func (t *Token) repliable(op string, h HandlerID, k Kind, nargs, payload int) error {
	ent := t.e.signature(h)
	if t.active && !t.replied && t.m.Class == conduits.Request &&
		ent.kinds&k == k && (int(ent.args) == nargs || ent.args < 0 && uint(nargs) <= MaxArgs) && payload <= int(t.e.max) {
		return nil
	}
	switch {
	case !t.active:
		return t.misuse("am: %s by a token of handler %s, which has returned", op, t.describe())
	case t.m.Class == conduits.Reply:
		return t.misuse("am: %s in handler %s, which runs for a reply: only a request can be replied to", op, t.describe())
	case t.replied:
		return t.misuse("am: second reply in handler %s: a request is replied to at most once", t.describe())
	}
	t.failed = t.e.sendable(op, h, k, nargs, payload)
	return t.failed
}

// ReplyShort sends args to handler h of the requester. At most one reply may be
// sent by a request's handler; it waits, running replies only, while there is
// no credit.
func (t *Token) ReplyShort(h HandlerID, args ...uint32) error {
	if err := t.repliable("short reply", h, Short|Reply, len(args), 0); err != nil {
		return err
	}
	t.replied = true
	tag := tagShort | conduits.Tag(h)
	if st := t.e.ep.Send(t.m.Src, conduits.Reply, tag, noescape(args)); st != conduits.Ready {
		return t.e.awaitSend("short reply", t.m.Src, conduits.Reply, tag, args, nil)
	}
	return nil
}

// ReplyMedium is ReplyShort with a payload of 0 to MaxMedium bytes, copied.
func (t *Token) ReplyMedium(h HandlerID, payload []byte, args ...uint32) error {
	if err := t.repliable("medium reply", h, Medium|Reply, len(args), len(payload)); err != nil {
		return err
	}
	t.replied = true
	tag := tagMedium | conduits.Tag(h)
	if st := t.e.send(t.m.Src, conduits.Reply, tag, args, payload); st != conduits.Ready {
		return t.e.awaitSend("medium reply", t.m.Src, conduits.Reply, tag, args, payload)
	}
	return nil
}

// ReplyLong puts payload to address to of the requester, as RequestLong does,
// before the handler runs there. It returns when payload may be reused. To an
// exposed address payload has at most MaxMedium bytes.
func (t *Token) ReplyLong(h HandlerID, to segment.NLA, payload []byte, args ...uint32) error {
	if err := t.repliable("long reply", h, Long|Reply, len(args), 0); err != nil {
		return err
	}
	sent, err := t.e.putMessage("long reply", t.m.Src, conduits.Reply, h, to, payload, nil, true, args)
	t.replied = sent
	t.failed = err
	return err
}

// TryReplyShort is ReplyShort that returns false instead of waiting; the handler
// may try again or return without having replied.
func (t *Token) TryReplyShort(h HandlerID, args ...uint32) (bool, error) {
	if err := t.repliable("short reply", h, Short|Reply, len(args), 0); err != nil {
		return false, err
	}
	st := t.e.ep.Send(t.m.Src, conduits.Reply, tagShort|conduits.Tag(h), noescape(args))
	if st != conduits.Ready {
		return false, t.e.dead("short reply", t.m.Src, st)
	}
	t.replied = true
	return true, nil
}

// awaitCredit waits for room for a reply.
func (t *Token) awaitCredit(op string, words, payload int) (s conduits.Slot, err error) {
	var st conduits.Status
	err = t.e.await(op, t.m.Src, conduits.Reply, func() bool {
		s, st = t.e.ep.Reserve(t.m.Src, conduits.Reply, words, payload)
		return st != conduits.NoCredit
	})
	if err == nil {
		err = t.e.dead(op, t.m.Src, st)
	}
	t.failed = err
	return s, err
}
