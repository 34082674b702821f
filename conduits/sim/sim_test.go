package sim_test

import (
	"testing"
	"time"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/sim"
)

// TestHalfRoundTrip is the sum of table 9-2's entries for a VELO message, and of
// what its words take on the link beyond 8 bytes.
func TestHalfRoundTrip(t *testing.T) {
	for _, args := range []int{0, 4} {
		j := newJob(t, 2, sim.Config{})
		eps := j.Endpoints()
		const rounds = 10
		conduits.Run(eps, func(i int) {
			got := 0
			e, err := am.Attach(eps[i], am.Config{Handlers: []am.Entry{{Index: 128, Name: "ping", Args: args, Fn: func(*am.Token, []uint32, []byte) { got++ }}}})
			if err != nil {
				t.Error(err)
				return
			}
			send := func(to int) {
				if err := e.RequestShort(to, 128, make([]uint32, args)...); err != nil {
					t.Error(err)
				}
			}
			start := eps[i].Now()
			for k := range rounds {
				if i == 0 {
					send(1)
				}
				if err := e.Wait(nil, func() bool { return got == k+1 }); err != nil {
					t.Error(err)
					return
				}
				if i == 1 {
					send(0)
				}
			}
			p := sim.Extoll()
			want := p.Software + p.PIO + p.DMAWrite + p.Net.Latency + sim.Time(max(0, p.Header+p.Tag+4*args-p.Net.Free))*p.Net.Byte
			// The last looks that find nothing in the first round add up to a few ns of all.
			took := (eps[i].Now() - start) / rounds / 2
			if off := took - time.Duration(want/sim.Nanosecond); i == 0 && (off < 0 || off > 2*time.Nanosecond) {
				t.Errorf("%d arguments: %v, not %d ps", args, took, want)
			}
		})
	}
}

// TestCompute: a rank that computes runs no handler, and is done after as long as it was to take; another thread of it
// runs what arrives meanwhile.
func TestCompute(t *testing.T) {
	const work = time.Millisecond
	for _, helped := range []bool{false, true} {
		j := newJob(t, 2, sim.Config{})
		eps := j.Endpoints()
		conduits.Run(eps, func(i int) {
			var ran time.Duration
			e, err := am.Attach(eps[i], am.Config{Handlers: []am.Entry{{Index: 128, Name: "ping", Fn: func(*am.Token, []uint32, []byte) { ran = eps[i].Now() }}}})
			if err != nil {
				t.Error(err)
				return
			}
			if i == 1 {
				if err := e.RequestShort(0, 128); err != nil {
					t.Error(err)
				}
				return
			}
			over := false
			if helped {
				conduits.Go(eps[0], func() { _ = e.Wait(nil, func() bool { return over }) })
			}
			start := eps[0].Now()
			sim.Compute(j.Endpoint(0), work)
			if took := eps[0].Now() - start; took != work {
				t.Errorf("helped %v: %v of computing took %v", helped, work, took)
			}
			if early := ran > 0; early != helped || early && ran >= start+work {
				t.Errorf("helped %v: the handler ran at %v, of %v to %v", helped, ran, start, start+work)
			}
			over = true
			eps[0].Wake(0)
			if err := e.Wait(nil, func() bool { return ran > 0 }); err != nil {
				t.Error(err)
			}
		})
	}
}
