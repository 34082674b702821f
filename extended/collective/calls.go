package collective

import (
	"fmt"
	"math"

	"github.com/argon-go/argon/internal/errs"
)

// Calls whose name ends in NB begin what the call of the same name without it does, with the
// same messages, and return at once. The call goes on whenever a goroutine of the rank polls or waits for
// anything, not only for its Handle; a rank that does neither holds the others up. Its
// buffers, and the Combine, belong to it until the Handle says that it is done: the program neither reads
// what is written there nor writes what is read, until then.
//
// Any number of them may be under way at once, of one team or of several, and they are done
// in any order. They are begun, though, in one order by all ranks of a team, and so are the
// calls that wait, which count in between (MPI-3.1, 5.12): a team's calls are numbered as they are begun.
// A call that does not wait matches only calls that do not wait, but that Barrier,
// BarrierNotify and BarrierNB are the same. Calls that do not match end all that are under
// way of the team.

// do makes the call a: at the slots, if it fits there, or else by messages.
func (c *Endpoint) do(a *args, combine Combine) error {
	_, err := c.doBlocks(a, combine)
	return err
}

// doBlocks is do for calls that return blocks.
func (c *Endpoint) doBlocks(a *args, combine Combine) (blocks [][]byte, err error) {
	if err := c.check(a); err != nil {
		return nil, err
	}
	if err := c.begin(a.call()); err != nil {
		return nil, err
	}
	if h := c.shared.of(a); h != nil {
		return nil, c.finish(c.shared.do(h, a, combine))
	}
	blocks, err = c.byMessages(a, combine)
	if err = c.finish(err); err != nil {
		return nil, err
	}
	return blocks, nil
}

// byMessages makes call a, which was begun, and takes each stage when it is made.
func (c *Endpoint) byMessages(a *args, combine Combine) (blocks [][]byte, err error) {
	w := work{c: c, args: *a, card: c.card != nil, scratch: &c.scratch}
	add := func(s stage) {
		if err == nil {
			err = c.take(&s, combine)
		}
	}
	for more := true; more && err == nil; {
		more = w.step(add)
	}
	return w.blocks, err
}

// start begins call a without waiting.
func (c *Endpoint) start(a *args, combine Combine) (Handle, error) {
	if err := c.check(a); err != nil {
		return Handle{}, err
	}
	o, err := c.beginNB(a.call(), combine)
	if err != nil {
		return Handle{}, err
	}
	o.work = work{c: c, args: *a, scratch: &o.words}
	o.more = o.step(o.add)
	return o.start(), nil
}

// check refuses a call whose arguments are wrong.
func (c *Endpoint) check(a *args) error {
	if c.e == nil {
		return c.errUnbound(a.kind)
	}
	if text := a.wrong(c.rank, c.size); text != "" {
		return c.Refuse(errs.BadArg("%s: %s: %s", c.names.Package, c.name(a.kind), text))
	}
	if a.elements && !c.directly(len(a.own)) {
		a.unit = 0
	}
	return nil
}

// wrong is what is wrong with the arguments on a rank, or nothing.
func (a *args) wrong(rank, size int) string {
	if uint(a.root) >= uint(size) {
		return fmt.Sprintf("root %d out of range: the job has ranks 0..%d", a.root, size-1)
	}
	n, all := len(a.own), len(a.all)
	switch a.kind {
	case kindGather, kindScatter, kindAllGather, kindReduceScatter:
		ofRoot := a.kind == kindGather || a.kind == kindScatter
		if (!ofRoot || rank == a.root) && (all%size != 0 || all/size != n) {
			return fmt.Sprintf("a buffer of %d bytes for %d blocks of %d bytes, one for each rank", all, size, n)
		}
	case kindExchange:
		if n%size != 0 || all != n {
			return fmt.Sprintf("buffers of %d and %d bytes: both have one block for each of the %d ranks", n, all, size)
		}
	case kindExclusiveScan:
		if all != n {
			return fmt.Sprintf("results of %d bytes for %d bytes: both have one length", all, n)
		}
	case kindAllReduce:
		if a.elements && (a.unit <= 0 || a.unit > math.MaxInt32 || n%a.unit != 0) {
			return fmt.Sprintf("%d bytes in elements of %d: the former is a multiple of the latter, which is 1 to %d", n, a.unit, math.MaxInt32)
		}
	case kindGatherV, kindAllGatherV:
		return a.wrongUnits(0, a.own)
	case kindExchangeV:
		if len(a.out) != size {
			return fmt.Sprintf("%d blocks: there is one for each of the %d ranks", len(a.out), size)
		}
		for r, b := range a.out {
			if text := a.wrongUnits(r, b); text != "" {
				return text
			}
		}
	}
	return ""
}

