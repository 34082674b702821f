package main

import (
	"runtime"
	"time"

	"github.com/argon-go/argon/extended"
	"github.com/argon-go/argon/segment"
)

// phases are the steps of a group of operations, of which one is timed, and neither those
// before it nor those behind.
type phases struct {
	before, timed, after func(k int) error // may be nil, but for timed
	group                int               // most operations in a row
	most                 int               // and in a burst; 0: no bound
}

// op is the operation of which only one phase is timed.
func (p phases) op(j *job) op {
	step := func(f func(int) error, k int) error {
		if f == nil {
			return nil
		}
		return f(k)
	}
	return op{legs: 1, most: p.most, clocked: func(count int) (total time.Duration, err error) {
		for first := true; count > 0; first = false {
			k := min(count, p.group)
			count -= k
			if err := step(p.before, k); err != nil {
				return 0, err
			}
			start := time.Now()
			err := p.timed(k)
			d := time.Since(start)
			if err == nil {
				err = step(p.after, k)
			}
			if err != nil {
				return 0, err
			}
			if !first {
				d = max(d-time.Duration(j.clock), 0) // the caller subtracts it once
			}
			total += d
		}
		return total, nil
	}}
}

// postSizes are those of puts and messages that are posted.
var postSizes = []int{8, 64, 512, 4 << 10, 64 << 10}

// postCases measure the hand-over of an operation, without waiting for it: the
// descriptor, the doorbell, and the copy where there is one.
func postCases(j *job) ([]outcase, error) {
	x := j.x
	var l []outcase
	for _, size := range postSizes {
		src := j.local[:size]
		var handles []extended.Handle
		l = append(l, outcase{via: "put", size: size, out: []output{{rate, j.access(size)}}, op: phases{
			group: 16,
			timed: func(k int) (err error) {
				handles, err = begun(j, handles[:0], k, src)
				return err
			},
			after: func(int) error { return x.WaitAll(handles) },
		}.op(j)})
	}
	last := j.answered(func() error { return j.e.RequestShort(1, hPing) })
	args := make([]uint32, goroutineArgs)
	return append(l, outcase{via: "message", size: 4 * goroutineArgs, out: []output{{rate, j.way(4 * goroutineArgs)}}, op: phases{
		group: 16,
		timed: func(k int) error {
			for range k {
				if err := j.e.RequestShort(1, hSink, args...); err != nil {
					return err
				}
			}
			return nil
		},
		after: func(int) error { return last.run(1) },
	}.op(j)}), nil
}

// begun appends to l the handles of k puts of src, which it begins.
func begun(j *job, l []extended.Handle, k int, src []byte) ([]extended.Handle, error) {
	for to := j.data(); k > 0; k-- {
		h, err := j.x.PutNB(1, to, src)
		if err != nil {
			return l, err
		}
		l = append(l, h)
	}
	return l, nil
}

// quiet is how long bursts of completions wait for what is under way, longer than a way
// takes.
const quiet = 200 * time.Microsecond

// completeCases are a look that finds nothing, and waiting for puts that are done.
func completeCases(j *job) ([]outcase, error) {
	x := j.x
	var handles []extended.Handle
	return []outcase{
		{via: "empty", size: 0, out: []output{{latency, j.way(0)}}, op: plain(func(count int) error {
			for range count {
				j.e.Poll()
			}
			return nil
		})},
		{via: "handle", size: 8, out: []output{{latency, j.way(8)}}, op: phases{
			group: window, most: 16 * window,
			before: func(k int) (err error) {
				handles, err = begun(j, handles[:0], k, j.local[:8])
				for begun := time.Now(); !j.direct && time.Since(begun) < quiet; {
					j.e.Poll()
				}
				return err
			},
			timed: func(int) error { return x.WaitAll(handles) },
		}.op(j)},
	}, nil
}

// translateCases are the table of addresses alone: of the attach segment, and of memory
// that is registered.
func translateCases(j *job) ([]outcase, error) {
	atu, err := j.n.Layers().Conduit.ATU()
	if err != nil {
		return nil, err
	}
	tables := atu.Tables()
	g, err := atu.Register(j.local, segment.RightsAll, segment.AnyPeer) // ends with the job
	if err != nil {
		return nil, err
	}
	registered, _ := g.At(0)
	one := func(via string, at segment.NLA, size int) outcase {
		return outcase{via: via, size: size, bytes: 8, out: []output{{latency, j.way(8)}}, op: plain(func(count int) error {
			sum := uint64(0)
			for i := range count {
				// Pages in turn, so that no load waits for the one before.
				a, _, err := tables.Translate(uint16(j.n.Rank()), at+segment.NLA(i%16*pageSize), uint64(size), segment.RightRead)
				if err != nil {
					return err
				}
				sum += a
			}
			runtime.KeepAlive(sum)
			return nil
		})}
	}
	return []outcase{
		one("attached", j.data(), 8), one("attached", j.data(), 64<<10),
		one("registered", registered, 8), one("registered", registered, 64<<10),
	}, nil
}

// asleep is how long the other rank has nothing to do before it is to have parked.
const asleep = 2 * time.Millisecond

// wakeCases are round trips to a rank that sleeps.
func wakeCases(j *job) ([]outcase, error) {
	trip := j.shortTrip()
	return []outcase{{size: 4 * goroutineArgs, out: []output{{latency, j.way(4 * goroutineArgs)}}, op: phases{
		group: 1, most: 8,
		before: func(int) error { time.Sleep(asleep); return nil },
		timed:  trip.run,
	}.op(j)}}, nil
}
