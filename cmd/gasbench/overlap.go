package main

import (
	"time"

	"github.com/argon-go/argon/am"
)

// overlap is the metric of what goes on while the rank computes.
const overlap = "overlap"

// overlapSizes are those of what is overlapped with computing, bytes.
var overlapSizes = []int{8, 4 << 10, 64 << 10, 1 << 20, dataSize}

// overlaps measures how much of a transfer goes on while the rank computes about as long as
// the transfer takes, and then waits for it: of the shorter of both the share that the two
// together do not take in addition to the longer one (section 9.2 of the thesis). start begins a
// transfer of so many bytes and returns what waits for it.
func overlaps(start func(j *job, size int) (wait func() error, err error)) func(j *job, o options) ([]line, error) {
	return func(j *job, o options) (lines []line, err error) {
		for _, size := range overlapSizes {
			if !o.wants(size) {
				continue
			}
			with := func(units int) error {
				wait, err := start(j, size)
				if err != nil {
					return err
				}
				compute(units)
				return wait()
			}
			units := 1 << 10
			const transfer, work, both = 0, 1, 2
			ops := []op{
				transfer: repeat(func() error { return with(0) }),
				work:     repeat(func() error { compute(units); return nil }),
				both:     repeat(func() error { return with(units) }),
			}
			burst := o.time / time.Duration(4*len(overlapSizes))
			_, took, err := j.calibrate(&ops[transfer], burst)
			if err != nil {
				return nil, err
			}
			_, each, err := j.calibrate(&ops[work], burst)
			if err != nil {
				return nil, err
			}
			units = max(1, int(took/each*float64(units)))
			o := o
			o.time /= time.Duration(len(overlapSizes))
			values, err := j.inTurn(ops, o)
			if err != nil {
				return nil, err
			}
			lines = append(lines, derived(j, "", size, overlap, "share", 0, values, func(v []float64) float64 {
				return (v[transfer] + v[work] - v[both]) / min(v[transfer], v[work])
			}))
		}
		return lines, nil
	}
}

// computed keeps what compute does from being left out.
var computed uint64

// compute does so many units of work that calls nothing.
func compute(units int) {
	x := computed | 1
	for range units {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	computed = x
}

func startPut(j *job, size int) (func() error, error) {
	h, err := j.x.PutBulkNB(1, j.data(), j.local[:size])
	return func() error { return j.x.Wait(h) }, err
}

func startGet(j *job, size int) (func() error, error) {
	h, err := j.x.GetNB(1, j.data(), j.local[:size])
	return func() error { return j.x.Wait(h) }, err
}

func startLong(j *job, size int) (func() error, error) {
	var ev am.Event
	want := j.s.pongs + 1
	err := j.e.RequestLongNB(1, hPing, j.data(), j.local[:min(size, int(j.e.MaxLong(1)))], &ev)
	return func() error { return j.e.Wait(nil, func() bool { return j.s.pongs == want && ev.Done() }) }, err
}