// wrongUnits is what is wrong with the length of block r.
func (a *args) wrongUnits(r int, b []byte) string {
	if a.unit > 0 && len(b)%a.unit == 0 {
		return ""
	}
	return fmt.Sprintf("block %d has %d bytes in units of %d: the former is a multiple of the latter, which is positive", r, len(b), a.unit)
}

// Broadcast copies root's buf into the buf of all ranks. All have the same length,
// which may be 0.
func (c *Endpoint) Broadcast(root int, buf []byte) error {
	return c.do(&args{kind: kindBroadcast, root: root, own: buf}, nil)
}

// BroadcastNB begins a Broadcast.
func (c *Endpoint) BroadcastNB(root int, buf []byte) (Handle, error) {
	return c.start(&args{kind: kindBroadcast, root: root, own: buf}, nil)
}

// Reduce combines the acc of all ranks into root's acc; that of the others is undefined
// afterwards. All have the same length. combine is commutative and associative; where it
// is not exactly associative, as the addition of floats, the result still depends on
// nothing but the data, Size and root.
func (c *Endpoint) Reduce(root int, acc []byte, combine Combine) error {
	return c.do(&args{kind: kindReduce, root: root, own: acc}, combine)
}

// ReduceNB begins a Reduce. combine is called by whatever goroutine of the rank polls or
// waits, one at a time.
func (c *Endpoint) ReduceNB(root int, acc []byte, combine Combine) (Handle, error) {
	return c.start(&args{kind: kindReduce, root: root, own: acc}, combine)
}

// AllReduce combines the acc of all ranks into every rank's acc, as Reduce does: the same
// bytes everywhere.
func (c *Endpoint) AllReduce(acc []byte, combine Combine) error {
	return c.do(&args{kind: kindAllReduce, own: acc}, combine)
}

// AllReduceNB begins an AllReduce; see ReduceNB.
//
// On two ranks of conduit shm, on two processors, begin and wait take 3.4 us for 8 bytes
// (BenchmarkAllReduceNB, medians of nine; the least was 2.2), many times what AllReduce does
// where ranks share memory: it is for calls during which there is something else to do.
func (c *Endpoint) AllReduceNB(acc []byte, combine Combine) (Handle, error) {
	return c.start(&args{kind: kindAllReduce, own: acc}, combine)
}

// AllReduceElements is AllReduce of an acc that consists of elements of elem bytes, for
// each of which the result depends on this element of all ranks alone. combine may be
// called with any number of elements, where acc begins as in doing so for all of them or a
// multiple of 8 bytes later. Of acc of 2 KiB for each rank and more, each rank combines
// a part and sends it to all others: that moves 2 (Size-1)/Size times the bytes
// of acc into and out of each rank, where AllReduce moves log2(Size) times as many through
// rank 0. The result is the same. elem is the same on all ranks.
func (c *Endpoint) AllReduceElements(elem int, acc []byte, combine Combine) error {
	return c.do(&args{kind: kindAllReduce, elements: true, unit: elem, own: acc}, combine)
}

// AllReduceElementsNB begins an AllReduceElements; see ReduceNB.
func (c *Endpoint) AllReduceElementsNB(elem int, acc []byte, combine Combine) (Handle, error) {
	return c.start(&args{kind: kindAllReduce, elements: true, unit: elem, own: acc}, combine)
}

