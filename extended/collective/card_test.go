package collective

import (
	"bytes"
	"fmt"
	"testing"
)

// TestCardBarriers counts the barriers of cards that calls take: none where the root hears of all
// ranks before it sends to them. Calls of which some ranks are late by chance come
// one behind the other, so that what is cast too early would be lost or taken for another call's.
func TestCardBarriers(t *testing.T) {
	block := func(call, rank int) []byte { return []byte{byte(call), byte(rank), byte(call * rank)} }
	for _, n := range []int{3, 4, 13} {
		must(t, "card", n, func(m *member) error {
			if m.card == nil {
				return fmt.Errorf("rank %d has no card", m.rank)
			}
			for i := range 40 {
				var got, want []byte
				for r := range n {
					want = append(want, block(i, r)...)
				}
				phases := uint64(0)
				before := m.card.phase
				var err error
				switch i % 4 {
				case 0:
					got = make([]byte, len(want))
					err = m.AllGather(block(i, m.rank), got)
				case 1:
					var all [][]byte
					all, err = m.AllGatherV(1, block(i, m.rank))
					got = bytes.Join(all, nil)
				case 2:
					got, want = block(i, m.rank), make([]byte, 3)
					for r := range n {
						sum(want, block(i, r))
					}
					err = m.AllReduce(got, sum)
				case 3:
					got, want, phases = block(i, m.rank), block(i, i%n), 1
					err = m.Broadcast(i%n, got)
				}
				if err != nil || !bytes.Equal(got, want) {
					return fmt.Errorf("call %d of rank %d of %d: %v, not %v: %w", i, m.rank, n, got, want, err)
				}
				if more := m.card.phase - before; more != phases {
					return fmt.Errorf("call %d of rank %d of %d took %d barriers of the cards, want %d", i, m.rank, n, more, phases)
				}
			}
			return nil
		})
	}
}
