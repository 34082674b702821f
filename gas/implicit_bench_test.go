package gas_test

import (
	"errors"
	"testing"

	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/gas"
)

// BenchmarkAdds is the time an addition to a word of another rank takes: waited for one by
// one, a hundred at a time with handles, and a hundred at a time implicitly.
func BenchmarkAdds(b *testing.B) {
	const many = 100
	handles := make([]gas.Handle, many)
	for _, how := range []struct {
		name string
		add  func(n *gas.Node, p gas.Ptr[uint64], i int) error
	}{
		{"each", func(n *gas.Node, p gas.Ptr[uint64], _ int) error { return gas.Add(n, p, 1) }},
		{"handles", func(n *gas.Node, p gas.Ptr[uint64], i int) (err error) {
			handles[i%many], err = extended.AtomicNB[uint64](n.Layers().Extended, p.Rank(), p.NLA(), nil, extended.AtomicAdd, 1, 0)
			if i%many == many-1 {
				err = errors.Join(err, n.SyncAll(handles))
			}
			return err
		}},
		{"implicit", func(n *gas.Node, p gas.Ptr[uint64], i int) error {
			err := gas.AddNBI(n, p, 1)
			if i%many == many-1 {
				err = errors.Join(err, n.SyncImplicit())
			}
			return err
		}},
		{"sync", func(n *gas.Node, _ gas.Ptr[uint64], _ int) error { return n.SyncImplicit() }},
	} {
		for _, conduit := range []string{"shm", "udp"} {
			b.Run(how.name+"/"+conduit, func(b *testing.B) {
				err := gas.Run(gas.Config{Ranks: 2, Conduit: conduit, SegmentSize: 1 << 20}, func(n *gas.Node) error {
					p, err := gas.New[uint64](n)
					if err != nil || n.Rank() == 1 {
						return err
					}
					b.ResetTimer()
					for i := range b.N {
						if err := how.add(n, p.On(1), i); err != nil {
							return err
						}
					}
					err = errors.Join(n.SyncAll(handles), n.SyncImplicit())
					b.StopTimer()
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
