package must_test

import (
	"testing"

	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/gas/must"
)

// BenchmarkAccess is a get, a put and a fetch-and-add on another rank's word in reach of load
// and store, with errors that the program looks at and without.
func BenchmarkAccess(b *testing.B) {
	for name, access := range map[string]func(n *gas.Node, p gas.Ptr[uint64], count int) error{
		"errors": func(n *gas.Node, p gas.Ptr[uint64], count int) error {
			for range count {
				v, err := p.Get(n)
				if err != nil {
					return err
				}
				if err := p.Put(n, v+1); err != nil {
					return err
				}
				if _, err := gas.FetchAdd(n, p, 1); err != nil {
					return err
				}
			}
			return nil
		},
		"must": func(n *gas.Node, p gas.Ptr[uint64], count int) error {
			for range count {
				must.Put(n, p, must.Get(n, p)+1)
				must.FetchAdd(n, p, 1)
			}
			return nil
		},
	} {
		b.Run(name, func(b *testing.B) {
			err := gas.Run(gas.Config{Ranks: 2, SegmentSize: 1 << 16}, func(n *gas.Node) error {
				p := must.New[uint64](n)
				if n.Rank() == 1 {
					return nil
				}
				b.ResetTimer()
				defer b.StopTimer()
				return access(n, p.On(1), b.N)
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
