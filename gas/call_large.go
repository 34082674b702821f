package gas

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// A value that a message does not carry moves from the memory that it lies in at one rank into the memory
// that it is at the other (Nüssle 2008, section 7.4: rendezvous). An argument is put by its caller:
//
//	caller                                  called rank
//	ask    the lengths of its parts    ->   memory for them, registered for the caller
//	       puts                        <-   room    their addresses
//	run    function and stream         ->   takes the memory back, runs the function
//
// and a result, which is there and registered, is got:
//
//	taken, after the gets              <-   result  stream, lengths and addresses
//
// Between ranks in reach of load and store, whose memory of the Go heap is in no other's reach but by a system
// call that looks up each page, nothing is registered, and pieces take the place of the puts and, each
// asked for by a pull, of the gets: what one rank copies into shared memory the other copies out of it
// at the same time. 1 MiB takes 46 us so, and 124 us by process_vm_writev(2).
//
// Handlers do all that the called rank does, so that it goes on in any wait; the puts are the
// caller's, the gets work that its handler puts off. The caller waits for the room and for the puts:
// of each of its goroutines one argument is under way. Lists of parts have 64 bits for each length and address.
const (
	askWords    = 2 // number of the transfer, whether it comes in pieces
	roomWords   = 2 // number, whether there is none and the payload says why
	pieceWords  = 4 // number, part, offset
	runWords    = 4 // function, slot, use, number
	resultWords = 5 // slot, use, status, number, how many parts
	pullWords   = 6 // number of the result and of its transfer, part, offset, length; taken has length 0

	partBytes = 16 // of a result's part in its message

	unrun = 1<<32 - 1 // in place of a function: its argument could not be put, and does not come
)

// The status of a result: 0, or statusFailed and the sentinels that the error matches.
const (
	statusFailed = 1 << iota
	statusPanicked
	statusSentinel // the first of sentinels; the others follow
)

// sentinels are the errors that are told apart at the caller.
var sentinels = [...]error{
	ErrNotInit, ErrResource, ErrBadArg, ErrNotReady, ErrBarrierMismatch, ErrNotSupported,
	ErrClosed, ErrPeer, ErrExit, ErrFault,
}

// CallError says how a called function failed. It matches those errors of this package,
// such as ErrBadArg, that the function's error matches there.
type CallError struct {
	Func  string // the name that it is registered by
	Rank  int    // the called rank
	Text  string // of the error, or what the function panicked with; of functions that call each other very deep its ends
	Panic bool   // it panicked
	Stack string // of the panic: the innermost frames
	kinds uint32 // the sentinels that it matches, by bits from statusSentinel on
}

// Error names function and rank, and the place of a panic.
func (e *CallError) Error() string {
	if !e.Panic {
		return fmt.Sprintf("gas: %s on rank %d: %s", e.Func, e.Rank, e.Text)
	}
	return fmt.Sprintf("gas: %s on rank %d panicked: %s\n%s", e.Func, e.Rank, e.Text, e.Stack)
}

// Is makes errors.Is find the errors of this package.
func (e *CallError) Is(target error) bool {
	for i, s := range sentinels {
		if e.kinds&(statusSentinel<<i) != 0 && target == s {
			return true
		}
	}
	return false
}

// panicked is a panic of a called function.
type panicked struct {
	value any
	stack string
}

func (p *panicked) Error() string { return fmt.Sprint(p.value) }

// Unwrap is the value of the panic, if that is an error.
func (p *panicked) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// caught is the error of a panic with value v, for the function that recovers it.
func caught(v any) error { return &panicked{v, innermost(string(debug.Stack()))} }

// innermost are the first frames of stack below the panic, down to the function that was
// called.
func innermost(stack string) string {
	const most = 8 // lines, two a frame
	if i := strings.LastIndex(stack, "\npanic("); i >= 0 {
		stack = stack[i+1:]
	}
	l := strings.SplitN(strings.TrimRight(stack, "\n"), "\n", most+3)
	if strings.HasPrefix(l[0], "panic(") {
		l = l[min(2, len(l)):]
	}
	l = l[:min(most, len(l))]
	for i, line := range l {
		if i > 0 && (strings.Contains(line, "/gas.register[") || strings.Contains(line, "/gas.RegisterCall[")) {
			l = l[:i]
			break
		}
	}
	return strings.Join(l, "\n")
}

