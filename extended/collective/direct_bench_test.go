package collective

import (
	"fmt"
	"testing"
	"time"

	_ "github.com/argon-go/argon/conduits/udp"
)

// BenchmarkDirect does the calls that choose by the size of blocks: network/ranks/call/bytes of
// a block. It says where the two ways cross if it is run with a directBlock of 1 and of 1 << 40.
func BenchmarkDirect(b *testing.B) {
	add := func(acc, in []byte) {
		for i := range acc {
			acc[i] += in[i]
		}
	}
	calls := []struct {
		name string
		call func(m *member, own, all, in []byte) error
	}{
		{"allreduce", func(m *member, _, all, _ []byte) error { return m.AllReduceElements(8, all, add) }},
		{"allgather", func(m *member, own, _, in []byte) error { return m.AllGather(own, in) }},
		{"exchange", func(m *member, _, all, in []byte) error { return m.Exchange(all, in) }},
		{"reducescatter", func(m *member, own, all, _ []byte) error { return m.ReduceScatter(all, own, add) }},
	}
	for _, network := range []string{"shm", "udp", "sim"} {
		for _, ranks := range []int{2, 4, 16, 64, 256} {
			if network != "sim" && ranks > 16 {
				continue
			}
			for _, c := range calls {
				for _, block := range []int{16, 64, 128, 256, 512, 1024, 2048, 4096} {
					b.Run(fmt.Sprintf("%s/%d/%s/%d", network, ranks, c.name, block), func(b *testing.B) {
						must(b, network, ranks, func(m *member) error {
							own, all, in := make([]byte, block), make([]byte, block*ranks), make([]byte, block*ranks)
							for range b.N {
								if err := c.call(m, own, all, in); err != nil {
									return err
								}
							}
							if clock, ok := m.e.Conduit().(interface{ Now() time.Duration }); ok && m.Rank() == 0 {
								b.ReportMetric(float64(clock.Now().Nanoseconds())/float64(b.N), "virtual-ns/op")
							}
							return nil
						})
					})
				}
			}
		}
	}
}
