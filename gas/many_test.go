package gas

import (
	"fmt"
	"testing"
)

// Far more ranks than processors: everything still works, and collectives cross
// several levels of the tree.
func TestManyRanks(t *testing.T) {
	size := 48
	if testing.Short() {
		size = 17
	}
	cfg := small(size)
	cfg.SegmentSize = 128 << 10
	if err := Run(cfg, func(n *Node) error {
		a := Must(NewArray[uint64](n, 100*size, 3))
		l := Must(NewLock(n))
		sum := Must(New[uint64](n))
		for k := range 20 {
			n.Must(a.Put(n, (k*size+n.Rank())%a.Len(), uint64(k)))
			r, err := callRank.Call(n, (n.Rank()+k)%size, struct{}{})
			if err != nil || r != (n.Rank()+k)%size {
				return fmt.Errorf("call: %d, %v", r, err)
			}
			if k%5 == 0 {
				n.Must(l.Lock(n))
				v := Must(sum.On(0).Get(n))
				n.Must(sum.On(0).Put(n, v+1))
				n.Must(l.Unlock(n))
				n.Must(n.Barrier())
			}
		}
		n.Must(n.Barrier())
		if v, err := sum.On(0).Get(n); err != nil || v != uint64(4*size) {
			return fmt.Errorf("counted %d, %v", v, err)
		}
		total := uint64(0)
		for _, v := range a.Local(n) {
			total += *v
		}
		Must(FetchAdd(n, sum.On(1), total))
		n.Must(n.Barrier())
		if v, err := Load(n, sum.On(1)); err != nil || v != uint64(size*190) {
			return fmt.Errorf("elements add up to %d, want %d (%v)", v, size*190, err)
		}
		return n.Barrier()
	}); err != nil {
		t.Fatal(err)
	}
}
