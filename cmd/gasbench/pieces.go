package main

import (
	"fmt"
	"time"

	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/firehose"
	"github.com/argon-go/argon/segment"
)

// farPieceCases are puts and gets of pieces of a Go slice that lie apart, so many by one
// Shape or each by itself.
func farPieceCases(j *job) ([]outcase, error) {
	if err := j.needFar(); err != nil {
		return nil, err
	}
	const most = 1024
	var l []outcase
	for _, size := range []int{8, 512} {
		addrs, offs := make([]segment.NLA, most), make([]int, most)
		for i := range most {
			addrs[i], offs[i] = j.far.at[kindHeap]+j.far.hits+segment.NLA(i*(hitArea/most)), i*size
		}
		for _, k := range []int{1, 8, 64, most} {
			for _, what := range []string{"put", "get"} {
				together, alone := j.x.PutShape, j.x.Put
				if what == "get" {
					together, alone = j.x.GetShape, j.x.Get
				}
				out := []output{{latency, refAttachPut}}
				each := func(n int) error {
					for i := range n {
						if err := alone(1, addrs[i], j.local[offs[i]:][:size]); err != nil {
							return err
						}
					}
					return nil
				}
				if k == 1 {
					// The caller does not sleep, so that only the owner is woken, by the first of puts.
					o := phases{group: 1, most: 8, before: func(int) error {
						for start := time.Now(); time.Since(start) < asleep; {
							compute(1 << 10)
						}
						return nil
					}, timed: each}.op(j)
					o.begin = j.pieces(k, nil).begin
					l = append(l, outcase{via: what + "-asleep-1", size: size, out: out, op: o})
				}
				l = append(l, outcase{via: fmt.Sprint(what, "-together-", k), size: size, out: out, op: j.pieces(k, func(n int) error {
					s, err := extended.Indexed(extended.RemoteRuns{Addrs: addrs[:n], Len: size}, extended.LocalRuns{Mem: j.local, Offsets: offs[:n], Len: size})
					if err != nil {
						return err
					}
					return together(1, s)
				})}, outcase{via: fmt.Sprint(what, "-alone-", k), size: size, out: out, op: j.pieces(k, each)})
			}
		}
	}
	return l, nil
}

// pieces makes an operation of f, which transfers n pieces, k at most.
func (j *job) pieces(k int, f func(n int) error) op {
	o := plain(func(count int) error {
		for ; count > 0; count -= k {
			if err := f(min(count, k)); err != nil {
				return err
			}
		}
		return nil
	})
	o.begin = func(int) error { return j.x.Exposed().SetStrategy(firehose.AlwaysPin) }
	return o
}
