package gas_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/gas"
)

// BenchmarkLanes is the time a message when one goroutine, or two at once, send short
// messages to their own rank, on one Node or by a lane each, and poll after every sixteenth.
func BenchmarkLanes(b *testing.B) {
	const hNothing = 201
	handlers := []am.Entry{{Index: hNothing, Name: "nothing", Fn: func(*am.Token, []uint32, []byte) {}, Args: 2}}
	flood := func(n *gas.Node, count int) error {
		for i := range count {
			if err := n.Layers().AM.RequestShort(n.Rank(), hNothing, 1, 2); err != nil {
				return err
			}
			if i%16 == 0 {
				n.Poll()
			}
		}
		return nil
	}
	for _, how := range []string{"node", "lanes"} {
		for _, goroutines := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/goroutines=%d", how, goroutines), func(b *testing.B) {
				err := gas.Run(gas.Config{Lanes: 1 + goroutines, Handlers: handlers}, func(n *gas.Node) error {
					done := make(chan error)
					start := time.Now()
					for range goroutines {
						go func() {
							l, err := n, error(nil)
							if how == "lanes" {
								l, err = n.Lane()
							}
							if err == nil {
								err = flood(l, b.N/goroutines)
							}
							done <- err
						}()
					}
					var all error
					for range goroutines {
						all = errors.Join(all, <-done)
					}
					b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(b.N), "ns/message")
					return all
				})
				if err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
