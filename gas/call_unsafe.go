package gas

// What is unsafe here: arguments and results, which hold no Go pointers, are
// viewed as bytes, in buffers aligned to 8 bytes.

import (
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/origin"
)

// Func is a function that RegisterCall made callable on other ranks, with an
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
	argSize   uintptr
	resSize   uintptr
	// run calls the function; arg and res are aligned to 8 bytes.
	run func(n *Node, arg, res unsafe.Pointer)
}

var functions struct {
	mu   sync.Mutex
	list []*function
	// The label of the first labelled functions, which all ranks of a process
	// share.
	label    string
	labelled int
}

// RegisterCall makes fn callable from other ranks by the name's Func. It is
// called before Run, usually to initialise a package variable; all ranks must
// register the same functions in the same order, which is checked when they
// meet. Two functions of one name, and types that hold Go pointers or are too
// large for one message, are mistakes that it panics over. A and R may be
// struct{}.
//
// fn runs on the called rank whenever that polls or waits, with that rank's
// Node, as an active message handler: it must not block. It may use memory by
// Ptr.Local and atomics on its own neighbourhood; it must not call other ranks,
// lock, allocate collectively or enter barriers: any of that, and every wait, is
// an error that names the function and fails the job. At most one fn runs on a rank
// at a time, on any of its goroutines, of a rank with lanes in each lane. A panic in fn is a panic of the called
// rank.
func RegisterCall[A, R any](name string, fn func(n *Node, a A) R) *Func[A, R] {
	var a A
	var r R
	for _, t := range []reflect.Type{reflect.TypeFor[A](), reflect.TypeFor[R]()} {
		if err := checkType(t); err != nil && t.Size() != 0 {
			panic(fmt.Sprintf("gas: RegisterCall(%q): %v", name, err))
		}
		if t.Size() > maxCallBytes {
			panic(fmt.Sprintf("gas: RegisterCall(%q): type %v has %d bytes; a call carries at most %d", name, t, t.Size(), maxCallBytes))
		}
	}
	if name == "" || fn == nil {
		panic("gas: RegisterCall needs a name and a function")
	}
	f := &function{
		name:      name,
		signature: fmt.Sprintf("%s(%v) %v", name, reflect.TypeFor[A](), reflect.TypeFor[R]()),
		argSize:   unsafe.Sizeof(a),
		resSize:   unsafe.Sizeof(r),
		run: func(n *Node, arg, res unsafe.Pointer) {
			*(*R)(res) = fn(n, *(*A)(arg))
		},
	}
	functions.mu.Lock()
	defer functions.mu.Unlock()
	for _, g := range functions.list {
		if g.name == name {
			panic(fmt.Sprintf("gas: RegisterCall(%q): registered twice", name))
		}
	}
	f.index = uint32(len(functions.list))
	functions.list = append(functions.list, f)
	return &Func[A, R]{f}
}

// maxCallBytes is what a medium message carries on every conduit.
const maxCallBytes = 512

// A call's arguments: the function's index, the caller's slot and its use, and,
// if it fits, the value. noSlot asks for no answer.
const (
	callWords  = 3
	retWords   = 2
	callInline = (am.MaxArgs - callWords) * 4 // bytes
	retInline  = (am.MaxArgs - retWords) * 4
	noSlot     = 1<<32 - 1
)

// calls is a rank's side of remote calls.
type calls struct {
	table []*function

	// For the handler, which one goroutine runs at a time: scratch is nil before
	// the first call, running while no function runs.
	scratch *callScratch
	running *function

	mu    sync.Mutex
	slots []*slot
	free  []uint32
}

// callScratch is an argument and a result.
type callScratch struct {
	arg, res [maxCallBytes / 8]uint64
}

// slot is one call whose answer is awaited.
type slot struct {
	ready atomic.Bool
	use   atomic.Uint32 // tells apart the calls that used this slot; written under calls.mu
	done  chan struct{}
	res   [maxCallBytes / 8]uint64
	name  string
	dst   int
	// With Config.Debug origin is where the call was made, while it is under way;
	// the result is not taken if it was sent.
	origin string
	sent   bool
}

