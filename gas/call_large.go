package gas

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/internal/bulk"
	"github.com/argon-go/argon/internal/conc"
	"github.com/argon-go/argon/internal/errs"
)

// The arguments of the messages that carry a piece of a value: handlerPart of a function's
// argument, handlerResult of a result or an error that is no reply to the call. Offsets
// and lengths are of 64 bits.
const (
	partWords   = 8 // function, slot, use, transfer, offset, length of all
	resultWords = 7 // slot, use, status, offset, length of all
	errorWords  = 3 // slot, use, status
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

// maxValue is how long an encoded value may be, bytes: more than any rank has.
const maxValue = 1 << 40

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

// large is the state of a lane for values that take several messages.
type large struct {
	begun   uint32 // numbers those that were sent
	parts   map[partOf]*assembly
	missing map[int]uint64 // of each rank: the sum of missing of its parts, where it is not 0
}

// partOf names an argument that is arriving.
type partOf struct {
	rank int
	id   uint32
}

// assembly is a value that is arriving.
type assembly struct {
	data  []byte
	have  uint64
	total uint64
}

// ahead is by how many bytes pieces may have overtaken others: more than are under way
// between two ranks at once. What is allocated follows what has come, so that sizes that a
// peer makes up take no memory.
const ahead = 64 << 20

// missing is how many bytes have not come that lie before some that have.
func (a *assembly) missing() uint64 {
	if k := uint64(len(a.data)); k > a.have {
		return k - a.have
	}
	return 0 // or a peer that lies has sent some twice
}

// add puts a piece in its place and reports whether all are there. A piece that does not fit is
// an error; others is how much other values of its sender are missing.
func (a *assembly) add(piece []byte, off, total, others uint64) (whole bool, err error) {
	if a.total == 0 {
		a.total = total
	}
	end := off + uint64(len(piece))
	if total > maxValue || total != a.total || off > total || end > total {
		return false, errs.BadArg("gas: %d bytes at %d of a value of %d, of which %d were here", len(piece), off, total, a.have)
	}
	if off > a.have && off-a.have+others > ahead {
		return false, errs.BadArg("gas: %d bytes at %d of a value of %d overtake %d of it and %d of other values; at most %d can",
			len(piece), off, total, off-a.have, others, ahead)
	}
	if k := uint64(len(a.data)); end > k {
		if end > uint64(cap(a.data)) {
			more := make([]byte, k, min(total, 2*end))
			bulk.Copy(more, a.data)
			a.data = more
		}
		a.data = a.data[:end]
	}
	a.have += uint64(bulk.Copy(a.data[off:], piece))
	return a.have >= total, nil
}

// big is c.large. The lock is held.
func (c *calls) big() *large {
	if c.large == nil {
		c.large = &large{parts: map[partOf]*assembly{}, missing: map[int]uint64{}}
	}
	return c.large
}

// sendEncoded sends the call of a function that is not fixed.
func (n *Node) sendEncoded(f *function, dst int, arg []byte, slot, use, sent uint32) error {
	if len(arg) <= callInline {
		var w [am.MaxArgs]uint32
		w[0], w[1], w[2] = f.index|sent, slot, use
		k := callWords + copy(bytesOf(w[callWords:]), arg)/4
		return n.e.RequestShort(dst, handlerCall, w[:k]...)
	}
	most := n.e.MaxMedium()
	if len(arg) <= most {
		return n.e.RequestMedium(dst, handlerCall, arg, f.index|sent, slot, use)
	}
	if len(arg) > maxValue {
		return errs.BadArg("gas: the argument takes %d bytes; at most %d travel", len(arg), maxValue)
	}
	n.calls.mu.Lock()
	l := n.calls.big()
	l.begun++
	id := l.begun
	n.calls.mu.Unlock()
	totalLow, totalHigh := am.Pack64(uint64(len(arg)))
	for off := 0; off < len(arg); off += most {
		low, high := am.Pack64(uint64(off))
		piece := arg[off:min(off+most, len(arg))]
		if err := n.e.RequestMedium(dst, handlerPart, piece, f.index|sent, slot, use, id, low, high, totalLow, totalHigh); err != nil {
			return err
		}
	}
	return nil
}

// onPart takes a piece of an argument, and calls the function with the last.
func (n *Node) onPart(t *am.Token, args []uint32, payload []byte) {
	n = n.at(t)
	c := n.calls
	key := partOf{t.Src(), args[3]}
	c.mu.Lock()
	l := c.big()
	a := l.parts[key]
	if a == nil {
		a = new(assembly)
		l.parts[key] = a
	}
	others := l.missing[key.rank] - a.missing()
	whole, err := a.add(payload, am.Unpack64(args[4], args[5]), am.Unpack64(args[6], args[7]), others)
	if missing := others + a.missing(); missing != 0 {
		l.missing[key.rank] = missing
	} else {
		delete(l.missing, key.rank)
	}
	if whole {
		delete(l.parts, key)
	}
	c.mu.Unlock()
	i := args[0] &^ noResult
	if err != nil || int(i) >= len(c.table) {
		panic(fmt.Sprintf("gas: malformed part of a call from rank %d: %v", t.Src(), err))
	}
	if whole {
		n.arrived(t, c.table[i], requester{t.Src(), args[1], args[2], args[0]&noResult != 0}, a.data)
	}
}

// arrived runs a function that is not fixed, whose argument is there, and answers, or puts
// it off.
func (n *Node) arrived(t *am.Token, f *function, from requester, arg []byte) {
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
	case len(res) <= retInline:
		var w [am.MaxArgs]uint32
		w[0], w[1] = from.slot, from.use
		k := retWords + copy(bytesOf(w[retWords:]), res)/4
		err = t.ReplyShort(handlerReturn, w[:k]...)
	case len(res) <= n.e.MaxMedium():
		err = t.ReplyMedium(handlerReturn, res, from.slot, from.use)
	default:
		n.putOff(func() { n.push(from, 0, res) })
	}
	_ = err // the caller is dead and does not wait for the answer
}

