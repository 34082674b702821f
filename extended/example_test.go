package extended_test

import (
	"fmt"
	"log"
	"sync"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits"
	_ "github.com/argon-go/argon/conduits/shm"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/segment"
)

// spmd runs body as n ranks of this process, each with a segment of one page.
func spmd(n int, body func(x *extended.Initiator) error) {
	shm, err := conduits.Lookup("shm")
	if err != nil {
		log.Fatal(err)
	}
	ends, err := shm.Local(n, conduits.Config{MaxSegment: 1 << 16})
	if err != nil {
		log.Fatal(err)
	}
	var ranks, done sync.WaitGroup
	done.Add(n)
	for _, end := range ends {
		ranks.Go(func() {
			x := extended.New(extended.Config{})
			e, err := am.Attach(end, am.Config{Runtime: x.Handlers(), Completer: x, Exposer: x, SegmentSize: segment.PageSize})
			if err != nil {
				log.Fatal(err)
			}
			x.Bind(e)
			if err := body(x); err != nil {
				log.Fatal(err)
			}
			// A rank stays while others may still reach its segment.
			done.Done()
			done.Wait()
			if err := end.Close(); err != nil {
				log.Fatal(err)
			}
		})
	}
	ranks.Wait()
}

const (
	flag = segment.AttachBase      // a signal's word
	data = segment.AttachBase + 64 // and what it announces
)

// Rank 0 puts a text into rank 1's segment and signals that it is there.
func Example() {
	spmd(2, func(x *extended.Initiator) error {
		if x.Rank() == 0 {
			return x.PutSignal(1, data, []byte("one-sided"), flag, extended.SignalSet, 9)
		}
		n, err := x.WaitUntil(flag, extended.Ne, 0)
		if err != nil {
			return err
		}
		fmt.Printf("%s\n", x.Direct(1, data, n))
		return nil
	})
	// Output: one-sided
}

// Four ranks take numbers from one counter.
func ExampleFetchAdd() {
	var mu sync.Mutex
	sum := uint64(0)
	spmd(4, func(x *extended.Initiator) error {
		n, err := extended.FetchAdd[uint64](x, 0, data, 1)
		mu.Lock()
		sum += n
		mu.Unlock()
		return err
	})
	fmt.Println("numbers taken add up to", sum)
	// Output: numbers taken add up to 6
}

// A lock that one writer or many readers hold, in one word (Nüssle 2008, table
// 7-3): readers add 1 while the word is at most n, a writer adds n+1 while it
// is at most 0.
func ExampleFetchCompareAdd() {
	spmd(1, func(x *extended.Initiator) error {
		const n = 8 // ranks in the job
		try := func(who string, compare, add int64) error {
			word, ok, err := extended.FetchCompareAdd[int64](x, 0, data, compare, add)
			fmt.Println(who, ok, word)
			return err
		}
		for _, err := range []error{
			try("reader:", n, 1),
			try("writer:", 0, n+1),
			try("reader leaves:", 1<<62, -1),
			try("writer:", 0, n+1),
			try("reader:", n, 1),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	})
	// Output:
	// reader: true 0
	// writer: false 1
	// reader leaves: true 1
	// writer: true 0
	// reader: false 9
}

// A 2 x 3 matrix is put transposed: element (i, j) of the source, 3 to a row,
// becomes element (j, i) of the target, 2 to a row.
func ExampleStrided() {
	spmd(1, func(x *extended.Initiator) error {
		src := []byte{1, 2, 3, 4, 5, 6}
		transposed, err := extended.Strided(1, []int{2, 3},
			extended.RemoteBox{Addr: data, Strides: []int{1, 2}},
			extended.LocalBox{Mem: src, Strides: []int{3, 1}})
		if err != nil {
			return err
		}
		if err := x.PutShape(0, transposed); err != nil {
			return err
		}
		fmt.Println(x.Direct(0, data, 6))
		return nil
	})
	// Output: [1 4 2 5 3 6]
}

// Everything begun in an access region is waited for by one handle.
func ExampleRegion() {
	spmd(2, func(x *extended.Initiator) error {
		if x.Rank() != 0 {
			return nil
		}
		var r extended.Region
		if err := x.BeginRegion(&r); err != nil {
			return err
		}
		for i := range 4 {
			if err := r.PutValueNBI(1, data+segment.NLA(8*i), uint64(10*i), 8); err != nil {
				return err
			}
		}
		h, err := r.End()
		if err != nil {
			return err
		}
		if err := x.Wait(h); err != nil {
			return err
		}
		v, err := x.GetValue(1, data+24, 8)
		fmt.Println(v)
		return err
	})
	// Output: 30
}