// ReduceScatter combines the all of all ranks and leaves block r of that in the own of
// rank r. all has Size blocks as long as own, the same length everywhere, and is
// undefined afterwards. combine is as for Reduce, but is called with one block or with
// all of them: elements do not cross blocks. The result is that of Reduce to rank 0.
func (c *Endpoint) ReduceScatter(all, own []byte, combine Combine) error {
	return c.do(&args{kind: kindReduceScatter, own: own, all: all}, combine)
}

// ReduceScatterNB begins a ReduceScatter; see ReduceNB.
func (c *Endpoint) ReduceScatterNB(all, own []byte, combine Combine) (Handle, error) {
	return c.start(&args{kind: kindReduceScatter, own: own, all: all}, combine)
}

// Gather copies the own of all ranks into root's all, one behind the other by rank. own
// has the same length everywhere, which may be 0; all has Size times that length at root
// and is not looked at elsewhere. own may be this rank's block of all.
func (c *Endpoint) Gather(root int, own, all []byte) error {
	return c.do(&args{kind: kindGather, root: root, own: own, all: all}, nil)
}

// GatherNB begins a Gather.
func (c *Endpoint) GatherNB(root int, own, all []byte) (Handle, error) {
	return c.start(&args{kind: kindGather, root: root, own: own, all: all}, nil)
}

// AllGather copies the own of all ranks into every rank's all, one behind the other by
// rank. own has the same length everywhere, all Size times that. own may be this rank's
// block of all.
func (c *Endpoint) AllGather(own, all []byte) error {
	return c.do(&args{kind: kindAllGather, own: own, all: all}, nil)
}

// AllGatherNB begins an AllGather.
func (c *Endpoint) AllGatherNB(own, all []byte) (Handle, error) {
	return c.start(&args{kind: kindAllGather, own: own, all: all}, nil)
}

// Scatter is Gather backwards: it copies block r of root's all into the own of rank r.
// Lengths, and what may overlap, are as there.
func (c *Endpoint) Scatter(root int, all, own []byte) error {
	return c.do(&args{kind: kindScatter, root: root, own: own, all: all}, nil)
}

// ScatterNB begins a Scatter.
func (c *Endpoint) ScatterNB(root int, all, own []byte) (Handle, error) {
	return c.start(&args{kind: kindScatter, root: root, own: own, all: all}, nil)
}

// Exchange copies block r of out into this rank's block of rank r's in, for all r. Both
// have Size blocks of one length, the same everywhere, and do not overlap. out stays as it
// is. Each rank sends ceil(log2 Size) times, half of out each time; blocks of 2 KiB and more
// it sends each to its rank.
func (c *Endpoint) Exchange(out, in []byte) error {
	return c.do(&args{kind: kindExchange, own: out, all: in}, nil)
}

// ExchangeNB begins an Exchange.
func (c *Endpoint) ExchangeNB(out, in []byte) (Handle, error) {
	return c.start(&args{kind: kindExchange, own: out, all: in}, nil)
}

// Scan leaves in acc the combination of the acc of all ranks from 0 up to this one, in
// this order. All have the same length. combine is associative, and need not be
// commutative: in is the left operand, of lower ranks, and acc the right one.
func (c *Endpoint) Scan(acc []byte, combine Combine) error {
	return c.do(&args{kind: kindScan, own: acc}, combine)
}

// ScanNB begins a Scan; see ReduceNB.
func (c *Endpoint) ScanNB(acc []byte, combine Combine) (Handle, error) {
	return c.start(&args{kind: kindScan, own: acc}, combine)
}

// ExclusiveScan leaves in before the combination of the acc of all ranks below this one,
// in order of their ranks, and that up to this one in acc; see Scan. before has the
// length of acc, does not overlap it, and stays as it is on rank 0.
func (c *Endpoint) ExclusiveScan(acc, before []byte, combine Combine) error {
	return c.do(&args{kind: kindExclusiveScan, own: acc, all: before}, combine)
}

