package extended_test

import (
	"fmt"
	"log"
	"sync"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/segment"
)

// exposing is spmd for ranks that expose memory, of which each may have a megabyte
// pinned.
func exposing(n int, body func(x *extended.Initiator) error) {
	shm, err := conduits.Lookup("shm")
	if err != nil {
		log.Fatal(err)
	}
	ends, err := shm.Local(n, conduits.Config{MaxSegment: 1 << 16})
	if err != nil {
		log.Fatal(err)
	}
	var ranks sync.WaitGroup
	for _, end := range ends {
		ranks.Go(func() {
			if err := expose(end, body); err != nil {
				log.Fatal(err)
			}
		})
	}
	ranks.Wait()
}

func expose(end conduits.Endpoint, body func(x *extended.Initiator) error) error {
	const bucket = 64 << 10
	space, err := firehose.NewSpace(end.ATU, bucket)
	if err != nil {
		return err
	}
	cache, err := firehose.NewCache(firehose.Config{
		Rank: end.Rank(), Size: end.Size(), Payload: end.Limits().MaxMedium,
		Budget: 1 << 20, Bucket: bucket, Memory: space,
	})
	if err != nil {
		return err
	}
	x, b := extended.New(extended.Config{Firehose: cache, Space: space}), barrier.New()
	e, err := am.Attach(end, am.Config{Runtime: append(b.Handlers(), x.Handlers()...), Completer: x, Exposer: x, SegmentSize: segment.PageSize})
	if err != nil {
		return err
	}
	x.Bind(e)
	if err := b.Bind(e); err != nil {
		return err
	}
	all := func() error { // wait for all ranks, and serve them meanwhile
		if err := b.Notify(0, barrier.Anonymous); err != nil {
			return err
		}
		return b.Wait(0, barrier.Anonymous)
	}
	if err := all(); err != nil {
		return err
	}
	if err := cache.Bind(e); err != nil {
		return err
	}
	if err := body(x); err != nil {
		return err
	}
	if err := all(); err != nil { // others may still need this rank's memory
		return err
	}
	cache.Close()
	return end.Close()
}

// Rank 1 exposes a slice that is larger than all that may be pinned, and rank 0 puts
// to its end.
func ExampleInitiator_Expose() {
	exposing(2, func(x *extended.Initiator) error {
		if x.Rank() == 0 {
			// Rank 1 says where its slice is.
			at, err := x.WaitUntil(flag, extended.Ne, 0)
			if err != nil {
				return err
			}
			return x.PutSignal(1, segment.NLA(at)+(4<<20-9), []byte("one-sided"), flag, extended.SignalSet, 1)
		}
		slice := make([]byte, 4<<20)
		at, err := x.Expose(slice, segment.RightWrite, 0)
		if err != nil {
			return err
		}
		if err := x.Signal(0, flag, extended.SignalSet, uint64(at)); err != nil {
			return err
		}
		if _, err := x.WaitUntil(flag, extended.Ne, 0); err != nil {
			return err
		}
		fmt.Printf("%s\n", slice[len(slice)-9:])
		return x.Conceal(at)
	})
	// Output: one-sided
}
