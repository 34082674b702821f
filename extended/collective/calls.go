package collective

import "github.com/argon-go/argon/internal/errs"

// Broadcast copies root's buf into the buf of all ranks. All have the same length,
// which may be 0.
func (c *Endpoint) Broadcast(root int, buf []byte) error {
	if err := c.checkRoot(kindBroadcast, root); err != nil {
		return err
	}
	if err := c.begin(call{kind: kindBroadcast, root: uint32(root), size: uint64(len(buf))}); err != nil {
		return err
	}
	if h := c.shared.flat(len(buf)); h != nil {
		return c.finish(c.broadcastSlots(h, root, buf))
	}
	return c.finish(c.broadcast(root, buf))
}

// Reduce combines the acc of all ranks into root's acc; that of the others is undefined
// afterwards. All have the same length. combine is commutative and associative; where it
// is not exactly associative, as the addition of floats, the result still depends on
// nothing but the data, Size and root.
func (c *Endpoint) Reduce(root int, acc []byte, combine Combine) error {
	if err := c.checkRoot(kindReduce, root); err != nil {
		return err
	}
	if err := c.begin(call{kind: kindReduce, root: uint32(root), size: uint64(len(acc))}); err != nil {
		return err
	}
	if h := c.shared.flat(len(acc)); h != nil {
		return c.finish(c.reduceSlots(h, root, acc, combine))
	}
	return c.finish(c.reduce(root, acc, combine))
}

// AllReduce combines the acc of all ranks into every rank's acc, as Reduce does: the same
// bytes everywhere.
func (c *Endpoint) AllReduce(acc []byte, combine Combine) error {
	return c.allReduceAs(kindAllReduce, acc, combine)
}

func (c *Endpoint) allReduceAs(k kind, acc []byte, combine Combine) error {
	if err := c.begin(call{kind: k, size: uint64(len(acc))}); err != nil {
		return err
	}
	if h := c.shared.channel(len(acc)); h != nil && k == kindAllReduce {
		return c.finish(c.allReduceSlots(h, acc, combine))
	}
	return c.finish(c.allReduce(acc, combine))
}

// AllReduceElements is AllReduce of an acc that consists of elements of elem bytes, for
// each of which the result depends on this element of all ranks alone. combine may be
// called with any number of elements, where acc begins as in doing so for all of them or a
// multiple of 8 bytes later. Of acc of 2 KiB for each rank and more, each rank combines
// a part and sends it to all others: that moves 2 (Size-1)/Size times the bytes
// of acc into and out of each rank, where AllReduce moves log2(Size) times as many through
// rank 0. The result is the same. elem is the same on all ranks.
func (c *Endpoint) AllReduceElements(elem int, acc []byte, combine Combine) error {
	if err := c.checkElements(elem, acc); err != nil {
		return err
	}
	if !c.directly(len(acc)) {
		return c.AllReduce(acc, combine)
	}
	if err := c.begin(call{kind: kindAllReduce, root: uint32(elem), size: uint64(len(acc))}); err != nil {
		return err
	}
	return c.finish(c.allReduceDirect(acc, elem, combine))
}

// ReduceScatter combines the all of all ranks and leaves block r of that in the own of
// rank r. all has Size blocks as long as own, the same length everywhere, and is
// undefined afterwards. combine is as for Reduce, but is called with one block or with
// all of them: elements do not cross blocks. The result is that of Reduce to rank 0.
func (c *Endpoint) ReduceScatter(all, own []byte, combine Combine) error {
	if err := c.checkBlocks(kindReduceScatter, own, all); err != nil {
		return err
	}
	if err := c.begin(call{kind: kindReduceScatter, size: uint64(len(all))}); err != nil {
		return err
	}
	if h := c.shared.flat(len(all)); h != nil {
		return c.finish(c.reduceScatterSlots(h, all, own, combine))
	}
	return c.finish(c.reduceScatter(all, own, combine))
}

// GatherV returns the own of all ranks on root, by rank, and nil elsewhere. They have any
// lengths, which are multiples of unit, the same on all ranks and positive. The result is
// the caller's; each block begins at a multiple of 8 bytes.
func (c *Endpoint) GatherV(root, unit int, own []byte) ([][]byte, error) {
	if err := c.checkRoot(kindGatherV, root); err != nil {
		return nil, err
	}
	return c.lengths(call{kind: kindGatherV, root: uint32(root)}, unit, [][]byte{own}, func() ([][]byte, error) { return c.gatherV(root, own) })
}

