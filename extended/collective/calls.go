package collective

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/argon-go/argon/internal/errs"
)

// Call is a collective call with its arguments, but for the Combine, as AllReduce and the other
// functions of this package make it. Member.Do makes the call and Member.Begin begins it.
type Call struct {
	// Name and Element, if they are not zero, are for errors about the arguments: what these call
	// the call, and how many bytes have what they count.
	Name    string
	Element int
	// Type, a reflect.Kind or 0, is what elements are: ranks that differ in it do not make the same call. In its upper
	// bits is what Operation has said.
	Type uint8

	kind     kind
	elements bool // own consists of elements of elem bytes
	root     int
	elem     int
	unit     int // of lengths; of an AllReduce that is made directly the size of an element, else 0
	// What a rank gives or gets alone, and what has a block of each rank; out and in of Exchange,
	// acc and before of ExclusiveScan.
	own, all []byte
	out      [][]byte
}

// On has a, whose buffer may have been nil, give or get own, and returns it.
func (a *Call) On(own []byte) *Call {
	a.own = own
	return a
}

// operations are those that calls are told apart by, from 1 on.
var operations = [...]string{"", "Sum", "Product", "Min", "Max", "And", "Or", "Xor"}

// opShift is where the number of an operation is in Call.Type.
const opShift = 5

// Operation says the name of what a reduction combines by, of which Sum, Product, Min, Max, And, Or and Xor are told apart.
func (a *Call) Operation(name string) {
	if i := slices.Index(operations[:], name); i > 0 {
		a.Type |= uint8(i) << opShift
	}
}

// typeName is a Call.Type in messages.
func typeName(t uint8) string {
	if t == 0 {
		return "of no type"
	}
	s := reflect.Kind(t & (1<<opShift - 1)).String()
	if op := operations[t>>opShift]; op != "" {
		s += ", " + op
	}
	return s
}

// Do makes a call, in which a reduction combines by combine; nil for the others.
func (c *Member) Do(a *Call, combine Combine) error {
	_, err := c.do(a, combine)
	return err
}

// DoBlocks is Do for GatherV, AllGatherV and ExchangeV, whose result it returns.
func (c *Member) DoBlocks(a *Call) ([][]byte, error) { return c.do(a, nil) }

// do makes call a: by memory that ranks share, if it fits there, or else by messages.
func (c *Member) do(a *Call, combine Combine) (blocks [][]byte, err error) {
	if err := c.check(a); err != nil {
		return nil, err
	}
	if err := c.begin(a.call()); err != nil {
		return nil, err
	}
	if h := c.shared.of(a); h != nil {
		return nil, c.finish(c.shared.do(h, a, combine))
	}
	if t := c.shared.staged(a); t != nil {
		blocks, err = c.shared.doStaged(t, a, combine)
		return blocks, c.finish(err)
	}
	if a.kind == kindClose && c.shared != nil {
		// Afterwards ranks give their places to other teams.
		if err := c.shared.awaitOwed(); err != nil {
			return nil, c.finish(err)
		}
	}
	c.prepare(a)
	blocks, err = c.byMessages(combine)
	if err = c.finish(err); err != nil {
		return nil, err
	}
	return blocks, nil
}

// prepare makes a the work of the call under way. It is not inlined, as clear is not: a copy of a
// would be on the stack of every rank of a large job that waits.
//
//go:noinline
func (c *Member) prepare(a *Call) {
	w := c.waitingWork()
	w.c, w.Call, w.ls, w.seq, w.call = c, *a, &c.links, c.seq, c.call
}

// waitingWork is the work of calls that wait.
func (c *Member) waitingWork() *work {
	if c.work == nil {
		c.work = new(work)
	}
	return c.work
}

// clear ends the call, of which it keeps the rooms alone.
//
//go:noinline
func (w *work) clear() (blocks [][]byte) {
	if w.lists != nil {
		blocks = w.blocks
		*w.lists = lists{}
	}
	clear(w.stages[:cap(w.stages)])
	*w = work{c: w.c, kept: w.kept, puts: w.puts, stages: w.stages[:0], lists: w.lists}
	return blocks
}