// ofCall reports whether err is that of a further call.
func ofCall(err error) bool {
	defer func() { _ = recover() }() // of methods of the program's, as in kindOf
	return errors.As(err, new(*CallError))
}

// mostFailure is how long the text of an error of functions that call each other may be, bytes.
const mostFailure = 4 << 10

// failure is err, of a called function, as it travels.
func failure(err error) (status uint32, data []byte) {
	text := fmt.Sprint(err)                     // which catches a panic of its Error, as of a nil pointer in an error
	if len(text) > mostFailure && ofCall(err) { // of functions that call each other, each adds its name
		text = text[:mostFailure/4] + " [...] " + text[len(text)-mostFailure*3/4:]
	}
	status, stack := kindOf(err)
	data = binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	return status, append(append(data, text...), stack...)
}

// kindOf is the status of err, and the stack if it is a panic.
func kindOf(err error) (status uint32, stack string) {
	status = statusFailed
	defer func() { _ = recover() }() // of a method Is, As or Unwrap of the program's
	var p *panicked
	if errors.As(err, &p) {
		status |= statusPanicked
		stack = p.stack
	}
	for i, s := range sentinels {
		if errors.Is(err, s) {
			status |= statusSentinel << i
		}
	}
	return status, stack
}

// failureOf decodes the error of function f on rank, which failure has encoded.
func failureOf(f *function, rank int, status uint32, data []byte) *CallError {
	e := &CallError{Func: f.name, Rank: rank, Panic: status&statusPanicked != 0, kinds: status}
	if len(data) >= 4 {
		k := min(uint64(binary.LittleEndian.Uint32(data)), uint64(len(data)-4))
		e.Text, e.Stack = string(data[4:4+k]), string(data[4+k:])
	}
	return e
}

// requester has the place to which an answer goes.
type requester struct {
	rank      int
	slot, use uint32 // noSlot wants no answer
	sent      bool   // the answer says only that the function has run
}

// awaited reports whether a result or an error is wanted.
func (r *requester) awaited() bool { return r.slot != noSlot && !r.sent }

// large has the values of a lane that are larger than a message. Those of its methods that begin with on are
// handlers; they, and answer with a token, are the only ones that run in some.
type large struct {
	n *Node

	mu    sync.Mutex
	last  uint32 // numbers those that leave this rank
	asked map[uint32]*asked
	rooms map[roomOf]*room
	given map[int]uint64   // of each rank: the bytes of its rooms, where there are some
	held  map[uint32]*room // results, until they are taken
	comes map[uint32]*room // results that come in pieces
}

// asked is a call that waits for room.
type asked struct {
	f       *function
	dst     int
	parts   int
	at      []segment.NLA
	refused string
	came    atomic.Bool
}

// Blocked names the call.
func (a *asked) Blocked() string {
	return fmt.Sprintf("room for the argument of %s on rank %d", a.f.name, a.dst)
}

// roomOf names the room for an argument of a rank.
type roomOf struct {
	rank   int
	number uint32
}

// room is memory of parts that one peer accesses, or has pieces for or of.
type room struct {
	peer  int
	parts [][]byte
	pins  []segment.Registration
	size  uint64
	left  atomic.Uint64 // bytes that have not come in pieces
	came  []uint64      // which pieces have, a bit each
	// run is the call, if that has overtaken pieces.
	run func(t *am.Token)
}

func newRoom(peer int, parts [][]byte) *room {
	r := &room{peer: peer, parts: parts}
	for _, b := range parts {
		r.size += uint64(len(b))
	}
	return r
}

// at is the n bytes of a part at off, where a peer says that a piece lies.
func (r *room) at(src int, part uint32, off, n uint64) []byte {
	if r == nil || r.peer != src || uint64(part) >= uint64(len(r.parts)) || off > uint64(len(r.parts[part])) || n > uint64(len(r.parts[part]))-off {
		panic(fmt.Sprintf("gas: malformed piece from rank %d: %d bytes at %d of part %d", src, n, off, part))
	}
	return r.parts[part][off : off+n]
}

// expect has all of r come in pieces of most bytes.
func (r *room) expect(most int) {
	pieces := 0
	for _, b := range r.parts {
		pieces += (len(b) + most - 1) / most
	}
	r.came = make([]uint64, (pieces+63)/64)
	r.left.Store(r.size)
}

