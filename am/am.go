package am

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// The errors that this package's errors wrap.
var (
	ErrNotInit  = errs.ErrNotInit
	ErrResource = errs.ErrResource
	ErrBadArg   = errs.ErrBadArg
	ErrClosed   = errs.ErrClosed
	ErrPeer     = errs.ErrPeer
	ErrExit     = errs.ErrExit
)

// PeerError names a rank that failed, and why.
//
//	type PeerError struct {
//		Rank int    // the rank that failed; negative: none in particular
//		Op   string // what the caller was doing, such as "request short" or "barrier"
//		Err  error  // why: how the rank ended, as far as is known
//		Own  bool   // Rank is the rank that has the error: others have declared it failed
//	}
type PeerError = errs.PeerError

// HandlerID is an index into the handler table.
type HandlerID = uint8

// Limits of the interface; those of payloads are asked of a Messenger.
const (
	MaxArgs     = 16  // 32-bit arguments of a message
	FirstClient = 128 // handlers below belong to the runtime
	NumHandlers = 256
)

// Handler runs at the receiver. args has as many elements as were sent; payload
// is nil for a short message. Both, and t, are valid until it returns.
type Handler func(t *Token, args []uint32, payload []byte)

// Kind is a set of message kinds that a handler accepts.
type Kind uint8

// The kinds. A set that has none of Short, Medium and Long has all three, one
// that has neither Request nor Reply has both; so 0 accepts everything.
const (
	Short Kind = 1 << iota
	Medium
	Long
	Request
	Reply

	categories = Short | Medium | Long
	classes    = Request | Reply
)

// String lists the kinds, as "short|request".
func (k Kind) String() string {
	s := ""
	for i, n := range [...]string{"short", "medium", "long", "request", "reply"} {
		if k&(1<<i) != 0 {
			if s != "" {
				s += "|"
			}
			s += n
		}
	}
	return s
}

func (k Kind) normal() Kind {
	if k&categories == 0 {
		k |= categories
	}
	if k&classes == 0 {
		k |= classes
	}
	return k
}

// AnyArgs as Entry.Args accepts every number of arguments.
const AnyArgs = -1

// Entry registers one handler. Tables must agree between ranks in index, name,
// number of arguments and kinds.
type Entry struct {
	// Index is 128..255 for clients; the layers above have ranges, see FirstBarrier. 0 lets Attach choose, from 255 downwards,
	// and write the choice back into the slice it was given.
	Index HandlerID
	Name  string // for messages to people; required
	Fn    Handler
	Args  int  // how many arguments, or AnyArgs
	Kinds Kind // what it accepts; 0 means everything
}

// Config is the argument of Attach: a rank's handlers, segment and hooks.
type Config struct {
	// Handlers are the client's, 128..255.
	Handlers []Entry
	// Runtime are those of the layers above, 16..127: what barrier, extended,
	// firehose and gas return from their Handlers methods, and those of other layers
	// from FirstFree on. The names of a package's handlers begin with its own, and
	// their indices are of its range; see FirstBarrier and its kin.
	Runtime []Entry
	// SegmentSize in bytes, a multiple of segment.PageSize; may be 0 and may
	// differ between ranks.
	SegmentSize uint64
	// Lock as conduits.AttachConfig has it.
	Lock *segment.Locks
	// Rights that peers have in the segment; 0 means all.
	Rights segment.Rights
	// Completer gets the completions of RMA operations whose cookie has bit 63
	// clear; package extended. nil if none is started.
	Completer Completer
	// Exposer carries long messages to exposed addresses, if its Exposes reports true;
	// package extended has one. nil refuses such addresses. All ranks have an Exposer
	// or none does.
	Exposer Exposer
	// User is the rank's state of the layer above, which handlers get by Token.User.
	// Package gas has its Node there, see gas.NodeOf. Set before Attach, because
	// a handler may run before Attach returns.
	User any
	// Describe names the function that the handler of index h runs right now, if a layer
	// runs many by one handler; errors about handlers that break a rule print it. nil, or
	// the answer "", stands for the handler's name. The goroutine that runs the handler
	// calls it.
	Describe func(h HandlerID) string
	// Lane, if not nil, gives the state of the layer above for a lane. It is called once for
	// each, before a handler runs there, by any goroutine, in handlers of other lanes, too,
	// so that it must not wait. With nil lanes use the fields of this Config.
	Lane func(i int, l *Messenger) Lane
	// Work is the queue of functions that handlers have put off; goroutines in WaitFor with
	// Cond.Work run them, those of all lanes. nil if nothing is ever put off.
	Work Work
	// Debug checks at every request, poll and wait that the caller is not in a
	// handler even where no handler seems to run. About 2 ns a call.
	Debug bool
}

