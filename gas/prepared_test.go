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
		seg := Must(NewSlice[int32](n, count))
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
			put := Must(p.Add(1).PreparePut(n, src))
			get := Must(p.Add(1).PrepareGet(n, dst))
			for i := range 3 {
				for k := range src {
					src[k] = int32(1000*i + k + n.Rank())
				}
				for _, q := range []*Prepared{put, get} {
					h := Must(q.Start())
					n.Must(n.Sync(h))
				}
				if !slices.Equal(src, dst) {
					return fmt.Errorf("start %d at %v: %v came back of %v", i, p, dst, src)
				}
			}
			n.Must(put.Free())
			n.Must(get.Free())
		}
		n.Must(n.Barrier())
		if own[0] != 0 || own[1] != int32(2000+1-n.Rank()) {
			return fmt.Errorf("the registered memory has %v", own[:2])
		}
		_, err = Ptr[int32]{}.PreparePut(n, own)
		return wantErr(err, ErrBadArg, "gas: PreparePut")
	})
}
