package heap_test

import (
	"fmt"
	"log"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	_ "github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/extended/heap"
	"github.com/argon-go/argon/segment"
)

// Rank 0 allocates a block of rank 1's memory, and frees it twice.
func Example() {
	shm, err := conduits.Lookup("shm")
	if err != nil {
		log.Fatal(err)
	}
	ends, err := shm.Local(2, conduits.Config{MaxSegment: 1 << 16})
	if err != nil {
		log.Fatal(err)
	}
	conduits.Run(ends, func(i int) {
		own, err := segment.NewHeap(segment.AttachBase, 1<<16)
		if err != nil {
			log.Fatal(err)
		}
		h, b := heap.New(own), barrier.New()
		e, err := am.Attach(ends[i], am.Config{Runtime: append(b.Handlers(), h.Handlers()...), SegmentSize: 1 << 16})
		if err != nil {
			log.Fatal(err)
		}
		if err := b.Bind(e); err != nil {
			log.Fatal(err)
		}
		h.Bind(e)
		if err := b.Barrier(0, 0); err != nil { // all are there
			log.Fatal(err)
		}

		if e.Rank() == 0 {
			at, err := h.Alloc(1, 1000)
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(h.Free(1, at))
			fmt.Println(h.Free(1, at))
		}

		if err := b.Barrier(1, 0); err != nil { // which answers rank 0
			log.Fatal(err)
		}
		if err := ends[i].Close(); err != nil {
			log.Fatal(err)
		}
	})
	// Output:
	// <nil>
	// heap: Free of 1:0xf:0xc00 on rank 1: freed already
}