// fill takes a piece, as cut makes them of most bytes, and returns how many bytes are missing. Each
// comes once: what the memory held before is nothing that the function should see.
func (r *room) fill(src int, part uint32, off uint64, piece []byte, most int) (left uint64) {
	k := uint64(len(piece))
	to := r.at(src, part, off, k)
	i := off / uint64(most)
	for _, b := range r.parts[:part] {
		i += uint64((len(b) + most - 1) / most)
	}
	w, bit := &r.came[i/64], uint64(1)<<(i%64)
	if off%uint64(most) != 0 || k != min(uint64(most), uint64(len(r.parts[part]))-off) || *w&bit != 0 {
		panic(fmt.Sprintf("gas: malformed piece from rank %d: %d bytes at %d of part %d, where others were awaited", src, k, off, part))
	}
	*w |= bit
	bulk.Copy(to, piece)
	return r.left.Add(-k)
}

// unasked is how many bytes of arguments a peer may have on their way to a rank, or a result may
// have, without a look at the memory that there is: lengths that a peer makes up must not use it up.
const unasked = 64 << 20

// promised is how many bytes a rank has made memory for that may not have come: until they do, the
// system counts it as free.
type promised struct{ bytes atomic.Uint64 }

// add promises size bytes more, for a peer that has so many here, or is the error of their lack.
func (p *promised) add(given, size uint64) error {
	free := uint64(math.MaxUint64)
	var r sys.Room
	if given > unasked || size > unasked-given {
		r = sys.MemoryRoom(true)
		free = uint64(max(r.Free, 0))
	}
	for {
		before := p.bytes.Load()
		if size > free || before > free-size {
			return errs.Resource("gas: a call's value takes %d bytes, beside %d of others that are on their way: %v", size, before, r)
		}
		if p.bytes.CompareAndSwap(before, before+size) {
			return nil
		}
	}
}

// sub takes back the promise of size bytes.
func (p *promised) sub(size uint64) { p.bytes.Add(-size) }

// big is the large of n's lane.
func (n *Node) big() *large {
	c := n.calls
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.large == nil {
		c.large = &large{n: n, asked: map[uint32]*asked{}, rooms: map[roomOf]*room{}, given: map[int]uint64{}, held: map[uint32]*room{}, comes: map[uint32]*room{}}
	}
	return c.large
}

// by is the handler of what fn does in the lane of the message.
func (n *Node) by(fn func(l *large, t *am.Token, args []uint32, payload []byte)) am.Handler {
	return func(t *am.Token, args []uint32, payload []byte) { fn(n.at(t).big(), t, args, payload) }
}

// open registers parts for peer, and returns their addresses.
func (l *large) open(parts [][]byte, rights Rights, peer int) (r *room, at []segment.NLA, err error) {
	n := l.n
	t, err := n.ep.ATU()
	if err != nil {
		return nil, nil, err
	}
	r = newRoom(peer, parts)
	if peer >= segment.AnyVPID {
		peer = AnyPeer // an entry names no such rank
	}
	for _, b := range parts {
		pin, err := t.Register(b, rights, peer)
		if err == nil {
			r.pins = append(r.pins, pin)
			a, k := pin.At(0)
			if at = append(at, a); k < uint64(len(b)) {
				err = errs.Resource("gas: no %d addresses of registered memory in a row", len(b))
			}
		}
		if err != nil {
			l.shut(r)
			return nil, nil, err
		}
	}
	return r, at, nil
}

// shut ends what open has begun: no peer accesses the parts from now on.
func (l *large) shut(r *room) {
	n := l.n
	t, err := n.ep.ATU()
	for _, pin := range r.pins {
		if err == nil {
			err = t.Deregister(pin)
		}
	}
	if err != nil {
		n.ep.Fail(fmt.Errorf("gas: the memory of a call's value: %w", err))
	}
}