// Blocked says what is awaited.
func (s *slot) Blocked() string { return fmt.Sprintf("call of %s on rank %d", s.name, s.dst) }

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
	}
}

// label is the name of the handler that calls functions. The handler tables of
// all ranks are compared when they meet, and with them what is registered.
func label(list []*function) string {
	h := fnv.New64a()
	var names []string
	for _, f := range list {
		fmt.Fprintln(h, f.signature)
		names = append(names, f.name)
	}
	short := strings.Join(names, " ")
	if len(short) > 80 {
		short = short[:77] + "..."
	}
	return fmt.Sprintf("gas.call: %d functions, %016x: %s", len(names), h.Sum64(), short)
}

// onCall runs a function and answers.
func (n *Node) onCall(t *am.Token, args []uint32, payload []byte) {
	n = n.at(t)
	c := n.calls
	if len(args) < callWords || int(args[0]) >= len(c.table) {
		panic(fmt.Sprintf("gas: malformed call from rank %d", t.Src()))
	}
	f := c.table[args[0]]
	if c.scratch == nil {
		c.scratch = new(callScratch)
	}
	arg, res := unsafe.Pointer(&c.scratch.arg), unsafe.Pointer(&c.scratch.res)
	if payload != nil {
		arg = unsafe.Pointer(unsafe.SliceData(payload))
	} else {
		copy(wordsAt(arg, f.argSize), args[callWords:])
	}
	c.running = f
	f.run(n, arg, res)
	c.running = nil
	if args[1] == noSlot {
		return
	}
	var err error
	if f.resSize <= retInline {
		var w [am.MaxArgs]uint32
		w[0], w[1] = args[1], args[2]
		k := retWords + copy(w[retWords:], wordsAt(res, f.resSize))
		err = t.ReplyShort(handlerReturn, w[:k]...)
	} else {
		err = t.ReplyMedium(handlerReturn, unsafe.Slice((*byte)(res), f.resSize), args[1], args[2])
	}
	_ = err // the caller is dead and does not wait for the answer
}

// describe names the function that a handler of this package runs, for errors.
func (n *Node) describe(h am.HandlerID) string {
	if f := n.calls.running; f != nil && h == handlerCall {
		return fmt.Sprintf("%d (gas.call of %s)", h, f.name)
	}
	return ""
}

// wordsAt is size bytes at p as words, rounded up: all buffers have room.
func wordsAt(p unsafe.Pointer, size uintptr) []uint32 {
	return unsafe.Slice((*uint32)(p), (size+3)/4)
}

// onReturn takes an answer.
func (n *Node) onReturn(t *am.Token, args []uint32, payload []byte) {
	c := n.at(t).calls
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(args) < retWords || int(args[0]) >= len(c.slots) {
		return
	}
	s := c.slots[args[0]]
	if s.use.Load() != args[1] {
		return // its caller does not wait any more
	}
	if s.sent {
		c.give(args[0])
		return
	}
	if payload != nil {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&s.res)), maxCallBytes), payload)
	} else {
		copy(wordsAt(unsafe.Pointer(&s.res), maxCallBytes), args[retWords:])
	}
	s.ready.Store(true)
	if s.done != nil {
		close(s.done)
		s.done = nil
	}
}

// claim reserves a slot for a call of f on dst.
func (c *calls) claim(f *function, dst int) (s *slot, i uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := len(c.free); k > 0 {
		i = c.free[k-1]
		c.free = c.free[:k-1]
		s = c.slots[i]
	} else {
		s, i = new(slot), uint32(len(c.slots))
		c.slots = append(c.slots, s)
		c.free = append(c.free, i)[:len(c.free)] // room for all slots to come back
	}
	s.name, s.dst = f.name, dst
	return s, i
}

// release gives slot i back; later answers to its present use are ignored.
func (c *calls) release(i uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.give(i)
}

