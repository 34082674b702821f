package gas

// What is unsafe here: arguments and results, which hold no Go pointers, are
// viewed as bytes, in buffers aligned to 8 bytes.

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys/origin"
)

// Func is a function that RegisterCall and its kin made callable on other ranks, with an
// argument of type A and a result of type R. Its methods may be used by many
// goroutines.
type Func[A, R any] struct {
	*function
}

// function is a Func without its types.
type function struct {
	index     uint32
	name      string
	signature string
	task      bool // runs outside handlers
	// fixed says that argument and result are of a size that one message carries: run takes
	// them then from where they lie, aligned to 8 bytes.
	fixed   bool
	argSize uintptr
	resSize uintptr
	run     func(c *Call, arg, res unsafe.Pointer) error
	// prepare is run where anything else is called: it decodes the argument, and what it
	// returns runs the function and encodes the result. A stream of arg may be written then.
	prepare  func(arg parcel) (func(c *Call) (parcel, error), error)
	arg, res *codec
}

var functions struct {
	mu   sync.Mutex
	list []*function
	// The label of the first labelled functions, which all ranks of a process
	// share.
	label    string
	labelled int
}

// Call is the first argument of a function that is called: the called rank's Node and the
// caller's rank. It is valid until the function returns.
type Call struct {
	*Node
	caller int
}

// Caller is the rank that has made the call.
func (c *Call) Caller() int { return c.caller }

// RegisterCall makes fn callable from other ranks by the name's Func. It is
// called before Run, usually to initialise a package variable; all ranks must
// register the same functions in the same order, which is checked when they
// meet. Two functions of one name, and types that cannot travel, are mistakes that it
// panics over, with the name of the field.
//
// A and R may be struct{}, hold strings and slices, and slices of those, of any length: what
// they hold travels with them, and is the receiver's own. Pointers, maps, channels,
// functions, interfaces and types that hold themselves cannot travel. Values without
// strings and slices, of up to 512 bytes, travel fastest, without allocation. Of a value that is larger than a
// message, strings, and slices without Go pointers, of 16 KiB and more are not copied on their way: Call, Go and
// Send return when the called rank has the argument, and what fn returns is read until its caller has it, so that
// neither fn nor anything else of that rank writes to it later.
//
// fn runs on the called rank whenever that polls or waits, with that rank's
// Node, as an active message handler: it must not block. It may use memory by
// Ptr.Local and atomics on its own neighbourhood; it must not call other ranks,
// lock, allocate collectively or enter barriers: any of that, and every wait, is
// an error that names the function and fails the job. For that there are Node.Defer and
// RegisterTask. At most one fn runs on a rank
// at a time, on any of its goroutines, of a rank with lanes in each lane.
//
// A panic in fn is an error of its caller, a *CallError, and the called rank goes on; if
// nothing waits for a result (Func.Send), it is a panic of the called rank.
func RegisterCall[A, R any](name string, fn func(n *Node, a A) R) *Func[A, R] {
	if fn == nil {
		return register[A, R](name, "", nil)
	}
	f := register(name, "", func(c *Call, a A) (R, error) { return fn(c.Node, a), nil })
	f.run = func(c *Call, arg, res unsafe.Pointer) error { // without the function in between
		*(*R)(res) = fn(c.Node, *(*A)(arg))
		return nil
	}
	return f
}

// RegisterFunc is RegisterCall for functions that may fail, or want to know which rank
// calls them. The error of fn arrives at the caller as a *CallError, with its text and those
// errors of this package that it matches; a result with it does not arrive.
// The error of a call by Func.Send goes nowhere.
func RegisterFunc[A, R any](name string, fn func(c *Call, a A) (R, error)) *Func[A, R] {
	return register(name, "func ", fn)
}

