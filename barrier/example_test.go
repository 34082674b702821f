package barrier_test

import (
	"fmt"
	"log"
	"sync"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	_ "github.com/argon-go/argon/conduits/shm"
)

// Four ranks in one process. Each computes between the two phases of a barrier;
// then rank 2 names another barrier than the others, and all are told.
func Example() {
	shm, err := conduits.Lookup("shm")
	if err != nil {
		log.Fatal(err)
	}
	ends, err := shm.Local(4, conduits.Config{MaxSegment: 1 << 16})
	if err != nil {
		log.Fatal(err)
	}
	var ranks sync.WaitGroup
	for _, end := range ends {
		ranks.Go(func() {
			b := barrier.New()
			e, err := am.Attach(end, am.Config{Runtime: b.Handlers()})
			if err != nil {
				log.Fatal(err)
			}
			if err := b.Bind(e); err != nil {
				log.Fatal(err)
			}

			if err := b.Notify(0, barrier.Anonymous); err != nil {
				log.Fatal(err)
			}
			// Here is time for work that needs no other rank.
			if err := b.Wait(0, barrier.Anonymous); err != nil {
				log.Fatal(err)
			}

			name := uint32(7)
			if e.Rank() == 2 {
				name = 8
			}
			err = b.Barrier(name, 0)
			if e.Rank() == 3 {
				fmt.Println(err)
			}

			if err := b.Barrier(9, 0); err != nil {
				log.Fatal(err)
			}
			id, named := b.Result()
			if e.Rank() == 0 {
				fmt.Println(id, named)
			}
			if err := end.Close(); err != nil {
				log.Fatal(err)
			}
		})
	}
	ranks.Wait()
	// Unordered output:
	// barrier: phase 2 does not match: ids differ: rank 0 notified 7, rank 2 notified 8
	// 9 true
}
