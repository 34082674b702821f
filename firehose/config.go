package firehose

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"

	"github.com/argon-go/argon/internal/errs"
	"github.com/argon-go/argon/segment"
)

// ErrNotExposed: the owner has no memory at these addresses, or has none any
// more. It matches segment.ErrFault, and with it ErrBadArg: it is the remote
// equivalent of a segmentation fault.
var ErrNotExposed = fmt.Errorf("nothing is exposed there: %w", segment.ErrFault)

// NotExposed is ErrNotExposed for an access that has run over the end of memory, of
// which end is the address behind the last byte; ErrNotExposed itself if end is 0.
func NotExposed(end Addr) error {
	if end == 0 {
		return ErrNotExposed
	}
	return &endError{end}
}

// endError is the error of an access beyond the end of memory.
type endError struct{ end Addr }

func (e *endError) Error() string {
	return fmt.Sprintf("what is exposed there ends before exposed:%#x: segment: remote access fault", uint64(e.end))
}

func (e *endError) Unwrap() error { return ErrNotExposed }

// Addr is an address of memory that a rank exposes. It is a number of the
// owner's choice, not an address in memory: see Space.
type Addr uint64

// Grant is the permission of a bucket's owner for ranks to reach it.
type Grant struct {
	NLA segment.NLA // of the bucket's first byte
	Key uint64      // a conduit's key for remote memory, such as libfabric's; else 0
}

// Memory is a rank's own memory as a machine sees it. Its methods are called
// with the caller's lock on the machine held, must not call the machine, and
// should not take longer than a registration does.
type Memory interface {
	// Pin registers the bucket of n bytes at a, or the part of it that there is,
	// for all peers. An error that matches ErrNotExposed says that there is no
	// memory; any other that it cannot be registered now.
	Pin(a Addr, n uint64) (Grant, error)
	// PinOnce registers n bytes at a, which may lie anywhere in buckets, all of
	// them or none.
	PinOnce(a Addr, n uint64) (Grant, error)
	// Unpin takes back what Pin or PinOnce gave for a and n. When it returns
	// no rank reaches the memory by g any more. No two grants at a time have the
	// same NLA.
	Unpin(a Addr, n uint64, g Grant)
	// Revoke is Unpin of memory that peers still hold firehoses to: g's
	// addresses must fault from now on and must not be given again until Forget.
	Revoke(a Addr, n uint64, g Grant)
	// Forget says that no rank remembers g, which was revoked.
	Forget(a Addr, n uint64, g Grant)
}

// Config has the options of a machine. Budget, Local, Bucket and Payload must
// be equal on all ranks.
type Config struct {
	Rank, Size int

	// Budget is M: the most bytes of this rank's memory that are pinned at any
	// moment. At least Local and a bucket for each peer. 0 for 512 MiB, or more if
	// that leaves a peer, or a rank alone, less than 16 buckets.
	Budget uint64
	// Local is the part of Budget for what is registered for one transfer each: as many
	// bytes of this rank's memory at once. The rest is divided among the peers. 0 for a
	// quarter.
	Local uint64
	// Bucket is the unit of pinning, bytes: a power of two pages. 0 for 64 KiB.
	Bucket uint64
	// Payload is the largest payload of a message, bytes: a conduit's MaxMedium.
	// 0 for 512, the least that a conduit has.
	Payload int

	// Memory is this rank's own. Required.
	Memory Memory

	// leave, unless nil, is called before a firehose of this rank to rank's bucket
	// at a is given up: whatever was derived from it must be forgotten before leave returns.
	// Called as Memory is.
	leave func(rank int, a Addr)
}

func checkBucket(n uint64) error {
	if n < segment.PageSize || n&(n-1) != 0 {
		return errs.BadArg("firehose: buckets of %d bytes: a power of two, at least a page of %d, is needed", n, segment.PageSize)
	}
	return nil
}

// Digest is a number of all that must be equal on all ranks, for the layer above to
// compare among them when a job starts.
func (c Config) Digest() uint64 {
	c.fill()
	h := fnv.New64a()
	c.agreement().write(h)
	return h.Sum64()
}