// register makes a function of a kind, which is of its signature.
func register[A, R any](name, kind string, fn func(c *Call, a A) (R, error)) *Func[A, R] {
	if name == "" || fn == nil {
		panic("gas: " + registrar(kind) + " needs a name and a function")
	}
	f := &function{name: name, task: kind == kindTask}
	for _, x := range []struct {
		what string
		typ  reflect.Type
		c    **codec
	}{{"argument", reflect.TypeFor[A](), &f.arg}, {"result", reflect.TypeFor[R](), &f.res}} {
		c, err := travelling(x.typ)
		if err != nil {
			panic(fmt.Sprintf("gas: %s(%q): %s: %v", registrar(kind), name, x.what, err))
		}
		*x.c = c
	}
	f.signature = fmt.Sprintf("%s%s(%v) %v", kind, name, f.arg.typ, f.res.typ)
	f.argSize, f.resSize = f.arg.size, f.res.size
	f.fixed = !f.task && f.arg.form == plain && f.res.form == plain && max(f.argSize, f.resSize) <= maxCallBytes
	f.run = func(c *Call, arg, res unsafe.Pointer) (err error) {
		*(*R)(res), err = fn(c, *(*A)(arg))
		return err
	}
	f.prepare = func(arg parcel) (func(c *Call) (parcel, error), error) {
		v := new(struct {
			a A
			r R
		})
		if err := f.arg.decoded(arg, unsafe.Pointer(&v.a)); err != nil {
			return nil, err
		}
		return func(c *Call) (res parcel, err error) {
			if v.r, err = fn(c, v.a); err != nil {
				return parcel{}, err
			}
			return f.res.encoded(unsafe.Pointer(&v.r), c.e.MaxMedium()), nil
		}, nil
	}
	functions.mu.Lock()
	defer functions.mu.Unlock()
	for _, g := range functions.list {
		if g.name == name {
			panic(fmt.Sprintf("gas: %s(%q): registered twice", registrar(kind), name))
		}
	}
	f.index = uint32(len(functions.list))
	functions.list = append(functions.list, f)
	return &Func[A, R]{f}
}

// kindTask begins the signature of a task.
const kindTask = "task "

// registrar is the name of what registers functions of a kind.
func registrar(kind string) string {
	switch kind {
	case "":
		return "RegisterCall"
	case kindTask:
		return "RegisterTask"
	}
	return "RegisterFunc"
}

// maxCallBytes is how many bytes a medium message carries on every conduit.
const maxCallBytes = 512

// A call's arguments: the function's index, the caller's slot and its use, and,
// if it fits, the value. noSlot asks for no answer, noResult in the index for one that
// says only that the function has run.
const (
	callWords  = 3
	retWords   = 2
	callInline = (am.MaxArgs - callWords) * 4 // bytes
	retInline  = (am.MaxArgs - retWords) * 4
	noSlot     = 1<<32 - 1
	noResult   = 1 << 31
)

// calls is a rank's side of remote calls.
type calls struct {
	table []*function

	// For the handler, which one goroutine runs at a time: scratch is nil before
	// the first call, running while no function runs.
	scratch *callScratch
	running *function

	mu    conc.Lock
	slots []*slot
	free  []uint32
	large *large // nil before the first value that takes several messages

	// begun and sent count the requests of Call, Go and Send that were begun here, from
	// before they leave: those that have a slot, with mu held, and the others. ran and
	// handled count the functions that have finished here: handlers, and the others. Once
	// the sums over all lanes of all ranks are equal, and stay so, no call is under way.
	// What one goroutine at a time writes it stores plainly (conc.Release64): an atomic
	// addition is 5 ns of the 93 of a call to oneself.
	begun, ran    uint64
	sent, handled atomic.Uint64
}

// started and finished are these sums. finished is to be read first: what handlers sent is counted then.
func (c *calls) started() uint64  { return atomic.LoadUint64(&c.begun) + c.sent.Load() }
func (c *calls) finished() uint64 { return atomic.LoadUint64(&c.ran) + c.handled.Load() }

// callScratch is an argument and a result, and what the function is given.
type callScratch struct {
	arg, res [maxCallBytes / 8]uint64
	call     Call
}

// slot is one call whose answer is awaited.
type slot struct {
	// Stored with calls.mu held, plainly (conc.Release32), and loaded without: whether the
	// result has come, what tells apart the calls that used this slot, and whether Then has
	// the Future, or had.
	isReady, useNow, isFollowed uint32

	done chan struct{}
	res  [maxCallBytes / 8]uint64
	data parcel // the result of a function that is not fixed
	// failed is not nil if the function has failed.
	failed *CallError
	// then is the task to be put off when the result has come, or nil.
	then func()
	// coll is a collective call in place of one of f on dst; see collected.
	coll *collected
	// transfer says that it is a Handle's in place of one of f, which h is.
	transfer bool
	h        Handle
	f        *function
	dst      int
	// With Config.Debug origin is where the call was made, while it is under way;
	// the result is not taken if it was sent.
	origin string
	sent   bool
}