// sendEncoded sends the call of a function that is not fixed.
func (n *Node) sendEncoded(f *function, dst int, arg *parcel, slot, use, sent uint32) error {
	switch {
	case len(arg.apart) > 0:
		number, err := n.big().deliver(f, dst, arg.apart)
		switch {
		case err != nil:
		case arg.stream == nil:
			err = n.e.RequestShort(dst, handlerRun, f.index|sent, slot, use, number)
		default:
			err = n.e.RequestMedium(dst, handlerRun, arg.stream, f.index|sent, slot, use, number)
		}
		if err != nil && number != 0 {
			_ = n.e.RequestShort(dst, handlerRun, unrun, 0, 0, number) // or the rank has failed
		}
		return err
	case len(arg.stream) <= callInline:
		var w [am.MaxArgs]uint32
		w[0], w[1], w[2] = f.index|sent, slot, use
		k := callWords + copy(bytesOf(w[callWords:]), arg.stream)/4
		return n.e.RequestShort(dst, handlerCall, w[:k]...)
	}
	return n.e.RequestMedium(dst, handlerCall, arg.stream, f.index|sent, slot, use)
}

// deliver puts parts into memory that dst makes for them, by which number: not 0 where there is such memory.
func (l *large) deliver(f *function, dst int, parts [][]byte) (number uint32, err error) {
	n := l.n
	a := &asked{f: f, dst: dst, parts: len(parts)}
	l.mu.Lock()
	number = l.next()
	l.asked[number] = a
	l.mu.Unlock()
	var lengths [mostApart + 1]uint64
	for i, b := range parts {
		lengths[i] = uint64(len(b))
	}
	pieces := uint32(0)
	if n.Neighbour(dst) {
		pieces, a.parts = 1, 0
	}
	if err = n.e.RequestMedium(dst, handlerAsk, bytesOf(lengths[:len(parts)]), number, pieces); err == nil {
		err = n.e.WaitFor(a, conduits.Cond{Ready: a.came.Load, Lacking: conduits.LackingRank(n.ep, dst)})
	}
	l.mu.Lock()
	delete(l.asked, number)
	l.mu.Unlock()
	switch {
	case err != nil:
		return 0, err
	case a.refused != "":
		return 0, errs.Resource("the argument: %s", a.refused)
	}
	if pieces != 0 {
		return number, cut(n.e.MaxMedium(), parts, func(part uint32, off, k uint64) error {
			low, high := am.Pack64(off)
			return n.e.RequestMedium(dst, handlerPiece, parts[part][off:off+k], number, part, low, high)
		})
	}
	var hs [mostApart + 1]Handle
	for i, b := range parts {
		if hs[i], err = n.x.PutBulkNB(dst, a.at[i], b); err != nil {
			break
		}
	}
	return number, gone(dst, errors.Join(err, n.x.WaitAll(hs[:len(parts)])))
}

// next numbers what leaves this rank, never by 0, with mu held.
func (l *large) next() uint32 {
	if l.last++; l.last == 0 {
		l.last++
	}
	return l.last
}

// gone is err, of an access to what rank has registered for a value: that is taken back before only if rank ends.
func gone(rank int, err error) error {
	if errors.Is(err, segment.ErrFault) {
		return &conduits.PeerError{Rank: rank, Err: err}
	}
	return err
}

// cut calls do for all pieces of parts, until it fails.
func cut(most int, parts [][]byte, do func(part uint32, off, n uint64) error) error {
	for i, b := range parts {
		for off := 0; off < len(b); off += most {
			if err := do(uint32(i), uint64(off), uint64(min(most, len(b)-off))); err != nil {
				return err
			}
		}
	}
	return nil
}

// onAsk makes room for an argument.
func (l *large) onAsk(t *am.Token, args []uint32, payload []byte) {
	key := roomOf{t.Src(), args[0]}
	lengths := words64(payload)
	if len(lengths) == 0 || len(lengths) > mostApart+1 {
		panic(fmt.Sprintf("gas: malformed argument of a call from rank %d: %d parts", key.rank, len(lengths)))
	}
	size := uint64(0)
	for _, k := range lengths {
		size += min(k, math.MaxInt64/(mostApart+1))
	}
	l.mu.Lock()
	_, twice := l.rooms[key]
	given := l.given[key.rank]
	l.mu.Unlock()
	if twice {
		panic(fmt.Sprintf("gas: rank %d asks twice for the room of argument %d", key.rank, key.number))
	}
	var r *room
	var at []segment.NLA
	err := l.n.promised.add(given, size)
	if err == nil {
		parts := make([][]byte, len(lengths))
		for i, k := range lengths {
			if args[1] == 0 {
				// Cleared: nothing here knows what of it the peer has put when it has the function run.
				parts[i] = make([]byte, k)
			} else {
				parts[i] = bulk.Uncleared(int(k))
			}
		}
		if args[1] == 0 {
			r, at, err = l.open(parts, RightWrite, key.rank)
		} else {
			r = newRoom(key.rank, parts)
			r.expect(l.n.e.MaxMedium())
		}
		if err != nil {
			l.n.promised.sub(size)
		}
	}
	if err != nil {
		why := []byte(err.Error())
		_ = t.ReplyMedium(handlerRoom, why[:min(len(why), maxCallBytes)], key.number, 1) // or the caller is dead
		return
	}
	l.mu.Lock()
	l.rooms[key] = r
	l.given[key.rank] += r.size
	l.mu.Unlock()
	if t.ReplyMedium(handlerRoom, bytesOf(at), key.number, 0) != nil {
		l.leave(key) // the caller is dead
	}
}