// Limits follow from a Config.
type Limits struct {
	Bucket    uint64 // bytes
	Budget    int    // buckets that may be pinned at once at each rank
	Share     int    // firehoses, that is buckets, that a rank may hold at each peer
	Local     int    // buckets' worth that may be registered at once for one transfer each
	MaxRemote uint64 // a RemotePin of so many bytes fits wherever it lies
	MaxOnce   uint64 // a PinOnce of more bytes never fits

	maxBuckets int // of one RemotePin
}

// Frames of messages.
const (
	headBytes  = 16 // of a request, and of a reply
	entryBytes = 16 // one bucket given up and one asked for, or one granted with a key
	minPayload = headBytes + entryBytes
)

// fill fills in what is missing.
func (c *Config) fill() {
	if c.Bucket == 0 {
		c.Bucket = 64 << 10
	}
	if c.Payload == 0 {
		c.Payload = 512
	}
	if c.Budget == 0 {
		c.Budget = max(512<<20, uint64(max(c.Size-1, 1))*16*c.Bucket/3*4)
	}
	if c.Local == 0 {
		c.Local = c.Budget / 4
		if c.Size == 1 {
			c.Local = c.Budget
		}
	}
}

// ensure fills in what is missing and derives the limits.
func (c *Config) ensure() (l Limits, err error) {
	c.fill()
	switch {
	case c.Size < 1 || c.Rank < 0 || c.Rank >= c.Size:
		return l, errs.BadArg("firehose: rank %d of %d", c.Rank, c.Size)
	case c.Size > maxRanks:
		return l, errs.Resource("firehose: %d ranks: at most %d can be told apart", c.Size, maxRanks)
	case c.Memory == nil:
		return l, errs.BadArg("firehose: no Memory")
	case c.Payload < minPayload:
		return l, errs.BadArg("firehose: messages of %d bytes: at least %d are needed", c.Payload, minPayload)
	case c.Local > c.Budget:
		return l, errs.BadArg("firehose: %d bytes for single transfers (Config.Local) of a budget of %d", c.Local, c.Budget)
	case c.Budget/c.Bucket > 1<<30:
		return l, errs.BadArg("firehose: a budget of %d bytes has %d buckets of %d: at most %d can be managed", c.Budget, c.Budget/c.Bucket, c.Bucket, 1<<30)
	}
	if err := checkBucket(c.Bucket); err != nil {
		return l, err
	}
	l.Bucket = c.Bucket
	l.Budget = int(c.Budget / c.Bucket)
	l.Local = int(c.Local / c.Bucket)
	if c.Size > 1 {
		l.Share = (l.Budget - l.Local) / (c.Size - 1)
	}
	if l.Local < 1 || c.Size > 1 && l.Share < 1 {
		return l, errs.Resource("firehose: a budget of %d bytes, %d of them for single transfers (Config.Local), is too small for %d ranks: a bucket of %d bytes is needed for each peer, and one more for single transfers",
			c.Budget, c.Local, c.Size, c.Bucket)
	}
	l.maxBuckets = min(l.Share, (c.Payload-headBytes)/entryBytes, 1<<16-1)
	// n bytes may begin at the last byte of a bucket.
	if l.maxBuckets > 0 {
		l.MaxRemote = uint64(l.maxBuckets-1)*c.Bucket + 1
	}
	l.MaxOnce = min(uint64(l.Local)*c.Bucket, 1<<onceSlot-1)
	return l, nil
}

// agreement has the fields of a Config that must be equal on all ranks.
type agreement [5]uint64

func (c *Config) agreement() agreement {
	return agreement{uint64(c.Size), c.Budget, c.Local, c.Bucket, uint64(c.Payload)}
}

func (a agreement) String() string {
	return fmt.Sprintf("%d ranks, budget %d, local %d, bucket %d, payload %d", a[0], a[1], a[2], a[3], a[4])
}

// digest goes with every message, so that ranks that do not agree cannot harm
// each other.
func (a agreement) digest() uint32 {
	h := fnv.New32a()
	a.write(h)
	return h.Sum32()
}

func (a agreement) write(w io.Writer) {
	for _, v := range a {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], v)
		_, _ = w.Write(b[:])
	}
}