// AllGatherV is GatherV with the result on all ranks.
func (c *Endpoint) AllGatherV(unit int, own []byte) ([][]byte, error) {
	return c.lengths(call{kind: kindAllGatherV}, unit, [][]byte{own}, func() ([][]byte, error) { return c.allGatherV(own) })
}

// ExchangeV sends out[r] to rank r, for all r, and returns what the ranks have sent to this
// one, by rank. out has Size blocks, of any lengths, which are multiples of unit; see GatherV.
// A rank sends its lengths in ceil(log2 Size) messages, and one to each rank for which it has
// a block that is not empty.
func (c *Endpoint) ExchangeV(unit int, out [][]byte) ([][]byte, error) {
	if err := c.checkOut(out); err != nil {
		return nil, err
	}
	return c.lengths(call{kind: kindExchangeV}, unit, out, func() ([][]byte, error) { return c.exchangeV(out) })
}

// lengths is call d of blocks with any lengths, which are multiples of unit.
func (c *Endpoint) lengths(d call, unit int, blocks [][]byte, do func() ([][]byte, error)) ([][]byte, error) {
	if err := c.checkUnits(d.kind, unit, blocks); err != nil {
		return nil, err
	}
	d.size = uint64(unit)
	if err := c.begin(d); err != nil {
		return nil, err
	}
	all, err := do()
	if err = c.finish(err); err != nil {
		return nil, err
	}
	return all, nil
}

// Agree is AllReduce by which ranks find out whether they do the same, and whether all
// of them can: of what each has done, or would do. acc has the same length on all ranks.
// A rank that is in Agree and one that is in Leave, of the same length, do not mismatch:
// what they combine tells them.
func (c *Endpoint) Agree(acc []byte, combine Combine) error {
	return c.allReduceAs(kindAgree, acc, combine)
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
	if err := c.begin(call{kind: kindLeave, size: uint64(len(acc))}); err != nil {
		return err
	}
	c.stop = stop
	err := c.allReduce(acc, combine)
	c.stop = nil
	if err == nil {
		err = c.matched()
	}
	return c.finish(err)
}

// Gather copies the own of all ranks into root's all, one behind the other by rank. own
// has the same length everywhere, which may be 0; all has Size times that length at root
// and is not looked at elsewhere. own may be this rank's block of all.
func (c *Endpoint) Gather(root int, own, all []byte) error {
	err := c.checkRoot(kindGather, root)
	if err == nil && c.rank == root {
		err = c.checkBlocks(kindGather, own, all)
	}
	if err != nil {
		return err
	}
	if err := c.begin(call{kind: kindGather, root: uint32(root), size: uint64(len(own))}); err != nil {
		return err
	}
	if h := c.shared.flat(len(own)); h != nil {
		return c.finish(c.gatherSlots(h, root, own, all))
	}
	err = c.gather(root, own, c.gathered(root, own, all))
	if err == nil && c.rank == root && root != 0 {
		rotate(all, root*len(own)) // places begin with root, ranks with 0
	}
	return c.finish(err)
}

// AllGather copies the own of all ranks into every rank's all, one behind the other by
// rank. own has the same length everywhere, all Size times that. own may be this rank's
// block of all.
func (c *Endpoint) AllGather(own, all []byte) error {
	if err := c.checkBlocks(kindAllGather, own, all); err != nil {
		return err
	}
	if err := c.begin(call{kind: kindAllGather, size: uint64(len(own))}); err != nil {
		return err
	}
	if h := c.shared.flat(len(own)); h != nil {
		return c.finish(c.gatherSlots(h, -1, own, all))
	}
	return c.finish(c.allGather(own, all))
}

// Scatter is Gather backwards: it copies block r of root's all into the own of rank r.
// Lengths, and what may overlap, are as there.
func (c *Endpoint) Scatter(root int, all, own []byte) error {
	err := c.checkRoot(kindScatter, root)
	if err == nil && c.rank == root {
		err = c.checkBlocks(kindScatter, own, all)
	}
	if err != nil {
		return err
	}
	if err := c.begin(call{kind: kindScatter, root: uint32(root), size: uint64(len(own))}); err != nil {
		return err
	}
	if h := c.shared.flat(len(own) * c.size); h != nil {
		return c.finish(c.scatterSlots(h, root, all, own))
	}
	return c.finish(c.scatter(root, all, own))
}