// give is release with the lock held.
func (c *calls) give(i uint32) {
	s := c.slots[i]
	s.use.Add(1)
	s.ready.Store(false)
	s.done = nil
	s.origin, s.sent = "", false
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

// send starts a call; arg points to f.argSize bytes aligned to 4.
func (n *Node) send(f *function, dst int, arg unsafe.Pointer, slot, use uint32) error {
	if int(f.index) >= len(n.calls.table) || n.calls.table[f.index] != f {
		return errs.NotReady("gas: call of %s: it was registered after Run had begun", f.name)
	}
	if f.argSize <= callInline {
		var w [am.MaxArgs]uint32
		w[0], w[1], w[2] = f.index, slot, use
		k := callWords + copy(w[callWords:], wordsAt(arg, f.argSize))
		return n.e.RequestShort(dst, handlerCall, w[:k]...)
	}
	return n.e.RequestMedium(dst, handlerCall, unsafe.Slice((*byte)(arg), f.argSize), f.index, slot, use)
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
	return fut.Wait()
}

// Go starts a Call and returns at once, unless it has to wait for room to send.
func (f *Func[A, R]) Go(n *Node, rank int, a A) (Future[R], error) {
	s, i := n.calls.claim(f.function, rank)
	if n.debug {
		n.calls.note(s, false)
	}
	arg := padded[A]{a: a}
	if err := n.send(f.function, rank, unsafe.Pointer(&arg), i, s.use.Load()); err != nil {
		n.calls.release(i)
		return Future[R]{}, fmt.Errorf("gas: call of %s on rank %d: %w", f.name, rank, err)
	}
	return Future[R]{n: n, s: s, i: i, use: s.use.Load()}, nil
}

// Send runs the function with a on rank and does not ask for the result: it
// returns when the request is on its way. A barrier does not wait for it.
func (f *Func[A, R]) Send(n *Node, rank int, a A) error {
	arg := padded[A]{a: a}
	i, use := uint32(noSlot), uint32(0)
	if n.debug { // asks for an answer, so that it is known whether the call is under way
		var s *slot
		s, i = n.calls.claim(f.function, rank)
		use = s.use.Load()
		n.calls.note(s, true)
	}
	if err := n.send(f.function, rank, unsafe.Pointer(&arg), i, use); err != nil {
		if n.debug {
			n.calls.release(i)
		}
		return fmt.Errorf("gas: call of %s on rank %d: %w", f.name, rank, err)
	}
	return nil
}

// Name is the name it was registered by.
func (f *Func[A, R]) Name() string { return f.name }

// Future is the result of a call that is under way. It may be copied; of all
// copies one takes the result with Wait, once. One that is never waited for keeps
// its place in a table as long as its Node lasts.
type Future[R any] struct {
	n   *Node
	s   *slot
	i   uint32
	use uint32
}

// Wait returns the result when it has arrived, and answers peers until then. A
// second Wait is an error.
func (f Future[R]) Wait() (r R, err error) {
	c := f.n.calls
	if f.s.use.Load() != f.use {
		return r, errs.BadArg("gas: result of a call taken twice on rank %d: each Future is waited for once (Future.Wait)", f.n.rank)
	}
	if f.s.dst == f.n.rank {
		// Request and answer are in the own mailbox: nothing to watch for.
		for !f.s.ready.Load() && f.n.e.Poll() > 0 {
		}
	}
	if !f.s.ready.Load() {
		if err := f.n.e.WaitFrom(f.s.dst, f.s, f.s.ready.Load); err != nil {
			name, dst := f.s.name, f.s.dst
			c.release(f.i)
			return r, fmt.Errorf("gas: call of %s on rank %d: %w", name, dst, err)
		}
	}
	r = *(*R)(unsafe.Pointer(&f.s.res))
	c.release(f.i)
	return r, nil
}

// Ready says whether Wait would return at once. It does not poll.
func (f Future[R]) Ready() bool { return f.s.ready.Load() }

// Done returns a channel that is closed when the result has arrived or the job
// has failed, for use in select. Another goroutine has to poll for that to
// happen: in a call that waits, or by Config.Progress. Where the conduit runs the
// ranks itself, as a simulator does, a rank must not receive from a channel: no
// other would run meanwhile. To be called before Wait.
func (f Future[R]) Done() <-chan struct{} {
	c := f.n.calls
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.s.use.Load() != f.use || f.s.ready.Load() || f.n.ep.Err() != nil {
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
		if s.done != nil && !s.ready.Load() {
			close(s.done)
			s.done = nil
		}
	}
}

var _ conduits.Blocked = (*slot)(nil)
