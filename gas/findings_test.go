package gas

import (
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

var findingCall = RegisterCall("findings.call", func(*Node, uint64) (r struct{}) { return r })

// TestCallsInBarriers has a rank enter barriers while calls of its are under way. The
// other one does not poll until then.
func TestCallsInBarriers(t *testing.T) {
	for _, debug := range []bool{false, true} {
		var out strings.Builder
		cfg := small(2)
		cfg.Debug, cfg.Output = debug, &out
		here, notified := make(chan struct{}), make(chan struct{})
		if err := Run(cfg, func(n *Node) error {
			if n.Rank() == 1 { // which answers nothing meanwhile
				close(here)
				<-notified
				return n.Barrier()
			}
			<-here
			err := findingCall.Send(n, 1, 1)
			var fut Future[struct{}]
			if err == nil {
				fut, err = findingCall.Go(n, 1, 2)
			}
			if err == nil {
				err = n.BarrierNotify()
			}
			close(notified)
			if err == nil {
				err = n.BarrierWait()
			}
			if err == nil {
				_, err = fut.Wait()
			}
			if k := len(n.calls.underWay()); k != 0 && err == nil {
				t.Errorf("%d calls are under way", k)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		n := len(regexp.MustCompile(`rank 0 enters a barrier \(findings_test\.go:\d+\) while its call of findings\.call on rank 1 \(findings_test\.go:\d+\) is not answered`).FindAllString(out.String(), -1))
		if want := map[bool]int{true: 2}[debug]; n != want || !debug && out.Len() > 0 {
			t.Errorf("with debug %v, %d findings: %s", debug, n, out.String())
		}
	}
}

// onlyOne is an output that is told if two write at once.
type onlyOne struct {
	busy atomic.Bool
	t    *testing.T
}

func (o *onlyOne) Write(b []byte) (int, error) {
	if o.busy.Swap(true) {
		o.t.Error("two ranks write at once")
	}
	for range 100 {
		runtime.Gosched()
	}
	o.busy.Store(false)
	return len(b), nil
}

// TestFindingsTakeTurns: the ranks of a process share an output.
func TestFindingsTakeTurns(t *testing.T) {
	cfg := small(4)
	cfg.Debug, cfg.Output = true, &onlyOne{t: t}
	if err := Run(cfg, func(n *Node) error {
		for i := range 50 {
			n.run.findings.say("rank %d, %d", n.rank, i)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