// Exchange copies block r of out into this rank's block of rank r's in, for all r. Both
// have Size blocks of one length, the same everywhere, and do not overlap. out stays as it
// is. Each rank sends ceil(log2 Size) times, half of out each time; blocks of 2 KiB and more
// it sends each to its rank.
func (c *Endpoint) Exchange(out, in []byte) error {
	if err := c.checkExchange(out, in); err != nil {
		return err
	}
	if err := c.begin(call{kind: kindExchange, size: uint64(len(out))}); err != nil {
		return err
	}
	if h := c.shared.flat(len(out)); h != nil {
		return c.finish(c.exchangeSlots(h, out, in))
	}
	return c.finish(c.exchange(out, in))
}

// Scan leaves in acc the combination of the acc of all ranks from 0 up to this one, in
// this order. All have the same length. combine is associative, and need not be
// commutative: in is the left operand, of lower ranks, and acc the right one.
func (c *Endpoint) Scan(acc []byte, combine Combine) error {
	if err := c.begin(call{kind: kindScan, size: uint64(len(acc))}); err != nil {
		return err
	}
	if h := c.shared.flat(len(acc)); h != nil {
		return c.finish(c.scanSlots(h, acc, nil, combine))
	}
	return c.finish(c.scan(acc, nil, combine))
}

// ExclusiveScan leaves in before the combination of the acc of all ranks below this one,
// in order of their ranks, and that up to this one in acc; see Scan. before has the
// length of acc, does not overlap it, and stays as it is on rank 0.
func (c *Endpoint) ExclusiveScan(acc, before []byte, combine Combine) error {
	if err := c.checkBefore(acc, before); err != nil {
		return err
	}
	if err := c.begin(call{kind: kindExclusiveScan, size: uint64(len(acc))}); err != nil {
		return err
	}
	if h := c.shared.flat(len(acc)); h != nil {
		return c.finish(c.scanSlots(h, acc, before, combine))
	}
	return c.finish(c.scan(acc, before, combine))
}

// checkRoot refuses a call whose root is no rank.
func (c *Endpoint) checkRoot(k kind, root int) error {
	switch {
	case c.e == nil:
		return c.errUnbound(k)
	case uint(root) >= uint(c.size):
		return c.Refuse(errs.BadArg("%s: %s: root %d out of range: the job has ranks 0..%d", c.names.Package, c.name(k), root, c.size-1))
	}
	return nil
}

// checkBlocks refuses a call in which all has not one block for each rank, as long as
// own.
func (c *Endpoint) checkBlocks(k kind, own, all []byte) error {
	switch {
	case c.e == nil:
		return c.errUnbound(k)
	case len(all)%c.size != 0 || len(all)/c.size != len(own):
		return c.Refuse(errs.BadArg("%s: %s: a buffer of %d bytes for %d blocks of %d bytes, one for each rank", c.names.Package, c.name(k), len(all), c.size, len(own)))
	}
	return nil
}

// checkUnits refuses blocks whose lengths are no multiples of unit.
func (c *Endpoint) checkUnits(k kind, unit int, blocks [][]byte) error {
	if c.e == nil {
		return c.errUnbound(k)
	}
	for r, b := range blocks {
		if unit <= 0 || len(b)%unit != 0 {
			return c.Refuse(errs.BadArg("%s: %s: block %d has %d bytes in units of %d: the former is a multiple of the latter, which is positive",
				c.names.Package, c.name(k), r, len(b), unit))
		}
	}
	return nil
}

// checkOut refuses an ExchangeV that has not one block for each rank.
func (c *Endpoint) checkOut(out [][]byte) error {
	switch {
	case c.e == nil:
		return c.errUnbound(kindExchangeV)
	case len(out) != c.size:
		return c.Refuse(errs.BadArg("%s: %s: %d blocks: there is one for each of the %d ranks", c.names.Package, c.name(kindExchangeV), len(out), c.size))
	}
	return nil
}

// checkExchange refuses buffers of Exchange that have not one block for each rank.
func (c *Endpoint) checkExchange(out, in []byte) error {
	switch {
	case c.e == nil:
		return c.errUnbound(kindExchange)
	case len(out)%c.size != 0 || len(in) != len(out):
		return c.Refuse(errs.BadArg("%s: Exchange: buffers of %d and %d bytes: both have one block for each of the %d ranks", c.names.Package, len(out), len(in), c.size))
	}
	return nil
}

// checkBefore refuses results of ExclusiveScan of two lengths.
func (c *Endpoint) checkBefore(acc, before []byte) error {
	switch {
	case c.e == nil:
		return c.errUnbound(kindExclusiveScan)
	case len(before) != len(acc):
		return c.Refuse(errs.BadArg("%s: ExclusiveScan: results of %d bytes for %d bytes: both have one length", c.names.Package, len(before), len(acc)))
	}
	return nil
}
