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
