package gas

import (
	"fmt"
	"strings"
	"testing"

	"github.com/argon-go/argon/conduits"
)

// TestQuiesceStandsStill: where a deferred function, or a task, waits for what never comes, on
// a goroutine beside the one in Quiesce, the job does not go on in waves without end: the
// report of the deadlock names the rank, and what waits there.
func TestQuiesceStandsStill(t *testing.T) {
	err := Run(Config{Ranks: 3, Conduit: "sim"}, func(n *Node) error {
		if n.Rank() == 1 {
			begun := false
			conduits.Go(n.Layers().Conduit, func() {
				n.Defer(func(n *Node) {
					begun = true
					n.Layers().Conduit.Wake(n.Rank())
					_ = n.Wait(func() bool { return n.Size() == 0 })
				})
				n.Poll()
			})
			// Which leaves the deferred function to the other goroutine.
			n.Must(conduits.Wait(n.Layers().Conduit, nil, func() bool { return begun }))
		}
		return n.Quiesce()
	})
	for _, want := range []string{
		"deadlock", "rank 0: Quiesce: waiting for rank 1 to have handled everything (wave 1)",
		"rank 1: Quiesce: what this rank has sent or received to be handled (wave 1)",
		"rank 1: a condition of the program (quiesce_test.go:",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

// TestCallsBetweenSums: a call that is handled, and sends another one, while a rank counts does not make what
// is under way look handled.
func TestCallsBetweenSums(t *testing.T) {
	err := Run(small(1), func(n *Node) error {
		sent, handled := (*callParty)(n).Counts()
		// One call is under way, which comes and sends one.
		n.calls.sent.Add(1)
		n.work.between = func() { n.calls.handled.Add(1); n.calls.sent.Add(1) }
		if s, h := (*callParty)(n).Counts(); s-sent == h-handled {
			return fmt.Errorf("%d calls are sent and %d handled, while one is under way all the time", s-sent, h-handled)
		}
		n.work.between = nil
		n.calls.handled.Add(1)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
