package gas

import "github.com/argon-go/argon/extended"

// Prepared is a transfer between a slice and the memory at a Ptr that is prepared once and started many times: Start begins it and
// returns a [Handle], and Free ends it, when no transfer is under way. To registered memory of another host it takes
// three quarters of the time of PutSliceNB, as its pages stay pinned and need not be looked for; to segments 19 of 20
// parts, and in shared memory as long. Peers have that much less of the rank's registered memory for all else (Config.Pinnable).
type Prepared = extended.Prepared

// PreparePut prepares puts of the elements of src to p and after it. What src has when one is started must stay
// until its Handle has been synchronized.
func (p Ptr[T]) PreparePut(n *Node, src []T) (*Prepared, error) {
	b := bytesOf(src)
	if err := n.check("gas: PreparePut", p.w, uint64(len(b))); err != nil {
		return nil, err
	}
	return extended.PreparePut(n.x, p.Rank(), p.NLA(), b)
}

// PrepareGet prepares gets of the elements at p and after it into dst, which must be left alone from the start of one until its
// Handle has been synchronized.
func (p Ptr[T]) PrepareGet(n *Node, dst []T) (*Prepared, error) {
	b := bytesOf(dst)
	if err := n.check("gas: PrepareGet", p.w, uint64(len(b))); err != nil {
		return nil, err
	}
	return extended.PrepareGet(n.x, p.Rank(), p.NLA(), b)
}