// onRoom has the call go on that has asked.
func (l *large) onRoom(t *am.Token, args []uint32, payload []byte) {
	l.mu.Lock()
	a := l.asked[args[0]]
	l.mu.Unlock()
	if a == nil {
		return // it has failed
	}
	if a.dst != t.Src() {
		panic(fmt.Sprintf("gas: malformed room from rank %d, where one of rank %d is awaited", t.Src(), a.dst))
	}
	if args[1] != 0 {
		a.refused = string(payload)
	} else {
		for _, at := range words64(payload) {
			a.at = append(a.at, segment.NLA(at))
		}
		if len(a.at) != a.parts {
			panic(fmt.Sprintf("gas: malformed room from rank %d: %d addresses for %d parts", t.Src(), len(a.at), a.parts))
		}
	}
	a.came.Store(true)
}

// onPiece takes a piece of an argument, or of a result as the reply to a pull.
func (l *large) onPiece(t *am.Token, args []uint32, payload []byte) {
	reply := t.Kind()&am.Reply != 0
	l.mu.Lock()
	r := l.rooms[roomOf{t.Src(), args[0]}]
	if reply {
		r = l.comes[args[0]]
	}
	l.mu.Unlock()
	if r == nil {
		return // the caller has given up
	}
	if left := r.fill(t.Src(), args[1], am.Unpack64(args[2], args[3]), payload, l.n.e.MaxMedium()); left == 0 && r.run != nil {
		r.run(t)
	}
}

// onPull answers with a piece of a result, or lets go of one that its caller has.
func (l *large) onPull(t *am.Token, args []uint32, _ []byte) {
	l.mu.Lock()
	r := l.held[args[0]]
	taken := args[5] == 0 && r != nil && r.peer == t.Src()
	if taken {
		delete(l.held, args[0])
	}
	l.mu.Unlock()
	if taken {
		l.shut(r)
		return
	}
	piece := r.at(t.Src(), args[2], am.Unpack64(args[3], args[4]), uint64(args[5]))
	_ = t.ReplyMedium(handlerPiece, piece, args[1], args[2], args[3], args[4]) // or the caller is dead
}

