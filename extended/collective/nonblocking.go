package collective

import (
	"math"

	"github.com/argon-go/argon/internal/errs"
)

// Calls whose name ends in NB begin what the call of the same name without it does, with the
// same messages, and return at once. The call goes on whenever a goroutine of the rank polls or waits for
// anything, not only for its Handle; a rank that does neither holds the others up. Its
// buffers belong to it until the Handle says that it is done: the program neither reads
// what is written there nor writes what is read, until then.
//
// Any number of them may be under way at once, of one team or of several, and they are done
// in any order. They are begun, though, in one order by all ranks of a team, and so are the
// calls that wait, which count in between (MPI-3.1, 5.12): a team's calls are numbered as they are begun.
// A call that does not wait matches only calls that do not wait, but that Barrier,
// BarrierNotify and BarrierNB are the same. Calls that do not match end all that are under
// way of the team.

// BarrierNB begins a barrier, which is done when all ranks of c have begun it. What a rank
// has written before is visible to all that have waited for it. In round i of ceil(log2 Size) a rank hears of
// 2^i ranks before it, from the rank at this distance.
func (c *Endpoint) BarrierNB() (Handle, error) {
	o, err := c.beginNB(call{kind: kindBarrier}, nil)
	if err != nil {
		return Handle{}, err
	}
	o.barrier()
	return o.start(), nil
}

// BroadcastNB begins a Broadcast.
func (c *Endpoint) BroadcastNB(root int, buf []byte) (Handle, error) {
	if err := c.checkRoot(kindBroadcast, root); err != nil {
		return Handle{}, err
	}
	o, err := c.beginNB(call{kind: kindBroadcast, root: uint32(root), size: uint64(len(buf))}, nil)
	if err != nil {
		return Handle{}, err
	}
	o.broadcast(root, buf)
	return o.start(), nil
}

// ReduceNB begins a Reduce. combine is called by whatever goroutine of the rank polls or
// waits, one at a time.
func (c *Endpoint) ReduceNB(root int, acc []byte, combine Combine) (Handle, error) {
	if err := c.checkRoot(kindReduce, root); err != nil {
		return Handle{}, err
	}
	o, err := c.beginNB(call{kind: kindReduce, root: uint32(root), size: uint64(len(acc))}, combine)
	if err != nil {
		return Handle{}, err
	}
	o.reduce(root, acc)
	return o.start(), nil
}

// AllReduceNB begins an AllReduce; see ReduceNB.
//
// On two ranks of conduit shm, on two processors, begin and wait take 3.4 us for 8 bytes
// (BenchmarkAllReduceNB, medians of nine; the least was 2.2), many times what AllReduce does
// where ranks share memory: it is for calls during which there is something else to do.
func (c *Endpoint) AllReduceNB(acc []byte, combine Combine) (Handle, error) {
	o, err := c.beginNB(call{kind: kindAllReduce, size: uint64(len(acc))}, combine)
	if err != nil {
		return Handle{}, err
	}
	o.allReduce(acc)
	return o.start(), nil
}

// AllReduceElementsNB begins an AllReduceElements; see ReduceNB.
func (c *Endpoint) AllReduceElementsNB(elem int, acc []byte, combine Combine) (Handle, error) {
	if err := c.checkElements(elem, acc); err != nil {
		return Handle{}, err
	}
	if !c.directly(len(acc)) {
		return c.AllReduceNB(acc, combine)
	}
	o, err := c.beginNB(call{kind: kindAllReduce, root: uint32(elem), size: uint64(len(acc))}, combine)
	if err != nil {
		return Handle{}, err
	}
	o.allReduceDirect(acc, elem)
	return o.start(), nil
}

// checkElements refuses an acc that does not consist of elements of elem bytes.
func (c *Endpoint) checkElements(elem int, acc []byte) error {
	switch {
	case c.e == nil:
		return c.errUnbound(kindAllReduce)
	case elem <= 0 || elem > math.MaxInt32 || len(acc)%elem != 0:
		return c.Refuse(errs.BadArg("%s: AllReduce: %d bytes in elements of %d: the former is a multiple of the latter, which is 1 to %d",
			c.names.Package, len(acc), elem, math.MaxInt32))
	}
	return nil
}

// ReduceScatterNB begins a ReduceScatter; see ReduceNB.
func (c *Endpoint) ReduceScatterNB(all, own []byte, combine Combine) (Handle, error) {
	if err := c.checkBlocks(kindReduceScatter, own, all); err != nil {
		return Handle{}, err
	}
	o, err := c.beginNB(call{kind: kindReduceScatter, size: uint64(len(all))}, combine)
	if err != nil {
		return Handle{}, err
	}
	o.reduceScatter(all, own)
	return o.start(), nil
}