// ExclusiveScanNB begins an ExclusiveScan; see ReduceNB.
func (c *Endpoint) ExclusiveScanNB(acc, before []byte, combine Combine) (Handle, error) {
	return c.start(&args{kind: kindExclusiveScan, own: acc, all: before}, combine)
}

// GatherV returns the own of all ranks on root, by rank, and nil elsewhere. They have any
// lengths, which are multiples of unit, the same on all ranks and positive. The result is
// the caller's; each block begins at a multiple of 8 bytes.
func (c *Endpoint) GatherV(root, unit int, own []byte) ([][]byte, error) {
	return c.doBlocks(&args{kind: kindGatherV, root: root, unit: unit, own: own}, nil)
}

// GatherVNB begins a GatherV, whose result Handle.WaitBlocks returns.
func (c *Endpoint) GatherVNB(root, unit int, own []byte) (Handle, error) {
	return c.start(&args{kind: kindGatherV, root: root, unit: unit, own: own}, nil)
}

// AllGatherV is GatherV with the result on all ranks.
func (c *Endpoint) AllGatherV(unit int, own []byte) ([][]byte, error) {
	return c.doBlocks(&args{kind: kindAllGatherV, unit: unit, own: own}, nil)
}

// AllGatherVNB begins an AllGatherV, whose result Handle.WaitBlocks returns.
func (c *Endpoint) AllGatherVNB(unit int, own []byte) (Handle, error) {
	return c.start(&args{kind: kindAllGatherV, unit: unit, own: own}, nil)
}

// ExchangeV sends out[r] to rank r, for all r, and returns what the ranks have sent to this
// one, by rank. out has Size blocks, of any lengths, which are multiples of unit; see GatherV.
// A rank sends its lengths in ceil(log2 Size) messages, and one to each rank for which it has
// a block that is not empty.
func (c *Endpoint) ExchangeV(unit int, out [][]byte) ([][]byte, error) {
	return c.doBlocks(&args{kind: kindExchangeV, unit: unit, out: out}, nil)
}

// ExchangeVNB begins an ExchangeV, whose result Handle.WaitBlocks returns. The list of blocks
// belongs to the call like these.
func (c *Endpoint) ExchangeVNB(unit int, out [][]byte) (Handle, error) {
	return c.start(&args{kind: kindExchangeV, unit: unit, out: out}, nil)
}

// BarrierNB begins a barrier, which is done when all ranks of c have begun it. What a rank
// has written before is visible to all that have waited for it. In round i of ceil(log2 Size) a rank hears of
// 2^i ranks before it, from the rank at this distance.
func (c *Endpoint) BarrierNB() (Handle, error) { return c.start(&args{kind: kindBarrier}, nil) }

// Agree is AllReduce by which ranks find out whether they do the same, and whether all
// of them can: of what each has done, or would do. acc has the same length on all ranks.
// A rank that is in Agree and one that is in Leave, of the same length, do not mismatch:
// what they combine tells them.
func (c *Endpoint) Agree(acc []byte, combine Combine) error {
	return c.do(&args{kind: kindAgree, own: acc}, combine)
}

// Leave is Agree for the end of a rank's program: ranks that are in another collective
// then, and would wait for this one, get an error that says where it is. stop, if it is
// not nil, is asked by the goroutine that waits whenever something has come; if it says
// true, Leave ends with ErrStopped, and the endpoint must not be used any more. It is for
// a rank that leaves and is in a barrier at once, by Barrier.Notify, so that ranks in
// either of them learn of it: barrier.Barrier.Mismatched.
func (c *Endpoint) Leave(acc []byte, combine Combine, stop func() bool) error {
	if c.e != nil {
		c.leaveTeams()
	}
	a := args{kind: kindLeave, own: acc}
	if err := c.begin(a.call()); err != nil {
		return err
	}
	c.stop = stop
	_, err := c.byMessages(&a, combine)
	c.stop = nil
	if err == nil {
		err = c.shared.matched()
	}
	return c.finish(err)
}
