package collective_test

import (
	"encoding/binary"
	"fmt"
	"log"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/barrier"
	"github.com/argon-go/argon/conduits"
	_ "github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/extended/collective"
)

// Four ranks in one process, without package gas. Each has some lines: where does its
// first one go, and how many are there?
func Example() {
	shm, err := conduits.Lookup("shm")
	if err != nil {
		log.Fatal(err)
	}
	ends, err := shm.Local(4, conduits.Config{MaxSegment: 1 << 16})
	if err != nil {
		log.Fatal(err)
	}
	conduits.Run(ends, func(i int) {
		c, b := collective.New(collective.Config{}), barrier.New()
		e, err := am.Attach(ends[i], am.Config{Runtime: append(b.Handlers(), c.Handlers()...)})
		if err != nil {
			log.Fatal(err)
		}
		if err := b.Bind(e); err != nil {
			log.Fatal(err)
		}
		c.Bind(e)
		if err := b.Barrier(0, 0); err != nil { // all are there
			log.Fatal(err)
		}

		lines := binary.LittleEndian.AppendUint64(nil, uint64(10*(e.Rank()+1)))
		first := make([]byte, 8)
		if err := c.Do(collective.ExclusiveScan(lines, first), add); err != nil {
			log.Fatal(err)
		}
		firsts := make([]byte, 8*e.Size())
		if err := c.Do(collective.Gather(0, first, firsts), nil); err != nil {
			log.Fatal(err)
		}
		if err := c.Do(collective.Broadcast(e.Size()-1, lines), nil); err != nil {
			log.Fatal(err)
		}
		if e.Rank() == 0 {
			for r := range e.Size() {
				fmt.Print(binary.LittleEndian.Uint64(firsts[8*r:]), " ")
			}
			fmt.Println("of", binary.LittleEndian.Uint64(lines))
		}

		if err := b.Barrier(1, 0); err != nil { // none is needed any more
			log.Fatal(err)
		}
		if err := ends[i].Close(); err != nil {
			log.Fatal(err)
		}
	})
	// Output: 0 10 30 60 of 100
}

// add is a reduction's operation on numbers of 8 bytes.
func add(acc, in []byte) {
	binary.LittleEndian.PutUint64(acc, binary.LittleEndian.Uint64(in)+binary.LittleEndian.Uint64(acc))
}