// Lane is the state of the layer above for one lane, in place of Config's fields of these
// names.
type Lane struct {
	Completer Completer
	Exposer   Exposer
	User      any
	Describe  func(h HandlerID) string
}

// Work is a queue of functions that handlers have put off because they may wait. Its
// methods may be called by many goroutines.
type Work interface {
	// Pending reports whether there is some. It is called as often as a condition that is
	// waited for.
	Pending() bool
	// Run runs some of it, if any, on the calling goroutine, which runs no handler. It may wait.
	Run()
}

// Completer gets completions; see conduits.Receiver.
type Completer interface {
	Complete(cookie uint64, ev conduits.Event, value uint64, err error)
}

// Messenger is one rank's access to active messages.
type Messenger struct {
	ep   conduits.Endpoint
	size int32
	max  int32 // medium payload
	// Long payload, whatever the size of segments.
	maxLong uint64
	// checks is why calls look where they are made from: checkRunning while a
	// handler runs, on whatever goroutine, and checkAlways with Config.Debug. A
	// load of it is all that a call outside handlers pays.
	checks uint32
	free   int32  // the first entry of sources not in use, and 1; 0: none
	given  *given // what Config says of the layer above, nil if it says nothing
	// table is equal on all ranks, of which a process may hold very many: they share it,
	// and each rank has the functions.
	table *table
	fns   []Handler // fns[0] is none
	token [conduits.NumClasses]Token

	completer Completer
	exposed   *exposed // nil: there are no exposed addresses
	advance   atomic.Pointer[func()]
	mu        sync.Mutex
	sources   []source // long payloads in use, by cookie
	credit    map[creditWait]*creditWait
	boot      *boot // until the tables have been compared
}

// given are the seldom used values of Config.
type given struct {
	user     any
	describe func(HandlerID) string
	work     Work
	lanes    *lanes // nil of a rank with one
}

// The bits of Messenger.checks.
const (
	checkRunning uint32 = 1 << iota
	checkAlways
)

// table lists the registered handlers, without the functions. It does not change
// once a Messenger has it.
type table struct {
	at     [NumHandlers]signature
	names  []string // by signature.fn
	digest uint64
	// attached is this one without the handlers of this package, for when they are
	// not needed any more; nil if it is that one.
	attached *table
}

// signature describes the messages that the handler at an index accepts; the zero value none.
type signature struct {
	fn    uint8 // the place in Messenger.fns; 0: there is none
	args  int8
	kinds Kind
	_     uint8 // four bytes are one shift
}

// name is that of the handler at index h, "" if there is none.
func (t *table) name(h HandlerID) string { return t.names[t.at[h].fn] }

// signature is that of index h.
func (e *Messenger) signature(h HandlerID) *signature { return &e.table.at[h] }

// fn is the function at index h, or nil.
func (e *Messenger) fn(h HandlerID) Handler { return e.fns[e.table.at[h].fn] }

// A message's tag: handler in the low 8 bits, category above.
const (
	tagShort conduits.Tag = iota << 8
	tagMedium
	tagLong
)

// Conduit is the endpoint below.
func (e *Messenger) Conduit() conduits.Endpoint { return e.ep }

// Rank is this rank, 0..Size()-1.
func (e *Messenger) Rank() int { return e.ep.Rank() }

// Size is the number of ranks.
func (e *Messenger) Size() int { return int(e.size) }

