package collective

import "testing"

// BenchmarkAllReduceNB is an all-reduce of 8 bytes on two ranks: the call that waits, and one
// that is begun and waited for.
func BenchmarkAllReduceNB(b *testing.B) {
	for _, nb := range []bool{false, true} {
		name := "blocking"
		if nb {
			name = "begin and wait"
		}
		b.Run(name, func(b *testing.B) {
			must(b, "shm", 2, func(m *member) error {
				acc := make([]byte, 8)
				if m.rank == 0 {
					b.ResetTimer()
				}
				for range b.N {
					if !nb {
						if err := m.AllReduce(acc, sum); err != nil {
							return err
						}
						continue
					}
					h, err := m.AllReduceNB(acc, sum)
					if err != nil {
						return err
					}
					if err := h.Wait(); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}
