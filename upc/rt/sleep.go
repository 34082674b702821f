package rt

import (
	"time"

	"github.com/argon-go/argon/conduits"
)

// Sleep is usleep, and so on: the thread does nothing for so many nanoseconds of the job's clock.
func Sleep(t *Thread, ns int64) int32 {
	conduits.Sleep(t.n.Layers().Conduit, time.Duration(ns))
	return 0
}