// Exit ends the job, with code as its exit status, of which the low eight bits
// count; 0 is success. Any rank may call it, alone, on any goroutine and in a
// handler. It returns at once, with the error that ends what the ranks wait for from
// now on: a *PeerError that names the rank and matches ErrExit. errors.As finds the
// code there as a *conduits.ExitError. If several ranks call it, one of the codes
// counts, the same for all processes under gasrun; if the job has failed before,
// that failure counts, and is returned.
//
// The program ends by itself when it gets the error. Ranks that compute, and do not
// hear of it, gasrun ends after a second by SIGTERM and after its grace time by
// SIGKILL.
func (e *Messenger) Exit(code int) error {
	x := errs.NewExit(code)
	e.ep.Fail(x)
	if err := e.ep.Err(); err != nil {
		return err
	}
	return &PeerError{Rank: e.ep.Rank(), Err: x} // the conduit has not heard yet
}

// MaxMedium is the largest medium payload in bytes, the same on all ranks and
// for requests and replies, whatever the number of arguments; at least 512.
func (e *Messenger) MaxMedium() int { return int(e.max) }

// MaxLong is the largest long payload to dst's segment in bytes: all of it, or
// less where the conduit is narrower. To registered memory the conduit's own
// limit holds, to exposed memory none.
func (e *Messenger) MaxLong(dst int) uint64 {
	return min(e.ep.SegmentSize(dst), e.maxLong)
}

// handlerName is the name registered at index h, "" if there is none.
func (e *Messenger) handlerName(h HandlerID) string { return e.table.name(h) }

// Poll runs the handlers of what has arrived and returns how many messages that
// were; 0 at once if another goroutine of this rank is polling, or from within
// a handler.
//
// It is the poll for loops of generated code that watch a word which direct accesses
// change: on shm one that finds nothing takes 15 ns (BenchmarkPollEmpty, a rank alone on
// a busy machine); having heard 31 ranks it takes some 30 ns more. Over udp it looks at the
// socket, about a microsecond, so such a loop polls every hundredth time there. A loop that
// has nothing else to do waits (Wait), which spins, yields and sleeps.
func (e *Messenger) Poll() int {
	if e.Blocking("poll") != nil {
		return 0
	}
	n := e.ep.Poll()
	if f := e.advance.Load(); f != nil && !e.ep.Polling() {
		(*f)()
	}
	return n
}

// Advance has f called whenever a goroutine polls or waits by e, other than in a
// handler, from now on: for a layer above whose operations take steps that
// handlers must not take. f neither waits nor polls, and is quick if there is
// nothing to do. Each layer calls it at most once.
//
// A look of a loop that waits, which finds a message, takes 31.9 ns by conduits.Wait,
// 33.7 by Wait, and 34.6 with an f of two loads (BenchmarkLook, one core); half a round
// trip of a short message between two processes took 215 ns without f and 212 with
// (gasbench am/short, in turn, medians of seven).
func (e *Messenger) Advance(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := &f
	if before := e.advance.Load(); before != nil {
		both := func() {
			(*before)()
			f()
		}
		all = &both
	}
	e.advance.Store(all)
	if s := e.shared(); s != nil {
		s.advance(all)
	}
}

// wait is conduits.WaitFor that calls what Advance has been given.
func (e *Messenger) wait(b conduits.Blocked, ready func() bool, lacking func() int) error {
	return conduits.WaitFor(e.ep, b, conduits.Cond{Lacking: lacking, Ready: func() bool {
		advances(e)
		return ready()
	}})
}

// advances calls what Advance of e has been given.
func advances(e *Messenger) {
	if f := e.advance.Load(); f != nil {
		(*f)()
	}
}

// Wait is WaitFor of a condition alone.
func (e *Messenger) Wait(b conduits.Blocked, ready func() bool) error {
	return e.WaitFor(b, conduits.Cond{Ready: ready})
}

