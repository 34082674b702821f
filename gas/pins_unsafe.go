package gas

// What is unsafe here: the own segment as a slice, whose length the View has.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"unsafe"

	"github.com/argon-go/argon/extended/collective"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// pinConfig is the configuration of firehose from cfg.
func (n *Node) pinConfig(cfg *Config) firehose.Config {
	return firehose.Config{
		Rank: n.rank, Size: n.size,
		Budget: cfg.Pinnable, Local: cfg.PinLocal, Bucket: cfg.PinBucket,
		Payload: n.ep.Limits().MaxMedium,
	}
}

// pins makes what registered memory needs, which is little until there is some.
func (n *Node) pins(cfg *Config) error {
	c := n.pinConfig(cfg)
	if c.Bucket == 0 {
		c.Bucket = DefaultBucket
	}
	var err error
	if n.space, err = firehose.NewSpace(n.ep.ATU, c.Bucket); err == nil {
		c.Memory = n.space
		n.cache, err = firehose.NewCache(c)
	}
	if err != nil {
		return fmt.Errorf("gas: registered memory: %w (-pinnable, ARGON_PINNABLE, -pin-local, ARGON_PIN_LOCAL, -pin-bucket, ARGON_PIN_BUCKET)", err)
	}
	return nil
}

// lockable refuses to have ranks of this process lock budget bytes each if limit is
// less, unless it may lock more: an access would find that, and only another rank be
// told.
func lockable(ranks int, budget, limit uint64, beyond bool) error {
	if budget <= limit/uint64(ranks) || beyond {
		return nil
	}
	return errs.Resource("gas: Config.PinLock (ARGON_PIN_LOCK) has %d ranks of this process lock up to %d bytes each, of Config.Pinnable (-pinnable, ARGON_PINNABLE), but %d in all may be locked (ulimit -l)",
		ranks, budget, limit)
}

// makeHeap makes the heap of size bytes: of the segment that is attached, or large,
// of memory that is exposed, before any other, so that it has the same addresses
// on all ranks.
func (n *Node) makeHeap(size uint64, large bool) (err error) {
	if large {
		if n.heapMem, err = n.ep.MapMemory(size); err != nil {
			return fmt.Errorf("gas: a segment of %d bytes (-segment, ARGON_SEGMENT): %w", size, err)
		}
		n.large = true
		n.heapBase, err = n.x.Expose(n.heapMem, RightsAll, AnyPeer)
	} else {
		n.heapBase = segment.AttachBase
		if size > 0 {
			n.heapMem = unsafe.Slice((*byte)(n.views.Of(uint64(n.rank)).Base), size)
		}
	}
	if err != nil {
		return err
	}
	n.freshHigh = size
	n.heap, err = segment.NewHeap(n.heapBase, size)
	return err
}

// withdraw lets go of all that is registered. The rank does not need it any more,
// nor do its peers, unless the job has failed: then it faults.
func (n *Node) withdraw() error {
	var err error
	if n.large {
		// First, for a rank that still polls still serves what peers ask for.
		mem := n.heapMem
		n.heapMem, n.large = nil, false
		if n.heapBase.Exposed() {
			err = n.cache.Unmap(n.space, firehose.Addr(n.heapBase-segment.ExposedBase), n.ep.UnmapMemory)
		} else {
			err = n.ep.UnmapMemory(mem)
		}
	}
	if n.cache != nil {
		err = errors.Join(err, n.unmapSlices())
		n.cache.Close()
	}
	return err
}

// meet is the barrier in which all ranks find that they are complete, and agree on
// how much can be pinned: a digest of that is the barrier's identifier.
func (n *Node) meet(cfg *Config) error {
	id := n.startID(cfg)
	if err := n.b.Notify(id, 0); err != nil {
		return err
	}
	err := n.b.Wait(id, 0)
	if err == nil || !errors.Is(err, ErrBarrierMismatch) {
		return err
	}
	return n.compareBudgets(cfg, err)
}

// startID is the identifier of the barrier of meet. Like compareBudgets it is
// apart, for meet's frame is on the stack of every rank that waits there.
//
//go:noinline
func (n *Node) startID(cfg *Config) uint32 {
	h := fnv.New64a()
	var b [9]byte
	binary.LittleEndian.PutUint64(b[:], n.pinConfig(cfg).Digest())
	if cfg.Large {
		b[8] = 1
	}
	_, _ = h.Write(b[:])
	return startID - uint32(h.Sum64()>>34) // no rank is in another barrier
}

// compareBudgets returns an error that names the limits in which the ranks differ. All ranks
// have found err, that something does, and tell each other what they have.
//
//go:noinline
func (n *Node) compareBudgets(cfg *Config, err error) error {
	all := n.budgets(cfg)
	if cerr := n.all.coll.Do(collective.Agree(bytesAt(&all)), combining(budgets.combine)); cerr != nil {
		return errors.Join(err, cerr)
	}
	return all.verdict()
}

// The values that must be equal on all ranks, and where they come from.
var budgetNames = [...]string{
	"Config.Pinnable (-pinnable, ARGON_PINNABLE)",
	"Config.PinLocal (-pin-local, ARGON_PIN_LOCAL)",
	"Config.PinBucket (-pin-bucket, ARGON_PIN_BUCKET)",
	"Config.Large (-segment-large, ARGON_SEGMENT_LARGE)",
	"the conduit's largest medium payload",
}

// budgets are the least and the most of these values that ranks have, and the
// ranks.
type budgets struct {
	low, high     [len(budgetNames)]uint64
	lowAt, highAt [len(budgetNames)]uint32
}

// budgets are this rank's.
func (n *Node) budgets(cfg *Config) (b budgets) {
	l := n.cache.Limits()
	v := [...]uint64{cfg.Pinnable, cfg.PinLocal, l.Bucket, 0, uint64(n.ep.Limits().MaxMedium)}
	if v[0] == 0 {
		v[0] = uint64(l.Budget) * l.Bucket
	}
	if v[1] == 0 {
		v[1] = uint64(l.Local) * l.Bucket
	}
	if cfg.Large {
		v[3] = 1
	}
	b.low, b.high = v, v
	for i := range v {
		b.lowAt[i], b.highAt[i] = uint32(n.rank), uint32(n.rank)
	}
	return b
}

func (b budgets) combine(c budgets) budgets {
	for i := range b.low {
		if c.low[i] < b.low[i] || c.low[i] == b.low[i] && c.lowAt[i] < b.lowAt[i] {
			b.low[i], b.lowAt[i] = c.low[i], c.lowAt[i]
		}
		if c.high[i] > b.high[i] || c.high[i] == b.high[i] && c.highAt[i] < b.highAt[i] {
			b.high[i], b.highAt[i] = c.high[i], c.highAt[i]
		}
	}
	return b
}

func (b budgets) verdict() error {
	var all []error
	for i, name := range budgetNames {
		if b.low[i] != b.high[i] {
			all = append(all, errs.BadArg("gas: ranks differ in %s: it is %d on rank %d and %d on rank %d", name, b.low[i], b.lowAt[i], b.high[i], b.highAt[i]))
		}
	}
	if all == nil {
		return errs.BadArg("gas: ranks differ in how much they can pin (-pinnable, ARGON_PINNABLE, -pin-local, ARGON_PIN_LOCAL)")
	}
	return errors.Join(all...)
}
