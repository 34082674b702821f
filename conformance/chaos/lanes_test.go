package chaos_test

import (
	"sync/atomic"
	"testing"

	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/chaos"
	"github.com/argon-go/argon/segment"
)

// counting counts the messages of a lane.
type counting struct{ n atomic.Int64 }

func (c *counting) Receive(*conduits.Message)                      { c.n.Add(1) }
func (c *counting) Complete(uint64, conduits.Event, uint64, error) {}

// TestLanes: chaos is on top of each lane. What it keeps in one lane is handed on there by a
// goroutine that polls, and sleeps by, another one.
func TestLanes(t *testing.T) {
	const each = 50
	for _, kind := range []string{"shm", "twice"} {
		t.Run(kind, func(t *testing.T) {
			eps, err := opens[kind](chaos.Config{Delay: 1, Defer: -1})(2, conduits.Config{Lanes: 2, MaxSegment: segment.PageSize})
			if err != nil {
				t.Fatal(err)
			}
			var first, second [2]counting
			conduits.Run(eps, func(r int) {
				ep := eps[r]
				err := ep.Attach(conduits.AttachConfig{
					Size: segment.PageSize, Receiver: &first[r],
					Lane: func(int, conduits.Endpoint) conduits.Receiver { return &second[r] },
				})
				if err != nil {
					t.Error(err)
					ep.Fail(err)
					return
				}
				laned, ok := conduits.As[conduits.Laned](ep)
				if !ok || laned.Lanes() != 2 {
					t.Errorf("chaos has no lanes, where the conduit below has 2")
					ep.Fail(conduits.ErrNotSupported)
					return
				}
				if r == 0 {
					l, err := laned.Lane(1)
					for i := 0; err == nil && i < each; {
						switch l.Send(1, conduits.Request, 1, []uint32{uint32(i)}) {
						case conduits.Ready:
							i++
						case conduits.Dead:
							err = l.Err()
						default:
							l.Poll()
						}
					}
					if err != nil {
						t.Error(err)
						ep.Fail(err)
					}
				} else if err := conduits.Wait(ep, nil, func() bool { return second[1].n.Load() == each }); err != nil {
					t.Error(err)
				}
				if err := ep.Close(); err != nil {
					t.Error(err)
				}
			})
			if n := first[1].n.Load(); n != 0 {
				t.Errorf("lane 0 has received %d messages, and none was sent to it", n)
			}
			if c, _ := chaos.Done(eps[1]); c.Delayed == 0 {
				t.Errorf("chaos has kept none of the messages of lane 1: %+v", c)
			}
		})
	}
}