// WaitFor polls until c is ready, sleeping when that takes long; see conduits.Cond,
// also for what may make it ready. b says what is waited for and may be nil. In a
// handler it is an error even if c is ready, which fails the job; see Blocking.
//
// With c.Work it also runs Config.Work, on the calling goroutine's stack: for
// waits that programs ask for and in which a layer is in the middle of nothing. What runs
// there may wait in turn, so that c may have been ready for a while when WaitFor returns.
func (e *Messenger) WaitFor(b conduits.Blocked, c conduits.Cond) error {
	if err := e.Blocking("wait"); err != nil {
		return err
	}
	if c.Ready() {
		return nil
	}
	if !c.Work || e.given == nil || e.given.work == nil {
		return e.wait(b, c.Ready, c.Lacking)
	}
	ready, work := c.Ready, e.given.work
	for held := false; ; {
		// It does not go by wait: a rank that waits in a collective, of which a job has many, has
		// a stack of 4 KiB, which what runs here just fits into.
		err := conduits.WaitFor(e.ep, b, conduits.Cond{Lacking: c.Lacking, Ready: func() bool {
			advances(e)
			held = ready()
			return held || work.Pending()
		}})
		if held || err != nil {
			return err
		}
		if c.Away == nil {
			work.Run()
		} else if c.Away(true) {
			work.Run()
			c.Away(false)
		}
		e.ep.Poll() // work that puts off more of it must not keep messages from being handled
	}
}

// Blocking is for calls of the layers above that may wait, which handlers must not
// make: it returns an error that names op and the handler, and fails the job, if
// the calling goroutine runs a handler. To be called whether op would wait this
// time or not, so that a program that breaks the rule fails on every conduit and
// not only when it has bad luck. A load of one word outside handlers.
func (e *Messenger) Blocking(op string) error {
	if atomic.LoadUint32(&e.checks) == 0 {
		return nil
	}
	return e.inHandler(op)
}

// inHandler is the error of a call that only code outside handlers may make, by a
// goroutine that runs a handler.
func (e *Messenger) inHandler(op string) error {
	if !e.ep.Polling() {
		if s := e.shared(); s != nil {
			return s.inHandler(op, e)
		}
		return nil
	}
	t := &e.token[conduits.Request]
	if r := &e.token[conduits.Reply]; r.active {
		t = r
	}
	return t.misuse("am: %s inside handler %s: handlers must not block; only a reply to the requester is allowed", op, t.describe())
}

// sendable checks what a caller can get wrong about a message of kind k.
func (e *Messenger) sendable(op string, h HandlerID, k Kind, nargs, payload int) error {
	ent, name := e.signature(h), e.table.name(h)
	switch {
	case uint(nargs) > MaxArgs:
		return errs.BadArg("am: %s to handler %d: %d arguments, the most is %d", op, h, nargs, MaxArgs)
	case ent.fn == 0:
		return errs.BadArg("am: %s: no handler is registered at index %d", op, h)
	case ent.args >= 0 && int(ent.args) != nargs:
		return errs.BadArg("am: %s to handler %d (%s): %d arguments, it takes %d", op, h, name, nargs, ent.args)
	case ent.kinds&k != k:
		return errs.BadArg("am: %s to handler %d (%s): it accepts only %v", op, h, name, ent.kinds)
	case k&Medium != 0 && payload > int(e.max):
		return errs.BadArg("am: %s to handler %d (%s): payload of %d bytes, the most is %d (MaxMedium)", op, h, name, payload, int(e.max))
	}
	return nil
}

// valid is sendable as a condition, for the hot path.
func (e *Messenger) valid(dst int, h HandlerID, k Kind, nargs, payload int) bool {
	ent := e.signature(h)
	return uint(dst) < uint(e.size) && ent.kinds&k == k && (int(ent.args) == nargs || ent.args < 0 && uint(nargs) <= MaxArgs) &&
		payload <= int(e.max) && atomic.LoadUint32(&e.checks) == 0
}

// check is the slow half of valid: it finds the error, if there is one.
func (e *Messenger) check(op string, dst int, h HandlerID, k Kind, nargs, payload int) error {
	if uint(dst) >= uint(e.size) {
		return conduits.CheckRank(e.ep, "am: "+op, dst)
	}
	if err := e.sendable(op, h, k, nargs, payload); err != nil {
		return err
	}
	return e.Blocking(op)
}