// byMessages makes the lists of the call that was prepared, and takes their stages.
// combine is on the stack of the caller.
func (c *Member) byMessages(combine Combine) (blocks [][]byte, err error) {
	w := c.work
	for more := true; more && err == nil; {
		w.stages = w.stages[:0]
		more = w.step()
		for k := 0; k < len(w.stages) && err == nil; k++ {
			err = c.take(k, combine)
		}
	}
	if w.puts != nil {
		err = w.finishPuts(err)
	}
	w.release(err)
	return w.clear(), err
}

// Begin begins what Do does, with the same messages, and returns at once: see "Calls that do not
// wait" in the package's comment. The buffers belong to the call until the Handle says that it is done.
//
// On two ranks of conduit shm, on two processors, begin and wait take 3.4 us for an AllReduce of 8 bytes
// (BenchmarkAllReduceNB, medians of nine; the least was 2.2), many times what Do takes
// where ranks share memory: it is for calls during which there is something else to do.
func (c *Member) Begin(a *Call, combine Combine) (Handle, error) {
	if err := c.check(a); err != nil {
		return Handle{}, err
	}
	d := a.call()
	d.kind |= kindNB
	var began time.Duration
	if c.watched {
		began = c.e.Conduit().Now()
	}
	o, err := c.beginNB(d, combine)
	if err != nil {
		return Handle{}, err
	}
	if c.watched {
		met(c, d, began)
	}
	o.c, o.Call = c, *a
	o.more = o.step()
	return o.start(), nil
}

// BarrierNB begins a barrier, which is done when all ranks of c have begun it. What a rank
// has written before is visible to all that have waited for it. In round i of ceil(log2 Size) a rank hears of
// 2^i ranks before it, from the rank at this distance.
func (c *Member) BarrierNB() (Handle, error) { return c.Begin(&Call{kind: kindBarrier}, nil) }

// check refuses a call whose arguments are wrong.
func (c *Member) check(a *Call) error {
	if c.e == nil {
		return c.errUnbound(a.kind)
	}
	if text := c.wrong(a); text != "" {
		name := a.Name
		if name == "" {
			name = c.name(a.kind)
		}
		return c.Refuse(errs.BadArg("%s: %s: %s", c.names.Package, name, text))
	}
	if a.kind == kindAllReduce && c.directly(len(a.own)) {
		a.unit = a.element()
	}
	return nil
}

// wrong describes the first fault in the arguments of a, "" if there is none.
func (c *Member) wrong(a *Call) string {
	if uint(a.root) >= uint(c.size) {
		of := "job"
		if c.team != nil {
			of = "group"
		}
		return fmt.Sprintf("root %d out of range: the %s has ranks 0..%d", a.root, of, c.size-1)
	}
	n, all := len(a.own), len(a.all)
	if a.elements && (a.elem <= 0 || a.elem > math.MaxInt32 || !multiple(n, a.elem)) {
		return fmt.Sprintf("%d bytes in elements of %d: the former is a multiple of the latter, which is 1 to %d", n, a.elem, math.MaxInt32)
	}
	switch a.kind {
	case kindGather, kindScatter, kindAllGather, kindReduceScatter:
		ofRoot := a.kind == kindGather || a.kind == kindScatter
		if (!ofRoot || c.rank == a.root) && all != n*c.size {
			one, what := a.counted()
			return fmt.Sprintf("a buffer of %d %s for %d blocks of %d %s, one for each rank", all/one, what, c.size, n/one, what)
		}
	case kindExchange:
		if one, what := a.counted(); n/one%c.size != 0 || all != n {
			return fmt.Sprintf("buffers of %d and %d %s: both have one block for each of the %d ranks", n/one, all/one, what, c.size)
		}
	case kindExclusiveScan:
		if all != n {
			return fmt.Sprintf("results of %d bytes for %d bytes: both have one length", all, n)
		}
	case kindGatherV, kindAllGatherV:
		return a.wrongUnits(0, a.own)
	case kindExchangeV:
		if len(a.out) != c.size {
			return fmt.Sprintf("%d blocks: there is one for each of the %d ranks", len(a.out), c.size)
		}
		for r, b := range a.out {
			if text := a.wrongUnits(r, b); text != "" {
				return text
			}
		}
	}
	return ""
}

