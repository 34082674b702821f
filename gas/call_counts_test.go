package gas

import "testing"

// TestCallsAreCounted adds up what all lanes have counted: what was sent was handled.
func TestCallsAreCounted(t *testing.T) {
	const each = 20
	runN(t, 3, func(n *Node) error {
		for i := range each {
			if err := callNothing.Send(n, i%n.Size(), struct{}{}); err != nil {
				return err
			}
			if _, err := callSum.Call(n, i%n.Size(), summands{}); err != nil {
				return err
			}
		}
		// Refused before it leaves.
		if err := callNothing.Send(n, n.Size(), struct{}{}); err == nil {
			t.Error("a call of no rank was sent")
		}
		if got := n.calls.started(); got != 2*each {
			t.Errorf("rank %d has counted %d calls sent, want %d", n.Rank(), got, 2*each)
		}
		if err := n.Barrier(); err != nil {
			return err
		}
		// Each rank had as many as the index allows, some of them still on their way.
		want := uint64(0)
		for i := range each {
			if i%n.Size() == n.Rank() {
				want += 2 * uint64(n.Size())
			}
		}
		return n.Wait(func() bool { return n.calls.finished() == want })
	})
}
