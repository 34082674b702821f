package gas

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/internal/sys"
	"github.com/argon-go/argon/segment"
)

// A value that a message does not carry moves once, from the memory that it lies in at one rank to
// the memory that it is at the other (Nüssle 2008, section 7.4: rendezvous). An argument is put by its caller:
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
// Handlers do all that the called rank does, so that it goes on in any wait; the puts are the
// caller's, the gets work that its handler puts off. The caller waits for the room and for the puts:
// of each of its goroutines one argument is under way. Lists of parts have 64 bits for each length and address.
const (
	askWords    = 1 // number of the transfer
	roomWords   = 2 // number, whether there is none and the payload says why
	runWords    = 4 // function, slot, use, number
	resultWords = 5 // slot, use, status, number, how many parts
	takenWords  = 1 // number

	partBytes = 16 // of a result's part in its message
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
	Text  string // of the error, or what the function panicked with
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

// failure is err, of a called function, as it travels.
func failure(err error) (status uint32, data []byte) {
	text := fmt.Sprint(err) // which catches a panic of its Error, as of a nil pointer in an error
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

// large is the state of a lane for values that are larger than a message.
type large struct {
	last  uint32 // numbers those that leave this rank
	asked map[uint32]*asked
	rooms map[roomOf]*room
	given map[int]uint64 // of each rank: the bytes of its rooms, where there are some
	held  map[uint32]*room
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
func (a *asked) Blocked() string { return fmt.Sprintf("room for the argument of %s on rank %d", a.f.name, a.dst) }

// roomOf names the room for an argument of a rank.
type roomOf struct {
	rank   int
	number uint32
}

// room is memory that one peer may access.
type room struct {
	parts [][]byte
	pins  []segment.Registration
	size  uint64
}

// unasked is how many bytes of arguments a peer may have on their way to a rank, or a result may
// have, without a look at the memory that there is: lengths that a peer makes up must not use it up.
const unasked = 64 << 20

// spacious is the error of size bytes more for a peer that has so many here.
func spacious(given, size uint64) error {
	if given <= unasked && size <= unasked-given {
		return nil
	}
	if r := sys.MemoryRoom(true); size > uint64(r.Free) {
		return errs.Resource("gas: a call's value takes %d bytes: %v", size, r)
	}
	return nil
}

// big is c.large. The lock is held.
func (c *calls) big() *large {
	if c.large == nil {
		c.large = &large{asked: map[uint32]*asked{}, rooms: map[roomOf]*room{}, given: map[int]uint64{}, held: map[uint32]*room{}}
	}
	return c.large
}

// open registers parts for peer, and returns their addresses.
func (n *Node) open(parts [][]byte, rights Rights, peer int) (r *room, at []segment.NLA, err error) {
	t, err := n.ep.ATU()
	if err != nil {
		return nil, nil, err
	}
	if peer >= segment.AnyVPID {
		peer = AnyPeer // an entry names no such rank
	}
	r = &room{parts: parts}
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
			n.shut(r)
			return nil, nil, err
		}
		r.size += uint64(len(b))
	}
	return r, at, nil
}

// shut ends what open has begun: no peer accesses the parts from now on.
func (n *Node) shut(r *room) {
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
		number, err := n.deliver(f, dst, arg.apart)
		switch {
		case err != nil:
			return err
		case arg.stream == nil:
			return n.e.RequestShort(dst, handlerRun, f.index|sent, slot, use, number)
		}
		return n.e.RequestMedium(dst, handlerRun, arg.stream, f.index|sent, slot, use, number)
	case len(arg.stream) <= callInline:
		var w [am.MaxArgs]uint32
		w[0], w[1], w[2] = f.index|sent, slot, use
		k := callWords + copy(bytesOf(w[callWords:]), arg.stream)/4
		return n.e.RequestShort(dst, handlerCall, w[:k]...)
	}
	return n.e.RequestMedium(dst, handlerCall, arg.stream, f.index|sent, slot, use)
}