// RequestShort sends args to handler h of rank dst, which may be the own rank.
// It waits, polling, while there is no credit.
func (e *Messenger) RequestShort(dst int, h HandlerID, args ...uint32) error {
	if !e.valid(dst, h, Short|Request, len(args), 0) {
		if err := e.check("short request", dst, h, Short|Request, len(args), 0); err != nil {
			return err
		}
	}
	tag := tagShort | conduits.Tag(h)
	if st := e.ep.Send(dst, conduits.Request, tag, noescape(args)); st != conduits.Ready {
		return e.awaitSend("short request", dst, conduits.Request, tag, args, nil)
	}
	return nil
}

// TryRequestShort is RequestShort that returns false instead of waiting: the
// immediate mode. It does not poll; poll before trying again.
func (e *Messenger) TryRequestShort(dst int, h HandlerID, args ...uint32) (bool, error) {
	if !e.valid(dst, h, Short|Request, len(args), 0) {
		if err := e.check("short request", dst, h, Short|Request, len(args), 0); err != nil {
			return false, err
		}
	}
	st := e.ep.Send(dst, conduits.Request, tagShort|conduits.Tag(h), noescape(args))
	if st != conduits.Ready {
		return false, e.dead("short request", dst, st)
	}
	return true, nil
}

// RequestMedium sends args and a copy of payload, of 0 to MaxMedium bytes.
func (e *Messenger) RequestMedium(dst int, h HandlerID, payload []byte, args ...uint32) error {
	if !e.valid(dst, h, Medium|Request, len(args), len(payload)) {
		if err := e.check("medium request", dst, h, Medium|Request, len(args), len(payload)); err != nil {
			return err
		}
	}
	tag := tagMedium | conduits.Tag(h)
	if st := e.send(dst, conduits.Request, tag, args, payload); st != conduits.Ready {
		return e.awaitSend("medium request", dst, conduits.Request, tag, args, payload)
	}
	return nil
}

// TryRequestMedium is RequestMedium that returns false instead of waiting.
func (e *Messenger) TryRequestMedium(dst int, h HandlerID, payload []byte, args ...uint32) (bool, error) {
	if !e.valid(dst, h, Medium|Request, len(args), len(payload)) {
		if err := e.check("medium request", dst, h, Medium|Request, len(args), len(payload)); err != nil {
			return false, err
		}
	}
	st := e.send(dst, conduits.Request, tagMedium|conduits.Tag(h), args, payload)
	if st != conduits.Ready {
		return false, e.dead("medium request", dst, st)
	}
	return true, nil
}

// RequestLong puts payload to address to of dst and then runs handler h there with
// args: in the segment, or where memory is registered or exposed. It returns when
// payload may be reused. An empty payload needs no memory; the address is
// delivered all the same.
//
// If memory that is registered or exposed may not be written to, the message is
// not delivered; see conduits.Stats and Faults for how many. A payload of more
// than MaxMedium to an exposed address is put before the message is sent: then
// the refusal is the call's error.
func (e *Messenger) RequestLong(dst int, h HandlerID, to segment.NLA, payload []byte, args ...uint32) error {
	if !e.valid(dst, h, Long|Request, len(args), 0) {
		if err := e.check("long request", dst, h, Long|Request, len(args), 0); err != nil {
			return err
		}
	}
	if st, took := e.sendLong(dst, conduits.Request, h, to, payload, args); took && st == conduits.Ready {
		return nil
	}
	_, err := e.putMessage("long request", dst, conduits.Request, h, to, payload, nil, true, args)
	return err
}

// RequestLongNB is RequestLong that does not wait for payload to be reusable:
// payload must stay as it is until ev is done. ev must not be in use.
func (e *Messenger) RequestLongNB(dst int, h HandlerID, to segment.NLA, payload []byte, ev *Event, args ...uint32) error {
	if err := e.check("long request", dst, h, Long|Request, len(args), 0); err != nil {
		return err
	}
	_, err := e.putMessage("long request", dst, conduits.Request, h, to, payload, ev, true, args)
	return err
}

