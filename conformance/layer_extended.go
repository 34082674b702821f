package conformance

import (
	"github.com/argon-go/argon/conduits"
	"github.com/argon-go/argon/conformance/contract"
	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/segment"
)

// extendedOutstanding: 65,536 handles at once, and not one more.
func extendedOutstanding(c *ctx) {
	c.stack(2, conduits.Config{}, layers{segment: 2 * segment.PageSize, ext: extended.Config{AlwaysHandle: true}}, func(s *stack) {
		if s.Rank == 1 {
			return
		}
		x := s.ext
		hs := make([]extended.Handle, extended.MaxHandles)
		seen := make(map[extended.Handle]bool, len(hs))
		start := func(i int) {
			h, err := x.PutValueNB(1, contract.At(8*(i%511)), uint64(i), 8) // not to the last word, which full uses
			s.Must(err)
			if h == 0 || seen[h] {
				s.Fatalf("handle %d is %#x, zero or issued before", i, h)
			}
			seen[h], hs[i] = true, h
		}
		for i := range hs {
			start(i)
			if i+1 == 65535 && x.Outstanding() != 65535 {
				s.Fatalf("%d handles are outstanding, not 65535", x.Outstanding())
			}
		}
		full := func() {
			if x.Outstanding() != 65536 {
				s.Fatalf("%d handles are outstanding, not 65536", x.Outstanding())
			}
			var v uint64
			_, err := x.PutValueNB(1, contract.At(0), 0, 8)
			s.Wants(err, extended.ErrResource, "put value beyond the last handle")
			_, err = x.GetValueNB(1, contract.At(0), &v, 8)
			s.Wants(err, extended.ErrResource, "get value beyond the last handle")
			_, err = x.PutNB(1, contract.At(0), []byte{1})
			s.Wants(err, extended.ErrResource, "put beyond the last handle")
			_, err = x.GetNB(1, contract.At(0), make([]byte, 4))
			s.Wants(err, extended.ErrResource, "get beyond the last handle")
			_, err = extended.AtomicNB[uint64](x, 1, contract.At(0), &v, extended.AtomicAdd, 1, 0)
			s.Wants(err, extended.ErrResource, "atomic beyond the last handle")
			// What needs no handle goes on.
			s.Must(x.PutValue(1, contract.At(segment.PageSize), 3, 8))
			s.Must(x.Implicit().PutNBI(1, contract.At(segment.PageSize), []byte{4}))
			s.Must(x.Implicit().Sync(extended.All))
			if v, err := x.GetValue(1, contract.At(segment.PageSize), 8); err != nil || v != 4 {
				s.Fatalf("value is %d, %v", v, err)
			}
		}
		full()
		for range 1000 { // each that is given back makes room for one
			i := s.RNG.IntN(len(hs))
			s.Must(x.Wait(hs[i]))
			start(i)
		}
		full()
		s.Must(x.WaitAll(hs[:100]))
		if x.Outstanding() != 65436 {
			s.Fatalf("%d handles are outstanding, not 65436", x.Outstanding())
		}
		s.Must(x.WaitAll(hs))
		if x.Outstanding() != 0 {
			s.Fatalf("%d handles are outstanding, not 0", x.Outstanding())
		}
	})
}