func (s *slot) ready() bool    { return atomic.LoadUint32(&s.isReady) != 0 }
func (s *slot) use() uint32    { return atomic.LoadUint32(&s.useNow) }
func (s *slot) followed() bool { return atomic.LoadUint32(&s.isFollowed) != 0 }

// Blocked names the call or transfer that is awaited.
func (s *slot) Blocked() string {
	if s.coll != nil {
		return s.coll.h.Blocked()
	}
	if s.transfer {
		return "transfer"
	}
	return fmt.Sprintf("call of %s on rank %d", s.f.name, s.dst)
}

// handlers are this package's entries of the handler table.
func (n *Node) handlers() []am.Entry {
	functions.mu.Lock()
	n.calls.table = functions.list[:len(functions.list):len(functions.list)]
	if functions.labelled != len(functions.list) {
		functions.labelled, functions.label = len(functions.list), label(functions.list)
	}
	call := functions.label
	functions.mu.Unlock()
	return []am.Entry{
		{Index: handlerCall, Name: call, Fn: n.onCall, Args: am.AnyArgs, Kinds: am.Short | am.Medium | am.Request},
		{Index: handlerReturn, Name: "gas.return", Fn: n.onReturn, Args: am.AnyArgs, Kinds: am.Short | am.Medium | am.Reply},
		{Index: handlerAsk, Name: "gas.ask", Fn: n.by((*large).onAsk), Args: askWords, Kinds: am.Medium | am.Request},
		{Index: handlerRoom, Name: "gas.room", Fn: n.by((*large).onRoom), Args: roomWords, Kinds: am.Medium | am.Reply},
		{Index: handlerPiece, Name: "gas.piece", Fn: n.by((*large).onPiece), Args: pieceWords, Kinds: am.Medium},
		{Index: handlerPull, Name: "gas.pull", Fn: n.by((*large).onPull), Args: pullWords, Kinds: am.Short | am.Request},
		{Index: handlerRun, Name: "gas.run", Fn: n.by((*large).onRun), Args: runWords, Kinds: am.Short | am.Medium | am.Request},
		{Index: handlerResult, Name: "gas.result", Fn: n.by((*large).onResult), Args: resultWords, Kinds: am.Medium},
	}
}

// label is the name of the handler that calls functions. The handler tables of
// all ranks are compared when they meet, and with them what is registered: package am
// says of names that differ from where on.
func label(list []*function) string {
	signatures := make([]string, len(list))
	for i, f := range list {
		signatures[i] = f.signature
	}
	return fmt.Sprintf("gas.call: %s", strings.Join(signatures, "; "))
}

// onCall runs a function and answers.
func (n *Node) onCall(t *am.Token, args []uint32, payload []byte) {
	n = n.at(t)
	c := n.calls
	if len(args) < callWords || int(args[0]&^noResult) >= len(c.table) {
		panic(fmt.Sprintf("gas: malformed call from rank %d", t.Src()))
	}
	f := c.table[args[0]&^noResult]
	from := requester{rank: t.Src(), slot: args[1], use: args[2], sent: args[0]&noResult != 0}
	if !f.fixed {
		if payload == nil {
			payload = bytesOf(args[callWords:])
		}
		n.arrived(t, f, from, parcel{stream: payload})
		return
	}
	if c.scratch == nil {
		c.scratch = new(callScratch)
	}
	arg, res := unsafe.Pointer(&c.scratch.arg), unsafe.Pointer(&c.scratch.res)
	if payload != nil {
		arg = unsafe.Pointer(unsafe.SliceData(payload))
	} else {
		copy(wordsAt(arg, f.argSize), args[callWords:])
	}
	call := &c.scratch.call
	*call = Call{n, from.rank}
	c.running = f
	var failed error
	if from.awaited() {
		failed = f.guarded(call, arg, res)
	} else {
		failed = f.run(call, arg, res)
	}
	var err error
	switch {
	case from.slot == noSlot:
	case failed != nil && !from.sent:
		n.big().refuse(t, from, failed)
	case f.resSize <= retInline:
		var w [am.MaxArgs]uint32
		w[0], w[1] = args[1], args[2]
		k := retWords + copy(w[retWords:], wordsAt(res, f.resSize))
		err = t.ReplyShort(handlerReturn, w[:k]...)
	default:
		err = t.ReplyMedium(handlerReturn, unsafe.Slice((*byte)(res), f.resSize), args[1], args[2])
	}
	_ = err // the caller is dead and does not wait for the answer
	// After the answer, for which the caller waits.
	c.running = nil
	conc.Release64(&c.ran, c.ran+1)
}

