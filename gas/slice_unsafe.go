package gas

// What is unsafe here: mapped memory as a slice of T, which has no pointers, is aligned
// (a mapping begins with a page) and not larger than the mapping.

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/segment"
)

// MakeSlice makes a slice of count zeroed elements in memory that the conduit hands out
// for sharing, registers it for all ranks, and returns it with the Ptr to its first element.
// Use it for memory that other ranks access often and that does not fit, or does
// not belong, in the segment: to a plain slice of the Go heap (see [Register]) of another
// process an access is a system call or a message to its owner, to this one a load or
// store. Any rank may use the Ptr, as one that Register has returned, and the owner the
// slice.
//
// The memory lies outside the Go heap and is there until [Free] or until the function
// that Run gave the Node to returns; neither the slice nor parts of it may be used
// afterwards. append to the full slice makes other memory, which is not shared. Each slice
// takes whole pages, and addresses in whole buckets (Config.PinBucket): a few large slices
// are cheaper than many small ones. Without room the error matches ErrResource. Any
// goroutine may call it.
func MakeSlice[T any](n *Node, count int) ([]T, Ptr[T], error) {
	size, err := byteSize[T]("MakeSlice", count)
	if err == nil && n.stop.Load() {
		err = errLeft
	}
	if err != nil {
		return nil, Ptr[T]{}, err
	}
	mem, a, err := n.makeSlice(size)
	if err != nil {
		return nil, Ptr[T]{}, fmt.Errorf("gas: MakeSlice of %d bytes on rank %d: %w", size, n.rank, err)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mem))), count), Ptr[T]{w: makeWord(n.rank, a)}, nil
}

func (n *Node) makeSlice(size uint64) ([]byte, segment.NLA, error) {
	whole, err := n.ep.MapMemory(size)
	if err != nil {
		return nil, 0, err
	}
	a, err := n.registerOf(whole[:size:size], whole, RightsAll, AnyPeer)
	switch {
	case errors.Is(err, errLeft):
		return nil, 0, errors.Join(err, n.unmapSlice(a, whole))
	case err != nil:
		return nil, 0, errors.Join(err, n.ep.UnmapMemory(whole))
	}
	return whole[:size:size], a, nil
}

// unmapSlice takes the slice at a back, whose mapping is whole.
func (n *Node) unmapSlice(a segment.NLA, whole []byte) error {
	return n.cache.Unmap(n.space, firehose.Addr(a-segment.ExposedBase), func([]byte) error { return n.ep.UnmapMemory(whole) })
}

// unmapSlices takes back what is left of MakeSlice.
func (n *Node) unmapSlices() error {
	g := &n.registered
	g.mu.Lock()
	made := g.made
	g.made = nil
	for a := range made {
		g.spans.remove(a)
	}
	g.mu.Unlock()
	var all []error
	for a, whole := range made {
		all = append(all, n.unmapSlice(a, whole))
	}
	return errors.Join(all...)
}