// guarded runs a function; where its caller waits its panic is an error.
func (n *Node) guarded(run func(c *Call) ([]byte, error), from requester) (res []byte, err error) {
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
func (n *Node) perform(run func(c *Call) ([]byte, error), from requester) {
	var res []byte
	var err error
	n.unnested(from.awaited(), func() { res, err = run(&Call{n, from.rank}) }, &err)
	n.calls.handled.Add(1)
	switch {
	case from.slot == noSlot:
	case from.sent:
		n.push(from, 0, nil)
	case err != nil:
		status, data := failure(err)
		n.push(from, status, data)
	default:
		n.push(from, 0, res)
	}
}

// refuse answers with an error.
func (n *Node) refuse(t *am.Token, from requester, err error) {
	status, data := failure(err)
	if len(data) > n.e.MaxMedium() {
		n.putOff(func() { n.push(from, status, data) })
		return
	}
	_ = t.ReplyMedium(handlerError, data, from.slot, from.use, status) // or the caller is dead
}

// push sends a result, or an error, in as many messages as it takes. Not in a handler.
func (n *Node) push(to requester, status uint32, data []byte) {
	most := n.e.MaxMedium()
	totalLow, totalHigh := am.Pack64(uint64(len(data)))
	for off := 0; ; {
		piece := data[off:min(off+most, len(data))]
		low, high := am.Pack64(uint64(off))
		if n.e.RequestMedium(to.rank, handlerResult, piece, to.slot, to.use, status, low, high, totalLow, totalHigh) != nil {
			return // the caller is dead and does not wait for the answer
		}
		if off += len(piece); off == len(data) {
			return
		}
	}
}

// onError takes an error for an answer.
func (n *Node) onError(t *am.Token, args []uint32, payload []byte) {
	n.result(t, args, payload, 0, uint64(len(payload)))
}

// onResult takes a piece of a result or of an error.
func (n *Node) onResult(t *am.Token, args []uint32, payload []byte) {
	n.result(t, args, payload, am.Unpack64(args[3], args[4]), am.Unpack64(args[5], args[6]))
}

// result takes a piece, at off, of an answer of total bytes.
func (n *Node) result(t *am.Token, args []uint32, piece []byte, off, total uint64) {
	n = n.at(t)
	c := n.calls
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.awaited(args[0], args[1])
	if s == nil {
		return
	}
	a := assembly{data: s.data, have: s.have} // of the total that the sender says each time
	whole, err := a.add(piece, off, total, 0)
	if err != nil {
		panic(fmt.Sprintf("gas: malformed result from rank %d: %v", t.Src(), err))
	}
	if s.data, s.have = a.data, a.have; !whole {
		return
	}
	if status := args[2]; status != 0 {
		s.failed = failureOf(s.f, s.dst, status, s.data)
	}
	n.answered(s)
}