// describe names the function that a handler of this package runs, for errors.
func (n *Node) describe(h am.HandlerID) string {
	if f := n.calls.running; f != nil && (h == handlerCall || h == handlerRun || h == handlerPiece) {
		return fmt.Sprintf("%d (gas.call of %s)", h, f.name)
	}
	return ""
}

// guarded is f.run for a caller that waits: a panic is an error.
func (f *function) guarded(c *Call, arg, res unsafe.Pointer) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = caught(p)
		}
	}()
	return f.run(c, arg, res)
}

// wordsAt is size bytes at p as words, rounded up: all buffers have room.
func wordsAt(p unsafe.Pointer, size uintptr) []uint32 {
	return unsafe.Slice((*uint32)(p), (size+3)/4)
}

// onReturn takes an answer.
func (n *Node) onReturn(t *am.Token, args []uint32, payload []byte) {
	n.at(t).returned(t.Src(), args, payload)
}

// returned takes an answer of src to a call of this lane.
func (n *Node) returned(src int, args []uint32, payload []byte) {
	c := n.calls
	if len(args) < retWords {
		return
	}
	if !conc.Enter(&c.mu) {
		c.mu.Lock()
	}
	s := c.awaited(src, args[0], args[1])
	switch {
	case s == nil:
		c.mu.Unlock()
		return
	case !s.f.fixed:
		if payload == nil {
			payload = bytesOf(args[retWords:])
		}
		s.data = parcel{stream: bulk.Clone(payload)}
	case payload != nil:
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&s.res)), maxCallBytes), payload)
	default:
		copy(wordsAt(unsafe.Pointer(&s.res), maxCallBytes), args[retWords:])
	}
	n.answered(s)
	c.mu.Unlock()
}

// awaited is slot i, whose result has come from src, if it is still awaited. The lock is held.
func (c *calls) awaited(src int, i, use uint32) *slot {
	if uint64(i) >= uint64(len(c.slots)) {
		return nil
	}
	s := c.slots[i]
	if s.use() != use || s.dst != src {
		return nil // its caller does not wait any more, or not for that rank
	}
	if s.sent {
		c.give(i)
		return nil
	}
	return s
}

// answered says that the result of s is there. The lock is held.
func (n *Node) answered(s *slot) {
	conc.Release32(&s.isReady, 1)
	if s.done != nil {
		close(s.done)
		s.done = nil
	}
	if s.then != nil {
		n.putOff(s.then)
		s.then = nil
	}
}

// claim reserves a slot for a call of f on dst and counts it, or for something else, with f nil.
func (c *calls) claim(f *function, dst int) (s *slot, i uint32) {
	if !conc.Enter(&c.mu) {
		c.mu.Lock()
	}
	if k := len(c.free); k > 0 {
		i = c.free[k-1]
		c.free = c.free[:k-1]
		s = c.slots[i]
	} else {
		s, i = new(slot), uint32(len(c.slots))
		c.slots = append(c.slots, s)
		c.free = append(c.free, i)[:len(c.free)] // room for all slots to come back
	}
	s.f, s.dst = f, dst
	if f != nil {
		conc.Release64(&c.begun, c.begun+1)
	}
	c.mu.Unlock()
	return s, i
}

// unsent gives slot i back, which was claimed for a call that has not left.
func (c *calls) unsent(i uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	conc.Release64(&c.begun, c.begun-1)
	c.give(i)
}

