package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/argon-go/argon/am"
	"github.com/argon-go/argon/conduits/sim"
	"github.com/argon-go/argon/gas"
	"github.com/argon-go/argon/segment"
)

// overlap is the metric of what goes on while the rank computes.
const overlap = "overlap"

// overlapSizes are those of what is overlapped with computing, bytes.
var overlapSizes = []int{8, 4 << 10, 64 << 10, 1 << 20, dataSize}

// starter begins a transfer of so many bytes and returns what waits for it.
type starter func(j *job, size int) (wait func() error, err error)

// overlapped are the transfers of overlap/..., those from firstShared on by all ranks.
var overlapped = []struct {
	name  string
	start starter
}{
	{"overlap/put", startPut},
	{"overlap/get", startGet},
	{"overlap/long", startLong},
	{"overlap/allreduce", startAllReduce},
	{"overlap/broadcast", startBroadcast},
}

const firstShared = 3

// overlapJoints are what the other ranks do of the transfers of all ranks.
func overlapJoints() (l []joint) {
	for _, o := range overlapped[firstShared:] {
		l = append(l, joint{o.name, "", func(j *job, count, size int) error {
			for range count {
				wait, err := o.start(j, size)
				if err == nil {
					err = wait()
				}
				if err != nil {
					return err
				}
			}
			return nil
		}})
	}
	return l
}

// overlaps measures how much of a transfer goes on while the rank computes about as long as
// the transfer takes, and then waits for it: of the shorter of both the share that the two
// together do not take in addition to the longer one (section 9.2 of the thesis). which is of overlapped.
func overlaps(which int) func(j *job, o options) ([]line, error) {
	return func(j *job, o options) (lines []line, err error) {
		start := overlapped[which].start
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
			if which >= firstShared {
				for _, k := range []int{transfer, both} {
					ops[k].begin = j.joint(jointOf(overlapped[which].name), size).begin
				}
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

// startAllReduce and startBroadcast are of all ranks; rank 0 receives what is broadcast.
func startAllReduce(j *job, size int) (func() error, error) {
	return waitOf(gas.AllReduceNB(j.n, blockOf(j, size), gas.Sum))
}

func startBroadcast(j *job, size int) (func() error, error) {
	return waitOf(gas.BroadcastNB(j.n, 1, blockOf(j, size)))
}

func waitOf(f gas.Future[[]uint64], err error) (func() error, error) {
	return func() error { _, err := f.Wait(); return err }, err
}

// blockOf is size bytes that collective calls use.
func blockOf(j *job, size int) []uint64 {
	if k := size / 8; len(j.blocks[0]) < k {
		j.blocks = [2][]uint64{make([]uint64, k), make([]uint64, k)}
	}
	return j.blocks[0][:size/8]
}

// simOverlap is overlap/... in virtual time: a transfer alone, and with a computation that takes as long, of ranks
// with and without Config.Progress.
func simOverlap(s *study) error {
	if err := s.head("share of a transfer that goes on while the rank computes as long", "", "alone", "with Progress"); err != nil {
		return err
	}
	for which, o := range overlapped {
		for _, size := range overlapSizes {
			var figures []figure
			cells := []string{fmt.Sprintf("%s %d", strings.TrimPrefix(o.name, "overlap/"), size)}
			for _, progress := range []bool{false, true} {
				p := s.o.profile
				j, err := sim.New(2, sim.Config{Profile: &p, MaxSegment: 2 * dataSize})
				if err != nil {
					return err
				}
				scaleJob = j
				share := 0.0
				err = gas.Run(gas.Config{Conduit: scaleConduit, Ranks: 2, SegmentSize: dataSize + 8*segment.PageSize, Handlers: handlers, Progress: progress}, func(n *gas.Node) error {
					j, err := newJob(n)
					if err != nil {
						return err
					}
					if n.Rank() != 0 {
						return j.serve()
					}
					if share, err = simShare(j, which, size); err != nil {
						return err
					}
					return j.command(cmdQuit, 0, 0)
				})
				scaleJob = nil
				if err != nil {
					return fmt.Errorf("%s of %d bytes, progress %v: %w", o.name, size, progress, err)
				}
				what := strings.TrimPrefix(o.name, "overlap/")
				if progress {
					what += " with Progress"
				}
				figures = append(figures, figure{What: what, Ranks: 2, Size: size, Metric: overlap, Value: share, Unit: "share", Events: j.Events})
				cells = append(cells, fmt.Sprintf("%.1f %%", 100*share))
			}
			if err := s.add(figures, cells...); err != nil {
				return err
			}
		}
	}
	return nil
}

// simShare is the share of one transfer, in virtual time, after others that make ready for it.
func simShare(j *job, which, size int) (float64, error) {
	ep := j.n.Layers().Conduit.(*sim.Endpoint)
	timed := func(work time.Duration) (time.Duration, error) {
		if which >= firstShared {
			if err := j.joint(jointOf(overlapped[which].name), size).begin(1); err != nil {
				return 0, err
			}
		}
		sim.Compute(ep, time.Millisecond) // until the other rank is there
		from := ep.Now()
		wait, err := overlapped[which].start(j, size)
		if err != nil {
			return 0, err
		}
		if work > 0 {
			sim.Compute(ep, work)
		}
		err = wait()
		return ep.Now() - from, err
	}
	if _, err := timed(0); err != nil {
		return 0, err
	}
	alone, err := timed(0)
	if err != nil {
		return 0, err
	}
	both, err := timed(alone)
	return float64(2*alone-both) / float64(alone), err
}