// deliver puts parts into memory that dst makes for them, by which number.
func (n *Node) deliver(f *function, dst int, parts [][]byte) (number uint32, err error) {
	a := &asked{f: f, dst: dst, parts: len(parts)}
	c := n.calls
	c.mu.Lock()
	l := c.big()
	l.last++
	number = l.last
	l.asked[number] = a
	c.mu.Unlock()
	var lengths [mostApart + 1]uint64
	for i, b := range parts {
		lengths[i] = uint64(len(b))
	}
	if err = n.e.RequestMedium(dst, handlerAsk, bytesOf(lengths[:len(parts)]), number); err == nil {
		err = n.e.WaitFor(a, conduits.Cond{Ready: a.came.Load, Lacking: conduits.LackingRank(n.ep, dst)})
	}
	c.mu.Lock()
	delete(l.asked, number)
	c.mu.Unlock()
	switch {
	case err != nil:
		return 0, err
	case a.refused != "":
		return 0, errs.Resource("the argument: %s", a.refused)
	}
	var hs [mostApart + 1]Handle
	for i, b := range parts {
		if hs[i], err = n.x.PutBulkNB(dst, a.at[i], b); err != nil {
			break
		}
	}
	return number, errors.Join(err, n.x.WaitAll(hs[:len(parts)]))
}

// onAsk makes room for an argument.
func (n *Node) onAsk(t *am.Token, args []uint32, payload []byte) {
	n = n.at(t)
	c := n.calls
	key := roomOf{t.Src(), args[0]}
	lengths := words64(payload)
	if len(lengths) == 0 || len(lengths) > mostApart+1 {
		panic(fmt.Sprintf("gas: malformed argument of a call from rank %d: %d parts", key.rank, len(lengths)))
	}
	size := uint64(0)
	for _, k := range lengths {
		size += min(k, math.MaxInt64/(mostApart+1))
	}
	c.mu.Lock()
	l := c.big()
	_, twice := l.rooms[key]
	err := spacious(l.given[key.rank], size)
	c.mu.Unlock()
	if twice {
		panic(fmt.Sprintf("gas: rank %d asks twice for the room of argument %d", key.rank, key.number))
	}
	var r *room
	var at []segment.NLA
	if err == nil {
		parts := make([][]byte, len(lengths))
		for i, k := range lengths {
			parts[i] = bulk.Uncleared(int(k))
		}
		r, at, err = n.open(parts, RightWrite, key.rank)
	}
	if err != nil {
		why := []byte(err.Error())
		_ = t.ReplyMedium(handlerRoom, why[:min(len(why), maxCallBytes)], key.number, 1) // or the caller is dead
		return
	}
	c.mu.Lock()
	l.rooms[key] = r
	l.given[key.rank] += r.size
	c.mu.Unlock()
	_ = t.ReplyMedium(handlerRoom, bytesOf(at), key.number, 0) // or the caller is dead
}