// multiple reports whether n is one of unit, without a division for most units.
func multiple(n, unit int) bool {
	if unit&(unit-1) == 0 {
		return n&(unit-1) == 0
	}
	return n%unit == 0
}

// element is how many bytes have an element of own, which ranks may combine apart; 0 if own is not more than one.
func (a *Call) element() int {
	if a.elem >= len(a.own) {
		return 0
	}
	return a.elem
}

// counted is how many bytes have what errors about a count, and how that is called.
func (a *Call) counted() (bytes int, name string) {
	if a.Element > 0 {
		return a.Element, "elements"
	}
	return 1, "bytes"
}

// wrongUnits describes the fault in the length of block r, "" if there is none.
func (a *Call) wrongUnits(r int, b []byte) string {
	if a.unit > 0 && multiple(len(b), a.unit) {
		return ""
	}
	return fmt.Sprintf("block %d has %d bytes in units of %d: the former is a multiple of the latter, which is positive", r, len(b), a.unit)
}

// Broadcast copies root's buf into the buf of all ranks. All have the same length,
// which may be 0.
func Broadcast(root int, buf []byte) *Call { return &Call{kind: kindBroadcast, root: root, own: buf} }

// Reduce combines the acc of all ranks into root's acc; that of the others is undefined
// afterwards. All have the same length. combine is commutative and associative; where it
// is not exactly associative, as the addition of floats, the result still depends on
// nothing but the data, Size and root.
func Reduce(root int, acc []byte) *Call { return &Call{kind: kindReduce, root: root, own: acc} }

// AllReduce combines the acc of all ranks into every rank's acc, as Reduce does: the same
// bytes everywhere.
func AllReduce(acc []byte) *Call { return &Call{kind: kindAllReduce, own: acc} }

// InElements has a, a reduction, of data that consists of elements of elem bytes, for
// each of which the result depends on this element of all ranks alone. combine may be
// called with any number of elements, where acc begins as in doing so for all of them or a
// multiple of 8 bytes later: ranks combine parts for each other. An AllReduce by messages of 2 KiB for each rank and more
// moves 2 (Size-1)/Size times the bytes
// of acc into and out of each rank then, where it moves log2(Size) times as many through
// rank 0 otherwise. The result is the same. elem is the same on all ranks.
func (a *Call) InElements(elem int) *Call {
	a.elements, a.elem = true, elem
	return a
}

// ReduceScatter combines the all of all ranks and leaves block r of that in the own of
// rank r. all has Size blocks as long as own, the same length everywhere, and is
// undefined afterwards. combine is as for Reduce, but is called with one block or with
// all of them: elements do not cross blocks. The result is that of Reduce to rank 0.
func ReduceScatter(all, own []byte) *Call { return &Call{kind: kindReduceScatter, own: own, all: all} }

// Gather copies the own of all ranks into root's all, one behind the other by rank. own
// has the same length everywhere, which may be 0; all has Size times that length at root
// and is not looked at elsewhere. own may be this rank's block of all.
func Gather(root int, own, all []byte) *Call {
	return &Call{kind: kindGather, root: root, own: own, all: all}
}

// AllGather copies the own of all ranks into every rank's all, one behind the other by
// rank. own has the same length everywhere, all Size times that. own may be this rank's
// block of all.
func AllGather(own, all []byte) *Call { return &Call{kind: kindAllGather, own: own, all: all} }

// Scatter is Gather backwards: it copies block r of root's all into the own of rank r.
// Lengths, and what may overlap, are as there.
func Scatter(root int, all, own []byte) *Call {
	return &Call{kind: kindScatter, root: root, own: own, all: all}
}

