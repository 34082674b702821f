package extended

import (
	"fmt"
	"testing"

	"github.com/argon-go/argon/segment"
)

// TestNoAllocations: no operation allocates, neither by direct access nor on
// its way through a conduit, with waiting.
func TestNoAllocations(t *testing.T) {
	for _, direct := range []bool{true, false} {
		for _, always := range []bool{false, true} {
			j := newFake(2, fakeOptions{direct: direct, bare: true, config: Config{AlwaysHandle: always}})
			x := j.eps[0].x
			r := x.NewRegion()
			b := make([]byte, 256)
			var u64 uint64
			hs := make([]Handle, 8)
			addrs := []segment.NLA{at(0), at(128)}
			offs := []int{0, 128}
			rs, ls, counts := []int{64, 8}, []int{8, 64}, []int{3, 2}
			extents, slices := []Extent{{at(0), 10}, {at(64), 6}}, [][]byte{b[:8], b[100:108]}
			must := func(err error) {
				if err != nil {
					t.Fatal(err)
				}
			}
			shape := func(s Shape, err error) Shape {
				must(err)
				return s
			}
			kept := shape(Strided(8, counts, RemoteBox{at(0), rs}, LocalBox{b, 0, ls}))
			sync := func(h Handle, err error) {
				must(err)
				must(x.Wait(h))
			}
			cases := map[string]func(){
				"put 8":         func() { must(x.Put(1, at(0), b[:8])) },
				"put 256":       func() { must(x.Put(1, at(0), b)) },
				"get 8":         func() { must(x.Get(1, at(0), b[:8])) },
				"get 256":       func() { must(x.Get(1, at(0), b)) },
				"get value":     func() { v, err := x.GetValue(1, at(0), 8); must(err); u64 = v },
				"get value 3":   func() { v, err := x.GetValue(1, at(0), 3); must(err); u64 = v },
				"get value nb":  func() { sync(x.GetValueNB(1, at(0), &u64, 7)) },
				"memset":        func() { must(x.Memset(1, at(0), 0, 200)) },
				"putnb+sync":    func() { sync(x.PutNB(1, at(0), b)) },
				"putbulk+sync":  func() { sync(x.PutBulkNB(1, at(0), b)) },
				"getnb+sync":    func() { sync(x.GetNB(1, at(0), b)) },
				"putnbi+sync":   func() { must(r.PutBulkNBI(1, at(0), b)); must(r.Sync(All)) },
				"getnbi+sync":   func() { must(r.GetNBI(1, at(0), b)); must(r.Sync(Gets)) },
				"fetch-and-add": func() { v, err := FetchAdd[uint64](x, 1, at(0), 1); must(err); u64 = v },
				"float add":     func() { must(Add[float64](x, 1, at(8), 1)) },
				"cas":           func() { _, _, err := CompareAndSwap[int32](x, 1, at(16), 0, 1); must(err) },
				"fcaa":          func() { _, _, err := FetchCompareAdd[int64](x, 1, at(24), 0, 1); must(err) },
				"atomic nb":     func() { sync(AtomicNB[uint64](x, 1, at(0), &u64, AtomicXor, 1, 0)) },
				"fcaa nb":       func() { sync(AtomicNB[uint64](x, 1, at(0), &u64, AtomicFCAA, 5, 1)) },
				"atomic nbi": func() {
					must(AtomicNBI[uint64](r, 1, at(0), &u64, AtomicMax, 1, 0))
					must(r.Sync(All))
				},
				"signal": func() { must(x.Signal(1, at(32), SignalAdd, 1)) },
				"put with signal": func() {
					must(x.PutSignal(1, at(64), b[:100], at(32), SignalAdd, 1))
				},
				"lock":        func() { must(x.LockAt(1, at(40)).Lock()); must(x.LockAt(1, at(40)).Unlock()) },
				"shared lock": func() { must(x.LockAt(1, at(40)).RLock()); must(x.LockAt(1, at(40)).RUnlock()) },
				"wait until":  func() { _, err := x.WaitUntil(at(0), Ge, 0); must(err) },
				"strided":     func() { must(x.PutShape(1, shape(Strided(8, counts, RemoteBox{at(0), rs}, LocalBox{b, 0, ls})))) },
				"strided nb":  func() { sync(x.GetShapeNB(1, shape(Strided(8, counts, RemoteBox{at(0), rs}, LocalBox{b, 0, ls})))) },
				"indexed":     func() { must(x.PutShape(1, shape(Indexed(RemoteRuns{addrs, 16}, LocalRuns{b, offs, 16})))) },
				"vector":      func() { must(x.GetShape(1, shape(Vector(extents, slices)))) },
				"shape nbi":   func() { must(r.PutShapeNBI(1, kept)); must(r.GetShapeNBI(0, kept)); must(r.Sync(All)) },
				"access region": func() {
					must(x.BeginRegion(r))
					must(r.PutBulkNBI(1, at(0), b))
					must(r.GetNBI(1, at(512), b[:8]))
					h, err := r.End()
					sync(h, err)
				},
				"lists": func() {
					for i := range hs {
						h, err := x.PutBulkNB(1, at(i), b[:1])
						must(err)
						hs[i] = h
					}
					_, err := x.WaitSome(hs)
					must(err)
					_, err = x.TrySome(hs)
					must(err)
					must(x.WaitAll(hs))
				},
			}
			if direct {
				// The test's conduit allocates for a word.
				cases["put value"] = func() { must(x.PutValue(1, at(0), 1, 8)) }
				cases["put value 5"] = func() { must(x.PutValue(1, at(0), 1, 5)) }
				cases["put value nb"] = func() { sync(x.PutValueNB(1, at(0), 1, 8)) }
			}
			for name, f := range cases {
				t.Run(fmt.Sprintf("direct=%v/always=%v/%s", direct, always, name), func(t *testing.T) {
					if n := testing.AllocsPerRun(200, f); n != 0 {
						t.Errorf("%v allocations", n)
					}
				})
			}
		}
	}
}