// GatherNB begins a Gather.
func (c *Endpoint) GatherNB(root int, own, all []byte) (Handle, error) {
	err := c.checkRoot(kindGather, root)
	if err == nil && c.rank == root {
		err = c.checkBlocks(kindGather, own, all)
	}
	if err != nil {
		return Handle{}, err
	}
	o, err := c.beginNB(call{kind: kindGather, root: uint32(root), size: uint64(len(own))}, nil)
	if err != nil {
		return Handle{}, err
	}
	o.gatherTo(root, own, all)
	return o.start(), nil
}

// AllGatherNB begins an AllGather.
func (c *Endpoint) AllGatherNB(own, all []byte) (Handle, error) {
	if err := c.checkBlocks(kindAllGather, own, all); err != nil {
		return Handle{}, err
	}
	o, err := c.beginNB(call{kind: kindAllGather, size: uint64(len(own))}, nil)
	if err != nil {
		return Handle{}, err
	}
	o.allGather(own, all)
	return o.start(), nil
}

// ScatterNB begins a Scatter.
func (c *Endpoint) ScatterNB(root int, all, own []byte) (Handle, error) {
	err := c.checkRoot(kindScatter, root)
	if err == nil && c.rank == root {
		err = c.checkBlocks(kindScatter, own, all)
	}
	if err != nil {
		return Handle{}, err
	}
	o, err := c.beginNB(call{kind: kindScatter, root: uint32(root), size: uint64(len(own))}, nil)
	if err != nil {
		return Handle{}, err
	}
	o.scatter(root, all, own)
	return o.start(), nil
}

// ExchangeNB begins an Exchange.
func (c *Endpoint) ExchangeNB(out, in []byte) (Handle, error) {
	if err := c.checkExchange(out, in); err != nil {
		return Handle{}, err
	}
	o, err := c.beginNB(call{kind: kindExchange, size: uint64(len(out))}, nil)
	if err != nil {
		return Handle{}, err
	}
	o.exchange(out, in)
	return o.start(), nil
}

// ScanNB begins a Scan; see ReduceNB.
func (c *Endpoint) ScanNB(acc []byte, combine Combine) (Handle, error) {
	o, err := c.beginNB(call{kind: kindScan, size: uint64(len(acc))}, combine)
	if err != nil {
		return Handle{}, err
	}
	o.scan(acc, nil)
	return o.start(), nil
}

// ExclusiveScanNB begins an ExclusiveScan; see ReduceNB.
func (c *Endpoint) ExclusiveScanNB(acc, before []byte, combine Combine) (Handle, error) {
	if err := c.checkBefore(acc, before); err != nil {
		return Handle{}, err
	}
	o, err := c.beginNB(call{kind: kindExclusiveScan, size: uint64(len(acc))}, combine)
	if err != nil {
		return Handle{}, err
	}
	o.scan(acc, before)
	return o.start(), nil
}

// GatherVNB begins a GatherV, whose result Handle.WaitBlocks returns.
func (c *Endpoint) GatherVNB(root, unit int, own []byte) (Handle, error) {
	if err := c.checkRoot(kindGatherV, root); err != nil {
		return Handle{}, err
	}
	o, err := c.enterLengths(call{kind: kindGatherV, root: uint32(root)}, unit, own)
	if err != nil {
		return Handle{}, err
	}
	o.gatherV(root, own)
	return o.start(), nil
}

// AllGatherVNB begins an AllGatherV, whose result Handle.WaitBlocks returns.
func (c *Endpoint) AllGatherVNB(unit int, own []byte) (Handle, error) {
	o, err := c.enterLengths(call{kind: kindAllGatherV}, unit, own)
	if err != nil {
		return Handle{}, err
	}
	o.allGatherV(own)
	return o.start(), nil
}

// ExchangeVNB begins an ExchangeV, whose result Handle.WaitBlocks returns. The list of blocks
// belongs to the call like these.
func (c *Endpoint) ExchangeVNB(unit int, out [][]byte) (Handle, error) {
	if err := c.checkOut(out); err != nil {
		return Handle{}, err
	}
	o, err := c.enterLengths(call{kind: kindExchangeV}, unit, out...)
	if err != nil {
		return Handle{}, err
	}
	o.exchangeV(out)
	return o.start(), nil
}

// enterLengths is beginNB for blocks with any lengths, which are multiples of unit.
func (c *Endpoint) enterLengths(d call, unit int, blocks ...[]byte) (*op, error) {
	if err := c.checkUnits(d.kind, unit, blocks); err != nil {
		return nil, err
	}
	d.size = uint64(unit)
	return c.beginNB(d, nil)
}