// onRoom has the call go on that has asked.
func (n *Node) onRoom(t *am.Token, args []uint32, payload []byte) {
	n = n.at(t)
	c := n.calls
	c.mu.Lock()
	a := c.big().asked[args[0]]
	c.mu.Unlock()
	if a == nil {
		return // it has failed
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

// words64 are the words of a list of lengths or addresses.
func words64(b []byte) []uint64 {
	w := make([]uint64, len(b)/8)
	for i := range w {
		w[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return w
}

// onRun runs a function whose argument has been put.
func (n *Node) onRun(t *am.Token, args []uint32, payload []byte) {
	n = n.at(t)
	c := n.calls
	key := roomOf{t.Src(), args[3]}
	c.mu.Lock()
	l := c.big()
	r := l.rooms[key]
	if r != nil {
		delete(l.rooms, key)
		if l.given[key.rank] -= r.size; l.given[key.rank] == 0 {
			delete(l.given, key.rank)
		}
	}
	c.mu.Unlock()
	i := args[0] &^ noResult
	if r == nil || int(i) >= len(c.table) || c.table[i].fixed {
		panic(fmt.Sprintf("gas: malformed call from rank %d, of function %d with argument %d", key.rank, i, key.number))
	}
	n.shut(r)
	n.arrived(t, c.table[i], requester{key.rank, args[1], args[2], args[0]&noResult != 0}, parcel{payload, r.parts})
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
				n.refuse(t, from, err)
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
		n.refuse(t, from, err)
	case len(res.apart) > 0:
		n.answer(t, from, 0, res)
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
		n.answer(nil, from, 0, parcel{})
	case err != nil:
		n.refuse(nil, from, err)
	default:
		n.answer(nil, from, 0, res)
	}
}

// refuse answers with an error.
func (n *Node) refuse(t *am.Token, from requester, err error) {
	status, text := failure(err)
	v := parcel{stream: text}
	if len(text) > n.e.MaxMedium() {
		v = parcel{apart: [][]byte{text}}
	}
	n.answer(t, from, status, v)
}

// answer sends a result, or an error: as the reply of t, or outside handlers as a request, with t nil.
// What is apart stays registered until the caller has it.
func (n *Node) answer(t *am.Token, to requester, status uint32, v parcel) {
	number, k, payload := uint32(0), len(v.apart), v.stream
	if k > 0 {
		r, at, err := n.open(v.apart, RightRead, to.rank)
		if err != nil {
			n.refuse(t, to, errs.Resource("gas: the result: %v", err))
			return
		}
		c := n.calls
		c.mu.Lock()
		l := c.big()
		l.last++
		number = l.last
		l.held[number] = r
		c.mu.Unlock()
		payload = make([]byte, 0, k*partBytes+len(v.stream))
		for i, b := range v.apart {
			payload = binary.LittleEndian.AppendUint64(payload, uint64(len(b)))
			payload = binary.LittleEndian.AppendUint64(payload, uint64(at[i]))
		}
		payload = append(payload, v.stream...)
	}
	if t != nil {
		_ = t.ReplyMedium(handlerResult, payload, to.slot, to.use, status, number, uint32(k)) // or the caller is dead
		return
	}
	_ = n.e.RequestMedium(to.rank, handlerResult, payload, to.slot, to.use, status, number, uint32(k))
}

// onResult takes an answer, or puts off to get what is apart of it.
func (n *Node) onResult(t *am.Token, args []uint32, payload []byte) {
	n = n.at(t)
	src, slot, use, status, number, k := t.Src(), args[0], args[1], args[2], args[3], int(args[4])
	if k > mostApart+1 || k*partBytes > len(payload) {
		panic(fmt.Sprintf("gas: malformed result from rank %d: %d parts in %d bytes", src, k, len(payload)))
	}
	v := parcel{stream: bulk.Clone(payload[k*partBytes:])}
	if k == 0 {
		n.take(slot, use, status, v, nil)
		return
	}
	if len(v.stream) == 0 {
		v.stream = nil
	}
	list := words64(payload[:k*partBytes])
	n.putOff(func() {
		err := n.fetch(src, list, &v)
		n.take(slot, use, status, v, err)
		n.ep.Wake(n.rank)                               // the goroutine that waits for it may be another
		_ = n.e.RequestShort(src, handlerTaken, number) // or the rank has failed
	})
}

// fetch gets the parts of v that list has the lengths and addresses of.
func (n *Node) fetch(src int, list []uint64, v *parcel) (err error) {
	size := uint64(0)
	for i := 0; i < len(list); i += 2 {
		size += min(list[i], math.MaxInt64/(mostApart+1))
	}
	if err := spacious(0, size); err != nil {
		return err
	}
	var hs [mostApart + 1]Handle
	for i := 0; i < len(list) && err == nil; i += 2 {
		b := bulk.Uncleared(int(list[i]))
		v.apart = append(v.apart, b)
		hs[i/2], err = n.x.GetNB(src, segment.NLA(list[i+1]), b)
	}
	return errors.Join(err, n.x.WaitAll(hs[:len(list)/2]))
}

// take ends the call of a slot with v, which did not arrive if err is not nil.
func (n *Node) take(slot, use, status uint32, v parcel, err error) {
	c := n.calls
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.awaited(slot, use)
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

// onTaken ends the registration of a result that its caller has.
func (n *Node) onTaken(t *am.Token, args []uint32, _ []byte) {
	n = n.at(t)
	c := n.calls
	c.mu.Lock()
	l := c.big()
	r := l.held[args[0]]
	delete(l.held, args[0])
	c.mu.Unlock()
	if r == nil {
		panic(fmt.Sprintf("gas: rank %d has taken result %d, which there is not", t.Src(), args[0]))
	}
	n.shut(r)
}