// release gives slot i back; later answers to its present use are ignored.
func (c *calls) release(i uint32) {
	if !conc.Enter(&c.mu) {
		c.mu.Lock()
	}
	c.give(i)
	c.mu.Unlock()
}

// give is release with the lock held.
func (c *calls) give(i uint32) {
	s := c.slots[i]
	conc.Release32(&s.useNow, s.useNow+1)
	conc.Release32(&s.isReady, 0)
	s.done, s.then, s.coll, s.transfer = nil, nil, nil, false
	conc.Release32(&s.isFollowed, 0)
	s.origin, s.sent = "", false
	if s.data.stream != nil || s.data.apart != nil || s.failed != nil {
		s.data, s.failed = parcel{}, nil
	}
	c.free = append(c.free, i)
}

// note keeps the line of the program that made the call of s; sent says that the call
// has no result to be taken.
//
//go:noinline
func (c *calls) note(s *slot, sent bool) {
	at := origin.Caller()
	c.mu.Lock()
	s.origin, s.sent = at, sent
	c.mu.Unlock()
}

// send starts a call of a fixed function; arg points to f.argSize bytes aligned to 4.
// sent is noResult if the program takes no result, else 0.
func (n *Node) send(f *function, dst int, arg unsafe.Pointer, slot, use, sent uint32) error {
	if int(f.index) >= len(n.calls.table) || n.calls.table[f.index] != f {
		return errs.NotReady("gas: call of %s: it was registered after Run had begun", f.name)
	}
	switch {
	case !f.fixed:
		v := f.arg.encoded(arg, n.e.MaxMedium())
		err := n.sendEncoded(f, dst, &v, slot, use, sent)
		runtime.KeepAlive(arg) // what is apart in v is read until the call has left
		return err
	case f.argSize <= callInline:
		var w [am.MaxArgs]uint32
		w[0], w[1], w[2] = f.index|sent, slot, use
		k := callWords + copy(w[callWords:], wordsAt(arg, f.argSize))
		return n.e.RequestShort(dst, handlerCall, w[:k]...)
	}
	return n.e.RequestMedium(dst, handlerCall, unsafe.Slice((*byte)(arg), f.argSize), f.index|sent, slot, use)
}

// padded is an A with room for whole words after it.
type padded[A any] struct {
	_ [0]uint64
	a A
	_ [3]byte
}

// Call runs the function with a on rank, which may be the caller's own, and
// returns its result. It waits, answering peers meanwhile.
func (f *Func[A, R]) Call(n *Node, rank int, a A) (R, error) {
	fut, err := f.Go(n, rank, a)
	if err != nil {
		var r R
		return r, err
	}
	r, err := fut.Wait()
	if n.ctx != nil && fut.taken() == nil { // it has given up: what comes is dropped
		_ = fut.Then(func(*Node, R, error) {})
	}
	return r, err
}

// Go starts a Call and returns at once, unless it has to wait for room to send, as it does with an argument that
// is larger than a message.
func (f *Func[A, R]) Go(n *Node, rank int, a A) (Future[R], error) {
	s, i := n.calls.claim(f.function, rank)
	if n.debug {
		n.calls.note(s, false)
	}
	var arg padded[A]
	arg.a = a // a composite would be made elsewhere, and copied by longer moves than it was stored by
	if err := n.send(f.function, rank, unsafe.Pointer(&arg), i, s.use(), 0); err != nil {
		n.calls.unsent(i)
		return Future[R]{}, fmt.Errorf("gas: call of %s on rank %d: %w", f.name, rank, err)
	}
	return Future[R]{n: n, s: s, i: i, use: s.use()}, nil
}

// Send runs the function with a on rank and does not ask for the result: it
// returns when the request is on its way. A barrier does not wait for it.
func (f *Func[A, R]) Send(n *Node, rank int, a A) error {
	var arg padded[A]
	arg.a = a // a composite would be made elsewhere, and copied by longer moves than it was stored by
	i, use := uint32(noSlot), uint32(0)
	if n.debug { // asks for an answer, so that it is known whether the call is under way
		var s *slot
		s, i = n.calls.claim(f.function, rank)
		use = s.use()
		n.calls.note(s, true)
	} else {
		n.calls.sent.Add(1)
	}
	if err := n.send(f.function, rank, unsafe.Pointer(&arg), i, use, noResult); err != nil {
		if n.debug {
			n.calls.unsent(i)
		} else {
			n.calls.sent.Add(^uint64(0))
		}
		return fmt.Errorf("gas: call of %s on rank %d: %w", f.name, rank, err)
	}
	return nil
}

