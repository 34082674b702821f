package udp

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/udp/engine"
)

// deaf is a link that loses the next so many of what it is given.
type deaf struct {
	link
	lose atomic.Int32
}

func (l *deaf) Send(o *outbox) {
	if l.lose.Load() > 0 && l.lose.Add(-1) >= 0 {
		return
	}
	l.link.Send(o)
}

// TestLostWhileAnotherWatches has a goroutine of a rank be parked, when there is
// nothing to wait for but datagrams; what another one sends then, and does not
// poll after, is lost, and must be sent again nevertheless.
func TestLostWhileAnotherWatches(t *testing.T) {
	eps := speedJob(t, engine.Config{}, false, 0)
	d := &deaf{link: eps[0].l}
	eps[0].l = d
	got := make(chan struct{})
	both(t, eps, func(ep *Endpoint, s *speaker) {
		var over atomic.Bool
		parked := make(chan struct{})
		go func() {
			defer close(parked)
			_ = conduits.Wait(ep, nil, func() bool { return over.Load() })
		}()
		for watching := false; !watching; runtime.Gosched() {
			ep.waitMu.Lock()
			watching = ep.watching
			ep.waitMu.Unlock()
		}
		d.lose.Store(1)
		if ep.Send(1, conduits.Request, 1, nil) != conduits.Ready {
			t.Error("no credit")
		}
		select {
		case <-got:
		case <-time.After(5 * time.Minute):
			t.Error("what was lost is not sent again")
		}
		over.Store(true)
		ep.Wake(0)
		<-parked
	}, func(ep *Endpoint, s *speaker) {
		if err := conduits.Wait(ep, nil, func() bool { return s.got == 1 }); err != nil {
			t.Error(err)
		}
		close(got)
	})
}