// Exchange copies block r of out into this rank's block of rank r's in, for all r. Both
// have Size blocks of one length, the same everywhere, and do not overlap. out stays as it
// is. Each rank sends ceil(log2 Size) times, half of out each time; blocks of 2 KiB and more
// it sends each to its rank.
func Exchange(out, in []byte) *Call { return &Call{kind: kindExchange, own: out, all: in} }

// Scan leaves in acc the combination of the acc of all ranks from 0 up to this one, in
// this order. All have the same length. combine is associative, and need not be
// commutative: in is the left operand, of lower ranks, and acc the right one.
func Scan(acc []byte) *Call { return &Call{kind: kindScan, own: acc} }

// ExclusiveScan leaves in before the combination of the acc of all ranks below this one,
// in order of their ranks, and that up to this one in acc; see Scan. before has the
// length of acc, does not overlap it, and stays as it is on rank 0.
func ExclusiveScan(acc, before []byte) *Call {
	return &Call{kind: kindExclusiveScan, own: acc, all: before}
}

// GatherV returns the own of all ranks on root, by rank, and nil elsewhere. They have any
// lengths, which are multiples of unit, the same on all ranks and positive. The result is
// the caller's; each block begins at a multiple of 8 bytes.
func GatherV(root, unit int, own []byte) *Call {
	return &Call{kind: kindGatherV, root: root, unit: unit, own: own}
}

// AllGatherV is GatherV with the result on all ranks.
func AllGatherV(unit int, own []byte) *Call { return &Call{kind: kindAllGatherV, unit: unit, own: own} }

// ExchangeV sends out[r] to rank r, for all r, and returns what the ranks have sent to this
// one, by rank. out has Size blocks, of any lengths, which are multiples of unit; see GatherV.
// A rank sends its lengths in ceil(log2 Size) messages, and one to each rank for which it has
// a block that is not empty.
func ExchangeV(unit int, out [][]byte) *Call { return &Call{kind: kindExchangeV, unit: unit, out: out} }

// Agree is AllReduce by which ranks find out whether they do the same, and whether all
// of them can: of what each has done, or would do. acc has the same length on all ranks.
// A rank that is in Agree and one that is in Leave, of the same length, do not mismatch:
// what they combine tells them.
func Agree(acc []byte) *Call { return &Call{kind: kindAgree, own: acc} }

// Leave is Agree for the end of a rank's program: ranks that are in another collective
// then, and would wait for this one, get an error that says where it is. stop, if it is
// not nil, is asked by the goroutine that waits whenever something has come; if it says
// true, Leave ends with ErrStopped, and the endpoint must not be used any more. It is for
// a rank that leaves and is in a barrier at once, by Barrier.Notify, so that ranks in
// either of them learn of it: barrier.Barrier.Mismatched.
func (c *Member) Leave(acc []byte, combine Combine, stop func() bool) error {
	if c.e != nil {
		c.leaveTeams()
	}
	if err := c.beginLeave(acc); err != nil {
		return err
	}
	c.stop = stop
	var err error
	if c.shared != nil && c.shared.mailed {
		err = c.shared.awaitOwed() // what says so may come later than what says that a rank leaves
	}
	if err == nil {
		_, err = c.byMessages(combine)
	}
	c.stop = nil
	if err == nil {
		err = c.shared.matched()
	}
	return c.finish(err)
}

// Return, when all ranks have made Leave by their c, has c take calls again, or with false none.
func Return(c *Member, again bool) {
	c.mu.Lock()
	c.ended = !again
	c.mu.Unlock()
}

// beginLeave is not inlined for the reason of prepare.
//
//go:noinline
func (c *Member) beginLeave(acc []byte) error {
	a := Call{kind: kindLeave, own: acc}
	if err := c.begin(a.call()); err != nil {
		return err
	}
	c.prepare(&a)
	return nil
}