// words64 are the words of a list of lengths or addresses.
func words64(b []byte) []uint64 {
	w := make([]uint64, len(b)/8)
	for i := range w {
		w[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return w
}

// onRun runs a function whose argument has been put, or has it run when the last piece has come.
func (l *large) onRun(t *am.Token, args []uint32, payload []byte) {
	n := l.n
	key := roomOf{t.Src(), args[3]}
	l.mu.Lock()
	r := l.rooms[key]
	l.mu.Unlock()
	if r != nil && args[0] == unrun {
		l.leave(key)
		return
	}
	i := args[0] &^ noResult
	if r == nil || r.run != nil || int(i) >= len(n.calls.table) || n.calls.table[i].fixed {
		panic(fmt.Sprintf("gas: malformed call from rank %d, of function %d with argument %d", key.rank, i, key.number))
	}
	from := requester{key.rank, args[1], args[2], args[0]&noResult != 0}
	if r.left.Load() != 0 {
		payload = slices.Clone(payload)
		r.run = func(t *am.Token) { l.ready(t, n.calls.table[i], from, key, parcel{payload, r.parts}) }
		return
	}
	l.ready(t, n.calls.table[i], from, key, parcel{payload, r.parts})
}

// ready runs a function whose argument is in the room of key.
func (l *large) ready(t *am.Token, f *function, from requester, key roomOf, arg parcel) {
	l.leave(key)
	l.n.arrived(t, f, from, arg)
}

// leave ends the room of key, whose memory is the value's now.
func (l *large) leave(key roomOf) {
	l.mu.Lock()
	r := l.rooms[key]
	delete(l.rooms, key)
	if l.given[key.rank] -= r.size; l.given[key.rank] == 0 {
		delete(l.given, key.rank)
	}
	l.mu.Unlock()
	l.n.promised.sub(r.size)
	l.shut(r)
}

// arrived runs a function that is not fixed, whose argument is there, and answers, or puts
// it off.
func (n *Node) arrived(t *am.Token, f *function, from requester, arg parcel) {
	c := n.calls
	run, err := f.prepare(arg)
	if err != nil {
		panic(fmt.Sprintf("gas: malformed argument of %s from rank %d: %v", f.name, from.rank, err))
	}
	if f.task {
		if err := n.putOffTask(func() { n.perform(run, from) }); err != nil {
			c.handled.Add(1)
			err = errs.Resource("gas: %s: %v", f.name, err)
			if from.awaited() {
				n.big().refuse(t, from, err)
			} else {
				n.ep.Fail(err)
			}
		}
		return
	}
	c.running = f
	res, err := n.guarded(run, from)
	c.running = nil
	conc.Release64(&c.ran, c.ran+1)
	switch {
	case from.slot == noSlot:
		return
	case from.sent:
		err = t.ReplyShort(handlerReturn, from.slot, from.use)
	case err != nil:
		n.big().refuse(t, from, err)
	case len(res.apart) > 0:
		n.big().answer(t, from, 0, res)
	case len(res.stream) <= retInline:
		var w [am.MaxArgs]uint32
		w[0], w[1] = from.slot, from.use
		k := retWords + copy(bytesOf(w[retWords:]), res.stream)/4
		err = t.ReplyShort(handlerReturn, w[:k]...)
	default:
		err = t.ReplyMedium(handlerReturn, res.stream, from.slot, from.use)
	}
	_ = err // the caller is dead and does not wait for the answer
}

// guarded runs a function; where its caller waits its panic is an error.
func (n *Node) guarded(run func(c *Call) (parcel, error), from requester) (res parcel, err error) {
	call := &Call{n, from.rank}
	if !from.awaited() {
		return run(call)
	}
	defer func() {
		if p := recover(); p != nil {
			err = caught(p)
		}
	}()
	return run(call)
}

// perform runs a task and sends its result.
func (n *Node) perform(run func(c *Call) (parcel, error), from requester) {
	var res parcel
	var err error
	n.unnested(from.awaited(), func() { res, err = run(&Call{n, from.rank}) }, &err)
	n.calls.handled.Add(1)
	switch {
	case from.slot == noSlot:
	case from.sent:
		n.big().answer(nil, from, 0, parcel{})
	case err != nil:
		n.big().refuse(nil, from, err)
	default:
		n.big().answer(nil, from, 0, res)
	}
}

// refuse answers with an error.
func (l *large) refuse(t *am.Token, from requester, err error) {
	n := l.n
	status, text := failure(err)
	v := parcel{stream: text}
	if len(text) > n.e.MaxMedium() {
		v = parcel{apart: [][]byte{text}}
	}
	l.answer(t, from, status, v)
}

// answer sends a result, or an error: as the reply of t, or outside handlers as a request, with t nil.
// What is apart stays registered until the caller has it.
func (l *large) answer(t *am.Token, to requester, status uint32, v parcel) {
	n := l.n
	number, k, payload := uint32(0), len(v.apart), v.stream
	if k > 0 {
		r, at := newRoom(to.rank, v.apart), make([]segment.NLA, k)
		if !n.Neighbour(to.rank) {
			var err error
			if r, at, err = l.open(v.apart, RightRead, to.rank); err != nil {
				l.refuse(t, to, errs.Resource("gas: the result: %v", err))
				return
			}
		}
		l.mu.Lock()
		number = l.next()
		l.held[number] = r
		l.mu.Unlock()
		payload = make([]byte, 0, k*partBytes+len(v.stream))
		for i, b := range v.apart {
			payload = binary.LittleEndian.AppendUint64(payload, uint64(len(b)))
			payload = binary.LittleEndian.AppendUint64(payload, uint64(at[i]))
		}
		payload = append(payload, v.stream...)
	}
	var err error
	if t != nil {
		err = t.ReplyMedium(handlerResult, payload, to.slot, to.use, status, number, uint32(k))
	} else {
		err = n.e.RequestMedium(to.rank, handlerResult, payload, to.slot, to.use, status, number, uint32(k))
	}
	if err == nil || k == 0 {
		return
	}
	l.mu.Lock() // the caller is dead and will not take it
	r := l.held[number]
	delete(l.held, number)
	l.mu.Unlock()
	l.shut(r)
}

// onResult takes an answer, or puts off to get what is apart of it.
func (l *large) onResult(t *am.Token, args []uint32, payload []byte) {
	n := l.n
	src, slot, use, status, number, k := t.Src(), args[0], args[1], args[2], args[3], int(args[4])
	if k > mostApart+1 || k*partBytes > len(payload) {
		panic(fmt.Sprintf("gas: malformed result from rank %d: %d parts in %d bytes", src, k, len(payload)))
	}
	v := parcel{stream: bulk.Clone(payload[k*partBytes:])}
	if k == 0 {
		n.take(src, slot, use, status, v, nil)
		return
	}
	if len(v.stream) == 0 {
		v.stream = nil
	}
	list := words64(payload[:k*partBytes])
	n.putOff(func() {
		err := l.fetch(src, number, list, &v)
		n.take(src, slot, use, status, v, err)
		n.ep.Wake(n.rank)                                             // the goroutine that waits for it may be another
		_ = n.e.RequestShort(src, handlerPull, number, 0, 0, 0, 0, 0) // or the rank has failed
	})
}

// fetch gets the parts of v, src's result of a number, that list has the lengths and addresses of.
func (l *large) fetch(src int, number uint32, list []uint64, v *parcel) (err error) {
	n := l.n
	size := uint64(0)
	for i := 0; i < len(list); i += 2 {
		size += min(list[i], math.MaxInt64/(mostApart+1))
	}
	if err := n.promised.add(0, size); err != nil {
		return err
	}
	defer n.promised.sub(size)
	for i := 0; i < len(list); i += 2 {
		v.apart = append(v.apart, bulk.Uncleared(int(list[i])))
	}
	if list[1] == 0 { // no address: src is a neighbour
		return l.pull(src, number, newRoom(src, v.apart))
	}
	var hs [mostApart + 1]Handle
	for i := 0; i < len(v.apart) && err == nil; i++ {
		hs[i], err = n.x.GetNB(src, segment.NLA(list[2*i+1]), v.apart[i])
	}
	return gone(src, errors.Join(err, n.x.WaitAll(hs[:len(v.apart)])))
}

// pull fills r by pieces of src's result.
func (l *large) pull(src int, number uint32, r *room) error {
	n := l.n
	r.expect(n.e.MaxMedium())
	l.mu.Lock()
	mine := l.next()
	l.comes[mine] = r
	l.mu.Unlock()
	err := cut(n.e.MaxMedium(), r.parts, func(part uint32, off, k uint64) error {
		low, high := am.Pack64(off)
		return n.e.RequestShort(src, handlerPull, number, mine, part, low, high, uint32(k))
	})
	if err == nil {
		err = n.e.WaitFor(nil, conduits.Cond{Ready: func() bool { return r.left.Load() == 0 }, Lacking: conduits.LackingRank(n.ep, src)})
	}
	l.mu.Lock()
	delete(l.comes, mine)
	l.mu.Unlock()
	return err
}

// take ends the call of a slot with v from src, which did not arrive if err is not nil.
func (n *Node) take(src int, slot, use, status uint32, v parcel, err error) {
	c := n.calls
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.awaited(src, slot, use)
	switch {
	case s == nil:
		return
	case err != nil:
		s.failed = &CallError{Func: s.f.name, Rank: s.dst, Text: err.Error(), kinds: statusFailed}
		s.failed.kinds, _ = kindOf(err)
	case status != 0:
		if v.stream == nil && len(v.apart) > 0 {
			v.stream = v.apart[0]
		}
		s.failed = failureOf(s.f, s.dst, status, v.stream)
	default:
		s.data = v
	}
	n.answered(s)
}
