package collective

import (
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
)

// TestMail: few ranks that share no memory make small calls by one message to each other rank, those with a root
// if there are two ranks. Larger ones, and those of more ranks, are right as well.
func TestMail(t *testing.T) {
	most := func(k kind, size int) int { // bytes of a block
		switch {
		case size > mailRanks:
		case k == kindAllReduce || k == kindAllGather:
			return mailRoom
		case k == kindExchange:
			return mailRoom / (size - 1) &^ (lineBytes - 1)
		case k == kindReduceScatter:
			return mailRoom / size &^ 7
		case size > 2:
		case k == kindScan || k == kindExclusiveScan:
			return sharedBytes
		case k == kindBroadcast || k == kindReduce || k == kindGather || k == kindScatter:
			return mailRoom
		}
		return 0
	}
	for _, size := range []int{2, 3, mailRanks, mailRanks + 1} {
		for _, k := range stepKinds {
			for _, n := range []int{2, 8, sharedBytes + 2, 500, mailRoom, mailRoom + 2} {
				var sent atomic.Uint64
				must(t, "sim", size, func(m *member) error {
					var before, after conduits.Stats
					if err := m.meet(); err != nil {
						return err
					}
					m.e.Conduit().Stats(&before)
					err := (step{kind: k, root: size - 1, n: n, seed: 3}).run(m.Member, false)
					m.e.Conduit().Stats(&after)
					sent.Add(after.Sent[conduits.Request] - before.Sent[conduits.Request])
					return err
				})
				if got := int(sent.Load()); n <= most(k, size) && got != size*(size-1) {
					t.Errorf("%s of %d bytes on %d ranks: %d messages", kindNames[k], n, size, got)
				}
			}
		}
	}
}
