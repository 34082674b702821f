package collective

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/internal/testkit/testjob"
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
				must(t, "loop", size, func(m *member) error {
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

// TestEarlyMail: what a rank mails before another one has called Bind is not lost.
func TestEarlyMail(t *testing.T) {
	for _, network := range []string{"loop"} {
		testjob.MustLocal(t, network, 3, func(ep conduits.Endpoint) error {
			c := New(Config{})
			e, err := am.Attach(ep, am.Config{Runtime: c.Handlers()})
			if err != nil {
				return err
			}
			if e.Rank() == 1 {
				if err := e.Wait(nil, func() bool {
					c.mu.Lock()
					defer c.mu.Unlock()
					return len(*earlyOf(c)) == 2
				}); err != nil {
					return err
				}
			}
			c.Bind(e)
			for range 3 {
				acc := []byte{byte(1 + e.Rank())}
				if err := c.AllReduce(acc, sum); err != nil || acc[0] != 6 {
					return fmt.Errorf("the sum is %d: %w", acc[0], err)
				}
			}
			return c.Leave([]byte{0}, sum, nil)
		})
	}
}