// TryRequestLong is RequestLongNB that returns false, with ev unused, instead of
// waiting for credit. A payload of more than MaxMedium to an exposed address is
// put in any case, which it waits for.
func (e *Messenger) TryRequestLong(dst int, h HandlerID, to segment.NLA, payload []byte, ev *Event, args ...uint32) (bool, error) {
	if err := e.check("long request", dst, h, Long|Request, len(args), 0); err != nil {
		return false, err
	}
	return e.putMessage("long request", dst, conduits.Request, h, to, payload, ev, false, args)
}

// putMessage sends a long message of either class. With ev nil it waits for the
// payload to be reusable.
func (e *Messenger) putMessage(op string, dst int, c conduits.Class, h HandlerID, to segment.NLA, payload []byte, ev *Event, wait bool, args []uint32) (bool, error) {
	if to.Exposed() {
		return e.putExposed(op, dst, c, h, to, payload, ev, wait, args)
	}
	if ev == nil || ev.Done() { // else it is in use, which begin refuses
		st, took := e.sendLong(dst, c, h, to, payload, args)
		if took && st == conduits.NoCredit && wait {
			return e.awaitLong(op, dst, c, h, to, payload, ev, args)
		}
		if took {
			return st == conduits.Ready, e.dead(op, dst, st)
		}
	}
	return e.putReserved(op, dst, c, h, to, payload, ev, wait, args)
}

// putReserved is the way of the messages that Conduit takes by ReservePut only.
func (e *Messenger) putReserved(op string, dst int, c conduits.Class, h HandlerID, to segment.NLA, payload []byte, ev *Event, wait bool, args []uint32) (bool, error) {
	if len(payload) > 0 {
		if err := e.writable(op, dst, to, uint64(len(payload))); err != nil {
			return false, err
		}
	}
	cookie, err := e.begin(op, ev)
	if err != nil {
		return false, err
	}
	s, have, st := e.ep.ReservePut(dst, c, len(args), to, payload, cookie)
	if st == conduits.NoCredit && wait {
		s, have, st, err = e.awaitPut(op, dst, c, len(args), to, payload, cookie)
	}
	if err == nil {
		err = e.dead(op, dst, st)
	}
	if err != nil || st != conduits.Ready {
		e.finish(cookie)
		return false, err
	}
	copy(s.Words, args)
	e.ep.Commit(dst, c, s, tagLong|conduits.Tag(h), len(payload))
	switch {
	case have&conduits.SourceDone != 0:
		e.finish(cookie)
	case ev == nil:
		err = e.awaitSource(op, dst, c, cookie)
	}
	return true, err
}

// sendLong sends a long message in one call, if the conduit takes it like that.
func (e *Messenger) sendLong(dst int, c conduits.Class, h HandlerID, to segment.NLA, payload []byte, args []uint32) (st conduits.Status, took bool) {
	if to == 0 || uint64(len(payload)) > e.maxLong || to.Exposed() {
		return conduits.Apart, false
	}
	st = e.ep.SendPayload(dst, c, tagLong|conduits.Tag(h), noescape(args), noescape(payload), to)
	return st, st != conduits.Apart
}

// awaitLong repeats sendLong until there is credit.
func (e *Messenger) awaitLong(op string, dst int, c conduits.Class, h HandlerID, to segment.NLA, payload []byte, ev *Event, args []uint32) (bool, error) {
	var st conduits.Status
	took := true
	err := e.await(op, dst, c, func() bool {
		st, took = e.sendLong(dst, c, h, to, payload, args)
		return st != conduits.NoCredit || !took
	})
	switch {
	case err != nil:
		return false, err
	case !took:
		return e.putReserved(op, dst, c, h, to, payload, ev, true, args)
	}
	return st == conduits.Ready, e.dead(op, dst, st)
}

// awaitPut repeats ReservePut until there is credit. It stands apart so that
// the variables its closure captures do not burden the hot path.
func (e *Messenger) awaitPut(op string, dst int, c conduits.Class, words int, to segment.NLA, payload []byte, cookie uint64) (s conduits.Slot, have conduits.Event, st conduits.Status, err error) {
	err = e.await(op, dst, c, func() bool {
		s, have, st = e.ep.ReservePut(dst, c, words, to, payload, cookie)
		return st != conduits.NoCredit
	})
	return s, have, st, err
}

