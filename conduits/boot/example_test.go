package boot_test

import (
	"context"
	"fmt"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conduits/boot"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/segment"
)

// Each of four ranks adds its number to a word of rank 0. A program would call
// boot.Main, which ends the process besides, and leave the number of ranks to the
// launcher.
func Example() {
	err := boot.Run(context.Background(), boot.Config{Ranks: 4}, func(ep conduits.Endpoint) error {
		x, b := extended.New(extended.Config{}), barrier.New()
		e, err := am.Attach(ep, am.Config{
			SegmentSize: segment.PageSize,
			Runtime:     append(b.Handlers(), x.Handlers()...),
			Completer:   x,
			Exposer:     x,
		})
		if err != nil {
			return err
		}
		x.Bind(e)
		if err := b.Bind(e); err != nil {
			return err
		}
		if err := b.Barrier(0, barrier.Anonymous); err != nil { // nothing is sent before it
			return err
		}
		if err := extended.Add[int64](x, 0, segment.AttachBase, int64(ep.Rank())); err != nil {
			return err
		}
		if err := b.Barrier(1, 0); err != nil {
			return err
		}
		if ep.Rank() == 0 {
			v, err := extended.Load[int64](x, 0, segment.AttachBase)
			if err != nil {
				return err
			}
			fmt.Println("the numbers add up to", v)
		}
		return b.Barrier(2, 0) // boot does none: all ranks stay until all are done
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: the numbers add up to 6
}
