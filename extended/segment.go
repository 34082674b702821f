package extended

import "github.com/argon-go/argon/segment"

// Segment is the whole segment of rank as plain memory of this process, from its byte 0,
// which is at segment.AttachBase, to its last; nil if rank is out of reach of load and
// store, is no rank of the job, or has attached nothing, and before Bind. The own rank
// is always in reach.
//
// At attach all of it is zero, on every conduit. It does not move, and is valid until
// this rank closes its conduit's endpoint: an access after that may fault. Where it lies
// differs between processes; ranks of one process have the same memory, be it of the Go
// heap or not, see package segment. No Go pointers may be stored there. Rights are not
// asked for: what the owner has not granted when it attached the program leaves alone.
//
// Peers change it at any time. What accesses to it are is what those of this package are
// to the same bytes, plain loads and stores: aligned ones of 1, 2, 4 and 8 bytes are
// single-copy atomic and relaxed, and what orders them, atomics, messages, barriers and
// Fence, the package comment says under "Memory model". Functions of sync/atomic on
// words of it are the atomics of this package, but wake no waiter.
func (x *Initiator) Segment(rank int) []byte {
	if x.ep == nil || !x.views.near(rank) {
		return nil
	}
	return x.Direct(rank, segment.AttachBase, x.ep.SegmentSize(rank))
}