// writable checks the destination of a long message, rights included.
func (e *Messenger) writable(op string, dst int, to segment.NLA, n uint64) error {
	inside := conduits.InSegment(e.ep, dst, to, n)
	if !inside {
		if err := conduits.CheckRemote(e.ep, "am: "+op, dst, to, n); err != nil {
			return err
		}
	}
	if n > e.maxLong {
		return errs.BadArg("am: %s: payload of %d bytes, the most on conduit %s is %d (MaxLong)", op, n, e.ep.Conduit(), e.maxLong)
	}
	if inside && e.ep.SegmentRights(dst)&segment.RightWrite == 0 {
		return errs.BadArg("am: %s: rank %d attached its segment without the write right", op, dst)
	}
	return nil
}

// send sends a short or medium message if there is credit.
func (e *Messenger) send(dst int, c conduits.Class, tag conduits.Tag, args []uint32, payload []byte) conduits.Status {
	if len(payload) == 0 {
		return e.ep.Send(dst, c, tag, noescape(args))
	}
	return e.ep.SendPayload(dst, c, tag, noescape(args), noescape(payload), 0)
}

// awaitSend sends a short or medium message as soon as there is credit.
func (e *Messenger) awaitSend(op string, dst int, c conduits.Class, tag conduits.Tag, args []uint32, payload []byte) error {
	var st conduits.Status
	err := e.await(op, dst, c, func() bool {
		st = e.send(dst, c, tag, args, payload)
		return st != conduits.NoCredit
	})
	if err == nil {
		err = e.dead(op, dst, st)
	}
	return err
}

// awaitCredit waits for room for a request.
func (e *Messenger) awaitCredit(op string, dst, words, payload int) (s conduits.Slot, err error) {
	var st conduits.Status
	err = e.await(op, dst, conduits.Request, func() bool {
		s, st = e.ep.Reserve(dst, conduits.Request, words, payload)
		return st != conduits.NoCredit
	})
	if err == nil {
		err = e.dead(op, dst, st)
	}
	return s, err
}

// await repeats try until it holds. A request's caller polls everything
// meanwhile; a reply's is in a handler and polls replies only.
func (e *Messenger) await(op string, dst int, c conduits.Class, try func() bool) error {
	b := e.creditWait(dst, c)
	if c == conduits.Request {
		if err := e.inHandler(op); err != nil {
			return err
		}
		return e.wait(b, try, nil)
	}
	for idle := 0; ; {
		if try() {
			return nil
		}
		if e.ep.PollReplies() > 0 {
			idle = 0
			continue
		}
		if e.ep.Idle(idle) {
			idle++
			continue
		}
		t := e.ep.Arm(b)
		if try() {
			e.ep.Disarm(t)
			return nil
		}
		if e.ep.PollReplies() > 0 {
			e.ep.Disarm(t)
			idle = 0
			continue
		}
		if err := e.ep.Err(); err != nil {
			e.ep.Disarm(t)
			return err
		}
		e.ep.Park(t)
		idle = 0
	}
}

// dead turns a status into an error; NoCredit is none.
func (e *Messenger) dead(op string, dst int, st conduits.Status) error {
	if st != conduits.Dead {
		return nil
	}
	if err := e.ep.Err(); err != nil {
		return fmt.Errorf("am: %s to rank %d: %w", op, dst, err)
	}
	return &PeerError{Rank: dst, Op: "am: " + op, Err: errs.Closed("it has left the job")}
}

// creditWait describes a sender's wait for credit.
type creditWait struct {
	class conduits.Class
	dst   int
}

// creditWait returns the description for dst, made once for each.
func (e *Messenger) creditWait(dst int, c conduits.Class) *creditWait {
	key := creditWait{c, dst}
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.credit[key]
	if w == nil {
		if e.credit == nil {
			e.credit = make(map[creditWait]*creditWait)
		}
		w = &creditWait{c, dst}
		e.credit[key] = w
	}
	return w
}

// Blocked says so to people.
func (w *creditWait) Blocked() string {
	return fmt.Sprintf("am: %v waits for credit of rank %d, which does not poll or is slower than its senders", w.class, w.dst)
}
