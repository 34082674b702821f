package gas

import (
	"fmt"
	"slices"
	"testing"
)

// TestPrepared: a put and a get that were prepared move what is there at each start, to segments and to registered
// memory, on every conduit.
func TestPrepared(t *testing.T) {
	everywhere(t, small(2), func(n *Node) error {
		const count = 100
		seg, err := NewSlice[int32](n, count)
		if err != nil {
			return err
		}
		own := make([]int32, count)
		reg, err := Register(n, own)
		if err != nil {
			return err
		}
		if reg, err = swapped(n, reg); err != nil {
			return err
		}
		for _, p := range []Ptr[int32]{seg.On(1 - n.Rank()), reg} {
			src, dst := make([]int32, count-1), make([]int32, count-1)
			put, err := p.Add(1).PreparePut(n, src)
			if err != nil {
				return err
			}
			get, err := p.Add(1).PrepareGet(n, dst)
			if err != nil {
				return err
			}
			for i := range 3 {
				for k := range src {
					src[k] = int32(1000*i + k + n.Rank())
				}
				for _, q := range []*Prepared{put, get} {
					h, err := q.Start()
					if err != nil {
						return err
					}
					if err := n.Sync(h); err != nil {
						return err
					}
				}
				if !slices.Equal(src, dst) {
					return fmt.Errorf("start %d at %v: %v came back of %v", i, p, dst, src)
				}
			}
			if err := put.Free(); err != nil {
				return err
			}
			if err := get.Free(); err != nil {
				return err
			}
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		if own[0] != 0 || own[1] != int32(2000+1-n.Rank()) {
			return fmt.Errorf("the registered memory has %v", own[:2])
		}
		_, err = Ptr[int32]{}.PreparePut(n, own)
		return wantErr(err, ErrBadArg, "gas: PreparePut")
	})
}