// Future is the result of a call, a collective one, or a transfer ([Node.Future]) that is under way. It may be copied; of all
// copies one takes the result with Wait, once. One that is never waited for keeps
// its place in a table as long as its Node lasts.
type Future[R any] struct {
	n   *Node
	s   *slot
	i   uint32
	use uint32
}

// Wait returns the result when it has arrived, and answers peers until then. If the
// function failed, the error is a *CallError. A second Wait is an error.
func (f Future[R]) Wait() (r R, err error) {
	if f.n.ctx != nil {
		return f.WaitContext(f.n.ctx)
	}
	if err := f.taken(); err != nil {
		return r, err
	}
	if f.s.f == nil {
		return f.take()
	}
	if f.s.dst == f.n.rank {
		// Request and answer are in the own mailbox: nothing to watch for.
		for !f.s.ready() && f.n.e.Poll() > 0 {
		}
	}
	if !f.s.ready() {
		if err := f.n.e.WaitFor(f.s, conduits.Cond{Work: true, Ready: f.s.ready, Lacking: conduits.LackingRank(f.n.ep, f.s.dst)}); err != nil {
			return r, f.gone(err)
		}
	}
	return f.take()
}

// taken is the error of a Future whose result was taken.
func (f Future[R]) taken() error {
	if f.s.use() == f.use && !f.s.followed() {
		return nil
	}
	return errs.BadArg("gas: result of a call taken twice on rank %d: each Future is waited for once (Future.Wait, or Then)", f.n.rank)
}

// gone ends a wait whose result will not come because of err.
func (f Future[R]) gone(err error) error {
	if f.s.f == nil {
		_, err := f.take()
		return err
	}
	name, dst := f.s.f.name, f.s.dst
	f.n.calls.release(f.i)
	return fmt.Errorf("gas: call of %s on rank %d: %w", name, dst, err)
}

// take takes the result, which has arrived.
func (f Future[R]) take() (r R, err error) {
	switch s := f.s; {
	case s.coll != nil:
		r, err = resultOfCollective[R](s)
	case s.transfer:
		err = f.n.Sync(s.h)
	case s.failed != nil:
		err = s.failed
	case s.f.fixed:
		r = *(*R)(unsafe.Pointer(&s.res))
	default:
		r, err = resultOf[R](s)
	}
	f.n.calls.release(f.i)
	return r, err
}

// resultOf decodes what has come to s. Apart, for it has R in the heap.
//
//go:noinline
func resultOf[R any](s *slot) (r R, err error) {
	if err = s.f.res.decoded(s.data, unsafe.Pointer(&r)); err != nil {
		err = fmt.Errorf("gas: result of %s on rank %d: %w", s.f.name, s.dst, err)
	}
	return r, err
}

// Ready reports whether Wait would return at once. It does not poll.
func (f Future[R]) Ready() bool { return f.s.ready() }

// Done returns a channel that is closed when the result has arrived or the job
// has failed, for use in select. Another goroutine has to poll for that to
// happen: in a call that waits, or by Config.Progress. Where the conduit runs the
// ranks itself, as a simulator does, a rank must not receive from a channel: no
// other would run meanwhile. To be called before Wait.
func (f Future[R]) Done() <-chan struct{} {
	c := f.n.calls
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.s.use() != f.use || f.s.ready() || f.n.ep.Err() != nil {
		return closedChan
	}
	if f.s.done == nil {
		f.s.done = make(chan struct{})
	}
	return f.s.done
}

var closedChan = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// failed closes the channels of calls whose answers will not come.
func (c *calls) failed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.slots {
		if s.done != nil && !s.ready() {
			close(s.done)
			s.done = nil
		}
	}
}

var _ conduits.Blocked = (*slot)(nil)
