package collective

// What is unsafe here: memory is asked where it begins.

import (
	"errors"
	"fmt"
	"testing"
	"unsafe"
)

// aligned is n bytes that begin at a multiple of 8.
func aligned(n int) []byte {
	var buf []uint64
	return words(&buf, n)
}

// TestCombineAligned: a Combine may view both of what it gets as words of 8 bytes, whatever the length, on
// all ways that data take.
func TestCombineAligned(t *testing.T) {
	sizes := []int{4, 12, 20, 60, 1004, 40004} // no multiples of 8
	for _, network := range networks {
		for _, ranks := range []int{2, 5} {
			must(t, network, ranks, func(m *member) error {
				bad := ""
				check := func(what string, n int) Combine {
					return func(acc, in []byte) {
						for name, b := range map[string][]byte{"acc": acc, "in": in} {
							if at := uintptr(unsafe.Pointer(unsafe.SliceData(b))); len(b) > 0 && at%8 != 0 {
								bad = fmt.Sprintf("%s of %d bytes: %s of %d bytes begins %d bytes behind a word", what, n, name, len(b), at%8)
							}
						}
					}
				}
				wait := func(h Handle, err error) error {
					if err != nil {
						return err
					}
					return h.Wait()
				}
				for _, n := range sizes {
					all := aligned(n * m.size)
					for _, c := range []struct {
						what string
						do   func(f Combine) error
					}{
						{"Reduce", func(f Combine) error { return m.Reduce(m.size-1, aligned(n), f) }},
						{"AllReduce", func(f Combine) error { return m.AllReduce(aligned(n), f) }},
						{"AllReduceElements", func(f Combine) error { return m.AllReduceElements(4, aligned(n), f) }},
						{"ReduceScatter", func(f Combine) error { return m.ReduceScatter(all, aligned(n), f) }},
						{"Scan", func(f Combine) error { return m.Scan(aligned(n), f) }},
						{"ExclusiveScan", func(f Combine) error { return m.ExclusiveScan(aligned(n), aligned(n), f) }},
						{"ReduceNB", func(f Combine) error { return wait(m.ReduceNB(0, aligned(n), f)) }},
						{"AllReduceNB", func(f Combine) error { return wait(m.AllReduceNB(aligned(n), f)) }},
						{"AllReduceElementsNB", func(f Combine) error { return wait(m.AllReduceElementsNB(4, aligned(n), f)) }},
						{"ReduceScatterNB", func(f Combine) error { return wait(m.ReduceScatterNB(all, aligned(n), f)) }},
						{"ScanNB", func(f Combine) error { return wait(m.ScanNB(aligned(n), f)) }},
						{"ExclusiveScanNB", func(f Combine) error { return wait(m.ExclusiveScanNB(aligned(n), aligned(n), f)) }},
					} {
						if err := c.do(check(c.what, n)); err != nil {
							return fmt.Errorf("%s of %d bytes: %w", c.what, n, err)
						}
					}
				}
				if bad != "" {
					return errors.New(bad)
				}
				return nil
			})
		}
	}
}
